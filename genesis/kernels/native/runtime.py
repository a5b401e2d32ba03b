"""Tables of phases, done by this thread and workers in one native call.

    >>> from genesis.kernels.native import runtime
    >>> from genesis.kernels.llvm import native
    >>> code = '''define void @mark(ptr %args, i64 %chunk) {
    ...   %at = getelementptr i64, ptr %args, i64 %chunk
    ...   store i64 %chunk, ptr %at
    ...   ret void
    ... }'''
    >>> import numpy as np
    >>> marks = np.zeros(4, np.int64)
    >>> table = runtime.Table([(native.address("mark", code), marks.ctypes.data, 4)])
    >>> runtime.run(table)
    >>> marks
    array([0, 1, 2, 3])

A row is a phase: the address of a function ``void f(ptr args, i64 chunk)``, the address of its arguments, and how many
chunks there are. A phase begins when all chunks of the one before have ended; chunks of one phase may run in any order
and at the same time. Which thread does what never changes a result, so it has the same bits for any number of threads,
as long as chunks depend on nothing but their number. (`code` says how it works.)

Workers are threads of Python that have gone into native code: they need no lock of the interpreter, they sleep when
there is nothing to do for `code.SPIN`, and nobody waits for one that the system does not run.
"""

from __future__ import annotations

import ctypes
import functools
import os
import struct
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from genesis.base.errors import ArgumentValueError, message
from genesis.base.locks import process_lock
from genesis.base.threads import followers, get_num_threads
from genesis.kernels.llvm import native
from genesis.kernels.native import code


class Table:
    """Phases, one row each: (address of the function, address of its arguments, chunks).

    Rows may be changed between runs (``table.rows[i, 2] = chunks``). What the arguments point to has to stay where it
    is as long as the table is run; ``kept`` is for what it is to keep alive.
    """

    __slots__ = ("address", "count", "kept", "rows")

    def __init__(self, rows: Sequence[tuple[int, int, int]] | Any, kept: Any = None) -> None:
        self.rows = np.array(rows, np.int64).reshape(-1, 3)
        chunks = self.rows[:, 2]
        if wrong := chunks[(chunks < 0) | (chunks >= code.CHUNKS)].tolist():
            raise ArgumentValueError(message("Table", f"expected less than {code.CHUNKS} chunks, got {wrong[0]}"))
        self.address, self.count, self.kept = self.rows.ctypes.data, len(self.rows), kept


def run(table: Table, threads: int | None = None) -> None:
    """Do all phases of a table, by as many threads as `genesis.get_num_threads` says, or by ``threads`` if that is less.

    It may be called by several threads, and by functions in a table: whoever finds the workers busy does its own work
    alone.
    """
    pool = _pools[0] if _pools else begin()
    most = pool.threads
    pool.run(pool.control, table.address, table.count, most if threads is None or threads > most else threads)


def run_block(block: bytes, rows: int, threads: int | None = None) -> None:
    """`run` of a table that is used once: so many rows and then the arguments, for which the rows have the number of
    bytes from the beginning of the block. (`struct.pack` makes it in one step.)
    """
    pool = _pools[0] if _pools else begin()
    most = pool.threads
    pool.run_block(pool.control, block, rows, most if threads is None or threads > most else threads)


def in_slices(
    function: Callable[..., None],
    before: Sequence[int],
    count: int,
    after: Sequence[int],
    slices: int | None = None,
    moving: Mapping[int, int] | None = None,
) -> None:
    """Call ``function(*before, first, last, *after)`` for slices of ``range(count)``, by several threads.

    Args:
        function: of addresses and integers (`genesis.kernels.llvm.native.nest`)
        slices: how many; four for each thread, if it is not said
        moving: what is added to an argument with every slice, by its position in ``before``, or negative in ``after``
    """
    pool = _pools[0] if _pools else begin()
    if slices is None:
        slices = 1 if pool.threads == 1 else min(count, 4 * pool.threads)
    if slices < 2 or (pool.threads < 2 and not moving):
        function(*before, 0, count, *after)
        return
    words = (*before, 0, 0, *after)
    pairs = [0] * (2 * len(words))
    pairs[::2] = words
    for position, step in (moving or {}).items():
        pairs[2 * (position % len(words)) + 1] = step
    head = pool.made.slice, _ROW.size, slices, native.address_of(function), count, slices, len(before), len(words)
    run_block(struct.pack(f"={len(head) + len(pairs)}q", *head, *pairs), 1)


_ROW = struct.Struct("=3q")
GRAIN = 1 << 16  # elements of a chunk of a ufunc, at least: 5 to 50 us; to wake a worker takes 15


def spread(loop: int, operands: int, sizes: int) -> tuple[int, int]:
    """Another loop of a NumPy ufunc that lets workers do parts of it, and the address of what it is given.

    Args:
        loop: the address of a loop in which no element needs another one's result
        operands: how many there are, with results
        sizes: how many a loop has: 1, and one for each dimension in the signature of a gufunc
    """
    begin()
    given = _block(5)
    given[:] = loop, operands, sizes, GRAIN, current.ctypes.data
    return _functions().spread, given.ctypes.data


@dataclass(repr=False, eq=False)
class _Pool:
    """Workers of this process and what they look at. It never goes: they may look at it until the process ends."""

    control: int
    made: _Functions
    memory: Any
    sleeps: bool  # whether threads can sleep here; else there are no workers
    threads: int = 1
    owns: list[Any] = field(default_factory=list)  # of each worker: its index, and whether it is to stop

    def __post_init__(self) -> None:
        self.run, self.run_block = self.made.run, self.made.run_block

    def resize(self, threads: int) -> None:
        """Have as many workers as so many threads need beside the caller."""
        with _lock:
            try:
                while self.sleeps and len(self.owns) < threads - 1:
                    self._start(len(self.owns))
            except RuntimeError:  # the interpreter ends, or there are too many threads: those that are there will do
                pass
            leaving = self.owns[threads - 1 :]
            del self.owns[threads - 1 :]
            for own in leaving:
                own[code.STOP] = 1
            if leaving:
                self.made.wake(self.control, code.CHUNKS)
            self.threads = threads
            current[:] = self.made.run_address, self.control, threads

    def _start(self, index: int) -> None:
        own = _block(code.OWN_WORDS)
        own[code.INDEX] = index
        thread = threading.Thread(
            target=self.made.worker, args=(self.control, own.ctypes.data), name=f"genesis-native-{index}", daemon=True
        )
        thread.start()
        self.owns.append(own)


def ready() -> None:
    """`begin`, for what native code does by itself: after a fork it would do it alone."""
    if not _pools:
        begin()


def _block(words: int) -> Any:
    """Zeros that are never freed, and begin where a line of the cache does."""
    memory = np.zeros(words + 8, np.int64)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(memory))
    return memory[-memory.ctypes.data % 64 // 8 :][:words]


_lock = process_lock()
_pools: list[_Pool] = []  # one, as soon as it is needed
# for native code that has phases of its own: the address of ``run``, and its first and last argument; `begin` first
current = _block(3)


def begin() -> _Pool:
    """Have the workers of this process. (After a fork: those of the child.)"""
    if _pools:
        return _pools[0]
    with _lock:
        if not _pools:
            pool = _made()
            pool.resize(get_num_threads())
            _pools.append(pool)
        return _pools[0]


def _follow(threads: int) -> None:
    if _pools:
        _pools[0].resize(threads)


followers.append(_follow)


def _made() -> _Pool:
    made = _functions()
    control = _block(code.WORDS)
    system, sleeps = code.system(sys.platform, _machine()), False
    if system is not None:
        addresses = [_library_function(name) for name in system.functions]
        control[code.WAIT], control[code.WAKE] = addresses
        sleeps = all(addresses)
    control[code.SPINS] = _spins(made.spin, control.ctypes.data)
    return _Pool(control.ctypes.data, made, control, sleeps)


class _Functions(NamedTuple):
    """What is compiled: functions, and addresses of those that native code calls."""

    run: Callable[[int, int, int, int], None]
    run_block: Callable[[int, bytes, int, int], None]
    worker: Callable[[int, int], None]
    wake: Callable[[int, int], None]
    spin: Callable[[int, int], None]
    here: Callable[[int], None]
    sleep_apart: Callable[[int, int, int], None]
    run_address: int
    spread: int
    slice: int


@functools.cache
def _functions() -> _Functions:
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    parameters = {
        "run": (pointer, pointer, number, number),
        "run_block": (pointer, ctypes.c_char_p, number, number),
        "worker": (pointer, pointer),
        "wake": (pointer, number),
        "spin": (pointer, number),
        "here": (pointer,),
        "sleep_apart": (pointer, pointer, number),
    }
    system = code.system(sys.platform, _machine()) or code.NO_SYSTEM
    *where, spread, slice_ = native.addresses_in(code.module(system), [*parameters, "spread", "slice"])
    callables = [ctypes.CFUNCTYPE(None, *p)(at) for p, at in zip(parameters.values(), where, strict=True)]
    return _Functions(*callables, where[0], spread, slice_)


def _machine() -> str:
    return os.uname().machine if hasattr(os, "uname") else ""


def _library_function(name: str) -> int:
    """The address of a function of the C library; 0 if it has none of this name."""
    try:
        return ctypes.cast(ctypes.CDLL(None)[name], ctypes.c_void_p).value or 0
    except (AttributeError, OSError):
        return 0


def _spins(spin: Callable[[int, int], None], control: int) -> int:
    """How often a thread looks in `code.SPIN` seconds."""
    count, times = 500, []
    for _ in range(3):
        begun = time.perf_counter()
        spin(control, count)
        times.append(time.perf_counter() - begun)
    return max(1, int(code.SPIN / min(times) * count))


def _after_fork() -> None:
    _pools.clear()  # the threads of the parent are not here
    current[2] = 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
