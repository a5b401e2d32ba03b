"""Units that multiply pairs of bfloat16 numbers: those that this processor lacks, emulated; who may use them."""

from __future__ import annotations

import ctypes
import functools
import mmap
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import emulated_units
import numpy as np
import pytest

from genesis.base.dtypes import as_np
from genesis.jit.lowering import products
from genesis.jit.lowering.code import module
from genesis.jit.lowering.tiles import FEWER, Product
from genesis.kernels.cpu import gemm
from genesis.kernels.llvm import amx, loops, native, rates, units
from genesis.kernels.llvm import gemm as code
from genesis.kernels.llvm.nests import Code
from genesis.kernels.native import runtime

pytestmark = pytest.mark.skipif(not loops.available(), reason="no llvmlite, or a processor without fma")
BF16 = as_np("bfloat16")


def halves(*shape, seed=0):
    """Bfloat16 numbers of many sizes."""
    rng = np.random.default_rng(seed)
    return (rng.normal(size=shape) * 2.0 ** rng.integers(-20, 21, shape)).astype(BF16)


def near(found, a, b, more=0.0, rounding=2.0**-24):
    """Products of two of them are float32 numbers; a sum of k of those is off by k roundings of what is added, taken
    positive.
    """
    a, b, more = (np.asarray(x, np.float64) for x in (a, b, more))
    terms = np.abs(a) @ np.abs(b) + np.abs(more)
    assert (np.abs(found - (a @ b + more)) <= (a.shape[-1] + 1) * rounding * terms).all()


# ---- the emulated ones


def one_tile(shape, a, b, start, sizes=None):
    """The result of one tile of AMX, whose registers are set for these sizes or others."""
    (m, k), n = a.shape, b.shape[1]
    made, out = Code(16), np.full((m, n), 7, np.float32)
    rows, columns, words = map(str, sizes or (m, n, k // 2))
    amx.configure(made, shape, rows, columns, words, made.put("alloca [16 x float], align 64"))
    steps = [str(4 * s) for s in (k // 2, n, n, n)]
    given = [amx.Matrix(f"%{name}", step) for name, step in zip(("a", "b", "c", "start"), steps, strict=True)]
    amx.tile(made, shape, *given, ("0", str(k // 2), str(k // 2)))
    amx.release(made)
    text = f"{amx.declared(16)}\n{made.definition('tile', ['a', 'b', 'c', 'start'], [])}"
    run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(native.address("tile", text))
    packed = np.ascontiguousarray(b.reshape(k // 2, 2, n).swapaxes(1, 2))
    run(*[x.ctypes.data for x in (a, packed, out, start)])
    return out


@pytest.fixture
def registers(monkeypatch):
    monkeypatch.setenv("GENESIS_CACHE_DIR", "")
    emulated_units.emulate(monkeypatch)


@pytest.mark.parametrize(("m", "n", "k"), [(16, 16, 32), (1, 1, 2), (7, 3, 10), (16, 5, 32), (17, 32, 20), (32, 17, 2)])
def test_a_tile_is_what_the_manual_says(registers, m, n, k):
    """To the bit: sums of the first and of the second numbers of pairs, one after the other, and those of both."""
    a, b, start = (
        halves(m, k),
        halves(k, n, seed=1),
        np.random.default_rng(2).standard_normal((m, n)).astype(np.float32),
    )
    sums = np.zeros((2, m, n), np.float32)
    for t in range(k):  # float64 numbers are exact but for the last rounding, of which float32 leaves no trace
        product = a[:, t : t + 1].astype(np.float64) * b[t].astype(np.float64)
        sums[t % 2] = (sums[t % 2] + product).astype(np.float32)
    expected = start + (sums[0] + sums[1])
    shape = -(-m // 16), -(-n // 16)
    assert one_tile(shape, a, b, start).tobytes() == expected.tobytes()


def test_denormal_numbers_are_zeros(registers):
    a, b, start = (np.zeros(s, t) for s, t in (((16, 32), BF16), ((32, 16), BF16), ((16, 16), np.float32)))
    a[0, 0], a[1, 0], a[2, 0], a[3, :2] = 2.0**-130, 2.0**-126, 2.0**-100, (2.0**-126, -1.5 * 2.0**-126)
    b[:2], start[4] = 1, 1e-40
    out = one_tile((1, 1), a, b, start)
    assert (out[0] == 0).all() and (out[1] == np.float32(2.0**-126)).all() and (out[2] == np.float32(2.0**-100)).all()
    assert (out[3:] == 0).all()  # the difference is denormal, too


@pytest.mark.parametrize("sizes", [(17, 16, 16), (16, 17, 16), (0, 16, 16), (16, 0, 16), (16, 16, 0), (16, 16, 17)])
def test_what_the_processor_refuses_is_no_number(registers, sizes):
    ones = np.ones((16, 32), BF16), np.ones((32, 16), BF16), np.ones((16, 16), np.float32)
    assert (one_tile((1, 1), *ones) == 33).all()
    out = one_tile((1, 1), *ones, sizes)
    assert np.isnan(out[out != 7]).all()
    assert (out[: min(sizes[0], 16), : min(sizes[1], 16)] != 33).all()


def test_what_is_summed_to_odd(registers):
    """Of BFDOT: a sum between two float32 numbers is that of them whose last bit is set."""
    text = "declare <4 x float> @llvm.aarch64.neon.bfdot.v4f32.v8bf16(<4 x float>, <8 x bfloat>, <8 x bfloat>)\n"
    text += """define void @dot(ptr %c, ptr %a, ptr %b) {
  %x = load <8 x bfloat>, ptr %a
  %y = load <8 x bfloat>, ptr %b
  %t = load <4 x float>, ptr %c
  %d = call <4 x float> @llvm.aarch64.neon.bfdot.v4f32.v8bf16(<4 x float> %t, <8 x bfloat> %x, <8 x bfloat> %y)
  store <4 x float> %d, ptr %c
  ret void
}"""
    run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(native.address("dot", text))
    memory = np.zeros(32, np.float32)  # the code reads whole vectors
    at = -memory.ctypes.data % 64 // 4
    c, a, b = memory[at : at + 4], memory[at + 4 : at + 8].view(BF16), memory[at + 8 : at + 12].view(BF16)
    c[:], a[:], b[:] = (1, 1, -3, 0), (2.0**-24, 0, 1.5, 2.0**-60, 2.0**-40, 0, 2.0**-126, 2.0**-130), 1
    run(c.ctypes.data, a.ctypes.data, b.ctypes.data)
    # just above 1: odd. 1.5 + 2^-60: odd, above; 1 more makes two units of it less than one. Just below 3: odd
    step = np.float32(2.0**-23)
    assert c.tolist() == [1 + step, 2.5 + 2 * step, np.nextafter(np.float32(-3), np.float32(0)), 2.0**-126]


# ---- NEON's, in products of any size


SIZES = [(16, 16, 16), (17, 19, 130), (40, 64, 96), (33, 49, 258), (100, 70, 34), (24, 30, 1046)]


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_products_by_bfdot(registers, size):
    (m, n, k), width = size, 4 * units.UNITS["bfdot"].tiles[4][1]
    a, b = halves(m, k), halves(n, k, seed=1)
    bias = np.random.default_rng(2).standard_normal(n).astype(np.float32)
    runtime.begin()
    functions = dict(
        zip(code.SIGNATURES, native.addresses_in(code.module(4, "bfdot"), list(code.SIGNATURES)), strict=True)
    )
    packed, given = np.empty(-(-n // width) * width * k // 2, np.float32), runtime.current.ctypes.data
    for name, more in (("product", []), ("product_and_bias", [bias])):
        ufunc = loops.made(name, functions[name], "float", 3 + len(more), 1, code.SIGNATURES[name], given)
        out = np.empty((m, n), np.float32)
        ufunc(a.view(np.float32), b.view(np.float32).T, *more, packed, out)
        near(out, a, b.T, more[0] if more else 0.0, 2.0**-23)


@pytest.mark.parametrize("k", [16, 2 * FEWER + 2, 700])
@pytest.mark.parametrize("columns", [(False, False), (True, False), (False, True)], ids=str)
def test_kernels_of_steps_by_bfdot(registers, k, columns):
    m, n = 50, 39
    a, b = halves(m, k), halves(k, n, seed=1)
    first = (0, 1, m) if columns[0] else (0, k, 1)
    second = (0, 1, k) if columns[1] else (0, n, 1)
    before = np.random.default_rng(2).standard_normal((m, n)).astype(np.float32)
    p = Product(m, n, k, first, second, (0, n, 1), None, (), True)
    made = products.kernel(f"by_bfdot_{k}_{columns[0]:d}{columns[1]:d}", p, 4, "bfdot")
    held = [np.asfortranarray(x) if c else x for x, c in zip((a, b), columns, strict=True)]
    out = np.full((m, n), np.nan, np.float32)
    addresses = np.array([x.ctypes.data for x in (*held, out, before)], np.int64)
    function = native.address(made.name, module([made.code]))
    runtime.run(runtime.Table([(function, addresses.ctypes.data, made.chunks)]))
    near(out, a, b, before, 2.0**-23)


# ---- AMX's: memory, threads, and who may use it


def at_the_end(x, kept):
    """The same numbers in memory behind which there is nothing."""
    size = -(-x.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    pages = mmap.mmap(-1, size + mmap.PAGESIZE)
    base = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(base + size), ctypes.c_size_t(mmap.PAGESIZE), 0) == 0
    kept.append(pages)
    copy = np.frombuffer(pages, x.dtype, x.size, size - x.nbytes).reshape(x.shape)
    copy[...] = x
    return copy


@pytest.mark.skipif(loops.width() != 64, reason="there are no vectors of 16 numbers")
@pytest.mark.parametrize("columns", [(False, False), (True, False), (False, True)], ids=str)
def test_nothing_behind_matrices_is_read_or_written(registers, columns):
    (m, n, k), kept = (50, 39, 44), []
    a, b = halves(m, k), halves(k, n, seed=1)
    first = (0, 1, m) if columns[0] else (0, k, 1)
    second = (0, 1, k) if columns[1] else (0, n, 1)
    p = Product(m, n, k, first, second, (0, n, 1), (0, 1))
    made = products.kernel(f"by_amx_{columns[0]:d}{columns[1]:d}", p, 16, "tdpbf16ps")
    bias = at_the_end(np.random.default_rng(2).standard_normal(n).astype(np.float32), kept)
    held = [at_the_end(x.T if turned else x, kept) for x, turned in zip((a, b), columns, strict=True)]
    out = at_the_end(np.full((m, n), np.nan, np.float32), kept)
    addresses = np.array([x.ctypes.data for x in (*held, out, bias)], np.int64)
    function = native.address(made.name, module([made.code]))
    runtime.run(runtime.Table([(function, addresses.ctypes.data, made.chunks)]))
    near(out, a, b, bias)


def test_products_in_many_threads_at_once(monkeypatch):
    if loops.width() != 64:
        pytest.skip("there are no vectors of 16 numbers")
    given = [(halves(m, 90, seed=m), halves(130, 90, seed=m + 1).T) for m in range(20, 200, 9)]
    with emulated_units.unit("tdpbf16ps", monkeypatch):
        alone = [gemm.product_in_pairs(a, b) for a, b in given]
        with ThreadPoolExecutor(6) as pool:
            for found, expected in zip(
                pool.map(lambda p: gemm.product_in_pairs(*p), given * 9), alone * 9, strict=True
            ):
                assert found.tobytes() == expected.tobytes()


def test_the_system_is_asked_once(monkeypatch):
    asked = []

    class Libc:
        def __init__(self, answer):
            self.answer = answer

        def syscall(self, *words):
            asked.append([w.value for w in words])
            return self.answer

    monkeypatch.setattr(sys, "platform", "linux")
    for answer, permitted in ((0, True), (-1, False)):
        monkeypatch.setattr(amx.ctypes, "CDLL", lambda name, answer=answer: Libc(answer))
        assert amx.permitted.__wrapped__() is permitted
    assert asked == [[158, 0x1023, 18]] * 2
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not amx.permitted.__wrapped__() and len(asked) == 2


@pytest.mark.parametrize("system", ["linux", "darwin"])
def test_what_the_system_says_of_arm_processors(system, monkeypatch):
    """Linux in a word of bits, macOS by name; others are not asked."""
    asked, answers = [], {"getauxval": (1 << 14, 1 << 13), "hw.optional.arm.FEAT_BF16": (1, 0)}

    class Libc:
        def __init__(self, which):
            self.which, self.getauxval = which, functools.partial(self.says, "getauxval")

        def says(self, name, *given):
            asked.append((name, *given))
            return answers[name][self.which]

        def sysctlbyname(self, name, answer, *sizes):
            answer._obj.value = self.says(name.decode())
            return 0

    monkeypatch.setattr(sys, "platform", system)
    for machine, which, expected in (("x86_64", 0, False), ("aarch64", 0, True), ("arm64", 1, False)):
        monkeypatch.setattr(native.os, "uname", lambda machine=machine: SimpleNamespace(machine=machine))
        monkeypatch.setattr(native.ctypes, "CDLL", lambda name, which=which: Libc(which))
        assert native._multiplies_bfloat16() is expected
    assert asked == [("getauxval", 26) if system == "linux" else ("hw.optional.arm.FEAT_BF16",)] * 2


def test_units_are_those_of_the_processor(monkeypatch):
    """And of the system, that is asked only where there are registers."""
    host = native.host()
    asked = []
    own = units.UNITS["tdpbf16ps"]._replace(permitted=lambda: asked.append(1) or False)
    monkeypatch.setitem(units.UNITS, "tdpbf16ps", own)
    for features, lanes, names, count in (
        ("+fma,+avx512f", 16, [], 0),
        ("+fma,+avx512f,+avx512bf16", 16, ["dpbf16ps"], 0),
        ("+fma,+avx512f,+avx512bf16,+amx-bf16", 16, ["dpbf16ps"], 1),
        ("+fma,+bf16", 4, ["bfdot"], 1),
        ("+fma,+avx2,+avx512bf16", 8, [], 1),
    ):
        monkeypatch.setattr(native, "host", lambda features=features: host._replace(features=features))
        assert (units.of_pairs(lanes), len(asked)) == (names, count)


@pytest.mark.parametrize("unit", [name for name in units.UNITS if name != units.FLOAT32])
def test_the_processor_gives_what_the_emulated_one_gives(unit, monkeypatch):
    """Of units that there are here."""
    if unit not in units.of_pairs(loops.width() // 4):
        pytest.skip("the processor does not have it")
    a, b = halves(100, 130), halves(70, 130, seed=1)
    found = gemm.product(a.view(np.float32), b.view(np.float32).T, None, unit)
    with emulated_units.unit(unit, monkeypatch, always=True):
        assert gemm.product_in_pairs(a, b.T).tobytes() == found.tobytes()


def test_what_is_measured_is_assembled():
    """For each unit, with no more in a round than its products."""
    llvm = native.binding()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    for unit, lanes, triple, cpu, name in (
        ("dpbf16ps", 16, "x86_64", "znver4", "vdpbf16ps"), ("tdpbf16ps", 16, "x86_64", "sapphirerapids", "tdpbf16ps"),
        ("bfdot", 4, "aarch64", "neoverse-v1", "bfdot"), ("fma", 16, "x86_64", "znver4", "vfmadd"),
        ("fma", 8, "x86_64", "haswell", "vfmadd"), ("fma", 4, "aarch64", "neoverse-n1", "fmla"),
    ):  # fmt: skip
        text, operations = rates.code(unit, lanes)
        target = llvm.Target.from_triple(f"{triple}-unknown-linux-gnu")
        machine = target.create_target_machine(cpu=cpu, features="-prefer-256-bit" if lanes == 16 else "", opt=2)
        lines = machine.emit_assembly(llvm.parse_assembly(text)).splitlines()
        at = [i for i, line in enumerate(lines) if name in line]
        count = 4 if unit == "tdpbf16ps" else rates.SUMS[lanes]
        assert len(at) == count
        assert not [line for line in lines[at[0] : at[-1]] if re.search(r"[(\[]|^\.L", line)]  # no memory, one loop
        assert operations == (
            count * 2 * 16 * 16 * 32 if count == 4 else count * 2 * lanes * (1 if unit == "fma" else 2)
        )
