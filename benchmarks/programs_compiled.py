"""Public programs compiled: are their losses those of eager Genesis, and do they take less time?

    python benchmarks/programs_compiled.py CHECKOUTS [--only TEXT ...] [--steps 20] [--how modules|steps] [--said]

The programs of programs.py, each run by `genesis run --torch` as it is and with `genesis.compile`: around each module that is not called by another
one ("modules"), or around its training steps, which outlined.py makes functions of ("steps"). Random numbers are the framework's own, dropout is on.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import tempfile
from pathlib import Path

from programs import EQUAL, Compared, Program, apart, numbers, programs, run
from tqdm import tqdm

SLOWER = 1.2  # of the processor time of a step as it is: what is told as slower


class Result(Compared):
    """A program as it is, and compiled."""

    @property
    def ratio(self) -> float | None:
        """Processor time of a step compiled, to that of one as it is: the median of the last half."""
        both = [_last(run.get("times", [])) for run in (self.found, self.expected)]
        return both[0] / both[1] if both[0] is not None and both[1] else None

    @property
    def functions(self) -> list[str]:
        return self.found.get("compiled", [])

    @property
    def verdict(self) -> str:
        if self.expected["error"]:
            return "not run: " + str(self.expected["error"])
        if not self.functions:
            return "nothing to compile"
        if self.found["error"]:
            return "fails: " + str(self.found["error"])
        if len(self.expected["losses"]) != len(self.found["losses"]):
            return f"fails: {len(self.found['losses'])} losses, {len(self.expected['losses'])} as it is"
        if not self.expected["losses"] and apart(*[numbers(r["printed"]) for r in (self.expected, self.found)]) > EQUAL:
            return "prints other numbers"
        if self.difference <= EQUAL:
            return "equal"
        return f"equal, {self.own:.1e} disturbed" if self.difference <= 3 * self.own else "differs"


def _last(times: list[float]) -> float | None:
    steps = [b - a for a, b in itertools.pairwise(times)]
    return statistics.median(steps[len(steps) // 2 :]) if len(steps) > 3 else None


def compared(program: Program, checkout: Path, options: argparse.Namespace) -> Result:
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder) / "weights.npz"
        eager = run(program, checkout, weights, options, True, compiled=f"eager {options.how}")
        if eager["error"]:
            return Result(program, eager, {"losses": [], "error": None})
        result = Result(program, eager, run(program, checkout, weights, options, True, compiled=options.how))
        if result.verdict == "differs":
            how = f"eager {options.how}"
            result.disturbed = run(program, checkout, weights, options, True, disturbed=True, compiled=how)
        return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", type=Path)
    parser.add_argument(
        "--only", nargs="+", default=[""], help="programs whose repository and path contain one of these"
    )
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=120.0, help="how long a program may run")
    parser.add_argument("--how", choices=("modules", "steps"), default="modules")
    parser.add_argument("--said", action="store_true", help="print what compiled functions say of themselves")
    options = parser.parse_args()
    results = []
    for program in tqdm(list(programs(options.only)), disable=not sys.stderr.isatty()):
        checkout = options.checkouts / program.repository.replace("/", "+")
        if not checkout.is_dir():
            print(f"no folder {checkout}", file=sys.stderr)
            continue
        result = compared(program, checkout, options)
        results.append(result)
        ratio = "" if result.ratio is None else f"{result.ratio:.2f}"
        print(f"{program.repository}/{program.path}: {result.verdict} {result.difference:.1e} {ratio}", flush=True)
        if options.said:
            print("\n".join([result.found.get("said", ""), *result.functions]), flush=True)
    ran = [r for r in results if not r.verdict.startswith("not")]
    equal = [r for r in ran if r.verdict.startswith("equal")]
    whole = [r for r in equal if not any("not compiled" in text for text in r.functions)]
    slower = [r for r in equal if r.ratio is not None and r.ratio > SLOWER]
    print(f"{len(ran)} ran, {len(equal)} equal, {len(whole)} all compiled, {len(slower)} slower than {SLOWER} of eager")
    return 0


if __name__ == "__main__":
    sys.exit(main())
