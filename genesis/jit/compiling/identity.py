"""Are the objects where they were? Most questions that a compiled call asks before it computes are of this kind.

`Rows` says where objects are to be found: attributes, entries of dictionaries and lists. Native code looks whether all of
them are there, 2 to 5 ns each, where Python takes 10 to 40.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import sys
from collections.abc import Callable, Sequence
from types import CellType, MappingProxyType, MemberDescriptorType
from typing import Any

import numpy as np

from genesis.core.graph.tensor import Tensor
from genesis.kernels.llvm import native

WORD, DICT, LIST, ENTRY, STILL, HELD, BARE = 1, 2, 3, 4, 5, 6, 7  # kinds of rows
ANY = 1  # for a value: no object is there
_SIZE = ctypes.sizeof(ctypes.c_void_p)

# whether all is as the rows say, until one of kind 0. A row is: an address, and the word that is there; a dictionary, how
# many entries it has, and their keys and values in its order; a list, how many items it has, and these; a dictionary, a
# key, and its value or 0. Behind all these, 2 is returned if not: an address, and the word that is there; an object, and
# how many have it; a dictionary that has no entries
_UNCHANGED = """
define i32 @unchanged(ptr %table) {
entry:
  %functions = load ptr, ptr %table
  %rows = getelementptr i64, ptr %table, i64 1
  %next_at = getelementptr ptr, ptr %functions, i64 1
  %get_at = getelementptr ptr, ptr %functions, i64 2
  %length_at = getelementptr ptr, ptr %functions, i64 3
  %item_at = getelementptr ptr, ptr %functions, i64 4
  %dict_size = load ptr, ptr %functions
  %dict_next = load ptr, ptr %next_at
  %dict_get = load ptr, ptr %get_at
  %list_size = load ptr, ptr %length_at
  %list_item = load ptr, ptr %item_at
  %position = alloca i64
  %key_at = alloca ptr
  %value_at = alloca ptr
  br label %row
row:
  %at = phi ptr [ %rows, %entry ], [ %more, %word ], [ %after_entry, %entry_of_dict ], [ %entry_at, %in_dict ], [ %item_here, %in_list ], [ %more, %still ], [ %more, %held ], [ %more, %bare ]
  %thing_at = getelementptr i64, ptr %at, i64 1
  %second_at = getelementptr i64, ptr %at, i64 2
  %more = getelementptr i64, ptr %at, i64 3
  %after_entry = getelementptr i64, ptr %at, i64 4
  %kind = load i64, ptr %at
  %thing = load ptr, ptr %thing_at
  %second = load i64, ptr %second_at
  switch i64 %kind, label %yes [ i64 1, label %word i64 2, label %dict i64 3, label %list i64 4, label %entry_of_dict i64 5, label %still i64 6, label %held i64 7, label %bare ]
word:
  %now = load i64, ptr %thing
  %same_word = icmp eq i64 %now, %second
  br i1 %same_word, label %row, label %no
entry_of_dict:
  %key = inttoptr i64 %second to ptr
  %got = call ptr %dict_get(ptr %thing, ptr %key)
  %expected = load ptr, ptr %more
  %same_got = icmp eq ptr %got, %expected
  br i1 %same_got, label %row, label %no
dict:
  store i64 0, ptr %position
  %entries = call i64 %dict_size(ptr %thing)
  %as_many = icmp eq i64 %entries, %second
  br i1 %as_many, label %in_dict, label %no
in_dict:
  %entry_at = phi ptr [ %more, %dict ], [ %next_entry, %seen_entry ]
  %left = phi i64 [ %second, %dict ], [ %fewer, %seen_entry ]
  %some = icmp ne i64 %left, 0
  br i1 %some, label %look_entry, label %row
look_entry:
  %any = call i32 %dict_next(ptr %thing, ptr %position, ptr %key_at, ptr %value_at)
  %key_now = load ptr, ptr %key_at
  %value_now = load ptr, ptr %value_at
  %wanted_at = getelementptr i64, ptr %entry_at, i64 1
  %wanted_key = load ptr, ptr %entry_at
  %wanted = load ptr, ptr %wanted_at
  %same_key = icmp eq ptr %key_now, %wanted_key
  %same_value = icmp eq ptr %value_now, %wanted
  %none_wanted = icmp eq ptr %wanted, inttoptr (i64 1 to ptr)
  %fine = or i1 %same_value, %none_wanted
  %both = and i1 %same_key, %fine
  br i1 %both, label %seen_entry, label %no
seen_entry:
  %next_entry = getelementptr i64, ptr %entry_at, i64 2
  %fewer = sub i64 %left, 1
  br label %in_dict
list:
  %length = call i64 %list_size(ptr %thing)
  %as_long = icmp eq i64 %length, %second
  br i1 %as_long, label %in_list, label %no
in_list:
  %item_here = phi ptr [ %more, %list ], [ %next_item, %seen_item ]
  %i = phi i64 [ 0, %list ], [ %next_i, %seen_item ]
  %items_left = icmp ne i64 %i, %second
  br i1 %items_left, label %look_item, label %row
look_item:
  %item = call ptr %list_item(ptr %thing, i64 %i)
  %wanted_item = load ptr, ptr %item_here
  %same_item = icmp eq ptr %item, %wanted_item
  br i1 %same_item, label %seen_item, label %no
seen_item:
  %next_item = getelementptr i64, ptr %item_here, i64 1
  %next_i = add i64 %i, 1
  br label %in_list
still:
  %word_now = load i64, ptr %thing
  %same_still = icmp eq i64 %word_now, %second
  br i1 %same_still, label %row, label %shared
held:
  %holders = load i32, ptr %thing
  %expected_holders = trunc i64 %second to i32
  %as_few = icmp eq i32 %holders, %expected_holders
  br i1 %as_few, label %row, label %shared
bare:
  %entries_there = call i64 %dict_size(ptr %thing)
  %none_there = icmp eq i64 %entries_there, 0
  br i1 %none_there, label %row, label %shared
yes:
  ret i32 1
shared:
  ret i32 2
no:
  ret i32 0
}
"""
_FUNCTIONS = "PyDict_Size", "PyDict_Next", "PyDict_GetItemWithError", "PyList_Size", "PyList_GetItem"


class Rows:
    """Where objects are now; all of them have to live as long as these rows, and so has what is ``kept``. What can't be said
    in this way is refused.
    """

    def __init__(self) -> None:
        self.rows: dict[tuple[int, ...], None] = {}
        self.kept: list[Any] = []
        self.slots: list[int] = []  # of tensors that nothing else is to have, and nobody has done anything to

    def attribute(self, thing: Any, name: str) -> bool:
        """What a slot of an object holds, or a cell of a closure (``cell_contents``)."""
        value, offset = getattr(thing, name), _offset(type(thing), name)
        if offset is None or _SIZE != 8 or ctypes.c_size_t.from_address(id(thing) + offset).value != id(value):
            return False
        self.rows[WORD, id(thing) + offset, id(value)] = None
        return True

    def entry(self, holder: Any, key: Any) -> bool:
        """What a dictionary has for a key, or that it has nothing."""
        holder = _behind(holder)
        plain = isinstance(holder, dict) and type(holder).__getitem__ is dict.__getitem__
        if not plain or type(key).__hash__ not in (str.__hash__, int.__hash__, object.__hash__):
            return False
        self.kept += [holder, key]
        self.rows[ENTRY, id(holder), id(key), id(holder[key]) if key in holder else 0] = None
        return True

    def entries(self, holder: Any, keys: Sequence[Any]) -> bool:
        """What a dictionary has for most of its keys; it is gone through, in the time of a fifth of so many look-ups."""
        holder = _behind(holder)
        plain = isinstance(holder, dict) and type(holder).__getitem__ is dict.__getitem__
        if not plain or 5 * len(keys) < len(holder) or not all([key in holder for key in keys]):
            return False
        wanted = set(keys)
        return self._pairs(holder, [(key, id(value) if key in wanted else ANY) for key, value in holder.items()])

    def whole(self, holder: Any) -> bool:
        """All entries of a dictionary, or items of a list."""
        if type(holder) is dict:
            return self._pairs(holder, [(key, id(value)) for key, value in holder.items()])
        if type(holder) is list:
            self.rows[(LIST, id(holder), len(holder), *map(id, holder))] = None
        return type(holder) is list

    def alone(self, thing: Any, name: str) -> None:
        """The tensor that a slot of an object holds, which `expect` names, is as it was then, and nothing else holds it."""
        self.slots.append(id(thing) + _offset_of(type(thing), name))

    def expect(self, tensors: Sequence[Tensor]) -> None:
        """The tensors in these slots, one for each; whoever calls this holds their arrays in one place, and nothing of them."""
        rows = [row for slot, tensor in zip(self.slots, tensors, strict=True) for row in self._as_made(slot, tensor)]
        self.words[-3 - 3 * len(rows) : -3] = [word for row in rows for word in row]

    def _as_made(self, slot: int, tensor: Tensor) -> list[tuple[int, int, int]]:
        """The rows of a tensor that was just made: it has no attributes, and nothing refers to it weakly."""
        at, entries = id(tensor), tensor.__dict__
        self.held[slot] = entries
        words = [(STILL, slot, at), (STILL, at + object.__basicsize__ - _SIZE, id(Tensor)), (HELD, at, 1)]
        words += [(STILL, at + offset, word) for offset, word in _nothing().items()]
        words += [(STILL, at + _offset_of(Tensor, "_array"), id(tensor._array)), (HELD, id(tensor._array), 2)]
        return [*words, (STILL, at + _of_attributes(), id(entries)), (BARE, id(entries), 0)]

    def _pairs(self, holder: dict[Any, Any], pairs: list[tuple[Any, int]]) -> bool:
        self.kept += [key for key, _ in pairs]
        self.rows[(DICT, id(holder), len(pairs), *[word for key, value in pairs for word in (id(key), value)])] = None
        return True

    def table(self) -> Any:
        """The argument of `unchanged`, an array."""
        words = [word for row in self.rows for word in row]
        self.held: dict[int, Any] = {}  # attributes of the tensors, by slot
        of_tensors = 7 + len(_nothing()) if self.slots else 0
        words += [word for slot in self.slots for word in (STILL, slot, 0) * of_tensors]
        self.words = np.array([_addresses().ctypes.data, *words, 0, 0, 0], np.uint64)
        return self.words


def _behind(holder: Any) -> Any:
    """The dictionary that a view of a class's attributes shows: the view is another object each time it is asked for."""
    return gc.get_referents(holder)[0] if type(holder) is MappingProxyType else holder


@functools.cache
def _offset(kind: type, name: str) -> int | None:
    """Where in an object of a class the address of an attribute is, in bytes; None if it is not known."""
    if kind is CellType:
        return object.__basicsize__
    slot = getattr(kind, name, None)
    if type(slot) is not MemberDescriptorType:
        return None
    probe, sign = object.__new__(slot.__objclass__), object()
    slot.__set__(probe, sign)
    words = (ctypes.c_size_t * (slot.__objclass__.__basicsize__ // _SIZE)).from_address(id(probe))
    return next((i * _SIZE for i, word in enumerate(words) if word == id(sign)), None)


def _offset_of(kind: type, name: str) -> int:
    offset = _offset(kind, name)
    assert offset is not None
    return offset


@functools.cache
def _nothing() -> dict[int, int]:
    """What is in the slots of a tensor without history, at which offsets, and where weak references would be."""
    words = {_offset_of(Tensor, name): id(None) for name in ("_node", "_counter", "_view")}
    return words | {_offset_of(Tensor, "_own_node"): 0, Tensor.__weakrefoffset__: 0}


@functools.cache
def _of_attributes() -> int:
    """Where in a tensor the address of its dictionary is, in bytes; it may be before the tensor."""
    probe = object.__new__(Tensor)
    entries, words = id(probe.__dict__), range(-4 * _SIZE, Tensor.__basicsize__, _SIZE)
    return next(at for at in words if ctypes.c_size_t.from_address(id(probe) + at).value == entries)


@functools.cache
def _addresses() -> Any:
    """Where functions of the interpreter are, in the order in which native code reads them."""
    functions = [getattr(ctypes.pythonapi, name) for name in _FUNCTIONS]
    return np.array([ctypes.cast(f, ctypes.c_void_p).value for f in functions], np.uint64)


@functools.cache
def unchanged() -> Callable[[int], int] | None:
    """A function of the address of a `Rows.table`: whether all objects are where they were, and 1 if besides nothing else
    has the tensors of `Rows.alone`, which are as they were made. It holds the lock of the interpreter; None in an
    interpreter without that lock.
    """
    if native.host() is None or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return None
    address = native.address("unchanged", _UNCHANGED)
    function: Any = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(address)
    return function  # type: ignore[no-any-return]
