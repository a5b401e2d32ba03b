"""Writes in place where arrays have layers: a batched array keeps its batch in memory, a dual one two memories.

Where what is written has a layer that the memory lacks (a batched value goes into a plain tensor), the tensor grows:
it, its base and the base's other views get memory with that layer. Only a tensor that was made inside the transform
can, others are shared by all samples.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.arrays.batched import Batched
from genesis.arrays.dual import Dual
from genesis.arrays.memory import DeviceArray, copied, memory_of
from genesis.arrays.protocol import Layer, bottom, level_of
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
    if not _fits(x._array, source):
        _grow(x, source)
    _assign(x._array, source)


def _fits(target: Any, source: Any) -> bool:
    """Whether the memory has every layer of what is written to it."""
    if level_of(source) > level_of(target):
        return not (_varies(source) or source.from_outside) and _fits(target, source.inner)
    if not isinstance(target, Layer):
        return True
    same = level_of(source) == target.level
    inside = source.inner if same else source
    if same and source.from_outside and not target.from_outside:
        return False
    if isinstance(target, Batched):
        return (target.batched or not (same and source.batched)) and _fits(target.array, inside)
    assert isinstance(target, Dual)
    if same and source.tangent is not None:
        return target.tangent is not None and _fits(target.tangent, source.tangent) and _fits(target.primal, inside)
    return _fits(target.primal, inside)


def _varies(layer: Any) -> bool:
    return layer.batched if isinstance(layer, Batched) else layer.tangent is not None


def _assign(target: Any, source: Any) -> None:
    if not isinstance(target, Layer) and tracer.get() is not None:
        tracer.get().write(target, bottom(source))
        return
    if not isinstance(target, Layer):
        memory_of(target).assign(target, bottom(source))
        return
    if isinstance(target, Dual) and level_of(source) > target.level and _tangent_below(source, target.level):
        raise InplaceError(
            message(
                "write",
                "in nested transforms, a value that is the same for all samples of the inner one has a tangent of "
                "the outer one, which the write would lose",
                operands=[("written at", line_here()), ("value", spec_of(source))],
                hint="use the out-of-place form: genesis.where, genesis.cat, genesis.stack",
            )
        )
    same = level_of(source) == target.level
    if isinstance(target, Batched):
        if (target.batched and same and not source.batched) or (target.batched and not same and level_of(source)):
            inner = source.array if same else source
            _assign(target.array, wrap(inner).expand(tuple(target.array.shape))._array)
        else:
            _assign(target.array, source.array if same else source)
        return
    assert isinstance(target, Dual)
    if target.tangent is not None:
        target.own_tangent()
        tangent = source.tangent if same else None
        _assign(
            target.tangent, memory_of(target).zeros((), target.dtype, target.device) if tangent is None else tangent
        )
    _assign(target.primal, source.primal if same else source)


def _tangent_below(array: Any, level: int) -> bool:
    """Whether an array has a tangent of a level, under later layers."""
    while level_of(array) > level:
        array = array.inner
    return level_of(array) == level and _varies(array)


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
        if other is not None and other is not x and other._view is not None and other._view.path is not None:
            other._array = again.of(other._view.path)._array


def _with_layers(array: Any, like: Any) -> Any:
    """A copy of an array with the layers that ``like`` has, besides its own; those of later transforms stay outside."""
    level = max(level_of(array), level_of(like))
    if not level:
        return copied(array)
    mine, its = level_of(array) == level, level_of(like) == level
    layer = array if mine else like
    from_outside = (mine and array.from_outside) or (its and like.from_outside)
    if isinstance(layer, Batched):
        inner, batched = (array.array, array.batched) if mine else (array, False)
        if its and like.batched and not batched:
            inner, batched = wrap(inner).unsqueeze(0).expand(layer.size_hidden, *inner.shape)._array, True
        return Batched(
            _with_layers(inner, like.array if its else like), batched, layer.size_hidden, level, from_outside
        )
    primal, tangent = (array.primal, array.tangent) if mine else (array, None)
    wanted = (like.primal, like.tangent if like.tangent is not None else like.primal) if its else (like, like)
    if tangent is None:
        tangent = wrap(primal)._zeros(tuple(primal.shape), primal.dtype)._array
    return Dual(_with_layers(primal, wanted[0]), _with_layers(tangent, wanted[1]), level, from_outside, shared=False)


def _check_made_inside(base: Tensor, x: Tensor, source: Any) -> None:
    missing = []
    layer = source
    while isinstance(layer, Layer):
        if _varies(layer):
            missing.append(layer.level)
        layer = layer.inner
    for level in levels():
        if level.number in missing and not level.made(base) and level_of(base._array) < level.number:
            raise InplaceError(
                message(
                    "write",
                    f"inside {level.name}, a tensor that was made outside is written to, with a value that differs "
                    "from sample to sample"
                    if level.size
                    else f"inside {level.name}, a tensor that was made outside is written to, with a value that has "
                    "a tangent",
                    operands=[("written at", line_here()), ("tensor", spec_of(x._array)), ("value", spec_of(source))],
                    hint="clone() it inside the function and return the clone, or pass it as an argument",
                )
            )
