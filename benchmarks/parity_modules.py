"""Every module and optimizer of PyTorch's ModuleInfo and OptimizerInfo databases, in Genesis and PyTorch.

    python benchmarks/parity.py --of modules      (or optimizers)

A module is made with PyTorch's sample arguments, in training and in evaluation, and gets the parameters and buffers of
PyTorch's. Compared are its names of state, how it prints, its results, the gradients of inputs and parameters, and what
it wrote to its buffers. An optimizer is made with PyTorch's sample arguments and takes ten steps on the same gradients:
compared are the parameters after each, its state, and its groups.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import parity
import torch
from parity import Row, differs, tensors_of, weights

import genesis
from genesis.core.graph.tensor import wrap
from genesis.pytorch.modules import find

STEPS = 10
DTYPES = ("float32", "float64")


def ours(value: Any) -> Any:
    """`parity.ours`, and PyTorch's modules and functions by their names."""
    if isinstance(value, torch.nn.utils.rnn.PackedSequence):
        return genesis.nn.utils.rnn.PackedSequence(*[None if x is None else parity.ours(x) for x in value])
    if isinstance(value, torch.nn.TransformerEncoderLayer):
        return genesis.nn.TransformerEncoderLayer(
            value.linear1.in_features, value.self_attn.num_heads, value.linear1.out_features, value.dropout.p,
            ours(value.activation), bias=value.linear1.bias is not None, batch_first=value.self_attn.batch_first, norm_first=value.norm_first,
        )  # fmt: skip
    if isinstance(value, torch.nn.Module):
        return find("torch.nn", type(value).__name__)()
    if callable(value) and hasattr(value, "__name__") and not isinstance(value, torch.Tensor | torch.dtype):
        return find("torch.nn.functional", value.__name__)
    if isinstance(value, tuple | list) and not hasattr(value, "_fields"):
        return type(value)(ours(x) for x in value)
    return {k: ours(x) for k, x in value.items()} if isinstance(value, dict) else parity.ours(value)


def tried(row: Row, example: str, compare: Callable[..., str], *args: Any) -> None:
    """Enter into a row what came of one comparison."""
    try:
        problem = compare(*args)
    except Exception as error:
        problem = parity.reason(error)
    row.calls += 1
    row.agreed += not problem
    if problem:
        row.reasons[problem] += 1
        row.examples.setdefault(problem, example)


# ---- modules


def without_dropout(module: Any) -> Any:
    """No elements are dropped: the two would drop others."""
    for part in module.modules():
        if "Dropout" in type(part).__name__:
            part.p = 0.0
        elif type(part).__name__ == "MultiheadAttention":
            part.dropout = 0.0
    return module


def made(info: Any, sample: Any, dtype: torch.dtype, training: bool) -> tuple[Any, Any]:
    """The module of both, with the same parameters."""
    args, kwargs = sample.constructor_input.args, sample.constructor_input.kwargs
    its = without_dropout(info.module_cls(*args, **kwargs)).to(dtype).train(training)
    mine = without_dropout(find("torch.nn", info.name.removeprefix("nn."))(*ours(args), **ours(kwargs)))
    mine = mine.to(parity.dtype_of(dtype)).train(training)
    if info.is_lazy:  # parameters are made by the first call
        given = sample.forward_input
        with torch.no_grad(), genesis.no_grad():
            its(*given.args, **given.kwargs), mine(*ours(given.args), **ours(given.kwargs))
    return mine, its


def same_state(mine: Any, its: Any) -> str:
    my_names, its_names = list(mine.state_dict()), list(its.state_dict())
    if my_names != its_names:
        return f"state_dict has {', '.join(my_names)}, not {', '.join(its_names)}"
    return differs(list(mine.state_dict().values()), list(its.state_dict().values()), True)


def printed(info: Any, sample: Any, dtype: torch.dtype) -> str:
    mine, its = made(info, sample, dtype, True)
    a, b = (re.sub(r"genesis\.|torch\.|NonDynamicallyQuantizable", "", repr(x)) for x in (mine, its))
    return "" if a == b else "it prints otherwise: " + " / ".join(f"{x} for {y}" for x, y in zip(
        a.split("\n"), b.split("\n"), strict=False) if x != y)[:150]  # fmt: skip


def same_call(info: Any, sample: Any, dtype: torch.dtype, training: bool) -> str:
    """Results, gradients and state of one module."""
    mine, its = made(info, sample, dtype, training)
    mine.load_state_dict({k: ours(v) for k, v in its.state_dict().items()})
    args, kwargs = sample.forward_input.args, sample.forward_input.kwargs
    my_args, my_kwargs = ours(args), ours(kwargs)
    if len(args) == 2 and args[0] is args[1]:
        my_args = (my_args[0], my_args[0])
    expected, got = its(*args, **kwargs), mine(*my_args, **my_kwargs)
    drawn = "Fractional" in info.name and sample.constructor_input.kwargs.get("_random_samples") is None
    if problem := differs(got, expected, not drawn) or same_state(mine, its):
        return problem
    return "" if drawn else same_gradients(
        got, expected, [my_args, my_kwargs, list(mine.parameters())], [args, kwargs, list(its.parameters())]
    )  # fmt: skip


def same_gradients(got: Any, expected: Any, my_inputs: Any, its_inputs: Any) -> str:
    theirs = parity.gradients(expected, tensors_of(its_inputs), torch.autograd.grad,
                              lambda x: torch.from_numpy(weights(tuple(x.shape))).to(x.dtype))  # fmt: skip
    found = parity.gradients(got, tensors_of(my_inputs), genesis.autograd.grad,
                             lambda x: wrap(weights(tuple(x.shape))).to(x.dtype))  # fmt: skip
    if len(found) != len(theirs):
        return f"{len(found)} gradients, not {len(theirs)}"
    for a, b in zip(found, theirs, strict=True):
        if (a is None) != (b is None) and ((a if b is None else b) != 0).any():
            return "gradient: none for one"
        if a is not None and b is not None and (problem := differs(a, b, True, 10.0)):
            return f"gradient: {problem}"
    return ""


def samples_of(info: Any, dtype: torch.dtype, training: bool) -> list[Any]:
    torch.manual_seed(0)
    return list(info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=True, training=training))


def modules(names: str, dtypes: tuple[str, ...] = DTYPES, count: int = 1000) -> dict[str, Row]:
    """A row for each module whose name matches: of the samples the first ``count``."""
    parity.databases()
    from torch.testing._internal.common_modules import module_db

    rows: dict[str, Row] = {}
    for info in module_db:
        if not re.search(names, info.name):
            continue
        row, prints = (rows.setdefault(name, Row(name)) for name in (info.name, f"{info.name} (printed)"))
        for dtype in [getattr(torch, d) for d in dtypes if getattr(torch, d) in info.dtypes]:
            for training in (True, False):
                for sample in samples_of(info, dtype, training)[:count]:
                    given = sample.constructor_input
                    example = ", ".join([*map(str, given.args), *[f"{k}={v}" for k, v in given.kwargs.items()]])[:110]
                    if sample.forward_input is not None:
                        tried(row, example, same_call, info, sample, dtype, training)
                    if training and dtype is torch.float32:
                        tried(prints, example, printed, info, sample, dtype)
    return rows


# ---- optimizers


def parameters_for(name: str, dtype: torch.dtype) -> list[torch.Tensor]:
    rng = np.random.default_rng(0)
    shapes = [(3, 4), (5, 2)] if name == "Muon" else [(3, 4), (4,), ()]
    return [torch.tensor(rng.normal(size=shape), dtype=dtype) for shape in shapes]


def ways(info: Any) -> Iterator[dict[str, bool]]:
    yield {}
    yield from ({way: True} for way in info.supported_impls)


def taken(lib: Any, optimizer: Any, parameters: list[Any], closure: bool) -> Iterator[list[Any]]:
    """The parameters after each step: of losses, or on gradients that are the same for both."""
    rng = np.random.default_rng(1)

    def loss() -> Any:
        optimizer.zero_grad()
        out = sum(((p - 0.5) ** 2 * (1 + (p - 0.5) ** 2)).sum() for p in parameters)
        out.backward()
        return out

    for _ in range(STEPS):
        if not closure:
            for p in parameters:
                p.grad = lib.tensor(rng.normal(size=tuple(p.shape)), dtype=p.dtype)
        optimizer.step(loss) if closure else optimizer.step()
        yield [p.detach() for p in parameters]


def same_steps(info: Any, kwargs: dict[str, Any], dtype: torch.dtype) -> str:
    name = info.optim_cls.__name__
    start = parameters_for(name, dtype)
    theirs, found = ([x.requires_grad_() for x in xs] for xs in ([x.clone() for x in start], ours(start)))
    if kwargs.get("differentiable"):  # a step is recorded: leaves could not be written to
        theirs, found = ([x.clone() for x in xs] for xs in (theirs, found))
    its = info.optim_cls(theirs, **copy.deepcopy(kwargs))
    mine = find("torch.optim", name)(found, **ours(kwargs))
    pairs = zip(taken(genesis, mine, found, info.step_requires_closure),
                taken(torch, its, theirs, info.step_requires_closure), strict=True)  # fmt: skip
    for i, (a, b) in enumerate(pairs):
        if problem := differs(a, b, True):
            return f"step {i + 1}: {problem}"
    return same_record(mine.state_dict(), its.state_dict())


def same_record(mine: Any, its: Any) -> str:
    for i, (a, b) in enumerate(zip(mine["param_groups"], its["param_groups"], strict=True)):
        if set(a) != set(b):
            return f"group {i} has {', '.join(a)}, not {', '.join(b)}"
    for key, state in its["state"].items():
        if set(mine["state"][key]) != set(state):
            return f"state has {', '.join(mine['state'][key])}, not {', '.join(state)}"
        for part, b in state.items():
            if isinstance(b, torch.Tensor) and (problem := differs(mine["state"][key][part], b, True)):
                return f"state {part}: {problem}"
    return ""


def optimizers(names: str, dtypes: tuple[str, ...] = DTYPES, count: int = 1000) -> dict[str, Row]:
    """A row for each optimizer whose name matches: of the samples the first ``count``."""
    parity.databases()
    from torch.testing._internal.common_optimizers import optim_db

    rows: dict[str, Row] = {}
    for info in optim_db:
        name = info.optim_cls.__name__
        if not re.search(names, name) or info.only_supports_sparse_grads:
            continue
        row = rows.setdefault(name, Row(name))
        for dtype in (getattr(torch, d) for d in dtypes):
            for way in ways(info):
                for sample in info.optim_inputs_func(device="cpu", dtype=dtype)[:count]:
                    kwargs = {**sample.kwargs, **way}
                    if refused(info, kwargs):
                        continue
                    tried(row, f"{kwargs}", same_steps, info, kwargs, dtype)
    return rows


def refused(info: Any, kwargs: dict[str, Any]) -> bool:
    try:
        info.optim_cls(parameters_for(info.optim_cls.__name__, torch.float32), **copy.deepcopy(kwargs))
    except (RuntimeError, ValueError):
        return True
    return False
