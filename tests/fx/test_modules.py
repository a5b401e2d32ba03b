"""Graphs as modules: copies, files, threads, and what stays of a trace."""

from __future__ import annotations

import copy
import gc
import linecache
import pickle
import sys
import threading

import pytest

import genesis
from genesis import fx, nn
from genesis.core.call.subclasses import KINDS, ROUTED
from genesis.fx.experimental.optimization import fuse, optimize_for_inference, remove_dropout
from genesis.fx.graph_module import _CodeOnlyModule
from genesis.fx.proxy import TraceError


@fx.wrap
def clipped(x, low):
    return x if x.sum() < low else x.clamp(min=low)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.drop = nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.Dropout(0.5)
        self.head = nn.Linear(3, 2)

    def forward(self, x):
        x = self.drop(genesis.relu(self.norm(self.conv(x))))
        return clipped(self.head(x.mean((2, 3))), 0.0)


@pytest.fixture
def net():
    genesis.manual_seed(0)
    made = Net()
    with genesis.no_grad():
        made(genesis.randn(4, 1, 6, 6))  # statistics of the batch norm
    return made.eval()


def test_copies_and_pickles_do_the_same_and_have_numbers_of_their_own(net):
    traced = fx.symbolic_trace(net)
    x = genesis.randn(2, 1, 6, 6)
    for other in (copy.deepcopy(traced), pickle.loads(pickle.dumps(traced))):
        assert genesis.equal(other(x), net(x)) and other.code == traced.code and type(other).__name__ == "Net"
        assert isinstance(other, fx.GraphModule) and other.graph is not traced.graph and not other.training
        assert other.conv.weight is not traced.conv.weight
        other.graph.lint()
    shallow = copy.copy(traced)
    assert shallow.conv.weight is traced.conv.weight and shallow.graph is not traced.graph


def test_what_a_graph_module_has_is_copied_by_programs_that_do_it_themselves(net):
    traced = fx.symbolic_trace(net)
    parts = _CodeOnlyModule(copy.deepcopy(traced.__dict__))
    other = fx.GraphModule(parts, parts.__dict__["_graph"], "Other")
    x = genesis.randn(2, 1, 6, 6)
    assert (
        genesis.equal(other(x), net(x))
        and other.conv.weight is not traced.conv.weight
        and str(other).startswith("Other(")
    )


def test_a_trace_is_not_changed_by_what_is_done_to_a_copy(net):
    traced = fx.symbolic_trace(net)
    other = copy.deepcopy(traced)
    for node in other.graph.find_nodes(op="call_function", target=genesis.relu):
        node.target = genesis.sigmoid
    other.recompile()
    x = genesis.randn(2, 1, 6, 6)
    assert genesis.equal(traced(x), net(x)) and not genesis.equal(other(x), net(x))


def test_a_graph_is_traced_again_with_what_was_wrapped(net):
    traced = fx.symbolic_trace(net)
    again = fx.symbolic_trace(traced)
    assert [n.name for n in again.graph.nodes] == [n.name for n in traced.graph.nodes]


def test_state_dicts_and_files(net, tmp_path):
    traced = fx.symbolic_trace(net)
    genesis.save(traced.state_dict(), tmp_path / "weights.pt")
    other = fx.symbolic_trace(Net().eval())
    other.load_state_dict(genesis.load(tmp_path / "weights.pt"))
    x = genesis.randn(2, 1, 6, 6)
    assert genesis.equal(other(x), net(x))


def test_a_folder_is_imported_without_the_class(tmp_path, monkeypatch):
    genesis.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    traced = fx.symbolic_trace(model)
    traced.to_folder(tmp_path / "written_model", "Model")
    monkeypatch.syspath_prepend(str(tmp_path))
    from written_model import Model  # type: ignore[import-not-found]

    x = genesis.randn(4, 2)
    assert genesis.equal(Model()(x), model(x))
    del sys.modules["written_model"], sys.modules["written_model.module"]


def test_graphs_are_compiled_as_other_modules(net):
    traced = fx.symbolic_trace(nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1)))
    x = genesis.randn(3, 4)
    assert genesis.allclose(genesis.compile(traced)(x), traced(x))


def test_convolutions_with_their_norms(net):
    x = genesis.randn(2, 1, 6, 6)
    fused = fuse(net)
    assert genesis.allclose(fused(x), net(x), atol=1e-5) and not [n for n in fused.graph.nodes if n.target == "norm"]
    small = optimize_for_inference(net)
    assert genesis.allclose(small(x), net(x), atol=1e-5) and not hasattr(small, "drop") and not hasattr(small, "norm")
    assert hasattr(net, "norm") and not [n for n in remove_dropout(net).graph.nodes if n.target == "drop"]


def test_functions_are_what_they_were_when_a_trace_is_over():
    before = set(ROUTED)
    fx.symbolic_trace(lambda x: genesis.relu(x))
    with pytest.raises(ValueError):
        fx.symbolic_trace(lambda x: 1 if x else 0)
    assert set(ROUTED) == before and not [k for k in KINDS if issubclass(k, fx.Proxy)]
    assert nn.Module.__call__.__name__ == "__call__" and nn.Module.__getattr__.__name__ == "__getattr__"


def test_a_proxy_that_is_left_is_asked_again():
    graph = fx.Graph()
    x = fx.Proxy(graph.placeholder("x"))
    fx.symbolic_trace(lambda x: x)
    assert isinstance(genesis.relu(x), fx.Proxy) and isinstance(genesis.ones(2) * x, fx.Proxy)
    fx.symbolic_trace(lambda x: x)


def test_other_threads_compute_meanwhile():
    model, values, errors = nn.Linear(2, 2), [], []
    go, done = threading.Event(), threading.Event()

    def computes():
        go.wait()
        try:
            for _ in range(50):
                values.append(model(genesis.ones(1, 2)))
        except Exception as error:
            errors.append(error)
        done.set()

    thread = threading.Thread(target=computes)
    thread.start()

    def slow(x):
        go.set()
        done.wait(20)
        return model_in_it(x)

    model_in_it = nn.ReLU()
    root = nn.Sequential(model_in_it)
    tracer = fx.Tracer()
    tracer.root, tracer.submodule_paths = root, None
    with pytest.raises(NameError, match="not installed as a submodule"):
        fx.symbolic_trace(slow)
    thread.join()
    assert not errors and all(isinstance(v, genesis.Tensor) for v in values) and len(values) == 50


def test_what_cannot_be_known_names_the_line_of_the_program():
    def decides(x):
        y = x * 2
        if y.sum() > 0:  # this line
            return y
        return x

    with pytest.raises(
        TraceError, match=rf"control flow \(.*test_modules.py, line {decides.__code__.co_firstlineno + 2}, in decides\)"
    ):
        fx.symbolic_trace(decides)
    with pytest.raises(TraceError, match="cannot be iterated.*test_modules.py"):
        fx.symbolic_trace(lambda x: [a for a in x])


def test_asserts_are_recorded_where_a_tracer_says_so():
    class Asserting(fx.Tracer):
        trace_asserts = True

    scope: dict = {}
    exec("def f(x):\n    assert x.sum() > 0\n    return x\n", scope)  # asserts of this file are pytest's
    graph = Asserting().trace(scope["f"])
    module = fx.GraphModule({}, graph)
    module.graph.eliminate_dead_code()
    module.recompile()
    assert module(genesis.ones(1)).item() == 1
    with pytest.raises(AssertionError):
        module(-genesis.ones(1))


def test_sizes_of_parameters_are_numbers_where_a_tracer_says_so():
    class Sized(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(genesis.ones(3))

        def forward(self, x):
            return x * self.w if self.w.shape[0] == 3 else x

    graph = fx.Tracer(param_shapes_constant=True).trace(Sized())
    assert [n.name for n in graph.nodes] == ["x", "w", "mul", "output"]
    with pytest.raises(TraceError):
        fx.Tracer().trace(Sized())


def test_code_in_memory_goes_with_the_module():
    before = len([name for name in linecache.cache if "forward of a graph" in name])
    for _ in range(5):
        fx.symbolic_trace(lambda x: x + 1).recompile()
    gc.collect()
    assert len([name for name in linecache.cache if "forward of a graph" in name]) <= before + 1


def test_an_error_in_a_graph_shows_its_line():
    traced = fx.symbolic_trace(lambda x, y: genesis.matmul(x, y))
    with pytest.raises(RuntimeError) as caught:
        traced(genesis.ones(2, 3), genesis.ones(2, 3))
    assert any(
        "forward of a graph" in str(entry.path) and "matmul" in str(entry.statement) for entry in caught.traceback
    )
    with pytest.raises(RuntimeError) as caught:
        fx.Interpreter(traced).run(genesis.ones(2, 3), genesis.ones(2, 3))
    assert "While executing %matmul" in caught.value.__notes__[0]


def test_parts_of_modules():
    traced = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU(), nn.Tanh())))
    node = traced.graph.find_nodes(op="call_module", target="1.1")[0]
    node.replace_all_uses_with(node.args[0])
    traced.graph.erase_node(node)
    traced.delete_all_unused_submodules()
    traced.recompile()
    assert [n for n, _ in traced.named_modules()] == ["", "0", "1", "1.0"]
    assert traced.add_submodule("extra.deep", nn.ReLU()) and not traced.add_submodule("0.weight.x", nn.ReLU())
    assert traced.delete_submodule("extra.deep") and not traced.delete_submodule("nothing.there")


def test_functions_of_the_program_are_in_its_code_by_their_names():
    traced = fx.symbolic_trace(lambda x: clipped(x, 1.0))
    assert "torch.fx.wrap(" in traced.code and "clipped(x, 1.0)" in traced.code
    assert traced(genesis.tensor([0.0, 3.0])).tolist() == [1, 3]
