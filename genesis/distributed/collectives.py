"""Collectives that write into tensors, under the names of ``torch.distributed``.

They act on memory: nothing of them is recorded, so tensors with a history are refused where they are written to.
`genesis.distributed.nn.functional` has those with gradients.
"""

from __future__ import annotations

import enum
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from genesis.base.errors import ArgumentError, ArgumentValueError, ShapeError, message
from genesis.core.graph.switches import TRANSFERS
from genesis.distributed import devices
from genesis.distributed.calls import Work, note
from genesis.distributed.engine import Host, Request
from genesis.distributed.groups import ProcessGroup, check_rank, group_of, rank_in
from genesis.distributed.memory import Memory, apart
from genesis.distributed.wire import wire

_SMALL = 2**16  # bytes: what costs less than that ranks wait for each other a second time


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


def run(
    name: str,
    members: ProcessGroup,
    looks: tuple[Any, ...],
    start: Callable[[], Request],
    finish: Callable[[], None] | None,
    async_op: bool,
    result: Sequence[Any] = (),
    early: bool = True,
) -> Work | None:
    """One collective call: agreed on, then done (None), or on its way (a `Work`).

    Args:
        early: whether a small transfer may be on its way while that is found out
    """
    calls = members.calls
    call, agreement = calls.begin(name, looks)
    if async_op:
        return Work(calls, call, agreement, start(), finish, result)
    shape, dtype = looks[:2]
    small = early and shape is not None and math.prod(shape) * dtype.itemsize <= _SMALL
    begun = time.perf_counter_ns() if TRANSFERS else 0
    begun_already = start() if small else None
    calls.meet(call, agreement)
    calls.wait(call, start() if begun_already is None else begun_already)
    if begun:
        note("communication", call, begun)
    if finish is not None:
        finish()
    return None


def looks_of(tensor: Any) -> tuple[Any, Any]:
    """What ranks have to agree about, of a tensor."""
    return tensor._array.shape, tensor._array.dtype


# ---- combined


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

    looks = host.shape, host.dtype, how
    return run(
        "all_reduce", members, looks, lambda: engine.all_reduce(sent, by, not async_op), finish, async_op, (tensor,)
    )


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
        _blocks(name, output, input, members.engine.size, "output", "input")
        told = devices.combined(name, there, output, input, how, there.reduce_scatter)
        return run(name, members, (*looks_of(output), how), told.start, told.finish, async_op, (output,), early=False)
    out, source = Memory(name, output, writes=True), Memory(name, input)
    _blocks(name, output, input, members.engine.size, "output", "input")
    return _reduce_scatter(name, members, how, out, source.host, async_op)


def reduce_scatter(
    output: Any, input_list: Sequence[Any], op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """``output`` becomes the combination of everybody's tensor for this rank: ``input_list`` has one for each."""
    name = "reduce_scatter"
    members, how = group_of(name, group), op_named(name, op)
    out = Memory(name, output, writes=True)
    sources = _listed(name, "input_list", input_list, output, members.engine.size)
    return _reduce_scatter(name, members, how, out, np.stack([each.host for each in sources]), async_op)


def _reduce_scatter(name: str, members: ProcessGroup, how: str, out: Memory, source: Host, later: bool) -> Work | None:
    by, there, back = wire(name, source.dtype, how)
    sent = there(source)
    block = apart(out, sent)
    engine = members.engine
    return run(name, members, (out.host.shape, out.host.dtype, how), lambda: engine.reduce_scatter(block, sent, by),
               lambda: out.write(back(block, engine.size)), later, (out.tensor,))  # fmt: skip


# ---- moved


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
        _blocks(name, input_tensor, output_tensor, members.engine.size, "input_tensor", "output_tensor")
        told = devices.moved(name, output_tensor, input_tensor, there.all_gather)
        return run(
            name, members, looks_of(input_tensor), told.start, told.finish, async_op, (output_tensor,), early=False
        )
    out, source = Memory(name, output_tensor, writes=True), Memory(name, input_tensor)
    _blocks(name, input_tensor, output_tensor, members.engine.size, "input_tensor", "output_tensor")
    into = np.empty(out.host.shape, out.host.dtype) if out.copied else out.host
    return run(name, members, (source.host.shape, source.host.dtype),
               lambda: members.engine.all_gather(into, source.host), lambda: out.write(into), async_op,
               (output_tensor,))  # fmt: skip


def all_gather(tensor_list: list[Any], tensor: Any, group: Any = None, async_op: bool = False) -> Work | None:
    """The tensors of ``tensor_list``, one for each rank, become everybody's ``tensor``."""
    members = group_of("all_gather", group)
    size, source = members.engine.size, Memory("all_gather", tensor)
    outs = _listed("all_gather", "tensor_list", tensor_list, tensor, size, writes=True)
    into = np.empty((size, *source.host.shape), source.host.dtype)
    return run("all_gather", members, (source.host.shape, source.host.dtype),
               lambda: members.engine.all_gather(into, source.host), lambda: _spread(outs, into), async_op,
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
    _given_at("gather", "gather_list", gather_list, root, here)
    outs = _listed("gather", "gather_list", gather_list, tensor, engine.size, writes=True) if here else []
    into = np.empty((engine.size, *source.host.shape), source.host.dtype) if here else None

    return run("gather", members, (source.host.shape, source.host.dtype, f"to {root}"),
               lambda: engine.gather(into, source.host, root), lambda: _spread(outs, into), async_op,
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
    _given_at("scatter", "scatter_list", scatter_list, root, here)
    sources = _listed("scatter", "scatter_list", scatter_list, tensor, engine.size) if here else []
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
    received = _split_bytes(name, out.host, output_split_sizes, members.engine.size, "output")
    sent = _split_bytes(name, source.host, input_split_sizes, members.engine.size, "input")
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
        _as_many("all_to_all", what, len(given), members.engine.size)
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


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None, timeout: Any = None) -> Work | None:
    """Wait until all ranks are here.

    Args:
        timeout: a `datetime.timedelta`, where it is another than the group's
        device_ids: accepted for PyTorch's sake
    """
    calls = group_of("barrier", group).calls
    call, agreement = calls.begin("barrier")
    if async_op:
        return Work(calls, call, agreement, agreement)
    calls.meet(call, agreement, None if timeout is None else timeout.total_seconds())
    return None


def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
    """`barrier`: what it raises names every rank that did not come, whatever ``wait_all_ranks``."""
    barrier(group, timeout=timeout)


# ---- what arguments have to be


def root_of(
    name: str,
    members: ProcessGroup,
    of_world: int | None,
    of_group: int | None,
    what: str,
    *,
    default: int | None = None,
) -> int:
    """The rank in a group that one of two arguments names, checked; ``default``: the one in the world if neither does."""
    if of_world is None and of_group is None:
        of_world = default
    if (of_world is None) == (of_group is None):
        problem = (
            f"neither {what} nor group_{what} is given"
            if of_world is None
            else f"both {what} and group_{what} are given"
        )
        raise ArgumentValueError(message(name, problem, hint=f"{what}=0"))
    return check_rank(name, members, of_group) if of_world is None else rank_in(name, members, of_world)


def _blocks(name: str, one: Any, all_: Any, size: int, what: str, whole: str) -> None:
    """``all_`` must be ``size`` times as large as ``one``, along the first dimension or a new one."""
    shape, of_all = tuple(one.shape), tuple(all_.shape)
    joined = (size * shape[0], *shape[1:]) if shape else (size,)
    if of_all not in ((size, *shape), joined):
        raise ShapeError(message(name, f"{whole} is {list(of_all)}, {what} {list(shape)}, and there are {size} ranks",
                                 hint=f"{whole} of shape {list(joined)}"))  # fmt: skip
    if one.dtype != all_.dtype:
        raise ArgumentError(message(name, f"{whole} is {all_.dtype}, {what} {one.dtype}", hint="give both one dtype"))


def _listed(name: str, what: str, tensors: Any, like: Any, size: int, writes: bool = False) -> list[Memory]:
    """The memory of a list of tensors, one for each rank, that look like another."""
    if not isinstance(tensors, list | tuple):
        raise ArgumentError(message(name, f"{what} is {type(tensors).__name__}, expected a list of tensors"))
    _as_many(name, what, len(tensors), size)
    memories = [Memory(name, each, writes) for each in tensors]
    for i, each in enumerate(tensors):
        if each.shape != like.shape or each.dtype != like.dtype:
            text = f"{what}[{i}] is {each._spec()}, the tensor {like._spec()}"
            raise ShapeError(message(name, text, hint="tensors that look alike"))
    return memories


def _as_many(name: str, what: str, count: int, size: int) -> None:
    if count != size:
        raise ArgumentValueError(message(name, f"{what} has {count} tensors, the group {size} ranks", hint="one each"))


def _given_at(name: str, what: str, given: Any, root: int, here: bool) -> None:
    if here and given is None:
        raise ArgumentValueError(message(name, f"{what} is None at rank {root}", hint="a tensor for each rank"))
    if given and not here:
        raise ArgumentValueError(message(name, f"{what} is given at another rank than {root}", hint=f"{what}=None"))


def split_sizes(name: str, shape: tuple[int, ...], sizes: Sequence[int] | None, count: int, what: str) -> list[int]:
    """How many rows each block has, of so many blocks along the first dimension; equal ones where nothing is said."""
    length = shape[0] if shape else 0
    if sizes is None or not len(sizes):
        if not shape or length % count:
            text = f"{what} has {length} rows, which do not divide among {count} ranks"
            raise ShapeError(message(name, text, hint=f"{what}_split_sizes"))
        return [length // count] * count
    if len(sizes) != count or sum(sizes) != length or min(sizes) < 0:
        text = f"{what}_split_sizes are {list(sizes)}, {what} has {length} rows and the group {count} ranks"
        raise ShapeError(message(name, text, hint="sizes that sum to the rows, one for each rank"))
    return list(sizes)


def _split_bytes(name: str, x: Host, sizes: Sequence[int] | None, count: int, what: str) -> list[int]:
    row = x.nbytes // x.shape[0] if x.ndim and x.shape[0] else 0
    return [n * row for n in split_sizes(name, x.shape, sizes, count, what)]


def _spread(outs: Sequence[Memory], into: Any) -> None:
    for i, each in enumerate(outs):
        each.write(into[i])
