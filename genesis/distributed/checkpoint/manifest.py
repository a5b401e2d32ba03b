"""What a snapshot's folder says of itself: ``manifest.json``."""

from __future__ import annotations

import hashlib
import json
import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from genesis.base import dtypes
from genesis.base.errors import GenesisError, message
from genesis.base.late import Late
from genesis.kernels.llvm.crc import crc32

_atomic = Late("genesis.io.atomic")
NAME, PART = "manifest.json", ".part"
FORMAT, VERSION = "genesis.distributed.checkpoint", 2
_READ = 1 << 22  # bytes at a time


class CheckpointException(GenesisError, RuntimeError):  # noqa: N818  (PyTorch's name)
    """A snapshot that cannot be written, or that is not what it should be."""


class Damaged(CheckpointException):
    """A snapshot that is torn or damaged, or was never finished."""


@dataclass
class Manifest:
    """The content of a snapshot.

    Attributes:
        token: another one at each save
        files: for each file its ``bytes`` and ``crc32``
        tensors: for each name its ``dtype`` and ``shape``, and ``pieces``: the first element and the one after the
            last, the file, and the name within it
        trees: the description of the state, one for all ranks or one for each
    """

    token: str
    world_size: int
    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    tensors: dict[str, dict[str, Any]] = field(default_factory=dict)
    trees: list[Any] = field(default_factory=list)

    def tree(self, rank: int, size: int) -> Any:
        """The description for a rank: its own, where there are as many ranks as when it was saved."""
        own = len(self.trees) == size == self.world_size
        return self.trees[rank if own else 0]

    def write(self, folder: Path) -> None:
        """Put it in its place, atomically."""
        content = {
            "format": FORMAT, "version": VERSION, "token": self.token, "world_size": self.world_size,
            "files": self.files, "tensors": self.tensors, "trees": self.trees,
        }  # fmt: skip
        put(folder, NAME, json.dumps(content | {"sha256": _digest(content)}), self.token, durable=True)


def read(folder: Path, what: str = "load") -> Manifest:
    """The manifest of a folder, whose files are there and as long as they should be.

    Raises:
        RuntimeError: there is none, or it is torn, of another version, or its files are not there
    """
    content = _content(folder, what)
    try:
        made = Manifest(*[content[name] for name in ("token", "world_size", "files", "tensors", "trees")])
        for file, known in made.files.items():
            _check_size(folder / Path(file).name, known["bytes"], what)
        for tensor in made.tensors.values():
            _check_tensor(tensor, made.files)
    except (KeyError, TypeError, AttributeError, IndexError, ValueError):
        raise Damaged(message(what, f"{folder / NAME} is damaged", hint=_HINT)) from None
    return made


_HINT = "an older snapshot"


def _content(folder: Path, what: str) -> dict[str, Any]:
    path = folder / NAME
    try:
        text = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise Damaged(message(what, f"there is no snapshot in {folder}: it has no {NAME}")) from None
    try:
        content = json.loads(text)
        known = content.pop("sha256")
        if content["format"] != FORMAT or not isinstance(content["version"], int):
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        text = f"{path} is torn or damaged: it is no manifest"
        raise Damaged(message(what, text, hint=_HINT)) from None
    if content["version"] != VERSION:
        text = f"{path} is of version {content['version']}, this Genesis reads version {VERSION}"
        raise CheckpointException(message(what, text, hint="the Genesis that wrote it"))
    if _digest(content) != known:
        raise Damaged(message(what, f"{path} is torn or damaged: its own sha256 differs", hint=_HINT))
    return dict(content)


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def put(folder: Path, name: str, text: str, token: str, durable: bool = False) -> None:
    """Put a file in its place, whole; ``durable``: it is on the disk, too, when this returns.

    `genesis.io.atomic` asks the system four times as many questions: of links, owners and other writers, which a folder
    that one snapshot writes to does not raise.
    """
    written = f"{folder}/{name}.{token}{PART}"
    with open(written, "w") as file:
        file.write(text)
        if durable:
            file.flush()
            os.fsync(file.fileno())
    os.replace(written, f"{folder}/{name}")
    if durable:
        _atomic.sync(folder)


def _check_size(path: Path, size: int, what: str) -> None:
    try:
        have = path.stat().st_size
    except FileNotFoundError:
        raise Damaged(message(what, f"{path} is missing", hint=_HINT)) from None
    if have != size:
        raise Damaged(message(what, f"{path} is torn: it has {have} bytes, {size} were written", hint=_HINT))


def _check_tensor(tensor: dict[str, Any], files: dict[str, Any]) -> None:
    """Its pieces are all of its elements."""
    dtypes.as_np(tensor["dtype"])
    at = 0
    for begin, end, file, name in sorted(tensor["pieces"]):
        if begin > at or file not in files or not isinstance(name, str):
            raise ValueError
        at = max(at, end)
    if at != math.prod(tensor["shape"]):
        raise ValueError


def verify(folder: Path, manifest: Manifest, what: str = "load") -> None:
    """Read all files, and compare their checksums.

    Raises:
        RuntimeError: one of them differs
    """
    for name, known in manifest.files.items():
        crc = 0
        with open(folder / Path(name).name, "rb") as file:
            while piece := file.read(_READ):
                crc = crc32(piece, crc)
        if crc != known["crc32"]:
            text = f"{folder / name} is damaged: its crc32 is not the one of the manifest"
            raise Damaged(message(what, text, hint=_HINT))


def folder_of(name: str, checkpoint_id: Any, storage: Any) -> Path:
    """The folder that arguments name."""
    given = checkpoint_id if checkpoint_id is not None else getattr(storage, "path", storage)
    if not isinstance(given, str | os.PathLike):
        raise CheckpointException(message(name, "no folder is named", hint='checkpoint_id="folder"'))
    return Path(given)
