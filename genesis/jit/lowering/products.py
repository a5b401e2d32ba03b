"""Products of float32 matrices, and of bfloat16 ones as float32, as kernels; `tiles` has their code, and `pairs`.

The rows of the second matrix lie beside each other; where they do not it is copied before, by a part (`packed`). One that
is the same in several rounds is copied in panels (`in_panels`). Few rows times rows are another kernel (`vectors`).
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec, contiguous_strides, strides_of
from genesis.base.dtypes import as_np
from genesis.core.call.scalars import Expression, Symbol
from genesis.jit.arguments import Var
from genesis.jit.lowering import amx, pairs, transposes, trees, vectors
from genesis.jit.lowering.listing_tiles import of_product
from genesis.jit.lowering.parts import F64, Builder, Memory, Part, Read, Unknown, total
from genesis.jit.lowering.phases import Kernel, Stage
from genesis.jit.lowering.tiles import FEWER, HIGH, Plan, Product, Tiles, code, panels_code
from genesis.jit.program import Call, Program
from genesis.kernels.llvm import loops
from genesis.kernels.llvm.units import FLOAT32

OPS = ("linear", "matmul", "matmul_tn", "matmul_tn.add")
F32, BF16 = np.dtype(np.float32), as_np("bfloat16")
EMITTERS: dict[str, type[Tiles]] = {
    FLOAT32: Tiles, "dpbf16ps": pairs.Pairs, "bfdot": pairs.Pairs, "tdpbf16ps": amx.Registers,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Operands:
    """A product, and whose memory it is of."""

    product: Product
    a: Read
    b: Read
    out: Var
    bias: Read | None
    before: Var | None = None  # what is added to

    @property
    def stage_operands(self) -> tuple[Var, ...]:
        """Those of the kernel."""
        more = [self.bias.root] if self.bias else [self.before] if self.before else []
        return (self.a.root, self.b.root, self.out, *more)


def operands(memory: Memory, call: Call) -> Operands:
    """What a call of ``linear``, ``matmul`` or ``matmul_tn`` multiplies; ``matmul_tn.add`` adds to a matrix."""
    x, y, *rest = call.args
    adds = call.op == "matmul_tn.add"
    bias = rest[0] if rest and not adds else None
    out = call.outs[0]
    if not memory.is_root(out):
        raise Unknown("a result that is a view")
    a, b, c = list(memory.strides(x)), list(memory.strides(y)), list(strides_of(out.spec))
    shape_a, shape_b = list(x.spec.shape), list(y.spec.shape)
    if call.op.startswith("matmul_tn"):
        a, shape_a = a[::-1], shape_a[::-1]
    if call.op == "linear":
        if len(shape_b) == 1:
            raise Unknown("a weight of one dimension")
        b, shape_b = b[::-1], shape_b[::-1]
    if len(shape_a) == 1:
        a, shape_a, c = [0, *a], [1, *shape_a], [*c[:-1], 0, *c[-1:]] if len(shape_b) > 1 else [0, *c]
    if len(shape_b) == 1:
        b, shape_b, c = [*b, 0], [*shape_b, 1], [*c, 0]
    (m, k), n = shape_a[-2:], shape_b[-1]
    batch = _batch(shape_a[:-2], a[:-2], shape_b[:-2], b[:-2], c[:-2])
    first, second = memory.read(x, ()), memory.read(y, ())
    third = (
        None
        if bias is None
        else memory.read(bias, [0 if n == 1 else s for n, s in zip(bias.spec.shape, memory.strides(bias), strict=True)])
    )
    row = (first.offset, a[-2], a[-1])
    if batch and not b[:-2] and len(batch) == 1 and batch[0][1] == m * a[-2] and batch[0][3] == m * c[-2]:
        m, batch = m * batch[0][0], []  # many rows
    product = Product(
        m, n, k, row, (second.offset, b[-2], b[-1]), (0, c[-2], c[-1]),
        None if third is None else (third.offset, third.strides[0] if third.strides else 0), tuple(batch), adds,
    )  # fmt: skip
    return Operands(product, first, second, out, third, rest[0] if adds else None)


def _batch(
    shape_a: Sequence[int], a: Sequence[int], shape_b: Sequence[int], b: Sequence[int], c: Sequence[int]
) -> list[tuple[int, int, int, int]]:
    """Axes of matrices that are multiplied one by one, neighbours joined where that can be."""
    ndim = max(len(shape_a), len(shape_b))
    out: list[tuple[int, int, int, int]] = []
    for i in range(-ndim, 0):
        n_a, s_a = (shape_a[i], a[i]) if -i <= len(a) else (1, 0)
        n_b, s_b = (shape_b[i], b[i]) if -i <= len(b) else (1, 0)
        n = max(n_a, n_b) if min(n_a, n_b) else 0
        new = (n, s_a if n_a != 1 else 0, s_b if n_b != 1 else 0, c[i])
        if n == 1:
            continue
        if out and all([old == s * n for old, s in zip(out[-1][1:], new[1:], strict=True)]):
            new = (out.pop()[0] * n, *new[1:])
        out.append(new)
    return out


def added_to(program: Program, calls: Sequence[Call]) -> list[Call]:
    """The calls, where a product of columns that nothing but a sum reads is that sum, made while it is in registers: of two
    products, of two such sums (`trees`), or of one and another matrix. The bits are the same: all of its terms are one block.
    """
    reads = Counter([*[v for call in program.calls for v in call.inputs], *program.ends])
    memory = Memory(program.regions, set())
    made: dict[Var, Call] = {}
    out: dict[int, Call] = {}
    for call in calls:
        new = _of_products(memory, call, made) if _is_plain_sum(program, call) else None
        for v in () if new is None else [v for v in call.args if v in made]:
            if v not in new.args:
                del out[id(made.pop(v))]
        out[id(new or call)] = new or call
        is_product = call.op == "matmul_tn" and _is_one_block(call)
        if reads[call.outs[0]] == 1 and (is_product or (new is not None and new.op == trees.OP)):
            made[call.outs[0]] = new or call
    return list(out.values())


def _of_products(memory: Memory, call: Call, made: dict[Var, Call]) -> Call | None:
    """A sum as a call that makes the products it is of; None if it is of none."""
    one, other = (made.get(v) for v in call.args)
    if one is not None and other is not None:
        tree = trees.joined(memory, one, other, call)
        if tree is not None:
            return tree
    last = next((v for v in reversed(call.args) if v in made and made[v].op == "matmul_tn"), None)
    if last is None:
        return None
    (before,) = [v for v in call.args if v is not last]
    return Call("matmul_tn.add", (*made[last].args, before), call.outs, call.site)


def _is_plain_sum(program: Program, call: Call) -> bool:
    """Whether it is one of two matrices with memory of their own, which lie as the result does, row after row."""
    if (
        call.op != "add"
        or not len(call.args) == len(call.inputs) == 2
        or any([v in program.regions for v in call.inputs])
    ):
        return False
    every = [v.spec for v in (*call.args, *call.outs)]
    same = all([(s.shape, s.dtype) == (every[0].shape, F32) for s in every])
    return same and all([strides_of(s) == contiguous_strides(s.shape) for s in every])


def _is_one_block(call: Call) -> bool:
    x, y = (v.spec for v in call.args)
    rows = len(x.shape) == len(y.shape) == 2 and 2 <= x.shape[0] <= FEWER
    return rows and {x.dtype, y.dtype} == {F32} and min(call.outs[0].spec.shape) >= 4


# ---- as sums, element by element


def as_part(memory: Memory, call: Call) -> Part:
    """A product as a total: of other dtypes, of vectors."""
    given = operands(memory, call)
    p = given.product
    shape = [*[n for n, *_ in p.batch], p.m, p.n, p.k]
    zeros = [0] * len(p.batch)
    made = Builder(memory, call, shape, (len(shape) - 1,))

    def read(old: Read, strides: Sequence[int]) -> Any:
        made.reads.append(Read(old.root, old.dtype, old.offset, tuple(strides)))
        return _last_read(made, old)

    wide = (
        F64 if call.outs[0].spec.dtype.kind == "f" or call.outs[0].spec.dtype.itemsize == 2 else call.outs[0].spec.dtype
    )
    x = read(given.a, [*[s for _, s, _, _ in p.batch], p.a[1], 0, p.a[2]]).astype(wide)
    y = read(given.b, [*[s for _, _, s, _ in p.batch], 0, p.b[2], p.b[1]]).astype(wide)
    value = total("add", x * y)
    if given.bias is not None:
        value = value + read(given.bias, [*zeros, 0, p.bias[1] if p.bias else 0, 0]).astype(wide)
    made.give(given.out, value, [*[s for *_, s in p.batch], p.c[1], p.c[2], 0])
    return made.made()


def _last_read(made: Builder, read: Read) -> Any:
    return Symbol(Expression("x", (len(made.reads) - 1,), read.dtype))


# ---- as kernels


def packed(memory: Memory, call: Call, given: Operands) -> tuple[Part, Operands]:
    """The copy of the second matrix whose rows lie beside each other, and the product with that."""
    p = given.product
    batch = [(n, s_b) for n, _, s_b, _ in p.batch if s_b]
    shape = (*[n for n, _ in batch], p.k, p.n)
    var = Var(Spec(shape, given.b.dtype))
    made = Builder(memory, call, shape)
    made.reads.append(Read(given.b.root, given.b.dtype, given.b.offset, (*[s for _, s in batch], p.b[1], p.b[2])))
    made.give(var, _last_read(made, given.b))
    own = iter(contiguous_strides(shape))
    new = tuple([(n, s_a, next(own) if s_b else 0, s_c) for n, s_a, s_b, s_c in p.batch])
    product = replace(p, b=(0, p.n, 1), batch=new)
    return made.made(), replace(given, product=product, b=Read(var, given.b.dtype, 0, ()))


def in_panels(given: Operands, name: Callable[[str], str]) -> tuple[Stage, Operands] | None:
    """The copy of the second matrix in panels, of as many columns as a tile has, row after row, and the product with that:
    so it is read in the order of memory. None where it can't be.
    """
    p, lanes = given.product, loops.width() // 4
    dtype = given.b.dtype
    if p.batch or 1 not in p.b[1:] or min(p.n, p.k) < 8 or dtype not in (F32, BF16):
        return None
    words = p if dtype == F32 else pairs.in_words(p, pairs.unit(lanes))
    assert words is not None, "what does not lie so is not multiplied in pairs"
    plan = Plan(words, lanes)
    count = -(-p.n // plan.width)
    var = Var(Spec((count * p.k * plan.width,), dtype))
    own = name(f"panels {p.n} {p.k} {p.b} {plan.width} {words.unit}")
    text = panels_code(own, words, plan, EMITTERS[words.unit](lanes, words))
    kernel = Kernel(own, text, count, frozenset([1]), python=_panels_oracle(p, plan.width, dtype))
    new = replace(p, b=(0, plan.width, 1), panels=True)
    return Stage(kernel, (given.b.root, var)), replace(given, product=new, b=Read(var, dtype, 0, ()))


def _panels_oracle(p: Product, width: int, dtype: Any) -> Callable[[list[Any], int], None]:
    together = 1 if dtype == F32 else 2  # terms of a column that lie beside each other

    def run(arrays: list[Any], chunk: int) -> None:
        size = arrays[0].itemsize
        b = np.lib.stride_tricks.as_strided(arrays[0][p.b[0] :], (p.k, p.n), [s * size for s in p.b[1:]])
        some = b[:, chunk * width : (chunk + 1) * width].reshape(p.k // together, together, -1)
        begin = chunk * width * p.k
        panel = arrays[1][begin : begin + width * p.k].reshape(p.k // together, width, together)
        panel[:, : some.shape[2]] = some.swapaxes(1, 2)

    return run


def is_turned_inside(given: Operands) -> bool:
    """Whether panels of the second matrix are turned around as they are copied: where they are copied once."""
    p = given.product
    few = vectors.suits(p, loops.width() // 4)  # then it is read as it lies
    if given.b.dtype == BF16:  # pairs are put together as they are copied
        return True
    once = p.m < 2 * HIGH  # all rows are one block
    return few or (once and p.b[1] == 1 != p.b[2] and min(p.n, p.k) >= 8 and given.b.dtype == F32)


def suits(given: Operands) -> bool:
    p = given.product
    kinds = {given.a.dtype, given.b.dtype, given.out.spec.dtype}
    if kinds == {BF16, F32}:
        small = not pairs.fits(p.m, p.n, p.k) or (p.bias is not None and given.bias.dtype != F32)
        unit = pairs.unit(loops.width() // 4)
        return bool(unit and given.a.dtype == given.b.dtype and not small and pairs.in_words(p, unit))
    fits = p.c[2] == 1 and (p.bias is None or p.bias[1] in (0, 1))
    few = p.m <= 2 and p.b[1] == 1 != p.b[2]  # rows times rows: the matrix is read as it lies, by totals if need be
    fits &= not few or vectors.suits(p, loops.width() // 4)
    return kinds == {F32} and fits and p.n >= 4 and p.k >= 2 and p.m > 0


def turned(given: Operands, out: Var, name: Callable[[str], str]) -> Stage | None:
    """The kernel of that copy where the columns of the second matrix lie beside each other; None where they do not."""
    p = given.product
    if p.b[1] != 1 or min(p.n, p.k) < 8 or given.b.dtype != F32:
        return None
    batch = [(n, s_b) for n, _, s_b, _ in p.batch if s_b]
    own = contiguous_strides(out.spec.shape)
    sizes = tuple([(n, s, b) for (n, s), b in zip(batch, own, strict=False)])
    own_name = name(f"transposed {p.n} {p.k} {p.b} {sizes}")
    return Stage(transposes.kernel(own_name, p.n, p.k, p.b[0], p.b[2], sizes), (given.b.root, out))


def unit_of(given: Operands) -> str:
    """By what operands are multiplied."""
    return pairs.unit(loops.width() // 4) if given.a.dtype == BF16 else FLOAT32


@functools.cache
def kernel(name: str, p: Product, lanes: int, unit: str = FLOAT32) -> Kernel:
    """Of the operands a, b, c, and the bias if there is one, or the matrix that is added to."""
    if unit != FLOAT32:
        words = pairs.in_words(p, unit)
        assert words is not None
        plan = Plan(words, lanes)
        return _kernel(name, code(name, words, plan, EMITTERS[unit](lanes, words)), p, plan, 2)
    if vectors.suits(p, lanes):
        few = vectors.Plan(p, lanes)
        return _kernel(name, vectors.code(name, p, few, lanes), p, few)
    plan = Plan(p, lanes)
    return _kernel(name, code(name, p, plan, Tiles(lanes, p)), p, plan)


def _kernel(name: str, text: str, p: Product, plan: Plan | vectors.Plan, together: int = 1) -> Kernel:
    over = ((3, 2),) if p.adds else ()
    told = functools.partial(of_product, p, plan, together)
    return Kernel(name, text, plan.chunks, frozenset([2]), over, oracle(p, plan), listing=told)


def oracle(p: Product, plan: Plan | vectors.Plan) -> Callable[[list[Any], int], None]:
    """The same on flat arrays, a chunk at a time."""

    def run(arrays: list[Any], chunk: int) -> None:
        def seen(i: int, spec: tuple[int, int, int], shape: tuple[int, int], strides: Sequence[int]) -> Any:
            counts = [n for n, *_ in p.batch]
            size = arrays[i].itemsize
            return np.lib.stride_tricks.as_strided(
                arrays[i][spec[0] :], (*counts, *shape), [s * size for s in (*strides, *spec[1:])]
            )

        a = seen(0, p.a, (p.m, p.k), [s for _, s, _, _ in p.batch])
        if p.panels:
            together = 2 if arrays[1].dtype == BF16 else 1
            panels = arrays[1].reshape(-1, p.k // together, plan.width, together)
            b = panels.transpose(1, 3, 0, 2).reshape(p.k, -1)[:, : p.n]
        else:
            b = seen(1, p.b, (p.k, p.n), [s for _, _, s, _ in p.batch])
        a, b = a.astype(F32, copy=False), b.astype(F32, copy=False)
        c = seen(2, p.c, (p.m, p.n), [s for *_, s in p.batch])
        bias: Any = 0.0
        if p.bias is not None:
            bias = np.lib.stride_tricks.as_strided(arrays[3][p.bias[0] :], (p.n,), (p.bias[1] * arrays[3].itemsize,))
        for unit in range(chunk * plan.each, min((chunk + 1) * plan.each, plan.units)):
            rest, column = divmod(unit, plan.columns)
            matrix, block = divmod(rest, plan.blocks)
            where = np.unravel_index(matrix, [n for n, *_ in p.batch]) if p.batch else ()
            rows = slice(block * plan.high, (block + 1) * plan.high)
            columns = slice(column * plan.wide, (column + 1) * plan.wide)
            if p.adds:
                right = seen(3, (p.c[0], *p.c[1:]), (p.m, p.n), [s for *_, s in p.batch])[where][rows, columns]
            else:
                right = np.broadcast_to(bias, (p.n,))[columns]
            c[where][rows, columns] = a[where][rows] @ b[where][:, columns] + right

    return run
