"""Images and volumes read at any places: `grid_sample`, and the places of an affine map."""

from __future__ import annotations

import itertools
from typing import Any

from genesis.base import dtypes
from genesis.base.errors import ArgumentValueError, ShapeError, message
from genesis.core.call.kinds import case, composite
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.graph.tensor import Tensor
from genesis.ops.creation.create import ones
from genesis.ops.creation.sequences import linspace
from genesis.ops.pointwise.choice import where
from genesis.ops.products.matmul import same_dtype
from genesis.ops.shapes.join import stack
from genesis.ops.spatial.arguments import Sizes

MODES, BORDERS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")


def _check(input: Tensor, grid: Tensor, mode: str, padding_mode: str) -> None:
    named = [("input", input._spec()), ("grid", grid._spec())]
    for what, value, known in (("mode", mode, MODES), ("padding_mode", padding_mode, BORDERS)):
        if value not in known:
            raise ArgumentValueError(message("grid_sample", f"unknown {what} {value!r}", hint=", ".join(known)))
    if input.ndim not in (4, 5) or grid.ndim != input.ndim:
        text = f"expected input (N, C, H, W) or (N, C, D, H, W) and a grid of as many dimensions, got {input.ndim}-D and {grid.ndim}-D"
        raise ShapeError(message("grid_sample", text, named))
    if grid.shape[-1] != input.ndim - 2 or grid.shape[0] != input.shape[0]:
        text = f"grid must have shape [{input.shape[0]}, ..., {input.ndim - 2}], got {list(grid.shape)}"
        raise ShapeError(message("grid_sample", text, named))
    if mode == "bicubic" and input.ndim == 5:
        raise ShapeError(message("grid_sample", "mode 'bicubic' is for images, (N, C, H, W)", named))
    if 0 in input.shape[1:]:
        raise ShapeError(message("grid_sample", "only the dimension of examples may be empty", named))
    same_dtype("grid_sample", input._spec(), grid._spec())


def _inside(at: Tensor, n: int, padding_mode: str, corners: bool) -> Tensor:
    """Places within the input, by the rule of the border; at the border itself the gradient is zero."""
    if padding_mode == "zeros":
        return at
    if padding_mode == "reflection":
        low, high = (0.0, n - 1.0) if corners else (-0.5, n - 0.5)
        if high == low:
            at = at * 0.0
        else:
            x = (at - low).abs()
            turns = (x.detach() / (high - low)).floor()
            rest = x - turns * (high - low)
            at = where(turns % 2 == 0, rest + low, high - rest)
    clipped = at.detach().clamp(0.0, n - 1.0)  # type: ignore[attr-defined]
    return where((at > 0) & (at < n - 1), at, clipped)  # type: ignore[operator, no-any-return]


def _read(input: Tensor, positions: list[Tensor], sizes: Sizes) -> Tensor:
    """The elements at whole places (N, *out), with zeros outside: (N, C, *out)."""
    flat: Any = 0
    there: Any = None
    for at, n in zip(positions, sizes, strict=True):
        fits = (at >= 0) & (at <= n - 1)  # type: ignore[operator]
        there = fits if there is None else there & fits
        flat = flat * n + where(fits, at, 0.0).long()  # type: ignore[attr-defined]
    batch, channels = input.shape[:2]
    index = flat.reshape(batch, 1, -1).expand(batch, channels, -1)
    elements = input.flatten(2).gather(2, index).reshape(batch, channels, *flat.shape[1:])  # type: ignore[attr-defined]
    return where(there.unsqueeze(1), elements, 0.0)  # type: ignore[no-any-return]


def _between(input: Tensor, positions: list[Tensor], sizes: Sizes) -> Tensor:
    lows = [at.detach().floor() for at in positions]  # type: ignore[attr-defined]
    total: Any = 0.0
    for corner in itertools.product((0, 1), repeat=len(positions)):
        weight: Any = 1.0
        for c, at, low in zip(corner, positions, lows, strict=True):
            weight = weight * ((at - low) if c else (low + 1 - at))
        elements = _read(input, [low + c for c, low in zip(corner, lows, strict=True)], sizes)
        total = total + elements * weight.unsqueeze(1)
    return total  # type: ignore[no-any-return]


def _weights(share: Tensor) -> list[Tensor]:
    """Those of four neighbours by Keys' cubic with a = -3/4, of places ``share`` behind the second."""
    a, x = -0.75, share
    near = lambda x: ((a + 2) * x - (a + 3)) * x * x + 1  # noqa: E731
    far = lambda x: ((x - 5) * x + 8) * x * a - 4 * a  # noqa: E731
    return [far(x + 1), near(x), near(1 - x), far(2 - x)]


def _cubic(input: Tensor, positions: list[Tensor], sizes: Sizes, padding_mode: str, corners: bool) -> Tensor:
    lows = [at.detach().floor() for at in positions]  # type: ignore[attr-defined]
    rows, columns = (_weights(at - low) for at, low in zip(positions, lows, strict=True))
    total: Any = 0.0
    for i, j in itertools.product(range(4), repeat=2):
        at = [_inside(low + k - 1, n, padding_mode, corners) for low, k, n in zip(lows, (i, j), sizes, strict=True)]
        total = total + _read(input, at, sizes) * (rows[i] * columns[j]).unsqueeze(1)
    return total  # type: ignore[no-any-return]


@composite(halves="alike", method=False, torch_name="nn.functional.grid_sample", autocast="float32:cpu")
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """The input (N, C, H, W) or (N, C, D, H, W) at the places of a grid (N, *out, 2 or 3), whose last dimension has x, y
    (and z) from -1 to 1.

    -1 and 1 are the middles of the first and last elements with ``align_corners``, else their outer edges. Differentiable
    for input and grid (Jaderberg et al. 2015).

    Args:
        mode: "bilinear" (between neighbours, in volumes, too), "nearest", or of images "bicubic"
        padding_mode: what is outside: "zeros", the last element ("border"), or as in a mirror at the edge ("reflection")

    Raises:
        RuntimeError: shapes or dtypes that do not fit
        ValueError: an unknown mode

    >>> import genesis
    >>> x = genesis.tensor([[[[1., 2.], [3., 4.]]]])
    >>> genesis.nn.functional.grid_sample(x, genesis.zeros(1, 1, 1, 2))
    tensor([[[[2.5000]]]])
    """
    _check(input, grid, mode, padding_mode)
    corners, sizes = bool(align_corners), tuple(input.shape[2:])
    positions = []
    for i, n in enumerate(sizes):  # the grid names the last dimension first
        g = grid.select(-1, len(sizes) - 1 - i)  # type: ignore[attr-defined]
        positions.append((g + 1) * ((n - 1) / 2) if corners else ((g + 1) * n - 1) / 2)
    if mode == "bicubic":
        return _cubic(input, positions, sizes, padding_mode, corners)
    positions = [_inside(at, n, padding_mode, corners) for at, n in zip(positions, sizes, strict=True)]
    if mode == "nearest":
        elements = _read(input, [at.detach().round() for at in positions], sizes)  # type: ignore[attr-defined]
        always = ones((), dtype=dtypes.bool, device=input.device)
        return where(always, elements, positions[0].unsqueeze(1))  # the gradient of the grid is zeros
    return _between(input, positions, sizes)


samples(
    grid_sample,
    lambda t: [
        case(t(1, 2, 3, 4), t(1, 2, 2, 2, low=-0.9, high=0.9)),
        case(t(1, 1, 3, 3), t(1, 1, 2, 2, low=-1.3, high=1.3), "bicubic", "border", True),
        case(t(1, 1, 3, 3), t(1, 1, 3, 2, low=-1.6, high=1.6), "bilinear", "reflection"),
        case(t(1, 1, 2, 3, 2), t(1, 1, 1, 2, 3, low=-0.8, high=0.8)),
        case(t(2, 2, 3, 4), t(2, 3, 7, 2, low=-1.3, high=1.3), "bilinear", "border"),
    ],
)

wrong_inputs(
    grid_sample,
    (lambda t: case(t(1, 1, 2, 2), t(1, 1, 1, 3)), RuntimeError, "grid_sample: grid must have shape [1, ..., 2], got"),
    (lambda t: case(t(1, 1, 2, 2), t(1, 1, 1, 2), "cubic"), ValueError, "grid_sample: unknown mode 'cubic'"),
    (lambda t: case(t(1, 2, 2), t(1, 1, 2)), RuntimeError, "grid_sample: expected input (N, C, H, W)"),
)


@composite(halves="wide", method=False, torch_name="nn.functional.affine_grid")
def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Tensor:
    """The grid for `grid_sample` of affine maps (N, 2, 3), or (N, 3, 4) of volumes: where each place of an output of
    ``size`` (N, C, H, W) or (N, C, D, H, W) comes from.

    Raises:
        RuntimeError: maps that do not fit the size
        ValueError: another number of sizes

    >>> import genesis
    >>> turn = genesis.tensor([[[0., 1., 0.], [1., 0., 0.]]])
    >>> genesis.nn.functional.affine_grid(turn, (1, 1, 1, 2))
    tensor([[[[ 0.0000, -0.5000],
              [ 0.0000,  0.5000]]]])
    """
    size = tuple(int(n) for n in size)
    dims = len(size) - 2
    if dims not in (2, 3):
        raise _WrongSize(message("affine_grid", f"size must be (N, C, H, W) or (N, C, D, H, W), got {list(size)}"))
    if min(size) < 1:
        raise ArgumentValueError(message("affine_grid", f"sizes must be positive, got {list(size)}"))
    if not theta.is_floating_point() or tuple(theta.shape) != (size[0], dims, dims + 1):
        text = f"theta must be floating-point numbers of shape {[size[0], dims, dims + 1]}, got {theta._spec()}"
        raise (
            ArgumentValueError(message("affine_grid", text))
            if theta.ndim != 3
            else _WrongSize(message("affine_grid", text))
        )
    along = []
    for i, n in enumerate(reversed(size[2:])):  # x, y, z
        edge = 1.0 if align_corners else 1.0 - 1.0 / n
        at = linspace(-edge, edge, n, dtype=theta.dtype, device=theta.device)
        at = at * 0.0 if n == 1 else at
        along.append(at.reshape([-1 if d == dims - 1 - i else 1 for d in range(dims)]).expand(size[2:]))
    along.append(ones(size[2:], dtype=theta.dtype, device=theta.device))
    points = stack(along, -1).reshape(1, -1, dims + 1)
    return (points @ theta.mT).reshape(size[0], *size[2:], dims)  # type: ignore[no-any-return]


class _WrongSize(ShapeError, ArgumentValueError, NotImplementedError):
    """PyTorch raises one of several here."""


samples(
    affine_grid,
    lambda t: [
        case(t(2, 2, 3), (2, 1, 2, 3)),
        case(t(1, 2, 3), (1, 1, 1, 2), True),
        case(t(1, 3, 4), (1, 1, 2, 1, 2)),
    ],
)

wrong_inputs(
    affine_grid,
    (
        lambda t: case(t(1, 2, 3), (2, 1, 2, 2)),
        RuntimeError,
        "affine_grid: theta must be floating-point numbers of shape",
    ),
    (lambda t: case(t(1, 2, 3), (1, 1, 2)), NotImplementedError, "affine_grid: size must be (N, C, H, W)"),
)

FUNCTIONAL = ["affine_grid", "grid_sample"]
__all__: list[str] = []
