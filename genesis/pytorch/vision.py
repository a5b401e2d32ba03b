"""The operations of torchvision, which its wheel has as code compiled for PyTorch: boxes that overlap, and what is seen of
an image in regions.

A region is pooled to ``height x width`` bins. What a bin sees is a weighted sum (or the largest) of pixels, which is a bag
of rows of the image with its channels last: all four ways to pool are one `embedding_bag`, and get its gradient. The
regions themselves have none, as in torchvision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import genesis
from genesis.base.errors import UnsupportedError, message
from genesis.core.graph.tensor import Tensor
from genesis.library.operations import _OPS
from genesis.library.registering import define, impl
from genesis.nn import functional as F  # noqa: N812

Numbers = np.ndarray[Any, Any]


def nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """The boxes ``(x1, y1, x2, y2)`` that overlap no box of a higher score by more than a threshold, best first."""
    boxes = dets.detach().numpy()
    x1, y1, x2, y2 = boxes.reshape(-1, 4).T
    areas = (x2 - x1) * (y2 - y1)
    left = np.argsort(-scores.detach().numpy(), kind="stable")
    kept = []
    while left.size:
        best, left = left[0], left[1:]
        kept.append(best)
        width = np.minimum(x2[best], x2[left]) - np.maximum(x1[best], x1[left])
        height = np.minimum(y2[best], y2[left]) - np.maximum(y1[best], y1[left])
        both = np.maximum(width, 0) * np.maximum(height, 0)
        with np.errstate(invalid="ignore", divide="ignore"):
            left = left[~(both / (areas[best] + areas[left] - both) > iou_threshold)]
    return genesis.tensor(np.array(kept, np.int64))


# ---- regions


def _corners(at: Numbers, size: int) -> tuple[Numbers, Numbers]:
    """The two pixels on both sides of positions along one axis, and their weights; none outside of the image."""
    inside = (at >= -1) & (at <= size)
    at = np.clip(at, 0, size - 1)
    low = at.astype(np.int64)
    high = np.minimum(low + 1, size - 1)
    part = at - low
    return np.stack([low, high], -1), np.stack([1 - part, part], -1) * inside[..., None]


def _sampled(start: float, length: float, bins: int, ratio: int, size: int) -> list[tuple[Numbers, Numbers]]:
    """For each bin along one axis the pixels it sees and their weights: the mean of points that are interpolated."""
    points = ratio if ratio > 0 else int(np.ceil(length / bins))
    step = length / bins
    seen = []
    for b in range(bins):
        at = start + b * step + (np.arange(points) + 0.5) * step / max(points, 1)
        pixels, weights = _corners(at, size)
        seen.append((pixels.reshape(-1), weights.reshape(-1) / max(points, 1)))
    return seen


def _bins(start: float, length: float, bins: int, limit: int) -> list[tuple[Numbers, Numbers]]:
    """For each bin along one axis all pixels in it, with equal weights."""
    edges = np.arange(bins + 1) * (length / bins)
    low = np.clip(np.floor(edges[:-1]) + start, 0, limit).astype(int)
    high = np.clip(np.ceil(edges[1:]) + start, 0, limit).astype(int)
    pixels = [np.arange(a, max(a, b)) for a, b in zip(low, high, strict=True)]
    return [(p, np.full(p.size, 1.0 / max(p.size, 1))) for p in pixels]


def _seen(
    input: Tensor, rois: Tensor, bins: tuple[int, int], along: Callable[..., Any], mode: str, maps: int = 1
) -> Tensor:
    """What the bins of all regions see. With ``maps`` > 1 each bin sees channels of its own.

    ``along(first, last, bins, size)`` says for each bin between two borders along an axis which pixels it sees, and with
    which weights.
    """
    images, channels, height, width = input.shape
    table = input.reshape(images, channels // maps, maps, height, width).permute(0, 2, 3, 4, 1)
    bags, weights = [], []
    for image, x1, y1, x2, y2 in rois.detach().to(input.dtype).numpy().reshape(-1, 5):
        ys, xs = along(y1, y2, bins[0], height), along(x1, x2, bins[1], width)
        for i, (rows, down) in enumerate(ys):
            for j, (columns, across) in enumerate(xs):
                of_map = int(image) * maps + (i * bins[1] + j if maps > 1 else 0)
                bags.append(((of_map * height + rows[:, None]) * width + columns).reshape(-1))
                weights.append((down[:, None] * across).reshape(-1))
    pooled = _pooled(table.reshape(-1, channels // maps), bags, weights, mode)
    return pooled.reshape(rois.shape[0], *bins, pooled.shape[1]).permute(0, 3, 1, 2).contiguous()


def _pooled(table: Tensor, bags: list[Numbers], weights: list[Numbers], mode: str) -> Tensor:
    """A row of channels for each bag of rows of a table."""
    ends = np.cumsum([0, *[bag.size for bag in bags]][: len(bags)]).astype(np.int64)
    rows, shares = (np.concatenate([np.zeros(0), *parts]) for parts in (bags, weights))
    weighted = {} if mode == "max" else {"per_sample_weights": genesis.tensor(shares).to(table.dtype)}
    return F.embedding_bag(genesis.tensor(rows.astype(np.int64)), table, genesis.tensor(ends), mode=mode, **weighted)


def _scaled(scale: float, shift: float, least: float | None, ratio: int) -> Callable[..., Any]:
    def along(first: Any, last: Any, bins: int, size: int) -> list[tuple[Numbers, Numbers]]:
        length = last * scale - first * scale
        return _sampled(first * scale - shift, length if least is None else max(length, least), bins, ratio, size)

    return along


def _rounded(scale: float, end: int, inside: int) -> Callable[..., Any]:
    def along(first: Any, last: Any, bins: int, size: int) -> list[tuple[Numbers, Numbers]]:
        start, stop = np.floor(first * scale + 0.5), np.floor(last * scale + 0.5)
        return _bins(float(start), float(max(stop - start + end, 1)), bins, size - inside)

    return along


def roi_align(input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int,
              sampling_ratio: int, aligned: bool) -> Tensor:  # fmt: skip
    """The means of points of regions, interpolated (He et al., Mask R-CNN, 2017)."""
    bins = (pooled_height, pooled_width)
    along = _scaled(spatial_scale, 0.5 if aligned else 0.0, None if aligned else 1.0, sampling_ratio)
    return _seen(input, rois, bins, along, "sum")


def roi_pool(input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int,
             pooled_width: int) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The largest values in parts of regions (Girshick, Fast R-CNN, 2015)."""
    bins = (pooled_height, pooled_width)
    pooled = _seen(input, rois, bins, _rounded(spatial_scale, 1, 0), "max")
    return pooled, genesis.zeros(pooled.shape, dtype=genesis.int32)


def ps_roi_align(input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int,
                 sampling_ratio: int) -> tuple[Tensor, Tensor]:  # fmt: skip
    """`roi_align` in which each bin sees channels of its own (Li et al., Light-Head R-CNN, 2017)."""
    bins = (pooled_height, pooled_width)
    along = _scaled(spatial_scale, 0.5, None, sampling_ratio)
    pooled = _seen(input, rois, bins, along, "sum", bins[0] * bins[1])
    return pooled, genesis.zeros(pooled.shape, dtype=genesis.int32)


def ps_roi_pool(input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int,
                pooled_width: int) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Means of parts of regions, each part of channels of its own (Dai et al., R-FCN, 2016)."""
    bins = (pooled_height, pooled_width)
    along = _rounded(spatial_scale, 0, 1)
    pooled = _seen(input, rois, bins, along, "sum", bins[0] * bins[1])
    return pooled, genesis.zeros(pooled.shape, dtype=genesis.int32)


# ---- convolutions whose kernels bend


def deform_conv2d(input: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, bias: Tensor, stride_h: int, stride_w: int,
                  pad_h: int, pad_w: int, dilation_h: int, dilation_w: int, groups: int, offset_groups: int,
                  use_mask: bool) -> Tensor:  # fmt: skip
    """A convolution that sees pixels at positions moved by ``offset``, interpolated (Dai et al., 2017; Zhu et al., 2019)."""
    images, channels, height, width = input.shape
    down, across = weight.shape[-2:]
    out = (offset.shape[-2], offset.shape[-1])
    moved = offset.reshape(images, offset_groups, down * across, 2, *out)
    y = moved[:, :, :, 0] + _grid(down, across, out, (stride_h, stride_w), (pad_h, pad_w), (dilation_h, dilation_w), 0)
    x = moved[:, :, :, 1] + _grid(down, across, out, (stride_h, stride_w), (pad_h, pad_w), (dilation_h, dilation_w), 1)
    pixels = input.reshape(images, offset_groups, channels // offset_groups, height * width)
    columns = _interpolated(pixels, y, x, height, width)  # (images, offset groups, channels of one, kernel, out)
    if use_mask:
        columns = columns * mask.reshape(images, offset_groups, 1, down * across, *out)
    columns = columns.reshape(images, groups, channels // groups * down * across, out[0] * out[1])
    kernels = weight.reshape(groups, weight.shape[0] // groups, -1)
    return (kernels @ columns).reshape(images, weight.shape[0], *out) + bias.reshape(-1, 1, 1)


def _grid(down: int, across: int, out: tuple[int, int], stride: Any, pad: Any, dilation: Any, axis: int) -> Tensor:
    """Where a kernel's pixels are along an axis without being moved: (down * across, out high, out wide)."""
    kernel, steps = np.indices((down, across))[axis].reshape(-1, 1, 1), np.indices(out)[axis]
    return genesis.tensor((kernel * dilation[axis] + steps * stride[axis] - pad[axis]).astype(np.float32))


def _interpolated(pixels: Tensor, y: Tensor, x: Tensor, height: int, width: int) -> Tensor:
    """Pixels at positions between them; zero outside of the image."""
    total: Any = 0
    low_y, low_x = y.detach().floor(), x.detach().floor()
    for at_y in (low_y, low_y + 1):
        for at_x in (low_x, low_x + 1):
            inside = (at_y >= 0) & (at_y < height) & (at_x >= 0) & (at_x < width)
            index = (at_y.clamp(0, height - 1) * width + at_x.clamp(0, width - 1)).long()
            share = (1 - (y - at_y).abs()) * (1 - (x - at_x).abs()) * inside
            rows = index.reshape(*index.shape[:2], 1, -1).expand(-1, -1, pixels.shape[2], -1)
            seen = genesis.gather(pixels, 3, rows).reshape(*pixels.shape[:3], *index.shape[2:])
            total = total + seen * share[:, :, None]
    return total  # type: ignore[no-any-return]


# ---- their names

_ROI = "Tensor input, Tensor rois, float spatial_scale, int pooled_height, int pooled_width"
_SCHEMAS = {
    nms: "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    roi_align: f"({_ROI}, int sampling_ratio, bool aligned) -> Tensor",
    roi_pool: f"({_ROI}) -> (Tensor, Tensor)",
    ps_roi_align: f"({_ROI}, int sampling_ratio) -> (Tensor, Tensor)",
    ps_roi_pool: f"({_ROI}) -> (Tensor, Tensor)",
    deform_conv2d: "(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, int stride_h, int stride_w, int pad_h, "
    "int pad_w, int dilation_h, int dilation_w, int groups, int offset_groups, bool use_mask) -> Tensor",
}
# what torchvision registers something for; the gradients are those of the compositions above
_UNUSED = ("_roi_align_backward", "_roi_pool_backward", "_ps_roi_align_backward", "_ps_roi_pool_backward",
           "_deform_conv2d_backward", "qnms", "qroi_align", "box_iou_rotated")  # fmt: skip


def declare() -> None:
    """Let ``torch.ops.torchvision`` have these operations."""
    if "torchvision::nms" in _OPS:
        return
    for function, schema in _SCHEMAS.items():
        define(f"torchvision::{function.__name__}", schema)
        impl(f"torchvision::{function.__name__}", "CompositeImplicitAutograd", function)
    for name in _UNUSED:
        define(f"torchvision::{name}", "(Tensor input) -> Tensor")
        impl(f"torchvision::{name}", "CompositeImplicitAutograd", _refused(name))
    define("torchvision::_cuda_version", "() -> int")
    impl("torchvision::_cuda_version", "CompositeImplicitAutograd", lambda: -1)


def _refused(name: str) -> Callable[..., Any]:
    def refused(*args: Any, **kwargs: Any) -> Any:
        raise UnsupportedError(message(f"torchvision.ops.{name}", "it is compiled for PyTorch, and not written here"))

    return refused
