"""``torch.utils.benchmark``: a statement timed many times, as ``timeit`` does."""

from __future__ import annotations

import statistics
import timeit
from collections.abc import Callable, Sequence
from typing import Any


class Measurement:
    """Times of one statement, in seconds a run."""

    def __init__(self, number_per_run: int, raw_times: Sequence[float], title: str) -> None:
        self.number_per_run, self.raw_times, self.title = number_per_run, list(raw_times), title

    @property
    def times(self) -> list[float]:
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def median(self) -> float:
        return statistics.median(self.times)

    @property
    def mean(self) -> float:
        return statistics.fmean(self.times)

    @property
    def iqr(self) -> float:
        """The distance between the quartiles."""
        if len(self.times) < 2:
            return 0.0
        first, _, third = statistics.quantiles(self.times, n=4)
        return third - first

    def __repr__(self) -> str:
        runs = f"{len(self.raw_times)} measurement{'s'[: len(self.raw_times) != 1]}, {self.number_per_run} runs each"
        return f"<Measurement {self.title}: median {self.median * 1e6:.2f} us, {runs}>"


class Timer:
    """Times a statement, under the signature of PyTorch's ``torch.utils.benchmark.Timer``.

    >>> from genesis.pytorch.benchmark import Timer
    >>> Timer("x + x", globals={"x": 1}).timeit(10).number_per_run
    10
    """

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timeit.default_timer,
        globals: dict[str, Any] | None = None,  # noqa: A002
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Any = None,
    ) -> None:
        self._timer = timeit.Timer(stmt, setup, timer, dict(globals or {}))
        self._title = " ".join(part for part in (label, sub_label, description) if part) or stmt

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """One measurement of ``number`` runs."""
        return Measurement(number, [self._timer.timeit(number)], self._title)

    def blocked_autorange(self, callback: Any = None, min_run_time: float = 0.2) -> Measurement:
        """Measurements of many runs each, for ``min_run_time`` seconds in all."""
        number, took = self._timer.autorange(lambda n, t: None)
        while took > min_run_time / 5 and number > 1:  # about ten of them
            number, took = max(1, number // 4), took / 4
        times = [took]
        while sum(times) < min_run_time:
            times.append(self._timer.timeit(number))
        return Measurement(number, times, self._title)

    adaptive_autorange = blocked_autorange
