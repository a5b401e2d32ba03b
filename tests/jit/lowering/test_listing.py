"""Kernels as Python text: what they compute when it is run."""

import numpy as np
import pytest

import genesis
from genesis import jit
from genesis.jit.lowering import tiles
from genesis.jit.lowering.listing import functions, listing
from genesis.jit.lowering.listing_tiles import of_product
from genesis.jit.lowering.step import Step
from genesis.kernels.llvm import loops
from genesis.nn import functional as F
from genesis.ops.products.linear import matmul_tn

pytestmark = pytest.mark.skipif(not loops.available(), reason="there is no llvmlite")


def numbers(*shape):
    return genesis.Tensor(np.random.default_rng(0).normal(size=shape).astype(np.float32))


CASES = {
    "softmax": (lambda x, w: x.softmax(-1) * w, numbers(6, 40), numbers(40)),
    "sums": (lambda x: (x.sum(0), x.mean(1).exp(), x.amax(1)), numbers(5, 33)),
    "norm": (lambda x: F.layer_norm(x, (24,)), numbers(7, 24)),
    "curves": (lambda x: F.gelu(x) + F.silu(x) - x.erf(), numbers(3, 50)),
    "views": (lambda x: (x.t()[1:] + x.t()[:-1]).clone(), numbers(4, 9)),
    "rows": (lambda x, i: x[i] * 2, numbers(9, 4), genesis.tensor([3, 0, 8, 3])),
    "empty sums": (lambda x: (x.sum(1), x.prod(1)), numbers(3, 0)),
    "whole numbers": (lambda x: (x * 3 // 2, x.amin(0)), genesis.arange(12).reshape(3, 4)),
    "branches": (lambda x: genesis.where(x > 0, x, x * 0.1).clamp(max=1.0), numbers(100)),
}


@pytest.mark.parametrize("name", CASES)
def test_the_text_computes_what_the_kernel_does(name):
    function, *args = CASES[name]
    step = Step(jit.trace(function, *args).program)
    kernels = {stage.kernel.name: (stage, stage.kernel) for phase in step.plan.phases for stage in phase.stages}
    written = [
        (stage, kernel)
        for stage, kernel in kernels.values()
        if kernel.nest is not None and not kernel.name.startswith("flat_")
    ]
    assert written
    rng, changed = np.random.default_rng(1), False
    for stage, kernel in written:
        sizes = [1 + sum([(n - 1) * s for n, s in zip(v.spec.shape, _strides(v), strict=True)]) for v in stage.operands]
        arrays = [_some(rng, max(size, 1), dtype) for size, dtype in zip(sizes, kernel.nest.operands, strict=True)]
        expected, ours = [a.copy() for a in arrays], [a.copy() for a in arrays]
        scope = functions()
        exec(listing(kernel.nest, "kernel"), scope)
        for chunk in range(kernel.chunks):
            kernel.python(expected, chunk)
            with np.errstate(all="ignore"):
                scope["kernel"](*ours, chunk)
        for a, b in zip(expected, ours, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
        changed |= any([not np.array_equal(a, b, equal_nan=True) for a, b in zip(ours, arrays, strict=True)])
    assert changed


def _strides(var):
    from genesis.arrays.spec import strides_of

    return strides_of(var.spec)


def _some(rng, size, dtype):
    return rng.normal(size=size).astype(dtype) if dtype.kind == "f" else rng.integers(0, 4, size).astype(dtype)


PRODUCTS = {
    "a layer": (lambda x, w, b: F.linear(x, w, b), numbers(9, 20), numbers(13, 20), numbers(13)),
    "a matrix times another": (lambda x, w: x @ w, numbers(70, 20), numbers(20, 50)),
    "transposed": (lambda x, w: x.t() @ w.t(), numbers(20, 70), numbers(50, 20)),
    "several": (lambda x, w: x @ w, numbers(2, 3, 9, 5), numbers(2, 3, 5, 17)),
    "sums of products": (
        lambda x, y: (matmul_tn(x[0], y[0]) + matmul_tn(x[2], y[2])) + (matmul_tn(x[1], y[1]) + matmul_tn(x[3], y[3])),
        numbers(4, 9, 70),
        numbers(4, 9, 20),
    ),
    "one row": (lambda x, w: F.linear(x, w), numbers(1, 40), numbers(64, 40)),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_the_text_of_a_product(name):
    function, *args = PRODUCTS[name]
    step = Step(jit.trace(function, *args).program)
    stages = [stage for phase in step.plan.phases for stage in phase.stages if stage.kernel.listing is not None]
    assert len(stages) == 1
    (stage,), rng = stages, np.random.default_rng(2)
    arrays = [rng.normal(size=int(np.prod(v.spec.shape))).astype(np.float32) for v in stage.operands]
    expected, ours, scope = [a.copy() for a in arrays], [a.copy() for a in arrays], functions()
    exec(step.explain().kernels[stage.kernel.name].loops.replace(stage.kernel.name, "kernel"), scope)
    for chunk in range(stage.kernel.chunks):
        stage.kernel.python(expected, chunk)
        scope["kernel"](*ours, chunk)
    for a, b in zip(expected, ours, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
    assert not np.array_equal(ours[2], arrays[2])


@pytest.mark.parametrize("together", [1, 2])
def test_the_text_of_a_product_whose_second_matrix_is_in_panels(together):
    p = tiles.Product(5, 7, 6, (0, 6, 1), (0, 7, 1), (0, 7, 1), None, panels=True)
    plan = tiles.Plan(p, 4)
    rng, width = np.random.default_rng(3), plan.width
    a, b = rng.normal(size=(5, 6)).astype(np.float32), rng.normal(size=(6, 7)).astype(np.float32)
    padded = np.zeros((6, -(-7 // width) * width), np.float32)
    padded[:, :7] = b
    panels = padded.reshape(6 // together, together, -1, width).transpose(2, 0, 3, 1)
    scope, out = functions(), np.zeros(35, np.float32)
    exec(of_product(p, plan, together, "kernel"), scope)
    for chunk in range(plan.chunks):
        scope["kernel"](a.ravel(), panels.ravel(), out, chunk)
    np.testing.assert_allclose(out.reshape(5, 7), a @ b, rtol=1e-5, atol=1e-5)
