"""The extension ``fft``: discrete Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import genesis as _g
from genesis.core.graph.tensor import Tensor


def _over_one(name: str) -> Callable[..., Tensor]:
    def transform(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
        return getattr(_g.fft, name)(x, n, axis, norm)  # type: ignore[no-any-return]

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"`genesis.fft.{name}` along an axis."
    return transform


def _over_several(name: str) -> Callable[..., Tensor]:
    def transform(
        x: Tensor, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
    ) -> Tensor:
        return getattr(_g.fft, name)(x, s, axes, norm)  # type: ignore[no-any-return]

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"`genesis.fft.{name}` over axes (None: all, or the last ones of which sizes are given)."
    return transform


fft, ifft, rfft, irfft, hfft, ihfft = (_over_one(n) for n in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"))
fftn, ifftn, rfftn, irfftn = (_over_several(n) for n in ("fftn", "ifftn", "rfftn", "irfftn"))


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of `fft` of n samples that are ``d`` apart."""
    return _g.fft.fftfreq(n, d, dtype=dtype, device=device)  # type: ignore[no-any-return, attr-defined]


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of `rfft` of n samples that are ``d`` apart."""
    return _g.fft.rfftfreq(n, d, dtype=dtype, device=device)  # type: ignore[no-any-return, attr-defined]


def fftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """The frequency zero moved to the middle."""
    return _g.fft.fftshift(x, axes)  # type: ignore[no-any-return, attr-defined]


def ifftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """The inverse of `fftshift`."""
    return _g.fft.ifftshift(x, axes)  # type: ignore[no-any-return, attr-defined]


__all__ = ["fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn", "rfft",
           "rfftfreq", "rfftn"]  # fmt: skip
