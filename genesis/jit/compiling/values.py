"""Values that Python needs while a function is traced: what a branch decides on, what is returned as a number.

``x.item()`` gives a `Number`. Returned, it is a result of the graph. Where Python asks it something (``if``, ``>``, an
index), the answer is computed from the arguments at hand, the trace goes on with it, and the graph holds for calls with
the same answers: a call computes what was asked for first, and looks.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextvars import Context
from typing import Any, NamedTuple

from genesis.arrays.memory import number_in
from genesis.base.device import MEMORIES
from genesis.base.errors import GraphError, message
from genesis.core.graph import conversions
from genesis.core.graph.modes import no_grad
from genesis.core.graph.site import LIBRARY, line_here
from genesis.core.graph.tensor import Tensor, wrap
from genesis.core.graph.tracing import tracer
from genesis.jit.arguments import Var
from genesis.jit.program import op_of
from genesis.jit.replay import _drawn, computed
from genesis.jit.tracer import Tracer

MOST = 16  # questions in one call


class Question(NamedTuple):
    """Something that Python asked, and the answer."""

    tensor: Tensor
    answer: Any
    behind: int  # how many statements that Python does it comes after


class ValueNeeded(GraphError):
    """Python computes with a number that is another one at each call. A trace in which that was raised has ended, also where the
    function catches it.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        if isinstance(refusals := getattr(tracer.get(), "refusals", None), list):
            refusals.append(self)


class Number:
    """The one element of a tensor that is being traced, as a Python number."""

    def __init__(self, values: Values, tensor: Tensor) -> None:
        self.values, self.tensor = values, tensor

    def value(self) -> Any:
        """The number itself; only whole ones are worth a graph of their own."""
        if self.tensor._array.dtype.kind not in "iub":
            raise ValueNeeded(
                message("compile", f"Python computes with a number that is taken out of a tensor, at {line_here()}",
                        hint="compute with the tensor, and call item() outside")
            )  # fmt: skip
        return self.values.answer(self.tensor)

    def __bool__(self) -> bool:
        return bool(self.values.answer(self.tensor != 0))

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """What `isinstance` of the program goes by."""
        if not _asked_by_the_program():
            return Number
        return {"f": float, "b": bool}.get(self.tensor._array.dtype.kind, int)


class HostValue:
    """What a statement that Python does at each call gives, or sets: nothing is known of it in a trace, but of some an
    ``example``.
    """

    __slots__ = ("example", "leaf", "title")

    def __init__(self, leaf: Any, title: str, example: Any = None) -> None:
        self.leaf, self.title, self.example = leaf, title, example

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return _unknown(self) if _asked_by_the_program() else HostValue


def _asked_by_the_program() -> bool:
    """Whether it is not this package that asks for a class."""
    frame: Any = sys._getframe(2)
    while frame.f_code.co_name in ("__instancecheck__", "__subclasscheck__") and frame.f_back is not None:
        frame = frame.f_back
    return not LIBRARY[frame.f_code.co_filename]


def _unknown(self: HostValue, *others: Any) -> Any:
    raise ValueNeeded(message("compile", f"Python computes with what it did at {self.title}, at {line_here()}"))


def _compared(name: str) -> Callable[[Number, Any], Any]:
    def compare(self: Number, other: Any) -> Any:
        if isinstance(other, Number):
            other = other.tensor.double()
        if not isinstance(other, bool | int | float | Tensor):
            return NotImplemented
        kind = self.tensor._array.dtype.kind
        mine = self.tensor if kind in "iub" and isinstance(other, bool | int) else self.tensor.double()
        return bool(self.values.answer(getattr(mine, name)(other)))

    return compare


def _computed(name: str) -> Callable[..., Any]:
    def compute(self: Number, *others: Any) -> Any:
        if name not in _EXACT and self.values.keeps_statements:
            raise ValueNeeded(
                message("compile", f"Python computes with a number that is taken out of a tensor, at {line_here()}")
            )
        plain = [x.value() if isinstance(x, Number) else x for x in others]
        return getattr(self.value(), name)(*plain)

    return compute


_EXACT = ("__int__", "__index__", "__hash__")  # what shapes and indices are made of: graphs hold for those


for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Number, f"__{_name}__", _compared(_name))
for _name in ["add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv", "rfloordiv", "mod", "rmod", "pow", "rpow", "neg", "pos", "abs", "int", "float", "index", "round", "trunc", "floor", "ceil", "format", "str", "repr", "hash", "divmod", "and", "or", "xor", "lshift", "rshift", "invert"]:  # fmt: skip
    setattr(Number, f"__{_name}__", _computed(f"__{_name}__"))
    setattr(HostValue, f"__{_name}__", _unknown)
for _name in (
    "bool",
    "lt",
    "le",
    "gt",
    "ge",
    "eq",
    "ne",
    "getattr",
    "getitem",
    "setitem",
    "delitem",
    "matmul",
    "rmatmul",
    "call",
    "iter",
    "len",
    "contains",
    "enter",
):
    setattr(HostValue, f"__{_name}__", _unknown)


class Values:
    """The questions of one trace, and their answers."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer, self.questions = tracer, list[Question]()
        self._known: dict[Var, Any] = {}
        self.keeps_statements = False  # whether Python may do at each call what computes with numbers

    def number(self, tensor: Tensor) -> Number | None:
        """What ``item()`` gives: to the program only. What this package asks for is refused by whom it is asked."""
        frame = sys._getframe(2)
        while frame.f_code.co_filename == conversions.__file__ and frame.f_back is not None:
            frame = frame.f_back
        if LIBRARY[frame.f_code.co_filename] or tensor._array.size != 1 or tensor._array.dtype.kind not in "fiub":
            return None
        return Number(self, wrap(self.tracer.value(tensor.detach())).reshape(()))

    def answer(self, tensor: Tensor) -> Any:
        """The element of a tensor now; from here on the trace is that of calls with this answer."""
        if len(self.questions) == MOST:
            raise ValueNeeded(message("compile", f"Python asks for more than {MOST} values, the last at {line_here()}"))
        answer = Context().run(self._evaluated, self.tracer.var(tensor))
        self.questions.append(Question(tensor, answer, self.tracer.kept()))
        return answer

    def forget(self) -> None:
        """The trace is over: nothing of it is held that would make its constants look like tensors of the outside."""
        self.questions.clear()
        self._known.clear()

    def _evaluated(self, var: Var) -> Any:
        """Compute a variable from what the trace was begun with."""
        tracer, known = self.tracer, self._known
        for capture in (*tracer.arguments, *tracer.memory.captures.values()):
            known[capture.var] = wrap(capture.array)
        known |= {v: float(ask()) for v, ask in tracer.numbers if v not in known}
        for leaf in tracer.gradients.leaves.values():
            if leaf.var is not None and leaf.var not in known:
                spec = leaf.var.spec
                known[leaf.var] = wrap(MEMORIES[spec.device.type].full(spec.shape, spec.dtype, -0.0, spec.device))
        wanted, needed = {var}, []
        for call in reversed(tracer.calls):
            if any(v in wanted and v not in known for v in call.outs):
                needed.append(call)
                wanted |= set(call.inputs)
        with no_grad():
            for call in reversed(needed):
                known |= zip(call.outs, self._results(call), strict=True)
        return number_in(known[var]._array)

    def _results(self, call: Any) -> tuple[Any, ...]:
        op = op_of(call)
        if not op.kind.draws:
            return computed(call, self._known)
        stream = self.tracer.streams[call.args[0].index][0]
        before = stream._block
        try:
            return (_drawn(op, (self.tracer.streams, *call.args)),)
        finally:
            stream._position(before)
