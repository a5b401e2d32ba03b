"""Numbers, pictures and texts of a run, in files that TensorBoard shows. Needs the package ``tensorboard``."""

from __future__ import annotations

import importlib
import os
import socket
import struct
import time
import zlib
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from genesis.base.errors import ArgumentError, ArgumentValueError, MissingImport, ShapeError, message
from genesis.core.call.refusal import described, explain_all
from genesis.core.graph.tensor import Tensor


def _tensorboard(name: str) -> Any:
    try:
        return importlib.import_module(f"tensorboard.{name}")
    except ModuleNotFoundError as error:
        raise MissingImport(
            message("SummaryWriter", f"needs the package tensorboard ({error})", hint="pip install tensorboard")
        ) from error


def _array(name: str, what: str, value: Any) -> np.ndarray[Any, Any]:
    """What is to be written, as an array of numbers."""
    try:
        array = np.asarray(value.detach().cpu().double().numpy() if isinstance(value, Tensor) else value)  # type: ignore[attr-defined]
    except (TypeError, ValueError) as error:
        raise ArgumentError(message(name, f"{what} must be numbers, got {described(value)}")) from error
    if array.dtype.kind not in "biuf":
        raise ArgumentError(message(name, f"{what} must be numbers, got {described(value)}"))
    return array


def _number(name: str, what: str, value: Any) -> float:
    array = _array(name, what, value)
    if array.size != 1:
        raise ArgumentError(message(name, f"{what} must be one number, got {described(value)}"))
    return float(array.reshape(()))


def _tag(name: str, tag: Any) -> str:
    if not isinstance(tag, str):
        raise ArgumentError(message(name, f"tag must be a string, got {type(tag).__name__}"))
    return tag.lstrip("/")


class SummaryWriter:
    """Writes what a run is watched by into a folder of event files.

    Args:
        log_dir: the folder; None is one of ``runs/``, named after the time and the machine
        comment: behind that name
        max_queue: how many entries are written together; flush_secs: how long they wait at most

    Raises:
        ModuleNotFoundError: the package tensorboard is not installed
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str] | None = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: int = 120,
        filename_suffix: str = "",
    ) -> None:
        if log_dir is None or log_dir == "":
            log_dir = Path("runs") / f"{time.strftime('%b%d_%H-%M-%S')}_{socket.gethostname()}{comment}"
        self.log_dir = os.fspath(log_dir)
        self._options = max_queue, flush_secs, filename_suffix
        self._protos = [_tensorboard(f"compat.proto.{part}_pb2") for part in ("summary", "event", "tensor")]
        self._files: dict[str, Any] = {}
        self._file("")
        if purge_step is not None:
            event = self._protos[1]
            self._put(event.Event(step=purge_step, session_log=event.SessionLog(status=event.SessionLog.START)), None)

    def _file(self, folder: str) -> Any:
        """The file of a folder inside of the run's."""
        if folder not in self._files:
            writer = _tensorboard("summary.writer.event_file_writer").EventFileWriter
            queue, seconds, suffix = self._options
            self._files[folder] = writer(os.path.join(self.log_dir, folder), queue, seconds, suffix)
        return self._files[folder]

    def _put(self, event: Any, walltime: float | None, folder: str = "") -> None:
        event.wall_time = time.time() if walltime is None else walltime
        self._file(folder).add_event(event)

    def _add(self, values: list[Any], step: Any, walltime: float | None, folder: str = "") -> None:
        event = self._protos[1].Event(summary=self._protos[0].Summary(value=values))
        if step is not None:
            event.step = int(_number("SummaryWriter", "global_step", step))
        self._put(event, walltime, folder)

    def get_logdir(self) -> str:
        """The folder of the run."""
        return self.log_dir

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """A number under a name, at a step."""
        value = _number("add_scalar", "scalar_value", scalar_value)
        self._add(
            [self._protos[0].Summary.Value(tag=_tag("add_scalar", tag), simple_value=value)], global_step, walltime
        )

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: Mapping[str, Any],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Several numbers in one chart: each in a folder of its own, as PyTorch has them."""
        main_tag = _tag("add_scalars", main_tag)
        values = {tag: _number("add_scalars", tag, value) for tag, value in tag_scalar_dict.items()}
        for tag, value in values.items():
            folder = f"{main_tag.replace('/', '_')}_{tag}"
            self._add([self._protos[0].Summary.Value(tag=main_tag, simple_value=value)], global_step, walltime, folder)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: int | None = None,
        bins: Any = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """How numbers are distributed."""
        x = _array("add_histogram", "values", values).astype(np.float64).reshape(-1)
        if not x.size:
            raise ArgumentValueError(message("add_histogram", "there are no values"))
        counts, limits = np.histogram(x, bins=64 if bins == "tensorflow" else bins)
        proto = self._protos[0].HistogramProto(
            min=x.min(), max=x.max(), num=x.size, sum=x.sum(), sum_squares=x @ x,
            bucket_limit=limits[1:].tolist(), bucket=counts.tolist(),
        )  # fmt: skip
        self._add([self._protos[0].Summary.Value(tag=_tag("add_histogram", tag), histo=proto)], global_step, walltime)

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """A picture: floats in [0, 1], or uint8; its dimensions in any order, which ``dataformats`` says."""
        pixels = _pixels("add_image", img_tensor, dataformats)
        image = self._protos[0].Summary.Image(
            height=pixels.shape[0], width=pixels.shape[1], colorspace=pixels.shape[2], encoded_image_string=_png(pixels)
        )
        self._add([self._protos[0].Summary.Value(tag=_tag("add_image", tag), image=image)], global_step, walltime)

    def add_text(
        self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """A text, which may be Markdown."""
        if not isinstance(text_string, str):
            raise ArgumentError(message("add_text", f"expected a string, got {type(text_string).__name__}"))
        summary, _, tensor = self._protos
        shape = _tensorboard("compat.proto.tensor_shape_pb2").TensorShapeProto
        text = tensor.TensorProto(
            dtype="DT_STRING", string_val=[text_string.encode()], tensor_shape=shape(dim=[shape.Dim(size=1)])
        )
        metadata = summary.SummaryMetadata(plugin_data=summary.SummaryMetadata.PluginData(plugin_name="text"))
        tag = _tag("add_text", tag) + "/text_summary"
        self._add([summary.Summary.Value(tag=tag, metadata=metadata, tensor=text)], global_step, walltime)

    def flush(self) -> None:
        """Write what waits."""
        for file in self._files.values():
            file.flush()

    def close(self) -> None:
        """Write what waits, and close the files."""
        for file in self._files.values():
            file.close()
        self._files = {}

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _pixels(name: str, image: Any, order: str) -> np.ndarray[Any, Any]:
    """A picture as bytes, (height, width, channels)."""
    array = _array(name, "the picture", image)
    bytes_already = image.dtype.itemsize == 1 if isinstance(image, Tensor) else array.dtype == np.uint8
    if not isinstance(order, str) or sorted(order.upper()) not in (sorted("CHW"), sorted("HW")):
        raise ArgumentValueError(message(name, f"unknown dataformats {order!r}", hint="CHW, HWC or HW"))
    if array.ndim != len(order):
        raise ShapeError(message(name, f"{order} are {len(order)} dimensions, the picture has {array.ndim}"))
    array = np.transpose(array, [order.upper().index(d) for d in "HWC" if d in order.upper()])
    array = array[..., None] if array.ndim == 2 else array
    if array.shape[2] not in (1, 3, 4):
        raise ShapeError(message(name, f"a picture has 1, 3 or 4 channels, got {array.shape[2]}"))
    return (array if bytes_already else np.clip(array * 255.0, 0, 255)).astype(np.uint8)


def _png(pixels: np.ndarray[Any, Any]) -> bytes:
    """A picture as a PNG file (ISO 15948)."""
    height, width, channels = pixels.shape

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, {1: 0, 3: 2, 4: 6}[channels], 0, 0, 0)
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], 1)  # no filters
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows.tobytes())) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


explain_all(globals())

__all__ = ["SummaryWriter"]
