"""What is wrong with a gradient, in words: compare it with the numerical one and name the repair.

Each hypothesis is a function of the `Evidence` that returns a `Diagnosis` or None. They are tried from the one that
explains most to the one that explains least; the first that fits *exactly* (to 1e-3, what differences of float32 code
give) is said. A hypothesis about what backward saved is proved: it is run again with the repair made.
"""

from __future__ import annotations

from collections.abc import Callable

from genesis.autograd.checking import wrong_numbers as numbers
from genesis.autograd.checking import wrong_places as places
from genesis.autograd.checking.evidence import Diagnosis, Evidence


def diagnose(e: Evidence) -> Diagnosis:
    """The first hypothesis that fits."""
    for hypothesis in HYPOTHESES:
        found = hypothesis(e)
        if found is not None:
            return found
    return numbers.unexplained(e)


HYPOTHESES: list[Callable[[Evidence], Diagnosis | None]] = [
    numbers.spurious,
    places.missing,
    places.misplaced,
    places.wrong_shape,
    places.ignores_seed,
    numbers.conjugate,
    numbers.unchanged,
    places.outputs,
    places.reduced,
    numbers.plain_region,
    places.repaired,
    numbers.factor,
    places.rearranged,
    numbers.lost_factor,
    numbers.region,
    numbers.term,
]
