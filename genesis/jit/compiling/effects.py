"""What a function does besides computing with tensors: a compiled call would not do it again.

While the function runs, a profile function sees the frames of the program and what they call in C. Calls of functions
that are known to be pure are fine, and so are writes to objects that were made meanwhile; anything else is an effect.
The frames of this package are trusted: what it does besides is known to a trace, or refused by it.
"""

from __future__ import annotations

import functools
import gc
import itertools
import os
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, ValuesView
from contextlib import contextmanager
from dataclasses import is_dataclass
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from genesis.arrays.memory import DeviceArray
from genesis.base.tracebacks import LIBRARY
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.tracing import PLAIN, Dependable, HostNumber, depends
from genesis.jit.compiling.pure import BUILDING, is_pure, takes_floats
from genesis.jit.compiling.stores import (
    _LOADS,
    Chain,
    Store,
    makes,
    names_of,
    reads_of,
    remainders_of,
    steps_of,
    stores_of,
)
from genesis.jit.compiling.young import is_young, stores_in

Position = tuple[int, int | None]


class Effect(NamedTuple):
    """Something that a replay would not do again, and where."""

    what: str
    filename: str
    line: int

    def __str__(self) -> str:
        return f"{self.what} at {os.path.basename(self.filename)}:{self.line}"


class Leaked(BaseException):
    """Raised where a function in C may take a number of the host for a constant; with the numbers that the code reads."""


class Conflict(BaseException):
    """Raised where the function reads what a statement changes that Python does at each call: its code, and the name."""


class Moving(BaseException):
    """Raised where the function reads a float, before a statement changes it that Python does: where it is found."""


class Stopped(BaseException):
    """Raised into a function that is being traced, before it has an effect."""


_COPYING = frozenset(["replace", "asdict", "astuple"])  # of dataclasses, which read all fields
_CACHING: Any = type(functools.lru_cache(len))
_STDLIB, _NUMPY = os.path.dirname(os.__file__), os.path.dirname(np.__file__)
_EINOPS = f"{os.sep}einops{os.sep}"  # it calls methods of tensors, and writes to caches of its own alone
_OURS, _THEIRS, _BETWEEN, _FOREIGN = "of this package", "of the program", "of Python or NumPy", "of another package"
_LOOKING, _WRITING = "says what a tensor is", "writes to items of one"
_LOOKS = [
    "shape", "dtype", "device", "ndim", "size", "dim", "numel", "itemsize", "element_size", "nbytes", "stride",
    "is_contiguous", "__len__", "requires_grad", "is_leaf", "grad_fn",
]  # fmt: skip  # of tensors: they say what one is
_CHANGING = ("random", "time", "datetime", "secrets", "uuid")  # modules whose functions give something else each time


class Watch:
    """Looks on while a function runs.

    Attributes:
        effect: the first effect
        codes: the code objects of the program that ran
        reads: what they read from objects: (dictionary or list, key, value, its name)
        wholes: containers of which they may read everything, and their names
        given: the containers among the arguments, by id
        tensors: those from outside that were asked for what they are: a shape, whether they require grad
    """

    def __init__(self, known: set[CodeType] | None = None) -> None:
        self.known = known  # code that may run while tracing: None outside of a trace
        self.effect: Effect | None = None
        self.writes: set[tuple[str, int]] = set()  # the files and lines of those that write to objects
        self.effects: dict[Any, list[tuple[CodeType, Position]]] = {}  # all of them: the positions on the way
        self.codes: set[CodeType] = set()
        self.reads: list[tuple[Any, Any, Any, str]] = []
        self.wholes: list[tuple[Any, str]] = []
        self.given: set[int] = set()
        self._met: dict[int, tuple[Any, Any, str]] = {}  # with what is young if they are
        self._seen: dict[tuple[int, Any], tuple[Any, tuple[Any, Any, Any, str]]] = {}
        self._kinds: dict[CodeType, str] = {} if known is None else dict.fromkeys(_looks(), _LOOKING)
        self._kinds[Tensor.__setitem__.__code__] = _WRITING
        self._written: dict[int, set[int]] = {}  # by frame: the instructions that wrote to items of tensors
        self._frames: set[int] = set()
        self._importing: FrameType | None = None
        self.lines: set[tuple[str, int]] = set()  # of programs, that are known to write to objects: they must not run
        self.names: Callable[[CodeType], set[str] | None] = lambda code: None  # what code reads that was written anew
        self._containers: dict[int, tuple[Any, CodeType, str]] = {}  # lists and dictionaries that the program met
        self.tensors: dict[int, Tensor] = {}  # by id
        self.of_modules: set[tuple[int, Any]] = set()  # attributes of modules that were read: (dictionary, key)
        self.seeing: Any = None  # the profile function
        self.unknown = False  # whether code ran that had not been looked at
        self.changed: Callable[[], Iterable[tuple[Any, Any, Any]]] = tuple  # what is changed by what Python does later
        self._is_behind = False  # see `behind`
        self._caches: dict[int, tuple[Any, int]] = {}  # functions with a cache, and how often it had no answer
        self._properties: list[tuple[dict[str, Any], str]] = []
        self._texts = Counter[str]()
        self.numbers = False  # whether numbers of the host stand for floats: functions in C would not see that

    def __enter__(self) -> Watch:
        self._before, self._collects = sys.getprofile(), gc.isenabled()
        gc.collect(0)  # what is young from now on was made meanwhile
        gc.disable()
        self.seeing = self._events()
        sys.setprofile(self.seeing)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(self._before)
        if self._collects:
            gc.enable()

    @contextmanager
    def behind(self) -> Iterator[None]:
        """Look on once more, while gradients are taken of what the function gave."""
        self._is_behind = True
        sys.setprofile(self.seeing)
        try:
            yield
            self.settle()
        finally:
            sys.setprofile(None)

    def _events(self) -> Callable[[FrameType, str, Any], None]:
        """What sees each call: most are of this package, and cost two looks into dictionaries."""
        kind_of = self._kinds.get

        def event(frame: FrameType, event: str, arg: Any) -> None:
            if kind_of(frame.f_code) is not _OURS or self._importing is not None:
                self._event(frame, event, arg)

        return event

    def _event(self, frame: FrameType, event: str, arg: Any) -> None:
        code = frame.f_code
        kind = self._kinds.get(code) or self._kind(code)
        if self._importing is not None or code.co_name == "<module>":
            self._import(frame, event)
            return
        if kind is _LOOKING or kind is _WRITING:
            if event == "call" and kind is _LOOKING:
                given = frame.f_locals  # of a method that asks classes of tensors first, all arguments are in one
                self._looked(given["self"] if "self" in given else given["_args"][0])
            elif event == "call" and frame.f_back is not None:
                self._written.setdefault(id(frame.f_back), set()).add(frame.f_back.f_lasti)
            return
        if kind is _FOREIGN and self._caller(frame) is _OURS:
            return
        if kind is _OURS or kind is _BETWEEN:
            if kind is _BETWEEN and event == "call":
                self._left_the_program(frame)
            return
        if event == "c_call":
            self._called(frame, arg)
        elif event == "call":
            self._entered(frame, code)
        elif event == "return":
            self._left(frame, code)

    def _looked(self, x: Tensor) -> None:
        """A tensor is asked for what it is. What stands for one that is traced knows it."""
        if isinstance(getattr(x, "_array", None), np.ndarray | DeviceArray):
            self.tensors[id(x)] = x

    def _kind(self, code: CodeType) -> str:
        """Whose code this is."""
        name = code.co_filename
        made = code.co_qualname.startswith("__create_fn__.")  # by dataclasses: they set attributes of what is new
        if LIBRARY[name] or name.startswith("<frozen") or _EINOPS in name or made:
            kind = _OURS
        elif name.startswith(_NUMPY) or (name.startswith(_STDLIB) and "site-packages" not in name):
            kind = _BETWEEN
        elif "site-packages" in name:
            kind = _FOREIGN
        else:
            kind = _THEIRS
        if code.co_name != "<module>":  # it is imported: that is looked for
            self._kinds[code] = kind
        return kind

    def _caller(self, frame: FrameType) -> str:
        """Who called code of another package."""
        outer = frame.f_back
        while outer is not None:
            kind = self._kinds.get(outer.f_code) or self._kind(outer.f_code)
            if kind is _OURS or kind is _THEIRS:
                return kind
            outer = outer.f_back
        return _THEIRS

    def _import(self, frame: FrameType, event: str) -> None:
        """What an import does is done once anyway."""
        if event == "call" and self._importing is None:
            self._importing = frame
        elif event == "return" and frame is self._importing:
            self._importing = None

    def _left_the_program(self, frame: FrameType) -> None:
        """The program calls a function of Python or NumPy, which is not looked into."""
        outer, name = frame.f_back, frame.f_code.co_filename
        if outer is None or self._kinds.get(outer.f_code) is not _THEIRS:
            return
        module = os.path.relpath(name, _STDLIB).partition(os.sep)[0].removesuffix(".py")
        if module not in BUILDING if not name.startswith(_NUMPY) else "random" in name:
            self._note(f"a call of {frame.f_code.co_name}", outer)

    def _note(self, what: str, frame: FrameType, instruction: int | None = None) -> None:
        at = position(frame.f_code, frame.f_lasti if instruction is None else instruction)
        if instruction is not None:
            self.writes.add((frame.f_code.co_filename, at[0]))
        if self.effect is None:
            self.effect = Effect(what, frame.f_code.co_filename, at[0])
        if (frame.f_code, at) not in self.effects:
            self.effects[frame.f_code, at] = self._on_the_way(frame, at)
        if self.known is not None:
            raise Stopped

    def _on_the_way(self, frame: FrameType, at: Position) -> list[tuple[CodeType, Position]]:
        """The positions in the program that led to one, that one first."""
        lines, outer = [(frame.f_code, at)] if self.is_of_program(frame.f_code) else [], frame.f_back
        while outer is not None:
            if id(outer) in self._frames and self.is_of_program(outer.f_code):
                lines.append((outer.f_code, position(outer.f_code, outer.f_lasti)))
            outer = outer.f_back
        return lines

    # ---- frames

    def _entered(self, frame: FrameType, code: CodeType) -> None:
        if code.co_flags & 0x2A0 and id(frame) not in self._frames and _resumed(frame):
            self._note("a generator from outside goes on", frame)
        self._frames.add(id(frame))
        self.codes.add(code)
        if self.known is not None:
            for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
                self._meet_whole(frame.f_locals.get(name), name)  # a default, or what code in C hands over
            self._meet_caches(frame, code)
        if self.known is not None and code not in self.known and self._may_do_more(frame, code):
            self.unknown = True
            what = "may do more than compute" if self._is_behind else "runs for the first time"
            self._note(f"{code.co_name} {what}", frame)
        for target, name, line, _, at in stores_of(code) if self.lines else ():
            if (code.co_filename, line) in self.lines:
                self._note(f"a write to {'.'.join(target or ())}.{name}", frame, at)

    def _meet_caches(self, frame: FrameType, code: CodeType) -> None:
        """What keeps results among what the code reads: functions with a cache, and properties that have none yet."""
        for from_globals, chain in names_of(code):
            value = (frame.f_globals if from_globals else frame.f_locals).get(chain[0])
            for name in (*chain[1:], None):
                if isinstance(value, _CACHING):
                    self._caches.setdefault(id(value), (value, value.cache_info().misses))
                stores = list(stores_in(value, name)) if name is not None else []
                value = stores[-1][2] if stores else None
                if isinstance(value, functools.cached_property) and len(stores) > 1 and name not in stores[0][0]:
                    self._properties.append((stores[0][0], name))

    def forget_cached(self) -> None:
        """Forget the results of a trace that failed: they are no tensors any more."""
        for function, misses in self._caches.values():
            if function.cache_info().misses != misses:
                function.cache_clear()
        for own, name in self._properties:
            own.pop(name, None)

    def _may_do_more(self, frame: FrameType, code: CodeType) -> bool:
        """Whether code that has not run before could have an effect that is seen too late to stop it: a write, or a step
        of an iterator from outside.
        """
        stores = stores_of(code)
        if self._is_behind:  # nobody else would have seen it before
            stores = tuple([s for s in stores if not self._is_own(frame, code, s)])
        if stores or code.co_flags & 0x280:  # or it is a coroutine
            return True
        for from_globals, chain in names_of(code):
            value = (frame.f_globals if from_globals else frame.f_locals).get(chain[0])
            for name in (*chain[1:], None):
                inside = value.values() if isinstance(value, dict) else value
                if any([isinstance(x, Iterator) and not is_young(x) for x in (value, *_of_some(inside))]):
                    return True
                stores = list(stores_in(value, name)) if name is not None else []
                value = stores[-1][2] if stores else None
        return False

    def _is_own(self, frame: FrameType, code: CodeType, store: Store) -> bool:
        """Whether code that begins writes to what it has made itself by then, or to an argument that it may write to."""
        if store.target is None:
            return False
        if store.target[0] in frame.f_locals:
            return self._may_write(self._value(frame, store.target), store.name)
        return len(store.target) == 1 and store.target[0] in makes(code)

    def _left(self, frame: FrameType, code: CodeType) -> None:
        written = self._written.pop(id(frame), ())
        for target, name, _, sure, at in stores_of(code):
            if name == "grad" and (target is None or not sure):
                continue  # a tensor says itself that its .grad is set
            if at in written and (target is None or not sure):
                continue  # and that it is written to
            if target is None:
                known = name.startswith("nonlocal ") and self._is_inner(frame, name.removeprefix("nonlocal "))
                if not known:
                    self._note(f"a write to {name}" if name else "a write to an object", frame, at)
            elif not sure or not self._may_write(self._value(frame, target), name):
                self._note(f"a write to {'.'.join(target)}{'.' + name if name else '[...]'}", frame, at)
        for from_globals, chain in reads_of(code):
            self._read(frame, from_globals, chain)
        if self.numbers and any([not c or isinstance(self._value(frame, c), str) for c in remainders_of(code)]):
            raise Leaked(self._sources_of(frame))  # text is made of floats past their methods
        if self.known is not None:
            self._meet(frame, code)

    def _meet(self, frame: FrameType, code: CodeType) -> None:
        """The containers among the variables that code reads."""
        names, variables = self.names(code), frame.f_locals
        for name in {s.value for s in steps_of(code) if s.name in _LOADS} if names is None else names:
            value = variables.get(name)
            if isinstance(value, list | dict | set | deque):
                self._containers[id(value)] = value, code, name

    def _is_inner(self, frame: FrameType, name: str) -> bool:
        """Whether a variable of an outer function belongs to one that runs meanwhile."""
        outer = frame.f_back
        while outer is not None:
            if id(outer) in self._frames and name in outer.f_code.co_cellvars:
                return True
            outer = outer.f_back
        return False

    def _value(self, frame: FrameType, chain: Chain) -> Any:
        """What a chain of names is now."""
        value = frame.f_locals.get(chain[0], frame.f_globals.get(chain[0]))
        for name in chain[1:]:
            stores = list(stores_in(value, name))
            value = stores[-1][2] if stores else None
        return value

    def _may_write(self, x: Any, name: str) -> bool:
        if isinstance(x, Tensor):
            return name in ("", "grad", "data", "requires_grad") or is_young(x)
        return is_young(x)

    def _read(self, frame: FrameType, from_globals: bool, chain: tuple[Any, ...]) -> None:
        """What is read from the outside must be the same at the next call."""
        names = frame.f_globals if from_globals else frame.f_locals
        if chain[0] not in names:
            return
        value, text = names[chain[0]], chain[0]
        outside = from_globals or chain[0] in frame.f_code.co_freevars  # else it may be another one at each call
        if from_globals:
            self._check(frame, names, chain[0], value, text)
            self._noted(names, names, chain[0], value, f"the global {text}")
        for name in chain[1:]:
            module = value.__name__ if isinstance(value, ModuleType) else ""
            root = module.partition(".")[0]
            if root in _CHANGING or module.startswith("numpy.random"):
                self._note(f"a use of {text}.{name}", frame)
            if module.startswith(("numpy", "genesis")) or (isinstance(value, Tensor) and not _has_own(value, name)):
                return
            if isinstance(value, Dependable):
                depends(value)
            if name == "__dict__":
                self._meet_any(value, text)
                return
            if outside and isinstance(name, str):  # a method of a container
                self._meet_whole(value, text)
            stores, whole = list(stores_in(value, name)), text
            text = f"{text}[{name[0]!r}]" if isinstance(name, tuple) else f"{text}.{name}"
            for held, key, inside in stores:
                self._check(frame, held, key, inside, text)
                if self.known is not None and isinstance(inside, list | dict | set | deque):
                    self._containers[id(inside)] = inside, frame.f_code, text
                if not isinstance(held, dict) or not isinstance(value, Dependable):
                    self._noted(value, held, key, inside, text)
                else:
                    self.of_modules.add((id(held), key))
                    if type(inside) not in PLAIN and held is value.__dict__:
                        self._noted(value, held, key, inside, text)
            if not stores or stores[-1][2] is None:
                text = whole
                break
            outside = root not in sys.stdlib_module_names and not (isinstance(value, Dependable) and value._holders())
            value = stores[-1][2]
        if outside:
            self._meet_whole(value, text)
            if is_dataclass(value) and not isinstance(value, type) and _COPYING.intersection(frame.f_code.co_names):
                self._meet_whole(getattr(value, "__dict__", None), text, value)

    def _meet_whole(self, value: Any, text: str, owner: Any = None) -> None:
        """The end of a chain: if it is a container, all of it may be read. (The dictionary of an old object may be young.)"""
        if self.known is not None and isinstance(value, _CONTAINERS):
            self._met.setdefault(id(value), (owner or value, value, text))

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

    def is_of_program(self, code: CodeType) -> bool:
        return (self._kinds.get(code) or self._kind(code)) is _THEIRS

    def saw(self, frame: FrameType) -> bool:
        """Whether it is a frame of the program, and began meanwhile."""
        return id(frame) in self._frames and self.is_of_program(frame.f_code)

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
        if self.known is not None and id(held) not in self.given:
            self._seen.setdefault((id(held), name), (owner, (held, name, value, text)))

    def settle(self) -> None:
        """The function has returned: what it read of objects that it made itself is of no matter."""
        sys.setprofile(None)
        for container, key, _ in self.changed():
            if key is None and id(container) in self._containers:
                raise Conflict(*self._containers[id(container)][1:])
        self._containers.clear()
        young = {id(x) for x in gc.get_objects(generation=0)}
        texts = self._texts
        for owner, (held, name, value, text) in self._seen.values():
            if id(owner) not in young:
                texts[text] += 1
                self.reads.append((held, name, value, text if texts[text] == 1 else f"{text} ({texts[text]})"))
        self._seen.clear()
        self.tensors = {i: x for i, x in self.tensors.items() if i not in young}
        self._settle_wholes(young, texts)

    def _settle_wholes(self, young: set[int], texts: Counter[str]) -> None:
        """Containers, those in them, and the attributes that the program reads of the objects in them."""
        names = {name for code in self.codes for _, chain in reads_of(code) for name in chain[1:]}
        own = {id(container) for container, _, _ in self.changed()} | self.given
        pending, seen = [(x, text) for owner, x, text in self._met.values() if id(owner) not in young], set[int]()
        while pending:
            value, text = pending.pop()
            if id(value) in seen or id(value) in own:
                continue
            seen.add(id(value))
            if isinstance(value, _CONTAINERS):
                texts[text] += 1
                self.wholes.append((value, text if texts[text] == 1 else f"{text} ({texts[text]})"))
                if isinstance(value, np.ndarray):
                    continue
                items = value.items() if isinstance(value, dict) else zip(itertools.repeat("..."), value, strict=False)
                pending += [(x, f"{text}[{key!r}]") for key, x in items if _may_change(x)]
                continue
            attributes = value.__dict__
            for name in [name for name in attributes if name in names]:
                inside = f"{text}.{name}"
                texts[inside] += 1
                self.reads.append((attributes, name, attributes[name], f"{inside} ({texts[inside]})"))
                pending += [(attributes[name], inside)] if _may_change(attributes[name]) else []
        self._met.clear()

    # ---- calls in C

    def _called(self, frame: FrameType, function: Any) -> None:
        if self.numbers and takes_floats(function):
            raise Leaked(self._sources_of(frame))
        if not is_pure(function):
            name, owner = getattr(function, "__name__", "?"), getattr(function, "__self__", None)
            kind = "" if owner is None or isinstance(owner, ModuleType) else f"{type(owner).__name__}."
            self._note(f"a call of {kind}{name}", frame)


_CONTAINERS = (list, dict, set, deque, tuple, np.ndarray)


@functools.cache
def _looks() -> list[CodeType]:
    """The code of what says what a tensor is."""
    attributes = [Tensor.__dict__[name] for name in _LOOKS]
    return [getattr(x, "fget", x).__code__ for x in attributes]


def _may_change(x: Any) -> bool:
    """Whether something in a container is a container, or an object of the program."""
    if isinstance(x, _CONTAINERS):
        return True
    other = isinstance(x, Tensor | Dependable | type | ModuleType | FunctionType | np.ndarray)
    return not other and isinstance(getattr(x, "__dict__", None), dict)


def position(code: CodeType, instruction: int) -> Position:
    """The line and column of an instruction; the latter may not be known."""
    line, _, column, _ = next(itertools.islice(code.co_positions(), max(instruction, 0) // 2, None))
    return line or code.co_firstlineno, column


def _has_own(x: Tensor, name: Any) -> bool:
    """Whether a program has given a tensor an attribute of this name."""
    return isinstance(name, str) and name in x.__dict__


def _of_some(x: Any) -> Any:
    """What is in a container."""
    return x if isinstance(x, list | tuple | set | deque | ValuesView) else ()


def _resumed(frame: FrameType) -> bool:
    """Whether a generator has run before: it does not begin, it goes on."""
    return frame.f_lasti >= 0 and frame.f_code.co_code[frame.f_lasti + 1] & 3 != 0
