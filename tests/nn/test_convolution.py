"""Convolutions and borders as layers, against PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
from genesis import nn

parity = pytest.mark.parity

LAYERS = [
    ("Conv1d", (4, 6, 3), {"stride": 2, "padding": 1}),
    ("Conv1d", (4, 6, 4), {"padding": "same", "dilation": 3, "padding_mode": "circular"}),
    ("Conv2d", (4, 6, (3, 2)), {"groups": 2, "bias": False}),
    ("Conv2d", (4, 4, 3), {"padding": 2, "padding_mode": "reflect", "dilation": (2, 1)}),
    ("Conv2d", (4, 4, 3), {"padding": (1, 2), "padding_mode": "replicate", "groups": 4}),
    ("Conv2d", (4, 4, 3), {"padding": "valid"}),
    ("Conv3d", (4, 2, 2), {"padding": (1, 0, 2), "padding_mode": "circular", "stride": (1, 2, 1)}),
    ("ConvTranspose1d", (4, 6, 3), {"stride": 3, "padding": 1, "output_padding": 2, "groups": 2}),
    ("ConvTranspose2d", (4, 3, 3), {"stride": 2, "dilation": (1, 3), "output_padding": (0, 2)}),
    ("ConvTranspose3d", (4, 2, 2), {"stride": (1, 2, 1), "padding": (0, 1, 1), "bias": False}),
]


def _pair(name, args, options):
    torch = pytest.importorskip("torch")
    theirs = getattr(torch.nn, name)(*args, **options).double()
    ours = getattr(nn, name)(*args, **options).double()
    ours.load_state_dict({k: genesis.tensor(v.detach().numpy()) for k, v in theirs.state_dict().items()})
    return torch, ours, theirs


@parity
@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize(("name", "args", "options"), LAYERS)
def test_a_layer_is_that_of_pytorch(name, args, options):
    torch, ours, theirs = _pair(name, args, options)
    assert repr(ours) == repr(theirs)
    dims = int(name[-2])
    for shape in ((2, 4, *(6, 7, 5)[:dims]), (4, *(7, 6, 5)[:dims])):
        numbers = np.random.default_rng(0).normal(size=shape)
        x, y = genesis.tensor(numbers).requires_grad_(), torch.tensor(numbers, requires_grad=True)
        found, expected = ours(x), theirs(y)
        np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), atol=1e-12)
        for layer, out, leaf in ((ours, found, x), (theirs, expected, y)):
            layer.zero_grad()
            leaf.grad = None
            (out * out).sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), atol=1e-11)
        for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
            np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), atol=1e-11)


@parity
def test_first_values_are_drawn_from_the_same_range():
    torch = pytest.importorskip("torch")
    for ours, theirs in ((nn.Conv2d(8, 64, 3), torch.nn.Conv2d(8, 64, 3)), (nn.ConvTranspose2d(8, 64, 3), torch.nn.ConvTranspose2d(8, 64, 3))):  # fmt: skip
        for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
            assert p.shape == tuple(q.shape)
            assert abs(float(p.detach().abs().max()) / float(q.detach().abs().max()) - 1) < 0.1


def test_an_output_size_chooses_among_what_is_possible():
    layer = nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1)
    x = genesis.randn(1, 2, 4, 4)
    assert layer(x).shape == (1, 3, 7, 7) and layer(x, output_size=(1, 3, 8, 7)).shape == (1, 3, 8, 7)
    with pytest.raises(ValueError, match=r"output_size \[9, 7\] must be from \[7, 7\] to \[8, 8\]"):
        layer(x, output_size=(9, 7))
    with pytest.raises(ValueError, match=r"output_size must have 2 or 4 sizes, got \[8\]"):
        layer(x, output_size=[8])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: nn.Conv2d(3, 4, 3, groups=2), "in_channels 3 is not a multiple of groups 2"),
        (lambda: nn.Conv2d(4, 3, 3, groups=2), "out_channels 3 is not a multiple of groups 2"),
        (lambda: nn.Conv1d(2, 2, 3, groups=0), "groups must be positive, got 0"),
        (lambda: nn.Conv1d(2, 2, 3, padding="full"), "padding must be numbers, 'same' or 'valid', got 'full'"),
        (lambda: nn.Conv1d(2, 2, 3, padding="same", stride=2), "padding='same' needs stride 1"),
        (lambda: nn.Conv1d(2, 2, 3, padding_mode="mirror"), "padding_mode must be one of"),
        (lambda: nn.ConvTranspose1d(2, 2, 3, padding_mode="reflect"), "must be 'zeros', got 'reflect'"),
    ],
)
def test_wrong_arguments(make, words):
    with pytest.raises(ValueError, match=words.replace("(", r"\(")):
        make()


@parity
@pytest.mark.parametrize("kind", ["ConstantPad", "ZeroPad", "ReflectionPad", "ReplicationPad", "CircularPad"])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_borders_are_those_of_pytorch(kind, dims):
    torch = pytest.importorskip("torch")
    value = (1.5,) * (kind == "ConstantPad")
    for padding in (2, tuple(range(2 * dims)) if dims < 3 else (1, 2, 0, 1, 2, 2)):
        ours, theirs = (getattr(m, f"{kind}{dims}d")(padding, *value) for m in (nn, torch.nn))
        assert repr(ours) == repr(theirs)
        numbers = np.random.default_rng(0).normal(size=(2, 3, *(5, 4, 6)[:dims]))
        for x in (numbers, numbers[0]):
            np.testing.assert_array_equal(ours(genesis.tensor(x)).numpy(), theirs(torch.tensor(x)).numpy())
