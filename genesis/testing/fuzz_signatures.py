"""Wrong arguments for every public callable: the answer, or an error of Genesis that says what is wrong; never one from
inside.

    python -m genesis.testing.fuzz_signatures --calls 20000

A call that is right (see `signature_calls`) gets one or two arguments of a wrong type, shape, dtype or size. What may
come of it:

`answer`    a result                `refused`    a `GenesisError` whose first line names a call
`bare`      another exception, which is a fault                    `unnamed`    a `GenesisError` that does not say where

With a reference (PyTorch, in the tests) calls that are answered here and refused there are `accepted`.
"""

from __future__ import annotations

import inspect
import random
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import genesis
from genesis.base.errors import GenesisError
from genesis.core.call.op import Case
from genesis.testing.command_line import options, tell
from genesis.testing.make import Maker
from genesis.testing.signature_calls import Target, settings_kept, targets

Reference = Callable[[Target, Case], bool]  # whether the call is answered there, too

SCALARS: tuple[Any, ...] = (
    None,
    "x",
    "",
    b"x",
    0,
    3,
    -1,
    -7,
    2.5,
    -0.5,
    float("nan"),
    float("inf"),
    10**30,
    True,
    1j,
    (),
    [],
    [1],
    (1, 2),
    [-1, 2],
    [None],
    ["x"],
    {},
    {"x": 1},
    np.float32(2),
    np.int64(1),
    np.zeros(2),
    object,
    len,
)
TENSORS: tuple[Callable[[Maker], Any], ...] = (
    lambda t: t(2, 3),
    lambda t: t(),
    lambda t: t(0),
    lambda t: t(5),
    lambda t: t(2, 3, 4, 5),
    lambda t: t(3, 2).T,
    lambda t: t.int(3),
    lambda t: t.int(),
    lambda t: t.bool(2, 3),
    lambda t: t(2, 3).to(genesis.complex64),
    lambda t: t(3).half(),
    lambda t: genesis.zeros(2, 3, device="meta"),
    lambda t: t(1, 0, 3),
    lambda t: [t(2), t(3)],
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one call."""

    kind: str
    path: str
    arguments: str
    detail: str

    @property
    def wrong(self) -> bool:
        return self.kind not in ("answer", "refused")


def hostile(rng: random.Random, maker: Maker) -> Any:
    """A value that is probably wrong, wherever it goes."""
    return rng.choice(SCALARS) if rng.random() < 0.6 else rng.choice(TENSORS)(maker)


def mutated(target: Target, rng: random.Random, maker: Maker) -> Case | None:
    """A right call with one or two wrong arguments; None where it has no argument."""
    right = rng.choice(target.calls(maker))
    bound = target.signature.bind(*right.args, **right.kwargs)
    valid = dict(bound.arguments)
    names = [
        p.name
        for p in target.signature.parameters.values()
        if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) and not p.name.startswith("_")
    ]
    rest = next((p.name for p in target.signature.parameters.values() if p.kind is p.VAR_POSITIONAL), None)
    for _ in range(1 + (rng.random() < 0.2)):
        if rest is not None and (not names or rng.random() < 0.5):
            values = list(bound.arguments.get(rest, ())) or [None]
            index = rng.randrange(len(values))
            values[index] = _other(values[index], hostile(rng, maker))
            bound.arguments[rest] = tuple(values)
        elif names:
            name = rng.choice(names)
            bound.arguments[name] = _other(valid.get(name), hostile(rng, maker))
    ordered = inspect.BoundArguments(
        target.signature, {n: bound.arguments[n] for n in target.signature.parameters if n in bound.arguments}
    )  # type: ignore[arg-type]
    return Case(ordered.args, ordered.kwargs)


def _other(right: Any, wrong: Any) -> Any:
    """What takes the place of a right argument; another function would not be a wrong one."""
    return right if callable(right) and callable(wrong) else wrong


def _frames(error: BaseException) -> list[str]:
    files, tb = [], error.__traceback__
    while tb is not None:
        files.append(tb.tb_frame.f_code.co_filename)
        tb = tb.tb_next
    return files


def run(target: Target, call: Case, maker: Maker) -> Outcome:
    """Make the call, and what follows it, and say what came of it."""
    shown = described(call)
    try:
        with settings_kept():
            result = target.call(*call.args, **call.kwargs)
            if target.after is not None:
                target.after(result, maker)
    except GenesisError as error:
        first = str(error).partition("\n")[0]
        return Outcome(
            "refused" if re.match(r"[\w.()\[\]', ]+: .", first) else "unnamed",
            target.path,
            shown,
            f"{type(error).__name__}: {first}",
        )
    except Exception as error:
        if isinstance(error, TypeError) and len(_frames(error)) == 1:
            # Python's own: the arguments do not fit the signature
            return Outcome("refused", target.path, shown, str(error))
        at = _frames(error)[-1].rpartition("genesis/")[2]
        return Outcome("bare", target.path, shown, f"{type(error).__name__}: {str(error).partition(chr(10))[0]} ({at})")
    return Outcome("answer", target.path, shown, "")


def described(call: Case) -> str:
    """The arguments in a line."""
    return ", ".join([*map(_short, call.args), *(f"{k}={_short(v)}" for k, v in call.kwargs.items())])


def _short(value: Any) -> str:
    if isinstance(value, genesis.Tensor):
        return str(value._spec())
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_short, value)) + "]"
    return value.__name__ if isinstance(value, type) else re.sub(r"\s+", " ", repr(value))[:60]


def fuzz(
    calls: int,
    seed: int = 0,
    paths: Callable[[str], bool] = lambda path: True,
    reference: Reference | None = None,
    progress: bool = False,
) -> tuple[Counter[str], list[Outcome]]:
    """Counts of what came of the calls, and what went wrong."""
    from tqdm import tqdm

    known = [t for t in targets() if paths(t.path)]
    counts: Counter[str] = Counter()
    wrong: list[Outcome] = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for number in tqdm(range(seed, seed + calls), disable=not progress, unit=" calls"):
            rng, maker = random.Random(number), Maker(seed=number)
            target = known[number % len(known)]
            call = mutated(target, rng, maker)
            outcome = run(target, call, maker)
            if (
                outcome.kind == "answer"
                and reference is not None
                and not reference(target, mutated(target, random.Random(number), Maker(seed=number)))
            ):
                outcome = Outcome("accepted", outcome.path, outcome.arguments, "the reference refuses it")
            counts[outcome.kind] += 1
            if outcome.wrong:
                wrong.append(outcome)
    return counts, wrong


def main(arguments: Sequence[str] | None = None) -> int:
    asked = options(
        "fuzz_signatures",
        __doc__,
        arguments,
        10_000,
        "calls",
        only={"default": "", "help": "paths that begin with this"},
    )
    counts, wrong = fuzz(asked.calls, asked.seed, lambda path: path.startswith(asked.only), progress=True)
    tell(counts)
    for outcome in wrong[:200]:
        print(f"{outcome.kind}  {outcome.path}({outcome.arguments})\n    {outcome.detail}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
