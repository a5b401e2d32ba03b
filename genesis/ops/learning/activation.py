"""Activation functions: compositions of elementwise ops, the hot ones of `pointwise/curves.py`."""

from __future__ import annotations

import math

from genesis.base.dtypes import bool as bool_
from genesis.base.dtypes import float32
from genesis.base.errors import ArgumentValueError, DTypeError, ShapeError, message
from genesis.core.call.kinds import case, composite
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.inplace_methods import inplace_method
from genesis.core.graph.tensor import Tensor
from genesis.ops.pointwise.choice import where
from genesis.ops.pointwise.curves import log1pexp, relu, sigmoid, tanh_rest, times_sigmoid, times_tanh_log1pexp
from genesis.ops.pointwise.elementwise import expm1, tanh
from genesis.ops.pointwise.special import normal_cdf

_plain = lambda t: [case(t()), case(t(2, 3)), case(t(0, 3))]  # noqa: E731


@composite(method=False, inplace=True, torch_name="nn.functional.relu6")
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Rectifier with a ceiling, $\\min(\\max(x, 0), 6)$.

    >>> import genesis
    >>> genesis.nn.functional.relu6(genesis.tensor([-1., 3., 8.]))
    tensor([0., 3., 6.])
    """
    return hardtanh(input, 0.0, 6.0)


samples(relu6, _plain)


@composite(halves="wide", method=False, inplace=True, torch_name="nn.functional.leaky_relu")
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """$x$ above zero, ``negative_slope`` $\\cdot x$ below.

    >>> import genesis
    >>> genesis.nn.functional.leaky_relu(genesis.tensor([-2., 2.]), 0.1)
    tensor([-0.2000,  2.0000])
    """
    return where(input > 0, input, input * negative_slope)


samples(leaky_relu, _plain)


@composite(halves="wide", autocast="low")
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """`leaky_relu` with learned slopes, one for all elements or one per channel (dim 1).

    Raises:
        RuntimeError: another number of weights

    >>> import genesis
    >>> genesis.prelu(genesis.tensor([-2., 2.]), genesis.tensor([0.5]))
    tensor([-1.,  2.])
    """
    if weight.numel() != 1:
        channels = input.shape[1] if input.ndim > 1 else 1
        if weight.numel() != channels:
            raise ShapeError(message("prelu", f"{weight.numel()} weights for {channels} channels"))
        weight = weight.reshape([1, channels] + [1] * (input.ndim - 2))
    else:
        weight = weight.reshape(())
    return where(input > 0, input, input * weight)


samples(prelu, lambda t: [case(t(2, 3), t(1, low=0.1, high=0.4)), case(t(2, 3, 4), t(3, low=0.1, high=0.4))])

wrong_inputs(prelu, (lambda t: case(t(2, 3), t(2)), RuntimeError, "prelu: 2 weights for 3 channels"))


def _up_to_zero(x: Tensor) -> Tensor:
    """At most zero, with slope 1 there and at nan, which a limit has not."""
    return where(x > 0, 0.0, x)


@composite(halves="wide", method=False, inplace=True, torch_name="nn.functional.elu")
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """$x$ above zero, $\\alpha (e^x - 1)$ below (Clevert et al. 2015).

    >>> import genesis
    >>> genesis.nn.functional.elu(genesis.tensor([-1., 2.]))
    tensor([-0.6321,  2.0000])
    """
    return where(input > 0, input, alpha * expm1(_up_to_zero(input)))


samples(elu, _plain)


@composite(halves="wide", method=False, inplace=True, torch_name="celu")
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """$\\max(x, 0) + \\min(0, \\alpha (e^{x/\\alpha} - 1))$ (Barron 2017).

    >>> import genesis
    >>> genesis.celu(genesis.tensor([-1., 2.]))
    tensor([-0.6321,  2.0000])
    """
    return where(input > 0, input, alpha * expm1(_up_to_zero(input / alpha)))


samples(celu, _plain)


@composite(halves="wide", method=False, inplace=True, torch_name="selu")
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Self-normalising unit, a scaled `elu` (Klambauer et al. 2017).

    >>> import genesis
    >>> genesis.selu(genesis.tensor([-1., 1.]))
    tensor([-1.1113,  1.0507])
    """
    return 1.0507009873554804934193349852946 * elu(input, 1.6732632423543772848170429916717)


samples(selu, _plain)


@composite(halves="wide", method=False, out=True, torch_name="nn.functional.gelu")
def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """Gaussian error linear unit, $x \\Phi(x)$, or its tanh approximation (Hendrycks and Gimpel 2016).

    Raises:
        ValueError: ``approximate`` is neither "none" nor "tanh"

    >>> import genesis
    >>> genesis.nn.functional.gelu(genesis.tensor([-1., 1.]))
    tensor([-0.1587,  0.8413])
    """
    if approximate == "none":
        return input * normal_cdf(input)
    if approximate == "tanh":  # 1 + tanh(z) is 2 sigmoid(2 z), which does not cancel where z is far below zero
        scale = 2 * math.sqrt(2 / math.pi)
        return input * sigmoid(input * (scale + (scale * 0.044715) * input * input))
    raise ArgumentValueError(message("gelu", f"approximate must be 'none' or 'tanh', got {approximate!r}"))


samples(gelu, lambda t: [case(t()), case(t(2, 3)), case(t(3), approximate="tanh")])

wrong_inputs(gelu, (lambda t: case(t(2), approximate="fast"), ValueError, "gelu: approximate must be 'none' or 'tanh'"))


@composite(halves="wide", method=False, inplace=True, torch_name="nn.functional.silu")
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """Sigmoid linear unit, $x \\sigma(x)$.

    >>> import genesis
    >>> genesis.nn.functional.silu(genesis.tensor([0., 1.]))
    tensor([0.0000, 0.7311])
    """
    if input.is_complex():
        return input / (1 + (-input).exp())
    return times_sigmoid(input)


samples(silu, _plain)


@composite(halves="wide", method=False, inplace=True, torch_name="nn.functional.mish")
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """$x \\tanh(\\ln(1 + e^x))$ (Misra 2019).

    >>> import genesis
    >>> genesis.nn.functional.mish(genesis.tensor([0., 1.]))
    tensor([0.0000, 0.8651])
    """
    return times_tanh_log1pexp(input)


samples(mish, _plain)


_LINEAR = 17.0  # from here ln(1 + e^x) is x in float32, and its slope 1


@composite(halves="wide", method=False, out=True, torch_name="nn.functional.softplus", autocast="float32:gpu")
def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """Smooth rectifier, $\\ln(1 + e^{\\beta x}) / \\beta$; linear where $\\beta x$ is above ``threshold``.

    >>> import genesis
    >>> genesis.nn.functional.softplus(genesis.tensor([0., 1.]))
    tensor([0.6931, 1.3133])
    """
    if beta == 1 and threshold >= _LINEAR and input.dtype is float32:
        return log1pexp(input)
    scaled = input if beta == 1 else input * beta
    return where(scaled > threshold, input, log1pexp(scaled) / beta)


samples(softplus, lambda t: [case(t(2, 3)), case(t(3), beta=2.0), case(t(3), 1.0, 0.5)])


@composite(halves="wide", method=False, torch_name="nn.functional.softsign")
def softsign(input: Tensor) -> Tensor:
    """$x / (1 + |x|)$.

    >>> import genesis
    >>> genesis.nn.functional.softsign(genesis.tensor([-1., 3.]))
    tensor([-0.5000,  0.7500])
    """
    return input / (1 + input.abs())


samples(softsign, _plain)


@composite(method=False, inplace=True, torch_name="nn.functional.hardtanh")
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Limit to a range, with slope 0 on its edges.

    >>> import genesis
    >>> genesis.nn.functional.hardtanh(genesis.tensor([-2., 0.5]))
    tensor([-1.0000,  0.5000])
    """
    if not input.is_floating_point():
        min_val, max_val = _integer_bounds(input, min_val, max_val)
    return where(input <= min_val, min_val, where(input >= max_val, max_val, input))


samples(hardtanh, _plain)


def _integer_bounds(input: Tensor, low: float, high: float) -> tuple[int, int]:
    """Bounds for integers are integers, so that the result is of their dtype."""
    if input.dtype is bool_ or input.is_complex():
        raise DTypeError(message("hardtanh", f"{input.dtype} is not supported, it takes floating, integer tensors"))
    if low < 0 and not input.dtype.is_signed:
        raise ArgumentValueError(
            message("hardtanh", f"a lower limit of {low} for unsigned integers, {input.dtype}", hint="min_val=0")
        )
    return int(low), int(high)


@composite(halves="wide", method=False, inplace=True, torch_name="nn.functional.hardsigmoid")
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """Piecewise linear sigmoid, 0 below -3, 1 above 3, $x / 6 + 1 / 2$ between.

    >>> import genesis
    >>> genesis.nn.functional.hardsigmoid(genesis.tensor([-4., 0.]))
    tensor([0.0000, 0.5000])
    """
    return hardtanh(input + 3, 0.0, 6.0) / 6


samples(hardsigmoid, _plain)


@composite(halves="wide", method=False, inplace=True, torch_name="nn.functional.hardswish")
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """$x$ times `hardsigmoid` (Howard et al. 2019).

    >>> import genesis
    >>> genesis.nn.functional.hardswish(genesis.tensor([-4., 3.]))
    tensor([-0., 3.])
    """
    return input * hardsigmoid(input)


samples(hardswish, _plain)


@composite(halves="wide", method=False, out=True, torch_name="nn.functional.logsigmoid")
def logsigmoid(input: Tensor) -> Tensor:
    """Stable $\\ln \\sigma(x)$.

    >>> import genesis
    >>> genesis.nn.functional.logsigmoid(genesis.tensor([0., 1.]))
    tensor([-0.6931, -0.3133])
    """
    return -log1pexp(-input)


samples(logsigmoid, _plain)


@composite(halves="wide", method=False, dtypes="fci", torch_name="nn.functional.tanhshrink")
def tanhshrink(input: Tensor) -> Tensor:
    """$x - \\tanh x$.

    >>> import genesis
    >>> genesis.nn.functional.tanhshrink(genesis.tensor([0., 1.]))
    tensor([0.0000, 0.2384])
    """
    if not input.is_floating_point():
        return input - tanh(input)
    return tanh_rest(input)


samples(tanhshrink, _plain)


@composite(method=False, inplace=True)
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """``value`` up to the threshold, $x$ elsewhere.

    >>> import genesis
    >>> genesis.threshold(genesis.tensor([0., 1.]), 0.5, -1.0)
    tensor([-1.,  1.])
    """
    if not input.is_floating_point():
        threshold, value = int(threshold), int(value)  # of integers integers
    return where(input <= threshold, value, input)


samples(threshold, lambda t: [case(t(2, 3), 0.15, 9.0)])


@composite(halves="wide", method=False, torch_name="nn.functional.glu")
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """Gated linear unit, $a \\sigma(b)$ of the two halves along ``dim`` (Dauphin et al. 2016).

    Raises:
        RuntimeError: the size of ``dim`` is odd

    >>> import genesis
    >>> genesis.nn.functional.glu(genesis.tensor([1., 0.]))
    tensor([0.5000])
    """
    if input.shape[dim] % 2:
        raise ShapeError(message("glu", f"dim {dim} has odd size {input.shape[dim]}"))
    a, b = input.chunk(2, dim)
    return a * sigmoid(b)


samples(glu, lambda t: [case(t(2, 4)), case(t(4, 3), 0)])

wrong_inputs(glu, (lambda t: case(t(3)), RuntimeError, "glu: dim -1 has odd size 3"))


@composite(torch_name="hardshrink", method=True, out=True)
def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """$x$ beyond ``lambd`` on both sides, zero between.

    >>> import genesis
    >>> genesis.hardshrink(genesis.tensor([-1., 0.25]))
    tensor([-1.,  0.])
    """
    return where((input >= -lambd) & (input <= lambd), 0.0, input)


samples(hardshrink, lambda t: [case(t()), case(t(2, 3), 0.1), case(t(0, 3))])


@composite(method=False, halves="wide", out=True, torch_name="nn.functional.softshrink")
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """$x$ moved towards zero by ``lambd``, and zero where that is farther.

    Raises:
        RuntimeError: ``lambd`` is negative

    >>> import genesis
    >>> genesis.nn.functional.softshrink(genesis.tensor([-1., 0.25]))
    tensor([-0.5000,  0.0000])
    """
    if not lambd >= 0:
        raise ShapeError(message("softshrink", f"lambd must not be negative, got {lambd}"))
    near = (input >= -lambd) & (input <= lambd)
    return where(near, 0.0, where(input > 0, input - lambd, input + lambd))


samples(softshrink, lambda t: [case(t()), case(t(2, 3), 0.1), case(t(0, 3))])
wrong_inputs(softshrink, (lambda t: case(t(3), -1.0), RuntimeError, "lambd must not be negative, got -1.0"))


celu_, elu_, hardtanh_, leaky_relu_, relu_, selu_, threshold_ = (
    inplace_method(call.op)  # type: ignore[attr-defined]
    for call in (celu, elu, hardtanh, leaky_relu, relu, selu, threshold)
)

__all__ = [
    "celu",
    "celu_",
    "hardshrink",
    "prelu",
    "relu_",
    "selu",
    "selu_",
    "threshold",
    "threshold_",
]

FUNCTIONAL = [
    "celu",
    "celu_",
    "elu",
    "elu_",
    "gelu",
    "glu",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "leaky_relu",
    "leaky_relu_",
    "logsigmoid",
    "mish",
    "prelu",
    "relu_",
    "relu6",
    "selu",
    "selu_",
    "silu",
    "softplus",
    "softshrink",
    "softsign",
    "tanhshrink",
    "threshold",
    "threshold_",
]
