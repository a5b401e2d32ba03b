"""Hypotheses about where the parts of a gradient are: rules that are missing or exchanged, shapes, orders, reductions, outputs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from genesis.autograd.checking.differences import Array
from genesis.autograd.checking.evidence import Diagnosis, Evidence, same


def missing(e: Evidence) -> Diagnosis | None:
    if e.analytic is None and e.returned is None and not e.error:
        for i, r in enumerate(e.everything):
            if same(r, e.numeric):
                return Diagnosis(
                    "misplaced",
                    f"the gradient of `{e.name}` is returned as gradient {i}, the place of another argument",
                    "return one gradient for each parameter of forward, in its order, None for those that have none",
                )
        if not e.everything:
            return Diagnosis(
                "none",
                f"no gradient of `{e.name}` arrives (None)",
                "look for a detach, a NumPy call or no_grad on the way",
            )
        return Diagnosis("none", f"the gradient of `{e.name}` is missing (None)", "return a gradient in its place")
    if e.analytic is not None and not np.any(e.analytic) and np.nanmax(np.abs(e.numeric), initial=0) > 0:
        return Diagnosis(
            "zero", f"the gradient of `{e.name}` is zero everywhere", "return its gradient instead of zeros"
        )
    return None


def misplaced(e: Evidence) -> Diagnosis | None:
    got = e.analytic if e.analytic is not None else e.returned
    for j, (name, _, numeric) in enumerate(e.inputs):
        if j != e.position and same(got, numeric) and not same(got, e.numeric):
            return Diagnosis(
                "swapped",
                f"the gradients of `{e.name}` and `{name}` are swapped: the gradient of `{name}` is returned in the "
                f"place of `{e.name}`",
                "return one gradient for each parameter of forward, in its order",
            )
    return None


def wrong_shape(e: Evidence) -> Diagnosis | None:
    r, want = e.returned, e.x.shape
    if e.analytic is not None or r is None or r.shape == want:
        return None
    if r.ndim == len(want) == 2 and same(r.T, e.numeric):
        return _transposed_words(e)
    axes = range(r.ndim)
    for count in range(1, r.ndim + 1):
        for some in itertools.combinations(axes, count):
            for how, word in ((np.sum, "sum"), (np.mean, "mean")):
                part = np.asarray(how(r, axis=some))
                if part.size == e.x.size and same(part.reshape(want), e.numeric):
                    return Diagnosis(
                        "missing_sum",
                        f"the gradient of `{e.name}` is missing a {word} over {_axes(some)}",
                        f"return it.{word}({list(some) if count > 1 else some[0]})",
                    )
    if r.size == e.x.size and same(r.reshape(want), e.numeric):
        return Diagnosis(
            "shape",
            f"the gradient of `{e.name}` has shape {list(r.shape)}, the input {list(want)}",
            f"reshape it to {list(want)}",
        )
    transposed = r.ndim == len(want) == 2 and r.shape == want[::-1]
    if transposed:
        return _transposed_words(e)
    extra = r.ndim - len(want)
    if extra > 0 and r.shape[extra:] == want:
        return Diagnosis(
            "missing_sum",
            f"the gradient of `{e.name}` is missing a sum over {_axes(range(extra))}, and its values are wrong too",
            f"its shape is {list(r.shape)}, the input's {list(want)}",
        )
    return Diagnosis(
        "shape",
        f"the gradient of `{e.name}` has shape {list(r.shape)}, the input {list(want)}",
        "return a gradient of the input's shape",
    )


def _axes(some: Any) -> str:
    axes = [str(a) for a in some]
    return f"axis {axes[0]}" if len(axes) == 1 else f"axes {' and '.join(axes)}"


def _transposed_words(e: Evidence) -> Diagnosis:
    return Diagnosis("transposed", f"the gradient of `{e.name}` is transposed", "return its transpose, .t()")


def ignores_seed(e: Evidence) -> Diagnosis | None:
    """Not linear in grad_output: constant, shifted, or a power of it."""
    a, again = e.analytic, e.again
    if a is None or again is None or same(again, -100 * a, 1e-4):
        return None
    if same(again, a, 1e-4):
        return Diagnosis(
            "ignores_grad_output",
            f"the gradient of `{e.name}` ignores grad_output (it is the same for every one)",
            "multiply by grad_output",
        )
    if e.nothing is not None and np.any(e.nothing):
        values = np.unique(np.round(e.nothing, 12))
        what = f"the constant {values[0]:.4g}" if values.size == 1 else "a term"
        return Diagnosis(
            "offset",
            f"the gradient of `{e.name}` is off by {what} that does not depend on grad_output",
            "leave that term out",
        )
    for change, word in (
        (np.abs, "|grad_output|"),
        (np.square, "grad_output ** 2"),
        (np.sign, "the sign of grad_output"),
    ):
        if same(a, e.weighed(change)):
            return Diagnosis(
                "nonlinear",
                f"the gradient of `{e.name}` uses {word} instead of grad_output",
                "backward must be linear in grad_output",
            )
    top = np.abs(a).max()
    if np.sum(np.abs(np.abs(a) - top) < 1e-9 * top) > 1 and same(a, np.clip(e.numeric, -top, top)):
        return Diagnosis(
            "nonlinear",
            f"the gradient of `{e.name}` is clipped at {top:.4g}",
            "clip gradients in the training loop, not in the rule",
        )
    bounds = np.unique(np.abs(e.weights))
    for bound in [*bounds, 0.1, 0.25, 0.5, 1.0]:
        if same(a, e.weighed(lambda s, b=bound: np.clip(s, -b, b))):
            return Diagnosis(
                "nonlinear",
                f"the gradient of `{e.name}` clips grad_output",
                "clip gradients in the training loop, not in the rule",
            )
    return Diagnosis("nonlinear", f"the gradient of `{e.name}` is not linear in grad_output",
                     "multiply grad_output by the derivative, and do nothing else to it")  # fmt: skip


def repaired(e: Evidence) -> Diagnosis | None:
    """Run backward again with what it saved exchanged: a repair that works is the diagnosis."""
    for diagnosis, gradient in e.repairs:
        if same(gradient(), e.numeric):
            return diagnosis
    return None


def rearranged(e: Evidence) -> Diagnosis | None:
    """The right values in the wrong places: axes exchanged, reversed or rolled, in the gradient or in grad_output."""
    if e.analytic is None:
        return None
    for words, kind, repair, change in _moves(e.x.ndim):
        if same(change(e.analytic), e.numeric):
            return Diagnosis(kind, f"the gradient of `{e.name}` is {words}", repair)
    for words, kind, _, change in _moves(max(map(len, e.shapes), default=0)):
        if same(e.analytic, guarded(e, change)):
            return Diagnosis(
                kind,
                f"the gradient of `{e.name}` uses grad_output {words}",
                "use grad_output as it comes, or transform it the same way as forward",
            )
    return None


def guarded(e: Evidence, change: Callable[[Array], Array]) -> Array | None:
    try:
        return e.weighed(change)
    except (ValueError, IndexError):  # one of several outputs has no such axis
        return None


def _moves(ndim: int) -> Iterator[tuple[str, str, str, Callable[[Array], Array]]]:
    for order in itertools.permutations(range(ndim)) if 1 < ndim <= 4 else ():
        if order != tuple(range(ndim)):
            words = "transposed" if ndim == 2 else f"permuted, axes {list(order)}"
            yield (
                words,
                "transposed",
                "return its transpose, .t()" if ndim == 2 else "permute it back",
                lambda a, o=order: a.transpose(o),
            )
    for axis in range(ndim):
        yield f"reversed along axis {axis}", "reversed", f"flip it along axis {axis}", lambda a, i=axis: np.flip(a, i)
    for axis in range(ndim):
        for by in (-1, 1, -2, 2):
            yield (f"shifted by {abs(by)} along axis {axis}", "rolled", "look for an index that is off by one",
                   lambda a, i=axis, b=by: np.roll(a, b, i))  # fmt: skip


def reduced(e: Evidence) -> Diagnosis | None:
    """Summed, averaged or cut along an axis that the input has; or only a part of grad_output taken."""
    a, g = e.analytic, e.numeric
    if a is None:
        return None
    for axis in range(g.ndim):
        if g.shape[axis] < 2:
            continue
        for how, word in ((np.sum, "summed"), (np.mean, "averaged")):
            if same(a, np.broadcast_to(how(g, axis=axis, keepdims=True), g.shape)):
                return Diagnosis(
                    "wrong_axis",
                    f"the gradient of `{e.name}` is {word} over axis {axis}, which the input has",
                    "reduce over the axes of the broadcast only",
                )
    for axis in range(max(map(len, e.shapes), default=0)):
        for end, word in ((0, "first"), (-1, "last")):
            if same(a, guarded(e, lambda s, i=axis, n=end: _only(s, i, n))):
                return Diagnosis(
                    "missing_sum",
                    f"the gradient of `{e.name}` is missing the sum over axis {axis} of grad_output: only the {word} "
                    "element is used",
                    f"sum over axis {axis}",
                )
    return None


def _only(s: Array, axis: int, end: int) -> Array:
    if s.ndim <= axis or s.shape[axis] < 2:
        raise IndexError
    kept = np.zeros_like(s)
    index = [slice(None)] * s.ndim
    index[axis] = slice(0, 1) if end == 0 else slice(-1, None)
    kept[tuple(index)] = s[tuple(index)]
    return kept


def outputs(e: Evidence) -> Diagnosis | None:
    parts = e.seeds(e.weights)
    if len(parts) < 2:
        return None
    for j in range(len(parts)):
        left = np.concatenate([(np.zeros_like(p) if i == j else p).reshape(-1) for i, p in enumerate(parts)])
        if same(e.analytic, e.column.gradient(left)):
            return Diagnosis(
                "output_ignored",
                f"the gradient of `{e.name}` ignores the gradient of output {j}",
                f"add the term of grad_outputs[{j}]",
            )
    for i, j in itertools.combinations(range(len(parts)), 2):
        if parts[i].shape == parts[j].shape:
            order = [parts[j if k == i else i if k == j else k] for k in range(len(parts))]
            if same(e.analytic, e.column.gradient(np.concatenate([p.reshape(-1) for p in order]))):
                return Diagnosis(
                    "swapped",
                    f"the gradient of `{e.name}` uses the gradients of outputs {i} and {j} swapped",
                    "take grad_outputs in the order of the outputs",
                )
    return None
