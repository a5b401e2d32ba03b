"""Is this the call that was traced? The questions that a compiled call asks first, as lines of Python.

They are answered by looking whether objects are the same ones; where they are not, the line says `MISS`, and somebody
looks closely. So a question may say no too often, and never yes too often.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from types import CellType, MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from genesis.arrays.protocol import device_of
from genesis.base import device as devices
from genesis.base import dtypes
from genesis.base.pytree import TreeDef, tree_flatten
from genesis.core.call.subclasses import MODES
from genesis.core.graph import autocast, switches
from genesis.core.graph.modes import grad_mode, inference
from genesis.core.graph.node import AccumulateGrad
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.tracing import PLAIN
from genesis.jit.binding import Graph
from genesis.jit.compiling.again import Again
from genesis.jit.compiling.deciding import LARGEST
from genesis.jit.compiling.identity import Rows, unchanged
from genesis.jit.compiling.origins import Asked, share_origins
from genesis.jit.compiling.text import MISS, Text
from genesis.jit.guards import HOOKS_OF_LEAVES, Answers, CapturedAsTheyWere, Modes, Unchanged
from genesis.jit.numbers import Decision, Entry, Formula, StillFloat

_SWITCHES = ("ACTIVE", "LEVELS", "OVERRIDES", "PACKING", "ESCAPES")


def surroundings(text: Text) -> None:
    """Nothing is open that ordinary calls would notice, and the modes are those of now."""
    text.scope |= {name: getattr(switches, name) for name in _SWITCHES}
    text.scope |= {"grad_mode": grad_mode.get, "dtypes": dtypes, "device": devices.default_device}
    text.scope["function_modes"] = MODES
    text.miss_if("(ACTIVE and not sure) or LEVELS or OVERRIDES or PACKING or ESCAPES or function_modes")
    if autocast.state() is not None:  # the key says that it is open again; without, there is nothing in `ACTIVE`
        text.miss_if("not sure")
    text.unless(
        f"grad_mode() is {grad_mode.get()} and dtypes._default is {text.name(dtypes.get_default_dtype())} "
        f"and device() is {text.name(devices.default_device())}"
    )
    if not grad_mode.get():
        text.scope["inference"] = inference.get
        text.unless(f"inference() is {inference.get()}")


# ---- the arguments


class Looks(NamedTuple):
    """What is asked of a tensor among the arguments."""

    kind: type[Tensor]
    shape: tuple[int, ...]
    dtype: Any
    strides: tuple[int, ...]
    history: bool
    leaf: bool | None  # None where nobody asks
    arrays: type
    device: Any

    @staticmethod
    def of(x: Any, leaves: bool = False) -> Any:
        """Those of a tensor; anything else is asked for itself.

        Args:
            leaves: whether it matters if one that requires grad is a leaf
        """
        if not isinstance(x, Tensor):
            return x
        array = x._array
        history = x._node is not None
        leaf = x._node.is_leaf if history and leaves else None
        return Looks(type(x), array.shape, array.dtype, array.strides, history, leaf, type(array), device_of(array))


class Given(NamedTuple):
    """A number among the arguments that the graph asks for: where it finds it."""

    holder: dict[int, float]
    index: int


def arguments(text: Text, structure: TreeDef, example: list[Any]) -> int:
    """Take the arguments apart into ``x0``, ``x1``, ... and their arrays ``a0``, ``a1``, ...; returns how many these are.

    Args:
        structure: of ``(args, kwargs)``
        example: the leaves of the arguments of the trace, tensors by their `Looks`
    """
    taken = _Taken(text, iter(example))
    positional, named = structure.children
    text.miss_if(f"len(args) != {len(positional.children)} or len(kwargs) != {len(named.children)}")
    if len(named.children) > 1:
        text.miss_if(f"(*kwargs,) != {text.name(named.rest)}")  # a function may go through them
    for i, child in enumerate(positional.children):
        taken.take(child, f"args[{i}]")
    for key, child in zip(named.rest, named.children, strict=True):
        taken.take(child, f"kwargs.get({key!r}, MISS)")
    return taken.count


class _Taken:
    """The arguments that have been taken so far."""

    def __init__(self, text: Text, example: Iterator[Any]) -> None:
        self.text, self.example, self.count = text, example, 0

    def take(self, structure: TreeDef, source: str) -> None:
        """One argument, which may be a container."""
        if structure.kind is None:
            self._leaf(source, next(self.example))
            return
        text, name = self.text, self.text.new("t")
        text.add(f"{name} = {source}")
        if structure.kind not in (tuple, list, dict):
            text.scope["tree_flatten"] = tree_flatten
            text.add(f"{name}, structure = tree_flatten({name})")
            text.miss_if(f"structure != {text.name(structure)}")
            for i in range(structure.num_leaves):
                self._leaf(f"{name}[{i}]", next(self.example))
            return
        size = len(structure.children)
        text.miss_if(f"{name}.__class__ is not {structure.kind.__name__} or len({name}) != {size}")
        keys = [text.name(k) for k in structure.rest] if structure.kind is dict else None
        if keys is not None and size > 1:
            text.miss_if(f"(*{name},) != {text.name(structure.rest)}")  # in this order
        for i, child in enumerate(structure.children):
            self.take(child, f"{name}[{i}]" if keys is None else f"{name}.get({keys[i]}, MISS)")

    def _leaf(self, source: str, value: Any) -> None:
        text = self.text
        if isinstance(value, Given):
            name = text.new("p")
            text.add(f"{name} = {source}")
            kind = type(value.holder[value.index])
            text.miss_if(f"{name}.__class__ is not {kind.__name__}")
            if kind is int:
                text.miss_if(f"not {-LARGEST} < {name} < {LARGEST}")
            text.given.append((value, name))
            return
        if not isinstance(value, Looks):
            name = text.new("p")
            text.add(f"{name} = {source}")
            text.miss_if(f"{name} is not {text.name(value)}{_but_equal(text, name, value)}")
            return
        text.add(f"x{self.count} = {source}")
        text.miss_if(differs(text, self.count, value))
        self.count += 1


def differs(text: Text, i: int, looks: Looks) -> str:
    """Whether tensor ``xi`` looks otherwise; its array is ``ai`` then."""
    history = f"x{i}._node {'is' if looks.history else 'is not'} None"
    if looks.leaf is not None:
        history += f" or x{i}._node.is_leaf is not {looks.leaf}"
    device, where = "", text.name(looks.device)
    if looks.arrays is not np.ndarray:  # mostly the same object, which is seen at once
        device = f" or (a{i}.device is not {where} and a{i}.device != {where})"
    return (
        f"x{i}.__class__ is not {text.name(looks.kind)} or {history} "
        f"or (a{i} := x{i}._array).__class__ is not {text.array_class(looks.arrays)} "
        f"or a{i}.shape != {text.name(looks.shape)} or a{i}.dtype is not {text.name(looks.dtype)} "
        f"or a{i}.strides != {text.name(looks.strides)}{device}"
    )


def _but_equal(text: Text, name: str, value: Any) -> str:
    """Numbers need not be the same object; NaN, and what is no number, must."""
    if type(value) not in PLAIN or value is None or isinstance(value, bool):
        return ""
    zero = f" or {name} == 0" if isinstance(value, float | complex) else ""  # 0.0 is not -0.0
    return f" and ({name}.__class__ is not {text.name(type(value))} or {name} != {text.name(value)}{zero})"


def firsts(leaves: Iterable[Any]) -> tuple[int, ...]:
    """Of each tensor among the leaves, where it stands first: a function may ask whether two are one (``q is k``)."""
    first = dict[int, int]()
    return tuple([first.setdefault(id(x), i) for i, x in enumerate(x for x in leaves if isinstance(x, Tensor))])


def same(text: Text, looks: Sequence[Looks], first: Sequence[int]) -> None:
    """Tensors that were one are one, and those that were not are not."""
    alike = dict[Looks, list[int]]()
    for i, at in enumerate(first):
        if at == i:
            alike.setdefault(looks[i], []).append(i)
        else:
            text.miss_if(f"x{i} is not x{at}")
    for group in alike.values():
        if len(group) == 2:
            text.miss_if(f"x{group[0]} is x{group[1]}")
        elif len(group) > 2:
            text.miss_if(f"len({{{', '.join(f'id(x{i})' for i in group)}}}) != {len(group)}")


def apart(text: Text, graph: Graph, first: Sequence[int]) -> None:
    """A graph that writes takes its tensors for different memory, which can be written to."""
    kinds = {w.kind for w in graph.program.writes}
    if not kinds & {"argument", "captured"} or not first:
        return
    for w in graph.program.writes:
        if w.kind == "argument" and graph.program.arguments[w.index].spec.device.type == "cpu":
            text.unless(f"a{w.index}.flags.writeable")
    owners = frozenset(id(x._array if x._array.base is None else x._array.base) for x in graph.binding.captured)
    others = [i for i, at in enumerate(first) if at == i]
    for i in others:
        text.add(f"o{i} = id(a{i} if a{i}.base is None else a{i}.base)")
    text.miss_if(" or ".join(f"o{i} in {text.name(owners)}" for i in others))
    if "argument" in kinds:
        text.miss_if(f"len({{{', '.join(f'o{i}' for i in others)}}}) != {len(others)}")


def origins(text: Text, looks: Sequence[Looks], first: Sequence[int], asked: Asked) -> None:
    """Arguments that require grad do not come from what gradients are asked for, or from each other."""
    nodes = ", ".join([f"x{i}._node" if x.history and first[i] == i else "None" for i, x in enumerate(looks)])
    text.scope["share_origins"] = share_origins
    text.miss_if(f"share_origins(({nodes}, ), {text.name(asked)})")


# ---- what was taken for granted


class Questions:
    """What has to be as it was, as lines of Python.

    Attributes:
        same: expressions, and the objects that they have to be
        wholes: containers that hold the objects that they held, or equal ones
        conditions: what must not be
    """

    def __init__(self, text: Text) -> None:
        self.text, self.same, self.conditions = text, dict[str, Any](), dict[str, None]()
        self.wholes: list[tuple[Any, tuple[Any, ...]]] = []  # and what that was

    def entry(self, container: Any, key: Any) -> None:
        name, key_name = self.text.name(container), self.text.name(key)
        if not isinstance(container, dict | MappingProxyType):
            self.same[f"{name}[{key}]"] = container[key]
        elif key in container:
            self.same[f"{name}[{key_name}]"] = container[key]
        else:
            self.conditions[f"{key_name} in {name}"] = None

    def whole(self, container: Any) -> None:
        values = container.values() if isinstance(container, dict) else container
        if not len(container):
            self.conditions[self.text.name(container)] = None
        elif all([_comparable(v) for v in (*container, *values)]):
            parts = (container, values) if isinstance(container, dict) else (values,)
            self.wholes += [(part, tuple(part)) for part in parts]
        else:
            self.conditions[f"len({self.text.name(container)}) != {len(container)}"] = None
            for key in container if isinstance(container, dict) else range(len(container)):
                self.entry(container, key)

    def lines(self) -> list[str]:
        """Containers are compared all at once, in a loop that is not one of Python; something that is in none of them
        stands between two.
        """
        name = self.text.name
        out = [f"if {condition}: return MISS" for condition in self.conditions]
        if self.wholes:
            then = [value for _, values in self.wholes for value in (*values, MISS)]
            held = ", ".join([f"*{name(whole)}, MISS" for whole, _ in self.wholes])
            out.append(f"if [{held}] != {name(then)}: return MISS")
        if self.same:
            alike = " and ".join([f"{now} is {name(thing)}" for now, thing in self.same.items()])
            line = f"    if not ({alike}): return MISS"
            out += ["try:", line, "except (LookupError, ValueError, AttributeError): return MISS"]
        return out


class Guarded:
    """Attributes and containers that hold what they held at the trace. Native code looks first; where it does not find the
    same objects, or cannot look, Python asks: there may be equal ones. (Its lines are compiled when they are needed.)
    """

    def __init__(self, text: Text) -> None:
        self.text, self.rows = text, Rows()
        self.seen, self.others = Questions(text), Questions(text)  # by native code, or by Python alone

    def attribute(self, thing: Any, name: str) -> None:
        questions = self.seen if self.rows.attribute(thing, name) else self.others
        questions.same[f"{self.text.name(thing)}.{name}"] = getattr(thing, name)

    def entries(self, container: Any, keys: Sequence[Any]) -> None:
        """What a container has for these keys, or that it has nothing."""
        at_once = self.rows.entries(container, keys)
        for key in keys:
            questions = self.seen if at_once or self.rows.entry(container, key) else self.others
            questions.entry(container, key)

    def whole(self, container: Any) -> None:
        """All values of a dictionary, or items of a list."""
        (self.seen if self.rows.whole(container) else self.others).whole(container)

    def lines(self) -> list[str]:
        asked = unchanged()
        if asked is None or not self.rows.rows:
            return [*self.seen.lines(), *self.others.lines()]
        table = self.rows.table()
        name = self.text.name
        name((table, self.rows))  # so they live
        looks = name(self.text.later(self.seen.lines))
        line = f"if not same and {looks}() is MISS: return MISS"
        return [f"same = {name(asked)}({table.ctypes.data})", line, *self.others.lines()]


def guards(text: Text, graph: Graph, drawn: Sequence[Any] = (), renewed: Sequence[Any] = ()) -> Again | None:
    """Modules, optimizers, captured tensors and names are as they were at the trace.

    Args:
        drawn: where random numbers are put that the graph asks for: what is decided by these comes later
        renewed: nodes of leaves whose gradients may be written into what they have, see `Again`

    Returns:
        where these are, if native code can look; where nothing else has them the variable ``same`` is 1
    """
    guarded = Guarded(text)
    for guard in graph.binding.guards:
        if isinstance(guard, StillFloat):  # before Python decides by it
            _float(text, guard)
    for guard in graph.binding.guards:
        if isinstance(guard, CapturedAsTheyWere):
            for x, _ in guard.tensors:
                _as_it_was(guarded, x)
        elif isinstance(guard, Decision):
            if not drawn or last_drawn(guard, drawn[0]) < 0:
                text.unless(f"{decision_of(text, guard)} is {guard.answer}")
        elif not isinstance(guard, Modes | StillFloat):
            answers = guard.answers() if isinstance(guard, Unchanged) else None
            if answers is None:
                text.unless(f"{text.name(guard.changed)}() is None")
            else:
                holding(guarded, answers)
    looks = bool(renewed and guarded.rows.rows and unchanged() is not None)
    again = Again(guarded.rows, renewed) if looks else None
    text.add(*guarded.lines())
    return again


def decision_of(text: Text, guard: Decision) -> str:
    """What Python decides by numbers of the host, as Python."""
    (part, *others) = guard.ask.parts
    if guard.ask.name == "__bool__" and isinstance(part, Entry) and not others:
        return f"({value_of(text, part)} != 0)"
    return value_of(text, guard.ask)


def last_drawn(guard: Decision, holder: Any) -> int:
    """The last random number that a decision goes by, -1 if there is none."""
    pending, last = list(guard.ask.parts), -1
    while pending:
        part = pending.pop()
        if isinstance(part, Formula):
            pending += part.parts
        elif isinstance(part, Entry) and part.holder is holder:
            last = max(last, part.keys[0])
    return last


def value_of(text: Text, part: Any) -> str:
    """A part of a formula, as Python: an argument is what this call was given, not what another one was."""
    if isinstance(part, Formula):
        kind = part.kind.__name__
        values = [f"{'' if x is None else kind}({value_of(text, x)})" for x in part.parts]
        return f"{text.name(part.function)}({', '.join(values)})"
    if isinstance(part, Entry):
        own = {Entry(where.holder, (where.index,)).identity(): name for where, name in text.given}
        return own.get(part.identity()) or part.source(text.name)
    return f"{text.name(part)}()" if callable(part) else text.name(part)


def _float(text: Text, guard: StillFloat) -> None:
    """A number that is read is a float."""
    entry = guard.entry
    if isinstance(entry.holder, CellType):
        text.unless(f"{text.name(guard.changed)}() is None")  # a cell may be empty
    else:
        text.unless(f"{text.name(entry.holder)}.get({text.name(entry.keys[0])}).__class__ is float")


def _as_it_was(guarded: Guarded, x: Tensor) -> None:
    """A captured tensor has its memory, its history and its hooks."""
    guarded.attribute(x, "_array")
    guarded.attribute(x, "_node")
    if x._node is not None:
        guarded.attribute(x._node, "_hooks")
    if isinstance(x._node, AccumulateGrad) and x._node._hooks is not None:
        for kind in HOOKS_OF_LEAVES:
            guarded.whole(getattr(x._node._hooks, kind))


def holding(guarded: Guarded, answers: Answers) -> None:
    """Containers hold the objects that they hold now."""
    for container, keys in answers:
        if isinstance(container, CellType):
            guarded.attribute(container, "cell_contents")
        elif keys is None:
            guarded.whole(container)
        elif not isinstance(container, dict | list | MappingProxyType):
            for name in keys:
                guarded.attribute(container, name)
        else:
            guarded.entries(container, keys)


def _comparable(value: Any) -> bool:
    """Whether ``==`` says no of every object that may take the place of this one and is another."""
    kind = type(value)
    if kind in (bool, str, bytes, type(None), dict, set, frozenset, tuple, list, np.dtype):
        return not isinstance(value, tuple | list) or all([_comparable(v) for v in value])
    return kind is int or (kind.__eq__ is object.__eq__)
