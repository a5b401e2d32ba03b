"""Probability distributions: samples, with gradients where there are any, log probabilities, entropies, divergences.

`real_line` `positive` `interval`        the distributions: of real numbers
`counts` `choices` `multivariate`        ... of integers, of choices, of vectors and matrices
`transformed` `combined` `relaxed`       ... made of others
`constraints` `constraint_registry`      sets of values           `transforms`            functions with Jacobians
`kl`                                     divergences              `distribution` `scalar` what all, and most, have
"""

from __future__ import annotations

from functools import partial as _partial
from typing import TYPE_CHECKING

from genesis.base.imports import of_pytorch as _of_pytorch
from genesis.distributions import constraints, transforms
from genesis.distributions.choices import *
from genesis.distributions.combined import *
from genesis.distributions.constraint_registry import biject_to, transform_to
from genesis.distributions.counts import *
from genesis.distributions.distribution import Distribution, ExponentialFamily
from genesis.distributions.interval import *
from genesis.distributions.kl import kl_divergence, register_kl
from genesis.distributions.multivariate import *
from genesis.distributions.positive import *
from genesis.distributions.real_line import *
from genesis.distributions.relaxed import *
from genesis.distributions.transformed import *
from genesis.distributions.transforms import *

if not TYPE_CHECKING:  # who checks types knows all there is
    __getattr__ = _partial(_of_pytorch, __name__)  # names that only PyTorch has
