"""Neural networks: modules, their parameters, losses and initialisation.

`module` `parameter`    what a module is          `activation` `dropout` `norm` `linear` `sparse` `flatten`   layers
`conv` `pooling` `padding` `upsampling`   of images, signals and volumes   `lazy`   of shapes that the first input tells
`attention` `transformer` `rnn` `rnn_cells`   of sequences     `adaptive`   of many classes
`container`             modules of modules        `loss`         losses          `init`        first values
`functional`            the same as functions     `utils`        what is done with parameters and gradients
"""

from __future__ import annotations

from functools import partial as _partial
from typing import TYPE_CHECKING

from genesis.base.imports import of_pytorch as _of_pytorch
from genesis.nn import attention, functional, init, parallel, utils
from genesis.nn.activation import *  # noqa: F403
from genesis.nn.activation import __all__ as _activations
from genesis.nn.adaptive import AdaptiveLogSoftmaxWithLoss
from genesis.nn.attention import MultiheadAttention
from genesis.nn.container import Container, ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
from genesis.nn.conv import *  # noqa: F403
from genesis.nn.conv import __all__ as _convolutions
from genesis.nn.dropout import AlphaDropout, Dropout, Dropout1d, Dropout2d, Dropout3d, FeatureAlphaDropout
from genesis.nn.flatten import Flatten, Unflatten
from genesis.nn.lazy import *  # noqa: F403
from genesis.nn.lazy import __all__ as _lazy
from genesis.nn.linear import Bilinear, Identity, Linear
from genesis.nn.loss import *  # noqa: F403
from genesis.nn.loss import __all__ as _losses
from genesis.nn.module import Module
from genesis.nn.norm import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    CrossMapLRN2d,
    GroupNorm,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    LayerNorm,
    LocalResponseNorm,
    RMSNorm,
)
from genesis.nn.padding import *  # noqa: F403
from genesis.nn.padding import __all__ as _borders
from genesis.nn.parallel import DataParallel
from genesis.nn.parameter import Buffer, Parameter, factory_kwargs
from genesis.nn.pooling import *  # noqa: F403
from genesis.nn.pooling import __all__ as _pools
from genesis.nn.rnn import GRU, LSTM, RNN, RNNBase
from genesis.nn.rnn_cells import GRUCell, LSTMCell, RNNCell, RNNCellBase
from genesis.nn.sparse import Embedding, EmbeddingBag
from genesis.nn.summary import Summary, summary
from genesis.nn.sync_norm import SyncBatchNorm
from genesis.nn.transformer import (
    Transformer,
    TransformerDecoder,
    TransformerDecoderLayer,
    TransformerEncoder,
    TransformerEncoderLayer,
)
from genesis.nn.upsampling import *  # noqa: F403
from genesis.nn.upsampling import __all__ as _upsampling
from genesis.ops.losses.numbers import BroadcastWarning, allow_loss_broadcast

if not TYPE_CHECKING:  # who checks types knows all there is
    __getattr__ = _partial(_of_pytorch, __name__)  # names that only PyTorch has

__all__ = [
    "AdaptiveLogSoftmaxWithLoss",
    "AlphaDropout",
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "Bilinear",
    "BroadcastWarning",
    "Buffer",
    "Container",
    "DataParallel",
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Dropout3d",
    "Embedding",
    "EmbeddingBag",
    "FeatureAlphaDropout",
    "Flatten",
    "GRU",
    "GRUCell",
    "GroupNorm",
    "Identity",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LSTM",
    "LSTMCell",
    "LayerNorm",
    "Linear",
    "CrossMapLRN2d",
    "LocalResponseNorm",
    "SyncBatchNorm",
    "Module",
    "ModuleDict",
    "ModuleList",
    "MultiheadAttention",
    "Parameter",
    "ParameterDict",
    "ParameterList",
    "RMSNorm",
    "RNN",
    "RNNBase",
    "RNNCell",
    "RNNCellBase",
    "Sequential",
    "Summary",
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
    "Unflatten",
    "allow_loss_broadcast",
    "attention",
    "factory_kwargs",
    "functional",
    "init",
    "parallel",
    "summary",
    "utils",
    *_activations,
    *_borders,
    *_convolutions,
    *_lazy,
    *_pools,
    *_upsampling,
    *_losses,
]
