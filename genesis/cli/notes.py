"""What a rank leaves for ``genesis run``: small files in the folder of the job, and a note when it fails. Where there is
no such folder, on another machine, it prints the note.

Nothing here takes for granted that what is read is what was written: ranks are killed at any time, and programs print
anything.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import NamedTuple

PRINTED = "genesis note "  # the beginning of a note that is printed
ENDED = "ended"  # the file of a rank whose program ran to its end
WAITING = "waiting"  # that of one that waits for all to begin: how long at most and where; more, once that is over


class Note(NamedTuple):
    """How a rank failed, and when: seconds of its machine's clock."""

    rank: int
    time: float
    error: str
    traceback: str


def text_of(note: Note) -> str:
    """A note as a line."""
    return json.dumps(note._asdict())


def note_in(text: str) -> tuple[Note, str] | None:
    """The note that a text begins with, and what is behind it; None if it begins with none."""
    try:
        values, end = json.JSONDecoder().raw_decode(text)
        note = Note(**values)
    except (ValueError, TypeError, RecursionError):
        return None
    kinds = [type(value) for value in note]
    return (note, text[end:]) if kinds == [int, float, str, str] else None


def without_notes(line: str) -> tuple[str, list[Note]]:
    """A line that a rank printed without the notes in it, and these; what only begins as one stays."""
    parts, notes, rest = list[str](), list[Note](), line
    while PRINTED in rest:
        before, _, behind = rest.partition(PRINTED)
        known = note_in(behind)
        if known is not None:
            notes.append(known[0])
        parts.append(before if known is not None else before + PRINTED)
        rest = behind if known is None else known[1]
    return "".join([*parts, rest]), notes


def print_note(note: Note) -> None:
    """Print it at once, whatever stands for ``sys.stderr``: what comes in one piece is not mixed with what others print."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.flush()
    with contextlib.suppress(OSError):
        os.write(2, f"{PRINTED}{text_of(note)}\n".encode())


def leave(path: Path, text: str) -> None:
    """A small file, whole or not at all; it need not outlive the machine, so nothing waits for the disk."""
    with contextlib.suppress(OSError):  # the job has ended, and its folder with it
        new = path.with_name(f"{path.name}.new")
        new.write_text(text, "utf-8", "backslashreplace")
        new.replace(path)


def left(folder: str, kind: str) -> dict[str, str]:
    """What all ranks left in files of a kind."""
    texts = {}
    for path in Path(folder).glob(f"*.{kind}"):
        with contextlib.suppress(OSError):
            texts[path.stem] = path.read_text("utf-8", "replace")
    return texts
