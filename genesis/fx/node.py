"""One call in a graph: what is called, with what, and who uses its result."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import genesis
from genesis.base.errors import ArgumentValueError, message
from genesis.fx.immutable_collections import immutable_dict, immutable_list
from genesis.fx.naming import target_name, type_name, value_name

if TYPE_CHECKING:
    from genesis.fx.graph import Graph

Target = Callable[..., Any] | str
Argument = Any
F = TypeVar("F", bound=Callable[..., Any])

OPS = ("placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root")
SIDE_EFFECTS: set[Any] = {operator.setitem, genesis.set_grad_enabled, genesis.manual_seed}


def has_side_effect(fn: F) -> F:
    """Keep calls of a function although nobody uses their result.

    >>> import genesis
    >>> @genesis.fx.has_side_effect
    ... def log(x): print(x)
    """
    SIDE_EFFECTS.add(fn)
    return fn


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """Each value in nested tuples, lists, dictionaries and slices replaced by ``fn`` of it.

    >>> from genesis.fx.node import map_aggregate
    >>> map_aggregate((1, [2]), lambda x: x + 1)
    (2, [3])
    """
    if isinstance(a, tuple):
        mapped = [map_aggregate(x, fn) for x in a]
        return type(a)(*mapped) if hasattr(a, "_fields") else tuple(mapped)
    if isinstance(a, list):
        return immutable_list([map_aggregate(x, fn) for x in a])
    if isinstance(a, dict):
        return immutable_dict([(key, map_aggregate(x, fn)) for key, x in a.items()])
    if isinstance(a, slice):
        return slice(map_aggregate(a.start, fn), map_aggregate(a.stop, fn), map_aggregate(a.step, fn))
    return fn(a)


def map_arg(a: Any, fn: Callable[[Node], Any]) -> Any:
    """Each node in nested arguments replaced by ``fn`` of it.

    >>> import genesis
    >>> graph = genesis.fx.Graph()
    >>> x = graph.placeholder("x")
    >>> genesis.fx.map_arg((x, [x, 1]), lambda node: node.name)
    ('x', ['x', 1])
    """
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


def nodes_in(a: Any) -> list[Node]:
    """The nodes in nested arguments, each once, in order."""
    every: dict[Node, None] = {}
    map_arg(a, every.setdefault)
    return list(every)


def format_arg(arg: Any, max_list_len: float = float("inf")) -> str:
    """An argument as the lines of a graph have it."""
    if isinstance(arg, list | tuple):
        shown = [format_arg(x) for i, x in enumerate(arg) if i < max_list_len]
        more = f", ...[total_len={len(arg)}]" if len(arg) > max_list_len else ""
        inside = ", ".join(shown)
        return f"[{inside}{more}]" if isinstance(arg, list) else f"({inside}{',' if len(arg) == 1 else ''}{more})"
    if isinstance(arg, dict):
        return f"{{{', '.join(f'{key}: {format_arg(x)}' for key, x in arg.items())}}}"
    if isinstance(arg, Node):
        return f"%{arg}"
    return value_name(arg) if type(arg).__module__.startswith("genesis.base.") and str(arg) == repr(arg) else str(arg)


class Node:
    """A call in a `Graph`, made by the methods of that.

    ``op`` is ``placeholder`` (an argument of the program), ``get_attr`` (a parameter or buffer of the module),
    ``call_function``, ``call_module``, ``call_method`` or ``output``; ``target`` the name or function that it is about;
    ``args`` and ``kwargs`` hold nodes, numbers, and lists of them; ``users`` the nodes that have this one among their
    arguments, and ``meta`` whatever passes write down.

    >>> import genesis
    >>> graph = genesis.fx.symbolic_trace(lambda x: genesis.relu(x) + 1).graph
    >>> [(node.name, node.op, node.args) for node in graph.nodes]
    [('x', 'placeholder', ()), ('relu', 'call_function', (x,)), ('add', 'call_function', (relu, 1)), ('output', 'output', (add,))]
    """

    def __init__(self, graph: Graph, name: str, op: str, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any],
                 return_type: Any = None) -> None:  # fmt: skip
        if op not in OPS:
            raise ArgumentValueError(message("torch.fx.Node", f"op is one of {', '.join(OPS)}, got {op!r}"))
        if op == "call_function" and not callable(target):
            raise ArgumentValueError(message("torch.fx.Node", f"a call_function has a function, got {target!r}"))
        if op != "call_function" and not isinstance(target, str):
            raise ArgumentValueError(message("torch.fx.Node", f"the target of a {op} is a name, got {target!r}"))
        self.graph, self.name, self.op, self.target, self.type = graph, name, op, target, return_type
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._input_nodes: dict[Node, None] = {}
        self._prev = self._next = self
        self._erased = False
        self._args: tuple[Any, ...] = ()
        self._kwargs: dict[str, Any] = {}
        self._set(args, kwargs)

    def _set(self, args: Any, kwargs: Any) -> None:
        for used in self._input_nodes:
            used.users.pop(self, None)
        self._args, self._kwargs = map_aggregate(tuple(args), _same), map_aggregate(dict(kwargs), _same)
        self._input_nodes = dict.fromkeys(nodes_in((self._args, self._kwargs)))
        for used in self._input_nodes:
            used.users.setdefault(self)

    @property
    def args(self) -> tuple[Any, ...]:
        return self._args

    @args.setter
    def args(self, args: tuple[Any, ...]) -> None:
        self._set(args, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: dict[str, Any]) -> None:
        self._set(self._args, kwargs)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among the arguments, each once."""
        return list(self._input_nodes)

    def update_arg(self, idx: int, arg: Any) -> None:
        """Put another argument at an index."""
        args = list(self._args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Any) -> None:
        """Put an argument before that at an index."""
        self.args = (*self._args[:idx], arg, *self._args[idx:])

    def update_kwarg(self, key: str, arg: Any) -> None:
        """Put another keyword argument."""
        self.kwargs = {**self._kwargs, key: arg}

    # ---- the order of the program

    @property
    def next(self) -> Node:
        """The node after this one."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before this one."""
        return self._prev

    def prepend(self, x: Node) -> None:
        """Move a node of the same graph before this one."""
        if x.graph is not self.graph:
            raise ArgumentValueError(message("torch.fx.Node.prepend", f"{x} is in another graph"))
        if x is self:
            return
        x._leave()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x

    def append(self, x: Node) -> None:
        """Move a node of the same graph after this one."""
        self._next.prepend(x)

    def _leave(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    def _later(self) -> Iterator[Node]:
        node = self._next
        while node.op != "root":
            yield node
            node = node._next

    def __lt__(self, other: Node) -> bool:
        return any([node is other for node in self._later()])

    def __gt__(self, other: Node) -> bool:
        return other < self

    def __le__(self, other: Node) -> bool:
        return self is other or self < other

    def __ge__(self, other: Node) -> bool:
        return other <= self

    # ---- uses

    def replace_all_uses_with(
        self, replace_with: Node, delete_user_cb: Callable[[Node], bool] | None = None, *, propagate_meta: bool = False
    ) -> list[Node]:
        """Put another node where this one is an argument (of the nodes for which ``delete_user_cb`` is true); returns them."""
        if propagate_meta:
            if replace_with.meta:
                raise ArgumentValueError(message("replace_all_uses_with", f"{replace_with} has .meta of its own"))
            replace_with.meta.update(self.meta)
        changed = [user for user in list(self.users) if delete_user_cb is None or delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Put one node for another among the arguments."""

        for hook in getattr(self.graph.owning_module, "_replace_hooks", ()):
            hook(old=old_input, new=new_input.name, user=self)

        def other(node: Node) -> Node:
            return new_input if node is old_input else node

        self._set(map_arg(self._args, other), map_arg(self._kwargs, other))

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether the node is kept although nobody uses it."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_module":
            owner = self.graph.owning_module
            return owner is not None and bool(getattr(owner.get_submodule(str(self.target)), "_is_impure", False))
        if self.op == "call_method":
            return str(self.target).endswith("_") and not str(self.target).startswith("__")
        if self.op != "call_function":
            return False
        name = getattr(self.target, "__name__", "")
        writes = name.endswith("_") and not name.startswith("_") and type_of(self.target) != "_operator"
        return self.target in SIDE_EFFECTS or writes or "out" in self.kwargs or self.kwargs.get("inplace") is True

    def normalized_arguments(self, root: Any, arg_types: Any = None, kwarg_types: Any = None,
                             normalize_to_only_use_kwargs: bool = False) -> Any:  # fmt: skip
        """The arguments by the signature of what is called, with defaults; None where that has none."""
        from genesis.fx.operator_schemas import normalize_function, normalize_module

        if self.op == "call_function":
            assert callable(self.target)
            return normalize_function(
                self.target, self.args, self.kwargs, arg_types, kwarg_types, normalize_to_only_use_kwargs
            )
        if self.op == "call_module":
            return normalize_module(root, str(self.target), self.args, self.kwargs, normalize_to_only_use_kwargs)
        return None

    # ---- text

    @property
    def stack_trace(self) -> str | None:
        """The lines of the program that made the node, where a tracer records them."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def __repr__(self) -> str:
        return self.name

    def _rename(self, candidate: str) -> None:
        if candidate != self.name:
            self.name = self.graph._graph_namespace.create_name(candidate, None)
            self.graph._graph_namespace.rename_object(self, self.name)

    @staticmethod
    def _pretty_print_target(target: Any) -> str:
        return target_name(target)

    def format_node(self, placeholder_names: list[str] | None = None,
                    maybe_return_typename: list[str] | None = None, **options: Any) -> str | None:  # fmt: skip
        """The node as a line of its graph."""
        typed = f"{type_name(self.type)} " if self.type is not None else ""
        head = f"%{self.name} : {typed}[num_users={len(self.users)}] = {self.op}[target={target_name(self.target)}]"
        if self.op == "placeholder":
            if placeholder_names:
                placeholder_names.append(f"{self.target} : {typed.strip()}" if typed else str(self.target))
                return None
            return head + (f"(default={self.args[0]})" if self.args else "")
        if self.op == "get_attr":
            return head
        if self.op == "output":
            if typed and maybe_return_typename:
                maybe_return_typename[0] = f" -> {typed.strip()}"
            return f"return {self.args[0]}"
        return f"{head}(args = {format_arg(self.args)}, kwargs = {format_arg(self.kwargs)})"


def _same(x: Any) -> Any:
    return x


def type_of(target: Any) -> str:
    """The module that a function is from."""
    return str(getattr(target, "__module__", None))
