"""Machine code of many kernels, compiled by several processes at once: Triton's compiler holds Python's lock, so threads would wait for
each other.

The processes end with the call. They import nothing of the program: what they are given is the text of a kernel.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from genesis.cuda.launch import cubins, triton
from genesis.cuda.launch.cubins import Code
from genesis.cuda.launch.noted import Notes

FEW = 4  # kernels below which this process compiles them, when each is wanted: others take a second to begin
MOST = 32  # processes, of which each takes about 200 MB
SILENT = 5.0  # seconds of work of which nothing is said
OFTEN = 5.0  # seconds between what is said then
COMMAND = "import sys; sys.path[:] = {path!r}; from genesis.cuda.launch.worker import main; main()"
Process = subprocess.Popen  # of bytes


def compile_all(codes: Iterable[Code]) -> None:
    """Compile what is not kept yet. What no process can compile is left for when it is wanted."""
    missing = [code for code in codes if not cubins.is_kept(code)]
    count = min(processors(), len(missing), MOST)
    if len(missing) < FEW or count < 2 or not sys.executable or not triton.available():
        return
    missing.sort(key=lambda code: len(code.source), reverse=True)  # what may take long begins first
    todo, told = deque(missing), Told("kernels compiled for the GPU", len(missing))
    processes = [_started() for _ in range(count)]
    try:
        with ThreadPoolExecutor(count) as pool:
            done = [pool.submit(partial(_compile, process, todo, told)) for process in processes]
            try:
                [each.result() for each in done]
            except BaseException:  # the program is interrupted, say
                todo.clear()
                _end(processes)
                raise
    finally:
        _end(processes)


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _started() -> Process[bytes]:
    command = [sys.executable, "-c", COMMAND.format(path=sys.path)]
    environment = {**os.environ, "GENESIS_CUDA": "off"}
    return Process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment)


def _end(processes: Iterable[Process[bytes]]) -> None:
    for process in processes:
        process.kill()  # it waits for a kernel, or nobody wants the one that it compiles
    for process in processes:
        process.communicate()


def _compile(process: Process[bytes], todo: deque[Code], told: Told) -> None:
    """Have a process compile one after the other, as long as there are some."""
    assert process.stdin is not None and process.stdout is not None
    while True:
        try:
            code = todo.popleft()
        except IndexError:
            return
        try:
            pickle.dump(code.parts, process.stdin)
            process.stdin.flush()
            made = pickle.load(process.stdout)
        except (OSError, EOFError, pickle.UnpicklingError):  # it has ended
            return
        if made is not None:
            cubins.keep(code, made)
        told.one_more()


class Told:
    """How much of long work is done, on the standard error output; nothing of short work."""

    def __init__(self, what: str, count: int) -> None:
        self.what, self.count, self.done = what, count, 0
        self.next = time.monotonic() + SILENT

    def one_more(self) -> None:
        self.done += 1
        now = time.monotonic()
        if now >= self.next and sys.stderr is not None:
            self.next = now + OFTEN
            print(f"genesis: {self.done} of {self.count} {self.what}", file=sys.stderr, flush=True)


def prepare(notes: Notes) -> None:
    """Have everything ready that was noted, both kinds at once."""
    with ThreadPoolExecutor(1) as pool:
        building = pool.submit(build_all, notes.builds.values()) if notes.builds else None
        compile_all(notes.codes)
        if building is not None:
            building.result()


def build_all(builds: Collection[Callable[[], Any]]) -> None:
    """Call what builds graphs of a library, several at a time."""
    if builds:
        told = Told("plans of cuDNN built", len(builds))
        with ThreadPoolExecutor(min(processors(), len(builds), MOST)) as pool:
            for _ in pool.map(lambda build: build(), builds):
                told.one_more()
