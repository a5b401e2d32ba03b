"""The memory of a tensor seen with other sizes and steps: `as_strided`, and shapes that change in place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from genesis.arrays.batched import Batched
from genesis.arrays.memory import DeviceArray, memory_of, placed
from genesis.arrays.protocol import Array, bottom
from genesis.arrays.spec import Spec
from genesis.base.errors import InplaceError, ShapeError, UnsupportedError, message
from genesis.base.narrow import restrided
from genesis.core.call.kind import called
from genesis.core.call.kinds import case, composite, view
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.paths import View
from genesis.core.call.views import watch
from genesis.core.call.writes import bump
from genesis.core.graph.modes import grad_mode
from genesis.core.graph.switches import ACTIVE
from genesis.core.graph.tensor import Tensor, wrap
from genesis.core.graph.tracing import tracer
from genesis.core.graph.version import INFERENCE
from genesis.ops.creation.storage import owner_of
from genesis.ops.indexing.index import add_by, put_by
from genesis.ops.shapes.expand import sizes
from genesis.ops.shapes.permute import t, transpose
from genesis.ops.shapes.reshape import squeeze, unsqueeze

_ALL = "fcib"


def _offsets(size: Sequence[int], stride: Sequence[int], offset: int = 0) -> np.ndarray[Any, Any]:
    """Where in memory each element is, in elements."""
    offsets = np.full((), offset, np.int64)
    for n, step in zip(size, stride, strict=True):
        offsets = offsets[..., None] + np.arange(n) * step
    return offsets


def _sources(shape: Sequence[int], steps: Sequence[int], size: Any, stride: Any, offset: int) -> np.ndarray[Any, Any]:
    """For each element of the result its number among those of the input, flattened.

    Raises:
        RuntimeError: the result reaches memory that the input does not see
    """
    mine, wanted = _offsets(shape, steps).reshape(-1), _offsets(size, stride, offset)
    order = np.argsort(mine, kind="stable")
    at = np.clip(np.searchsorted(mine, wanted, sorter=order), 0, max(len(mine) - 1, 0))
    sources = order[at] if len(mine) else at
    if wanted.size and (not len(mine) or (mine[sources] != wanted).any()):
        text = "this view reaches memory that its input does not see: its gradient is not known"
        raise ShapeError(message("as_strided", text, hint="take it of the whole tensor"))
    return sources


def _checked(input: Tensor, size: Any, stride: Any, offset: int, steps: Any) -> tuple[Any, ...]:
    shape, wanted = sizes((size,)), sizes((stride,))
    if len(shape) != len(wanted) or any(n < 0 for n in (*shape, *wanted)):
        raise ShapeError(message("as_strided", f"sizes {list(shape)} and strides {list(wanted)} do not fit"))
    array = bottom(input._array)
    if not isinstance(array, np.ndarray):
        _sources(input.shape, steps, shape, wanted, offset)  # of memory that is not there nothing else is known
    elif 0 not in shape:
        low, high = np.lib.array_utils.byte_bounds(owner_of(array))
        first = array.ctypes.data + offset * array.itemsize
        last = first + sum([s * (n - 1) for n, s in zip(shape, wanted, strict=True)]) * array.itemsize
        if first < low or last + array.itemsize > high:
            there = f"the {(high - low) // array.itemsize} elements of the storage"
            text = f"size {list(shape)}, stride {list(wanted)} and this offset reach beyond {there}"
            raise ShapeError(message("as_strided", text, [("input", input._spec())]))
    return input, shape, wanted, int(offset), steps


def _back(g: Tensor, input_shape: Sequence[int], size: Any, stride: Any, offset: int, steps: Any) -> Tensor:
    """Each element of the gradient is added to where its value came from."""
    at = _sources(input_shape, steps, size, stride, offset).reshape(-1)
    return add_by(g.reshape(-1), (math.prod(input_shape),), (placed(at, g.device),)).reshape(input_shape)  # type: ignore[no-any-return]


@called("refused")
def _of_samples(b: Any, *args: Any) -> Tensor:
    raise _samples_have_none()


def _samples_have_none() -> UnsupportedError:
    text = "under vmap a sample has no memory of its own, whose steps could be chosen"
    return UnsupportedError(message("as_strided", text, hint="x.unfold, or an index"))


def _put(whole: Tensor, part: Tensor, size: Any, stride: Any, offset: int, steps: Any) -> Tensor:
    at = _sources(whole.shape, steps, size, stride, offset).reshape(-1)
    return put_by(whole.reshape(-1), part.reshape(-1), (placed(at, whole.device),)).reshape(whole.shape)  # type: ignore[no-any-return]


@view(
    {"input": _back},
    prepare=_checked,
    infer=lambda input, size, stride, offset, steps: Spec(size, input.dtype, input.device),
    strides=lambda input, size, stride, offset, steps: stride,
    put=_put,
    batch=_of_samples,
    method=False,
    torch_name="",
)
def strided_view(input: Array, size: Sequence[int], stride: Sequence[int], offset: int, steps: Sequence[int]) -> Any:
    """Memory with other sizes and steps, from an offset after the first element of a tensor that has ``steps``; what
    `as_strided` calls.

    >>> import genesis
    >>> from genesis.ops.shapes.strided import strided_view
    >>> strided_view(genesis.arange(4), (2,), (2,), 1, (1,))
    tensor([1, 3])
    """
    owner = owner_of(input)
    at = input.ctypes.data - owner.ctypes.data + offset * input.itemsize
    if not owner.flags.forc or 0 in size:
        rest = restrided(input.reshape(-1)[:0], size, [n * input.itemsize for n in stride])
        return rest
    return np.ndarray(size, input.dtype, owner, at, [n * input.itemsize for n in stride])


def _corner(x: Tensor) -> Any:
    return case(x, (2, 2), x.stride(), 0, x.stride())


def _windows(x: Tensor) -> Any:
    return case(x, (2, 3), x.stride() * 2, 0, x.stride())


def _behind(x: Tensor) -> Any:
    (step,) = x.stride()
    return case(x, (2, 2), (step, 2 * step), 2 * step, (step,))


samples(strided_view, lambda t: [_corner(t(3, 4)), _windows(t(6)), _behind(t(7))])


@composite(dtypes=_ALL)
def as_strided(input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """The memory of a tensor with other sizes and steps between neighbours, from an offset in its storage; a view.

    The gradient of an element that is seen several times is the sum of theirs.

    Raises:
        RuntimeError: sizes and strides of different lengths, or that reach beyond the storage

    >>> import genesis
    >>> genesis.as_strided(genesis.arange(4), (3, 2), (1, 1))
    tensor([[0, 1],
            [1, 2],
            [2, 3]])
    """
    return strided_view(input, size, stride, _offset(input, storage_offset), tuple(input.stride()))  # type: ignore[no-any-return]


samples(as_strided, lambda t: [case(t(3, 4), (2, 2), (1, 1)), case(t(6), (2, 3), (1, 1), 1)])

wrong_inputs(
    as_strided,
    (lambda t: case(t(4), (2, 3), (1,)), RuntimeError, "as_strided: sizes [2, 3] and strides [1] do not fit"),
    (lambda t: case(t(4), (3, 3), (1, 1)), RuntimeError, "reach beyond the 4 elements of the storage"),
)


def _offset(input: Tensor, storage_offset: int | None) -> int:
    """How far an offset in the storage is from the first element."""
    if storage_offset is None:
        return 0
    begin = _begin(bottom(input._array))
    if begin is None:
        text = "where this tensor begins in its storage is not known: it is a view, or is being traced"
        raise UnsupportedError(message("as_strided", text, [("input", input._spec())], "take it of the whole tensor"))
    return int(storage_offset) - begin


def _begin(array: Any) -> int | None:
    """Where an array begins in its storage, in elements; None if that is not known."""
    if isinstance(array, np.ndarray):
        return int((array.ctypes.data - owner_of(array).ctypes.data) // array.itemsize)
    if array.base is None:
        return 0
    if isinstance(array, DeviceArray):
        memory, whole = memory_of(array), array.base
        while whole.base is not None:
            whole = whole.base
        with suppress(UnsupportedError):  # of devices without addresses
            return int((memory.address(array) - memory.address(whole)) // array.dtype.itemsize)
    return None


@composite(dtypes=_ALL)
def as_strided_scatter(
    input: Tensor, src: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """``input`` with the elements that `as_strided` sees replaced.

    Raises:
        RuntimeError: ``src`` has not that size, or it reaches beyond the storage

    >>> import genesis
    >>> genesis.as_strided_scatter(genesis.zeros(2, 2), genesis.ones(2), (2,), (3,))
    tensor([[1., 0.],
            [0., 1.]])
    """
    if isinstance(input._array, Batched) or isinstance(src._array, Batched):
        raise _samples_have_none()
    shape, steps = sizes((size,)), tuple(input.stride())
    if tuple(src.shape) != shape:
        raise ShapeError(message("as_strided_scatter", f"src has shape {list(src.shape)}, size is {list(shape)}"))
    return _put(input, src, shape, sizes((stride,)), _offset(input, storage_offset), steps)


samples(as_strided_scatter, lambda t: [case(t(3, 4), t(2, 2), (2, 2), (4, 1)), case(t(6), t(3), (3,), (2,))])

wrong_inputs(
    as_strided_scatter,
    (lambda t: case(t(4), t(3), (2,), (1,)), RuntimeError, "as_strided_scatter: src has shape [3], size is [2]"),
)

# ---- shapes that change in place


def _declare_inplace(name: str, call: Any) -> Any:
    """``x.t_()``: the tensor itself is what was a view of it."""

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if grad_mode.get() and self.requires_grad and self.is_leaf:
            text = "a leaf that requires grad is changed in place"
            raise InplaceError(message(name, text, [("input", self._spec())], f"y = x.{name[:-1]}(...)"))
        if ACTIVE and (active := tracer.get()) is not None:
            active.shape_changes(self)
        old = wrap(self._array)
        old._node, old._view = self._node, self._view
        old._counter = self._shared_counter() if self._counter is not INFERENCE else INFERENCE
        for ref in list(old._counter.refs if old._counter is not INFERENCE else ()):
            other = ref()
            if other is not None and other is not self and other._view is not None and other._view.base is self:
                other._view = View(old, other._view.recorded, other._view.path)
        new = call(old, *args, **kwargs)
        self._array, self._node, self._view, self._counter = new._array, new._node, new._view, new._counter
        if self._view is not None and self._counter is not INFERENCE:
            watch(self, self._counter)
        bump(self, name)
        return self

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"In-place form of `{name[:-1]}`: the tensor itself gets the other shape; returns it."
    setattr(Tensor, name, method)
    return method


for _name, _call in {
    "as_strided_": as_strided,
    "squeeze_": squeeze,
    "swapaxes_": transpose,
    "swapdims_": transpose,
    "t_": t,
    "transpose_": transpose,
    "unsqueeze_": unsqueeze,
}.items():
    _declare_inplace(_name, _call)

__all__ = ["as_strided", "as_strided_scatter"]
