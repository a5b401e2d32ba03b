"""The histories of results of compiled functions: what they lead to, and what is left of those that are used up."""

import warnings

import pytest

import genesis
from genesis import nn
from genesis.base.errors import GraphError
from genesis.func import jvp

pytest.importorskip("llvmlite")


def _weights() -> tuple[genesis.Tensor, genesis.Tensor]:
    genesis.manual_seed(0)
    return genesis.randn(3, 4, requires_grad=True), genesis.randn(3, 4, requires_grad=True)


def test_a_history_that_was_overwritten_gives_zeros_beside_a_result_that_has_one():
    """Found by fuzz_compile, seed 27679: the gradient of the second result depends on w, that of the first is zeros."""
    seen = []
    for compiled in (False, True):
        w, _ = _weights()

        def step(x, w=w):
            a = (x * w).tanh()
            b = jvp(lambda v: v.sin() * w, (a,), (x,))[1]
            b.copy_(genesis.ones(3, 4))
            return b, a

        run = genesis.compile(step) if compiled else step
        for _ in range(2):
            results = run(genesis.ones(3, 4))
        (results[0] ** 2).mean().backward()
        seen.append(w.grad)
    assert seen[0] is not None and seen[1] is not None
    assert genesis.equal(*seen)


def test_a_gradient_that_a_function_keeps_back_is_none_beside_a_result_that_gives_one():
    class Half(genesis.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a * 0.5

        @staticmethod
        def backward(ctx, g):
            return None

    w, _ = _weights()
    step = genesis.compile(lambda x: (Half.apply(w) * x, w * x))
    for _ in range(2):
        first, second = step(genesis.ones(3, 4))
    (g,) = genesis.autograd.grad(first.sum(), w, allow_unused=True, retain_graph=True)
    assert g is None
    (g,) = genesis.autograd.grad(first.sum() + second.sum(), w)
    assert genesis.equal(g, genesis.ones(3, 4))


def test_a_result_that_was_differentiated_inside_still_has_a_history():
    """Found by fuzz_compile, seed 34673."""
    w, v = _weights()

    def step(x):
        loss = (w * w * x).sum()
        loss.backward()
        return loss, v * 2

    for run in (step, genesis.compile(step)):
        for _ in range(3):
            loss, other = run(genesis.ones(3, 4))
            assert loss.requires_grad and not loss.is_leaf
            assert genesis.autograd.grad(loss * other.sum(), v, allow_unused=True, retain_graph=True)[0] is not None
            with pytest.raises(RuntimeError, match="freed"):
                loss.backward()
            with pytest.raises(RuntimeError, match="freed"):
                genesis.autograd.grad(loss, w)
    assert "compiled" in repr(run) and "1 graphs" in repr(run)


def test_a_used_up_history_leads_to_the_arguments_of_its_call():
    def inner(x):
        a = x * x
        genesis.autograd.grad(a.sum(), x)
        return a

    run = genesis.compile(inner)
    for _ in range(3):
        x = genesis.ones(3, requires_grad=True)
        y = run(x)
        assert y.requires_grad
        with pytest.raises(GraphError, match="freed"):
            genesis.autograd.grad(y.sum(), x)
        z = genesis.ones(3, requires_grad=True)
        assert genesis.equal(genesis.autograd.grad((y + z).sum(), z)[0], genesis.ones(3))


def test_a_statement_of_python_is_not_given_tensors_with_a_history_by_code_without_a_file():
    """Found by fuzz_compile, seed 31611: a class that is made by exec says that it is of builtins."""
    scope = {"nn": nn}
    exec("class Net(nn.Module):\n    def forward(self, a):\n        return a * self.scale", scope)
    net = scope["Net"]()
    w, _ = _weights()

    def step(x):
        net.scale = 0.25
        a = w * 2
        return net(a) * x

    run = genesis.compile(step)
    for _ in range(3):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            y = run(genesis.ones(3, 4))
        assert y.requires_grad
        assert genesis.equal(genesis.autograd.grad(y.sum(), w)[0], genesis.full((3, 4), 0.5))


def test_what_comes_from_results_without_a_gradient_alone_is_not_computed():
    """Found by fuzz_compile, seed 206935: zeros for them give NaN, times infinity."""
    w, _ = _weights()
    big = genesis.full((3, 4), 3e38)

    def step(x):
        return w + x, w * big * 10, (w * x).sum()

    for run in (step, genesis.compile(step, fullgraph=True)):
        for given in ((0,), (1,), (0, 2), (0, 1, 2), (2,)):
            w.grad = None
            results = run(genesis.ones(3, 4))
            sum([results[i].sum() for i in given]).backward()
            expected = sum([[1.0, float("inf"), 1.0][i] for i in given])
            assert genesis.equal(w.grad, genesis.full((3, 4), expected)), given


def test_gradients_meet_where_one_of_them_is_missing():
    """Sums, parts that are joined, and products of which one side has no gradient."""
    a, b = _weights()

    def step(x):
        shared = (a * x).tanh()
        return shared * b, genesis.cat([shared, b])[1:], (shared @ b.t()).exp(), shared.chunk(2, 1)[1] - b[:, :2]

    step_compiled = genesis.compile(step, fullgraph=True)
    for mask in range(1, 16):
        gradients = []
        for run in (step, step_compiled):
            results = run(genesis.ones(3, 4))
            loss = sum([(y * y).sum() for i, y in enumerate(results) if mask >> i & 1])
            gradients.append(genesis.autograd.grad(loss, (a, b), allow_unused=True))
        for eager, ours in zip(*gradients, strict=True):
            assert (eager is None) == (ours is None), mask
            assert eager is None or genesis.allclose(eager, ours, rtol=1e-5, atol=1e-6), mask


@pytest.mark.parametrize("of", ["argument", "captured tensor"])
def test_a_history_that_is_written_into_a_tensor_of_the_outside_is_kept(of):
    """Found by fuzz_compile, seed 200172: such functions run as they are."""
    w, buffer = genesis.ones(3, requires_grad=True), genesis.zeros(3)

    def step(x):
        (x if of == "argument" else buffer).add_(w * 2)
        return x.detach() * 1

    run = genesis.compile(step)
    with pytest.warns(UserWarning, match=f"what is written into a.* {of} has a history"):
        for _ in range(2):
            buffer = genesis.zeros(3)
            run(genesis.ones(3))
    buffer = genesis.zeros(3)
    x = genesis.ones(3)
    run(x)
    written = x if of == "argument" else buffer
    assert written.requires_grad
    written.sum().backward()
    assert genesis.equal(w.grad, genesis.full((3,), 2.0))


def test_what_is_written_without_a_history_is_compiled():
    w, buffer = genesis.ones(3, requires_grad=True), genesis.zeros(3)

    def step(x):
        y = w * x
        buffer.add_(y.detach())
        return y.sum()

    run = genesis.compile(step, fullgraph=True)
    for _ in range(3):
        run(genesis.ones(3)).backward()
    assert not buffer.requires_grad
    assert genesis.equal(buffer, genesis.full((3,), 3.0))
    assert genesis.equal(w.grad, genesis.full((3,), 3.0))


def test_a_graph_of_outside_that_is_kept_is_looked_at_at_each_call():
    w = genesis.ones(3, requires_grad=True)
    y = (w * w).sum()
    f = genesis.compile(lambda g: genesis.autograd.grad(y, w, g, retain_graph=True)[0])
    with pytest.warns(UserWarning, match="a captured tensor was computed before"):
        assert [f(genesis.tensor(g)).tolist() for g in (1.0, 2.0)] == [[2.0] * 3, [4.0] * 3]
    with genesis.no_grad():
        w.mul_(2)
    with pytest.raises(RuntimeError, match="modified in place"):
        f(genesis.tensor(1.0))


def _with_other(w, x):
    return genesis.autograd.grad((w * x).sum(), w, retain_graph=True)[0]


@pytest.mark.parametrize("captured", [True, False])
def test_arguments_that_are_what_a_gradient_is_asked_for_or_came_from_it(captured):
    """Found by fuzz_recipes, seed 54: they were taken for tensors that come from nowhere, and gradients through them lost."""

    def seen(compiled):
        w, other = (genesis.tensor([1.0, 2.0, 3.0], requires_grad=True) for _ in range(2))
        function = (lambda x: _with_other(w, x)) if captured else _with_other
        step = genesis.compile(function) if compiled else function
        given = (genesis.ones(3), other, other, w, w, other * 2, w * 2, w * 3, other, genesis.ones(3))
        results = [step(x) if captured else step(w, x) for x in given]
        return [g.tolist() for g in results]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert seen(True) == seen(False)


def test_a_step_of_gradient_descent_may_be_done_on_its_own_result():
    """Its parameters are leaves at first, then the results of one call: none of these came from another of them."""
    genesis.manual_seed(0)
    first, x = [genesis.randn(4, 3, requires_grad=True), genesis.randn(2, 4, requires_grad=True)], genesis.randn(8, 3)

    def descend(parameters, x):
        loss = (genesis.tanh(x @ parameters[0].t()) @ parameters[1].t()).square().mean()
        gradients = genesis.autograd.grad(loss, parameters, create_graph=True)
        return [p - 0.1 * g for p, g in zip(parameters, gradients, strict=True)]

    step = genesis.compile(descend)
    ours = theirs = first
    for _ in range(3):
        ours, theirs = step(ours, x), descend(theirs, x)
    for of, other in zip(
        genesis.autograd.grad(sum(p.sum() for p in ours), first),
        genesis.autograd.grad(sum(p.sum() for p in theirs), first),
        strict=True,
    ):
        assert genesis.allclose(of, other, 1e-4, 1e-6)
    assert "1 graphs, 1 traces" in step.explain()


def test_what_a_function_records_in_any_mode_around_it():
    """The graph of a call in `inference_mode` was taken under `no_grad`, and results had no histories there."""
    w = genesis.ones(3, requires_grad=True)

    def f(x):
        y = x * w
        with genesis.no_grad():
            z = y * 2
        with genesis.enable_grad():
            return y, z, w * 2

    def seen(run):
        results = []
        for call in range(12):
            with (genesis.enable_grad, genesis.no_grad, genesis.inference_mode)[call % 3]():
                results += [(t.requires_grad, t.is_inference()) for t in run(genesis.ones(3))]
        return results

    assert seen(genesis.compile(f)) == seen(f)


INDEX = genesis.tensor([0, 2, 0, 1, 1, 2])
WRITTEN = {
    "sums by indices": lambda x: x.new_zeros(3, 4).scatter_add_(0, INDEX.view(-1, 1).expand_as(x), x),
    "sums of rows": lambda x: genesis.zeros(3, 4).index_add_(0, INDEX, x * x).tanh(),
    "the largest": lambda x: x.new_zeros(3).scatter_reduce_(0, INDEX, x[:, 0], "amax", include_self=False),
    "rows that are set": lambda x: (z := genesis.zeros(6, 4), z.__setitem__(slice(1, 3), x[:2]), z * x)[2],
    "elements that are set": lambda x: (z := genesis.zeros(3, 4), z.__setitem__(INDEX[:3], x[:3]), z.exp())[2],
    "a copy": lambda x: genesis.empty(6, 4).copy_(x) * 2,
    "one after the other": lambda x: (z := genesis.ones(6, 4), z.add_(x), z.mul_(x), z[0].zero_(), z.sum(0))[4],
    "in a loop": lambda x: (z := genesis.empty(6), [z.__setitem__(i, x[i].sum()) for i in range(6)], z)[2],
    "a view": lambda x: (z := genesis.zeros(24), z.view(6, 4).add_(x), z.cumsum(0))[2],
    "a mask": lambda x: genesis.zeros(6, 4).masked_scatter(x > 0, x * 3),
    "several results": lambda x: (z := genesis.zeros(6, 4), z.add_(x), (z, z[0], x * z))[2],
}


@pytest.mark.parametrize("name", WRITTEN)
def test_tensors_that_the_function_makes_may_be_written_to_with_a_history(name):
    function = genesis.compile(WRITTEN[name], fullgraph=True)
    for seed in range(3):
        x = genesis.randn(6, 4, generator=genesis.Generator().manual_seed(seed)).requires_grad_()
        seen = []
        for f in (function, WRITTEN[name]):
            results = f(x)
            results = results if isinstance(results, tuple) else (results,)
            loss = sum([(y * y.detach().cos()).sum() for y in results])
            seen.append([*results, *genesis.autograd.grad(loss, x)])
        for a, b in zip(*seen, strict=True):
            genesis.testing.assert_close(a.detach(), b.detach())


ASKED = {
    "is_leaf": lambda x: x.is_leaf,
    "grad_fn": lambda x: x.grad_fn is None,
    "its name": lambda x: "Mul" in str(x.grad_fn),
    "_base": lambda x: x._base is None,
    "requires_grad": lambda x: x.requires_grad,
}


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
@pytest.mark.parametrize("through", [False, True])
def test_what_an_argument_comes_from_is_no_constant(asked, through):
    w = genesis.randn(3, 4, requires_grad=True)

    def step(x):
        return (x if through else x.detach()) * 2, genesis.ones(2) * asked(x)

    compiled = genesis.compile(step)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for x in (w, w, w * 2, w + 2, w.detach(), w[:], (w * 2).detach(), w.detach()[1:].view(2, 4), w, w * 2):
            for got, expected in zip(compiled(x), step(x), strict=True):
                assert genesis.equal(got, expected)
