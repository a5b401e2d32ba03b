"""`load`: a snapshot of any number of ranks, by any number of ranks."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from genesis.base import dtypes
from genesis.base.errors import FileFormatError, message
from genesis.base.late import Late
from genesis.core.graph.modes import no_grad
from genesis.core.graph.tensor import Tensor, wrap
from genesis.distributed.checkpoint.manifest import CheckpointException, Damaged, Manifest, folder_of, read, verify
from genesis.distributed.checkpoint.parts import Host, InParts, Part, Stateful, described, entries, rebuilt, rows_of
from genesis.distributed.groups import GroupMember, group_of
from genesis.distributed.sharded import DTensor, own_part

_files, _dtensor = Late("genesis.io.files"), Late("genesis.distributed.tensor.dtensor")
_SHOWN = 5  # differences that an error lists


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: Any = None,
    storage_reader: Any = None,
    planner: Any = None,
    process_group: Any = None,
    no_dist: bool = False,
) -> None:
    """Fill a state with what a snapshot has under its names.

    Tensors are written into, what is `Stateful` gets its state, other values are replaced in ``state_dict``. All is
    compared before anything is changed. The number of ranks may be another than when it was saved: `Part` takes the
    elements that it needs. Values that differed between ranks are given back to the same ranks; to another number of
    ranks all get those of rank 0.

    Args:
        checkpoint_id: the folder; or ``storage_reader``, a `FileSystemReader`
        process_group: the ranks; no_dist: this process alone
        planner: accepted for PyTorch's sake

    Raises:
        RuntimeError: there is no snapshot, or it is torn, of another version, or of another model: what differs is listed
    """
    folder = folder_of("load", checkpoint_id, storage_reader)
    manifest = read(folder)
    verify(folder, manifest)
    fill(state_dict, folder, manifest, *rank_and_size(process_group, no_dist))


def whole(folder: Path) -> Any:
    """All that a snapshot holds, whoever saved it: containers, numbers, and whole tensors. Of what differed between ranks that
    of rank 0.

    Raises:
        RuntimeError: there is no snapshot, or it is torn, or of another version
    """
    manifest = read(folder)
    verify(folder, manifest)
    return rebuilt(manifest.tree(0, 1), _Reader(folder, manifest).tensor)


def rank_and_size(group: Any, alone: bool) -> tuple[int, int]:
    """Of this process in a group; of a world of one where there is none."""
    if alone or (group is None and GroupMember.WORLD is None):
        return 0, 1
    members = group_of("load", group)
    return members.rank(), members.size()


def fill(state: dict[str, Any], folder: Path, manifest: Manifest, rank: int, size: int) -> None:
    """Fill a state from a snapshot whose manifest was read."""
    saved = entries(manifest.tree(rank, size))
    _compare(state, folder, manifest, saved)
    reader = _Reader(folder, manifest)
    for key, value in state.items():
        loaded = _loaded(value, saved[key], reader, f"{key}")
        if loaded is not value:
            state[key] = loaded


def _loaded(value: Any, node: Any, reader: _Reader, name: str) -> Any:
    """What a value becomes."""
    if isinstance(value, Part):
        reader.into(value, node["tensor"])
        return value
    if isinstance(value, DTensor):
        at = value._sharding
        if at is not None and not at.dim and at.within is None:
            reader.into(rows_of(value), node["tensor"])
        else:
            own = reader.tensor(node["tensor"])
            with no_grad():
                value.to_local().copy_(own_part(own, value._layout).to_local())  # type: ignore[attr-defined]
        return value
    if isinstance(value, Tensor):
        with no_grad():
            value.copy_(reader.tensor(node["tensor"]))  # type: ignore[attr-defined]
        return value
    if isinstance(value, Stateful):
        here = {} if isinstance(value, InParts) else _parts_in(value.state_dict(), name)
        value.load_state_dict(rebuilt(node, lambda each: reader.tensor_or_part(each, here.get(each))))
        return value
    if isinstance(value, dict) and value:
        known = entries(node)
        for key, each in value.items():
            value[key] = _loaded(each, known[key], reader, f"{name}.{key}")
        return value
    return rebuilt(node, reader.tensor)


def _parts_in(state: Any, name: str) -> dict[str, Part]:
    _, pieces = described({name: state})
    return {
        key: Part(piece.value, piece.shape, piece.begin, piece.layout)
        for key, piece in pieces.items()
        if not piece.whole
    }


# ---- does it fit?


def _compare(state: dict[str, Any], folder: Path, manifest: Manifest, saved: dict[Any, Any]) -> None:
    """All names and shapes, before the first write.

    Raises:
        RuntimeError: the snapshot is of something else
    """
    tree, pieces = described(state)
    problems = [f"not in the snapshot: {key}" for key in state if key not in saved]
    problems += _missing_keys(entries(tree), saved, state, "") if not problems else []
    for name, piece in pieces.items():
        known = manifest.tensors.get(name)
        if known is None:
            problems.append(f"not in the snapshot: {name} {_look(piece.value.dtype, piece.shape)}")
        elif tuple(known["shape"]) != piece.shape:
            there = _look(known["dtype"], known["shape"])
            problems.append(f"another shape: {name} is {there} in the snapshot, {list(piece.shape)} here")
    problems += _unexpected(state, pieces, manifest)
    if problems:
        shown = "\n  ".join(dict.fromkeys(problems[:_SHOWN]))
        more = f"\n  and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        text = f"the snapshot in {folder} is of something else"
        raise CheckpointException(f"{message('load', text)}\n  {shown}{more}")


def _look(dtype: Any, shape: Any) -> str:
    return f"{getattr(dtype, 'name', dtype)}{list(shape)}"


def _missing_keys(own: dict[Any, Any], saved: dict[Any, Any], state: Any, path: str) -> list[str]:
    """Names of plain dicts that the snapshot does not have; objects find out for themselves."""
    out = []
    for key, value in state.items():
        if key not in saved:
            out.append(f"not in the snapshot: {path}{key}")
        elif isinstance(value, Tensor | Part) and "tensor" not in saved[key]:
            out.append(f"not a tensor in the snapshot: {path}{key}")
        elif isinstance(value, dict) and value:
            out += _missing_keys(entries(own[key]), entries(saved[key]), value, f"{path}{key}.")
    return out


def _unexpected(state: dict[str, Any], pieces: dict[str, Any], manifest: Manifest) -> list[str]:
    """Tensors of modules in the snapshot that the modules here do not have."""
    modules = [f"{key}." for key, value in state.items() if callable(getattr(value, "named_parameters", None))]
    return [
        f"only in the snapshot: {name} {_look(known['dtype'], known['shape'])}"
        for name, known in manifest.tensors.items()
        if name not in pieces and any([name.startswith(prefix) for prefix in modules])
    ]


# ---- the elements


class _Reader:
    """Tensors of a snapshot, put together from their pieces."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder, self.manifest = folder, manifest
        self._open: dict[str, dict[str, Tensor]] = {}

    def _piece(self, file: str, name: str) -> Host:
        if file not in self._open:
            try:
                self._open[file] = _files.load(self.folder / Path(file).name)
            except FileFormatError as error:
                raise Damaged(str(error)) from None
        return self._open[file][name]._array.reshape(-1)

    def elements(self, name: str, begin: int, out: Host) -> None:
        """Fill ``out`` with the elements from ``begin`` on."""
        end = begin + out.size
        for first, last, file, key in self.manifest.tensors[name]["pieces"]:
            low, high = max(begin, first), min(end, last)
            if low < high:
                out[low - begin : high - begin] = self._piece(file, key)[low - first : high - first]

    def tensor(self, name: str) -> Tensor:
        """A whole tensor, in memory of its own."""
        known = self.manifest.tensors[name]
        out = np.empty(math.prod(known["shape"]), dtypes.as_np(known["dtype"]))
        self.elements(name, 0, out)
        return wrap(out.reshape(known["shape"]))

    def into(self, part: Part, name: str) -> None:
        """The elements of a part, into its tensor."""
        out = np.empty(part.tensor.numel(), dtypes.as_np(self.manifest.tensors[name]["dtype"]))
        self.elements(name, part.begin, out)
        with no_grad():
            part.tensor.copy_(wrap(out.reshape(tuple(part.tensor.shape))))  # type: ignore[attr-defined]

    def tensor_or_part(self, name: str, part: Part | None) -> Any:
        """A whole tensor, or (in memory of its own) the part that an object has here."""
        if part is None:
            return self.tensor(name)
        out = np.empty(part.tensor.numel(), dtypes.as_np(self.manifest.tensors[name]["dtype"]))
        self.elements(name, part.begin, out)
        own = wrap(out.reshape(tuple(part.tensor.shape)))
        return Part(own, part.shape, part.begin) if part.layout is None else _dtensor.Distributed.of(own, part.layout)
