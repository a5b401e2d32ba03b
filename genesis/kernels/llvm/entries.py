"""Calls of nests of loops that take many arguments: `ctypes` needs 0.3 us for each that it hands over, so they are put into
memory, and a function beside the nest reads them there.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable

from genesis.kernels.llvm import native


def nest(name: str, code: str, addresses: int, integers: int) -> Callable[..., None]:
    """The function ``name`` in ``code``, compiled, of so many addresses and then so many integers."""
    (at,) = native.addresses_in(f"{code}\n{_entry(name, addresses, integers)}", [f"{name}.entry"])
    call, pack = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(at), struct.Struct(f"{addresses + integers}q").pack
    return lambda *numbers: call(pack(*numbers))


def _entry(name: str, addresses: int, integers: int) -> str:
    """The function that reads the arguments."""
    lines, given = [], []
    for i, kind in enumerate(["ptr"] * addresses + ["i64"] * integers):
        lines.append(f"  %at{i} = getelementptr i64, ptr %block, i64 {i}\n  %a{i} = load {kind}, ptr %at{i}")
        given.append(f"{kind} %a{i}")
    body = "\n".join([*lines, f"  call void @{name}({', '.join(given)})", "  ret void"])
    return f"define void @{name}.entry(ptr %block) {{\n{body}\n}}"
