"""Recurrent layers against PyTorch's: a forward and backward step, and a forward without recording.

    python benchmarks/recurrent.py [--threads 1] [--rounds 15] [--size 128] [--layers 2] [--steps 64]

Prints the least milliseconds of all rounds, both libraries in turn, and their ratio.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable

THREADS = sys.argv[sys.argv.index("--threads") + 1] if "--threads" in sys.argv else "1"
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = THREADS

import torch  # noqa: E402

import genesis  # noqa: E402


def step(layer: Callable, x: object) -> Callable[[], None]:
    return lambda: layer(x)[0].sum().backward()


def forward(lib: object, layer: Callable, x: object) -> Callable[[], None]:
    def run() -> None:
        with lib.no_grad():
            layer(x)

    return run


def least(ours: Callable, theirs: Callable, rounds: int) -> tuple[float, float]:
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds + 3):
        for function, found in zip((ours, theirs), times, strict=True):
            start = time.perf_counter()
            function()
            found.append(1000 * (time.perf_counter() - start))
    return min(times[0][3:]), min(times[1][3:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name, default in {"threads": 1, "rounds": 15, "size": 128, "layers": 2, "steps": 64}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    genesis.set_num_threads(options.threads), torch.set_num_threads(options.threads)
    print(f"{options.layers} layers of {options.size}, {options.steps} steps, threads: {options.threads}")
    print(f"{'':6}{'batch':>6}{'step':>9}{'PyTorch':>9}{'ratio':>7}{'forward':>10}{'PyTorch':>9}{'ratio':>7}")
    for kind in ("LSTM", "GRU", "RNN"):
        for batch in (1, 8, 32):
            cells = []
            layers = [getattr(lib.nn, kind)(options.size, options.size, options.layers) for lib in (genesis, torch)]
            inputs = [lib.randn(options.steps, batch, options.size) for lib in (genesis, torch)]
            for x in inputs:
                x.requires_grad_()
            both = list(zip((genesis, torch), layers, inputs, strict=True))
            for made in ([step(layer, x) for _, layer, x in both], [forward(*each) for each in both]):
                a, b = least(*made, options.rounds)
                cells.append(f"{a:9.2f}{b:9.2f}{a / b:7.2f}")
            print(f"{kind:6}{batch:6}{cells[0]} {cells[1]}")


if __name__ == "__main__":
    main()
