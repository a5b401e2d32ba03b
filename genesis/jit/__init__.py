"""From functions to graphs: tracing, and passes over what was traced. (Replays run op by op; graphs are not compiled
yet.)

`tracer`     run a function on traced arrays, keep the graph        `nodes`    variables, nodes, what stands at the border
`traced`     the arrays: variables with memory                      `graph`    the graph: printing, verify
`memory`     what comes from outside, what the function made        `replay`   running it op by op
`gradients`  the .grad of what comes from outside                   `passes`   Graph -> Graph, one file each
"""

from __future__ import annotations

from genesis.core.graph.tracing import advance, host, keep
from genesis.jit.graph import Graph
from genesis.jit.nodes import Node, Var
from genesis.jit.passes import common_subexpressions, constant_folding, dead_code, optimized, simplification
from genesis.jit.tracer import trace

__all__ = [
    "Graph",
    "Node",
    "Var",
    "advance",
    "common_subexpressions",
    "constant_folding",
    "dead_code",
    "host",
    "keep",
    "optimized",
    "simplification",
    "trace",
]
