"""The files of one rank, and the commit: the manifest takes its place when all ranks have written."""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from genesis.base import dtypes
from genesis.base.errors import message
from genesis.distributed.checkpoint.direct import File
from genesis.distributed.checkpoint.image import Image, pieces
from genesis.distributed.checkpoint.manifest import NAME, PART, CheckpointException, Manifest, put, read
from genesis.distributed.checkpoint.parts import Host
from genesis.distributed.checkpoint.plan import Plan, joined

_LOOK = 0.005, 0.1  # seconds between looks whether the others are done: the first, the longest
_waited: dict[str, float] = {}  # how long that took the last time, by what was waited for


def write(folder: Path, plan: Plan, image: Image | None = None) -> Manifest | None:
    """Write this rank's tensors, or an image with copies of them, and wait until the snapshot is there; rank 0 returns its
    manifest.

    Raises:
        RuntimeError: a rank could not write; what was in the folder is there as before
    """
    try:
        said: dict[str, Any] = _said(folder, plan, image)
    except Exception as error:  # whatever it is, all ranks have to hear of it
        said = {"error": f"rank {plan.rank}: {_short(error)}"}
    if plan.rank:
        with contextlib.suppress(OSError):
            _tell(folder, _note(plan, plan.rank), plan, said)
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
            _tell(folder, _end_note(plan), plan, failed)
    with contextlib.suppress(CheckpointException):
        _clean(folder, {NAME, _end_note(plan), *(read(folder).files if (folder / NAME).exists() else ())})
    raise _failed(folder, failed)


def _said(folder: Path, plan: Plan, image: Image | None) -> dict[str, Any]:
    """What the others have to know of what was written."""
    folder.mkdir(parents=True, exist_ok=True)
    if not plan.mine:
        return {"tensors": {}}
    name = f"rank{plan.rank}-{plan.token}.safetensors"
    hosts = {key: piece.host() for key, piece in plan.mine.items()} if image is None else image.hosts
    digest, size = _write_file(folder / name, hosts, image)
    tensors = {
        key: {"dtype": dtypes.from_numpy(hosts[key].dtype).name, "shape": list(piece.shape),
              "pieces": [[piece.begin, piece.begin + hosts[key].size, name, key]]}
        for key, piece in plan.mine.items()
    }  # fmt: skip
    return {"file": name, "bytes": size, "crc32": digest, "tensors": tensors}


def _write_file(path: Path, hosts: Mapping[str, Host], image: Image | None) -> tuple[int, int]:
    try:
        with File(path) as file:
            if image is not None:
                file.write_at_once(image.memory, image.crc32)
            else:
                for piece in pieces(hosts):
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
    _clean(folder, {NAME, *manifest.files})
    return manifest


def _clean(folder: Path, named: set[str]) -> None:
    """Remove what the manifest does not name: of older snapshots, and of writers that were killed."""
    with contextlib.suppress(OSError):
        for name in set(os.listdir(folder)) - named:
            if re.fullmatch(r"rank.*-.*\.(safetensors|json)|failed-.*\.json", name) or name.endswith(PART):
                (folder / name).unlink(missing_ok=True)


# ---- what ranks tell each other, by files: a thread that writes makes no collective calls


def _note(plan: Plan, rank: int) -> str:
    return f"rank{rank}-{plan.token}.json"


def _tell(folder: Path, name: str, plan: Plan, what: Any) -> None:
    """Put a note in its place. It need not be on the disk: those who read it live."""
    put(folder, name, json.dumps(what), plan.token)


def _end_note(plan: Plan) -> str:
    return f"failed-{plan.token}.json"


def _note_of(folder: Path, plan: Plan, rank: int) -> dict[str, Any]:
    """What another rank says."""
    path = folder / _note(plan, rank)
    for _ in _looks(plan, "note"):
        if os.path.exists(path):
            return dict(json.loads(path.read_text()))
    return {"error": f"rank {rank} did not finish writing in {plan.timeout:.0f} s"}


def _wait_for_the_end(folder: Path, plan: Plan) -> None:
    """Until rank 0 has committed, or says why not."""
    manifest, failed = folder / NAME, folder / _end_note(plan)
    for _ in _looks(plan, "end"):
        if os.path.exists(manifest) and plan.token in manifest.read_text():  # all of it: it takes its place at once
            return
        if os.path.exists(failed):
            raise _failed(folder, json.loads(failed.read_text()))
    raise _failed(folder, f"rank 0 did not finish it in {plan.timeout:.0f} s")


def _looks(plan: Plan, what: str) -> Any:
    """When to look whether something is there: about when it was the last time, and then again and again. Each look takes the
    interpreter from the thread that trains.
    """
    begin, pause = time.monotonic(), _LOOK[0]
    time.sleep(min(0.9 * _waited.get(what, 0.0), _LOOK[1]))
    while (now := time.monotonic() - begin) < plan.timeout:
        _waited[what] = now
        yield
        time.sleep(pause)
        pause = min(2 * pause, _LOOK[1])


def _failed(folder: Path, reason: str) -> CheckpointException:
    hint = "free space, or another folder" if "space" in reason else None
    return CheckpointException(message("save", f"the snapshot in {folder} was not written: {reason}", hint=hint))


def _short(error: Exception) -> str:
    text = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
    return f"{type(error).__name__}: {text}".partition("\n")[0]
