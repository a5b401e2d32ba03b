"""Writes in place where arrays have layers: a batched array keeps its batch in memory, a dual one two memories.

Where what is written has a layer that the memory lacks (a batched value goes into a plain tensor), the tensor grows:
it, its base and the base's other views get memory with that layer. Only a tensor that was made inside the transform
can, others are shared by all samples.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.arrays.memory import DeviceArray, copied, memory_of
from genesis.arrays.protocol import Layer, bottom, fits, level_of
from genesis.arrays.spec import spec_of
from genesis.base.errors import InplaceError, message
from genesis.core.call.paths import Replay, View
from genesis.core.graph.levels import levels
from genesis.core.graph.site import line_here
from genesis.core.graph.tensor import Tensor, wrap
from genesis.core.graph.tracing import tracer


def store(x: Tensor, result: Tensor) -> None:
    """Write a result into ``x``, one of which holds no NumPy array."""
    source = result._array
    if tracer.get() is not None and isinstance(x._array, np.ndarray | DeviceArray) and not isinstance(source, Layer):
        tracer.get().capture(x)
    if not fits(x._array, source):
        _grow(x, source)
    _assign(x._array, source)


def _assign(target: Any, source: Any) -> None:
    if isinstance(target, Layer):
        while level_of(source) > target.level:  # it says nothing: the memory fits
            source = source.inner
        target.assign(source, _assign)
    elif tracer.get() is not None:
        tracer.get().write(target, bottom(source))
    else:
        memory_of(target).assign(target, bottom(source))


def _grow(x: Tensor, source: Any) -> None:
    """Give ``x``, its base and all views of it memory with the layers of ``source``."""
    view: View | None = x._view
    base = x if view is None else view.base
    _check_made_inside(base, x, source)
    if view is not None and view.path is None:
        raise InplaceError(
            message(
                "write", "a view that a Function returned is written to inside a transform", hint="clone() it first"
            )
        )
    base._array = _with_layers(base._array, source)
    again = Replay(wrap(base._array))
    if view is not None:
        x._array = again.of(view.path)._array
    counter = base._counter
    for ref in [] if counter is None else list(counter.refs):
        other = ref()
        if other is None or other is x or other._view is None or other._view.base is not base:
            continue  # a view of what joined the transform is no part of it
        if other._view.path is not None:
            other._array = again.of(other._view.path)._array


def _with_layers(array: Any, like: Any) -> Any:
    """A copy of an array with the layers that ``like`` has, besides its own; those of later transforms stay outside."""
    level = max(level_of(array), level_of(like))
    if not level:
        return copied(array)
    layer = array if level_of(array) == level else like
    return layer.grown(array, like, _with_layers)


def _check_made_inside(base: Tensor, x: Tensor, source: Any) -> None:
    missing: dict[int, Layer] = {}
    layer = source
    while isinstance(layer, Layer):
        if layer.varies:
            missing[layer.level] = layer
        layer = layer.inner
    for level in levels():
        if level.number in missing and not level.has_created(base) and level_of(base._array) < level.number:
            raise InplaceError(
                message(
                    "write",
                    f"inside {level.name}, a tensor that was made outside is written to, with a value that "
                    f"{missing[level.number].varying}",
                    operands=[("written at", line_here()), ("tensor", spec_of(x._array)), ("value", spec_of(source))],
                    hint="clone() it inside the function and return the clone, or pass it as an argument",
                )
            )
