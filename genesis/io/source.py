"""Where bytes are read from: a file, mapped into memory or not, or a file object."""

from __future__ import annotations

import contextlib
import io
import mmap as mapping
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from genesis.base.errors import ArgumentError, ArgumentValueError, FileFormatError, message

MAPPED_FROM = 1 << 20  # bytes: what is smaller is read at once


class Damaged(Exception):
    """What is wrong with a file, and what to try; `reading` adds its name."""

    def __init__(self, problem: str, hint: str = "a file written by genesis.save or torch.save") -> None:
        super().__init__(problem)
        self.hint = hint


class Source:
    """Bytes that can be read anywhere, and arrays on them that own their memory or have their own copy-on-write pages.

    Attributes:
        name: of the file, for messages; size: in bytes; verify: whether checksums are compared (not where only a part
            is to be read)
    """

    def __init__(self, file: Any, name: str, mapped: bool | None) -> None:
        self.name, self._file, self._map = name, file, None
        self.verify = mapped is not True
        self._start = file.tell()
        self.size = file.seek(0, os.SEEK_END) - self._start
        if self.size and (mapped or (mapped is None and self.size >= MAPPED_FROM)):
            self._map = mapping.mmap(file.fileno(), 0, access=mapping.ACCESS_COPY)

    def read(self, start: int, count: int) -> bytes:
        """``count`` bytes, or an error that says that the file is too short."""
        if start < 0 or count < 0 or start + count > self.size:
            raise Damaged(f"is cut off or damaged: bytes {start} to {start + count} of {self.size} were expected")
        if self._map is not None:
            return self._map[start : start + count]
        self._file.seek(self._start + start)
        data = self._file.read(count)
        if len(data) != count:
            raise Damaged(f"became shorter while it was read: {count} bytes from {start} were expected")
        return data

    def array(self, start: int, count: int, aligned: int = 1) -> np.ndarray[Any, Any]:
        """Bytes as an array that can be written to; the file never changes."""
        if start < 0 or count < 0 or start + count > self.size:
            self.read(start, count)
        if self._map is not None and start % aligned == 0:
            return np.frombuffer(self._map, np.uint8, count, start)
        out = np.empty(count, np.uint8)
        self.fill(start, out)
        return out

    def fill(self, start: int, out: np.ndarray[Any, Any]) -> None:
        """Write the bytes from ``start`` on into an array of bytes."""
        self._file.seek(self._start + start)
        _fill(self._file, out)

    def head(self, count: int) -> Any:
        """At least the first ``count`` bytes (all, where there are fewer), as something that can be sliced."""
        return self._map if self._map is not None else self.read(0, min(count, self.size))


def _fill(file: Any, out: np.ndarray[Any, Any]) -> None:
    view, done = memoryview(out), 0
    while done < len(view):
        step = min(len(view) - done, 1 << 24)
        if hasattr(file, "readinto"):
            count = file.readinto(view[done : done + step])
        else:
            data = file.read(step)
            count = len(data)
            view[done : done + count] = data
        if not count:
            raise Damaged(f"became shorter while it was read: {len(view)} bytes were expected, {done} came")
        done += count


@contextlib.contextmanager
def reading(f: Any, mapped: bool | None) -> Iterator[Source]:
    """A source for a path or a binary file object, from where it stands; what is `Damaged` gets the name of the file."""
    if isinstance(f, str | bytes | os.PathLike):
        name = os.fsdecode(f)
        opened: Any = open(f, "rb")  # noqa: SIM115, closed below
    elif callable(getattr(f, "read", None)) and not isinstance(f, io.TextIOBase):
        if mapped:
            raise ArgumentValueError(
                message("load", "only a file that is given by its path can be mapped", hint="mmap=None")
            )
        opened, mapped = contextlib.nullcontext(f), False
        name = str(getattr(f, "name", None) or f"the {type(f).__name__}")
    else:
        hint = 'open(path, "rb")' if isinstance(f, io.TextIOBase) else "a path, or a file opened with open(path, 'rb')"
        raise ArgumentError(message("load", f"cannot read from {type(f).__name__}", hint=hint))
    with opened as file:
        try:
            yield Source(_seekable(file), name, mapped if _can_seek(file) else False)
        except Damaged as error:
            raise FileFormatError(message("load", f"{name} {error}", hint=error.hint)) from None


def _can_seek(file: Any) -> bool:
    seekable = getattr(file, "seekable", None)
    return hasattr(file, "seek") and (seekable is None or bool(seekable()))


def _seekable(file: Any) -> Any:
    if _can_seek(file):
        return file
    data = file.read()
    if not isinstance(data, bytes | bytearray):
        raise ArgumentError(message("load", f"{type(file).__name__}.read() gave {type(data).__name__}, not bytes"))
    return io.BytesIO(data)
