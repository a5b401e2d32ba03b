"""Views: addresses and strides, nothing is computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from genesis.arrays.spec import Spec
from genesis.core.call.op import Op
from genesis.cuda.arrays import MEMORY, CudaArray
from genesis.jit.storage import seen_at


def view_of(op: Op) -> Callable[..., CudaArray]:
    """The kernel of an op that is a view; a reshape may have to take a copy."""

    def view(input: CudaArray, *args: Any) -> CudaArray:
        spec = Spec(input.shape, input.dtype, input.device, input.strides)
        out = op.infer(spec, *args)  # type: ignore[misc]
        seen = seen_at(op, args, spec, input.strides)
        if seen is None:
            return MEMORY.copy(input).seen(0, out.shape, CudaArray(input.storage, 0, out.shape, out.dtype).strides)
        return input.seen(seen[0], tuple(out.shape), seen[1], out.dtype)

    return view
