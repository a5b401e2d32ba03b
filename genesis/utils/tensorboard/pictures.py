"""Arrays as pictures: grids of them, with boxes, encoded as PNG and GIF by the package ``pillow``."""

from __future__ import annotations

import importlib
import io
import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.base.errors import ArgumentError, ArgumentValueError, MissingImport, ShapeError, message
from genesis.core.call.refusal import described, explain_all
from genesis.utils.tensorboard.values import Array, make_np, of_length, one_number


def package(module: str, call: str, install: str) -> Any:
    """A module of a package that only this call needs.

    Raises:
        ModuleNotFoundError: it is not installed
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise MissingImport(
            message(call, f"needs the package {install} ({error})", hint=f"pip install {install}")
        ) from error


def make_grid(images: Array, ncols: int = 8) -> Array:
    """Pictures side by side, black where there are none: ``(N, 1 or 3, H, W)`` becomes ``(3, rows * H, columns * W)``.

    >>> make_grid(np.ones((3, 1, 2, 2)), ncols=2).shape
    (3, 4, 4)
    """
    if images.ndim != 4 or images.shape[1] not in (1, 3) or images.shape[0] == 0:
        raise ShapeError(message("make_grid", f"pictures are (N, 1 or 3, H, W) with N > 0, got {images.shape}"))
    count, _, height, width = images.shape
    columns = min(count, ncols)
    rows = math.ceil(count / columns)
    canvas = np.zeros((rows * columns, 3, height, width), images.dtype)
    canvas[:count] = images
    canvas = canvas.reshape(rows, columns, 3, height, width).transpose(2, 0, 3, 1, 4)
    return canvas.reshape(3, rows * height, columns * width)


def convert_to_HWC(tensor: Array, input_format: str) -> Array:  # noqa: N802
    """A picture, or a batch of them as a grid, as ``(height, width, channels)``; grey becomes three equal channels.

    Args:
        tensor: (array)
        input_format: what its dimensions are: NCHW, CHW, HWC, HW, or these in another order

    Raises:
        ValueError: another format
        RuntimeError: another number of dimensions

    >>> convert_to_HWC(np.zeros((2, 3)), "HW").shape
    (2, 3, 3)
    """
    order = input_format.upper() if isinstance(input_format, str) else ""
    full = {"NCHW": "NCHW", "CHW": "HWC", "HW": "HW"}.get("".join(d for d in "NCHW" if d in order))
    if full is None or len(full) != len(order):
        raise ArgumentValueError(
            message("convert_to_HWC", f"unknown dataformats {input_format!r}", hint="NCHW, CHW, HWC or HW")
        )
    if tensor.ndim != len(order):
        raise ShapeError(
            message("convert_to_HWC", f"{order} are {len(order)} dimensions, the picture has {tensor.ndim}")
        )
    tensor = tensor.transpose([order.index(d) for d in full])
    if full == "NCHW":
        return make_grid(tensor).transpose(1, 2, 0)
    if full == "HW":
        tensor = tensor[..., None]
    return np.repeat(tensor, 3, 2) if tensor.shape[2] == 1 else tensor


def as_bytes(values: Array) -> Array:
    """Colours as bytes: uint8 as it is, anything else is 1 where it is brightest, and cut off above."""
    if values.dtype == np.uint8:
        return values
    return np.nan_to_num(values.astype(np.float32) * 255).clip(0, 255).astype(np.uint8)


def pixels(image: Any, dataformats: str, call: str) -> Array:
    """A picture of the user as bytes, ``(height, width, channels)``.

    Raises:
        RuntimeError: no 1 to 4 channels, or no pixels
    """
    array = convert_to_HWC(make_np(image, call, "the picture"), dataformats)
    if not 1 <= array.shape[2] <= 4:
        raise ShapeError(message(call, f"a picture has 1, 2, 3 or 4 channels, got {array.shape[2]}"))
    if not array.size:
        raise ShapeError(message(call, f"a picture has at least one pixel, got {array.shape[:2]}"))
    return as_bytes(array)


def checked_boxes(given: Any, labels: Any, call: str) -> tuple[Array, list[str] | None]:
    """Boxes as (N, 4), and a label for each; labels of another number are left out, as in PyTorch, with a warning."""
    array = make_np(given, call, "the boxes")
    if array.ndim != 2 or array.shape[1] != 4 or not np.isfinite(array).all():
        raise ShapeError(message(call, f"boxes are finite numbers (N, 4): xmin, ymin, xmax, ymax; got {array.shape}"))
    labels = [labels] if isinstance(labels, str) else labels
    if labels is not None and len(labels) != len(array):
        warnings.warn(f"{call}: {len(labels)} labels for {len(array)} boxes are left out", UserWarning, stacklevel=4)
        labels = None
    return array, labels if labels is None else [str(label) for label in labels]


def draw_boxes(disp_image: Any, boxes: Array, labels: Sequence[str] | None = None) -> Any:
    """Red frames on a picture of pillow, each with its label at its lower left corner.

    Args:
        disp_image: a picture of pillow, which is drawn on
        boxes: (N, 4): xmin, ymin, xmax, ymax
        labels: one for each box

    Returns:
        the picture
    """
    canvas = package("PIL.ImageDraw", "draw_boxes", "pillow").Draw(disp_image)
    font = package("PIL.ImageFont", "draw_boxes", "pillow").load_default()
    for i, (left, top, right, bottom) in enumerate(boxes):
        corners = [(left, top), (left, bottom), (right, bottom), (right, top), (left, top)]
        canvas.line(corners, width=2, fill="Red")
        if labels is not None and labels[i]:
            x0, y0, x1, y1 = font.getbbox(labels[i])
            width, height = x1 - x0, y1 - y0
            margin = np.ceil(0.05 * height)
            canvas.rectangle([(left, bottom - height - 2 * margin), (left + width, bottom)], fill="Red")
            canvas.text((left + margin, bottom - height - margin), labels[i], fill="black", font=font)
    return disp_image


def png(picture: Array, rescale: float = 1, rois: Array | None = None, labels: Sequence[str] | None = None) -> bytes:
    """Bytes ``(height, width, channels)`` as a PNG file, with boxes if there are some, in another size if wished."""
    size = [int(n * one_number(rescale, "make_image", "rescale")) for n in picture.shape[:2]]
    if min(size) < 1:
        raise ArgumentValueError(message("make_image", f"rescale {rescale} leaves no pixels of {picture.shape[:2]}"))
    pillow = package("PIL.Image", "add_image", "pillow")
    image = pillow.fromarray(picture[..., 0] if picture.shape[2] == 1 else picture)
    if rois is not None:
        draw_boxes(image, rois, labels)
    file = io.BytesIO()
    image.resize((size[1], size[0]), pillow.Resampling.LANCZOS).save(file, format="PNG")
    return file.getvalue()


def gif(frames: Array, fps: float) -> bytes:
    """Bytes ``(time, height, width, channels)`` as a GIF file that begins again when it ends."""
    pillow = package("PIL.Image", "add_video", "pillow")
    first, *others = [pillow.fromarray(frame[..., 0] if frame.shape[2] == 1 else frame) for frame in frames]
    file = io.BytesIO()
    first.save(file, format="GIF", save_all=True, append_images=others, duration=1000 / fps, loop=0)
    return file.getvalue()


def video_frames(videos: Any, call: str) -> Array:
    """Videos ``(N, time, channels, height, width)`` beside each other, as bytes ``(time, height, width, channels)``:
    black ones fill up to the next power of two, half of whose factors are rows.
    """
    array = make_np(videos, call, "the videos")
    if array.ndim != 5 or not array.size or array.shape[2] not in (1, 3):
        raise ShapeError(
            message(call, f"videos are (N, time, 1 or 3 channels, height, width), none of them 0; got {array.shape}")
        )
    array = as_bytes(array)
    count, time, channels, height, width = array.shape
    filled = 1 << (count - 1).bit_length()
    array = np.concatenate([array, np.zeros((filled - count, *array.shape[1:]), np.uint8)])
    rows = 2 ** ((count.bit_length() - 1) // 2)
    array = array.reshape(rows, filled // rows, time, channels, height, width).transpose(2, 0, 4, 1, 5, 3)
    return array.reshape(time, rows * height, filled // rows * width, channels)


def figure_to_image(figures: Any, close: bool = True) -> Array:
    """A figure of matplotlib as bytes ``(3, height, width)``; a list of them as ``(N, 3, height, width)``.

    Args:
        figures: a figure, or a list of figures of one size
        close: whether they are closed then

    Raises:
        TypeError: no figures
        RuntimeError: figures of several sizes
    """
    several = isinstance(figures, list)
    given = figures if several else [figures]
    if not given or not all(hasattr(figure, "canvas") for figure in given):
        raise ArgumentError(
            message("figure_to_image", f"expected a figure of matplotlib, or a list, got {described(figures)}")
        )
    agg = package("matplotlib.backends.backend_agg", "add_figure", "matplotlib").FigureCanvasAgg
    images = []
    for figure in given:
        canvas = agg(figure)
        canvas.draw()
        images.append(np.moveaxis(np.asarray(canvas.buffer_rgba())[..., :3], 2, 0).copy())
    for image in images[1:]:
        if image.shape != images[0].shape:
            raise ShapeError(
                message(
                    "figure_to_image",
                    f"figures of one size are needed, got {images[0].shape[1:]} and {image.shape[1:]}",
                )
            )
    if close:
        for figure in given:
            package("matplotlib.pyplot", "add_figure", "matplotlib").close(figure)
    return np.stack(images) if several else images[0]


def sprite(label_img: Any, count: int, call: str) -> tuple[bytes, tuple[int, int]]:
    """Small pictures ``(N, 1 or 3, H, W)`` in a square, as a PNG file, and the width and height of one."""
    images = make_np(label_img, call, "label_img")
    if images.ndim != 4 or images.shape[1] not in (1, 3) or not images.size:
        raise ShapeError(message(call, f"label_img is (N, 1 or 3, H, W), got {images.shape}"))
    of_length(count, images, call, "pictures")
    grid = make_grid(as_bytes(images), math.ceil(count**0.5)).transpose(1, 2, 0)
    square = np.zeros((max(grid.shape[:2]), grid.shape[1], 3), np.uint8)
    square[: grid.shape[0]] = grid
    return png(square), (images.shape[3], images.shape[2])


explain_all(globals())
