"""Elements moved between channels and places, as one copy: three views and their checks take five times as long."""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.core.call.kernels import attach

Parts = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


def _pixels(shape: tuple[int, ...], r: int) -> Parts:
    """How ``(..., C r², H, W)`` is divided, in which order that is, and the shape ``(..., C, H r, W r)``."""
    *lead, channels, h, w = shape
    n, c = len(lead), channels // r**2
    return (*lead, c, r, r, h, w), (*range(n + 1), n + 3, n + 1, n + 4, n + 2), (*lead, c, h * r, w * r)


def _channels(shape: tuple[int, ...], r: int) -> Parts:
    """The same of ``(..., C, H r, W r)``, which becomes ``(..., C r², H, W)``."""
    *lead, c, h, w = shape
    n, h, w = len(lead), h // r, w // r
    return (*lead, c, h, r, w, r), (*range(n + 1), n + 2, n + 4, n + 1, n + 3), (*lead, c * r * r, h, w)


def _moved(x: Any, parts: Parts) -> Any:
    divided, order, shape = parts
    out = np.empty([divided[i] for i in order], x.dtype)
    out[...] = x.reshape(divided).transpose(order)
    return out.reshape(shape)


def _pixels_fit(input: Any, upscale_factor: Any) -> bool:
    r = upscale_factor
    return r.__class__ is int and r > 0 and input.ndim > 2 and not input.shape[-3] % r**2


def _channels_fit(input: Any, downscale_factor: Any) -> bool:
    r = downscale_factor
    return r.__class__ is int and r > 0 and input.ndim > 2 and not (input.shape[-2] % r or input.shape[-1] % r)


@attach("pixel_shuffle", np.ndarray, when=_pixels_fit)
def pixel_shuffle(input: Any, upscale_factor: int) -> Any:
    return _moved(input, _pixels(input.shape, upscale_factor)), upscale_factor


@pixel_shuffle.backward(reads=())
def _(g: Any, kept: Any, needs: Any) -> Any:
    return (_moved(g, _channels(g.shape, kept)),)


@attach("pixel_unshuffle", np.ndarray, when=_channels_fit)
def pixel_unshuffle(input: Any, downscale_factor: int) -> Any:
    return _moved(input, _channels(input.shape, downscale_factor)), downscale_factor


@pixel_unshuffle.backward(reads=())
def _(g: Any, kept: Any, needs: Any) -> Any:
    return (_moved(g, _pixels(g.shape, kept)),)
