"""A program as a list of nodes, each a call."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from genesis.base.errors import ArgumentValueError, GraphError, message
from genesis.fx.codegen import CodeGen, PythonCode, PyTreeCodeGen
from genesis.fx.naming import GLOBALS, Namespace, function_name, snake_case
from genesis.fx.node import Node, Target, map_arg, nodes_in
from genesis.fx.records import Record, fill, record
from genesis.nn.module import Module

if TYPE_CHECKING:
    from genesis.fx.graph_module import GraphModule

_NOTHING = object()


class NodeList:
    """The nodes of a graph, in the order of the program; the one at hand may be erased meanwhile."""

    def __init__(self, graph: Graph, backwards: bool = False) -> None:
        self._graph, self._backwards = graph, backwards

    def __len__(self) -> int:
        return self._graph._len

    def __iter__(self) -> Iterator[Node]:
        node = self._graph._root
        while (node := node._prev if self._backwards else node._next).op != "root":
            if not node._erased:
                yield node

    def __reversed__(self) -> Iterator[Node]:
        return iter(NodeList(self._graph, not self._backwards))


class _InsertPoint:
    """Nodes come where this says, at once; after a ``with`` again where they came before."""

    def __init__(self, graph: Graph, insert: Callable[[Node], None]) -> None:
        self._graph, self._before = graph, graph._insert
        graph._insert = insert

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None:
        self._graph._insert = self._before


class Graph:
    """A program of nodes: of a tracer, or made by hand.

    >>> import genesis
    >>> graph = genesis.fx.Graph()
    >>> x = graph.placeholder("x")
    >>> y = graph.call_function(genesis.relu, (x,))
    >>> _ = graph.output(graph.call_method("sum", (y,)))
    >>> print(graph)
    graph():
        %x : [num_users=1] = placeholder[target=x]
        %relu : [num_users=1] = call_function[target=torch.relu](args = (%x,), kwargs = {})
        %sum_1 : [num_users=1] = call_method[target=sum](args = (%relu,), kwargs = {})
        return sum_1
    >>> genesis.fx.GraphModule(genesis.nn.Module(), graph)(genesis.tensor([-1.0, 2.0]))
    tensor(2.)
    """

    def __init__(self, owning_module: Any = None, tracer_cls: Any = None, tracer_extras: Any = None) -> None:
        self._root = Node(self, "", "root", "", (), {})
        self._insert: Callable[[Node], None] = self._root.prepend
        self._len = 0
        self._graph_namespace = Namespace()
        self._codegen = CodeGen()
        self._owner: GraphModule | None = owning_module
        self._tracer_cls, self._tracer_extras = tracer_cls, tracer_extras

    @property
    def owning_module(self) -> GraphModule | None:
        """The module whose graph this is."""
        return self._owner

    @owning_module.setter
    def owning_module(self, mod: GraphModule | None) -> None:
        self._owner = mod

    @property
    def nodes(self) -> NodeList:
        """All nodes."""
        return NodeList(self)

    def output_node(self) -> Node:
        """The node that has the result."""
        node = next(iter(reversed(self.nodes)))
        assert node.op == "output"
        return node

    def find_nodes(self, *, op: str, target: Any = None, sort: bool = True) -> list[Node]:
        """The nodes of one kind, and of one target.

        >>> import genesis
        >>> graph = genesis.fx.symbolic_trace(lambda x: genesis.relu(x) + genesis.relu(-x)).graph
        >>> graph.find_nodes(op="call_function", target=genesis.relu)
        [relu, relu_1]
        """
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    # ---- nodes

    def create_node(self, op: str, target: Target, args: tuple[Any, ...] | None = None,
                    kwargs: dict[str, Any] | None = None, name: str | None = None, type_expr: Any = None) -> Node:  # fmt: skip
        """A node where nodes are inserted now: at the end, or as `inserting_before` says."""
        args, kwargs = () if args is None else args, {} if kwargs is None else kwargs
        candidate = name if name is not None else self._target_to_str(target)
        node = Node(self, self._graph_namespace.create_name(candidate, None), op, target, args, kwargs, type_expr)
        self._graph_namespace.associate_name_with_obj(node.name, node)
        if self._owner is not None:
            for hook in getattr(self._owner, "_create_node_hooks", ()):
                hook(node)
        self._insert(node)
        self._len += 1
        return node

    def _target_to_str(self, target: Any) -> str:
        name = target if isinstance(target, str) else function_name(target)
        return snake_case(name[2:-2] if name.startswith("__") and name.endswith("__") else name)

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = _NOTHING) -> Node:
        """An argument of the program."""
        return self.create_node(
            "placeholder", name, () if default_value is _NOTHING else (default_value,), type_expr=type_expr
        )

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """A parameter, buffer or value of the module."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(self, module_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None) -> Node:
        """A call of a module inside of that which the graph belongs to."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(self, method_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None) -> Node:
        """A call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(self, the_function: Callable[..., Any], args: Any = None, kwargs: Any = None,
                      type_expr: Any = None, name: str | None = None) -> Node:  # fmt: skip
        """A call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def output(self, result: Any, type_expr: Any = None) -> Node:
        """The result of the program: nodes in containers of any kind."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda x: x) -> Node:
        """A copy of a node of another graph, whose arguments are ``arg_transform`` of the nodes there."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = copy.copy(node.meta)
        return made

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Any:
        """All nodes of another graph, but for those that ``val_map`` has; returns what its output would be."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], val_map.__getitem__)
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, val_map.__getitem__)
        return None

    def erase_node(self, to_erase: Node) -> None:
        """Take out a node that nobody uses.

        Raises:
            RuntimeError: it is used
        """
        if to_erase.users:
            raise GraphError(
                message(
                    "erase_node",
                    f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: {list(to_erase.users)}",
                    hint="node.replace_all_uses_with(other) first",
                )
            )
        if to_erase.graph is not self:
            raise GraphError(message("erase_node", f"{to_erase} is in another graph"))
        if to_erase._erased:
            return
        if self._owner is not None:
            for hook in getattr(self._owner, "_erase_node_hooks", ()):
                hook(to_erase)
        to_erase._leave()
        to_erase._erased = True
        to_erase._set((), {})
        self._len -= 1

    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """New nodes come before a node (at the beginning without one), to the end of the ``with``.

        >>> import genesis
        >>> module = genesis.fx.symbolic_trace(lambda x: x + 1)
        >>> add = module.graph.find_nodes(op="call_function")[0]
        >>> with module.graph.inserting_before(add):
        ...     add.update_arg(0, module.graph.call_function(genesis.neg, add.args[:1]))
        >>> module.recompile() and module(genesis.tensor(3.0))
        tensor(-2.)
        """
        if n is None:
            return self.inserting_after(self._root)
        self._mine(n)
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """New nodes come after a node (at the end without one), to the end of the ``with``."""
        if n is None:
            return self.inserting_before(self._root)
        self._mine(n)

        def insert(node: Node) -> None:
            last[0].append(node)
            last[0] = node

        last = [n]
        return _InsertPoint(self, insert)

    def _mine(self, n: Node) -> None:
        if n.graph is not self:
            raise ArgumentValueError(message("torch.fx.Graph", f"{n} is in another graph"))

    # ---- the whole

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Graph:
        memo = {} if memo is None else memo
        g = Graph(tracer_cls=self._tracer_cls, tracer_extras=self._tracer_extras)
        memo[id(self)] = g
        copies: dict[Node, Node] = {}
        ended = g.graph_copy(self, copies, return_output_node=True)
        g._codegen = copy.deepcopy(self._codegen)
        if ended is not None:
            result, output = ended
            made = g.output(result, type_expr=output.type)
            made.meta = copy.copy(output.meta)
        return g

    def __reduce__(self) -> Any:
        tracer = self._tracer_cls
        kept = None if tracer is None or "<locals>" in tracer.__qualname__ else tracer
        return _read, ([record(node) for node in self.nodes], self._codegen, kept, self._tracer_extras)

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Take out what nobody uses and what has no effect besides its result; returns whether there was any.

        >>> import genesis
        >>> graph = genesis.fx.symbolic_trace(lambda x: (x * 2, x + 1)[1]).graph
        >>> graph.eliminate_dead_code(), graph.find_nodes(op="call_function")
        (True, [add])
        """
        before = self._len
        for node in reversed(self.nodes):
            border = node.op in ("placeholder", "output")
            kept = border or (node.is_impure() if is_impure_node is None else is_impure_node(node))
            if not node.users and not kept:
                self.erase_node(node)
        return self._len != before

    def lint(self) -> None:
        """Check that names are unique, that nodes use earlier ones of this graph, and that the module has what they name.

        Raises:
            RuntimeError: something is not so
        """
        seen: dict[str, Node] = {}
        for node in self.nodes:
            for used in nodes_in((node.args, node.kwargs)):
                if used.graph is not self:
                    raise GraphError(
                        f"Argument '{used}' of Node '{node}' does not belong to this Graph, but was used as an argument!"
                    )
                if seen.get(used.name) is not used:
                    raise GraphError(
                        f"Argument '{used}' of Node '{node}' was used before it has been defined!\n\n{self}"
                    )
            if node.name in seen:
                raise GraphError(f"Node redefined name {node.name}!")
            seen[node.name] = node
            if self._owner is not None and node.op in ("get_attr", "call_module"):
                self._lint_target(node)

    def _lint_target(self, node: Node) -> None:
        value: Any = self._owner
        for part in str(node.target).split("."):
            if not hasattr(value, part):
                raise GraphError(f"Node {node} target {node.target} references nonexistent attribute {part}")
            value = getattr(value, part)
        if node.op == "call_module" and not isinstance(value, Module):
            raise GraphError(f"Node {node} target {node.target} does not reference an nn.Module")

    def python_code(self, root_module: str = "self", **options: Any) -> PythonCode:
        """The program as a function in Python.

        >>> import genesis
        >>> print(genesis.fx.symbolic_trace(lambda x: x * 2).graph.python_code("self").src.strip())
        def forward(self, x):
            mul = x * 2;  x = None
            return mul
        """
        namespace = Namespace()
        for name in GLOBALS:
            namespace.create_name(name, GLOBALS[name])
        for node in self.nodes:  # by the names that they have: two may have changed theirs
            node.name = namespace.create_name(node.name, node)
        return self._codegen.write(self, root_module, namespace)

    def process_inputs(self, *args: Any) -> Any:
        """The values of the placeholders, from the arguments of the module."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """The result of the module, from what the output node has."""
        return self._codegen.process_outputs(out)

    def set_codegen(self, codegen: CodeGen) -> None:
        """Write the program another way."""
        self._codegen = codegen

    def on_generate_code(self, make_transformer: Callable[[Any], Callable[[list[str]], list[str]]]) -> Any:
        """Change the lines of the body when code is written: ``make_transformer`` gets what did it before, or None."""
        before = self._codegen._body_transformer
        codegen = self._codegen
        codegen._body_transformer = make_transformer(before)

        class Restoring:
            def __enter__(self) -> None: ...

            def __exit__(self, *_: object) -> None:
                codegen._body_transformer = before

        return Restoring()

    @property
    def _is_pytree(self) -> bool:
        return isinstance(self._codegen, PyTreeCodeGen)

    def __str__(self) -> str:
        names: list[str] = []
        lines = [node.format_node(names) for node in self.nodes]
        return "\n    ".join(["graph():", *[line for line in lines if line]])

    def print_tabular(self) -> None:
        """Print the nodes as a table.

        >>> import genesis
        >>> genesis.fx.symbolic_trace(lambda x: x + 1).graph.print_tabular()
        opcode         name    target                   args    kwargs
        -------------  ------  -----------------------  ------  --------
        placeholder    x       x                        ()      {}
        call_function  add     <built-in function add>  (x, 1)  {}
        output         output  output                   (add,)  {}
        """
        rows: list[tuple[str, ...]] = [("opcode", "name", "target", "args", "kwargs")]
        rows += [tuple(map(str, (n.op, n.name, n.target, n.args, n.kwargs))) for n in self.nodes]
        # two more than the title at least, as tables of tabulate have it
        widths = [max(len(rows[0][i]) + 2, *[len(row[i]) for row in rows]) for i in range(5)]
        lines = [rows[0], tuple("-" * width for width in widths), *rows[1:]]
        for line in lines:
            print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _read(records: list[Record], codegen: CodeGen, tracer_cls: Any, tracer_extras: Any) -> Graph:
    """A graph that was pickled."""
    graph = Graph(tracer_cls=tracer_cls, tracer_extras=tracer_extras)
    fill(graph, records)
    graph.set_codegen(codegen)
    return graph
