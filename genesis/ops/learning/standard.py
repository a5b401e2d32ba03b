"""What normalisations are made of: less the mean, over the spread about it, or over the root mean square.

Each is computed in the next longer format, of short ones block by block, and rounded once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.arrays.protocol import Array
from genesis.arrays.spec import Spec
from genesis.core.call.halves import F32, F64, HALVES
from genesis.core.call.kinds import ALL_DIMS, Rules, case, normalize_dims, primitive, reduced_shape
from genesis.core.call.op import samples
from genesis.core.graph.tensor import Tensor
from genesis.ops.reductions.along import EXACT, average, axes, check_floating, count, restore, rounded, widened
from genesis.ops.pointwise.pieces import in_row_blocks, row_blocks

_SHORT = (*HALVES, F32)


def _dims_of(name: str, kinds: str) -> Any:
    def prepare(input: Tensor, dim: Any, *eps: float) -> tuple[Any, ...]:
        check_floating(name, input, kinds)
        return input, normalize_dims(name, dim, input.ndim) or ALL_DIMS[input.ndim], *eps

    return prepare


def _over_dims(name: str, vjp: Rules, infer: Any, dtypes: str = "f", **options: Any) -> Any:
    """Declare what normalisations are made of: in float32 under autocast on a GPU, no method."""
    kinds = "floating or complex" if "c" in dtypes else "floating"
    return primitive("reduction", vjp, infer=infer, prepare=_dims_of(name, kinds), dtypes=dtypes, method=False,
                     torch_name="", autocast="float32:gpu", **options)  # fmt: skip


def _infer_same(input: Spec, dim: Any, *eps: float) -> Spec:
    return input


def _infer_reduced(input: Spec, dim: Any, eps: float) -> Spec:
    return Spec(reduced_shape(input.shape, dim, True), input.dtype, input.device)


def _away(x: Any, dim: Any) -> Any:
    """x less its mean, which is a float64 number and a rest; a rest that may be rounding of the sum is none."""
    mean = np.add.reduce(x, axes(x, dim), EXACT[F64], None, True) / count(x.shape, dim)
    near = mean.astype(F64)
    rest = (mean - near).astype(F64)
    return (x - near) - np.where(np.abs(rest) < np.abs(near) * 2.0**-58, 0.0, rest)


def _wide_away(x: Any, dim: Any) -> Any:
    """The same of float32 numbers that are in float64, in their place."""
    x -= np.add.reduce(x, axes(x, dim), None, None, True) / count(x.shape, dim)
    return x


def _root(away: Any, dim: Any, eps: float, exact: Any) -> Any:
    """Summed in the format ``exact``."""
    mean = np.add.reduce(away * away, axes(away, dim), exact, None, True) / count(away.shape, dim)
    return np.sqrt(mean + eps)


@_over_dims("centered", {"input": lambda g, dim: centered(g, dim)}, _infer_same, jvp="linear")
def centered(input: Array, dim: Any) -> Any:
    """What is left of a tensor without its mean over ``dim``, $x - \\bar x$; of equal numbers zero.

    >>> import genesis
    >>> genesis.ops.learning.standard.centered(genesis.tensor([1., 2., 6.]), 0)
    tensor([-2., -1.,  3.])
    """
    if input.dtype in _SHORT:
        return in_row_blocks(lambda x: _wide_away(x, dim), input, dim)
    return _away(input, dim)


samples(centered, lambda t: [case(t(3, 4), 1), case(t(2, 3, 4), (0, 2)), case(t(4), 0), case(t(0, 3), 1)])


@_over_dims(
    "deviation",
    {"input": lambda g, input, out, dim: centered(input, dim) * _per_element(g, input, out, dim)},
    _infer_reduced,
)
def deviation(input: Array, dim: Any, eps: float) -> Any:
    """The spread about the mean, $\\sqrt{\\frac{1}{n} \\sum_i (x_i - \\bar x)^2 + eps}$; ``dim`` gets size 1.

    >>> import genesis
    >>> genesis.ops.learning.standard.deviation(genesis.tensor([[1., 7.]]), 1, 0.0)
    tensor([[3.]])
    """
    if input.dtype in _SHORT:
        return in_row_blocks(lambda x: _root(_wide_away(x, dim), dim, eps, None), input, dim, reduced=True)
    return rounded(_root(_away(input, dim), dim, eps, EXACT.get(input.dtype)), input.dtype)


samples(deviation, lambda t: [case(t(3, 4), 1, 1e-5), case(t(2, 3, 4), (0, 2), 0.5), case(t(4), 0, 0.1)])


def _per_element(g: Tensor, input: Tensor, out: Tensor, dim: Any) -> Tensor:
    return restore(g / (count(input.shape, dim) * out), input.shape, dim)


def moments_of_channels(x: Any) -> tuple[Any, Any]:
    """The mean and the variance of each channel (dim 1) of a float32 array, with the bits of the ops."""
    dims = (0, *range(2, x.ndim))
    away = in_row_blocks(lambda x: _wide_away(x, dims), x, dims)
    away *= away
    return average(x, dims, False), average(away, dims, False)


def standardized_and_deviation(x: Any, dim: Any, eps: float) -> tuple[Any, Any]:
    """Both of an array of at most 32 bits, for kernels that need both."""
    out, root = np.empty_like(x), np.empty(reduced_shape(x.shape, dim, True), x.dtype)
    for part in row_blocks(x, dim):
        away = _wide_away(x[part].astype(F64), dim)
        scale = _root(away, dim, eps, None)
        root[part] = scale
        away /= scale
        out[part] = away
    return out, root


def _standardized_rule(g: Tensor, input: Tensor, out: Tensor, dim: Any, eps: float) -> Tensor:
    along = restore((g * out).mean(dim, True), input.shape, dim)  # type: ignore[attr-defined]
    return (centered(g, dim) - out * along) / deviation(input, dim, eps)


@_over_dims("standardized", {"input": _standardized_rule}, _infer_same)
def standardized(input: Array, dim: Any, eps: float) -> Any:
    """With mean zero and spread one over ``dim``: `centered` over `deviation`.

    >>> import genesis
    >>> genesis.ops.learning.standard.standardized(genesis.tensor([1., 7.]), 0, 0.0)
    tensor([-1.,  1.])
    """
    if input.dtype in _SHORT:
        return standardized_and_deviation(input, dim, eps)[0]
    away = _away(input, dim)
    away /= _root(away, dim, eps, EXACT[F64]).astype(F64)
    return away


samples(standardized, lambda t: [case(t(3, 4), 1, 1e-5), case(t(2, 3, 4), (0, 2), 0.5), case(t(4), 0, 0.1)])


@_over_dims(
    "root_mean_square",
    {"input": lambda g, input, out, dim: input * _per_element(g, input, out, dim)},
    _infer_reduced,
    "fc",
)
def root_mean_square(input: Array, dim: Any, eps: float) -> Any:
    """$\\sqrt{\\frac{1}{n} \\sum_i x_i^2 + eps}$ over ``dim``, which stays with size 1.

    >>> import genesis
    >>> genesis.ops.learning.standard.root_mean_square(genesis.tensor([[1., 7.]]), 1, 0.0)
    tensor([[5.]])
    """
    x = widened(input)
    return rounded(_root(x, dim, eps, EXACT.get(x.dtype)), input.dtype)


samples(root_mean_square, lambda t: [case(t(3, 4), 1, 1e-5), case(t(2, 3, 4), (0, 2), 0.5), case(t(4), 0, 0.1)])

__all__: list[str] = []
