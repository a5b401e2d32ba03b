"""Many groups at once, of which each rank is in one at most."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from genesis.base.errors import ArgumentValueError, message
from genesis.distributed.groups import GroupMember, get_rank, group_of, new_group


def new_subgroups(
    group_size: int | None = None,
    group: Any = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Groups of so many ranks that follow each other; all processes call it. This rank's, and all of them.

    Args:
        group_size: divides the number of ranks; all of them by default, as on one machine
        group: the ranks that are divided; only all of them are

    Raises:
        ValueError: it does not divide them

    >>> import genesis.distributed as dist
    >>> dist.init_process_group()
    >>> own, every = dist.new_subgroups(1); dist.get_world_size(own), len(every)
    (1, 1)
    >>> dist.destroy_process_group()
    """
    world = group_of("new_subgroups", group)
    if world is not GroupMember.WORLD:
        raise ArgumentValueError(message("new_subgroups", "only the ranks of the world are divided", hint="group=None"))
    size = world.size() if group_size is None else group_size
    if size < 1 or world.size() % size:
        text = f"{world.size()} ranks do not divide into groups of {size}"
        raise ArgumentValueError(message("new_subgroups", text, hint="a group_size that divides the number of ranks"))
    parts = [list(world.ranks[i : i + size]) for i in range(0, world.size(), size)]
    return new_subgroups_by_enumeration(parts, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Groups of these ranks; all processes call it. This rank's, or None where it is in none, and all of them.

    Raises:
        ValueError: a rank is in two of them
    """
    name = "new_subgroups_by_enumeration"
    every = [rank for ranks in ranks_per_subgroup_list for rank in ranks]
    if not every or len(set(every)) < len(every):
        text = f"the groups {[list(ranks) for ranks in ranks_per_subgroup_list]}"
        raise ArgumentValueError(message(name, text, hint="each rank in one of them"))
    made = [new_group(ranks, timeout, backend, pg_options, group_desc=group_desc) for ranks in ranks_per_subgroup_list]
    own = [group for group, ranks in zip(made, ranks_per_subgroup_list, strict=True) if get_rank() in ranks]
    return (own[0] if own else None), made
