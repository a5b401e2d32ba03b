"""How a rule behaves beyond its numbers: what it writes to, keeps, refuses, and whether it gives one answer.

Each check takes a `Trial` and yields rows. They compare a rule with itself, so they say something even of a rule whose
numbers are wrong.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from genesis.autograd.checking.calls import refusal, saving_noted
from genesis.autograd.checking.differences import SINGLE, Array
from genesis.autograd.checking.evidence import factor_words
from genesis.autograd.checking.report import Row, failed, passed, skipped
from genesis.autograd.checking.trial import Measured, Trial
from genesis.core.graph.node import FREED
from genesis.core.graph.saved import saved_tensors_hooks
from genesis.core.graph.tensor import Tensor, wrap


def equal(a: Array | None, b: Array | None, rtol: float = 0.0) -> bool:
    """Whether two gradients are the same; None is zero."""
    if a is None or b is None:
        return not np.any(a if b is None else b)
    return a.shape == b.shape and bool(np.allclose(a, b, rtol, rtol * largest(b), equal_nan=True))


def largest(a: Array) -> float:
    """The largest magnitude in an array, of what is finite: an infinite tolerance would be met by anything."""
    return float(np.abs(a).max(initial=0.0, where=np.isfinite(a)))


def differing(trial: Trial, measured: Measured, expected: Measured, rtol: float) -> list[str]:
    pairs = zip(trial.names, measured.gradients, expected.gradients, strict=True)
    return [name for name, a, b in pairs if not equal(a, b, rtol)]


def loose(trial: Trial) -> float:
    """For results that may be added up in another order."""
    return 1e-4 if trial.precision is SINGLE else 1e-9


def check_repeats(trial: Trial) -> Iterator[Row]:
    """Equal calls give equal results: forward, backward, and backward twice through one graph."""
    name = "same answer twice"
    if not np.array_equal(trial.values(trial.arrays), trial.values(trial.arrays), equal_nan=True):
        yield failed(name, "nondeterministic", "two calls of forward with the same input differ, seeded alike",
                     "draw random numbers from Genesis's generator, or outside and pass them in")  # fmt: skip
        return
    first, second = trial.base, trial.measure()
    if first.error is not None or second.error is not None:
        yield skipped(name, "backward fails")
        return
    different = differing(trial, second, first, 0.0)
    if different:
        third = trial.measure()
        settled = not differing(trial, third, second, 0.0)
        k = trial.names.index(different[0])
        a, b = second.gradients[k], first.gradients[k]
        c = float((a * b).sum().real / max((abs(b) ** 2).sum(), 1e-300)) if a is not None and b is not None else 0.0
        more = f": it {factor_words(c, (), [])[0]} the second time" if settled and c and equal(a, c * b, 1e-9) else ""
        kind = "state" if settled else "nondeterministic"
        words = f"two equal calls give different gradients of `{different[0]}`{more}"
        yield failed(
            name,
            kind,
            words,
            "keep state on ctx, not on the class" if settled else "backward must not draw random numbers",
        )
        return
    run = trial.run(trial.arrays)
    seeds = trial.seeds()
    again = [run.grads(seeds, retain=True), run.grads(seeds, retain=True)]
    bad = [n for n, a, b in zip(trial.names, *again, strict=True) if not equal(a, b)]
    written = any(
        not np.array_equal(a, b, equal_nan=True)
        for p in first.pulls
        for a, b in zip(p.saved, p.saved_after, strict=False)
    )
    if bad:
        words = f"a second backward through the same graph gives another gradient of `{bad[0]}`"
        if written:
            yield failed(
                name,
                "writes_saved",
                words + ": the first wrote to a saved tensor",
                "use the out-of-place form, or a clone()",
            )
        else:
            yield failed(
                name,
                "nondeterministic",
                words,
                "backward must not draw random numbers: draw them in forward, and save them",
            )
    else:
        yield passed(name)


def check_interleaved(trial: Trial) -> Iterator[Row]:
    """Two calls, then the backward of the first: what it needs must be on its own ctx."""
    name = "two calls at once"
    if trial.base.error is not None:
        yield skipped(name, "backward fails")
        return
    first = trial.run(trial.arrays)
    trial.run([np.roll(x.reshape(-1), 1).reshape(x.shape) * 1.01 for x in trial.arrays])
    measured = trial.pulled(first, trial.seeds())
    different = measured.error is not None or differing(trial, measured, trial.base, 0.0)
    if different:
        yield failed(name, "state", "a second call of forward before backward changes the gradients of the first",
                     "keep what backward needs on ctx, not on the class or in a global")  # fmt: skip
    else:
        yield passed(name)


def check_writes(trial: Trial) -> Iterator[Row]:
    """Forward writes to its inputs only where it returns them; backward writes to nothing that others hold."""
    run = trial.run(trial.arrays)
    bad = None
    for name, x, before in zip(trial.names, run.passed, trial.arrays, strict=True):
        after = x._array
        if np.array_equal(after, before.astype(after.dtype), equal_nan=True) or any(y is x for y in run.outs):
            continue
        how = "and does not return it" if x._version else "through NumPy, where nobody sees it"
        bad = failed(
            "forward's writes",
            "writes_input",
            f"forward writes to `{name}` {how}",
            "work on a clone(), or write with tensor operations and return the input",
        )
    yield bad or passed("forward's writes", "in place, and returned" if trial.calls.through else "")
    yield _backward_writes(trial)


def _backward_writes(trial: Trial) -> Row:
    name, pulls = "backward's writes", trial.base.pulls
    if not pulls:
        return skipped(name, "no Function in it")
    for pull in pulls:
        if any(not np.array_equal(a, b, equal_nan=True) for a, b in zip(pull.given, pull.left, strict=False)):
            return failed(
                name,
                "writes_grad",
                f"{pull.name}.backward writes to the grad_output it is given: hooks and retained gradients see it",
                "use the out-of-place form",
            )
        if any(not np.array_equal(a, b, equal_nan=True) for a, b in zip(pull.saved, pull.saved_after, strict=False)):
            return failed(
                name,
                "writes_saved",
                f"{pull.name}.backward writes to a saved tensor: a second backward gets other values",
                "use the out-of-place form, or a clone()",
            )
    return passed(name)


def check_saved(trial: Trial) -> Iterator[Row]:
    """What forward saved is not changed by forward afterwards."""
    name, owner = "saved values", trial.calls.owner
    if owner is None:
        yield skipped(name, "not a Function")
        return
    with saving_noted(owner) as notes:
        run = trial.run(trial.arrays)
    for slot, (tensor, before) in enumerate(notes):
        if not np.array_equal(tensor._array, before, equal_nan=True):
            which = next(
                (
                    f", `{n}`,"
                    for n, x in zip(trial.names, run.passed, strict=True)
                    if np.shares_memory(x._array, tensor._array)
                ),
                "",
            )
            yield failed(
                name,
                "stale",
                f"forward changes saved tensor {slot}{which} after saving it: backward uses a value that forward did "
                "not",
                "save it after the last write, or save a clone()",
            )
            return
    yield passed(name, "" if notes else "nothing saved")


def check_alone(trial: Trial) -> Iterator[Row]:
    """With one input at a time requiring grad, its gradient is what it is when all do."""
    name = "one input at a time"
    if trial.base.error is not None:
        yield skipped(name, "backward fails")
        return
    if len(trial.names) < 2:
        yield skipped(name, "one input")
        return
    for k, title in enumerate(trial.names):
        measured = trial.measure(wanted=[k])
        if measured.error is not None:
            yield failed(
                name,
                "needs_input_grad",
                f"backward fails when only `{title}` requires grad: {refusal(measured.error)}",
                "return None in the places of the others, see ctx.needs_input_grad",
            )
            return
        if not equal(measured.gradients[k], trial.base.gradients[k], loose(trial)):
            yield failed(
                name,
                "needs_input_grad",
                f"the gradient of `{title}` is another one when only `{title}` requires grad",
                "return gradients by place, None where ctx.needs_input_grad is False",
            )
            return
    yield passed(name)


def check_unused(trial: Trial) -> Iterator[Row]:
    """Outputs that nothing used count as zeros."""
    name = "unused outputs"
    if trial.base.error is not None:
        yield skipped(name, "backward fails")
        return
    if sum(trial.live) < 2:
        yield skipped(name, "one output")
        return
    seeds = trial.seeds()
    for j in [j for j, live in enumerate(trial.live) if live]:
        only = trial.pulled(trial.run(trial.arrays), [s if i == j else None for i, s in enumerate(seeds)])
        zeros = trial.pulled(trial.run(trial.arrays), [s if i == j else 0 * s for i, s in enumerate(seeds)])
        if only.error is not None or differing(trial, only, zeros, 1e-12):
            words = (
                "backward fails" + f" ({refusal(only.error)})"
                if only.error is not None
                else "the gradient is not that of zeros"
            )
            yield failed(
                name,
                "undefined_grad",
                f"when only output {j} is used, {words}",
                "treat a grad_output of None as zeros, or leave set_materialize_grads on",
            )
            return
    yield passed(name)


def check_packed(trial: Trial) -> Iterator[Row]:
    """Saved tensors may go through hooks, as checkpoint and offloading have them do: the gradients are the same."""
    name = "saved elsewhere"
    if trial.base.error is not None or trial.calls.through:
        yield skipped(name, "backward fails" if trial.base.error is not None else "the function writes to its inputs")
        return
    with saved_tensors_hooks(lambda t: t.detach().numpy_view().copy(), wrap):
        run = trial.run(trial.arrays)
    measured = trial.pulled(run, trial.seeds())
    if measured.error is not None:
        yield failed(
            name,
            "packed",
            f"backward fails when saved tensors come from a saved-tensor hook: {refusal(measured.error)}",
            "use what ctx gives back, not the tensors of forward",
        )
        return
    different = differing(trial, measured, trial.base, 0.0)
    if different:
        yield failed(
            name,
            "packed",
            f"the gradient of `{different[0]}` differs when saved tensors come from a saved-tensor hook",
            "keep no state outside of ctx",
        )
    else:
        yield passed(name)


def check_leak(trial: Trial) -> Iterator[Row]:
    """Outputs and graph die with their last name, without the garbage collector."""
    name, was = "leaks", gc.isenabled()
    gc.disable()
    try:
        for backward in (False, True):
            run = trial.run(trial.arrays)
            kept: list[tuple[str, Any]] = [
                (f"output {i}" if len(run.outs) > 1 else "the output", weakref.ref(y)) for i, y in enumerate(run.outs)
            ]
            kept += [("the graph", weakref.ref(node)) for node in run.nodes()]
            if backward and trial.base.error is None:
                run.grads(trial.seeds())
            del run
            alive = [what for what, ref in kept if ref() is not None]
            if alive:
                yield failed(
                    name,
                    "leak",
                    f"{alive[0]} stays alive after its last name is gone: {_why(kept)}",
                    "keep outputs with ctx.save_for_backward only",
                )
                return
        yield passed(name)
    finally:
        if was:
            gc.enable()


def _why(kept: Sequence[tuple[str, Any]]) -> str:
    """Whether ctx holds an output, which makes a cycle, or something else does."""
    objects = [ref() for _, ref in kept]
    outs = [t for t in objects if isinstance(t, Tensor)]
    for node in objects:
        if node is not None and not isinstance(node, Tensor):
            saved = () if node._saved is FREED else node._saved
            for key, value in [*vars(node).items(), *((f"saved tensor {i}", t) for i, t in enumerate(saved))]:
                if any(value is y for y in outs):
                    return f"ctx.{key} holds the output, and the output holds ctx"
    return "something outside ctx holds it"
