"""Windows as columns and back, and elements between channels and places: all of it moves elements, or adds them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from genesis.arrays.protocol import Array
from genesis.arrays.spec import Spec
from genesis.base.dtypes import is_integer
from genesis.base.errors import ArgumentError, ShapeError, message
from genesis.core.call.halves import F32, HALVES
from genesis.core.call.kinds import as_it_is, case, composite, primitive
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.graph.tensor import Tensor
from genesis.ops.spatial.arguments import Sizes, known, per_dim
from genesis.ops.spatial.convolution import add_windows, inside, windows, windows_in, with_border

# ---- windows


def _count(name: str, sizes: Sizes, kernel: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes) -> Sizes:
    count = windows_in(sizes, kernel, stride, padding, dilation)
    if min(count) < 1:
        text = f"windows of {list(kernel)} with dilation {list(dilation)} and padding {list(padding)} do not fit {list(sizes)}"
        raise ShapeError(message(name, text, hint="smaller windows, or padding"))
    return count


def _numbers(name: str, kernel: Any, dilation: Any, padding: Any, stride: Any) -> tuple[Sizes, ...]:
    return (
        per_dim(name, "kernel_size", kernel, 2, 1),
        per_dim(name, "dilation", dilation, 2, 1),
        per_dim(name, "padding", padding, 2, 0),
        per_dim(name, "stride", stride, 2, 1),
    )


@known
def _unfolded(name: str, input: Tensor, kernel: Any, dilation: Any, padding: Any, stride: Any) -> tuple[Sizes, ...]:
    if input.ndim < 3 or 0 in input.shape[-3:]:
        text = f"expected images (C, H, W) or (N, C, H, W), got {list(input.shape)}"
        raise ShapeError(message(name, text, [("input", input._spec())]))
    numbers = _numbers(name, kernel, dilation, padding, stride)
    _count(name, tuple(input.shape[-2:]), *numbers)
    return numbers


def _prepare_unfold(input: Tensor, kernel: Any, dilation: Any, padding: Any, stride: Any) -> tuple[Any, ...]:
    return input, *_unfolded("unfold", input, kernel, dilation, padding, stride)


def _infer_unfold(input: Spec, kernel: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes) -> Spec:
    count = windows_in(input.shape[-2:], kernel, stride, padding, dilation)
    shape = (*input.shape[:-3], input.shape[-3] * math.prod(kernel), math.prod(count))
    return Spec(shape, input.dtype, input.device)


@primitive(
    "movement",
    {
        "input": lambda g, input_shape, kernel_size, dilation, padding, stride: fold_columns(
            g, tuple(input_shape[-2:]), kernel_size, dilation, padding, stride
        )
    },
    infer=_infer_unfold,
    prepare=_prepare_unfold,
    batch=as_it_is,
    dtypes="fc",
    method=False,
    torch_name="nn.functional.unfold",
)
def unfold_columns(input: Array, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    """The windows of images (N, C, H, W), each a column: (N, C * kernel elements, windows). What
    `genesis.nn.functional.unfold` calls.

    Raises:
        RuntimeError: another shape, or windows that do not fit

    >>> import genesis
    >>> genesis.nn.functional.unfold(genesis.arange(6.0).reshape(1, 1, 2, 3), 2)
    tensor([[[0., 1.],
             [1., 2.],
             [3., 4.],
             [4., 5.]]])
    """
    x = with_border(input.reshape(-1, *input.shape[-3:]), padding)
    count = windows_in(input.shape[-2:], kernel_size, stride, padding, dilation)
    columns = windows(x, kernel_size, stride, dilation, count)
    shape = (*input.shape[:-3], input.shape[-3] * math.prod(kernel_size), math.prod(count))
    return np.array(columns, order="C").reshape(shape)


samples(unfold_columns, lambda t: [case(t(1, 2, 3, 4), 2), case(t(2, 4, 3), (3, 2), (1, 2), 1, (2, 1))])

wrong_inputs(
    unfold_columns,
    (lambda t: case(t(3, 4), 2), RuntimeError, "unfold: expected images (C, H, W) or (N, C, H, W), got [3, 4]"),
    (lambda t: case(t(1, 1, 2, 2), 3), RuntimeError, "unfold: windows of [3, 3] with dilation [1, 1]"),
)


def _prepare_fold(
    input: Tensor, output_size: Any, kernel: Any, dilation: Any, padding: Any, stride: Any
) -> tuple[Any, ...]:
    sizes = per_dim("fold", "output_size", output_size, 2, 1)
    kernel, dilation, padding, stride = _numbers("fold", kernel, dilation, padding, stride)
    if input.ndim < 2:
        text = f"expected (C * kernel elements, windows), with or without examples, got {list(input.shape)}"
        raise ShapeError(message("fold", text, [("input", input._spec())]))
    many = math.prod(_count("fold", sizes, kernel, dilation, padding, stride))
    if input.shape[-2] % math.prod(kernel) or not input.shape[-2]:
        text = (
            f"dim {input.ndim - 2} has {input.shape[-2]} elements, not a multiple of the kernel's {math.prod(kernel)}"
        )
        raise ShapeError(message("fold", text, [("input", input._spec())]))
    if input.shape[-1] != many:
        text = f"{list(sizes)} has {many} windows of {list(kernel)}, the input {input.shape[-1]}"
        raise ShapeError(message("fold", text, [("input", input._spec())]))
    return input, sizes, kernel, dilation, padding, stride


def _infer_fold(input: Spec, output_size: Sizes, kernel: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes) -> Spec:
    shape = (*input.shape[:-2], input.shape[-2] // math.prod(kernel), *output_size)
    return Spec(shape, input.dtype, input.device)


@primitive(
    "movement",
    {
        "input": lambda g, kernel_size, dilation, padding, stride: unfold_columns(
            g, kernel_size, dilation, padding, stride
        )
    },
    infer=_infer_fold,
    prepare=_prepare_fold,
    batch=as_it_is,
    dtypes="fc",
    method=False,
    torch_name="nn.functional.fold",
)
def fold_columns(
    input: Array, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Any:
    """Images of ``output_size`` from windows in columns, added where they overlap: the transpose of `unfold`. What
    `genesis.nn.functional.fold` calls.

    Raises:
        RuntimeError: another shape or number of windows

    >>> import genesis
    >>> genesis.nn.functional.fold(genesis.ones(1, 4, 2), (2, 3), 2)
    tensor([[[[1., 2., 1.],
              [1., 2., 1.]]]])
    """
    kind = F32 if input.dtype in HALVES else input.dtype
    channels = input.shape[-2] // math.prod(kernel_size)
    count = windows_in(output_size, kernel_size, stride, padding, dilation)
    columns = input.reshape(-1, channels, *kernel_size, *count)
    sizes = [n + 2 * p for n, p in zip(output_size, padding, strict=True)]
    out = np.zeros((columns.shape[0], channels, *sizes), kind)
    add_windows(out, columns, kernel_size, stride, dilation, count)
    shape = (*input.shape[:-2], channels, *output_size)
    return out[inside(padding)].reshape(shape).astype(input.dtype, order="C")


samples(
    fold_columns,
    lambda t: [case(t(1, 8, 6), (3, 4), 2), case(t(12, 6), (4, 3), (3, 2), (1, 2), 1, (2, 1))],
)

wrong_inputs(
    fold_columns,
    (
        lambda t: case(t(1, 5, 4), (3, 3), 2),
        RuntimeError,
        "fold: dim 1 has 5 elements, not a multiple of the kernel's 4",
    ),
    (lambda t: case(t(1, 4, 3), (3, 3), 2), RuntimeError, "fold: [3, 3] has 4 windows of [2, 2], the input 3"),
)


# ---- shuffles


def _factor(name: str, what: str, value: Any) -> int:
    if not is_integer(value):
        raise ArgumentError(message(name, f"{what} must be an integer, got {type(value).__name__}"))
    if value < 1:
        raise ShapeError(message(name, f"{what} must be positive, got {value}"))
    return int(value)


def _check_images(name: str, input: Tensor) -> None:
    if input.ndim < 3:
        text = f"expected images (..., C, H, W), got {input.ndim}-D"
        raise ShapeError(message(name, text, [("input", input._spec())]))


@composite(dtypes="fcib", method=False)
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Images (..., C r², H, W) as (..., C, H r, W r): channels become places (Shi et al. 2016).

    Raises:
        RuntimeError: fewer than three dimensions, or channels that are not a multiple of r²

    >>> import genesis
    >>> genesis.pixel_shuffle(genesis.arange(4).reshape(4, 1, 1), 2)
    tensor([[[0, 1],
             [2, 3]]])
    """
    _check_images("pixel_shuffle", input)
    r = _factor("pixel_shuffle", "upscale_factor", upscale_factor)
    *lead, channels, h, w = input.shape
    if channels % r**2:
        text = f"{channels} channels are not a multiple of {r}² = {r**2}"
        raise ShapeError(message("pixel_shuffle", text, [("input", input._spec())]))
    n, c = len(lead), channels // r**2
    parts = input.reshape(*lead, c, r, r, h, w).permute(*range(n), n, n + 3, n + 1, n + 4, n + 2)  # type: ignore[attr-defined]
    return parts.reshape(*lead, c, h * r, w * r)  # type: ignore[no-any-return]


samples(pixel_shuffle, lambda t: [case(t(1, 8, 2, 3), 2), case(t(4, 1, 2), 2)])

wrong_inputs(
    pixel_shuffle,
    (lambda t: case(t(1, 3, 2, 2), 2), RuntimeError, "pixel_shuffle: 3 channels are not a multiple of 2² = 4"),
    (lambda t: case(t(4, 2), 2), RuntimeError, "pixel_shuffle: expected images (..., C, H, W), got 2-D"),
)


@composite(dtypes="fcib", method=False)
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Images (..., C, H r, W r) as (..., C r², H, W): places become channels, the inverse of `pixel_shuffle`.

    Raises:
        RuntimeError: fewer than three dimensions, or sizes that are not a multiple of r

    >>> import genesis
    >>> genesis.pixel_unshuffle(genesis.arange(4).reshape(1, 2, 2), 2).flatten()
    tensor([0, 1, 2, 3])
    """
    _check_images("pixel_unshuffle", input)
    r = _factor("pixel_unshuffle", "downscale_factor", downscale_factor)
    *lead, c, h, w = input.shape
    if h % r or w % r:
        text = f"sizes {[h, w]} are not multiples of {r}"
        raise ShapeError(message("pixel_unshuffle", text, [("input", input._spec())]))
    n = len(lead)
    parts = input.reshape(*lead, c, h // r, r, w // r, r).permute(*range(n), n, n + 2, n + 4, n + 1, n + 3)  # type: ignore[attr-defined]
    return parts.reshape(*lead, c * r * r, h // r, w // r)  # type: ignore[no-any-return]


samples(pixel_unshuffle, lambda t: [case(t(1, 2, 4, 6), 2), case(t(1, 2, 2), 2)])

wrong_inputs(
    pixel_unshuffle,
    (lambda t: case(t(1, 3, 2), 2), RuntimeError, "pixel_unshuffle: sizes [3, 2] are not multiples of 2"),
)


@composite(dtypes="fcib", method=False)
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Channels of ``groups`` groups in turns, (N, C, ...): what a convolution in groups needs after it (Zhang et al.
    2018).

    Raises:
        RuntimeError: fewer than three dimensions, or channels that are not a multiple of the groups

    >>> import genesis
    >>> genesis.channel_shuffle(genesis.arange(4).reshape(1, 4, 1), 2).flatten()
    tensor([0, 2, 1, 3])
    """
    if input.ndim < 3:
        text = f"expected (N, C, ...) with 3 dimensions or more, got {input.ndim}-D"
        raise ShapeError(message("channel_shuffle", text, [("input", input._spec())]))
    groups = _factor("channel_shuffle", "groups", groups)
    n, c, *rest = input.shape
    if c % groups:
        text = f"{c} channels are not a multiple of {groups} groups"
        raise ShapeError(message("channel_shuffle", text, [("input", input._spec())]))
    return input.reshape(n, groups, c // groups, *rest).transpose(1, 2).reshape(n, c, *rest)  # type: ignore[no-any-return]


samples(channel_shuffle, lambda t: [case(t(1, 4, 2), 2), case(t(2, 6, 1, 2), 3)])

wrong_inputs(
    channel_shuffle,
    (lambda t: case(t(1, 3, 2), 2), RuntimeError, "channel_shuffle: 3 channels are not a multiple of 2 groups"),
)

native_channel_shuffle, unfold, fold = channel_shuffle, unfold_columns, fold_columns
FUNCTIONAL = ["unfold", "fold", "channel_shuffle", "native_channel_shuffle", "pixel_shuffle", "pixel_unshuffle"]
__all__ = ["channel_shuffle", "native_channel_shuffle", "pixel_shuffle", "pixel_unshuffle"]
