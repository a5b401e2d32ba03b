"""Constant folding: what does not depend on any input."""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.core.graph.tensor import wrap
from genesis.jit.graph import Graph
from genesis.jit.nodes import repeatable
from genesis.jit.replay import run_node

LIMIT = 1 << 16  # elements: larger results are computed at every call rather than kept


def constant_folding(graph: Graph) -> Graph:
    """Compute now what is made of constants only.

    Before: ``c = constant; a = exp(c); b = mul(x, a)``     After: ``a = constant; b = mul(x, a)``

    >>> import genesis
    >>> from genesis import jit
    >>> graph = jit.trace(lambda x: x * genesis.arange(2).exp(), genesis.ones(2))
    >>> [n.op for n in graph.nodes], [n.op for n in jit.constant_folding(graph).nodes]
    (['exp', 'mul'], ['mul'])
    """
    values: dict[Any, Any] = {var: wrap(array) for var, array in graph.constants}
    constants, nodes = list(graph.constants), []
    for node in graph.nodes:
        inputs = list(node.inputs)
        small = all(np.prod(v.spec.shape) <= LIMIT for v in node.outs)
        if repeatable(node) and inputs and small and all(v in values for v in inputs):
            run_node(node, values, [])
            constants += [(v, np.array(values[v]._array)) for v in node.outs]
        else:
            nodes.append(node)
    return graph.with_nodes(nodes, constants=constants)
