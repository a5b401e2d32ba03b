"""How ops act on arrays of shards: with the bits that each shard has by itself.

What gives each element the same bits in an array of any size, as a product of two numbers that is rounded once, takes all
shards as one array. So do products of matrices where code of our own computes them, which adds in an order that depends
on the number of terms alone. Everything else is called for one shard after the other.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from genesis.base import blas
from genesis.core.call import computing, dispatch
from genesis.core.call.halves import F32
from genesis.core.call.op import Op
from genesis.core.graph.tensor import Tensor, wrap
from genesis.nn.parallel.shard_arrays import Sharded, beside, together
from genesis.ops.reductions import along

# elementwise, of each element one operation that is rounded once, or a choice; real numbers
EACH = frozenset(
    {"add", "sub", "mul", "div", "neg", "square", "reciprocal", "sqrt", "abs", "sign", "floor", "ceil", "trunc", "copysign", "relu",
     "gate", "clamp_min", "clamp_max", "select_where", "eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "isfinite",
     "logical_and", "logical_or", "logical_xor", "logical_not", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not",
     "clone", "convert", "named", "without_gradient"}
)  # fmt: skip


def interpret(op: Op, args: tuple[Any, ...], top: Sharded) -> Any:
    """The result arrays of an op on arguments among which there are arrays of shards."""
    result = _RULES.get(op.name, _by_kind)(op, args, top)
    return _one_by_one(op, args, top) if result is NotImplemented else result


def _by_kind(op: Op, args: tuple[Any, ...], top: Sharded) -> Any:
    if op.kind.views:
        return _view(op, args, top)
    return _each(op, args, top) if op.name in EACH else NotImplemented


def _one_by_one(op: Op, args: tuple[Any, ...], top: Sharded) -> Any:
    results = [dispatch.apply(op, _of_shard(op, args, top, i)) for i in range(top.owner.count)]
    if isinstance(results[0], tuple | list):
        return tuple([together(top.owner, [y._array for y in of_one]) for of_one in zip(*results, strict=True)])
    return together(top.owner, [y._array for y in results])


def _arrays(args: tuple[Any, ...], i: int) -> list[Any]:
    """The arguments of one shard, arrays for arrays."""
    return [_own(x, i) for x in args]


def _own(x: Any, i: int) -> Any:
    kind = x.__class__
    if kind is Sharded:
        return x.arrays[i]
    if kind is tuple or kind is list:
        return kind([_own(each, i) for each in x])
    if isinstance(x, Tensor) and isinstance(x._array, Sharded):
        return wrap(x._array.arrays[i])
    return x


def _of_shard(op: Op, args: tuple[Any, ...], top: Sharded, i: int) -> tuple[Any, ...]:
    """The arguments of one shard: tensors for arrays, where the op takes tensors."""

    def tensor(x: Any) -> Any:
        x = _own(x, i)
        return wrap(x) if isinstance(x, np.ndarray) else x

    if op.variadic:
        return ([tensor(x) for x in args[0]], *[_own(x, i) for x in args[1:]])
    return tuple([tensor(x) if k in op.tensors else _own(x, i) for k, x in enumerate(args)])


# ---- all at once


def _each(op: Op, args: tuple[Any, ...], top: Sharded) -> Any:
    """All shards as one array, whose first dimension they are."""
    given = [args[i] for i in op.tensors]
    ndim = len(top.shape)
    for x in given:
        if isinstance(x, Sharded):
            whole = x.whole
            if whole is None or whole.ndim != ndim + 1 or whole.dtype.kind == "c" or not whole.flags.c_contiguous:
                return NotImplemented
        elif isinstance(x, np.ndarray) and x.ndim > ndim:
            return NotImplemented
    inner = list(args)
    for i, x in zip(op.tensors, given, strict=True):
        inner[i] = wrap(x.whole) if isinstance(x, Sharded) else wrap(x) if isinstance(x, np.ndarray) else x
    out = dispatch.apply(op, tuple(inner))._array
    return Sharded(top.owner, whole=out)


def _view(op: Op, args: tuple[Any, ...], top: Sharded) -> Any:
    """What is seen of the first shard is seen of the others as far from its beginning."""
    first, whole = op.kernel(*_arrays(args, 0)), top.whole
    if isinstance(first, np.ndarray) and whole is not None and args[0] is top and whole.size:
        seen, step = first, whole.strides[0]
        if _memory(seen) is _memory(whole):
            begin = _address(seen) - _address(whole)
            all_of_them = _strided(whole, begin, (top.owner.count, *seen.shape), (step, *seen.strides), seen.dtype)
            if all_of_them is not None:
                return Sharded(top.owner, whole=all_of_them)
    results = [first, *[op.kernel(*_arrays(args, i)) for i in range(1, top.owner.count)]]
    if isinstance(first, tuple | list):
        return tuple([Sharded(top.owner, of_one) for of_one in zip(*results, strict=True)])
    if _memory(first) is _memory(args[0].arrays[0]):
        return Sharded(top.owner, results)
    return together(top.owner, results)


def _memory(x: Any) -> Any:
    while isinstance(x.base, np.ndarray):
        x = x.base
    return x


def _address(x: Any) -> int:
    return x.__array_interface__["data"][0]  # type: ignore[no-any-return]


def _strided(whole: Any, begin: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: Any) -> Any:
    """An array in the memory of another; None where NumPy does not see that it is within it."""
    if dtype != whole.dtype or not math.prod(shape):
        return None
    memory = whole
    while isinstance(memory.base, np.ndarray) and not memory.flags.c_contiguous:
        memory = memory.base
    begin += _address(whole) - _address(memory)
    try:
        return np.ndarray(shape, dtype, memory, begin, strides)
    except (ValueError, TypeError):
        return None


def _product(op: Op, args: tuple[Any, ...], top: Sharded) -> Any:
    """Rows of all shards times one matrix, where a product of those of one is computed by code of our own."""
    rows, other = args[0], args[1]
    if not (isinstance(rows, Sharded) and isinstance(other, np.ndarray) and other.ndim == 2):
        return NotImplemented
    whole = _beside(rows, other.size)
    if whole is None or whole.ndim < 3 or not whole.flags.c_contiguous or not whole.size:
        return NotImplemented
    matrix = other.T if op.name == "linear" else other
    if matrix.shape[0] != whole.shape[-1] or not _is_own(whole[0].reshape(-1, whole.shape[-1]), matrix):
        return NotImplemented
    if any([isinstance(x, Sharded) for x in args[2:]]):
        return NotImplemented
    merged = whole.reshape(whole.shape[0] * whole.shape[1], *whole.shape[2:])
    others = [wrap(x) if isinstance(x, np.ndarray) else x for x in args[1:]]
    out = dispatch.apply(op, (wrap(merged), *others))._array
    return Sharded(top.owner, whole=out.reshape(*whole.shape[:-1], out.shape[-1]))


def _product_of_columns(op: Op, args: tuple[Any, ...], top: Sharded) -> Any:
    """Products whose sum is all that is wanted, mostly."""
    a, b = args
    if not (isinstance(a, Sharded) and isinstance(b, Sharded)):
        return NotImplemented
    size = math.prod(a.shape[1:]) * math.prod(b.shape[1:])
    x, y = _beside(a, size), _beside(b, size)
    if (
        x is None
        or y is None
        or not (x.ndim == 3 == y.ndim and x.flags.c_contiguous and y.flags.c_contiguous and _is_own(x[0].T, y[0]))
    ):
        return NotImplemented
    return Sharded(top.owner, factors=(x.reshape(-1, x.shape[2]), y.reshape(-1, y.shape[2])))


def _beside(x: Sharded, size: int) -> Any:
    """All shards as one array, put beside each other if they are less than so many numbers, which are read or written once
    for all of them then; else None.
    """
    if x.whole is not None:
        return x.whole
    small = x.size * x.owner.count <= size and all([each.flags.c_contiguous for each in x.arrays])
    return beside(x.arrays) if small else None


def _sum(op: Op, args: tuple[Any, ...], top: Sharded) -> Any:
    """Sums of the rows of matrices, which are added in the order of those of one."""
    dim, keepdim, dtype = args[1:]
    whole, rest = top.whole, top.shape[1:]
    usual = dim == (0,) and whole is not None and whole.flags.c_contiguous and dtype is whole.dtype is F32
    if not (usual and len(rest) == 1 and rest[0] > 1 and top.shape[0] > along._LEAF and top.size > along._SMALL):
        return NotImplemented
    return Sharded(top.owner, whole=along._tree(whole, 1, keepdim))


def _is_own(a: Any, b: Any) -> bool:
    """Whether the product of two matrices is computed by code of our own."""
    return bool(a.size * b.shape[1] > blas.ALONE_MATRICES and blas._is_own(a, b))


_RULES = {"linear": _product, "matmul": _product, "matmul_tn": _product_of_columns, "sum": _sum}
computing.INTERPRETERS[Sharded] = interpret
