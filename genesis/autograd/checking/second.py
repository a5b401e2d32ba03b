"""Second order: differences of a rule's gradients against backward of its backward."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from genesis.autograd.checking.calls import Run, held_tensors, refusal
from genesis.autograd.checking.diagnose import diagnose
from genesis.autograd.checking.differences import Array, column, inner, slope
from genesis.autograd.checking.evidence import Evidence
from genesis.autograd.checking.report import Row, failed, passed, skipped
from genesis.autograd.checking.trial import Trial
from genesis.autograd.gradients import grad
from genesis.base.errors import GenesisError
from genesis.core.graph.tensor import Tensor, wrap


def check_second_order(trial: Trial) -> Iterator[Row]:
    """Differences of the gradients against backward of backward; a rule may refuse, not be wrong."""
    name = "second order"
    if trial.wrong or trial.base.error is not None:
        yield skipped(name, "the gradient is wrong already")
        return
    run = trial.run(trial.arrays)
    seeds = [wrap(np.asarray(s, y._array.dtype)).requires_grad_() for s, y in zip(trial.seeds(), run.outs, strict=True)]
    try:
        first = run.grads(seeds, create_graph=True)
        weights = [None if g is None else trial.direction(g.detach().numpy_view()) for g in first]
        second = _second(run, seeds, first, weights)
    except (GenesisError, NotImplementedError) as error:
        yield skipped(name, f"refuses: {refusal(error)}")
        return
    except Exception as error:  # a rule can fail in any way
        yield failed(
            name,
            "second_order",
            f"backward fails when it is recorded: {refusal(error)}",
            "write backward in Genesis operations",
        )
        return
    if all(w is None for w in weights):
        yield passed(name)
        return
    flat = np.concatenate([w.reshape(-1) for w in weights if w is not None])
    point = [*trial.arrays, *(s.detach().numpy_view() for s in seeds)]
    count = len(trial.names)

    def slopes(arrays: Any) -> Array:
        gs = trial.run(arrays[:count]).grads(arrays[count:])
        return np.concatenate([g.reshape(-1).astype(flat.dtype) for g in gs if g is not None])

    for k in range(len(point)):
        if (k < count or trial.live[k - count]) and not _second_agrees(trial, point, k, slopes, flat, second[k]):
            yield _second_words(trial, name, point, k, slopes, flat, second[k], run, first)
            return
    yield passed(name)


def _second(run: Run, seeds: list[Tensor], first: list[Any], weights: list[Any]) -> list[Array]:
    """The gradients of the weighted gradients: of the inputs, then of the grad_outputs."""
    pairs = [
        (g, wrap(np.asarray(w, g._array.dtype)))
        for g, w in zip(first, weights, strict=True)
        if g is not None and g.requires_grad
    ]
    sources = [*run.inputs, *seeds]
    zeros = [np.zeros(x.shape, x._array.dtype) for x in sources]
    if not pairs:
        return zeros
    gradients = grad([g for g, _ in pairs], sources, [w for _, w in pairs], allow_unused=True)
    return [z if g is None else g.detach().numpy_view() for g, z in zip(gradients, zeros, strict=True)]


def _second_agrees(
    trial: Trial, point: list[Array], k: int, slopes: Callable[[Any], Array], flat: Array, second: Array
) -> bool:
    for _ in range(2):
        d = trial.direction(point[k])
        moved = lambda s, d=d: [x + s * d if j == k else x for j, x in enumerate(point)]  # noqa: E731
        numeric, error = slope(lambda s, m=moved: float(inner(flat, slopes(m(s)))), trial.precision)
        terms = np.conj(d) * second
        size = float(np.sqrt((np.abs(terms) ** 2).sum()))
        tolerance = 10 * trial.precision.rtol * max(size, abs(numeric)) + min(error, 0.01 * abs(numeric) + 1e-6) + 1e-8
        if np.isfinite(numeric) and not abs(float(terms.sum().real) - numeric) <= tolerance:
            return False
    return True


def _second_words(
    trial: Trial,
    name: str,
    point: list[Array],
    k: int,
    slopes: Callable[[Any], Array],
    flat: Array,
    second: Array,
    run: Run,
    first: list[Any],
) -> Row:
    title = f"`{trial.names[k]}`" if k < len(trial.names) else "grad_output"
    what = f"the second derivative with respect to {title}"
    if not any(g is not None and g.requires_grad for g in first):
        return failed(name, "second_order", f"{what} is silently zero: backward leaves no graph",
                      "write backward in Genesis operations on saved tensors, or refuse second order")  # fmt: skip
    known = [x._array for x in (*run.passed, *run.outs)]
    strangers = [
        i
        for node in run.nodes()
        for i, t in enumerate(_saved(node))
        if not any(np.shares_memory(t._array, a) for a in known if a.size)
    ]
    if strangers:
        return failed(
            name,
            "second_order",
            f"{what} is wrong: saved tensor {strangers[0]} is an intermediate, a constant to the second derivative",
            "save inputs or outputs only and compute it again, or return it as an output",
        )
    words = f"{what} is silently zero"
    if np.any(second):
        col = column(slopes, point, k, trial.precision, 64)
        d = diagnose(
            Evidence(title.strip("`"), point[k], col.gradient(flat), second, None, col, flat, [(flat.size,)], [], [])
        )
        words = "in the second derivative, " + d.words
    return failed(
        name, "second_order", words, "write backward in operations that are recorded: no detach, no NumPy, no .data"
    )


def _saved(node: Any) -> list[Any]:
    return [t for t in held_tensors(node) if t._array.size and t._array.dtype.kind in "fc"]
