"""The pooling functions that users call, each for one to three spatial dimensions; `pooling` computes them."""

from __future__ import annotations

from typing import Any

from genesis.base.errors import ArgumentValueError, message
from genesis.core.call.casts import as_autocast
from genesis.core.call.kinds import case, composite
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.graph.tensor import Tensor
from genesis.ops.spatial.arguments import AXES
from genesis.ops.spatial.pooling import (
    adapted,
    adaptive_rules,
    averaged,
    fractional,
    normed,
    pooled,
    sliding_rules,
    unpooled,
)

_DOCS = {
    "max_pool": """The largest element of each window of {axes}.

    NaN counts as largest; of equals the gradient goes to the first.

    Args:
        kernel_size, stride, padding, dilation: one number for all dimensions or one for each; the stride is the kernel's
            size unless given, the padding is less than any number
        ceil_mode: whether a last window may reach beyond the padding
        return_indices: give also where the elements are among all of the spatial dimensions, int64

    Raises:
        RuntimeError: a shape, or a padding of more than half the kernel""",
    "avg_pool": """The mean of each window of {axes}.

    Args:
        kernel_size, stride, padding: one number for all dimensions or one for each; the stride is the kernel's size
            unless given, the padding is zeros
        ceil_mode: whether a last window may reach beyond the padding
        count_include_pad: whether the padding counts in the mean{divisor}

    Raises:
        RuntimeError: a shape, integers, or a padding of more than half the kernel""",
    "lp_pool": """$(\\sum_w x^p)^{{1/p}}$ of each window of {axes}.

    Args:
        kernel_size, stride: one number for all dimensions or one for each; the stride is the kernel's size unless given

    Raises:
        RuntimeError: a shape or integers""",
    "adaptive_avg_pool": """The means of as many nearly equal cells of {axes} as the result is to have.

    The i-th of m cells goes from $\\lfloor i n / m \\rfloor$ to $\\lceil (i + 1) n / m \\rceil$; cells may share elements.

    Args:
        output_size: one number for all dimensions or one for each; None keeps the input's

    Raises:
        RuntimeError: a shape or integers""",
    "adaptive_max_pool": """The largest elements of as many nearly equal cells of {axes} as the result is to have.

    The i-th of m cells goes from $\\lfloor i n / m \\rfloor$ to $\\lceil (i + 1) n / m \\rceil$; cells may share elements.

    Args:
        output_size: one number for all dimensions or one for each; None keeps the input's
        return_indices: give also where the elements are among all of the spatial dimensions, int64

    Raises:
        RuntimeError: a shape""",
    "max_unpool": """The elements of a pooled {axes} where they were, and zeros elsewhere: the inverse of `max_pool{dims}d` for
    the elements that it kept.

    Args:
        indices: what `max_pool{dims}d` gave with ``return_indices=True``
        kernel_size, stride, padding: as they were there
        output_size: the size before, where several lead to the input's

    Raises:
        RuntimeError: shapes that differ, or a place outside of the output
        ValueError: a size that cannot be""",
    "fractional_max_pool": """The largest element of windows at random places, which shrink {axes} by any factor (Graham 2014).

    Args:
        kernel_size: one number for all dimensions or one for each
        output_size, output_ratio: one of them: the sizes of the result, or their ratio to those of the input
        return_indices: give also where the elements are among all of the spatial dimensions, int64
        _random_samples: numbers in [0, 1) to use, of shape (N, C, {dims})

    Raises:
        RuntimeError: a shape, or windows that do not fit
        ValueError: both sizes and ratio, or none""",
}
_CALLS = {
    "max_pool": "(x, 2)",
    "avg_pool": "(x, 2)",
    "lp_pool": "(x, 2., 2)",
    "adaptive_avg_pool": "(x, 2)",
    "adaptive_max_pool": "(x, 2)",
    "max_unpool": "(x, genesis.zeros_like(x).long(), 1)",
    "fractional_max_pool": "(x, 2, 2)",
}


def check_fraction(name: str, output_size: Any, output_ratio: Any, dims: int) -> None:
    """Whether one of size and ratio of the result is given, and the ratio is between 0 and 1."""
    if (output_size is None) == (output_ratio is None):
        raise ArgumentValueError(message(name, "give one of output_size and output_ratio"))
    ratios = output_ratio if isinstance(output_ratio, list | tuple) else [output_ratio] * dims
    if output_ratio is not None and (len(ratios) != dims or not all([0 < r < 1 for r in ratios])):
        raise ArgumentValueError(message(name, f"output_ratio must be between 0 and 1, got {output_ratio}"))


_AUTOCAST = dict.fromkeys(
    (
        *["avg_pool3d", "adaptive_avg_pool3d", "adaptive_max_pool3d"],
        *["max_unpool1d", "max_unpool2d", "max_unpool3d", "fractional_max_pool2d", "fractional_max_pool3d"],
    ),
    "float32:cpu",
)


def _declared(stem: str, dims: int, function: Any, sample: Any, *wrong: Any, options: Any = None) -> Any:
    name = function.__name__ = function.__qualname__ = f"{stem}{dims}d"
    ones = ", ".join(["1", "1", *["4"] * dims])
    size = 4 if stem == "max_unpool" else 2
    divisor = "\n        divisor_override: what the sums are divided by instead" if dims > 1 else ""
    says = _DOCS[stem].format(axes=AXES[dims], dims=dims, divisor=divisor)
    function.__doc__ = f"""{says}

    >>> import genesis
    >>> x = genesis.ones({ones})
    >>> genesis.nn.functional.{name}{_CALLS[stem]}.shape
    genesis.Size({[1, 1, *[size] * dims]})
    """
    given = {"torch_name": f"nn.functional.{name}", "halves": "wide", "autocast": _AUTOCAST.get(name, "promote")}
    call = composite(method=False, **{**given, **(options or {})})(function)
    samples(call, sample)
    expected = f"{name}: expected input {AXES[dims].replace('N, ', '')} or {AXES[dims]}, got {dims + 3}-D"
    last = wrong[-1] if wrong and callable(wrong[-1]) else None
    make = last or (lambda x: case(x, 2))
    wrong_inputs(
        call, (lambda t: make(t(*[2] * (dims + 3))), RuntimeError, expected), *[w for w in wrong if w is not last]
    )
    return call


def _sizes(dims: int, *sizes: int) -> tuple[int, ...]:
    return sizes[:dims]


def _max_pool(dims: int) -> Any:
    name = f"max_pool{dims}d"

    def pool(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        rules = sliding_rules(name, input, dims, kernel_size, stride, padding, dilation, ceil_mode)
        if dims == 3 and not return_indices:
            (input,) = as_autocast("float32:cpu", input)
        return pooled(input, rules, return_indices)

    shape = _sizes(dims, 5, 4, 3)
    return _declared(
        "max_pool",
        dims,
        pool,
        lambda t: [
            case(t(1, 2, *shape), 2),
            case(t(2, *shape), 3, 2, 1, 1, True, True),
            case(t(1, 1, *shape), 2, 1, dilation=2),
        ],
        (lambda t: case(t(1, 1, *shape), 2, padding=2), RuntimeError, f"{name}: padding must be at most half"),
        (lambda t: case(t(1, 1, *shape), 7), RuntimeError, f"{name}: the kernel spans 7, the padded input 5"),
        options={"halves": ""},
    )  # fmt: skip


def _avg_pool(dims: int) -> Any:
    name = f"avg_pool{dims}d"

    def line(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> Tensor:
        return averaged(name, input, dims, kernel_size, stride, padding, ceil_mode, count_include_pad, None)

    def pool(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Tensor:
        return averaged(name, input, dims, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)

    shape = _sizes(dims, 5, 4, 3)
    return _declared(
        "avg_pool",
        dims,
        line if dims == 1 else pool,
        lambda t: [
            case(t(1, 2, *shape), 2),
            case(t(2, *shape), 3, 2, 1, True, False),
            *([case(t(1, 1, *shape), 2, divisor_override=3)] if dims > 1 else []),
        ],
        (lambda t: case(t.bool(1, 1, *shape), 2), RuntimeError, f"{name}: expected floating-point numbers, got"),
        options={"torch_name": name if dims == 1 else f"nn.functional.{name}", "out": dims > 1, "halves": ""},
    )


def _lp_pool(dims: int) -> Any:
    name = f"lp_pool{dims}d"

    def pool(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
        return normed(name, input, dims, norm_type, kernel_size, stride, ceil_mode)

    shape = _sizes(dims, 5, 4, 3)
    return _declared(
        "lp_pool",
        dims,
        pool,
        lambda t: [case(t(1, 2, *shape), 2.0, 2), case(t.positive(2, *shape), 3.0, 2, 1)],
        lambda x: case(x, 2.0, 2),
    )


def _adaptive_avg_pool(dims: int) -> Any:
    name = f"adaptive_avg_pool{dims}d"

    def pool(input: Tensor, output_size: Any) -> Tensor:
        return adapted(name, input, dims, output_size)

    shape = _sizes(dims, 5, 4, 3)
    return _declared(
        "adaptive_avg_pool",
        dims,
        pool,
        lambda t: [case(t(1, 2, *shape), 2), case(t(2, *shape), 1), case(t(1, 1, *[4] * dims), 2)],
        options={"halves": ""},
    )


def _adaptive_max_pool(dims: int) -> Any:
    name = f"adaptive_max_pool{dims}d"

    def pool(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        return pooled(input, adaptive_rules(name, input, dims, output_size, "spans"), return_indices)

    shape = _sizes(dims, 5, 4, 3)
    return _declared(
        "adaptive_max_pool",
        dims,
        pool,
        lambda t: [case(t(1, 2, *shape), 2), case(t(2, *shape), 1, True)],
        options={"halves": ""},
    )


def _max_unpool(dims: int) -> Any:
    name = f"max_unpool{dims}d"

    def unpool(
        input: Tensor,
        indices: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        output_size: Any = None,
    ) -> Tensor:
        return unpooled(name, input, indices, dims, kernel_size, stride, padding, output_size)

    def positions(t: Any) -> Tensor:
        return t.int(2, *[1] * dims, low=0, high=2)  # type: ignore[no-any-return]

    return _declared(
        "max_unpool",
        dims,
        unpool,
        lambda t: [
            case(t(2, *[1] * dims), positions(t), 2),
            case(t(2, *[1] * dims), positions(t), 2, output_size=[3] * dims),
        ],
        (
            lambda t: case(t(2, *[1] * dims), positions(t) + 99, 2),
            RuntimeError,
            f"{name}: index",
        ),
        lambda x: case(x, x.long(), 2),
        options={"halves": "alike"},
    )


def _fractional_max_pool(dims: int) -> Any:
    name = f"fractional_max_pool{dims}d"

    def pool(
        input: Tensor,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> Any:
        return fractional(name, input, dims, kernel_size, output_size, output_ratio, _random_samples, return_indices)

    shape = _sizes(dims, 5, 4, 4)
    return _declared(
        "fractional_max_pool",
        dims,
        pool,
        lambda t: [
            case(t(1, 2, *shape), 2, 2, None, False, t(1, 2, dims, low=0.1, high=0.9).detach()),
        ],
        (
            lambda t: case(t(1, 1, *shape), 2, 9),
            RuntimeError,
            f"{name}: 9 windows of 2 do not fit 5 elements",
        ),
        (lambda t: case(t(1, 1, *shape), 2), ValueError, f"{name}: give one of output_size and output_ratio"),
        lambda x: case(x, 2, 2),
        options={"halves": "alike"},
    )


max_pool1d, max_pool2d, max_pool3d = (_max_pool(dims) for dims in (1, 2, 3))
avg_pool1d, avg_pool2d, avg_pool3d = (_avg_pool(dims) for dims in (1, 2, 3))
lp_pool1d, lp_pool2d, lp_pool3d = (_lp_pool(dims) for dims in (1, 2, 3))
adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = (_adaptive_avg_pool(dims) for dims in (1, 2, 3))
adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = (_adaptive_max_pool(dims) for dims in (1, 2, 3))
max_unpool1d, max_unpool2d, max_unpool3d = (_max_unpool(dims) for dims in (1, 2, 3))
fractional_max_pool2d, fractional_max_pool3d = (_fractional_max_pool(dims) for dims in (2, 3))

FUNCTIONAL = [
    *[f"{stem}{dims}d" for stem in _DOCS for dims in (1, 2, 3) if (stem, dims) != ("fractional_max_pool", 1)],
]
# those that PyTorch has at its top, too
__all__ = [
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "avg_pool1d",
    "adaptive_avg_pool1d",
    "adaptive_max_pool1d",
]
