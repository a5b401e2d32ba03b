"""Convolutions as products that are never in memory: values and gradients of the CPU's."""

from __future__ import annotations

import pytest
from kernels_of import WAYS, emulated, machine_code, needs_triton, same, started

import genesis
from genesis.cuda.launch.kernel import interpreted
from genesis.nn import functional as F


@pytest.fixture(params=WAYS)
def gpu(request):
    with emulated(request.param) as driver:
        yield driver


def graded(function):
    def both(*tensors):
        tensors = [t.detach().requires_grad_() for t in tensors]
        out = function(*tensors)
        out.float().sin().sum().backward()
        return out, *[t.grad for t in tensors]

    return both


CASES = {  # shapes of the input, the weight and the bias, and how
    "one dimension": (F.conv1d, (2, 3, 11), (4, 3, 3), (4,), {"padding": 1}),
    "stride": (F.conv1d, (2, 3, 12), (5, 3, 4), None, {"stride": 3}),
    "dilation": (F.conv1d, (1, 2, 17), (3, 2, 3), (3,), {"dilation": 4, "padding": 2}),
    "pictures": (F.conv2d, (2, 3, 9, 8), (5, 3, 3, 3), (5,), {"padding": 1, "stride": 2}),
    "one by one": (F.conv2d, (3, 40, 3, 3), (35, 40, 1, 1), None, {}),
    "all different": (F.conv2d, (2, 4, 9, 12), (6, 4, 3, 2), (6,), {"padding": (2, 0), "stride": (1, 3), "dilation": (2, 1)}),
    "groups": (F.conv2d, (2, 6, 5, 5), (4, 3, 3, 3), (4,), {"groups": 2}),
    "a group for each channel": (F.conv2d, (2, 5, 6, 6), (5, 1, 3, 3), None, {"groups": 5, "padding": 1}),
    "volumes": (F.conv3d, (1, 2, 5, 6, 4), (3, 2, 2, 3, 2), (3,), {"padding": (0, 1, 1)}),
    "transposed": (F.conv_transpose2d, (2, 3, 4, 5), (3, 4, 3, 3), (4,), {"stride": 2, "padding": 1, "output_padding": 1}),
    "transposed, groups": (F.conv_transpose1d, (2, 4, 7), (4, 3, 4), None, {"stride": 3, "groups": 2, "dilation": 2}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name, gpu):
    function, x, w, b, options = CASES[name]
    tensors = [genesis.randn(*shape) for shape in (x, w, b) if shape is not None]
    same(graded(lambda *t: function(*t, **options)), *tensors, tolerance=3e-5)


@pytest.mark.parametrize("dtype", [genesis.float16, genesis.bfloat16])
def test_16_bits(dtype, gpu):
    if interpreted() and dtype is genesis.bfloat16:
        pytest.skip("the interpreter takes the bits of bfloat16 for integers")
    x, w = genesis.randn(2, 3, 6, 6).to(dtype), (genesis.randn(4, 3, 3, 3) * 0.3).to(dtype)
    same(graded(lambda x, w: F.conv2d(x, w, padding=1)), x, w, tolerance=3e-2)


def test_gradients_of_16_bits_are_products_of_16_bits():
    """On tensor cores, that is, and without copies of the operands in float32."""

    def function():
        x, w = (genesis.ones(4, 4, device="cuda", dtype=genesis.bfloat16, requires_grad=True) for _ in range(2))
        y = F.conv1d(F.linear(x @ w, w)[None], w[:, :, None])
        y.backward(y.detach())
        assert x.grad.dtype is w.grad.dtype is genesis.bfloat16

    made = [kernel for kernel, _ in started(function) if type(kernel).__name__ in ("Product", "Windows")]
    assert len(made) >= 5 and {kernel.dtype.name for kernel in made} == {"bfloat16"}


def test_layouts(gpu):
    """Channels last stay so; views are read where they lie."""
    x, w = genesis.randn(2, 5, 5, 3), genesis.randn(4, 3, 3, 3)
    same(graded(lambda x, w: F.conv2d(x.permute(0, 3, 1, 2), w)), x, w, tolerance=3e-5)
    y = F.conv2d(x.to("cuda").permute(0, 3, 1, 2), w.to("cuda"))
    assert y.is_contiguous(memory_format=genesis.channels_last)
    same(lambda x, w: F.conv2d(x.permute(0, 3, 1, 2)[:, :, ::2, 1:], w[:, :, :2, 1:]), x, w, tolerance=3e-5)
    same(lambda x, w: F.conv2d(x.permute(0, 3, 1, 2)[:0], w), x, w)


def test_a_gradient_of_a_weight_is_the_same_each_time(gpu):
    """Many examples are divided among programs."""
    x, g = genesis.randn(40, 2, 30), genesis.randn(40, 3, 28)
    weights = genesis.ops.spatial.convolution.convolution_weight
    call = lambda x, g: weights(x, g, (3,), (1,), (0,), (1,), 1)  # noqa: E731
    same(call, x, g, tolerance=2e-4)
    first, again = (call(x.to("cuda"), g.to("cuda")).tolist() for _ in range(2))
    assert first == again


@needs_triton
@pytest.mark.slow
@pytest.mark.parametrize("dtype", [genesis.float16, genesis.bfloat16, genesis.float32])
def test_machine_code(dtype):
    def function():
        x = genesis.ones(2, 64, 8, 8, dtype=dtype, device="cuda", requires_grad=True)
        w = genesis.ones(64, 64, 3, 3, dtype=dtype, device="cuda", requires_grad=True)
        y = F.conv2d(x, w, padding=1)
        y.backward(y.detach())

    made = [(kernel, aligned) for kernel, aligned in started(function) if type(kernel).__name__ == "Windows"]
    assert sorted(kernel.kind for kernel, _ in made) == ["back", "forward", "weight"]
    for kernel, aligned in made:
        text = machine_code(kernel, aligned)
        assert ("HGMMA" in text or "HMMA" in text) == (dtype is not genesis.float32)
