"""Graphs of programs are those that PyTorch makes: nodes, names, arguments, code, results and gradients."""

from __future__ import annotations

import copy
import math
import operator

import numpy as np
import pytest

import genesis

torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
pytest.importorskip("torch.fx")

pytestmark = pytest.mark.parity
BOTH = (genesis, torch)


def programs(t):
    """Functions of one argument, a tensor of 2 x 3 x 4."""
    F = t.nn.functional
    table = t.linspace(0, 1, 4)
    return {
        "operators": lambda x: (2 - x) * x / 3 + x**2 - (-x) - abs(x) + (x @ x.transpose(1, 2)).sum(),
        "compared": lambda x: (x > 0) & (x <= 1) | ~(x == 0.5) ^ (x != 2),
        "reflected": lambda x: 1.5 + x - (2 * x) + 3 / (x + 4) + 2 ** (x * 2),
        "methods": lambda x: x.relu().sum(dim=1, keepdim=True).view(2, -1).to(t.float64).float(),
        "functions": lambda x: t.cat([t.relu(x), t.sin(x)], dim=1) + t.add(x[:, :1], 1, alpha=2),
        "slices": lambda x: x[..., 1:, None][:, :, 0][0, ::2],
        "sizes": lambda x: x.reshape(x.shape[0], -1) * x.size(1),
        "nested": lambda x: {"a": (x, [x + 1, None]), "b": slice(1, 2)},
        "mask": lambda x: x[x > 0],
        "constant": lambda x: x + table,
        "constant first": lambda x: table * x,
        "made": lambda x: t.zeros(x.shape) + t.arange(x.size(2)),
        "made alike": lambda x: t.ones_like(x, dtype=t.float32) + x.new_zeros(4),
        "attribute": lambda x: x.mT.ndim + x.shape[-1],
        "unpacked": lambda x: (lambda a, b: a + b)(x[0], x[1]),
        "chunks": lambda x: t.split(x, 2, dim=2)[0] + t.chunk(x, 2, dim=2)[1],
        "inplace": lambda x: (x * 1).add_(2).mul_(3),
        "augmented": lambda x: operator.iadd(x * 1, 1),
        "math": lambda x: math.sqrt(x.size(0)) * x,
        "sum of a list": lambda x: sum([x, x * 2]),
        "where": lambda x: t.where(x > 0, x, 0.0).clamp(min=0.1),
        "named": lambda x: x.max(dim=1).values + x.max(dim=1)[0],
        "einsum": lambda x: t.einsum("bij,bkj->bik", x, x),
        "matrix": lambda x: t.matmul(x, x.mT).softmax(-1).flatten(1),
        "functional": lambda x: F.conv1d(x, t.ones(1, 3, 1)) + F.pairwise_distance(x, x + 1).mean(),
        "unused": lambda x: (x * 2, x + 1)[1],
        "einsum of a list": lambda x: t.einsum("bij,bkj->bik", [x, x]),
        "stacked": lambda x: t.stack(tensors=[x, x]),
    }  # fmt: skip


def nodes(graph):
    def plain(text):
        return text.replace("genesis.", "torch.").replace("torch.Size", "Size")

    rows = []
    for node in graph.nodes:
        target = node.target if isinstance(node.target, str) else node.target.__name__
        if node.op == "call_method" or target == getattr(node.target, "__name__", None):
            target = {"divide": "div"}.get(target, target)
        rows.append((node.op, node.name, target, plain(str(node.args)), plain(str(dict(node.kwargs)))))
    return rows


def input_of(t):
    x = t.tensor((np.arange(24, dtype=np.float32).reshape(2, 3, 4) / 7 - 1).tolist())
    return x.requires_grad_()


@pytest.mark.parametrize("name", list(programs(genesis)))
def test_nodes_code_and_results(name):
    ours, theirs = (t.fx.symbolic_trace(programs(t)[name]) for t in BOTH)
    assert nodes(ours.graph) == nodes(theirs.graph)
    code = [m.code.replace("_symbolic_trace.", "").replace("torch.functional.", "torch.") for m in (ours, theirs)]
    assert code[0] == code[1]
    x, y = input_of(genesis), input_of(torch)
    a, b = ours(x), theirs(y)
    if isinstance(a, genesis.Tensor):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-5, atol=1e-6)
        if a.requires_grad:
            a.float().sum().backward()
            b.float().sum().backward()
            np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-5, atol=1e-6)


def model(t):
    nn = t.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
            self.scale = nn.Parameter(t.ones(4))
            self.register_buffer("shift", t.zeros(4))

        def forward(self, x: t.Tensor, deep: bool = False) -> t.Tensor:
            y = self.body(x) * self.scale + self.shift
            return y + x if deep else y - self.body[0].weight.sum()

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList([Block(), Block()])
            self.head = nn.Linear(4, 2, bias=False)

        def forward(self, x, *, scale=2.0):
            for block in self.blocks:
                x = block(x, deep=True)
            return self.head(block(x)) * scale

    made = Model()
    with t.no_grad():
        for i, (_, p) in enumerate(sorted(made.named_parameters())):
            p.copy_(t.tensor(np.cos(np.arange(p.numel()) + i).reshape(tuple(p.shape)).astype("float32").tolist()))
    return made


def test_a_model_with_modules_parameters_and_buffers():
    ours, theirs = (t.fx.symbolic_trace(model(t)) for t in BOTH)
    assert nodes(ours.graph) == nodes(theirs.graph) and ours.code == theirs.code
    assert str(ours.graph) == str(theirs.graph)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert [n for n, _ in ours.named_modules()] == [n for n, _ in theirs.named_modules()]
    x = np.linspace(-1, 1, 12, dtype="float32").reshape(3, 4)
    a, b = ours(genesis.tensor(x.tolist())), theirs(torch.tensor(x))
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-5)
    a.sum().backward()
    b.sum().backward()
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-4, atol=1e-5)


def through(t):
    """A tracer that looks into all modules."""

    class Through(t.fx.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return False

    return Through()


@pytest.mark.parametrize("make", [
    lambda t: t.nn.Sequential(t.nn.Conv2d(1, 2, 3, padding=1), t.nn.Tanh(), t.nn.AvgPool2d(2)),
    lambda t: t.nn.Sequential(t.nn.Linear(4, 4), t.nn.LayerNorm(4), t.nn.GELU(), t.nn.Dropout(0.1)),
    lambda t: t.nn.Embedding(3, 2),
])  # fmt: skip
def test_what_a_tracer_sees_inside_of_layers_has_their_functions_and_parameters(make):
    found = []
    for t in BOTH:
        graph = through(t).trace(make(t).eval())
        found.append([(n.op, n.name) for n in graph.nodes if n.op != "placeholder"])
    assert found[0] == found[1]


@pytest.mark.parametrize("kind", ["dict", "tuple"])
def test_containers_among_the_arguments(kind):
    def f(x, opts):
        return {"y": opts["a"] + x if kind == "dict" else opts[0] + x, "z": x}

    results = []
    for t in BOTH:
        given = {"a": t.fx.PH, "b": 3} if kind == "dict" else (t.fx.PH, 3)
        traced = t.fx.symbolic_trace(f, concrete_args={"opts": given})
        called = {"a": t.ones(2), "b": 3} if kind == "dict" else (t.ones(2), 3)
        results.append({k: v.tolist() for k, v in traced(t.ones(2), called).items()})
        names = [n.name for n in traced.graph.nodes if n.op == "placeholder"]
        results[-1]["names"] = names
    assert results[0] == results[1]


def test_arguments_that_are_known_are_checked():
    def f(x, deep):
        return x + 1 if deep else x - 1

    for t in BOTH:
        traced = t.fx.symbolic_trace(f, concrete_args={"deep": False})
        assert traced(t.ones(1), False).item() == 0
        with pytest.raises((ValueError, AssertionError), match="deep has been specialized to have value False"):
            traced(t.ones(1), True)


@pytest.mark.parametrize(("program", "error"), [
    (lambda x: x if x.sum() > 0 else -x, ValueError), (lambda x: [a for a in x], ValueError), (lambda x: x and 1, ValueError),
    (lambda x: len(x), RuntimeError), (lambda x: int(x), TypeError), (lambda x: range(x), TypeError), (lambda x: {x: 1}, RuntimeError),
    (lambda x: object(), NotImplementedError), (lambda x: max(x, 1), ValueError), (lambda x: (lambda *a: a)(*x), ValueError),
])  # fmt: skip
def test_what_cannot_be_traced_is_refused_alike(program, error):
    said = []
    for t in BOTH:
        with pytest.raises(error) as caught:
            t.fx.symbolic_trace(program)
        said.append((caught.type.__name__ == "TraceError", str(caught.value)[:40]))
    assert said[0][0] == said[1][0]
    if said[0][0] or error in (RuntimeError, NotImplementedError):
        assert said[0][1][:24] == said[1][1][:24]


def test_changes_by_hand():
    def changed(t):
        g = t.fx.symbolic_trace(lambda x, y: t.relu(x) + y * 2)
        relu = next(n for n in g.graph.nodes if n.target is t.relu)
        with g.graph.inserting_after(relu):
            sin = g.graph.call_function(t.sin, (relu,))
            cos = g.graph.call_function(t.cos, (sin,))
        relu.replace_all_uses_with(cos, lambda user: user is not sin)
        with g.graph.inserting_before(relu):
            relu.update_arg(0, g.graph.call_method("abs", relu.args))
        mul = next(n for n in g.graph.nodes if n.target is operator.mul)
        mul.args = (mul.args[0], 3)
        with g.graph.inserting_before():
            g.graph.call_function(math.floor, (2.5,))
        mul.append(cos)
        first = [n.name for n in g.graph.nodes]
        g.graph.eliminate_dead_code()
        with pytest.raises(RuntimeError):
            g.graph.erase_node(mul)
        with pytest.raises(TypeError):
            mul.args[0].graph.find_nodes(op="call_function", target=t.relu)[0].kwargs["a"] = 1
        return first, nodes(g.graph), [list(n.users) and [u.name for u in n.users] for n in g.graph.nodes], str(g.graph)

    assert changed(genesis) == changed(torch)


def only_call(graph):
    return next(n for n in graph.nodes if n.op == "call_function")


def test_lint_says_what_is_wrong():
    def said(t):
        errors = []
        for spoil in (
            lambda g: g.find_nodes(op="placeholder")[0].append(g.output_node()),
            lambda g: setattr(only_call(g), "name", "x"),
            lambda g: only_call(g).update_arg(0, t.fx.Graph().placeholder("z")),
        ):
            graph = copy.deepcopy(t.fx.symbolic_trace(lambda x: x + 1).graph)
            graph.lint()
            spoil(graph)
            with pytest.raises(RuntimeError) as caught:
                graph.lint()
            errors.append(str(caught.value).splitlines()[0][:30])
        return errors

    assert said(genesis) == said(torch)


def test_patterns_are_replaced():
    def replaced(t):
        def f(x, w):
            a = t.relu(x * w) + 1
            b = t.relu(a * w) + 2
            c = t.relu(b * w)
            return c + t.sin(c), t.relu(x) * w

        g = t.fx.symbolic_trace(f)
        matches = t.fx.replace_pattern(g, lambda p, q: t.relu(p * q), lambda p, q: t.maximum(p, q).neg())
        counts = len(matches), [m.anchor.name for m in matches], [len(m.nodes_map) for m in matches]
        x = t.linspace(-1, 1, 3)
        return sorted(counts[1]), nodes(g.graph), [np.round(v.numpy(), 5).tolist() for v in g(x, x + 1)]

    assert replaced(genesis) == replaced(torch)


def test_interpreter_transformer_and_shapes():
    def ran(t):
        class Logged(t.fx.Interpreter):
            def run_node(self, n):
                seen.append((n.op, n.name))
                return super().run_node(n)

            def call_method(self, target, args, kwargs):
                return super().call_method("abs" if target == "neg" else target, args, kwargs)

        class Swapped(t.fx.Transformer):
            def call_function(self, target, args, kwargs):
                return super().call_function(t.cos if target is t.sin else target, args, kwargs)

            def call_method(self, target, args, kwargs):
                return super().call_method(target, args, kwargs) + 1

        seen = []
        g = t.fx.symbolic_trace(lambda x, y=2: t.sin(x).neg() * y)
        from importlib import import_module

        prop = import_module(f"{t.__name__}.fx.passes.shape_prop").ShapeProp(g)
        prop.propagate(t.ones(2, 3))
        metas = [
            (n.name, tuple(n.meta["tensor_meta"].shape), n.meta["tensor_meta"].stride)
            for n in g.graph.nodes
            if "tensor_meta" in n.meta
        ]
        value = Logged(g).run(t.ones(2))
        return seen, metas, np.round(value.numpy(), 5).tolist(), nodes(Swapped(g).transform().graph)

    assert ran(genesis) == ran(torch)


def test_graphs_by_hand_with_proxies():
    def made(t):
        graph = t.fx.Graph()
        x = t.fx.Proxy(graph.placeholder("x", t.Tensor))
        y = t.relu(x) @ x.t()
        z = t.ones(2) + y
        graph.output((z.node, y.sum().node) if not isinstance(z, t.Tensor) else None)
        return graph

    # a tensor that belongs to no module has no name in a graph that was made by hand; both keep it as it is
    ours, theirs = made(genesis), made(torch)
    assert [(n.op, n.name) for n in ours.nodes] == [(n.op, n.name) for n in theirs.nodes]


def test_tables_are_printed_alike(capsys):
    pytest.importorskip("tabulate")
    printed = []
    for t in BOTH:
        t.fx.symbolic_trace(lambda x: x + 1).graph.print_tabular()
        printed.append([line.rstrip() for line in capsys.readouterr().out.splitlines()])
    assert printed[0] == printed[1]


@pytest.mark.parametrize("where", [
    lambda node: {"add": 0, "mul": 0, "relu": 1}.get(node.name, 2),
    lambda node: int(node.op == "call_module"),
    lambda node: 0,
])  # fmt: skip
def test_modules_in_parts(where):
    def split(t):
        from importlib import import_module

        class Net(t.nn.Module):
            def __init__(self):
                super().__init__()
                self.body = t.nn.Sequential(t.nn.ReLU(), t.nn.Tanh())
                self.w = t.nn.Parameter(t.ones(3) * 2)

            def forward(self, x, y):
                a = (x + y) * self.w
                b = t.relu(a)
                return b.sin() + a, y

        traced = t.fx.symbolic_trace(Net())
        module = import_module(f"{t.__name__}.fx.passes.split_module").split_module(traced, traced, where)
        inner = {n: [(k.op, k.name) for k in m.graph.nodes] for n, m in module.named_children()}
        values = [np.round(v.detach().numpy(), 5).tolist() for v in module(t.ones(3), -3 * t.ones(3))]
        return [(n.op, n.name) for n in module.graph.nodes], inner, values, [n for n, _ in module.named_parameters()]

    assert split(genesis) == split(torch)
