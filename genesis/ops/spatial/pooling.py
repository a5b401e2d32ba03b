"""Pooling: the largest element, the mean or a norm of windows, or of as many cells as the result is to have.

The largest elements are found by `max_places`, as integers without a gradient, and read by `gather`: so everything about
the gradient follows from that. Means are `sums.mix` along each dimension.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.arrays.memory import placed
from genesis.arrays.protocol import Array
from genesis.arrays.spec import Spec
from genesis.base.errors import ArgumentValueError, DTypeError, ShapeError, message
from genesis.base.layouts import channels_last, channels_last_3d
from genesis.core.call.halves import F32, HALVES
from genesis.core.call.kinds import as_it_is, case, composite, primitive
from genesis.core.call.op import samples
from genesis.core.graph.tensor import Tensor, wrap
from genesis.ops.creation.random import rand
from genesis.ops.creation.sequences import arange
from genesis.ops.pointwise.arithmetic import divide
from genesis.ops.pointwise.choice import where
from genesis.ops.spatial.arguments import AXES, Sizes, known, per_dim
from genesis.ops.spatial.sums import mix
from genesis.ops.spatial.tables import Rule, sizes_of, steps, table, windows_along

# ---- arguments


def check_dims(name: str, input: Tensor, dims: int, channels: bool = True) -> None:
    """Whether an input has so many spatial dimensions, one of channels, and maybe one of examples.

    Args:
        channels: whether there must be some
    """
    shape = input._array.shape
    if len(shape) not in (dims + 1, dims + 2):
        text = f"expected input {AXES[dims].replace('N, ', '')} or {AXES[dims]}, got {input.ndim}-D"
        raise ShapeError(message(name, text, [("input", input._spec())], "x.unsqueeze(0) adds a dimension"))
    if 0 in shape[-dims - channels :]:
        empty = "the dimension of examples" if channels else "those of examples and channels"
        text = f"only {empty} may be empty, got {list(input.shape)}"
        raise ShapeError(message(name, text, [("input", input._spec())]))


def _check_floating(name: str, input: Tensor) -> None:
    if not input.is_floating_point():
        raise DTypeError(message(name, f"expected floating-point numbers, got {input.dtype}", hint="x.float()"))


@known
def sliding_rules(
    name: str, input: Tensor, dims: int, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> tuple[Rule, ...]:
    """The rule of each dimension."""
    check_dims(name, input, dims)
    kernel = per_dim(name, "kernel_size", kernel, dims, 1)
    given = stride is not None and not (isinstance(stride, list | tuple) and not stride)
    stride = per_dim(name, "stride", stride, dims, 1) if given else kernel
    padding, dilation = per_dim(name, "padding", padding, dims, 0), per_dim(name, "dilation", dilation, dims, 1)
    rules: list[Rule] = []
    for n, k, s, p, d in zip(input.shape[-dims:], kernel, stride, padding, dilation, strict=True):
        if p > (d * (k - 1) + 1) // 2:
            text = f"padding must be at most half of what the kernel spans, got {list(padding)} for {list(kernel)}"
            raise ShapeError(message(name, text, [("input", input._spec())]))
        m = windows_along(n, k, s, p, d, bool(ceil_mode))
        if m < 1:
            text = f"the kernel spans {d * (k - 1) + 1}, the padded input {n + 2 * p}"
            raise ShapeError(message(name, text, [("input", input._spec())], "a smaller kernel, or padding"))
        rule = ("windows", n, m, k, s, p, d)
        if d > 1 and p and not (table(rule)[0] >= 0).any(1).all():
            text = f"with dilation {d} and padding {p} a window of {k} sees nothing of {n} elements"
            raise ShapeError(message(name, text, [("input", input._spec())], "less padding"))
        rules.append(rule)
    return tuple(rules)


@known
def adaptive_rules(name: str, input: Tensor, dims: int, output_size: Any, kind: str) -> tuple[Rule, ...]:
    """The rule of each dimension; None keeps its size."""
    check_dims(name, input, dims, channels=False)
    sizes = output_size if isinstance(output_size, list | tuple) else [output_size] * dims
    sizes = [n if m is None else m for n, m in zip(input.shape[-dims:], sizes, strict=False)]
    if len(sizes) != dims or (isinstance(output_size, list | tuple) and len(output_size) != dims):
        raise ShapeError(message(name, f"output_size must be one number or {dims}, got {output_size!r}"))
    sizes = list(per_dim(name, "output_size", sizes, dims, 0))
    return tuple([(kind, n, m) for n, m in zip(input.shape[-dims:], sizes, strict=True)])


# ---- the largest


def _infer_positions(input: Spec, rules: tuple[Rule, ...]) -> Spec:
    out = tuple([sizes_of(rule)[1] for rule in rules])
    return Spec((*input.shape[: -len(rules)], *out), np.dtype(np.int64), input.device)


@primitive(
    "search",
    infer=_infer_positions,
    batch=as_it_is,
    dtypes="fi",
    method=False,
    torch_name="",
)
def max_places(input: Array, rules: Any) -> Any:
    """Where the largest element of each window is, among all elements of the last dimensions, which have a rule each.

    Of equals it is the first; NaN counts as largest, of several the last.

    >>> import genesis
    >>> from genesis.ops.spatial.pooling import max_places
    >>> max_places(genesis.tensor([1., 3., 2., 0.]), (("windows", 4, 2, 2, 2, 0, 1),))
    tensor([1, 2])
    """
    values = input.astype(F32) if input.dtype in HALVES else input
    inner, size = None, 1
    for back, rule in enumerate(reversed(rules)):
        values, at = _largest(values, values.ndim - 1 - back, rule)
        inner = at if inner is None else np.take_along_axis(inner, at, values.ndim - 1 - back) + at * size
        size *= rule[1]
    return inner


def _largest(x: Any, dim: int, rule: Rule) -> tuple[Any, Any]:
    """The largest elements along a dimension, and where they are."""
    positions = table(rule)[0]
    shape = (*x.shape[:dim], len(positions), *x.shape[dim + 1 :])
    first = (
        positions[np.arange(len(positions)), np.argmax(positions >= 0, 1)] if len(positions) else np.zeros(0, np.int64)
    )
    column = (-1, *[1] * (x.ndim - dim - 1))
    at = np.broadcast_to(first.reshape(column), shape).copy()
    best = np.full(shape, -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min, x.dtype)
    before = (slice(None),) * dim
    numbers = np.arange(x.shape[dim])
    for to, source, _ in steps(rule):
        elements = x[(*before, source)]
        held = best[(*before, to)]
        larger = elements > held
        if x.dtype.kind == "f":
            larger |= elements != elements
        best[(*before, to)] = np.where(larger, elements, held)
        at[(*before, to)] = np.where(larger, numbers[source].reshape(column), at[(*before, to)])
    return best, at


samples(
    max_places,
    lambda t: [
        case(t(2, 5), (("windows", 5, 3, 3, 2, 1, 1),)),
        case(t(1, 4, 5), (("spans", 4, 2), ("spans", 5, 3))),
    ],
)


def read_positions(input: Tensor, positions: Tensor, dims: int) -> Tensor:
    """The elements at places among the last dimensions, laid out as the input is."""
    last = {2: channels_last, 3: channels_last_3d}.get(dims)
    if last and input.ndim == dims + 2 and not input.is_contiguous() and input.is_contiguous(last):
        flat, where = (x.movedim(1, -1).flatten(1, dims) for x in (input, positions))  # type: ignore[attr-defined]
        elements = flat.gather(1, where).reshape(*positions.shape[:1], *positions.shape[2:], -1)
        return elements.movedim(-1, 1)  # type: ignore[no-any-return]
    flat = input.flatten(-dims) if dims > 1 else input  # type: ignore[attr-defined]
    where = positions.flatten(-dims) if dims > 1 else positions  # type: ignore[attr-defined]
    return flat.gather(-1, where).reshape(positions.shape)  # type: ignore[no-any-return]


@composite(method=False, torch_name="", dtypes="f", halves="wide")
def largest(input: Tensor, rules: tuple[Rule, ...]) -> Tensor:
    """The largest elements of windows: what `max_places` names.

    >>> import genesis
    >>> from genesis.ops.spatial.pooling import largest
    >>> largest(genesis.tensor([1., 3., 2., 0.]), (("windows", 4, 2, 2, 2, 0, 1),))
    tensor([3., 2.])
    """
    return read_positions(input, max_places(input.detach(), rules), len(rules))


samples(largest, lambda t: [case(t(2, 5, 4), (("windows", 5, 2, 2, 2, 0, 1), ("windows", 4, 2, 2, 2, 0, 1)))])


def pooled(input: Tensor, rules: tuple[Rule, ...], return_indices: bool) -> Any:
    values = largest(input, rules)
    return (values, max_places(input.detach(), rules)) if return_indices else values


# ---- means


def _sums(input: Tensor, rules: Sequence[Rule]) -> Tensor:
    for i, rule in enumerate(reversed(rules)):
        input = mix(input, -1 - i, rule)
    return input


@composite(method=False, torch_name="", dtypes="f", halves="wide")
def window_means(input: Tensor, rules: tuple[Rule, ...], count: int) -> Tensor:
    """Sums over windows of the last dimensions, which have a rule each, or by other rules, divided by ``count``.

    >>> import genesis
    >>> from genesis.ops.spatial.pooling import window_means
    >>> window_means(genesis.tensor([1., 3., 2., 0.]), (("windows", 4, 2, 2, 2, 0, 1),), 2)
    tensor([2., 1.])
    """
    sums = _sums(input, rules)
    return sums if count == 1 else sums / count


samples(
    window_means,
    lambda t: [
        case(t(2, 3, 5, 4), (("windows", 5, 2, 3, 2, 0, 1), ("windows", 4, 2, 2, 2, 0, 1)), 6),
        case(t(2, 5), (("cells", 5, 3),), 1),
    ],
)


def _counts(rule: Rule, count_include_pad: bool) -> Any:
    """How many elements each window is divided by."""
    _, n, m, size, stride, padding, _ = rule
    start = np.arange(m) * stride - padding
    stop = np.minimum(start + size, n + padding)
    return stop - start if count_include_pad else np.minimum(stop, n) - np.maximum(start, 0)


@functools.lru_cache(maxsize=256)
def _count(rules: tuple[Rule, ...], count_include_pad: bool) -> int | None:
    """How many elements every window is divided by; None if they differ."""
    counts = [_counts(rule, count_include_pad) for rule in rules]
    return math.prod([int(c[0]) for c in counts]) if all([(c == c[0]).all() for c in counts]) else None


def averaged(
    name: str, input: Tensor, dims: int, kernel: Any, stride: Any, padding: Any, ceil_mode: bool, include: bool,
    divisor: int | None,
) -> Tensor:  # fmt: skip
    floating = input._array.dtype.kind == "f" or input.is_floating_point()
    if not floating and input._array.dtype != np.int64:
        _check_floating(name, input)
    rules = sliding_rules(name, input, dims, kernel, stride, padding, 1, ceil_mode)
    if divisor == 0:
        raise ShapeError(message(name, "divisor_override must not be 0"))
    count = divisor if divisor is not None else _count(rules, bool(include))
    if not floating:
        sums = _sums(input, rules)
        counts = _totals(rules, bool(include), sums) if count is None else count
        return divide(sums, counts, rounding_mode="trunc")  # without what is behind the point
    return uneven_means(input, rules, bool(include)) if count is None else window_means(input, rules, count)


def _totals(rules: tuple[Rule, ...], include: bool, like: Tensor) -> Tensor:
    """How many elements each window is divided by."""
    total = functools.reduce(np.multiply.outer, [_counts(rule, include) for rule in rules])
    return wrap(placed(total.astype(like._array.dtype), like.device))


@composite(method=False, torch_name="", dtypes="f", halves="wide")
def uneven_means(input: Tensor, rules: tuple[Rule, ...], count_include_pad: bool) -> Tensor:
    """The means of windows that are not divided by the same number, as some reach over a border.

    >>> import genesis
    >>> from genesis.ops.spatial.pooling import uneven_means
    >>> uneven_means(genesis.tensor([1., 3., 2., 0.]), (("windows", 4, 3, 3, 2, 1, 1),), False)
    tensor([2.0000, 1.6667, 0.0000])
    """
    return window_means(input, rules, 1) / _totals(rules, count_include_pad, input)  # type: ignore[no-any-return]


samples(uneven_means, lambda t: [case(t(2, 5), (("windows", 5, 3, 3, 2, 1, 1),), False)])


def adapted(name: str, input: Tensor, dims: int, output_size: Any) -> Tensor:
    _check_floating(name, input)
    rules, count = _even(adaptive_rules(name, input, dims, output_size, "cells"))
    if not count:
        return input.mean(list(range(-dims, 0)), True)  # type: ignore[attr-defined, no-any-return]
    return window_means(input, rules, count)


@functools.lru_cache(maxsize=256)
def _even(rules: tuple[Rule, ...]) -> tuple[tuple[Rule, ...], int]:
    """Cells as windows where all have as many elements, and what their sums are divided by; zero where there is one cell
    alone.
    """
    if all([m == 1 for _, _, m in rules]):
        return rules, 0
    if any([m == 0 or n % m for _, n, m in rules]):
        return rules, 1
    even: tuple[Rule, ...] = tuple([("windows", n, m, n // m, n // m, 0, 1) for _, n, m in rules])
    return even, math.prod([rule[3] for rule in even])


# ---- norms


def normed(name: str, input: Tensor, dims: int, p: float, kernel: Any, stride: Any, ceil_mode: bool) -> Tensor:
    if math.isinf(p):  # the limit, the largest or smallest size
        rules = sliding_rules(name, input, dims, kernel, stride, 0, 1, ceil_mode)
        return largest(input.abs(), rules) if p > 0 else -largest(-input.abs(), rules)  # type: ignore[attr-defined, operator]
    size = math.prod(per_dim(name, "kernel_size", kernel, dims, 1))
    mean = averaged(name, input**p, dims, kernel, stride, 0, ceil_mode, True, None)
    return (mean.sign() * mean.abs().relu() * size) ** (1.0 / p)  # type: ignore[attr-defined, no-any-return]


# ---- back to where the largest were


def unpooled(
    name: str, input: Tensor, indices: Tensor, dims: int, kernel: Any, stride: Any, padding: Any, output_size: Any
) -> Tensor:
    check_dims(name, input, dims)
    if tuple(indices.shape) != tuple(input.shape):
        text = f"input and indices differ in shape, {list(input.shape)} and {list(indices.shape)}"
        raise ShapeError(message(name, text))
    if indices._array.dtype != np.int64:
        raise DTypeError(message(name, f"indices must be int64, they are {indices.dtype}", hint="indices.long()"))
    sizes = _unpooled_sizes(name, tuple(input.shape[-dims:]), dims, kernel, stride, padding, output_size)
    shape = (*input.shape[:-dims], math.prod(sizes))
    flat, at = (x.flatten(-dims) if dims > 1 else x for x in (input, indices))  # type: ignore[attr-defined]
    _check_indices(name, indices, shape[-1], sizes)
    return input.new_zeros(shape).scatter(-1, at, flat).reshape(*input.shape[:-dims], *sizes)  # type: ignore[attr-defined, no-any-return]


def _check_indices(name: str, indices: Tensor, size: int, sizes: Sizes) -> None:
    array = indices._array
    if isinstance(array, np.ndarray) and array.size and not 0 <= array.min() <= array.max() < size:
        wrong = array.max() if array.max() >= size else array.min()
        raise ShapeError(message(name, f"index {wrong} is not among the {size} places of the output {list(sizes)}"))


def _unpooled_sizes(
    name: str, sizes: Sizes, dims: int, kernel: Any, stride: Any, padding: Any, output_size: Any
) -> Sizes:
    kernel = per_dim(name, "kernel_size", kernel, dims, 1)
    stride = kernel if stride is None or stride == [] else per_dim(name, "stride", stride, dims, 1)
    padding = per_dim(name, "padding", padding, dims, 0)
    default = tuple([(n - 1) * s - 2 * p + k for n, k, s, p in zip(sizes, kernel, stride, padding, strict=True)])
    if output_size is None:
        return default
    given = tuple(output_size)
    given = given[len(given) - dims :] if len(given) in (dims + 1, dims + 2) else given
    if len(given) != dims:
        raise ArgumentValueError(message(name, f"output_size must have {dims} sizes, got {list(output_size)}"))
    if any([not m - s < n < m + s for n, m, s in zip(given, default, stride, strict=True)]):
        low, high = ([m + f * (s - 1) for m, s in zip(default, stride, strict=True)] for f in (-1, 1))
        raise ArgumentValueError(message(name, f"output_size {list(given)} must be from {low} to {high}"))
    return given


# ---- random windows


def fractional(
    name: str, input: Tensor, dims: int, kernel: Any, output_size: Any, ratio: Any, random: Tensor | None, indices: bool
) -> Any:
    check_dims(name, input, dims)
    kernel = per_dim(name, "kernel_size", kernel, dims, 1)
    if (output_size is None) == (ratio is None):
        raise ArgumentValueError(message(name, "give one of output_size and output_ratio"))
    sizes = tuple(input.shape[-dims:])
    if output_size is None:
        ratios = ratio if isinstance(ratio, list | tuple) else [ratio] * dims
        if len(ratios) != dims or not all([0 < r < 1 for r in ratios]):
            raise ArgumentValueError(message(name, f"output_ratio must be between 0 and 1, got {ratio}"))
        output_size = [int(n * r) for n, r in zip(sizes, ratios, strict=True)]
    out = per_dim(name, "output_size", output_size, dims, 1)
    for n, k, m in zip(sizes, kernel, out, strict=True):
        if m + k - 1 > n:
            text = f"{m} windows of {k} do not fit {n} elements"
            raise ShapeError(message(name, text, [("input", input._spec())], "a smaller output_size or kernel"))
    examples = input.shape[0] if input.ndim == dims + 2 else 1
    if random is None:
        random = rand(examples, input.shape[-dims - 1], dims, dtype=input.dtype, device=input.device)
    elif random.ndim == 3:  # of one example the first samples are taken
        random = random[:examples]
    positions = _random_positions(input, random.detach(), kernel, out)
    elements = input.detach().flatten(-dims).gather(-1, positions.flatten(-dims - 1)).reshape(positions.shape)  # type: ignore[attr-defined]
    best = positions.gather(-1, elements.argmax(-1, True)).squeeze(-1)  # type: ignore[attr-defined]
    values = read_positions(input, best, dims)
    return (values, best) if indices else values


def _random_positions(input: Tensor, random: Tensor, kernel: Sizes, out: Sizes) -> Tensor:
    """The places in each window, (N, C, *out, kernel elements), from a random number for each channel and dimension."""
    dims, lead = len(kernel), tuple(input.shape[: -len(kernel)])
    random = random.reshape(*lead, dims)
    total: Any = 0
    for i, (n, k, m) in enumerate(zip(input.shape[-dims:], kernel, out, strict=True)):
        # in two dimensions the first number is for the columns
        u = random.select(-1, dims - 1 - i if dims == 2 else i).unsqueeze(-1)  # type: ignore[attr-defined]
        step = (n - k) / max(m - 1, 1)
        start = ((arange(m, device=input.device) + u) * step).long() - (u * step).long()  # type: ignore[operator, attr-defined]
        start = where(arange(m, device=input.device) == m - 1, n - k, start)  # type: ignore[arg-type]
        within = start.unsqueeze(-1) + arange(k, device=input.device)
        shape = [*lead, *[1] * (2 * dims)]
        shape[len(lead) + i], shape[len(lead) + dims + i] = m, k
        total = total * n + within.reshape(shape)
    return total.flatten(-dims)  # type: ignore[no-any-return]


FUNCTIONAL: list[str] = []
__all__: list[str] = []
