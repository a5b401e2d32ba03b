"""What is timed: of Genesis by `benchmark.py`, and of PyTorch by `peers.py`, by the same functions, whose argument ``t`` is one
of the two modules. They follow the table of bars for an H200.

A kernel's workload gives what is called with the number of a set of operands, by what its time is divided, and what that is
counted in. A step's gives the step, its arguments, and how many items it takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

ROTATED = 4  # sets of operands in turn: more than the cache holds
Rated = tuple[Callable[[int], Any], float, str]
Workload = Callable[[Any, dict[str, Any], str], Rated]
Step = tuple[Callable[..., Any], tuple[Any, ...], int]

SIZES: dict[bool, dict[str, Any]] = {  # tiny ones, and those that are measured
    True: {
        "flat": 1 << 12, "rows": (8, 64), "side": 64, "logits": (2, 31), "wide logits": (2, 32), "gate": (4, 56),
        "heads": (1, 2, 33, 16), "head": (4, 16, 31), "picture": (1, 4, 6, 6), "parameters": [(7, 9), (9,)],
    },
    False: {
        "flat": 1 << 28, "rows": (8192, 8192), "side": 8192, "logits": (16384, 50257), "wide logits": (8192, 128256),
        "gate": (8192, 14336), "heads": (4, 16, 4096, 128), "head": (8192, 4096, 151936), "picture": (32, 256, 56, 56),
        "parameters": [(50257, 768), *[(768, 3072), (3072,), (768, 2304), (768, 768)] * 17],
    },
}  # fmt: skip


def several(t: Any, where: str, *shape: int, dtype: Any = None) -> list[Any]:
    """Sets of numbers."""
    return [(t.rand(*shape, device=where) - 0.5).to(dtype or t.bfloat16) for _ in range(ROTATED)]


# ---- kernels


def of_flat(run: Callable[[Any, list[Any], int], Any], each: int) -> Workload:
    def made(t: Any, s: dict[str, Any], where: str) -> Rated:
        x = several(t, where, s["flat"])
        return lambda i: run(t, x, i), 1e-9 * each * s["flat"], "GB/s"

    return made


def of_rows(run: Callable[[Any, list[Any], int], Any], each: int) -> Workload:
    def made(t: Any, s: dict[str, Any], where: str) -> Rated:
        x = several(t, where, *s["rows"])
        return lambda i: run(t, x, i), 1e-9 * each * x[0].numel(), "GB/s"

    return made


def of_weights(norm: Callable[..., Any], back: bool = False) -> Workload:
    """A norm with its weight; or what goes back through it alone."""

    def made(t: Any, s: dict[str, Any], where: str) -> Rated:
        width = s["rows"][1]
        weight = t.ones(width, device=where, dtype=t.bfloat16)
        if not back:
            x = several(t, where, *s["rows"])
            return lambda i: norm(t, x[i], weight), 4e-9 * x[0].numel(), "GB/s"
        x, g = [each.requires_grad_() for each in several(t, where, *s["rows"])], several(t, where, *s["rows"])
        y = [norm(t, each, weight.requires_grad_()) for each in x]
        gradients = lambda i: t.autograd.grad(y[i], (x[i], weight), g[i], retain_graph=True)
        return gradients, 6e-9 * x[0].numel(), "GB/s"

    return made


def of_square(divided: int, dtype: str) -> Workload:
    def made(t: Any, s: dict[str, Any], where: str) -> Rated:
        n = s["side"] // divided
        x = several(t, where, n, n, dtype=getattr(t, dtype))
        return lambda i: x[i] @ x[i - 1], 2e-12 * n**3, "TFLOP/s"

    return made


def linear_gelu(t: Any, s: dict[str, Any], where: str) -> Rated:
    n, f = s["side"], t.nn.functional
    x, w, b = several(t, where, n, n), several(t, where, n, n), several(t, where, n)
    return lambda i: f.gelu(f.linear(x[i], w[i], b[i]), approximate="tanh"), 2e-12 * n**3, "TFLOP/s"


def gated(t: Any, s: dict[str, Any], where: str) -> Rated:
    """SwiGLU of two arrays, compiled."""
    x, y = several(t, where, *s["gate"]), several(t, where, *s["gate"])
    run = t.compile(lambda x, y: t.nn.functional.silu(x) * y)
    return lambda i: run(x[i], y[i]), 6e-9 * x[0].numel(), "GB/s"


def cross_entropy(t: Any, s: dict[str, Any], where: str) -> Rated:
    logits = several(t, where, *s["logits"], dtype=t.float32)[0]
    target = t.zeros(len(logits), dtype=t.int64, device=where)
    return lambda i: t.nn.functional.cross_entropy(logits, target), 4e-9 * logits.numel(), "GB/s"


def cross_entropy_with_gradient(sizes: str) -> Workload:
    """Forward and backward of logits in bfloat16: read twice, written once."""

    def made(t: Any, s: dict[str, Any], where: str) -> Rated:
        logits = several(t, where, *s[sizes])[0].requires_grad_()
        target = t.arange(len(logits), device=where) % s[sizes][1]
        loss = lambda: t.nn.functional.cross_entropy(logits, target)
        return lambda i: t.autograd.grad(loss(), logits), 6e-9 * logits.numel(), "GB/s"

    return made


def last_layer(t: Any, s: dict[str, Any], where: str) -> Rated:
    """The loss of a last layer and its gradients, without all of its logits at a time where `t` can do that."""
    f, (rows, width, classes) = t.nn.functional, s["head"]
    x, w = (several(t, where, n, width)[0].requires_grad_() for n in (rows, classes))
    target = t.arange(rows, device=where) % classes
    if hasattr(t.nn, "LinearCrossEntropyOptions"):
        loss = lambda: f.linear_cross_entropy(x, w, target, options=t.nn.LinearCrossEntropyOptions())
    else:
        loss = lambda: f.cross_entropy(f.linear(x, w), target)
    return lambda i: t.autograd.grad(loss(), (x, w)), 6e-12 * rows * width * classes, "TFLOP/s"


def embedding(t: Any, s: dict[str, Any], where: str) -> Rated:
    words, count = several(t, where, s["logits"][1], 768, dtype=t.float32)[0], s["rows"][0]
    tokens = t.arange(count, device=where) % len(words)
    return lambda i: words[tokens], 8e-9 * count * 768, "GB/s"


def attention(t: Any, s: dict[str, Any], where: str) -> Rated:
    x = several(t, where, *s["heads"])
    attend, amount = t.nn.functional.scaled_dot_product_attention, 2e-12 * x[0].numel() * s["heads"][2]
    return lambda i: attend(x[i], x[i], x[i], is_causal=True), amount, "TFLOP/s"


def attention_back(t: Any, s: dict[str, Any], where: str) -> Rated:
    attend = t.nn.functional.scaled_dot_product_attention
    q, k, v = ([x.requires_grad_() for x in several(t, where, *s["heads"])] for _ in range(3))
    g, y = several(t, where, *s["heads"]), [attend(*x, is_causal=True) for x in zip(q, k, v, strict=True)]
    gradients = lambda i: t.autograd.grad(y[i], (q[i], k[i], v[i]), g[i], retain_graph=True)
    return gradients, 5e-12 * q[0].numel() * s["heads"][2], "TFLOP/s"


def convolution(last: bool) -> Workload:
    def made(t: Any, s: dict[str, Any], where: str) -> Rated:
        pictures, channels = several(t, where, *s["picture"]), s["picture"][1]
        filters = several(t, where, channels, channels, 3, 3)[0]
        if last:
            pictures = [x.to(memory_format=t.channels_last) for x in pictures]
            filters = filters.to(memory_format=t.channels_last)
        amount = 18e-12 * pictures[0].numel() * channels
        return lambda i: t.nn.functional.conv2d(pictures[i], filters, padding=1), amount, "TFLOP/s"

    return made


def adam(t: Any, s: dict[str, Any], where: str) -> Rated:
    parameters = [t.nn.Parameter(t.rand(*shape, device=where)) for shape in s["parameters"]]
    for p in parameters:
        p.grad = t.rand_like(p)
    optimizer = t.optim.AdamW(parameters, fused=where == "cuda")
    return lambda i: optimizer.step(), 28e-9 * sum([p.numel() for p in parameters]), "GB/s"


def sorted_back(t: Any, s: dict[str, Any], where: str) -> Rated:
    """What goes back through a sort alone."""
    x = [each[:64].detach().requires_grad_() for each in several(t, where, *s["rows"])]
    y, g = [each.sort(1).values for each in x], several(t, where, *x[0].shape)
    gradients = lambda i: t.autograd.grad(y[i], x[i], g[i], retain_graph=True)
    return gradients, 4e-9 * x[0].numel(), "GB/s"


def best_of_many(t: Any, s: dict[str, Any], where: str) -> Rated:
    """The hundred largest of a million."""
    x = several(t, where, min(s["flat"], 1 << 20), dtype=t.float32)
    return lambda i: x[i].topk(100), 4e-9 * x[0].numel(), "GB/s"


def of_host(run: Callable[..., Any], *shapes: tuple[int, ...]) -> Workload:
    """Something so small that the host takes longer than the device."""

    def made(t: Any, s: dict[str, Any], where: str) -> Rated:
        given = [t.rand(*shape, device=where) for shape in shapes]
        places = t.arange(16, device=where).reshape(2, 8)
        return lambda i: run(t, places, *given), 1.0, "items/s"

    return made


def norm_and_back(t: Any, places: Any, x: Any, weight: Any, g: Any) -> Any:
    each = [a.detach().requires_grad_() for a in (x, weight, weight)]
    return t.autograd.grad(t.nn.functional.layer_norm(each[0], (64,), *each[1:]), each, g)


KERNELS: dict[str, Workload] = {
    "copy": of_flat(lambda t, x, i: x[i].clone(), 4),
    "add": of_flat(lambda t, x, i: x[i] + x[i - 1], 6),
    "gelu": of_flat(lambda t, x, i: t.nn.functional.gelu(x[i]), 4),
    "SwiGLU": gated,
    "softmax": of_rows(lambda t, x, i: x[i].softmax(1), 4),
    "layer norm": of_weights(lambda t, x, w: t.nn.functional.layer_norm(x, w.shape, w, w)),
    "layer norm, backward": of_weights(lambda t, x, w: t.nn.functional.layer_norm(x, w.shape, w), back=True),
    "rms norm": of_weights(lambda t, x, w: t.nn.functional.rms_norm(x, w.shape, w)),
    "sum": of_rows(lambda t, x, i: x[i].sum(), 2),
    "sum of columns": of_rows(lambda t, x, i: x[i].sum(0), 2),
    "cross entropy, float32": cross_entropy,
    "cross entropy, 128256 classes": cross_entropy_with_gradient("wide logits"),
    "cross entropy, 50257 classes": cross_entropy_with_gradient("logits"),
    "linear and cross entropy": last_layer,
    "embedding": embedding,
    "sort of 64 rows": of_rows(lambda t, x, i: x[i][:64].argsort(1), 1),
    "sort of 64 rows, backward": sorted_back,
    "topk, 100 of 2^20": best_of_many,
    "host: addition": of_host(lambda t, places, x: x + x, (16,)),
    "host: gather": of_host(lambda t, places, x: x.gather(1, places), (2, 64)),
    "host: rows of an index": of_host(lambda t, places, x: x[places[0]], (16, 64)),
    "host: layer norm and backward": of_host(norm_and_back, (16, 64), (64,), (16, 64)),
    "product": of_square(1, "bfloat16"),
    "product of 4096": of_square(2, "bfloat16"),
    "product, float32": of_square(4, "float32"),
    "linear and GELU": linear_gelu,
    "attention": attention,
    "attention, backward": attention_back,
    "conv2d": convolution(last=False),
    "conv2d, channels last": convolution(last=True),
    "AdamW": adam,
}


# ---- steps of training


def mlp(t: Any, small: bool, where: str) -> Step:
    nn = t.nn
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)).to(where)
    optimizer = t.optim.Adam(model.parameters(), fused=where == "cuda")
    x, y = t.rand(128, 784, device=where), t.randint(0, 10, (128,), device=where)
    return trained(t, model, optimizer, where), (x, y), 128


def gpt_of(t: Any, words: int, width: int, layers: int, heads: int, length: int) -> Any:
    """GPT-2's layers."""
    nn = t.nn

    class GPT(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.words, self.positions = nn.Embedding(words, width), nn.Embedding(length, width)
            self.layers = nn.ModuleList([
                nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, nn.functional.gelu, batch_first=True,
                                           norm_first=True)
                for _ in range(layers)
            ])  # fmt: skip
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

        def forward(self, tokens: Any) -> Any:
            x = self.words(tokens) + self.positions.weight[: tokens.shape[1]]
            mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1], device=tokens.device)
            for layer in self.layers:
                x = layer(x, is_causal=True, src_mask=mask)
            return self.head(self.norm(x)).flatten(0, 1)

    return GPT()


def gpt(*sizes: int) -> Callable[[Any, bool, str], Step]:
    """Steps of a model of so many words, width, layers, heads, batch and length."""

    def made(t: Any, small: bool, where: str) -> Step:
        words, width, layers, heads, batch, length = (31, 16, 1, 2, 2, 8) if small else sizes
        model = gpt_of(t, words, width, layers, heads, length).to(where)
        optimizer = t.optim.AdamW(model.parameters(), fused=where == "cuda")
        tokens = t.randint(0, words, (batch, length), device=where)
        return trained(t, model, optimizer, where, half=not small), (tokens, tokens.flatten()), batch * length

    return made


def resnet_of(t: Any, counts: tuple[int, ...], width: int, classes: int) -> Any:
    """A residual network of layers of three convolutions (He et al., 2015)."""
    nn = t.nn

    def normed(channels: int, out: int, size: int, stride: int = 1) -> Any:
        return nn.Sequential(nn.Conv2d(channels, out, size, stride, size // 2, bias=False), nn.BatchNorm2d(out))

    class Layer(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self, channels: int, inner: int, stride: int) -> None:
            super().__init__()
            self.way = nn.Sequential(
                normed(channels, inner, 1),
                nn.ReLU(),
                normed(inner, inner, 3, stride),
                nn.ReLU(),
                normed(inner, 4 * inner, 1),
            )
            self.around = nn.Identity() if channels == 4 * inner else normed(channels, 4 * inner, 1, stride)

        def forward(self, x: Any) -> Any:
            return nn.functional.relu(self.way(x) + self.around(x))

    layers, channels = [normed(3, width, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], width
    for i, count in enumerate(counts):
        for j in range(count):
            layers.append(Layer(channels, width << i, 2 if i and not j else 1))
            channels = 4 * (width << i)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


def resnet(t: Any, small: bool, where: str) -> Step:
    batch, size = (2, 32) if small else (128, 224)
    model = resnet_of(t, (1, 1) if small else (3, 4, 6, 3), 8 if small else 64, 1000)
    model = model.to(where).to(memory_format=t.channels_last)
    optimizer = t.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    x = t.rand(batch, 3, size, size, device=where).to(memory_format=t.channels_last)
    return trained(t, model, optimizer, where, half=not small), (x, t.arange(batch, device=where)), batch


def trained(t: Any, model: Any, optimizer: Any, where: str, half: bool = False) -> Callable[[Any, Any], Any]:
    """A step of training, in bfloat16 where ``half``."""

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        with t.autocast(where, t.bfloat16, enabled=half):
            z = model(x)
        loss = t.nn.functional.cross_entropy(z.float(), y)
        loss.backward()
        optimizer.step()
        return loss

    step.model = model  # type: ignore[attr-defined]  # what `torch.compile` is given: it takes no whole steps
    return step


STEPS: dict[str, Callable[[Any, bool, str], Step]] = {
    "MLP 784-256-256-10, 128": mlp,
    "transformer, 6 layers of 384, 16 x 256": gpt(512, 384, 6, 6, 16, 256),
    "GPT-2 124M, 16 x 1024": gpt(50257, 768, 12, 12, 16, 1024),
    "ResNet-50, 128 images": resnet,
}
