"""What a function sets and goes on from at the next call: numbers and tensors on objects, in dictionaries, in variables.

Each program runs as it is and compiled, over several calls; between two of them code of the outside looks at what is kept
and changes it.
"""

from __future__ import annotations

import linecache
import math
import types
import warnings

import numpy as np
import pytest

import genesis
import genesis.nn.functional as F
from genesis import nn, optim
from genesis.base.pytree import tree_flatten

CALLS = 12


class Program:
    """A model, an optimizer, batches; ``step`` is what is compiled, ``between`` runs behind call i, ``state`` is compared."""

    graphs = 1

    def __init__(self):
        genesis.manual_seed(0)
        self.model = nn.Linear(4, 4)
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.1)
        self.xs = [genesis.randn(8, 4) for _ in range(CALLS)]

    def train(self, x, weight=1.0):
        self.optimizer.zero_grad()
        loss = weight * self.model(x).square().mean()
        loss.backward()
        self.optimizer.step()
        return loss

    def between(self, i):
        """Nothing changes."""


def values(x):
    """Numbers, with their classes, and tensors as they are now."""
    return [(type(y), y.detach().numpy().copy() if isinstance(y, genesis.Tensor) else y) for y in tree_flatten(x)[0]]


def run(kind, compiled):
    program = kind()
    step = genesis.compile(program.step) if compiled else program.step
    seen = []
    for i, x in enumerate(program.xs):
        seen.append(values((step(x), program.state())))
        program.between(i)
    return [*seen, values((program.state(), *program.model.parameters()))], step


def both(kind):
    """The same results and states, without a warning, in as many graphs as the program says."""
    expected, _ = run(kind, False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        actual, step = run(kind, True)
    for i, (a, b) in enumerate(zip(actual, expected, strict=True)):
        for (kind_a, x), (kind_b, y) in zip(a, b, strict=True):
            assert kind_a is kind_b, i
            if isinstance(y, str | bool | None):
                assert x == y, i
            else:
                np.testing.assert_allclose(x, y, rtol=2e-4, atol=1e-5, err_msg=str(i))
    assert "not compiled" not in step.explain()
    assert len(step._recent) == kind.graphs, step.explain()
    return step


# ---- optimizers of a program's own


class OwnAdam:
    """State in dictionaries by parameter, begun with the optimizer."""

    def __init__(self, params, lr=0.02, betas=(0.9, 0.99)):
        self.params, self.lr, self.betas = list(params), lr, betas
        self.state = {p: {"step": 0, "m": genesis.zeros_like(p), "v": genesis.zeros_like(p)} for p in self.params}

    def zero_grad(self):
        for p in self.params:
            p.grad = None

    @genesis.no_grad()
    def step(self):
        b1, b2 = self.betas
        for p in self.params:
            s = self.state[p]
            s["step"] += 1
            s["m"].mul_(b1).add_(p.grad, alpha=1 - b1)
            s["v"].mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
            bias_correction2 = 1 - b2 ** s["step"]
            rate = self.lr * math.sqrt(bias_correction2) / (1 - b1 ** s["step"])
            p.addcdiv_(s["m"], s["v"].sqrt().add_(1e-8), value=-rate)

    def counts(self):
        return [s["step"] for s in self.state.values()]


class Counting(OwnAdam):
    """One count for all parameters, lists of averages."""

    def __init__(self, params):
        super().__init__(params)
        self.t, self.m = 0, [genesis.zeros_like(p) for p in self.params]
        self.v = [genesis.zeros_like(p) for p in self.params]

    @genesis.no_grad()
    def step(self):
        self.t += 1
        b1, b2 = self.betas
        for p, m, v in zip(self.params, self.m, self.v, strict=True):
            m.mul_(b1).add_(p.grad, alpha=1 - b1)
            v.mul_(b2).add_(p.grad * p.grad, alpha=1 - b2)
            p -= self.lr * (m / (1 - b1**self.t)) / (genesis.sqrt(v / (1 - b2**self.t)) + 1e-8)

    def counts(self):
        return [self.t]


class Derived(optim.Optimizer):
    """State that begins at the first call, in that of the base class."""

    def __init__(self, params):
        super().__init__(params, {"lr": 0.02, "betas": (0.9, 0.99)})

    @genesis.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if len(state) == 0:
                    state["step"] = 0
                    state["m"], state["v"] = genesis.zeros_like(p), genesis.zeros_like(p)
                state["step"] += 1
                b1, b2 = group["betas"]
                state["m"].lerp_(p.grad, 1 - b1)
                state["v"].mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
                rate = group["lr"] * math.sqrt(1 - b2 ** state["step"]) / (1 - b1 ** state["step"])
                p.addcdiv_(state["m"], state["v"].sqrt().add_(1e-8), value=-rate)

    def counts(self):
        return [s["step"] for s in self.state.values()]


@pytest.mark.parametrize("kind", [OwnAdam, Counting, Derived])
def test_optimizers_of_a_programs_own(kind):
    class Trained(Program):
        def __init__(self):
            super().__init__()
            self.optimizer = kind(self.model.parameters())

        def step(self, x):
            return self.train(x)

        def state(self):
            return self.optimizer.counts()

    both(Trained)


def test_an_optimizers_state_that_is_loaded_between_calls():
    class Loaded(Program):
        def __init__(self):
            super().__init__()
            self.optimizer = OwnAdam(self.model.parameters())

        def step(self, x):
            return self.train(x)

        def between(self, i):
            if i == 5:
                for s in self.optimizer.state.values():
                    s["step"] = 1
                    s["m"].zero_()

        def state(self):
            return self.optimizer.counts()

    both(Loaded)


# ---- numbers


class Warmup(Program):
    """A count that changes between calls: by others, below zero, to a float."""

    t, graphs = 0, 2

    def step(self, x):
        self.t += 1
        return self.train(x, self.t / 10)

    def between(self, i):
        self.t = {5: 100, 8: -3, 10: 2.5}.get(i, self.t)

    def state(self):
        return self.t


class Cosine(Program):
    t = 0

    def step(self, x):
        rate = 0.05 * (1 + math.cos(math.pi * self.t / 14)) * 0.9 ** math.floor(self.t / 3)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.t += 1
        return self.train(x)

    def state(self):
        return self.t, self.optimizer.param_groups[0]["lr"]


class Averaged(Program):
    """An average of the weights whose decay grows with the steps: before and behind the point where it is constant."""

    graphs = 2

    def __init__(self):
        super().__init__()
        self.t, self.average = 0, [p.detach().clone() for p in self.model.parameters()]

    def step(self, x):
        loss = self.train(x)
        self.t += 1
        decay = min(0.5, (1 + self.t) / (10 + self.t))
        with genesis.no_grad():
            for a, p in zip(self.average, self.model.parameters(), strict=True):
                a.mul_(decay).add_(p, alpha=1 - decay)
        return loss

    def state(self):
        return self.t, self.average


class Every(Program):
    """A target that is copied at each fourth step."""

    graphs = 2

    def __init__(self):
        super().__init__()
        self.k, self.target = 0, self.model.weight.detach().clone()

    def step(self, x):
        loss = self.train(x)
        self.k += 1
        if self.k % 4 == 0:
            with genesis.no_grad():
                self.target.copy_(self.model.weight)
        return loss

    def state(self):
        return self.k, self.target


class Whole(Program):
    """Whole numbers past what floats hold exactly."""

    seed = 12345

    def step(self, x):
        self.seed = (self.seed * 1103515245 + 12345) % 2**31
        return x * (self.seed / 2**31), self.seed // 3, self.seed * 0.5

    def state(self):
        return self.seed


class Told(Program):
    """What Python does besides sees the count as it is there."""

    t = 0

    def __init__(self):
        super().__init__()
        self.log = []

    def step(self, x):
        self.log.append(self.t)
        self.t += 1
        loss = self.train(x)
        self.log.append(f"{self.t} {loss.item():.4f}")
        return loss

    def state(self):
        return str(self.log)


class ToldBefore(Told):
    def step(self, x):
        loss = self.train(x)
        self.log.append(f"{self.t} {loss.item():.4f}")
        self.t += 1
        return loss


class InADictionary(Program):
    """Numbers and tensors in a dictionary, and in a list in it; a key that is new; another dictionary between calls."""

    graphs = 3

    def __init__(self):
        super().__init__()
        self.kept = {"n": 0, "h": genesis.zeros(4), "l": [0, 0.5]}

    def step(self, x):
        kept = self.kept
        kept["n"] += 1
        kept["h"] = kept["h"] + kept["n"] * x.mean(0)
        kept["l"][1] *= 0.9
        kept["new"] = kept["h"].sum()
        return self.train(x + kept["h"], kept["l"][1])

    def between(self, i):
        if i == 5:
            self.kept = {"n": 3, "h": genesis.ones(4), "l": [1, 2.0]}

    def state(self):
        return self.kept


class Variables(Program):
    def __init__(self):
        super().__init__()
        n, h = 0, genesis.zeros(4)

        def step(x):
            nonlocal n, h
            n += 1
            h = h * 0.5 + x.mean(0)
            return self.train(x + h, n / 5)

        self.step, self.state = step, lambda: (n, h)


class ReadByThat(Program):
    """Numbers that only the statements read that set others."""

    graphs, t = 3, 0

    def __init__(self):
        super().__init__()
        rate, items = 1, [1, 2]

        def step(x):
            self.t = self.t + rate * len(items)
            return x * self.t

        def change(i):
            nonlocal rate
            rate = 5 if i >= 3 else rate
            if i == 6:
                items.append(3)

        self.step, self.between = step, change

    def state(self):
        return self.t


class AnotherObject(Program):
    graphs = 3

    class Clock:
        t = 0

    def __init__(self):
        super().__init__()
        self.clock = self.Clock()

    def step(self, x):
        self.clock.t += 1
        return self.train(x, self.clock.t / 5)

    def between(self, i):
        if i in (4, 9):
            self.clock = self.Clock()
            self.clock.t = 10

    def state(self):
        return self.clock.t


@pytest.mark.parametrize(
    "kind",
    [Warmup, Cosine, Averaged, Every, Whole, Told, ToldBefore, InADictionary, Variables, ReadByThat, AnotherObject],
    ids=lambda kind: kind.__name__,
)
def test_numbers_that_a_function_sets(kind):
    both(kind)


@pytest.mark.parametrize(
    "line",
    [
        "isinstance(self.t, int)",
        "type(self.t) is int",
        "'%d' % self.t == '3'",
        "f'{self.t}' == '3'",
        "self.t in {3, 4}",
        "list(range(self.t)) == [0, 1, 2]",
        "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14][self.t] == 4",
        "np.sqrt(self.t) > 2",
        "genesis.tensor(self.t).dtype == genesis.int64",
        "(genesis.arange(3) * self.t).dtype == genesis.int64",
        "round(self.t / 4) == 1",
        "int(self.t / 4) == 1",
        "sqrt(self.t) > 2",
        "self.t & 1",
        "getattr(self, 't') % 3 == 1",
        "vars(self)['t'] == 3",
    ],
)
def test_what_is_asked_of_a_count(line, tmp_path):
    """Compiled or not, it is answered as in calls that run as they are."""
    path = tmp_path / "counting.py"
    path.write_text(
        "import genesis, numpy as np\nfrom math import sqrt\n\n\nclass Counting:\n    t = 0\n\n    def step(self, x):\n"
        f"        self.t += 1\n        return x * 2 if {line} else x * 3\n"
    )
    seen = []
    for compiled in (False, True):
        scope = {}
        exec(compile(path.read_text(), str(path), "exec"), scope)
        step = scope["Counting"]().step
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            step = genesis.compile(step) if compiled else step
            seen.append([step(genesis.ones(2)).tolist() for _ in range(10)])
    assert seen[1] == seen[0]


# ---- tensors


class RunningMean(Program):
    """A mean that others set, write to, and exchange for one of another shape."""

    graphs = 2

    def __init__(self):
        super().__init__()
        self.mean = genesis.zeros(4)

    def step(self, x):
        self.mean = 0.9 * self.mean + 0.1 * x.mean(0)
        return self.train(x - self.mean)

    def between(self, i):
        if i == 4:
            self.mean = genesis.ones(4)
        if i == 6:
            self.mean.mul_(2)
        if i == 8:
            self.mean = genesis.ones(1)

    def state(self):
        return self.mean


class Buffer(Program):
    """The same in a module, as a buffer."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.n = nn.Linear(4, 4), 0
            self.register_buffer("mean", genesis.zeros(4))

        def forward(self, x):
            self.n += 1
            self.mean = 0.9 * self.mean + 0.1 * x.detach().mean(0)
            return self.linear(x - self.mean) / self.n

    def __init__(self):
        super().__init__()
        self.model = self.Model()
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.1)

    def step(self, x):
        return self.train(x)

    def between(self, i):
        if i == 5:
            self.model.load_state_dict(self.model.state_dict() | {"mean": genesis.ones(4)})

    def state(self):
        return self.model.mean, self.model.n, list(self.model.state_dict())


class Hidden(Program):
    """The state of a recurrent network, a tuple, which is begun anew."""

    graphs = 2

    def __init__(self):
        super().__init__()
        self.cell, self.h = nn.LSTMCell(4, 4), None

    def step(self, x):
        if self.h is None:
            self.h = genesis.zeros(8, 4), genesis.zeros(8, 4)
        h, c = self.cell(x, self.h)
        self.h = h.detach(), c.detach()
        return h.sum()

    def between(self, i):
        if i == 5:
            self.h = None

    def state(self):
        return self.h


class KeptOld(Program):
    """What was kept before is not written to."""

    def __init__(self):
        super().__init__()
        self.h, self.old = genesis.zeros(4), []

    def step(self, x):
        self.h = genesis.tanh(self.h + x.mean(0))
        return self.h.sum()

    def between(self, i):
        self.old.append(self.h)

    def state(self):
        return self.old


class WrittenThenSet(KeptOld):
    def step(self, x):
        self.h.add_(x.mean(0))
        self.h = self.h * 2
        return self.h.sum()


class SetThenWritten(KeptOld):
    def step(self, x):
        self.h = self.h * 2
        self.h += x.mean(0)
        return self.h.sum()


class TheArgument(Program):
    """The batch itself is kept."""

    def __init__(self):
        super().__init__()
        self.before = genesis.zeros(8, 4)

    def step(self, x):
        change = (x - self.before).square().mean()
        self.before = x
        return change + self.train(x).detach()

    def state(self):
        return self.before, any([self.before is x for x in self.xs])


class Swapped(Program):
    def __init__(self):
        super().__init__()
        self.a, self.b = genesis.zeros(4), genesis.ones(4)

    def step(self, x):
        self.a, self.b = self.b, self.a + x.mean(0)
        return self.a.sum() + 2 * self.b.sum()

    def state(self):
        return self.a, self.b


class TheSame(Program):
    """Two names for one tensor, which is written to."""

    def __init__(self):
        super().__init__()
        self.a = self.b = genesis.zeros(4)

    def step(self, x):
        self.a = self.a + x.mean(0)
        self.b = self.a
        self.b.mul_(2)
        return self.a.sum()

    def state(self):
        return self.a, self.b, self.a is self.b


class OfAParameter(Program):
    """A view of a weight that is written to."""

    w = None

    def step(self, x):
        loss = self.train(x)
        self.w = self.model.weight.detach()
        return loss

    def state(self):
        return self.w, self.w is None or np.shares_memory(self.w.numpy(), self.model.weight.detach().numpy())


class LossOnSelf(Program):
    def step(self, x):
        self.optimizer.zero_grad()
        self.loss = self.model(x).square().mean()
        self.loss.backward()
        self.optimizer.step()
        return self.loss.item()

    def state(self):
        return self.loss.item()


class Auxiliary(Program):
    """A loss that a module keeps, and gradients flow through in the step."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.aux = nn.Linear(4, 4), None

        def forward(self, x):
            y = self.linear(x)
            self.aux = y.square().mean()
            return y

    def __init__(self):
        super().__init__()
        self.model = self.Model()
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.1)

    def step(self, x):
        self.optimizer.zero_grad()
        loss = self.model(x).mean() + 0.1 * self.model.aux
        loss.backward()
        self.optimizer.step()
        return loss

    def state(self):
        return self.model.aux


@pytest.mark.parametrize(
    "kind",
    [
        *(RunningMean, Buffer, Hidden, KeptOld, WrittenThenSet, SetThenWritten, TheArgument, Swapped, TheSame),
        *(OfAParameter, LossOnSelf, Auxiliary),
    ],
    ids=lambda kind: kind.__name__,
)
def test_tensors_that_a_function_keeps(kind):
    both(kind)


def test_a_module_that_keeps_things_in_a_loop_that_is_not_compiled():
    """Gradients flow through what it returns, and through what it keeps."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.n, self.mean = nn.Linear(4, 4), 0, genesis.zeros(4)

        def forward(self, x):
            self.n += 1
            self.mean = self.mean * 0.9 + x.detach().mean(0) * 0.1
            self.last = self.linear(x - self.mean) / self.n
            return self.last

    seen = []
    for compiled in (False, True):
        genesis.manual_seed(0)
        model = Model()
        optimizer = optim.SGD(model.parameters(), lr=0.1)
        call = genesis.compile(model) if compiled else model
        losses = []
        for _ in range(8):
            optimizer.zero_grad()
            loss = call(genesis.randn(8, 4)).square().mean() + model.last.mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        seen.append([*losses, model.n, *model.mean.tolist(), *model.linear.weight.detach().reshape(-1).tolist()])
    np.testing.assert_allclose(seen[1], seen[0], rtol=1e-4, atol=1e-6)


def test_a_list_that_is_kept_in_two_places_is_one():
    class Model:
        def step(self, x):
            self.seen = [x * 2]
            return self.seen

    model = Model()
    step = genesis.compile(model.step)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = [step(genesis.ones(2)) is model.seen for _ in range(4)]
    assert results == [True] * 4


def test_what_a_backward_keeps():
    """It runs at each call."""

    class Model:
        n = 0

    model = Model()

    class Doubled(genesis.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            model.n += 1
            return g * 2

    step = genesis.compile(lambda x: Doubled.apply(x).sum())
    x = genesis.ones(2, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(5):
            step(x).backward()
    assert model.n == 5 and isinstance(model.n, int) and x.grad.tolist() == [10.0, 10.0]


def test_an_error_leaves_counts_and_tensors_as_they_were_before_the_call():
    class Looking:
        def __init__(self):
            self.t, self.h, self.table = 0, genesis.zeros(3), genesis.ones(5, 3)

        def step(self, i):
            self.t += 1
            self.h = self.h + F.embedding(i, self.table).sum(0)
            return self.h * self.t

    looking = Looking()
    step = genesis.compile(looking.step)
    for _ in range(3):
        step(genesis.tensor([1, 2]))
    before = looking.t, looking.h
    with pytest.raises(IndexError):
        step(genesis.tensor([1, 7]))
    assert looking.t == before[0] == 3 and looking.h is before[1]
    step(genesis.tensor([1, 2]))
    assert looking.t == 4 and looking.h.tolist() == [8.0, 8.0, 8.0]


@pytest.mark.parametrize("error", ["ZeroDivisionError", "Exception"])
def test_errors_of_numbers_that_the_function_catches(error, tmp_path):
    path = tmp_path / "catching.py"
    path.write_text(
        "class Catching:\n    t = 0\n\n    def step(self, x):\n        self.t += 1\n        try:\n"
        f"            return x * (1 / (self.t - 3))\n        except {error}:\n            return x * 100\n"
    )
    seen = []
    for compiled in (False, True):
        scope = {}
        exec(compile(path.read_text(), str(path), "exec"), scope)
        step = scope["Catching"]().step
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            step = genesis.compile(step) if compiled else step
            seen.append([step(genesis.ones(2)).tolist() for _ in range(6)])
    np.testing.assert_allclose(seen[1], seen[0])


def test_objects_whose_class_has_slots():
    class Slotted:
        __slots__ = ("h", "t")

        def __init__(self):
            self.t, self.h = 0, genesis.zeros(2)

        def step(self, x):
            self.t += 1
            self.h = self.h + x
            return self.h * self.t

    seen = []
    for compiled in (False, True):
        slotted = Slotted()
        step = genesis.compile(slotted.step) if compiled else slotted.step
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seen.append([step(genesis.ones(2) * k).tolist() for k in range(6)] + [slotted.t, slotted.h.tolist()])
    assert seen[1] == seen[0]


def test_a_second_derivative_does_not_set_anything_again():
    class Counting:
        t = 0

        def f(self, x):
            self.t += 1
            return (x**3).sum() * self.t

    counting = Counting()
    f, x = genesis.compile(counting.f), genesis.ones(2, requires_grad=True)
    for _ in range(3):
        y = f(x)
    with pytest.raises(RuntimeError, match="sets self.t"):
        genesis.autograd.grad(y, x, create_graph=True)
    assert counting.t == 3


def test_functions_of_math_are_the_ones_of_python_behind_a_trace():
    before = math.cos, math.floor
    step = genesis.compile(lambda x: x * math.cos(0.5))
    step(genesis.ones(2))
    assert (math.cos, math.floor) == before


MADE_OF_TEXT = """
class Tally:
    def __init__(self):
        self.steps, self.state = 0, {"n": 0}

    def bump(self):
        self.steps += 1
        self.state["n"] += 1

    def add(self, loss):
        self.bump()

    def keep(self, loss):
        self.loss = loss
"""
BESIDE = {
    "an attribute behind": ["tally.add(1.0)", "tally.steps += 1"],
    "an entry behind": ["tally.add(1.0)", "tally.state['n'] += 1"],
    "an attribute before": ["tally.steps += 1", "tally.add(1.0)"],
    "another attribute": ["tally.keep(1.0)", "tally.steps += 1"],
}


@pytest.mark.parametrize("beside", BESIDE)
def test_functions_without_source_set_what_the_step_sets(beside, recwarn):
    """Python runs them whole: what they set is not lost by what the step makes of the values before."""
    scope = {}
    exec(MADE_OF_TEXT, scope)

    def steps(compiled):
        tally = scope["Tally"]()
        lines = [f"def step(x, tally=tally):\n    {BESIDE[beside][0]}\n    {BESIDE[beside][1]}\n    return x * 2\n"]
        name = f"<functions without source {beside} {compiled}>"
        linecache.cache[name] = (len(lines[0]), None, lines[0].splitlines(True), name)
        exec(compile(lines[0], name, "exec"), made := {"tally": tally})
        step = genesis.compile(made["step"]) if compiled else made["step"]
        for _ in range(4):
            step(genesis.ones(3))
            yield tally.steps, tally.state["n"]

    assert list(steps(True)) == list(steps(False))
    assert not recwarn


class Counting(nn.Module):
    """A norm of a program's own, as most of them count."""

    def __init__(self, line):
        super().__init__()
        self.weight = nn.Parameter(genesis.ones(3))
        self.register_buffer("count", genesis.tensor(0))
        self.register_buffer("mean", genesis.zeros(3))
        source = f"def count(self):\n    {line}\n"
        linecache.cache[line] = len(source), None, source.splitlines(True), line
        scope = {}
        exec(compile(source, line, "exec"), scope)
        self.counts = scope["count"]

    def forward(self, x):
        self.counts(self)
        with genesis.no_grad():
            self.mean.lerp_(x.mean(0), 1.0 / self.count.float())
        return (x - self.mean) * self.weight


@pytest.mark.parametrize("line", ["self.count += 1", "self.count = self.count + 1", "self.count.add_(1)"])
def test_a_module_counts_in_a_buffer(line, recwarn):
    """``+=`` of a tensor writes to it, and puts it where it is."""
    seen = []
    for compiled in (False, True):
        genesis.manual_seed(0)
        module = Counting(line)
        call, made = genesis.compile(module) if compiled else module, []
        for _ in range(4):
            loss = call(genesis.randn(4, 3)).square().mean()
            module.zero_grad()
            loss.backward()
            made.append([loss.item(), module.weight.grad.tolist(), module.count.item(), module.mean.tolist()])
        seen.append(made)
    assert not recwarn.list
    for a, b in zip(*seen, strict=True):
        assert a[2] == b[2]
        np.testing.assert_allclose([a[0], *a[1], *a[3]], [b[0], *b[1], *b[3]], rtol=1e-5, atol=1e-6)


OTHER_WAYS = [
    "vars(meter)['value'] += 0.25",
    "meter.__dict__['value'] += 0.25",
    "vars(meter)['value'] = 0.25",
    "vars(meter).update(value=meter.value + 0.25)",
    "meter.__setattr__('value', meter.value + 0.25)",
]


@pytest.mark.parametrize("line", OTHER_WAYS)
def test_an_attribute_is_set_in_another_way_before(line):
    """The compiled call computed with what was there before the line, and put that over it."""
    seen = []
    for compiled in (False, True):
        meter = types.SimpleNamespace(value=1.0)
        text = f"def step(x):\n    {line}\n    y = x * 2\n    meter.value *= 0.5\n    return y + meter.value\n"
        name = f"<another way {line} {compiled}>"
        linecache.cache[name] = len(text), None, text.splitlines(True), name
        scope = {"meter": meter}
        exec(compile(text, name, "exec"), scope)
        step = genesis.compile(scope["step"]) if compiled else scope["step"]
        seen.append([(step(genesis.ones(2)).tolist(), meter.value) for _ in range(4)])
    assert seen[0] == seen[1]


LISTS = {
    "more": lambda kept: kept.append(kept[0]),
    "a new one": lambda kept: kept.append(genesis.full((2,), 3.0)),
    "in front": lambda kept: kept.insert(0, genesis.ones(2)),
    "fewer": lambda kept: kept.pop(),
    "the other way round": lambda kept: kept.reverse(),
}


@pytest.mark.parametrize("change", LISTS)
@pytest.mark.parametrize("read", ["sum", "len", "for", "stack"])
def test_how_many_are_in_a_list_of_which_a_step_sets_one(change, read):
    def seen(compiled):
        kept, w = [genesis.zeros(2), genesis.ones(2)], genesis.full((2,), 5.0)

        def add(x):
            y = sum(kept) - x
            kept[0] = w * x
            return y

        def count(x):
            y = kept[0] * len(kept) - x
            kept[0] = w * x
            return y

        def each(x):
            y = -x
            for one in kept:
                y = y + one
            kept[0] = w * x
            return y

        def joined(x):
            y = genesis.stack(kept).sum(0) - x
            kept[0] = w * x
            return y

        step = {"sum": add, "len": count, "for": each, "stack": joined}[read]
        step, results = genesis.compile(step) if compiled else step, []
        for i in range(5):
            results.append(step(genesis.full((2,), float(i))).tolist())
            if i == 2:
                LISTS[change](kept)
        return results

    assert seen(True) == seen(False)


def test_how_many_are_in_a_dictionary_of_which_a_step_sets_one():
    def seen(compiled):
        kept, w = {"a": genesis.zeros(2), "b": genesis.ones(2)}, genesis.full((2,), 5.0)

        def add(x):
            y = sum(kept.values()) - x
            kept["a"] = w * x
            return y

        step, results = genesis.compile(add) if compiled else add, []
        for i in range(5):
            results.append(step(genesis.full((2,), float(i))).tolist())
            if i == 2:
                kept["c"] = kept["a"]
        return results

    assert seen(True) == seen(False)


@pytest.mark.parametrize("change", [{"c": 50.0}, {"d": 4.0}])
def test_a_dictionary_of_numbers_of_which_a_step_sets_one(change):
    """The collector knows nothing of it before a number of it is exchanged."""

    def seen(compiled):
        kept = {"a": 1.0, "b": 2.0, "c": 3.0}

        def step(x):
            y = x * sum(kept.values())
            kept["a"] += 1
            return y

        run, results = genesis.compile(step) if compiled else step, []
        for i in range(5):
            results.append(run(genesis.ones(2)).tolist())
            if i == 2:
                kept.update(change)
        return results

    assert seen(True) == seen(False)
