"""What hooks of `genesis.nn.parallel.DistributedDataParallel` get: gradients that lie in one piece of memory."""

from __future__ import annotations

from collections.abc import Sequence

from genesis.core.graph.tensor import Tensor


class GradBucket:
    """The gradients of some parameters, as this rank has them.

    Args:
        buffer: all of them, one after the other
        gradients: views of it, each in the shape of its parameter
        last: whether no other bucket comes after it in this backward
    """

    def __init__(
        self, buffer: Tensor, gradients: Sequence[Tensor], parameters: Sequence[Tensor], index: int, last: bool
    ) -> None:
        self._buffer, self._gradients, self._parameters = buffer, list(gradients), list(parameters)
        self._index, self._last = index, last

    def index(self) -> int:
        """Which of the buckets it is, in the order in which they are sent."""
        return self._index

    def buffer(self) -> Tensor:
        """All gradients as one dimension."""
        return self._buffer

    def set_buffer(self, buffer: Tensor) -> None:
        """Let hooks that come after see these instead."""
        self._buffer = buffer

    def gradients(self) -> list[Tensor]:
        """Each of them, as a view."""
        return list(self._gradients)

    def parameters(self) -> list[Tensor]:
        """Whose gradients they are."""
        return list(self._parameters)

    def is_last(self) -> bool:
        """Whether it is the last one of a backward."""
        return self._last
