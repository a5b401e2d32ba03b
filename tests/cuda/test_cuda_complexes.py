"""Complex numbers on a GPU, as pairs of floats."""

from __future__ import annotations

import numpy as np
import pytest
from kernels_of import WAYS, compiled, emulated, needs_triton, same, started

import genesis
from genesis.cuda.kernels.complexes import NUMBERS, PARTS, TWO

OF_ONE = sorted({*PARTS, *NUMBERS} - TWO)
TOGETHER = {
    "numbers": lambda x, y: x * (1 + 2j) + 0.5 - 2j / y,
    "a number with an imaginary part, and a real tensor": lambda x, y: x.real * 2j,
    "where": lambda x, y: genesis.where(x.real > 0, x, y) + genesis.where(y.real > 0, x, 1j),
    "broadcast": lambda x, y: x * y[0] + y[:, :1],
    "transposed": lambda x, y: (x.t() * y.t()).contiguous(),
    "conjugates": lambda x, y: x.conj() * y,
    "sums": lambda x, y: x.sum(0) + y.mean(-2) + x.sum() + x[0, 0].sum() + y.sum((0, 1)) + x.sum(1, keepdim=True)[0],
    "a product": lambda x, y: x @ y.t(),
    "einsum": lambda x, y: genesis.einsum("ij,ij->i", x, y),
    "polar": lambda x, y: genesis.polar(x.abs(), x.angle()) + genesis.complex(x.real, y.imag),
    "conversions": lambda x, y: x.real.exp().to(x.dtype) * y + x.to(genesis.complex128).to(x.dtype),
    "rotations": lambda x, y: genesis.view_as_real(genesis.view_as_complex(genesis.view_as_real(x).contiguous()) * y),
    "integers": lambda x, y: (
        x * genesis.arange(7, device=x.device) + genesis.ones(5, 1, device=x.device, dtype=genesis.int32) * y
    ),
    "running sums": lambda x, y: x.cumsum(0) + y.t().cumsum(-1).t(),
    "a border of zeros": lambda x, y: genesis.nn.functional.pad(x * y, (1, 2, 0, 3)),
    "norms": lambda x, y: (
        x.norm(),
        y.norm(dim=1),
        genesis.linalg.vector_norm(x, 1, dim=0),
        x.norm(float("inf"), dim=0),
    ),
    "powers": lambda x, y: x**2 + y**3 + x.pow(7) * 0.01 + y.pow(4.0),
    "in place": lambda x, y: x.clone().mul_(y).add_(1.0),
}


def numbers(dtype=genesis.complex64):
    generator = np.random.default_rng(4)
    return [
        genesis.tensor(generator.normal(size=(5, 7)) + 1j * generator.normal(size=(5, 7))).to(dtype) for _ in range(2)
    ]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", [genesis.complex64, genesis.complex128], ids=str)
def test_ops(dtype, way):
    x, y = numbers(dtype)
    tolerance = 2e-6 if dtype is genesis.complex64 else 1e-14
    with emulated(way):
        for name in OF_ONE:
            same(lambda x, name=name: getattr(genesis, name)(x), x, tolerance=tolerance)
        for name in sorted(TWO):
            same(lambda x, y, name=name: getattr(genesis, name)(x, y), x, y, tolerance=tolerance)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", TOGETHER)
def test_programs(name, way):
    with emulated(way):
        same(TOGETHER[name], *numbers(), tolerance=1e-5)


@pytest.mark.parametrize("way", WAYS)
def test_numbers_at_the_edges(way):
    """Zeros of both signs, on the axes, and so large that a square is none any more."""
    given = [0, -0.0, 1, -1, 1j, -1j, 3 - 4j, -3 + 4j, 1e30 + 1e30j, 1e-30 - 1e-30j]
    x = genesis.tensor(given, dtype=genesis.complex64)
    y = genesis.tensor(given[::-1], dtype=genesis.complex64)
    with emulated(way):
        for name in ("abs", "sqrt", "angle", "neg", "conj_physical", "sgn"):
            same(lambda x, name=name: getattr(genesis, name)(x), x, tolerance=1e-6)
        same(lambda x, y: x[2:] / y[:8], x, y, tolerance=1e-6)
        same(lambda x: genesis.reciprocal(x[2:]), x, tolerance=1e-6)


@pytest.mark.parametrize("way", WAYS)
def test_gradients(way):
    x, y = numbers()
    graded = [t.requires_grad_() for t in (x, y)]
    with emulated(way):
        there = [t.detach().to("cuda").requires_grad_() for t in graded]
        for a, b in (graded, there):
            (genesis.exp(a * b.conj()).abs().log1p().sum() + (a @ b.t()).real.square().mean()).backward()
        for p, q in zip(there, graded, strict=True):
            np.testing.assert_allclose(p.grad.cpu().numpy(), q.grad.numpy(), rtol=1e-5, atol=1e-6)


def test_graphs_have_numbers():
    """A number of the program is written by the device: nothing is copied from the host while a graph is recorded."""
    x, _ = numbers()
    with emulated():
        there = x.to("cuda")
        there * (1 + 2j)
        graph = genesis.cuda.CUDAGraph()
        with genesis.cuda.graph(graph):
            y = there * (1 + 2j)
        there.neg_()
        graph.replay()
        np.testing.assert_allclose(y.cpu().numpy(), -x.numpy() * np.complex64(1 + 2j), rtol=1e-6)


@needs_triton
def test_machine_code_of_complexes():
    x, y = numbers()
    kernels = started(lambda: [f(x.to("cuda"), y.to("cuda")) for f in TOGETHER.values()])
    lanes = [
        (kernel, aligned)
        for kernel, aligned in kernels
        if getattr(getattr(kernel, "code", None), "name", "").startswith("complex")
    ]
    assert len({kernel.code.name for kernel, _ in lanes}) >= 8
    for kernel, aligned in lanes:
        compiled(kernel, aligned)


@pytest.mark.parametrize("dtype", [genesis.complex64, genesis.complex128])
@pytest.mark.parametrize("way", WAYS)
def test_complex_numbers_that_only_move(way, dtype):
    """Those of 16 bytes as two words each."""
    genesis.manual_seed(5)
    x = genesis.complex(genesis.randn(2, 3, 4), genesis.randn(2, 3, 4)).to(dtype)

    def gradient(x):
        x = x.detach().requires_grad_()
        y = x.narrow(1, 1, 2)
        (y.real * y.imag).sum().backward()
        return x.grad

    with emulated(way):
        same(lambda x: genesis.cat([x, x[:, :1]], 1), x)
        same(lambda x: x.flip(0, 2), x)
        same(lambda x: x.roll((1, 2), (0, 2)), x)
        same(lambda x: (x.tril(1), x.triu(-1)), x)
        same(gradient, x)
