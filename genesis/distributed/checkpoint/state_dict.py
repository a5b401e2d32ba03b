"""States of models and of their optimizers under the names of parameters: ``torch.distributed.checkpoint.state_dict``.

An optimizer's own ``state_dict()`` numbers parameters; here it names them as the model does, without the ``module.`` of
`genesis.nn.parallel.DistributedDataParallel`. So a state fits a model with and without it, and groups in another order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from genesis.base.errors import ArgumentError, message
from genesis.core.call.refusal import explain_all
from genesis.core.graph.tensor import Tensor
from genesis.distributed.groups import get_rank, is_initialized
from genesis.distributed.objects import broadcast_object_list


@dataclass
class StateDictOptions:
    """What is in a state, and how it is taken.

    Args:
        ignore_frozen_params: leave out parameters that do not require grad
        strict: of `set_model_state_dict`: names must be the same
        full_state_dict: of sharded modules, whole tensors in place of this rank's rows
        cpu_offload: tensors in the memory of the CPU; with ``full_state_dict`` rank 0 has them, the others nothing
        broadcast_from_rank0: with ``full_state_dict``, of states that are loaded: that of rank 0 counts, others may be empty
        keep_submodule_prefixes, flatten_optimizer_state_dict, dsd_fqn_modifiers: accepted for PyTorch's sake
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def get_model_state_dict(model: Any, *, submodules: Any = None, options: StateDictOptions | None = None) -> Any:
    """Parameters and buffers of a model, by the names of the plain model.

    >>> import genesis
    >>> list(get_model_state_dict(genesis.nn.Linear(2, 1)))
    ['weight', 'bias']
    """
    _require_none("get_model_state_dict", submodules)
    plain = _plain(model)
    state = plain.state_dict()
    if options is not None and options.ignore_frozen_params:
        for name in [name for name, p in plain.named_parameters() if not p.requires_grad]:
            state.pop(name, None)
    return _at_rank_0(_whole(state, options), options)


def set_model_state_dict(model: Any, model_state_dict: Any, *, options: StateDictOptions | None = None) -> Any:
    """Give a model the state that `get_model_state_dict` gave; one on the meta device takes its tensors.

    Raises:
        RuntimeError: names or shapes that do not fit
    """
    plain, lenient = _plain(model), options is not None and (options.ignore_frozen_params or not options.strict)
    state = _from_rank_0(model_state_dict, options)
    without_memory = any([p.is_meta for p in plain.parameters()])  # what is there to copy into? the tensors themselves
    return plain.load_state_dict(state, strict=not lenient, assign=without_memory)


def get_optimizer_state_dict(
    model: Any, optimizers: Any, *, submodules: Any = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """State and options of one optimizer or several, with the names of parameters in place of their numbers.

    Raises:
        TypeError: an optimizer of parameters that the model does not have

    >>> import genesis
    >>> model = genesis.nn.Linear(2, 1)
    >>> get_optimizer_state_dict(model, genesis.optim.SGD(model.parameters(), lr=0.1))["param_groups"][0]["params"]
    ['weight', 'bias']
    """
    _require_none("get_optimizer_state_dict", submodules)
    out: dict[str, Any] = {"state": {}, "param_groups": []}
    for optimizer in _listed(optimizers):
        own = named(model, optimizer, optimizer.state_dict(), options)
        out["state"] |= own["state"]
        out["param_groups"] += own["param_groups"]
    return _at_rank_0(out, options)


def set_optimizer_state_dict(
    model: Any, optimizers: Any, optim_state_dict: Any, *, options: StateDictOptions | None = None
) -> None:
    """Give optimizers the state that `get_optimizer_state_dict` gave; groups may be in another order.

    Raises:
        TypeError: an optimizer of parameters that the model does not have
        ValueError: no group for a parameter, or a state that does not fit
    """
    optim_state_dict = _from_rank_0(optim_state_dict, options)
    for optimizer in _listed(optimizers):
        optimizer.load_state_dict(numbered(model, optimizer, optim_state_dict))


def get_state_dict(
    model: Any, optimizers: Any, *, submodules: Any = None, options: StateDictOptions | None = None
) -> tuple[Any, dict[str, Any]]:
    """`get_model_state_dict` and `get_optimizer_state_dict`."""
    return (
        get_model_state_dict(model, submodules=submodules, options=options),
        get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options),
    )


def set_state_dict(
    model: Any, optimizers: Any, *, model_state_dict: Any, optim_state_dict: Any, options: StateDictOptions | None = None
) -> Any:  # fmt: skip
    """`set_model_state_dict` and `set_optimizer_state_dict`.

    >>> import genesis
    >>> model = genesis.nn.Linear(2, 1)
    >>> adam = genesis.optim.Adam(model.parameters())
    >>> model(genesis.ones(2)).sum().backward(); adam.step()
    >>> weights, moments = get_state_dict(model, adam)
    >>> other = genesis.nn.Linear(2, 1)
    >>> set_state_dict(other, genesis.optim.Adam(other.parameters()), model_state_dict=weights, optim_state_dict=moments)
    <All keys matched successfully>
    """
    keys = set_model_state_dict(model, model_state_dict, options=options)
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return keys


def _plain(model: Any) -> Any:
    """The module itself, without what makes it parallel."""
    while type(model).__name__ in ("DistributedDataParallel", "DataParallel", "FullyShardedDataParallel"):
        model = model.module
    return model


def _whole(values: Any, options: StateDictOptions | None) -> Any:
    """The same with whole tensors in place of this rank's rows, if that is asked for; then all ranks call it."""
    if options is not None and options.full_state_dict:
        for key, value in list(values.items()):
            if isinstance(value, Tensor) and value._layout is not None:
                values[key] = value.full_tensor()  # type: ignore[attr-defined]
    if options is not None and options.cpu_offload:
        for key, value in list(values.items()):
            values[key] = value.cpu() if isinstance(value, Tensor) else value  # type: ignore[attr-defined]
    return values


def _at_rank_0(state: Any, options: StateDictOptions | None) -> Any:
    """A whole state is for one rank where it leaves the devices."""
    only = options is not None and options.full_state_dict and options.cpu_offload
    return {} if only and is_initialized() and get_rank() else state


def _from_rank_0(state: Any, options: StateDictOptions | None) -> Any:
    """The state that counts; all ranks call it."""
    if options is None or not (options.full_state_dict and options.broadcast_from_rank0) or not is_initialized():
        return state
    sent = [state]
    broadcast_object_list(sent, 0)
    return sent[0]


def _init_optim_state(optim: Any) -> None:
    """Let an optimizer that has not made a step have its state, as PyTorch's programs that load one do first: by a step that
    changes nothing.
    """
    parameters = [p for group in optim.param_groups for p in group["params"]]
    if optim.state or any([p.grad is not None for p in parameters]):
        return
    rates = [group.get("lr") for group in optim.param_groups]
    for p in parameters:
        if p.requires_grad:
            p.grad = p.detach().new_zeros(p.shape)
    for group in optim.param_groups:
        group["lr"] = 0.0
    optim.step()
    for group, rate in zip(optim.param_groups, rates, strict=True):
        group["lr"] = rate
    optim.zero_grad(set_to_none=True)


def _listed(optimizers: Any) -> list[Any]:
    return list(optimizers) if isinstance(optimizers, Iterable) else [optimizers]


def _names(model: Any, optimizer: Any) -> dict[int, str]:
    """The name of each parameter, by the optimizer's number."""
    named = {id(p): name for name, p in _plain(model).named_parameters()}
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    unknown = [number for number, p in enumerate(parameters) if id(p) not in named]
    if unknown:
        text = f"parameter {unknown[0]} of the {type(optimizer).__name__} is not one of the model"
        raise ArgumentError(message("get_optimizer_state_dict", text, hint="the model that the optimizer trains"))
    return {number: named[id(p)] for number, p in enumerate(parameters)}


def named(model: Any, optimizer: Any, state: Any, options: StateDictOptions | None) -> dict[str, Any]:
    """An optimizer's state with the names of parameters in place of their numbers."""
    names = _names(model, optimizer)
    groups = [group | {"params": [names[number] for number in group["params"]]} for group in state["param_groups"]]
    return {
        "state": {names[number]: _whole(dict(values), options) for number, values in state["state"].items()},
        "param_groups": groups,
    }


def numbered(model: Any, optimizer: Any, state: Any) -> dict[str, Any]:
    """What an optimizer loads, of a state that names the parameters: with its own numbers, in its own groups."""
    groups = {name: group for group in state["param_groups"] for name in group["params"]}
    names = _names(model, optimizer)
    begin, own = 0, []
    for group in optimizer.param_groups:
        here = list(range(begin, begin + len(group["params"])))
        begin += len(here)
        known = [groups[names[n]] for n in here if names[n] in groups]
        if len(known) < len(here):
            absent = next(names[n] for n in here if names[n] not in groups)
            text = f"the state has no group with the parameter {absent}"
            raise ArgumentError(message("set_optimizer_state_dict", text))
        own.append((known[0] if known else {}) | {"params": here})
    numbers = {name: number for number, name in names.items()}
    values = {numbers[name]: value for name, value in state["state"].items() if name in numbers}
    return {"state": values, "param_groups": own}


def _require_none(name: str, submodules: Any) -> None:
    if submodules is not None:
        raise ArgumentError(message(name, "submodules is not supported", hint="call it with the submodule as model"))


explain_all(globals())
