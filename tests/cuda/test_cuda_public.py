"""`genesis.cuda`, as programs use it, on emulated devices and without any."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import genesis
from genesis import cuda, nn
from genesis.cuda.arrays import CudaArray
from genesis.cuda.kernels.host import HostWarning, computed_on_host
from genesis.cuda.runtime.connection import using
from genesis.cuda.runtime.emulated import Emulated
from genesis.cuda.runtime.errors import RaceError


@pytest.fixture
def gpu():
    with using(Emulated(2, memory=64 << 20)) as driver, warnings.catch_warnings():
        warnings.simplefilter("ignore", HostWarning)
        yield driver


@pytest.fixture
def none():
    with using(None, "the cable is out"):
        yield


# ---- without a GPU


def test_without_a_gpu_programs_go_on(none):
    assert not cuda.is_available() and cuda.device_count() == 0 and cuda.why_unavailable() == "the cable is out"
    assert not cuda.is_bf16_supported() and cuda.get_arch_list() == [] and not cuda.is_initialized()
    before = genesis.get_rng_state().tolist()
    cuda.manual_seed_all(5)
    cuda.set_rng_state_all(cuda.get_rng_state_all())
    cuda.empty_cache()
    cuda.reset_peak_memory_stats()
    cuda.set_per_process_memory_fraction(0.5)
    assert genesis.get_rng_state().tolist() == before and cuda.memory_allocated() == cuda.max_memory_reserved() == 0
    assert cuda.memory_snapshot() == [] and "allocated_bytes" in cuda.memory_summary()
    with cuda.device(None), cuda.stream(None):
        assert genesis.ones(2).device.type == "cpu"
    x = genesis.ones(2)
    assert x.pin_memory() is x and not x.is_pinned()


ASKING = {
    "current_device": cuda.current_device,
    "synchronize": cuda.synchronize,
    "get_device_name": cuda.get_device_name,
    "current_stream": cuda.current_stream,
    "Stream": cuda.Stream,
    "Event.record": lambda: cuda.Event().record(),
    "mem_get_info": cuda.mem_get_info,
    "get_rng_state": cuda.get_rng_state,
    "init": cuda.init,
}


@pytest.mark.parametrize("name", ASKING)
def test_what_needs_a_gpu_says_why_there_is_none(name, none):
    with pytest.raises(RuntimeError, match="there is no GPU here: the cable is out\n  try: device='cpu'"):
        ASKING[name]()


def test_tensors_say_why_there_is_none(none):
    for make in (lambda: genesis.ones(2, device="cuda"), genesis.ones(2).cuda, lambda: nn.Linear(2, 2).to("cuda")):
        with pytest.raises(RuntimeError, match="cuda is not available, the cable is out"):
            make()
    with pytest.warns(UserWarning, match="there is no 'cuda' here"):
        genesis.autocast("cuda")


def test_neither_torch_nor_cupy_is_imported():
    """G0: a process in which both are forbidden trains, asks for a GPU, and is told why there is none."""
    program = """
import sys, os
sys.modules["torch"] = sys.modules["cupy"] = None
os.environ["GENESIS_CUDA"] = "off"
import genesis
model = genesis.nn.Sequential(genesis.nn.Linear(2, 4), genesis.nn.ReLU(), genesis.nn.Linear(4, 1))
optimizer = genesis.optim.AdamW(model.parameters())
loss = model(genesis.randn(8, 2)).square().mean()
loss.backward()
optimizer.step()
assert "genesis.cuda" not in sys.modules
assert not genesis.cuda.is_available() and genesis.cuda.why_unavailable() == "GENESIS_CUDA is off"
assert "triton" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


# ---- devices


def test_devices(gpu):
    assert cuda.is_available() and cuda.device_count() == 2 and cuda.current_device() == 0
    assert (
        genesis.ones(2, device="cuda").device == genesis.device("cuda:0") and genesis.ones(2).cuda(1).get_device() == 1
    )
    with cuda.device(1):
        assert cuda.current_device() == 1 and genesis.ones(2, device="cuda").device.index == 1
        with cuda.device_of(genesis.ones(2, device="cuda:0")):
            assert cuda.current_device() == 0
        with cuda.device(None):
            assert cuda.current_device() == 1
    cuda.set_device("cuda:1")
    assert cuda.current_device() == 1
    cuda.set_device(0)
    with pytest.raises(RuntimeError, match="cuda:2 does not exist, there are 2 devices"):
        cuda.set_device(2)
    with pytest.raises(RuntimeError, match="expected a CUDA device, got cpu"):
        cuda.set_device("cpu")
    with pytest.raises(TypeError, match="expected a device or an index, got True"):
        cuda.device(True)


def test_properties(gpu):
    said = cuda.get_device_properties(1)
    assert (
        (said.name, said.major, said.minor)
        == ("emulated device", 9, 0)
        == (cuda.get_device_name(), *cuda.get_device_capability())
    )
    assert said.total_memory == 64 << 20 and said.multi_processor_count == 132 and cuda.get_arch_list() == ["sm_90"]
    assert cuda.can_device_access_peer(0, 1) and not cuda.can_device_access_peer(0, 0) and cuda.is_bf16_supported()


# ---- memory


def test_tensors_give_their_memory_back(gpu):
    before = cuda.memory_allocated()
    x = genesis.ones(1 << 20, device="cuda")
    assert cuda.memory_allocated() - before == 4 << 20
    view = x[5:]
    del x
    assert cuda.memory_allocated() - before == 4 << 20
    del view
    assert cuda.memory_allocated() == before and cuda.max_memory_allocated() >= 4 << 20
    assert cuda.memory_reserved() >= 4 << 20
    cuda.empty_cache()
    assert cuda.memory_reserved() == 0 and cuda.mem_get_info() == (64 << 20, 64 << 20)
    cuda.reset_peak_memory_stats()
    assert cuda.max_memory_allocated() == cuda.memory_allocated() and cuda.memory_stats()["num_device_free"] >= 1


def test_too_large_a_tensor_is_an_error_of_memory(gpu):
    with pytest.raises(cuda.OutOfMemoryError, match=r"out of memory, 400\.0 MiB were asked for") as caught:
        genesis.empty(100 << 20, device="cuda")
    assert isinstance(caught.value, MemoryError | RuntimeError)
    assert genesis.ones(5, device="cuda").sum().item() == 5
    cuda.set_per_process_memory_fraction(0.25)
    with pytest.raises(cuda.OutOfMemoryError):
        genesis.empty(8 << 20, device="cuda")
    cuda.set_per_process_memory_fraction(1.0)
    with pytest.raises(ValueError, match="expected 0 to 1, got 2"):
        cuda.set_per_process_memory_fraction(2)


def test_a_pool_is_nobody_elses(gpu):
    pool = cuda.MemPool()
    with cuda.use_mem_pool(pool):
        x = genesis.ones(1000, device="cuda")
    address = x._array.address
    assert [s["segment_pool_id"] for s in pool.snapshot()] == [pool.id] and x.sum().item() == 1000
    del x
    cuda.empty_cache()
    assert pool.snapshot() and genesis.ones(1000, device="cuda")._array.address != address
    with cuda.use_mem_pool(pool):
        assert genesis.ones(1000, device="cuda")._array.address == address
    with pytest.raises(TypeError, match="expected a MemPool, got a int"), cuda.use_mem_pool(3):
        pass
    reserved = cuda.memory_reserved()
    del pool
    cuda.empty_cache()
    assert cuda.memory_reserved() < reserved


def test_other_names_for_memory(gpu):
    x = genesis.ones(100, device="cuda")
    nested = cuda.memory_stats_as_nested_dict()
    assert nested["allocated_bytes"]["all"]["current"] == cuda.memory_allocated() and "num_ooms" in nested
    assert cuda.memory_cached() == cuda.memory_reserved() and cuda.max_memory_cached() == cuda.max_memory_reserved()
    cuda.set_per_process_memory_fraction(0.25)
    assert cuda.get_per_process_memory_fraction() == 0.25 and cuda.get_allocator_backend() == "native"
    cuda.set_per_process_memory_fraction(1.0)
    with cuda.nvtx.range("step {}", 3):
        assert cuda.nvtx.range_push("inner") == 1 and cuda.nvtx.range_pop() == 1
    del x


def test_no_training_step_leaks(gpu):
    model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2)).to("cuda")
    optimizer = genesis.optim.AdamW(model.parameters())
    levels = []
    for _ in range(4):
        loss = model(genesis.ones(3, 4, device="cuda")).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        levels.append(cuda.memory_allocated())
    assert levels[1] == levels[2] == levels[3]


# ---- streams and copies


def test_work_of_two_streams_that_nothing_orders_is_seen(gpu):
    side = cuda.Stream()
    x = genesis.ones(4, device="cuda")
    with cuda.stream(side), pytest.raises(RaceError):
        x.cpu()
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        assert cuda.current_stream() is side and x.cpu().tolist() == [1.0] * 4
        y = genesis.full((4,), 2.0, device="cuda")
    cuda.current_stream().wait_stream(side)
    assert y.tolist() == [2.0] * 4 and cuda.current_stream() == cuda.default_stream()


def test_memory_is_not_reused_while_another_stream_reads_it(gpu):
    side = cuda.Stream()
    x = genesis.ones(4, device="cuda")
    address = x._array.address
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        y = x.clone()  # which says of itself that the stream uses it
    del x
    assert genesis.ones(4, device="cuda")._array.address != address
    z = genesis.ones(4, device="cuda")
    z.record_stream(side)
    assert side in z._array.storage.block.foreign
    side.synchronize()
    del y


def test_pinned_memory_and_copies_that_nobody_waits_for(gpu):
    x = genesis.arange(4.0).pin_memory()
    assert x.is_pinned() and x.pin_memory()._array is x._array and not genesis.ones(2).is_pinned()
    calls = gpu.calls.get("stream_synchronize", 0)
    y = x.to("cuda", non_blocking=True)
    z = genesis.empty(4, device="cuda").copy_(x, non_blocking=True)
    assert gpu.calls.get("stream_synchronize", 0) == calls
    assert y.tolist() == z.tolist() == [0.0, 1.0, 2.0, 3.0]
    x.cuda()
    assert gpu.calls["stream_synchronize"] > calls


def test_events(gpu):
    start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    start.record()
    genesis.ones(4, device="cuda")
    end.record()
    cuda.synchronize()
    assert end.query() and start.elapsed_time(end) >= 0


# ---- arrays


def test_views_share_an_address(gpu):
    x = genesis.arange(12.0, device="cuda").reshape(3, 4)
    a = x._array
    assert isinstance(a, CudaArray) and x.t()._array.address == a.address and x[1:]._array.address == a.address + 16
    assert x.t()._array.strides == (1, 4) and x[1:]._array.base is (a.base or a) and not x.t()._array.is_contiguous
    x[1:, ::2].fill_(0)
    assert x.tolist() == [[0, 1, 2, 3], [0, 5, 0, 7], [0, 9, 0, 11]]
    assert x.as_strided((2, 2), (1, 4), 2).tolist() == [[2, 0], [3, 7]]
    assert x[1:].as_strided((2,), (1,), 6).tolist() == [0, 7]  # offsets count from where the storage begins


def test_ops_without_kernels_say_so_once(gpu):
    computed_on_host.pop("igamma", None)
    x = genesis.ones(2, device="cuda")
    with warnings.catch_warnings():
        warnings.simplefilter("always", HostWarning)
        with pytest.warns(HostWarning, match="cuda: igamma is computed by the CPU"):
            x.igamma(x)
        with warnings.catch_warnings():
            warnings.simplefilter("error", HostWarning)
            x.igamma(x)
    assert "igamma" in computed_on_host


def test_random_numbers_are_those_of_the_cpu(gpu):
    cuda.manual_seed(3)
    there = genesis.rand(5, device="cuda")
    genesis.manual_seed(3)
    assert there.tolist() == genesis.rand(5).tolist()
    state = cuda.get_rng_state()
    first = genesis.randn(3, device="cuda")
    cuda.set_rng_state(state)
    assert genesis.randn(3, device="cuda").tolist() == first.tolist() and cuda.initial_seed() == 3


def test_amp(gpu):
    x = genesis.ones(2, 2, device="cuda")
    with cuda.amp.autocast("cuda", dtype=genesis.bfloat16):
        assert (x @ x).dtype is genesis.bfloat16


def test_a_kernel_that_went_wrong_is_said_at_every_call_from_then_on(gpu):
    x = genesis.ones(4, device="cuda")
    gpu.copy_in(1 << 57, np.ones(4).ctypes.data, 32, cuda.current_stream().cuda_stream)
    with pytest.raises(cuda.CudaError, match="CUDA_ERROR_ILLEGAL_ADDRESS"):
        cuda.synchronize()
    with pytest.raises(cuda.CudaError, match="CUDA_ERROR_ILLEGAL_ADDRESS"):
        x.tolist()


# ---- around it


def test_files_say_where_tensors_were(gpu, tmp_path):
    file = tmp_path / "x.pt"
    genesis.save({"there": genesis.ones(2, device="cuda:1"), "here": genesis.ones(2)}, file)
    devices = lambda **options: tuple([str(t.device) for t in genesis.load(file, **options).values()])
    assert devices() == ("cuda:1", "cpu") and devices(map_location="cpu") == ("cpu", "cpu")
    assert devices(map_location={"cuda:1": "cuda:0"}) == ("cuda:0", "cpu")
    assert devices(map_location=lambda storage, where: storage.cuda() if where == "cpu" else None) == (
        "cuda:1",
        "cuda:0",
    )
    with using(None, "the cable is out"):
        with pytest.raises(RuntimeError, match="the tensors were saved on cuda:1, which is not available"):
            genesis.load(file)
        assert devices(map_location="cpu") == ("cpu", "cpu")


def test_a_loader_pins_its_batches(gpu):
    data = genesis.data.TensorDataset(genesis.arange(6.0), genesis.arange(6))
    for x, label in genesis.data.DataLoader(data, 2, pin_memory=True):
        assert x.is_pinned() and label.is_pinned() and x.to("cuda", non_blocking=True).sum().item() == x.sum().item()
    for x, _ in genesis.data.DataLoader(data, 2):
        assert not x.is_pinned()


def test_programs_for_pytorch():
    program = """
import genesis
from genesis.cuda.runtime.connection import using
torch = genesis.as_torch()
assert torch.cuda.is_available() and torch.cuda.device_count() == 2 and torch.cuda.get_device_name(0) == "emulated device"
assert torch.version.cuda == "13.0"
x = torch.ones(3).cuda()
with torch.cuda.stream(torch.cuda.Stream()) as side:
    assert torch.cuda.current_stream() is side
torch.cuda.synchronize()
assert x.is_cuda and torch.cuda.memory_allocated() > 0 and torch.cuda.get_rng_state().dtype is torch.uint8

x = torch.ones(2).type(torch.cuda.FloatTensor)
assert x.is_cuda and x.type() == "torch.cuda.FloatTensor" and x.type("torch.DoubleTensor").device.type == "cpu"
assert isinstance(x, torch.cuda.FloatTensor) and not isinstance(x, torch.FloatTensor) and x.type(torch.int64).is_cuda
assert torch.cuda.LongTensor(2, 3).shape == (2, 3) and torch.cuda.LongTensor([7]).tolist() == [7]
torch.set_default_tensor_type("torch.cuda.DoubleTensor")
assert torch.zeros(1).type() == "torch.cuda.DoubleTensor"
torch.set_default_tensor_type(torch.FloatTensor)
assert torch.zeros(1).type() == "torch.FloatTensor"
try:
    torch.empty(1 << 50, device="cuda")
except torch.cuda.OutOfMemoryError as error:
    assert isinstance(error, (torch.OutOfMemoryError, RuntimeError))
for make in (torch.cuda.amp.GradScaler, torch.amp.GradScaler):
    w = torch.nn.Parameter(torch.ones(1, device="cuda"))
    scaler, optimizer = make(init_scale=8.0), torch.optim.SGD([w], lr=1.0)
    scaler.scale((w * float("inf")).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert w.item() == 1 and scaler.get_scale() == 4
with using(None, "gone"):
    assert not torch.cuda.is_available() and torch.cuda.memory_allocated() == 0
    assert not isinstance(torch.ones(1), torch.cuda.FloatTensor)
"""
    environment = {**os.environ, "GENESIS_CUDA": "emulate:2"}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)


def test_doctor_says_which_gpus_there_are(gpu, capsys):
    from genesis.cli.doctor import gpus

    assert gpus() == "emulated device, emulated device"
    with using(None, "the cable is out"):
        assert gpus() == "none: the cable is out"


def test_what_a_gpu_is_asked_first_runs_on_the_emulated_device(tmp_path):
    script = Path(__file__).parents[2] / "scripts" / "gpu" / "run"
    environment = {**os.environ, "GENESIS_CUDA": "emulate"}
    done = subprocess.run(
        [sys.executable, script, "smoke", "--out", tmp_path],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((tmp_path / "smoke.json").read_text())
    assert report["wrong"] == 0 and report["emulated"] and len(report["values"]) > 30 and "measured" not in report
    environment["GENESIS_CUDA"] = "off"
    done = subprocess.run(
        [sys.executable, script, "smoke"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and "there is no GPU: GENESIS_CUDA is off" in done.stdout


# ---- other libraries


class Theirs:
    """A tensor of another library."""

    def __init__(self, tensor):
        self.tensor, self.streams = tensor, []

    def __dlpack__(self, stream=None, **options):
        self.streams.append(stream)
        return self.tensor.__dlpack__(stream=stream)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


@pytest.mark.parametrize("dtype", [genesis.float32, genesis.bfloat16, genesis.bool, genesis.int64, genesis.complex64])
def test_memory_is_shared_with_other_libraries(dtype, gpu):
    x = (genesis.arange(12).reshape(3, 4) % 2).to(dtype).to("cuda").t()
    theirs = Theirs(x)
    assert x.__dlpack_device__() == (2, 0)
    y = genesis.from_dlpack(theirs)
    assert theirs.streams == [cuda.current_stream().cuda_stream]
    assert (y.dtype, y.shape, y.stride(), y.tolist()) == (x.dtype, x.shape, x.stride(), x.tolist())
    y.zero_()
    assert not x.cpu().numpy().any()
    used = cuda.memory_allocated()
    del x, theirs
    assert cuda.memory_allocated() == used > 0
    del y
    assert cuda.memory_allocated() < used


def test_the_interface_of_cuda_arrays(gpu):
    x = genesis.arange(12.0, device="cuda").reshape(3, 4)
    told = x.__cuda_array_interface__
    assert told == {
        "shape": (3, 4), "typestr": "<f4", "data": (x.data_ptr(), False), "strides": None, "version": 3,
        "stream": cuda.current_stream().cuda_stream,
    }  # fmt: skip
    assert x.t()[1:].__cuda_array_interface__["strides"] == (4, 16)
    assert x.t()[1:].__cuda_array_interface__["data"][0] == x.data_ptr() + 4
    assert x[:0].__cuda_array_interface__["data"] == (0, False)
    assert not hasattr(x.cpu(), "__cuda_array_interface__") and not hasattr(x.bfloat16(), "__cuda_array_interface__")
    with pytest.raises(RuntimeError, match="requires a gradient"):
        x.requires_grad_().__cuda_array_interface__


def test_a_scaled_step_waits_once(gpu):
    """For the one number that says whether all gradients are finite."""
    params = [nn.Parameter(genesis.ones(3, device="cuda")) for _ in range(4)]
    optimizer, scaler = genesis.optim.SGD(params, lr=0.5), genesis.amp.GradScaler("cuda", init_scale=8.0)
    for last in (1.0, float("inf")):
        scaler.scale(sum([p.sum() for p in params[:3]]) + params[3].sum() * last).backward()
        before = gpu.calls.get("copy_out", 0)
        scaler.step(optimizer)
        assert gpu.calls["copy_out"] - before == 1
        scaler.update()
        optimizer.zero_grad()
    assert [p.tolist() for p in params] == [[0.5] * 3] * 4 and scaler.get_scale() == 4.0


def test_a_capsule_that_nobody_takes(gpu):
    x = genesis.ones(3, device="cuda")
    held = x.__dlpack__(stream=-1)
    del x
    assert cuda.memory_allocated() > 0
    del held
    assert cuda.memory_allocated() == 0


def test_capsules_do_not_depend_on_what_others_say_of_functions_of_python(gpu, monkeypatch):
    import ctypes

    for name in ("PyCapsule_GetPointer", "PyCapsule_IsValid"):
        function = getattr(ctypes.pythonapi, name)
        monkeypatch.setattr(function, "argtypes", [ctypes.py_object, ctypes.c_char_p])
    x = genesis.ones(3, device="cuda")
    held = x.__dlpack__(stream=-1)
    del x, held
    assert cuda.memory_allocated() == 0
    assert genesis.from_dlpack(genesis.ones(2, device="cuda")).tolist() == [1.0, 1.0]


def test_another_stream_waits_for_what_it_takes(gpu):
    x, side = genesis.ones(3, device="cuda"), cuda.Stream()
    held = x.__dlpack__(stream=side.cuda_stream)  # the taker's stream waits
    with cuda.stream(side):
        assert x.cpu().tolist() == [1.0] * 3
    del held


def test_so_do_files_of_another_format(gpu, tmp_path):
    """But not those that are asked to be safetensors, which have no word for that."""
    given = {
        "x": genesis.ones(2, device="cuda:1"),
        "y": nn.Parameter(genesis.zeros(3, device="cuda")),
        "z": genesis.ones(1),
    }
    for name in ("state", "state.pt", "state.safetensors"):
        path = tmp_path / name
        genesis.save(given, path)
        there = genesis.load(path)
        wanted = ["cpu"] * 3 if name.endswith(".safetensors") else ["cuda:1", "cuda:0", "cpu"]
        assert [str(t.device) for t in there.values()] == wanted, name
        assert [t.tolist() for t in there.values()] == [[1.0, 1.0], [0.0] * 3, [1.0]]
        assert isinstance(there["y"], nn.Parameter)
        for options in ({"map_location": "cuda:1"}, {"device": "cuda:1"}, {"map_location": lambda s, _: s.cuda(1)}):
            assert {str(t.device) for t in genesis.load(path, **options).values()} == {"cuda:1"}
        swapped = genesis.load(path, {"cuda:1": "cuda:0", "cpu": "cuda:1"}).values()
        assert [str(t.device) for t in swapped] == (
            ["cuda:1"] * 3 if wanted[0] == "cpu" else ["cuda:0", "cuda:0", "cuda:1"]
        )
        assert {str(t.device) for t in genesis.load(path, "cpu").values()} == {"cpu"}
    genesis.save({"x": given["x"]}, tmp_path / "flat")
    assert str(genesis.load(tmp_path / "flat")["x"].device) == "cuda:1"
    with (
        using(None, "no GPU"),
        pytest.raises(RuntimeError, match="the tensors were saved on cuda:1, which is not available"),
    ):
        genesis.load(tmp_path / "flat")


def test_copies_between_devices_keep_the_order_of_memory(gpu):
    x = genesis.arange(120.0).reshape(2, 3, 4, 5)
    last = {"memory_format": genesis.channels_last}
    for seen, strides in (
        (x.contiguous(**last), (60, 1, 15, 3)), (x.permute(3, 1, 0, 2), (1, 20, 60, 5)), (x[:, ::2], (40, 20, 5, 1)),
        (x.transpose(0, 1)[:, :, ::2], (10, 30, 5, 1)), (x[:, :1].expand(2, 3, 4, 5), (60, 20, 5, 1)),
    ):  # fmt: skip
        for there in (
            seen.to("cuda"),
            seen.to("cuda:1", non_blocking=True),
            seen.cuda().to("cuda:1"),
            seen.cuda().cpu(),
        ):
            assert there.stride() == strides and there.tolist() == seen.tolist()
    model = nn.Conv2d(3, 4, 3).to(**last).to("cuda")
    assert model.weight.stride() == (27, 1, 9, 3) and model.weight.is_leaf
    y = x.contiguous(**last).requires_grad_()
    (y.cuda() * x.cuda()).sum().backward()
    assert y.grad.equal(x)
    assert x.to("cuda", **last).stride() == (60, 1, 15, 3)
