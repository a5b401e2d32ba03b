"""The memory of a tensor as a flat storage, and tensors that see it in other ways: PyTorch's names for it.

A storage is the whole of the memory that a tensor and its views share; a write to it is seen by all of them, and is not
recorded.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from genesis.arrays.spec import contiguous_strides
from genesis.arrays.memory import owner_of
from genesis.base import dtypes
from genesis.base.device import CPU, device
from genesis.base.errors import ArgumentError, IndexOutOfRange, ShapeError, UnsupportedError, message
from genesis.base.layouts import contiguous_format
from genesis.base.narrow import restrided
from genesis.core.call.writes import bump, inplace
from genesis.core.graph.tensor import Tensor, wrap

_BYTE = np.dtype(np.uint8)


def flat_memory(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """All bytes of the memory of an array, in their order."""
    owner = owner_of(array)
    low, high = np.lib.array_utils.byte_bounds(owner)
    if low != owner.ctypes.data or (high - low) != owner.nbytes:
        text = "the memory that this tensor was made from has gaps or runs backwards"
        raise UnsupportedError(message("storage", text, hint="x.clone().storage()"))
    return restrided(owner.view(), (owner.size,), (owner.itemsize,)).view(_BYTE)


class UntypedStorage:
    """The bytes of a tensor's memory; ``x.untyped_storage()``.

    >>> import genesis
    >>> len(genesis.zeros(3).untyped_storage())
    12
    """

    __slots__ = ("_bytes", "_dtype")

    def __init__(self, *size: int) -> None:
        self._bytes: np.ndarray[Any, Any] = np.zeros(size[0] if size else 0, _BYTE)
        self._dtype = _BYTE

    @classmethod
    def _of(cls, memory: np.ndarray[Any, Any], dtype: Any) -> Any:
        out = object.__new__(cls)
        out._bytes, out._dtype = memory, np.dtype(dtype)
        return out

    @classmethod
    def from_file(cls, filename: str, shared: bool = False, nbytes: int = 0) -> Any:
        """The first bytes of a file, read when they are needed; writes go to the file if it is ``shared``.

        Raises:
            RuntimeError: the file is shorter, and not shared (then it is made longer)

        >>> import genesis, pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "file")
        ...     _ = path.write_bytes(bytes([3, 4, 5]))
        ...     genesis.UntypedStorage.from_file(path, nbytes=2).tolist()
        [3, 4]
        """
        if shared:
            with open(filename, "ab") as file:
                file.truncate(max(file.tell(), nbytes))
        elif (there := os.path.getsize(filename)) < nbytes:
            raise ShapeError(message("from_file", f"{filename} has {there} bytes, fewer than {nbytes}"))
        mode: Any = "r+" if shared else "c"
        return cls._of(
            np.memmap(filename, _BYTE, mode, shape=(nbytes,)).view(np.ndarray) if nbytes else np.zeros(0, _BYTE), _BYTE
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.array(self._elements, dtype, copy=copy)

    def untyped(self) -> UntypedStorage:
        """Its bytes."""
        return UntypedStorage._of(self._bytes, _BYTE)  # type: ignore[no-any-return]

    @property
    def _elements(self) -> np.ndarray[Any, Any]:
        return self._bytes.view(self._dtype)

    @property
    def device(self) -> device:
        return CPU

    def nbytes(self) -> int:
        """How many bytes it has."""
        return int(self._bytes.nbytes)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def size(self) -> int:
        """How many elements it has."""
        return self._bytes.nbytes // self._dtype.itemsize

    def __len__(self) -> int:
        return self.size()

    def element_size(self) -> int:
        """How many bytes an element has."""
        return self._dtype.itemsize

    def data_ptr(self) -> int:
        """The address of the first byte."""
        return int(self._bytes.ctypes.data)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._of(self._elements[index].view(_BYTE), self._dtype)
        if not -self.size() <= index < self.size():
            raise IndexOutOfRange(message("storage", f"index {index} is out of range for {self.size()} elements"))
        return wrap(self._elements[index : index + 1 or None]).item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._elements[index] = value

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def tolist(self) -> list[Any]:
        """The elements as Python numbers."""
        return wrap(self._elements).tolist()  # type: ignore[no-any-return]

    def fill_(self, value: Any) -> Any:
        """Set all elements."""
        self._elements[...] = value
        return self

    def copy_(self, source: UntypedStorage, non_blocking: bool = False) -> Any:
        """Write the elements of another storage of this size."""
        self._elements[...] = source._elements
        return self

    def clone(self) -> Any:
        """A storage of its own with the same elements."""
        return self._of(self._bytes.copy(), self._dtype)

    def cpu(self) -> Any:
        """Itself."""
        return self

    def is_shared(self) -> bool:
        """Whether other processes see it, see ``Tensor.share_memory_``."""
        return is_shared(wrap(self._bytes))

    def resize_(self, size: int) -> Any:
        """Refused: the memory of tensors keeps its size."""
        raise UnsupportedError(message("storage", "memory keeps its size", hint="x.resize_(shape), or x.data = other"))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, UntypedStorage)
            and self.data_ptr() == other.data_ptr()
            and self.nbytes() == other.nbytes()
        )

    def __hash__(self) -> int:
        return hash((self.data_ptr(), self.nbytes()))

    def __repr__(self) -> str:
        kind = "" if self._dtype == _BYTE else f"dtype={dtypes.from_numpy(self._dtype)}, "
        return f"genesis.{type(self).__name__}({kind}size={self.size()})"


class TypedStorage(UntypedStorage):
    """The elements of a tensor's memory; ``x.storage()``.

    >>> import genesis
    >>> genesis.ones(3)[1:].storage().tolist()
    [1.0, 1.0, 1.0]
    """

    __slots__ = ()

    @classmethod
    def of_dtype(cls, *data: Any, dtype: dtypes.dtype) -> TypedStorage:
        """Of so many elements, or of a sequence of them."""
        size = data[0] if data else 0
        array = np.zeros(size, dtype.np) if isinstance(size, int) else np.asarray(size).astype(dtype.np)
        return cls._of(array.view(_BYTE), dtype.np)  # type: ignore[no-any-return]

    @property
    def dtype(self) -> dtypes.dtype:
        return dtypes.from_numpy(self._dtype)


def is_storage(obj: Any) -> bool:
    """Whether something is a storage.

    >>> import genesis
    >>> genesis.is_storage(genesis.ones(2).storage())
    True
    """
    return isinstance(obj, UntypedStorage)


def is_shared(x: Tensor) -> bool:
    """Whether other processes see this tensor's memory."""
    import mmap

    base: Any = owner_of(x.numpy_view())
    while base is not None and not isinstance(base, mmap.mmap):
        base = base.obj if isinstance(base, memoryview) else getattr(base, "base", None)
    return base is not None


def _storage(self: Tensor) -> TypedStorage:
    """The whole memory that this tensor and its views share, as elements of its dtype."""
    array = self.numpy_view()
    return TypedStorage._of(flat_memory(array), array.dtype)  # type: ignore[no-any-return]


def _untyped_storage(self: Tensor) -> UntypedStorage:
    """The whole memory that this tensor and its views share, as bytes."""
    return UntypedStorage._of(flat_memory(self.numpy_view()), _BYTE)  # type: ignore[no-any-return]


def _storage_offset(self: Tensor) -> int:
    """Where the first element is in the storage, in elements."""
    array = self.numpy_view()
    return int((array.ctypes.data - owner_of(array).ctypes.data) // array.itemsize)


def _share_memory_(self: Tensor) -> Tensor:
    """Move this tensor's memory to where processes that are forked from now on see it; returns it."""
    import mmap

    if not is_shared(self) and self.numel():
        array = self.numpy_view()
        shared = np.frombuffer(mmap.mmap(-1, array.nbytes), array.dtype).reshape(array.shape)
        shared[...] = array
        self._array = shared
    return self


def _strided(memory: np.ndarray[Any, Any], offset: int, size: Sequence[int], stride: Sequence[int] | None) -> Any:
    """An array that sees elements of a flat memory."""
    steps = contiguous_strides(tuple(size)) if stride is None else tuple(stride)
    if len(steps) != len(size):
        raise ShapeError(message("set_", f"{len(size)} sizes and {len(steps)} strides"))
    last = offset + sum(s * (n - 1) for n, s in zip(size, steps, strict=True))
    if offset < 0 or (0 not in size and last >= memory.size):
        raise ShapeError(message("set_", f"size {list(size)} and offset {offset} reach beyond {memory.size} elements"))
    return restrided(memory[offset:], size, [s * memory.itemsize for s in steps])


def _set_(self: Tensor, source: Any = None, storage_offset: int = 0, size: Any = None, stride: Any = None) -> Tensor:
    """See another tensor's or storage's memory from now on; nothing is copied, and history is not kept.

    Raises:
        RuntimeError: the tensor requires grad, is a view, or the memory is too small
    """
    if source is None:
        self.data = self.new_empty(0)  # type: ignore[attr-defined]
    elif isinstance(source, Tensor) and size is None:
        self.data = source.detach()
    elif isinstance(source, Tensor | UntypedStorage):
        memory = source._storage() if isinstance(source, Tensor) else source
        flat = memory._bytes.view(self._array.dtype)
        shape = (flat.size - storage_offset,) if size is None else tuple(size)
        self.data = wrap(_strided(flat, storage_offset, shape, stride))
    else:
        raise ArgumentError(message("set_", f"expected a tensor or a storage, got {type(source).__name__}"))
    bump(self, "set_")
    return self


def _resize_(self: Tensor, *size: Any, memory_format: Any = None, **named: Any) -> Tensor:
    """Another shape: the elements in their order, cut off or followed by whatever the memory holds.

    Raises:
        RuntimeError: the tensor requires grad; a size below 0
    """
    from genesis.ops.shapes.expand import never_negative, sizes_of

    shape = sizes_of("resize_", "size", size, named)
    never_negative("resize_", "sizes", shape)
    if self.requires_grad:
        raise UnsupportedError(message("resize_", "the tensor requires grad", hint="x.detach().resize_(...)"))
    if shape != tuple(self._array.shape):
        count = int(np.prod(shape))
        memory = _storage(self)._elements[_storage_offset(self) :]
        if memory.size < count:
            larger = np.empty(count, self._array.dtype)
            larger[: self.numel()] = self._array.reshape(-1)
            memory = larger
        self.data = wrap(memory[:count].reshape(shape))
        bump(self, "resize_")
    return self


def _resize_as_(self: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    """`resize_` to the shape of another tensor."""
    return _resize_(self, the_template.shape)


def _apply_(self: Tensor, callable: Any) -> Tensor:  # noqa: A002
    """Replace each element by what a Python function returns for it; slow, and without a gradient."""
    return _by_python("apply_", self, callable)


def _map_(self: Tensor, tensor: Tensor, callable: Any) -> Tensor:  # noqa: A002
    """Replace each element by what a Python function returns for it and that of another tensor."""
    return _by_python("map_", self, callable, tensor)


def _map2_(self: Tensor, x: Tensor, y: Tensor, callable: Any) -> Tensor:  # noqa: A002
    """Replace each element by what a Python function returns for it and those of two other tensors."""
    return _by_python("map2_", self, callable, x, y)


def _by_python(name: str, x: Tensor, function: Any, *others: Tensor) -> Tensor:
    if x.requires_grad or any(other.requires_grad for other in others):
        text = "a Python function of elements has no gradient, and a tensor requires grad"
        raise UnsupportedError(message(name, text, hint=f"x.detach().{name}(...)"))
    rows = [wrap(a).tolist() for a in [t.expand(x.shape).numpy().reshape(-1) for t in (x, *others)]]  # type: ignore[attr-defined]
    results = [function(*numbers) for numbers in zip(*rows, strict=True)]
    new = np.array(results, dtype=object).astype(x._array.dtype) if results else np.zeros(0, x._array.dtype)
    return inplace(name, lambda old: wrap(new.reshape(old.shape)), x, (), {})


Tensor.storage, Tensor.untyped_storage, Tensor.storage_offset = _storage, _untyped_storage, _storage_offset
Tensor._storage = Tensor._typed_storage = _storage
Tensor.storage_type = lambda self: TypedStorage
Tensor.is_shared, Tensor.share_memory_ = is_shared, _share_memory_
Tensor.set_, Tensor.resize_, Tensor.resize_as_ = _set_, _resize_, _resize_as_
Tensor.resize, Tensor.resize_as = (
    lambda self, *size: _resize_(self.clone(memory_format=contiguous_format), *size),
    lambda self, tensor: _resize_(self.clone(memory_format=contiguous_format), tensor.shape),
)
Tensor.apply_, Tensor.map_, Tensor.map2_ = _apply_, _map_, _map2_

__all__ = ["TypedStorage", "UntypedStorage", "is_storage"]
