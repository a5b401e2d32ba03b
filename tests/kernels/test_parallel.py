"""Slices of work go to several threads, each once."""

import threading

import pytest

from genesis.kernels.cpu import threads


@pytest.fixture(params=[1, 2, 5])
def count(request, monkeypatch):
    monkeypatch.setattr(threads, "thread_count", lambda: request.param)
    threads._pool.cache_clear()
    yield request.param
    threads._pool.cache_clear()


@pytest.mark.parametrize("size", [0, 1, 2, 7, 64, 1001])
def test_every_element_is_worked_on_once(count, size):
    done = [0] * size

    def work(part):
        for i in range(size)[part]:
            done[i] += 1

    threads.in_parallel(work, size)
    assert done == [1] * size


def test_several_threads_work_at_the_same_time(monkeypatch):
    monkeypatch.setattr(threads, "thread_count", lambda: 3)
    threads._pool.cache_clear()
    meeting = threading.Barrier(3, timeout=30)
    seen = []

    def work(part):
        if threading.get_ident() not in seen:
            seen.append(threading.get_ident())
            meeting.wait()  # goes on when three threads have come

    threads.in_parallel(work, 100)
    threads._pool.cache_clear()
    assert len(set(seen)) == 3


def test_an_exception_reaches_the_caller(count):
    def work(part):
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        threads.in_parallel(work, 10)


@pytest.mark.parametrize("asked, expected", [("1", 1), ("", None), ("nonsense", None), ("100000", None)])
def test_how_many(monkeypatch, asked, expected):
    monkeypatch.setenv("OMP_NUM_THREADS", "")
    available = threads.thread_count()
    monkeypatch.setenv("OMP_NUM_THREADS", asked)
    assert threads.thread_count() == (expected or available)
