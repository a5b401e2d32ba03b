"""`verify`: test a differentiation rule with one call, and say in words what is wrong.

    report = genesis.autograd.verify(Linear, x, weight, bias)
    print(report)          # a row for each check
    assert report          # true when nothing failed

The checks of the numbers are here, of the second order in `second.py`, of the conduct in `conduct.py`; the words come
from `diagnose.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from genesis.autograd.checking import conduct, in_transforms
from genesis.autograd.checking.calls import Calls, refusal
from genesis.autograd.checking.differences import SINGLE, Array
from genesis.autograd.checking.evidence import Diagnosis
from genesis.autograd.checking.inputs import check_autocast, check_dtypes, check_layouts, check_zero_size
from genesis.autograd.checking.report import Report, Row, failed, passed, skipped
from genesis.autograd.checking.second import check_second_order
from genesis.autograd.checking.trial import Measured, Trial
from genesis.base.errors import ArgumentError, ArgumentValueError, message
from genesis.core.call.refusal import explain_all


def verify(
    function: Any, *args: Any, raise_exception: bool = False, seed: int = 0, checks: Any = None, **kwargs: Any
) -> Report:
    """Test a differentiation rule: its numbers to second order, and how it behaves.

    Gradients are compared with central differences in float64, along random directions of inputs and outputs; where
    they disagree, element by element. Kinks are recognised, and inputs moved off them. Then: other values, linearity in
    grad_output, second order, dtypes, layouts, zero-size and broadcast shapes, writes, leaks, state,
    ``needs_input_grad``, forward mode where there is a ``jvp``, batches.

    Args:
        function: a `Function` class, its ``apply``, or any differentiable function
        args, kwargs: its arguments, containers included; the tensors that require grad are checked, all floating ones
        if none does
        raise_exception: raise where a check fails, instead of returning the report
        seed: of the random directions and weights
        checks: names of the checks to run, of `CHECKS`; all by default

    Returns:
        A `Report`: true when nothing failed, a table when printed

    Raises:
        VerifyError: a check failed, with ``raise_exception=True``; the message is the table
        TypeError: no argument is a floating tensor, or the function returns none

    >>> import genesis
    >>> class Square(genesis.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return x * g
    >>> report = genesis.autograd.verify(Square, genesis.tensor([1.0, -2.0, 3.0]), checks=["gradient"])
    >>> print(report)
    verify Square: 1 of 1 checks failed (seed 0)
      FAILED   gradient of `x`  the gradient of `x` is half of what it should be
                                try: look for a missing factor 2
    """
    names = list(CHECKS) if checks is None else [checks] if isinstance(checks, str) else list(checks)
    for name in names:
        if name not in CHECKS:
            raise ArgumentValueError(message("verify", f"no check {name!r}", hint=f"one of {', '.join(CHECKS)}"))
    calls = Calls(function, args, kwargs)
    if not calls.positions:
        raise ArgumentError(
            message(
                "verify", "no argument is a floating tensor", hint="pass the tensors to differentiate with respect to"
            )
        )
    with calls.random_kept(), np.errstate(all="ignore"):
        rows = _run(Trial(calls, seed), names)
    report = Report(calls.name, seed, rows)
    return report.raise_() if raise_exception else report


def _run(trial: Trial, names: list[str]) -> list[Row]:
    rows: list[Row] = []
    for name in names:
        try:
            checked = list(CHECKS[name](trial))
        except Exception as error:  # a rule can fail in any way, at any call
            checked = [failed(name, "error", f"a call of the function fails: {refusal(error)}")]
        rows += checked
        if any(row.kind in ("nondeterministic", "state") for row in checked) and name == "repeats":
            return [*rows, skipped("everything else", "there is no one answer to compare with")]
    return rows


# ---- the numbers


def check_gradient(trial: Trial) -> Iterator[Row]:
    """The gradient of each input against differences; the point is moved off kinks that this finds."""
    if not any(trial.live):
        trial.wrong.update(range(len(trial.names)))
        yield failed(
            "gradient",
            "detached",
            "no output requires grad: the result is detached, or marked as non-differentiable",
            "return the tensor that forward computed, and mark nothing",
        )
        return
    noted: dict[int, int] = {}
    for _ in range(3):
        measured = [_measured(trial, k) for k in range(len(trial.names))]
        verdicts = [trial.judge(k, trial.arrays, m, trial.weights) for k, m in enumerate(measured)]
        at_kinks = {k: v.kinks for k, v in enumerate(verdicts) if v.kinks}
        for k, v in enumerate(verdicts):
            noted[k] = noted.get(k, 0) + len(v.kinks)
        if not at_kinks:
            break
        if any(not v.agrees for v in verdicts):
            break
        trial.move_to([_nudged(trial, x, at_kinks.get(k, [])) for k, x in enumerate(trial.arrays)])
    for k, (title, verdict) in enumerate(zip(trial.names, verdicts, strict=True)):
        name = f"gradient of `{title}`"
        kinks = f"{noted[k]} kink{'s' if noted[k] > 1 else ''}" if noted[k] else ""
        if not verdict.known:
            yield skipped(name, "the function gives nan or inf here")
        elif verdict.agrees:
            yield passed(name, f"correct except at {kinks}, moved off" if kinks else "")
        else:
            trial.wrong.add(k)
            assert verdict.diagnosis is not None
            yield _failure(name, verdict.diagnosis, f" (and there are {kinks})" if kinks else "", measured[k].error)


def _measured(trial: Trial, k: int) -> Measured:
    """The gradients at the point; where backward fails for all inputs together, of one input alone if that works."""
    if trial.base.error is None:
        return trial.base
    alone = trial.measure(wanted=[k])
    return alone if alone.error is None else trial.base


def _failure(name: str, d: Diagnosis, more: str = "", error: Exception | None = None) -> Row:
    # the engine found it before any number was wrong
    if error is not None and "wrote to a tensor that forward saved" in str(error):
        return failed(name, "writes_saved", f"{d.words} [{refusal(error)}]", "clone() it first")
    why = f"{d.words}{more}" + (f" [{refusal(error)}]" if error is not None else "")
    return failed(name, d.kind, why, d.repair)


def _nudged(trial: Trial, x: Array, elements: list[int]) -> Array:
    """Away from kinks, by some hundredths, each element by another step."""
    out = x.copy()
    flat = out.reshape(-1)
    for i in elements:
        flat[i] += 0.03 * (1 + abs(flat[i])) * trial.rng.uniform(0.5, 1.5) * trial.rng.choice([-1.0, 1.0])
    return out


_VARIANTS = (
    "in other sizes (0.02 to 20 times)",
    "with the opposite sign",
    "ten times as large",
    "near zero (0.02 times)",
)


def _variants(trial: Trial, x: Array) -> Iterator[tuple[str, Array]]:
    factors = trial.rng.permutation(np.resize([0.02, 1.0, 5.0, 20.0], x.size)).reshape(x.shape)
    yield from zip(_VARIANTS, (x * factors, -x, 10 * x, 0.02 * x), strict=True)


def check_values(trial: Trial) -> Iterator[Row]:
    """The same at other values of each input: larger, smaller, of the opposite sign. Where forward gives nan, nothing
    is said.
    """
    name, tried = "other values", 0
    if trial.precision is SINGLE:
        yield skipped(name, "the function computes in float32")
        return
    for k, title in enumerate(trial.names):
        if k in trial.wrong or trial.base.error is not None:
            continue
        for how, moved in _variants(trial, trial.arrays[k]):
            arrays = [moved if j == k else x for j, x in enumerate(trial.arrays)]
            try:
                if not np.isfinite(trial.values(arrays)).all():
                    continue
            except Exception:  # the function refuses these values
                continue
            tried += 1
            measured = trial.measure(arrays)
            if measured.error is not None:
                yield failed(name, "error", f"with `{title}` {how}, backward fails: {refusal(measured.error)}")
                return
            # every input's gradient at the first of them: it may come from another call than the last
            for j in range(len(trial.names)) if how == _VARIANTS[0] else [k]:
                verdict = trial.judge(j, arrays, measured, trial.weights)
                if j not in trial.wrong and not verdict.agrees and verdict.diagnosis is not None:
                    yield _at_other_values(trial, name, j, f"with `{title}` {how}", measured, verdict.diagnosis)
                    return
    yield (
        passed(name)
        if tried
        else skipped(name, "the gradient is wrong already" if trial.wrong else "forward gives nan or refuses")
    )


def _at_other_values(trial: Trial, name: str, k: int, how: str, measured: Measured, d: Diagnosis) -> Row:
    if conduct.equal(measured.gradients[k], trial.base.gradients[k], 1e-12) and np.any(trial.base.gradients[k]):
        return failed(
            name,
            "state",
            f"{how}, the gradient of `{trial.names[k]}` is that of an earlier call",
            "keep what backward needs on ctx, not on the class",
        )
    if d.kind == "region":
        return failed(name, "region", f"{how}, {d.words}", d.repair)
    return failed(
        name,
        "region",
        f"right at the given values; {how}, {d.words}",
        "look at the condition in backward: it must be the one of forward",
    )


def check_linear(trial: Trial) -> Iterator[Row]:
    """``backward(0) = 0``, ``backward(-100 g) = -100 backward(g)``, ``backward(g + h) = backward(g) + backward(h)``."""
    name, rtol = "linear in grad_output", 1e-3 if trial.precision is SINGLE else 1e-9
    if trial.base.error is not None:
        yield skipped(name, "backward fails")
        return
    w, h = trial.weights, trial.draw()
    zero, scaled, other, both = (trial.measure(weights=v) for v in (0 * w, -100 * w, h, w + h))
    for k, title in enumerate(trial.names):
        at = [
            np.zeros_like(trial.arrays[k]) if m.gradients[k] is None else m.gradients[k]
            for m in (zero, trial.base, scaled, other, both)
        ]
        nothing, g, large, gh, total = at
        if np.any(nothing):
            yield failed(
                name,
                "offset",
                f"the gradient of `{title}` is not zero when grad_output is",
                "leave out the term that does not contain grad_output",
            )
            return
        if conduct.equal(large, g, 1e-9) and np.any(g):
            yield failed(
                name, "ignores_grad_output", f"the gradient of `{title}` ignores grad_output", "multiply by grad_output"
            )
            return
        spread = (conduct.largest(g) + conduct.largest(gh)) * rtol
        if not conduct.equal(large, -100 * g, rtol) or not np.allclose(total, g + gh, rtol, spread, equal_nan=True):
            yield failed(
                name,
                "nonlinear",
                f"the gradient of `{title}` is not linear in grad_output (it is clipped, rectified, or a power)",
                "multiply grad_output by the derivative, and do nothing else to it",
            )
            return
    yield passed(name)


def check_broadcast(trial: Trial) -> Iterator[Row]:
    """Where forward broadcasts an input of size 1, its gradient is summed back."""
    name, done, refused = "broadcast", [], ""
    if len(trial.names) < 2:
        yield skipped(name, "one input")
        return
    before = sorted(trial.shapes)
    for k, title in enumerate(trial.names):
        for axis, n in enumerate(trial.arrays[k].shape):
            if n < 2 or trial.base.error is not None or k in trial.wrong:
                continue
            arrays = [x.take([0], axis) if j == k else x for j, x in enumerate(trial.arrays)]
            try:
                run = trial.run(arrays)
            except Exception:  # the function refuses this shape
                continue
            if sorted(tuple(y.shape) for y in run.outs) != before:
                continue
            measured = trial.pulled(run, trial.seeds())
            if measured.error is not None:
                refused = f"backward refuses it: {refusal(measured.error)}"
                continue
            verdict = trial.judge(k, arrays, measured, trial.weights)
            if not verdict.agrees and verdict.diagnosis is not None:
                yield _failure(name, verdict.diagnosis, f" when it is broadcast from {list(arrays[k].shape)}")
                return
            done.append(f"{title} {list(arrays[k].shape)}")
    yield passed(name, ", ".join(done[:3])) if done else skipped(name, refused or "forward refuses it")


CHECKS: dict[str, Callable[[Trial], Iterator[Row]]] = {
    "repeats": conduct.check_repeats,
    "gradient": check_gradient,
    "values": check_values,
    "linear": check_linear,
    "second_order": check_second_order,
    "dtypes": check_dtypes,
    "layouts": check_layouts,
    "zero_size": check_zero_size,
    "broadcast": check_broadcast,
    "alone": conduct.check_alone,
    "unused": conduct.check_unused,
    "interleaved": conduct.check_interleaved,
    "saved": conduct.check_saved,
    "writes": conduct.check_writes,
    "leaks": conduct.check_leak,
    "packed": conduct.check_packed,
    "autocast": check_autocast,
    "forward_mode": in_transforms.check_forward_mode,
    "vmap": in_transforms.check_batches,
}


explain_all(globals(), "verify")
