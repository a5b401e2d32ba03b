"""Compiled loops: as exact as promised, right at the ends of the line, and the same bits in every layout."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import pathlib
import signal
import threading

import mpmath
import numpy as np
import pytest

import genesis
import genesis.nn.functional as F
from genesis.core.call.op import REGISTRY
from genesis.core.graph.tensor import wrap
from genesis.kernels.cpu import attention, compiled
from genesis.kernels.llvm import activations, functions, loops, native
from genesis.testing import Maker, check_kernel
from genesis.testing.opcheck import sample_dtypes, samples_of
from genesis.testing.precision import ulps

pytestmark = pytest.mark.skipif(not loops.available(), reason="no llvmlite, or a processor without fma")

PRIMITIVES = (*compiled.ONLY_FLOAT32, *compiled.BOTH, *compiled.CHOICES, "times_sigmoid", "rsqrt")
KINDS = {"float": np.float32, "double": np.float64}


@pytest.fixture
def always(monkeypatch):
    """Every array is large."""
    monkeypatch.setitem(compiled.LARGE, "elements", 1)
    monkeypatch.setattr(attention, "LEAST", 1)


ROWS = (
    "softmax",
    "log_softmax",
    "standardized",
    "layer_norm",
    "rms_norm",
    "group_norm",
    "scaled_dot_product_attention",
)


@pytest.mark.parametrize("name", [*PRIMITIVES, *compiled.FUSED, *ROWS])
def test_a_loop_is_what_its_op_means(always, name):
    op = REGISTRY[name]
    for dtype in sample_dtypes(op):
        for layout in ("contiguous", "strided"):
            for i in range(len(samples_of(op, Maker(dtype)))):
                make = Maker(dtype, seed=i, layout=layout, requires_grad=dtype.is_floating_point or dtype.is_complex)
                check_kernel(op, samples_of(op, make)[i])


# ---- exact


def _sigmoid(x):
    return 1 / (1 + mpmath.exp(-x))


def _tanh_rest(x):
    with mpmath.workdps(120):
        return x - mpmath.tanh(x)


def _phi(x):
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


EXACT = {
    "exp": (mpmath.exp, -740, 709, 2),
    "exp2": (lambda x: mpmath.mpf(2) ** x, -1070, 1023, 2),
    "expm1": (mpmath.expm1, -60, 709, 2),
    "log": (mpmath.log, 0, 1e300, 2),
    "log2": (lambda x: mpmath.log(x) / mpmath.log(2), 0, 1e300, 2),
    "log10": (mpmath.log10, 0, 1e300, 2),
    "log1p": (mpmath.log1p, -0.999, 1e300, 2),
    "sin": (mpmath.sin, -1e9, 1e9, 1),
    "cos": (mpmath.cos, -1e9, 1e9, 1),
    "erf": (mpmath.erf, -8, 8, 1),
    "erfc": (mpmath.erfc, -8, 26, 2),
    "erfinv": (mpmath.erfinv, -0.9999999, 0.9999999, 2.5),
    "normal_cdf": (_phi, -37, 10, 2),
    "sigmoid": (_sigmoid, -700, 700, 2),
    "silu": (lambda x: x * _sigmoid(x), -700, 700, 2),
    "log1pexp": (lambda x: mpmath.log1p(mpmath.exp(x)), -700, 700, 2),
    "logit": (lambda x: mpmath.log(x / (1 - x)), 0, 0.9999, 2),
    "tanh_rest": (_tanh_rest, -1e5, 1e5, 3),
    "gelu": (lambda x: x * _phi(x), -36, 1e5, 3),
    "rsqrt": (lambda x: 1 / mpmath.sqrt(x), 0, 1e300, 2),
}


def points(low, high, count):
    rng = np.random.default_rng(0)
    parts = [rng.uniform(max(low, -30.0), min(high, 30.0), count)]
    parts += [np.exp(rng.uniform(np.log(1e-30), np.log(high), count // 2))]
    parts += [-np.exp(rng.uniform(np.log(1e-30), np.log(-low), count // 2))] if low < 0 else []
    return np.concatenate(parts)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", EXACT)
def test_exactness(name, kind):
    exact, low, high, bar = EXACT[name]
    dtype = KINDS[kind]
    with np.errstate(all="ignore"):
        x = points(low, min(high, 1e38) if kind == "float" else high, 500).astype(dtype)
        found = compiled._ufunc(name, np.dtype(dtype).char)(x)
    with mpmath.workdps(40):
        want = np.array([np.longdouble(mpmath.nstr(exact(mpmath.mpf(v)), 25)) for v in x.tolist()])
    assert ulps(found, want, dtype).max() <= (0.75 if kind == "float" else bar)


def test_the_gradient_of_gelu_in_float32():
    """It is computed in float32: to two units of numbers about 1, and of its own size where it is small on the left."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=20000) * 4, [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e30, 1e30]])
    g = rng.normal(size=x.shape).astype(np.float32)
    x = x.astype(np.float32)
    with np.errstate(invalid="ignore"):
        found = compiled._ufunc("gelu_gradient", "f")(g, x)
        want = compiled._ufunc("gelu_gradient", "d")(g.astype(np.float64), x.astype(np.float64))
    np.testing.assert_allclose(found, want, rtol=0, atol=3e-7 * np.abs(g).max())
    left = (x < -2) & (x > -12)
    np.testing.assert_allclose(found[left], want[left], rtol=1e-5)


def test_angles_beyond_reach_are_the_c_librarys():
    x = np.array([1e30, -1e22, 3e300, 2.0**30, 2.0**31, 1e5, 710.0, 0.5, 2.0])
    with mpmath.workdps(400), np.errstate(all="ignore"):
        for name in ("sin", "cos"):
            want = [float(getattr(mpmath, name)(mpmath.mpf(v))) for v in x.tolist()]
            np.testing.assert_allclose(compiled._ufunc(name, "d")(x), want, rtol=3e-16)
            short = x[:1].astype(np.float32)
            exact = float(getattr(mpmath, name)(mpmath.mpf(float(short[0]))))
            np.testing.assert_allclose(compiled._ufunc(name, "f")(short), [exact], rtol=1e-7)


@pytest.mark.parametrize("name", ["relu", "gate", "exp", "hypot"])
def test_threads_take_parts_of_an_array(always, monkeypatch, name):
    op = REGISTRY[name]
    arrays = [np.random.default_rng(i).normal(size=(7, 11, 13)).astype("f") for i in range(len(op.tensors))]
    found = []
    for threads, elements in ((1, 1 << 60), (3, 1)):
        monkeypatch.setattr("genesis.base.threads.get_num_threads", lambda threads=threads: threads)
        monkeypatch.setitem(compiled.LARGE, "for threads", elements)
        found += [op.call(*[wrap(a) for a in arrays]).numpy(), op.call(*[wrap(a.T) for a in arrays]).numpy().T]
    for one in found[1:]:
        np.testing.assert_array_equal(one, found[0])


SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 1e-40, -1e-40, 1e30, -1e30, 88.7, -104.0, 3.0, -3.0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", [n for n in PRIMITIVES if len(REGISTRY[n].tensors) == 1])
def test_the_ends_of_the_line(always, name, dtype):
    """nan, infinities and zeros with their signs come out as they do of the meaning."""
    tiny = [np.finfo(dtype).smallest_subnormal, -np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max]
    x = np.array([*SPECIAL, *tiny], dtype)
    with genesis.testing.meanings_only():
        want = REGISTRY[name].call(wrap(x)).numpy()
    found = REGISTRY[name].call(wrap(x)).numpy()
    np.testing.assert_allclose(found, want, rtol=3e-7 if dtype == np.float32 else 1e-15, atol=0)
    zero = (want == 0) & (found == 0)
    np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(want[zero]))


ACTIVATIONS = {name: getattr(F, name) for name in compiled.FUSED} | {
    "gelu by tanh": lambda x: F.gelu(x, approximate="tanh")
}


@pytest.mark.parametrize("dtype", [genesis.float32, genesis.float64])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_the_ends_of_the_line_of_activations(name, dtype):
    """As those of the meaning; gradients have their limits there, or are nan."""
    function = ACTIVATIONS[name]
    x = genesis.tensor(SPECIAL, dtype=dtype, requires_grad=True)
    with genesis.testing.meanings_only():
        want = function(x.detach()).numpy()
        beside = genesis.tensor([-80.0, 80.0], dtype=dtype, requires_grad=True)
        left, right = genesis.autograd.grad(function(beside).sum(), beside)[0].tolist()
        near = x.detach().clamp(-80, 80).requires_grad_()
        slopes = genesis.autograd.grad(function(near).sum(), near)[0].numpy()
    y = function(x)
    np.testing.assert_allclose(y.detach().numpy(), want, rtol=3e-7 if dtype is genesis.float32 else 4e-15, atol=1e-300)
    gradients = genesis.autograd.grad(y.sum(), x)[0].numpy()
    for at, slope, expected in zip(SPECIAL, gradients, slopes, strict=True):
        if np.isinf(at):
            assert np.isnan(slope) or slope == pytest.approx(right if at > 0 else left, abs=1e-30), at
        else:
            np.testing.assert_allclose(slope, expected, rtol=1e-6, atol=1e-30, err_msg=str(at))


@pytest.mark.parametrize("name", ["hypot", "fmod"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_ends_of_the_plane(always, name, dtype):
    line = np.array([*SPECIAL, np.finfo(dtype).max, 5.3, -7.9, 1e-20, np.finfo(dtype).smallest_subnormal], dtype)
    x, y = (a.ravel() for a in np.meshgrid(line, line))
    with np.errstate(all="ignore"):
        want = getattr(np, name)(x, y)
    found = getattr(genesis, name)(wrap(x), wrap(y)).numpy()
    np.testing.assert_allclose(found, want, rtol=0 if name == "fmod" else 3e-7 if dtype == np.float32 else 4e-16)
    zero = want == 0
    np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(want[zero]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_remainders_are_exact(dtype):
    rng = np.random.default_rng(1)
    x = (rng.normal(size=5000) * np.exp(rng.uniform(-5, 60, 5000))).astype(dtype)
    y = (rng.normal(size=5000) * np.exp(rng.uniform(-5, 5, 5000))).astype(dtype)
    x[:500] = y[:500] * rng.integers(-1000, 1000, 500)  # about whole quotients
    np.testing.assert_array_equal(compiled._ufunc("fmod", np.dtype(dtype).char)(x, y), np.fmod(x, y))


# ---- layouts


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [0, 1, 2, 7, 15, 16, 17, 100, 1001])
def test_the_same_bits_in_every_layout(kind, n):
    dtype = KINDS[kind]
    loop = compiled._ufunc("normal_cdf", np.dtype(dtype).char)
    x = np.random.default_rng(0).normal(size=(n, 3)).astype(dtype)
    want = loop(x)
    np.testing.assert_array_equal(loop(x[::-1]), want[::-1])
    np.testing.assert_array_equal(loop(x[:, ::2]), want[:, ::2])
    np.testing.assert_array_equal(loop(x.T), want.T)
    np.testing.assert_array_equal(loop(np.broadcast_to(x[:, :1], (n, 5))), np.broadcast_to(want[:, :1], (n, 5)))
    unaligned = np.zeros(x.nbytes + 1, np.uint8)[1:].view(dtype).reshape(x.shape)
    unaligned[...] = x
    np.testing.assert_array_equal(loop(unaligned), want)
    out = x.copy()
    assert loop(out, out=out) is out
    np.testing.assert_array_equal(out, want)
    if n > 1:
        shifted = np.concatenate([x.ravel(), x.ravel()[:1]])
        loop(shifted[:-1], out=shifted[1:])  # overlapping
        np.testing.assert_array_equal(shifted[1:], want.ravel())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["gelu", "sin", "log1pexp"])
def test_the_same_bits_for_vectors_of_any_length(monkeypatch, kind, name):
    x = np.random.default_rng(0).normal(size=1001).astype(KINDS[kind]) * 9
    want = compiled._ufunc(name, x.dtype.char)(x)
    for width in (16, 32, 64):
        monkeypatch.setattr(loops, "width", lambda width=width: width)
        loop = loops.ufunc(f"{name}_{kind}_{width}", getattr(functions, name, None) or getattr(activations, name), kind)
        np.testing.assert_array_equal(loop(x), want)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 7, 16, 33])
def test_numbers_beside_arrays(kind, n):
    dtype = KINDS[kind]
    loop = compiled._ufunc("leaky_relu", np.dtype(dtype).char)
    x = np.random.default_rng(0).normal(size=n).astype(dtype)
    np.testing.assert_array_equal(loop(x, 0.25), np.where(x > 0, x, x * 0.25))
    np.testing.assert_array_equal(loop(dtype(-2), np.abs(x)), -2 * np.abs(x))
    np.testing.assert_array_equal(
        loop(x[:, None], np.abs(x)), np.where(x[:, None] > 0, x[:, None], x[:, None] * np.abs(x))
    )


# ---- rows


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 100, 1000])
def test_rows_of_any_length(always, n):
    x = (np.random.default_rng(0).normal(size=(3, 4, n)) * 5).astype(np.float32)
    wide = x.astype(np.longdouble)
    power = np.exp(wide - wide.max(-1, keepdims=True))
    share = power / power.sum(-1, keepdims=True)
    away = wide - wide.mean(-1, keepdims=True)
    standard = away / np.sqrt((away * away).mean(-1, keepdims=True) + np.longdouble(1e-5))
    for layout in (lambda a: a, lambda a: a[::-1, ::2], lambda a: np.ascontiguousarray(a.T).T):
        given = wrap(layout(x))
        assert ulps(genesis.softmax(given, -1).numpy(), layout(share), np.float32).max() <= 0.51
        assert ulps(genesis.log_softmax(given, -1).numpy(), np.log(layout(share)), np.float32, 0.1).max() <= 0.51
        found = F.layer_norm(given, (n,)).numpy()
        assert ulps(found, layout(standard), np.float32, float(np.abs(standard).max()) / 64 or 1).max() <= 0.51


def test_infinities_and_nan_in_rows(always):
    inf, nan = np.inf, np.nan
    x = np.array([[1, -inf, 2], [-inf, -inf, -inf], [inf, 1, 2], [nan, 1, 2], [3e38, -3e38, 0]], np.float32)
    for call in (genesis.softmax, genesis.log_softmax):
        with genesis.testing.meanings_only():
            want = call(wrap(x), 1).numpy()
        np.testing.assert_allclose(call(wrap(x), 1).numpy(), want, rtol=1e-6)


def test_a_constant_row_has_no_spread(always):
    x = genesis.full((4, 100), 0.1)
    assert F.layer_norm(x, (100,)).abs().max() == 0


# ---- who takes what


def test_machines_without_llvmlite_take_the_other_way(monkeypatch):
    monkeypatch.setattr(loops, "available", lambda: False)
    *tables, _ = REGISTRY["erf"].kernel.__defaults__
    kept = [dict(table) for table in tables]
    for size, table in zip((10, compiled.LARGE["elements"]), tables, strict=True):
        table.clear()
        x = genesis.ones(size)
        assert genesis.erf(x)[0] == pytest.approx(0.8427008) and table == {"f": table.before}
        assert F.gelu(x)[0] == pytest.approx(0.8413447)
    for table, loop in zip(tables, kept, strict=True):
        table.clear()
        table.update(loop)


@pytest.mark.parametrize("op", ["exp", "log", "sigmoid", "erf", "sin", "tanh_gradient", "hypot"])
def test_an_element_has_the_same_bits_among_few_and_among_many(op):
    kernel, count = REGISTRY[op].kernel, len(REGISTRY[op].tensors)
    xs = np.random.default_rng(5).uniform(0.1, 0.9, (count, compiled.LARGE["elements"] + 3)).astype(np.float32)
    assert np.array_equal(kernel(*xs)[:5], kernel(*[x[:5] for x in xs]))


def test_a_wrong_argument_is_explained():
    with pytest.raises(ValueError, match="gelu: approximate must be"):
        F.gelu(genesis.ones(10_000), approximate="fast")


@pytest.mark.parametrize(
    "call", [F.gelu, lambda x: F.gelu(x, approximate="tanh"), lambda x: F.leaky_relu(x, 0.2), F.silu, F.elu]
)
def test_a_trace_replays_the_loops(call):
    x, w = genesis.randn(100, 100), genesis.nn.Parameter(genesis.ones(100))

    def step(x):
        return genesis.autograd.grad(call(x * w).sum(), [w])[0]

    graph = genesis.jit.trace(step, x).verify()
    np.testing.assert_array_equal(graph.replay(x).numpy(), step(x).numpy())
    fused = [node.op for node in graph.nodes if node.op.startswith("fused.")]
    assert len(fused) == 2 and fused[1] == fused[0] + ".backward"


def test_a_program_is_refused_where_there_is_no_llvmlite(monkeypatch):
    x = genesis.randn(100, 100)
    graph = genesis.jit.trace(F.gelu, x)
    want = F.gelu(x)
    monkeypatch.setattr(loops, "available", lambda: False)
    compiled._ufunc.cache_clear()
    with pytest.raises(RuntimeError, match="no llvmlite here"):
        graph.replay(x)
    np.testing.assert_allclose(genesis.jit.decomposition(graph).replay(x).numpy(), want.numpy(), rtol=1e-6, atol=1e-7)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_forked_while_another_thread_compiles_can_compile():
    stop = threading.Event()
    code = loops.loop("doubled", lambda x: x + x, "float")

    def compile_on():
        while not stop.is_set():
            native.address("doubled", code)

    thread = threading.Thread(target=compile_on)
    thread.start()
    try:
        for _ in range(5):
            child = os.fork()
            if child == 0:
                signal.alarm(60)
                native.address("doubled", code)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        thread.join()


@pytest.mark.slow
def test_the_tables_are_those_of_the_script():
    path = str(pathlib.Path(__file__).parents[2] / "scripts" / "minimax")
    loader = importlib.machinery.SourceFileLoader("minimax", path)
    script = importlib.util.module_from_spec(importlib.util.spec_from_loader("minimax", loader))
    loader.exec_module(script)
    for name, _, f, low, high, weight, degrees in script.TABLES:
        if name in ("SIN", "SHORT_LOG"):
            p, _ = script.minimax(f, low, high, degrees[0], weight)
            assert [float(c) for c in reversed(p)] == list(getattr(functions.tables, name))
