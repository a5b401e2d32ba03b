"""torchvision's operations, beside loops over every pixel."""

from __future__ import annotations

import math

import numpy as np
import pytest

import genesis
from genesis.pytorch import installed, vision

rng = np.random.default_rng(7)
ROIS = np.array(
    [[0, 1.2, 0.7, 8.3, 6.9], [1, -2.0, -1.5, 3.4, 2.2], [1, 5.0, 5.0, 5.2, 5.1], [0, 4.0, 2.0, 40.0, 30.0]], np.float64
)


def image(channels=2):
    return rng.standard_normal((2, channels, 9, 11))


def at(a, y, x):
    """One interpolated value of a picture; nothing more than a pixel outside."""
    height, width = a.shape
    if not (-1 <= y <= height and -1 <= x <= width):
        return 0.0
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    y0, x0 = int(y), int(x)
    y1, x1 = min(y0 + 1, height - 1), min(x0 + 1, width - 1)
    top = a[y0, x0] * (1 - x + x0) + a[y0, x1] * (x - x0)
    return top * (1 - y + y0) + (a[y1, x0] * (1 - x + x0) + a[y1, x1] * (x - x0)) * (y - y0)


def aligned_by_loops(a, rois, scale, bins, ratio, aligned, own_channels=False):
    shift = 0.5 if aligned or own_channels else 0.0
    channels = a.shape[1] // (bins[0] * bins[1]) if own_channels else a.shape[1]
    out = np.zeros((len(rois), channels, *bins))
    for r, (n, x1, y1, x2, y2) in enumerate(rois):
        start = (y1 * scale - shift, x1 * scale - shift)
        size = [(y2 - y1) * scale, (x2 - x1) * scale]
        if not (aligned or own_channels):
            size = [max(s, 1.0) for s in size]
        points = [ratio if ratio > 0 else math.ceil(s / b) for s, b in zip(size, bins, strict=True)]
        for c, i, j in np.ndindex(channels, *bins):
            plane = a[int(n), (c * bins[0] + i) * bins[1] + j if own_channels else c]
            values = [at(plane, start[0] + (i + (p + 0.5) / points[0]) * size[0] / bins[0],
                         start[1] + (j + (q + 0.5) / points[1]) * size[1] / bins[1])
                      for p in range(points[0]) for q in range(points[1])]  # fmt: skip
            out[r, c, i, j] = sum(values) / max(len(values), 1)
    return out


@pytest.mark.parametrize("ratio", [2, 0])
@pytest.mark.parametrize("aligned", [True, False])
def test_regions_that_are_interpolated(ratio, aligned):
    a, bins = image(), (3, 2)
    x = genesis.tensor(a, requires_grad=True)
    got = vision.roi_align(x, genesis.tensor(ROIS), 0.5, *bins, ratio, aligned)
    np.testing.assert_allclose(got.detach().numpy(), aligned_by_loops(a, ROIS, 0.5, bins, ratio, aligned), atol=1e-12)
    assert genesis.autograd.gradcheck(
        lambda t: vision.roi_align(t, genesis.tensor(ROIS[:2]), 0.5, *bins, ratio, aligned), (x,)
    )


def test_regions_whose_bins_see_channels_of_their_own():
    a = image(12)
    got, _ = vision.ps_roi_align(genesis.tensor(a), genesis.tensor(ROIS), 0.5, 3, 2, 2)
    np.testing.assert_allclose(got.numpy(), aligned_by_loops(a, ROIS, 0.5, (3, 2), 2, True, True), atol=1e-12)


def whole_bins(start, stop, bins, limit):
    low = [min(max(math.floor(b * (stop - start) / bins) + start, 0), limit) for b in range(bins)]
    high = [min(max(math.ceil((b + 1) * (stop - start) / bins) + start, 0), limit) for b in range(bins)]
    return list(zip(low, high, strict=True))


@pytest.mark.parametrize("own_channels", [False, True])
def test_regions_of_whole_pixels(own_channels):
    a, bins, scale = image(12 if own_channels else 2), (3, 2), 0.5
    function = vision.ps_roi_pool if own_channels else vision.roi_pool
    got, _ = function(genesis.tensor(a), genesis.tensor(ROIS), scale, *bins)
    expected = np.zeros(got.shape)
    inside = 1 if own_channels else 0
    for r, (n, *box) in enumerate(ROIS):
        x1, y1, x2, y2 = (math.floor(v * scale + 0.5) for v in box)
        stop = [start + max(end - start + (not own_channels), 1) for start, end in ((y1, y2), (x1, x2))]
        rows, columns = whole_bins(y1, stop[0], 3, 9 - inside), whole_bins(x1, stop[1], 2, 11 - inside)
        for c, i, j in np.ndindex(expected.shape[1:]):
            plane = a[int(n), (c * 3 + i) * 2 + j if own_channels else c]
            part = plane[slice(*rows[i]), slice(*columns[j])]
            expected[r, c, i, j] = (part.mean() if own_channels else part.max()) if part.size else 0.0
    np.testing.assert_allclose(got.numpy(), expected, atol=1e-12)


def test_no_regions():
    for function, more in ((vision.roi_align, (2, True)), (vision.ps_roi_pool, ()), (vision.roi_pool, ())):
        got = function(genesis.tensor(image(4)), genesis.zeros(0, 5), 1.0, 2, 2, *more)
        assert (got if isinstance(got, genesis.Tensor) else got[0]).shape == (
            0,
            1 if function is vision.ps_roi_pool else 4,
            2,
            2,
        )


def test_boxes_that_overlap():
    boxes = rng.uniform(0, 10, (40, 2)).repeat(2, 1)[:, [0, 2, 1, 3]] + [0, 0, 3, 2]
    scores = np.round(rng.uniform(0, 1, 40), 1)  # with ties, which keep their order
    kept, order = [], np.argsort(-scores, kind="stable")
    for i in order:

        def overlap(j, i=i):
            width = min(boxes[i, 2], boxes[j, 2]) - max(boxes[i, 0], boxes[j, 0])
            height = min(boxes[i, 3], boxes[j, 3]) - max(boxes[i, 1], boxes[j, 1])
            both = max(width, 0) * max(height, 0)
            area = lambda b: (b[2] - b[0]) * (b[3] - b[1])  # noqa: E731
            return both / (area(boxes[i]) + area(boxes[j]) - both)

        if all(overlap(j) <= 0.3 for j in kept):
            kept.append(i)
    assert vision.nms(genesis.tensor(boxes), genesis.tensor(scores), 0.3).tolist() == kept
    assert vision.nms(genesis.zeros(0, 4), genesis.zeros(0), 0.3).shape == (0,)


@pytest.mark.parametrize(("groups", "offset_groups", "use_mask"), [(1, 1, False), (2, 1, True), (1, 2, True)])
def test_convolutions_whose_kernels_bend(groups, offset_groups, use_mask):
    x, weight, bias = (
        rng.standard_normal((2, 4, 6, 4)),
        rng.standard_normal((6, 4 // groups, 3, 2)),
        rng.standard_normal(6),
    )
    out = (2, 3)  # (6 + 2 * 1 - 2 * 2 - 1) // 2 + 1 rows, (4 - 1 - 1) + 1 columns
    offset = rng.standard_normal((2, offset_groups * 12, *out)) * 1.5
    mask = rng.uniform(0, 1, (2, offset_groups * 6, *out)) if use_mask else np.zeros((2, 0))
    arguments = [genesis.tensor(v, requires_grad=v.size > 0) for v in (x, weight, offset, mask, bias)]
    options = (2, 1, 1, 0, 2, 1, groups, offset_groups, use_mask)
    got = vision.deform_conv2d(*arguments, *options)
    expected = np.zeros((2, 6, *out)) + bias[:, None, None]
    padded = np.pad(x, ((0, 0), (0, 0), (20, 20), (20, 20)))  # zeros outside
    for n, o, c, i, j, p, q in np.ndindex(2, 6, 4 // groups, 3, 2, *out):
        channel = o // (6 // groups) * (4 // groups) + c
        group, k = channel // (4 // offset_groups), i * 2 + j
        dy, dx = offset[n, (group * 6 + k) * 2 : (group * 6 + k) * 2 + 2, p, q]
        y, z = p * 2 - 1 + i * 2 + dy, q + j + dx
        value = at(padded[n, channel], y + 20, z + 20)
        expected[n, o, p, q] += weight[o, c, i, j] * value * (mask[n, group * 6 + k, p, q] if use_mask else 1)
    np.testing.assert_allclose(got.detach().numpy(), expected, atol=1e-12)
    assert genesis.autograd.gradcheck(lambda *a: vision.deform_conv2d(*a, *options), arguments)


def test_they_stand_in_torchs_room_once_torchvision_asks_for_its_library():
    with installed() as torch:
        torch.ops.load_library("/somewhere/site-packages/torchvision/_C.so")
        torch.ops.load_library("/somewhere/site-packages/torchvision/_C.so")
        boxes = genesis.tensor([[0.0, 0, 2, 2], [0, 0, 2, 2]])
        assert torch.ops.torchvision.nms(boxes, genesis.tensor([0.1, 0.2]), 0.5).tolist() == [1]
        assert torch.ops.torchvision._cuda_version() == -1
        with pytest.raises(NotImplementedError, match="qnms"):
            torch.ops.torchvision.qnms(boxes)
