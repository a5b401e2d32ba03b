"""The name under which dtypes, shapes and layouts are printed."""

from __future__ import annotations

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
