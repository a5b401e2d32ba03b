"""How tensors look: PyTorch's format, large ones summarised before anything is formatted."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from genesis.arrays.memory import DeviceArray, memory_of
from genesis.base import dtypes
from genesis.base.errors import ArgumentError, ArgumentValueError, message
from genesis.base.narrow import widened

if TYPE_CHECKING:
    from genesis.core.graph.tensor import Tensor

Values = np.ndarray[Any, Any]


@dataclass(slots=True)
class Options:
    """What `set_printoptions` sets."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


OPTIONS = Options()
_PROFILES = {
    "default": asdict(Options()),
    "short": asdict(Options(precision=2, edgeitems=2)),
    "full": asdict(Options(threshold=math.inf)),
}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors are printed; what is not given stays, but for `sci_mode`, which is set every time.

    Args:
        precision: digits after the point
        threshold: a tensor of more elements than this is summarised
        edgeitems: elements shown at each end of a dimension then
        linewidth: characters in a line
        profile: "default", "short" or "full", a start for the others
        sci_mode: scientific notation always, never, or (None) when the numbers are far apart, large or small

    >>> import genesis
    >>> genesis.set_printoptions(precision=2); genesis.tensor([1.2345])
    tensor([1.23])
    >>> genesis.set_printoptions(profile="default")

    Raises:
        ValueError: a number is negative, or the profile is not known
    """
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    given = {name: value for name, value in given.items() if value is not None}
    for name, value in given.items():
        if not isinstance(value, numbers.Real):
            raise ArgumentError(message("set_printoptions", f"{name} must be a number, got {type(value).__name__}"))
        if not value >= 0:
            raise ArgumentValueError(message("set_printoptions", f"{name} must not be negative, got {value}"))
    if profile is not None and (not isinstance(profile, str) or profile not in _PROFILES):
        known = ", ".join(_PROFILES)
        raise ArgumentValueError(message("set_printoptions", f"unknown profile {profile!r}", hint=f"one of {known}"))
    for name, value in {**_PROFILES.get(profile or "", {}), **given, "sci_mode": sci_mode}.items():
        setattr(OPTIONS, name, value)


@contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """Print with other options inside a ``with`` block; the arguments are those of `set_printoptions`.

    >>> import genesis
    >>> with printoptions(precision=1): genesis.tensor([0.25])
    tensor([0.2])
    """
    before = asdict(OPTIONS)
    set_printoptions(**options)
    try:
        yield
    finally:
        set_printoptions(**before)


# ---- numbers to text


def _texts(values: Values) -> tuple[list[str], int]:
    """The text of every number, padded to a common width, and that width."""
    if values.dtype.kind in "biu":
        texts = [str(v) for v in values.ravel().tolist()]
        return _padded(texts, texts)
    flat = values.astype(np.float64).ravel()  # exact from every floating dtype
    decisive = np.isfinite(flat) & (flat != 0)  # zeros, inf and nan follow what the others need
    form = _notation(flat[decisive])
    texts = [form(v) for v in flat.tolist()]
    return _padded(texts, [texts[i] for i in np.flatnonzero(decisive)])


def _padded(texts: list[str], decisive: list[str]) -> tuple[list[str], int]:
    width = max(map(len, decisive), default=1)
    return [text.rjust(width) for text in texts], width


def _notation(values: Values) -> Any:
    """One way to write all numbers of a tensor: scientific, as integers with a point, or with decimals."""
    if not values.size:
        return lambda v: f"{v:.0f}." if math.isfinite(v) else str(v)
    size = np.abs(values)
    low, high = float(size.min()), float(size.max())
    scientific = high / low > 1000 or high > 1e8 or low < 1e-4
    if scientific if OPTIONS.sci_mode is None else OPTIONS.sci_mode:
        return f"{{:.{OPTIONS.precision}e}}".format
    if (values == np.ceil(values)).all():
        return lambda v: f"{v:.0f}." if math.isfinite(v) else str(v)
    return f"{{:.{OPTIONS.precision}f}}".format


def _complex_texts(values: Values) -> tuple[list[str], int]:
    real, width = _texts(values.real)
    imag, imag_width = _texts(values.imag)
    signed = [text if text[0] == "-" else "+" + text for text in map(str.lstrip, imag)]
    return [f"{a}{b}j" for a, b in zip(real, signed, strict=True)], width + imag_width + 1


# ---- text to lines


def content(array: Values, indent: int) -> str:
    """The numbers in brackets, without ``tensor(...)`` around them; `indent` is the column they begin in."""
    edge = OPTIONS.edgeitems
    summarized = array.size > OPTIONS.threshold
    cut = [summarized and n > 2 * edge for n in array.shape]
    if any(cut):
        shown = [[*range(edge), *range(n - edge, n)] if n > 2 * edge else range(n) for n in array.shape]
        array = array[np.ix_(*shown)]
    array = widened(array)
    texts, width = _complex_texts(array) if array.dtype.kind == "c" else _texts(array)
    return _layout(np.array(texts, dtype=object).reshape(array.shape).tolist(), cut, indent, width)


def _layout(cells: Any, cut: Sequence[bool], indent: int, width: int) -> str:
    """Nested lists of texts as nested brackets; ``...`` in the middle of the dimensions that were cut."""
    if not cut:
        return str(cells)
    if len(cut) == 1:
        return _row(cells, cut[0], indent, width)
    parts = [_layout(part, cut[1:], indent + 1, width) for part in cells]
    if cut[0]:
        parts.insert(OPTIONS.edgeitems, "...")
    return "[" + ("," + "\n" * (len(cut) - 1) + " " * (indent + 1)).join(parts) + "]"


def _row(cells: list[str], cut: bool, indent: int, width: int) -> str:
    if cut:
        cells.insert(OPTIONS.edgeitems, " ..." if cells else "...")
    fit = max(1, (OPTIONS.linewidth - indent) // (width + 2))  # 2 for the comma and the space
    lines = [", ".join(cells[i : i + fit]) for i in range(0, len(cells), fit)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


# ---- tensors


def tensor_repr(array: Any, suffixes: Sequence[str] = (), name: str = "tensor") -> str:
    """An array as the tensor that holds it is printed, with what else there is to say of it.

    >>> print(tensor_repr(np.array([[1.0, 2.5]]), ["requires_grad=True"]))
    tensor([[1.0000, 2.5000]], dtype=genesis.float64, requires_grad=True)
    """
    kind, default = dtypes.from_numpy(array.dtype), dtypes.get_default_dtype()
    indent = len(name) + 1
    known = (default,)
    where = []
    if isinstance(array, DeviceArray):
        where, array = [array.described()], memory_of(array).to_host(array)
    if not isinstance(array, np.ndarray):  # no numbers to show
        text, notes = "...", [array.described(), f"size={tuple(array.shape)}"]
    elif not array.size:
        text, notes = "[]", [] if array.ndim == 1 else [f"size={array.shape}"]
    else:
        text, notes = content(array, indent), [] if OPTIONS.edgeitems else [f"size={array.shape}"]
        # seen from the numbers
        known = (default, default.to_complex(), dtypes.int64, dtypes.bool)  # type: ignore[assignment]
    notes = [*where, *notes]
    if kind not in known:
        notes.append(f"dtype={kind}")
    return _with_notes(f"{name}({text}", [*notes, *suffixes], indent)


def _with_notes(text: str, notes: list[str], indent: int) -> str:
    column = len(text) - text.rfind("\n") + 1  # two more than there are, which PyTorch counts too
    for note in notes:
        if column + len(note) + 2 > OPTIONS.linewidth:
            text += ",\n" + " " * indent + note
            column = indent + len(note)
        else:
            text += ", " + note
            column += len(note) + 2
    return text + ")"


def describe(tensor: Tensor) -> str:
    """The ``repr`` of a tensor; subclasses made elsewhere are printed under their own name."""
    kind = type(tensor)
    suffixes = []
    if tensor.grad_fn is not None:
        suffixes.append(f"grad_fn=<{tensor.grad_fn.name()}>")
    elif tensor.requires_grad:
        suffixes.append("requires_grad=True")
    ours = kind.__module__.startswith("genesis.")
    return tensor_repr(tensor._array, suffixes, "tensor" if ours else kind.__name__)


def format_scalar(array: Values, spec: str) -> str:
    """The only element of an array in a format such as ``.4f``.

    >>> format_scalar(np.array(2 / 3), ".4f")
    '0.6667'

    Raises:
        TypeError: there is not exactly one element
    """
    if array.size != 1:
        raise ArgumentError(
            message("format", f"{spec!r} formats one element, the tensor has {array.size}",
                    hint="f'{x}' prints the whole tensor")
        )  # fmt: skip
    return format(array.item(), spec)
