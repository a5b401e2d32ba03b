"""Where the time of a program goes, under the names of ``torch.profiler``: ops, nodes of backward, named blocks, steps.

    with profile(schedule=schedule(wait=1, warmup=1, active=3), on_trace_ready=tensorboard_trace_handler("log")) as p:
        for batch in loader:
            with record_function("forward"):
                ...
            p.step()
    print(p.key_averages().table(sort_by="self_cpu_time_total", row_limit=10))

Ops run by the kernels that they run by without a profile, each call some microseconds later; of compiled steps the phases
are events, with how many threads may work at each. Watched is the thread that
opened the profile; blocks are noted in every thread. `genesis.autograd.profile` is the small form, by line of the
program.
"""

from __future__ import annotations

import functools
import gzip
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Any

from genesis.base.errors import ArgumentValueError, message
from genesis.base.text import for_stream
from genesis.base.threads import get_num_threads
from genesis.core.call.op import Op
from genesis.core.graph import engine
from genesis.core.graph.modes import closed, interception, opened, watchers
from genesis.core.graph.node import Node
from genesis.core.graph.site import line_here
from genesis.core.graph.switches import ACTIVE, ONLOOKERS, PHASES

_open: list[profile] = []  # that record at the moment, in any thread


class ProfilerActivity(Enum):
    """What PyTorch can watch; here the CPU."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


class ProfilerAction(Enum):
    """What a schedule asks for at a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


def supported_activities() -> set[ProfilerActivity]:
    """What can be watched here."""
    return {ProfilerActivity.CPU}


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """Which steps are recorded: after ``skip_first`` steps, cycles of ``wait``, ``warmup`` and ``active`` steps, ``repeat``
    of them or (0) without end. With ``skip_first_wait`` the first cycle does not wait.

    Raises:
        ValueError: no active step, or a negative number

    >>> from genesis.profiler import schedule
    >>> [schedule(wait=1, warmup=1, active=2)(step).name for step in range(4)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE']
    """
    if active < 1 or min(wait, warmup, repeat, skip_first) < 0:
        text = (
            f"needs active steps and no negative numbers, got {wait=}, {warmup=}, {active=}, {repeat=}, {skip_first=}"
        )
        raise ArgumentValueError(message("schedule", text))
    length = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        index = step - skip_first + (wait if skip_first_wait else 0)
        if step < skip_first or (repeat and index // length >= repeat):
            return ProfilerAction.NONE
        index %= length
        if index < wait:
            return ProfilerAction.NONE
        if index < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if index == length - 1 else ProfilerAction.RECORD

    return action


class Event:
    """Something that took time: an op, a node of backward, a block, a step. Times are in microseconds."""

    __slots__ = (
        "category", "inside", "memory", "name", "sequence_nr", "shapes", "stack", "start", "stop", "thread", "threads",
    )  # fmt: skip

    def __init__(self, name: str, category: str, start: float) -> None:
        self.name, self.category, self.start = name, category, start
        self.stop = start
        self.inside = 0.0  # of that time, what events inside of it took
        self.thread = threading.get_native_id()
        self.sequence_nr = -1
        self.memory = 0  # bytes of the result
        self.threads = 0  # of a phase of a compiled step: how many may work at it
        self.shapes: list[list[int]] = []
        self.stack: list[str] = []

    @property
    def key(self) -> str:
        return self.name

    @property
    def cpu_time_total(self) -> float:
        return self.stop - self.start

    @property
    def self_cpu_time_total(self) -> float:
        return max(self.cpu_time_total - self.inside, 0.0)

    def __repr__(self) -> str:
        return f"<{self.name}: {self.cpu_time_total:.0f} us>"


def _now() -> float:
    return time.perf_counter_ns() / 1e3


class _Stacks(threading.local):
    """The events that are open in a thread, from the outermost on."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.profiles: list[profile] = []  # that record, of this thread


_stacks = _Stacks()


def _begin(name: str, category: str) -> Event:
    event = Event(name, category, _now())
    _stacks.events.append(event)
    return event


def _end(event: Event) -> None:
    event.stop = _now()
    stack = _stacks.events
    while stack and stack.pop() is not event:
        pass
    if stack:
        stack[-1].inside += event.cpu_time_total
    for each in list(_open if event.category == "user_annotation" else _stacks.profiles):
        each._events.append(event)


class record_function:  # noqa: N801  # named as PyTorch names it
    """A named block, which open profiles record; also a decorator.

    >>> from genesis.profiler import profile, record_function
    >>> with profile() as p, record_function("work"):
    ...     total = sum(range(10))
    >>> [event.key for event in p.key_averages()]
    ['work']
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self._events: list[Event | None] = []

    def __enter__(self) -> record_function:
        self._events.append(_begin(self.name, "user_annotation") if _open else None)
        return self

    def __exit__(self, *_: object) -> None:
        event = self._events.pop()
        if event is not None:
            _end(event)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name):
                return function(*args, **kwargs)

        return wrapped


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
        self._events: list[Event] = []
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
        if self in _open:
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
        if self.current_action in RECORDING and self not in _open:
            self._record()
        self._begin_step()

    def _action(self) -> ProfilerAction:
        return ProfilerAction.RECORD if self._schedule is None else self._schedule(self.step_num)

    def _begin_step(self) -> None:
        if self._schedule is not None and self in _open:
            self._step_event = _begin(f"ProfilerStep#{self.step_num}", "user_annotation")

    def _end_step(self) -> None:
        if self._step_event is not None:
            _end(self._step_event)
            self._step_event = None

    def _record(self) -> None:
        self._events = []
        ACTIVE.append(self)
        ONLOOKERS.append(self)
        PHASES.append(self._phase)
        opened(interception, self._between)
        opened(watchers, self)
        self._nodes = engine.around_nodes(self._node_begins, self._node_ends)
        self._nodes.__enter__()
        _open.append(self)
        _stacks.profiles.append(self)

    def _pause(self) -> None:
        _open.remove(self)
        _stacks.profiles.remove(self)
        self._nodes.__exit__(None, None, None)
        closed(watchers, self)
        closed(interception, self._between)
        PHASES.remove(self._phase)
        ONLOOKERS.pop()
        ACTIVE.pop()

    # ---- what happens

    def _between(self, op: Op, arrays: Sequence[Any], run: Callable[[], Any]) -> Any:
        if self is not _stacks.profiles[0]:
            return run()  # the outermost profile notes for all
        event = _begin(op.name, "cpu_op")
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
            _end(event)

    def _phase(self, title: str, chunks: int, run: Callable[[], Any]) -> None:
        """A phase of a compiled step."""
        if self not in _stacks.profiles:
            return run()
        event = _begin(title, "kernel")
        event.threads = min(chunks, get_num_threads())
        try:
            run()
        finally:
            _end(event)
        return None

    def failed(self, node: Node) -> None:
        """An exception tells itself."""

    def new_node(self, node: Node) -> None:
        """The operation that ran last recorded this node."""
        if self._events and self._events[-1].category == "cpu_op" and engine.current() is None:
            self._events[-1].sequence_nr = node._sequence_nr()

    def function_result(self, cls: Any, args: Sequence[Any], result: Any) -> None:
        """Nothing to note: the node tells."""

    def _node_begins(self, node: Node, grads: tuple[Any, ...]) -> None:
        if self is _stacks.profiles[0]:
            _begin(node.name(), "backward").sequence_nr = node._sequence_nr()

    def _node_ends(self, node: Node, results: tuple[Any, ...], grads: tuple[Any, ...]) -> None:
        if self is _stacks.profiles[0]:
            number = node._sequence_nr()
            event = next((e for e in reversed(_stacks.events) if e.sequence_nr == number), None)
            if event is not None:
                _end(event)

    # ---- what there is to see

    def events(self) -> list[Event]:
        """What was recorded, in the order in which it ended."""
        return list(self._events)

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> Averages:
        """How often each op, node and block ran, and how long; apart by shapes of operands or lines of the program if
        asked.
        """
        groups: dict[Any, list[Event]] = {}
        for event in self._events:
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
        data = json.dumps({"schemaVersion": 1, **self._metadata, "displayTimeUnit": "ms", "traceEvents": self._trace()})
        name = os.fspath(path)
        with (
            gzip.open(name, "wt", encoding="utf-8")
            if name.endswith(".gz")
            else open(name, "w", encoding="utf-8") as file
        ):
            file.write(data)

    def export_stacks(self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total") -> None:
        """Write lines ``line;name microseconds``, as tools for flame graphs read them; needs ``with_stack``."""
        with open(path, "w", encoding="utf-8") as file:
            for event in self._events:
                if event.stack:
                    line = ";".join([*event.stack, event.name]).replace(" ", "_")
                    file.write(f"{line} {int(getattr(event, metric))}\n")

    def _trace(self) -> list[dict[str, Any]]:
        pid = os.getpid()
        out: list[dict[str, Any]] = [
            {"name": "process_name", "ph": "M", "pid": pid, "tid": 0, "args": {"name": "python"}}
        ]
        for thread in dict.fromkeys(event.thread for event in self._events):
            out.append(
                {"name": "thread_name", "ph": "M", "pid": pid, "tid": thread, "args": {"name": f"thread {thread}"}}
            )
        forward = {e.sequence_nr: e for e in self._events if e.category == "cpu_op" and e.sequence_nr >= 0}
        for event in self._events:
            whole = {"ph": "X", "name": event.name, "cat": "cpu_op" if event.category == "backward" else event.category}
            where = {"pid": pid, "tid": event.thread, "ts": event.start}
            out.append({**whole, **where, "dur": event.cpu_time_total, "args": _arguments(event)})
            source = forward.get(event.sequence_nr) if event.category == "backward" else None
            if source is not None:
                flow = {"name": "fwdbwd", "cat": "fwdbwd", "id": event.sequence_nr, "pid": pid}
                out.append({**flow, "ph": "s", "tid": source.thread, "ts": source.start})
                out.append({**flow, "ph": "f", "bp": "e", "tid": event.thread, "ts": event.start})
        return out


def _arguments(event: Event) -> dict[str, Any]:
    values = {"Sequence number": event.sequence_nr, "Input Dims": event.shapes, "Call stack": "; ".join(event.stack)}
    values["Threads"] = event.threads or -1
    return {key: value for key, value in values.items() if value not in (-1, [], "")}


# ---- totals


class Average:
    """How often something ran, and how long: totals and means in microseconds, as PyTorch has them."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.key, self.count = events[0].name, len(events)
        self.input_shapes, self.stack = events[0].shapes, events[0].stack
        self.cpu_time_total = sum(event.cpu_time_total for event in events)
        self.self_cpu_time_total = sum(event.self_cpu_time_total for event in events)
        self.cpu_time = self.cpu_time_total / self.count
        self.cpu_memory_usage = self.self_cpu_memory_usage = sum(event.memory for event in events)

    def __repr__(self) -> str:
        return f"<{self.key}: {self.count} calls, {self.cpu_time_total:.0f} us>"


SORTS = (
    "cpu_time", "cpu_time_total", "self_cpu_time_total", "cpu_memory_usage", "self_cpu_memory_usage", "count",
)  # fmt: skip


class Averages(list[Average]):
    """What `profile.key_averages` returns: a list that can be printed as a table."""

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all of it."""
        return sum(each.self_cpu_time_total for each in self)

    def total_average(self) -> float:
        """The mean time of an event."""
        return self.self_cpu_time_total / max(sum(each.count for each in self), 1)

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        **options: Any,
    ) -> str:
        """The totals as text, in the order of a column: "self_cpu_time_total", "cpu_time_total", "cpu_time", "count",
        "cpu_memory_usage"; the last is shown where it was recorded.

        Raises:
            ValueError: no column of that name
        """
        if sort_by is not None and sort_by not in SORTS:
            text = f"sort_by must be one of {', '.join(SORTS)}, got {sort_by!r}"
            raise ArgumentValueError(message("table", text))
        rows = sorted(self, key=lambda e: -getattr(e, sort_by)) if sort_by is not None else list(self)
        rows = rows[:row_limit] if row_limit >= 0 else rows
        memory, shapes = any(e.cpu_memory_usage for e in self), any(e.input_shapes for e in self)
        titles = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "# of Calls"]
        titles += ["CPU Mem"] * memory + ["Input Shapes"] * shapes
        whole = self.self_cpu_time_total or 1.0
        cells = [
            [
                e.key[:max_name_column_width], f"{e.self_cpu_time_total / whole:.2%}", _time(e.self_cpu_time_total),
                f"{e.cpu_time_total / whole:.2%}", _time(e.cpu_time_total), _time(e.cpu_time), str(e.count),
                *[_bytes(e.cpu_memory_usage)] * memory, *[str(e.input_shapes)[:max_shapes_column_width]] * shapes,
            ]
            for e in rows
        ]  # fmt: skip
        text = _columns([titles, *cells]) + f"\nSelf CPU time total: {_time(self.self_cpu_time_total)}"
        return for_stream(text if header is None else f"{header}\n{text}")

    def __str__(self) -> str:
        return self.table()


def _columns(rows: list[list[str]]) -> str:
    widths = [max([len(row[i]) for row in rows]) for i in range(len(rows[0]))]
    line = "  ".join("-" * width for width in widths)
    body = [
        "  ".join([row[0].ljust(widths[0]), *[c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True)]])
        for row in rows
    ]
    return "\n".join([line, body[0], line, *body[1:], line])


def _time(microseconds: float) -> str:
    if microseconds >= 1e6:
        return f"{microseconds / 1e6:.3f}s"
    return f"{microseconds / 1e3:.3f}ms" if microseconds >= 1e3 else f"{microseconds:.3f}us"


def _bytes(count: int) -> str:
    for unit, size in (("GB", 2**30), ("MB", 2**20), ("KB", 2**10)):
        if count >= size:
            return f"{count / size:.2f} {unit}"
    return f"{count} B"


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], None]:
    """For ``on_trace_ready``: each trace becomes a file in a folder, named as the plugin of TensorBoard looks for them."""

    def save(done: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json{'.gz' if use_gzip else ''}"
        done.export_chrome_trace(os.path.join(dir_name, name))

    return save


__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]
