"""Hostile checkpoints by the thousand, loaded under an audit hook: `python tests/io/hostile_checkpoints.py SEED COUNT`.

Loading is allowed to do two things: return a value, or raise `FileFormatError` (or `DeviceError`, for tensors of a
device that is not here). The hook refuses every event but `builtins.id`: no import, no open, no exec, no compile, no
subprocess, no socket, no ctypes.
"""

from __future__ import annotations

import io
import os
import random
import resource
import struct
import sys
import zipfile

import numpy as np

import genesis
from genesis.base.errors import DeviceError, FileFormatError

EVENTS: list[str] = []  # that happened while a file was loaded
WATCH = [False]
MAGIC = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\x80\x02}."

EVIL = [
    "os system",
    "posix system",
    "nt system",
    "builtins eval",
    "builtins exec",
    "builtins getattr",
    "builtins __import__",
    "__builtin__ apply",
    "builtins open",
    "builtins print",
    "builtins compile",
    "builtins type",
    "builtins object",
    "builtins map",
    "subprocess Popen",
    "subprocess call",
    "runpy _run_code",
    "importlib import_module",
    "operator attrgetter",
    "operator methodcaller",
    "functools partial",
    "functools reduce",
    "pickle loads",
    "_pickle loads",
    "marshal loads",
    "types CodeType",
    "types FunctionType",
    "socket socket",
    "webbrowser open",
    "pty spawn",
    "shutil rmtree",
    "ctypes CDLL",
    "code interact",
    "codecs open",
    "numpy load",
    "numpy memmap",
    "numpy f2py",
    "numpy.testing._private.utils runstring",
    "torch load",
    "torch.hub load",
    "torch.storage _load_from_bytes",
    "torch._utils _import_dotted_name",
    "torch.nn.modules.linear Linear",
    "torch.jit load",
    "collections namedtuple",
    "collections UserDict",
    "pathlib PosixPath",
    "argparse Namespace",
    "genesis load",
    "genesis.io.files load",
    "genesis.core.graph.tensor _rebuild",
    "copyreg _reconstructor",
    "sys exit",
    "sys modules",
    "torch.utils.data DataLoader",
    "torch._utils _rebuild_sparse_tensor",
    "torch._utils _rebuild_qtensor",
    "torch float4_e2m1fn_x2",
    "torch QInt8Storage",
    "torch.serialization _get_layout",
    "builtins.eval eval",
    "os.path os.system",
    "collections OrderedDict.__class__",
    "collections OrderedDict.__init__.__globals__",
    "torch Size.__class__",
    " ",
    "\u202e evil",
]
KNOWN = [
    "collections OrderedDict",
    "collections defaultdict",
    "collections Counter",
    "builtins set",
    "builtins frozenset",
    "builtins complex",
    "builtins bytearray",
    "builtins list",
    "builtins dict",
    "builtins tuple",
    "builtins int",
    "_codecs encode",
    "torch Size",
    "torch device",
    "torch float32",
    "torch uint16",
    "torch FloatStorage",
    "torch LongStorage",
    "torch.storage UntypedStorage",
    "torch._utils _rebuild_tensor",
    "torch._utils _rebuild_tensor_v2",
    "torch._utils _rebuild_tensor_v3",
    "torch._utils _rebuild_parameter",
    "torch._utils _rebuild_parameter_with_state",
    "torch._utils _rebuild_meta_tensor_no_storage",
    "torch._tensor _rebuild_from_type_v2",
    "torch.nn.parameter Parameter",
    "torch Tensor",
    "numpy dtype",
    "numpy ndarray",
    "numpy.core.multiarray _reconstruct",
    "numpy.core.multiarray scalar",
    "numpy._core.numeric _frombuffer",
]


def hook(event, args):
    if WATCH[0] and event != "builtins.id":
        EVENTS.append(f"{event} {args!r:.200}")
        raise RuntimeError(f"the audit hook saw {event}")


def zipped(pickle, storages=(b"\0" * 64,), **entries):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", pickle)
        for i, data in enumerate(storages):
            archive.writestr(f"archive/data/{i}", data)
        for name, data in entries.items():
            archive.writestr(f"archive/{name}", data)
    return file.getvalue()


def legacy(pickle, storages=(b"\0" * 64,)):
    keys = b"\x80\x02](" + b"".join(b"X\x01\0\0\0%d" % i for i in range(len(storages))) + b"e."
    return MAGIC + pickle + keys + b"".join(struct.pack("<q", len(s) // 4) + s for s in storages)


def named(name):
    return b"c" + name.replace(" ", "\n", 1).encode("utf-8", "surrogatepass") + b"\n"


def text(value):
    data = value.encode("utf-8", "surrogatepass")
    return b"X" + struct.pack("<I", len(data)) + data


def storage(key="0", kind="torch FloatStorage", count=16, location="cpu", more=b""):
    return b"(" + text("storage") + named(kind) + text(key) + text(location) + integer(count) + more + b"tQ"


def integer(value):
    if 0 <= value < 256:
        return b"K" + struct.pack("<B", value)
    data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return (
        b"\x8a" + struct.pack("<B", len(data)) + data
        if len(data) < 256
        else b"\x8b" + struct.pack("<i", len(data)) + data
    )


def numbers(values):
    return b"(" + b"".join(map(integer, values)) + b"t"


def tensor(offset=0, size=(2, 3), stride=(3, 1), **options):
    return (
        named("torch._utils _rebuild_tensor_v2")
        + b"("
        + storage(**options)
        + integer(offset)
        + numbers(size)
        + numbers(stride)
        + b"\x89)tR"
    )


def exploits():
    """Attacks that are known, and the limits of the format."""
    command = b"(" + text("touch /tmp/owned") + b"tR"
    for name in EVIL:
        yield named(name) + command
        module, _, last = name.partition(" ")
        yield text(module) + text(last) + b"\x93" + command  # by STACK_GLOBAL
        yield named(name) + b")\x81}b"  # NEWOBJ and BUILD
        yield (
            named("torch._tensor _rebuild_from_type_v2")
            + b"("
            + named(name)
            + named("torch Tensor")
            + command[:-1]
            + b"}tR"
        )
        yield b"(" + named(name) + text("x") + b"o"  # OBJ
        yield b"(" + text("x") + b"i" + name.replace(" ", "\n", 1).encode("utf-8", "replace") + b"\n"  # INST
    for name in KNOWN:
        yield named(name)  # as a value of its own
        for args in (
            b")",
            b"]",
            b"N",
            b"(NNNNt",
            b"(" + text("x") + b"t",
            b"(K\x01K\x02t",
            b"(](K\x01eet",
            b"(}t",
            b"(NNNNNNNt",
        ):
            yield named(name) + args + b"R"
            yield named(name) + args + b"\x81"
            yield named(name) + args + b"R}b"
        yield b"]" + named(name) + b"a"
        yield b"}" + named(name) + b"Ns"
    yield from (
        b"\x82\x01",
        b"\x83\x01\x01",
        b"\x84\x01\0\0\0",
        b"P0\n",
        b"\x97",
        b"\x98",
        b"S'x'\n",
        b"I1\n",
        b"V\\u0041\n",
        b"d",
        b"\x92",
    )
    yield from (
        b"",
        b"t",
        b"0",
        b"1",
        b"a",
        b"e",
        b"s",
        b"u",
        b"R",
        b"b",
        b"Q",
        b"(",
        b"((t",
        b"h\x09",
        b"j\xff\xff\xff\xff",
        b"q\0",
        b"2",
        b"\x90",
    )
    yield from (
        b"X\xff\xff\xff\x7f",
        b"\x8d" + b"\xff" * 8,
        b"\x8e" + b"\xff" * 7 + b"\x7f",
        b"\x96" + b"\xff" * 8,
        b"T\xff\xff\xff\xff",
        b"\x8b\xff\xff\xff\x7f",
        b"\x8b\xff\xff\xff\xff",
    )
    yield from (
        b"Nr\xff\xff\xff\xff",
        b"]" * 100_000,
        b"(" * 100_000,
        b")" + b"\x85" * 100_000,
        b"]" * 5000 + b"a" * 4999,
        b"]q\0h\0a",
        b"}q\0Nh\0s",
    )
    yield b"]q\0" + b"".join(b"](h%ch%ce" % (i, i) + b"q%c" % (i + 1) for i in range(100))  # a billion laughs
    tower = b")q\0" + b"".join(b"h%ch%c\x86q%c" % (i, i, i + 1) for i in range(60))
    yield b"}" + tower + b"Ns"
    yield b"\x8f(" + tower + b"\x90"
    yield named("builtins set") + b"](" + tower + b"e\x85R"
    yield b"}(" + b"".join(integer(i * ((1 << 61) - 1)) + b"N" for i in range(1, 3000)) + b"u"  # equal hashes
    yield b"}(" + b"".join(b"(" + integer(i) + b"t" + b"N" for i in range(20_000)) + b"u"
    yield integer(1 << 100_000)
    yield from (text(chr(0xDC80)), b"X\x02\0\0\0\xff\xfe", b"U\x02\xff\xfe", b"}]Ns", b"\x8f(]\x90", b"c" + b"x" * 5000)
    for option in (
        {"count": -1},
        {"count": 1 << 70},
        {"count": 1 << 40},
        {"count": 17},
        {"key": "../../etc/passwd"},
        {"key": "1"},
        {"location": "abacus"},
        {"location": "cuda:0"},
        {"location": "x" * 10_000},
        {"kind": "collections OrderedDict"},
        {"more": b"N"},
        {"more": b"NN"},
    ):
        yield tensor(**option)
    for size, stride in (
        ((1 << 40,), (1,)),
        ((1 << 62,), (0,)),
        ((1 << 30, 1 << 30, 1 << 30), (0, 0, 0)),
        ((-1,), (1,)),
        ((2,), (-1,)),
        ((2, 2), (1,)),
        ((0, 1 << 61), (1, 1)),
        ((1,) * 65, (1,) * 65),
        ((4, 5), (4, 1)),
        ((), (1,)),
        ((16,), (1 << 57,)),
        ((1 << 100,), (1,)),
    ):
        yield tensor(size=size, stride=stride)
        yield (
            named("torch._utils _rebuild_meta_tensor_no_storage")
            + b"("
            + named("torch float32")
            + numbers(size)
            + numbers(stride)
            + b"\x89tR"
        )
    yield from (tensor(offset=11), tensor(offset=-1), tensor(offset=1 << 63))
    array = named("numpy.core.multiarray _reconstruct") + b"(" + named("numpy ndarray") + b"K\0\x85C\x01btR"
    for kind, shape, data in (
        ("f4", (2,), b"1234567"),
        ("O8", (1,), b"12345678"),
        ("f4", (1 << 40,), b"1234"),
        ("f4", (-1,), b""),
        ("V4", (1,), b"1234"),
        ("M8", (1,), b"12345678"),
        ("f4,f4", (1,), b"12345678"),
        ("f4", (0, 1 << 61), b""),
    ):
        kind = named("numpy dtype") + b"(" + text(kind) + b"\x89\x88tR(K\x03" + text("<") + b"tb"
        yield array + b"(K\x01" + numbers(shape) + kind + b"\x89C" + bytes([len(data)]) + data + b"tb"
        yield named("numpy.core.multiarray scalar") + b"(" + kind + b"C" + bytes([len(data)]) + data + b"tR"
    yield named("_codecs encode") + b"(" + text("x") + text("zip") + b"tR"
    yield named("_codecs encode") + b"(" + text("x") + text("os") + b"tR"
    yield named("collections OrderedDict") + b")R}" + text("items") + b"Nsb"
    nested = b"(" + named("torch._utils _rebuild_tensor_v2") + named("torch Tensor") + b")}t"
    for _ in range(200):
        nested = b"(" + named("torch._tensor _rebuild_from_type_v2") + named("torch Tensor") + nested + b"}t"
    yield named("torch._tensor _rebuild_from_type_v2") + nested + b"R"


def random_pickle(rng):
    """Opcodes by chance, most of them with what they need on the stack."""
    out = bytearray(b"\x80\x02")
    for _ in range(rng.randrange(1, 40)):
        out += rng.choice(
            [
                lambda: b"N",
                lambda: b")",
                lambda: b"]",
                lambda: b"}",
                lambda: b"(",
                lambda: b"t",
                lambda: b"R",
                lambda: b"b",
                lambda: b"s",
                lambda: b"a",
                lambda: b"\x85",
                lambda: b"\x86",
                lambda: b"\x87",
                lambda: b"e",
                lambda: b"u",
                lambda: b"Q",
                lambda: b"\x81",
                lambda: b"\x93",
                lambda: b"0",
                lambda: b"2",
                lambda: b"\x94",
                lambda: b"q" + rng.randbytes(1),
                lambda: b"h" + rng.randbytes(1),
                lambda: integer(rng.choice([0, 1, 2, -1, 16, 1 << 40, 1 << 63])),
                lambda: text(rng.choice(["storage", "0", "cpu", "os", "system", "latin1", "<", "f4"])),
                lambda: named(rng.choice(KNOWN)),
                lambda: named(rng.choice(KNOWN)),
                lambda: named(rng.choice(EVIL)) if rng.random() < 0.1 else b"N",
                lambda: storage(),
                lambda: tensor(),
                lambda: numbers((2, 3)),
                lambda: rng.randbytes(1),
                lambda: (
                    named(rng.choice(KNOWN))
                    + b"("
                    + rng.choice([b"", storage(), numbers((2,)), text("cpu"), tensor()])
                    + b"tR"
                ),
            ]
        )()
    return bytes(out) + b"."


def mutated(rng, data):
    out = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 4, 16])):
        at = rng.randrange(len(out))
        action = rng.randrange(4)
        if action == 0:
            out[at] = rng.randrange(256)
        elif action == 1:
            out[at] ^= 1 << rng.randrange(8)
        elif action == 2:
            del out[at : at + rng.randrange(1, 9)]
        else:
            out[at:at] = out[(start := rng.randrange(len(out))) : start + rng.randrange(1, 20)]
        if not out:
            return b""
    return bytes(out)


def honest():
    """A file of each format with a bit of everything, and its pickle."""
    value = {
        "w": genesis.arange(6.0).reshape(2, 3).t(),
        "p": genesis.nn.Parameter(genesis.ones(2)),
        "u": genesis.ones(2, dtype=genesis.uint16),
        "n": [1, 2.5, (None, True)],
        "b": b"ab",
        "c": 1j,
        "s": {1, 2},
        "d": genesis.device("cpu"),
        "z": genesis.Size([2]),
        "k": genesis.float16,
        3: "int",
        "m": genesis.ones(1, device="meta"),
    }
    file = io.BytesIO()
    genesis.save(value, file, format="torch")
    whole = file.getvalue()
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        pickle = archive.read("archive/data.pkl")
        storages = [archive.read(name) for name in sorted(archive.namelist()) if "/data/" in name]
    return whole, pickle, storages


def files(seed, count):
    """``count`` files: the exploits in both formats first, then those that chance makes."""
    made = 0
    for body in exploits():
        for data in (zipped(b"\x80\x02" + body + b"."), legacy(b"\x80\x02" + body + b".")):
            yield data
            made += 1
    rng = random.Random(seed)
    whole, pickle, storages = honest()
    assert isinstance(attempt(whole), dict) and isinstance(attempt(zipped(pickle, storages)), dict)
    old = legacy(b"\x80\x02" + tensor(more=b"N") + b".")
    assert attempt(old).shape == (2, 3)
    while made < count:
        yield rng.choice(
            [
                lambda: mutated(rng, whole),
                lambda: whole[: rng.randrange(len(whole))],
                lambda: zipped(mutated(rng, pickle), storages),
                lambda: zipped(mutated(rng, pickle), storages),
                lambda: zipped(random_pickle(rng)),
                lambda: legacy(random_pickle(rng)),
                lambda: mutated(rng, old),
                lambda: zipped(pickle, [s[:-1] for s in storages]),
            ]
        )()
        made += 1


def attempt(data):
    """The value of a file, or its error; every other exception is a failure."""
    file = io.BytesIO(data)
    WATCH[0] = True
    try:
        return genesis.load(file)
    except (FileFormatError, DeviceError) as error:
        WATCH[0] = False
        assert str(error).startswith("load: ") and len(str(error)) < 1000, error
        return error
    finally:
        WATCH[0] = False


def main(seed, count):
    genesis.load(io.BytesIO(honest()[0]))  # what is imported on first use is here now
    genesis.cuda.is_available()  # ... and what files are asked for that say that tensors were on a GPU
    sys.addaudithook(hook)
    with open("/proc/self/statm") if os.path.exists("/proc/self/statm") else io.StringIO("0") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    if used:
        resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 28), resource.RLIM_INFINITY))
    loaded = refused = 0
    for data in files(seed, count):
        result = attempt(data)
        assert not EVENTS, EVENTS
        loaded, refused = (loaded, refused + 1) if isinstance(result, Exception) else (loaded + 1, refused)
        for t in result.values() if isinstance(result, dict) else ():
            if isinstance(t, genesis.Tensor) and not t.is_meta and t.numel() < 1000:
                np.asarray(t.detach()).sum()  # all of it can be read
    assert not os.path.exists("/tmp/owned")
    print(f"{loaded + refused} files: {refused} refused, {loaded} loaded, nothing else happened")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
