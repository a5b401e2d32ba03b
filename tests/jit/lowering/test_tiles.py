"""Tiles of products of float32 matrices: what they are made of, and what they compute."""

from __future__ import annotations

import re

import numpy as np
import pytest

import genesis
from genesis import jit
from genesis.jit.lowering import transposes
from genesis.jit.lowering.products import kernel
from genesis.jit.lowering.step import Step
from genesis.jit.lowering.tiles import FEWER, TERMS, Plan, Product, Tiles, code
from genesis.kernels.llvm import loops, native
from genesis.kernels.native import runtime
from genesis.nn import functional as F
from genesis.ops.products.linear import matmul_tn

pytestmark = pytest.mark.skipif(native.host() is None, reason="there is no llvmlite")


def product(m, n, k, lines=False, adds=False):
    """``lines``: the terms of the first matrix are lines of memory."""
    a = (0, 1, m) if lines else (0, k, 1)
    return Product(m, n, k, a, (0, n, 1), (0, n, 1), None, (), adds)


TILES = [(16, 64, (6, 4)), (16, 128, (8, 3)), (16, 48, (8, 3)), (16, 80, (8, 3)), (16, 32, (12, 2)), (8, 128, (6, 2)), (8, 8, (8, 1))]  # fmt: skip
PROCESSORS = {16: ("skylake-avx512", "-prefer-256-bit"), 8: ("haswell", "")}


@pytest.mark.parametrize(("lanes", "n", "tile"), TILES)
@pytest.mark.parametrize("lines", [False, True])
def test_sums_stay_in_registers(lanes, n, tile, lines, monkeypatch):
    """As many multiplications as a tile has vectors, in one loop, and nothing of it on the stack."""
    monkeypatch.setattr(loops, "width", lambda: 4 * lanes)  # as that processor has them
    llvm, p = native.binding(), product(96, n, 512, lines)
    plan = Plan(p, lanes)
    assert (plan.rows, plan.vectors) == tile
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    cpu, features = PROCESSORS[lanes]
    machine = llvm.Target.from_triple("x86_64-unknown-linux-gnu").create_target_machine(cpu, features, 2)
    assembly = machine.emit_assembly(llvm.parse_assembly(code("k", p, plan, Tiles(lanes, p)))).splitlines()
    multiplied = "vfmadd231ps.*%" + ("zmm" if lanes == 16 else "ymm")
    at = [i for i, line in enumerate(assembly) if re.search(multiplied, line)][: tile[0] * tile[1]]
    inside = assembly[at[0] : at[-1]]
    assert len(at) == tile[0] * tile[1]
    assert not [line for line in inside if re.search(r"\(%rsp|^\.L", line)]


@pytest.mark.parametrize("n", [64, 128])
def test_few_blocks_of_rows_are_alike(n):
    """Where threads could have blocks of columns of several widths, or one block of rows more than the other."""
    plan = Plan(product(512, n, 2048, lines=True), 16)
    assert (plan.blocks, plan.columns, plan.chunks) == (6, 1, 6)


def test_what_is_asked_for_ahead_are_rows_of_the_second_matrix():
    p = product(96, 48, 512, lines=True)
    assert code("k", p, Plan(p, 16), Tiles(16, p)).count("call void @llvm.prefetch") == 3


def test_of_what_is_copied_with_avx2_the_next_panel_is_asked_for_and_rows_some_terms_later():
    p = product(96, 48, 512, lines=True)
    plan = Plan(p, 8)
    assert plan.copies_a and plan.copies_b
    asked = code("k", p, plan, Tiles(8, p)).count("call void @llvm.prefetch")
    assert asked == plan.high // 16 + plan.width // 16 == 6 + 1


@pytest.mark.parametrize("k", [1, FEWER - 1, FEWER, FEWER + 1, TERMS + 3, 700])
@pytest.mark.parametrize("n", [64, 16, 200])
@pytest.mark.parametrize("lines", [False, True])
@pytest.mark.parametrize("adds", [False, True])
def test_blocks_of_terms(k, n, lines, adds):
    p, rng = product(100, n, k, lines, adds), np.random.default_rng(0)
    a, b, c = (rng.normal(size=shape).astype(np.float32) for shape in ((100, k), (k, n), (100, n)))
    expected = a.astype(np.float64) @ b + c * adds
    bound = (k + 2) * 2.0**-24 * (np.abs(a) @ np.abs(b) + np.abs(c))  # of any order of the terms
    held = [np.ascontiguousarray(a.T) if lines else a, b, c, *([c] if adds else [])]
    made = kernel(f"product_of_{k}_{n}_{lines}_{adds}", p, loops.width() // 4)
    addresses = np.array([array.ctypes.data for array in held], np.int64)
    table = runtime.Table([(native.address(made.name, made.code), addresses.ctypes.data, made.chunks)])
    runtime.run(table)
    assert (np.abs(c - expected) <= bound).all()


@pytest.mark.parametrize("rows", [1, 7, 8, 9, 16, 33])
@pytest.mark.parametrize("columns", [1, 7, 8, 9, 16, 31])
def test_matrices_are_turned_around_in_squares_that_are_whole_or_not(rows, columns):
    """Nothing behind the result is written to."""
    lines = np.random.default_rng(0).normal(size=(rows, columns + 3)).astype(np.float32)
    out = np.full(rows * columns + 64, np.nan, np.float32)
    made = transposes.kernel(f"turned_{rows}_{columns}", rows, columns, 2, columns + 3, ())
    addresses = np.array([lines.ctypes.data, out.ctypes.data], np.int64)
    table = runtime.Table([(native.address(made.name, made.code), addresses.ctypes.data, made.chunks)])
    runtime.run(table)
    assert np.array_equal(out[: rows * columns].reshape(columns, rows), lines[:, 2 : 2 + columns].T)
    assert np.isnan(out[rows * columns :]).all()


@pytest.mark.parametrize(("rows", "phases"), [(64, 1), (128, 1), (250, 2)])
def test_weights_that_one_block_of_rows_reads_are_no_phase_of_their_own(rows, phases):
    """Panels are turned around as they are copied, which each block of rows does."""
    x, w = genesis.randn(rows, 300), genesis.randn(100, 300)
    step = Step(jit.optimized(jit.trace(F.linear, x, w)).program)
    assert len(step.plan.phases) == phases
    np.testing.assert_allclose(genesis.compile(F.linear)(x, w).numpy(), x.numpy() @ w.numpy().T, 1e-4, 1e-4)


def in_tree(values):
    half = len(values) // 2
    return in_tree(values[:half]) + in_tree(values[half:]) if half else values[0]


def in_a_row(values):
    return in_a_row(values[:-1]) + values[-1] if len(values) > 1 else values[0]


def of_one(x, y):
    return matmul_tn(x, y)


SUMS = [
    (in_tree, 2, 2, {"tree": 1}),
    (in_tree, 4, 32, {"tree": 1}),
    (in_tree, 8, 5, {"tree": 1}),
    (in_tree, 4, FEWER, {"tree": 1}),
    (in_tree, 8, FEWER, {"tree": 2}),  # all terms together are too many
    (in_tree, 4, FEWER + 1, {}),
    (in_tree, 3, 32, {"tree": 1, "add": 1}),
    (in_a_row, 4, 32, {"tree": 1, "add": 2}),
]


@pytest.mark.parametrize(("order", "count", "k", "expected"), SUMS)
@pytest.mark.parametrize(("m", "n"), [(40, 24), (257, 301), (5, 4)])
def test_products_of_columns_that_are_only_added_are_sums_with_the_same_bits(order, count, k, expected, m, n):
    genesis.manual_seed(0)
    xs, ys = genesis.randn(count, k, m), genesis.randn(count, k, n)

    def total(xs, ys):
        return order([matmul_tn(x, y) for x, y in zip(xs, ys, strict=True)])

    step = Step(jit.optimized(jit.trace(total, xs, ys)).program)
    ops = [call.op for phase in step.plan.phases for call in phase.calls]
    assert {name: ops.count(f"matmul_tn.{name}") for name in ("tree", "add") if f"matmul_tn.{name}" in ops} == expected
    one = genesis.compile(of_one)
    products = [one(x.clone(), y.clone()).numpy() for x, y in zip(xs, ys, strict=True)]
    (got,) = step.run([xs.numpy(), ys.numpy()])
    assert np.array_equal(got, order(products))


def test_sums_of_products_that_lie_apart_and_transposed():
    genesis.manual_seed(0)
    x, wide, ys = genesis.randn(4, 40, 24), genesis.randn(24, 60), genesis.randn(2, 24, 20)

    def total(x, wide, ys):  # terms of the first matrices lie beside each other, rows of the second ones apart
        return matmul_tn(x[0].mT, wide[:, 20:40]) + matmul_tn(x[3].mT, wide[:, 40:])

    step = Step(jit.optimized(jit.trace(total, x, wide, ys)).program)
    assert [call.op for phase in step.plan.phases for call in phase.calls] == ["matmul_tn.tree"]
    (got,) = step.run([x.numpy(), wide.numpy(), ys.numpy()])
    expected = x[0].double() @ wide[:, 20:40].double() + x[3].double() @ wide[:, 40:].double()
    np.testing.assert_allclose(got, expected.numpy(), 1e-5, 1e-5)

    def others(x, wide, ys):  # they do not lie alike
        return matmul_tn(x[0].mT, wide[:, 20:40]) + matmul_tn(x[3].mT, ys[0])

    step = Step(jit.optimized(jit.trace(others, x, wide, ys)).program)
    assert "matmul_tn.add" in [call.op for phase in step.plan.phases for call in phase.calls]


def test_products_that_others_read_or_that_lie_otherwise_are_no_such_sums():
    x, y, z = genesis.randn(8, 16), genesis.randn(8, 12), genesis.randn(16, 12)

    def ops_of(function):
        step = Step(jit.optimized(jit.trace(function, x, y, z)).program)
        return [call.op for phase in step.plan.phases for call in phase.calls]

    def twice(x, y, z):
        a = matmul_tn(x, y)
        return a + z, a * 2

    def doubled(x, y, z):
        a = matmul_tn(x, y)
        return a + a

    for function in (
        twice,
        doubled,
        lambda x, y, z: matmul_tn(x, y) + z[0],
        lambda x, y, z: matmul_tn(x, y) + z.reshape(12, 16).mT,
        lambda x, y, z: matmul_tn(x, y) + 1,
    ):
        assert "matmul_tn.add" not in ops_of(function)
    assert "matmul_tn.add" in ops_of(lambda x, y, z: z + matmul_tn(x, y))
