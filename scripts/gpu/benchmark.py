"""Call C of `scripts/gpu/run`: times by events of the device, medians with their spread, of tensors larger than its cache.

copy, add           GB/s of memory               Adam       GB/s of its reads and writes
softmax, norms      GB/s of one read and write   products   TFLOP/s
steps               microseconds of compiled training steps, and tokens a second
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
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


SIZES: dict[bool, dict[str, Any]] = {  # tiny ones, and those that are measured
    True: {
        "flat": 1 << 12, "rows": (8, 64), "side": 64, "logits": (2, 31), "heads": (1, 2, 33, 16), "picture": (1, 4, 6, 6),
        "parameters": [(7, 9), (9,)],
    },
    False: {
        "flat": 1 << 28, "rows": (8192, 8192), "side": 8192, "logits": (16384, 50257), "heads": (4, 16, 4096, 128),
        "picture": (32, 256, 56, 56), "parameters": [(50257, 768), *[(768, 3072), (3072,), (768, 2304), (768, 768)] * 17],
    },
}  # fmt: skip
Rated = tuple[
    Callable[[int], Any], float, str
]  # what is called, by what the time is divided, and what that is counted in


def several(*shape: int, dtype: Any = genesis.bfloat16) -> list[Any]:
    """Sets of numbers."""
    return [(genesis.rand(*shape, device="cuda") - 0.5).to(dtype) for _ in range(ROTATED)]


def of_flat(run: Callable[[list[Any], int], Any], each: int) -> Callable[[dict[str, Any]], Rated]:
    def made(s: dict[str, Any]) -> Rated:
        x = several(s["flat"])
        return lambda i: run(x, i), 1e-9 * each * s["flat"], "GB/s"

    return made


def of_rows(run: Callable[[list[Any], int], Any], each: int) -> Callable[[dict[str, Any]], Rated]:
    def made(s: dict[str, Any]) -> Rated:
        x = several(*s["rows"])
        return lambda i: run(x, i), 1e-9 * each * x[0].numel(), "GB/s"

    return made


def of_weights(function: Callable[..., Any]) -> Callable[[dict[str, Any]], Rated]:
    def made(s: dict[str, Any]) -> Rated:
        x, weight = several(*s["rows"]), genesis.ones(s["rows"][1], device="cuda", dtype=genesis.bfloat16)
        return lambda i: function(x[i], weight), 4e-9 * x[0].numel(), "GB/s"

    return made


def of_square(side: int, dtype: Any) -> Callable[[dict[str, Any]], Rated]:
    def made(s: dict[str, Any]) -> Rated:
        n = s["side"] // side
        x = several(n, n, dtype=dtype)
        return lambda i: x[i] @ x[i - 1], 2e-12 * n**3, "TFLOP/s"

    return made


def linear_gelu(s: dict[str, Any]) -> Rated:
    n = s["side"]
    x, w, b = several(n, n), several(n, n), several(n)
    return lambda i: F.gelu(F.linear(x[i], w[i], b[i]), approximate="tanh"), 2e-12 * n**3, "TFLOP/s"


def cross_entropy(s: dict[str, Any]) -> Rated:
    logits = several(*s["logits"], dtype=genesis.float32)[0]
    target = genesis.zeros(len(logits), dtype=genesis.int64, device="cuda")
    return lambda i: F.cross_entropy(logits, target), 4e-9 * logits.numel(), "GB/s"


def embedding(s: dict[str, Any]) -> Rated:
    words, count = several(s["logits"][1], 768, dtype=genesis.float32)[0], s["rows"][0]
    tokens = genesis.arange(count, device="cuda") % len(words)
    return lambda i: words[tokens], 8e-9 * count * 768, "GB/s"


def attention(s: dict[str, Any]) -> Rated:
    x = several(*s["heads"])
    amount = 2e-12 * x[0].numel() * s["heads"][2]
    return lambda i: F.scaled_dot_product_attention(x[i], x[i], x[i], is_causal=True), amount, "TFLOP/s"


def attention_backward(s: dict[str, Any]) -> Rated:
    x = [each.requires_grad_() for each in several(*s["heads"])]
    g, amount = several(*s["heads"])[0], 7e-12 * x[0].numel() * s["heads"][2]
    return lambda i: F.scaled_dot_product_attention(x[i], x[i], x[i], is_causal=True).backward(g), amount, "TFLOP/s"


def convolution(s: dict[str, Any]) -> Rated:
    pictures, channels = several(*s["picture"]), s["picture"][1]
    filters = several(channels, channels, 3, 3)[0]
    amount = 18e-12 * pictures[0].numel() * channels
    return lambda i: F.conv2d(pictures[i], filters, padding=1), amount, "TFLOP/s"


def adam(s: dict[str, Any]) -> Rated:
    parameters = [nn.Parameter(genesis.rand(*shape, device="cuda")) for shape in s["parameters"]]
    for p in parameters:
        p.grad = genesis.rand(*p.shape, device="cuda")
    optimizer = genesis.optim.AdamW(parameters)
    return lambda i: optimizer.step(), 28e-9 * sum([p.numel() for p in parameters]), "GB/s"


KERNELS: dict[str, Callable[[dict[str, Any]], Rated]] = {
    "copy": of_flat(lambda x, i: x[i].clone(), 4),
    "add": of_flat(lambda x, i: x[i] + x[i - 1], 6),
    "gelu": of_flat(lambda x, i: F.gelu(x[i]), 4),
    "softmax": of_rows(lambda x, i: x[i].softmax(1), 4),
    "layer norm": of_weights(lambda x, w: F.layer_norm(x, w.shape, w, w)),
    "rms norm": of_weights(lambda x, w: F.rms_norm(x, w.shape, w)),
    "sum": of_rows(lambda x, i: x[i].sum(), 2),
    "sum of columns": of_rows(lambda x, i: x[i].sum(0), 2),
    "cross entropy": cross_entropy,
    "embedding": embedding,
    "sort of 64 rows": lambda s: (
        of_rows(lambda x, i: x[i][:64].argsort(1), 1)(s)[0],
        64e-9 * 10 * s["rows"][1],
        "GB/s",
    ),
    "product": of_square(1, genesis.bfloat16),
    "product, float32": of_square(4, genesis.float32),
    "linear and GELU": linear_gelu,
    "attention": attention,
    "attention, forward and backward": attention_backward,
    "conv2d": convolution,
    "AdamW": adam,
}


def mlp(small: bool) -> tuple[Callable[[int], Any], int]:
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)).to("cuda")
    optimizer = genesis.optim.Adam(model.parameters())
    x, y = genesis.rand(128, 784, device="cuda"), genesis.randint(0, 10, (128,)).to("cuda")
    return trained(model, optimizer, lambda x: model(x), x, y), 128


def gpt_of(nn: Any, library: Any, words: int, width: int, layers: int, heads: int, length: int) -> Any:
    """GPT-2's layers, of Genesis or of PyTorch."""

    class GPT(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.words, self.positions = nn.Embedding(words, width), nn.Embedding(length, width)
            self.layers = nn.ModuleList([
                nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, library.nn.functional.gelu, batch_first=True,
                                           norm_first=True)
                for _ in range(layers)
            ])  # fmt: skip
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

        def forward(self, t: Any) -> Any:
            x = self.words(t) + self.positions.weight[: t.shape[1]]
            mask = nn.Transformer.generate_square_subsequent_mask(t.shape[1], device=t.device)
            for layer in self.layers:
                x = layer(x, is_causal=True, src_mask=mask)
            return self.head(self.norm(x))

    return GPT()


class Gpt:
    """Steps of a model of so many words, width, layers, heads, batch and length."""

    def __init__(self, *sizes: int) -> None:
        self.sizes = sizes

    def __call__(self, small: bool) -> tuple[Callable[[int], Any], int]:
        words, width, layers, heads, batch, length = (31, 16, 1, 2, 2, 8) if small else self.sizes
        model = gpt_of(nn, genesis, words, width, layers, heads, length).to("cuda")
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


STEPS: dict[str, Any] = {
    "MLP 784-256-256-10, 128": mlp,
    "transformer, 6 layers of 384, 16 x 256": Gpt(512, 384, 6, 6, 16, 256),
    "GPT-2 124M, 16 x 1024": Gpt(50257, 768, 12, 12, 16, 1024),
}


def checks(emulated: bool) -> Iterator[tuple[str, Callable[[], Any]]]:
    """All that is measured, each with its own tensors. On the emulated device sizes are tiny, and no times are kept."""
    yield "clocks", clocks
    for name, make in KERNELS.items():
        yield name, lambda make=make: rated(*make(SIZES[emulated]), emulated)
    for name, made in STEPS.items():
        yield name, lambda made=made: of_step(*made(emulated), emulated)
    yield "clocks behind", clocks


def benchmark(tried: Callable[..., dict[str, Any]], budget: float, emulated: bool) -> dict[str, Any]:
    """All that the budget, in seconds, has time for."""
    begun, left, results = time.monotonic(), list[str](), dict[str, Any]()
    for name, check in checks(emulated):
        if time.monotonic() - begun > budget:
            left.append(name)
        else:
            results[name] = tried(check)
    return {"checks": results, "not reached": left, "seconds": round(time.monotonic() - begun, 1)}


def rated(run: Callable[[int], Any], amount: float, unit: str, emulated: bool) -> dict[str, Any]:
    times = measured(run, 1 if emulated else ROUNDS)
    return {} if emulated else {"ms": times, unit: amount / (times["median"] * 1e-3)}


def of_step(run: Callable[[int], Any], items: int, emulated: bool) -> dict[str, Any]:
    """By events, which begin before the host has prepared anything, and steps that do not wait for each other."""
    times = measured(run, 1 if emulated else ROUNDS)
    if emulated:
        return {}
    cuda.synchronize()
    begun = time.perf_counter()
    for i in range(ROUNDS):
        run(i)
    cuda.synchronize()
    each = (time.perf_counter() - begun) / ROUNDS
    return {"ms": times, "one behind the other": each * 1e3, "items/s": items / each}


def clocks() -> str:
    """What `nvidia-smi` says of the device; empty without it."""
    asked = "name,driver_version,clocks.sm,clocks.mem,temperature.gpu,power.draw"
    try:
        done = subprocess.run(["nvidia-smi", f"--query-gpu={asked}", "--format=csv,noheader"], capture_output=True, text=True, timeout=20, check=False)  # fmt: skip
    except OSError:
        return ""
    return done.stdout.strip()
