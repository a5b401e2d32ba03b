"""Random programs of views, in-place writes and user Functions, checked against an interpreter that shares no code.

``python -m genesis.testing.fuzz --programs 20000`` writes programs like

    v3 = v1[1:]; v4 = v3 * v2; v3.mul_(v4); v5 = Square.apply(v3); ...

runs them, differentiates a result, and compares all values and gradients with those of `fuzz_reference.py`: memory as
numbered cells and derivatives carried forward with every value. A program must be right or refused with an error; a
silent difference is shrunk to the fewest statements and printed as a program.
"""

from __future__ import annotations

import collections
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import genesis
from genesis.base.errors import GenesisError
from genesis.testing.command_line import options
from genesis.testing.fuzz_reference import Memory, Ref
from genesis.testing.fuzz_writer import LARGEST, Statement, Writer, scope_of_programs
from genesis.testing.shrink import shortest

TOLERANCE = 1e-9  # relative; both sides compute in float64
SECOND_TOLERANCE = 2e-4  # the reference's second derivatives are differences of its first


@dataclass
class Outcome:
    """What became of a program."""

    kind: str  # "equal", "refused" or "wrong"
    detail: str = ""
    refusals: list[str] = field(default_factory=list)
    program: list[Statement] = field(default_factory=list)


# ---- running one


def run(program: Sequence[Statement], seed: int) -> Outcome:
    """Run a program on both sides and compare."""
    scope, memory = scope_of_programs(), Memory()
    refusals: list[str] = []
    done: list[Statement] = []
    with np.errstate(all="ignore"):
        for s in program:
            if any(name not in memory.refs for name in s.uses):
                continue
            try:
                exec(s.text, scope)
            except GenesisError as error:
                refusals.append(_kind(error))
                if s.ends:
                    break
                continue
            memory.shares = lambda v, x: bool(np.shares_memory(scope[v]._array, scope[x]._array))
            s.mean(memory)
            done.append(s)
        ended = (
            bool(program)
            and bool(refusals)
            and len(done) < len(program)
            and program[len(done) + len(refusals) - 1].ends
        )
        if any(np.abs(memory.values(ref)).max(initial=0) > LARGEST for ref in memory.refs.values()):
            return Outcome("too large", "", refusals, done)
        wrong = None if ended else _values_differ(scope, memory)
        if wrong:
            return Outcome("wrong", wrong, refusals, done)
        return _compare_gradients(scope, memory, done, refusals, seed)


def _values_differ(scope: dict[str, Any], memory: Memory) -> str | None:
    for name, ref in memory.refs.items():
        values, expected = scope[name].detach().numpy(), memory.values(ref)
        if values.shape != expected.shape or not np.allclose(
            values, expected, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True
        ):
            return f"{name} is {values.tolist()}, the reference has {expected.tolist()}"
    return None


def _compare_gradients(
    scope: dict[str, Any], memory: Memory, done: list[Statement], refusals: list[str], seed: int
) -> Outcome:
    random = np.random.default_rng(seed + 1)
    leaves = [n for n in memory.leaves if scope[n].requires_grad]
    roots = [n for n in memory.refs if scope[n].requires_grad and n not in leaves]
    if not leaves or not roots:
        return Outcome("equal", "nothing to differentiate", refusals, done)
    order = random.random() < 0.3
    for root in dict.fromkeys([roots[-1], roots[int(random.integers(len(roots)))]]):
        ref = memory.refs[root]
        weights = np.round(random.uniform(-1, 1, ref.shape), 3)
        try:
            grads = genesis.autograd.grad(
                scope[root],
                [scope[n] for n in leaves],
                genesis.tensor(weights),
                retain_graph=True,
                create_graph=order,
                allow_unused=True,
            )
        except GenesisError as error:
            refusals.append(_kind(error))
            continue
        for n, g in zip(leaves, grads, strict=True):
            expected = memory.gradient(ref, weights, n)
            if not np.isfinite(expected).all():
                continue  # overflow: 0 times inf depends on the order
            gradient = np.zeros_like(expected) if g is None else g.detach().numpy()
            if not np.allclose(
                gradient, expected, rtol=1e-8, atol=TOLERANCE * (1 + np.abs(expected).max(initial=0)), equal_nan=True
            ):
                return Outcome(
                    "wrong",
                    f"d {root} / d {n} with {weights.tolist()} is {gradient.tolist()}, the reference has "
                    f"{expected.tolist()}",
                    refusals,
                    done,
                )
        if order and not memory.constants:
            wrong = _compare_second(scope, done, root, weights, leaves, grads, refusals, random)
            if wrong:
                return Outcome("wrong", wrong, refusals, done)
    return Outcome("refused" if refusals else "equal", "", refusals, done)


def _compare_second(
    scope: Any,
    done: list[Statement],
    root: str,
    weights: Any,
    leaves: list[str],
    grads: Any,
    refusals: list[str],
    random: Any,
) -> str | None:
    """A derivative of the gradients along random directions, against differences of the reference's gradients."""
    parts = [(n, g) for n, g in zip(leaves, grads, strict=True) if g is not None and g.requires_grad]
    if not parts:
        return None
    along = {n: random.uniform(-1, 1, g.shape) for n, g in parts}
    try:
        total = sum((g * genesis.tensor(along[n])).sum() for n, g in parts)
        second = genesis.autograd.grad(total, [scope[n] for n in leaves], allow_unused=True, retain_graph=True)
    except GenesisError as error:
        refusals.append(_kind(error))
        return None
    directions = {n: random.uniform(-1, 1, scope[n].shape) for n in leaves}
    mine = sum(
        float((np.zeros(scope[n].shape) if h is None else h.detach().numpy()).ravel() @ directions[n].ravel())
        for n, h in zip(leaves, second, strict=True)
    )

    def projected(step: float) -> float:
        moved = Memory({n: step * d for n, d in directions.items()})
        moved.shares = lambda v, x: bool(np.shares_memory(scope[v]._array, scope[x]._array))
        for s in done:
            s.mean(moved)
        return sum(float((moved.gradient(moved.refs[root], weights, n) * along[n]).sum()) for n, _ in parts)

    step = 1e-5
    expected, wider = ((projected(h) - projected(-h)) / (2 * h) for h in (step, 2 * step))
    if not abs(expected - wider) < SECOND_TOLERANCE / 10 * (1 + abs(expected)):
        return None  # too steep for differences
    if abs(mine - expected) > SECOND_TOLERANCE * (1 + abs(expected)):
        return f"a second derivative of {root} is {mine}, differences of the reference's first give {expected}"
    return None


def _kind(error: GenesisError) -> str:
    """What a refusal says, without names and numbers."""
    text = str(error).partition("\n")[0]
    for known in (
        "modified in place",
        "leaf that requires grad",
        "view of a leaf",
        "cannot be written to",
        "made under no_grad",
        "overlap",
        "freed",
    ):
        if known in text:
            return known
    return f"{type(error).__name__}: {text}"


# ---- many


def shrunk(program: Sequence[Statement], seed: int) -> list[Statement]:
    """The fewest statements of a wrong program that are still wrong."""
    return shortest(program, lambda shorter: _still_wrong(shorter, seed))


def _still_wrong(program: Sequence[Statement], seed: int) -> bool:
    try:
        return run(program, seed).kind == "wrong"
    except Exception:
        return False


def fuzz(
    programs: int, seed: int = 0, length: int = 14, progress: bool = False
) -> tuple[collections.Counter[str], collections.Counter[str], list[tuple[int, Outcome]]]:
    """Run ``programs`` random programs: how many ended how, what was refused, and the wrong ones, shrunk, with their
    seeds.
    """
    from tqdm import tqdm

    kinds: collections.Counter[str] = collections.Counter()
    reasons: collections.Counter[str] = collections.Counter()
    wrong = []
    for number in tqdm(range(seed, seed + programs), disable=not progress, unit=" programs"):
        program = Writer(number).program(length)
        outcome = run(program, number)
        kinds[outcome.kind] += 1
        reasons.update(outcome.refusals)
        if outcome.kind == "wrong":
            few = shrunk(program, number)
            wrong.append((number, run(few, number)))
    return kinds, reasons, wrong


def main(arguments: Sequence[str] | None = None) -> int:
    asked = options("fuzz", __doc__, arguments, 2000, length={"type": int, "default": 14, "help": "statements in each"})
    kinds, reasons, wrong = fuzz(asked.programs, asked.seed, asked.length, progress=True)
    print(f"{kinds['equal']} equal, {kinds['refused']} equal where they were not refused, {kinds['wrong']} wrong")
    for reason, count in reasons.most_common():
        print(f"  refused {count:6d} times: {reason}")
    for number, outcome in wrong[:10]:
        print(f"\nseed {number}: {outcome.detail}")
        for s in outcome.program:
            print("   ", s.text)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

__all__ = ["Outcome", "Ref", "Statement", "Writer", "fuzz", "run", "shrunk"]
