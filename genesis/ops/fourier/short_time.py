"""Spectra of pieces of a signal, one after the other, and signals from them."""

from __future__ import annotations

from genesis.base.errors import DTypeError, ShapeError, message
from genesis.core.call.kinds import case, composite
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.graph.tensor import Tensor, known_values
from genesis.ops.creation.create import ones
from genesis.ops.creation.sequences import arange
from genesis.ops.fourier.transforms import FUNCTIONS
from genesis.ops.shapes.complex_views import view_as_real
from genesis.ops.spatial.padding import pad


def _sizes(name: str, n_fft: int, hop_length: int | None, win_length: int | None) -> tuple[int, int]:
    """The distance of pieces, and the length of the window."""
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    if hop <= 0:
        raise ShapeError(message(name, f"hop_length must be positive, got {hop}"))
    if not 0 < width <= n_fft:
        raise ShapeError(message(name, f"win_length must be from 1 to n_fft, {n_fft}, got {width}"))
    return hop, width


def _window(name: str, window: Tensor | None, width: int, n_fft: int, like: Tensor) -> Tensor:
    """The window, with zeros on both sides up to the size of the transform."""
    if window is None:
        window = ones(width, dtype=like.dtype.to_real(), device=like.device)
    elif tuple(window.shape) != (width,):
        text = f"the window must have shape [{width}], as win_length says, it has {list(window.shape)}"
        raise ShapeError(message(name, text, [("window", window._spec())]))
    before = (n_fft - width) // 2
    return pad(window, (before, n_fft - width - before)) if width < n_fft else window  # type: ignore[no-any-return]


def _refuse_onesided(name: str) -> None:
    raise DTypeError(message(name, "complex signals and windows have a spectrum of two sides", hint="onesided=False"))


@composite(dtypes="Fc", torch_name="stft")
def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """The short-time Fourier transform, $X_{\\omega, m} = \\sum_k w_k x_{mh + k} e^{-2 \\pi i k \\omega / n}$: a column for
    each piece of a signal.

    Args:
        input: (L,), or (B, L) for several signals; the result is (B, N, T), N frequencies of T pieces
        n_fft: n, the size of a piece; hop_length: h, from one piece to the next, a quarter of n unless given
        window: w, weights of ``win_length`` samples (ones; n of them), filled up to n with zeros on both sides
        center: piece m has its middle at mh; the signal is continued at its ends as ``pad_mode`` says
        normalized: divide by $\\sqrt n$
        onesided: n // 2 + 1 frequencies, those that say all of a real signal; False: all n
        return_complex: False: a last dimension of real and imaginary parts
        align_to_window: without ``center``: as many pieces as windows fit, not transforms

    Raises:
        RuntimeError: sizes that do not fit; no ``return_complex`` for real signals; ``onesided`` of complex ones

    >>> import genesis
    >>> genesis.stft(genesis.ones(8), 4, center=False, return_complex=True).abs()[:, 0]
    tensor([4., 0., 0.])
    """
    name = "stft"
    if input.ndim not in (1, 2):
        raise ShapeError(message(name, f"the signal must have 1 or 2 dimensions, it has {input.ndim}"))
    if center and align_to_window is not None:
        raise ShapeError(message(name, "align_to_window is for center=False"))
    hop, width = _sizes(name, n_fft, hop_length, win_length)
    complex_ones = input.is_complex() or (window is not None and window.is_complex())
    if return_complex is None and not complex_ones:
        raise DTypeError(message(name, "return_complex must be given for real signals", hint="return_complex=True"))
    onesided = not complex_ones if onesided is None else onesided
    if onesided and complex_ones:
        _refuse_onesided(name)
    if center:
        x = pad(input.reshape(1, -1, input.shape[-1]), (n_fft // 2, n_fft // 2), pad_mode)
        input = x.reshape(*input.shape[:-1], x.shape[-1])
    elif align_to_window:
        input = pad(input, ((n_fft - width) // 2, n_fft - width - (n_fft - width) // 2))
    if input.shape[-1] < n_fft:
        raise ShapeError(
            message(name, f"n_fft, {n_fft}, must not be above the length of the signal, {input.shape[-1]}")
        )
    pieces = input.unfold(-1, n_fft, hop) * _window(name, window, width, n_fft, input)  # type: ignore[attr-defined]
    transform = FUNCTIONS["rfft" if onesided else "fft"]
    spectra = transform(pieces, norm="ortho" if normalized else None).transpose(-1, -2)
    return view_as_real(spectra) if return_complex is False else spectra  # type: ignore[no-any-return]


samples(
    stft,
    lambda t: [
        case(t(9), 4, return_complex=True),
        case(t(2, 9), 4, 2, 3, t.positive(3), normalized=True, return_complex=False),
        case(t(2, 9), 5, 3, center=False, onesided=False, return_complex=True),
        case(t(9), 6, 2, 4, t.positive(4), False, align_to_window=True, return_complex=True),
        case(t(2, 6), 4, 1, pad_mode="constant", return_complex=True),
    ],
)
wrong_inputs(
    stft,
    (lambda t: case(t(9), 4), RuntimeError, "stft: return_complex must be given for real signals"),
    (lambda t: case(t(1, 1, 9), 4, return_complex=True), RuntimeError, "must have 1 or 2 dimensions, it has 3"),
    (lambda t: case(t(9), 4, 0, return_complex=True), RuntimeError, "hop_length must be positive, got 0"),
    (lambda t: case(t(9), 4, 1, 5, return_complex=True), RuntimeError, "win_length must be from 1 to n_fft, 4, got 5"),
    (
        lambda t: case(t(9), 10, center=False, return_complex=True),
        RuntimeError,
        "n_fft, 10, must not be above the length of the signal, 9",
    ),
    (lambda t: case(t(9), 4, window=t(3), return_complex=True), RuntimeError, "the window must have shape [4]"),
    (lambda t: case(t(9), 4, align_to_window=True, return_complex=True), RuntimeError, "is for center=False"),
)


def _overlapped(pieces: Tensor, hop: int, size: int) -> Tensor:
    """(..., T, n) to (..., L): pieces put where they were, and added."""
    count, n = pieces.shape[-2:]
    positions = (arange(count, device=pieces.device) * hop).unsqueeze(-1) + arange(n, device=pieces.device)  # type: ignore[attr-defined]
    flat = pieces.reshape(*pieces.shape[:-2], count * n)
    return flat.new_zeros((*flat.shape[:-1], size)).index_add(-1, positions.reshape(-1), flat)  # type: ignore[attr-defined, no-any-return]


def _check_spectrum(input: Tensor, n_fft: int, onesided: bool) -> None:
    name = "istft"
    if not input.is_complex():
        raise DTypeError(message(name, f"the input must be complex, it is {input.dtype}", [("input", input._spec())]))
    if input.ndim not in (2, 3):
        raise ShapeError(message(name, f"the input must have 2 or 3 dimensions, it has {input.ndim}"))
    if not input.numel():
        raise ShapeError(message(name, "the input has no elements", [("input", input._spec())]))
    if input.shape[-2] != (want := n_fft // 2 + 1 if onesided else n_fft):
        raise ShapeError(
            message(name, f"{want} frequencies are needed, got {input.shape[-2]}", [("input", input._spec())])
        )


@composite(dtypes="c", torch_name="istft")
def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """The inverse of `stft`: the signal whose pieces are nearest to those of a spectrum (Griffin and Lim 1984).

    Args:
        input: (N, T), or (B, N, T) for several signals
        length: of the signal, cut or filled with zeros; what the pieces cover unless given
        return_complex: a complex signal, from all n frequencies
        n_fft, hop_length, win_length, window, center, normalized, onesided: those of `stft`

    Raises:
        RuntimeError: sizes that do not fit, or a window that is zero somewhere in all of its places

    >>> import genesis
    >>> spectrum = genesis.stft(genesis.arange(6.), 4, return_complex=True)
    >>> genesis.istft(spectrum, 4).round(decimals=4).abs()
    tensor([0., 1., 2., 3., 4., 5.])
    """
    name = "istft"
    onesided = input.ndim > 1 and input.shape[-2] != n_fft if onesided is None else onesided
    hop, width = _sizes(name, n_fft, hop_length, win_length)
    _check_spectrum(input, n_fft, onesided)
    if hop > width:
        raise ShapeError(message(name, f"hop_length, {hop}, must not be above win_length, {width}"))
    if return_complex and onesided:
        _refuse_onesided(name)
    if not return_complex and window is not None and window.is_complex():
        raise DTypeError(message(name, "a complex window gives a complex signal", hint="return_complex=True"))
    if length is not None and length < 1:
        raise ShapeError(message(name, f"length must be positive, got {length}"))
    weights = _window(name, window, width, n_fft, input)
    norm, spectra = "ortho" if normalized else None, input.transpose(-1, -2)  # type: ignore[attr-defined]
    if return_complex:
        pieces = FUNCTIONS["ifft"](spectra, norm=norm)
    else:
        pieces = FUNCTIONS["irfft"](spectra[..., : n_fft // 2 + 1], n_fft, norm=norm)
    covered = n_fft + hop * (input.shape[-1] - 1)
    start = n_fft // 2 if center else 0
    end = min(covered, start + length) if length is not None else covered - start
    total = _overlapped(pieces * weights, hop, covered)[..., start:end]
    envelope = _overlapped((weights * weights).expand(input.shape[-1], n_fft), hop, covered)[start:end]
    _check_envelope(envelope)
    out = total / envelope
    return pad(out, (0, length - out.shape[-1])) if length is not None and length > out.shape[-1] else out  # type: ignore[no-any-return]


def _check_envelope(envelope: Tensor) -> None:
    values = known_values(envelope.detach().abs())  # type: ignore[attr-defined]
    if values is not None and not values.min(initial=1.0) > 1e-11:
        at = int(values.argmin())
        raise ShapeError(
            message("istft", f"the windows that cover sample {at} are all zero there", hint="a smaller hop_length")
        )


samples(
    istft,
    lambda t: [
        case(t(3, 4), 4),
        case(t(2, 3, 4), 4, 2, 3, t.positive(3).abs() + 1, normalized=True, length=7),
        case(t(5, 3), 5, 2, center=False, onesided=False, length=12),
        case(t(4, 3), 4, 1, center=False, return_complex=True),
    ],
)
wrong_inputs(
    istft,
    (lambda t: case(t(3, 4), 4), RuntimeError, "istft: the input must be complex, it is genesis.float32"),
    (lambda t: case(t(3).cfloat(), 4), RuntimeError, "istft: the input must have 2 or 3 dimensions, it has 1"),
    (lambda t: case(t(4, 4).cfloat(), 4, onesided=True), RuntimeError, "istft: 3 frequencies are needed, got 4"),
    (lambda t: case(t(3, 0).cfloat(), 4), RuntimeError, "istft: the input has no elements"),
    (lambda t: case(t(3, 4).cfloat(), 4, 3, 2), RuntimeError, "hop_length, 3, must not be above win_length, 2"),
    (lambda t: case(t(3, 4).cfloat(), 4, return_complex=True), RuntimeError, "have a spectrum of two sides"),
    (
        lambda t: case(t(3, 4).cfloat(), 4, window=t(4) * 0),
        RuntimeError,
        "the windows that cover sample 0 are all zero",
    ),
)

__all__ = ["istft", "stft"]
