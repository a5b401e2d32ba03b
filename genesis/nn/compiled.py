"""Modules whose forward is compiled: what `genesis.compile` makes of a module."""

from __future__ import annotations

from typing import Any

from genesis.jit.compiling.function import CompiledFunction
from genesis.nn.module import Module


class OptimizedModule(Module):
    """A module that calls another one compiled. It has the other's attributes and parameters; in its ``state_dict`` their
    names begin with ``_orig_mod.``, as in PyTorch.

    >>> import genesis
    >>> model = genesis.nn.Linear(2, 1)
    >>> fast = genesis.compile(model)
    >>> fast.weight is model.weight, fast.in_features, [name for name, _ in fast.named_parameters()]
    (True, 2, ['_orig_mod.weight', '_orig_mod.bias'])
    """

    _orig_mod: Module

    def __init__(self, module: Module, **options: Any) -> None:
        super().__init__()
        self._orig_mod = module
        made = module._made_compiled(options)
        self.__dict__.update(_compiled=made, _compile_options=options, training=module.training)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._compiled(*args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._hooks is None:  # the other's own hooks are part of it
            return self._compiled(*args, **kwargs)
        return super().__call__(*args, **kwargs)

    def explain(self, *args: Any, times: bool = False, **kwargs: Any) -> str:
        """See `CompiledFunction.explain`."""
        function: CompiledFunction = self._compiled
        return function.explain(*args, times=times, **kwargs)

    def train(self, mode: bool = True) -> Module:
        self.__dict__["training"] = mode
        self._orig_mod.train(mode)
        return self

    def __getattr__(self, name: str) -> Any:
        modules = self.__dict__.get("_modules", {})
        if name == "_orig_mod" or "_orig_mod" not in modules:
            return super().__getattr__(name)
        return getattr(modules["_orig_mod"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if "_orig_mod" not in self.__dict__.get("_modules", {}) or name in ("forward", "_hooks"):
            super().__setattr__(name, value)
            return
        if name == "training":
            self.__dict__["training"] = value
        setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._orig_mod, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._orig_mod)})

    def __len__(self) -> int:
        return len(self._orig_mod)  # type: ignore[arg-type]

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, key: Any) -> Any:
        return self._orig_mod[key]  # type: ignore[index]

    def __iter__(self) -> Any:
        return iter(self._orig_mod)  # type: ignore[call-overload]

    def __reduce__(self) -> Any:
        return _made, (self._orig_mod, self._compile_options)

    def __deepcopy__(self, memo: Any) -> OptimizedModule:
        from copy import deepcopy

        return _made(deepcopy(self._orig_mod, memo), self._compile_options)

    def extra_repr(self) -> str:
        return ""


def _made(module: Module, options: dict[str, Any]) -> OptimizedModule:
    return OptimizedModule(module, **options)
