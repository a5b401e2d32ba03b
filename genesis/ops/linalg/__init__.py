"""Linear algebra, by NumPy's LAPACK on the host; ``genesis.linalg`` is its table of contents.

`cholesky` `qr` `lu`                     factors
`solving` `triangular` `determinants`    systems of equations, inverses
`eigen` `svd` `least_squares`            spectra, and what they are for
`norms` `products` `older`               `older`: names that are older than ``genesis.linalg``
"""

from __future__ import annotations

from genesis.ops.linalg import (
    cholesky,
    determinants,
    eigen,
    least_squares,
    lu,
    norms,
    older,
    products,
    qr,
    solving,
    svd,
    triangular,
)

MODULES = (cholesky, determinants, eigen, least_squares, lu, norms, products, qr, solving, svd, triangular)
# what `genesis.linalg` offers: `linalg_solve` as `solve`
FUNCTIONS = {
    name.removeprefix("linalg_"): function
    for module in MODULES
    for name, function in vars(module).items()
    if name.startswith("linalg_")
}

__all__ = [
    "FUNCTIONS",
    "MODULES",
    "cholesky",
    "determinants",
    "eigen",
    "least_squares",
    "lu",
    "norms",
    "older",
    "products",
    "qr",
    "solving",
    "svd",
    "triangular",
]
