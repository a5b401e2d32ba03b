"""LLVM code for products of float32 matrices.

The second matrix is packed first: panels of as many columns as a few vectors have, row after row, so that it is read in
the order of its memory, and the columns beyond its last are whatever is there. Of the first a number at a time is read,
where it is. A tile of the result, some rows times some vectors, stays in registers while `CHUNK` terms are added.

With AVX2 more is copied, to where those terms of a block are near: rows of the first matrix that lie in columns, and panels
of a second one that is not packed, for it meets few rows. What comes after is asked for while a panel is multiplied.
"""

from __future__ import annotations

from genesis.kernels.llvm.nests import ALIGNED, ALIGNMENT, Code, declarations

CHUNK = 128  # terms of a sum that are added before they are added to the rest: fewer digits are lost
COPYING = 8  # lanes of vectors with which operands are copied: it was measured with AVX2
AHEAD = 8  # terms by which rows are asked for before they are copied
SEVERAL = 6  # tiles from which a panel that is not packed is copied
LINE = 16  # numbers of a line of the cache
BLOCK = 24  # tiles of rows that meet all panels before the next: their numbers stay in the cache
LARGE = 48  # the same, where rows are copied
ASKED = 8  # lines of terms to come that are asked for with each of the first panels
PACK = ("b", "out"), ("n", "k", "step", "next")
MULTIPLY = (
    ("a", "b", "c", "spare", "bias"),
    ("first", "last", "m", "n", "k", "high", "wide", "row", "step", "line", "more"),
)


def module(lanes: int, rows: int, columns: int) -> str:
    """The functions ``pack`` and ``multiply``, for tiles of so many rows and vectors."""
    return "\n".join([declarations(lanes), pack(lanes, columns), multiply(lanes, rows, columns)])


def pack(lanes: int, columns: int, private: bool = False) -> str:
    """The function ``pack``: ``out[panel, i, j] = b[i * step + (panel * width + j) * next]``, for matrices of k times n
    numbers; ``j`` stops at the last column.
    """
    code = Code(lanes)
    width = str(lanes * columns)
    whole = code.put(f"sdiv i64 %n, {width}")
    panels = code.put(f"sdiv i64 {code.add('%n', str(lanes * columns - 1))}, {width}")
    beside = code.put("icmp eq i64 %next, 1")
    copied = code.put(f"select i1 {beside}, i64 {whole}, i64 0")
    along = code.put("icmp eq i64 %step, 1")
    turned = code.put(f"select i1 {along}, i64 {whole}, i64 {copied}")
    with code.loop("0", copied, "1") as panel:
        _copy(code, columns, panel.index, str(columns))
    with code.loop(copied, turned, "1") as panel:
        _turn(code, columns, panel.index, str(columns))
    few = _vectors_of_last(code, whole, columns)  # a last panel of whole vectors
    copied = code.put(f"select i1 {beside}, i64 {few}, i64 0")
    others = code.put(f"select i1 {along}, i64 {code.put(f'sub i64 {few}, {copied}')}, i64 0")
    with code.loop("0", _one_if(code, copied), "1"):
        _copy(code, columns, whole, copied)
    with code.loop("0", _one_if(code, others), "1"):
        _turn(code, columns, whole, others)
    last = _one_if(code, code.add(copied, others))
    with code.loop(turned, code.put(f"sub i64 {panels}, {last}"), "1") as panel:
        _collect(code, columns, panel.index, "0")
    return code.definition("pack", *PACK, private=private)


def _vectors_of_last(code: Code, whole: str, columns: int) -> str:
    """How many vectors there are behind the whole panels, if these are whole; else 0."""
    rest = code.put(f"sub i64 %n, {code.times(whole, str(code.lanes * columns))}")
    fits = code.put(f"icmp eq i64 {code.put(f'srem i64 {rest}, {code.lanes}')}, 0")
    return code.put(f"select i1 {fits}, i64 {code.put(f'sdiv i64 {rest}, {code.lanes}')}, i64 0")


def _one_if(code: Code, x: str) -> str:
    """1 if a number is positive, else 0: the rounds of a loop that there is for this."""
    return code.put(f"zext i1 {code.put(f'icmp sgt i64 {x}, 0')} to i64")


def _copy(code: Code, columns: int, panel: str, count: str) -> None:
    """Pack so many vectors of columns that are beside each other."""
    width = code.lanes * columns
    first = code.times(panel, str(width))
    begin = code.at("%out", code.times(first, "%k"))
    with code.loop("0", "%k", "1") as row:
        line = code.at("%b", code.add(code.times(row.index, "%step"), first))
        target = code.at(begin, code.times(row.index, str(width)))
        for v in range(columns if count == str(columns) else 0):
            code.store(code.load(line, str(v * code.lanes)), target, str(v * code.lanes))
        if count != str(columns):
            with code.loop("0", count, "1") as vector:
                at = code.times(vector.index, str(code.lanes))
                code.store(code.load(line, at), target, at)


def _turn(code: Code, columns: int, panel: str, count: str) -> None:
    """Pack so many vectors of columns that are lines of memory, squares of as many numbers as there are lanes at a time."""
    lanes, width = code.lanes, code.lanes * columns
    first = code.times(panel, str(width))
    begin = code.at("%out", code.times(first, "%k"))
    with code.loop("0", count, "1") as v:
        column = code.times(v.index, str(lanes))
        lines = [code.at("%b", code.times(code.add(first, code.add(column, str(j))), "%next")) for j in range(lanes)]
        with code.loop("0", "%k", str(lanes)) as row:
            target = code.at(begin, code.add(code.times(row.index, str(width)), column))
            for i, numbers in enumerate(code.turned([code.load(line, row.index) for line in lines])):
                code.store(numbers, target, str(i * width))
    done = code.put(f"sub i64 %k, {code.put(f'srem i64 %k, {lanes}')}")
    _collect(code, columns, panel, done)


def _collect(code: Code, columns: int, panel: str, start: str) -> None:
    """Pack any columns, from the row ``start`` on."""
    lanes, width = code.lanes, str(code.lanes * columns)
    first = code.times(panel, width)
    begin = code.at("%out", code.times(first, "%k"))
    last = code.put("sub i64 %n, 1")
    offsets = [_columns(code, code.add(first, str(v * lanes)), last) for v in range(columns)]
    with code.loop(start, "%k", "1") as row:
        line = code.at("%b", code.times(row.index, "%step"))
        for v, offset in enumerate(offsets):
            numbers = _gather(code, line, offset)
            code.store(numbers, begin, code.add(code.times(row.index, width), str(v * lanes)))


def _columns(code: Code, first: str, last: str) -> str:
    """Where the columns from ``first`` are in a line, for each lane; ``last`` is the last."""
    longs = f"<{code.lanes} x i64>"
    columns = code.put(f"add {longs} {everywhere(code, first)}, {numbered(code)}")
    end = everywhere(code, last)
    inside = code.put(f"icmp slt {longs} {columns}, {end}")
    least = code.put(f"select <{code.lanes} x i1> {inside}, {longs} {columns}, {longs} {end}")
    return code.put(f"mul {longs} {least}, {everywhere(code, '%next')}")


def everywhere(code: Code, x: str) -> str:
    """An integer in all lanes."""
    longs = f"<{code.lanes} x i64>"
    one = code.put(f"insertelement {longs} poison, i64 {x}, i32 0")
    return code.put(f"shufflevector {longs} {one}, {longs} poison, <{code.lanes} x i32> zeroinitializer")


def numbered(code: Code) -> str:
    """0, 1, 2 ... in the lanes."""
    return f"<{', '.join(f'i64 {i}' for i in range(code.lanes))}>"


def _gather(code: Code, base: str, offsets: str) -> str:
    lanes = code.lanes
    pointers = code.put(f"getelementptr float, ptr {base}, <{lanes} x i64> {offsets}")
    every = f"<{', '.join(['i1 true'] * lanes)}>"
    return code.put(
        f"call {code.vector} @llvm.masked.gather.v{lanes}f32.v{lanes}p0(<{lanes} x ptr> {pointers}, i32 4, "
        f"<{lanes} x i1> {every}, {code.vector} poison)"
    )


def multiply(lanes: int, rows: int, columns: int, private: bool = False, kind: type[Code] = Code) -> str:
    """The function ``multiply``: ``c[i * line + j] = sum_t a[i * row + t * step] b[t, j]`` with ``b`` packed, for the
    tiles of rows from ``first`` to ``last``; where ``more`` is not 0 the sum is added to ``c``, or to the numbers at
    ``bias``, one for each column, if there are any.

    ``high`` rows are packed, of which ``k`` are used, and ``wide`` is the width of a panel. A matrix that has its columns
    beside each other, and whole vectors of them, may be as it is: ``high`` is 1 then, and ``wide`` its step of rows.
    ``spare`` is memory for the rows that the last tile has beyond ``m``. The ``kind`` of code says how a product is added:
    a number of either matrix may be a pair of bfloat16 numbers, that stands for two terms.
    """
    code = kind(lanes)
    width = lanes * columns
    copies = lanes == COPYING
    high = LARGE if copies else BLOCK
    if copies:
        for name, size in (("rows", high * _apart(rows)), ("panel", CHUNK * width)):
            code.lines.append(f"  %near_{name} = alloca [{size} x float], align 64")
    whole = code.put(f"sdiv i64 %n, {width}")
    done = code.times(whole, str(width))
    rest = code.put(f"sub i64 %n, {done}")
    vectors = code.put(f"sdiv i64 {code.add(rest, str(lanes - 1))}, {lanes}")
    over = code.put(f"srem i64 {rest}, {lanes}")
    blocks = code.put(f"sdiv i64 {code.add(code.put('sub i64 %last, %first'), str(high - 1))}, {high}")
    chunks = code.put(f"sdiv i64 {code.add('%k', str(CHUNK - 1))}, {CHUNK}")
    with code.loop("0", blocks, "1") as block:
        start = code.add("%first", code.times(block.index, str(high)))
        stop = code.least(code.add(start, str(high)), "%last")
        with code.loop("0", chunks, "1") as chunk:
            terms = code.times(chunk.index, str(CHUNK))
            end = code.least(code.add(terms, str(CHUNK)), "%k")
            fresh = code.put(f"icmp eq i64 {code.add(terms, '%more')}, 0")
            begins = code.put(f"icmp eq i64 {terms}, 0")
            biased = code.put(f"and i1 {begins}, {code.put('icmp ne ptr %bias, null')}")
            adds = code.put(f"select i1 {biased}, i64 {BIASED}, i64 {ADDED}")
            state = code.put(f"select i1 {fresh}, i64 {FRESH}, i64 {adds}")
            lines = _rows_near(code, rows, width, (start, stop), (terms, end)) if copies else Rows(code, rows)
            with code.loop("0", whole, "1") as panel:
                column = code.times(panel.index, str(width))
                given = (
                    _panel_near(code, columns, column, (start, stop), (terms, end)) if copies else Panel(code, column)
                )
                with code.loop(start, stop, "1") as tile:
                    if copies:
                        number = code.put(f"sub i64 {tile.index}, {start}")
                        _ask_for_panel(code, width, column, number, (terms, end))
                        _ask_for_rows(code, rows, panel.index, tile.index, end, lines)
                    _call_tile(code, rows, columns, tile.index, column, (terms, end), state, lines, given)
            given = Panel(code, done)
            for few, full in _last_panels(lanes, columns):  # one of these loops has one round, if the last is not whole
                here = code.put(f"icmp eq i64 {vectors}, {few}")
                if full is not None:
                    test = "eq" if full else "ne"
                    here = code.put(f"and i1 {here}, {code.put(f'icmp {test} i64 {over}, 0')}")
                here = code.put(f"zext i1 {here} to i64")
                with code.loop("0", here, "1"), code.loop(start, stop, "1") as tile:
                    left = "" if full else rest
                    _call_tile(code, rows, few, tile.index, done, (terms, end), state, lines, given, left)
    tiles = [_tile(kind(lanes), rows, columns, False)]
    tiles += [_tile(kind(lanes), rows, few, not full) for few, full in _last_panels(lanes, columns)]
    return "\n".join([*tiles, code.definition("multiply", *MULTIPLY, private=private), ALIGNMENT])


def _ask_for_panel(code: Code, width: int, column: str, number: str, terms: tuple[str, str]) -> None:
    """Ask for some terms of the next panel, of which other ones are asked for with each of the tiles that meet this one: in
    ``LARGE`` tiles for all of them. (With less, the first tile waits for memory as long as it computes.)
    """
    per = -(-CHUNK // LARGE)
    following = code.add(column, str(width))
    inside = code.put(f"icmp slt i64 {following}, %n")
    following = code.put(f"select i1 {inside}, i64 {following}, i64 0")
    begin = code.put(f"select i1 {inside}, i64 {terms[0]}, i64 {terms[1]}")
    term = code.add(begin, code.times(number, str(per)))
    line = code.at("%b", code.add(code.times(following, "%high"), code.times(term, "%wide")))
    for i in range(per):
        for ahead in range(0, width, LINE):
            code.prefetch(line, str(ahead), level=2)
        line = code.at(line, "%wide") if i < per - 1 else line


def _ask_for_rows(code: Code, rows: int, panel: str, tile: str, end: str, given: Rows) -> None:
    """Ask for some lines of the terms that are copied next, for this tile or the one in its place in the next block; other
    ones with each panel, until it has all.
    """
    lines = CHUNK * rows // LINE  # of a tile: it has a part of those of all terms, others have the rest
    left = code.put(f"icmp slt i64 {panel}, {lines // ASKED}")
    asks = code.put(f"and i1 {given.needed}, {left}")
    with code.loop("0", code.put(f"zext i1 {asks} to i64"), "1"):
        more = code.put(f"icmp slt i64 {end}, %k")
        begin = code.put(f"select i1 {more}, i64 {end}, i64 0")
        tile = code.put(f"select i1 {more}, i64 {tile}, i64 {code.add(tile, str(LARGE))}")
        part = code.times(code.put(f"srem i64 {tile}, {LINE // rows}"), str(lines))
        term = code.add(begin, code.add(part, code.times(panel, str(ASKED))))
        line = code.at("%a", code.add(code.times(tile, str(rows)), code.times(term, "%step")))
        for i in range(ASKED):
            code.prefetch(line, "0", level=2)
            line = code.at(line, "%step") if i < ASKED - 1 else line


class Rows:
    """The first matrix where it is, or some tiles of it that are copied."""

    def __init__(self, code: Code, rows: int, needed: str = "false", first: str = "0", begin: str = "0") -> None:
        self._code, self._rows, self._first, self._begin = code, rows, first, begin
        self.needed = needed
        self.step = code.put(f"select i1 {needed}, i64 {rows}, i64 %step")
        self.row = code.put(f"select i1 {needed}, i64 1, i64 %row")

    def copy(self, tile: str, term: str) -> str:
        """Where the numbers of a term are copied to."""
        code = self._code
        at = code.times(code.put(f"sub i64 {tile}, {self._first}"), str(_apart(self._rows)))
        below = code.put(f"sub i64 {term}, {self._begin}")
        return code.at("%near_rows", code.add(at, code.times(below, str(self._rows))))

    def of_tile(self, tile: str, first: str, term: str) -> str:
        """Where a term of the first row of a tile is, which has this number in the matrix."""
        code = self._code
        line = code.at("%a", code.add(code.times(first, "%row"), code.times(term, "%step")))
        if self.needed == "false":
            return line
        return code.put(f"select i1 {self.needed}, ptr {self.copy(tile, term)}, ptr {line}")


def _apart(rows: int) -> int:
    """The numbers from one copied tile to the next: they begin in different sets of the cache."""
    return rows * CHUNK + LINE


class Panel:
    """Where a panel begins, and the step of its terms."""

    def __init__(self, code: Code, column: str) -> None:
        self.base, self.wide = code.at("%b", code.times(column, "%high")), "%wide"


def _last_panels(lanes: int, columns: int) -> list[tuple[int, bool | None]]:
    """How many vectors a last panel may have, and whether the last of them is full: None where it is no matter, with vectors
    of which a part is written as fast as all. With AVX2 that takes a processor long, and NEON has no instructions for it.
    """
    if lanes == 16:
        return [(few, None) for few in range(1, columns + 1)]
    return [(few, full) for few in range(1, columns + 1) for full in (True, False) if few < columns or not full]


def are_copied(code: Code, row: str, step: str) -> str:
    """Whether rows lie in columns, by their steps."""
    return code.put(f"and i1 {code.put(f'icmp eq i64 {row}, 1')}, {code.put(f'icmp ne i64 {step}, 1')}")


def _rows_near(code: Code, rows: int, width: int, tiles: tuple[str, str], terms: tuple[str, str]) -> Rows:
    """The rows of some tiles, those of a tile beside each other, copied if they are so in the matrix and several panels meet
    them: their terms are lines of memory so far apart that few of them are in the cache at once.
    """
    begin, end = terms
    needed = code.put(f"and i1 {are_copied(code, '%row', '%step')}, {code.put(f'icmp sgt i64 %n, {width}')}")
    whole = code.least(tiles[1], code.put(f"sdiv i64 %m, {rows}"))
    given = Rows(code, rows, needed, tiles[0], begin)
    with code.loop("0", code.put(f"zext i1 {needed} to i64"), "1"), code.loop(begin, end, "1") as term:
        line = code.at("%a", code.times(term.index, "%step"))
        later = code.add(code.times("%step", str(AHEAD)), code.times(tiles[0], str(rows)))
        for ahead in range(0, LARGE * rows, LINE):  # the processor does not foresee such steps
            code.prefetch(line, code.add(later, str(ahead)))
        several = LINE // rows  # at a time: to count tiles took as long as to copy them
        done = code.add(tiles[0], code.put(f"and i64 {code.put(f'sub i64 {whole}, {tiles[0]}')}, {-several}"))
        for first, last, count in ((tiles[0], done, several), (done, whole, 1)):
            with code.loop(first, last, str(count)) as tile:
                source = code.at(line, code.times(tile.index, str(rows)))
                target = given.copy(tile.index, term.index)
                for i in range(count):
                    here, there = code.at(source, str(i * rows)), code.at(target, str(i * _apart(rows)))
                    some = code.put(f"load <{rows} x float>, ptr {here}, align 4")
                    code.lines.append(f"  store <{rows} x float> {some}, ptr {there}, align 4")
        with code.loop(whole, tiles[1], "1") as tile:
            first = code.times(tile.index, str(rows))
            with code.loop("0", code.put(f"sub i64 %m, {first}"), "1") as row:
                one = code.put(f"load float, ptr {code.at(line, code.add(first, row.index))}, align 4")
                target = code.at(given.copy(tile.index, term.index), row.index)
                code.lines.append(f"  store float {one}, ptr {target}, align 4")
    return given


def _panel_near(code: Code, columns: int, column: str, tiles: tuple[str, str], terms: tuple[str, str]) -> Panel:
    """A panel, copied if the matrix is not packed and several tiles meet it."""
    width, (begin, end) = code.lanes * columns, terms
    panel = Panel(code, column)
    several = code.put(f"icmp sge i64 {code.put(f'sub i64 {tiles[1]}, {tiles[0]}')}, {SEVERAL}")
    needed = code.put(f"and i1 {code.put('icmp eq i64 %high, 1')}, {several}")
    here = code.at("%near_panel", code.put(f"sub i64 0, {code.times(begin, str(width))}"))
    with code.loop("0", code.put(f"zext i1 {needed} to i64"), "1"), code.loop(begin, end, "1") as term:
        line, target = code.times(term.index, "%wide"), code.times(term.index, str(width))
        for v in range(columns):
            code.store(
                code.load(panel.base, code.add(line, str(v * code.lanes))), here, code.add(target, str(v * code.lanes))
            )
    panel.base = code.put(f"select i1 {needed}, ptr {here}, ptr {panel.base}")
    panel.wide = code.put(f"select i1 {needed}, i64 {width}, i64 %wide")
    return panel


def _call_tile(
    code: Code, rows: int, columns: int, tile: str, column: str, terms: tuple[str, str], state: str, given: Rows,
    panel: Panel, rest: str = "",
) -> None:  # fmt: skip
    """Add some terms to a tile; of the last of its vectors only the first of ``rest`` columns."""
    first, (begin, end) = code.times(tile, str(rows)), terms
    line = given.of_tile(tile, first, begin)
    target = code.at("%c", code.add(code.times(first, "%line"), column))
    left, count = (code.put(f"sub i64 {x}, {y}") for x, y in (("%m", first), (end, begin)))
    at = code.at(panel.base, code.times(begin, panel.wide))
    sizes = [left, count, given.row, given.step, panel.wide, "%line", state, *([rest] if rest else [])]
    pointers = [line, at, target, "%spare", code.at("%bias", column)]
    code.invoke(_name_of_tile(columns, bool(rest)), pointers, sizes)


def _name_of_tile(columns: int, part: bool) -> str:
    return f"tile_{columns}{'_part' * part}"


FRESH, ADDED, BIASED = range(3)  # what a sum is added to: nothing, what is there, a number for each column


def _tile(code: Code, rows: int, columns: int, part: bool) -> str:
    """The function that adds ``count`` terms to a tile, of which there are ``left`` rows. It is a function of its own, for
    then registers have what its loop needs and nothing else: a step of that on the stack takes a tenth longer with AVX2.
    """
    lines = rows_of_tile(code, rows, "%a", "%row", "%left", repeat=True)
    if code.lanes == COPYING:
        for row in lines:  # where the next tile begins, if rows are not copied: the processor foresees what follows
            code.prefetch(row, code.times("%row", str(rows)))
        for target in rows_of_tile(code, rows, "%c", "%line", "%left"):  # it comes while the sums are computed
            for ahead in range(0, columns * code.lanes, LINE):
                code.prefetch(target, str(ahead), writes=True)
    values = sums(code, lines, "%b", columns, "0", "%count", mark=ALIGNED)
    targets = rows_of_tile(code, rows, "%c", "%line", "%left")
    mask = of_last(code, columns, "%rest") if part else ""
    for state in (FRESH, ADDED, BIASED):  # to choose for each vector takes as many jumps as there are vectors
        here = code.put(f"zext i1 {code.put(f'icmp eq i64 %state, {state}')} to i64")
        with code.loop("0", here, "1"):
            for i, value in enumerate(values):
                r, v = divmod(i, columns)
                offset, last_mask = str(v * code.lanes), mask if v == columns - 1 else ""
                at = code.at(targets[r], offset)
                before = {FRESH: "", ADDED: at, BIASED: code.at("%bias", offset)}[state]
                total = code.plus(loaded(code, before, last_mask), value) if before else value
                stored(code, total, at, last_mask)
    sizes = "left", "count", "row", "step", "wide", "line", "state", *(["rest"] if part else [])
    text = code.definition(_name_of_tile(columns, part), ("a", "b", "c", "spare", "bias"), sizes, private=True)
    return text.replace(") {", ") noinline {", 1)


def rows_of_tile(code: Code, rows: int, first: str, step: str, left: str, repeat: bool = False) -> list[str]:
    """Where the rows of a tile begin, of which there are so many ``left``; the others are ``spare``, or repeat the last."""
    line, lines = first, [first]
    for r in range(1, rows):
        inside = code.put(f"icmp sgt i64 {left}, {r}")
        line = code.at(line, step)
        lines.append(code.put(f"select i1 {inside}, ptr {line}, ptr {lines[-1] if repeat else '%spare'}"))
    return lines


def sums(
    code: Code,
    lines: list[str],
    panel: str,
    columns: int,
    terms: str,
    end: str,
    step: str = "%step",
    wide: str = "%wide",
    mark: str = "",
) -> list[str]:
    """The sums of a tile, row after row, over the terms from ``terms`` to ``end``."""
    zeros = [code.constant(0.0)] * (len(lines) * columns)
    with code.loop(terms, end, "1", zeros, mark=mark) as term:
        line = code.at(panel, code.times(term.index, wide))
        others = [code.load(line, str(v * code.lanes)) for v in range(columns)]
        at = code.times(term.index, step)
        term.next = []
        for r, numbers in enumerate(lines):
            x = code.spread(numbers, at)
            before = term.values[r * columns : (r + 1) * columns]
            term.next += [code.added(x, y, s) for y, s in zip(others, before, strict=True)]
    return term.values


def of_last(code: Code, columns: int, rest: str) -> str:
    """The mask of a last vector, where so many of the columns of all vectors are used."""
    left = code.put(f"sub i64 {rest}, {(columns - 1) * code.lanes}")
    return code.put(f"icmp slt <{code.lanes} x i64> {numbered(code)}, {everywhere(code, left)}")


def loaded(code: Code, at: str, mask: str = "") -> str:
    """A vector, of which there may be the lanes of a mask only."""
    if not mask:
        return code.put(f"load {code.vector}, ptr {at}, align 4")
    kind = f"<{code.lanes} x i1>"
    return code.put(
        f"call {code.vector} @llvm.masked.load.v{code.lanes}f32.p0(ptr {at}, i32 4, {kind} {mask}, "
        f"{code.vector} zeroinitializer)"
    )


def stored(code: Code, value: str, at: str, mask: str = "") -> None:
    """Write a vector, or the lanes of a mask."""
    if not mask:
        code.lines.append(f"  store {code.vector} {value}, ptr {at}, align 4")
        return
    name = f"@llvm.masked.store.v{code.lanes}f32.p0"
    code.lines.append(f"  call void {name}({code.vector} {value}, ptr {at}, i32 4, <{code.lanes} x i1> {mask})")
