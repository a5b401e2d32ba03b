"""The devices of the driver, and which of them each thread computes on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from genesis.base.device import as_device
from genesis.base.device import device as DeviceName  # noqa: N812
from genesis.base.errors import ArgumentError, DeviceError, message
from genesis.cuda.runtime.connection import driver
from genesis.cuda.runtime.driver import Driver

_lock = threading.RLock()


class _Thread(threading.local):
    index = 0  # the device that it computes on where nobody says it
    entered: Device | None = None  # whose context is that of the thread
    through: Any = None  # what it calls in the driver's place


_thread = _Thread()


class Device:
    """One device: its driver, its context, and (``kept``) what others keep for it, such as its allocator."""

    def __init__(self, driver: Driver, index: int) -> None:
        self.driver, self.index, self.name = driver, index, DeviceName("cuda", index)
        self.context = driver.retain(index)
        self.kept: dict[str, Any] = {}

    def enter(self) -> Driver:
        """Make its context that of this thread; returns the driver."""
        if _thread.entered is not self:
            self.driver.make_current(self.context)
            if _thread.through is not None:
                return _thread.through  # type: ignore[no-any-return]
            _thread.entered = self
        return self.driver

    def keep(self, name: str, make: Any) -> Any:
        """What is kept under a name: made when it is first asked for, once."""
        value = self.kept.get(name)
        if value is None:
            with _lock:
                if name not in self.kept:
                    self.kept[name] = make(self)
                value = self.kept[name]
        return value

    def __repr__(self) -> str:
        return f"cuda:{self.index}"


def device_at(index: int | None = None) -> Device:
    """The device of an index, or that of this thread.

    Raises:
        RuntimeError: there is no driver, or no such device
    """
    chosen = driver()
    index = _thread.index if index is None else index
    device: Device | None = chosen._known.get(index)
    if device is not None:
        return device
    if not 0 <= index < chosen.count():
        count = chosen.count()
        raise DeviceError(message("cuda", f"cuda:{index} does not exist, there are {count} devices" if count != 1
                                  else f"cuda:{index} does not exist, there is one CUDA device"))  # fmt: skip
    with _lock:
        if index not in chosen._known:
            chosen._known = {**chosen._known, index: Device(chosen, index)}
        made: Device = chosen._known[index]
        return made


@contextmanager
def through(other: Any) -> Iterator[None]:
    """Inside, `Device.enter` gives this thread another driver."""
    _thread.through, _thread.entered = other, None
    try:
        yield
    finally:
        _thread.through = None


def current_index() -> int:
    """Which device this thread computes on where nobody says it."""
    return _thread.index


def set_current(index: int) -> None:
    _thread.index = index


def index_of(named: Any) -> int:
    """The index that a device, a name, an int or None stands for.

    Raises:
        TypeError: it is no device
        RuntimeError: it is none of CUDA
    """
    if named is None:
        return current_index()
    if isinstance(named, bool):
        raise ArgumentError(message("cuda", f"expected a device or an index, got {named!r}"))
    if isinstance(named, int):
        return current_index() if named < 0 else named
    asked = as_device(named)
    if asked.type != "cuda":
        raise DeviceError(message("cuda", f"expected a CUDA device, got {asked}"))
    return current_index() if asked.index is None else asked.index
