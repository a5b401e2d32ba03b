"""The state of modules: collected by their paths, and loaded where all of it fits."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from genesis.base.errors import ArgumentError, GenesisError, UnsupportedError, message
from genesis.base.late import Late
from genesis.core.graph.modes import no_grad
from genesis.core.graph.switches import ACTIVE
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.tracing import changes
from genesis.nn.parameter import Parameter
from genesis.nn.state_hooks import StateHooks, after_load, before_load, collect, has_load_post_hooks
from genesis.nn.uninitialized import Uninitialized

if TYPE_CHECKING:
    from genesis.nn.module import Module

_sharded = Late("genesis.distributed.sharded")
EXTRA = "_extra_state"  # its name in a state


class StateDictError(GenesisError, RuntimeError):
    """A state that does not fit a module; says all that is missing, unexpected or of another shape."""


def _without_history(value: Tensor) -> Tensor:
    """What `detach` gives; it is not noted as a line of the program at which a value lost its history."""
    plain = value.__class__ in (Parameter, Tensor) and value._array.__class__ is np.ndarray and not ACTIVE
    return value._alias(None) if plain else value.detach()


class IncompatibleKeys(NamedTuple):
    """What `load_state_dict` did not find, and what it did not know."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


class ModuleState(StateHooks):
    """The part of `Module` that is about its state."""

    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _transient: set[str]

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
                destination[prefix + name] = value if keep_vars else _without_history(value)
        if type(self).get_extra_state is not ModuleState.get_extra_state:
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
        state_dict = _own_parts(state_dict, mine)
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
        changes(owner, f"{name!r} is loaded into a {type(self).__name__} as it is")
        if last in owner._parameters:
            owner._parameters[last] = value if isinstance(value, Parameter) else Parameter(value, mine.requires_grad)
        else:
            owner._buffers[last] = value


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
    tensors: dict[str, Tensor] = {}
    for path, m in module.named_modules(remove_duplicate=False):
        own = {**m._parameters, **{k: v for k, v in m._buffers.items() if k not in m._transient}}
        tensors.update({f"{path}.{name}" if path else name: value for name, value in own.items() if value is not None})
    return tensors


def _own_parts(state: Mapping[str, Any], mine: Mapping[str, Tensor]) -> Mapping[str, Any]:
    """A state with this rank's parts of those tensors of which it has parts."""
    own = {
        name: state[name].full_tensor() if p._layout is None else _sharded.own_part(state[name], p._layout)
        for name, p in mine.items()
        if isinstance(state.get(name), Tensor) and (p._layout is not None or state[name]._layout is not None)
    }
    return {**state, **own} if own else state


def _has_extra(module: Module) -> bool:
    return (
        type(module).get_extra_state is not ModuleState.get_extra_state
        or type(module).set_extra_state is not ModuleState.set_extra_state
    )


def _set_extra_states(states: dict[Module, Any]) -> None:
    """All of them, or (where one is refused) none."""
    before = {m: m.get_extra_state() for m in states if type(m).get_extra_state is not ModuleState.get_extra_state}
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
    if assign or isinstance(value, Uninitialized):
        return value
    return value.to(mine).reshape(()) if _is_number(mine, value) else value.to(mine)


def _is_number(mine: Tensor, value: Tensor) -> bool:
    """Whether a state has a number as tensors without dimensions were saved before there were any, with shape [1]."""
    return mine.ndim == 0 and tuple(value.shape) == (1,)


def _misfit(name: str, mine: Tensor, value: Any, assign: bool) -> str:
    if not isinstance(value, Tensor):
        return f"{name}: expected a tensor, got {type(value).__name__}"
    if isinstance(mine, Uninitialized):
        return ""
    if isinstance(value, Uninitialized):
        return f"{name}: it has no shape yet in the state, {list(mine.shape)} in the module"
    if mine.shape != value.shape and (assign or not _is_number(mine, value)):
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
