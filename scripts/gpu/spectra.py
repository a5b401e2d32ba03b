"""Eigenvectors and singular vectors beside the CPU's: another library gives them other signs and phases, so that what is compared
is what these have no part in, with its gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import genesis
from genesis import linalg

# ops whose results, or gradients of these, depend on what is nobody's
FREE = {
    "hermitian_eigenvectors",
    "singular_vectors",
    "linalg_eigh",
    "linalg_svd",
    "svd",
    "svd_lowrank",
    "pca_lowrank",
    "lobpcg",
}


def projections(x: Any) -> Any:
    """Of the two largest eigenvalues."""
    values, vectors = linalg.eigh(x + x.mH)
    kept = vectors[..., -2:]
    return values, kept @ kept.mH


def hidden(full: bool) -> Callable[[Any], Any]:
    def parts(x: Any) -> Any:
        u, s, vh = linalg.svd(x, full_matrices=full)
        k = s.shape[-1]
        return s, (u[..., :k] * s.sqrt().unsqueeze(-2).to(x.dtype)) @ vh[..., :k, :], u.mH @ u, vh @ vh.mH

    return parts


CALLS: dict[
    str, tuple[Callable[[Any], Any], tuple[int, ...], bool]
] = {  # a function, a shape, whether there are gradients
    "eigh": (projections, (6, 6), True),
    "eigh of a batch": (projections, (5, 6, 6), True),
    "eigh of large ones": (projections, (2, 70, 70), False),
    "svd": (hidden(False), (7, 4), True),
    "svd of wide ones": (hidden(False), (4, 7), False),
    "svd of a batch": (hidden(False), (5, 7, 4), True),
    "svd of large ones": (hidden(False), (2, 70, 40), False),
    "whole svd": (hidden(True), (7, 4), False),
    "whole svd of a batch": (hidden(True), (5, 4, 7), False),
}


def spectra_of_matrices() -> str:
    """In four dtypes."""
    generator, tolerances = (
        np.random.default_rng(),
        {"float32": 3e-4, "float64": 1e-9, "complex64": 3e-4, "complex128": 1e-9},
    )
    for dtype, tolerance in tolerances.items():
        for name, (function, shape, graded) in CALLS.items():
            x = generator.normal(size=shape) + 1j * generator.normal(size=shape)
            host = genesis.tensor(x if dtype.startswith("complex") else x.real).to(getattr(genesis, dtype))
            for a, b in zip(computed(function, host.to("cuda"), graded), computed(function, host, graded), strict=True):
                worst, most = (a.cpu() - b).abs().max().item(), b.abs().max().item()
                assert worst <= tolerance * max(most, 1.0), f"{name} {dtype}: differs by up to {worst}"
    return f"{len(CALLS) * len(tolerances)} calls"


def computed(function: Callable[[Any], Any], x: Any, graded: bool) -> list[Any]:
    x = x.detach().requires_grad_(graded)
    results = function(x)
    if graded:
        sum([y.abs().square().sum() * (i + 1) for i, y in enumerate(results)]).backward()  # type: ignore[union-attr]
    return [y.detach() for y in results] + ([x.grad] if graded else [])
