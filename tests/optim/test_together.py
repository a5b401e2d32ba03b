"""Steps of all parameters by one call of a compiled rule: the bits that ops give, whatever the option."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
from genesis import optim
from genesis.kernels.cpu import optim as kernels
from genesis.kernels.cpu.compiled import LARGE
from genesis.kernels.llvm import loops
from genesis.optim import together

pytestmark = pytest.mark.skipif(not loops.available(), reason="no llvmlite")

OPTIONS = {
    "SGD": [{}, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True}, {"momentum": 0.5, "dampening": 0.2}],
    "RMSprop": [{}, {"alpha": 0.9, "eps": 1e-4}, {"momentum": 0.9}, {"centered": True}, {"centered": True, "momentum": 0.5}],
    "Adagrad": [{}, {"lr_decay": 0.1, "initial_accumulator_value": 0.5}],
    "Adadelta": [{}, {"rho": 0.5, "eps": 1e-3}, {"rho": 0.0}],
    "Adamax": [{}, {"betas": (0.8, 0.95), "eps": 1e-5}],
    "NAdam": [{}, {"momentum_decay": 0.1}, {"weight_decay": 0.1, "decoupled_weight_decay": True}],
    "RAdam": [{}, {"betas": (0.8, 0.95)}, {"weight_decay": 0.1, "decoupled_weight_decay": True}],
    "ASGD": [{}, {"lambd": 0.01, "alpha": 0.5, "t0": 3.0}, {"t0": 2.0, "foreach": True}],
    "Rprop": [{}, {"etas": (0.3, 1.5), "step_sizes": (1e-3, 0.1)}],
}  # fmt: skip
CASES = [
    (name, {**own, **more})
    for name, some in OPTIONS.items()
    for own in some
    for more in ({}, {"maximize": True}, {"weight_decay": 0.2})
    if not ("weight_decay" in more and (name == "Rprop" or "weight_decay" in own))
]


@pytest.fixture
def calls(monkeypatch):
    """The rules that were called, and with how many parameters."""
    monkeypatch.setitem(kernels._small, "steps", kernels.OFTEN)
    seen, run = [], kernels.steps_by_rule
    monkeypatch.setattr(together, "steps_by_rule", lambda rule, *a: (seen.append((rule, len(a[1]))), run(rule, *a)))
    return seen


def trained(name, options, dtypes=("float32",), steps=9, special=False, layout=lambda a: a, large=False):
    rng = np.random.default_rng(3)
    last = [(LARGE["elements"] + 7,), ()] if large else []
    shapes = [(3,), (4, 5), (1,), (0, 2), (2, 3, 4), *last]
    params = [
        genesis.nn.Parameter(genesis.tensor(np.asarray(rng.normal(size=s), dtypes[i % len(dtypes)])))
        for i, s in enumerate(shapes)
    ]
    optimizer = getattr(optim, name)(params, lr=0.05, **options)
    for i in range(steps):
        for k, p in enumerate(params):
            g = np.asarray(rng.normal(size=p.shape), p.detach().numpy().dtype)
            if special and g.size > 2:
                g.reshape(-1)[:3] = [0, np.nan, np.inf] if i > 3 else [0, -0.0, 1]
            p.grad = None if k == 4 and i < 2 else genesis.from_numpy(layout(g))
        optimizer.step()
    states = [x for p in params for x in optimizer.state[p].values()]
    return [np.asarray(x.detach().numpy() if isinstance(x, genesis.Tensor) else x) for x in (*params, *states)]


def by_ops(monkeypatch, *args, **kwargs):
    with monkeypatch.context() as patched:
        patched.setattr(together, "steps_pay", lambda sizes: False)
        return trained(*args, **kwargs)


def same(ours, theirs):
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(np.signbit(a), np.signbit(b))


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_every_option_gives_the_bits_of_ops_by_one_call(name, options, calls, monkeypatch):
    want = by_ops(monkeypatch, name, options)
    assert not calls
    same(trained(name, options), want)
    assert calls[0][1] == 4 and calls[-1][0] == name.lower()
    if name == "SGD":  # whose buffers of momentum are the first gradients
        assert [count for _, count in calls][-6:] == [5] * 6
        return
    # a parameter that came two steps later has other numbers, where they depend on the step
    assert len(calls) in (9, 9 + 7)
    assert sum(count for _, count in calls) == 9 * 5 - 2


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("dtypes", [("float64",), ("float32", "float64"), ("float32", "float16")], ids=str)
def test_other_dtypes(name, dtypes, calls, monkeypatch):
    same(trained(name, {}, dtypes), by_ops(monkeypatch, name, {}, dtypes))
    assert calls


@pytest.mark.parametrize("name", OPTIONS)
def test_large_ones_and_layouts_of_gradients(name, calls, monkeypatch):
    for layout in (lambda a: a.copy("F"), lambda a: np.stack([a, a], -1)[..., 0]):
        given = {"layout": layout, "large": True, "steps": 4}
        same(trained(name, {}, **given), by_ops(monkeypatch, name, {}, **given))
    assert calls


@pytest.mark.parametrize("name", OPTIONS)
def test_what_is_not_finite(name, calls, monkeypatch):
    ours, theirs = trained(name, {}, special=True), by_ops(monkeypatch, name, {}, special=True)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)
    assert calls


def test_writes_are_counted_and_saved_values_guarded(calls):
    p = genesis.nn.Parameter(genesis.ones(3))
    optimizer = optim.RMSprop([p], lr=0.1)
    y = (p * p).sum()
    p.grad = genesis.ones(3)
    before = p._version
    optimizer.step()
    assert calls and p._version == before + 1 and optimizer.state[p]["square_avg"]._version == 1
    with pytest.raises(RuntimeError, match="add_"):
        y.backward()


def test_what_is_left_to_ops(calls, monkeypatch):
    class Own(optim.RMSprop):
        def change(self, param, g, state, group):
            param.sub_(g)

    def run(make, **options):
        p = genesis.nn.Parameter(genesis.ones(3))
        optimizer = make([p], **options)
        p.grad = genesis.ones(3)
        optimizer.step()
        return p.tolist()

    assert run(Own) == [0, 0, 0]
    run(optim.Adagrad, lr=genesis.tensor(0.1))
    run(optim.Adagrad, differentiable=False, foreach=True)
    assert len(calls) == 1
    with genesis.profiler.profile():
        run(optim.Rprop)
    assert len(calls) == 1


def test_complex_parameters_are_left_to_ops_and_memory_may_be_anothers(calls):
    whole = genesis.ones(4)
    params = [whole[:2].detach().requires_grad_(), genesis.ones(2, dtype=genesis.complex64).requires_grad_()]
    params.append(genesis.ones(2).requires_grad_())
    optimizer = optim.Adagrad(params, lr=0.25)
    for p in params:
        p.grad = genesis.ones_like(p)
    optimizer.step()
    assert (
        whole.tolist() == [0.75, 0.75, 1, 1] and params[2].tolist() == [0.75] * 2 and params[1].tolist() == [0.75] * 2
    )
    assert [count for _, count in calls] == [1, 1]  # the complex one divides them
