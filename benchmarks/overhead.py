"""What an operation costs, against PyTorch in the same run: ratios of medians, written to benchmarks/README.md with
--write.

python benchmarks/overhead.py [--write]
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import resource
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "2")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "2")

import itertools

import numpy as np
import torch
from page import write_head

import genesis

ROUNDS = 15
# before each turn: for so long threads of a BLAS or of OpenMP may still wait actively after the other's last product
PAUSE = 0.05


def median_times(a: Callable[[], object], b: Callable[[], object], number: int) -> tuple[float, float, float]:
    """Microseconds of both, taken in turn, and the median of the ratios of neighbouring runs."""
    for f in (a, b):
        for _ in range(max(3, number // 10)):
            f()
    pairs = []
    for _ in range(ROUNDS):
        times = []
        for f in (a, b):
            time.sleep(PAUSE)
            begun = time.perf_counter()
            for _ in range(number):
                f()
            times.append((time.perf_counter() - begun) / number * 1e6)
        pairs.append(times)
    return (
        statistics.median(p[0] for p in pairs),
        statistics.median(p[1] for p in pairs),
        statistics.median(p[0] / p[1] for p in pairs),
    )


def tensors(lib, *shapes, grad=False):
    rng = np.random.default_rng(0)
    return [lib.tensor(rng.normal(size=s).astype(np.float32), requires_grad=grad) for s in shapes]


def add(lib, grad):
    (a,), (b,) = tensors(lib, 4, grad=grad), tensors(lib, 4)
    return lambda: a + b


def ten_products(lib):
    (x,), (w,) = tensors(lib, 4, grad=True), tensors(lib, 4)

    def run():
        x.grad = None
        y = x
        for _ in range(10):
            y = y * w
        y.sum().backward()

    return run


def ten_functions(lib):
    function = lib.Function if lib is genesis else lib.autograd.Function

    class Mul(function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            return g * b, g * a

    (x,), (w,) = tensors(lib, 4, grad=True), tensors(lib, 4)

    def run():
        x.grad = None
        y = x
        for _ in range(10):
            y = Mul.apply(y, w)
        y.sum().backward()

    return run


def training_step(lib, sizes, batch, classes):
    lib.manual_seed(0)
    nn = lib.nn
    layers = [m for a, b in itertools.pairwise(sizes) for m in (nn.Linear(a, b), nn.ReLU())][:-1]
    model = nn.Sequential(*layers)
    optimizer = lib.optim.AdamW(model.parameters(), lr=1e-3)
    (x,) = tensors(lib, (batch, sizes[0]))
    y = lib.tensor(np.arange(batch) % classes) if classes else tensors(lib, (batch, 1))[0]
    loss_fn = nn.CrossEntropyLoss() if classes else nn.MSELoss()

    def run():
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return run


def wide_function(lib):
    function = lib.Function if lib is genesis else lib.autograd.Function

    class Wide(function):
        @staticmethod
        def forward(ctx, *tensors):
            ctx.save_for_backward(*tensors)
            return tensors[0] + tensors[1], tensors[2] + tensors[3]

        @staticmethod
        def backward(ctx, g, h):
            ctx.saved_tensors  # noqa: B018
            return (g,) * 7 + (h,) * 6

    inputs = [x for (x,) in (tensors(lib, 4, grad=True) for _ in range(13))]

    def run():
        a, b = Wide.apply(*inputs)
        (a * b).sum().backward()
        for x in inputs:
            x.grad = None

    return run


def deep_mlp(lib, layers, width):
    lib.manual_seed(0)
    nn = lib.nn
    return nn.Sequential(*[m for _ in range(layers) for m in (nn.Linear(width, width), nn.ReLU())])


def checkpointed(lib, batch=64):
    model = deep_mlp(lib, 12, 128)
    if lib is genesis:
        from genesis.utils.checkpoint import checkpoint
    else:
        from torch.utils.checkpoint import checkpoint
    blocks = [model[i : i + 6] for i in range(0, 24, 6)]
    (x,) = tensors(lib, (batch, 128), grad=True)

    def run():
        y = x
        for block in blocks:
            y = checkpoint(block, y, use_reentrant=False)
        y.sum().backward()
        model.zero_grad()
        x.grad = None

    return run


def hooked(lib):
    model = deep_mlp(lib, 50, 16)
    seen = []
    for p in model.parameters():
        p.register_hook(seen.append)
    (x,) = tensors(lib, (8, 16))

    def run():
        seen.clear()
        model.zero_grad()
        model(x).sum().backward()
        assert len(seen) == 100

    return run


CASES = [
    ("4-element add, no gradient", 0.85, lambda lib: add(lib, False), 20000),
    ("4-element add, gradient recorded", 0.85, lambda lib: add(lib, True), 20000),
    ("ten products of 4 elements and a sum, forward and backward", 0.7, ten_products, 1500),
    ("the same through ten custom Functions that save two tensors", 0.4, ten_functions, 1000),
    ("a custom Function of 13 inputs and 2 outputs, forward and backward", 0.5, wide_function, 1000),
    ("checkpoint over a 12-layer MLP of width 128, batch 64", 0.8, checkpointed, 20),
    ("hooks on every parameter of a 50-layer MLP, forward and backward", 0.8, hooked, 20),
    (
        "MLP 2-16-16-1, batch 32: forward, loss, backward, AdamW",
        0.8,
        lambda lib: training_step(lib, (2, 16, 16, 1), 32, 0),
        300,
    ),
    ("MLP 784-256-128-10, batch 64: the same", 1.3, lambda lib: training_step(lib, (784, 256, 128, 10), 64, 10), 40),
]


def million() -> tuple[float, float]:
    """Seconds of a backward through a million additions, and bytes that a node takes."""
    gc.collect()
    before = _resident()
    x = genesis.ones(1, requires_grad=True)
    y = x
    for _ in range(1_000_000):
        y = y + 1
    bytes_each = (_resident() - before) / 1_000_000
    begun = time.perf_counter()
    y.backward()
    seconds = time.perf_counter() - begun
    assert x.grad.tolist() == [1.0]
    return seconds, bytes_each


def flat_memory(steps: int = 10_000) -> int:
    """Objects left behind by training steps with the garbage collector off."""
    step = training_step(genesis, (2, 16, 16, 1), 32, 0)
    gc.collect()
    gc.disable()
    try:
        for _ in range(100):
            step()
        before = len(gc.get_objects())
        for _ in range(steps):
            step()
        return len(gc.get_objects()) - before
    finally:
        gc.enable()


def checkpoint_memory(name: str) -> float:
    """MiB that forward and backward of the checkpointed MLP need at their peak (batch 20000), in a process of its own."""
    import subprocess

    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import overhead, importlib; lib = "
        "importlib.import_module(sys.argv[2]); run = overhead.checkpointed(lib, 20000);"
        "overhead.checkpointed(lib, 8)(); before = overhead._resident(); run(); print((overhead._peak() - before) / "
        "2**20)"
    )
    here = str(Path(__file__).parent)
    runs = [
        float(
            subprocess.run([sys.executable, "-c", code, here, name], capture_output=True, text=True, check=True).stdout
        )
        for _ in range(3)
    ]
    return statistics.median(runs)


def import_cost() -> float:
    """Milliseconds that importing Genesis adds to importing NumPy, the median of seven processes."""
    import subprocess

    code = "import time, numpy; t = time.perf_counter(); import genesis; print(time.perf_counter() - t)"
    # installed packages have their bytecode
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    times = [
        float(
            subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=clean).stdout
        )
        for _ in range(8)
    ][1:]
    return statistics.median(times) * 1e3


def _resident() -> int:
    path = Path("/proc/self/statm")
    if path.exists():
        return int(path.read_text().split()[1]) * resource.getpagesize()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _peak() -> int:
    """The most memory this process had; Linux hands the figure of `resource` on from parents, its own is in /proc."""
    path = Path("/proc/self/status")
    if path.exists():
        return int(path.read_text().partition("VmHWM:")[2].split()[0]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def table() -> str:
    rows = ["| what | Genesis | PyTorch | ratio | at most | |", "| --- | ---: | ---: | ---: | ---: | --- |"]
    for name, most, make, number in CASES:
        mine, theirs, ratio = median_times(make(genesis), make(torch), number)
        rows.append(
            f"| {name} | {mine:.2f} us | {theirs:.2f} us | {ratio:.2f} | {most} | "
            f"{'met' if ratio <= most else 'not met'} |"
        )
        print(rows[-1], flush=True)
    seconds, size = million()
    rows.append(
        f"| one million chained additions, backward | {seconds:.1f} s, {size:.0f} bytes a node | | | 1000 bytes | "
        f"{'met' if size < 1000 else 'not met'} |"
    )
    mine, theirs = checkpoint_memory("genesis"), checkpoint_memory("torch")
    rows.append(
        f"| the same checkpoint, batch 20,000: memory at the peak | {mine:.0f} MiB | {theirs:.0f} MiB | "
        f"{mine / theirs:.2f} | 1.0 | {'met' if mine <= theirs else 'not met'} |"
    )
    left = flat_memory()
    rows.append(
        f"| 10,000 training steps, collector off | {left} objects left | | | flat | "
        f"{'met' if left < 100 else 'not met'} |"
    )
    cost = import_cost()
    rows.append(f"| import, on top of NumPy's | {cost:.0f} ms | | | 100 ms | {'met' if cost < 100 else 'not met'} |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write benchmarks/README.md")
    options = parser.parse_args()
    torch.set_num_threads(2)
    text = table()
    head = (
        "# Benchmarks\n\nWritten by `python benchmarks/overhead.py --write`: medians of runs taken in turn, float32, "
        "2 threads. Absolute times vary from machine to "
        "machine and from hour to hour; the ratios hold better.\n\n"
        f"Python {platform.python_version()}, NumPy {np.__version__}, PyTorch {torch.__version__}, "
        f"{platform.machine()}, {os.cpu_count()} cores.\n\n"
    )
    print(text)
    if options.write:
        write_head(head + text)


if __name__ == "__main__":
    main()
