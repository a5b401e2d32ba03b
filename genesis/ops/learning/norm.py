"""Normalisation, attention's companion: layer, RMS, batch and group norms, and unit vectors."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.arrays.memory import DeviceArray
from genesis.base import dtypes
from genesis.base.errors import ArgumentValueError, DTypeError, ShapeError, message
from genesis.base.quiet import directly, quietly, unnamed
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.halves import F32, wide
from genesis.core.call.kinds import case, composite
from genesis.core.call.writes import bump_all, only_writes
from genesis.core.graph.modes import no_grad
from genesis.core.graph.tensor import Tensor
from genesis.ops.shapes.join import stack
from genesis.ops.reductions.norms import norm
from genesis.ops.learning.standard import centered, moments_of_channels, root_mean_square, standardized

FEW = 1 << 12  # numbers from which a call of a compiled loop pays


def _trailing(name: str, input: Tensor, normalized_shape: Any) -> tuple[int, ...]:
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if not shape or tuple(input._array.shape[-len(shape) :]) != shape:
        raise ShapeError(
            message(
                name,
                f"normalized_shape {list(shape)} is not the end of the input's {list(input.shape)}",
                [("input", input._spec())],
            )
        )
    return tuple(range(-len(shape), 0))


_bad = (lambda t: case(t(2, 3), (4,)), RuntimeError, "normalized_shape [4] is not the end of the input's [2, 3]")


@composite(halves="input", method=False, autocast="float32:gpu", torch_name="nn.functional.layer_norm")
def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """$(x - \\bar x) / \\sqrt{var + eps} \\cdot w + b$ over the last dimensions (Ba et al. 2016).

    Raises:
        RuntimeError: ``normalized_shape`` is not the end of the input's shape

    >>> import genesis
    >>> genesis.nn.functional.layer_norm(genesis.tensor([1., 3.]), (2,))
    tensor([-1.0000,  1.0000])
    """
    dims = _trailing("layer_norm", input, normalized_shape)
    out = standardized(input, dims, eps)
    out = out if weight is None else out * weight
    return out if bias is None else out + bias


samples(layer_norm, lambda t: [case(t(2, 3), (3,)), case(t(2, 3, 4), (3, 4), t(3, 4), t(3, 4)), case(t(4), (4,), t(4))])

wrong_inputs(layer_norm, _bad)


@composite(halves="input", method=False, dtypes="fc", autocast="float32:gpu", torch_name="nn.functional.rms_norm")
def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """$x / \\sqrt{mean(x^2) + eps} \\cdot w$ over the last dimensions (Zhang and Sennrich 2019); eps is the dtype's
    unless given.

    >>> import genesis
    >>> genesis.nn.functional.rms_norm(genesis.tensor([3., 3.]), (2,))
    tensor([1., 1.])
    """
    from genesis.base.dtypes import finfo

    dims = _trailing("rms_norm", input, normalized_shape)
    small = finfo(input.dtype).eps if eps is None else eps
    if weight is not None and weight.is_complex() and not input.is_complex():
        problem = f"complex weights are for complex inputs, this one is {input.dtype}"
        raise DTypeError(message("rms_norm", problem, [("input", input._spec()), ("weight", weight._spec())]))
    out = input / root_mean_square(input, dims, small)
    return out if weight is None else out * weight


samples(rms_norm, lambda t: [case(t(2, 3), (3,)), case(t(2, 3), (3,), t(3)), case(t(2, 3), (3,), None, 1e-6)])

wrong_inputs(
    rms_norm,
    _bad,
    (lambda t: case(t(2, 3), (3,), t(3).to(dtypes.complex64)), RuntimeError, "complex weights are for complex inputs"),
)


def _scaled(out: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """Times a weight and plus a bias for each channel."""
    shape = [1, -1] + [1] * (out.ndim - 2)
    out = out if weight is None else out * weight.reshape(shape)
    return out if bias is None else out + bias.reshape(shape)


@composite(halves="input", method=False, torch_name="")
def standardized_channels(
    input: Tensor, dim: tuple[int, ...], weight: Tensor | None, bias: Tensor | None, eps: float
) -> Tensor:
    """`standardized`, times a weight and plus a bias for each channel (dim 1): what batch and instance norms have in
    common.

    >>> import genesis
    >>> from genesis.ops.learning.norm import standardized_channels
    >>> standardized_channels(genesis.tensor([[1.], [3.]]), (0,), genesis.full((1,), 2.0), None, 0.0)
    tensor([[-2.],
            [ 2.]])
    """
    return _scaled(standardized(input, dim, eps), weight, bias)


samples(
    standardized_channels,
    lambda t: [
        case(t(4, 3), (0,), t(3), t(3), 1e-5),
        case(t(2, 3, 4), (2,), None, None, 0.1),
        case(t(3, 2, 17), (0, 2), t(2), t(2), 1e-5),
    ],
)


@composite(halves="input", method=False, torch_name="")
def normalized_channels(
    input: Tensor, mean: Tensor, variance: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> Tensor:
    """Less a mean, over the root of a variance plus eps, times a weight and plus a bias, each for a channel (dim 1):
    batch norm in evaluation.

    >>> import genesis
    >>> from genesis.ops.learning.norm import normalized_channels
    >>> normalized_channels(genesis.tensor([[1.], [3.]]), genesis.ones(1), genesis.full((1,), 4.0), None, None, 0.0)
    tensor([[0.],
            [1.]])
    """
    shape = [1, -1] + [1] * (input.ndim - 2)
    out = (input - wide(mean).reshape(shape)) / (wide(variance).reshape(shape) + eps).sqrt()
    return _scaled(out, weight, bias)


samples(
    normalized_channels,
    lambda t: [
        case(t(4, 3), t(3), t.positive(3), t(3), t(3), 1e-5),
        case(t(2, 3, 5), t(3), t.positive(3), None, None, 0.1),
        case(t(2, 3, 2, 4), t(3), t.positive(3), t(3), None, 0.0),
    ],
)


@composite(method=False, torch_name="")
def channel_moments(input: Tensor) -> Tensor:
    """The mean of each channel (dim 1) and its variance, $\\frac{1}{n} \\sum_i (x_i - \\bar x)^2$: a tensor (2, channels), of
    16-bit floats float32.

    >>> import genesis
    >>> from genesis.ops.learning.norm import channel_moments
    >>> channel_moments(genesis.tensor([[1.], [3.]]))
    tensor([[2.],
            [1.]])
    """
    input, dims = wide(input), [0, *range(2, input.ndim)]
    return stack([input.mean(dims), centered(input, dims).square().mean(dims)])  # type: ignore[attr-defined]


samples(channel_moments, lambda t: [case(t(4, 3)), case(t(2, 3, 4)), case(t(2, 2, 17))])


class _OfCall(threading.local):
    """Of the batch norm that this thread computes: the moments that its kernel found, by what they are of. Kernels see no
    variables of a context.
    """

    moments: dict[int, tuple[Any, Any]] | None = None


of_call = _OfCall()


@composite(
    written=("running_mean", "running_var"),
    method=False,
    torch_name="nn.functional.batch_norm",
)
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float | Tensor = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise each channel (dim 1) by the batch's mean and variance, or in evaluation by the running ones (Ioffe and
    Szegedy 2015).

    In training the running statistics move by ``momentum`` towards the batch's (with the unbiased variance).

    Raises:
        ValueError: training with one value per channel

    >>> import genesis
    >>> genesis.nn.functional.batch_norm(genesis.tensor([[1.], [3.]]), None, None, training=True)
    tensor([[-1.0000],
            [ 1.0000]])
    """
    shape = input._array.shape
    size = math.prod(shape)
    if not size:  # of (0,) no channel can be named
        return input.clone() if input.ndim == 1 else _scaled(input.clone(), weight, bias).to(input.dtype)
    use_batch = training or running_mean is None or running_var is None
    if not use_batch:
        return normalized_channels(input, running_mean, running_var, weight, bias, eps)  # type: ignore[no-any-return]
    count = size // input.shape[1]
    if training and count <= 1:
        raise ArgumentValueError(
            message("batch_norm", f"more than one value per channel is needed in training, got {list(input.shape)}")
        )
    of_call.moments = {}
    try:
        out = standardized_channels(input, (0, *range(2, len(shape))), weight, bias, eps)
        if training and running_mean is not None and running_var is not None:
            given = running_mean, running_var, input, count / (count - 1), momentum
            if not _moves_arrays(*given):
                with no_grad():
                    _move_running(*given)
    finally:
        of_call.moments = None
    return out  # type: ignore[no-any-return]


samples(batch_norm, lambda t: [case(t(4, 3), None, None, t(3), t(3), True), case(t(4, 3), t(3), t.positive(3))])

wrong_inputs(
    batch_norm, (lambda t: case(t(1, 3), None, None, training=True), ValueError, "batch_norm: more than one value")
)


def _moves_arrays(
    running_mean: Tensor, running_var: Tensor, input: Tensor, unbiased: float, momentum: float | Tensor
) -> bool:
    """Move the statistics, if that is a matter of NumPy's arrays."""
    if not _is_plain(running_mean, running_var, input, momentum):
        return False
    moments = _moments_of(input)
    move = MOVES[-1] if moments is not None else _move
    if moments is None:
        moments = quietly(moments_of_channels, input._array)
    directly(move, running_mean._array, running_var._array, moments, unbiased, momentum)
    bump_all((running_mean, running_var), "batch_norm")
    return True


def _move_running(
    running_mean: Tensor, running_var: Tensor, input: Tensor, unbiased: float, momentum: float | Tensor
) -> None:
    if not isinstance(input._array, DeviceArray):  # whose kernels read 16-bit floats as they are
        input = wide(input)
    if _moves_arrays(running_mean, running_var, input, unbiased, momentum):
        return
    mean, var = channel_moments(input).unbind()
    for running, batch in ((running_mean, mean), (running_var, var * unbiased)):
        running.copy_(wide(running) * (1 - momentum) + batch * momentum)


def _moments_of(input: Tensor) -> Any:
    """What the kernel found, or another one does; None where a call takes longer than to compute them."""
    _, known = (of_call.moments or {}).get(id(input._array), (None, None))
    return known if known is not None or input._array.size <= FEW else channel_moments(input)._array


def _is_plain(running_mean: Tensor, running_var: Tensor, input: Tensor, momentum: float | Tensor) -> bool:
    """Whether there are only float32 numbers to be computed, and written to memory: no mode is open that would see ops."""
    shape = input._array.shape[1:2]
    return (
        momentum.__class__ is float
        and input._array.__class__ is np.ndarray
        and input._array.dtype is F32
        and all(
            [x._array.dtype is F32 and x._array.shape == shape and only_writes(x) for x in (running_mean, running_var)]
        )
    )


@unnamed
def _move(mean: Any, var: Any, moments: Any, unbiased: float, momentum: float) -> None:
    """Move the running statistics a step towards the moments of a batch."""
    rest, (batch_mean, batch_var) = 1 - momentum, moments
    new = mean * rest + batch_mean * momentum, var * rest + (batch_var * unbiased) * momentum
    mean[...], var[...] = new


MOVES = [_move]  # the last is for moments that a kernel found, an array (2, channels): kernels may have a faster one


@composite(halves="input", method=False, autocast="float32:gpu", torch_name="nn.functional.group_norm")
def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Normalise groups of channels (dim 1) of each example (Wu and He 2018).

    Raises:
        RuntimeError: the channels cannot be divided into that many groups

    >>> import genesis
    >>> genesis.nn.functional.group_norm(genesis.tensor([[1., 3.]]), 1)
    tensor([[-1.0000,  1.0000]])
    """
    channels = input.shape[1]
    if channels % num_groups:
        raise ShapeError(
            message(
                "group_norm",
                f"{channels} channels cannot be divided into {num_groups} groups",
                [("input", input._spec())],
            )
        )
    if not input.numel():
        return _scaled(input, weight, bias)
    x = input.reshape(input.shape[0], num_groups, -1)
    return _scaled(layer_norm(x, (x.shape[-1],), eps=eps).reshape(input.shape), weight, bias)


samples(
    group_norm,
    lambda t: [
        case(t(2, 4, 3), 2),
        case(t(2, 4), 2, t(4), t(4)),
        case(t(0, 4), 2, t(4)),
        case(t(2, 4, 17), 2, t(4), t(4)),
        case(t(3, 2, 17), 1),
    ],
)

wrong_inputs(
    group_norm, (lambda t: case(t(2, 4), 3), RuntimeError, "group_norm: 4 channels cannot be divided into 3 groups")
)


@composite(halves="wide", method=False, out=True, torch_name="nn.functional.normalize", autocast="float32:gpu")
def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """Vectors along ``dim`` divided by their p-norm (but at least ``eps``).

    >>> import genesis
    >>> genesis.nn.functional.normalize(genesis.tensor([[3., 4.]]))
    tensor([[0.6000, 0.8000]])
    """
    return input / norm(input, p, dim, True).clamp(min=eps)


samples(normalize, lambda t: [case(t(3, 4)), case(t(3, 4), 1.0, 0)])


FUNCTIONAL = ["batch_norm", "group_norm", "layer_norm", "normalize", "rms_norm"]
__all__: list[str] = []
