"""Indexing: ``x[...]`` and ``x[...] = v`` in all their forms, gather and scatter, masks and triangles.

Basic indices (integers, slices, None, Ellipsis) give views. Integer tensors, lists and masks copy, and their
gradient is scattered back, adding where an element was taken more than once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.arrays.protocol import Array
from genesis.arrays.spec import Spec
from genesis.base.errors import ArgumentError, ArgumentValueError, IndexOutOfRange, ShapeError, UnsupportedError, message
from genesis.core.kinds import case, composite, fails, normalize_dim, primitive, view
from genesis.core.modes import grad_mode
from genesis.core.node import WRITES, Node
from genesis.core.tensor import Tensor, wrap
from genesis.core.views import bump, check_writable, rebase
from genesis.ops.elementwise import where
from genesis.ops.shape import sum_to

_ALL = "fcib"

# ---- keys


def _as_index(name: str, index: Any) -> Any:
    """An index tensor as an array; one without data stands for zeros, so that shapes can be inferred."""
    if not isinstance(index, Tensor):
        raise ArgumentError(message(name, f"index must be a tensor, got {type(index).__name__}"))
    if index._array.dtype.kind not in "iu":
        raise IndexOutOfRange(message(name, f"tensors used as indices must be integer or bool, got {index.dtype}"))
    if isinstance(index._array, Spec):
        return np.broadcast_to(np.zeros((), np.int64), index._array.shape)
    return index._array


def _mask_array(mask: Tensor) -> Any:
    if isinstance(mask._array, Spec):
        raise UnsupportedError(message("index", "the shape of the result depends on the mask, a meta tensor has no data"))
    return mask._array


def parse_key(key: Any) -> tuple[tuple[Any, ...], bool]:
    """An index as NumPy wants it, and whether it is basic (then the result is a view)."""
    items = key if key.__class__ is tuple else (key,)
    parsed: list[Any] = []
    basic = True
    for item in items:
        if item.__class__ is int or item is None or item is Ellipsis:
            parsed.append(item)
        elif isinstance(item, slice):
            parsed.append(_parse_slice(item))
        elif isinstance(item, Tensor) and item._array.dtype.kind in "iu" and not item.ndim:
            parsed.append(int(item))
        else:
            parsed.append(_parse_array(item))
            basic = False
    return tuple(parsed), basic


def _parse_slice(item: slice) -> slice:
    if item.step is not None and int(item.step) <= 0:
        raise ArgumentValueError(message("index", f"slice step must be positive, got {item.step}", hint="x.flip(dim)"))
    bounds = [b if b is None else b.__index__() for b in (item.start, item.stop, item.step)]
    return slice(*bounds)


def _parse_array(item: Any) -> Any:
    if isinstance(item, Tensor):
        array = _as_index("index", item) if item._array.dtype.kind != "b" else _mask_array(item)
    elif isinstance(item, bool | np.bool_ | list | tuple | range | np.ndarray | np.integer):
        array = np.asarray([_to_int(i) for i in item] if isinstance(item, list | tuple) else item)
        array = array.astype(np.int64) if not array.size and array.dtype.kind == "f" else array
    else:
        raise IndexOutOfRange(
            message("index", f"{type(item).__name__} is not an index", hint="integers, slices, None, ..., integer or bool tensors")
        )
    if array.dtype.kind not in "iub":
        raise IndexOutOfRange(message("index", f"tensors used as indices must be integer or bool, got {array.dtype}"))
    return array


def _to_int(item: Any) -> Any:
    return item.tolist() if isinstance(item, Tensor) else [_to_int(i) for i in item] if isinstance(item, list | tuple) else item


def explain_index(shape: Sequence[int], key: tuple[Any, ...]) -> Exception:
    """What NumPy's refusal of an index means."""
    consumed = sum(k.ndim if isinstance(k, np.ndarray) and k.dtype.kind == "b" else 1 for k in key if k is not None and k is not Ellipsis)
    text = f"{list(shape)}"
    if consumed > len(shape):
        return IndexOutOfRange(message("index", f"{consumed} indices for {len(shape)} dimensions", [("input", text)]))
    dim = 0
    for k in key:
        if k is None:
            continue
        if k is Ellipsis:
            dim = len(shape) - sum(1 for later in key[key.index(k) + 1 :] if later is not None)
            continue
        if isinstance(k, int | np.ndarray) and not (isinstance(k, np.ndarray) and k.dtype.kind == "b"):
            low, high = (k, k) if isinstance(k, int) else (int(k.min()), int(k.max())) if k.size else (0, 0)
            if low < -shape[dim] or high >= shape[dim]:
                bad = low if low < -shape[dim] else high
                return IndexOutOfRange(message("index", f"index {bad} is out of range for dim {dim} of size {shape[dim]}", [("input", text)]))
        if isinstance(k, np.ndarray) and k.dtype.kind == "b" and k.ndim and tuple(shape[dim : dim + k.ndim]) != k.shape:
            return IndexOutOfRange(message("index", f"a mask of shape {list(k.shape)} does not fit sizes {list(shape[dim : dim + k.ndim])}"))
        dim += k.ndim if isinstance(k, np.ndarray) and k.dtype.kind == "b" else 1
    return ShapeError(message("index", "the indices cannot be broadcast together", [("input", text)]))


def _pick(x: Any, key: Any) -> Any:
    try:
        return x[key]
    except (IndexError, ValueError, MemoryError):
        raise explain_index(x.shape, key) from None


def _infer_pick(input: Spec, key: Any) -> Spec:
    """Indexing nothing but a shape: NumPy does it on an array without memory."""
    ghost = np.broadcast_to(np.zeros((), np.int8), input.shape)
    return Spec(np.shape(_pick(ghost, key)), input.dtype, input.device)


# ---- reading


@view({"input": lambda g, input_shape, key: place(g, input_shape, key)}, infer=_infer_pick, method=False, torch_name="",
      samples=lambda t: [case(t(3, 4), (slice(1, 3),)), case(t(3, 4), (1, None, slice(0, 4, 2))), case(t(3, 4), (Ellipsis, 0))])  # fmt: skip
def slice_view(input: Array, key: Any) -> Any:
    """Basic indexing, as a view; what ``x[1:3, None]`` calls.

    >>> import genesis
    >>> genesis.arange(5)[1:4:2]
    tensor([1, 3])
    """
    return _pick(input, key if Ellipsis in key else (*key, ...))  # with an ellipsis NumPy gives a 0-d view, not a number


@primitive("indexing", {"input": lambda g, input_shape, key: place(g, input_shape, key)}, infer=_infer_pick, method=False, dtypes=_ALL,
           torch_name="", samples=lambda t: [case(t(4, 3), (np.array([0, 2, 2]),)), case(t(4, 3), (slice(None), np.array([[0, 1], [2, 2]])))])  # fmt: skip
def take_index(input: Array, key: Any) -> Any:
    """Advanced indexing, a copy; what ``x[[0, 2, 2]]`` and ``x[mask]`` call.

    >>> import genesis
    >>> genesis.arange(5)[[0, 2, 2]]
    tensor([0, 2, 2])
    """
    return np.asarray(_pick(input, key))


def add_at(out: Any, key: Any, values: Any) -> None:
    """``out[key] += values``, adding repeatedly where an element is named more than once."""
    single = key[0] if len(key) == 1 else None
    if isinstance(single, np.ndarray) and single.dtype.kind in "iu" and out.dtype.kind == "f" and single.size:
        _add_rows(out, single, values)
    else:
        np.add.at(out, key, values)


def _add_rows(out: Any, index: Any, values: Any) -> None:
    """Rows summed by their index: sorted and reduced in runs, 5 to 20 times faster than ``np.add.at``."""
    rows = out.shape[0]
    flat = np.where(index < 0, index + rows, index).reshape(-1)
    values = np.broadcast_to(values, (*index.shape, *out.shape[1:])).reshape(flat.size, -1)
    order = np.argsort(flat, kind="stable")
    ordered = flat[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    sums = np.add.reduceat(values[order], starts, axis=0, dtype=out.dtype) if values.shape[1] else values[:0]
    if values.shape[1]:
        target = ordered[starts]
        out[target] += sums.reshape(len(target), *out.shape[1:])


def _has_arrays(key: Any) -> bool:
    return any(isinstance(k, np.ndarray) for k in key)


@primitive("indexing", {"input": lambda g, key: index_by(g, key)}, method=False, dtypes="fci", torch_name="",
           infer=lambda input, shape, key: Spec(tuple(shape), input.dtype, input.device),
           samples=lambda t: [case(t(2), (5,), (slice(1, 3),)), case(t(3), (4,), (np.array([0, 2, 2]),))])  # fmt: skip
def place(input: Array, shape: Sequence[int], key: Any) -> Any:
    """Zeros of a shape with the tensor added at an index: the transpose of indexing.

    >>> import genesis
    >>> genesis.ops.index.place(genesis.ones(2), (4,), (slice(1, 3),))
    tensor([0., 1., 1., 0.])
    """
    out = np.zeros(shape, input.dtype)
    if _has_arrays(key):
        add_at(out, key, input)
    else:
        out[key] = input
    return out


def index_by(x: Tensor, key: Any) -> Tensor:
    return take_index(x, key) if _has_arrays(key) else slice_view(x, key)


def _getitem(self: Tensor, key: Any) -> Tensor:
    parsed, basic = parse_key(key)
    return slice_view(self, parsed) if basic else take_index(self, parsed)


Tensor.__getitem__ = _getitem

# ---- writing


class IndexPutBackward(Node):
    """``x[key] = value``, written in place: the old elements get no gradient, the value gets theirs."""

    __slots__ = ()
    op_name = "setitem"
    input_names = ("input", "value")

    def pull(self, g: Any) -> Any:
        (key,) = self.unpack()
        input_edge, value_edge = self.edges
        ginput = None
        if input_edge is not None:
            ginput = g.clone()
            ginput[key] = 0
        return ginput, None if value_edge is None else sum_to(index_by(g, key), value_edge.shape)


def _setitem(self: Tensor, key: Any, value: Any) -> None:
    parsed, _ = parse_key(key)
    tensor = value if isinstance(value, Tensor) else None
    recording = grad_mode.get() and (self._node is not None or (tensor is not None and tensor._node is not None))
    check_writable(self, "setitem", recording)
    if isinstance(self._array, Spec):
        _infer_pick(self._array, parsed)
    else:
        self._own_memory()
        _write(self._array, parsed, value)
    bump(self, "setitem")
    if recording:
        node = IndexPutBackward()
        node.edges = (self._node, None if tensor is None else tensor._node)
        node.hooks, node.epoch = None, WRITES[0]
        node.shape, node.dtype = self._array.shape, self._array.dtype
        node.saved = (parsed,)
        rebase(self, node)


def _write(array: Any, key: Any, value: Any) -> None:
    """Checked before anything is written, so that an error leaves the array as it was."""
    source = value._array if isinstance(value, Tensor) else value
    if isinstance(source, Spec):
        raise ArgumentError(message("setitem", "the value is a meta tensor, it has no data"))
    if not isinstance(source, np.ndarray | np.generic | int | float | complex):
        try:
            source = np.asarray(_to_int(source) if isinstance(source, list | tuple) else source)
        except ValueError:
            source = np.asarray(None)
        if source.dtype.kind not in "iubfcV":
            raise ArgumentError(message("setitem", f"cannot assign {type(value).__name__}", hint="a number or a tensor"))
    target = _pick(np.broadcast_to(np.zeros((), np.int8), array.shape), key)
    shape = np.shape(source)
    while len(shape) > target.ndim and shape[0] == 1:  # leading dimensions of size 1 are dropped, as in PyTorch
        shape, source = shape[1:], source[0]
    try:
        np.broadcast_to(np.zeros((), np.int8), shape) if not shape else np.broadcast_to(np.empty(shape, np.int8), target.shape)
    except ValueError:
        raise ShapeError(message("setitem", f"a value of shape {list(shape)} does not fit the indexed shape {list(target.shape)}")) from None
    if isinstance(source, complex | np.complexfloating) and array.dtype.kind != "c":
        raise ArgumentError(message("setitem", "a complex value does not fit a real tensor"))
    with np.errstate(all="ignore"):
        array[key] = source


Tensor.__setitem__ = _setitem

# ---- along one dimension


def _check_range(name: str, index: Any, size: int, dim: int) -> None:
    if index.size and (int(index.min()) < 0 or int(index.max()) >= size):
        bad = int(index.min()) if int(index.min()) < 0 else int(index.max())
        raise IndexOutOfRange(message(name, f"index {bad} is out of range for dim {dim} of size {size}"))


def _along(name: str, input: Tensor, dim: int, index: Any, exact: bool = False) -> tuple[int, Any]:
    """Check the shapes of gather and scatter: no dimension but ``dim`` may be larger than the input's."""
    array = _as_index(name, index)
    d = normalize_dim(name, dim, input.ndim)
    shape = tuple(input._array.shape)
    if array.size and len(array.shape) != len(shape):
        raise ShapeError(message(name, f"index has {len(array.shape)} dimensions, input {len(shape)}", [("input", input._spec()), ("index", index._spec())]))
    if array.size and any(a > b for i, (a, b) in enumerate(zip(array.shape, shape, strict=True)) if i != d):
        raise ShapeError(message(name, f"index of shape {list(array.shape)} is larger than the input {list(shape)} outside dim {d}"))
    _check_range(name, array, shape[d] if shape else 1, d)
    return d, array


def along_key(index: Any, dim: int) -> tuple[Any, ...]:
    """The advanced index that names, for each element of ``index``, its element along ``dim``."""
    if not index.ndim:
        return ()
    key = []
    for i, n in enumerate(index.shape):
        shape = [1] * index.ndim
        shape[i] = n
        key.append(index if i == dim else np.arange(n).reshape(shape))
    return tuple(key)


@primitive("indexing", {"input": lambda g, input_shape, dim, index: scatter_sum(g, input_shape, dim, index)}, dtypes=_ALL,
           infer=lambda input, dim, index: Spec(index.shape, input.dtype, input.device), method=False, torch_name="",
           samples=lambda t: [case(t(3, 4), 1, np.array([[0, 1], [3, 3]]))])  # fmt: skip
def gather_at(input: Array, dim: int, index: Any) -> Any:
    """Elements named by an index array along ``dim``; what `gather` calls.

    >>> import genesis
    >>> genesis.gather(genesis.tensor([1., 2.]), 0, genesis.tensor([1]))
    tensor([2.])
    """
    return np.asarray(input[along_key(index, dim)]) if index.ndim else input.reshape(()).copy()


@primitive("indexing", {"input": lambda g, dim, index: gather_at(g, dim, index)}, dtypes="fci", method=False, torch_name="",
           infer=lambda input, shape, dim, index: Spec(tuple(shape), input.dtype, input.device),
           samples=lambda t: [case(t(2, 2), (3, 4), 1, np.array([[0, 1], [3, 3]]))])  # fmt: skip
def scatter_sum(input: Array, shape: Sequence[int], dim: int, index: Any) -> Any:
    """Zeros of a shape, with elements added at the places of an index array along ``dim``: the transpose of `gather`.

    >>> import numpy as np, genesis
    >>> genesis.ops.index.scatter_sum(genesis.ones(2), (3,), 0, np.array([2, 2]))
    tensor([0., 0., 2.])
    """
    out = np.zeros(shape, input.dtype)
    if index.size:
        np.add.at(out, along_key(index, dim), input[tuple(slice(0, n) for n in index.shape)])
    return out


_AT = lambda t: t.int(2, 2, low=0, high=3)  # noqa: E731


@composite(dtypes=_ALL, samples=lambda t: [case(t(3, 4), 1, _AT(t)), case(t(3, 4), 0, _AT(t))],
           fails=fails((lambda t: case(t(2, 2), 0, t.int(2, 2, low=5, high=6)), IndexError, "gather: index 5 is out of range for dim 0 of size 2"),
                       (lambda t: case(t(2, 2), 0, t.int(2)), RuntimeError, "gather: index has 1 dimensions, input 2")))  # fmt: skip
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """Elements named along ``dim``, ``out[i][j] = input[index[i][j]][j]`` for dim 0; in the shape of ``index``.

    Raises:
        IndexError: an index out of range
        RuntimeError: ``index`` has other dimensions, or is larger than the input elsewhere

    >>> import genesis
    >>> genesis.gather(genesis.tensor([[1., 2.], [3., 4.]]), 1, genesis.tensor([[0], [1]]))
    tensor([[1.],
            [4.]])
    """
    d, array = _along("gather", input, dim, index)
    return gather_at(input, d, array)


def _scatter_into(input: Tensor, d: int, array: Any, src: Tensor) -> Tensor:
    """``input`` with elements of ``src`` in place of those named; the last one written stays."""
    key = along_key(array, d)
    part = src[tuple(slice(0, n) for n in array.shape)] if src.ndim else src.expand(array.shape)
    out = input.clone()
    if array.ndim:
        out[key] = part
    else:
        out.copy_(part)
    return out


@composite(dtypes=_ALL, inplace=True, samples=lambda t: [case(t(3, 4), 1, t.int(1, 1, low=0, high=3), t(1, 1)), case(t(3, 4), 0, t.int(1, 1, low=0, high=3), 2.0)],
           fails=fails((lambda t: case(t(2, 2), 0, t.int(1, 1, low=0, high=1), t(1, 1), reduce="max"), ValueError, "scatter: reduce must be 'add' or 'multiply'")))  # fmt: skip
def scatter(input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None) -> Tensor:
    """``input`` with the elements named along ``dim`` replaced by those of ``src`` (or by one value).

    Args:
        reduce: "add" or "multiply" to combine instead of replacing

    Raises:
        IndexError: an index out of range

    >>> import genesis
    >>> genesis.scatter(genesis.zeros(3), 0, genesis.tensor([2]), genesis.tensor([5.]))
    tensor([0., 0., 5.])
    """
    d, array = _along("scatter", input, dim, index)
    source = src if src is not None else value
    if not isinstance(source, Tensor):
        source = input.new_full((), source)
    if reduce is None:
        return _scatter_into(input, d, array, source)
    if reduce not in ("add", "multiply"):
        raise ArgumentValueError(message("scatter", f"reduce must be 'add' or 'multiply', got {reduce!r}", hint="scatter_reduce"))
    return scatter_reduce(input, dim, index, source.expand(array.shape) if not source.ndim else source, "sum" if reduce == "add" else "prod")


@composite(dtypes="fi", inplace=True, samples=lambda t: [case(t(3, 4), 1, _AT(t), t(2, 2)), case(t(3, 4), 0, _AT(t), t(2, 2))])
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """``input`` with elements of ``src`` added at the places named along ``dim``.

    >>> import genesis
    >>> genesis.scatter_add(genesis.zeros(3), 0, genesis.tensor([2, 2]), genesis.tensor([5., 1.]))
    tensor([0., 0., 6.])
    """
    d, array = _along("scatter_add", input, dim, index)
    part = src[tuple(slice(0, n) for n in array.shape)] if array.ndim else src
    return input + scatter_sum(part, tuple(input._array.shape), d, array)


@composite(dtypes="f", inplace=True, samples=lambda t: [case(t(3, 4), 1, _AT(t), t(2, 2), "sum"), case(t(3, 4), 1, _AT(t), t(2, 2), "amax")],
           fails=fails((lambda t: case(t(2), 0, t.int(2, low=0, high=2), t(2), "max"), ValueError, "scatter_reduce: unknown reduce 'max'")))  # fmt: skip
def scatter_reduce(input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True) -> Tensor:
    """Elements of ``src`` combined at the places named along ``dim``: "sum", "prod", "mean", "amax" or "amin".

    >>> import genesis
    >>> genesis.scatter_reduce(genesis.zeros(2), 0, genesis.tensor([1, 1]), genesis.tensor([3., 5.]), "mean", include_self=False)
    tensor([0., 4.])
    """
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise ArgumentValueError(message("scatter_reduce", f"unknown reduce {reduce!r}", hint="sum, prod, mean, amax or amin"))
    d, array = _along("scatter_reduce", input, dim, index)
    shape = tuple(input._array.shape)
    part = src[tuple(slice(0, n) for n in array.shape)] if array.ndim else src
    hits = scatter_sum(part.detach().new_ones(part.shape), shape, d, array)
    own = input if include_self else where(hits > 0, {"prod": 1.0, "amax": float("-inf"), "amin": float("inf")}.get(reduce, 0.0), input)
    if reduce in ("sum", "mean"):
        total = own + scatter_sum(part, shape, d, array)
        count = hits + 1 if include_self else where(hits > 0, hits, 1.0)
        return total if reduce == "sum" else where(hits > 0, total / count, input)
    return _scatter_slow(own, part, d, array, reduce)


def _scatter_slow(own: Tensor, part: Tensor, d: int, array: Any, reduce: str) -> Tensor:
    """Product and extremes: one write for each rank of repetition, so that gradients come from `maximum` and `mul`."""
    key = along_key(array, d)
    flat = np.ravel_multi_index(np.broadcast_arrays(*key), own._array.shape).reshape(-1)
    order = np.argsort(flat, kind="stable")
    first = np.concatenate(([True], flat[order][1:] != flat[order][:-1])) if flat.size else np.zeros(0, bool)
    starts = np.maximum.accumulate(np.where(first, np.arange(flat.size), 0)) if flat.size else order
    rank = np.empty(flat.size, np.int64)
    rank[order] = np.arange(flat.size) - starts
    out, values = own.reshape(-1), part.reshape(-1)
    combine = {"prod": lambda a, b: a * b, "amax": lambda a, b: a.maximum(b), "amin": lambda a, b: a.minimum(b)}[reduce]
    for r in range(int(rank.max()) + 1 if flat.size else 0):
        chosen = np.flatnonzero(rank == r)
        at = wrap(flat[chosen])
        out = out.index_copy(0, at, combine(out[at], values[wrap(chosen)]))
    return out.reshape(own.shape)


# ---- rows


def _rows(name: str, input: Tensor, dim: int, index: Any) -> tuple[int, Any]:
    array = _as_index(name, index)
    if len(array.shape) > 1:
        raise ShapeError(message(name, f"index must have at most one dimension, it has {len(array.shape)}"))
    d = normalize_dim(name, dim, input.ndim)
    _check_range(name, array, input._array.shape[d] if input.ndim else 1, d)
    return d, array.reshape(-1)


def _row_key(d: int, array: Any) -> tuple[Any, ...]:
    return (*(slice(None),) * d, array)


@composite(dtypes=_ALL, samples=lambda t: [case(t(3, 4), 0, t.int(2, low=0, high=3)), case(t(3, 4), -1, t.int(5, low=0, high=4))],
           fails=fails((lambda t: case(t(2), 0, t.int(1, low=7, high=8)), IndexError, "index_select: index 7 is out of range for dim 0 of size 2")))  # fmt: skip
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """The slices along ``dim`` named by a 1-d index, in that order.

    Raises:
        IndexError: an index out of range

    >>> import genesis
    >>> genesis.index_select(genesis.tensor([1., 2., 3.]), 0, genesis.tensor([2, 0]))
    tensor([3., 1.])
    """
    d, array = _rows("index_select", input, dim, index)
    return take_index(input, _row_key(d, array)) if input.ndim else input.clone()


@composite(dtypes="fci", inplace=True, samples=lambda t: [case(t(3, 4), 0, t.int(2, low=0, high=3), t(2, 4)), case(t(3, 4), 1, t.int(2, low=0, high=3), t(3, 2), alpha=2)])
def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    """``input`` with slices of ``source`` added at the places of a 1-d index along ``dim``.

    >>> import genesis
    >>> genesis.index_add(genesis.zeros(3), 0, genesis.tensor([1, 1]), genesis.tensor([2., 3.]))
    tensor([0., 5., 0.])
    """
    d, array = _rows("index_add", input, dim, index)
    added = place(source if alpha == 1 else source * alpha, tuple(input._array.shape), _row_key(d, array))
    return input + added


@composite(dtypes=_ALL, inplace=True, samples=lambda t: [case(t(3, 4), 0, t.int(1, low=0, high=3), t(1, 4))])
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """``input`` with slices replaced by those of ``source`` at the places of a 1-d index along ``dim``.

    >>> import genesis
    >>> genesis.index_copy(genesis.zeros(3), 0, genesis.tensor([1]), genesis.tensor([2.]))
    tensor([0., 2., 0.])
    """
    d, array = _rows("index_copy", input, dim, index)
    out = input.clone()
    out[_row_key(d, array)] = source
    return out


@composite(dtypes=_ALL, inplace=True, samples=lambda t: [case(t(3, 4), 0, t.int(2, low=0, high=3), 1.5)])
def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """``input`` with slices set to one value at the places of a 1-d index along ``dim``.

    >>> import genesis
    >>> genesis.index_fill(genesis.zeros(3), 0, genesis.tensor([1]), 7)
    tensor([0., 7., 0.])
    """
    d, array = _rows("index_fill", input, dim, index)
    out = input.clone()
    out[_row_key(d, array)] = value
    return out


@composite(dtypes="fci", inplace=True, samples=None)
def index_put(input: Tensor, indices: Sequence[Tensor], values: Tensor, accumulate: bool = False) -> Tensor:
    """``input`` with ``values`` at (or, with ``accumulate``, added at) a tuple of indices.

    >>> import genesis
    >>> genesis.index_put(genesis.zeros(3), (genesis.tensor([1, 1]),), genesis.tensor([2., 3.]), accumulate=True)
    tensor([0., 5., 0.])
    """
    key, _ = parse_key(tuple(indices))
    if accumulate:
        target = index_by(input.detach(), key)
        return input + place(values.expand(target.shape), tuple(input._array.shape), key)
    out = input.clone()
    out[key] = values
    return out


@composite(dtypes=_ALL, samples=lambda t: [case(t(3, 4), t.int(2, 2, low=0, high=12))])
def take(input: Tensor, index: Tensor) -> Tensor:
    """Elements of the flattened tensor, in the shape of ``index``.

    >>> import genesis
    >>> genesis.take(genesis.tensor([[1., 2.], [3., 4.]]), genesis.tensor([0, 3]))
    tensor([1., 4.])
    """
    _as_index("take", index)
    return input.reshape(-1)[index]


@composite(dtypes=_ALL, samples=lambda t: [case(t(3, 4), t.int(3, 1, low=0, high=4), 1), case(t(3, 4), t.int(5, low=0, high=12))])
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """Elements named along ``dim``, the indices broadcast against the input; of the flattened tensor for None.

    >>> import genesis
    >>> genesis.take_along_dim(genesis.tensor([[3., 1.]]), genesis.tensor([[1, 0]]), 1)
    tensor([[1., 3.]])
    """
    if dim is None:
        return gather(input.reshape(-1), 0, indices.reshape(-1))
    d = normalize_dim("take_along_dim", dim, input.ndim)
    shape = [max(a, b) if i != d else b for i, (a, b) in enumerate(zip(input.shape, indices.shape, strict=True))]
    source = input.expand([input.shape[i] if i == d else n for i, n in enumerate(shape)])
    return gather(source, d, indices.expand(shape))


# ---- masks


def _mask(name: str, mask: Any) -> Tensor:
    if not isinstance(mask, Tensor) or mask._array.dtype.kind != "b":
        raise ArgumentError(message(name, f"the mask must be a bool tensor, got {mask.dtype if isinstance(mask, Tensor) else type(mask).__name__}"))
    return mask


@composite(dtypes=_ALL, inplace=True, samples=lambda t: [case(t(2, 3), t.bool(3), 0.5), case(t(2, 3), t.bool(2, 1), t())],
           fails=fails((lambda t: case(t(2), t(2), 0.0), TypeError, "masked_fill: the mask must be a bool tensor")), torch_name="Tensor.masked_fill")  # fmt: skip
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """``input`` with one value wherever the mask is True.

    Raises:
        TypeError: the mask is not bool

    >>> import genesis
    >>> genesis.masked_fill(genesis.ones(2), genesis.tensor([True, False]), 0.0)
    tensor([0., 1.])
    """
    if isinstance(value, Tensor):
        if value.ndim:
            raise ShapeError(message("masked_fill", f"the value must be 0-d, it has {value.ndim} dimensions"))
        return where(_mask("masked_fill", mask), value.to(input._array.dtype), input)
    kind = input._array.dtype
    return where(_mask("masked_fill", mask), input.new_full((), value) if kind.kind != "f" else value, input)


@composite(dtypes=_ALL, samples=lambda t: [case(t(2, 3), t.bool(2, 3)), case(t(2, 3), t.bool(3))])
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The elements where the mask is True, in one dimension.

    >>> import genesis
    >>> genesis.masked_select(genesis.tensor([1., 2.]), genesis.tensor([False, True]))
    tensor([2.])
    """
    from genesis.ops.shape import broadcast_tensors

    x, m = broadcast_tensors(input, _mask("masked_select", mask))
    return x[m]


@composite(dtypes=_ALL, inplace=True, samples=None)
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """``input`` with the elements where the mask is True replaced, in order, by those of ``source``.

    >>> import genesis
    >>> genesis.masked_scatter(genesis.zeros(3), genesis.tensor([True, False, True]), genesis.tensor([5., 6.]))
    tensor([5., 0., 6.])
    """
    m = _mask("masked_scatter", mask).expand(input.shape)
    count = int(m.sum())
    if source.numel() < count:
        raise ShapeError(message("masked_scatter", f"the mask names {count} elements, source has {source.numel()}"))
    out = input.clone()
    out[m] = source.reshape(-1)[:count]
    return out


@composite(dtypes=_ALL, samples=lambda t: [case(t(2, 3))])
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """Indices of the elements that are not zero: a row each, or with ``as_tuple`` a tensor for each dimension.

    >>> import genesis
    >>> genesis.nonzero(genesis.tensor([0., 3.]))
    tensor([[1]])
    """
    if isinstance(input._array, Spec):
        raise UnsupportedError(message("nonzero", "the shape of the result depends on data, a meta tensor has no data"))
    found = np.nonzero(np.atleast_1d(input._array))
    if as_tuple:
        return tuple(wrap(i) for i in found)
    return wrap(np.stack(found, 1) if input.ndim else np.zeros((len(found[0]), 0), np.int64))


argwhere = nonzero

# ---- triangles and diagonals


def _triangle(name: str, keep: Any) -> Any:
    def meaning(input: Array, diagonal: int = 0) -> Any:
        return keep(input, diagonal)

    meaning.__name__ = name
    side = "Upper" if name == "triu" else "Lower"
    meaning.__doc__ = (
        f"{side} triangle of a matrix (or a batch of them), zeros elsewhere; ``diagonal`` moves its edge.\n\n"
        f">>> import genesis\n>>> genesis.{name}(genesis.ones(2, 2))\n"
        + ("tensor([[1., 1.],\n        [0., 1.]])\n" if name == "triu" else "tensor([[1., 0.],\n        [1., 1.]])\n")
    )
    rule = (lambda g, diagonal: g.triu(diagonal)) if name == "triu" else (lambda g, diagonal: g.tril(diagonal))
    bad = (lambda t: case(t(3)), RuntimeError, f"{name}: needs at least 2-D, got 1 dimensions")

    def prepare(input: Tensor, diagonal: int) -> tuple[Any, ...]:
        if input.ndim < 2:
            raise ShapeError(message(name, f"needs at least 2-D, got {input.ndim} dimensions"))
        return input, int(diagonal)

    return primitive("movement", {"input": rule}, infer=lambda input, diagonal: input, prepare=prepare, dtypes=_ALL, inplace=True,
                     samples=lambda t: [case(t(3, 4)), case(t(2, 3, 3), 1), case(t(3, 3), -1)], fails=fails(bad))(meaning)  # fmt: skip


tril, triu = _triangle("tril", np.tril), _triangle("triu", np.triu)


def _diagonal_dims(input: Tensor, offset: int, dim1: int, dim2: int) -> tuple[Any, ...]:
    a, b = (normalize_dim("diagonal", d, input.ndim) if input.ndim > 1 else 0 for d in (dim1, dim2))
    if a == b:
        raise ShapeError(message("diagonal", f"needs two different dims, got {dim1} and {dim2}", [("input", input._spec())]))
    return input, int(offset), a, b


def _diagonal_spec(input: Spec, offset: int, dim1: int, dim2: int) -> Spec:
    rows, columns = input.shape[dim1] + min(offset, 0), input.shape[dim2] - max(offset, 0)
    rest = [n for i, n in enumerate(input.shape) if i not in (dim1, dim2)]
    return Spec((*rest, max(0, min(rows, columns))), input.dtype, input.device)


def _on_diagonal(g: Tensor, shape: Sequence[int], offset: int, dim1: int, dim2: int) -> Tensor:
    out = g.new_zeros(shape)
    if g.requires_grad:
        return diag_embed(g, offset, dim1, dim2) if shape[dim1] == shape[dim2] else out + _scattered(g, shape, offset, dim1, dim2)
    diagonal(out, offset, dim1, dim2).copy_(g)
    return out


def _scattered(g: Tensor, shape: Sequence[int], offset: int, dim1: int, dim2: int) -> Tensor:
    out = g.new_zeros(shape) * 1
    diagonal(out, offset, dim1, dim2).copy_(g)
    return out


@view({"input": lambda g, input_shape, offset, dim1, dim2: _on_diagonal(g, input_shape, offset, dim1, dim2)}, infer=_diagonal_spec,
      prepare=_diagonal_dims, samples=lambda t: [case(t(3, 3)), case(t(3, 4), 1), case(t(2, 3, 4), -1, 0, 2)],
      fails=fails((lambda t: case(t(3)), RuntimeError, "diagonal: needs two different dims")))  # fmt: skip
def diagonal(input: Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """The diagonal of two dimensions, last in the result; a view.

    >>> import genesis
    >>> genesis.diagonal(genesis.tensor([[1., 2.], [3., 4.]]))
    tensor([1., 4.])
    """
    out = np.diagonal(input, offset, dim1, dim2)
    if input.flags.writeable:
        out.flags.writeable = True
    return out


_diagonal = diagonal  # `diag` has an argument of this name


@composite(dtypes=_ALL, samples=lambda t: [case(t(3)), case(t(2, 3), 1), case(t(2, 3), 0, 0, 2)])
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Matrices with the last dimension on their diagonal.

    >>> import genesis
    >>> genesis.diag_embed(genesis.tensor([1., 2.]))
    tensor([[1., 0.],
            [0., 2.]])
    """
    n = input.shape[-1] + abs(offset)
    out = input.new_zeros((*input.shape[:-1], n, n))
    a, b = normalize_dim("diag_embed", dim1, out.ndim), normalize_dim("diag_embed", dim2, out.ndim)
    if (a, b) != (out.ndim - 2, out.ndim - 1):
        out = out.movedim((-2, -1), (a, b))
    diagonal(out, offset, a, b).copy_(input)
    return out


@composite(dtypes=_ALL, samples=lambda t: [case(t(3)), case(t(3, 4)), case(t(3), 1)])
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """The diagonal of a matrix, or the matrix with this diagonal.

    >>> import genesis
    >>> genesis.diag(genesis.tensor([[1., 2.], [3., 4.]]))
    tensor([1., 4.])
    """
    if input.ndim not in (1, 2):
        raise ShapeError(message("diag", f"expected 1 or 2 dimensions, got {input.ndim}", hint="diagonal or diag_embed"))
    return diag_embed(input, diagonal) if input.ndim == 1 else _diagonal(input, diagonal).clone()


def tril_indices(row: int, col: int, offset: int = 0) -> Tensor:
    """Row and column indices of a lower triangle.

    >>> import genesis
    >>> genesis.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    return wrap(np.stack(np.tril_indices(row, offset, col)))


def triu_indices(row: int, col: int, offset: int = 0) -> Tensor:
    """Row and column indices of an upper triangle."""
    return wrap(np.stack(np.triu_indices(row, offset, col)))


__all__ = [
    "argwhere", "diag", "diag_embed", "diagonal", "gather", "index_add", "index_copy", "index_fill", "index_put", "index_select", "masked_fill",
    "masked_scatter", "masked_select", "nonzero", "scatter", "scatter_add", "scatter_reduce", "take", "take_along_dim", "tril", "tril_indices",
    "triu", "triu_indices",
]  # fmt: skip
