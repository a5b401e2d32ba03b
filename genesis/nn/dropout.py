"""Dropout."""

from __future__ import annotations

from genesis.base.errors import ArgumentValueError, message
from genesis.core.call.refusal import explain_all
from genesis.core.graph.tensor import Tensor
from genesis.nn.module import Module
from genesis.ops.learning.dropout import dropout


class Dropout(Module):
    """Zero elements with probability ``p`` in training, and scale the others by 1 / (1 - p).

    >>> import genesis
    >>> genesis.nn.Dropout(0.5).eval()(genesis.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ArgumentValueError(message("Dropout", f"p must be between 0 and 1, got {p}"))
        self.p, self.inplace = p, inplace

    def forward(self, input: Tensor) -> Tensor:
        return dropout(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


explain_all(globals())
