"""Kernels on the emulated device: which ops have them, how many are launched, and that they give what the CPU gives."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import genesis
import genesis.distributed.nn.ops  # noqa: F401, ops that are imported late
from genesis import cuda, nn
from genesis.arrays.memory import DeviceArray
from genesis.cuda.arrays import CudaArray
from genesis.cuda.kernels import choose, lowering, products
from genesis.cuda.kernels.host import HOST, HostWarning, computed_on_host
from genesis.cuda.launch.kernel import Kernel
from genesis.cuda.runtime.connection import using
from genesis.cuda.runtime.emulated import Emulated
from genesis.devices import primitives
from genesis.nn import functional as F
from genesis.testing import Maker
from genesis.testing.devices import moved
from genesis.testing.opcheck import samples_of


@pytest.fixture
def gpu():
    with using(Emulated(1)) as driver, warnings.catch_warnings():
        warnings.simplefilter("ignore", HostWarning)
        yield driver


def launches(gpu, function, *args):
    before = gpu.calls.get("launch", 0)
    result = function(*args)
    return gpu.calls.get("launch", 0) - before, result


COUNTED = {
    "an elementwise op": (lambda x: x.exp(), 1),
    "of another layout": (lambda x: x.t() + 1, 1),
    "with broadcasting": (lambda x: x * x[0], 1),
    "a number": (lambda x: x * 2.5, 1),
    "softmax": (lambda x: x.softmax(1), 1),
    "a sum of rows": (lambda x: x.sum(1), 1),
    "of columns": (lambda x: x.sum(0), 1),
    "of few": (lambda x: x.sum(), 1),
    "a variance": (lambda x: x.var(1), 1),
    "two pieces": (lambda x: genesis.cat([x, x]), 2),
    "a copy of a view": (lambda x: x.t().contiguous(), 1),
    "a write into one": (lambda x: x[:, ::2].mul_(2.0), 2),
    "a view": (lambda x: x.t()[1:], 0),
    "layer norm": (lambda x: F.layer_norm(x, (6,)), 1),
}


@pytest.mark.parametrize("name", COUNTED)
def test_launches_and_values(name, gpu):
    function, expected = COUNTED[name]
    x = genesis.randn(4, 6)
    count, y = launches(gpu, function, x.to("cuda"))
    assert count == expected
    np.testing.assert_allclose(y.cpu().numpy(), function(x.clone()).numpy(), rtol=1e-6, atol=1e-6)


REPEATED = {
    "add": lambda x: x + x,
    "a number": lambda x: x * 3,
    "in place": lambda x: x.clone().add_(x),
    "sum": lambda x: x.sum(1),
    "gelu": F.gelu,
    "product": lambda x: x @ x.t(),
}


@pytest.mark.parametrize("name", REPEATED)
def test_a_call_like_one_before_is_of_its_own_operands(name, gpu):
    """Elsewhere in memory, off the multiples of 16 bytes, on another stream, and on another device."""
    function, side = REPEATED[name], cuda.Stream()
    with using(Emulated(2)):
        for step, device in enumerate(("cuda:0", "cuda:0", "cuda:1", "cuda:0")):
            held = genesis.randn(41)
            x = held.to(device)[step % 2 :][:40].view(4, 10)
            want = function(held[step % 2 :][:40].view(4, 10))
            np.testing.assert_allclose(function(x).cpu().numpy(), want.numpy(), rtol=1e-5, atol=1e-6)
    x = genesis.randn(4, 10)
    there = x.to("cuda")
    function(there)
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        y = function(there)
        np.testing.assert_allclose(y.cpu().numpy(), function(x).numpy(), rtol=1e-5, atol=1e-6)
    assert side in there._array.storage.block.foreign
    assert y._array.storage.stream is side


@pytest.mark.parametrize("norm", ["layer_norm", "rms_norm"])
def test_a_norm_that_is_not_recorded_keeps_nothing(norm, gpu):
    x, w = genesis.randn(5, 6, device="cuda"), genesis.randn(6, device="cuda")
    function = getattr(F, norm)
    function(x, (6,), w)
    before = cuda.memory_stats()["allocation.all.allocated"]
    count, y = launches(gpu, function, x, (6,), w)
    assert (count, cuda.memory_stats()["allocation.all.allocated"] - before) == (1, 1)
    assert y.tolist() == function(x.requires_grad_(), (6,), w).tolist()


def test_arrays_that_lie_in_one_way_have_one_layout(gpu):
    x, y = genesis.zeros(4, 6, device="cuda")._array, genesis.ones(4, 6, device="cuda")._array
    assert x.layout is y.layout and x.layout.aligned
    x = genesis.zeros(4, 6, device="cuda")
    assert (x + x)._array.layout is y.layout
    others = [x.t(), x[1:], x.double(), x.flatten()[1:]]
    assert len({each._array.layout for each in (x, *others)}) == 5
    assert not others[-1]._array.layout.aligned


def test_one_total_of_many_elements_is_one_of_parts(gpu):
    x = genesis.randn(300, 1000)
    count, y = launches(gpu, lambda x: x.sum(), x.to("cuda"))
    assert count == 2
    np.testing.assert_allclose(y.item(), x.double().sum().item(), rtol=1e-5)


def test_another_number_or_size_needs_no_other_code(gpu, monkeypatch):
    made = []
    monkeypatch.setattr(lowering, "Kernel", lambda *args: made.append(Kernel(*args)) or made[-1])
    x = genesis.ones(1234, device="cuda")
    assert (x * 1.25).sum().item() == 1542.5
    first = len(made)
    assert (x * 7.5)[0].item() == 7.5 and len(made) == first  # the same kernel
    (x[:321] * 1.25).exp()
    multiplications = {k.code.source for k in made if k.code.signature == ("*fp32", "fp64", "*fp32", "i32")}
    assert len(multiplications) == 1


@pytest.mark.parametrize(
    "dtype", [genesis.bfloat16, genesis.float16, genesis.float64, genesis.int64, genesis.int32, genesis.bool]
)
def test_dtypes(dtype, gpu):
    x = (genesis.randn(3, 40) * 3).to(dtype)
    for function in (
        lambda x: x + x,
        lambda x: x == x.t().contiguous().t(),
        lambda x: x.sum(1),
        lambda x: x.float(),
        lambda x: x.amax(0),
    ):
        here, there = function(x), function(x.to("cuda")).cpu()
        assert here.dtype is there.dtype
        if dtype.itemsize == 2:  # a kernel rounds once
            np.testing.assert_allclose(there.float().numpy(), here.float().numpy(), rtol=2e-2, atol=1e-2)
        else:
            np.testing.assert_allclose(there.numpy(), here.numpy(), rtol=1e-6)


def test_nan_and_infinity(gpu):
    x = genesis.tensor([[1.0, float("nan"), 3.0], [float("-inf"), 2.0, float("inf")], [float("-inf")] * 3])
    for function in (lambda x: x.amax(1), lambda x: x.amin(1), lambda x: x.sum(1), lambda x: x.softmax(1), lambda x: x.logsumexp(1),
                     lambda x: x.argmax(1), lambda x: x.relu(), lambda x: x.maximum(x.flip(1)), lambda x: x.isfinite()):  # fmt: skip
        np.testing.assert_array_equal(function(x.to("cuda")).cpu().numpy(), function(x).numpy())


def test_memory_that_overlaps(gpu):
    for function in (
        lambda x: x[1:].copy_(x[:-1]),
        lambda x: x[::2].copy_(x[1::2]),
        lambda x: x.t().copy_(x) if x.ndim > 1 else x,
    ):
        for shape in ((9,), (3, 3)):
            x = genesis.arange(float(np.prod(shape))).reshape(shape)
            y = x.to("cuda")
            try:
                function(x)
            except RuntimeError:
                continue  # shapes that do not fit
            function(y)
            assert y.tolist() == x.tolist()


def test_ops_without_any_kernel_are_those_of_the_table(gpu, monkeypatch):
    """A kernel that is new, or lost, changes the table."""
    lowers = set()
    real = lowering.lowered

    def watched(op, args):
        made = real(op, args)
        lowers.update([op.name] if made is not None and made.steps else [])
        return made

    monkeypatch.setattr(choose, "lowered", watched)
    monkeypatch.setattr(choose, "_chosen", {})
    ops = [op for op in primitives() if not op.kind.views and op.name not in products.OPS]
    for op in ops:
        for dtype in (genesis.float32, genesis.int64, genesis.bool):
            try:
                cases = [moved(case, genesis.device("cuda:0")) for case in samples_of(op, Maker(dtype))]
            except Exception:  # an op of other dtypes
                continue
            for case in cases:
                try:
                    op.call(*case.args, **case.kwargs)
                except (RuntimeError, TypeError, ValueError, NotImplementedError):  # so does the CPU
                    continue
    table = [name for names in HOST.values() for name in names.split()]
    assert len(table) == len(set(table))
    ops = [op for op in ops if not {CudaArray, DeviceArray} & set(op.kernels)]  # what is attached computes them
    assert {op.name for op in ops} - lowers - set(choose.WRITTEN) == set(table)


# ---- products


PRODUCTS = {
    "matrices": (lambda x, y: x @ y, (5, 7), (7, 9)),
    "a transposed one": (lambda x, y: x @ y.t(), (70, 33), (90, 33)),
    "rows of a batch": (lambda x, y: x @ y, (3, 5, 7), (7, 9)),
    "a batch": (lambda x, y: x @ y.mT, (2, 3, 5, 7), (2, 3, 9, 7)),
    "a batch and one": (lambda x, y: x @ y, (5, 7), (3, 7, 9)),
    "batches that broadcast": (lambda x, y: x @ y, (2, 1, 5, 7), (3, 7, 9)),
    "a batch of another layout": (lambda x, y: x.transpose(0, 1) @ y, (5, 2, 7), (2, 7, 9)),
    "linear": (lambda x, y: F.linear(x, y, y[:, 0]), (4, 6, 8), (10, 8)),
}


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("dtype", [genesis.float32, genesis.bfloat16])
def test_products(name, dtype, gpu):
    function, *shapes = PRODUCTS[name]
    x, y = [genesis.randn(*shape).to(dtype).requires_grad_() for shape in shapes]
    a, b = [t.detach().to("cuda").requires_grad_() for t in (x, y)]
    here, there = function(x, y), function(a, b)
    for out in (here, there):
        out.float().square().sum().backward()
    tolerance = {"rtol": 1e-5, "atol": 1e-5} if dtype is genesis.float32 else {"rtol": 2e-2, "atol": 0.3}
    for p, q in ((there, here), (a.grad, x.grad), (b.grad, y.grad)):
        np.testing.assert_allclose(p.detach().cpu().float().numpy(), q.detach().float().numpy(), **tolerance)
    assert not {"matmul", "matmul_tn", "linear"} & set(computed_on_host)


# ---- optimizers


@pytest.mark.parametrize("options", [{}, {"amsgrad": True}, {"weight_decay": 0.1}, {"foreach": False}])
def test_a_step_of_adam_is_one_launch_with_the_bits_of_the_cpu(options, gpu):
    reached = {}
    for place in ("cpu", "cuda"):
        genesis.manual_seed(0)
        params = [nn.Parameter(genesis.randn(*shape).to(place)) for shape in ((3, 4), (5,), (64, 32))]
        optimizer = genesis.optim.AdamW(params, lr=1e-2, **options)
        for step in range(4):
            optimizer.zero_grad()
            sum([(p**2).sum() * 0.25 for p in params]).backward()
            optimizer.param_groups[0]["lr"] = 1e-2 / (step + 1)
            count, _ = launches(gpu, optimizer.step)
        reached[place] = [p.detach().cpu().numpy() for p in params]
    assert count == 1
    for p, q in zip(reached["cuda"], reached["cpu"], strict=True):
        np.testing.assert_array_equal(p, q)


# ---- G1: a step of a transformer


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(11, 16)
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)
        self.first, self.second = nn.LayerNorm(16), nn.LayerNorm(16)
        self.wide, self.narrow, self.head = nn.Linear(16, 32), nn.Linear(32, 16), nn.Linear(16, 11)

    def forward(self, tokens):
        x = self.embedding(tokens)
        y = self.first(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        x = x + self.narrow(F.gelu(self.wide(self.second(x))))
        return self.head(x)


def trained(place, kind, steps=4):
    genesis.manual_seed(0)
    model = Block().to(place)
    optimizer = kind(model.parameters(), lr=1e-2)
    tokens = genesis.randint(0, 11, (3, 9)).to(place)
    losses = []
    for _ in range(steps):
        loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses, [p.detach().cpu() for p in model.parameters()]


@pytest.mark.parametrize("kernels", ["loops", "host"])
def test_a_transformer_trains_as_on_the_cpu(kernels, gpu, monkeypatch):
    monkeypatch.setenv("GENESIS_CUDA_KERNELS", kernels)
    here, there = trained("cpu", genesis.optim.AdamW), trained("cuda", genesis.optim.AdamW)
    np.testing.assert_allclose(there[0], here[0], rtol=1e-4)
    assert here[0][-1] < here[0][0]
    here, there = trained("cpu", genesis.optim.SGD), trained("cuda", genesis.optim.SGD)
    for p, q in zip(there[1], here[1], strict=True):  # steps of Adam may be either way where a gradient is 0
        np.testing.assert_allclose(p.numpy(), q.numpy(), rtol=1e-4, atol=1e-6)
    assert (gpu.calls.get("launch", 0) > 0) == (kernels == "loops")


def test_kernels_on_two_streams_are_ordered_by_the_program(gpu):
    x, side = genesis.ones(100, device="cuda"), cuda.Stream()
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        y = x * 2.0
    with pytest.raises(RuntimeError, match="which of two uses"):
        y + 1.0
    cuda.current_stream().wait_stream(side)
    assert (y + 1.0).sum().item() == 300


@pytest.mark.parametrize("dtype", [genesis.float32, genesis.float16])
def test_another_whole_number_needs_no_other_kernel(dtype, gpu):
    """Where elements are floats, whose kernels take numbers as parameters."""

    def run(x, n):
        y = x.clone()
        y += n
        return [y, (n - x) * n / (n + 1), x > n, genesis.where(x > 2, x, n), x.clamp(min=n)]

    x = genesis.arange(-3, 6).to(dtype)
    run(x.to("cuda"), 1)
    loaded = gpu.calls["load"]
    for n in (2, 5, -7):
        for there, here in zip(run(x.to("cuda"), n), run(x, n), strict=True):
            assert there.dtype == here.dtype and there.cpu().equal(here)
    assert gpu.calls["load"] == loaded
