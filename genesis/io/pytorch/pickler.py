"""Values as a pickle of protocol 2, in the form in which PyTorch's `torch.load(..., weights_only=True)` reads them."""

from __future__ import annotations

import struct
from collections import Counter, OrderedDict
from collections.abc import Iterator
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec
from genesis.base import dtypes
from genesis.base.device import device
from genesis.base.errors import ArgumentError, ArgumentValueError, message
from genesis.core.graph.parameter import Parameter
from genesis.core.graph.size import Size
from genesis.core.graph.tensor import Tensor
from genesis.io.blocks import Array, Region, regions
from genesis.io.pytorch.objects import NAMED, Parts, name_of
from genesis.io.pytorch.tensors import LOCATION, STORAGES
from genesis.io.structure import DEPTH

# values that have a form of their own in a pickle
_WRITTEN = (Tensor, np.ndarray, np.generic, type(None), bool, int, float, complex, str, bytes, bytearray, list, dict, tuple,
            set, device, dtypes.dtype, type(...), *NAMED)  # fmt: skip
_CONTAINERS = ("builtins", "collections")  # their lists and dicts are written as lists and dicts
_STORAGE_OF = {kind: name for name, kind in STORAGES.items()}


def tensors_in(value: Any, objects: dict[int, Parts], seen: set[int] | None = None, depth: int = 0) -> Iterator[Any]:
    """Tensors and NumPy arrays in nested containers and objects, each once; what the objects are made of goes to
    ``objects``.

    Raises:
        ValueError: containers in one another too deep, or in themselves
    """
    seen = set() if seen is None else seen
    if id(value) in seen:
        return
    if isinstance(value, Tensor | np.ndarray):
        seen.add(id(value))
        yield value
    elif isinstance(value, dict | list | tuple) or _is_object(value):
        if depth > DEPTH:
            raise ArgumentValueError(
                message("save", f"containers are nested deeper than {DEPTH}, or one contains itself")
            )
        if _is_object(value):
            seen.add(id(value))  # it may be in itself
        for part in _parts(value, objects):
            yield from tensors_in(part, objects, seen, depth + 1)


def _parts(value: Any, objects: dict[int, Parts]) -> tuple[Any, ...]:
    if _is_object(value):
        objects[id(value)] = Parts(value)
        return objects[id(value)].values()
    parts = [*value.values(), *filter(_is_tensor, value)] if isinstance(value, dict) else value
    return (*parts, getattr(value, "_metadata", None))


def _is_tensor(key: Any) -> bool:
    return isinstance(key, Tensor)


def _is_object(value: Any) -> bool:
    """Whether a value is made of what Python's protocol says: no tensor, container or number, or one of a class of its own."""
    if isinstance(value, list | dict):
        return type(value).__module__ not in _CONTAINERS
    return not isinstance(value, _WRITTEN) or (isinstance(value, tuple) and hasattr(value, "_fields"))


class Pickler:
    """Makes the pickle of one value.

    Attributes:
        out: the pickle; blocks: memory for the storages "0", "1", ... that it names
    """

    def __init__(self, value: Any, arrays: dict[int, Array], objects: dict[int, Parts]) -> None:
        self.out = bytearray(b"\x80\x02")
        self.blocks: list[Array] = []
        self._memo: dict[Any, int] = {}
        self._kept: list[Any] = []  # ids stay those of what was seen
        self._regions, self._mixed = _placed(arrays)
        self._keys: dict[int, str] = {}
        self._objects = objects
        self._put(value, "")
        self.out += b"."

    def _put(self, value: Any, path: str) -> None:
        if self._simple(value) or self._again(value):
            return
        if isinstance(value, Tensor | np.ndarray):
            self._tensor(value)
        elif _is_object(value):
            self._object(value, path)
        elif isinstance(value, list):
            self.out += b"]"
            self._remember(value)
            self._items(b"e", [(str(i), v) for i, v in enumerate(value)], path)
        elif isinstance(value, dict):
            self._mapping(value, path)
        elif isinstance(value, set):
            self._call("__builtin__ set", ([self._key(v, path) for v in value],))
        elif isinstance(value, NAMED):
            self._global(name_of(value))
        else:
            self._tuple(value, path)

    def _object(self, value: Any, path: str) -> None:
        """As Python's own pickles have it: who makes it of what, and its state."""
        made_of = self._objects[id(value)]
        self._global(name_of(made_of.made_by))
        self._fresh_tuple(made_of.args)
        self.out += b"\x81" if made_of.new else b"R"
        self._remember(value)
        self._items(b"e", [(str(i), v) for i, v in enumerate(made_of.items)], path)
        for key, part in made_of.pairs.items():
            self.out += b"("
            self._put(self._key(key, path), path)
            self._put(part, f"{path}.{key}")
            self.out += b"u"
        if made_of.state is not None:
            self._put(made_of.state, path)
            self.out += b"b"

    # ---- what has no parts

    def _simple(self, value: Any) -> bool:
        if value is None or isinstance(value, bool):
            self.out += b"N" if value is None else b"\x88" if value else b"\x89"
        elif isinstance(value, np.generic):
            dtypes.from_numpy(value.dtype)
            self._put(value.item() if value.dtype.kind != "V" else float(value), "")
        elif isinstance(value, int):
            self._int(int(value))
        elif isinstance(value, float):
            self.out += b"G" + struct.pack(">d", value)
        elif isinstance(value, str):
            self._string(value)
        else:
            return self._called(value)
        return True

    def _called(self, value: Any) -> bool:
        """Values that are made by a call."""
        if value is ...:
            self._global("builtins Ellipsis")
        elif isinstance(value, complex):
            self._call("__builtin__ complex", (value.real, value.imag))
        elif isinstance(value, bytes):
            self._call("_codecs encode", (value.decode("latin1"), "latin1"))
        elif isinstance(value, bytearray):
            self._call("__builtin__ bytearray", (bytes(value),))
        elif isinstance(value, Size):
            self._call("torch Size", (tuple(value),))
        elif isinstance(value, device):
            self._call("torch device", (value.type,) if value.index is None else (value.type, value.index))
        elif isinstance(value, dtypes.dtype):
            self._global(f"torch {value.name}")
        else:
            return False
        return True

    def _int(self, value: int) -> None:
        if 0 <= value < 256:
            self.out += b"K" + struct.pack("<B", value)
        elif -(1 << 31) <= value < 1 << 31:
            self.out += b"J" + struct.pack("<i", value)
        else:
            data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
            if len(data) > 255:
                raise ArgumentValueError(
                    message("save", f"the integer has {value.bit_length()} bits, the format allows 2039")
                )
            self.out += b"\x8a" + struct.pack("<B", len(data)) + data

    def _string(self, value: str) -> None:
        if self._again(value, ("text", value)):
            return
        data = value.encode("utf-8", "surrogatepass")
        self.out += b"X" + struct.pack("<I", len(data)) + data
        self._remember(value, ("text", value))

    def _global(self, name: str) -> None:
        if not self._again(name, ("global", name)):
            self.out += b"c" + name.replace(" ", "\n").encode() + b"\n"
            self._remember(name, ("global", name))

    def _call(self, name: str, args: tuple[Any, ...]) -> None:
        self._global(name)
        self._fresh_tuple(args)
        self.out += b"R"

    # ---- containers

    def _fresh_tuple(self, args: tuple[Any, ...]) -> None:
        """A tuple that nothing else refers to."""
        self.out += b"("
        for arg in args:
            self._put(arg, "")
        self.out += b"t"

    def _tuple(self, value: tuple[Any, ...], path: str) -> None:
        self.out += b"("
        for i, part in enumerate(value):
            self._put(part, f"{path}.{i}")
        self.out += b"t"
        if value:
            self._remember(value)

    def _items(self, opcode: bytes, items: list[tuple[str, Any]], path: str) -> None:
        if items:
            self.out += b"("
            for name, value in items:
                self._put(value, f"{path}.{name}" if path else name)
            self.out += opcode

    def _mapping(self, value: dict[Any, Any], path: str) -> None:
        if isinstance(value, OrderedDict):
            self._call("collections OrderedDict", ())
        elif isinstance(value, Counter):
            self._call("collections Counter", ())
        else:  # a defaultdict is a dict to the other side, which knows no factories
            self.out += b"}"
        self._remember(value)
        if value:
            self.out += b"("
            for key, part in value.items():
                self._put(self._key(key, path), path)
                self._put(part, f"{path}.{key}" if path else str(key))
            self.out += b"u"
        if isinstance(value, OrderedDict) and getattr(value, "_metadata", None) is not None:
            self._put({"_metadata": value._metadata}, path)  # type: ignore[attr-defined]
            self.out += b"b"

    def _key(self, key: Any, path: str) -> Any:
        if (
            key is None
            or isinstance(key, str | int | float | bytes | Tensor)
            or (isinstance(key, tuple) and all(self._key(k, path) is k for k in key))
        ):
            return key
        problem = f"keys must be strings, numbers, None or tuples of them, got {type(key).__name__}"
        raise ArgumentError(message("save", problem, [("at", path or "the top")]))

    # ---- what was written before

    def _again(self, value: Any, key: Any = None) -> bool:
        index = self._memo.get(id(value) if key is None else key)
        if index is None:
            return False
        self.out += b"h" + struct.pack("<B", index) if index < 256 else b"j" + struct.pack("<I", index)
        return True

    def _remember(self, value: Any, key: Any = None) -> None:
        index = self._memo[id(value) if key is None else key] = len(self._memo)
        self._kept.append(value)
        self.out += b"q" + struct.pack("<B", index) if index < 256 else b"r" + struct.pack("<I", index)

    # ---- tensors

    def _tensor(self, value: Any) -> None:
        if isinstance(value, Parameter):
            self._global("torch._utils _rebuild_parameter")
            self.out += b"("
            self._rebuilt(value, False)
            self._put(value.requires_grad, "")
            self._call("collections OrderedDict", ())
            self.out += b"tR"
        else:
            self._rebuilt(value, isinstance(value, Tensor) and value.requires_grad)
        self._remember(value)

    def _rebuilt(self, value: Any, requires_grad: bool) -> None:
        if isinstance(value, Tensor) and isinstance(value._array, Spec):
            self._call(
                "torch._utils _rebuild_meta_tensor_no_storage",
                (value.dtype, tuple(value.shape), tuple(value.stride()), requires_grad),
            )
            return
        region = self._regions[id(value)]
        array, size = region.array, region.array.itemsize
        kind = dtypes.from_numpy(array.dtype)
        raw = id(region.block) in self._mixed or kind not in _STORAGE_OF
        self._global(f"torch._utils _rebuild_tensor_v{3 if raw else 2}")
        self.out += b"("
        self._storage(region, None if raw else kind, _location(value))
        for part in (region.offset // size, tuple(array.shape), tuple(s // size for s in array.strides), requires_grad):
            self._fresh_tuple(part) if isinstance(part, tuple) else self._put(part, "")
        self._call("collections OrderedDict", ())
        if raw:
            self._put(kind, "")
        self.out += b"tR"

    def _storage(self, region: Region, kind: dtypes.dtype | None, location: str) -> None:
        key = self._keys.get(id(region.block))
        if key is None:
            key = self._keys[id(region.block)] = str(len(self.blocks))
            self.blocks.append(region.block)
        self.out += b"("
        self._string("storage")
        self._global("torch.storage UntypedStorage" if kind is None else f"torch {_STORAGE_OF[kind]}")
        self._string(key)
        self._string(location)
        self._int(region.block.nbytes // (1 if kind is None else kind.itemsize))
        self.out += b"tQ"


def _location(value: Any) -> str:
    """Where a tensor is, as far as PyTorch has a name for that."""
    name = str(value.device) if isinstance(value, Tensor) else "cpu"
    return name if LOCATION.fullmatch(name) else "cpu"


def _placed(arrays: dict[int, Array]) -> tuple[dict[int, Region], set[int]]:
    """Places by the ids of their tensors, and the blocks that hold more than one dtype."""
    by_id = dict(zip(arrays, regions(list(arrays.values()), keep_strides=True), strict=True))
    kinds: dict[int, set[Any]] = {}
    for key, region in by_id.items():
        # no PyTorch tensor can lie like that
        if any(n % region.array.itemsize for n in (region.offset, *region.array.strides)):
            copy = np.ascontiguousarray(region.array).reshape(region.array.shape)
            by_id[key] = region = Region(copy, copy, 0)
        kinds.setdefault(id(region.block), set()).add(region.array.dtype)
    return by_id, {key for key, dtypes_there in kinds.items() if len(dtypes_there) > 1}
