"""Where the random numbers of Python and NumPy are: what programs shuffle, augment and sample by, besides Genesis's own.

They are a row of bytes in each rank, of one length, so that the rows of all ranks are one tensor of the snapshot.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from genesis.base.late import Late

_random = Late("random")  # most programs never need it
_WORDS = 624  # of a Mersenne Twister
_LAYOUT = np.dtype(
    [
        ("python", np.uint32, _WORDS + 1),
        ("python_gauss", np.float64),  # the second of a pair of normal numbers; NaN where there is none
        ("numpy", np.uint32, _WORDS),
        ("numpy_at", np.int64),  # -1 where a program put another generator in its place
        ("numpy_has_gauss", np.int64),
        ("numpy_gauss", np.float64),
    ]
)
LENGTH = _LAYOUT.itemsize


class _Twister(NamedTuple):
    """What NumPy says of its global generator."""

    name: str
    key: Any
    at: int
    has_gauss: int
    gauss: float


def state() -> np.ndarray[Any, Any]:
    """The states of `random` and of `numpy.random`, as bytes.

    >>> import random
    >>> here = state()
    >>> a = random.random(), float(np.random.rand())
    >>> go_to(here)
    >>> (random.random(), float(np.random.rand())) == a
    True
    """
    row = np.zeros(1, _LAYOUT)
    _, row["python"][0], gauss = _random.getstate()
    row["python_gauss"] = math.nan if gauss is None else gauss
    theirs = _Twister(*np.random.get_state())
    row["numpy_at"] = -1
    if theirs.name == "MT19937":
        row["numpy"][0], row["numpy_at"] = theirs.key, theirs.at
        row["numpy_has_gauss"], row["numpy_gauss"] = theirs.has_gauss, theirs.gauss
    return row.view(np.uint8)


def go_to(saved: np.ndarray[Any, Any]) -> None:
    """Go back to what `state` gave."""
    row = np.ascontiguousarray(saved).view(_LAYOUT)[0]
    gauss = float(row["python_gauss"])
    _random.setstate((3, tuple(row["python"].tolist()), None if math.isnan(gauss) else gauss))
    if row["numpy_at"] >= 0:
        rest = int(row["numpy_at"]), int(row["numpy_has_gauss"]), float(row["numpy_gauss"])
        np.random.set_state(("MT19937", row["numpy"].copy(), *rest))
