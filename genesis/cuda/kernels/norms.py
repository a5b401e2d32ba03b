"""Composites that are one kernel by the rules of the compiler: layer norm and RMS norm, forward and backward."""

from __future__ import annotations

from typing import Any

from genesis.arrays.spec import Spec, strides_of
from genesis.core.call.halves import F32, HALVES
from genesis.core.call.kernels import attach
from genesis.cuda.arrays import MEMORY, CudaArray
from genesis.cuda.kernels.columns import column_sums
from genesis.cuda.kernels.host import arrays_in
from genesis.cuda.kernels.lowering import MOST, Launches, launches
from genesis.cuda.kernels.signatures import KNOWN, signature
from genesis.cuda.kernels.wanted import kernels_wanted

_known: dict[Any, Launches | None] = {}


def by_rule(name: str, args: tuple[Any, ...], outs: list[Spec]) -> Launches | None:
    """The launches of a rule for a call that is laid out like this one."""
    key = (name, signature(args), *[(spec.shape, spec.dtype, spec.strides) for spec in outs])
    if key not in _known:
        if len(_known) >= KNOWN:
            _known.clear()
        laid = [Spec(spec.shape, spec.dtype, strides=strides_of(spec)) for spec in outs]
        _known[key] = launches(name, args, laid, True)
    return _known[key]


def fits(input: CudaArray, normalized_shape: Any, *parameters: Any) -> bool:
    """float32 or 16 bits, which are computed in float32, and the last dimension."""
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    arrays = [input, *[p for p in parameters if isinstance(p, CudaArray)]]
    return (
        kernels_wanted() and 0 < input.size < MOST and shape == input.shape[-1:] and len(shape) == 1
        and (input.dtype == F32 or input.dtype in HALVES)
        and all([x.dtype == input.dtype and min(x.strides) >= 0 for x in arrays])
        and all([p.shape == shape for p in arrays[1:]])
    )  # fmt: skip


def _forward(name: str, args: tuple[Any, ...]) -> tuple[CudaArray, CudaArray, CudaArray]:
    input = args[0]
    shape = input.shape
    outs = [Spec(shape, input.dtype), Spec(shape, F32), Spec((*shape[:-1], 1), F32)]
    plan = by_rule(name, args, outs)
    assert plan is not None
    return plan.run(args)  # type: ignore[no-any-return]


def _backward(name: str, g: CudaArray, kept: tuple[Any, ...], needs: tuple[bool, ...]) -> list[Any]:
    """The gradient of the input by the rule, those of the weight and the bias as sums of columns."""
    rows = kept[0]
    g, shape = g if g.is_contiguous else MEMORY.copy(g), g.shape
    gradients: list[Any] = [None] * len(needs)
    if needs[0]:
        args = (g, kept, ((shape, g.dtype), *[None] * (len(needs) - 1)))
        plan = by_rule(name, args, [Spec(shape, g.dtype)])
        assert plan is not None
        gradients[0] = plan.run(tuple(arrays_in(args)))[0]
    one = shape[-1:]
    matrices = [x.seen(0, (x.size // one[0], one[0]), (one[0], 1)) for x in (g, rows)]
    if needs[1]:
        gradients[1] = column_sums(*matrices, g.dtype, one)
    if len(needs) > 2 and needs[2]:
        gradients[2] = column_sums(matrices[0], None, g.dtype, one)
    return gradients


@attach("layer_norm", CudaArray, when=fits)
def layer_norm(input: CudaArray, normalized_shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    """The kernel of `genesis.nn.functional.layer_norm`."""
    out, rows, root = _forward("fused.layer_norm", (input, normalized_shape, weight, bias, eps))
    return out, (rows, root, weight)


@layer_norm.backward(reads=("weight",))
def _(g: CudaArray, kept: Any, needs: Any) -> Any:
    return _backward("fused.layer_norm.backward", g, kept, needs)


@attach("rms_norm", CudaArray, when=fits)
def rms_norm(input: CudaArray, normalized_shape: Any, weight: Any, eps: float | None) -> Any:
    """The kernel of `genesis.nn.functional.rms_norm`."""
    out, rows, root = _forward("fused.rms_norm", (input, normalized_shape, weight, eps))
    return out, (rows, root, weight)


@rms_norm.backward(reads=("weight",))
def _(g: CudaArray, kept: Any, needs: Any) -> Any:
    return _backward("fused.rms_norm.backward", g, kept, needs)
