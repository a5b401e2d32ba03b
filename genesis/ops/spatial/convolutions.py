"""Convolutions as users call them: over one, two, three dimensions, and transposed; all are `convolution`."""

from __future__ import annotations

from typing import Any

from genesis.base.errors import ArgumentValueError, ShapeError, message
from genesis.core.call.kinds import case, composite
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.graph.tensor import Tensor
from genesis.ops.spatial.arguments import AXES, Sizes, batched, per_dim
from genesis.ops.spatial.convolution import convolution, spans
from genesis.ops.spatial.padding import constant_pad_nd

_DOC = """{title} over {dims} spatial dimension{s}: {axes} with weight {weight}.

    {maths}

    Args:
        bias: added to each of the output's channels
        stride, {more}dilation: one number for all dimensions or one for each{padding}
        groups: so many parts of the channels, each with weights of its own

    The input may lack the dimension of examples. Sizes of the output: ${size}$.

    Raises:
        RuntimeError: shapes, dtypes, sizes or groups that do not fit

    >>> import genesis
    >>> x, w = genesis.ones({ones}), genesis.ones({ones_weight})
    >>> genesis.nn.functional.{name}(x, w).shape
    genesis.Size({shape})
    """


def _documented(name: str, dims: int, transposed: bool) -> str:
    ones = ", ".join(["1", "2", *["4"] * dims])
    size = 5 if transposed else 3
    return _DOC.format(
        title="The transpose of a convolution (a gradient of one)" if transposed else "Convolution",
        dims=dims,
        s="s" * (dims > 1),
        axes=AXES[dims],
        name=name,
        weight="(in, out / groups, *kernel)" if transposed else "(out, in / groups, *kernel)",
        maths="$y_{n,o,s i + d k - p} = b_o + \\sum_c x_{n,c,i} w_{c,o,k}$, summed over what meets there."
        if transposed
        else "$y_{n,o,i} = b_o + \\sum_{c,k} x_{n,c,s i + d k - p} w_{o,c,k}$ with zeros outside of the input.",
        more="padding, output_padding, " if transposed else "",
        padding="; ``output_padding`` more at the end"
        if transposed
        else "\n        padding: zeros on both sides; 'valid' is none, 'same' as many as keep the size (for stride 1)",
        size="(n - 1) s - 2 p + d (k - 1) + 1 + e"
        if transposed
        else "\\lfloor (n + 2 p - d (k - 1) - 1) / s \\rfloor + 1",
        ones=ones,
        ones_weight=ones.replace("1, 2, 4", "2, 3, 2").replace("4", "2")
        if transposed
        else ones.replace("1, 2, 4", "3, 2, 2").replace("4", "2"),
        shape=[1, 3, *[size] * dims],
    )


def same_padding(name: str, kernel: Sizes, stride: Sizes, dilation: Sizes) -> list[tuple[int, int]]:
    """Zeros before and after each dimension that keep its size; one more after it where the number is odd."""
    if any([s != 1 for s in stride]):
        raise ShapeError(message(name, f"padding='same' needs stride 1, got {list(stride)}"))
    totals = [span - 1 for span in spans(kernel, dilation)]
    return [(n // 2, n - n // 2) for n in totals]


def _padding(name: str, input: Tensor, weight: Tensor, stride: Any, padding: Any, dilation: Any) -> tuple[Tensor, Any]:
    """The padding as numbers, and the input with the zeros that are on one side only."""
    if not isinstance(padding, str):
        return input, padding
    if padding == "valid":
        return input, 0
    if padding != "same":
        raise _UnknownPadding(message(name, f"padding must be numbers, 'same' or 'valid', got {padding!r}"))
    dims = weight.ndim - 2
    sides = same_padding(
        name, weight.shape[2:], per_dim(name, "stride", stride, dims), per_dim(name, "dilation", dilation, dims)
    )
    if any([after > before for before, after in sides]):
        input = constant_pad_nd(input, [n for before, after in reversed(sides) for n in (0, after - before)])
    return input, [before for before, _ in sides]


class _UnknownPadding(ArgumentValueError, RuntimeError):
    """A word for a padding that there is not: a RuntimeError in PyTorch."""


def _check_ranks(name: str, input: Tensor, weight: Tensor, dims: int) -> None:
    if weight.ndim != dims + 2:
        raise ShapeError(
            message(
                name,
                f"weight must have {dims + 2} dimensions, it has {weight.ndim}",
                [("input", input._spec()), ("weight", weight._spec())],
            )
        )


def _declared(function: Any, dims: int, transposed: bool, sample: Any, *wrong: Any) -> Any:
    name = f"conv_transpose{dims}d" if transposed else f"conv{dims}d"
    function.__name__ = function.__qualname__ = name
    function.__doc__ = _documented(name, dims, transposed)
    call = composite(method=False, dtypes="fci", torch_name=name)(function)
    samples(call, sample)
    wrong_inputs(
        call,
        (
            lambda t: case(t(*[3] * (dims + 3)), t(*[3] * (dims + 2))),
            RuntimeError,
            f"{name}: expected input {AXES[dims].replace('N, ', '')} or {AXES[dims]}, got {dims + 3}-D",
        ),
        (
            lambda t: case(t(1, 3, *[4] * dims), t(2, 4, *[2] * dims)),
            RuntimeError,
            f"{name}: input has 3 channels, weight is for {2 if transposed else 4} (groups 1)",
        ),
        *wrong,
    )
    return call


def _convolution_of(dims: int) -> Any:
    name = f"conv{dims}d"

    def conv(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        x, alone = batched(name, input, dims)
        _check_ranks(name, input, weight, dims)
        x, padding = _padding(name, x, weight, stride, padding, dilation)
        out = convolution(x, weight, bias, stride, padding, dilation, False, 0, groups)
        return out.squeeze(0) if alone else out  # type: ignore[no-any-return]

    small = [3] * dims
    return _declared(
        conv,
        dims,
        False,
        lambda t: [
            case(t(1, 2, *small), t(2, 1, *[2] * dims), t(2), 2, 1, groups=2),
            case(t(2, *small), t(1, 2, *[2] * dims), padding="same"),
        ],
        (
            lambda t: case(t(1, 1, *small), t(1, 1, *[5] * dims)),
            RuntimeError,
            f"{name}: the kernel spans {[5] * dims}, the padded input {small}",
        ),
        (
            lambda t: case(t(1, 1, *small), t(1, 1, *[2] * dims), padding="full"),
            RuntimeError,
            f"{name}: padding must be numbers, 'same' or 'valid', got 'full'",
        ),
        (
            lambda t: case(t(1, 1, *small), t(1, 1, *[2] * dims), stride=0),
            RuntimeError,
            f"{name}: stride must be at least 1, got 0",
        ),
    )


def _transposed_of(dims: int) -> Any:
    name = f"conv_transpose{dims}d"

    def conv(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
    ) -> Tensor:
        x, alone = batched(name, input, dims)
        _check_ranks(name, input, weight, dims)
        out = convolution(x, weight, bias, stride, padding, dilation, True, output_padding, groups)
        return out.squeeze(0) if alone else out  # type: ignore[no-any-return]

    small = [2] * dims
    return _declared(
        conv,
        dims,
        True,
        lambda t: [
            case(t(1, 2, *small), t(2, 1, *small), t(2), 2, 1, 1, groups=2),
            case(t(2, *small), t(2, 1, *small)),
        ],
        (
            lambda t: case(t(1, 1, *small), t(1, 1, *small), output_padding=1),
            RuntimeError,
            f"{name}: output_padding {[1] * dims} must be smaller than stride {[1] * dims}",
        ),
        (
            lambda t: case(t(1, 1, *small), t(1, 1, *small), padding=3),
            RuntimeError,
            f"{name}: the output would have sizes {[-3] * dims}",
        ),
    )


conv1d, conv2d, conv3d = (_convolution_of(dims) for dims in (1, 2, 3))
conv_transpose1d, conv_transpose2d, conv_transpose3d = (_transposed_of(dims) for dims in (1, 2, 3))


@composite(method=False, dtypes="fc")
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """`conv1d` of (time, batch, channels) with weight (kernel, in, out).

    >>> import genesis
    >>> genesis.conv_tbc(genesis.ones(4, 1, 2), genesis.ones(3, 2, 1), genesis.zeros(1)).shape
    genesis.Size([2, 1, 1])
    """
    for what, x in (("input", input), ("weight", weight)):
        if x.ndim != 3:
            raise ShapeError(message("conv_tbc", f"{what} must have 3 dimensions, it has {x.ndim}"))
    if input.shape[0] + 2 * pad + 1 == weight.shape[0]:
        return input[:0] @ weight[0] + bias  # of no steps
    if not input.shape[0] and pad > 0:
        input, pad = constant_pad_nd(input, [0, 0, 0, 0, pad, pad]), 0
    return conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad).permute(2, 0, 1)  # type: ignore[attr-defined, no-any-return]


samples(
    conv_tbc,
    lambda t: [
        case(t(4, 2, 2), t(3, 2, 3), t(3), 1),
        case(t(0, 2, 2), t(2, 2, 3), t(3), 1),
        case(t(2, 2, 2), t(3, 2, 3), t(3)),
    ],
)
wrong_inputs(
    conv_tbc, (lambda t: case(t(4, 2), t(3, 2, 3), t(3)), RuntimeError, "conv_tbc: input must have 3 dimensions")
)


__all__ = ["conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"]
FUNCTIONAL = __all__
