"""Gradients kept in bounds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from genesis.base.errors import ArgumentError, GraphError, message
from genesis.base.late import Late
from genesis.base.quiet import quietly
from genesis.core.call.halves import F32, F64
from genesis.core.call.kinds import ALL_DIMS
from genesis.core.call.refusal import explain_all
from genesis.core.call.writes import write_all
from genesis.core.graph.modes import no_grad
from genesis.core.graph.site import warn_user
from genesis.core.graph.switches import ACTIVE, LEVELS
from genesis.core.graph.tensor import Tensor, wrap
from genesis.ops.creation.outside import tensor
from genesis.ops.reductions.norms import norm
from genesis.ops.shapes.join import stack

_collectives, _dtensor = Late("genesis.distributed.nn.ops"), Late("genesis.distributed.tensor.dtensor")


def _listed(name: str, tensors: Any) -> list[Tensor]:
    listed = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    for t in listed:
        if not isinstance(t, Tensor):
            raise ArgumentError(message(name, f"expected tensors, got {type(t).__name__}"))
    return listed


def _grads(name: str, parameters: Any) -> list[Any]:
    """The gradients that there are; of a `DTensor` this rank's part."""
    return [g for p in _listed(name, parameters) if (g := _own_grad(p)) is not None]


def _own_grad(p: Tensor) -> Any:
    return p.grad if p._layout is None else Tensor.grad.fget(p)  # type: ignore[attr-defined]


def _number(value: Any) -> Any:
    """A bound as a float; one that a trace asks for stays what it is."""
    return value if isinstance(value, float) else float(value)


@no_grad()
def get_total_norm(
    tensors: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """The norm of all elements of several tensors; of sharded ones, of the rows of all ranks, and then a `DTensor`, too.

    Raises:
        RuntimeError: with ``error_if_nonfinite``, it is infinite or no number
    """
    listed = _listed("get_total_norm", tensors)
    return _total_norm([_local(t) for t in listed], [t._layout for t in listed], float(norm_type), error_if_nonfinite)


@no_grad()
def _total_norm(tensors: list[Any], layouts: list[Any], norm_type: float, error_if_nonfinite: bool) -> Tensor:
    if not tensors:
        return tensor(0.0)
    if (
        layouts.count(None) == len(layouts)
        and 0 <= norm_type < math.inf
        and (norms := _plain_norms(tensors, norm_type)) is not None
    ):
        return _checked(norm(norms, norm_type), error_if_nonfinite)
    parts = [_norm_of_one(t, at, norm_type) for t, at in zip(tensors, layouts, strict=True)]
    together = [part.to(parts[0].device) for part in parts]
    by_group: dict[str, list[int]] = {}  # of ranks that have other parts
    for i, each in enumerate(layouts):
        for group in () if each is None else each.groups:
            by_group.setdefault(group.key, []).append(i)
    for key, sharded in by_group.items():
        of_ranks = _collectives.all_gather_stacked(stack([together[i] for i in sharded]), key)
        whole = of_ranks.sum(0) if norm_type == 0 else norm(of_ranks, norm_type, dim=0)
        for i, each in zip(sharded, whole.unbind(0), strict=True):
            together[i] = each
    total = _checked(norm(stack(together), norm_type), error_if_nonfinite)
    mesh = next((at.mesh for at in layouts if at is not None), None)
    return total if mesh is None else _dtensor.Distributed.same(total, mesh)  # type: ignore[no-any-return]


def _checked(total: Tensor, error_if_nonfinite: bool) -> Tensor:
    if error_if_nonfinite and not bool(total.isfinite()):
        raise GraphError(
            message(
                "clip_grad_norm_", f"the total norm is {float(total)}", hint="error_if_nonfinite=False clips anyway"
            )
        )
    return total


def _plain_norms(tensors: list[Any], norm_type: float) -> Tensor | None:
    """The norms of tensors in one tensor, where they are NumPy's of one dtype without history: as the op gives them,
    without a call of it for each. None of others.
    """
    kind = tensors[0]._array.dtype
    if ACTIVE or LEVELS or (kind is not F32 and kind is not F64):
        return None
    for t in tensors:
        array = t._array
        if (
            t.__class__ is not Tensor
            or t._node is not None
            or array.__class__ is not np.ndarray
            or array.dtype is not kind
        ):
            return None
    return wrap(np.array(quietly(_norms, norm.op.kernel, [t._array for t in tensors], norm_type), kind))  # type: ignore[attr-defined]


def _norms(kernel: Any, arrays: list[Any], norm_type: float) -> list[Any]:
    return [kernel(array, norm_type, ALL_DIMS[array.ndim], False, None) for array in arrays]


def _local(t: Any) -> Any:
    """This rank's part of a `DTensor`; another tensor as it is."""
    return t if t._layout is None else t.to_local()


def _norm_of_one(t: Any, layout: Any, norm_type: float) -> Any:
    """The norm of a tensor, or of this rank's part of it, which may be nothing."""
    if layout is not None and not t.numel():
        return tensor(float("inf") if norm_type < 0 else 0.0, dtype=t.dtype)
    return norm(t, norm_type)


def clip_grads_with_norm_(parameters: Any, max_norm: float, total_norm: Tensor, foreach: bool | None = None) -> None:
    """Scale gradients in place as if ``total_norm`` were their norm, so that it is at most ``max_norm``."""
    _scale(_grads("clip_grads_with_norm_", parameters), max_norm, total_norm)


@no_grad()
def _scale(gradients: list[Any], max_norm: float, total_norm: Tensor) -> None:
    total = total_norm.full_tensor() if getattr(total_norm, "_layout", None) is not None else total_norm  # type: ignore[attr-defined]
    factor = (_number(max_norm) / (total + 1e-6)).clamp(max=1.0)
    number = factor._array
    if number.__class__ is np.ndarray and all([g._array.dtype is number.dtype for g in gradients]):
        gradients = write_all(gradients, "mul_", lambda array: np.multiply(array, number, out=array))
    for g in gradients:
        g.mul_(factor.to(g.device))


def clip_grad_norm_(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale gradients in place so that their total norm is at most ``max_norm``; returns the norm before.

    >>> import genesis
    >>> x = genesis.ones(4, requires_grad=True); x.sum().backward()
    >>> genesis.nn.utils.clip_grad_norm_([x], 1.0), x.grad
    (tensor(2.), tensor([0.5000, 0.5000, 0.5000, 0.5000]))
    """
    several = _listed("clip_grad_norm_", parameters)
    if not several:
        warn_user(message("clip_grad_norm_", "there are no parameters", hint="a generator can be used once"))
    having = [(p, g) for p in several if (g := _own_grad(p)) is not None]
    gradients = [g for _, g in having]
    total = _total_norm(gradients, [p._layout for p, _ in having], float(norm_type), error_if_nonfinite)
    _scale(gradients, max_norm, total)
    return total


def clip_grad_norm(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The old name of `clip_grad_norm_`."""
    warn_user(message("clip_grad_norm", "this name is deprecated", hint="clip_grad_norm_"), FutureWarning)
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite)


@no_grad()
def clip_grad_value_(parameters: Any, clip_value: float, foreach: bool | None = None) -> None:
    """Limit each gradient element to $\\pm$ ``clip_value``, in place."""
    low, high = -_number(clip_value), _number(clip_value)
    gradients = _grads("clip_grad_value_", parameters)
    if low.__class__ is float and low <= high and all([g._array.dtype in (F32, F64) for g in gradients]):
        gradients = write_all(
            gradients, "clamp_", lambda array: np.minimum(np.maximum(array, low, out=array), high, out=array)
        )
    for g in gradients:
        g.clamp_(low, high)


explain_all(globals())
