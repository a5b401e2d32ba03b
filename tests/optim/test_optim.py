"""Optimizers and schedules: twenty steps as in PyTorch, state, errors."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest

import genesis
from genesis.testing import meanings_only

CASES = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.5, "maximize": True}),
    ("Adam", {"lr": 0.1}),
    ("Adam", {"lr": 0.1, "weight_decay": 0.1, "amsgrad": True}),
    ("AdamW", {"lr": 0.1}),
    ("AdamW", {"lr": 0.05, "betas": (0.8, 0.95), "eps": 1e-6, "weight_decay": 0.3, "amsgrad": True}),
    ("AdamW", {"maximize": True}),
    ("RMSprop", {"lr": 0.01}),
    ("RMSprop", {"lr": 0.01, "momentum": 0.9, "centered": True, "weight_decay": 0.1}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1}),
]


@pytest.mark.parity
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "options"), CASES, ids=lambda v: str(v))
def test_twenty_steps_as_pytorch(name, options, dtype):
    torch = pytest.importorskip("torch", reason="PyTorch is the reference here")
    start = np.random.default_rng(0).normal(size=(3, 4)).astype(dtype)
    results = []
    for lib in (genesis, torch):
        p = lib.tensor(start.copy(), requires_grad=True)
        optimizer = getattr(lib.optim, name)([p], **options)
        for _ in range(20):
            loss = ((p - 1) ** 2).sum() + (p**3).mean() * 0.1
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        results.append(p.detach().numpy())
    rtol = 2e-5 if dtype == "float32" else 1e-11
    np.testing.assert_allclose(*results, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("size", [1, 7, 40_000])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_kernel_is_the_composition(size, dtype):
    rng = np.random.default_rng(0)
    start, results = rng.normal(size=size).astype(dtype), []
    for way in (nullcontext, meanings_only):
        p = genesis.tensor(start, requires_grad=True)
        optimizer = genesis.optim.AdamW([p], lr=0.1, weight_decay=0.2)
        for _ in range(5):
            optimizer.zero_grad()
            (p**3 + p).sum().backward()
            with way():
                optimizer.step()
        assert p._version > 0
        results.append(p.detach().numpy())
    np.testing.assert_allclose(*results, rtol=1e-5 if dtype == "float32" else 1e-12, atol=1e-7)


def test_state_continues_exactly():
    def run(split):
        p = genesis.tensor([1.0, -2.0], requires_grad=True)
        optimizer = genesis.optim.AdamW([p], lr=0.1)
        for step in range(6):
            if step == split:
                state = optimizer.state_dict()
                optimizer = genesis.optim.AdamW([p], lr=0.5)
                optimizer.load_state_dict(state)
            optimizer.zero_grad()
            (p**2).sum().backward()
            optimizer.step()
        return p.tolist()

    assert run(3) == run(None)


def test_groups_closure_and_missing_gradients():
    a, b = genesis.ones(1, requires_grad=True), genesis.ones(1, requires_grad=True)
    optimizer = genesis.optim.SGD([{"params": [a]}, {"params": [b], "lr": 0.0}], lr=1.0)

    def closure():
        optimizer.zero_grad()
        loss = (a * 2).sum()
        loss.backward()
        return loss

    assert float(optimizer.step(closure)) == 2 and a.tolist() == [-1] and b.tolist() == [1]
    assert "lr: 1.0" in repr(optimizer)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda p: genesis.optim.SGD([]), ValueError, "got an empty parameter list"),
        (lambda p: genesis.optim.SGD(None, lr=-1.0), ValueError, "lr"),
        (
            lambda p: genesis.optim.Adam(None),
            TypeError,
            "params must be an iterable of tensors or of dicts, got NoneType",
        ),
        (lambda p: genesis.optim.SGD(p), TypeError, "params must be an iterable of tensors, got one tensor"),
        (
            lambda p: genesis.optim.SGD([{"params": [p]}, {"params": [p]}]),
            ValueError,
            "a parameter is in two groups",
        ),
        (lambda p: genesis.optim.SGD([p * 2]), ValueError, "can only optimize leaf tensors"),
        (lambda p: genesis.optim.SGD([1.0]), TypeError, "expected tensors, got float"),
        (lambda p: genesis.optim.SGD([p], lr=-1), ValueError, "lr must not be negative, got -1"),
        (lambda p: genesis.optim.Adam([p], betas=(1.0, 0.9)), ValueError, r"betas\[0\] must be in \[0, 1\), got 1.0"),
        (lambda p: genesis.optim.SGD([p], nesterov=True), ValueError, "nesterov needs momentum and no dampening"),
        (
            lambda p: genesis.optim.SGD([p]).load_state_dict({"state": {}, "param_groups": [{"params": [0, 1]}]}),
            ValueError,
            r"groups of \[2\] parameters, the optimizer of \[1\]",
        ),
    ],
)
def test_errors(make, error, words):
    with pytest.raises(error, match=words):
        make(genesis.ones(1, requires_grad=True))


@pytest.mark.parity
@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("StepLR", (3,)),
        ("MultiStepLR", ([2, 5],)),
        ("ExponentialLR", (0.9,)),
        ("LinearLR", ()),
        ("CosineAnnealingLR", (8,)),
        ("LambdaLR", (lambda s: 0.5**s,)),
    ],
)
def test_schedules_as_pytorch(name, args):
    torch = pytest.importorskip("torch", reason="PyTorch is the reference here")
    rates = []
    for lib in (genesis, torch):
        optimizer = lib.optim.SGD([lib.ones(1, requires_grad=True)], lr=0.7)
        schedule = getattr(lib.optim.lr_scheduler, name)(optimizer, *args)
        rates.append([])
        for _ in range(8):
            optimizer.step()
            rates[-1].append(schedule.get_last_lr()[0])
            schedule.step()
    np.testing.assert_allclose(*rates, rtol=1e-9)


SGD_OPTIONS = [options for name, options in CASES if name == "SGD"]


@pytest.mark.parametrize("options", [*SGD_OPTIONS, {"lr": 1, "weight_decay": 0.1}], ids=str)
def test_small_parameters_together_are_what_they_are_one_by_one(options):
    class OneByOne(genesis.optim.SGD):
        def update(self, *args):
            super().update(*args)

    def parameters():
        genesis.manual_seed(0)
        flat, half = genesis.randn(8), genesis.randn(3).half()
        plain = [
            genesis.randn(4, 3),
            genesis.tensor(0.5),
            genesis.randn(3).double(),
            genesis.randn(0),
            genesis.randn(90, 100),
        ]
        return [
            p.requires_grad_() for p in (*plain, flat[:4], flat[4:], half, genesis.randn(2, dtype=genesis.complex64))
        ]

    results = []
    for kind in (genesis.optim.SGD, OneByOne):
        ps = parameters()
        optimizer = kind(ps, **options)
        for step in range(4):
            for i, p in enumerate(ps):
                p.grad = genesis.randn(p.shape, dtype=p.dtype) if p.ndim != 2 else genesis.randn(p.shape[::-1]).T
                if i == step:
                    p.grad = None
            optimizer.step()
        buffers = [optimizer.state[p].get("momentum_buffer") for p in ps]
        results.append([x.detach().numpy().tobytes() for x in (*ps, *buffers) if x is not None])
    assert results[0] == results[1]


def test_steps_of_small_parameters_are_counted_as_writes():
    p, other = genesis.ones(2, requires_grad=True), genesis.ones(2, requires_grad=True)
    y = (p * other).sum()
    p.grad = other.grad = genesis.full((2,), np.inf)
    with np.errstate(all="raise"):
        genesis.optim.SGD([p, other], lr=0.0).step()
    assert np.isnan(p.tolist()).all()
    with pytest.raises(RuntimeError, match="was modified in place by add_"):
        y.backward()


def test_a_gradient_that_is_read_is_not_written_to():
    a, b = genesis.ones(2, requires_grad=True), genesis.ones(2, requires_grad=True)
    optimizer = genesis.optim.SGD([a, b], lr=1.0, momentum=0.5)
    for _ in range(3):
        (a + b).sum().backward()
        grads = [x.grad.tolist() for x in (a, b)]
        optimizer.step()
        assert [x.grad.tolist() for x in (a, b)] == grads
    buffer = optimizer.state[a]["momentum_buffer"]
    assert buffer is not a.grad and not np.shares_memory(buffer.numpy(), a.grad.numpy())


def test_options_of_groups_come_in_the_order_of_pytorch():
    """What the group says, in its order, then what it leaves to the optimizer: programs print groups."""
    w, b = genesis.ones(1, requires_grad=True), genesis.ones(1, requires_grad=True)
    first, second = genesis.optim.SGD([{"params": [w]}, {"lr": 0.5, "params": [b]}], lr=0.1).param_groups
    assert list(first)[:3] == ["params", "lr", "momentum"] and list(second)[:3] == ["lr", "params", "momentum"]
    assert (first["lr"], second["lr"]) == (0.1, 0.5)


def test_a_parameter_that_a_group_has_twice_takes_two_steps():
    p = genesis.nn.Parameter(genesis.ones(2))
    with pytest.warns(UserWarning, match="a parameter is in a group twice"):
        optimizer = genesis.optim.SGD([p, p], lr=0.25)
    p.sum().backward()
    optimizer.step()
    assert p.tolist() == [0.5, 0.5]


def test_a_list_of_parameters_that_is_a_module_is_an_iterable_of_tensors():
    listed = genesis.nn.ParameterList([genesis.ones(2), genesis.zeros(3)])
    params = genesis.optim.SGD(listed).param_groups[0]["params"]
    assert len(params) == 2 and all(p is q for p, q in zip(params, listed, strict=True))
    with pytest.raises(TypeError, match="got the module ParameterDict"):
        genesis.optim.SGD(genesis.nn.ParameterDict({"a": genesis.ones(2)}))
