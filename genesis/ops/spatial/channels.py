"""What treats channels as wholes: dropout of channels, normalisation of each, and of each by its neighbours."""

from __future__ import annotations

import math
from typing import Any

from genesis.arrays.spec import Spec
from genesis.base.errors import ArgumentValueError, ShapeError, message
from genesis.core.call.halves import wide
from genesis.core.call.kinds import case, composite, drawn
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.graph.generator import default_generator
from genesis.core.graph.modes import no_grad
from genesis.core.graph.tensor import Tensor, wrap
from genesis.ops.creation.create import in_order, order_of
from genesis.ops.learning.norm import batch_norm, standardized_channels
from genesis.ops.learning.standard import centered
from genesis.ops.pointwise.arithmetic import divide
from genesis.ops.spatial.arguments import AXES
from genesis.ops.spatial.sums import mix

# ---- dropout

_LIMIT = 1.7580993408473766  # what SELU tends to far below zero, without its sign (Klambauer et al. 2017)


def _check_p(name: str, p: float) -> None:
    if not 0 <= p <= 1:
        raise ArgumentValueError(message(name, f"p must be between 0 and 1, got {p}"))


def _kept(input: Tensor, shape: tuple[int, ...], p: float) -> Tensor:
    """0 with probability p, else 1 / (1 - p), of a shape that broadcasts."""
    dtype = wide(input)._array.dtype
    factors = wrap(drawn(default_generator, "dropout", shape, dtype, float(p), device=input.device))
    return in_order(factors, order_of(input, None)) if shape == tuple(input._array.shape) else factors


def _dropped(input: Tensor, shape: tuple[int, ...], p: float, inplace: bool) -> Tensor:
    if p == 1:
        result = input * 0.0
    elif isinstance(input._array, Spec):
        result = input * 1.0
    else:
        result = (wide(input) * _kept(input, shape, p)).to(input._array.dtype)  # type: ignore[attr-defined]
    return input.copy_(result) if inplace else result  # type: ignore[attr-defined, no-any-return]


def _to_the_limit(input: Tensor, shape: tuple[int, ...], p: float, inplace: bool) -> Tensor:
    """Elements replaced by SELU's limit, then scaled and shifted so that mean and variance stay."""
    if p == 1:
        result = input * 0.0
    elif isinstance(input._array, Spec):
        result = input * 1.0
    else:
        a = 1 / math.sqrt((_LIMIT**2 * p + 1) * (1 - p))
        keep = _kept(input, shape, p) * (1 - p)
        result = (wide(input) * (keep * a) + (keep - (1 - p)) * (_LIMIT * a)).to(input._array.dtype)  # type: ignore[attr-defined]
    return input.copy_(result) if inplace else result  # type: ignore[attr-defined, no-any-return]


def _channels(input: Tensor, batched: bool = True) -> tuple[int, ...]:
    """The shape of one number for each channel of each example."""
    count = 2 if batched else 1
    return (*input.shape[:count], *[1] * (input.ndim - count))


def _channel_dropout(dims: int) -> Any:
    name = f"dropout{dims}d"

    def drop(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
        _check_p(name, p)
        if dims == 1 and input.ndim not in (2, 3):
            text = f"expected input (C, L) or (N, C, L), got {input.ndim}-D"
            raise ShapeError(message(name, text, [("input", input._spec())]))
        if not training or p == 0:
            return input
        # as in PyTorch, dropout2d takes (N, C, L) where the others take one example
        alone = input.ndim == dims + 1 and dims != 2
        return _dropped(input, _channels(input, not alone), p, inplace)

    drop.__name__ = drop.__qualname__ = name
    drop.__doc__ = f"""Zero whole channels of {AXES[dims]} with probability ``p``, and scale the others by 1 / (1 - p) (Tompson et al.
    2015).

    Raises:
        ValueError: ``p`` outside [0, 1]

    >>> import genesis
    >>> genesis.nn.functional.{name}(genesis.ones(1, 1, {", ".join(["2"] * dims)}), training=False).sum()
    tensor({2.0**dims:.0f}.)
    """
    call = composite(method=False, torch_name=f"nn.functional.{name}")(drop)
    samples(call, lambda t: [case(t(2, 3, *[2] * dims), 0.0), case(t(2, 3, *[2] * dims), 1.0)])
    wrong_inputs(
        call,
        (lambda t: case(t(2, 3, *[2] * dims), 1.5), ValueError, f"{name}: p must be between 0 and 1, got 1.5"),
    )
    return call


dropout1d, dropout2d, dropout3d = (_channel_dropout(dims) for dims in (1, 2, 3))


@composite(method=False, torch_name="nn.functional.alpha_dropout")
def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Elements become the limit of `selu` far below zero with probability ``p``, then all are scaled and shifted: mean 0
    and variance 1 stay (Klambauer et al. 2017).

    Raises:
        ValueError: ``p`` outside [0, 1]

    >>> import genesis
    >>> genesis.nn.functional.alpha_dropout(genesis.ones(2))
    tensor([1., 1.])
    """
    _check_p("alpha_dropout", p)
    return input if not training or p == 0 else _to_the_limit(input, tuple(input._array.shape), p, inplace)


samples(alpha_dropout, lambda t: [case(t(3, 4)), case(t(3), 1.0, True)])

wrong_inputs(alpha_dropout, (lambda t: case(t(3), -0.5), ValueError, "alpha_dropout: p must be between 0 and 1"))


@composite(method=False, torch_name="nn.functional.feature_alpha_dropout")
def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """`alpha_dropout` of whole channels, (N, C, ...).

    Raises:
        ValueError: ``p`` outside [0, 1]
        RuntimeError: fewer than two dimensions

    >>> import genesis
    >>> genesis.nn.functional.feature_alpha_dropout(genesis.ones(1, 2))
    tensor([[1., 1.]])
    """
    _check_p("feature_alpha_dropout", p)
    if not training or p == 0:
        return input
    if input.ndim < 2:
        text = f"expected input (N, C, ...), got {input.ndim}-D"
        raise ShapeError(message("feature_alpha_dropout", text, [("input", input._spec())]))
    return _to_the_limit(input, _channels(input), p, inplace)


samples(feature_alpha_dropout, lambda t: [case(t(3, 4)), case(t(2, 3, 2), 1.0, True)])

wrong_inputs(
    feature_alpha_dropout,
    (lambda t: case(t(3), 1.5), ValueError, "feature_alpha_dropout: p must be between 0 and 1"),
    (lambda t: case(t(3), 0.5, True), RuntimeError, "feature_alpha_dropout: expected input (N, C, ...), got 1-D"),
)


# ---- normalisation


@composite(
    halves="input",
    written=("running_mean", "running_var"),
    method=False,
    torch_name="nn.functional.instance_norm",
)
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise each channel of each example (N, C, ...) by its mean and variance (Ulyanov et al. 2016), or without
    ``use_input_stats`` by the running ones.

    Running statistics move by ``momentum`` towards the means over the examples.

    Raises:
        ValueError: one element for each channel
        RuntimeError: fewer than three dimensions; no running statistics where they are to be used

    >>> import genesis
    >>> genesis.nn.functional.instance_norm(genesis.tensor([[[1., 3.]]]))
    tensor([[[-1.0000,  1.0000]]])
    """
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise ShapeError(message("instance_norm", "running_mean and running_var are needed, or use_input_stats"))
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)  # type: ignore[no-any-return]
    if input.ndim < 3:
        text = f"expected input (N, C, ...) with 3 dimensions or more, got {input.ndim}-D"
        raise ShapeError(message("instance_norm", text, [("input", input._spec())]))
    dims, count = list(range(2, input.ndim)), math.prod(input.shape[2:])
    if count == 1:
        text = f"more than one element for each channel is needed, got {list(input.shape)}"
        raise ArgumentValueError(message("instance_norm", text))
    out = standardized_channels(input, tuple(dims), weight, bias, eps)
    if running_mean is not None and running_var is not None:
        with no_grad():
            square = centered(input, dims).square().mean([0, *dims])
            for running, batch in (
                (running_mean, input.mean([0, *dims])),
                (running_var, square * (count / (count - 1))),
            ):  # type: ignore[attr-defined]
                running.copy_(wide(running) * (1 - momentum) + batch * momentum)  # type: ignore[attr-defined]
    return out  # type: ignore[no-any-return]


samples(instance_norm, lambda t: [case(t(2, 3, 4)), case(t(2, 3, 2, 2), None, None, t(3), t(3))])

wrong_inputs(
    instance_norm,
    (lambda t: case(t(2, 3)), RuntimeError, "instance_norm: expected input (N, C, ...) with 3 dimensions or more"),
    (lambda t: case(t(2, 3, 1)), ValueError, "instance_norm: more than one element for each channel is needed"),
)


@composite(halves="wide", method=False, torch_name="nn.functional.local_response_norm", autocast="float32:gpu")
def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """$x_c / (k + \\frac{\\alpha}{n} \\sum_{c'} x_{c'}^2)^\\beta$ with the sum over n = ``size`` channels around c
    (Krizhevsky et al. 2012).

    Raises:
        RuntimeError: fewer than three dimensions, or a size that is not positive

    >>> import genesis
    >>> genesis.nn.functional.local_response_norm(genesis.ones(1, 1, 1), 1, alpha=3.0, beta=0.5)
    tensor([[[0.5000]]])
    """
    if input.ndim < 3:
        text = f"expected input (N, C, ...) with 3 dimensions or more, got {input.ndim}-D"
        raise ShapeError(message("local_response_norm", text, [("input", input._spec())]))
    if size < 1:
        raise ShapeError(message("local_response_norm", f"size must be positive, got {size}"))
    if not input.numel():
        return input
    c = input.shape[1]
    sums = mix(input * input, 1, ("windows", c, c, size, 1, size // 2, 1))
    if not input.is_floating_point():  # the mean of integers is an integer, as that of `avg_pool1d` is
        return input / (divide(sums, size, rounding_mode="trunc") * alpha + k) ** beta
    return input / (sums * (alpha / size) + k) ** beta


samples(local_response_norm, lambda t: [case(t(2, 4, 3), 3, 0.5), case(t(1, 3, 2, 2), 2, 0.1, 0.5, 2.0)])

wrong_inputs(
    local_response_norm,
    (lambda t: case(t(2, 3), 2), RuntimeError, "local_response_norm: expected input (N, C, ...)"),
)

FUNCTIONAL = [
    "alpha_dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "feature_alpha_dropout",
    "instance_norm",
    "local_response_norm",
]
__all__: list[str] = []
