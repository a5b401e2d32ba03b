"""Steps of optimizers, one element at a time: what they read and write passes through the processor once."""

from __future__ import annotations

from typing import Any

from genesis.kernels.llvm import loops
from genesis.kernels.llvm.values import Value, sqrt


def adam(
    p: Value, g: Value, m: Value, v: Value,
    b1_rest: Value, b2: Value, b2_rest: Value, root: Value, eps: Value, rate: Value, shrink: Value,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """The parameter and both averages after a step; in the order of `genesis.kernels.cpu.optim`, so with its bits."""
    p = p * shrink
    m = (g - m) * b1_rest + m
    v = v * b2 + g * g * b2_rest
    return p + m / (sqrt(v) / root + eps) * rate, m, v


def rows(name: str, loop: str, kind: str, arrays: int, numbers: int, written: tuple[int, ...]) -> str:
    """The function ``name(table, count, numbers, offset)``: the loop ``loop`` for each row of a table.

    A row has the addresses of the objects of so many NumPy arrays, which have that of their elements ``offset`` bytes
    further on, and then their size. The loop takes them, the numbers, and to write to those of the arrays ``written``.
    """
    size = {"float": 4, "double": 8}[kind]
    operands = [*range(arrays), *[None] * numbers, *written]
    steps, fixed, given = [], [], []
    for i, array in enumerate(operands):
        step = 0 if array is None else size
        steps += [f"%step{i} = getelementptr i64, ptr %steps, i64 {i}", f"store i64 {step}, ptr %step{i}"]
        at = [f"%at{i} = getelementptr ptr, ptr %args, i64 {i}"]
        if array is None:
            number = f"%number{i} = getelementptr {kind}, ptr %numbers, i64 {i - arrays}"
            fixed += [*at, number, f"store ptr %number{i}, ptr %at{i}"]
        else:
            given += [*at, f"store ptr %data{array}, ptr %at{i}"]
    read = []
    for i in range(arrays):
        read += [
            f"%object_at{i} = getelementptr ptr, ptr %row, i64 {i}",
            f"%object{i} = load ptr, ptr %object_at{i}",
            f"%data_at{i} = getelementptr i8, ptr %object{i}, i64 %offset",
            f"%data{i} = load ptr, ptr %data_at{i}",
        ]
    newline = "\n  "
    return f"""
define void @{name}(ptr %table, i64 %count, ptr %numbers, i64 %offset) {{
entry:
  %args = alloca [{len(operands)} x ptr]
  %steps = alloca [{len(operands)} x i64]
  %size = alloca i64
  {newline.join([*steps, *fixed])}
  %any = icmp sgt i64 %count, 0
  br i1 %any, label %row_start, label %done
row_start:
  %r = phi i64 [ 0, %entry ], [ %next_r, %row_start ]
  %begin = mul i64 %r, {arrays + 1}
  %row = getelementptr i64, ptr %table, i64 %begin
  {newline.join([*read, *given])}
  %size_at = getelementptr i64, ptr %row, i64 {arrays}
  %n = load i64, ptr %size_at
  store i64 %n, ptr %size
  call void @{loop}(ptr %args, ptr %size, ptr %steps, ptr null)
  %next_r = add i64 %r, 1
  %more = icmp slt i64 %next_r, %count
  br i1 %more, label %row_start, label %done
done:
  ret void
}}
"""


def adam_rows(kind: str) -> str:
    """The code of ``adam_rows``, a step of many parameters: `rows` of `adam`."""
    loop = loops.loop("adam_loop", adam, kind, operands=11, narrow=True, results=3)
    return loop + rows("adam_rows", "adam_loop", kind, arrays=4, numbers=7, written=(0, 2, 3))
