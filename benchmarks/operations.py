"""Operations of models beside PyTorch's, called eagerly: each forward, and with its gradients.

    python benchmarks/operations.py [--threads 1] [--rounds 7] [--only norm] [--write]

Prints microseconds, the median of all rounds taken in turn, and the ratio of the two.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import page
import torch

import genesis

SECONDS = 0.03  # of one round of one call
Rows = dict[str, Callable[[], Any]]


def calls(lib: Any) -> Rows:
    rng, F = np.random.default_rng(0), lib.nn.functional  # noqa: N806

    def numbers(*shape: int) -> Any:
        return lib.tensor(rng.normal(size=shape).astype("float32"))

    def both(function: Callable[[Any], Any], x: Any, *others: Any) -> Callable[[], Any]:
        leaf = x.clone().requires_grad_()
        g = lib.ones_like(function(x))
        wanted = [leaf, *others]
        return lambda: lib.autograd.grad(function(leaf), wanted, g)

    rows: Rows = {}

    def add(name: str, function: Callable[[Any], Any], x: Any, *others: Any, gradient: bool = True) -> None:
        rows[f"`{name}`"] = lambda: function(x)
        if gradient:
            rows[f"`{name}`, with gradients"] = both(function, x, *others)

    image, w, b = numbers(2, 320, 32, 32), numbers(320).requires_grad_(), numbers(320).requires_grad_()
    add("group_norm`, 32 groups of `(2, 320, 32, 32)", lambda x: F.group_norm(x, 32, w, b), image, w, b)
    small, v, c = numbers(8, 64, 8, 8), numbers(64).requires_grad_(), numbers(64).requires_grad_()
    add("group_norm`, 8 groups of `(8, 64, 8, 8)", lambda x: F.group_norm(x, 8, v, c), small, v, c)
    mean, variance = lib.zeros(64), lib.ones(64)
    add("batch_norm` in training, `(8, 64, 8, 8)", lambda x: F.batch_norm(x, mean, variance, v, c, True), small, v, c)
    add("batch_norm`, `(8, 64, 8, 8)", lambda x: F.batch_norm(x, mean, variance, v, c), small, v, c)
    features, large = numbers(32, 512, 7, 7), numbers(32, 64, 28, 28)
    add("adaptive_avg_pool2d` to 1 x 1, `(32, 512, 7, 7)", lambda x: F.adaptive_avg_pool2d(x, 1), features)
    add("adaptive_avg_pool2d` to 7 x 7, `(32, 64, 28, 28)", lambda x: F.adaptive_avg_pool2d(x, 7), large)
    add("pad` by zeros, `(32, 64, 28, 28)", lambda x: F.pad(x, (1, 1, 1, 1)), large)
    add("pad` by reflection, `(32, 64, 28, 28)", lambda x: F.pad(x, (1, 1, 1, 1), "reflect"), large)
    add("pad` by zeros, `(8, 16)", lambda x: F.pad(x, (0, 3)), numbers(8, 16))
    scores = numbers(8, 50000)
    add("topk(50)`, `(8, 50000)", lambda x: x.topk(50)[0], scores)
    add("topk(5)`, `(128, 1000)", lambda x: x.topk(5)[0], numbers(128, 1000))
    square = numbers(1000, 1000) / 100 + 1
    add("prod(1)`, `(1000, 1000)", lambda x: x.prod(1), square)
    add("prod(0)`, `(1000, 1000)", lambda x: x.prod(0), square)
    add("cummax(1)`, `(1000, 1000)", lambda x: x.cummax(1)[0], square)
    add("cummax(0)`, `(1000, 1000)", lambda x: x.cummax(0)[0], square)
    add("cummin(1)`, `(16, 100)", lambda x: x.cummin(1)[0], numbers(16, 100))
    for n in (1000, 60000):
        rows[f"`randperm({n})`"] = lambda n=n: lib.randperm(n)  # type: ignore[misc]
    pictures, grid = numbers(8, 3, 64, 64), (numbers(8, 64, 64, 2) / 2).clamp(-1, 1).requires_grad_()
    add("grid_sample`, `(8, 3, 64, 64)", lambda x: F.grid_sample(x, grid, align_corners=False), pictures, grid)
    maps, at = numbers(2, 64, 32, 32), (numbers(2, 400, 8, 2) / 2).clamp(-1, 1).requires_grad_()
    add(
        "grid_sample` at 3200 points of `(2, 64, 32, 32)", lambda x: F.grid_sample(x, at, align_corners=False), maps, at
    )
    add(
        "grid_sample` of the nearest, `(8, 3, 64, 64)",
        lambda x: F.grid_sample(x, grid, "nearest", align_corners=False),
        pictures,
    )
    return rows


def microseconds(run: Callable[[], Any], number: int) -> float:
    begun = time.perf_counter()
    for _ in range(number):
        run()
    return (time.perf_counter() - begun) / number * 1e6


def table(rounds: int, only: str) -> list[str]:
    lines = ["| operation | Genesis, us | PyTorch, us | ratio |", "| --- | ---: | ---: | ---: |"]
    theirs = calls(torch)
    for name, run in calls(genesis).items():
        if only not in name:
            continue
        runs = run, theirs[name]
        each = [max(1, int(SECONDS * 1e6 / min(microseconds(r, 1) for _ in range(3)))) for r in runs]
        pairs = [[microseconds(r, n) for r, n in zip(runs, each, strict=True)] for _ in range(rounds)]
        a, b = (statistics.median(times) for times in zip(*pairs, strict=True))
        lines.append(f"| {name} | {a:.1f} | {b:.1f} | {a / b:.2f} |")
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="")
    parser.add_argument("--write", action="store_true", help="into benchmarks/README.md")
    options = parser.parse_args()
    genesis.set_num_threads(options.threads)
    torch.set_num_threads(options.threads)
    load = page.beside()
    lines = table(options.rounds, options.only)
    if options.write:
        threads = "one thread" if options.threads == 1 else f"{options.threads} threads"
        text = (
            f"`python benchmarks/operations.py --threads {options.threads} --write`: medians of {options.rounds} rounds in "
            f"turn; {load}.\n\n"
        )
        page.write_section(f"Operations, {threads}", text + "\n".join(lines))


if __name__ == "__main__":
    main()
