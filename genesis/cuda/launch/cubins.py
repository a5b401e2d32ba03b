"""Machine code of kernels kept on disk, by what it was made of: with it, Triton is not even imported.

The folder, its trust and its limit are those of `genesis.kernels.llvm.objects`; `genesis cache` shows and clears both.
"""

from __future__ import annotations

import json

from genesis.cuda.launch import triton
from genesis.cuda.launch.triton import Cubin
from genesis.kernels.llvm import objects

made = {"compiled": 0, "loaded": 0}  # how often, in this process


def cubin(
    source: str, signature: tuple[str, ...], aligned: tuple[int, ...], warps: int, capability: int, fused: bool = True
) -> Cubin:
    """The machine code of a kernel (`triton.compiled`): from the disk, or compiled now and kept.

    Raises:
        NotImplementedError: it is not kept, and there is no Triton
    """
    parts = source, repr(signature), repr(aligned), str(warps), str(capability), str(fused), triton.version()
    name = objects.name_of(*parts, suffix=objects.CUBIN)
    kept = objects.load(name)
    if kept is not None:
        made["loaded"] += 1
        return _read(kept)
    code = triton.compiled(source, signature, aligned, warps, capability, fused)
    made["compiled"] += 1
    objects.save(name, _written(code))
    return code


def _written(code: Cubin) -> bytes:
    facts = json.dumps({"name": code.name, "shared": code.shared, "warps": code.warps}).encode()
    return len(facts).to_bytes(4, "little") + facts + code.image


def _read(content: bytes) -> Cubin:
    size = int.from_bytes(content[:4], "little")
    return Cubin(image=content[4 + size :], **json.loads(content[4 : 4 + size]))
