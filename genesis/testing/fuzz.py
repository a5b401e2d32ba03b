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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import genesis
from genesis.base.errors import GenesisError
from genesis.testing import fuzz_functions
from genesis.testing.command_line import options
from genesis.testing.fuzz_reference import Memory, Ref

TOLERANCE = 1e-9  # relative; both sides compute in float64
LARGEST = 1e6  # of larger numbers the sine is mostly rounding error
SECOND_TOLERANCE = 2e-4  # the reference's second derivatives are differences of its first


@dataclass(frozen=True)
class Statement:
    """One line of a program: what it does to the tensors, and the same for the reference."""

    text: str
    uses: tuple[str, ...]
    makes: tuple[str, ...]
    mean: Callable[[Memory], None]
    ends: bool = False  # a write of a user's function that is refused may have happened


@dataclass
class Outcome:
    """What became of a program."""

    kind: str  # "equal", "refused" or "wrong"
    detail: str = ""
    refusals: list[str] = field(default_factory=list)
    program: list[Statement] = field(default_factory=list)


class Writer:
    """Writes a random program."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.count = 0
        self.statements: list[Statement] = []
        self.leafy: set[str] = set()  # leaves that require grad and views of them: writes to them are refused

    def pick(self, *choices: Any) -> Any:
        return choices[int(self.random.integers(len(choices)))]

    def name(self, shape: Sequence[int]) -> str:
        self.count += 1
        name = f"v{self.count}"
        self.shapes[name] = tuple(shape)
        return name

    def any(self, condition: Callable[[tuple[int, ...]], bool] = lambda s: True) -> str | None:
        """A tensor; those made last are likelier, so that programs are deep."""
        names = [n for n, s in self.shapes.items() if condition(s)]
        if not names:
            return None
        return names[-1 - int(len(names) * self.random.random() ** 2 * 0.999)]

    def target(self, condition: Callable[[tuple[int, ...]], bool] = lambda s: True) -> str | None:
        """A tensor to write to: mostly one where that is allowed."""
        name = self.any(condition)
        for _ in range(4):
            if name is None or name not in self.leafy or self.random.random() < 0.1:
                break
            name = self.any(condition)
        return name

    def add(
        self, text: str, uses: Sequence[str], makes: Sequence[str], mean: Callable[[Memory], None], ends: bool = False
    ) -> None:
        self.statements.append(Statement(text, tuple(uses), tuple(makes), mean, ends))

    def program(self, length: int) -> list[Statement]:
        for _ in range(int(self.random.integers(1, 4))):
            self.leaf()
        actions = [
            self.compute,
            self.compute,
            self.combine,
            self.combine,
            self.view,
            self.view,
            self.view,
            self.write,
            self.write,
            self.write_by,
            self.assign,
            self.function,
            self.function,
            self.detach,
            self.special,
        ]
        while len(self.statements) < length:
            self.pick(*actions)()
        return self.statements

    # ---- statements

    def leaf(self) -> None:
        shape = self.pick((3,), (4,), (2, 3), (2, 2), (), (1, 3), (3, 2))
        values = np.round(self.random.uniform(-1, 1, shape), 3)
        v = self.name(shape)
        needs = bool(self.random.random() < 0.8)
        if needs:
            self.leafy.add(v)
        self.add(
            f"{v} = tensor({values.tolist()}, requires_grad={needs})", (), (v,), lambda m: m.leaf(v, values, needs)
        )

    def compute(self) -> None:
        x = self.any()
        if x is None:
            return
        f = self.pick("sin", "tanh", "sigmoid", "square", "cos", "neg", "clone", "exp")
        v = self.name(self.shapes[x])
        hooked = self.random.random() < 0.1
        text = f"{v} = {x}.{f}()" + (f"; {v}.requires_grad and {v}.register_hook(lambda g: 2 * g)" if hooked else "")
        self.add(text, (x,), (v,), lambda m: m.compute(v, f, [x], 2.0 if hooked else 1.0))

    def combine(self) -> None:
        x = self.any()
        y = x and self.any(lambda s: _broadcast(s, self.shapes[x]) is not None)
        if x is None or y is None:
            return
        op, f = self.pick(("*", "mul"), ("+", "add"), ("-", "sub"))
        shape = _broadcast(self.shapes[x], self.shapes[y])
        assert shape is not None
        v = self.name(shape)
        self.add(f"{v} = {x} {op} {y}", (x, y), (v,), lambda m: m.compute(v, f, [x, y]))

    def view(self) -> None:
        x = self.any(lambda s: len(s) > 0)
        if x is None:
            return
        shape = self.shapes[x]
        text, index = self._view_of(shape)
        result = index(np.zeros(shape)).shape
        if 0 in result:
            return
        v = self.name(result)
        quiet = self.random.random() < 0.08
        if x in self.leafy:
            self.leafy.add(v)
        body = f"{v} = {x}{text}"
        self.add(
            f"with no_grad(): {body}" if quiet else body,
            (x,),
            (v,),
            lambda m: m.view(v, x, index, text.startswith(".reshape"), quiet),
        )

    def _view_of(self, shape: tuple[int, ...]) -> tuple[str, Callable[[Any], Any]]:
        dim = int(self.random.integers(len(shape)))
        place = int(self.random.integers(shape[dim]))
        lead = ":, " * dim
        choices: list[tuple[str, Callable[[Any], Any]]] = [
            (f"[{lead}{place}]", lambda a: a[(slice(None),) * dim + (place,)]),
            (f"[{lead}{place}:]", lambda a: a[(slice(None),) * dim + (slice(place, None),)]),
            (f"[{lead}::2]", lambda a: a[(slice(None),) * dim + (slice(None, None, 2),)]),
            (f"[{lead}::-1]", lambda a: a[(slice(None),) * dim + (slice(None, None, -1),)]),
            (f"[{lead}{place}::-2]", lambda a: a[(slice(None),) * dim + (slice(place, None, -2),)]),
            (f".unsqueeze({dim})", lambda a: np.expand_dims(a, dim)),
            (".reshape(-1)", lambda a: a.reshape(-1)),
            (f".select({dim}, {place})", lambda a: a[(slice(None),) * dim + (place,)]),
            (f".split(1, {dim})[{place}]", lambda a: a[(slice(None),) * dim + (slice(place, place + 1),)]),
            (f".unbind({dim})[{place}]", lambda a: a[(slice(None),) * dim + (place,)]),
            (f".expand(2, {', '.join(map(str, shape))})", lambda a: np.broadcast_to(a, (2, *shape))),
            (".squeeze()", lambda a: a.squeeze()),
        ]
        if len(shape) == 2:
            choices += [
                (".t()", lambda a: a.T),
                (".transpose(0, 1)", lambda a: a.T),
                (".diagonal()", lambda a: np.diagonal(a)),
            ]
        return self.pick(*choices)

    def write(self) -> None:
        x = self.target()
        if x is None:
            return
        f = self.pick("sin_", "tanh_", "zero_", "fill_", "mul_", "add_", "sigmoid_", "neg_")
        number = round(float(self.random.uniform(-1.5, 1.5)), 2)
        quiet = self.random.random() < 0.12
        argument = f"{number}" if f in ("fill_", "mul_", "add_") else ""
        body = f"{x}.{f}({argument})"
        self.add(
            f"with no_grad(): {body}" if quiet else body, (x,), (), lambda m: m.write(x, f[:-1], [], number, quiet)
        )

    def write_by(self) -> None:
        x = self.target()
        y = x and self.any(lambda s: _broadcast(s, self.shapes[x]) == self.shapes[x])
        if x is None or y is None:
            return
        f, text = self.pick(
            ("add", "{x}.add_({y})"),
            ("mul", "{x}.mul_({y})"),
            ("copy", "{x}.copy_({y})"),
            ("add", "{x} += {y}"),
            ("mul", "{x} *= {y}"),
            ("sub", "{x} -= {y}"),
        )
        quiet = self.random.random() < 0.08
        body = text.format(x=x, y=y)
        self.add(f"with no_grad(): {body}" if quiet else body, (x, y), (), lambda m: m.write(x, f, [y], None, quiet))

    def assign(self) -> None:
        x = self.target(lambda s: len(s) > 0)
        if x is None:
            return
        shape = self.shapes[x]
        if self.random.random() < 0.3:
            mask = self.random.random(shape) < 0.5
            number = round(float(self.random.uniform(-1, 1)), 2)
            self.add(
                f"{x}[tensor({mask.tolist()})] = {number}",
                (x,),
                (),
                lambda m: m.assign(x, lambda a: a[mask], None, number),
            )
            return
        text, index = self._view_of(shape)
        if not text.startswith("["):
            return
        part = index(np.zeros(shape)).shape
        y = self.any(lambda s: _broadcast(s, part) == part)
        if y is None or 0 in part:
            return
        self.add(f"{x}{text} = {y}", (x, y), (), lambda m: m.assign(x, index, y, None))

    def function(self) -> None:
        x = self.any()
        if x is None:
            return
        kind = self.pick(*fuzz_functions.KINDS)
        if kind.writes:
            x = self.target() or x
        shape = self.shapes[x]
        if kind.operands == 2:
            y = self.any(lambda s: s == shape)
            assert y is not None
            uses = [x, y]
        else:
            uses = [x]
        if kind.writes:
            self.add(
                f"{kind.name}.apply({', '.join(uses)})",
                uses,
                (),
                lambda m: m.write(x, kind.means[0], uses[1:], None, False),
                ends=True,
            )
            return
        vs = [self.name((int(np.prod(shape)),) if kind.flattens else shape) for _ in kind.means]
        if kind.flattens or kind.aliases:
            self.add(
                f"{vs[0]} = {kind.name}.apply({x})",
                uses,
                vs,
                lambda m: m.view(
                    vs[0], x, (lambda a: a.reshape(-1)) if kind.flattens else (lambda a: a), kind.flattens, False, True
                ),
            )
            return
        text = f"{', '.join(vs)} = {kind.call.format(*uses)}"

        def mean(m: Memory) -> None:
            found = [m.result(means, uses) for means in kind.means]
            for v, value in zip(vs, found, strict=True):
                m.keep(v, value)

        self.add(text, uses, vs, mean)

    def detach(self) -> None:
        x = self.any()
        if x is None:
            return
        v = self.name(self.shapes[x])
        self.add(f"{v} = {x}.detach().clone()", (x,), (v,), lambda m: m.constant(v, x))

    def special(self) -> None:
        """Checkpoints, joined tensors, sums."""
        x = self.any()
        if x is None:
            return
        shape = self.shapes[x]
        what = self.pick("checkpoint", "cat", "sum", "stack")
        if what == "checkpoint":
            v = self.name(shape)
            self.add(
                f"{v} = checkpoint(lambda a: a.sin() * a, {x})",
                (x,),
                (v,),
                lambda m: m.keep(v, m.result("sin_times", [x])),
            )
        elif what == "sum":
            v = self.name(())
            self.add(f"{v} = {x}.sum()", (x,), (v,), lambda m: m.keep(v, m.result("sum", [x])))
        elif shape:
            y = self.any(lambda s: s == shape)
            assert y is not None
            v = self.name((2 * shape[0], *shape[1:]) if what == "cat" else (2, *shape))
            self.add(f"{v} = {what}([{x}, {y}])", (x, y), (v,), lambda m: m.keep(v, m.result(what, [x, y])))


def _broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...] | None:
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        return None


# ---- running one


def _scope() -> dict[str, Any]:
    names = {
        "tensor": lambda data, **options: genesis.tensor(np.array(data), **options),
        "no_grad": genesis.no_grad,
        "cat": genesis.cat,
        "stack": genesis.stack,
        "checkpoint": genesis.utils.checkpoint.checkpoint,
    }
    return names | {kind.name: kind.function for kind in fuzz_functions.KINDS}


def run(program: Sequence[Statement], seed: int) -> Outcome:
    """Run a program on both sides and compare."""
    scope, memory = _scope(), Memory()
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
        found, expected = scope[name].detach().numpy(), memory.values(ref)
        if found.shape != expected.shape or not np.allclose(
            found, expected, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True
        ):
            return f"{name} is {found.tolist()}, the reference has {expected.tolist()}"
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
            found = np.zeros_like(expected) if g is None else g.detach().numpy()
            if not np.allclose(
                found, expected, rtol=1e-8, atol=TOLERANCE * (1 + np.abs(expected).max(initial=0)), equal_nan=True
            ):
                return Outcome(
                    "wrong",
                    f"d {root} / d {n} with {weights.tolist()} is {found.tolist()}, the reference has "
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
        found = genesis.autograd.grad(total, [scope[n] for n in leaves], allow_unused=True, retain_graph=True)
    except GenesisError as error:
        refusals.append(_kind(error))
        return None
    directions = {n: random.uniform(-1, 1, scope[n].shape) for n in leaves}
    mine = sum(
        float((np.zeros(scope[n].shape) if h is None else h.detach().numpy()).ravel() @ directions[n].ravel())
        for n, h in zip(leaves, found, strict=True)
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
    best = list(program)
    changed = True
    while changed:
        changed = False
        for i in reversed(range(len(best))):
            shorter = best[:i] + best[i + 1 :]
            if _still_wrong(shorter, seed):
                best, changed = shorter, True
    return best


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
