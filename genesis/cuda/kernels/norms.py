"""Layer norm and RMS norm over the last dimension: kernels of the rules below, for eager calls and in compiled steps, where
what is done with the result joins them.

    forward    the mean and the root of each row, and (x - mean) / root * weight + bias     x is read once
    backward   what of g is not along the row; sums of columns for the weight and the bias  g and x are read

Of a row two numbers are kept, besides the input, which lives anyway: (x - mean) / root is computed again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec, strides_of
from genesis.core.call.halves import F32, HALVES
from genesis.core.call.kernels import attach
from genesis.cuda.arrays import CudaArray
from genesis.cuda.kernels import moves
from genesis.cuda.kernels.host import arrays_in
from genesis.cuda.kernels.lowering import MOST, Launches, Ready, launches
from genesis.cuda.kernels.signatures import alike, remember, signature
from genesis.cuda.kernels.wanted import kernels_wanted
from genesis.jit.arguments import Var
from genesis.jit.lowering.parts import Builder, Memory, Part, row_strides, rule, total, wide
from genesis.jit.program import Call

LAYER, RMS = "fused.layer_norm.CudaArray", "fused.rms_norm.CudaArray"
RULED = [f"{name}{part}" for name in (LAYER, RMS) for part in ("", ".backward")]
_known: dict[Any, Launches | None] = {}


def by_rule(name: str, args: tuple[Any, ...], outs: list[Spec], many: bool = True) -> Launches | None:
    """The launches of a rule for a call that is laid out like this one."""
    key = (name, signature(args), *[(spec.shape, spec.dtype, spec.strides) for spec in outs])
    if key in _known:
        return _known[key]
    laid = [Spec(spec.shape, spec.dtype, strides=strides_of(spec)) for spec in outs]
    return remember(_known, key, launches(name, args, laid, many))


_ready: dict[Any, Ready] = {}
_fitting: dict[Any, bool] = {}


def ready_by_rule(name: str, args: tuple[Any, ...], outs: Callable[[], list[Spec]], many: bool = True) -> Ready:
    """A rule's launches for arrays that lie as these, and results that are laid out as ``outs`` says: of a call like one
    before it is not asked. If not ``many``, they give the one result, not a tuple of it.
    """
    key = (name, *alike(args))
    ready = _ready.get(key)
    if ready is None:
        plan = by_rule(name, args, outs(), many)
        assert plan is not None
        ready = remember(_ready, key, plan.ready([*arrays_in(args)]))
    return ready


def _fits(input: Any, normalized_shape: Any, *parameters: Any) -> bool:
    """float32 or 16 bits, which are computed in float32, and the last dimension."""
    if input.__class__ is not CudaArray:
        return _is_fit(input, normalized_shape, *parameters)
    key = alike((input, normalized_shape, *parameters))
    known = _fitting.get(key)
    return remember(_fitting, key, _is_fit(input, normalized_shape, *parameters)) if known is None else known


def _is_fit(input: Any, normalized_shape: Any, *parameters: Any) -> bool:
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    given = [p for p in parameters if p is not None]
    return (
        kernels_wanted() and 0 < input.size < MOST and shape == tuple(input.shape[-1:]) and len(shape) == 1
        and (input.dtype == F32 or input.dtype in HALVES)
        and all([p.shape == shape and p.dtype == input.dtype for p in given])
        and all([min(strides_of(x)) >= 0 for x in (input, *given)])
    )  # fmt: skip


def _like(input: Any) -> Spec:
    return Spec(input.shape, input.dtype)


def _of_rows(input: Any) -> Spec:
    """A number of each row."""
    return Spec((*input.shape[:-1], 1), F32)


def _gradients(name: str, g: CudaArray, kept: tuple[Any, ...], needs: tuple[bool, ...]) -> list[Any]:
    input, each = kept[0], Spec(kept[0].shape[-1:], kept[0].dtype)
    args = (moves.forward(g), kept, tuple([True if need else None for need in needs]))
    outs = lambda: [s for s, need in zip((_like(input), each, each), needs, strict=False) if need]  # noqa: E731
    made = iter(ready_by_rule(f"{name}.backward", args, outs).run(args))
    return [next(made) if need else None for need in needs]


def _alone(name: str, args: tuple[Any, ...]) -> CudaArray:
    """The result, and nothing for a backward."""
    return ready_by_rule(f"{name}.alone", args, lambda: [_like(args[0])], many=False).run(args)  # type: ignore[no-any-return]


@attach(
    "layer_norm",
    CudaArray,
    when=lambda input, shape, weight, bias, eps: _fits(input, shape, weight, bias),
    infer=lambda input, shape, weight, bias, eps: (
        _like(input), ("input", _of_rows(input), _of_rows(input), None if weight is None else "weight")
    ),
)  # fmt: skip
def layer_norm(input: CudaArray, normalized_shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    """The kernel of `genesis.nn.functional.layer_norm`."""
    args = input, normalized_shape, weight, bias, eps
    out, mean, scale = ready_by_rule(LAYER, args, lambda: [_like(input), *[_of_rows(input)] * 2]).run(args)
    return out, (input, mean, scale, weight)


layer_norm.alone = lambda *args: _alone(LAYER, args)


@layer_norm.backward(reads=("input", "weight"))
def _(g: CudaArray, kept: Any, needs: Any) -> Any:
    return _gradients(LAYER, g, kept, needs)


@attach(
    "rms_norm",
    CudaArray,
    when=lambda input, shape, weight, eps: _fits(input, shape, weight),
    infer=lambda input, shape, weight, eps: (
        _like(input), ("input", _of_rows(input), None if weight is None else "weight")
    ),
)  # fmt: skip
def rms_norm(input: CudaArray, normalized_shape: Any, weight: Any, eps: float | None) -> Any:
    """The kernel of `genesis.nn.functional.rms_norm`."""
    args = input, normalized_shape, weight, eps
    out, scale = ready_by_rule(RMS, args, lambda: [_like(input), _of_rows(input)]).run(args)
    return out, (input, scale, weight)


rms_norm.alone = lambda *args: _alone(RMS, args)


@rms_norm.backward(reads=("input", "weight"))
def _(g: CudaArray, kept: Any, needs: Any) -> Any:
    return _gradients(RMS, g, kept, needs)


# ---- rules


def _element(made: Builder, var: Var) -> Any:
    x = made.read(var)
    return x.astype(wide(x.dtype))


@rule(LAYER, RMS, f"{LAYER}.alone", f"{RMS}.alone")
def forward(memory: Memory, call: Call) -> list[Part]:
    """The result, and what is kept of a row: the mean, of a layer norm, and what its elements are multiplied with."""
    x, _, weight, *rest = call.args
    out, *kept = call.outs
    bias, eps = (None, *rest) if call.op.startswith(RMS) else rest
    shape, last = x.spec.shape, len(x.spec.shape) - 1
    made = Builder(memory, call, shape, (last,))
    y, n = _element(made, x), float(shape[last])
    if not call.op.startswith(RMS):
        middle = total("add", y) / n
        for mean in kept[:-1]:
            made.give(mean, middle, row_strides(mean, shape, (last,)))
        y = y - middle
    small = float(np.finfo(np.float32).eps) if eps is None else eps
    factor = 1.0 / np.sqrt(total("add", y * y) / n + small)
    y = y * factor if weight is None else y * factor * _element(made, weight)
    made.give(out, y if bias is None else y + _element(made, bias))
    for scale in kept[-1:]:
        made.give(scale, factor, row_strides(scale, shape, (last,)))
    return [made.made()]


def _standardized(made: Builder, kept: Any) -> Any:
    x, *means, scale = kept[:-1]
    y = _element(made, x)
    for mean in means:
        y = y - _element(made, mean)
    return y * _element(made, scale)


@rule(f"{LAYER}.backward", f"{RMS}.backward")
def backward(memory: Memory, call: Call) -> list[Part]:
    """The gradient of the input row by row, those of the weight and the bias column by column."""
    g, kept, wanted = call.args
    outs, parts = iter(call.outs), []
    shape, last = g.spec.shape, len(g.spec.shape) - 1
    if wanted[0] is not None:
        made = Builder(memory, call, shape, (last,))
        h, y, n, weight = _element(made, g), _standardized(made, kept), float(shape[last]), kept[-1]
        h = h if weight is None else h * _element(made, weight)
        rest = h - y * (total("add", h * y) / n)
        rest = rest if call.op.startswith(RMS) else rest - total("add", h) / n
        made.give(next(outs), rest * _element(made, kept[-2]))
        parts.append(made.made())
    for i in (1, 2):
        if len(wanted) > i and wanted[i] is not None:
            made = Builder(memory, call, shape, tuple(range(last)))
            h = _element(made, g)
            made.give(next(outs), total("add", h * _standardized(made, kept) if i == 1 else h), [*[0] * last, 1])
            parts.append(made.made())
    return parts
