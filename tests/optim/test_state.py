"""The state of an optimizer is taken over whole or not at all."""

from __future__ import annotations

import copy

import pytest

import genesis
from genesis import optim


def _trained(kind=optim.Adam, **options):
    params = [genesis.ones(2, requires_grad=True), genesis.ones(3, requires_grad=True)]
    optimizer = kind([{"params": [p]} for p in params], lr=0.1, **options)
    (params[0].sum() + params[1].sum()).backward()
    optimizer.step()
    return optimizer


def _unknown(state):
    state["state"][9] = {}


def _longer(state):
    state["state"][1]["exp_avg"] = genesis.zeros(7)


def _less(state):
    del state["state"][1]["exp_avg_sq"]


WRONG = {
    "unknown parameters 9": _unknown,
    r"exp_avg of parameter 1: shape \[7\] in the state, \[3\] of the parameter": _longer,
    "state of parameter 1: missing exp_avg_sq": _less,
    "group 1: missing betas": lambda s: s["param_groups"][1].pop("betas"),
    r"group 1: Adam: lr must not be negative, got -1": lambda s: s["param_groups"][1].update(lr=-1),
    r"state of parameter 1: expected a mapping, got int": lambda s: s["state"].update({1: 5}),
    r"groups of \[1, 2\] parameters, the optimizer of \[1, 1\]": lambda s: s["param_groups"][1].update(params=[1, 2]),
    "a state has 'state' and 'param_groups'": lambda s: s.pop("state"),
    "got the keys state$": lambda s: s.pop("param_groups"),
}


@pytest.mark.parametrize("words", WRONG)
def test_a_wrong_state_changes_nothing(words):
    optimizer = _trained()
    before = copy.deepcopy(optimizer.state_dict())
    state = copy.deepcopy(before)
    state["param_groups"][0]["lr"] = 0.7
    state["state"][0]["exp_avg"].fill_(5)
    WRONG[words](state)
    with pytest.raises(ValueError, match=f"(?m){words}"):
        optimizer.load_state_dict(state)
    assert str(optimizer.state_dict()) == str(before)


def test_what_is_no_state():
    optimizer = _trained()
    for wrong in (None, [], "state", 3):
        with pytest.raises(TypeError, match="Adam.load_state_dict: expected a mapping"):
            optimizer.load_state_dict(wrong)
    with pytest.raises(ValueError, match="of a module it is module.load_state_dict"):
        optimizer.load_state_dict(genesis.nn.Linear(1, 1).state_dict())


@pytest.mark.parametrize(
    ("kind", "other"), [(optim.Adam, optim.SGD), (optim.RMSprop, optim.Adam), (optim.Adagrad, optim.RMSprop)]
)
def test_the_state_of_another_optimizer(kind, other):
    with pytest.raises(ValueError, match=rf"(?s){kind.__name__}.load_state_dict: the state does not fit.*missing"):
        _trained(kind).load_state_dict(_trained(other).state_dict())


@pytest.mark.parity
@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
def test_a_state_of_pytorch(name):
    torch = pytest.importorskip("torch", reason="PyTorch is the reference here")
    p = torch.ones(3, requires_grad=True)
    theirs = getattr(torch.optim, name)([p], lr=0.1, **({"momentum": 0.9} if name in ("SGD", "RMSprop") else {}))
    q = genesis.ones(3, requires_grad=True)
    mine = getattr(optim, name)([q], lr=0.1)
    for step in range(5):
        if step == 2:
            state = theirs.state_dict()
            state["state"] = {
                i: {k: genesis.tensor(v.numpy()) if torch.is_tensor(v) else v for k, v in s.items()}
                for i, s in state["state"].items()
            }
            q.data = genesis.tensor(p.detach().numpy().copy())
            mine.load_state_dict(state)
        for x, optimizer in ((p, theirs), (q, mine)):
            optimizer.zero_grad()
            (x**3).sum().backward()
            optimizer.step()
    assert q.tolist() == pytest.approx(p.tolist(), rel=1e-5)


def test_states_have_the_dtype_of_the_parameter():
    state = _trained().state_dict()
    params = [
        genesis.ones(2, dtype=genesis.float64, requires_grad=True),
        genesis.ones(3, dtype=genesis.float64, requires_grad=True),
    ]
    other = optim.Adam([{"params": [p]} for p in params])
    other.load_state_dict(state)
    assert other.state[params[1]]["exp_avg"].dtype is genesis.float64 and other.state[params[1]]["step"] == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"scale": -1.0}, "scale: must be positive and finite, got -1.0"),
        ({"growth_factor": "2"}, "growth_factor: must be greater than 1, got '2'"),
        ({"_growth_tracker": None}, "_growth_tracker: must be an integer that is not negative, got None"),
        ({"growth_interval": 0}, "growth_interval: must be"),
    ],
)
def test_a_wrong_state_of_a_scaler_changes_nothing(change, words):
    scaler = genesis.amp.GradScaler()
    before = scaler.state_dict()
    with pytest.raises(RuntimeError, match=words):
        scaler.load_state_dict({**before, "scale": 4.0, **change})
    with pytest.raises(RuntimeError, match="backoff_factor: missing"):
        scaler.load_state_dict({"scale": 4.0})
    with pytest.raises(TypeError, match=r"GradScaler.load_state_dict: expected a mapping, got int"):
        scaler.load_state_dict(3)
    assert scaler.state_dict() == before
    scaler.load_state_dict({**before, "scale": 4.0})
    assert scaler.get_scale() == 4.0


def test_an_optimizer_of_ones_own_keeps_a_state_of_any_shape():
    class Ranks(optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {"lr": 0.1})

        def step(self, closure=None):
            for p in self.param_groups[0]["params"]:
                self.state[p].setdefault("squares", genesis.zeros(p.numel(), p.numel())).add_(1)

    p = genesis.ones(2, 3, requires_grad=True)
    first, second = Ranks([p]), Ranks([p])
    first.step()
    second.load_state_dict(first.state_dict())
    assert second.state[p]["squares"].tolist() == genesis.ones(6, 6).tolist()


@pytest.mark.parametrize("name", ["genesis", "torch"])
def test_an_optimizer_of_ones_own_keeps_its_kind_of_steps(name):
    lib = pytest.importorskip(name)

    class Counting(lib.optim.Optimizer):
        def __init__(self, params, first):
            super().__init__(params, {})
            self.first = first

        def step(self):
            for p in self.param_groups[0]["params"]:
                self.state[p]["step"] = self.state[p].get("step", self.first) + 1

    for first, kind in ((lib.tensor(0.0), lib.Tensor), (0, int), (0.5, float)):
        optimizer, other = (Counting([lib.ones(2, requires_grad=True)], first) for _ in range(2))
        optimizer.step()
        assert type(optimizer.state_dict()["state"][0]["step"]) is kind
        other.load_state_dict(optimizer.state_dict())
        other.step()
        (state,) = other.state.values()
        assert (type(state["step"]), float(state["step"])) == (kind, first + 2)


@pytest.mark.parametrize("name", ["genesis", "torch"])
def test_an_optimizer_of_ones_own_completes_what_is_loaded(name):
    lib = pytest.importorskip(name)

    class Later(lib.optim.Adam):
        def __setstate__(self, state):
            super().__setstate__(state)
            for group in self.param_groups:
                group.setdefault("caution", True)
            for values in self.state.values():
                values["exp_avg"] = values["exp_avg"].to(lib.float16)

    def stepped(kind):
        p = lib.ones(2, requires_grad=True)
        p.grad = lib.ones(2)
        optimizer = kind([p], lr=0.1)
        optimizer.step()
        return optimizer

    later = stepped(Later)
    later.load_state_dict(stepped(lib.optim.Adam).state_dict())
    (values,) = later.state.values()
    assert (later.param_groups[0]["caution"], values["exp_avg"].dtype) == (True, lib.float16)


@pytest.mark.parametrize("name", ["genesis", "torch"])
def test_a_parameter_that_is_there_twice_has_one_number(name):
    lib = pytest.importorskip(name)
    optimizer = lib.optim.Adam([lib.ones(2, requires_grad=True) for _ in range(2)])
    optimizer.param_groups.extend(optimizer.param_groups)
    assert [g["params"] for g in optimizer.state_dict()["param_groups"]] == [[0, 1], [0, 1]]


def test_an_optimizer_around_another_one_needs_no_groups_of_its_own():
    class Around(optim.Optimizer):
        def __init__(self, optimizer):
            self.optimizer, self.param_groups, self.state = optimizer, optimizer.param_groups, optimizer.state

        def step(self, closure=None):
            return self.optimizer.step(closure)

    p = genesis.ones(2, requires_grad=True)
    around = Around(optim.SGD([p], lr=0.5))
    p.grad = genesis.ones(2)
    around.step()
    around.zero_grad()
    assert (p.tolist(), p.grad) == ([0.5, 0.5], None)
