"""Composites that are one kernel: the step of Adam, of many parameters at a time."""

from __future__ import annotations

from collections.abc import Sequence
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


@adam_step.many
def _adam_steps(rows: Sequence[Any], *numbers: Any) -> None:
    """Steps of many parameters, `MOST` a launch."""
    _refuse_recording()
    alike: dict[Any, list[Any]] = {}
    for row in rows:
        plan = _plan((*row, *numbers))
        step = plan.steps[0] if plan is not None and len(plan.steps) == 1 else None
        if step is None or not step.kernel.told:
            adam_step.kernel(*row, *numbers)
        else:
            alike.setdefault((step.kernel.source, step.operands, row[0].on), []).append((step, row))
    for (_, operands, on), steps in alike.items():
        for first in range(0, len(steps), MOST):
            _together(on, operands, steps[first : first + MOST], numbers)


def _together(on: Any, operands: Any, steps: list[Any], numbers: tuple[Any, ...]) -> None:
    given = []
    for _, row in steps:
        args = (*row, *numbers)
        arrays = {"in": [x for x in row if x is not None], "out": [row[0], *row[2:4], *row[4:5]]}
        given.append([args[i] if kind == "number" else arrays[kind][i].address for kind, i in operands])
    stream = used(*[x for _, row in steps for x in row if x is not None])
    kernel = several(steps[0][0].kernel, len(steps))
    kernel.launch(on, stream.handle, given, [step.count for step, _ in steps])
