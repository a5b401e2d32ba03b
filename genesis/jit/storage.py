"""Whose memory a value of a program is: views are parts of the memory of the value at their root, everything else has
its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from genesis.arrays.spec import Spec, strides_of
from genesis.base.narrow import restrided
from genesis.core.call.kernels import op_named
from genesis.core.call.op import Op
from genesis.jit.arguments import Var


class Region(NamedTuple):
    """A part of the memory of a value: element (i, j, ...) is ``offset`` bytes and ``i * strides[0] + j * strides[1] +
    ...`` elements behind the root's first.
    """

    root: Var
    offset: int
    strides: tuple[int, ...]


def regions(calls: Iterable[Any]) -> dict[Var, Region]:
    """The regions of the values that are views."""
    known: dict[Var, Region] = {}
    for call in calls:
        op = op_named(call.op)
        if op is not None and op.kind.views and isinstance(call.args[0], Var):
            source, out = call.args[0], call.outs[0]
            root, begin, strides = known.get(source) or Region(source, 0, strides_of(source.spec))
            seen = seen_at(op, call.args[1:], source.spec, strides)
            if seen is not None:
                known[out] = Region(root, begin + seen[0], seen[1])
    return known


def _begin(op: Op, args: tuple[Any, ...]) -> int:
    """How many elements from the first one a view begins whose op says its strides."""
    return int(args[2]) if op.name == "strided_view" else 0


def seen_at(
    op: Op, args: tuple[Any, ...], source: Spec, strides: tuple[int, ...]
) -> tuple[int, tuple[int, ...]] | None:
    """Where a view begins in its source, in bytes, and its strides; None for a reshape that takes a copy."""
    if op.strides is not None:
        new = op.strides(replace(source, strides=strides), *args)
        return None if new is None else (_begin(op, args) * source.dtype.itemsize, new)
    size = source.dtype.itemsize
    memory = np.empty(1, source.dtype)
    ghost = restrided(memory, source.shape, [s * size for s in strides], writeable=False)
    view = op.kernel(ghost, *args)  # only addresses are computed: the memory is not there
    if view.__class__ is not np.ndarray and not source.shape:
        return 0, ()  # NumPy gives a number, of memory of its own, for all of an array without dimensions
    return view.__array_interface__["data"][0] - memory.__array_interface__["data"][0], tuple(
        [s // view.dtype.itemsize for s in view.strides]
    )
