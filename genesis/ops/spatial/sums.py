"""Sums along a dimension by rule (`tables`): what interpolation, average pooling and borders are made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.arrays.protocol import Array
from genesis.arrays.spec import Spec
from genesis.core.call.halves import F32, HALVES
from genesis.core.call.kinds import case, normalize_dim, primitive
from genesis.core.call.op import samples
from genesis.core.graph.tensor import Tensor
from genesis.ops.spatial.tables import Rule, border, border_in_pieces, sizes_of, steps


def _prepare(input: Tensor, dim: int, rule: Rule, back: bool = False) -> tuple[Any, ...]:
    dim = normalize_dim("mix", dim, input.ndim)
    n, _ = sizes_of(rule, back)
    assert input.shape[dim] == n, (input.shape, dim, rule, back)
    return input, dim, rule, back


def _infer(input: Spec, dim: int, rule: Rule, back: bool) -> Spec:
    shape = (*input.shape[:dim], sizes_of(rule, back)[1], *input.shape[dim + 1 :])
    return Spec(shape, input.dtype, input.device)


@primitive(
    "movement",
    {"input": lambda g, dim, rule, back: mix(g, dim, rule, not back)},
    infer=_infer,
    prepare=_prepare,
    dtypes="fci",
    method=False,
    torch_name="",
)
def mix(input: Array, dim: int, rule: Any, back: bool = False) -> Any:
    """Sums along ``dim`` of what a rule names, or with ``back`` the transpose of that.

    >>> import genesis
    >>> from genesis.ops.spatial.sums import mix
    >>> mix(genesis.arange(4.0), 0, ("windows", 4, 2, 2, 2, 0, 1))
    tensor([1., 5.])
    """
    copied = border(rule)
    if copied is not None:
        return _bordered(input, dim, rule, copied, back)
    kind = F32 if input.dtype in HALVES else input.dtype
    shape = (*input.shape[:dim], sizes_of(rule, back)[1], *input.shape[dim + 1 :])
    todo = steps(rule, back)
    out = None
    for to, source, weight in todo:
        part = _taken(input, dim, source)
        if weight is not None:
            part = part * weight.astype(kind).reshape(-1, *[1] * (input.ndim - dim - 1))
        if out is None:
            if _all(to, shape[dim]):
                out = np.array(part, kind, order="C")
                continue
            out = np.zeros(shape, kind)
        if isinstance(to, slice):
            out[(*[slice(None)] * dim, to)] += part
        else:
            out[(*[slice(None)] * dim, to)] += part  # no element twice
    out = np.zeros(shape, kind) if out is None else out
    return out.astype(input.dtype, copy=False)


def _bordered(x: Any, dim: int, rule: Any, copied: Any, back: bool) -> Any:
    """The middle at once, and each side of the border; back, where elements are added, one by one: NumPy takes long to
    take what an array of indices says.
    """

    def at(i: Any) -> Any:
        return (*[slice(None)] * dim, i)

    _, n, before, _ = rule
    middle = at(slice(before, before + n))
    if back:
        kind = F32 if x.dtype in HALVES else x.dtype
        out = x[middle].astype(kind, order="C")
        for j, i in copied:
            out[at(i)] += x[at(j)]
        return out.astype(x.dtype, copy=False)
    out = np.empty((*x.shape[:dim], sizes_of(rule, False)[1], *x.shape[dim + 1 :]), x.dtype)
    out[middle] = x
    for to, source in border_in_pieces(rule):
        out[at(to)] = x[at(source)]
    return out


def _all(to: Any, size: int) -> bool:
    return isinstance(to, slice) and to.start == 0 and to.stop == size and (to.step or 1) == 1


def _taken(x: Any, dim: int, source: Any) -> Any:
    return x[(*[slice(None)] * dim, source)] if isinstance(source, slice) else np.take(x, source, dim)


samples(
    mix,
    lambda t: [
        case(t(2, 5), 1, ("windows", 5, 3, 3, 2, 1, 1)),
        case(t(4, 2), 0, ("linear", 4, 6, False, None, False)),
        case(t(6), 0, ("linear", 4, 6, False, None, False), True),
        case(t(3, 2), 0, ("reflect", 3, 2, 1)),
    ][: 4 if t.dtype.category >= 2 else 1],
)

FUNCTIONAL: list[str] = []
__all__: list[str] = []
