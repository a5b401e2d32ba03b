"""Probability distributions: samples, with gradients where there are any, log probabilities, entropies, divergences.

`continuous` `discrete` `multivariate`   the distributions        `combined`      of others: transformed, joined, mixed
`constraints` `constraint_registry`      sets of values           `transforms`    functions with Jacobians
`kl`                                     divergences              `distribution`  what all have
"""

from __future__ import annotations

from genesis.distributions import constraints, transforms
from genesis.distributions.combined import *
from genesis.distributions.constraint_registry import biject_to, transform_to
from genesis.distributions.continuous import *
from genesis.distributions.discrete import *
from genesis.distributions.distribution import Distribution, ExponentialFamily
from genesis.distributions.kl import kl_divergence, register_kl
from genesis.distributions.multivariate import *
from genesis.distributions.transforms import *
