"""A model that is divided where its program says, by what `genesis.fx` records of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextvars import ContextVar
from enum import Enum
from typing import Any

from genesis.base.errors import ArgumentError, ArgumentValueError, message
from genesis.base.pytree import tree_flatten
from genesis.core.graph.parameter import Parameter
from genesis.core.graph.tensor import Tensor
from genesis.fx.concrete import assert_equal
from genesis.fx.graph import Graph
from genesis.fx.graph_module import GraphModule
from genesis.fx.node import Node, map_arg, nodes_in
from genesis.fx.tracer import Tracer
from genesis.nn.module import Module

_recording: ContextVar[StageTracer | None] = ContextVar("genesis_pipeline", default=None)


class SplitPoint(Enum):
    """Where a new stage begins: before a module, or behind it."""

    BEGINNING = 1
    END = 2


def pipe_split() -> None:
    """In the forward of a model: here a new stage begins. It does nothing but where `pipeline` records the model.

    >>> import genesis
    >>> from genesis.distributed.pipelining import pipe_split, pipeline
    >>> class Two(genesis.nn.Module):
    ...     def forward(self, x):
    ...         x = x + 1
    ...         pipe_split()
    ...         return x * 2
    >>> pipe = pipeline(Two(), (genesis.ones(1),))
    >>> pipe.num_stages, pipe(genesis.ones(1))
    (2, tensor([4.]))
    """
    tracer = _recording.get()
    if tracer is not None:
        tracer.create_node("call_function", pipe_split, (), {})


class StageTracer(Tracer):
    """Records a model with the points where it is divided. Modules in which there is none stay as they are."""

    def __init__(self, points: dict[str, SplitPoint], given: dict[str, Any]) -> None:
        super().__init__()
        self.points, self.given, self.passed = points, given, set[str]()

    def create_args_for_root(self, root_fn: Any, is_module: bool, concrete_args: Any = None) -> tuple[Any, list[Any]]:
        """Arguments with tensors are placeholders; others are known, and the graph checks that they are the same."""
        kinds = inspect.signature(self.root.forward).parameters
        made = {name: self._argument(name, value, kinds[name]) for name, value in self.given.items()}
        ordered = [made[name] for name in made if kinds[name].kind is not inspect.Parameter.KEYWORD_ONLY]
        named = {name: x for name, x in made.items() if kinds[name].kind is inspect.Parameter.KEYWORD_ONLY}
        return lambda: root_fn(self.root, *ordered, **named), []

    def _argument(self, name: str, value: Any, parameter: inspect.Parameter) -> Any:
        leaves = tree_flatten(value)[0]
        if any([isinstance(x, Tensor) for x in leaves]):
            default = () if parameter.default is parameter.empty else (parameter.default,)
            return self.create_proxy("placeholder", name, default, {})
        if all([x is None or isinstance(x, bool | int | float | str) for x in leaves]):
            x = self.create_proxy("placeholder", name, (value,), {})
            self.create_proxy("call_function", assert_equal, (x, value, name), {})
        return value

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        inside = any([name.startswith(f"{module_qualified_name}.") for name in self.points])
        return not inside and (bool(self.points) or super().is_leaf_module(m, module_qualified_name))

    def call_module(self, m: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        name = self.path_of_module(m)
        point = self.points.get(name)
        self.passed.add(name)
        if point is SplitPoint.BEGINNING:
            self.create_node("call_function", pipe_split, (), {})
        out = super().call_module(m, forward, args, kwargs)
        if point is SplitPoint.END:
            self.create_node("call_function", pipe_split, (), {})
        return out


def recorded(
    module: Module, args: tuple[Any, ...], kwargs: dict[str, Any], points: dict[str, SplitPoint]
) -> GraphModule:
    """A model as a graph in which calls of `pipe_split` say where it is divided. Arguments in which there is no tensor are
    known: they decide which way the program goes.

    Raises:
        ValueError: a point is no module that the model calls
        TypeError: arguments that the model does not take
    """
    tracer = StageTracer(points, _given(module, args, kwargs))
    token = _recording.set(tracer)
    try:
        graph = tracer.trace(module)
    finally:
        _recording.reset(token)
    absent = sorted(set(points) - tracer.passed)
    if absent:
        text = f"the model does not call {', '.join(absent)}, at which it is to be divided"
        raise ArgumentValueError(message("pipeline", text, hint="names as named_modules() has them"))
    return GraphModule(tracer.root, graph, type(module).__name__)


def _given(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of the forward by name, with defaults."""
    signature = inspect.signature(module.forward)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise ArgumentError(
            message("pipeline", f"mb_args and mb_kwargs: {error}", hint="those of one microbatch")
        ) from None
    bound.apply_defaults()
    several = [name for name, p in signature.parameters.items() if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if any([bound.arguments[name] for name in several]):
        text = f"the model takes {' and '.join(several)}, which have no names of their own"
        raise ArgumentError(message("pipeline", text, hint="a module around it whose forward names its arguments"))
    return {name: value for name, value in bound.arguments.items() if name not in several}


def divided(whole: GraphModule) -> list[GraphModule]:
    """The stages of a graph, one after the other: each gives on what later ones need.

    Raises:
        ValueError: two stages use one parameter
    """
    homes = _homes(whole.graph)
    count = 1 + max(homes.values())
    _check_parameters(whole, homes)
    return [_stage(whole, homes, index, count) for index in range(count)]


def _homes(graph: Graph) -> dict[Node, int]:
    """The stage of each node; what is read of the model belongs to where it is used."""
    homes: dict[Node, int] = {}
    index = 0
    for node in graph.nodes:
        index += node.target is pipe_split
        if node.op not in ("get_attr", "placeholder") and node.target is not pipe_split:
            homes[node] = index
        elif node.op == "placeholder":
            homes[node] = 0
    return homes


def _check_parameters(whole: GraphModule, homes: dict[Node, int]) -> None:
    users: dict[int, set[int]] = {}
    names: dict[int, str] = {}
    for node in whole.graph.nodes:
        stages = {homes[user] for user in node.users} if node.op == "get_attr" else {homes.get(node, 0)}
        for name, p in _parameters(whole, node):
            users.setdefault(id(p), set()).update(stages)
            names[id(p)] = name
    for key, stages in users.items():
        if len(stages) > 1:
            text = f"stages {sorted(stages)} use the parameter {names[key]}, which is in one of them"
            raise ArgumentValueError(message("pipeline", text, hint="divide elsewhere, or untie the parameters"))


def _parameters(whole: GraphModule, node: Node) -> list[tuple[str, Any]]:
    name = str(node.target)
    if node.op == "call_module":
        return [(f"{name}.{inner}", p) for inner, p in whole.get_submodule(name).named_parameters()]
    if node.op != "get_attr":
        return []
    room, _, last = name.rpartition(".")
    value = getattr(whole.get_submodule(room), last)
    return [(name, value)] if isinstance(value, Parameter) else []


def _stage(whole: GraphModule, homes: dict[Node, int], index: int, count: int) -> GraphModule:
    graph, values = Graph(), dict[Node, Node]()
    for node in _alive(whole.graph, homes, index) if index else [n for n in homes if n.op == "placeholder"]:
        values[node] = graph.node_copy(node) if not index else graph.placeholder(node.name)
    for node in whole.graph.nodes:
        if node.op == "get_attr" and any([homes[user] == index for user in node.users]):
            values[node] = graph.node_copy(node)
        elif node.op != "placeholder" and node.op != "output" and homes.get(node) == index:
            values[node] = graph.node_copy(node, values.__getitem__)
    if index == count - 1:
        graph.output(map_arg(whole.graph.output_node().args[0], values.__getitem__))
    else:
        given = [values[node] for node in _alive(whole.graph, homes, index + 1)]
        graph.output(given[0] if len(given) == 1 else tuple(given))
    return GraphModule(whole, graph, f"Stage{index}")


def _alive(graph: Graph, homes: dict[Node, int], index: int) -> list[Node]:
    """What stages before this one compute, and it or a later one uses."""
    used = {n for node, home in homes.items() if home >= index for n in nodes_in((node.args, node.kwargs))}
    return [node for node in graph.nodes if node in used and homes.get(node, index) < index]
