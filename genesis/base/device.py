"""Devices: where an array lives."""

from __future__ import annotations

import importlib
import re
from contextvars import ContextVar
from typing import Any

from genesis.base.errors import ArgumentError, DeviceError, message

KNOWN = ("cpu", "meta", "cuda")

# The memory of each type of device that is there (`arrays/memory.py`), entered by `genesis.arrays.memory.register`
MEMORIES: dict[str, Any] = {}

# those that are looked for when somebody asks: the module whose ``MEMORY`` it is, which enters it while there is a device
_LATE = {"cuda": "genesis.cuda"}


class device:  # noqa: N801, PyTorch's name
    """A place for arrays: ``cpu``, ``meta`` (shapes without data), ``cuda`` (a GPU, `genesis.cuda`), or a type that
    somebody registered.

    Attributes:
        type: "cpu"; index: which of several, None for the current one

    >>> import genesis
    >>> genesis.device("cuda:1"), genesis.device("cpu")
    (device(type='cuda', index=1), device(type='cpu'))
    >>> with genesis.device("meta"):
    ...     genesis.nn.Linear(8192, 8192).weight.device
    device(type='meta')

    Raises:
        RuntimeError: the name is not known, the index is negative or given twice
        TypeError: not a string, index or device
    """

    __slots__ = ("index", "type")

    type: str
    index: int | None

    def __init__(self, type: Any, index: int | None = None) -> None:
        name, number = (type.type, type.index) if isinstance(type, device) else _parse(type)
        if index is not None:
            if not isinstance(index, int) or isinstance(index, bool):
                raise ArgumentError(message("device", f"the index must be an int, got {index!r}"))
            if number is not None:
                raise DeviceError(message("device", f"{str(type)!r} already has an index, {index} was given too"))
            if index < 0:
                raise DeviceError(message("device", f"the index must not be negative, got {index}"))
            number = index
        object.__setattr__(self, "type", name)
        object.__setattr__(self, "index", number)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("device is immutable")

    def __eq__(self, other: object) -> bool:
        return other is self or (isinstance(other, device) and self.type == other.type and self.index == other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __reduce__(self) -> tuple[Any, ...]:
        return device, (self.type, self.index)

    def __enter__(self) -> device:
        """Inside a ``with``, tensors are made here unless they are told another place."""
        _defaults.set((*_defaults.get(), self))
        return self

    def __exit__(self, *_: object) -> None:
        _defaults.set(_defaults.get()[:-1])

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type={self.type!r}{index})"


def _parse(named: Any) -> tuple[str, int | None]:
    """The type and index of ``"cuda:1"``, or of a bare index, which is a GPU's."""
    if isinstance(named, int) and not isinstance(named, bool):
        named = f"cuda:{named}"
    if not isinstance(named, str):
        raise ArgumentError(message("device", f"expected a name such as 'cpu', got {named!r}"))
    name, colon, number = named.partition(":")
    if name not in KNOWN and name not in MEMORIES:
        raise DeviceError(
            message(
                "device", f"unknown device {named!r}", hint="one of " + ", ".join(dict.fromkeys([*KNOWN, *MEMORIES]))
            )
        )
    if colon and not re.fullmatch("0|[1-9][0-9]*", number):
        raise DeviceError(message("device", f"{number!r} in {named!r} is not an index", hint=f"'{name}' or '{name}:0'"))
    return name, int(number) if colon else None


CPU = device("cpu")
META = device("meta")


_defaults: ContextVar[tuple[device, ...]] = ContextVar("genesis_default_devices", default=())
_default = [CPU]


def default_device() -> device:
    """Where tensors are made that are told no place."""
    inner = _defaults.get()
    return inner[-1] if inner else _default[0]


def get_default_device() -> device:
    """The device on which tensors are made by default.

    >>> import genesis
    >>> genesis.get_default_device()
    device(type='cpu')
    """
    return default_device()


def set_default_device(device: Any) -> None:
    """Make tensors on another device by default; None stands for the CPU.

    >>> import genesis
    >>> genesis.set_default_device("meta"); genesis.ones(2).device; genesis.set_default_device(None)
    device(type='meta')
    """
    chosen = CPU if device is None else as_device(device)
    require_available(chosen)
    _default[0] = chosen


def as_device(named: Any) -> device:
    """A device of anything that names one."""
    return named if isinstance(named, device) else device(named)


def names_device(value: Any) -> bool:
    """Whether this says where: a device, a GPU's index, or a name such as ``"cpu"`` or ``"cuda:1"``."""
    if isinstance(value, str):
        return value.partition(":")[0] in KNOWN or value.partition(":")[0] in MEMORIES
    return isinstance(value, device) or (isinstance(value, int) and not isinstance(value, bool))


def memory_named(name: str) -> Any:
    """The memory of a type of device; None if there is none, or no device of the type."""
    memory = MEMORIES.get(name) or _late_memory(name)
    return memory if memory is not None and memory.count() else None


def _late_memory(name: str) -> Any:
    return importlib.import_module(_LATE[name]).MEMORY if name in _LATE else None


def require_available(wanted: device) -> device:
    """The very device that a name stands for, ``cuda:0`` for ``cuda``; refuse one that is not there.

    Raises:
        RuntimeError: nobody registered the memory of such a device, or there are not so many
    """
    if wanted is CPU:
        return CPU
    memory = MEMORIES.get(wanted.type) or _late_memory(wanted.type)
    count = 0 if memory is None else memory.count()
    if not count:
        what = "nobody registered its memory" if memory is None else memory.why_none()
        raise DeviceError(
            message(
                "device", f"{wanted} is not available, {what}", hint="device='cpu', or 'meta' for shapes without data"
            )
        )
    if wanted.index is not None and wanted.index >= count:
        devices = f"one {wanted.type.upper()} device" if count == 1 else f"{count} devices of this type"
        raise DeviceError(
            message(
                "device",
                f"{wanted} does not exist, there is {devices}"
                if count == 1
                else f"{wanted} does not exist, there are {devices}",
                hint=f"'{wanted.type}'",
            )
        )
    return memory.resolved(wanted)  # type: ignore[no-any-return]
