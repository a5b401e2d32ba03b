"""Zip archives: a table of contents that is checked as a whole before anything is read, and a writer that never goes
back.

PyTorch stores its entries uncompressed, each at a multiple of 64 bytes, so that tensors can be mapped. Compressed
entries are refused: nothing that is read here is larger than the file.
"""

from __future__ import annotations

import itertools
import struct
import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from genesis.io.source import Damaged, Source

_END, _END64, _LOCATOR64, _ENTRY, _LOCAL = b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07", b"PK\x01\x02", b"PK\x03\x04"
_ALIGNMENT = 64
_CHUNK = 1 << 24


@dataclass(frozen=True, slots=True)
class Entry:
    """Where the bytes of an entry are."""

    start: int
    size: int
    checksum: int


class Archive:
    """The entries of a zip archive by their names.

    Raises:
        Damaged: no archive, compressed or encrypted entries, entries that overlap, that are there twice or outside of
            the file
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        position, size, count = _directory(source)
        self.entries = _entries(source, position, size, count)

    def read(self, name: str, limit: int) -> bytes:
        """A small entry as a whole."""
        entry = self._entry(name)
        if entry.size > limit:
            raise Damaged(f"is refused: {_said(name)} has {entry.size} bytes, at most {limit} are read")
        data = self.source.read(entry.start, entry.size)
        self._verify(name, entry, data)
        return data

    def array(self, name: str) -> np.ndarray[Any, Any]:
        """The bytes of an entry as an array."""
        entry = self._entry(name)
        data = self.source.array(entry.start, entry.size, 8)
        if self.source.verify:
            self._verify(name, entry, data)
        return data

    def size(self, name: str) -> int | None:
        entry = self.entries.get(name)
        return None if entry is None else entry.size

    def _entry(self, name: str) -> Entry:
        if name not in self.entries:
            raise Damaged(f"is damaged: the archive lacks {_said(name)}")
        return self.entries[name]

    def _verify(self, name: str, entry: Entry, data: Any) -> None:
        if entry.checksum and zlib.crc32(data) != entry.checksum:  # PyTorch can be told to write none
            raise Damaged(f"is damaged: the checksum of {_said(name)} is wrong")


def _directory(source: Source) -> tuple[int, int, int]:
    """Position, size and number of entries of the table at the end of the file."""
    tail_at = max(0, source.size - 65_557)
    tail = source.read(tail_at, source.size - tail_at)
    at = tail.rfind(_END)
    if at < 0 or len(tail) - at < 22:
        raise Damaged("is a zip archive that is cut off or damaged: its table of contents is not there")
    count, size, position = struct.unpack("<HII", tail[at + 10 : at + 20])
    if at >= 20 and tail[at - 20 : at - 16] == _LOCATOR64:
        (start,) = struct.unpack("<Q", tail[at - 12 : at - 4])
        record = source.read(start, 56)
        if record[:4] != _END64:
            raise Damaged("is a zip archive that is damaged: its table of contents is not there")
        count, size, position = struct.unpack("<QQQ", record[32:56])
    if position + size > source.size or count > size // 46:
        raise Damaged("is a zip archive that is cut off or damaged: its table of contents is outside of the file")
    return position, size, count


def _entries(source: Source, position: int, size: int, count: int) -> dict[str, Entry]:
    table = source.read(position, size)
    entries: dict[str, Entry] = {}
    spans: list[tuple[int, int]] = [(position, position + size)]
    at = 0
    for _ in range(count):
        if table[at : at + 4] != _ENTRY or at + 46 > size:
            raise Damaged("is a zip archive that is damaged: its table of contents is not complete")
        flags, method, checksum, packed, whole, name_size, extra_size, comment_size, local = (
            *struct.unpack("<HH", table[at + 8 : at + 12]),
            *struct.unpack("<IIIHHH", table[at + 16 : at + 34]),
            *struct.unpack("<I", table[at + 42 : at + 46]),
        )
        name = _name(table[at + 46 : at + 46 + name_size])
        extra = table[at + 46 + name_size : at + 46 + name_size + extra_size]
        whole, packed, local = _large(extra, whole, packed, local)
        at += 46 + name_size + extra_size + comment_size
        if flags & 1 or method != 0 or packed != whole:
            raise Damaged(f"is refused: {_said(name)} is compressed or encrypted", "a file as torch.save writes it")
        if name in entries:
            raise Damaged(f"is damaged: {_said(name)} is there twice")
        start = _data_start(source, local, name)
        if start + whole > source.size:
            raise Damaged(f"is cut off or damaged: {_said(name)} reaches beyond the end of the file")
        entries[name] = Entry(start, whole, checksum)
        spans.append((local, start + whole))
    _refuse_overlap(spans)
    return entries


def _large(extra: bytes, *sizes: int) -> list[int]:
    """Sizes of 64 bits, which are in the extra field wherever 32 bits do not hold them."""
    out, at = list(sizes), 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack("<HH", extra[at : at + 4])
        if kind == 1:
            values = [
                v
                for (v,) in struct.iter_unpack(
                    "<Q", extra[at + 4 : at + 4 + length // 8 * 8][: (len(extra) - at - 4) // 8 * 8]
                )
            ]
            for i, size in enumerate(out):
                if size == 0xFFFFFFFF and values:
                    out[i] = values.pop(0)
            break
        at += 4 + length
    return out


def _data_start(source: Source, local: int, name: str) -> int:
    header = source.read(local, 30)
    if header[:4] != _LOCAL:
        raise Damaged(f"is damaged: {_said(name)} is not where the archive says")
    name_size, extra_size = struct.unpack("<HH", header[26:30])
    return local + 30 + int(name_size) + int(extra_size)


def _refuse_overlap(spans: list[tuple[int, int]]) -> None:
    spans.sort()
    for (_, end), (start, _) in itertools.pairwise(spans):
        if start < end:
            raise Damaged("is damaged: entries of the archive overlap")


def _name(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _said(name: str) -> str:
    return repr(name[:60])


# ---- writing


class _Stream:
    """A file that is only written to, for `zipfile`, which would go back to headers of files that allow it."""

    def __init__(self, write: Any) -> None:
        self.write = write

    def flush(self) -> None:
        pass


class Writer:
    """Writes entries one after the other, their bytes at multiples of 64."""

    def __init__(self, write: Any) -> None:
        self._at = 0
        self._write = write
        self._zip = zipfile.ZipFile(_Stream(self._put), "w")  # type: ignore[call-overload]

    def _put(self, data: Any) -> int:
        self._write(data)
        self._at += len(data)
        return len(data)

    def add(self, name: str, chunks: Iterable[Any], size: int) -> None:
        info = zipfile.ZipInfo(f"archive/{name}", (1980, 1, 1, 0, 0, 0))
        large = size > 0x7FFF0000
        used = self._at + 30 + len(info.filename.encode()) + 4 + (20 if large else 0)
        padding = -used % _ALIGNMENT
        info.extra = struct.pack("<2sH", b"FB", padding) + b"Z" * padding
        with self._zip.open(info, "w", force_zip64=large) as entry:
            for chunk in chunks:
                entry.write(chunk)

    def close(self) -> None:
        self._zip.close()


def chunks(array: np.ndarray[Any, Any]) -> Iterable[memoryview]:
    """The bytes of a C-contiguous array."""
    view = array.reshape(-1).view(np.uint8).data
    return (view[i : i + _CHUNK] for i in range(0, len(view), _CHUNK))
