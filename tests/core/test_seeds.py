"""Seeds of the default generator."""

from __future__ import annotations

import genesis


def drawn(seed):
    genesis.manual_seed(seed)
    return tuple(genesis.rand(4).tolist())


def test_every_seed_has_numbers_of_its_own():
    seeds = (0, -1, -2, 2**63, 2**63 + 1, 2**63 + 2, 2**64 - 3)
    assert len({drawn(seed) for seed in seeds}) == len(seeds)
    assert drawn(-3) == drawn(2**64 - 3)  # seeds are counted modulo 2**64


def test_numbers_that_somebody_else_makes_are_passed_over():
    genesis.manual_seed(7)
    first, second = genesis.rand(8), genesis.rand(8)
    genesis.manual_seed(7)
    assert genesis.default_generator.reserve(8) == (7, 0)
    assert genesis.rand(8).tolist() == second.tolist() != first.tolist()
