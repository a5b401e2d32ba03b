"""Call C of `scripts/gpu/run`: times by events of the device, medians with their spread, of tensors larger than its cache.

copy, add           GB/s of memory               Adam       GB/s of its reads and writes
softmax, norms      GB/s of one read and write   products   TFLOP/s
steps               microseconds of compiled training steps, and tokens a second
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import genesis
from genesis import cuda, nn
from genesis.nn import functional as F

ROTATED = 4  # sets of operands in turn: more than the cache holds
ROUNDS = 20


def measured(run: Callable[[int], Any], rounds: int) -> dict[str, float]:
    """Milliseconds of a call, by events around it: the median, the least and the most."""
    for i in range(ROTATED):
        run(i)
    cuda.synchronize()
    times = []
    for i in range(rounds):
        begin, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        begin.record()
        run(i % ROTATED)
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return {"median": median(times), "least": min(times), "most": max(times)}


def kernels(small: bool) -> dict[str, tuple[Callable[[int], Any], float, str]]:
    """What is called, by what the time is divided, and what that is counted in."""
    n, rows, side = (1 << 12, (8, 64), 64) if small else (1 << 28, (8192, 8192), 8192)
    big = [genesis.rand(n, device="cuda").bfloat16() for _ in range(ROTATED)]
    wide = [genesis.rand(*rows, device="cuda").bfloat16() for _ in range(ROTATED)]
    square = [(genesis.rand(side, side, device="cuda") - 0.5).bfloat16() for _ in range(ROTATED)]
    exact = [genesis.rand(side // 4, side // 4, device="cuda") for _ in range(ROTATED)]
    weight = genesis.ones(rows[1], device="cuda", dtype=genesis.bfloat16)
    count, batch, vocabulary, table = wide[0].numel(), *((2, 9, 31) if small else (8192, 16384, 50257))
    logits, target = (
        genesis.randn(batch, vocabulary, device="cuda"),
        genesis.zeros(batch, dtype=genesis.int64, device="cuda"),
    )
    words, tokens = (
        genesis.randn(vocabulary, rows[1] if small else 768, device="cuda"),
        genesis.arange(table, device="cuda") % vocabulary,
    )
    sizes = (1, 2, 33, 16) if small else (4, 16, 4096, 128)
    heads = genesis.randn(*sizes, device="cuda").bfloat16()
    channels, edge, images = (4, 6, 1) if small else (256, 56, 32)
    picture = genesis.randn(images, channels, edge, edge, device="cuda").bfloat16()
    filter = genesis.randn(channels, channels, 3, 3, device="cuda").bfloat16()
    return {
        "copy": (lambda i: big[i].clone(), 4e-9 * n, "GB/s"),
        "add": (lambda i: big[i] + big[i - 1], 6e-9 * n, "GB/s"),
        "gelu": (lambda i: F.gelu(big[i]), 4e-9 * n, "GB/s"),
        "softmax": (lambda i: wide[i].softmax(1), 4e-9 * count, "GB/s"),
        "layer norm": (lambda i: F.layer_norm(wide[i], (rows[1],), weight, weight), 4e-9 * count, "GB/s"),
        "rms norm": (lambda i: F.rms_norm(wide[i], (rows[1],), weight), 4e-9 * count, "GB/s"),
        "sum": (lambda i: wide[i].sum(), 2e-9 * count, "GB/s"),
        "sum of columns": (lambda i: wide[i].sum(0), 2e-9 * count, "GB/s"),
        "cross entropy": (lambda i: F.cross_entropy(logits, target), 4e-9 * logits.numel(), "GB/s"),
        "embedding": (lambda i: words[tokens], 8e-9 * len(tokens) * words.shape[1], "GB/s"),
        "sort of 64 rows": (lambda i: wide[i][:64].argsort(1), 1e-9 * 10 * 64 * rows[1], "GB/s"),
        "product": (lambda i: square[i] @ square[i - 1], 2e-12 * side**3, "TFLOP/s"),
        "product, float32": (lambda i: exact[i] @ exact[i - 1], 2e-12 * (side // 4) ** 3, "TFLOP/s"),
        "attention": (lambda i: F.scaled_dot_product_attention(heads, heads, heads, is_causal=True), 2e-12 * heads.numel() * sizes[2], "TFLOP/s"),
        "conv2d": (lambda i: F.conv2d(picture, filter, padding=1), 18e-12 * picture.numel() * channels, "TFLOP/s"),
    }  # fmt: skip


def mlp(small: bool) -> tuple[Callable[[int], Any], int]:
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)).to("cuda")
    optimizer = genesis.optim.Adam(model.parameters())
    x, y = genesis.rand(128, 784, device="cuda"), genesis.randint(0, 10, (128,)).to("cuda")
    return trained(model, optimizer, lambda x: model(x), x, y), 128


class GPT(nn.Module):
    """GPT-2's layers."""

    def __init__(self, words: int, width: int, layers: int, heads: int, length: int) -> None:
        super().__init__()
        self.words, self.positions = nn.Embedding(words, width), nn.Embedding(length, width)
        self.layers = nn.ModuleList([nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, F.gelu, batch_first=True, norm_first=True) for _ in range(layers)])  # fmt: skip
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, t: Any) -> Any:
        x = self.words(t) + self.positions.weight[: t.shape[1]]
        for layer in self.layers:
            x = layer(
                x, is_causal=True, src_mask=nn.Transformer.generate_square_subsequent_mask(t.shape[1], device=t.device)
            )
        return self.head(self.norm(x))


def gpt(small: bool, sizes: tuple[int, ...]) -> tuple[Callable[[int], Any], int]:
    words, width, layers, heads, batch, length = (31, 16, 1, 2, 2, 8) if small else sizes
    model = GPT(words, width, layers, heads, length).to("cuda")
    optimizer = genesis.optim.AdamW(model.parameters())
    t = genesis.randint(0, words, (batch, length)).to("cuda")
    out = lambda t: model(t).flatten(0, 1)
    return trained(model, optimizer, out, t, t.flatten(), half=not small), batch * length


def trained(
    model: Any, optimizer: Any, out: Callable[[Any], Any], x: Any, y: Any, half: bool = False
) -> Callable[[int], Any]:
    """A compiled step of training."""

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        with genesis.autocast("cuda", genesis.bfloat16, enabled=half):
            z = out(x)
        loss = F.cross_entropy(z.float(), y)
        loss.backward()
        optimizer.step()
        return loss

    run = genesis.compile(step)
    return lambda i: run(x, y)


STEPS: dict[str, Callable[[bool], tuple[Callable[[int], Any], int]]] = {
    "MLP 784-256-256-10, 128": mlp,
    "transformer, 6 layers of 384, 16 x 256": lambda small: gpt(small, (512, 384, 6, 6, 16, 256)),
    "GPT-2 124M, 16 x 1024": lambda small: gpt(small, (50257, 768, 12, 12, 16, 1024)),
}


def benchmark(tried: Callable[..., dict[str, Any]], budget: float, emulated: bool) -> dict[str, Any]:
    """All that the budget, in seconds, has time for. On the emulated device sizes are tiny, and no times are kept."""
    begun, rounds, left = time.monotonic(), 1 if emulated else ROUNDS, list[str]()
    report: dict[str, Any] = {"clocks before": clocks(), "kernels": {}, "steps": {}}

    def once(name: str, work: Callable[[], dict[str, Any]], where: str) -> None:
        if time.monotonic() - begun > budget:
            left.append(name)
        else:
            report[where][name] = tried(work)

    for name, (run, amount, unit) in kernels(emulated).items():
        once(name, lambda run=run, amount=amount, unit=unit: rated(measured(run, rounds), amount, unit, emulated), "kernels")  # fmt: skip
    for name, make in STEPS.items():
        once(name, lambda make=make: of_step(*make(emulated), rounds, emulated), "steps")
    return report | {"clocks after": clocks(), "not reached": left, "seconds": round(time.monotonic() - begun, 1)}


def rated(times: dict[str, float], amount: float, unit: str, emulated: bool) -> dict[str, Any]:
    return {} if emulated else {"ms": times, unit: amount / (times["median"] * 1e-3)}


def of_step(run: Callable[[int], Any], items: int, rounds: int, emulated: bool) -> dict[str, Any]:
    times = measured(run, rounds)
    return {} if emulated else {"ms": times, "items/s": items / (times["median"] * 1e-3)}


def clocks() -> str:
    """What `nvidia-smi` says of the device; empty without it."""
    asked = "name,driver_version,clocks.sm,clocks.mem,temperature.gpu,power.draw"
    try:
        done = subprocess.run(["nvidia-smi", f"--query-gpu={asked}", "--format=csv,noheader"], capture_output=True, text=True, timeout=20, check=False)  # fmt: skip
    except OSError:
        return ""
    return done.stdout.strip()
