"""What a compiled function reads of the outside is at each call what it is then: objects, containers and all in them."""

import linecache
from dataclasses import dataclass, replace
from typing import NamedTuple

import pytest

import genesis
from genesis import nn
from genesis.testing import fuzz_compile

OUTSIDE = """
from collections import OrderedDict, deque
from types import SimpleNamespace
import numpy as np
from genesis import nn, zeros

def ones():
    return zeros(3) + 1
class Box:
    rates = [1.0]
    def rate(self):
        return self.rates[0]
class Slots:
    __slots__ = ("n", "t")
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cache, self.items, self.deep, self.names = zeros(3), [zeros(3)], {"a": [zeros(3)]}, ["a", "b"]
    def forward(self, x):
        return x + self.cache + self.items[0] + self.deep["a"][0]
def closure():
    kept, rate, box = [zeros(3)], 1.0, SimpleNamespace(rate=1.0)
    def scaled(x):
        return x * rate * box.rate + kept[0]
    def change(what):
        nonlocal kept, rate, box
        if what == "list":
            kept = [ones()]
        elif what == "item":
            kept[0] = ones()
        elif what == "number":
            rate = 2.0
        else:
            box = SimpleNamespace(rate=3.0)
    return scaled, change

tensors, numbers, pair, some = [zeros(3), zeros(3)], [1.0, 2.0], (zeros(3), zeros(3)), {1, 2}
named, options, nested = {"a": zeros(3), "n": 2}, {"on": True, "k": 1.5}, [[zeros(3)], {"b": [zeros(3)]}]
recent, ordered = deque([zeros(3)], maxlen=3), OrderedDict(a=zeros(3))
box, slots, net, boxes = Box(), Slots(), Net(), [Box(), Box()]
box.list, box.dict, box.inner, box.t, slots.n, slots.t = [zeros(3)], {"k": zeros(3)}, Box(), zeros(3), 1.0, zeros(3)
box.inner.list = [zeros(3)]
for b in boxes:
    b.n, b.t, b.list = 1.0, zeros(3), [1.0]
functions, plus = [lambda x: x * 2, lambda x: x * 3], lambda x: x + 1
deeper, weights, wide = lambda kept=[1.0]: kept, np.ones(3), np.ones((2, 3), np.float32)
scaled, change = closure()
"""
KEPT = [
    "tensors",
    "numbers",
    "pair",
    "some",
    "named",
    "options",
    "nested",
    "recent",
    "ordered",
    "box",
    "slots",
    "net",
    "boxes",
    "functions",
    "plus",
    "deeper",
    "weights",
    "wide",
    "scaled",
]
CASES = {
    "tensors[0].add_(1)": ["tensors = [ones()] * 2", "tensors[0] = ones()", "tensors.insert(0, ones())"],
    "for t in tensors: t.add_(1)": ["tensors = [ones(), ones()]", "tensors[1] = ones()", "tensors.append(ones())"],
    "x = x + sum(tensors)": ["tensors[:] = [ones(), zeros(3)]", "tensors.append(ones())"],
    "x = genesis.cat(tensors)": ["tensors[0] = ones()", "tensors.append(ones())"],
    "x = x + tensors[-1] if isinstance(tensors, list) else x": ["tensors = pair"],
    "found = tensors; x = x + found[0]": ["tensors[0] = ones()", "tensors = [ones()]"],
    "named['a'].add_(1)": ["named = {'a': ones()}", "named['a'] = ones()", "named.update(a=ones())"],
    "for v in named.values(): x = x + v": ["named['a'] = ones()", "named['q'] = ones()", "named['n'] = 5"],
    "x = x * named.get('q', 1.0) + len(named)": ["named['q'] = 3.0", "named.pop('n')"],
    "key = 'a'; x = x + named[key]": ["named['a'] = ones()"],
    "x = x + pair[1]": ["pair = (zeros(3), ones())"],
    "x = x + nested[0][0] + nested[1]['b'][0]": ["nested[0] = [ones()]", "nested[1]['b'][0] = ones()"],
    "for t in box.list: x = x + t": ["box.list = [ones()]", "box.list[0] = ones()", "box.list.append(ones())"],
    "x = x + box.dict['k'] + box.t": ["box.dict = {'k': ones()}", "box.dict['k'] = ones()", "box.t = ones()"],
    "box.t.add_(1)": ["box.t = ones()"],
    "x = x + box.inner.list[0]": ["box.inner = Box(); box.inner.list = [ones()]", "box.inner.list[0] = ones()"],
    "x = x * box.rate()": ["box.rates = [3.0]", "Box.rates = [3.0]", "Box.rates[0] = 5.0", "Box.rate = lambda s: 7.0"],
    "x = x + 1 if hasattr(box, 'new') else x": ["box.new = 1"],
    "x = x * getattr(box, 'factor', 1.0)": ["box.factor = 2.0"],
    "x = x * vars(box).get('factor', 1.0)": ["box.factor = 2.0"],
    "for name in ['n', 'k']: x = x * getattr(box, name, 1.0)": ["box.n = 2.0"],
    "for name in ['items', 'deep']: x = x + len(getattr(net, name))": ["net.items.append(1)", "net.deep = {}"],
    "for d in deeper(): x = x + d": ["deeper.__defaults__[0].append(1.0)"],
    "x = x * slots.n + slots.t": ["slots.n = 2.0", "slots.t = ones()"],
    "for b in boxes: x = x * b.n + b.t + b.list[0]": ["boxes[0].n = 2.0", "boxes[0].t = ones()", "boxes[0].list[0] = 3.0"],
    "x = x * sum(b.n for b in boxes)": ["boxes[0].n = 2.0", "boxes[1].n = 2.0", "boxes.pop()"],
    "x = x * numbers[0] + max(numbers)": ["numbers = [3.0, 4.0]", "numbers[0] = 5.0", "numbers.append(6.0)"],
    "for n in numbers: x = x * n": ["numbers[0] = 5.0", "numbers.append(6.0)", "numbers.reverse(); numbers.append(2.0)"],
    "x = x * options['k'] if options['on'] else x": ["options = {'on': False}", "options['on'] = False"],
    "if 'new' in options: x = x + 1": ["options['new'] = 1"],
    "for k, v in options.items(): x = x * v + len(k)": ["options['k'] = 2.0", "options['long'] = options.pop('k')"],
    "x = x + len(some) + (3 in some)": ["some.add(3)", "some = {1, 3}"],
    "for t in recent: x = x + t": ["recent.append(ones())", "recent[0] = ones()"],
    "x = x * weights[0] + float(weights.sum())": ["weights[0] = 3", "weights = np.zeros(3)"],
    "x = x + genesis.from_numpy(wide)[1]": ["wide[1] = 3"],
    "for v in ordered.values(): x = x + v": ["ordered['a'] = ones()", "ordered['b'] = 1.0"],
    "x = x + ordered['a']": ["ordered['a'] = ones()", "ordered = OrderedDict(a=ones())"],
    "x = net(x)": ["net.cache = ones()", "net.items = [ones()]", "net.items[0] = ones()", "net.deep['a'][0] = ones()"],
    "for name in net.names: x = x + len(name)": ["net.names[0] = 'long'", "net.names.append('c')"],
    "x = scaled(x)": ["change('list')", "change('item')", "change('number')", "change('box')"],
    "x = functions[0](plus(x))": ["functions.reverse()", "plus = lambda x: x + 2"],
}  # fmt: skip


HOMES = {
    "globals": "def step(x):\n    {line}\n    return x * 2\ndef move():\n    global {names}\n    {change}\n"
    "def look():\n    return tensors, box",
    "a closure": "def home({names}):\n    def step(x):\n        {line}\n        return x * 2\n"
    "    def move():\n        nonlocal {names}\n        {change}\n"
    "    def look():\n        return tensors, box\n    return step, move, look\nstep, move, look = home({names})",
}


@pytest.mark.parametrize("home", HOMES)
@pytest.mark.parametrize(("line", "change"), [(line, change) for line, changes in CASES.items() for change in changes])
def test_what_is_read_of_the_outside(line, change, home):
    lines = line.replace("; ", "\n    " if home == "globals" else "\n        ")
    source = HOMES[home].format(line=lines, change=change, names=", ".join(KEPT))

    def seen(compiled):
        scope = {"genesis": genesis}
        exec(OUTSIDE + source, scope)
        step, results = genesis.compile(scope["step"], fullgraph=True) if compiled else scope["step"], []
        for call in range(5):
            if call == 3:
                scope["move"]()
            tensors, box = scope["look"]()
            results += [step(genesis.ones(3)).tolist(), [t.tolist() for t in tensors], box.t.tolist()]
        return results

    with fuzz_compile.arithmetic(False):
        assert seen(True) == seen(False)


def test_what_is_not_read_is_of_no_matter():
    log, options, box = [], {"rate": 2.0, "seen": 0}, type("Box", (), {})()
    box.rate, box.last, box.losses = 0.5, None, []

    @genesis.compile
    def step(x):
        return x * options["rate"] * box.rate

    for call in range(12):
        options["seen"], box.last = call, step(genesis.ones(3))
        log.append(box.last)
        box.losses.append(float(box.last.sum()))
    assert box.losses == [3.0] * 12
    assert step.explain().splitlines()[0] == "step: 1 graphs, 1 traces"


def test_what_dataclasses_do_themselves_is_not_looked_at():
    @dataclass(frozen=True)
    class Options:
        scale: float
        tensor: object

    @genesis.compile(fullgraph=True)
    def step(x):
        options = Options(2.0, x)
        return options.tensor * options.scale

    assert [step(genesis.ones(2) * k).tolist() for k in range(3)] == [[2.0 * k] * 2 for k in range(3)]
    assert "__setattr__" not in step.explain()


def test_fields_that_a_copy_of_a_dataclass_reads():
    """Found by fuzz_recipes, seed 2001013."""
    batch = Batch(genesis.ones(2), [2.0])
    step = genesis.compile(lambda x: replace(batch, tensor=x).more[0] * x, fullgraph=True)
    results = []
    for call in range(4):
        if call == 2:
            batch.more = [5.0]
        results.append(step(genesis.ones(2)).tolist())
    assert results == [[2.0] * 2, [2.0] * 2, [5.0] * 2, [5.0] * 2]


def test_arguments_that_are_containers_hold_other_tensors_at_each_call():
    batch, pairs = {"x": None}, [None, 2.0]

    @genesis.compile
    def step(batch, pairs):
        return sum(batch.values()) + batch["x"] * pairs[1] + pairs[0]

    for call in range(12):
        batch["x"], pairs[0] = genesis.full((3,), float(call)), genesis.ones(3)
        assert step(batch, pairs).tolist() == [3.0 * call + 1] * 3
    assert step.explain().splitlines()[0] == "step: 1 graphs, 1 traces"


class Pair(NamedTuple):
    scale: float
    tensor: genesis.Tensor


@dataclass
class Batch:
    tensor: genesis.Tensor
    more: list


@pytest.mark.parametrize(
    ("function", "made"),
    [
        (lambda p: p.tensor * p.scale, lambda x: Pair(2.0, x)),
        (lambda p: (lambda inside, k=3: inside[1][0] * k)(p), lambda x: (2, [x])),
        (lambda p: sum(x * k for k, x in p), lambda x: [(2, x), (3, x + 1)]),
        (lambda p: sum(x * k for k, x in p["pairs"]), lambda x: {"pairs": [(2, x)]}),
        (lambda p: sum(p.more, p.tensor), lambda x: Batch(x, [x * 2, 3.0])),
    ],
    ids=["a namedtuple", "tuples", "tuples in a list", "a dictionary", "a dataclass"],
)
def test_arguments_of_any_structure_hold_other_tensors_at_each_call(function, made):
    step = genesis.compile(function, fullgraph=True)
    for call in range(4):
        x = genesis.full((3,), 1.0 + call)
        assert step(made(x)).tolist() == function(made(x)).tolist()
    assert step.explain().splitlines()[0].endswith("1 graphs, 1 traces")


def test_gradients_of_tensors_that_require_none():
    """Found by fuzz_training, seed 286: values of the trace stayed in the ``.grad`` of a tensor that was frozen."""
    parameters = [genesis.ones(3, requires_grad=True), genesis.ones(2, requires_grad=True)]

    @genesis.compile
    def step(x):
        for p in parameters:
            p.grad = None if p.grad is None else p.grad * 0.5
        return x * 2

    for p in parameters:
        p.grad = genesis.ones(p.shape)
    step(genesis.ones(2))
    parameters[1].requires_grad_(False)
    with pytest.warns(UserWarning, match=r"the \.grad of a tensor from outside is set"):
        for _ in range(3):  # at the next call it might not be set any more
            step(genesis.ones(2))
    assert [p.grad.tolist() for p in parameters] == [[0.0625] * 3, [0.0625] * 2]


def test_a_layer_is_frozen_while_it_has_a_gradient():
    """`zero_grad` takes it away in the first call behind that, which runs as it is; all behind it were left so, too."""

    def seen(compiled):
        genesis.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
        optimizer = genesis.optim.SGD(model.parameters(), 0.1, momentum=0.9)

        def step(x):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        run, results = genesis.compile(step) if compiled else step, []
        for call in range(9):
            if call % 3 == 0:
                model[0].requires_grad_(call != 3)
            results += [run(genesis.full((2, 3), 1.0 + call)).tolist()]
            results += [None if p.grad is None else p.grad.tolist() for p in model.parameters()]
        return results, run

    with fuzz_compile.arithmetic(False):
        (expected, _), (got, step) = seen(False), seen(True)
    assert got == expected
    assert step.explain().splitlines()[0] == "step: 2 graphs, 3 traces" and "not compiled" not in step.explain()


def test_gradients_that_are_replaced_may_be_anything():
    """A step that begins with ``zero_grad`` does not ask what was there: histories, subclasses and other strides."""

    class Mine(genesis.Tensor):
        pass

    w = genesis.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)

    @genesis.compile
    def step():
        w.grad = None
        (w * w).sum().backward()

    step()
    for before in (
        None,
        w * 3,
        genesis.ones(2, 2).as_subclass(Mine),
        genesis.ones(2, 2).t(),
        genesis.ones(2, 1).expand(2, 2),
    ):
        kept = before
        w.grad = before
        step()
        assert w.grad is not kept and type(w.grad) is genesis.Tensor and w.grad.grad_fn is None
        assert w.grad.tolist() == [[2.0, 4.0], [6.0, 8.0]] and w.grad.is_contiguous()
    assert "1 graphs, 1 traces" in step.explain()


def test_a_gradient_that_a_frozen_tensor_has_or_not():
    frozen = genesis.ones(3)

    @genesis.compile(fullgraph=True)
    def step(x):
        return x if frozen.grad is None else x + frozen.grad

    results = []
    for call in range(4):
        frozen.grad = genesis.full((3,), float(call)) if call > 1 else None
        results.append(step(genesis.ones(3)).tolist())
    assert results == [[1.0] * 3, [1.0] * 3, [3.0] * 3, [4.0] * 3]


def test_the_gradient_of_an_argument_is_refused_with_a_sentence():
    w = genesis.ones(3, requires_grad=True)

    @genesis.compile
    def step(x):
        (w * x).sum().backward()
        return x.detach() * 2

    with pytest.warns(UserWarning, match=r"the \.grad of an argument"):
        for _ in range(3):
            x = genesis.ones(3).requires_grad_()
            step(x)
            assert x.grad.tolist() == [1.0] * 3
    assert w.grad.tolist() == [3.0] * 3


# ---- whether modules are in training


def training_where(line):
    """The losses, gradients and modes of a step that sets whether its model is in training, as it is and compiled."""
    ways = []
    for compiled in (False, True):
        genesis.manual_seed(0)
        model, seen = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.BatchNorm1d(4)), []
        other = nn.Linear(1, 1)
        if line == "before":
            model.eval()

        def step(x, on, model=model, other=other):
            if line in ("first", "between"):
                model.train(on)
            if line == "validation":
                model.eval()
                with genesis.no_grad():
                    score = model(x).sum()
                model.train()
            with genesis.set_grad_enabled(model[0].training):
                loss = model(x).square().mean()
            if loss.requires_grad:
                loss.backward()
            if line == "uncalled":
                loss = loss * 2 if other.training else loss
                other.train(on)
            if line == "between":
                model[1].eval()
                loss = loss + model(x).mean()
            if line in ("last", "before"):
                model.train(on)
            return loss.detach() + (score if line == "validation" else 0)

        run = genesis.compile(step, fullgraph=True) if compiled else step
        for call, on in enumerate([True, True, False, True, True, False, False, True]):
            x = genesis.arange(12.0).reshape(3, 4).cos() * (call + 1)
            seen += [run(x, on).item(), [m.training for m in model.modules()]]
            seen += [None if p.grad is None else p.grad.tolist() for p in model.parameters()]
            seen += [b.tolist() for b in model.buffers()]
            if call == 4:
                model.train(line != "before")
        ways.append((seen, run))
    return ways


@pytest.mark.parametrize("line", ["first", "last", "between", "before", "validation", "uncalled"])
def test_what_sets_whether_modules_are_in_training_does_so_at_each_call(line):
    with fuzz_compile.arithmetic(False):
        (expected, _), (seen, run) = training_where(line)
    assert seen == expected
    assert len(run._recent) <= {"validation": 2, "between": 6}.get(line, 4)


# ---- what methods of this package change

CHANGES = {
    "a hook": "model.register_forward_hook(lambda m, a, o: o * 0.5); y = model(x)",
    "a hook for one call": "handle = model.register_forward_hook(lambda m, a, o: o * 0.5); y = model(x); handle.remove()",
    "a hook that is removed": "y = model(x); handle.remove()",
    "a group": "optimizer.add_param_group({'params': [nn.Parameter(ones(2))]}); y = model(x)",
    "memory": "model.weight.data = model.weight.data * 0.5; y = model(x)",
}


@pytest.mark.filterwarnings("ignore:compile")  # what is not compiled is right
@pytest.mark.parametrize("line", CHANGES.values(), ids=CHANGES)
def test_what_methods_of_modules_and_optimizers_change(line):
    def seen(compiled):
        genesis.manual_seed(0)
        model = nn.Linear(4, 4)
        optimizer = genesis.optim.SGD(model.parameters(), lr=0.1)
        handle = model.register_forward_hook(lambda m, a, o: o + 1)
        scope = {"model": model, "optimizer": optimizer, "handle": handle, "nn": nn, "ones": genesis.ones}
        source, name = f"def step(x):\n    {line}\n    return y.detach()\n", f"<{line}>"
        linecache.cache[name] = len(source), None, source.splitlines(True), name
        exec(compile(source, name, "exec"), scope)
        step, results = scope["step"], []
        run = genesis.compile(step) if compiled else step
        for call in range(4):
            results.append(run(genesis.full((3, 4), 0.5 + call)).tolist())
            results += [len(optimizer.param_groups), len(model._forward_hooks), model.weight.tolist()]
        return results

    with fuzz_compile.arithmetic(False):
        assert seen(True) == seen(False)
