"""The allocator: what it hands out never overlaps, what comes back is used again, and the numbers that it gives are right."""

from __future__ import annotations

import gc
import random
from itertools import pairwise

import numpy as np
import pytest

from genesis.cuda.memory import exhausted
from genesis.cuda.memory.allocator import Allocator
from genesis.cuda.memory.blocks import ALIGNED, LARGE, rounded
from genesis.cuda.memory.pinned import block_of, pinned, pool_of
from genesis.cuda.runtime.connection import using
from genesis.cuda.runtime.devices import device_at
from genesis.cuda.runtime.emulated import Emulated
from genesis.cuda.runtime.errors import CudaOutOfMemory, RaceError
from genesis.cuda.runtime.streams import Stream, current

NUMBERS = np.arange(8, dtype=np.float32)


@pytest.fixture(params=[True, False], ids=["growing", "whole"])
def emulated(request):
    """Emulated devices whose memory is given in pieces of a range of addresses, or in whole segments."""
    with using(Emulated(2, memory=256 << 20, pieces=request.param)) as driver:
        yield driver


@pytest.fixture
def memory(emulated):
    return Allocator(device_at(0))


def write(block, stream=None):
    stream = current() if stream is None else stream
    stream.on.enter().fill(block.address, 1, 1, block.size, stream.handle)


class Model:
    """What is in use, as a dictionary."""

    def __init__(self):
        self.held, self.peak = {}, 0

    def check(self, memory):
        spans = sorted((b.address, b.address + b.size) for b in self.held)
        assert all(a[1] <= b[0] for a, b in pairwise(spans))
        assert all(b.address % ALIGNED == 0 and b.size >= asked for b, asked in self.held.items())
        self.peak = max(self.peak, sum([b.size for b in self.held]))
        gauges = {name: gauge.current for name, gauge in memory.statistics.gauges.items()}
        assert gauges["allocation"] == len(self.held)
        assert gauges["allocated_bytes"] == sum([b.size for b in self.held])
        assert gauges["requested_bytes"] == sum(self.held.values())
        assert memory.statistics.gauges["allocated_bytes"].peak == self.peak
        self.check_segments(memory, gauges["reserved_bytes"])

    def check_segments(self, memory, reserved):
        total, free = 0, 0
        for room in memory.rooms.values():
            listed = [b for s in room.segments for b in s.blocks() if b.free]
            assert sorted(listed, key=id) == sorted(room.free, key=id) and room.free == sorted(room.free)
            for segment in room.segments:
                total += segment.size
                self.check_blocks(segment)
        free = memory.on.driver.memory_info()[0]
        assert total == reserved == memory.on.driver.total_memory(0) - free

    def check_blocks(self, segment):
        """Blocks fill a segment, know their neighbours, and two that are free are never neighbours."""
        at, before = segment.address, None
        for block in segment.blocks():
            assert block.address == at and block.before is before and block.free == (block not in self.held)
            assert not (before is not None and before.free and block.free)
            at, before = at + block.size, block
        assert at == segment.address + segment.size


@pytest.mark.parametrize("seed", range(25))
def test_blocks_at_random_are_as_in_the_model(memory, seed):
    rng, model = random.Random(seed), Model()
    streams = [current(), Stream()]
    for _ in range(120):
        if rng.random() < 0.6 and len(model.held) < 40:
            count = rng.choice([rng.randrange(1, 5000), rng.randrange(1, 1 << 20), rng.randrange(1 << 20, 5 << 20)])
            block = memory.take(count, rng.choice(streams))
            write(block, block.segment.room.stream)
            model.held[block] = count
        elif model.held:
            block = rng.choice(list(model.held))
            del model.held[block]
            memory.give_back(block)
            memory.collect()
        if rng.random() < 0.05:
            memory.release()
        model.check(memory)
    for block in list(model.held):
        memory.give_back(block)
    model.held.clear()
    memory.collect()
    memory.release()
    model.check(memory)
    assert memory.statistics.gauges["reserved_bytes"].current == 0 and memory.snapshot() == []


def test_memory_is_not_taken_from_work_that_is_still_to_be_done(memory, emulated):
    """What is given back may be used by what its stream was told before, until that is done: the driver does not wait."""
    block = memory.take(8 << 20)
    write(block)
    memory.give_back(block)
    memory.collect()
    assert memory.release() >= 8 << 20
    emulated.synchronize()  # no illegal address


def test_the_driver_is_not_asked_again(memory, emulated):
    for _ in range(3):
        blocks = [memory.take(n) for n in (100, 5000, 3 << 20)]
        for block in blocks:
            memory.give_back(block)
        calls = dict(emulated.calls)
    blocks = [memory.take(n) for n in (100, 5000, 3 << 20)]
    new = {name: count - calls.get(name, 0) for name, count in emulated.calls.items() if count != calls.get(name, 0)}
    assert new == {}


def test_sizes():
    assert [rounded(n) for n in (0, 1, 512, 513, 1 << 20, (1 << 20) + 1)] == [512, 512, 512, 1024, 1 << 20, LARGE]


def test_a_stream_uses_again_what_is_its_own_only(memory):
    side = Stream()
    block = memory.take(1000)
    address = block.address
    memory.give_back(block)
    other = memory.take(1000, side)
    assert other.address != address and memory.take(1000).address == address
    write(other, side)


def test_memory_that_another_stream_uses_waits_for_it(memory, emulated):
    side = Stream()
    block = memory.take(1000)
    address = block.address
    write(block)
    side.wait_stream(current())
    write(block, side)
    block.foreign.add(side)
    memory.give_back(block)
    again = memory.take(1000)
    assert again.address != address and len(memory.parked) == 1
    assert memory.statistics.gauges["active"].current == 2 and memory.statistics.gauges["allocation"].current == 1
    side.synchronize()
    assert memory.take(1000).address == address and memory.parked == []


def test_what_was_given_back_last_is_taken_and_counted(memory):
    block = memory.take(1000)
    gauges = memory.statistics.gauges
    for asked, freed in ((1000, 1000), (999, 2000), (999, 2999)):
        memory.give_back(block)
        assert memory.take(asked) is block and block.asked == asked
        wanted, blocks, sizes = gauges["requested_bytes"], gauges["allocation"], gauges["allocated_bytes"]
        assert (wanted.current, wanted.peak, wanted.freed) == (asked, 1000, freed)
        assert (blocks.current, blocks.peak, sizes.current, sizes.peak) == (1, 1, block.size, block.size)
        assert blocks.allocated == blocks.freed + 1 and sizes.freed == blocks.freed * block.size
    other = memory.take(1000)  # two are given back: one of them is taken
    memory.give_back(block)
    memory.give_back(other)
    assert memory.take(1000) in (block, other)
    assert (blocks.current, blocks.peak, wanted.current) == (1, 2, 1000)


def test_forgetting_that_is_seen(memory):
    side = Stream()
    block = memory.take(1000)
    side.wait_stream(current())
    write(block, side)
    memory.give_back(block)  # without block.foreign
    with pytest.raises(RaceError):
        write(memory.take(1000))


def test_pools_share_nothing(memory):
    memory.give_back(memory.take(1000))
    pool = memory.new_pool()
    memory.pool.number = pool
    inside = memory.take(1000)
    memory.pool.number = 0
    outside = memory.take(1000)
    assert {inside.segment.room.pool, outside.segment.room.pool} == {0, pool}
    memory.give_back(inside)
    assert memory.take(1000).segment.room.pool == 0
    before = memory.statistics.gauges["reserved_bytes"].current
    assert memory.release_pool(pool) == before - memory.statistics.gauges["reserved_bytes"].current > 0


def test_what_is_tried_before_there_is_no_memory(memory, monkeypatch):
    tried = []
    steps = [lambda a, i=i, step=step: (tried.append(i), step(a)) for i, step in enumerate(exhausted.STEPS)]
    monkeypatch.setattr(exhausted, "STEPS", tuple(steps))
    everything = memory.take(200 << 20)
    with pytest.raises(
        CudaOutOfMemory, match=r"(?s)out of memory, 100\.0 MiB were asked for.*in tensors 200\.0 MiB.*try: smaller"
    ):
        memory.take(100 << 20)
    assert tried == [0, 1, 2, 3] and memory.statistics.counts["num_ooms"] == 1
    tried.clear()
    memory.give_back(everything)
    memory.take(200 << 20)
    assert tried == []


def test_free_memory_of_another_stream_is_given_back_before_there_is_none(memory):
    side = Stream()
    block = memory.take(200 << 20, side)
    write(block, side)
    memory.give_back(block)
    assert memory.take(200 << 20).size == 200 << 20


def test_memory_in_cycles_is_collected(memory):
    class Holder:
        def __init__(self, block):
            self.me, self.block = self, block

        def __del__(self):
            memory.give_back(self.block)

    gc.disable()
    try:
        Holder(memory.take(200 << 20))
        assert memory.take(200 << 20).size == 200 << 20
    finally:
        gc.enable()


def test_work_is_waited_for_before_there_is_none(memory):
    side = Stream()
    block = memory.take(200 << 20)
    side.wait_stream(current())
    write(block, side)
    block.foreign.add(side)
    memory.give_back(block)
    assert memory.take(200 << 20).size == 200 << 20


def test_while_a_graph_is_recorded_nothing_is_tried(memory, emulated):
    emulated.begin_capture(current().handle)
    with pytest.raises(CudaOutOfMemory, match="a graph is being recorded, and its pool has too little memory"):
        memory.take(1000)
    assert memory.statistics.counts["num_alloc_retries"] == 0


def test_a_limit(memory):
    memory.limit = 30 << 20
    memory.give_back(memory.take(4 << 20))
    with pytest.raises(CudaOutOfMemory):
        memory.take(50 << 20)
    memory.limit = None
    memory.take(50 << 20)


def test_statistics(memory):
    block = memory.take(1000)
    memory.give_back(block)
    memory.collect()
    said = memory.statistics.as_dict()
    assert said["allocated_bytes.all.current"] == 0 and said["allocated_bytes.all.peak"] == 1024
    assert said["requested_bytes.all.allocated"] == said["requested_bytes.all.freed"] == 1000
    assert said["num_device_alloc"] == 1 and said["segment.all.current"] == 1
    memory.statistics.reset_peaks()
    assert memory.statistics.as_dict()["allocated_bytes.all.peak"] == 0
    (segment,) = memory.snapshot()
    assert [b["state"] for b in segment["blocks"]] == ["inactive"] and segment["total_size"] == 2 << 20


# ---- memory of the host


def test_pinned_memory_is_used_again_when_its_copies_are_done(emulated):
    pool = pool_of(emulated)
    x = pinned((8,), np.float32)
    address, block = x.ctypes.data, block_of(x, emulated)
    assert block is not None and block_of(x[3:], emulated) is block and block_of(NUMBERS, emulated) is None
    stream = current()
    target = emulated.allocate(32)
    x[...] = NUMBERS
    emulated.copy_in(target, address, 32, stream.handle)
    block.used_on(stream)
    del x
    y = pinned((8,), np.float32)
    assert y.ctypes.data != address and pool.allocations == 2
    stream.synchronize()
    assert pinned((8,), np.float32).ctypes.data == address and pool.allocations == 2
    del y
    gc.collect()
    pool.release()
    assert pool.free == {} and block_of(NUMBERS, emulated) is None


def test_pinned_memory_that_is_asked_about_when_it_is_wanted_again(emulated):
    """Of copies without events of their own: nobody has the memory any more, a stream may."""
    x, stream, target = pinned((8,), np.float32), current(), emulated.allocate(32)
    block, address = block_of(x, emulated), x.ctypes.data
    block.used_later(stream)
    emulated.copy_in(target, address, 32, stream.handle)
    del x
    y = pinned((8,), np.float32)
    assert y.ctypes.data != address
    stream.synchronize()
    assert pinned((8,), np.float32).ctypes.data == address and block.streams == set()


def test_what_was_given_back_last_is_taken_first(memory):
    """... where size and stream are those, and nobody else uses it; else it is free memory like all other."""
    first, other = memory.take(1000), memory.take(5000)
    memory.give_back(other)
    memory.give_back(first)
    before = memory.statistics.gauges["active"].allocated
    again = memory.take(900)
    assert again is first and again.asked == 900
    assert memory.statistics.gauges["active"].allocated == before  # it was never free
    assert memory.statistics.gauges["allocation"].current == 1  # the other one was collected
    assert memory.statistics.gauges["requested_bytes"].current == 900
    side = Stream()
    memory.give_back(again)
    assert memory.take(900, side) is not first
    used = memory.take(900)
    used.foreign.add(side)
    memory.give_back(used)
    taken = memory.take(900)
    assert taken is not used or not taken.foreign


def test_what_was_given_back_is_taken_again_as_it_is(memory):
    """... in any order of sizes; neighbours become one where a call would find no memory."""
    sizes = (1000, 5000, 1000, 70_000)
    blocks = [memory.take(n) for n in sizes]
    for block in blocks:
        memory.give_back(block)
    before = memory.statistics.gauges["active"].allocated
    again = [memory.take(n) for n in reversed(sizes)]
    assert {*map(id, again)} == {*map(id, blocks)} and memory.statistics.gauges["active"].allocated == before
    for block in again:
        memory.give_back(block)
    memory.take(2 << 20)  # all of a segment
    assert memory.statistics.gauges["reserved_bytes"].current == 2 << 20
