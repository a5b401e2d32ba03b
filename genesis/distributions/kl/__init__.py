"""Divergences of Kullback and Leibler, $KL(p \\| q) = E_p[\\ln p - \\ln q]$, by the classes of both: `table` finds the
function, those of `one_family` and of `two_families` are registered there.
"""

from __future__ import annotations

from genesis.distributions.kl import one_family, two_families
from genesis.distributions.kl.table import kl_divergence, register_kl

__all__ = ["kl_divergence", "one_family", "register_kl", "two_families"]
