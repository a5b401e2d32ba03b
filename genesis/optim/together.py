"""Steps of all parameters of a group by one call of a compiled rule (`genesis.kernels.llvm.steps`).

A step of one parameter is ten to twenty ops of 4 to 6 us each, and each goes over the arrays once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from genesis.base.quiet import quietly
from genesis.core.call.halves import F32, F64
from genesis.core.call.writes import bump_all
from genesis.core.graph.switches import ACTIVE, LEVELS, PACKING
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.tracing import advance
from genesis.core.graph.version import INFERENCE, SHARED
from genesis.kernels.cpu.optim import steps_by_rule, steps_pay

if TYPE_CHECKING:
    from genesis.optim.stateful import Stateful

_PLAIN = (float, int, bool, type(None))


def update_together(optimizer: Stateful, group: dict[str, Any]) -> bool:
    """The steps of a group, where that can be done by one call and is worth it; whether it was."""
    rule = type(optimizer).__dict__.get("rule")  # not of a class that may change what is above it
    if rule is None or ACTIVE or LEVELS or PACKING or group["differentiable"] or not _plain(group):
        return False
    params = [(p, p.grad) for p in group["params"] if p.grad is not None]
    if not steps_pay([p._array.size for p, _ in params]):
        return False
    rows = _Rows(optimizer, group, rule)
    for p, grad in params:
        state = optimizer.state[p]
        if not state:
            optimizer.begin(p, state, group)
        if not rows.take(p, grad, state):
            rows.run()
            optimizer._update_one(p, grad, group)
    rows.run()
    return True


def _plain(group: dict[str, Any]) -> bool:
    """Whether all options are numbers, or tuples of them."""
    others = [v for name, v in group.items() if v.__class__ not in _PLAIN and name not in ("params", "param_names")]
    return all([v.__class__ in (tuple, list) and all([x.__class__ in _PLAIN for x in v]) for v in others])


class _Rows:
    """Parameters whose steps take the same numbers."""

    def __init__(self, optimizer: Stateful, group: dict[str, Any], rule: str) -> None:
        self.optimizer, self.group, self.rule = optimizer, group, rule
        self.names = tuple([name for name in optimizer.first_state(group) if name not in optimizer.single])
        self.rows: list[Sequence[Any]] = []
        self.written: list[Tensor] = []
        self.known: dict[Any, tuple[dict[str, float], dict[str, float]]] = {}
        self.numbers: Any = None

    def take(self, p: Tensor, grad: Any, state: dict[str, Any]) -> bool:
        """Add the step of a parameter; False where that is left to ops."""
        tensors = [p, *[state.get(name) for name in self.names]]
        singles = [state.get(name) for name in self.optimizer.single]
        kind, shape = p._array.dtype, p._array.shape
        if (kind is not F32 and kind is not F64) or state["step"].__class__ is not int or grad.__class__ is not Tensor:
            return False
        if singles and not shape:  # ops compute with two single numbers in the wider dtype
            return False
        g = grad._array
        if g.__class__ is not np.ndarray or g.dtype is not kind or g.shape != shape:
            return False
        if not all([_own(x, kind, shape) for x in tensors]) or not all([_own(x, F32, ()) for x in singles]):
            return False
        advance(state, "step")
        numbers = self._numbers_of(state["step"], singles)
        if numbers is not self.numbers or (self.rows and self.rows[0][0].dtype is not kind):
            self.run()
            self.numbers = numbers
        self.rows.append((p._array, g, *[x._array for x in tensors[1:]]))
        self.written += [*tensors, *singles]
        return True

    def _numbers_of(self, step: int, singles: Sequence[Any]) -> dict[str, float]:
        """The numbers of a step; those in the state are written."""
        values = tuple([x._array.item() for x in singles])
        known = self.known.get((step, values))
        if known is None:
            changed = dict(zip(self.optimizer.single, values, strict=True))
            numbers = self.optimizer.numbers(self.group, step, changed)
            decay = self.group.get("weight_decay")
            if decay and not self.optimizer.decoupled(self.group):
                numbers["decay"] = decay
            if decay and self.optimizer.decoupled(self.group):
                numbers["shrink"] = 1 - self.group["lr"] * decay
            if self.group["maximize"]:
                numbers["sign"] = -1.0
            known = self.known[step, values] = numbers, changed
        numbers, changed = known
        for x, value in zip(singles, changed.values(), strict=True):
            x._array.fill(value)
        return numbers

    def run(self) -> None:
        """Do the steps."""
        if self.rows:
            quietly(steps_by_rule, self.rule, self.names, self.rows, self.numbers)
            bump_all(self.written, "add_")
        self.rows, self.written = [], []


def _own(x: Any, kind: Any, shape: Any) -> bool:
    """Whether this is an array of NumPy's that may be written to, and nobody else's."""
    if x is None or x._view is not None or x._counter is SHARED or x._counter is INFERENCE:
        return False
    a = x._array
    return bool(a.__class__ is np.ndarray and a.dtype is kind and a.shape == shape and a.flags.carray)
