"""Starting workers and talking to them when other threads do something else at the same moment, and what else can go
wrong there.
"""

from __future__ import annotations

import gc
import multiprocessing.connection
import os
import pickle
import sys
import threading

import numpy as np
import pytest
from common import make

import genesis
from genesis.base import blas, threads
from genesis.base.errors import WorkerError
from genesis.data import Dataset, processes

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no fork here")


def test_a_fork_does_not_close_what_has_taken_the_number_of_a_closed_end(monkeypatch):
    # what another thread may do between the system call that closes and the note that the end is closed
    connection = multiprocessing.connection.Connection
    close, found = connection._close, []

    def close_and_fork(self):
        number = self.fileno()
        close(self)
        if not found:
            found.append(number)
            # so that this number is the next to be given
            lower = list(iter(lambda: os.open(os.devnull, os.O_RDONLY), number))
            os.close(number)
            found.append([b.item() for b in make(range(6), 1, "fork")])
            for other in lower:
                os.close(other)

    batches = iter(make(range(4), 1, "fork"))
    next(batches)
    monkeypatch.setattr(connection, "_close", close_and_fork)
    del batches
    gc.collect()
    assert found[1] == list(range(6))


def test_an_end_is_forgotten_before_it_is_closed():
    theirs, ours = multiprocessing.Pipe()
    processes._OURS.add(ours)
    processes._close(ours)
    theirs.close()
    assert ours.closed and ours not in processes._OURS


class HowMany(Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, i):
        return threads.get_num_threads(), blas.blas_threads()


@pytest.mark.parametrize("kind", ["fork", "spawn"])
def test_a_worker_process_computes_with_one_thread(kind):
    before, before_blas = genesis.get_num_threads(), blas.blas_threads()
    genesis.set_num_threads(3)
    blas.set_blas_threads(3)
    try:
        one = None if before_blas is None else 1
        assert list(make(HowMany(), 1, kind, batch_size=None)) == [[1, one]] * 2
        assert genesis.get_num_threads() == 3 and blas.blas_threads() == (one and 3)
        more = make(HowMany(), 1, "fork", batch_size=None, worker_init_fn=lambda _: genesis.set_num_threads(2))
        assert list(more) == [[2, one]] * 2
    finally:
        genesis.set_num_threads(before)
        blas.set_blas_threads(before_blas or 1)


def test_a_fork_while_another_thread_draws_from_numpy():
    held, done = threading.Event(), threading.Event()

    def draw():
        with np.random.get_bit_generator().lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=draw)
    thread.start()
    held.wait()
    try:
        assert [b.item() for b in make(range(3), 1, "fork", timeout=30)] == [0, 1, 2]
    finally:
        done.set()
        thread.join()


class Unreadable:
    def __init__(self, error):
        self.error = error

    def __reduce__(self):
        return _fail, (self.error,)


def _fail(error):
    raise error("not here")


def test_a_batch_that_cannot_be_unpickled_is_an_error_in_its_place():
    made = [1, Unreadable(FileNotFoundError), 3]
    batches = iter(make(made, 1, "fork", batch_size=None))
    assert next(batches) == 1
    with pytest.raises(FileNotFoundError, match="not here") as caught:
        next(batches)
    assert caught.value.__notes__ == ["DataLoader: unpickling batch 1 of worker 0"]
    assert list(batches) == [3]


@pytest.mark.parametrize("error", [FileNotFoundError, pickle.UnpicklingError])
def test_indices_that_cannot_be_unpickled_end_the_worker(error, capfd):
    with pytest.raises(WorkerError, match=r"worker 0 \(process \d+\) exited with code 1"):
        list(make(range(3), 1, "fork", batch_size=None, sampler=[0, Unreadable(error)], timeout=30))
    assert "not here" in capfd.readouterr().err


def test_threads_that_cannot_be_started(monkeypatch):
    start, count = threading.Thread.start, []

    def fail_second(self):
        count.append(self)
        if len(count) == 2:
            raise RuntimeError("can't start new thread")
        start(self)

    monkeypatch.setattr(threading.Thread, "start", fail_second)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        iter(make(range(3), 3, "thread"))
    count[0].join(10)
    assert not count[0].is_alive()
