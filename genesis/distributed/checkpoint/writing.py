"""The files of one rank, and the commit: the manifest takes its place when all ranks have written."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from genesis.base import dtypes
from genesis.base.errors import message
from genesis.base.late import Late
from genesis.core.graph.tensor import wrap
from genesis.distributed.checkpoint.direct import File
from genesis.distributed.checkpoint.manifest import NAME, CheckpointException, Manifest, read
from genesis.distributed.checkpoint.parts import Host, Piece
from genesis.distributed.checkpoint.plan import Plan, joined

_atomic, _safetensors = Late("genesis.io.atomic"), Late("genesis.io.safetensors")
_LOOK = 0.002, 0.1  # seconds between looks whether the others are done: the first, the longest


def write(folder: Path, plan: Plan, hosts: Mapping[str, Host]) -> Manifest | None:
    """Write this rank's tensors, and wait until the snapshot is there; rank 0 returns its manifest.

    Raises:
        RuntimeError: a rank could not write; what was in the folder is there as before
    """
    try:
        said: dict[str, Any] = _said(folder, plan, hosts)
    except Exception as error:  # whatever it is, all ranks have to hear of it
        said = {"error": f"rank {plan.rank}: {_short(error)}"}
    if plan.size > 1:
        with contextlib.suppress(OSError):
            _atomic.write_atomically(folder / _note(plan, plan.rank), json.dumps(said).encode())
    if plan.rank:
        if "error" in said:
            raise _failed(folder, said["error"])
        _wait_for_the_end(folder, plan)
        return None
    notes = [said, *[_note_of(folder, plan, rank) for rank in range(1, plan.size)]]
    failed = next((note["error"] for note in notes if "error" in note), None)
    if failed is None:
        try:
            return _commit(folder, plan, notes)
        except OSError as error:
            failed = f"rank 0: {_short(error)}"
    if plan.size > 1:
        with contextlib.suppress(OSError):
            (folder / _end_note(plan)).write_text(json.dumps(failed))
    _clean(folder, keep=_end_note(plan))
    raise _failed(folder, failed)


def _said(folder: Path, plan: Plan, hosts: Mapping[str, Host]) -> dict[str, Any]:
    """What the others have to know of what was written."""
    folder.mkdir(parents=True, exist_ok=True)
    if not plan.mine:
        return {"tensors": {}}
    name = f"rank{plan.rank}-{plan.token}.safetensors"
    digest, size = _write_file(folder / name, hosts)
    tensors = {
        key: {"dtype": dtypes.from_numpy(hosts[key].dtype).name, "shape": list(piece.shape),
              "pieces": [[piece.begin, piece.begin + hosts[key].size, name, key]]}
        for key, piece in plan.mine.items()
    }  # fmt: skip
    return {"file": name, "bytes": size, "crc32": digest, "tensors": tensors}


def _write_file(path: Path, hosts: Mapping[str, Host]) -> tuple[int, int]:
    try:
        with File(path) as file:
            for piece in _safetensors.pieces({key: wrap(host) for key, host in hosts.items()}):
                file.write(piece)
            file.end()
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return file.crc32, file.size


def _commit(folder: Path, plan: Plan, notes: list[dict[str, Any]]) -> Manifest:
    manifest = Manifest(plan.token, plan.size, trees=joined(plan.trees))
    for note in notes:
        if "file" in note:
            manifest.files[note["file"]] = {"bytes": note["bytes"], "crc32": note["crc32"]}
        for name, entry in note["tensors"].items():
            known = manifest.tensors.setdefault(name, entry)
            if known is not entry:
                known["pieces"] += entry["pieces"]
    manifest.write(folder)
    _clean(folder)
    return manifest


def _clean(folder: Path, keep: str = "") -> None:
    """Remove what the manifest does not name: of older snapshots, and of writers that were killed."""
    with contextlib.suppress(OSError, CheckpointException):
        named = {NAME, keep, *(read(folder).files if (folder / NAME).exists() else ())}
        for path in folder.glob("rank*-*"):
            if path.name not in named and path.suffix in (".safetensors", ".json"):
                path.unlink(missing_ok=True)
        for path in folder.glob("failed-*.json"):
            if path.name not in named:
                path.unlink(missing_ok=True)


# ---- what ranks tell each other, by files: a thread that writes makes no collective calls


def _note(plan: Plan, rank: int) -> str:
    return f"rank{rank}-{plan.token}.json"


def _end_note(plan: Plan) -> str:
    return f"failed-{plan.token}.json"


def _note_of(folder: Path, plan: Plan, rank: int) -> dict[str, Any]:
    """What another rank says."""
    for _ in _looks(plan):
        with contextlib.suppress(FileNotFoundError):
            return dict(json.loads((folder / _note(plan, rank)).read_text()))
    return {"error": f"rank {rank} did not finish writing in {plan.timeout:.0f} s"}


def _wait_for_the_end(folder: Path, plan: Plan) -> None:
    """Until rank 0 has committed, or says why not."""
    for _ in _looks(plan):
        with contextlib.suppress(CheckpointException, FileNotFoundError):
            if read(folder).token == plan.token:
                return
        with contextlib.suppress(FileNotFoundError, ValueError):
            raise _failed(folder, json.loads((folder / _end_note(plan)).read_text()))
    raise _failed(folder, f"rank 0 did not finish it in {plan.timeout:.0f} s")


def _looks(plan: Plan) -> Any:
    end, pause = time.monotonic() + plan.timeout, _LOOK[0]
    while time.monotonic() < end:
        yield
        time.sleep(pause)
        pause = min(2 * pause, _LOOK[1])


def _failed(folder: Path, reason: str) -> CheckpointException:
    hint = "free space, or another folder" if "space" in reason else None
    return CheckpointException(message("save", f"the snapshot in {folder} was not written: {reason}", hint=hint))


def _short(error: Exception) -> str:
    text = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
    return f"{type(error).__name__}: {text}".partition("\n")[0]


def hosts_of(mine: Mapping[str, Piece], copies: dict[str, Host] | None) -> dict[str, Host]:
    """The elements that are to be written: those of the tensors, or copies of them in memory that is used again."""
    if copies is None:
        return {name: piece.host() for name, piece in mine.items()}
    for name in [name for name in copies if name not in mine]:
        del copies[name]
    for name, piece in mine.items():
        host, into = piece.host(), copies.get(name)
        if into is None or into.shape != host.shape or into.dtype != host.dtype:
            into = copies[name] = np.empty_like(host)
        np.copyto(into, host)
    return dict(copies)
