"""Compiled functions beside PyTorch's eager ones, in turn in one run.

    python benchmarks/compile.py [--only gpt mlp] [--rounds 15] [--write]

Every row: forward, loss, backward and AdamW, or what it says. Medians of runs taken in turn: time of the processors with
one thread, of the clock with two. Before each run there is a pause, in which the other's threads go to sleep, and calls
that are not timed, until its own are awake. The first call, and memory, are of fresh processes. So are recurrent layers, and there
the C library keeps what is freed: else it depends on what was freed before whether PyTorch gets its memory from the system
anew in every step, page by page, which takes longer than some of its work.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import gpt
import numpy as np
import torch
import transforms
from busy import busy_processes
from common import PAUSE
from page import write_section

import genesis
from genesis.kernels.llvm import loops, rates
from genesis.kernels.llvm.units import FLOAT32

RNG = np.random.default_rng(0)


def trained(lib: Any, model: Any, loss: Callable[[Any], Any]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A training step of a model whose ``loss`` takes no arguments."""
    optimizer = lib.optim.AdamW(model.parameters(), lr=1e-3)

    def step() -> Any:
        optimizer.zero_grad()
        value = loss(model)
        value.backward()
        optimizer.step()
        return value

    return step, ()


def layers(lib: Any, *sizes: int) -> Any:
    parts: list[Any] = []
    for a, b in pairwise(sizes):
        parts += [lib.nn.Linear(a, b), lib.nn.ReLU()]
    return lib.nn.Sequential(*parts[:-1])


def tiny(lib: Any) -> Any:
    x, y = (lib.tensor(RNG.normal(size=(32, n)).astype(np.float32)) for n in (2, 1))
    return trained(lib, layers(lib, 2, 16, 16, 1), lambda m: lib.nn.functional.mse_loss(m(x), y))


def mlp(lib: Any) -> Any:
    x, y = lib.tensor(RNG.normal(size=(64, 784)).astype(np.float32)), lib.tensor(RNG.integers(0, 10, 64))
    return trained(lib, layers(lib, 784, 256, 128, 10), lambda m: lib.nn.functional.cross_entropy(m(x), y))


def transformer(lib: Any, low: bool = False, dropout: float = 0.0) -> Any:
    x, y = (lib.tensor(RNG.integers(0, gpt.TOKENS, (gpt.BATCH, gpt.LENGTH))) for _ in range(2))

    def loss(m: Any) -> Any:
        with lib.autocast("cpu", dtype=lib.bfloat16, enabled=low):
            return lib.nn.functional.cross_entropy(m(x).reshape(-1, gpt.TOKENS), y.reshape(-1))

    return trained(lib, gpt.model(lib, dropout), loss)


def bfloat16(lib: Any) -> Any:
    return transformer(lib, low=True)


def dropped(lib: Any) -> Any:
    return transformer(lib, dropout=0.1)


def cnn(lib: Any) -> Any:
    nn = lib.nn

    def block(a: int, b: int) -> list[Any]:
        return [nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU()]

    model = nn.Sequential(
        *block(3, 32), *block(32, 64), nn.MaxPool2d(2), *block(64, 64), *block(64, 128), nn.MaxPool2d(2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10),
    )  # fmt: skip
    x, y = lib.tensor(RNG.normal(size=(32, 3, 32, 32)).astype(np.float32)), lib.tensor(RNG.integers(0, 10, 32))
    return trained(lib, model, lambda m: nn.functional.cross_entropy(m(x), y))


def lstm(lib: Any, kind: str = "LSTM") -> Any:
    class Model(lib.nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.layers, self.head = getattr(lib.nn, kind)(64, 128, 2), lib.nn.Linear(128, 10)

        def forward(self, x: Any) -> Any:
            return self.head(self.layers(x)[0][-1])

    x, y = lib.tensor(RNG.normal(size=(64, 32, 64)).astype(np.float32)), lib.tensor(RNG.integers(0, 10, 32))
    return trained(lib, Model(), lambda m: lib.nn.functional.cross_entropy(m(x), y))


def gru(lib: Any) -> Any:
    return lstm(lib, "GRU")


def rnn(lib: Any) -> Any:
    return lstm(lib, "RNN")


def decode(lib: Any) -> Any:
    """A token through the GPT: its keys and values are written into a cache of 128, which it looks at."""
    model, width = gpt.model(lib).eval(), gpt.WIDTH // gpt.HEADS
    shape = (1, gpt.HEADS, gpt.LENGTH, width)
    caches = [[lib.tensor(RNG.normal(size=shape).astype(np.float32)) for _ in range(2)] for _ in range(gpt.LAYERS)]
    f, token, position = lib.nn.functional, lib.tensor(RNG.integers(0, gpt.TOKENS, (1, 1))), lib.tensor([127])
    places = lib.arange(gpt.LENGTH)

    def step(token: Any, position: Any) -> Any:
        with lib.no_grad():
            x = model.tokens(token) + model.places(position)
            seen = (places <= position)[None]
            for layer, (keys, values) in zip(model.layers, caches, strict=True):
                parts = layer.qkv(layer.norms[0](x)).split(gpt.WIDTH, dim=2)
                q, k, v = (p.view(1, 1, gpt.HEADS, width).transpose(1, 2) for p in parts)
                keys.index_copy_(2, position, k)
                values.index_copy_(2, position, v)
                y = f.scaled_dot_product_attention(q, keys, values, attn_mask=seen)
                x = x + layer.out(y.transpose(1, 2).reshape(1, 1, gpt.WIDTH))
                x = x + layer.down(f.gelu(layer.up(layer.norms[1](x))))
            return model.head(model.norm(x))

    return step, (token, position)


def per_sample(lib: Any) -> Any:
    return transforms.per_sample(lib)[0], ()


def hessian(lib: Any) -> Any:
    return transforms.rosenbrock(lib), ()


class Case(NamedTuple):
    key: str
    title: str
    make: Callable[[Any], Any]
    bars: tuple[float, float]  # with one thread, with two
    calls: int  # of a round
    products: int = 0  # multiplications of matrices in a step, where a row is to say how long they take at the least
    read: int = 0  # bytes that every call reads, where a row is to say how long that takes


# each weight: forward, gradients of it and, but for those of the input, of what it is multiplied with
PRODUCTS_OF_LSTM = 64 * 32 * 4 * 128 * (2 * 64 + 3 * 128 + 2 * 3 * 128)

# weights of all layers and of the head, and the caches; of the embeddings it is two rows
READ_BY_DECODE = 4 * (gpt.LAYERS * (12 * gpt.WIDTH**2 + 2 * gpt.LENGTH * gpt.WIDTH) + gpt.WIDTH * gpt.TOKENS)

CASES = [
    Case("tiny", "MLP 2-16-16-1, batch 32", tiny, (0.03, 0.03), 500),
    Case("mlp", "MLP 784-256-128-10, batch 64", mlp, (0.45, 0.45), 20),
    Case("gpt", "GPT, 4 layers of width 192, 16 x 128 tokens", transformer, (0.70, 0.60), 1),
    Case("dropout", "the same with dropout of 0.1 behind embeddings, attention and MLPs", dropped, (0.70, 0.60), 1),
    Case("bfloat16", "the same GPT under autocast to bfloat16", bfloat16, (0.50, 0.50), 1),
    Case("cnn", "CNN, four convolutions with batch norm, 32 images of 32 x 32", cnn, (0.75, 0.75), 1),
    Case("lstm", "LSTM, 2 layers of 128, 64 steps of batch 32", lstm, (0.5, 0.5), 2, PRODUCTS_OF_LSTM),
    Case("gru", "GRU, 2 layers of 128, 64 steps of batch 32", gru, (0.5, 0.5), 2),
    Case("rnn", "RNN, 2 layers of 128, 64 steps of batch 32", rnn, (0.5, 0.5), 2),
    Case("decode", "the next token of the GPT, with a cache of 128", decode, (0.1, 0.1), 20, 0, READ_BY_DECODE),
    Case("samples", "gradients of 64 samples, MLP 784-256-128-10", per_sample, (0.5, 0.5), 1),
    Case("hessian", "Hessian of a 50-dimensional Rosenbrock function", hessian, (0.5, 0.5), 5),
]


def turns(runs: list[Callable[[], Any]], rounds: int, calls: int, clock: Callable[[], float]) -> list[float]:
    """Seconds of a call of each: medians."""
    times: list[list[float]] = [[] for _ in runs]
    for i in range(rounds + 2):
        for run, taken in zip(runs, times, strict=True):
            time.sleep(PAUSE)
            _awake(run)
            begun = clock()
            for _ in range(calls):
                run()
            taken += [(clock() - begun) / calls] if i > 1 else []
    return [statistics.median(taken) for taken in times]


def _awake(run: Callable[[], Any]) -> None:
    until = time.perf_counter() + PAUSE
    run()
    while time.perf_counter() < until:
        run()


def agree(case: Case) -> None:
    """Refuse to measure a compiled function that gives other numbers than the eager one."""
    results = []
    for compiled in (False, True):
        genesis.manual_seed(0)
        global RNG
        RNG = np.random.default_rng(0)
        f, args = case.make(genesis)
        f = genesis.compile(f) if compiled else f
        for _ in range(3):
            result = f(*args)
        first = next(iter(result.values())) if isinstance(result, dict) else result
        results.append(first.detach().numpy())
    np.testing.assert_allclose(*results, rtol=1e-3, atol=1e-4, err_msg=case.title)


Runs = list[Callable[[], Any]]


def both(case: Case) -> Runs:
    """A call of ours, compiled, and of PyTorch's."""
    runs: Runs = []
    for lib in (genesis, torch):
        lib.manual_seed(0)
        f, args = case.make(lib)
        runs.append(lambda f=genesis.compile(f) if lib is genesis else f, args=args: f(*args))  # type: ignore[misc]
    return runs


def use_threads(count: int) -> None:
    genesis.set_num_threads(count)
    torch.set_num_threads(count)


def rows(case: Case, rounds: int) -> list[str]:
    agree(case)
    runs, out = both(case), []
    for threads, clock in ((1, time.process_time), (2, time.perf_counter)):
        use_threads(threads)
        ours, theirs = turns(runs, rounds, case.calls, clock)
        out.append(_row(f"{case.title}, threads: {threads}", ours, theirs, case.bars[threads - 1]))
        if threads == 1:
            out += [_least(f"{case.title}, threads: 1, {what}", least, theirs) for what, least in floors(case)]
    return out


def floors(case: Case) -> Iterator[tuple[str, float]]:
    """What no call of one thread takes less than."""
    if case.products and loops.available():
        yield "its products at the processor's peak", 2e-9 * case.products / rates.rate(FLOAT32, 100_000, 30)
    if case.read:
        yield "its weights and caches, read one after the other", rates.reading(case.read, 300)


RECURRENT = ("lstm", "gru", "rnn")
KEEP = {"MALLOC_MMAP_THRESHOLD_": str(1 << 25), "MALLOC_TRIM_THRESHOLD_": str(1 << 30)}  # glibc's


def apart(case: Case, rounds: int) -> list[str]:
    """`rows` of a fresh process that keeps what is freed."""
    command = [sys.executable, os.path.abspath(__file__), "--here", "--only", case.key, "--rounds", str(rounds)]
    done = subprocess.run(command, env={**os.environ, **KEEP}, capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if line.startswith(f"| {case.title}")]


def beside(rounds: int) -> list[str]:
    """Training steps beside processes that take all of a processor each."""
    out = []
    use_threads(2)
    for case in [case for case in CASES if case.key in ("mlp", "gpt")]:
        runs = both(case)
        for busy in (1, 2):
            with busy_processes(busy):
                ours, theirs = turns(runs, rounds, case.calls, time.perf_counter)
            out.append(_row(f"{case.title}, busy processes beside: {busy}", ours, theirs, 1.0))
    return out


def _row(title: str, ours: float, theirs: float, bar: float) -> str:
    return (
        f"| {title} | {_time(ours)} | {_time(theirs)} | {ours / theirs:.3f} | {bar} | "
        f"{'met' if ours / theirs <= bar else 'not met'} |"
    )


def _least(title: str, least: float, theirs: float) -> str:
    return f"| {title} | {_time(least)} | {_time(theirs)} | {least / theirs:.3f} | | |"


def _time(seconds: float) -> str:
    return f"{seconds * 1e6:.1f} us" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


# ---- in fresh processes

FIRST = """
import sys, time
sys.path.insert(0, {folder!r})
import numpy as np, genesis, {benchmark}
genesis.set_num_threads(2)
f, args = compile.transformer(genesis)
begun = time.perf_counter()
f = genesis.compile(f)
float(f(*args))
print(time.perf_counter() - begun)
"""
PEAK = """
import sys
sys.path.insert(0, {folder!r})
import {lib} as lib, {benchmark}

def resident():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith({what!r}))

{threads}
f, args = compile.transformer(lib)
f = lib.compile(f) if {compiled} else f
before = resident()
for _ in range(4):
    float(f(*args))
with open("/proc/self/status") as status:
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
print(peak - before)
"""


def process(source: str, **variables: str) -> float:
    """What a process of its own prints last. It keeps compiled modules, as an installed package has them."""
    env = {**os.environ, **variables, "PYTHONDONTWRITEBYTECODE": ""}
    done = subprocess.run([sys.executable, "-c", source], env=env, capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def first_calls() -> list[str]:
    """The first call of the GPT's step, with nothing kept on disk, and with all."""
    with tempfile.TemporaryDirectory() as folder:
        source = FIRST.format(folder=os.path.dirname(os.path.abspath(__file__)), benchmark="compile")
        cold, *warm = [process(source, GENESIS_CACHE_DIR=folder) for _ in range(4)]
    kept = statistics.median(warm)
    return [
        f"| first call of the GPT's step, threads: 2 | {cold:.2f} s | | | 1.5 s | {'met' if cold <= 1.5 else 'not met'} |",
        f"| the same in another process | {kept:.2f} s | | | 0.2 s | {'met' if kept <= 0.2 else 'not met'} |",
    ]


def peaks() -> list[str]:
    """Memory that the GPT's step needs more than the model and what is imported, in MiB."""
    folder = os.path.dirname(os.path.abspath(__file__))
    sizes = [
        process(PEAK.format(folder=folder, benchmark="compile", lib=lib, what="VmRSS", threads="", compiled=compiled))
        / 1024
        for lib, compiled in (("genesis", True), ("torch", False))
    ]
    met = "met" if sizes[0] <= 0.6 * sizes[1] else "not met"
    ratio = sizes[0] / sizes[1]
    return [
        f"| memory of the GPT's step at the peak | {sizes[0]:.0f} MiB | {sizes[1]:.0f} MiB | {ratio:.2f} | 0.6 | {met} |"
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", nargs="+", default=[case.key for case in CASES] + ["busy", "first", "memory"])
    parser.add_argument("--here", action="store_true", help="recurrent layers in this process")
    parser.add_argument("--write", action="store_true", help="into benchmarks/README.md")
    options = parser.parse_args()
    warnings.filterwarnings("error", "compile: ")
    load = f"load of the machine before: {os.getloadavg()[0]:.1f}, of {os.cpu_count()} processors"
    print(load)
    table = ["| what | Genesis, compiled | PyTorch | ratio | at most | |", "| --- | ---: | ---: | ---: | ---: | --- |"]
    for case in CASES:
        if case.key in options.only:
            try:
                new = (apart if case.key in RECURRENT and not options.here else rows)(case, options.rounds)
            except UserWarning as reason:  # it would be measured as it is
                print(f"{case.title}: {reason}", file=sys.stderr)
                continue
            table += new
            print("\n".join(new), flush=True)
    for key, more in (("busy", lambda: beside(options.rounds)), ("first", first_calls), ("memory", peaks)):
        if key in options.only:
            table += more()
            print("\n".join(table[-2:]), flush=True)
    if options.write:
        head = (
            f"`python benchmarks/compile.py --write`: steps of training, or what is said; medians of {options.rounds} "
            f"rounds in turn, time of the processors with one thread, of the clock with two, each after a pause; {load}. Recurrent layers: in "
            "processes whose C library keeps freed memory, without which PyTorch takes longer, or not."
        )
        write_section("Compiled functions", head + "\n\n" + "\n".join(table))


if __name__ == "__main__":
    main()
