"""A graph in parts, each a module of its own."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from genesis.base.errors import GraphError, message
from genesis.fx.graph import Graph
from genesis.fx.graph_module import GraphModule
from genesis.fx.node import Node, map_arg, nodes_in
from genesis.nn.module import Module


@dataclass
class _Part:
    name: str
    nodes: list[Node] = field(default_factory=list)
    inputs: dict[Node, None] = field(default_factory=dict)
    outputs: dict[Node, None] = field(default_factory=dict)
    after: set[str] = field(default_factory=set)  # the parts that it needs


def split_module(
    m: GraphModule, root_m: Module, split_callback: Callable[[Node], Any], qualname_map: dict[str, str] | None = None,
    keep_original_node_name: bool = False,
) -> GraphModule:  # fmt: skip
    """A module whose parts, ``submod_0`` and so on, are those of the nodes for which ``split_callback`` says the same.

    Args:
        root_m: what has the modules and parameters that nodes name
        qualname_map: gets for each module in a part its name in ``root_m``
        keep_original_node_name: nodes of parts have the names that they had

    Raises:
        RuntimeError: parts need each other

    >>> import genesis
    >>> from genesis.fx.passes.split_module import split_module
    >>> traced = genesis.fx.symbolic_trace(lambda x: genesis.relu(x + 1) * 2)
    >>> parts = split_module(traced, traced, lambda node: 0 if node.name == "add" else 1)
    >>> [node.name for node in parts.graph.nodes], parts(genesis.ones(1))
    (['x', 'submod_0', 'submod_1', 'output'], tensor([4.]))
    """
    parts = _parts(m.graph, split_callback)
    whole, modules = Graph(), {}
    values: dict[Node, Node] = {}
    for node in m.graph.nodes:
        if node.op in ("placeholder", "get_attr"):
            values[node] = whole.node_copy(node)
    for part in _ordered(parts):
        name = f"submod_{part.name}"
        modules[name] = _module(part, root_m, qualname_map, name, keep_original_node_name)
        called = whole.call_module(name, tuple([values[n] for n in part.inputs]))
        outputs = list(part.outputs)
        for i, n in enumerate(outputs):
            values[n] = called if len(outputs) == 1 else whole.call_function(operator.getitem, (called, i))
    result = m.graph.output_node()
    whole.output(map_arg(result.args[0], values.__getitem__), result.type)
    attributes = {str(n.target): _value(root_m, str(n.target)) for n in whole.nodes if n.op == "get_attr"}
    return GraphModule({**modules, **attributes}, whole, type(m).__name__)


def _parts(graph: Graph, split_callback: Callable[[Node], Any]) -> dict[str, _Part]:
    parts: dict[str, _Part] = {}
    home: dict[Node, str] = {}
    for node in graph.nodes:
        if node.op in ("placeholder", "get_attr", "output"):
            continue
        key = home[node] = str(split_callback(node))
        part = parts.setdefault(key, _Part(key))
        part.nodes.append(node)
        for used in node.all_input_nodes:
            if home.get(used) != key:
                part.inputs.setdefault(used)
                if used in home:
                    parts[home[used]].outputs.setdefault(used)
                    part.after.add(home[used])
    for used in nodes_in(graph.output_node().args):
        if used in home:
            parts[home[used]].outputs.setdefault(used)
    return parts


def _ordered(parts: dict[str, _Part]) -> list[_Part]:
    done: dict[str, _Part] = {}
    while len(done) < len(parts):
        ready = [p for key, p in parts.items() if key not in done and p.after <= set(done)]
        if not ready:
            raise GraphError(message("split_module", f"parts need each other: {sorted(set(parts) - set(done))}"))
        done[ready[0].name] = ready[0]
    return list(done.values())


def _module(part: _Part, root: Module, qualname_map: dict[str, str] | None, name: str, keep_names: bool) -> GraphModule:
    graph = Graph()
    values: dict[Node, Node] = {n: graph.placeholder(n.name, n.type) for n in part.inputs}
    held: dict[str, Any] = {}
    for node in part.nodes:
        args, kwargs = map_arg(node.args, values.__getitem__), map_arg(node.kwargs, values.__getitem__)
        copy = graph.create_node(node.op, node.target, args, kwargs, node.name if keep_names else None, node.type)
        copy.meta, values[node] = dict(node.meta), copy
        if node.op == "call_module":
            short = str(node.target).replace(".", "_")
            held[short], copy.target = root.get_submodule(str(node.target)), short
            if qualname_map is not None:
                qualname_map[f"{name}.{short}"] = str(node.target)
    results = tuple([values[n] for n in part.outputs])
    graph.output(results[0] if len(results) == 1 else results)
    return GraphModule(held, graph)


def _value(root: Any, target: str) -> Any:
    for name in target.split("."):
        root = getattr(root, name)
    return root
