"""Windows: weights of the samples of a piece of a signal. `genesis.signal.windows` lists them.

With ``sym`` a window of M samples is its own mirror image, for filters; without it is the first M of M + 1, a period, for
spectra. The older functions (``hann_window``) say ``periodic`` for the contrary. All are computed in float64 and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from genesis.base import dtypes, layouts
from genesis.base.dtypes import is_integer
from genesis.base.errors import ArgumentError, ArgumentValueError, DomainError, DTypeError, message
from genesis.core.call.refusal import explain_all, explained
from genesis.core.graph.tensor import Tensor
from genesis.ops.creation.create import finished, new_filled


def _made(
    name: str, M: Any, weights: Callable[[], Any], dtype: Any, layout: Any, device: Any, requires_grad: bool
) -> Tensor:
    """A window of M weights; of one sample the weight is 1."""
    if not is_integer(M) or M < 0:
        raise DomainError(message(name, f"the length must be an integer of at least 0, got {M!r}"))
    kind = dtypes.as_np(dtypes.get_default_dtype() if dtype is None else dtype)
    if not dtypes.from_numpy(kind).is_floating_point:
        raise DTypeError(message(name, f"a window has a floating dtype, not {dtypes.from_numpy(kind)}"))
    if layout not in (None, layouts.strided):
        raise ArgumentValueError(message(name, f"a window is strided, not {layout}"))
    make = lambda shape, k: (np.ones(shape) if M < 2 else weights()).astype(k)  # noqa: E731
    return finished(new_filled(name, (M,), kind, device, make), requires_grad)


def _steps(M: int, sym: bool) -> Any:
    """The places of the samples in the window, from 0 to 1 or, without ``sym``, to before 1."""
    return np.arange(M) / (M - 1 if sym else M)


def _from_middle(M: int, sym: bool) -> Any:
    """The distances of the samples from the middle, in samples."""
    return np.arange(M) - (M - 1 if sym else M) / 2


def _cosines(M: int, sym: bool, a: Sequence[float]) -> Any:
    angle = 2 * math.pi * _steps(M, sym)
    return sum([(-1) ** i * weight * np.cos(i * angle) for i, weight in enumerate(a)])


def _triangle(M: int, sym: bool) -> Any:
    return 1 - np.abs(2 * _steps(M, sym) - 1)


def _kaiser(M: int, sym: bool, beta: float) -> Any:
    return np.i0(beta * np.sqrt(np.maximum(1 - (2 * _steps(M, sym) - 1) ** 2, 0))) / np.i0(beta)


_BLACKMAN = (0.42, 0.5, 0.08)
_NUTTALL = (0.3635819, 0.4891775, 0.1365995, 0.0106411)


def bartlett(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A triangle, $1 - |2 x - 1|$ for x from 0 to 1.

    >>> import genesis
    >>> genesis.signal.windows.bartlett(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    weights = lambda: _triangle(M, sym)  # noqa: E731
    return _made("signal.windows.bartlett", M, weights, dtype, layout, device, requires_grad)


def blackman(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Three cosines, $0.42 - 0.5 \\cos 2 \\pi x + 0.08 \\cos 4 \\pi x$.

    >>> import genesis
    >>> genesis.signal.windows.blackman(4, sym=False)[1:]
    tensor([0.3400, 1.0000, 0.3400])
    """
    weights = lambda: _cosines(M, sym, _BLACKMAN)  # noqa: E731
    return _made("signal.windows.blackman", M, weights, dtype, layout, device, requires_grad)


def cosine(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Half a wave, $\\sin \\pi (n + 1/2) / M$.

    >>> import genesis
    >>> genesis.signal.windows.cosine(3)
    tensor([0.5000, 1.0000, 0.5000])
    """
    weights = lambda: np.sin(math.pi * (np.arange(M) + 0.5) / (M if sym else M + 1))  # noqa: E731
    return _made("signal.windows.cosine", M, weights, dtype, layout, device, requires_grad)


def exponential(
    M: int,
    *,
    center: float | None = None,
    tau: float = 1.0,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """$e^{-|n - c| / \\tau}$.

    Args:
        center: c, the middle unless it is given; only without ``sym``
        tau: after how many samples it falls to 1/e

    Raises:
        ValueError: ``tau`` is not positive; a center of a symmetric window

    >>> import genesis
    >>> genesis.signal.windows.exponential(3)
    tensor([0.3679, 1.0000, 0.3679])
    """
    name = "signal.windows.exponential"
    if tau <= 0:
        raise ArgumentValueError(message(name, f"tau must be positive, got {tau}"))
    if sym and center is not None:
        raise ArgumentValueError(message(name, f"the center of a symmetric window is its middle, not {center}"))
    off = lambda: _from_middle(M, sym) if center is None else np.arange(M) - center  # noqa: E731
    return _made(name, M, lambda: np.exp(-np.abs(off()) / tau), dtype, layout, device, requires_grad)


def gaussian(
    M: int,
    *,
    std: float = 1.0,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """$e^{-(n - m)^2 / 2 \\sigma^2}$ about the middle m.

    Raises:
        ValueError: ``std`` is not positive

    >>> import genesis
    >>> genesis.signal.windows.gaussian(3)
    tensor([0.6065, 1.0000, 0.6065])
    """
    name = "signal.windows.gaussian"
    if std <= 0:
        raise ArgumentValueError(message(name, f"std must be positive, got {std}"))
    weights = lambda: np.exp(-0.5 * (_from_middle(M, sym) / std) ** 2)  # noqa: E731
    return _made(name, M, weights, dtype, layout, device, requires_grad)


def general_cosine(
    M: int,
    *,
    a: Sequence[float],
    sym: bool = True,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """$\\sum_i (-1)^i a_i \\cos 2 \\pi i x$ for x from 0 to 1.

    Raises:
        TypeError, ValueError: ``a`` is no list of numbers, or an empty one

    >>> import genesis
    >>> genesis.signal.windows.general_cosine(3, a=[0.5, 0.5])
    tensor([0., 1., 0.])
    """
    name = "signal.windows.general_cosine"
    if not isinstance(a, Sequence):
        raise ArgumentError(message(name, f"a must be a list of numbers, got {type(a).__name__}"))
    if not a:
        raise ArgumentValueError(message(name, "a must have at least one number"))
    return _made(name, M, lambda: _cosines(M, sym, a), dtype, layout, device, requires_grad)


def general_hamming(
    M: int,
    *,
    alpha: float = 0.54,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """$\\alpha - (1 - \\alpha) \\cos 2 \\pi x$ for x from 0 to 1.

    >>> import genesis
    >>> genesis.signal.windows.general_hamming(3, alpha=0.6)
    tensor([0.2000, 1.0000, 0.2000])
    """
    weights = lambda: _cosines(M, sym, (alpha, 1 - alpha))  # noqa: E731
    return _made("signal.windows.general_hamming", M, weights, dtype, layout, device, requires_grad)


def hamming(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """$0.54 - 0.46 \\cos 2 \\pi x$ for x from 0 to 1.

    >>> import genesis
    >>> genesis.signal.windows.hamming(3)
    tensor([0.0800, 1.0000, 0.0800])
    """
    weights = lambda: _cosines(M, sym, (0.54, 0.46))  # noqa: E731
    return _made("signal.windows.hamming", M, weights, dtype, layout, device, requires_grad)


def hann(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """$\\frac{1}{2} (1 - \\cos 2 \\pi x)$ for x from 0 to 1.

    >>> import genesis
    >>> genesis.signal.windows.hann(4, sym=False)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    weights = lambda: _cosines(M, sym, (0.5, 0.5))  # noqa: E731
    return _made("signal.windows.hann", M, weights, dtype, layout, device, requires_grad)


def kaiser(
    M: int,
    *,
    beta: float = 12.0,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """$I_0(\\beta \\sqrt{1 - (2 x - 1)^2}) / I_0(\\beta)$ for x from 0 to 1.

    Raises:
        ValueError: ``beta`` is negative

    >>> import genesis
    >>> genesis.signal.windows.kaiser(3, beta=2.0)
    tensor([0.4387, 1.0000, 0.4387])
    """
    name = "signal.windows.kaiser"
    if beta < 0:
        raise ArgumentValueError(message(name, f"beta must not be negative, got {beta}"))
    return _made(name, M, lambda: _kaiser(M, sym, beta), dtype, layout, device, requires_grad)


def nuttall(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Four cosines, whose side lobes are the lowest that four can have (Nuttall 1981).

    >>> import genesis
    >>> genesis.signal.windows.nuttall(3)
    tensor([3.6280e-04, 1.0000e+00, 3.6280e-04])
    """
    weights = lambda: _cosines(M, sym, _NUTTALL)  # noqa: E731
    return _made("signal.windows.nuttall", M, weights, dtype, layout, device, requires_grad)


WINDOWS: dict[str, Callable[..., Tensor]] = {
    each.__name__: explained(each, f"signal.windows.{each.__name__}")
    for each in (bartlett, blackman, cosine, exponential, gaussian, general_cosine, general_hamming, hamming, hann,
                 kaiser, nuttall)
}  # fmt: skip


# ---- the older functions


def bartlett_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """`signal.windows.bartlett`, by default of a period.

    >>> import genesis
    >>> genesis.bartlett_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    weights = lambda: _triangle(window_length, not periodic)  # noqa: E731
    return _made("bartlett_window", window_length, weights, dtype, layout, device, requires_grad)


def blackman_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """`signal.windows.blackman`, by default of a period.

    >>> import genesis
    >>> genesis.blackman_window(4)[1:]
    tensor([0.3400, 1.0000, 0.3400])
    """
    weights = lambda: _cosines(window_length, not periodic, _BLACKMAN)  # noqa: E731
    return _made("blackman_window", window_length, weights, dtype, layout, device, requires_grad)


def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """$\\alpha - \\beta \\cos 2 \\pi x$, by default of a period.

    >>> import genesis
    >>> genesis.hamming_window(4)
    tensor([0.0800, 0.5400, 1.0000, 0.5400])
    """
    weights = lambda: _cosines(window_length, not periodic, (alpha, beta))  # noqa: E731
    return _made("hamming_window", window_length, weights, dtype, layout, device, requires_grad)


def hann_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """`signal.windows.hann`, by default of a period.

    >>> import genesis
    >>> genesis.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    weights = lambda: _cosines(window_length, not periodic, (0.5, 0.5))  # noqa: E731
    return _made("hann_window", window_length, weights, dtype, layout, device, requires_grad)


def kaiser_window(
    window_length: int,
    periodic: bool = True,
    beta: float = 12.0,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """`signal.windows.kaiser`, by default of a period.

    >>> import genesis
    >>> genesis.kaiser_window(4, beta=2.0)
    tensor([0.4387, 0.8348, 1.0000, 0.8348])
    """
    weights = lambda: _kaiser(window_length, not periodic, beta)  # noqa: E731
    return _made("kaiser_window", window_length, weights, dtype, layout, device, requires_grad)


__all__ = ["bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window"]

explain_all(globals(), *__all__)
