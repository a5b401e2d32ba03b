"""Views: addresses and strides, nothing is computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from genesis.arrays.spec import Spec, contiguous_strides
from genesis.core.call.op import Op
from genesis.cuda.arrays import MEMORY, CudaArray
from genesis.cuda.kernels.signatures import alike, remember
from genesis.jit.storage import seen_at


def view_of(op: Op) -> Callable[..., CudaArray]:
    """The kernel of an op that is a view; a reshape may have to take a copy."""
    known: dict[Any, tuple[Any, ...]] = {}  # whether it is a copy, and the offset, shape, strides and dtype

    def lying(input: CudaArray, args: tuple[Any, ...]) -> tuple[Any, ...]:
        spec = Spec(input.shape, input.dtype, input.device, input.strides)
        out = op.infer(spec, *args)  # type: ignore[misc]
        shape, seen = tuple(out.shape), seen_at(op, args, spec, input.strides)
        if seen is None:
            return True, 0, shape, contiguous_strides(shape), out.dtype
        return False, seen[0], shape, seen[1], out.dtype

    def view(input: CudaArray, *args: Any) -> CudaArray:
        key = alike((input, *args))
        seen = known.get(key)
        if seen is None:
            seen = remember(known, key, lying(input, args))
        copied, offset, shape, strides, dtype = seen
        return (MEMORY.copy(input) if copied else input).seen(offset, shape, strides, dtype)

    return view
