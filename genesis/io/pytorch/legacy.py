"""The format before PyTorch 1.6: five pickles (a sign, a version, the system, the value, the storages' keys), then the
storages' bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.base.device import device
from genesis.io.blocks import Array, short
from genesis.io.location import Placement
from genesis.io.pytorch.files import LARGEST_PICKLE, swapped
from genesis.io.pytorch.names import resolve
from genesis.io.pytorch.opcodes import Unpickler
from genesis.io.pytorch.tensors import TypedStorage, storage_id
from genesis.io.source import Damaged, Source

MAGIC = 0x1950A86A20F9469CFC6C
START = b"\x80\x02\x8a\x0a" + MAGIC.to_bytes(10, "little")
_VERSION = 1001


def read(source: Source, where: Placement, encoding: str = "utf-8") -> Any:
    """The value in a file of this format.

    Raises:
        Damaged: anything that is not as PyTorch wrote it
    """
    storages = _Storages(source, where)
    pickles = Unpickler(source.head(LARGEST_PICKLE), resolve, storages.load, encoding)
    magic, version, system = pickles.load(), pickles.load(), pickles.load()
    if type(version) is not int or (magic, version) != (MAGIC, _VERSION) or type(system) is not dict:
        raise Damaged("is no PyTorch checkpoint, or damaged: its first pickles are others")
    at = pickles.at
    pickles.load()  # which storages there are, and where their bytes are
    storages.fill(pickles.load(), pickles.at, system.get("little_endian") is not False)
    pickles.at = at  # again, now that tensors have values: of a conjugate one a copy is made
    return pickles.load()


class _Storages:
    """Memory that tensors are made on before its bytes, which come last, are read."""

    def __init__(self, source: Source, where: Placement) -> None:
        self._source, self._where = source, where
        self._storages: dict[str, tuple[Array, Any, device]] = {}
        self._total = 0

    def load(self, pid: Any) -> TypedStorage:
        kind, key, location, size, view = storage_id(pid, 6)
        if key not in self._storages:
            self._total += size
            if self._total > self._source.size:
                raise Damaged(
                    f"is cut off or damaged: its storages would have {self._total} bytes, the file has "
                    f"{self._source.size}"
                )
            memory = np.empty(size, np.uint8)
            self._storages[key] = memory, kind, self._where(memory, location).device
        memory, _, target = self._storages[key]
        if memory.nbytes != size:
            raise Damaged(f"is damaged: storage {key!r} has {memory.nbytes} bytes, and {size}")
        return TypedStorage(memory if view is None else _part(memory, kind, view), kind, target)

    def fill(self, keys: Any, at: int, little: bool) -> None:
        if type(keys) is not list or any(type(k) is not str for k in keys) or sorted(keys) != sorted(self._storages):
            raise Damaged("is damaged: its storages are not those that its tensors need")
        for key in keys:
            memory, kind, _ = self._storages[key]
            size = 1 if kind is None else kind.itemsize
            count = int.from_bytes(self._source.read(at, 8), "little" if little else "big", signed=True)
            if count * size != memory.nbytes or at + 8 + memory.nbytes > self._source.size:
                raise Damaged(f"is cut off or damaged: storage {key[:60]!r} has {count} elements of {size} bytes")
            self._source.fill(at + 8, memory)
            if size > 1 and little is not bool(np.little_endian):
                memory[:] = swapped(memory, kind)
            at += 8 + memory.nbytes


def _part(memory: Array, kind: Any, view: Any) -> Array:
    """A storage that is a part of another."""
    size = 1 if kind is None else kind.itemsize
    numbers = view[1:] if type(view) is tuple and len(view) == 3 else (-1,)
    if any(type(n) is not int or not 0 <= n < 1 << 58 for n in numbers) or sum(numbers) * size > memory.nbytes:
        raise Damaged(f"is damaged: a storage is the part {short(view)} of {memory.nbytes} bytes")
    return memory[numbers[0] * size : sum(numbers) * size]
