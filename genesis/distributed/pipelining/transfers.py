"""What stages send each other: values of Python with tensors in them.

Each value begins with a message that says how its tensors look, so stages need not know before what they get, and batches
may have any size. Sends are begun and waited for at the end of a step: a rank that computes in any order of its own never
waits for another one to receive, however large the tensors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.base import dtypes
from genesis.base.errors import DistributedError, UnsupportedError, message
from genesis.base.pytree import tree_flatten, tree_map, tree_unflatten
from genesis.core.graph.tensor import Tensor, wrap
from genesis.distributed import messages, objects
from genesis.distributed.calls import Work
from genesis.distributed.groups import ProcessGroup
from genesis.distributed.sharded import DTensor
from genesis.ops.creation.create import empty

_TAG = 1 << 14  # of what stage 0 gets; programs use small numbers
_HEADER = 1024  # bytes of the first message, which what is said of a few tensors fits into
_SIZE = 8  # bytes of it that say how many there are
_KINDS = ("activations", "gradients")


class Transfers:
    """What the stages of one rank send and receive in a step.

    Args:
        ranks: of each stage, within the group
        trains: whether the step has a backward, which all stages must know
    """

    def __init__(self, group: ProcessGroup, ranks: list[int], trains: bool) -> None:
        self.group, self.ranks, self.trains = group, ranks, trains
        self._sent: list[Work] = []
        self._here: dict[tuple[str, int, int], Any] = {}  # from a stage of this rank to another of it
        self._came: dict[tuple[str, int, int], Any] = {}  # before it was asked for

    def send(self, values: Any, kind: str, to: int, microbatch: int) -> None:
        """Begin to send ``activations`` or ``gradients`` to a stage."""
        rank = self.ranks[to]
        if rank == self.group.engine.rank:
            self._here[kind, to, microbatch] = values
            return
        self._sent = [work for work in self._sent if not work.is_completed()]
        leaves, structure = tree_flatten(values)
        said = self.trains, microbatch, tree_unflatten(range(len(leaves)), structure), [_said(x) for x in leaves]
        header = objects.encode(f"the stage before stage {to}" if kind == "activations" else f"stage {to + 1}", said)
        header = np.concatenate([np.array([header.size]).view(np.uint8), header])
        parts = [_padded(header[:_HEADER]), *([header[_HEADER:]] if header.size > _HEADER else [])]
        tag, detail = _tag(kind, to), f"{kind} to stage {to}, microbatch {microbatch}"
        for x in [*map(wrap, parts), *[x.detach() for x in leaves if isinstance(x, Tensor)]]:
            self._sent.append(messages.begin_send(self.group, x, rank, tag, detail))

    def receive(self, kind: str, to: int, microbatch: int, device: Any) -> Any:
        """What was sent so; its tensors are leaves that require grad where those that were sent did."""
        key = kind, to, microbatch
        if self.ranks[_other(kind, to)] == self.group.engine.rank:
            return tree_map(_leaf, self._here.pop(key))
        while key not in self._came:  # the other stage may have another order
            number, values = self._next(*key, device)
            self._came[kind, to, number] = values
        return self._came.pop(key)

    def _next(self, kind: str, to: int, microbatch: int, device: Any) -> tuple[int, Any]:
        """The next message, and of which microbatch it is; ``microbatch`` is the one that is waited for."""
        header = self._received(np.empty(_HEADER, np.uint8), kind, to, microbatch)
        size = int(header[:_SIZE].view(np.int64)[0]) + _SIZE
        if size > _HEADER:
            header = np.concatenate([header, self._received(np.empty(size - _HEADER, np.uint8), kind, to, microbatch)])
        trains, number, skeleton, said = objects.decode(header[_SIZE:size])
        if trains is not self.trains:
            other, own = ("step", "eval") if trains else ("eval", "step")
            text = f"stage {_other(kind, to)} is in {other}(), stage {to} in {own}()"
            raise DistributedError(
                message("schedule", text, hint="the same calls in all ranks, with a loss_fn in all or none")
            )
        leaves = [self._made(each, kind, to, microbatch, device) for each in said]
        return number, tree_map(lambda i: leaves[i], skeleton)

    def _received(self, array: Any, kind: str, to: int, microbatch: int) -> Any:
        self._wait(wrap(array), kind, to, microbatch)
        return array

    def _made(self, said: Any, kind: str, to: int, microbatch: int, device: Any) -> Any:
        if len(said) == 1:
            return said[0]
        dtype, shape, requires_grad = said
        x = empty(*shape, dtype=dtypes.as_dtype(dtype), device=device)
        self._wait(x, kind, to, microbatch)
        return x.requires_grad_(requires_grad)

    def _wait(self, x: Tensor, kind: str, to: int, microbatch: int) -> None:
        other = _other(kind, to)
        detail = f"{kind} from stage {other}, microbatch {microbatch}"
        messages.begin_receive(self.group, x, self.ranks[other], _tag(kind, to), detail).wait()

    def finish(self) -> None:
        """Wait until all that was sent is received."""
        for work in self._sent:
            work.wait()
        self._sent.clear()


def _other(kind: str, to: int) -> int:
    """The stage that sends."""
    return to - 1 if kind == "activations" else to + 1


def _tag(kind: str, to: int) -> int:
    return _TAG + 2 * to + _KINDS.index(kind)


def _said(x: Any) -> tuple[Any, ...]:
    """How a tensor looks; or a value that is none, by itself."""
    if not isinstance(x, Tensor):
        return (x,)
    if isinstance(x, DTensor):
        text = "a stage gives a DTensor to another rank, which would get this rank's part"
        raise UnsupportedError(message("schedule", text, [("result", x._spec())], "x.to_local(), or x.full_tensor()"))
    return str(x.dtype).rpartition(".")[2], list(x.shape), x.requires_grad


def _padded(header: Any) -> Any:
    return np.concatenate([header, np.zeros(_HEADER - header.size, np.uint8)])


def _leaf(x: Any) -> Any:
    return x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x
