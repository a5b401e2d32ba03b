"""LLVM code for images (examples, channels, height, width) of float32 numbers that are read at any points, between their
elements ("bilinear") or at the nearest one: a vector of points at a time.

The points of an example are blocks of a vector; the last block has some points of the one before again, which get the
same results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from genesis.kernels.llvm.nests import Code

SIZES = ("first", "last", "points", "blocks", "channels", "height", "width")
FORWARD = ("x", "grid", "out")
GRID = ("g", "x", "grid", "ggrid")
INPUT = ("g", "grid", "gx")


@dataclass(frozen=True)
class Element:
    """An element of the image for each point."""

    offset: str  # in the image, 0 where it is outside
    inside: str


@dataclass(frozen=True)
class Corner(Element):
    """One of the four elements around each point."""

    weight: str
    across: str  # how the weight changes with the column,
    down: str  # and with the row


def forward(lanes: int, mode: str, border: str, corners: bool) -> str:
    """The function ``forward``: all channels of blocks of points from ``first`` to ``last``, which go on through the
    examples.
    """
    code = _Points(lanes, border, corners)
    with code.loop("%first", "%last", "1") as block:
        example, start = code.begin(block.index)
        at = code.add(code.times(example, "%points"), start)
        read = code.nearest(at) if mode == "nearest" else code.around(at)[0]
        with code.loop("0", "%channels", "1") as channel:
            plane = code.plane(example, channel.index)
            image = code.image("%x", plane)
            code.store(code.read(image, read), "%out", code.add(code.times(plane, "%points"), start))
    return code.function("forward", FORWARD, SIZES)


def grid_gradient(lanes: int, mode: str, border: str, corners: bool) -> str:
    """The function ``grid_gradient``: of the points of blocks from ``first`` to ``last``, for "bilinear"."""
    code = _Points(lanes, border, corners)
    with code.loop("%first", "%last", "1") as block:
        example, start = code.begin(block.index)
        at = code.add(code.times(example, "%points"), start)
        around, slopes = code.around(at)
        none = code.constant(0.0)
        with code.loop("0", "%channels", "1", [none, none]) as channel:
            plane = code.plane(example, channel.index)
            image, g = code.image("%x", plane), code.load("%g", code.add(code.times(plane, "%points"), start))
            sums = [none, none]
            for corner in around:
                element = code.gather(image, corner)
                changes = (corner.across, corner.down)
                sums = [code.plus(s, code.mul(element, c)) for s, c in zip(sums, changes, strict=True)]
            channel.next = [code.plus(t, code.mul(s, g)) for t, s in zip(channel.values, sums, strict=True)]
        across, down = (code.mul(t, slope) for t, slope in zip(channel.values, slopes, strict=True))
        pairs = [f"i32 {i}" for lane in range(lanes) for i in (lane, lane + lanes)]
        for half in (0, 1):
            order = ", ".join(pairs[half * lanes : (half + 1) * lanes])
            mixed = code.put(f"shufflevector {code.vector} {across}, {code.vector} {down}, <{lanes} x i32> <{order}>")
            code.store(mixed, "%ggrid", code.add(code.times(at, "2"), str(half * lanes)))
    return code.function("grid_gradient", GRID, SIZES)


def input_gradient(lanes: int, mode: str, border: str, corners: bool) -> str:
    """The function ``input_gradient``: what comes back to each element of examples from ``first`` to ``last`` is added to
    what is there, point by point.
    """
    code = _Points(lanes, border, corners)
    with (
        code.loop("%first", "%last", "1") as example,
        code.loop("0", "%blocks", "1") as block,
    ):
        start, new = code.start(block.index)
        at = code.add(code.times(example.index, "%points"), start)
        written = code.nearest(at) if mode == "nearest" else code.around(at)[0]
        with code.loop("0", "%channels", "1") as channel:
            plane = code.plane(example.index, channel.index)
            image, g = code.image("%gx", plane), code.load("%g", code.add(code.times(plane, "%points"), start))
            for corner in written:
                counted = code.put(f"and <{lanes} x i1> {corner.inside}, {new}")
                part = code.mul(g, corner.weight) if isinstance(corner, Corner) else g
                part = code.put(f"select <{lanes} x i1> {counted}, {code.vector} {part}, {code.vector} zeroinitializer")
                for lane in range(lanes):
                    one = code.put(f"extractelement {code.numbers} {corner.offset}, i32 {lane}")
                    at = code.at(image, code.put(f"sext i32 {one} to i64"))
                    value = code.put(f"extractelement {code.vector} {part}, i32 {lane}")
                    total = code.put(f"fadd float {code.put(f'load float, ptr {at}, align 4')}, {value}")
                    code.lines.append(f"  store float {total}, ptr {at}, align 4")
    return code.function("input_gradient", INPUT, SIZES)


class _Points(Code):
    """Code that finds out where points are."""

    def __init__(self, lanes: int, border: str, corners: bool) -> None:
        super().__init__(lanes)
        self.border, self.corners = border, corners
        self.size = self.times("%height", "%width")
        self.end = self.put(f"sub i64 %points, {lanes}")
        self.ids = "<" + ", ".join(f"i64 {i}" for i in range(lanes)) + ">"

    # ---- where things are in memory

    def begin(self, block: str) -> tuple[str, str]:
        """The example of a block, and its first point."""
        example = self.put(f"sdiv i64 {block}, %blocks")
        return example, self.start(self.put(f"srem i64 {block}, %blocks"))[0]

    def start(self, block: str) -> tuple[str, str]:
        """The first point of a block of an example, and which of its points no block before has."""
        wanted = self.times(block, str(self.lanes))
        start, kind = self.least(wanted, self.end), f"<{self.lanes} x i64>"
        first = self.put(f"insertelement {kind} poison, i64 {self.put(f'sub i64 {wanted}, {start}')}, i32 0")
        again = self.put(f"shufflevector {kind} {first}, {kind} poison, <{self.lanes} x i32> zeroinitializer")
        return start, self.put(f"icmp sge {kind} {self.ids}, {again}")

    def plane(self, example: str, channel: str) -> str:
        return self.add(self.times(example, "%channels"), channel)

    def image(self, base: str, plane: str) -> str:
        return self.at(base, self.times(plane, self.size))

    def read(self, image: str, elements: Sequence[Element]) -> str:
        """The sum of corners by their weights, or an element as it is."""
        total = self.constant(0.0)
        for each in elements:
            if not isinstance(each, Corner):
                return self.gather(image, each)
            total = self.plus(total, self.mul(self.gather(image, each), each.weight))
        return total

    def gather(self, image: str, corner: Element) -> str:
        """An element for each point, 0 outside."""
        lanes = self.lanes
        addresses = self.put(f"getelementptr float, ptr {image}, {self.numbers} {corner.offset}")
        given = f"<{lanes} x ptr> {addresses}, i32 4, <{lanes} x i1> {corner.inside}, {self.vector} zeroinitializer"
        return self.put(f"call {self.vector} @llvm.masked.gather.v{lanes}f32.v{lanes}p0({given})")

    # ---- points

    def axes(self, at: str) -> list[tuple[str, str]]:
        """The numbers of the grid for a vector of points, across and down, and the sizes of the image there."""
        begin = self.times(at, "2")
        low, high = self.load("%grid", begin), self.load("%grid", self.add(begin, str(self.lanes)))
        return [(self.every_other(low, high, i), n) for i, n in ((0, "%width"), (1, "%height"))]

    def nearest(self, at: str) -> list[Element]:
        """The elements nearest to a vector of points; of two as near the one with an even index."""
        elements = []
        for g, n in self.axes(at):
            position, _, last = self.position(g, n)
            elements.append(self.element(self.call("rint", position), last))
        (x, fits_x), (y, fits_y) = elements
        return [Element(self.offset(y, x), self.put(f"and <{self.lanes} x i1> {fits_x}, {fits_y}"))]

    def offset(self, row: str, column: str) -> str:
        before = self.put(f"mul {self.numbers} {row}, {self.whole('%width')}")
        return self.put(f"add {self.numbers} {before}, {column}")

    def around(self, at: str) -> tuple[list[Corner], list[str]]:
        """The corners of a vector of points, and how much the column and the row change with the numbers of the grid."""
        columns, rows = (self.axis(g, n) for g, n in self.axes(at))
        corners = []
        for down in (0, 1):
            for across in (0, 1):
                (x, fits_x, share_x, sign_x), (y, fits_y, share_y, sign_y) = columns[0][across], rows[0][down]
                inside = self.put(f"and <{self.lanes} x i1> {fits_x}, {fits_y}")
                weight = self.mul(share_y, share_x)
                changes = self.mul(share_y, sign_x), self.mul(share_x, sign_y)
                corners.append(Corner(self.offset(y, x), inside, weight, *changes))
        return corners, [columns[1], rows[1]]

    def every_other(self, low: str, high: str, first: int) -> str:
        order = ", ".join(f"i32 {i}" for i in range(first, 2 * self.lanes, 2))
        return self.put(f"shufflevector {self.vector} {low}, {self.vector} {high}, <{self.lanes} x i32> <{order}>")

    def whole(self, n: str) -> str:
        """An integer in all lanes."""
        first = self.put(f"insertelement {self.numbers} poison, i32 {self.put(f'trunc i64 {n} to i32')}, i32 0")
        return self.put(
            f"shufflevector {self.numbers} {first}, {self.numbers} poison, <{self.lanes} x i32> zeroinitializer"
        )

    def axis(self, g: str, n: str) -> tuple[list[tuple[str, str, str, str]], str]:
        """Along one dimension, of the neighbours on both sides: which it is, whether it is inside, its share, and the
        sign by which that changes; and the slope of the position.
        """
        at, slope, last = self.position(g, n)
        one, low = self.constant(1.0), self.call("floor", at)
        above = self.plus(low, one)
        sides = [(low, self.minus(above, at), self.constant(-1.0)), (above, self.minus(at, low), one)]
        return [(*self.element(where, last), share, sign) for where, share, sign in sides], slope

    def position(self, g: str, n: str) -> tuple[str, str, str]:
        """Where numbers of the grid are among so many elements, how that changes with them, and the last position."""
        one, size = self.constant(1.0), self.put(f"sitofp {self.numbers} {self.whole(n)} to {self.vector}")
        last = self.minus(size, one)
        if self.corners:
            slope = self.mul(last, self.constant(0.5))
            at = self.mul(self.plus(g, one), slope)
        else:
            slope = self.mul(size, self.constant(0.5))
            at = self.mul(self.minus(self.mul(self.plus(g, one), size), one), self.constant(0.5))
        return *self.bordered(at, slope, size, last), last

    def element(self, at: str, last: str) -> tuple[str, str]:
        """A whole position as an integer, 0 outside, and whether it is inside."""
        zero, kind = self.constant(0.0), f"<{self.lanes} x i1>"
        above = self.put(f"fcmp oge {self.vector} {at}, {zero}")
        fits = self.put(f"and {kind} {above}, {self.put(f'fcmp ole {self.vector} {at}, {last}')}")
        safe = self.put(f"select {kind} {fits}, {self.vector} {at}, {self.vector} {zero}")
        return self.put(f"fptosi {self.vector} {safe} to {self.numbers}"), fits

    def bordered(self, at: str, slope: str, size: str, last: str) -> tuple[str, str]:
        """Positions within the image by the rule of the border; at the border itself the slope is zero."""
        if self.border == "zeros":
            return at, slope
        zero = self.constant(0.0)
        if self.border == "reflection":
            at, slope = self.reflected(at, slope, size, last)
        within = self.put(
            f"and <{self.lanes} x i1> {self.put(f'fcmp ogt {self.vector} {at}, {zero}')}, "
            f"{self.put(f'fcmp olt {self.vector} {at}, {last}')}"
        )
        clipped = self.where("olt", at, zero, zero, self.where("ogt", at, last, last, at))
        kind = f"select <{self.lanes} x i1> {within}, {self.vector}"
        return self.put(f"{kind} {at}, {self.vector} {clipped}"), self.put(f"{kind} {slope}, {self.vector} {zero}")

    def reflected(self, at: str, slope: str, size: str, last: str) -> tuple[str, str]:
        """As between two mirrors: at the middles of the first and last elements, or at their outer edges."""
        zero, half = self.constant(0.0), self.constant(0.5)
        low, high = (zero, last) if self.corners else (self.constant(-0.5), self.minus(size, half))
        span = self.minus(high, low)
        away = self.minus(at, low)
        distance = self.call("fabs", away)
        turns = self.call("floor", self.two("fdiv", distance, span))
        rest = self.minus(distance, self.mul(turns, span))
        pairs = self.mul(self.call("floor", self.mul(turns, half)), self.constant(2.0))
        forth, back = self.plus(rest, low), self.minus(high, rest)
        turned = self.where("oeq", turns, pairs, forth, back)
        down = self.put(f"fneg {self.vector} {slope}")
        signed = self.where("olt", away, zero, down, self.where("oeq", away, zero, zero, slope))
        changed = self.where("oeq", turns, pairs, signed, self.put(f"fneg {self.vector} {signed}"))
        only = self.put(f"fcmp oeq {self.vector} {span}, {zero}")  # one element: there is nowhere to go
        kind = f"select <{self.lanes} x i1> {only}, {self.vector}"
        return (
            self.put(f"{kind} {self.mul(at, zero)}, {self.vector} {turned}"),
            self.put(f"{kind} {zero}, {self.vector} {changed}"),
        )
