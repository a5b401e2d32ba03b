"""Small calls of a training loop beside PyTorch's, on tensors of 10 x 16: views, parts, indices, choices, integers,
writes, layers and losses.

    python benchmarks/small.py [--rounds 5] [--write]

Prints microseconds, the least of all rounds, and the ratio of the two.
"""

from __future__ import annotations

import argparse
import functools
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
    column, few = labels.reshape(10, 1), labels[:4] % 10
    tried = {
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
        "`x.std(1)`": lambda: x.std(1),
        "`x.var()`": lambda: x.var(),
        "`x.cummax(1)`": lambda: x.cummax(1),
        "`x.logsumexp(1)`": lambda: x.logsumexp(1),
        "`randperm(10)`": lambda: lib.randperm(10),
        "`x[labels]`": lambda: x[few],
        "`x.softmax(1)`": lambda: x.softmax(1),
        "`softmax`, recorded": lambda: w.softmax(1),
    }
    return tried | others(lib, x, y, out, labels) | layers(lib, functional, x, y, labels)


def others(lib: Any, x: Any, y: Any, out: Any, labels: Any) -> dict[str, Callable[[], Any]]:
    """Dtypes that meet, conversions, views, writes, draws."""
    mask, row, column, few = x > 0, x[0], labels.reshape(10, 1), labels[:4] % 10
    wide, half, chances = x.double(), x.bfloat16(), x.softmax(1)
    return {
        "`x * mask`": lambda: x * mask,
        "`x * labels[0]`": lambda: x * labels[0],
        "`labels / 2`": lambda: labels / 2,
        "`labels % 3`": lambda: labels % 3,
        "`half + half`": lambda: half + half,
        "`x.to(float64)`": lambda: x.to(lib.float64),
        "`x.float()` of float32": lambda: x.float(),
        "`mask.float()`": lambda: mask.float(),
        "`x.copy_(float64)`": lambda: out.copy_(wide),
        "`x.contiguous()`": lambda: x.contiguous(),
        "`x.reshape(-1)`": lambda: x.reshape(-1),
        "`x.T`": lambda: x.T,
        "`row.expand(10, 16)`": lambda: row.expand(10, 16),
        "`x[mask]`": lambda: x[mask],
        "`x[mask] = 0.0`": lambda: out.__setitem__(mask, 0.0),
        "`x[labels] = 0.0`": lambda: out.__setitem__(few, 0.0),
        "`x[places, labels]`": lambda: x[few, few],
        "`x.relu_()`": lambda: out.relu_(),
        "`x.clamp_(0, 1)`": lambda: out.clamp_(0, 1),
        "`x.lerp_(y, 0.1)`": lambda: out.lerp_(y, 0.1),
        "`x.addcmul_(x, y)`": lambda: out.addcmul_(x, y, value=0.1),
        "`x.masked_fill_(mask, 0.0)`": lambda: out.masked_fill_(mask, 0.0),
        "`x.index_copy_`": lambda: out.index_copy_(0, few, y[:4]),
        "`x.index_add_`": lambda: out.index_add_(0, few, y[:4]),
        "`x.scatter_add_`": lambda: out.scatter_add_(1, column, y),
        "`x.normal_()`": lambda: out.normal_(),
        "`x.uniform_()`": lambda: out.uniform_(),
        "`bernoulli`": lambda: lib.bernoulli(chances),
        "`randint(0, 10, (10,))`": lambda: lib.randint(0, 10, (10,)),
        "`tensor(1.0)`": lambda: lib.tensor(1.0),
        "`x.tril()`": lambda: x.tril(),
        "`x.roll(1, 0)`": lambda: x.roll(1, 0),
        "`mask.any()`": lambda: mask.any(),
        "`x.max()`": lambda: x.max(),
    }


def layers(lib: Any, functional: Any, x: Any, y: Any, labels: Any) -> dict[str, Callable[[], Any]]:
    """Layers and losses of the same numbers; "with gradients" from the call to the end of its backward."""

    def both(run: Callable[[Any], Any]) -> Callable[[], Any]:
        w, g = x.clone().requires_grad_(), y

        def step() -> None:
            out = run(w)
            out.backward(g if out.shape == g.shape else None)
            w.grad = None

        return step

    image, heads = x.reshape(1, 2, 8, 10), x.reshape(1, 2, 5, 16)
    weight, bias, mean, var = [row.clone() for row in (y[0], y[1], y[2], y[3] * y[3])]
    near = lib.zeros(1, 4, 4, 2)
    tried = {
        "relu": lambda x: functional.relu(x),
        "gelu": lambda x: functional.gelu(x),
        "silu": lambda x: functional.silu(x),
        "softplus": lambda x: functional.softplus(x),
        "softmax": lambda x: functional.softmax(x, 1),
        "log_softmax": lambda x: functional.log_softmax(x, 1),
        "layer_norm": lambda x: functional.layer_norm(x, (16,), weight, bias),
        "rms_norm": lambda x: functional.rms_norm(x, (16,), weight),
        "batch_norm": lambda x: functional.batch_norm(x, mean, var, weight, bias, training=True),
        "batch_norm, evaluated": lambda x: functional.batch_norm(x, mean, var, weight, bias),
        "group_norm": lambda x: functional.group_norm(x, 4, weight, bias),
        "normalize": lambda x: functional.normalize(x),
        "cosine_similarity": lambda x: functional.cosine_similarity(x, y),
        "dropout": lambda x: functional.dropout(x, 0.5, True),
        "linear": lambda x: functional.linear(x, y, bias[:10]),
        "cross_entropy": lambda x: functional.cross_entropy(x, labels),
        "cross_entropy, smoothed": lambda x: functional.cross_entropy(x, labels, label_smoothing=0.1),
        "nll_loss": lambda x: functional.nll_loss(x, labels),
        "mse_loss": lambda x: functional.mse_loss(x, y),
        "smooth_l1_loss": lambda x: functional.smooth_l1_loss(x, y),
        "binary_cross_entropy_with_logits": lambda x: functional.binary_cross_entropy_with_logits(x, y),
        "kl_div": lambda x: functional.kl_div(x, y, reduction="batchmean"),
    }
    calls = {}
    for name, run in tried.items():
        calls[f"`{name}`"] = functools.partial(run, x)
        if run(x).shape in (x.shape, ()):
            calls[f"`{name}`, with gradients"] = both(run)
    return calls | {
        "`scaled_dot_product_attention`": lambda: functional.scaled_dot_product_attention(heads, heads, heads),
        "`max_pool2d`": lambda: functional.max_pool2d(image, 2),
        "`avg_pool2d`": lambda: functional.avg_pool2d(image, 2),
        "`pad` by reflection": lambda: functional.pad(image, (1, 1, 1, 1), mode="reflect"),
        "`pixel_shuffle`": lambda: functional.pixel_shuffle(x.reshape(1, 4, 4, 10), 2),
        "`interpolate`, nearest": lambda: functional.interpolate(image, scale_factor=2),
        "`grid_sample`, nearest": lambda: functional.grid_sample(image, near, mode="nearest", align_corners=False),
        "`unfold`": lambda: functional.unfold(image, 3),
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
