"""Parameters that are functions of others: symmetric, orthogonal, of a given norm, or whatever a module computes.

A parametrized module is of a class of its own, which finds the names of such tensors in ``module.parametrizations``;
everything else about it stays as it was.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from genesis.base.errors import ArgumentValueError, message
from genesis.core.call.refusal import explain_all
from genesis.core.graph.modes import no_grad
from genesis.core.graph.tensor import Tensor
from genesis.nn.container import ModuleDict, ModuleList
from genesis.nn.module import Module
from genesis.nn.parameter import Parameter

_cache: ContextVar[dict[tuple[int, str], Tensor] | None] = ContextVar("genesis_parametrizations", default=None)


@contextmanager
def cached() -> Iterator[None]:
    """Context manager: parametrized tensors are computed once inside.

    >>> from genesis import nn
    >>> from genesis.nn.utils import parametrize, parametrizations
    >>> layer = parametrizations.weight_norm(nn.Linear(2, 2))
    >>> with parametrize.cached():
    ...     layer.weight is layer.weight
    True
    """
    memory = _cache.get()
    token = _cache.set({} if memory is None else memory)
    try:
        yield
    finally:
        _cache.reset(token)


class ParametrizationList(ModuleList):
    """The modules that make a tensor out of ``original`` (or of ``original0``, ``original1``, ...), in their order.

    Args:
        modules: each may have a ``right_inverse``, so that the tensor can be assigned to
        original: the tensor as it is; what the parameters are is the right inverse of it
        unsafe: the result may have another shape or dtype

    Raises:
        ValueError: no modules, or one that gives no tensor, or changes the shape or the dtype
    """

    unsafe: bool

    def __init__(self, modules: Iterable[Module], original: Tensor, unsafe: bool = False) -> None:
        modules = list(modules)
        if not modules:
            raise ArgumentValueError(message("ParametrizationList", "needs at least one module"))
        super().__init__(modules)
        self.unsafe = bool(unsafe)
        shape, dtype = original.shape, original.dtype
        values = self._inverse(original, partly=True)
        self.is_tensor = isinstance(values, Tensor)
        self.ntensors = 1 if self.is_tensor else len(values)
        if isinstance(values, Tensor):
            _check_alike("right_inverse", values, original, shaped=False)
        made = [v.detach().clone() if v is original else v for v in ([values] if self.is_tensor else values)]
        with no_grad():
            result = self._through(made)
        if not self.unsafe:
            _check_result(type(modules[0]).__name__, result, shape, dtype)
        if self.is_tensor:
            original.data = made[0].detach()
            _register(self, "original", original)
            return
        for i, value in enumerate(made):
            wanted = original.requires_grad and value.is_floating_point()
            value = Parameter(value.detach(), wanted) if isinstance(original, Parameter) else value.detach()
            _register(self, f"original{i}", value)

    @property
    def _originals(self) -> list[Any]:
        if self.is_tensor:
            return [self.original]
        return [getattr(self, f"original{i}") for i in range(self.ntensors)]

    @no_grad()
    def _inverse(self, value: Any, partly: bool) -> Any:
        """What the originals have to be for a value; ``partly``: modules that have no inverse are passed over."""
        for module in reversed(list(self)):
            inverse = getattr(module, "right_inverse", None)
            try:
                if inverse is None:
                    raise NotImplementedError(
                        message("right_inverse", f"the parametrization {type(module).__name__} has none")
                    )
                value = inverse(value)
            except NotImplementedError as error:
                if not partly:
                    raise RuntimeError(str(error)) from error
        several = isinstance(value, list | tuple) and all(isinstance(v, Tensor) for v in value)
        if not several and not isinstance(value, Tensor):
            raise ArgumentValueError(
                message("right_inverse", f"must give a tensor or a sequence of tensors, gave {type(value).__name__}")
            )
        return value

    def right_inverse(self, value: Tensor) -> None:
        """Set the originals to what gives ``value``; nothing is changed unless all of it fits.

        Raises:
            RuntimeError: a module has no right inverse
            ValueError: the inverse gives something else than the originals are
        """
        values = self._inverse(value, partly=False)
        if isinstance(values, Tensor) != self.is_tensor or (not self.is_tensor and len(values) != self.ntensors):
            raise ArgumentValueError(message("right_inverse", f"must give {self.ntensors} tensors, as at first"))
        values = [values] if self.is_tensor else values
        for original, new in zip(self._originals, values, strict=True):
            _check_alike("right_inverse", new, original, shaped=False)
        for original, new in zip(self._originals, values, strict=True):
            original.data = new.detach().clone() if new is value else new.detach()

    def _through(self, originals: list[Any]) -> Any:
        first, *others = list(self)
        x = first(*originals)
        for module in others:
            x = module(x)
        return x

    def forward(self) -> Tensor:
        """The tensor."""
        return self._through(self._originals)  # type: ignore[no-any-return]


def _check_alike(what: str, value: Tensor, like: Tensor, shaped: bool) -> None:
    if value.dtype is not like.dtype or value.device != like.device or (shaped and value.shape != like.shape):
        raise ArgumentValueError(
            message(
                what,
                "gives a tensor of another kind",
                [("given", value._spec()), ("wanted", like._spec())],
                "unsafe=True allows it" if shaped else "keep the dtype and the device",
            )
        )


def _check_result(name: str, result: Any, shape: Any, dtype: Any) -> None:
    if not isinstance(result, Tensor):
        raise ArgumentValueError(message(name, f"a parametrization gives a tensor, this gave {type(result).__name__}"))
    if result.dtype is not dtype or result.shape != shape:
        raise ArgumentValueError(
            message(
                name,
                f"a parametrization keeps shape and dtype, {list(shape)} and {dtype}",
                [("result", result._spec())],
                "unsafe=True allows it",
            )
        )


def _register(module: Module, name: str, value: Tensor) -> None:
    if isinstance(value, Parameter):
        module.register_parameter(name, value)
    else:
        module.register_buffer(name, value)


@functools.cache
def _parametrized(kind: type) -> type:
    """The class of parametrized modules of a class."""

    def get(self: Any, name: str) -> Any:
        lists = self.__dict__.get("_modules", {}).get("parametrizations")
        if lists is None or name not in lists:
            return kind.__getattr__(self, name)  # type: ignore[attr-defined]
        memory = _cache.get()
        if memory is None:
            return lists[name]()
        if (id(self), name) not in memory:
            memory[id(self), name] = lists[name]()
        return memory[id(self), name]

    def put(self: Any, name: str, value: Any) -> None:
        lists = self.__dict__.get("_modules", {}).get("parametrizations")
        if lists is None or name not in lists:
            kind.__setattr__(self, name, value)
        else:
            lists[name].right_inverse(value)

    def reduce(self: Any, protocol: Any) -> Any:
        return _blank, (kind,), self.__dict__

    space = {"__getattr__": get, "__setattr__": put, "__reduce_ex__": reduce, "__module__": kind.__module__}
    return type(f"Parametrized{kind.__name__}", (kind,), space)


def _blank(kind: type) -> Any:
    """A parametrized module of a class, before it has its state: for copies and pickles."""
    cls = _parametrized(kind)
    return cls.__new__(cls)


def _expect(name: str, module: Any, tensor_name: Any) -> None:
    if not isinstance(module, Module):
        raise ArgumentValueError(message(name, f"expected a module, got {type(module).__name__}"))
    if tensor_name is not None and not isinstance(tensor_name, str):
        raise ArgumentValueError(message(name, f"tensor_name must be a string, got {type(tensor_name).__name__}"))


def register_parametrization(module: Any, tensor_name: str, parametrization: Any, *, unsafe: bool = False) -> Any:
    """Let a module compute a parameter or a buffer of another; behind those that do already. Returns ``module``.

    Raises:
        ValueError: there is no such tensor, or the parametrization changes its shape or dtype (and is not ``unsafe``)

    >>> import genesis
    >>> from genesis import nn
    >>> class Symmetric(nn.Module):
    ...     def forward(self, x): return x.triu() + x.triu(1).T
    >>> layer = nn.utils.parametrize.register_parametrization(nn.Linear(3, 3), "weight", Symmetric())
    >>> bool((layer.weight == layer.weight.T).all()), [name for name, _ in layer.named_parameters()]
    (True, ['bias', 'parametrizations.weight.original'])
    """
    _expect("register_parametrization", module, tensor_name)
    _expect("register_parametrization", parametrization, None)
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        several = module.parametrizations[tensor_name]
        if not unsafe:
            _check_another(parametrization, getattr(module, tensor_name))
        several.append(parametrization)
        several.unsafe |= bool(unsafe)
        return module
    store = module._parameters if tensor_name in module._parameters else module._buffers
    if store.get(tensor_name) is None:
        raise ArgumentValueError(
            message("register_parametrization", f"{type(module).__name__} has no parameter or buffer {tensor_name!r}")
        )
    made = ParametrizationList([parametrization], store[tensor_name], unsafe=unsafe)
    del store[tensor_name]
    if not is_parametrized(module):
        object.__setattr__(module, "__class__", _parametrized(type(module)))
        module._modules["parametrizations"] = ModuleDict()
    module._modules["parametrizations"][tensor_name] = made
    return module


@no_grad()
def _check_another(parametrization: Any, now: Tensor) -> None:
    """Refuse one that changes the kind of the tensor, there or back."""
    result = parametrization(now)
    _check_result(type(parametrization).__name__, result, now.shape, now.dtype)
    inverse = getattr(parametrization, "right_inverse", None)
    if inverse is None:
        return
    try:
        back = inverse(result)
    except NotImplementedError:
        return
    if not isinstance(back, Tensor):
        raise ArgumentValueError(message("right_inverse", f"must give a tensor, gave {type(back).__name__}"))
    _check_alike("right_inverse", back, now, shaped=True)


def weight_of(name: str, module: Any, tensor_name: Any) -> Any:
    """The tensor of a module that is to be parametrized."""
    weight = getattr(module, tensor_name, None) if isinstance(tensor_name, str) else None
    if not isinstance(module, Module) or not isinstance(weight, Tensor):
        raise ArgumentValueError(message(name, f"{type(module).__name__} has no parameter or buffer {tensor_name!r}"))
    return weight


def is_parametrized(module: Any, tensor_name: str | None = None) -> bool:
    """Whether a module (or one tensor of it) is parametrized."""
    _expect("is_parametrized", module, tensor_name)
    lists = module._modules.get("parametrizations")
    if not isinstance(lists, ModuleDict):
        return False
    return len(lists) > 0 if tensor_name is None else tensor_name in lists


def remove_parametrizations(module: Any, tensor_name: str, leave_parametrized: bool = True) -> Any:
    """Make a tensor a parameter (or a buffer) again: of the value that it has, or of the original. Returns ``module``.

    Raises:
        ValueError: it is not parametrized, or made of several tensors where the original is asked for
    """
    if not is_parametrized(module, tensor_name):
        raise ArgumentValueError(
            message("remove_parametrizations", f"{tensor_name!r} of {type(module).__name__} is not parametrized")
        )
    several = module.parametrizations[tensor_name]
    if not several.is_tensor and not leave_parametrized:
        raise ArgumentValueError(
            message(
                "remove_parametrizations",
                f"{tensor_name!r} is made of {several.ntensors} tensors: there is no one original",
                hint="leave_parametrized=True",
            )
        )
    value = getattr(module, tensor_name) if leave_parametrized else None
    if several.is_tensor:
        original = several.original
        if value is not None:
            original.data = value.detach()
    else:
        original = Parameter(value.detach()) if value.requires_grad else value.detach()
    del module.parametrizations[tensor_name]
    if not is_parametrized(module):
        del module._modules["parametrizations"]
        object.__setattr__(module, "__class__", type(module).__bases__[0])
    _register(module, tensor_name, original)
    return module


def type_before_parametrizations(module: Any) -> type:
    """The class of a module as it was before it was parametrized."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module: Any, to_module: Any, tensor_name: str | None = None) -> Any:
    """Parametrize a module as another one is, with the same modules and originals. Returns ``to_module``."""
    if not is_parametrized(from_module):
        return to_module
    _expect("transfer_parametrizations_and_params", to_module, None)
    for name in list(from_module.parametrizations) if tensor_name is None else [tensor_name]:
        if not is_parametrized(from_module, name):
            raise ArgumentValueError(
                message("transfer_parametrizations_and_params", f"{name!r} is not parametrized in the first module")
            )
        if not hasattr(to_module, name):
            to_module.register_parameter(name, Parameter(getattr(from_module, name).detach()))
        theirs = from_module.parametrizations[name]
        for parametrization in theirs:
            register_parametrization(to_module, name, parametrization, unsafe=theirs.unsafe)
        mine = to_module.parametrizations[name]
        for key in (*theirs._parameters, *theirs._buffers):
            setattr(mine, key, getattr(theirs, key))
    return to_module


explain_all(globals())

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]
