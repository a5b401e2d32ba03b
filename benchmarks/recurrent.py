"""Recurrent layers against PyTorch's: a training step, forward and backward alone, and a forward without recording.

    python benchmarks/recurrent.py [--threads 1 2] [--rounds 15] [--size 128] [--layers 2] [--steps 64]
        [--kinds LSTM] [--what "training step"] [--write]

Prints the least milliseconds of all rounds, both libraries in turn, and their ratio. Before each turn the other's
threads get time to go to sleep, and a call that is not timed comes first. A training step is forward, cross entropy of
the last step, backward and AdamW.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import page
import torch
from common import in_turn

import genesis

BATCHES = (1, 8, 32)


def inputs(lib: Any, kind: str, options: Any, batch: int) -> tuple[Any, Any]:
    layer = getattr(lib.nn, kind)(options.size, options.size, options.layers)
    rng = np.random.default_rng(0)
    return layer, lib.tensor(rng.normal(size=(options.steps, batch, options.size)).astype("float32"))


def training(lib: Any, kind: str, options: Any, batch: int) -> Callable[[], Any]:
    layer, x = inputs(lib, kind, options, batch)
    head = lib.nn.Linear(options.size, 10)
    y = lib.tensor(np.random.default_rng(1).integers(0, 10, batch))
    optimizer = lib.optim.AdamW([*layer.parameters(), *head.parameters()], lr=1e-3)

    def run() -> None:
        optimizer.zero_grad()
        lib.nn.functional.cross_entropy(head(layer(x)[0][-1]), y).backward()
        optimizer.step()

    return run


def both_ways(lib: Any, kind: str, options: Any, batch: int) -> Callable[[], Any]:
    layer, x = inputs(lib, kind, options, batch)
    x.requires_grad_()
    return lambda: layer(x)[0].sum().backward()


def forward(lib: Any, kind: str, options: Any, batch: int) -> Callable[[], Any]:
    layer, x = inputs(lib, kind, options, batch)

    def run() -> None:
        with lib.no_grad():
            layer(x)

    return run


WHAT = {"training step": training, "forward, backward": both_ways, "forward alone": forward}


def rows(threads: int, options: Any) -> list[str]:
    genesis.set_num_threads(threads)
    torch.set_num_threads(threads)
    found = []
    for kind in options.kinds:
        for batch in BATCHES:
            for what, make in [(what, WHAT[what]) for what in options.what]:
                a, b = in_turn([make(lib, kind, options, batch) for lib in (genesis, torch)], options.rounds)
                text = f"| {kind}, batch {batch}: {what} | {threads} | {a:.2f} | {b:.2f} | {a / b:.2f} |"
                print(text, flush=True)
                found.append(text)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in {"rounds": 15, "size": 128, "layers": 2, "steps": 64}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--kinds", nargs="+", default=["LSTM", "GRU", "RNN"])
    parser.add_argument("--what", nargs="+", default=[*WHAT])
    parser.add_argument("--write", action="store_true", help="into benchmarks/README.md")
    options = parser.parse_args()
    head = ["| layers | threads | Genesis, ms | PyTorch, ms | ratio |", "| --- | ---: | ---: | ---: | ---: |"]
    print("\n".join(head))
    table = head + [line for threads in options.threads for line in rows(threads, options)]
    if options.write:
        text = f"`python benchmarks/recurrent.py --write`: {options.layers} layers of {options.size}, {options.steps} steps;"
        text += f" the least of {options.rounds} runs in turn, float32.\n\n"
        page.write_section("Recurrent layers", text + "\n".join(table))


if __name__ == "__main__":
    main()
