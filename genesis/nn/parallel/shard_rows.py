"""The rows of all shards of a rank between two layers: a value for each shard, or one tensor with the rows of all of them,
shard after shard, for layers in which nothing depends on how many rows there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.base.errors import ShapeError, message
from genesis.core.functions.function import Function
from genesis.core.graph.tensor import Tensor, wrap
from genesis.nn.activation import Hardshrink, Hardtanh, LeakyReLU, ReLU, ReLU6, Threshold
from genesis.nn.flatten import Flatten, Unflatten
from genesis.nn.linear import Identity
from genesis.ops.shapes.join import cat, stack

_F32 = np.dtype(np.float32)
# whose numbers are chosen from their input's, or are one product of them, which is rounded once: each by itself
_EACH = frozenset({Hardshrink, Hardtanh, Identity, LeakyReLU, ReLU, ReLU6, Threshold})


def is_plain(x: Any) -> bool:
    """Whether it is a tensor of float32 numbers in memory."""
    return isinstance(x, Tensor) and x._array.__class__ is np.ndarray and x._array.dtype is _F32


def takes_all(module: Any) -> bool:
    """Whether a layer gives each row what it gives it among any others, to the last bit, and its gradient, too."""
    if type(module) is Flatten:
        return bool(module.start_dim > 0)
    return type(module) in _EACH or (type(module) is Unflatten and isinstance(module.dim, int) and module.dim > 0)


class Rows:
    """Values of so many shards: ``parts``, or ``whole``, of which other things may hold the memory if it is ``shared``."""

    def __init__(self, count: int, parts: list[Any] | None = None, whole: Any = None, shared: bool = True) -> None:
        self.count, self._parts, self._whole, self.shared = count, parts, whole, shared

    @classmethod
    def of_batch(cls, x: Any, rows: int, count: int) -> Rows:
        """What is given to the first layer: row ``i`` of a tensor with so many is of shard ``i % count``."""
        if not is_plain(x) or x.ndim < 2 or x.shape[0] != rows or count == 1:
            return cls(count, [rows_of(x, rows, i, count) for i in range(count)])
        return cls(count, whole=_turned(x, rows // count, count), shared=False)

    @property
    def parts(self) -> list[Any]:
        """The value of each shard."""
        if self._parts is None:
            one = self.count == 1
            self._parts = [self._whole] if one else list(Split.apply(self._whole, self.count, self.shared))
        return self._parts

    @property
    def whole(self) -> Any:
        """The rows of all of them; None if they are no tensors of float32 numbers with equal shapes."""
        if self._whole is None:
            parts = self._parts or []
            if all([is_plain(x) and x.ndim > 1 for x in parts]) and len({x.shape for x in parts}) == 1:
                self._whole = parts[0] if self.count == 1 else cat(parts)
        return self._whole

    @property
    def is_whole(self) -> bool:
        """Whether they are in one tensor already."""
        return self._whole is not None

    def batch(self, rows: int) -> Any:
        """What the last layer gave, its rows in the order that they had; so many each."""
        if self._whole is not None and self.count > 1 and self._whole.shape[0] == rows * self.count:
            return _turned(self._whole, self.count, rows)
        return self.parts


def _turned(x: Any, first: int, second: int) -> Any:
    """The rows of ``first`` groups of ``second`` as ``second`` groups of ``first``."""
    rest = x.shape[1:]
    return x.reshape(first, second, *rest).transpose(0, 1).reshape(first * second, *rest)


class Split(Function):
    """A tensor with the rows of all shards as one for each; in memory of their own if others look at it (``shared``)."""

    amp_policy = "preserve"

    @staticmethod
    def forward(ctx: Any, x: Any, count: int, shared: bool) -> Any:
        parts = np.split(x._array, count)
        return tuple([wrap(part.copy() if shared else part) for part in parts])

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return cat(list(grads)), None, None


def rows_of(x: Any, rows: int, i: int, count: int) -> Any:
    """The rows of one shard, of a tensor that has those of the batch."""
    return x[i::count].contiguous() if isinstance(x, Tensor) and x.ndim and x.shape[0] == rows and count > 1 else x


def joined(parts: Sequence[Any], rows: int) -> Any:
    """The rows of all shards in the order that they had, the mean of numbers, and of others those of the first."""
    first = parts[0]
    if not isinstance(first, Tensor):
        return first
    if not first.ndim:
        return stack(list(parts)).mean()  # type: ignore[attr-defined]
    if first.shape[0] != rows:
        text = f"an output is {first._spec()}, and its shard has {rows} rows"
        hint = "outputs whose first dimension is the batch's; or shards=None"
        raise ShapeError(message("DistributedDataParallel", text, hint=hint))
    return stack(list(parts), 1).reshape(rows * len(parts), *first.shape[1:])  # type: ignore[attr-defined]
