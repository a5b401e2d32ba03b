"""Where the time goes: every operation forward and every node backward, linked by the node's number and your line."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from genesis.base.errors import UnsupportedError, message
from genesis.base.text import Printed, Table, for_stream, name_of
from genesis.core.call.op import Op
from genesis.core.call.refusal import switch
from genesis.core.graph import engine
from genesis.core.graph.modes import closed, interception, opened, watchers
from genesis.core.graph.node import FUNCTION, Node
from genesis.core.graph.site import Site, line_here
from genesis.core.graph.switches import ACTIVE, ONLOOKERS


@dataclass
class Event:
    """One operation forward, or one node backward."""

    name: str
    phase: str  # "forward" or "backward"
    seconds: float
    sequence_nr: int  # of the node that forward recorded and backward ran; -1 where nothing was recorded
    where: Site | None


class profile(Printed):
    """Context manager: note how long every operation takes, forward and backward, in this thread.

    Args:
        emit_nvtx: also mark every operation and node as an NVTX range, for the tools of NVIDIA GPUs (needs the package
            ``nvtx``)

    Raises:
        NotImplementedError: ``emit_nvtx`` without the package

    >>> import genesis
    >>> x = genesis.ones(3, requires_grad=True)
    >>> with genesis.autograd.profile() as p:
    ...     x.exp().sum().backward()
    >>> [(e.name, e.phase) for e in p.events]
    [('exp', 'forward'), ('sum', 'forward'), ('SumBackward', 'backward'), ('ExpBackward', 'backward')]
    >>> [e.name for e in p.linked(p.events[0].sequence_nr)]
    ['exp', 'ExpBackward']
    """

    def __init__(self, *, emit_nvtx: bool = False) -> None:
        self.events: list[Event] = []
        self._nvtx: Any = None
        if switch("profile", "emit_nvtx", emit_nvtx):
            try:
                self._nvtx = importlib.import_module("nvtx")
            except ImportError:
                raise UnsupportedError(
                    message(
                        "profile", "NVTX ranges need the package nvtx", hint="pip install nvtx, or leave emit_nvtx out"
                    )
                ) from None

    def __enter__(self) -> profile:
        ACTIVE.append(self)
        ONLOOKERS.append(self)
        opened(interception, self._between)
        opened(watchers, self)
        self._begun: list[tuple[Any, float]] = []
        self._nodes = engine.around_nodes(self._node_begins, self._node_ends)
        self._nodes.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._nodes.__exit__(None, None, None)
        closed(watchers, self)
        closed(interception, self._between)
        ONLOOKERS.pop()
        ACTIVE.pop()

    # ---- what happens

    def _between(self, op: Op, arrays: Sequence[Any], run: Callable[[], Any]) -> Any:
        if engine.current() is not None:
            return run()  # part of a node
        self._push(op.name)
        begun = time.perf_counter()
        try:
            return run()
        finally:
            seconds = time.perf_counter() - begun
            self._pop()
            self.events.append(Event(op.name, "forward", seconds, -1, line_here()))

    def failed(self, node: Node) -> None:
        """An exception tells itself."""

    def new_node(self, node: Node) -> None:
        """The operation that ran last recorded this node; a Function is an event of its own, its operations come before
        it.
        """
        if engine.current() is not None:
            return
        if node._role is FUNCTION:
            self.events.append(Event(node.op_name, "forward", 0.0, node._sequence_nr(), node.where()))
        elif self.events:
            self.events[-1].sequence_nr = node._sequence_nr()

    def function_result(self, cls: Any, args: Sequence[Any], result: Any) -> None:
        """Nothing to note: the node tells."""

    def _node_begins(self, node: Node, grads: tuple[Any, ...]) -> None:
        self._push(node.name())
        self._begun.append((node, time.perf_counter()))

    def _node_ends(self, node: Node, results: tuple[Any, ...], grads: tuple[Any, ...]) -> None:
        if self._begun and self._begun[-1][0] is node:
            seconds = time.perf_counter() - self._begun.pop()[1]
            self._pop()
            self.events.append(Event(node.name(), "backward", seconds, node._sequence_nr(), node.where()))

    def _push(self, name: str) -> None:
        if self._nvtx is not None:
            self._nvtx.push_range(name)

    def _pop(self) -> None:
        if self._nvtx is not None:
            self._nvtx.pop_range()

    # ---- what there is to see

    def linked(self, sequence_nr: int) -> list[Event]:
        """The forward and the backward of one node."""
        return [e for e in self.events if e.sequence_nr == sequence_nr]

    def by_line(self) -> dict[str, tuple[float, float]]:
        """Seconds forward and backward for each line of the program, the slowest first."""
        return self._totals(lambda e: str(e.where or "?"))

    def by_name(self) -> dict[str, tuple[float, float]]:
        """Seconds forward and backward for each operation, the slowest first."""
        return self._totals(lambda e: e.name.removesuffix("Backward").lower())

    def _totals(self, key: Callable[[Event], str]) -> dict[str, tuple[float, float]]:
        totals: dict[str, list[float]] = {}
        for e in self.events:
            totals.setdefault(key(e), [0.0, 0.0])[e.phase == "backward"] += e.seconds
        return {k: (f, b) for k, (f, b) in sorted(totals.items(), key=lambda item: -sum(item[1]))}

    def table(self, by: str = "name", rows: int = 20) -> str:
        """The totals as text; ``by`` is ``"name"`` or ``"line"``."""
        totals = self.by_line() if by == "line" else self.by_name()
        lines = [
            f"{f * 1e6:12.0f} us {b * 1e6:12.0f} us  {name_of(key)}" for key, (f, b) in list(totals.items())[:rows]
        ]
        return for_stream("\n".join([f"{'forward':>15} {'backward':>15}  {by}", *lines]))

    def _text(self) -> str:
        return self.table()

    def _table(self) -> Table:
        rows = [(f"{f * 1e6:.0f} us", f"{b * 1e6:.0f} us", key) for key, (f, b) in list(self.by_name().items())[:20]]
        return Table("", ("forward", "backward", "name"), rows, right=(0, 1))
