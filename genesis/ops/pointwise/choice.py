"""Choosing between elements: the larger, the smaller, one of two by a condition."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from genesis.arrays.protocol import Array
from genesis.base import dtypes
from genesis.base.errors import ArgumentValueError, DTypeError, message
from genesis.base.quiet import unnamed
from genesis.core.call.out import write_out
from genesis.core.call.recording import record_elementwise
from genesis.core.call.kinds import alias, binary, case, composite, elementwise
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.graph.site import user_level
from genesis.core.graph.switches import ACTIVE, LEVELS
from genesis.core.graph.tensor import Tensor, wrap


_INTEGERS = {np.dtype(np.float32): np.dtype(np.int32), np.dtype(np.float64): np.dtype(np.int64)}


@unnamed
def _gate(x: Any, y: Any) -> Any:
    """As integers, bits times 0 or 1, x is kept or not whatever it is; `np.where` takes eight times as long."""
    integers = _INTEGERS.get(x.dtype)
    if integers is None:
        return np.where(np.not_equal(y, 0), x, x.dtype.type(0))
    return np.multiply(x.view(integers), np.not_equal(y, 0)).view(x.dtype)


gate = binary(
    "gate",
    lambda x, y: np.where(np.not_equal(y, 0), x, 0),
    "$x$ where $y$ is not zero, zero elsewhere, whatever $x$ is there; the gradient of `relu` and of choices.",
    "[5., float('inf')], [1., 0.] -> [5., 0.]",
    vjp=(lambda g, other: gate(g, other), None),
    dtypes="f",
    torch_name="",
    inplace=False,
    path="ops.pointwise.choice.gate",
    kernel=_gate,
    halves="exact",
)


def _kept(g: Any, condition: Any) -> Any:
    """A gradient where a condition holds; an infinite one is no nan elsewhere."""
    return gate(g, condition.to(g.dtype))


def nothing(g: Any) -> Any:
    """The gradient of what is constant in pieces; an infinite one times zero were nan."""
    return g.new_zeros(g.shape)


def _shared(lost: Any, g: Any, mine: Any, theirs: Any) -> Any:
    """The gradient of an operand, half of it where both are equal, and none where it lost."""
    share = where(mine == theirs, 0.5, (~lost).to(g.dtype))
    return gate(g * share, share)


maximum = binary(
    "maximum",
    np.maximum,
    "The larger of two, nan if either is.",
    "[1., 5.], [3., 2.] -> [3., 5.]",
    vjp=(
        lambda g, input, other: _shared(input < other, g, input, other),
        lambda g, input, other: _shared(other < input, g, input, other),
    ),
    dtypes="fib",
)

minimum = binary(
    "minimum",
    np.minimum,
    "The smaller of two, nan if either is.",
    "[1., 5.], [3., 2.] -> [1., 2.]",
    vjp=(
        lambda g, input, other: _shared(input > other, g, input, other),
        lambda g, input, other: _shared(other > input, g, input, other),
    ),
    dtypes="fib",
)

fmax = binary("fmax", np.fmax, "The larger of two, ignoring nan.", "[1., 5.], [3., 2.] -> [3., 5.]", dtypes="fib",
    vjp=(lambda g, input, other: _kept(g, (input >= other) | (other != other)),
         lambda g, input, other: _kept(g, ~((input >= other) | (other != other)))))  # fmt: skip

fmin = binary("fmin", np.fmin, "The smaller of two, ignoring nan.", "[1., 5.], [3., 2.] -> [1., 2.]", dtypes="fib",
    vjp=(lambda g, input, other: _kept(g, (input <= other) | (other != other)),
         lambda g, input, other: _kept(g, ~((input <= other) | (other != other)))))  # fmt: skip


def _where_dtypes(operands: Any, want: str) -> Any:
    dtype = dtypes.result_np_dtype(operands[1:])
    return dtype if want == "result" else [np.dtype(np.bool_), dtype, dtype]


@elementwise(
    {"input": lambda g, condition: where(condition, g, 0.0), "other": lambda g, condition: where(condition, 0.0, g)},
    result=_where_dtypes,
    dtypes="fcib",
    inplace=False,
    torch_name="where",
)
def select_where(condition: Array, input: Array, other: Array) -> Any:
    """Elements of ``input`` where ``condition`` holds, of ``other`` elsewhere; what `where` calls.

    >>> import genesis
    >>> genesis.ops.pointwise.choice.select_where(genesis.tensor([True, False]), 1.0, 2.0)
    tensor([1., 2.])
    """
    return np.where(condition, input, other)


samples(
    select_where, lambda t: [case(t.bool(2, 3), t(3), t(2, 1)), case(t.bool(), t(), t()), case(t.bool(0), t(0), t(0))]
)


def where(condition: Tensor, input: Any = None, other: Any = None, *, out: Tensor | None = None) -> Any:
    """Elements of ``input`` where ``condition`` holds, of ``other`` elsewhere; alone, the indices where it holds.

    The three broadcast together; ``input`` and ``other`` may be numbers. The gradient goes to the chosen operand.

    Raises:
        RuntimeError: shapes that do not broadcast, or a condition that is not bool (uint8 is taken with a warning)

    >>> import genesis
    >>> x = genesis.tensor([-1., 2.])
    >>> genesis.where(x > 0, x, 0.0)
    tensor([0., 2.])
    """
    if input is None and other is None:
        return condition.nonzero(as_tuple=True)  # type: ignore[attr-defined]
    if not isinstance(condition, Tensor) or condition._array.dtype.kind != "b":
        if isinstance(condition, Tensor) and condition.dtype is dtypes.uint8:
            warnings.warn(
                message("where", "a uint8 condition is taken as a mask, which is deprecated", hint="x != 0"),
                UserWarning,
                stacklevel=user_level(),
            )
            return select_where(condition != 0, input, other, out=out)
        kind = condition.dtype if isinstance(condition, Tensor) else type(condition).__name__
        raise DTypeError(message("where", f"the condition must be a bool tensor, got {kind}", hint="x != 0"))
    if out is None and not ACTIVE and not LEVELS and condition._array.__class__ is np.ndarray:
        chosen = _chosen(condition._array, input, other)
        if chosen is not None:
            result = wrap(chosen)
            record_elementwise(select_where.op, (condition, input, other), result)
            return result
    return select_where(condition, input, other, out=out)


_REAL = (float, int)


@unnamed
def _chosen(condition: Any, input: Any, other: Any) -> Any:
    """`where` of NumPy's arrays of one dtype, or one and a number for floats; None if it is something else."""
    x, y = (each._array if isinstance(each, Tensor) else each for each in (input, other))
    if x.__class__ in _REAL and y.__class__ is np.ndarray and y.dtype.char in "fd":
        x = np.array(float(x), y.dtype)
    elif y.__class__ in _REAL and x.__class__ is np.ndarray and x.dtype.char in "fd":
        y = np.array(float(y), x.dtype)
    if x.__class__ is not np.ndarray or y.__class__ is not np.ndarray or x.dtype is not y.dtype:
        return None
    try:
        return np.where(condition, x, y)
    except (ValueError, MemoryError):  # `select_where` explains
        return None


_NUMBERS = (False, 0, 0.0, 0j)  # one of each category


def together(input: Tensor, *others: Any, as_numbers: bool = False) -> Any:
    """Operands in the dtype that all of them promote to: one after the other, two of them may promote to less.

    ``as_numbers``: 0-d tensors among the others promote as numbers, which PyTorch makes of them beside one.
    """
    operands = (input, *others)
    arrays = [x._array if isinstance(x, Tensor) else x for x in operands]
    kinds = [x._array.dtype if isinstance(x, Tensor) else None for x in operands]
    if kinds[0] is not None and kinds.count(kinds[0]) == len(kinds):
        return operands
    if as_numbers:
        arrays[1:] = [_NUMBERS[x.dtype.category] if isinstance(x, Tensor) and not x.ndim else x for x in others]
    kind = dtypes.result_np_dtype([x for x in arrays if x is not None])
    return tuple([x.to(kind) if isinstance(x, Tensor) and x._array.dtype is not kind else x for x in operands])


@composite(dtypes="fi", inplace=True)
def clamp(input: Tensor, min: Any = None, max: Any = None, *, out: Tensor | None = None) -> Tensor:
    """Limit to the range from ``min`` to ``max``, $\\min(\\max(x, min), max)$; either may be None, a number or a
    tensor.

    The slope is 1 inside and on the edges, 0 outside.

    Raises:
        ValueError: neither limit is given

    >>> import genesis
    >>> genesis.clamp(genesis.tensor([-1., 0.5, 2.]), 0, 1)
    tensor([0.0000, 0.5000, 1.0000])
    """
    if min is None and max is None:
        raise ArgumentValueError(message("clamp", "at least one of min and max is needed"))
    result = input
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        beside_number = None not in (min, max) and not (isinstance(min, Tensor) and isinstance(max, Tensor))
        result, min, max = together(input, min, max, as_numbers=beside_number)
    if min is not None:
        result = _clamp_min(result, min)
    if max is not None:
        result = _clamp_max(result, max)
    return result if out is None else write_out("clamp", result, out)


samples(clamp, lambda t: [case(t(2, 3), -0.5, 0.5), case(t(3), min=t(3)), case(t(3), max=0.3), case(t(0), 0, 1)])


wrong_inputs(clamp, (lambda t: case(t(3)), ValueError, "clamp: at least one of min and max is needed"))


_clamp_min = binary(
    "clamp_min",
    np.maximum,
    "No less than a limit, $\\max(x, y)$.",
    "[1., 5.], 3. -> [3., 5.]",
    dtypes="fib",
    vjp=(
        lambda g, input, other: _kept(g, input >= other),
        lambda g, input, other: _kept(g, input < other),
    ),
    second="min",
)

_clamp_max = binary(
    "clamp_max",
    np.minimum,
    "No more than a limit, $\\min(x, y)$.",
    "[1., 5.], 3. -> [1., 3.]",
    dtypes="fib",
    vjp=(
        lambda g, input, other: _kept(g, input <= other),
        lambda g, input, other: _kept(g, input > other),
    ),
    second="max",
)


Tensor.where = lambda self, condition, other: where(condition, self, other)  # type: ignore[attr-defined]
clamp_min, clamp_max = _clamp_min, _clamp_max


for _name, _call in [
    ("clip", clamp),
]:
    globals()[_name] = alias(_name, _call, inplace=True)

__all__ = ["clamp", "clamp_max", "clamp_min", "clip", "fmax", "fmin", "maximum", "minimum", "where"]
