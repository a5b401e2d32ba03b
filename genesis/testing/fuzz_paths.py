"""The same random programs on the fast and on the general path of every call: the same values, gradients and errors, to
the bit.

    python -m genesis.testing.fuzz_paths --programs 2000 --seed 0

Any mode that is open, in any thread, sends all ops along the general path (`core/call/dispatch.py`); that may change
nothing but the time.
Half of them run in anomaly mode, which also stands between ops and their kernels. The programs are those of `fuzz`,
`fuzz_hooks` and `fuzz_pytorch`.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import genesis
from genesis.core.graph.switches import ACTIVE
from genesis.testing import fuzz as views
from genesis.testing import fuzz_hooks
from genesis.testing.command_line import options
from genesis.testing.fuzz_pytorch import error_of, quiet, shown
from genesis.testing.fuzz_pytorch_programs import program

Difference = tuple[int, str, str, str]  # seed, family, the first thing that differs, by each path


@contextlib.contextmanager
def general_path() -> Iterator[None]:
    """Inside, every op takes the general path, as while a mode is open."""
    ACTIVE.append(general_path)
    try:
        yield
    finally:
        ACTIVE.pop()


def _of_views(seed: int) -> list[str]:
    done = views.run(views.Writer(seed).program(14), seed)
    return [done.kind, done.detail, *done.refusals]


def _of_hooks(seed: int) -> list[str]:
    lines = fuzz_hooks.Writer(seed).program(14)
    record = fuzz_hooks.run(genesis, lines)
    return [
        "all of it ran" if record.refused is None else f"refused: {lines[record.refused]}",
        *map(repr, record.state.items()),
        *map(repr, record.calls),
    ]


def _of_statements(seed: int) -> list[str]:
    scope: dict[str, Any] = {"T": genesis, "seen": []}
    errors = [f"{text}: {_told(error_of(text, scope))}" for text in program(seed)]
    return [*errors, *(f"{name}: {shown(value)}" for name, value in scope.items() if name not in ("T", "__builtins__"))]


def _told(error: Exception | None) -> str:
    """An error without addresses, and without the lines that lost history before it in this process."""
    return (
        ""
        if error is None
        else re.sub(r"0x[0-9a-f]+|\n  history was last cut .*", "", f"{type(error).__name__}: {error}")
    )


FAMILIES: tuple[Callable[[int], list[str]], ...] = (
    _of_views,
    _of_hooks,
    _of_statements,
    _of_statements,
    _of_statements,
)


def compare(seed: int) -> tuple[str, str] | None:
    """Run one program on both paths; what each had at the first difference, nothing if there is none."""
    run = FAMILIES[seed % len(FAMILIES)]
    with quiet():
        fast = run(seed)
        with general_path() if seed % 2 else genesis.autograd.set_detect_anomaly(True, check_nan=False):
            general = run(seed)
    for a, b in zip([*fast, "the end"], [*general, "the end"], strict=False):
        if a != b:
            return a, b
    return None


def fuzz(programs: int, seed: int = 0) -> list[Difference]:
    """The programs among so many random ones that differ."""
    differing = []
    for number in range(seed, seed + programs):
        difference = compare(number)
        if difference is not None:
            differing.append((number, FAMILIES[number % len(FAMILIES)].__name__, *difference))
    return differing


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare as many programs as asked for, print what differs."""
    asked = options("fuzz_paths", __doc__, arguments, 2000)
    differing = fuzz(asked.programs, asked.seed)
    for number, family, fast, general in differing[:20]:
        print(f"seed {number} ({family})\n  fast:    {fast}\n  general: {general}")
    print(f"{asked.programs} programs from seed {asked.seed}: {len(differing)} differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())


__all__ = ["compare", "fuzz", "general_path", "main"]
