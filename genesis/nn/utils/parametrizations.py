"""Parametrizations of weights: a norm apart from the direction, a largest singular value of one, orthogonal matrices
(`orthogonal`).
"""

from __future__ import annotations

from typing import Any

from genesis.base.errors import ArgumentError, ArgumentValueError, DimError, message
from genesis.core.call.refusal import explain_all
from genesis.core.graph.modes import no_grad
from genesis.nn.module import Module
from genesis.nn.utils.orthogonal import orthogonal
from genesis.nn.utils.parametrize import register_parametrization, weight_of
from genesis.ops.learning.norm import normalize


def norm_except_dim(x: Any, dim: int | None) -> Any:
    """The 2-norms of what belongs to each index of a dimension, which stays; of all, if that is None or -1."""
    if dim is None or dim == -1:
        return x.norm()
    others = [d for d in range(x.ndim) if d != dim % max(x.ndim, 1)]
    return x.norm(dim=others, keepdim=True) if others else x.abs()


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Any, weight_v: Any) -> Any:
        return weight_v * (weight_g / norm_except_dim(weight_v, self.dim))

    def right_inverse(self, weight: Any) -> tuple[Any, Any]:
        return norm_except_dim(weight, self.dim), weight


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Make a weight $g v / |v|$, with the norms $g$ and the directions $v$ as parameters (Salimans and Kingma 2016).

    Args:
        dim: norms belong to the indices of this dimension; one norm of all, if it is None

    >>> from genesis import nn
    >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(20, 40))
    >>> layer.parametrizations.weight.original0.shape, layer.parametrizations.weight.original1.shape
    (genesis.Size([40, 1]), genesis.Size([40, 20]))
    """
    _check_dim("weight_norm", weight_of("weight_norm", module, name), dim)
    return register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


def _check_dim(name: str, weight: Any, dim: Any) -> None:
    if dim is not None and (not isinstance(dim, int) or isinstance(dim, bool)):
        raise ArgumentError(message(name, f"dim must be an integer or None, got {type(dim).__name__}"))
    if dim is not None and not -max(weight.ndim, 1) <= dim < max(weight.ndim, 1):
        raise DimError(message(name, f"dim {dim} is out of range for {weight.ndim} dimensions"))


def as_matrix(weight: Any, dim: int) -> Any:
    """A weight as a matrix with a row for each index of a dimension."""
    return weight.movedim(dim, 0).flatten(1) if dim else weight.flatten(1)


@no_grad()
def power_iterations(matrix: Any, u: Any, v: Any, times: int, eps: float) -> None:
    """Bring ``u`` and ``v``, in place, nearer to the singular vectors of the largest singular value."""
    for _ in range(times):
        u.copy_(normalize(matrix.mv(v), dim=0, eps=eps))
        v.copy_(normalize(matrix.mH.mv(u), dim=0, eps=eps))


def random_direction(weight: Any, size: int, eps: float) -> Any:
    """A vector of length 1."""
    return normalize(weight.detach().new_empty(size).normal_(0, 1), dim=0, eps=eps)


class _SpectralNorm(Module):
    def __init__(self, weight: Any, n_power_iterations: int, dim: int, eps: float) -> None:
        super().__init__()
        self.dim, self.eps = dim % max(weight.ndim, 1), eps
        if weight.ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = as_matrix(weight.detach(), self.dim)
            self.register_buffer("_u", random_direction(weight, matrix.shape[0], eps))
            self.register_buffer("_v", random_direction(weight, matrix.shape[1], eps))
            power_iterations(matrix, self._u, self._v, 15, eps)

    def forward(self, weight: Any) -> Any:
        if weight.ndim == 1:  # a vector has one singular value, its norm
            return normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            power_iterations(matrix, self._u, self._v, self.n_power_iterations, self.eps)
        u, v = self._u.clone(), self._v.clone()  # they are written to before backward, in the next forward
        return weight / u.vdot(matrix.mv(v))

    def right_inverse(self, value: Any) -> Any:
        return value


def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
    """Divide a weight by its largest singular value, as far as power iterations know it (Miyato et al. 2018).

    Args:
        n_power_iterations: at each forward in training mode; the singular vectors go on from the last
        dim: the dimension that becomes the rows of the matrix; None is 0, or 1 for transposed convolutions

    >>> import genesis
    >>> from genesis import nn
    >>> layer = nn.utils.parametrizations.spectral_norm(nn.Linear(20, 40))
    >>> for _ in range(50): _ = layer.weight
    >>> u, v = layer.parametrizations.weight[0]._u, layer.parametrizations.weight[0]._v
    >>> bool((u @ layer.weight @ v - 1).abs() < 1e-3)
    True
    """
    weight = weight_of("spectral_norm", module, name)
    rows = default_rows(module) if dim is None else dim
    _check_dim("spectral_norm", weight, rows)
    check_iterations(n_power_iterations)
    return register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, rows, eps))


def default_rows(module: Any) -> int:
    """The dimension of outputs in a weight."""
    return int(type(module).__name__.startswith("ConvTranspose"))


def check_iterations(times: Any) -> None:
    if not isinstance(times, int) or times <= 0:
        raise ArgumentValueError(message("spectral_norm", f"n_power_iterations must be at least 1, got {times!r}"))


explain_all(globals(), "weight_norm", "spectral_norm")

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]
