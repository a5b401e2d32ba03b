"""Modules as functions of their parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from genesis.base.errors import ArgumentError, ArgumentValueError, ShapeError, message
from genesis.core.call.refusal import explain_all
from genesis.core.graph.tensor import Tensor
from genesis.ops.shapes.join import stack


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other tensors in place of its parameters and buffers; the module itself stays as it is.

    Args:
        parameter_and_buffer_dicts: name -> tensor, or several of these; names as in ``module.state_dict()``
        args: the arguments of the call: a tuple, or one value
        tie_weights: parameters that are one tensor under two names are replaced together
        strict: every parameter and buffer must be given

    Raises:
        ValueError: a name given twice, or with ``strict`` one too many or too few

    >>> import genesis
    >>> layer = genesis.nn.Linear(1, 1, bias=False)
    >>> genesis.func.functional_call(layer, {"weight": genesis.tensor([[3.0]])}, genesis.tensor([2.0]))
    tensor([6.])
    """
    given = _merged(parameter_and_buffer_dicts)
    slots = dict(_slots(module))
    unknown = [name for name in given if name not in slots]
    if unknown and strict:
        raise ArgumentValueError(
            message("functional_call", f"the module has no {', '.join(unknown)}", [("it has", ", ".join(slots))])
        )
    if strict and len(given) < len(slots):
        raise ArgumentValueError(
            message(
                "functional_call",
                f"strict=True, and there is no tensor for {', '.join(n for n in slots if n not in given)}",
            )
        )
    if unknown:
        raise ArgumentValueError(
            message("functional_call", f"the module has no {', '.join(unknown)}", [("it has", ", ".join(slots))])
        )
    if tie_weights:
        given = _tied(given, slots)
    arguments = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replaced(given, slots):
        return module(*arguments, **dict(kwargs or {}))


def _merged(dicts: Any) -> dict[str, Any]:
    parts = [dicts] if isinstance(dicts, Mapping) else list(dicts)
    merged: dict[str, Any] = {}
    for part in parts:
        if not isinstance(part, Mapping):
            raise ArgumentError(
                message("functional_call", f"expected dictionaries of tensors, got {type(part).__name__}")
            )
        twice = set(merged) & set(part)
        if twice:
            raise ArgumentValueError(message("functional_call", f"{', '.join(sorted(twice))} is given twice"))
        merged.update(part)
    return merged


def _slots(module: Any) -> Iterator[tuple[str, tuple[dict[str, Any], str]]]:
    """For each parameter and buffer its full name, and the dictionary and key that hold it."""
    for prefix, owner in module.named_modules():
        for store in (owner._parameters, owner._buffers):
            for name, value in store.items():
                if value is not None:
                    yield f"{prefix}.{name}" if prefix else name, (store, name)


def _tied(given: dict[str, Any], slots: dict[str, Any]) -> dict[str, Any]:
    by_tensor: dict[int, Any] = {}
    for name, value in given.items():
        store, key = slots[name]
        seen = by_tensor.setdefault(id(store[key]), value)
        if seen is not value:
            raise ArgumentValueError(
                message(
                    "functional_call",
                    f"{name} is one tensor under two names, and two tensors are given for it",
                    hint="give one, or tie_weights=False",
                )
            )
    return {name: by_tensor[id(store[key])] for name, (store, key) in slots.items() if id(store[key]) in by_tensor}


@contextmanager
def _replaced(given: dict[str, Any], slots: dict[str, Any]) -> Iterator[None]:
    before = {name: slots[name][0][slots[name][1]] for name in given}
    try:
        for name, value in given.items():
            store, key = slots[name]
            store[key] = value
        yield
    finally:
        for name, value in before.items():
            store, key = slots[name]
            store[key] = value


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The parameters and the buffers of several modules of one kind, each stacked along a new first dimension, for
    `vmap`.

    The stacked parameters are leaves of their own that require grad.

    Raises:
        ValueError: no modules, or modules of different classes
        RuntimeError: parameters that differ in shape

    >>> import genesis
    >>> params, buffers = genesis.func.stack_module_state([genesis.nn.Linear(2, 3) for _ in range(5)])
    >>> params["weight"].shape
    genesis.Size([5, 3, 2])
    """
    models = list(models)
    if not models:
        raise ArgumentValueError(message("stack_module_state", "there are no modules"))
    if any(type(m) is not type(models[0]) for m in models):
        raise ArgumentValueError(
            message(
                "stack_module_state",
                f"the modules differ, {type(models[0]).__name__} and "
                f"{next(type(m).__name__ for m in models if type(m) is not type(models[0]))}",
            )
        )
    if any(m.training != models[0].training for m in models):
        raise ArgumentValueError(message("stack_module_state", "some modules are in training mode and some are not"))
    return _stacked([dict(m.named_parameters()) for m in models], True), _stacked(
        [dict(m.named_buffers()) for m in models], False
    )


def _stacked(states: list[dict[str, Tensor]], leaves: bool) -> dict[str, Tensor]:
    stacked = {}
    for name in states[0]:
        parts = [s[name] for s in states]
        if any(p.shape != parts[0].shape for p in parts):
            raise ShapeError(
                message(
                    "stack_module_state",
                    f"{name} differs in shape, {list(parts[0].shape)} and "
                    f"{next(list(p.shape) for p in parts if p.shape != parts[0].shape)}",
                )
            )
        joined = stack([p.detach() for p in parts])
        stacked[name] = joined.requires_grad_(parts[0].requires_grad) if leaves else joined
    return stacked


explain_all(globals(), "functional_call", "stack_module_state")
