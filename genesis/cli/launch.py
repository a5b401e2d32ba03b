"""``genesis run -n 2 script.py``: a script in several ranks, and what is said when one of them fails.

The ranks are started by the ``mpiexec`` of the MPI library. Each line that they print gets its rank in front. A rank
that ends by an exception leaves a note of it (`genesis.cli.notes`), so that the end of a job is one screen: which rank
failed first and why, then what that did to the others.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

from genesis.base.errors import DistributedError
from genesis.cli import mpiexec
from genesis.cli.endings import Endings, is_at_its_end, pids
from genesis.cli.jobs import Job, refusal
from genesis.cli.leftovers import folder_of_a_job, lives, remove, sweep
from genesis.cli.lines import Lines, show
from genesis.cli.mpiexec import Kind
from genesis.cli.notes import WAITING, Note, left, note_in
from genesis.cli.rank import FOLDER

_GIVEN = (FOLDER, "MASTER_ADDR", "MASTER_PORT")  # what ranks have in their environment besides that of this process
_GRACE = 5.0  # seconds in which mpiexec, or what it leaves, ends by itself
_SHOWN = 16  # ranks of which the last screen says what they did
_PATIENCE = 1.0  # seconds in which mpiexec ends its ranks when it is asked to


def launch(job: Job) -> int:
    """Run a job; returns the exit status: that of `mpiexec`, 130 after Ctrl-C.

    Raises:
        RuntimeError: the job cannot begin as it is asked for; or there is no mpiexec, the message says what to install
    """
    status, refused = 0, refusal(job)
    if refused is not None:
        raise DistributedError(f"run: {refused}")
    sweep()
    for attempt in range(job.max_restarts + 1):
        if attempt:
            show(f"genesis run: starts again, {attempt} of {job.max_restarts}\n", sys.stderr)
        status = _once(job)
        if status in (0, 130):
            break
    return status


def _command(job: Job) -> tuple[list[str], Kind]:
    torch = ["--torch"] if job.torch else []
    start, kind = mpiexec.command(job.ranks, job.hosts, job.options, [*{**os.environ, **dict.fromkeys(_GIVEN)}])
    return [*start, sys.executable, "-m", "genesis.cli.rank", *torch, job.script, *job.arguments], kind


def _address(job: Job) -> dict[str, str]:
    """Where programs for torchrun may meet, on the machine of rank 0; nothing of Genesis is there."""
    with socket.create_server(("", 0)) as free:
        port = free.getsockname()[1]
    first = (job.hosts or "localhost").partition(",")[0].partition(":")[0]
    return {"MASTER_ADDR": first, "MASTER_PORT": str(port)}


def _once(job: Job) -> int:
    (command, kind), folder = _command(job), folder_of_a_job()
    try:
        with Endings(folder) as endings:
            return _run(
                command, Lines(kind, job.logs), folder, endings, {**_address(job), **os.environ, FOLDER: folder}
            )
    finally:
        remove(folder)


def _run(command: Sequence[str], said: Lines, folder: str, endings: Endings, environment: dict[str, str]) -> int:
    process = subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    watch = Watch(folder, process)
    with _terminated_as_interrupted():
        try:
            lost = said.copy(process, watch.lost)
            if lost:
                _end(process, folder)
            status = process.wait()
        except KeyboardInterrupt:
            _end(process, folder)
            show("genesis run: interrupted\n", sys.stderr)
            return 130
    if status:
        endings.stop()
        show(_screen(folder, said.others, status, said.notes, endings.first or watch.first) + "\n", sys.stderr)
    return status if status >= 0 else 128 - status


class Watch:
    """Whether MPI's own launcher has lost the job: a rank was killed, and it does nothing about it; or it is gone itself,
    and ranks are not.
    """

    def __init__(self, folder: str, process: subprocess.Popen[bytes]) -> None:
        self._folder, self._process = folder, process
        self._since: float | None = None
        self.first: list[str] = []  # the rank that was gone first at a look, while others were there

    def lost(self) -> bool:
        """Called again and again: what is lost for some seconds remains so."""
        ranks = pids(self._folder)
        gone = [rank for pid, rank in ranks.items() if not lives(pid) and not is_at_its_end(self._folder, rank)]
        if len(gone) == 1 < len(ranks):
            self.first = self.first or gone
        if not gone and self._process.poll() is None:
            self._since = None
            return False
        self._since = self._since or time.monotonic()
        return time.monotonic() - self._since > _GRACE


@contextlib.contextmanager
def _terminated_as_interrupted() -> Any:
    """SIGTERM ends a job as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt), signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before[0])
        signal.signal(signal.SIGINT, before[1])


def _end(process: subprocess.Popen[bytes], folder: str) -> None:
    """End all ranks, and mpiexec, which is asked first: it ends those on other machines."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    process.terminate()
    for pid in pids(folder):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    try:
        process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


# ---- the last screen


def _screen(
    folder: str, others: Sequence[str], status: int, elsewhere: Sequence[Note] = (), gone: Sequence[str] = ()
) -> str:
    """Which rank failed first and why, then what the others say of themselves, or were seen to do last.

    Args:
        others: lines that no rank printed; elsewhere: notes of ranks on other machines
        gone: the rank whose process was gone first, or several of which one was, as far as that was seen
    """
    here = [note_in(text) for text in left(folder, "json").values()]
    notes = sorted([*[each[0] for each in here if each is not None], *elsewhere], key=lambda note: note.time)
    text = "".join(others)
    killed, pid = mpiexec.SIGNAL.search(text), mpiexec.PID.search(text)
    seen = _seen(folder)
    lines = []
    noted = {str(note.rank) for note in notes}  # the status may be that of a rank that was ended because of the first
    waited = _waited(folder) if not notes else None
    if waited is not None:
        lines.append(f"genesis run: {waited}")
    elif noted.isdisjoint(gone) and ((killed is not None and status not in (0, 1)) or (gone and not notes)):
        known = pids(folder).get(int(pid[1])) if pid is not None else None
        ranks = list(gone) or [known] * (known is not None)
        rank = ranks[0] if len(ranks) == 1 else None
        who = f"rank {rank}" if rank is not None else f"one of the ranks {', '.join(ranks)}" if ranks else "a rank"
        by = "" if killed is None else f" by {_name(int(killed[1]))}"
        lines.append(f"genesis run: {who} was killed{by}")
        if rank in seen:
            lines[0] += f", {seen.pop(rank)}"
    elif notes:
        first = notes.pop(0)
        lines += [f"genesis run: rank {first.rank} failed first", first.traceback.rstrip()]
        seen.pop(str(first.rank), None)
    else:
        lines += [f"genesis run: ended with status {status}", text.rstrip()]
    said = {str(note.rank): note.error for note in notes}
    others_of = sorted({*said, *seen}, key=int)
    lines += [f"rank {rank}: {said.get(rank) or seen[rank]}" for rank in others_of[:_SHOWN]]
    if len(others_of) > _SHOWN:
        lines.append(f"and {len(others_of) - _SHOWN} more ranks")
    return "\n".join([line for line in lines if line])


def _waited(folder: str) -> str | None:
    """Which ranks waited for all to begin until their time was over, and for whom; None if none did."""
    begin = {rank: text.partition("\n") for rank, text in left(folder, WAITING).items()}
    waited = [f"rank {rank} waited {how}" for rank, (how, _, more) in sorted(begin.items()) if more]
    absent = [f"rank {rank}" for rank in sorted({*pids(folder).values()} - {*begin}, key=int)]
    if not waited:
        return None
    return (
        f"{', '.join(waited)} in init_process_group, and {', '.join(absent) or 'others'} did not come there\n"
        "try a longer timeout, if that is only late"
    )


def _seen(folder: str) -> dict[str, str]:
    """What each rank on this machine did when it last said so."""
    return {
        rank: f"last seen {what if what.startswith('after ') else f'at {what}'}"
        for rank, what in left(folder, "doing").items()
        if what
    }


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # one of those that have no names
        return f"signal {number}"


def error_of(job: Job) -> int:
    """`launch`, with errors as a line."""
    try:
        return launch(job)
    except DistributedError as error:
        print(f"genesis {error}", file=sys.stderr)
        return 2
