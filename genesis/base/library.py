"""The names under which dtypes, shapes, layouts and nodes of graphs are printed."""

from __future__ import annotations

from typing import Any

_library = ["genesis"]


def of_library(name: str) -> str:
    """A name as it is printed, ``genesis.float32``; in a program that runs with PyTorch's names ``torch.float32``."""
    return f"{_library[0]}.{name}"


def print_as_torch() -> None:
    """Print dtypes, shapes and layouts under PyTorch's name from here on: programs take such words apart."""
    _library[0] = "torch"


def is_torch() -> bool:
    """Whether the program was written for PyTorch, and runs with its names."""
    return _library[0] == "torch"


# nodes that PyTorch calls otherwise than after the op; where it has several names, that of the most usual call
_NODES = {
    "ConvertBackward": "ToCopyBackward",
    "CrossEntropyBackward": "NllLossBackward",
    "GatherAtBackward": "GatherBackward",
    "GroupNormBackward": "NativeGroupNormBackward",
    "LayerNormBackward": "NativeLayerNormBackward",
    "LinearBackward": "AddmmBackward",
    "Log1pBackward": "Log1PBackward",
    "LossesOfClassesBackward": "NllLossBackward",
    "MatmulBackward": "MmBackward",
    "NormBackward": "LinalgVectorNormBackward",
    "SelectWhereBackward": "WhereBackward",
    "SliceViewBackward": "SliceBackward",
    "SquareBackward": "PowBackward",
    "StandardizedChannelsBackward": "NativeBatchNormBackward",
    "TakeIndexBackward": "IndexBackward",
    "ViewShapeBackward": "ViewBackward",
    "ReshapeBackward": "ViewBackward",
}


def of_node(name: str) -> str:
    """The name of an op's node as it is printed: ``MulBackward``, in a program of PyTorch ``MulBackward0``."""
    return f"{_NODES.get(name, name)}0" if is_torch() else name


def named_result(kind: Any) -> Any:
    """A class of results with names, ``max_result``, that is printed as PyTorch prints it in a program of PyTorch."""
    name = kind.__name__.removesuffix("_result")
    room, _, file = kind.__module__.rpartition(".")
    if room == "genesis.ops.linalg" and file != "older" and name != "geqrf":
        name = f"linalg_{name}"
    plain = kind.__repr__

    def printed(result: Any) -> str:
        if not is_torch():
            return str(plain(result))
        fields = ",\n".join(f"{field}={value!r}" for field, value in zip(result._fields, result, strict=True))
        return f"torch.return_types.{name}(\n{fields})"

    kind.__repr__ = printed
    return kind
