"""Normalisation layers."""

from __future__ import annotations

from typing import Any

from genesis.base.dtypes import whole
from genesis.base.errors import ArgumentValueError, ShapeError, message
from genesis.core.call.refusal import explain_all
from genesis.core.graph.modes import no_grad
from genesis.core.graph.tensor import Tensor
from genesis.nn import init
from genesis.nn.module import Module
from genesis.nn.parameter import Parameter
from genesis.ops.creation import create, outside
from genesis.ops.learning.norm import batch_norm, group_norm, layer_norm, rms_norm
from genesis.ops.shapes.join import stack
from genesis.ops.spatial.channels import instance_norm, local_response_norm


class _Affine(Module):
    """What norms have: a weight that begins as 1, a bias that begins as 0, or neither."""

    def reset_parameters(self) -> None:
        """Weight 1, bias 0."""
        for name, first in (("weight", init.ones_), ("bias", init.zeros_)):
            p = self._parameters.get(name)
            if p is not None:
                first(p)


class _LastDimsNorm(_Affine):
    """What layer and RMS norms have: the sizes of the last dimensions, and a weight for each of their elements."""

    def __init__(
        self, normalized_shape: Any, eps: float | None, elementwise_affine: bool, make: dict[str, Any]
    ) -> None:
        super().__init__()
        sizes = whole(normalized_shape)
        self.normalized_shape = (sizes,) if isinstance(sizes, int) else tuple(sizes)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self.register_parameter(
            "weight", Parameter(create.ones(self.normalized_shape, **make)) if elementwise_affine else None
        )

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class LayerNorm(_LastDimsNorm):
    """`layer_norm` with learned weight and bias.

    >>> import genesis
    >>> genesis.nn.LayerNorm(4)(genesis.randn(2, 4)).shape
    genesis.Size([2, 4])
    """

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        make = {"device": device, "dtype": dtype}
        super().__init__(normalized_shape, eps, elementwise_affine, make)
        self.register_parameter(
            "bias", Parameter(create.zeros(self.normalized_shape, **make)) if elementwise_affine and bias else None
        )

    def forward(self, input: Tensor) -> Tensor:
        return layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, bias={self.bias is not None}"


class RMSNorm(_LastDimsNorm):
    """`rms_norm` with a learned weight.

    >>> import genesis
    >>> genesis.nn.RMSNorm(4)(genesis.randn(2, 4)).shape
    genesis.Size([2, 4])
    """

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(normalized_shape, eps, elementwise_affine, {"device": device, "dtype": dtype})

    def forward(self, input: Tensor) -> Tensor:
        return rms_norm(input, self.normalized_shape, self.weight, self.eps)


class _ChannelNorm(_Affine):
    """What batch and instance norms have: a weight and a bias for each channel, and running statistics."""

    dims: tuple[int, ...] = ()

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        make = {"device": device, "dtype": dtype}
        self.register_parameter("weight", Parameter(create.ones(num_features, **make)) if affine else None)
        self.register_parameter("bias", Parameter(create.zeros(num_features, **make)) if affine and bias else None)
        self.register_buffer("running_mean", create.zeros(num_features, **make) if track_running_stats else None)
        self.register_buffer("running_var", create.ones(num_features, **make) if track_running_stats else None)
        count = outside.tensor(0, device=device) if track_running_stats else None
        self.register_buffer("num_batches_tracked", count)

    def reset_running_stats(self) -> None:
        """Mean 0, variance 1, no batches."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Running statistics as at first, weight 1, bias 0."""
        self.reset_running_stats()
        super().reset_parameters()

    def channels_of(self, input: Tensor) -> int:
        """The dimension of channels."""
        return 1

    def _check_dims(self, input: Tensor) -> None:
        if input.ndim not in self.dims:
            expected = " or ".join(f"{d}-D" for d in self.dims)
            raise _WrongDims(message(type(self).__name__, f"expected {expected} input, got {input.ndim}-D"))

    def extra_repr(self) -> str:
        return f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, bias={self.bias is not None}, track_running_stats={self.track_running_stats}"


class _WrongDims(ShapeError, ArgumentValueError):
    """An input of another number of dimensions: a ValueError in PyTorch."""


class _BatchNorm(_ChannelNorm):
    def forward(self, input: Tensor) -> Tensor:
        self._check_dims(input)
        mean, var, use_batch, momentum = self._next_batch()
        return batch_norm(input, mean, var, self.weight, self.bias, use_batch, momentum, self.eps)

    def _next_batch(self) -> tuple[Any, Any, bool, Any]:
        """The running statistics, whether the batch's own are used, and how much they count."""
        momentum: float | Tensor = self.momentum or 0.0
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            with no_grad():
                self.num_batches_tracked.add_(1)
            momentum = 1 / self.num_batches_tracked.double() if self.momentum is None else self.momentum
        use_batch = self.training or (self.running_mean is None and self.running_var is None)
        # with tracking switched off, training leaves the statistics alone
        tracked = not self.training or self.track_running_stats
        mean, var = (self.running_mean, self.running_var) if tracked else (None, None)
        return mean, var, use_batch, momentum


class BatchNorm1d(_BatchNorm):
    """`batch_norm` of (N, C) or (N, C, L), with running statistics.

    >>> import genesis
    >>> genesis.nn.BatchNorm1d(3)(genesis.randn(4, 3)).shape
    genesis.Size([4, 3])
    """

    dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """`batch_norm` of images (N, C, H, W), with running statistics.

    >>> import genesis
    >>> genesis.nn.BatchNorm2d(3)(genesis.randn(4, 3, 2, 2)).shape
    genesis.Size([4, 3, 2, 2])
    """

    dims = (4,)


class BatchNorm3d(_BatchNorm):
    """`batch_norm` of volumes (N, C, D, H, W), with running statistics.

    >>> import genesis
    >>> genesis.nn.BatchNorm3d(3)(genesis.randn(4, 3, 2, 2, 2)).shape
    genesis.Size([4, 3, 2, 2, 2])
    """

    dims = (5,)


class _InstanceNorm(_ChannelNorm):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def channels_of(self, input: Tensor) -> int:
        return input.ndim - self.dims[0]

    def forward(self, input: Tensor) -> Tensor:
        self._check_dims(input)
        alone = input.ndim == self.dims[0]
        x = input.unsqueeze(0) if alone else input  # type: ignore[attr-defined]
        if self.weight is not None and x.shape[1] != self.weight.shape[0]:
            text = f"expected {self.weight.shape[0]} channels, got {x.shape[1]}"
            raise _WrongDims(message(type(self).__name__, text, [("input", input._spec())]))
        use = self.training or not self.track_running_stats
        out = instance_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, use, self.momentum or 0.0, self.eps
        )
        return out.squeeze(0) if alone else out  # type: ignore[no-any-return]


class InstanceNorm1d(_InstanceNorm):
    """`instance_norm` of (N, C, L) or (C, L); without weight, bias and running statistics unless asked for.

    >>> import genesis
    >>> genesis.nn.InstanceNorm1d(3)(genesis.randn(4, 3, 5)).shape
    genesis.Size([4, 3, 5])
    """

    dims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """`instance_norm` of images (N, C, H, W) or (C, H, W); see `InstanceNorm1d`.

    >>> import genesis
    >>> genesis.nn.InstanceNorm2d(3, affine=True)(genesis.randn(4, 3, 5, 5)).shape
    genesis.Size([4, 3, 5, 5])
    """

    dims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """`instance_norm` of volumes (N, C, D, H, W) or (C, D, H, W); see `InstanceNorm1d`.

    >>> import genesis
    >>> genesis.nn.InstanceNorm3d(2)(genesis.randn(2, 3, 3, 3)).shape
    genesis.Size([2, 3, 3, 3])
    """

    dims = (4, 5)


class LocalResponseNorm(Module):
    """`local_response_norm` with arguments that are given once.

    >>> import genesis
    >>> genesis.nn.LocalResponseNorm(2)(genesis.randn(1, 3, 2, 2)).shape
    genesis.Size([1, 3, 2, 2])
    """

    def __init__(self, size: int, alpha: float = 0.0001, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Tensor) -> Tensor:
        return local_response_norm(input, self.size, self.alpha, self.beta, self.k)  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(Module):
    """The form of `LocalResponseNorm` that PyTorch took over from Torch 7, whose sums of channels leave one out late.

    Raises:
        RuntimeError: a size that is not positive, or an input that is not (N, C, H, W)

    >>> import genesis
    >>> genesis.nn.CrossMapLRN2d(2)(genesis.randn(1, 3, 2, 2)).shape
    genesis.Size([1, 3, 2, 2])
    """

    def __init__(self, size: int, alpha: float = 0.0001, beta: float = 0.75, k: float = 1) -> None:
        super().__init__()
        if size < 1:
            raise ShapeError(message("CrossMapLRN2d", f"size must be positive, got {size}"))
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim != 4:
            raise ShapeError(message("CrossMapLRN2d", f"expected 4-D input, got {input.ndim}-D"))
        squares: Any = (input * input).unbind(1)  # type: ignore[operator, attr-defined]
        count, ahead = len(squares), int((self.size - 1) / 2 + 1)
        sums = [sum(squares[1 : min(ahead, count)], squares[0])]
        for c in range(1, count):
            total = sums[-1]
            if c < count - ahead + 1:
                total = total + squares[c + ahead - 1]
            if c > ahead:
                total = total - squares[c - ahead]
            sums.append(total)
        scale = stack(sums, 1) * (self.alpha / self.size) + self.k
        return input * scale**-self.beta  # type: ignore[operator, no-any-return]

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class GroupNorm(_Affine):
    """`group_norm` with learned weight and bias.

    >>> import genesis
    >>> genesis.nn.GroupNorm(2, 4)(genesis.randn(3, 4, 5)).shape
    genesis.Size([3, 4, 5])
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        make = {"device": device, "dtype": dtype}
        self.register_parameter("weight", Parameter(create.ones(num_channels, **make)) if affine else None)
        self.register_parameter("bias", Parameter(create.zeros(num_channels, **make)) if affine and bias else None)

    def forward(self, input: Tensor) -> Tensor:
        return group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        affine = f"affine={self.affine}, bias={self.bias is not None}"
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, {affine}"


explain_all(
    globals(),
    "LayerNorm",
    "RMSNorm",
    "_ChannelNorm",
    "_InstanceNorm",
    "LocalResponseNorm",
    "CrossMapLRN2d",
    "GroupNorm",
)
