"""Sums of columns beside what is done with the same elements row by row: gradients of norms' weights and of biases."""

from __future__ import annotations

import pytest
from kernels_of import WAYS, emulated, machine_code, needs_triton, same, training_step

import genesis
from genesis import jit, nn
from genesis.cuda.kernels.lowering import PROCESSORS
from genesis.jit.lowering.beside import FEWEST, NARROWEST, WIDEST, programs_of
from genesis.jit.lowering.step import step_of
from genesis.nn import functional as F


@pytest.fixture(params=WAYS)
def gpu(request):
    with emulated(request.param) as driver:
        yield driver


def gradients(function):
    """The gradients of a function of tensors, the last of which is what comes back."""

    def of(*tensors):
        *tensors, g = [t.detach().requires_grad_() for t in tensors]
        return genesis.autograd.grad(function(*tensors), tensors, g.detach())

    return of


NORMS = {
    "layer norm": lambda x, w, b: F.layer_norm(x, w.shape, w, b),
    "RMS norm": lambda x, w, b: F.rms_norm(x, w.shape, w) + b,
}


@pytest.mark.parametrize("shape", [(FEWEST, NARROWEST), (2, 411, 257), (1200, 300)], ids=str)
@pytest.mark.parametrize("name", NORMS)
def test_norms(name, shape, gpu):
    x, w, b, g = [genesis.randn(*s) for s in (shape, shape[-1:], shape[-1:], shape)]
    same(gradients(NORMS[name]), x, w, b, g, tolerance=1e-4)


@pytest.mark.parametrize("dtype", [genesis.bfloat16, genesis.float16])
def test_norms_of_16_bits(dtype):
    with emulated():
        x, w, b, g = [genesis.randn(*s).to(dtype) for s in ((600, 300), (300,), (300,), (600, 300))]
        same(gradients(NORMS["layer norm"]), x, w, b, g, tolerance=2e-2)


def test_all_gradients_of_a_norm_are_two_launches(gpu):
    x, w, b, g = [genesis.randn(*s, device="cuda") for s in ((2, 300, 256), (256,), (256,), (2, 300, 256))]
    y = F.layer_norm(x.requires_grad_(), (256,), w.requires_grad_(), b.requires_grad_())
    before = gpu.calls["launch"]
    y.backward(g)
    assert gpu.calls["launch"] - before == 2
    first, w.grad = w.grad, None
    F.layer_norm(x, (256,), w, b).backward(g)
    assert (first == w.grad).all().item()  # the same bits


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.into, self.out = nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.out(F.gelu(self.into(self.norm(x))))


def stepped(layers, rows, width):
    """A step that trains layers, and its arguments."""

    def of(device):
        genesis.manual_seed(0)
        model = nn.Sequential(*[Layer(width) for _ in range(layers)]).to(device)
        optimizer = genesis.optim.SGD(model.parameters(), lr=0.5)

        step = training_step(optimizer, lambda x: model(x).square().mean())

        return model, step, genesis.randn(2, rows // 2, width).to(device)

    return of


def test_a_step(gpu):
    """Biases and norms of layers are trained as on the CPU."""
    make = stepped(2, 600, 256)
    results = []
    for device in ("cpu", "cuda"):
        model, step, x = make(device)
        compiled = genesis.compile(step) if device == "cuda" else step
        for _ in range(2):
            loss = compiled(x)
        results.append([loss.detach().cpu(), *[p.detach().cpu() for p in model.parameters()]])
    for here, there in zip(*results, strict=True):
        assert genesis.allclose(here, there, rtol=1e-4, atol=1e-5)


def test_what_a_step_moves():
    """The gradient of a norm, what is added to it, the sums for the norm's weight and bias, and for the bias of the layer before
    are one launch, which reads three tensors and writes one; what joins its programs' sums is another.
    """
    with emulated():
        _, step, x = stepped(2, 600, 256)("cuda")
        step(x)
        made = step_of(jit.optimized(jit.trace(step, x)).program)
        entries = [e for e in made.explain().entries if "layer_norm.CudaArray.backward" in e.title]
        assert len(entries) == 3  # of the first norm only sums are wanted, of which a launch is enough
        size, (programs, _) = 4 * x.numel(), programs_of(600, 256, PROCESSORS)
        sums, numbers = 3 * programs * 4 * 256, 4 * 256 + 2 * 4 * 600
        assert entries[0].title == "fused.layer_norm.CudaArray.backward, add, sum" and entries[0].programs == programs
        assert (entries[0].read, entries[0].written) == (3 * size + numbers, size + sums)
        assert entries[1].read <= sums + 3 * 4 * 256 + 64
        assert entries[1].written == 2 * 3 * 4 * 256  # gradients and updates


def columns(x):
    return x.sum(0)


OTHERS = {
    "few rows": ((FEWEST - 1, NARROWEST), columns),
    "few columns": ((FEWEST, NARROWEST - 1), columns),
    "many columns": ((FEWEST, WIDEST + 1), columns),
    "rows that lie across": ((FEWEST, FEWEST), lambda x: x.mT.sin().sum(1) + x.mT.sin().sum(0)),
    "64 bits": ((FEWEST, NARROWEST), lambda x: columns(x.double())),
    "products": ((FEWEST, NARROWEST), lambda x: (1 + x * 1e-4).prod(0)),
    "variances": ((FEWEST, NARROWEST), lambda x: x.var(0)),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_sums(name):
    """They are computed as without rows, and right."""
    shape, function = OTHERS[name]
    x = genesis.randn(*shape)
    with emulated():
        compiled = genesis.compile(lambda x: (x.exp(), function(x)))
        same(lambda x: compiled(x) if x.is_cuda else (x.exp(), function(x)), x, tolerance=2e-4)


@needs_triton
@pytest.mark.slow
@pytest.mark.parametrize(("width", "warps"), [(768, 4), (2048, 8), (4096, 16), (8192, 16)])
def test_machine_code(width, warps):
    """The next rows are on their way to shared memory while one is computed, 16 bytes at a time; registers are enough for a
    norm in a step under autocast, but for the widest with what is added to it.
    """
    with emulated():
        parts = [[nn.LayerNorm(width), nn.Linear(width, 8), nn.Linear(8, width)] for _ in range(2)]
        model = nn.Sequential(*[nn.Sequential(*each) for each in parts]).to("cuda")

        def step(x):
            model.zero_grad()
            with genesis.autocast("cuda", genesis.bfloat16):
                for layer in model:
                    x = layer(x) if width == WIDEST else x + layer(x)
            x.float().square().mean().backward()

        x = genesis.randn(512, width, device="cuda")
        made = step_of(jit.optimized(jit.trace(step, x)).program)
    phases = [p for p in made.phases if p.stages and "fused.layer_norm.CudaArray.backward" in {c.op for c in p.calls}]
    kernel = phases[0].stages[0].kernel.kernel
    assert "convert" in {c.op for c in phases[0].calls} and kernel.code.warps == warps
    text = machine_code(kernel, tuple(range(len(kernel.signature))))
    assert "LDGSTS.E.BYPASS.128" in text and "STG.E.128" in text
