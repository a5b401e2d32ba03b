"""Layers that change the size of images: interpolation, shuffles, and windows as columns."""

from __future__ import annotations

from typing import Any

from genesis.core.call.refusal import explain_all
from genesis.core.graph.tensor import Tensor
from genesis.nn.module import Module
from genesis.ops.spatial import folding
from genesis.ops.spatial.interpolation import interpolate


class Upsample(Module):
    """`interpolate` with arguments that are given once.

    >>> import genesis
    >>> genesis.nn.Upsample(scale_factor=2, mode="bilinear")(genesis.ones(1, 1, 2, 3)).shape
    genesis.Size([1, 1, 4, 6])
    """

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.size, self.mode, self.align_corners = size, mode, align_corners
        self.scale_factor = tuple(map(float, scale_factor)) if isinstance(scale_factor, list | tuple) else scale_factor
        if isinstance(self.scale_factor, int):
            self.scale_factor = float(self.scale_factor)
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return interpolate(  # type: ignore[no-any-return]
            input, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor
        )

    def extra_repr(self) -> str:
        what = f"size={self.size!r}" if self.scale_factor is None else f"scale_factor={self.scale_factor!r}"
        return f"{what}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """`Upsample` of images with mode "nearest".

    >>> import genesis
    >>> genesis.nn.UpsamplingNearest2d(scale_factor=2)(genesis.ones(1, 1, 2, 3)).shape
    genesis.Size([1, 1, 4, 6])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """`Upsample` of images with mode "bilinear", corners aligned.

    >>> import genesis
    >>> genesis.nn.UpsamplingBilinear2d(size=3)(genesis.tensor([[[[0., 1.], [2., 3.]]]])).flatten()
    tensor([0.0000, 0.5000, 1.0000, 1.0000, 1.5000, 2.0000, 2.0000, 2.5000, 3.0000])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "bilinear", True)


class PixelShuffle(Module):
    """`pixel_shuffle`: channels become places.

    >>> import genesis
    >>> genesis.nn.PixelShuffle(2)(genesis.ones(1, 8, 3, 3)).shape
    genesis.Size([1, 2, 6, 6])
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return folding.pixel_shuffle(input, self.upscale_factor)  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """`pixel_unshuffle`: places become channels.

    >>> import genesis
    >>> genesis.nn.PixelUnshuffle(2)(genesis.ones(1, 2, 6, 6)).shape
    genesis.Size([1, 8, 3, 3])
    """

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return folding.pixel_unshuffle(input, self.downscale_factor)  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """`channel_shuffle`: channels of several groups in turns.

    >>> import genesis
    >>> genesis.nn.ChannelShuffle(2)(genesis.ones(1, 4, 3)).shape
    genesis.Size([1, 4, 3])
    """

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return folding.channel_shuffle(input, self.groups)  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        return f"groups={self.groups}"


class Unfold(Module):
    """`unfold`: the windows of images as columns.

    >>> import genesis
    >>> genesis.nn.Unfold(2)(genesis.ones(1, 3, 4, 4)).shape
    genesis.Size([1, 12, 9])
    """

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return folding.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, stride={self.stride}"


class Fold(Module):
    """`fold`: images from windows in columns.

    >>> import genesis
    >>> genesis.nn.Fold((4, 4), 2)(genesis.ones(1, 12, 9)).shape
    genesis.Size([1, 3, 4, 4])
    """

    def __init__(
        self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ) -> None:
        super().__init__()
        self.output_size, self.kernel_size = output_size, kernel_size
        self.dilation, self.padding, self.stride = dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return folding.fold(  # type: ignore[no-any-return]
            input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride
        )

    def extra_repr(self) -> str:
        return (
            f"output_size={self.output_size}, kernel_size={self.kernel_size}, dilation={self.dilation}, "
            f"padding={self.padding}, stride={self.stride}"
        )


explain_all(globals())

__all__ = [
    "ChannelShuffle",
    "Fold",
    "PixelShuffle",
    "PixelUnshuffle",
    "Unfold",
    "Upsample",
    "UpsamplingBilinear2d",
    "UpsamplingNearest2d",
]
