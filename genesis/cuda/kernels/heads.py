"""The loss of a last layer, some rows at a time (`genesis.kernels.heads`): gradients are added up where they are, and the losses
are those of `losses`.
"""

from __future__ import annotations

from typing import Any

from genesis.core.call.halves import F32
from genesis.core.graph.tensor import wrap
from genesis.cuda.arrays import CudaArray
from genesis.cuda.kernels import losses, padded
from genesis.cuda.kernels.loss_gradients import with_gradient
from genesis.cuda.kernels.wanted import kernels_wanted
from genesis.cuda.libraries import cublaslt
from genesis.kernels import heads


def _add_product(total: CudaArray, left: CudaArray, right: CudaArray, adds: bool) -> None:
    for x, y, _, into, again in padded.divided(left, right, None, total):
        if total.dtype != x.dtype or cublaslt.multiplied(x, y, None, into, 1, (0, 0), adds or again) is None:
            product, whole = wrap(x) @ wrap(y), wrap(into)
            whole.add_(product) if adds or again else whole.copy_(product)


def _mean_loss(logits: CudaArray, target: CudaArray, ignored: int, g: CudaArray | None) -> tuple[CudaArray, Any]:
    if g is None:
        return losses.entropy(logits, target, ignored, F32)[0], None
    return with_gradient(g, logits, target, ignored, F32)


heads.attach_to(CudaArray, _add_product, _mean_loss, kernels_wanted)
