"""What fused kernels of composites gain: forward and backward with the kernel, against the composition, in turn.

    python benchmarks/fused.py [--rounds 7]

Prints microseconds of processor time, and the median of the ratios. A kernel stays where it takes at most 0.8 of the
time.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from common import timed

import genesis
from genesis.core.call.op import REGISTRY
from genesis.nn import functional as F


def weight(*shape: int) -> genesis.Tensor:
    return genesis.randn(*shape).requires_grad_()


def layer_norm(rows: int, width: int) -> Callable[[], genesis.Tensor]:
    x, w, b = weight(rows, width), weight(width), weight(width)
    return lambda: F.layer_norm(x, (width,), w, b)


def rms_norm(rows: int, width: int) -> Callable[[], genesis.Tensor]:
    x, w = weight(rows, width), weight(width)
    return lambda: F.rms_norm(x, (width,), w)


def silu(rows: int, width: int) -> Callable[[], genesis.Tensor]:
    x = weight(rows, width)
    return lambda: F.silu(x)


def cross_entropy(rows: int, width: int) -> Callable[[], genesis.Tensor]:
    x, y = weight(rows, width), genesis.randint(0, width, (rows,))
    return lambda: F.cross_entropy(x, y)


def attention(batch: int, heads: int, length: int, width: int) -> Callable[[], genesis.Tensor]:
    x = weight(batch, length, 3 * heads * width)
    parts = [part.unflatten(-1, (heads, width)).transpose(1, 2).detach().requires_grad_() for part in x.chunk(3, -1)]
    return lambda: F.scaled_dot_product_attention(*parts, is_causal=True)


CASES = [
    *[(layer_norm, size) for size in ((8, 16), (64, 32), (512, 128), (2048, 192), (4096, 768))],
    *[(rms_norm, size) for size in ((8, 16), (64, 32), (512, 128), (2048, 192), (4096, 768))],
    *[(silu, size) for size in ((8, 16), (64, 128), (512, 512), (2048, 768))],
    *[(cross_entropy, size) for size in ((8, 16), (64, 10), (512, 32), (2048, 256), (512, 10_000))],
    *[(attention, size) for size in ((1, 4, 16, 8), (8, 4, 64, 32), (16, 6, 128, 32))],
]


@contextmanager
def composed_only() -> Iterator[None]:
    """Without kernels of composites; those of primitives stay."""
    ops = [op for op in REGISTRY.values() if op.kind.composed and op.kernels]
    kernels = [dict(op.kernels) for op in ops]
    for op in ops:
        op.kernels.clear()
    try:
        yield
    finally:
        for op, before in zip(ops, kernels, strict=True):
            op.kernels.update(before)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.1)
    options = parser.parse_args()
    print(f"{'call':16}{'size':>18}{'composition':>13}{'kernel':>10}{'ratio':>7}")
    for make, size in CASES:
        call = make(*size)
        seed = genesis.ones_like(call())

        def step(call: Callable[[], genesis.Tensor] = call, seed: genesis.Tensor = seed) -> None:
            call().backward(seed)

        pairs = []
        for _ in range(options.rounds):
            with composed_only():
                composed = timed(step, options.seconds)
            pairs.append((composed, timed(step, options.seconds)))
        a, b = (statistics.median(column) for column in zip(*pairs, strict=True))
        ratio = statistics.median(b / a for a, b in pairs)
        print(f"{make.__name__:16}{'x'.join(map(str, size)):>18}{a:13.1f}{b:10.1f}{ratio:7.2f}", flush=True)


if __name__ == "__main__":
    main()
