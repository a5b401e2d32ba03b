"""What is wrong with a gradient, in words: compare it with the numerical one and name the repair.

Each hypothesis is a function of the `Evidence` that returns a `Diagnosis` or None. They are tried from the one that
explains most to the one that explains least; the first that fits *exactly* (to 1e-3, what differences of float32 code
give) is said. A hypothesis about what backward saved is proved: it is run again with the repair made.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from genesis.autograd.checking.differences import Array
from genesis.autograd.checking.evidence import (
    Diagnosis,
    Evidence,
    factor_words,
    index_words,
    ratio,
    region_words,
    same,
    wrong_elements,
)


def diagnose(e: Evidence) -> Diagnosis:
    """The first hypothesis that fits."""
    for hypothesis in HYPOTHESES:
        found = hypothesis(e)
        if found is not None:
            return found
    return _unexplained(e)


def _missing(e: Evidence) -> Diagnosis | None:
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


def _misplaced(e: Evidence) -> Diagnosis | None:
    got = e.analytic if e.analytic is not None else e.returned
    for j, (name, _, numeric) in enumerate(e.inputs):
        if j != e.place and same(got, numeric) and not same(got, e.numeric):
            return Diagnosis(
                "swapped",
                f"the gradients of `{e.name}` and `{name}` are swapped: the gradient of `{name}` is returned in the "
                f"place of `{e.name}`",
                "return one gradient for each parameter of forward, in its order",
            )
    return None


def _wrong_shape(e: Evidence) -> Diagnosis | None:
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
    places = [str(a) for a in some]
    return f"axis {places[0]}" if len(places) == 1 else f"axes {' and '.join(places)}"


def _transposed_words(e: Evidence) -> Diagnosis:
    return Diagnosis("transposed", f"the gradient of `{e.name}` is transposed", "return its transpose, .t()")


def _ignores_seed(e: Evidence) -> Diagnosis | None:
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


def _repaired(e: Evidence) -> Diagnosis | None:
    """Run backward again with what it saved exchanged: a repair that works is the diagnosis."""
    for found, gradient in e.repairs:
        if same(gradient(), e.numeric):
            return found
    return None


def _factor(e: Evidence) -> Diagnosis | None:
    c = ratio(e.analytic, e.numeric)
    if c is None:
        return None
    words, kind, repair = factor_words(c, e.x.shape, e.shapes)
    return Diagnosis(kind, f"the gradient of `{e.name}` {words}", repair)


def _rearranged(e: Evidence) -> Diagnosis | None:
    """The right values in the wrong places: axes exchanged, reversed or rolled, in the gradient or in grad_output."""
    if e.analytic is None:
        return None
    for words, kind, repair, change in _moves(e.x.ndim):
        if same(change(e.analytic), e.numeric):
            return Diagnosis(kind, f"the gradient of `{e.name}` is {words}", repair)
    for words, kind, _, change in _moves(max(map(len, e.shapes), default=0)):
        if same(e.analytic, _guarded(e, change)):
            return Diagnosis(
                kind,
                f"the gradient of `{e.name}` uses grad_output {words}",
                "use grad_output as it comes, or transform it the same way as forward",
            )
    return None


def _guarded(e: Evidence, change: Callable[[Array], Array]) -> Array | None:
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


def _reduced(e: Evidence) -> Diagnosis | None:
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
            if same(a, _guarded(e, lambda s, i=axis, n=end: _only(s, i, n))):
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


def _outputs(e: Evidence) -> Diagnosis | None:
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


def _conjugate(e: Evidence) -> Diagnosis | None:
    if e.analytic is None or e.numeric.dtype.kind != "c":
        return None
    if same(e.analytic.conj(), e.numeric) or same(e.analytic, _guarded(e, np.conj)):
        return Diagnosis(
            "conjugate",
            f"the gradient of `{e.name}` is missing a conjugate",
            "multiply grad_output by the conjugate of the derivative, .conj()",
        )
    for name, v, _ in e.inputs:  # a product of several factors, one of them not conjugated
        if v.dtype.kind == "c" and same(e.analytic / v * v.conj(), e.numeric):
            return Diagnosis(
                "conjugate", f"the gradient of `{e.name}` is missing a conjugate: of `{name}`", f"use {name}.conj()"
            )
    c = (e.analytic * e.numeric.conj()).sum() / max(float((abs(e.numeric) ** 2).sum()), 1e-300)
    if np.isfinite(c) and abs(c) > 1e-12 and same(e.analytic, c * e.numeric):
        if abs(c.imag) < 1e-6:
            words, kind, repair = factor_words(float(c.real), e.x.shape, e.shapes)
            return Diagnosis(kind, f"the gradient of `{e.name}` {words}", repair)
        return Diagnosis(
            "factor", f"the gradient of `{e.name}` is off by the complex factor {c:.4g}", "look at the conjugates"
        )
    return None


def _unchanged(e: Evidence) -> Diagnosis | None:
    """grad_output handed on without the derivative."""
    for s in e.seeds(e.weights):
        forms = [s.reshape(e.x.shape)] if s.size == e.x.size else []
        with suppress(ValueError):  # grad_output need not fit
            forms.append(np.broadcast_to(s, e.x.shape))
        if any(same(e.analytic, f) for f in forms):
            factor = _explained(e, forms[0])
            more = f", which is {factor}," if factor else ""
            return Diagnosis(
                "chain",
                f"the gradient of `{e.name}` is grad_output unchanged: the factor f'({e.name}){more} is missing",
                "multiply grad_output by the derivative",
            )
    return None


def _explained(e: Evidence, a: Array) -> str | None:
    """The expression of inputs and outputs that turns ``a`` into the numerical gradient by multiplication."""
    candidates = [(f"`{name}`", v) for name, v, _ in e.inputs]
    candidates += [("the output" if len(e.outs) == 1 else f"output {i}", y) for i, y in enumerate(e.outs)]
    for name, v in candidates:
        with np.errstate(all="ignore"):
            forms = [
                (name, v),
                (f"1 / {name}", 1 / v),
                (f"1 - {name}", 1 - v),
                (f"{name} ** 2", v * v),
                (f"1 / {name} ** 2", 1 / v**2),
                (f"1 - {name} ** 2", 1 - v * v),
                (f"{name} * (1 - {name})", v * (1 - v)),
                (f"cos({name})", np.cos(v)),
                (f"exp({name})", np.exp(v)),
            ]
            for words, factor in forms:
                for c, front in ((1, ""), (-1, "-"), (2, "2 "), (0.5, "1/2 ")):
                    try:
                        if same(a * factor * c, e.numeric):
                            return front + words
                    except ValueError:
                        break
    return None


def _lost_factor(e: Evidence) -> Diagnosis | None:
    factor = _explained(e, e.analytic) if e.analytic is not None else None
    if factor is None:
        return None
    return Diagnosis(
        "missing_factor", f"the gradient of `{e.name}` is missing the factor {factor}", f"multiply it by {factor}"
    )


def _plain_region(e: Evidence) -> Diagnosis | None:
    """Zero, or wrong by one factor, where the input meets a condition."""
    found = _region(e)
    return found if found is not None and found.kind == "region" and "there)" in found.words else None


def _region(e: Evidence) -> Diagnosis | None:
    """Right in one part of the input and wrong in another: say which part, and what is there."""
    a, g = e.analytic, e.numeric
    if a is None:
        return None
    wrong = wrong_elements(a, g)
    known = ~np.isnan(g) & ((np.abs(g) > 1e-9 * np.nanmax(np.abs(g), initial=0.0)) | wrong)
    if not wrong.any() or wrong.sum() == known.sum():
        return None
    where = index_words(wrong, known)
    if e.x.dtype.kind != "c":
        where = region_words(e.name, e.x[known], wrong[known]) or where
    inside, repair = _inside(a[wrong], g[wrong]), "look at the condition in backward: it must be the one of forward"
    if where is None:
        return Diagnosis(
            "some", f"the gradient of `{e.name}` is wrong at {wrong.sum()} of {known.sum()} elements{inside}", repair
        )
    return Diagnosis("region", f"the gradient of `{e.name}` is wrong only {where}{inside}", repair)


def _inside(a: Array, g: Array) -> str:
    """What the gradient is in the part where it is wrong."""
    if not np.any(a):
        return " (it is zero there)"
    c = ratio(a, g) if a.size > 1 else float((a / g).real[0]) if a.dtype.kind != "c" and g[0] else None
    return f" (it {factor_words(c, (), [])[0]} there)" if c else ""


def _term(e: Evidence) -> Diagnosis | None:
    """What is missing is the same all along an axis, as the term of a mean or of a normalisation is."""
    if e.analytic is None:
        return None
    d = e.numeric - e.analytic
    top = np.nanmax(np.abs(d), initial=0.0)
    for axis in range(d.ndim):
        if d.shape[axis] > 1 and np.allclose(d, d.mean(axis=axis, keepdims=True), 1e-4, 1e-4 * top):
            return Diagnosis(
                "missing_term",
                f"the gradient of `{e.name}` is missing a term that is constant along axis {axis}",
                f"subtract the mean (or add the sum) over axis {axis}",
            )
    for i, y in enumerate(e.outs):
        if y.shape == d.shape:
            with np.errstate(all="ignore"):
                r = d / y
            for axis in range(d.ndim):
                if d.shape[axis] > 1 and np.allclose(r, r.mean(axis=axis, keepdims=True), 1e-4, 1e-9):
                    return Diagnosis(
                        "missing_term",
                        f"the gradient of `{e.name}` is missing a term: output {i} times a sum over axis {axis}",
                        f"subtract y * (g * y).sum({axis})",
                    )
    return None


def _unexplained(e: Evidence) -> Diagnosis:
    a, g = e.analytic, e.numeric
    if a is None:
        return Diagnosis("error", f"the gradient of `{e.name}` could not be computed", "see the error of backward")
    wrong = wrong_elements(a, g)
    with np.errstate(all="ignore"):
        d = np.where(np.isnan(g), 0, np.abs(a - g))
    worst = np.unravel_index(int(np.argmax(d)), d.shape) if d.size else ()
    place = list(map(int, worst))
    if np.isnan(a).any():
        return Diagnosis(
            "nan",
            f"the gradient of `{e.name}` is nan at {int(np.isnan(a).sum())} elements",
            "look for 0/0 or inf - inf in backward",
        )
    return Diagnosis(
        "unknown",
        f"the gradient of `{e.name}` is wrong at {int(wrong.sum())} of {int((~np.isnan(g)).sum())} elements, "
        f"most at {place}: backward gives {a[worst]:.6g}, differences {g[worst]:.6g}",
        f"check the rule of `{e.name}`",
    )


def _spurious(e: Evidence) -> Diagnosis | None:
    if e.analytic is None or np.nanmax(np.abs(e.numeric), initial=0.0) > 1e-9 or not np.any(np.abs(e.analytic) > 1e-9):
        return None
    return Diagnosis(
        "spurious",
        f"the gradient of `{e.name}` is not zero, but the outputs do not depend on it",
        "return None or zeros for it",
    )


HYPOTHESES: list[Callable[[Evidence], Diagnosis | None]] = [
    _spurious,
    _missing,
    _misplaced,
    _wrong_shape,
    _ignores_seed,
    _conjugate,
    _unchanged,
    _outputs,
    _reduced,
    _plain_region,
    _repaired,
    _factor,
    _rearranged,
    _lost_factor,
    _region,
    _term,
]
