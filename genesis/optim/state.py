"""States of optimizers: as they are saved, and whether they fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from genesis.base.errors import ArgumentError, GenesisError, message
from genesis.base.late import Late
from genesis.core.graph.tensor import Tensor
from genesis.ops.creation.outside import tensor

_sharded, _dtensor = Late("genesis.distributed.sharded"), Late("genesis.distributed.tensor.dtensor")


class StateDictError(GenesisError, ValueError, RuntimeError):
    """A state that does not fit an optimizer or a schedule; says all that is wrong."""


def counting(optimizer: Any) -> set[int]:
    """The parameters, by their ids, whose ``state["step"]`` is a count of this package: optimizers of users may keep what
    they like under that name.
    """
    groups = [g for g in optimizer.param_groups if "step" in optimizer.state_names(g)]
    return {id(p) for g in groups for p in g["params"]}


def packed(state: Mapping[str, Any], param: Any = None, counts: bool = True) -> dict[str, Any]:
    """The state of one parameter as PyTorch saves it: a count of steps, if there is one, is a tensor. What is like a
    parameter of which this rank has a part lies as that does.
    """
    values = dict(state)
    if counts and "step" in values and not isinstance(values["step"], Tensor):
        values["step"] = tensor(float(values["step"]))
    if param is None or param._layout is None:
        return values
    part, at = _dtensor.Distributed.of, param._layout
    return {
        k: part(v, at) if isinstance(v, Tensor) and v._layout is None and v._array.shape == param._array.shape else v
        for k, v in values.items()
    }


def unpacked(state: Mapping[str, Any], param: Tensor, counts: bool = True) -> dict[str, Any]:
    """The state of one parameter: copies in its dtype (but for single numbers), on its device; a count of steps, which was
    saved as a tensor, is a number here.
    """
    copies = {k: _copied(v, param) for k, v in state.items()}
    if counts and isinstance(copies.get("step"), Tensor | float):
        copies["step"] = int(copies["step"])
    return copies


def _copied(value: Any, param: Tensor) -> Any:
    if isinstance(value, list | tuple):
        return type(value)([_copied(v, param) for v in value])
    if not isinstance(value, Tensor):
        return value
    value = _own_rows(value, param)
    cast = value.ndim and value.is_floating_point() and param.is_floating_point()
    return value.detach().to(dtype=param.dtype if cast else None, device=param.device, copy=True)  # type: ignore[attr-defined]


def _own_rows(value: Tensor, param: Tensor) -> Any:
    """Of a tensor like the parameter what this rank has of it, where it has a part of the parameter."""
    at = param._layout
    if at is None:
        return value.full_tensor() if value._layout is not None else value  # type: ignore[attr-defined]
    own = _sharded.own_part(value, at)
    return own if own._layout is None else own.to_local()


def checked(optimizer: Any, state: Any) -> list[int]:
    """The numbers that a state gives the parameters, in order; or an error with all that does not fit."""
    name = f"{type(optimizer).__name__}.load_state_dict"
    if not isinstance(state, Mapping):
        raise ArgumentError(
            message(name, f"expected a mapping, got {type(state).__name__}", hint="optimizer.state_dict()")
        )
    groups, states = state.get("param_groups"), state.get("state")
    if not isinstance(states, Mapping) or not isinstance(groups, list | tuple) or not all(_is_group(g) for g in groups):
        keys = ", ".join(map(str, state)) or "(none)"
        raise StateDictError(
            message(
                name,
                f"a state has 'state' and 'param_groups', a list of dicts with 'params'; got the keys {keys}",
                hint="optimizer.state_dict() gives one, of a module it is module.load_state_dict(...)",
            )
        )
    sizes, given = [len(g["params"]) for g in optimizer.param_groups], [len(g["params"]) for g in groups]
    if sizes != given:
        raise StateDictError(
            message(
                name,
                f"the state has groups of {given} parameters, the optimizer of {sizes}",
                hint="the same groups as when it was saved",
            )
        )
    order = [i for group in groups for i in group["params"]]
    problems = [p for i, group in enumerate(groups) for p in _group_problems(optimizer, i, group)]
    problems += _state_problems(optimizer, states, order, groups)
    if problems:
        raise StateDictError(
            f"{name}: the state does not fit\n  "
            + "\n  ".join(problems)
            + f"\n  try: the state of a {type(optimizer).__name__} of the same parameters"
        )
    return order


def _is_group(group: Any) -> bool:
    return (
        isinstance(group, Mapping)
        and isinstance(group.get("params"), list | tuple)
        and all(type(i) is int for i in group["params"])
    )


def _group_problems(optimizer: Any, number: int, group: Mapping[str, Any]) -> list[str]:
    # versions add switches
    missing = [k for k, v in optimizer.defaults.items() if k not in group and not isinstance(v, bool | None)]
    if missing:
        return [f"group {number}: missing {', '.join(missing)}"]
    try:
        optimizer.check_group({**optimizer.defaults, **group})
    except GenesisError as error:
        return [f"group {number}: {error}"]
    return []


def _state_problems(optimizer: Any, states: Mapping[Any, Any], order: list[int], groups: Any) -> list[str]:
    wrong = [k for k in states if not str(k).isdecimal() or int(k) not in order]
    problems = [f"state: unknown parameters {', '.join(map(repr, wrong))}"] if wrong else []
    by_number = {int(k): v for k, v in states.items() if str(k).isdecimal()}
    params = [
        (p, {**group, **other})
        for group, other in zip(optimizer.param_groups, groups, strict=True)
        for p in group["params"]
    ]
    for (p, group), i in zip(params, order, strict=True):
        problems += _problems_of_one(optimizer, p, group, i, by_number.get(i, {}))
    return problems


def _problems_of_one(optimizer: Any, p: Tensor, group: Mapping[str, Any], i: int, values: Any) -> Iterator[str]:
    if not isinstance(values, Mapping):
        yield f"state of parameter {i}: expected a mapping, got {type(values).__name__}"
        return
    missing = [name for name in optimizer.state_names(group) if values and name not in values]
    if missing:
        yield f"state of parameter {i}: missing {', '.join(missing)}"
    for key, v in values.items():
        shape = optimizer.state_shape(key, p)
        if isinstance(v, Tensor) and v.ndim and shape is not None and v.shape != shape:
            yield f"{key} of parameter {i}: shape {list(v.shape)} in the state, {list(shape)} of the parameter"
