"""What a file of safetensors will hold, in memory: tensors are copied to where they are in the file, and it is written as
it is. For the next snapshot of the same tensors it is used again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from genesis.base.late import Late
from genesis.core.graph.tensor import wrap
from genesis.distributed.checkpoint.direct import large_pages
from genesis.distributed.checkpoint.parts import Host, Piece
from genesis.kernels.cpu.memory import address
from genesis.kernels.llvm import crc

_safetensors = Late("genesis.io.safetensors")
_Looks = dict[str, tuple[np.dtype[Any], int]]  # dtype and number of elements
_LARGE = 1 << 16  # bytes of a tensor that is copied by itself: a call takes as long as to copy these


class Image:
    """A file with such tensors: ``memory`` is all of it, ``hosts`` are the tensors within, ``crc32`` is that of all of it
    where it costs nothing beside the copies.
    """

    def __init__(self, looks: _Looks) -> None:
        self.looks = looks
        self.crc32: int | None = None
        unused = {name: np.empty(size, dtype) for name, (dtype, size) in looks.items()}
        header, *blocks = [np.frombuffer(piece, np.uint8) for piece in pieces(unused)]
        self.memory = large_pages(header.size + sum([block.size for block in blocks]))
        self.memory[: header.size] = header
        offsets, begin = {}, header.size  # they are of the blocks in the order of the file
        for block in blocks:
            offsets[address(block)] = begin
            begin += block.size
        self._begins = {name: offsets.get(address(x), 0) for name, x in unused.items()}
        self.hosts = {name: self._host(begin, unused[name]) for name, begin in self._begins.items()}
        self._large = sorted([name for name, x in unused.items() if x.nbytes >= _LARGE], key=self._begins.__getitem__)

    def _host(self, begin: int, like: Host) -> Host:
        return self.memory[begin : begin + like.nbytes].view(like.dtype)

    def take(self, arrays: Mapping[str, Host]) -> None:
        """Copy the tensors."""
        alone = self._large if crc.is_fast() else []
        for name, array in arrays.items():
            if name not in alone:
                np.copyto(self.hosts[name], array)
        if not crc.is_fast():
            return  # the thread that writes computes it
        self.crc32 = end = 0
        for name in alone:  # in the order of the file; those between are there
            begin, array = self._begins[name], arrays[name].view(np.uint8)
            self.crc32 = crc.crc32(self.memory[end:begin].data, self.crc32)
            end = begin + array.size
            self.crc32 = crc.copy(self.memory[begin:end], array, self.crc32)
        self.crc32 = crc.crc32(self.memory[end:].data, self.crc32)


class Copies:
    """The image of the last snapshot."""

    def __init__(self) -> None:
        self.image: Image | None = None

    def of(self, mine: Mapping[str, Piece]) -> Image:
        """An image with copies of these tensors, in the memory of the one before if that is as large."""
        arrays = {name: piece.host() for name, piece in mine.items()}
        looks = {name: (array.dtype, array.size) for name, array in arrays.items()}
        if self.image is None or self.image.looks != looks:
            self.image = None  # its memory is given back first
            self.image = Image(looks)
        self.image.take(arrays)
        return self.image


def pieces(hosts: Mapping[str, Host]) -> list[Any]:
    """The bytes of a file of safetensors, piece by piece, none of them empty."""
    return [piece for piece in _safetensors.pieces({key: wrap(host) for key, host in hosts.items()}) if len(piece)]
