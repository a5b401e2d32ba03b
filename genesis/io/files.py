"""`save` and `load`: tensors in safetensors files, nested structures described in the header."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

from genesis.base import dtypes
from genesis.base.errors import ArgumentError, DTypeError, FileFormatError, message
from genesis.core.tensor import Tensor, wrap
from genesis.io.atomic import write_atomically

_CODES = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "U32": "uint32", "I32": "int32", "U64": "uint64", "I64": "int64",
    "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64", "C64": "complex64",
}  # fmt: skip
_TREE = "genesis.structure"  # the reserved key of the header that describes what is not a flat dict of tensors


def _describe(value: Any, path: str, tensors: dict[str, Tensor]) -> Any:
    """A JSON description of a structure; its tensors are collected by their paths."""
    if isinstance(value, Tensor):
        while path in tensors:  # the key "a.b" beside {"a": {"b": ...}}
            path += "'"
        tensors[path] = value
        return {"tensor": path}
    if value is None or isinstance(value, bool | int | float | str):
        return {"value": value}
    if isinstance(value, list | tuple):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [_describe(v, f"{path}.{i}" if path else str(i), tensors) for i, v in enumerate(value)]}
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str | int):
                raise ArgumentError(message("save", f"keys must be strings or integers, got {type(key).__name__}", [("at", path or "the top")]))
        return {"dict": [[k, _describe(v, f"{path}.{k}" if path else str(k), tensors)] for k, v in value.items()]}
    raise ArgumentError(
        message("save", f"cannot save {type(value).__name__}", [("at", path or "the top")], "tensors, numbers, strings, lists and dicts of them")
    )


def _restore(node: Any, tensors: dict[str, Tensor]) -> Any:
    ((kind, content),) = node.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "value":
        return content
    if kind == "dict":
        return {k: _restore(v, tensors) for k, v in content}
    parts = [_restore(v, tensors) for v in content]
    return parts if kind == "list" else tuple(parts)


def save(obj: Any, f: str | os.PathLike[str], metadata: dict[str, str] | None = None) -> None:
    """Write tensors, or (nested) dicts and lists of tensors, numbers and strings, to a safetensors file.

    The file appears whole or not at all. A flat dict of tensors makes a plain safetensors file, which every other reader of
    the format understands; what else a structure holds is described in the file's header.

    Raises:
        TypeError: something that cannot be saved
        RuntimeError: a dtype that the format does not have (complex128), or a meta tensor
        OSError: the folder cannot be written to

    >>> import genesis, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "x.safetensors")
    >>> genesis.save({"w": genesis.ones(2)}, path); genesis.load(path)
    {'w': tensor([1., 1.])}
    """
    from safetensors import numpy as serializer

    tensors: dict[str, Tensor] = {}
    tree = _describe(obj, "", tensors)
    header = {str(k): str(v) for k, v in (metadata or {}).items()}
    flat = isinstance(obj, dict) and all(isinstance(v, Tensor) and isinstance(k, str) for k, v in obj.items())
    if not flat:
        header[_TREE] = json.dumps(tree)
    entries = {name or "tensor": _entry(name, t) for name, t in tensors.items()}
    if not flat and "" in tensors:
        header[_TREE] = json.dumps({"tensor": "tensor"})
    write_atomically(f, serializer.save(entries, header or None))


def _entry(name: str, t: Tensor) -> np.ndarray[Any, Any]:
    if t.dtype.name not in _CODES.values():
        raise DTypeError(message("save", f"the format has no {t.dtype}", [("tensor", name)], "save real and imaginary parts"))
    array = t.detach().numpy_view()
    return np.ascontiguousarray(array).reshape(array.shape)


def load(f: str | os.PathLike[str], device: Any = None) -> Any:
    """Read a safetensors file: what `save` wrote, or from elsewhere a dict of tensors.

    Raises:
        ValueError: not a safetensors file, or one that is cut off or damaged; the message says which file and what is wrong
        OSError: the file cannot be read
    """
    import safetensors

    with open(f, "rb") as file:
        data = file.read()
    try:
        header = _header(data)
        entries = safetensors.deserialize(data)
    except (safetensors.SafetensorError, ValueError, KeyError) as error:
        raise FileFormatError(message("load", f"{os.fspath(f)} {_what_is(data, error)}", hint="a file written by genesis.save")) from None
    tensors = {name: _tensor(name, entry) for name, entry in entries}
    if device is not None:
        tensors = {name: t.to(device=device) for name, t in tensors.items()}  # type: ignore[attr-defined]
    return _restore(json.loads(header[_TREE]), tensors) if _TREE in header else tensors


def _tensor(name: str, entry: dict[str, Any]) -> Tensor:
    kind = _CODES.get(entry["dtype"])
    if kind is None:
        raise FileFormatError(message("load", f"tensor {name!r} has dtype {entry['dtype']}, which Genesis does not have"))
    array = np.frombuffer(bytearray(entry["data"]), dtypes.as_np(kind))
    return wrap(array.reshape(entry["shape"]))


def _header(data: bytes) -> dict[str, str]:
    """The metadata of a file's header: 8 bytes of length, then JSON."""
    if len(data) < 8:
        raise ValueError("too short")
    size = int.from_bytes(data[:8], "little")
    if size > len(data) - 8:
        raise ValueError("the header is longer than the file")
    found = json.loads(data[8 : 8 + size])
    if not isinstance(found, dict):
        raise ValueError("the header is no JSON object")
    return found.get("__metadata__") or {}


def _what_is(data: bytes, error: Exception) -> str:
    """What a file that is not a whole safetensors file looks like."""
    if not data:
        return "is empty"
    for start, kind in ((b"PK\x03\x04", "a zip archive (a PyTorch checkpoint?)"), (b"\x80", "a pickle, which is never loaded"),
                        (b"\x93NUMPY", "a NumPy file"), (b"{", "a text file"), (b"\x89HDF", "an HDF5 file")):  # fmt: skip
        if data.startswith(start) and int.from_bytes(data[:8].ljust(8, b"\0"), "little") > len(data):
            return f"is not a safetensors file, it looks like {kind}"
    if len(data) > 8 and data[8:9] == b"{":
        return f"is a safetensors file that is cut off or damaged: {error}"
    return f"is not a safetensors file: {error}"
