"""Products of matrices of float32, at the shapes of a GPT's and an MLP's training: ours, OpenBLAS's (NumPy) and MKL's
(PyTorch), in turn in one run.

    python benchmarks/matrices.py [--rounds 15] [--write]

A row is measured against the better of the two: medians over rounds of the ratio of times that were taken next to each
other; of the processors with one thread, of the clock with two.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from page import write_section

import genesis
from genesis.base import blas

TURN = 0.02  # seconds of products in a turn, at least


class Shape(NamedTuple):
    """Matrices of m x k and k x n; which of them lie in memory by columns, as ``x.T``."""

    title: str
    m: int
    n: int
    k: int
    turned: tuple[bool, bool]


SHAPES = [
    Shape("queries, keys, values: x W^T", 2048, 576, 192, (False, True)),
    Shape("up: x W^T", 2048, 768, 192, (False, True)),
    Shape("down: x W^T", 2048, 192, 768, (False, True)),
    Shape("gradient of up's input: g W", 2048, 192, 768, (False, False)),
    Shape("gradient of down's input: g W", 2048, 768, 192, (False, False)),
    Shape("gradient of up's weight: g^T x", 768, 192, 2048, (True, False)),
    Shape("gradient of down's weight: g^T x", 192, 768, 2048, (True, False)),
    Shape("first layer of the MLP: x W^T", 64, 256, 784, (False, True)),
]


def operands(shape: Shape) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    sizes = (shape.m, shape.k), (shape.k, shape.n)
    made = [rng.normal(size=size[::-1] if t else size) for size, t in zip(sizes, shape.turned, strict=True)]
    arrays = [x.astype(np.float32) for x in made]
    return [x.T if t else x for x, t in zip(arrays, shape.turned, strict=True)]


def products(shape: Shape) -> list[Callable[[], Any]]:
    """Ours, OpenBLAS's and MKL's, each into memory that it had before, or takes anew as its library does."""
    a, b = operands(shape)
    pairs = [(lib.from_numpy(a), lib.from_numpy(b)) for lib in (genesis, torch)]
    expected = a.astype(np.float64) @ b.astype(np.float64)
    runs: list[Callable[[], Any]] = [lambda: pairs[0][0] @ pairs[0][1], lambda: np.matmul(a, b), lambda: pairs[1][0] @ pairs[1][1]]  # fmt: skip
    for run in runs:
        np.testing.assert_allclose(np.asarray(run()), expected, rtol=1e-3, atol=1e-3 * shape.k**0.5)
    return runs


def settle() -> None:
    """Wait until the workers of the library before no longer wait actively: OpenBLAS's do that for more than 20 ms."""
    for _ in range(100):
        used = time.process_time()
        time.sleep(0.005)
        if time.process_time() - used < 0.001:
            return


def times(runs: list[Callable[[], Any]], rounds: int, clock: Callable[[], float]) -> list[list[float]]:
    """Seconds of a product of each, in every round."""
    taken: list[list[float]] = [[] for _ in runs]
    begun = time.perf_counter()
    runs[0]()
    calls = max(1, int(TURN / (time.perf_counter() - begun)))
    for i in range(rounds + 1):
        for run, of in zip(runs, taken, strict=True):
            settle()
            run()
            start = clock()
            for _ in range(calls):
                run()
            of += [(clock() - start) / calls] if i else []
    return taken


def row(shape: Shape, threads: int, rounds: int) -> str:
    genesis.set_num_threads(threads)
    blas.set_blas_threads(threads)
    torch.set_num_threads(threads)
    clock = time.process_time if threads == 1 else time.perf_counter
    ours, *others = times(products(shape), rounds, clock)
    ratio = max([statistics.median([a / b for a, b in zip(ours, one, strict=True)]) for one in others])
    work = 2e-9 * shape.m * shape.n * shape.k
    speeds = [f"{work / statistics.median(x):.0f}" for x in (ours, *others)]
    title = f"{shape.title}, {shape.m} x {shape.n} x {shape.k}, threads: {threads}"
    return f"| {title} | {' | '.join(speeds)} | {ratio:.2f} | 1.0 | {'met' if ratio <= 1.0 else 'not met'} |"


def table(rounds: int) -> list[str]:
    lines = [
        "| product | Genesis, GFLOP/s | OpenBLAS | MKL | time, to the better | at most | |",
        "| --- | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for threads in (1, 2):
        for shape in SHAPES:
            lines.append(row(shape, threads, rounds))
            print(lines[-1], flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--write", action="store_true", help="into benchmarks/README.md")
    options = parser.parse_args()
    lines = table(options.rounds)
    if options.write:
        head = f"`python benchmarks/matrices.py --write`: float32; medians of {options.rounds} rounds in turn, time of the processors with one thread, of the clock with two."
        write_section("Products of matrices", head + "\n\n" + "\n".join(lines))


if __name__ == "__main__":
    main()
