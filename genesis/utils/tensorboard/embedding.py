"""Points for TensorBoard's projector: files beside the events."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from genesis.base.errors import ArgumentError, ArgumentValueError, ShapeError, message
from genesis.core.call.refusal import described
from genesis.utils.tensorboard import protos
from genesis.utils.tensorboard.pictures import sprite
from genesis.utils.tensorboard.values import make_np, of_length, text, whole_number


@dataclass
class Embedding:
    """Files of a folder, as bytes by their names, and the message that names them."""

    folder: str
    files: dict[str, bytes]
    info: Any


def embedding(mat: Any, metadata: Any, label_img: Any, global_step: Any, tag: str, metadata_header: Any) -> Embedding:
    """What `SummaryWriter.add_embedding` writes.

    Raises:
        RuntimeError: no matrix, or not a label or a picture for each row
        TypeError: labels that are no list
    """
    call = "add_embedding"
    matrix = make_np(mat, call, "mat")
    if matrix.ndim != 2:
        raise ShapeError(message(call, f"mat is (points, dimensions), got {matrix.shape}"))
    step = f"{0 if global_step is None else whole_number(global_step, call, 'global_step'):05}"
    folder = f"{step}/{_encoded(text(tag, call))}"
    info = protos.EmbeddingInfo(tensor_name=f"{tag}:{step}", tensor_path=f"{folder}/tensors.tsv")
    files = {"tensors.tsv": _lines("\t".join(map(str, row)) for row in matrix.tolist())}
    if metadata is not None:
        files["metadata.tsv"] = _labels(metadata, metadata_header, len(matrix))
        info.metadata_path = f"{folder}/metadata.tsv"
    if label_img is not None:
        files["sprite.png"], size = sprite(label_img, len(matrix), call)
        info.sprite.image_path = f"{folder}/sprite.png"
        info.sprite.single_image_dim.extend(size)
    return Embedding(folder, files, info)


def _labels(metadata: Any, header: Any, count: int) -> bytes:
    """A line for each point; with a header, of several columns."""
    call = "add_embedding"
    try:
        rows = list(metadata)
    except TypeError as error:
        raise ArgumentError(message(call, f"metadata must be a list, got {described(metadata)}")) from error
    of_length(count, rows, call, "labels")
    if not header:
        return _lines(map(str, rows))
    for row in rows:
        if not isinstance(row, list | tuple) or len(row) != len(header):
            raise ArgumentValueError(
                message(call, f"metadata_header has {len(header)} columns, a label is {described(row)}")
            )
    return _lines("\t".join(map(str, row)) for row in [header, *rows])


def _lines(lines: Any) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def _encoded(tag: str) -> str:
    """A tag as the name of a folder."""
    for letter in "%/\\":
        tag = tag.replace(letter, f"%{ord(letter):02x}")
    return tag


def write(log_dir: str | os.PathLike[str], new: Embedding, config: Any) -> None:
    """Write the files of an embedding, and the list of all embeddings of the run.

    Raises:
        NotADirectoryError: a file is where the folder should be
    """
    from google.protobuf import text_format

    folder = Path(log_dir) / new.folder
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(message("add_embedding", f"{folder} is a file", hint="another tag or global_step"))
    if folder.exists():
        warnings.warn(f"add_embedding: {folder} is written again: say global_step", UserWarning, stacklevel=3)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in new.files.items():
        (folder / name).write_bytes(content)
    config.embeddings.append(new.info)
    (Path(log_dir) / "projector_config.pbtxt").write_text(text_format.MessageToString(config))
