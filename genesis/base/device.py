"""Devices: where an array lives."""

from __future__ import annotations

from typing import Any

from genesis.base.errors import ArgumentError, DeviceError, message

KNOWN = ("cpu", "meta", "cuda")


class device:
    """A place for arrays: ``cpu``, ``meta`` (shapes without data), or ``cuda`` (named, not built yet).

    >>> device("cuda:1")
    device(type='cuda', index=1)

    Raises:
        RuntimeError: the name is not known
        TypeError: not a string, index or device
    """

    __slots__ = ("index", "type")

    type: str
    index: int | None

    def __init__(self, type: Any, index: int | None = None) -> None:
        if isinstance(type, device):
            type, index = type.type, type.index
        if isinstance(type, int) and not isinstance(type, bool):
            type, index = "cuda", type
        if not isinstance(type, str):
            raise ArgumentError(message("device", f"expected a name such as 'cpu', got {type!r}"))
        name, colon, number = type.partition(":")
        if name not in KNOWN or (colon and not number.isdigit()):
            raise DeviceError(message("device", f"unknown device {type!r}", hint="one of " + ", ".join(KNOWN)))
        if colon and index is not None:
            raise DeviceError(message("device", f"{type!r} already has an index, {index} was given too"))
        object.__setattr__(self, "type", name)
        object.__setattr__(self, "index", int(number) if colon else index)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("device is immutable")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and self.type == other.type and self.index == other.index

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __reduce__(self) -> Any:
        return device, (self.type, self.index)

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type={self.type!r}{index})"


CPU = device("cpu")
META = device("meta")


def as_device(place: Any) -> device:
    """A device of anything that names one."""
    return place if isinstance(place, device) else device(place)


def require_available(place: device) -> None:
    """Refuse a device that has no backend here."""
    if place.type == "cuda":
        raise DeviceError(
            message("device", f"{place} is not available, the CUDA backend is not built yet",
                    hint="device='cpu', or 'meta' for shapes without data")
        )  # fmt: skip
    if place.type == "cpu" and place.index not in (None, 0):
        raise DeviceError(message("device", f"{place} does not exist, there is one CPU device", hint="'cpu'"))
