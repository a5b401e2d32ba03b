"""Clipped gradients, vectors of parameters, fused and uninitialised layers: as PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
from genesis import nn
from genesis.nn import utils


@pytest.mark.parity
@pytest.mark.parametrize("norm", [2.0, 1.0, 3, float("inf"), "inf"])
def test_clipping_as_pytorch(norm):
    torch = pytest.importorskip("torch", reason="PyTorch is the reference here")
    found = []
    for lib in (genesis, torch):
        params = [lib.ones(n, requires_grad=True) for n in (3, 2)]
        rng = np.random.default_rng(0)
        for p in params:
            p.grad = lib.tensor(rng.normal(size=p.shape[0]).astype("float32"))
        total = lib.nn.utils.clip_grad_norm_((p for p in params), 0.5, norm_type=norm)
        again = lib.nn.utils.get_total_norm([p.grad for p in params], norm_type=float(norm))
        lib.nn.utils.clip_grads_with_norm_(params, 0.1, again)
        lib.nn.utils.clip_grad_value_(params, 0.05)
        found.append([float(total), float(again), *params[0].grad.tolist(), *params[1].grad.tolist()])
    np.testing.assert_allclose(*found, rtol=1e-5)


def test_gradients_of_many_parameters_are_clipped_like_each_of_them():
    rng = np.random.default_rng(0)
    whole = genesis.tensor(rng.normal(size=(4, 3)).astype("float32"))
    grads = [
        genesis.tensor(rng.normal(size=(3, 2)).astype("float32")).t(),  # in another order
        whole[1:3],  # a view
        genesis.tensor(rng.normal(size=0).astype("float32")),
        genesis.tensor(np.float32(0.5)),
    ]
    params = [genesis.zeros(g.shape, requires_grad=True) for g in grads]
    for p, g in zip(params, grads, strict=True):
        p.grad = g
    before, others = [g.numpy().copy() for g in grads], whole[0].numpy().copy()
    expected = np.sqrt(sum(float((b.astype("float64") ** 2).sum()) for b in before))
    versions = [g._version for g in grads]
    total = utils.clip_grad_norm_(params, 1.0)
    np.testing.assert_allclose(total.item(), expected, rtol=1e-6)
    for g, b, version in zip(grads, before, versions, strict=True):
        np.testing.assert_allclose(g.numpy(), b / (expected + 1e-6), rtol=1e-6)
        assert g._version == version + 1
    np.testing.assert_array_equal(whole[0].numpy(), others)
    utils.clip_grad_value_(params, 0.1)
    assert all(float(g.abs().max()) <= np.float32(0.1) for g in grads if g.numel())
    twice = genesis.ones(1, requires_grad=True)
    twice.grad = genesis.tensor([2.0])
    utils.clip_grads_with_norm_([twice, twice], 1.0, genesis.tensor(2.0))
    np.testing.assert_allclose(twice.grad.numpy(), [0.5], rtol=1e-5)  # once for each time it is named, as PyTorch


def test_clipping_is_a_write_that_saved_tensors_notice():
    for clip in (lambda p: utils.clip_grad_norm_([p], 0.1), lambda p: utils.clip_grad_value_([p], 0.1)):
        p, x = genesis.ones(3, requires_grad=True), genesis.ones(3, requires_grad=True)
        p.grad = genesis.full((3,), 2.0)
        y = (x * p.grad).sum()
        clip(p)
        with pytest.raises(RuntimeError, match="modified in place by (mul|clamp)_"):
            y.backward()


def test_clipping_leaves_gradients_that_share_memory_apart():
    a, b = genesis.zeros(2, requires_grad=True), genesis.zeros(2, requires_grad=True)
    given = genesis.tensor([3.0, 4.0])
    (a + b).backward(given)
    utils.clip_grad_norm_([a], 1.0)
    assert b.grad.tolist() == [3.0, 4.0] and given.tolist() == [3.0, 4.0]
    kept = []
    c = genesis.zeros(2, requires_grad=True)
    c.register_hook(kept.append)
    (c * 1).backward(given)
    utils.clip_grad_value_([c], 1.0)
    assert kept[0].tolist() == [3.0, 4.0] and c.grad.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("dtypes", [("float64", "float64"), ("float32", "float64"), ("float16", "float32")])
def test_clipping_gradients_of_other_dtypes(dtypes):
    params = []
    for name in dtypes:
        p = genesis.ones(2, dtype=getattr(genesis, name), requires_grad=True)
        p.grad = genesis.tensor([3.0, 4.0], dtype=p.dtype)
        params.append(p)
    total = utils.clip_grad_norm_(params, 1.0)
    np.testing.assert_allclose(float(total), np.sqrt(50), rtol=1e-3)
    for p in params:
        assert p.grad.dtype is p.dtype
        np.testing.assert_allclose(p.grad.tolist(), np.array([3.0, 4.0]) / np.sqrt(50), rtol=1e-3)


def test_gradients_that_are_no_numbers():
    p = genesis.ones(1, requires_grad=True)
    p.grad = genesis.tensor([float("nan")])
    with pytest.raises(RuntimeError, match="the total norm is nan"):
        utils.clip_grad_norm_([p], 1.0, error_if_nonfinite=True)
    with pytest.warns(UserWarning, match="there are no parameters"):
        assert utils.clip_grad_norm_(iter(()), 1.0) == 0
    with pytest.warns(FutureWarning, match="clip_grad_norm: this name is deprecated"):
        utils.clip_grad_norm([p], 1.0)


def test_a_vector_that_is_too_short_changes_nothing():
    params = [genesis.zeros(2), genesis.zeros(3)]
    with pytest.raises(RuntimeError, match="needs a vector of 5 elements"):
        utils.vector_to_parameters(genesis.ones(4), params)
    assert params[0].tolist() == [0.0, 0.0]
    utils.vector_to_parameters(genesis.arange(5.0), params)
    assert utils.parameters_to_vector(params).tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_a_fused_layer_does_what_two_do(affine, bias):
    linear, bn = nn.Linear(3, 4, bias=bias), nn.BatchNorm1d(4, affine=affine)
    bn(genesis.randn(20, 4) * 3 + 1)
    linear.eval(), bn.eval()
    x = genesis.randn(5, 3)
    expected = bn(linear(x))
    fused = utils.fuse_linear_bn_eval(linear, bn)
    np.testing.assert_allclose(fused(x).tolist(), expected.tolist(), rtol=1e-4, atol=1e-5)
    weight, shift = utils.fuse_conv_bn_weights(
        linear.weight, linear.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    np.testing.assert_allclose((x @ weight.T + shift).tolist(), expected.tolist(), rtol=1e-4, atol=1e-5)
    with pytest.raises(TypeError, match="Linear is in training mode"):
        utils.fuse_linear_bn_eval(linear.train(), bn)


@pytest.mark.parametrize("transpose", [False, True])
def test_a_fused_convolution_does_what_two_do(transpose):
    kind = nn.ConvTranspose2d if transpose else nn.Conv2d
    conv, bn = kind(3, 4, 3, stride=2, padding=1), nn.BatchNorm2d(4)
    bn(genesis.randn(20, 4, 3, 3) * 3 + 1)
    conv.eval(), bn.eval()
    x = genesis.randn(2, 3, 5, 5)
    fused = utils.fuse_conv_bn_eval(conv, bn, transpose)
    np.testing.assert_allclose(fused(x).tolist(), bn(conv(x)).tolist(), rtol=1e-4, atol=1e-5)


def test_spectral_norms_of_convolutions():
    for layer, rows in ((nn.Conv2d(3, 4, 2), 4), (nn.ConvTranspose2d(3, 4, 2), 4)):
        made = utils.parametrizations.spectral_norm(layer)
        assert made.parametrizations.weight[0]._u.shape == (rows,)
        assert made(genesis.ones(1, 3, 5, 5)).shape[1] == 4


def test_uninitialised_modules():
    layer = utils.skip_init(nn.Linear, 3, 2, bias=False, dtype=genesis.float64)
    assert layer.weight.device.type == "cpu" and layer.weight.dtype is genesis.float64
    assert isinstance(layer.weight, nn.Parameter)
    with pytest.raises(TypeError, match="ReLU takes no device"):
        utils.skip_init(nn.ReLU)
    with pytest.raises(TypeError, match="expected a class of modules, got 3"):
        utils.skip_init(3)
