"""From functions to graphs: tracing, and passes over what was traced. (Replays run op by op; graphs are not compiled yet.)

`tracer`   run a function on traced arrays, keep the graph        `graph`   nodes, replay, printing, verify
`traced`   the arrays: variables with memory                      `passes`  Graph -> Graph, one file each
"""

from __future__ import annotations

from genesis.core.tracing import advance, host
from genesis.jit.graph import Graph, Node, Var
from genesis.jit.passes import common_subexpressions, constant_folding, dead_code, optimized, simplification
from genesis.jit.tracer import trace

__all__ = ["Graph", "Node", "Var", "advance", "common_subexpressions", "constant_folding", "dead_code", "host", "optimized", "simplification", "trace"]
