"""Products of bfloat16 matrices in pairs of terms."""

from __future__ import annotations

import functools
import re
from dataclasses import replace

import emulated_units
import numpy as np
import pytest
from native_runs import Runs, by_calls, given_to, traced

import genesis
from genesis import jit
from genesis.jit.lowering import cache, products
from genesis.jit.lowering.cache import lowered
from genesis.jit.lowering.code import module
from genesis.jit.lowering.products import BF16
from genesis.jit.lowering.tiles import Plan, Product, code
from genesis.kernels.llvm import loops, native, objects, rates, units

processor = pytest.mark.skipif(loops.width() != 64, reason="there are no vectors of 16 numbers")


@pytest.fixture(params=["dpbf16ps", "tdpbf16ps"])
def in_pairs(request, monkeypatch):
    """By units of the processor, or emulated ones."""
    with emulated_units.unit(request.param, monkeypatch):
        yield request.param


def matrix(*shape, seed=0):
    """Numbers with every exponent from 2^-20 to 2^20: the order of sums matters."""
    rng = np.random.default_rng(seed)
    return genesis.tensor((rng.normal(size=shape) * 2.0 ** rng.integers(-20, 21, shape)).astype(np.float32)).bfloat16()


def multiplied(phases):
    """The kernels that multiply in pairs."""
    kernels = [stage.kernel for phase in phases for stage in phase.stages]
    return [kernel for kernel in kernels if f".{rates.unit_of_pairs(16)}" in kernel.code]


def compare(function, *args, uses=True):
    """Machine code and Python's form against the product in float64 of the same numbers.

    Products of two bfloat16 numbers are float32 numbers, so that sums of k of them in any order differ from the exact
    sum by at most k 2^-24 times the sum of what is added, taken positive (Higham, Accuracy and Stability, 4.2).
    """
    graph = traced(function, *args)
    runs, given = Runs(graph.program), given_to(graph, args)
    assert bool(multiplied(runs.phases)) == uses
    wide = [x.double() for x in args]
    exact, terms = function(*wide).numpy(), function(*[x.abs() for x in wide]).numpy()
    k = max(args[0].shape)
    bound = k * 2.0**-24 * terms + k * 2.0**-126
    native_form, python = runs.run(given)[0], runs.run(given, "python")[0]
    assert (np.abs(native_form - exact) <= bound).all()
    assert (np.abs(python - exact) <= bound).all()
    assert native_form.tobytes() == runs.run(given, backwards=True)[0].tobytes()


def wide(x):
    """Float32, unless it is more already."""
    return x.float() if x.dtype == genesis.bfloat16 else x


LAYOUTS = {
    "rows, rows": lambda a, b: wide(a) @ wide(b),
    "columns, rows": lambda a, b: wide(a.mT.contiguous()).mT @ wide(b),
    "rows, columns": lambda a, b: wide(a) @ wide(b.mT.contiguous()).mT,
    "columns, columns": lambda a, b: wide(a.mT.contiguous()).mT @ wide(b.mT.contiguous()).mT,
}
SIZES = [
    (16, 16, 16),
    (17, 19, 18),
    (37, 50, 130),
    (97, 49, 96),
    (200, 33, 34),
    (40, 200, 1030),
    (130, 61, 514),
    (900, 40, 66),
]


@processor
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("size", SIZES)
def test_layouts_and_sizes(layout, size, in_pairs):
    m, n, k = size
    compare(LAYOUTS[layout], matrix(m, k), matrix(k, n, seed=1))


@processor
@pytest.mark.parametrize("layout", LAYOUTS)
def test_batches(layout, in_pairs):
    compare(LAYOUTS[layout], matrix(3, 2, 21, 34), matrix(3, 2, 34, 18, seed=1))
    compare(LAYOUTS[layout], matrix(3, 2, 21, 34), matrix(34, 18, seed=1))
    compare(LAYOUTS[layout], matrix(21, 34), matrix(3, 34, 18, seed=1))


@processor
@pytest.mark.parametrize("size", [(16, 16, 17), (15, 16, 16), (16, 5, 16), (3, 40, 64), (40, 40, 2)])
def test_small_products_and_odd_numbers_of_terms_are_computed_in_float32(size, in_pairs):
    m, n, k = size
    compare(LAYOUTS["rows, rows"], matrix(m, k), matrix(k, n, seed=1), uses=False)


@processor
def test_parts_of_matrices(in_pairs):
    """Columns from an even one on are pairs as they lie; from an odd one they are computed in float32."""
    a, b = matrix(40, 80), matrix(40, 34, seed=1)
    compare(lambda a, b: wide(a[:, 2:42]) @ wide(b), a, b)
    compare(lambda a, b: wide(a[:, 1:41]) @ wide(b), a, b, uses=False)
    compare(lambda a, b: wide(a[1:, ::2]) @ wide(b), a, b, uses=False)
    compare(lambda a, b: wide(a[1:21, :33]).mT @ wide(b[1:21, 1:]), a, b)


@processor
@pytest.mark.parametrize("step", [1, 2, 4])
def test_windows_that_overlap(step, in_pairs):
    """From one to the next there is a word, in either operand."""
    a, x = matrix(40, 16), matrix(100, seed=1)
    for function in (
        lambda a, x: genesis.nn.functional.linear(a, x.unfold(0, 16, step)),
        lambda a, x: genesis.nn.functional.linear(x.unfold(0, 16, step), a),
    ):
        ours, exact = genesis.compile(function)(a, x).double(), function(a.double(), x.double())
        terms = function(a.double().abs(), x.double().abs())
        assert ((ours - exact).abs() <= 2.0**-8 * exact.abs() * 1.01 + 17 * 2.0**-24 * terms).all()


@processor
@pytest.mark.parametrize("bias", [True, False])
def test_linear_is_rounded_once(bias, in_pairs):
    genesis.manual_seed(0)
    x, w = matrix(3, 30, 64, seed=2), matrix(70, 64, seed=3)
    given = (x, w, matrix(70, seed=4)) if bias else (x, w)
    graph = traced(genesis.nn.functional.linear, *given)
    values = given_to(graph, given)
    (out,) = Runs(graph.program).run(values)
    exact = genesis.nn.functional.linear(*[v.double() for v in given]).numpy()
    terms = genesis.nn.functional.linear(*[v.double().abs() for v in given]).numpy()
    assert out.dtype == BF16
    assert (np.abs(out.astype(np.float64) - exact) <= 2.0**-8 * np.abs(exact) * 1.01 + 66 * 2.0**-24 * terms).all()
    (eager,) = by_calls(graph.program, values)  # the same numbers, but for sums that lie between two of them
    assert (out.view(np.uint16) == eager.view(np.uint16)).mean() > 0.98


@processor
def test_gradients_are_computed_in_pairs(in_pairs):
    """Rules are given float32 numbers, which have been widened."""
    layer = genesis.nn.Linear(64, 48)
    x = genesis.randn(80, 64, requires_grad=True)

    def step(x):
        with genesis.autocast("cpu", dtype=genesis.bfloat16):
            y = layer(x)
        return genesis.autograd.grad(y.float().square().sum(), [x, layer.weight])

    graph = traced(step, x)
    assert len(multiplied(Runs(graph.program).phases)) == 3
    for ours, want in zip(genesis.compile(step)(x), step(x), strict=True):
        off = (ours - want).norm() / want.norm()
        assert off < 2.0**-8  # a rounding of each operand, and of each result


@processor
def test_bits_do_not_depend_on_threads(in_pairs):
    a, b = matrix(300, 256), matrix(256, 200, seed=1)
    _, step = lowered(jit.trace(lambda a, b: a @ b, a, b))
    before, seen = genesis.get_num_threads(), set()
    try:
        for threads in (1, 2, 3, 4, 5):
            genesis.set_num_threads(threads)
            seen.add(step.run([x._array for x in (a, b)])[0].tobytes())
    finally:
        genesis.set_num_threads(before)
    assert len(seen) == 1


@processor
def test_how_the_instruction_differs(in_pairs):
    """Denormal numbers count as zeros; infinities and NaN are what they are in float32."""
    a, b = genesis.zeros(16, 16).bfloat16(), genesis.eye(16).bfloat16()
    a[0, 0], a[1, 0], a[2, 0], a[3, 0] = 2.0**-130, float("inf"), float("nan"), 2.0**-126
    graph = traced(LAYOUTS["rows, rows"], a, b)
    (out,) = Runs(graph.program).run(given_to(graph, (a, b)))
    assert out[0, 0] == 0 and out[1, 0] == np.inf and np.isnan(out[2]).all() and out[3, 0] == 2.0**-126
    assert np.isnan(out[1, 1:]).all()  # inf times 0


# ---- whether it pays, on any processor


def test_what_was_measured_is_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("GENESIS_CACHE_DIR", str(tmp_path / "kept"))
    host = native.Host("0", "0", "x", "y", "+fma,+avx512f,+avx512bf16")
    monkeypatch.setattr(native, "host", lambda: host)
    speeds = {"fma": 100.0, "dpbf16ps": 199.0}
    monkeypatch.setattr(rates, "rate", speeds.__getitem__)
    chosen = functools.partial(rates.unit_of_pairs.__wrapped__, 16)
    assert chosen() == "dpbf16ps"
    speeds["dpbf16ps"] = 50.0
    assert chosen() == "dpbf16ps"  # as it is on disk
    objects.clear()
    assert chosen() == ""
    monkeypatch.setattr(native, "host", lambda: host._replace(features="+fma,+avx512f"))
    assert chosen() == ""


def test_the_fastest_unit_is_chosen(monkeypatch, tmp_path):
    monkeypatch.setenv("GENESIS_CACHE_DIR", str(tmp_path / "kept"))
    host = native.Host("0", "0", "x", "y", "+fma,+avx512f,+avx512bf16,+amx-bf16")
    monkeypatch.setattr(native, "host", lambda: host)
    speeds = {"fma": 100.0, "dpbf16ps": 199.0, "tdpbf16ps": 999.0}
    monkeypatch.setattr(rates, "rate", speeds.__getitem__)
    chosen = functools.partial(rates.unit_of_pairs.__wrapped__, 16)
    for permitted, name in ((True, "tdpbf16ps"), (False, "dpbf16ps"), (True, "tdpbf16ps")):
        amx = units.UNITS["tdpbf16ps"]._replace(permitted=lambda permitted=permitted: permitted)
        monkeypatch.setitem(units.UNITS, "tdpbf16ps", amx)
        assert chosen() == name
    assert rates.unit_of_pairs.__wrapped__(8) == ""


def test_a_kept_step_belongs_to_a_way(monkeypatch):
    a, b = matrix(16, 16), matrix(16, 16)
    program = jit.trace(lambda a, b: a @ b, a, b).program
    ways = set()
    for unit in ("", "dpbf16ps", "tdpbf16ps"):
        monkeypatch.setattr(rates, "unit_of_pairs", lambda lanes, unit=unit: unit)
        ways.add(cache.multiplied(program))
    assert ways == {"fma", "dpbf16ps", "tdpbf16ps"}
    assert cache.multiplied(jit.trace(lambda a, b: a.float() @ b.float(), a.float(), b.float()).program) == ""


PRODUCTS = {
    "panels": Product(96, 96, 128, (0, 128, 1), (0, 48, 1), (0, 96, 1), None, (), False, True),
    "copied": Product(96, 96, 128, (0, 1, 96), (0, 96, 1), (0, 96, 1), None, (), True, False),
}


def assembled(p, unit, lanes, architecture, cpu, features=""):
    """The plan of a product in words, and the lines of its code for some processor."""
    llvm, p = native.binding(), replace(p, unit=unit)
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    plan = Plan(p, lanes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loops, "width", lambda: 4 * lanes)  # vectors are as long as those of that processor
        parsed = llvm.parse_assembly(module([code("k", p, plan, products.EMITTERS[unit](lanes, p))]))
    target = llvm.Target.from_triple(f"{architecture}-unknown-linux-gnu")
    return plan, target.create_target_machine(cpu=cpu, features=features, opt=2).emit_assembly(parsed).splitlines()


@pytest.mark.skipif(native.host() is None, reason="there is no llvmlite")
@pytest.mark.parametrize("cpu", ["neoverse-v1", "apple-m2"])
@pytest.mark.parametrize("which", PRODUCTS)
def test_sums_stay_in_registers_of_neon(which, cpu):
    plan, lines = assembled(PRODUCTS[which], "bfdot", 4, "aarch64", cpu)
    at = [i for i, line in enumerate(lines) if "bfdot" in line]
    assert len(at) == plan.rows * plan.vectors == 24
    assert not [line for line in lines[at[0] : at[-1]] if re.search(r"\[sp|^\.L", line)]


@pytest.mark.skipif(native.host() is None, reason="there is no llvmlite")
@pytest.mark.parametrize("which", PRODUCTS)
def test_registers_of_amx_are_loaded_as_often_as_they_are_multiplied(which):
    _, lines = assembled(PRODUCTS[which], "tdpbf16ps", 16, "x86_64", "sapphirerapids", "-prefer-256-bit")
    at = [i for i, line in enumerate(lines) if "tdpbf16ps" in line]
    begin = max([i for i in range(at[0]) if lines[i].startswith(".L")])
    end = next(i for i in range(at[-1], len(lines)) if re.match(r"\tj", lines[i]))
    inside = lines[begin:end]
    assert len(at) == len([line for line in inside if "tdpbf16ps" in line]) == 4
    assert len([line for line in inside if "tileloadd" in line]) == 4
    assert not [line for line in inside if re.search(r"\(%r[sb]p|tilestore|ldtilecfg", line)]
    assert len([line for line in lines if "ldtilecfg" in line]) == 1  # as all tiles have one size
    assert len([line for line in lines if "tilerelease" in line]) == 1


@pytest.mark.skipif(native.host() is None, reason="there is no llvmlite")
@pytest.mark.parametrize("cpu", ["znver4", "sapphirerapids"])
@pytest.mark.parametrize("which", PRODUCTS)
def test_sums_stay_in_registers(which, cpu):
    plan, lines = assembled(PRODUCTS[which], "dpbf16ps", 16, "x86_64", cpu, "-prefer-256-bit")
    at = [i for i, line in enumerate(lines) if "vdpbf16ps" in line]
    assert len(at) == plan.rows * 3 and all("{1to16}" in lines[i] or "zmm" in lines[i] for i in at)
    inside = lines[at[0] : at[-1]]
    assert not [line for line in inside if re.search(r"\(%rsp", line)]
    assert not [line for line in inside if re.search(r"^\.L", line)]  # it is one loop
