"""Elements that indices name, read: `gather_at`, `take_index`, and the check of an index.

An index that is none is reported (`genesis.cuda.runtime.reports`), and another one is taken in its place.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec, contiguous_strides
from genesis.base.errors import IndexOutOfRange, message
from genesis.core.call.kinds.indexing import ROW
from genesis.cuda.arrays import MEMORY, CudaArray
from genesis.cuda.kernels.lanes import Code, Operand, Placed, launch, start
from genesis.cuda.kernels.lowering import Ready
from genesis.cuda.kernels.signatures import KNOWN
from genesis.cuda.kernels.wanted import kernels_wanted
from genesis.cuda.runtime.reports import BITS

WORD = 8  # bytes of the largest numbers that Triton moves
INDEX = "index"  # the name that errors of `x[...]` have

# ---- what lanes do

WRAPPED = """
i = i.to(tl.int64)
i = tl.where(i < 0, i + {size}, i)
"""
CHECKED = """
bad = inside & ((i < 0) | (i >= {size}))
tl.store(report + at * 0, number | (given & {mask}), mask=bad)
i = tl.where(bad, 0, i)
""".replace("{mask}", str((1 << BITS) - 1))


def _safe(index: Any, size: int, report: Any, wraps: bool = True) -> Any:
    """The same with NumPy."""
    word, number = report
    i = index.astype(np.int64)
    i = np.where(i < 0, i + size, i) if wraps else i
    bad = (i < 0) | (i >= size)
    if bad.any():
        word[0] = number | (int(index[bad][0]) & (1 << BITS) - 1)
    return np.where(bad, 0, i)


def _check(index: Any, out: Any, size: int, report: Any) -> None:
    out[...] = _safe(index, size, report, wraps=False)


CHECK = Code(
    "check_range",
    (Operand("index"), Operand("out", writes=True)),
    "i = tl.load(index + index_at, mask=inside, other=0).to(tl.int64)\ngiven = i"
    + CHECKED.format(size="size")
    + "tl.store(out + out_at, i.to(out.dtype.element_ty), mask=inside)",
    _check,
    ("size",),
    reports=True,
)


@functools.cache
def taking(count: int, wraps: bool = True) -> Code:
    """Read elements where ``count`` numbers of the index say, one for each dimension that it names; whether those below 0
    count from the end.
    """
    lines = "to = x_at.to(tl.int64)"
    for j in range(count):
        lines += (
            f"\ngiven = tl.load(index + index_at + {j} * index_step0, mask=inside, other=0).to(tl.int64)\ni = given"
            + (WRAPPED.format(size=f"x_size{j}") if wraps else "")
            + CHECKED.format(size=f"x_size{j}")
            + f"to += i * x_step{j}"
        )
    lines += "\ntl.store(out + out_at, tl.load(x + to, mask=inside), mask=inside)"

    def meaning(x: Any, index: Any, out: Any, report: Any) -> None:
        where = [_safe(index[..., j], x.shape[out.ndim + j], report, wraps) for j in range(count)]
        out[...] = x[(*np.ogrid[tuple([slice(n) for n in out.shape])], *where)]

    return Code("take", (Operand("x", count), Operand("index", 1), Operand("out", writes=True)), lines, meaning, reports=True)  # fmt: skip


# ---- memory


def bits(x: CudaArray) -> CudaArray | None:
    """The same memory as numbers that Triton moves, whatever they stand for; None of 16 bytes, which it has not."""
    size = x.dtype.itemsize
    return x.seen(0, x.shape, x.strides, np.dtype(f"u{size}")) if size <= WORD else None


@dataclass(frozen=True, slots=True)
class Named:
    """What an index with tensors in it names, by strides in elements.

    Attributes:
        offset: of the first element
        shape: of what is named
        strides: along that shape; 0 along the dimensions of the index tensors
        of_index: strides of the index tensors along that shape
        reached: size and stride of each dimension that a tensor names
    """

    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    of_index: tuple[int, ...]
    reached: tuple[tuple[int, int], ...]
    axes: tuple[int, ...]  # dimensions of the shape that are the index tensors'


def named(shape: tuple[int, ...], strides: tuple[int, ...], indices: CudaArray, key: Any) -> Named | None:
    """For an array of this shape and layout; None for keys of other things than slices, None and tensors."""
    if not all([k is None or k is Ellipsis or isinstance(k, slice | str) for k in key]):
        return None
    parts = tuple([(k.start, k.stop, k.step) if isinstance(k, slice) else k for k in key])
    return _named(tuple(shape), tuple(strides), indices.shape, indices.strides, parts)


@functools.lru_cache(KNOWN)
def _named(
    shape: tuple[int, ...], strides: tuple[int, ...], of: tuple[int, ...], steps: tuple[int, ...], parts: Any
) -> Named:
    """The same by the shape and the strides of the index tensors; slices, which Python gives no hash, are three numbers."""
    key = tuple([slice(*k) if isinstance(k, tuple) else k for k in parts])
    tensors = [i for i, k in enumerate(key) if isinstance(k, str)]
    together = tensors[-1] - tensors[0] == len(tensors) - 1  # else NumPy puts what they name in front
    at = next((i for i, k in enumerate(key) if k is Ellipsis), len(key))
    missing = len(shape) - sum([k is not None and k is not Ellipsis for k in key])
    key = (*key[:at], *[slice(None)] * missing, *key[at + 1 :])
    one = np.empty(1, np.int8)
    ghost = np.lib.stride_tricks.as_strided(one, shape, strides, writeable=False)  # only addresses are computed
    view = ghost[tuple([slice(None) if isinstance(k, str) else k for k in key])]
    offset = view.__array_interface__["data"][0] - one.__array_interface__["data"][0]
    of_tensors = [d for d, k in enumerate(key) if isinstance(k, str)]
    rest = [d for d in range(view.ndim) if d not in of_tensors]
    before = [d for d in rest if together and d < of_tensors[0]]
    after = rest[len(before) :]
    skip = 1 if len(tensors) > 1 else 0
    many = len(of) - skip
    return Named(
        offset,
        (*[view.shape[d] for d in before], *of[skip:], *[view.shape[d] for d in after]),
        (*[view.strides[d] for d in before], *[0] * many, *[view.strides[d] for d in after]),
        (*[0] * len(before), *steps[skip:], *[0] * len(after)),
        tuple([(view.shape[d], view.strides[d]) for d in of_tensors]),
        tuple(range(len(before), len(before) + many)),
    )


def index_at(indices: CudaArray, target: Named) -> Placed:
    """The index tensors of a key, along what they name."""
    several = len(target.reached) > 1
    return Placed(indices, target.of_index, ((len(target.reached), indices.strides[0] if several else 0),))


def without_mask(shape: Sequence[int], indices: CudaArray | None, key: Any) -> tuple[CudaArray | None, Any]:
    """A mask in a key as indices of where it is true. How many there are is in its elements, so the host asks for these;
    what it chooses from, and what is chosen, stays on the device. Other keys are as they were.
    """
    at = [i for i, k in enumerate(key) if isinstance(k, CudaArray)] if isinstance(key, tuple) else []
    if indices is not None or len(at) != 1 or not all([k is None or isinstance(k, slice) for k in key[: at[0]]]):
        return indices, key
    mask = key[at[0]]
    first = sum([k is not None for k in key[: at[0]]])
    if mask.dtype != np.bool_ or not mask.ndim or tuple(shape[first : first + mask.ndim]) != mask.shape:
        return indices, key
    positions = np.nonzero(MEMORY.to_host(mask))
    held = positions[0] if mask.ndim == 1 else np.stack(positions)
    indices = MEMORY.from_host(np.ascontiguousarray(held, np.int64), mask.device)
    return indices, (*key[: at[0]], *["mask"] * mask.ndim, *key[at[0] + 1 :])


# ---- kernels


def take_index(input: CudaArray, indices: CudaArray | None, key: Any) -> Any:
    """The elements that a key names, or the launch that reads them."""
    by_tensors = indices is not None
    indices, key = without_mask(input.shape, indices, key)
    target = None if indices is None else named(input.shape, input.strides, indices, key)
    x = bits(input)
    if target is None or x is None or indices is None:
        return NotImplemented
    where = [f"dimension {d} of size {n}" for d, (n, _) in enumerate(target.reached)]
    row = key == (ROW,)
    about = ("embedding", f"{input.shape[0]} rows") if row else (INDEX, " and ".join(where))
    x = x.seen(target.offset * x.dtype.itemsize, x.shape, x.strides)
    read = Placed(x, target.strides, target.reached), index_at(indices, target)
    return _taken(input, read, target.shape, about, not row, by_tensors and not target.offset)


def gather_at(input: CudaArray, dim: int, index: CudaArray, distinct: bool = False) -> Any:
    """Elements named along a dimension, by numbers of which none is below 0, or the launch that reads them."""
    x = bits(input)
    if x is None or not index.ndim:
        return NotImplemented if x is None else MEMORY.copy(input.seen(0, (), ()))
    dim %= input.ndim
    strides = tuple([0 if d == dim else s for d, s in enumerate(input.strides)])
    read = Placed(x, strides, ((input.shape[dim], input.strides[dim]),)), Placed(index, index.strides, ((1, 0),))
    return _taken(input, read, index.shape, ("gather", f"dim {dim} of size {input.shape[dim]}"), wraps=False)


def reports_indices(input: CudaArray) -> bool:
    """Whether `gather_at` is a kernel, which says which index is none."""
    return kernels_wanted() and input.dtype.itemsize <= WORD


def _taken(
    input: CudaArray, read: tuple[Placed, Placed], shape: tuple[int, ...], about: tuple[str, str],
    wraps: bool = True, again: bool = True,
) -> Any:  # fmt: skip
    """The elements, or, for a call that may come again with other arrays, the launch that reads them."""
    reached = read[0].reached
    if 0 not in shape and 0 in [n for n, _ in reached]:
        raise IndexOutOfRange(message(about[0], f"there is no element in {about[1]}"))
    code, on = taking(len(reached), wraps), input.on
    if not again:
        out = MEMORY.empty(shape, input.dtype, input.device)
        start(code, shape, (*read, Placed(bits(out), contiguous_strides(shape))), about=about)
        return out
    out = Placed(Spec(shape, read[0].array.dtype), contiguous_strides(shape))
    launched = [] if 0 in shape else [launch(code, shape, (*read, out), on, about)]
    return Ready(on, launched, [(shape, input.dtype, None)])


def check_range(index: CudaArray, name: str, size: int, where: str) -> Any:
    out = MEMORY.empty(index.shape, index.dtype, index.device)
    start(CHECK, out.shape, [Placed(index, index.strides), Placed(out, out.strides)], (size,), (name, where))
    return out


KERNELS = {"take_index": take_index, "gather_at": gather_at, "check_range": check_range}
