"""What is done with the parameters and gradients of modules.

`clip` gradients in bounds     `vectors` parameters as one vector     `parametrize` `parametrizations` `hooked` weights
that are computed     `prune` weights that are left out     `rnn` sequences of several lengths     `fusion` `skip` `stateless` whole modules
"""

from __future__ import annotations

from functools import partial as _partial
from typing import TYPE_CHECKING

from genesis.base.imports import of_pytorch as _of_pytorch
from genesis.nn.utils import parametrizations, parametrize, prune, rnn, stateless
from genesis.nn.utils.clip import (
    clip_grad_norm,
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)
from genesis.nn.utils.fusion import (
    fuse_conv_bn_eval,
    fuse_conv_bn_weights,
    fuse_linear_bn_eval,
    fuse_linear_bn_weights,
)
from genesis.nn.utils.hooked import remove_spectral_norm, remove_weight_norm, spectral_norm, weight_norm
from genesis.nn.utils.skip import skip_init
from genesis.nn.utils.vectors import parameters_to_vector, vector_to_parameters

if not TYPE_CHECKING:  # who checks types knows all there is
    __getattr__ = _partial(_of_pytorch, __name__)  # names that only PyTorch has

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
    "get_total_norm",
    "parameters_to_vector",
    "parametrizations",
    "parametrize",
    "prune",
    "remove_spectral_norm",
    "remove_weight_norm",
    "rnn",
    "skip_init",
    "spectral_norm",
    "stateless",
    "vector_to_parameters",
    "weight_norm",
]
