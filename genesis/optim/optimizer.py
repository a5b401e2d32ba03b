"""What all optimizers share: parameter groups, state, and how both are saved."""

from __future__ import annotations

import functools
import operator
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from genesis.base.errors import ArgumentError, ArgumentValueError, GenesisError, message
from genesis.core.graph.interrupts import uninterrupted
from genesis.core.graph.modes import enable_grad, no_grad
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.tracing import Dependable, depends, keep, plain_only, tracer

Group = dict[str, Any]


class StateDictError(GenesisError, ValueError, RuntimeError):
    """A state that does not fit an optimizer or a schedule; says all that is wrong."""


class Optimizer(Dependable):
    """Base class: subclasses define `update`, the step of one parameter.

    Args:
        params: tensors, or groups (dicts with "params" and options of their own)
        defaults: the options of groups that give none

    Raises:
        TypeError: not tensors, or a single tensor instead of a list
        ValueError: no parameters, one that is not a leaf, or one in two groups
    """

    _opt_called = False  # whether `step` was called: schedules ask

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__:
            cls.step = _noticed(cls.step)  # type: ignore[method-assign]

    def __init__(self, params: Any, defaults: Group) -> None:
        name = type(self).__name__
        if isinstance(params, Tensor):
            raise ArgumentError(message(name, "params must be an iterable of tensors, got one tensor", hint="[param]"))
        if callable(getattr(params, "parameters", None)):
            raise ArgumentError(
                message(
                    name,
                    f"params must be an iterable of tensors, got the module {type(params).__name__}",
                    hint=f"{name}(model.parameters())",
                )
            )
        if callable(params):
            raise ArgumentError(
                message(
                    name,
                    "params must be an iterable of tensors, got a function",
                    hint=f"{name}(model.parameters()), with ()",
                )
            )
        if isinstance(params, Mapping | str | bytes) or not isinstance(params, Iterable):
            raise ArgumentError(
                message(
                    name,
                    f"params must be an iterable of tensors or of dicts, got {type(params).__name__}",
                    hint=f"{name}(model.parameters())",
                )
            )
        self.check_group(defaults)
        self.defaults = defaults
        self.state: dict[Tensor, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[Group] = []
        groups = list(params)
        if not groups:
            raise ArgumentValueError(message(name, "got an empty parameter list"))
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def check_group(self, group: Group) -> None:
        """Refuse options of a group that make no sense; subclasses say which."""

    def state_names(self, group: Group) -> tuple[str, ...]:
        """What the state of a parameter is made of, once there is one."""
        return ()

    def add_param_group(self, param_group: Group) -> None:
        """Add parameters with options of their own.

        Raises:
            TypeError: not a dict with "params", or not tensors
            ValueError: options that make no sense, a parameter that is not a leaf, or that is there already
        """
        name = type(self).__name__
        if not isinstance(param_group, Mapping) or "params" not in param_group:
            got = (
                type(param_group).__name__
                if not isinstance(param_group, Mapping)
                else f"the keys {', '.join(map(str, param_group)) or '(none)'}"
            )
            raise ArgumentError(
                message(
                    name,
                    f"a parameter group must be a dict with 'params', got {got}",
                    hint='{"params": [...], "lr": ...}',
                )
            )
        params = param_group["params"]
        if isinstance(params, set):
            raise ArgumentError(message(name, "parameters must be in an order that stays, got a set", hint="a list"))
        if not isinstance(params, Iterable) or isinstance(params, str | bytes):
            raise ArgumentError(
                message(name, f"expected tensors, got {type(params).__name__}", hint="model.parameters()")
            )
        params = (
            [params]
            if isinstance(params, Tensor)
            else [p[1] if isinstance(p, tuple) and len(p) == 2 else p for p in params]
        )
        known = {id(p) for group in self.param_groups for p in group["params"]}
        for p in params:
            if not isinstance(p, Tensor):
                raise ArgumentError(message(name, f"expected tensors, got {type(p).__name__}"))
            if not p.is_leaf:
                raise ArgumentValueError(
                    message(
                        name,
                        "can only optimize leaf tensors",
                        [("parameter", p._spec())],
                        "optimize what it was made from",
                    )
                )
            if id(p) in known:
                raise ArgumentValueError(message(name, "a parameter appears twice", [("parameter", p._spec())]))
            known.add(id(p))
        group = {**self.defaults, **param_group, "params": params}
        self.check_group(group)
        self.param_groups.append(group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget (or zero) the gradients of all parameters."""
        for group in self.param_groups:
            for p in group["params"]:
                p.zero_grad(set_to_none)

    @no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient; ``closure`` evaluates the loss again first. Ctrl-C leaves all
        updated or none.
        """
        self._opt_called = True
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        uninterrupted(self._update_all)
        return loss

    def _update_all(self) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self.update(p, p.grad, self.state[p], group)
        if tracer.get() is not None:
            for state in self.state.values():
                for made in state.values():
                    keep(made)
            depends(self)

    def _taken_for_granted(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for i, group in enumerate(self.param_groups):
            options = plain_only({name: group[name] for name in self.defaults if name != "lr" and name in group})
            found |= {f"param_groups[{i}][{name!r}]": value for name, value in options.items()}
            found[f"param_groups[{i}]['params']"] = tuple(group["params"])
        found["state"] = tuple([x for state in self.state.values() for x in state.values() if isinstance(x, Tensor)])
        return found

    def _holders(self) -> dict[str, Any]:
        params = [p for group in self.param_groups for p in group["params"]]
        groups = {f"param_groups[{i}]": group for i, group in enumerate(self.param_groups)}
        return groups | {f"state[{i}]": self.state[p] for i, p in enumerate(params) if p in self.state}

    def _witnesses(self) -> tuple[Any, ...]:
        options = [
            group[name] for group in self.param_groups for name in self.defaults if name != "lr" and name in group
        ]
        params = [p for group in self.param_groups for p in (group, *group["params"])]
        return (
            *options,
            *params,
            *[x for state in self.state.values() for x in state.values() if isinstance(x, Tensor)],
        )

    def update(self, param: Tensor, grad: Tensor, state: dict[str, Any], group: Group) -> None:
        """Change one parameter in place."""
        raise NotImplementedError(f"{type(self).__name__} defines no update")

    def state_dict(self) -> dict[str, Any]:
        """State and options, with parameters replaced by their numbers."""
        numbers = {id(p): i for i, p in enumerate(p for group in self.param_groups for p in group["params"])}
        groups = [
            {**{k: v for k, v in g.items() if k != "params"}, "params": [numbers[id(p)] for p in g["params"]]}
            for g in self.param_groups
        ]
        return {
            "state": {numbers[id(p)]: dict(s) for p, s in self.state.items() if id(p) in numbers},
            "param_groups": groups,
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over a state of the same parameter groups; nothing is changed unless all of it fits.

        Raises:
            TypeError: not a mapping
            ValueError: no state of an optimizer, groups of other sizes, tensors of other shapes: all that is wrong is
                listed
        """
        order = self._checked(state_dict)
        params = [p for group in self.param_groups for p in group["params"]]
        states = {int(k): v for k, v in state_dict["state"].items()}
        loaded = {p: _copied(states[i], p) for p, i in zip(params, order, strict=True) if i in states}
        for group, other in zip(self.param_groups, state_dict["param_groups"], strict=True):
            group.update({k: v for k, v in other.items() if k != "params"})
        self.state = defaultdict(dict, loaded)

    def _checked(self, state: Any) -> list[int]:
        """The numbers that a state gives the parameters, in order; or an error with all that does not fit."""
        name = f"{type(self).__name__}.load_state_dict"
        if not isinstance(state, Mapping):
            raise ArgumentError(
                message(name, f"expected a mapping, got {type(state).__name__}", hint="optimizer.state_dict()")
            )
        groups, states = state.get("param_groups"), state.get("state")
        if (
            not isinstance(states, Mapping)
            or not isinstance(groups, list | tuple)
            or not all(_is_group(g) for g in groups)
        ):
            keys = ", ".join(map(str, state)) or "(none)"
            raise StateDictError(
                message(
                    name,
                    f"a state has 'state' and 'param_groups', a list of dicts with 'params'; got the keys {keys}",
                    hint="optimizer.state_dict() gives one, of a module it is module.load_state_dict(...)",
                )
            )
        sizes, given = [len(g["params"]) for g in self.param_groups], [len(g["params"]) for g in groups]
        if sizes != given:
            raise StateDictError(
                message(
                    name,
                    f"the state has groups of {given} parameters, the optimizer of {sizes}",
                    hint="the same groups as when it was saved",
                )
            )
        order = [i for group in groups for i in group["params"]]
        problems = [p for i, group in enumerate(groups) for p in self._group_problems(i, group)]
        problems += self._state_problems(states, order, groups)
        if problems:
            raise StateDictError(
                f"{name}: the state does not fit\n  "
                + "\n  ".join(problems)
                + f"\n  try: the state of a {type(self).__name__} of the same parameters"
            )
        return order

    def _group_problems(self, number: int, group: Mapping[str, Any]) -> list[str]:
        # versions add switches
        missing = [k for k, v in self.defaults.items() if k not in group and not isinstance(v, bool | None)]
        if missing:
            return [f"group {number}: missing {', '.join(missing)}"]
        try:
            self.check_group({**self.defaults, **group})
        except GenesisError as error:
            return [f"group {number}: {error}"]
        return []

    def _state_problems(self, states: Mapping[Any, Any], order: list[int], groups: Any) -> list[str]:
        wrong = [k for k in states if not str(k).isdecimal() or int(k) not in order]
        problems = [f"state: unknown parameters {', '.join(map(repr, wrong))}"] if wrong else []
        by_number = {int(k): v for k, v in states.items() if str(k).isdecimal()}
        params = [
            (p, self.state_names({**group, **other}))
            for group, other in zip(self.param_groups, groups, strict=True)
            for p in group["params"]
        ]
        for (p, names), i in zip(params, order, strict=True):
            values = by_number.get(i, {})
            if not isinstance(values, Mapping):
                problems.append(f"state of parameter {i}: expected a mapping, got {type(values).__name__}")
                continue
            missing = [name for name in names if values and name not in values]
            problems += [f"state of parameter {i}: missing {', '.join(missing)}"] if missing else []
            problems += [f"{key} of parameter {i}: shape {list(v.shape)} in the state, {list(p.shape)} of the "
                         "parameter"
                         for key, v in values.items() if isinstance(v, Tensor) and v.ndim and v.shape != p.shape]  # fmt: skip
        return problems

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines += [f"Parameter Group {i}"] + [f"    {k}: {v}" for k, v in sorted(group.items()) if k != "params"]
        return "\n".join([*lines, ")"])


def _is_group(group: Any) -> bool:
    return (
        isinstance(group, Mapping)
        and isinstance(group.get("params"), list | tuple)
        and all(type(i) is int for i in group["params"])
    )


def _copied(state: Mapping[str, Any], param: Tensor) -> dict[str, Any]:
    """The state of one parameter: copies in its dtype, on its device; a step that was saved as a tensor is a number
    here.
    """
    copied: dict[str, Any] = {}
    for k, v in state.items():
        dtype = (
            param.dtype
            if k != "step" and isinstance(v, Tensor) and v.is_floating_point() and param.is_floating_point()
            else None
        )
        copied[k] = v.detach().to(dtype=dtype, device=param.device, copy=True) if isinstance(v, Tensor) else v  # type: ignore[attr-defined]
    if isinstance(copied.get("step"), Tensor):
        copied["step"] = int(copied["step"])
    return copied


def _noticed(step: Callable[..., Any]) -> Callable[..., Any]:
    """A step that is written by a subclass, and leaves a note that it was called."""

    @functools.wraps(step)
    def noticed(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        self._opt_called = True
        return step(self, *args, **kwargs)

    return noticed


def whole_number(name: str, what: str, value: Any, least: int) -> int:
    """An integer that is not too small, or an error that says which argument is wrong."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None:
        raise ArgumentError(message(name, f"{what} must be an integer, got {type(value).__name__}"))
    if number < least:
        raise ArgumentValueError(message(name, f"{what} must be at least {least}, got {number}"))
    return number


def check_options(name: str, **options: Any) -> None:
    """Refuse options that are not numbers, or negative, and betas outside [0, 1)."""
    for key, value in options.items():
        if key == "betas":
            if not isinstance(value, list | tuple) or len(value) != 2:
                raise ArgumentError(message(name, f"betas must be two numbers, got {value!r}"))
            for i, beta in enumerate(value):
                if not 0.0 <= _as_number(name, f"betas[{i}]", beta) < 1.0:
                    raise ArgumentValueError(message(name, f"betas[{i}] must be in [0, 1), got {beta}"))
        elif not _as_number(name, key, value) >= 0.0:
            raise ArgumentValueError(message(name, f"{key} must not be negative, got {value}"))


def _as_number(name: str, key: str, value: Any) -> Any:
    """The value, if it is a number or a tensor of one element."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number and not (isinstance(value, Tensor) and value.numel() == 1):
        raise ArgumentError(message(name, f"{key} must be a number, got {type(value).__name__}"))
    return value
