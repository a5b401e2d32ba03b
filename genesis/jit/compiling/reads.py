"""What the code of a program reads of the outside, while a function runs: a graph holds as long as that is the same."""

from __future__ import annotations

import functools
import gc
import itertools
import os
import sys
from array import array
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any
from weakref import ref

import numpy as np

from genesis.arrays.memory import DeviceArray
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.tracing import PLAIN, Dependable, HostNumber, depends
from genesis.jit.compiling.drawn import draws
from genesis.jit.compiling.leaves import NotKept
from genesis.jit.compiling.library import is_told
from genesis.jit.compiling.stops import Conflict, Moving
from genesis.jit.compiling.stores import _LOADS, Chain, hands_of, names_of, reads_of, steps_of
from genesis.jit.compiling.unnamed import asked_by, backing, draws_unseen, goes_on_unseen, read_unnamed, ways_of
from genesis.jit.compiling.young import is_young, stores_in

_CACHING: Any = type(functools.lru_cache(len))
_CHANGING = ("random", "time", "datetime", "secrets", "uuid")  # modules whose functions give something else each time
_WRITABLE = (list, dict, set, deque, bytearray, array, np.ndarray)
_CONTAINERS = (*_WRITABLE, tuple)
_CONSTANTS = {bool, int, float, complex, str, bytes, type(None)}


def along_names(frame: FrameType, code: CodeType) -> Iterator[tuple[Any, Any, list[Any]]]:
    """What code has in hand that begins, name by name: a value, the name that it asks it for (None: it ends there), and
    where that may be.
    """
    for from_globals, chain in names_of(code):
        value = (frame.f_globals if from_globals else frame.f_locals).get(chain[0])
        for name in (*chain[1:], None):
            stores = list(stores_in(value, name)) if name is not None else []
            yield value, name, stores
            value = stores[-1][2] if stores else None


class Reads:
    """The part of a `Watch` that knows what was read.

    Attributes:
        reads: what the program read from objects: (dictionary or list, key, value, its name)
        wholes: containers of which it may read everything, and their names
        parts: the same of those that have slots
        given: the containers among the arguments, by id
        tensors: those from outside that were asked for what they are: a shape, whether they require grad
        named: those that the program has in hand or in containers; it may ask for attributes that it has given them
        codes: the code objects of the program that ran
    """

    def __init__(self, known: set[CodeType] | None) -> None:
        self._drawing: Collection[CodeType] | None = None  # code that may draw random numbers now, and do nothing else
        self.known = known  # code that may run while tracing: None outside of a trace
        self.reads: list[tuple[Any, Any, Any, str]] = []
        self.wholes: list[tuple[Any, str]] = []
        self.parts: list[tuple[Any, str, set[Any]]] = []  # those of which some entries are slots: their keys
        self.given: set[int] = set()
        self.tensors: dict[int, Tensor] = {}  # by id
        self.named: dict[int, Tensor] = {}
        self.of_modules: set[tuple[int, Any]] = set()  # attributes of modules that were read: (dictionary, key)
        self.codes: set[CodeType] = set()
        self.setting: set[CodeType] = set()  # of statements that set slots, see `slots.py`
        self.slots: Collection[Any] = ()  # by identity
        self.names: Callable[[CodeType], set[str] | None] = lambda code: None  # what code reads that was written anew
        self.changed: Callable[[], Iterable[tuple[Any, Any, Any]]] = tuple  # what is changed by what Python does later
        self._met: dict[int, tuple[Any, Any, str, bool]] = {}  # with what is young if they are
        self._seen: dict[tuple[int, Any], tuple[Any, tuple[Any, Any, Any, str]]] = {}
        self._containers: dict[int, tuple[Any, CodeType, str]] = {}  # containers that the program met
        self._caches: dict[int, tuple[Any, Any]] = {}  # functions with a cache, and what it said of itself
        self._properties: list[tuple[dict[str, Any], str]] = []
        self._once: list[Any] = []  # the functions of these
        self._defaults: dict[int, defaultdict[Any, Any]] = {}  # by id
        self._texts = Counter[str]()

    def _note(self, what: str, frame: FrameType, instruction: int | None = None, held: Any = None) -> None:
        """The program does something that a compiled call would not do again."""
        raise NotImplementedError

    def _looked(self, x: Tensor) -> None:
        """A tensor is asked for what it is. What stands for one that is traced knows it."""
        if _is_plain(x):
            self.tensors[id(x)] = x

    def _name(self, x: Any) -> None:
        """The program has something in hand."""
        if _is_plain(x):
            self.named[id(x)] = x

    def _meet_caches(self, frame: FrameType, code: CodeType) -> None:
        """What keeps results among what the code reads: functions with a cache, and properties that have none yet."""
        for value, name, stores in along_names(frame, code):
            if isinstance(value, defaultdict):
                self._defaults[id(value)] = value
            if isinstance(value, _CACHING):
                self._caches.setdefault(id(value), (value, value.cache_info()))
            kept = stores[-1][2] if len(stores) > 1 and name not in stores[0][0] else None
            if isinstance(kept, functools.cached_property):
                self._properties.append((stores[0][0], name))
                self._once.append(kept.func)

    def runs_once(self, frame: FrameType | None) -> bool:
        """Whether a frame, or one that called it, is of a function whose results are kept."""
        once = [*self._once, *[function.__wrapped__ for function, _ in self._caches.values()]]
        codes = [code for function in once if (code := getattr(function, "__code__", None)) is not None]
        while frame is not None and codes:
            if any([frame.f_code is code for code in codes]):
                return True
            frame = frame.f_back
        return False

    def _is_default(self, x: Any) -> bool:
        """Whether a container is what one that makes its items when they are asked for has made: it may be a new one."""
        ahead = list(self._defaults.values())
        while ahead:
            values = list(ahead.pop().values())
            if any([value is x for value in values]):
                return True
            ahead += [value for value in values if isinstance(value, defaultdict)]
        return False

    def forget_cached(self) -> None:
        """Forget the results of a trace that failed: they are no tensors any more."""
        for function, before in self._caches.values():
            now = function.cache_info()  # what an error came out of is not in it
            if now.misses != before.misses and (now.currsize != before.currsize or now.currsize == now.maxsize):
                function.cache_clear()
        for own, name in self._properties:
            own.pop(name, None)

    def _meet(self, frame: FrameType, code: CodeType) -> None:
        """The containers among the variables that code reads."""
        names, variables = None if code in self.setting else self.names(code), frame.f_locals
        for name in {s.value for s in steps_of(code) if s.name in _LOADS} if names is None else names:
            value = variables.get(name)
            if isinstance(value, _WRITABLE):
                self._containers[id(value)] = value, code, name

    def _value(self, frame: FrameType, chain: Chain) -> Any:
        """What a chain of names is now."""
        scopes = (frame.f_locals, frame.f_globals, frame.f_builtins)
        value = next((scope[chain[0]] for scope in scopes if chain[0] in scope), None)
        for name in chain[1:]:
            if value is np and name == "random":  # it is imported when it is asked for
                value = np.random
                continue
            stores = list(stores_in(value, name))
            value = stores[-1][2] if stores else None
        return value

    def _read(self, frame: FrameType, from_globals: bool, chain: tuple[Any, ...]) -> None:
        """What is read from the outside must be the same at the next call."""
        names = frame.f_globals if from_globals else frame.f_locals
        if chain[0] not in names:
            if chain[0] == "globals":
                self._read_globals(frame, names)
            return
        value, text = names[chain[0]], chain[0]
        self._name(value)
        outside = from_globals or chain[0] in frame.f_code.co_freevars  # else it may be another one at each call
        if from_globals:
            self._check(frame, names, chain[0], value, text)
            self._noted(names, names, chain[0], value, f"the global {text}")
        for name in chain[1:]:
            module = value.__name__ if isinstance(value, ModuleType) else ""
            root = module.partition(".")[0]
            if isinstance(value, ModuleType) and is_told(value, name):
                return
            if root in _CHANGING or module.startswith("numpy.random"):
                self._note(f"a use of {text}.{name}", frame)
            if module.startswith(("numpy", "genesis")) or (isinstance(value, Tensor) and not _has_own(value, name)):
                return
            if isinstance(value, Dependable):
                depends(value, str(name))
            if name == "__dict__":
                self._meet_any(value, text)
                return
            if (outside or value is os.environ) and isinstance(name, str):  # a method of a container
                self._meet_whole(value, text)
            stores, whole = list(stores_in(value, name)), text
            text = f"{text}[{name[0]!r}]" if isinstance(name, tuple) else f"{text}.{name}"
            for held, key, inside in stores:
                self._check(frame, held, key, inside, text)
                if self.known is not None and isinstance(inside, _WRITABLE):
                    self._containers[id(inside)] = inside, frame.f_code, text
                if not isinstance(held, dict) or not isinstance(value, Dependable):
                    self._noted(value, held, key, inside, text)
                else:
                    self.of_modules.add((id(held), key))
                    if held is value.__dict__ and (type(inside) not in PLAIN or key not in held):  # a method is absent
                        self._noted(value, held, key, inside, text)
            if not stores or stores[-1][2] is None:
                text = whole
                break
            outside = root not in sys.stdlib_module_names and not (isinstance(value, Dependable) and value._holders())
            value = stores[-1][2]
            self._name(value)
        if outside:
            self._meet_whole(value, text)

    def _meet_iterators(self, frame: FrameType, code: CodeType) -> None:
        """What takes from an iterator in C makes no call."""
        for chain, at in hands_of(code).items():
            value = self._value(frame, chain)
            owner = self._value(frame, chain[:-1]) if len(chain) > 1 else value  # nothing tells how old iterators are
            unseen = goes_on_unseen(value) or draws_unseen(value) or draws_unseen(owner)
            unseen = unseen and not (self._drawing is not None and draws(value))
            if unseen and (isinstance(owner, ModuleType) or not is_young(owner)):
                self._note(f"{'.'.join(map(str, chain))} goes on", frame, max(at, 0) or None)

    def _read_globals(self, frame: FrameType, scope: dict[str, Any]) -> None:
        """``globals()["name"]``: what the text of a function may name."""
        for name in [x for x in frame.f_code.co_consts if isinstance(x, str) and x in scope]:
            self._check(frame, scope, name, scope[name], name)
            self._noted(scope, scope, name, scope[name], f"the global {name}")
            self._meet_whole(scope[name], name)

    def _read_unnamed(self, frame: FrameType, code: CodeType) -> None:
        """What code reads of the objects that it has in hand, without their names standing in it."""
        if self.known is None:
            return
        ways, hands = ways_of(code), {chain: self._value(frame, chain) for chain in hands_of(code)}
        getters = frozenset[str]().union(*[asked_by(x) for x in hands.values()])
        for chain, value in hands.items():
            self._name(value)
            if not (getters or any(ways) or type(value) is ref):
                continue
            text = ".".join(map(str, chain))
            if chain in ways.wholes and _may_change(value):
                self._meet_whole(getattr(value, "__dict__", None), text, value)
            for held, key, inside, name in read_unnamed(code, chain, value, getters):
                if type(inside) in PLAIN or isinstance(inside, Tensor) or _may_change(inside):
                    self._check(frame, held, key, inside, f"{text}.{name}")
                    self._noted(value, held, key, inside, f"{text}.{name}")
                    self._meet_whole(inside, f"{text}.{name}", value)

    def _meet_whole(self, value: Any, text: str, owner: Any = None, known: bool = False) -> None:
        """The end of a chain: if it is a container, all of it may be read, but where it is known elsewhere who reads it.
        (The dictionary of an old object may be young.)
        """
        value = backing(value)
        self._name(value)
        if self.known is not None and isinstance(value, _CONTAINERS):
            self._met.setdefault(id(value), (owner or value, value, text, known))

    def _meet_any(self, value: Any, text: str) -> None:
        """Any attribute may be read; numbers, tensors and modules in modules are looked at anyway."""
        if isinstance(value, Dependable):
            for name, inside in vars(value).items():
                if type(inside) not in PLAIN and not name.startswith("_"):
                    self._noted(value, vars(value), name, inside, f"{text}.{name}")
                    self._meet_whole(inside, f"{text}.{name}")
        elif not isinstance(value, ModuleType):
            self._meet_whole(getattr(value, "__dict__", None), text, value)

    def _check(self, frame: FrameType, held: Any, key: Any, inside: Any, text: str) -> None:
        """Refuse to read what is written to at each call only, not in the trace."""
        for container, name, before in self.changed():
            if container is held and name == key and type(before) is float:
                raise Moving(held, key, text)
            same = (container is held and name in (None, key)) or (container is inside and inside is not None)
            if same and before.__class__ is not HostNumber:
                raise Conflict(frame.f_code, text)

    def _sources_of(self, frame: FrameType) -> set[Any]:
        """Where the numbers are found that the code of a frame reads."""
        sources = set()
        for from_globals, (first, *names) in reads_of(frame.f_code):
            scope = frame.f_globals if from_globals else frame.f_locals
            value = scope.get(first)
            if from_globals:
                sources.add((id(scope), (first,)))
            for name in names:
                stores = list(stores_in(value, name))
                sources |= {(id(held), (key,)) for held, key, _ in stores}
                value = stores[-1][2] if stores else None
        return sources

    def _noted(self, owner: Any, held: Any, name: Any, value: Any, text: str) -> None:
        if self.known is not None and id(held) not in self.given and (id(held), name) not in self.slots:
            self._seen.setdefault((id(held), name), (owner, (held, name, value, text)))

    def settle(self) -> None:
        """The function has returned: what it read of objects that it made itself is of no matter."""
        sys.setprofile(None)
        for container, key, _ in self.changed():
            for value, *where in self._containers.values() if key is None else ():
                if value is container or _in_memory_of(value, [container]):
                    raise Conflict(*where)
        self._containers.clear()
        young = {*map(id, gc.get_objects(generation=0))}
        owners = {id(owner): owner for owner, *_ in (*self._seen.values(), *self._met.values()) if type(owner) is dict}
        young -= {i for i in owners if i in young and not is_young(owners[i])}
        texts = self._texts
        for owner, (held, name, value, text) in self._seen.values():
            if id(owner) not in young:
                texts[text] += 1
                self.reads.append((held, name, value, text if texts[text] == 1 else f"{text} ({texts[text]})"))
        self._seen.clear()
        self.tensors = {i: x for i, x in self.tensors.items() if i not in young}
        self.named = {i: x for i, x in self.named.items() if i not in young}
        self._settle_wholes(young, texts)

    def _slots_in(self, container: Any) -> set[Any]:
        """The keys of a container whose entries are slots."""
        if not self.slots or not isinstance(container, dict | list):
            return set()
        return {key for key in _keys(container) if (id(container), key) in self.slots}

    def _settle_wholes(self, young: set[int], texts: Counter[str]) -> None:
        """Containers, those in them, and the attributes that the program reads of the objects in them."""
        names = {name for code in self.codes for _, chain in reads_of(code) for name in chain[1:]}
        own = {id(container) for container, _, _ in self.changed()}
        changed = [container for container, key, _ in self.changed() if key is None]
        anywhere = {*map(id, changed)}
        attributes = {id(x) for owner, x, *_ in self._met.values() if x is getattr(owner, "__dict__", None)}
        pending = [(x, text, known) for owner, x, text, known in self._met.values() if id(owner) not in young]
        seen = set(self.given)
        while pending:
            value, text, known = pending.pop()
            if id(value) in seen:
                continue
            seen.add(id(value))
            if isinstance(value, _CONTAINERS):
                of_array = id(value) not in own and _in_memory_of(value, changed)
                if of_array or (id(value) in anywhere - attributes and not known):  # its length may be read
                    raise NotKept(f"{text} is read, which a statement changes that Python does")
                slots = self._slots_in(value)
                if id(value) not in own:
                    texts[text] += 1
                    part = value, text if texts[text] == 1 else f"{text} ({texts[text]})"
                    self.parts.append((*part, slots)) if slots else self.wholes.append(part)
                if isinstance(value, bytearray | array | np.ndarray) or _has_constants(value):
                    continue
                items = value.items() if isinstance(value, dict) else zip(itertools.repeat("..."), value, strict=False)
                items = list(items) if not slots else [(key, value[key]) for key in _keys(value) if key not in slots]
                self.named |= {id(x): x for _, x in items if _is_plain(x) and id(x) not in young}
                pending += [(x, f"{text}[{_shown(key)}]", known) for key, x in items if _may_change(x)]
                continue
            of_value = value.__dict__
            for name in [name for name in of_value if name in names and (id(of_value), name) not in self.slots]:
                inside = f"{text}.{name}"
                texts[inside] += 1
                self.reads.append((of_value, name, of_value[name], f"{inside} ({texts[inside]})"))
                pending += [(of_value[name], inside, known)] if _may_change(of_value[name]) else []
        self._met.clear()


def _shown(key: Any) -> str:
    return f"a {type(key).__name__}" if isinstance(key, Tensor) else repr(key)


def _keys(container: Any) -> Iterable[Any]:
    return container if isinstance(container, dict) else range(len(container))


def _in_memory_of(x: Any, others: Iterable[Any]) -> bool:
    """Whether an array is a view of others, or they of it."""
    return isinstance(x, np.ndarray) and any([isinstance(y, np.ndarray) and np.may_share_memory(x, y) for y in others])


def _has_constants(container: Any) -> bool:
    """Whether all that is in a container is numbers, texts and the like, which their types tell at once."""
    inside = container.values() if isinstance(container, dict) else container
    return set(map(type, inside)) <= _CONSTANTS


def _may_change(x: Any) -> bool:
    """Whether something in a container is a container, or an object of the program."""
    if isinstance(x, _CONTAINERS):
        return True
    other = isinstance(x, Tensor | Dependable | type | ModuleType | FunctionType | np.ndarray)
    return not other and isinstance(getattr(x, "__dict__", None), dict)


def _is_plain(x: Any) -> bool:
    """Whether something is a tensor with numbers, none of a trace."""
    return isinstance(x, Tensor) and isinstance(getattr(x, "_array", None), np.ndarray | DeviceArray)


def _has_own(x: Tensor, name: Any) -> bool:
    """Whether a program has given a tensor an attribute of this name."""
    return isinstance(name, str) and name in x.__dict__
