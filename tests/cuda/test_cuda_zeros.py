"""Counters of libraries in graphs: all are zero from the beginning, and nothing else is left out."""

from __future__ import annotations

import numpy as np
import pytest
from kernels_of import emulated
from library_stand_ins import CublasLt

import genesis
from genesis.cuda.libraries import loading
from genesis.cuda.memory.allocator import allocator
from genesis.cuda.memory.sequence import Sequence, apart
from genesis.cuda.recorded.zeros import zeros_first
from genesis.cuda.runtime.errors import CudaError


@pytest.fixture
def graphs(monkeypatch):
    """The graphs of the emulated device, as what they do in order, and a library whose kernels count."""
    with emulated() as driver:
        made, instantiate = [], driver.instantiate

        def noted(graph):
            made.append([work.what for work in driver._graphs[graph]])
            return instantiate(graph)

        monkeypatch.setattr(driver, "instantiate", noted)
        with loading.standing_in(cublaslt=CublasLt(driver, counts=True)):
            yield made


def test_a_step_sets_all_counters_at_once(graphs):
    x, w, v = (genesis.randn(*shape, dtype=genesis.float16) for shape in ((8, 16), (16, 24), (24, 16)))
    w, v = w.to("cuda"), v.to("cuda")
    step = genesis.compile(lambda x: x @ w @ v @ w)
    kept = []
    for scale in range(5):
        given = (x * scale).to("cuda")
        kept.append((step(given).cpu().numpy(), (given @ w @ v @ w).cpu().numpy()))
    for got, expected in kept:
        np.testing.assert_array_equal(got, expected)
    assert graphs
    for done in graphs:
        assert done[0] == "fill" and done.count("fill") == 1 and len(done) == 4, done


def test_what_is_left_out():
    """Zeros in the memory that is set at the beginning; not others, and none where the driver does not do it."""
    with emulated() as driver:
        x = genesis.full((64,), 5, dtype=genesis.int32, device="cuda")
        stream, at = genesis.cuda.Stream().handle, x._array.address
        x.cpu()

        def recorded(again=()):
            driver.begin_capture(stream)
            for offset in again:
                driver.fill(at + offset, 0, 4, 1, stream)
            for offset, value, count in ((0, 0, 4), (64, 0, 1), (32, 0, 1), (16, 3, 1), (128, 0, 2)):
                driver.fill(at + offset, value, 4, count, stream)
            return driver.end_capture(stream)

        graph = recorded()
        assert zeros_first(driver, graph, at, 128) == 3
        driver.launch_graph(driver.instantiate(graph), stream)
        driver.stream_synchronize(stream)
        assert x.tolist() == [0] * 4 + [3] + [0] * 29 + [5] * 30
        assert zeros_first(driver, recorded(), at + 32, 4) == 0  # one alone is as well where it is
        graph = recorded((0, 4, 8))
        assert zeros_first(driver, graph, at, 128) == 2  # those of which the others have no part

        def refused(*_):
            raise CudaError("no")

        graph, driver.begin_with_zeros = recorded(), refused
        assert zeros_first(driver, graph, at, 128) == 0 and len(driver._graphs[graph]) == 5


def test_memory_that_is_apart():
    """... is that of nothing else, together in front of all that shares its place."""
    with emulated():
        sequence = Sequence(allocator(genesis.zeros(1, device="cuda")._array.on))

        def work():
            out = []
            for number, count in enumerate((3000, 4, 2000, 8, 700)):
                if count < 100:
                    with apart():
                        block = sequence_now.take(count)
                else:
                    block = sequence_now.take(count)
                out.append((number, block.address, block.size))
                sequence_now.give_back(block)
            return out

        sequence_now = sequence
        work()
        sequence.over()
        sequence_now = planned = sequence.planned()
        places = {number: (address, size) for number, address, size in work()}
        shared = planned.over()
        assert shared.front == places[1][1] + places[3][1]
        assert sorted([places[1][0], places[3][0]]) == [shared.block.address, shared.block.address + places[1][1]]
        assert {places[n][0] for n in (0, 2, 4)} == {shared.block.address + shared.front}
