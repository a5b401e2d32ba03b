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

_safetensors = Late("genesis.io.safetensors")
_Looks = dict[str, tuple[np.dtype[Any], int]]  # dtype and number of elements


class Image:
    """A file with such tensors: ``memory`` is all of it, ``hosts`` are the tensors within."""

    def __init__(self, looks: _Looks) -> None:
        self.looks = looks
        unused = {name: np.empty(size, dtype) for name, (dtype, size) in looks.items()}
        header, *blocks = [np.frombuffer(piece, np.uint8) for piece in pieces(unused)]
        self.memory = large_pages(header.size + sum([block.size for block in blocks]))
        self.memory[: header.size] = header
        offsets, begin = {}, header.size
        for block in blocks:
            offsets[address(block)] = begin
            begin += block.size
        self.hosts = {name: self._host(offsets.get(address(x), 0), x) for name, x in unused.items()}

    def _host(self, begin: int, like: Host) -> Host:
        return self.memory[begin : begin + like.nbytes].view(like.dtype)

    def take(self, arrays: Mapping[str, Host]) -> None:
        """Copy the tensors."""
        for name, array in arrays.items():
            np.copyto(self.hosts[name], array)


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
