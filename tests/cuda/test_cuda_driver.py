"""The driver's interface: the emulated one does what CUDA's documentation says, and sees what a GPU would get wrong."""

from __future__ import annotations

import ctypes
import re
import types
from pathlib import Path

import numpy as np
import pytest

from genesis.cuda.memory.pinned import pinned
from genesis.cuda.runtime import bindings, connection
from genesis.cuda.runtime.connection import using
from genesis.cuda.runtime.devices import device_at
from genesis.cuda.runtime.driver import Driver
from genesis.cuda.runtime.emulated import Emulated, Image
from genesis.cuda.runtime.errors import CaptureError, CudaError, CudaOutOfMemory, InvalidCall, RaceError, StickyError
from genesis.cuda.runtime.parameters import HIDDEN, Parameters
from genesis.cuda.runtime.streams import Event, Stream, current


@pytest.fixture(params=[True, False], ids=["growing", "whole"])
def gpu(request):
    """Emulated devices whose memory is given in pieces of a range of addresses, or in whole segments."""
    with using(Emulated(2, memory=256 << 20, pieces=request.param)) as driver:
        yield driver


def put(gpu, address, array, stream):
    gpu.copy_in(address, array.ctypes.data, array.nbytes, stream)


def got(gpu, address, like, stream):
    out = np.empty_like(like)
    gpu.copy_out(out.ctypes.data, address, out.nbytes, stream)
    return out


def doubler(count):
    """A kernel that doubles so many float32 numbers."""

    def run(memory, grid, values):
        memory.array(values[0], np.float32, count)[...] *= 2

    return Image(run, lambda grid, values: [(values[0], 4 * count, False), (values[0], 4 * count, True)])


POINTER = Parameters("Q")
NUMBERS = np.arange(8, dtype=np.float32)


def test_work_is_done_in_the_order_of_its_stream(gpu):
    s, address = gpu.stream(), gpu.allocate(32)
    kernel = gpu.function(gpu.load(doubler(8)), "double")
    put(gpu, address, NUMBERS, s)
    gpu.launch(kernel, (1, 1, 1), 128, 0, s, POINTER, (address,))
    assert not gpu.stream_query(s)
    assert got(gpu, address, NUMBERS, s).tolist() == (2 * NUMBERS).tolist()
    assert gpu.stream_query(s)


def test_new_memory_is_garbage(gpu):
    assert not np.isin(got(gpu, gpu.allocate(32), NUMBERS, gpu.stream()), [0, 1]).any()


def test_fill_and_copy(gpu):
    s, a, b = gpu.stream(), gpu.allocate(32), gpu.allocate(32)
    gpu.fill(a, int(np.float32(1.5).view(np.uint32)), 4, 8, s)
    gpu.copy(b, a, 32, s)
    assert (got(gpu, b, NUMBERS, s) == 1.5).all()
    gpu.fill(b, 7, 1, 4, s)
    assert got(gpu, b, np.zeros(4, np.uint8), s).tolist() == [7] * 4


def test_another_stream_waits_for_an_event(gpu):
    s, t, address, event = gpu.stream(), gpu.stream(), gpu.allocate(32), gpu.event()
    put(gpu, address, NUMBERS, s)
    gpu.event_record(event, s)
    assert not gpu.event_query(event)
    gpu.stream_wait(t, event)
    assert got(gpu, address, NUMBERS, t).tolist() == NUMBERS.tolist() and gpu.event_query(event)


@pytest.mark.parametrize("write", [True, False])
def test_two_streams_without_an_event_are_an_error(gpu, write):
    s, t, address = gpu.stream(), gpu.stream(), gpu.allocate(64)
    put(gpu, address, NUMBERS, s)
    gpu.copy_in(address + 32, NUMBERS.ctypes.data, 32, t)  # other bytes
    with pytest.raises(
        RaceError, match="which of two uses of the same 32 bytes comes first\n  first copy_in writes 32"
    ):
        put(gpu, address, NUMBERS, t) if write else got(gpu, address, NUMBERS, t)


def test_two_streams_may_read(gpu):
    s, t, address = gpu.stream(), gpu.stream(), gpu.allocate(32)
    put(gpu, address, NUMBERS, s)
    gpu.stream_synchronize(s)
    assert got(gpu, address, NUMBERS, s).tolist() == got(gpu, address, NUMBERS, t).tolist()
    gpu.copy(gpu.allocate(32), address, 32, s)
    gpu.copy(gpu.allocate(32), address, 32, t)


def test_an_event_covers_what_was_before_it_only(gpu):
    s, t, address, event = gpu.stream(), gpu.stream(), gpu.allocate(32), gpu.event()
    gpu.event_record(event, s)
    put(gpu, address, NUMBERS, s)
    gpu.stream_wait(t, event)
    with pytest.raises(RaceError):
        gpu.copy(gpu.allocate(32), address, 32, t)


def test_the_program_must_wait_before_it_reads_pinned_memory(gpu):
    s, address, host = gpu.stream(), gpu.allocate(32), pinned((8,), np.float32)
    host[...] = NUMBERS
    put(gpu, address, host, s)
    with pytest.raises(RaceError, match="the program"):
        gpu.host_uses(host.ctypes.data, 32, writes=True)
    gpu.host_uses(host.ctypes.data, 32, writes=False)  # both only read it
    gpu.copy_out(host.ctypes.data, address, 32, s)
    with pytest.raises(RaceError):
        gpu.host_uses(host.ctypes.data, 32, writes=False)
    gpu.stream_synchronize(s)
    gpu.host_uses(host.ctypes.data, 32, writes=True)


def test_pageable_memory_may_be_changed_at_once_and_pinned_may_not(gpu):
    s, address, host = gpu.stream(), gpu.allocate(32), NUMBERS.copy()
    put(gpu, address, host, s)
    host[...] = 0
    assert got(gpu, address, NUMBERS, s).tolist() == NUMBERS.tolist()
    fixed = pinned((8,), np.float32)
    fixed[...] = 1
    put(gpu, address, fixed, s)
    fixed[...] = 2  # what a program that does not wait does: the copy takes what is there when it is made
    assert (got(gpu, address, NUMBERS, s) == 2).all()


def test_freed_memory_is_an_illegal_address_and_that_is_for_ever(gpu):
    s, address = gpu.stream(), gpu.allocate(32)
    gpu.free(address)
    put(gpu, address, NUMBERS, s)
    with pytest.raises(StickyError, match="CUDA_ERROR_ILLEGAL_ADDRESS, an illegal memory access was encountered"):
        gpu.stream_synchronize(s)
    with pytest.raises(StickyError, match="ILLEGAL_ADDRESS"):
        gpu.allocate(32)


def test_wrong_arguments(gpu):
    kernel = gpu.load(doubler(8))
    for grid, block, values in (((0, 1, 1), 32, (1,)), ((1, 1, 1), 2048, (1,)), ((1, 1, 1), 32, (1, 2))):
        with pytest.raises(InvalidCall, match="CUDA_ERROR_INVALID_VALUE"):
            gpu.launch(kernel, grid, block, 0, gpu.stream(), POINTER, values)
    with pytest.raises(InvalidCall):
        gpu.stream_synchronize(987654)
    with pytest.raises(InvalidCall):
        gpu.free(5)
    with pytest.raises(CudaOutOfMemory, match="allocate gives CUDA_ERROR_OUT_OF_MEMORY"):
        gpu.allocate(1 << 40)


def test_a_graph_is_recorded_and_repeated(gpu):
    s, address = gpu.stream(), gpu.allocate(32)
    kernel = gpu.function(gpu.load(doubler(8)), "double")
    put(gpu, address, NUMBERS, s)
    gpu.begin_capture(s)
    gpu.launch(kernel, (1, 1, 1), 32, 0, s, POINTER, (address,))
    gpu.launch(kernel, (1, 1, 1), 32, 0, s, POINTER, (address,))
    executable = gpu.instantiate(gpu.end_capture(s))
    assert got(gpu, address, NUMBERS, s).tolist() == NUMBERS.tolist()
    for _ in range(2):
        gpu.launch_graph(executable, s)
    assert got(gpu, address, NUMBERS, s).tolist() == (16 * NUMBERS).tolist()


FORBIDDEN = {
    "synchronize": lambda gpu, s: gpu.synchronize(),
    "stream_synchronize": lambda gpu, s: gpu.stream_synchronize(s),
    "allocate": lambda gpu, s: gpu.allocate(32),
    "load": lambda gpu, s: gpu.load(doubler(8)),
    "host_allocate": lambda gpu, s: gpu.host_allocate(32),
    "copy_in": lambda gpu, s: put(gpu, 1 << 56, NUMBERS, s),
    "copy_out": lambda gpu, s: got(gpu, 1 << 56, NUMBERS, s),
}


@pytest.mark.parametrize("name", FORBIDDEN)
def test_what_no_graph_can_hold(gpu, name):
    s = gpu.stream()
    gpu.begin_capture(s)
    with pytest.raises(CaptureError, match=f"{name} gives CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"):
        FORBIDDEN[name](gpu, s)


def test_another_stream_joins_a_graph_by_an_event(gpu):
    s, t, address, event = gpu.stream(), gpu.stream(), gpu.allocate(32), gpu.event()
    kernel = gpu.load(doubler(8))
    put(gpu, address, NUMBERS, s)
    gpu.begin_capture(s)
    gpu.event_record(event, s)
    gpu.stream_wait(t, event)
    assert gpu.is_capturing(t)
    gpu.launch(kernel, (1, 1, 1), 32, 0, t, POINTER, (address,))
    gpu.event_record(event, t)
    gpu.stream_wait(s, event)
    gpu.launch(kernel, (1, 1, 1), 32, 0, s, POINTER, (address,))
    executable = gpu.instantiate(gpu.end_capture(s))
    assert not gpu.is_capturing(t)
    gpu.launch_graph(executable, s)
    assert got(gpu, address, NUMBERS, s).tolist() == (4 * NUMBERS).tolist()


def test_branches_of_a_graph_that_use_the_same_memory_are_a_race(gpu):
    s, t, address, event = gpu.stream(), gpu.stream(), gpu.allocate(32), gpu.event()
    kernel = gpu.load(doubler(8))
    gpu.begin_capture(s)
    gpu.event_record(event, s)
    gpu.stream_wait(t, event)
    gpu.launch(kernel, (1, 1, 1), 32, 0, t, POINTER, (address,))
    with pytest.raises(RaceError, match="nothing says which of two uses"):
        gpu.launch(kernel, (1, 1, 1), 32, 0, s, POINTER, (address,))
    with pytest.raises(CaptureError, match="UNJOINED"):
        gpu.end_capture(s)
    assert not gpu.is_capturing(t)


# ---- streams and events of programs


def test_streams_of_programs(gpu):
    on, side = device_at(0), Stream()
    address = gpu.allocate(32)
    put(gpu, address, NUMBERS, current(on).handle)
    side.wait_stream(current(on))
    with side:
        assert current() is side and current(device_at(1)) is not side
        assert got(gpu, address, NUMBERS, current().handle).tolist() == NUMBERS.tolist()
    assert current() is current(on) and current() != side and side.query()
    with Stream(1):
        assert current().device_index == 1
    assert len({Stream().handle for _ in range(99)}) == 32


def test_what_is_asked_again_and_again_is_done_at_last(gpu):
    event, stream = Event(), Stream()
    gpu.fill(gpu.allocate(32), 0, 1, 32, stream.handle)
    event.record(stream)
    assert not event.query() and not stream.query()
    while not event.query():
        pass
    gpu.fill(gpu.allocate(32), 0, 1, 32, stream.handle)
    assert event.query() and not stream.query()
    while not stream.query():
        pass


def test_events_measure_time(gpu):
    start, end = Event(enable_timing=True), Event(enable_timing=True)
    with pytest.raises(TypeError, match="both events must be recorded, with enable_timing=True"):
        start.elapsed_time(end)
    start.record()
    gpu.fill(gpu.allocate(32), 0, 1, 32, current().handle)
    end.record()
    end.synchronize()
    assert start.query() and start.elapsed_time(end) > 0


# ---- NVIDIA's driver


class FakeDriver(types.SimpleNamespace):
    """What stands for `cuda.bindings.driver`: every function answers a handle, and is written down."""

    def __init__(self, **answers):
        super().__init__(seen=[], answers={"cuDriverGetVersion": (0, 13000), "cuDeviceGetCount": (0, 1), **answers})

    def __getattr__(self, name):
        if not name.startswith("cu") or name.startswith("cuGetError"):
            return types.SimpleNamespace() if name[:2] == "CU" else self._text
        return lambda *args: (self.seen.append((name, *args)), self.answers.get(name, (0,)))[1]

    @staticmethod
    def _text(result):
        return 0, b"what the driver says"


class Result(int):
    name = "CUDA_ERROR_LAUNCH_FAILED"


def test_results_of_the_driver_become_errors():
    fake = FakeDriver(cuStreamSynchronize=(Result(719),), cuStreamQuery=(Result(600),))
    bound = bindings.Bound(fake)
    with pytest.raises(StickyError, match="cuStreamSynchronize gives CUDA_ERROR_LAUNCH_FAILED, what the driver says"):
        bound.stream_synchronize(5)
    with pytest.raises(CudaError):
        bound.stream_query(5)
    fake.answers["cuStreamQuery"] = (type("NotReady", (int,), {"name": "CUDA_ERROR_NOT_READY"})(600),)
    assert not bound.stream_query(5)


def test_what_fails_later_says_what_failed_first():
    bound = bindings.Bound(
        FakeDriver(cuMemcpyDtoDAsync=(Result(719),), cuMemAlloc=(Result(719), 0), cuEventQuery=(Result(719),))
    )
    with pytest.raises(StickyError):
        bound.copy(1, 2, 3, 4)
    for call in (lambda: bound.allocate(8), lambda: bound.event_query(1)):
        with pytest.raises(
            StickyError, match="(?s)cuMemcpyDtoDAsync gives CUDA_ERROR_LAUNCH_FAILED.*CUDA_LAUNCH_BLOCKING"
        ) as error:
            call()
        assert error.value.name == "CUDA_ERROR_LAUNCH_FAILED"


def test_a_launch_hands_over_the_addresses_of_the_values():
    fake = FakeDriver()
    parameters = Parameters("Qid")
    bindings.Bound(fake).launch(77, (3, 2, 1), 128, 64, 9, parameters, (1 << 40, -3, 0.5))
    name, function, *sizes, pointers, extra = fake.seen[-1]
    assert (name, function, sizes, extra) == ("cuLaunchKernel", 77, [3, 2, 1, 128, 1, 1, 64, 9], 0)
    addresses = (ctypes.c_void_p * 3).from_address(pointers)
    kinds = (ctypes.c_uint64, ctypes.c_int32, ctypes.c_double)
    assert [k.from_address(a).value for k, a in zip(kinds, addresses, strict=True)] == [1 << 40, -3, 0.5]
    hidden = (ctypes.c_void_p * (3 + HIDDEN)).from_address(pointers)[3:]
    assert HIDDEN == 2 and [ctypes.c_uint64.from_address(a).value for a in hidden] == [0, 0]


def test_an_old_driver_is_refused():
    with pytest.raises(RuntimeError, match="it is for CUDA 11, 12 is needed"):
        bindings.Bound(FakeDriver(cuDriverGetVersion=(0, 11080)))


def test_every_function_that_is_called_is_there():
    cu = pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed")
    source = Path(bindings.__file__).read_text()
    names = {*re.findall(r'"(cu[A-Z]\w+)"', source), "cuMemsetD8Async", "cuMemsetD16Async", "cuMemsetD32Async"}
    assert len(names) > 40 and [name for name in sorted(names) if not hasattr(cu, name)] == []


A = 1 << 40
CALLS = {
    "version": (), "count": (), "device_name": (0,), "attribute": (0, "MULTIPROCESSOR_COUNT"), "total_memory": (0,), "retain": (0,),
    "make_current": (5,), "synchronize": (), "can_access_peer": (0, 1), "memory_info": (), "allocate": (100,), "free": (A,),
    "host_allocate": (100,), "host_free": (A,), "copy_in": (A, A, 8, 7), "copy_out": (A, A, 8, 7), "copy": (A, A, 8, 7),
    "copy_peer": (A, 5, A, 6, 8, 7), "fill": (A, 1, 4, 8, 7), "granularity": (0,), "reserve": (1 << 30,), "release": (A, 1 << 30),
    "back": (A, 1 << 21, 0), "unback": (A, 1 << 21, 9), "stream": (-1,), "stream_destroy": (7,), "stream_query": (7,),
    "stream_synchronize": (7,), "stream_wait": (7, 8), "event": (True,), "event_destroy": (8,), "event_record": (8, 7),
    "event_query": (8,), "event_synchronize": (8,), "elapsed": (8, 9), "load": (b"cubin" * 20,), "unload": (3,),
    "function": (3, "kernel"), "allow_shared": (3, 100000), "launch": (3, (1, 1, 1), 128, 0, 7, Parameters("Qi"), (A, 3)),
    "relax": (True,), "begin_capture": (7,), "end_capture": (7,), "is_capturing": (7,), "instantiate": (4,), "launch_graph": (4, 7),
    "graph_destroy": (4,), "executable_destroy": (4,), "zeros_in": (4,), "begin_with_zeros": (4, A, 8), "leave_out": (4, 9),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_the_bindings_take_what_they_are_given(name):
    """Without a driver every call gets as far as the library that is missing: its arguments are of the right types."""
    cu = pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed")
    try:
        cu.cuInit(0)
    except RuntimeError as error:
        missing = type(error)
    else:
        pytest.skip("there is a driver, which these handles would not please")
    bound = bindings.Bound.__new__(bindings.Bound)
    bound.cu, bound._devices = cu, {0: cu.CUdevice(0), 1: cu.CUdevice(1)}
    with pytest.raises(missing):
        getattr(bound, name)(*CALLS[name])


OURS = {"emulated", "notes", "host_uses"}  # of a driver, that are no calls


def test_all_calls_are_tried():
    assert {name for name in vars(Driver) if not name.startswith("_")} - OURS == set(CALLS)


def test_both_drivers_have_the_same_functions():
    functions = {name for name in vars(Driver) if not name.startswith("_")} - OURS
    for kind in (Emulated, bindings.Bound):
        assert functions <= set(vars(kind))


def test_without_a_driver_there_is_a_reason(monkeypatch):
    monkeypatch.setattr(connection, "_chosen", [])
    monkeypatch.setattr(connection, "_reason", [""])
    monkeypatch.setenv("GENESIS_CUDA", "off")
    assert not connection.available() and connection.unavailable() == "GENESIS_CUDA is off"
    with using(None, "the cable is out"), pytest.raises(RuntimeError, match="there is no GPU here: the cable is out"):
        connection.driver()
    monkeypatch.setattr(connection, "_chosen", [])
    monkeypatch.setenv("GENESIS_CUDA", "emulate:3")
    assert connection.driver().count() == 3
