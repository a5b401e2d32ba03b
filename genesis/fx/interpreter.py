"""Graphs run node by node, by a class whose methods say what each kind of node does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from genesis.base.errors import ArgumentError, GraphError, message
from genesis.fx.graph import Graph
from genesis.fx.graph_module import GraphModule
from genesis.fx.node import Node, Target, map_aggregate, map_arg
from genesis.fx.proxy import Proxy
from genesis.fx.tracer import Tracer
from genesis.nn.module import Module


class Interpreter:
    """Runs a graph; derive from it to look at values, or to compute others.

    Args:
        module: what has the modules and parameters that nodes name, and the graph if that is not given
        garbage_collect_values: let go of values after the last node that uses them

    >>> import genesis
    >>> class Negated(genesis.fx.Interpreter):
    ...     def call_function(self, target, args, kwargs):
    ...         return super().call_function(genesis.neg if target is genesis.relu else target, args, kwargs)
    >>> Negated(genesis.fx.symbolic_trace(lambda x: genesis.relu(x) + 1)).run(genesis.tensor(2.0))
    tensor(-1.)
    """

    def __init__(self, module: Module, garbage_collect_values: bool = True, graph: Graph | None = None) -> None:
        self.module = module
        self.graph: Graph = getattr(module, "graph") if graph is None else graph  # noqa: B009
        self.submodules = dict(module.named_modules())
        self.env: dict[Node, Any] = {}
        self.name, self.garbage_collect_values, self.extra_traceback = "Interpreter", garbage_collect_values, True
        self.args_iter: Iterator[Any] = iter(())
        last: dict[Node, Node] = {}
        for node in reversed(self.graph.nodes):
            for used in node.all_input_nodes:
                last.setdefault(used, node)
        self.user_to_last_uses: dict[Node, list[Node]] = {}
        for used, node in last.items():
            self.user_to_last_uses.setdefault(node, []).append(used)

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True) -> Any:
        """The result for these arguments.

        Args:
            initial_env: values of nodes that are not computed; enable_io_processing: containers are taken apart as the
                module does it
        """
        self.env = dict(initial_env or {})
        self.args_iter = iter(self.graph.process_inputs(*args) if enable_io_processing else args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            self.env[node] = self._noted(node)
            if self.garbage_collect_values:
                for used in self.user_to_last_uses.get(node, ()):
                    del self.env[used]
            if node.op == "output":
                result = self.env[node]
                return self.graph.process_outputs(result) if enable_io_processing else result
        return None

    def _noted(self, node: Node) -> Any:
        try:
            return self.run_node(node)
        except Exception as error:
            if self.extra_traceback:
                error.add_note(f"While executing {node.format_node()}")
            raise

    def boxed_run(self, args_list: list[Any]) -> Any:
        """`run` with a list of arguments, which is empty afterwards."""
        args = list(args_list)
        args_list.clear()
        return self.run(*args, enable_io_processing=False)

    def run_node(self, n: Node) -> Any:
        """What a node computes."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    # ---- kinds of nodes

    def placeholder(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The next argument, or the default of the node."""
        if isinstance(target, str) and target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise GraphError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            ) from None

    def get_attr(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the module has under a name."""
        return self.fetch_attr(str(target))

    def call_function(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The function of these arguments."""
        assert callable(target)
        return target(*args, **kwargs)

    def call_method(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A method of the first argument."""
        first, *others = args
        return getattr(first, str(target))(*others, **kwargs)

    def call_module(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A module inside of the module."""
        return self.fetch_attr(str(target))(*args, **kwargs)

    def output(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result."""
        return args[0]

    # ---- values

    def fetch_attr(self, target: str) -> Any:
        """What the module has under a dotted name."""
        value: Any = self.module
        for i, part in enumerate(target.split(".")):
            if not hasattr(value, part):
                raise GraphError(f"Node referenced nonexistent target {'.'.join(target.split('.')[: i + 1])}")
            value = getattr(value, part)
        return value

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a node, values in the place of nodes."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """Values in the place of nodes."""

        def value(node: Node) -> Any:
            if node not in self.env:
                raise GraphError(
                    f"Node {n} referenced nonexistent value {node}! Run Graph.lint() to diagnose such issues"
                )
            return self.env[node]

        return plain(map_arg(args, value))


def plain(a: Any) -> Any:
    """Lists and dictionaries of arguments as ordinary ones."""
    if isinstance(a, list):
        return [plain(x) for x in a]
    if isinstance(a, dict):
        return {key: plain(x) for key, x in a.items()}
    if isinstance(a, tuple) and not hasattr(a, "_fields"):
        return tuple([plain(x) for x in a]) if type(a) is tuple else a
    return a


class _TransformerTracer(Tracer):
    def __init__(self, graph: Graph, root: Module) -> None:
        super().__init__()
        self.graph, self.root, self.tensor_attrs = graph, root, {}

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        return True


class Transformer(Interpreter):
    """Runs a graph on proxies: what its methods compute becomes another graph.

    >>> import genesis
    >>> class Softer(genesis.fx.Transformer):
    ...     def call_function(self, target, args, kwargs):
    ...         return super().call_function(genesis.tanh if target is genesis.relu else target, args, kwargs)
    >>> changed = Softer(genesis.fx.symbolic_trace(lambda x: genesis.relu(x))).transform()
    >>> [node.name for node in changed.graph.nodes]
    ['x', 'tanh', 'output']
    """

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)
        self.tracer = _TransformerTracer(self.new_graph, module)

    def placeholder(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        default = {"default_value": args[0]} if args else {}
        return Proxy(self.new_graph.placeholder(str(target), **default), self.tracer)

    def get_attr(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        module = self.fetch_attr(str(target))
        return self.tracer.call_module(module, module.forward, args, kwargs)

    def call_function(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The module of the new graph."""
        if not isinstance(self.module, GraphModule):
            raise ArgumentError(message("torch.fx.Transformer", f"expected a GraphModule, got {type(self.module)}"))
        result = self.run(enable_io_processing=False)
        if result is not None:
            typed = self.graph.output_node().type
            self.new_graph.output(map_aggregate(result, lambda x: x.node if isinstance(x, Proxy) else x), typed)
        return _with_names(self.module, self.new_graph)


def _with_names(module: GraphModule, graph: Graph) -> GraphModule:
    made = GraphModule(module, graph, type(module).__name__)
    made.meta = dict(module.meta)
    return made
