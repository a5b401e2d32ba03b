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
from dataclasses import dataclass
from typing import Any

from genesis.base.errors import UnsupportedError, message
from genesis.cuda.runtime.parameters import HIDDEN

WARP = 32
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
    made = compile_kernel(
        ASTSource(kernel, names, {}, attributes), target=GPUTarget("cuda", capability, WARP), options=options
    )
    facts, hidden = made.metadata, parameters(made.asm["ptx"]) - len(signature)
    if getattr(facts, "global_scratch_size", 0) or getattr(facts, "profile_scratch_size", 0) or hidden > HIDDEN:
        raise UnsupportedError(message("cuda", "a kernel that wants memory of Triton's launcher"))
    return Cubin(made.asm["cubin"], facts.name, facts.shared, facts.num_warps)


def parameters(assembly: str) -> int:
    """How many parameters a kernel has, as its assembly declares them."""
    head = assembly[assembly.index(".entry") :]
    return head[: head.index(")")].count(".param")


def text_of(cubin: Cubin) -> str:
    """What the assembler of the wheel says of machine code: instructions, registers, and memory of its own."""
    import subprocess
    import tempfile
    from pathlib import Path

    import triton

    tools = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernel.cubin"
        file.write_bytes(cubin.image)
        asked = [[tools / "cuobjdump", "--dump-resource-usage", file], [tools / "cuobjdump", "--dump-sass", file]]
        return "\n".join([subprocess.run(a, capture_output=True, text=True, check=True).stdout for a in asked])
