"""Products of float32 matrices by native workers: any sizes and layouts, the same bits in any number of threads."""

from __future__ import annotations

import itertools
import re
from concurrent.futures import ThreadPoolExecutor

import emulated_units
import numpy as np
import pytest

import genesis
from genesis.base import blas
from genesis.kernels.cpu import gemm
from genesis.kernels.llvm import gemm as code
from genesis.kernels.llvm import loops, native, rates, units
from genesis.kernels.native import runtime

pytestmark = pytest.mark.skipif(not loops.available(), reason="no llvmlite, or a processor without fma")

SIZES = [
    (1, 1, 1), (2, 64, 128), (5, 7, 3), (6, 64, 129), (7, 1000, 129), (33, 64, 257), (64, 10, 128), (72, 48, 40),
    (73, 32, 300), (200, 129, 300), (300, 300, 130), (1200, 70, 33), (13, 250, 333), (50, 303, 400),
]  # fmt: skip


@pytest.fixture(params=[1, 2, 5])
def threads(request):
    before = genesis.get_num_threads()
    genesis.set_num_threads(request.param)
    yield request.param
    genesis.set_num_threads(before)


def layouts(x):
    """The same numbers in other orders of memory."""
    turned = np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)
    spread = np.full((*x.shape[:-1], 2 * x.shape[-1] + 1), np.nan, np.float32)[..., 1::2]
    spread[...] = x
    return [x, turned, np.ascontiguousarray(x[..., ::-1, ::-1])[..., ::-1, ::-1], spread]


def check(found, a, b, more=0.0):
    exact = a.astype(np.float64) @ b.astype(np.float64) + more
    bound = 1e-7 * a.shape[-1] * (np.abs(a).astype(np.float64) @ np.abs(b)) + 1e-6
    assert found.dtype == np.float32 and found.flags.c_contiguous
    assert (np.abs(found - exact) <= bound).all()


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_sizes_and_layouts(threads, size):
    m, n, k = size
    rng = np.random.default_rng(m)
    a, b, bias = (rng.standard_normal(s).astype(np.float32) for s in ((m, k), (k, n), (n,)))
    for x, y in itertools.product(layouts(a), layouts(b)):
        check(gemm.product(x, y), a, b)
        check(gemm.product(x, y, bias), a, b, bias)
    check(gemm.product(a, b, np.repeat(bias, 2)[::2]), a, b, bias)


@pytest.mark.parametrize(
    "leads", [((3,), (3,)), ((3,), ()), ((), (3,)), ((2, 1), (3,)), ((40,), (40,)), ((40, 2), (40, 1))], ids=str
)
@pytest.mark.parametrize("size", [(5, 7, 3), (40, 64, 70), (90, 33, 129)], ids=str)
def test_batches(threads, leads, size):
    m, n, k = size
    rng = np.random.default_rng(0)
    a, b, bias = (rng.standard_normal(s).astype(np.float32) for s in ((*leads[0], m, k), (*leads[1], k, n), (n,)))
    for x, y in itertools.product(layouts(a)[:2], layouts(b)[:2]):
        check(gemm.product(x, y), a, b)
        check(gemm.product(x, y, bias), a, b, bias)


def test_bits_do_not_depend_on_how_the_second_matrix_lies_in_memory():
    """Also where it lies in columns and the first one has few rows, so that the other product is computed, and turned."""
    rng = np.random.default_rng(0)
    for m, n, k in [*SIZES, (64, 256, 784)]:
        a, b, bias = (rng.standard_normal(s).astype(np.float32) for s in ((m, k), (k, n), (n,)))
        for more in ((), (bias,)):
            bits = {gemm.product(x, y, *more).tobytes() for x in layouts(a) for y in layouts(b)}
            assert len(bits) == 1


def test_the_same_bits_in_any_number_of_threads():
    before = genesis.get_num_threads()
    rng = np.random.default_rng(0)
    cases = [((400, 300), (300, 200)), ((30, 700), (700, 640)), ((3000, 64), (64, 70)), ((50, 64, 70), (50, 70, 40))]
    for shapes in cases:
        a, b = (rng.standard_normal(s).astype(np.float32) for s in shapes)
        results = []
        for number in (1, 2, 3, 4, 5):
            genesis.set_num_threads(number)
            results += [gemm.product(a, b) for _ in range(5)]
        assert len({r.tobytes() for r in results}) == 1
    genesis.set_num_threads(before)


def test_operations_have_the_same_bits_in_any_number_of_threads():
    before = genesis.get_num_threads()
    genesis.manual_seed(0)
    x, w, bias = genesis.randn(150, 70), genesis.randn(90, 70), genesis.randn(90)
    many, others = genesis.randn(300, 32, 32), genesis.randn(300, 32, 32)
    results = []
    for number in (1, 2, 3, 5):
        genesis.set_num_threads(number)
        some = genesis.nn.functional.linear(x, w, bias), x @ w.T, many @ others, many @ others[0], many[0].mT @ others
        results.append([y.numpy().tobytes() for y in some])
    genesis.set_num_threads(before)
    assert all(r == results[0] for r in results)


def test_nan_and_infinity_go_their_way(threads):
    a, b = np.ones((100, 64), np.float32), np.ones((64, 70), np.float32)
    a[3, 4], a[30, 2], b[5, 69] = np.inf, np.nan, np.nan
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(gemm.product(a, b), a @ b)


def test_products_in_many_threads_at_once(threads):
    rng = np.random.default_rng(0)
    pairs = [[rng.integers(-4, 5, s).astype(np.float32) for s in ((m, 90), (90, 300))] for m in range(20, 200, 9)]
    with ThreadPoolExecutor(6) as pool:
        for (a, b), found in zip(pairs * 20, pool.map(lambda p: gemm.product(*p), pairs * 20), strict=True):
            assert (found == a @ b).all()


def test_shapes_that_do_not_fit():
    for shapes in [((40, 50), (51, 60)), ((2, 40, 50), (3, 50, 60))]:
        with pytest.raises(ValueError, match=r"matmul|shape|dimension"):
            gemm.product(*[np.ones(s, np.float32) for s in shapes])


@pytest.mark.skipif(blas._openblas() is None, reason="NumPy uses another BLAS")
def test_large_products_of_float32_are_these(monkeypatch, threads):
    calls = []
    monkeypatch.setattr(
        blas,
        "own",
        [blas.Own(lambda: True, lambda *args: calls.append(1) or gemm.product(*args), gemm.product_in_pairs)],
    )
    for name in ("product_and_bias", "_is_own", "_large"):
        function = getattr(blas, name)
        monkeypatch.setitem(function.__globals__, "own", blas.own)
    x = genesis.randn(80, 90)
    w, bias = genesis.randn(100, 90, requires_grad=True), genesis.randn(100, requires_grad=True)
    out = genesis.nn.functional.linear(x, w, bias)
    np.testing.assert_allclose(
        out.detach().numpy(), x.numpy() @ w.detach().numpy().T + bias.detach().numpy(), atol=1e-4
    )
    assert len(calls) == 1
    x.double() @ w.detach().double().T
    x[:2] @ w.detach()[:3].T
    assert len(calls) == 1
    out.sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), np.ones((80, 100), np.float32).T @ x.numpy(), atol=1e-4)
    assert len(calls) == 2
    genesis.randn(8, 300).T @ genesis.randn(8, 200)  # the gradient of a weight from few rows
    assert len(calls) == 3


# ---- phases of a table


@pytest.mark.parametrize("parts", [1, 2, 7, 40])
@pytest.mark.parametrize("more", [False, True])
def test_a_product_as_two_phases(threads, parts, more):
    rng = np.random.default_rng(0)
    for m, n, k in SIZES:
        a, b, bias = (rng.standard_normal(s).astype(np.float32) for s in ((m, k), (n, k), (n,)))
        memory = np.full((m, n + 3), 2, np.float32)
        out = memory[:, :n]
        grid = gemm.Grid.of(m, n, k, parts)
        packed = np.empty(grid.packed, np.float32)
        addresses = [x.ctypes.data for x in (a, b, out, packed)]
        block = gemm.block([*addresses, 0 if more else bias.ctypes.data], (m, n, k), (k, 1, 1, k, n + 3), grid, more)
        given = block.ctypes.data
        functions = gemm.functions()
        rows = [(functions.pack, given, grid.pack_chunks), (functions.multiply, given, grid.chunks)]
        runtime.run(runtime.Table(rows))
        exact = a.astype(np.float64) @ b.T + (2 if more else bias)
        assert np.abs(out - exact).max() <= 1e-6 * k
        assert (memory[:, n:] == 2).all()


# ---- pairs of bfloat16 numbers


@pytest.fixture(params=["dpbf16ps", "tdpbf16ps"])
def in_pairs(request, monkeypatch):
    """By units of the processor, or emulated ones."""
    if loops.width() != 64:
        pytest.skip("there are no vectors of 16 numbers")
    with emulated_units.unit(request.param, monkeypatch):
        monkeypatch.setattr(gemm, "LARGE", 0)
        yield request.param


PAIRS = [(16, 16, 128), (17, 19, 130), (40, 64, 96), (72, 49, 258), (200, 129, 300), (1200, 70, 34)]
PAIRS += [(33, 48, 16), (47, 16, 26), (64, 65, 1046)]  # fewer terms than a register has; more than a panel stays for


def halves(*shape, seed=0):
    """Bfloat16 numbers of many sizes."""
    rng = np.random.default_rng(seed)
    return genesis.tensor((rng.normal(size=shape) * 2.0 ** rng.integers(-20, 21, shape)).astype(np.float32)).bfloat16()


def near(found, x, y, more=0.0):
    """Products of two of them are float32 numbers; a sum of k of those is off by k 2^-24 of what is added, taken positive."""
    exact, terms = (
        x.astype(np.float64) @ y.astype(np.float64),
        np.abs(x).astype(np.float64) @ np.abs(y).astype(np.float64),
    )
    assert found.dtype == np.float32
    assert (np.abs(found - exact - more) <= (x.shape[-1] + 1) * 2.0**-24 * (terms + np.abs(more))).all()


@pytest.mark.parametrize("size", PAIRS, ids=str)
def test_products_in_pairs(threads, size, in_pairs):
    m, n, k = size
    a, b = halves(m, k)._array, halves(n, k, seed=1)._array.T
    bias = np.random.default_rng(2).standard_normal(n).astype(np.float32)
    near(gemm.product_in_pairs(a, b), a, b)
    near(gemm.product_in_pairs(a, b, bias), a, b, bias)
    wide = halves(m, k + 6)._array[:, 2 : k + 2]
    near(gemm.product_in_pairs(wide, b), wide, b)
    near(gemm.product_in_pairs(a.reshape(1, m, k), b)[0], a, b)


def test_bits_of_pairs_do_not_depend_on_threads(in_pairs):
    a, b, seen, before = halves(700, 512)._array, halves(330, 512)._array.T, set(), genesis.get_num_threads()
    try:
        for count in (1, 2, 3, 5):
            genesis.set_num_threads(count)
            seen.add(gemm.product_in_pairs(a, b).tobytes())
    finally:
        genesis.set_num_threads(before)
    assert len(seen) == 1


def test_what_is_not_multiplied_in_pairs(monkeypatch):
    """Odd numbers of terms, terms that do not lie beside each other, small and wrong sizes: it is computed in float32."""
    monkeypatch.setattr(rates, "unit_of_pairs", lambda lanes: "dpbf16ps")
    a, b = halves(64, 66)._array, halves(64, 66)._array.T
    for x, y in ((a[:, :65], b[:65]), (a[:, 1:65], b[:64]), (a.T[:64], b[:64]), (a[:, :64], np.ascontiguousarray(b[:64])),
                 (a[:8], b), (a[0], b), (a, b[:, 0]), (a, b[:64]), (a[:, ::2], b[::2]), (a[:, :0], b[:0])):  # fmt: skip
        assert gemm.product_in_pairs(x, y) is None
    monkeypatch.setattr(rates, "unit_of_pairs", lambda lanes: "")
    assert gemm.product_in_pairs(a, b) is None


def test_linear_under_autocast(in_pairs):
    layer, x = genesis.nn.Linear(64, 48), genesis.randn(5, 32, 64)
    with genesis.autocast("cpu", dtype=genesis.bfloat16):
        y = layer(x)
    x, w, bias = (v.bfloat16().detach().numpy().astype(np.float64) for v in (x, layer.weight, layer.bias))
    exact, terms = x @ w.T + bias, np.abs(x) @ np.abs(w).T + np.abs(bias)
    assert y.dtype == genesis.bfloat16
    assert (np.abs(y.detach().float().numpy() - exact) <= 2.0**-8 * np.abs(exact) * 1.01 + 66 * 2.0**-24 * terms).all()
    with pytest.raises(RuntimeError, match="64 features, weight 32"):
        genesis.nn.functional.linear(genesis.zeros(32, 64).bfloat16(), genesis.zeros(16, 32).bfloat16())


# ---- machine code


X86, ARM = "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"
TARGETS = {
    "avx512": ("fma", X86, "skylake-avx512", "-prefer-256-bit", 16, r"vfmadd231ps.*%zmm", r"\(%rsp"),
    "pairs": ("dpbf16ps", X86, "znver4", "-prefer-256-bit", 16, r"vdpbf16ps.*%zmm", r"\(%rsp"),
    "avx2": ("fma", X86, "haswell", "", 8, r"vfmadd231ps.*%ymm", r"\(%rsp"),
    "neon": ("fma", ARM, "neoverse-n1", "", 4, r"fmla", r"\[sp"),
    "neon of pairs": ("bfdot", ARM, "neoverse-v1", "", 4, r"bfdot", r"\[sp"),
    "neon of pairs, Apple": ("bfdot", ARM, "apple-m2", "", 4, r"bfdot", r"\[sp"),
}  # fmt: skip


def innermost(assembly):
    """The loops without another one inside, as lists of lines."""
    lines = assembly.splitlines()
    starts = {line.split(":")[0]: i for i, line in enumerate(lines) if re.match(r"\.L\w+:", line)}
    jumps = [(i, re.search(r"\s(?:j\w+|b\.\w+|b)\s+(\.L\w+)", line)) for i, line in enumerate(lines)]
    spans = [(starts[j[1]], i) for i, j in jumps if j and starts.get(j[1], i) < i]
    return [lines[a:b] for a, b in spans if not any((c, d) != (a, b) and a <= c and d <= b for c, d in spans)]


def assembly(unit, triple, processor, features, lanes):
    """A unit's code for some processor."""
    llvm = native.binding()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=processor, features=features, opt=2)
    return machine.emit_assembly(llvm.parse_assembly(code.module(lanes, unit)))


def loops_with(instruction, *target):
    """The innermost loops that have it, of a unit's code for some processor."""
    all_loops = innermost(assembly(*target))
    return [loop for loop in all_loops if any(re.search(instruction, line) for line in loop)]


@pytest.mark.parametrize("target", TARGETS)
def test_sums_stay_in_registers(target):
    unit, triple, processor, features, lanes, multiplied, spilled = TARGETS[target]
    rows, columns = units.UNITS[unit].tiles[lanes]
    loops_of_products = loops_with(multiplied, unit, triple, processor, features, lanes)
    assert (
        max(len([line for line in loop if re.search(multiplied, line)]) for loop in loops_of_products) == rows * columns
    )
    for loop in loops_of_products:
        assert not [line for line in loop if re.search(spilled, line)]  # addresses and steps neither


@pytest.mark.parametrize("target", TARGETS)
def test_loops_of_products_begin_where_a_line_of_the_cache_does(target):
    """Else a processor that shares its core fetches them in three pieces, not two: products took a tenth longer."""
    unit, triple, processor, features, lanes, multiplied, _ = TARGETS[target]
    text = assembly(unit, triple, processor, features, lanes)
    aligned = set(re.findall(r"\.p2align\t6[^\n]*\n(\.LBB\w+):", text))
    products = [loop for loop in innermost(text) if any(re.search(multiplied, line) for line in loop)]
    assert {loop[0].split(":")[0] for loop in products} == aligned


def test_registers_of_amx_are_loaded_as_often_as_they_are_multiplied():
    """Four products of two registers of each matrix, and nothing on the stack; fewer at the edges."""
    found = loops_with("tdpbf16ps", "tdpbf16ps", X86, "sapphirerapids", "-prefer-256-bit", 16)
    counts = [tuple([sum([name in line for line in loop]) for name in ("tdpbf16ps", "tileload")]) for loop in found]
    assert sorted(counts) == [(1, 2), (2, 3), (2, 3), (4, 4)]
    assert not [line for loop in found for line in loop if re.search(r"\(%r[sb]p|tilestore|tilecfg", line)]
