"""Convolutions as layers."""

from __future__ import annotations

import math
from typing import Any

from genesis.base.errors import ArgumentValueError, ShapeError, message
from genesis.core.call.refusal import explain_all
from genesis.core.graph.tensor import Tensor
from genesis.nn import init
from genesis.nn.module import Module
from genesis.nn.parameter import Parameter
from genesis.ops import empty
from genesis.ops.spatial import convolution, convolutions
from genesis.ops.spatial.arguments import batched, per_dim
from genesis.ops.spatial.padding import pad

_MODES = ("zeros", "reflect", "replicate", "circular")


class _Convolution(Module):
    """What all of them have: weight, bias, and how the window moves."""

    dims = 0
    transposed = False
    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        dilation: Any,
        output_padding: Any,
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any,
        dtype: Any,
    ) -> None:
        super().__init__()
        name, dims = type(self).__name__, self.dims
        self.in_channels, self.out_channels, self.groups, self.padding_mode = (
            in_channels,
            out_channels,
            groups,
            padding_mode,
        )
        self.kernel_size = per_dim(name, "kernel_size", kernel_size, dims)
        self.stride, self.dilation = (
            per_dim(name, "stride", stride, dims),
            per_dim(name, "dilation", dilation, dims),
        )
        self.padding = padding if isinstance(padding, str) else per_dim(name, "padding", padding, dims)
        self.output_padding = per_dim(name, "output_padding", output_padding, dims)
        self._check(name)
        first, second = (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        make = {"device": device, "dtype": dtype}
        self.weight = Parameter(empty(first, second // groups, *self.kernel_size, **make))
        if bias:
            self.bias = Parameter(empty(out_channels, **make))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _check(self, name: str) -> None:
        if self.groups <= 0:
            raise ArgumentValueError(message(name, f"groups must be positive, got {self.groups}"))
        for what in ("in_channels", "out_channels"):
            if getattr(self, what) % self.groups:
                text = f"{what} {getattr(self, what)} is not a multiple of groups {self.groups}"
                raise ArgumentValueError(message(name, text))
        if self.padding_mode not in _MODES[: 1 if self.transposed else None]:
            text = f"padding_mode must be one of {list(_MODES)}, got {self.padding_mode!r}"
            if self.transposed:
                text = f"padding_mode of a transposed convolution must be 'zeros', got {self.padding_mode!r}"
            raise ArgumentValueError(message(name, text))
        if isinstance(self.padding, str):
            if self.padding not in ("same", "valid"):
                text = f"padding must be numbers, 'same' or 'valid', got {self.padding!r}"
                raise ArgumentValueError(message(name, text))
            if self.padding == "same" and set(self.stride) != {1}:
                raise ArgumentValueError(message(name, f"padding='same' needs stride 1, got {list(self.stride)}"))

    def reset_parameters(self) -> None:
        """Draw weight and bias anew: uniformly from $\\pm 1 / \\sqrt{n}$, with n elements in a window."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        window = self.weight.shape[1] * math.prod(self.kernel_size)
        if self.bias is not None and window:
            init.uniform_(self.bias, -1 / math.sqrt(window), 1 / math.sqrt(window))

    def _border(self) -> list[int]:
        """The padding as `pad` has it, for modes that the convolution does not know."""
        name = type(self).__name__
        if self.padding == "same":
            sides = convolutions.same_padding(name, self.kernel_size, self.stride, self.dilation)
        else:
            sides = [(0, 0) if self.padding == "valid" else (p, p) for p in self.padding]  # type: ignore[list-item]
        return [n for both in reversed(sides) for n in both]

    def extra_repr(self) -> str:
        zeros, ones = (0,) * self.dims, (1,) * self.dims
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        parts += [f"padding={self.padding}"] * (self.padding != zeros)
        parts += [f"dilation={self.dilation}"] * (self.dilation != ones)
        parts += [f"output_padding={self.output_padding}"] * (self.output_padding != zeros)
        parts += [f"groups={self.groups}"] * (self.groups != 1)
        parts += ["bias=False"] * (self.bias is None)
        parts += [f"padding_mode={self.padding_mode}"] * (self.padding_mode != "zeros")
        return ", ".join(parts)


class _Forward(_Convolution):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            0,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """With another weight: what layers call that compute theirs (standardized, of low rank) as PyTorch's do."""
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            input, padding = pad(input, self._border(), self.padding_mode), 0
        conv = _FUNCTIONS[self.dims]
        return conv(input, weight, bias, self.stride, padding, self.dilation, self.groups)  # type: ignore[no-any-return]


class _Transposed(_Convolution):
    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, output_padding, groups, bias, padding_mode,
            device, dtype,
        )  # fmt: skip

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        """The result; ``output_size`` chooses among the sizes that a convolution would bring to that of the input."""
        extra = self.output_padding if output_size is None else self._extra(input, output_size)
        conv = _TRANSPOSED[self.dims]
        return conv(  # type: ignore[no-any-return]
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )

    def _extra(self, input: Tensor, output_size: Any) -> tuple[int, ...]:
        name, dims = type(self).__name__, self.dims
        batched(name, input, dims)
        want = tuple(output_size)
        want = want[len(want) - dims :] if len(want) == input.ndim else want
        if len(want) != dims:
            text = f"output_size must have {dims} or {input.ndim} sizes, got {list(output_size)}"
            raise ArgumentValueError(message(name, text))
        least = convolution.spread_sizes(
            tuple(input.shape[-dims:]), self.kernel_size, self.stride, self.padding, self.dilation, (0,) * dims  # type: ignore[arg-type]
        )  # fmt: skip
        extra = tuple([n - m for n, m in zip(want, least, strict=True)])
        if any([not 0 <= e < s for e, s in zip(extra, self.stride, strict=True)]):
            most = [m + s - 1 for m, s in zip(least, self.stride, strict=True)]
            raise _WrongSize(
                message(name, f"output_size {list(want)} must be from {list(least)} to {most} for {input._spec()}")
            )
        return extra


class _WrongSize(ShapeError, ArgumentValueError):
    """A size that no input of a transposed convolution gives."""


class Conv1d(_Forward):
    """`conv1d` with learned weight and bias: signals (N, C, L) or (C, L).

    Args:
        padding: zeros on both sides, or 'same' or 'valid'
        padding_mode: 'zeros', or what stands there instead: 'reflect', 'replicate', 'circular'

    Raises:
        ValueError: channels that groups do not divide, an unknown padding or mode

    >>> import genesis
    >>> genesis.nn.Conv1d(2, 3, 5, padding="same")(genesis.randn(4, 2, 9)).shape
    genesis.Size([4, 3, 9])
    """

    dims = 1


class Conv2d(_Forward):
    """`conv2d` with learned weight and bias: images (N, C, H, W) or (C, H, W); see `Conv1d`.

    >>> import genesis
    >>> genesis.nn.Conv2d(3, 8, 3, stride=2, padding=1)(genesis.randn(4, 3, 8, 8)).shape
    genesis.Size([4, 8, 4, 4])
    """

    dims = 2


class Conv3d(_Forward):
    """`conv3d` with learned weight and bias: volumes (N, C, D, H, W) or (C, D, H, W); see `Conv1d`.

    >>> import genesis
    >>> genesis.nn.Conv3d(1, 2, 2)(genesis.randn(1, 1, 3, 3, 3)).shape
    genesis.Size([1, 2, 2, 2, 2])
    """

    dims = 3


class ConvTranspose1d(_Transposed):
    """`conv_transpose1d` with learned weight and bias: signals (N, C, L) or (C, L).

    Called with ``output_size``, it has that size, where its stride leaves a choice.

    Raises:
        ValueError: channels that groups do not divide, an output size that cannot be

    >>> import genesis
    >>> layer = genesis.nn.ConvTranspose1d(2, 3, 4, stride=2)
    >>> layer(genesis.randn(1, 2, 5)).shape, layer(genesis.randn(1, 2, 5), output_size=[13]).shape
    (genesis.Size([1, 3, 12]), genesis.Size([1, 3, 13]))
    """

    dims = 1


class ConvTranspose2d(_Transposed):
    """`conv_transpose2d` with learned weight and bias: images (N, C, H, W) or (C, H, W); see `ConvTranspose1d`.

    >>> import genesis
    >>> genesis.nn.ConvTranspose2d(8, 3, 4, stride=2, padding=1)(genesis.randn(1, 8, 4, 4)).shape
    genesis.Size([1, 3, 8, 8])
    """

    dims = 2


class ConvTranspose3d(_Transposed):
    """`conv_transpose3d` with learned weight and bias: volumes (N, C, D, H, W) or (C, D, H, W); see `ConvTranspose1d`.

    >>> import genesis
    >>> genesis.nn.ConvTranspose3d(2, 1, 2, stride=2)(genesis.randn(1, 2, 2, 2, 2)).shape
    genesis.Size([1, 1, 4, 4, 4])
    """

    dims = 3


_FUNCTIONS = {1: convolutions.conv1d, 2: convolutions.conv2d, 3: convolutions.conv3d}
_TRANSPOSED = {1: convolutions.conv_transpose1d, 2: convolutions.conv_transpose2d, 3: convolutions.conv_transpose3d}
explain_all(globals(), "_Convolution", "_Forward", "_Transposed")

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]
