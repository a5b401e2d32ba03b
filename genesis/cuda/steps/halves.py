"""16-bit floats stay so in memory. Rules of gradients get them as float32, and what comes out is rounded; here

    x' = convert(x)   y' = convert(y)   c' = matmul(x', y')   c = convert(c')        is        c = matmul(x, y)

Sums are in float32 either way, so the numbers are the same; a GPU multiplies 16 bits by instructions for that, ten times as
many in a second as of float32, and of half the bytes. So it is for convolutions and their gradients. And what is widened for loops is no float32 memory that others
wrote: loops read 16 bits as well (`genesis.cuda.steps.regions`).
"""

from __future__ import annotations

from genesis.arrays.spec import strides_of
from genesis.core.call.halves import F32, HALVES
from genesis.cuda.kernels import convolution, products
from genesis.cuda.kernels.losses import IN_PROGRAMS, OF_HALVES
from genesis.cuda.steps.lowered import MOVED, in_loops
from genesis.jit.arguments import Var
from genesis.jit.lowering.halves import VIEWS, used, viewed
from genesis.jit.program import Call, Program

OPS = {*products.OPS, *convolution.KERNELS}


def _steps(value: Var) -> list[int]:
    """The strides of dimensions of more than one element: those of others say nothing."""
    return [s for n, s in zip(value.spec.shape, strides_of(value.spec), strict=True) if n > 1]


def narrowed(program: Program) -> Program:
    """The program, with such products."""
    narrowing = _Narrowing(program)
    for call in program.calls:
        narrowing.add(call)
    return program.with_calls(used(narrowing.calls, program)) if narrowing.changed else program


class _Narrowing:
    def __init__(self, program: Program) -> None:
        self.calls: list[Call] = []
        self.changed = False
        self.ends = set(program.ends)
        self.made = {call.outs[0]: call for call in program.calls}
        self.short: dict[Var, Var] = {}  # the 16-bit values behind views of widened ones
        self.readers: dict[Var, list[Call]] = {}
        for call in program.calls:
            for var in dict.fromkeys(call.inputs):
                self.readers.setdefault(var, []).append(call)
        self.done: set[Var] = set()  # what a product gives by now, in the place of a conversion

    def add(self, call: Call) -> None:
        """One more call, as it is or as another."""
        if call.outs[0] in self.done:
            return
        if call.op == IN_PROGRAMS and (logits := self._short(call.args[0])) is not None:
            self.changed = True
            self.calls.append(Call(OF_HALVES, (logits, *call.args[1:]), call.outs, call.site))
            return
        if call.op == f"{IN_PROGRAMS}.backward" and self._narrow_gradient(call):
            return
        rounded = self._rounded(call) if call.op in OPS and len(call.inputs) == 2 else None
        operands = [self._short(x) for x in call.args[:2]] if rounded is not None else []
        kinds = {x.spec.dtype for x in operands if x is not None}
        if rounded is None or None in operands or kinds != {rounded.spec.dtype}:
            self.calls.append(self._widening_itself(call))
            return
        self.changed = True
        self.done.add(rounded)
        self.calls.append(Call(call.op, (*operands, *call.args[2:]), (rounded,), call.site))

    def _narrow_gradient(self, call: Call) -> bool:
        """The gradient of logits that were widened, if all that is done with it is that it is rounded."""
        g, (logits, *kept), wanted = call.args
        rounded, short = self._rounded(call), self._short(logits)
        if rounded is None or short is None or rounded.spec.dtype != short.spec.dtype:
            return False
        self.changed = True
        self.done.add(rounded)
        ((shape, _), *others) = wanted
        args = g, (short, *kept), ((shape, short.spec.dtype), *others)
        self.calls.append(Call(call.op, args, (rounded,), call.site))
        return True

    def _widening_itself(self, call: Call) -> Call:
        """A call of loops with conversions of its own."""
        if call.op in MOVED or not in_loops(call):
            return call
        own = {x: Var(x.spec) for x in call.inputs if self._source(x) is not None and self._is_shared(x)}
        for x, wide in own.items():
            self.calls.append(Call("convert", (self._source(x), F32), (wide,), call.site))
        self.changed |= bool(own)
        return call.renamed(lambda x: own.get(x, x)) if own else call

    def _is_shared(self, value: Var) -> bool:
        """Whether something else than loops reads it, too."""
        return value in self.ends or not all([in_loops(reader) for reader in self.readers[value]])

    def _source(self, value: Var) -> Var | None:
        """The 16-bit value that a float32 one is."""
        call = self.made.get(value)
        widens = call is not None and call.op == "convert" and value.spec.dtype == F32
        return call.args[0] if widens and call.args[0].spec.dtype in HALVES else None  # type: ignore[union-attr]

    def _rounded(self, call: Call) -> Var | None:
        """The 16-bit value that a result becomes, if that is all that is done with it."""
        out = call.outs[0]
        if out.spec.dtype != F32 or out in self.ends:
            return None
        (reader, *others) = self.readers.get(out, [call])
        rounded = reader.outs[0]
        alone = not others and reader.op == "convert" and rounded.spec.dtype in HALVES
        return rounded if alone and _steps(rounded) == _steps(out) else None

    def _short(self, value: Var) -> Var | None:
        """The 16-bit value that one was widened from, also behind views; None if it was not."""
        call = self.made.get(value)
        if value in self.short or call is None:
            return self.short.get(value)
        if call.op == "convert":
            return self._source(value)
        if call.op not in VIEWS or (source := self._short(call.args[0])) is None:
            return None
        self.calls.append(again := viewed(call, source))
        self.short[value] = again.outs[0]
        return again.outs[0]
