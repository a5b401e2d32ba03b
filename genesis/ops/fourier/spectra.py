"""The three ops that Fourier transforms are made of, by NumPy's pocketfft; float32 stays in 32 bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.arrays.protocol import Array
from genesis.arrays.spec import Spec
from genesis.core.call.kind import Along
from genesis.core.call.kinds import case, primitive
from genesis.core.call.op import samples
from genesis.core.graph.tensor import Tensor
from genesis.ops.reductions.along import resized
from genesis.ops.shapes.join import cat

COMPLEX = {4: np.dtype(np.complex64), 8: np.dtype(np.complex128)}
_REAL = {8: np.dtype(np.float32), 16: np.dtype(np.float64)}


class Transform(Along):
    """Fourier transforms along dimensions."""

    linear = True
    packed = True


TRANSFORM = Transform("transform")


def _scaled(x: Any, scale: float) -> Any:
    return x if scale == 1 else x * x.real.dtype.type(scale)


# ---- what computes


@primitive(
    TRANSFORM,
    {"input": lambda g, dim, forward, scale: fourier(g, dim, not forward, scale)},
    infer=lambda input, dim, forward, scale: Spec(input.shape, input.dtype, input.device),
    holomorphic=False,
    dtypes="c",
    method=False,
    torch_name="",
)
def fourier(input: Array, dim: tuple[int, ...], forward: bool, scale: float) -> Any:
    """$s \\sum_n x_n e^{\\mp 2 \\pi i k n / N}$ over dimensions, with a minus for ``forward``.

    >>> import genesis
    >>> from genesis.ops.fourier.spectra import fourier
    >>> fourier(genesis.tensor([1. + 0j, 1.]), (0,), True, 1.0)
    tensor([2.+0.j, 0.+0.j])
    """
    transform, norm = (np.fft.fft, "backward") if forward else (np.fft.ifft, "forward")
    for d in dim:
        input = transform(input, axis=d, norm=norm) if input.size else input  # type: ignore[operator]
    return _scaled(input, scale) if dim else input.copy()


samples(fourier, lambda t: [case(t(4), (0,), True, 0.5), case(t(2, 3, 4), (0, 2), False, 1.0)])


def _from_half(g: Tensor, shape: Sequence[int], dim: tuple[int, ...], scale: float) -> Tensor:
    """The adjoint of `half_spectrum`: the other half of the spectrum has no part in it."""
    last = dim[-1]
    rest = shape[last] - g.shape[last]
    padded = cat([g, g.new_zeros(resized(g.shape, last, rest))], last)
    return fourier(padded, dim, False, scale).real  # type: ignore[no-any-return]


@primitive(
    TRANSFORM,
    {"input": lambda g, input_shape, dim, scale: _from_half(g, input_shape, dim, scale)},
    infer=lambda input, dim, scale: Spec(
        resized(input.shape, dim[-1], input.shape[dim[-1]] // 2 + 1), COMPLEX[input.dtype.itemsize], input.device
    ),
    holomorphic=False,
    dtypes="F",
    method=False,
    torch_name="",
)
def half_spectrum(input: Array, dim: tuple[int, ...], scale: float) -> Any:
    """The spectrum of real numbers over dimensions, of which along the last the first half: the other is its mirror image,
    conjugated.

    >>> import genesis
    >>> from genesis.ops.fourier.spectra import half_spectrum
    >>> half_spectrum(genesis.ones(4), (0,), 1.0)
    tensor([4.+0.j, 0.+0.j, 0.+0.j])
    """
    *others, last = dim
    if not input.size:
        return np.zeros(resized(input.shape, last, input.shape[last] // 2 + 1), COMPLEX[input.dtype.itemsize])
    spectrum = np.fft.rfft(input, axis=last)
    for d in others:
        spectrum = np.fft.fft(spectrum, axis=d)
    return _scaled(spectrum, scale)


samples(half_spectrum, lambda t: [case(t(5), (0,), 0.5), case(t(2, 4, 3), (1,), 1.0), case(t(2, 3, 4), (1, 0), 0.5)])


def _doubled(g: Tensor, dim: tuple[int, ...], n: int, scale: float) -> Tensor:
    """The adjoint of `from_half_spectrum`: what is not its own mirror image counts twice."""
    spectrum = half_spectrum(g, dim, scale)
    twice = [1.0 if k == 0 or 2 * k == n else 2.0 for k in range(n // 2 + 1)]
    weights = g.new_tensor(twice).reshape([-1 if d == dim[-1] else 1 for d in range(g.ndim)])
    return spectrum * weights  # type: ignore[no-any-return]


@primitive(
    TRANSFORM,
    {"input": lambda g, dim, n, scale: _doubled(g, dim, n, scale)},
    infer=lambda input, dim, n, scale: Spec(
        resized(input.shape, dim[-1], n), _REAL[input.dtype.itemsize], input.device
    ),
    holomorphic=False,
    dtypes="c",
    method=False,
    torch_name="",
)
def from_half_spectrum(input: Array, dim: tuple[int, ...], n: int, scale: float) -> Any:
    """The real numbers, n along the last dimension, of which this is half the spectrum over dimensions, times how many they
    are. Of the first element, and for even n of the last, along that dimension the real part counts, after the others are
    transformed.

    >>> import genesis
    >>> from genesis.ops.fourier.spectra import from_half_spectrum
    >>> from_half_spectrum(genesis.tensor([4. + 0j, 0., 0.]), (0,), 4, 0.25)
    tensor([1., 1., 1., 1.])
    """
    *others, last = dim
    if not input.size:
        return np.zeros(resized(input.shape, last, n), _REAL[input.dtype.itemsize])
    for d in others:
        input = np.fft.ifft(input, axis=d, norm="forward")
    return _scaled(np.fft.irfft(input, n, axis=last, norm="forward"), scale)


samples(
    from_half_spectrum,
    lambda t: [case(t(3), (0,), 4, 0.5), case(t(2, 3), (1,), 5, 1.0), case(t(3, 2, 3), (2, 0), 4, 0.5)],
)
