"""LLVM code for where the few largest, or smallest, numbers of rows of float32 are, in order, equal ones by position; nan is
the largest.

The best so far are a sorted list in one vector, and most numbers are no better than its last: as many as a vector has are
looked at in one comparison. Numbers are compared as integers of the same order, in which -0 is 0.
"""

from __future__ import annotations

from genesis.kernels.llvm.nests import Code, declarations

POINTERS, SIZES = ("x", "out"), ("first", "last", "length", "k")
MOST = 16  # numbers of a list
LENGTH = 2**31  # of rows: positions are integers of 32 bits
_NAN, _LEAST = 0x7FC00000, -(2**31)  # above the integer of inf, and below all
_LIST = f"<{MOST} x i32>"


def of_rows(lanes: int, largest: bool) -> str:
    """The function ``positions``: of ``k`` numbers of each row."""
    code = _List(lanes, largest)
    with code.loop("%first", "%last", "1") as row:
        x = code.at("%x", code.times(row.index, "%length"))
        code.begin()
        whole = code.put(f"and i64 %length, -{lanes}")
        with code.loop("0", whole, str(lanes)) as step:
            better = code.better(code.load(x, step.index))
            count = code.put(f"call i64 @llvm.ctpop.i64(i64 {better})")
            with code.loop("0", count, "1", [better], "i64") as each:
                lane = code.put(f"call i64 @llvm.cttz.i64(i64 {each.values[0]}, i1 true)")
                code.insert(x, code.add(step.index, lane))
                each.next = [code.put(f"and i64 {each.values[0]}, {code.add(each.values[0], '-1')}")]
        with code.loop(whole, "%length", "1") as rest:
            code.insert(x, rest.index)
        code.give(code.at("%out", code.times(row.index, "%k"), "i64"))
    heads = "declare i64 @llvm.ctpop.i64(i64)\ndeclare i64 @llvm.cttz.i64(i64, i1)"
    return "\n".join([declarations(lanes), heads, code.definition("positions", POINTERS, SIZES)])


class _List(Code):
    """The best numbers so far, the best first, and their positions."""

    def __init__(self, lanes: int, largest: bool) -> None:
        super().__init__(lanes)
        self.largest = largest
        self.best, self.positions = (self.put(f"alloca {_LIST}, align 64") for _ in range(2))
        self.last = self.at(self.best, self.add("%k", "-1"), "i32")

    def begin(self) -> None:
        self._put(_everywhere(_LEAST, MOST), self.best)

    def better(self, x: str) -> str:
        """The lanes of a vector with what is better than the last of ``k``, as bits."""
        last = self._spread(self.put(f"load i32, ptr {self.last}, align 4"), self.lanes)
        above = self.put(f"icmp sgt <{self.lanes} x i32> {self._ordered(x, self.lanes)}, {last}")
        bits = self.put(f"bitcast <{self.lanes} x i1> {above} to i{self.lanes}")
        return self.put(f"zext i{self.lanes} {bits} to i64")

    def insert(self, x: str, position: str) -> None:
        """A number goes behind those that are not worse, and those that are move on."""
        number = self.put(f"load <1 x float>, ptr {self.at(x, position)}, align 4")
        own = self.put(f"extractelement <1 x i32> {self._ordered(number, 1)}, i32 0")
        own = self._spread(own, MOST)
        best = self._take(self.best)
        stays = self.put(f"sext <{MOST} x i1> {self.put(f'icmp sge {_LIST} {best}, {own}')} to {_LIST}")
        before = self.put(f"icmp sge {_LIST} {self._moved(best)}, {own}")  # whether the one before stays
        here = self._spread(self.put(f"trunc i64 {position} to i32"), MOST)
        for array, new in ((self.best, own), (self.positions, here)):
            old = self._take(array)
            moved = self.put(f"select <{MOST} x i1> {before}, {_LIST} {new}, {_LIST} {self._moved(old)}")
            # as bits: LLVM makes masked stores of a select, which take long on some processors
            other = self.put(f"and {_LIST} {stays}, {self.put(f'xor {_LIST} {old}, {moved}')}")
            self._put(self.put(f"xor {_LIST} {moved}, {other}"), array)

    def give(self, out: str) -> None:
        with self.loop("0", "%k", "1") as j:
            number = self.put(f"load i32, ptr {self.at(self.positions, j.index, 'i32')}, align 4")
            wide = self.put(f"zext i32 {number} to i64")
            self.lines.append(f"  store i64 {wide}, ptr {self.at(out, j.index, 'i64')}, align 8")

    def _moved(self, values: str) -> str:
        """Integers of the list one lane on, behind the largest there is."""
        order = ", ".join([f"i32 {i}" for i in (MOST, *range(MOST - 1))])
        most = _everywhere(-_LEAST - 1, MOST)
        return self.put(f"shufflevector {_LIST} {values}, {_LIST} {most}, <{MOST} x i32> <{order}>")

    def _ordered(self, x: str, count: int) -> str:
        """Numbers as integers of the same order, the best the largest."""
        kind, integers = f"<{count} x float>", f"<{count} x i32>"
        is_nan = self.put(f"fcmp uno {kind} {x}, {x}")
        zeros = f"<{', '.join(['float 0.0'] * count)}>"
        bits = self.put(f"bitcast {kind} {self.put(f'fadd {kind} {x}, {zeros}')} to {integers}")
        sign = self.put(f"ashr {integers} {bits}, {_everywhere(31, count)}")
        others = self.put(f"and {integers} {sign}, {_everywhere(0x7FFFFFFF, count)}")
        number = self.put(f"xor {integers} {bits}, {others}")
        number = self.put(f"select <{count} x i1> {is_nan}, {integers} {_everywhere(_NAN, count)}, {integers} {number}")
        return number if self.largest else self.put(f"xor {integers} {number}, {_everywhere(-1, count)}")

    def _spread(self, integer: str, count: int) -> str:
        kind = f"<{count} x i32>"
        first = self.put(f"insertelement {kind} poison, i32 {integer}, i32 0")
        return self.put(f"shufflevector {kind} {first}, {kind} poison, <{count} x i32> zeroinitializer")

    def _take(self, array: str) -> str:
        return self.put(f"load {_LIST}, ptr {array}, align 64")

    def _put(self, values: str, array: str) -> None:
        self.lines.append(f"  store {_LIST} {values}, ptr {array}, align 64")


def _everywhere(integer: int, count: int) -> str:
    return f"<{', '.join([f'i32 {integer}'] * count)}>"
