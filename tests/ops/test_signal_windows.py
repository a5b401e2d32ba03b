"""Windows of signals against PyTorch's, and their refusals."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
from genesis.ops.fourier.windows import WINDOWS

OLDER = ("bartlett", "blackman", "hamming", "hann", "kaiser")


@pytest.mark.parity
@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("sym", [True, False])
def test_windows_are_those_of_pytorch(name, sym):
    torch = pytest.importorskip("torch", reason="PyTorch is the reference here; pip install torch==2.13.0")
    more = {"a": [0.4, 0.3, 0.2]} if name == "general_cosine" else {}
    for size in (0, 1, 2, 5, 8):
        mine = getattr(genesis.signal.windows, name)(size, sym=sym, dtype=genesis.float64, **more)
        its = getattr(torch.signal.windows, name)(size, sym=sym, dtype=torch.float64, **more)
        np.testing.assert_allclose(mine.numpy(), its.numpy(), rtol=1e-12, atol=1e-14)


@pytest.mark.parity
@pytest.mark.parametrize("name", OLDER)
@pytest.mark.parametrize("periodic", [True, False])
def test_older_windows_are_those_of_pytorch(name, periodic):
    torch = pytest.importorskip("torch", reason="PyTorch is the reference here; pip install torch==2.13.0")
    for size in (0, 1, 2, 5, 8):
        mine = getattr(genesis, f"{name}_window")(size, periodic)
        its = getattr(torch, f"{name}_window")(size, periodic)
        assert mine.dtype is genesis.float32
        np.testing.assert_allclose(mine.numpy(), its.numpy(), rtol=1e-5, atol=1e-6)


def test_a_window_is_made_as_asked_for():
    made = genesis.signal.windows.gaussian(4, std=2.0, dtype=genesis.float64, requires_grad=True)
    assert made.dtype is genesis.float64
    assert made.requires_grad
    assert genesis.signal.windows.hann(4, device="meta").shape == (4,)
    assert genesis.signal.windows.hann(8, sym=False).tolist() == genesis.hann_window(8).tolist()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda w: w.hann(-1), ValueError, "signal.windows.hann: the length must be an integer of at least 0, got -1"),
        (lambda w: w.hann(3, dtype=genesis.int64), RuntimeError, "a window has a floating dtype, not genesis.int64"),
        (lambda w: w.hann(3, layout=genesis.sparse_coo), ValueError, "a window is strided"),
        (lambda w: w.exponential(3, tau=0.0), ValueError, "tau must be positive, got 0.0"),
        (lambda w: w.exponential(3, center=1.0), ValueError, "the center of a symmetric window is its middle"),
        (lambda w: w.gaussian(3, std=-1.0), ValueError, "std must be positive, got -1.0"),
        (lambda w: w.general_cosine(3, a=[]), ValueError, "a must have at least one number"),
        (lambda w: w.general_cosine(3, a=1.0), TypeError, "a must be a list of numbers"),
        (lambda w: w.kaiser(3, beta=-1.0), ValueError, "beta must not be negative, got -1.0"),
    ],
)
def test_refusals(call, error, words):
    with pytest.raises(error, match=words):
        call(genesis.signal.windows)
