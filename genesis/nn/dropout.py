"""Dropout: of elements, of whole channels, and of what follows SELU."""

from __future__ import annotations

from typing import Any

from genesis.base.errors import ArgumentValueError, message
from genesis.core.call.refusal import explain_all
from genesis.core.graph.tensor import Tensor
from genesis.nn.module import Module
from genesis.ops.learning.dropout import dropout
from genesis.ops.spatial import channels


class _Dropout(Module):
    """What all of them have: a probability, and that evaluation leaves the input as it is."""

    function: Any = None

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ArgumentValueError(message(type(self).__name__, f"p must be between 0 and 1, got {p}"))
        self.p, self.inplace = p, inplace

    def forward(self, input: Tensor) -> Tensor:
        return type(self).function(input, self.p, self.training, self.inplace)  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """Zero elements with probability ``p`` in training, and scale the others by 1 / (1 - p).

    >>> import genesis
    >>> genesis.nn.Dropout(0.5).eval()(genesis.ones(2))
    tensor([1., 1.])
    """

    function = staticmethod(dropout)


class Dropout1d(_Dropout):
    """`dropout1d` in training: whole channels of signals (N, C, L) or (C, L).

    >>> import genesis
    >>> genesis.nn.Dropout1d(1.0)(genesis.ones(1, 1, 2))
    tensor([[[0., 0.]]])
    """

    function = staticmethod(channels.dropout1d)


class Dropout2d(_Dropout):
    """`dropout2d` in training: whole channels of images (N, C, H, W).

    >>> import genesis
    >>> genesis.nn.Dropout2d(1.0)(genesis.ones(1, 1, 1, 2))
    tensor([[[[0., 0.]]]])
    """

    function = staticmethod(channels.dropout2d)


class Dropout3d(_Dropout):
    """`dropout3d` in training: whole channels of volumes (N, C, D, H, W) or (C, D, H, W).

    >>> import genesis
    >>> genesis.nn.Dropout3d(1.0)(genesis.ones(1, 1, 1, 1, 2)).sum()
    tensor(0.)
    """

    function = staticmethod(channels.dropout3d)


class AlphaDropout(_Dropout):
    """`alpha_dropout` in training, for what follows SELU: mean 0 and variance 1 stay.

    >>> import genesis
    >>> genesis.nn.AlphaDropout().eval()(genesis.ones(2))
    tensor([1., 1.])
    """

    function = staticmethod(channels.alpha_dropout)


class FeatureAlphaDropout(_Dropout):
    """`feature_alpha_dropout` in training: `AlphaDropout` of whole channels.

    >>> import genesis
    >>> genesis.nn.FeatureAlphaDropout().eval()(genesis.ones(1, 2))
    tensor([[1., 1.]])
    """

    function = staticmethod(channels.feature_alpha_dropout)


explain_all(globals(), "_Dropout")
