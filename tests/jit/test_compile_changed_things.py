"""One line that changes a module or an optimizer, somewhere in a step: compiled it does what it does eagerly, at each call."""

from __future__ import annotations

import linecache
import warnings

import pytest

import genesis
from genesis import nn
from genesis.base.errors import GraphError
from genesis.kernels.llvm import loops
from genesis.testing import fuzz_compile

pytestmark = pytest.mark.skipif(not loops.available(), reason="there is no llvmlite")

OF_MODULES = [
    "m.l.weight = nn.Parameter(m.l.weight.detach() * 0.9)",
    "m.w = nn.Parameter(m.w.detach() * 0.9)",
    "m.w = nn.Parameter(m.w.data * 0.9, requires_grad=False)",
    "m.l.bias, m.w = m.w, m.l.bias",
    "m.l.bias = None",
    "m.l.new = nn.Parameter(genesis.ones(3) * float(m.b.sum())); m.b = m.b * 0.5",
    "m.l = nn.Linear(3, 3)",
    "m.seq[0] = nn.Linear(3, 3)",
    "m.seq[1] = nn.ReLU() if m.n % 2 else nn.Tanh(); m.n += 1",
    "m.seq.insert(1, nn.Linear(3, 3)) if len(m.seq) < 4 else m.seq.pop(1)",
    "del m.seq[1]; m.seq.append(nn.Tanh())",
    "m.p[0] = genesis.ones(3) * 0.5",
    "m.p.append(genesis.ones(3)) if len(m.p) < 3 else None",
    "m.pd.update({'b': genesis.ones(3)}) if len(m.pd) < 2 else m.pd.pop('b')",
    "m.md['a'] = nn.Linear(3, 3)",
    "m.md['b'] = nn.Tanh(); m.md.pop('b')",
    "m.bn.running_mean = m.bn.running_mean * 0.5",
    "m.bn.num_batches_tracked += 1",
    "m.bn.momentum = m.bn.momentum * 0.5",
    "m.bn.train(m.n % 2 == 0); m.n += 1",
    "m.bn.double(); m.bn.float()",
    "m.l.scale = getattr(m.l, 'scale', 1.0) * 0.5",
    "m.l.in_features = m.l.in_features + 1",
    "setattr(m.l, 'weight', nn.Parameter(m.l.weight.detach() * 0.9))",
    "[setattr(q, 'data', q.data * 0.9) for q in m.l.parameters()]",
    "m.l._parameters['weight'] = nn.Parameter(m.l.weight.detach() * 0.9)",
    "m.l._parameters.update(weight=nn.Parameter(m.l.weight.detach() * 0.9))",
    "m.l.register_parameter('weight', nn.Parameter(m.l.weight.detach() * 0.9))",
    "m.register_buffer('b', m.b.clone() * 0.9)",
    "m.extra = nn.Buffer(m.b.clone() * 0.5)",
    "m.l.__setattr__('scale', 0.5)",
    "m.l.__setattr__('weight', nn.Parameter(m.l.weight.detach() * 0.9))",
    "nn.Module.__setattr__(m.l, 'scale', getattr(m.l, 'scale', 1.0) * 0.5)",
    "m.l.__delattr__('bias'); m.l.register_parameter('bias', None)",
    "m.l.weight.data = m.l.weight.data * 0.9",
    "m.l.weight.data.mul_(0.9)",
    "m.l.weight.requires_grad = not m.l.weight.requires_grad",
    "m.l.load_state_dict({k: v * 0.9 for k, v in m.l.state_dict().items()})",
    "m.l.load_state_dict({k: v * 0.9 for k, v in m.l.state_dict().items()}, assign=True)",
    "m.b.data = m.b.data * 0.9",
    "m.b[m.n % 3] += float(x.sum()); m.n += 1",
    "m.act = m.acts.pop()",
    "m.f = lambda y: y * m.n; m.n += 1",
]
OF_OPTIMIZERS = [
    "o.param_groups[0]['lr'] *= 0.9",
    "o.param_groups[0]['weight_decay'] = 0.1 if n[0] % 2 else 0.0; n[0] += 1",
    "o.param_groups[0]['betas'] = (0.5 + 0.1 * n[0], 0.9); n[0] += 1",
    "o.param_groups[0]['params'].pop() if len(o.param_groups[0]['params']) > 2 else None",
    "o.param_groups[0]['params'].reverse()",
    "o.param_groups.append({**o.param_groups[0], 'params': [w]}) if len(o.param_groups) < 2 else None",
    "o.add_param_group({'params': [w], 'lr': 0.2}) if len(o.param_groups) < 2 else None",
    "o.state.clear()",
    "o.state[m[0].weight] = {}",
    "o.state.pop(m[0].weight, None)",
    "[s.update(step=0) for s in o.state.values() if 'step' in s]",
    "[s['exp_avg'].zero_() for s in o.state.values() if 'exp_avg' in s]",
    "for s in o.state.values():\n        if 'exp_avg' in s: s['exp_avg'] = s['exp_avg'] * 0.5",
    "o.load_state_dict(o.state_dict())",
    "o.zero_grad(set_to_none=False)",
    "m[0].weight.grad = None",
    "m[0].weight.grad = genesis.ones_like(m[0].weight)",
    "for p in m.parameters():\n        if p.grad is not None: p.grad = p.grad.sign()",
    "for p in m[0].parameters(): p.requires_grad_(n[0] % 2 == 0)\n    n[0] += 1",
    "for p in m[0].parameters(): p.requires_grad = n[0] >= 2\n    n[0] += 1",
    "w.data = m[0].bias.detach().clone()",
    "m[0].bias = w",
    "schedule.step()",
    "schedule.load_state_dict(schedule.state_dict())",
    "average.update_parameters(m)",
    "genesis.manual_seed(n[0]); n[0] += 1",
]


class Model(nn.Module):
    """A bit of all that a module may hold."""

    def __init__(self):
        super().__init__()
        self.l, self.w, self.bn = nn.Linear(3, 3), nn.Parameter(genesis.ones(3)), nn.BatchNorm1d(3)
        self.seq, self.p = nn.Sequential(nn.Linear(3, 3), nn.Tanh()), nn.ParameterList([genesis.ones(3)])
        self.pd, self.md = nn.ParameterDict({"a": genesis.ones(3)}), nn.ModuleDict({"a": nn.Linear(3, 3)})
        self.register_buffer("b", genesis.ones(3))
        self.n, self.act, self.acts = 0, nn.Tanh(), [nn.ReLU(), nn.Tanh(), nn.GELU(), nn.SiLU(), nn.ReLU()] * 2

    def forward(self, x):
        y = self.l(x) * self.w + self.b
        y = y * getattr(self.l, "scale", 1.0) + getattr(self.l, "new", 0.0)
        y = self.act(self.bn(self.seq(y) + self.p[0] + self.pd["a"] + self.md["a"](y)))
        return (self.f(y) if hasattr(self, "f") else y).square().sum() + self.l.in_features


def step_of(lines, scope):
    """A step of these lines, which have a file."""
    source = "def step(x):\n" + "".join([f"    {line}\n" for line in lines])
    name = f"<{hash(source)}>"
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    exec(compile(source, name, "exec"), scope)
    return scope["step"]


def numbers(tensors):
    return [None if x is None else x.tolist() for x in tensors]


def results(make, seen, compiled, calls=5):
    genesis.manual_seed(0)
    step, (made, xs) = make(), ([], genesis.randn(calls, 4, 3))
    step = genesis.compile(step) if compiled else step
    with warnings.catch_warnings(), fuzz_compile.arithmetic(False):
        warnings.simplefilter("ignore")
        for x in xs:
            made.append([step(x).item(), *seen()])
    return made


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("line", OF_MODULES)
def test_a_line_changes_a_module(line, late):
    scope = {"genesis": genesis, "nn": nn}

    def make():
        scope["m"] = Model()
        lines = [line, "y = m(x)"] if not late else ["y = m(x)", line]
        return step_of([*lines, "m.zero_grad()", "y.backward()", "return y"], scope)

    def seen():
        m = scope["m"]
        gradients = numbers([p.grad for p in m.parameters()])
        return [
            numbers(m.parameters()),
            gradients,
            numbers(m.buffers()),
            m.n,
            [p.requires_grad for p in m.parameters()],
        ]

    assert results(make, seen, True) == results(make, seen, False)


@pytest.mark.parametrize("at", range(3))
@pytest.mark.parametrize("line", OF_OPTIMIZERS)
@pytest.mark.parametrize("kind", ["AdamW", "SGD"])
def test_a_line_changes_an_optimizer(line, at, kind):
    """Before the step, between backward and the optimizer, or behind all."""
    scope = {"genesis": genesis, "nn": nn}

    def make():
        scope["m"] = m = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
        options = {"momentum": 0.9} if kind == "SGD" else {}
        scope["o"] = o = getattr(genesis.optim, kind)(m.parameters(), lr=0.05, **options)
        scope["w"], scope["n"] = nn.Parameter(genesis.ones(4)), [0]
        scope["schedule"] = genesis.optim.lr_scheduler.StepLR(o, 2, 0.5)
        scope["average"] = genesis.optim.swa_utils.AveragedModel(m)
        lines = ["o.zero_grad()", "y = nn.functional.dropout(m(x), 0.1)", "loss = y.square().mean() + w.sum() * 0.1"]
        lines = [*lines, "loss.backward()", "o.step()", "return loss"]
        lines.insert([0, 4, 5][at], line)
        return step_of(lines, scope)

    def seen():
        tensors = [*scope["m"].parameters(), scope["w"], *scope["average"].parameters()]
        groups = [(group["lr"], group["weight_decay"], len(group["params"])) for group in scope["o"].param_groups]
        states = [
            {k: x.tolist() if isinstance(x, genesis.Tensor) else x for k, x in scope["o"].state.get(p, {}).items()}
            for p in tensors
        ]
        return [numbers(tensors), numbers([x.grad for x in tensors]), groups, states, scope["n"][0]]

    assert results(make, seen, True) == results(make, seen, False)


def test_a_trace_that_fails_leaves_the_state_that_was_there():
    """The moments were emptied, and began anew at each call."""
    weight = nn.Parameter(genesis.ones(3))
    optimizer = genesis.optim.AdamW([weight], lr=0.1)

    @genesis.compile
    def step(x):
        optimizer.zero_grad()
        (weight * x).sum().backward()
        optimizer.step()

    def halved(x):
        for state in optimizer.state.values():
            state["exp_avg"] = state["exp_avg"] * 0.5
        step.original(x)

    step(genesis.ones(3))
    before = {k: x.tolist() if k != "step" else x for k, x in optimizer.state[weight].items()}
    with pytest.raises(GraphError, match="that it made while it was traced"):
        genesis.jit.trace(halved, genesis.ones(3))
    after = optimizer.state[weight]
    assert sorted(after) == sorted(before) and after["step"] == before["step"]


def test_a_state_is_loaded_between_calls_of_a_step_that_empties_it():
    """It is in another dictionary then than the one that a call was seen to change."""

    def seen(compiled):
        genesis.manual_seed(0)
        w = nn.Parameter(genesis.randn(3, 4))
        optimizer = genesis.optim.RMSprop([w], lr=0.01)

        def step(x):
            optimizer.state.clear()
            optimizer.zero_grad()
            (w * w).tanh().sum().backward()
            optimizer.step()
            return w * x

        run, told = genesis.compile(step) if compiled else step, []
        for call in range(6):
            run(genesis.ones(3, 4).requires_grad_(call == 5))
            told += [w.detach().clone(), *optimizer.state[w].values()]
            if call == 4:
                optimizer.load_state_dict(optimizer.state_dict())
        return told

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected, actual = seen(False), seen(True)
    assert len(expected) == len(actual)
    for x, y in zip(expected, actual, strict=True):
        genesis.testing.assert_close(genesis.as_tensor(x), genesis.as_tensor(y))


class Holder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)


def test_a_module_is_set_in_a_trace_that_fails():
    """What the trace made was left there."""

    def seen(compiled):
        genesis.manual_seed(0)
        holder = Holder()

        def step(x):
            holder.layer.weight = nn.Parameter(holder.layer.weight.detach() * 0.9)
            holder.layer = nn.Linear(4, 4)
            return x * 2

        run, told = genesis.compile(step) if compiled else step, []
        for _ in range(5):
            told += [run(genesis.ones(3)).tolist(), holder.layer.weight.tolist()]
        return told

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert seen(True) == seen(False)


class Members(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.seq, self.n = nn.LayerNorm(3), nn.Sequential(nn.Linear(3, 3)), 0
        self.w = nn.Parameter(genesis.ones(3))


SET = [
    "m.norm = nn.Identity() if m.n % 2 else nn.LayerNorm(3)",
    "m.w = None",
    "m.norm.weight = nn.Parameter(m.norm.weight.detach() * 0.9)",
    "m.seq[0] = nn.Linear(3, 3)",
]
WALKED = [
    "m.load_state_dict({k: v * 0.9 for k, v in m.state_dict().items()})",
    "x = x * sum(p.sum() for p in m.parameters()).detach()",
    "x = x * len(m.state_dict())",
    "x = x * len([*m.modules(), *m.children(), *m.named_parameters()])",
    "for p in m.parameters(): p.data.mul_(0.9)",
]


@pytest.mark.filterwarnings("ignore:compile")
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("walk", WALKED)
@pytest.mark.parametrize("line", SET)
def test_a_line_changes_a_module_that_the_step_goes_through(line, walk, late):
    body = [walk, line] if late else [line, walk]
    text = "def step(x):\n    m.n += 1\n    " + "\n    ".join(body) + "\n    return x * 2\n"
    name = f"<goes through a module {hash(text)}>"
    linecache.cache[name] = len(text), None, text.splitlines(True), name

    def seen(compiled):
        genesis.manual_seed(0)
        scope = {"m": Members(), "nn": nn}
        exec(compile(text, name, "exec"), scope)
        step, told = genesis.compile(scope["step"]) if compiled else scope["step"], []
        for n in range(4):
            told += [step(genesis.full((3,), n + 1.0)), *scope["m"].state_dict().values()]
        return told

    expected, actual = seen(False), seen(True)
    assert len(expected) == len(actual)
    for x, y in zip(expected, actual, strict=True):
        genesis.testing.assert_close(x, y)
