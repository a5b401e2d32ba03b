"""What the native runtime costs (`genesis.kernels.native`), and products of matrices by its workers and by BLAS's.

    python benchmarks/phases.py [--seconds 0.5] [--write]

Times are the shortest of many that were taken in turn: of phases that compute nothing, and of products.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

import numpy as np
from page import write_section

import genesis
from genesis.base import blas, threads
from genesis.kernels.cpu import gemm
from genesis.kernels.llvm import native
from genesis.kernels.native import runtime

NOTHING = "define void @nothing(ptr %args, i64 %chunk) {\n  ret void\n}"
PHASES = 1000
SHAPES = [(64, 128, 784), (64, 256, 784), (512, 384, 128), (2048, 192, 768), (1024, 1024, 1024)]


def shortest(runs: list[Callable[[], object]], seconds: float, pause: float = 0.0) -> list[float]:
    """Microseconds of each, taken in turn; ``pause`` seconds before each, of sleep."""
    best, end = [float("inf")] * len(runs), time.perf_counter() + seconds * len(runs)
    while time.perf_counter() < end:
        for i, run in enumerate(runs):
            time.sleep(pause) if pause else run()
            begun = time.perf_counter()
            run()
            best[i] = min(best[i], time.perf_counter() - begun)
    return [x * 1e6 for x in best]


def phases(seconds: float) -> list[str]:
    nothing = native.address("nothing", NOTHING)
    tables = {chunks: runtime.Table([(nothing, 0, chunks)] * PHASES) for chunks in (1, 2, 8)}
    serial, two, eight = shortest([lambda t=t: runtime.run(t) for t in tables.values()], seconds)
    one, pair = (runtime.Table([(nothing, 0, chunks)]) for chunks in (1, 2))
    call, first, older = shortest(
        [lambda: runtime.run(one), lambda: runtime.run(pair), lambda: threads.in_parallel(lambda part: None, 2)],
        seconds,
    )
    asleep, older_asleep = shortest(
        [lambda: runtime.run(pair), lambda: threads.in_parallel(lambda part: None, 2)], seconds, 0.002
    )
    rows = {
        "a phase of one chunk, in a table of a thousand": f"{serial / PHASES * 1e3:.1f} ns",
        "a phase of two chunks, the worker awake": f"{two / PHASES * 1e3:.0f} ns",
        "a phase of eight chunks, the worker awake": f"{eight / PHASES * 1e3:.0f} ns",
        "`run` of one phase from Python": f"{call:.2f} us",
        "... of two chunks, the worker awake": f"{first:.2f} us",
        "... of two chunks, the worker asleep": f"{asleep:.1f} us",
        "slices of a Python function in two threads (`in_parallel`), awake or not": f"{older:.0f} and {older_asleep:.0f} us",
    }
    return ["| what | time |", "| --- | ---: |", *[f"| {name} | {value} |" for name, value in rows.items()]]


def products(seconds: float) -> list[str]:
    lines = ["| m, n, k | Genesis, 1 thread | BLAS, 1 thread | Genesis, 2 threads | BLAS, 2 threads of its own |",
             "| --- | ---: | ---: | ---: | ---: |"]  # fmt: skip
    for m, n, k in SHAPES:
        a, w = genesis.randn(m, k).numpy(), genesis.randn(n, k).numpy().T  # as in a linear layer
        times = []
        for count in (1, 2):
            genesis.set_num_threads(count)
            blas.set_blas_threads(count)
            times += shortest([lambda a=a, w=w: gemm.product(a, w)], seconds)
            times += shortest([lambda a=a, w=w: np.matmul(a, w)], seconds)
            time.sleep(0.1)  # for so long BLAS's threads wait actively
        lines.append(f"| {m}, {n}, {k} | {' | '.join(f'{t:.0f} us' for t in times)} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0.5, help="for each time")
    parser.add_argument("--write", action="store_true", help="into benchmarks/README.md")
    options = parser.parse_args()
    genesis.set_num_threads(2)
    table = "\n".join([*phases(options.seconds), "", *products(options.seconds)])
    print(table)
    if options.write:
        head = f"Written by `python benchmarks/phases.py --write`; {os.cpu_count()} processors."
        write_section("Phases and products", head + "\n\n" + table)


if __name__ == "__main__":
    main()
