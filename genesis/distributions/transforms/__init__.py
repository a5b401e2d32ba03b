"""Transforms of values with the logarithm of their Jacobian's determinant, and compositions, inverses and parts of them.

`transform` what all have    `elementwise` of each element    `vectors` of vectors and matrices    `dimensions` of shapes
"""

from __future__ import annotations

from genesis.distributions.transforms.dimensions import (
    CatTransform,
    IndependentTransform,
    ReshapeTransform,
    StackTransform,
)
from genesis.distributions.transforms.elementwise import (
    AbsTransform,
    AffineTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    PowerTransform,
    SigmoidTransform,
    SoftplusTransform,
    TanhTransform,
)
from genesis.distributions.transforms.transform import ComposeTransform, Transform, identity_transform
from genesis.distributions.transforms.vectors import (
    CorrCholeskyTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    SoftmaxTransform,
    StickBreakingTransform,
)

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "CatTransform",
    "ComposeTransform",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "ExpTransform",
    "IndependentTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "TanhTransform",
    "Transform",
    "identity_transform",
]
