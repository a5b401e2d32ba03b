"""Convolutions beside PyTorch's, in turn in one run: single ones, a training step, and a small network on digits.

    python benchmarks/convolution.py [--rounds 5] [--threads 1 2] [--write]

Prints milliseconds, the least of all rounds, and the ratio of the two. Before each turn the other's threads get time to
go to sleep, and a call that is not timed comes first.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import page
import torch
from common import PAUSE, in_turn

import genesis
from genesis import datasets

# (name, input, weight, options)
SINGLE = [
    ("3x3, 32 to 64 channels, 32x32", (32, 32, 32, 32), (64, 32, 3, 3), {"padding": 1}),
    ("3x3, 64 to 128 channels, 16x16", (32, 64, 16, 16), (128, 64, 3, 3), {"padding": 1}),
    ("1x1, 64 to 128 channels, 16x16", (32, 64, 16, 16), (128, 64, 1, 1), {}),
    ("3x3, stride 2, 64 to 128, 32x32", (32, 64, 32, 32), (128, 64, 3, 3), {"padding": 1, "stride": 2}),
    ("3x3, each of 64 channels, 32x32", (32, 64, 32, 32), (64, 1, 3, 3), {"padding": 1, "groups": 64}),
    ("7x7, stride 2, 3 to 64, 64x64", (32, 3, 64, 64), (64, 3, 7, 7), {"padding": 3, "stride": 2}),
]


def single(lib: Any, shape: Any, weight: Any, options: Any, backward: bool) -> Callable[[], Any]:
    rng = np.random.default_rng(0)
    x, w = (lib.tensor(rng.normal(size=s).astype("float32")).requires_grad_(backward) for s in (shape, weight))

    def run() -> Any:
        y = lib.nn.functional.conv2d(x, w, **options)
        return lib.autograd.grad(y.sum(), (x, w)) if backward else y

    return run


def network(nn: Any) -> Any:
    def block(a: int, b: int) -> list[Any]:
        return [nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU()]

    first, second = [*block(3, 32), *block(32, 32)], [*block(32, 64), *block(64, 64)]
    return nn.Sequential(*first, nn.MaxPool2d(2), *second, nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64 * 64, 10))


def step(lib: Any) -> Callable[[], Any]:
    rng = np.random.default_rng(0)
    x, y = lib.tensor(rng.normal(size=(32, 3, 32, 32)).astype("float32")), lib.tensor(rng.integers(0, 10, 32))
    model = network(lib.nn)
    optimizer = lib.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def run() -> Any:
        optimizer.zero_grad()
        loss = lib.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return run


def digits(lib: Any, epochs: int = 3) -> tuple[float, float]:
    """Seconds of training a small network on 8x8 digits, and the share of the last 297 that it then knows."""
    images, labels = (np.asarray(a) for a in datasets.digits())
    images = images.reshape(-1, 1, 8, 8).astype("float32") / 16
    x, y = lib.tensor(images), lib.tensor(labels.astype("int64"))
    nn = lib.nn
    lib.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(128, 10),
    )  # fmt: skip
    optimizer = lib.optim.Adam(model.parameters(), lr=5e-3)
    time.sleep(PAUSE)
    start = time.perf_counter()
    for _ in range(epochs):
        for i in range(0, 1500, 50):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x[i : i + 50]), y[i : i + 50]).backward()
            optimizer.step()
    seconds = time.perf_counter() - start
    known = (model(x[1500:]).argmax(1) == y[1500:]).float().mean().item()
    return seconds, known


def rows(threads: int, rounds: int) -> list[str]:
    genesis.set_num_threads(threads)
    torch.set_num_threads(threads)
    found = []

    def row(name: str, ours: float, theirs: float) -> None:
        text = f"| {name} | {threads} | {ours:.2f} | {theirs:.2f} | {ours / theirs:.2f} |"
        print(text, flush=True)
        found.append(text)

    for name, *operands in SINGLE:
        for backward in (False, True):
            ours, theirs = in_turn([single(lib, *operands, backward) for lib in (genesis, torch)], rounds)
            row(name + ", both gradients" * backward, ours, theirs)
    row("step: 4 convolutions, batch norm, 32x32, batch 32", *in_turn([step(genesis), step(torch)], rounds))
    runs = [(digits(genesis), digits(torch)) for _ in range(rounds + 1)][1:]
    (ours, known), (theirs, known_there) = (min(each) for each in zip(*runs, strict=True))
    row(f"digits, 3 epochs ({known:.1%} known, {known_there:.1%})", ours * 1e3, theirs * 1e3)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--write", action="store_true", help="into benchmarks/README.md")
    options = parser.parse_args()
    head = ["| convolution | threads | Genesis, ms | PyTorch, ms | ratio |", "| --- | ---: | ---: | ---: | ---: |"]
    print("\n".join(head))
    table = head + [line for threads in options.threads for line in rows(threads, options.rounds)]
    if options.write:
        text = f"`python benchmarks/convolution.py --write`: the least of {options.rounds} runs in turn, float32.\n\n"
        page.write_section("Convolutions", text + "\n".join(table))


if __name__ == "__main__":
    main()
