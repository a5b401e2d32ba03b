"""Pooling, resizing, normalisation and lazy layers against PyTorch's."""

from __future__ import annotations

import copy
import io

import numpy as np
import pytest

import genesis
from genesis import nn

parity = pytest.mark.parity

LAYERS = [
    *[(f"{kind}{d}d", args, more, d) for d in (1, 2, 3) for kind, args, more in (
        ("MaxPool", (3,), {"stride": 2, "padding": 1, "ceil_mode": True}),
        ("AvgPool", (2,), {"count_include_pad": False, "padding": 1}),
        ("LPPool", (2, 3), {"stride": 2}),
        ("AdaptiveAvgPool", (3,), {}),
        ("AdaptiveMaxPool", (2,), {}),
        ("InstanceNorm", (4,), {"affine": True, "track_running_stats": True}),
        ("InstanceNorm", (4,), {}),
        ("BatchNorm", (4,), {"momentum": None}),
    )],
    ("AvgPool2d", ((2, 3),), {"divisor_override": 4}, 2),
    ("AdaptiveAvgPool2d", ((None, 2),), {}, 2),
    ("Upsample", (), {"scale_factor": 2, "mode": "bilinear"}, 2),
    ("Upsample", ((4, 9),), {"mode": "bicubic", "align_corners": True}, 2),
    ("UpsamplingNearest2d", (), {"scale_factor": (2, 3)}, 2),
    ("UpsamplingBilinear2d", (7,), {}, 2),
    ("PixelShuffle", (2,), {}, 2),
    ("PixelUnshuffle", (2,), {}, 2),
    ("ChannelShuffle", (2,), {}, 2),
    ("Unfold", (2,), {"stride": 2, "padding": 1}, 2),
    ("LocalResponseNorm", (3,), {"alpha": 0.5}, 2),
    ("Dropout2d", (0.0,), {}, 2),
    ("AlphaDropout", (0.0,), {}, 2),
]  # fmt: skip


@parity
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "args", "more", "dims"), LAYERS)
@pytest.mark.parametrize("training", [True, False])
def test_a_layer_is_that_of_pytorch(name, args, more, dims, training):
    torch = pytest.importorskip("torch")
    ours, theirs = (getattr(m, name)(*args, **more) for m in (nn, torch.nn))
    assert repr(ours) == repr(theirs)
    ours.double().train(training), theirs.double().train(training)
    numbers = np.random.default_rng(0).normal(size=(2, 4, *(6, 8, 4)[:dims]))
    batched = name.startswith(("BatchNorm", "Upsam", "Channel", "Local"))
    for x in (numbers, numbers) if batched else (numbers, numbers[0]):
        a, b = genesis.tensor(x).requires_grad_(), torch.tensor(x).requires_grad_()
        y, z = ours(a), theirs(b)
        np.testing.assert_allclose(y.detach().numpy(), z.detach().numpy(), rtol=1e-6, atol=1e-7)
        (y**2).sum().backward()
        (z**2).sum().backward()
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-6, atol=1e-6)
    states = ours.state_dict(), theirs.state_dict()
    assert list(states[0]) == list(states[1])
    for key, value in states[0].items():
        np.testing.assert_allclose(value.numpy(), states[1][key].numpy(), rtol=1e-6, err_msg=key)


@parity
def test_unpooling_and_folding_layers():
    torch = pytest.importorskip("torch")
    numbers = np.random.default_rng(0).normal(size=(2, 3, 6, 6))
    found = []
    for lib in (genesis, torch):
        values, places = lib.nn.MaxPool2d(2, return_indices=True)(lib.tensor(numbers))
        up = lib.nn.MaxUnpool2d(2)
        fold = lib.nn.Fold((6, 6), 3, stride=3)
        columns = lib.nn.Unfold(3, stride=3)(lib.tensor(numbers))
        small = lib.nn.FractionalMaxPool2d(
            2, output_ratio=(0.5, 0.5), _random_samples=lib.tensor(numbers[..., 0, :2]).abs() % 1
        )
        found.append(
            (
                up(values, places).numpy(),
                fold(columns).numpy(),
                small(lib.tensor(numbers)).numpy(),
                repr(up),
                repr(fold),
            )
        )
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


LAZY = [
    ("LazyLinear", (5,), (2, 4)),
    *[(f"Lazy{kind}{d}d", args, (2, 4, *[5] * d)) for d in (1, 2, 3) for kind, args in (("Conv", (6, 2)), ("ConvTranspose", (6, 2)), ("BatchNorm", ()))],
    *[(f"LazyInstanceNorm{d}d", (1e-5, 0.1, True, True), (2, 4, *[5] * d)) for d in (1, 2, 3)],
]  # fmt: skip


@parity
@pytest.mark.filterwarnings("ignore:Lazy modules")
@pytest.mark.parametrize(("name", "args", "shape"), LAZY)
def test_lazy_layers_made_without_recording_are_trained(name, args, shape):
    layer = getattr(nn, name)(*args)
    with genesis.no_grad():
        layer(genesis.zeros(shape))
    layer(genesis.ones(shape)).sum().backward()
    assert all(p.grad.shape == p.shape for p in layer.parameters())


@pytest.mark.filterwarnings("ignore:Lazy modules")
@pytest.mark.parametrize(("name", "args", "shape"), LAZY)
def test_lazy_layers_are_those_of_pytorch(name, args, shape):
    torch = pytest.importorskip("torch")
    ours, theirs = (getattr(m, name)(*args) for m in (nn, torch.nn))
    assert repr(ours) == repr(theirs) and ours.has_uninitialized_params()
    x = np.random.default_rng(0).normal(size=shape).astype("float32")
    theirs(torch.tensor(x))
    fresh = getattr(nn, name)(*args)
    fresh.load_state_dict({k: genesis.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    assert not fresh.has_uninitialized_params()
    assert ours(genesis.tensor(x)).shape == theirs(torch.tensor(x)).shape
    assert type(ours).__name__ == type(theirs).__name__ == name[4:] and repr(ours) == repr(theirs)
    assert [tuple(p.shape) for p in ours.parameters()] == [tuple(p.shape) for p in theirs.parameters()]
    np.testing.assert_allclose(
        fresh(genesis.tensor(x)).detach().numpy(), theirs(torch.tensor(x)).detach().numpy(), atol=1e-5
    )
    assert type(fresh) is type(ours)


def test_a_lazy_model_before_its_first_input():
    model = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.ReLU(), nn.Flatten(), nn.LazyLinear(2)).double()
    with pytest.raises(RuntimeError, match="it has no shape before the first call"):
        _ = model[0].weight.shape
    other = copy.deepcopy(model)
    other.load_state_dict(model.state_dict())
    assert other[0].has_uninitialized_params()
    x = genesis.randn(2, 3, 5, 5, dtype=genesis.float64)
    assert model(x).shape == (2, 2) and model[0].weight.dtype is genesis.float64
    genesis.optim.SGD(model.parameters(), lr=0.1).step()
    other.load_state_dict(model.state_dict())
    assert genesis.equal(model.eval()(x), other.eval()(x))
    with pytest.raises(RuntimeError, match="weight"):
        model[0].load_state_dict(nn.LazyConv2d(4, 3).state_dict())
    data = io.BytesIO()
    genesis.save(model.state_dict(), data)


def test_a_lazy_layer_of_ones_own():
    class Scale(nn.LazyModuleMixin, nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.UninitializedParameter()

        def initialize_parameters(self, x):
            self.weight.materialize(x.shape[-1:])
            nn.init.ones_(self.weight)

        def forward(self, x):
            return x * self.weight

    scale = Scale()
    assert scale(genesis.ones(2, 3)).shape == (2, 3)
    assert type(scale.weight) is nn.Parameter and not scale.has_uninitialized_params()
