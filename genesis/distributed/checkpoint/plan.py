"""Which rank writes what, as all of them agree before each save."""

from __future__ import annotations

import functools
import json
import os
import secrets
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from genesis.base.errors import message
from genesis.core.graph.tensor import wrap
from genesis.distributed.checkpoint.manifest import CheckpointException
from genesis.distributed.checkpoint.parts import Piece, entries
from genesis.distributed.groups import GroupMember, group_of
from genesis.distributed.movement import all_gather_into_tensor
from genesis.distributed.objects import all_gather_object


class Plan(NamedTuple):
    """What this rank writes."""

    token: str
    rank: int
    size: int
    mine: dict[str, Piece]
    trees: list[Any]  # one, or one of each rank where they differ
    timeout: float


def agree(folder: Path, tree: Any, pieces: dict[str, Piece], group: Any, alone: bool) -> Plan:
    """The plan of one save; all ranks of the group call it, unless each saves for itself.

    Raises:
        RuntimeError: ranks name different folders
    """
    if alone or (group is None and GroupMember.WORLD is None):
        return Plan(secrets.token_hex(4), 0, 1, pieces, [tree], 0.0)
    members = group_of("save", group)
    rank, size = members.rank(), members.size()
    if size == 1:
        return Plan(secrets.token_hex(4), 0, 1, pieces, [tree], members.calls.timeout)
    sizes = {name: 0 if piece.buffer else int(piece.value.nbytes) for name, piece in pieces.items() if piece.whole}
    path = os.path.abspath(folder)
    own = np.array([secrets.randbits(32), _digest((tree, sizes)), _digest(path)])
    said = np.empty((size, len(own)), own.dtype)
    all_gather_into_tensor(wrap(said), wrap(own), members)  # numbers, that all objects need not be sent
    token, others, paths = (each.tolist() for each in said.T)
    if len(set(paths)) > 1:  # rank 0 would wait for notes of the others, and they for its manifest
        named: list[Any] = [None] * size
        all_gather_object(named, path, group)
        other = next(each for each in range(size) if paths[each] != paths[0])
        text = f"ranks name different folders: rank 0 {named[0]}, rank {other} {named[other]}"
        raise CheckpointException(message("save", text, hint="one folder, which all ranks see"))
    trees, all_sizes = [tree], [sizes] * size
    if len(set(others)) > 1:
        full: list[Any] = [None] * size
        all_gather_object(full, [tree, sizes], group)
        trees, all_sizes = [each[0] for each in full], [each[1] for each in full]
    writers = _writers(tuple([tuple(each.items()) for each in all_sizes]))
    mine = {
        name: piece for name, piece in pieces.items()
        if (writers[name] == rank if piece.whole else _writes(name, piece, members))
    }  # fmt: skip
    return Plan(f"{token[0]:08x}", rank, size, mine, trees, members.calls.timeout)


def _writes(name: str, piece: Piece, members: Any) -> bool:
    """Whether this rank writes the part that it has: of ranks that have the same rows one does, another for each name."""
    at = piece.layout
    replicas = None if at is None or at.sharding is None else at.sharding.replicas
    if replicas is None:
        return True
    having = [rank for rank in replicas.ranks if rank in members.ranks]
    return bool(having[zlib.crc32(name.encode()) % len(having)] == members.ranks[members.rank()])


def _digest(value: Any) -> int:
    return zlib.crc32(json.dumps(value).encode())


@functools.lru_cache(4)
def _writers(sizes: tuple[tuple[tuple[str, int], ...], ...]) -> dict[str, int]:
    """For each tensor one of the ranks that have it: the one with the fewest bytes so far, large ones first; the first of
    them where the size is 0, as that of buffers is said to be.

    >>> _writers(((("a", 4), ("b", 3), ("c", 2), ("d", 0)),) * 2)
    {'a': 0, 'b': 1, 'c': 1, 'd': 0}
    """
    count: dict[str, int] = {}
    having: dict[str, list[int]] = {}
    for rank, each in enumerate(sizes):
        for name, size in each:
            count[name] = size
            having.setdefault(name, []).append(rank)
    load, out = [0] * len(sizes), {}
    for name in sorted(count, key=lambda name: (-count[name], name)):
        out[name] = min(having[name], key=lambda rank: (load[rank], rank) if count[name] else (0, rank))
        load[out[name]] += count[name]
    return out


def joined(trees: list[Any]) -> list[Any]:
    """Each rank's description, with what others have on top and it has not: names may be of one rank only."""
    if len(trees) == 1 or not all([next(iter(tree)) in ("dict", "ordered") for tree in trees]):
        return trees
    every: dict[Any, Any] = {}
    for tree in reversed(trees):
        every |= entries(tree)
    return [{next(iter(tree)): [[k, v] for k, v in (every | entries(tree)).items()]} for tree in trees]
