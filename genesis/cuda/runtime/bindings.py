"""NVIDIA's driver, through `cuda-bindings`: functions of C, called without a compiler.

Every one gives a result first, which is 0 or an error. Importing it needs no GPU, and it is imported when somebody asks
for a device.
"""

from __future__ import annotations

import importlib
from typing import Any

from genesis.cuda.runtime.driver import Driver
from genesis.cuda.runtime.errors import StickyError, error
from genesis.cuda.runtime.parameters import Parameters

BLOCKING = "begin the program again, with CUDA_LAUNCH_BLOCKING=1 the error is at the launch that made it"
OLDEST = 12000  # of the drivers that cubins are made for


def connected() -> tuple[Driver | None, str]:
    """The driver of this machine, or why there is none."""
    try:
        cu = importlib.import_module("cuda.bindings.driver")
    except ImportError:
        return None, 'cuda-bindings is not installed: pip install "genesis-dl[cuda]"'
    try:
        bound = Bound(cu)
    except RuntimeError as problem:  # the library is not there, or refuses
        first = str(problem).splitlines()[0] if str(problem) else type(problem).__name__
        return None, f"the NVIDIA driver cannot be used, {first}"
    return (bound, "") if bound.count() else (None, "the NVIDIA driver has no devices")


class Bound(Driver):
    """The functions of `cuda.bindings.driver`, or of what stands for it."""

    def __init__(self, cu: Any) -> None:
        self.cu = cu
        self._devices: dict[int, Any] = {}
        self._first: StickyError | None = None  # after which nothing works any more
        self._call("cuInit", 0)
        if self.version() < OLDEST:
            raise RuntimeError(f"it is for CUDA {self.version() // 1000}, {OLDEST // 1000} is needed")

    def _call(self, name: str, *arguments: Any) -> Any:
        result = getattr(self.cu, name)(*arguments)
        if result[0]:
            raise self._error(result[0], name)
        return result[1] if len(result) == 2 else result[1:]

    def _error(self, result: Any, call: str) -> Exception:
        if self._first is not None:
            later = StickyError(f"{self._first}\n  this is {call}, and nothing works any more since then: {BLOCKING}")
            later.name = self._first.name
            return later
        text = self.cu.cuGetErrorString(result)[1] or b"an error that the driver does not know"
        problem = error(getattr(result, "name", str(result)), text.decode(errors="replace"), call)
        self._first = problem if isinstance(problem, StickyError) else None
        return problem

    def _done(self, name: str, *arguments: Any) -> bool:
        """Of a query: whether there is nothing left to wait for."""
        (result,) = getattr(self.cu, name)(*arguments)
        if result and getattr(result, "name", "") != "CUDA_ERROR_NOT_READY":
            raise self._error(result, name)
        return not result

    # ---- devices and contexts

    def version(self) -> int:
        return int(self._call("cuDriverGetVersion"))

    def count(self) -> int:
        return int(self._call("cuDeviceGetCount"))

    def _device(self, index: int) -> Any:
        if index not in self._devices:
            self._devices[index] = self._call("cuDeviceGet", index)
        return self._devices[index]

    def device_name(self, index: int) -> str:
        return str(self._call("cuDeviceGetName", 256, self._device(index)).split(b"\0")[0].decode())

    def attribute(self, index: int, name: str) -> int:
        which = getattr(self.cu.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(self._call("cuDeviceGetAttribute", which, self._device(index)))

    def total_memory(self, index: int) -> int:
        return int(self._call("cuDeviceTotalMem", self._device(index)))

    def retain(self, index: int) -> int:
        return int(self._call("cuDevicePrimaryCtxRetain", self._device(index)))

    def make_current(self, context: int) -> None:
        self._call("cuCtxSetCurrent", context)

    def synchronize(self) -> None:
        self._call("cuCtxSynchronize")

    def can_access_peer(self, index: int, other: int) -> bool:
        return bool(self._call("cuDeviceCanAccessPeer", self._device(index), self._device(other)))

    # ---- memory

    def memory_info(self) -> tuple[int, int]:
        free, total = self._call("cuMemGetInfo")
        return int(free), int(total)

    def allocate(self, count: int) -> int:
        return int(self._call("cuMemAlloc", count))

    def free(self, address: int) -> None:
        self._call("cuMemFree", address)

    def host_allocate(self, count: int) -> int:
        return int(self._call("cuMemHostAlloc", count, self.cu.CU_MEMHOSTALLOC_PORTABLE))

    def host_free(self, address: int) -> None:
        self._call("cuMemFreeHost", address)

    def copy_in(self, target: int, host: int, count: int, stream: int) -> None:
        (result,) = self.cu.cuMemcpyHtoDAsync(target, host, count, stream)
        if result:
            raise self._error(result, "cuMemcpyHtoDAsync")

    def copy_out(self, host: int, source: int, count: int, stream: int) -> None:
        self._call("cuMemcpyDtoHAsync", host, source, count, stream)

    def copy(self, target: int, source: int, count: int, stream: int) -> None:
        self._call("cuMemcpyDtoDAsync", target, source, count, stream)

    def copy_peer(self, target: int, to: int, source: int, origin: int, count: int, stream: int) -> None:
        self._call("cuMemcpyPeerAsync", target, to, source, origin, count, stream)

    def fill(self, target: int, value: int, width: int, count: int, stream: int) -> None:
        self._call(f"cuMemsetD{8 * width}Async", target, value, count, stream)

    # ---- pieces of an address range

    def _pieces(self, index: int) -> Any:
        cu, wanted = self.cu, self.cu.CUmemAllocationProp()
        wanted.type = cu.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        wanted.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        wanted.location.id = index
        return wanted

    def granularity(self, index: int) -> int:
        if not self.attribute(index, "VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED"):
            return 0
        which = self.cu.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_RECOMMENDED
        return int(self._call("cuMemGetAllocationGranularity", self._pieces(index), which))

    def reserve(self, count: int) -> int:
        return int(self._call("cuMemAddressReserve", count, 0, 0, 0))

    def release(self, address: int, count: int) -> None:
        self._call("cuMemAddressFree", address, count)

    def back(self, address: int, count: int, index: int) -> int:
        handle = self._call("cuMemCreate", count, self._pieces(index), 0)
        try:
            self._call("cuMemMap", address, count, 0, handle, 0)
            access = self.cu.CUmemAccessDesc()
            access.location.type = self.cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
            access.location.id = index
            access.flags = self.cu.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
            self._call("cuMemSetAccess", address, count, [access], 1)
        except Exception:
            self._call("cuMemRelease", handle)
            raise
        return int(handle)

    def unback(self, address: int, count: int, handle: int) -> None:
        self._call("cuMemUnmap", address, count)
        self._call("cuMemRelease", handle)

    # ---- streams and events

    def stream(self, priority: int = 0) -> int:
        flag = self.cu.CUstream_flags.CU_STREAM_NON_BLOCKING
        return int(self._call("cuStreamCreateWithPriority", flag, priority))

    def stream_destroy(self, stream: int) -> None:
        self._call("cuStreamDestroy", stream)

    def stream_query(self, stream: int) -> bool:
        return self._done("cuStreamQuery", stream)

    def stream_synchronize(self, stream: int) -> None:
        self._call("cuStreamSynchronize", stream)

    def stream_wait(self, stream: int, event: int) -> None:
        self._call("cuStreamWaitEvent", stream, event, 0)

    def event(self, timing: bool = False) -> int:
        flags = self.cu.CUevent_flags
        return int(self._call("cuEventCreate", flags.CU_EVENT_DEFAULT if timing else flags.CU_EVENT_DISABLE_TIMING))

    def event_destroy(self, event: int) -> None:
        self._call("cuEventDestroy", event)

    def event_record(self, event: int, stream: int) -> None:
        self._call("cuEventRecord", event, stream)

    def event_query(self, event: int) -> bool:
        return self._done("cuEventQuery", event)

    def event_synchronize(self, event: int) -> None:
        self._call("cuEventSynchronize", event)

    def elapsed(self, start: int, end: int) -> float:
        return float(self._call("cuEventElapsedTime", start, end))

    # ---- kernels

    def load(self, image: Any) -> int:
        return int(self._call("cuModuleLoadData", image))

    def unload(self, module: int) -> None:
        self._call("cuModuleUnload", module)

    def function(self, module: int, name: str) -> int:
        return int(self._call("cuModuleGetFunction", module, name.encode()))

    def allow_shared(self, function: int, count: int) -> None:
        which = self.cu.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        self._call("cuFuncSetAttribute", function, which, count)

    def launch(
        self,
        function: int,
        grid: tuple[int, int, int],
        block: int,
        shared: int,
        stream: int,
        parameters: Parameters,
        values: tuple[Any, ...],
    ) -> None:
        x, y, z = grid
        (result,) = self.cu.cuLaunchKernel(
            function, x, y, z, block, 1, 1, shared, stream, parameters.address(values), 0
        )
        if result:
            raise self._error(result, "cuLaunchKernel")

    # ---- graphs

    def begin_capture(self, stream: int) -> None:
        self._call("cuStreamBeginCapture", stream, self.cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)

    def end_capture(self, stream: int) -> int:
        return int(self._call("cuStreamEndCapture", stream))

    def relax(self, relaxed: bool) -> None:
        modes = self.cu.CUstreamCaptureMode
        mode = modes.CU_STREAM_CAPTURE_MODE_RELAXED if relaxed else modes.CU_STREAM_CAPTURE_MODE_GLOBAL
        self._call("cuThreadExchangeStreamCaptureMode", mode)

    def is_capturing(self, stream: int) -> bool:
        none = self.cu.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE
        return bool(self._call("cuStreamIsCapturing", stream) != none)

    def zeros_in(self, graph: int) -> list[tuple[int, int, int]]:
        out, fill = [], self.cu.CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEMSET
        for node in self._nodes("cuGraphGetNodes", graph):
            if self._call("cuGraphNodeGetType", node) == fill:
                about = self._call("cuGraphMemsetNodeGetParams", node)
                if not about.value and about.height == 1:
                    out.append((int(node), int(about.dst), about.width * about.elementSize))
        return out

    def begin_with_zeros(self, graph: int, address: int, count: int) -> None:
        first, about = self._nodes("cuGraphGetRootNodes", graph), self.cu.CUDA_MEMSET_NODE_PARAMS()
        about.dst, about.value, about.elementSize = self.cu.CUdeviceptr(address), 0, 1
        about.width, about.height, about.pitch = count, 1, count
        node = self._call("cuGraphAddMemsetNode", graph, [], 0, about, self._call("cuCtxGetCurrent"))
        for each in first:
            self._call("cuGraphAddDependencies", graph, [node], [each], None, 1)

    def leave_out(self, graph: int, node: int) -> None:
        behind = self._nodes("cuGraphNodeGetDependentNodes", node)
        for before in self._nodes("cuGraphNodeGetDependencies", node):
            for each in behind:
                self._call("cuGraphAddDependencies", graph, [before], [each], None, 1)
        self._call("cuGraphDestroyNode", node)

    def _nodes(self, name: str, of: int) -> list[Any]:
        count = int(self._call(name, of, 0)[-1])
        return list(self._call(name, of, count)[0]) if count else []

    def instantiate(self, graph: int) -> int:
        return int(self._call("cuGraphInstantiate", graph, 0))

    def launch_graph(self, executable: int, stream: int) -> None:
        (result,) = self.cu.cuGraphLaunch(executable, stream)
        if result:
            raise self._error(result, "cuGraphLaunch")

    def graph_destroy(self, graph: int) -> None:
        self._call("cuGraphDestroy", graph)

    def executable_destroy(self, executable: int) -> None:
        self._call("cuGraphExecDestroy", executable)
