"""What transforms cost: per-sample gradients, Hessians and traces, against PyTorch (and a loop) in the same run.

Needs ``pip install -e ".[jit]" torch``. What is compared runs in turn; the loops run in five fresh processes.

    python benchmarks/transforms.py [--write]

With --write the table is put in benchmarks/README.md, in place of an older one.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "2")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "2")

import numpy as np
import torch
from page import write_section

import genesis
from genesis import jit, nn

ROUNDS = 9
# A loop that keeps 64 gradients may give memory back to the system and fetch it again, which takes as long as its work.
# Not so with these:
KEEPING = {"MALLOC_TRIM_THRESHOLD_": str(1 << 30), "MALLOC_MMAP_THRESHOLD_": str(1 << 30)}
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(64, 784)).astype(np.float32), RNG.integers(0, 10, 64)


def milliseconds(*functions: Callable[[], object]) -> list[list[float]]:
    """Times of several functions, taken in turn."""
    for f in functions:
        f()
        f()
    rounds = []
    for _ in range(ROUNDS):
        times = []
        for f in functions:
            begun = time.perf_counter()
            f()
            times.append((time.perf_counter() - begun) * 1e3)
        rounds.append(times)
    return rounds


def ratio(rounds: list[list[float]], a: int, b: int) -> float:
    return statistics.median(r[a] / r[b] for r in rounds)


def median(rounds: list[list[float]], i: int) -> float:
    return statistics.median(r[i] for r in rounds)


def per_sample(lib):
    model = lib.nn.Sequential(
        lib.nn.Linear(784, 256), lib.nn.ReLU(), lib.nn.Linear(256, 128), lib.nn.ReLU(), lib.nn.Linear(128, 10)
    )
    params = {name: p.detach() for name, p in model.named_parameters()}
    x, y = lib.tensor(X), lib.tensor(Y)

    def loss(p, a, b):
        return lib.nn.functional.cross_entropy(lib.func.functional_call(model, p, (a.unsqueeze(0),)), b.unsqueeze(0))

    one = lib.func.grad(loss)
    batch = lib.vmap(one, in_dims=(None, 0, 0))

    def loop():
        return [one(params, x[i], y[i]) for i in range(64)]

    def stacked():
        samples = loop()
        return {name: lib.stack([g[name] for g in samples]) for name in params}

    return (lambda: batch(params, x, y)), loop, stacked


def rosenbrock(lib):
    x = lib.linspace(-1, 1, 50)
    find = lib.func.hessian(lambda v: (100 * (v[1:] - v[:-1] ** 2) ** 2 + (1 - v[:-1]) ** 2).sum())
    return lambda: find(x)


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.attention = nn.MultiheadAttention(d, heads, batch_first=True)
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Dropout(0.1), nn.Linear(4 * d, d))

    def forward(self, x):
        y = self.norm1(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


def transformer_step():
    model = nn.Sequential(
        nn.Embedding(100, 64), *[Block(64, 4) for _ in range(4)], nn.LayerNorm(64), nn.Linear(64, 100)
    )
    optimizer = genesis.optim.AdamW(model.parameters())

    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x).reshape(-1, 100), y.reshape(-1))
        loss.backward()
        optimizer.step()
        return loss

    x, y = genesis.randint(0, 100, (4, 16)), genesis.randint(0, 100, (4, 16))
    step(x, y)
    return lambda: jit.trace(step, x, y)


def rows() -> list[str]:
    (mine, *_), (theirs, *_) = per_sample(genesis), per_sample(torch)
    found = ["| what | Genesis | peer | ratio | bar | |", "| --- | ---: | ---: | ---: | ---: | --- |"]

    def row(what: str, a: str, b: str, value: float, bar: str, met: bool) -> None:
        found.append(f"| {what} | {a} | {b} | {value:.2f} | {bar} | {'' if not bar else 'met' if met else 'not met'} |")

    times = milliseconds(mine, theirs)
    r = ratio(times, 0, 1)
    row(
        "gradient for each of 64 samples, MLP 784-256-128-10: `vmap`, PyTorch's `vmap`",
        f"{median(times, 0):.1f} ms",
        f"{median(times, 1):.1f} ms",
        r,
        "at most 1.0",
        r <= 1,
    )
    for what, lib, bar, more in (
        ("", "genesis", "at least 10", {}),
        (", where the C library keeps freed memory", "genesis", "", KEEPING),
        (", PyTorch", "torch", "", {}),
    ):
        batch, loop, stacked, alone, same = in_fresh_processes(lib, more)
        row(
            f"`vmap`, a Python loop and `stack`, which gives the same{what}",
            f"{batch:.1f} ms",
            f"{stacked:.1f} ms",
            same,
            bar,
            same >= 10,
        )
        row(
            f"`vmap`, a Python loop alone, which gives 64 results{what}",
            f"{batch:.1f} ms",
            f"{loop:.1f} ms",
            alone,
            "",
            True,
        )
    hessians = milliseconds(*[(lambda f=f: [f() for _ in range(5)]) for f in (rosenbrock(genesis), rosenbrock(torch))])
    r = ratio(hessians, 0, 1)
    row(
        "Hessian of a 50-dimensional Rosenbrock function, PyTorch's",
        f"{median(hessians, 0) / 5:.2f} ms",
        f"{median(hessians, 1) / 5:.2f} ms",
        r,
        "at most 0.7",
        r <= 0.7,
    )
    traces = milliseconds(transformer_step())
    t = median(traces, 0)
    found.append(
        f"| trace of a training step of a 4-layer transformer | {t:.0f} ms | | | at most 300 ms | "
        f"{'met' if t <= 300 else 'not met'} |"
    )
    return found


def in_fresh_processes(lib: str, more: dict[str, str]) -> list[float]:
    """The medians of what `loops` prints in five processes: where memory lies differs from one to the other."""
    command = [sys.executable, __file__, "--loops", lib]
    printed = [
        subprocess.run(command, env=os.environ | more, capture_output=True, text=True, check=True).stdout.split()
        for _ in range(5)
    ]
    return [statistics.median(float(n) for n in column) for column in zip(*printed, strict=True)]


def loops(lib: str) -> None:
    """Milliseconds of `vmap`, of the loop and of the loop with `stack`, and how often the first goes into the others."""
    times = milliseconds(*per_sample({"genesis": genesis, "torch": torch}[lib]))
    print(*[median(times, i) for i in range(3)], ratio(times, 1, 0), ratio(times, 2, 0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--loops", metavar="LIBRARY", help="only the loops of one library, for the script itself")
    if library := parser.parse_args().loops:
        return loops(library)
    table = "\n".join(rows())
    print(table)
    if parser.parse_args().write:
        note = (
            "`python benchmarks/transforms.py --write`, with llvmlite. What is compared in one row ran in turns; the "
            "loops in five fresh processes, of which these are the "
            "medians, once more with the C library told to keep freed memory (MALLOC_TRIM_THRESHOLD_, "
            "MALLOC_MMAP_THRESHOLD_)."
        )
        write_section("Transforms", note + "\n\n" + table)


if __name__ == "__main__":
    main()
