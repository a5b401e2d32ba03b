"""NumPy's warnings stay inside of writes, of backward and of threads; what the samples of ops show, `opcheck` checks."""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pytest

import genesis


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
                if (
                    genesis.zeros(3).log().logsumexp(0).item() != -np.inf
                    or genesis.full((2, 2), 3e38).sum(0).tolist() != [np.inf] * 2
                ):
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
