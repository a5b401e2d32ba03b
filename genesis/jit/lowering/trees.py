"""Sums of products of columns in the order of a tree, ``(x0.T @ y0 + x2.T @ y2) + (x1.T @ y1 + x3.T @ y3)``, as one kernel: what
gradients of a weight become that several shards of a batch give.

Each product is summed by itself, in registers; what waits to be added lies in the cache, and the result is written once. The
operands are copied as those of one product that has the terms of all of them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from genesis.jit.lowering.listing_tiles import affine
from genesis.jit.lowering.parts import Memory
from genesis.jit.lowering.phases import Kernel, Stage
from genesis.jit.lowering.tiles import Plan, Product, Tiles, code, pieces
from genesis.jit.program import Call
from genesis.kernels.llvm import loops

OP = "matmul_tn.tree"
MOST = 512  # terms of all products together: the first matrices' rows of a block are copied


@dataclass(frozen=True, slots=True)
class Tree:
    """Products with the same sizes and strides: the first, and where the operands of each begin. The first half of them is
    one branch.
    """

    product: Product
    offsets: tuple[tuple[int, int], ...]

    @property
    def together(self) -> Product:
        """A product with the terms of all."""
        return replace(self.product, k=self.product.k * len(self.offsets))


def joined(memory: Memory, one: Call, other: Call, total: Call) -> Call | None:
    """The sum of two products, or of two sums of as many, as a call; None where they do not lie alike, or are too many."""
    args = (*one.args, *other.args)
    if one.op != other.op or len(one.args) != len(other.args) or sum([v.spec.shape[0] for v in args[::2]]) > MOST:
        return None
    for operands in (args[::2], args[1::2]):
        if len({(v.spec.shape, memory.strides(v)) for v in operands}) > 1:
            return None
    return Call(OP, args, total.outs, total.site) if memory.strides(args[1])[1] == 1 else None


def stage(memory: Memory, call: Call, name: Callable[[str], str]) -> Stage:
    """The kernel of such a call, with its operands."""
    (x, y), out = call.args[:2], call.outs[0]
    (k, m), n = x.spec.shape, y.spec.shape[1]
    reads = [memory.read(v, ()) for v in call.args]
    (row, term), (line, column) = memory.strides(x)[::-1], memory.strides(y)
    product = Product(m, n, k, (reads[0].offset, row, term), (reads[1].offset, line, column), (0, n, 1), None)
    offsets = tuple([(a.offset, b.offset) for a, b in zip(reads[::2], reads[1::2], strict=True)])
    tree, lanes = Tree(product, offsets), loops.width() // 4
    roots = [read.root for read in reads]
    return Stage(kernel(name(f"{tree} {lanes}"), tree, lanes), (*roots[:2], out, *roots[2:]))


@functools.cache
def kernel(name: str, tree: Tree, lanes: int) -> Kernel:
    """Of the operands a and b of the first product, c, and those of the others."""
    plan = Plan(tree.together, lanes)
    plan.terms = tree.together.k
    plan.apart = plan.rows * plan.terms + 16
    text = code(name, tree.product, plan, Trees(lanes, tree))
    told = functools.partial(listing, tree, plan)
    return Kernel(name, text, plan.chunks, frozenset([2]), python=oracle(tree, plan), listing=told)


class Trees(Tiles):
    """The code of such a sum."""

    def __init__(self, lanes: int, tree: Tree) -> None:
        super().__init__(lanes, tree.product)
        self.tree, self.more, self.shift = tree, 2 * len(tree.offsets) - 2, 0

    @contextmanager
    def _product(self, i: int) -> Iterator[None]:
        """Inside, the operands are those of one product; terms of the others are copied before them."""
        (a, b), bases = self.tree.offsets[i], self.bases
        one, other = (bases[0], bases[1]) if i == 0 else (bases[2 * i + 1], bases[2 * i + 2])
        self.a, self.b = self.at(one, str(a)), self.at(other, str(b))
        self.terms, self.shift = ("0", str(self.tree.product.k)), i * self.tree.product.k
        yield

    def below(self, term: str) -> str:
        return self.add(term, str(self.shift))

    def compute(self, p: Product, first: Sequence[str], last: Sequence[str]) -> None:
        plan, count = self.plan, len(self.tree.offsets)
        self.first = first[0]
        for i in range(count if plan.copies_a else 0):
            with self._product(i):
                self.copy_rows(p, first[0], last[0])
        for columns, at in pieces(p.n, plan.width):
            with self.loop(first[1] if at < 0 else str(at), last[1], str(columns)) as panel:
                for i in range(count if plan.copies_b else 0):
                    with self._product(i):
                        self.copy_panel(p, columns, panel.index)
                self.rows_of_panel(p, columns, panel.index, (first[0], last[0]))

    def tile(self, p: Product, rows: int, columns: int, row: str, column: str) -> None:
        vectors = -(-columns // self.lanes)
        self.fetch(p, rows, vectors, row, column)

        def total(numbers: range) -> list[str]:
            if len(numbers) == 1:
                with self._product(numbers[0]):
                    return self.sums(p, rows, columns, row, column)
            half = len(numbers) // 2
            one, other = total(numbers[:half]), total(numbers[half:])
            return [self.plus(a, b) for a, b in zip(one, other, strict=True)]

        values = total(range(len(self.tree.offsets)))
        for r in range(rows):
            target = self.at(self.c, self.begin_of(p, row, r, column))
            for v in range(vectors):
                self.store_some(values[r * vectors + v], target, v, columns)


# ---- the same in Python


def oracle(tree: Tree, plan: Plan) -> Callable[[list[Any], int], None]:
    """The same on flat arrays, a chunk at a time."""
    p = tree.product

    def seen(array: Any, offset: int, strides: Sequence[int], shape: tuple[int, int]) -> Any:
        return np.lib.stride_tricks.as_strided(array[offset:], shape, [s * array.itemsize for s in strides])

    def run(arrays: list[Any], chunk: int) -> None:
        given = [*arrays[:2], *arrays[3:]]
        rows = [seen(x, a, p.a[1:], (p.m, p.k)) for x, (a, _) in zip(given[::2], tree.offsets, strict=True)]
        columns = [seen(y, b, p.b[1:], (p.k, p.n)) for y, (_, b) in zip(given[1::2], tree.offsets, strict=True)]
        c = seen(arrays[2], p.c[0], p.c[1:], (p.m, p.n))
        for unit in range(chunk * plan.each, min((chunk + 1) * plan.each, plan.units)):
            block, column = divmod(unit, plan.columns)
            here = (
                slice(block * plan.high, (block + 1) * plan.high),
                slice(column * plan.wide, (column + 1) * plan.wide),
            )
            values = [a[here[0]] @ b[:, here[1]] for a, b in zip(rows, columns, strict=True)]
            c[here] = _in_tree(values, lambda x, y: x + y)

    return run


def listing(tree: Tree, plan: Plan, name: str) -> str:
    """The text of a kernel (see `listing.listing`), element by element."""
    p, count = tree.product, len(tree.offsets)
    lines = [
        f"for unit in range({plan.each} * chunk, min({plan.each} * chunk + {plan.each}, {plan.units})):",
        f"    block, column = divmod(unit, {plan.columns})",
        f"    for i in range({plan.high} * block, min({plan.high} * block + {plan.high}, {p.m})):",
        f"        for j in range({plan.wide} * column, min({plan.wide} * column + {plan.wide}, {p.n})):",
    ]
    operands = ["x0", "x1", *[f"x{i}" for i in range(3, 2 * count + 1)]]
    for i, (a, b) in enumerate(tree.offsets):
        first, second = affine(a, (p.a[1], "i"), (p.a[2], "t")), affine(b, (p.b[1], "t"), (p.b[2], "j"))
        lines += [
            f"            total{i} = float32(0)",
            f"            for t in range({p.k}):",
            f"                total{i} += {operands[2 * i]}[{first}] * {operands[2 * i + 1]}[{second}]",
        ]
    whole = _in_tree([f"total{i}" for i in range(count)], lambda x, y: f"({x} + {y})")
    lines.append(f"            x2[{affine(p.c[0], (p.c[1], 'i'), (p.c[2], 'j'))}] = {whole}")
    names = ", ".join([*operands[:2], "x2", *operands[2:]])
    return "\n".join([f"def {name}({names}, chunk):", *["    " + line for line in lines]])


def _in_tree(values: Sequence[Any], add: Callable[[Any, Any], Any]) -> Any:
    half = len(values) // 2
    return add(_in_tree(values[:half], add), _in_tree(values[half:], add)) if half else values[0]
