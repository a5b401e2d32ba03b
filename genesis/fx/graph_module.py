"""A graph as a module: its forward is the Python of the graph."""

from __future__ import annotations

import copy
import itertools
import linecache
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from genesis.base.errors import ArgumentError, GraphError, message
from genesis.core.graph.parameter import Parameter
from genesis.core.graph.tensor import Tensor
from genesis.fx.codegen import PythonCode, PyTreeCodeGen
from genesis.fx.graph import Graph
from genesis.fx.patching import OWN_WRAPPED, WRAPPED
from genesis.fx.proxy import forget_proxies
from genesis.nn.module import Module

_numbers = itertools.count()
_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
_HOOKS = ("_replace_hooks", "_create_node_hooks", "_erase_node_hooks", "_deepcopy_hooks")


def _compiled(code: PythonCode) -> Callable[..., Any]:
    """The function that a text defines; tracebacks show its lines."""
    name = f"<forward of a graph {next(_numbers)}>"
    scope = dict(code.globals)
    exec(compile(code.src, name, "exec"), scope)
    scope[OWN_WRAPPED] = [WRAPPED.pop(key) and key[1] for key in list(WRAPPED) if key[0] == id(scope)]
    forward: Callable[..., Any] = scope["forward"]
    linecache.cache[name] = len(code.src), None, code.src.splitlines(keepends=True), name
    weakref.finalize(forward, linecache.cache.pop, name, None)
    return forward


def _copy_attr(from_module: Any, to_module: Module, target: str) -> None:
    """Take over what a dotted name is in a module, with the modules around it."""
    *prefix, name = target.split(".")
    for part in prefix:
        source, made = getattr(from_module, part), getattr(to_module, part, None)
        if source is made:
            return  # the whole of it is here already
        if made is None:
            made = Module()
            setattr(to_module, part, made)
        from_module, to_module = source, made
    _put(to_module, name, getattr(from_module, name))


def _assign_attr(value: Any, to_module: Module, target: str) -> None:
    """Put a value under a dotted name."""
    *prefix, name = target.split(".")
    for part in prefix:
        if getattr(to_module, part, None) is None:
            setattr(to_module, part, Module())
        to_module = getattr(to_module, part)
    _put(to_module, name, value)


def _put(module: Module, name: str, value: Any) -> None:
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        module.register_buffer(name, value)
    else:
        setattr(module, name, value)


def _shared(cls: type) -> type:
    """The class of which that of one object was made."""
    return next(c for c in cls.__mro__ if "_of_one_graph" not in vars(c))


class _CodeOnlyModule(Module):
    """The parts of a module without its graph."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


class GraphModule(Module):
    """A module that does what a graph says.

    Args:
        root: the module, or a dictionary, that has what nodes name
        graph: the program; assign another, or change it and call `recompile`
        class_name: how it prints

    >>> import genesis
    >>> traced = genesis.fx.symbolic_trace(genesis.nn.Sequential(genesis.nn.Linear(2, 3), genesis.nn.ReLU()))
    >>> print(traced.code.strip())
    def forward(self, input):
        input_1 = input
        _0 = getattr(self, "0")(input_1);  input_1 = None
        _1 = getattr(self, "1")(_0);  _0 = None
        return _1
    >>> list(traced.state_dict())
    ['0.weight', '0.bias']
    """

    _graph: Graph
    _code: str

    def __new__(cls, *args: Any, **kwargs: Any) -> GraphModule:
        """An object of a class of its own, whose ``forward`` is its."""
        own = _shared(cls)
        about = {"_of_one_graph": True, "__module__": own.__module__, "__qualname__": own.__qualname__}
        return object.__new__(type(own.__name__, (own,), about))

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        type(self).__name__ = class_name
        named = [str(node.target) for node in graph.nodes if node.op in ("get_attr", "call_module")]
        if isinstance(root, Module):
            self.training = root.training
            if isinstance(root, _CodeOnlyModule):
                parts = (*root.named_children(), *root._buffers.items(), *root._parameters.items())
                named = [*[name for name, value in parts if value is not None], *named]
            for target in named:
                _copy_attr(root, self, target)
        elif isinstance(root, dict):
            for target in sorted(named, key=lambda name: name.count(".")):
                if target not in root:
                    raise GraphError(
                        f"a node of the graph names {target}, but that target was not provided in ``root``!"
                    )
                _assign_attr(root[target], self, target)
        else:
            raise ArgumentError(message("torch.fx.GraphModule", f"Unsupported type {root!r} passed for root!"))
        for name in _HOOKS:
            self.__dict__[name] = []
        self.graph = graph
        tracer = graph._tracer_cls
        self._tracer_cls = None if tracer is None or "<locals>" in tracer.__qualname__ else tracer
        self._tracer_extras = graph._tracer_extras or {}
        self.meta: dict[str, Any] = {}

    @property
    def graph(self) -> Graph:
        """The program."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise ArgumentError(message("torch.fx.GraphModule", f"Expected a Graph instance, but got {type(g)}"))
        self.__dict__["_graph"] = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The Python that runs."""
        return self._code

    def recompile(self) -> PythonCode:
        """Make the forward anew, after the graph was changed."""
        written = self._graph.python_code(root_module="self")
        self.__dict__["_code"] = written.src
        if isinstance(codegen := self._graph._codegen, PyTreeCodeGen):
            self.__dict__["_in_spec"], self.__dict__["_out_spec"] = (
                codegen.pytree_info.in_spec,
                codegen.pytree_info.out_spec,
            )
        type(self).forward = _compiled(written)  # type: ignore[method-assign]
        forget_proxies()
        return written

    # ---- parts

    def add_submodule(self, target: str, m: Module) -> bool:
        """Put a module under a dotted name, with empty ones around it; False where something else is in the way.

        >>> import genesis
        >>> traced = genesis.fx.symbolic_trace(lambda x: x)
        >>> traced.add_submodule("a.b", genesis.nn.ReLU()), traced.delete_submodule("a.b")
        (True, True)
        """
        *prefix, name = target.split(".")
        module: Module = self
        for part in prefix:
            if getattr(module, part, None) is None:
                setattr(module, part, Module())
            module = getattr(module, part)
            if not isinstance(module, Module):
                return False
        module.add_module(name, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Take out a module; False if there is none of that name."""
        *prefix, name = target.split(".")
        module: Any = self
        for part in prefix:
            module = getattr(module, part, None)
        if not isinstance(module, Module) or not isinstance(getattr(module, name, None), Module):
            return False
        delattr(module, name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Take out the modules that the graph does not call or look into."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                parts = str(node.target).split(".")
                used |= {".".join(parts[: i + 1]) for i in range(len(parts))}
                inner = self.get_submodule(str(node.target)) if node.op == "call_module" else None
                used |= {f"{node.target}.{name}" for name, _ in inner.named_modules()} if inner is not None else set()
        for name, _ in list(self.named_modules()):
            if name and name not in used:
                self.delete_submodule(name)

    # ---- copies

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        cls = type(self)
        made = cls.__new__(cls)
        memo[id(self)] = made
        made._filled(copy.deepcopy(self._state(), memo), cls.__name__)
        for hook in self.__dict__.get("_deepcopy_hooks", ()):
            hook(made)
        return made

    def __copy__(self) -> Any:
        made = type(self).__new__(type(self))
        made._filled({**self._state(), "_graph": copy.deepcopy(self._graph)}, type(self).__name__)
        return made

    def __reduce__(self) -> Any:
        return _made, (_shared(type(self)), self._state(), type(self).__name__)

    def _state(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_code"}

    def _filled(self, state: dict[str, Any], class_name: str) -> None:
        self.__dict__.update(state)
        type(self).__name__ = class_name
        self.graph = self._graph

    # ---- text and files

    def to_folder(self, folder: Any, module_name: str = "FxModule") -> None:
        """Write the module as Python and its numbers, to be imported: ``from folder import FxModule``.

        Raises:
            RuntimeError: it has modules that a line of Python does not make
        """
        from genesis.fx.folder import written

        written(self, Path(folder), module_name)

    def print_readable(self, print_output: bool = True, **options: Any) -> str:
        """The code as a class, with those of graphs inside of it."""
        lines = self.code.strip("\n").splitlines()
        text = "\n".join(
            [f"class {type(self).__name__}(torch.nn.Module):", *[f"    {line}".rstrip() for line in lines]]
        )
        inner = [m.print_readable(False) for _, m in self.named_children() if isinstance(m, GraphModule)]
        text += "".join("\n" + "\n".join(f"    {line}".rstrip() for line in each.splitlines()) for each in inner)
        if print_output:
            print(text)
        return text

    def __str__(self) -> str:
        return "\n".join(
            [super().__repr__(), self.code, "# To see more debug info, please use `graph_module.print_readable()`"]
        )

    # ---- who looks on

    @contextmanager
    def _set_replace_hook(self, f: Callable[..., Any]) -> Iterator[None]:
        self._replace_hooks.append(f)
        try:
            yield
        finally:
            self._replace_hooks.remove(f)


def _hooks(kind: str) -> tuple[Callable[..., None], Callable[..., None]]:
    return (lambda self, f: self.__dict__[kind].append(f)), (lambda self, f: self.__dict__[kind].remove(f))


for _kind in _HOOKS:
    _word = _kind[1:-6]
    _add, _remove = _hooks(_kind)
    setattr(GraphModule, f"_register_{_word}_hook".replace("replace_", "replace_node_"), _add)
    setattr(GraphModule, f"_unregister_{_word}_hook".replace("replace_", "replace_node_"), _remove)


def _made(cls: type[GraphModule], state: dict[str, Any], class_name: str) -> GraphModule:
    """A module that was pickled."""
    made = cls.__new__(cls)
    made._filled(state, class_name)
    return made
