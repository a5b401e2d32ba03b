"""The context manager that records."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from genesis.base.threads import get_num_threads
from genesis.core.call.op import Op
from genesis.core.graph import engine
from genesis.core.graph.modes import closed, interception, opened, watchers
from genesis.core.graph.node import Node
from genesis.core.graph.site import line_here
from genesis.core.graph.switches import ACTIVE, ONLOOKERS, PHASES, TRANSFERS
from genesis.profiler.events import OPEN, STACKS, Event, begin, end
from genesis.profiler.schedules import RECORDING, ProfilerAction
from genesis.profiler.totals import Average, Averages
from genesis.profiler.traces import write_chrome_trace, write_stacks

if TYPE_CHECKING:
    from genesis.profiler import ProfilerActivity


class profile:  # noqa: N801
    """Context manager: record what runs inside, in all steps or in those of a schedule.

    Args:
        activities: what to watch; anything but the CPU has nothing to show here
        schedule: says of a step whether it is recorded; then `step` is called after each step
        on_trace_ready: called with the profile when a cycle of the schedule is over, and at the end
        record_shapes: note the shapes of operands
        profile_memory: note the bytes of results
        with_stack: note the line of the program
        with_flops, with_modules, experimental_config, use_cuda, acc_events: accepted, without an effect

    >>> import genesis
    >>> from genesis.profiler import profile
    >>> x = genesis.ones(3, requires_grad=True)
    >>> with profile(record_shapes=True) as p:
    ...     x.exp().sum().backward()
    >>> [event.key for event in p.events() if event.category == "cpu_op"][:2]
    ['exp', 'sum']
    >>> sorted({event.key for event in p.events() if event.category == "backward"})
    ['ExpBackward', 'SumBackward']
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[Any], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        use_cuda: bool | None = None,
        acc_events: bool = False,
    ) -> None:
        self._schedule, self._ready = schedule, on_trace_ready
        self.record_shapes, self.profile_memory, self.with_stack = record_shapes, profile_memory, with_stack
        self.step_num = 0
        self.current_action = ProfilerAction.NONE
        self.recorded: list[Event] = []
        self._metadata: dict[str, Any] = {}
        self._step_event: Event | None = None

    # ---- beginning and ending

    def start(self) -> None:
        """Begin, as entering it does."""
        self.current_action = self._action()
        if self.current_action in RECORDING:
            self._record()
        self._begin_step()

    def stop(self) -> None:
        """End, as leaving it does."""
        self._end_step()
        if self in OPEN:
            self._pause()
            if self._ready is not None:
                self._ready(self)
        self.current_action = ProfilerAction.NONE

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def step(self) -> None:
        """The end of a step of the training loop."""
        self._end_step()
        before, self.step_num = self.current_action, self.step_num + 1
        self.current_action = self._action()
        if before is ProfilerAction.RECORD_AND_SAVE:
            self._pause()
            if self._ready is not None:
                self._ready(self)
        if self.current_action in RECORDING and self not in OPEN:
            self._record()
        self._begin_step()

    def _action(self) -> ProfilerAction:
        return ProfilerAction.RECORD if self._schedule is None else self._schedule(self.step_num)

    def _begin_step(self) -> None:
        if self._schedule is not None and self in OPEN:
            self._step_event = begin(f"ProfilerStep#{self.step_num}", "user_annotation")

    def _end_step(self) -> None:
        if self._step_event is not None:
            end(self._step_event)
            self._step_event = None

    def _record(self) -> None:
        self.recorded = []
        ACTIVE.append(self)
        ONLOOKERS.append(self)
        PHASES.append(self._phase)
        TRANSFERS.append(self._transfer)
        opened(interception, self._between)
        opened(watchers, self)
        self._nodes = engine.around_nodes(self._node_begins, self._node_ends)
        self._nodes.__enter__()
        OPEN.append(self)
        STACKS.recorders.append(self)

    def _pause(self) -> None:
        OPEN.remove(self)
        STACKS.recorders.remove(self)
        self._nodes.__exit__(None, None, None)
        closed(watchers, self)
        closed(interception, self._between)
        TRANSFERS.remove(self._transfer)
        PHASES.remove(self._phase)
        ONLOOKERS.pop()
        ACTIVE.pop()

    # ---- what happens

    def _between(self, op: Op, arrays: Sequence[Any], run: Callable[[], Any]) -> Any:
        if self is not STACKS.recorders[0]:
            return run()  # the outermost profile notes for all
        event = begin(op.name, "cpu_op")
        if self.record_shapes:
            event.shapes = [list(a.shape) for a in arrays if hasattr(a, "shape")]
        if self.with_stack:
            event.stack = [str(line_here())]
        try:
            result = run()
            if self.profile_memory:
                event.memory = int(getattr(result, "nbytes", 0))
            return result
        finally:
            end(event)

    def _phase(self, title: str, chunks: int, run: Callable[[], Any]) -> None:
        """A phase of a compiled step."""
        if self not in STACKS.recorders:
            return run()
        event = begin(title, "kernel")
        event.threads = min(chunks, get_num_threads())
        try:
            run()
        finally:
            end(event)
        return None

    def _transfer(self, category: str, name: str, begun: float, ended: float) -> None:
        """Elements that were on their way to other processes, or waiting for these."""
        if self in STACKS.recorders:
            event = Event(name, category, begun)
            event.stop = ended
            self.recorded.append(event)

    def failed(self, node: Node) -> None:
        """An exception tells itself."""

    def new_node(self, node: Node) -> None:
        """The operation that ran last recorded this node."""
        if self.recorded and self.recorded[-1].category == "cpu_op" and engine.current() is None:
            self.recorded[-1].sequence_nr = node._sequence_nr()

    def function_result(self, cls: Any, args: Sequence[Any], result: Any) -> None:
        """Nothing to note: the node tells."""

    def _node_begins(self, node: Node, grads: tuple[Any, ...]) -> None:
        if self is STACKS.recorders[0]:
            begin(node.name(), "backward").sequence_nr = node._sequence_nr()

    def _node_ends(self, node: Node, results: tuple[Any, ...], grads: tuple[Any, ...]) -> None:
        if self is STACKS.recorders[0]:
            number = node._sequence_nr()
            event = next((e for e in reversed(STACKS.events) if e.sequence_nr == number), None)
            if event is not None:
                end(event)

    # ---- what there is to see

    def events(self) -> list[Event]:
        """What was recorded, in the order in which it ended."""
        return list(self.recorded)

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> Averages:
        """How often each op, node and block ran, and how long; apart by shapes of operands or lines of the program if
        asked.
        """
        groups: dict[Any, list[Event]] = {}
        for event in self.recorded:
            key = event.name, str(event.shapes) if group_by_input_shape else "", *event.stack[:group_by_stack_n]
            groups.setdefault(key, []).append(event)
        return Averages([Average(events) for events in groups.values()])

    def add_metadata(self, key: str, value: str) -> None:
        """An entry of the trace file."""
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """An entry of the trace file, as JSON."""
        self._metadata[key] = json.loads(value)

    def preset_metadata_json(self, key: str, value: str) -> None:
        """The same."""
        self.add_metadata_json(key, value)

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write what was recorded as a trace that Perfetto and chrome://tracing show; gzipped if the name ends in ``.gz``.

        An arrow leads from each op to the node that differentiates it.
        """
        write_chrome_trace(path, self.recorded, self._metadata)

    def export_stacks(self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total") -> None:
        """Write lines ``line;name microseconds``, as tools for flame graphs read them; needs ``with_stack``."""
        write_stacks(path, self.recorded, metric)
