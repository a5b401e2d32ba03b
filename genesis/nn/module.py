"""`Module`: parameters, buffers and sub-modules under names, and a forward function."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from genesis.base import dtypes
from genesis.base.errors import ArgumentError, ArgumentValueError, GenesisError, UnsupportedError, message
from genesis.base.text import name_of
from genesis.core.graph.hooks import RemovableHandle
from genesis.core.graph.modes import ACTIVE, no_grad
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.tracing import Dependable, depends, plain_only
from genesis.nn.hooks import EVERY_MODULE, REGISTRATION, ModuleHooks, add, call_with_hooks, hooks_of, registered
from genesis.nn.parameter import Buffer, Parameter
from genesis.nn.state_hooks import StateHooks, after_load, before_load, collect, has_load_post_hooks
from genesis.nn.uninitialized import Uninitialized

EXTRA = "_extra_state"  # its name in a state


class StateDictError(GenesisError, RuntimeError):
    """A state that does not fit a module; says all that is missing, unexpected or of another shape."""


class IncompatibleKeys(NamedTuple):
    """What `load_state_dict` did not find, and what it did not know."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


class Module(StateHooks, Dependable):
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
        return (*self.__dict__.values(), *self._parameters.values(), *self._buffers.values(), *self._modules.values())

    def _parts(self) -> Iterator[tuple[str, Module]]:
        return self.named_modules()

    # ---- names

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
            found = self.__dict__.get(store)
            if found is not None and name in found:
                return found[name]
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
        self._parameters[name] = registered("parameter", self, name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is not learned; one that is not ``persistent`` stays out of ``state_dict``."""
        self._check_name(name)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise ArgumentError(
                message("register_buffer", f"{name!r} must be a tensor or None, got {type(tensor).__name__}")
            )
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
                yield module
                if module._modules:
                    ahead.extend([m for m in reversed(module._modules.values()) if m is not None])

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules right below with their names, each once."""
        seen: set[int] = set()
        for name, module in self._modules.items():
            if module is not None and id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def children(self) -> Iterator[Module]:
        return (module for _, module in self.named_children())

    def _named(self, store: str, prefix: str, recurse: bool, remove_duplicate: bool) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        for path, module in (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        ):
            for name, value in getattr(module, store).items():
                if value is None or (remove_duplicate and id(value) in seen):
                    continue
                seen.add(id(value))
                yield f"{path}.{name}" if path else name, value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        return self._named("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        found = {id(p): p for m in (self.modules() if recurse else (self,)) for p in m._parameters.values()}
        return (p for p in found.values() if p is not None)

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        return self._named("_buffers", prefix, recurse, remove_duplicate)

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
        found = self.get_submodule(path)._parameters.get(name)
        if found is None:
            raise AttributeError(f"there is no parameter {target!r}")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a path."""
        path, _, name = target.rpartition(".")
        found = self.get_submodule(path)._buffers.get(name)
        if found is None:
            raise AttributeError(f"there is no buffer {target!r}")
        return found

    # ---- state

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Tensor]:
        """All parameters and persistent buffers by their paths, sharing memory with the module.

        ``prefix`` goes before each path; with ``keep_vars`` the tensors have their history.
        """
        if args:
            destination, prefix, keep_vars = (*args, *(destination, prefix, keep_vars)[len(args) :])
        return collect(self, OrderedDict() if destination is None else destination, prefix, keep_vars)  # type: ignore[no-any-return]

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Put this module's own tensors into the state."""
        own = {**self._parameters, **{k: v for k, v in self._buffers.items() if k not in self._transient}}
        for name, value in own.items():
            if value is not None:
                destination[prefix + name] = value if keep_vars else value.detach()
        if type(self).get_extra_state is not Module.get_extra_state:
            destination[prefix + EXTRA] = self.get_extra_state()

    def get_extra_state(self) -> Any:
        """What a state has of this module besides its tensors; subclasses define it together with `set_extra_state`.

        >>> import genesis
        >>> class Counts(genesis.nn.Module):
        ...     steps = 0
        ...     def get_extra_state(self):
        ...         return self.steps
        ...     def set_extra_state(self, state):
        ...         self.steps = state
        >>> Counts().state_dict()
        OrderedDict([('_extra_state', 0)])
        """
        raise UnsupportedError(
            message(
                f"{type(self).__name__}.get_extra_state", "not defined, the module has no state besides its tensors"
            )
        )

    def set_extra_state(self, state: Any) -> None:
        """Take over what `get_extra_state` gave; called by `load_state_dict`."""
        raise UnsupportedError(
            message(f"{type(self).__name__}.set_extra_state", "the state has an entry for it, but it is not defined")
        )

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copy values by their paths into this module (or, with ``assign``, take the tensors themselves).

        Nothing is changed unless everything fits.

        Raises:
            TypeError: not a mapping
            RuntimeError: with ``strict``, missing or unexpected names; always, another shape: all of them are listed
        """
        if not isinstance(state_dict, Mapping):
            raise ArgumentError(message("load_state_dict", f"expected a mapping, got {type(state_dict).__name__}"))
        state_dict, (also_missing, also_unexpected, told) = before_load(self, state_dict, strict)
        mine = _tensors(self)
        extra = {
            f"{path}.{EXTRA}" if path else EXTRA: m
            for path, m in self.named_modules(remove_duplicate=False)
            if _has_extra(m)
        }
        keys = IncompatibleKeys(
            [*also_missing, *[k for k in (*mine, *extra) if k not in state_dict]],
            [*also_unexpected, *[k for k in state_dict if k not in mine and k not in extra]],
        )
        problems = [*told, *[p for k in mine if k in state_dict if (p := _misfit(k, mine[k], state_dict[k], assign))]]
        hooked = has_load_post_hooks(self)  # they may say that missing names are all right
        _refuse(self, [*problems, *(_incompatible(keys) if strict and not hooked else [])], keys, mine)
        with no_grad():
            # what can fail, before the first write
            values = {k: _converted(state_dict[k], mine[k], assign) for k in mine if k in state_dict}
            _set_extra_states({m: state_dict[k] for k, m in extra.items() if k in state_dict})
            for name, value in values.items():
                if isinstance(mine[name], Uninitialized):
                    if isinstance(value, Uninitialized):
                        continue
                    mine[name].materialize(value.shape)
                if assign:
                    self._assign(name, mine[name], value)
                else:
                    mine[name].copy_(value)  # type: ignore[attr-defined]
        if hooked:
            after_load(self, keys)
            _refuse(self, _incompatible(keys) if strict else [], keys, mine)
        return keys

    def _assign(self, name: str, mine: Tensor, value: Tensor) -> None:
        path, _, last = name.rpartition(".")
        owner = self.get_submodule(path)
        if last in owner._parameters:
            owner._parameters[last] = (
                value if isinstance(value, Parameter) else Parameter(value.detach(), mine.requires_grad)
            )
        else:
            owner._buffers[last] = value

    # ---- modes and conversions

    def train(self, mode: bool = True) -> Module:
        """Set training mode here and below; returns the module."""
        if not isinstance(mode, bool):
            raise ArgumentValueError(message("train", f"mode must be True or False, got {mode!r}"))
        for module in self.modules():
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

    def to(self, *args: Any, **kwargs: Any) -> Module:
        """Convert floating parameters and buffers to a dtype, all of them to a device; in place, returns the module."""
        device = kwargs.get("device")
        dtype = kwargs.get("dtype")
        for arg in args:
            if isinstance(arg, dtypes.dtype):
                dtype = arg
            elif isinstance(arg, Tensor):
                dtype, device = arg.dtype, arg.device
            elif arg is not None and not isinstance(arg, bool):
                device = arg
        if dtype is not None and not (dtypes.as_dtype(dtype).is_floating_point or dtypes.as_dtype(dtype).is_complex):
            raise ArgumentError(message("Module.to", f"only floating or complex dtypes, got {dtypes.as_dtype(dtype)}"))
        return self._apply(
            lambda t: t.to(dtype=dtype if t.is_floating_point() or t.is_complex() else None, device=device)
        )  # type: ignore[attr-defined]

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Module:
        with no_grad():
            for module in self.modules() if recurse else [self]:
                for p in module._parameters.values():
                    if p is not None:
                        g = p.grad
                        p.grad = None
                        p.data = fn(p.detach())
                        p.grad = None if g is None else fn(g.detach())
                for name, buffer in module._buffers.items():
                    if buffer is not None:
                        module._buffers[name] = fn(buffer)
        return self

    def float(self) -> Module:
        return self.to(dtypes.float32)

    def double(self) -> Module:
        return self.to(dtypes.float64)

    def half(self) -> Module:
        return self.to(dtypes.float16)

    def bfloat16(self) -> Module:
        return self.to(dtypes.bfloat16)

    def cpu(self) -> Module:
        return self.to("cpu")

    def cuda(self, device: Any = None) -> Module:
        return self.to("cuda" if device is None else device)

    def xpu(self, device: Any = None) -> Module:
        return self.to("xpu")

    def ipu(self, device: Any = None) -> Module:
        return self.to("ipu")

    def mtia(self, device: Any = None) -> Module:
        return self.to("mtia")

    def type(self, dst_type: Any) -> Module:
        """Convert all parameters and buffers to a dtype; in place, returns the module."""
        return self._apply(lambda t: t.type(dst_type))  # type: ignore[attr-defined]

    def to_empty(self, *, device: Any, recurse: bool = True) -> Module:
        """Move parameters and buffers to a device without their values; in place, returns the module.

        >>> import genesis
        >>> genesis.nn.Linear(2, 1, device="meta").to_empty(device="cpu").weight.device
        device(type='cpu')
        """
        return self._apply(lambda t: t.new_empty(t.shape, device=device), recurse)  # type: ignore[attr-defined]

    def share_memory(self) -> Module:
        """Put parameters and buffers into memory that processes share; in place, returns the module."""
        return self._apply(lambda t: t.share_memory_())  # type: ignore[attr-defined]

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Accepted for PyTorch's sake: modules run as they are."""

    # ---- hooks and looks

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` before forward; it may return other arguments.

        ``with_kwargs``: ``hook(module, args, kwargs)``, which may return both. ``prepend``: before the hooks that are
        there.
        """
        return add(hooks_of(self).forward_pre, hook, prepend, with_kwargs)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args, output)`` after forward; it may return another output.

        ``with_kwargs``: ``hook(module, args, kwargs, output)``. ``always_call``: also when forward raises (then output
        is None).
        """
        return add(hooks_of(self).forward, hook, prepend, with_kwargs, always_call)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` when the gradients of the outputs are known; it may return other ones."""
        return add(hooks_of(self).backward_pre, hook, prepend)

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
        return add(hooks_of(self).backward, hook, prepend)

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


def _incompatible(keys: IncompatibleKeys) -> list[str]:
    said = {"Missing": keys.missing_keys, "Unexpected": keys.unexpected_keys}
    return [f"{what} key(s) in state_dict: {', '.join(map(str, names))}" for what, names in said.items() if names]


def _refuse(module: Module, problems: list[str], keys: IncompatibleKeys, mine: Mapping[str, Any]) -> None:
    if problems:
        hint = _repair(keys.missing_keys, keys.unexpected_keys, mine)
        raise StateDictError(
            f"load_state_dict: the state does not fit {type(module).__name__}\n  " + "\n  ".join([*problems, *hint])
        )


def _tensors(module: Module) -> dict[str, Tensor]:
    """The tensors of a module's state, without the extra states that subclasses compute."""
    found: dict[str, Tensor] = {}
    for path, m in module.named_modules(remove_duplicate=False):
        own = {**m._parameters, **{k: v for k, v in m._buffers.items() if k not in m._transient}}
        found.update({f"{path}.{name}" if path else name: value for name, value in own.items() if value is not None})
    return found


def _has_extra(module: Module) -> bool:
    return (
        type(module).get_extra_state is not Module.get_extra_state
        or type(module).set_extra_state is not Module.set_extra_state
    )


def _set_extra_states(states: dict[Module, Any]) -> None:
    """All of them, or (where one is refused) none."""
    before = {m: m.get_extra_state() for m in states if type(m).get_extra_state is not Module.get_extra_state}
    done = []
    try:
        for module, state in states.items():
            done.append(module)
            module.set_extra_state(state)
    except BaseException:
        for module in done:
            if module in before:
                module.set_extra_state(before[module])
        raise


def _converted(value: Any, mine: Tensor, assign: bool) -> Any:
    return value if assign or isinstance(value, Uninitialized) else value.to(mine)


def _misfit(name: str, mine: Tensor, value: Any, assign: bool) -> str:
    if not isinstance(value, Tensor):
        return f"{name}: expected a tensor, got {type(value).__name__}"
    if isinstance(mine, Uninitialized):
        return ""
    if isinstance(value, Uninitialized):
        return f"{name}: it has no shape yet in the state, {list(mine.shape)} in the module"
    if mine.shape != value.shape:
        return f"size mismatch for {name}: shape {list(value.shape)} in the state, {list(mine.shape)} in the module"
    if value.is_complex() and not mine.is_complex() and not assign:
        return f"{name}: {value.dtype} in the state, {mine.dtype} in the module"
    if value.is_meta and not mine.is_meta and not assign:
        return f"{name}: a meta tensor without data in the state"
    return ""


def _repair(missing: list[str], unexpected: list[Any], mine: Mapping[str, Any]) -> list[str]:
    """What to do where the names of a state are not those of the module."""
    for prefix in sorted({str(k).split(".")[0] + "." for k in unexpected}):
        if any(str(k).removeprefix(prefix) in mine for k in unexpected if str(k).startswith(prefix)):
            return [f"try: without the prefix {prefix!r}, {{k.removeprefix({prefix!r}): v for k, v in state.items()}}"]
    return ["try: strict=False loads what is there under the right names"] if missing or unexpected else []
