"""Batch norm over the batches of all ranks."""

from __future__ import annotations

from typing import Any

from genesis.base.errors import message
from genesis.base.late import Late
from genesis.core.graph.modes import no_grad
from genesis.core.graph.tensor import Tensor
from genesis.nn.module import Module
from genesis.nn.norm import _BatchNorm, _WrongDims
from genesis.ops.creation import create
from genesis.ops.reductions.spread import var_mean
from genesis.ops.shapes.join import cat

_groups, _collectives = Late("genesis.distributed.groups"), Late("genesis.distributed.nn.ops")


class SyncBatchNorm(_BatchNorm):
    r"""`batch_norm` whose mean and variance in training are those of the batches of all ranks of a group together.

    Of rank :math:`r` with :math:`n_r` values of a channel, of mean :math:`\mu_r` and variance :math:`\sigma_r^2`,

    .. math:: \mu = \sum_r \frac{n_r}{n} \mu_r, \quad
              \sigma^2 = \sum_r \frac{n_r}{n} \left(\sigma_r^2 + (\mu_r - \mu)^2\right)

    (Chan, Golub and LeVeque, 1979), gathered in one call forward and one backward. Inputs are (N, C, ...) of any number of
    dimensions, N may be another one in each rank, and 0. Evaluation, one rank, and a program without
    `init_process_group` are as `BatchNorm1d`.

    Args:
        process_group: the ranks that share statistics; all of them for None

    Raises:
        ValueError: inputs of fewer than two dimensions, or one value of a channel in all ranks together

    >>> import genesis
    >>> genesis.nn.SyncBatchNorm(3)(genesis.randn(4, 3, 2)).shape
    genesis.Size([4, 3, 2])
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype)  # type: ignore[arg-type]
        self.process_group = process_group

    def _check_dims(self, input: Tensor) -> None:
        if input.ndim < 2:
            raise _WrongDims(message("SyncBatchNorm", f"expected at least 2-D input, got {input.ndim}-D"))

    def forward(self, input: Tensor) -> Tensor:
        if not (self.training and _groups.is_initialized()):
            return super().forward(input)
        members = _groups.group_of("SyncBatchNorm", self.process_group)
        if members.engine.size == 1:
            return super().forward(input)
        self._check_dims(input)
        running_mean, running_var, _, momentum = self._next_batch()
        key = None if members is _groups.GroupMember.WORLD else members.key
        x = input.float() if input.dtype.itemsize < 4 else input  # type: ignore[attr-defined]
        mean, var, count = self._shared(x, key)
        if running_mean is not None:
            with no_grad():
                running_mean.mul_(1 - momentum).add_(momentum * mean)
                running_var.mul_(1 - momentum).add_(momentum * (var * (count / (count - 1))))
        ahead = (-1, *(1,) * (x.ndim - 2))
        scale = (var + self.eps).rsqrt()
        if self.weight is not None:
            scale = scale * self.weight
        out = (x - mean.reshape(ahead)) * scale.reshape(ahead)
        if self.bias is not None:
            out = out + self.bias.reshape(ahead)
        return out.to(input.dtype)  # type: ignore[no-any-return]

    def _shared(self, x: Any, key: str | None) -> tuple[Any, Any, Any]:
        """Mean and variance of each channel in all ranks, and of how many values."""
        channels, dims = x.shape[1], (0, *range(2, x.ndim))
        own = x.numel() // channels if channels else 0
        if own:
            var, mean = var_mean(x, dims, correction=0)
        else:
            var = mean = x.sum(dims)  # zeros, with a history: the gradient's collective is called by all ranks
        counted = create.full((1,), own, dtype=x.dtype)
        means, variances, counts = _collectives.all_gather_stacked(cat([mean, var, counted]), key).split(
            [channels, channels, 1], 1
        )
        total = counts.sum()
        if own <= 1 and total <= 1:
            text = f"expected more than 1 value of each channel in training, got {int(total)} in all ranks together"
            raise _WrongDims(message("SyncBatchNorm", text, [("input", x._spec())]))
        share = counts / total
        mean = (share * means).sum(0)
        return mean, (share * (variances + (means - mean).square())).sum(0), total

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Any:
        """The module with its batch norms replaced by these, which share their parameters and statistics.

        >>> import genesis
        >>> net = genesis.nn.Sequential(genesis.nn.BatchNorm1d(3))
        >>> type(genesis.nn.SyncBatchNorm.convert_sync_batchnorm(net)[0]).__name__
        'SyncBatchNorm'
        """
        if isinstance(module, _BatchNorm):
            made = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
            )
            made._parameters.update(module._parameters)
            made._buffers.update(module._buffers)
            return made.train(module.training)
        for name, child in list(module.named_children()):
            setattr(module, name, cls.convert_sync_batchnorm(child, process_group))
        return module
