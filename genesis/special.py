"""Special functions, by the names that they have in PyTorch; those of `genesis` itself among them."""

from __future__ import annotations

import genesis
from genesis.ops.pointwise.special import normal_cdf
from genesis.ops.transcendental.functions import FUNCTIONS

_SAME = (
    "digamma", "erf", "erfc", "erfinv", "exp2", "expm1", "log1p", "log_softmax", "logit", "logsumexp", "polygamma",
    "round", "sinc", "softmax", "xlogy",
)  # fmt: skip

globals().update({name: getattr(genesis, name) for name in _SAME})
globals().update(FUNCTIONS)
expit, gammaln, psi, ndtr = genesis.sigmoid, genesis.lgamma, genesis.digamma, normal_cdf

__all__ = sorted([*_SAME, *FUNCTIONS, "expit", "gammaln", "ndtr", "psi"])
