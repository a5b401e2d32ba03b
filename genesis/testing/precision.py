"""How exact is a result: errors in units of the last place, and the check that 16-bit floats are rounded once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.autograd.gradients import grad
from genesis.base import dtypes
from genesis.base.errors import GenesisError
from genesis.core.call.halves import F32, HALVES
from genesis.core.call.kinds import CONVERSION
from genesis.core.call.op import Case, Op
from genesis.core.graph.tensor import Tensor, wrap
from genesis.testing.arguments import replace, tensors_in


def ulps(actual: Any, exact: Any, dtype: Any, floor: Any = 0.0) -> Any:
    """Distances of ``actual`` from ``exact`` in units of the last place that ``dtype`` has at the exact value (at least
    at ``floor``).

    What is beyond the largest number is expected to be inf; nan equals nan, and anything else is at distance inf of
    both.

    >>> import numpy as np
    >>> ulps(np.float32(1.0000001), 1.0, np.float32)
    array(1.)
    """
    info = dtypes.finfo(dtypes.from_numpy(np.dtype(dtype)))
    a, b = (np.asarray(x, np.longdouble) for x in (actual, exact))
    with np.errstate(all="ignore"):
        size = np.maximum(np.maximum(np.abs(b), floor), info.tiny)
        unit = np.exp2(np.floor(np.log2(size))) * info.eps
        b = np.where(np.abs(b) >= info.max * (1 + info.eps / 4), np.copysign(np.inf, b), b)
        away = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b) / unit)
    return np.where(np.isnan(away), np.inf, away).astype(np.float64)


def check_halves(op: Op, sample: Case) -> None:
    """Results, gradients and second gradients of 16-bit floats are those of float32, rounded once."""
    _check(op, sample, 1.0)


def check_large_halves(op: Op, sample: Case) -> None:
    """A composite whose result fits into 16 bits computes it, whatever its intermediate values are."""
    if op.kind.composed and op.halves:
        _check(op, sample, 100.0)


# In units of the last place, beyond twice what float32 loses: half a unit is the rounding itself. Rules that read the
# result, or broadcast it, have no better than what it was rounded to, and second gradients that of first ones.
_BARS = {"result": 0.75, "gradient": 2.0, "second gradient": 4.5}
_READS_RESULT = {"result": 0.75, "gradient": 32.0, "second gradient": math.inf}

_OF_THE_FORMAT = ("nextafter",)  # has another answer in each


def _check(op: Op, sample: Case, scale: float) -> None:
    dtypes_ = {t._array.dtype for t in tensors_in((sample.args, sample.kwargs))} & set(HALVES)
    if len(dtypes_) != 1 or op.kind is CONVERSION or op.kind.views or op.name in _OF_THE_FORMAT:
        return
    (dtype,) = dtypes_
    try:
        exact = derivatives(op, sample, np.dtype(np.float64), scale)
    except GenesisError:
        if scale == 1:
            raise
        return  # arguments that may not be large
    results, plain = derivatives(op, sample, dtype, scale), derivatives(op, sample, F32, scale)
    bars = _READS_RESULT if op.node is not None and op.node.saves_out else _BARS
    for (name, a), (_, b), (_, c) in zip(results, plain, exact, strict=True):
        if a.dtype is not dtype or not a.size:
            continue
        floor = float(np.max(np.abs(c), initial=0.0, where=np.isfinite(c))) / 64
        with np.errstate(all="ignore"):
            slack = ulps(c + np.nan_to_num(2 * np.abs(b - c), posinf=0), c, dtype, floor)
        away = float(np.max(ulps(a, c, dtype, floor) - np.nan_to_num(slack, posinf=0)))
        assert away <= bars[name], (
            f"{op.name} {dtype}: the {name} is {away:.3g} units of the last place from float64, at most {bars[name]} "
            "are expected"
        )


def derivatives(op: Op, sample: Case, to: Any, scale: float = 1.0) -> list[tuple[str, Any]]:
    """The floating results of a sample computed in a dtype, the gradients of its inputs and those of the gradients, as
    arrays.
    """

    def moved(t: Tensor) -> Tensor:
        array = t.detach()._array
        if array.dtype.kind in "biuc":
            return t.detach()
        return wrap(np.array((array.astype(np.float64) * scale).astype(array.dtype).astype(to))).requires_grad_()

    args, kwargs = replace(tuple(sample.args), moved), replace(dict(sample.kwargs), moved)
    inputs = [t for t in tensors_in((args, kwargs)) if t.requires_grad]
    outs = [y for y in tensors_in(op.call(*args, **kwargs)) if y.is_floating_point()]
    results = [("result", y) for y in outs]
    rng = np.random.Generator(np.random.Philox(11))
    for name in ("gradient", "second gradient"):
        outs = [y for y in outs if y.requires_grad]
        if not outs or not inputs:
            break
        seeds = [wrap(_both(rng, y.shape).astype(y._array.dtype)) for y in outs]
        first = name == "gradient"
        plain = grad(outs, inputs, seeds, retain_graph=True, allow_unused=True) if first else ()
        gradients = grad(outs, inputs, seeds, create_graph=first, allow_unused=True)
        if first:
            _check_reached(op, gradients, plain)
        outs = [g for g in gradients if g is not None]
        results += [(name, g) for g in outs]
    return [(name, y.detach()._array) for name, y in results]


def _check_reached(op: Op, recorded: Sequence[Tensor | None], plain: Sequence[Tensor | None]) -> None:
    """A backward that nothing is recorded of reaches the same inputs."""
    missing = [i for i, (a, b) in enumerate(zip(recorded, plain, strict=True)) if (a is None) != (b is None)]
    assert not missing, f"{op.name}: inputs {missing} have a gradient only with create_graph, or only without"


def _both(rng: Any, shape: Any) -> Any:
    """Numbers that both 16-bit formats have."""
    return np.asarray(rng.integers(64, 128, tuple(shape)) * rng.choice([-1.0, 1.0], tuple(shape)) / 64)
