"""Shapes and dtypes of what nodes compute, written down in ``node.meta``."""

from __future__ import annotations

from typing import Any, NamedTuple

import genesis
from genesis.core.graph.size import Size
from genesis.core.graph.tensor import Tensor
from genesis.fx.interpreter import Interpreter
from genesis.fx.node import Node, map_aggregate
from genesis.nn.module import Module


class TensorMetadata(NamedTuple):
    """What is known of a tensor without its numbers."""

    shape: Size
    dtype: Any
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool
    qparams: dict[str, Any]


def extract_tensor_metadata(result: Tensor) -> TensorMetadata:
    """What is known of a tensor."""
    formats = (genesis.contiguous_format, genesis.channels_last, genesis.channels_last_3d)
    ranks = {genesis.channels_last: 4, genesis.channels_last_3d: 5}
    fitting = [f for f in formats if ranks.get(f, result.ndim) == result.ndim]
    memory_format = next((f for f in fitting if result.is_contiguous(memory_format=f)), None)
    return TensorMetadata(
        result.shape, result.dtype, result.requires_grad, tuple(result.stride()), memory_format, False, {}
    )


class ShapeProp(Interpreter):
    """Runs a module, and writes down for each node that gives a tensor its ``tensor_meta``, and for all the ``type``.

    >>> import genesis
    >>> from genesis.fx.passes.shape_prop import ShapeProp
    >>> module = genesis.fx.symbolic_trace(genesis.nn.Linear(2, 3))
    >>> y = ShapeProp(module).propagate(genesis.ones(4, 2))
    >>> [node.meta["tensor_meta"].shape for node in module.graph.nodes if "tensor_meta" in node.meta][-1]
    genesis.Size([4, 3])
    """

    def __init__(self, gm: Module, fake_mode: Any = None) -> None:
        super().__init__(gm)

    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)
        tensors: list[Tensor] = []

        def described(x: Any) -> Any:
            if isinstance(x, Tensor):
                tensors.append(x)
                return extract_tensor_metadata(x)
            return x

        described_result = map_aggregate(result, described)
        if tensors:
            n.meta["tensor_meta"] = described_result
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """The result for these arguments, with shapes written down on the way."""
        return super().run(*args)
