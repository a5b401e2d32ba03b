"""A module or function run on proxies: what it does becomes a graph."""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import CodeType, FunctionType, ModuleType
from typing import Any

from genesis.base.errors import ArgumentError, ArgumentValueError, GraphError, message
from genesis.base.locks import process_lock
from genesis.core.graph.parameter import Parameter
from genesis.core.graph.tensor import Tensor
from genesis.fx.codegen import PyTreeCodeGen, PyTreeInfo
from genesis.fx.concrete import annotations_of, leaves_of, placeholders_for
from genesis.fx.graph import Graph
from genesis.fx.graph_module import GraphModule
from genesis.fx.patching import Patcher, first_proxy, functions_in
from genesis.fx.proxy import OPEN, ParameterProxy, Proxy, Scope, TracerBase, forget_proxies
from genesis.nn.container import Sequential
from genesis.nn.module import Module

_tracer: ContextVar[_Open | None] = ContextVar("genesis_fx_tracer", default=None)
_changing = process_lock()


class _Open:
    """A tracer at work, with the parameters that have proxies already."""

    def __init__(self, tracer: Tracer, patcher: Patcher) -> None:
        self.tracer, self.patcher = tracer, patcher
        self.parameters: dict[str, Proxy] = {}


def is_fx_tracing() -> bool:
    """Whether a tracer is at work in this thread.

    >>> import genesis
    >>> from genesis.fx.tracer import is_fx_tracing
    >>> genesis.fx.symbolic_trace(lambda x: x if is_fx_tracing() else -x)(1), is_fx_tracing()
    (1, False)
    """
    return _tracer.get() is not None


def _called(module: Module, *args: Any, **kwargs: Any) -> Any:
    """``Module.__call__`` while a tracer is at work in some thread."""
    at_work = _tracer.get()
    if at_work is None:
        return _call(module, *args, **kwargs)
    at_work.patcher.autowrap(getattr(module.forward, "__globals__", {}), at_work.tracer._autowrap_function_ids)
    return at_work.tracer.call_module(module, lambda *a, **k: _call(module, *a, **k), args, kwargs)


def _attribute(module: Module, name: str) -> Any:
    """``Module.__getattr__`` then: parameters are nodes."""
    value = _get(module, name)
    at_work = _tracer.get()
    return value if at_work is None else at_work.tracer.getattr(name, value, at_work.parameters)


_call, _get = Module.__call__, Module.__getattr__


@contextmanager
def _at_work(tracer: Tracer, namespace: dict[str, Any]) -> Iterator[None]:
    """Inside, calls of modules, wrapped functions and parameters go to a tracer, in this thread."""
    with Patcher() as patcher:
        token = _tracer.set(_Open(tracer, patcher))
        with _changing:
            OPEN.append(tracer)
            Module.__call__, Module.__getattr__ = _called, _attribute  # type: ignore[method-assign, assignment]
        try:
            patcher.wrapped_functions()
            for each in (namespace, *map(vars, tracer._autowrap_search)):
                patcher.autowrap(each, tracer._autowrap_function_ids)
            yield
        finally:
            _tracer.reset(token)
            with _changing:
                OPEN.remove(tracer)
                if not OPEN:
                    Module.__call__, Module.__getattr__ = _call, _get  # type: ignore[method-assign]
                    forget_proxies()


class Tracer(TracerBase):
    """Makes graphs; derive from it to say which modules are called, and not looked into.

    Args:
        autowrap_modules: modules whose functions are recorded as they are, wherever the program calls them
        autowrap_functions: more such functions; param_shapes_constant: sizes of parameters are numbers

    >>> import genesis
    >>> class Through(genesis.fx.Tracer):
    ...     def is_leaf_module(self, m, module_qualified_name): return False
    >>> model = genesis.nn.Sequential(genesis.nn.Linear(2, 2), genesis.nn.ReLU())
    >>> [node.name for node in Through().trace(model).nodes]
    ['input_1', '_0_weight', '_0_bias', 'linear', 'relu', 'output']
    """

    def __init__(self, autowrap_modules: tuple[ModuleType, ...] = (math,),
                 autowrap_functions: tuple[Callable[..., Any], ...] = (), param_shapes_constant: bool = False) -> None:  # fmt: skip
        self._autowrap_function_ids = functions_in(autowrap_modules) | {id(f) for f in autowrap_functions}
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[Module, str] | None = None
        self.root_module_name = ""
        self.scope, self.module_stack, self.node_name_to_scope = Scope("", None), {}, {}

    def __deepcopy__(self, memo: dict[int, Any]) -> Tracer:
        made = object.__new__(type(self))
        for name, value in self.__dict__.items():  # modules of Python cannot be copied
            made.__dict__[name] = copy.copy(value) if name == "_autowrap_search" else copy.deepcopy(value, memo)
        return made

    # ---- what a tracer of one's own says

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether a module is one call: those of ``torch.nn`` but Sequential."""
        return type(m).__module__.startswith(("genesis.nn", "torch.nn")) and not isinstance(m, Sequential)

    def call_module(self, m: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of a module: one node for a leaf, else what ``forward`` does."""
        path = self.path_of_module(m)
        before = self.scope.module_path, self.scope.module_type
        self.scope.module_path, self.scope.module_type = path, type(m)
        counted = len([key for key in self.module_stack if key.partition("@")[0] == path])
        key = f"{path}@{counted}" if counted else path
        self.module_stack[key] = path, type(m)
        try:
            if self.is_leaf_module(m, path):
                return self.create_proxy("call_module", path, args, kwargs)
            return forward(*args, **kwargs)
        finally:
            del self.module_stack[key]
            self.scope.module_path, self.scope.module_type = before

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Proxy]) -> Any:
        """An attribute of a module: parameters are nodes, buffers with ``proxy_buffer_attributes``."""
        if isinstance(attr_val, Parameter):
            return self._known(attr_val, self.root.named_parameters(), parameter_proxy_cache)
        if self.proxy_buffer_attributes and isinstance(attr_val, Tensor):
            return self._known(attr_val, self.root.named_buffers(), parameter_proxy_cache)
        return attr_val

    def _known(self, value: Tensor, named: Iterator[tuple[str, Tensor]], proxies: dict[str, Proxy]) -> Any:
        name = next((n for n, p in named if p is value), None)
        if name is None:
            return value
        if name not in proxies:
            shaped: dict[str, Any] = {"proxy_factory_fn": lambda node: ParameterProxy(self, node, name, value)}
            known = shaped if self.param_shapes_constant else {}  # tracers that override create_proxy need not know it
            proxies[name] = self.create_proxy("get_attr", name, (), {}, **known)
        return proxies[name]

    def path_of_module(self, mod: Module) -> str:
        """The name of a module in that which is traced.

        Raises:
            NameError: it is not in it
        """
        paths = self.submodule_paths
        path = (
            paths.get(mod) if paths is not None else next((n for n, m in self.root.named_modules() if m is mod), None)
        )
        if path is None:
            raise NameError(f"module {type(mod).__name__} is not installed as a submodule")
        return path

    def get_fresh_qualname(self, prefix: str) -> str:
        """A name that the module has not, with a number."""
        count = 0
        while hasattr(self.root, f"{prefix}{count}"):
            count += 1
        return f"{prefix}{count}"

    # ---- values

    def create_arg(self, a: Any) -> Any:
        """A value as an argument: parameters, buffers and other tensors of the module by their names there."""
        if isinstance(a, Parameter):
            name = next((n for n, p in self.root.named_parameters() if p is a), None)
            if name is None:
                raise NameError("parameter is not a member of this module")
            return self.create_node("get_attr", name, (), {})
        if isinstance(a, Tensor) and not isinstance(a, Proxy):
            return self.create_node("get_attr", self._name_of(a), (), {})
        if isinstance(a, Module):
            return self.create_node("get_attr", self.path_of_module(a), (), {})
        if isinstance(a, tuple) and hasattr(a, "_fields") and first_proxy(a) is not None:
            return self.create_node("call_function", type(a), tuple([self.create_arg(x) for x in a]), {})
        return super().create_arg(a)

    def _name_of(self, a: Tensor) -> str:
        name = next((n for n, b in self.root.named_buffers() if b is a), None) or self.tensor_attrs.get(id(a))
        if name is None:
            name = self.get_fresh_qualname("_tensor_constant")
            setattr(self.root, name, a)
            self.tensor_attrs[id(a)] = name
        return name

    # ---- the trace

    def trace(self, root: Module | Callable[..., Any], concrete_args: Any = None) -> Graph:
        """The graph of a module or function.

        Args:
            concrete_args: values of arguments by name, which are taken as they are; containers with `PH` in them are taken
                apart, and what is `PH` stays an argument
        """
        is_module = isinstance(root, Module)
        if isinstance(root, Module):
            self.root, fn = root, getattr(type(root), self.traced_func_name)
            self.root_module_name = root._get_name()
            self.submodule_paths = {m: name for name, m in root.named_modules()}
        else:
            self.root, fn = Module(), root
        if not isinstance(fn, FunctionType):
            raise ArgumentError(message("torch.fx.Tracer.trace", f"expected a module or a function, got {fn!r}"))
        self.graph = Graph(tracer_cls=type(self))
        self.tensor_attrs = {
            id(value): f"{prefix}.{name}" if prefix else name
            for prefix, module in self.root.named_modules()
            for name, value in module.__dict__.items()
            if isinstance(value, Tensor)
        }
        called, args = self.create_args_for_root(fn, is_module, concrete_args)
        with _at_work(self, fn.__globals__):
            returned = annotations_of(inspect.unwrap(fn)).get("return")
            self.create_node("output", "output", (self.create_arg(called(*args)),), {}, type_expr=returned)
        self.submodule_paths = None
        return self.graph

    def create_args_for_root(
        self, root_fn: Callable[..., Any], is_module: bool, concrete_args: Any = None
    ) -> tuple[Any, list[Any]]:
        """The arguments that a function is traced with, placeholders made for them, and what is called with these."""
        inner = inspect.unwrap(root_fn)
        code: CodeType = inner.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        names = list(code.co_varnames[:count])
        if is_module and not names:
            raise GraphError("``self`` argument cannot be part of *args expansion!")
        own, names = ([self.root], names[1:]) if is_module else ([], names)
        if isinstance(concrete_args, tuple):
            if len(names) != len(concrete_args):
                raise ArgumentValueError(
                    f"Tracing expected {len(names)} arguments but got {len(concrete_args)} concrete arguments"
                )
            concrete_args = dict(zip(names, concrete_args, strict=True))
        given = [placeholders_for(self, name, concrete_args or {}, inner) for name in names]
        stars = [flag for flag in (inspect.CO_VARARGS, inspect.CO_VARKEYWORDS) if code.co_flags & flag]
        for name, flag in zip(code.co_varnames[count:], stars, strict=False):
            sign = "*" if flag == inspect.CO_VARARGS else "**"
            given.append(placeholders_for(self, f"{sign}{name}", {}, inner))
        called = _positional(root_fn, len(own) + len(given)) if stars or code.co_kwonlyargcount else root_fn
        if not any([isinstance(x, tuple | list | dict) for x in given]):
            return called, [*own, *given]
        return self._taken_apart(called, own, given, names)

    def _taken_apart(
        self, fn: Callable[..., Any], own: list[Any], given: list[Any], names: list[str]
    ) -> tuple[Any, list[Any]]:
        leaves, in_spec, rebuilt = leaves_of(given)
        codegen = PyTreeCodeGen(PyTreeInfo(names, in_spec, None))
        self.graph.set_codegen(codegen)

        def flat(*args: Any) -> Any:
            parts, out_spec, _ = leaves_of(fn(*own, *rebuilt(list(args))))
            codegen.pytree_info = codegen.pytree_info._replace(out_spec=out_spec)
            return parts

        return flat, leaves


def _positional(fn: Callable[..., Any], count: int) -> Callable[..., Any]:
    """A function whose ``*args``, ``**kwargs`` and keywords are arguments like the others."""
    assert isinstance(fn, FunctionType)
    code = fn.__code__
    flags = code.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    changed = code.replace(co_argcount=count, co_posonlyargcount=0, co_kwonlyargcount=0, co_flags=flags)
    return FunctionType(changed, fn.__globals__, fn.__name__, None, fn.__closure__)


def symbolic_trace(root: Module | Callable[..., Any], concrete_args: Any = None) -> GraphModule:
    """A module or function as a graph that is a module.

    >>> import genesis
    >>> traced = genesis.fx.symbolic_trace(lambda x, deep: genesis.sin(x) if deep else x, concrete_args={"deep": True})
    >>> traced(genesis.tensor(0.0), True)
    tensor(0.)
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
