"""What users give, as what messages hold; whatever is wrong is said before anything is written."""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.base.errors import ArgumentError, ArgumentValueError, ShapeError, message
from genesis.core.call.refusal import described
from genesis.core.graph.tensor import Tensor

Array = np.ndarray[Any, Any]


def make_np(x: Any, call: str = "make_np", what: str = "x") -> Array:
    """Numbers as an array: of a tensor (floats of fewer than 32 bits as float32), an array, a number, or a list.

    Args:
        x: what is given; a number is an array of one element
        call, what: whose argument it is, for errors

    Raises:
        TypeError: no numbers
        ValueError: a tensor without data

    >>> make_np(2.5)
    array([2.5])
    """
    if isinstance(x, Tensor):
        if x.device.type == "meta":
            raise ArgumentValueError(
                message(call, f"{what} is a meta tensor, which has no data", [(what, described(x))])
            )
        narrow = x.dtype.is_floating_point and x.dtype.itemsize < 4
        array = x.detach().cpu().float().numpy() if narrow else x.detach().resolve_conj().cpu().numpy()  # type: ignore[attr-defined]
    else:
        try:
            array = np.asarray(x)
        except (TypeError, ValueError) as error:
            raise ArgumentError(message(call, f"{what} must be numbers, got {described(x)}")) from error
    if array.dtype.kind not in "biuf":
        raise ArgumentError(message(call, f"{what} must be numbers, got {described(x)}"))
    return array.reshape(1) if np.isscalar(x) else array


def one_number(x: Any, call: str, what: str) -> float:
    """The only element of what is given."""
    array = make_np(x, call, what)
    if array.size != 1:
        raise ArgumentError(message(call, f"{what} must be one number, got {described(x)}"))
    return float(array.reshape(()))


def whole_number(x: Any, call: str, what: str) -> int:
    """A number as an integer, cut as ``int`` does."""
    number = one_number(x, call, what)
    if not np.isfinite(number):
        raise ArgumentValueError(message(call, f"{what} must be finite, got {number}"))
    return int(number)


def text(x: Any, call: str, what: str = "tag") -> str:
    """A string."""
    if not isinstance(x, str):
        raise ArgumentError(message(call, f"{what} must be a string, got {type(x).__name__}"))
    return x


def dictionary(x: Any, call: str, what: str) -> dict[str, Any]:
    """A dictionary, by strings."""
    if not isinstance(x, dict):
        raise ArgumentError(message(call, f"{what} must be a dictionary, got {described(x)}"))
    for key in x:
        text(key, call, f"a key of {what}")
    return x


def strings(x: Any, call: str, what: str) -> list[str]:
    """A list of strings."""
    if not isinstance(x, list | tuple):
        raise ArgumentError(message(call, f"{what} must be a list of strings, got {described(x)}"))
    return [text(each, call, f"an element of {what}") for each in x]


def of_length(count: int, x: Any, call: str, what: str) -> None:
    """One of these for each data point."""
    if len(x) != count:
        raise ShapeError(message(call, f"there are {count} data points and {len(x)} {what}"))
