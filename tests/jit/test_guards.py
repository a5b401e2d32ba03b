"""What has changed since a trace is noticed, and named."""

from __future__ import annotations

import pytest

import genesis
from genesis import jit, nn

X = genesis.tensor([[1.0, 2.0, 3.0, -1.0], [0.5, -2.0, 1.0, 4.0]])
FACTOR = 2.0


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.5), nn.BatchNorm1d(3))
        self.scale = 2.0
        self.register_buffer("shift", genesis.zeros(3))
        self.calls = 0

    def forward(self, x):
        self.calls += 1  # what the function itself changes is nobody's business
        return self.body(x) * self.scale + self.shift


class Case:
    """A training step, and everything that it depends on."""

    def __init__(self):
        self.model = Net()
        self.optimizer = genesis.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.step(X)
        self.graph = jit.trace(self.step, X)

    def step(self, x):
        self.optimizer.zero_grad()
        loss = (self.model(x) * FACTOR).sum()
        loss.backward()
        self.optimizer.step()
        return loss

    @property
    def linear(self):
        return self.model.body[0]


def set_in(thing, **values):
    for name, value in values.items():
        setattr(thing, name, value)


CHANGES = {
    "eval": (lambda c: c.model.eval(), "Net.training is False, it was True"),
    "one layer's mode": (lambda c: c.model.body[1].eval(), r"Net.body.1.training is False, it was True"),
    "dropout": (lambda c: set_in(c.model.body[1], p=0.25), r"Net.body.1.p is 0.25, it was 0.5"),
    "batch norm's momentum": (
        lambda c: set_in(c.model.body[2], momentum=None),
        r"Net.body.2.momentum is None, it was 0.1",
    ),
    "a number": (lambda c: set_in(c.model, scale=3.0), r"Net.scale is 3.0, it was 2.0"),
    "another kind of number": (lambda c: set_in(c.model, scale=2), r"Net.scale is 2, it was 2.0"),
    "a parameter": (
        lambda c: set_in(c.linear, weight=nn.Parameter(genesis.ones(3, 4))),
        r"Net.body.0.weight is another parameter",
    ),
    "no parameter": (lambda c: set_in(c.linear, bias=None), r"Net.body.0.bias is None now"),
    "a buffer": (lambda c: set_in(c.model, shift=genesis.ones(3)), r"Net.shift is another tensor"),
    "a layer": (lambda c: c.model.body.__setitem__(0, nn.Linear(4, 3)), r"Net.body.0 is another linear"),
    "one layer more": (lambda c: c.model.body.append(nn.Tanh()), r"Net.body.3 is new"),
    "one layer less": (lambda c: c.model.body._modules.pop("2"), r"Net.body.2 is gone"),
    "a forward hook": (
        lambda c: c.linear.register_forward_hook(lambda m, x, y: y * 2),
        r"Net.body.0.hooks has 1 entries, it had 0",
    ),
    "a backward hook": (
        lambda c: c.model.register_full_backward_hook(lambda m, x, y: None),
        r"Net.hooks has 1 entries, it had 0",
    ),
    "requires_grad": (
        lambda c: c.linear.weight.requires_grad_(False),
        r"a captured tensor, f32\[3, 4\], does not require grad, it did",
    ),
    "a frozen model": (lambda c: c.model.requires_grad_(False), "does not require grad, it did"),
    "a buffer that requires grad": (
        lambda c: c.model.shift.requires_grad_(),
        r"a captured tensor, f32\[3\], requires grad, it did not",
    ),
    "a hook on a tensor": (
        lambda c: c.linear.weight.register_hook(lambda g: g * 2),
        r"a captured tensor, f32\[3, 4\], has other hooks",
    ),
    "a hook after": (lambda c: c.linear.weight.register_post_accumulate_grad_hook(lambda p: None), "has other hooks"),
    "dtype": (
        lambda c: set_in(c.linear.weight, data=genesis.ones(3, 4, dtype=genesis.float64)),
        r"a captured tensor, f64\[3, 4\], was f32\[3, 4\]",
    ),
    "shape": (lambda c: set_in(c.model.shift, data=genesis.ones(1)), r"a captured tensor, f32\[1\], was f32\[3\]"),
    "layout": (lambda c: set_in(c.linear.weight, data=genesis.ones(4, 3).t()), "is laid out otherwise"),
    "half a model": (lambda c: c.model.half(), "f16"),
    "a parameter group": (
        lambda c: c.optimizer.add_param_group({"params": [nn.Parameter(genesis.ones(1))]}),
        r"SGD.param_groups\[1\]\['dampening'\] is new",
    ),
    "a parameter in a group": (
        lambda c: c.optimizer.param_groups[0]["params"].pop(),
        r"SGD.param_groups\[0\]\['params'\] has 3 entries, it had 4",
    ),
    "an option": (
        lambda c: c.optimizer.param_groups[0].update(nesterov=True),
        r"SGD.param_groups\[0\]\['nesterov'\] is True, it was False",
    ),
    "an option that decided": (
        lambda c: c.optimizer.param_groups[0].update(momentum=0.0),
        r"bool\(SGD.param_groups\[0\]\['momentum'\]\) is False now, it was True",
    ),
    "a state": (lambda c: c.optimizer.load_state_dict(c.optimizer.state_dict()), r"SGD.state\[0\] is another tensor"),
    "no state": (lambda c: c.optimizer.state.clear(), r"SGD.state has 0 entries, it had 4"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_has_changed_is_named(name):
    case = Case()
    change, text = CHANGES[name]
    assert case.graph.changed() == []
    case.graph.replay(X)
    assert case.graph.changed() == []
    change(case)
    assert case.graph.changed()
    for graph in (case.graph, jit.optimized(case.graph)):
        with pytest.raises(RuntimeError, match=f"(?s)^replay: .*{text}.*; step has to be traced again"):
            graph.replay(X)


FINE = {
    "learning rate": lambda c: c.optimizer.param_groups[0].update(lr=0.5),
    "an option that is a number": lambda c: c.optimizer.param_groups[0].update(momentum=0.5),
    "a schedule": lambda c: genesis.optim.lr_scheduler.StepLR(c.optimizer, 1).step(),
    "new values": lambda c: c.linear.weight.data.zero_(),
    "load_state_dict": lambda c: c.model.load_state_dict(Net().state_dict()),
    "new memory": lambda c: set_in(c.linear.weight, data=genesis.ones(3, 4)),
    "gradients": lambda c: c.optimizer.zero_grad(),
    "there and back": lambda c: c.model.eval().train(),
    "a call": lambda c: c.step(X),
    "a hook that is gone": lambda c: c.linear.register_forward_hook(lambda *_: None).remove(),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FINE)
def test_what_may_change(name):
    genesis.manual_seed(0)
    case, eager = Case(), None
    FINE[name](case)
    genesis.manual_seed(0)
    eager = Case()
    FINE[name](eager)
    genesis.manual_seed(1)
    traced = [case.graph.replay(X).item() for _ in range(2)]
    genesis.manual_seed(1)
    if name != "load_state_dict":
        assert traced == [eager.step(X).item() for _ in range(2)]
    assert case.graph.changed() == []


def test_modes():
    model = nn.Linear(4, 2)
    graph = jit.trace(lambda x: model(x), X)
    with (
        genesis.autocast("cpu", dtype=genesis.bfloat16),
        pytest.raises(RuntimeError, match="autocast is on with genesis.bfloat16, it was off"),
    ):
        graph.replay(X)
    genesis.set_default_dtype(genesis.float64)
    try:
        assert graph.changed() == ["the default dtype is genesis.float64, it was genesis.float32"]
    finally:
        genesis.set_default_dtype(genesis.float32)
    with genesis.device("meta"):
        assert graph.changed() == ["the default device is meta, it was cpu"]
    with genesis.no_grad():
        assert graph.changed() == []  # nothing asked
    asks = jit.trace(lambda x: x * 2 if genesis.is_grad_enabled() else x, X)
    with genesis.no_grad(), pytest.raises(RuntimeError, match=r"is_grad_enabled\(\) is False, it was True"):
        asks.replay(X)
    trains = jit.trace(lambda x: model(x).sum().backward(), X)
    with genesis.no_grad(), pytest.raises(RuntimeError, match=r"is_grad_enabled\(\) is False, it was True"):
        trains.replay(X)


def test_names_in_closures_and_globals(monkeypatch):
    w, factor, flag = genesis.ones(3), 2.0, [True]

    def inner(x):
        return x * w * FACTOR

    def f(x):
        return inner(x) * factor

    graph = jit.trace(f, genesis.ones(3))
    assert graph.changed() == []
    w = genesis.zeros(3)
    assert graph.changed() == ["w, which inner captures, is another tensor"]
    w = genesis.ones(3)
    graph = jit.trace(f, genesis.ones(3))
    factor = 3.0
    assert graph.changed() == ["factor, which f captures, is 3.0, it was 2.0"]
    factor = 2.0
    monkeypatch.setitem(globals(), "FACTOR", 5.0)
    with pytest.raises(RuntimeError, match="the global FACTOR is 5.0, it was 2.0"):
        graph.replay(genesis.ones(3))
    assert flag


def test_a_number_that_the_function_counts_itself():
    calls = 0

    def f(x):
        nonlocal calls
        calls += 1
        return x * 2

    graph = jit.trace(f, genesis.ones(2))
    f(genesis.ones(2))
    assert graph.replay(genesis.ones(2)).tolist() == [2, 2] and graph.changed() == []


def test_hooks_on_arguments():
    def f(x):
        (x * x).sum().backward()

    seen = []
    x = genesis.ones(2, requires_grad=True)
    handle = x.register_hook(lambda g: seen.append(tuple(g.shape)) or g * 3)
    graph = jit.trace(f, x)
    graph.replay(x)
    assert x.grad.tolist() == [6, 6] and seen == [(2,)]
    handle.remove()
    with pytest.raises(RuntimeError, match="argument tensor 0 has other hooks than when f was traced"):
        graph.replay(x)


def test_arguments_that_were_computed():
    x = genesis.ones(2, requires_grad=True) * 1
    with pytest.raises(RuntimeError, match="an argument that requires grad was computed"):
        jit.trace(lambda v: (v * v).sum().backward(), x)


def test_the_scale_of_a_scaler_is_asked_for_again():
    scaler = genesis.amp.GradScaler(init_scale=4.0)
    graph = jit.trace(lambda x: scaler.scale(x), genesis.ones(2))
    scaler.update(16.0)
    assert graph.replay(genesis.ones(2)).tolist() == [16, 16]


def test_random_streams_that_are_set_inside():
    saved = genesis.get_rng_state()
    for f in (
        lambda x: (genesis.manual_seed(0), genesis.rand(2))[1],
        lambda x: (genesis.set_rng_state(saved), genesis.rand(2))[1],
        lambda x: genesis.seed(),
    ):
        before = genesis.get_rng_state().tolist()
        with pytest.raises(RuntimeError, match="a random stream from outside is set to a seed or a state"):
            jit.trace(f, genesis.ones(2))
        assert genesis.get_rng_state().tolist() == before

    def own(x):
        return genesis.rand(2, generator=genesis.Generator().manual_seed(5)) + genesis.rand(2)

    def back(x):
        state = genesis.get_rng_state()
        a = genesis.rand(2)
        genesis.set_rng_state(state)
        return a - genesis.rand(2)

    graph = jit.trace(own, genesis.ones(2))
    genesis.manual_seed(1)
    expected = [own(None).tolist() for _ in range(2)]
    genesis.manual_seed(1)
    assert [graph.replay(genesis.ones(2)).tolist() for _ in range(2)] == expected
    assert jit.trace(back, genesis.ones(2)).replay(genesis.ones(2)).tolist() == [0, 0]


def test_a_functional_call_borrows_the_parameters():
    model = Net().eval()

    def f(p, x):
        return genesis.func.functional_call(model, p, (x,)).sum()

    p = {name: q.detach() * 2 for name, q in model.named_parameters()}
    graph = jit.trace(lambda p, x: genesis.func.grad(f)(p, x), p, X)
    for (_, a), (_, b) in zip(graph.replay(p, X).items(), genesis.func.grad(f)(p, X).items(), strict=True):
        assert (a == b).all()
    model.train()
    assert graph.changed()


def test_the_first_step_of_a_momentum_with_dampening_is_refused():
    w = nn.Parameter(genesis.ones(2))
    optimizer = genesis.optim.SGD([w], lr=0.1, momentum=0.9, dampening=0.1)

    def f(x):
        (w * x).sum().backward()
        optimizer.step()

    with pytest.raises(RuntimeError, match="call the function once before tracing"):
        jit.trace(f, genesis.ones(2))


def test_a_momentum_begins_in_a_trace():
    eager, traced = nn.Parameter(genesis.tensor([1.0, -0.0])), nn.Parameter(genesis.tensor([1.0, -0.0]))
    steps = []
    for w in (eager, traced):
        optimizer = genesis.optim.SGD([w], lr=0.1, momentum=0.9)

        def f(x, w=w, optimizer=optimizer):
            optimizer.zero_grad()
            (w * x).sum().backward()
            optimizer.step()

        steps.append(f)
    x = genesis.tensor([0.3, -0.0])
    graph = jit.trace(steps[1], x)
    for _ in range(3):
        steps[0](x)
        graph(x)
        assert eager.tolist() == traced.tolist() and eager.signbit().tolist() == traced.signbit().tolist()


def test_a_model_of_a_closure_may_have_a_method_begin():
    """It was taken for what an optimizer says of itself, and a step with DistributedDataParallel, which has one, was not compiled."""

    class Own(nn.Linear):
        def _begin(self):
            return 2.0

        def forward(self, x):
            return super().forward(x) * self._begin()

    model = Own(3, 2)

    @genesis.compile(fullgraph=True)
    def out(of, x):
        return of(x) * (2 if of is model else 1)

    x = genesis.ones(1, 3)
    assert genesis.equal(out(model, x), 4 * nn.functional.linear(x, model.weight, model.bias))
