"""Kernels of steps that are repeated: numbers of the host they read from memory, see `genesis.cuda.recorded.control`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType

from genesis.cuda.launch.kernel import Kernel
from genesis.jit.lowering.emit_triton import Emitted, emitted
from genesis.jit.lowering.loops import Nest


class Held(Kernel):
    """Loops of which some operands are numbers in memory."""

    def __init__(self, nest: Nest, held: frozenset[int], tables: Mapping[int, int] = MappingProxyType({})) -> None:
        super().__init__(nest, tables=tables)
        self.held = held

    @cached_property
    def code(self) -> Emitted:
        return emitted(self.nest, held=self.held)
