"""Modules that hold modules, and parameters, in order or by name."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from genesis.base.errors import ArgumentError, ArgumentValueError, GraphError, message
from genesis.core.call.refusal import explain_all
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.tracing import changes
from genesis.nn.module import Module
from genesis.nn.parameter import Parameter

MOST_LAYERS = 1_000_000


def check_layers(name: str, count: int) -> None:
    """Refuse more layers than memory has, before they are made.

    Raises:
        ValueError: there are more than `MOST_LAYERS`
    """
    if count > MOST_LAYERS:
        raise ArgumentValueError(message(name, f"num_layers is at most {MOST_LAYERS:,}, got {count:,}"))


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

    _get_abs_string_index = _name  # PyTorch's name, which lists of libraries call

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return (
                type(self)(OrderedDict(list(self._modules.items())[index]))
                if isinstance(self, Sequential)
                else type(self)(list(self)[index])
            )  # type: ignore[call-arg]
        return self._modules[self._name(index)]

    def __setitem__(self, index: int, module: Module) -> None:
        changes(self, f"a module is put into a {type(self).__name__}")
        self._modules[self._name(index)] = module

    def __delitem__(self, index: Any) -> None:
        changes(self, f"modules are taken out of a {type(self).__name__}")
        doomed = list(self._modules)[index] if isinstance(index, slice) else [self._name(index)]
        for name in doomed:
            del self._modules[name]
        self._renumber(list(self._modules.values()))

    def _renumber(self, modules: list[Any]) -> None:
        changes(self, f"the modules of a {type(self).__name__} get other numbers")
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

    def pop(self, key: int | slice) -> Any:
        """Take a module away, and give it."""
        modules = self[key]
        del self[key]
        return modules

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

    def __add__(self, other: Sequential) -> Sequential:
        if not isinstance(other, Sequential):
            raise ArgumentValueError(message("Sequential", f"only Sequential can be added, got {type(other).__name__}"))
        return type(self)(*self, *other)

    def __iadd__(self, other: Sequential) -> Sequential:
        if not isinstance(other, Sequential):
            raise ArgumentValueError(message("Sequential", f"only Sequential can be added, got {type(other).__name__}"))
        return self.extend(list(other))  # type: ignore[no-any-return]

    def __mul__(self, other: int) -> Sequential:
        """The same modules, one after the other, so many times."""
        return type(self)(*list(self) * _times(other))

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Sequential:
        return self.extend(list(self) * (_times(other) - 1))  # type: ignore[no-any-return]


def _times(count: Any) -> int:
    if not isinstance(count, int):
        raise ArgumentError(message("Sequential", f"expected an integer, got {type(count).__name__}"))
    if count <= 0:
        raise ArgumentValueError(message("Sequential", f"expected a positive integer, got {count}"))
    return count


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

    def __repr__(self) -> str:
        lines = []
        for text, group in itertools.groupby(enumerate(map(repr, self)), lambda pair: pair[1]):
            indices = [i for i, _ in group]
            several = f"({indices[0]}-{indices[-1]}): {len(indices)} x " if len(indices) > 1 else f"({indices[0]}): "
            lines.append((several + text).replace("\n", "\n  "))
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)" if lines else f"{self._get_name()}()"


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
        changes(self, f"a module is taken out of a {type(self).__name__}")
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

    def pop(self, key: str) -> Module:
        """Take a module away, and give it."""
        module = self[key]
        del self[key]
        return module  # type: ignore[no-any-return]

    def clear(self) -> None:
        """Take all modules away."""
        changes(self, f"the modules are taken out of a {type(self).__name__}")
        self._modules.clear()

    def update(self, modules: Any) -> None:
        """Add modules from a mapping, another `ModuleDict`, or pairs."""
        for name, module in modules.items() if isinstance(modules, (Mapping, ModuleDict)) else modules:
            self.add_module(name, module)


class Container(Module):
    """Modules by name; a `Module` with ``add_module`` does the same."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        for name, module in kwargs.items():
            self.add_module(name, module)


class _Values(Module):
    """Values under names: tensors become parameters, anything else stays as it is."""

    _keys: dict[str, None]

    def __init__(self) -> None:
        super().__init__()
        self._keys = {}

    def _put(self, key: str, value: Any) -> None:
        changes(self, f"a value is put into a {type(self).__name__}")
        self._keys[key] = None
        if isinstance(value, Tensor) and not isinstance(value, Parameter):
            value = Parameter(value)
        setattr(self, key, value)

    def _take(self, key: str) -> Any:
        value = getattr(self, key)
        changes(self, f"a value is taken out of a {type(self).__name__}")
        del self._keys[key]
        delattr(self, key)
        return value

    def __len__(self) -> int:
        return len(self._keys)

    def extra_repr(self) -> str:
        return "\n".join([f"({key}): {_described(getattr(self, key))}" for key in self._keys])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise GraphError(message(type(self).__name__, "it holds parameters, it cannot be called"))


def _described(value: Any) -> str:
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"{kind} containing: [{value.dtype} of size {'x'.join(map(str, value.shape))}]"


class ParameterList(_Values):
    """A list of parameters; tensors become parameters, other values stay what they are.

    >>> import genesis
    >>> len(genesis.nn.ParameterList([genesis.zeros(2)]))
    1
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self.extend(values or ())

    def _key(self, index: int) -> str:
        if not -len(self) <= index < len(self):
            raise IndexError(message("ParameterList", f"index {index} is out of range for {len(self)} values"))
        return str(index % len(self))

    def append(self, value: Any) -> ParameterList:
        """Add a value at the end."""
        self._put(str(len(self)), value)
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Add values at the end."""
        if isinstance(values, Tensor) or not isinstance(values, Iterable):
            raise ArgumentError(message("ParameterList", f"expected a list of values, got {type(values).__name__}"))
        for value in values:
            self.append(value)
        return self

    __iadd__ = extend

    def __iter__(self) -> Iterator[Any]:
        return iter([getattr(self, key) for key in self._keys])

    def __getitem__(self, index: Any) -> Any:
        return ParameterList(list(self)[index]) if isinstance(index, slice) else getattr(self, self._key(index))

    def __setitem__(self, index: int, value: Any) -> None:
        self._put(self._key(index), value)


class ParameterDict(_Values):
    """A dictionary of parameters; tensors become parameters, other values stay what they are.

    >>> import genesis
    >>> list(genesis.nn.ParameterDict({"a": genesis.zeros(2)}))
    ['a']
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self.update(parameters or {})

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, key)

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str):
            raise ArgumentError(message("ParameterDict", f"names must be strings, got {type(key).__name__}"))
        self._put(key, value)

    def __delitem__(self, key: str) -> None:
        self.pop(key)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def keys(self) -> Any:
        return self._keys.keys()

    def values(self) -> Any:
        return [self[key] for key in self._keys]

    def items(self) -> Any:
        return [(key, self[key]) for key in self._keys]

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a name, or ``default``."""
        return self[key] if key in self._keys else default

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value of a name, which is ``default`` if there is none yet."""
        if key not in self._keys:
            self[key] = default
        return self[key]

    def pop(self, key: str) -> Any:
        """Take a value away, and give it."""
        value = self[key]
        self._take(key)
        return value

    def popitem(self) -> tuple[str, Any]:
        """Take the last value away, and give it with its name."""
        if not self._keys:
            raise KeyError("ParameterDict is empty")
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def clear(self) -> None:
        """Take all values away."""
        for key in list(self._keys):
            self._take(key)

    def copy(self) -> ParameterDict:
        """A dictionary of the same parameters."""
        return ParameterDict(dict(self.items()))

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A dictionary of these names with one value."""
        return ParameterDict(dict.fromkeys(keys, default))

    def update(self, parameters: Any) -> None:
        """Add values of a mapping or of pairs."""
        if not isinstance(parameters, Iterable):
            raise ArgumentError(
                message("ParameterDict", f"expected a mapping or pairs, got {type(parameters).__name__}")
            )
        for key, value in parameters.items() if isinstance(parameters, Mapping | ParameterDict) else parameters:
            self[key] = value

    def __or__(self, other: Any) -> ParameterDict:
        result = self.copy()
        result.update(other)
        return result

    def __ror__(self, other: Any) -> ParameterDict:
        return ParameterDict(other) | self

    def __ior__(self, other: Any) -> ParameterDict:
        self.update(other)
        return self


explain_all(globals())
