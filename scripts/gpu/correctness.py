"""Call B of `scripts/gpu/run`: everything that is compared with the CPU, inside of a number of seconds."""

from __future__ import annotations

import io
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from graded import graded_checks
from spectra import FREE, spectra_of_matrices

import genesis
from genesis import cuda, nn
from genesis.core.call.op import REGISTRY
from genesis.cuda.libraries import cudnn, loading
from genesis.nn import functional as F
from genesis.testing import Maker
from genesis.testing.devices import check_op_on
from genesis.testing.opcheck import sample_dtypes, samples_of

Check = Callable[[], Any]
AS_IT_LIES = {"view_shape", "view_dtype", "view_as_complex", "strided_view", "as_strided", "as_strided_scatter"}
SHAPES = (1,), (31,), (1025,), (3, 5, 7), (1, 257), (65, 3), (129, 1023)


def is_emulated() -> bool:
    return bool(cuda.current_stream().on.driver.emulated)


def checks(fraction: float) -> Iterator[tuple[str, Check]]:
    """What is tried, in this order; of ops the ``fraction`` that a seed chooses, of the clock or
    ``GENESIS_GPU_SEED``."""
    yield from CHECKS.items()
    yield from graded_checks(is_emulated())
    known = [op for op in REGISTRY.values() if not (op.kind.moves or op.kind.draws or op.name in FREE)]
    ops = sorted(known, key=lambda op: op.name)
    order = np.random.default_rng(int(os.environ.get("GENESIS_GPU_SEED", time.time_ns()))).permutation(len(ops))[
        : max(int(fraction * len(ops)), 1)
    ]
    yield from [(f"op {ops[i].name}", lambda op=ops[i]: of_op(op)) for i in order]


def of_op(op: Any) -> str:
    """Values, derivatives, batches and writes of an op's samples, as on the CPU in float64."""
    done = 0
    for dtype in sample_dtypes(op):
        if dtype in (genesis.float64, genesis.int64, genesis.bool):
            for i in range(len(samples_of(op, Maker(dtype)))):
                make = lambda i=i, dtype=dtype: samples_of(op, Maker(dtype, seed=i, requires_grad=True))[i]
                check_op_on("cuda", op, make, "strided" if i % 2 and op.name not in AS_IT_LIES else "contiguous")
                done += 1
    return f"{done} samples"


def odd_shapes() -> str:
    """Rows of odd lengths, memory that begins anywhere."""
    generator = np.random.default_rng(time.time_ns())
    for shape in SHAPES:
        for begin in (0, 1, 3):
            count = int(np.prod(shape))
            host = genesis.tensor(generator.normal(size=count + begin).astype(np.float32))
            x, a = host[begin:].reshape(shape), host.to("cuda")[begin:].reshape(shape)
            for f in (
                lambda t: t * 2 + t.exp(),
                lambda t: t.sum(),
                lambda t: t.softmax(-1),
                lambda t: t.amax(0),
                lambda t: t.t() if t.ndim == 2 else t,
            ):
                near(f(a), f(x.double()), 1e-4)
    return f"{3 * len(SHAPES)} layouts"


def libraries() -> str:
    """Products, attention and convolutions by NVIDIA's libraries, and without them, beside float64; which are there."""
    calls = {
        "cublaslt": (lambda x, w, b: F.linear(x, w, b), [(65, 72), (40, 72), (40,)]),
        "cudnn": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), [(2, 4, 96, 64)] * 3),
        "cudnn ": (lambda x, w: F.conv2d(x, w, padding=1), [(4, 16, 14, 14), (32, 16, 3, 3)]),
    }
    generator, before = np.random.default_rng(time.time_ns()), os.environ.get("GENESIS_CUDA_LIBRARIES")
    used = set()
    for name, (function, shapes) in calls.items():
        inputs = [genesis.tensor(generator.normal(size=s)).bfloat16() for s in shapes]
        for chosen in (before or "", "none"):
            os.environ["GENESIS_CUDA_LIBRARIES"] = chosen
            try:
                with loading.standing_in():  # asked anew
                    graded = [x.to("cuda").requires_grad_() for x in inputs]
                    out = function(*graded)
                    out.backward(genesis.ones_like(out))
                    exact = [x.double().requires_grad_() for x in inputs]
                    wanted = function(*exact)
                    wanted.backward(genesis.ones_like(wanted))
                    for a, b in zip((out, *[x.grad for x in graded]), (wanted, *[x.grad for x in exact]), strict=True):
                        near(a.detach(), b.detach(), 4e-2)
                    used |= {name.strip()} if loading.library(name.strip()) is not None else set()
            finally:
                os.environ["GENESIS_CUDA_LIBRARIES"] = before or ""
    return f"used: {', '.join(sorted(used)) or 'none'}; cuDNN refuses {cudnn.refused or 'nothing'}"


def more_than_2_to_31() -> str:
    """Addresses that 32 bits cannot count."""
    if is_emulated():
        return "not on the emulated device"
    x = genesis.zeros((1 << 31) + 5, dtype=genesis.uint8, device="cuda")
    x[-3:] = 7
    y = x + 1
    assert y[-4:].tolist() == [1, 8, 8, 8] and y[:2].tolist() == [1, 1]
    return "added"


class Transformer(nn.Module):
    def __init__(self, width: int = 32, layers: int = 2, words: int = 17) -> None:
        super().__init__()
        self.words, self.norm, self.head = nn.Embedding(words, width), nn.LayerNorm(width), nn.Linear(width, words)
        self.layers = nn.ModuleList(
            [nn.TransformerEncoderLayer(width, 4, 2 * width, 0.1, F.gelu, batch_first=True) for _ in range(layers)]
        )

    def forward(self, t: Any) -> Any:
        x = self.words(t)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def fifty_steps(steps: int = 50) -> str:
    """A compiled training, with a schedule, clipping and dropout, beside the CPU's eager one."""
    steps, losses, state = (6 if is_emulated() else steps), {}, ""
    for where in ("cpu", "cuda"):
        genesis.manual_seed(3)
        model = Transformer().to(where)
        optimizer = genesis.optim.AdamW(model.parameters(), lr=2e-3)
        schedule = genesis.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)

        def step(x: Any, y: Any, model: Any = model, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            return loss

        run = genesis.compile(step) if where == "cuda" else step
        losses[where] = []
        for _ in range(steps):
            x = genesis.randint(0, 17, (4, 12))
            losses[where].append(run(x.to(where), x.roll(1, 1).to(where)).item())
            schedule.step()
        if where == "cuda":
            state = str(run.explain()).partition("; ")[2].splitlines()[0] if run._recent else "not compiled"
    np.testing.assert_allclose(losses["cuda"], losses["cpu"], rtol=2e-3)
    return f"{steps} losses from {losses['cuda'][0]:.4f} to {losses['cuda'][-1]:.4f}; {state}"


def memory_runs_out() -> str:
    """What is kept is given back before there is said to be too little, and work goes on behind the error."""
    free, _ = cuda.mem_get_info()
    part = (512 << 20) if free > (4 << 30) else free // 16
    held = [genesis.empty(part, dtype=genesis.uint8, device="cuda") for _ in range(3)]
    del held
    retries = cuda.memory_stats()["num_alloc_retries"]
    try:
        genesis.empty(free * 2, dtype=genesis.uint8, device="cuda")
        raise AssertionError("there was more memory than there is")
    except cuda.OutOfMemoryError as error:
        said = str(error).splitlines()[0]
    assert cuda.memory_stats()["num_alloc_retries"] > retries and genesis.ones(3, device="cuda").sum().item() == 3
    return said


def streams_under_load() -> str:
    """Tensors go from stream to stream and are dropped: nobody's memory is written to by another."""
    sides, rounds = [cuda.Stream() for _ in range(3)], 8 if is_emulated() else 200
    for i in range(rounds):
        side = sides[i % 3]
        x = genesis.full((4096 + 64 * i,), float(i), device="cuda")
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            y = x * 2
            x.record_stream(side)
        del x
        z = genesis.full((4096 + 64 * i,), -1.0, device="cuda")
        cuda.current_stream().wait_stream(side)
        y.record_stream(cuda.current_stream())
        assert y.eq(2.0 * i).all().item() and z.eq(-1.0).all().item(), f"round {i}"
    return f"{rounds} rounds"


def threads() -> str:
    """Eight threads launch at once: each has buffers of its own for arguments."""
    wrong: list[str] = []

    def work(number: int) -> None:
        stream = cuda.Stream()
        with cuda.stream(stream):
            x = genesis.full((1000,), float(number), device="cuda")
            for _ in range(5 if is_emulated() else 200):
                x = x + number
            if not x.eq(number * (6.0 if is_emulated() else 201.0)).all().item():
                wrong.append(f"thread {number}")

    every = [threading.Thread(target=work, args=(i,)) for i in range(1, 9)]
    for thread in every:
        thread.start()
    for thread in every:
        thread.join()
    assert not wrong, wrong
    return "8 threads"


def graphs() -> str:
    """What programs record themselves, with random numbers that go on."""
    x = genesis.ones(1000, device="cuda")
    F.dropout(x, 0.5) * 2
    g = cuda.CUDAGraph()
    with cuda.graph(g):
        y = F.dropout(x, 0.5) * 2
    genesis.manual_seed(9)
    there = []
    for _ in range(3):
        g.replay()
        there.append(y.tolist())
    genesis.manual_seed(9)
    assert there == [(F.dropout(genesis.ones(1000), 0.5) * 2).tolist() for _ in range(3)]
    return "3 replays"


def other_libraries() -> str:
    """Memory that CuPy and this package share, in both directions, ordered by streams."""
    if is_emulated():
        return "not on the emulated device"
    import cupy

    x = genesis.arange(1000, dtype=genesis.float32, device="cuda") * 2
    theirs = cupy.from_dlpack(x)
    assert theirs.data.ptr == x.data_ptr() and float((theirs + 1).sum()) == 2 * 499500.0 + 1000
    theirs *= 3
    assert x[1:3].tolist() == [6.0, 12.0]
    mine = genesis.from_dlpack(cupy.arange(6, dtype=cupy.float64).reshape(2, 3))
    assert (mine + 1).tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    return f"CuPy {cupy.__version__}"


def one_rank() -> str:
    """NCCL with a single rank: collectives, and a model whose gradients are averaged."""
    if is_emulated():
        return "not on the emulated device"
    import genesis.distributed as dist

    dist.init_process_group("nccl")
    try:
        x = genesis.arange(1000, dtype=genesis.float32, device="cuda")
        dist.all_reduce(x)
        dist.broadcast(x, 0)
        assert x.sum().item() == 499500.0
        model = nn.parallel.DistributedDataParallel(nn.Linear(5, 3).to("cuda"))
        model(genesis.ones(2, 5, device="cuda")).sum().backward()
        assert model.module.weight.grad.tolist() == [[2.0] * 5] * 3
        return f"{dist.get_backend()} of {dist.get_world_size()}"
    finally:
        dist.destroy_process_group()


def scaled_losses() -> str:
    """A scale that an infinite gradient halves, and the step that is left out, without a wait for the host."""
    model = nn.Linear(3, 2).to("cuda")
    optimizer, scaler = genesis.optim.SGD(model.parameters(), lr=0.1), cuda.amp.GradScaler(init_scale=1024.0)
    before = model.weight.detach().clone()
    for factor in (float("inf"), 1.0):
        optimizer.zero_grad()
        with genesis.autocast("cuda", genesis.float16):
            loss = model(genesis.ones(4, 3, device="cuda")).float().sum() * factor
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        assert model.weight.equal(before) == (factor != 1.0)
    assert scaler.get_scale() == 512.0
    return "halved once"


def loaded_and_saved() -> str:
    """Batches through pinned memory, and tensors of the device on the disk."""
    data = genesis.utils.data.TensorDataset(genesis.arange(64, dtype=genesis.float32), genesis.arange(64))
    loader = genesis.utils.data.DataLoader(data, batch_size=16, pin_memory=True)
    total = 0.0
    for x, y in loader:
        assert x.is_pinned()
        total += (x.to("cuda", non_blocking=True) * y.to("cuda", non_blocking=True)).sum().item()
    assert total == sum([i * i for i in range(64)])
    file, x = io.BytesIO(), genesis.randn(33, 7, device="cuda")
    genesis.save({"x": x}, file)
    file.seek(0)
    there = genesis.load(file, map_location="cuda")["x"]
    file.seek(0)
    here = genesis.load(file, map_location="cpu")["x"]
    assert there.is_cuda and there.equal(x) and here.device.type == "cpu" and here.equal(x.cpu())
    assert "device='cuda:0'" in repr(x)
    return "4 batches"


def near(there: Any, here: Any, tolerance: float) -> None:
    got, expected = there.cpu().double().numpy(), here.double().numpy()
    worst = float(np.abs(got - expected).max(initial=0.0))
    assert worst <= tolerance * max(float(np.abs(expected).max(initial=0.0)), 1.0), f"differs by up to {worst}"


CHECKS: dict[str, Check] = {
    "odd shapes": odd_shapes,
    "more than 2^31 elements": more_than_2_to_31,
    "libraries": libraries,
    "fifty steps": fifty_steps,
    "graphs": graphs,
    "streams under load": streams_under_load,
    "threads": threads,
    "memory runs out": memory_runs_out,
    "other libraries": other_libraries,
    "one rank": one_rank,
    "scaled losses": scaled_losses,
    "loaded and saved": loaded_and_saved,
    "spectra of matrices": spectra_of_matrices,
}


def share_of_ops() -> float:
    return float(os.environ.get("GENESIS_GPU_OPS", "0.02" if is_emulated() else "1"))


def correctness(tried: Callable[[Check], dict[str, Any]], budget: float) -> dict[str, Any]:
    """All checks until the budget, in seconds, is used up; what was not reached is said."""
    begun, results, left = time.monotonic(), dict[str, Any](), 0
    for name, check in checks(share_of_ops()):
        if time.monotonic() - begun > budget:
            left += 1
            continue
        results[name] = tried(check)
    return {"checks": results, "not reached": left, "seconds": round(time.monotonic() - begun, 1)}
