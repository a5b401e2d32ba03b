"""Machine code of kernels kept on disk, by what it was made of: with it, Triton is not even imported.

The folder, its trust and its limit are those of `genesis.kernels.llvm.objects`; `genesis cache` shows and clears both.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from typing import Any

from genesis.cuda.launch import triton
from genesis.cuda.launch.triton import Cubin
from genesis.kernels.llvm import objects

made = {"compiled": 0, "loaded": 0}  # how often, in this process
_ready: dict[Code, Cubin] = {}  # compiled before it is wanted
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Code:
    """What machine code is made of: see `triton.compiled`."""

    source: str
    signature: tuple[str, ...]
    aligned: tuple[int, ...]
    warps: int
    capability: int
    fused: bool = True

    @property
    def parts(self) -> tuple[Any, ...]:
        return self.source, self.signature, self.aligned, self.warps, self.capability, self.fused

    @property
    def name(self) -> str:
        """Of the file that it is kept in."""
        source, *others = self.parts
        return objects.name_of(source, *map(repr, others), triton.version(), suffix=objects.CUBIN)


def cubin(
    source: str, signature: tuple[str, ...], aligned: tuple[int, ...], warps: int, capability: int, fused: bool = True
) -> Cubin:
    """The machine code of a kernel (`triton.compiled`): from the disk, or compiled now and kept.

    Raises:
        NotImplementedError: it is not kept, and there is no Triton
    """
    code = Code(source, signature, aligned, warps, capability, fused)
    ready = _ready.pop(code, None)
    if ready is not None:
        return ready
    kept = objects.load(code.name)
    if kept is not None:
        made["loaded"] += 1
        return _read(kept)
    compiled = triton.compiled(*code.parts)
    _save(code, compiled)
    return compiled


def is_kept(code: Code) -> bool:
    return code in _ready or objects.load(code.name) is not None


def keep(code: Code, compiled: Cubin) -> None:
    """What another process has compiled, for when it is wanted here, and on disk."""
    with _lock:
        _ready[code] = compiled
        _save(code, compiled)


def _save(code: Code, compiled: Cubin) -> None:
    made["compiled"] += 1
    objects.save(code.name, _written(compiled))


def _written(code: Cubin) -> bytes:
    facts = json.dumps({"name": code.name, "shared": code.shared, "warps": code.warps}).encode()
    return len(facts).to_bytes(4, "little") + facts + code.image


def _read(content: bytes) -> Cubin:
    size = int.from_bytes(content[:4], "little")
    return Cubin(image=content[4 + size :], **json.loads(content[4 : 4 + size]))
