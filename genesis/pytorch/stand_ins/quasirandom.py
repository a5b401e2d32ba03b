"""Sobol points: ``torch.quasirandom``, by SciPy where it is installed."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import genesis
from genesis.base.errors import ArgumentValueError, MissingImport, message
from genesis.core.graph.tensor import Tensor
from genesis.pytorch.stand_ins.common import Values, values


class SobolEngine:
    """Points that fill the unit cube evenly: those of PyTorch where they are not scrambled.

    Args:
        dimension: of the cube, at most `MAXDIM`
        scramble: by random shifts and matrices; ``seed`` says which

    Raises:
        ValueError: a dimension that there are no points for
        ImportError: SciPy is not installed
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ArgumentValueError(
                message("SobolEngine", f"dimension is {dimension}, from 1 to {self.MAXDIM} are known")
            )
        self.dimension, self.scramble = dimension, scramble
        self.seed = int(genesis.randint(2**31, ())) if seed is None and scramble else seed
        self.reset()

    def reset(self) -> SobolEngine:
        """Begin with the first point again."""
        try:
            qmc = importlib.import_module("scipy.stats.qmc")
        except ImportError:
            raise MissingImport(message("SobolEngine", "SciPy draws the points", hint="pip install scipy")) from None
        self._points = qmc.Sobol(self.dimension, scramble=self.scramble, bits=self.MAXBIT, seed=self.seed)
        self.num_generated = 0
        return self

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next ``n`` points: (n, dimension)."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of numbers of points that are no powers of 2
            points = genesis.from_numpy(self._points.random(n))
        self.num_generated += n
        points = points.to(dtype or genesis.get_default_dtype())  # type: ignore[attr-defined]
        return points if out is None else out.resize_(n, self.dimension).copy_(points)  # type: ignore[attr-defined]

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next 2**m points.

        Raises:
            ValueError: so many were drawn that these do not balance them
        """
        n = 2**m
        if (self.num_generated + n) & (self.num_generated + n - 1):
            text = f"{self.num_generated} points were drawn, with 2**{m} more they are no power of 2"
            raise ArgumentValueError(message("SobolEngine.draw_base2", text, hint="draw, or reset first"))
        return self.draw(n, out, dtype)

    def fast_forward(self, n: int) -> SobolEngine:
        """Leave ``n`` points out."""
        self._points.fast_forward(n)
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        scrambled = f", scramble=True, seed={self.seed}" if self.scramble else ""
        return f"SobolEngine(dimension={self.dimension}{scrambled})"


@values("torch.quasirandom")
def _quasirandom() -> Values:
    return {"SobolEngine": SobolEngine}
