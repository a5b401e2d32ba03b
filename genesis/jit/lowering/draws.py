"""Random numbers as parts: an element says which word of a stream it is made of, and computes it where it is used.

The words are those of `Generator`, and the numbers are made of them as the meaning of the op says, which is run on symbols
once; so the bits are those of eager calls. An operand, a `StreamState`, has the key and the position of the stream at the
beginning of the call. The host draws what is made of words in another way than one by one, as normal numbers and
permutations are, and what needs logarithms, whose last bits are NumPy's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec, contiguous_strides
from genesis.core.call.kernels import op_named
from genesis.core.call.scalars import Expression, Symbol
from genesis.core.graph.generator import BITS
from genesis.jit.arguments import Stream, Var
from genesis.jit.lowering.parts import I64, Builder, Memory, Part, Read, Unknown, formula, rule, size_of
from genesis.jit.lowering.scalar_code import WIDE
from genesis.jit.program import Call, op_of

ROWS = "draw.rows"  # the op of a draw in rounds: its arguments, the number of the round, and the call it is a part of


def parts(memory: Memory, call: Call) -> list[Part]:
    """A draw of which all numbers are computed."""
    stream, shape, *_ = call.args
    made = Builder(memory, call, shape)
    made.give(call.outs[0], _drawn(made, call, stream, Symbol(Expression("number", (0,), I64))))
    return [made.made()]


@rule(ROWS)
def rows(memory: Memory, call: Call) -> list[Part]:
    """The numbers of a round: they are behind those of the rounds before."""
    turn, whole = call.args
    shape = call.outs[0].spec.shape
    made = Builder(memory, call, shape)
    before = made.read(turn, (0,) * len(shape)) * size_of(shape)
    made.give(call.outs[0], _drawn(made, whole, whole.args[0], before))
    return [made.made()]


@rule("numbers_of_rounds")
def numbers_of_rounds(memory: Memory, call: Call) -> list[Part]:
    """0, 1, 2, ...: of these a round has one."""
    out = call.outs[0]
    made = Builder(memory, call, out.spec.shape)
    made.give(out, made.count(0))
    return [made.made()]


def of_rounds(call: Call, turn: Var, shape: tuple[int, ...]) -> Call:
    """The part of a draw that a round computes."""
    return Call(ROWS, (turn, call), (Var(Spec(shape, call.outs[0].spec.dtype)),), call.site)


def is_draw(call: Call) -> bool:
    """Whether a call reads a stream of random numbers."""
    op = op_named(call.op)
    return op is not None and op.kind.draws


def is_native(call: Call) -> bool:
    """Whether a draw is computed by a kernel."""
    try:
        parts(Memory({}, set()), call)
    except Unknown:
        return False
    return True


def _drawn(made: Builder, call: Call, stream: Stream, before: Any) -> Any:
    """What an element is, as a symbol: the op's meaning, on a stream that gives symbols."""
    state, zeros = made.memory.state(stream.index), (0,) * len(made.shape)
    words: list[Any] = []
    for offset in range(3):
        made.reads.append(Read(state, I64, offset, zeros))
        words.append(Expression("x", (len(made.reads) - 1,), I64))
    count = made.count_along(4 * stream.offset, contiguous_strides(made.shape))
    _, shape, dtype, *options = call.args

    def uniform(bits: int, kind: Any) -> Any:
        given = (*words, count.expression, before.expression, bits)
        return Symbol(Expression("uniform", given, np.dtype(kind)))

    op = op_of(call)
    meaning: Callable[..., Any] = op.meaning.__wrapped__
    try:
        value = meaning(_Symbols(tuple(shape), uniform), tuple(shape), dtype, *options)
        value = Symbol(formula(value, dtype))
    except (TypeError, AttributeError) as error:
        raise Unknown(f"{op.name} is not made of words one by one") from error
    if any([each.name in WIDE for each in value.expression.walk()]):
        raise Unknown(f"{op.name} needs functions whose last bits are NumPy's")
    return value


class _Symbols:
    """In the place of a generator: its numbers are symbols."""

    def __init__(self, shape: tuple[int, ...], uniform: Callable[[int, Any], Any]) -> None:
        self.shape, self._uniform = shape, uniform

    def uniform(self, shape: tuple[int, ...], dtype: Any) -> Any:
        if tuple(shape) != self.shape:
            raise TypeError("other words than one for each element")
        bits = BITS[np.dtype(dtype).name]
        self.shape = None  # type: ignore[assignment]  # a second draw begins behind the first
        return self._uniform(bits, np.float64 if bits == 53 else np.float32)
