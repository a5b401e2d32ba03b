"""Messages from one rank to another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from genesis.base.errors import ArgumentError, ArgumentValueError, DistributedError, message
from genesis.core.graph.site import site_here
from genesis.distributed.calls import Call, Work
from genesis.distributed.groups import ProcessGroup, check_rank, group_of, rank_in
from genesis.distributed.memory import Memory


def isend(
    tensor: Any, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None
) -> Work:  # fmt: skip
    """Begin to send a tensor to a rank, which calls `recv` or `irecv`; returns a `Work`.

    Args:
        dst: the rank in the world; or ``group_dst``, the rank in the group
        tag: a number that both sides give
    """
    members = group_of("isend", group)
    to = _other("isend", members, dst, group_dst)
    return begin_send(members, tensor, to, tag, f"to {to}")


def begin_send(members: ProcessGroup, tensor: Any, to: int, tag: int, detail: str) -> Work:
    """Begin to send a tensor to a rank of a group; reports call it by ``detail``."""
    host = Memory("isend", tensor).host
    request = members.engine.send(host, to, tag)
    return Work(members.calls, _call("send", host, detail), None, request, None, (tensor,))


def irecv(
    tensor: Any, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None
) -> Work:  # fmt: skip
    """Begin to receive a tensor of this shape and dtype, from a rank or (``src=None``) from any; returns a `Work`."""
    members = group_of("irecv", group)
    source = None if src is None and group_src is None else _other("irecv", members, src, group_src)
    return begin_receive(members, tensor, source, tag, None if source is None else f"from {source}")


def begin_receive(members: ProcessGroup, tensor: Any, source: int | None, tag: int, detail: str | None) -> Work:
    """Begin to receive a tensor from a rank of a group, or from any; reports call it by ``detail``."""
    memory = Memory("irecv", tensor, writes=True)
    into = np.empty_like(memory.host)
    request: Any = members.engine.receive(into, source, tag)

    def finish() -> None:
        if request.bytes != into.nbytes:
            text = f"rank {members.ranks[request.sender]} sent {request.bytes} bytes, the tensor has {into.nbytes}"
            raise DistributedError(
                message("recv", text, [("tensor", tensor._spec())], "one shape and dtype on both sides")
            )
        memory.write(into)

    return Work(members.calls, _call("recv", into, detail), None, request, finish, (tensor,))


def send(tensor: Any, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None) -> None:
    """Send a tensor to a rank, which calls `recv`: `isend`, and wait.

    >>> import genesis, genesis.distributed as dist
    >>> dist.init_process_group()
    >>> dist.send(genesis.ones(2), dst=0)
    >>> x = genesis.zeros(2); dist.recv(x), x
    (0, tensor([1., 1.]))
    >>> dist.destroy_process_group()
    """
    isend(tensor, dst, group, tag, group_dst).wait()


def recv(tensor: Any, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> int:
    """Receive a tensor from a rank, or (``src=None``) from any; returns the rank in the world that sent it."""
    work = irecv(tensor, src, group, tag, group_src)
    work.wait()
    return work.source_rank()


class P2POp:
    """A message for `batch_isend_irecv`: ``P2POp(isend, tensor, peer)``."""

    def __init__(
        self, op: Callable[..., Work], tensor: Any, peer: int | None = None, group: Any = None, tag: int = 0,
        group_peer: int | None = None,
    ) -> None:  # fmt: skip
        if op not in (isend, irecv):
            raise ArgumentError(message("P2POp", f"op is {op!r}, expected isend or irecv"))
        self.op, self.tensor, self.peer, self.group, self.tag, self.group_peer = (
            op,
            tensor,
            peer,
            group,
            tag,
            group_peer,
        )


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Work]:
    """Begin several messages at once.

    >>> import genesis, genesis.distributed as dist
    >>> dist.init_process_group()
    >>> x = genesis.zeros(2)
    >>> works = dist.batch_isend_irecv([dist.P2POp(dist.isend, genesis.ones(2), 0), dist.P2POp(dist.irecv, x, 0)])
    >>> [work.wait() for work in works], x
    ([True, True], tensor([1., 1.]))
    >>> dist.destroy_process_group()
    """
    if not p2p_op_list or not all([isinstance(each, P2POp) for each in p2p_op_list]):
        raise ArgumentValueError(message("batch_isend_irecv", "expected a list of P2POp, at least one"))
    return [each.op(each.tensor, each.peer, each.group, each.tag, each.group_peer) for each in p2p_op_list]


def _other(name: str, members: ProcessGroup, of_world: int | None, of_group: int | None) -> int:
    if of_world is None and of_group is None:
        raise ArgumentValueError(message(name, "no rank is given", hint="dst=1"))
    return check_rank(name, members, of_group) if of_world is None else rank_in(name, members, of_world)


def _call(name: str, host: Any, detail: str | None) -> Call:
    """What a message is called in reports; it has no number, as only two ranks know of it."""
    return Call(0, name, (host.shape, host.dtype, detail), *site_here())
