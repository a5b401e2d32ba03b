"""Ops that work along one dim, on inputs whose dim has the largest stride, the smallest, a negative one, and a step of
2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from genesis.core.call.op import Op
from genesis.core.graph.tensor import Tensor, wrap
from genesis.testing.arguments import tensors_in
from genesis.testing.precision import ulps

SHAPE, DIM = (
    (3, 130, 4),
    1,
)  # long enough for sums by trees (`ops/reductions/along.py`), whose last rows are added in another way
BAR = 4.0  # units of the last place of float32, of the result or of 1/64 of the largest one
BARS = {"prod": 16.0, "masked_prod": 16.0}  # 129 roundings one after the other
# $x / \\sigma - \\bar x / \\sigma$: units are those of the largest result
TERMS = ("batch_norm", "group_norm", "layer_norm")
LAYOUTS: dict[str, Callable[[Any, int], Any]] = {
    "largest stride": lambda x, d: np.moveaxis(np.ascontiguousarray(np.moveaxis(x, d, 0)), 0, d),
    "smallest stride": lambda x, d: np.moveaxis(np.ascontiguousarray(np.moveaxis(x, d, -1)), -1, d),
    "negative stride": lambda x, d: np.flip(np.ascontiguousarray(np.flip(x, d)), d),
    "step of 2": lambda x, d: np.repeat(x, 2, d)[
        tuple(slice(None, None, 2) if i == d else slice(None) for i in range(x.ndim))
    ],
}
# How ops are called along a dim that do not take it by that name.
CALLS: dict[str, Callable[[Op, Tensor, int], Any]] = {
    "layer_norm": lambda op, x, d: op.call(x.movedim(d, -1), (x.shape[d],)),
    "rms_norm": lambda op, x, d: op.call(x.movedim(d, -1), (x.shape[d],)),
    "batch_norm": lambda op, x, d: op.call(x.movedim(d, 0), None, None, training=True),
    "group_norm": lambda op, x, d: op.call(x.movedim(d, 1), 2),
    "norm": lambda op, x, d: op.call(x, 2, d),
    "repeat_interleave": lambda op, x, d: op.call(x, 2, d),
}


def works_along_dim(op: Op) -> bool:
    """Whether an op has a ``dim`` and needs nothing else but its input."""
    if op.name in CALLS:
        return True
    needed = [name for name, p in op.signature.parameters.items() if p.default is p.empty and name != "dim"]
    return "f" in op.dtypes and "dim" in op.signature.parameters and needed == ["input"]


def check_strides(op: Op, layout: str) -> None:
    """In each layout the results are those of float64, contiguous, to a few units of the last place of float32.

    >>> import genesis
    >>> check_strides(genesis.cumsum.op, "largest stride")
    """
    x = np.random.Generator(np.random.Philox(5)).uniform(0.5, 2.0, SHAPE).astype(np.float32)
    bar, part = BARS.get(op.name, BAR), 1 if op.name in TERMS else 1 / 64
    for a, b in zip(_results(op, LAYOUTS[layout](x, DIM)), _results(op, x.astype(np.float64)), strict=True):
        assert a.shape == b.shape, f"{op.name}, {layout}: shape {a.shape}, expected {b.shape}"
        if a.dtype.kind != "f":
            assert np.array_equal(a, b), f"{op.name}, {layout}: {a}, expected {b}"
        elif a.size:
            away = float(ulps(a, b, np.float32, float(np.max(np.abs(b))) * part).max())
            assert away <= bar, (
                f"{op.name}, {layout}: {away:.3g} units of the last place from float64, at most {bar} are expected"
            )


def _results(op: Op, array: Any) -> list[Any]:
    x, call = wrap(array), CALLS.get(op.name)
    out = op.call(x, dim=DIM) if call is None else call(op, x, DIM)
    return [y.detach().numpy() for y in tensors_in(out)]
