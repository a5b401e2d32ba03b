"""Values of Python between processes: what JSON can say, tuples, sets, bytes, arrays and tensors. Nothing is pickled, so
what comes from another process is data and never runs.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.base import dtypes
from genesis.base.errors import ArgumentError, ArgumentValueError, message
from genesis.core.graph.tensor import Tensor, wrap
from genesis.distributed import collectives, messages, movement
from genesis.distributed.groups import group_of
from genesis.distributed.memory import Memory

_HEAD = 8  # bytes that say how long the JSON text is
_PLAIN = "?biufcSUmM"  # kinds of NumPy's dtypes whose elements are no objects
_SENT = "what JSON can say, tuples, sets, bytes, arrays and tensors"
_KINDS = {"L": list, "P": tuple, "S": set, "F": frozenset}  # of several values
_LETTERS = {kind: letter for letter, kind in _KINDS.items()}


def encode(name: str, value: Any) -> np.ndarray[Any, Any]:
    """Bytes of a value: how long the JSON text is, the text, the bytes of tensors.

    Raises:
        TypeError: something in it that is neither JSON-able, a tuple, a set, bytes, an array nor a tensor
    """
    parts: list[bytes] = []

    def said(each: Any) -> Any:
        if each is None or each.__class__ in (bool, int, float, str):
            return each
        if isinstance(each, Tensor):
            host = Memory(name, each).host
            parts.append(host.tobytes())
            return ["T", str(each.dtype).rpartition(".")[2], list(host.shape), host.nbytes]
        if each.__class__ is bytes:
            parts.append(each)
            return ["B", len(each)]
        if each.__class__ in _LETTERS:
            return [_LETTERS[each.__class__], [said(one) for one in each]]
        if isinstance(each, dict):
            return ["D", [[said(key), said(one)] for key, one in each.items()]]
        if isinstance(each, np.ndarray | np.generic) and each.dtype.kind in _PLAIN:
            parts.append(each.tobytes())
            return ["A", isinstance(each, np.generic), each.dtype.str, list(each.shape), each.nbytes]
        text = f"cannot send {type(each).__name__}: values are {_SENT}"
        raise ArgumentError(message(name, text, hint="send its state_dict(), or numbers and strings it is made from"))

    text = json.dumps(said(value)).encode()
    return np.frombuffer(b"".join([len(text).to_bytes(_HEAD, "little"), text, *parts]), np.uint8)


def decode(data: np.ndarray[Any, Any]) -> Any:
    """The value of bytes that `encode` made.

    >>> import genesis
    >>> decode(encode("example", {"a": (1, 2.5), "t": genesis.ones(2)}))
    {'a': (1, 2.5), 't': tensor([1., 1.])}
    """
    raw = data.tobytes()
    at = _HEAD + int.from_bytes(raw[:_HEAD], "little")

    def taken(count: int) -> bytes:
        nonlocal at
        at += count
        return raw[at - count : at]

    def read(each: Any) -> Any:
        if each.__class__ is not list:
            return each
        kind = each[0]
        if kind == "T":
            array = np.frombuffer(taken(each[3]), dtypes.as_np(each[1])).reshape(each[2])
            return wrap(array.copy())
        if kind == "A":
            array = np.frombuffer(taken(each[4]), each[2]).reshape(each[3]).copy()
            return array[()] if each[1] else array
        if kind == "B":
            return taken(each[1])
        if kind == "D":
            return {read(key): read(one) for key, one in each[1]}
        return _KINDS[kind]([read(one) for one in each[1]])

    return read(json.loads(raw[_HEAD:at]))


def _sizes(data: np.ndarray[Any, Any], group: Any) -> list[int]:
    """How many bytes each rank has to say."""
    sizes = wrap(np.zeros(group_of("all_gather_object", group).engine.size, np.int64))
    movement.all_gather_into_tensor(sizes, wrap(np.array([data.size])), group)
    return [int(n) for n in sizes._array]


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """The entries of ``object_list``, one for each rank, become everybody's ``obj``.

    Raises:
        TypeError: it is neither JSON-able, a tuple, a set, bytes, an array nor a tensor, nor made of these

    >>> import genesis.distributed as dist
    >>> dist.init_process_group()
    >>> said = [None]; dist.all_gather_object(said, {"loss": 0.5}); said
    [{'loss': 0.5}]
    >>> dist.destroy_process_group()
    """
    data = encode("all_gather_object", obj)
    _check_length("all_gather_object", "object_list", object_list, group)
    sizes = _sizes(data, group)
    rows = wrap(np.zeros((len(sizes), max(sizes)), np.uint8))
    movement.all_gather_into_tensor(rows, wrap(_padded(data, max(sizes))), group)
    object_list[:] = [decode(row[:size]) for row, size in zip(rows._array, sizes, strict=True)]


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
) -> None:
    """The entries of the ``object_gather_list`` that one rank gives become everybody's ``obj``."""
    data, members = encode("gather_object", obj), group_of("gather_object", group)
    root = collectives.root_of("gather_object", members, dst, group_dst, "dst", default=0)
    if members.engine.rank == root:
        _check_length("gather_object", "object_gather_list", object_gather_list, group)
    sizes = _sizes(data, group)
    rows = [wrap(np.zeros(max(sizes), np.uint8)) for _ in sizes] if members.engine.rank == root else None
    movement.gather(wrap(_padded(data, max(sizes))), rows, group=group, group_dst=root)
    if rows is not None and object_gather_list is not None:
        object_gather_list[:] = [decode(row._array[:size]) for row, size in zip(rows, sizes, strict=True)]


def broadcast_object_list(
    object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None, group_src: int | None = None
) -> None:
    """The entries of ``object_list`` become those of one rank.

    Args:
        src: the rank in the world, 0 by default; or ``group_src``, the rank in the group
        device: accepted for PyTorch's sake

    >>> import genesis.distributed as dist
    >>> dist.init_process_group()
    >>> seeds = [7]; dist.broadcast_object_list(seeds, src=0); seeds
    [7]
    >>> dist.destroy_process_group()
    """
    name = "broadcast_object_list"
    members = group_of(name, group)
    root = collectives.root_of(name, members, src, group_src, "src", default=0)
    here = members.engine.rank == root
    data = encode(name, list(object_list)) if here else np.zeros(0, np.uint8)
    size = wrap(np.array([data.size]))
    movement.broadcast(size, group=group, group_src=root)
    came = wrap(data.copy() if here else np.empty(int(size._array[0]), np.uint8))
    movement.broadcast(came, group=group, group_src=root)
    if not here:
        object_list[:] = decode(came._array)


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
) -> None:
    """The first entry of ``scatter_object_output_list`` becomes the one for this rank in the list that one rank gives."""
    name = "scatter_object_list"
    members = group_of(name, group)
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ArgumentValueError(
            message(name, "scatter_object_output_list must be a list with an entry", hint="[None]")
        )
    root = collectives.root_of(name, members, src, group_src, "src", default=0)
    rows, sizes = None, np.zeros(1, np.int64)
    if members.engine.rank == root:
        _check_length(name, "scatter_object_input_list", scatter_object_input_list, group)
        encoded = [encode(name, each) for each in scatter_object_input_list or ()]
        longest = max([each.size for each in encoded])
        rows, sizes = [wrap(_padded(each, longest)) for each in encoded], np.array([longest])
    size = wrap(sizes)
    movement.broadcast(size, group=group, group_src=root)
    came = wrap(np.zeros(int(size._array[0]), np.uint8))
    movement.scatter(came, rows, group=group, group_src=root)
    scatter_object_output_list[0] = decode(came._array)


def send_object_list(
    object_list: Sequence[Any],
    dst: int | None = None,
    group: Any = None,
    device: Any = None,
    group_dst: int | None = None,
    use_batch: bool = False,
) -> None:
    """Send values to a rank, which calls `recv_object_list`."""
    data = encode("send_object_list", list(object_list))
    works = [messages.isend(wrap(each), dst, group, group_dst=group_dst) for each in (np.array([data.size]), data)]
    for work in works:
        work.wait()


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> int:
    """The entries of ``object_list`` become those that a rank sends; returns the rank in the world."""
    size = wrap(np.zeros(1, np.int64))
    source = messages.recv(size, src, group, group_src=group_src)
    data = wrap(np.zeros(int(size._array[0]), np.uint8))
    messages.recv(data, source, group)
    object_list[:] = decode(data._array)
    return source


def _padded(data: np.ndarray[Any, Any], length: int) -> np.ndarray[Any, Any]:
    return np.concatenate([data, np.zeros(length - data.size, np.uint8)])


def _check_length(name: str, what: str, given: Any, group: Any) -> None:
    size = group_of(name, group).engine.size
    if not isinstance(given, list) or len(given) != size:
        have = len(given) if isinstance(given, list) else type(given).__name__
        raise ArgumentValueError(
            message(name, f"{what} is {have}, expected a list of {size}", hint="[None] * world size")
        )
