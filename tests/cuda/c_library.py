"""Shared libraries whose functions are Python's (`c_library.c`), and what a driver reads in machine code."""

import ctypes as c
import struct
import subprocess
from pathlib import Path

KEPT = []  # what C calls must not be collected


def library(soname, folder, names=()):
    """A library of C under this name, which is found by whoever loads that name; gives how to say what its functions are.

    Args:
        names: functions that are looked up in the file
    """
    file, source = Path(folder) / soname, Path(__file__).with_name("c_library.c")
    listed, options = file.with_suffix(".h"), []
    if names:
        listed.write_text("\n".join([f"FORWARD({name})" for name in names]) + "\n")
        options = [f'-DFORWARDED="{listed}"']
    subprocess.run(["cc", "-shared", "-fPIC", f"-Wl,-soname,{soname}", *options, "-o", file, source], check=True)
    made = c.CDLL(str(file), mode=c.RTLD_GLOBAL)

    def told(name, function, *types):
        kept = c.CFUNCTYPE(c.c_int, *types)(function)
        KEPT.append(kept)
        made.told(name.encode(), kept)

    return told


# ---- machine code


def sections(image):
    """The sections of an ELF file by name."""
    at, size, count, names = struct.unpack_from("<Q10xHHH", image, 0x28)
    heads = [struct.unpack_from("<IIQQQQ", image, at + i * size) for i in range(count)]
    texts = image[heads[names][4] : heads[names][4] + heads[names][5]]
    return {texts[h[0] :].split(b"\0")[0].decode(): image[h[4] : h[4] + h[5]] for h in heads}


def whole(address):
    """The bytes of the ELF file at an address: its table of sections is the last thing in it."""
    head = c.string_at(address, 64)
    assert head[:4] == b"\x7fELF", "no machine code"
    at, size, count = struct.unpack_from("<Q10xHH", head, 0x28)
    first, step, segments = struct.unpack_from("<Q", head, 0x20)[0], *struct.unpack_from("<HH", head, 0x36)
    return c.string_at(address, max(at + size * count, first + step * segments))


PARAMETER = 0x17  # EIATTR_KPARAM_INFO


def parameters(image, name):
    """The offset and bytes of each parameter of a kernel, as the driver reads them in its machine code."""
    info, at, found = sections(image)[f".nv.info.{name}"], 0, {}
    while at < len(info):
        form, attribute, size = struct.unpack_from("<BBH", info, at)
        if form == 4:
            if attribute == PARAMETER:
                _, ordinal, offset, flags = struct.unpack_from("<IHHI", info, at + 4)
                found[ordinal] = offset, flags >> 18
            at += size
        at += 4
    return [found[i] for i in range(len(found))]
