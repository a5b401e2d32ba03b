"""Does `genesis.autograd.verify` find bugs, name them, and leave right rules alone? Bugs are seeded into the rules of
`rules.py`.

    python benchmarks/mutations.py [--write] [--jobs 2] [--only PATTERN] [--verbose]

A *pattern* is a mistake that people make in rules, applied to every rule that it can be applied to: it changes what
forward saves or what backward returns. Where it changes nothing (the transpose of a symmetric gradient), it is not
counted. A pattern is *caught* if verify fails at least nine in ten of the rules that have it; the repair is *named* if
the report has a row of the pattern's kind.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from rules import RULES, Good

import genesis
from genesis import Function, Tensor
from genesis.autograd import grad, verify

Mutate = Callable[[Good], "type[Function] | None"]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A mistake: how to make it, and the kinds of diagnosis that name its repair."""

    name: str
    kinds: frozenset[str]
    mutate: Mutate
    silent: bool  # whether it shows in values only, so that it counts only where it changes them


PATTERNS: list[Pattern] = []


def pattern(name: str, *kinds: str, silent: bool = True) -> Callable[[Mutate], Mutate]:
    def enter(mutate: Mutate) -> Mutate:
        PATTERNS.append(Pattern(name, frozenset(kinds), mutate, silent))
        return mutate

    return enter


def rewritten(good: Good, backward: Any = None, forward: Any = None) -> type[Function]:
    """The rule with ``backward(ctx, gs) -> gradients`` or ``forward(ctx, args) -> result`` in place of its own."""
    members: dict[str, Any] = {}
    if backward is not None:
        members["backward"] = staticmethod(wraps(good.rule.backward)(lambda ctx, *gs: backward(ctx, list(gs))))
    if forward is not None:
        members["forward"] = staticmethod(wraps(good.rule.forward)(lambda ctx, *args: forward(ctx, args)))
    return type(good.name, (good.rule,), members)


def gradients(good: Good, ctx: Any, gs: Any) -> list[Any]:
    found = good.rule.backward(ctx, *gs)
    return list(found) if isinstance(found, tuple) else [found]


def first_edited(
    name: str, *kinds: str, when: Callable[[Any], bool] = lambda r: True
) -> Callable[[Callable[[Any], Any]], Any]:
    """A pattern that changes the first gradient that backward returns."""

    def enter(edit: Callable[[Any], Any]) -> Any:
        def mutate(good: Good) -> type[Function] | None:
            sample = next(x for x in good.make() if floating(x))
            if not when(sample):
                return None

            def backward(ctx: Any, gs: Any) -> Any:
                found = gradients(good, ctx, gs)
                k = next(i for i, r in enumerate(found) if r is not None)
                found[k] = edit(found[k])
                return tuple(found)

            return rewritten(good, backward)

        pattern(name, *kinds)(mutate)
        return edit

    return enter


def seed_edited(
    name: str, *kinds: str, when: Callable[[Any], bool] = lambda y: True
) -> Callable[[Callable[[Any], Any]], Any]:
    """A pattern that changes grad_output before the rule sees it."""

    def enter(edit: Callable[[Any], Any]) -> Any:
        def mutate(good: Good) -> type[Function] | None:
            if not all(when(y) for y in outputs(good.rule, good.make())):
                return None
            return rewritten(good, lambda ctx, gs: tuple(gradients(good, ctx, [edit(g) for g in gs])))

        pattern(name, *kinds)(mutate)
        return edit

    return enter


def floating(x: Any) -> bool:
    return isinstance(x, Tensor) and (x.is_floating_point() or x.is_complex())


def count(good: Good) -> int:
    return sum(floating(x) for x in good.make())


def outputs(rule: type[Function], args: Any) -> list[Tensor]:
    result = rule.apply(*[x.clone() if isinstance(x, Tensor) else x for x in args])
    return list(result) if isinstance(result, tuple) else [result]


def real(x: Any) -> bool:
    return not x.is_complex()


# ---- wrong factors

first_edited("twice too large", "factor")(lambda r: 2 * r)
first_edited("a factor 2 forgotten", "factor")(lambda r: r / 2)
first_edited("wrong sign", "sign")(lambda r: -r)
first_edited("1 % too large", "factor")(lambda r: r * 1.01)
first_edited("mean instead of sum", "mean", when=lambda x: x.ndim > 0 and x.shape[0] > 2)(lambda r: r / r.shape[0])
first_edited("sum instead of mean", "sum", when=lambda x: x.ndim > 0 and x.shape[0] > 2)(lambda r: r * r.shape[0])
first_edited("off by a constant", "offset")(lambda r: r + 0.1)
first_edited("zeros", "zero")(lambda r: r * 0)
first_edited("clipped gradient", "nonlinear", when=real)(lambda r: r.clamp(-0.5, 0.5))


# ---- wrong places and shapes

first_edited("transposed", "transposed", when=lambda x: x.ndim == 2)(lambda r: r.t())
first_edited("reversed", "reversed", "rolled", when=lambda x: x.ndim > 0)(lambda r: r.flip(-1))
first_edited("off by one", "rolled", "reversed", when=lambda x: x.ndim > 0)(lambda r: r.roll(1, -1))
first_edited("summed over an axis of the input", "wrong_axis", when=lambda x: x.ndim > 0)(
    lambda r: r.sum(0, keepdim=True).expand(r.shape)
)
first_edited("missing sum over an extra axis", "missing_sum")(lambda r: genesis.stack([0.25 * r, 0.75 * r]))
first_edited("a term left out", "missing_term", when=lambda x: x.ndim > 0)(lambda r: r + r.mean(-1, keepdim=True))
first_edited("last element left out", "region", "missing_sum", when=lambda x: x.ndim > 0 and x.shape[-1] > 1)(
    lambda r: genesis.cat([r[..., :-1], 0 * r[..., -1:]], -1)
)


@pattern("two gradients swapped", "swapped")
def _(good: Good) -> Any:
    if count(good) < 2:
        return None

    def backward(ctx: Any, gs: Any) -> Any:
        found = gradients(good, ctx, gs)
        a, b = [i for i, r in enumerate(found) if r is not None][:2]
        found[a], found[b] = found[b], found[a]
        return tuple(found)

    return rewritten(good, backward)


@pattern("one place late", "misplaced", "swapped")
def _(good: Good) -> Any:
    if len(good.make()) < 2:
        return None

    def backward(ctx: Any, gs: Any) -> Any:
        found = gradients(good, ctx, gs)
        return (found[-1], *found[:-1])

    return rewritten(good, backward)


@pattern("None for an input", "none")
def _(good: Good) -> Any:
    def backward(ctx: Any, gs: Any) -> Any:
        found = gradients(good, ctx, gs)
        found[next(i for i, r in enumerate(found) if r is not None)] = None
        return tuple(found)

    return rewritten(good, backward)


# ---- grad_output and the chain rule

seed_edited("ignores grad_output", "ignores_grad_output")(lambda g: genesis.ones_like(g))
seed_edited("absolute value of grad_output", "nonlinear", when=real)(lambda g: g.abs())
seed_edited("clips grad_output", "nonlinear", when=real)(lambda g: g.clamp(-1, 1))
seed_edited("grad_output squared", "nonlinear")(lambda g: g * g)
seed_edited("wrong axis of grad_output", "transposed", when=lambda y: y.ndim == 2 and y.shape[0] == y.shape[1])(
    lambda g: g.t()
)
seed_edited("only the first row is summed", "missing_sum", when=lambda y: y.ndim > 0 and y.shape[0] > 1)(
    lambda g: genesis.cat([g[:1], 0 * g[1:]])
)


@pattern("chain factor lost", "chain")
def _(good: Good) -> Any:
    x, y = next(a for a in good.make() if floating(a)), outputs(good.rule, good.make())[0]
    if x.is_complex() != y.is_complex() or (x.shape != y.shape and y.ndim):
        return None

    def backward(ctx: Any, gs: Any) -> Any:
        found = gradients(good, ctx, gs)
        k = next(i for i, r in enumerate(found) if r is not None)
        found[k] = gs[0].expand(found[k].shape).clone()
        return tuple(found)

    return rewritten(good, backward)


@pattern("a factor x too many", "missing_factor")
def _(good: Good) -> Any:
    return _with_input(good, lambda r, x: r * x)


def _with_input(good: Good, edit: Callable[[Any, Any], Any]) -> type[Function]:
    """A bug that looks at the first input."""

    def forward(ctx: Any, args: Any) -> Any:
        ctx.seen = next(a for a in args if floating(a)).detach().clone()
        return good.rule.forward(ctx, *args)

    def backward(ctx: Any, gs: Any) -> Any:
        found = gradients(good, ctx, gs)
        k = next(i for i, r in enumerate(found) if r is not None)
        found[k] = edit(found[k], ctx.seen)
        return tuple(found)

    return rewritten(good, backward, forward)


@pattern("conjugate missing", "conjugate")
def _(good: Good) -> Any:
    if not any(x.is_complex() for x in good.make() if isinstance(x, Tensor)):
        return None

    def backward(ctx: Any, gs: Any) -> Any:
        before = ctx._saved
        ctx._saved = tuple(s.conj() for s in before)
        try:
            return tuple(gradients(good, ctx, gs))
        finally:
            ctx._saved = before

    return rewritten(good, backward)


# ---- wrong in a part of the range


@pattern("wrong for negative values", "region")
def _(good: Good) -> Any:
    return (
        _with_input(good, lambda r, x: r * genesis.where(x < 0, 2.0, 1.0).to(r.dtype)) if _real_inputs(good) else None
    )


@pattern("zero for large values", "region")
def _(good: Good) -> Any:
    return _with_input(good, lambda r, x: r * (x.abs() < 5).to(r.dtype)) if _real_inputs(good) else None


@pattern("zero for tiny values", "region")
def _(good: Good) -> Any:
    return _with_input(good, lambda r, x: r * (x.abs() > 0.05).to(r.dtype)) if _real_inputs(good) else None


def _real_inputs(good: Good) -> bool:
    return all(real(x) for x in good.make() if isinstance(x, Tensor))


# ---- what is saved


@pattern("saved value changed afterwards", "stale")
def _(good: Good) -> Any:
    def forward(ctx: Any, args: Any) -> Any:
        result = good.rule.forward(ctx, *args)
        saved, ctx._saved = ctx._saved, ()
        copies = [s.clone() if isinstance(s, Tensor) else s for s in saved]
        ctx.save_for_backward(*copies)
        for s in copies:
            if floating(s):
                s.mul_(1.5)
                break
        return result

    return rewritten(good, forward=forward) if _saves(good) else None


def _saved(good: Good) -> list[Any]:
    """What the rule saves, for one call."""
    kept: list[Any] = []

    def forward(ctx: Any, args: Any) -> Any:
        result = good.rule.forward(ctx, *args)
        kept.extend(ctx._saved)
        return result

    outputs(rewritten(good, forward=forward), good.make())
    return kept


def _saves(good: Good) -> bool:
    return any(floating(s) for s in _saved(good))


def _exchange_saved(good: Good, wanted: Callable[[Any, Any, Any], Any]) -> type[Function]:
    def forward(ctx: Any, args: Any) -> Any:
        result = good.rule.forward(ctx, *args)
        saved, ctx._saved = ctx._saved, ()
        ctx.save_for_backward(*[wanted(s, args, result) for s in saved])
        return result

    return rewritten(good, forward=forward)


@pattern("output saved instead of input", "saved_output")
def _(good: Good) -> Any:
    def wanted(s: Any, args: Any, result: Any) -> Any:
        alike = (
            isinstance(result, Tensor) and isinstance(s, Tensor) and s.shape == result.shape and s.dtype == result.dtype
        )
        return result if alike and any(s is a for a in args) else s

    return _exchange_saved(good, wanted) if _saves(good) else None


@pattern("input saved instead of output", "saved_output")
def _(good: Good) -> Any:
    def wanted(s: Any, args: Any, result: Any) -> Any:
        alike = [a for a in args if floating(a) and isinstance(s, Tensor) and a.shape == s.shape]
        return alike[0] if s is result and alike else s

    return _exchange_saved(good, wanted) if _saves(good) else None


@pattern("keeps what it needs on the class", "state", silent=False)
def _(good: Good) -> Any:
    if not _saves(good):
        return None
    box: list[Any] = []

    def forward(ctx: Any, args: Any) -> Any:
        result = good.rule.forward(ctx, *args)
        box[:] = [tuple(s.clone() if isinstance(s, Tensor) else s for s in ctx._saved)]
        return result

    def backward(ctx: Any, gs: Any) -> Any:
        ctx._saved = box[0]
        return tuple(gradients(good, ctx, gs))

    return rewritten(good, backward, forward)


@pattern("uses the values of the first call", "state", silent=False)
def _(good: Good) -> Any:
    if not _saves(good):
        return None
    box: list[Any] = []

    def forward(ctx: Any, args: Any) -> Any:
        result = good.rule.forward(ctx, *args)
        if not box:
            box.append(tuple(s.clone() if isinstance(s, Tensor) else s for s in ctx._saved))
        return result

    def backward(ctx: Any, gs: Any) -> Any:
        if all(getattr(a, "shape", 0) == getattr(b, "shape", 0) for a, b in zip(box[0], ctx._saved, strict=True)):
            ctx._saved = box[0]
        return tuple(gradients(good, ctx, gs))

    return rewritten(good, backward, forward)


@pattern("doubles at the second call", "state", silent=False)
def _(good: Good) -> Any:
    calls = [0]

    def backward(ctx: Any, gs: Any) -> Any:
        calls[0] += 1
        return tuple(r if r is None or calls[0] == 1 else 2 * r for r in gradients(good, ctx, gs))

    return rewritten(good, backward)


# ---- second order


class Doubled(genesis.Function):
    """The identity with a gradient twice too large: what it makes wrong is the derivative of the gradient."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return 2 * g


@pattern("second order: backward uses a wrong rule", "second_order", silent=False)
def _(good: Good) -> Any:
    return rewritten(
        good, lambda ctx, gs: tuple(r if r is None else Doubled.apply(r) for r in gradients(good, ctx, gs))
    )


# ---- conduct


@pattern("forward overwrites its input", "writes_input", silent=False)
def _(good: Good) -> Any:
    def forward(ctx: Any, args: Any) -> Any:
        result = good.rule.forward(ctx, *args)
        next(a for a in args if floating(a)).detach().numpy()[...] *= 1.5
        return result

    return rewritten(good, forward=forward)


@pattern("backward writes to grad_output", "writes_grad", silent=False)
def _(good: Good) -> Any:
    def backward(ctx: Any, gs: Any) -> Any:
        found = [r if r is None else r.clone() for r in gradients(good, ctx, gs)]
        gs[0].mul_(2)
        return tuple(found)

    return rewritten(good, backward)


@pattern("backward writes to a saved tensor", "writes_saved", silent=False)
def _(good: Good) -> Any:
    def backward(ctx: Any, gs: Any) -> Any:
        found = gradients(good, ctx, gs)
        next(s for s in ctx._saved if floating(s)).detach().mul_(2)
        return tuple(found)

    def forward(ctx: Any, args: Any) -> Any:
        result = good.rule.forward(ctx, *args)
        ctx._saved = tuple(s.clone() if isinstance(s, Tensor) else s for s in ctx._saved)
        return result

    return rewritten(good, backward, forward) if _saves(good) else None


def _cast(name: str, dtype: Any) -> None:
    def mutate(good: Good) -> Any:
        if not _real_inputs(good):
            return None
        return rewritten(good, lambda ctx, gs: tuple(r if r is None else r.to(dtype) for r in gradients(good, ctx, gs)))

    pattern(name, "dtype", silent=False)(mutate)


_cast("float32 gradients for float64", genesis.float32)
_cast("float64 gradients for float32", genesis.float64)


def _noise(name: str, draw: Callable[[], float]) -> None:
    def mutate(good: Good) -> Any:
        return rewritten(
            good, lambda ctx, gs: tuple(r if r is None else r * (1 + 1e-3 * draw()) for r in gradients(good, ctx, gs))
        )

    pattern(name, "nondeterministic", silent=False)(mutate)


_entropy = np.random.Generator(np.random.PCG64())
_noise("noise from NumPy", lambda: float(_entropy.normal()))
_noise("noise from Genesis", lambda: genesis.randn(1).item())

_LEAKED: list[Any] = []


@pattern("a global holds the output", "leak", silent=False)
def _(good: Good) -> Any:
    def forward(ctx: Any, args: Any) -> Any:
        result = good.rule.forward(ctx, *args)
        _LEAKED[:] = [result]
        return result

    return rewritten(good, forward=forward)


def in_memory_order(x: Any) -> Any:
    """What code sees that takes a tensor's memory for contiguous."""
    array = x.detach().numpy()
    return genesis.from_numpy(np.ravel(array, order="K").reshape(array.shape).copy())


@pattern("takes grad_output for contiguous", "layout", silent=False)
def _(good: Good) -> Any:
    if not any(sum(n > 1 for n in y.shape) > 1 for y in outputs(good.rule, good.make())):
        return None
    return rewritten(good, lambda ctx, gs: tuple(gradients(good, ctx, [in_memory_order(g) for g in gs])))


@pattern("takes its input for contiguous", "layout", silent=False)
def _(good: Good) -> Any:
    def wanted(s: Any, args: Any, result: Any) -> Any:
        return in_memory_order(s) if floating(s) and any(s is a for a in args) else s

    saved = [s for s in _saved(good) if floating(s) and sum(n > 1 for n in s.shape) > 1]
    inputs = [x.shape for x in good.make() if floating(x)]
    return (
        _exchange_saved(good, wanted) if saved and saved[0].shape in inputs and good.name not in SAVE_OUTPUT else None
    )


SAVE_OUTPUT = {"Exp", "Reciprocal", "Sqrt", "Tanh", "Sigmoid", "Softmax", "LogSoftmax"}


@pattern("wrong when one input requires grad", "needs_input_grad", silent=False)
def _(good: Good) -> Any:
    if count(good) < 2:
        return None

    def backward(ctx: Any, gs: Any) -> Any:
        found = gradients(good, ctx, gs)
        wanted = [r for r, need in zip(found, ctx.needs_input_grad, strict=False) if need]
        return (*wanted, *[None] * (len(ctx.needs_input_grad) - len(wanted)))

    return rewritten(good, backward)


@pattern("fails for an empty batch", "zero_size", silent=False)
def _(good: Good) -> Any:
    x = next(x for x in good.make() if floating(x))
    if not x.ndim or verify(good.rule, *good.make(), checks=["zero_size"]).rows[0].status != "passed":
        return None

    def backward(ctx: Any, gs: Any) -> Any:
        found = gradients(good, ctx, gs)
        largest = [r.abs().max() for r in found if r is not None]
        return tuple(found) if largest else ()

    return rewritten(good, backward)


# ---- several outputs


@pattern("ignores an output", "output_ignored")
def _(good: Good) -> Any:
    if len(outputs(good.rule, good.make())) < 2:
        return None
    return rewritten(good, lambda ctx, gs: tuple(gradients(good, ctx, [gs[0], 0 * gs[1]])))


@pattern("gradients of two outputs swapped", "swapped")
def _(good: Good) -> Any:
    outs = outputs(good.rule, good.make())
    if len(outs) < 2 or outs[0].shape != outs[1].shape:
        return None
    return rewritten(good, lambda ctx, gs: tuple(gradients(good, ctx, gs[::-1])))


@pattern("cannot take None for an unused output", "undefined_grad", silent=False)
def _(good: Good) -> Any:
    if len(outputs(good.rule, good.make())) < 2:
        return None

    def forward(ctx: Any, args: Any) -> Any:
        ctx.set_materialize_grads(False)
        return good.rule.forward(ctx, *args)

    return rewritten(good, forward=forward)


@pattern("marks its output as non-differentiable", "detached", silent=False)
def _(good: Good) -> Any:
    def forward(ctx: Any, args: Any) -> Any:
        result = good.rule.forward(ctx, *args)
        ctx.mark_non_differentiable(*(result if isinstance(result, tuple) else [result]))
        return result

    return rewritten(good, forward=forward)


# ---- the study


def gradient_of(rule: type[Function], args: Any, scale: float) -> Any:
    """Gradients at scaled inputs for fixed weights, or the words of the error."""
    leaves = [x.detach().clone().mul_(scale).requires_grad_() if floating(x) else x for x in args]
    rng = np.random.Generator(np.random.Philox(5))
    try:
        result = rule.apply(*[x.clone() if isinstance(x, Tensor) else x for x in leaves])
        outs = [y for y in (result if isinstance(result, tuple) else [result]) if y.requires_grad]
        seeds = [
            genesis.from_numpy(
                np.asarray(rng.normal(size=y.shape) + (1j * rng.normal(size=y.shape) if y.is_complex() else 0))
            )
            for y in outs
        ]
        inputs = [x for x in leaves if floating(x)]
        found = grad(outs, inputs, seeds, allow_unused=True)
        return [np.zeros(x.shape) if g is None else g.numpy() for x, g in zip(inputs, found, strict=True)]
    except Exception as error:
        return repr(error)


def changes_something(good: Good, bad: type[Function]) -> bool:
    """Whether the seeded bug shows: in the gradients at the given inputs, at ten times or at a hundredth of them."""
    for scale in (1.0, 10.0, 0.01):
        a, b = gradient_of(good.rule, good.make(), scale), gradient_of(bad, good.make(), scale)
        if isinstance(a, str):
            continue
        if isinstance(b, str) or any(
            x.shape != y.shape or not np.allclose(x, y, 1e-9, 1e-12, equal_nan=True) for x, y in zip(a, b, strict=True)
        ):
            return True
    return False


@dataclass(frozen=True, slots=True)
class Outcome:
    """One pattern: the rules it was seeded into, and what became of them."""

    name: str
    seeded: int
    detected: int
    named: int
    example: str
    misses: list[str]

    @property
    def caught(self) -> bool:
        return self.seeded > 0 and self.detected >= 0.9 * self.seeded


def study(index: int, rules: list[Good] | None = None) -> Outcome:
    """Seed one pattern into all rules and verify each."""
    p = PATTERNS[index]
    seeded = detected = named = 0
    example, misses = "", []
    for good in RULES if rules is None else rules:
        with np.errstate(all="ignore"):
            bad = p.mutate(good)
            if bad is None or (p.silent and not changes_something(good, bad)):
                continue
        fresh = p.mutate(good)  # without the state of the calls above
        assert fresh is not None
        report = verify(fresh, *good.make())
        seeded += 1
        detected += not report
        row = next((r for r in report.failures if r.kind in p.kinds), None)
        named += row is not None
        if row is not None and not example:
            example = f"{good.name}: {row.words}"
        if row is None:
            misses.append(f"{good.name}: {'; '.join(f'{r.kind}: {r.words}' for r in report.failures) or 'passed'}")
        _LEAKED.clear()
    return Outcome(p.name, seeded, detected, named, example, misses)


def false_alarms() -> list[str]:
    return [f"{good.name}\n{report}" for good in RULES if not (report := verify(good.rule, *good.make()))]


def table(outcomes: list[Outcome], alarms: list[str]) -> str:
    caught = sum(o.caught for o in outcomes)
    seeded, detected, named = (sum(getattr(o, k) for o in outcomes) for k in ("seeded", "detected", "named"))
    lines = [
        "| seeded bug | rules with it | found | repair named | what the report says |",
        "| --- | ---: | ---: | ---: | --- |",
        *[
            f"| {o.name}{'' if o.caught else ' (not caught)'} | {o.seeded} | {o.detected} | {o.named} | "
            f"{o.example.replace('|', chr(92) + '|')} |"
            for o in outcomes
        ],
        "",
        f"{caught} of {len(outcomes)} kinds of bugs are caught (found in at least nine of ten rules that have them). "
        f"Of {seeded} seeded bugs "
        f"{detected} are found ({100 * detected / seeded:.1f} %), and for {named} the report names the right repair "
        f"({100 * named / seeded:.1f} %). "
        f"Of the {len(RULES)} right rules {len(alarms)} {'is' if len(alarms) == 1 else 'are'} reported as wrong.",
    ]
    return "\n".join(lines)


PAGE = """# How well `verify` finds wrong gradients

Written by `python benchmarks/mutations.py --write`. Mistakes that people make are seeded, one kind at a time, into {rules} right rules
(`benchmarks/rules.py`), and `genesis.autograd.verify` is asked about each. Where a mistake changes nothing, the rule is not counted for it.

{table}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write docs/verify_study.md")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="patterns whose name contains this")
    parser.add_argument("--verbose", action="store_true", help="show what was not found or not named")
    options = parser.parse_args()
    chosen = [i for i, p in enumerate(PATTERNS) if options.only in p.name]
    with ProcessPoolExecutor(options.jobs) as pool:
        outcomes = list(pool.map(study, chosen))
    alarms = false_alarms()
    text = table(outcomes, alarms)
    print(text)
    for alarm in alarms:
        print(alarm)
    if options.verbose:
        for o in outcomes:
            for miss in o.misses:
                print(f"{o.name} | {miss}")
    if options.write:
        page = Path(__file__).parent.parent / "docs" / "verify_study.md"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(PAGE.format(rules=len(RULES), table=text))


if __name__ == "__main__":
    main()
