"""What loading costs: Python augmentation with 0, 1 and 2 workers, large batches, small examples, against PyTorch.

Needs ``pip install -e . torch``. What is compared runs in turn, in one process; every run is one whole epoch, the start
of its workers included.

    python benchmarks/loader.py [--write]

With --write the table is put in benchmarks/README.md, in place of an older one.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import torch
from page import write_section

import genesis

ROUNDS = 5
IMAGE = np.random.default_rng(0).integers(0, 256, (3, 32, 32), dtype=np.uint8)
LARGE = np.random.default_rng(0).random((3, 224, 224), dtype=np.float32)


class Augmented:
    """A picture, and about a millisecond of pure Python for its augmentation, as a loop over its pixels would be."""

    def __init__(self, count: int = 512) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, i: int) -> Any:
        state = i
        for _ in range(12000):
            state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        return np.roll(IMAGE, state % 32, 2).astype(np.float32), i % 10


class Pictures:
    """Large pictures that cost little: what counts is how batches travel."""

    def __len__(self) -> int:
        return 512

    def __getitem__(self, i: int) -> Any:
        return LARGE + np.float32(i), i % 10


class Rows:
    """Small examples: what counts is the loader itself."""

    def __init__(self, library: Any) -> None:
        self.x, self.y = library.zeros(20000, 8), list(range(20000))

    def __len__(self) -> int:
        return 20000

    def __getitem__(self, i: int) -> Any:
        return self.x[i], self.y[i]


def epoch(loader: Any) -> Callable[[], None]:
    def run() -> None:
        for _ in loader:
            pass

    return run


def seconds(*functions: Callable[[], object]) -> list[float]:
    """Medians of the times of several functions, taken in turn."""
    rounds = []
    for _ in range(ROUNDS):
        times = []
        for f in functions:
            begun = time.perf_counter()
            f()
            times.append(time.perf_counter() - begun)
        rounds.append(times)
    return [statistics.median(column) for column in zip(*rounds, strict=True)]


def rows() -> list[str]:
    found = [
        "| an epoch of | workers | Genesis | PyTorch | ratio | Genesis, threads |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    mine, theirs = genesis.data.DataLoader, torch.utils.data.DataLoader
    cases = [
        ("512 pictures with 1 ms of Python each, batches of 32", lambda lib: Augmented(), 32, (0, 1, 2)),
        ("512 float32 pictures of 3x224x224, batches of 32", lambda lib: Pictures(), 32, (0, 1, 2)),
        ("20,000 rows of 8 numbers, batches of 64", Rows, 64, (0, 2)),
    ]
    for what, make, size, counts in cases:
        for count in counts:
            loaders = [mine(make(genesis), size, num_workers=count), theirs(make(torch), size, num_workers=count)]
            if count:
                loaders.append(mine(make(genesis), size, num_workers=count, multiprocessing_context="thread"))
            a, b, *threads = seconds(*map(epoch, loaders))
            found.append(
                f"| {what} | {count} | {a:.2f} s | {b:.2f} s | {a / b:.2f} | "
                f"{f'{threads[0]:.2f} s' if threads else ''} |"
            )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    write = parser.parse_args().write
    table = "\n".join(rows())
    print(table)
    if write:
        write_section(
            "Loading",
            "`python benchmarks/loader.py --write`: medians of five epochs, taken in turn, one thread for BLAS.\n\n"
            + table,
        )


if __name__ == "__main__":
    main()
