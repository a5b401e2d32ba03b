"""What all optimizers share: parameter groups, state, and how both are saved."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from copy import deepcopy
from functools import partial
from typing import Any

from genesis.arrays.protocol import Virtual
from genesis.base.errors import ArgumentError, ArgumentValueError, GraphError, UnsupportedError, message
from genesis.core.call.refusal import expect_function
from genesis.core.call.subclasses import disabled
from genesis.core.graph.hooks import RemovableHandle
from genesis.core.graph.interrupts import uninterrupted
from genesis.core.graph.modes import enable_grad, no_grad
from genesis.core.graph.saved import saved_tensors_hooks
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.tracing import Dependable, changes, depends, keep, plain_only, tracer, unwatched
from genesis.optim.hooks import added, every, hooked
from genesis.optim.hooks import register_optimizer_step_post_hook as register_optimizer_step_post_hook
from genesis.optim.hooks import register_optimizer_step_pre_hook as register_optimizer_step_pre_hook
from genesis.optim.options import Inputs, floats_of
from genesis.optim.state import checked, counting, packed, unpacked

Group = dict[str, Any]


class _Required:
    """What stands in the defaults for an option that every group has to give."""

    def __repr__(self) -> str:
        return "<required>"


required = _Required()


class Optimizer(Dependable):
    """Base class: subclasses define `update`, the step of one parameter.

    Args:
        params: tensors, or groups (dicts with "params" and options of their own)
        defaults: the options of groups that give none

    Raises:
        TypeError: not tensors, or a single tensor instead of a list
        ValueError: no parameters, one that is not a leaf, or one in two groups
    """

    _begins_later = ("state",)
    elementwise = True  # whether an element's step depends on that element only, so that ranks can have rows
    _of_parts = False  # whether a parameter is a DTensor: of all this rank's parts are updated
    _opt_called = False  # whether `step` was called: schedules ask
    _stepping = False  # inside of a step, between its hooks
    _hooks: Mapping[str, dict[int, Any]] = {}  # of an optimizer around another one, which makes no groups of its own

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__:
            cls.step = hooked(cls.step)  # type: ignore[method-assign]

    def __init__(self, params: Any, defaults: Group) -> None:
        name = type(self).__name__
        self._hooks = {}
        self.check_group(defaults)
        if isinstance(params, Tensor):
            raise ArgumentError(message(name, "params must be an iterable of tensors, got one tensor", hint="[param]"))
        if isinstance(params, Iterable) and callable(params) and all([isinstance(p, Tensor) for p in params]):
            params = list(params)  # a ParameterList, which is a module, too
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

    def state_names(self, group: Mapping[str, Any]) -> tuple[str, ...]:
        """What the state of a parameter is made of, once there is one."""
        return ()

    def state_shape(self, name: str, param: Tensor) -> tuple[int, ...] | None:
        """The shape of a tensor in the state of a parameter; None if it may be any."""
        return None

    def add_param_group(self, param_group: Group) -> None:
        """Add parameters with options of their own.

        Raises:
            TypeError: not a dict with "params", or not tensors
            ValueError: options that make no sense, a parameter that is not a leaf, or that is there already
        """
        name = type(self).__name__
        changes(self, f"a group of parameters is added to a {name}")
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
        given = _listed(name, param_group["params"])
        params = [p[1] if isinstance(p, tuple) and len(p) == 2 else p for p in given]
        names = [p[0] for p in given if isinstance(p, tuple) and len(p) == 2]
        self._check_names(names, params)
        known = {id(p) for group in self.param_groups for p in group["params"]}
        for p in params:
            self._check_param(p, known)
        if len({*map(id, params)}) < len(params):
            warnings.warn(f"{name}: a parameter is in a group twice, and takes two steps at a time", stacklevel=3)
        group = {**param_group, "params": params, **({"param_names": names} if names else {})}
        group |= {option: value for option, value in self.defaults.items() if option not in group}  # in PyTorch's order
        for option, value in group.items():
            if value is required:
                raise ArgumentValueError(message(name, f"a parameter group does not say {option!r}, which is required"))
        self.check_group(group)
        self.param_groups.append(group)

    def _check_names(self, names: list[str], params: list[Any]) -> None:
        """Refuse names for some parameters only."""
        others = {"param_names" in group for group in self.param_groups}
        if len(names) not in (0, len(params)) or (params and others and others != {bool(names)}):
            raise ArgumentValueError(
                message(
                    type(self).__name__,
                    f"all parameters have names or none: {len(names)} of these {len(params)} have one, those before "
                    f"{'do' if True in others else 'do not'}",
                    hint="model.named_parameters() for all groups, or model.parameters() for all",
                )
            )

    def _check_param(self, p: Any, known: set[int]) -> None:
        """Refuse what cannot be optimized, or is in another group."""
        name = type(self).__name__
        if not isinstance(p, Tensor):
            raise ArgumentError(message(name, f"expected tensors, got {type(p).__name__}"))
        if not p.is_leaf and not p.retains_grad and not self.defaults.get("differentiable"):
            text, hint = "can only optimize leaf tensors", "optimize what it was made from"
            raise ArgumentValueError(message(name, text, [("parameter", p._spec())], hint))
        if p._layout is not None and not self.elementwise:
            text = "looks at parameters as a whole, and this rank has rows of some"
            raise UnsupportedError(message(name, text, [("rows", p._spec())], "Adam, SGD and others by element"))
        self._of_parts = self._of_parts or p._layout is not None
        if id(p) in known:
            raise ArgumentValueError(message(name, "a parameter is in two groups", [("parameter", p._spec())]))

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget (or zero) the gradients of all parameters."""
        unwatched(partial(self._zero_all, set_to_none))

    def _zero_all(self, set_to_none: bool) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                p.zero_grad(set_to_none)

    @hooked
    @no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient; ``closure`` evaluates the loss again first. Ctrl-C leaves all
        updated or none.
        """
        loss = None
        if closure is not None:
            expect_function(f"{type(self).__name__}.step", "closure", closure)
            with enable_grad():
                loss = closure()
        if self.defaults.get("differentiable"):
            # what is saved for backward is a copy: parameters and states are written to again
            with enable_grad(), saved_tensors_hooks(_copy, _as_it_is):
                self._update_all()
        else:
            uninterrupted(self._update_unwatched if tracer.get() is not None and self._is_ours() else self._update_all)
        return loss

    def _update_unwatched(self) -> None:
        unwatched(self._update_all)

    def _update_group(self, group: Group) -> None:
        for p in group["params"]:
            grad = p.grad
            if grad is not None:
                self._update_one(p, grad, group)

    def _update_one(self, param: Tensor, grad: Any, group: Group) -> None:
        if grad.__class__ is not Tensor and grad.is_sparse:
            self.update_sparse(param, grad, self.state[param], group)
        else:
            self.update(param, grad, self.state[param], group)

    def _update_all(self) -> None:
        with disabled() if self._of_parts else nullcontext():
            self._update_groups()

    def _update_groups(self) -> None:
        there = {id(state) for state in self.state.values() if state} if tracer.get() is not None else set()
        for i, group in enumerate(self.param_groups):
            self._update_group(group if tracer.get() is None else self._seen_by_trace(i, group))
        if tracer.get() is not None:
            for state in self.state.values():
                for made in state.values():
                    keep(made)
            self._refuse_new_state(there)
            depends(self)

    def _seen_by_trace(self, i: int, group: Group) -> Group:
        """A group whose numbers are inputs of the graph."""
        names = self._inputs(group)
        return Inputs(group, f"{type(self).__name__}.param_groups[{i}]", names) if names else group

    def _inputs(self, group: Group) -> list[str]:
        """The options that a trace asks for at every replay; those of other packages may do anything with them."""
        return floats_of(group, self.defaults) if self._is_ours() and not group.get("differentiable") else []

    def _is_ours(self) -> bool:
        return type(self).__module__.startswith("genesis.")

    def _fixed(self, group: Group) -> list[str]:
        """The options that a trace takes for granted."""
        inputs = {"lr", *self._inputs(group)}
        return [name for name in self.defaults if name in group and name not in inputs]

    def _refuse_new_state(self, there: set[int]) -> None:
        """In a trace: forget what is not there outside of it; what was there before the step, by id, is left."""
        new = [
            s for s in self.state.values() if any(isinstance(getattr(x, "_array", None), Virtual) for x in s.values())
        ]
        for state in [state for state in new if id(state) not in there]:
            state.clear()
        if new:
            raise GraphError(
                message(
                    "trace",
                    f"{type(self).__name__} begins with a state that it made while it was traced",
                    hint="call the function once before tracing it",
                )
            )

    def _taken_for_granted(self) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for i, group in enumerate(self.param_groups):
            options: dict[str, Any] = plain_only({name: group[name] for name in self._fixed(group)})
            options |= {name: "a number, which is asked for" for name in self._inputs(group) if name != "lr"}
            values |= {f"param_groups[{i}][{name!r}]": value for name, value in options.items()}
            values[f"param_groups[{i}]['params']"] = tuple(group["params"])
        return values | {"state": tuple(self._state_tensors())}

    def _state_tensors(self) -> list[Tensor]:
        return [x for state in self.state.values() for x in state.values() if isinstance(x, Tensor)]

    def _asks_itself(self) -> bool:
        """See there. A program's own optimizer reads its options as it does anything else."""
        kinds = [c for c in type(self).__mro__ if issubclass(c, Optimizer) and c is not Optimizer]
        return any([c.__module__.startswith("genesis.") for c in kinds])

    def _holders(self) -> dict[str, Any]:
        params = [p for group in self.param_groups for p in group["params"]]
        groups = {f"param_groups[{i}]": group for i, group in enumerate(self.param_groups)}
        return groups | {f"state[{i}]": self.state[p] for i, p in enumerate(params) if p in self.state}

    def _witnesses(self) -> tuple[Any, ...]:
        options = [group[name] for group in self.param_groups for name in self._fixed(group)]
        params = [p for group in self.param_groups for p in (group, *group["params"])]
        return *options, *params, *self._state_tensors()

    def _begun(self) -> dict[str, Any]:
        return {"state": tuple(self._state_tensors()), "len(state)": len(self.state)}

    def _answers(self) -> list[tuple[Any, tuple[Any, ...] | None]] | None:
        answers: list[tuple[Any, tuple[Any, ...] | None]] = [(self.__dict__, ("state", "param_groups"))]
        answers += [(self.param_groups, None), (self.state, tuple(self.state))]
        for group in self.param_groups:
            answers += [(group, (*self._fixed(group), "params")), (group["params"], None)]
        tensors = [(s, tuple([k for k, x in s.items() if isinstance(x, Tensor)])) for s in self.state.values()]
        return [*answers, *tensors]

    def update(self, param: Tensor, grad: Tensor, state: dict[str, Any], group: Group) -> None:
        """Change one parameter in place."""
        raise NotImplementedError(f"{type(self).__name__} defines no update")

    def update_sparse(self, param: Tensor, grad: Any, state: dict[str, Any], group: Group) -> None:
        """Change one parameter in place, along a sparse gradient; subclasses that take none leave this as it is."""
        text, hint = (
            "does not support sparse gradients",
            "SparseAdam, SGD or Adagrad; or sparse=False where they are made",
        )
        raise UnsupportedError(message(type(self).__name__, text, [("gradient", grad._spec())], hint))

    def state_dict(self) -> dict[str, Any]:
        """State and options, with parameters replaced by their numbers."""
        for hook in every("state_dict_pre", self._hooks):
            hook(self)
        numbers: dict[int, int] = {}
        for i, p in enumerate(p for group in self.param_groups for p in group["params"]):
            numbers.setdefault(id(p), i)  # one that is there twice has its first number
        groups = [
            {**{k: v for k, v in g.items() if k != "params"}, "params": [numbers[id(p)] for p in g["params"]]}
            for g in self.param_groups
        ]
        counts = counting(self)
        states = {numbers.get(id(p), p): packed(s, p, id(p) in counts) for p, s in self.state.items() if s}
        result: dict[str, Any] = {"state": states, "param_groups": groups}
        for hook in every("state_dict_post", self._hooks):
            changed = hook(self, result)
            result = result if changed is None else changed
        return result

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over a state of the same parameter groups; nothing is changed unless all of it fits.

        Raises:
            TypeError: not a mapping
            ValueError: no state of an optimizer, groups of other sizes, tensors of other shapes: all that is wrong is
                listed
        """
        changes(self, f"a state is loaded into a {type(self).__name__}")
        if isinstance(state_dict, Mapping):
            state_dict = dict(state_dict)
        for hook in every("load_state_dict_pre", self._hooks):
            changed = hook(self, state_dict)
            state_dict = state_dict if changed is None else changed
        order = checked(self, state_dict)
        params = [p for group in self.param_groups for p in group["params"]]
        states = {int(k): v for k, v in state_dict["state"].items()}
        counts = counting(self)
        loaded = {p: unpacked(states[i], p, id(p) in counts) for p, i in zip(params, order, strict=True) if i in states}
        for group, other in zip(self.param_groups, state_dict["param_groups"], strict=True):
            group.update({k: deepcopy(v) for k, v in other.items() if k != "params"})
        # as in PyTorch: optimizers of programs complete there what an older state has not
        self.__setstate__({"state": defaultdict(dict, loaded), "param_groups": self.param_groups})
        for hook in every("load_state_dict_post", self._hooks):
            hook(self)

    def __getstate__(self) -> dict[str, Any]:
        """For copies and pickles: everything but the hooks."""
        return {k: v for k, v in self.__dict__.items() if k != "_hooks"}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self.__dict__.setdefault("_hooks", {})

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines += [f"Parameter Group {i}"] + [f"    {k}: {v}" for k, v in sorted(group.items()) if k != "params"]
        return "\n".join([*lines, ")"])

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step; it may return others."""
        return added(self._hooks, "step_pre", hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        return added(self._hooks, "step_post", hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` before the state is given."""
        return added(self._hooks, "state_dict_pre", hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` on the state that is given; it may return another."""
        return added(self._hooks, "state_dict_post", hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` on a state before it is looked at; it may return another."""
        return added(self._hooks, "load_state_dict_pre", hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` after a state was loaded."""
        return added(self._hooks, "load_state_dict_post", hook, prepend)


def _listed(name: str, params: Any) -> list[Any]:
    """The parameters that a group was given, or pairs of a name and one."""
    if isinstance(params, set):
        raise ArgumentError(message(name, "parameters must be in an order that stays, got a set", hint="a list"))
    if not isinstance(params, Iterable) or isinstance(params, str | bytes):
        raise ArgumentError(message(name, f"expected tensors, got {type(params).__name__}", hint="model.parameters()"))
    return [params] if isinstance(params, Tensor) else list(params)


def _copy(x: Tensor) -> Tensor:
    return x.clone()  # type: ignore[attr-defined, no-any-return]


def _as_it_is(x: Tensor) -> Tensor:
    return x
