"""Functions of rows of float32 numbers, as NumPy gufuncs: sums in float64, results rounded once.

    def softmax(row):
        x = row.operands[0]
        top = row.largest(lambda x: x)
        ...

A function says what it needs of a row in passes over it: `Row.total` and `Row.largest` give a number, `Row.give` writes
the result. The rows of all operands are contiguous; a row that has no full vectors at its end is read from a copy.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from genesis.kernels.llvm import loops, native
from genesis.kernels.llvm.functions import exp, log
from genesis.kernels.llvm.values import Code, Value, select, sqrt

Formula = Callable[..., Value]


class Row:
    """A row of each operand, and the passes over them, as they are asked for."""

    def __init__(self, code: Code, vectors: int, numbers: int) -> None:
        self.code, self.vectors = code, vectors
        self.numbers = [self._number(f"%number{i}") for i in range(numbers)]  # of the operands that have one for a row
        self.size = self._all("%size", "double")
        self._passes = 0

    def _all(self, name: str, kind: str) -> Value:
        """A number in every lane."""
        vector = self.code.vector(kind)
        first = self.code.write(kind, f"insertelement {vector} poison, {kind} {name}, i32 0")
        lanes = f"<{self.code.lanes} x i32> zeroinitializer"
        return self.code.write(kind, f"shufflevector {vector} {first}, {vector} poison, {lanes}")

    def _number(self, address: str) -> Value:
        name = self.code.write("float", f"load float, ptr {address}, align 1")
        return self._all(str(self.code.write("double", f"fpext float {name} to double")), "double")

    def _pass(self, formula: Formula, then: Callable[[Value, Value, str], None]) -> None:
        """A loop over the vectors of the row: ``then`` gets what the formula says, where there are numbers, and the
        place.
        """
        code, self._passes = self.code, self._passes + 1
        label, before, lanes = f"pass{self._passes}", code.block, code.lanes
        k, following, last = f"%k{self._passes}", f"%next{self._passes}", f"%last{self._passes}"
        code.lines.append(f"br label %{label}")
        code.mark(label)
        code.lines.append(f"{k} = phi i64 [ 0, %{before} ], [ {following}, %{label}_end ]")
        code.lines.append(f"{following} = add i64 {k}, {lanes}")
        code.lines.append(f"{last} = icmp sgt i64 {following}, %n")
        xs = []
        for i in range(self.vectors):
            inside = code.write("ptr", f"getelementptr float, ptr %row{i}, i64 {k}")
            at = code.write("ptr", f"select i1 {last}, ptr %copy{i}, ptr {inside}")
            xs.append(code.write("float", f"load {code.vector('float')}, ptr {at}, align 4").wide())
        rest = code.write("i64", f"sub i64 %n, {k}")
        lane = Value(code, "<" + ", ".join([f"i64 {i}" for i in range(lanes)]) + ">", "i64")
        then(formula(*xs), lane < self._all(str(rest), "i64"), k)
        code.lines.append(f"br label %{label}_end")
        code.mark(f"{label}_end")
        code.lines.append(f"%more{self._passes} = icmp slt i64 {following}, %n")
        code.lines.append(f"br i1 %more{self._passes}, label %{label}, label %{label}_done")
        code.mark(f"{label}_done")

    def _gathered(self, formula: Formula, none: float, join: Callable[[Value, Value], Value], reduce: str) -> Value:
        code = self.code
        vector, number = code.vector("double"), f"%gathered{self._passes + 1}"
        code.lines.append(f"store {vector} {code.constant(none)}, ptr {number}")

        def collect(value: Value, valid: Value, _: str) -> None:
            so_far = code.write("double", f"load {vector}, ptr {number}")
            code.lines.append(f"store {vector} {join(so_far, select(valid, value, none))}, ptr {number}")

        self._pass(formula, collect)
        gathered = code.write("double", f"load {vector}, ptr {number}")
        name = f"llvm.vector.reduce.{reduce}.v{code.lanes}f64"
        start = "double 0.0, " if reduce == "fadd" else ""
        code.declared[name] = f"declare double @{name}({'double, ' if start else ''}{vector})"
        return self._all(
            str(code.write("double", f"call reassoc double @{name}({start}{vector} {gathered})")), "double"
        )

    def total(self, formula: Formula) -> Value:
        """The sum of what the formula says of each place."""
        return self._gathered(formula, 0.0, lambda a, b: a + b, "fadd")

    def largest(self, formula: Formula) -> Value:
        """The largest; nan is none."""
        return self._gathered(formula, -math.inf, lambda a, b: select(b > a, b, a), "fmax")

    def give(self, formula: Formula) -> None:
        """The result at each place."""
        code = self.code

        def store(value: Value, valid: Value, k: str) -> None:
            inside = code.write("ptr", f"getelementptr float, ptr %result, i64 {k}")
            at = code.write("ptr", f"select i1 %last{self._passes}, ptr %copy_of_result, ptr {inside}")
            code.lines.append(f"store {code.vector('float')} {value.narrow()}, ptr {at}, align 4")

        self._pass(formula, store)

    def give_number(self, value: Value) -> None:
        """A result that is one number for the row."""
        first = self.code.write("float", f"extractelement {self.code.vector('float')} {value.narrow()}, i32 0")
        self.code.lines.append(f"store float {first}, ptr %number_out, align 1")


@functools.cache
def gufunc(function: Callable[[Row], None], signature: str, spread: loops.Spread | None = None) -> np.ufunc:
    """A gufunc of float32 arrays; its ``signature`` has ``(n)`` for rows, ``()`` for numbers of a row. What ``spread`` is
    given lets several threads do it.
    """
    name = f"{function.__name__}_of_rows"
    address = native.address(name, _loop(name, function, signature))
    operands, results = (part.count("(") for part in signature.split("->"))
    given = None
    if spread is not None:
        address, given = spread(address, operands + results, 2)
    return loops.made(name, address, "float", operands, results, signature, given)


def nest(function: Callable[[Row], None]) -> str:
    """The code of ``nest(x, out, first, last, n)``, a function of the rows of n numbers from ``first`` to ``last``: the loop of
    the gufunc without what NumPy does around it.
    """
    name = f"{function.__name__}_of_rows"
    words = loops.lines(
        ("args", "sizes", "steps"), "%# = alloca [2 x i64], align 8", "%#_1 = getelementptr i64, ptr %#, i64 1"
    )
    return f"""{_loop(name, function, "(n)->(n)")}
define void @nest(ptr %x, ptr %out, i64 %first, i64 %last, i64 %n) #0 {{
{words}
  %before = mul i64 %first, %n
  %begin = getelementptr float, ptr %x, i64 %before
  %begin_out = getelementptr float, ptr %out, i64 %before
  %count = sub i64 %last, %first
  %step = mul i64 %n, 4
  store ptr %begin, ptr %args
  store ptr %begin_out, ptr %args_1
  store i64 %count, ptr %sizes
  store i64 %n, ptr %sizes_1
  store i64 %step, ptr %steps
  store i64 %step, ptr %steps_1
  call void @{name}(ptr %args, ptr %sizes, ptr %steps, ptr null)
  ret void
}}"""


def _loop(name: str, function: Callable[[Row], None], signature: str) -> str:
    given, results = (part.split("),(") for part in signature.split("->"))
    rows = [i for i, part in enumerate(given) if "n" in part]
    numbers = [i for i in range(len(given)) if i not in rows]
    out, number_out = len(given), len(given) + 1 if len(results) > 1 else None
    code = Code(lanes=loops.width() // 4, short=True)
    code.mark("compute")
    row = Row(code, len(rows), len(numbers))
    function(row)
    vector, lanes = code.vector("float"), code.lanes
    pointers = {**{f"row{j}": i for j, i in enumerate(rows)}, **{f"number{j}": i for j, i in enumerate(numbers)}}
    pointers |= {"result": out} if number_out is None else {"result": out, "number_out": number_out}
    lines = loops.lines
    copies = [f"row{j}" for j in range(len(rows))]
    body = "\n".join(code.lines[1:])
    return f"""
{chr(10).join(code.declared.values())}
define void @{name}(ptr %args, ptr %sizes, ptr %steps, ptr %unused) #0 {{
entry:
  %count = load i64, ptr %sizes
  %n_at = getelementptr i64, ptr %sizes, i64 1
  %n = load i64, ptr %n_at
  %size = sitofp i64 %n to double
  %rest = srem i64 %n, {lanes}
  %whole = sub i64 %n, %rest
{
        lines(
            [str(i) for i in range(len(rows))],
            f"%copy# = alloca {vector}, align 64",
            f"store {vector} zeroinitializer, ptr %copy#",
        )
    }
  %copy_of_result = alloca {vector}, align 64
{lines([str(i) for i in range(1, row._passes + 1)], f"%gathered# = alloca {code.vector('double')}, align 64")}
{
        "".join(
            [
                f"  %at_{p} = getelementptr ptr, ptr %args, i64 {i}{chr(10)}  %start_{p} = load ptr, ptr %at_{p}{chr(10)}"
                f"  %step_at_{p} = getelementptr i64, ptr %steps, i64 {i}{chr(10)}  %step_{p} = load i64, ptr %step_at_{p}{chr(10)}"
                for p, i in pointers.items()
            ]
        )
    }
  %some = icmp sgt i64 %n, 0
  %any = icmp sgt i64 %count, 0
  %both = and i1 %some, %any
  br i1 %both, label %start, label %done
start:
  %r = phi i64 [ 0, %entry ], [ %next_r, %next ]
{lines(list(pointers), "%# = phi ptr [ %start_#, %entry ], [ %next_#, %next ]")}
  %ragged = icmp sgt i64 %rest, 0
  br i1 %ragged, label %gather, label %compute
gather:
  %g = phi i64 [ 0, %start ], [ %next_g, %gather ]
  %g_at = add i64 %whole, %g
{lines(copies, "%source_# = getelementptr float, ptr %#, i64 %g_at", "%element_# = load float, ptr %source_#, align 4")}
{
        lines(
            [str(i) for i in range(len(rows))],
            "%place_# = getelementptr float, ptr %copy#, i64 %g",
            "store float %element_row#, ptr %place_#",
        )
    }
  %next_g = add i64 %g, 1
  %more_g = icmp slt i64 %next_g, %rest
  br i1 %more_g, label %gather, label %compute
compute:
{body}
  br i1 %ragged, label %scatter, label %next
scatter:
  %s = phi i64 [ 0, %{code.block} ], [ %next_s, %scatter ]
  %s_at = add i64 %whole, %s
  %value_at = getelementptr float, ptr %copy_of_result, i64 %s
  %value = load float, ptr %value_at
  %target = getelementptr float, ptr %result, i64 %s_at
  store float %value, ptr %target, align 4
  %next_s = add i64 %s, 1
  %more_s = icmp slt i64 %next_s, %rest
  br i1 %more_s, label %scatter, label %next
next:
  %next_r = add i64 %r, 1
{lines(list(pointers), "%next_# = getelementptr i8, ptr %#, i64 %step_#")}
  %again = icmp slt i64 %next_r, %count
  br i1 %again, label %start, label %done
done:
  ret void
}}
{loops.attributes()}
"""


# ---- the functions


def softmax(row: Row) -> None:
    top = row.largest(lambda x: x)
    scale = 1.0 / row.total(lambda x: exp(x - top))
    row.give(lambda x: exp(x - top) * scale)


def log_softmax(row: Row) -> None:
    top = row.largest(lambda x: x)
    share = log(row.total(lambda x: exp(x - top)))
    row.give(lambda x: (x - top) - share)


def softmax_gradient(row: Row) -> None:
    """Of the gradient and of the softmax."""
    along = row.total(lambda g, y: g * y)
    row.give(lambda g, y: y * (g - along))


def log_softmax_gradient(row: Row) -> None:
    """Of the gradient and of the result."""
    along = row.total(lambda g, y: g)
    row.give(lambda g, y: g - exp(y) * along)


def standardized(row: Row) -> None:
    """Less the mean, over the deviation; and that."""
    mean = row.total(lambda x: x) / row.size
    root = sqrt(row.total(lambda x: (x - mean) * (x - mean)) / row.size + row.numbers[0])
    scale = 1.0 / root
    row.give_number(root)
    row.give(lambda x: (x - mean) * scale)
