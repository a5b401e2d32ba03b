"""Classes with ``__torch_function__``: subclasses of tensors, and objects of any other class."""

from __future__ import annotations

import copy
import inspect
import pickle
import subprocess
import sys

import numpy as np
import pytest

import genesis
from genesis import overrides
from genesis.core.call import subclasses
from genesis.core.graph.node import AccumulateGrad
from genesis.nn import functional as F


@pytest.fixture(autouse=True)
def _none_of_others(classes_of_its_own):
    pass


def named(base=genesis.Tensor, name="Named"):
    return type(name, (base,), {})


def logging():
    """A class that notes what it is asked, and does what tensors do."""

    class Logging(genesis.Tensor):
        log = []

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            cls.log.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs)

    return Logging


PLAIN = genesis.tensor([[1.0, 2.0], [3.0, 4.0]])
CALLS = {
    "add": lambda x: x + PLAIN, "sub": lambda x: x - 1, "mul": lambda x: 2 * x, "divide": lambda x: x / PLAIN,
    "__rsub__": lambda x: 1 - x, "matmul": lambda x: PLAIN @ x, "__getitem__": lambda x: x[0], "neg": lambda x: -x,
    "gt": lambda x: x > PLAIN, "add_": lambda x: x.add_(1), "cat": lambda x: genesis.cat([PLAIN, x]),
    "where": lambda x: genesis.where(PLAIN > 0, x, PLAIN), "relu": lambda x: F.relu(x),
    "softmax": lambda x: x.softmax(0), "linear": lambda x: F.linear(x, PLAIN, PLAIN[0]), "clone": lambda x: x.clone(),
    "mse_loss": lambda x: F.mse_loss(PLAIN, x), "linalg_norm": lambda x: genesis.linalg.norm(x), "sum": lambda x: x.sum(),
    "ones_like": lambda x: genesis.ones_like(x), "detach": lambda x: x.detach(), "permute": lambda x: x.T,
    "max": lambda x: x.max(0)[0], "unbind": lambda x: next(iter(x)), "einsum": lambda x: genesis.einsum("ij,ij", PLAIN, x),
    "fft_fft": lambda x: genesis.fft.fft(x), "exp": lambda x: genesis.exp(input=x), "split": lambda x: x.split(1)[0],
    "type_as": lambda x: x.type_as(PLAIN), "tile": lambda x: x.tile(2),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_a_subclass_sees_each_function_once_and_gets_results_of_its_class(name):
    expected = CALLS[name](PLAIN.clone())
    kind = logging()
    x = PLAIN.clone().as_subclass(kind)
    out = CALLS[name](x)
    assert kind.log[0] == name
    assert type(out) is kind
    np.testing.assert_array_equal(out.as_subclass(genesis.Tensor).numpy(), expected.numpy())
    assert type(CALLS[name](PLAIN.clone())) is genesis.Tensor


def test_other_results_are_as_they_are():
    x = PLAIN.as_subclass(named())
    assert (x.shape, len(x), x[0, 0].item(), x.tolist()) == ((2, 2), 2, 1.0, PLAIN.tolist())
    x[0] = 0.0
    assert repr(x) == "Named([[0., 0.],\n       [3., 4.]])"
    x[0] = genesis.tensor([1.0, 2.0])


def test_functions_are_as_before_where_no_class_is_asked():
    signatures = {name: inspect.signature(getattr(genesis, name)) for name in ("add", "exp", "sum", "cat", "softmax")}
    codes = {name: getattr(genesis, name).__code__ for name in signatures}
    kind = named()
    assert {name: inspect.signature(getattr(genesis, name)) for name in signatures} == signatures
    assert genesis.add.__code__ is not codes["add"]
    hash(genesis.add.__code__)
    with pytest.raises(RuntimeError, match="add: shapes"):
        genesis.add(genesis.ones(2), genesis.ones(3))
    assert genesis.add(genesis.ones(2), other=1, out=genesis.empty(2)).tolist() == [2, 2]
    subclasses.take_away()
    assert {name: getattr(genesis, name).__code__ for name in codes} == codes
    assert type(genesis.ones(1).as_subclass(kind) + 1) is genesis.Tensor
    assert {name: inspect.signature(getattr(genesis, name)) for name in signatures} == signatures


def test_gradients_go_through():
    kind = named()
    w = genesis.tensor([1.0, 2.0], requires_grad=True)
    x = w.as_subclass(kind)
    y = (x * x).exp().sum()
    assert type(y) is kind
    y.backward()
    np.testing.assert_allclose(w.grad.numpy(), 2 * w.detach().numpy() * np.exp(w.detach().numpy() ** 2), rtol=1e-6)
    leaf = genesis.Tensor._make_subclass(kind, genesis.ones(2), True)
    (leaf * 3).sum().backward()
    assert leaf.is_leaf and leaf.grad.tolist() == [3, 3] and type(leaf) is kind
    assert isinstance(leaf._node, AccumulateGrad)


def test_a_result_that_is_an_argument_keeps_its_class():
    kind = named()
    plain, x = genesis.ones(2), genesis.ones(2).as_subclass(kind)
    out = plain.add_(x)
    assert type(out) is kind and type(plain) is genesis.Tensor
    out.mul_(2)
    assert plain.tolist() == [4, 4]


def test_the_more_special_class_is_asked_first():
    base = named()
    special = named(base, "Special")
    x, y = genesis.ones(1).as_subclass(base), genesis.ones(1).as_subclass(special)
    assert type(x + y) is type(y + x) is special
    other = genesis.ones(1).as_subclass(named(name="Other"))
    with pytest.raises(TypeError, match="add: no implementation found: Named, Other returned NotImplemented"):
        x + other


def test_parameters_give_plain_tensors():
    kind = named(genesis.nn.Parameter, "Special")
    p = kind(genesis.ones(2))
    assert type(p) is kind and type(p + 1) is genesis.Tensor and not subclasses.ROUTED
    named()
    assert type(p + 1) is type(genesis.nn.Parameter(genesis.ones(1)) * 2) is genesis.Tensor
    assert not overrides.has_torch_function([p, genesis.ones(1), 3])


def test_classes_that_make_their_objects_in_new():
    class Labelled(genesis.Tensor):
        @staticmethod
        def __new__(cls, data, label, *args, **kwargs):
            return super().__new__(cls, data, *args, **kwargs)

        def __init__(self, data, label):
            self.label = label

    x = Labelled([1.0, 2.0], "a")
    assert (x.label, x.tolist(), type(x + 1)) == ("a", [1, 2], Labelled)
    assert genesis.Tensor([3.0]).tolist() == [3]
    assert named()([1.0, 2.0]).tolist() == [1, 2]


Stored = None


def test_copies_keep_the_class():
    global Stored
    Stored = type("Stored", (genesis.Tensor,), {"__module__": __name__})
    x = genesis.ones(2).as_subclass(Stored)
    for y in (copy.deepcopy(x), copy.copy(x), pickle.loads(pickle.dumps(x))):
        assert type(y) is Stored and y.tolist() == [1, 1]


# ---- objects of other classes


class Symbol:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func.__name__, types, len(args), kwargs or {}


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda s: genesis.add(s, 1), ("add", 2, {})),
        (lambda s: PLAIN + s, ("add", 2, {})),
        (lambda s: PLAIN @ s, ("matmul", 2, {})),
        (lambda s: PLAIN.add(s), ("add", 2, {})),
        (lambda s: genesis.exp(s), ("exp", 1, {})),
        (lambda s: genesis.mean(s), ("mean", 1, {})),
        (lambda s: F.relu(s), ("relu", 1, {})),
        (lambda s: genesis.cat([PLAIN, s]), ("cat", 1, {})),
        (lambda s: F.mse_loss(s, PLAIN, reduction="sum"), ("mse_loss", 2, {"reduction": "sum"})),
        (lambda s: genesis.svd_lowrank(s), ("svd_lowrank", 1, {})),
    ],
)
def test_objects_say_what_functions_do_with_them(call, expected, again):
    if again:
        genesis.add(Symbol(), 1)  # the class is known from here on
    name, types, count, kwargs = call(Symbol())
    assert (name, count, kwargs) == expected and types == (Symbol,)


def test_objects_that_do_not_know():
    class Nothing:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    for call in (lambda x: genesis.add(x, 1), lambda x: PLAIN + x, lambda x: genesis.add(x, 1)):
        with pytest.raises(TypeError, match="no implementation found: Nothing returned NotImplemented"):
            call(Nothing())


def test_wrong_arguments_are_refused_as_before():
    with pytest.raises(TypeError, match="expected a tensor or a number, got str"):
        genesis.add(PLAIN, "a")
    with pytest.raises(TypeError):
        PLAIN + object()
    with pytest.raises(TypeError, match="expected a subclass of Tensor"):
        PLAIN.as_subclass(int)


# ---- the module


def test_functions_of_ones_own():
    @overrides.wrap_torch_function(lambda x, y=None: (x, y))
    def double(x, y=None):
        return 2 * x

    assert double(3) == 6 and double(Symbol())[0] == "double" and double(1, y=Symbol())[3].keys() == {"y"}
    assert overrides.has_torch_function([Symbol()]) and overrides.has_torch_function_unary(Symbol())
    assert overrides.has_torch_function_variadic(1, Symbol()) and overrides.is_tensor_like(Symbol())
    assert overrides.handle_torch_function(double, [Symbol()], 1, 2)[2] == 2
    with overrides.disabled():
        assert overrides.is_disabled() and not overrides.has_torch_function([Symbol()])
        assert type(PLAIN.as_subclass(named()) + 1) is genesis.Tensor


def test_what_can_be_overridden_is_listed():
    functions = overrides.get_overridable_functions()
    assert genesis.add in functions[genesis] and F.relu in functions[F]
    assert genesis.Tensor.add_ in functions[genesis.Tensor] and genesis.manual_seed in overrides.get_ignored_functions()
    assert not overrides.get_ignored_functions() & set(functions[genesis])
    table = overrides.get_testing_overrides()
    assert table[genesis.add](PLAIN, 1) == -1
    with pytest.raises(TypeError):
        table[genesis.exp](PLAIN, 1, 2)
    assert overrides.resolve_name(genesis.add) == "genesis.add" and overrides.resolve_name(print) is None
    assert overrides.is_tensor_method_or_property(genesis.Tensor.add_)


def test_a_program_for_pytorch():
    with genesis.pytorch.installed() as torch:
        from torch.overrides import has_torch_function, is_tensor_like

        handlers = {}

        def implements(function):
            def decorate(f):
                handlers[function] = f
                return f

            return decorate

        class Scalar:
            def __init__(self, n, value):
                self.n, self.value = n, value

            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                if func not in handlers or not all(issubclass(t, (torch.Tensor, Scalar)) for t in types):
                    return NotImplemented
                return handlers[func](*args, **(kwargs or {}))

        @implements(torch.mean)
        def mean(input):
            return input.value / input.n

        assert torch.mean(Scalar(5, 2.0)) == 0.4 and has_torch_function([Scalar(1, 1)]) and is_tensor_like(Scalar(1, 1))
        with pytest.raises(TypeError, match="no implementation found: Scalar"):
            torch.add(Scalar(1, 1), 2)


# ---- modes


class Noting(overrides.TorchFunctionMode):
    def __init__(self, log=None, name=""):
        self.log, self.name = [] if log is None else log, name

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.log.append(self.name + func.__name__)
        return func(*args, **(kwargs or {}))


def test_a_mode_sees_every_call():
    before = genesis.exp.__code__
    with Noting() as mode:
        x = genesis.ones(2, requires_grad=True)
        y = (x * 2 + 1).exp().sum()
        y.backward()
        F.relu(x)
        genesis.tensor([1.0])[0]
        genesis.rand(2)
    assert mode.log == ["ones", "mul", "add", "exp", "sum", "relu", "tensor", "__getitem__", "rand"]
    assert genesis.exp.__code__ is before
    genesis.ones(2)
    assert mode.log[-1] == "rand" and not subclasses.ROUTED
    with mode:
        genesis.zeros(1)
    assert mode.log[-1] == "zeros"


def test_modes_inside_of_modes():
    log = []
    with Noting(log, "outer "), Noting(log, "inner "):
        genesis.ones(1)
        with overrides.BaseTorchFunctionMode():
            genesis.ones(1)
    assert log == ["inner ones", "outer ones"] * 2


def test_a_mode_changes_arguments_and_results():
    class Meta(overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            kwargs = dict(kwargs or {})
            if func is genesis.empty:
                kwargs["device"] = "meta"
            return func(*args, **kwargs)

    class Seven(overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return 7 if func is genesis.exp else NotImplemented

    with Meta():
        assert genesis.empty(3).is_meta
    with Seven():
        assert genesis.exp(genesis.__dict__["ones"]) == 7
        with pytest.raises(TypeError, match="the mode Seven returned NotImplemented"):
            genesis.ones(1)
    assert genesis.ones(1).exp().item() == pytest.approx(np.e)


def test_modes_come_before_classes_and_are_switched_off():
    kind = logging()
    x = genesis.ones(2).as_subclass(kind)
    with Noting() as mode:
        x + 1
        with overrides.disabled():
            x + 1
    assert mode.log == ["add"] and kind.log == ["add"]


def test_a_mode_is_of_its_thread():
    import threading

    with Noting() as mode:
        thread = threading.Thread(target=lambda: genesis.ones(1))
        thread.start()
        thread.join()
    assert mode.log == []


def test_modes_end_with_errors():
    with pytest.raises(ZeroDivisionError), Noting():
        1 / 0
    assert not subclasses.MODES and not subclasses.ROUTED
    with pytest.raises(NotImplementedError, match="defines no __torch_function__"), overrides.TorchFunctionMode():
        genesis.ones(1)


def test_a_subclass_that_makes_itself_in_new_takes_arguments_of_its_own():
    class OfNew(genesis.Tensor):
        def __new__(cls, data, unit, requires_grad=False):
            made = genesis.Tensor._make_subclass(cls, data * 2, requires_grad)
            made.unit = unit
            return made

    class OfBoth(genesis.Tensor):
        def __new__(cls, data, unit):
            return genesis.Tensor._make_subclass(cls, data)

        def __init__(self, data, unit):
            super().__init__()
            self.unit = unit

    class Named(genesis.nn.Parameter):
        def __new__(cls, data, name=None):
            made = super().__new__(cls, data)
            made.title = name
            return made

    x = genesis.ones(2)
    assert (OfNew(x, "m").tolist(), OfNew(x, unit="m").unit, OfNew(x, 1, requires_grad=True).requires_grad) == (
        [2.0, 2.0],
        "m",
        True,
    )
    assert (OfBoth(x, "m").tolist(), OfBoth(x, unit="s").unit) == ([1.0, 1.0], "s")
    weight = Named(x, name="w")
    assert (weight.tolist(), weight.title, weight.requires_grad) == ([1.0, 1.0], "w", True)


def test_methods_that_programs_put_on_tensor_are_called_as_they_are(monkeypatch):
    monkeypatch.setattr(genesis.Tensor, "mine", lambda self, other: (self, other), raising=False)

    class One(genesis.Tensor):
        pass

    class Other(genesis.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    one, other = genesis.ones(1).as_subclass(One), genesis.ones(1).as_subclass(Other)
    first, second = one.mine(other)
    assert first is one and second is other


def test_writes_are_asked_about():
    asked = []

    class Told(genesis.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            asked.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs)

    x = genesis.ones(2).as_subclass(Told)
    for name, args in (("lerp_", (x, 0.5)), ("clamp_", (0, 1)), ("erf_", ()), ("addcmul_", (x, x)), ("cumsum_", (0,))):
        getattr(x, name)(*args)
    assert [name for name in asked if name.endswith("_")] == ["lerp_", "clamp_", "erf_", "addcmul_", "cumsum_"]


def test_functions_that_were_not_called_yet_get_their_text_at_the_first_call():
    """Another test may have called it, so a process looks."""
    code = (
        "import inspect, genesis\n"
        "from genesis.core.call.generated import is_late\n"
        "from genesis.core.call import subclasses\n"
        "kind = type('Named', (genesis.Tensor,), {})\n"
        "f = genesis.Tensor.mvlgamma_\n"
        "assert is_late(subclasses.ROUTED[f]) and str(inspect.signature(f)) == '(input, p)'\n"
        "x, y = [genesis.full((1,), 3.0) for _ in range(2)]\n"
        "assert type(x.as_subclass(kind).mvlgamma_(2)) is kind and not is_late(subclasses.ROUTED[f])\n"
        "with genesis.ops.register_function('softplus', lambda x: 7):\n"
        "    assert genesis.nn.functional.softplus(y) == 7\n"
        "assert genesis.nn.functional.softplus(y).shape == (1,)\n"
        "subclasses.take_away()\n"
        "assert y.mvlgamma_(p=2).equal(x) and is_late(genesis.Tensor.addbmm_)\n"
        "assert genesis.ones(2, 2).addbmm_(genesis.ones(1, 2, 2), genesis.ones(1, 2, 2), beta=2).tolist() == [[4, 4]] * 2\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
