"""How close is close: one table of tolerances for each dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.base import dtypes

# (relative, absolute): a few units in the last place of each, times the length of a typical sum
_TABLE = {"float64": (1e-9, 1e-9), "float32": (2e-5, 1e-5), "float16": (2e-3, 1e-3), "bfloat16": (1.6e-2, 1e-2),
          "complex64": (2e-5, 1e-5), "complex128": (1e-9, 1e-9)}  # fmt: skip


def tolerance(dtype: Any) -> tuple[float, float]:
    """Relative and absolute tolerance of a dtype; zero for integers and bool."""
    return _TABLE.get(dtypes.from_numpy(np.dtype(dtype)).name, (0.0, 0.0))


def assert_close(actual: Any, expected: Any, what: str = "value") -> None:
    """Raise AssertionError unless two arrays have one shape, one dtype and close elements (nan equals nan)."""
    a, b = np.asarray(actual), np.asarray(expected)
    assert a.shape == b.shape, f"{what}: shape {a.shape}, expected {b.shape}"
    assert a.dtype == b.dtype, f"{what}: dtype {a.dtype}, expected {b.dtype}"
    rtol, atol = tolerance(b.dtype)
    if a.dtype.kind == "V" or a.dtype == np.float16:
        a, b = a.astype(np.float32), b.astype(np.float32)
    with np.errstate(all="ignore"):
        whole = b.dtype.kind in "biu"
        wrong = np.argwhere(~(a == b if whole else np.isclose(a, b, rtol, atol, equal_nan=True)))
        if len(wrong):
            at = tuple(map(int, wrong[0]))
            wide = object if whole else np.complex128
            worst = np.max(np.abs(a.astype(wide) - b.astype(wide))[tuple(wrong.T)])
            text = f"{what}: {len(wrong)} of {a.size} elements differ, by up to {worst:g}; the first at {list(at)}: {a[at]}, "
            raise AssertionError(f"{text}expected {b[at]}\n  got      {a!r}\n  expected {b!r}")
