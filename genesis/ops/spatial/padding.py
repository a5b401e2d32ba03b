"""Borders: constant ones, reflections, copies of the last element, and those of something periodic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.arrays.protocol import Array
from genesis.arrays.spec import Spec
from genesis.base.dtypes import is_integer
from genesis.base.errors import ArgumentError, ArgumentValueError, ShapeError, UnsupportedError, message
from genesis.core.call.casts import as_autocast
from genesis.core.call.kinds import as_it_is, case, composite, primitive
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.graph.tensor import Tensor
from genesis.ops.spatial.arguments import known
from genesis.ops.spatial.pooling import window_means
from genesis.ops.spatial.sums import mix
from genesis.ops.spatial.tables import Rule

MODES = ("constant", "reflect", "replicate", "circular")


def _numbers(name: str, input: Tensor, pad: Any) -> tuple[int, ...]:
    if not isinstance(pad, list | tuple) or not all(map(is_integer, pad)):
        raise ArgumentError(message(name, f"pad must be a tuple of integers, got {pad!r}"))
    if len(pad) % 2 or len(pad) > 2 * input.ndim:
        raise ShapeError(
            message(
                name,
                f"pad has {len(pad)} numbers, {input.ndim} dimensions take an even number up to {2 * input.ndim}",
                [("input", input._spec())],
                "two for each dimension, the last dimension's first",
            )
        )
    return tuple([int(n) for n in pad])


def _sizes(shape: Sequence[int], pad: Sequence[int]) -> tuple[int, ...]:
    out = list(shape)
    for i in range(len(pad) // 2):
        out[-1 - i] += pad[2 * i] + pad[2 * i + 1]
    return tuple(out)


def _prepare(input: Tensor, pad: Any, value: Any = 0) -> tuple[Any, ...]:
    pad = _numbers("pad", input, pad)
    if min(pad, default=0) < 0 and min(_sizes(input._array.shape, [min(n, 0) for n in pad])) < 0:
        shape = _sizes(input._array.shape, pad)
        raise ShapeError(message("pad", f"the result would have shape {list(shape)}", [("input", input._spec())]))
    return input, pad, value


def _region(shape: Sequence[int], pad: Sequence[int]) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """What stays of the input, and where in the result it is."""
    kept, there = [slice(None)] * len(shape), [slice(None)] * len(shape)
    for i in range(len(pad) // 2):
        n, before, after = shape[-1 - i], pad[2 * i], pad[2 * i + 1]
        start, stop = max(-before, 0), n - max(-after, 0)
        kept[-1 - i] = slice(start, max(stop, start))
        there[-1 - i] = slice(start + before, max(stop, start) + before)
    return tuple(kept), tuple(there)


@primitive(
    "movement",
    {"input": lambda g, pad: constant_pad_nd(g, [-n for n in pad])},
    infer=lambda input, pad, value: Spec(_sizes(input.shape, pad), input.dtype, input.device),
    jvp=lambda args, tangents, out: constant_pad_nd(tangents[0], args[1]),
    batch=as_it_is,
    prepare=_prepare,
    dtypes="fcib",
    method=False,
)
def constant_pad_nd(input: Array, pad: Sequence[int], value: Any = 0) -> Any:
    """A border of one value; negative numbers take elements away.

    ``pad`` has how many elements are added before and after, for the last dimension first.

    Raises:
        RuntimeError: an odd number of them, or more than the dimensions have; a result of negative size

    >>> import genesis
    >>> genesis.constant_pad_nd(genesis.ones(2), (1, 0), 5.)
    tensor([5., 1., 1.])
    """
    out = np.zeros(_sizes(input.shape, pad), input.dtype)
    if value:
        out[...] = np.asarray(value).astype(input.dtype)
    kept, there = _region(input.shape, pad)
    out[there] = input[kept]
    return out


samples(
    constant_pad_nd,
    lambda t: [case(t(2, 3), (1, 0), 1), case(t(2, 3), (-1, 2, 1, -1)), case(t(2), (0, 0)), case(t(), ())],
)

wrong_inputs(
    constant_pad_nd,
    (
        lambda t: case(t(2), (1, 1, 1, 1)),
        RuntimeError,
        "pad: pad has 4 numbers, 1 dimensions take an even number up to 2",
    ),
    (lambda t: case(t(2), (-2, -1)), RuntimeError, "pad: the result would have shape [-1]"),
)


def _check_border(input: Tensor, pad: Sequence[int], mode: str) -> None:
    dims = len(pad) // 2
    if dims not in (1, 2, 3) or input.ndim not in (dims + 1, dims + 2):
        text = f"{mode} pads the last 1 to 3 dimensions of inputs with one or two more, not {dims} of {input.ndim}"
        raise UnsupportedError(message("pad", text, [("input", input._spec())]))
    for i in range(dims):
        n, sides = input.shape[-1 - i], pad[2 * i : 2 * i + 2]
        most = n - 1 if mode == "reflect" else n if mode == "circular" else max(sides)
        left = n + sum([min(k, 0) for k in sides])
        if max(sides) > most or n < 1 or n + sum(sides) < 0 or (mode == "circular" and max(sides) > 0 and left < 1):
            raise ShapeError(
                message(
                    "pad",
                    f"{mode}: {list(sides)} does not fit dim {input.ndim - 1 - i} of size {n}",
                    [("input", input._spec())],
                    f"at most {most}" if max(sides) > most else None,
                )
            )
    if mode != "circular" and max(_sizes(input.shape, pad)[-dims:]) < 1:
        raise ShapeError(message("pad", f"{mode}: nothing is left with {list(pad)}", [("input", input._spec())]))


@known
def _border_rules(name: str, input: Tensor, pad: Any, mode: str) -> tuple[tuple[int, ...], tuple[Rule, ...]]:
    """The numbers of ``pad``; the rule of each dimension, if all are at once: of floats, and where nothing is taken away."""
    numbers = _numbers(name, input, pad)
    _check_border(input, numbers, mode)
    if min(numbers) < 0 or not input.is_floating_point():
        return numbers, ()
    sides = [numbers[i : i + 2] for i in range(0, len(numbers), 2)]
    sizes = input.shape[-len(sides) :]
    return numbers, tuple([(mode, n, *two) for n, two in zip(sizes, reversed(sides), strict=True)])


def _cropped(input: Tensor, dim: int, before: int, after: int) -> Tensor:
    """Without what negative numbers take away."""
    if before >= 0 and after >= 0:
        return input
    return input.narrow(dim, max(-before, 0), input.shape[dim] + min(before, 0) + min(after, 0))  # type: ignore[attr-defined, no-any-return]


@composite(method=False, dtypes="fc", torch_name="nn.functional.pad")
def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """A border around the last dimensions: ``pad`` has how many elements come before and after, for the last dimension
    first. Negative numbers take elements away.

    Args:
        mode: "constant" (``value``, 0 unless given); "reflect" (as in a mirror that the last element is on), "replicate"
            (the last element again) or "circular" (from the other side) of the last one to three dimensions

    Raises:
        RuntimeError: numbers that do not fit the dimensions
        NotImplementedError: a mode that is not one of these; the last three for other numbers of dimensions
        ValueError: a value with another mode than "constant"

    >>> import genesis
    >>> genesis.nn.functional.pad(genesis.tensor([[1., 2., 3.]]), (2, 1), mode="reflect")
    tensor([[3., 2., 1., 2., 3., 2.]])
    """
    if mode == "constant":
        return constant_pad_nd(input, pad, 0 if value is None else value)  # type: ignore[no-any-return]
    if mode not in MODES:
        raise UnsupportedError(message("pad", f"unknown mode {mode!r}", hint=", ".join(MODES)))
    if value:
        raise ArgumentValueError(message("pad", f"mode {mode!r} takes no value, got {value}"))
    if mode != "circular":
        (input,) = as_autocast("float32:cpu", input)
    numbers, rules = _border_rules("pad", input, pad, mode)
    if rules:
        return window_means(input, rules, 1)  # type: ignore[no-any-return]
    for i in range(len(numbers) // 2):
        before, after = numbers[2 * i : 2 * i + 2]
        if mode == "circular":  # of what is left
            input = _cropped(input, -1 - i, before, after)
        if before > 0 or after > 0:
            input = mix(input, -1 - i, (mode, input.shape[-1 - i], max(before, 0), max(after, 0)))
        if mode != "circular":
            input = _cropped(input, -1 - i, before, after)
    return input


samples(
    pad,
    lambda t: [
        case(t(2, 3), (1, 2), "constant", 0.5),
        case(t(1, 2, 3), (2, -1), "reflect"),
        case(t(1, 2, 3), (1, 2, 2, 0), "replicate"),
        case(t(1, 3, 2), (1, 2, 2, -1), "circular"),
    ],
)

wrong_inputs(
    pad,
    (lambda t: case(t(1, 3), (3, 0), "reflect"), RuntimeError, "pad: reflect: [3, 0] does not fit dim 1 of size 3"),
    (lambda t: case(t(1, 3), (1, 0), "mirror"), NotImplementedError, "pad: unknown mode 'mirror'"),
    (lambda t: case(t(1, 3), (1, 0), "reflect", 1.0), ValueError, "pad: mode 'reflect' takes no value, got 1.0"),
    (lambda t: case(t(1, 3), 1), TypeError, "pad: pad must be a tuple of integers, got 1"),
)

FUNCTIONAL = ["pad"]
__all__ = ["constant_pad_nd"]
