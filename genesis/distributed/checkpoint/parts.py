"""Nested state as named tensors and a description in JSON, and back."""

from __future__ import annotations

import functools
import math
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from genesis.base.errors import ShapeError, UnsupportedError, message
from genesis.base.late import Late
from genesis.core.graph.tensor import Tensor
from genesis.distributed.sharded import DTensor, Layout

_structure, _blocks = Late("genesis.io.structure"), Late("genesis.io.blocks")
Host = np.ndarray[Any, Any]
_SCALARS = {bool, int, float, str, type(None)}


@runtime_checkable
class Stateful(Protocol):
    """What has a state of its own: modules, optimizers, schedulers, loaders, and classes of a program.

    >>> import genesis
    >>> isinstance(genesis.nn.Linear(1, 1), Stateful), isinstance({}, Stateful)
    (True, False)
    """

    def state_dict(self) -> dict[str, Any]:
        """The state: tensors, numbers, strings, and containers of them."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> Any:
        """Go back to a state that `state_dict` gave."""


@runtime_checkable
class InParts(Protocol):
    """What is `Stateful`, and of whose state each rank has some tensors only."""

    def state_in_parts(self) -> dict[str, Any]:
        """The state of all ranks, each tensor as the `Part` that this one has; all ranks call it."""


@runtime_checkable
class _HasBuffers(Protocol):
    def named_buffers(self) -> Any: ...


class Part:
    """Some elements of a tensor of which each rank has others: ``tensor`` is elements ``begin``, ``begin + 1``, ... of
    the whole one, of shape ``shape``, in C order.

    A rank saves its parts and loads them, whatever the parts were when they were saved.

    Raises:
        RuntimeError: it is not within the whole tensor

    >>> import genesis
    >>> Part(genesis.ones(3), (2, 4), 2)
    <elements 2 to 4 of [2, 4]>
    """

    __slots__ = ("begin", "layout", "shape", "tensor")

    def __init__(self, tensor: Tensor, shape: Any, begin: int, layout: Layout | None = None) -> None:
        self.tensor, self.shape, self.begin = tensor, tuple(int(n) for n in shape), int(begin)
        self.layout = layout  # of the whole, where the part is that of a `DTensor`
        if not 0 <= self.begin <= self.end <= math.prod(self.shape):
            text = f"elements {self.begin} to {self.end - 1} are not within a tensor of shape {list(self.shape)}"
            raise ShapeError(message("Part", text))

    @property
    def end(self) -> int:
        """The element after its last."""
        return self.begin + self.tensor.numel()

    def __repr__(self) -> str:
        return f"<elements {self.begin} to {self.end - 1} of {list(self.shape)}>"


def rows_of(value: Tensor) -> Part:
    """The part that a rank has of a sharded tensor.

    Raises:
        NotImplementedError: it is no row of it
    """
    rest = tuple(value.shape[1:])
    at = value._sharding
    if at.dim or at.within is not None:
        what = f"a tensor that is divided along dimension {at.dim}" if at.dim else "rows of a part of a tensor"
        text = f"{what}, and parts of a snapshot are rows"
        raise UnsupportedError(message("save", text, hint="value.full_tensor()"))
    return Part(value.to_local(), value.shape, at.begin * math.prod(rest), value._layout)  # type: ignore[attr-defined]


class Piece(NamedTuple):
    """A tensor that is to be saved, or the part of it that is here."""

    value: Any  # a tensor, or an array or number of NumPy's
    shape: tuple[int, ...]
    begin: int
    whole: bool
    buffer: bool  # ranks may have other values: those of the first count, as in DistributedDataParallel
    layout: Layout | None = None  # of the whole, where this is the part of a `DTensor`

    def host(self) -> Host:
        """Its elements, one after the other."""
        return np.ascontiguousarray(_blocks.array_of(self.value)).reshape(-1)  # type: ignore[no-any-return]


def described(state: Any) -> tuple[Any, dict[str, Piece]]:
    """The description of a state, and its tensors by the names that it uses.

    Raises:
        TypeError: something that cannot be saved
    """
    parts: dict[int, Part] = {}
    buffers: set[int] = set()
    writer = _structure.Writer()
    tree = writer.node(_plain(state, parts, buffers))
    pieces = {}
    for name, value in writer.tensors.items():
        part = parts.get(id(value))
        shape = tuple(value.shape) if part is None else part.shape
        begin, layout = (0, None) if part is None else (part.begin, part.layout)
        pieces[name] = Piece(value, shape, begin, part is None, id(value) in buffers, layout)
    return tree, pieces


def _plain(value: Any, parts: dict[int, Part], buffers: set[int]) -> Any:
    """The same, with states in place of objects that have them."""
    if value.__class__ in _SCALARS:
        return value
    if isinstance(value, Tensor):
        at = value._sharding
        if at is not None and (at.dim or at.within is not None):
            return value.full_tensor()  # type: ignore[attr-defined]
        if at is not None:
            part = rows_of(value)
            parts[id(part.tensor)] = part
            return part.tensor
        return value.full_tensor() if isinstance(value, DTensor) else value
    if isinstance(value, Part):
        parts[id(value.tensor)] = value
        return value.tensor
    if value.__class__ is dict or isinstance(value, Mapping):
        filled: dict[Any, Any] = OrderedDict() if isinstance(value, OrderedDict) else {}
        filled.update({key: _plain(each, parts, buffers) for key, each in value.items()})
        if getattr(value, "_metadata", None) is not None:
            filled._metadata = value._metadata  # type: ignore[attr-defined]
        return filled
    if value.__class__ in (list, tuple):
        return value.__class__([_plain(each, parts, buffers) for each in value])
    if _has(value.__class__, Stateful) or isinstance(value, Stateful):
        own = value.state_in_parts() if _has(value.__class__, InParts) else value.state_dict()
        if _has(value.__class__, _HasBuffers):
            buffers.update([id(own[name]) for name, _ in value.named_buffers() if name in own])
        return _plain(own, parts, buffers)
    return value


@functools.lru_cache(256)
def _has(kind: type, protocol: Any) -> bool:
    """Whether instances of a class have the methods of a protocol; to ask ``isinstance`` takes 30 us each time."""
    return issubclass(kind, protocol)


def rebuilt(tree: Any, tensor: Callable[[str], Any]) -> Any:
    """The state of a description; ``tensor`` gives what a name stands for."""

    def of_node(node: dict[str, Any]) -> Any:
        value = tensor(node["tensor"])
        if node.get("is") in ("ndarray", "scalar") and isinstance(value, Tensor):
            array = value.numpy()
            return array if node["is"] == "ndarray" else array.reshape(-1)[0]
        return value

    return _structure.Reader(of_node).value(tree)


def entries(tree: Any) -> dict[Any, Any]:
    """The descriptions of the values of a dict that is described."""
    kind = next(iter(tree)) if isinstance(tree, dict) and tree else ""
    return dict(tree[kind]) if kind in ("dict", "ordered") else {}
