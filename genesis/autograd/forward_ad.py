"""Forward mode by hand: dual tensors in a level that is open for a ``with``. The names are PyTorch's.

>>> import genesis
>>> from genesis.autograd import forward_ad
>>> with forward_ad.dual_level():
...     x = forward_ad.make_dual(genesis.tensor([0.0]), genesis.tensor([2.0]))
...     forward_ad.unpack_dual(x.sin()).tangent
tensor([2.])
"""

from __future__ import annotations

from contextvars import ContextVar
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from genesis.arrays.dual import Dual
from genesis.autograd.func.derivatives import check_differentiable, check_tangent
from genesis.base.errors import GraphError, message
from genesis.core.graph.boundary import dual_in, primal_of, tangent_of
from genesis.core.graph.levels import Level, levels, opened
from genesis.core.graph.tensor import Tensor

_NAME = "dual_level"


class dual_level:
    """Context manager: inside, tensors may have tangents. It gives the number of the level, 0 for the outermost."""

    def __init__(self) -> None:
        self._open: list[Any] = []

    def __enter__(self) -> int:
        depth = len(_mine())
        context = opened(Level(_NAME))
        self._open.append(context)
        context.__enter__()
        return depth

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.pop().__exit__(kind, error, trace)


_entered: ContextVar[tuple[dual_level, ...]] = ContextVar("genesis_entered_dual_levels", default=())


def enter_dual_level() -> int:
    """Open a level without a ``with``; `exit_dual_level` closes it."""
    manager = dual_level()
    _entered.set((*_entered.get(), manager))
    return manager.__enter__()


def exit_dual_level(*, level: Any = None) -> None:
    """Close the level that `enter_dual_level` opened last."""
    entered = _entered.get()
    if not entered:
        raise GraphError(message("exit_dual_level", "no level is open"))
    _entered.set(entered[:-1])
    entered[-1].__exit__(None, None, None)


def _mine() -> list[Level]:
    return [x for x in levels() if x.name == _NAME]


def _number(name: str, level: Any) -> int:
    mine = _mine()
    if not mine:
        raise GraphError(
            message(name, "no level of forward mode is open", hint="with genesis.autograd.forward_ad.dual_level(): ...")
        )
    if level is not None and not 0 <= level < len(mine):
        raise GraphError(message(name, f"level {level} is not open, there are {len(mine)}"))
    return mine[-1 if level is None else level].number


def make_dual(tensor: Tensor, tangent: Tensor, *, level: Any = None) -> Tensor:
    """A tensor with a tangent of its shape and dtype, in the innermost level. It shares the memory of both: a write to
    it is seen in them.

    Raises:
        RuntimeError: no level is open, the tangent's shape or dtype differs, or one of the two has a tangent in this
            level already
    """
    number = _number("make_dual", level)
    check_differentiable("make_dual", tensor)
    check_tangent("make_dual", lambda: "tensor", tensor, tangent)
    for what, x in (("tensor", tensor), ("tangent", tangent)):
        if tangent_of(x, number) is not None:
            raise GraphError(
                message(
                    "make_dual",
                    f"the {what} has a tangent in this level already",
                    [(what, x._spec())],
                    "unpack_dual(...).primal is the value alone; a level inside this one may have tangents of its own",
                )
            )
    out = dual_in(tensor, tangent, number)
    array = out._array
    if isinstance(array, Dual) and isinstance(array.tangent, np.ndarray) and isinstance(array.primal, np.ndarray):
        array.shared = array.tangent.strides != array.primal.strides
        if not array.shared:
            array.given = tangent
    return out


class UnpackedDualTensor(NamedTuple):
    """A value and its tangent, None where there is none."""

    primal: Tensor
    tangent: Tensor | None


def unpack_dual(tensor: Tensor, *, level: Any = None) -> UnpackedDualTensor:
    """The value and the tangent of a tensor, both differentiable."""
    if level is None and not _mine():
        return UnpackedDualTensor(tensor, None)
    number = _number("unpack_dual", level)
    tensor._shared_counter()  # who writes to the value writes to the tensor, also if that is a gradient
    given = _given(tensor._array, number)
    return UnpackedDualTensor(primal_of(tensor, number), tangent_of(tensor, number) if given is None else given)


def _given(array: Any, number: int) -> Tensor | None:
    """The tensor that `make_dual` was given as the tangent, as long as it is the tangent."""
    given: Tensor | None = getattr(array, "given", None) if isinstance(array, Dual) and array.level == number else None
    return given if given is not None and given._array is array.tangent else None
