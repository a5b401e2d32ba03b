"""Machine code out of LLVM's text form, where llvmlite is installed (``pip install "genesis-dl[jit]"``).

For loops that NumPy is slow at. Every kernel that uses it has a NumPy form for machines without.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from genesis.base.locks import lock_that_forks_wait_for
from genesis.kernels.llvm import elf, objects

_compiling = lock_that_forks_wait_for()


def _array_data() -> int:
    """How far behind the address of a NumPy array's object that of its elements is; 0 if it is not where NumPy's C
    interface has it, behind what all objects begin with.
    """
    known, behind = np.zeros(1), object.__basicsize__
    there = ctypes.c_void_p.from_address(id(known) + behind).value
    return behind if there == known.ctypes.data else 0


ARRAY_DATA = _array_data()


OLDEST = 20  # of LLVM's versions, that of llvmlite 0.45: before, pointers had the type of what they point to


@functools.cache
def binding() -> ModuleType | None:
    """llvmlite, ready to compile for this processor; None where it is not installed, or too old. (Importing it takes 50 to
    100 ms.)
    """
    try:
        import llvmlite.binding as llvm
    except ImportError:
        return None
    if llvm.llvm_version_info[0] < OLDEST:
        return None
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm  # type: ignore[no-any-return]


class Host(NamedTuple):
    """What machine code depends on besides the code: the compiler, and the processor."""

    llvmlite: str
    llvm: str
    triple: str
    cpu: str
    features: str  # "+avx2,-sse4a,..."

    def has(self, feature: str) -> bool:
        return f"+{feature}" in self.features.split(",")


@functools.cache
def host() -> Host | None:
    """The compiler and the processor; None without llvmlite. What was found out once is kept on disk for the same
    processor and the same llvmlite, so that it need not be imported where all code is kept there, too.
    """
    name = objects.name_of("host", seen, suffix=objects.HOST) if (seen := _seen()) is not None else None
    kept = objects.load(name) if name is not None else None
    if kept is not None:
        there = Host(*kept.decode().split("\0"))
        return there if int(there.llvm.partition(".")[0]) >= OLDEST else None
    llvm = binding()
    if llvm is None:
        return None
    versions = llvmlite_version(), ".".join(map(str, llvm.llvm_version_info))
    here = Host(*versions, llvm.get_process_triple(), llvm.get_host_cpu_name(), _features(llvm))
    if name is not None:
        objects.save(name, "\0".join(here).encode())
    return here


def _seen() -> str | None:
    """What can be seen of llvmlite and the processor without importing the one; None if that is not enough."""
    if not elf.here():
        return None
    spec = importlib.util.find_spec("llvmlite")
    if spec is None or spec.origin is None:
        return None
    folder = os.path.dirname(spec.origin)
    try:
        library = os.stat(os.path.join(folder, "binding", "libllvmlite.so"))
        with open(os.path.join(folder, "_version.py")) as file:
            version = file.read()
        with open("/proc/cpuinfo") as file:
            lines = file.read(1 << 14).partition("\n\n")[0].splitlines()
    except OSError:
        return None
    fixed = [line for line in lines if line.startswith(("vendor_id", "cpu family", "model", "stepping", "flags"))]
    return "\n".join([folder, f"{library.st_mtime_ns} {library.st_size}", version, *fixed]) if len(fixed) > 4 else None


def function(name: str, code: str, *parameters: type) -> Callable[..., None] | None:
    """The function ``name`` in ``code``, compiled for this processor (15 to 30 ms, so keep it); None without llvmlite.

    It takes numbers and addresses as its ``parameters`` (classes of `ctypes`) say, and lets other threads run
    meanwhile.
    """
    if host() is None:
        return None
    compiled: Any = ctypes.CFUNCTYPE(None, *parameters)(address(name, code))
    return compiled  # type: ignore[no-any-return]


def nest(name: str, code: str, addresses: int, integers: int) -> Callable[..., None]:
    """`function` of so many addresses and then so many integers, which is what nests of loops take."""
    compiled = function(name, code, *_parameters(addresses, integers))
    assert compiled is not None, "nests are asked for where llvmlite is"
    return compiled


def nests(code: str, sizes: dict[str, tuple[int, int]]) -> list[Callable[..., None]]:
    """`nest` of several functions in one piece of code: for each name how many addresses and integers it takes."""
    where = addresses_in(code, list(sizes))
    return [ctypes.CFUNCTYPE(None, *_parameters(*size))(at) for size, at in zip(sizes.values(), where, strict=True)]


def address_of(compiled: Any) -> int:
    """The address of what `nest` or `function` gave."""
    address: int = ctypes.c_void_p.from_buffer(compiled).value or 0  # the first word of a function of `ctypes`
    return address


def _parameters(addresses: int, integers: int) -> list[type]:
    return [*[ctypes.c_void_p] * addresses, *[ctypes.c_int64] * integers]


_engines: list[Any] = []  # the code is there as long as its engine


def address(name: str, code: str) -> int:
    """Where the function ``name`` in ``code`` is, compiled for this processor; it stays there. (Where llvmlite is.)"""
    return addresses_in(code, [name])[0]


def addresses_in(code: str, names: list[str]) -> list[int]:
    """`address` of several functions. Machine code that another process has kept is not compiled again (2 ms)."""
    with _compiling:
        name = object_name(code)
        machine_code = objects.load(name)
        if machine_code is None:
            machine_code = _compiled(binding(), code)
            objects.save(name, machine_code)
        return _loaded(machine_code, names)


def kept_addresses(name: str, names: list[str]) -> list[int] | None:
    """`addresses_in` a piece of code that is known by the name of its file only; None if there is no such file."""
    with _compiling:
        machine_code = objects.load(name)
        return None if machine_code is None else _loaded(machine_code, names)


def object_name(code: str) -> str:
    """The name of the file that keeps the machine code of a piece of code."""
    return objects.name_of(code, *target())


def _loaded(machine_code: bytes, names: list[str]) -> list[int]:
    where = elf.loaded(machine_code, names)
    if where is not None:
        return where
    llvm: Any = binding()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine(llvm))
    engine.add_object_file(llvm.ObjectFileRef.from_data(machine_code))
    engine.finalize_object()
    _engines.append(engine)
    return [engine.get_function_address(name) for name in names]


def _compiled(llvm: Any, code: str) -> bytes:
    module = llvm.parse_assembly(code)
    module.verify()
    return bytes(_machine(llvm).emit_object(module))


def target() -> Host:
    """`host`, where llvmlite is."""
    here = host()
    assert here is not None, "code is compiled where llvmlite is"
    return here


def llvmlite_version() -> str:
    import llvmlite

    return str(llvmlite.__version__)


def _features(llvm: Any) -> str:
    """What the processor can do; the longest vectors are used as they are, where LLVM would divide them."""
    features = llvm.get_host_cpu_features()
    more = ["-prefer-256-bit"] if features.get("avx512f") else []
    if not features.get("bf16") and _multiplies_bfloat16():
        more.append("+bf16")
    return ",".join([*([str(features.flatten())] if features else []), *more])


def _multiplies_bfloat16() -> bool:
    """Whether the system says of an ARM processor that it has instructions for bfloat16 numbers, which LLVM does not ask it."""
    if os.uname().machine not in ("aarch64", "arm64"):
        return False
    libc = ctypes.CDLL(None)
    if sys.platform == "darwin":
        answer, size = ctypes.c_int(0), ctypes.c_size_t(ctypes.sizeof(ctypes.c_int))
        given = b"hw.optional.arm.FEAT_BF16", ctypes.byref(answer), ctypes.byref(size), None, ctypes.c_size_t(0)
        return bool(libc.sysctlbyname(*given) == 0 and answer.value)
    libc.getauxval.restype, libc.getauxval.argtypes = ctypes.c_ulong, [ctypes.c_ulong]
    capabilities, bfloat16 = 26, 1 << 14  # AT_HWCAP2, HWCAP2_BF16
    return bool(libc.getauxval(capabilities) & bfloat16)


def _machine(llvm: Any) -> Any:
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=_features(llvm), opt=2, jit=True
    )
