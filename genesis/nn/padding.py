"""Borders as layers: constant, reflected, repeated and periodic ones, of one to three spatial dimensions."""

from __future__ import annotations

from typing import Any

from genesis.base.errors import ShapeError, message
from genesis.core.call.refusal import explain_all
from genesis.core.graph.tensor import Tensor
from genesis.nn.module import Module
from genesis.ops.spatial.arguments import per_dim
from genesis.ops.spatial.padding import pad


class _Pad(Module):
    """`pad` with numbers that are given once: ``padding`` is one number for all sides, or two for each dimension."""

    dims = 0
    mode = "constant"

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = per_dim(type(self).__name__, "padding", padding, 2 * self.dims)

    def forward(self, input: Tensor) -> Tensor:
        if self.mode == "circular" and input.ndim not in (self.dims + 1, self.dims + 2):
            text = f"expected {self.dims + 1}-D or {self.dims + 2}-D input, got {input.ndim}-D"
            raise ShapeError(message(type(self).__name__, text))
        return pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPad(_Pad):
    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_ConstantPad):
    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


_SAYS = {
    "ConstantPad": "A border of ``value``",
    "ZeroPad": "A border of zeros",
    "ReflectionPad": "A border as in a mirror that the last elements are on",
    "ReplicationPad": "A border of the last elements, repeated",
    "CircularPad": "A border of what is on the other side",
}
_BASES = {"ConstantPad": _ConstantPad, "ZeroPad": _ZeroPad}
_MODES = {"ReflectionPad": "reflect", "ReplicationPad": "replicate", "CircularPad": "circular"}


def _layer(kind: str, dims: int) -> Any:
    """The class of a kind and a number of spatial dimensions."""
    name, value = f"{kind}{dims}d", ", 1.0" if kind == "ConstantPad" else ""
    doc = f"""{_SAYS[kind]}, of {dims} dimension{"s" * (dims > 1)}: ``padding`` on all sides, or before and after each, the last dimension first.

    >>> import genesis
    >>> genesis.nn.{name}(1{value})(genesis.zeros(1, {", ".join(["2"] * dims)})).shape
    genesis.Size({[1, *[4] * dims]})
    """  # noqa: E501
    members = {"__doc__": doc, "__module__": __name__, "__qualname__": name, "dims": dims}
    return type(name, (_BASES.get(kind, _Pad),), {**members, "mode": _MODES.get(kind, "constant")})


ConstantPad1d, ConstantPad2d, ConstantPad3d = (_layer("ConstantPad", dims) for dims in (1, 2, 3))
ZeroPad1d, ZeroPad2d, ZeroPad3d = (_layer("ZeroPad", dims) for dims in (1, 2, 3))
ReflectionPad1d, ReflectionPad2d, ReflectionPad3d = (_layer("ReflectionPad", dims) for dims in (1, 2, 3))
ReplicationPad1d, ReplicationPad2d, ReplicationPad3d = (_layer("ReplicationPad", dims) for dims in (1, 2, 3))
CircularPad1d, CircularPad2d, CircularPad3d = (_layer("CircularPad", dims) for dims in (1, 2, 3))
explain_all(globals(), "_Pad", "_ConstantPad", "_ZeroPad")

__all__ = [f"{kind}{dims}d" for kind in _SAYS for dims in (1, 2, 3)]
