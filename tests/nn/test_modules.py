"""Modules: names, state, modes, looks; and parity of layers with PyTorch."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import genesis
from genesis import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.norm = nn.BatchNorm1d(4)
        self.scale = nn.Parameter(genesis.ones(1))
        self.register_buffer("cache", genesis.zeros(1), persistent=False)

    def forward(self, x):
        return self.norm(self.first(x)) * self.scale


def test_names_and_state():
    net = Net()
    assert [n for n, _ in net.named_parameters()] == ["scale", "first.weight", "first.bias", "norm.weight", "norm.bias"]
    assert list(net.state_dict()) == [
        "scale",
        "first.weight",
        "first.bias",
        "norm.weight",
        "norm.bias",
        "norm.running_mean",
        "norm.running_var",
        "norm.num_batches_tracked",
    ]
    assert [n for n, _ in net.named_buffers()] == [
        "cache",
        "norm.running_mean",
        "norm.running_var",
        "norm.num_batches_tracked",
    ]
    assert net.get_parameter("first.weight") is net.first.weight and net.get_submodule("norm") is net.norm
    assert net.state_dict()["scale"].data_ptr() == net.scale.data_ptr()
    other = Net()
    assert repr(other.load_state_dict(net.state_dict())) == "<All keys matched successfully>"
    assert genesis.equal(other.first.weight, net.first.weight)


def test_shared_parameters_count_once():
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    net[1].weight = net[0].weight
    assert len(list(net.parameters())) == 3 and len(net.state_dict()) == 4


def test_wrong_state_says_all_and_changes_nothing():
    net = Net()
    before = {k: v.clone() for k, v in net.state_dict().items()}
    state = net.state_dict()
    del state["norm.bias"]
    state["extra"] = genesis.ones(1)
    state["first.weight"] = genesis.ones(2, 2)
    state["scale"] = genesis.zeros(1)
    with pytest.raises(RuntimeError) as error:
        net.load_state_dict(state)
    assert str(error.value) == (
        "load_state_dict: the state does not fit Net\n  size mismatch for first.weight: shape [2, 2] in the state, "
        "[4, 3] in the module\n"
        "  Missing key(s) in state_dict: norm.bias\n  Unexpected key(s) in state_dict: extra\n  try: strict=False "
        "loads what is there under the right names"
    )
    assert all(genesis.equal(before[k], v) for k, v in net.state_dict().items())
    del state["first.weight"]
    assert net.load_state_dict(state, strict=False) == (["first.weight", "norm.bias"], ["extra"])


def test_modes_conversion_apply_hooks():
    net = Net()
    assert net.eval() is net and not net.norm.training and net.train().norm.training
    seen = []
    net.apply(lambda m: seen.append(type(m).__name__))
    assert seen == ["Linear", "BatchNorm1d", "Net"]
    p = net.scale
    net.double()
    assert net.scale is p and p.dtype is genesis.float64 and net.norm.num_batches_tracked.dtype is genesis.int64
    net.float()
    with (
        net.register_forward_pre_hook(lambda m, args: (args[0] * 0,)),
        net.register_forward_hook(lambda m, args, out: out + 7),
    ):
        assert net.eval()(genesis.ones(1, 3)).shape == (1, 4)
    net.requires_grad_(False)
    assert not any(p.requires_grad for p in net.parameters())
    assert nn.Linear(2, 2, device="meta").weight.is_meta


def test_attributes():
    net = Net()
    with pytest.raises(TypeError, match="'scale' must be a Parameter or None, got Tensor"):
        net.scale = genesis.ones(1)
    with pytest.raises(AttributeError, match="'Net' has no attribute 'nothing'"):
        _ = net.nothing
    del net.scale
    assert "scale" not in dict(net.named_parameters())

    class Early(nn.Module):
        def __init__(self):
            self.p = nn.Parameter(genesis.ones(1))

    with pytest.raises(AttributeError, match="before Module.__init__"):
        Early()
    with pytest.raises(NotImplementedError, match="Module defines no forward"):
        nn.Module()(1)


def test_repr_copy_pickle():
    net = nn.Sequential(nn.Linear(2, 3, bias=False), nn.LeakyReLU(0.2), nn.Dropout(0.1))
    assert (
        repr(net) == "Sequential(\n  (0): Linear(in_features=2, out_features=3, bias=False)\n  (1): "
        "LeakyReLU(negative_slope=0.2)\n  (2): Dropout(p=0.1, inplace=False)\n)"
    )
    twin = copy.deepcopy(net)
    assert (
        isinstance(twin[0].weight, nn.Parameter)
        and twin[0].weight is not net[0].weight
        and genesis.equal(twin[0].weight, net[0].weight)
    )
    assert genesis.equal(pickle.loads(pickle.dumps(net[0].weight)), net[0].weight)


def test_containers():
    layers = nn.ModuleList([nn.Linear(1, 1)])
    layers.append(nn.Linear(2, 2)).insert(0, nn.ReLU())
    assert (
        len(layers) == 3
        and isinstance(layers[0], nn.ReLU)
        and isinstance(layers[-1], nn.Linear)
        and len(layers[1:]) == 2
    )
    with pytest.raises(IndexError, match="index 5 is out of range for 3 modules"):
        layers[5]
    table = nn.ModuleDict({"a": nn.ReLU()})
    table["b"] = nn.Tanh()
    assert "b" in table and list(table.keys()) == ["a", "b"]
    values = nn.ParameterList([genesis.ones(2)])
    values.append(nn.Parameter(genesis.zeros(1)))
    assert len(list(values.parameters())) == 2


@pytest.mark.parity
@pytest.mark.parametrize(
    ("name", "args", "shape"),
    [
        ("Linear", (5, 3), (4, 5)),
        ("LayerNorm", (5,), (4, 5)),
        ("RMSNorm", (5, 1e-6), (4, 5)),
        ("GroupNorm", (2, 4), (3, 4, 5)),
        ("BatchNorm1d", (5,), (4, 5)),
        ("BatchNorm2d", (3,), (2, 3, 4, 4)),
        ("PReLU", (5,), (4, 5)),
        ("Flatten", (), (2, 3, 4)),
        ("Softmax", (1,), (4, 5)),
        ("GELU", ("tanh",), (4, 5)),
        ("SiLU", (), (4, 5)),
        ("Mish", (), (4, 5)),
        ("ELU", (0.5,), (4, 5)),
        ("Hardswish", (), (4, 5)),
        ("Softplus", (2.0,), (4, 5)),
        ("GLU", (), (4, 6)),
    ],
)
def test_layers_against_pytorch(name, args, shape):
    torch = pytest.importorskip("torch", reason="PyTorch is the reference here")
    mine, theirs = getattr(nn, name)(*args), getattr(torch.nn, name)(*args)
    assert list(mine.state_dict()) == list(theirs.state_dict())
    theirs.load_state_dict({k: torch.from_numpy(np.array(v.numpy())) for k, v in mine.state_dict().items()})
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    a, b = genesis.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    for mode in (True, False):
        out_a, out_b = mine.train(mode)(a), theirs.train(mode)(b)
        np.testing.assert_allclose(out_a.detach().numpy(), out_b.detach().numpy(), rtol=1e-5, atol=1e-6)
        (out_a**2).sum().backward()
        (out_b**2).sum().backward()
    np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-4, atol=1e-5)
    for p, q in zip(mine.parameters(), theirs.parameters(), strict=True):
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-4, atol=1e-4)
    for p, q in zip(mine.buffers(), theirs.buffers(), strict=True):
        np.testing.assert_allclose(p.numpy(), q.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parity
def test_multihead_attention_against_pytorch():
    torch = pytest.importorskip("torch", reason="PyTorch is the reference here")
    mine, theirs = nn.MultiheadAttention(8, 2, batch_first=True), torch.nn.MultiheadAttention(8, 2, batch_first=True)
    theirs.load_state_dict({k: torch.from_numpy(np.array(v.numpy())) for k, v in mine.state_dict().items()})
    x = np.random.default_rng(0).normal(size=(3, 5, 8)).astype(np.float32)
    mask = np.triu(np.ones((5, 5), bool), 1)
    out, weights = mine(*[genesis.tensor(x)] * 3, attn_mask=genesis.tensor(mask))
    expected, expected_weights = theirs(*[torch.tensor(x)] * 3, attn_mask=torch.tensor(mask))
    np.testing.assert_allclose(out.detach().numpy(), expected.detach().numpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(weights.detach().numpy(), expected_weights.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_init_distributions():
    w = genesis.empty(400, 300)
    nn.init.kaiming_uniform_(w, a=5**0.5)
    assert float(w.abs().max()) <= 300**-0.5 and abs(float(w.std()) - (1 / (3 * 300)) ** 0.5) < 1e-3
    nn.init.xavier_normal_(w)
    assert abs(float(w.std()) - (2 / 700) ** 0.5) < 1e-3
    nn.init.orthogonal_(w)
    assert genesis.allclose(w.t() @ w, genesis.eye(300), atol=1e-4)
    nn.init.trunc_normal_(w, 0, 1, -0.5, 0.5)
    assert float(w.abs().max()) <= 0.5


def test_embedding_padding_gets_no_gradient():
    layer = nn.Embedding(4, 2, padding_idx=1)
    assert layer.weight[1].tolist() == [0, 0]
    layer(genesis.tensor([0, 1, 1, 3])).sum().backward()
    assert layer.weight.grad.tolist() == [[1, 1], [0, 0], [0, 0], [1, 1]]


def test_clip_grad():
    p = genesis.ones(4, requires_grad=True)
    (p * 3).sum().backward()
    assert float(nn.utils.clip_grad_norm_([p], 1.0)) == 6.0 and p.grad.tolist() == pytest.approx([0.5] * 4)
    nn.utils.clip_grad_value_([p], 0.1)
    assert p.grad.tolist() == pytest.approx([0.1] * 4)


def test_batch_norm_without_statistics_takes_those_of_the_batch_in_evaluation():
    x = genesis.randn(5, 3)
    layer = nn.BatchNorm1d(3, affine=False, track_running_stats=False)
    want = (x - x.mean(0)) / (x.var(0, unbiased=False) + 1e-5).sqrt()
    for module in (layer, layer.eval()):
        assert genesis.allclose(module(x), want, rtol=1e-5, atol=1e-6)
        with pytest.raises(ValueError, match="more than one value per channel"):
            module(x[:1])


@pytest.mark.parametrize("layer", [nn.TransformerEncoderLayer, nn.TransformerDecoderLayer])
def test_wrong_options_of_a_layer_name_the_layer_and_not_a_part_of_it(layer):
    for options, words in (
        ({"d_model": "8", "nhead": 2}, "d_model must be an integer"),
        ({"d_model": 8, "nhead": 2, "dim_feedforward": "x"}, "dim_feedforward must be an integer"),
        ({"d_model": 8}, "these arguments do not fit"),
    ):
        with pytest.raises(TypeError, match=f"{layer.__name__}: {words}"):
            layer(**options)


def test_a_dictionary_of_modules_takes_those_of_another():
    first = nn.ModuleDict({"a": nn.ReLU()})
    first.update(nn.ModuleDict({"b": nn.Tanh()}))
    first.update([("c", nn.Identity())])
    assert [(name, type(module).__name__) for name, module in first.items()] == [
        ("a", "ReLU"),
        ("b", "Tanh"),
        ("c", "Identity"),
    ]


def test_an_operation_as_an_attribute_of_a_class_is_no_method():
    class Layer(nn.Module):
        activation = genesis.tanh
        multiply = staticmethod(genesis.matmul)

        def forward(self, x):
            return self.activation(self.multiply(x, x))

    class Other(Layer):
        activation = genesis.nn.functional.gelu

    x = genesis.eye(2)
    assert genesis.equal(Layer()(x), x.tanh()) and genesis.equal(Other()(x), genesis.nn.functional.gelu(x))
    assert Layer.activation is genesis.tanh
    space = {"nn": nn}  # of a program without a name, whose functions are of no module
    exec("class Unnamed(nn.Module):\n    def forward(self, x): return self, x", space)
    assert space["Unnamed"]()(x)[1] is x


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("padding_mode", ["zeros", "reflect"])
def test_convolutions_take_a_weight_of_their_subclasses(dims, padding_mode):
    base = getattr(nn, f"Conv{dims}d")

    class Standardized(base):
        def forward(self, x):
            return self._conv_forward(x, self.weight - self.weight.mean(), self.bias)

    layer = Standardized(2, 3, 3, padding=1, padding_mode=padding_mode)
    plain = base(2, 3, 3, padding=1, padding_mode=padding_mode)
    plain.load_state_dict({"weight": layer.weight.detach() - layer.weight.detach().mean(), "bias": layer.bias.detach()})
    x = genesis.randn(2, 2, *[5] * dims)
    genesis.testing.assert_close(layer(x).detach(), plain(x).detach())
