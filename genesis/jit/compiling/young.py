"""Objects: where their attributes and items are found, and which of them were made while the function runs.

The latter holds while a `Watch` is open: it has emptied the young generation, and turned the collector off.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from types import FrameType, MemberDescriptorType
from typing import Any

import numpy as np

from genesis.core.graph.tracing import Dependable

MADE_AT_RUN_TIME = 1 << 9  # `Py_TPFLAGS_HEAPTYPE`, of classes whose attributes can be set
MEMBERS = ("_parameters", "_buffers", "_modules")  # the dictionaries of a module


def stores_in(value: Any, name: Any) -> Iterator[tuple[Any, Any, Any]]:
    """The dictionaries in which an attribute or an item is looked for, the key, and what is there: None in all but the
    last, and in that if it is nowhere. What is in a slot is in the object itself. Nothing where code computes it.
    """
    if isinstance(name, tuple):
        fits = (isinstance(value, dict) and name[0] in value) or (type(value) is list and type(name[0]) is int)
        if fits and (isinstance(value, dict) or -len(value) <= name[0] < len(value)):
            yield value, name[0], value[name[0]]
        return
    own = getattr(value, "__dict__", None)
    if isinstance(own, dict):
        yield own, name, own.get(name)
        if name in own:
            return
    if isinstance(value, Dependable):
        for members in MEMBERS:
            if isinstance(own, dict) and name in own.get(members, ()):
                yield own[members], name, own[members][name]
                return
    for kind in (value if isinstance(value, type) else type(value)).__mro__:
        if name in kind.__dict__:
            inside = kind.__dict__[name]
            slot = isinstance(inside, MemberDescriptorType) and not isinstance(value, type)
            yield (value, name, getattr(value, name, None)) if slot else (kind.__dict__, name, inside)
            return
        if kind.__flags__ & MADE_AT_RUN_TIME and not kind.__module__.startswith("genesis."):
            yield kind.__dict__, name, None  # it may be set there later


def is_young(x: Any) -> bool:
    """Whether an object was made since the watch began: only then it is of the young generation, while the collector is
    off. A dictionary of numbers only is of none, and of the young one once it holds something else.
    """
    if isinstance(x, np.ndarray):
        owner = x
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        return owner.base is None and not is_held(x) and (owner is x or not is_held(owner))
    if not gc.is_tracked(x):
        return not is_held(x)
    newest = id(x) in map(id, reversed(gc.get_objects(generation=0)))  # the newest first: most are asked for at once
    return newest and not (isinstance(x, dict) and is_held(x))


def is_held(x: Any) -> bool:
    """Whether something else than running frames and young objects holds an object."""
    young = {*map(id, gc.get_objects(generation=0))}

    def is_old(r: Any) -> bool:
        return id(r) not in young and not isinstance(r, FrameType)

    referrers = gc.get_referrers(x)  # looks at all objects there are: 0.1 s where they are a million
    if any(map(is_old, referrers)):
        return True
    # the dictionary of an old object may be made when it is asked for
    dictionaries = [r for r in referrers if type(r) is dict]
    owners = gc.get_referrers(*dictionaries) if dictionaries else []
    return any([getattr(o, "__dict__", None) is r for o in owners if is_old(o) for r in dictionaries])
