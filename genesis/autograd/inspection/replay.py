"""Backward, recorded: look at every node and its gradients, run one rule again, find where two runs part."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from genesis.base.errors import ArgumentError, ArgumentValueError, GraphError, message
from genesis.base.text import Printed, Table, name_of
from genesis.core.call.refusal import explain_all
from genesis.core.graph import engine
from genesis.core.graph.modes import no_grad
from genesis.core.graph.node import FREED, Node, node_of
from genesis.core.graph.seeds import edge_of, seed_for
from genesis.core.graph.site import Site
from genesis.core.graph.tensor import Tensor


@dataclass(eq=False, repr=False)
class Step(Printed):
    """One node of a recorded backward: what it got, and what it gave."""

    index: int
    node: Node
    grad_outputs: tuple[Tensor | None, ...]
    grad_inputs: tuple[Tensor | None, ...]
    seconds: float  # of the rule, and of what ran inside

    @property
    def name(self) -> str:
        return self.node.name()

    @property
    def where(self) -> Site | None:
        """The line of the forward."""
        return self.node.where()

    @property
    def norm(self) -> float:
        """The 2-norm of all the gradients it gave."""
        return float(np.sqrt(sum(float(np.sum(np.abs(_array(g)) ** 2)) for g in self.grad_inputs if g is not None)))

    @property
    def finite(self) -> bool:
        """Whether the gradients it gave hold no NaN and no infinity."""
        return all(bool(np.isfinite(_array(g)).all()) for g in self.grad_inputs if g is not None)

    def _cells(self) -> tuple[str, ...]:
        shapes = ", ".join("-" if g is None else str(list(g.shape)) for g in self.grad_inputs)
        flag = "" if self.finite else "NOT FINITE"
        return (
            str(self.index),
            name_of(self.name),
            shapes,
            f"{self.norm:.4g}",
            f"{self.seconds * 1e6:.0f} us",
            name_of(self.where or ""),
            flag,
        )

    def _text(self) -> str:
        index, name, shapes, norm, seconds, where, flag = self._cells()
        return f"{index:>4}  {name:<24} -> {shapes}  norm {norm}  {seconds}  {where}{'  ' + flag if flag else ''}"


class BackwardRecord(Printed, Sequence[Step]):
    """What `record` returns: the steps of a backward in the order in which they ran; printing it gives a table."""

    def __init__(self, steps: list[Step], stopped: bool, keep_alive: Any) -> None:
        self.steps, self.stopped, self._keep_alive = steps, stopped, keep_alive

    def __len__(self) -> int:
        return len(self.steps)

    def __getitem__(self, index: Any) -> Any:
        return self.steps[index]

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def find(self, condition: Callable[[Step], bool]) -> Step | None:
        """The first step for which ``condition(step)`` holds: ``record.find(lambda s: s.norm > 1e3)``."""
        return next((s for s in self.steps if condition(s)), None)

    def at(self, name: str) -> list[Step]:
        """The steps of nodes with this name (``"MulBackward"``)."""
        return [s for s in self.steps if s.name == name]

    def replay(
        self, step: Step | int, grad_outputs: Sequence[Tensor | None] | Tensor | None = None
    ) -> tuple[Tensor | None, ...]:
        """Run one rule again, alone: on the gradients that it got, or on others. Set a breakpoint in it first.

        Raises:
            RuntimeError: what the node saved was freed by a later backward
        """
        step = self.steps[step] if isinstance(step, int) else step
        node = step.node
        if node._saved is FREED:
            raise GraphError(
                message(
                    "replay", f"what {step.name} saved was freed by a backward", hint="pass retain_graph=True to it"
                )
            )
        given = (
            step.grad_outputs
            if grad_outputs is None
            else (grad_outputs,)
            if isinstance(grad_outputs, Tensor)
            else tuple(grad_outputs)
        )
        g: Any = given[0] if node._outputs is None else list(given)
        with no_grad():
            return tuple(node._pull_special(g))

    def by_line(self) -> dict[str, float]:
        """Seconds of backward for each line of the forward, the slowest first."""
        totals: dict[str, float] = {}
        for s in self.steps:
            totals[str(s.where or s.name)] = totals.get(str(s.where or s.name), 0.0) + s.seconds
        return dict(sorted(totals.items(), key=lambda item: -item[1]))

    def _table(self) -> Table:
        title = f"backward of {len(self.steps)} nodes{', stopped by the condition' if self.stopped else ''}"
        more = [f"... {len(self.steps) - 60} more"] if len(self.steps) > 60 else []
        return Table(
            title,
            ("", "node", "gradients", "norm", "time", "line", ""),
            [s._cells() for s in self.steps[:60]],
            more,
            right=(0, 3, 4),
        )

    def _text(self) -> str:
        table = self._table()
        return "\n".join(
            [table.title, *[s._text() for s in self.steps[:60]], *["      " + note for note in table.notes]]
        )


def _array(g: Tensor) -> Any:
    array = g._array
    return array if array.dtype.kind in "fc" else array.astype(np.float32)


class _Stop(BaseException):
    """Ends a backward from inside; not an `Exception`, so that no rule catches it."""


def record(
    output: Tensor, gradient: Tensor | None = None, *, until: Callable[[Step], bool] | None = None
) -> BackwardRecord:
    """Run the backward of ``output`` and keep every node's gradients; ``.grad`` and the graph stay as they are.

    Hooks run as in any backward. Every gradient in the graph is kept until the record is dropped.

    Args:
        output: what to differentiate
        gradient: what to start from, of its shape; may be left out for one element
        until: stop after the first step for which this holds; `BackwardRecord.stopped` says whether it did

    Raises:
        RuntimeError: as `Tensor.backward`

    >>> import genesis
    >>> x = genesis.ones(2, requires_grad=True)
    >>> tape = genesis.autograd.record((x * 3).sum())
    >>> [(s.name, s.norm) for s in tape]
    [('SumBackward', 1.4142135623730951), ('MulBackward', 4.242640687119285)]
    >>> tape.replay(1, genesis.tensor([1.0, 10.0]))[0]
    tensor([ 3., 30.])
    """
    if not isinstance(output, Tensor):
        raise ArgumentError(message("record", f"output must be a tensor, got {type(output).__name__}"))
    steps: list[Step] = []
    begun: list[float] = []
    task: list[Any] = []

    def before(node: Node, grads: tuple[Any, ...]) -> None:
        if engine.current() is not None and (not task or task[0] is engine.current()):
            task[:] = task or [engine.current()]
            begun.append(time.perf_counter())

    def after(node: Node, results: tuple[Any, ...], grads: tuple[Any, ...]) -> None:
        if not task or task[0] is not engine.current():
            return  # a backward inside a rule
        seconds = time.perf_counter() - begun.pop()
        kept = [
            tuple(None if g is None or not isinstance(g, Tensor) else g.detach().clone() for g in side)
            for side in (grads, results)
        ]
        step = Step(len(steps), node, kept[0], kept[1], seconds)
        steps.append(step)
        if until is not None and until(step):
            raise _Stop

    edge, seed = edge_of(output), seed_for(output, gradient)
    stopped = False
    try:
        with engine.around_nodes(before, after):
            engine.run([edge], [seed], keep_graph=True, inputs=_leaves(edge), accumulate=False)
    except _Stop:
        stopped = True
    return BackwardRecord(steps, stopped, output)


def _leaves(root: Any) -> list[Node]:
    stack, seen = [root], set()
    while stack:
        edge = stack.pop()
        node = node_of(edge)
        if node not in seen:
            seen.add(node)
            stack.extend(e for e in node._edges if e is not None)
    return [n for n in seen if n.is_leaf]


# ---- two runs


@dataclass(eq=False, repr=False)
class Difference(Printed):
    """Where two backwards part: the first step of each that does not agree, and by how much."""

    index: int
    first: Step | None
    second: Step | None
    reason: str
    error: float = 0.0  # the largest difference, relative to the largest value

    def _text(self) -> str:
        step = self.first or self.second
        return f"step {self.index}, {name_of(step.name) if step else '?'} ({name_of(step.where or '') if step else ''}): {self.reason}"


def diff(
    first: BackwardRecord, second: BackwardRecord, *, rtol: float | None = None, atol: float = 0.0
) -> Difference | None:
    """The first node at which two recorded backwards of one program differ; None if they agree everywhere.

    Steps are compared in the order in which they ran: same node, same shapes, and gradients within ``atol + rtol *
    largest value``. A step is the culprit if it gave something else on what it got: the gradients it got agreed in both
    runs.

    Args:
        rtol: by default 16 units in the last place of the coarser dtype of the two, times the square root of the
            position

    Raises:
        ValueError: nothing to compare

    >>> import genesis
    >>> x = genesis.ones(2, requires_grad=True)
    >>> a, b = (genesis.autograd.record((x * k).exp().sum()) for k in (1.0, 1.5))
    >>> genesis.autograd.diff(a, b).first.name
    'ExpBackward'
    """
    if not len(first) or not len(second):
        raise ArgumentValueError(
            message("diff", f"records of {len(first)} and {len(second)} steps", hint="record backwards that run")
        )
    for i in range(max(len(first), len(second))):
        a = first[i] if i < len(first) else None
        b = second[i] if i < len(second) else None
        if a is None or b is None:
            return Difference(i, a, b, f"one run has {len(first)} steps, the other {len(second)}")
        if a.name != b.name:
            return Difference(i, a, b, f"the other run has {b.name} here")
        for ga, gb in zip(a.grad_inputs, b.grad_inputs, strict=False):
            reason, error = _compare(ga, gb, rtol, atol, i)
            if reason:
                return Difference(i, a, b, reason, error)
    return None


def _compare(a: Tensor | None, b: Tensor | None, rtol: float | None, atol: float, position: int) -> tuple[str, float]:
    if a is None or b is None:
        return ("", 0.0) if a is b else ("one run gives a gradient, the other none", 0.0)
    if a.shape != b.shape:
        return f"the gradients have shapes {list(a.shape)} and {list(b.shape)}", 0.0
    x, y = (
        _array(a).astype(np.result_type(_array(a), np.float64)),
        _array(b).astype(np.result_type(_array(b), np.float64)),
    )
    if not x.size:
        return "", 0.0
    if not np.array_equal(np.isfinite(x), np.isfinite(y)):
        return "one run is finite where the other is not", float("inf")
    good = np.isfinite(x)
    largest = float(max(np.abs(x[good]).max(initial=0), np.abs(y[good]).max(initial=0)))
    worst = float(np.abs(x[good] - y[good]).max(initial=0))
    eps = max(_eps(a), _eps(b))
    allowed = atol + (16 * eps * (position + 1) ** 0.5 if rtol is None else rtol) * largest
    if worst <= allowed:
        return "", 0.0
    return (
        f"the gradients differ by {worst:.3g}, {worst / largest if largest else 0:.2g} of the largest value",
        worst / largest if largest else 0.0,
    )


def _eps(t: Tensor) -> float:
    from genesis.base.dtypes import finfo

    return float(finfo(t.dtype).eps)


explain_all(globals(), "record", "diff")
