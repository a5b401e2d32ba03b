"""Hypotheses about the numbers of a gradient: factors, conjugates, terms, regions."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from genesis.autograd.checking.differences import Array
from genesis.autograd.checking.evidence import (
    Diagnosis,
    Evidence,
    factor_words,
    index_words,
    ratio,
    region_words,
    same,
    wrong_elements,
)
from genesis.autograd.checking.wrong_places import guarded


def factor(e: Evidence) -> Diagnosis | None:
    c = ratio(e.analytic, e.numeric)
    if c is None:
        return None
    words, kind, repair = factor_words(c, e.x.shape, e.shapes)
    return Diagnosis(kind, f"the gradient of `{e.name}` {words}", repair)


def conjugate(e: Evidence) -> Diagnosis | None:
    if e.analytic is None or e.numeric.dtype.kind != "c":
        return None
    if same(e.analytic.conj(), e.numeric) or same(e.analytic, guarded(e, np.conj)):
        return Diagnosis(
            "conjugate",
            f"the gradient of `{e.name}` is missing a conjugate",
            "multiply grad_output by the conjugate of the derivative, .conj()",
        )
    for name, v, _ in e.inputs:  # a product of several factors, one of them not conjugated
        if v.dtype.kind == "c" and same(e.analytic / v * v.conj(), e.numeric):
            return Diagnosis(
                "conjugate", f"the gradient of `{e.name}` is missing a conjugate: of `{name}`", f"use {name}.conj()"
            )
    c = (e.analytic * e.numeric.conj()).sum() / max(float((abs(e.numeric) ** 2).sum()), 1e-300)
    if np.isfinite(c) and abs(c) > 1e-12 and same(e.analytic, c * e.numeric):
        if abs(c.imag) < 1e-6:
            words, kind, repair = factor_words(float(c.real), e.x.shape, e.shapes)
            return Diagnosis(kind, f"the gradient of `{e.name}` {words}", repair)
        return Diagnosis(
            "factor", f"the gradient of `{e.name}` is off by the complex factor {c:.4g}", "look at the conjugates"
        )
    return None


def unchanged(e: Evidence) -> Diagnosis | None:
    """grad_output handed on without the derivative."""
    for s in e.seeds(e.weights):
        forms = [s.reshape(e.x.shape)] if s.size == e.x.size else []
        with suppress(ValueError):  # grad_output need not fit
            forms.append(np.broadcast_to(s, e.x.shape))
        if any(same(e.analytic, f) for f in forms):
            factor = _explained(e, forms[0])
            more = f", which is {factor}," if factor else ""
            return Diagnosis(
                "chain",
                f"the gradient of `{e.name}` is grad_output unchanged: the factor f'({e.name}){more} is missing",
                "multiply grad_output by the derivative",
            )
    return None


def _explained(e: Evidence, a: Array) -> str | None:
    """The expression of inputs and outputs that turns ``a`` into the numerical gradient by multiplication."""
    candidates = [(f"`{name}`", v) for name, v, _ in e.inputs]
    candidates += [("the output" if len(e.outs) == 1 else f"output {i}", y) for i, y in enumerate(e.outs)]
    for name, v in candidates:
        with np.errstate(all="ignore"):
            forms = [
                (name, v),
                (f"1 / {name}", 1 / v),
                (f"1 - {name}", 1 - v),
                (f"{name} ** 2", v * v),
                (f"1 / {name} ** 2", 1 / v**2),
                (f"1 - {name} ** 2", 1 - v * v),
                (f"{name} * (1 - {name})", v * (1 - v)),
                (f"cos({name})", np.cos(v)),
                (f"exp({name})", np.exp(v)),
            ]
            for words, factor in forms:
                for c, front in ((1, ""), (-1, "-"), (2, "2 "), (0.5, "1/2 ")):
                    try:
                        if same(a * factor * c, e.numeric):
                            return front + words
                    except ValueError:
                        break
    return None


def lost_factor(e: Evidence) -> Diagnosis | None:
    factor = _explained(e, e.analytic) if e.analytic is not None else None
    if factor is None:
        return None
    return Diagnosis(
        "missing_factor", f"the gradient of `{e.name}` is missing the factor {factor}", f"multiply it by {factor}"
    )


def plain_region(e: Evidence) -> Diagnosis | None:
    """Zero, or wrong by one factor, where the input meets a condition."""
    diagnosis = region(e)
    return diagnosis if diagnosis is not None and diagnosis.kind == "region" and "there)" in diagnosis.words else None


def region(e: Evidence) -> Diagnosis | None:
    """Right in one part of the input and wrong in another: say which part, and what is there."""
    a, g = e.analytic, e.numeric
    if a is None:
        return None
    wrong = wrong_elements(a, g)
    known = ~np.isnan(g) & ((np.abs(g) > 1e-9 * np.nanmax(np.abs(g), initial=0.0)) | wrong)
    if not wrong.any() or wrong.sum() == known.sum():
        return None
    where = index_words(wrong, known)
    if e.x.dtype.kind != "c":
        where = region_words(e.name, e.x[known], wrong[known]) or where
    inside, repair = _inside(a[wrong], g[wrong]), "look at the condition in backward: it must be the one of forward"
    if where is None:
        return Diagnosis(
            "some", f"the gradient of `{e.name}` is wrong at {wrong.sum()} of {known.sum()} elements{inside}", repair
        )
    return Diagnosis("region", f"the gradient of `{e.name}` is wrong only {where}{inside}", repair)


def _inside(a: Array, g: Array) -> str:
    """What the gradient is in the part where it is wrong."""
    if not np.any(a):
        return " (it is zero there)"
    c = ratio(a, g) if a.size > 1 else float((a / g).real[0]) if a.dtype.kind != "c" and g[0] else None
    return f" (it {factor_words(c, (), [])[0]} there)" if c else ""


def term(e: Evidence) -> Diagnosis | None:
    """What is missing is the same all along an axis, as the term of a mean or of a normalisation is."""
    if e.analytic is None:
        return None
    d = e.numeric - e.analytic
    top = np.nanmax(np.abs(d), initial=0.0)
    for axis in range(d.ndim):
        if d.shape[axis] > 1 and np.allclose(d, d.mean(axis=axis, keepdims=True), 1e-4, 1e-4 * top):
            return Diagnosis(
                "missing_term",
                f"the gradient of `{e.name}` is missing a term that is constant along axis {axis}",
                f"subtract the mean (or add the sum) over axis {axis}",
            )
    for i, y in enumerate(e.outs):
        if y.shape == d.shape:
            with np.errstate(all="ignore"):
                r = d / y
            for axis in range(d.ndim):
                if d.shape[axis] > 1 and np.allclose(r, r.mean(axis=axis, keepdims=True), 1e-4, 1e-9):
                    return Diagnosis(
                        "missing_term",
                        f"the gradient of `{e.name}` is missing a term: output {i} times a sum over axis {axis}",
                        f"subtract y * (g * y).sum({axis})",
                    )
    return None


def unexplained(e: Evidence) -> Diagnosis:
    a, g = e.analytic, e.numeric
    if a is None:
        return Diagnosis("error", f"the gradient of `{e.name}` could not be computed", "see the error of backward")
    wrong = wrong_elements(a, g)
    with np.errstate(all="ignore"):
        d = np.where(np.isnan(g), 0, np.abs(a - g))
    worst = np.unravel_index(int(np.argmax(d)), d.shape) if d.size else ()
    index = list(map(int, worst))
    if np.isnan(a).any():
        return Diagnosis(
            "nan",
            f"the gradient of `{e.name}` is nan at {int(np.isnan(a).sum())} elements",
            "look for 0/0 or inf - inf in backward",
        )
    return Diagnosis(
        "unknown",
        f"the gradient of `{e.name}` is wrong at {int(wrong.sum())} of {int((~np.isnan(g)).sum())} elements, "
        f"most at {index}: backward gives {a[worst]:.6g}, differences {g[worst]:.6g}",
        f"check the rule of `{e.name}`",
    )


def spurious(e: Evidence) -> Diagnosis | None:
    if e.analytic is None or np.nanmax(np.abs(e.numeric), initial=0.0) > 1e-9 or not np.any(np.abs(e.analytic) > 1e-9):
        return None
    return Diagnosis(
        "spurious",
        f"the gradient of `{e.name}` is not zero, but the outputs do not depend on it",
        "return None or zeros for it",
    )
