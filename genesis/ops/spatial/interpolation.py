"""Images, signals and volumes of another size: nearest elements, and weighted means of several."""

from __future__ import annotations

import math
import warnings
from typing import Any

from genesis.base.dtypes import is_integer
from genesis.base.errors import ArgumentError, ArgumentValueError, DTypeError, ShapeError, UnsupportedError, message
from genesis.core.call.casts import as_autocast
from genesis.core.call.kinds import case, composite
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.graph.tensor import Tensor
from genesis.ops.spatial.arguments import known
from genesis.ops.spatial.pooling import window_means
from genesis.ops.spatial.tables import Rule

# the numbers of spatial dimensions a mode is for, and the rule of each dimension
MODES: dict[str, tuple[tuple[int, ...], str]] = {
    "nearest": ((1, 2, 3), "nearest"),
    "nearest-exact": ((1, 2, 3), "nearest-exact"),
    "area": ((1, 2, 3), "cells"),
    "linear": ((1,), "linear"),
    "bilinear": ((2,), "linear"),
    "bicubic": ((2,), "cubic"),
    "trilinear": ((3,), "linear"),
}
_CORNERS = ("linear", "bilinear", "bicubic", "trilinear")


def _check(input: Tensor, mode: str, align_corners: Any, antialias: bool) -> int:
    """The number of spatial dimensions."""
    if mode not in MODES:
        raise UnsupportedError(message("interpolate", f"unknown mode {mode!r}", hint=", ".join(MODES)))
    dims = input.ndim - 2
    if dims not in MODES[mode][0]:
        many = " or ".join(f"{d + 2}-D" for d in MODES[mode][0])
        text = f"mode {mode!r} is for {many} input (N, C, sizes), got {input.ndim}-D"
        raise UnsupportedError(message("interpolate", text, [("input", input._spec())]))
    if align_corners is not None and mode not in _CORNERS:
        raise ArgumentValueError(
            message("interpolate", f"mode {mode!r} has no align_corners", hint=", ".join(_CORNERS))
        )
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ArgumentValueError(message("interpolate", f"mode {mode!r} has no antialias", hint="bilinear, bicubic"))
    exact = "nearest" in mode and input._array.dtype.kind in "u"
    if not input.is_floating_point() and not exact:
        raise DTypeError(message("interpolate", f"mode {mode!r} is for floating-point numbers, got {input.dtype}"))
    if 0 in input.shape[1:]:
        text = f"only the dimension of examples may be empty, got {list(input.shape)}"
        raise ShapeError(message("interpolate", text))
    return dims


def _for_each(what: str, value: Any, dims: int) -> list[Any]:
    if not isinstance(value, list | tuple):
        return [value] * dims
    if len(value) != dims:
        text = f"{what} must be one number or {dims}, got {len(value)}: {list(value)}"
        raise ArgumentValueError(message("interpolate", text))
    return list(value)


def _sizes(input: Tensor, dims: int, size: Any, scale_factor: Any, recompute: Any) -> tuple[list[int], list[Any]]:
    """The sizes of the result, and the scales to use where they do not follow from these."""
    if (size is None) == (scale_factor is None):
        raise ArgumentValueError(message("interpolate", "give one of size and scale_factor"))
    if size is not None:
        if recompute:
            raise ArgumentValueError(message("interpolate", "recompute_scale_factor is for scale_factor, not for size"))
        sizes = _for_each("size", size, dims)
        if not all(map(is_integer, sizes)):
            raise ArgumentError(message("interpolate", f"size must be integers, got {size!r}"))
        scales: list[Any] = [None] * dims
    else:
        scales = [float(s) for s in _for_each("scale_factor", scale_factor, dims)]
        sizes = [math.floor(n * s) for n, s in zip(input.shape[2:], scales, strict=True)]
    if min(sizes) < 1:
        raise ShapeError(message("interpolate", f"the result would have sizes {sizes}", [("input", input._spec())]))
    return [int(n) for n in sizes], [None] * dims if recompute else scales


@known
def _rules(
    name: str,
    input: Tensor,
    size: Any,
    scale_factor: Any,
    mode: str,
    align_corners: Any,
    recompute: Any,
    antialias: Any,
) -> tuple[Rule, ...]:
    """The rule of each dimension."""
    dims = _check(input, mode, align_corners, antialias)
    sizes, scales = _sizes(input, dims, size, scale_factor, recompute)
    kind, corners = MODES[mode][1], bool(align_corners)
    rules: list[Rule] = []
    for n, m, scale in zip(input.shape[2:], sizes, scales, strict=True):
        more: tuple[Any, ...] = (
            (scale,) if "nearest" in kind else () if kind == "cells" else (corners, scale, bool(antialias))
        )
        rules.append((kind, n, m, *more))
    return tuple(rules)


@composite(method=False, torch_name="nn.functional.interpolate")
def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Inputs (N, C, L), (N, C, H, W) or (N, C, D, H, W) in other sizes.

    The middle of the i-th result is at $(i + 1/2) / scale - 1/2$ among the inputs, or with ``align_corners`` at $i (n -
    1) / (m - 1)$, so that first and last elements meet.

    Args:
        size, scale_factor: one of them, one number or one for each dimension; sizes are $\\lfloor n \\cdot scale \\rfloor$
        mode: "nearest" (the element at $\\lfloor i / scale \\rfloor$), "nearest-exact" (the one nearest to the middle),
            "linear", "bilinear", "trilinear" (between neighbours, of one to three dimensions), "bicubic" (Keys 1981, with
            a = -3/4), "area" (means, as `adaptive_avg_pool2d`)
        recompute_scale_factor: use the ratio of the sizes in the place of ``scale_factor``
        antialias: where an image shrinks, take means over all that a result covers ("bilinear", "bicubic")

    Raises:
        NotImplementedError: an unknown mode, or one that is not for so many dimensions
        ValueError: both or none of size and scale_factor, or options that the mode does not have
        RuntimeError: sizes below one, or integers

    >>> import genesis
    >>> genesis.nn.functional.interpolate(genesis.tensor([[[0., 2.]]]), scale_factor=2, mode="linear")
    tensor([[[0.0000, 0.5000, 1.5000, 2.0000]]])
    """
    rules = _rules("interpolate", input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias)
    if mode != "area":
        (input,) = as_autocast("float32:gpu", input)
    return window_means(input, rules, 1)  # type: ignore[no-any-return]


samples(
    interpolate,
    lambda t: [
        case(t(1, 2, 3), 5, mode="linear"),
        case(t(1, 1, 3, 4), scale_factor=(2.0, 1.5), mode="bilinear", align_corners=True),
        case(t(1, 1, 4, 3), (3, 5), mode="bicubic"),
        case(t(1, 1, 5, 4), (2, 3), mode="bilinear", antialias=True),
        case(t(1, 2, 2, 3), scale_factor=2),
        case(t(1, 1, 2, 3, 2), 3, mode="trilinear"),
    ],
)

wrong_inputs(
    interpolate,
    (
        lambda t: case(t(1, 1, 3), 2, mode="bilinear"),
        NotImplementedError,
        "interpolate: mode 'bilinear' is for 4-D input",
    ),
    (lambda t: case(t(1, 1, 3), 2, mode="cubic"), NotImplementedError, "interpolate: unknown mode 'cubic'"),
    (lambda t: case(t(1, 1, 3)), ValueError, "interpolate: give one of size and scale_factor"),
    (lambda t: case(t(1, 1, 3), 2, align_corners=True), ValueError, "interpolate: mode 'nearest' has no align_corners"),
    (lambda t: case(t(1, 1, 3), (2, 3)), ValueError, "interpolate: size must be one number or 1, got 2"),
    (lambda t: case(t(1, 1, 3), 0), RuntimeError, "interpolate: the result would have sizes [0]"),
)


def upsample(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Tensor:
    """`interpolate` under its old name.

    >>> import genesis, warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     genesis.nn.functional.upsample(genesis.ones(1, 1, 2), scale_factor=2).shape
    genesis.Size([1, 1, 4])
    """
    return _renamed("upsample", input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` with mode "nearest", under its old name."""
    return _renamed("upsample_nearest", input, size, scale_factor, "nearest", None)


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` with mode "bilinear" and aligned corners, under its old name."""
    return _renamed("upsample_bilinear", input, size, scale_factor, "bilinear", True)


def _renamed(name: str, input: Tensor, size: Any, scale_factor: Any, mode: str, align_corners: Any) -> Tensor:
    warnings.warn(f"{name} is deprecated, call interpolate", UserWarning, stacklevel=3)
    return interpolate(input, size, scale_factor, mode, align_corners)  # type: ignore[no-any-return]


FUNCTIONAL = ["interpolate", "upsample", "upsample_bilinear", "upsample_nearest"]
__all__: list[str] = []
