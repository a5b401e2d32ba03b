"""LLVM code for convolutions without copies of their windows.

An output's place is a number in a table, and so is a term of its sum: the offset of an input from the place where the
window begins. Both are the same for all channels of the output, so vectors of neighbouring places are loaded once for
several channels, whose sums stay in registers.
"""

from __future__ import annotations

from genesis.kernels.llvm.nests import Code

CHUNK = 96  # terms of a sum that are added before they are added to the rest: fewer digits are lost
FORWARD = (
    ("x", "w", "bias", "y", "offsets", "from", "to", "channels"),
    ("terms", "chunks", "first", "last", "line", "blocks", "groups", "from_group"),
)
WEIGHT = (
    ("x", "g", "sums", "offsets", "from", "to", "channels"),
    ("vectors", "line", "blocks", "term_blocks", "groups", "from_group"),
)


def forward(lanes: int, rows: int, columns: int) -> str:
    """The function ``forward``: ``rows`` channels of the output at ``columns`` vectors of places at a time.

    ``y[channels[c] * line + to[v]] = bias[channels[c]] + sum_t w[c, t] x[from[v] + offsets[t]]`` for the vectors from
    ``first`` to ``last``; ``w`` has the weights of ``rows`` channels next to each other for each term.
    """
    code = Code(lanes)
    zeros = [code.constant(0.0)] * (rows * columns)
    with code.loop("0", "%groups", "1") as group, code.loop("0", "%blocks", "1") as inside:
        x = code.at("%x", code.times(group.index, "%from_group"))
        block = code.times(code.add(code.times(group.index, "%blocks"), inside.index), str(rows))
        panel = code.at("%w", code.times(block, "%terms"))
        channels = _numbers(code, "%channels", block, rows)
        lines = [code.times(channel, "%line") for channel in channels]
        with code.loop("%first", "%last", str(columns)) as tile:
            begin = _numbers(code, "%from", tile.index, columns)
            places = [[code.add(line, to) for to in _numbers(code, "%to", tile.index, columns)] for line in lines]
            for channel, row in zip(channels, places, strict=True):
                bias = code.spread("%bias", channel)
                for place in row:
                    code.store(bias, "%y", place)
            with code.loop("0", "%chunks", "1") as chunk:
                start = code.times(chunk.index, str(CHUNK))
                stop = code.least(code.add(start, str(CHUNK)), "%terms")
                with code.loop(start, stop, "1", zeros) as term:
                    offset = code.number("%offsets", term.index)
                    vectors = [code.load(x, code.add(offset, at)) for at in begin]
                    weights = code.at(panel, code.times(term.index, str(rows)))
                    term.next = []
                    for i in range(rows):
                        w = code.spread(weights, str(i))
                        sums = term.values[i * columns : (i + 1) * columns]
                        term.next += [code.fma(w, x, s) for x, s in zip(vectors, sums, strict=True)]
                flat = [place for row in places for place in row]
                # all are read before one is written: the last vectors of a table may be the same
                found = [code.plus(code.load("%y", p), s) for p, s in zip(flat, term.values, strict=True)]
                for value, place in zip(found, flat, strict=True):
                    code.store(value, "%y", place)
    return code.function("forward", *FORWARD)


def weight(lanes: int, rows: int, columns: int) -> str:
    """The function ``weight``: sums over all vectors of places for ``rows`` channels and ``columns`` terms at a time.

    ``sums[c, t] += sum_v g[channels[c] * line + to[v]] x[from[v] + offsets[t]]``.
    """
    code = Code(lanes)
    zeros = [code.constant(0.0)] * (rows * columns)
    width = code.times("%term_blocks", str(columns))
    with code.loop("0", "%groups", "1") as group, code.loop("0", "%blocks", "1") as inside:
        x = code.at("%x", code.times(group.index, "%from_group"))
        first = code.times(code.add(code.times(group.index, "%blocks"), inside.index), str(rows))
        lines = [code.times(channel, "%line") for channel in _numbers(code, "%channels", first, rows)]
        with code.loop("0", "%term_blocks", "1") as terms:
            term = code.times(terms.index, str(columns))
            offsets = _numbers(code, "%offsets", term, columns)
            with code.loop("0", "%vectors", "1", zeros) as place:
                to, begin = code.number("%to", place.index), code.number("%from", place.index)
                gs = [code.load("%g", code.add(line, to)) for line in lines]
                xs = [code.load(x, code.add(offset, begin)) for offset in offsets]
                pairs = [(a, b) for a in gs for b in xs]
                place.next = [code.fma(a, b, s) for (a, b), s in zip(pairs, place.values, strict=True)]
            for i in range(rows):
                line = code.add(code.times(code.add(first, str(i)), width), term)
                for j in range(columns):
                    _add_all(code, place.values[i * columns + j], "%sums", code.add(line, str(j)))
    return code.function("weight", *WEIGHT)


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
