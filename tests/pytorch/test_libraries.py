"""What installed libraries import of `torch`: names that are absent stop them only where they are used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import genesis
from genesis.pytorch import installed

_LIBRARY = """
from torch.fx.experimental.proxy_tensor import make_fx          # a module that is not there
from torch.export import Dim                                    # a name that is not there
from torch.nn.modules.utils import _pair, _nobody_has_this      # a private one
try:
    from torch.export import draft_export
except ImportError:
    draft_export = None

def annotated(x: make_fx[int] | None = None) -> Dim | None: ...

class Mine(Dim): ...
"""


@pytest.fixture
def folder(tmp_path):
    inside = tmp_path / "site-packages"
    inside.mkdir()
    (inside / "some_library.py").write_text(_LIBRARY)
    return inside


def test_a_library_imports_names_that_are_absent_and_reads_why_when_it_uses_them(folder, monkeypatch):
    monkeypatch.syspath_prepend(str(folder))
    with installed():
        import some_library as library  # type: ignore[import-not-found]

        assert library.draft_export is None and not isinstance(3, library.Dim) and library._pair(2) == (2, 2)
        for used in (library.make_fx, library.Dim, library.Mine, library._nobody_has_this):
            with pytest.raises(NotImplementedError, match=r"^(torch\.\S+|Mine): ."):
                used(1)
    del sys.modules["some_library"]


def test_the_same_lines_in_a_script_are_errors_at_once(tmp_path):
    for line, reason in [
        ("from torch.fx.experimental.proxy_tensor import make_fx", "torch.fx.experimental"),
        ("from torch.export import Dim", "torch.export.Dim is not in Genesis"),
    ]:
        script = tmp_path / "script.py"
        script.write_text(f"{line}\nprint('not reached')\n")
        ran = subprocess.run(
            [sys.executable, "-m", "genesis", "run", "--torch", str(script)], capture_output=True, text=True
        )
        assert ran.returncode == 1 and reason in ran.stderr and "not reached" not in ran.stdout, ran.stderr


def test_operations_that_programs_declare_are_found_under_torch_ops():
    with installed() as torch:
        torch.library.define("for_test::twice", "(Tensor x) -> Tensor")
        torch.library.impl("for_test::twice", "CompositeImplicitAutograd", lambda x: x * 2)
        assert torch.ops.for_test.twice(genesis.ones(2)).tolist() == [2, 2]
        assert torch.ops.for_test.twice.default is torch.ops.for_test.twice
        genesis.library.remove("for_test::twice")
        with pytest.raises(AttributeError, match="torch.ops.for_test is not in Genesis"):
            torch.ops.for_test  # noqa: B018


def test_pytorchs_own_operations_are_the_functions_of_their_names():
    with installed() as torch:
        x = genesis.tensor([1.0, -2.0], requires_grad=True)
        y = torch.ops.aten.add.Tensor(torch.ops.aten.relu.default(x), x, alpha=3)
        (gradient,) = genesis.autograd.grad(y.sum(), x)
        assert y.tolist() == [4, -6] and gradient.tolist() == [4, 3]
        assert torch.ops.aten.masked_fill_.Scalar(genesis.ones(1), genesis.tensor([True]), 5).item() == 5
        with pytest.raises(AttributeError, match=r"torch.ops.aten.no_such_thing is not in Genesis"):
            torch.ops.aten.no_such_thing(x)
        with pytest.raises(OSError, match="compiled for PyTorch"):
            torch.ops.load_library("/somewhere/else/_C.so")


def test_a_library_may_have_absent_operations_as_keys_of_a_table(folder, monkeypatch):
    text = "import torch\nhandled = {torch.ops.aten._cudnn_rnn.default: 1, torch.ops.aten.sort.stable: 2}\nboth = list(handled)"
    (folder / "table_of_operations.py").write_text(text)
    monkeypatch.syspath_prepend(str(folder))
    with installed():
        import table_of_operations as library  # type: ignore[import-not-found]

        assert list(library.handled.values()) == [1, 2]
        with pytest.raises(NotImplementedError, match="aten._cudnn_rnn is not in Genesis"):
            library.both[0](genesis.ones(1))
    del sys.modules["table_of_operations"]


def test_a_class_may_have_no_torch_function():
    with installed() as torch:

        class Plain(torch.Tensor):
            __torch_function__ = torch._C._disabled_torch_function_impl

        x = genesis.ones(2).as_subclass(Plain)
        assert type(x) is Plain and type(x + 1) is torch.Tensor and type(x.sum()) is torch.Tensor
        assert torch._C._disabled_torch_function_impl(torch.add, (Plain,), (x, 2)).tolist() == [3, 3]


def test_names_with_an_underscore_that_trainers_and_loaders_of_weights_ask_for():
    with installed() as torch:
        model = genesis.nn.Linear(1, 1)
        assert isinstance(genesis.compile(model), torch._dynamo.eval_frame.OptimizedModule)
        assert not isinstance(model, torch._dynamo.eval_frame.OptimizedModule)
        assert torch.nn.modules.module._EXTRA_STATE_KEY_SUFFIX == "_extra_state"


def test_modules_can_be_looked_through():
    with installed() as torch:
        assert torch.optim.__dict__["SGD"] is genesis.optim.SGD
        assert vars(torch.nn)["Linear"] is genesis.nn.Linear and torch.torch is torch
        classes = [c for c in vars(torch.distributions).values() if isinstance(c, type)]
        assert genesis.distributions.Normal in classes


@pytest.mark.parametrize(
    ("name", "error"),
    [("_check", RuntimeError), ("_check_value", ValueError), ("_check_type", TypeError), ("_check_index", IndexError)],
)
def test_checks(name, error):
    with installed() as torch:
        check = getattr(torch, name)
        check(True)
        with pytest.raises(error, match="^it is 3$"):
            check(2 > 3, lambda: "it is 3")
        with pytest.raises(error, match="Expected cond to be True"):
            check(False)


def test_more_checks():
    with installed() as torch:
        torch._assert(True, "no")
        torch._check_is_size(3)
        torch._check_tensor_all(genesis.tensor([True]))
        with pytest.raises(AssertionError, match="^no$"):
            torch._assert(False, "no")
        with pytest.raises(RuntimeError):
            torch._check_is_size(-1)
        with pytest.raises(RuntimeError, match="^all$"):
            torch._check_tensor_all(genesis.tensor([True, False]), "all")
        with pytest.raises(KeyError):
            torch._check_with(KeyError, False, "key")


def test_a_future_has_a_kind_and_a_key_a_set():
    with installed() as torch:
        assert torch.futures.Future[int] is torch.futures.Future
        keys = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU) | torch._C.DispatchKeySet(torch._C.DispatchKey.CUDA)
        assert keys == {"CPU", "CUDA"}


def test_constraints_are_classes_that_libraries_derive_from():
    from genesis.distributions import biject_to, constraints

    with installed() as torch:
        private = torch.distributions.constraints

        class Mine(private._GreaterThan):
            def __init__(self):
                super().__init__(lower_bound=1.0)

        assert Mine().check(genesis.tensor([0.5, 2.0])).tolist() == [False, True]
        assert repr(Mine()) == "Mine(lower_bound=1.0)" and private._LowerCholesky is type(constraints.lower_cholesky)
        assert isinstance(constraints.real, private._Real) and repr(constraints.real) == "Real()"

        class Sorted(private._Real):
            event_dim = 1

        biject_to.register(Sorted, lambda constraint: "a transform")
        assert biject_to(Sorted()) == "a transform"
        assert type(biject_to(constraints.positive).inv) is torch.distributions.transforms._InverseTransform
