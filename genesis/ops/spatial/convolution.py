"""Convolutions of any number of spatial dimensions, and transposed ones.

There are two sums of products, and each gradient of one is one of the two again:

    convolution           $y_{n,o,i} = \\sum_{c,k} x_{n,c,s i + d k - p} \\, w_{o,c,k}$, and the transposed one
    convolution_weight    $w_{o,c,k} = \\sum_{n,i} x_{n,c,s i + d k - p} \\, g_{n,o,i}$

with stride s, dilation d and padding p. The meanings are products of matrices whose columns are windows of the input;
`kernels/cpu/convolution.py` computes them in blocks.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from genesis.arrays.protocol import Array
from genesis.arrays.spec import Spec, contiguous_strides
from genesis.base.narrow import restrided
from genesis.base.errors import ShapeError, message
from genesis.core.call.halves import F32, HALVES
from genesis.core.call.kinds import case, contraction
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.graph.tensor import Tensor
from genesis.ops.products.matmul import same_dtype
from genesis.ops.spatial.arguments import AXES, Sizes, per_dim

# ---- sizes


def spans(kernel: Sizes, dilation: Sizes) -> Sizes:
    """From the first to the last element of a window."""
    return tuple([d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)])


def windows_in(sizes: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> Sizes:
    """How many windows there are along each dimension."""
    return tuple([
        (n + 2 * p - span) // s + 1
        for n, span, s, p in zip(sizes, spans(kernel, dilation), stride, padding, strict=True)
    ])  # fmt: skip


def spread_sizes(sizes: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, extra: Sizes) -> Sizes:
    """The sizes of a transposed convolution."""
    return tuple([
        (n - 1) * s - 2 * p + span + e
        for n, span, s, p, e in zip(sizes, spans(kernel, dilation), stride, padding, extra, strict=True)
    ])  # fmt: skip


def _check_channels(name: str, input: Spec, weight: Spec, bias: Spec | None, transposed: bool, groups: int) -> None:
    named = [("input", input), ("weight", weight)] + ([] if bias is None else [("bias", bias)])
    layout = "(in, out / groups, ...)" if transposed else "(out, in / groups, ...)"
    if not weight.shape[0] or weight.shape[0] % groups:
        raise ShapeError(
            message(name, f"weight has {weight.shape[0]} in dim 0, groups is {groups}: not a multiple", named, layout)
        )
    if transposed and not weight.shape[1]:
        raise ShapeError(message(name, "weight has 0 in dim 1: the output would have no channels", named, layout))
    channels = weight.shape[0] if transposed else weight.shape[1] * groups
    if input.shape[1] != channels:
        raise ShapeError(
            message(
                name,
                f"input has {input.shape[1]} channels, weight is for {channels} (groups {groups})",
                named,
                f"weight is {layout}",
            )
        )
    out = weight.shape[1] * groups if transposed else weight.shape[0]
    if bias is not None and bias.shape != (out,):
        raise ShapeError(message(name, f"bias has shape {list(bias.shape)}, the output {out} channels", named))
    same_dtype(name, *[s for s in (input, weight, bias) if s is not None])


def infer_convolution(
    input: Spec,
    weight: Spec,
    bias: Spec | None,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    transposed: bool,
    output_padding: Sizes,
    groups: int,
) -> Spec:
    name = f"conv_transpose{len(stride)}d" if transposed else f"conv{len(stride)}d"
    _check_channels(name, input, weight, bias, transposed, groups)
    sizes, kernel = input.shape[2:], weight.shape[2:]
    if transposed:
        out = spread_sizes(sizes, kernel, stride, padding, dilation, output_padding)
        fits = min(out) >= 0 and min(sizes) > 0  # padding may take away all of the output
        what = f"the output would have sizes {list(out)}" if min(sizes) else f"the input has sizes {list(sizes)}"
    else:
        out = windows_in(sizes, kernel, stride, padding, dilation)
        have = [n + 2 * p for n, p in zip(sizes, padding, strict=True)]
        fits = all([n >= span for n, span in zip(have, spans(kernel, dilation), strict=True)])
        what = f"the kernel spans {list(spans(kernel, dilation))}, the padded input {have}"
    if not fits or 0 in kernel:
        raise ShapeError(message(name, what, [("input", input), ("weight", weight)], "a larger input, or padding"))
    channels = weight.shape[1] * groups if transposed else weight.shape[0]
    return Spec((input.shape[0], channels, *out), input.dtype, input.device)


# ---- meanings


def with_border(x: Any, padding: Sizes) -> Any:
    """Zeros around the spatial dimensions."""
    if not any(padding):
        return x
    out = np.zeros((*x.shape[:2], *[n + 2 * p for n, p in zip(x.shape[2:], padding, strict=True)]), x.dtype)
    out[inside(padding)] = x
    return out


def inside(padding: Sizes) -> tuple[Any, ...]:
    """What is within the border."""
    return (..., *[slice(p, -p if p else None) for p in padding])


def windows(x: Any, kernel: Sizes, stride: Sizes, dilation: Sizes, count: Sizes) -> Any:
    """All windows of a padded input (N, C, *sizes), as a view (N, C, *kernel, *count)."""
    steps = x.strides[2:]
    within = [s * d for s, d in zip(steps, dilation, strict=True)]
    between = [s * d for s, d in zip(steps, stride, strict=True)]
    return restrided(x, (*x.shape[:2], *kernel, *count), (*x.strides[:2], *within, *between), writeable=False)


def add_windows(out: Any, columns: Any, kernel: Sizes, stride: Sizes, dilation: Sizes, count: Sizes) -> None:
    """Add windows (N, C, *kernel, *count) to where they are in a padded array: the transpose of `windows`."""
    for k in np.ndindex(*kernel):
        starts = [i * d for i, d in zip(k, dilation, strict=True)]
        slices = [slice(a, a + s * (n - 1) + 1, s) for a, s, n in zip(starts, stride, count, strict=True)]
        out[(..., *slices)] += columns[(slice(None), slice(None), *k)]


def widened(*arrays: Any) -> list[Any]:
    """16-bit floats as float32."""
    return [x if x is None or x.dtype not in HALVES else x.astype(F32) for x in arrays]


def _prepare(
    input: Tensor, weight: Tensor, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int,
) -> tuple[Any, ...]:  # fmt: skip
    dims = weight.ndim - 2
    name = f"conv_transpose{dims}d" if transposed else f"conv{dims}d"
    if dims < 1 or input.ndim != weight.ndim:
        raise ShapeError(
            message(
                name if dims in AXES else "convolution",
                f"input has {input.ndim} dimensions, weight {weight.ndim}",
                [("input", input._spec()), ("weight", weight._spec())],
            )
        )
    stride, dilation = per_dim(name, "stride", stride, dims, 1), per_dim(name, "dilation", dilation, dims, 1)
    padding = per_dim(name, "padding", padding, dims, 0)
    extra = per_dim(name, "output_padding", output_padding, dims, 0) if transposed else (0,) * dims
    if transposed and any([e >= max(s, d) for e, s, d in zip(extra, stride, dilation, strict=True)]):
        text = f"output_padding {list(extra)} must be smaller than stride {list(stride)} or dilation {list(dilation)}"
        raise ShapeError(message(name, text))
    (groups,) = per_dim(name, "groups", groups, 1, 1)
    return input, weight, bias, stride, padding, dilation, bool(transposed), extra, groups


# ---- gradients


def _for_input(
    g: Any, weight: Any, input_shape: Any, stride: Any, padding: Any, dilation: Any, transposed: Any, groups: Any
) -> Any:
    sizes, kernel = tuple(input_shape[2:]), tuple(weight.shape[2:])
    if transposed:
        gx = convolution(g, weight, None, stride, padding, dilation, False, 0, groups)
        for i, n in enumerate(sizes):  # what output_padding added may hold further windows
            gx = gx if gx.shape[i + 2] == n else gx.narrow(i + 2, 0, n)
        return gx
    least = spread_sizes(tuple(g.shape[2:]), kernel, stride, padding, dilation, (0,) * len(stride))
    extra = tuple([n - m for n, m in zip(sizes, least, strict=True)])
    return _apply(g, weight, None, stride, padding, dilation, True, extra, groups)


def _for_weight(
    g: Any, input: Any, weight_shape: Any, stride: Any, padding: Any, dilation: Any, transposed: Any, groups: Any
) -> Any:
    x, g = (g, input) if transposed else (input, g)
    return convolution_weight(x, g, tuple(weight_shape[2:]), stride, padding, dilation, groups)


def _for_bias(g: Any) -> Any:
    return g.sum((0, *range(2, g.ndim)))


def _apply(*args: Any) -> Any:
    """The op without `_prepare`, which refuses output paddings that only gradients have."""
    return convolution.op.run(convolution.op, args)  # type: ignore[attr-defined]


# ---- many samples


def _in_groups(b: Any, x: Any, flag: bool) -> Any:
    """(B, N, C, ...) as (N, B C, ...)."""
    x = b.spread(x, flag).movedim(0, 1)
    return x.reshape(x.shape[0], -1 if x.numel() else b.size * x.shape[2], *x.shape[3:])


def _samples_first(b: Any, x: Any, dim: int) -> Any:
    """The samples out of a dimension in which they are groups."""
    shape = x.shape
    return x.reshape(*shape[:dim], b.size, shape[dim] // b.size, *shape[dim + 1 :]).movedim(dim, 0)


def _of_samples(b: Any, x: Any, w: Any, bias: Any, *rest: Any) -> Any:
    """Samples are more examples where the weight is the same for all, else more groups."""
    in_x, in_w, in_bias = b.batched
    if in_x and not in_w and not in_bias:
        out = b.run(x.flatten(0, 1), w, bias, *rest)
        return out.reshape(b.size, x.shape[1], *out.shape[1:])
    if not in_w:
        out = b.run(x.flatten(0, 1), w, None, *rest) if in_x else b.run(x, w, None, *rest)
        out = out.reshape(b.size, x.shape[1], *out.shape[1:]) if in_x else out.unsqueeze(0)
    else:
        out = _samples_first(b, b.run(_in_groups(b, x, in_x), w.flatten(0, 1), None, *rest[:-1], rest[-1] * b.size), 1)
    if bias is None:
        return out
    shape = (b.size if in_bias else 1, 1, -1, *[1] * (out.ndim - 3))
    return out + bias.reshape(shape)


def _weight_of_samples(b: Any, x: Any, g: Any, *rest: Any) -> Any:
    flags = b.batched
    x, g = _in_groups(b, x, flags[0]), _in_groups(b, g, flags[1])
    return _samples_first(b, b.run(x, g, *rest[:-1], rest[-1] * b.size), 0)


# ---- ops


def is_channels_last(x: Any) -> bool:
    """Whether the channels of an array or spec (N, C, ...) are next to each other in memory, with more than one place."""
    if x.__class__ is np.ndarray and x.flags.c_contiguous:
        return False
    strides = x.strides
    if strides is None or len(x.shape) not in (4, 5):
        return False
    size = 1 if isinstance(x, Spec) else x.itemsize
    return all([n == 1 or s == w * size for n, s, w in zip(x.shape, strides, last_strides(x.shape), strict=True)])


def _strides(input: Spec, weight: Spec, bias: Any, *rest: Any) -> tuple[int, ...] | None:
    """Channels last where an operand is."""
    if not is_channels_last(input) and not is_channels_last(weight):
        return None
    return last_strides(infer_convolution(input, weight, bias, *rest).shape)


def last_strides(shape: Sizes) -> tuple[int, ...]:
    """The strides of channels last."""
    order = contiguous_strides((shape[0], *shape[2:], shape[1]))
    return (order[0], order[-1], *order[1:-1])


def with_channels_last(out: Any) -> Any:
    """The same numbers with channels next to each other."""
    return np.ascontiguousarray(np.moveaxis(out, 1, -1)).transpose(0, out.ndim - 1, *range(1, out.ndim - 1))


@contraction(
    {"input": _for_input, "weight": _for_weight, "bias": _for_bias},
    infer=infer_convolution,
    prepare=_prepare,
    batch=_of_samples,
    added="bias",
    added_dim=1,
    strides=_strides,
    dtypes="fci",
    autocast="low",
    method=False,
)
def convolution(
    input: Array,
    weight: Array,
    bias: Array | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> Any:
    """A convolution of (N, C, *sizes), or with ``transposed`` its transpose; what `conv1d` to `conv_transpose3d` call.

    Weight is (out, in / groups, *kernel), of a transposed one (in, out / groups, *kernel).

    Raises:
        RuntimeError: shapes, dtypes, sizes or groups that do not fit

    >>> import genesis
    >>> x, w = genesis.ones(1, 1, 3), genesis.ones(1, 1, 2)
    >>> genesis.convolution(x, w, None, [1], [0], [1], False, [0], 1)
    tensor([[[2., 2.]]])
    """
    spec = infer_convolution(*specs(input, weight, bias), stride, padding, dilation, transposed, output_padding, groups)
    x, w, b = widened(input, weight, bias)
    out = (_transposed if transposed else _forward)(x, w, spec.shape[2:], stride, padding, dilation, groups)
    if b is not None:
        out += b.reshape(-1, *[1] * len(stride))
    out = out.astype(input.dtype, copy=False)
    return with_channels_last(out) if is_channels_last(input) or is_channels_last(weight) else out


def specs(*arrays: Any) -> list[Any]:
    return [None if x is None else Spec(x.shape, x.dtype) for x in arrays]


def _forward(x: Any, w: Any, out: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Any:
    kernel = w.shape[2:]
    columns = windows(with_border(x, padding), kernel, stride, dilation, out)
    inner, count = w.shape[1] * math.prod(kernel), math.prod(out)
    y = np.matmul(w.reshape(groups, w.shape[0] // groups, inner), columns.reshape(x.shape[0], groups, inner, count))
    return y.reshape(x.shape[0], w.shape[0], *out)


def _transposed(x: Any, w: Any, out: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Any:
    n, channels, kernel, count = x.shape[0], w.shape[1] * groups, w.shape[2:], x.shape[2:]
    each, inner = w.shape[0] // groups, w.shape[1] * math.prod(kernel)
    columns = np.matmul(
        w.reshape(groups, each, inner).swapaxes(1, 2), x.reshape(n, groups, each, math.prod(count))
    ).reshape(n, channels, *kernel, *count)
    y = np.zeros((n, channels, *[m + 2 * p for m, p in zip(out, padding, strict=True)]), x.dtype)
    if columns.size:
        add_windows(y, columns, kernel, stride, dilation, count)
    return y[inside(padding)].copy()


samples(
    convolution,
    lambda t: [
        case(t(2, 2, 5), t(3, 2, 3), t(3), [2], [1], [1], False, [0], 1),
        case(t(1, 4, 4, 3), t(4, 2, 2, 2), None, [1, 2], [0, 1], [2, 1], False, [0, 0], 2),
        case(t(2, 2, 3), t(2, 3, 2), t(3), [2], [0], [1], True, [1], 1),
        case(t(1, 2, 2, 2), t(2, 2, 2, 2), None, [1, 2], [1, 0], [1, 1], True, [0, 0], 2),
        case(t(0, 2, 3), t(1, 2, 1), None, [1], [0], [1], False, [0], 1),
    ],
)

wrong_inputs(
    convolution,
    (
        lambda t: case(t(1, 3, 5), t(2, 4, 3), None, 1, 0, 1, False, 0, 1),
        RuntimeError,
        "conv1d: input has 3 channels, weight is for 4 (groups 1)",
    ),
    (
        lambda t: case(t(1, 3, 5), t(2, 3, 3, 3), None, 1, 0, 1, False, 0, 1),
        RuntimeError,
        "conv2d: input has 3 dimensions, weight 4",
    ),
)


def _infer_weight(
    input: Spec, other: Spec, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int
) -> Spec:
    return Spec((other.shape[1], input.shape[1] // groups, *kernel), input.dtype, input.device)


def _weight_strides(input: Spec, other: Spec, *rest: Any) -> tuple[int, ...] | None:
    """Channels last where an operand is: the weight is, then, or it does not matter."""
    return last_strides(_infer_weight(input, other, *rest).shape) if one_is_channels_last(input, other) else None


def one_is_channels_last(*arrays: Any) -> bool:
    return any([is_channels_last(x) for x in arrays])


def _weight_for_input(
    g: Any, input_shape: Any, other: Any, stride: Any, padding: Any, dilation: Any, groups: Any
) -> Any:
    return _for_input(other, g, input_shape, stride, padding, dilation, False, groups)


def _weight_for_other(
    g: Any, input: Any, other_shape: Any, stride: Any, padding: Any, dilation: Any, groups: Any
) -> Any:
    out = convolution(input, g, None, stride, padding, dilation, False, 0, groups)
    for i, n in enumerate(other_shape[2:]):
        out = out if out.shape[i + 2] == n else out.narrow(i + 2, 0, n)
    return out


@contraction(
    {"input": _weight_for_input, "other": _weight_for_other},
    infer=_infer_weight,
    strides=_weight_strides,
    batch=_weight_of_samples,
    dtypes="fci",
    autocast="low",
    method=False,
    torch_name="",
)
def convolution_weight(
    input: Array, other: Array, kernel: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    """The gradient of a convolution for its weight: the products of what windows see and of ``other``, summed over
    examples and windows.

    >>> import genesis
    >>> from genesis.ops.spatial.convolution import convolution_weight
    >>> convolution_weight(genesis.ones(1, 1, 3), genesis.ones(1, 1, 2), (2,), (1,), (0,), (1,), 1)
    tensor([[[2., 2.]]])
    """
    x, g = widened(input, other)
    n, out = x.shape[0], g.shape[2:]
    columns = windows(with_border(x, padding), kernel, stride, dilation, out)
    inner = x.shape[1] // groups * math.prod(kernel)
    columns = columns.reshape(n, groups, inner, math.prod(out))
    y = np.matmul(g.reshape(n, groups, -1 if g.size else g.shape[1] // groups, math.prod(out)), columns.swapaxes(2, 3))
    shape = (g.shape[1], x.shape[1] // groups, *kernel)
    out = np.add.reduce(y, 0).reshape(shape).astype(input.dtype, copy=False)
    return with_channels_last(out) if one_is_channels_last(input, other) else out


samples(
    convolution_weight,
    lambda t: [
        case(t(2, 2, 5), t(2, 3, 3), (3,), (2,), (1,), (1,), 1),
        case(t(1, 4, 4, 3), t(1, 4, 2, 2), (2, 2), (1, 2), (0, 1), (2, 1), 2),
    ],
)

__all__ = ["convolution"]
