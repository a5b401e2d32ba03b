"""An interpreter of pickles that can build values and call nothing.

Python's own unpickler imports what a pickle names and calls what it says. This one knows the opcodes that PyTorch's
files consist of. A name is looked up in a table (`names.resolve`), and what stands there are functions of this package
that check their arguments. There is no import, no attribute that a pickle could name, no recursion, and every length is
compared with the bytes that are there.
"""

from __future__ import annotations

import struct
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from genesis.base import dtypes
from genesis.base.device import device
from genesis.core.graph.tensor import Tensor
from genesis.io.pytorch.inert import Built, Named
from genesis.io.pytorch.numpy_values import complete
from genesis.io.source import Damaged

OPCODES = 10_000_000  # of one pickle
DEPTH = 1000  # of containers in one another
_TUPLE_KEYS = 10_000  # whose hashes, unlike those of strings, a file could make equal
_PRIME = (1 << 61) - 1  # integers below it have different hashes
_MAPPINGS = (dict, OrderedDict, defaultdict, Counter)
_VALUES = (
    type(None),
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    bytearray,
    dtypes.dtype,
    device,
    np.generic,
    np.ndarray,
    Tensor,
)
_MARK = object()


class Unpickler:
    """Reads one pickle after the other from ``data``.

    Args:
        data: bytes, or something that is sliced like them
        resolve: from a module and a name to a value or a `Named`
        storage: from a persistent id to what tensors are made on
        encoding: of byte strings that Python 2 wrote; "bytes" leaves them as they are

    Raises:
        Damaged: an opcode, a name or a value that is not expected
    """

    def __init__(
        self, data: Any, resolve: Callable[[str, str], Any], storage: Callable[[Any], Any], encoding: str = "utf-8"
    ) -> None:
        self._data, self._resolve, self._storage, self._encoding = data, resolve, storage, encoding
        self.at = 0
        self._tuple_keys = 0

    def load(self) -> Any:
        """The next value."""
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}
        for _ in range(OPCODES):
            opcode = self._take(1)
            if opcode == b".":
                if len(self._stack) != 1:
                    raise Damaged("is damaged: its pickle does not end with one value")
                return self.checked(self._pop())
            action = _ACTIONS.get(opcode)
            if action is None:
                raise Damaged(f"is damaged, or no checkpoint: its pickle has the opcode {opcode!r}")
            action(self)
        raise Damaged(f"is refused: its pickle has more than {OPCODES} opcodes")

    def checked(self, root: Any) -> Any:
        return _checked(root)

    # ---- bytes

    def _take(self, count: int) -> bytes:
        data = self._data[self.at : self.at + count]
        if len(data) != count:
            raise Damaged("is cut off or damaged: its pickle ends too early")
        self.at += count
        return data

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def _text(self, data: bytes) -> str:
        try:
            return data.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise Damaged("is damaged: a string of its pickle is not UTF-8") from None

    def _line(self) -> str:
        end = self._data.find(b"\n", self.at, self.at + 1000)
        if end < 0:
            raise Damaged("is damaged: a name in its pickle has no end")
        line = self._take(end - self.at)
        self.at += 1
        return self._text(line)

    # ---- the stack

    def _push(self, value: Any) -> None:
        self._stack.append(value)

    def _pop(self) -> Any:
        if not self._stack or self._stack[-1] is _MARK:
            raise Damaged("is damaged: its pickle takes what is not there")
        return self._stack.pop()

    def _top(self) -> Any:
        value = self._pop()
        self._stack.append(value)
        return value

    def _marked(self) -> list[Any]:
        """What was put there since the last mark."""
        items: list[Any] = []
        while self._stack:
            value = self._stack.pop()
            if value is _MARK:
                return items[::-1]
            items.append(value)
        raise Damaged("is damaged: its pickle lacks a mark")

    # ---- actions

    def _proto(self) -> None:
        if self._take(1)[0] > 5:
            raise Damaged("is damaged: its pickle has an unknown protocol")

    def _frame(self) -> None:
        self._take(8)  # the frame's length: what is in it is read as it comes

    def _long(self, form: str) -> None:
        count = self._number(form)
        if count < 0:
            raise Damaged("is damaged: an integer of its pickle has a negative length")
        self._push(int.from_bytes(self._take(count), "little", signed=True))

    def _string(self, form: str, decode: Callable[[bytes], Any]) -> None:
        count = self._number(form)
        if count < 0:
            raise Damaged("is damaged: a string of its pickle has a negative length")
        self._push(decode(self._take(count)))

    def old_string(self, data: bytes) -> Any:
        try:
            return data if self._encoding == "bytes" else data.decode(self._encoding)
        except UnicodeDecodeError:
            raise Damaged(
                f"has a byte string that is not {self._encoding}", 'encoding="latin1" or encoding="bytes"'
            ) from None

    def _get(self, form: str) -> None:
        index = self._number(form)
        if index not in self._memo:
            raise Damaged("is damaged: its pickle refers to what is not there")
        self._push(self._memo[index])

    def _put(self, form: str) -> None:
        self._memo[self._number(form)] = self._top()

    def _memoize(self) -> None:
        self._memo[len(self._memo)] = self._top()

    def _tuple(self, count: int) -> None:
        items = [self._pop() for _ in range(count)]
        self._push(tuple(items[::-1]))

    def _append(self, items: list[Any]) -> None:
        target = self._top()
        if type(target) is not list:
            raise Damaged("is damaged: its pickle appends to what is no list")
        target.extend(items)

    def _append_one(self) -> None:
        item = self._pop()
        self._append([item])

    def _set_items(self, items: list[Any]) -> None:
        target = self._top()
        if type(target) not in _MAPPINGS or len(items) % 2:
            raise Damaged("is damaged: its pickle sets an item of what is no dict")
        for key, value in zip(items[::2], items[1::2], strict=True):
            target[self.key(key)] = value

    def _set_item(self) -> None:
        value, key = self._pop(), self._pop()
        self._set_items([key, value])

    def _add_items(self) -> None:
        items, target = self._marked(), self._top()
        if type(target) is not set:
            raise Damaged("is damaged: its pickle adds to what is no set")
        target.update(map(self.key, items))

    def key(self, value: Any) -> Any:
        """A key of a dict, an element of a set: of a kind that is hashed at once."""
        if value is None or type(value) in (str, bytes, bool, float) or (type(value) is int and abs(value) < _PRIME):
            return value
        if isinstance(value, dtypes.dtype | device):
            return value
        if type(value) is tuple and len(value) <= 100 and self._tuple_keys < _TUPLE_KEYS:
            self._tuple_keys += 1
            for part in value:
                if type(part) is tuple:
                    raise Damaged("is refused: a key is a tuple of tuples")
                self.key(part)
            return value
        raise Damaged(f"is damaged or refused: a key, or an element of a set, is {_kind(value)}")

    def _global(self) -> None:
        module = self._line()
        self._push(self._resolve(module, self._line()))

    def _stack_global(self) -> None:
        name, module = self._pop(), self._pop()
        if type(name) is not str or type(module) is not str:
            raise Damaged("is damaged: a name in its pickle is no string")
        self._push(self._resolve(module, name))

    def reduce(self) -> None:
        args, function = self._pop(), self._pop()
        if type(function) is not Named:
            raise Damaged(f"is damaged or refused: it calls {_kind(function)}")
        if (
            function.name in ("builtins.set", "builtins.frozenset")
            and type(args) is tuple
            and len(args) == 1
            and type(args[0]) in (list, tuple)
        ):
            args = ([self.key(v) for v in args[0]],)
        self._push(function(args))

    def new(self) -> None:
        """As `reduce`, of a class whose ``__init__`` does not run."""
        self.reduce()

    def build(self) -> None:
        state, target = self._pop(), self._top()
        if type(target) is OrderedDict and type(state) is dict and set(state) <= {"_metadata"}:
            vars(target).update(state)
        elif type(target) is np.ndarray:
            complete(target, state)
        elif isinstance(target, Built):
            target.build(state)
        else:
            raise Damaged(f"is refused: it gives a state to {_kind(target)}")

    def _persistent(self) -> None:
        self._push(self._storage(self._pop()))


_ACTIONS: dict[bytes, Callable[[Unpickler], None]] = {
    b"\x80": Unpickler._proto,
    b"\x95": Unpickler._frame,
    b"N": lambda u: u._push(None),
    b"\x88": lambda u: u._push(True),
    b"\x89": lambda u: u._push(False),
    b"K": lambda u: u._push(u._number("<B")),
    b"M": lambda u: u._push(u._number("<H")),
    b"J": lambda u: u._push(u._number("<i")),
    b"G": lambda u: u._push(u._number(">d")),
    b"\x8a": lambda u: u._long("<B"),
    b"\x8b": lambda u: u._long("<i"),
    b"X": lambda u: u._string("<I", u._text),
    b"\x8c": lambda u: u._string("<B", u._text),
    b"\x8d": lambda u: u._string("<Q", u._text),
    b"C": lambda u: u._string("<B", bytes),
    b"B": lambda u: u._string("<I", bytes),
    b"\x8e": lambda u: u._string("<Q", bytes),
    b"\x96": lambda u: u._string("<Q", bytearray),
    b"U": lambda u: u._string("<B", u.old_string),
    b"T": lambda u: u._string("<i", u.old_string),
    b"h": lambda u: u._get("<B"),
    b"j": lambda u: u._get("<I"),
    b"q": lambda u: u._put("<B"),
    b"r": lambda u: u._put("<I"),
    b"\x94": Unpickler._memoize,
    b"(": lambda u: u._push(_MARK),
    b"0": lambda u: u._stack.pop() if u._stack else u._pop(),
    b"1": Unpickler._marked,
    b"2": lambda u: u._push(u._top()),
    b")": lambda u: u._push(()),
    b"t": lambda u: u._push(tuple(u._marked())),
    b"\x85": lambda u: u._tuple(1),
    b"\x86": lambda u: u._tuple(2),
    b"\x87": lambda u: u._tuple(3),
    b"]": lambda u: u._push([]),
    b"l": lambda u: u._push(u._marked()),
    b"a": Unpickler._append_one,
    b"e": lambda u: u._append(u._marked()),
    b"}": lambda u: u._push({}),
    b"s": Unpickler._set_item,
    b"u": lambda u: u._set_items(u._marked()),
    b"\x8f": lambda u: u._push(set()),
    b"\x90": Unpickler._add_items,
    b"\x91": lambda u: u._push(frozenset(map(u.key, u._marked()))),
    b"c": Unpickler._global,
    b"\x93": Unpickler._stack_global,
    b"R": lambda u: u.reduce(),
    b"\x81": lambda u: u.new(),
    b"b": lambda u: u.build(),
    b"Q": Unpickler._persistent,
}


def _kind(value: Any) -> str:
    return value.name if type(value) is Named else type(value).__name__


def _parts(value: Any) -> Any:
    """What is in a container; () for other values.

    Raises:
        Damaged: something that is only a step on the way
    """
    if isinstance(value, list | tuple):
        return value
    if type(value) in _MAPPINGS:
        extra = getattr(value, "_metadata", None)
        keys = [k for k in value if type(k) is tuple]
        return [*value.values(), *keys, *(() if extra is None else (extra,))]
    if isinstance(value, _VALUES) or type(value) in (set, frozenset):
        return ()
    raise Damaged(
        f"is refused: it holds {_kind(value)} itself, which is no value that can be loaded",
        "save tensors instead of storages and functions",
    )


def _checked(root: Any) -> Any:
    """The value, if it consists of values alone and its containers are not nested deeper than `DEPTH`."""
    heights: dict[int, int] = {}
    todo: list[tuple[Any, bool]] = [(root, False)]
    while todo:
        value, entered = todo.pop()
        if isinstance(value, _VALUES):
            continue
        if entered:
            parts = _parts(value)
            heights[id(value)] = height = 1 + max((heights.get(id(p), 0) for p in parts), default=0)
            if height > DEPTH:
                raise Damaged(f"is refused: its containers are nested deeper than {DEPTH}")
        elif id(value) not in heights:
            heights[id(value)] = 0  # while it is open: one that contains itself ends here
            todo.append((value, True))
            todo.extend((part, False) for part in _parts(value))
    return root
