"""Messages that hold what is written: a function for each kind, as ``torch.utils.tensorboard.summary`` has them."""

from __future__ import annotations

import io
import struct
import warnings
import wave
from typing import Any

import numpy as np

from genesis.base import dtypes
from genesis.base.errors import ArgumentError, ArgumentValueError, ShapeError, message
from genesis.core.call.refusal import described, explain_all
from genesis.core.graph.tensor import Tensor
from genesis.utils.tensorboard import protos
from genesis.utils.tensorboard.charts import compute_curve, custom_scalars, mesh, pr_curve, pr_curve_raw
from genesis.utils.tensorboard.hparams import hparams
from genesis.utils.tensorboard.messages import one_value, shape_of
from genesis.utils.tensorboard.pictures import checked_boxes, draw_boxes, gif, pixels, png, video_frames
from genesis.utils.tensorboard.values import Array, make_np, one_number, whole_number
from genesis.utils.tensorboard.values import text as string

# ---- numbers


def scalar(
    name: str, tensor: Any, collections: Any = None, new_style: bool = False, double_precision: bool = False
) -> Any:
    """A number: in float32, or in float64 where both ``new_style`` and ``double_precision`` say so.

    Args:
        name: its tag
        tensor: one number, as a tensor, an array or a number
        collections: not used
        new_style: as a tensor of one element, which TensorBoard loads faster
        double_precision: in float64

    Raises:
        TypeError: not one number
    """
    value = one_number(tensor, "add_scalar", "scalar_value")
    if not new_style:
        return one_value(name, "add_scalar", simple_value=value)
    if double_precision:
        return one_value(
            name, "add_scalar", "scalars", tensor=protos.TensorProto(double_val=[value], dtype="DT_DOUBLE")
        )
    return one_value(name, "add_scalar", "scalars", tensor=protos.TensorProto(float_val=[value], dtype="DT_FLOAT"))


def half_to_int(f: float) -> int:
    """The bits of a float32 number as an integer, which is how 16-bit floats are stored in messages.

    >>> half_to_int(1.0)
    1065353216
    """
    return int(struct.unpack("i", struct.pack("f", f))[0])


def int_to_half(i: int) -> float:
    """The number that `half_to_int` made an integer of.

    >>> int_to_half(1065353216)
    1.0
    """
    return float(struct.unpack("f", struct.pack("i", i))[0])


# dtype: its name in messages, and the field that has its numbers
_TENSORS = {
    dtypes.float16: ("DT_HALF", "half_val"),
    dtypes.bfloat16: ("DT_BFLOAT16", "half_val"),
    dtypes.float32: ("DT_FLOAT", "float_val"),
    dtypes.float64: ("DT_DOUBLE", "double_val"),
    dtypes.int8: ("DT_INT8", "int_val"),
    dtypes.uint8: ("DT_UINT8", "uint32_val"),
    dtypes.int16: ("DT_INT16", "int_val"),
    dtypes.int32: ("DT_INT32", "int_val"),
    dtypes.int64: ("DT_INT64", "int64_val"),
    dtypes.complex64: ("DT_COMPLEX64", "scomplex_val"),
    dtypes.complex128: ("DT_COMPLEX128", "dcomplex_val"),
    dtypes.bool: ("DT_BOOL", "bool_val"),
}


def tensor_proto(tag: str, tensor: Tensor) -> Any:
    """A whole tensor, of any shape.

    Raises:
        TypeError: no tensor
        ValueError: 2 GB or more, which messages cannot hold; or a dtype that they have not
    """
    if not isinstance(tensor, Tensor):
        raise ArgumentError(message("add_tensor", f"expected a tensor, got {described(tensor)}"))
    if tensor.dtype not in _TENSORS:
        raise ArgumentValueError(
            message("add_tensor", f"{tag} is {tensor.dtype}, which TensorBoard's messages have not")
        )
    if tensor.numel() * tensor.dtype.itemsize >= 1 << 31:
        raise ArgumentValueError(message("add_tensor", f"{tag} has 2 GB or more, the limit of a message"))
    name, field = _TENSORS[tensor.dtype]
    flat = tensor.detach().cpu().flatten()
    numbers = flat.resolve_conj().numpy().view(flat.abs().numpy().dtype) if flat.is_complex() else flat  # type: ignore[attr-defined]
    values = [half_to_int(x) for x in numbers.tolist()] if field == "half_val" else numbers.tolist()  # type: ignore[attr-defined]
    proto = protos.TensorProto(dtype=name, tensor_shape=shape_of(tuple(tensor.shape)), **{field: values})
    return one_value(tag, "add_tensor", "tensor", tensor=proto)


def text(tag: str, text: str) -> Any:
    """A text, which may be Markdown."""
    content = string(text, "add_text", "text_string").encode()
    proto = protos.TensorProto(dtype="DT_STRING", string_val=[content], tensor_shape=shape_of((1,)))
    plugin = protos.TextPluginData(version=0).SerializeToString()
    return one_value(f"{string(tag, 'add_text')}/text_summary", "add_text", "text", plugin, tensor=proto)


# ---- histograms


def histogram_raw(
    name: str,
    min: float,
    max: float,
    num: int,
    sum: float,
    sum_squares: float,
    bucket_limits: Any,
    bucket_counts: Any,
) -> Any:
    """A histogram that is counted already.

    Args:
        name: its tag
        min, max, num, sum, sum_squares: of the values
        bucket_limits: the upper end of each bucket
        bucket_counts: how many values are in each

    Raises:
        ValueError: not as many limits as counts
    """
    call = "add_histogram_raw"
    known = {"min": min, "max": max, "num": num, "sum": sum, "sum_squares": sum_squares}
    limits, counts = make_np(bucket_limits, call, "bucket_limits"), make_np(bucket_counts, call, "bucket_counts")
    if limits.ndim != 1 or limits.shape != counts.shape:
        raise ArgumentValueError(
            message(call, f"a limit for each bucket is needed, got limits {limits.shape} and counts {counts.shape}")
        )
    numbers = {what: one_number(x, call, what) for what, x in known.items()}
    proto = protos.HistogramProto(**numbers, bucket_limit=limits.tolist(), bucket=counts.tolist())
    return one_value(name, call, histo=proto)


def histogram(name: str, values: Any, bins: Any, max_bins: int | None = None) -> Any:
    """How values are distributed.

    Args:
        name: its tag
        values: (array), of any shape
        bins: as ``numpy.histogram`` has them: a number of buckets, their limits, or the name of a rule ("auto", "fd")
        max_bins: of more buckets, neighbours become one

    Raises:
        ValueError: there are no values, or some are not finite and ``bins`` does not say the limits
    """
    return one_value(
        name, "add_histogram", histo=make_histogram(make_np(values, "add_histogram", "values"), bins, max_bins)
    )


def make_histogram(values: Array, bins: Any, max_bins: int | None = None) -> Any:
    """The message of a histogram: the buckets from the first to the last that has values, with an empty one before."""
    call = "add_histogram"
    values = values.reshape(-1).astype(np.float64)
    if not values.size:
        raise ArgumentValueError(message(call, "there are no values"))
    if max_bins is not None and whole_number(max_bins, call, "max_bins") < 1:
        raise ArgumentValueError(message(call, f"max_bins must be at least 1, got {max_bins}"))
    try:
        counts, limits = np.histogram(values, bins=bins)
    except (TypeError, ValueError) as error:
        raise ArgumentValueError(
            message(call, f"no histogram of these values with bins={described(bins)}: {error}")
        ) from error
    if max_bins is not None and len(counts) > max_bins:
        counts, limits = _merged(counts, limits, len(counts) // max_bins)
    filled = np.flatnonzero(counts)
    if not filled.size:
        raise ArgumentValueError(message(call, "no value is in any of the bins"))
    start, end = filled[0], filled[-1] + 1
    before = counts[start - 1 : start] if start else [0]  # its limit is where the first bucket begins
    return protos.HistogramProto(
        min=values.min(), max=values.max(), num=len(values), sum=values.sum(), sum_squares=values.dot(values),
        bucket_limit=limits[start : end + 1].tolist(), bucket=[*before, *counts[start:end].tolist()],
    )  # fmt: skip


def _merged(counts: Array, limits: Array, group: int) -> tuple[Array, Array]:
    """Every ``group`` buckets as one; the last may be of fewer."""
    starts = np.arange(0, len(counts), group)
    return np.add.reduceat(counts, starts), np.append(limits[starts], limits[-1])


# ---- pictures and sounds


def _image(picture: Array, encoded: bytes) -> Any:
    height, width, channels = picture.shape
    return protos.Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=encoded)


def make_image(tensor: Array, rescale: float = 1, rois: Array | None = None, labels: Any = None) -> Any:
    """The message of a picture in bytes, ``(height, width, channels)``, with boxes ``rois`` if there are some."""
    return _image(tensor, png(tensor, rescale, rois, labels))


def image(tag: str, tensor: Any, rescale: float = 1, dataformats: str = "NCHW") -> Any:
    """A picture, or a grid of them: uint8, or numbers from 0 to 1.

    Raises:
        RuntimeError: a shape that ``dataformats`` does not describe, or that is no picture
        ValueError: other dataformats
    """
    return one_value(tag, "add_image", image=make_image(pixels(tensor, dataformats, "add_image"), rescale))


def image_boxes(
    tag: str, tensor_image: Any, tensor_boxes: Any, rescale: float = 1, dataformats: str = "CHW", labels: Any = None
) -> Any:
    """A picture with boxes ``(N, 4)``: xmin, ymin, xmax, ymax; and a label for each."""
    call = "add_image_with_boxes"
    boxes, labels = checked_boxes(tensor_boxes, labels, call)
    return one_value(tag, call, image=make_image(pixels(tensor_image, dataformats, call), rescale, boxes, labels))


def video(tag: str, tensor: Any, fps: float = 4) -> Any:
    """Videos ``(N, time, channels, height, width)`` in a grid, as a GIF; uint8, or numbers from 0 to 1."""
    return one_value(tag, "add_video", image=make_video(video_frames(tensor, "add_video"), fps))


def make_video(tensor: Array, fps: float) -> Any:
    """The message of frames in bytes, ``(time, height, width, channels)``."""
    rate = one_number(fps, "add_video", "fps")
    if not 0 < rate < np.inf:
        raise ArgumentValueError(message("add_video", f"fps must be positive, got {fps}"))
    return _image(tensor[0], gif(tensor, rate))


def audio(tag: str, tensor: Any, sample_rate: int = 44100) -> Any:
    """A sound: numbers from -1 to 1 in one channel, as 16-bit WAV.

    Raises:
        RuntimeError: several channels, or no samples
        ValueError: samples that are no numbers, or no sample rate
    """
    samples = make_np(tensor, "add_audio", "snd_tensor").squeeze()
    if samples.ndim != 1 or not samples.size:
        raise ShapeError(message("add_audio", f"a sound is (1, samples) or (samples,), got {np.shape(tensor)}"))
    if np.isnan(samples).any():
        raise ArgumentValueError(message("add_audio", "some samples are NaN"))
    rate = whole_number(sample_rate, "add_audio", "sample_rate")
    if rate < 1:
        raise ArgumentValueError(message("add_audio", f"sample_rate must be positive, got {sample_rate}"))
    if abs(samples).max() > 1:
        warnings.warn("add_audio: samples beyond -1 and 1 are cut off", UserWarning, stacklevel=4)
        samples = samples.clip(-1, 1)
    file = io.BytesIO()
    with wave.open(file, "wb") as written:
        written.setnchannels(1)
        written.setsampwidth(2)
        written.setframerate(rate)
        written.writeframes((samples * np.iinfo(np.int16).max).astype("<i2").tobytes())
    proto = protos.Summary.Audio(
        sample_rate=rate, num_channels=1, length_frames=len(samples), encoded_audio_string=file.getvalue(),
        content_type="audio/wav",
    )  # fmt: skip
    return one_value(tag, "add_audio", audio=proto)


explain_all(globals())

__all__ = [
    "audio", "compute_curve", "custom_scalars", "draw_boxes", "half_to_int", "histogram", "histogram_raw", "hparams",
    "image", "image_boxes", "int_to_half", "make_histogram", "make_image", "make_video", "mesh", "pr_curve",
    "pr_curve_raw", "scalar", "tensor_proto", "text", "video",
]  # fmt: skip
