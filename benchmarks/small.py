"""Small calls of a training loop beside PyTorch's: views, parts, indices, choices, integers and writes on tensors of 10 x 16.

    python benchmarks/small.py [--rounds 5] [--write]

Prints microseconds, the least of all rounds, and the ratio of the two.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import page
import torch

import genesis

NUMBER = 300


def calls(lib: Any) -> dict[str, Callable[[], Any]]:
    rng = np.random.default_rng(0)
    x, y, out = (lib.tensor(rng.normal(size=(10, 16)).astype("float32")) for _ in range(3))
    w = x.clone().requires_grad_()
    labels, mask, rows, functional = lib.tensor(rng.integers(0, 16, 10)), x > 0, [x[0], x[1], x[2]], lib.nn.functional
    column = labels.reshape(10, 1)
    return {
        "`x[3]`": lambda: x[3],
        "`x[2:5]`": lambda: x[2:5],
        "`x[:, 2]`": lambda: x[:, 2],
        "`x[3] = 1.0`": lambda: out.__setitem__(3, 1.0),
        "`x.unbind(0)`": lambda: x.unbind(0),
        "`w.unbind(0)`, recorded": lambda: w.unbind(0),
        "`x.split(4)`": lambda: x.split(4),
        "`x.chunk(3)`": lambda: x.chunk(3),
        "`stack` of three rows": lambda: lib.stack(rows),
        "`cat` of three rows": lambda: lib.cat(rows),
        "`where(mask, x, y)`": lambda: lib.where(mask, x, y),
        "`x.masked_fill(mask, 0.0)`": lambda: x.masked_fill(mask, 0.0),
        "`x.clamp(0, 1)`": lambda: x.clamp(0, 1),
        "`x.gather(1, column)`": lambda: x.gather(1, column),
        "`x.scatter(1, column, 1.0)`": lambda: x.scatter(1, column, 1.0),
        "`x.topk(3)`": lambda: x.topk(3),
        "`x.max(1)`": lambda: x.max(1),
        "`x.argmax(1)`": lambda: x.argmax(1),
        "`x.sort()`": lambda: x.sort(),
        "`one_hot`": lambda: functional.one_hot(labels, 16),
        "`embedding`": lambda: functional.embedding(labels, x.reshape(16, 10)),
        "`labels + 1`": lambda: labels + 1,
        "`labels == labels`": lambda: labels == labels,  # noqa: PLR0124
        "`mask & mask`": lambda: mask & mask,
        "`x.abs()`": lambda: x.abs(),
        "`x.mean(1)`": lambda: x.mean(1),
        "`x.std()`": lambda: x.std(),
        "`x.cumsum(1)`": lambda: x.cumsum(1),
        "`x.norm()`": lambda: x.norm(),
        "`x.zero_()`": lambda: out.zero_(),
        "`x.copy_(y)`": lambda: out.copy_(y),
        "`randn(10, 16)`": lambda: lib.randn(10, 16),
        "`arange(10)`": lambda: lib.arange(10),
    }


def least(run: Callable[[], Any]) -> float:
    """Microseconds of a call."""
    begun = time.perf_counter()
    for _ in range(NUMBER):
        run()
    return (time.perf_counter() - begun) / NUMBER * 1e6


def table(rounds: int) -> list[str]:
    lines = ["| call | Genesis, us | PyTorch, us | ratio |", "| --- | ---: | ---: | ---: |"]
    theirs = calls(torch)
    for name, run in calls(genesis).items():
        pairs = [(least(run), least(theirs[name])) for _ in range(rounds + 1)][1:]
        a, b = map(min, zip(*pairs, strict=True))
        lines.append(f"| {name} | {a:.2f} | {b:.2f} | {a / b:.2f} |")
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="into benchmarks/README.md")
    options = parser.parse_args()
    genesis.set_num_threads(1)
    torch.set_num_threads(1)
    lines = table(options.rounds)
    if options.write:
        text = f"`python benchmarks/small.py --write`: the least of {options.rounds} runs in turn, one thread.\n\n"
        page.write_section("Small calls", text + "\n".join(lines))


if __name__ == "__main__":
    main()
