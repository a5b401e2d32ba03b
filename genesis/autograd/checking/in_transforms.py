"""A rule under transforms: forward mode against backward, a batch against a loop."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from genesis.autograd.checking import conduct
from genesis.autograd.checking.calls import is_floating, refusal
from genesis.autograd.checking.report import Row, failed, passed, skipped
from genesis.autograd.checking.trial import Trial
from genesis.autograd.func.batches import vmap
from genesis.autograd.func.derivatives import jvp
from genesis.base.pytree import tree_flatten, tree_unflatten
from genesis.core.graph.generator import set_rng_state
from genesis.core.graph.modes import no_grad
from genesis.core.graph.tensor import Tensor, wrap
from genesis.core.layers.function_rules import no_jvp


def _plain(trial: Trial) -> Callable[..., tuple[Tensor, ...]]:
    """The function of the inputs alone."""
    calls = trial.calls
    constants = [calls._constant(leaf, None) for leaf in calls.leaves]

    def function(*inputs: Tensor) -> tuple[Tensor, ...]:
        full = list(constants)
        for position, x in zip(calls.positions, inputs, strict=True):
            full[position] = x.clone() if calls.through else x
        args, kwargs = tree_unflatten(full, calls.structure)
        set_rng_state(calls.random_state)
        return tuple(y for y in tree_flatten(calls.function(*args, **kwargs))[0] if is_floating(y))

    return function


def check_forward_mode(trial: Trial) -> Iterator[Row]:
    """$\\langle w, J d\\rangle$ from `jvp` is $\\langle J^T w, d\\rangle$ from `backward`, where the rule has both."""
    name, owner = "forward mode", trial.calls.owner
    if owner is None or owner.jvp is no_jvp:
        yield skipped(name, "there is no jvp: it is derived from backward" if owner is not None else "there is no jvp")
        return
    if trial.base.error is not None:
        yield skipped(name, "backward fails")
        return
    xs = [wrap(x.copy()) for x in trial.arrays]
    seeds = [np.asarray(s) for s in trial.seeds()]
    for k, title in enumerate(trial.names):
        directions = [np.zeros_like(x) for x in trial.arrays]
        directions[k] = np.asarray(trial.rng.uniform(0.5, 1.5, trial.arrays[k].shape), trial.arrays[k].dtype)
        outs, pushed = jvp(_plain(trial), tuple(xs), tuple(wrap(d) for d in directions))
        forward = sum(float((np.conj(w) * t.detach().numpy()).sum().real) for w, t in zip(seeds, pushed, strict=True))
        g = trial.base.gradients[k]
        backward = 0.0 if g is None else float((np.conj(g) * directions[k]).sum().real)
        size = sum(float(np.abs(w * t.detach().numpy()).sum()) for w, t in zip(seeds, pushed, strict=True))
        if abs(forward - backward) > conduct.loose(trial) * (size + abs(backward)):
            yield failed(
                name,
                "jvp",
                f"jvp and backward disagree about `{title}`: along one direction {forward:.6g} and {backward:.6g}",
                "one of them is wrong: the row of the gradient says whether it is backward",
            )
            return
        if any(
            not np.allclose(y.detach().numpy(), v, equal_nan=True)
            for y, v in zip(outs, _values(trial, xs), strict=True)
        ):
            yield failed(
                name,
                "jvp",
                "forward gives another value where it is asked for a tangent",
                "forward must not depend on who calls it",
            )
            return
    yield passed(name)


def _values(trial: Trial, xs: Sequence[Tensor]) -> list[Any]:
    with no_grad():
        return [y.detach().numpy() for y in _plain(trial)(*xs)]


def check_batches(trial: Trial) -> Iterator[Row]:
    """`vmap` of the function is a loop over its samples."""
    name, count = "vmap", 3
    rows = [[x.copy() if i == 0 else x * (1 + 0.01 * i) for x in trial.arrays] for i in range(count)]
    function = _plain(trial)
    try:
        expected = [[y.detach().numpy() for y in function(*[wrap(x) for x in row])] for row in rows]
    except Exception:  # the function refuses values close by
        yield skipped(name, "forward refuses other values")
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = vmap(function, randomness="same")(*[wrap(np.stack(column)) for column in zip(*rows, strict=True)])
    except Exception as error:  # what a rule does with a batch may fail in any way
        own = trial.calls.owner is not None and "vmap" in vars(trial.calls.owner)
        yield (
            failed(name, "vmap", f"its vmap rule fails: {refusal(error)}")
            if own
            else skipped(name, f"it cannot be batched: {refusal(error)}")
        )
        return
    for k, y in enumerate(results):
        want = np.stack([e[k] for e in expected])
        if y.shape != want.shape or not np.allclose(
            y.detach().numpy(), want, conduct.loose(trial), 1e-12, equal_nan=True
        ):
            yield failed(
                name,
                "vmap",
                "a batch gives other values than its samples one by one",
                "look at the dimensions that forward (or vmap) names, and at out_dims",
            )
            return
    yield passed(name)
