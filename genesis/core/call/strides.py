"""The strides of results without data: what a meta tensor answers to ``stride()`` and ``is_contiguous()``.

An op's block or its kind says which they are; most results are contiguous (`packed` where NumPy chooses another
order). Strides are counted in elements; None stands for contiguous.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec, contiguous_strides, strides_of
from genesis.base.narrow import restrided
from genesis.core.call.op import Op


def packed(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array, copied if it is not contiguous: for kernels whose NumPy functions choose an order of their own."""
    return array if array.flags.c_contiguous else array.copy()


def with_strides(op: Op, operands: Sequence[Any], result: Any) -> Any:
    """The spec of a result with its strides."""
    if not isinstance(result, Spec):
        return result
    return _tidy(result, op.kind.strides(op, operands, result) if op.strides is None else op.strides(*operands))


def _tidy(spec: Spec, strides: tuple[int, ...] | None) -> Spec:
    if strides is None or strides == contiguous_strides(spec.shape):
        return spec if spec.strides is None else replace(spec, strides=None)
    return replace(spec, strides=strides)


def strides_of_view(op: Op, source: Spec, *args: Any) -> tuple[int, ...] | None:
    """The strides of a view; None for a reshape that takes a copy."""
    if op.strides is not None:
        return op.strides(source, *args)  # type: ignore[no-any-return]
    size = source.dtype.itemsize
    ghost = restrided(np.empty(1, source.dtype), source.shape, [s * size for s in strides_of(source)], writeable=False)
    seen = op.kernel(ghost, *args)  # only strides are computed: the memory is not there
    return tuple(s // seen.dtype.itemsize for s in seen.strides)


def reshaped(shape: Sequence[int], strides: Sequence[int], new: Sequence[int]) -> tuple[int, ...] | None:
    """The strides of the same memory in another shape; None where that takes a copy."""
    if 0 in shape:
        return contiguous_strides(tuple(new))
    runs: list[tuple[int, int]] = []  # (elements, stride of the last) of dimensions that are one in memory
    for n, s in zip(shape, strides, strict=True):
        if n == 1:
            continue
        if runs and runs[-1][1] == n * s:
            runs[-1] = (runs[-1][0] * n, s)
        else:
            runs.append((n, s))
    steps: list[int] = []
    left, step = 1, 1
    for n in reversed(new):
        if left == 1 and n != 1:
            if not runs:
                return None
            left, step = runs.pop()
        if left % n:
            return None
        steps.append(step)
        left, step = left // n, step * n
    return tuple(reversed(steps)) if not runs and left == 1 else None


def strides_of_operands(operands: Sequence[Spec], result: Spec) -> tuple[int, ...] | None:
    """The strides that NumPy gives to a result: in the order of its operands' memory."""
    if all(x.strides is None for x in operands):
        return None
    ndim = len(result.shape)
    small = tuple(min(n, 2) for n in result.shape)
    models = []
    for x in operands:
        shape = (1,) * (ndim - len(x.shape)) + x.shape
        strides = (0,) * (ndim - len(x.shape)) + strides_of(x)
        order = [d for _, d in sorted((abs(s), -d) for d, s in enumerate(strides))]
        order = [-d for d in order]
        steps, step = [0] * ndim, 1
        for d in order:
            if strides[d] and shape[d] > 1:
                steps[d] = step
                step *= 2
        models.append(restrided(np.empty(step + 1, np.int8), [min(n, 2) for n in shape], steps, writeable=False))
    flags: Any = [*[["readonly"]] * len(models), ["writeonly", "allocate"]]
    out: Any = np.nditer([*models, None], ["zerosize_ok"], flags, [np.int8] * len(flags), itershape=small).operands[-1]
    order = sorted(range(ndim), key=lambda d: (out.strides[d], -d))
    steps, step = [0] * ndim, 1
    for d in order:
        steps[d] = step
        step *= max(result.shape[d], 1)
    return tuple(steps)
