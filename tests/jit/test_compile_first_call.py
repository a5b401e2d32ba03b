"""The first call of a compiled function: it is compiled, or runs as it is where it sets something up."""

import functools
import sys
import warnings

import numpy as np
import pytest

import genesis
import genesis.nn.functional as F
from genesis import nn, optim
from genesis.jit.compiling.effects import Watch
from genesis.jit.compiling.joint import JointTracer
from genesis.jit.guards import Guards
from genesis.testing import fuzz_compile

pytest.importorskip("llvmlite")

OPTIMIZERS = {
    "adamw": lambda ps: optim.AdamW(ps, lr=0.01, amsgrad=True),
    "momentum": lambda ps: optim.SGD(ps, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "rprop": lambda ps: optim.Rprop(ps, lr=0.02),
    "asgd": lambda ps: optim.ASGD(ps, lr=0.02, t0=2),
    "nadam": lambda ps: optim.NAdam(ps, lr=0.01),
    "rmsprop": lambda ps: optim.RMSprop(ps, lr=0.01, momentum=0.5, centered=True),
    "adafactor": lambda ps: optim.Adafactor(ps, lr=0.01),
    "muon": lambda ps: optim.Muon([p for p in ps if p.ndim == 2], lr=0.01),
}
X, Y = genesis.tensor(np.linspace(-1, 1, 24, dtype=np.float32).reshape(6, 4)), genesis.tensor([0, 1, 2, 0, 1, 2])


def training(make):
    genesis.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.2), nn.Linear(8, 3))
    optimizer = make(model.parameters())

    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return model, optimizer, step


def left_by(model, optimizer):
    states = [optimizer.state[p] for p in model.parameters() if p in optimizer.state]
    kept = [v for state in states for _, v in sorted(state.items())]
    return [t.tolist() if isinstance(t, genesis.Tensor) else t for t in (*model.state_dict().values(), *kept)]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_state_of_an_optimizer_begins_in_the_first_call(name):
    ways = []
    for compiled in (False, True):
        model, optimizer, step = training(OPTIMIZERS[name])
        run = genesis.compile(step, fullgraph=True) if compiled else step
        genesis.manual_seed(3)
        losses = [run(X, Y).item() for _ in range(4)]
        ways.append((losses, left_by(model, optimizer)))
        if compiled:
            assert run.explain().startswith("step: 1 graphs, 1 traces")
    assert ways[0][0] == pytest.approx(ways[1][0], rel=1e-5)
    for eager, other in zip(ways[0][1], ways[1][1], strict=True):
        np.testing.assert_allclose(other, eager, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_state_of_an_optimizer_does_not_begin_in_a_call_that_ends_before(name):
    """The trace makes it, and then a statement that Python does at each call raises."""

    def seen(compiled):
        model, optimizer, step = training(OPTIMIZERS[name])
        calls, seen = [], []

        def count():
            calls.append(1)
            if len(calls) in (3, 4):
                raise ValueError("too early")

        def counted(x, y):
            count()
            return step(x, y) if len(x) > 2 else x.sum()

        run = genesis.compile(counted) if compiled else counted
        for call in range(7):
            try:
                seen.append(run(X if call > 1 else X[:2], Y).item())
            except ValueError:
                seen.append(None)
            seen.append(left_by(model, optimizer))
        if compiled:
            assert "Python does at each call" in run.explain() and len(run._recent) == 2
        return seen

    genesis.manual_seed(3)
    expected = seen(False)
    genesis.manual_seed(3)
    with fuzz_compile.arithmetic(False):
        assert seen(True) == expected


def test_no_python_runs_twice_in_the_first_call():
    """What is compiled at once is not computed as it is as well: an operation sees shapes only."""
    seen = []

    class Twice(genesis.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            seen.append(type(x._array).__name__)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    run = genesis.compile(lambda x: (Twice.apply(x) + 1).sum())
    assert [run(genesis.ones(3)).item() for _ in range(3)] == [9, 9, 9]
    model, _, step = training(OPTIMIZERS["adamw"])
    model[0].register_forward_hook(lambda module, args, y: None)
    run = genesis.compile(step)
    run(X, Y)
    assert len(run._recent) == 1


def test_writes_to_objects_are_done_once_for_each_call():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls, self.seen = 0, []

        def forward(self, x):
            self.calls += 1
            self.seen.append(len(x))
            return x * 2

    module = Counting()
    run = genesis.compile(module)
    for n in (2, 3, 2, 3):
        assert run(genesis.ones(n)).tolist() == [2.0] * n
    assert (module.calls, module.seen) == (4, [2, 3, 2, 3])


@pytest.mark.parametrize("where", ["closure", "attribute", "list"])
def test_an_iterator_from_outside_loses_nothing(where):
    class Holder:
        pass

    def numbers():
        yield from (10, 20, 30)

    stream, holder = numbers(), Holder()
    holder.stream, several = stream, [stream]

    @genesis.compile
    def by_closure(x):
        for n in stream:
            return x * n

    @genesis.compile
    def by_attribute(x):
        for n in holder.stream:
            return x * n

    @genesis.compile
    def by_list(x):
        products = [x * n for one in several for n in one]
        return products[0]

    run = {"closure": by_closure, "attribute": by_attribute, "list": by_list}[where]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert run(genesis.ones(1)).item() == 10
    assert where == "list" or list(stream) == [20, 30]


def test_generators_that_the_function_makes_are_compiled_at_once():
    @genesis.compile(fullgraph=True)
    def halves(x):
        a, b = (part * 2 for part in x.chunk(2))
        return sum(y.sum() for y in (a, b))

    assert halves(genesis.ones(4)).item() == 8
    assert len(halves._recent) == 1


def test_a_gradient_that_is_looked_for_is_there_from_the_second_call_on():
    model = nn.Linear(4, 3)

    @genesis.compile
    def step(x, y):
        model.zero_grad(set_to_none=False)
        F.cross_entropy(model(x), y).backward()
        return model.weight.grad.square().sum()

    results = [step(X, Y).item() for _ in range(3)]
    assert results == pytest.approx([results[0]] * 3, rel=1e-5)
    assert step.explain().startswith("step: 1 graphs, 1 traces")


def test_layers_that_learn_their_size_from_the_first_input():
    genesis.manual_seed(0)
    model = nn.Sequential(nn.LazyLinear(3), nn.LazyBatchNorm1d())
    run = genesis.compile(model)
    results = [run(X).shape for _ in range(3)]
    assert results == [(6, 3)] * 3 and model[0].weight.shape == (3, 4)


def test_an_error_in_the_first_call_is_the_function_s_own():
    model, optimizer, step = training(OPTIMIZERS["adamw"])

    @genesis.compile
    def wrong(x, y):
        if x.shape[0] == 6:
            raise ValueError("six rows")
        return step(x, y)

    with pytest.raises(ValueError, match="six rows"):
        wrong(X, Y)
    assert not optimizer.state_dict()["state"] and all(p.grad is None for p in model.parameters())
    assert wrong(X[:3], Y[:3]).item() > 0


def test_a_trace_that_fails_leaves_an_optimizer_without_state():
    _, optimizer, step = training(OPTIMIZERS["adamw"])

    def fails(x, y):
        step(x, y)
        return step(x, y).numpy()

    with pytest.raises(RuntimeError):
        genesis.jit.trace(fails, X, Y)
    assert not optimizer.state_dict()["state"]


def test_what_the_package_does_by_itself_is_not_watched():
    """The profile function sees the calls of the program, and is off where only this package runs."""
    seen = []

    class Schedule(dict):
        def __getitem__(self, name):  # of a group of options, which only `step` reads
            seen.append(("step", sys.getprofile() is None))
            return super().__getitem__(name)

    model, optimizer, step = training(OPTIMIZERS["adamw"])
    optimizer.param_groups[0] = Schedule(optimizer.param_groups[0])
    tracer = JointTracer("step", Guards(step))
    tracer.watch = Watch()

    def watched(x, y):
        with tracer.watch:
            seen.append(("function", sys.getprofile() is None))
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            seen.append(("behind", sys.getprofile() is None))
            return loss

    tracer.run(watched, (X, Y), {})
    assert set(seen) >= {("function", False), ("step", True), ("behind", False)} and ("step", False) not in seen


def test_few_calls_are_watched():
    """Ops run no code of the program: to watch what they call takes longer than they do."""
    tracer, seen = JointTracer("step", Guards(len)), []
    tracer.watch = Watch()
    events = tracer.watch._events
    tracer.watch._events = lambda: functools.partial(_counted, seen, events())

    def watched(x):
        with tracer.watch:
            for _ in range(20):
                x = (x.t() + 1).t()
            return x

    tracer.run(watched, (X,), {})
    assert 60 < len(seen) < 60 * 60  # they were 150 an op


def _counted(seen, event, *args):
    seen.append(args[1])
    event(*args)


@pytest.mark.parametrize("where", ["hook", "function", "optimizer", "packed"])
def test_code_of_the_program_in_a_backward_or_a_step_is_watched(where):
    seen = []

    class Noting(genesis.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            seen.append("function")
            return g * 2

    class Step(optim.SGD):
        def update(self, param, grad, state, group):
            seen.append("optimizer")
            super().update(param, grad, state, group)

    def unpacked(x):
        seen.append("packed")
        return x

    w = nn.Parameter(genesis.ones(3))
    optimizer = (Step if where == "optimizer" else optim.SGD)([w], lr=0.5)

    @genesis.compile
    def step(x):
        optimizer.zero_grad()
        y = w * x
        if where == "hook":
            y.register_hook(lambda g: seen.append("hook"))
        if where == "function":
            y = Noting.apply(y)
        if where == "packed":
            with genesis.autograd.graph.saved_tensors_hooks(lambda t: t, unpacked):
                y = y * y
        loss = y.sum()
        loss.backward()
        optimizer.step()
        return loss

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(4):
            step(genesis.ones(3))
    count = {"packed": len(seen)}.get(where, 4)  # a saved tensor is unpacked as often as it is used
    assert seen == [where] * count and count >= 4 and count % 4 == 0


LOOKS = {
    "halved": lambda states: [
        v.mul_(0.5) for s in states.values() for v in s.values() if isinstance(v, genesis.Tensor)
    ],
    "length": lambda states: len(states),
    "truth": lambda states: 1 if states else 0,
    "items": lambda states: len([*states.items()]),
    "member": lambda states: 1 if "other" in states else 0,
}


@pytest.mark.parametrize("begun", ["inside", "outside"])
@pytest.mark.parametrize("name", LOOKS)
def test_a_step_that_looks_at_the_state_of_an_optimizer_sees_that_it_has_begun(name, begun):
    look, ways = LOOKS[name], []
    for compiled in (False, True):
        w = genesis.tensor([1.0, 2.0, 3.0]).requires_grad_()
        optimizer = optim.Adam([w], lr=0.1)
        if begun == "inside":
            w.grad = genesis.ones(3)

        def step(x, optimizer=optimizer):
            seen = look(optimizer.state)
            if begun == "inside":
                optimizer.step()
            return x * (1 + (seen if isinstance(seen, int) else len(seen)))

        run = genesis.compile(step, fullgraph=begun == "outside") if compiled else step
        results = []
        for call in range(5):
            results += run(genesis.ones(2)).tolist()
            if call == 2:
                w.grad = genesis.ones(3)
                optimizer.step()
                optimizer.state["other"]
            results += [v.tolist() if isinstance(v, genesis.Tensor) else v for v in optimizer.state[w].values()]
        ways.append([*results, *w.tolist()])
    assert ways[0] == ways[1]


def test_a_trace_refuses_to_look_at_what_it_begins():
    w = genesis.ones(3).requires_grad_()
    w.grad, optimizer = genesis.ones(3), optim.Adam([w])

    def step(x):
        if not optimizer.state:
            x = x * 2
        optimizer.step()
        return x

    step = genesis.compile(step)
    assert [step(genesis.ones(())).item() for _ in range(3)] == [2, 1, 1]
