"""Constant folding: what does not depend on any input."""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.arrays.memory import on_the_host, placed
from genesis.core.graph.tensor import wrap
from genesis.jit.passes.on_graphs import on_graphs
from genesis.jit.program import Program, repeatable
from genesis.jit.replay import computed

LIMIT = 1 << 16  # elements: larger results are computed at every call rather than kept


@on_graphs
def constant_folding(program: Program) -> Program:
    """Compute now what is made of constants only.

    Before: ``c = constant; a = exp(c); b = mul(x, a)``     After: ``a = constant; b = mul(x, a)``

    >>> import genesis
    >>> from genesis import jit
    >>> graph = jit.trace(lambda x: x * genesis.arange(2).exp(), genesis.ones(2))
    >>> [n.op for n in graph.nodes], [n.op for n in jit.constant_folding(graph).nodes]
    (['exp', 'mul'], ['mul'])
    """
    values: dict[Any, Any] = {var: wrap(placed(array, var.spec.device)) for var, array in program.constants}
    constants, calls = list(program.constants), []
    for call in program.calls:
        inputs = list(call.inputs)
        small = all([np.prod(v.spec.shape) <= LIMIT for v in call.outs])
        if repeatable(call) and inputs and small and all([v in values for v in inputs]):
            values.update(zip(call.outs, computed(call, values), strict=True))
            constants += [(v, np.array(on_the_host(values[v]._array))) for v in call.outs]
        else:
            calls.append(call)
    return program.with_calls(calls, constants=constants)
