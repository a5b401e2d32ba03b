"""Calls of nests of loops that take many arguments: `ctypes` needs 0.3 us for each that it hands over, so they are put into
memory, and a function beside the nest reads them there.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable

from genesis.kernels.llvm import native


def nest(name: str, code: str, addresses: int, integers: int) -> tuple[Callable[..., None], Callable[..., None]]:
    """The function ``name`` in ``code``, compiled, of so many addresses and then so many integers: one that puts them into
    memory, for which they are not negative, up to 2**64 - 1, and one as `genesis.kernels.llvm.native.nest` gives it.
    """
    every = f"{code}\n{_entry(name, addresses, integers)}"
    plain, entry = native.nests(every, {name: (addresses, integers), f"{name}.entry": (1, 0)})
    call = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(native.address_of(entry))
    pack = struct.Struct(f"{addresses + integers}Q").pack
    return lambda *numbers: call(pack(*numbers)), plain


def _entry(name: str, addresses: int, integers: int) -> str:
    """The function that reads the arguments."""
    lines, given = [], []
    for i, kind in enumerate(["ptr"] * addresses + ["i64"] * integers):
        lines.append(f"  %at{i} = getelementptr i64, ptr %block, i64 {i}\n  %a{i} = load {kind}, ptr %at{i}")
        given.append(f"{kind} %a{i}")
    body = "\n".join([*lines, f"  call void @{name}({', '.join(given)})", "  ret void"])
    return f"define void @{name}.entry(ptr %block) {{\n{body}\n}}"
