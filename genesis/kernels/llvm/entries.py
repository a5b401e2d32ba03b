"""Calls of nests of loops as functions of the interpreter: `ctypes` needs 0.3 us for each argument that it hands over, and to
ask an array where its numbers are takes 0.2 us. A function beside the nest takes the objects as the interpreter has them:
it reads from an array's object where its numbers are, and asks for integers by the C interface of Python.

That function is what C extensions have, made by ``PyCFunction_NewEx``. It keeps the lock of the interpreter, so it is for
calls that take a short while.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Callable
from typing import Any

from genesis.kernels.llvm import native

_BUILT_IN = sys.implementation.name == "cpython"
_FAST = 0x0080  # METH_FASTCALL: the arguments as an array of objects
_ASKED = ("PyLong_AsUnsignedLongLongMask", "PyErr_Occurred", "Py_IncRef")  # of Python's C interface
_kept: list[Any] = []  # what the functions point to


class _Method(ctypes.Structure):
    """What Python knows of a function in C: ``PyMethodDef``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def of_arrays(name: str, code: str, arrays: int, integers: int) -> tuple[Callable[..., None], Callable[..., None]]:
    """The function ``name`` in ``code``, compiled, of so many contiguous arrays and then so many integers, of which the last
    64 bits are taken; and the one of addresses, as `genesis.kernels.llvm.native.nest` gives it.
    """
    if not _BUILT_IN or not native.ARRAY_DATA:
        return _by_addresses(name, code, arrays, integers)
    every = f"{code}\n{_entry(name, arrays, integers, native.ARRAY_DATA)}"
    plain, entry = native.nests(every, {name: (arrays, integers), f"{name}.entry": (1, 0)})
    return _function(name, native.address_of(entry)), plain


def _by_addresses(name: str, code: str, arrays: int, integers: int) -> tuple[Callable[..., None], Callable[..., None]]:
    plain = native.nest(name, code, arrays, integers)
    half, whole = 1 << 63, (1 << 64) - 1

    def call(*given: Any) -> None:
        numbers = [(n + half & whole) - half for n in given[arrays:]]
        plain(*[a.ctypes.data for a in given[:arrays]], *numbers)

    return call, plain


def _function(name: str, address: int) -> Callable[..., None]:
    """The function at an address, in the form of the interpreter's own."""
    method = _Method(name.encode(), address, _FAST, None)
    asked = [ctypes.cast(getattr(ctypes.pythonapi, each), ctypes.c_void_p).value for each in _ASKED]
    table = struct.pack(f"{len(asked) + 1}P", *asked, id(None))
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
        ("PyCFunction_NewEx", ctypes.pythonapi)
    )
    _kept.append(method)
    return new(ctypes.addressof(method), table, None)  # type: ignore[no-any-return]


def _entry(name: str, arrays: int, integers: int, behind: int) -> str:
    """The function of objects: its first argument is the table of what it asks, as bytes; the numbers of an array are so
    many bytes ``behind`` the address of its object.
    """
    inside = bytes.__basicsize__ - 1  # how far behind the object the bytes are
    lines = [f"  %table = getelementptr i8, ptr %self, i64 {inside}"]
    for i, each in enumerate(("number", "failed", "keep", "none")):
        lines.append(
            f"  %{each}_at = getelementptr ptr, ptr %table, i64 {i}\n  %{each} = load ptr, ptr %{each}_at, align 1"
        )
    given = []
    for i in range(arrays + integers):
        lines.append(f"  %at{i} = getelementptr ptr, ptr %given, i64 {i}\n  %a{i} = load ptr, ptr %at{i}")
        if i < arrays:
            lines.append(f"  %in{i} = getelementptr i8, ptr %a{i}, i64 {behind}\n  %d{i} = load ptr, ptr %in{i}")
        else:
            lines.append(f"  %d{i} = call i64 %number(ptr %a{i})")
        given.append(f"{'ptr' if i < arrays else 'i64'} %d{i}")
    body = "\n".join(lines)
    return f"""
define ptr @{name}.entry(ptr %self, ptr %given, i64 %count) {{
  %all = icmp eq i64 %count, {arrays + integers}
  br i1 %all, label %take, label %refuse
take:
{body}
  %error = call ptr %failed()
  %fine = icmp eq ptr %error, null
  br i1 %fine, label %run, label %refuse
run:
  call void @{name}({", ".join(given)})
  call void %keep(ptr %none)
  ret ptr %none
refuse:
  ret ptr null
}}"""
