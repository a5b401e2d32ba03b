"""Kernels of composites, of indices and of whole steps: machine code against calls."""

from __future__ import annotations

import math

import numpy as np
import pytest
from native_runs import check, ops_left_to_the_host, traced

import genesis
import genesis.nn.functional as F
from genesis import jit, nn
from genesis.autograd import grad
from genesis.jit.lowering import regions, vectors
from genesis.jit.lowering.code import module
from genesis.jit.lowering.step import Step
from genesis.kernels.llvm import loops, native
from genesis.testing import assert_close
from genesis.testing.kernels import meanings_only

pytestmark = pytest.mark.skipif(not loops.available(), reason="there is no llvmlite")


def numbers(*shape, requires_grad=True):
    values = np.random.default_rng(7).normal(size=shape).astype(np.float32)
    return genesis.tensor(values, requires_grad=requires_grad)


def labels(count, n):
    return genesis.tensor(np.random.default_rng(8).integers(0, n, count))


PAIRS = genesis.tensor([[1, 2], [0, 3], [1, 1], [2, 2]])


def and_gradient(function):
    """The value of a function, and the gradient of its sum of squares for the first argument."""

    def both(x, *rest):
        y = function(x, *rest)
        return [y, *grad(y.square().sum(), [x])]

    return both


INDICES = {
    "embedding": (lambda w, i: F.embedding(i, w), numbers(5, 70), PAIRS),
    "gather of columns": (lambda x, i: x.gather(1, i), numbers(4, 5), PAIRS),
    "gather of rows": (lambda x, i: x.gather(0, i), numbers(4, 5), PAIRS),
    "scatter_add": (lambda x, i: x.scatter_add(1, i, x * 2), numbers(4, 5), PAIRS),
    "scatter_add of rows": (lambda x, i: x.scatter_add(0, i, x * 2), numbers(4, 5), PAIRS),
    "index_select": (lambda x: genesis.index_select(x, 0, genesis.tensor([1, 1, 3])), numbers(4, 5)),
    "slices": (lambda x: x[1:3, ::2], numbers(6, 7)),
    "nll_loss": (lambda x, t: F.nll_loss(F.log_softmax(x, 1), t), numbers(64, 30), labels(64, 30)),
    "cross_entropy": (F.cross_entropy, numbers(64, 30), labels(64, 30)),
    "ignored classes": (lambda x, t: F.cross_entropy(x, t, ignore_index=3), numbers(64, 30), labels(64, 30)),
}


@pytest.mark.parametrize("name", INDICES)
def test_indices(name):
    function, *args = INDICES[name]
    phases = check(traced(and_gradient(function), *args), args, assert_close, name)
    assert set(ops_left_to_the_host(phases)) <= {"check_range"}


@pytest.mark.parametrize("shape", [(10, 13), (100, 130)])
def test_activations(shape):
    x = numbers(*shape)
    functions = [F.gelu, lambda x: F.gelu(x, approximate="tanh"), F.silu, F.elu, F.celu, F.leaky_relu, F.hardswish, F.hardsigmoid]  # fmt: skip

    def function(x):
        return [y for f in functions for y in and_gradient(f)(x)]

    assert ops_left_to_the_host(check(traced(function, x), (x,), assert_close)) == []


@pytest.mark.parametrize("norm", [F.layer_norm, F.rms_norm], ids=lambda f: f.__name__)
@pytest.mark.parametrize("size", [5, 16, 45])
def test_norms(norm, size):
    x, w = numbers(3, 7, size), numbers(size)

    def function(x, w):
        y = norm(x, (size,), w)
        return [y, *grad((y * y.cos().detach()).sum(), [x, w])]

    assert ops_left_to_the_host(check(traced(function, x, w), (x, w), assert_close)) == []


def test_a_class_that_there_is_not_is_an_error():
    x, t = numbers(4, 3, requires_grad=False), labels(4, 3)
    step = Step(traced(F.cross_entropy, x, t).program)
    with pytest.raises(IndexError, match="cross_entropy"):
        step.run((x._array, np.array([0, 3, 1, 2])))


def training_step(optimizer, clip):
    genesis.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 1))
    stepper = optimizer(model.parameters())
    x, y = numbers(32, 2, requires_grad=False), numbers(32, 1, requires_grad=False)

    def step(x, y):
        stepper.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        stepper.step()
        return loss

    step(x, y)
    return jit.optimized(jit.trace(step, x, y)), (x, y)


OPTIMIZERS = {
    "SGD": lambda p: genesis.optim.SGD(p, 0.1),
    "momentum": lambda p: genesis.optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.01),
    "Adam": lambda p: genesis.optim.Adam(p, 1e-3, amsgrad=True),
    "AdamW": lambda p: genesis.optim.AdamW(p, 1e-3),
    "RMSprop": lambda p: genesis.optim.RMSprop(p, 1e-3),
    "Adagrad": lambda p: genesis.optim.Adagrad(p, 1e-2),
}


@pytest.mark.parametrize("clip", [False, True])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_steps(name, clip):
    graph, args = training_step(OPTIMIZERS[name], clip)
    phases = check(graph, args, assert_close, name)
    assert ops_left_to_the_host(phases) == []
    assert len(phases) == 1


def test_one_step_of_all_parameters_is_one_kernel():
    genesis.manual_seed(0)
    model = nn.Sequential(nn.Linear(40, 300), nn.Linear(300, 200), nn.Linear(200, 3))
    stepper, x = genesis.optim.AdamW(model.parameters(), 1e-3), numbers(8, 40, requires_grad=False)

    def step(x):
        stepper.zero_grad()
        model(x).square().sum().backward()
        stepper.step()

    step(x)
    phases = check(jit.optimized(jit.trace(step, x)), (x,), assert_close)
    last = phases[-1].stages[-1].kernel
    assert len([call for call in phases[-1].calls if call.op == "fused.adam_step"]) >= 3
    assert last.chunks > 1


# ---- attention, products


SIZES = [
    ((2, 3, 64, 32), (2, 3, 64, 32), 32),
    ((3, 130, 40), (3, 70, 40), 24),
    ((2, 3, 9, 8), (2, 3, 9, 8), 8),
    ((2, 1, 16), (2, 40, 16), 5),
    ((1, 1, 200, 64), (1, 1, 200, 64), 64),
]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("query, key, width", SIZES)
def test_attention(query, key, width, causal):
    given = numbers(*query), numbers(*key) * 0.7, numbers(*key[:-1], width)
    given = [x.detach().requires_grad_() for x in given]

    def function(q, k, v):
        y = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return [y, *grad((y * y.cos().detach()).sum(), [q, k, v])]

    assert ops_left_to_the_host(check(traced(function, *given), given, assert_close)) == []


@pytest.mark.parametrize("rows", [64, 200, 520])
def test_attention_whose_scratch_memory_is_in_the_arena(rows):
    x = numbers(2, rows, 3 * 64)

    def gradient(x):
        q, k, v = [t.view(2, rows, 1, 64).transpose(1, 2) for t in x.split(64, 2)]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return y.detach(), *grad((y * y.cos().detach()).sum(), [x])

    compiled = genesis.compile(gradient, fullgraph=True)
    for _ in range(3):
        for actual, expected in zip(compiled(x), gradient(x), strict=True):
            _close(actual.numpy(), expected.numpy(), "compiled")


def test_attention_of_views():
    x = numbers(2, 64, 3 * 96)

    def function(x):
        q, k, v = [t.view(2, 64, 3, 32).transpose(1, 2) for t in x.split(96, 2)]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(2, 64, 96)
        return [y, *grad((y * y.cos().detach()).sum(), [x])]

    assert ops_left_to_the_host(check(traced(function, x), (x,), assert_close)) == []


MASKS = [
    ((2, 3, 1, 32), 128, 32, (128,)),
    ((2, 3, 1, 32), 37, 8, (2, 1, 1, 37)),
    ((5, 3, 24), 40, 40, (5, 3, 40)),
    ((2, 3, 4, 16), 10, 21, (3, 1, 10)),
    ((4, 17), 19, 3, (4, 1)),
    ((2, 2, 5, 16), 33, 16, (5, 33)),  # too many rows for a kernel of their own
]


@pytest.mark.parametrize("width", [16, 64])
@pytest.mark.parametrize("query, columns, size, shape", MASKS)
def test_attention_of_few_rows_with_a_mask(query, columns, size, shape, width, monkeypatch):
    """Some see nothing, and give zeros."""
    monkeypatch.setattr(loops, "width", lambda: width)
    lead = query[:-2]
    given = numbers(*query), numbers(*lead, columns, query[-1]), numbers(*lead, columns, size)
    given = [x.detach().requires_grad_() for x in given]
    seen = np.random.default_rng(7).random(shape) < 0.5
    seen[:1] = False
    mask = genesis.tensor(seen)

    def function(q, k, v, seen):
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        return [y, *grad((y * y.cos().detach()).sum(), [q, k, v])]

    phases = check(traced(function, *given, mask), (*given, mask), _close)
    assert ops_left_to_the_host(phases) == []
    with meanings_only():
        expected = function(*given, mask)
    for actual, meant in zip(function(*given, mask), expected, strict=True):
        _close(actual.detach().numpy(), meant.detach().numpy(), "eager")


def test_a_token_looks_at_a_cache_in_one_kernel():
    q, k, v = numbers(1, 6, 1, 32), numbers(1, 6, 128, 32), numbers(1, 6, 128, 32)
    q, k, v = (x.detach() for x in (q, k, v))
    given = q, k, v, genesis.arange(128) < 70
    phases = check(traced(F.scaled_dot_product_attention, *given), given, _close)
    assert [phase.chunks for phase in phases][:1] == [6] and len(phases) <= 2


def test_what_is_no_number_goes_to_the_heads_that_see_it():
    q, k, v = (numbers(2, 1, 16).detach(), numbers(2, 20, 16).detach(), numbers(2, 20, 16).detach())
    k[0, 3, 2], v[1, 5, 7] = math.nan, math.inf
    compiled = genesis.compile(lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m))
    seen = genesis.ones(20, dtype=genesis.bool)
    for _ in range(3):
        y = compiled(q, k, v, seen)
    assert y[0].isnan().all() and y[1, 0, 7] == math.inf and y[1].isfinite().sum() == 15
    seen[3] = False
    assert compiled(q, k, v, seen)[0].isfinite().all()


def _close(actual, expected, what):
    """Sums of so many products, in another order."""
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max(initial=1.0), err_msg=what)


@pytest.mark.parametrize(
    "a, b",
    [((5, 7), (7, 9)), ((3, 5, 7), (3, 7, 9)), ((3, 1, 5, 7), (4, 7, 50)), ((7,), (7, 9)), ((5, 7), (7,)), ((7,), (7,)),
     ((300, 500), (500, 130)), ((64, 300), (300, 200)), ((130, 17), (17, 33)), ((1, 192), (192, 80)), ((4, 0), (0, 7)), ((0, 6), (6, 7))],
)  # fmt: skip
def test_products(a, b):
    x, y = numbers(*a, requires_grad=False), numbers(*b, requires_grad=False)

    def function(x, y):
        outs = [x @ y]
        if x.ndim > 1 and y.ndim > 1:
            rows = y.mT.contiguous()
            outs += [x.mT.contiguous().mT @ y, x @ rows.mT]
            if y.ndim == 2:
                outs.append(F.linear(x, rows, rows[:, :1].sum(1)) if x.shape[-1] else x @ y)
            if x.ndim == 2 == y.ndim:
                outs.append(x.t().contiguous().t() @ rows.t())
        return outs

    assert ops_left_to_the_host(check(traced(function, x, y), (x, y), _close)) == []


def few_rows(batch, m, n, k):
    """Products of few rows with rows: weights as they lie, parts of them, with a bias or none."""
    x, w, b = numbers(*batch, m, k), numbers(*batch, n, k + 3), numbers(n, requires_grad=False)

    def function(x, w):
        outs = [x @ w[..., 3:].mT]
        if not batch:
            outs += [F.linear(x, w[:, 3:], b), F.linear(x, w[:, 3:], b[:1].expand(n)), w[:, 3:] @ x[0]]
        return outs

    return function, x.detach(), w.detach()


@pytest.mark.parametrize("m", [1, 2, 3, 4, 5])
@pytest.mark.parametrize(
    "batch, n, k", [((), 4, 16), ((), 33, 65), ((), 192, 768), ((), 700, 200), ((2, 3), 37, 40), ((5,), 128, 32)]
)
def test_few_rows_times_rows(batch, m, n, k):
    function, x, w = few_rows(batch, m, n, k)
    phases = check(traced(function, x, w), (x, w), _close)
    assert ops_left_to_the_host(phases) == []
    text = "".join([stage.kernel.code for phase in phases for stage in phase.stages])
    assert ("%sums" in text) == (m <= vectors.FEW or not batch)  # a matrix times a vector is one row, too


def test_weights_are_read_once_by_the_dot_products_of_a_row():
    x, w = numbers(1, 192, requires_grad=False), numbers(768, 192, requires_grad=False)
    phases = check(traced(lambda x: F.linear(x, w), x), (x,), _close)
    assert [len(phase.stages) for phase in phases] == [1]  # nothing is copied before
    assert 768 * 192 // (2 * vectors.WORK) < phases[0].chunks <= 768 * 192 // vectors.WORK


@pytest.mark.parametrize("width", [16, 32, 64])
def test_few_rows_with_other_vectors(width, monkeypatch):
    """LLVM divides vectors that the processor does not have."""
    monkeypatch.setattr(loops, "width", lambda: width)
    for m, n, k in ((1, 37, 70), (3, 8, 16), (4, 65, 129)):
        function, x, w = few_rows((), m, n, k)
        check(traced(function, x, w), (x, w), _close)


def test_what_is_no_number_in_few_rows_goes_where_it_belongs():
    w = numbers(20, 40, requires_grad=False)
    w[3, 39], w[7, 0], w[9, 5] = math.nan, math.inf, -math.inf
    out = genesis.compile(lambda x: F.linear(x, w))
    x = genesis.ones(1, 40)
    for _ in range(3):
        y = out(x)[0]
    assert y.isnan().nonzero().flatten().tolist() == [3]
    assert (y[7].item(), y[9].item()) == (math.inf, -math.inf)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int64, np.uint8, np.bool_])
@pytest.mark.parametrize(
    "shape, dim", [((4, 5), 1), ((4, 5), 0), ((4, 5), None), ((), None), ((2, 3, 4), -2), ((3, 70_000), 1)]
)
def test_places_of_extremes(dtype, shape, dim):
    """The first of equals; what is no number is the largest and the smallest."""
    values = np.round(np.random.default_rng(9).normal(size=shape) * 3)
    for k, special in enumerate((0, math.nan, math.inf, -math.inf)):
        if np.dtype(dtype).kind == "f" and values.size > 4:
            values.reshape(-1)[[k, -k - 1]] = special
        x = genesis.tensor(np.abs(values).astype(dtype) if dtype == np.uint8 else values.astype(dtype))
        graph = traced(lambda x: (x.argmax(dim), x.argmin(dim)), x)
        assert ops_left_to_the_host(check(graph, (x,), np.testing.assert_array_equal)) == []


def test_values_at_places_of_extremes_need_no_check():
    x = numbers(6, 40, requires_grad=False)
    assert (
        ops_left_to_the_host(check(traced(lambda x: (*x.max(1), x.gather(1, x.argmin(1, True))), x), (x,), _close))
        == []
    )


# ---- machines


def everything(x, w):
    """A function of many kinds of kernels."""
    y = F.layer_norm(F.linear(x, w), (40,))
    q = y.view(4, 64, 40)
    a = F.scaled_dot_product_attention(q, q, q, is_causal=True).reshape(256, 40)
    z = F.gelu(a).softmax(-1).sin() @ w
    return (
        F.linear(x[:3], w),
        z,
        z.sum(0),
        z.sum(),
        z.norm(),
        genesis.cat([z, z], 1),
        z.t().contiguous(),
        (z > 0).any(1),
        z.double().exp(),
        z.bfloat16(),
    )


def test_without_llvmlite_the_host_computes(monkeypatch):
    monkeypatch.setattr(loops, "available", lambda: False)
    x, w = numbers(256, 30, requires_grad=False), numbers(40, 30, requires_grad=False)
    graph = traced(everything, x, w)
    phases = check(graph, (x, w), assert_close)
    assert not any(phase.stages for phase in phases)
    assert all("llvmlite" in phase.why for phase in phases)


@pytest.mark.parametrize(
    "triple, cpu, width",
    [("x86_64-unknown-linux-gnu", "x86-64-v3", 32), ("x86_64-unknown-linux-gnu", "x86-64-v4", 64),
     ("aarch64-unknown-linux-gnu", "cortex-a76", 16), ("arm64-apple-macosx", "apple-m1", 16)],
)  # fmt: skip
def test_it_assembles_for_other_processors(triple, cpu, width, monkeypatch):
    monkeypatch.setattr(loops, "width", lambda: width)
    x, w = numbers(256, 30, requires_grad=False), numbers(40, 30, requires_grad=False)
    phases = regions.phases(traced(everything, x, w).program)
    text = module(dict((s.kernel.name, s.kernel.code) for phase in phases for s in phase.stages).values())
    llvm = native.binding()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    code = llvm.parse_assembly(text)
    code.verify()
    assembly = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, opt=2).emit_assembly(code)
    assert {16: "fmla", 32: "%ymm", 64: "%zmm"}[width] in assembly


@pytest.mark.parametrize("shape, slopes", [((8, 5, 20, 20), 5), ((8, 5, 20, 20), 1), ((9000,), 1), ((300, 40), 40)])
@pytest.mark.parametrize("dtype", [genesis.float32, genesis.float64])
def test_slopes_of_channels_are_read_and_summed_by_kernels(shape, slopes, dtype):
    def pulled(x, w, g):
        x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
        y = genesis.nn.functional.prelu(x * 2, w)
        return y.detach(), *genesis.autograd.grad(y, [x, w], g)

    args = [genesis.randn(*shape, dtype=dtype), genesis.rand(slopes, dtype=dtype), genesis.randn(*shape, dtype=dtype)]
    run = genesis.compile(pulled)
    run(*args)
    (y, gx, gw), (ey, egx, egw) = run(*args), pulled(*args)
    assert (y == ey).all() and (gx == egx).all()
    terms = (args[0].double() * 2).clamp(max=0).mul(args[2].double()).abs().sum().item()
    assert (gw - egw).abs().max().item() <= genesis.finfo(dtype).eps * terms
    assert "0 left to the host" in str(run.explain())


def test_einsum_is_products_of_matrices():
    def step(x, w, q):
        hidden = genesis.einsum("nd,edh->neh", x, w)
        weights = genesis.einsum("bqhd,bkhd->bhqk", q, q).softmax(-1)
        loss = hidden.square().mean() + genesis.einsum("bhqk,bkhd->bqhd", weights, q).sum()
        return loss, *genesis.autograd.grad(loss, (x, w, q))

    genesis.manual_seed(0)
    given = [genesis.randn(*shape, requires_grad=True) for shape in ((6, 16), (8, 16, 5), (2, 7, 3, 4))]
    run = genesis.compile(step)
    for _ in range(2):
        results = run(*given)
    for mine, expected in zip(results, step(*given), strict=True):
        assert genesis.allclose(mine, expected, 1e-4, 1e-5)
    assert "0 left to the host" in str(run.explain())
