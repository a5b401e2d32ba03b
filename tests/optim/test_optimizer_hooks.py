"""Hooks around steps and states, names of parameters, copies, steps that are differentiated."""

from __future__ import annotations

import copy
import inspect
import pickle

import numpy as np
import pytest

import genesis
from genesis import nn, optim
from genesis.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from genesis.testing import meanings_only

KINDS = [name for name in optim.__all__ if name not in ("Optimizer", "SparseAdam", "lr_scheduler", "swa_utils")]
STEPPING = [name for name in KINDS if name != "LBFGS"]


def _made(name, params=None, **options):
    p = genesis.tensor([[1.0, -2.0], [0.5, 3.0]], requires_grad=True) if params is None else params
    return getattr(optim, name)([p] if params is None else params, **{"lr": 0.1, **options})


def _step(optimizer):
    for group in optimizer.param_groups:
        for p in group["params"]:
            p.grad = p.detach() * 0.3 + 0.1
    return optimizer.step(*([lambda: 0.0] if isinstance(optimizer, optim.LBFGS) else []))


@pytest.mark.parametrize("name", KINDS)
def test_hooks_run_around_each_step(name):
    seen = []
    optimizer = _made(name)
    with (
        register_optimizer_step_pre_hook(lambda o, args, kwargs: seen.append("every pre")),
        register_optimizer_step_post_hook(lambda o, args, kwargs: seen.append("every post")),
        optimizer.register_step_pre_hook(lambda o, args, kwargs: seen.append("pre")),
        optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append((o is optimizer, len(args)))),
    ):
        _step(optimizer)
    _step(optimizer)
    assert seen == ["every pre", "pre", (True, int(name == "LBFGS")), "every post"]


def test_a_step_of_a_subclass_has_its_hooks_once():
    class Twice(optim.SGD):
        def step(self, closure=None):
            super().step()
            return super().step(closure)

    optimizer, seen = Twice([genesis.ones(1, requires_grad=True)], lr=1.0), []
    optimizer.register_step_post_hook(lambda *_: seen.append(1))
    _step(optimizer)
    assert seen == [1]


def test_a_pre_hook_changes_the_arguments():
    optimizer = _made("SGD")
    optimizer.register_step_pre_hook(lambda o, args, kwargs: ((lambda: 7.0,), {}))
    assert optimizer.step() == 7.0
    optimizer.register_step_pre_hook(lambda o, args, kwargs: 3)
    with pytest.raises(RuntimeError, match=r"SGD.step: a pre-hook returns None or new \(args, kwargs\), got 3"):
        optimizer.step()


def test_hooks_of_states():
    optimizer, seen = _made("Adam"), []
    _step(optimizer)
    optimizer.register_state_dict_pre_hook(lambda o: seen.append("pre"))
    optimizer.register_state_dict_post_hook(lambda o, state: {**state, "note": 1})
    optimizer.register_load_state_dict_pre_hook(lambda o, state: seen.append(state.pop("note")))
    optimizer.register_load_state_dict_post_hook(lambda o: seen.append("second"))
    optimizer.register_load_state_dict_post_hook(lambda o: seen.append("first"), prepend=True)
    state = optimizer.state_dict()
    optimizer.load_state_dict(state)
    assert seen == ["pre", 1, "first", "second"] and state["note"] == 1
    with pytest.raises(TypeError, match="hook must be a function, got 3"):
        optimizer.register_step_pre_hook(3)


def test_names_of_parameters():
    model = nn.Linear(2, 3)
    optimizer = optim.Adam(model.named_parameters())
    assert optimizer.param_groups[0]["param_names"] == ["weight", "bias"]
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["weight", "bias"]
    plain = optim.Adam(model.parameters()).state_dict()
    optimizer.load_state_dict(plain)
    assert optimizer.param_groups[0]["param_names"] == ["weight", "bias"]
    other = genesis.ones(1, requires_grad=True)
    optimizer.add_param_group({"params": [("other", other)], "lr": 1.0})
    assert optimizer.param_groups[1]["param_names"] == ["other"]
    with pytest.raises(
        ValueError, match=r"all parameters have names or none: 0 of these 1 have one, those before do\n"
    ):
        optimizer.add_param_group({"params": [genesis.ones(1, requires_grad=True)]})
    with pytest.raises(ValueError, match="all parameters have names or none: 1 of these 2 have one"):
        optim.SGD([("a", other), genesis.ones(1, requires_grad=True)])


def test_an_option_that_is_required():
    from genesis.optim.optimizer import required

    class Mine(optim.Optimizer):
        def __init__(self, params, lr=required):
            super().__init__(params, {"lr": lr})

    p = genesis.ones(1, requires_grad=True)
    assert Mine([{"params": [p], "lr": 2.0}]).param_groups[0]["lr"] == 2.0
    with pytest.raises(ValueError, match="Mine: a parameter group does not say 'lr', which is required"):
        Mine([p])


@pytest.mark.parametrize("name", KINDS)
def test_copies_go_on_as_the_original(name):
    optimizer = _made(name)
    optimizer.register_step_post_hook(lambda *_: None)
    _step(optimizer)
    again = [copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))]
    for one in (optimizer, *again):
        _step(one)
    values = [one.param_groups[0]["params"][0].tolist() for one in (optimizer, *again)]
    assert values[0] == values[1] == values[2]


@pytest.mark.parametrize("name", STEPPING)
def test_a_learning_rate_that_is_a_tensor(name):
    values = []
    for lr in (0.25, genesis.tensor(0.25), genesis.tensor([0.25])):
        optimizer = _made(name, lr=lr)
        _step(optimizer)
        optimizer.param_groups[0]["lr"] = lr.fill_(0.125) if isinstance(lr, genesis.Tensor) else 0.125
        _step(optimizer)
        values.append(optimizer.param_groups[0]["params"][0].tolist())
    assert values[0] == values[1] == values[2]


@pytest.mark.parametrize("name", STEPPING)
def test_parameters_that_are_not_contiguous(name):
    values = []
    for base in (genesis.arange(6.0).reshape(2, 3), genesis.arange(6.0).reshape(2, 3).T.contiguous().T):
        p = base.clone() if base.is_contiguous() else base
        optimizer = _made(name, [p.requires_grad_()])
        for _ in range(3):
            _step(optimizer)
        values.append(p.detach().numpy())
    np.testing.assert_allclose(*values, rtol=1e-6)


DIFFERENTIABLE = [n for n in STEPPING if "differentiable" in inspect.signature(getattr(optim, n)).parameters]


@pytest.mark.parametrize("name", [n for n in DIFFERENTIABLE if n != "Rprop"])
def test_steps_are_differentiated(name):
    """With respect to the parameter, the gradients and the learning rate, over three steps."""
    options = {"SGD": {"momentum": 0.9, "weight_decay": 0.1}, "RMSprop": {"momentum": 0.5, "centered": True}}

    def trained(start, grads, lr):
        p = start.clone()
        optimizer = _made(name, [p], lr=lr, differentiable=True, **options.get(name, {}))
        for g in grads:
            p.grad = g + p * 0.1
            optimizer.step()
        return p

    rng = np.random.default_rng(0)
    inputs = [genesis.tensor(rng.normal(size=s) + 0.3, requires_grad=True) for s in ((3,), (3, 3))]
    inputs.append(genesis.tensor(0.1, dtype=genesis.float64, requires_grad=True))
    assert genesis.autograd.gradcheck(trained, inputs)
    with meanings_only():
        grads = genesis.autograd.grad(trained(*inputs).sum(), inputs)
    assert all(bool((g != 0).any()) for g in grads)


def test_differentiable_adam_knows_its_betas():
    def trained(b1, b2):
        p = genesis.tensor([1.0, -2.0], dtype=genesis.float64)
        optimizer = optim.Adam([p], lr=0.1, betas=(b1, b2), differentiable=True)
        for scale in (1.0, 0.3):
            p.grad = genesis.tensor([0.5, -1.0], dtype=genesis.float64) * scale
            optimizer.step()
        return p

    betas = [genesis.tensor(b, dtype=genesis.float64, requires_grad=True) for b in (0.9, 0.99)]
    assert genesis.autograd.gradcheck(trained, betas)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda p: optim.SparseAdam([p], eps=0.0), ValueError, "SparseAdam: eps must be positive, got 0.0"),
        (lambda p: optim.Muon([p]), ValueError, "Muon: parameters must be matrices, got 1 dimensions"),
        (lambda p: optim.Muon([p.reshape(1, 1).detach()], adjust_lr_fn="x"), ValueError, "unknown adjust_lr_fn 'x'"),
        (lambda p: optim.Rprop([p], etas=(1.5, 2.0)), ValueError, r"Rprop: etas must be a < 1 < b, got 1.5 and 2.0"),
        (lambda p: optim.Adafactor([p], d=0.5), ValueError, "Adafactor: d must be at least 1, got 0.5"),
        (lambda p: optim.Adafactor([p], eps=3), TypeError, "Adafactor: eps must be two numbers"),
        (lambda p: optim.Adadelta([p], rho=2.0), ValueError, r"Adadelta: rho must be in \[0, 1\], got 2.0"),
        (lambda p: optim.NAdam([p], momentum_decay=-1), ValueError, "NAdam: momentum_decay must not be negative"),
        (lambda p: optim.Adam([p], fused=True, foreach=True), RuntimeError, "fused=True and foreach=True exclude"),
        (lambda p: optim.LBFGS([{"params": [p]}, {"params": []}]), ValueError, "LBFGS: has one parameter group only"),
        (lambda p: optim.LBFGS([p], line_search_fn="x"), ValueError, "LBFGS: unknown line_search_fn 'x'"),
        (lambda p: optim.LBFGS([p]).step(), TypeError, "LBFGS.step: needs a closure"),
        (lambda p: optim.SGD([p]).step(3), TypeError, "SGD.step: closure must be a function, got 3"),
    ],
)
def test_errors(make, error, words):
    with pytest.raises(error, match=words):
        make(genesis.ones(1, requires_grad=True))
