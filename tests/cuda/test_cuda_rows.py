"""Kernels of rows and of columns: norms, cross entropy, and the sums that gradients of biases are."""

from __future__ import annotations

import re

import numpy as np
import pytest
from kernels_of import WAYS, emulated, machine_code, needs_triton, same, started

import genesis
from genesis import nn
from genesis.core.call.fused import FUSED
from genesis.core.call.halves import F32
from genesis.core.graph.tensor import wrap
from genesis.cuda.dlpack import taken
from genesis.cuda.kernels.loss_gradients import WITH_GRADIENT
from genesis.cuda.kernels.losses import LONG, beside_of
from genesis.cuda.kernels.padded import gaps
from genesis.cuda.launch.kernel import Launched, interpreted
from genesis.nn import functional as F


@pytest.fixture(params=WAYS)
def gpu(request):
    with emulated(request.param) as driver:
        yield driver


def graded(function):
    """A function, and the gradients of its tensors."""

    def both(*tensors):
        tensors = [t.detach().requires_grad_(t.is_floating_point()) for t in tensors]
        out = function(*tensors)
        out.float().sin().sum().backward()
        return out, *[t.grad for t in tensors if t.requires_grad]

    return both


NORMS = {
    "layer norm": lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b),
    "without a bias": lambda x, w, b: F.layer_norm(x, x.shape[-1:], w) + b,
    "of nothing": lambda x, w, b: F.layer_norm(x, x.shape[-1:]) * w + b,
    "RMS norm": lambda x, w, b: F.rms_norm(x, x.shape[-1:], w) + b,
    "another epsilon": lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b, 0.5),
    "of another layout": lambda x, w, b: F.layer_norm(x.mT.contiguous().mT, x.shape[-1:], w, b),
}


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("shape", [(4, 6), (2, 3, 33), (1, 1), (130, 5)], ids=str)
def test_norms(name, shape, gpu):
    x, w, b = genesis.randn(*shape) * 2 + 1, genesis.randn(shape[-1]), genesis.randn(shape[-1])
    if name == "of another layout" and len(shape) < 2:
        return
    same(graded(NORMS[name]), x, w, b, tolerance=2e-5)


@pytest.mark.parametrize("name", ["layer norm", "RMS norm"])
@pytest.mark.parametrize("columns", [4096, 5001])
def test_norms_of_wide_rows_of_16_bits(name, columns, gpu):
    """... which stay narrow while a row is joined."""
    x, w, b = [genesis.randn(*shape).to(genesis.float16) for shape in ((3, columns), (columns,), (columns,))]
    same(graded(NORMS[name]), x, w, b, tolerance=8e-3)


def test_a_norm_is_one_launch_and_its_gradients_three(gpu):
    x = genesis.randn(8, 16, device="cuda", requires_grad=True)
    w, b = (genesis.ones(16, device="cuda", requires_grad=True) for _ in range(2))
    before = gpu.calls.get("launch", 0)
    y = F.layer_norm(x, (16,), w, b)
    assert gpu.calls.get("launch", 0) - before == 1
    g = genesis.ones_like(y)
    before = gpu.calls["launch"]
    y.backward(g)
    assert gpu.calls["launch"] - before == 3


@pytest.mark.parametrize("dtype", [genesis.float32, genesis.bfloat16])
@pytest.mark.parametrize("shape", [(4, 6), (1, 1), (33, 50), (3, 5001)], ids=str)
def test_cross_entropy(shape, dtype, gpu):
    x, t = genesis.randn(*shape).to(dtype), genesis.randint(0, shape[1], shape[:1])
    if shape[0] > 2:
        t[1] = -100
    same(graded(lambda x, t: F.cross_entropy(x, t) * 3), x, t, tolerance=3e-6 if dtype is genesis.float32 else 2e-2)


@pytest.mark.parametrize("dtype", [genesis.float32, genesis.float16])
@pytest.mark.parametrize("classes", [6000, 8192])
def test_cross_entropy_of_rows_that_begin_at_16_bytes(classes, dtype, gpu):
    """... with and without a rest behind the last whole block."""
    x, t = genesis.randn(2, classes).to(dtype), genesis.randint(0, classes, (2,))
    same(graded(lambda x, t: F.cross_entropy(x, t) / 16), x, t, tolerance=3e-6 if dtype is genesis.float32 else 2e-3)


@pytest.mark.parametrize("dtype", [genesis.float32, genesis.float16])
@pytest.mark.parametrize("classes", [8195, 9001, 12288 + 1])
def test_cross_entropy_of_rows_that_begin_anywhere(classes, dtype, gpu):
    """... in 16 bytes: their whole blocks are written from a multiple of that on."""
    x, t = genesis.randn(4, classes).to(dtype), genesis.tensor([0, classes - 1, -100, classes // 2])
    x[:, 0] += 9
    given = x.to("cuda").requires_grad_()
    F.cross_entropy(given, t.to("cuda")).backward(genesis.tensor(3.0, dtype=dtype, device="cuda"))
    expected = x.float().softmax(1) - F.one_hot(t.clamp(min=0), classes).float()
    expected[2] = 0
    assert (given.grad.cpu().float() - expected).abs().max() < (3e-6 if dtype is genesis.float32 else 2e-3)


@pytest.mark.parametrize("classes", [1024, 1029, 4096, 4099, 5001])
def test_gradients_of_rows_without_gaps(classes, gpu):
    """Blocks have elements of two rows: the classes at both ends of rows, rows that do not count, of which nothing is a number,
    and those before and behind them.
    """
    x = genesis.randn(12, classes)
    t = genesis.tensor([0, classes - 1, -100, -100, classes - 1, 0, 1, -100, classes // 2, classes - 1, -100, 0])
    x[3], x[7, classes - 1] = float("nan"), float("inf")
    counted = t != -100
    given = x.to("cuda").requires_grad_()
    genesis.autograd.backward(F.cross_entropy(given, t.to("cuda")), genesis.tensor(float(counted.sum()), device="cuda"))
    expected = x.softmax(1) - F.one_hot(t.clamp(min=0), classes).float()
    np.testing.assert_allclose(
        given.grad.cpu().numpy(), genesis.where(counted[:, None], expected, 0.0).numpy(), rtol=0, atol=3e-6
    )


def test_rows_are_read_16_bytes_at_a_time_up_to_the_end_of_our_memory(gpu):
    """Nothing is read behind the end of memory of others, not even a part of 16 bytes."""
    x = genesis.randn(2, 1301, device="cuda").to(genesis.float16)
    assert beside_of(x._array) == 8
    assert beside_of(taken(x)) == 0
    assert beside_of(taken(x[:, :1300].contiguous())) == 8  # which end at 16 bytes
    assert beside_of(x[:, 1:]._array) == 0


def test_cross_entropy_of_wide_numbers_and_layouts(gpu):
    x, t = genesis.randn(6, 40) * 50, genesis.randint(0, 40, (6,))
    x[0, 3], x[1, 1:] = 3e38, float("-inf")
    same(lambda x, t: F.cross_entropy(x, t), x, t, tolerance=1e-6)
    same(graded(lambda x, t: F.cross_entropy(x[::2, 5:20].clamp(-9, 9), t[::2])), x, t.clamp(max=14), tolerance=1e-6)
    same(graded(lambda x, t: F.cross_entropy(x, t.int(), ignore_index=7)), genesis.randn(6, 40), t, tolerance=1e-6)
    y = F.cross_entropy(genesis.full((2, 3), float("nan"), device="cuda"), genesis.tensor([0, 1], device="cuda"))
    assert y.isnan().item()
    assert F.cross_entropy(x[:2].to("cuda"), genesis.tensor([-100, -100], device="cuda")).isnan().item()


@pytest.mark.parametrize("dtype", [genesis.float32, genesis.bfloat16])
@pytest.mark.parametrize("shape", [(4, 6), (1, 1), (128, 10), (300, 40), (5, 5001), (2, 8192)], ids=str)
def test_cross_entropy_with_its_gradient(shape, dtype, gpu):
    """... in one call, of logits whose rows have gaps, too."""
    x, t, g = genesis.randn(*shape).to(dtype), genesis.randint(0, shape[1], shape[:1]), genesis.tensor(0.75)
    if shape[0] > 2:
        t[1], x[0, 2] = -100, float("-inf")
    here = x.float().requires_grad_()
    loss = F.cross_entropy(here, t)
    loss.backward(g)
    apart = genesis.zeros(shape[0], -(-shape[1] // 64) * 64, dtype=dtype, device="cuda")[:, : shape[1]]
    apart.copy_(x)
    for logits in (x.to("cuda"), apart):
        arrays = [each.to("cuda")._array for each in (g, logits, t)]
        with gaps(True):
            got = FUSED[WITH_GRADIENT].kernel(*arrays, -100, F32)
        for value, expected, kind in zip(got, (loss, here.grad), (genesis.float32, dtype), strict=True):
            assert value.dtype == kind.np
            value, expected = wrap(value).float().cpu().numpy(), expected.detach().to(kind).float().numpy()
            np.testing.assert_allclose(value, expected, rtol=2e-5 if kind is genesis.float32 else 1e-2, atol=1e-7)


def test_a_class_that_is_none_is_reported_with_the_gradient(gpu):
    x, t, g = genesis.randn(3, 4), genesis.tensor([0, 1, 7]), genesis.tensor(1.0)
    FUSED[WITH_GRADIENT].kernel(*[each.to("cuda")._array for each in (g, x, t)], -100, F32)
    with pytest.raises(IndexError, match="cross_entropy: index 7 is out of range for 4 classes"):
        genesis.cuda.synchronize()


@pytest.mark.parametrize("dtype", [genesis.float32, genesis.bfloat16, genesis.float64])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_cross_entropy_of_a_last_layer_some_rows_at_a_time(reduction, dtype, gpu):
    if interpreted() and dtype is genesis.bfloat16:
        pytest.skip("the interpreter takes the bits of bfloat16 for integers")
    x, w, b = (genesis.randn(*shape).to(dtype) for shape in ((9, 8), (21, 8), (21,)))
    t = genesis.randint(0, 21, (9,))
    t[1] = t[6:] = -100
    for some in (True, False):
        options = nn.LinearCrossEntropyOptions(False, 3, None) if some else None
        of_layer = graded(
            lambda x, w, b, t, o=options: F.linear_cross_entropy(x, w, t, linear_bias=b, reduction=reduction, options=o)
        )
        same(of_layer, x, w, b, t, tolerance=3e-6 if dtype is not genesis.bfloat16 else 2e-2)


def test_how_many_rows_of_a_last_layer(gpu):
    """... have logits of 1 GiB."""
    x = genesis.empty(8192, 1, device="cuda", dtype=genesis.bfloat16)
    assert nn.LinearCrossEntropyOptions().rows(x, 1 << 18) == 2048


def test_a_class_that_is_none_is_reported(gpu):
    loss = F.cross_entropy(genesis.randn(3, 4, device="cuda"), genesis.tensor([0, 1, 7], device="cuda"))
    with pytest.raises(IndexError, match="cross_entropy: index 7 is out of range for 4 classes"):
        loss.item()


COLUMNS = [((300, 7), 0, False), ((3, 200, 130), (0, 1), True), ((1000, 5), 0, True), ((128, 1), (0,), False)]


@pytest.mark.parametrize(("shape", "dims", "keepdim"), COLUMNS)
@pytest.mark.parametrize("dtype", [genesis.float32, genesis.float64, genesis.bfloat16, genesis.float16])
def test_sums_of_columns(shape, dims, keepdim, dtype, gpu):
    tolerance = {8: 1e-11, 4: 2e-4, 2: 0.3}[dtype.itemsize]
    before = gpu.calls.get("launch", 0)
    same(lambda x: x.sum(dims, keepdim), genesis.randn(*shape).to(dtype), tolerance=tolerance)
    assert gpu.calls["launch"] - before <= 2
    same(lambda x: x[..., 1:].sum(dims, keepdim, dtype=genesis.float64), genesis.randn(*shape), tolerance=1e-3)


# ---- machine code for Hopper


def calls():
    x, t = genesis.ones(1024, 4096, device="cuda"), genesis.zeros(1024, dtype=genesis.int64, device="cuda")
    w = genesis.ones(4096, device="cuda")
    return {
        "layer norm": graded(lambda: F.layer_norm(x.requires_grad_(), (4096,), w.requires_grad_())),
        "RMS norm": graded(lambda: F.rms_norm(x.requires_grad_(), (4096,), w.requires_grad_())),
        "cross entropy": graded(lambda: F.cross_entropy(x.requires_grad_(), t)),
        "columns": lambda: x.sum(0),
        "columns of 16 bits": lambda: x.bfloat16().sum(0),
    }


@needs_triton
@pytest.mark.slow
@pytest.mark.parametrize("name", ["layer norm", "RMS norm", "cross entropy", "columns", "columns of 16 bits"])
def test_machine_code(name):
    made = started(lambda: calls()[name]())
    texts = [machine_code(kernel, aligned) for kernel, aligned in {(k.source, a): (k, a) for k, a in made}.values()]
    wide = (
        "LDG.E.128",
        "LDG.E.64",
        "LDGSTS.E.BYPASS.128",
        "LDGSTS.E.64",
    )  # to registers, or to shared memory for a later round
    assert sum([any([name in text for name in wide]) for text in texts]) >= 1


@needs_triton
@pytest.mark.slow
def test_machine_code_of_a_sum_of_all_elements():
    """Programs begin where 16 bytes can be read at once, and there are several for each processor."""
    launches = started_with_grids(lambda: genesis.ones(8192, 1111, device="cuda", dtype=genesis.bfloat16).sum())
    (kernel, aligned, grid), *_ = [each for each in launches if type(each[0]).__name__ == "Kernel"]
    text = machine_code(kernel, aligned)
    assert "LDG.E.128" in text and "LDG.E.U16" not in text and grid[0] >= 3 * 132


def test_cross_entropy_of_few_rows_with_its_gradient_is_one_launch(gpu):
    counts = []
    for shape in [(128, 10), (300, 40)]:
        x, t, g = genesis.randn(*shape), genesis.randint(0, shape[1], shape[:1]), genesis.tensor(1.0)
        arrays = [each.to("cuda")._array for each in (g, x, t)]
        before = gpu.calls.get("launch", 0)
        FUSED[WITH_GRADIENT].kernel(*arrays, -100, F32)
        counts.append(gpu.calls["launch"] - before)
    assert counts == [1, 3]


@needs_triton
@pytest.mark.slow
def test_machine_code_of_cross_entropy_of_few_rows():
    def few():
        x, target = genesis.zeros(128, 10, device="cuda"), genesis.zeros(128, dtype=genesis.int64, device="cuda")
        FUSED[WITH_GRADIENT].kernel(genesis.ones((), device="cuda")._array, x._array, target._array, -100, F32)

    ((kernel, aligned),) = [each for each in started(few) if type(each[0]).__name__ == "Few"]
    assert machine_code(kernel, aligned).count("MUFU.EX2") <= 3 * 2048 / 1024


def rounds(text):
    """How many instructions each loop of a listing goes through in a round."""
    lines = re.findall(r"^\s+/\*([0-9a-f]{4,})\*/\s+(.*?);", text, re.MULTILINE)
    jumps = [(int(at, 16), re.search(r"\bBRA (0x[0-9a-f]+)", line)) for at, line in lines]
    return [(at - int(to[1], 16)) // 16 + 1 for at, to in jumps if to and int(to[1], 16) < at]


@needs_triton
@pytest.mark.slow
@pytest.mark.parametrize("classes", [50257, 50272])
def test_machine_code_of_cross_entropy(classes):
    """One power of two for each element, about, of what is read in the loop and of what is left behind it."""

    def graded_loss():
        x = genesis.zeros(2, classes, device="cuda", dtype=genesis.bfloat16).requires_grad_()
        F.cross_entropy(x, genesis.zeros(2, dtype=genesis.int64, device="cuda")).backward()

    def both():
        x = genesis.zeros(2, classes, device="cuda", dtype=genesis.bfloat16)
        target, g = genesis.zeros(2, dtype=genesis.int64, device="cuda"), genesis.ones((), device="cuda")
        FUSED[WITH_GRADIENT].kernel(g._array, x._array, target._array, -100, F32)

    codes = {type(kernel).__name__: machine_code(kernel, aligned) for kernel, aligned in started(both)}
    assert codes.keys() >= {"Both", "Share", "Mean"}
    text = codes["Both"]
    if classes % 16 == 0:
        assert max(rounds(text)) <= 10 * 8  # instructions of a thread for the 8 elements that it reads at once
        assert "LDG.E.128" in text and "STG.E.128" in text
    made = started(graded_loss)
    texts = [
        machine_code(kernel, aligned)
        for kernel, aligned in made
        if type(kernel).__name__ in ("Loss", "Gradient", "Long")
    ]
    assert len(texts) == 2
    assert all(
        [text.count("MUFU.EX2") <= 3 * 1.3 * LONG / 256 for text in texts]
    )  # of the first block, others, and the rest
    assert all(["LDG.E.128" in text for text in texts])  # wherever a row begins
    assert "LDG.E.U16" in texts[0] and texts[0].count("LDG.E.U16") == 1 and "STG.E.128" in texts[1]


def started_with_grids(function):
    """The kernels that a function starts, with which parameters are multiples of 16, and how many programs."""
    launches = []
    start, prepared = Launched.start, Launched.prepared
    with pytest.MonkeyPatch.context() as patch, emulated():

        def noted(self, on, stream, grid, values):
            launches.append((self, self.aligned(values), grid))
            start(self, on, stream, grid, values)

        def noted_once(self, on, grid, values):
            launches.append((self, self.aligned(values), grid))
            return prepared(self, on, grid, values)

        patch.setattr(Launched, "start", noted)
        patch.setattr(Launched, "prepared", noted_once)
        function()
    return launches
