"""Tensors without data: shapes, dtypes, strides; default devices; summaries of modules."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import genesis
from genesis import nn
from genesis.arrays.spec import Spec, meta
from genesis.core.call.op import REGISTRY
from genesis.core.call.strides import reshaped
from genesis.core.graph.tensor import wrap
from genesis.testing.make import Maker
from genesis.testing.opcheck import _call, replace, sample_dtypes, samples_of, tensors_in


def ghost(t):
    """A meta tensor with the strides of a real one."""
    array = t._array
    strides = None if array.flags.c_contiguous else tuple(s // array.itemsize for s in array.strides)
    return wrap(dataclasses.replace(meta(tuple(array.shape), array.dtype), strides=strides))


@pytest.mark.parametrize(
    "op", [op for op in REGISTRY.values() if not op.kind.composed and not op.kind.draws], ids=lambda op: op.name
)
@pytest.mark.parametrize("layout", ["contiguous", "strided"])
def test_strides_without_data_are_those_with_data(op, layout):
    maker = Maker(sample_dtypes(op)[0], layout=layout)
    for sample in samples_of(op, maker):
        try:
            outs = _call(op, sample)
        except (RuntimeError, ValueError):  # view() of what is not contiguous
            with pytest.raises((RuntimeError, ValueError)):
                op.call(*replace(list(sample.args), ghost), **replace(dict(sample.kwargs), ghost))
            continue
        try:
            found = list(tensors_in(op.call(*replace(list(sample.args), ghost), **replace(dict(sample.kwargs), ghost))))
        except NotImplementedError:
            continue  # the shape depends on data
        for m, out in zip(found, outs, strict=True):
            steps = lambda t: [s for s, n in zip(t.stride(), t.shape, strict=True) if n > 1]  # noqa: E731
            assert 0 in out.shape or not isinstance(m._array, Spec) or steps(m) == steps(out)


def test_strides_of_views():
    x = genesis.ones(4, 6, device="meta")
    assert x.t().stride() == (1, 6) and not x.t().is_contiguous() and x.t().contiguous().is_contiguous()
    assert x[::2, 1:5].stride() == (12, 1) and x.expand(3, 4, 6).stride() == (0, 6, 1)
    assert x.reshape(2, 2, 6).stride() == (12, 6, 1) and (x.t() + 1).stride() == (1, 6)
    with pytest.raises(RuntimeError, match="needs a copy of this non-contiguous tensor"):
        x.t().view(24)


def test_strides_after_reshape_are_numpys():
    rng = np.random.default_rng(0)
    for _ in range(300):
        shape = tuple(rng.choice([1, 2, 3, 4], rng.integers(1, 4)))
        array = np.zeros([2 * n for n in shape])[
            tuple(
                slice(None, None, int(s)) if s else slice(0, n)
                for n, s in zip(shape, rng.choice([0, 2, -2], len(shape)), strict=True)
            )
        ]
        array = array.transpose(rng.permutation(array.ndim))
        count = array.size
        new = [n for n in (2, 3, 4, 6, 1) if count % n == 0]
        first = int(rng.choice(new))
        target = (first, count // first)
        strides = tuple(s // 8 for s in array.strides)
        got = reshaped(array.shape, strides, target)
        out = array.reshape(target)
        assert (got is not None) == np.may_share_memory(out, array)
        if got is not None:
            assert [s for s, n in zip(got, target, strict=True) if n > 1] == [
                s // 8 for s, n in zip(out.strides, target, strict=True) if n > 1
            ]


def test_default_devices():
    with genesis.device("meta"):
        assert (
            genesis.ones(2).is_meta
            and genesis.rand(2).is_meta
            and genesis.tensor([1.0]).is_meta
            and nn.Linear(2, 2).weight.is_meta
        )
        with genesis.device("cpu"):
            assert not genesis.ones(2).is_meta
        assert genesis.ones(2, device="cpu").tolist() == [1, 1]
    assert not genesis.ones(2).is_meta
    genesis.set_default_device("meta")
    try:
        assert genesis.ones(2).is_meta and genesis.get_default_device() == genesis.device("meta")
    finally:
        genesis.set_default_device(None)
    with pytest.raises(RuntimeError):
        genesis.set_default_device("cuda")


# ---- summaries


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        return x + self.down(self.up(self.norm(x)).relu())


def test_a_model_of_seventy_billion_parameters():
    with genesis.device("meta"):
        model = nn.Sequential(nn.Embedding(32_000, 8192), *[Block(8192) for _ in range(130)], nn.Linear(8192, 32_000))
    found = nn.summary(model, genesis.zeros(1, 2048, dtype=genesis.int64, device="meta"))
    one = 8 * 8192**2 + (2 + 4 + 1) * 8192
    assert (
        found.parameters == found.trainable == 130 * one + 2 * 32_000 * 8192 + 32_000
        and found.parameter_bytes == 4 * found.parameters
    )
    assert "1 to 130, each" in str(found) and "Block x 130" in str(found) and "[1, 2048, 32000]" in str(found)


def test_summaries_leave_the_module_alone():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
    model[0].weight.requires_grad_(False)
    before, rng = {k: v.tolist() for k, v in model.state_dict().items()}, genesis.get_rng_state().tolist()
    found = nn.summary(model, genesis.ones(5, 3))
    assert {k: v.tolist() for k, v in model.state_dict().items()} == before and genesis.get_rng_state().tolist() == rng
    assert found.parameters == 24 and found.trainable == 12 and "12 of them trained" in str(found)
    assert found.activation_bytes == 3 * 5 * 4 * 4
    shared = nn.Linear(2, 2)
    assert "(above)" in str(nn.summary(nn.Sequential(shared, nn.ReLU(), shared), input_size=(1, 2)))
    assert nn.summary(nn.Sequential(shared, shared), input_size=(6, 2)).activation_bytes == 2 * 6 * 2 * 4
    assert nn.summary(nn.Bilinear(2, 3, 4), input_size=[(5, 2), (5, 3)]).root.shapes == [(5, 4)]


def test_summaries_of_what_cannot_be_summarised():
    with pytest.raises(TypeError, match="expected a module, got int"):
        nn.summary(3, input_size=(1,))
    with pytest.raises(TypeError, match="nothing to call the module with"):
        nn.summary(nn.ReLU())

    class Looks(nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    with pytest.raises(RuntimeError, match="a meta tensor has no data"):
        nn.summary(Looks(), input_size=(2,))


def test_the_gradient_of_a_meta_scalar_is_meta():
    x = genesis.empty((), device="meta", requires_grad=True)
    x.backward()
    assert x.grad.device.type == "meta" and x.grad.shape == ()
