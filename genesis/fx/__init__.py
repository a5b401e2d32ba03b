"""Programs as graphs that can be read and changed: modules are traced on symbols, and graphs are modules.

    traced = genesis.fx.symbolic_trace(model)
    for node in traced.graph.nodes:
        if node.target is genesis.relu:
            node.target = genesis.tanh
    traced.recompile()

`symbolic_trace`  a module or function as a `GraphModule`     `Tracer`       the same, and what is looked into
`Graph` `Node`    the program                                 `Interpreter`  run it node by node
`wrap`            functions that are not looked into          `Transformer`  run it to make another
`replace_pattern` parts of it by others                       `Proxy`        what values are in a trace
"""

from genesis.fx import immutable_collections, node, operator_schemas, proxy, subgraph_rewriter
from genesis.fx.codegen import CodeGen
from genesis.fx.concrete import PH, PHWithMeta
from genesis.fx.graph import Graph
from genesis.fx.graph_module import GraphModule
from genesis.fx.interpreter import Interpreter, Transformer
from genesis.fx.node import Node, has_side_effect, map_arg
from genesis.fx.patching import ProxyableClassMeta, wrap
from genesis.fx.proxy import Proxy
from genesis.fx.subgraph_rewriter import replace_pattern
from genesis.fx.tracer import Tracer, symbolic_trace

__all__ = [
    "PH",
    "CodeGen",
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "PHWithMeta",
    "Proxy",
    "ProxyableClassMeta",
    "Tracer",
    "Transformer",
    "has_side_effect",
    "immutable_collections",
    "map_arg",
    "node",
    "operator_schemas",
    "proxy",
    "replace_pattern",
    "subgraph_rewriter",
    "symbolic_trace",
    "wrap",
]
