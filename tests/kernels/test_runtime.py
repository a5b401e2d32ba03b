"""Tables of phases: every chunk once, phases one after the other, whoever runs them and whatever happens meanwhile."""

from __future__ import annotations

import ctypes
import functools
import os
import random
import struct
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import genesis
from genesis.kernels.llvm import loops, native, rows
from genesis.kernels.native import code, runtime

pytestmark = pytest.mark.skipif(native.binding() is None, reason="no llvmlite")

# count: args[chunk] += 1.  ring: args has n, from, to; to[chunk] = from[chunk - 1] + from[chunk] (mod n, wrapping)
# who: args[chunk] = where the stack of the thread is, after some microseconds
CODE = """
define void @count(ptr %args, i64 %chunk) {
  %at = getelementptr i64, ptr %args, i64 %chunk
  %old = load i64, ptr %at
  %new = add i64 %old, 1
  store i64 %new, ptr %at
  ret void
}
define void @ring(ptr %args, i64 %chunk) {
  %n = load i64, ptr %args
  %from_at = getelementptr i64, ptr %args, i64 1
  %from = load ptr, ptr %from_at
  %to_at = getelementptr i64, ptr %args, i64 2
  %to = load ptr, ptr %to_at
  %above = add i64 %chunk, %n
  %before = sub i64 %above, 1
  %left = urem i64 %before, %n
  %a_at = getelementptr i64, ptr %from, i64 %left
  %a = load i64, ptr %a_at
  %b_at = getelementptr i64, ptr %from, i64 %chunk
  %b = load i64, ptr %b_at
  %sum = add i64 %a, %b
  %out = getelementptr i64, ptr %to, i64 %chunk
  store i64 %sum, ptr %out
  ret void
}
define void @who(ptr %args, i64 %chunk) {
entry:
  %mine = alloca i64
  %stack = ptrtoint ptr %mine to i64
  %at = getelementptr i64, ptr %args, i64 %chunk
  store i64 %stack, ptr %at
  br label %again
again:
  %i = phi i64 [ 0, %entry ], [ %next, %again ]
  store volatile i64 %i, ptr %mine
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, 20000
  br i1 %more, label %again, label %done
done:
  ret void
}
"""


@functools.cache
def functions():
    return native.addresses_in(CODE, ["count", "ring", "who"])


@pytest.fixture(params=[1, 2, 3, 5])
def threads(request):
    before = genesis.get_num_threads()
    genesis.set_num_threads(request.param)
    yield request.param
    genesis.set_num_threads(before)


def rings(phases, n=7):
    """A table whose phases read what the one before wrote, and the numbers that they end with and should end with."""
    memory = np.zeros((2, n), np.int64)
    memory[0] = np.arange(n)
    blocks = np.array([[n, memory[i].ctypes.data, memory[1 - i].ctypes.data] for i in range(2)], np.int64)
    rows = [(functions()[1], blocks[i % 2].ctypes.data, n) for i in range(phases)]
    want = np.arange(n)
    for _ in range(phases):
        want = np.roll(want, 1) + want
    return runtime.Table(rows, kept=(blocks, memory)), memory[phases % 2], want


def test_a_thread_has_neighbouring_chunks():
    """The caller takes them from the first one on, the worker from the last one back."""
    before = genesis.get_num_threads()
    genesis.set_num_threads(2)
    stacks, shared, end = np.zeros(48, np.int64), 0, time.monotonic() + 10
    try:
        table = runtime.Table([(functions()[2], stacks.ctypes.data, len(stacks))])
        while shared < 20 and time.monotonic() < end:
            runtime.run(table)
            borders = np.flatnonzero(np.abs(np.diff(stacks)) > 1 << 14)  # the stacks of threads are far apart
            assert len(borders) <= 1
            shared += len(borders)
    finally:
        genesis.set_num_threads(before)
    if not shared:
        pytest.skip("no processor was free for the worker")


def test_every_chunk_is_done_once(threads):
    sizes = [0, 1, 2, 3, 64, 1, 1000, 0, 5]
    counts = [np.zeros(n, np.int64) for n in sizes]
    table = runtime.Table([(functions()[0], c.ctypes.data, n) for c, n in zip(counts, sizes, strict=True)])
    for times in range(1, 201):
        runtime.run(table)
        assert all((c == times).all() for c in counts)
    runtime.run(table, 1)
    runtime.run_block(struct.pack("3q64q", functions()[0], 24, 64, *range(64)), 1)
    assert (counts[6] == 201).all()


def test_a_phase_begins_when_the_one_before_has_ended(threads):
    for phases in (1, 2, 59, 3000):
        table, found, want = rings(phases)
        runtime.run(table)
        np.testing.assert_array_equal(found, want)


def test_a_table_without_rows_and_too_many_chunks():
    runtime.run(runtime.Table([]))
    for chunks in (-1, code.CHUNKS):
        with pytest.raises(ValueError, match="chunks"):
            runtime.Table([(0, 0, chunks)])


@pytest.mark.parametrize("threads", [3], indirect=True)
def test_no_call_of_a_sleeping_thread_is_missed(threads):
    """With next to no spinning, both sides sleep and are woken all the time."""
    pool = runtime._made()
    pool.memory[code.SPINS] = 1
    pool.resize(3)
    table, _, _ = rings(40)
    choose = random.Random(0)
    for i in range(3000):
        pool.run(pool.control, table.address, table.count, 3)
        if i % 10 == 0:
            time.sleep(choose.random() * 1e-4)
    pool.resize(1)


def meeting(parties):
    """A phase of as many chunks, which goes on when each is in a thread of its own."""
    barrier = threading.Barrier(parties, timeout=30)
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(lambda args, chunk: barrier.wait() and None)


def address(function):
    return ctypes.cast(function, ctypes.c_void_p).value


def test_as_many_threads_as_are_asked_for_work_at_the_same_time(threads):
    for pause in (0, 0.01):  # workers that look for work, and such that sleep
        time.sleep(pause)
        together = meeting(threads)
        runtime.run(runtime.Table([(address(together), 0, threads)], kept=together))


@pytest.mark.parametrize("threads", [5], indirect=True)
def test_no_more_threads_than_a_run_may_use(threads):
    seen = set()

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
    def note(args, chunk):
        seen.add(threading.get_ident())
        time.sleep(0.001)

    together = meeting(5)
    runtime.run(runtime.Table([(address(together), 0, 5)]))
    runtime.run(runtime.Table([(address(note), 0, 60)]), 2)
    assert len(seen) <= 2


def test_nobody_waits_for_a_worker_that_does_not_come():
    pool = runtime._made()
    pool.threads = 4  # though there is none
    table, found, want = rings(10)
    pool.run(pool.control, table.address, table.count, 4)
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("threads", [2], indirect=True)
def test_two_callers_at_once_and_calls_within_calls(threads):
    inner, found, want = rings(11)
    free = threading.Event()

    def nested(args, chunk):
        if chunk == 0:
            runtime.run(inner)
        free.wait(30)

    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(nested)
    outer = threading.Thread(target=runtime.run, args=(runtime.Table([(address(function), 0, 4)]),))
    outer.start()
    other, other_found, other_want = rings(50)
    runtime.run(other)  # though both threads are in the other run
    np.testing.assert_array_equal(other_found, other_want)
    free.set()
    outer.join(30)
    np.testing.assert_array_equal(found, want)


def test_many_callers(threads):
    failures = []

    def call():
        for phases in range(1, 200, 7):
            table, found, want = rings(phases)
            runtime.run(table)
            if not (found == want).all():
                failures.append(phases)

    callers = [threading.Thread(target=call) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(60)
    assert not failures


def workers():
    return [t for t in threading.enumerate() if t.name.startswith("genesis-native")]


def test_workers_come_and_go_with_the_number_of_threads():
    before = genesis.get_num_threads()
    table, _, _ = rings(3)
    for number in (5, 2, 4, 1, 3, 1):
        genesis.set_num_threads(number)
        runtime.run(table)
        assert len(runtime._pools[0].owns) == number - 1
    for _ in range(2000):
        if not workers():
            break
        time.sleep(0.01)
    assert not workers()
    genesis.set_num_threads(before)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_has_workers_of_its_own(threads):
    table, found, want = rings(20)
    runtime.run(table)
    child = os.fork()
    if child == 0:
        together = meeting(threads)
        runtime.run(runtime.Table([(address(together), 0, threads)]))
        table, found, want = rings(20)
        runtime.run(table)
        os._exit(0 if (found == want).all() else 1)
    assert os.waitpid(child, 0)[1] == 0


def memory_in_use():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="no /proc here")
@pytest.mark.parametrize("threads", [2], indirect=True)
def test_memory_stays_flat(threads):
    table, _, _ = rings(3)
    block = struct.pack("6q4q", functions()[0], 48, 4, functions()[0], 48, 1, *range(4))
    for times in (2000, 100_000):
        before = memory_in_use()
        for _ in range(times):
            runtime.run(table)
            runtime.run_block(block, 2)
    assert memory_in_use() - before < 1 << 20


def python(text, **options):
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120, **options)


BEGIN = f"""
import ctypes, os, signal, threading, time
import numpy as np, genesis
from genesis.kernels.llvm import native
from genesis.kernels.native import runtime
genesis.set_num_threads(3)
count, ring = native.addresses_in('''{CODE}''', ['count', 'ring'])
memory = np.zeros(1000, np.int64)
table = runtime.Table([(count, memory.ctypes.data, 1000)] * 500)
runtime.run(table)
"""


@pytest.mark.parametrize(
    "end",
    ["", "raise SystemExit(0)", "time.sleep(0.05)", "import atexit; atexit.register(runtime.run, table)",
     "def forever(table, memory):\n  while True: runtime.run(table)\n"
     "threading.Thread(target=forever, args=(table, memory), daemon=True).start()"],
)  # fmt: skip
def test_the_interpreter_ends_while_workers_look_for_work(end):
    for _ in range(3):
        done = python(BEGIN + end)
        assert (done.returncode, done.stderr) == (0, "")


def test_the_interpreter_ends_while_a_thread_is_in_native_code():
    text = """
def work(table, memory, begun):  # for seconds, if the process did not end
    begun.set()
    runtime.run(table)
begun, table = threading.Event(), runtime.Table([(count, memory.ctypes.data, 1000)] * 500_000)
threading.Thread(target=work, args=(table, memory, begun), daemon=True).start()
begun.wait()
"""
    done = python(BEGIN + text)
    assert (done.returncode, done.stderr) == (0, "")


def test_ctrl_c_comes_between_runs():
    text = """
def interrupt():
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt, daemon=True).start()
try:
    for i in range(10**9): runtime.run(table)
except KeyboardInterrupt:
    pass
memory[:] = 0
runtime.run(table)
print((memory == 500).all())
"""
    done = python(BEGIN + text)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


def test_where_threads_cannot_sleep_there_are_no_workers(monkeypatch):
    monkeypatch.setattr(code, "system", lambda *_: None)
    monkeypatch.setattr(runtime, "_functions", runtime._functions.__wrapped__)
    pool = runtime._made()
    pool.resize(4)
    table, found, want = rings(9)
    pool.run(pool.control, table.address, table.count, 4)
    assert not pool.owns
    np.testing.assert_array_equal(found, want)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no processors to choose from")
@pytest.mark.parametrize("meanwhile", ["nothing", "taskset"])
def test_a_worker_sleeps_off_the_processor_of_its_caller(meanwhile):
    """It may not be there while it sleeps, and all is as before when it is awake; unless somebody else has said something."""
    before = os.sched_getaffinity(0)
    caller, *others = before
    if not others:
        pytest.skip("there is one processor")
    control = runtime.begin().memory.copy()  # of nobody but this thread and the one below
    made, at = runtime._functions(), control.ctypes.data
    value, calls = int(control.view(np.int32)[2 * code.CALLS]), at + 8 * code.CALLS
    try:
        os.sched_setaffinity(0, {caller})
        made.here(at)
    finally:
        os.sched_setaffinity(0, before)
    after = []

    def sleep():
        made.sleep_apart(at, calls, value)
        after.append(os.sched_getaffinity(0))

    thread = threading.Thread(target=sleep)
    thread.start()
    try:
        end = time.monotonic() + 10
        while os.sched_getaffinity(thread.native_id) == before and time.monotonic() < end:
            time.sleep(0.001)
        assert os.sched_getaffinity(thread.native_id) == set(others)
        if meanwhile == "taskset":
            os.sched_setaffinity(thread.native_id, {caller})
    finally:
        made.wake(at, 1)
        thread.join()
    assert after == [before if meanwhile == "nothing" else {caller}]


@pytest.mark.parametrize("triple", ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "arm64-apple-macosx",
                                    "x86_64-apple-macosx"])  # fmt: skip
def test_it_assembles_for_every_system(triple):
    llvm = native.binding()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine, _, name = triple.split("-")[:3]
    system = code.system("darwin" if name.startswith("macosx") or "apple" in triple else "linux", machine)
    module = llvm.parse_assembly(code.module(system))
    module.verify()
    text = llvm.Target.from_triple(triple).create_target_machine(opt=2).emit_assembly(module)
    assert ("pause" if machine == "x86_64" else "yield") in text


def test_systems():
    assert code.system("linux", "aarch64").functions == ("syscall", "syscall")
    assert "i64 98," in code.system("linux", "arm64").wait and "i64 202," in code.system("linux").wake
    assert code.system("win32") is None and code.system("linux", "riscv64") is None


# ---- slices and loops of ufuncs

NEST = """
define void @add(ptr %x, ptr %parts, i64 %first, i64 %last, i64 %more) {
entry:
  %any = icmp slt i64 %first, %last
  br i1 %any, label %loop, label %done
loop:
  %i = phi i64 [ %first, %entry ], [ %next, %loop ]
  %at = getelementptr i64, ptr %x, i64 %i
  %old = load i64, ptr %at
  %new = add i64 %old, %more
  store i64 %new, ptr %at
  %next = add i64 %i, 1
  %again = icmp slt i64 %next, %last
  br i1 %again, label %loop, label %done
done:
  %size = sub i64 %last, %first
  %part = load i64, ptr %parts
  %all = add i64 %part, %size
  store i64 %all, ptr %parts
  ret void
}
"""


@pytest.mark.parametrize("count", [0, 1, 5, 1000])
@pytest.mark.parametrize("slices", [None, 1, 3, 8])
def test_slices_are_all_of_it(threads, count, slices):
    add = native.nest("add", NEST, 2, 3)
    numbers, parts = np.zeros(count, np.int64), np.zeros((8, 2), np.int64)
    given = numbers.ctypes.data, parts.ctypes.data
    runtime.in_slices(add, given, count, (7,), slices, {1: parts.strides[0]} if slices else None)
    assert (numbers == 7).all()
    if slices:
        assert parts[:slices, 0].tolist() == [count * (i + 1) // slices - count * i // slices for i in range(slices)]


@pytest.mark.parametrize("kind, dtype", [("float", np.float32), ("double", np.float64)])
def test_ufuncs_have_the_same_bits_in_any_number_of_threads(threads, kind, dtype):
    alone = loops.ufunc("times_and_more", lambda x, y: x * y + x, kind, 2)
    spread = loops.ufunc("times_and_more", lambda x, y: x * y + x, kind, 2, spread=runtime.spread)
    rng = np.random.default_rng(0)
    for shape in [(5,), (300_003,), (70, 3000), (3, 50, 1777)]:
        x, y = (rng.standard_normal(shape).astype(dtype) for _ in range(2))
        for a, b in [(x, y), (x[..., ::2], y[..., ::2]), (x, y[..., :1]), (x.T, y.T), (x, dtype(2))]:
            assert spread(a, b).tobytes() == alone(a, b).tobytes()
        out = x.copy()
        spread(out, y, out)
        np.testing.assert_array_equal(out, alone(x, y))


def test_functions_of_rows_have_the_same_bits_in_any_number_of_threads(threads):
    x = np.random.default_rng(0).standard_normal((9000, 37)).astype(np.float32)
    found = rows.gufunc(rows.softmax, "(n)->(n)", runtime.spread)(x)
    np.testing.assert_array_equal(found, rows.gufunc(rows.softmax, "(n)->(n)")(x))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_is_as_fast_after_its_first_call(threads):
    runtime.begin()
    assert runtime.current[2] == threads
    if hasattr(os, "fork"):
        child = os.fork()
        if child == 0:
            alone = runtime.current[2] == 1
            runtime.ready()
            os._exit(0 if alone and runtime.current[2] == threads else 1)
        assert os.waitpid(child, 0)[1] == 0
