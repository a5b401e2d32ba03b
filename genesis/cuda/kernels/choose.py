"""What computes an op on a GPU: a view, kernels made of the op's own rule, or the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from genesis.arrays.spec import Spec
from genesis.core.call.halves import HALVES
from genesis.core.call.op import Op
from genesis.cuda.arrays import MEMORY, CudaArray
from genesis.cuda.kernels import (
    columns,
    complexes,
    convolution,
    counts,
    divisions,
    eigen,
    einsum,
    factors,
    folding,
    gathers,
    moves,
    pooling,
    scans,
    searches,
    sorts,
    spectra,
    sums,
    uniques,
)
from genesis.cuda.kernels.host import arrays_in, host_kernel
from genesis.cuda.kernels.lowering import Launches, Ready, launches, lowered, numbers_of
from genesis.cuda.kernels.products import OPS, product_of
from genesis.cuda.kernels.signatures import alike, remember, signature
from genesis.cuda.kernels.views import view_of
from genesis.cuda.kernels.wanted import kernels_wanted

WRITTEN: dict[str, Callable[..., Any]] = {
    **gathers.KERNELS,
    **moves.KERNELS,
    **sorts.KERNELS,
    **sums.KERNELS,
    **columns.KERNELS,
    **convolution.KERNELS,
    **scans.KERNELS,
    **pooling.KERNELS,
    **folding.KERNELS,
    **einsum.KERNELS,
    **divisions.KERNELS,
    **searches.KERNELS,
    **counts.KERNELS,
    **uniques.KERNELS,
    **spectra.KERNELS,
    **factors.KERNELS,
    **eigen.KERNELS,
}
# of floats and a whole number, for which these are what they are for the number as a float
NUMBERED = {"add", "sub", "mul", "div", "maximum", "minimum", "eq", "ne", "lt", "le", "gt", "ge", "select_where", "clamp_min", "clamp_max"}  # fmt: skip
EXACT_TO = 1 << 53  # whole numbers that a float64 holds
_chosen: dict[Op, Callable[..., Any]] = {}


def kernel_of(op: Op) -> Callable[..., Any] | None:
    """The kernel of an op, but of composites, which are made of others, and of random ones, which the CPU draws."""
    if op.kind.composed or op.kind.draws:
        return None
    chosen = _chosen.get(op)
    if chosen is None:
        chosen = _chosen[op] = _made(op)
    return chosen


def _made(op: Op) -> Callable[..., Any]:
    if op.kind.views:
        return view_of(op)
    if op.name in OPS:
        return product_of(op, launched(op))
    return launched(op, WRITTEN.get(op.name))


def launched(op: Op, by_hand: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """The kernel that launches what the op's rule says, for what one that is written by hand does not take; where there is no
    rule, the host computes.
    """
    plans: dict[Any, Launches | None] = {}
    known: dict[Any, Ready] = {}  # what a call like those before launches
    otherwise = host_kernel(op)
    floats = op.tensors if op.kind.aligned else ()  # whose values the kernel does not depend on
    numbered = op.name in NUMBERED

    def kernel(*args: Any) -> Any:
        ready = known.get(alike(args, floats))
        return first(args) if ready is None else ready.run(args)

    def of_two(x: Any, other: Any) -> Any:
        """The same for an array and another one or a float."""
        kind = other.__class__
        if x.__class__ is not CudaArray:
            return kernel(x, other)
        if kind is CudaArray:
            ready = known.get((x._layout, other._layout))
            return kernel(x, other) if ready is None else ready.of_two(x, other)
        ready = known.get((x._layout, kind))
        return kernel(x, other) if ready is None else ready.run((x, other))

    def first(args: tuple[Any, ...]) -> Any:
        if not kernels_wanted():
            return otherwise(*args)
        if by_hand is not None:
            result = by_hand(*args)
            if result.__class__ is Ready:
                return remember(known, alike(args, floats), result).run(args)
            if result is not NotImplemented:
                return result
        if numbered and int in [args[i].__class__ for i in floats]:
            changed = with_floats(args, floats)
            if changed is not args:
                result, ready = kernel(*changed), known.get(alike(changed, floats))
                if ready is not None:  # it takes whole numbers, too
                    remember(known, alike(args, floats), ready)
                return result
        plan = planned(args)
        if plan is not None:
            return remember(known, alike(args, floats), plan.ready([*arrays_in(args)])).run(args)
        pairs = complexes.computed(op, args) if complexes.among(args) else NotImplemented
        if pairs is not NotImplemented:
            return pairs
        forward = turned(args)
        return otherwise(*args) if forward is None else kernel(*forward)

    def planned(args: tuple[Any, ...]) -> Launches | None:
        key = tuple([float if a.__class__ is float and i in floats else signature(a) for i, a in enumerate(args)])
        return plans[key] if key in plans else remember(plans, key, lowered(op, args))

    return of_two if floats == (0, 1) and len(op.names) == 2 else kernel


def with_floats(args: tuple[Any, ...], numbers: Sequence[int]) -> tuple[Any, ...]:
    """The arguments of an elementwise op of floats with floats for whole numbers: another number needs no other kernel then."""
    arrays = [a for a in arrays_in(args) if a.dtype.kind != "b"]  # a condition does not matter
    if not arrays or not all([is_float(a) for a in arrays]):
        return args
    whole = [i for i in numbers if args[i].__class__ is int and abs(args[i]) <= EXACT_TO]
    return tuple([float(a) if i in whole else a for i, a in enumerate(args)]) if whole else args


def is_float(x: CudaArray) -> bool:
    return x.dtype.char in "fd" or x.dtype in HALVES


def turned(args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The arguments with copies of the arrays that go backwards through memory; None if there are none."""
    back = [x for x in arrays_in(args) if min(x.strides, default=0) < 0 and x.size]
    if not back:
        return None
    return tuple([_forward(a) for a in args])


def _forward(value: Any) -> Any:
    if isinstance(value, CudaArray):
        return moves.forward(value)
    return type(value)([_forward(v) for v in value]) if isinstance(value, tuple | list) else value


# ---- writes

_writes: dict[Any, Launches | None] = {}
_updates: dict[Any, Ready | None] = {}


def updated(op: Op, target: CudaArray, other: Any) -> bool:
    """Write an elementwise op of an array, and of another one like it or a float, into the array, by one launch that reads
    each element before it is written; whether there is such a kernel.
    """
    if other.__class__ is CudaArray:
        kind: Any = other.layout
        storage = target.storage
        alike = other.shape == target.shape and other.dtype == target.dtype and other.storage.on is storage.on
        apart = other.storage is not storage or (other.address, other.strides) == (target.address, target.strides)
        if not (alike and apart):
            return False
    elif other.__class__ is int and is_float(target) and abs(other) <= EXACT_TO and op.name in NUMBERED:
        other, kind = float(other), float
    elif other.__class__ is float:
        kind = float
    else:
        return False
    key = op, target.layout, kind
    ready = _updates.get(key)
    if ready is None:
        if key in _updates or not kernels_wanted():
            return False
        plan = _update(op, target, other)
        arrays = [*arrays_in((target, other)), target]
        ready = remember(_updates, key, None if plan is None else plan.ready(arrays))
        if ready is None:
            return False
    ready.into((target, other), [target, other, target] if kind is not float else [target, target])
    return True


def _update(op: Op, target: CudaArray, other: Any) -> Launches | None:
    given = [target.strides, *([other.strides] if isinstance(other, CudaArray) else [])]
    usual = op.kind.aligned and op.tensors == (0, 1) and is_float(target) and target.size
    if not usual or min([s for strides in given for s in strides], default=1) <= 0:
        return None
    out = Spec(target.shape, target.dtype, strides=target.strides)
    plan = launches(op.name, (target, other), [out], False, numbers_of(op, (target, other)))
    return plan if plan is not None and len(plan.steps) == 1 and not plan.between else None


def written(target: CudaArray, source: CudaArray) -> bool:
    """Write one array into another by a kernel; whether there is one for that."""
    if target.on is not source.on or not target.size or not kernels_wanted():
        return False
    if source.storage is target.storage:
        if not source.is_contiguous:
            return False
        source = MEMORY.copy(source)
    if min(target.strides + source.strides, default=0) < 0 and target.dtype == source.dtype:
        return moves.copied(target, source)
    if target.dtype.kind == "c" and (target.dtype != source.dtype or target.dtype.itemsize > 8):
        return complexes.written(target, source, written)
    key = signature(target), signature(source)
    if key not in _writes:
        out = Spec(target.shape, target.dtype, strides=target.strides)
        fits = min(target.strides + source.strides, default=0) >= 0 and source.size > 0
        remember(_writes, key, launches("convert", (source, target.dtype), [out], False) if fits else None)
    plan = _writes[key]
    if plan is not None:
        plan.into((source,), [target])
    return plan is not None
