"""The frequencies of a spectrum, and spectra with the frequency zero in the middle."""

from __future__ import annotations

from typing import Any

from genesis.base import dtypes
from genesis.base.errors import ArgumentValueError, message
from genesis.core.call.kinds import case, composite, normalize_dims
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.out import write_out
from genesis.core.call.refusal import explained
from genesis.core.graph.tensor import Tensor
from genesis.ops.creation.sequences import arange
from genesis.ops.fourier.transforms import length
from genesis.ops.shapes.join import cat

# ---- frequencies and shifts


def _frequencies(
    name: str, n: Any, d: float, dtype: Any, device: Any, requires_grad: bool, real: bool, out: Any
) -> Tensor:
    n = length(name, n)
    if not d:
        raise ArgumentValueError(message(name, "the distance d of samples must not be zero"))
    positive = arange(0, n // 2 + 1 if real else (n + 1) // 2, device=device)
    whole = positive if real else cat([positive, arange(-(n // 2), 0, device=device)])
    result = whole.to(dtypes.get_default_dtype() if dtype is None else dtype) * (1.0 / (n * d))
    result = result.requires_grad_() if requires_grad else result
    return result if out is None else write_out(name, result, out)


def fftfreq(
    n: int, d: float = 1.0, *, out: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """The frequencies of `fft.fft` of n samples that are ``d`` apart: 0, 1, ..., then -n/2, ..., -1, over nd.

    >>> import genesis
    >>> genesis.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    return _frequencies("fft.fftfreq", n, d, dtype, device, requires_grad, False, out)


def rfftfreq(
    n: int, d: float = 1.0, *, out: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """The frequencies of `fft.rfft` of n samples that are ``d`` apart: 0, 1, ..., n/2, over nd.

    >>> import genesis
    >>> genesis.fft.rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000])
    """
    return _frequencies("fft.rfftfreq", n, d, dtype, device, requires_grad, True, out)


@composite(method=False, dtypes="fci", torch_name="fft.fftshift")
def fft_fftshift(input: Tensor, dim: Any = None) -> Tensor:
    """The frequency zero moved to the middle, along dimensions (None: all).

    >>> import genesis
    >>> genesis.fft.fftshift(genesis.fft.fftfreq(4))
    tensor([-0.5000, -0.2500,  0.0000,  0.2500])
    """
    dims = normalize_dims("fft.fftshift", dim, input.ndim)
    return input.roll([input.shape[d] // 2 for d in dims], dims) if dims else input.clone()


@composite(method=False, dtypes="fci", torch_name="fft.ifftshift")
def fft_ifftshift(input: Tensor, dim: Any = None) -> Tensor:
    """The inverse of `fft.fftshift`.

    >>> import genesis
    >>> genesis.fft.ifftshift(genesis.fft.fftshift(genesis.arange(5)))
    tensor([0, 1, 2, 3, 4])
    """
    dims = normalize_dims("fft.ifftshift", dim, input.ndim)
    return input.roll([(input.shape[d] + 1) // 2 for d in dims], dims) if dims else input.clone()


for _shift in (fft_fftshift, fft_ifftshift):
    samples(_shift, lambda t: [case(t(5)), case(t(2, 3, 4), (0, 2)), case(t(3, 4), 1)])
    _name = _shift.op.torch_name  # type: ignore[attr-defined]
    wrong_inputs(_shift, (lambda t: case(t(3), 1), IndexError, f"{_name}: dim 1 is out of range"))

fftfreq, rfftfreq = explained(fftfreq, "fft.fftfreq"), explained(rfftfreq, "fft.rfftfreq")
FUNCTIONS = {"fftfreq": fftfreq, "rfftfreq": rfftfreq, "fftshift": fft_fftshift, "ifftshift": fft_ifftshift}

__all__: list[str] = []
