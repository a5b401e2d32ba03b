"""Comparisons, logic and bits. None of them is differentiable; comparisons and logic give bool tensors.

Integer tensors of different dtypes are compared in the dtype that they promote to, 0-d tensors included: PyTorch wraps
the value of a 0-d tensor into the dtype of the other operand, by which ``tensor(128, dtype=int16) > tensor([0],
dtype=int8)`` would be False.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.base import dtypes
from genesis.base.errors import ArgumentError, message
from genesis.core.call.op import samples
from genesis.core.call.kinds import alias, binary, case, composite, unary
from genesis.core.call.refusal import explain_all
from genesis.core.call.inplace_methods import inplace_method, stepwise
from genesis.core.graph.tensor import Tensor

_pairs = lambda t: [case(t.int(2, 3, low=-2, high=3), t.int(3, low=-2, high=3)), case(t.int(), 1), case(t.int(0, 2), 2)]  # noqa: E731


def _compare(name: str, ufunc: Any, sign: str, example: str, operator: str, dtypes: str = "fib") -> Any:
    meaning = f"Whether $x {sign} y$."
    call = binary(name, ufunc, meaning, example, result="bool", dtypes=dtypes, operators=[operator], inplace=True)
    setattr(Tensor, f"{name}_", stepwise(call.op))  # type: ignore[attr-defined]
    return call


eq = _compare("eq", np.equal, "=", "[1., 2.], 2 -> [False,  True]", "__eq__", "fcib")
ne = _compare("ne", np.not_equal, "\\ne", "[1., 2.], 2 -> [ True, False]", "__ne__", "fcib")
lt = _compare("lt", np.less, "<", "[1., 2.], 2 -> [ True, False]", "__lt__")
le = _compare("le", np.less_equal, "\\le", "[1., 2.], 1 -> [ True, False]", "__le__")
gt = _compare("gt", np.greater, ">", "[1., 2.], 1 -> [False,  True]", "__gt__")
ge = _compare("ge", np.greater_equal, "\\ge", "[1., 2.], 2 -> [False,  True]", "__ge__")

_equality = {"__eq__": Tensor.__eq__, "__ne__": Tensor.__ne__}


def _comparable(name: str) -> Any:
    plain = _equality[name]

    def compare(self: Tensor, other: Any) -> Any:
        if other is None or isinstance(other, str):
            return NotImplemented
        return plain(self, other)

    return compare


Tensor.__eq__, Tensor.__ne__ = _comparable("__eq__"), _comparable("__ne__")  # type: ignore[method-assign, assignment]

logical_and = binary(
    "logical_and",
    np.logical_and,
    "Whether both are non-zero.",
    "[1., 0.], [2., 3.] -> [ True, False]",
    result="bool",
    inplace=True,
)
logical_or = binary(
    "logical_or",
    np.logical_or,
    "Whether one is non-zero.",
    "[1., 0.], [0., 0.] -> [ True, False]",
    result="bool",
    inplace=True,
)
logical_xor = binary(
    "logical_xor",
    np.logical_xor,
    "Whether exactly one is non-zero.",
    "[1., 0.], [2., 3.] -> [False,  True]",
    result="bool",
    inplace=True,
)
logical_not = unary(
    "logical_not", np.logical_not, "Whether an element is zero.", "[1., 0.] -> [False,  True]", result="bool"
)
Tensor.logical_not_ = inplace_method(logical_not.op)  # type: ignore[attr-defined]

bitwise_and = binary(
    "bitwise_and",
    np.bitwise_and,
    "Bits set in both; for bool, and.",
    "[6, 3], 2 -> [2, 2]",
    dtypes="ib",
    operators=["__and__"],
    reflected="__rand__",
    commutes=True,
    inplace_operator="__iand__",
    samples=_pairs,
)
bitwise_or = binary(
    "bitwise_or",
    np.bitwise_or,
    "Bits set in either; for bool, or.",
    "[4, 3], 2 -> [6, 3]",
    dtypes="ib",
    operators=["__or__"],
    reflected="__ror__",
    commutes=True,
    inplace_operator="__ior__",
    samples=_pairs,
)
bitwise_xor = binary("bitwise_xor", np.bitwise_xor, "Bits set in one of the two.", "[6, 3], 2 -> [4, 1]", dtypes="ib",
    operators=["__xor__"], reflected="__rxor__", commutes=True, inplace_operator="__ixor__", samples=_pairs)  # fmt: skip
bitwise_not = unary(
    "bitwise_not",
    np.invert,
    "All bits turned; for bool, not.",
    "[0, 1] -> [-1, -2]",
    dtypes="ib",
    operators=["__invert__"],
    samples=lambda t: [case(t.int(2, 3)), case(t.bool(3))],
)

_shifts = lambda t: [case(t.int(2, 3, low=0, high=9), t.int(3, low=0, high=4)), case(t.int(3, low=0, high=9), 2)]  # noqa: E731

bitwise_left_shift = binary(
    "bitwise_left_shift",
    np.left_shift,
    "Bits moved up, $x 2^y$.",
    "[1, 2], 2 -> [4, 8]",
    dtypes="i",
    operators=["__lshift__"],
    reflected="__rlshift__",
    inplace_operator="__ilshift__",
    samples=_shifts,
)
bitwise_right_shift = binary(
    "bitwise_right_shift",
    np.right_shift,
    "Bits moved down, $\\lfloor x / 2^y \\rfloor$.",
    "[4, 8], 2 -> [1, 2]",
    dtypes="i",
    operators=["__rshift__"],
    reflected="__rrshift__",
    inplace_operator="__irshift__",
    samples=_shifts,
)


@composite(dtypes="f")
def isclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Whether $|x - y| \\le atol + rtol |y|$; equal infinities are close, nan only with ``equal_nan``.

    >>> import genesis
    >>> genesis.isclose(genesis.tensor([1., 2.]), genesis.tensor([1., 2.1]))
    tensor([ True, False])
    """
    if not other.dtype.is_floating_point and not other.dtype.is_complex:  # differences of small integers may not fit
        other = other.to(dtypes.get_default_dtype())
        input = input.to(dtypes.promote_types(input.dtype, other.dtype))
    close: Tensor = (input == other) | (
        ((input - other).abs() <= atol + rtol * other.abs()) & other.isfinite()  # type: ignore[attr-defined, operator]
    )
    return close | (input.isnan() & other.isnan()) if equal_nan else close


samples(isclose, lambda t: [case(t(2, 3), t(2, 3))])  # type: ignore[attr-defined, operator]


def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements are close, see `isclose`.

    >>> import genesis
    >>> genesis.allclose(genesis.ones(2), genesis.ones(2) + 1e-9)
    True
    """
    return bool(isclose(input, other, rtol, atol, equal_nan).all())


def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and the same elements.

    >>> import genesis
    >>> genesis.equal(genesis.ones(2), genesis.ones(3))
    False
    """
    if not isinstance(other, Tensor):
        raise ArgumentError(message("equal", f"expected a tensor, got {type(other).__name__}"))
    return input.shape == other.shape and bool((input == other).all())


Tensor.allclose, Tensor.equal = allclose, equal  # type: ignore[attr-defined]

for _name, _call in [("greater", gt), ("greater_equal", ge), ("less", lt), ("less_equal", le), ("not_equal", ne)]:
    globals()[_name] = alias(_name, _call, inplace=True)

explain_all(globals(), "equal", "allclose")

__all__ = [
    "allclose",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "eq",
    "equal",
    "ge",
    "greater",
    "greater_equal",
    "gt",
    "isclose",
    "le",
    "less",
    "less_equal",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "lt",
    "ne",
    "not_equal",
]
