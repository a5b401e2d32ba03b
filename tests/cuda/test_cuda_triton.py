"""Kernels as Triton prints and compiles them: run by its interpreter, and as machine code for Hopper, which is only looked at."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

import genesis
from genesis import nn
from genesis.core.call.op import REGISTRY
from genesis.cuda.kernels import choose, losses, lowering
from genesis.cuda.kernels.host import HostWarning
from genesis.cuda.kernels.products import Product, tile_of
from genesis.cuda.launch import cubins, triton
from genesis.cuda.launch.kernel import Kernel
from genesis.cuda.runtime.connection import using
from genesis.cuda.runtime.emulated import Emulated
from genesis.nn import functional as F

pytestmark = pytest.mark.skipif(not triton.available(), reason="Triton is not installed")


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.setenv("GENESIS_CUDA_KERNELS", "triton")
    with using(Emulated(1)) as driver, warnings.catch_warnings():
        warnings.simplefilter("ignore", HostWarning)
        yield driver


INTERPRETED = {
    "arithmetic": lambda x: (x * 2.5 + x / 3.0) - x.square(),
    "functions": lambda x: x.exp() + x.abs().add(1.0).log() + x.tanh() + x.sigmoid() + x.erf(),
    "choices": lambda x: genesis.where(x > 0, x, -1.0).clamp(-0.5, 0.5),
    "of a transposed one": lambda x: x.t().cos() + x[0, :1],
    "rows": lambda x: x.softmax(1) + x.sum(1, keepdim=True),
    "columns": lambda x: x.sum(0) + x.amax(0),
    "one number": lambda x: x.mean(),
    "spread": lambda x: x.std(1) + x.var(0)[:1],
    "the first of the largest": lambda x: x.argmax(1),
    "flags": lambda x: (x > 0).any(1) & (x < 9).all(1),
    "products": lambda x: x[:, :4].prod(1),
    "pieces": lambda x: genesis.cat([x, x * 2.0], 1),
    "layer norm": lambda x: F.layer_norm(x, (x.shape[1],)),
    "integers": lambda x: (x * 10).to(genesis.int64) + 3,
    "a product": lambda x: x @ x.t(),
    "a product and a bias": lambda x: F.linear(x, genesis.cat([x, x]), x[0, :10]),
    "products of a batch": lambda x: genesis.stack([x, x + 1.0]) @ genesis.stack([x.t(), x.t()]),
    "nan": lambda x: genesis.where(x > 1, float("nan"), x).amax(1),
    "nan, smallest": lambda x: genesis.where(x > 1, float("nan"), x).amin(0),
}


@pytest.mark.parametrize("name", INTERPRETED)
def test_the_interpreter_gives_what_the_cpu_gives(name, gpu):
    genesis.manual_seed(2)
    x = genesis.randn(5, 37)
    there = INTERPRETED[name](x.to("cuda")).cpu()
    assert gpu.calls["launch"] > 0
    np.testing.assert_allclose(there.numpy(), INTERPRETED[name](x).numpy(), rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("name", ["arithmetic", "functions", "rows", "spread", "layer norm"])
def test_float64(name, gpu):
    """Division and roots have other names there than in float32."""
    genesis.manual_seed(2)
    x = genesis.randn(5, 37).double()
    there = INTERPRETED[name](x.to("cuda")).cpu()
    np.testing.assert_allclose(there.numpy(), INTERPRETED[name](x).numpy(), rtol=1e-12, atol=1e-12)


def test_long_rows_are_read_in_blocks(gpu):
    x = genesis.randn(2, (1 << 14) + 5)
    np.testing.assert_allclose(x.to("cuda").softmax(1).cpu().numpy(), x.softmax(1).numpy(), rtol=1e-5, atol=1e-9)


def test_parts_of_one_total(gpu):
    x = genesis.randn(300, 1000)
    np.testing.assert_allclose(x.to("cuda").sum().item(), x.double().sum().item(), rtol=1e-5)


def test_16_bits(gpu):
    """The interpreter cuts bits off where a GPU rounds: one unit of the last place more."""
    x = genesis.randn(4, 33).bfloat16()
    there = (x.to("cuda") * 3.0).cpu().float()
    np.testing.assert_allclose(there.numpy(), (x * 3.0).float().numpy(), rtol=2**-7)


def test_a_step_of_adam(gpu):
    """Numbers of the program are float64 until they meet a parameter: 1 - 0.999 in float32 is another step."""
    reached = []
    for place in ("cpu", "cuda"):
        genesis.manual_seed(0)
        p = nn.Parameter(genesis.randn(5, 7).to(place))
        optimizer = genesis.optim.AdamW([p], lr=1e-2)
        for _ in range(3):
            p.grad = p.detach() * 0.5
            optimizer.step()
        reached.append(
            [p.detach().cpu().numpy(), *[optimizer.state[p][k].cpu().numpy() for k in ("exp_avg", "exp_avg_sq")]]
        )
    for here, there in zip(*reached, strict=True):
        np.testing.assert_allclose(there, here, rtol=3e-7)


# ---- G4: machine code for Hopper


def kernels_of(function, *shapes, dtype="float32"):
    """The kernels that a function of contiguous tensors of these shapes launches."""
    made = []
    with pytest.MonkeyPatch.context() as patch, using(Emulated(1)):
        patch.setattr(choose, "_chosen", {})
        for op in REGISTRY.values():
            patch.setattr(op, "on_devices", {})
        patch.setattr(lowering, "Kernel", lambda *args: made.append(Kernel(*args)) or made[-1])
        tensors = [genesis.ones(*shape, dtype=getattr(genesis, dtype), device="cuda") for shape in shapes]
        made.clear()
        function(*tensors)
    return [kernel.code for kernel in made]


STOCK = {  # a function, shapes, and whether 16 bytes are read at once
    "add": (lambda x, y: x + y, [(1 << 20,), (1 << 20,)], True),
    "mul by a row": (lambda x, y: x * y, [(64, 4096), (4096,)], True),
    "a number": (lambda x: x * 2.5, [(1 << 20,)], True),
    "exp": (lambda x: x.exp(), [(1 << 20,)], True),
    "erf": (lambda x: x.erf(), [(1 << 20,)], True),
    "tanh": (lambda x: x.tanh(), [(1 << 20,)], True),
    "pow": (lambda x, y: x**y, [(1 << 20,), (1 << 20,)], True),
    "transposed": (lambda x: x.t().contiguous(), [(1024, 1024)], False),
    "softmax": (lambda x: x.softmax(1), [(128, 8192)], True),
    "log_softmax": (lambda x: x.log_softmax(1), [(128, 8192)], True),
    "layer norm": (lambda x: F.layer_norm(x, (8192,)), [(128, 8192)], True),
    "sum of rows": (lambda x: x.sum(1), [(128, 8192)], True),
    "sum of columns": (lambda x: x.sum(0), [(1024, 1024)], True),
    "sum of all": (lambda x: x.sum(), [(1024, 1024)], False),
    "argmax": (lambda x: x.argmax(1), [(128, 4096)], True),
    "Adam": (
        lambda *x: genesis.ops.learning.update.adam_step(*x, None, 0.9, 0.999, 0.5, 1e-8, -0.01, None),
        [(1 << 20,)] * 4,
        True,
    ),
    "odd rows": (lambda x: x.softmax(1), [(8, 50257)], False),
}
FEW = ("add", "softmax", "sum of columns")


@pytest.mark.slow
def test_an_extreme_of_floats_is_one_reduction():
    """An instruction of the hardware keeps what is missing: lanes wait for each other once."""
    (code,) = kernels_of(lambda x: x.amax(1), (1024, 8192), dtype="bfloat16")
    text = triton.text_of(triton.compiled(code.source, code.signature, (0, 1), code.warps))
    assert "MNMX.NAN" in text and text.count("BAR.SYNC") == 1


def looked_at(name, dtype="float32"):
    function, shapes, vectors = STOCK[name]
    for code in kernels_of(function, *shapes, dtype=dtype):
        aligned = tuple([i for i, letter in enumerate(code.letters) if letter != "d"])
        text = triton.text_of(triton.compiled(code.source, code.signature, aligned, code.warps))
        yield code, text, vectors


def check(code, text, vectors):
    registers, stack = (int(n) for n in re.search(r"REG:(\d+) STACK:(\d+)", text).groups())
    assert stack == 0 and "LDL" not in text and "STL" not in text, "registers spill"
    assert registers * 32 * code.warps <= 65536
    if vectors:
        assert "LDG.E.128" in text, "no 16 bytes are read at once"


@pytest.mark.parametrize("name", FEW)
def test_machine_code(name):
    for each in looked_at(name):
        check(*each)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize("name", STOCK)
def test_machine_code_of_every_stock_kernel(name, dtype, request):
    if (name, dtype) == ("odd rows", "float64"):
        request.applymarker(
            pytest.mark.xfail(strict=True, reason="blocks of odd rows of 8 bytes do not fit the registers")
        )
    for each in looked_at(name, dtype):
        check(*each)


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.slow
def test_machine_code_of_products(dtype, biased):
    kind = getattr(genesis, dtype).np
    for size in (96, 4096):
        for unit in ((False, True, False, True), (False, True, True, False), (True, False, False, True)):
            kernel = Product(kind, tile_of(size, size, kind), unit, biased)
            text = triton.text_of(triton.compiled(kernel.source, kernel.signature, tuple(range(13)), kernel.warps))
            check(kernel, text, False)
            assert ("HGMMA" in text) == (dtype != "float32")  # the tensor cores of Hopper


def test_rows_of_logits_that_begin_anywhere_are_read_16_bytes_at_a_time():
    kind = genesis.bfloat16.np
    code = losses.long_gradients(kind, np.dtype(np.int64), kind, losses.LONG)
    text = triton.text_of(triton.compiled(code.source, code.signature, (*range(6),), code.warps))
    check(code, text, True)
    assert "STG.E.128" in text


def test_a_processor_has_another_program_where_that_takes_a_few_registers(monkeypatch):
    """... of which none are spilled then."""
    steps = {(70, 8): 64, (80, 8): 64, (96, 8): 80, (136, 8): 128, (68, 16): 64}
    others = [(97, 8), (64, 8), (48, 8), (255, 8), (32, 32)]  # many fewer, no more programs, enough of them
    assert {each: triton._fewer(*each) for each in steps} == steps and not any(
        [triton._fewer(*each) for each in others]
    )
    (code,) = kernels_of(lambda x: x.softmax(1), (64, 8192))

    def resources():
        return triton.resources(triton.compiled(code.source, code.signature, (0, 1), code.warps).image)

    assert code.warps == 8
    registers, _ = resources()
    monkeypatch.setattr(triton, "_fewer", lambda *_: registers - 8)
    assert resources() == (registers - 8, 0)
    monkeypatch.setattr(triton, "_fewer", lambda *_: 32)  # too few
    assert resources() == (registers, 0)


def test_four_rows_of_a_layer_norm_are_under_way_on_a_processor():
    """Elements of 16 bits stay two in a register: with as many as float32 takes there would be three rows."""
    norm = lambda x, w, b: F.layer_norm(x, (8192,), w, b)
    (code,) = kernels_of(norm, (64, 8192), (8192,), (8192,), dtype="bfloat16")
    assert code.warps == 8 and "stays_narrow" in code.source
    made = triton.compiled(code.source, code.signature, (0, 1, 2, 3), code.warps)
    registers, stack = triton.resources(made.image)
    assert registers <= 64 and stack == 0


@pytest.mark.slow
@pytest.mark.parametrize("capability", [80, 100])
def test_other_gpus(capability):
    for name in FEW:
        function, shapes, _ = STOCK[name]
        for code in kernels_of(function, *shapes):
            assert triton.compiled(code.source, code.signature, (), code.warps, capability).image


def test_machine_code_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("GENESIS_CACHE_DIR", str(tmp_path))
    (code,) = kernels_of(lambda x, y: x + y, (1 << 20,), (1 << 20,))
    before = dict(cubins.made)
    first = cubins.cubin(code.source, code.signature, (0, 1), code.warps, 90)
    again = cubins.cubin(code.source, code.signature, (0, 1), code.warps, 90)
    assert first == again and first.image[:4] == b"\x7fELF"
    assert {k: cubins.made[k] - before[k] for k in before} == {"compiled": 1, "loaded": 1}
    assert len(list(tmp_path.glob("*.cubin"))) == 1
    monkeypatch.setattr(triton, "available", lambda: False)  # what is kept needs no compiler
    assert cubins.cubin(code.source, code.signature, (0, 1), code.warps, 90) == first
    with pytest.raises(NotImplementedError, match="Triton is not installed"):
        cubins.cubin(code.source, code.signature, (0,), code.warps, 90)
