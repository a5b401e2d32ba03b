"""Arrays of dtypes that are only stored, in the memory of the CPU.

They are NumPy's arrays in a class of their own: so the fast paths of calls, which take plain arrays, leave them alone,
and `core/layers/stored.py` says what an op does with them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.base.narrow import NARROW, converted


class Stored(np.ndarray[Any, Any]):
    """A NumPy array of 8-bit floats, or of complex numbers of 16-bit parts."""

    __slots__ = ()

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, converted(np.asarray(value), self.dtype))


def stored(array: Any) -> Any:
    """A NumPy array on the same memory, in the class that its dtype asks for.

    >>> import genesis
    >>> type(stored(np.zeros(2, genesis.float8_e5m2.np))).__name__, type(stored(np.zeros(2))).__name__
    ('Stored', 'ndarray')
    """
    if array.dtype in NARROW:
        return array if array.__class__ is Stored else array.view(Stored)
    return array.view(np.ndarray) if array.__class__ is Stored else array
