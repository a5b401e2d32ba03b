"""What a program says may be made, and called, of what a file names: PyTorch's lists of safe globals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

SAFE: dict[str, Any] = {}  # by module and name


def add_safe_globals(safe_globals: Sequence[Any]) -> None:
    """Let `load` make objects of classes, and call functions, that are given; or pairs of one and the name in files.

    >>> import genesis, io
    >>> from fractions import Fraction
    >>> file = io.BytesIO(); genesis.save({"a": Fraction(1, 3)}, file, format="torch"); _ = file.seek(0)
    >>> with genesis.io.pytorch.safe.safe_globals([Fraction]):
    ...     genesis.load(file)
    {'a': Fraction(1, 3)}
    """
    for each in safe_globals:
        value, name = each if isinstance(each, tuple) else (each, f"{each.__module__}.{each.__qualname__}")
        SAFE[name] = value


def get_safe_globals() -> list[Any]:
    """What was added, in order."""
    return list(SAFE.values())


def clear_safe_globals() -> None:
    """Forget all that was added."""
    SAFE.clear()


@contextmanager
def safe_globals(safe_globals: Sequence[Any]) -> Iterator[None]:
    """`add_safe_globals` for a block."""
    before = dict(SAFE)
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        SAFE.clear()
        SAFE.update(before)
