"""What the random programs of `fuzz_pytorch` are written with: names, shapes and dtypes."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

FLOATS = ("float16", "bfloat16", "float32", "float64")

DTYPES = (
    "bool",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "int8",
    "int16",
    "int32",
    "int64",
    *FLOATS,
    "complex64",
    "complex128",
)

SHAPES: tuple[tuple[int, ...], ...] = ((), (), (3,), (3,), (2, 3), (2, 1), (1,), (0,))


class Writer:
    """What the writers share: chance, names and shapes."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.shapes: dict[str, tuple[int, ...]] = {}

    def pick(self, *choices: Any) -> Any:
        return self.random.choice(choices)

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    def make(self, text: str, shape: tuple[int, ...] | None = ()) -> str:
        """``vN = text``; a shape of None: not to be used again."""
        name = f"v{len(self.lines)}" if shape is not None else f"r{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        if shape is not None:
            self.shapes[name] = shape
        return name

    def any(self, shape: tuple[int, ...] | None = None) -> str:
        names = [n for n, s in self.shapes.items() if shape is None or s == shape]
        return str(self.random.choice(names[-6:] if self.chance(0.7) else names)) if names else "0.5"

    def reals(self, shape: tuple[int, ...]) -> str:
        n = int(np.prod(shape))
        values = np.array([self.random.randint(-40, 40) / 32 + 0.013 for _ in range(n)]).reshape(shape)
        return f"T.tensor({np.round(values, 4).tolist()}, dtype=T.float64)"
