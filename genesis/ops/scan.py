"""Running reductions along a dimension."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from genesis.arrays.protocol import Array
from genesis.arrays.spec import Spec
from genesis.base import dtypes
from genesis.core.dispatch import HALVES
from genesis.core.kinds import case, composite, fails, normalize_dim, primitive
from genesis.core.tensor import Tensor

_usual = lambda t: [case(t(3, 4), 1), case(t(3, 4), 0), case(t(2, 3), -1), case(t(), 0), case(t(0, 3), 0)]  # noqa: E731
_range = (lambda t: case(t(2, 3), 2), IndexError, "dim 2 is out of range for 2 dimensions")


def _prepared(name: str) -> Any:
    def prepare(input: Tensor, dim: int, dtype: Any) -> tuple[Any, ...]:
        mine = input._array.dtype
        wide = dtypes.as_np(dtype) if dtype is not None else np.dtype(np.int64) if mine.kind in "iub" else mine
        return input, normalize_dim(name, dim, input.ndim), wide

    return prepare


def _infer(input: Spec, dim: int, dtype: Any) -> Spec:
    return Spec(input.shape, dtype, input.device)


def _scan(ufunc: Any, x: Any, dim: int, dtype: Any) -> Any:
    if not x.ndim:
        return x.astype(dtype)
    wide = np.float32 if dtype in HALVES else dtype
    return ufunc.accumulate(x, dim, wide).astype(dtype, copy=False)


def reversed_cumsum(g: Tensor, dim: int) -> Tensor:
    return g.flip(dim).cumsum(dim).flip(dim) if g.ndim else g


@primitive("scan", {"input": lambda g, dim: reversed_cumsum(g, dim)}, infer=_infer, prepare=_prepared("cumsum"), dtypes="fcib",
           samples=_usual, fails=fails(_range), autocast="float32")  # fmt: skip
def cumsum(input: Array, dim: int, *, dtype: Any = None) -> Any:
    """Running sum along ``dim``, $y_i = x_1 + ... + x_i$; integers give int64.

    Raises:
        IndexError: a dim out of range

    >>> import genesis
    >>> genesis.cumsum(genesis.tensor([1., 2., 3.]), dim=0)
    tensor([1., 3., 6.])
    """
    return _scan(np.add, input, dim, dtype)


def _cumprod_rule(g: Any, input: Any, out: Any, dim: int) -> Any:
    if not input.ndim:
        return g
    if input.is_meta or not bool((input == 0).any()):
        return reversed_cumsum(g * out, dim) / input
    return _cumprod_with_zeros(g, input, dim)


def _cumprod_with_zeros(g: Tensor, x: Tensor, dim: int) -> Tensor:
    """d y_j / d x_i is the product of all x up to j but x_i: computed as such, in O(n^2)."""
    from genesis.ops.join import stack

    x, g = x.movedim(dim, -1), g.movedim(dim, -1)
    rows = []
    for i in range(x.shape[-1]):
        replaced = x.clone()
        replaced[..., i] = 1.0
        rows.append((g * replaced.cumprod(-1))[..., i:].sum(-1))
    return stack(rows, -1).movedim(-1, dim)


@primitive("scan", {"input": _cumprod_rule}, infer=_infer, prepare=_prepared("cumprod"), dtypes="fcib", samples=_usual,
           fails=fails(_range), autocast="float32")  # fmt: skip
def cumprod(input: Array, dim: int, *, dtype: Any = None) -> Any:
    """Running product along ``dim``; the gradient is right where elements are zero, too.

    >>> import genesis
    >>> genesis.cumprod(genesis.tensor([1., 2., 3.]), dim=0)
    tensor([1., 2., 6.])
    """
    return _scan(np.multiply, input, dim, dtype)


class cummax_result(NamedTuple):
    values: Tensor
    indices: Tensor


class cummin_result(NamedTuple):
    values: Tensor
    indices: Tensor


def _running_index(x: Any, dim: int, better: Any) -> Any:
    """Where the running extreme was last reached."""
    if not x.ndim:
        return np.zeros((), np.int64)
    work = x.astype(np.float32) if x.dtype.kind == "V" else x
    extreme = better.accumulate(work, dim)
    shape = [1] * x.ndim
    shape[dim] = x.shape[dim]
    place = np.arange(x.shape[dim]).reshape(shape)
    return np.maximum.accumulate(np.where((work == extreme) | np.isnan(work), place, 0), dim)


@primitive("scan", infer=lambda input, dim: Spec(input.shape, np.dtype(np.int64), input.device), method=False, torch_name="",
           dtypes="fi", samples=lambda t: [case(t(3, 4), 1)])  # fmt: skip
def running_argmax(input: Array, dim: int) -> Any:
    """Index of the running maximum along ``dim``; what `cummax` is made of.

    >>> import genesis
    >>> genesis.cummax(genesis.tensor([1., 3., 2.]), 0).indices
    tensor([0, 1, 1])
    """
    return _running_index(input, dim, np.maximum)


@primitive("scan", infer=lambda input, dim: Spec(input.shape, np.dtype(np.int64), input.device), method=False, torch_name="",
           dtypes="fi", samples=lambda t: [case(t(3, 4), 1)])  # fmt: skip
def running_argmin(input: Array, dim: int) -> Any:
    """Index of the running minimum along ``dim``; what `cummin` is made of.

    >>> import genesis
    >>> genesis.cummin(genesis.tensor([3., 1., 2.]), 0).indices
    tensor([0, 1, 1])
    """
    return _running_index(input, dim, np.minimum)


@composite(dtypes="fi", samples=lambda t: [case(t(3, 4), 1), case(t(3, 4), -2)])
def cummax(input: Tensor, dim: int) -> Any:
    """Running maximum along ``dim``, with the indices where it was reached.

    >>> import genesis
    >>> genesis.cummax(genesis.tensor([1., 3., 2.]), 0).values
    tensor([1., 3., 3.])
    """
    indices = running_argmax(input, normalize_dim("cummax", dim, input.ndim))
    return cummax_result(input.gather(dim, indices) if input.ndim else input.clone(), indices)


@composite(dtypes="fi", samples=lambda t: [case(t(3, 4), 1), case(t(3, 4), -2)])
def cummin(input: Tensor, dim: int) -> Any:
    """Running minimum along ``dim``, with the indices where it was reached.

    >>> import genesis
    >>> genesis.cummin(genesis.tensor([3., 1., 2.]), 0).values
    tensor([3., 1., 1.])
    """
    indices = running_argmin(input, normalize_dim("cummin", dim, input.ndim))
    return cummin_result(input.gather(dim, indices) if input.ndim else input.clone(), indices)


@composite(dtypes="f", samples=lambda t: [case(t(3, 4), 1), case(t(3, 4), 0)], autocast="float32")
def logcumsumexp(input: Tensor, dim: int) -> Tensor:
    """Running $\\ln \\sum e^{x}$ along ``dim``.

    >>> import genesis
    >>> genesis.logcumsumexp(genesis.tensor([0., 0.]), 0)
    tensor([0.0000, 0.6931])
    """
    if not input.numel():
        return input.clone()
    top = input.detach().amax(dim, True)
    return (input - top).exp().cumsum(dim).log() + top


@composite(dtypes="fci", samples=lambda t: [case(t(5)), case(t(3, 4), n=2), case(t(3, 4), dim=0)])
def diff(input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None) -> Tensor:
    """Differences of neighbours along ``dim``, taken ``n`` times.

    >>> import genesis
    >>> genesis.diff(genesis.tensor([1., 4., 9.]))
    tensor([3., 5.])
    """
    from genesis.ops.join import cat

    parts = [x for x in (prepend, input, append) if x is not None]
    x: Tensor = cat(parts, dim) if len(parts) > 1 else input
    for _ in range(n):
        length = x.shape[dim]
        x = x.narrow(dim, 1, length - 1) - x.narrow(dim, 0, length - 1) if length > 1 else x.narrow(dim, 0, 0)
    return x


__all__ = ["cummax", "cummin", "cumprod", "cumsum", "diff", "logcumsumexp"]
