"""Collectives that move the elements of tensors between ranks, under the names of ``torch.distributed``; they act on memory,
as `reductions` do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.base.errors import ArgumentError, message
from genesis.distributed import devices
from genesis.distributed.calls import Work
from genesis.distributed.collectives import (
    check_blocks,
    check_count,
    check_given_at,
    listed,
    looks_of,
    root_of,
    run,
    split_bytes,
    spread_out,
)
from genesis.distributed.groups import group_of
from genesis.distributed.memory import Memory, apart


def broadcast(
    tensor: Any, src: int | None = None, group: Any = None, async_op: bool = False, group_src: int | None = None
) -> Work | None:
    """``tensor`` becomes that of one rank.

    Args:
        src: the rank in the world; or ``group_src``, the rank in the group

    >>> import genesis, genesis.distributed as dist
    >>> dist.init_process_group()
    >>> x = genesis.ones(2); dist.broadcast(x, src=0); x
    tensor([1., 1.])
    >>> dist.destroy_process_group()
    """
    members = group_of("broadcast", group)
    root, engine = root_of("broadcast", members, src, group_src, "src"), members.engine
    there = devices.engine_of(members, tensor)
    if there is not None:
        here = engine.rank != root
        told = devices.moved("broadcast", tensor, tensor, lambda out, x: there.broadcast(x, root), here=here)
        return run(
            "broadcast",
            members,
            (*looks_of(tensor), f"from {root}"),
            told.start,
            told.finish,
            async_op,
            (tensor,),
            early=False,
        )
    memory = Memory("broadcast", tensor, writes=engine.rank != root)
    host = memory.host
    finish = None if engine.rank == root else lambda: memory.write(host)
    return run("broadcast", members, (host.shape, host.dtype, f"from {root}"),
               lambda: engine.broadcast(host, root), finish, async_op, (tensor,))  # fmt: skip


def all_gather_into_tensor(
    output_tensor: Any, input_tensor: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """``output_tensor`` becomes everybody's ``input_tensor``, one behind the other along the first dimension, or along a
    new one in front.

    >>> import genesis, genesis.distributed as dist
    >>> dist.init_process_group()
    >>> out = genesis.zeros(1, 2); dist.all_gather_into_tensor(out, genesis.ones(2)); out
    tensor([[1., 1.]])
    >>> dist.destroy_process_group()
    """
    name = "all_gather_into_tensor"
    members = group_of(name, group)
    there = devices.engine_of(members, output_tensor, input_tensor)
    if there is not None:
        check_blocks(name, input_tensor, output_tensor, members.engine.size, "input_tensor", "output_tensor")
        told = devices.moved(name, output_tensor, input_tensor, there.all_gather)
        return run(
            name, members, looks_of(input_tensor), told.start, told.finish, async_op, (output_tensor,), early=False
        )
    out, source = Memory(name, output_tensor, writes=True), Memory(name, input_tensor)
    check_blocks(name, input_tensor, output_tensor, members.engine.size, "input_tensor", "output_tensor")
    into = np.empty(out.host.shape, out.host.dtype) if out.copied else out.host
    return run(name, members, (source.host.shape, source.host.dtype),
               lambda: members.engine.all_gather(into, source.host), lambda: out.write(into), async_op,
               (output_tensor,))  # fmt: skip


def all_gather(tensor_list: list[Any], tensor: Any, group: Any = None, async_op: bool = False) -> Work | None:
    """The tensors of ``tensor_list``, one for each rank, become everybody's ``tensor``."""
    members = group_of("all_gather", group)
    size, source = members.engine.size, Memory("all_gather", tensor)
    outs = listed("all_gather", "tensor_list", tensor_list, tensor, size, writes=True)
    into = np.empty((size, *source.host.shape), source.host.dtype)
    return run("all_gather", members, (source.host.shape, source.host.dtype),
               lambda: members.engine.all_gather(into, source.host), lambda: spread_out(outs, into), async_op,
               tensor_list)  # fmt: skip


def gather(
    tensor: Any,
    gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """The tensors of ``gather_list``, which one rank gives, become everybody's ``tensor``.

    Args:
        dst: the rank in the world that has a ``gather_list``, 0 by default; or ``group_dst``, the rank in the group
    """
    members = group_of("gather", group)
    root, engine = root_of("gather", members, dst, group_dst, "dst", default=0), members.engine
    source, here = Memory("gather", tensor), engine.rank == root
    check_given_at("gather", "gather_list", gather_list, root, here)
    outs = listed("gather", "gather_list", gather_list, tensor, engine.size, writes=True) if here else []
    into = np.empty((engine.size, *source.host.shape), source.host.dtype) if here else None

    return run("gather", members, (source.host.shape, source.host.dtype, f"to {root}"),
               lambda: engine.gather(into, source.host, root), lambda: spread_out(outs, into), async_op,
               gather_list or ())  # fmt: skip


def scatter(
    tensor: Any,
    scatter_list: list[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """``tensor`` becomes the one for this rank in the ``scatter_list`` that one rank gives.

    Args:
        src: the rank in the world that has a ``scatter_list``, 0 by default; or ``group_src``, the rank in the group
    """
    members = group_of("scatter", group)
    root, engine = root_of("scatter", members, src, group_src, "src", default=0), members.engine
    out, here = Memory("scatter", tensor, writes=True), engine.rank == root
    check_given_at("scatter", "scatter_list", scatter_list, root, here)
    sources = listed("scatter", "scatter_list", scatter_list, tensor, engine.size) if here else []
    sent = np.stack([each.host for each in sources]) if here else None

    return run("scatter", members, (out.host.shape, out.host.dtype, f"from {root}"),
               lambda: engine.scatter(out.host, sent, root), lambda: out.write(out.host), async_op, (tensor,))  # fmt: skip


def all_to_all_single(
    output: Any,
    input: Any,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Each rank sends a block of ``input`` to each, and puts what it gets one behind the other into ``output``.

    Args:
        input_split_sizes: of the blocks that are sent, along the first dimension; equal ones by default
        output_split_sizes: of the blocks that come

    >>> import genesis, genesis.distributed as dist
    >>> dist.init_process_group()
    >>> out = genesis.zeros(2); dist.all_to_all_single(out, genesis.ones(2)); out
    tensor([1., 1.])
    >>> dist.destroy_process_group()
    """
    name = "all_to_all_single"
    members = group_of(name, group)
    out, source = Memory(name, output, writes=True), Memory(name, input)
    if output.dtype != input.dtype:
        raise ArgumentError(message(name, f"output is {output.dtype}, input {input.dtype}", hint="give both one dtype"))
    received = split_bytes(name, out.host, output_split_sizes, members.engine.size, "output")
    sent = split_bytes(name, source.host, input_split_sizes, members.engine.size, "input")
    into = apart(out, source.host)
    return run(name, members, (None, source.host.dtype),
               lambda: members.engine.all_to_all(into, source.host, received, sent), lambda: out.write(into),
               async_op, (output,))  # fmt: skip


def all_to_all(
    output_tensor_list: list[Any], input_tensor_list: list[Any], group: Any = None, async_op: bool = False
) -> Work | None:
    """Each rank sends a tensor of ``input_tensor_list`` to each, and gets one from each; their sizes may differ."""
    members = group_of("all_to_all", group)
    outs = [Memory("all_to_all", each, writes=True) for each in output_tensor_list]
    sources = [Memory("all_to_all", each) for each in input_tensor_list]
    for what, given in (("output_tensor_list", outs), ("input_tensor_list", sources)):
        check_count("all_to_all", what, len(given), members.engine.size)
    dtype = sources[0].host.dtype
    if any([each.host.dtype != dtype for each in (*outs, *sources)]):
        raise ArgumentError(message("all_to_all", "the tensors have several dtypes", hint="convert them to one"))
    sent = np.concatenate([each.host.reshape(-1) for each in sources])
    into = np.empty(sum([each.host.size for each in outs]), dtype)

    def finish() -> None:
        begin = 0
        for each in outs:
            each.write(into[begin : begin + each.host.size].reshape(each.host.shape))
            begin += each.host.size

    return run("all_to_all", members, (None, dtype),
               lambda: members.engine.all_to_all(into, sent, [each.host.nbytes for each in outs],
                                                   [each.host.nbytes for each in sources]),
               finish, async_op, output_tensor_list)  # fmt: skip
