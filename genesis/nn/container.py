"""Modules that hold modules, and parameters, in order or by name."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from genesis.base.errors import ArgumentError, message
from genesis.core.call.refusal import explain_all
from genesis.core.graph.tensor import Tensor
from genesis.nn.module import Module
from genesis.nn.parameter import Parameter


class _List(Module):
    """What lists of modules share: order, integers as names."""

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def _name(self, index: int) -> str:
        if not -len(self) <= index < len(self):
            raise IndexError(message(type(self).__name__, f"index {index} is out of range for {len(self)} modules"))
        return list(self._modules)[index]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return (
                type(self)(OrderedDict(list(self._modules.items())[index]))
                if isinstance(self, Sequential)
                else type(self)(list(self)[index])
            )  # type: ignore[call-arg]
        return self._modules[self._name(index)]

    def __setitem__(self, index: int, module: Module) -> None:
        self._modules[self._name(index)] = module

    def __delitem__(self, index: Any) -> None:
        doomed = list(self._modules)[index] if isinstance(index, slice) else [self._name(index)]
        for name in doomed:
            del self._modules[name]
        self._renumber(list(self._modules.values()))

    def _renumber(self, modules: list[Any]) -> None:
        self._modules.clear()
        for i, module in enumerate(modules):
            self.add_module(str(i), module)

    def append(self, module: Module) -> Any:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Any:
        """Add modules at the end."""
        for module in modules:
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Any:
        """Add a module before ``index``."""
        modules = list(self)
        modules.insert(index, module)
        self._renumber(modules)
        return self


class Sequential(_List):
    """Modules applied one after the other.

    >>> import genesis
    >>> from genesis import nn
    >>> nn.Sequential(nn.Linear(2, 3), nn.ReLU())(genesis.ones(2)).shape
    genesis.Size([3])
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        named = (
            args[0].items()
            if len(args) == 1 and isinstance(args[0], Mapping)
            else ((str(i), m) for i, m in enumerate(args))
        )
        for name, module in named:
            if not isinstance(module, Module):
                raise ArgumentError(message("Sequential", f"{name!r} must be a Module, got {type(module).__name__}"))
            self.add_module(name, module)

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)  # type: ignore[misc]
        return input


class ModuleList(_List):
    """A list of modules.

    >>> from genesis import nn
    >>> len(nn.ModuleList([nn.Linear(2, 2) for _ in range(3)]))
    3
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        self.extend(modules or ())

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    __iadd__ = _List.extend


class ModuleDict(Module):
    """A dictionary of modules.

    >>> from genesis import nn
    >>> list(nn.ModuleDict({"a": nn.ReLU()}))
    ['a']
    """

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        self.update(modules or {})

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def keys(self) -> Any:
        return self._modules.keys()

    def values(self) -> Any:
        return self._modules.values()

    def items(self) -> Any:
        return self._modules.items()

    def update(self, modules: Any) -> None:
        """Add modules from a mapping or pairs."""
        for name, module in modules.items() if isinstance(modules, Mapping) else modules:
            self.add_module(name, module)


def _parameter(value: Any) -> Parameter:
    if isinstance(value, Parameter):
        return value
    if isinstance(value, Tensor):
        return Parameter(value)
    raise ArgumentError(message("ParameterList", f"expected a tensor, got {type(value).__name__}"))


class ParameterList(Module):
    """A list of parameters.

    >>> import genesis
    >>> len(genesis.nn.ParameterList([genesis.zeros(2)]))
    1
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        for value in values or ():
            self.append(value)

    def append(self, value: Any) -> ParameterList:
        """Add a parameter at the end."""
        self._parameters[str(len(self))] = _parameter(value)
        return self

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._parameters.values())

    def __getitem__(self, index: Any) -> Any:
        return list(self._parameters.values())[index]

    def __setitem__(self, index: int, value: Any) -> None:
        self._parameters[list(self._parameters)[index]] = _parameter(value)


class ParameterDict(Module):
    """A dictionary of parameters.

    >>> import genesis
    >>> list(genesis.nn.ParameterDict({"a": genesis.zeros(2)}))
    ['a']
    """

    def __init__(self, parameters: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        for name, value in (parameters or {}).items():
            self[name] = value

    def __getitem__(self, key: str) -> Any:
        return self._parameters[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._parameters[key] = _parameter(value)

    def __delitem__(self, key: str) -> None:
        del self._parameters[key]

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def __contains__(self, key: object) -> bool:
        return key in self._parameters

    def items(self) -> Any:
        return self._parameters.items()


explain_all(globals())
