"""Triton as a compiler: from the source of a kernel to machine code. The only file that imports it.

Nothing of Triton runs a kernel: its own launcher takes ten times as long as the driver's, and wants a compiler of C on
the user's machine. What is used here has the same form in its releases from 3.6 on; `OPTIONS` are said explicitly, as
their defaults change.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import linecache
import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from genesis.base.errors import UnsupportedError, message
from genesis.cuda.runtime.parameters import HIDDEN

WARP = 32
REGISTERS, THREADS = 1 << 16, 1 << 11  # of a processor
LITTLE = 1 << 10  # bytes of shared memory, of a kernel that has no tiles there: it waits for the device's memory
MANY, FEW = 8, 4  # warps of a program that is one of few on a processor: another one is a third more
FEWER = 16  # registers that a thread may do without
HOPPER = 90  # compute capability 9.0


@dataclass(frozen=True, slots=True)
class Cubin:
    """Machine code of a kernel for one kind of device, and what launching it takes."""

    image: bytes
    name: str
    shared: int  # bytes of shared memory
    warps: int


def available() -> bool:
    return importlib.util.find_spec("triton") is not None


def version() -> str:
    """Which Triton there is, or ``GENESIS_CUDA_TRITON``: that whose machine code is wanted from the disk; empty if none."""
    asked = os.environ.get("GENESIS_CUDA_TRITON")
    if asked:
        return asked
    try:
        return importlib.metadata.version("triton")
    except importlib.metadata.PackageNotFoundError:
        return ""


def function(source: str, name: str = "kernel") -> Any:
    """The function of a source that is on no disk: Triton reads it from the cache of lines."""
    file = f"<genesis {hash(source) & (1 << 64) - 1:x}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    namespace: dict[str, Any] = {"__name__": "genesis.cuda.kernels"}
    exec(compile(source, file, "exec"), namespace)
    return namespace[name]


def compiled(
    source: str,
    signature: tuple[str, ...],
    aligned: tuple[int, ...],
    warps: int = 4,
    capability: int = HOPPER,
    fused: bool = True,
    stages: int = 3,
) -> Cubin:
    """A kernel as machine code.

    Args:
        signature: Triton's type of each parameter
        aligned: the parameters that are multiples of 16: without that, no 16 bytes are read at once
        fused: whether a product and a sum may be rounded once; not where bits have to be those of the CPU

    Raises:
        NotImplementedError: there is no Triton, or the kernel wants what only its own launcher gives
    """
    if not available():
        raise UnsupportedError(message("cuda", "Triton is not installed", hint='pip install "genesis-dl[cuda]"'))
    from triton import compile as compile_kernel
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    kernel = function(source)
    names = dict(zip(kernel.arg_names, signature, strict=True))
    attributes = {(i,): [["tt.divisibility", 16]] for i in aligned}
    options = {"num_warps": warps, "num_stages": stages, "enable_fp_fusion": fused}

    def made_with(**more: int) -> Any:
        target = GPUTarget("cuda", capability, WARP)
        return compile_kernel(ASTSource(kernel, names, {}, attributes), target=target, options={**options, **more})

    made = made_with()
    if warps >= MANY and made.metadata.shared <= LITTLE and _tool().is_file():
        fewer = _fewer(resources(made.asm["cubin"])[0], warps)
        other = made_with(maxnreg=fewer) if fewer else made
        made = made if resources(other.asm["cubin"])[1] else other
    facts, hidden = made.metadata, parameters(made.asm["ptx"]) - len(signature)
    if getattr(facts, "global_scratch_size", 0) or getattr(facts, "profile_scratch_size", 0) or hidden > HIDDEN:
        raise UnsupportedError(message("cuda", "a kernel that wants memory of Triton's launcher"))
    return Cubin(made.asm["cubin"], facts.name, facts.shared, facts.num_warps)


def parameters(assembly: str) -> int:
    """How many parameters a kernel has, as its assembly declares them."""
    head = assembly[assembly.index(".entry") :]
    return head[: head.index(")")].count(".param")


def _fewer(registers: int, warps: int) -> int:
    """The registers of a thread with which a processor has one program more, if it has few, and these are not many fewer; or 0."""
    threads = WARP * warps
    programs = 1 + REGISTERS // (threads * -(-registers // 8) * 8)
    fewer = REGISTERS // (threads * programs) // 8 * 8
    return fewer if programs <= FEW and programs * threads <= THREADS and fewer >= registers - FEWER else 0


def resources(image: bytes) -> tuple[int, int]:
    """The registers of a thread, and the bytes of its stack, where registers are spilled to."""
    text = _dumped(image, "--dump-resource-usage")
    return tuple([int(text.partition(f"{name}:")[2].split()[0]) for name in ("REG", "STACK")])  # type: ignore[return-value]


def text_of(cubin: Cubin) -> str:
    """What the assembler of the wheel says of machine code: instructions, registers, and memory of its own."""
    return "\n".join([_dumped(cubin.image, asked) for asked in ("--dump-resource-usage", "--dump-sass")])


def _dumped(image: bytes, asked: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernel.cubin"
        file.write_bytes(image)
        return subprocess.run([_tool(), asked, file], capture_output=True, text=True, check=True).stdout


def _tool() -> Path:
    import triton

    return Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
