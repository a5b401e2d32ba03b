"""The Python of a graph: one function, ``forward``, whose lines are its nodes."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from genesis.base.device import device
from genesis.base.pytree import TreeDef, tree_flatten, tree_unflatten
from genesis.fx.naming import GLOBALS, Namespace, public_path, qualified_name, type_name, value_name
from genesis.fx.node import Node

if TYPE_CHECKING:
    from genesis.fx.graph import Graph

BINARY = {
    "add": "+", "sub": "-", "mul": "*", "floordiv": "//", "truediv": "/", "mod": "%", "pow": "**", "lshift": "<<",
    "rshift": ">>", "and_": "&", "or_": "|", "xor": "^", "matmul": "@", "eq": "==", "ne": "!=", "lt": "<", "gt": ">",
    "le": "<=", "ge": ">=",
}  # fmt: skip
UNARY = {"pos": "+", "neg": "-", "invert": "~"}
MAGIC = {
    **{name: f"{{}} {sign} {{}}" for name, sign in BINARY.items()}, **{name: f"{sign}{{}}" for name, sign in UNARY.items()},
    "getitem": "{}[{}]",
}  # fmt: skip
INPLACE = {f"i{name.strip('_')}": f"{{}} {sign}= {{}}" for name, sign in list(BINARY.items())[:-6]}
INPLACE["setitem"] = "{}[{}] = {}"


@dataclass
class PythonCode:
    """A function as text, and the values that it finds outside of itself."""

    src: str
    globals: dict[str, Any]


class PyTreeInfo(NamedTuple):
    """The arguments of a function whose containers are taken apart, their structure, and that of its result."""

    orig_args: list[str]
    in_spec: TreeDef
    out_spec: TreeDef | None


class CodeGen:
    """How a graph is written; derive from it for functions with other arguments or results.

    >>> import genesis
    >>> class Listed(genesis.fx.CodeGen):
    ...     def gen_fn_def(self, free_vars, maybe_return_annotation):
    ...         return f"def forward(self, inputs):\\n    {', '.join(free_vars)}, = inputs"
    ...     def process_inputs(self, *inputs): return inputs[0]
    >>> module = genesis.fx.symbolic_trace(lambda x, y: x + y)
    >>> module.graph.set_codegen(Listed())
    >>> print(module.recompile().src.strip())
    def forward(self, inputs):
        x, y, = inputs
        add = x + y;  x = y = None
        return add
    >>> module([1, 2])
    3
    """

    _body_transformer: Callable[[list[str]], list[str]] | None = None

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """The first line."""
        arguments = free_vars if free_vars[:1] == ["self"] else ["self", *free_vars]
        return f"def forward({', '.join(arguments)}){maybe_return_annotation}:"

    def generate_output(self, output_args: Any) -> str:
        """The last line."""
        return f"return {represent(output_args, self._add_global)}"

    def process_inputs(self, *args: Any) -> Any:
        """The values of the placeholders, from the arguments of the function."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """The result of the function, from what the output node has."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Names that the code uses besides those of the graph."""
        return []

    def _add_global(self, hint: str, obj: Any) -> str:
        return hint

    def write(self, graph: Graph, root_module: str, namespace: Namespace) -> PythonCode:
        """The function of a graph."""
        writer = _Writer(self, root_module, namespace)
        self._add_global = writer.add_global  # type: ignore[method-assign]
        try:
            for node in graph.nodes:
                writer.emit(node)
            return writer.finished(graph)
        finally:
            del self._add_global


class PyTreeCodeGen(CodeGen):
    """A function whose arguments are containers: placeholders are what is in them."""

    def __init__(self, pytree_info: PyTreeInfo) -> None:
        self.pytree_info = pytree_info

    def process_inputs(self, *args: Any) -> Any:
        return tree_flatten(args)[0]

    def process_outputs(self, outputs: Any) -> Any:
        spec = self.pytree_info.out_spec
        return outputs if spec is None else tree_unflatten(outputs, spec)

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        given = [name for name in self.pytree_info.orig_args if name != "self"]
        first = super().gen_fn_def(given, maybe_return_annotation)
        names = [name.split(":")[0].split("=")[0].strip() for name in free_vars if name != "self"]
        return f"{first}\n    {''.join(f'{name}, ' for name in names)}= tree_flatten(({''.join(f'{x}, ' for x in given)}))[0]"

    def generate_output(self, output_args: Any) -> str:
        if self.pytree_info.out_spec is None:
            return super().generate_output(output_args)
        return f"return tree_unflatten({represent(output_args, self._add_global)}, self._out_spec)"

    def additional_globals(self) -> list[tuple[str, Any]]:
        return [("tree_flatten", tree_flatten), ("tree_unflatten", tree_unflatten)]


def represent(arg: Any, add_global: Callable[[str, Any], str]) -> str:
    """An argument as Python writes it."""
    if isinstance(arg, Node):
        return arg.name
    if isinstance(arg, tuple) and hasattr(arg, "_fields"):
        inside = ", ".join(represent(x, add_global) for x in arg)
        return f"{add_global(qualified_name(type(arg)), type(arg))}({inside})"
    if isinstance(arg, tuple):
        inside = ", ".join(represent(x, add_global) for x in arg)
        return f"({inside}{',' if len(arg) == 1 else ''})"
    if isinstance(arg, list):
        return f"[{', '.join(represent(x, add_global) for x in arg)}]"
    if isinstance(arg, dict):
        return f"{{{', '.join(f'{key!r}: {represent(x, add_global)}' for key, x in arg.items())}}}"
    if isinstance(arg, slice):
        return f"slice({', '.join(represent(x, add_global) for x in (arg.start, arg.stop, arg.step))})"
    if isinstance(arg, enum.Enum):
        return f"{add_global(qualified_name(type(arg)), type(arg))}.{arg.name}"
    if isinstance(arg, type):
        return add_global(type_name(arg), arg)
    return value_name(arg)


def attribute(base: str, target: str) -> str:
    """``base.a.b``, also where parts are no names of Python."""
    for part in target.split("."):
        base = f"{base}.{part}" if part.isidentifier() else f'getattr({base}, "{part}")'
    return base


@dataclass
class _Writer:
    codegen: CodeGen
    root: str
    namespace: Namespace
    globals: dict[str, Any] = field(default_factory=dict)
    free: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    ends: list[Node] = field(default_factory=list)
    wrapped: dict[str, None] = field(default_factory=dict)
    returns: str = ""

    def __post_init__(self) -> None:
        self.globals.update(GLOBALS)

    def add_global(self, hint: str, obj: Any) -> str:
        """The name by which the code finds an object."""
        if public_path(obj) is not None and obj is not device:
            return str(public_path(obj))
        name = self.namespace.create_name(hint, obj)
        self.globals[name] = obj
        return name

    def type_text(self, kind: Any) -> str:
        """A type in an annotation, with the names that it is made of."""
        if kind == ():
            return "()"
        origin, arguments = getattr(kind, "__origin__", None), getattr(kind, "__args__", ())
        if origin is not None and arguments:
            inside = ",".join(self.type_text(x) for x in arguments)
            base = getattr(kind, "_name", None)
            if str(type(kind)) == "<class 'typing._UnionGenericAlias'>" or base == "Union":
                return f"{self.add_global('typing_Union', __import__('typing').Union)}[{inside}]"
            return f"{self.add_global(type_name(origin), origin)}[{inside}]"
        return self.add_global(type_name(kind), kind)

    def _arg(self, arg: Any) -> str:
        return represent(arg, self.add_global)

    def _args(self, args: Iterable[Any], kwargs: dict[str, Any]) -> str:
        return ", ".join([*map(self._arg, args), *[f"{key} = {self._arg(x)}" for key, x in kwargs.items()]])

    def emit(self, node: Node) -> None:
        """The line of a node."""
        typed = "" if node.type is None else f" : {self.type_text(node.type)}"
        if node.op == "placeholder":
            self._placeholder(node, typed)
        elif node.op == "output":
            self.returns = "" if node.type is None else f" -> {self.type_text(node.type)}"
            self.body.append(self.codegen.generate_output(node.args[0]) + "\n")
        else:
            self.body.append(self._call(node, f"{node.name}{typed}"))
            self.ends.append(node)

    def _placeholder(self, node: Node, typed: str) -> None:
        default = f" = {self._arg(node.args[0])}" if node.args else ""
        self.free.append(f"{node.target}{typed}{default}")
        raw = str(node.target).lstrip("*")
        if raw != node.name:
            self.body.append(f"{node.name} = {raw}\n")

    def _call(self, node: Node, result: str) -> str:
        target = node.target
        if node.op == "call_method":
            return f"{result} = {attribute(self._arg(node.args[0]), str(target))}({self._args(node.args[1:], node.kwargs)})"
        if node.op == "call_module":
            return f"{result} = {attribute(self.root, str(target))}({self._args(node.args, node.kwargs)})"
        if node.op == "get_attr":
            return f"{result} = {attribute(self.root, str(target))}"
        assert callable(target)
        name = getattr(target, "__name__", "")
        if getattr(target, "__module__", "") == "_operator" and not node.kwargs:
            if name in MAGIC:
                return f"{result} = {MAGIC[name].format(*map(self._arg, node.args))}"
            if name in INPLACE:
                written = INPLACE[name].format(*map(self._arg, node.args))
                return f"{written};  {result} = {self._arg(node.args[0])}"
        if target is getattr and len(node.args) == 2 and isinstance(node.args[1], str) and node.args[1].isidentifier():
            return f"{result} = {self._arg(node.args[0])}.{node.args[1]}"
        called = self.add_global(qualified_name(target), target)
        if node.meta.get("is_wrapped"):
            self.wrapped.setdefault(called)
        return f"{result} = {called}({self._args(node.args, node.kwargs)})"

    def finished(self, graph: Graph) -> PythonCode:
        """The whole function: values are let go after the line that uses them last."""
        last: dict[Node, Node] = {}
        for node in reversed(graph.nodes):
            for used in node.all_input_nodes:
                last.setdefault(used, node)
        ending: dict[Node, list[Node]] = {}
        for used, node in last.items():
            ending.setdefault(node, []).append(used)
        body, ends = [], iter(self.ends)
        for line in self.body or ["pass\n"]:
            body.append(line if line.endswith("\n") else line + self._let_go(next(ends), ending))
        if self.codegen._body_transformer:
            body = self.codegen._body_transformer(body)
        self.globals.update(self.codegen.additional_globals())
        first = self.codegen.gen_fn_def(self.free, self.returns)
        marks = "\n".join(f'torch.fx.wrap("{name}")' for name in self.wrapped)
        lines = "".join(body).lstrip("\n").split("\n")
        return PythonCode(f"\n{marks}\n\n{first}\n" + "\n".join("    " + line for line in lines), self.globals)

    def _let_go(self, node: Node, ending: dict[Node, list[Node]]) -> str:
        names = [used.name for used in ending.get(node, ())] + ([] if node.users else [node.name])
        return f";  {' = '.join([*names, 'None'])}\n" if names else "\n"
