"""einops for tensors: ``import genesis.interop`` and its functions take them.

>>> import genesis
>>> einops = __import__("pytest").importorskip("einops")
>>> backend = genesis.interop.register_einops()
>>> einops.rearrange(genesis.arange(4), "(a b) -> b a", a=2)
tensor([[0, 2],
        [1, 3]])
"""

from __future__ import annotations

import importlib.util
from typing import Any

import genesis
from genesis.core.graph.tensor import Tensor


def register_einops() -> Any:
    """Tell einops how to work on tensors (its functions, einsum and packing); returns the backend class. Importing this
    module does it, where einops is installed.
    """
    from einops._backends import AbstractBackend

    for known in AbstractBackend.__subclasses__():
        if getattr(known, "framework_name", "") == "genesis":
            return known

    class GenesisBackend(AbstractBackend):  # type: ignore[misc]
        framework_name = "genesis"

        def is_appropriate_type(self, tensor: Any) -> bool:
            return isinstance(tensor, Tensor)

        def from_numpy(self, x: Any) -> Tensor:
            return genesis.from_numpy(x)

        def to_numpy(self, x: Tensor) -> Any:
            return x.detach().numpy()

        def arange(self, start: int, stop: int) -> Tensor:
            return genesis.arange(start, stop)

        def shape(self, x: Tensor) -> tuple[int, ...]:
            return tuple(x.shape)

        def reshape(self, x: Tensor, shape: Any) -> Tensor:
            return x.reshape(tuple(shape))

        def transpose(self, x: Tensor, axes: Any) -> Tensor:
            return x.permute(tuple(axes))

        def reduce(self, x: Tensor, operation: str, axes: Any) -> Tensor:
            call = {"min": "amin", "max": "amax"}.get(operation, operation)
            return getattr(x, call)(tuple(sorted(axes)))

        def stack_on_zeroth_dimension(self, tensors: list[Tensor]) -> Tensor:
            return genesis.stack(tensors)

        def add_axis(self, x: Tensor, new_position: int) -> Tensor:
            return x.unsqueeze(new_position)

        def add_axes(self, x: Tensor, n_axes: int, pos2len: dict[int, int]) -> Tensor:
            sizes = [-1] * n_axes
            for position, length in sorted(pos2len.items()):
                x = x.unsqueeze(position)
                sizes[position] = length
            return x.expand(sizes)

        def tile(self, x: Tensor, repeats: tuple[int, ...]) -> Tensor:
            return genesis.tile(x, repeats)

        def concat(self, tensors: list[Tensor], axis: int) -> Tensor:
            return genesis.cat(tensors, axis)

        def is_float_type(self, x: Tensor) -> bool:
            return x.is_floating_point() or x.is_complex()

        def einsum(self, pattern: str, *x: Tensor) -> Tensor:
            return genesis.einsum(pattern, *x)

    return GenesisBackend


# einops finds its backends among the living subclasses of its own class: this one must stay alive
_BACKEND = register_einops() if importlib.util.find_spec("einops") is not None else None
