"""Calls of nests of loops that take many arguments: `ctypes` needs 0.3 us for each that it hands over, so they are put into
memory, and a function beside the nest reads them there. To ask an array where its numbers are takes 0.2 us: that function
is given the array itself.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from typing import Any

from genesis.kernels.llvm import native


def nest(name: str, code: str, addresses: int, integers: int) -> tuple[Callable[..., None], Callable[..., None]]:
    """The function ``name`` in ``code``, compiled, of so many addresses and then so many integers: one that puts them into
    memory, for which they are not negative, up to 2**64 - 1, and one as `genesis.kernels.llvm.native.nest` gives it.
    """
    call, plain = _compiled(name, code, addresses, integers, 0)
    pack = struct.Struct(f"{addresses + integers}Q").pack
    return lambda *numbers: call(pack(*numbers)), plain


def of_arrays(
    name: str, code: str, arrays: int, integers: int
) -> tuple[Callable[[bytes], None], Callable[..., bytes], Callable[[Any], int], Callable[..., None]]:
    """`nest` of contiguous arrays, in its parts, ``call(pack(*map(word, arrays), *integers))``, and the one of addresses."""
    call, plain = _compiled(name, code, arrays, integers, native.ARRAY_DATA)
    return call, struct.Struct(f"{arrays}Q{integers}q").pack, id if native.ARRAY_DATA else _address, plain


def _address(array: Any) -> int:
    return int(array.ctypes.data)


def _compiled(name: str, code: str, addresses: int, integers: int, behind: int) -> tuple[Any, Callable[..., None]]:
    every = f"{code}\n{_entry(name, addresses, integers, behind)}"
    plain, entry = native.nests(every, {name: (addresses, integers), f"{name}.entry": (1, 0)})
    return ctypes.CFUNCTYPE(None, ctypes.c_char_p)(native.address_of(entry)), plain


def _entry(name: str, addresses: int, integers: int, behind: int) -> str:
    """The function that reads the arguments; ``behind`` where addresses are those of objects, which have the address so
    many bytes behind their own.
    """
    lines, given = [], []
    for i, kind in enumerate(["ptr"] * addresses + ["i64"] * integers):
        lines.append(f"  %at{i} = getelementptr i64, ptr %block, i64 {i}\n  %a{i} = load {kind}, ptr %at{i}")
        if behind and kind == "ptr":
            lines.append(f"  %in{i} = getelementptr i8, ptr %a{i}, i64 {behind}\n  %d{i} = load ptr, ptr %in{i}")
        given.append(f"{kind} %{'d' if behind and kind == 'ptr' else 'a'}{i}")
    body = "\n".join([*lines, f"  call void @{name}({', '.join(given)})", "  ret void"])
    return f"define void @{name}.entry(ptr %block) {{\n{body}\n}}"
