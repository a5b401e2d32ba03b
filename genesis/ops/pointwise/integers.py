"""Common divisors and multiples of integers; floats taken apart into mantissa and exponent."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from genesis.base.library import named_result
from genesis.base import dtypes
from genesis.arrays.protocol import Array
from genesis.arrays.spec import Spec
from genesis.base.errors import ArgumentError, DTypeError, message
from genesis.core.call.kinds import as_it_is, broadcast, case, composite, primitive
from genesis.core.call.kinds.elementwise import aligned
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.strides import strides_of_operands
from genesis.core.graph.tensor import Tensor
from genesis.ops.reductions.along import widened
from genesis.ops.creation.outside import as_tensor
from genesis.ops.pointwise.arithmetic import ldexp


def _together(name: str) -> Any:
    """Two integer tensors of one dtype; a number is one of the other's."""

    def prepare(input: Any, other: Any) -> tuple[Any, ...]:
        x = as_tensor(input)
        y = as_tensor(other, device=None if isinstance(other, Tensor) else x.device)
        kind = dtypes.result_type(input, other)
        if kind.category != 1:
            raise DTypeError(message(name, f"the tensors must hold integers, they are {x.dtype} and {y.dtype}"))
        return x.to(kind), y.to(kind)

    return prepare


def _pairwise(name: str, ufunc: Any, doc: str, example: str) -> Any:
    """An op of pairs of integers. It is not of the elementwise kind: there is no expression of one element for it."""

    def meaning(input: Array, other: Array) -> Any:
        return ufunc(input, other)

    meaning.__name__ = name
    meaning.__doc__ = (
        f"{doc} of each pair of integers, after broadcasting.\n\nRaises:\n    RuntimeError: no integers, or shapes "
        f"that do not fit\n\n>>> import genesis\n>>> genesis.{name}(genesis.tensor([12, 5]), genesis.tensor([8, 10]))\n"
        f"{example}\n"
    )
    op = primitive(
        "search",
        infer=lambda input, other: Spec(broadcast(name, [input, other]), input.dtype, input.device),
        prepare=_together(name),
        batch=aligned,
        dtypes="i",
        inplace=True,
        out=True,
        strides=lambda input, other: strides_of_operands(
            [x for x in (input, other) if x.shape], Spec(broadcast(name, [input, other]), input.dtype, input.device)
        ),
    )(meaning)
    samples(op, lambda t: [case(t.int(2, 3, low=1, high=9), t.int(3, low=1, high=9)), case(t.int(2, low=1, high=9), 6)])
    wrong_inputs(op, (lambda t: case(t(2), t(2)), RuntimeError, f"{name}: the tensors must hold integers"))
    return op


gcd = _pairwise("gcd", np.gcd, "The greatest common divisor", "tensor([4, 5])")
lcm = _pairwise("lcm", np.lcm, "The least common multiple", "tensor([24, 10])")


@primitive(
    "search",
    infer=lambda input: Spec(input.shape, np.dtype(np.int32), input.device),
    batch=as_it_is,
    strides=lambda input: strides_of_operands([input], input),
    method=False,
    torch_name="",
    dtypes="f",
)
def binary_exponent(input: Array) -> Any:
    """The exponent $e$ of $x = m 2^e$ with $|m|$ in [1/2, 1), as int32; what `frexp` is made of.

    >>> import genesis
    >>> from genesis.ops.pointwise.integers import binary_exponent
    >>> binary_exponent(genesis.tensor([3., 0.25]))
    tensor([ 2, -1], dtype=genesis.int32)
    """
    return np.frexp(widened(input))[1].astype(np.int32)


samples(binary_exponent, lambda t: [case(t(2, 3)), case(t())])


@named_result
class frexp_result(NamedTuple):  # noqa: N801  # named as PyTorch names it
    mantissa: Tensor
    exponent: Tensor


@composite(dtypes="f", out=True)
def frexp(input: Tensor) -> Any:
    """Each element as $m 2^e$ with $|m|$ in [1/2, 1): the mantissa, and the exponent as int32.

    Raises:
        RuntimeError: the tensor is not floating

    >>> import genesis
    >>> genesis.frexp(genesis.tensor([3.]))
    frexp_result(mantissa=tensor([0.7500]), exponent=tensor([2], dtype=genesis.int32))
    """
    if not input.is_floating_point():
        raise ArgumentError(message("frexp", "the input must be floating", [("input", input._spec())]))
    e = binary_exponent(input)
    half = e // 2  # in two steps: 2 ** -e may be too large for the dtype
    return frexp_result(ldexp(ldexp(input, -half), half - e), e)


samples(frexp, lambda t: [case(t(2, 3, low=0.6, high=0.9)), case(t(3, low=-40.0, high=-35.0))])

wrong_inputs(frexp, (lambda t: case(t.int(3)), TypeError, "frexp: the input must be floating"))


__all__ = ["frexp", "gcd", "lcm"]
