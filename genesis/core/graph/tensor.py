"""`Tensor`: an array plus a gradient story.

Four slots make a tensor: the array, where its gradient goes (`core/graph/node.py`), the count of in-place
writes, and what it is a view of (`core/call/views.py`). Everything one can *do* with a tensor is an op: the
ops attach themselves as methods when they are declared (`core/call/op.py`), so this file has only what a
tensor *is*.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from genesis.arrays.memory import DeviceArray, apart, copied, memory_of, placed
from genesis.arrays.protocol import Layer, Virtual, bottom, device_of
from genesis.arrays.spec import Spec, contiguous_strides, spec_of, strides_of
from genesis.arrays.stored import stored
from genesis.base import dtypes
from genesis.base.device import CPU, META, device, require_available
from genesis.base.errors import (
    ArgumentError,
    DTypeError,
    GraphError,
    message,
)
from genesis.base.layouts import FORMAT_DIMS, contiguous_format
from genesis.core.graph import conversions, history
from genesis.core.graph.escapes import leaves
from genesis.core.graph.methods import Methods
from genesis.core.graph.modes import inference
from genesis.core.graph.node import RECORDED, AccumulateGrad, ArgumentOfTrace, Node, Output, is_virtual
from genesis.core.graph.size import Count, Size
from genesis.core.graph.switches import ACTIVE
from genesis.core.graph.tracing import tracer
from genesis.core.graph.version import INFERENCE, SHARED, Version, counting

_new = object.__new__


class _Ones(dict[Any, Any]):
    """The number one as a read-only 0-d array, for each dtype: what most backwards start from."""

    def __missing__(self, dtype: Any) -> Any:
        self[dtype] = one = np.ones((), dtype)
        one.flags.writeable = False
        return one


ONES = _Ones()


class Tensor(Methods):
    """An n-dimensional array that can be differentiated.

    As in PyTorch this is the constructor of the default dtype: ``Tensor([1, 2])`` is floating, and integers are sizes,
    ``Tensor(3, 8)`` (whose elements are whatever the memory holds). `tensor` infers the dtype of its data.

    Args:
        data: a floating number, (nested) sequence, NumPy array or another tensor, which is always copied; or sizes
        device: where to put it, ``"cpu"`` or ``"meta"``
        dtype: element type, the default dtype when None (another tensor keeps its own)
        requires_grad: whether operations on it are recorded; floating and complex dtypes only
        array: the data by name, never sizes; its dtype is inferred as by `tensor`
        order, ndmin, copy: of the memory, as for ``numpy.array``; the data is always copied

    Raises:
        TypeError, ValueError: the data is not a rectangular array of real numbers
        RuntimeError: an integer dtype was asked to require grad

    >>> import genesis
    >>> genesis.Tensor([1.0, 2.0], requires_grad=True)
    tensor([1., 2.], requires_grad=True)
    """

    __slots__ = ("__dict__", "__weakref__", "_array", "_counter", "_node", "_own_node", "_view")
    __array_priority__ = 1000  # NumPy leaves `array + tensor` to the tensor

    _array: Any
    _counter: Version | None
    _node: Node | Output | None
    _own_node: Any  # of a leaf that stopped requiring grad, for when it begins again; most have none
    _view: Any
    _retained: Tensor | None = None  # .grad of a tensor that is not a leaf; rare, so not a slot
    _own_grad: Tensor | None = None  # .grad assigned to a tensor that does not require grad
    _layout: Any = None  # how it lies on ranks, where each has a part of it: `distributed/sharded.py`
    _sharding: Any = None  # ... and this rank's part, where that is so along one dimension
    # of a saved result that was written in place: a weak reference to the history that the tensor got, where it is
    # another
    _written: Any = None
    _made: bool = False  # of a subclass with a ``__new__`` of its own, which makes all of it
    _detached: int = 0  # when `detach_` took its history, counted as writes are

    def __init__(
        self, *data: Any, device: Any = None, dtype: Any = None, requires_grad: bool = False, **kwargs: Any
    ) -> None:
        if self._made and hasattr(self, "_array"):
            return
        from genesis.core.graph.construct import constructed, constructed_by_name

        construct = constructed_by_name if kwargs else constructed
        self._array = construct(data, dtype, device, requires_grad, **kwargs)
        self._node = self._view = None
        self._counter = INFERENCE if inference.get() else None
        if requires_grad:
            self.requires_grad_()

    # ---- what it is

    @property
    def shape(self) -> Size:
        return Size(self._array.shape)

    @property
    def dtype(self) -> dtypes.dtype:
        return dtypes.from_numpy(self._array.dtype)

    @property
    def device(self) -> device:
        return device_of(self._array)

    @property
    def ndim(self) -> int:
        return self._array.ndim  # type: ignore[no-any-return]

    @property
    def size(self) -> Count:
        count = Count(self._array.size)
        count._shape = tuple(self._array.shape)
        return count

    def dim(self) -> int:
        return self._array.ndim  # type: ignore[no-any-return]

    def numel(self) -> int:
        return int(self._array.size)

    nelement = numel

    @property
    def itemsize(self) -> int:
        return int(self._array.dtype.itemsize)

    def element_size(self) -> int:
        return int(self._array.dtype.itemsize)

    @property
    def nbytes(self) -> int:
        return int(self._array.nbytes)

    @property
    def is_meta(self) -> bool:
        return self.device == META

    def is_floating_point(self) -> bool:
        return self._array.dtype.kind == "f" or self.dtype.is_floating_point

    def is_complex(self) -> bool:
        return self.dtype.is_complex

    def stride(self, dim: int | None = None) -> Any:
        """Steps between neighbours along each dimension, in elements."""
        array: Any = bottom(self._array)
        every = strides_of(array.spec) if _is_traced(array) else memory_of(array).strides(array)
        strides = every[len(every) - self.ndim :]  # dimensions that vmap hides are in front
        if 0 in self._array.shape and not any(strides):  # so NumPy has it
            strides = contiguous_strides(tuple(self._array.shape))
        return strides if dim is None else strides[dim]

    def is_contiguous(self, memory_format: Any = contiguous_format) -> bool:
        """Whether the elements lie one after the other in memory, in the order of this format."""
        shape, order = tuple(self._array.shape), tuple(range(self.ndim))
        if memory_format is contiguous_format:
            if isinstance(self._array, np.ndarray):
                return bool(self._array.flags.c_contiguous)
        elif FORMAT_DIMS.get(memory_format) != self.ndim:
            return False
        else:
            order = 0, *range(2, self.ndim), 1  # channels last
        strides, sizes = self.stride(), tuple([shape[d] for d in order])
        steps = contiguous_strides(sizes)
        return 0 in shape or all([n == 1 or strides[d] == s for d, n, s in zip(order, sizes, steps, strict=True)])

    def data_ptr(self) -> int:
        """The address of the first element, in the memory of its device."""
        if isinstance(self._array, DeviceArray):
            return memory_of(self._array).address(self._array)
        return int(self.numpy_view().ctypes.data)

    def _spec(self) -> Spec:
        return spec_of(self._array)

    # ---- its gradient story: `core/graph/history.py`

    requires_grad_ = history.requires_grad_
    _check_grad = history.check_grad
    backward = history.backward
    retain_grad = history.retain_grad
    zero_grad = history.zero_grad
    register_hook = history.register_hook
    register_post_accumulate_grad_hook = history.register_post_accumulate_grad_hook
    detach = history.detach
    detach_ = history.detach_

    @property
    def requires_grad(self) -> bool:
        return self._node is not None

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    @property
    def is_leaf(self) -> bool:
        node = self._node
        if node.__class__ is ArgumentOfTrace and (active := tracer.get()) is not None:
            return active.is_leaf(self)  # type: ignore[no-any-return]
        return node is None or node.is_leaf

    @property
    def grad_fn(self) -> Node | None:
        """The node that made this tensor, printed ``<MulBackward>``; None for a leaf."""
        node = self._node
        if node is None or isinstance(node, AccumulateGrad):
            if not self.is_leaf:
                tracer.get().origin_read(self)
            return None
        return node.node if isinstance(node, Output) else node

    @property
    def output_nr(self) -> int:
        return self._node.index if isinstance(self._node, Output) else 0

    @property
    def grad(self) -> Tensor | None:
        """The accumulated gradient of a leaf, or of a tensor after `retain_grad`."""
        if isinstance(self._node, AccumulateGrad):
            if ACTIVE and tracer.get() is not None:
                tracer.get().grad_read(self._node)
            g = self._node._grad
            return self._retained if g is RECORDED else g
        if self._node is None:
            if ACTIVE and tracer.get() is not None:
                tracer.get().own_grad_read(self)
            return self._own_grad
        if self._retained is None and not self.retains_grad:
            site = self.grad_fn.where()  # type: ignore[union-attr]
            made = f"{self.grad_fn.name()}{f' at {site}' if site is not None else ''}"  # type: ignore[union-attr]
            text = message(
                "grad",
                f"this tensor was computed by {made}, its .grad is not kept",
                hint="call retain_grad() on it before backward, or read .grad of a leaf",
            )
            warnings.warn(text, UserWarning, stacklevel=2)
        return self._retained

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is None:
            node = self._node
            # as every step of a training does
            if node.__class__ is AccumulateGrad and not ACTIVE and node._grad is not RECORDED:
                node._grad = None
                return
        else:
            self._check_grad(value)
        if isinstance(self._node, AccumulateGrad):
            self._node.grad = value
            return
        if ACTIVE and tracer.get() is not None:
            tracer.get().own_grad_set(self, value)
        if self._node is None:
            self._own_grad = value
        else:
            self._retained = value

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    @property
    def retains_grad(self) -> bool:
        node = self._node.node if isinstance(self._node, Output) else self._node
        if node is None or isinstance(node, AccumulateGrad) or node._hooks is None:
            return False
        held = node._hooks.retained.get(self.output_nr)
        return held is not None and held.tensor() is self

    @property
    def data(self) -> Tensor:
        """The same memory without history, and without its writes being counted."""
        if self._node is not None:
            leaves(".data", self._node)
        array = tracer.get().aliased(self) if ACTIVE and tracer.get() is not None else self._array
        return wrap(array.without_tangents() if isinstance(array, Layer) else array)

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise ArgumentError(message("data", f"expected a tensor, got {type(value).__name__}"))
        if self._node is not None and not (value.is_floating_point() or value.is_complex()):
            raise DTypeError(
                message(
                    "data",
                    f"the tensor requires grad, its data cannot be {value.dtype}",
                    [("tensor", self._spec())],
                    "x.float()",
                )
            )
        if ACTIVE and tracer.get() is not None:
            raise GraphError(
                message(
                    "data",
                    "in a trace a tensor keeps its memory",
                    operands=[("tensor", self._spec())],
                    hint="x.data.copy_(value)",
                )
            )
        self._array = value._array
        if isinstance(self._node, AccumulateGrad):
            self._node._shape, self._node._dtype = tuple(value._array.shape), value._array.dtype
            self._node._virtual = is_virtual(value._array)

    @property
    def _version(self) -> int:
        if ACTIVE and tracer.get() is not None:
            tracer.get().version_read(self)
        return self._write_count

    @property
    def _write_count(self) -> int:
        """How often the memory was written to."""
        return 0 if self._counter is None else self._counter.count

    @property
    def _base(self) -> Tensor | None:
        if ACTIVE and self._view is None and tracer.get() is not None and tracer.get().is_argument(self):
            tracer.get().origin_read(self)
        return None if self._view is None else self._view.base

    def is_inference(self) -> bool:
        return self._counter is INFERENCE

    # ---- the same memory under another tensor (used by the engine, views and in-place writes)

    def _alias(self, node: Any) -> Tensor:
        """Another tensor on the same memory, counting the same writes, with the given history."""
        out = _new(Tensor)
        out._array, out._node, out._counter, out._view = self._array, node, self._shared_counter(), None
        out._array = self._array  # counting may have given a shared gradient its own copy
        return out

    def _shared_counter(self) -> Version:
        counter = self._counter
        if counter is None or counter is SHARED:
            with counting:  # threads that make views of one tensor share its count
                self._own_memory()
                if self._counter is None:
                    self._counter = Version()
                counter = self._counter
        return counter

    def _own_memory(self) -> None:
        """A gradient that others may read is copied before it is written to."""
        if self._counter is SHARED:
            active = tracer.get()
            own = active is None or active.is_input(self)
            self._array = apart(self._array) if own else copied(self._array)
            self._counter = None

    def _shared(self) -> Tensor:
        """This gradient, marked to be copied before the first write."""
        out = _new(Tensor)
        out._array, out._node, out._counter, out._view = self._array, self._node, SHARED, None
        return out

    def _apart(self) -> Tensor:
        """This gradient in memory of its own."""
        out, array = _new(Tensor), self._array
        usual = array.__class__ is np.ndarray and array.flags.c_contiguous
        out._array = array.copy() if usual else apart(array)
        out._node = out._counter = out._view = None
        return out

    def _zeros(self, shape: tuple[int, ...], dtype: Any) -> Tensor:
        return wrap(memory_of(self._array).zeros(shape, dtype, self.device))

    def _ones(self, shape: tuple[int, ...], dtype: Any) -> Tensor:
        array: Any = self._array
        if shape or dtype.kind != "f" or not isinstance(array, np.ndarray | DeviceArray):
            return wrap(memory_of(array).ones(shape, dtype, self.device))
        one = wrap(ONES[dtype] if array.__class__ is np.ndarray else memory_of(array).one(dtype, self.device))
        one._counter = SHARED
        return one

    # ---- to Python and NumPy: `core/graph/conversions.py`

    numpy_view = conversions.numpy_view
    _on_host = conversions.on_host
    numpy = conversions.numpy
    __array__ = conversions.as_array
    item = conversions.item
    tolist = conversions.tolist
    __float__ = conversions.as_float
    __int__ = conversions.as_int
    __complex__ = conversions.as_complex
    __index__ = conversions.as_index
    __bool__ = conversions.as_bool
    __len__ = conversions.length
    __iter__ = conversions.iterator
    __reversed__ = conversions.backwards
    __contains__ = conversions.contains
    __format__ = conversions.formatted
    __deepcopy__ = conversions.deepcopied
    __reduce__ = conversions.reduced
    __array_namespace__ = conversions.array_namespace
    to_device = conversions.to_device
    __dlpack__ = conversions.dlpack
    __dlpack_device__ = conversions.dlpack_device

    __hash__ = object.__hash__  # of what it is, as ``==`` is of its elements; 40 ns less than a function that says so

    def __repr__(self) -> str:
        from genesis.core.graph.printing import describe

        return describe(self)


def _rebuild(kind: type[Tensor], array: Any, requires_grad: bool, where: device = CPU) -> Tensor:
    if isinstance(array, np.ndarray) and (type(array) is not np.ndarray or not array.flags.writeable):
        array = stored(np.array(array))  # joblib gives arrays in mapped files
    return wrap(array if where == CPU else placed(array, require_available(where)), kind).requires_grad_(requires_grad)


def wrap(array: Any, kind: type[Tensor] = Tensor) -> Tensor:
    """A tensor on an array as it is: no copy, no history."""
    out = _new(kind)
    out._array = array
    out._node = out._counter = out._view = None
    return out


def _is_traced(array: Any) -> bool:
    return isinstance(array, Virtual) and not isinstance(array, Spec)


def known_values(x: Tensor) -> np.ndarray[Any, Any] | None:
    """The elements as a NumPy array (under vmap those of all samples), or None where they are not known: a meta tensor,
    or in a trace.
    """
    array = bottom(x._array)
    if isinstance(array, Virtual) or tracer.get() is not None:
        return None
    return memory_of(array).to_host(array) if isinstance(array, DeviceArray) else array
