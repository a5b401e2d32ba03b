"""The safetensors format: eight bytes with the length of the header, the header in JSON, the tensors' bytes in order.

Written here are plain files wherever a flat dict of tensors is saved. What is more (nesting, numbers, parameters, devices,
shared memory, complex128 and complex32, which the format lacks) is described in the header, under `STRUCTURE`, and other readers see
the tensors alone.
"""

from __future__ import annotations

import json
import math
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import numpy as np

from genesis.arrays.stored import stored
from genesis.base import dtypes
from genesis.base.errors import ArgumentValueError, message
from genesis.core.graph.parameter import Parameter
from genesis.core.graph.tensor import Tensor, wrap
from genesis.io.blocks import Array, array_of, regions, short, strided
from genesis.io.source import Damaged, Source
from genesis.io.structure import Reader, Writer

CODES = {
    "BOOL": dtypes.bool,
    "U8": dtypes.uint8,
    "I8": dtypes.int8,
    "U16": dtypes.uint16,
    "I16": dtypes.int16,
    "U32": dtypes.uint32,
    "I32": dtypes.int32,
    "U64": dtypes.uint64,
    "I64": dtypes.int64,
    "F16": dtypes.float16,
    "BF16": dtypes.bfloat16,
    "F32": dtypes.float32,
    "F64": dtypes.float64,
    "C64": dtypes.complex64,
    "F8_E4M3": dtypes.float8_e4m3fn,
    "F8_E4M3FNUZ": dtypes.float8_e4m3fnuz,
    "F8_E5M2": dtypes.float8_e5m2,
    "F8_E5M2FNUZ": dtypes.float8_e5m2fnuz,
    "F8_E8M0": dtypes.float8_e8m0fnu,
}
_PAIRS = {dtypes.complex128: "F64", dtypes.complex32: "F16"}  # which the format lacks
_CODE_OF = {kind: code for code, kind in CODES.items()} | _PAIRS
STRUCTURE = "genesis.structure"  # the reserved key of the header's metadata
METADATA = "__metadata__"  # the format's own reserved name
LARGEST_HEADER = 100_000_000  # bytes, as other readers have it


# ---- writing


def pieces(obj: Any, metadata: dict[str, str] | None = None, devices: bool = False) -> Iterator[Any]:
    """The bytes of a file, piece by piece; errors are raised before the first.

    Args:
        devices: the file says which tensors were not on the CPU
    """
    writer = Writer(devices)
    tree = writer.node(obj)
    names = list(writer.tensors)
    entries, extents = _entries(names, [array_of(writer.tensors[name]) for name in names])
    plain = _plain(obj, tree, names) and not extents
    notes = {str(k): str(v) for k, v in (metadata or {}).items()}
    _refuse_reserved([*entries, *(() if not isinstance(obj, dict) else obj)], notes)
    if not plain:
        notes[STRUCTURE] = json.dumps(
            {"ordered": None} if plain is None and not extents else _with_extents(tree, extents)
        )
    header = _header(entries, notes)
    return chain([header], (_little(block).reshape(-1).view(np.uint8).data for block in _in_order(entries.values())))


def _entries(names: list[str], arrays: list[Array]) -> tuple[dict[str, Array], dict[str, dict[str, Any]]]:
    """The blocks of memory to be written, by the names of their first tensors, and how to find the tensors that are
    parts of others.
    """
    entries: dict[str, Array] = {}
    extents: dict[str, dict[str, Any]] = {}
    stored: dict[int, str] = {}
    for name, region in sorted(
        zip(names, regions(arrays), strict=True), key=lambda pair: pair[1].block is not pair[1].array
    ):
        array, block = region.array, region.block
        home = stored.setdefault(id(block), name)
        alone = home == name and block is array
        if home == name:
            entries[name] = block
        if not alone or dtypes.from_numpy(array.dtype) in _PAIRS:
            extents[name] = {"tensor": home, "dtype": dtypes.from_numpy(array.dtype).name, "shape": list(array.shape),
                             "offset": region.offset, "strides": list(array.strides)}  # fmt: skip
    return {name: entries[name] for name in names if name in entries}, extents


def _plain(obj: Any, tree: Any, names: list[str]) -> bool | None:
    """Whether the dict of the file's tensors is what was saved; None if it is, but for being an OrderedDict."""
    if type(obj) not in (dict, OrderedDict) or list(obj) != names or getattr(obj, "_metadata", None) is not None:
        return False
    if any(list(node) != ["tensor"] for _, node in next(iter(tree.values()))):
        return False
    return True if type(obj) is dict else None


def _with_extents(node: Any, extents: dict[str, dict[str, Any]]) -> Any:
    """The description, with what it takes to find each tensor."""
    if isinstance(node, list):
        return [_with_extents(v, extents) for v in node]
    if not isinstance(node, dict):
        return node
    if "tensor" in node:
        return node | extents.get(node["tensor"], {})
    return {k: _with_extents(v, extents) for k, v in node.items()}


def _refuse_reserved(names: list[Any], notes: dict[str, str]) -> None:
    for name in (METADATA, STRUCTURE):
        if name in names or name in notes:
            raise ArgumentValueError(
                message("save", f"the name {name!r} is reserved, such a file could not be read", hint="another name")
            )


def _code(block: Array) -> tuple[str, list[int]]:
    kind = dtypes.from_numpy(block.dtype)
    return _CODE_OF[kind], [*block.shape, 2] if kind in _PAIRS else list(block.shape)


def _in_order(blocks: Any) -> list[Array]:
    # so that all are aligned
    return sorted(blocks, key=lambda block: -(8 if block.dtype.itemsize == 16 else block.dtype.itemsize))


def _header(entries: dict[str, Array], notes: dict[str, str]) -> bytes:
    position, starts = 0, {}
    for block in _in_order(entries.values()):
        starts[id(block)] = position
        position += block.nbytes
    table: dict[str, Any] = {METADATA: notes} if notes else {}
    for name, block in entries.items():
        code, shape = _code(block)
        start = starts[id(block)]
        table[name] = {"dtype": code, "shape": shape, "data_offsets": [start, start + block.nbytes]}
    text = json.dumps(table, separators=(",", ":"), ensure_ascii=False).encode(errors="replace")
    text += b" " * (-len(text) % 8)
    if len(text) > LARGEST_HEADER:
        raise ArgumentValueError(
            message(
                "save", f"the header has {len(text)} bytes, the format allows {LARGEST_HEADER}", hint='format="torch"'
            )
        )
    return len(text).to_bytes(8, "little") + text


def _little(array: Array) -> Array:
    return array if np.little_endian or array.itemsize == 1 else array.byteswap()


# ---- reading


def looks_like(source: Source) -> bool:
    """Whether a file begins as one of this format does."""
    start = source.read(0, min(source.size, 9))
    return len(start) == 9 and start[8:] == b"{" and int.from_bytes(start[:8], "little") <= LARGEST_HEADER


def read(source: Source, put: Callable[[Tensor, str], Tensor]) -> Any:
    """The value in a file; ``put`` moves tensors to their devices, called with the name of the one that each was on.

    Raises:
        Damaged: anything that this format does not allow
    """
    header, start = _parse(source)
    notes = header.pop(METADATA, {})
    if not isinstance(notes, dict) or not all(isinstance(v, str) for v in notes.values()):
        raise Damaged("is damaged: its metadata are not strings")
    blocks = {name: _block(source, start, name, entry) for name, entry in _checked(header, source.size - start)}
    blocks = {name: blocks[name] for name in header}
    if STRUCTURE in notes:
        tree = _json(notes[STRUCTURE], "the description of its structure")
        if tree != {"ordered": None}:
            return _structured(tree, blocks, put)
    tensors = {name: put(wrap(stored(array)), "cpu") for name, array in blocks.items()}
    return OrderedDict(tensors) if STRUCTURE in notes else tensors


def _structured(tree: Any, blocks: dict[str, Array], put: Callable[[Tensor, str], Tensor]) -> Any:
    def tensor(node: dict[str, Any]) -> Any:
        name = node["tensor"]
        if not isinstance(name, str) or name not in blocks:
            raise Damaged(f"is damaged: it lacks the tensor {str(name)[:60]!r}")
        array = _view(blocks[name], node) if "shape" in node else blocks[name]
        if node.get("is") in ("ndarray", "scalar"):
            return array if node["is"] == "ndarray" else array.reshape(-1)[0] if array.size == 1 else _no(node)
        location = node.get("device", "cpu")
        if not isinstance(location, str):
            raise Damaged(f"is damaged: {name[:60]!r} is on the device {short(location)}")
        out = put(wrap(stored(array)), location)
        wants = node.get("requires_grad") is True
        if wants and not (out.is_floating_point() or out.is_complex()):
            raise Damaged(f"is damaged: {name[:60]!r} is of an integer dtype and requires grad")
        if node.get("is") == "Parameter":
            return Parameter(out, wants)
        return out.requires_grad_() if wants else out

    try:
        return Reader(tensor).value(tree)
    except RecursionError:
        raise Damaged("is damaged: the description of its structure is nested too deep") from None


def _no(node: dict[str, Any]) -> Any:
    raise Damaged(f"is damaged: {str(node['tensor'])[:60]!r} is not a scalar")


def _view(block: Array, node: dict[str, Any]) -> Array:
    kind = node.get("dtype")
    if not isinstance(kind, str) or kind not in {d.name for d in (*dtypes.ALL, *dtypes.STORED)}:
        raise Damaged(f"is damaged: {short(kind)} is not a dtype")
    memory = block.reshape(-1).view(np.uint8)
    return strided(memory, dtypes.as_np(kind), node.get("offset", 0), node["shape"], node.get("strides"))


def _parse(source: Source) -> tuple[dict[str, Any], int]:
    if source.size < 8:
        raise Damaged("is empty" if not source.size else "is cut off: it has fewer than 8 bytes")
    size = int.from_bytes(source.read(0, 8), "little")
    if size > LARGEST_HEADER:
        raise Damaged(f"is not a safetensors file, or damaged: its header would have {size} bytes")
    if size > source.size - 8:
        raise Damaged(
            f"is a safetensors file that is cut off or damaged: its header has {size} bytes, {source.size - 8} are "
            "there"
        )
    try:
        text = source.read(8, size).decode()
    except UnicodeDecodeError:
        raise Damaged("is a safetensors file that is damaged: its header is not UTF-8") from None
    header = _json(text, "its header")
    if not isinstance(header, dict):
        raise Damaged("is damaged: its header is no JSON object")
    return header, 8 + size


def _json(text: str, what: str) -> Any:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for name, value in pairs:
            if name in out:
                raise Damaged(f"is damaged: {name[:60]!r} is there twice")
            out[name] = value
        return out

    try:
        return json.loads(text, object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        problem = "nested too deep" if isinstance(error, RecursionError) else str(error)[:200]
        raise Damaged(f"is a safetensors file that is cut off or damaged: {what} is no JSON: {problem}") from None


def _checked(header: dict[str, Any], size: int) -> list[tuple[str, tuple[dtypes.dtype, list[int], int]]]:
    """dtype, shape and position of each tensor: they must follow each other without a gap, from the first byte to the
    last.
    """
    rows = []
    for name, entry in header.items():
        if not isinstance(entry, dict) or not {"dtype", "shape", "data_offsets"} <= entry.keys():
            raise Damaged(f"is damaged: the entry of tensor {name[:60]!r} is not complete")
        code, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
        if not isinstance(code, str) or code not in CODES:
            raise Damaged(
                f"cannot be read: tensor {name[:60]!r} has dtype {_printable(code)}, which Genesis does not have"
            )
        numbers = (
            [*shape, *offsets] if isinstance(shape, list) and isinstance(offsets, list) and len(offsets) == 2 else [-1]
        )
        if any(type(n) is not int or not 0 <= n < 1 << 62 for n in numbers) or len(shape) > 64:
            raise Damaged(f"is damaged: tensor {name[:60]!r} has shape {short(shape)} and offsets {short(offsets)}")
        if math.prod(shape) * CODES[code].itemsize != offsets[1] - offsets[0]:
            raise Damaged(
                f"is damaged: tensor {name[:60]!r} of shape {short(shape)} does not fill bytes {offsets[0]} to "
                f"{offsets[1]}"
            )
        rows.append((offsets, name, CODES[code], shape))
    position = 0
    for offsets, name, _, _ in sorted(rows, key=lambda row: row[0]):
        if offsets[0] != position:
            raise Damaged(f"is damaged: tensor {name[:60]!r} begins at byte {offsets[0]}, {position} was expected")
        position = offsets[1]
    if position != size:
        raise Damaged(f"is cut off or damaged: its tensors have {position} bytes, {size} are there")
    return [(name, (kind, shape, offsets[0])) for offsets, name, kind, shape in rows]


def _block(source: Source, start: int, name: str, entry: tuple[dtypes.dtype, list[int], int]) -> Array:
    kind, shape, offset = entry
    memory = source.array(start + offset, math.prod(shape) * kind.itemsize, kind.np.alignment)
    array = strided(memory, kind.np, 0, shape)
    return array if np.little_endian or kind.itemsize == 1 else array.byteswap(inplace=True)


def _printable(code: Any) -> str:
    return re.sub(r"[^\x20-\x7e]", "?", code[:40]) if isinstance(code, str) else short(code)
