"""The history of a value whose derivative is not known: it leads to the inputs, and says why when a derivative is asked
for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from genesis.base.errors import GraphError
from genesis.core.graph.node import NOWHERE, Node, recorded
from genesis.core.graph.tensor import Tensor


class UnknownDerivative(Node):
    """The history of a value whose derivative is not known: an error when it is asked for."""

    __slots__ = ("reason",)
    op_name = "unknown derivative"
    _frees = False
    reason: str

    def _pull(self, g: Any) -> Sequence[Any]:
        raise GraphError(self.reason)


def without_derivative(t: Tensor, edges: Sequence[Any], reason: str) -> Tensor:
    """The same value with a history that leads to the inputs but cannot be differentiated."""
    node = recorded(UnknownDerivative, tuple(edges), t._array, (), NOWHERE)
    node.reason = reason
    return t._alias(node)
