"""Forms that write into their input: activations with ``inplace=True``, and writes where warnings are errors."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest

import genesis
import genesis.nn.functional as F

CHANNELS = {"dropout1d": 3, "dropout2d": 4, "dropout3d": 5, "alpha_dropout": 3, "feature_alpha_dropout": 3}
WRITERS = [
    name for name in F.__all__ if name not in CHANNELS and "inplace" in inspect.signature(getattr(F, name)).parameters
]
ARGS = {"threshold": (0.5, 2.0), "dropout": (1.0,)}


def call(F, name, x, **options):
    return getattr(F, name)(x, *ARGS.get(name, ()), **options)


def test_the_list_is_not_empty():
    assert {
        "relu",
        "relu6",
        "leaky_relu",
        "elu",
        "selu",
        "celu",
        "silu",
        "mish",
        "hardtanh",
        "hardswish",
        "hardsigmoid",
        "threshold",
        "rrelu",
        "dropout",
    } <= set(WRITERS)


@pytest.mark.parametrize("name", WRITERS)
def test_inplace_writes_into_the_input_and_has_the_gradient(name):
    """Through a strided view, so that the base's history changes, too."""
    grads, values = [], []
    for inplace in (False, True):
        x = genesis.linspace(-4, 7, 12, dtype=genesis.float64).requires_grad_()
        y = x * 1
        z = call(F, name, y[::2], inplace=inplace)
        assert (z._base is y) == inplace
        (z * genesis.arange(1, 7)).sum().backward()
        grads.append(x.grad.tolist())
        values.append(z.tolist())
        if inplace:
            assert y[::2].tolist() == z.tolist() and z._version == 1
    for made, written in (grads, values):  # one kernel, and the composition, which rounds some times more
        np.testing.assert_allclose(made, written, rtol=8 * np.finfo(np.float64).eps)


@pytest.mark.parametrize("name", CHANNELS)
def test_masks_of_channels_write_into_the_input_and_have_the_gradient(name):
    grads, values = [], []
    for inplace in (False, True):
        genesis.manual_seed(3)
        x = genesis.ones(2, 3, *[2] * (CHANNELS[name] - 2), dtype=genesis.float64).requires_grad_()
        y = x * 1
        z = getattr(F, name)(y, 0.5, True, inplace=inplace)
        assert (z is y) == inplace and z._version == inplace
        (z * genesis.arange(z.numel()).reshape(z.shape)).sum().backward()
        grads.append(x.grad.tolist())
        values.append(z.tolist())
    assert grads[0] == grads[1] and values[0] == values[1] and len(set(x.grad.flatten().tolist())) > 1


@pytest.mark.parametrize("name", WRITERS)
def test_inplace_in_transforms_and_traces(name):
    def f(x):
        y = x * 1
        assert call(F, name, y, inplace=True) is y
        return y

    x = genesis.linspace(-4, 7, 12).reshape(3, 4)
    expected = f(x)
    for result in (genesis.vmap(f)(x), genesis.jit.trace(f, x).replay(x)):  # of one kernel, and of the composition
        np.testing.assert_allclose(result.numpy(), expected.numpy(), rtol=4 * np.finfo(np.float32).eps)
    forward = genesis.func.jvp(f, (x,), (genesis.ones_like(x),))[1]
    leaf = x.clone().requires_grad_()
    f(leaf).sum().backward()
    np.testing.assert_allclose(forward.numpy(), leaf.grad.numpy(), rtol=1e-6)


@pytest.mark.parametrize("name", [n for n in WRITERS if n != "dropout"])
def test_inplace_on_a_leaf_is_refused(name):
    w = genesis.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match=f"{name}_: a leaf that requires grad is written to in place"):
        call(F, name, w, inplace=True)
    assert w.tolist() == [1, 1, 1]


@pytest.mark.parity
@pytest.mark.parametrize("name", [n for n in WRITERS if n not in ("dropout",)])
def test_inplace_against_pytorch(name):
    torch = pytest.importorskip("torch", reason="PyTorch is the reference here")
    results = []
    for framework, functions in ((genesis, F), (torch, torch.nn.functional)):
        x = framework.linspace(-4, 7, 12, dtype=framework.float64).requires_grad_()
        y = x * 1
        call(functions, name, y[::2], inplace=True)
        (y * y).sum().backward()
        results.append((y.detach().numpy(), x.grad.numpy()))
    for mine, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["relu6", "hardtanh"])
def test_limits_keep_integers(name):
    assert call(F, name, genesis.tensor([0, 1, 9])).dtype is genesis.int64
    with pytest.raises(RuntimeError, match="bool"):
        call(F, name, genesis.tensor([True]))
    with pytest.raises(ValueError, match="unsigned"):
        F.hardtanh(genesis.tensor([1], dtype=genesis.uint8))


def test_prelu_keeps_0d():
    assert genesis.prelu(genesis.tensor(-2.0), genesis.tensor([0.25])).shape == ()


UFUNCS = {"add_": np.add, "sub_": np.subtract, "mul_": np.multiply, "div_": np.divide, "fmod_": np.fmod}
OTHERS = [[3e38, 1e-3], [1e-30, 2.0], 1e300, 3e38, 1e-42, 1e-300, float("nan"), float("inf"), 0.0]


@pytest.mark.parametrize("mode", ["warnings are errors", "NumPy raises", "both"])
@pytest.mark.parametrize("name", UFUNCS)
@pytest.mark.parametrize("other", OTHERS, ids=str)
def test_a_write_is_done_once_where_warnings_are_errors(mode, name, other):
    with np.errstate(all="ignore"):
        expected = UFUNCS[name](np.array([3e38, 2.0], np.float32), np.array(other, np.float32))
    x = genesis.tensor([3e38, 2.0])
    with np.errstate(all="warn" if mode == "warnings are errors" else "raise"), warnings.catch_warnings():
        warnings.simplefilter("ignore" if mode == "NumPy raises" else "error")
        with genesis.no_grad():
            getattr(x, name)(genesis.tensor(other) if isinstance(other, list) else other)
    np.testing.assert_array_equal(x.numpy(), expected)
    assert x._version == 1


def test_an_optimizer_step_that_overflows_is_whole_where_warnings_are_errors():
    steps = []
    for mode in ("ignore", "raise"):
        p = genesis.nn.Parameter(genesis.tensor([1.0, 2.0]))
        p.grad = genesis.tensor([3e38, 1.0])
        optimizer = genesis.optim.Adam([p], lr=0.1)
        with np.errstate(all=mode):
            optimizer.step()
        steps.append([p.tolist(), optimizer.state[p]["exp_avg_sq"].tolist()])
    assert steps[0] == steps[1]


@pytest.mark.parity
def test_the_parts_of_complex_numbers_are_assigned_as_in_pytorch():
    torch = pytest.importorskip("torch", reason="PyTorch is the reference here")
    results = []
    for lib in (genesis, torch):
        z = lib.tensor([1 + 2j, 3 - 4j], requires_grad=True)
        x = z * 1
        x.imag = x.real * 3
        x.real = 2.0
        lib.view_as_real(x).square().sum().backward()
        results.append((lib.view_as_real(x.detach()).tolist(), lib.view_as_real(z.grad).tolist()))
        y = lib.ones(2)
        y.real = lib.zeros(2)
        assert y.tolist() == [0, 0]
        with pytest.raises(RuntimeError):
            y.imag = lib.zeros(2)
    assert results[0] == results[1]
