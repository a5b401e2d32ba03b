"""No op lets a warning of NumPy's out, forward or backward, whatever the numbers."""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pytest

import genesis
from genesis.core.op import REGISTRY
from genesis.testing.make import Maker
from genesis.testing.opcheck import samples_of

EXTREME = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 3e38, -3e38, 1e-45, -1.0, 2.0, 700.0, -90.0])


def extreme(x):
    """The tensor with numbers that overflow, divide by zero and have no logarithm."""
    if not isinstance(x, genesis.Tensor) or not x.is_floating_point():
        return x
    with np.errstate(all="ignore"):
        numbers = np.resize(EXTREME, x.shape).astype(x.detach().numpy().dtype)
    return genesis.tensor(numbers).requires_grad_(x.requires_grad)


def mapped(value):
    if isinstance(value, list | tuple):
        return type(value)(mapped(v) for v in value) if type(value) in (list, tuple) else value
    return extreme(value)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_no_warning(name, dtype):
    op = REGISTRY[name]
    for sample in samples_of(op, Maker(getattr(genesis, dtype), requires_grad=True)):
        args = mapped(tuple(sample.args))
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            try:
                out = op.call(*args, **sample.kwargs)
            except Exception:
                continue  # numbers that the op refuses
            first = next((t for t in (out if isinstance(out, tuple | list) else [out]) if isinstance(t, genesis.Tensor)), None)
            if first is not None and first.requires_grad:
                (first.real if first.is_complex() else first).sum().backward()
        assert [str(w.message) for w in given if issubclass(w.category, RuntimeWarning)] == []


def test_in_place_and_writes():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = genesis.tensor([3e38, 0.0])
        with genesis.no_grad():
            assert x.mul_(10.0).div_(0.0).tolist()[0] == float("inf")
            x[0] = 1e300
            assert genesis.ones(2, dtype=genesis.float16).mul_(1e6).tolist() == [float("inf")] * 2
        w = genesis.tensor([3e38], requires_grad=True)
        (w * 2).backward(genesis.tensor([3e38]))
        (w * 2).backward(genesis.tensor([3e38]))
        assert w.grad.tolist() == [float("inf")]


def test_numpys_own_settings_are_left_alone():
    with np.errstate(all="warn"):  # whatever an earlier test left
        before = np.geterr()
        genesis.zeros(3).log().sum()
        assert np.geterr() == before
        with pytest.warns(RuntimeWarning, match="divide by zero"):
            np.log(np.zeros(3))
    assert not any("genesis" in str(f) for f in warnings.filters)


def test_in_threads():
    wrong = []

    def work():
        with warnings.catch_warnings():
            for _ in range(200):
                if genesis.zeros(3).log().logsumexp(0).item() != -np.inf or genesis.full((2, 2), 3e38).sum(0).tolist() != [np.inf] * 2:
                    wrong.append(1)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        threads = [threading.Thread(target=work) for _ in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
    assert wrong == []


def test_polygamma_of_infinities():
    x = genesis.tensor([-np.inf, np.inf, np.nan, 1.0], dtype=genesis.float64)
    assert np.allclose(genesis.polygamma(1, x).numpy(), [np.nan, 0.0, np.nan, np.pi**2 / 6], equal_nan=True)
