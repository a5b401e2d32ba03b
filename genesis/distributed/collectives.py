"""What every collective does: its arguments are checked, ranks agree about the call, and it is made. `reductions` and
`movement` have the collectives themselves.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any

from genesis.base.errors import ArgumentError, ArgumentValueError, ShapeError, message
from genesis.core.graph.switches import TRANSFERS
from genesis.distributed.calls import Work, note
from genesis.distributed.engine import Host, Request
from genesis.distributed.groups import ProcessGroup, check_rank, group_of, rank_in
from genesis.distributed.memory import Memory

_SMALL = 2**16  # bytes: what costs less than that ranks wait for each other a second time


def run(
    name: str,
    members: ProcessGroup,
    looks: tuple[Any, ...],
    start: Callable[[], Request],
    finish: Callable[[], None] | None,
    async_op: bool,
    result: Sequence[Any] = (),
    early: bool = True,
    site: tuple[CodeType | None, int] | None = None,
) -> Work | None:
    """One collective call: agreed on, then done (None), or on its way (a `Work`).

    Args:
        early: whether a small transfer may be on its way while that is found out
        site: where the user called, if somebody has found out
    """
    calls = members.calls
    call, agreement = calls.begin(name, looks, site)
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


def check_blocks(name: str, one: Any, all_: Any, size: int, what: str, whole: str) -> None:
    """``all_`` must be ``size`` times as large as ``one``, along the first dimension or a new one."""
    shape, of_all = tuple(one.shape), tuple(all_.shape)
    joined = (size * shape[0], *shape[1:]) if shape else (size,)
    if of_all not in ((size, *shape), joined):
        raise ShapeError(message(name, f"{whole} is {list(of_all)}, {what} {list(shape)}, and there are {size} ranks",
                                 hint=f"{whole} of shape {list(joined)}"))  # fmt: skip
    if one.dtype != all_.dtype:
        raise ArgumentError(message(name, f"{whole} is {all_.dtype}, {what} {one.dtype}", hint="give both one dtype"))


def listed(name: str, what: str, tensors: Any, like: Any, size: int, writes: bool = False) -> list[Memory]:
    """The memory of a list of tensors, one for each rank, that look like another."""
    if not isinstance(tensors, list | tuple):
        raise ArgumentError(message(name, f"{what} is {type(tensors).__name__}, expected a list of tensors"))
    check_count(name, what, len(tensors), size)
    memories = [Memory(name, each, writes) for each in tensors]
    for i, each in enumerate(tensors):
        if each.shape != like.shape or each.dtype != like.dtype:
            text = f"{what}[{i}] is {each._spec()}, the tensor {like._spec()}"
            raise ShapeError(message(name, text, hint="tensors that look alike"))
    return memories


def check_count(name: str, what: str, count: int, size: int) -> None:
    if count != size:
        raise ArgumentValueError(message(name, f"{what} has {count} tensors, the group {size} ranks", hint="one each"))


def check_given_at(name: str, what: str, given: Any, root: int, here: bool) -> None:
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


def split_bytes(name: str, x: Host, sizes: Sequence[int] | None, count: int, what: str) -> list[int]:
    row = x.nbytes // x.shape[0] if x.ndim and x.shape[0] else 0
    return [n * row for n in split_sizes(name, x.shape, sizes, count, what)]


def spread_out(outs: Sequence[Memory], into: Any) -> None:
    for i, each in enumerate(outs):
        each.write(into[i])
