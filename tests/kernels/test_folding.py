"""Elements moved between channels and places in one copy: what the views make of them, and PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
from genesis.testing.kernels import meanings_only

CALLS = [
    (lambda lib, x: lib.pixel_shuffle(x, 2), (2, 8, 3, 5)),
    (lambda lib, x: lib.pixel_shuffle(x, 3), (9, 1, 2)),
    (lambda lib, x: lib.pixel_shuffle(x, 1), (2, 3, 2, 2)),
    (lambda lib, x: lib.pixel_shuffle(x, 2), (2, 3, 4, 2, 2)),
    (lambda lib, x: lib.pixel_unshuffle(x, 2), (2, 3, 4, 6)),
    (lambda lib, x: lib.pixel_unshuffle(x, 3), (1, 3, 6)),
]
EMPTY = [  # of which PyTorch has no gradient
    (lambda lib, x: lib.pixel_shuffle(x, 2), (0, 4, 2, 2)),
    (lambda lib, x: lib.pixel_unshuffle(x, 2), (2, 3, 0, 6)),
]


@pytest.mark.parity
@pytest.mark.parametrize(("run", "shape"), CALLS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_results_and_gradients_are_those_of_pytorch(run, shape, dtype):
    torch = pytest.importorskip("torch")
    x, found = np.random.default_rng(0).standard_normal(shape).astype(dtype), []
    for lib in (genesis, torch):
        for flip in (False, True):
            leaf = lib.tensor(x, requires_grad=True)
            out = run(lib, leaf.flip(0).transpose(-1, -2).contiguous().transpose(-1, -2).flip(0) if flip else leaf)
            g = np.random.default_rng(1).standard_normal(tuple(out.shape)).astype(dtype)
            out.backward(lib.tensor(g))
            found.append((out.detach().numpy(), leaf.grad.numpy()))
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("run", "shape"), CALLS + EMPTY)
@pytest.mark.parametrize("dtype", [genesis.bfloat16, genesis.float16, genesis.int8, genesis.bool])
def test_every_dtype_is_moved_as_by_views(run, shape, dtype):
    x = genesis.randint(-9, 9, shape).to(dtype)
    found = run(genesis, x)
    with meanings_only():
        exact = run(genesis, x)
    assert found.dtype is dtype and found.is_contiguous() and genesis.equal(found, exact)


@pytest.mark.parametrize(("run", "shape"), EMPTY)
def test_the_gradient_of_nothing(run, shape):
    x = genesis.zeros(shape, requires_grad=True)
    run(genesis, x).sum().backward()
    assert x.grad.shape == shape


def test_a_result_has_memory_of_its_own():
    x = genesis.zeros(1, 1, 2, 2)
    genesis.pixel_shuffle(x, 1).add_(1)
    genesis.pixel_unshuffle(x, 1).add_(1)
    assert not x.any()


def test_the_second_derivative_and_transforms_are_those_of_the_views():
    x = genesis.rand(1, 4, 2, 2, dtype=genesis.float64, requires_grad=True)
    assert genesis.autograd.gradgradcheck(lambda x: genesis.pixel_shuffle(x, 2) ** 3, (x,))
    batches = genesis.rand(3, 4, 2, 2)
    mapped = genesis.func.vmap(lambda x: genesis.pixel_shuffle(x, 2))(batches)
    assert genesis.equal(mapped, genesis.pixel_shuffle(batches, 2))


def test_wrong_arguments_are_explained():
    with pytest.raises(RuntimeError, match="3 channels are not a multiple of 2² = 4"):
        genesis.pixel_shuffle(genesis.ones(1, 3, 2, 2), 2)
    with pytest.raises(TypeError, match="upscale_factor must be an integer"):
        genesis.pixel_shuffle(genesis.ones(1, 4, 2, 2), 2.0)
    with pytest.raises(RuntimeError, match="must be positive"):
        genesis.pixel_unshuffle(genesis.ones(1, 4, 2, 2), 0)
