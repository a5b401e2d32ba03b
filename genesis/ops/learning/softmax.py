"""Softmax and its relatives."""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.arrays.protocol import Array
from genesis.arrays.spec import Spec
from genesis.base.errors import DTypeError, message
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.refusal import explain_all
from genesis.core.call.halves import F32, HALVES
from genesis.core.graph.site import warn_user
from genesis.core.call.kinds import case, composite, normalize_dim, primitive
from genesis.core.graph.tensor import Tensor
from genesis.ops.creation.create import zeros_like
from genesis.ops.creation.random import uniform_like
from genesis.ops.reductions.along import total
from genesis.ops.pointwise.pieces import in_row_blocks
from genesis.ops.reductions.reduce import sum

_samples = lambda t: [case(t(3, 4), 1), case(t(3, 4), 0), case(t(2, 3, 4), -2), case(t(), 0), case(t(0, 3), 1)]  # noqa: E731
_range = (lambda t: case(t(2, 3), 2), IndexError, "dim 2 is out of range for 2 dimensions")


_SHORT = (*HALVES, F32)


def _prepared(name: str) -> Any:
    def prepare(input: Tensor, dim: Any, dtype: Any) -> tuple[Any, ...]:
        if dtype is not None:
            input = input.to(dtype)
        array = input._array
        if array.dtype.kind != "f" and not input.is_floating_point():
            raise DTypeError(
                message(name, f"the input must be floating, it is {input.dtype}", hint=f"x.float().{name}(dim)")
            )
        return input, normalize_dim(name, _implicit_dim(name, input) if dim is None else dim, array.ndim), None

    return prepare


def _implicit_dim(name: str, input: Tensor) -> int:
    """PyTorch's choice where no dim is given, with a warning: which one it is depends on the number of dimensions."""
    dim = 0 if input.ndim in (0, 1, 3) else 1
    warn_user(
        message(
            name,
            f"no dim is given, {dim} of {input.ndim} dimensions is taken",
            hint=f"dim={dim}, or dim=-1 for the last one",
        )
    )
    return dim


def _shifted(x: Any, dim: int) -> tuple[Any, Any]:
    wide = x.astype(np.float32) if x.dtype in HALVES else x
    return (wide - wide.max(dim, keepdims=True) if x.size and x.ndim else wide - wide), x.dtype


def _wide_softmax(x: Any, dim: Any) -> Any:
    """In place of a float64 array."""
    x -= x.max(dim, keepdims=True)
    np.exp(x, out=x)
    x /= np.add.reduce(x, dim, None, None, True)
    return x


def _infer(input: Spec, dim: int, dtype: Any) -> Spec:
    return input


def _softmax_rule(g: Any, out: Any, dim: int) -> Any:
    weighted = g * out
    return weighted - out * sum(weighted, dim, True) if out.ndim else weighted - weighted


@primitive(
    "reduction", {"input": _softmax_rule}, infer=_infer, prepare=_prepared("softmax"), autocast="float32:gpu", out=True
)
def softmax(input: Array, dim: int | None = None, dtype: Any = None) -> Any:
    """Softmax along ``dim``, $e^{x_i} / \\sum_j e^{x_j}$, without overflow.

    Warns:
        UserWarning: no ``dim``; it is 0 of 0, 1 or 3 dimensions, else 1

    Raises:
        IndexError: a dim out of range
        RuntimeError: an integer tensor

    >>> import genesis
    >>> genesis.softmax(genesis.tensor([0., 0.]), dim=0)
    tensor([0.5000, 0.5000])
    """
    if input.dtype in _SHORT and input.ndim and input.size:
        return in_row_blocks(lambda x: _wide_softmax(x, dim), input, (dim,))
    x, kind = _shifted(input, dim)
    e = np.exp(x)
    e = np.asarray(e)
    e /= total(e, (dim,) if x.ndim else (), True)
    return e.astype(kind, copy=False)


samples(softmax, _samples)

wrong_inputs(softmax, _range)


def _log_softmax_rule(g: Any, out: Any, dim: int) -> Any:
    return g - out.exp() * sum(g, dim, True) if out.ndim else g - g


@primitive(
    "reduction",
    {"input": _log_softmax_rule},
    infer=_infer,
    prepare=_prepared("log_softmax"),
    autocast="float32:gpu",
    out=True,
)
def log_softmax(input: Array, dim: int | None = None, dtype: Any = None) -> Any:
    """Logarithm of the softmax along ``dim``, $x_i - \\ln \\sum_j e^{x_j}$.

    >>> import genesis
    >>> genesis.log_softmax(genesis.tensor([0., 0.]), dim=0)
    tensor([-0.6931, -0.6931])
    """
    x, kind = _shifted(input, dim)
    return (x - np.log(total(np.exp(x), (dim,) if x.ndim else (), True))).astype(kind, copy=False)


samples(log_softmax, _samples)

wrong_inputs(log_softmax, _range)


@composite(halves="wide", method=False, torch_name="nn.functional.softmin", autocast="float32:gpu")
def softmin(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """Softmax of the negated input.

    >>> import genesis
    >>> genesis.nn.functional.softmin(genesis.tensor([0., 0.]), dim=0)
    tensor([0.5000, 0.5000])
    """
    return softmax(-input, _implicit_dim("softmin", input) if dim is None else dim, dtype)


samples(softmin, lambda t: [case(t(3, 4), 1)])


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """$softmax((x + g) / \\tau)$ with Gumbel noise $g = -\\ln(-\\ln u)$: nearly one-hot samples (Jang et al. 2017).

    Args:
        tau: from where on it is low, samples are nearly one-hot
        hard: one-hot samples, with the gradients of the soft ones
        eps: accepted for PyTorch's sake, without an effect

    >>> import genesis
    >>> genesis.nn.functional.gumbel_softmax(genesis.tensor([0., 1e4]), hard=True)
    tensor([0., 1.])
    """
    if not logits.is_floating_point():
        raise DTypeError(message("gumbel_softmax", f"logits must be floating, they are {logits.dtype}"))
    drawn = uniform_like(None, tuple(logits._array.shape), logits).clamp(min=1e-30)  # type: ignore[attr-defined]
    soft = softmax((logits - (-drawn.log()).log()) / tau, dim)  # type: ignore[operator]
    if not hard:
        return soft
    chosen = zeros_like(soft).scatter(dim, soft.argmax(dim, True), 1.0)  # type: ignore[attr-defined]
    return chosen - soft.detach() + soft


__all__ = ["log_softmax", "softmax"]
FUNCTIONAL = ["gumbel_softmax", "log_softmax", "softmax", "softmin"]
explain_all(globals(), "gumbel_softmax")
