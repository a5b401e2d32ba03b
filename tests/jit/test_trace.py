"""Tracing: whole training steps, memory, captured tensors, host numbers, random draws, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from custom_functions import Cube

import genesis
from genesis import jit, nn
from genesis.func import grad, jvp, vmap

RNG = np.random.default_rng(0)
X = genesis.tensor(RNG.normal(size=(6, 4)).astype(np.float32))
Y = genesis.tensor([0, 1, 2, 0, 1, 2])


def same(a, b):
    assert a.shape == b.shape and a.dtype == b.dtype
    assert a.detach().numpy().tobytes() == b.detach().numpy().tobytes()


# ---- a training step

OPTIMIZERS = {
    "sgd": lambda p: genesis.optim.SGD(p, lr=0.1),
    "momentum": lambda p: genesis.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.01),
    "adam": lambda p: genesis.optim.Adam(p, lr=0.01, amsgrad=True, weight_decay=0.1),
    "adamw": lambda p: genesis.optim.AdamW(p, lr=0.01),
    "rmsprop": lambda p: genesis.optim.RMSprop(p, lr=0.01, momentum=0.5, centered=True),
    "adagrad": lambda p: genesis.optim.Adagrad(p, lr=0.05, lr_decay=0.1),
    **{
        name: lambda p, name=name: getattr(genesis.optim, name)(p, lr=0.05)
        for name in genesis.optim.__all__
        if name not in ("Optimizer", "SparseAdam", "LBFGS", "Muon", "lr_scheduler", "swa_utils")
    },
    "averaged": lambda p: genesis.optim.ASGD(p, lr=0.05, t0=2, lambd=0.1),
    "radam": lambda p: genesis.optim.RAdam(p, lr=0.05, betas=(0.5, 0.8)),
    "tensor rate": lambda p: genesis.optim.NAdam(p, lr=genesis.tensor(0.05)),
}


def training(name):
    genesis.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(4, 8), nn.Dropout(0.3), nn.BatchNorm1d(8), nn.Tanh(), nn.LayerNorm(8), nn.Linear(8, 3)
    )
    optimizer = OPTIMIZERS[name](model.parameters())
    schedule = genesis.optim.lr_scheduler.StepLR(optimizer, 3, 0.5)

    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return model, optimizer, schedule, step


@pytest.mark.parametrize("passes", [False, True], ids=["as_traced", "optimized"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_ten_steps_of_training_bit_for_bit(name, passes):
    losses = []
    models = []
    for traced in (False, True):
        model, optimizer, schedule, step = training(name)
        genesis.manual_seed(5)
        step(X, Y)
        run = step
        if traced:
            graph = jit.trace(step, X, Y).verify()
            run = (jit.optimized(graph).verify() if passes else graph).replay
        losses.append([])
        for _ in range(10):
            losses[-1].append(run(X, Y).item())
            schedule.step()
        models.append((model, optimizer))
    assert losses[0] == losses[1]
    for a, b in zip(models[0][0].state_dict().values(), models[1][0].state_dict().values(), strict=True):
        same(a, b)
    for p, q in zip(models[0][0].parameters(), models[1][0].parameters(), strict=True):
        same(p.grad, q.grad)
        a, b = models[0][1].state[p], models[1][1].state[q]
        assert a.keys() == b.keys()
        for key in a:
            same(a[key], b[key]) if isinstance(a[key], genesis.Tensor) else None
            assert isinstance(a[key], genesis.Tensor) or a[key] == b[key]


def test_a_trace_changes_nothing():
    model, optimizer, _, step = training("adamw")
    step(X, Y)
    before = {k: v.numpy().copy() for k, v in model.state_dict().items()}
    steps, rng = [s["step"] for s in optimizer.state.values()], genesis.get_rng_state().tolist()
    jit.trace(step, X, Y)
    for key, value in model.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), before[key])
    assert [s["step"] for s in optimizer.state.values()] == steps and genesis.get_rng_state().tolist() == rng
    assert jit.Graph.__doc__ is not None


def test_the_first_step_can_be_traced_where_the_state_begins_with_zeros():
    losses = []
    for traced in (False, True):
        _, _, _, step = training("adamw")
        genesis.manual_seed(5)
        run = jit.trace(step, X, Y).replay if traced else step
        losses.append([run(X, Y).item() for _ in range(4)])
    assert losses[0] == losses[1]


def test_gradients_accumulate_where_nobody_clears_them():
    w = genesis.ones(3, requires_grad=True)
    f = lambda x: (w * x).sum().backward()  # noqa: E731
    f(genesis.ones(3))
    graph = jit.trace(f, genesis.ones(3))
    graph.replay(genesis.ones(3) * 2)
    assert w.grad.tolist() == [3, 3, 3]


def test_learning_rates_and_steps_are_inputs_of_the_graph():
    w = genesis.ones(1, requires_grad=True)
    optimizer = genesis.optim.SGD([w], lr=1.0)

    def step(g):
        optimizer.zero_grad()
        (w * g).sum().backward()
        optimizer.step()

    graph = jit.trace(step, genesis.ones(1))
    assert len(graph.numbers) == 1
    graph.replay(genesis.ones(1))
    optimizer.param_groups[0]["lr"] = 0.25
    graph.replay(genesis.ones(1))
    assert w.tolist() == [1 - 1 - 0.25]
    rates = iter([10.0, 20.0, 30.0])
    scaled = jit.trace(lambda x: x * jit.host(lambda: next(rates)), genesis.ones(2))
    assert scaled.replay(genesis.ones(2)).tolist() == [20, 20] and scaled.replay(genesis.ones(2)).tolist() == [30, 30]


def test_arithmetic_on_a_number_of_the_host_is_an_input_of_the_graph():
    state = {"n": 0.5}
    for f in (lambda n: n * 2, lambda n: 1 - n, lambda n: n**2 / 3 - abs(-n), lambda n: (n, 2 + n)[1]):
        state["n"] = 0.5
        graph = jit.trace(lambda x, f=f: x * f(jit.host(lambda: state["n"])), genesis.ones(2))
        for state["n"] in (0.5, 0.75, -3.0):
            assert graph.replay(genesis.ones(2)).tolist() == (genesis.ones(2) * f(state["n"])).tolist()


def test_quotients_and_rests_of_numbers_of_the_host_are_asked_for():
    held = [7.5]
    graph = jit.trace(lambda x: x * (jit.host(lambda: held[0]) // 2) + 10 % jit.host(lambda: held[0]), genesis.ones(2))
    for held[0] in (7.5, 3.5):
        assert graph.replay(genesis.ones(2)).tolist() == [held[0] // 2 + 10 % held[0]] * 2


def test_what_python_takes_out_of_a_number_of_the_host_is_refused():
    for f in (float, int, round):
        with pytest.raises(RuntimeError, match="compute inside: host"):
            jit.trace(lambda x, f=f: x * f(jit.host(lambda: 0.5)), genesis.ones(2))
    for f in (lambda n: n > 0, bool, lambda n: n + 1 == 2):  # it may count steps
        with pytest.raises(RuntimeError, match="the decision would be a constant"):
            jit.trace(lambda x, f=f: x * f(jit.host(lambda: 0.5)), genesis.ones(2))


# ---- values


def test_arguments_results_and_containers():
    graph = jit.trace(
        lambda d, k, *, flag: {"a": d["x"] * k, "n": 3, "same": d["x"]}, {"x": genesis.ones(2)}, 4, flag=True
    )
    out = graph.replay({"x": genesis.tensor([1.0, 2])}, 4, flag=True)
    assert out["a"].tolist() == [4, 8] and out["n"] == 3 and out["same"].tolist() == [1, 2]
    with pytest.raises(TypeError, match="was traced with other arguments"):
        graph.replay({"y": genesis.ones(2)}, 4, flag=True)
    with pytest.raises(RuntimeError, match=r"argument tensor 0 is f32\[3\], function was traced with f32\[2\]"):
        graph.replay({"x": genesis.ones(3)}, 4, flag=True)
    with pytest.raises(RuntimeError, match="was traced with"):
        graph.replay({"x": genesis.ones(2, dtype=genesis.float64)}, 4, flag=True)


def test_captured_tensors_are_read_at_every_replay():
    w = genesis.ones(2)
    graph = jit.trace(lambda x: x * w + w.sum(), genesis.ones(2))
    assert len(graph.captured) == 1
    w.add_(1)
    assert graph.replay(genesis.ones(2)).tolist() == [6, 6]


@pytest.mark.parametrize("replacement", [True, False])
def test_tokens_are_drawn_as_in_eager(replacement):
    def sample(logits):
        return genesis.multinomial(logits.softmax(-1), 2, replacement)

    logits = genesis.randn(4, 7)
    graph = jit.trace(sample, logits)
    genesis.manual_seed(5)
    found = [graph.replay(logits + i).tolist() for i in range(3)]
    genesis.manual_seed(5)
    assert found == [sample(logits + i).tolist() for i in range(3)]
    assert sample(logits.to("meta")).shape == (4, 2)


def test_the_cumulative_average_of_batch_norm_goes_on():
    traced, eager = nn.BatchNorm1d(3, momentum=None), nn.BatchNorm1d(3, momentum=None)
    batches = [genesis.randn(5, 3) for _ in range(6)]
    for x in batches[:2]:
        traced(x), eager(x)
    graph = jit.trace(traced, batches[0])
    for x in batches[2:]:
        assert (graph.replay(x) == eager(x)).all()
    assert traced.num_batches_tracked.item() == 6
    assert (traced.running_mean == eager.running_mean).all() and (traced.running_var == eager.running_var).all()
    np.testing.assert_allclose(traced.running_mean.numpy(), np.mean([x.numpy().mean(0) for x in batches], 0), atol=1e-6)


def test_random_draws_continue_the_stream():
    f = lambda x: x + genesis.rand(2) * genesis.randn(2) + genesis.randint(0, 9, (2,)) + genesis.bernoulli(x * 0 + 0.5)  # noqa: E731
    graph = jit.trace(f, genesis.ones(2))
    genesis.manual_seed(3)
    eager = [f(genesis.ones(2)) for _ in range(3)]
    after = genesis.get_rng_state().tolist()
    genesis.manual_seed(3)
    for expected in eager:
        same(graph.replay(genesis.ones(2)), expected)
    assert genesis.get_rng_state().tolist() == after
    unused = jit.dead_code(jit.trace(lambda x: (genesis.rand(5), x + genesis.rand(2))[1], genesis.ones(2)))
    assert unused.count("random.uniform") == 1
    genesis.manual_seed(3)
    genesis.rand(5)
    expected = genesis.ones(2) + genesis.rand(2)
    genesis.manual_seed(3)
    same(unused.replay(genesis.ones(2)), expected)


def test_transforms_are_traced_away():
    f = lambda x: vmap(grad(lambda v: (v.sin() * v).sum()))(x) + jvp(lambda v: v.exp(), (x,), (x,))[1]  # noqa: E731
    x = genesis.tensor(RNG.normal(size=(3, 2)))
    graph = jit.trace(f, x).verify()
    same(graph.replay(x), f(x))
    assert {node.op for node in graph.nodes} <= set(genesis.core.call.op.REGISTRY)


def test_custom_functions_and_checkpoints_are_traced_away():
    def f(x):
        x = x.detach().requires_grad_()
        y = genesis.utils.checkpoint.checkpoint(lambda v: Cube.apply(v).exp(), x)
        return genesis.autograd.grad(y.sum(), x)[0]

    x = genesis.tensor([0.5, 1.0])
    same(jit.trace(f, x).replay(x), f(x))


# ---- memory


def views(x):
    x = x.clone()
    row, column, flat = x[1], x[:, 0], x.reshape(-1)
    row.mul_(2)
    column += 1
    flat[2] = 7
    x.t()[0].zero_()
    x.diagonal().add_(5)
    x.permute(1, 0).narrow(0, 1, 2).sub_(1)
    alias = x.detach()
    alias[0, 1] = 9
    return x, row, column, flat


def test_views_see_each_others_writes():
    x = genesis.tensor(np.arange(9.0).reshape(3, 3))
    graph = jit.trace(views, x).verify()
    for a, b in zip(graph.replay(x), views(x), strict=True):
        same(a, b)
    for a, b in zip(jit.optimized(graph).verify().replay(x), views(x), strict=True):
        same(a, b)


@pytest.mark.parametrize("dims", [(0, 1), (1, 2), (0, 2), (2, 0), (2, 1)])
@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_writes_through_diagonals(dims, offset):
    def f(x):
        x = x.clone()
        x.diagonal(offset, *dims).mul_(2)
        x.diagonal(offset, *dims)[..., 0] = 100
        return x

    x = genesis.tensor(np.arange(60.0).reshape(3, 4, 5))
    same(jit.trace(f, x).replay(x), f(x))


def test_writes_into_arguments_and_captured_tensors_are_outputs():
    total, count = genesis.zeros(2), genesis.zeros((), dtype=genesis.int64)

    def f(x):
        total.add_(x)
        count.add_(1)
        x.mul_(2)
        return total * 1

    graph = jit.trace(f, genesis.ones(2))
    assert total.tolist() == [0, 0] and {w.kind for w in graph.writes} == {"captured", "argument"}
    assert all(f"\n    {name} <- %" in str(graph) for name in ("w0", "w1", "x0"))
    x = genesis.tensor([1.0, 2.0])
    assert graph.replay(x).tolist() == [1, 2] and x.tolist() == [2, 4]
    assert graph.replay(x).tolist() == [3, 6] and total.tolist() == [3, 6] and count.item() == 2


@pytest.mark.parametrize(
    "write",
    [
        lambda b: b.zero_(),
        lambda b: b.fill_(7),
        lambda b: b.__setitem__(0, 3.0),
        lambda b: b.detach().zero_(),
        lambda b: nn.init.ones_(b),
        lambda b: b.data.mul_(2),
        lambda b: b[:1].fill_(4),
    ],
    ids=["zero_", "fill_", "setitem", "detached", "init", "data", "view"],
)
def test_constants_written_into_captured_tensors(write):
    b = genesis.tensor([1.0, -2.0])

    def f(x):
        write(b)
        b.add_(x)
        return b * 1

    graph = jit.trace(f, genesis.ones(2))
    assert b.tolist() == [1, -2]  # a trace changes nothing
    eager = b.clone()
    for _ in range(2):
        write(eager)
        eager.add_(1)
        same(graph.replay(genesis.ones(2)), eager)
        same(b, eager)


def test_an_optimizer_traced_without_the_backward():
    w = nn.Parameter(genesis.ones(3))
    w.grad = genesis.ones(3)
    optimizer = genesis.optim.AdamW([w], lr=0.1)
    optimizer.step()
    before = w.tolist()
    graph = jit.trace(lambda: optimizer.step())
    assert w.tolist() == before
    twin = nn.Parameter(genesis.ones(3))
    twin.grad = genesis.ones(3)
    eager = genesis.optim.AdamW([twin], lr=0.1)
    for _ in range(3):
        eager.step()
    graph.replay()
    graph.replay()
    same(w, twin)


def test_parameters_inside_autocast_are_inputs():
    model, x = nn.Linear(4, 3), genesis.ones(2, 4)
    with genesis.autocast("cpu", dtype=genesis.bfloat16):
        model(x)  # its casts are remembered
        graph = jit.trace(lambda v: model(v), x)
        with genesis.no_grad():
            model.weight.zero_()
            model.bias.fill_(2)
        same(graph.replay(x), model(x))


def test_targets_that_are_captured():
    y, x = genesis.tensor([0, 1]), genesis.tensor([[1.0, 2, 3], [4, 5, 6]])
    same(jit.trace(lambda v: nn.functional.cross_entropy(v, y), x).replay(x), nn.functional.cross_entropy(x, y))


def test_a_read_between_two_writes():
    def f(x):
        a = x.clone()
        b = a * 1
        a.add_(1)
        c = a * 1
        a[0] = 5
        return a, b, c

    x = genesis.tensor([1.0, 2.0])
    for g, e in zip(jit.trace(f, x).replay(x), f(x), strict=True):
        same(g, e)


def test_results_share_the_memory_that_the_functions_results_share():
    w = genesis.ones(2)

    def f(x):
        y = x * 2
        w.add_(1)
        return w, x, x, x[1:], w.detach(), y, y, y[:1], y.clone()

    graph = jit.trace(f, genesis.ones(2))
    for run in (f, graph.replay, jit.optimized(graph).verify().replay):
        x = genesis.zeros(2)
        w.fill_(1)
        a, b, c, part, alias, y, again, first, own = run(x)
        assert a is w and b is x and c is x and y is again
        x.add_(5)
        w.mul_(10)
        y.add_(1)
        assert w.tolist() == alias.tolist() == [20, 20] and part.tolist() == [5]
        assert y.tolist() == [1, 1] and first.tolist() == [1] and own.tolist() == [0, 0]
        first.fill_(7)
        assert y.tolist() == [7, 1]


def test_a_result_that_is_a_gradient_is_the_one_that_stays():
    for to_none in (True, False):
        seen = []
        for traced in (False, True):
            w = nn.Parameter(genesis.ones(2))
            w.grad = genesis.zeros(2)

            def f(x, w=w, to_none=to_none):
                w.zero_grad(to_none)
                (w * x).sum().backward()
                return w.grad, w.grad[1:]

            run = jit.trace(f, genesis.ones(2)).replay if traced else f
            g, part = run(genesis.ones(2))
            assert g is w.grad
            g.mul_(3)
            seen.append((w.grad.tolist(), part.tolist()))
        assert seen[0] == seen[1] == ([3, 3], [3])


def test_a_backward_that_writes_to_the_gradient_it_is_given():
    class Doubled(genesis.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g.mul_(2)

    def f(x):
        x = x.detach().requires_grad_()
        return genesis.autograd.grad(Doubled.apply(x.sum()).sum(), x)[0]

    same(jit.trace(f, genesis.tensor(1.0)).replay(genesis.tensor(1.0)), f(genesis.tensor(1.0)))


# ---- what is refused


def test_numbers_of_captured_tensors_are_refused_and_those_of_the_functions_own_are_known():
    w, n = genesis.ones(2), genesis.tensor(1)
    for f in (
        lambda x: x * w.numpy()[0],
        lambda x: x * n.item(),
        lambda x: x[: int(n)],
        lambda x: x * genesis.full((2,), n),
        lambda x: x.repeat_interleave(n),
    ):
        with pytest.raises(RuntimeError, match="this tensor is being traced"):
            jit.trace(f, genesis.ones(2))
    graph = jit.trace(lambda x: x[n] + genesis.tensor(w) + genesis.arange(3).tolist()[2], genesis.ones(2))
    n.fill_(0)
    w.fill_(5)
    assert graph.replay(genesis.tensor([10.0, 20.0])).tolist() == [17, 17]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x if x.sum() > 0 else -x,
        lambda x: x * x.sum().item(),
        lambda x: genesis.tensor(x.numpy()),
        lambda x: x[: int(x.sum())],
        lambda x: x.tolist(),
    ],
    ids=["if", "item", "numpy", "int", "tolist"],
)
def test_values_that_python_needs(f):
    with pytest.raises(
        RuntimeError,
        match=r"(?s)this tensor is being traced: it stands for any value, it has none.*asked for at "
        r".*test_trace.py:\d+.*genesis.where",
    ):
        jit.trace(f, genesis.ones(3))
    assert (genesis.ones(2) + 1).tolist() == [2, 2]  # and the trace is over


def test_tensors_that_are_kept():
    kept = []
    with pytest.raises(
        RuntimeError,
        match=r"(?s)function keeps 1 tensor that it made while it was traced.*call the function once before tracing",
    ):
        jit.trace(lambda x: kept.append(x * 2), genesis.ones(3))
    with pytest.raises(RuntimeError, match="a tensor made while tracing function is used after the trace"):
        kept[0] + 1
    p = nn.Parameter(genesis.ones(3))
    optimizer = genesis.optim.SGD([p], lr=0.1, momentum=0.9, dampening=0.5)  # its first step is another one

    def step():
        optimizer.zero_grad()
        p.sum().backward()
        optimizer.step()

    with pytest.raises(RuntimeError, match="call the function once before tracing"):
        jit.trace(step)
    assert not optimizer.state_dict()["state"]


def test_shapes_that_depend_on_data():
    with pytest.raises(NotImplementedError, match="depends on the values of the mask"):
        jit.trace(lambda x: x[x > 0], genesis.ones(3))


def test_traces_in_traces_and_in_transforms():
    with pytest.raises(RuntimeError, match="a trace is being made already"):
        jit.trace(lambda x: jit.trace(lambda y: y, x), genesis.ones(3))
    with pytest.raises(RuntimeError, match="an argument is batched, a trace takes tensors with data"):
        vmap(lambda x: jit.trace(lambda y: y * 2, x).replay(x))(genesis.ones(3))
    with pytest.raises(RuntimeError, match="an argument is spec"):
        jit.trace(lambda x: x, genesis.ones(3, device="meta"))


def test_captured_tensors_that_share_memory_and_are_written_to():
    base = genesis.zeros(4)
    part = base[:2]
    with pytest.raises(RuntimeError, match="another argument or captured tensor shares its memory"):
        jit.trace(lambda x: (base.add_(x), part * 1)[1], genesis.ones(4))
    same(jit.trace(lambda x: base + x, genesis.ones(4)).replay(genesis.ones(4)), genesis.ones(4))


def test_arguments_that_share_memory_and_are_written_to():
    x = genesis.ones(4)
    for f, args in (
        (lambda a, b: (a.add_(1), b * 1)[1], (x, x)),
        (lambda a: (a.add_(1), x * 1)[1], (x,)),
        (lambda a: (x.add_(1), a * 1)[1], (x,)),
        (lambda a, b: (a.add_(1), b * 1)[1], (x, x[1:3])),
    ):
        with pytest.raises(RuntimeError, match="another argument or captured tensor shares its memory"):
            jit.trace(f, *args)
    assert jit.trace(lambda a, b: a + b * x, x, x).replay(x, x).tolist() == [2] * 4


def test_an_error_inside_leaves_nothing_open():
    w = genesis.ones(2, requires_grad=True)

    def f(x):
        (w * x).sum().backward()
        raise KeyError("half-way")

    with pytest.raises(KeyError, match="half-way"):
        jit.trace(f, genesis.ones(2))
    assert w.grad is None and w.tolist() == [1, 1] and not genesis.core.graph.switches.ACTIVE


def test_an_error_during_a_replay_leaves_everything_as_it_was():
    table = genesis.arange(4).float()
    counts = {"step": 0}
    done = genesis.zeros(())

    def f(i):
        jit.advance(counts, "step")
        done.add_(1)
        return table[i] + genesis.rand(1)

    graph = jit.trace(f, genesis.tensor([1]))
    before = genesis.get_rng_state().tolist()
    with pytest.raises(IndexError, match="index 9 is out of range"):
        graph.replay(genesis.tensor([9]))
    assert counts["step"] == 0 and done.item() == 0 and genesis.get_rng_state().tolist() == before
    graph.replay(genesis.tensor([3]))
    assert counts["step"] == 1 and done.item() == 1


# ---- the graph


def test_printed_like_code_with_specs_and_lines():
    w = genesis.ones(3, 2)
    text = str(jit.trace(lambda x: (x @ w).relu(), genesis.ones(2, 3)))
    assert text.splitlines()[:2] == ["def function(x0: f32[2, 3]):", "    w0: f32[3, 2] = captured tensor"]
    assert (
        "f32[2, 2] = matmul(x0, w0)" in text
        and "# test_trace.py:" in text
        and text.splitlines()[-1].startswith("    return %")
    )


def test_verify_finds_what_is_wrong():
    graph = jit.trace(lambda x: x.exp().sum(), genesis.ones(3))
    exp, total = graph.nodes
    with pytest.raises(RuntimeError, match="which nothing before it assigns"):
        graph.with_nodes([total, exp]).verify()
    with pytest.raises(RuntimeError, match="is assigned twice"):
        graph.with_nodes([exp, exp, total]).verify()
    wrong = jit.Var(genesis.arrays.spec.Spec((7,), np.dtype(np.float32)))
    with pytest.raises(RuntimeError, match=r"exp infers f32\[3\]"):
        graph.with_nodes([jit.Node("exp", exp.args, (wrong,))], results=[]).verify()
    with pytest.raises(RuntimeError, match="is not assigned"):
        graph.with_nodes([exp]).verify()


def test_drawings():
    w = genesis.ones(3, requires_grad=True)

    def f(x):
        w.grad = None
        (w * x).sum().backward()
        return x + 1

    drawing = genesis.draw(jit.trace(f, genesis.ones(3)))
    assert "w0.grad" in drawing.text and "result" in drawing.text and drawing.svg.startswith("<svg")


# ---- passes


def ops(graph):
    return [node.op for node in graph.nodes]


def test_dead_code_drops_what_nobody_uses_and_keeps_writes():
    w, unused = genesis.ones(2), genesis.ones(2)

    def f(x):
        (x * unused).exp()
        w.add_(x)
        return x.sin()

    graph = jit.dead_code(jit.trace(f, genesis.ones(2))).verify()
    assert ops(graph) == ["add", "sin"] and len(graph.captured) == 1
    graph.replay(genesis.ones(2))
    assert w.tolist() == [2, 2]


def test_common_subexpressions():
    graph = jit.common_subexpressions(
        jit.trace(lambda x: x.exp() * x.exp() + (x * 2) * (x * 2.0), genesis.ones(2))
    ).verify()
    assert ops(graph).count("exp") == 1 and ops(graph).count("mul") == 4  # 2 and 2.0 are two numbers
    draws = jit.common_subexpressions(jit.trace(lambda x: x + genesis.rand(2) + genesis.rand(2), genesis.ones(2)))
    assert draws.count("random.uniform") == 2


def test_constants():
    graph = jit.constant_folding(
        jit.trace(lambda x: x * (genesis.arange(3).float() + 1).sqrt(), genesis.ones(3))
    ).verify()
    assert ops(graph) == ["mul"]
    large = jit.constant_folding(jit.trace(lambda x: x * genesis.arange(100_000).sqrt(), genesis.ones(100_000)))
    assert ops(large) == ["sqrt", "mul"]


SPECIAL = [0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan, 1e-310]


@pytest.mark.parametrize(
    ("f", "left"),
    [
        (lambda x: x * 1, 0),
        (lambda x: 1 * x, 0),
        (lambda x: x / 1, 0),
        (lambda x: x - 0, 0),
        (lambda x: x + 0, 1),
        (lambda x: x.exp() + 0, 1),
        (lambda x: x * 0, 1),
        (lambda x: x.neg().neg(), 0),
        (lambda x: x**1, 0),
        (lambda x: x.reshape(2, 4).reshape(8), 0),
        (lambda x: x.reshape(4, 2).t().t(), 1),
        (lambda x: x.reshape(2, 2, 2).permute(2, 0, 1).permute(1, 2, 0), 1),
        (lambda x: x.clone(), 0),
        (lambda x: x.expand(8), 0),
        (lambda x: x.double(), 0),
        (lambda x: x * genesis.ones(8, dtype=genesis.float64), 0),
        (lambda x: x + genesis.zeros(8, dtype=genesis.float64), 1),
        (lambda x: x - 0.0 * 1, 0),
    ],
)
def test_simplification_is_exact_for_every_value(f, left):
    x = genesis.tensor(SPECIAL, dtype=genesis.float64)
    graph = jit.optimized(jit.trace(f, x)).verify()
    assert graph.count() == left, str(graph)
    same(graph.replay(x), f(x))


# ---- gradients that come and go


def both(make, steps):
    """What ``steps`` sees of an eager function and of its replay."""
    seen = []
    for traced in (False, True):
        w, f, prepare = make()
        prepare()
        run = jit.optimized(jit.trace(f, genesis.ones(1))).verify().replay if traced else f
        seen.append(steps(w, run))
    return seen


def leaf_function():
    w = nn.Parameter(genesis.ones(1))
    return w, lambda x: (w * x).sum().backward(), lambda: None


def leaf_with_gradient():
    w, f, _ = leaf_function()
    return w, f, lambda: f(genesis.ones(1))


@pytest.mark.parametrize("make", [leaf_function, leaf_with_gradient])
def test_gradients_are_added_to_what_is_there_at_each_call(make):
    def steps(w, run):
        seen = []
        for k in (1.0, 2.0):
            run(genesis.tensor([k]))
            seen.append(w.grad.tolist())
        w.grad = None  # between two calls
        run(genesis.tensor([5.0]))
        seen.append(w.grad.tolist())
        w.grad = genesis.tensor([100.0])
        run(genesis.tensor([7.0]))
        return [*seen, w.grad.tolist()]

    eager, traced = both(make, steps)
    assert eager == traced


@pytest.mark.parametrize("to_none", [True, False])
def test_gradients_that_the_function_clears(to_none):
    def make():
        w = nn.Parameter(genesis.ones(1))
        optimizer = genesis.optim.SGD([w], lr=0.1)

        def step(x):
            optimizer.zero_grad(set_to_none=to_none)
            (w * x).sum().backward()
            optimizer.step()
            return w.grad.clone()

        return w, step, lambda: step(genesis.ones(1))

    eager, traced = both(
        make, lambda w, run: [run(genesis.tensor([k])).tolist() + w.tolist() + w.grad.tolist() for k in (1.0, 2.0, 3.0)]
    )
    assert eager == traced


def test_a_trace_leaves_gradients_alone_also_when_it_fails():
    w = nn.Parameter(genesis.ones(1))
    w.grad = genesis.tensor([7.0])
    optimizer = genesis.optim.SGD([w], lr=0.1)

    def step(x, fail):
        optimizer.zero_grad()
        (w * x).sum().backward()
        if fail:
            raise KeyError("half-way")

    jit.trace(step, genesis.ones(1), False)
    assert w.grad.tolist() == [7]
    with pytest.raises(KeyError):
        jit.trace(step, genesis.ones(1), True)
    assert w.grad.tolist() == [7]


def test_gradients_of_arguments():
    def f(x):
        (x * x).sum().backward()
        return x.sum().detach()

    x = genesis.ones(2, requires_grad=True)
    graph = jit.trace(f, x)
    assert x.grad is None
    graph.replay(x)
    graph.replay(x)
    assert x.grad.tolist() == [4, 4]


def test_a_step_traced_without_its_gradient_wants_one():
    w = nn.Parameter(genesis.ones(1))
    w.grad = genesis.ones(1)
    optimizer = genesis.optim.SGD([w], lr=0.5)
    graph = jit.trace(lambda: optimizer.step())
    w.grad = genesis.tensor([4.0])
    graph.replay()
    assert w.tolist() == [-1]
    w.grad = None
    with pytest.raises(RuntimeError, match=r"(?s)a .grad that function reads is None.*call backward\(\) first"):
        graph.replay()


# ---- calls that are not those that were traced


def test_replays_that_would_be_wrong_are_refused():
    double = jit.trace(lambda x: x * 2, genesis.ones(2))
    with pytest.raises(RuntimeError, match="argument tensor 0 requires grad, a replay is not differentiable"):
        grad(lambda x: double.replay(x).sum())(genesis.ones(2))
    with genesis.no_grad():
        assert double.replay(genesis.ones(2, requires_grad=True)).tolist() == [2, 2]
    scaled = jit.trace(lambda x, k: x * k, genesis.ones(2), 3.0)
    assert scaled.replay(genesis.ones(2), 3.0).tolist() == [3, 3]
    for other in (5.0, 3, True, None):
        with pytest.raises(RuntimeError, match=r"an argument is .*, function was traced with 3.0"):
            scaled.replay(genesis.ones(2), other)
    both_written = jit.trace(lambda a, b: (a.add_(b), b.add_(a))[0], genesis.ones(2), genesis.ones(2))
    a, w = genesis.ones(4), genesis.ones(2)
    captured = jit.trace(lambda p: (w.add_(p), p * 1)[1], genesis.ones(2))
    for call in (
        lambda: both_written.replay(a[:2], a[:2]),
        lambda: both_written.replay(a[:2], a[1:3]),
        lambda: captured.replay(w),
    ):
        with pytest.raises(RuntimeError, match="shares its memory"):
            call()
    assert a.tolist() == [1] * 4 and w.tolist() == [1, 1]
    both_written.replay(a[:2], a[2:])
    assert a.tolist() == [2, 2, 3, 3]


def test_an_index_tensor_from_outside_is_read_anew_by_gradients_too():
    w, places = genesis.randn(4, 2, requires_grad=True), genesis.tensor([0, 1])

    def step():
        w.grad = None
        y = (w[places] ** 2).sum()
        y.backward()
        return y.detach(), w.grad

    graph = genesis.jit.trace(step)
    places.copy_(genesis.tensor([2, 3]))
    for found, expected in zip(graph.replay(), step(), strict=True):
        assert genesis.equal(found, expected)
