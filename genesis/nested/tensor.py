"""`NestedTensor`: the parts one after the other in a tensor, and where each begins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from genesis.base import layouts
from genesis.base.errors import ArgumentError, ShapeError, UnsupportedError, message
from genesis.core.call.refusal import ANSWERS
from genesis.core.graph.size import Size
from genesis.core.graph.tensor import Tensor, wrap


class Ragged:
    """The size that is another for each part; a view takes it, or -1, in its place."""

    __slots__ = ("lengths",)

    def __init__(self, lengths: tuple[int, ...]) -> None:
        self.lengths = lengths

    def __repr__(self) -> str:
        return "j"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ragged) and self.lengths == other.lengths

    def __hash__(self) -> int:
        return hash(self.lengths)


class NestedTensor:
    """A batch of tensors that differ in the size of one dimension, as `nested_tensor` makes it.

    Arithmetic, activations, products with matrices, sums along any dimension, softmax, norms and attention take it;
    gradients go through them to what it was made of. `values` has all parts one after the other, `offsets` says where
    each begins.
    """

    layout, is_nested, is_sparse = layouts.jagged, True, False

    def __init__(self, values: Tensor, offsets: Tensor, ragged: int = 1) -> None:
        self._values, self._offsets, self._ragged = values, offsets, ragged

    # ---- what it is

    def values(self) -> Tensor:
        """All parts, one after the other."""
        return self._values

    def offsets(self) -> Tensor:
        """Where each part begins, and the end of the last."""
        return self._offsets

    def lengths(self) -> None:
        """None: there are no gaps between the parts."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """The ragged size of each part."""
        return tuple(np.diff(self._offsets.numpy()).tolist())

    @property
    def shape(self) -> Any:
        inner: list[Any] = list(self._values.shape)
        inner[self._ragged - 1] = Ragged(self.sizes)
        return Size([len(self), *inner])  # type: ignore[list-item]

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    def dim(self) -> int:
        return self._values.ndim + 1

    ndim = property(dim)
    dtype = property(lambda self: self._values.dtype)
    device = property(lambda self: self._values.device)
    requires_grad = property(lambda self: self._values.requires_grad)
    grad_fn = property(lambda self: self._values.grad_fn)
    is_leaf = property(lambda self: self._values.is_leaf)

    @property
    def grad(self) -> NestedTensor | None:
        return None if self._values.grad is None else self.like(self._values.grad)

    def requires_grad_(self, requires_grad: bool = True) -> NestedTensor:
        self._values.requires_grad_(requires_grad)
        return self

    def numel(self) -> int:
        return self._values.numel()

    def is_floating_point(self) -> bool:
        return self._values.is_floating_point()

    def __len__(self) -> int:
        return self._offsets.shape[0] - 1

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.unbind())

    def __bool__(self) -> bool:
        raise ArgumentError(message("bool", "the truth of a nested tensor is ambiguous", hint="x.any() or x.all()"))

    def __repr__(self) -> str:
        grad = f", grad_fn={self.grad_fn!r}" if self.grad_fn else ", requires_grad=True" if self.requires_grad else ""
        return f"NestedTensor(size={tuple(self.shape)}, offsets={self._offsets}{grad})"

    def like(self, values: Tensor, ragged: int | None = None) -> NestedTensor:
        """Other values for the same parts."""
        return NestedTensor(values, self._offsets, self._ragged if ragged is None else ragged)

    # ---- its parts

    def unbind(self, dim: int = 0) -> tuple[Tensor, ...]:
        """The parts."""
        if dim not in (0, -self.ndim):
            raise UnsupportedError(message("unbind", f"nested tensors are taken apart along dim 0, got {dim}"))
        return tuple(self._values.split(self.sizes, self._ragged - 1))  # type: ignore[attr-defined]

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, int):
            return self.unbind()[key]
        if isinstance(key, tuple) and key and isinstance(key[0], int):
            return self.unbind()[key[0]][key[1:]]
        if isinstance(key, tuple) and len(key) > 1 and all([k == slice(None) for k in key[: self._ragged + 1]]):
            return self.like(self._values[key[1:]])
        raise UnsupportedError(message("getitem", f"{key!r} is no part of a nested tensor", hint="x.unbind()"))

    def rows(self) -> Tensor:
        """For each row of the values which part it belongs to."""
        return wrap(np.repeat(np.arange(len(self)), self.sizes))

    def to_padded_tensor(self, padding: float, output_size: Sequence[int] | None = None) -> Tensor:
        """A tensor of the size of the largest part, the others filled up with ``padding``."""
        values = self._values.movedim(self._ragged - 1, 0)  # type: ignore[attr-defined]
        count, longest = len(self), max(self.sizes, default=0)
        position = np.arange(len(values)) - np.repeat(self._offsets.numpy()[:-1], self.sizes)
        out = values.new_full((count, longest, *values.shape[1:]), padding)
        out = out.index_put((self.rows(), wrap(position)), values).movedim(1, self._ragged)
        return out if output_size is None else _grown(out, output_size, padding)

    # ---- what functions make of it: `nested/functions.py`

    def __getattr__(self, name: str) -> Any:
        method = getattr(Tensor, name, None) if not name.startswith("_") else None
        if not callable(method):
            raise AttributeError(f"nested tensors have no attribute {name!r}")
        return lambda *args, **kwargs: applied(method, (self, *args), kwargs)


def _grown(x: Tensor, sizes: Sequence[int], padding: float) -> Tensor:
    if len(sizes) != x.ndim or any([new < old for new, old in zip(sizes, x.shape, strict=True)]):
        raise ShapeError(message("to_padded_tensor", f"output_size {list(sizes)} does not hold {list(x.shape)}"))
    out = x.new_full(tuple(sizes), padding)
    out[tuple([slice(n) for n in x.shape])] = x
    return out


RULES: dict[str, Callable[..., Any]] = {}  # by the names of functions: `nested/functions.py`


def applied(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function of nested tensors.

    Raises:
        NotImplementedError: it is none
    """
    name = getattr(function, "__name__", "")
    if name not in RULES:
        hint = "x.values() and x.unbind() are tensors, x.to_padded_tensor(0.0) is one"
        raise UnsupportedError(message(name, "nested tensors are not taken", hint=hint))
    return RULES[name](function, *args, **kwargs)


def _answer(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any] | None:
    """What a function that has failed makes of nested tensors."""
    values = [*args, *kwargs.values()]
    if not any([isinstance(y, NestedTensor) for x in values for y in (x if isinstance(x, list | tuple) else (x,))]):
        return None
    return (applied(function, args, kwargs),)


# a call that fails on it is asked for its answer
NestedTensor.__torch_function__ = classmethod(  # type: ignore[attr-defined]
    lambda cls, func, types, args=(), kwargs=None: applied(func, args, kwargs or {})
)
ANSWERS.append(_answer)
