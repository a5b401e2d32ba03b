"""Collectives that combine the tensors of all ranks, under the names of ``torch.distributed``.

They act on memory: nothing of them is recorded, so tensors with a history are refused where they are written to.
`genesis.distributed.nn.functional` has those with gradients.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.base.errors import ArgumentError, message
from genesis.distributed import devices
from genesis.distributed.calls import Work
from genesis.distributed.collectives import check_blocks, listed, looks_of, root_of, run
from genesis.distributed.engine import Host, Request
from genesis.distributed.groups import ProcessGroup, group_of
from genesis.distributed.memory import Memory, apart
from genesis.distributed.wire import wire


class ReduceOp(enum.Enum):
    """How elements are combined. AVG is of floats and complex numbers, the last three of integers and booleans."""

    SUM = "sum"
    AVG = "mean"
    PRODUCT = "product"
    MIN = "min"
    MAX = "max"
    BAND = "band"
    BOR = "bor"
    BXOR = "bxor"

    def __repr__(self) -> str:
        return f"ReduceOp.{self.name}"


reduce_op = ReduceOp
setattr(ReduceOp, "RedOpType", ReduceOp)  # the class of SUM and the others, which in PyTorch is another one  # noqa: B010


def op_named(name: str, op: Any) -> str:
    """What a `ReduceOp` stands for, checked."""
    if op.__class__ is not ReduceOp:
        raise ArgumentError(message(name, f"op is {op!r}, expected a ReduceOp", hint="ReduceOp.SUM"))
    return op._value_  # type: ignore[no-any-return]


def all_reduce(tensor: Any, op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """``tensor`` becomes the combination of the tensors of all ranks, with the same bits everywhere.

    16-bit floats are summed in float32 and rounded once; NaN wins in MIN and MAX.

    Args:
        op: how they are combined
        group: which ranks; all of them by default
        async_op: return a `Work` at once, whose ``wait()`` ends when the result is there

    Raises:
        RuntimeError: ranks disagree in shape, dtype or op, or do not come; the tensor has a history

    >>> import genesis, genesis.distributed as dist
    >>> dist.init_process_group()
    >>> x = genesis.ones(2); dist.all_reduce(x); x
    tensor([1., 1.])
    >>> dist.destroy_process_group()
    """
    members, how = group_of("all_reduce", group), op_named("all_reduce", op)
    there = devices.engine_of(members, tensor, op=how)
    if there is not None:
        told = devices.combined("all_reduce", there, tensor, tensor, how, lambda out, x, by: there.all_reduce(x, by))
        return run(
            "all_reduce", members, (*looks_of(tensor), how), told.start, told.finish, async_op, (tensor,), early=False
        )
    memory = Memory("all_reduce", tensor, writes=True)
    host, engine = memory.host, members.engine
    by, there, back = wire("all_reduce", host.dtype, how)
    sent = there(host)

    def finish() -> None:
        memory.write(back(sent, engine.size))

    def start() -> Request:
        return engine.all_reduce(sent, by, not async_op)

    looks = host.shape, host.dtype, how
    return run("all_reduce", members, looks, start, finish, async_op, (tensor,), site=memory.site)


def reduce(
    tensor: Any,
    dst: int | None = None,
    op: ReduceOp = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """``tensor`` at one rank becomes the combination of all; the others keep theirs.

    Args:
        dst: the rank in the world; or ``group_dst``, the rank in the group
    """
    members, how = group_of("reduce", group), op_named("reduce", op)
    root = root_of("reduce", members, dst, group_dst, "dst")
    engine, there = members.engine, devices.engine_of(members, tensor, op=how)
    if there is not None:
        told = devices.combined("reduce", there, tensor, tensor, how, lambda out, x, by: there.reduce(x, by, root),
                                here=engine.rank == root)  # fmt: skip
        return run(
            "reduce",
            members,
            (*looks_of(tensor), how, f"to {root}"),
            told.start,
            told.finish,
            async_op,
            (tensor,),
            early=False,
        )
    memory = Memory("reduce", tensor, writes=engine.rank == root)
    by, there, back = wire("reduce", memory.host.dtype, how)
    sent = there(memory.host)

    def finish() -> None:
        if engine.rank == root:
            memory.write(back(sent, engine.size))

    return run("reduce", members, (memory.host.shape, memory.host.dtype, how, f"to {root}"),
               lambda: engine.reduce(sent, by, root), finish, async_op, (tensor,))  # fmt: skip


def reduce_scatter_tensor(
    output: Any, input: Any, op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """``output`` becomes the combination of everybody's block for this rank: ``input`` has one for each, along its first
    dimension.

    >>> import genesis, genesis.distributed as dist
    >>> dist.init_process_group()
    >>> out = genesis.zeros(2); dist.reduce_scatter_tensor(out, genesis.ones(2)); out
    tensor([1., 1.])
    >>> dist.destroy_process_group()
    """
    name = "reduce_scatter_tensor"
    members, how = group_of(name, group), op_named(name, op)
    there = devices.engine_of(members, output, input, op=how)
    if there is not None:
        check_blocks(name, output, input, members.engine.size, "output", "input")
        told = devices.combined(name, there, output, input, how, there.reduce_scatter)
        return run(name, members, (*looks_of(output), how), told.start, told.finish, async_op, (output,), early=False)
    out, source = Memory(name, output, writes=True), Memory(name, input)
    check_blocks(name, output, input, members.engine.size, "output", "input")
    return _reduce_scatter(name, members, how, out, source.host, async_op)


def reduce_scatter(
    output: Any, input_list: Sequence[Any], op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """``output`` becomes the combination of everybody's tensor for this rank: ``input_list`` has one for each."""
    name = "reduce_scatter"
    members, how = group_of(name, group), op_named(name, op)
    out = Memory(name, output, writes=True)
    sources = listed(name, "input_list", input_list, output, members.engine.size)
    return _reduce_scatter(name, members, how, out, np.stack([each.host for each in sources]), async_op)


def _reduce_scatter(name: str, members: ProcessGroup, how: str, out: Memory, source: Host, later: bool) -> Work | None:
    by, there, back = wire(name, source.dtype, how)
    sent = there(source)
    block = apart(out, sent)
    engine = members.engine
    return run(name, members, (out.host.shape, out.host.dtype, how), lambda: engine.reduce_scatter(block, sent, by),
               lambda: out.write(back(block, engine.size)), later, (out.tensor,))  # fmt: skip
