"""Which driver this process has, if any, and if none, why.

``GENESIS_CUDA`` says what is looked for: ``off`` nothing, ``emulate`` or ``emulate:2`` emulated devices, else NVIDIA's driver.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from genesis.base.errors import DeviceError, message
from genesis.cuda.runtime import bindings
from genesis.cuda.runtime.driver import Driver

_chosen: list[Driver | None] = []
followers: list[Callable[[], None]] = []  # called when there is a driver, or none any more
_reason: list[str] = [""]


def driver() -> Driver:
    """The driver of this process.

    Raises:
        RuntimeError: there is none; the text says why
    """
    if not available():
        raise DeviceError(message("cuda", f"there is no GPU here: {_reason[0]}", hint="device='cpu'"))
    return _chosen[0]  # type: ignore[return-value]


def available() -> bool:
    """Whether there is a driver, and a device of it."""
    if not _chosen:
        chosen, _reason[0] = _look()
        _chosen.append(chosen)
    return _chosen[0] is not None


def unavailable() -> str:
    """Why there is none; empty where there is one."""
    return "" if available() else _reason[0]


def _look() -> tuple[Driver | None, str]:
    asked, _, devices = os.environ.get("GENESIS_CUDA", "").partition(":")
    if asked == "off":
        return None, "GENESIS_CUDA is off"
    if asked == "emulate":
        from genesis.cuda.runtime.emulated import Emulated

        return Emulated(int(devices or 1)), ""
    return bindings.connected()


@contextmanager
def using(other: Driver | None, reason: str = "it was taken away") -> Iterator[Driver | None]:
    """Inside, another driver answers, or none: for tests."""
    before = _chosen[:], _reason[0]
    _chosen[:], _reason[0] = [other], "" if other is not None else reason
    _tell()
    try:
        yield other
    finally:
        _chosen[:], _reason[0] = before
        _tell()


def _tell() -> None:
    for follow in followers:
        follow()
