"""`Tensor`: an array plus a gradient story.

Four slots make a tensor: the array, where its gradient goes (`core/graph/node.py`), the count of in-place
writes, and what it is a view of (`core/call/views.py`). Everything one can *do* with a tensor is an op: the
ops attach themselves as methods when they are declared (`core/call/op.py`), so this file has only what a
tensor *is*.
"""

from __future__ import annotations

import importlib
import math
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from genesis.arrays.memory import DeviceArray, copied, memory_of, placed
from genesis.arrays.protocol import Dispatched, Layer, Virtual, bottom, device_of, value_of
from genesis.arrays.spec import Spec, contiguous_strides, meta, spec_of, strides_of
from genesis.base import dtypes
from genesis.base.device import CPU, MEMORIES, META, as_device, default_device, device, require_available
from genesis.base.errors import (
    ArgumentError,
    ArgumentValueError,
    DeviceError,
    DTypeError,
    GraphError,
    ShapeError,
    message,
)
from genesis.base.memory import too_large
from genesis.core.graph import engine
from genesis.core.graph.escapes import escape
from genesis.core.graph.hooks import RemovableHandle, hooks_of
from genesis.core.graph.lost import note
from genesis.core.graph.methods import Methods
from genesis.core.graph.modes import inference
from genesis.core.graph.node import (
    INFERENCE,
    RECORDED,
    SHARED,
    AccumulateGrad,
    Node,
    Output,
    Version,
    count_event,
    counting,
    leaf,
)
from genesis.core.graph.site import line_here
from genesis.core.graph.switches import ACTIVE, ESCAPES
from genesis.core.graph.tracing import tracer

_new = object.__new__


class _Ones(dict[Any, Any]):
    """The number one as a read-only 0-d array, for each dtype: what most backwards start from."""

    def __missing__(self, dtype: Any) -> Any:
        self[dtype] = one = np.ones((), dtype)
        one.flags.writeable = False
        return one


ONES = _Ones()


def _leaves(what: str, edge: Any) -> None:
    """A value with history is taken out of the graph: noted for errors, and told to whoever watches."""
    note(what, edge, sys._getframe(2))
    if ESCAPES:
        escape(what)


class Size(tuple[int, ...]):
    """A shape; a tuple that also knows its number of elements.

    >>> import genesis
    >>> genesis.zeros(2, 3).shape
    genesis.Size([2, 3])
    """

    __slots__ = ()

    def numel(self) -> int:
        count = 1
        for n in self:
            count *= n
        return count

    def __repr__(self) -> str:
        return f"genesis.Size({list(self)})"

    def __getitem__(self, index: Any) -> Any:
        got = tuple.__getitem__(self, index)
        return Size(got) if isinstance(index, slice) else got


class _Count(int):
    """``x.size`` is the number of elements; ``x.size()`` the shape and ``x.size(dim)`` one length of it."""

    _shape: tuple[int, ...]

    def __call__(self, dim: int | None = None) -> Any:
        if dim is None:
            return Size(self._shape)
        if not -len(self._shape) <= dim < len(self._shape):
            raise IndexError(message("size", f"dim {dim} is out of range for {len(self._shape)} dimensions"))
        return self._shape[dim]


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

    __slots__ = ("__dict__", "__weakref__", "_array", "_counter", "_node", "_view")
    __array_priority__ = 1000  # NumPy leaves `array + tensor` to the tensor

    _array: Any
    _counter: Version | None
    _node: Node | Output | None
    _view: Any
    _retained: Tensor | None = None  # .grad of a tensor that is not a leaf; rare, so not a slot
    _own_grad: Tensor | None = None  # .grad assigned to a tensor that does not require grad
    # of a saved result that was written in place: a weak reference to the history that the tensor got, where it is
    # another
    _written: Any = None
    _detached: int = 0  # when `detach_` took its history, counted as writes are

    def __init__(
        self, *data: Any, device: Any = None, dtype: Any = None, requires_grad: bool = False, **kwargs: Any
    ) -> None:
        construct = _constructed_by_name if kwargs else _constructed
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
    def size(self) -> _Count:
        count = _Count(self._array.size)
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
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        return self.dtype.is_complex

    def stride(self, dim: int | None = None) -> Any:
        """Steps between neighbours along each dimension, in elements."""
        array: Any = bottom(self._array)
        every = strides_of(array.spec) if _is_traced(array) else memory_of(array).strides(array)
        strides = every[len(every) - self.ndim :]  # dimensions that vmap hides are in front
        return strides if dim is None else strides[dim]

    def is_contiguous(self) -> bool:
        if isinstance(self._array, np.ndarray):
            return bool(self._array.flags.c_contiguous)
        shape = tuple(self._array.shape)
        return 0 in shape or all(
            n == 1 or s == t for n, s, t in zip(shape, self.stride(), contiguous_strides(shape), strict=True)
        )

    def data_ptr(self) -> int:
        """The address of the first element."""
        return int(self.numpy_view().ctypes.data)

    def _spec(self) -> Spec:
        return spec_of(self._array)

    # ---- its gradient story

    @property
    def requires_grad(self) -> bool:
        return self._node is not None

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Begin (or stop) recording what is done with this leaf; returns it.

        Raises:
            RuntimeError: the dtype is not floating or complex, or the tensor is not a leaf
        """
        if ACTIVE and tracer.get() is not None:
            tracer.get().history_changes(self)
        if not requires_grad:
            if not self.is_leaf:
                raise GraphError(
                    message("requires_grad_", "only a leaf can stop requiring grad", hint="use y.detach()")
                )
            self._own_grad, self._node, self._retained = self.grad, None, None
        elif self._node is None:
            if self._array.dtype.kind not in "fcV" and not self.dtype.is_floating_point:
                raise DTypeError(
                    message(
                        "requires_grad_",
                        f"only floating and complex tensors can require grad, this one is {self.dtype}",
                        hint="convert it first, x.float().requires_grad_()",
                    )
                )
            if self._counter is INFERENCE and not inference.get():
                raise GraphError(
                    message(
                        "requires_grad_",
                        "a tensor made in inference_mode cannot begin to require grad outside it",
                        hint="clone() it",
                    )
                )
            self._node = leaf(self)
            if self._own_grad is not None:
                self._node.grad, self._own_grad = self._own_grad, None
        return self

    @property
    def is_leaf(self) -> bool:
        return self._node is None or self._node.is_leaf

    @property
    def grad_fn(self) -> Node | None:
        """The node that made this tensor, printed ``<MulBackward>``; None for a leaf."""
        node = self._node
        if node is None or isinstance(node, AccumulateGrad):
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
        elif self._node is None:
            self._own_grad = value
        else:
            self._retained = value

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    def _check_grad(self, value: Any) -> None:
        if not isinstance(value, Tensor):
            raise ArgumentError(message("grad", f"expected a tensor or None, got {type(value).__name__}"))
        if value is self:
            raise GraphError(
                message("grad", "a tensor cannot be its own gradient", [("tensor", self._spec())], "assign a clone()")
            )
        for what, kind, mine, its in (
            ("shape", ShapeError, list(self._array.shape), list(value._array.shape)),
            ("dtype", DTypeError, self.dtype, value.dtype),
            ("device", DeviceError, self.device, value.device),
        ):
            if mine != its:
                raise kind(message("grad", f"the gradient's {what} {its} is not the tensor's, {mine}"))

    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Tensor | Sequence[Tensor] | None = None,
    ) -> None:
        """Differentiate this tensor: adds d self / d leaf to ``.grad`` of every leaf it depends on.

        Args:
            gradient: what to start from, of this tensor's shape; may be left out for one element
            retain_graph: keep what was saved, for a second backward; defaults to ``create_graph``
            create_graph: record the gradients' own computation, for derivatives of derivatives
            inputs: accumulate into these only; of those that are no leaves the gradient is retained

        Raises:
            RuntimeError: no history, an implicit gradient for many elements, a freed graph, or a
                saved tensor that was modified in place

        >>> import genesis
        >>> x = genesis.tensor([1.0, 2.0, 3.0], requires_grad=True)
        >>> (x ** 2).sum().backward()
        >>> x.grad
        tensor([2., 4., 6.])
        """
        if gradient is not None and not isinstance(gradient, Tensor):
            gradient = wrap(array_from(gradient, self._array.dtype))
        edge = engine.edge_of(self)
        seed = engine.seed_for(self, gradient)
        wanted = (
            None
            if inputs is None
            else [inputs]
            if isinstance(inputs, Tensor)
            else list(inputs.values() if hasattr(inputs, "values") else inputs)
        )
        engine.run(
            [edge],
            [seed],
            keep_graph=create_graph if retain_graph is None else retain_graph,
            create_graph=create_graph,
            inputs=None if wanted is None else inputs_of_backward(wanted),
        )

    def retain_grad(self) -> None:
        """Keep ``.grad`` of this tensor although it is not a leaf."""
        node = self._node
        if node is None:
            raise GraphError(message("retain_grad", "the tensor does not require grad"))
        if not node.is_leaf:
            import weakref

            target = node.node if isinstance(node, Output) else node
            hooks_of(target).retained[self.output_nr] = weakref.ref(self)

    @property
    def retains_grad(self) -> bool:
        node = self.grad_fn
        if node is None or node._hooks is None:
            return False
        held = node._hooks.retained.get(self.output_nr)
        return held is not None and held() is self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget ``.grad``, or fill it with zeros in place with ``set_to_none=False``."""
        g = None if set_to_none else self.grad  # a trace notes who looks at it
        if g is None:
            self.grad = None
        else:
            g.detach_()
            g.zero_()

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
        """Call ``hook(gradient)`` whenever this tensor's gradient is ready; it may return a replacement.

        >>> import genesis
        >>> x = genesis.ones(2, requires_grad=True)
        >>> handle = x.register_hook(lambda g: g * 10)
        >>> (x * 2).sum().backward(); x.grad
        tensor([20., 20.])
        """
        node = self._node
        if node is None:
            raise GraphError(message("register_hook", "the tensor does not require grad"))
        target, index = (node.node, node.index) if isinstance(node, Output) else (node, 0)
        return RemovableHandle(hooks_of(target).tensor, (index, hook))

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> RemovableHandle:
        """Call ``hook(self)`` after a backward has updated this leaf's ``.grad``."""
        if not isinstance(self._node, AccumulateGrad):
            raise GraphError(
                message("register_post_accumulate_grad_hook", "the tensor is not a leaf that requires grad")
            )
        return RemovableHandle(hooks_of(self._node).post_accumulate, hook)

    def detach(self) -> Tensor:
        """The same memory without history (and without tangents): a write to one is seen by the other."""
        if self._node is not None:
            _leaves("detach()", self._node)
        if ACTIVE and tracer.get() is not None:
            tracer.get().capture(self)
        out = self._alias(None)
        if isinstance(out._array, Layer):
            out._array = out._array.without_tangents()
        return out

    def detach_(self) -> Tensor:
        """Forget this tensor's history, in place."""
        if self._node is not None:
            _leaves("detach_()", self._node)
        if self._view is not None:
            raise GraphError(message("detach_", "a view cannot be detached in place", hint="use detach()"))
        if ACTIVE and tracer.get() is not None:
            tracer.get().history_changes(self)
        if self._node is not None:
            self._shared_counter()
            self._detached = count_event()  # nodes that saved this very tensor refuse it, see `Node._unpack`
        self._node = None
        if isinstance(self._array, Layer):
            self._array = self._array.without_tangents()
        return self

    @property
    def data(self) -> Tensor:
        """The same memory without history, and without its writes being counted."""
        if self._node is not None:
            _leaves(".data", self._node)
        if ACTIVE and tracer.get() is not None:
            tracer.get().capture(self)
        return wrap(self._array.without_tangents() if isinstance(self._array, Layer) else self._array)

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
            self._node._virtual = value._array.__class__ is not np.ndarray

    @property
    def _version(self) -> int:
        return 0 if self._counter is None else self._counter.count

    @property
    def _base(self) -> Tensor | None:
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
            self._array = self._array.copy() if active is not None and active.is_input(self) else copied(self._array)
            self._counter = None

    def _shared(self) -> Tensor:
        """This gradient, marked to be copied before the first write."""
        out = _new(Tensor)
        out._array, out._node, out._counter, out._view = self._array, self._node, SHARED, None
        return out

    def _apart(self) -> Tensor:
        """This gradient in memory of its own."""
        out = _new(Tensor)
        out._array, out._node, out._counter, out._view = self._array.copy(), None, None, None
        return out

    def _zeros(self, shape: tuple[int, ...], dtype: Any) -> Tensor:
        return wrap(memory_of(self._array).zeros(shape, dtype, self.device))

    def _ones(self, shape: tuple[int, ...], dtype: Any) -> Tensor:
        if shape or dtype.kind != "f" or self._array.__class__ is not np.ndarray:
            return wrap(memory_of(self._array).ones(shape, dtype, self.device))
        one = wrap(ONES[dtype])
        one._counter = SHARED
        return one

    # ---- to and from Python and NumPy

    def numpy_view(self) -> np.ndarray[Any, Any]:
        """The NumPy array inside, shared; an error when there is no data."""
        if isinstance(self._array, Dispatched):
            raise self._array.refuse("numpy", line_here())
        if tracer.get() is not None:
            tracer.get().refuse_numbers(self)
        self._own_memory()
        return self._array  # type: ignore[no-any-return]

    def _on_host(self) -> np.ndarray[Any, Any]:
        """The elements as a NumPy array: the one inside, or a copy of what a device holds."""
        if not isinstance(self._array, DeviceArray):
            return self.numpy_view()
        if tracer.get() is not None:
            tracer.get().refuse_numbers(self)
        return memory_of(self._array).to_host(self._array)

    def numpy(self, *, force: bool = False) -> np.ndarray[Any, Any]:
        """A NumPy array on the same memory (no copy); bfloat16 becomes ``ml_dtypes.bfloat16``.

        Raises:
            RuntimeError: the tensor requires grad and ``force`` is False, or it has no data
        """
        if self._node is not None and not force:
            raise GraphError(
                message("numpy", "the tensor requires grad, NumPy would lose the history", hint="x.detach().numpy()")
            )
        return self.numpy_view()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise ValueError("__array__: another dtype needs a copy, and copy=False forbids one")
            return array.astype(dtype)
        return array.copy() if copy else array

    def item(self) -> Any:
        """The one element as a Python number."""
        if self._array.size != 1:
            raise ShapeError(
                message("item", f"the tensor has {self._array.size} elements, item() needs exactly one",
                        operands=[("tensor", self._spec())], hint="index it first, or tolist()")
            )  # fmt: skip
        if self._node is not None:
            _leaves("item()", self._node)
        value = (self if isinstance(self._array, np.ndarray) else wrap(value_of(self._array)))._on_host().reshape(-1)[0]
        return float(value) if self._array.dtype.kind == "V" or self.dtype.is_floating_point else value.item()

    def tolist(self) -> Any:
        """The elements as (nested lists of) Python numbers."""
        if self._node is not None:
            _leaves("tolist()", self._node)
        array = self._on_host()
        if self.dtype.is_floating_point and array.dtype.kind != "f":
            array = array.astype(np.float32)
        return array.tolist()

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        if self._array.dtype.kind not in "iu" or self._array.size != 1:
            raise ArgumentError(
                message("index", f"only a one-element integer tensor can be an index, this is {self._spec()}")
            )
        return int(self.item())

    def __bool__(self) -> bool:
        if self._array.size != 1:
            raise ShapeError(
                message("bool", f"the truth of {self._array.size} elements is ambiguous",
                        operands=[("tensor", self._spec())], hint="x.any() or x.all()")
            )  # fmt: skip
        return bool(self.item())

    def __len__(self) -> int:
        if not self._array.ndim:
            raise ArgumentError(message("len", "a 0-d tensor has no length"))
        return int(self._array.shape[0])

    def __iter__(self) -> Iterator[Tensor]:
        if not self._array.ndim:
            raise ArgumentError(message("iter", "a 0-d tensor cannot be iterated"))
        return iter(self.unbind(0))

    def __reversed__(self) -> Tensor:
        return self.flip(0) if self._array.ndim else self

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).any())

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        from genesis.core.graph.printing import describe

        return describe(self)

    def __format__(self, spec: str) -> str:
        if not spec and (self._array.ndim or isinstance(self._array, Virtual)):
            return repr(self)
        if self._array.size != 1:
            raise ArgumentError(
                message("format", f"{spec!r} formats one element, the tensor has {self._array.size}",
                        hint="f'{x}' prints the whole tensor")
            )  # fmt: skip
        return format(self.item(), spec)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if not self.is_leaf:
            raise GraphError(
                message("deepcopy", "only leaf tensors can be deep-copied", hint="copy x.detach(), or clone() it")
            )
        import copy

        out = wrap(self._array if isinstance(self._array, Spec) else self._array.copy(), type(self))
        memo[id(self)] = out
        out.requires_grad_(self.requires_grad)
        for name, value in self.__dict__.items():
            setattr(out, name, copy.deepcopy(value, memo))
        if self.grad is not None:
            out.grad = copy.deepcopy(self.grad, memo)
        return out

    def __reduce__(self) -> Any:
        if not self.is_leaf:
            raise GraphError(message("pickle", "only leaf tensors can be pickled", hint="pickle x.detach()"))
        if isinstance(self._array, Virtual) and not isinstance(self._array, Spec):
            raise self._array.refuse("pickle", line_here())
        if isinstance(self._array, DeviceArray):
            return _rebuild, (type(self), self._on_host(), self.requires_grad, self.device)
        array = (
            self._array
            if isinstance(self._array, Spec)
            else np.ascontiguousarray(self._array).reshape(self._array.shape)
        )
        return _rebuild, (type(self), array, self.requires_grad)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """The functions of the Python array API standard, `genesis.array_api`."""
        if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
            raise ValueError(
                message(
                    "__array_namespace__",
                    f"version {api_version!r} of the array API is not known",
                    hint="2021.12 to 2024.12",
                )
            )
        return importlib.import_module("genesis.array_api")

    def to_device(self, device: Any, /, *, stream: Any = None) -> Tensor:
        """This tensor on another device (the array API's ``to``)."""
        return self.to(device=device)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """The memory as a DLPack capsule; of negative strides a copy, for which some consumers (PyTorch 2.13) abort the
        process.
        """
        array = self.numpy()
        if any(step < 0 for step in array.strides):
            if copy is False:
                raise BufferError(
                    message(
                        "__dlpack__",
                        "negative strides need a copy, and copy=False forbids one",
                        [("input", self._spec())],
                        hint="x.contiguous()",
                    )
                )
            array = array.copy()
        options = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
        # NumPy 2.0 knows stream alone
        return array.__dlpack__(**{name: value for name, value in options.items() if value is not None})

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.numpy_view().__dlpack_device__()


def _rebuild(kind: type[Tensor], array: Any, requires_grad: bool, place: device = CPU) -> Tensor:
    return wrap(array if place == CPU else placed(array, require_available(place)), kind).requires_grad_(requires_grad)


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


def input_edge(x: Any, place: int, op: str) -> Any:
    """The place of an input (a tensor, or a `GradientEdge`) that a gradient was asked for."""
    if not isinstance(x, Tensor):
        if hasattr(x, "output_nr") and hasattr(x, "node"):
            return x.node if x.node._outputs is None else Output(x.node, x.output_nr)
        raise ArgumentError(message(op, f"inputs[{place}] is not a tensor but {type(x).__name__}"))
    if x._node is None:
        raise GraphError(
            message(op, f"inputs[{place}] does not require grad", operands=[(f"inputs[{place}]", x._spec())],
                    hint="call requires_grad_() on it before computing the output")
        )  # fmt: skip
    return x._node


def inputs_of_backward(inputs: Sequence[Any]) -> list[Any]:
    """The places of the tensors that a backward shall accumulate into; those that are no leaves retain their gradient
    from now on.
    """
    edges = [input_edge(x, i, "backward") for i, x in enumerate(inputs)]
    for x in inputs:
        if isinstance(x, Tensor):
            x.retain_grad()
    return edges


def _constructed(data: tuple[Any, ...], dtype: Any, place: Any, requires_grad: bool) -> Any:
    """The array of ``Tensor(*data)``: of sizes, or of data in the default dtype."""
    sizes = tuple(data[0]) if len(data) == 1 and isinstance(data[0], Size) else data
    kind = dtypes.get_default_dtype() if dtype is None else dtype
    if all(isinstance(n, int | np.integer) and not isinstance(n, bool) for n in sizes):
        return _uninitialised(
            tuple(sizes) if data else (0,), dtypes.as_np(kind), default_device() if place is None else as_device(place)
        )
    if len(data) > 1 or isinstance(data[0], bool | np.bool_):
        raise ArgumentError(
            message(
                "Tensor",
                f"expected sizes or a sequence of numbers, got {', '.join(type(x).__name__ for x in data)}",
                hint="genesis.tensor(...)",
            )
        )
    if isinstance(data[0], Tensor):
        return array_from(data[0], dtype, place, requires_grad)
    source = array_from(data[0], dtype, place, requires_grad)
    if dtype is None and source.dtype.kind == "c":
        raise ArgumentError(
            message("Tensor", "the data are complex, Tensor(...) makes real tensors", hint="genesis.tensor(...)")
        )
    return source if dtype is not None else array_from(wrap(source), kind, place)


def _constructed_by_name(data: tuple[Any, ...], dtype: Any, place: Any, requires_grad: bool, **keywords: Any) -> Any:
    """The array of ``Tensor(array=..., order=..., ndmin=..., copy=...)``, where ``array`` is data and its dtype is
    kept.
    """
    unknown = [name for name in keywords if name not in ("array", "copy", "ndmin", "order")]
    if unknown:
        raise ArgumentError(message("Tensor", f"unknown argument {unknown[0]!r}"))
    if bool(data) == ("array" in keywords):
        raise ArgumentError(
            message(
                "Tensor",
                f"the data are given {'twice' if data else 'neither by position nor as array='}",
                hint="Tensor(array=[1.0, 2.0])",
            )
        )
    if keywords.get("copy", True) not in (True, None):
        raise ArgumentError(
            message(
                "Tensor", "the data are always copied, copy is False", hint="genesis.from_numpy(array) shares memory"
            )
        )
    source = (
        _constructed(data, dtype, place, requires_grad)
        if data
        else array_from(keywords["array"], dtype, place, requires_grad)
    )
    order, ndmin = keywords.get("order", "K"), keywords.get("ndmin", 0)
    if isinstance(source, np.ndarray):
        return np.array(source, copy=None, order=order, ndmin=ndmin)
    return (
        source
        if (order, ndmin) == ("K", 0)
        else array_from(wrap(source).reshape((1,) * (ndmin - source.ndim) + tuple(source.shape)))
    )


def _uninitialised(shape: tuple[int, ...], dtype: Any, where: device) -> Any:
    where = require_available(where)
    if any(n < 0 for n in shape):
        raise ShapeError(message("Tensor", f"sizes cannot be negative, got {list(shape)}"))
    try:
        return MEMORIES[where.type].empty(shape, dtype, where)
    except (MemoryError, ValueError):
        raise too_large("Tensor", shape, dtype, Spec(shape, dtype)) from None


def array_from(data: Any, dtype: Any = None, place: Any = None, requires_grad: bool = False) -> Any:
    """A new array of anything that holds numbers; the rules of ``genesis.tensor``."""
    where = as_device(place) if place is not None else data.device if isinstance(data, Tensor) else default_device()
    where = require_available(where)
    want = None if dtype is None else dtypes.as_np(dtype)
    if isinstance(data, Tensor):
        if tracer.get() is not None:
            return data.detach().to(dtypes.from_numpy(want or data._array.dtype)).clone()._array
        source = data._array
        if isinstance(source, DeviceArray):
            return data.detach().to(device=where, dtype=want, copy=True)._array
        if data._node is not None:
            note("tensor(...), which copies the value", data._node, sys._getframe(2))
    else:
        source = _from_python(data, want, requires_grad)
    if where == META or isinstance(source, Spec):
        return meta(tuple(source.shape), want or source.dtype)
    return placed(np.array(source, dtype=want or source.dtype, copy=True, order="C"), where)


def _from_python(data: Any, want: Any, requires_grad: bool) -> np.ndarray[Any, Any]:
    if isinstance(data, list | tuple):
        data = _without_tensors(data)
    try:
        array = np.asarray(data)
        dtypes.from_numpy(array.dtype)
    except (ValueError, TypeError, KeyError, RuntimeError, OverflowError) as error:
        raise _not_an_array(data, error) from None
    plain = not isinstance(data, np.ndarray | np.generic) and not hasattr(data, "__array__")
    if plain and array.size and array.dtype.kind in "iufc":
        _check_range(array, want or (array.dtype if array.dtype.kind != "u" else np.dtype(np.int64)))
    if want is None and plain:
        default = dtypes.as_np(dtypes.get_default_dtype())
        if array.dtype.kind == "f" and array.dtype == np.float64 and not _holds_arrays(data):
            want = default
        elif array.dtype.kind == "c" and not _holds_arrays(data):
            want = np.result_type(default, np.complex64)
        elif requires_grad and array.dtype.kind in "biu":  # [1, 2, 3] that is to require grad means numbers
            want = default
        if not array.size and isinstance(data, list | tuple):
            want = default
    with np.errstate(all="ignore"):
        return array if want is None else array.astype(want)


def in_dtype(name: str, value: Any, dtype: Any) -> Any:
    """A number in a dtype, or an error where it does not fit; negative numbers wrap around in unsigned dtypes, as in
    PyTorch.
    """
    if isinstance(value, complex) and dtype.kind in "biuf":
        raise ArgumentError(message(name, f"{value} is complex, {dtypes.from_numpy(dtype)} is not"))
    if dtype.kind in "iu" and isinstance(value, int | float):
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        number = int(value) if isinstance(value, int) or math.isfinite(value) else None
        if number is None or not (low or -high) <= number <= high:
            raise DTypeError(
                message(name, f"{value} does not fit {dtypes.from_numpy(dtype)}, which holds {low} to {high}")
            )
        return np.array(number % (high + 1) if not low else number, dtype)
    with np.errstate(all="ignore"):
        return np.array(value).astype(dtype)


def _check_range(array: Any, dtype: Any) -> None:
    """Refuse Python numbers that a dtype does not hold."""
    if dtype.kind in "iuf" and (array.dtype.kind == "c" or (dtype.kind != "f" and array.dtype is not dtype)):
        for bound in (array.flat[0],) if array.dtype.kind == "c" else (array.min(), array.max()):
            in_dtype("tensor", bound.item(), dtype)


def _holds_arrays(data: Any) -> bool:
    while isinstance(data, list | tuple) and data:
        data = data[0]
    return isinstance(data, np.ndarray | np.generic)


def _without_tensors(data: Any) -> Any:
    if isinstance(data, Tensor):
        return data._on_host() if data.ndim else data._on_host()[()]
    if isinstance(data, list | tuple):
        return [_without_tensors(item) for item in data]
    return data


def _leaves_of(data: Any) -> Iterator[Any]:
    for item in data if isinstance(data, list | tuple) else ():
        yield from _leaves_of(item)
    if not isinstance(data, list | tuple):
        yield data


def _not_an_array(data: Any, error: Exception) -> Exception:
    text = str(error)
    if "object" in text and (numbers := [x for x in _leaves_of(data) if isinstance(x, int)]):
        largest = max(numbers, key=abs)
        if abs(largest) >= 2**63:
            return ArgumentValueError(message("tensor", f"{largest} does not fit an integer of 64 bits"))
    if "inhomogeneous" in text:
        return ArgumentValueError(message("tensor", "the nested sequence is ragged, its rows differ in length",
                                  hint="pad the rows to one length"))  # fmt: skip
    return ArgumentError(
        message("tensor", f"cannot make a tensor of {type(data).__name__}", hint="pass numbers, lists or arrays")
    )
