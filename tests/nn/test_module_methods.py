"""Methods of modules and containers, and hooks of their states, in both libraries with the same outcome."""

from __future__ import annotations

import inspect
import pickle

import pytest

import genesis
from genesis import nn
from genesis.nn import hooks as every

LIBS = pytest.mark.parametrize("name", ["genesis", "torch"])


@LIBS
def test_hooks_around_the_state(name):
    lib = pytest.importorskip(name)
    inner = lib.nn.Linear(2, 2)
    net, seen = lib.nn.Sequential(inner, lib.nn.ReLU()), []
    net.register_state_dict_pre_hook(lambda m, prefix, keep: seen.append(("pre", m is net, prefix, keep)))
    inner.register_state_dict_post_hook(
        lambda m, state, prefix, meta: state.update({prefix + "more": state[prefix + "bias"]})
    )
    state = net.state_dict(prefix="a.")
    assert list(state) == ["a.0.weight", "a.0.bias", "a.0.more"] and seen == [("pre", True, "a.", False)]
    net._register_state_dict_hook(lambda m, state, prefix, meta: {k.upper(): v for k, v in state.items()})
    assert list(net.state_dict()) == ["0.WEIGHT", "0.BIAS", "0.MORE"]


@LIBS
def test_hooks_around_loading(name):
    lib = pytest.importorskip(name)
    net, calls = lib.nn.Sequential(lib.nn.Linear(2, 2)), []

    def rename(module, state, prefix, meta, strict, missing, unexpected, errors):
        calls.append((prefix, strict, meta.get("version", 1)))
        for key in [k for k in state if k.startswith("old")]:
            state["0" + key.removeprefix("old")] = state.pop(key)

    handle = net.register_load_state_dict_pre_hook(rename)
    given = {"old.weight": lib.ones(2, 2), "old.bias": lib.zeros(2)}
    assert net.load_state_dict(given) == ([], []) and list(given) == ["old.weight", "old.bias"]
    assert calls == [("", True, 1)] and net[0].weight.sum() == 4
    handle.remove()
    with pytest.raises(RuntimeError, match="Missing key"):
        net.load_state_dict(given)
    net[0].register_load_state_dict_post_hook(lambda m, keys: keys.missing_keys.clear())
    assert net.load_state_dict({"0.weight": lib.zeros(2, 2)}) == ([], []) and net[0].weight.sum() == 0


def test_a_subclass_may_change_a_state_before_it_is_loaded():
    class Old(nn.Linear):
        def _load_from_state_dict(self, state_dict, prefix, *args):
            if prefix + "kernel" in state_dict:
                state_dict[prefix + "weight"] = state_dict.pop(prefix + "kernel")
            super()._load_from_state_dict(state_dict, prefix, *args)

    net = nn.Sequential(Old(2, 2, bias=False))
    net.load_state_dict({"0.kernel": genesis.ones(2, 2)})
    assert net[0].weight.sum() == 4


@LIBS
def test_submodules_are_replaced_by_their_path(name):
    lib = pytest.importorskip(name)
    net = lib.nn.Sequential(lib.nn.Sequential(lib.nn.ReLU()))
    net.set_submodule("0.0", lib.nn.Tanh())
    net.set_submodule("0.new", lib.nn.ReLU())
    assert [type(m).__name__ for m in net.modules()] == ["Sequential", "Sequential", "Tanh", "ReLU"]
    for path, error in {"": ValueError, "1.0": AttributeError}.items():
        with pytest.raises(error):
            net.set_submodule(path, lib.nn.ReLU())
    with pytest.raises(AttributeError):
        net.set_submodule("0.none", lib.nn.ReLU(), strict=True)
    shared = lib.nn.ReLU()
    assert len(list(lib.nn.Sequential(shared, shared).modules(remove_duplicate=False))) == 3


@pytest.mark.filterwarnings("ignore:Positional args are being deprecated:FutureWarning")
@LIBS
def test_conversions(name):
    lib = pytest.importorskip(name)
    net = lib.nn.Linear(2, 1)
    assert net.type(lib.float64) is net and net.weight.dtype == lib.float64
    empty = lib.nn.Linear(2, 1, device="meta").to_empty(device="cpu")
    assert empty.weight.device.type == "cpu" and empty.weight.requires_grad
    if lib is genesis:
        assert net.compile() is None
    assert list(net.state_dict(None, "x.", True)) == ["x.weight", "x.bias"]
    assert net.state_dict(None, "x.", True)["x.weight"].requires_grad


@LIBS
def test_hooks_of_registration(name):
    lib = pytest.importorskip(name)
    space = every if lib is genesis else lib.nn.modules.module
    seen = []
    handles = [
        getattr(space, f"register_module_{kind}_registration_hook")(
            lambda m, name, value, kind=kind: seen.append((kind, name))
        )
        for kind in ("parameter", "buffer", "module")
    ]
    try:
        net = lib.nn.Module()
        net.w = lib.nn.Parameter(lib.ones(1))
        net.register_buffer("b", lib.ones(1))
        net.layer = lib.nn.ReLU()
        net.add_module("again", lib.nn.ReLU())
    finally:
        for handle in handles:
            handle.remove()
    assert seen == [("parameter", "w"), ("buffer", "b"), ("module", "layer"), ("module", "again")]
    net.v = lib.nn.Parameter(lib.ones(1))
    assert len(seen) == 4


@LIBS
def test_lists_and_dictionaries(name):
    lib = pytest.importorskip(name)
    relu, tanh = lib.nn.ReLU(), lib.nn.Tanh()
    both = lib.nn.Sequential(relu) + lib.nn.Sequential(tanh)
    assert list(both) == [relu, tanh] and list(both * 2) == [relu, tanh, relu, tanh]
    assert both.pop(0) is relu and list(both) == [tanh]
    both += lib.nn.Sequential(relu)
    both *= 2
    assert list(both) == [tanh, relu, tanh, relu]
    with pytest.raises(ValueError):
        both * 0
    modules = lib.nn.ModuleList([relu, tanh])
    assert modules.pop(-1) is tanh and len(modules) == 1
    named = lib.nn.ModuleDict({"a": relu, "b": tanh})
    assert named.pop("a") is relu and list(named) == ["b"]
    named.clear()
    assert len(named) == 0


@LIBS
def test_parameters_in_lists(name):
    lib = pytest.importorskip(name)
    params = lib.nn.ParameterList([lib.ones(1), lib.nn.Parameter(lib.zeros(2))])
    params += [lib.ones(3), "text"]
    params.extend([5])
    assert len(params) == 5 and params[3] == "text" and params[-1] == 5
    assert [n for n, _ in params.named_parameters()] == ["0", "1", "2"] and isinstance(params[0], lib.nn.Parameter)
    params[0] = lib.ones(4)
    assert params[0].shape == (4,) and [len(params[:2]), list(params.state_dict())] == [2, ["0", "1", "2"]]
    with pytest.raises(IndexError):
        params[5]
    with pytest.raises(RuntimeError):
        params()


@LIBS
def test_parameters_in_dictionaries(name):
    lib = pytest.importorskip(name)
    params = lib.nn.ParameterDict({"a": lib.ones(1), "b": 2})
    params |= {"c": lib.zeros(2)}
    assert list(params) == ["a", "b", "c"] and list(reversed(params)) == ["c", "b", "a"]
    assert params.get("z", 7) == 7 and params.setdefault("d", lib.ones(2)).shape == (2,) and "d" in params
    assert [n for n, _ in params.named_parameters()] == ["a", "c", "d"]
    assert params.pop("b") == 2 and params.popitem()[0] == "d" and len(params) == 2
    assert list((params | {"e": lib.ones(1)}).keys()) == ["a", "c", "e"] and len(params) == 2
    copied = params.copy()
    assert (
        copied["a"] is params["a"] and [k for k, _ in copied.items()] == ["a", "c"] and len(list(copied.values())) == 2
    )
    params.clear()
    assert len(params) == 0 and len(copied) == 2
    with pytest.raises((KeyError, AttributeError)):
        params["a"]
    with pytest.raises(TypeError):
        params[1] = lib.ones(1)


def test_parameters_pickle_and_print():
    params = nn.ParameterDict({"a": genesis.ones(2, 3), "b": 4})
    again = pickle.loads(pickle.dumps(params))
    assert list(again) == ["a", "b"] and genesis.equal(again["a"], params["a"])
    assert repr(nn.ParameterList([genesis.ones(2)])) == (
        "ParameterList((0): Parameter containing: [genesis.float32 of size 2])"
    )
    assert list(nn.Container(a=nn.ReLU())._modules) == ["a"]


def test_old_states_and_initialisation_of_further_bases():
    module = nn.Module.__new__(nn.Linear)
    module.__setstate__({"_parameters": {}, "_buffers": {}, "_modules": {}})
    assert module.training and module._hooks is None

    class Named:
        def __init__(self, name):
            self.name = name

    class Both(nn.Module, Named):
        call_super_init = True

    assert Both("x").name == "x"
    with pytest.raises(TypeError, match="takes no arguments"):
        nn.Module(3)


def test_wrong_devices():
    for what in ("xpu", "ipu", "mtia", "cuda"):
        with pytest.raises(RuntimeError):
            getattr(nn.Linear(1, 1), what)()


@pytest.mark.parity
def test_every_public_method_is_there():
    torch = pytest.importorskip("torch")
    for kind in ("Module", "ModuleList", "ModuleDict", "Sequential", "ParameterList", "ParameterDict"):
        ours, theirs = getattr(nn, kind), getattr(torch.nn, kind)
        missing = [n for n in dir(theirs) if not n.startswith("_") and not hasattr(ours, n)]
        assert missing in ([], ["T_destination"]), kind
    for name in ("named_parameters", "named_buffers", "named_modules", "load_state_dict", "register_forward_hook"):
        a, b = (list(inspect.signature(getattr(lib.Module, name)).parameters) for lib in (nn, torch.nn))
        assert a == b


def test_keywords_of_factories():
    assert nn.factory_kwargs(None) == {} and nn.factory_kwargs({"dtype": 1}) == {"dtype": 1}
    with pytest.raises(TypeError, match="unexpected argument 'size'"):
        nn.factory_kwargs({"size": 1})
    with pytest.raises(TypeError, match="given twice"):
        nn.factory_kwargs({"device": 1, "factory_kwargs": {"device": 2}})


@pytest.mark.parametrize(
    "made",
    [
        lambda: nn.LayerNorm(3), lambda: nn.LayerNorm(3, bias=False), lambda: nn.RMSNorm(3), lambda: nn.GroupNorm(1, 3),
        lambda: nn.GroupNorm(1, 3, affine=False), lambda: nn.BatchNorm1d(3), lambda: nn.Bilinear(2, 3, 4),
    ],
)  # fmt: skip
def test_first_values_can_be_had_again(made):
    genesis.manual_seed(0)
    module = made()
    first = [p.detach().clone() for p in module.parameters()]
    with genesis.no_grad():
        for p in module.parameters():
            p.fill_(7)
    genesis.manual_seed(0)
    module.reset_parameters()
    assert all(genesis.equal(p.detach(), one) for p, one in zip(module.parameters(), first, strict=True))


@LIBS
def test_members_of_ones_own_by_their_paths(name):
    lib = pytest.importorskip(name)

    class Noted(lib.nn.Linear):
        notes = (("a", 1), ("b", None))

    net = lib.nn.Sequential(Noted(1, 1), lib.nn.ModuleList([Noted(1, 1)]))
    members = list(net._named_members(lambda m: getattr(m, "notes", ()), prefix="x", remove_duplicate=False))
    assert members == [("x.0.a", 1), ("x.1.0.a", 1)]
    assert list(net._named_members(lambda m: getattr(m, "notes", ()))) == [("0.a", 1)]
    assert list(net._named_members(lambda m: getattr(m, "notes", ()), recurse=False)) == []
    assert [net[1]._get_abs_string_index(i) for i in (0, -1)] == ["0", "0"]
    with pytest.raises(IndexError):
        net[1]._get_abs_string_index(1)


@LIBS
def test_a_module_inside_converts_in_its_own_way(name):
    lib = pytest.importorskip(name)

    class Cached(lib.nn.Linear):
        cache = (1,)

        def _apply(self, fn):
            self.cache = ()
            return super()._apply(fn)

    net = lib.nn.Sequential(lib.nn.ReLU(), lib.nn.Sequential(Cached(2, 2)))
    assert net.double() is net
    assert (net[1][0].cache, net[1][0].weight.dtype) == ((), lib.float64)


def test_cpu_does_not_go_through_to():
    """Programs define `to` by way of `cpu`."""

    class Moved(nn.Linear):
        def to(self, device):
            return self.cpu()

    assert Moved(2, 1).to("cpu").weight.shape == (1, 2)
