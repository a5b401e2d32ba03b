"""How exact every op is: the largest error in units of the last place, against PyTorch, for each dtype and layout.

    python benchmarks/accuracy.py [--write] [--only NAME ...] [--times]

Elementwise ops are compared with mpmath (40 digits, more where the formula cancels) at points over their whole domain:
4,000 in float64; in float32 those of 120,000 where an op, or PyTorch's, is farthest from itself in float64; 300 in 16
bits. The others are compared with longdouble. An op passes where its error is at most 2 units in each layout, or PyTorch's own on the same
numbers in that layout. Units are those of the exact result. Where the result is a sum of terms of both signs, no sum of
rounded terms has more digits near its zero than the terms have: there they are units of the largest term, which the
case names (`terms`), or of a part of the largest result (`floor`). With --write the table goes to
benchmarks/accuracy.md. With --times the table is another: the time of elementwise ops beside PyTorch's, with one thread.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import mpmath
import numpy as np
import torch
from mpmath import mp
from page import write_section

import genesis
from genesis.core.graph.tensor import wrap
from genesis.testing.precision import ulps

mp.dps = 40
LONG = np.longdouble
BAR = 2.0
DTYPES = {"float64": np.float64, "float32": np.float32, "float16": np.float16, "bfloat16": genesis.bfloat16.np}
SETS = {"float64": 14, "float32": 400, "float16": 1, "bfloat16": 1}  # of about 300 points, for elementwise ops
PICKED = 300  # of these, where they are searched for the worst
LAYOUTS = ("contiguous", "transposed", "strided", "reversed", "large")  # large: compiled loops take those only


class Case(NamedTuple):
    """One op: how to call it in either framework, its exact value, and the numbers to try it on."""

    name: str
    call: Callable[..., Any]  # (framework, its functional module, *tensors)
    exact: Callable[..., Any]  # (*longdouble arrays), or of mpmath numbers for elementwise ops
    inputs: Callable[[Any], tuple[Any, ...]]  # (random generator) -> float64 arrays
    elementwise: bool = False
    floor: float = 0.0  # units are those of at least this part of the largest value: for sums of both signs
    # (*longdouble arrays) -> the largest term of each sum: units are those of at least that
    terms: Callable[..., Any] | None = None


# ---- numbers to try


def spread(low: float, high: float, least: float = 1e-30) -> Callable[[Any], tuple[Any, ...]]:
    """Points of all magnitudes between two limits, and some evenly apart."""

    def inputs(rng: Any) -> tuple[Any, ...]:
        parts = [rng.uniform(max(low, -30.0), min(high, 30.0), 200)]
        if high > 0:
            parts.append(np.exp(rng.uniform(np.log(max(least, low, 1e-30)), np.log(high), 100)))
        if low < 0:
            parts.append(-np.exp(rng.uniform(np.log(max(least, -high, 1e-30)), np.log(-low), 100)))
        x = np.concatenate(parts)
        return (x[: len(x) // 20 * 20].reshape(20, -1),)

    return inputs


def pairs(low: float, high: float) -> Callable[[Any], tuple[Any, ...]]:
    return lambda rng: (*spread(low, high)(rng), *spread(low, high)(rng))


def normals(*shapes: tuple[int, ...]) -> Callable[[Any], tuple[Any, ...]]:
    return lambda rng: tuple(rng.normal(size=shape) for shape in shapes)


def positives(*shapes: tuple[int, ...]) -> Callable[[Any], tuple[Any, ...]]:
    return lambda rng: tuple(rng.uniform(0.01, 1.0, size=shape) for shape in shapes)


def in_layout(x: Any, layout: str) -> Any:
    """The same numbers in another place of memory."""
    if layout == "transposed":
        return np.ascontiguousarray(x.swapaxes(0, -1)).swapaxes(0, -1)
    if layout == "strided":
        wide = np.zeros([2 * n for n in x.shape], x.dtype)
        part = wide[tuple(slice(None, None, 2) for _ in x.shape)]
        part[...] = x
        return part
    if layout == "reversed":
        back = tuple(slice(None, None, -1) for _ in x.shape)
        return np.ascontiguousarray(x[back])[back]
    return np.ascontiguousarray(x)


# ---- the ops


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + mpmath.exp(-x))


def _softplus(x: Any) -> Any:
    return mpmath.log1p(mpmath.exp(x))


def _phi(x: Any) -> Any:
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def _gelu_tanh(x: Any) -> Any:
    return x * _sigmoid(2 * mpmath.sqrt(2 / mpmath.pi) * (x + mpmath.mpf(0.044715) * x**3))


def _mish(x: Any) -> Any:
    return x * mpmath.tanh(mpmath.log1p(mpmath.exp(x)))


def _tanhshrink(x: Any) -> Any:
    with mp.workdps(120):  # the difference is x^3 / 3
        return x - mpmath.tanh(x)


def _atan2(y: Any, x: Any) -> Any:
    return mpmath.atan2(y, x) if y else mpmath.nan  # mpmath has no -0, and the angle jumps there


def _fmod(x: Any, y: Any) -> Any:
    return mpmath.nan if not y else mpmath.fmod(x, y) if x > 0 else -mpmath.fmod(-x, y)


def _own(name: str) -> Callable[..., Any]:
    return lambda lib, f, *x: getattr(lib, name)(*x)


def _functional(name: str, **options: Any) -> Callable[..., Any]:
    return lambda lib, f, *x: getattr(f, name)(*x, **options)


EVERY = spread(-1e30, 1e30)
SMALL = spread(-80, 80)
POSITIVE = spread(0.0, 1e30)
UNIT = spread(-0.9999, 0.9999)
UNARY: list[tuple[str, Any, Any]] = [
    ("exp", mpmath.exp, SMALL),
    ("exp2", lambda x: mpmath.mpf(2) ** x, SMALL),
    ("expm1", mpmath.expm1, SMALL),
    ("log", mpmath.log, POSITIVE),
    ("log2", lambda x: mpmath.log(x) / mpmath.log(2), POSITIVE),
    ("log10", mpmath.log10, POSITIVE),
    ("log1p", mpmath.log1p, spread(-0.9999, 1e30)),
    ("sqrt", mpmath.sqrt, POSITIVE),
    ("rsqrt", lambda x: 1 / mpmath.sqrt(x), POSITIVE),
    ("reciprocal", lambda x: 1 / x, spread(-1e30, 1e30, 1e-20)),
    ("square", lambda x: x * x, spread(-1e15, 1e15, 1e-15)),
    ("sin", mpmath.sin, spread(-1e4, 1e4)),
    ("cos", mpmath.cos, spread(-1e4, 1e4)),
    ("tan", mpmath.tan, spread(-1e4, 1e4)),
    ("asin", mpmath.asin, UNIT),
    ("acos", mpmath.acos, UNIT),
    ("atan", mpmath.atan, EVERY),
    ("sinh", mpmath.sinh, SMALL),
    ("cosh", mpmath.cosh, SMALL),
    ("tanh", mpmath.tanh, EVERY),
    ("asinh", mpmath.asinh, EVERY),
    ("acosh", mpmath.acosh, spread(1.0, 1e30)),
    ("atanh", mpmath.atanh, UNIT),
    ("erf", mpmath.erf, spread(-1e4, 1e4)),
    ("erfc", mpmath.erfc, spread(-9, 9)),
    ("erfinv", mpmath.erfinv, UNIT),
    (
        "lgamma",
        lambda x: mpmath.log(abs(mpmath.gamma(x))) if abs(x) < 1e4 else mpmath.loggamma(x).real,
        spread(-50, 1e30),
    ),
    ("digamma", mpmath.digamma, spread(-50, 1e30)),
    ("logit", lambda x: mpmath.log(x / (1 - x)), spread(0.0, 0.9999)),
    ("sinc", lambda x: mpmath.sincpi(x), spread(-100, 100)),
    ("sigmoid", _sigmoid, spread(-700, 1e30)),
    ("deg2rad", mpmath.radians, EVERY),
    ("rad2deg", mpmath.degrees, EVERY),
    ("frac", lambda x: x - (mpmath.floor(x) if x > 0 else mpmath.ceil(x)), EVERY),
]
ACTIVATIONS: list[tuple[str, Any, Any, dict[str, Any]]] = [
    ("gelu", lambda x: x * _phi(x), spread(-35, 1e30), {}),
    ("gelu", _gelu_tanh, spread(-35, 1e10), {"approximate": "tanh"}),
    ("silu", lambda x: x * _sigmoid(x), spread(-700, 1e30), {}),
    ("mish", _mish, spread(-700, 1e10), {}),
    ("softplus", lambda x: x if x > 20 else _softplus(x), spread(-700, 1e30), {}),
    ("logsigmoid", lambda x: -_softplus(-x), spread(-1e30, 700), {}),
    ("elu", lambda x: x if x > 0 else mpmath.expm1(x), EVERY, {}),
    ("celu", lambda x: x if x > 0 else 2 * mpmath.expm1(x / 2), EVERY, {"alpha": 2.0}),
    (
        "selu",
        lambda x: (
            mpmath.mpf(1.0507009873554804934193349852946)
            * (x if x > 0 else mpmath.mpf(1.6732632423543772848170429916717) * mpmath.expm1(x))
        ),
        EVERY,
        {},
    ),
    ("softsign", lambda x: x / (1 + abs(x)), EVERY, {}),
    ("tanhshrink", _tanhshrink, EVERY, {}),
    ("hardsigmoid", lambda x: min(max(x / 6 + mpmath.mpf(1) / 2, 0), 1), EVERY, {}),
    ("hardswish", lambda x: x * min(max(x / 6 + mpmath.mpf(1) / 2, 0), 1), EVERY, {}),
    ("leaky_relu", lambda x: x if x > 0 else x * mpmath.mpf(0.01), EVERY, {}),
]
# to which at most ln 2 is added
BINARY_TERMS = dict.fromkeys(("logaddexp", "logaddexp2"), lambda x, y: np.abs(np.maximum(x, y)))
BINARY: list[tuple[str, Any, Any]] = [
    ("add", lambda x, y: x + y, pairs(-1e4, 1e4)),
    ("sub", lambda x, y: x - y, pairs(-1e4, 1e4)),
    ("mul", lambda x, y: x * y, pairs(-1e10, 1e10)),
    ("div", lambda x, y: x / y, pairs(-1e4, 1e4)),
    ("pow", lambda x, y: x**y, pairs(0.0, 8.0)),
    ("atan2", _atan2, pairs(-1e10, 1e10)),
    ("hypot", mpmath.hypot, pairs(-1e30, 1e30)),
    ("logaddexp", lambda x, y: max(x, y) + mpmath.log1p(mpmath.exp(-abs(x - y))), pairs(-80, 80)),
    ("logaddexp2", lambda x, y: max(x, y) + mpmath.log1p(mpmath.mpf(2) ** -abs(x - y)) / mpmath.log(2), pairs(-80, 80)),
    ("xlogy", lambda x, y: x * mpmath.log(y), pairs(0.0, 1e10)),
    ("fmod", _fmod, pairs(0.0, 50.0)),
]


def _log_sum(x: Any, dim: int) -> Any:
    top = x.max(dim, keepdims=True)
    return (np.log(np.exp(x - top).sum(dim, keepdims=True)) + top).squeeze(dim)


def _normed(x: Any, eps: float = 1e-5) -> Any:
    away = x - x.mean(-1, keepdims=True)
    return away / np.sqrt((away * away).mean(-1, keepdims=True) + LONG(eps))


def _cross_entropy(x: Any) -> Any:
    return (_log_sum(x, 1) - x[:, 0]).mean()


def _attention(q: Any, k: Any, v: Any) -> Any:
    scores = np.einsum("bij,bkj->bik", q, k) / np.sqrt(LONG(q.shape[-1]))
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("bij,bjk->bik", e / e.sum(-1, keepdims=True), v)


LONG_ROWS = (200_000, 10)
OTHERS: list[Case] = [
    Case("sum(0)", lambda lib, f, x: lib.sum(x, 0), lambda x: x.sum(0), positives(LONG_ROWS)),
    Case("sum(1)", lambda lib, f, x: lib.sum(x, 1), lambda x: x.sum(1), positives((10, 100_000))),
    Case("sum", lambda lib, f, x: lib.sum(x), lambda x: x.sum(), positives(LONG_ROWS)),
    Case("sum(1) of 3", lambda lib, f, x: lib.sum(x, 1), lambda x: x.sum(1), positives((20, 5000, 7))),
    Case("mean(0)", lambda lib, f, x: lib.mean(x, 0), lambda x: x.mean(0), positives(LONG_ROWS)),
    Case("var(0)", lambda lib, f, x: lib.var(x, 0), lambda x: x.var(0, ddof=1), positives(LONG_ROWS)),
    Case("std(0)", lambda lib, f, x: lib.std(x, 0), lambda x: x.std(0, ddof=1), positives(LONG_ROWS)),
    Case(
        "var", lambda lib, f, x: lib.var(x), lambda x: x.var(ddof=1), lambda rng: (rng.normal(100.0, 1.0, (1000, 100)),)
    ),
    Case(
        "std(1)",
        lambda lib, f, x: lib.std(x, 1),
        lambda x: x.std(1, ddof=1),
        lambda rng: (rng.normal(100.0, 1.0, (100, 1000)),),
    ),
    Case("nansum(0)", lambda lib, f, x: lib.nansum(x, 0), lambda x: x.sum(0), positives((100_000, 10))),
    Case("nanmean(0)", lambda lib, f, x: lib.nanmean(x, 0), lambda x: x.mean(0), positives((100_000, 10))),
    Case(
        "prod(0)",
        lambda lib, f, x: lib.prod(x, 0),
        lambda x: x.prod(0),
        lambda rng: (rng.uniform(0.9, 1.1, (1000, 10)),),
    ),
    Case("norm", lambda lib, f, x: lib.norm(x), lambda x: np.sqrt((x * x).sum()), normals((1000, 300))),
    Case("norm(0)", lambda lib, f, x: lib.norm(x, 2, 0), lambda x: np.sqrt((x * x).sum(0)), normals((100_000, 10))),
    Case("norm 1", lambda lib, f, x: lib.norm(x, 1, 0), lambda x: np.abs(x).sum(0), normals((100_000, 10))),
    Case(
        "norm 3",
        lambda lib, f, x: lib.norm(x, 3, 0),
        lambda x: np.cbrt((np.abs(x) ** 3).sum(0)),
        normals((100_000, 10)),
    ),
    Case("logsumexp(0)", lambda lib, f, x: lib.logsumexp(x, 0), lambda x: _log_sum(x, 0), normals((100_000, 10))),
    Case("cumsum(0)", lambda lib, f, x: lib.cumsum(x, 0), lambda x: x.cumsum(0), positives(LONG_ROWS)),
    Case("cumsum(1)", lambda lib, f, x: lib.cumsum(x, 1), lambda x: x.cumsum(1), positives((10, 100_000))),
    Case(
        "cumprod(0)",
        lambda lib, f, x: lib.cumprod(x, 0),
        lambda x: x.cumprod(0),
        lambda rng: (rng.uniform(0.95, 1.05, (1000, 10)),),
    ),
    Case(
        "logcumsumexp(0)",
        lambda lib, f, x: lib.logcumsumexp(x, 0),
        lambda x: np.logaddexp.accumulate(x, 0),
        normals((3000, 10)),
    ),
    Case(
        "softmax(0)", lambda lib, f, x: lib.softmax(x, 0), lambda x: np.exp(x - _log_sum(x, 0)), normals((10_000, 10))
    ),
    Case(
        "softmax(1)",
        lambda lib, f, x: lib.softmax(x, 1),
        lambda x: np.exp(x - _log_sum(x, 1)[:, None]),
        normals((10, 10_000)),
    ),
    Case(
        "log_softmax(0)", lambda lib, f, x: lib.log_softmax(x, 0), lambda x: x - _log_sum(x, 0), normals((10_000, 10))
    ),
    Case(
        "log_softmax(1)",
        lambda lib, f, x: lib.log_softmax(x, 1),
        lambda x: x - _log_sum(x, 1)[:, None],
        normals((10, 10_000)),
    ),
    Case("layer_norm", lambda lib, f, x: f.layer_norm(x, (1000,)), _normed, normals((30, 1000)), floor=1 / 64),
    Case(
        "rms_norm",
        lambda lib, f, x: f.rms_norm(x, (1000,), eps=1e-5),
        lambda x: x / np.sqrt((x * x).mean(-1, keepdims=True) + LONG(1e-5)),
        normals((30, 1000)),
    ),
    Case(
        "normalize",
        lambda lib, f, x: f.normalize(x),
        lambda x: x / np.sqrt((x * x).sum(1, keepdims=True)),
        normals((30, 1000)),
    ),
    Case(
        "batch_norm",
        lambda lib, f, x: f.batch_norm(x, None, None, training=True),
        lambda x: _normed(x.T).T,
        normals((1000, 30)),
        floor=1 / 64,
    ),
    Case(
        "group_norm",
        lambda lib, f, x: f.group_norm(x, 2),
        lambda x: _normed(x.reshape(len(x), 2, -1)).reshape(x.shape),
        normals((30, 1000)),
        floor=1 / 64,
    ),
    Case(
        "attention",
        lambda lib, f, q, k, v: f.scaled_dot_product_attention(q, k, v),
        _attention,
        normals((2, 30, 16), (2, 40, 16), (2, 40, 16)),
        floor=1 / 64,
    ),
    Case(
        "matmul",
        lambda lib, f, x, y: x @ y,
        lambda x, y: np.einsum("ij,jk->ik", x, y),
        normals((50, 300), (300, 40)),
        floor=1 / 64,
    ),
    Case(
        "cross_entropy",
        lambda lib, f, x: f.cross_entropy(x, lib.zeros(len(x), dtype=lib.int64)),
        _cross_entropy,
        normals((1000, 30)),
    ),
    Case(
        "mse_loss",
        lambda lib, f, x, y: f.mse_loss(x, y),
        lambda x, y: ((x - y) ** 2).mean(),
        normals((1000, 30), (1000, 30)),
    ),
    Case(
        "l1_loss",
        lambda lib, f, x, y: f.l1_loss(x, y),
        lambda x, y: np.abs(x - y).mean(),
        normals((1000, 30), (1000, 30)),
    ),
    Case(
        "huber_loss",
        lambda lib, f, x, y: f.huber_loss(x, y, reduction="none"),
        lambda x, y: np.where(np.abs(x - y) <= 1, (x - y) ** 2 / 2, np.abs(x - y) - LONG(0.5)),
        normals((100, 30), (100, 30)),
    ),
    Case(
        "bce_with_logits",
        lambda lib, f, x: f.binary_cross_entropy_with_logits(x, lib.ones_like(x), reduction="none"),
        lambda x: np.where(x < 0, np.log1p(np.exp(-np.abs(x))) - x, np.log1p(np.exp(-np.abs(x)))),
        lambda rng: (rng.uniform(-40, 80, (50, 50)),),
    ),
    Case(
        "bce_with_logits, mean",
        lambda lib, f, x, y: f.binary_cross_entropy_with_logits(x, (y > 0).to(x.dtype)),
        lambda x, y: np.where(y > 0, np.logaddexp(0, -x), np.logaddexp(0, x)).mean(),
        normals((1000, 30), (1000, 30)),
    ),
    Case(
        "kl_div",
        lambda lib, f, x, y: f.kl_div(x, y, reduction="sum"),
        lambda x, y: (y * (np.log(y) - x)).sum(),
        positives((100, 30), (100, 30)),
    ),
    Case(
        "cosine_similarity",
        lambda lib, f, x, y: f.cosine_similarity(x, y),
        lambda x, y: (x * y).sum(1) / np.sqrt((x * x).sum(1) * (y * y).sum(1)),
        positives((100, 300), (100, 300)),
    ),
    Case(
        "lerp", lambda lib, f, x, y: lib.lerp(x, y, 0.25), lambda x, y: x + (y - x) / 4, positives((100, 30), (100, 30))
    ),
    Case(
        "addcmul",
        lambda lib, f, x, y, z: lib.addcmul(x, y, z, value=0.5),
        lambda x, y, z: x + y * z / 2,
        positives(*[(100, 30)] * 3),
    ),
    Case(
        "addcdiv",
        lambda lib, f, x, y, z: lib.addcdiv(x, y, z, value=0.5),
        lambda x, y, z: x + y / z / 2,
        positives(*[(100, 30)] * 3),
    ),
    Case(
        "cdist",
        lambda lib, f, x, y: lib.cdist(x, y),
        lambda x, y: np.sqrt(((x[:, None] - y[None]) ** 2).sum(-1)),
        normals((30, 100), (20, 100)),
    ),
]


def cases() -> Iterator[Case]:
    for name, exact, inputs in UNARY:
        yield Case(name, _own(name), exact, inputs, elementwise=True)
    for name, exact, inputs, options in ACTIVATIONS:
        title = name + "".join(f", {value}" for value in options.values())
        yield Case(title, _functional(name, **options), exact, inputs, elementwise=True)
    for name, exact, inputs in BINARY:
        yield Case(name, _own(name), exact, inputs, elementwise=True, terms=BINARY_TERMS.get(name))
    yield from OTHERS


# ---- measuring


def _exact_value(case: Case, arrays: list[Any]) -> Any:
    """The exact results of the numbers in these arrays."""
    if not case.elementwise:
        return case.exact(*[a.astype(np.float64).astype(LONG) for a in arrays])
    flat = [a.astype(np.float64).reshape(-1).tolist() for a in arrays]
    return np.array([_exact_element(case, xs) for xs in zip(*flat, strict=True)], LONG).reshape(arrays[0].shape)


def _exact_element(case: Case, xs: tuple[float, ...]) -> Any:
    try:
        value = case.exact(*map(mpmath.mpf, xs))
        return LONG(mpmath.nstr(value, 25, strip_zeros=False)) if mpmath.isfinite(value) else LONG("nan")
    except (ZeroDivisionError, ValueError, OverflowError):
        return LONG("nan")  # a pole: not compared


def _least(case: Case, arrays: list[Any], exact: Any) -> Any:
    """What the units are at least those of."""
    if case.terms is not None:
        return case.terms(*[a.astype(np.float64).astype(LONG) for a in arrays])
    return np.nanmax(np.abs(exact)) * case.floor


def _error(result: Any, exact: Any, dtype: Any, least: Any) -> float:
    return float(np.max(ulps(result, exact, dtype, least), initial=0.0, where=~np.isnan(exact)))


def _in_torch(case: Case, arrays: list[Any], name: str) -> Any:
    kind = getattr(torch, name)
    tensors = [torch.tensor(np.ascontiguousarray(a).astype(np.float64)).to(kind) for a in arrays]
    strided = [
        t
        if a.flags.c_contiguous or min(a.strides) < 0
        else torch.empty_strided(a.shape, [s // a.itemsize for s in a.strides], dtype=kind).copy_(t)
        for t, a in zip(tensors, arrays, strict=True)
    ]
    return case.call(torch, torch.nn.functional, *strided).double().numpy()


class Row(NamedTuple):
    """Errors of one op in one dtype: ours and PyTorch's, for each layout."""

    name: str
    dtype: str
    ours: list[float]
    peers: list[float]

    @property
    def met(self) -> bool:
        return all(a <= max(BAR, b) for a, b in zip(self.ours, self.peers, strict=True))


def _points(case: Case, name: str) -> list[Any]:
    """The numbers to try an op on."""
    dtype, rng = np.dtype(DTYPES[name]), np.random.default_rng(3)
    sets = [case.inputs(rng) for _ in range(SETS[name] if case.elementwise else 1)]
    arrays = [
        np.concatenate(parts, axis=-1).astype(dtype) if len(parts) > 1 else parts[0].astype(dtype)
        for parts in zip(*sets, strict=True)
    ]
    largest = np.asarray(genesis.finfo(getattr(genesis, name)).max / 4, dtype)
    arrays = [np.where(np.isfinite(x.astype(np.float64)), x, largest) for x in arrays]
    return _worst(case, arrays, name) if case.elementwise and name == "float32" else arrays


def _worst(case: Case, arrays: list[Any], name: str) -> list[Any]:
    """Of many numbers those where an op, or PyTorch's, is farthest from what the op is in float64."""
    near = _in_genesis(case, [a.astype(np.float64) for a in arrays])
    least = _least(case, arrays, near)
    picked: list[Any] = []
    for result in (_in_genesis(case, arrays), _in_torch(case, arrays, name)):
        away = np.where(np.isnan(near), -1.0, ulps(result, near, np.float32, least))
        picked.append(np.argsort(away, axis=None)[-PICKED:])
    indices = np.concatenate(picked)
    return [a.reshape(-1)[indices].reshape(20, -1) for a in arrays]


def _in_genesis(case: Case, arrays: list[Any]) -> Any:
    return case.call(genesis, genesis.nn.functional, *[wrap(x) for x in arrays])._array.astype(np.float64)


def measure(case: Case, name: str) -> Row:
    dtype = np.dtype(DTYPES[name])
    arrays = _points(case, name)
    exact = _exact_value(case, arrays)
    least = _least(case, arrays, exact)
    ours, peers = [], []
    for layout in LAYOUTS:
        placed, same = [in_layout(x, layout) for x in arrays], ...
        if case.elementwise and layout == "large":
            placed = [np.concatenate([x] * (1 + 10_000 // x.size)) for x in placed]
            same = slice(-len(exact), None)
        ours.append(_error(_in_genesis(case, placed)[same], exact, dtype, least))
        try:
            peers.append(_error(_in_torch(case, placed, name)[same], exact, dtype, least))
        except RuntimeError:  # not for this dtype
            peers.append(0.0)
    return Row(case.name, name, ours, peers)


def _number(value: float) -> str:
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def short_table(rows: list[Row]) -> str:
    """One row for each op: the worst of all layouts."""
    kinds = list(DTYPES)
    lines = [
        "| op | " + " | ".join(f"{k} | PyTorch" for k in kinds) + " | |",
        "| --- |" + " ---: |" * (2 * len(kinds)) + " --- |",
    ]
    for name in dict.fromkeys(row.name for row in rows):
        mine = {row.dtype: row for row in rows if row.name == name}
        cells = [_number(max(errors)) for kind in kinds for errors in (mine[kind].ours, mine[kind].peers)]
        lines.append(
            f"| {name} | " + " | ".join(cells) + f" | {'met' if all(row.met for row in mine.values()) else 'not met'} |"
        )
    return "\n".join(lines)


def time_table(names: list[str] | None, count: int = 1_000_000, rounds: int = 7) -> str:
    """Nanoseconds of processor time for an element, the least of several rounds in turns."""
    lines = ["| op | float32, ns | PyTorch | ratio | float64, ns | PyTorch | ratio |", "| --- |" + " ---: |" * 6]
    for case in cases():
        if not case.elementwise or (names and case.name not in names):
            continue
        cells = [case.name]
        for dtype in ("float32", "float64"):
            rng = np.random.default_rng(3)
            flat = [rng.permutation(np.resize(x, count)).astype(dtype) for x in case.inputs(rng)]
            ours, peers = [wrap(x) for x in flat], [torch.from_numpy(x) for x in flat]
            times: tuple[list[float], list[float]] = [], []
            for _ in range(rounds):
                for spent, lib, xs in ((times[0], genesis, ours), (times[1], torch, peers)):
                    begun = time.thread_time()
                    case.call(lib, lib.nn.functional, *xs)
                    spent.append((time.thread_time() - begun) / count * 1e9)
            a, b = min(times[0]), min(times[1])
            cells += [f"{a:.2f}", f"{b:.2f}", f"{a / b:.2f}"]
        lines.append(f"| {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write benchmarks/accuracy.md")
    parser.add_argument("--only", nargs="*", default=None, help="names of ops, or dtypes")
    parser.add_argument("--times", action="store_true", help="measure times instead, of elementwise ops")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    if options.times:
        found = time_table(options.only)
        if options.write:
            write_section(
                "Times of elementwise ops",
                "Written by `python benchmarks/accuracy.py --times --write`: one million elements over the domain of each op, one thread.\n\n"
                + found,
            )
        return
    rows = []
    print("| op | dtype | " + " | ".join(LAYOUTS) + " | PyTorch's worst | |\n| --- | --- |" + " ---: |" * 6 + " --- |")
    for case in cases():
        for name in DTYPES:
            if options.only and not {case.name, name} & set(options.only):
                continue
            row = measure(case, name)
            rows.append(row)
            print(
                f"| {row.name} | {name} | "
                + " | ".join(map(_number, row.ours))
                + f" | {_number(max(row.peers))} | {'met' if row.met else 'not met'} |",
                flush=True,
            )
    missed = [f"{row.name} {row.dtype}" for row in rows if not row.met]
    print(f"\n{len(rows) - len(missed)} of {len(rows)} met" + (f"; not met: {', '.join(missed)}" if missed else ""))
    if options.write:
        head = (
            "# Accuracy\n\nWritten by `python benchmarks/accuracy.py --write`: the largest error of each op, in "
            "units of the last place of its exact result, over "
            f"{len(LAYOUTS)} layouts ({', '.join(LAYOUTS)}). Half a unit is rounding alone. Met: in each layout at "
            "most "
            f"{BAR:g} units, or PyTorch's error on the same numbers. The head of the script says what a unit is "
            "where terms of both signs are added.\n\n"
            f"Python {platform.python_version()}, NumPy {np.__version__}, PyTorch {torch.__version__}, "
            f"{platform.machine()}.\n\n"
        )
        Path(__file__).with_name("accuracy.md").write_text(head + short_table(rows) + "\n")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
