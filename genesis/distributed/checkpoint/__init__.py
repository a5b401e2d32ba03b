"""Snapshots of a training that several ranks write together: ``torch.distributed.checkpoint``.

`saving`     `save` and `async_save`            `loading`    `load`, by any number of ranks
`writing`    the files, and their commit        `manifest`   what a folder says of itself
`parts`      nested state as tensors and JSON   `plan`       which rank writes what
`state_dict` states of models and optimizers by names
`snapshots`  a folder of snapshots, for loops   `format_utils`   one file instead

A snapshot is a folder: safetensors files, at least one of each rank that has something to write, and `manifest.json`.
The files have names of their own at each save; the manifest names them, with their checksums, and takes its place
atomically when all of them are on the disk. So at every moment the folder is the whole old snapshot or the whole new one.
"""

from __future__ import annotations

from genesis.core.call.refusal import explain_all
from genesis.distributed.checkpoint import format_utils, state_dict
from genesis.distributed.checkpoint.loading import load
from genesis.distributed.checkpoint.manifest import CheckpointException
from genesis.distributed.checkpoint.parts import Part, Stateful
from genesis.distributed.checkpoint.saving import FileSystemReader, FileSystemWriter, async_save, save
from genesis.distributed.checkpoint.snapshots import Snapshots

__all__ = [
    "CheckpointException", "FileSystemReader", "FileSystemWriter", "Part", "Snapshots", "Stateful", "async_save",
    "format_utils", "load", "save", "state_dict",
]  # fmt: skip

explain_all(globals())
