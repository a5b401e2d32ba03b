"""A training step of a small GPT beside PyTorch's, in turn in one run: 4 layers of width 192, 6 heads, 16 x 128 tokens.

    python benchmarks/gpt.py [--rounds 15] [--threads 1 2] [--write]

Forward, loss, backward and AdamW, in float32. Prints milliseconds, the medians of all rounds, and the ratio of the two.
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

WIDTH, HEADS, LENGTH, BATCH, TOKENS, LAYERS = 192, 6, 128, 16, 256, 4


def model(lib: Any, dropout: float = 0.0) -> Any:
    nn, f = lib.nn, lib.nn.functional
    drop = nn.Dropout(dropout) if dropout else lambda x: x

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
            self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x: Any) -> Any:
            parts = self.qkv(self.norms[0](x)).split(WIDTH, dim=2)
            q, k, v = (p.view(BATCH, LENGTH, HEADS, WIDTH // HEADS).transpose(1, 2) for p in parts)
            y = f.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + drop(self.out(y.transpose(1, 2).reshape(BATCH, LENGTH, WIDTH)))
            return x + drop(self.down(f.gelu(self.up(self.norms[1](x)))))

    class GPT(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(TOKENS, WIDTH), nn.Embedding(LENGTH, WIDTH)
            self.layers = nn.Sequential(*[Layer() for _ in range(LAYERS)])
            self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, TOKENS)

        def forward(self, x: Any) -> Any:
            return self.head(self.norm(self.layers(drop(self.tokens(x) + self.places(lib.arange(LENGTH))))))

    return GPT()


def step(lib: Any) -> Callable[[], float]:
    lib.manual_seed(0)
    rng = np.random.default_rng(0)
    gpt = model(lib)
    optimizer = lib.optim.AdamW(gpt.parameters(), lr=1e-3)
    x, y = (lib.tensor(rng.integers(0, TOKENS, (BATCH, LENGTH))) for _ in range(2))

    def run() -> float:
        optimizer.zero_grad()
        loss = lib.nn.functional.cross_entropy(gpt(x).reshape(-1, TOKENS), y.reshape(-1))
        loss.backward()
        optimizer.step()
        return float(loss.item())

    return run


def medians(runs: tuple[Callable[[], Any], ...], rounds: int, clock: Callable[[], float]) -> list[float]:
    times: list[list[float]] = [[] for _ in runs]
    for i in range(rounds + 2):
        for run, taken in zip(runs, times, strict=True):
            start = clock()
            run()
            taken += [clock() - start] if i > 1 else []
    return [statistics.median(taken) * 1e3 for taken in times]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--write", action="store_true", help="into benchmarks/README.md")
    options = parser.parse_args()
    table = ["| time | threads | Genesis, ms | PyTorch, ms | ratio |", "| --- | ---: | ---: | ---: | ---: |"]
    for threads in options.threads:
        genesis.set_num_threads(threads)
        torch.set_num_threads(threads)
        runs = step(genesis), step(torch)
        for name, clock in (("of the clock", time.perf_counter), ("of the processors", time.process_time)):
            ours, theirs = medians(runs, options.rounds, clock)
            table.append(f"| {name} | {threads} | {ours:.1f} | {theirs:.1f} | {ours / theirs:.2f} |")
    print("\n".join(table))
    if options.write:
        head = f"`python benchmarks/gpt.py --write`: 4 layers of width 192, 16 x 128 tokens, float32; medians of {options.rounds}."
        page.write_section("A GPT step", head + "\n\n" + "\n".join(table))


if __name__ == "__main__":
    main()
