"""What a function does besides computing with tensors: a compiled call would not do it again.

While the function runs, a profile function sees the frames of the program and what they call in C. Calls of functions
that are known to be pure are fine, and so are writes to objects that were made meanwhile; anything else is an effect.
The frames of this package are trusted: what it does besides is known to a trace, or refused by it.
"""

from __future__ import annotations

import functools
import gc
import os
import random
import sys
from collections import deque
from collections.abc import Callable, Collection, Iterator, ValuesView
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CodeType, FrameType, ModuleType
from typing import Any

import numpy as np

from genesis.base.errors import message
from genesis.base.tracebacks import LIBRARY
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.tracing import PLAIN, Dependable, HostNumber
from genesis.core.graph.version import WRITES
from genesis.jit.compiling.drawn import draws
from genesis.jit.compiling.leaves import NotKept
from genesis.jit.compiling.pure import BUILDING, is_pure, takes_floats
from genesis.jit.compiling.reads import Reads, along_names
from genesis.jit.compiling.stops import Effect, Leaked, Position, Stopped, position
from genesis.jit.compiling.stores import (
    Store,
    identities_of,
    kinds_asked_of,
    makes,
    numbers_asked_of,
    reads_of,
    remainders_of,
    stores_of,
)
from genesis.jit.compiling.unnamed import next_of
from genesis.jit.compiling.values import HostValue, Number
from genesis.jit.compiling.writers import CONTAINERS, WRITING, Writer, receiver, writers_of
from genesis.jit.compiling.young import is_young

_STDLIB, _NUMPY = os.path.dirname(os.__file__), os.path.dirname(np.__file__)
_EINOPS = f"{os.sep}einops{os.sep}"  # it calls methods of tensors, and writes to caches of its own alone
_OURS, _THEIRS, _BETWEEN = "of this package", "of the program", "of Python or NumPy"
_OF_NUMPY = np.random.RandomState, np.random.Generator
_SOURCES = (random.Random, *_OF_NUMPY)  # of random numbers
_FOREIGN, _LIBRARY = "of a package that this one calls", "of another package"
_CALLED = {"cuda", "llvmlite", "ml_dtypes", "mpi4py", "nvmath", "safetensors", "scipy", "tqdm", "triton"}
_MODULES = os.path.join("genesis", "nn", "module.py")
_OF_STACKS = ("enter_context", "push", "callback", "close", "pop_all")  # of `contextlib`
_STANDING = HostNumber, Number, HostValue  # for what is another one at each call
_LOOKING, _WRITING = "says what a tensor is", "writes to items of one"
_LOOKS = [
    "shape", "dtype", "device", "ndim", "size", "dim", "numel", "itemsize", "element_size", "nbytes", "stride",
    "is_contiguous", "is_floating_point", "__len__", "requires_grad", "is_leaf", "grad_fn",
]  # fmt: skip  # of tensors: they say what one is


@dataclass(slots=True)
class Lines:
    """What is known of lines of the program, from calls that were watched: by file and line.

    Attributes:
        objects: what they change, or what they call does, where it is known; by id
        writing: those that call code of the program which writes to tensors
    """

    objects: dict[tuple[str, int], dict[int, Any]] = field(default_factory=dict)
    writing: set[tuple[str, int]] = field(default_factory=set)


class Watch(Reads):
    """Looks on while a function runs.

    Attributes:
        effect: the first effect
        seen: what is known of lines
    """

    def __init__(self, known: set[CodeType] | None = None) -> None:
        super().__init__(known)
        self.effect: Effect | None = None
        self.writes: set[tuple[str, int]] = set()  # the files and lines of those that write to objects
        self.effects: dict[Any, list[tuple[CodeType, Position]]] = {}  # all of them: the positions on the way
        self._kinds: dict[CodeType, str] = {} if known is None else dict.fromkeys(_looks(), _LOOKING)
        self._kinds[Tensor.__setitem__.__code__] = _WRITING
        self._written: dict[int, set[int]] = {}  # by frame: the instructions that wrote to items of tensors
        self._frames: set[int] = set()
        self._importing: FrameType | None = None
        self.lines: set[tuple[str, int]] = set()  # of programs, that are known to write to objects: they must not run
        self.seeing: Any = None  # the profile function
        self.seen = Lines()
        self._began: dict[int, int] = {}  # by frame: how often tensors had been written to
        self.unknown = False  # whether code ran that had not been looked at
        self.not_looked_at: CodeType | None = None  # this code
        self._is_behind = False  # see `behind`
        self.numbers = False  # whether numbers of the host stand for floats: functions in C would not see that

    def __enter__(self) -> Watch:
        self._before, self._collects = sys.getprofile(), gc.isenabled()
        if gc.get_freeze_count():  # what holds an object, and what has some code, is not found among what is frozen
            gc.unfreeze()
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

    @contextmanager
    def drawing(self, codes: Collection[CodeType]) -> Iterator[None]:
        """Code runs that may draw random numbers, for a block; before it does more it is stopped, and that is not noted."""
        if sys.getprofile() is not self.seeing:
            raise Stopped
        before, self._drawing = (self.effect, dict(self.effects), set(self.writes)), codes
        try:
            yield
        finally:
            self._drawing = None
            self.effect, self.effects, self.writes = before
            sys.setprofile(self.seeing)  # one that raises is taken away

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
        if kind is _FOREIGN and self._outer(frame, _OURS, _THEIRS, _LIBRARY)[0] is _OURS:
            return
        if kind is _LIBRARY and self._outer(frame, _OURS, _THEIRS)[1].endswith(_MODULES):  # by ``forward`` of a module
            self._in_library(frame, event, arg)
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
            if not code.co_flags & 0x2A0:  # a generator may go on; what is made next may have the place of any other
                self._frames.discard(id(frame))

    def _in_library(self, frame: FrameType, event: str, arg: Any) -> None:
        """Code of another package below its modules' ``forward``: what it writes into modules and
        into lists and dictionaries that were there before is an effect, and what it reads of modules is noted; it may
        keep account of other things, as most packages do.
        """
        code = frame.f_code
        if event == "c_call":
            owner = getattr(arg, "__self__", None)
            if isinstance(owner, (*CONTAINERS, *_SOURCES)) and not is_pure(arg) and not is_young(owner):
                self._called(frame, arg)
            return
        if event == "call" and self.known is not None:
            self._meet_caches(frame, code)
            self._refuse_generators(frame, code)
        module = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
        if not isinstance(module, Dependable):
            return
        stores = [store for store in stores_of(code) if store.sure and store.target == code.co_varnames[:1]]
        stores = stores and ([] if is_young(module) else stores)
        if event == "call" and stores:
            self._entered(frame, code)
        elif event == "return":
            for store in stores:
                self._note(f"a write to {code.co_varnames[0]}.{store.name}", frame, store.at)
            for from_globals, chain in reads_of(code):
                if not from_globals and chain[0] == code.co_varnames[0]:
                    self._read(frame, from_globals, chain)

    def _refuse_generators(self, frame: FrameType, code: CodeType) -> None:
        """Nobody is told of what is drawn from those of NumPy."""
        for value, _, _ in along_names(frame, code):
            if isinstance(value, _OF_NUMPY) and value is not np.random.mtrand._rand:
                text = (
                    f"{code.co_qualname} of an installed package may draw random numbers from a {type(value).__name__}"
                )
                raise NotKept(message("compile", f"{text} of NumPy, which a compiled call would not do again"))

    def _kind(self, code: CodeType) -> str:
        """Whose code this is."""
        name = code.co_filename
        made = code.co_qualname.startswith("__create_fn__.")  # by dataclasses: they set attributes of what is new
        made = made or code.co_names == ("_tuple_new",)  # by named tuples
        if LIBRARY[name] or name.startswith("<frozen") or _EINOPS in name or made:
            kind = _OURS
        elif name.startswith(_NUMPY) or (name.startswith(_STDLIB) and "site-packages" not in name):
            kind = _BETWEEN
        elif "site-packages" in name:
            package = name.rpartition("site-packages")[2].split(os.sep)[1]
            kind = _FOREIGN if package in _CALLED else _LIBRARY
        else:
            kind = _THEIRS
        if code.co_name != "<module>":  # it is imported: that is looked for
            self._kinds[code] = kind
        return kind

    def _outer(self, frame: FrameType, *kinds: str) -> tuple[str, str]:
        """Whose code the first frame around one is that is of these, and its file; not what dataclasses make."""
        outer = frame.f_back
        while outer is not None:
            kind, file = self._kinds.get(outer.f_code) or self._kind(outer.f_code), outer.f_code.co_filename
            if kind in kinds and (kind is not _OURS or LIBRARY[file]):
                return kind, file
            outer = outer.f_back
        return _THEIRS, ""

    def _import(self, frame: FrameType, event: str) -> None:
        """What an import does is done once anyway."""
        if event == "call" and self._importing is None:
            self._importing = frame
        elif event == "return" and frame is self._importing:
            self._importing = None

    def _left_the_program(self, frame: FrameType) -> None:
        """The program calls a function of Python or NumPy, which is not looked into."""
        outer, name = frame.f_back, frame.f_code.co_filename
        if outer is None or self._kinds.get(outer.f_code) not in (_THEIRS, _LIBRARY):
            return
        module = os.path.relpath(name, _STDLIB).partition(os.sep)[0].removesuffix(".py")
        if module == "random" and self._drawing is not None and draws(_method_of(frame)):
            return
        if module not in BUILDING if not name.startswith(_NUMPY) else "random" in name:
            self._note(f"a call of {frame.f_code.co_name}", outer)
        elif frame.f_code.co_name in (*WRITING, *_OF_STACKS) and frame.f_code.co_argcount:  # of a Counter, say
            held = frame.f_locals.get(frame.f_code.co_varnames[0])
            if held is not None and not is_young(held):
                self._note(f"a call of {type(held).__name__}.{frame.f_code.co_name}", outer, None, held)

    def _note(self, what: str, frame: FrameType, instruction: int | None = None, held: Any = None) -> None:
        at = position(frame.f_code, frame.f_lasti if instruction is None else instruction)
        if instruction is not None:
            self.writes.add((frame.f_code.co_filename, at[0]))
        if self.effect is None:
            self.effect = Effect(what, frame.f_code.co_filename, at[0])
        if (frame.f_code, at) not in self.effects:
            self.effects[frame.f_code, at] = self._on_the_way(frame, at)
        for code, (line, _) in self.effects[frame.f_code, at] if held is not None else ():
            self.seen.objects.setdefault((code.co_filename, line), {})[id(held)] = held
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
        if self._drawing is not None:
            if code not in self._drawing:
                self._note(f"a call of {code.co_name}", frame)
            self._meet_iterators(frame, code)
            return
        self._began[id(frame)] = WRITES[0]
        self.codes.add(code)
        if self.known is not None:
            for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
                self._meet_whole(frame.f_locals.get(name), name, known=True)  # a default, or what code in C hands over
            self._meet_caches(frame, code)
            self._meet_iterators(frame, code)
        if self.known is not None and code not in self.known and self._may_do_more(frame, code):
            self.unknown, self.not_looked_at = True, code
            what = "may do more than compute" if self._is_behind else "runs for the first time"
            self._note(f"{code.co_name} {what}", frame)
        for target, name, line, _, at in stores_of(code) if self.lines and code not in self.setting else ():
            if (code.co_filename, line) in self.lines:
                self._note(f"a write to {'.'.join(target or ())}.{name}", frame, at)

    def _may_do_more(self, frame: FrameType, code: CodeType) -> bool:
        """Whether code that has not run before could have an effect that is seen too late to stop it: a write, or a step
        of an iterator from outside.
        """
        stores = stores_of(code)
        if self._is_behind:  # nobody else would have seen it before
            stores = tuple([s for s in stores if not self._is_own(frame, code, s)])
        if stores or code.co_flags & 0x280:  # or it is a coroutine
            return True
        if any([self._changed_by(frame, code, writer) is not None for writer in writers_of(code)]):
            return True
        return any([not is_young(x) for value, _, _ in along_names(frame, code) for x in _iterators_in(value)])

    def _is_own(self, frame: FrameType, code: CodeType, store: Store) -> bool:
        """Whether code that begins writes to what it has made itself by then, or to an argument that it may write to."""
        if store.target is None:
            return False
        if store.target[0] in frame.f_locals:
            return self._may_write(self._value(frame, store.target), store.name)
        return len(store.target) == 1 and store.target[0] in makes(code)

    def _changed_by(self, frame: FrameType, code: CodeType, writer: Writer) -> Any:
        """What a writer changes that was there before, as far as the names tell by now."""
        held = self._value(frame, writer.target) if writer.target is not None else None
        if writer.kind == "call":
            *owner, name = writer.by
            if owner == ["?"]:  # ``super().__setattr__``
                owner = list(code.co_varnames[:1])
            held = receiver(
                name, self._value(frame, writer.by), self._value(frame, tuple(owner)) if owner else None, held
            )
            if isinstance(held, (Tensor, *PLAIN)):
                return None
        elif not writer.sure or not isinstance(held, CONTAINERS):
            return None
        return None if held is None or is_young(held) else held

    def _left(self, frame: FrameType, code: CodeType) -> None:
        if self._drawing is not None:
            return
        if self._began.pop(id(frame), WRITES[0]) != WRITES[0] and frame.f_back is not None:
            outer = frame.f_back
            self.seen.writing |= {
                (c.co_filename, line) for c, (line, _) in self._on_the_way(outer, position(outer.f_code, outer.f_lasti))
            }
        written = self._written.pop(id(frame), ())
        for target, name, _, sure, at in () if code in self.setting else stores_of(code):
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
        for writer in writers_of(code):
            held = self._changed_by(frame, code, writer)
            if held is not None:
                self._note(f"a write to a {type(held).__name__}", frame, writer.at, held)
        for from_globals, chain in reads_of(code):
            self._read(frame, from_globals, chain)
        self._read_unnamed(frame, code)
        if self.numbers and any([not c or isinstance(self._value(frame, c), str) for c in remainders_of(code)]):
            raise Leaked(self._sources_of(frame))  # text is made of floats past their methods
        if any(
            [type(self._value(frame, chain)) in _STANDING if chain else self.numbers for chain in kinds_asked_of(code)]
        ):
            raise Leaked(self._sources_of(frame))  # it is another class in a trace
        if self.numbers and any([not c or _is_whole(self._value(frame, c)) for c in numbers_asked_of(code)]):
            raise Leaked(self._sources_of(frame))
        if self.numbers and any([_is_whole(self._value(frame, c)) for c in identities_of(code)]):
            raise Leaked(self._sources_of(frame))  # small whole numbers are the same objects
        if self.known is not None:
            self._meet(frame, code)

    def _is_inner(self, frame: FrameType, name: str) -> bool:
        """Whether a variable of an outer function belongs to one that runs meanwhile."""
        outer = frame.f_back
        while outer is not None:
            if id(outer) in self._frames and name in outer.f_code.co_cellvars:
                return True
            outer = outer.f_back
        return False

    def _may_write(self, x: Any, name: str) -> bool:
        if isinstance(x, Tensor):
            return name in ("", "grad", "data", "requires_grad") or is_young(x)
        return is_young(x)

    def is_of_program(self, code: CodeType) -> bool:
        return (self._kinds.get(code) or self._kind(code)) in (_THEIRS, _LIBRARY)

    def saw(self, frame: FrameType) -> bool:
        """Whether it is a frame of the program, and began meanwhile."""
        return id(frame) in self._frames and self.is_of_program(frame.f_code)

    # ---- calls in C

    def _called(self, frame: FrameType, function: Any) -> None:
        if self._drawing is not None and draws(function):
            return
        if self.numbers and self._drawing is None and takes_floats(function):
            raise Leaked(self._sources_of(frame))
        name, owner = getattr(function, "__name__", "?"), getattr(function, "__self__", None)
        if function is next and self._takes_what_is_new(frame):
            return
        if not is_pure(function) or (name in WRITING and self._is_default(owner)):
            kind = "" if owner is None or isinstance(owner, ModuleType) else f"{type(owner).__name__}."
            self._note(f"a call of {kind}{name}", frame, None, owner if isinstance(owner, CONTAINERS) else None)

    def _takes_what_is_new(self, frame: FrameType) -> bool:
        """Whether `next` is called on an iterator that was made meanwhile."""
        source = next_of(frame.f_code, frame.f_lasti)
        return is_young(self._value(frame, source)) if isinstance(source, tuple) else source


@functools.cache
def _looks() -> list[CodeType]:
    """The code of what says what a tensor is."""
    attributes = [Tensor.__dict__[name] for name in _LOOKS]
    return [getattr(x, "fget", x).__code__ for x in attributes]


def _is_whole(x: Any) -> bool:
    return type(x) is HostNumber and x.whole


def _method_of(frame: FrameType) -> Any:
    """The method that runs in a frame."""
    owner = frame.f_locals.get("self")
    return getattr(owner, frame.f_code.co_name, None)


def _iterators_in(x: Any) -> list[Any]:
    """An iterator, or those that a container has: mostly none, which the types tell at once of many elements."""
    inside = x.values() if isinstance(x, dict) else x
    if not isinstance(inside, list | tuple | set | deque | ValuesView):
        inside = (x,)
    kinds = [kind for kind in set(map(type, inside)) if issubclass(kind, Iterator)]
    return [each for each in list(inside) if type(each) in kinds] if kinds else []


def _resumed(frame: FrameType) -> bool:
    """Whether a generator has run before: it does not begin, it goes on."""
    return frame.f_lasti >= 0 and frame.f_code.co_code[frame.f_lasti + 1] & 3 != 0
