"""Normal numbers in one native call: the bits of NumPy's form, and the same way through the stream."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
from genesis.core.graph import normals
from genesis.core.graph.generator import SeededStream, seeded_stream
from genesis.kernels.cpu import draws
from genesis.kernels.cpu.compiled import LARGE
from genesis.kernels.llvm import native
from genesis.ops.learning.dropout import dropout_factors

needs_llvm = pytest.mark.skipif(native.host() is None, reason="no llvmlite")
both = pytest.mark.parametrize("dtype", [np.dtype(np.float32), np.dtype(np.float64)], ids=str)
MANY = LARGE["for threads"] + 5


def in_both_ways(monkeypatch, draw):
    """What a draw gives, by NumPy and natively."""
    with monkeypatch.context() as patch:
        patch.setattr(normals, "maker", lambda dtype: None)
        want = draw()
    assert normals.maker is draws.maker
    return want, draw()


@needs_llvm
@both
def test_the_bits_of_numpy_in_every_size(monkeypatch, dtype):
    def draw():
        g = genesis.Generator().manual_seed(5)
        return [g.normal((n,), dtype) for n in (*range(1001), 1023, 1024, 1025, 2051, LARGE["elements"], 99_999)]

    for want, got in zip(*in_both_ways(monkeypatch, draw), strict=True):
        assert got.dtype is dtype
        assert got.shape == want.shape
        assert got.tobytes() == want.tobytes()


@needs_llvm
@both
@pytest.mark.parametrize("start", [(2**64 - 1, 2**64 - 3), (2**63 + 5, 7), (3, 2**127 + 2**64 - 1)])
def test_the_bits_of_numpy_anywhere_in_a_stream(monkeypatch, dtype, start):
    def draw(count):
        g = genesis.Generator().move_to(*start)
        return g.normal((count,), dtype)

    for count in (5, 64, 5001, MANY):
        want, got = in_both_ways(monkeypatch, lambda count=count: draw(count))
        assert got.tobytes() == want.tobytes()


@needs_llvm
@both
def test_threads_change_nothing(monkeypatch, dtype):
    before = genesis.get_num_threads()
    g = genesis.Generator()
    try:
        genesis.set_num_threads(3)
        want, got = in_both_ways(monkeypatch, lambda: g.manual_seed(2).normal((MANY,), dtype))
    finally:
        genesis.set_num_threads(before)
    assert got.tobytes() == want.tobytes()


def mixed_draws():
    genesis.manual_seed(11)
    return [
        genesis.randn(3), genesis.rand(3), genesis.randn(2, 5, dtype=genesis.float64), genesis.randint(9, (6,)),
        genesis.randn(0), genesis.randn(()), genesis.randn(7, dtype=genesis.bfloat16), genesis.rand(1),
        genesis.empty(4, 3).normal_(1.0, 2.0), genesis.randn(5, dtype=genesis.complex64), genesis.randperm(6),
        genesis.empty(9).t().normal_(), genesis.empty(4, 6)[:, ::2].normal_(), genesis.get_rng_state(),
    ]  # fmt: skip


def assert_same(a, b):
    assert [x.shape for x in a] == [y.shape for y in b]
    assert all(genesis.equal(x, y) for x, y in zip(a, b, strict=True))


@needs_llvm
def test_other_draws_go_on_behind_them(monkeypatch):
    assert_same(*in_both_ways(monkeypatch, mixed_draws))


@needs_llvm
def test_a_seeded_stream_moves_on(monkeypatch):
    def draw():
        token = seeded_stream.set(SeededStream(4))
        try:
            return [genesis.randn(5), genesis.rand(2), genesis.randn(5)]
        finally:
            seeded_stream.reset(token)

    want, got = in_both_ways(monkeypatch, draw)
    assert_same(want, got)
    assert not genesis.equal(got[0], got[2])


def test_without_llvmlite_numpy_makes_them(monkeypatch):
    want = mixed_draws()
    monkeypatch.setattr(native, "host", lambda: None)
    monkeypatch.setattr(draws, "_maker", draws._maker.__wrapped__)
    assert normals.maker(np.dtype(np.float32)) is None
    assert_same(want, mixed_draws())


@needs_llvm
@pytest.mark.parametrize("start", [(5, 0), (2**64 - 1, 2**64 - 3), (2**63 + 5, 7), (3, 2**127 + 2**64 - 1)])
@pytest.mark.parametrize("dtype", [np.dtype(np.float32), np.dtype(np.float64), "dropout"], ids=str)
def test_uniform_numbers_and_factors_of_dropout_have_the_bits_of_numpy(monkeypatch, dtype, start):
    def draw():
        g, kept = genesis.Generator().move_to(*start), []
        for n in (*range(70), 1000, LARGE["elements"] + 3, MANY):
            for p in (0.1, 0.5, 0.9):
                drops = dtype == "dropout"
                kept.append(
                    dropout_factors.op.kernel(g, (n,), np.dtype(np.float32), p) if drops else g.uniform((n,), dtype)
                )
        return [*kept, np.array(str(g.key_and_block()))]

    with monkeypatch.context() as patch:
        patch.setattr(normals, "uniform_maker", lambda *_: None)
        want = draw()
    assert normals.uniform_maker is draws.uniform_maker
    for a, b in zip(want, draw(), strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
