"""Kernels of convolutions, pooling and batch norm, beside the ops call by call."""

import numpy as np
import pytest

import genesis
import genesis.nn.functional as F
from genesis import nn
from genesis.kernels.llvm import loops
from tests.jit.lowering.native_runs import check, ops_left_to_the_host, traced

pytestmark = pytest.mark.skipif(not loops.available(), reason="no llvmlite")


def close(x, y, why):
    scale = max(np.abs(y).max(initial=0), 1e-3)
    np.testing.assert_allclose(x, y, rtol=0, atol=1e-5 * scale, err_msg=why)


def random(*shape):
    return genesis.tensor(np.random.default_rng(sum(shape)).standard_normal(shape).astype("f"))


CONVOLUTIONS = [
    ((2, 3, 16, 16), (5, 3, 3, 3), {"padding": 1}),
    ((9, 4, 13, 18), (9, 4, 3, 5), {"padding": (0, 2)}),
    ((2, 4, 15, 16), (8, 2, 3, 3), {"padding": 1, "groups": 2}),
    ((3, 6, 9, 9), (6, 1, 3, 3), {"padding": 1, "groups": 6}),
    ((2, 3, 17, 20), (17, 3, 3, 3), {"stride": 2, "padding": 1}),
    ((2, 3, 17, 19), (4, 3, 5, 2), {"stride": (3, 2), "dilation": (1, 2), "padding": 2}),
    ((2, 2, 32), (3, 2, 5), {"stride": 2, "padding": 2}),
    ((2, 2, 5, 6, 16), (3, 2, 2, 3, 3), {"padding": 1}),
    ((3, 2, 8, 8), (12, 2, 3, 3), {"padding": 1}),
    ((5, 16, 9, 9), (20, 16, 3, 3), {"padding": 1}),
    ((3, 17, 50), (5, 17, 5), {"padding": 2, "stride": 3}),
    ((2, 8, 4, 6), (4, 8, 1, 1), {}),
]


@pytest.mark.parametrize(("shape", "weight", "options"), CONVOLUTIONS)
@pytest.mark.parametrize("biased", [False, True])
def test_convolutions(shape, weight, options, biased):
    def run(x, w, b):
        y = getattr(F, f"conv{len(shape) - 2}d")(x, w, b if biased else None, **options)
        return y, *genesis.autograd.grad((y * y).sum(), (x, w))

    x, w, b = random(*shape).requires_grad_(), random(*weight).requires_grad_(), random(weight[0])
    phases = check(traced(run, x, w, b), [x, w, b], close)
    # the host's: places that no element reaches, and borders of the gradient for the weight
    assert ("convolution" in ops_left_to_the_host(phases)) == ("dilation" in options)
    assert shape[-1] % 16 or weight[-1] == 1 or not ops_left_to_the_host(phases)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(
    "options", [{}, {"stride": 2, "padding": 1, "output_padding": 1}, {"padding": 2, "dilation": 2}]
)
def test_transposed_convolutions(groups, options):
    def run(x, w):
        y = F.conv_transpose2d(x, w, None, groups=groups, **options)
        return y, *genesis.autograd.grad((y * y).sum(), (x, w))

    x, w = random(3, 4, 7, 16).requires_grad_(), random(4, 6, 3, 3).requires_grad_()
    check(traced(run, x, w), [x, w], close)


def test_views_of_inputs_and_weights():
    def run(x, w):
        y = F.conv2d(x[1:], w.transpose(2, 3), padding=1)
        return F.conv2d(y.transpose(2, 3), w)

    x, w = random(4, 3, 16, 16), random(3, 3, 3, 3)
    assert not ops_left_to_the_host(check(traced(run, x, w), [x, w], close))


@pytest.mark.parametrize("shape", [(3, 5, 4, 4), (2, 33, 7, 9), (1, 2, 16), (4, 3, 2, 3, 5), (7, 5), (3, 33, 1)])
@pytest.mark.parametrize("plain", [False, True])
def test_batch_norm(shape, plain):
    def run(x, w, b, mean, variance):
        given = (None, None) if plain else (w, b)
        y = F.batch_norm(x, mean, variance, *given, training=True)
        leaves = (x,) if plain else (x, w, b)
        return y, mean + 0, variance + 0, *genesis.autograd.grad((y * y * y).sum(), leaves)

    x, w, b = (random(*s).requires_grad_() for s in (shape, shape[1:2], shape[1:2]))
    args = [x, w, b, genesis.zeros(shape[1]), genesis.ones(shape[1])]
    graph = traced(run, *args)
    assert any("standardized_channels" in call.op for call in graph.program.calls)
    assert not ops_left_to_the_host(check(graph, args, close))


@pytest.mark.parametrize(
    ("shape", "groups"), [((3, 6, 4, 4), 2), ((2, 33, 7, 9), 11), ((1, 2, 16), 1), ((4, 4, 2, 3, 5), 4)]
)
@pytest.mark.parametrize("plain", [False, True])
def test_group_norm(shape, groups, plain):
    def run(x, w, b):
        y = F.group_norm(x, groups, *(() if plain else (w, b)))
        return y, *genesis.autograd.grad((y * y * y).sum(), (x,) if plain else (x, w, b))

    args = [random(*s).requires_grad_() for s in (shape, shape[1:2], shape[1:2])]
    graph = traced(run, *args)
    assert any("fused.group_norm" in call.op for call in graph.program.calls)
    assert not ops_left_to_the_host(check(graph, args, close))


def test_group_norm_of_images_that_are_no_vector():
    def run(x, w, b):
        y = F.group_norm(x, 2, w, b)
        return y, *genesis.autograd.grad((y * y * y).sum(), (x, w, b))

    args = [random(*s).requires_grad_() for s in ((3, 6, 3), (6,), (6,))]
    check(traced(run, *args), args, close)


@pytest.mark.parametrize("shape", [(2, 3, 8, 12), (1, 1, 2, 2), (3, 4, 6, 34)])
def test_the_largest_of_pairs(shape):
    def run(x):
        y = F.max_pool2d(x, 2)
        return y, *genesis.autograd.grad((y * y).sum(), (x,))

    x = random(*shape).requires_grad_()
    graph = traced(run, x)
    if any("fused.largest" in call.op for call in graph.program.calls):
        assert not ops_left_to_the_host(check(graph, [x], close))


def test_the_largest_of_pairs_with_nan_and_equals():
    values = np.random.default_rng(0).integers(0, 3, (2, 4, 8, 8)).astype("f")
    values[0, 0, :2, :2] = np.nan
    values[1, 1, 3, 5] = np.nan
    values[1, 2, 2:4, 2:4] = -np.inf

    def run(x):
        y = F.max_pool2d(x, 2)
        return y, *genesis.autograd.grad(y.sum(), (x,))

    x = genesis.tensor(values, requires_grad=True)
    same = lambda a, b, why: np.testing.assert_array_equal(a, b, err_msg=why)  # noqa: E731
    check(traced(run, x), [x], same)


OF_DOUBLES = {
    "convolution of signals": (lambda: nn.Conv1d(16, 24, 3, padding=1), (4, 16, 40)),
    "convolution": (lambda: nn.Conv2d(16, 24, 3, padding=1), (4, 16, 12, 12)),
    "of elements": (lambda: nn.Conv2d(32, 16, 1), (2, 32, 8, 8)),
    "in groups": (lambda: nn.Conv2d(16, 24, 3, 2, 1, groups=2), (4, 16, 12, 12)),
    "of volumes": (lambda: nn.Conv3d(4, 8, 3, padding=1), (2, 4, 6, 6, 6)),
    "transposed": (lambda: nn.ConvTranspose2d(16, 8, 4, 2, 1), (2, 16, 8, 8)),
    "batch norm": (lambda: nn.BatchNorm2d(16), (4, 16, 8, 8)),
    "group norm": (lambda: nn.GroupNorm(4, 16), (4, 16, 8, 8)),
    "pooling": (lambda: nn.Sequential(nn.Conv2d(4, 4, 1), nn.MaxPool2d(2), nn.AvgPool2d(3, 2, 1)), (2, 4, 12, 12)),
    "interpolation": (lambda: nn.Sequential(nn.Conv2d(4, 4, 1), nn.Upsample(scale_factor=2)), (2, 4, 9, 9)),
}


@pytest.mark.parametrize("name", OF_DOUBLES)
def test_doubles_keep_their_digits(name):
    genesis.manual_seed(0)
    make, shape = OF_DOUBLES[name]
    module = make().double()
    x = genesis.randn(*shape, dtype=genesis.float64).requires_grad_()
    seen, compiled = [], genesis.compile(module)
    compiled(x)
    for function in (module, compiled):
        y = function(x)
        gradients = genesis.autograd.grad((y * y.detach().cos()).sum(), [x, *module.parameters()])
        seen.append([y.detach(), *gradients])
    for a, b in zip(*seen, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12, atol=1e-12 * float(b.abs().max()))
