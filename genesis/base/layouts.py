"""Layouts and memory formats: words that PyTorch's functions take. What tensors here have is ``strided`` and contiguous."""

from __future__ import annotations

from typing import Final, final

from genesis.base.library import of_library


class _Word:
    """A value that is only itself: printed, pickled and copied by its name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name: Final = name

    def __repr__(self) -> str:
        return of_library(self.name)

    def __reduce__(self) -> str:
        return self.name


@final
class layout(_Word):  # noqa: N801
    """How the elements of a tensor are stored."""


@final
class memory_format(_Word):  # noqa: N801
    """In which order of dimensions the elements of a tensor lie in memory."""


strided = layout("strided")
sparse_coo, sparse_csr, sparse_csc = layout("sparse_coo"), layout("sparse_csr"), layout("sparse_csc")
sparse_bsr, sparse_bsc, jagged = layout("sparse_bsr"), layout("sparse_bsc"), layout("jagged")
contiguous_format, preserve_format = memory_format("contiguous_format"), memory_format("preserve_format")
channels_last, channels_last_3d = memory_format("channels_last"), memory_format("channels_last_3d")

LAYOUTS = (strided, sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc, jagged)
FORMATS = (contiguous_format, preserve_format, channels_last, channels_last_3d)
FORMAT_DIMS = {channels_last: 4, channels_last_3d: 5}  # how many dimensions a tensor has to have
