"""What a training step takes beside other busy processes: with the threads that Genesis chooses, with one, with BLAS's
own.

    python benchmarks/busy.py [--busy 0 1 2] [--rounds 9] [--no-demo] [--full-demo] [--write]

For each number of busy processes, which the script starts and ends, each way of using threads has its turn in every
round; the ratios are medians over the rounds of times that were taken next to each other. The bars: at most 1.3 times
the time with one thread in the same situation, and on a quiet machine no longer than with BLAS's own threads, as NumPy
comes.
"""

from __future__ import annotations

import argparse
import itertools
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from common import Block
from page import write_section

import genesis
from genesis import nn
from genesis.base import blas
from genesis.nn import functional as F

SECONDS = 0.3  # of steps in a turn
# before it: for so long OpenBLAS's threads still wait actively after the last product, which would take the next turn's
# time
PAUSE = 0.1
WAYS = ("genesis", "one thread", "BLAS's own")


def mlp(*sizes: int, batch: int) -> Callable[[], None]:
    model = nn.Sequential(*[m for a, b in itertools.pairwise(sizes) for m in (nn.Linear(a, b), nn.ReLU())][:-1])
    x, y = genesis.randn(batch, sizes[0]), genesis.arange(batch) % sizes[-1]
    return training(model, lambda: F.cross_entropy(model(x), y))


def gpt(
    width: int = 128, heads: int = 4, layers: int = 4, length: int = 64, batch: int = 8, letters: int = 64
) -> Callable[[], None]:
    embedding, head = nn.Embedding(letters, width), nn.Linear(width, letters)
    model = nn.Sequential(embedding, *[Block(width, heads) for _ in range(layers)], nn.LayerNorm(width), head)
    x = genesis.randint(letters, (batch, length))
    return training(model, lambda: F.cross_entropy(model(x).reshape(-1, letters), x.roll(-1, 1).reshape(-1)))


def training(model: nn.Module, loss_of: Callable[[], genesis.Tensor]) -> Callable[[], None]:
    optimizer = genesis.optim.AdamW(model.parameters(), lr=1e-4)

    def step() -> None:
        optimizer.zero_grad()
        loss_of().backward()
        optimizer.step()

    return step


def product(n: int) -> Callable[[], object]:
    x = genesis.randn(n, n)
    return lambda: x @ x


STEPS: list[tuple[str, Callable[[], Callable[[], object]]]] = [
    ("MLP 2-16-16-2, batch 32", lambda: mlp(2, 16, 16, 2, batch=32)),
    ("MLP 784-256-128-10, batch 64", lambda: mlp(784, 256, 128, 10, batch=64)),
    ("GPT, width 128, 4 layers, 8 x 64 letters", gpt),
    ("product of two matrices 1024 x 1024", lambda: product(1024)),
]


@contextmanager
def threads(way: str) -> Iterator[None]:
    """Inside, one of `WAYS`."""
    number, large = genesis.get_num_threads(), blas._large
    try:
        if way == "one thread":
            genesis.set_num_threads(1)
            with blas.one_thread():
                yield
        elif way == "genesis":
            yield
        else:
            blas._large = np.matmul
            yield
    finally:
        blas._large = large
        genesis.set_num_threads(number)


def turn(step: Callable[[], object]) -> float:
    """Milliseconds of a step."""
    time.sleep(PAUSE)
    count, begun = 0, time.perf_counter()
    while time.perf_counter() - begun < SECONDS:
        step()
        count += 1
    return (time.perf_counter() - begun) / count * 1e3


def demo(way: str, full: bool) -> float:
    """Seconds of the demo, in a process of its own."""
    code = "import sys; sys.path[:0] = [sys.argv[1]]; import busy\nfrom genesis.cli import main\nwith busy.threads(sys.argv[2]): main(sys.argv[3:])"
    with tempfile.TemporaryDirectory() as folder:
        options = ["demo", "--out", folder, *([] if full else ["--fast"])]
        begun = time.perf_counter()
        subprocess.run(
            [sys.executable, "-c", code, str(Path(__file__).parent), way, *options],
            stdout=subprocess.DEVNULL,
            check=False,
        )
        return time.perf_counter() - begun


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        time.sleep(0.5 * bool(count))
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def measure(run: Callable[[str], float], rounds: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {way: [] for way in WAYS}
    for way in WAYS:
        run(way)
    for i in range(rounds):
        for way in WAYS[:: 1 if i % 2 else -1]:
            times[way].append(run(way))
    return times


def row(name: str, busy: int, unit: str, times: dict[str, list[float]]) -> str:
    middle = [statistics.median(times[way]) for way in WAYS]
    against = [statistics.median(a / b for a, b in zip(times["genesis"], times[way], strict=True)) for way in WAYS[1:]]
    ratio, bar = (against[0], 1.3) if busy else (against[1], 1.0)
    verdict = "met" if ratio <= bar + 0.03 * (not busy) else "not met"
    return f"| {name} | {busy} | {' | '.join(f'{m:.2f} {unit}' for m in middle)} | {against[0]:.2f} | {against[1]:.2f} | {'at most 1.3 x one thread' if busy else 'at most BLAS own'} | {verdict} |"


def table(options: argparse.Namespace) -> str:
    lines = [
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} processors, {genesis.get_num_threads()} "
        f"threads, {blas.blas_threads()} of BLAS, NumPy {np.__version__}",
        "",
        f"| what | busy processes beside | {' | '.join(WAYS)} | to one thread | to BLAS's own | bar | |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    print("\n".join(lines), flush=True)
    for busy in options.busy:
        with busy_processes(busy):
            for name, make in STEPS:
                step = make()

                def run(way: str, step: Callable[[], object] = step) -> float:
                    with threads(way):
                        return turn(step)

                lines.append(row(name, busy, "ms", measure(run, options.rounds)))
                print(lines[-1], flush=True)
            if options.demo:
                lines.append(
                    row(
                        "the demo" + ("" if options.full_demo else ", --fast"),
                        busy,
                        "s",
                        measure(lambda way: demo(way, options.full_demo), max(1, options.rounds // 4)),
                    )
                )
                print(lines[-1], flush=True)
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--busy", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--no-demo", dest="demo", action="store_false")
    parser.add_argument("--full-demo", action="store_true", help="the whole demo instead of --fast")
    parser.add_argument("--write", action="store_true", help="put the table into benchmarks/README.md")
    options = parser.parse_args()
    found = table(options)
    if options.write:
        write_section("Beside busy processes", "Written by `python benchmarks/busy.py --write`. " + found)


if __name__ == "__main__":
    main()
