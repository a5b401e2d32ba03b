"""Whole files of PyTorch's format: a zip archive of a pickle, `data.pkl`, and one entry for each storage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec
from genesis.base import dtypes
from genesis.core.graph.tensor import Tensor
from genesis.io.blocks import Array, array_of
from genesis.io.location import Placement
from genesis.io.pytorch.archive import Archive, Writer, chunks
from genesis.io.pytorch.names import resolve
from genesis.io.pytorch.objects import Parts, UnpicklerOfObjects
from genesis.io.pytorch.opcodes import Unpickler
from genesis.io.pytorch.pickler import Pickler, tensors_in
from genesis.io.pytorch.safe import SAFE
from genesis.io.pytorch.tensors import TypedStorage, storage_id
from genesis.io.source import Damaged, Source

LARGEST_PICKLE = 1 << 28  # bytes


# ---- reading


def read(source: Source, where: Placement, encoding: str = "utf-8", objects: bool = False) -> Any:
    """The value in an archive; ``objects``: also those of the program's classes, else those in `SAFE`.

    Raises:
        Damaged: anything that is not as PyTorch writes it, or a name that is not in the table of `names`
    """
    archive = Archive(source)
    root = _root(archive)
    storages = _Storages(archive, root, where)
    data = archive.read(f"{root}/data.pkl", LARGEST_PICKLE)
    if objects or SAFE:
        return UnpicklerOfObjects(data, storages.load, encoding, safe_only=not objects).load()
    return Unpickler(data, resolve, storages.load, encoding).load()


def _root(archive: Archive) -> str:
    roots = [
        name.removesuffix("/data.pkl")
        for name in archive.entries
        if name.endswith("/data.pkl") and name.count("/") == 1
    ]
    if len(roots) != 1:
        raise Damaged("is a zip archive, but no PyTorch checkpoint: it has no data.pkl")
    if f"{roots[0]}/constants.pkl" in archive.entries:
        raise Damaged(
            "is a TorchScript program, which is not loaded", "torch.save(model.state_dict(), path) in PyTorch"
        )
    return roots[0]


class _Storages:
    """The storages of an archive; each is read once, so that tensors that shared one do again."""

    def __init__(self, archive: Archive, root: str, where: Placement) -> None:
        self._archive, self._root, self._where = archive, root, where
        self._read_so_far: dict[str, tuple[Array, Any]] = {}
        order = archive.read(f"{root}/byteorder", 10) if f"{root}/byteorder" in archive.entries else b"little"
        if order not in (b"little", b"big"):
            raise Damaged("is damaged: its byte order is neither little nor big")
        self._swapped = (order == b"little") is not bool(np.little_endian)

    def load(self, pid: Any) -> TypedStorage:
        kind, key, location, size, _ = storage_id(pid, 5)
        if key not in self._read_so_far:
            self._read_so_far[key] = self._read(kind, key, location, size)
        memory, device = self._read_so_far[key]
        if memory.nbytes != size:
            raise Damaged(f"is damaged: storage {key!r} has {memory.nbytes} bytes, and {size}")
        return TypedStorage(memory, kind, device)

    def _read(self, kind: dtypes.dtype | None, key: str, location: str, size: int) -> tuple[Array, Any]:
        name = f"{self._root}/data/{key}"
        there = self._archive.size(name) or 0
        if there != size:
            raise Damaged(f"is cut off or damaged: storage {key!r} has {there} bytes, {size} were expected")
        memory = self._archive.array(name) if size else np.empty(0, np.uint8)
        if self._swapped and kind is not None and kind.itemsize > 1:
            memory = swapped(memory, kind)
        return memory, self._where(memory, location).device


def swapped(memory: Array, kind: dtypes.dtype) -> Array:
    """Bytes of the other byte order."""
    numbers = memory.view(np.uint16 if kind is dtypes.bfloat16 else kind.np)
    return numbers.byteswap().view(np.uint8)


# ---- writing


def writer(obj: Any) -> Callable[[Callable[[Any], Any]], None]:
    """A function that writes a file piece by piece; what cannot be saved is refused before it is called."""
    objects: dict[int, Parts] = {}
    kept = list(tensors_in(obj, objects))
    arrays = {id(t): array_of(t) for t in kept if not (isinstance(t, Tensor) and isinstance(t._array, Spec))}
    pickled = Pickler(obj, arrays, objects)

    def write(put: Callable[[Any], Any]) -> None:
        out = Writer(put)
        out.add("data.pkl", [pickled.out], len(pickled.out))
        out.add("byteorder", [b"little" if np.little_endian else b"big"], 6)
        for i, block in enumerate(pickled.blocks):
            out.add(f"data/{i}", chunks(block), block.nbytes)
        out.add("version", [b"3\n"], 2)
        out.close()

    return write
