"""What a fixed number of shards costs: a step of DistributedDataParallel with shards=4 against the plain one.

With SGD and one thread in each rank, in 1, 2 and 4 ranks that share batches of 128, 512 and 2048 rows, step by step and as one
compiled step: a `Sequential` of 784, 1024, 1024 and 10, a class with a forward of its own that is the same, and a transformer
block of width 256 on sentences of 16 positions. Blocks of steps of both kinds take turns; times are medians of blocks, of the
time that passes and of the processor time of the rank.

python benchmarks/deterministic.py [--differences] [--write]

With --write the table is put in benchmarks/README.md, in place of an older one. With --differences it is another table: by
how much the gradients of some models are others where a batch is computed in shards.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from typing import Any

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

from page import beside, write_section

BLOCKS, ROWS = 12, 1024  # of a block: rows, in steps; at least one
BATCHES = (128, 512, 2048)  # of all ranks
WIDTHS = (784, 1024, 1024, 10)
WIDTH, POSITIONS, HEADS = 256, 16, 4
KINDS = (None, 4)  # shards
NETWORKS = {"Sequential": BATCHES, "class": BATCHES, "block": BATCHES[:2]}


def network(name: str) -> Any:
    """A module, and the shape of an example."""
    from genesis import nn
    from genesis.nn import functional as F

    class Layers(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.act = nn.Linear(*WIDTHS[:2]), nn.ReLU()
            self.fc2, self.fc3 = nn.Linear(*WIDTHS[1:3]), nn.Linear(*WIDTHS[2:])

        def forward(self, x):
            return self.fc3(F.relu(self.fc2(self.act(self.fc1(x)))))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.up, self.down, self.head = (
                nn.Linear(WIDTH, 4 * WIDTH),
                nn.Linear(4 * WIDTH, WIDTH),
                nn.Linear(WIDTH, 10),
            )

        def forward(self, x):
            b, t, c = x.shape
            heads = [y.view(b, t, HEADS, c // HEADS).transpose(1, 2) for y in self.qkv(self.norm1(x)).split(c, 2)]
            y = F.scaled_dot_product_attention(*heads, is_causal=True).transpose(1, 2).reshape(b, t, c)
            x = x + self.out(y)
            return self.head((x + self.down(F.gelu(self.up(self.norm2(x))))).mean(1))

    if name == "block":
        return Block(), (POSITIONS, WIDTH)
    layers = [nn.Linear(*WIDTHS[:2]), nn.ReLU(), nn.Linear(*WIDTHS[1:3]), nn.ReLU(), nn.Linear(*WIDTHS[2:])]
    return Layers() if name == "class" else nn.Sequential(*layers), WIDTHS[:1]


def rank(batch: int, name: str, compiled: bool) -> None:
    """Blocks of steps of each kind, in turn."""
    import genesis
    import genesis.distributed as dist
    from genesis import nn, optim
    from genesis.nn.functional import cross_entropy

    dist.init_process_group()
    rows, count = batch // dist.get_world_size(), max(ROWS // batch, 1)
    x, y = genesis.randn(rows, *network(name)[1]), genesis.randint(0, 10, (rows,))

    def training(shards: int | None):
        genesis.manual_seed(0)
        model = nn.parallel.DistributedDataParallel(network(name)[0], shards=shards)
        optimizer = optim.SGD(model.parameters(), 0.01)

        def step(x, y):
            optimizer.zero_grad()
            cross_entropy(model(x), y).backward()
            optimizer.step()

        return genesis.compile(step) if compiled else step

    steps = {kind: training(kind) for kind in KINDS}
    times = {kind: [] for kind in KINDS}
    own = {kind: [] for kind in KINDS}
    for _ in range(BLOCKS):
        for kind, step in steps.items():
            dist.barrier()
            begin, begun = time.perf_counter(), time.process_time()
            for _ in range(count):
                step(x, y)
            times[kind].append((time.perf_counter() - begin) / count)
            own[kind].append((time.process_time() - begun) / count)
    if dist.get_rank() == 0:
        print(json.dumps([[statistics.median(of[kind][2:]) for of in (times, own)] for kind in KINDS]))
    dist.destroy_process_group()


def table() -> str:
    """A row for each network, batch, number of ranks, and way to compute."""
    lines = [
        "| network | rows | ranks | step | plain | 4 shards | ratio | processor time: plain | 4 shards | ratio | at most |"
    ]
    lines += ["| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"]
    each = [(name, batch) for name, batches in NETWORKS.items() for batch in batches]
    for (name, batch), ranks, how in itertools.product(each, (1, 2, 4), ("eager", "compiled")):
        start = [sys.executable, "-m", "genesis", "run", "-n", str(ranks)] if ranks > 1 else [sys.executable]
        command = [*start, __file__, str(batch), name, how]
        out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        plain, shards = json.loads(out[out.index("[[") : out.index("]]") + 2])
        cells = [f"{a * 1e3:.1f} ms | {b * 1e3:.1f} ms | {b / a:.2f}" for a, b in zip(plain, shards, strict=True)]
        lines.append(f"| {name} | {batch} | {ranks} | {how} | {' | '.join(cells)} | 1.25 |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def models() -> dict[str, tuple[Any, Any]]:
    """Modules that give a loss, and how they are called: by rows that are computed apart, and that are not."""
    import genesis
    from genesis import nn
    from genesis.nn import functional as F

    x, y = genesis.randn(64, 32), genesis.randint(0, 10, (64,))
    tokens = genesis.randint(0, 50, (64, 16))
    padded = tokens.masked_fill(genesis.arange(16) >= genesis.randint(2, 17, (64, 1)), -100)

    class Classifier(nn.Module):
        def __init__(self, *layers):
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(32, 64), *layers, nn.ReLU(), nn.Linear(64, 10))

        def forward(self, x, y):
            return F.cross_entropy(self.layers(x), y)

    class Language(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(nn.Embedding(50, 32), nn.Linear(32, 50))

        def forward(self, tokens, labels):
            return F.cross_entropy(self.layers(tokens).flatten(0, 1), labels.flatten())

    class Pairs(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 16))

        def forward(self, x, noise):
            a, b = (F.normalize(self.layers(each), dim=1) for each in (x, x + noise))
            return F.cross_entropy(a @ b.T / 0.1, genesis.arange(len(x)))

    return {
        "a classifier of linear layers": (Classifier(), (x, y)),
        "the same with batch norm": (Classifier(nn.BatchNorm1d(64)), (x, y)),
        "a language model, sentences of different lengths, which gives the mean loss of all words": (Language(), (tokens, padded)),
        "pairs of a batch told apart from its other rows": (Pairs(), (x, genesis.randn(64, 32) * 0.1)),
    }  # fmt: skip


def differences() -> str:
    """By how much gradients are others in four shards than in one piece, in a world of one."""
    import genesis
    import genesis.distributed as dist
    from genesis.nn.parallel import DistributedDataParallel

    dist.init_process_group()
    genesis.manual_seed(0)
    lines = ["| model, 64 rows | difference of its gradient |", "| --- | ---: |"]
    for name, (model, inputs) in models().items():
        grads = []
        for shards in KINDS:
            model.zero_grad()
            DistributedDataParallel(model, shards=shards)(*inputs).backward()
            grads.append(genesis.cat([p.grad.double().flatten() for p in model.parameters()]))
        plain, divided = grads
        lines.append(f"| {name} | {((divided - plain).norm() / plain.norm()).item():.1e} |")
    dist.destroy_process_group()
    return "\n".join(lines)


def main() -> None:
    """Measure, and print or write a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--differences", action="store_true")
    options = parser.parse_args()
    busy = beside()
    if options.differences:
        title, text = "What shards compute where nobody asked for them", differences()
        head = (
            "`python benchmarks/deterministic.py --differences --write`: gradients of `DistributedDataParallel` with `shards=4` "
            "in a world of one; how far they are from those of the batch in one piece, which are PyTorch's, relative to these."
        )
        print(text)
    else:
        title, text = "The same bits on any number of ranks", table()
        head = (
            "`python benchmarks/deterministic.py --write`: a step of `DistributedDataParallel` with `shards=4` against the plain "
            f"one with SGD: a `Sequential` of {', '.join(map(str, WIDTHS))}, a class with a forward of its own that is the same, and "
            f"a transformer block of width {WIDTH} on sentences of {POSITIONS} positions; rows of all ranks together, one thread in "
            f"each rank; {busy}; medians of blocks that take turns."
        )
    if options.write:
        write_section(title, head + "\n\n" + text)


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1].isdigit():
        rank(int(sys.argv[1]), sys.argv[2], sys.argv[3] == "compiled")
    else:
        main()
