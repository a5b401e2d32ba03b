"""`Module`: parameters, buffers and sub-modules under names, and a forward function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

from genesis.base.errors import ArgumentError, ArgumentValueError, message
from genesis.base.text import name_of
from genesis.core.graph.hooks import RemovableHandle
from genesis.core.graph.modes import ACTIVE
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.tracing import Dependable, changes, depends, goes_through, plain_only, sets, tracer
from genesis.nn.conversions import Conversions
from genesis.nn.hooks import (
    EVERY_MODULE,
    KINDS,
    REGISTRATION,
    HooksOf,
    ModuleHooks,
    add,
    call_with_hooks,
    changing,
    hooks_of,
    registered,
)
from genesis.nn.parameter import Buffer, Parameter
from genesis.nn.state import ModuleState


class Module(ModuleState, Conversions, Dependable):
    """Base class of networks and their layers.

    Tensors of class `Parameter` and modules that are assigned to attributes are found by name; subclasses define
    ``forward``, and a call of the module runs it between its hooks.

    >>> import genesis
    >>> class Twice(genesis.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.scale = genesis.nn.Parameter(genesis.tensor(2.0))
    ...     def forward(self, x):
    ...         return x * self.scale
    >>> Twice()(genesis.ones(2))
    tensor([2., 2.], grad_fn=<MulBackward>)
    """

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]
    _transient: set[str]
    _hooks: ModuleHooks | None
    _version: int = 1
    dump_patches = False
    call_super_init = False  # whether what follows in the order of base classes is initialised, too

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init and (args or kwargs):
            raise ArgumentError(message(f"{type(self).__name__}.__init__", "Module takes no arguments"))
        put = super().__setattr__
        put("training", True)
        for name in ("_parameters", "_buffers", "_modules"):
            put(name, {})
        put("_hooks", None)
        put("_transient", set())
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name, value in {"training": True, "_hooks": None, "_transient": set()}.items():
            self.__dict__.setdefault(name, value)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} defines no forward")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if ACTIVE:
            depends(self)
        if self._hooks is None and not EVERY_MODULE:
            return self.forward(*args, **kwargs)
        return call_with_hooks(self, args, kwargs)

    def _taken_for_granted(self) -> dict[str, Any]:
        state = plain_only({name: value for name, value in self.__dict__.items() if name != "_hooks"})
        state |= {**self._parameters, **self._buffers, **self._modules}
        state["forward"] = self.__dict__.get("forward", type(self).forward)  # `__call__` reads it, no code of a program
        sets = [*EVERY_MODULE, *([] if self._hooks is None else [self._hooks])]
        state["hooks"] = tuple(
            [
                entry[0]
                for s in sets
                for kind in (s.forward_pre, s.forward, s.backward_pre, s.backward)
                for entry in kind.values()
            ]
        )
        return state

    def _witnesses(self) -> tuple[Any, ...]:
        if self._hooks is not None or EVERY_MODULE or list in map(type, self.__dict__.values()):
            return super()._witnesses()
        parts = self._parameters, self._buffers, self._modules
        return type(self).forward, *self.__dict__.values(), *[x for part in parts for x in part.values()]

    def _answers(self) -> list[tuple[Any, tuple[Any, ...] | None]] | None:
        if self._hooks is not None or EVERY_MODULE:
            return None
        lists = [value for value in self.__dict__.values() if type(value) is list]
        stores = (EVERY_MODULE, self.__dict__, self._parameters, self._buffers, self._modules)
        forward = [(vars(kind), ("forward",)) for kind in type(self).__mro__ if "forward" in vars(kind)][:1]
        return [*forward, *[(held, None) for held in (*stores, *lists)]]

    def _parts(self) -> Iterator[tuple[str, Module]]:
        return self.named_modules()

    # ---- names

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """An operation as an attribute of a class (``activation = torch.tanh``) stays one: PyTorch's are in C, and become
        no methods.
        """
        super().__init_subclass__(**kwargs)
        for name, value in list(vars(cls).items()):
            if type(value) is FunctionType and (value.__module__ or "").startswith("genesis.ops."):
                setattr(cls, name, staticmethod(value))

    def __setattr__(self, name: str, value: Any) -> None:
        stores = self.__dict__.get("_parameters"), self.__dict__.get("_buffers"), self.__dict__.get("_modules")
        if isinstance(value, Parameter | Module | Buffer):
            if stores[0] is None:
                raise AttributeError(f"cannot assign {name!r} before Module.__init__() was called")
            mine = stores[0 if isinstance(value, Parameter) else 1 if isinstance(value, Buffer) else 2]
            for store in (self.__dict__, *stores):
                if store is not mine:  # what has the name already keeps its place
                    store.pop(name, None)
            if isinstance(value, Buffer):
                self.register_buffer(name, value, value.persistent)  # type: ignore[attr-defined]
            else:
                kind = "parameter" if mine is stores[0] else "module"
                mine[name] = registered(kind, self, name, value) if REGISTRATION[kind] else value
                self._transient.discard(name)
            return
        for store, kind in zip(stores, (Parameter, Tensor, Module), strict=True):
            if store is not None and name in store:
                if value is not None and not isinstance(value, kind):
                    raise ArgumentError(
                        message(
                            type(self).__name__,
                            f"{name!r} must be a {kind.__name__} or None, got {type(value).__name__}",
                        )
                    )
                store[name] = value
                return
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        for store in ("_parameters", "_buffers", "_modules"):
            members = self.__dict__.get(store)
            if members is not None and name in members:
                return members[name]
        if name in KINDS and "_hooks" in self.__dict__:
            return HooksOf(getattr(hooks_of(self), KINDS[name]))
        if name == "_non_persistent_buffers_set" and "_transient" in self.__dict__:
            return self._transient
        raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")

    def __delattr__(self, name: str) -> None:
        for store in (self._parameters, self._buffers, self._modules):
            if name in store:
                del store[name]  # type: ignore[attr-defined]
                self._transient.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._parameters, *self._buffers, *self._modules})

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter (or the name of one that is None)."""
        self._check_name(name)
        if param is not None and not isinstance(param, Parameter):
            raise ArgumentError(
                message("register_parameter", f"{name!r} must be a Parameter or None, got {type(param).__name__}")
            )
        changes(self, f"the parameter {name!r} is registered")
        self._parameters[name] = registered("parameter", self, name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is not learned; one that is not ``persistent`` stays out of ``state_dict``."""
        self._check_name(name)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise ArgumentError(
                message("register_buffer", f"{name!r} must be a tensor or None, got {type(tensor).__name__}")
            )
        sets(self, name, self._buffers)
        self._buffers[name] = registered("buffer", self, name, tensor)
        (self._transient.discard if persistent else self._transient.add)(name)

    def register_module(self, name: str, module: Module | None) -> None:
        """Add a sub-module."""
        self.add_module(name, module)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a sub-module."""
        self._check_name(name)
        if module is not None and not isinstance(module, Module):
            raise ArgumentError(
                message("add_module", f"{name!r} must be a Module or None, got {type(module).__name__}")
            )
        changes(self, f"the module {name!r} is registered")
        self._modules[name] = registered("module", self, name, module)

    def _check_name(self, name: str) -> None:
        if not isinstance(name, str) or "." in name or not name:
            raise KeyError(f"a name must be a non-empty string without a dot, got {name!r}")
        if (
            hasattr(self, name)
            and name not in self._parameters
            and name not in self._buffers
            and name not in self._modules
        ):
            raise KeyError(f"attribute {name!r} already exists")

    # ---- what is inside

    def named_modules(
        self, memo: set[int] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        memo = set() if memo is None else memo
        if remove_duplicate and id(self) in memo:
            return
        memo.add(id(self))
        if ACTIVE:
            goes_through(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        seen, ahead = set(), [self]
        while ahead:
            module = ahead.pop()
            if not remove_duplicate or id(module) not in seen:
                seen.add(id(module))
                if ACTIVE:
                    goes_through(module)
                yield module
                if module._modules:
                    ahead.extend([m for m in reversed(module._modules.values()) if m is not None])

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules right below with their names, each once."""
        if ACTIVE:
            goes_through(self)
        seen: set[int] = set()
        for name, module in self._modules.items():
            if module is not None and id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def children(self) -> Iterator[Module]:
        return (module for _, module in self.named_children())

    def _named_members(
        self, get_members_fn: Any, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """What a function of a module gives as pairs of names and values, of all modules by their paths; under PyTorch's
        name, as libraries call it for members of their own.
        """
        if ACTIVE:
            goes_through(self)
        seen: set[int] = set()
        for path, module in (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        ):
            for name, value in get_members_fn(module):
                if value is None or (remove_duplicate and id(value) in seen):
                    continue
                seen.add(id(value))
                yield f"{path}.{name}" if path else name, value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        return self._named_members(lambda module: module._parameters.items(), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        if ACTIVE:
            goes_through(self)
        parameters = {id(p): p for m in (self.modules() if recurse else (self,)) for p in m._parameters.values()}
        return (p for p in parameters.values() if p is not None)

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        return self._named_members(lambda module: module._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        return (b for _, b in self.named_buffers(recurse=recurse))

    def get_submodule(self, target: str) -> Module:
        """The module at a path such as ``"encoder.0"``."""
        module: Any = self
        for part in target.split(".") if target else []:
            if part not in module._modules:
                raise AttributeError(f"{type(module).__name__} has no sub-module {part!r}")
            module = module._modules[part]
        return module  # type: ignore[no-any-return]

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put a module at a path such as ``"encoder.0"``; modules on the way must exist, with ``strict`` the one it
        replaces, too.

        Raises:
            AttributeError: there is no such path
            ValueError: the path is empty, or ``module`` is not a module
        """
        path, _, name = target.rpartition(".")
        if not name or not isinstance(module, Module):
            what = "the path is empty" if not name else f"expected a module, got {type(module).__name__}"
            raise ArgumentValueError(message("set_submodule", what))
        parent = self.get_submodule(path)
        if strict and name not in parent._modules:
            raise AttributeError(f"{type(parent).__name__} has no sub-module {name!r}")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a path such as ``"encoder.0.weight"``."""
        path, _, name = target.rpartition(".")
        parameter = self.get_submodule(path)._parameters.get(name)
        if parameter is None:
            raise AttributeError(f"there is no parameter {target!r}")
        return parameter

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a path."""
        path, _, name = target.rpartition(".")
        buffer = self.get_submodule(path)._buffers.get(name)
        if buffer is None:
            raise AttributeError(f"there is no buffer {target!r}")
        return buffer

    # ---- modes

    def train(self, mode: bool = True) -> Module:
        """Set training mode here and below; returns the module."""
        if not isinstance(mode, bool):
            raise ArgumentValueError(message("train", f"mode must be True or False, got {mode!r}"))
        active = tracer.get()
        for module in self.modules():
            if active is not None:
                active.mode_set(module, mode)
            module.training = mode
        return self

    def eval(self) -> Module:
        """Set evaluation mode here and below; returns the module."""
        return self.train(False)

    def apply(self, fn: Callable[[Module], Any]) -> Module:
        """Call ``fn`` on every module below, then on this one; returns the module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def requires_grad_(self, requires_grad: bool = True) -> Module:
        """Begin or stop recording for all parameters; returns the module."""
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget (or zero) the gradients of all parameters."""
        for p in self.parameters():
            p.zero_grad(set_to_none)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile ``forward`` in place, see `genesis.compile`, which says what the arguments are."""
        from genesis.jit.compiling.options import compiled

        self.forward = compiled(type(self).forward.__get__(self), *args, **kwargs)  # type: ignore[method-assign]

    def _made_compiled(self, options: dict[str, Any]) -> Any:
        """What `genesis.compile` calls in its place."""
        from genesis.jit.compiling.options import compiled

        return compiled(self, **options)

    # ---- hooks and looks

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` before forward; it may return other arguments.

        ``with_kwargs``: ``hook(module, args, kwargs)``, which may return both. ``prepend``: before the hooks that are
        there.
        """
        return add(changing(self).forward_pre, hook, prepend, with_kwargs)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args, output)`` after forward; it may return another output.

        ``with_kwargs``: ``hook(module, args, kwargs, output)``. ``always_call``: also when forward raises (then output
        is None).
        """
        return add(changing(self).forward, hook, prepend, with_kwargs, always_call)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` when the gradients of the outputs are known; it may return other ones."""
        return add(changing(self).backward_pre, hook, prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` when the gradients of the inputs are known; it may return
        others of the inputs.

        ``grad_input`` has one entry for each positional argument (None where there is no gradient); ``grad_output`` one
        for each output, and for an output that is a dictionary or dataclass the same structure.

        >>> import genesis
        >>> layer = genesis.nn.Linear(2, 1, bias=False)
        >>> handle = layer.register_full_backward_hook(lambda m, grad_input, grad_output: print(grad_output))
        >>> layer(genesis.ones(1, 2, requires_grad=True)).sum().backward()
        (tensor([[1.]]),)
        """
        return add(changing(self).backward, hook, prepend)

    register_backward_hook = register_full_backward_hook

    def extra_repr(self) -> str:
        """What a module says of itself between the parentheses."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr().split("\n") if self.extra_repr() else []
        children = [
            f"({name_of(name)}): " + repr(module).replace("\n", "\n  ") for name, module in self._modules.items()
        ]
        if not children and len(extra) <= 1:
            return f"{self._get_name()}({''.join(extra)})"
        return f"{self._get_name()}(\n  " + "\n  ".join(extra + children) + "\n)"
