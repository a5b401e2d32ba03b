"""One rank of ``genesis run -n 2 script.py``: runs the script, and leaves a note if it fails."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from genesis.cli.leftovers import launcher_of, remove
from genesis.cli.notes import ENDED, WAITING, Note, leave, print_note, text_of
from genesis.distributed.environment import launch, local_size
from genesis.distributed.watching import Progress, program_line
from genesis.pytorch.run import run

FOLDER = "GENESIS_RUN_FOLDER"  # where ranks on this machine leave their process numbers and notes
_LOOK = 0.5  # seconds
_PR_SET_PDEATHSIG = 1  # Linux: the signal that a process gets when its parent ends


def main(argv: Sequence[str]) -> int:
    """Run a script as a rank."""
    rank = announce()
    folder = os.environ.pop(FOLDER, None)
    if folder is not None and os.path.isdir(folder):
        leave(Path(folder, f"{rank}.pid"), str(os.getpid()))
        Progress.waits_in = os.path.join(folder, f"{rank}.{WAITING}")
        note = partial(_note, Path(folder, f"{rank}.json"))
        _note_failures(note, rank)
        _note_hard_exits(note, rank)
        known = launcher_of(Path(folder)), Path(folder), rank
        threading.Thread(target=_beside, args=known, daemon=True).start()
        atexit.register(leave, Path(folder, f"{rank}.{ENDED}"), "")
        _end_with_parent()
    elif folder is not None:
        _note_failures(print_note, rank)
    getattr(sys.stdout, "reconfigure", dict)(line_buffering=True, write_through=False)  # whole lines, and at once
    torch = argv[0] == "--torch"
    script, *arguments = argv[torch:]
    return run(script, arguments, torch)


def announce() -> int:
    """Put the names into the environment that programs for torchrun look for there; this process's rank."""
    said = launch()
    rank, size, local = (0, 1, 0) if said is None else said[1:]
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(local)}
    here = local_size()
    if here is not None:
        os.environ["LOCAL_WORLD_SIZE"] = str(here)
    return rank


def _end_with_parent() -> None:
    """Let the system end this rank with the process of MPI that started it: a rank that is inside of MPI, and waits there
    for one that is dead, holds Python's lock and can do nothing itself.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _beside(launcher: int, folder: Path, rank: int) -> None:
    """Say what this rank does, for the last screen of a job; end it when ``genesis run`` is gone, as nobody else would."""
    parent = os.getppid()
    while True:
        leave(folder / f"{rank}.doing", doing())
        time.sleep(_LOOK)
        if os.getppid() != parent:
            os._exit(1)
        try:
            os.kill(launcher, 0)
        except ProcessLookupError:
            remove(folder)
            _end(parent)
            os._exit(1)


def _end(starter: int) -> None:
    """End the other ranks that a process of MPI started on this machine, and that: it may do nothing when one of them ends,
    and another that waits for it inside of MPI does not look; nor does one that begins when the job's folder is gone.
    """
    others: list[int] = []
    with contextlib.suppress(OSError, ValueError):  # on Linux
        others = [int(pid) for pid in Path(f"/proc/{starter}/task/{starter}/children").read_text().split()]
    for pid in [*[pid for pid in others if pid != os.getpid()], starter]:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGTERM if pid == starter else signal.SIGKILL)
    time.sleep(_LOOK)
    if os.getppid() == starter:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(starter, signal.SIGKILL)


def doing() -> str:
    """What this process does: its collective call, or the line of its program and the call before; and the step."""
    world: Any = getattr(getattr(sys.modules.get("genesis.distributed.groups"), "GroupMember", None), "WORLD", None)
    last = list(world.calls.last) if world is not None else []
    step = f"step {Progress.step}, " if Progress.step else ""
    if not last:
        return step + program_line(__file__)
    call = f"{last[-1].what}{last[-1].where} (call {last[-1].number})"
    return step + (
        call if world.calls.waits else ", ".join([each for each in (program_line(__file__), f"after {call}") if each])
    )


def _note(path: Path, note: Note) -> None:
    leave(path, text_of(note))


def _note_failures(note: Callable[[Note], None], rank: int) -> None:
    shown = sys.excepthook

    def noted(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> Any:
        try:
            shown(kind, error, trace)  # takes the package's own lines out of the traceback
        finally:
            text = "".join(traceback.format_exception(error))
            last = "".join(traceback.format_exception_only(error)).rstrip()
            note(Note(rank, time.time(), last, text))

    sys.excepthook = noted


def _note_hard_exits(note: Callable[[Note], None], rank: int) -> None:
    """``os._exit(0)`` while others count on this rank fails: MPICH ends them then, and takes that for a good end."""
    end, own = os._exit, os.getpid()

    def noted(status: int) -> Any:
        world: Any = getattr(getattr(sys.modules.get("genesis.distributed.groups"), "GroupMember", None), "WORLD", None)
        if status == 0 and os.getpid() == own and world is not None and world.size() > 1:
            status, error = 1, "os._exit(0), and the process group had not ended"
            text = "".join(traceback.format_stack(sys._getframe(1))) + error
            note(Note(rank, time.time(), error, text))
        end(status)

    os._exit = noted


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
