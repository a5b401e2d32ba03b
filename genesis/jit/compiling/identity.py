"""Are these the same objects as those? Of many at once: in a compiled call most questions are of this kind."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

from genesis.kernels.llvm import native

# whether the words of two objects are the same, from the count of a tuple's items on
_SAME = """
define i32 @same(ptr %x, ptr %y) {
entry:
  %x_count = getelementptr i8, ptr %x, i64 COUNT
  %n = load i64, ptr %x_count
  %y_count = getelementptr i8, ptr %y, i64 COUNT
  %m = load i64, ptr %y_count
  %x_items = getelementptr i8, ptr %x, i64 ITEMS
  %y_items = getelementptr i8, ptr %y, i64 ITEMS
  %differ = xor i64 %n, %m
  br label %look
look:
  %i = phi i64 [ 0, %entry ], [ %next, %each ]
  %so_far = phi i64 [ %differ, %entry ], [ %sum, %each ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %each, label %done
each:
  %x_at = getelementptr i64, ptr %x_items, i64 %i
  %y_at = getelementptr i64, ptr %y_items, i64 %i
  %a = load i64, ptr %x_at
  %b = load i64, ptr %y_at
  %other = xor i64 %a, %b
  %sum = or i64 %so_far, %other
  %next = add i64 %i, 1
  br label %look
done:
  %none = icmp eq i64 %so_far, 0
  %result = zext i1 %none to i32
  ret i32 %result
}
"""


@functools.cache
def same() -> Callable[[int, int], int] | None:
    """A function of the addresses of two tuples of one length: whether each item of one is that of the other. (2 ns each,
    where ``is`` takes 8.) None where tuples do not lie in memory as CPython has them.
    """
    if native.host() is None:
        return None
    items, word = tuple.__basicsize__, ctypes.sizeof(ctypes.c_void_p)
    a, b = object(), object()
    probe = (a, b, a)
    seen = (ctypes.c_void_p * 4).from_address(id(probe) + items - word)
    if word != 8 or list(seen) != [3, id(a), id(b), id(a)]:
        return None
    address = native.address("same", _SAME.replace("COUNT", str(items - word)).replace("ITEMS", str(items)))
    function: Any = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(address)
    return function  # type: ignore[no-any-return]
