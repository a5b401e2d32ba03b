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
    einsum,
    factors,
    gathers,
    moves,
    scans,
    searches,
    sorts,
    spectra,
    sums,
    taps,
    uniques,
)
from genesis.cuda.kernels.host import arrays_in, host_kernel
from genesis.cuda.kernels.lowering import Launches, launches, lowered, numbers_of
from genesis.cuda.kernels.products import OPS, product_of
from genesis.cuda.kernels.signatures import KNOWN, signature
from genesis.cuda.kernels.views import view_of
from genesis.cuda.kernels.wanted import kernels_wanted

WRITTEN = {
    **gathers.KERNELS,
    **moves.KERNELS,
    **sorts.KERNELS,
    **sums.KERNELS,
    **columns.KERNELS,
    **convolution.KERNELS,
    **scans.KERNELS,
    **taps.KERNELS,
    **einsum.KERNELS,
    **divisions.KERNELS,
    **searches.KERNELS,
    **counts.KERNELS,
    **uniques.KERNELS,
    **spectra.KERNELS,
    **factors.KERNELS,
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
    if op.name in WRITTEN:
        return with_host(op, written_by_hand(op))
    return with_host(op, product_of(op, launched(op))) if op.name in OPS else launched(op)


def written_by_hand(op: Op) -> Callable[..., Any]:
    """A kernel of `WRITTEN`, and that of the op's rule for what it does not take."""
    kernel, otherwise = WRITTEN[op.name], launched(op)

    def chosen(*args: Any) -> Any:
        result = kernel(*args)
        return otherwise(*args) if result is NotImplemented else result

    return chosen


def with_host(op: Op, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel, or the host where no kernels are wanted."""
    otherwise = host_kernel(op)
    return lambda *args: kernel(*args) if kernels_wanted() else otherwise(*args)


def launched(op: Op) -> Callable[..., Any]:
    """The kernel that launches what the op's rule says; where there is none, the host computes."""
    known: dict[Any, Launches | None] = {}
    otherwise = host_kernel(op)
    floats = op.tensors if op.kind.aligned else ()  # whose values the kernel does not depend on

    def kernel(*args: Any) -> Any:
        if not kernels_wanted():
            return otherwise(*args)
        for i in floats:
            if args[i].__class__ is int and op.name in NUMBERED:
                args = with_floats(args, floats)
                break
        key = tuple(
            [
                (a.shape, a.strides, a.dtype) if a.__class__ is CudaArray
                else float if a.__class__ is float and i in floats
                else signature(a)
                for i, a in enumerate(args)
            ]
        )  # fmt: skip
        plan = known.get(key)
        if plan is None and key not in known:
            if len(known) >= KNOWN:
                known.clear()
            plan = known[key] = lowered(op, args)
        if plan is not None:
            return plan.run(args)
        pairs = complexes.computed(op, args) if complexes.among(args) else NotImplemented
        if pairs is not NotImplemented:
            return pairs
        forward = turned(args)
        return otherwise(*args) if forward is None else kernel(*forward)

    return kernel


def with_floats(args: tuple[Any, ...], numbers: Sequence[int]) -> tuple[Any, ...]:
    """The arguments of an elementwise op of floats with floats for whole numbers: another number needs no other kernel then."""
    arrays = [a for a in arrays_in(args) if a.dtype.kind != "b"]  # a condition does not matter
    if not arrays or not all([is_float(a) for a in arrays]):
        return args
    whole = [i for i in numbers if args[i].__class__ is int and abs(args[i]) <= EXACT_TO]
    return tuple([float(a) if i in whole else a for i, a in enumerate(args)])


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
        return MEMORY.copy(value) if min(value.strides, default=0) < 0 else value
    return type(value)([_forward(v) for v in value]) if isinstance(value, tuple | list) else value


# ---- writes

_writes: dict[Any, Launches | None] = {}
_updates: dict[Any, Launches | None] = {}


def updated(op: Op, target: CudaArray, other: Any) -> bool:
    """Write an elementwise op of an array, and of another one like it or a float, into the array, by one launch that reads
    each element before it is written; whether there is such a kernel.
    """
    if other.__class__ is CudaArray:
        alike = other.shape == target.shape and other.dtype == target.dtype and other.storage.on is target.storage.on
        apart = other.storage is not target.storage or (other.address, other.strides) == (
            target.address,
            target.strides,
        )
        if not (alike and apart):
            return False
    elif other.__class__ is int and is_float(target) and abs(other) <= EXACT_TO and op.name in NUMBERED:
        other = float(other)
    elif other.__class__ is not float:
        return False
    if not kernels_wanted():
        return False
    kind = (other.strides,) if other.__class__ is CudaArray else float
    key = op.name, target.shape, target.strides, target.dtype, kind
    if key not in _updates:
        if len(_updates) >= KNOWN:
            _updates.clear()
        _updates[key] = _update(op, target, other)
    plan = _updates[key]
    if plan is not None:
        plan.into((target, other), [target])
    return plan is not None


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
        _writes[key] = launches("convert", (source, target.dtype), [out], False) if fits else None
    plan = _writes[key]
    if plan is not None:
        plan.into((source,), [target])
    return plan is not None
