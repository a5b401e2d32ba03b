"""What there is here: devices, dtypes, capabilities."""

from __future__ import annotations

from typing import Any

import genesis as _g
from genesis import complex64, complex128, float64, int64
from genesis.array_api.dtypes import KINDS, isdtype
from genesis.base import dtypes as _dtypes
from genesis.base.device import default_device


class Info:
    """What there is here."""

    def capabilities(self) -> dict[str, Any]:
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Any:
        return default_device()

    def devices(self) -> list[Any]:
        return [_g.device("cpu"), _g.device("meta")]

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        default = _dtypes.get_default_dtype()
        return {
            "real floating": default,
            "complex floating": complex128 if default == float64 else complex64,
            "integral": int64,
            "indexing": int64,
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        names = [n for group in ("bool", "numeric") for n in KINDS[group] if n not in ("float16", "bfloat16")]
        return {n: getattr(_g, n) for n in names if kind is None or isdtype(getattr(_g, n), kind)}


def __array_namespace_info__() -> Info:  # noqa: N807
    """What there is here: devices, dtypes, capabilities."""
    return Info()
