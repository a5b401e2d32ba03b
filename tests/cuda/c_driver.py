"""NVIDIA's driver as its callers in C see it, over the emulated device: a library of C that stands for libcuda.so.1, and
functions of the right types behind it. So `cuda-bindings` itself, machine code of Triton and its parameters are part of what
is tested. It replaces the driver of a process for good:

    python tests/cuda/c_driver.py scripts/gpu/run smoke --out FOLDER

Kernels are known by their machine code; what runs is what the emulated device runs for them.
"""

import atexit
import ctypes as c
import struct
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np
from c_library import library, parameters, whole

U64, P, INT, U, SIZE = c.c_uint64, c.c_void_p, c.c_int, c.c_uint, c.c_size_t
OUT, OUT_I, OUT_SIZE = c.POINTER(U64), c.POINTER(INT), c.POINTER(SIZE)


class Zeros(c.Structure):
    """CUDA_MEMSET_NODE_PARAMS."""

    _fields_ = [("address", U64), ("pitch", SIZE), ("value", U), ("element", U), ("width", SIZE), ("height", SIZE)]


def listed(out, count, values):
    """What the driver lists: how many there are, or as many as there is room for."""
    if out:
        for i, value in enumerate(values[: count[0]]):
            out[i] = value
    else:
        count[0] = len(values)


class NotReady(Exception):
    name = "CUDA_ERROR_NOT_READY"


class CDriver:
    """The functions of libcuda.so.1, which do what the emulated device does.

    Attributes:
        wrong: what went wrong in a call, besides errors that the driver has a name for
        launches: how many kernels were launched
    """

    def __init__(self, folder, devices=1, small=False):
        self.devices = devices
        self.wrong, self.launches, self.results = [], 0, None
        self.now = threading.local()  # the kernel whose machine code a thread loads
        self.modules = {}
        self.told = library("libcuda.so.1", folder)  # before Genesis looks for another one
        for name in dir(self):
            if name.startswith("cu"):
                self._tell(name)
        from genesis.cuda.launch.kernel import Launched
        from genesis.cuda.runtime.emulated import ATTRIBUTES, Emulated, Image

        self.emulated, self.Image, self.attributes = Emulated(devices, 4 << 30), Image, ATTRIBUTES
        load = Launched._load

        def noted(kernel, on, aligned):
            self.now.kernel = kernel
            try:
                return load(kernel, on, aligned)
            finally:
                self.now.kernel = None

        Launched._load = noted
        if small:  # sizes are those of the emulated device; machine code is still made and read
            from genesis.cuda.runtime.bindings import Bound

            Bound.emulated = property(lambda _: getattr(self.now, "kernel", None) is None)

    def _tell(self, name):
        function = getattr(self, name)
        types = list(type(self).__dict__[name].__annotations__.values())

        def answered(*args):
            watching = sys.getprofile()  # those who watch what a program does see nothing of a library in C
            sys.setprofile(None)
            try:
                function(*args)
                return 0
            except Exception as error:
                return self._number(error)
            finally:
                sys.setprofile(watching)

        answered.__code__ = answered.__code__.replace(co_filename="site-packages/c_driver.py")
        self.told(name, answered, *types)

    def _number(self, error):
        if self.results is None:
            import cuda.bindings.driver as cu

            self.results = {each.name: int(each) for each in cu.CUresult}
        name = getattr(error, "name", "CUDA_ERROR_OUT_OF_MEMORY" if isinstance(error, MemoryError) else "")
        if name not in self.results or type(error).__name__ == "RaceError":
            self.wrong.append(error)
        return self.results.get(name, 999)

    # devices

    def cuInit(self, flags: U): ...
    def cuDriverGetVersion(self, out: OUT_I):
        out[0] = 13000

    def cuDeviceGetCount(self, out: OUT_I):
        out[0] = self.devices

    def cuDeviceGet(self, out: OUT_I, index: INT):
        out[0] = 40 + index  # a handle, not the index

    def cuDeviceGetName(self, out: P, size: INT, device: INT):
        c.memmove(out, b"NVIDIA H200\0", 12)

    def cuDeviceGetAttribute(self, out: OUT_I, which: INT, device: INT):
        import cuda.bindings.driver as cu

        names = {getattr(cu.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{n}"): n for n in self.attributes}
        out[0] = self.emulated.attribute(device - 40, names[which])

    def cuDeviceTotalMem(self, out: OUT_SIZE, device: INT):
        out[0] = self.emulated.total_memory(device - 40)

    def cuDevicePrimaryCtxRetain(self, out: OUT, device: INT):
        out[0] = self.emulated.retain(device - 40)

    def cuDeviceCanAccessPeer(self, out: OUT_I, device: INT, other: INT):
        out[0] = self.emulated.can_access_peer(device - 40, other - 40)

    def cuCtxSetCurrent(self, context: U64):
        self.emulated.make_current(context)
        self.now.context = context

    def cuCtxGetCurrent(self, out: OUT):
        out[0] = self.now.context

    def cuCtxSynchronize(self):
        self.emulated.synchronize()

    def cuGetErrorString(self, result: INT, out: c.POINTER(c.c_char_p)):
        out[0] = b"what the driver says"

    # memory

    def cuMemGetInfo(self, free: OUT_SIZE, total: OUT_SIZE):
        free[0], total[0] = self.emulated.memory_info()

    def cuMemAlloc(self, out: OUT, size: SIZE):
        out[0] = self.emulated.allocate(size)

    def cuMemFree(self, address: U64):
        self.emulated.free(address)

    def cuMemHostAlloc(self, out: OUT, size: SIZE, flags: U):
        assert flags == 1, "portable"
        out[0] = self.emulated.host_allocate(size)

    def cuMemFreeHost(self, address: U64):
        self.emulated.host_free(address)

    def cuMemcpyHtoDAsync(self, target: U64, host: U64, size: SIZE, stream: U64):
        self.emulated.copy_in(target, host, size, stream)

    def cuMemcpyDtoHAsync(self, host: U64, source: U64, size: SIZE, stream: U64):
        self.emulated.copy_out(host, source, size, stream)

    def cuMemcpyDtoDAsync(self, target: U64, source: U64, size: SIZE, stream: U64):
        self.emulated.copy(target, source, size, stream)

    def cuMemcpyPeerAsync(self, target: U64, to: U64, source: U64, origin: U64, size: SIZE, stream: U64):
        self.emulated.copy_peer(target, to, source, origin, size, stream)

    def cuMemsetD8Async(self, target: U64, value: c.c_uint8, size: SIZE, stream: U64):
        self.emulated.fill(target, value, 1, size, stream)

    def cuMemsetD16Async(self, target: U64, value: c.c_uint16, size: SIZE, stream: U64):
        self.emulated.fill(target, value, 2, size, stream)

    def cuMemsetD32Async(self, target: U64, value: U, size: SIZE, stream: U64):
        self.emulated.fill(target, value, 4, size, stream)

    def cuMemGetAllocationGranularity(self, out: OUT_SIZE, wanted: P, which: INT):
        self._pieces(wanted)
        out[0] = self.emulated.granularity(0)

    def _pieces(self, wanted):
        """CUmemAllocationProp: the kind of memory, of handles, and where: the kind of place and its number."""
        kind, handles, place, index = (INT * 4).from_address(wanted)
        assert (kind, handles, place) == (1, 0, 1), "pinned memory of a device"
        return index

    def cuMemAddressReserve(self, out: OUT, size: SIZE, alignment: SIZE, address: U64, flags: U64):
        assert size % self.emulated.granularity(0) == 0 and not (alignment or address or flags)
        out[0] = self.emulated.reserve(size)

    def cuMemAddressFree(self, address: U64, size: SIZE):
        self.emulated.release(address, size)

    def cuMemCreate(self, out: OUT, size: SIZE, wanted: P, flags: U64):
        assert size % self.emulated.granularity(0) == 0 and size and not flags
        index = self._pieces(wanted)
        if size > self.emulated.spaces.free(index):
            raise MemoryError
        number = 1 + len(self.modules)
        self.modules[number] = [size, index, None]
        out[0] = number

    def cuMemMap(self, address: U64, size: SIZE, offset: SIZE, handle: U64, flags: U64):
        assert self.modules[handle][0] == size and not (offset or flags)
        self.modules[handle][2] = self.emulated.back(address, size, self.modules[handle][1])

    def cuMemSetAccess(self, address: U64, size: SIZE, wanted: P, count: SIZE):
        place, index, access = (INT * 3).from_address(wanted)
        assert (place, access, count) == (1, 3, 1) and 0 <= index < self.emulated.count()

    def cuMemUnmap(self, address: U64, size: SIZE):
        self.emulated.unback(address, size, 0)

    def cuMemRelease(self, handle: U64):
        self.modules[handle] = None

    # streams and events

    def cuStreamCreateWithPriority(self, out: OUT, flags: U, priority: INT):
        assert flags == 1, "waits for no other"
        out[0] = self.emulated.stream(priority)

    def cuStreamDestroy(self, stream: U64):
        self.emulated.stream_destroy(stream)

    def cuStreamQuery(self, stream: U64):
        self._ready(self.emulated.stream_query(stream))

    def _ready(self, done):
        if not done:
            raise NotReady

    def cuStreamSynchronize(self, stream: U64):
        self.emulated.stream_synchronize(stream)

    def cuStreamWaitEvent(self, stream: U64, event: U64, flags: U):
        self.emulated.stream_wait(stream, event)

    def cuEventCreate(self, out: OUT, flags: U):
        assert flags in (0, 2)
        out[0] = self.emulated.event(flags == 0)

    def cuEventDestroy(self, event: U64):
        self.emulated.event_destroy(event)

    def cuEventRecord(self, event: U64, stream: U64):
        self.emulated.event_record(event, stream)

    def cuEventQuery(self, event: U64):
        self._ready(self.emulated.event_query(event))

    def cuEventSynchronize(self, event: U64):
        self.emulated.event_synchronize(event)

    def cuEventElapsedTime(self, out: c.POINTER(c.c_float), start: U64, end: U64):
        out[0] = self.emulated.elapsed(start, end)

    # kernels

    def cuModuleLoadData(self, out: OUT, image: P):
        code, kernel = whole(image), self.now.kernel
        out[0] = number = self.emulated.load(self.Image(kernel.run, kernel.spans))
        self.modules["code", number] = code, kernel

    def cuModuleUnload(self, module: U64):
        self.emulated.unload(module)

    def cuModuleGetFunction(self, out: OUT, module: U64, name: c.c_char_p):
        code, kernel = self.modules["code", module]
        places = parameters(code, name.decode())
        told = kernel.parameters
        sizes = [*zip(told.offsets, [struct.calcsize(x) for x in told.letters], strict=True)]
        assert places[: len(sizes)] == sizes and {size for _, size in places[len(sizes) :]} <= {8}, (places, sizes)
        self.modules["function", module] = told, places
        out[0] = module

    def cuFuncSetAttribute(self, function: U64, which: INT, value: INT):
        assert which == 8, "dynamic shared memory"
        self.emulated.allow_shared(function, value)

    def cuLaunchKernel(self, function: U64, x: U, y: U, z: U, block: U, block_y: U, block_z: U, shared: U, stream: U64,
                       given: c.POINTER(P), extra: P):  # fmt: skip
        told, places = self.modules["function", function]
        assert (block_y, block_z, extra) == (1, 1, None) and shared <= 227 << 10
        read = [c.string_at(given[i], size) for i, (_, size) in enumerate(places)]
        hidden = read[len(told.letters) :]
        assert not any(map(any, hidden)), "memory that nobody asked for"
        values = [struct.unpack(f"<{letter}", x)[0] for letter, x in zip(told.letters, read, strict=False)]
        self.launches += 1
        self.emulated.launch(function, (x, y, z), block, shared, stream, told, tuple(values))

    # graphs

    def cuStreamBeginCapture(self, stream: U64, mode: INT):
        assert mode == 1, "of this thread"
        self.emulated.begin_capture(stream)

    def cuStreamEndCapture(self, stream: U64, out: OUT):
        out[0] = self.emulated.end_capture(stream)

    def cuThreadExchangeStreamCaptureMode(self, mode: OUT_I):
        before = 2 if self.emulated._is_relaxed() else 0
        self.emulated.relax(mode[0] == 2)
        mode[0] = before

    def cuStreamIsCapturing(self, stream: U64, out: OUT_I):
        out[0] = self.emulated.is_capturing(stream)

    def cuGraphGetNodes(self, graph: U64, out: OUT, count: OUT_SIZE):
        listed(out, count, [id(work) for work in self.emulated._graphs[graph]])

    def cuGraphGetRootNodes(self, graph: U64, out: OUT, count: OUT_SIZE):
        listed(out, count, [id(work) for work in self.emulated._graphs[graph][:1]])

    def cuGraphNodeGetType(self, node: U64, out: OUT_I):
        out[0] = 2 if self._in_graph(node)[1].what == "fill" else 0

    def cuGraphMemsetNodeGetParams(self, node: U64, out: c.POINTER(Zeros)):
        _, work = self._in_graph(node)
        address, count, _ = work.spans[0]
        out[0] = Zeros(address, 0, int(not work.zeros), 1, count, 1)

    def cuGraphNodeGetDependencies(self, node: U64, out: OUT, edges: P, count: OUT_SIZE):
        graph, work = self._in_graph(node)
        at = graph.index(work)
        listed(out, count, [id(each) for each in graph[at - 1 : at]])

    def cuGraphNodeGetDependentNodes(self, node: U64, out: OUT, edges: P, count: OUT_SIZE):
        graph, work = self._in_graph(node)
        at = graph.index(work)
        listed(out, count, [id(each) for each in graph[at + 1 : at + 2]])

    def cuGraphAddMemsetNode(self, out: OUT, graph: U64, before: P, count: SIZE, about: c.POINTER(Zeros), context: U64):
        zeros = about[0]
        assert (count, zeros.value, zeros.element, zeros.height, context) == (0, 0, 1, 1, self.now.context)
        self.emulated.begin_with_zeros(graph, zeros.address, zeros.width)
        out[0] = id(self.emulated._graphs[graph][0])

    def cuGraphAddDependencies(self, graph: U64, before: OUT, behind: OUT, edges: P, count: SIZE):
        order = [id(work) for work in self.emulated._graphs[graph]]
        assert count == 1 and not edges and order.index(before[0]) < order.index(behind[0])

    def cuGraphDestroyNode(self, node: U64):
        graph, _ = self._in_graph(node)
        self.emulated.leave_out(next(g for g, works in self.emulated._graphs.items() if works is graph), node)

    def _in_graph(self, node):
        return next((graph, work) for graph in self.emulated._graphs.values() for work in graph if id(work) == node)

    def cuGraphInstantiateWithFlags(self, out: OUT, graph: U64, flags: U64):
        out[0] = self.emulated.instantiate(graph)

    def cuGraphLaunch(self, executable: U64, stream: U64):
        self.emulated.launch_graph(executable, stream)

    def cuGraphDestroy(self, graph: U64):
        self.emulated.graph_destroy(graph)

    def cuGraphExecDestroy(self, executable: U64):
        self.emulated.executable_destroy(executable)


if __name__ == "__main__":
    np.seterr(all="ignore")
    small = sys.argv[1] == "--small"
    script, *arguments = sys.argv[1 + small :]
    driver = CDriver(tempfile.mkdtemp(), small=small)
    atexit.register(lambda: print(f"{driver.launches} launches by C, wrong in it: {driver.wrong}", flush=True))
    sys.argv = [script, *arguments]
    sys.path[:0] = [str(Path(script).resolve().parent), "scripts/gpu"]
    exec(compile(Path(script).read_text(), script, "exec"), {"__name__": "__main__", "__file__": script})
