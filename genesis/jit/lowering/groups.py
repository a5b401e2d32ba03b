"""Parts that run together: over the same axes, each element once, so that what one gives the next reads in a register.

Axes are the same where one list can be cut into the other: (16, 128, 192) and (2048, 192) both are (16, 128, 192). A part
may read what another of its group gives where it reads just the element that is given in the same round, or the number
of the same row; where it reads another element, it has to wait until all are there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from genesis.jit.arguments import Var
from genesis.jit.lowering.beside import TOTALS, Sums, are_rows
from genesis.jit.lowering.parts import Give, Part, Position, Read

FEW = 1 << 14  # elements that one chunk may go through, where rows are too few for several
ROWS = 16  # rows from which several chunks are worth it
MOST = 48  # parts of a group
BESIDE = 128  # elements beside each other from which memory is read as fast as from one end to the other


def refined(a: Sequence[int], b: Sequence[int]) -> list[int] | None:
    """Axes that both can be cut into; None if there are none.

    >>> refined([16, 128, 192], [2048, 192]), refined([6, 4], [4, 6])
    ([16, 128, 192], None)
    """
    left, right, out = list(a), list(b), []
    while left and right:
        x, y = left.pop(), right.pop()
        small, large = min(x, y), max(x, y)
        if small == 0 or large % small:
            return None
        if large > small:
            (left if x > y else right).append(large // small)
        out.append(small)
    return None if left or right else out[::-1]


def cut(axes: Sequence[int], strides: Sequence[int], new: Sequence[int]) -> tuple[int, ...]:
    """The strides over axes that these were cut into.

    >>> cut([2048, 192], [192, 1], [16, 128, 192])
    (24576, 192, 1)
    """
    out, at = [], len(new)
    for n, stride in zip(reversed(axes), reversed(strides), strict=True):
        if n == 0:  # that is never cut
            at -= 1
            out.append(stride)
            continue
        done = 1
        while done < n:
            at -= 1
            out.append(stride * done)
            done *= new[at]
    return tuple(out[::-1])


def without_ones(part: Part) -> Part:
    """The part without axes of one round."""
    kept = [i for i, n in enumerate(part.axes) if n != 1]
    rows = None if part.rows is None else sum([i < part.rows for i in kept])
    return _with_axes(replace(part, rows=rows), [part.axes[i] for i in kept], lambda s: tuple([s[i] for i in kept]))


def _gives_elements(part: Part) -> bool:
    return part.rows is not None and any([any(g.strides[part.rows :]) for g in part.gives])


def _beside(part: Part, read: Read) -> int:
    """How many elements that a part reads lie beside each other, as far as they are rows, or columns."""
    count = 1
    steps = list(zip(part.axes, read.strides, strict=True))
    for side in (steps[: part.rows], steps[part.rows :]):
        run = 1
        for n, stride in sorted(side, key=lambda each: each[1]):
            run = run * n if stride == run else run
        count = max(count, run)
    return count


def _reordered(part: Part, order: Sequence[int]) -> Part:
    return _with_axes(part, [part.axes[d] for d in order], lambda s: tuple([s[d] for d in order]))


def _with_axes(part: Part, axes: Sequence[int], change) -> Part:  # type: ignore[no-untyped-def]
    reads = tuple([replace(r, strides=change(r.strides)) for r in part.reads])
    gives = tuple([replace(g, strides=change(g.strides)) for g in part.gives])
    return replace(part, axes=tuple(axes), reads=reads, gives=gives)


class Group:
    """Parts over the same axes; the first ``rows`` of them are rows, if any of the parts has columns.

    ``in_any_order``: parts without columns may be joined with parts whose rows are other axes than their first, if these
    give elements (a norm of channels), or numbers of what the others give (the gradient of a bias).
    """

    def __init__(self, part: Part, in_any_order: bool = False) -> None:
        self.axes, self.rows, self.parts, self.in_any_order = part.axes, part.rows, [part], in_any_order
        self.given = {g.var: g for g in part.gives}
        self.why = ""

    @property
    def size(self) -> int:
        return math.prod(self.axes)

    @property
    def beside(self) -> bool:
        """Whether sums of columns are beside its rows."""
        return any([part.beside for part in self.parts])

    @property
    def joins(self) -> bool:
        """Whether it joins totals of programs."""
        return any([isinstance(root, Sums) for root in self.roots])

    @property
    def roots(self) -> set[Var]:
        """What is read, also of what is given inside."""
        return {r.root for part in self.parts for r in part.reads}

    def takes(self, part: Part, before: Sequence[Part] = ()) -> str:
        """Take a part in, and those ``before`` that it needs and that need nothing; if that can't be, the reason."""
        if len(self.parts) + len(before) >= MOST:
            return "the kernel is large"
        as_it_was = self.axes, self.rows, self.parts, self.given
        why = next((why for each in before if (why := self._taken(each, alone=True))), "") or self._taken(part)
        if why:
            self.axes, self.rows, self.parts, self.given = as_it_was
        return why

    def _taken(self, part: Part, alone: bool = False) -> str:
        why = self._taken_so(part, alone)
        if not why or not self.in_any_order or (self.rows is None) == (part.rows is None):
            return why
        if not any([_gives_elements(p) for p in (*self.parts, part)]) and not self._sums_neighbours(part):
            return why
        order = self._order_in(part)
        if order is None:
            return why
        if part.rows is None:
            return why if self._taken_so(_reordered(part, order), alone) else ""
        before = self.axes, self.parts, self.given
        back = sorted(range(len(order)), key=order.__getitem__)
        self.parts = [_reordered(p, back) for p in self.parts]
        self.axes, self.given = self.parts[0].axes, {g.var: g for p in self.parts for g in p.gives}
        if self._taken_so(part, alone):
            self.axes, self.parts, self.given = before
            return why
        return ""

    def _sums_neighbours(self, part: Part) -> bool:
        """Whether a part gives numbers of rows of what the group gives, of which many elements beside each other are rows, or
        columns: then going through them in the order of rows takes as long, and they are not read again.
        """
        own = [read for read in part.reads if read.root in self.given]
        few = self.size <= FEW
        return part.rows is not None and bool(own) and (few or all([_beside(part, read) >= BESIDE for read in own]))

    def _order_in(self, part: Part) -> list[int] | None:
        """Which axis of a part each of the group's is, as what it reads of the group says."""
        for read in part.reads:
            own = self.given.get(read.root)
            if own is not None and sorted(part.axes) == sorted(self.axes):
                mine, theirs = [
                    list(zip(*each, strict=True)) for each in ((self.axes, own.strides), (part.axes, read.strides))
                ]
                known = 0 not in own.strides and len(set(mine)) == len(mine) and set(mine) == set(theirs)
                return [theirs.index(each) for each in mine] if known else None
        return None

    def _taken_so(self, part: Part, alone: bool) -> str:
        for axes, rows, fitted in self._fits(part):
            mine = [_cut_part(p, axes, self.rows) for p in self.parts]
            given = {g.var: g for p in mine for g in p.gives}
            why = self._refused(axes, rows, fitted, given, alone)
            why = why or self._refused_beside(axes, rows, [*mine, fitted])
            if not why:
                self.axes, self.rows, self.parts, self.given = tuple(axes), rows, [*mine, fitted], given
                self.given.update({g.var: g for g in fitted.gives})
                return ""
            return why
        return "it goes over other axes"

    def _fits(self, part: Part) -> Iterable[tuple[list[int], int | None, Part]]:
        """The axes that both are cut into, how many are rows, and the part over these axes."""
        size = math.prod(part.axes)
        if size == self.size:
            axes = refined(self.axes, part.axes)
            if axes is None:
                return
            borders = {_border(axes, p.axes, p.rows) for p in (self, part) if p.rows is not None}
            if len(borders) <= 1:
                yield axes, next(iter(borders), None), _cut_part(part, axes, part.rows)
        elif self.rows is not None and part.rows is None and size == math.prod(self.axes[: self.rows]):
            axes = refined(self.axes[: self.rows], part.axes)
            if axes is not None:
                columns = self.axes[self.rows :]
                whole = [*axes, *columns]
                zeros = (0,) * len(columns)
                yield whole, len(axes), _with_axes(part, whole, lambda s: (*cut(part.axes, s, axes), *zeros))

    def _refused(self, axes: Sequence[int], rows: int | None, part: Part, given: dict[Var, Give], alone: bool) -> str:
        shared = alone
        for read in part.reads:
            own = given.get(read.root)
            if own is not None and read.index is not None:
                return "it reads elements that an index says"
            if own is None:
                shared |= not isinstance(read.root, Position) and read.root in self.roots and math.prod(part.axes) > 1
                shared |= isinstance(read.root, Sums) and self.joins
            elif not own.whole or (own.offset, own.strides) != (read.offset, read.strides):
                return "it reads other elements than those of the same round"
            else:
                shared = True
        if any([g.var in given for g in part.gives]):
            return "it stores to what the other stores to"
        if not shared:
            return "nothing is shared"
        if rows is not None and math.prod(axes) > FEW and math.prod(axes[:rows]) < ROWS:
            return "there are few rows"
        return ""

    def _refused_beside(self, axes: Sequence[int], rows: int | None, parts: Sequence[Part]) -> str:
        """Why parts cannot be together where sums of columns are beside rows."""
        sums = {give.var for part in parts if part.beside for give in part.gives}
        if not sums:
            return ""
        if not any([part.rows is not None and not part.beside for part in parts]):
            return "nothing goes row by row"
        if any([read.root in sums for part in parts for read in part.reads]):
            return "it reads sums of all rows"
        if len(sums) * math.prod(axes[rows:]) > TOTALS:
            return "there are many sums of columns"
        inside = {give.var for part in parts for give in part.gives}
        strides = [r.strides for part in parts for r in part.reads if r.root not in inside]
        strides += [give.strides for part in parts for give in part.gives]
        return "" if rows and are_rows(axes, rows, strides) else "sums of columns are beside its rows"


def _border(axes: Sequence[int], own: Sequence[int], rows: int) -> int:
    """How many of the finer axes are rows."""
    columns, at = math.prod(own[rows:]), len(axes)
    done = 1
    while done < columns:
        at -= 1
        done *= axes[at]
    return at


def _cut_part(part: Part, axes: Sequence[int], rows: int | None) -> Part:
    if list(part.axes) == list(axes):
        return part
    return _with_axes(part, axes, lambda s: cut(part.axes, s, axes))


def of_one(group: Group) -> Group:
    """A group without axes as a loop of one round: told how long it is, it is one launch with others like it."""
    parts = [_with_axes(part, (1,), lambda _: (1,)) for part in group.parts]
    made = Group(parts[0], group.in_any_order)
    made.parts, made.given, made.why = parts, {give.var: give for part in parts for give in part.gives}, group.why
    return made
