"""Kernels are at most two units of the last place from the exact result, where NumPy's loops, or the formula in steps, are not."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import genesis
import genesis.nn.functional as F
from genesis.core.graph.tensor import wrap
from genesis.testing.precision import ulps

FLOAT32 = {
    "exp": (-80, 80), "exp2": (-120, 127), "expm1": (-80, 80), "log": (1e-3, 3), "log2": (1e-3, 3), "log10": (1e-3, 3), "tan": (-100, 100), "asin": (-1, 1),
    "atan": (-3, 3), "cosh": (-80, 80), "lgamma": (-20, 30), "logit": (0.001, 0.999), "sigmoid": (-100, 20), "erfc": (-3, 9), "acos": (-1, 1), "log1p": (-0.9, 3),
}  # fmt: skip
ACTIVATIONS = {
    "silu": (-60, 30),
    "mish": (-60, 30),
    "softplus": (-60, 30),
    "tanhshrink": (-4, 4),
    "logsigmoid": (-30, 60),
    "selu": (-20, 5),
    "elu": (-20, 5),
}


def points(low, high, count=100_000):
    rng = np.random.default_rng(0)
    return np.concatenate(
        [rng.uniform(low, high, count), np.geomspace(1e-30, 1, 500) * high, np.geomspace(1e-30, 1, 500) * low]
    )


@pytest.mark.parametrize("name", [*FLOAT32, *ACTIVATIONS])
def test_float32_is_float64_rounded(name):
    call, limits = (getattr(genesis, name), FLOAT32[name]) if name in FLOAT32 else (getattr(F, name), ACTIVATIONS[name])
    x = points(*limits).astype(np.float32)
    for array in (x, x[::-3], x[:7], x[:5000]):  # long, with another step, short, one block
        exact = call(wrap(array.astype(np.float64))).numpy()
        assert np.max(ulps(call(wrap(array)).numpy(), exact, np.float32), where=np.isfinite(exact), initial=0) <= 2


def sigmoid(x):
    return 1 / (1 + mpmath.exp(-x))


EXACT = {
    "erfc": (genesis.erfc, mpmath.erfc, (-3, 26)),
    "lgamma": (genesis.lgamma, lambda x: mpmath.log(abs(mpmath.gamma(x))), (-30, 20)),
    "lgamma between its zeros": (genesis.lgamma, lambda x: mpmath.log(abs(mpmath.gamma(x))), (-4, 3)),
    "sigmoid": (genesis.sigmoid, sigmoid, (-60, 40)),
    "silu": (F.silu, lambda x: x * sigmoid(x), (-60, 40)),
    "mish": (F.mish, lambda x: x * mpmath.tanh(mpmath.log1p(mpmath.exp(x))), (-60, 40)),
}


@pytest.mark.skipif(
    np.finfo(np.longdouble).eps == np.finfo(np.float64).eps, reason="there is no longer format to compute in"
)
@pytest.mark.parametrize("name", EXACT)
def test_float64(name):
    call, exact, limits = EXACT[name]
    x = points(*limits, 3000)
    x = x[(np.abs(x) > 1e-25) & (x != np.round(x))]
    with mpmath.workdps(40):
        want = [exact(mpmath.mpf(v)) for v in x.tolist()]
        away = [
            float(abs(mpmath.mpf(a) - b) / float(np.spacing(abs(float(b)))))
            for a, b in zip(call(wrap(x)).tolist(), want, strict=True)
        ]
    assert max(away) <= 2


@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2"])
def test_sums_of_powers_far_apart(name):
    """Units of the larger operand; taking the difference in float64 alone costs 19 of them."""
    rng = np.random.default_rng(0)
    x, y = (
        rng.uniform(-80, 80, 20_000),
        np.concatenate([rng.uniform(-80, 80, 10_000), -np.exp(rng.uniform(-30, 1, 10_000))]),
    )
    wide = [v.astype(np.longdouble) for v in (x, y)]
    exact = getattr(np, name)(*wide)
    found = getattr(genesis, name)(wrap(x), wrap(y)).numpy()
    assert ulps(found, exact, np.float64, np.abs(np.maximum(*wide))).max() <= 4


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", [lambda x: x, lambda x: np.ascontiguousarray(x.T).T, lambda x: x[::-1, ::-1]])
def test_normalisations(layout, dtype):
    x = layout(np.random.default_rng(0).normal(3.0, 1.0, (300, 200)).astype(dtype))
    wide = x.astype(np.longdouble)
    away = wide - wide.mean(-1, keepdims=True)
    standard = away / np.sqrt((away * away).mean(-1, keepdims=True) + np.longdouble(1e-5))
    power = np.exp(wide - wide.max(-1, keepdims=True))
    bar = 0.51 if dtype == np.float32 else 3
    floor = float(np.abs(standard).max()) / 64
    assert ulps(F.layer_norm(wrap(x), (200,)).numpy(), standard, dtype, floor).max() <= bar
    assert ulps(F.batch_norm(wrap(x.T), None, None, training=True).numpy(), standard.T, dtype, floor).max() <= bar
    root = np.sqrt((wide * wide).mean(-1, keepdims=True) + np.longdouble(1e-5))
    assert ulps(F.rms_norm(wrap(x), (200,), eps=1e-5).numpy(), wide / root, dtype).max() <= 2
    assert ulps(genesis.softmax(wrap(x), 1).numpy(), power / power.sum(-1, keepdims=True), dtype).max() <= (
        0.51 if dtype == np.float32 else 8
    )
