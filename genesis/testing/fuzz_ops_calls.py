"""Calls for `fuzz_ops`: samples of ops whose sizes, values, dtypes, options and memory are others."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from genesis.base import dtypes
from genesis.core.call.op import Case, Op
from genesis.core.graph.tensor import Tensor
from genesis.testing.arguments import replace, tensors_in
from genesis.testing.make import Maker
from genesis.testing.opcheck import sample_dtypes, samples_of

LARGEST = 20_000  # elements of an input
SIZES = (0, 0, 1, 1, 2, 3, 5, 16, 17, 33, 70)
FORMS = ("function",) * 6 + ("method", "in place", "in place", "out", "out")
LAYOUTS = ("contiguous", "contiguous", "transposed", "step", "negative", "expanded", "offset")
SPECIAL = (math.nan, math.inf, -math.inf, 0.0, -0.0, 1e-30, -1e30, 1.0, -1.0, 0.5, 88.8, -104.0)


TIES = ("kthvalue", "topk", "median", "nanmedian", "mode", "sort", "argsort", "msort", "unique")  # the order of equals
# What the others give at nan, infinities and 1e30 is compared by tests/ops/test_ends_of_the_line.py, or PyTorch has none.
SIGNS = ("sign", "sgn")  # of nan it is nan (docs/guide/differences.md)
FINITE = ("special_", "i0", "polygamma", "mvlgamma", "digamma", "igamma")


@dataclass
class Memory:
    """An operand: part of a piece of memory, which others may have parts of, too."""

    root: Any  # NumPy, one-dimensional
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # elements, as the offset
    grad: bool = False

    def array(self, root: Any) -> Any:
        size = root.itemsize
        return np.ndarray(
            self.shape,
            root.dtype,
            root.view(np.uint8).data,
            self.offset * size,
            tuple([s * size for s in self.strides]),
        )


@dataclass
class Call:
    """A call of an op, for both libraries."""

    op: Op
    form: str
    args: list[Any]
    kwargs: dict[str, Any]
    out: list[Memory] = field(default_factory=list)
    small: bool = False  # compiled loops take small arrays, too

    def __str__(self) -> str:
        parts = [*map(_told, self.args), *[f"{k}={_told(v)}" for k, v in self.kwargs.items()]]
        out = [f"out={_told(m)}" for m in self.out]
        return f"{self.op.name} ({self.form}{', loops' if self.small else ''})({', '.join([*parts, *out])})"


def _told(value: Any) -> str:
    if isinstance(value, Memory):
        array = value.array(value.root)
        dtype = dtypes.from_numpy(array.dtype).short
        numbers = f" {array.astype(object).tolist()}" if array.size <= 12 else ""
        return f"{dtype}{list(value.shape)} strides {value.strides}{' grad' if value.grad else ''} @{id(value.root) % 997}{numbers}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_told, value))}]"
    return repr(value)


# ---- what is called


def written(seed: int, ops: Sequence[Op]) -> Call | None:
    """The call of a seed; None where its sizes are too large."""
    rng = random.Random(seed)
    op = rng.choice(ops)
    dtype = rng.choice(sample_dtypes(op))
    cases = samples_of(op, Maker(dtype, seed=seed % 1000))
    if not cases:
        return None
    form = rng.choice(FORMS)
    if form in ("in place", "method") and not hasattr(Tensor, op.name + "_" * (form == "in place")):
        form = "function"
    sample = rng.choice(cases)
    sizes = _sizes(rng, sample)
    shared: dict[tuple[Any, ...], Memory] = {}
    ends = op.kind.aligned and not op.name.startswith(FINITE)
    special = rng.sample(SPECIAL, 2) if ends and rng.random() < 0.3 else []
    special = [x for x in special if op.name not in SIGNS or not math.isnan(x)]
    many = [0]

    def changed(t: Tensor) -> Memory:
        shape = tuple([sizes.get(n, n) for n in t.shape])
        many[0] = max(many[0], math.prod(shape))
        array = np.resize(t.detach().numpy(), shape) if math.prod(shape) <= LARGEST else np.zeros((), np.float32)
        if array.dtype.kind in "fc" and shape != tuple(t.shape):  # no two rows the same
            factors = np.random.default_rng(seed).uniform(0.9, 1.0, shape)
            array = (array * factors).astype(array.dtype)
        if rng.random() < 0.06:
            other = rng.choice((*sample_dtypes(op), dtypes.float32, dtypes.int32, dtypes.bool, dtypes.float16))
            with np.errstate(all="ignore"):
                array = array.astype(other.np)
        kind = dtypes.from_numpy(array.dtype)
        if special and kind.category >= 2 and array.size:
            for value in special:
                with np.errstate(all="ignore"):
                    array.flat[rng.randrange(array.size)] = value
        key = (array.shape, array.dtype)
        if key in shared and rng.random() < 0.15:
            return shared[key]
        grad = form in ("function", "method") and kind.category >= 2 and not special and rng.random() < 0.7
        layout = rng.choice(LAYOUTS)
        if layout == "expanded" and (
            form == "in place" or op.name in TIES or op.module.startswith("genesis.ops.linalg")
        ):
            layout = "step"  # no singular matrices, no equals, no element twice in what is written to
        shared[key] = memory = laid_out(array, layout, rng, grad)
        return memory

    args, kwargs = replace(list(sample.args), changed), replace(dict(sample.kwargs), changed)
    if many[0] > LARGEST:
        return None
    args, kwargs = _options(rng, args), {k: _options(rng, [v])[0] for k, v in kwargs.items()}
    return Call(op, form, args, kwargs, _out(rng, op, args, form), rng.random() < 0.5)


def _sizes(rng: random.Random, sample: Case) -> dict[int, int]:
    """Other sizes, the same for all dimensions that had the same."""
    if rng.random() < 0.5:
        return {}
    sizes = sorted({n for t in tensors_in((sample.args, sample.kwargs)) for n in t.shape})
    return {n: rng.choice(SIZES) for n in sizes if rng.random() < 0.5}


def _options(rng: random.Random, args: list[Any]) -> list[Any]:
    """Arguments, of which one or another number or choice is another."""
    return [_option(rng, value) if rng.random() < 0.06 else value for value in args]


def _option(rng: random.Random, value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice((-2, -1, 0, 1, 2, 3))
    if isinstance(value, float):
        return rng.choice((0.0, -0.5, 1.0, 2, 0.3, math.inf))
    if isinstance(value, tuple | list) and value and all(isinstance(v, int) for v in value):
        return type(value)(rng.choice((v, -1, 0, 1, 2)) for v in value)
    return value


def laid_out(array: Any, layout: str, rng: random.Random, grad: bool = False) -> Memory:
    """An array in memory of a layout."""
    shape, n = array.shape, array.ndim
    strides, step = [0] * n, 2 if layout == "step" else 1
    order = rng.sample(range(n), n) if layout == "transposed" else list(range(n - 1, -1, -1))
    for d in order:
        strides[d], step = step, step * max(shape[d], 1)
    offset = rng.randint(1, 3) if layout == "offset" else 0
    if layout == "expanded" and n:
        d = rng.randrange(n)
        strides[d] = 0
        array = np.broadcast_to(array[(slice(None),) * d + (slice(0, 1),)], shape)
    elif layout == "negative" and n:
        for d in rng.sample(range(n), rng.randint(1, n)):
            offset, strides[d] = offset + strides[d] * max(shape[d] - 1, 0), -strides[d]
    last = offset + sum(max(0, s) * max(k - 1, 0) for s, k in zip(strides, shape, strict=True))
    root = np.zeros(last + 1 + rng.randint(0, 2), array.dtype)
    memory = Memory(root, offset, tuple(shape), tuple(strides), grad)
    memory.array(root)[...] = array
    return memory


def _out(rng: random.Random, op: Op, args: list[Any], form: str) -> list[Memory]:
    """Where a result is written to: new memory, an operand, or memory that overlaps one."""
    operands = [m for m in memories(args) if 0 not in m.strides and min(m.strides, default=1) > 0]
    if form != "out":
        return []
    if not operands or rng.random() < 0.3:
        shape = rng.choice(((0,), (3,), (2, 3)))
        return [
            laid_out(np.zeros(shape, np.float32 if rng.random() < 0.5 else np.float64), rng.choice(LAYOUTS[:4]), rng)
        ]
    operand = rng.choice(operands)
    if rng.random() < 0.6:
        return [operand]
    fits = operand.offset + 1 + sum(s * max(k - 1, 0) for s, k in zip(operand.strides, operand.shape, strict=True))
    if fits < operand.root.size:  # one further: what PyTorch refuses
        return [Memory(operand.root, operand.offset + 1, operand.shape, operand.strides)]
    turned = Memory(operand.root, operand.offset, operand.shape[::-1], operand.strides[::-1])
    return [turned]


def memories(value: Any) -> Iterator[Memory]:
    if isinstance(value, Memory):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from memories(item)
    elif isinstance(value, dict):
        yield from memories(list(value.values()))
