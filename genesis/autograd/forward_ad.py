"""Forward mode by hand: dual tensors in a level that is open for a ``with``. The names are PyTorch's.

>>> import genesis
>>> from genesis.autograd import forward_ad
>>> with forward_ad.dual_level():
...     x = forward_ad.make_dual(genesis.tensor([0.0]), genesis.tensor([2.0]))
...     forward_ad.unpack_dual(x.sin()).tangent
tensor([2.])
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, NamedTuple

from genesis.autograd.transforms.derivatives import check_differentiable, check_tangent
from genesis.base.errors import GraphError, message
from genesis.core.boundary import dual_in, primal_of, tangent_of
from genesis.core.levels import Level, levels, opened
from genesis.core.tensor import Tensor

_NAME = "dual_level"


class dual_level:
    """Context manager: inside, tensors may have tangents."""

    def __init__(self) -> None:
        self._open: list[Any] = []

    def __enter__(self) -> Level:
        context = opened(Level(_NAME))
        self._open.append(context)
        return context.__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._open.pop().__exit__(kind, error, trace)


_entered: list[dual_level] = []


def enter_dual_level() -> Level:
    """Open a level without a ``with``; `exit_dual_level` closes it."""
    manager = dual_level()
    _entered.append(manager)
    return manager.__enter__()


def exit_dual_level(*, level: Any = None) -> None:
    """Close the level that `enter_dual_level` opened last."""
    if not _entered:
        raise GraphError(message("exit_dual_level", "no level is open"))
    _entered.pop().__exit__(None, None, None)


def _number(name: str, level: Any) -> int:
    if isinstance(level, Level):
        return level.number
    mine = [x for x in levels() if x.name == _NAME]
    if not mine:
        raise GraphError(message(name, "no level of forward mode is open", hint="with genesis.autograd.forward_ad.dual_level(): ..."))
    return mine[-1].number


def make_dual(tensor: Tensor, tangent: Tensor, *, level: Any = None) -> Tensor:
    """A tensor with a tangent of its shape and dtype, in the innermost level.

    Raises:
        RuntimeError: no level is open, or the tangent's shape or dtype differs
    """
    number = _number("make_dual", level)
    check_differentiable("make_dual", tensor)
    check_tangent("make_dual", lambda: "tensor", tensor, tangent)
    return dual_in(tensor, tangent, number)


class UnpackedDualTensor(NamedTuple):
    """A value and its tangent, None where there is none."""

    primal: Tensor
    tangent: Tensor | None


def unpack_dual(tensor: Tensor, *, level: Any = None) -> UnpackedDualTensor:
    """The value and the tangent of a tensor, both differentiable."""
    if level is None and not any(x.name == _NAME for x in levels()):
        return UnpackedDualTensor(tensor, None)
    number = _number("unpack_dual", level)
    return UnpackedDualTensor(primal_of(tensor, number), tangent_of(tensor, number))
