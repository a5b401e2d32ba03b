"""Composites that are one kernel: the step of Adam, of many parameters at a time."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from genesis.arrays.spec import Spec
from genesis.base.errors import message
from genesis.core.call.kernels import attach
from genesis.cuda.arrays import CudaArray, used
from genesis.cuda.kernels.lowering import Launches, launches
from genesis.cuda.kernels.wanted import kernels_wanted
from genesis.cuda.launch.several import MOST, several
from genesis.cuda.recorded.capture import capturing
from genesis.cuda.runtime.errors import CaptureError

_known: dict[Any, Launches | None] = {}


def _plan(arguments: tuple[Any, ...]) -> Launches | None:
    """The launches of a step, for parameters that are laid out like this one."""
    *tensors, largest = arguments[:5]
    numbers = frozenset([i for i in range(5, len(arguments)) if type(arguments[i]) is float])
    key = (*[(x.shape, x.strides, x.dtype) for x in tensors], largest is None, numbers)
    if key not in _known:
        written = [tensors[0], *tensors[2:], *([] if largest is None else [largest])]
        specs = [Spec(x.shape, x.dtype, strides=x.strides) for x in written]
        _known[key] = launches("fused.adam_step", arguments, specs, True, numbers)
    return _known[key]


def _fits(param: Any, grad: Any, exp_avg: Any, exp_avg_sq: Any, largest: Any, *numbers: Any) -> bool:
    arrays = [x for x in (param, grad, exp_avg, exp_avg_sq, largest) if x is not None]
    alike = all([x.shape == param.shape and x.dtype == param.dtype for x in arrays])
    if not (alike and param.size and param.dtype.char in "fd" and kernels_wanted()):
        return False
    return all([min(x.strides, default=1) > 0 for x in arrays]) and _plan((*arrays[:4], largest, *numbers)) is not None


def _refuse_recording() -> None:
    if capturing() is not None:
        text = "a graph of a step of Adam would have the learning rate and the number of steps of its recording"
        raise CaptureError(message("cuda", text, hint="genesis.compile(step), which reads them at each call"))


@attach("adam_step", CudaArray, when=_fits)
def adam_step(*arguments: Any) -> None:
    """The kernel of `genesis.ops.learning.update.adam_step`."""
    _refuse_recording()
    plan = _plan(arguments)
    assert plan is not None
    param, _, exp_avg, exp_avg_sq, largest = arguments[:5]
    plan.into(arguments, [param, exp_avg, exp_avg_sq, *([] if largest is None else [largest])])


# ---- of many parameters: what is launched is kept, and done again with other addresses


class _Steps:
    """Launches of steps of many parameters that are laid out in some way, `MOST` a launch.

    Addresses are those of all parameters, then of all gradients, and so on: `COLUMNS` in all.
    """

    def __init__(self, on: Any, alike: dict[Any, list[Any]], count: int) -> None:
        self.on, self.launches = on, list[Any]()
        self.laid: tuple[list[Any], ...] = ()
        for (_, operands), steps in alike.items():
            for first in range(0, len(steps), MOST):
                some = steps[first : first + MOST]
                kernel = several(some[0][0].kernel, len(some))
                at = [_column(*operands[i]) * count + row for _, row in some for i in kernel.own]
                counts = [step.count for step, _ in some]
                grid = sum([-(-n // kernel.lanes) for n in counts]), 1, 1
                numbers = [operands[i][1] - COLUMNS for i in sorted(kernel.kernel.numbers)]
                self.launches.append((kernel, grid, itemgetter(*at), counts, numbers))

    def lie_so(self, arrays: list[Any]) -> bool:
        """Whether arrays are laid out as those were, on the same device."""
        return self.laid == _laid(arrays) and {x.storage.on for x in arrays} == {self.on}

    def start(self, stream: int, addresses: list[int], numbers: tuple[Any, ...]) -> None:
        for kernel, grid, at, counts, own in self.launches:
            kernel.start(self.on, stream, grid, (*at(addresses), *counts, *[numbers[i] for i in own]))


COLUMNS = 5  # the parameters of `adam_step` that are tensors
KEPT = 64


def _kept(on: Any) -> dict[Any, _Steps]:
    """The steps of many parameters that were taken on a device, by the first address and what else tells them apart."""
    return on.keep("adam_steps", lambda on: {})  # type: ignore[no-any-return]


def _column(kind: str, i: int) -> int:
    return (0, 2, 3, 4)[i] if kind == "out" else i


def _laid(arrays: list[Any]) -> tuple[list[Any], ...]:
    return [x.strides for x in arrays], [x.shape for x in arrays], [x.dtype for x in arrays]


def _key(columns: Sequence[Any], numbers: tuple[Any, ...]) -> Any:
    first = columns[0]
    return first[0].address, len(first), columns[-1] is None, *map(type, numbers)


def _again(columns: list[Any], *numbers: Any) -> bool:
    arrays = [x for column in columns if column is not None for x in column]
    if set(map(type, arrays)) != {CudaArray} or not kernels_wanted():
        return False
    steps = _kept(arrays[0].storage.on).get(_key(columns, numbers))
    if steps is None or not steps.lie_so(arrays):
        return False
    _refuse_recording()
    addresses = [x.address for x in arrays]
    steps.start(used(*arrays).handle, addresses, numbers)
    return True


@adam_step.many(again=_again)
def _adam_steps(rows: Sequence[Any], *numbers: Any) -> None:
    """Steps of many parameters."""
    _refuse_recording()
    for on in dict.fromkeys([row[0].on for row in rows]):
        _adam_steps_on(on, [row for row in rows if row[0].on is on], numbers)


def _adam_steps_on(on: Any, rows: Sequence[Any], numbers: tuple[Any, ...]) -> None:
    """Those on one device; if all are of a kind that is done again, they are kept for that."""
    alike: dict[Any, list[Any]] = {}
    for number, row in enumerate(rows):
        plan = _plan((*row, *numbers))
        step = plan.steps[0] if plan is not None and len(plan.steps) == 1 else None
        if step is None or not step.kernel.told:
            adam_step.kernel(*row, *numbers)
        else:
            alike.setdefault((step.kernel.source, step.operands), []).append((step, number))
    steps = _Steps(on, alike, len(rows))
    columns = [list(column) for column in zip(*rows, strict=True)]
    arrays = [x for column in columns for x in column if x is not None]
    addresses = [0 if x is None else x.address for column in columns for x in column]
    steps.start(used(*arrays).handle, addresses, numbers)
    last = {x is None for x in columns[-1]}
    if len(last) == 1 and sum(map(len, alike.values())) == len(rows):
        steps.laid = _laid(arrays)
        kept = _kept(on)
        if len(kept) >= KEPT:
            kept.clear()
        kept[_key([*columns[:-1], None if last == {True} else columns[-1]], numbers)] = steps
