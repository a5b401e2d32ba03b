"""Broadcasting: one shape for several tensors, and views that repeat along a dimension."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.base.dtypes import whole
from genesis.arrays.protocol import Array
from genesis.arrays.spec import Spec
from genesis.base.errors import ArgumentError, ShapeError, message
from genesis.core.call.kinds import case, composite, view
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.refusal import explain_all
from genesis.core.graph.tensor import Tensor

_ALL, _INTEGERS = "fcib", {int}


def sizes(args: tuple[Any, ...]) -> tuple[int, ...]:
    """Varargs or one sequence of integers: ``(2, 3)`` or ``((2, 3),)``."""
    if args.__class__ is tuple and {*map(type, args)} == _INTEGERS:
        return args
    if len(args) == 1 and isinstance(args[0], tuple) and {*map(type, args[0])} == _INTEGERS:
        return tuple(args[0])
    if len(args) == 1 and not isinstance(whole(args[0]), int):
        if isinstance(args[0], str | bytes) or not hasattr(args[0], "__iter__"):
            raise ArgumentError(message("size", f"sizes must be integers, got {type(args[0]).__name__}"))
        args = tuple(args[0])
    try:
        return tuple([n.__index__() for n in args])
    except AttributeError:
        bad = next(n for n in args if not hasattr(n, "__index__"))
        raise ArgumentError(message("size", f"sizes must be integers, got {type(bad).__name__}")) from None


def never_negative(name: str, what: str, numbers: Sequence[int]) -> None:
    """Refuse sizes or counts below 0."""
    if any([n < 0 for n in numbers]):
        raise ShapeError(message(name, f"{what} cannot be negative, got {[int(n) for n in numbers]}"))


def sizes_of(name: str, keyword: str, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[int, ...]:
    """The integers of a call ``x.reshape(2, 3)``, ``x.reshape((2, 3))`` or ``x.reshape(shape=(2, 3))``.

    Raises:
        TypeError: another keyword, or both forms at once
    """
    if not named:
        return sizes(args)
    named = {k: v for k, v in named.items() if k != "implicit" or name != "expand"}
    if args and not named:
        return sizes(args)
    if args or set(named) != {keyword}:
        given = ", ".join([*map(repr, args), *(f"{k}={v!r}" for k, v in named.items())])
        raise ArgumentError(message(name, f"expected {keyword}=, got {given}", hint=f"{name}({keyword}=(2, 3))"))
    return sizes((named[keyword],))


def varargs(call: Any, name: str, keyword: str) -> Any:
    """The method form ``x.reshape(2, 3)`` of ``reshape(x, (2, 3))``."""

    def method(self: Tensor, *shape: Any, **named: Any) -> Tensor:
        if named or {*map(type, shape)} != _INTEGERS:
            shape = sizes_of(name, keyword, shape, named)
        return call(self, shape)

    method.__name__, method.__doc__ = name, call.__doc__
    setattr(Tensor, name, method)
    return call


@functools.lru_cache(maxsize=1 << 10)
def _steps(shape: tuple[int, ...], strides: tuple[int, ...], size: tuple[int, ...]) -> tuple[int, ...] | None:
    """The strides of an array in a larger shape, which NumPy gives it, too; None where it is empty, or does not fit."""
    extra = len(size) - len(shape)
    if extra < 0 or 0 in shape or min(size, default=0) < 0:
        return None
    if not all([n == 1 or n == m for n, m in zip(shape, size[extra:], strict=True)]):
        return None
    return (*(0,) * extra, *[0 if n == 1 else step for n, step in zip(shape, strides, strict=True)])


def _expand(x: Any, size: tuple[int, ...]) -> Any:
    if not x.ndim and x.dtype.kind != "V" and math.prod(size) != 1:
        out = np.ndarray(size, x.dtype, x, 0, (0,) * len(size))  # broadcast_to costs 2 us more
        out.flags.writeable = False
        return out
    extra = len(size) - x.ndim
    if size[extra:] == x.shape and all([n == 1 for n in size[:extra]]):
        return x[(None,) * extra]  # as many elements, each with memory of its own
    steps = _steps(x.shape, x.strides, size) if x.flags.c_contiguous and x.dtype.kind != "V" else None
    if steps is not None:  # as above
        out = np.ndarray(size, x.dtype, x, 0, steps)
        out.flags.writeable = False
        return out
    return np.broadcast_to(x, size)


def _expanded(input: Tensor, size: Any) -> tuple[Any, ...]:
    shape = input._array.shape
    size = tuple(size) if size.__class__ is not tuple else size
    if -1 in size or len(size) < len(shape):
        extra = len(size) - len(shape)
        if extra < 0:
            raise ShapeError(
                message("expand", f"{len(size)} sizes for {len(shape)} dimensions", [("input", input._spec())])
            )
        if -1 in size[:extra]:
            raise ShapeError(message("expand", "-1 is not allowed for a new leading dimension"))
        size = tuple(shape[i - extra] if n == -1 else n for i, n in enumerate(size))
    return input, size


def _infer_expand(input: Spec, size: tuple[int, ...]) -> Spec:
    extra = len(size) - len(input.shape)
    for i, n in enumerate(input.shape):
        if n not in (1, size[i + extra]):
            raise ShapeError(
                message(
                    "expand",
                    f"dim {i} has size {n}, it cannot be expanded to {size[i + extra]}",
                    [("input", input)],
                    hint="only dimensions of size 1 can be expanded, repeat copies others",
                )
            )
    return Spec(size, input.dtype, input.device)


def sum_to(g: Tensor, shape: Sequence[int]) -> Tensor:
    """Sum over the axes that broadcasting added or stretched."""
    extra = g.ndim - len(shape)
    dims = [*range(extra), *(i + extra for i, n in enumerate(shape) if n == 1 != g.shape[i + extra])]
    return (g.sum(dims) if dims else g).reshape(shape)


@view(
    {"input": lambda g, input_shape: sum_to(g, input_shape)},
    infer=_infer_expand,
    prepare=_expanded,
    torch_name="Tensor.expand",
    batch=lambda b, x, size: b.run(b.padded(x, True, len(size)), (b.size, *size)),
)
def expand(input: Array, size: Sequence[int]) -> Any:
    """The same elements seen in a larger shape, without copying: dimensions of size 1 are stretched, -1 keeps one.

    Raises:
        RuntimeError: a dimension of another size is to change

    >>> import genesis
    >>> genesis.tensor([[1.], [2.]]).expand(2, 3)
    tensor([[1., 1., 1.],
            [2., 2., 2.]])
    """
    return _expand(input, size)


samples(expand, lambda t: [case(t(3, 1), (2, 3, 4)), case(t(1, 3), (-1, 3)), case(t(), (2, 3)), case(t(0, 1), (0, 4))])

wrong_inputs(
    expand, (lambda t: case(t(2, 3), (4, 3)), RuntimeError, "expand: dim 0 has size 2, it cannot be expanded to 4")
)


varargs(expand, "expand", "size")


@composite(dtypes=_ALL)
def broadcast_to(input: Tensor, size: Sequence[int]) -> Tensor:
    """The tensor in a shape it broadcasts to, as a view.

    >>> import genesis
    >>> genesis.broadcast_to(genesis.tensor([1., 2.]), (2, 2))
    tensor([[1., 2.],
            [1., 2.]])
    """
    return expand(input, size)


samples(broadcast_to, lambda t: [case(t(3, 1), (2, 3, 4)), case(t(), (2,))])
varargs(broadcast_to, "broadcast_to", "size")


def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Tensors expanded to their common shape.

    >>> import genesis
    >>> a, b = genesis.broadcast_tensors(genesis.ones(3, 1), genesis.ones(4))
    >>> a.shape, b.shape
    (genesis.Size([3, 4]), genesis.Size([3, 4]))
    """
    shapes = [x._array.shape for x in tensors]
    if shapes and shapes.count(shapes[0]) == len(shapes):
        return tensors
    shape = broadcast_shapes(*shapes)
    return tuple(x if x.shape == shape else expand(x, shape) for x in tensors)


def broadcast_shapes(*shapes: Sequence[int]) -> Any:
    """The shape that shapes broadcast to.

    >>> import genesis
    >>> genesis.broadcast_shapes((3, 1), (4,))
    genesis.Size([3, 4])
    """
    from genesis.core.call.kinds import broadcast
    from genesis.core.graph.size import Size

    kind = np.dtype(np.float32)
    return Size(broadcast("broadcast_shapes", [Spec((s,) if isinstance(s, int) else tuple(s), kind) for s in shapes]))


Tensor.expand_as = lambda self, other: expand(self, other.shape)


explain_all(globals(), "broadcast_tensors", "broadcast_shapes")

__all__ = [
    "broadcast_shapes",
    "broadcast_tensors",
    "broadcast_to",
]
