"""Complex numbers seen as pairs of real ones, and pairs as complex numbers, in the same memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.arrays.protocol import Array, Layer
from genesis.arrays.spec import Spec, strides_of
from genesis.arrays.stored import stored
from genesis.base import dtypes
from genesis.base.errors import DTypeError, ShapeError, message
from genesis.core.call.kinds import as_it_is, case, view
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.graph.tensor import Tensor


def _complex_needed(input: Tensor) -> tuple[Any, ...]:
    if not input.is_complex():
        raise DTypeError(message("view_as_real", f"the tensor must be complex, it is {input.dtype}"))
    return (input,)


def _pairs_needed(input: Tensor) -> tuple[Any, ...]:
    kind = input._array.dtype
    if kind not in (np.float16, np.float32, np.float64):
        raise DTypeError(
            message("view_as_complex", f"the tensor must be float32, float64 or float16, it is {input.dtype}")
        )
    if not input.ndim or input.shape[-1] != 2:
        raise ShapeError(message("view_as_complex", f"the last dimension must have size 2, shape {list(input.shape)}"))
    steps = input.stride()
    # many samples at once are copied
    if not isinstance(input._array, Layer) and input.numel() and (steps[-1] != 1 or any(s % 2 for s in steps[:-1])):
        raise ShapeError(
            message("view_as_complex", f"the pairs must lie together in memory, strides {steps}", hint="x.contiguous()")
        )
    return (input,)


@view(
    {"input": lambda g: view_as_complex(g.contiguous())},
    prepare=_complex_needed,
    infer=lambda input: Spec((*input.shape, 2), dtypes.from_numpy(input.dtype).to_real().np, input.device),
    strides=lambda input: (*[2 * s for s in strides_of(input)], 1),
    put=lambda whole, part: view_as_complex(part.contiguous()),
    batch=as_it_is,
    dtypes="c",
    holomorphic=False,
    method=False,
)
def view_as_real(input: Array) -> Any:
    """The real and imaginary parts of complex numbers in a last dimension of size 2; a view.

    Raises:
        RuntimeError: the tensor is not complex

    >>> import genesis
    >>> genesis.view_as_real(genesis.tensor([1 + 2j]))
    tensor([[1., 2.]])
    """
    return input[..., None].view(input.real.dtype)


samples(view_as_real, lambda t: [case(t(2, 3)), case(t()), case(t(0, 2))])

wrong_inputs(view_as_real, (lambda t: case(t.int(3)), RuntimeError, "view_as_real: the tensor must be complex"))


def _of_pairs(dtype: Any) -> Any:
    return dtypes.complex32.np if dtype == np.float16 else np.result_type(dtype, np.complex64)


@view(
    {"input": lambda g: view_as_real(g)},
    prepare=_pairs_needed,
    infer=lambda input: Spec(input.shape[:-1], _of_pairs(input.dtype), input.device),
    strides=lambda input: tuple(s // 2 for s in strides_of(input)[:-1]),
    put=lambda whole, part: view_as_real(part),
    batch=lambda b, x: b.run(x.contiguous()),
    dtypes="f",
    holomorphic=False,
    method=False,
)
def view_as_complex(input: Array) -> Any:
    """Pairs in the last dimension as complex numbers; a view.

    Raises:
        RuntimeError: another dtype than float16, float32 and float64, a last dimension that has not size 2, or pairs that do not
            lie together in memory

    >>> import genesis
    >>> genesis.view_as_complex(genesis.tensor([[1., 2.]]))
    tensor([1.+2.j])
    """
    return stored(input.view(_of_pairs(input.dtype))[..., 0])


def _not_halves(x: Tensor) -> Tensor:
    return x if x._array.dtype.itemsize > 2 else x.detach().float()  # type: ignore[attr-defined, no-any-return]


samples(view_as_complex, lambda t: [case(_not_halves(t(3, 2))), case(_not_halves(t(2)))])

wrong_inputs(
    view_as_complex,
    (lambda t: case(t(3, 3)), RuntimeError, "view_as_complex: the last dimension must have size 2, shape [3, 3]"),
)

__all__ = ["view_as_complex", "view_as_real"]
