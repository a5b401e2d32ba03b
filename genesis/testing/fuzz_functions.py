"""The user Functions of the fuzzer: every way of saving, writing and returning, each with the name of what it computes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from genesis.core.functions.function import Function


class SaveInput(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * g * x


class SaveOutput(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.saved_tensors[0]


class SaveIntermediate(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        square = x * x
        ctx.save_for_backward(square, x)
        return square * square * square

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        square, x = ctx.saved_tensors
        return 6 * g * square * square * x


class SaveAttribute(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.both = [x, y.detach()]
        return x * y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, y = ctx.both
        return {"x": g * y, "y": g * x}


class TwoOutputs(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.save_for_backward(x, y)
        return x * y, x + y

    @staticmethod
    def backward(ctx: Any, g: Any, h: Any) -> Any:
        x, y = ctx.saved_tensors
        return g * y + h, g * x + h


class Containers(Function):
    @staticmethod
    def forward(ctx: Any, pair: Any) -> Any:
        ctx.save_for_backward(pair["x"], pair["y"])
        return {"product": pair["x"] * pair["y"], "sine": pair["x"].sin()}

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, y = ctx.saved_tensors
        return {"x": g["product"] * y + g["sine"] * x.cos(), "y": g["product"] * x}


class WriteUndeclared(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        x.mul_(2)
        return x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2


class WriteDeclared(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.mark_dirty(x)
        x.add_(y)
        return x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g, g


class ReturnInput(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g


class ReturnView(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.shape = x.shape
        return x.reshape(-1)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g.reshape(ctx.shape)


class WriteGradient(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g.clone().mul_(2) if g.requires_grad else g.mul_(2)


@dataclass(frozen=True)
class Kind:
    """How a function is called, and which rules of the reference its outputs follow."""

    function: Any
    means: tuple[str, ...]
    operands: int = 1
    call: str = ""
    writes: bool = False  # its first argument
    aliases: bool = False  # returns it
    flattens: bool = False  # returns a view of it

    @property
    def name(self) -> str:
        return str(self.function.__name__)


KINDS = (
    Kind(SaveInput, ("square",), call="SaveInput.apply({0})"),
    Kind(SaveOutput, ("exp",), call="SaveOutput.apply({0})"),
    Kind(SaveIntermediate, ("sixth",), call="SaveIntermediate.apply({0})"),
    Kind(SaveAttribute, ("mul",), 2, "SaveAttribute.apply({0}, {1})"),
    Kind(TwoOutputs, ("mul", "add"), 2, "TwoOutputs.apply({0}, {1})"),
    Kind(Containers, ("mul", "first_sin"), 2, "Containers.apply({{'x': {0}, 'y': {1}}}).values()"),
    Kind(WriteUndeclared, ("double",), writes=True),
    Kind(WriteDeclared, ("add",), 2, writes=True),
    Kind(ReturnInput, ("clone",), aliases=True),
    Kind(ReturnView, ("clone",), flattens=True),
    Kind(WriteGradient, ("double",), call="WriteGradient.apply({0})"),
)
