"""Values in parts, one for each of several devices, and parts as one value again: what `DataParallel` does with arguments
and results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from genesis.base.errors import ArgumentError, message
from genesis.core.graph.tensor import Tensor
from genesis.ops.shapes.join import cat


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """Of each device its part of a value: tensors, in tuples, lists and dictionaries too, are split along a dimension;
    what is no tensor is each device's.

    Returns:
        a tuple of parts of a tensor, a list of parts of other values; fewer than devices, if a tensor has not as many

    Raises:
        TypeError: the devices are no list, or a dimension no number
    """
    if not isinstance(target_gpus, list | tuple) or not target_gpus:
        text = f"target_gpus is {target_gpus!r}, expected a list of devices"
        raise ArgumentError(message("scatter", text, hint='scatter(x, ["cuda:0", "cuda:1"])'))
    _check_dim("scatter", dim)
    parts = _scattered(inputs, target_gpus, dim)
    return parts if isinstance(inputs, Tensor) else list(parts)


def _scattered(value: Any, devices: Sequence[Any], dim: int) -> Sequence[Any]:
    if isinstance(value, Tensor):
        if not value.ndim:
            raise ArgumentError(message("scatter", "a tensor without dimensions cannot be split", hint="x.reshape(1)"))
        chunks = value.chunk(len(devices), dim)
        return tuple([chunk.to(at, non_blocking=True) for chunk, at in zip(chunks, devices, strict=False)])
    if isinstance(value, tuple | list) and value:
        each = [_scattered(x, devices, dim) for x in value]
        return [_like(value, parts) for parts in zip(*each, strict=False)]
    if isinstance(value, dict) and value:
        each = [_scattered(x, devices, dim) for x in value.values()]
        return [type(value)(zip(value, parts, strict=True)) for parts in zip(*each, strict=False)]
    return [value for _ in devices]


def gather(outputs: Sequence[Any], target_device: Any, dim: int = 0) -> Any:
    """The parts of a value as one, on a device: tensors, in tuples, lists and dictionaries too, are joined along a dimension;
    numbers in tensors without dimensions become one of each part.

    Raises:
        TypeError: parts of another kind
    """
    if not isinstance(outputs, list | tuple) or not outputs:
        raise ArgumentError(message("gather", f"outputs is {outputs!r}, expected a list of the parts"))
    _check_dim("gather", dim)
    first = outputs[0]
    if any([type(part) is not type(first) for part in outputs]) and not all([isinstance(x, Tensor) for x in outputs]):
        kinds = ", ".join([type(part).__name__ for part in outputs])
        raise ArgumentError(message("gather", f"parts of different kinds: {kinds}"))
    if isinstance(first, Tensor):
        there = [part.to(target_device) for part in outputs]
        return cat([part.reshape(1) if not part.ndim else part for part in there], 0 if not first.ndim else dim)
    if first is None:
        return None
    if isinstance(first, Mapping):
        return type(first)([(name, gather([part[name] for part in outputs], target_device, dim)) for name in first])  # type: ignore[call-arg]
    if isinstance(first, tuple | list):
        return _like(first, [gather(parts, target_device, dim) for parts in zip(*outputs, strict=True)])
    raise ArgumentError(message("gather", f"expected tensors, got a {type(first).__name__}"))


def _check_dim(name: str, dim: Any) -> None:
    if isinstance(dim, bool) or not isinstance(dim, int):
        raise ArgumentError(message(name, f"dim is {dim!r}, expected an int"))


def _like(value: Any, parts: Sequence[Any]) -> Any:
    """A tuple or list of parts of the kind that a value is."""
    return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)


__all__ = ["gather", "scatter"]
