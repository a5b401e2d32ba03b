"""``torch.profiler``: what is measured here is the time of named blocks and of steps; ``genesis.autograd.profile`` measures ops."""

from __future__ import annotations

import enum
import json
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

_open: list[profile] = []


class ProfilerActivity(enum.Enum):
    """What PyTorch can watch; here the CPU."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


class ProfilerAction(enum.Enum):
    """What a schedule asks for at a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0
) -> Callable[[int], ProfilerAction]:
    """Which steps are recorded: after ``skip_first`` steps, cycles of ``wait``, ``warmup`` and ``active`` steps.

    >>> from genesis.pytorch.profiler import schedule
    >>> [schedule(wait=1, warmup=1, active=2)(step).name for step in range(4)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE']
    """
    length = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        at = step - skip_first
        if at < 0 or (repeat and at // length >= repeat):
            return ProfilerAction.NONE
        at %= length
        if at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if at == length - 1 else ProfilerAction.RECORD

    return action


class record_function:  # noqa: N801  # named as PyTorch names it
    """A named block, whose time open profiles count; also a decorator.

    >>> from genesis.pytorch.profiler import profile, record_function
    >>> with profile() as p, record_function("work"):
    ...     total = sum(range(10))
    >>> [event.key for event in p.key_averages()]
    ['work']
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name

    def __enter__(self) -> record_function:
        self._began = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        took = time.perf_counter() - self._began
        for each in _open:
            each._note(self.name, took)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        import functools

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name):
                return function(*args, **kwargs)

        return wrapped


class Average:
    """How often a block ran, and how long."""

    def __init__(self, key: str, count: int, seconds: float) -> None:
        self.key, self.count = key, count
        self.cpu_time_total = self.self_cpu_time_total = seconds * 1e6  # microseconds, as PyTorch has them
        self.cpu_time = self.cpu_time_total / count

    def __repr__(self) -> str:
        return f"<{self.key}: {self.count} calls, {self.cpu_time_total:.0f} us>"


class Averages(list[Average]):
    """What `profile.key_averages` returns: a list that can be printed as a table."""

    def table(self, sort_by: str | None = None, row_limit: int = 100, **options: Any) -> str:
        """The blocks, the longest first."""
        rows = sorted(self, key=lambda event: -event.cpu_time_total)[: row_limit if row_limit >= 0 else None]
        width = max([4, *[len(event.key) for event in rows]])
        lines = [f"{'Name':{width}}  {'Calls':>7}  {'CPU total':>12}  {'CPU mean':>12}"]
        lines += [f"{e.key:{width}}  {e.count:7}  {e.cpu_time_total:9.0f} us  {e.cpu_time:9.0f} us" for e in rows]
        return "\n".join(lines)


class profile:  # noqa: N801
    """Times the named blocks and the steps inside it, under the signature of PyTorch's; what else that can watch is left out."""

    def __init__(
        self,
        *,
        activities: Any = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[Any], Any] | None = None,
        **options: Any,
    ) -> None:
        self._schedule, self._ready = schedule, on_trace_ready
        self.step_num = 0
        self._times: dict[str, list[float]] = defaultdict(list)

    def start(self) -> None:
        """Begin, as entering it does."""
        self._began = time.perf_counter()
        _open.append(self)

    def stop(self) -> None:
        """End, as leaving it does."""
        _open.remove(self)
        if self._ready is not None and (self._schedule is None or self._times):
            self._ready(self)

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def step(self) -> None:
        """The end of a step of the training loop."""
        now = time.perf_counter()
        self._note(f"ProfilerStep#{self.step_num}", now - self._began)
        action = self._schedule(self.step_num) if self._schedule is not None else ProfilerAction.RECORD
        self.step_num, self._began = self.step_num + 1, now
        if action is ProfilerAction.RECORD_AND_SAVE and self._ready is not None:
            self._ready(self)
            self._times.clear()

    def _note(self, name: str, seconds: float) -> None:
        if self._schedule is None or self._schedule(self.step_num).value >= ProfilerAction.RECORD.value:
            self._times[name].append(seconds)

    def key_averages(self, *args: Any, **options: Any) -> Averages:
        """How often each block ran, and how long."""
        return Averages([Average(name, len(times), sum(times)) for name, times in self._times.items()])

    def events(self) -> Averages:
        """The same as `key_averages`."""
        return self.key_averages()

    def add_metadata(self, key: str, value: str) -> None:
        """Accepted, without an effect."""

    add_metadata_json = add_metadata

    def export_chrome_trace(self, path: str) -> None:
        """The blocks one after the other, in the format that chrome://tracing reads."""
        events, at = [], 0.0
        for name, times in self._times.items():
            for seconds in times:
                events.append({"name": name, "ph": "X", "ts": at, "dur": seconds * 1e6, "pid": 0, "tid": 0})
                at += seconds * 1e6
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": events}, file)


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[Any], None]:
    """For ``on_trace_ready``: each trace becomes a file in a folder."""
    import os

    def save(done: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        done.export_chrome_trace(os.path.join(dir_name, f"{worker_name or 'genesis'}.{done.step_num}.pt.trace.json"))

    return save
