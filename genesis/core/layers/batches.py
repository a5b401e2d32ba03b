"""How ops act on batched arrays: on all samples at once, by a rule.

A rule ``(b, *args) -> results`` gets the arguments of the op with the hidden dimension in front of those tensors that
have one (``b.batched`` says which), and gives results with the hidden dimension in front. Where an op says nothing,
the rule follows from its kind (`core/call/kinds/`). Where there is none, one sample is computed after the other
(`sequential`), with a warning the first time.

``batch=...`` in the op's block is a rule of its own; ``decompose=...`` a function of other ops that means the same.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from genesis.arrays.batched import Batched
from genesis.arrays.spec import spec_of
from genesis.base.errors import GenesisError, GraphError, message
from genesis.core.call import computing, dispatch
from genesis.core.call.kind import called
from genesis.core.call.op import Op
from genesis.core.graph.tensor import Tensor, wrap


class Batch:
    """What a rule knows besides the arguments."""

    __slots__ = ("_operands", "batched", "level", "op", "size")

    def __init__(self, op: Op, size: int, level: int, batched: list[bool], operands: list[Any]) -> None:
        self.op, self.size, self.level = op, size, level
        self.batched = batched  # for each tensor, in order
        self._operands = operands

    @property
    def specs(self) -> list[Any]:
        """Of one sample, for each tensor."""
        return [spec_of(a) if hasattr(a, "shape") else a for a in self._operands]

    def run(self, *args: Any) -> Any:
        return dispatch.apply(self.op, args)

    def composed(self, *args: Any) -> Any:
        """The op as a function of others, at this level."""
        return decomposed(self, *args)

    def spread(self, x: Tensor, batched: bool) -> Tensor:
        """A tensor with the hidden dimension, expanded where it had none."""
        return x if batched else x.unsqueeze(0).expand(self.size, *[-1] * x.ndim)

    def padded(self, x: Tensor, batched: bool, ndim: int) -> Tensor:
        """Dimensions of size 1 behind the hidden one, so that ``ndim`` follow it."""
        if not batched or x.ndim - 1 == ndim:
            return x
        shape = x._array.shape
        return x.reshape(shape[0], *[1] * (ndim + 1 - len(shape)), *shape[1:])


def interpret(op: Op, args: tuple[Any, ...], top: Batched) -> Any:
    """The result arrays of an op on arguments among which there are batched arrays of one level, and none of a higher
    one.
    """
    level, size = top.level, top.size_hidden
    operands = args[0] if op.variadic else [args[i] for i in op.tensors]
    flags: list[bool] = []
    tensors: list[Any] = []
    from_outside = False
    for a in operands:
        if a.__class__ is Batched and a.level == level:
            if a.size_hidden != size:
                raise GraphError(message(op.name, f"samples of two batches meet, of {size} and {a.size_hidden}"))
            flags.append(a.batched)
            from_outside = from_outside or a.from_outside
            tensors.append(wrap(a.array))
        else:
            flags.append(False)
            tensors.append(wrap(a) if hasattr(a, "shape") else a)
    inner = list(args)
    if op.variadic:
        inner[0] = tensors
    else:
        for i, x in zip(op.tensors, tensors, strict=True):
            inner[i] = x
    hidden = any(flags)
    out = rule_of(op)(Batch(op, size, level, flags, operands), *inner) if hidden else dispatch.apply(op, tuple(inner))

    def around(y: Tensor) -> Any:
        # a result that is the same for all samples stays a member of the batch: its gradient is not summed twice
        return Batched(y._array, hidden, size, level, from_outside) if hidden or op.node is not None else y._array

    return tuple([around(y) for y in out]) if isinstance(out, tuple | list) else around(out)


# ---- rules


def rule_of(op: Op) -> Callable[..., Any]:
    return op.batch or op.kind.batch(op) or (sequential if op.decompose is None else decomposed)


def how(op: Op) -> str:
    """What the op matrix prints of batching."""
    if op.kind.composed or op.kind.draws:
        return "composed" if op.kind.composed else "by randomness="
    return str(getattr(rule_of(op), "words", "own rule"))


@called("composed")
def decomposed(b: Batch, *args: Any) -> Any:
    """Other ops that mean the same, called at this level."""
    flags = iter(b.batched)
    again = [
        wrap(Batched(x._array, flag, b.size, b.level)) if isinstance(x, Tensor) else x
        for x, flag in ((a, next(flags) if i in b.op.tensors else False) for i, a in enumerate(args))
    ]
    out = b.op.decompose(*again)  # type: ignore[misc]
    return tuple(_opened(b, y) for y in out) if isinstance(out, tuple) else _opened(b, out)


def _opened(b: Batch, y: Tensor) -> Tensor:
    array = y._array
    mine = isinstance(array, Batched) and array.level == b.level
    return b.spread(wrap(array.array if mine else array), mine and array.batched)


_warned: set[str] = set()


@called("one by one")
def sequential(b: Batch, *args: Any) -> Any:
    """One sample after the other."""
    if b.op.name not in _warned:
        _warned.add(b.op.name)
        warnings.warn(
            message("vmap", f"{b.op.name} has no rule for batches, it is computed for one sample after the other"),
            UserWarning,
            stacklevel=6,
        )
    results = []
    for i in range(b.size):
        flags = iter(b.batched)

        def sample(x: Any, flags: Any = flags, i: int = i) -> Any:
            flag = next(flags)
            return x[i] if flag else x

        one = [
            [sample(x) for x in a] if isinstance(a, list) else sample(a) if k in b.op.tensors else a
            for k, a in enumerate(args)
        ]
        results.append(b.run(*one))
    return stacked(b.op.name, results)


def stacked(name: str, results: Sequence[Any]) -> Any:
    """The results of all samples, with the hidden dimension in front."""
    stack = dispatch.public("stack")
    try:
        if isinstance(results[0], tuple | list):
            return tuple(stack(list(column)) for column in zip(*results, strict=True))
        return stack(list(results))
    except GenesisError as error:
        raise GraphError(
            message(
                name,
                "the shape of the result differs from sample to sample",
                operands=[("shapes", _shapes(results))],
                hint="the shape depends on the data, which vmap cannot do: use where and masks, or loop over the "
                "samples",
            )
        ) from error


def _shapes(results: Sequence[Any]) -> str:
    return ", ".join(str(list(r.shape)) for r in results[:4] if isinstance(r, Tensor))


computing.INTERPRETERS[Batched] = interpret

__all__ = ["Batch", "how", "interpret", "rule_of", "sequential", "stacked"]
