"""Vectors of numbers in LLVM code: arithmetic on a `Value` writes an instruction.

    >>> from genesis.kernels.llvm.values import Code
    >>> code = Code(lanes=2)
    >>> x = code.argument("x", "double")
    >>> _ = (x + 1.0) * x
    >>> print("\\n".join(code.lines))
    %v1 = fadd <2 x double> %x, <double 0x3FF0000000000000, double 0x3FF0000000000000>
    %v2 = fmul <2 x double> %v1, %x

Comparisons are ordered: false where an operand is nan. So ``select(x > limit, limit, x)`` keeps nan.
"""

from __future__ import annotations

import struct
from typing import Any

_COMPARED = {"lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "eq": "oeq"}


class Code:
    """Instructions in the order in which they were asked for.

    Args:
        lanes: how many numbers a value has
        short: results are rounded to float32, though computed in float64: formulas may be shorter
    """

    def __init__(self, lanes: int, short: bool = False) -> None:
        self.lanes, self.short = lanes, short
        self.lines: list[str] = []
        self.declared: dict[str, str] = {}  # functions that are called, and how they are declared
        self.block = "entry"  # the label of the instructions that are written now
        self._count = 0

    def argument(self, name: str, kind: str) -> Value:
        """The value that is called ``%name``."""
        return Value(self, f"%{name}", kind)

    def vector(self, kind: str) -> str:
        return f"<{self.lanes} x {kind}>"

    def constant(self, number: float, kind: str = "double") -> Value:
        """The same number in every lane."""
        text = _text(number, kind)
        return Value(self, "<" + ", ".join([f"{kind} {text}"] * self.lanes) + ">", kind)

    def write(self, kind: str, instruction: str) -> Value:
        """Write an instruction; its result."""
        name = self.name()
        self.lines.append(f"{name} = {instruction}")
        return Value(self, name, kind)

    def name(self) -> str:
        """A name that nothing has."""
        self._count += 1
        return f"%v{self._count}"

    def call(self, function: str, *operands: Value) -> Value:
        """A function of LLVM on numbers of one kind, ``llvm.fma`` for example."""
        kind = operands[0].kind
        name = f"{function}.v{self.lanes}{'f' if kind in ('double', 'float') else ''}{_BITS[kind]}"
        vector = self.vector(kind)
        self.declared[name] = f"declare {vector} @{name}({', '.join([vector] * len(operands))})"
        return self.write(kind, f"call {vector} @{name}({', '.join([f'{vector} {x}' for x in operands])})")

    def mark(self, label: str) -> None:
        """Begin a block of instructions."""
        self.lines.append(f"{label}:")
        self.block = label


_BITS = {"double": "64", "float": "32", "i64": "i64", "i32": "i32"}


def _text(number: float, kind: str) -> str:
    if kind == "float":
        number = struct.unpack("f", struct.pack("f", number))[0]
    return str(int(number)) if kind[0] == "i" else "0x" + struct.pack(">d", number).hex().upper()


class Value:
    """One number in each lane."""

    __slots__ = ("code", "kind", "name")

    def __init__(self, code: Code, name: str, kind: str) -> None:
        self.code, self.name, self.kind = code, name, kind

    def __str__(self) -> str:
        return self.name

    def _with(self, other: Any) -> Value:
        return other if isinstance(other, Value) else self.code.constant(other, self.kind)

    def _do(self, instruction: str, x: Any, y: Any, kind: str = "") -> Value:
        a, b = self._with(x), self._with(y)
        return self.code.write(kind or self.kind, f"{instruction} {self.code.vector(self.kind)} {a}, {b}")

    def _arithmetic(self, name: str, x: Any, y: Any) -> Value:
        return self._do(("" if self.kind[0] == "i" else "f") + name, x, y)

    def __add__(self, other: Any) -> Value:
        return self._arithmetic("add", self, other)

    def __sub__(self, other: Any) -> Value:
        return self._arithmetic("sub", self, other)

    def __mul__(self, other: Any) -> Value:
        return self._arithmetic("mul", self, other)

    def __truediv__(self, other: Any) -> Value:
        return self._do("fdiv", self, other)

    def __rsub__(self, other: Any) -> Value:
        return self._arithmetic("sub", other, self)

    def __rtruediv__(self, other: Any) -> Value:
        return self._do("fdiv", other, self)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Value:
        return self.code.write(self.kind, f"fneg {self.code.vector(self.kind)} {self}")

    def __abs__(self) -> Value:
        return self.code.call("llvm.fabs", self)

    def _compare(self, name: str, other: Any) -> Value:
        how = f"fcmp {_COMPARED[name]}" if self.kind[0] != "i" else f"icmp {'' if name == 'eq' else 's'}{name}"
        return self._do(how, self, other, "i1")

    def __lt__(self, other: Any) -> Value:
        return self._compare("lt", other)

    def __le__(self, other: Any) -> Value:
        return self._compare("le", other)

    def __gt__(self, other: Any) -> Value:
        return self._compare("gt", other)

    def __ge__(self, other: Any) -> Value:
        return self._compare("ge", other)

    def equals(self, other: Any) -> Value:
        return self._compare("eq", other)

    def __and__(self, other: Any) -> Value:
        return self._do("and", self, other)

    def __or__(self, other: Any) -> Value:
        return self._do("or", self, other)

    def __xor__(self, other: Any) -> Value:
        return self._do("xor", self, other)

    def __invert__(self) -> Value:
        return self._do("xor", self, True if self.kind == "i1" else -1)

    def __lshift__(self, count: int) -> Value:
        return self._do("shl", self, count)

    def __rshift__(self, count: int) -> Value:
        """Copies of the sign come in."""
        return self._do("ashr", self, count)

    def bits(self) -> Value:
        """The same bits as an integer."""
        return self._converted("bitcast", "i64" if self.kind == "double" else "i32")

    def number(self) -> Value:
        """The number that has these bits."""
        return self._converted("bitcast", "double" if self.kind == "i64" else "float")

    def wide(self) -> Value:
        return self if self.kind == "double" else self._converted("fpext", "double")

    def narrow(self) -> Value:
        return self if self.kind == "float" else self._converted("fptrunc", "float")

    def _converted(self, instruction: str, kind: str) -> Value:
        vector = self.code.vector
        return self.code.write(kind, f"{instruction} {vector(self.kind)} {self} to {vector(kind)}")

    def any(self) -> str:
        """Whether one is true, as a scalar."""
        code, bits = self.code, f"i{self.code.lanes}"
        whole = code.write(bits, f"bitcast {code.vector('i1')} {self} to {bits}")
        return str(code.write("i1", f"icmp ne {bits} {whole}, 0"))


def select(condition: Value, x: Any, y: Any) -> Value:
    """x where the condition holds, else y; one of the two may be a number."""
    code = condition.code
    kind = x.kind if isinstance(x, Value) else y.kind
    a, b = (v if isinstance(v, Value) else code.constant(v, kind) for v in (x, y))
    vector = code.vector(kind)
    return code.write(kind, f"select {code.vector('i1')} {condition}, {vector} {a}, {vector} {b}")


def fma(x: Value, y: Any, z: Any) -> Value:
    """x y + z, rounded once."""
    return x.code.call("llvm.fma", x, x._with(y), x._with(z))


def sqrt(x: Value) -> Value:
    return x.code.call("llvm.sqrt", x)


def rint(x: Value) -> Value:
    return x.code.call("llvm.rint", x)


def trunc(x: Value) -> Value:
    return x.code.call("llvm.trunc", x)


def copysign(x: Any, sign: Value) -> Value:
    return sign.code.call("llvm.copysign", sign._with(x), sign)


def least(x: Value, limit: Any) -> Value:
    """x, or the limit where it is above; nan stays."""
    return select(x > limit, limit, x)


def most(x: Value, limit: Any) -> Value:
    """x, or the limit where it is below; nan stays."""
    return select(x < limit, limit, x)
