"""Object files of Linux on x86-64, brought into memory as they are, without LLVM: its library takes 40 MB and 50 ms.

LLVM writes code for just-in-time compilation so that it may lie anywhere: all it needs to be told are addresses of 64
bits. So an object file is put in place by copying its sections and filling these in. What has anything else in it is
left to LLVM (`loaded` gives None).
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
import sys
from typing import Any, NamedTuple

_RELOCATABLE, _X86_64 = 1, 62  # of the header: a file that is not linked, for this processor
_SYMBOLS, _RELOCATIONS, _NO_BITS, _UNWIND = 2, 4, 8, 0x70000001  # kinds of sections
_WITHOUT_ADDENDS = 9  # relocations that this processor's files do not have
_WRITTEN, _IN_MEMORY = 1, 2  # flags of sections
_UNDEFINED, _SPECIAL = 0, 0xFF00  # sections of symbols: in no section of this file, or a meaning of its own
_ADDRESS = 1  # the kind of relocation that is the 64 bits of an address


class _Section(NamedTuple):
    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entry: int


def here() -> bool:
    """Whether this is such a machine."""
    return sys.platform == "linux" and os.uname().machine == "x86_64" and sys.maxsize > 1 << 32


def loaded(content: bytes, names: list[str]) -> list[int] | None:
    """Where the functions of an object file are, brought into memory; None where that takes more than copies and
    addresses.
    """
    if not here() or content[:6] != b"\x7fELF\x02\x01":
        return None
    if struct.unpack_from("<HH", content, 16) != (_RELOCATABLE, _X86_64):
        return None
    begin, size, count = *struct.unpack_from("<Q", content, 0x28), *struct.unpack_from("<HH", content, 0x3A)
    sections = [_Section(*struct.unpack_from("<IIQQQQIIQQ", content, begin + i * size)) for i in range(count)]
    where, end = {}, 0  # of sections, in the piece of memory that all get
    for i, section in enumerate(sections):
        if section.flags & _IN_MEMORY and section.kind != _UNWIND and section.size:
            if section.flags & _WRITTEN:
                return None
            end = -(-end // max(section.align, 1)) * max(section.align, 1)
            where[i] = end
            end += section.size
    memory = mmap.mmap(-1, max(end, 1), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for i, at in where.items():
        if sections[i].kind != _NO_BITS:
            memory[at : at + sections[i].size] = content[sections[i].offset : sections[i].offset + sections[i].size]
    symbols = next((s for s in sections if s.kind == _SYMBOLS), None)
    addresses = (
        None if symbols is None else _symbols(content, sections, symbols, {i: base + at for i, at in where.items()})
    )
    if addresses is None or not _filled(memory, content, sections, where, [address for _, address in addresses]):
        return None
    if _libc().mprotect(ctypes.c_void_p(base), ctypes.c_size_t(max(end, 1)), mmap.PROT_READ | mmap.PROT_EXEC) != 0:
        return None
    # Never given back: threads may be in it while the interpreter ends, when what modules have is taken away.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(memory))
    by_name = dict(addresses)
    return [by_name[name] for name in names] if all([name in by_name for name in names]) else None


def _symbols(
    content: bytes, sections: list[_Section], table: _Section, where: dict[int, int]
) -> list[tuple[str, int]] | None:
    """The names and addresses of all symbols; None if one is nowhere."""
    text, addresses = sections[table.link].offset, []
    for at in range(table.offset, table.offset + table.size, 24):
        name_at, _, _, section, value, _ = struct.unpack_from("<IBBHQQ", content, at)
        name = content[text + name_at : content.index(b"\0", text + name_at)].decode()
        if section == _UNDEFINED:
            address = _of_process(name) if name else 0
        elif section >= _SPECIAL:  # the name of a source file
            address = 0
        else:
            address = where.get(section, 0) + value
        if address is None:
            return None
        addresses.append((name, address))
    return addresses


def _of_process(name: str) -> int | None:
    """A function that the process has."""
    try:
        return ctypes.cast(getattr(_libc(), name), ctypes.c_void_p).value
    except AttributeError:
        return None


def _filled(memory: Any, content: bytes, sections: list[_Section], where: dict[int, int], symbols: list[int]) -> bool:
    """Fill in the addresses; False if something else is asked for."""
    for section in sections:
        if section.info not in where or section.kind not in (_RELOCATIONS, _WITHOUT_ADDENDS):
            continue
        if section.kind != _RELOCATIONS:
            return False
        for offset, info, addend in struct.iter_unpack("<QQq", content[section.offset : section.offset + section.size]):
            symbol = symbols[info >> 32]
            if info & 0xFFFFFFFF != _ADDRESS or symbol == 0:
                return False
            struct.pack_into("<Q", memory, where[section.info] + offset, symbol + addend & 0xFFFFFFFFFFFFFFFF)
    return True


def _libc() -> Any:
    return ctypes.CDLL(None)
