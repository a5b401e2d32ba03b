"""Normalisation layers."""

from __future__ import annotations

from typing import Any

from genesis.base.errors import ShapeError, message
from genesis.core.call.refusal import explain_all
from genesis.core.graph.modes import no_grad
from genesis.core.graph.tensor import Tensor
from genesis.nn.module import Module
from genesis.nn.parameter import Parameter
from genesis.ops.creation import create, outside
from genesis.ops.learning.norm import batch_norm, group_norm, layer_norm, rms_norm


class LayerNorm(Module):
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
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        make = {"device": device, "dtype": dtype}
        self.register_parameter(
            "weight", Parameter(create.ones(self.normalized_shape, **make)) if elementwise_affine else None
        )
        self.register_parameter(
            "bias", Parameter(create.zeros(self.normalized_shape, **make)) if elementwise_affine and bias else None
        )

    def forward(self, input: Tensor) -> Tensor:
        return layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class RMSNorm(Module):
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
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self.register_parameter(
            "weight",
            Parameter(create.ones(self.normalized_shape, device=device, dtype=dtype)) if elementwise_affine else None,
        )

    def forward(self, input: Tensor) -> Tensor:
        return rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class _BatchNorm(Module):
    dims: tuple[int, ...] = ()

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum, self.affine, self.track_running_stats = (
            num_features,
            eps,
            momentum,
            affine,
            track_running_stats,
        )
        self.register_parameter("weight", Parameter(create.ones(num_features)) if affine else None)
        self.register_parameter("bias", Parameter(create.zeros(num_features)) if affine else None)
        self.register_buffer("running_mean", create.zeros(num_features) if track_running_stats else None)
        self.register_buffer("running_var", create.ones(num_features) if track_running_stats else None)
        self.register_buffer("num_batches_tracked", outside.tensor(0) if track_running_stats else None)

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in self.dims:
            raise ShapeError(
                message(
                    type(self).__name__,
                    f"expected {' or '.join(f'{d}-D' for d in self.dims)} input, got {input.ndim}-D",
                )
            )
        momentum: float | Tensor = self.momentum or 0.0
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            with no_grad():
                self.num_batches_tracked.add_(1)
            momentum = 1 / self.num_batches_tracked.double() if self.momentum is None else self.momentum
        use_batch = self.training or (self.running_mean is None and self.running_var is None)
        # with tracking switched off, training leaves the statistics alone
        tracked = not self.training or self.track_running_stats
        mean, var = (self.running_mean, self.running_var) if tracked else (None, None)
        return batch_norm(input, mean, var, self.weight, self.bias, use_batch, momentum, self.eps)

    def reset_running_stats(self) -> None:
        """Forget the statistics of the batches so far."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def extra_repr(self) -> str:
        return f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, track_running_stats={self.track_running_stats}"


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


class GroupNorm(Module):
    """`group_norm` with learned weight and bias.

    >>> import genesis
    >>> genesis.nn.GroupNorm(2, 4)(genesis.randn(3, 4, 5)).shape
    genesis.Size([3, 4, 5])
    """

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True) -> None:
        super().__init__()
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self.register_parameter("weight", Parameter(create.ones(num_channels)) if affine else None)
        self.register_parameter("bias", Parameter(create.zeros(num_channels)) if affine else None)

    def forward(self, input: Tensor) -> Tensor:
        return group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"


explain_all(globals(), "LayerNorm", "RMSNorm", "_BatchNorm", "GroupNorm")
