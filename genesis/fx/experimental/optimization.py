"""Modules for inference: batch norms as part of the convolutions before them, no dropout."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from genesis.fx.graph_module import GraphModule
from genesis.fx.node import Node
from genesis.fx.tracer import Tracer, symbolic_trace
from genesis.nn.conv import Conv1d, Conv2d, Conv3d
from genesis.nn.dropout import Dropout
from genesis.nn.linear import Identity
from genesis.nn.module import Module
from genesis.nn.norm import BatchNorm1d, BatchNorm2d, BatchNorm3d
from genesis.nn.utils.fusion import fuse_conv_bn_eval

_PAIRS = ((Conv1d, BatchNorm1d), (Conv2d, BatchNorm2d), (Conv3d, BatchNorm3d))


def matches_module_pattern(pattern: Iterable[type], node: Node, modules: dict[str, Any]) -> bool:
    """Whether a node and the one that it uses first are calls of modules of two classes."""
    nodes = (node.args[0] if node.args else None, node)
    return all(
        [
            isinstance(n, Node) and n.op == "call_module" and type(modules.get(str(n.target))) is expected
            for expected, n in zip(pattern, nodes, strict=True)
        ]
    )


def replace_node_module(node: Node, modules: dict[str, Any], new_module: Module) -> None:
    """Put another module where a node calls one."""
    parent, _, name = str(node.target).rpartition(".")
    modules[str(node.target)] = new_module
    setattr(modules[parent], name, new_module)


def fuse(model: Module, inplace: bool = False, no_trace: bool = False) -> GraphModule:
    """A model in evaluation whose batch norms are part of the convolutions before them.

    >>> import genesis
    >>> from genesis.fx.experimental.optimization import fuse
    >>> model = genesis.nn.Sequential(genesis.nn.Conv2d(1, 2, 3), genesis.nn.BatchNorm2d(2), genesis.nn.ReLU()).eval()
    >>> [node.name for node in fuse(model).graph.nodes]
    ['input_1', '_0', '_2', 'output']
    """
    model = model if inplace else copy.deepcopy(model)
    traced = model if no_trace and isinstance(model, GraphModule) else symbolic_trace(model)
    modules = dict(traced.named_modules())
    for pattern in _PAIRS:
        for node in traced.graph.nodes:
            if matches_module_pattern(pattern, node, modules):
                _fuse_pair(traced, node, modules)
    traced.delete_all_unused_submodules()
    traced.recompile()
    return traced


def _fuse_pair(traced: GraphModule, node: Node, modules: dict[str, Any]) -> None:
    convolution = node.args[0]
    norm = modules[str(node.target)]
    if len(convolution.users) > 1 or not norm.track_running_stats:  # its result is used without the norm, too
        return
    replace_node_module(convolution, modules, fuse_conv_bn_eval(modules[str(convolution.target)], norm))
    node.replace_all_uses_with(convolution)
    traced.graph.erase_node(node)


def remove_dropout(model: Module) -> Module:
    """A module without its dropout.

    >>> import genesis
    >>> from genesis.fx.experimental.optimization import remove_dropout
    >>> [m for m in remove_dropout(genesis.nn.Sequential(genesis.nn.Dropout(), genesis.nn.ReLU())).graph.find_nodes(op="call_module")]
    [_1]
    """
    traced = symbolic_trace(model)
    modules = dict(traced.named_modules())
    for node in traced.graph.nodes:
        if node.op == "call_module" and isinstance(modules[str(node.target)], Dropout | Identity):
            node.replace_all_uses_with(node.args[0])
            traced.graph.erase_node(node)
    traced.delete_all_unused_submodules()
    traced.recompile()
    return traced


def optimize_for_inference(model: Module, pass_config: Any = None, tracer: type[Tracer] = Tracer) -> Module:
    """`fuse` and `remove_dropout`, as ``pass_config`` says: ``{"conv_bn_fuse": True, "remove_dropout": True}``."""
    config = {"conv_bn_fuse": True, "remove_dropout": True, **(pass_config or {})}
    model = fuse(model) if config["conv_bn_fuse"] else model
    return remove_dropout(model) if config["remove_dropout"] else model
