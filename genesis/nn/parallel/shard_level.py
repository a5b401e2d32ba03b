"""The ways in and out of a computation of all shards at once, for tensors and for gradients.

`into` makes the rows of a batch what each shard has of them, `out_of` shows all of them again. A parameter is the same for all
shards; its gradients are added in the order of the tree where they leave (`parameter`), and so are those of any other
tensor with a history. What cannot be computed for all at once is computed for one after the other, by `apart`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

import numpy as np

from genesis.base.errors import UnsupportedError, message
from genesis.base.pytree import tree_flatten, tree_unflatten
from genesis.core.functions.function import Function
from genesis.core.graph import boundary
from genesis.core.graph.generator import SeededStream, default_generator, seeded_stream
from genesis.core.graph.levels import Level, levels, opened
from genesis.core.graph.modes import grad_mode
from genesis.core.graph.tensor import Tensor, wrap
from genesis.core.layers.function_rules import RULES, Call
from genesis.kernels.cpu import trees
from genesis.nn.parallel.shard_arrays import Sharded, together


class ShardLevel(Level):
    """The shards of a rank while all of them are computed: how many, and where the random numbers of each are."""

    __slots__ = ("at", "count", "key")
    kernels = True

    def __init__(self, count: int, key: int, at: list[int]) -> None:
        super().__init__("a forward of several shards")
        self.count, self.key, self.at = count, key, at

    def draw(self, op: Any, stream: Any, shape: tuple[int, ...], options: Any) -> Tensor:  # type: ignore[override]
        """Random numbers for each shard."""
        if stream is not default_generator or len(levels()) > 1:
            raise _refusal("random numbers of a generator of one's own")
        arrays, token = [], seeded_stream.set(None)
        try:
            for i, block in enumerate(self.at):
                stream.move_to(self.key, block)
                arrays.append(np.asarray(op.kernel(stream, shape, *options)))
                self.at[i] = stream.key_and_block()[1]
        finally:
            seeded_stream.reset(token)
        return wrap(together(self, arrays))

    def moment(self) -> Callable[[], AbstractContextManager[None]]:  # type: ignore[override]
        """A context in which shards go on from here, in a backward that computes some of the forward again."""
        return partial(self._again, list(self.at))

    @contextmanager
    def _again(self, at: list[int]) -> Iterator[None]:
        now, self.at = self.at, list(at)
        try:
            with opened(self), without_stream():
                yield
        finally:
            self.at = now


class _NoStream(SeededStream):
    """In place of the default generator's stream: each shard has its own, and who draws goes by `ShardLevel.draw`."""

    __slots__ = ()

    def stream(self) -> Any:
        raise _refusal("the state of the random number generator")


@contextmanager
def without_stream() -> Iterator[None]:
    """Inside, the state of the default generator is refused."""
    token = seeded_stream.set(_NoStream(0))
    try:
        yield
    finally:
        seeded_stream.reset(token)


def _refusal(what: str) -> Exception:
    return UnsupportedError(message("DistributedDataParallel", f"{what} is not one for all shards"))


# ---- boundaries


class _Into(boundary._Boundary):
    __slots__ = ()
    op_name = "into shards"
    input_names = ("input",)

    def _pull(self, g: Any) -> Any:
        (owner,) = self._saved
        return (out_of(g, owner),)


class _OutOf(boundary._Boundary):
    __slots__ = ()
    op_name = "out of shards"
    input_names = ("input",)

    def _pull(self, g: Any) -> Any:
        (owner,) = self._saved
        return (into(g, owner),)


class _Same(boundary._Boundary):
    """A tensor that is the same for all shards, as one for each."""

    __slots__ = ()
    op_name = "for each shard"
    input_names = ("input",)

    def _pull(self, g: Any) -> Any:
        return (g,)


class _Summed(boundary._Boundary):
    """A tensor that is the same for all shards: its gradients are summed."""

    __slots__ = ()
    op_name = "in all shards"
    input_names = ("input",)

    def _pull(self, g: Any) -> Any:
        (owner,) = self._saved
        array = g._array
        if g._node is not None and grad_mode.get():
            return (trees.tree_sum(out_of(g, owner).unbind()),)  # type: ignore[attr-defined]
        return (wrap((array if isinstance(array, Sharded) else Sharded(owner, [array] * owner.count)).sum()),)


def _whole(owner: ShardLevel, array: Any) -> Any:
    """All shards of an array as one."""
    if not isinstance(array, Sharded):
        return np.broadcast_to(array, (owner.count, *array.shape))
    if array.whole is None:
        return np.stack(array.arrays)
    return array.whole


def parameter(x: Tensor, owner: ShardLevel) -> Tensor:
    """A tensor that is the same for all shards, under a node that sums its gradients."""
    return boundary._recorded(_Summed, x._array, (x,), (owner,))


def into(x: Tensor, owner: ShardLevel) -> Tensor:
    """A tensor whose first dimension are the shards."""
    return boundary._recorded(_Into, Sharded(owner, whole=np.ascontiguousarray(x._array)), (x,), (owner,))


def out_of(x: Any, owner: ShardLevel) -> Any:
    """A tensor with what each shard has as its first dimension; anything else as it is."""
    if not isinstance(x, Tensor):
        return x
    array = x._array
    if not isinstance(array, Sharded):
        x = boundary._recorded(_Same, Sharded(owner, [array] * owner.count), (x,), (owner,))
    return boundary._recorded(_OutOf, _whole(owner, x._array), (x,), (owner,))


class _InOnePiece(boundary._Boundary):
    """A result whose gradient lies in one piece, as that of several shards does: products and sums of one that does not may
    be added in another order.
    """

    __slots__ = ()
    op_name = "out of a shard"
    input_names = ("input",)

    def _pull(self, g: Any) -> Any:
        return (g.contiguous(),)


def in_one_piece(x: Any) -> Any:
    """A tensor whose gradient lies in one piece; anything else as it is."""
    if not isinstance(x, Tensor) or x._node is None:
        return x
    y = boundary._recorded(_InOnePiece, x._array, (x,), ())
    y._counter = x._shared_counter()
    return y


def _joined(x: Tensor, layer: Any) -> Tensor:
    """A tensor with history that meets others: a parameter, or made of them, is as it is."""
    return x if layer.owner.has_created(x) else parameter(x, layer.owner)


boundary.JOINS[Sharded] = _joined


# ---- one shard after the other


class _Apart(Function):
    """A tensor as one for each shard, without a layer."""

    amp_policy = "preserve"

    @staticmethod
    def forward(ctx: Any, x: Any, owner: ShardLevel) -> Any:
        ctx.owner, array = owner, x._array
        return tuple([wrap(each) for each in (array.arrays if isinstance(array, Sharded) else [array] * owner.count)])

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return _Together.apply(ctx.owner, *grads), None


class _Together(Function):
    """A tensor of each shard as one with a layer."""

    amp_policy = "preserve"

    @staticmethod
    def forward(ctx: Any, owner: ShardLevel, *parts: Any) -> Any:
        ctx.owner = owner
        return wrap(together(owner, [x._array for x in parts]))

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return None, *_Apart.apply(g, ctx.owner)


def apart(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], owner: ShardLevel) -> Any:
    """A function of tensors of one shard, called for one after the other."""
    leaves, structure = tree_flatten((args, kwargs))
    leaves = [parameter(x, owner) if isinstance(x, Tensor) and x._node is not None and
              not isinstance(x._array, Sharded) and not owner.has_created(x) else x for x in leaves]  # fmt: skip
    each = [_Apart.apply(x, owner) if isinstance(x, Tensor) else [x] * owner.count for x in leaves]
    outputs = []
    for own in zip(*each, strict=True):
        given, named = tree_unflatten(list(own), structure)
        outputs.append(tree_flatten(function(*given, **named)))
    results = [
        _Together.apply(owner, *of_shards) if isinstance(of_shards[0], Tensor) else of_shards[0]
        for of_shards in zip(*[each for each, _ in outputs], strict=True)
    ]
    return tree_unflatten(results, outputs[0][1])


def _function(call: Call, layer: Any) -> Any:
    if call.cls is _Apart or call.cls is _Together:
        return call.plain(call.cls, call.args, call.kwargs)
    plain = lambda *args, **kwargs: call.plain(call.cls, args, kwargs)  # noqa: E731
    return apart(plain, call.args, call.kwargs, layer.owner)


RULES[Sharded] = _function
