"""What a replay of a traced training step costs, and what a trace does.

    python benchmarks/replay.py [--rounds 9]

Prints microseconds of processor time for each step: the median of rounds that take the steps in turn. To compare two
versions, run it with each of them in
turn (``PYTHONPATH``), several times.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import time
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from common import Block, timed

import genesis
from genesis import jit, nn
from genesis.nn import functional as F


def mlp(*sizes: int, batch: int) -> tuple[Callable[..., object], tuple[genesis.Tensor, ...]]:
    layers = [m for a, b in itertools.pairwise(sizes) for m in (nn.Linear(a, b), nn.ReLU())]
    return training(nn.Sequential(*layers[:-1])), (genesis.randn(batch, sizes[0]), genesis.arange(batch) % sizes[-1])


def gpt(
    width: int, heads: int, layers: int, length: int, batch: int, letters: int = 32
) -> tuple[Callable[..., object], tuple[genesis.Tensor, ...]]:
    model = nn.Sequential(
        nn.Embedding(letters, width),
        *[Block(width, heads) for _ in range(layers)],
        nn.Linear(width, letters),
        nn.Flatten(0, 1),
    )
    return training(model), (
        genesis.randint(0, letters, (batch, length)),
        genesis.randint(0, letters, (batch * length,)),
    )


def training(model: nn.Module) -> Callable[..., object]:
    optimizer = genesis.optim.AdamW(model.parameters(), lr=1e-3)

    def step(x: genesis.Tensor, y: genesis.Tensor) -> genesis.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


STEPS = {
    "MLP 2-16-16-2, batch 32": lambda: mlp(2, 16, 16, 2, batch=32),
    "MLP 784-256-128-10, batch 64": lambda: mlp(784, 256, 128, 10, batch=64),
    "GPT, 2 layers, width 32, 4 x 16 letters": lambda: gpt(32, 4, 2, 16, 4),
    "GPT, 4 layers, width 128, 8 x 64 letters": lambda: gpt(128, 4, 4, 64, 8),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.2)
    options = parser.parse_args()
    rows: dict[str, list[list[float]]] = {}
    graphs = {}
    for name, make in STEPS.items():
        genesis.manual_seed(0)
        step, arguments = make()
        step(*arguments)
        begun = time.process_time()
        graph = jit.trace(step, *arguments)
        graphs[name] = step, graph, arguments, (time.process_time() - begun) * 1e3
        rows[name] = []
    for _ in range(options.rounds):
        for name, (step, graph, arguments, _) in graphs.items():
            eager = timed(lambda step=step, arguments=arguments: step(*arguments), options.seconds)
            rows[name].append(
                [eager, timed(lambda graph=graph, arguments=arguments: graph.replay(*arguments), options.seconds)]
            )
    print(f"{'step':42}{'nodes':>7}{'eager us':>10}{'replay us':>11}{'trace ms':>10}")
    for name, times in rows.items():
        eager, replayed = (statistics.median(column) for column in zip(*times, strict=True))
        print(f"{name:42}{len(graphs[name][1].nodes):7}{eager:10.0f}{replayed:11.0f}{graphs[name][3]:10.0f}")


if __name__ == "__main__":
    main()
