"""Functions whose results and gradients on a GPU are compared with the CPU's in float64, in three dtypes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import genesis
from genesis.nn import functional as F

# functions of a tensor whose gradients are wanted, and the shape that it has
GRADED: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "layer_norm": (lambda x: F.layer_norm(x, x.shape[-1:], x[0].detach(), x[1].detach()), (130, 257)),
    "rms_norm": (lambda x: F.rms_norm(x, x.shape[-1:], x[0].detach()), (33, 1000)),
    "a norm's own parameters": (lambda x: F.layer_norm(x, x.shape[-1:], x[0], x[1]), (1100, 300)),
    "and of RMS norm": (lambda x: F.rms_norm(x, x.shape[-1:], x[0]), (600, 1029)),
    "softmax": (lambda x: x.softmax(1), (37, 300)),
    "cross_entropy": (lambda x: F.cross_entropy(x, classes(x)), (65, 5001)),
    "rows by index": (lambda x: x[classes(x.t())[:50] % 40], (40, 65)),
    "gather": (lambda x: x.gather(1, x.argsort(1)[:, :7]), (41, 63)),
    "index_add": (lambda x: x.index_add(0, classes(x.t())[:60] % 5, x[:60]), (60, 60)),
    "sums": (lambda x: (x.sum(0) + x.mean(0)) / 64, (3000, 130)),
    "cumsum": (lambda x: (x.cumsum(1) + x.cumsum(0)) / 128, (65, 3001)),
    "sort": (lambda x: x.sort(1).values * x.argsort(0).to(x.dtype), (5, 5000)),
    "topk": (lambda x: x.topk(9, 1).values, (33, 700)),
    "attention": (lambda x: F.scaled_dot_product_attention(x, x * 0.5, x + 1.0, is_causal=True), (2, 3, 261, 64)),
    "attention of other keys": (lambda x: F.scaled_dot_product_attention(x[:, :77], x, x[..., :40]), (4, 300, 72)),
    "conv2d": (lambda x: F.conv2d(x, filters(x), padding=1), (3, 20, 17, 19)),
    "conv2d, stride": (lambda x: F.conv2d(x, filters(x), stride=2), (2, 20, 33, 30)),
    "conv_transpose2d": (lambda x: F.conv_transpose2d(x, filters(x).transpose(0, 1), stride=2), (2, 20, 9, 8)),
    "product": (lambda x: x @ x.mT, (3, 130, 77)),
    "flip and roll": (lambda x: x.flip(0).roll(3, 1) * x.tril(2), (50, 70)),
}
BOUNDS = {"float32": 2e-4, "bfloat16": 6e-2, "float16": 1e-2}
HALVES = (genesis.bfloat16, genesis.float16)
ORDERED = {"sort", "topk", "gather"}  # whose order differs where numbers are rounded to the same


def classes(x: Any) -> Any:
    """An index for each row of a tensor, the same on each device."""
    return (genesis.arange(x.shape[0]) * 7919 % x.shape[1]).to(x.device)


def filters(x: Any) -> Any:
    made = np.cos(np.arange(24 * x.shape[1] * 9.0)).reshape(24, x.shape[1], 3, 3)
    return genesis.tensor(made).to(x.device, x.dtype) * 0.2


def small(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([min(n, 70) if i or len(shape) < 3 else n for i, n in enumerate(shape)])


def graded(function: Callable[..., Any], x: Any) -> list[Any]:
    """What a function returns, and the gradient of a sum over it."""
    x = x.detach().requires_grad_()
    out = function(x)
    (out.double() if out.dtype is genesis.float64 else out.float()).sin().sum().backward()
    return [out.detach(), x.grad]


def as_exact(function: Callable[..., Any], shape: tuple[int, ...], dtype: Any) -> str:
    """Result and gradient on the GPU, compared with the CPU's in float64, of the same rounded numbers."""
    genesis.manual_seed(3)
    x = (genesis.randn(*shape) * 0.7).to(dtype)
    said = []
    for there, here in zip(graded(function, x.to("cuda")), graded(function, x.double()), strict=True):
        got, expected = there.cpu().double().numpy(), here.double().numpy()
        worst, scale = float(np.abs(got - expected).max()), max(float(np.abs(expected).max()), 1.0)
        assert worst <= BOUNDS[dtype.np.name] * scale, f"differs by up to {worst}, of numbers up to {scale}"
        said.append(f"{worst / scale:.1g}")
    return " ".join(said)


def graded_checks(emulated: bool) -> Iterator[tuple[str, Callable[[], str]]]:
    """All of `GRADED` in three dtypes; smaller ones in float32 on the emulated device."""
    for name, (function, shape) in GRADED.items():
        for dtype in (genesis.float32, *(() if emulated or name in ORDERED else HALVES)):
            sizes = small(shape) if emulated else shape
            yield f"gradients of {name}, {dtype.np.name}", functools.partial(as_exact, function, sizes, dtype)


def launch_all() -> None:
    """Each kernel of `GRADED` once, whose machine code is kept."""
    for function, shape in GRADED.values():
        for dtype in (genesis.float32, *HALVES):
            graded(function, genesis.ones(*small(shape), dtype=dtype, device="cuda"))
