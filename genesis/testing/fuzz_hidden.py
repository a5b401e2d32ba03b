"""Random recipes of training that read and write what their code does not name, as they are and compiled.

    python -m genesis.testing.fuzz_hidden --programs 2000

`fuzz_recipes` with lines between the others that find attributes by names that are computed, in copies, or by functions in C,
and that change lists, dictionaries and objects in the same ways.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence

from genesis.testing import fuzz_compile, fuzz_recipes
from genesis.testing.fuzz_compile import CALLS, Program

STATE = (
    fuzz_recipes.STATE
    + """
from copy import copy, deepcopy
from dataclasses import asdict
from functools import partial
from operator import attrgetter, iadd, itemgetter, setitem
class Meter:
    def __init__(self):
        self.value, self.table, self.seen = 0.5, {"k": 0.25, "n": 1}, [1.0]
    def __getattr__(self, name):
        return self.__dict__["table"][name.removeprefix("of_")]
def halved(a):
    while 1 < a.abs().max() < 1e9:  # what these programs add to may be infinite
        a = a / 2
    return a
meter, name, value_of, k_of = Meter(), "b", attrgetter("value"), itemgetter("k")
shown_before = shown
def shown():
    return [*shown_before(), meter.value, *meter.table.values(), *meter.seen, box.rate]
"""
)
READS = [
    "{t}.mul_(getattr(pair, name))",
    "{t}.add_(getattr(pair, 'b', 0.0))",
    "{t}.add_(value_of(meter))",
    "{t}.add_(attrgetter('value')(meter))",
    "{t}.mul_(copy(meter).value)",
    "{t}.mul_(deepcopy(meter).table['k'])",
    "{t}.add_(replace(pair, a={a}).b)",
    "{t}.add_(vars(meter)['value'])",
    "{t}.add_(k_of(meter.table))",
    "{t}.add_(max(meter.table.values()))",
    "{t}.add_(sum(getattr(meter, 'se' + 'en')))",
    "{t}.add_(meter.of_k)",
    "{t}.add_(object.__getattribute__(meter, 'value'))",
    "{t}.mul_(len(vars(meter)['seen']))",
    "{t}.add_(globals()['limit'] if 'limit' in globals() else 0.5)",
    "{t}.add_(type(meter)().value)",
    "{t}.add_(float(f'{{meter.table}}'.count('0')))",
]
WRITES = [
    "meter.value *= 0.5",
    "meter.value = 0.5 if meter.value > 1 else meter.value + 0.5",
    "meter.table['k'] += 0.25",
    "meter.table.update(n=meter.table['n'] + 1)",
    "meter.seen.append(0.5)",
    "meter.seen += [0.25]",
    "setattr(meter, 'value', meter.value + 0.25)",
    "object.__setattr__(meter, 'value', meter.value + 0.25)",
    "vars(meter)['value'] += 0.25",
    "setitem(meter.table, 'k', meter.table['k'] + 0.5)",
    "iadd(meter.seen, [1.0])",
    "list(map(meter.seen.append, [0.75]))",
    "partial(meter.seen.append, 0.5)()",
    "meter.table.__setitem__('k', 0.125)",
    "pair.b = pair.b * 0.5",
    "for each in (meter.seen,): each += [2.0]",
    "named.update(first={a}.detach() * 0.5)",
    "meter.seen[-1] = float({a}.detach().mean())",
]
BETWEEN = [
    "meter.value = 0.75",
    "pair.b = 1.5",
    "meter.table['k'] = 2.0",
    "vars(meter).update(value=0.1)",
    "meter.seen.append(3.0)",
]


def written(seed: int) -> Program:
    """A random program."""
    program, rng = fuzz_recipes.written(seed), random.Random(f"hidden {seed}")
    lines = [line for line in program.step if not line.startswith("while")]
    for _ in range(rng.randint(1, 5)):
        line = rng.choice(rng.choice([READS, WRITES])).format(
            a=rng.choice(["x", "buf", "turned"]), t=rng.choice(["buf", "turned"])
        )
        lines.insert(rng.randint(0, len(lines) - 3), line)
    between = [rng.choice([line, line, *BETWEEN]) for line in program.between]
    assert len(between) == CALLS
    return program._replace(step=lines, between=between, state=STATE)


def main(arguments: Sequence[str] | None = None) -> int:
    return fuzz_compile.main(arguments, "fuzz_hidden", __doc__, written)


if __name__ == "__main__":
    sys.exit(main())
