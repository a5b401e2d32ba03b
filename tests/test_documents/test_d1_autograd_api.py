"""What the autograd API promises, example by example."""

from __future__ import annotations

import gc
import re

import numpy as np
import pytest

import genesis
from genesis import nn


def leaf(values, **options):
    return genesis.tensor(values, requires_grad=True, **options)


# ---- tensors


@pytest.mark.parametrize("data", [[1.0, 2.0], np.array([1.0, 2.0]), genesis.tensor([1.0, 2.0]), (1.0, 2.0)])
def test_tensor_constructor(data):
    x = genesis.Tensor(data, requires_grad=True)
    assert x.tolist() == [1, 2]
    assert x.requires_grad
    assert x.is_leaf
    assert x.grad is None
    assert x.grad_fn is None


def test_tensor_constructor_of_a_number_with_dtype_and_device():
    x = genesis.Tensor(np.float64(3.0), device="cpu", dtype=genesis.float32)
    assert (x.item(), x.dtype, str(x.device)) == (3.0, genesis.float32, "cpu")


def test_properties():
    x = genesis.zeros(2, 3)
    assert x.shape == (2, 3)
    assert x.dtype is genesis.float32
    assert x.ndim == 2
    assert x.size == 6
    assert x.size() == (2, 3)
    assert x.size(0) == 2


def test_backward_example():
    x = leaf([1.0, 2.0, 3.0])
    (x**2).sum().backward()
    assert str(x.grad) == "tensor([2., 4., 6.])"


def test_backward_takes_gradient_retain_graph_create_graph_and_inputs():
    x, w = leaf([1.0, 2.0]), leaf([1.0, 1.0])
    y = x * x * w
    y.backward(gradient=genesis.tensor([1.0, 10.0]), retain_graph=True)
    assert x.grad.tolist() == [2, 40]
    x.grad = w.grad = None
    y.sum().backward(inputs=[x], create_graph=True)
    assert w.grad is None
    assert x.grad.requires_grad


def test_detach_shares_memory_and_has_no_history():
    x = leaf([1.0, 2.0])
    y = x.detach()
    assert not y.requires_grad
    with genesis.no_grad():
        y[0] = 5.0
    assert x.tolist() == [5, 2]


def test_retain_grad_example():
    x = leaf([1.0, 2.0])
    y = x * 2
    y.retain_grad()
    y.sum().backward()
    assert str(y.grad) == "tensor([1., 1.])"


def test_zero_grad_example(capsys):
    x = leaf([1.0])
    (x * 2).sum().backward()
    x.zero_grad()
    print(x.grad)
    assert capsys.readouterr().out == "None\n"


# ---- arithmetic: every mix of operands


ARITHMETIC = [
    ("+", lambda a, b: a + b, lambda a, b: (1, 1)), ("-", lambda a, b: a - b, lambda a, b: (1, -1)),
    ("*", lambda a, b: a * b, lambda a, b: (b, a)), ("/", lambda a, b: a / b, lambda a, b: (1 / b, -a / b**2)),
    ("**", lambda a, b: a**b, lambda a, b: (b * a ** (b - 1), a**b * np.log(a))),
]  # fmt: skip


@pytest.mark.parametrize("name, f, slopes", ARITHMETIC, ids=[a[0] for a in ARITHMETIC])
@pytest.mark.parametrize("kind", ["both", "left", "right", "scalar right", "scalar left", "broadcast"])
def test_arithmetic_with_constants_scalars_and_broadcasting(name, f, slopes, kind):
    a, b = np.array([1.5, 2.0, 3.0]), np.array([0.5, 1.0, 2.0])
    if kind == "broadcast":
        a = np.array([[1.5], [2.5]])
    if kind == "scalar right":
        b = 2.0
    if kind == "scalar left":
        a = 2.0
    x = a if isinstance(a, float) else genesis.tensor(a, requires_grad=kind != "right")
    y = b if isinstance(b, float) else genesis.tensor(b, requires_grad=kind != "left")
    out = f(x, y)
    np.testing.assert_allclose(out.detach().numpy(), f(a, b))
    out.sum().backward()
    for t, slope, value in zip((x, y), slopes(a, b), (a, b), strict=True):
        if isinstance(t, float) or not t.requires_grad:
            continue
        full = np.broadcast_to(slope, np.broadcast_shapes(np.shape(a), np.shape(b)))
        expected = (
            full
            if full.shape == np.shape(value)
            else full.sum(0)
            if np.ndim(value) == 1
            else full.sum(1, keepdims=True)
        )
        np.testing.assert_allclose(t.grad.numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("which", ["both", "left", "right"])
def test_matrix_product_with_constants(which):
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    x, y = genesis.tensor(a, requires_grad=which != "right"), genesis.tensor(b, requires_grad=which != "left")
    (x @ y).sum().backward()
    if which != "right":
        np.testing.assert_allclose(x.grad.numpy(), np.ones((2, 4)) @ b.T)
    if which != "left":
        np.testing.assert_allclose(y.grad.numpy(), a.T @ np.ones((2, 4)))


@pytest.mark.parametrize(
    "name, slope",
    [
        ("abs", lambda v: np.sign(v)),
        ("exp", np.exp),
        ("log", lambda v: 1 / v),
        ("sqrt", lambda v: 0.5 / np.sqrt(v)),
        ("sin", np.cos),
        ("cos", lambda v: -np.sin(v)),
        ("tanh", lambda v: 1 - np.tanh(v) ** 2),
        ("__neg__", lambda v: -np.ones_like(v)),
    ],
)
def test_functions(name, slope):
    v = np.array([0.5, 1.5, 2.5])
    x = leaf(v)
    getattr(x, name)().sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), slope(v), rtol=1e-12)


@pytest.mark.parametrize("options", [{"dim": 1, "keepdim": True}, {"axis": 1, "keepdims": True}])
@pytest.mark.parametrize("name", ["sum", "mean"])
def test_reductions_by_either_name(name, options):
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    y = getattr(x, name)(**options)
    assert y.shape == (2, 1)
    y.sum().backward()
    assert x.grad.tolist() == ([[1, 1], [1, 1]] if name == "sum" else [[0.5, 0.5], [0.5, 0.5]])


@pytest.mark.parametrize("name", ["max", "min"])
def test_ties_share_the_gradient(name):
    x = leaf([2.0, 2.0, 2.0, 2.0])
    getattr(x, name)().backward()
    assert x.grad.tolist() == [0.25] * 4


def test_shapes():
    x = leaf(np.arange(6.0).reshape(1, 2, 3))
    assert x.reshape(3, 2).shape == x.reshape((3, 2)).shape == x.view(3, 2).shape == (3, 2)
    assert x.squeeze().shape == (2, 3)
    assert x.unsqueeze(0).shape == (1, 1, 2, 3)
    assert x.transpose(-2, -1).shape == (1, 3, 2)
    assert x.transpose((2, 0, 1)).shape == (3, 1, 2)
    assert x.transpose().shape == (3, 2, 1)
    (x.transpose((2, 0, 1)) * genesis.tensor(np.arange(6.0).reshape(3, 1, 2))).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.arange(6.0).reshape(3, 1, 2).transpose(1, 2, 0))


# ---- Function


def test_exp_example():
    class Exp(genesis.Function):
        @staticmethod
        def forward(ctx, x):
            result = genesis.tensor(x.data.exp(), requires_grad=x.requires_grad)
            ctx.save_for_backward(result)
            return result

        @staticmethod
        def backward(ctx, grad_output):
            (result,) = ctx.saved_tensors
            return grad_output * result

    x = leaf([1.0, 2.0, 3.0])
    y = Exp.apply(x)
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.exp([1, 2, 3]), rtol=1e-6)
    assert repr(y.grad_fn) == "<ExpBackward>"


def test_forward_with_keyword_arguments_and_none_gradients():
    class Scale(genesis.Function):
        @staticmethod
        def forward(ctx, x, factor=2.0, *, shift=0.0):
            ctx.factor = factor
            return x * factor + shift

        @staticmethod
        def backward(ctx, g):
            return g * ctx.factor, None, None

    x = leaf([1.0])
    y = Scale.apply(x, shift=1.0, factor=3.0)
    y.backward()
    assert (y.item(), x.grad.item()) == (4.0, 3.0)


# ---- modes


def test_no_grad_and_enable_grad():
    x = leaf([1.0])
    with genesis.no_grad():
        assert not (x * 2).requires_grad
        with genesis.enable_grad():
            assert (x * 2).requires_grad
        assert not (x * 2).requires_grad

    @genesis.no_grad()
    def evaluate():
        return x * 2

    assert not evaluate().requires_grad
    assert (x * 2).requires_grad


def test_set_grad_enabled_as_call_context_and_decorator():
    x = leaf([1.0])
    genesis.set_grad_enabled(False)
    try:
        assert not (x * 2).requires_grad
    finally:
        genesis.set_grad_enabled(True)
    with genesis.set_grad_enabled(False):
        assert not (x * 2).requires_grad

    @genesis.set_grad_enabled(False)
    def evaluate():
        return x * 2

    assert (x * 2).requires_grad
    assert not evaluate().requires_grad


# ---- hooks and gradients


def test_register_hook_example(capsys):
    def print_grad(grad):
        print("gradient:", grad)
        return grad * 2

    x = leaf([1.0, 2.0])
    handle = x.register_hook(print_grad)
    (x * 3).sum().backward()
    assert capsys.readouterr().out == "gradient: tensor([3., 3.])\n"
    assert x.grad.tolist() == [6, 6]
    handle.remove()
    (x * 3).sum().backward()
    assert x.grad.tolist() == [9, 9]


def test_accumulation_example():
    x = leaf([1.0, 2.0])
    x.sum().backward()
    assert str(x.grad) == "tensor([1., 1.])"
    (x * 2).sum().backward()
    assert str(x.grad) == "tensor([3., 3.])"
    x.grad = None
    assert x.grad is None


def test_running_mean_pattern_does_not_grow():
    x = leaf([1.0])
    running = genesis.zeros(1)
    gc.collect()
    gc.disable()
    try:
        for step in range(300):
            running = 0.9 * running.detach() + 0.1 * (x * 2)
            running.sum().backward()
            if step == 100:
                before = len(gc.get_objects())
        assert len(gc.get_objects()) - before < 50
    finally:
        gc.enable()


def test_clip_grad_norm_returns_the_total():
    x, y = leaf([3.0]), leaf([4.0])
    (x * x / 2 + y * y / 2).sum().backward()
    assert nn.utils.clip_grad_norm_([x, y], max_norm=1.0).item() == pytest.approx(5.0)
    assert (x.grad**2 + y.grad**2).sqrt().item() == pytest.approx(1.0, rel=1e-5)


# ---- mixed precision, training, checkpoint


def test_enable_autocast_and_autocast():
    a, b = genesis.ones(2, 2), genesis.ones(2, 2)
    assert genesis.enable_autocast is False
    genesis.enable_autocast = True
    try:
        low = (a @ b).dtype
        assert low in (genesis.bfloat16, genesis.float16)
        with genesis.autocast(enabled=False):
            assert (a @ b).dtype is genesis.float32
    finally:
        genesis.enable_autocast = False
    with genesis.autocast():
        assert (a @ b).dtype is low
    assert (a @ b).dtype is genesis.float32


def test_training_loop_with_adam():
    genesis.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = genesis.optim.Adam(model.parameters(), lr=0.01)
    x = genesis.randn(32, 3)
    y = x.sum(1, keepdim=True)
    losses = []
    for _ in range(100):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 5


def test_weight_gradient_of_a_linear_layer_on_an_ordinary_input():
    layer, x = nn.Linear(3, 2), genesis.tensor(np.arange(12.0, dtype=np.float32).reshape(4, 3))
    layer(x).sum().backward()
    np.testing.assert_allclose(layer.weight.grad.numpy(), np.tile(x.numpy().sum(0), (2, 1)))
    assert layer.bias.grad.tolist() == [4, 4]


def test_checkpoint_example():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer1, self.layer2 = nn.Linear(3, 3), nn.Linear(3, 1)

        def forward(self, x):
            x = genesis.utils.checkpoint.checkpoint(self.layer1, x)
            return self.layer2(x.tanh())

    net, x = Net(), genesis.randn(4, 3)
    net(x).sum().backward()
    found = net.layer1.weight.grad
    net.zero_grad()
    net.layer2(net.layer1(x).tanh()).sum().backward()
    np.testing.assert_allclose(found.numpy(), net.layer1.weight.grad.numpy(), rtol=1e-6)


def test_gradcheck_example_in_float32():
    from genesis.autograd import gradcheck

    def func(x):
        return (x**2).sum()

    assert gradcheck(func, leaf([1.0, 2.0, 3.0]), eps=1e-6) is True


def test_graph_example():
    x = leaf([1.0, 2.0])
    y = x + 2
    assert repr(y.grad_fn) == "<AddBackward>"
    (first, index), *rest = y.grad_fn.next_functions
    assert (repr(first), index) == ("<AccumulateGrad>", 0)
    assert all(node is None for node, _ in rest)


def test_in_place_is_recorded_or_refused():
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    z = x * 1
    z.add_(y)
    z.sum().backward()
    assert (x.grad.tolist(), y.grad.tolist()) == ([1, 1], [1, 1])
    e = x.exp()
    e.add_(1)
    with pytest.raises(RuntimeError, match=re.escape("was modified in place by add_")):
        e.sum().backward()


def test_names_of_annotations():
    x = genesis.ones(2)
    assert (
        isinstance(x.device, genesis.Device)
        and isinstance(x.dtype, genesis.DType)
        and isinstance(x.numpy(), genesis.NDArray)
    )
    assert (
        genesis.Device is genesis.device
        and genesis.DType is genesis.dtype
        and genesis.Context is genesis.autograd.Context
    )
    assert {"Context", "DType", "Device", "NDArray"} <= set(genesis.__all__) & set(dir(genesis))


def test_nodes_are_functions():
    class Double(genesis.Function):
        @staticmethod
        def forward(ctx, x):
            assert isinstance(ctx, genesis.Function)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = genesis.ones(2, requires_grad=True)
    for y in (x * x, Double.apply(x), x[:1], x.split(1)[0], x.clone().add_(x)):
        assert isinstance(y.grad_fn, genesis.Function)
        assert all(isinstance(node, genesis.Function) for node, _ in y.grad_fn.next_functions if node is not None)
    for other in (x, Double, None, 1):
        assert not isinstance(other, genesis.Function)
    assert not isinstance((x * x).grad_fn, Double) and issubclass(Double, genesis.Function)


class Scaled(genesis.Function):
    @staticmethod
    def forward(ctx, x, y, **kwargs):
        ctx.scale = kwargs.get("scale", 1.0)
        return x * ctx.scale + 3 * y

    @staticmethod
    def backward(ctx, g):
        return g * ctx.scale, 3 * g


@pytest.mark.parametrize("keywords", [{}, {"scale": 4.0}, {"scale": 4.0, "name": "a"}, {"name": None}])
def test_plain_keywords_take_no_gradient(keywords):
    x, y = genesis.ones(2, requires_grad=True), genesis.ones(2, requires_grad=True)
    Scaled.apply(x, y, **keywords).sum().backward()
    assert x.grad.tolist() == [keywords.get("scale", 1.0)] * 2 and y.grad.tolist() == [3, 3]
    x.grad = None
    with genesis.autocast(dtype=genesis.bfloat16):
        Scaled.apply(x, y, **keywords).sum().backward()
    assert x.grad.tolist() == [keywords.get("scale", 1.0)] * 2


def test_one_gradient_for_each_tensor_among_plain_keywords():
    class Mixed(genesis.Function):
        @staticmethod
        def forward(ctx, x, **kwargs):
            return x * 2 + kwargs["y"] * 3

        @staticmethod
        def backward(ctx, g):
            return g * 2, g * 3

    for order in (("scale", "y"), ("y", "scale")):
        x, y = genesis.ones(2, requires_grad=True), genesis.ones(2, requires_grad=True)
        values = {"scale": 4.0, "y": y}
        Mixed.apply(x, **{name: values[name] for name in order}).sum().backward()
        assert x.grad.tolist() == [2, 2] and y.grad.tolist() == [3, 3]


@pytest.mark.parametrize("arguments", [(5.0,), (genesis.ones(2),), (None, 5.0)])
def test_gradients_of_other_positional_arguments_must_be_returned(arguments):
    class Two(genesis.Function):
        @staticmethod
        def forward(ctx, x, *rest):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g

    x = genesis.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match=f"Two.backward: returned 1 gradients, expected {1 + len(arguments)}"):
        Two.apply(x, *arguments).sum().backward()
    assert x.grad is None


def test_the_array_by_name():
    x = genesis.Tensor(array=[1.0, 2.0], requires_grad=True)
    assert x.tolist() == [1, 2] and x.dtype is genesis.float32 and x.requires_grad
    data = np.arange(6.0).reshape(2, 3)
    y = genesis.Tensor(array=data, device=genesis.device("cpu"), dtype=genesis.float32, order="F", ndmin=3, copy=True)
    assert (
        y.shape == (1, 2, 3)
        and y.dtype is genesis.float32
        and y.numpy().flags.f_contiguous
        and y.tolist() == [data.tolist()]
    )
    assert not np.shares_memory(genesis.Tensor(array=data).numpy(), data)
    assert genesis.Tensor(array=5).tolist() == 5 and genesis.Tensor(array=5).dtype is genesis.int64  # data, not a size
    assert genesis.Tensor(data, order="F").stride() == (1, 2)
    assert genesis.Tensor(array=genesis.ones(2, device="meta"), ndmin=2).shape == (1, 2)


@pytest.mark.parametrize("arguments, keywords, sentence", [
    ((), {"arrays": [1.0]}, "Tensor: unknown argument 'arrays'"),
    (([1.0],), {"array": [1.0]}, "Tensor: the data are given twice"),
    ((), {"order": "C"}, "Tensor: the data are given neither by position nor as array=\n  try: "),
    ((), {"array": [1.0], "copy": False}, "Tensor: the data are always copied, copy is False\n  try: "),
])  # fmt: skip
def test_array_keywords_that_are_refused(arguments, keywords, sentence):
    with pytest.raises(TypeError, match=sentence):
        genesis.Tensor(*arguments, **keywords)
