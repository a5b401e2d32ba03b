"""Classes and helpers of PyTorch's inner modules, which programs derive layers from."""

from __future__ import annotations

import pytest

import genesis
from genesis import nn
from genesis.nn import functional as F
from genesis.pytorch import installed


@pytest.fixture
def torch():
    with installed() as module:
        yield module


@pytest.mark.parametrize(
    "other, larger, equal",
    [
        ("2.9", True, False),
        ((1, 8), True, False),
        ("2.13", True, False),
        ("3", False, False),
        ((2, 13, 1), False, False),
    ],
)
def test_versions_are_compared_by_their_numbers(torch, other, larger, equal):
    version = torch.__version__
    assert (version > other, version == other) == (larger, equal)
    assert (version < other) is not larger and (version >= other) is larger and (version != other)
    assert (
        version == str(version) == torch.version.__version__ and version.split(".")[0] == "2" and {version: 1}[version]
    )


def test_layers_here_are_instances_of_the_classes_that_layers_derive_from(torch):
    from torch.nn.modules.batchnorm import _BatchNorm, _NormBase
    from torch.nn.modules.conv import _ConvNd, _ConvTransposeNd
    from torch.nn.modules.loss import _Loss, _WeightedLoss

    assert isinstance(nn.BatchNorm2d(1), _BatchNorm) and isinstance(nn.SyncBatchNorm(1), _BatchNorm)
    assert issubclass(nn.BatchNorm1d, _BatchNorm) and not isinstance(nn.InstanceNorm1d(1), _BatchNorm)
    assert isinstance(nn.InstanceNorm1d(1), _NormBase) and not isinstance(nn.LayerNorm(1), _NormBase)
    assert isinstance(nn.Conv3d(1, 1, 1), _ConvNd) and isinstance(nn.ConvTranspose1d(1, 1, 1), _ConvTransposeNd)
    assert not isinstance(nn.Conv2d(1, 1, 1), _ConvTransposeNd) and not isinstance(
        nn.Linear(1, 1), (_ConvNd, _BatchNorm)
    )
    assert isinstance(nn.CrossEntropyLoss(), _WeightedLoss) and not isinstance(nn.MSELoss(), _WeightedLoss)
    assert isinstance(nn.MSELoss(), _Loss) and not isinstance(nn.Linear(1, 1), _Loss)


def test_layers_that_derive_from_them(torch):
    from torch.nn.modules.batchnorm import _BatchNorm
    from torch.nn.modules.conv import _ConvNd
    from torch.nn.modules.loss import _WeightedLoss
    from torch.nn.modules.utils import _pair

    class Centred(_ConvNd):
        def __init__(self, inputs, outputs, size):
            super().__init__(
                inputs, outputs, _pair(size), _pair(2), _pair(1), _pair(1), False, _pair(0), 1, True, "zeros"
            )

        def forward(self, input):
            return F.conv2d(input, self.weight - self.weight.mean(), self.bias, self.stride, self.padding)

    class Norm(_BatchNorm):
        def _check_input_dim(self, input):
            if input.dim() != 2:
                raise ValueError("2-D")

    class Smooth(_WeightedLoss):
        def forward(self, input, target):
            return F.cross_entropy(input, target, weight=self.weight, reduction=self.reduction)

    layer = Centred(3, 4, 3)
    assert layer(genesis.ones(1, 3, 5, 5)).shape == (1, 4, 3, 3) and isinstance(layer, _ConvNd)
    assert layer._reversed_padding_repeated_twice == [1, 1, 1, 1] and not isinstance(nn.Conv2d(1, 1, 1), Centred)
    x = genesis.tensor([[1.0, 2.0], [3.0, 6.0]])
    assert genesis.equal(Norm(2)(x), nn.BatchNorm1d(2)(x)) and not isinstance(nn.BatchNorm2d(3), Norm)
    with pytest.raises(ValueError, match="2-D"):
        Norm(2)(genesis.ones(1, 2, 3))
    weight, target = genesis.tensor([1.0, 3.0]), genesis.tensor([0, 1])
    loss = Smooth(weight=weight, reduction="sum")
    assert loss(x, target) == F.cross_entropy(x, target, weight, reduction="sum") and "weight" in loss.state_dict()
    assert Smooth(size_average=False).reduction == "sum" and Smooth(reduce=False).reduction == "none"


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_gradients_of_convolutions(torch, dims):
    import torch.nn.grad

    convolve = getattr(F, f"conv{dims}d")
    x = genesis.randn(2, 4, *[7] * dims, dtype=genesis.float64, requires_grad=True)
    w = genesis.randn(6, 2, *[3] * dims, dtype=genesis.float64, requires_grad=True)
    options = {"stride": 2, "padding": 1, "groups": 2}
    y = convolve(x, w, **options)
    g = genesis.randn(*y.shape, dtype=genesis.float64)
    gx, gw = genesis.autograd.grad(y, (x, w), g)
    assert genesis.allclose(getattr(torch.nn.grad, f"conv{dims}d_input")(x.shape, w, g, **options), gx)
    assert genesis.allclose(getattr(torch.nn.grad, f"conv{dims}d_weight")(x, w.shape, g, **options), gw)


@pytest.mark.parity
def test_helpers_give_what_those_of_pytorch_give():
    real = pytest.importorskip("torch")
    import torch.distributions.utils as theirs
    import torch.nn.init as their_init
    from torch import _utils as their_utils

    with installed() as torch:
        ours = torch.distributions.utils
        probs = [[0.0, 0.25, 0.75], [1.0, 0.0, 0.0]]
        for binary in (False, True):
            for name in ("probs_to_logits", "logits_to_probs"):
                a, b = (getattr(m, name)(lib.tensor(probs), binary) for m, lib in ((ours, torch), (theirs, real)))
                assert genesis.allclose(a, genesis.tensor(b.tolist()), atol=1e-6)
        for diagonal in (-2, -1, 0):
            count = theirs.tril_matrix_to_vec(real.ones(4, 4), diagonal).numel()
            vec = [float(n) for n in range(1, count + 1)]
            made = ours.vec_to_tril_matrix(torch.tensor([vec, vec]), diagonal)
            assert made.tolist() == theirs.vec_to_tril_matrix(real.tensor([vec, vec]), diagonal).tolist()
            assert ours.tril_matrix_to_vec(made, diagonal).tolist() == [vec, vec]
        assert [t.shape for t in ours.broadcast_all(torch.ones(2, 1), 3.0)] == [(2, 1), (2, 1)]
        assert torch.nn.init._calculate_fan_in_and_fan_out(torch.ones(4, 3, 2, 2)) == (
            their_init._calculate_fan_in_and_fan_out(real.ones(4, 3, 2, 2))
        )
        parts = [torch.ones(2, 3), torch.zeros(4)]
        flat = torch._utils._flatten_dense_tensors(parts)
        assert flat.tolist() == their_utils._flatten_dense_tensors([real.ones(2, 3), real.zeros(4)]).tolist()
        assert [t.shape for t in torch._utils._unflatten_dense_tensors(flat, parts)] == [(2, 3), (4,)]


def test_a_property_that_is_computed_once(torch):
    from torch.distributions.utils import lazy_property

    class Counted:
        calls = 0

        @lazy_property
        def value(self):
            self.calls += 1
            return self.calls

    counted = Counted()
    assert counted.value == counted.value == 1 and isinstance(Counted.value, lazy_property)


def test_small_helpers(torch):
    from torch.nn.modules.transformer import _get_activation_fn, _get_clones
    from torch.nn.modules.utils import _reverse_repeat_tuple, _triple, consume_prefix_in_state_dict_if_present

    assert (
        _triple(3) == (3, 3, 3) and _triple([1, 2, 3]) == (1, 2, 3) and _reverse_repeat_tuple((1, 2), 2) == (2, 2, 1, 1)
    )
    first, second = _get_clones(nn.Linear(2, 2), 2)
    assert genesis.equal(first.weight, second.weight) and first.weight is not second.weight
    assert _get_activation_fn("relu") is F.relu
    state = {"module.a": 1, "b": 2}
    consume_prefix_in_state_dict_if_present(state, "module.")
    assert state == {"b": 2, "a": 1}
    assert torch.nn.modules.module._addindent("a\nb", 2) == "a\n  b"
    assert torch.nn._reduction.legacy_get_string(None, None) == "mean"
    with pytest.raises(torch._C._LinAlgError):
        torch.linalg.inv(torch.zeros(2, 2))
    torch._dynamo.config.suppress_errors = True
    torch._inductor.config.triton.unique_kernel_names = torch._inductor.config.coordinate_descent_tuning = True
    assert torch._dynamo.config.suppress_errors is True and torch._dynamo.disable(len)([1]) == 1
    assert torch._dynamo.list_backends() == torch.compiler.list_backends()
    image = torch.arange(16.0).reshape(1, 1, 4, 4)
    inner = torch._C._nn
    assert torch.equal(inner.gelu(image), F.gelu(image)) and inner.upsample_nearest2d(image, (8, 2)).shape == (
        1,
        1,
        8,
        2,
    )
    smooth = F.interpolate(image, (7, 7), mode="bilinear", align_corners=True)
    assert torch.equal(inner.upsample_bilinear2d(image, (7, 7), True), smooth)
    assert inner.upsample_bilinear2d(image, None, False, [1.5, 2.0]).shape == (1, 1, 6, 8)
    with torch.cpu.amp.autocast():
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype is genesis.bfloat16
    with pytest.raises(NotImplementedError, match="nothing is downloaded"):
        torch.utils.model_zoo.load_url("https://example.org/a.pth")


def test_constant_borders_and_warnings_of_traces(torch):
    import warnings

    from torch.nn.modules.padding import _ConstantPadNd

    assert isinstance(nn.ZeroPad2d(1), _ConstantPadNd) and not isinstance(nn.ReflectionPad2d(1), _ConstantPadNd)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=torch.jit.TracerWarning)
    assert not (torch.has_cuda or torch.has_cudnn or torch.has_mps or torch.has_mkldnn)
