"""What `fully_shard` is told besides the module."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from genesis.base import dtypes
from genesis.base.errors import ArgumentError, message


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """In which dtypes the parameters of a sharded module are used and their gradients combined; shards keep their own.

    Args:
        param_dtype: of parameters in forward and backward, and as they are sent; None: their own
        reduce_dtype: of gradients as they are sent; None: that of parameters in forward
        output_dtype: of floating tensors in what the module gives; None: as they are
        cast_forward_inputs: convert floating inputs to ``param_dtype``

    >>> import genesis
    >>> MixedPrecisionPolicy(param_dtype=genesis.bfloat16).reduce_dtype is None
    True
    """

    param_dtype: Any = None
    reduce_dtype: Any = None
    output_dtype: Any = None
    cast_forward_inputs: bool = True

    def __post_init__(self) -> None:
        for name in ("param_dtype", "reduce_dtype", "output_dtype"):
            given = getattr(self, name)
            if given is not None and not dtypes.as_dtype(given).is_floating_point:
                text = f"{name} is {given}, expected a floating dtype"
                raise ArgumentError(message("MixedPrecisionPolicy", text, hint="genesis.bfloat16"))


@dataclass
class OffloadPolicy:
    """Shards stay where they are."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Shards in the memory of the CPU: accepted where the parameters are in it, refused on another device."""

    pin_memory: bool = True
