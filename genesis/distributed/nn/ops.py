"""Collectives as ops: arrays in, new arrays out.

A group is called by its key, a string that can stand in a graph. Those in pairs are each other's transpose, and so each other's gradient: `broadcast_from` and `reduce_to`, `gather_to` and
`scatter_from`, `all_gather_stacked` and `reduce_scatter_stacked`; `all_reduce`, `sum_in_tree` and `exchange` are their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec
from genesis.base.errors import ShapeError, UnsupportedError, message
from genesis.core.call.kind import Kind, as_it_is, called
from genesis.core.call.kinds import case, primitive
from genesis.core.call.op import samples, wrong_inputs
from genesis.distributed.collectives import run
from genesis.distributed.engine import Alone
from genesis.distributed.groups import ProcessGroup, default_pg_timeout, group_keyed
from genesis.distributed.wire import wire
from genesis.kernels.cpu import memory

Array = np.ndarray[Any, Any]
_alone = ProcessGroup(Alone(), (0,), default_pg_timeout, "alone")
ALONE = _alone.key  # the group that samples are made in


class Collective(Kind):
    """Ranks that call the same op: linear in the tensors of all of them together."""

    linear = True
    packed = True
    repeatable = False  # the same arguments, and others in the other ranks


COLLECTIVE = Collective("collective")


def _collective(
    vjp: Callable[..., Any],
    infer: Callable[..., Any],
    batch: Callable[..., Any] | None = None,
    begins: Callable[..., Any] | None = None,
) -> Any:
    return primitive(
        COLLECTIVE, {"input": vjp}, infer=infer, batch=batch, begins=begins, method=False, torch_name="", dtypes="fc"
    )


def _like(input: Spec, shape: tuple[int, ...]) -> Spec:
    return Spec(shape, input.dtype, input.device)


def _combined(
    name: str, x: Array, op: str, group: str | None, start: Callable[..., Any], out_shape: Any = None
) -> Array:
    """What an engine makes of a copy of ``x``."""
    members = group_keyed(name, group)
    by, there, back = wire(name, x.dtype, op)
    sent = there(np.array(x, order="C"))
    out = sent if out_shape is None else np.empty(out_shape, sent.dtype)
    run(name, members, (x.shape, x.dtype, op), lambda: start(members.engine, out, sent, by), None, False)
    return back(out, members.engine.size).reshape(out.shape)


def _linear(name: str, op: str) -> None:
    if op not in ("sum", "mean"):
        hint = "ReduceOp.SUM, or x.detach()"
        raise UnsupportedError(message(name, f"{op.upper()} has no gradient", hint=hint))


# ---- the same shape


def _all_reduce_gradient(g: Any, op: Any, group: str | None) -> Any:
    _linear("all_reduce", op)
    return all_reduce(g, op, group)


def _checked(name: str) -> Callable[..., Spec]:
    def infer(input: Spec, op: str, group: str | None) -> Spec:
        wire(name, input.dtype, op)
        return _like(input, input.shape)

    return infer


def _all_reduce_begun(out: Array, input: Array, op: str, group: str | None) -> Any:
    members, looks = group_keyed("all_reduce", group), (input.shape, input.dtype, op)
    by, there, back = wire("all_reduce", input.dtype, op)
    if out is not input:
        np.copyto(out, input)
    sent = there(out)

    def finish() -> None:
        came = back(sent, members.engine.size)
        if not np.may_share_memory(came, out):
            np.copyto(out, came.reshape(out.shape))

    return run("all_reduce", members, looks, lambda: members.engine.all_reduce(sent, by), finish, True, (out,))


@_collective(_all_reduce_gradient, _checked("all_reduce"), as_it_is, _all_reduce_begun)
def all_reduce(input: Array, op: str, group: str | None) -> Array:
    """The combination of the arrays of all ranks."""
    return _combined("all_reduce", input, op, group, lambda engine, out, x, by: engine.all_reduce(x, by, True))


def _in_parts(input: Array, size: int) -> Array:
    """A copy with as many elements for each rank."""
    parts = memory.empty((size, -(-input.size // size)), input.dtype).reshape(-1)
    parts[: input.size], parts[input.size :] = input.reshape(-1), 0
    return parts


def _sum_in_tree_begun(out: Array, input: Array, group: str | None) -> Any:
    members, looks = group_keyed("sum_in_tree", group), (input.shape, input.dtype)
    engine, divides = members.engine, input.size % members.engine.size == 0
    if divides and out is not input:
        np.copyto(out, input)
    parts = out.reshape(-1) if divides else _in_parts(input, engine.size)

    def finish() -> None:
        if not divides:
            np.copyto(out, parts[: out.size].reshape(out.shape))

    return run("sum_in_tree", members, looks, lambda: engine.sum_in_tree(parts), finish, True, (out,))


@_collective(
    lambda g, group: sum_in_tree(g, group),
    lambda input, group: _like(input, input.shape),
    as_it_is,
    _sum_in_tree_begun,
)
def sum_in_tree(input: Array, group: str | None) -> Array:
    """The sum of the arrays of all ranks, of which there are a power of two, in the order of the tree."""
    members, shape = group_keyed("sum_in_tree", group), input.shape
    parts = _in_parts(input, members.engine.size)
    run("sum_in_tree", members, (shape, input.dtype), lambda: members.engine.sum_in_tree(parts), None, False)
    return parts[: input.size].reshape(shape)


@_collective(
    lambda g, root, group: reduce_to(g, root, "sum", group),
    lambda input, root, group: _like(input, input.shape),
    as_it_is,
)
def broadcast_from(input: Array, root: int, group: str | None) -> Array:
    """The array of one rank."""
    members, out = group_keyed("broadcast", group), np.array(input, order="C")
    run("broadcast", members, (out.shape, out.dtype, f"from {root}"),
        lambda: members.engine.broadcast(out, root), None, False)  # fmt: skip
    return out


def _reduce_gradient(g: Any, root: Any, op: Any, group: str | None) -> Any:
    _linear("reduce", op)
    gx = broadcast_from(g, root, group)
    return gx / group_keyed("reduce", group).engine.size if op == "mean" else gx


@_collective(_reduce_gradient, lambda input, root, op, group: _checked("reduce")(input, op, group), as_it_is)
def reduce_to(input: Array, root: int, op: str, group: str | None) -> Array:
    """The combination of the arrays of all ranks at one of them, zeros at the others."""
    out = _combined("reduce", input, op, group, lambda engine, out, x, by: engine.reduce(x, by, root))
    return out if group_keyed("reduce", group).engine.rank == root else np.zeros_like(out)


# ---- with a dimension of ranks in front


def _size(group: str | None) -> int:
    return group_keyed("all_gather", group).engine.size


@called("dim of ranks in front of the samples")
def _samples_behind(b: Any, x: Any, *args: Any) -> Any:
    return b.run(x, *args).movedim(1, 0)


@called("samples behind the dim of ranks")
def _samples_in_front(b: Any, x: Any, *args: Any) -> Any:
    return b.run(x.movedim(0, 1), *args)


@called("samples behind the rows")
def _samples_behind_rows(b: Any, x: Any, *args: Any) -> Any:
    return b.run(x.movedim(0, 1), *args).movedim(1, 0)


def _stacked(input: Spec, *args: Any) -> Spec:
    return _like(input, (_size(args[-1]), *input.shape))


def _block(input: Spec, *args: Any) -> Spec:
    size = _size(args[-1])
    if not input.shape or input.shape[0] != size:
        text = f"the first dimension is one of ranks, of which there are {size}"
        raise ShapeError(message("reduce_scatter", text, [("input", input)]))
    return _like(input, input.shape[1:])


def _moved(
    name: str, shape: tuple[int, ...], x: Array, detail: Any, group: str | None, start: Callable[..., Any]
) -> Array:
    members, out, source = group_keyed(name, group), np.zeros(shape, x.dtype), np.ascontiguousarray(x)
    looks = (x.shape, x.dtype, detail)
    run(name, members, looks, lambda: start(members.engine, out, source), None, False)
    return out


@_collective(lambda g, group: reduce_scatter_stacked(g, "sum", group), _stacked, _samples_behind)
def all_gather_stacked(input: Array, group: str | None) -> Array:
    """The arrays of all ranks, along a new first dimension."""
    return _moved("all_gather", (_size(group), *input.shape), input, None, group,
                  lambda engine, out, x: engine.all_gather(out, x))  # fmt: skip


def _reduce_scatter_gradient(g: Any, op: Any, group: str | None) -> Any:
    _linear("reduce_scatter", op)
    gx = all_gather_stacked(g, group)
    return gx / _size(group) if op == "mean" else gx


@_collective(_reduce_scatter_gradient, _block, _samples_in_front)
def reduce_scatter_stacked(input: Array, op: str, group: str | None) -> Array:
    """The combination of everybody's block for this rank, of a first dimension of ranks."""
    return _combined("reduce_scatter", input, op, group,
                     lambda engine, out, x, by: engine.reduce_scatter(out, x, by), input.shape[1:])  # fmt: skip


@_collective(lambda g, root, group: scatter_from(g, root, group), _stacked, _samples_behind)
def gather_to(input: Array, root: int, group: str | None) -> Array:
    """The arrays of all ranks at one of them, along a new first dimension; zeros at the others."""
    shape = (_size(group), *input.shape)
    return _moved("gather", shape, input, f"to {root}", group,
                  lambda engine, out, x: engine.gather(out if engine.rank == root else None, x, root))  # fmt: skip


@_collective(lambda g, root, group: gather_to(g, root, group), _block, _samples_in_front)
def scatter_from(input: Array, root: int, group: str | None) -> Array:
    """This rank's block of the array of one rank, whose first dimension is one of ranks."""
    return _moved("scatter", input.shape[1:], input, f"from {root}", group,
                  lambda engine, out, x: engine.scatter(out, x if engine.rank == root else None, root))  # fmt: skip


def _rows(input: Spec, sent: Any, received: Any, group: str | None) -> Spec:
    if not input.shape or sum(sent) != input.shape[0]:
        raise ShapeError(message("all_to_all", f"the blocks have {sum(sent)} rows in all", [("input", input)]))
    return _like(input, (sum(received), *input.shape[1:]))


@_collective(lambda g, sent, received, group: exchange(g, received, sent, group), _rows, _samples_behind_rows)
def exchange(input: Array, sent: tuple[int, ...], received: tuple[int, ...], group: str | None) -> Array:
    """A block of rows to each rank, and what comes from each, one behind the other."""
    members, source = group_keyed("all_to_all", group), np.ascontiguousarray(input)
    out = np.empty((sum(received), *input.shape[1:]), input.dtype)
    row = input.dtype.itemsize * int(np.prod(input.shape[1:], dtype=np.int64))
    run("all_to_all", members, (None, input.dtype),
        lambda: members.engine.all_to_all(out, source, [n * row for n in received], [n * row for n in sent]),
        None, False)  # fmt: skip
    return out


# ---- samples, in a world of one


samples(all_reduce, lambda t: [case(t(3, 2), "sum", ALONE), case(t(), "mean", ALONE), case(t(0, 2), "sum", ALONE)])
samples(sum_in_tree, lambda t: [case(t(3, 2), ALONE), case(t(), ALONE), case(t(0, 2), ALONE)])
samples(broadcast_from, lambda t: [case(t(3, 2), 0, ALONE), case(t(), 0, ALONE)])
samples(reduce_to, lambda t: [case(t(3, 2), 0, "sum", ALONE), case(t(), 0, "mean", ALONE)])
samples(all_gather_stacked, lambda t: [case(t(3, 2), ALONE), case(t(), ALONE)])
samples(reduce_scatter_stacked, lambda t: [case(t(1, 3), "sum", ALONE), case(t(1), "mean", ALONE)])
samples(gather_to, lambda t: [case(t(3, 2), 0, ALONE), case(t(), 0, ALONE)])
samples(scatter_from, lambda t: [case(t(1, 3), 0, ALONE), case(t(1), 0, ALONE)])
samples(exchange, lambda t: [case(t(3, 2), (3,), (3,), ALONE), case(t(0), (0,), (0,), ALONE)])

_BLOCKS = (
    lambda t: case(t(2, 3), "sum", ALONE),
    RuntimeError,
    "the first dimension is one of ranks, of which there are 1",
)
wrong_inputs(reduce_scatter_stacked, _BLOCKS)
wrong_inputs(scatter_from, (lambda t: case(t(2, 3), 0, ALONE), *_BLOCKS[1:]))
wrong_inputs(exchange, (lambda t: case(t(2, 3), (3,), (3,), ALONE), RuntimeError, "the blocks have 3 rows in all"))
