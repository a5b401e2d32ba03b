"""What every collective call has in common: a number, agreement about it, and waiting that ends.

The ranks of a group call the same collectives in the same order. Each call has a number; before elements move, the ranks
compare a number made of it, of the name and of what the tensors look like (two integers, one message). So a rank that
calls something else is named, instead of numbers that are wrong. Waiting looks again and again, gives the processor
away, and ends at the group's timeout with what every rank was doing.
"""

from __future__ import annotations

import functools
import json
import os
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Sequence
from types import CodeType
from typing import TYPE_CHECKING, Any, NamedTuple

from genesis.arrays.spec import Spec
from genesis.base.device import CPU
from genesis.base.errors import DistributedError
from genesis.core.graph.site import site_here, site_of
from genesis.core.graph.switches import TRANSFERS
from genesis.distributed.futures import Future
from genesis.distributed.watching import program_line

if TYPE_CHECKING:
    from genesis.distributed.engine import Engine, Request

_SPINS = 200  # looks without a pause: a few microseconds, what a small message takes
_YIELDING = 0.001  # seconds in which the processor is given away, but not for a definite time
_SHARE = (
    50  # a pause is this part of the time since something moved: elements move in pieces, and each may wait for one
)
_LONGEST_PAUSE = 0.0005  # seconds
_ASKED = 0.05  # seconds between looks whether another rank asks what this one does
_ANSWER = 3.0  # seconds in which a rank that lives says what it does
_KEPT = 8  # calls that a rank remembers
_UNMET = 2  # calls that it says of those that were started and not waited for
_MISMATCH, _SUM = "collective mismatch", " sum"

# transfers of devices that no engine has yet (`by_host`): each starts, and takes itself away, before the next call
UNSTARTED: deque[Callable[[], None]] = deque()

_tuple = tuple.__new__  # a third of the time of the class's own function
_yield = getattr(os, "sched_yield", functools.partial(time.sleep, 0))


class Call(NamedTuple):
    """One collective call of this rank."""

    number: int
    name: str
    looks: tuple[Any, ...]  # shape, dtype, and what else must be the same in all ranks
    code: CodeType | None
    at: int

    @property
    def what(self) -> str:
        """``all_reduce f32[128] sum``: what ranks have to agree about."""
        shape, dtype, *others = self.looks if self.looks else (None, None)
        spec = "" if dtype is None else f" {Spec(shape, dtype, CPU)}" if shape is not None else f" {dtype}"
        return self.name + spec + "".join([f" {each}" for each in others if each is not None])

    @property
    def where(self) -> str:
        site = site_of(self.code, self.at)
        return "" if site is None else f" {site.short}"


@functools.lru_cache(4096)
def _digest(name: str, looks: tuple[Any, ...]) -> int:
    return zlib.crc32(repr((name, [str(each) for each in looks])).encode()) << 30


class Calls:
    """The collective calls of one group in this process: their numbers, and how they are waited for."""

    def __init__(self, engine: Engine, ranks: tuple[int, ...], timeout: float) -> None:
        self.engine, self.ranks, self.timeout = engine, ranks, timeout
        self.count = 0
        self.last: deque[Call] = deque(maxlen=_KEPT)
        self.unmet: deque[tuple[Call, Any]] = deque()  # of transfers that were started and not waited for
        self.broken: str | None = None  # why no call can work any more
        self.waits = False  # whether the program waits here, and so hears who asks
        self._failing = threading.Lock()

    def begin(
        self, name: str, looks: tuple[Any, ...] = (), site: tuple[CodeType | None, int] | None = None
    ) -> tuple[Call, Any]:
        """The next call, and the agreement about it, which was started."""
        if self.broken is not None:
            raise DistributedError(self.broken)
        while UNSTARTED:
            UNSTARTED[0]()
        if self.unmet and self.unmet[0][0].number <= self.count + 1 - self.engine.ahead:
            self.meet(*self.unmet.popleft())
        self.count = number = self.count + 1
        call = _tuple(Call, (number, name, looks, *(site_here() if site is None else site)))
        self.last.append(call)
        return call, self.engine.agree(_digest(name, looks) | (number & 0x3FFFFFFF))

    def meet(self, call: Call, agreement: Any, seconds: float | None = None) -> None:
        """Wait until all ranks have made this call, and those before it that were started only.

        Raises:
            RuntimeError: one of them made another, or none in time
        """
        while self.unmet and self.unmet[0][0].number <= call.number:
            self.meet(*self.unmet.popleft(), seconds)
        self.wait(call, agreement, seconds)
        if not agreement.agreed:
            raise self.failed(_MISMATCH, call)

    def wait(self, call: Call, request: Request, seconds: float | None = None) -> None:
        """Wait until a transfer is done, at most ``seconds`` (or the group's timeout)."""
        test = request.Test
        for _ in range(_SPINS):
            if test():
                return
        if self.broken is not None:
            raise DistributedError(self.broken)
        self.waits, begun = True, time.perf_counter_ns()
        try:
            self._wait(call, test, self.timeout if seconds is None else seconds)
        finally:
            self.waits = False
        note("waiting", call, begun)

    def _wait(self, call: Call, test: Callable[[], bool | None], seconds: float) -> None:
        moved = look = time.monotonic()
        begin, end = moved, moved + seconds
        while not (done := test()):
            now = time.monotonic()
            if done is None:
                moved = now
            if now - moved < _YIELDING:
                _yield()
                continue
            time.sleep(min(_LONGEST_PAUSE, (now - moved) / _SHARE))
            if now - look > _ASKED:
                look = now
                if self.broken is not None or self.engine.asked():
                    raise self.failed("", call)
                if now > end:
                    raise self.failed(f"{call.name} waited {now - begin:.0f} s", call)

    def failed(self, problem: str, waits: Call | None) -> DistributedError:
        """The error that says what each rank was doing; no further call of the group works.

        Args:
            problem: what is wrong, or nothing where another rank has found out, and asks
            waits: the call that waits: one for a message does that in the stead of its next collective; None where the
                program does something else
        """
        with self._failing:  # the program and the thread that watches may both be asked
            if self.broken is None:
                of_message = waits is not None and not waits.number
                waited = [] if waits is None else [waits._replace(number=self.count + 1) if of_message else waits]
                unmet = [call for call, _ in [*self.unmet][:_UNMET]]  # where many are, long before the last
                at_all = sorted({call.number: call for call in (*unmet, *self.last, *waited)}.items())
                own = {
                    "problem": problem,
                    "calls": [[call.number, call.what, call.where[:60]] for _, call in at_all],
                    "line": program_line()[:60] if waits is None else None,
                    "heard": self.engine.heard(),
                }
                said = [_read(text) for text in self.engine.reports(json.dumps(own), _ANSWER)]
                problems = [each["problem"] for each in said if each and each["problem"]]
                self.broken = f"{problems[0] if problems else _MISMATCH} at {_told(said, self.ranks)}"
        return DistributedError(self.broken)


def note(category: str, call: Call, begun: int) -> None:
    """Tell open profiles of what has just ended; it began at so many nanoseconds."""
    for each in TRANSFERS:
        each(category, call.name, begun / 1e3, time.perf_counter_ns() / 1e3)


def _told(said: Sequence[dict[str, Any] | None], ranks: tuple[int, ...]) -> str:
    """``call 300: rank 0: all_reduce f32[128] train.py:41, rank 1: ...``: the first call at which ranks differ, or the
    last of each.
    """
    calls = [None if each is None else {n: (what, where) for n, what, where in each["calls"]} for each in said]
    known = [each for each in calls if each]
    numbers = set.intersection(*[set(each) for each in known]) if known else set()
    differing = sorted([n for n in numbers if len({each[n][0] for each in known}) > 1])
    at = differing[0] if differing else max([max(each) for each in known], default=0)
    calls = [each and {n: (_shown(what, at, known), where) for n, (what, where) in each.items()} for each in calls]
    heard = {each["heard"][0]: each["heard"][1:] for each in said if each and each["heard"]}
    lines = [
        _silent(heard.get(number)) if own is None or each is None else _line(own, at, each["line"])
        for number, (own, each) in enumerate(zip(calls, said, strict=True))
    ]
    return f"call {at}: " + ", ".join([f"rank {rank}: {line}" for rank, line in zip(ranks, lines, strict=True)])


def _shown(what: str, at: int, known: Sequence[dict[int, tuple[str, str]]]) -> str:
    """Without the sum that a call is as a rule, unless that is what ranks differ in."""
    name = what.partition(" ")[0]
    others = [each[at][0] for each in known if at in each]
    differs = any([other.startswith(name + " ") and not other.endswith(_SUM) for other in others])
    return what if differs else what.removesuffix(_SUM)


def _line(calls: dict[int, tuple[str, str]], at: int, program: str | None) -> str:
    if at in calls:
        return "".join(calls[at])
    before = f"{''.join(calls[max(calls)])} (call {max(calls)})" if calls else "no call yet"
    return before if not program else f"{program}, after {before}"


def _silent(heard: Sequence[float] | None) -> str:
    """What is known of a rank that does not answer: the last heartbeat."""
    if heard is None:
        return "does not answer"
    step, count, ago = heard
    return f"does not answer; {ago:.0f} s ago it had begun call {count:.0f}" + (f" of step {step:.0f}" if step else "")


def _read(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        return dict(json.loads(text))
    except ValueError:  # it was cut off
        return {"problem": "", "calls": [[0, text, ""]], "line": None, "heard": None}


class Work:
    """A transfer that was started with ``async_op=True``: what the call returns."""

    def __init__(
        self,
        calls: Calls,
        call: Call,
        agreement: Any,
        request: Request,
        finish: Callable[[], Any] | None = None,
        result: Any = (),
    ) -> None:
        self._calls, self._call, self._agreement, self._request = calls, call, agreement, request
        self._finish, self._result = finish, result
        self._error: DistributedError | None = None
        self._done, self._begun = False, time.perf_counter_ns()
        if agreement is not None:
            calls.unmet.append((call, agreement))
        OPEN.add(self)

    def is_completed(self) -> bool:
        """Whether the result is there; brings the transfer forward."""
        if not self._done and self._request.Test() and (self._agreement is None or self._agreement.Test()):
            self._settle()
        return self._done

    def wait(self, timeout: Any = None) -> bool:
        """Wait until the result is there, at most ``timeout`` (a `datetime.timedelta`, or seconds).

        Raises:
            RuntimeError: a rank made another call, or none in time
        """
        if not self._done:
            seconds = getattr(timeout, "total_seconds", lambda: timeout)()
            try:
                if self._agreement is not None:
                    self._calls.meet(self._call, self._agreement, seconds)
                    self._agreement = None
                self._calls.wait(self._call, self._request, seconds)
                self._settle()
            except DistributedError as error:
                self._error = error
                OPEN.discard(self)
                raise
        return True

    def _settle(self) -> None:
        if self._agreement is not None:
            self._calls.meet(self._call, self._agreement)
        self._done = True
        note("communication", self._call, self._begun)
        OPEN.discard(self)
        if self._finish is not None:
            self._finish()

    def is_success(self) -> bool:
        """Whether it is done, without an error."""
        return self._done and self._error is None

    def exception(self) -> Exception | None:
        """The error that ended it, if one did."""
        return self._error

    def result(self) -> list[Any]:
        """The tensors that were written to."""
        self.wait()
        return list(self._result)

    def get_future(self) -> Future:
        """The tensors that were written to, as a `Future`."""
        return Future(self.is_completed, self.result)

    def source_rank(self) -> int:
        """The rank that a message came from."""
        self.wait()
        return self._calls.ranks[self._request.sender]  # type: ignore[attr-defined, no-any-return]

    def advance(self) -> None:
        """Bring the transfer forward, without taking what came of it."""
        if not self._done:
            self._request.Test()


OPEN: set[Work] = set()  # transfers that run: their memory must stay
