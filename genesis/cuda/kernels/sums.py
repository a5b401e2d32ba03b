"""Elements that indices name, written and added to: `put`, `place` and `scatter_sum`; and compared with every place.

Sums are the same each time: which elements go to the same place is known by sorting the places, with the position below, and
each place is summed by one lane, and a whole row by one program (`segments`), in the order of the positions. Of elements written
to one place the last one stays.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.arrays.spec import contiguous_strides
from genesis.core.call.halves import HALVES
from genesis.core.graph.modes import no_grad
from genesis.core.graph.tensor import wrap
from genesis.cuda.arrays import MEMORY, CudaArray
from genesis.cuda.kernels import moves, segments
from genesis.cuda.kernels.gathers import CHECKED, INDEX, WRAPPED, Named, _safe, bits, index_at, named, without_mask
from genesis.cuda.kernels.lanes import LANES, Code, Operand, Placed, start
from genesis.cuda.kernels.moves import broadcast, contiguous
from genesis.cuda.kernels.networks import sort_rows
from genesis.cuda.kernels.sorts import LAST, LOW, to_sort
from genesis.cuda.runtime.streams import current
from genesis.ops.indexing.scatter import scatter_dense

I32 = np.dtype(np.int32)


def _where(count: int, name: str) -> str:
    """Lines for ``to``: how far what the index says lies from ``name_at``."""
    lines = "to = at.to(tl.int64) * 0"
    for j in range(count):
        lines += (
            f"\ngiven = tl.load(index + index_at + {j} * index_step0, mask=inside, other=0).to(tl.int64)\ni = given"
            + WRAPPED.format(size=f"{name}_size{j}")
            + CHECKED.format(size=f"{name}_size{j}")
            + f"to += i * {name}_step{j}"
        )
    return lines + "\n"


def _named(index: Any, sizes: Sequence[int], report: Any) -> list[Any]:
    return [_safe(index[..., j], n, report) for j, n in enumerate(sizes)]


# ---- the last one stays


@functools.cache
def winning(count: int) -> Code:
    """For each place the position of the last element that is written there."""
    lines = _where(count, "best") + "tl.atomic_max(best + best_at + to, at.to(tl.int32), mask=inside)"

    def meaning(best: Any, index: Any, report: Any) -> None:
        shape = best.shape[: best.ndim - count]
        where = _named(index, best.shape[len(shape) :], report)
        grid = np.ogrid[tuple([slice(n) for n in shape])]
        np.maximum.at(best, (*grid, *where), np.arange(math.prod(shape)).reshape(shape))

    return Code("winning", (Operand("best", count, writes=True), Operand("index", 1)), lines, meaning, reports=True)


def _choose(best: Any, value: Any, out: Any) -> None:
    chosen = best >= 0
    out[chosen] = value.reshape(-1, value.shape[-1])[0, best[chosen]]


CHOOSE = Code(
    "written",
    (Operand("best"), Operand("value", 1), Operand("out", writes=True)),
    "w = tl.load(best + best_at, mask=inside, other=-1)\n"
    "tl.store(out + out_at, tl.load(value + value_at + w.to(tl.int64), mask=inside & (w >= 0)), mask=inside & (w >= 0))",
    _choose,
)


def put(input: CudaArray, value: CudaArray, indices: CudaArray | None, key: Any) -> Any:
    indices, key = without_mask(input.shape, indices, key)
    if indices is None:
        return moves.put(input, value, key)
    source, laid = bits(value), contiguous_strides(input.shape)
    target = named(input.shape, laid, indices, key)
    if (
        target is None
        or source is None
        or value.dtype != input.dtype
        or max(input.size, math.prod(target.shape)) > LAST
    ):
        return NotImplemented
    out = MEMORY.copy(input)
    if 0 in target.shape:
        return out
    spread = MEMORY.empty(target.shape, source.dtype, input.device)
    moves.copied(spread, source)
    best = MEMORY.empty(input.shape, I32, input.device)
    best.on.enter().fill(best.address, LOW, 4, best.size, current(best.on).handle)
    first = best.seen(4 * target.offset, best.shape, best.strides)
    start(
        winning(len(target.reached)),
        target.shape,
        [Placed(first, target.strides, target.reached), index_at(indices, target)],
        about=_about(target),
    )
    to = bits(out)
    assert to is not None
    everywhere = Placed(spread, (0,), ((spread.size, 1),))
    start(CHOOSE, (out.size,), [Placed(best, (1,)), everywhere, Placed(to, (1,))])
    return out


def _about(target: Named) -> tuple[str, str]:
    return INDEX, " and ".join([f"dimension {d} of size {n}" for d, (n, _) in enumerate(target.reached)])


# ---- sums


@functools.cache
def sorting(count: int) -> Code:
    """What is sorted: where an element is added, and its position."""
    lines = (
        _where(count, "goal") + "tl.store(out + at, ((goal_at.to(tl.int64) + to) << 32) | at.to(tl.int64), mask=inside)"
    )

    def meaning(goal: Any, index: Any, out: Any, report: Any) -> None:
        shape = goal.shape[: goal.ndim - count]
        steps = [s // goal.itemsize for s in goal.strides]
        where = _named(index, goal.shape[len(shape) :], report)
        to = sum([i * s for i, s in zip(where, steps[len(shape) :], strict=True)])
        at = sum([c * s for c, s in zip(np.ogrid[tuple([slice(n) for n in shape])], steps, strict=False)])
        out[...] = ((np.broadcast_to(at, shape) + to) << 32) | np.arange(math.prod(shape)).reshape(shape)

    operands = (Operand("goal", count), Operand("index", 1), Operand("out", writes=True))
    return Code("places", operands, lines, meaning, reports=True)


@functools.cache
def adding(kind: str) -> Code:
    """The sum of each run of elements that go to one place, by the lane of its first."""
    lines = f"""
j = c0.to(tl.int64)
key = tl.load(order + order_at + j, mask=inside, other=-1)
to = key >> 32
before = tl.load(order + order_at + j - 1, mask=inside & (j > 0), other=-1) >> 32
first = inside & (to != before)
total = tl.zeros([{LANES}], tl.{kind})
active = first
while tl.max(active.to(tl.int32), 0) > 0:
    total += tl.load(x + x_at + (key & {LOW}) * x_step0, mask=active, other=0).to(tl.{kind})
    j += 1
    key = tl.load(order + order_at + j, mask=active & (j < count), other=-1)
    active = active & (key >> 32 == to)
tl.store(out + out_at + to * out_step0, total.to(out.dtype.element_ty), mask=first)
"""

    def meaning(order: Any, x: Any, out: Any, count: int) -> None:
        ordered = order.reshape(-1, order.shape[-1])[0]
        to, at = ordered[:count] >> 32, ordered[:count] & LOW
        rest = out.shape[1:-1]
        values = np.moveaxis(x[0], -1, 0)[at].astype(kind)  # (elements, rest)
        starts = np.flatnonzero(np.concatenate(([True], to[1:] != to[:-1])))
        np.moveaxis(out[0], -1, 0)[to[starts]] = np.add.reduceat(values, starts, axis=0).astype(out.dtype)
        assert values.shape[1:] == rest

    operands = (Operand("order", 1), Operand("x", 1), Operand("out", 1, writes=True))
    return Code("sums", operands, lines, meaning, ("count",), whole=1)


def summed(out: CudaArray, goal: Named, own: tuple[tuple[int, ...], tuple[int, ...]], index: Placed, x: CudaArray,
           about: tuple[str, str]) -> CudaArray:  # fmt: skip
    """Sums in new memory: ``goal`` says where in ``out`` the index's elements go, ``own`` are shape and strides of what each of
    them brings; ``x`` has the index's elements as rows.
    """
    count, whole = math.prod(goal.shape), segments.are_whole_rows(goal, own, out)
    if not whole:
        MEMORY.fill(out, 0)
    order = to_sort((), count, out)
    first = out.seen(goal.offset * out.dtype.itemsize, out.shape, out.strides)
    start(sorting(len(goal.reached)), goal.shape,
          [Placed(first, goal.strides, goal.reached), index, Placed(order, contiguous_strides(goal.shape))], about=about)  # fmt: skip
    order = sort_rows(order)
    kind = "float32" if out.dtype in HALVES else out.dtype.name if out.dtype.kind == "f" else "int64"
    shape, strides = own
    row = math.prod(shape)
    if whole:
        segments.summed(order, x, count, row, kind, out)
        return out
    furthest = sum([(n - 1) * s for n, s in goal.reached]) + sum(
        [(n - 1) * s for n, s in zip(goal.shape, goal.strides, strict=True)]
    )
    operands = [
        Placed(order, (0,) * (1 + len(shape)), ((order.size, 1),)),
        Placed(x, (0, *contiguous_strides(shape)), ((count, row),)),
        Placed(first, (0, *strides), ((furthest + 1, 1),)),
    ]
    start(adding(kind), (count, *shape), operands, (count,))
    return out


def _write_one(out: Any, index: Any, x: Any, report: Any) -> None:
    grid = np.ogrid[tuple([slice(n) for n in x.shape])]
    out[(*grid, *_named(index, out.shape[x.ndim :], report))] = x


ONE = Code(
    "one of a row",
    (Operand("out", 1, writes=True), Operand("index", 1), Operand("x")),
    _where(1, "out") + "tl.store(out + out_at + to, tl.load(x + x_at, mask=inside), mask=inside)",
    _write_one,
    reports=True,
)


def _sums(dtype: Any) -> bool:
    return dtype in HALVES or dtype.kind in "fi" or dtype.name == "uint8"


def scatter_sum(input: CudaArray, shape: Sequence[int], dim: int, index: CudaArray, distinct: bool = False) -> Any:
    if not index.ndim or not _sums(input.dtype) or math.prod(shape) >= LAST or index.size > LAST:
        return NotImplemented
    if not index.size:
        return MEMORY.zeros(tuple(shape), input.dtype, input.device)
    out = MEMORY.empty(tuple(shape), input.dtype, input.device)
    dim %= len(shape)
    steps = out.strides
    goal = Named(
        0,
        index.shape,
        tuple([0 if d == dim else s for d, s in enumerate(steps)]),
        index.strides,
        ((shape[dim], steps[dim]),),
        (),
    )
    some = moves.part(input, tuple([slice(0, n) for n in index.shape]))
    about = "scatter_sum", f"dim {dim} of size {shape[dim]}"
    # where no two meet, as in the gradient of a sort or a largest element, nothing is sorted
    if distinct or index.shape[dim] == 1:
        if index.shape != out.shape:
            MEMORY.fill(out, 0)
        to, where = Placed(out, goal.strides, goal.reached), Placed(index, index.strides, ((1, 0),))
        start(ONE, index.shape, [to, where, Placed(some, some.strides)], about=about)
        return out
    x = contiguous(some)
    return summed(out, goal, ((), ()), Placed(index, index.strides, ((1, 0),)), x, about)


def add_at(input: CudaArray, indices: CudaArray | None, shape: Sequence[int], key: Any) -> Any:
    indices, key = without_mask(shape, indices, key)
    if indices is None:
        return moves.placed(input, shape, key)
    laid = contiguous_strides(tuple(shape))
    target = named(tuple(shape), laid, indices, key)
    if target is None or not _sums(input.dtype) or math.prod(shape) >= LAST:
        return NotImplemented
    if 0 in target.shape:
        return MEMORY.zeros(tuple(shape), input.dtype, input.device)
    out = MEMORY.empty(tuple(shape), input.dtype, input.device)
    rest = [d for d in range(len(target.shape)) if d not in target.axes]
    own = tuple([target.shape[d] for d in rest]), tuple([target.strides[d] for d in rest])
    wide = input.seen(0, target.shape, broadcast(input, target.shape))
    order = (*target.axes, *rest)
    x = contiguous(wide.seen(0, *[tuple([of[d] for d in order]) for of in (wide.shape, wide.strides)]))
    of_index = index_at(indices, target)
    only = tuple([target.of_index[d] for d in target.axes])
    goal = Named(
        target.offset, tuple([target.shape[d] for d in target.axes]), (0,) * len(only), only, target.reached, ()
    )
    return summed(out, goal, own, Placed(indices, only, of_index.reached), x, _about(target))


def scatter_combined(input: CudaArray, value: CudaArray, dim: int, index: CudaArray, reduce: str) -> Any:
    with no_grad():
        return scatter_dense(wrap(input), wrap(value), dim, index, reduce)._array


KERNELS = {"put": put, "place": add_at, "scatter_sum": scatter_sum, "scatter_combined": scatter_combined}
