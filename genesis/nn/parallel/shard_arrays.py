"""Arrays of shards: what several shards of a batch have in place of one array, while a module computes all of them at once.

A program sees the shape of one shard. How ops act on them is said in `nn/parallel/shard_ops.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from genesis.arrays.memory import copied
from genesis.arrays.protocol import Layer, NeedsValues, asked_for_at, fits, same_level
from genesis.base import blas
from genesis.base.errors import message
from genesis.kernels.cpu import memory, trees

if TYPE_CHECKING:
    from genesis.nn.parallel.shard_level import ShardLevel

APART = 1 << 18  # bytes of an array from where it costs more to put it beside others than it saves to take all at once


class Sharded(Layer):
    """An array of one shape and dtype for each shard.

    They lie one after the other in ``whole``, or are ``arrays`` anywhere, or products of matrices that nobody has asked
    for yet, ``a[i].T @ b[i]``: a weight's gradients, of which the sum is all that is wanted.
    """

    __slots__ = ("_arrays", "_whole", "factors", "owner", "shape")
    varying = "differs from shard to shard"
    computed = True
    from_outside = False

    shape: tuple[int, ...]

    def __init__(
        self, owner: ShardLevel, arrays: Sequence[Any] | None = None, whole: Any = None, factors: Any = None
    ) -> None:
        self.owner, self._arrays, self._whole, self.factors = owner, arrays, whole, factors
        if whole is not None:
            self.shape = whole.shape[1:]
        else:
            self.shape = (factors[0].shape[1], factors[1].shape[1]) if arrays is None else arrays[0].shape  # type: ignore[index]

    @property
    def level(self) -> int:  # type: ignore[override]
        return self.owner.number

    @property
    def arrays(self) -> Sequence[Any]:
        """The array of each shard."""
        if self._arrays is None:
            if self._whole is None:
                self._whole = np.stack([blas.product(x.T, y) for x, y in zip(*self.pairs(), strict=True)])
            self._arrays = [self._whole[i, ...] for i in range(self.owner.count)]
        return self._arrays

    def pairs(self) -> list[list[Any]]:
        """The matrices whose products these are."""
        return [np.split(x, self.owner.count) for x in self.factors]

    @property
    def whole(self) -> Any:
        """All of them as one array, if they lie so."""
        return self._whole

    def sum(self) -> Any:
        """The sum over shards, in the order of the tree."""
        if self._arrays is None and self._whole is None:
            return trees.sum_of_products(*self.factors, self.owner.count)
        plain = all([x.flags.c_contiguous for x in self.arrays]) and self.dtype.kind == "f"
        return np.asarray(trees.sum_of_arrays(self.arrays) if plain else trees.tree_sum(self.arrays))

    def around(self, arrays: Sequence[Any]) -> Sharded:
        """The same of other arrays."""
        return Sharded(self.owner, arrays)

    # ---- a layer

    @property
    def inner(self) -> Any:
        return self.arrays[0]

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        return (self.factors[0] if self._whole is None is self._arrays else self.inner).dtype  # type: ignore[no-any-return]

    @property
    def has_value(self) -> bool:
        return False

    @property
    def varies(self) -> bool:
        return True

    @property
    def parts(self) -> tuple[Any, ...]:
        return tuple(self.arrays)

    def described(self) -> str:
        return f"for each of {self.owner.count} shards"

    def without_tangents(self) -> Any:
        return self.around([x.without_tangents() if isinstance(x, Layer) else x for x in self.arrays])

    def copy(self) -> Sharded:
        return Sharded(self.owner, whole=self._whole.copy()) if self._whole is not None else self.mapped(_copied)

    def mapped(self, f: Callable[[Any, int | None], Any], dim: int | None = None) -> Sharded:
        return self.around([f(x, dim) for x in self.arrays])

    def zipped(self, f: Callable[[Any, Any], Any], a: Any, b: Any) -> Sharded:
        return self.around([f(x, y) for x, y in zip(self.of(a), self.of(b), strict=True)])

    def unzipped(self, f: Callable[[Any], tuple[Any, Any]]) -> tuple[Any, Any]:
        first, second = zip(*[f(x) for x in self.arrays], strict=True)
        return self.around(first), None if second[0] is None else self.around(second)

    def fits(self, source: Any) -> bool:
        return all([fits(x, y) for x, y in zip(self.arrays, self.of(source), strict=True)])

    def assign(self, source: Any, assign: Callable[[Any, Any], None]) -> None:
        for x, y in zip(self.arrays, self.of(source), strict=True):
            assign(x, y)

    def grown(self, array: Any, like: Any, grow: Callable[[Any, Any], Any]) -> Sharded:
        return self.around([grow(x, y) for x, y in zip(self.of(array), self.of(like), strict=True)])

    def of(self, array: Any) -> Sequence[Any]:
        """What an array is for each shard."""
        return array.arrays if same_level(array, self) else [array] * self.owner.count

    def refuse(self, what: str, site: Any = None) -> Exception:
        return NeedsValues(
            message(
                what,
                f"this tensor stands for {self.owner.count} shards of a batch, it has no single value",
                operands=[*asked_for_at(site), ("each shard", f"shape {list(self.shape)}")],
                hint="what forward stores of a batch is that of several shards: return it",
            )
        )


def _copied(array: Any, dim: int | None) -> Any:
    return copied(array)


def together(owner: ShardLevel, arrays: Sequence[Any]) -> Sharded:
    """Arrays of all shards that nobody else holds, one after the other in memory where they are contiguous."""
    first = arrays[0]
    if not all([x.shape == first.shape and x.dtype is first.dtype for x in arrays]):
        text = "what one shard of a batch gives has another shape, or dtype, than that of another"
        raise NeedsValues(message("DistributedDataParallel", text))
    if first.nbytes > APART or not all([x.flags.c_contiguous for x in arrays]):
        return Sharded(owner, arrays)
    return Sharded(owner, whole=beside(arrays))


def beside(arrays: Sequence[Any]) -> Any:
    """Arrays of one shape and dtype as one, whose first dimension they are."""
    whole = memory.empty((len(arrays), *arrays[0].shape), arrays[0].dtype)
    for i, x in enumerate(arrays):
        whole[i] = x
    return whole
