"""Slices of work go to several threads, each once; how many threads there are."""

import os
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest

import genesis
from genesis.base import threads


@pytest.fixture(params=[1, 2, 5])
def count(request):
    before = genesis.get_num_threads()
    genesis.set_num_threads(request.param)
    yield request.param
    genesis.set_num_threads(before)


@pytest.mark.parametrize("size", [0, 1, 2, 7, 64, 1001])
def test_every_element_is_worked_on_once(count, size):
    done = [0] * size

    def work(part):
        for i in range(size)[part]:
            done[i] += 1

    threads.in_parallel(work, size)
    assert done == [1] * size
    threads.in_parallel(work, size, 2)
    assert done == [2] * size


@pytest.mark.parametrize("count", [2], indirect=True)
def test_a_thread_begins_with_slices_of_its_own(count):
    both, first = threading.Barrier(2), {}

    def work(part):
        if threading.get_ident() not in first:
            first[threading.get_ident()] = part.start
            both.wait(10)

    for _ in range(5):
        first.clear()
        threads.in_parallel(work, 80, 8)
        assert first.pop(threading.get_ident()) == 0
        assert list(first.values()) == [40]


@pytest.mark.parametrize("count", [3], indirect=True)
def test_several_threads_work_at_the_same_time(count):
    meeting = threading.Barrier(3, timeout=30)
    seen = []

    def work(part):
        if threading.get_ident() not in seen:
            seen.append(threading.get_ident())
            meeting.wait()  # goes on when three threads have come

    threads.in_parallel(work, 100)
    assert len(set(seen)) == 3


def test_an_exception_reaches_the_caller(count):
    def work(part):
        raise ValueError("no")

    for _ in range(3):
        with pytest.raises(ValueError, match="no"):
            threads.in_parallel(work, 10)


@pytest.mark.parametrize("count", [2], indirect=True)
def test_a_worker_that_does_not_come_is_not_waited_for(count):
    free, busy = threading.Event(), threading.Event()
    done = []

    holder = threading.Thread(target=threads.in_parallel, args=(lambda part: (busy.set(), free.wait(30)), 2))
    holder.start()
    busy.wait(30)
    time.sleep(0.05)  # both threads of the first call are in their slices
    threads.in_parallel(lambda part: done.append(part), 20)
    free.set()
    holder.join()
    assert len(done) == 8


@pytest.mark.parametrize("count", [2], indirect=True)
def test_the_modes_of_the_caller_hold_in_workers(count):
    seen = []
    with np.errstate(all="raise"):
        for _ in range(20):
            threads.in_parallel(lambda part: seen.append(np.geterr()["divide"]), 8)
    assert set(seen) == {"raise"}


def test_nothing_is_kept(count):
    class Work:
        def __call__(self, part):
            pass

    work = Work()
    alive = weakref.ref(work)
    threads.in_parallel(work, 100)
    del work
    for _ in range(200):
        if alive() is None:
            break
        time.sleep(0.01)  # a worker that came late looks at it once more
    assert alive() is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_has_workers_of_its_own(count):
    threads.in_parallel(lambda part: None, 100)
    child = os.fork()
    if child == 0:
        done = []
        threads.in_parallel(done.append, 100)
        os._exit(0 if sum(part.stop - part.start for part in done) == 100 else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("variable", ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"])
@pytest.mark.parametrize("asked, expected", [("1", 1), ("", None), ("nonsense", None), ("100000", None)])
def test_how_many_at_first(monkeypatch, variable, asked, expected):
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.setenv(name, "")
    available = threads._default()
    assert available >= 1
    monkeypatch.setenv(variable, asked)
    assert threads._default() == (expected or available)


def test_the_environment_is_respected():
    code = "import genesis; print(genesis.get_num_threads(), genesis.get_num_interop_threads())"
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    assert subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    ).stdout.split() == ["1", "1"]


@pytest.mark.parametrize("name", ["num_threads", "num_interop_threads"])
def test_setting_and_asking(name):
    put, get = getattr(genesis, f"set_{name}"), getattr(genesis, f"get_{name}")
    before = get()
    put(np.int64(3))
    assert get() == 3
    for bad, error in [
        (0, ValueError),
        (-1, ValueError),
        (1.5, TypeError),
        ("2", TypeError),
        (None, TypeError),
        (True, TypeError),
    ]:
        with pytest.raises(error, match=f"set_{name}"):
            put(bad)
    assert get() == 3
    put(before)
