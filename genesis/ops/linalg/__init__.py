"""Linear algebra, by NumPy's LAPACK on the host: `solving` `factoring` `spectral` `norms` `products`; the older names in
`older`. ``genesis.linalg`` is its table of contents.
"""

from __future__ import annotations

from genesis.ops.linalg import factoring, norms, older, products, solving, spectral

MODULES = (factoring, norms, products, solving, spectral)
# what `genesis.linalg` offers: `linalg_solve` as `solve`
FUNCTIONS = {
    name.removeprefix("linalg_"): function
    for module in MODULES
    for name, function in vars(module).items()
    if name.startswith("linalg_")
}

__all__ = ["FUNCTIONS", "MODULES", "factoring", "norms", "older", "products", "solving", "spectral"]
