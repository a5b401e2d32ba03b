"""Nested values as JSON, their tensors by name: what the header of a safetensors file says about its tensors' places.

A node is an object of one kind: ``{"tensor": name}``, ``{"value": 3}``, ``{"list": [...]}``, ``{"dict": [[key, node],
...]}`` and so on.
"""

from __future__ import annotations

import base64
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from genesis.base import dtypes
from genesis.base.device import device
from genesis.base.errors import ArgumentError, ArgumentValueError, message
from genesis.core.graph.parameter import Parameter
from genesis.core.graph.size import Size
from genesis.core.graph.tensor import Tensor
from genesis.io.source import Damaged

DEPTH = 100  # of values that are saved: a level takes four frames
_LARGE = 1 << 13  # bits of integers, which are read from decimal digits
_JSON = {bool, str, float, type(None)}
_ARRAYS = Tensor, np.ndarray, np.generic


class Writer:
    """Describes values; ``tensors`` collects tensors and NumPy values by the names that the description uses.

    Args:
        devices: say of tensors that are not on the CPU where they are
    """

    def __init__(self, devices: bool = False) -> None:
        self.tensors: dict[str, Any] = {}
        self._devices = devices

    def node(self, value: Any, path: str = "", depth: int = 0) -> Any:
        """The description of a value.

        Raises:
            TypeError: something that cannot be saved
            ValueError: containers in one another too deep, or in themselves
        """
        if value.__class__ in _JSON:
            return {"value": value}
        if isinstance(value, _ARRAYS):
            return self._tensor(value, path)
        if isinstance(value, str):
            return {"value": value}
        if depth > DEPTH:
            raise ArgumentValueError(
                message(
                    "save",
                    f"containers are nested deeper than {DEPTH}, or one contains itself",
                    [("at", path[:60] + "...")],
                )
            )
        scalar = _scalar(value, path)
        return scalar if scalar is not None else self._container(value, path, depth)

    def _tensor(self, value: Any, path: str) -> Any:
        name = _utf8(path) or "tensor"
        while name in self.tensors:  # the key "a.b" beside {"a": {"b": ...}}
            name += "'"
        self.tensors[name] = value
        node: dict[str, Any] = {"tensor": name}
        if not isinstance(value, Tensor):
            node["is"] = "ndarray" if isinstance(value, np.ndarray) else "scalar"
        elif isinstance(value, Parameter):
            node["is"] = "Parameter"
        if isinstance(value, Tensor) and value.requires_grad:
            node["requires_grad"] = True
        if self._devices and isinstance(value, Tensor) and value.device.type != "cpu":
            node["device"] = str(value.device)
        return node

    def _inner(self, named: Iterable[tuple[Any, Any]], path: str, depth: int) -> list[Any]:
        nodes = []
        for name, value in named:
            nodes.append(self.node(value, f"{path}.{name}" if path else str(name), depth + 1))
        return nodes

    def _container(self, value: Any, path: str, depth: int) -> Any:
        if isinstance(value, dict):
            keys = [_key(k, path) for k in value]
            items = [[k, node] for k, node in zip(keys, self._inner(value.items(), path, depth), strict=True)]
            if not isinstance(value, OrderedDict):
                return {"dict": items}
            extra = getattr(value, "_metadata", None)  # of a module's state
            return {"ordered": items} | (
                {} if extra is None else {"metadata": self.node(extra, f"{path}._metadata", depth + 1)}
            )
        for kind in (list, tuple, set, frozenset):
            if isinstance(value, kind) and not hasattr(value, "_fields"):
                return {kind.__name__: self._inner(enumerate(value), path, depth)}
        hint = "tensors, NumPy values, numbers, strings, and lists, tuples, sets and dicts of them; of a module or an optimizer its state_dict()"
        raise ArgumentError(message("save", f"cannot save {type(value).__name__}", [("at", path or "the top")], hint))


def _scalar(value: Any, path: str) -> Any:
    if isinstance(value, dict):
        return None
    if isinstance(value, Size):
        return {"size": list(value)}
    if isinstance(value, int):
        if value.bit_length() > _LARGE:
            raise ArgumentValueError(
                message(
                    "save", f"the integer has {value.bit_length()} bits, at most {_LARGE} can be saved", [("at", path)]
                )
            )
        return {"value": int(value)}
    if isinstance(value, float):
        return {"value": float(value)}
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if isinstance(value, bytes | bytearray):
        return {type(value).__name__: base64.b64encode(value).decode()}
    if isinstance(value, dtypes.dtype | device):
        return {
            "dtype" if isinstance(value, dtypes.dtype) else "device": value.name
            if isinstance(value, dtypes.dtype)
            else str(value)
        }
    return None


def _key(key: Any, path: str) -> Any:
    if key is None or isinstance(key, (str, int, float)):  # noqa: UP038  (a union is made anew at each call)
        return key
    if isinstance(key, tuple):
        return {"tuple": [_key(k, path) for k in key]}
    problem = f"keys must be strings, numbers, None or tuples of them, got {type(key).__name__}"
    raise ArgumentError(message("save", problem, [("at", path or "the top")]))


def _utf8(name: str) -> str:
    return name if name.isascii() else name.encode("utf-8", "replace").decode()


class Reader:
    """Builds values out of their description; ``tensor`` gives the tensor of a node.

    Raises:
        Damaged: a description that `Writer` does not write
    """

    def __init__(self, tensor: Callable[[dict[str, Any]], Any]) -> None:
        self._tensor = tensor
        self._depth = 0

    def value(self, node: Any) -> Any:
        self._depth += 1
        if self._depth > 2 * DEPTH:  # whatever Python's limit is by now: other packages raise it
            raise RecursionError
        try:
            return self._value(node)
        finally:
            self._depth -= 1

    def _value(self, node: Any) -> Any:
        if not isinstance(node, dict) or not node:
            raise Damaged("has a damaged description of its structure")
        kind, content = next(iter(node.items()))
        if kind == "tensor":
            return self._tensor(node)
        if kind == "value" and (content is None or isinstance(content, str | int | float)):
            return content
        if kind in ("dict", "ordered") and isinstance(content, list):
            return self._mapping(kind, content, node)
        if kind in _SEQUENCES and isinstance(content, list):
            return self._sequence(kind, content)
        if kind in _SCALARS:
            try:
                return _SCALARS[kind](content)
            except (ValueError, TypeError, RuntimeError, LookupError, OverflowError):
                pass
        raise Damaged(f"has a damaged description of its structure, at {str(kind)[:40]!r}")

    def _mapping(self, kind: str, content: list[Any], node: dict[str, Any]) -> Any:
        out: Any = {} if kind == "dict" else OrderedDict()
        for pair in content:
            if not isinstance(pair, list) or len(pair) != 2:
                raise Damaged("has a damaged description of its structure, in a dict")
            key = _read_key(pair[0])
            if key in out:
                raise Damaged(f"has the key {str(key)[:60]!r} twice")
            out[key] = self.value(pair[1])
        if "metadata" in node and kind == "ordered":
            out._metadata = self.value(node["metadata"])
        return out

    def _sequence(self, kind: str, content: list[Any]) -> Any:
        parts = [self.value(v) for v in content]
        if kind in ("set", "frozenset") and any(isinstance(p, list | dict | set | Tensor) for p in parts):
            raise Damaged("has a set of things that sets cannot hold")
        try:
            return _SEQUENCES[kind](parts)
        except TypeError:
            raise Damaged("has a set of things that sets cannot hold") from None


def _read_key(key: Any, depth: int = 0) -> Any:
    if key is None or isinstance(key, str | int | float):
        return key
    if isinstance(key, dict) and list(key) == ["tuple"] and isinstance(key["tuple"], list) and depth < 10:
        return tuple(_read_key(k, depth + 1) for k in key["tuple"])
    raise Damaged("has a key of a kind that dicts cannot have")


_SEQUENCES: dict[str, Any] = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}
_SCALARS: dict[str, Callable[[Any], Any]] = {
    "complex": lambda c: complex(*map(float, c)),
    "bytes": lambda c: base64.b64decode(c, validate=True),
    "bytearray": lambda c: bytearray(base64.b64decode(c, validate=True)),
    "size": lambda c: Size(map(int, c)),
    "device": lambda c: device(c),
    "dtype": lambda c: dtypes._BY_NAME[c],
}
