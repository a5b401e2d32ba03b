"""Losses whose gradient is known when they are computed: each row of logits is read from memory once, not twice.

    loss, total, share = cross_entropy(x, target)
    gx = backward(g, (x, target, total, share))           is        loss, gx = cross_entropy with gradient(g, x, target)

What the loss is multiplied by before its gradient is asked for, as a `GradScaler` does, is computed before.
"""

from __future__ import annotations

from genesis.cuda.kernels.loss_gradients import CACHED, WITH_GRADIENT
from genesis.cuda.kernels.losses import IN_PROGRAMS, OF_HALVES
from genesis.jit.arguments import Var
from genesis.jit.program import Call, Program


def with_gradients(program: Program) -> Program:
    """The program, with such losses."""
    for call in program.calls:
        if call.op == f"{IN_PROGRAMS}.backward":
            program = _with_gradient(program, call)
    return program


def _with_gradient(program: Program, backward: Call) -> Program:
    """The program with a loss that gives this gradient, too, where it can."""
    g, (_, _, total, _, ignored), _ = backward.args
    made = {var: i for i, call in enumerate(program.calls) for var in call.outs}
    at = made.get(total, -1)
    loss = program.calls[at]
    if loss.op not in (IN_PROGRAMS, OF_HALVES) or not _is_all(program, loss, backward):
        return program
    before = _behind(program, made, g, at)
    if at in before:
        return program
    logits, target = loss.args[:2]
    outs = loss.outs[0], backward.outs[0]
    both = Call(WITH_GRADIENT, (g, logits, target, ignored, outs[0].spec.dtype), outs, loss.site)
    moved = {*before, at, made[outs[1]]}
    rest = [call for i, call in enumerate(program.calls) if i > at and i not in moved]
    return program.with_calls([*program.calls[:at], *[program.calls[i] for i in before], both, *rest])


def _is_all(program: Program, loss: Call, backward: Call) -> bool:
    """Whether a gradient alone, of logits as they are, reads what a loss leaves for it, and rows are short enough."""
    _, (logits, target, *kept, _), ((_, dtype), *others) = backward.args
    left: set[Var] = {*loss.outs[1:]}
    readers = [call for call in program.calls if call is not backward and left & {*call.inputs}]
    alike = [logits, target, *kept] == [*loss.args[:2], *loss.outs[1:]] and logits.spec.dtype == dtype
    short = logits.spec.shape[-1] * dtype.itemsize <= CACHED
    return (
        alike
        and short
        and not readers
        and not left & {*program.ends}
        and not any([wanted is not None for wanted in others])
    )


def _behind(program: Program, made: dict[Var, int], value: Var, at: int) -> list[int]:
    """The calls from one on that a value is made of, in order."""
    numbers: set[int] = set()
    todo = [value]
    while todo:
        number = made.get(todo.pop(), -1)
        if number >= at and number not in numbers:
            numbers.add(number)
            todo += program.calls[number].inputs
    return sorted(numbers)
