"""Units that multiply bfloat16 numbers, for processors that have none: their instructions as functions that do, in LLVM
code, what the manuals say of them.

AMX (Intel's Software Developer's Manual, volume 2: LDTILECFG, TILELOADD, TDPBF16PS, TILESTORED, TILERELEASE). The registers
are memory of the function that uses them; what the processor refuses (registers that are not set, sizes that do not fit,
one of rows and bytes without the other) makes everything NaN.

VDPBF16PS (the same, volume 2): the products of the second numbers of pairs are added before those of the first.

BFDOT (Arm's Architecture Reference Manual, BFDotAdd without FEAT_EBF16): sums are rounded to odd, denormal numbers are
zeros, of what is given and of what comes out.
"""

from __future__ import annotations

import contextlib
import re

from genesis.kernels.cpu import gemm
from genesis.kernels.llvm import native, rates, units
from genesis.kernels.llvm.nests import Code

SIDE = 16
_INT, _LONG, _MASK = "<16 x i32>", "<16 x i64>", "<16 x i1>"
_CALL = re.compile(r"call void @llvm\.x86\.(ldtilecfg|tilerelease|tileloadd64|tilestored64|tdpbf16ps)\((?=(\)?))")
_DOTS = {4: "@llvm.aarch64.neon.bfdot.v4f32.v8bf16", 16: "@llvm.x86.avx512bf16.dpbf16ps.512"}
_DECLARED = re.compile(r"^declare .*@llvm\.(?:x86\.(?:ldtile|tile|tdp|avx512bf16)|aarch64\.neon\.bfdot).*\n?", re.M)


def emulated(text):
    """LLVM code that is a module, with functions in the place of such instructions."""
    parts = []
    if "@llvm.x86.t" in text:
        functions = re.split(r"^(?=define )", text, flags=re.M)
        text = "".join([_with_registers(f) if _CALL.search(f) else f for f in functions])
        parts += [_configure(), _release(), _load(), _store(), _multiply()]
    for (lanes, name), dot in zip(_DOTS.items(), (_bfdot, _dpbf16ps), strict=True):
        if name in text:
            text = text.replace(f"call <{lanes} x float> {name}(", f"call <{lanes} x float> @emulated.dot{lanes}(")
            parts.append(dot())
    text = _DECLARED.sub("", text)
    needed = re.findall(r"@(llvm\.[\w.]+)\(", "\n".join(parts))
    more = [
        _HEADS[name] for name in dict.fromkeys(needed) if not re.search(rf"^declare .*@{re.escape(name)}\(", text, re.M)
    ]
    return "\n".join([*more, *parts, text])


_HEADS = {
    "llvm.fma.v16f32": "declare <16 x float> @llvm.fma.v16f32(<16 x float>, <16 x float>, <16 x float>)",
    "llvm.fabs.v16f32": "declare <16 x float> @llvm.fabs.v16f32(<16 x float>)",
    "llvm.copysign.v16f32": "declare <16 x float> @llvm.copysign.v16f32(<16 x float>, <16 x float>)",
    "llvm.fabs.v4f32": "declare <4 x float> @llvm.fabs.v4f32(<4 x float>)",
    "llvm.copysign.v4f32": "declare <4 x float> @llvm.copysign.v4f32(<4 x float>, <4 x float>)",
    "llvm.masked.load.v16f32.p0": f"declare <16 x float> @llvm.masked.load.v16f32.p0(ptr, i32, {_MASK}, <16 x float>)",
    "llvm.masked.store.v16f32.p0": f"declare void @llvm.masked.store.v16f32.p0(<16 x float>, ptr, i32, {_MASK})",
}


@contextlib.contextmanager
def unit(name, monkeypatch, always=False):
    """Products of bfloat16 numbers are computed by this unit, emulated where the processor has none, or ``always``;
    nothing of it stays.
    """
    for cached in (gemm.functions, gemm._ufunc):
        cached.cache_clear()
    with monkeypatch.context() as changed:
        changed.setenv("GENESIS_CACHE_DIR", "")
        changed.setattr(rates, "unit_of_pairs", lambda lanes: name)
        if always or name not in units.of_pairs(SIDE):
            emulate(changed)
        yield
    for cached in (gemm.functions, gemm._ufunc):
        cached.cache_clear()


def emulate(monkeypatch):
    compiled = native._compiled
    monkeypatch.setattr(native, "_compiled", lambda llvm, text: compiled(llvm, emulated(text)))


# ---- AMX: 64 bytes that say what registers hold, and eight registers of 16 rows of 64 bytes


def _with_registers(function):
    head, body = function.split("entry:\n", 1)
    body = _CALL.sub(lambda m: f"call void @amx.{m[1]}(ptr %registers{'' if m[2] else ', '}", body)
    return f"{head}entry:\n  %registers = alloca [{64 + 8 * 1024} x i8], align 64\n{body}"


class _Emulated(Code):
    def flushed(self, x):
        """Denormal numbers as zeros."""
        small = self.put(f"fcmp olt {self.vector} {self.call('fabs', x)}, {self.constant(2.0**-126)}")
        zero = self.call("copysign", self.constant(0.0), x)
        return self.put(f"select <{self.lanes} x i1> {small}, {self.vector} {zero}, {self.vector} {x}")

    def of_pairs(self, pairs, first):
        """The first or the second numbers of pairs, as float32 numbers."""
        amount, high = (f"<{', '.join([f'i32 {x}'] * self.lanes)}>" for x in (16, -65536))
        moved = self.put(f"shl {self.numbers} {pairs}, {amount}" if first else f"and {self.numbers} {pairs}, {high}")
        return self.flushed(self.put(f"bitcast {self.numbers} {moved} to {self.vector}"))

    def definition_of_dot(self, result):
        pair = f"<{2 * self.lanes} x bfloat>"
        head = f"define internal {self.vector} @emulated.dot{self.lanes}({self.vector} %total, {pair} %x, {pair} %y)"
        return "\n".join([head + " {\nentry:", *self.lines, f"  ret {self.vector} {result}\n}}"])

    def pairs_of(self, *names):
        return [self.put(f"bitcast <{2 * self.lanes} x bfloat> {name} to {self.numbers}") for name in names]


class _Amx(_Emulated):
    def __init__(self):
        super().__init__(SIDE)

    def byte(self, at, kind="i8"):
        """A number of a few bits that is so many bytes behind the beginning."""
        address = self.at("%s", at, "i8")
        return self.put(f"zext {kind} {self.put(f'load {kind}, ptr {address}, align 1')} to i64")

    def rows(self, register):
        return self.byte(self.add(register, "48"))

    def bytes_of_row(self, register):
        return self.byte(self.add(self.times(register, "2"), "16"), "i16")

    def register(self, number):
        return self.at("%s", self.add(self.times(number, "1024"), "64"), "i8")

    def row(self, register, i):
        return self.at(register, self.times(i, "64"), "i8")

    def fill(self, register, value):
        with self.loop("0", "16", "1") as row:
            self.store(value, self.row(register, row.index), "0")

    def inside(self, register):
        """The lanes that a row of a register has."""
        count = self.put(f"lshr i64 {self.bytes_of_row(register)}, 2")
        one = self.put(f"insertelement {_LONG} poison, i64 {count}, i32 0")
        every = self.put(f"shufflevector {_LONG} {one}, {_LONG} poison, <16 x i32> zeroinitializer")
        return self.put(f"icmp ult {_LONG} <{', '.join([f'i64 {i}' for i in range(16)])}>, {every}")

    def all_of(self, *tests):
        total = tests[0]
        for test in tests[1:]:
            total = self.put(f"and i1 {total}, {test}")
        return total

    def equal(self, x, y):
        return self.put(f"icmp eq i64 {x}, {y}")

    def used(self, register):
        """Whether a register is set, and the registers are."""
        return self.all_of(self.equal(self.byte("0"), "1"), self.put(f"icmp ne i64 {self.rows(register)}, 0"))

    def where_else(self, test, x, y):
        return self.put(f"select i1 {test}, {self.vector} {x}, {self.vector} {y}")


NAN = "<" + ", ".join(["float 0x7FF8000000000000"] * SIDE) + ">"


def _definition(code, name, parameters):
    head = f"define internal void @amx.{name}({', '.join(['ptr %s', *parameters])}) {{\nentry:"
    return "\n".join([head, *code.lines, "  ret void\n}"])


def _configure():
    code = _Amx()
    with code.loop("0", "8", "1") as word:
        at, to = (code.at(x, word.index, "i64") for x in ("%config", "%s"))
        code.lines.append(f"  store i64 {code.put(f'load i64, ptr {at}, align 1')}, ptr {to}, align 8")
    tests = [code.equal(code.byte("0"), "1"), code.equal(code.byte("1"), "0")]
    # bytes without a meaning are zeros, a register has both rows and bytes or none of them, of at most 16 and 64
    tests += [code.equal(code.byte(str(i)), "0") for i in (*range(2, 16), *range(32, 48), *range(56, 64))]
    for register in map(str, range(8)):
        rows, size = code.rows(register), code.bytes_of_row(register)
        both = [code.equal(x, "0") for x in (rows, size)]
        tests.append(code.put(f"icmp eq i1 {both[0]}, {both[1]}"))
        tests.append(code.put(f"icmp ule i64 {rows}, 16"))
        tests.append(code.put(f"icmp ule i64 {size}, 64"))
        tests.append(code.equal(code.put(f"and i64 {size}, 3"), "0"))
    fine = code.all_of(*tests)
    code.lines.append(f"  store i8 {code.put(f'select i1 {fine}, i8 1, i8 2')}, ptr %s")
    for register in range(8):  # so that no more is written, as NaN
        for at, kind, most in ((48 + register, "i8", 16), (16 + 2 * register, "i16", 64)):
            size = code.least(code.byte(str(at), kind), str(most))
            code.lines.append(
                f"  store {kind} {code.put(f'trunc i64 {size} to {kind}')}, ptr {code.at('%s', str(at), 'i8')}"
            )
    with code.loop("0", "8", "1") as register:
        code.fill(code.register(register.index), code.constant(0.0))
    return _definition(code, "ldtilecfg", ["ptr %config"])


def _release():
    code = _Amx()
    with code.loop("0", "8", "1") as word:
        code.lines.append(f"  store i64 0, ptr {code.at('%s', word.index, 'i64')}, align 8")
    return _definition(code, "tilerelease", [])


def _load():
    code = _Amx()
    t = code.put("zext i8 %t to i64")
    register, lanes, fine = code.register(t), code.inside(t), code.used(t)
    code.fill(register, code.where_else(fine, code.constant(0.0), NAN))
    with code.loop("0", code.put(f"select i1 {fine}, i64 {code.rows(t)}, i64 0"), "1") as i:
        at = code.at("%base", code.times(i.index, "%stride"), "i8")
        given = f"ptr {at}, i32 1, {_MASK} {lanes}, {code.vector} zeroinitializer"
        row = code.put(f"call {code.vector} @llvm.masked.load.v16f32.p0({given})")
        code.store(row, code.row(register, i.index), "0")
    return _definition(code, "tileloadd64", ["i8 %t", "ptr %base", "i64 %stride"])


def _store():
    code = _Amx()
    t = code.put("zext i8 %t to i64")
    register, lanes = code.register(t), code.inside(t)
    with code.loop("0", code.rows(t), "1") as i:
        at = code.at("%base", code.times(i.index, "%stride"), "i8")
        row = code.where_else(code.used(t), code.load(code.row(register, i.index), "0"), NAN)
        code.lines.append(
            f"  call void @llvm.masked.store.v16f32.p0({code.vector} {row}, ptr {at}, i32 1, {_MASK} {lanes})"
        )
    return _definition(code, "tilestored64", ["i8 %t", "ptr %base", "i64 %stride"])


def _multiply():
    """For each row: the sums of the first and of the second numbers of pairs, both, and what is there."""
    code = _Amx()
    c, a, b = (code.put(f"zext i8 %{x} to i64") for x in "cab")
    rows, size, terms = code.rows(c), code.bytes_of_row(c), code.rows(b)
    fits = [code.equal(code.rows(a), rows), code.equal(code.bytes_of_row(b), size)]
    fits.append(code.equal(code.bytes_of_row(a), code.times(terms, "4")))
    fine, lanes = code.all_of(*map(code.used, (c, a, b)), *fits), code.inside(c)
    with code.loop("0", rows, "1") as i:
        line, zero = code.row(code.register(a), i.index), code.constant(0.0)
        with code.loop("0", terms, "1", [zero, zero]) as k:
            word = code.put(f"load i32, ptr {code.at(line, k.index, 'i32')}")
            one = code.put(f"insertelement {_INT} poison, i32 {word}, i32 0")
            x = code.put(f"shufflevector {_INT} {one}, {_INT} poison, <16 x i32> zeroinitializer")
            y = code.put(f"load {_INT}, ptr {code.row(code.register(b), k.index)}, align 64")
            k.next = [
                code.flushed(code.call("fma", code.of_pairs(x, first), code.of_pairs(y, first), total))
                for first, total in zip((True, False), k.values, strict=True)
            ]
        target = code.row(code.register(c), i.index)
        before = code.flushed(code.load(target, "0"))
        total = code.flushed(code.plus(before, code.flushed(code.plus(*k.values))))
        total = code.where_else(fine, total, NAN)
        code.store(
            code.put(f"select {_MASK} {lanes}, {code.vector} {total}, {code.vector} zeroinitializer"), target, "0"
        )
    return _definition(code, "tdpbf16ps", ["i8 %c", "i8 %a", "i8 %b"])


# ---- dot products of pairs in vectors


def _dpbf16ps():
    code, total = _Emulated(16), "%total"
    x, y = code.pairs_of("%x", "%y")
    for first in (False, True):
        total = code.flushed(code.call("fma", code.of_pairs(x, first), code.of_pairs(y, first), code.flushed(total)))
    return code.definition_of_dot(total)


class _Bfdot(_Emulated):
    def sum_to_odd(self, x, y):
        """The sum; where it is between two float32 numbers, that of both whose last bit is set."""
        x, y = self.wide(x), self.wide(y)
        total = self.wide_two("fadd", x, y)
        part = self.wide_two("fsub", total, x)
        left = self.wide_two("fsub", x, self.wide_two("fsub", total, part))
        off = self.wide_two("fadd", left, self.wide_two("fsub", y, part))  # what a sum of float64 numbers lacks
        bits = self.put(f"bitcast {self.doubles} {total} to <4 x i64>")
        inexact = self.put(f"fcmp one {self.doubles} {off}, zeroinitializer")
        signs = self.put(f"xor <4 x i64> {bits}, {self.put(f'bitcast {self.doubles} {off} to <4 x i64>')}")
        beyond = self.put(f"and <4 x i1> {inexact}, {self.put(f'icmp slt <4 x i64> {signs}, zeroinitializer')}")
        bits = self.put(f"sub <4 x i64> {bits}, {self.put(f'zext <4 x i1> {beyond} to <4 x i64>')}")
        bits = self.put(f"or <4 x i64> {bits}, {self.put(f'zext <4 x i1> {inexact} to <4 x i64>')}")
        low = self.put(f"and <4 x i64> {bits}, {self._longs((1 << 29) - 1)}")
        some = self.put(f"icmp ne <4 x i64> {low}, zeroinitializer")
        high = self.put(f"and <4 x i64> {bits}, {self._longs(-1 << 29)}")
        last = self.put(f"select <4 x i1> {some}, <4 x i64> {self._longs(1 << 29)}, <4 x i64> zeroinitializer")
        odd = self.put(f"or <4 x i64> {high}, {last}")
        return self.flushed(self.narrow(self.put(f"bitcast <4 x i64> {odd} to {self.doubles}")))

    def _longs(self, x):
        return f"<{', '.join([f'i64 {x}'] * 4)}>"


def _bfdot():
    code = _Bfdot(4)
    x, y = code.pairs_of("%x", "%y")
    products = [code.flushed(code.mul(*(code.of_pairs(v, first) for v in (x, y)))) for first in (True, False)]
    return code.definition_of_dot(code.sum_to_odd(code.flushed("%total"), code.sum_to_odd(*products)))
