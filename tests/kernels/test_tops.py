"""The few largest numbers of rows as compiled loops: what a stable sort gives."""

from __future__ import annotations

import re

import numpy as np
import pytest

import genesis
from genesis.kernels.cpu import tops
from genesis.kernels.llvm import loops, native
from genesis.kernels.llvm.tops import of_rows

rng = np.random.default_rng(0)
needs_llvm = pytest.mark.skipif(not loops.available(), reason="the loops need llvmlite")

KINDS = {
    "normal": lambda x: x,
    "equal ones": lambda x: np.round(x) / 2,
    "zeros of both signs": lambda x: np.where(x < 0, np.float32(-0.0), np.float32(0.0)),
    "ascending": lambda x: np.sort(x, 1),
    "descending": lambda x: -np.sort(x, 1),
    "nan and infinities": lambda x: np.select(
        [x > 1, x < -1, abs(x) < 0.1, abs(x) < 0.2], [np.inf, -np.inf, np.nan, -np.nan], x
    ).astype(np.float32),
    "far apart": lambda x: np.ldexp(x, rng.integers(-140, 120, x.shape)).astype(np.float32),
}


def in_order(x, k, largest):
    """The positions by a stable sort, nan the largest and -0 equal to 0."""
    rows = []
    for row in x:
        key = [(1, 0.0) if v != v else (0, v + 0.0) for v in row.tolist()]
        order = sorted(range(len(row)), key=lambda i: (key[i], -i) if largest else (key[i], i), reverse=largest)
        rows.append(order[:k])
    return np.array(rows, np.int64).reshape(len(x), k)


@needs_llvm
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("largest", [True, False])
def test_what_a_stable_sort_gives(kind, largest):
    for rows, length in ((3, 1), (2, 5), (4, 8), (3, 31), (2, 200), (0, 9)):
        x = KINDS[kind](rng.standard_normal((rows, length)).astype(np.float32))
        for k in {1, min(3, length), min(16, length)}:
            assert tops._fits(x, k, 1, largest)
            values, positions = genesis.topk(genesis.tensor(x), k, 1, largest)
            want = in_order(x, k, largest)
            np.testing.assert_array_equal(positions.numpy(), want)
            np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x, want, 1))


@needs_llvm
def test_threads_change_nothing_and_gradients_go_where_the_values_were():
    x, before = genesis.randn(300, 400, requires_grad=True), genesis.get_num_threads()
    try:
        results = []
        for threads in (1, 2, 3):
            genesis.set_num_threads(threads)
            results.append(x.topk(5).indices.tolist())
    finally:
        genesis.set_num_threads(before)
    assert results[0] == results[1] == results[2]
    (g,) = genesis.autograd.grad(x.topk(5).values.sum(), x)
    want = np.zeros(x.shape, np.float32)
    np.put_along_axis(want, np.array(results[0]), 1.0, 1)
    np.testing.assert_array_equal(g.numpy(), want)


@pytest.mark.parametrize("dtype", [genesis.float64, genesis.bfloat16, genesis.int64, genesis.float32])
def test_other_dtypes_layouts_and_longer_lists(dtype):
    x = genesis.tensor(rng.permutation(400).reshape(20, 20) - 200).to(dtype)
    for y in (x, x.t(), x[::2], x[:, ::3], x.reshape(2, 10, 20)):
        for dim in range(y.ndim):
            for k in (2, min(20, y.shape[dim])):
                if k <= y.shape[dim]:
                    values, positions = y.topk(k, dim)
                    want = np.flip(np.argsort(y.float().numpy(), dim, kind="stable"), dim).take(range(k), dim)
                    np.testing.assert_array_equal(positions.numpy(), want)
                    assert values.equal(y.gather(dim, positions))


PROCESSORS = {
    "skylake-avx512": ("x86_64", 16, r"vpcmp\w*d.*%zmm"),
    "haswell": ("x86_64", 8, r"vpcmpgtd.*%ymm"),
    "neoverse-n1": ("aarch64", 4, r"cmg[te].*4s"),
}


@pytest.mark.skipif(not loops.available(), reason="no llvmlite")
@pytest.mark.parametrize("processor", PROCESSORS)
def test_vectors_are_compared_at_once_and_nothing_is_stored_by_mask(processor):
    machine, lanes, compared = PROCESSORS[processor]
    llvm = native.binding()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    features = "-prefer-256-bit" if lanes == 16 else ""
    made = llvm.Target.from_triple(f"{machine}-unknown-linux-gnu").create_target_machine(processor, features, 2)
    text = made.emit_assembly(llvm.parse_assembly(of_rows(lanes, True)))
    assert re.search(compared, text)
    assert "maskmov" not in text
