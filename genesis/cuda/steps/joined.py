"""Gradients of attention that are joined, as those of a projection to queries, keys and values are: they are written to
their parts of the joined array, and nothing is copied.

    gq, gk, gv = backward(g, ...)   views of each   c = cat(views)        is        c = backward(g, ...) in parts of c
"""

from __future__ import annotations

from collections.abc import Sequence

from genesis.arrays.spec import contiguous_strides
from genesis.core.call.strides import reshaped
from genesis.cuda.kernels.attention import BACK, JOINED
from genesis.jit.arguments import Var
from genesis.jit.lowering.halves import used
from genesis.jit.program import Call, Program

Strides = tuple[int, ...]
RESHAPES = "reshape", "view_shape"
VIEWS = {*RESHAPES, "permute", "transpose"}


def joined(program: Program) -> Program:
    """The program, with such gradients."""
    joining = _Joining(program)
    instead = {id(call): other for call in program.calls if call.op == BACK and (other := joining.of(call)) is not None}
    if not instead:
        return program
    made = {call.outs[0] for call in instead.values()}
    calls = [instead.get(id(call), call) for call in program.calls if call.outs[0] not in made]
    return program.with_calls(used(calls, program))


class _Joining:
    def __init__(self, program: Program) -> None:
        self.regions, self.ends = program.regions, set(program.ends)
        self.readers: dict[Var, list[Call]] = {}
        for call in program.calls:
            for var in dict.fromkeys(call.inputs):
                self.readers.setdefault(var, []).append(call)

    def of(self, call: Call) -> Call | None:
        """The call that gives the joined array; None if the gradients are not joined, or read by others."""
        ways = [self._way(out) for out in call.outs]
        ends = [self._end(out, way) for out, way in zip(call.outs, ways, strict=True)]
        join = self._reader(ends[0])
        if len(ends) != 3 or join is None or join.op != "cat" or list(join.args[0]) != ends:
            return None
        if any([self._reader(end) is not join for end in ends]):
            return None
        dim = join.args[1] % len(join.outs[0].spec.shape)
        sizes = [piece.spec.shape[dim] for piece in ends]
        for behind in (self._way(join.outs[0], copies=True), []):
            whole = self._end(join.outs[0], behind)
            if whole.spec.strides is not None or whole.spec.dtype != call.outs[0].spec.dtype:
                continue
            pairs = zip(_pieces(join.outs[0], sizes, dim, behind), ways, strict=False)
            parts = tuple([(begin, _back(way, laid)) for (begin, laid), way in pairs])
            if parts and all([part is not None and part[-1] == 1 and min(part) > 0 for _, part in parts]):
                return Call(JOINED, (*call.args, tuple(whole.spec.shape), parts), (whole,), call.site)
        return None

    def _reader(self, value: Var) -> Call | None:
        """What alone reads a value."""
        (reader, *others) = self.readers.get(value) or (None,)
        return None if others or value in self.ends else reader

    def _way(self, value: Var, copies: bool = False) -> list[Call]:
        """The views that lie between a value and what is done with it, and behind them a reshape that copies."""
        way: list[Call] = []
        while (call := self._reader(self._end(value, way))) is not None and call.op in VIEWS:
            if call.outs[0] not in self.regions:
                return [*way, call] if copies and call.op in RESHAPES else way
            way.append(call)
        return way if not copies else []

    def _end(self, value: Var, way: Sequence[Call]) -> Var:
        return way[-1].outs[0] if way else value


def _pieces(value: Var, sizes: list[int], dim: int, way: Sequence[Call]) -> list[tuple[int, Strides]]:
    """Where the pieces of a joined value begin, and their strides, if what its views at the end of the way are of has no
    gaps; none where they have no strides.
    """
    shape, count = value.spec.shape, len(sizes)
    if len({*sizes}) > 1:
        laid = _laid(value, way, shape)
        return [] if laid is None else [(sum(sizes[:i]) * laid[dim], laid) for i in range(count)]
    laid = _laid(value, way, (*shape[:dim], count, sizes[0], *shape[dim + 1 :]))  # which need not lie as one dimension
    return [] if laid is None else [(i * laid[dim], (*laid[:dim], *laid[dim + 1 :])) for i in range(count)]


def _laid(value: Var, way: Sequence[Call], shape: tuple[int, ...]) -> Strides | None:
    """The strides of a value in another shape, if what is at the end of the way has no gaps."""
    end = way[-1].outs[0] if way else value
    if way and way[0].op in RESHAPES:
        value, way = way[0].outs[0], way[1:]
    laid = _back(way, contiguous_strides(end.spec.shape))
    return None if laid is None else reshaped(value.spec.shape, laid, shape)


def _back(way: Sequence[Call], strides: Strides) -> Strides | None:
    """The strides of a value whose views, at the end of the way, have these."""
    laid: Strides | None = strides
    for call in reversed(way):
        assert laid is not None
        source, *args = call.args
        if call.op in RESHAPES:
            laid = reshaped(call.outs[0].spec.shape, laid, source.spec.shape)
        else:
            order = list(args[0]) if call.op == "permute" else _turned(list(range(len(laid))), *args)
            laid = tuple([laid[order.index(d)] for d in range(len(order))])
        if laid is None:
            return None
    return laid


def _turned(order: list[int], first: int, second: int) -> list[int]:
    order[first], order[second] = order[second], order[first]
    return order
