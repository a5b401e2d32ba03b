"""From functions to graphs: tracing, passes over what was traced, and running it. (Replays run op by op; `genesis.compile`
runs a graph as one call.)

`tracer`     run a function on traced arrays, keep what it does
`traced`     the arrays: variables with memory
`memory`     what comes from outside, what the function made
`gradients`  the .grad of what comes from outside
`guards`     what must still be true
`numbers`    numbers of the host as questions that are asked at each call
`outcome`    what it leaves behind, and the graph of all that
`program`    calls of ops: data, to be compared, stored and bound
`arguments`  what a call may be called with
`storage`    whose memory a value is
`stored`     programs in files, digests
`passes`     Program -> Program, one file each
`binding`    a program with tensors, numbers and streams: a `Graph`
`rebinding`  the same program with other tensors
`replay`     running it op by op
`saved`      traced functions in files, with their tensors
`compiling`  functions that are traced once and then run as one call: `genesis.compile`
`lowering`   programs as machine code
"""

from __future__ import annotations

from functools import partial as _partial
from typing import TYPE_CHECKING

from genesis.base.imports import of_pytorch as _of_pytorch
from genesis.core.graph.tracing import advance, host, keep
from genesis.jit.arguments import Stream, Var
from genesis.jit.binding import Binding, Graph
from genesis.jit.passes import (
    common_subexpressions,
    constant_folding,
    dead_code,
    decomposition,
    optimized,
    simplification,
)
from genesis.jit.program import Call, Program
from genesis.jit.saved import load, save
from genesis.jit.tracer import trace

Node = Call  # what it was called before

if not TYPE_CHECKING:  # who checks types knows all there is
    __getattr__ = _partial(_of_pytorch, __name__)  # names that only PyTorch has

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
    "decomposition",
    "host",
    "keep",
    "load",
    "optimized",
    "save",
    "simplification",
    "trace",
]
