"""The dtypes in which elementwise ops compute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.base import dtypes
from genesis.base.quiet import unnamed
from genesis.core.call.halves import F32, HALVES
from genesis.core.call.op import Op


@unnamed
def cast_operand(x: Any, dtype: Any) -> Any:
    """An operand in the dtype of the computation; Python integers wrap around as they do in C."""
    if dtype is None or x is None:
        return x
    if isinstance(x, np.ndarray):
        return x.astype(dtype, copy=False)
    if dtype.kind in "iub" and isinstance(x, int):
        return np.array(x, dtype=np.int64 if -(2**63) <= x < 2**63 else np.uint64).astype(dtype)
    return np.array(x).astype(dtype)


def compute_dtypes(op: Op, operands: Sequence[Any]) -> Sequence[Any]:
    """The dtype each operand is computed in: the promoted one, float32 for the 16-bit floats."""
    if callable(op.result):
        return op.result(operands, "compute")  # type: ignore[no-any-return]
    if op.result == "bool" and _mixed_integers(operands):
        return [_compared_dtype(operands)] * len(operands)
    dtype = dtypes.result_np_dtype([x for x in operands if x is not None])
    if op.result == "float" and dtype.kind in "biu":
        dtype = dtypes.as_np(dtypes.get_default_dtype())
    if dtype in HALVES:
        dtype = F32
    return [dtype] * len(operands)


def _mixed_integers(operands: Sequence[Any]) -> bool:
    """Integer tensors of several dtypes, or with a number that their dtype does not hold."""
    kinds = {x.dtype for x in operands if hasattr(x, "dtype")}
    if not all([kind.kind in "biu" for kind in kinds]):
        return False
    return len(kinds) > 1 or any([x.__class__ is int and not _holds(kind, x) for x in operands for kind in kinds])


def _holds(kind: Any, number: int) -> bool:
    return kind.kind == "b" or np.iinfo(kind).min <= number <= np.iinfo(kind).max


def _compared_dtype(operands: Sequence[Any]) -> Any:
    """Integers are compared exactly: in the dtype that all tensors promote to, 0-d ones too, whose values PyTorch
    wraps into the dtype of the others. None for uint64 with signed integers and for numbers out of range, which NumPy
    compares as they are.
    """
    kinds = [dtypes.from_numpy(x.dtype) for x in operands if hasattr(x, "dtype")]
    if len(kinds) == 1 or (dtypes.uint64 in kinds and any([k.category == 1 and k.is_signed for k in kinds])):
        return None
    return dtypes.result_np_dtype([np.empty(1, k.np) for k in kinds] + [x for x in operands if not hasattr(x, "dtype")])
