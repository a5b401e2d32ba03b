"""How a rule behaves on other inputs: laid out otherwise, of other dtypes, under autocast, of size zero."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from genesis.autograd.checking.calls import refusal, strided
from genesis.autograd.checking.conduct import differing, equal, loose
from genesis.autograd.checking.differences import Array
from genesis.autograd.checking.report import Row, failed, passed, skipped
from genesis.autograd.checking.trial import Measured, Trial
from genesis.base.dtypes import as_np
from genesis.core.graph.autocast import Autocast, restored
from genesis.core.graph.tensor import wrap


def check_layouts(trial: Trial) -> Iterator[Row]:
    """Inputs and grad_outputs that are not contiguous give what contiguous ones give."""
    try:
        run = trial.run(trial.arrays, layout=strided)
    except Exception as error:  # view(), say, must refuse them
        yield skipped("strided inputs", f"the function refuses them: {refusal(error)}")
    else:
        yield _layout_row(
            trial, "strided inputs", trial.pulled(run, trial.seeds()), trial.base, "inputs are not contiguous"
        )
    run = trial.run(trial.arrays)
    # A product with a factor in Fortran order makes a gradient in that order, as later operations of a program may.
    run.outs = [y * wrap(np.ones(y.shape, y._array.dtype, "F")) for y in run.outs]  # type: ignore[operator]
    measured = trial.pulled(run, [np.array(s, order="F") for s in trial.seeds()])
    row = _layout_row(trial, "strided grad_output", measured, trial.base, "grad_output is not contiguous")
    if row.status == "passed":
        spread = [np.broadcast_to(np.asarray(1.0, s.dtype), s.shape) for s in trial.seeds()]
        ones = trial.pulled(trial.run(trial.arrays), [s.copy() for s in spread])
        row = _layout_row(
            trial,
            "strided grad_output",
            trial.pulled(trial.run(trial.arrays), spread),
            ones,
            "grad_output is expanded, as sum().backward() makes it",
        )
    yield row


def _layout_row(trial: Trial, name: str, measured: Measured, expected: Measured, when: str) -> Row:
    repair = "use tensor operations, or contiguous() before touching memory"
    if expected.error is not None:
        return skipped(name, "backward fails")
    if measured.error is not None:
        return failed(name, "layout", f"backward fails when {when}: {refusal(measured.error)}", repair)
    different = differing(trial, measured, expected, loose(trial))
    return (
        failed(name, "layout", f"the gradient of `{different[0]}` is another one when {when}", repair)
        if different
        else passed(name)
    )


def check_dtypes(trial: Trial) -> Iterator[Row]:
    """Gradients have their inputs' dtype and shape, in float64 and in float32, and float32 is accurate."""
    for dtype in (np.float64, np.float32):
        name = np.dtype(dtype).name
        if trial.base.error is not None:
            yield skipped(name, "backward fails")
            continue
        if dtype is np.float64 and trial.dtype is not None:
            yield skipped(name, "the function refuses it")
            continue
        try:
            run = trial.run(trial.arrays, dtype=dtype)
        except Exception as error:  # whatever the function refuses with
            yield skipped(name, f"the function refuses it: {refusal(error)}")
            continue
        yield _dtype_row(trial, name, run, trial.pulled(run, trial.seeds()))


def _dtype_row(trial: Trial, name: str, run: Any, measured: Measured) -> Row:
    if measured.error is not None:
        return failed(
            name,
            "dtype",
            f"backward fails for {name} inputs: {refusal(measured.error)}",
            "make constants in the dtype of the input",
        )
    native = all(
        y._array.dtype.itemsize == x._array.dtype.itemsize
        for y in run.outs
        for x in run.inputs
        if y.is_complex() == x.is_complex()
    )
    for title, x, r in zip(trial.names, run.inputs, measured.returned, strict=True):
        if r is not None and native and r.dtype is not x.dtype and r.is_complex() == x.is_complex():
            return failed(
                name,
                "dtype",
                f"backward returns {r.dtype.name} for `{title}`, which is {x.dtype.name}",
                "compute in the dtype of grad_output",
            )
    for title, g, full, x in zip(trial.names, measured.gradients, trial.base.gradients, run.inputs, strict=True):
        if g is not None and (g.shape != tuple(x.shape) or g.dtype != x._array.dtype):
            return failed(
                name,
                "dtype",
                f"the gradient of `{title}` is {g.dtype}{list(g.shape)}, the input {x._spec()}",
                "return it in the input's shape and dtype",
            )
        if not equal(g, full, 1e-2):
            return failed(
                name,
                "precision",
                f"the {name} gradient of `{title}` differs from the float64 one by more than 1 %",
                "look for a difference of large numbers, or for overflow",
            )
    return passed(name)


def check_autocast(trial: Trial) -> Iterator[Row]:
    """Under autocast backward works, in the inputs' dtypes, and its numbers are those of the low precision."""
    name = "autocast"
    if trial.base.error is not None:
        yield skipped(name, "backward fails")
        return
    try:
        with restored(Autocast(as_np("bfloat16"), None)):
            run = trial.run(trial.arrays, dtype=np.float32)
    except Exception as error:  # whatever the function refuses with
        yield skipped(name, f"the function refuses it: {refusal(error)}")
        return
    measured = trial.pulled(run, trial.seeds())
    if measured.error is not None:
        yield failed(
            name,
            "autocast",
            f"backward fails under autocast: {refusal(measured.error)}",
            "set amp_policy on the class, or compute in the dtype of grad_output",
        )
        return
    for title, g, full, x in zip(trial.names, measured.gradients, trial.base.gradients, run.inputs, strict=True):
        if g is not None and g.dtype != x._array.dtype:
            yield failed(
                name,
                "autocast",
                f"under autocast the gradient of `{title}` is {g.dtype}, the input {x._array.dtype}",
                "set amp_policy on the class",
            )
            return
        if g is None or full is None or not np.isfinite(full).all():
            continue
        away, size = float(np.linalg.norm(np.ravel(g - full))), float(np.linalg.norm(np.ravel(full)))
        if not away <= 0.2 * size + 0.05:
            yield failed(
                name,
                "autocast",
                f"under autocast the gradient of `{title}` is off by {away / (size or 1):.0%}",
                "set amp_policy = 'float32' on the class",
            )
            return
    yield passed(name)


def check_zero_size(trial: Trial) -> Iterator[Row]:
    """Where forward takes a dimension of size 0, backward does too."""
    name, tried = "zero-size", []
    if trial.base.error is not None:
        yield skipped(name, "backward fails")
        return
    for size in dict.fromkeys(n for x in trial.arrays for n in x.shape if n):
        shapes = [tuple(0 if n == size else n for n in x.shape) for x in trial.arrays]
        arrays = [np.resize(x, s) for x, s in zip(trial.arrays, shapes, strict=True)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy warns of means of nothing
            row = _zero_row(trial, name, arrays)
        if row is not None:
            tried.append(row)
    bad = next((r for r in tried if r.status == "failed"), None)
    yield bad or (
        tried[0]
        if tried
        else skipped(name, "forward refuses it" if any(x.shape for x in trial.arrays) else "no dimensions")
    )


def _zero_row(trial: Trial, name: str, arrays: Sequence[Array]) -> Row | None:
    try:
        run = trial.run(arrays)
    except Exception:  # whatever the function refuses with
        return None
    if any(not np.isfinite(y.detach().numpy_view()).all() for y in run.outs):
        return None  # a mean of nothing
    which = ", ".join(f"{n} {list(x.shape)}" for n, x in zip(trial.names, arrays, strict=True))
    measured = trial.pulled(run, [np.ones(y.shape, y._array.dtype) for y in run.outs])
    if measured.error is not None:
        return failed(
            name,
            "zero_size",
            f"forward takes {which}, backward fails: {refusal(measured.error)}",
            "let backward take what forward takes",
        )
    if all(y.numel() == 0 for y in run.outs) and any(g is not None and np.any(g != 0) for g in measured.gradients):
        return failed(
            name,
            "zero_size",
            f"with {which} there is no output, but a gradient is not zero",
            "start from zeros, not from uninitialised memory",
        )
    return passed(name, which)
