"""What stands for a value while a program is traced: whatever is done with it becomes a node."""

from __future__ import annotations

import bisect
import dis
import enum
import operator
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from types import FrameType
from typing import Any

import genesis
from genesis.base.device import device
from genesis.base.dtypes import dtype
from genesis.base.errors import GenesisError, GraphError, UnsupportedError
from genesis.base.layouts import layout, memory_format
from genesis.core.call.subclasses import KINDS, add_kind, remove_kinds
from genesis.core.graph.size import Size
from genesis.core.graph.tensor import Tensor
from genesis.fx.codegen import BINARY, UNARY
from genesis.fx.graph import Graph
from genesis.fx.naming import is_method, method_name
from genesis.fx.node import SIDE_EFFECTS, Node, Target, map_aggregate, nodes_in

_VALUES = (str, int, float, bool, complex, dtype, device, layout, memory_format, enum.Enum, Tensor)
OPEN: list[TracerBase] = []  # tracers at work, in all threads
_OWN = "genesis/fx/", "genesis/core/", "genesis/ops/", "genesis/nn/module.py"


class TraceError(GenesisError, ValueError):
    """A program asks for a value that is not known while it is traced."""


class Scope:
    """The module whose forward runs, by its name and class."""

    def __init__(self, module_path: str, module_type: Any) -> None:
        self.module_path, self.module_type = module_path, module_type


class TracerBase:
    """What all tracers do: values become arguments, calls become nodes."""

    graph: Graph
    record_stack_traces = False
    check_mutable_operations = False
    trace_asserts = False
    proxy_buffer_attributes = False
    traced_func_name = "forward"
    scope: Scope
    module_stack: dict[str, tuple[str, Any]]
    node_name_to_scope: dict[str, tuple[str, Any]]

    def create_node(self, kind: str, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any],
                    name: str | None = None, type_expr: Any = None) -> Node:  # fmt: skip
        """A node of these arguments; override it to look at all of them."""
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        self.node_name_to_scope[node.name] = self.scope.module_path, self.scope.module_type
        if self.module_stack:
            node.meta["nn_module_stack"] = dict(self.module_stack)
        if self.record_stack_traces and (lines := self._user_stack()):
            node.stack_trace = lines
        return node

    def _user_stack(self) -> str:
        frames = traceback.extract_stack()
        start = next((i for i, frame in enumerate(frames) if frame.name == self.traced_func_name), len(frames))
        own = [frame for frame in frames[start:] if not any([part in frame.filename for part in _OWN])]
        return "".join(traceback.format_list(own)).strip()

    def proxy(self, node: Node) -> Proxy:
        """What stands for a node in the program."""
        return Proxy(node, self)

    def create_proxy(self, kind: str, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any],
                     name: str | None = None, type_expr: Any = None,
                     proxy_factory_fn: Callable[[Node], Proxy] | None = None) -> Proxy:  # fmt: skip
        """A node, and what stands for it."""
        node = self.create_node(kind, target, self.create_arg(args), self.create_arg(kwargs), name, type_expr)
        return self.proxy(node) if proxy_factory_fn is None else proxy_factory_fn(node)

    def create_arg(self, a: Any) -> Any:
        """A value of the program as an argument of nodes.

        Raises:
            NotImplementedError: a graph cannot hold it
        """
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            parts = [self.create_arg(x) for x in a]
            return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
        if isinstance(a, list):
            return [self.create_arg(x) for x in a]
        if isinstance(a, dict):
            return {self._key(key): self.create_arg(x) for key, x in a.items()}
        if isinstance(a, slice | range):
            return type(a)(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if is_dataclass(a) and not isinstance(a, type) and not isinstance(a, _VALUES):
            given = {f.name: self.create_arg(getattr(a, f.name)) for f in fields(a)}
            return self.create_node("call_function", type(a), (), given)
        if isinstance(a, _VALUES) or a is None or a is ... or isinstance(a, Node):
            return a
        raise UnsupportedError(f"argument of type: {type(a)}")

    def _key(self, key: Any) -> Any:
        key = self.create_arg(key)
        if nodes_in(key):
            raise GraphError(f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {key}")
        return key

    def to_bool(self, obj: Proxy) -> bool:
        """Whether a value is true, which is not known; a tracer may know.

        Raises:
            ValueError: always, in this class
        """
        raise TraceError(
            "symbolically traced variables cannot be used as inputs to control flow" + _line()
            + "\n  try: decide by sizes or settings that are known, pass concrete_args=, or torch.fx.wrap a function that decides"
        )  # fmt: skip

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """The parts of a value, which are not known; a tracer may know.

        Raises:
            ValueError: always, in this class
        """
        raise TraceError(
            "Proxy object cannot be iterated: how many parts it has is not known, in a loop or as *args" + _line()
            + "\n  try: take parts by their index, x[0], x[1], or torch.fx.wrap a function that has the loop"
        )  # fmt: skip

    def keys(self, obj: Proxy) -> Any:
        """The keys of a value, as ``**x`` asks for them."""
        return Attribute(obj, "keys")()


def _line() -> str:
    """Where the program stands, outside of Genesis."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and any([part in frame.f_code.co_filename.replace("\\", "/") for part in _OWN]):
        frame = frame.f_back
    return (
        f" ({frame.f_code.co_filename}, line {frame.f_lineno}, in {frame.f_code.co_name})" if frame is not None else ""
    )


class GraphAppendingTracer(TracerBase):
    """Nodes at the end of a graph, or where that inserts them: for proxies that are made by hand.

    >>> import genesis
    >>> graph = genesis.fx.Graph()
    >>> x = genesis.fx.Proxy(graph.placeholder("x"), genesis.fx.proxy.GraphAppendingTracer(graph))
    >>> genesis.relu(x) + 1
    Proxy(add)
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.scope, self.module_stack, self.node_name_to_scope = Scope("", None), {}, {}


def assert_fn(x: Any) -> None:
    """What an ``assert`` of the program becomes, where a tracer records them."""
    assert x


SIDE_EFFECTS.add(assert_fn)


def _instruction(frame: FrameType) -> tuple[list[dis.Instruction], int]:
    instructions = list(dis.get_instructions(frame.f_code))
    return instructions, bisect.bisect_right(instructions, frame.f_lasti, key=lambda each: each.offset) - 1


class Proxy:
    """A value of a traced program: operators, methods and functions of it make nodes.

    >>> import genesis
    >>> graph = genesis.fx.Graph()
    >>> x = genesis.fx.Proxy(graph.placeholder("x"))
    >>> (x * 2).sum(dim=0).node.format_node()
    '%sum_1 : [num_users=0] = call_method[target=sum](args = (%mul,), kwargs = {dim: 0})'
    """

    node: Node

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node
        if type(self) not in KINDS:
            add_kind(type(self), everywhere=True)  # functions ask it from now on

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Any:
        return Attribute(self, k)  # it becomes a node when it is used, and none if it is called

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __deepcopy__(self, memo: dict[int, Any]) -> Proxy:
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        instructions, at = _instruction(sys._getframe(1))
        if instructions[at].opname == "UNPACK_SEQUENCE":  # how many there are is written in the program
            return iter([self[i] for i in range(instructions[at].argval)])
        return self.tracer.iter(self)

    def __bool__(self) -> bool:
        if self.tracer.trace_asserts and _in_assert(sys._getframe(1)):
            self.tracer.create_proxy("call_function", assert_fn, (self,), {})
            return True
        return self.tracer.to_bool(self)

    def __len__(self) -> int:
        raise GraphError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, "
            "please call torch.fx.wrap('len') at module scope"
        )

    def __abs__(self) -> Any:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __getitem__(self, key: Any) -> Any:
        return self.tracer.create_proxy("call_function", operator.getitem, (self, key), {})

    def keys(self) -> Any:
        return self.tracer.keys(self)

    @classmethod
    def __torch_function__(cls, orig_method: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        tracers: dict[TracerBase, None] = {}
        map_aggregate((args, kwargs), lambda a: tracers.setdefault(a.tracer) if isinstance(a, Proxy) else None)
        if len(tracers) > 1:
            raise GraphError(
                f"Found multiple different tracers {list(tracers)} while trying to trace operations {orig_method}"
            )
        tracer = next(iter(tracers))
        # ``tensor + proxy``; many methods are functions, too
        if is_method(orig_method) and args and isinstance(args[0], Tensor):
            return tracer.create_proxy("call_method", method_name(orig_method), args, kwargs)
        if orig_method is genesis.einsum and len(args) == 2 and isinstance(args[1], list | tuple):
            args = (args[0], *args[1])  # one form of the two, for passes that look at operands
        return tracer.create_proxy("call_function", orig_method, args, kwargs)


def _in_assert(frame: FrameType) -> bool:
    """Whether a frame asks for a truth value in an ``assert``."""
    instructions, at = _instruction(frame)
    # since Python 3.13 a value is made a bool by the comparison, or by an instruction of its own
    jumps = [i for i in (at, at + 1) if instructions[i].opname in ("POP_JUMP_IF_TRUE", "POP_JUMP_FORWARD_IF_TRUE")]
    jump = jumps[0] if jumps else len(instructions)
    after = instructions[jump + 1 : jump + 3]
    return any([i.opname == "LOAD_ASSERTION_ERROR" or "AssertionError" in str(i.argrepr) for i in after])


class Attribute(Proxy):
    """An attribute of a value: a node once it is used, or a call of a method."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None
        if Attribute not in KINDS:
            add_kind(Attribute, everywhere=True)

    @property
    def node(self) -> Node:  # type: ignore[override]
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """A parameter whose shape is known, for tracers with ``param_shapes_constant``."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Tensor) -> None:
        super().__init__(node, tracer)
        self.param, self.name = param, name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Size:
        return self.param.shape

    def size(self, dim: int | None = None) -> Any:
        return self.param.size() if dim is None else self.param.size(dim)

    def dim(self) -> int:
        return self.param.dim()

    @property
    def ndim(self) -> int:
        return self.param.ndim

    def numel(self) -> int:
        return self.param.numel()

    nelement = numel


def forget_proxies() -> None:
    """Let functions ask no proxies any more, once a graph is complete; one that is used again is asked again."""
    if not OPEN:
        remove_kinds([kind for kind in list(KINDS) if issubclass(kind, Proxy)])


def _operator(function: Callable[..., Any], reflected: bool = False) -> Callable[..., Any]:
    def method(self: Proxy, *others: Any) -> Any:
        args = (*others, self) if reflected else (self, *others)
        return self.tracer.create_proxy("call_function", function, args, {})

    return method


_COMPARED = ("eq", "ne", "lt", "gt", "le", "ge")
for _name in (*BINARY, *UNARY):
    _word = _name.strip("_")
    setattr(Proxy, f"__{_word}__", _operator(getattr(operator, _name)))
    if _name in BINARY and _name not in _COMPARED:
        setattr(Proxy, f"__r{_word}__", _operator(getattr(operator, _name), reflected=True))
Proxy.__hash__ = object.__hash__  # type: ignore[method-assign]
