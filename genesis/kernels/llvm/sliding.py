"""LLVM code for convolutions without copies of their windows.

An output's place is a number in a table, and so is a term of its sum: the offset of an input from the place where the
window begins. Both are the same for all channels of the output, so vectors of neighbouring places are loaded once for
several channels, whose sums stay in registers.
"""

from __future__ import annotations

from genesis.kernels.llvm.nests import Code

CHUNK = 96  # terms of a sum that are added before they are added to the rest: fewer digits are lost
NEAR = 64  # vectors of places of a few channels that stay in the nearest cache while all terms pass
FORWARD = (
    ("x", "w", "bias", "y", "images", "lines", "offsets", "from", "to", "channels", "fill", "leave"),
    ("first", "last", "many", "inner", "out", "groups", "blocks", "terms", "chunks", "vectors", "part", "parts",
     "each", "channel", "line", "fills", "leaves", "x_example", "x_channel", "x_step", "y_example", "y_channel",
     "y_step"),
)  # fmt: skip
WEIGHT = (
    ("x", "g", "sums", "images", "lines", "near", "offsets", "from", "to", "channels", "fill", "leave"),
    ("first", "last", "many", "inner", "out", "groups", "blocks", "term_blocks", "vectors",
     "each", "channel", "line", "fills", "leaves", "x_example", "x_channel", "x_step", "g_example", "g_channel"),
)  # fmt: skip


def forward(
    lanes: int, rows: int, columns: int, whole: bool, every: int, spaced: bool, short: tuple[int, int] = (0, 0)
) -> str:
    """The function ``forward``: of blocks of ``many`` examples from ``first`` to ``last``, ``rows`` channels of the
    output at ``columns`` vectors of places at a time.

    ``y[channels[c] * line + to[v]] = bias[channels[c]] + sum_t w[c, t] x[from[v] + offsets[t]]`` for all vectors; ``w``
    has the weights of ``rows`` channels next to each other for each term. ``x`` is in ``images``; ``y`` the block's part
    of the output, or not ``whole`` ``lines``, whose places are brought to the output afterwards. ``every``: 1 or
    2 where a row of the images is of every or every second place of the input, else 0; ``spaced``: places of a row of
    the output are not next to each other in memory; ``short``: of rows of the input and of the output, as in `_move`.
    """
    code = Code(lanes)
    with code.loop("%first", "%last", "1") as block:
        example = code.times(block.index, "%many")
        _fill(code, example, every, short[0])
        y = code.at("%y", code.times(example, "%y_example"))
        target = y if whole else "%lines"
        with code.loop("0", "%parts", "1") as part:
            start = code.times(part.index, "%part")
            stop = code.least(code.add(start, "%part"), "%vectors")
            with code.loop("0", "%groups", "1") as group, code.loop("0", "%blocks", "1") as inside:
                number = code.add(code.times(group.index, "%blocks"), inside.index)
                _forward_tiles(code, rows, columns, group.index, code.times(number, str(rows)), start, stop, target)
        if not whole:
            to = ("%y_channel", "%y_example", "%y_step")
            _move(
                code, "%lines", y, "%leave", "%leaves", "%out", ("%line", "%each", "1"), to, int(not spaced), short[1]
            )
    return code.function("forward", *FORWARD)


def _forward_tiles(
    code: Code, rows: int, columns: int, group: str, first: str, start: str, stop: str, target: str
) -> None:
    """Some channels of the output, from the vector ``start`` to ``stop``."""
    zeros = [code.constant(0.0)] * (rows * columns)
    x = code.at("%images", code.times(code.times(group, "%inner"), "%channel"))
    panel = code.at("%w", code.times(first, "%terms"))
    channels = _numbers(code, "%channels", first, rows)
    lines = [code.times(channel, "%line") for channel in channels]
    with code.loop(start, stop, str(columns)) as tile:
        begin = _numbers(code, "%from", tile.index, columns)
        outputs = [[code.add(line, to) for to in _numbers(code, "%to", tile.index, columns)] for line in lines]
        for channel, row in zip(channels, outputs, strict=True):
            bias = code.spread("%bias", channel)
            for output in row:
                code.store(bias, target, output)
        with code.loop("0", "%chunks", "1") as chunk:
            one = code.times(chunk.index, str(CHUNK))
            end = code.least(code.add(one, str(CHUNK)), "%terms")
            with code.loop(one, end, "1", zeros) as term:
                offset = code.number("%offsets", term.index)
                vectors = [code.load(x, code.add(offset, at)) for at in begin]
                weights = code.at(panel, code.times(term.index, str(rows)))
                term.next = []
                for i in range(rows):
                    w = code.spread(weights, str(i))
                    sums = term.values[i * columns : (i + 1) * columns]
                    term.next += [code.fma(w, x, s) for x, s in zip(vectors, sums, strict=True)]
            flat = [output for row in outputs for output in row]
            # all are read before one is written: the last vectors of a table may be the same
            values = [code.plus(code.load(target, p), s) for p, s in zip(flat, term.values, strict=True)]
            for value, output in zip(values, flat, strict=True):
                code.store(value, target, output)


def weight(lanes: int, rows: int, columns: int, whole: bool, every: int, short: tuple[int, int] = (0, 0)) -> str:
    """The function ``weight``: of blocks of ``many`` examples from ``first`` to ``last``, sums over all vectors of places
    for ``rows`` channels and ``columns`` terms at a time.

    ``sums[c, t] += sum_v g[channels[c] * line + to[v]] x[from[v] + offsets[t]]``. ``near`` has a vector for each of the
    sums of ``rows`` channels. ``whole``, ``every`` and ``short`` as in `forward`.
    """
    code = Code(lanes)
    with code.loop("%first", "%last", "1") as block:
        example = code.times(block.index, "%many")
        _fill(code, example, every, short[0])
        g = code.at("%g", code.times(example, "%g_example"))
        if not whole:
            to = ("%line", "%each", "1")
            _move(
                code, g, "%lines", "%leave", "%leaves", "%out", ("%g_channel", "%g_example", "1"), to, 1, short[1], True
            )
        with code.loop("0", "%groups", "1") as group, code.loop("0", "%blocks", "1") as inside:
            number = code.add(code.times(group.index, "%blocks"), inside.index)
            _weight_tiles(code, rows, columns, group.index, code.times(number, str(rows)), g if whole else "%lines")
    return code.function("weight", *WEIGHT)


def _weight_tiles(code: Code, rows: int, columns: int, group: str, first: str, g: str) -> None:
    """All terms for some channels."""
    x = code.at("%images", code.times(code.times(group, "%inner"), "%channel"))
    lines = [code.times(channel, "%line") for channel in _numbers(code, "%channels", first, rows)]
    each = rows * columns
    zero = code.constant(0.0)
    with code.loop("0", code.times("%term_blocks", str(each)), "1") as clear:
        code.store(zero, "%near", code.times(clear.index, str(code.lanes)))
    rounds = code.put(f"sdiv i64 {code.add('%vectors', str(NEAR - 1))}, {NEAR}")
    with code.loop("0", rounds, "1") as some:
        start = code.times(some.index, str(NEAR))
        stop = code.least(code.add(start, str(NEAR)), "%vectors")
        with code.loop("0", "%term_blocks", "1") as terms:
            offsets = _numbers(code, "%offsets", code.times(terms.index, str(columns)), columns)
            sums = code.times(terms.index, str(each * code.lanes))
            kept = [code.add(sums, str(i * code.lanes)) for i in range(each)]
            before = [code.load("%near", at) for at in kept]
            with code.loop(start, stop, "1", before) as vector:
                to, begin = code.number("%to", vector.index), code.number("%from", vector.index)
                gs = [code.load(g, code.add(line, to)) for line in lines]
                xs = [code.load(x, code.add(offset, begin)) for offset in offsets]
                pairs = [(a, b) for a in gs for b in xs]
                vector.next = [code.fma(a, b, s) for (a, b), s in zip(pairs, vector.values, strict=True)]
            for value, at in zip(vector.values, kept, strict=True):
                code.store(value, "%near", at)
    width = code.times("%term_blocks", str(columns))
    with code.loop("0", "%term_blocks", "1") as terms:
        term = code.times(terms.index, str(columns))
        sums = code.times(terms.index, str(each * code.lanes))
        for i in range(rows):
            line = code.add(code.times(code.add(first, str(i)), width), term)
            for j in range(columns):
                total = code.load("%near", code.add(sums, str((i * columns + j) * code.lanes)))
                _add_all(code, total, "%sums", code.add(line, str(j)))


# ---- the weight, with channels of the input next to each other

BY_CHANNELS = (
    ("x", "g", "sums", "images", "offsets", "channels", "fill", "from", "to"),
    ("first", "last", "many", "inner", "depth", "blocks", "term_blocks", "rows", "near", "rounds", "wide", "step",
     "each", "fills", "x_example", "x_channel", "g_example", "g_channel"),
)  # fmt: skip


def weight_by_channels(lanes: int, rows: int, columns: int) -> str:
    """The function ``weight_by_channels``: of blocks of ``many`` examples from ``first`` to ``last``, sums over all places
    for ``rows`` channels of ``g`` and ``columns`` vectors of channels of ``x`` at a time.

    ``sums[c, t] += sum_p g[channels[c], p] x[p, offsets[t]]`` with rows of places from ``from[r]`` and ``to[r]``. Nothing
    is read across the borders of vectors, and no place of the border is multiplied: `weight` needs no so many channels.
    """
    code = Code(lanes)
    width = code.times("%term_blocks", str(columns * lanes))
    with code.loop("%first", "%last", "1") as block:
        example = code.times(block.index, "%many")
        _turn(code, code.at("%x", code.times(example, "%x_example")))
        g = code.at("%g", code.times(example, "%g_example"))
        with code.loop("0", "%rounds", "1") as some:
            start = code.times(some.index, "%near")
            stop = code.least(code.add(start, "%near"), "%rows")
            with code.loop("0", "%blocks", "1") as inside, code.loop("0", "%term_blocks", "1") as terms:
                first = code.times(inside.index, str(rows))
                lines = [code.times(c, "%g_channel") for c in _numbers(code, "%channels", first, rows)]
                offsets = _numbers(code, "%offsets", code.times(terms.index, str(columns)), columns)
                at = code.add(code.times(first, width), code.times(terms.index, str(columns * lanes)))
                indices = [
                    code.add(code.add(at, code.times(width, str(i))), str(j * lanes))
                    for i in range(rows)
                    for j in range(columns)
                ]
                totals = _over_rows(code, g, lines, offsets, start, stop)
                for value, index in zip(totals, indices, strict=True):
                    code.store(code.plus(code.load("%sums", index), value), "%sums", index)
    return code.function("weight_by_channels", *BY_CHANNELS)


def _over_rows(code: Code, g: str, lines: list[str], offsets: list[str], start: str, stop: str) -> list[str]:
    """Sums over all places of some rows."""
    zeros = [code.constant(0.0)] * (len(lines) * len(offsets))
    with code.loop(start, stop, "1", zeros) as row:
        to, begin = code.number("%to", row.index), code.number("%from", row.index)
        gs = [code.at(g, code.add(line, to)) for line in lines]
        xs = [code.at("%images", code.add(offset, begin)) for offset in offsets]
        with code.loop("0", "%wide", "1", row.values) as column:
            at = code.times(column.index, "%step")
            vectors = [code.load(x, at) for x in xs]
            column.next = []
            for i, line in enumerate(gs):
                one = code.spread(line, column.index)
                before = column.values[i * len(xs) : (i + 1) * len(xs)]
                column.next += [code.fma(one, x, s) for x, s in zip(vectors, before, strict=True)]
        row.next = column.values
    return row.values


def _turn(code: Code, x: str) -> None:
    """Copy a block of the input to where it is read: the channels of a place next to each other."""
    lanes = code.lanes
    rest = code.put(f"srem i64 %inner, {lanes}")
    last = code.put(f"sub i64 %inner, {lanes}")
    with code.loop("0", "%many", "1") as e:
        source = code.at(x, code.times(e.index, "%x_example"))
        target = code.at("%images", code.times(e.index, "%each"))
        with code.loop("0", "%inner", str(lanes)) as c:
            _turn_rows(code, source, target, c.index)
        with code.loop("0", code.least(rest, "1"), "1"):  # some of them again
            _turn_rows(code, source, target, last)


def _turn_rows(code: Code, source: str, target: str, channel: str) -> None:
    lanes = code.lanes
    source = code.at(source, code.times(channel, "%x_channel"))
    target = code.at(target, channel)
    with code.loop("0", "%fills", "1") as r:
        here = code.at(source, code.number("%fill", r.index))
        there = code.at(target, code.number("%fill", code.add(r.index, "%fills")))
        count = code.number("%fill", code.add(r.index, code.times("%fills", "2")))
        with code.loop("0", count, str(lanes)) as i:
            vectors = [code.load(here, code.add(code.times("%x_channel", str(k)), i.index)) for k in range(lanes)]
            for k, vector in enumerate(code.turned(vectors)):
                code.store(vector, there, code.times(code.add(i.index, str(k)), "%depth"))
        with code.loop(i.index, count, "1") as i, code.loop("0", str(lanes), "1") as k:
            at = code.at(here, code.add(code.times("%x_channel", k.index), i.index))
            _copy(code, "float", at, code.at(there, code.add(code.times(i.index, "%depth"), k.index)))


# ---- copies

Steps = tuple[str, str, str]  # from a channel to the next, from an example, from a place of a row


def _fill(code: Code, example: str, every: int, short: int) -> None:
    """Copy a block of the input to where it is read."""
    x, steps = code.at("%x", code.times(example, "%x_example")), ("%x_channel", "%x_example", "%x_step")
    channels = code.times("%groups", "%inner")
    _move(code, x, "%images", "%fill", "%fills", channels, steps, ("%channel", "%each", "1"), every, short)


def _move(
    code: Code, source: str, target: str, table: str, rows: str, channels: str, of: Steps, to: Steps, every: int,
    short: int, back: bool = False,
) -> None:  # fmt: skip
    """Copy rows of numbers: the table has where each begins, where it goes to (``back``: the other way round), and how
    many numbers it has. ``every``: of the source's steps where 1 or 2, the target's is 1 then. ``short``: no row has
    less than so many numbers, and none more than twice as many; 0 where they are of any length.
    """
    with code.loop("0", channels, "1") as c, code.loop("0", "%many", "1") as e:
        start, end = (
            code.at(base, code.add(code.times(c.index, steps[0]), code.times(e.index, steps[1])))
            for base, steps in ((source, of), (target, to))
        )
        with code.loop("0", rows, "1") as r:
            numbers = [code.number(table, r.index), code.number(table, code.add(r.index, rows))]
            one, other = numbers[::-1] if back else numbers
            count = code.number(table, code.add(r.index, code.times(rows, "2")))
            here, there = code.at(start, one), code.at(end, other)
            if short:
                _copy_ends(code, f"<{short} x float>", here, there, code.put(f"sub i64 {count}, {short}"))
            else:
                _copy_row(code, here, there, count, of[2], to[2], every)


def _copy_ends(code: Code, kind: str, here: str, there: str, last: str) -> None:
    """The first numbers of a row and, from ``last``, its last; together they are all."""
    pairs = [(here, there), (code.at(here, last), code.at(there, last))]
    for source, target in pairs:
        _copy(code, kind, source, target)


def _copy_row(code: Code, here: str, there: str, count: str, of: str, to: str, every: int) -> None:
    done = "0"
    for lanes in [n for n in (16, 8, 4) if n <= code.lanes and every]:
        with code.loop(done, count, str(lanes)) as i:
            first = code.at(here, code.times(i.index, str(every)))
            (_copy if every == 1 else _thin)(code, f"<{lanes} x float>", first, code.at(there, i.index))
        done = i.index
    with code.loop(done, count, "1") as i:
        _copy(code, "float", code.at(here, code.times(i.index, of)), code.at(there, code.times(i.index, to)))


def _copy(code: Code, kind: str, source: str, target: str) -> None:
    code.lines.append(f"  store {kind} {code.put(f'load {kind}, ptr {source}, align 4')}, ptr {target}, align 4")


def _thin(code: Code, kind: str, source: str, target: str) -> None:
    """Every second number of twice as many but one: none is read beyond the last."""
    lanes = int(kind[1:].split()[0])
    low = code.put(f"load {kind}, ptr {source}, align 4")
    high = code.put(f"load {kind}, ptr {code.at(source, str(lanes - 1))}, align 4")
    mask = ", ".join([f"i32 {i if i < lanes else i + 1}" for i in range(0, 2 * lanes, 2)])
    vector = code.put(f"shufflevector {kind} {low}, {kind} {high}, <{lanes} x i32> <{mask}>")
    code.lines.append(f"  store {kind} {vector}, ptr {target}, align 4")


def _numbers(code: Code, table: str, first: str, count: int) -> list[str]:
    return [code.number(table, code.add(first, str(i))) for i in range(count)]


def _add_all(code: Code, vector: str, base: str, index: str) -> None:
    """Add the sum of a vector to a number in memory."""
    at = code.at(base, index)
    before = code.put(f"load float, ptr {at}, align 4")
    name = f"@llvm.vector.reduce.fadd.v{code.lanes}f32"
    code.lines.append(
        f"  store float {code.put(f'call reassoc float {name}(float {before}, {code.vector} {vector})')}, ptr {at}"
    )
