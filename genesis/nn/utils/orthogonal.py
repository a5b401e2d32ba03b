"""Weights that are orthogonal matrices, whatever their parameters are."""

from __future__ import annotations

from typing import Any

from genesis import linalg
from genesis.base.dtypes import finfo
from genesis.base.errors import ArgumentValueError, ShapeError, message
from genesis.core.call.refusal import explain_all
from genesis.core.graph.modes import no_grad
from genesis.nn.module import Module
from genesis.nn.utils.parametrize import register_parametrization, weight_of
from genesis.ops.creation.create import zeros_like
from genesis.ops.creation.random import randn
from genesis.ops.creation.sequences import eye
from genesis.ops.linalg.qr import geqrf
from genesis.ops.shapes.join import cat

MAPS = ("matrix_exp", "cayley", "householder")


class _Orthogonal(Module):
    """A matrix with orthonormal columns (or rows, if it is wide) out of any matrix; with a ``base``, as a factor of it."""

    base: Any

    def __init__(self, shape: Any, orthogonal_map: str, use_trivialization: bool) -> None:
        super().__init__()
        self.shape, self.orthogonal_map, self.use_trivialization = shape, orthogonal_map, use_trivialization
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Any) -> Any:  # noqa: N803
        wide = X.shape[-2] < X.shape[-1]
        x = X.mT if wide else X
        q = _reflected(x) if self.orthogonal_map == "householder" else _rotated(x, self.orthogonal_map)
        q = self.base @ q if self.use_trivialization else q
        return q.mT if wide else q

    @no_grad()
    def right_inverse(self, Q: Any) -> Any:  # noqa: N803
        if Q.shape != self.shape:
            raise ShapeError(message("orthogonal", f"the weight has the shape {list(self.shape)}", [("Q", Q._spec())]))
        wide = Q.shape[-2] < Q.shape[-1]
        q = Q.mT if wide else Q
        if self.use_trivialization:
            self.base = _completed(q)
            return _diagonal(zeros_like(Q), lambda d: d - 1)
        if self.orthogonal_map != "householder":
            raise NotImplementedError(
                message("orthogonal", f"{self.orthogonal_map} cannot be assigned to", hint="use_trivialization=True")
            )
        a, tau = geqrf(q)
        signs = 1.0 - 2.0 * (tau == 0).to(a.dtype)
        a = _diagonal(a, lambda d: d.sign() * signs)
        return a.mT if wide else a


def _diagonal(x: Any, change: Any) -> Any:
    """A matrix with another diagonal."""
    x = x.clone()
    d = x.diagonal(dim1=-2, dim2=-1)
    d.copy_(change(d.clone()))
    return x


def _rotated(x: Any, kind: str) -> Any:
    """The first columns of a rotation, whose generator is the skew part of a lower triangle."""
    n, k = x.shape[-2:]
    lower = x.tril()
    if n != k:
        lower = cat([lower, lower.new_zeros(*x.shape[:-1], n - k)], -1)
    a = lower - lower.mH
    if kind == "matrix_exp":
        return linalg.matrix_exp(a)[..., :k]
    one = eye(n, dtype=a.dtype, device=a.device)
    return linalg.solve(one - 0.5 * a, one + 0.5 * a)[..., :k]


def _reflected(x: Any) -> Any:
    """A product of reflections, whose vectors are the columns below the diagonal; that has the signs."""
    below = x.tril(-1)
    q = linalg.householder_product(below, 2.0 / (1.0 + (below * below).sum(-2)))
    return q * x.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)


def _completed(q: Any) -> Any:
    """A square orthogonal matrix that begins with the columns of one that is about orthogonal."""
    n, k = q.shape[-2:]
    if n == k and _is_orthogonal(q):
        return q.clone()
    if n != k:
        q = cat([q, randn(*q.shape[:-1], n - k, dtype=q.dtype, device=q.device)], -1)
    basis, r = linalg.qr(q)
    return basis * r.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


def _is_orthogonal(q: Any) -> bool:
    n = q.shape[-1]
    error = (q.mH @ q - eye(n, dtype=q.dtype, device=q.device)).abs()
    return not error.numel() or float(error.max()) <= 10 * n * finfo(q.dtype).eps


def orthogonal(
    module: Any, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Any:
    """Keep a weight an orthogonal matrix: its columns are orthonormal, or its rows, if it is wide (Lezcano-Casado 2019).

    Args:
        orthogonal_map: "matrix_exp", "cayley" or "householder"; None is the first for square matrices and complex ones,
            the last for others
        use_trivialization: parametrize near the weight as it is, which then can be assigned to

    Raises:
        ValueError: no such weight, fewer than two dimensions, or an unknown map

    >>> import genesis
    >>> layer = genesis.nn.utils.parametrizations.orthogonal(genesis.nn.Linear(3, 5))
    >>> genesis.allclose(layer.weight.T @ layer.weight, genesis.eye(3), atol=1e-5)
    True
    """
    weight = weight_of("orthogonal", module, name)
    if weight.ndim < 2:
        raise ArgumentValueError(message("orthogonal", f"needs a matrix or several, got {weight.ndim} dimensions"))
    if orthogonal_map is None:
        square = weight.shape[-2] == weight.shape[-1]
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in MAPS:
        raise ArgumentValueError(
            message("orthogonal", f"unknown orthogonal_map {orthogonal_map!r}", hint=", ".join(MAPS))
        )
    if weight.is_complex() and orthogonal_map == "householder":
        raise ArgumentValueError(message("orthogonal", "householder is for real weights", hint="matrix_exp"))
    made = _Orthogonal(weight.shape, orthogonal_map, bool(use_trivialization))
    return register_parametrization(module, name, made, unsafe=True)


explain_all(globals(), "orthogonal")
