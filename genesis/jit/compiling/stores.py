"""What the code of a function writes to and reads from, as far as its instructions say so."""

from __future__ import annotations

import dis
import functools
import itertools
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, NamedTuple

Chain = tuple[str, ...]  # ("self", "cfg", "rate"): a variable, and attributes of it


class Store(NamedTuple):
    """An instruction that changes something: ``target.name = ...``, ``target[...] = ...``, ``global name``."""

    target: Chain | None  # None: nobody knows
    name: str
    line: int
    sure: bool = True  # whether the variable still holds it when the code has run
    at: int = -1  # where the instruction is


class _Step(NamedTuple):
    name: str
    value: Any
    effect: int  # on the height of the stack
    line: int
    at: int = -1


_LOADS = (
    "LOAD_FAST",
    "LOAD_DEREF",
    "LOAD_CLASSDEREF",
    "LOAD_GLOBAL",
    "LOAD_NAME",
    "LOAD_FAST_CHECK",
    "LOAD_FAST_BORROW",
)
_MAKING = ("CALL", "BINARY_OP", "BUILD_", "UNARY_")
_GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME")
_ITEMS = (("BINARY_SUBSCR", None), ("BINARY_OP", "[]"))
_CALLED_AT_ONCE = sys.version_info >= (3, 12)  # then a bit of LOAD_ATTR says what was LOAD_METHOD
_IGNORED = ("RESUME", "NOP", "CACHE", "COPY_FREE_VARS", "MAKE_CELL", "EXTENDED_ARG", "NOT_TAKEN")


@functools.lru_cache(maxsize=4096)
def steps_of(code: CodeType) -> tuple[_Step, ...]:
    """The instructions of a code object; those that load or store two variables at once as two."""
    steps, line = [], code.co_firstlineno
    for i in dis.get_instructions(code):
        position = i.positions.lineno if i.positions is not None else None
        line = position or line
        if i.opname in _IGNORED:
            continue
        if isinstance(i.argval, tuple) and "_FAST_" in i.opname and i.opname.count("_FAST") == 2:
            verbs = i.opname.replace("_BORROW", "").split("_FAST")
            for verb, name in zip(verbs, i.argval, strict=False):
                verb = verb.strip("_")
                steps.append(_Step(f"{verb}_FAST", name, 1 if verb == "LOAD" else -1, line))
            continue
        effect = dis.stack_effect(i.opcode, i.arg if i.opcode >= dis.HAVE_ARGUMENT else None, jump=False)
        value = i.argrepr if i.opname == "BINARY_OP" else code.co_consts[i.arg] if i.opname == "KW_NAMES" else i.argval
        called = _CALLED_AT_ONCE and i.opname == "LOAD_ATTR" and i.arg is not None and i.arg & 1
        steps.append(_Step("LOAD_METHOD" if called else i.opname, value, effect, line, i.offset))
    return tuple(steps)


@functools.lru_cache(maxsize=4096)
def stores_of(code: CodeType) -> tuple[Store, ...]:
    """What the code changes besides its own variables."""
    steps, stores = steps_of(code), []
    for i, step in enumerate(steps):
        kind = step.name
        if kind in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            stores.append(Store(None, f"global {step.value}", step.line, at=step.at))
        elif kind in ("STORE_DEREF", "DELETE_DEREF") and step.value in code.co_freevars:
            stores.append(Store(None, f"nonlocal {step.value}", step.line, at=step.at))
        elif kind in ("STORE_ATTR", "DELETE_ATTR"):
            stores.append(_store(steps, i, 0, str(step.value)))
        elif kind in ("STORE_SUBSCR", "DELETE_SUBSCR"):
            stores.append(_store(steps, i, 1))
        elif kind == "STORE_SLICE":
            stores.append(_store(steps, i, 2))
    return tuple(stores)


def sets_names(code: CodeType) -> set[str]:
    """The names of the attributes, globals and entries that code may set: of an entry any text that is in the code."""
    stores = stores_of(code)
    texts = [x for x in code.co_consts if isinstance(x, str)] if any([not store.name for store in stores]) else []
    return {store.name.rpartition(" ")[2] for store in stores} | set(texts)


@functools.lru_cache(maxsize=4096)
def may_set(code: CodeType, name: str) -> bool:
    """Whether code, or code in it, may set an attribute of this name."""
    by_name = "setattr" in code.co_names and name in code.co_consts
    inside = [x for x in code.co_consts if isinstance(x, CodeType)]
    return by_name or any([store.name == name for store in stores_of(code)]) or any([may_set(x, name) for x in inside])


def _store(steps: tuple[_Step, ...], at: int, above: int, name: str = "") -> Store:
    target, step = _target(steps, at, above), steps[at]
    return Store(target, name, step.line, target is None or _still_holds(steps, at, target[0]), step.at)


def _still_holds(steps: tuple[_Step, ...], at: int, variable: str) -> bool:
    """Whether a variable gets no other value behind an instruction; or if it does, holds what a call or an operator gave."""
    sets = [i for i, s in enumerate(steps) if s.name in ("STORE_FAST", "STORE_DEREF") and s.value == variable]
    before = [i for i in sets if i < at]
    if not before or before[-1] == sets[-1]:
        return True
    source = before[-1] - 1
    while source > 0 and steps[source].name.startswith(("STORE_", "UNPACK_")):
        source -= 1
    return steps[source].name.startswith(_MAKING)


@functools.lru_cache(maxsize=4096)
def makes(code: CodeType) -> frozenset[str]:
    """The variables that only ever hold constants, and what calls and operators give."""
    given: dict[str, bool] = {}
    for before, step in itertools.pairwise(steps_of(code)):
        if step.name in ("STORE_FAST", "STORE_DEREF"):
            new = before.name.startswith((*_MAKING, "LOAD_CONST"))
            given[step.value] = given.get(step.value, True) and new
    return frozenset([name for name, new in given.items() if new])


def caught(frame: FrameType | None, counts: Callable[[FrameType], bool]) -> bool:
    """Whether a frame, or one that called it, is inside of a ``try``, or of a `contextlib.suppress`; of those that count."""
    while frame is not None:
        code = frame.f_code
        if code.co_exceptiontable and counts(frame):
            suppresses = "suppress" in (*code.co_names, *code.co_freevars)
            if any([begin <= frame.f_lasti < end and (of_try or suppresses) for begin, end, of_try in _handled(code)]):
                return True
        frame = frame.f_back
    return False


@functools.lru_cache(maxsize=4096)
def _handled(code: CodeType) -> tuple[tuple[int, int, bool], ...]:
    """The instructions whose errors go to a handler, and whether it is one of a ``try``: not of a ``with``."""
    steps = [i for i in dis.get_instructions(code) if i.opname not in ("CACHE", "EXTENDED_ARG")]
    index = {step.offset: i for i, step in enumerate(steps)}
    handled = []
    for entry in dis._parse_exception_table(code):  # type: ignore[attr-defined]
        at = index.get(entry.target)
        if at is not None and steps[at].opname == "PUSH_EXC_INFO" and at + 1 < len(steps):
            handled.append((entry.start, entry.end, steps[at + 1].opname != "WITH_EXCEPT_START"))
    return tuple(handled)


def _target(steps: tuple[_Step, ...], at: int, above: int) -> Chain | None:
    """What stands ``above`` values below the top of the stack before an instruction, as a chain."""
    end = at
    if steps[at].name.startswith("STORE") and steps[end - 1].name == "SWAP":  # target.name += value
        while steps[end - 1].name == "SWAP":
            end -= 1
        end = begin_of(steps, end)
    for _ in range(above):
        end = begin_of(steps, end)
    begin = begin_of(steps, end)
    return chain_of(steps[begin:end]) if 0 <= begin < end else None


def begin_of(steps: tuple[_Step, ...], end: int) -> int:
    """Where the instructions begin that compute the top of the stack before ``end``."""
    height, i = 0, end
    while height < 1 and i > 0:
        i -= 1
        if steps[i].name.startswith(("JUMP", "POP_JUMP", "FOR_ITER")):
            return -1
        height += steps[i].effect
    return i if height == 1 else -1


def chain_of(steps: tuple[_Step, ...]) -> Chain | None:
    """A variable, and attributes of it, if that is what the instructions load."""
    if not steps or steps[0].name not in _LOADS or any(s.name != "LOAD_ATTR" for s in steps[1:]):
        return None
    return tuple([str(s.value) for s in steps])


@functools.lru_cache(maxsize=4096)
def reads_of(code: CodeType) -> tuple[tuple[bool, tuple[Any, ...]], ...]:
    """The chains that the code reads: whether they begin at a global name, and the names; an item of a dictionary or a
    list is a tuple with its key.
    """
    steps, chains, asks = steps_of(code), dict[tuple[bool, tuple[Any, ...]], None](), ""
    for i, step in enumerate(steps):
        if step.name in _LOADS:
            chain = (str(step.value), *_further(steps, i + 1, asks))
            if len(chain) > 1 or step.name in _GLOBAL or step.value in code.co_freevars:
                chains[step.name in _GLOBAL, chain] = None
        asks = str(step.value) if step.name in _GLOBAL else asks if step.name == "PUSH_NULL" else ""
    return tuple(chains)


@functools.lru_cache(maxsize=4096)
def names_of(code: CodeType) -> tuple[tuple[bool, tuple[Any, ...]], ...]:
    """`reads_of`, and the names that stand alone."""
    alone = {(step.name in _GLOBAL, (str(step.value),)): None for step in steps_of(code) if step.name in _LOADS}
    return (*alone, *reads_of(code))


@functools.lru_cache(maxsize=4096)
def hands_of(code: CodeType) -> dict[tuple[Any, ...], int]:
    """The chains of what the code does something with, up to a name as ``__class__``, which any object has; and where the
    first instructions are that load them.
    """
    steps, chains = steps_of(code), dict[tuple[Any, ...], int]()
    for i, step in enumerate(steps):
        if step.name in _LOADS:
            further = itertools.takewhile(lambda name: not str(name).startswith("__"), _further(steps, i + 1, ""))
            chains.setdefault((str(step.value), *further), step.at)
    return chains


def _further(steps: tuple[_Step, ...], at: int, asks: str) -> list[Any]:
    """Attributes and items that are read one after the other; the last of them by a function, ``asks``, of a name that may
    be known: if not, any may be read.
    """
    names: list[Any] = []
    while at < len(steps):
        step, after = steps[at], steps[at + 1] if at + 1 < len(steps) else None
        if step.name in ("LOAD_ATTR", "LOAD_METHOD"):
            names.append(str(step.value))
            at += 1
        elif step.name == "LOAD_CONST" and after is not None and (after.name, after.value) in _ITEMS:
            names.append((step.value,))
            at += 2
        elif asks in ("getattr", "hasattr") and step.name == "LOAD_CONST" and isinstance(step.value, str):
            return [*names, step.value]
        else:
            break
    return [*names, "__dict__"] if asks in ("vars", "getattr", "hasattr") else names


@functools.lru_cache(maxsize=4096)
def remainders_of(code: CodeType) -> tuple[Chain, ...]:
    """What stands on the left of each ``%``: a chain, () for text; anything else is left out."""
    steps, lefts = steps_of(code), list[Chain]()
    for i, step in enumerate(steps):
        if step.name == "BINARY_OP" and step.value in ("%", "%="):
            right = begin_of(steps, i)
            left = steps[begin_of(steps, right) : right] if right > 0 else ()
            if len(left) == 1 and left[0].name == "LOAD_CONST" and isinstance(left[0].value, str):
                lefts.append(())
            elif (chain := chain_of(left)) is not None:
                lefts.append(chain)
    return tuple(lefts)


@functools.lru_cache(maxsize=4096)
def numbers_asked_of(code: CodeType) -> tuple[Chain, ...]:
    """What the code asks whether it is a whole number, or a float, and not whether it is one of both: a chain, () for
    what nobody knows.
    """
    steps, asked = steps_of(code), list[Chain]()
    for i, step in enumerate(steps):
        if step.name in _GLOBAL and step.value == "isinstance":
            begin = i + 1 + (steps[i + 1].name == "PUSH_NULL")
            call = _end_of_call(steps, begin)
            end = call - (steps[call - 1].name == "PRECALL")
            middle = begin_of(steps, end) if end > begin else -1
            names = {s.value for s in steps[max(middle, begin) : end]}
            if names & {"int", "Integral", "float"} and not {"int", "float"} <= names:
                asked.append((chain_of(steps[begin:middle]) or ()) if middle > begin else ())
    return tuple(asked)


@functools.lru_cache(maxsize=4096)
def identities_of(code: CodeType) -> tuple[Chain, ...]:
    """The chains on either side of each ``is``, where the other side is no constant."""
    steps, chains = steps_of(code), list[Chain]()
    for i, step in enumerate(steps):
        right = begin_of(steps, i) if step.name == "IS_OP" else -1
        left = begin_of(steps, right) if right > 0 else -1
        sides = (steps[left:right], steps[right:i]) if left >= 0 else ()
        if not any([len(side) == 1 and side[0].name == "LOAD_CONST" for side in sides]):
            chains += [chain for side in sides if (chain := chain_of(side)) is not None]
    return tuple(chains)


def _end_of_call(steps: tuple[_Step, ...], begin: int) -> int:
    """Where what stands before the arguments of a call is called with them; their beginning if nobody knows."""
    height = 0
    for i in range(begin, len(steps)):
        height += steps[i].effect
        if height < 0:
            return i if steps[i].name == "CALL" else begin
    return begin


@functools.lru_cache(maxsize=4096)
def kinds_asked_of(code: CodeType) -> tuple[Chain, ...]:
    """What the code asks for its class: a chain, () for what nobody knows."""
    steps, asked = steps_of(code), list[Chain]()
    for i, step in enumerate(steps):
        if step.name == "LOAD_ATTR" and step.value == "__class__":
            asked.append(chain_of(steps[begin_of(steps, i) : i]) or ())
        elif step.name in _GLOBAL and step.value == "type":
            begin = i + 1 + (steps[i + 1].name == "PUSH_NULL")
            end = begin + 1
            while end < len(steps) and steps[end].name == "LOAD_ATTR":
                end += 1
            called = end < len(steps) and steps[end].name in ("PRECALL", "CALL")
            asked.append((chain_of(steps[begin:end]) or ()) if called else ())
    return tuple(asked)
