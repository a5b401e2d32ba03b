"""Kernels with a lane for each element. Where an operand's element lies is a sum of counts times strides, and those are
given to the kernel: one does for all shapes of as many dimensions.

    Code(...)             what a lane does: in Triton's language, and the same with NumPy
    start(code, ...)      do it, for arrays that are laid out in some way

Lines of a code know, of an operand ``x``: the pointer ``x``, where the lane's element is, ``x_at``, and for an operand
that is `reached` by numbers that were read, of each such dimension ``x_size0`` and ``x_step0``; ``inside``, whether the lane
has an element, and its count along dimension 0, ``c0``, where the code asks for it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from genesis.cuda.arrays import used
from genesis.cuda.kernels.lowering import Launch
from genesis.cuda.kernels.signatures import KNOWN, remember
from genesis.cuda.launch import interpreter
from genesis.cuda.launch.kernel import ALIGNED, Launched, Prepared, interpreted
from genesis.cuda.runtime.devices import Device
from genesis.cuda.runtime.emulated_memory import Spaces
from genesis.cuda.runtime.emulated_queues import Span
from genesis.cuda.runtime.reports import reports
from genesis.jit.lowering.triton_code import HEAD, pointer_to
from genesis.jit.lowering.triton_functions import needed

LANES = 1024
INT = 1 << 31
WORD = np.dtype(np.int64)
Grid = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Operand:
    """An array that lanes read or write; ``reached`` of its dimensions are not gone along, but named by numbers."""

    name: str
    reached: int = 0
    writes: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Code:
    """What a lane does. Kernels are known by it: there is one for each thing that lanes do.

    Attributes:
        lines: of Triton's language
        meaning: called with an array for each operand (the shape of the lanes, then the dimensions that are reached), the
            numbers, and the word for reports where it ``reports``
        numbers: names of 64-bit integers that the lines use
        whole: dimensions in front that must not be joined with others
    """

    name: str
    operands: tuple[Operand, ...]
    lines: str
    meaning: Callable[..., None]
    numbers: tuple[str, ...] = ()
    reports: bool = False
    whole: int = 0


class Placed(NamedTuple):
    """An array, its strides along the lanes' dimensions, and size and stride of those that are reached."""

    array: Any  # or its spec
    strides: tuple[int, ...]
    reached: tuple[tuple[int, int], ...] = ()


def start(code: Code, shape: tuple[int, ...], operands: Sequence[Placed], numbers: tuple[int, ...] = (),
          about: tuple[str, str] = ("", "")) -> None:  # fmt: skip
    """Do what a code says, for every element of a shape; ``about`` is whose index it is that may be reported."""
    if 0 in shape:
        return
    arrays = [p.array for p in operands]
    stream, on = used(*arrays), arrays[0].storage.on
    report = _report(code, on, about)
    key = code, tuple(shape), *[(a._layout or a.layout, tuple(s), r) for a, s, r in operands]
    prepared, sizes = _prepared.get(key) or (None, ())
    if prepared is None:
        kernel, grid, sizes = _sized(code, shape, operands)
        prepared = kernel.prepared(on, grid, (*[a.address for a in arrays], *report, *sizes, *numbers))
        if prepared.lasting:
            remember(_prepared, key, (prepared, sizes))
    prepared.start(stream.handle, (*[a.address for a in arrays], *report, *sizes, *numbers))


def launch(
    code: Code, shape: tuple[int, ...], operands: Sequence[Placed], on: Device, about: tuple[str, str]
) -> Launch:
    """What `start` would do for a call whose arrays are these operands, one after the other."""
    kernel, grid, sizes = _sized(code, shape, operands)
    return kernel, grid, tuple(range(len(operands))), (*_report(code, on, about), *sizes)


def _report(code: Code, on: Device, about: tuple[str, str]) -> tuple[int, ...]:
    return (reports(on).address, reports(on).number(*about)) if code.reports else ()


def _sized(code: Code, shape: tuple[int, ...], operands: Sequence[Placed]) -> tuple[Lanes, Grid, tuple[int, ...]]:
    """The kernel, its grid, and all sizes and strides that it is told."""
    lying = tuple([(tuple(p.strides), p.array.dtype) for p in operands])
    kernel, grid, sizes = _laid_out(code, tuple(shape), lying)
    return kernel, grid, (*sizes, *[number for p in operands for pair in p.reached for number in pair])


# what was started before, by how operands lie, and the numbers that it is told about them
_prepared: dict[Any, tuple[Prepared, tuple[int, ...]]] = {}


@functools.lru_cache(KNOWN)
def _laid_out(code: Code, shape: tuple[int, ...], lying: tuple[tuple[tuple[int, ...], Any], ...]) -> Any:
    """The kernel for operands of these strides and dtypes, its grid, and the sizes and strides that it is told."""
    shape, strides = joined(shape, [steps for steps, _ in lying], code.whole)
    furthest = max([_furthest(shape, s) for s in strides])
    count = math.prod(shape)
    units = tuple([tuple([s if s in (0, 1) else 2 for s in steps]) for steps in strides])
    kernel = lanes(code, tuple([d for _, d in lying]), len(shape), units, count >= INT or furthest >= INT)
    return kernel, (-(-count // LANES), 1, 1), (count, *shape[1:], *[n for steps in strides for n in steps])


def joined(
    shape: tuple[int, ...], strides: list[tuple[int, ...]], whole: int = 0
) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """The same elements in as few dimensions as can be; the first ``whole`` stay what they are."""
    extents: list[int] = []
    steps: list[list[int]] = [[] for _ in strides]
    for d, n in enumerate(shape):
        if n == 1 and d >= whole:
            continue
        if len(extents) > whole and all([k[-1] == s[d] * n for k, s in zip(steps, strides, strict=True)]):
            extents[-1] *= n
            for k, s in zip(steps, strides, strict=True):
                k[-1] = s[d]
        else:
            extents.append(n)
            for k, s in zip(steps, strides, strict=True):
                k.append(s[d])
    return tuple(extents) or (1,), [tuple(k) or (0,) for k in steps]


def _furthest(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    return sum([(n - 1) * abs(s) for n, s in zip(shape, strides, strict=True)])


@functools.cache
def lanes(code: Code, dtypes: tuple[Any, ...], rank: int, units: tuple[tuple[int, ...], ...], wide: bool) -> Lanes:
    return Lanes(code, dtypes, rank, units, wide)


class Lanes(Launched):
    """The kernel of a code for operands of some dtypes, in so many dimensions; strides of 0 and 1 are in its text."""

    def __init__(self, code: Code, dtypes: tuple[Any, ...], rank: int, units: Any, wide: bool) -> None:
        self.code, self.dtypes, self.rank = code, dtypes, rank
        self.source = "\n".join(_text(code, rank, units, wide))
        letter, kind = ("q", "i64") if wide else ("i", "i32")
        counted = rank + rank * len(dtypes)
        steps = [unit for each in units for unit in each]
        self.strided = [*range(1, rank), *[rank + i for i, unit in enumerate(steps) if unit == 2]]
        reached = 2 * sum([o.reached for o in code.operands])
        report = ("*i64", "i64") if code.reports else ()
        self.signature = (
            *[pointer_to(d) for d in dtypes], *report, *[kind] * counted, *["i64"] * (reached + len(code.numbers)),
        )  # fmt: skip
        self.letters = "Q" * len(dtypes) + "Qq" * code.reports + letter * counted + "q" * (reached + len(code.numbers))

    def aligned(self, values: tuple[Any, ...]) -> tuple[int, ...]:
        """Pointers, each for itself; sizes and strides all together, so that there are few machine codes of a kernel."""
        count = len(self.dtypes)
        first = count + 2 * self.code.reports
        pointers = [i for i in range(count) if values[i] % ALIGNED == 0]
        sizes = [first, *[first + i for i in self.strided]]
        return (*pointers, *(sizes if all([values[i] % ALIGNED == 0 for i in sizes]) else ()))

    def _read(
        self, values: tuple[Any, ...]
    ) -> tuple[list[tuple[int, tuple[int, ...], tuple[int, ...]]], tuple[int, ...]]:
        """Of each operand the address, the shape with what is reached, and the strides; and the numbers."""
        count, rank = len(self.dtypes), self.rank
        rest = values[count + 2 * self.code.reports :]
        shape = (rest[0] // math.prod(rest[1:rank]), *rest[1:rank])
        steps, rest = rest[rank : rank + rank * count], rest[rank + rank * count :]
        operands = []
        for i, operand in enumerate(self.code.operands):
            sizes, strides = rest[0 : 2 * operand.reached : 2], rest[1 : 2 * operand.reached : 2]
            rest = rest[2 * operand.reached :]
            operands.append((values[i], (*shape, *sizes), (*steps[i * rank : (i + 1) * rank], *strides)))
        return operands, rest

    def spans(self, grid: Grid, values: tuple[Any, ...]) -> list[Span]:
        spans = []
        for (address, shape, strides), dtype, each in zip(
            self._read(values)[0], self.dtypes, self.code.operands, strict=True
        ):
            low, high = _extent(shape, strides)
            spans.append((address + low * dtype.itemsize, (high - low) * dtype.itemsize, each.writes))
        return spans

    def run(self, memory: Spaces, grid: Grid, values: tuple[Any, ...]) -> None:
        operands, numbers = self._read(values)
        report = [memory.array(values[len(operands)], WORD, 1)] if self.code.reports else []
        number = [values[len(operands) + 1]] if self.code.reports else []
        extents = [_extent(shape, strides) for _, shape, strides in operands]
        whole = [
            memory.array(address + low * d.itemsize, d, high - low)
            for (address, _, _), d, (low, high) in zip(operands, self.dtypes, extents, strict=True)
        ]
        if interpreted():
            given = [(a, -low) for a, (low, _) in zip(whole, extents, strict=True)]
            arrays = [*given, *[(r, 0) for r in report]]
            results = interpreter.run(self.source, grid, [*arrays, *values[len(arrays) :]])
            for array, result in zip([*whole, *report], results, strict=False):
                array[...] = result
            return
        views = [
            np.lib.stride_tricks.as_strided(a[-low:], shape, [s * a.itemsize for s in strides])
            for a, (low, _), (_, shape, strides) in zip(whole, extents, operands, strict=True)
        ]
        with np.errstate(all="ignore"):
            self.code.meaning(*views, *numbers, *[(r, n) for r, n in zip(report, number, strict=True)])


def _extent(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, int]:
    """The first element, and the one behind the last, from where the first of all counts is."""
    if 0 in shape:
        return 0, 0
    steps = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
    return sum([s for s in steps if s < 0]), sum([s for s in steps if s > 0]) + 1


def _text(code: Code, rank: int, units: Any, wide: bool) -> list[str]:
    names = [o.name for o in code.operands]
    strides = [f"{name}_{d}" for name in names for d in range(rank)]
    reached = [f"{o.name}_{what}{j}" for o in code.operands for j in range(o.reached) for what in ("size", "step")]
    parameters = [*names, *["report", "number"] * code.reports, "n", *[f"s{d}" for d in range(1, rank)], *strides]
    head = [*HEAD, "", "", *needed([code.lines]), "@triton.jit"]
    head.append(f"def kernel({', '.join([*parameters, *reached, *code.numbers])}):")
    lines = [
        f"at = tl.program_id(0){'.to(tl.int64)' if wide else ''} * {LANES} + tl.arange(0, {LANES})",
        "inside = at < n", "rest = at",
    ]  # fmt: skip
    for d in range(rank - 1, 0, -1):
        lines += [f"c{d} = rest % s{d}", f"rest = rest // s{d}"]
    lines.append("c0 = rest")
    for name, steps in zip(names, units, strict=True):
        terms = [f"c{d}" if s == 1 else f"c{d} * {name}_{d}" for d, s in enumerate(steps) if s]
        lines.append(f"{name}_at = {' + '.join(terms) or 'at * 0'}")
    lines += code.lines.strip("\n").split("\n")
    return [*head, *[f"    {line}" if line else "" for line in lines], ""]
