"""A gradient that is exactly zero stays zero, whatever it is multiplied with: no NaN from branches that were not taken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis import ops
from genesis.core.call.kinds import CONTRACTION, ELEMENTWISE, REDUCTION
from genesis.core.graph.modes import Mode, no_grad, repair
from genesis.core.graph.node import Node
from genesis.core.graph.tensor import Tensor


class strong_zero(Mode):
    """Context manager and decorator: backwards that run inside it take $0 \\cdot \\infty$ and $0 \\cdot$ NaN for 0.

    ``where(x > 0, x.log(), 0)`` has the derivative $0 \\cdot (1/0)$ = NaN at 0, although the logarithm was not used
    there: reverse mode multiplies first and does not know what for. Inside this mode an element of a gradient that is
    exactly zero contributes exactly zero, through every rule: element by element for elementwise operations, along the
    reduced dimensions for reductions, term by term for products (`matmul`, `linear`, `einsum`); other rules (and those
    of your Functions) give zeros if all of what they get is zero. Gradients that are finite without it are the same,
    bit for bit.

    Source: strong zeros of reverse mode, as in Enzyme (Moses and Churavy, 2020).

    >>> import genesis
    >>> x = genesis.tensor([0.0, 1.0], requires_grad=True)
    >>> with genesis.autograd.strong_zero():
    ...     genesis.where(x > 0, x.log(), 0.0).sum().backward()
    >>> x.grad
    tensor([0., 1.])
    """

    def _enter(self) -> Any:
        return repair.set(_repaired)

    def _leave(self, before: Any) -> None:
        repair.reset(before)


def _repaired(node: Node, g: Any, results: Sequence[Any]) -> Sequence[Any]:
    """The gradients of a rule, with what a zero made not finite put right."""
    if all(not isinstance(gx, Tensor) or _finite(gx) for gx in results):
        return results
    incoming = [p for p in (g if isinstance(g, list) else [g]) if p is not None]
    if all(not np.any(p._array) for p in incoming):
        return [gx if gx is None else ops.zeros_like(gx) for gx in results]
    kind = node.op.kind if hasattr(type(node), "op") else None
    if kind is ELEMENTWISE:
        return [gx if gx is None or gx.shape != g.shape else ops.where(g != 0, gx, 0.0) for gx in results]
    if kind is REDUCTION:
        return [gx if gx is None else _along(node, g, gx) for gx in results]
    if kind is CONTRACTION:
        return _product(node, g, results)
    return results


def _finite(t: Tensor) -> bool:
    array = t._array
    return not isinstance(array, np.ndarray) or bool(
        np.isfinite(array if array.dtype.kind in "fciub" else array.astype(np.float32)).all()
    )


def _along(node: Node, g: Tensor, gx: Tensor) -> Tensor:
    """Slices whose gradient is zero give zero."""
    names = [name for name, _, _, _ in node.op.saves]
    dim = node._saved[names.index("dim")]
    dim = (dim,) if isinstance(dim, int) else tuple(dim)
    with no_grad():
        used = g != 0
        if g.ndim != gx.ndim:
            for d in sorted(dim):
                used = used.unsqueeze(d)
        used = used.any(dim, keepdim=True) if dim else used
    return ops.where(used, gx, 0.0)


def _product(node: Node, g: Tensor, results: Sequence[Any]) -> Sequence[Any]:
    """A rule that is a product of `g` and saved values: terms in which `g` is zero are left out.

    The rule is run on the finite values for those sums, and on ones in the place of what is not finite to see which
    sums it belongs to.
    """
    saved = node._saved

    def rule(incoming: Tensor, change: Any) -> Sequence[Any]:
        node._saved = tuple(
            [[change(v) for v in value] if isinstance(value, list) else change(value) for value in saved]
        )
        try:
            return node._pull_special(incoming)
        finally:
            node._saved = saved

    finite = rule(g, lambda t: _with_history(ops.where(ops.isfinite(t), t, 0.0), t) if _floating(t) else t)
    with no_grad():
        reached = rule(
            (g != 0).to(g.dtype), lambda t: _with_history((~ops.isfinite(t)).to(t.dtype), t) if _floating(t) else t
        )
    return [
        gx if gx is None else ops.where(ops.isfinite(gx) | (r != 0), gx, f)
        for gx, f, r in zip(results, finite, reached, strict=True)
    ]


def _with_history(t: Tensor, original: Tensor) -> Tensor:
    """Some rules compute gradients only for operands that have history."""
    return t if t._node is not None or original._node is None else t._alias(original._node)


def _floating(t: Any) -> bool:
    return isinstance(t, Tensor) and (t.dtype.is_floating_point or t.dtype.is_complex)
