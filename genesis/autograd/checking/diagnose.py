"""What is wrong with a gradient, in words: compare it with the numerical one and name the repair.

Each hypothesis is a function of the `Evidence` that returns a `Diagnosis` or None. They are tried from the one that
explains most to the one that explains least; the first that fits *exactly* (to 1e-3, what differences of float32 code
give) is said. A hypothesis about what backward saved is proved: it is run again with the repair made.
"""

from __future__ import annotations

from collections.abc import Callable

from genesis.autograd.checking import wrong_numbers as numbers
from genesis.autograd.checking import wrong_places
from genesis.autograd.checking.evidence import Diagnosis, Evidence


def diagnose(e: Evidence) -> Diagnosis:
    """The first hypothesis that fits."""
    for hypothesis in HYPOTHESES:
        diagnosis = hypothesis(e)
        if diagnosis is not None:
            return diagnosis
    return numbers.unexplained(e)


HYPOTHESES: list[Callable[[Evidence], Diagnosis | None]] = [
    numbers.spurious,
    wrong_places.missing,
    wrong_places.misplaced,
    wrong_places.wrong_shape,
    wrong_places.ignores_seed,
    numbers.conjugate,
    numbers.unchanged,
    wrong_places.outputs,
    wrong_places.reduced,
    numbers.plain_region,
    wrong_places.repaired,
    numbers.factor,
    wrong_places.rearranged,
    numbers.lost_factor,
    numbers.region,
    numbers.term,
]
