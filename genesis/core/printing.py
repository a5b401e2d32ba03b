"""How tensors look: PyTorch's format, large ones summarised before anything is formatted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from genesis.arrays.spec import Spec
from genesis.base import dtypes
from genesis.base.errors import ArgumentValueError, message

if TYPE_CHECKING:
    from genesis.core.tensor import Tensor


@dataclass(slots=True)
class Options:
    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


OPTIONS = Options()
_PROFILES = {"default": (4, 1000, 3), "short": (2, 1000, 2), "full": (4, math.inf, 3)}


def set_printoptions(
    precision: int | None = None, threshold: float | None = None, edgeitems: int | None = None, linewidth: int | None = None,
    profile: str | None = None, sci_mode: bool | None = None,
) -> None:  # fmt: skip
    """Set how tensors are printed.

    Args:
        precision: digits after the point; threshold: elements from which tensors are summarised
        edgeitems: elements shown at each end then; linewidth: characters in a line
        profile: "default", "short" or "full"; sci_mode: scientific notation always, never, or as needed (None)

    >>> import genesis
    >>> genesis.set_printoptions(precision=2); genesis.tensor([1.2345])
    tensor([1.23])
    >>> genesis.set_printoptions(profile="default")
    """
    if profile is not None:
        if profile not in _PROFILES:
            raise ArgumentValueError(message("set_printoptions", f"unknown profile {profile!r}", hint=", ".join(_PROFILES)))
        OPTIONS.precision, OPTIONS.threshold, OPTIONS.edgeitems = _PROFILES[profile]
        OPTIONS.linewidth = 80
    for name, value in (("precision", precision), ("threshold", threshold), ("edgeitems", edgeitems), ("linewidth", linewidth)):
        if value is not None:
            setattr(OPTIONS, name, value)
    OPTIONS.sci_mode = sci_mode


class _Formatter:
    """One width and one notation for all numbers of a tensor."""

    def __init__(self, values: np.ndarray[Any, Any]) -> None:
        self.floating = values.dtype.kind == "f"
        self.whole, self.scientific, self.width = True, False, 1
        flat = values.reshape(-1)
        if self.floating:
            flat = flat[np.isfinite(flat) & (flat != 0)]  # zeros, inf and nan do not decide
            if flat.size:
                size = np.abs(flat.astype(np.float64))
                low, high = float(size.min()), float(size.max())
                self.whole = bool((flat == np.ceil(flat)).all())
                needed = high / low > 1000 or high > 1e8 or low < 1e-4
                self.scientific = needed if OPTIONS.sci_mode is None else OPTIONS.sci_mode
        self.width = max([1, *(len(self._plain(v)) for v in flat.tolist())])

    def _plain(self, value: Any) -> str:
        if not self.floating:
            return str(value)
        if not math.isfinite(value):
            return str(value)
        if self.scientific:
            return f"{value:.{OPTIONS.precision}e}"
        if self.whole:
            return f"{value:.0f}."
        return f"{value:.{OPTIONS.precision}f}"

    def __call__(self, value: Any) -> str:
        return self._plain(value).rjust(self.width)


def _rows(array: np.ndarray[Any, Any], indent: int, summarize: bool, form: Any, imag: Any) -> str:
    if not array.ndim:
        return _element(array[()], form, imag)
    if array.ndim == 1:
        return _line(array, indent, summarize, form, imag)
    edge = OPTIONS.edgeitems
    if summarize and array.shape[0] > 2 * edge:
        parts = [_rows(array[i], indent + 1, summarize, form, imag) for i in range(edge)]
        parts += ["..."] + [_rows(array[i], indent + 1, summarize, form, imag) for i in range(len(array) - edge, len(array))]
    else:
        parts = [_rows(row, indent + 1, summarize, form, imag) for row in array]
    return "[" + ("," + "\n" * (array.ndim - 1) + " " * (indent + 1)).join(parts) + "]"


def _element(value: Any, form: Any, imag: Any) -> str:
    if imag is None:
        return form(value.item() if hasattr(value, "item") else value)
    re, im = form(value.real.item()), imag(value.imag.item()).lstrip()
    return f"{re}{im}j" if im[0] in "+-" else f"{re}+{im}j"


def _line(array: np.ndarray[Any, Any], indent: int, summarize: bool, form: Any, imag: Any) -> str:
    width = form.width + 2 + (0 if imag is None else imag.width + 1)
    per_line = max(1, (OPTIONS.linewidth - indent) // width)
    edge = OPTIONS.edgeitems
    if summarize and not len(array) <= 2 * edge:
        items = [_element(v, form, imag) for v in array[:edge]] + [" ..."] + [_element(v, form, imag) for v in array[-edge:]]
    else:
        items = [_element(v, form, imag) for v in array]
    lines = [items[i : i + per_line] for i in range(0, len(items), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(", ".join(line) for line in lines) + "]"


def _edges(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The elements that a summary shows."""
    edge = OPTIONS.edgeitems
    for axis in range(array.ndim):
        if array.shape[axis] > 2 * edge:
            array = np.concatenate((np.take(array, range(edge), axis), np.take(array, range(-edge, 0), axis)), axis)
    return array


def body(array: np.ndarray[Any, Any], indent: int) -> str:
    """The numbers of a tensor, without ``tensor(...)`` around them."""
    if array.dtype.kind == "V" or array.dtype == np.float16:
        array = array.astype(np.float32)
    summarize = array.size > OPTIONS.threshold
    shown = _edges(array) if summarize else array
    if array.dtype.kind == "c":
        return _rows(array, indent, summarize, _Formatter(np.ascontiguousarray(shown.real)), _Formatter(np.ascontiguousarray(shown.imag)))
    return _rows(array, indent, summarize, _Formatter(shown), None)


def _usual_dtype(kind: dtypes.dtype) -> bool:
    return kind in (dtypes.get_default_dtype(), dtypes.int64, dtypes.bool) or kind is dtypes.get_default_dtype().to_complex()


def describe(tensor: Tensor) -> str:
    """The ``repr`` of a tensor."""
    prefix = "tensor("
    array = tensor._array
    kind = tensor.dtype
    notes: list[str] = []
    if isinstance(array, Spec):
        text = "..."
        notes += [f"device='{tensor.device}'", f"size=({', '.join(map(str, array.shape))}{',' if len(array.shape) == 1 else ''})"]
        notes += [] if kind is dtypes.get_default_dtype() else [f"dtype={kind}"]
    elif not array.size:
        text = "[]"
        notes += [f"size=({', '.join(map(str, array.shape))})"] if array.ndim != 1 else []
        notes += [] if kind is dtypes.get_default_dtype() else [f"dtype={kind}"]
    else:
        text = body(array, len(prefix))
        notes += [] if _usual_dtype(kind) else [f"dtype={kind}"]
    if tensor.grad_fn is not None:
        notes.append(f"grad_fn={tensor.grad_fn!r}")
    elif tensor.requires_grad:
        notes.append("requires_grad=True")
    return _with_notes(prefix + text, notes, len(prefix))


def _with_notes(text: str, notes: list[str], indent: int) -> str:
    last = len(text) - text.rfind("\n") - 1
    for note in notes:
        if last + len(note) + 2 > OPTIONS.linewidth:
            text += ",\n" + " " * indent + note
            last = indent + len(note)
        else:
            text += ", " + note
            last += len(note) + 2
    return text + ")"
