"""Kernels of writes into some rows of a value: those rows and nothing else, where the value lies in the memory of the old one.

keys.index_copy_(2, position, k)        keys[:, :, position] = k
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from genesis.arrays.spec import strides_of
from genesis.core.call.scalars import Expression
from genesis.jit.arguments import Var
from genesis.jit.lowering import ranges
from genesis.jit.lowering.emit_llvm import emitted
from genesis.jit.lowering.emit_python import interpreted
from genesis.jit.lowering.layouts import same_layout, size_of
from genesis.jit.lowering.loops import Affine, Axis, For, Load, Nest, Store, Value
from genesis.jit.lowering.parts import BOOL, I64, Memory, Read, Unknown
from genesis.jit.lowering.phases import Kernel, Stage
from genesis.jit.program import Call
from genesis.kernels.llvm import loops


def put_rows(memory: Memory, call: Call, name: Callable[[str], str]) -> Stage:
    """``put`` at an index array along one dimension."""
    before, value, index, key = call.args
    out, dim = call.outs[0], ranges.one_dimension(key)
    if dim is None or index is None or not memory.is_root(before) or not same_layout(before.spec, out.spec):
        raise Unknown("an index of this kind")
    if before in memory.numbers or value in memory.numbers or value.spec.dtype != out.spec.dtype:
        raise Unknown("a value of another dtype")
    nest, operands = _some(memory, (value, index, out), dim)
    code = emitted(nest, "NAME", loops.width()).replace("@NAME(", "@NAME_rows(") + loops.attributes()
    code += "\n" + _WHOLE.replace("SIZE", str(size_of(out.spec)))
    own = name(code)
    own_code = code.replace("@NAME", f"@{own}")
    kernel = Kernel(own, own_code, 1, frozenset([1]), ((0, 1),), _python(interpreted(nest)))
    return Stage(kernel, (before, *operands))


# of the old value, the new one, and others; where both are one, nothing is copied
_WHOLE = """
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define void @NAME(ptr %addresses, i64 %chunk) {
begin:
  %others = getelementptr ptr, ptr %addresses, i64 1
  %old = load ptr, ptr %addresses
  %new = load ptr, ptr %others
  %same = icmp eq ptr %old, %new
  br i1 %same, label %rows, label %copy
copy:
  call void @llvm.memcpy.p0.p0.i64(ptr %new, ptr %old, i64 SIZE, i1 false)
  br label %rows
rows:
  call void @NAME_rows(ptr %others, i64 0)
  ret void
}
"""


def _some(memory: Memory, args: tuple[Var, Var, Var], dim: int) -> tuple[Nest, list[Var]]:
    """The loops that store the rows, of the result and what is read."""
    value, index, out = args
    shape, own = out.spec.shape, strides_of(out.spec)
    ndim = len(index.spec.shape)
    extents = (*shape[:dim], *index.spec.shape, *shape[dim + 1 :])
    axes = [Axis(n) for n in extents]
    rows = memory.broadcast(value, extents)
    which = memory.read(index, [*[0] * dim, *memory.strides(index), *[0] * (len(shape) - dim - 1)])
    operands = list(dict.fromkeys([out, rows.root, which.root]))
    dtypes = {out: out.spec.dtype, rows.root: rows.dtype, which.root: which.dtype}

    def affine(strides: Any, offset: int = 0) -> Affine:
        return Affine(offset, tuple([(axis, s) for axis, s in zip(axes, strides, strict=True) if s]))

    def load(read: Read) -> Load:
        return Load(operands.index(read.root), affine(read.strides, read.offset), read.dtype)

    target = affine([*own[:dim], *[0] * ndim, *own[dim + 1 :]])
    number = _number(memory, index, load(which), shape[dim])
    store = Store(0, target, load(rows), number, own[dim])
    nest = Nest(
        tuple([dtypes[v] for v in operands]), (For(tuple(axes) or (Axis(1),), (store,), vector=dim + 1 < len(shape)),)
    )
    return nest, operands


def _number(memory: Memory, index: Var, load: Load, size: int) -> Value:
    """The number of a row: it is checked; if it may be below 0, it counts from the end."""
    at = Expression("cast", (load,), I64)
    if not memory.wraps(index, size):
        return at
    below = Expression("less", (at, Expression("number", (0,), I64)), BOOL)
    return Expression("where", (below, Expression("add", (at, Expression("number", (size,), I64)), I64), at), I64)


def _python(rows: Callable[[list[Any], int], None]) -> Callable[[list[Any], int], None]:
    def run(arrays: list[Any], chunk: int) -> None:
        old, new = arrays[:2]
        if old.ctypes.data != new.ctypes.data:
            new[...] = old
        rows(arrays[1:], chunk)

    return run
