"""Sums of products over named and numbered dimensions: einsum and tensordot."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from genesis.arrays.protocol import Array
from genesis.arrays.spec import Spec
from genesis.base.blas import one_thread
from genesis.base.errors import ArgumentError, ShapeError, message
from genesis.core.call.halves import F32, HALVES
from genesis.core.call.kinds import case, composite, contraction
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.strides import packed
from genesis.core.graph.tensor import Tensor
from genesis.ops.products.matmul import dot, matmul, product_spec, same_dtype
from genesis.ops.pointwise.arithmetic import mul
from genesis.ops.shapes.expand import sum_to

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"  # importing `string` for them takes 0.5 ms
FEW = 1 << 15  # multiplications that one loop does in less time than it takes to plan them


@composite(halves="alike", out=True)
def inner(input: Tensor, other: Tensor) -> Tensor:
    """Products summed over the last dimensions.

    >>> import genesis
    >>> genesis.inner(genesis.tensor([1., 2.]), genesis.tensor([3., 4.]))
    tensor(11.)
    """
    if not input.ndim or not other.ndim:
        return input * other
    if input.ndim == other.ndim == 1 and input.shape == other.shape:
        return dot(input, other)
    return tensordot(input, other, ([-1], [-1]))


samples(inner, lambda t: [case(t(2, 3), t(4, 3)), case(t(3), t(3)), case(t(), t(2))])


@functools.lru_cache(256)
def _parse_einsum(equation: str, ranks: tuple[int, ...]) -> tuple[list[str], str]:
    """Subscripts of the operands and of the result, ellipses spelled out."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ShapeError(message("einsum", f"{equation!r} names {len(terms)} operands, {len(ranks)} were given"))
    spare = [c for c in LETTERS if c not in equation]
    wide = 0
    for i, (term, rank) in enumerate(zip(terms, ranks, strict=True)):
        if "..." in term:
            wide = max(wide, rank - len(term) + 3)
        elif len(term) != rank:
            raise ShapeError(message("einsum", f"operand {i} has {rank} dimensions, {term!r} names {len(term)}"))
    dots = "".join(spare[:wide])
    full = [
        term.replace("...", dots[len(dots) - (rank - len(term) + 3) :] if rank - len(term) + 3 else "")
        for term, rank in zip(terms, ranks, strict=True)
    ]
    if arrow:
        result = right.replace("...", dots)
    else:
        joined = "".join(terms).replace("...", "")
        result = dots + "".join(sorted(c for c in set(joined) if joined.count(c) == 1))
    unknown = set(result) - set("".join(full))
    if unknown:
        raise ShapeError(message("einsum", f"the result names {sorted(unknown)}, which no operand has"))
    return full, result


def _einsum_sizes(terms: Sequence[str], shapes: Sequence[Sequence[int]]) -> dict[str, int]:
    known: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        for c, n in zip(term, shape, strict=True):
            if known.get(c, 1) != n and 1 not in (known.get(c, 1), n):
                raise ShapeError(message("einsum", f"sizes for {c!r} differ, {known[c]} and {n}"))
            if known.get(c, 1) == 1:
                known[c] = n
    return known


def _einsum_prepare(operands: Any, terms: Any, result: Any) -> tuple[Any, ...]:
    return list(operands), terms, result


def _einsum_rule(
    g: Any, operands: Any, operands_shapes: Any, operands_wanted: Any, terms: Any, result: Any
) -> list[Tensor | None]:
    """The gradient of one operand is an einsum of g with all the others; what g cannot name is broadcast, repeats are a
    diagonal.
    """
    grads: list[Tensor | None] = []
    sizes = _einsum_sizes(terms, operands_shapes)
    for i, (term, shape) in enumerate(zip(terms, operands_shapes, strict=True)):
        if not operands_wanted[i]:
            grads.append(None)
            continue
        others = [x for j, x in enumerate(operands) if j != i]
        names = [t for j, t in enumerate(terms) if j != i]
        unique = "".join(dict.fromkeys(term))
        known = set(result).union(*names) if names else set(result)
        part = "".join(c for c in unique if c in known)
        gx = einsum_terms([g, *others], [result, *names], part)
        for dim, c in enumerate(unique):
            if c not in known:
                gx = gx.unsqueeze(dim)
        gx = gx.expand([sizes[c] for c in unique])
        gx = sum_to(gx, [shape[term.index(c)] for c in unique])
        grads.append(_onto_diagonal(gx, unique, term))
    return grads


def _onto_diagonal(gx: Tensor, unique: str, term: str) -> Tensor:
    for dim, c in enumerate(term):
        if term.index(c) != dim:
            first = unique.index(c)
            gx = gx.movedim(first, -1).diag_embed(0, first, -1).movedim(-1, min(dim, gx.ndim))
            unique = unique[:dim] + c + unique[dim:]
    return gx


def _is_planned(sizes: dict[str, int], result: str, count: int) -> bool:
    """Whether NumPy looks for an order and makes products of matrices: that takes longer than a small sum itself, and
    where nothing is summed it makes nothing faster.
    """
    if count == 1 or (count == 2 and len(sizes) == len(result)):
        return False
    return count > 3 or math.prod(sizes.values()) > FEW


def _infer_einsum(operands: Sequence[Spec], terms: Any, result: Any) -> Spec:
    sizes = _einsum_sizes(terms, [x.shape for x in operands])
    same_dtype("einsum", *operands)
    return Spec(tuple(sizes[c] for c in result), operands[0].dtype, operands[0].device)


def _einsum_batch(b: Any, operands: Sequence[Tensor], terms: Sequence[str], result: str) -> Any:
    hidden = next(c for c in LETTERS if not any(c in term for term in terms))
    return b.run(
        operands, [hidden + term if f else term for term, f in zip(terms, b.batched, strict=True)], hidden + result
    )


@contraction(
    {"operands": _einsum_rule},
    batch=_einsum_batch,
    infer=_infer_einsum,
    prepare=_einsum_prepare,
    dtypes="fci",
    method=False,
    torch_name="",
    autocast="low",
)
def einsum_terms(operands: Sequence[Array], terms: Sequence[str], result: str) -> Any:
    """`einsum` with its equation taken apart; what `einsum` calls.

    >>> import genesis
    >>> genesis.einsum("i,i->", genesis.ones(2), genesis.ones(2))
    tensor(2.)
    """
    kind = operands[0].dtype
    if any(x.dtype is not kind for x in operands):
        same_dtype("einsum", *[product_spec(x) for x in operands])
    arrays = [x.astype(F32) for x in operands] if kind in HALVES else list(operands)
    sizes = _einsum_sizes(terms, [x.shape for x in arrays])
    equation = ",".join(terms) + "->" + result
    with one_thread():
        out = np.einsum(equation, *arrays, optimize=_is_planned(sizes, result, len(arrays)))
    return packed(np.array(out, kind, copy=True) if out.base is not None or out.dtype is not kind else out)


samples(
    einsum_terms,
    lambda t: [case([t(2, 3), t(3, 4)], ["ij", "jk"], "ik"), case([t(2, 2), t(2), t(3)], ["ii", "j", "k"], "ik")],
)


def _numbered(given: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """The equation of operands, each with a list of numbers from 0 to 51 (or ...) for its dimensions."""
    count = len(given) // 2
    lists = [*given[1 : 2 * count : 2], *given[2 * count :]]
    letters = {**dict(enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")), ...: "..."}
    try:
        terms = ["".join([letters[n] for n in numbers]) for numbers in lists]
    except (KeyError, TypeError):
        hint = 'einsum("ij,jk->ik", x, y), or einsum(x, [0, 1], y, [1, 2], [0, 2])'
        raise ArgumentError(
            message("einsum", "neither an equation nor lists of numbers from 0 to 51", hint=hint)
        ) from None
    return ",".join(terms[:count]) + "->" * (len(terms) > count) + "".join(terms[count:]), given[: 2 * count : 2]


@composite(halves="alike", method=False, dtypes="fci", autocast="low")
def einsum(equation: Any, *operands: Any) -> Tensor:
    """Sum of products over the indices that an equation does not keep (Einstein's convention).

    Each letter is a dimension, ``...`` any number of broadcast ones; without ``->`` the result has the letters that
    occur once, in alphabetical order. A letter repeated in one operand takes its diagonal. Without an equation each operand
    is followed by a list of numbers for its dimensions, and the last may be by one for the result:
    ``einsum(x, [0, 1], y, [1, 2], [0, 2])``.

    Raises:
        RuntimeError: an equation that does not fit the operands

    >>> import genesis
    >>> genesis.einsum("ij,j->i", genesis.tensor([[1., 2.], [3., 4.]]), genesis.tensor([1., 1.]))
    tensor([3., 7.])
    """
    if not isinstance(equation, str):
        equation, operands = _numbered((equation, *operands))
    parts = list(operands[0]) if len(operands) == 1 and isinstance(operands[0], list | tuple) else list(operands)
    terms, result = _parse_einsum(equation, tuple([x.ndim for x in parts]))
    if len(parts) == 1 and parts[0].dtype.category < 2 and set(terms[0]) != set(result):
        parts = [parts[0].long()]  # a sum of integers, as `sum` gives it
    if not _as_products(parts):
        return einsum_terms(parts, terms, result)
    steps, last = _plan(tuple(terms), result, tuple([tuple(x.shape) for x in parts]))
    for i, j, changes, others, multiply in steps:
        y, x = parts.pop(j), parts.pop(i)
        parts.append(multiply(_changed(x, changes), _changed(y, others)))
    return _changed(parts[0], last)


def _as_products(parts: Sequence[Tensor]) -> bool:
    """Whether it is products of matrices, and of numbers: not of integers, and not where a sum of more than two operands
    is rounded to half precision once.
    """
    kind, device = parts[0].dtype, parts[0].device
    if kind.category < 2 or (len(parts) > 2 and kind.itemsize < 4):
        return False
    return all([x.dtype is kind and x.device == device and not x.is_sparse for x in parts])


# methods of a tensor with their arguments, one after the other
Changes = list[tuple[str, tuple[Any, ...]]]


def _changed(x: Tensor, changes: Changes) -> Tensor:
    for method, args in changes:
        x = getattr(x, method)(*args)
    return x


class _Operand:
    """The letters and sizes of an operand while products are planned, and how it gets there."""

    def __init__(self, letters: str, shape: Sequence[int]) -> None:
        self.letters, self.shape, self.changes = letters, list(shape), Changes()

    def _take(self, method: str, *args: Any) -> None:
        self.changes.append((method, args))

    def take_diagonals(self) -> None:
        for c in dict.fromkeys(self.letters):
            while self.letters.count(c) > 1:
                first, second = self.letters.index(c), self.letters.rindex(c)
                self._take("diagonal", 0, first, second)
                self.shape.append(self.shape[first])
                del self.shape[second], self.shape[first]
                self.letters = self.letters[:first] + self.letters[first + 1 : second] + self.letters[second + 1 :] + c

    def drop_ones(self, other: _Operand) -> None:
        """A size of 1 stands for any."""
        for c in self.letters:
            if c in other.letters and self.size(c) == 1 != other.size(c):
                self._take("squeeze", self.letters.index(c))
                del self.shape[self.letters.index(c)]
                self.letters = self.letters.replace(c, "")

    def sum_all_but(self, kept: str) -> None:
        gone = [i for i, c in enumerate(self.letters) if c not in kept]
        if gone:
            self._take("sum", gone)
            self.shape = [n for i, n in enumerate(self.shape) if i not in gone]
            self.letters = "".join([c for c in self.letters if c in kept])

    def lay_out(self, wanted: str) -> None:
        if self.letters != wanted:
            self._take("permute", [self.letters.index(c) for c in wanted])
            self.shape, self.letters = [self.size(c) for c in wanted], wanted

    def spread(self, order: str) -> None:
        """Give it a dimension of 1 for each letter that it lacks (but in front)."""
        self.lay_out("".join([c for c in order if c in self.letters]))
        dim = 0
        for c in order:
            if c not in self.letters and dim:
                self._take("unsqueeze", dim)
            dim += c in self.letters or dim > 0

    def group(self, batch: str, first: str, second: str) -> None:
        """Make it a matrix, or a batch of them, of two groups of letters; a vector where one is empty and no batch is."""
        self.lay_out(batch + first + second)
        groups = [math.prod([self.size(c) for c in group]) for group in (first, second) if group or batch]
        if len(first) != 1 or len(second) != 1:
            shape = self.shape[: len(batch)] + groups
            if shape != self.shape:
                self._take("reshape", shape)

    def size(self, letter: str) -> int:
        return self.shape[self.letters.index(letter)]


@functools.lru_cache(256)
def _plan(terms: tuple[str, ...], result: str, shapes: tuple[tuple[int, ...], ...]) -> tuple[list[Any], Changes]:
    """The products, each of two operands: where they are, what they go through first, and the op. A product comes last among
    the operands that are left. Then what the last one goes through.
    """
    operands = [_Operand(term, shape) for term, shape in zip(terms, shapes, strict=True)]
    for x in operands:
        x.take_diagonals()
    steps = []
    for pair in _order([x.letters for x in operands], result, _einsum_sizes(terms, shapes)):
        i, j = sorted(pair)
        b, a = operands.pop(j), operands.pop(i)
        kept = "".join([result, *[x.letters for x in operands]])
        product, multiply = _pair(a, b, kept)
        steps.append((i, j, a.changes, b.changes, multiply))
        operands.append(product)
    operands[0].sum_all_but(result)
    operands[0].lay_out(result)
    return steps, operands[0].changes


def _order(terms: list[str], result: str, sizes: dict[str, int]) -> Sequence[tuple[int, ...]]:
    """Which operands are multiplied: from left to right, or what NumPy's search gives where that may save something."""
    count = len(terms)
    from_left = [(0, k) for k in (1, *range(count - 2, 0, -1))][: count - 1]
    if count < 3 or math.prod(sizes.values()) <= FEW:
        return from_left
    shapes = [np.broadcast_to(np.float32(0), [sizes[c] for c in term]) for term in terms]
    path: list[Any] = np.einsum_path(",".join(terms) + "->" + result, *shapes, optimize="greedy")[0][1:]
    return path if all([len(pair) == 2 for pair in path]) else from_left


def _pair(a: _Operand, b: _Operand, kept: str) -> tuple[_Operand, Callable[..., Tensor]]:
    """The product of two operands, with those of their letters that are ``kept``, and the op that gives it."""
    a.drop_ones(b)
    b.drop_ones(a)
    a.sum_all_but(kept + b.letters)
    b.sum_all_but(kept + a.letters)
    both = [c for c in a.letters if c in b.letters]
    batch, inner = "".join([c for c in both if c in kept]), "".join([c for c in both if c not in kept])
    rows, columns = ("".join([c for c in x.letters if c not in both]) for x in (a, b))
    sizes = {c: x.size(c) for x in (a, b) for c in x.letters}
    if not inner or (batch and not rows and not columns):
        order = "".join([c for c in dict.fromkeys(kept) if c in sizes]) + inner
        a.spread(order)
        b.spread(order)
        product = _Operand(order, [sizes[c] for c in order])
        product.sum_all_but(kept)
        return product, mul
    turned = rows and columns and kept.index(columns[0]) < kept.index(rows[0])  # then the result need not be permuted
    if turned:
        a.group(batch, inner, rows)
        b.group(batch, columns, inner)
        rows, columns = columns, rows
    else:
        a.group(batch, rows, inner)
        b.group(batch, inner, columns)
    product = _Operand(batch + rows + columns, [sizes[c] for c in batch + rows + columns])
    if len(rows) > 1 or len(columns) > 1 or (batch and not (rows and columns)):
        product._take("reshape", [*product.shape])
    return product, _matmul_turned if turned else matmul


def _matmul_turned(a: Tensor, b: Tensor) -> Tensor:
    return matmul(b, a)


samples(
    einsum,
    lambda t: [
        case("ij,jk->ik", t(2, 3), t(3, 4)),
        case("ij,jk->ik", [t(2, 3), t(3, 4)]),
        case("bij,bjk", t(2, 2, 3), t(2, 3, 2)),
        case("ii", t(3, 3)),
        case("ij->ji", t(2, 3)),
        case("i,j,k->ijk", t(2), t(3), t(2)),
        case("...ij,...jk", t(2, 2, 3), t(3, 2)),
        case("ij->", t(2, 3)),
        case("ii->i", t(3, 3)),
    ],
)

wrong_inputs(
    einsum,
    (lambda t: case("ij,jk->ik", t(2, 3), t(4, 2)), RuntimeError, "einsum: sizes for 'j' differ, 3 and 4"),
    (lambda t: case("ij->ik", t(2, 3)), RuntimeError, "einsum: the result names ['k']"),
    (lambda t: case("ij", t(2)), RuntimeError, "einsum: operand 0 has 1 dimensions, 'ij' names 2"),
)


@composite(halves="alike", method=False, out=True, autocast="own:gpu")
def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    """Product summed over dimensions: the last ``dims`` of ``a`` and first of ``b``, or two lists of them.

    >>> import genesis
    >>> genesis.tensordot(genesis.ones(2, 3), genesis.ones(3, 2), 1)
    tensor([[3., 3.],
            [3., 3.]])
    """
    left, right = (
        (list(range(a.ndim - dims, a.ndim)), list(range(dims)))
        if isinstance(dims, int)
        else (list(dims[0]), list(dims[1]))
    )
    left, right = [d % a.ndim for d in left], [d % b.ndim for d in right]
    for i, j in zip(left, right, strict=False):  # a size of 1 stands for any
        if a.shape[i] == 1 != b.shape[j]:
            b = b.sum(j, True, dtype=b.dtype)
        elif b.shape[j] == 1 != a.shape[i]:
            a = a.sum(i, True, dtype=a.dtype)
    if [a.shape[d] for d in left] != [b.shape[d] for d in right]:
        raise ShapeError(
            message(
                "tensordot",
                f"sizes of the summed dims differ, {[a.shape[d] for d in left]} and {[b.shape[d] for d in right]}",
            )
        )
    keep_a, keep_b = [d for d in range(a.ndim) if d not in left], [d for d in range(b.ndim) if d not in right]
    inner = math.prod([a.shape[d] for d in left])
    x = a.permute(keep_a + left).reshape([math.prod([a.shape[d] for d in keep_a]), inner])
    y = b.permute(right + keep_b).reshape([inner, math.prod([b.shape[d] for d in keep_b])])
    return matmul(x, y).reshape([a.shape[d] for d in keep_a] + [b.shape[d] for d in keep_b])


samples(
    tensordot, lambda t: [case(t(2, 3, 4), t(3, 4, 2)), case(t(2, 3), t(3, 2), 1), case(t(2, 3), t(2, 4), ([0], [0]))]
)

__all__ = [
    "einsum",
    "inner",
    "tensordot",
]
