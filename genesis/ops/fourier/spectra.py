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


def _from_half(g: Tensor, shape: Sequence[int], dim: int, scale: float) -> Tensor:
    """The adjoint of `half_spectrum`: the other half of the spectrum has no part in it."""
    rest = shape[dim] - g.shape[dim]
    padded = cat([g, g.new_zeros(resized(g.shape, dim, rest))], dim)
    return fourier(padded, (dim,), False, scale).real  # type: ignore[no-any-return]


@primitive(
    TRANSFORM,
    {"input": lambda g, input_shape, dim, scale: _from_half(g, input_shape, dim, scale)},
    infer=lambda input, dim, scale: Spec(
        resized(input.shape, dim, input.shape[dim] // 2 + 1), COMPLEX[input.dtype.itemsize], input.device
    ),
    holomorphic=False,
    dtypes="F",
    method=False,
    torch_name="",
)
def half_spectrum(input: Array, dim: int, scale: float) -> Any:
    """The first half of the spectrum of real numbers, whose other half is its mirror image, conjugated.

    >>> import genesis
    >>> from genesis.ops.fourier.spectra import half_spectrum
    >>> half_spectrum(genesis.ones(4), 0, 1.0)
    tensor([4.+0.j, 0.+0.j, 0.+0.j])
    """
    if not input.size:
        return np.zeros(resized(input.shape, dim, input.shape[dim] // 2 + 1), COMPLEX[input.dtype.itemsize])
    return _scaled(np.fft.rfft(input, axis=dim), scale)


samples(half_spectrum, lambda t: [case(t(5), 0, 0.5), case(t(2, 4, 3), 1, 1.0)])


def _doubled(g: Tensor, dim: int, n: int, scale: float) -> Tensor:
    """The adjoint of `from_half_spectrum`: what is not its own mirror image counts twice."""
    spectrum = half_spectrum(g, dim, scale)
    twice = [1.0 if k == 0 or 2 * k == n else 2.0 for k in range(n // 2 + 1)]
    weights = g.new_tensor(twice).reshape([-1 if d == dim else 1 for d in range(g.ndim)])
    return spectrum * weights  # type: ignore[no-any-return]


@primitive(
    TRANSFORM,
    {"input": lambda g, dim, n, scale: _doubled(g, dim, n, scale)},
    infer=lambda input, dim, n, scale: Spec(resized(input.shape, dim, n), _REAL[input.dtype.itemsize], input.device),
    holomorphic=False,
    dtypes="c",
    method=False,
    torch_name="",
)
def from_half_spectrum(input: Array, dim: int, n: int, scale: float) -> Any:
    """The n real numbers of which this is half the spectrum, times n; of the first element, and for even n of the last,
    the real part counts.

    >>> import genesis
    >>> from genesis.ops.fourier.spectra import from_half_spectrum
    >>> from_half_spectrum(genesis.tensor([4. + 0j, 0., 0.]), 0, 4, 0.25)
    tensor([1., 1., 1., 1.])
    """
    if not input.size:
        return np.zeros(resized(input.shape, dim, n), _REAL[input.dtype.itemsize])
    return _scaled(np.fft.irfft(input, n, axis=dim, norm="forward"), scale)


samples(from_half_spectrum, lambda t: [case(t(3), 0, 4, 0.5), case(t(2, 3), 1, 5, 1.0)])
