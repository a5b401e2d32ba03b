"""From functions to graphs: tracing, and passes over what was traced. (Replays run op by op; graphs are not compiled
yet.)

`tracer`     run a function on traced arrays, keep what it does   `program`    calls of ops: data, to be compared, stored and bound
`traced`     the arrays: variables with memory                      `arguments`  what a call may be called with
`memory`     what comes from outside, what the function made        `storage`    whose memory a value is
`gradients`  the .grad of what comes from outside                   `stored`     programs in files, digests
`guards`     what must still be true                                `binding`    a program with tensors, numbers and streams: a `Graph`
`replay`     running it op by op                                    `rebinding`  the same program with other tensors
`passes`     Program -> Program, one file each
"""

from __future__ import annotations

from genesis.core.graph.tracing import advance, host, keep
from genesis.jit.arguments import Stream, Var
from genesis.jit.binding import Binding, Graph
from genesis.jit.passes import common_subexpressions, constant_folding, dead_code, optimized, simplification
from genesis.jit.program import Call, Program
from genesis.jit.tracer import trace

Node = Call  # what it was called before

__all__ = [
    "Binding",
    "Call",
    "Graph",
    "Node",
    "Program",
    "Stream",
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
