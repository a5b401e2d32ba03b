"""What stands on the stack of the interpreter besides values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from genesis.io.source import Damaged


class Named:
    """What a name of the table stands for: a function of this package, with the number of its arguments."""

    __slots__ = ("function", "least", "most", "name")

    def __init__(self, name: str, function: Callable[..., Any], least: int, most: int) -> None:
        self.name, self.function, self.least, self.most = name, function, least, most

    def __call__(self, args: Any) -> Any:
        if not isinstance(args, tuple) or not self.least <= len(args) <= self.most:
            raise Damaged(f"is damaged: {self.name} has wrong arguments")
        return self.function(*args)


class Built:
    """Something that a later opcode completes; it may not be part of the result."""

    def build(self, state: Any) -> None:
        raise Damaged("is damaged: a state is given to what has none")
