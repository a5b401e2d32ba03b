"""Random short programs of what few programs do, as they are and compiled.

    python -m genesis.testing.fuzz_short --programs 2000

Two to eight statements, most of them of `fuzz_memory` and `fuzz_autograd`; results that share memory with one another, with
arguments and with state, in containers.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence

from genesis.testing import fuzz_autograd, fuzz_compile, fuzz_memory, fuzz_recipes, fuzz_traces, fuzz_training
from genesis.testing.fuzz_compile import CALLS, FRESH, Program
from genesis.testing.fuzz_homes import HOMES

STATE = fuzz_recipes.STATE + fuzz_memory.STATE + fuzz_autograd.STATE
VALUES = [*fuzz_memory.VALUES, *fuzz_autograd.VALUES, *fuzz_traces.VALUES, *fuzz_recipes.VALUES]
WRITES = [*2 * fuzz_memory.WRITES, *fuzz_traces.WRITES, *fuzz_recipes.WRITES]
TRAINING = [*2 * fuzz_autograd.TRAINING, *fuzz_traces.GRADIENTS, *fuzz_recipes.TRAINING]
BETWEEN = [*fuzz_memory.BETWEEN, *fuzz_autograd.BETWEEN, *fuzz_recipes.BETWEEN]


def written(seed: int) -> Program:
    """A random program."""
    rng = random.Random(f"short {seed}")
    through = seed % 3 == 1
    values, own, lines = ["x", "x", "w1", "w3", "buf", "turned"], ["buf", "turned"], list[str]()
    for number in range(rng.randint(2, 8)):
        (kind,) = rng.choices(
            [VALUES, WRITES, TRAINING, fuzz_training.STOPS], [5, 2 if through else 4, 0.5 if through else 3, 0.2]
        )
        line = rng.choice(kind).format(a=rng.choice(values), b=rng.choice(values), t=rng.choice(own))
        if kind is VALUES:
            line = f"v{number} = {line}"
            values += [f"v{number}"] * 2
            own.append(f"v{number}")
        elif rng.random() < 0.15 and "\n" not in line and not line.startswith(("if", "for", "with", "while", "try")):
            line = f"with no_grad(): {line}"
        lines.append(line)
    results = [f"{rng.choice(values)}{rng.choice(fuzz_memory.RESULTS)}" for _ in range(3)]
    container = rng.choice(fuzz_memory.CONTAINERS).format(a=rng.choice(values), b=rng.choice(values))
    last = rng.choice(["None", "w1.grad", "x", "buf", "level", "mask", "wide[:, :4]", container, container])
    lines += ["buf.detach_()", "turned.detach_()", f"return {', '.join(results)}, {last}"]
    outside = rng.choice(fuzz_compile.OUTSIDE) if through else ""
    between = [rng.choice(["", "", *BETWEEN]) for _ in range(CALLS)]
    arguments = fuzz_memory.ARGUMENTS + fuzz_training.ARGUMENTS
    calls = [rng.choice([FRESH] * 2 * len(arguments) + arguments) for _ in range(CALLS)]
    optimizer = rng.choice(fuzz_traces.OPTIMIZERS)
    return Program(optimizer, lines, outside, between, STATE, calls, rng.choice(list(HOMES)))


def main(arguments: Sequence[str] | None = None) -> int:
    return fuzz_compile.main(arguments, "fuzz_short", __doc__, written)


if __name__ == "__main__":
    sys.exit(main())
