"""Worker processes: Python code in examples and transforms runs on several cores.

Each has a pipe of tasks and a socket of results, and shares no lock with others: one that is killed stops nobody else.
A thread in the worker reads the tasks at once, so that the loader never waits to send one, and ends the process when
the pipe is closed, which also happens when the loader's process is killed.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import queue
import random
import signal
import sys
import threading
import time
import traceback
import warnings
import weakref
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from typing import Any

import numpy as np

from genesis.base.blas import set_blas_threads
from genesis.base.errors import WorkerError, message
from genesis.base.locks import process_lock
from genesis.base.threads import set_num_threads
from genesis.data.fetch import End, Fetcher, Job, Task, WorkerInfo, worker_info
from genesis.data.threads import Failure, initialized, outcome, timed_out
from genesis.data.transfer import LEASED, Receiver, Sender

GRACE = 1.0  # seconds for what a worker is at when it is told to end
_CHECK = 1.0  # seconds between looks whether workers are alive, when none reports
_OURS: weakref.WeakSet[Connection[Any, Any]] = weakref.WeakSet()  # ends that must not stay open in forked children
# of one worker at a time: a fork in another thread would inherit ends that are not in `_OURS`
_starting = process_lock()


def _close_inherited() -> None:
    for connection in list(_OURS):
        connection.close()


def _close(connection: Connection[Any, Any]) -> None:
    """Close an end of ours.

    It leaves `_OURS` first: once it is closed another thread may open something under its number and fork, and the
    child would close that.
    """
    _OURS.discard(connection)
    connection.close()


os.register_at_fork(after_in_child=_close_inherited)


def start_context(given: Any) -> Any:
    """How processes are started: as given, as ``multiprocessing.set_start_method`` said, else forked on Linux.

    A forked worker needs no ``if __name__ == "__main__"`` and no pickled dataset. It is not Python's own choice
    everywhere: Python 3.14 takes "forkserver" on Linux, and macOS has "spawn" because its libraries do not survive a
        fork.
    """
    if given is not None:
        return multiprocessing.get_context(given) if isinstance(given, str) else given
    chosen = multiprocessing.get_start_method(allow_none=True)
    return multiprocessing.get_context(chosen or ("fork" if sys.platform == "linux" else "spawn"))


class Processes:
    """Worker processes of a loader."""

    epoch = -1

    def __init__(self, job: Job, seed: int, context: Any) -> None:
        self.owner, self.closed, self.method = os.getpid(), False, context.get_start_method()
        self.processes: list[Any] = []
        self.tasks: list[Any] = []
        self.receivers: list[Receiver] = []
        try:
            for i in range(job.num_workers):
                with _starting if self.method == "fork" else contextlib.nullcontext():
                    self._start(i, job, seed, context)
        except BaseException:
            self.close(at_once=True)
            raise

    def _start(self, number: int, job: Job, seed: int, context: Any) -> None:
        theirs, ours = context.Pipe(duplex=False)
        results, their_results = context.Pipe()  # a socket: descriptors travel through it
        _OURS.update((ours, results))
        self.tasks.append(ours)  # before the start, which may fail: `close` closes them
        self.receivers.append(Receiver(results, max(4, LEASED // job.num_workers)))
        arguments = (job, number, seed, theirs, their_results, self.owner)
        process = context.Process(target=_work, args=arguments, name=f"genesis-loader-{number}", daemon=True)
        try:
            with _without_sigint(), _without_fork_warning():
                process.start()
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            if self.method != "fork":
                error.add_note(f"DataLoader: workers are started by {self.method}, for which the dataset and "
                               "the functions of the loader are pickled: define them at the top of a module, or pass "
                               'multiprocessing_context="thread"')  # fmt: skip
            raise
        finally:
            theirs.close()
            their_results.close()
        self.processes.append(process)

    def send(self, worker: int, task: Task) -> None:
        with contextlib.suppress(OSError):  # gone: `receive` says so
            self.tasks[worker].send((self.receivers[worker].freed(), task))

    def receive(self, timeout: float) -> tuple[int, int, Any]:
        until = time.monotonic() + timeout if timeout else float("inf")
        connections = {receiver.connection: i for i, receiver in enumerate(self.receivers)}
        while True:
            ready = wait(list(connections), max(0, min(_CHECK, until - time.monotonic())))
            for connection in ready:
                return self._received(connections[connection])
            for i, process in enumerate(self.processes):
                if not process.is_alive() and not self.receivers[i].connection.poll():
                    raise self._died(i)
            if time.monotonic() >= until:
                raise timed_out(timeout)

    def _received(self, worker: int) -> tuple[int, int, Any]:
        try:
            (epoch, number, kind), load = self.receivers[worker].receive()
        except (EOFError, OSError) as error:
            raise self._died(worker) from error
        try:
            value = load()
        except Exception as error:
            error.add_note(f"DataLoader: unpickling batch {number} of worker {worker}")
            return epoch, number, Failure(error)
        if kind == "batch":
            return epoch, number, value
        return epoch, number, Failure(End()) if kind == "end" else Failure(_rebuilt(value), final=kind == "final")

    def _died(self, worker: int) -> WorkerError:
        process = self.processes[worker]
        process.join(GRACE)
        code = process.exitcode
        how = (
            "is gone"
            if code is None
            else f"exited with code {code}"
            if code >= 0
            else f"was killed by {_signal(-code)}"
        )
        hint = {True: "fewer workers or smaller batches, if memory ran out", False: "num_workers=0 shows what happens"}
        if self.method != "fork" and code == 1 and not self.receivers[worker].segments:
            hint[False] = f'if __name__ == "__main__": around what a script does (workers are started by {self.method})'
        return WorkerError(message("DataLoader", f"worker {worker} (process {process.pid}) {how}",
                                   hint=hint[code == -signal.SIGKILL]))  # fmt: skip

    def close(self, at_once: bool = False) -> None:
        if self.closed or os.getpid() != self.owner:
            return
        self.closed = True
        for connection in self.tasks:
            _close(connection)
        until = time.monotonic() + (0 if at_once else GRACE)
        for end in ("wait", "terminate", "kill"):
            for process in self.processes:
                if end != "wait" and process.is_alive():
                    getattr(process, end)()
            for process in self.processes:
                process.join(max(0, until - time.monotonic()))
            until = time.monotonic() + GRACE
        for receiver in self.receivers:
            _close(receiver.connection)
        for process in self.processes:
            with contextlib.suppress(ValueError):  # still running: nothing more can be done
                process.close()


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


@contextlib.contextmanager
def _without_sigint() -> Iterator[None]:
    """A process that is started here does not see Ctrl-C before it is ready to ignore it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _without_fork_warning() -> Iterator[None]:
    """Python 3.12 and later warn of every fork beside threads, those of BLAS included."""
    with warnings.catch_warnings() if sys.version_info >= (3, 12) else contextlib.nullcontext():
        if sys.version_info >= (3, 12):
            warnings.simplefilter("ignore", DeprecationWarning)
        yield


# ---- in the worker


def _work(job: Job, number: int, seed: int, tasks: Any, results: Any, owner: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group: the loader's process decides
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    set_num_threads(1)  # the workers are the parallelism
    set_blas_threads(1)
    info = WorkerInfo(number, job.num_workers, seed + number, job.dataset)
    worker_info.set(info)
    np.random.get_bit_generator().lock._at_fork_reinit()  # another thread may have held it at the fork
    _seed_globals(seed + number)
    sender, fetcher = Sender(results, owner), Fetcher(job, info)
    fetcher.before_example = _seed_globals
    inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(tasks, inbox), daemon=True).start()
    failed = initialized(job, info)
    while (received := inbox.get()) is not None:
        free, task = pickle.loads(received)  # not by the thread that reads: where this fails the process ends
        sender.free.update(free)
        _answer(sender, task, failed or outcome(fetcher, task))


def _read(tasks: Any, inbox: queue.SimpleQueue[Any]) -> None:
    """Take tasks as they come. When there will be no more, the process ends, whatever it is at."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            inbox.put(tasks.recv_bytes())
    inbox.put(None)
    time.sleep(GRACE)
    os._exit(0)


def _seed_globals(seed: int) -> None:
    """Python's and NumPy's own generators, which the whole process shares, follow the example, too."""
    random.seed(seed)
    np.random.seed(seed & 0xFFFFFFFF)


def _answer(sender: Sender, task: Task, result: Any) -> None:
    head = task.epoch, task.number
    try:
        if isinstance(result, Failure):
            ended = isinstance(result.error, End)
            kind = "end" if ended else "final" if result.final else "error"
            return sender.send((*head, kind), None if ended else _described(result.error))
        sender.send((*head, "batch"), result)
    except (BrokenPipeError, ConnectionResetError):  # nobody listens any more
        os._exit(0)
    except BaseException as error:
        error.add_note(
            f"DataLoader: sending batch {task.number} of type {type(result).__name__} from worker {_worker()}"
        )
        sender.send((*head, "error"), _described(error))


def _worker() -> int:
    info = worker_info.get()
    return -1 if info is None else info.id


# ---- exceptions


class _RemoteTraceback(Exception):  # noqa: N818 - shown as the cause
    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text


def _described(error: BaseException) -> tuple[bytes | None, str, str, list[str]]:
    """An exception as a pickle (None where that cannot be), its type and message, its traceback, its notes."""
    notes = list(getattr(error, "__notes__", []))
    lines = traceback.format_exception(type(error), error, error.__traceback__)
    text = f'\n"""\n(in a worker process)\n{"".join(lines)}"""'
    head = f"{type(error).__name__}: {error}"
    for attempt in (lambda: error, lambda: _Plain(error)):
        with contextlib.suppress(Exception):
            data = pickle.dumps(attempt())
            pickle.loads(data)
            return data, head, text, notes
    return None, head, text, notes


class _Plain:
    """An exception by its type, with those arguments and attributes that can be pickled."""

    def __init__(self, error: BaseException) -> None:
        self.kind, self.args = type(error), tuple(a if _pickles(a) else repr(a) for a in error.args)
        self.attributes = {k: v for k, v in vars(error).items() if _pickles(v)}

    def __reduce__(self) -> Any:
        return _from_parts, (self.kind, self.args, self.attributes)


def _from_parts(kind: type[BaseException], args: tuple[Any, ...], attributes: dict[str, Any]) -> BaseException:
    error = kind.__new__(kind, *args)  # not its __init__, which may want other arguments
    vars(error).update(attributes)
    return error


def _pickles(value: Any) -> bool:
    with contextlib.suppress(Exception):
        pickle.loads(pickle.dumps(value))
        return True
    return False


def _rebuilt(described: tuple[bytes | None, str, str, list[str]]) -> BaseException:
    data, head, text, notes = described
    error: BaseException = WorkerError(head)
    if data is not None:
        with contextlib.suppress(Exception):
            error = pickle.loads(data)
    for note in notes:
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)
    error.__cause__ = _RemoteTraceback(text)
    return error
