"""Linear and bilinear maps: inputs times a weight, plus a bias."""

from __future__ import annotations

from typing import Any


from genesis.arrays.protocol import Array
from genesis.arrays.spec import Spec
from genesis.base.blas import product, product_and_bias, product_of_halves
from genesis.base.quiet import unnamed
from genesis.base.errors import ShapeError, message
from genesis.core.call.halves import F32, HALVES
from genesis.core.call.kinds import case, composite, contraction
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.graph.tensor import Tensor
from genesis.ops.products.matmul import as_rows, matmul, product_spec, rows_times, same_dtype
from genesis.ops.shapes.expand import sum_to


def _linear_of_others(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    out = matmul(input, weight.mT if weight.ndim == 2 else weight)
    return out if bias is None else out + bias


def _infer_linear(input: Spec, weight: Spec, bias: Spec | None) -> Spec:
    named = [("input", input), ("weight", weight)] + ([("bias", bias)] if bias is not None else [])
    if not 1 <= len(weight.shape) <= 2 or not input.shape:
        raise ShapeError(message("linear", "input must be at least 1-D and weight 1-D or 2-D", named))
    if input.shape[-1] != weight.shape[-1]:
        raise ShapeError(
            message(
                "linear",
                f"input has {input.shape[-1]} features, weight {weight.shape[-1]}",
                named,
                "weight is (out_features, in_features)",
            )
        )
    same_dtype("linear", *[s for s in (input, weight, bias) if s is not None])
    shape = (*input.shape[:-1], *weight.shape[:-1])
    if bias is not None and bias.shape not in ((shape[-1],) if shape else (), (1,), ()):
        raise ShapeError(
            message(
                "linear", f"bias has shape {list(bias.shape)}, the output {shape[-1] if shape else 1} features", named
            )
        )
    return Spec(shape, input.dtype, input.device)


@contraction(
    {"input": lambda g, other: linear(other, g), "other": lambda g, input: matmul(input, g)},
    method=False,
    dtypes="fc",
    decompose=lambda input, other: matmul(input.mT, other),
    infer=lambda input, other: Spec((input.shape[1], other.shape[1]), input.dtype, input.device),
    torch_name="",
    autocast="low",
)
@unnamed
def matmul_tn(input: Array, other: Array) -> Any:
    """$X^T Y$ of two matrices with one number of rows; the gradient of `linear` for its weight, without a view on the
    way.

    >>> import genesis
    >>> from importlib import import_module
    >>> import_module("genesis.ops.products.linear").matmul_tn(genesis.ones(2, 1), genesis.ones(2, 1))
    tensor([[2.]])
    """
    if input.dtype in HALVES:
        return product(input.T.astype(F32), other.astype(F32)).astype(input.dtype)
    if input.shape[0] == 1 == other.shape[0]:  # one sample: NumPy's product takes four times as long
        return input.T * other
    return product(input.T, other)


samples(matmul_tn, lambda t: [case(t(3, 2), t(3, 4))])


def _linear_weight(g: Any, input: Any, weight_shape: Any) -> Any:
    if len(weight_shape) == 1:
        return as_rows(input * g.unsqueeze(-1)).sum(0)
    if g.ndim == 2:
        return matmul_tn(g, input)
    return matmul_tn(as_rows(g), as_rows(input))


def _linear_bias(g: Any, bias_shape: Any) -> Any:
    return (
        g.sum(0)
        if g.ndim == 2 and len(bias_shape) == 1 and bias_shape[0] == g._array.shape[1]
        else sum_to(g, bias_shape)
    )


@contraction(
    {
        "input": lambda g, weight: matmul(g, weight) if weight.ndim == 2 else g.unsqueeze(-1) * weight,
        "weight": _linear_weight,
        "bias": _linear_bias,
    },
    core=(1, None, None),
    added="bias",
    decompose=_linear_of_others,
    infer=_infer_linear,
    autocast="low",
    dtypes="fc",
    method=False,
    out=True,
    torch_name="nn.functional.linear",
)
@unnamed
def linear(input: Array, weight: Array, bias: Array | None = None) -> Any:
    """$x W^T + b$, with weight of shape (out_features, in_features).

    Raises:
        RuntimeError: sizes or dtypes that do not fit

    >>> import genesis
    >>> genesis.nn.functional.linear(genesis.ones(2), genesis.ones(1, 2), genesis.ones(1))
    tensor([3.])
    """
    kind = input.dtype
    if kind is not weight.dtype or (bias is not None and (bias.dtype is not kind or bias.shape != weight.shape[:-1])):
        _infer_linear(product_spec(input), product_spec(weight), None if bias is None else product_spec(bias))
    if kind in HALVES:
        return product_of_halves(input, weight.T, bias).astype(kind)
    if input.ndim > 2 and weight.ndim == 2:
        return rows_times(input, weight.T, bias)
    return product(input, weight.T) if bias is None else product_and_bias(input, weight.T, bias)


samples(
    linear,
    lambda t: [
        case(t(2, 3), t(4, 3), t(4)),
        case(t(3), t(4, 3)),
        case(t(2, 2, 3), t(4, 3), t(4)),
        case(t(0, 3), t(2, 3), t(2)),
        case(t(2, 2, 0), t(3, 0), t(3)),
    ],
)

wrong_inputs(
    linear,
    (lambda t: case(t(2, 3), t(4, 5)), RuntimeError, "linear: input has 3 features, weight 5"),
    (lambda t: case(t(2, 3), t(4, 3), t(5)), RuntimeError, "linear: bias has shape [5], the output 4 features"),
)


@composite(halves="alike", method=False, autocast="own", torch_name="nn.functional.bilinear")
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """$x_1^T W_k x_2 + b_k$.

    >>> import genesis
    >>> genesis.nn.functional.bilinear(genesis.ones(1, 2), genesis.ones(1, 3), genesis.ones(1, 2, 3))
    tensor([[6.]])
    """
    k, i, j = weight.shape
    rows = (input2 @ weight.reshape(k * i, j).T).reshape(*input2.shape[:-1], k, i)  # $W_k x_2$
    out = (rows @ input1.unsqueeze(-1)).squeeze(-1)
    return out if bias is None else out + bias


samples(bilinear, lambda t: [case(t(2, 3), t(2, 4), t(5, 3, 4), t(5))])

__all__: list[str] = []
