"""Fused kernels in traces: recorded where they run outside of a trace, so that a replay gives the same bits."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
import genesis.nn.functional as F
from genesis import jit, nn
from genesis.core.call.fused import Fused
from genesis.core.call.op import REGISTRY
from genesis.kernels.cpu import compiled, distance
from genesis.kernels.llvm import loops
from genesis.testing import Maker, samples_of

FUSED = [
    op
    for op in REGISTRY.values()
    if op.kind.composed and np.ndarray in op.kernels and not op.written and op.kernels[np.ndarray].infer is not None
    if op.name not in (*compiled.FUSED, "channel_moments", "grid_sample") or op.name == "silu" or loops.available()
]


@pytest.fixture(autouse=True)
def always_compiled(monkeypatch):
    monkeypatch.setitem(compiled.LARGE, "elements", 1)
    monkeypatch.setattr(distance, "LEAST", 1)


def same(a, b):
    assert a.shape == b.shape and a.detach().numpy().tobytes() == b.detach().numpy().tobytes()


def pulled(op, sample, call=None):
    """The op (or ``call`` in its place) and its gradients as a function of its tensors."""
    places = [i for i, x in enumerate(sample.args) if isinstance(x, genesis.Tensor)]
    moving = [i for i in places if sample.args[i].is_floating_point()]

    def f(*tensors):
        args = list(sample.args)
        for i, x in zip(places, tensors, strict=True):
            args[i] = x.detach().requires_grad_() if i in moving else x
        y = (call or op.call)(*args, **sample.kwargs)
        return y.detach(), *genesis.autograd.grad(y, [args[i] for i in moving], y.detach().cos(), allow_unused=True)

    return f, [sample.args[i].detach() for i in places]


@pytest.mark.parametrize("passes", [False, True], ids=["as_traced", "optimized"])
@pytest.mark.parametrize("layout", ["contiguous", "strided"])
@pytest.mark.parametrize("op", FUSED, ids=lambda op: op.name)
def test_replays_are_eager_calls_bit_for_bit(op, layout, passes):
    for i in range(len(samples_of(op, Maker(genesis.float32)))):
        f, tensors = pulled(op, samples_of(op, Maker(genesis.float32, seed=i, layout=layout))[i])
        graph = jit.trace(f, *tensors).verify()
        graph = jit.optimized(graph).verify() if passes else graph
        for x, y in zip(graph.replay(*tensors), f(*tensors), strict=True):
            assert (x is None) == (y is None)
            if x is not None:
                same(x, y)


@pytest.mark.parametrize("op", FUSED, ids=lambda op: op.name)
def test_a_fused_call_and_its_backward_are_one_call_each(op):
    for sample in samples_of(op, Maker(genesis.float32)):
        f, tensors = pulled(op, sample)
        names = [call.op for call in jit.trace(f, *tensors).nodes]
        fused = [name for name in names if name.startswith(f"fused.{op.name}") and not name.endswith("backward")]
        if fused:
            assert len(fused) == names.count(f"{fused[0]}.backward") == 1
            return
    raise AssertionError("no sample is computed by the kernel")


@pytest.mark.parametrize("op", FUSED, ids=lambda op: op.name)
def test_what_a_kernel_gives_is_what_it_says(op):
    """Specs and layout; and that `when` looks at dtypes and shapes only."""
    from genesis.arrays.spec import Spec, spec_of
    from genesis.jit.lowering.layouts import same_layout

    def described(x):
        return spec_of(x) if isinstance(x, np.ndarray) else x

    for i in range(len(samples_of(op, Maker(genesis.float32)))):
        for layout in ("contiguous", "strided"):
            sample = samples_of(op, Maker(genesis.float32, seed=i, layout=layout))[i]
            bound = op.signature.bind(*sample.args, **sample.kwargs)
            bound.apply_defaults()
            arrays = [x._array if isinstance(x, genesis.Tensor) else x for x in bound.arguments.values()]
            ghosts = [
                np.broadcast_to(np.zeros((), a.dtype), a.shape) if isinstance(a, np.ndarray) else a for a in arrays
            ]
            fused = op.kernels[np.ndarray]
            assert fused.when(*arrays) == fused.when(*ghosts)
            if fused.when(*arrays):
                specs = [spec_of(a) if isinstance(a, np.ndarray) else a for a in arrays]
                found = fused.forward_op.kernel(*arrays)
                wanted = fused.forward_op.infer(*specs)
                assert [(a.shape, a.dtype) for a in found] == [(s.shape, s.dtype) for s in wanted]
                assert all(type(a) is np.ndarray and a.flags.owndata for a in found)
                assert all(same_layout(spec_of(a), s) for a, s in zip(found, wanted, strict=True))
                kept = fused.kernel(*arrays)[1]
                given = [arrays[i] for i in fused.tensors]
                for weights in (np.ones_like(found[0]), np.ones((*found[0].shape, 2), np.float32)[..., 1]):
                    grads = fused.gradients(weights, kept, tuple([a is not None for a in given]))
                    laid = [None] * len(given) if fused.laid is None else fused.laid([*map(described, kept)])
                    for g, a, strides in zip(grads, given, laid, strict=True):
                        wanted = None if g is None else Spec(a.shape, a.dtype, strides=strides)
                        assert g is None or (spec_of(g) == wanted and same_layout(spec_of(g), wanted))


@pytest.mark.parametrize("layout", ["contiguous", "strided"])
@pytest.mark.parametrize("op", FUSED, ids=lambda op: op.name)
def test_decomposed_programs_are_the_composition(op, layout, monkeypatch):
    for i in range(len(samples_of(op, Maker(genesis.float32)))):
        f, tensors = pulled(op, samples_of(op, Maker(genesis.float32, seed=i, layout=layout))[i])
        graph = jit.decomposition(jit.trace(f, *tensors)).verify()
        assert not any(call.op.startswith("fused.") for call in graph.nodes)
        with monkeypatch.context() as small:
            small.setitem(compiled.LARGE, "elements", 1000)
            small.setattr(Fused, "choose", lambda *_: None)  # a composition of others is one of their compositions
            for kernel in [each.kernels.get(np.ndarray) for each in REGISTRY.values()]:
                if isinstance(kernel, Fused):
                    small.setattr(kernel, "decides", False)
            composed, _ = pulled(op, samples_of(op, Maker(genesis.float32, seed=i, layout=layout))[i], op.meaning)
            for x, y in zip(graph.replay(*tensors), composed(*tensors), strict=True):
                assert (x is None) == (y is None)
                if x is not None:
                    same(x, y)


def test_a_decomposed_training_step():
    losses = []
    for passes in (lambda graph: graph, lambda graph: jit.optimized(jit.decomposition(graph))):
        _, _, step = transformer()
        step(X, Y)
        graph = passes(jit.trace(step, X, Y)).verify()
        losses.append([graph.replay(X, Y).item() for _ in range(5)])
    assert not any(call.op.startswith("fused.") for call in graph.nodes)
    np.testing.assert_allclose(*losses, rtol=1e-5)


def test_a_backward_without_its_forward_stays():
    w = genesis.ones(8, requires_grad=True)
    y = F.layer_norm(X, (8,), w)
    graph = jit.trace(lambda g: genesis.autograd.grad(y, w, g, retain_graph=True)[0], genesis.ones(2, 3, 8))
    assert [call.op for call in jit.decomposition(graph).nodes] == ["fused.layer_norm.backward"]


def transformer(width=8):
    genesis.manual_seed(0)
    norm, gate, out = nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.Linear(2 * width, 5)
    model = nn.ModuleList([norm, nn.RMSNorm(width), gate, out])
    optimizer = genesis.optim.AdamW(model.parameters(), lr=0.01)

    def step(x, y):
        optimizer.zero_grad()
        h = norm(x)
        h = h + F.scaled_dot_product_attention(h, h, h, is_causal=True)
        logits = out(F.silu(gate(model[1](h)))).reshape(-1, 5)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        return loss

    return model, optimizer, step


X = genesis.tensor(np.random.default_rng(0).normal(size=(2, 3, 8)).astype(np.float32))
Y = genesis.tensor([0, 1, 2, 3, 4, 0])


@pytest.mark.parametrize("passes", [False, True], ids=["as_traced", "optimized"])
def test_training_steps_with_fused_kernels_bit_for_bit(passes):
    losses = []
    for traced in (False, True):
        model, _, step = transformer()
        step(X, Y)
        run = step
        if traced:
            graph = jit.trace(step, X, Y).verify()
            assert sum(call.op.startswith("fused.") for call in graph.nodes) == 10 + len(list(model.parameters()))
            run = (jit.optimized(graph).verify() if passes else graph).replay
        losses.append([run(X, Y).item() for _ in range(5)])
    assert losses[0] == losses[1]


def test_a_stored_program_has_fused_calls(tmp_path):
    program = jit.trace(lambda x: F.layer_norm(x, (8,)), X).program
    program.save(tmp_path / "program")
    same(jit.Program.load(tmp_path / "program").bind().replay(X), F.layer_norm(X, (8,)))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: genesis.vmap(lambda v: F.silu(v))(x),
        lambda x: genesis.func.jvp(F.silu, (x,), (x,))[1],
        lambda x: genesis.func.hessian(lambda v: F.silu(v).sum())(x[0, 0]),
        lambda x: F.silu(x.double()),
        lambda x: F.silu(x.half()),
    ],
)
def test_transforms_and_other_dtypes_see_the_composition(call):
    graph = jit.trace(call, X)
    assert not any(node.op == "fused.silu" for node in graph.nodes)
    same(graph.replay(X), call(X))


def test_second_derivatives_in_a_trace_are_those_of_the_composition():
    def f(x):
        x = x.detach().requires_grad_()
        (g,) = genesis.autograd.grad(F.layer_norm(x, (8,)).cos().sum(), x, create_graph=True)
        return genesis.autograd.grad(g.sin().sum(), x)[0]

    graph = jit.trace(f, X).verify()
    same(graph.replay(X), f(X))
    assert [call.op for call in graph.nodes if call.op.startswith("fused")] == [
        "fused.layer_norm",
        "fused.layer_norm.backward",
    ]  # cos(out) leads back to it


def test_modes_are_decided_as_in_eager():
    def under(mode):
        def f(x):
            with mode():
                return F.layer_norm(x, (8,)) * 1

        return f

    for mode in (genesis.no_grad, genesis.inference_mode, lambda: genesis.autocast("cpu", dtype=genesis.bfloat16)):
        f = under(mode)
        graph = jit.trace(f, X)
        assert any(call.op == "fused.layer_norm" for call in graph.nodes)
        same(graph.replay(X), f(X))
    same(under(genesis.no_grad)(X), under(genesis.inference_mode)(X))
    with genesis.inference_mode():
        assert F.layer_norm(X, (8,)).is_inference()


def test_kernels_compute_16_bit_operands_in_float32():
    """Under autocast, and where operands have 16 bits, the kernel is what computes, and what it gives is rounded once."""
    q, k, v = (genesis.randn(2, 3, 8, 4, requires_grad=True) for _ in range(3))

    def attend(q, k, v):
        with genesis.autocast("cpu", dtype=genesis.bfloat16):
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    name = "fused.scaled_dot_product_attention"
    assert [n.op for n in jit.trace(attend, q, k, v).nodes] == [*["convert"] * 6, name, "convert"]
    out = attend(q, k, v)
    low = [t.detach().bfloat16() for t in (q, k, v)]
    wide = [t.float().requires_grad_() for t in low]
    want = F.scaled_dot_product_attention(*wide, is_causal=True)
    assert out.dtype == genesis.bfloat16 and genesis.equal(out, want.bfloat16())

    g = genesis.randn(*out.shape).bfloat16()
    for mine, theirs in zip(
        genesis.autograd.grad(out, (q, k, v), g), genesis.autograd.grad(want, wide, g.float()), strict=True
    ):
        assert mine.dtype == genesis.float32 and genesis.equal(mine, theirs.bfloat16().float())
    assert [n.op for n in jit.trace(F.gelu, low[0]).nodes] == ["convert", "fused.gelu", "convert"]
    gelu = F.gelu(low[0].requires_grad_())
    assert genesis.equal(gelu, F.gelu(low[0].float()).bfloat16())
    (first,) = genesis.autograd.grad(gelu.sum(), low[0], create_graph=True)
    assert genesis.autograd.grad(first.sum(), low[0])[0].dtype == genesis.bfloat16


def test_an_error_in_a_fused_call_is_explained_at_the_replay():
    graph = jit.trace(F.cross_entropy, X[0], genesis.tensor([0, 1, 2]))
    with pytest.raises(IndexError, match="cross_entropy: target 9 is out of range for 8 classes"):
        graph.replay(X[0], genesis.tensor([0, 9, 2]))


def test_a_write_to_what_the_backward_reads_is_refused_in_a_trace_too():
    def f(x, w):
        w = w.clone().requires_grad_()
        y = F.layer_norm(x, (8,), w)
        with genesis.no_grad():
            w.mul_(2)
        return genesis.autograd.grad(y.sum(), w)[0]

    x = X.clone().requires_grad_()
    for run in (f, lambda *args: jit.trace(f, *args)):
        with pytest.raises(RuntimeError, match="modified in place by mul_"):
            run(x.detach().requires_grad_(), genesis.ones(8))


def test_a_graph_of_outside_is_differentiated_in_a_trace():
    w = genesis.ones(8, requires_grad=True)
    y = F.layer_norm(X, (8,), w)
    expected = genesis.autograd.grad(y.sum(), w, retain_graph=True)[0]
    graph = jit.trace(lambda g: genesis.autograd.grad(y, w, g, retain_graph=True)[0], genesis.ones(2, 3, 8))
    same(graph.replay(genesis.ones(2, 3, 8)), expected)


@pytest.mark.parametrize("name", ["Adam", "AdamW"])
def test_an_optimizer_step_is_one_call_for_each_parameter(name):
    """It writes to nothing in the program: what it would have written are its results."""
    runs = []
    for changed in (None, lambda graph: graph, jit.decomposition):
        genesis.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
        optimizer = getattr(genesis.optim, name)(model.parameters(), lr=0.1, weight_decay=0.1)
        x = genesis.randn(8, 3)

        def step(x, model=model, optimizer=optimizer):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()

        step(x)
        if changed is not None:
            graph = changed(jit.trace(step, x).verify())
            counted = sum(call.op == "fused.adam_step" for call in graph.nodes)
            assert counted == (0 if changed is jit.decomposition else 4)
        for _ in range(5):
            step(x) if changed is None else graph.replay(x)
        runs.append([p.detach().numpy() for p in model.parameters()])
    for eager, replayed, decomposed in zip(*runs, strict=True):
        np.testing.assert_array_equal(replayed, eager)
        np.testing.assert_allclose(decomposed, eager, rtol=1e-5)


def test_a_step_that_is_differentiated_through_is_the_composition():
    from genesis.ops.learning.update import adam_step

    def step(w, x):
        w = w.detach().requires_grad_()
        p, m, v = w * 1.0, genesis.zeros(3), genesis.zeros(3)
        adam_step(p, x, m, v, None, 0.9, 0.999, 1.0, 1e-8, 0.1, None)
        return genesis.autograd.grad(p.sum(), [w])[0]

    w, x = genesis.ones(3), genesis.ones(3)
    graph = jit.trace(step, w, x).verify()
    assert not any(call.op.startswith("fused.adam_step") for call in graph.nodes)
    same(graph.replay(w, x), step(w, x))
