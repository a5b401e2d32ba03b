"""What the ranks of a job print, line by line, with their ranks.

Whoever starts them marks each piece that comes from a rank, and there are as many pieces as the rank had written: a line
may come in several, and those of other ranks between them. So the lines of each rank are put together again.
"""

from __future__ import annotations

import contextlib
import locale
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from genesis.cli.mpiexec import Kind
from genesis.cli.notes import Note, without_notes

_SIZE = 1 << 16  # bytes that are read at once, at most
_MARK = 80  # bytes of a mark, at most


class Pieces:
    """Puts the lines of each rank together."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self._rest = b""  # the beginning of a mark
        self._of: str | None = None  # the rank whose piece this is; None of what the launcher of MPI says itself
        self._begun: dict[str | None, list[bytes]] = {}  # lines without an end

    def lines(self, data: bytes) -> Iterator[tuple[str | None, bytes]]:
        """The rank and the text of each line that has ended, the next bytes given."""
        data, at = self._rest + data, 0
        whole = self._without_a_part_of_a_mark(data)
        self._rest = data[whole:]
        for mark in self._kind.mark.finditer(data, 0, whole):
            yield from self._add(data[at : mark.start()])
            self._of, at = mark[1].decode(), mark.end()
        yield from self._add(data[at:whole])

    def end(self) -> Iterator[tuple[str | None, bytes]]:
        """Lines that will have no end."""
        rest, self._rest = self._rest, b""
        yield from self._add(rest)
        for rank, parts in self._begun.items():
            if parts:
                yield rank, b"".join(parts)

    def _without_a_part_of_a_mark(self, data: bytes) -> int:
        """How many bytes are certain to be no beginning of a mark whose end is still to come. (None goes over a line.)"""
        begin = data.rfind(self._kind.begin, max(0, len(data) - _MARK))
        if begin < 0 or b"\n" in data[begin:]:
            return len(data)
        mark = self._kind.mark.match(data, begin)
        return begin if mark is None or mark.end() == len(data) else len(data)

    def _add(self, piece: bytes) -> Iterator[tuple[str | None, bytes]]:
        for part in piece.splitlines(keepends=True):
            begun = self._begun.setdefault(self._of, [])
            begun.append(part)
            if part.endswith((b"\n", b"\r")):  # what stands before \r is to be overwritten, as bars of progress are
                text = b"".join(begun).rstrip(b"\r\n")
                begun.clear()
                if text or part.endswith(b"\n"):
                    yield self._of, text
            if part.endswith(b"\n"):
                self._of = None


class Lines:
    """Copies what the ranks print, line by line.

    Attributes:
        others: lines that no rank printed
        notes: those of ranks on other machines
    """

    def __init__(self, kind: Kind, logs: str | None) -> None:
        self.others: list[str] = []
        self.notes: list[Note] = []
        self._kind = kind
        self._logs = None if logs is None else Path(logs)
        self._files: dict[str, IO[bytes]] = {}
        if self._logs is not None:
            self._logs.mkdir(parents=True, exist_ok=True)

    def copy(self, process: subprocess.Popen[bytes], lost: Callable[[], bool]) -> bool:
        """Until both streams end; whether they did not, because the job is lost."""
        streams = ((process.stdout, sys.stdout), (process.stderr, sys.stderr))
        threads = [threading.Thread(target=self.stream, args=each, daemon=True) for each in streams]
        for thread in threads:
            thread.start()
        is_lost = False
        for thread in threads:
            while thread.is_alive() and not is_lost:  # a join without an end keeps Ctrl-C waiting
                thread.join(0.2)
                is_lost = lost()
        for file in [process.stdout, process.stderr, *self._files.values()] if not is_lost else ():
            file.close()  # type: ignore[union-attr]
        return is_lost

    def stream(self, source: Any, to: Any) -> None:
        """Copy all of a stream."""
        pieces = Pieces(self._kind)
        while data := source.read1(_SIZE):
            for line in pieces.lines(data):
                self._line(*line, to)
        for line in pieces.end():
            self._line(*line, to)

    def _line(self, rank: str | None, line: bytes, to: Any) -> None:
        text, notes = without_notes(line.decode(locale.getpreferredencoding(False), "replace"))
        self.notes += notes
        if rank is None or text.startswith("Abort("):
            self.others.append(f"{text}\n")
        elif text or not notes:
            show(f"[r{rank}] {text}\n", to)
            self._log(f"rank{rank}.log", f"{text}\n")

    def _log(self, name: str, text: str) -> None:
        if self._logs is None:
            return
        try:
            file = self._files.get(name) or self._files.setdefault(name, (self._logs / name).open("ab", buffering=0))
            file.write(text.encode())
        except OSError as error:
            self._logs = None
            show(f"genesis run: no more is written to the logs: {error}\n", sys.stderr)


def show(text: str, to: Any) -> None:
    """Print, if that can be done: ranks go on though nobody reads any more what they say."""
    encoding = getattr(to, "encoding", None) or "utf-8"
    with contextlib.suppress(OSError):
        to.write(text.encode(encoding, "replace").decode(encoding))
        to.flush()


def forget_unwritten() -> None:
    """Drop what could not be shown: the interpreter would try again at its end, and end with another status."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
