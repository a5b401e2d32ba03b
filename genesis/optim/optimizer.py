"""What all optimizers share: parameter groups, state, and how both are saved."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from genesis.base.errors import ArgumentError, ArgumentValueError, message
from genesis.core.modes import enable_grad, no_grad
from genesis.core.tensor import Tensor

Group = dict[str, Any]


class Optimizer:
    """Base class: subclasses define `update`, the step of one parameter.

    Args:
        params: tensors, or groups (dicts with "params" and options of their own)
        defaults: the options of groups that give none

    Raises:
        TypeError: not tensors, or a single tensor instead of a list
        ValueError: no parameters, one that is not a leaf, or one in two groups
    """

    def __init__(self, params: Any, defaults: Group) -> None:
        if isinstance(params, Tensor):
            raise ArgumentError(message(type(self).__name__, "params must be an iterable of tensors, got one tensor", hint="[param]"))
        self.defaults = defaults
        self.state: dict[Tensor, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[Group] = []
        groups = list(params)
        if not groups:
            raise ArgumentValueError(message(type(self).__name__, "got an empty parameter list"))
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def add_param_group(self, param_group: Group) -> None:
        """Add parameters with options of their own."""
        params = param_group["params"]
        params = [params] if isinstance(params, Tensor) else [p[1] if isinstance(p, tuple) else p for p in params]
        name = type(self).__name__
        known = {id(p) for group in self.param_groups for p in group["params"]}
        for p in params:
            if not isinstance(p, Tensor):
                raise ArgumentError(message(name, f"expected tensors, got {type(p).__name__}"))
            if not p.is_leaf:
                raise ArgumentValueError(message(name, "can only optimize leaf tensors", [("parameter", p._spec())], "optimize what it was made from"))
            if id(p) in known:
                raise ArgumentValueError(message(name, "a parameter appears twice", [("parameter", p._spec())]))
            known.add(id(p))
        self.param_groups.append({**self.defaults, **param_group, "params": params})

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget (or zero) the gradients of all parameters."""
        for group in self.param_groups:
            for p in group["params"]:
                p.zero_grad(set_to_none)

    @no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient; ``closure`` evaluates the loss again first."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self.update(p, p.grad, self.state[p], group)
        return loss

    def update(self, param: Tensor, grad: Tensor, state: dict[str, Any], group: Group) -> None:
        """Change one parameter in place."""
        raise NotImplementedError(f"{type(self).__name__} defines no update")

    def state_dict(self) -> dict[str, Any]:
        """State and options, with parameters replaced by their numbers."""
        numbers = {id(p): i for i, p in enumerate(p for group in self.param_groups for p in group["params"])}
        groups = [{**{k: v for k, v in g.items() if k != "params"}, "params": [numbers[id(p)] for p in g["params"]]} for g in self.param_groups]
        return {"state": {numbers[id(p)]: dict(s) for p, s in self.state.items() if id(p) in numbers}, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state of the same parameter groups.

        Raises:
            ValueError: groups of other sizes
        """
        saved = state_dict["param_groups"]
        sizes, given = [len(g["params"]) for g in self.param_groups], [len(g["params"]) for g in saved]
        if sizes != given:
            raise ArgumentValueError(message("load_state_dict", f"the state has groups of {given} parameters, the optimizer of {sizes}"))
        params = [p for group in self.param_groups for p in group["params"]]
        for group, other in zip(self.param_groups, saved, strict=True):
            group.update({k: v for k, v in other.items() if k != "params"})
        order = [i for group in saved for i in group["params"]]
        states = {int(k): v for k, v in state_dict["state"].items()}
        self.state = defaultdict(dict)
        for p, i in zip(params, order, strict=True):
            if i in states:
                self.state[p] = {k: v.detach().clone() if isinstance(v, Tensor) else v for k, v in states[i].items()}  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines += [f"Parameter Group {i}"] + [f"    {k}: {v}" for k, v in sorted(group.items()) if k != "params"]
        return "\n".join([*lines, ")"])


def check_options(name: str, **options: Any) -> None:
    """Refuse negative options, and betas outside [0, 1)."""
    for key, value in options.items():
        if key == "betas":
            for i, beta in enumerate(value):
                if not 0.0 <= beta < 1.0:
                    raise ArgumentValueError(message(name, f"betas[{i}] must be in [0, 1), got {beta}"))
        elif not value >= 0.0:
            raise ArgumentValueError(message(name, f"{key} must not be negative, got {value}"))




