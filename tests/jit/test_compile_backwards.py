"""Gradients that are taken outside of a compiled function: what their backward does besides computing; and leaves that
begin or stop requiring grad in the function.
"""

from contextlib import nullcontext

import pytest

import genesis
from genesis import nn
from genesis.testing import fuzz_compile
from genesis.utils.checkpoint import checkpoint

X = genesis.arange(12.0).reshape(3, 4).cos()


class Probe(genesis.Function):
    seen: list[int]

    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, g):
        Probe.seen.append(2)
        return g


class Noise(genesis.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, g):
        return g + genesis.rand(4)


class Cut(genesis.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.relu()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        own = g.clone()
        own[x < 0] = 0
        found = {}
        found["g"] = own
        return found["g"]


class Net(nn.Module):
    """A model with something in the middle."""

    def __init__(self, between):
        super().__init__()
        genesis.manual_seed(0)
        self.first, self.norm, self.last = nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)
        self.between = between

    def forward(self, x):
        return self.last(self.between(self, self.first(x)))


def hooked(hook):
    def between(net, x):
        x.register_hook(hook)
        return x.tanh()

    return between


def trained(between, compiled, calls=4):
    """What is seen of some steps: results, gradients, buffers, random numbers."""
    net, Probe.seen, seen = Net(between), [], []
    model = genesis.compile(net) if compiled else net
    for call in range(calls):
        loss = model(X * (call + 1)).square().mean()
        seen += [[b.tolist() for b in net.buffers()], len(Probe.seen)]
        loss.backward()
        seen += [[p.grad.tolist() for p in net.parameters() if p.grad is not None], len(Probe.seen)]
        seen += [[b.tolist() for b in net.buffers()], genesis.rand(1).tolist()]
    return seen, model


@pytest.mark.parametrize(
    ("between", "reason"),
    [
        (hooked(lambda g: Probe.seen.append(1)), r"a call of list.append at .*, in the backward"),
        (lambda net, x: Probe.apply(x), r"a call of list.append at .*, in the backward"),
        (lambda net, x: Noise.apply(x), "the backward writes to tensors from outside, or draws random numbers"),
        (lambda net, x: checkpoint(net.norm, x), "the backward writes to tensors from outside"),
    ],
    ids=["a hook", "a Function", "random numbers", "a checkpoint"],
)
def test_what_a_backward_does_besides(between, reason):
    """It was done once, in the trace."""
    expected, _ = trained(between, False)
    with fuzz_compile.arithmetic(False), pytest.warns(UserWarning, match=reason):
        assert trained(between, True)[0] == expected


@pytest.mark.parametrize(
    "between",
    [hooked(lambda g: g * 0.5), lambda net, x: Cut.apply(x), lambda net, x: checkpoint(net.last.forward, x).tanh() * x],
    ids=["a hook", "a Function", "a checkpoint"],
)
def test_backwards_that_only_compute_are_compiled(between):
    expected, _ = trained(between, False)
    with fuzz_compile.arithmetic(False):
        got, model = trained(between, True)
    assert fuzz_compile.equal(expected, got, exactly=False)
    assert model.explain().splitlines()[0].endswith("1 graphs, 1 traces")


def test_what_a_backward_reads_of_the_outside():
    scale = [0.5]

    @genesis.compile(fullgraph=True)
    def doubled(x):
        y = x * 2
        y.register_hook(lambda g: g * scale[0])
        return y + 0

    for factor in (0.5, 0.5, 3.0, 0.5):
        scale[0] = factor
        x = genesis.ones(2, requires_grad=True)
        doubled(x).sum().backward()
        assert x.grad.tolist() == [2 * factor] * 2


HOOKS = {  # statements, and whether they are compiled
    "an argument": ("x.register_hook(lambda g: g * 2); (x * w).sum().backward()", False),
    "a parameter": ("w.register_hook(lambda g: g * 2); (x * w).sum().backward()", False),
    "one for a block": (
        "with w.register_hook(lambda g: g * 2): (x * w).sum().backward()\n(x * w).sum().backward()",
        False,
    ),
    "what has one": ("scaled.register_hook(lambda g: g * 2); (x * scaled).sum().backward()", False),
    "behind the gradient": (
        "h = w.register_post_accumulate_grad_hook(lambda p: p.grad.mul_(0.5)); (x * w).sum().backward(); h.remove()",
        False,
    ),
    "a value from before": ("h = y.register_hook(lambda g: g * 2); (x * y).sum().backward(retain_graph=True)", False),
    "a node": ("n = y.grad_fn.register_prehook(lambda g: (g[0] * 2,)); y.sum().backward(retain_graph=True)", False),
    "a value": ("v = x * w; h = v.register_hook(lambda g: g * 2); v.sum().backward(); h.remove()", True),
}


@pytest.mark.parametrize("case", HOOKS)
def test_hooks_that_a_step_registers(case):
    """On what is from outside they stay, one more at each call, or until they are removed: a trace leaves none there."""
    statements, is_compiled = HOOKS[case]

    def seen(compiled):
        w, scaled = (nn.Parameter(genesis.full((2,), 0.5)) for _ in range(2))
        scaled.register_hook(lambda g: g * 3)
        there = {"w": w, "scaled": scaled, "y": w * 1, "genesis": genesis}
        exec("def step(x):\n" + "".join(f"    {line}\n" for line in statements.splitlines()), there)
        step = genesis.compile(there["step"]) if compiled else there["step"]
        x, steps = genesis.ones(2, requires_grad=case == "an argument"), []
        for _ in range(4):
            step(x)
            steps.append([None if t.grad is None else t.grad.tolist() for t in (x, w, scaled)])
        return steps, compiled and bool(step.explain().splitlines()[0].endswith("1 graphs, 1 traces"))

    told = nullcontext() if is_compiled else pytest.warns(UserWarning, match="a hook is registered on")
    with told:
        assert seen(True) == (seen(False)[0], is_compiled)


# ---- leaves


def begins(w, x):
    x.requires_grad_()
    (g,) = genesis.autograd.grad((x * w).square().sum(), x)
    return g.detach()


def begins_and_leads_on(w, x):
    x.requires_grad = True
    return (x * w).square()


def gets_a_gradient(w, x):
    x.requires_grad_()
    (x * w).square().sum().backward()
    return x.grad.clone()


def is_given_a_gradient(w, x):
    x.grad = genesis.ones(3)
    return x * 2


def steps_up(w, x):
    x = x.detach().requires_grad_()
    (g,) = genesis.autograd.grad((x * w).square().sum(), x)
    return x + g


def makes_a_leaf(w, x):
    return (x * 2).detach().requires_grad_()


def stops_and_begins(w, x):
    for p in (w,):
        p.requires_grad_(False)
    y = x * w
    for p in (w,):
        p.requires_grad_(True)
    return y * w


def had_begun(w, x):
    y = x * w
    w.requires_grad_(False)
    w.requires_grad_(True)
    return y


def stops(w, x):
    y = x * w.detach()
    w.requires_grad_(False)
    return y


def stops_behind_a_result(w, x):
    y = x * w
    w.requires_grad_(False)
    return y


@pytest.mark.parametrize(
    "function",
    [
        begins, begins_and_leads_on, gets_a_gradient, is_given_a_gradient, steps_up, makes_a_leaf, stops_and_begins,
        had_begun, stops, stops_behind_a_result,
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:compile. step is not compiled")
def test_leaves_that_begin_or_stop_requiring_grad(function):
    def seen(compiled):
        w, all_seen = genesis.full((3,), 2.0, requires_grad=True), []

        def step(x):
            return function(w, x)

        run = genesis.compile(step) if compiled else step
        for call in range(6):
            x = genesis.full((3,), 1.0 + call)
            y = run(x)
            all_seen += [y.tolist(), y.requires_grad, y.is_leaf, x.requires_grad, w.requires_grad]
            if y.requires_grad:
                y.sum().backward()
            all_seen += [None if t.grad is None else t.grad.tolist() for t in (x, w, *([y] if y.is_leaf else []))]
            if call in (1, 3):
                w.requires_grad_(call == 3)
        return all_seen

    with fuzz_compile.arithmetic(False):
        assert seen(True) == seen(False)


def test_a_function_that_stops_and_begins_is_compiled():
    w = genesis.ones(3, requires_grad=True)
    step = genesis.compile(lambda x: stops_and_begins(w, x), fullgraph=True)
    for _ in range(3):
        step(genesis.ones(3)).sum().backward()
    assert w.grad.tolist() == [3.0] * 3 and w.requires_grad


# ---- optimizers


def test_the_state_of_an_optimizer_that_begins_in_a_later_step_and_is_loaded():
    """The second of two steps began another state: nothing was said about any state then."""

    def seen(compiled):
        w, v = genesis.ones(3, requires_grad=True), genesis.ones(3, requires_grad=True)
        optimizer = genesis.optim.RMSprop([w, v], 0.01)

        def step(x):
            optimizer.zero_grad()
            (w * x).sum().backward()
            optimizer.step()
            (w * v * x).sum().backward()
            optimizer.step()
            return w * 1

        run, all_seen = genesis.compile(step, fullgraph=True) if compiled else step, []
        for call in range(5):
            all_seen += [run(genesis.full((3,), 1.0 + call)).tolist(), optimizer.state[w]["step"], v.tolist()]
            if call % 2:
                optimizer.load_state_dict(optimizer.state_dict())
        return all_seen

    with fuzz_compile.arithmetic(False):
        assert seen(True) == seen(False)


# ---- graphs of the outside


def test_a_backward_of_what_was_recorded_before_the_call():
    """The trace used it up, so that the call as it is failed behind it."""
    w, kept = genesis.ones(3, requires_grad=True), []

    @genesis.compile
    def update():
        loss = genesis.stack(kept).sum()
        loss.backward()
        return loss.detach()

    with pytest.warns(UserWarning, match="a captured tensor was computed before"):
        for call in range(3):
            kept[:] = [(w * k).square() for k in range(1, 3)]
            assert update().item() == 15.0
            assert w.grad.tolist() == [10.0 * (call + 1)] * 3


# ---- under autocast


@pytest.mark.parametrize("around", [False, True], ids=["inside", "around"])
@pytest.mark.parametrize("between", ["", "write", "data"])
def test_a_parameter_that_is_used_several_times_is_cast_once(around, between):
    """So its gradients are added in 16 bits, until it is written to. A write by its data does not count: in a region around
    several calls the first cast would stay.
    """

    def seen(compiled):
        genesis.manual_seed(0)
        w, x = nn.Parameter(genesis.randn(16, 16)), genesis.randn(16, 16)
        mode = genesis.autocast("cpu", dtype=genesis.bfloat16)

        def products(x):
            y = nn.functional.linear(x, w)
            if between == "write":
                with genesis.no_grad():
                    w.mul_(1.25)
            if between == "data":
                w.data.mul_(1.25)
            return (y @ w + nn.functional.linear(y, w)).float().square().mean()

        def step(x):
            w.grad = None
            if around:
                products(x).backward()
            else:
                with mode:
                    loss = products(x)
                loss.backward()
            return w.grad.clone()

        run = genesis.compile(step, fullgraph=True) if compiled else step
        if around:
            with mode:
                return [run(x).tolist() for _ in range(1 if between == "data" else 3)]
        return [run(x).tolist() for _ in range(3)]

    with fuzz_compile.arithmetic(False):
        assert seen(True) == seen(False)
