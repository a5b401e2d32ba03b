"""Random programs of every kind that there is for `genesis.compile`, as they are and compiled: the record of a long run.

    python -m genesis.testing.fuzz_compiled --programs 20000 --seed 3000000

The kinds take turns (`fuzz_compile`, `fuzz_training`, `fuzz_recipes`, `fuzz_hidden`, `fuzz_numbers`, `fuzz_short`,
`fuzz_changes`), and of each kind every fourth program, by a draw, is machine code, the others replays, which give the bits of calls. A wrong program is
printed when it is found, without what it does not need; the last lines say which seeds ran on which commit, how they ended, and how many were wrong.
"""

from __future__ import annotations

import gc
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from genesis.testing import (
    fuzz_changes,
    fuzz_compile,
    fuzz_hidden,
    fuzz_numbers,
    fuzz_recipes,
    fuzz_short,
    fuzz_training,
)
from genesis.testing.command_line import options, tell
from genesis.testing.fuzz_compile import Program

KINDS: dict[str, Callable[[int], Program]] = {
    "fuzz_compile": fuzz_compile.written,
    "fuzz_training": fuzz_training.written,
    "fuzz_recipes": fuzz_recipes.written,
    "fuzz_hidden": fuzz_hidden.written,
    "fuzz_numbers": fuzz_numbers.written,
    "fuzz_short": fuzz_short.written,
    "fuzz_changes": fuzz_changes.written,
}
NATIVE = 0.25  # of the programs are machine code


def is_native(kind: str, seed: int) -> bool:
    return random.Random(f"native {kind} {seed}").random() < NATIVE


def check(programs: int, seed: int) -> tuple[Counter[str], int]:
    """Counts of how the programs of all kinds ended, and how many were wrong."""
    counts, wrong = Counter[str](), 0
    for number in range(programs):
        kind, own = list(KINDS)[number % len(KINDS)], seed + number // len(KINDS)
        native = is_native(kind, own)
        ended, failed = fuzz_compile.check(1, own, native, write=KINDS[kind])
        counts += Counter({f"{kind}, {'machine code' if native else 'replayed'}": 1}) + ended
        wrong += len(failed)
        for _, program in failed:
            print(f"wrong: {kind}, {'machine code' if native else 'replayed'}, {dict(ended)}")
            fuzz_compile.show(own, program, native)
        if number % 10 == 9:
            gc.collect()  # a compilation looks through all objects, those too that nothing holds any more
        if number % 500 == 499:
            print(f"{time.strftime('%X')}: {number + 1} programs, {wrong} wrong", flush=True)
    return counts, wrong


def commit() -> str:
    """The commit of this package, and whether its files were changed since."""

    def git(*words: str) -> str:
        where = str(Path(__file__).parents[1])
        return subprocess.run(["git", "-C", where, *words], capture_output=True, text=True, check=True).stdout.strip()

    try:
        return git("rev-parse", "HEAD") + (" with changes" if git("status", "--porcelain", ".") else "")
    except (OSError, subprocess.CalledProcessError):
        return "an unknown commit"


def main(arguments: Sequence[str] | None = None) -> int:
    asked, before = options("fuzz_compiled", __doc__, arguments, 20000), commit()
    counts, wrong = check(asked.programs, asked.seed)
    tell(counts)
    last = asked.seed + (asked.programs - 1) // len(KINDS)
    print(f"{asked.programs} programs, seeds {asked.seed} to {last} of each kind, {wrong} wrong, at {before}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
