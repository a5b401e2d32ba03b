"""What several benchmarks share: a layer of a transformer, and clocks."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import genesis
from genesis import nn
from genesis.nn import functional as F

# before each turn: for so long threads of OpenMP wait actively after the other's call, on the processors this one needs
PAUSE = 0.02


class Block(nn.Module):
    """A layer of a transformer."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.norms = heads, nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: genesis.Tensor) -> genesis.Tensor:  # (B, T, C)
        q, k, v = [
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(self.norms[0](x)).chunk(3, -1)
        ]
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norms[1](x))))


def timed(run: Callable[[], object], seconds: float) -> float:
    """Microseconds of processor time for a run, after a first one."""
    run()
    begun, count = time.process_time(), 0
    while time.process_time() - begun < seconds:
        run()
        count += 1
    return (time.process_time() - begun) / count * 1e6


def in_turn(runs: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """The least milliseconds of each, taken in turn: a pause, a call that is not timed, and one that is."""
    best = [float("inf")] * len(runs)
    for _ in range(rounds):
        for k, run in enumerate(runs):
            time.sleep(PAUSE)
            run()
            begun = time.perf_counter()
            run()
            best[k] = min(best[k], (time.perf_counter() - begun) * 1e3)
    return best
