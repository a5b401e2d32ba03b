"""`map_location`: on which device the tensors of a file are to be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from genesis.base.device import CPU, as_device, device, require_available
from genesis.base.errors import ArgumentError, DeviceError, GenesisError, message


class Storage:
    """The memory of tensors in a file, as a callable ``map_location`` gets it and gives it back.

    Attributes:
        device: where the tensors will be
    """

    __slots__ = ("array", "device")

    def __init__(self, array: np.ndarray[Any, Any], device: device = CPU) -> None:
        self.array, self.device = array, device

    def nbytes(self) -> int:
        return self.array.nbytes

    def to(self, device: Any) -> Storage:
        target = as_device(device)
        require_available(target)
        return Storage(self.array, target)

    def cpu(self) -> Storage:
        return self.to("cpu")

    def cuda(self, device: Any = None) -> Storage:
        return self.to("cuda" if device is None else device)


class CallersError(Exception):
    """What a callable ``map_location`` raised: the caller's, not the file's."""

    def __init__(self, error: Exception) -> None:
        self.error = error


Placement = Callable[[np.ndarray[Any, Any], str], Storage]


def placement(map_location: Any) -> Placement:
    """A function of bytes and the name of the device that they were on, to a `Storage`.

    Raises:
        TypeError: neither None, a device, its name, a dict of devices nor a callable
    """
    if map_location is None:
        return _restored
    if isinstance(map_location, str | device | int) and not isinstance(map_location, bool):
        target = as_device(map_location)
        require_available(target)
        return lambda array, _: Storage(array, target)
    if isinstance(map_location, Mapping):
        names = {str(k): str(v) for k, v in map_location.items()}
        return lambda array, location: _restored(array, names.get(location, location))
    if callable(map_location):
        return lambda array, location: _asked(map_location, array, location)
    problem = f"map_location must be a device, a dict of devices or a callable, got {type(map_location).__name__}"
    raise ArgumentError(message("load", problem, hint='map_location="cpu"'))


def _restored(array: np.ndarray[Any, Any], location: str) -> Storage:
    try:
        target = as_device(location)
        require_available(target)
    except (GenesisError, RuntimeError):
        raise DeviceError(
            message("load", f"the tensors were saved on {location}, which is not available", hint='map_location="cpu"')
        ) from None
    return Storage(array, target)


def _asked(ask: Any, array: np.ndarray[Any, Any], location: str) -> Storage:
    try:
        answer = ask(Storage(array), location)
        if answer is None:
            return _restored(array, location)
        if not isinstance(answer, Storage):
            raise ArgumentError(
                message("load", f"map_location returned {type(answer).__name__}", hint="return the storage, or None")
            )
        return answer
    except Exception as error:
        raise CallersError(error) from None
