"""LLVM code for the phases of a product of float32 matrices: ``pack`` in chunks of panels, then ``multiply`` in chunks of
tiles and panels; or ``each``, chunks of small products, each packed and multiplied at once.

They are functions ``void f(ptr args, i64 chunk)`` of `genesis.kernels.native.runtime`; `FIELDS` are the words of their
arguments. A number of the result is summed in an order that depends on k alone, whatever the chunks are.
"""

from __future__ import annotations

import functools

from genesis.kernels.llvm import products
from genesis.kernels.llvm.nests import Code
from genesis.kernels.llvm.units import FLOAT32, UNITS, Unit

ADDRESSES = "a", "b", "c", "packed", "bias"
SIZES = "m", "n", "k", "a_row", "a_step", "b_step", "b_next", "c_row", "more"
# tiles and panels of a chunk, and how many chunks are beside each other; panels of a chunk that packs; whether nothing is
# packed, and the second matrix is read where it is: where there are few rows, so that packing would take as long
GRID = "tiles", "panels", "across", "pack_panels", "direct"
# of `each`: how many products there are and how many a chunk has, from one matrix to the next, and from one packed one
EACH = "count", "per", "a_next", "b_next_matrix", "c_next", "scratch"
# of a product that is computed as ``(b^T a^T)^T``: where it goes, and its step of rows; numbers that are added, one for a row
TURNED = "result", "of_row", "result_row"
FIELDS = (*ADDRESSES, *SIZES, *GRID, *EACH, *TURNED)
NAMES = "gemm_pack", "gemm_multiply", "gemm_each"


def module(lanes: int, name: str = FLOAT32) -> str:
    """The functions `NAMES` and `SIGNATURES`, by one of the `units`."""
    unit = UNITS[name]
    rows, columns = unit.tiles[lanes]
    parts = [products.pack(lanes, columns, True), unit.multiply(lanes, rows, columns, True)]
    made = [_pack(lanes, rows, columns), _multiply(lanes, rows, columns, unit), _each(lanes, rows, columns)]
    made += [_loop(lanes, unit, loop) for loop in SIGNATURES]
    return "\n".join([unit.declared(lanes), *parts, *made])


class Chunk(Code):
    """A function of its arguments and the number of a chunk."""

    def __init__(self, lanes: int, fields: tuple[str, ...] = FIELDS) -> None:
        super().__init__(lanes)
        self.fields: dict[str, str] = {}
        for i, name in enumerate(fields):
            kind = "ptr" if name in (*ADDRESSES, *TURNED[:2]) else "i64"
            self.fields[name] = self.put(f"load {kind}, ptr {self.at('%args', str(i), 'i64')}")

    def __getitem__(self, name: str) -> str:
        return self.fields[name]

    def panels(self, width: int) -> str:
        return self.put(f"sdiv i64 {self.add(self['n'], str(width - 1))}, {width}")

    def definition_of_chunk(self, name: str) -> str:
        return "\n".join([f"define void @{name}(ptr %args, i64 %chunk) {{\nentry:", *self.lines, "  ret void\n}"])


def _pack(lanes: int, rows: int, columns: int) -> str:
    code = Chunk(lanes)
    wide = code.times(code["pack_panels"], str(lanes * columns))
    first = code.times("%chunk", wide)
    n = code.least(code.put(f"sub i64 {code['n']}, {first}"), wide)
    b = code.at(code["b"], code.times(first, code["b_next"]))
    packed = code.at(code["packed"], code.times(first, code["k"]))
    code.invoke("pack", [b, packed], [n, code["k"], code["b_step"], code["b_next"]])
    return code.definition_of_chunk("gemm_pack")


def _multiply(lanes: int, rows: int, columns: int, unit: Unit) -> str:
    code = Chunk(lanes)
    spare = code.put(f"alloca [{lanes * columns} x float], align 64")
    first, last, column, n, other = of_chunk(code, rows, columns)
    c = code.at(code["c"], column)
    bias = code.put(f"select i1 {_is_null(code, 'bias')}, ptr null, ptr {code.at(code['bias'], column)}")
    lines = code.times(first, str(rows)), code.least(code.times(last, str(rows)), code["m"])
    if _turns(lanes, unit):
        with code.loop("0", code.put(f"select i1 {_is_null(code, 'of_row')}, i64 0, i64 1"), "1"):
            _fill(code, c, lines, n)
    _invoke(code, [code["a"], other, c, spare, bias], first, last, n, lanes * columns)
    if _turns(lanes, unit):
        with code.loop("0", code.put(f"select i1 {_is_null(code, 'result')}, i64 0, i64 1"), "1"):
            result = code.at(code["result"], code.times(column, code["result_row"]))
            _turn(code, c, result, lines, n)
    return code.definition_of_chunk("gemm_multiply")


def _turns(lanes: int, unit: Unit) -> bool:
    """Whether there are products that are computed as ``(b^T a^T)^T``: it was measured with AVX2."""
    return lanes == products.COPYING and unit is UNITS[FLOAT32]


def _fill(code: Chunk, c: str, lines: tuple[str, str], n: str) -> None:
    """Fill some lines of ``c``, and what is behind them up to a whole vector, with a number for each."""
    with code.loop(*lines, "1") as line:
        here, x = code.at(c, code.times(line.index, code["c_row"])), code.spread(code["of_row"], line.index)
        with code.loop("0", code.add(n, str(code.lanes - 1)), str(code.lanes)) as column:
            code.store(x, here, column.index)


def _turn(code: Chunk, c: str, result: str, lines: tuple[str, str], n: str) -> None:
    """Write some lines of ``c`` to columns of the result, squares of as many numbers as there are lanes at a time."""
    lanes, (first, last) = code.lanes, lines

    def copied(line: str, column: str) -> None:
        x = code.put(f"load float, ptr {code.at(c, code.add(code.times(line, code['c_row']), column))}, align 4")
        at = code.at(result, code.add(code.times(column, code["result_row"]), line))
        code.lines.append(f"  store float {x}, ptr {at}, align 4")

    whole, wide = (code.put(f"and i64 {x}, {-lanes}") for x in (code.put(f"sub i64 {last}, {first}"), n))
    with code.loop(first, last, str(lanes)) as line:
        sources = [code.at(c, code.times(code.add(line.index, str(i)), code["c_row"])) for i in range(lanes)]
        with code.loop("0", n, str(lanes)) as column:
            for i, numbers in enumerate(code.turned([code.load(x, column.index) for x in sources])):
                at = code.times(code.add(column.index, str(i)), code["result_row"])
                code.store(numbers, result, code.add(at, line.index))
        with code.loop(wide, n, "1") as column:
            for i in range(lanes):
                copied(code.add(line.index, str(i)), column.index)
    with code.loop(code.add(first, whole), last, "1") as line, code.loop("0", n, "1") as column:
        copied(line.index, column.index)


def of_chunk(code: Chunk, rows: int, columns: int) -> tuple[str, str, str, str, str]:
    """Of a chunk: its first tile and the one after its last, its first column and how many it has, and the second matrix."""
    line = code.put(f"sdiv i64 %chunk, {code['across']}")
    first = code.times(line, code["tiles"])
    last = code.least(code.add(first, code["tiles"]), _tiles(code, rows))
    wide = code.times(code["panels"], str(code.lanes * columns))
    column = code.times(code.put(f"sub i64 %chunk, {code.times(line, code['across'])}"), wide)
    n = code.least(code.put(f"sub i64 {code['n']}, {column}"), wide)
    packed = code.at(code["packed"], code.times(column, code["k"]))
    other = code.put(f"select i1 {_is_direct(code)}, ptr {code.at(code['b'], column)}, ptr {packed}")
    return first, last, column, n, other


def _each(lanes: int, rows: int, columns: int) -> str:
    code = Chunk(lanes)
    spare = code.put(f"alloca [{lanes * columns} x float], align 64")
    packed = code.at(code["packed"], code.times("%chunk", code["scratch"]))
    first = code.times("%chunk", code["per"])
    last = code.least(code.add(first, code["per"]), code["count"])
    tiles = _tiles(code, rows)
    with code.loop(first, last, "1") as i:
        a, b, c = (
            code.at(code[x], code.times(i.index, code[step]))
            for x, step in (("a", "a_next"), ("b", "b_next_matrix"), ("c", "c_next"))
        )
        begins = code.put(f"icmp eq i64 {i.index}, {first}")
        differs = code.put(f"icmp ne i64 {code['b_next_matrix']}, 0")
        needed = code.put(f"zext i1 {code.put(f'or i1 {begins}, {differs}')} to i64")
        needed = code.put(f"select i1 {_is_direct(code)}, i64 0, i64 {needed}")
        other = code.put(f"select i1 {_is_direct(code)}, ptr {b}, ptr {packed}")
        with code.loop("0", needed, "1"):
            code.invoke("pack", [b, packed], [code["n"], code["k"], code["b_step"], code["b_next"]])
        _invoke(code, [a, other, c, spare, code["bias"]], "0", tiles, code["n"], lanes * columns)
    return code.definition_of_chunk("gemm_each")


CHUNK = 1 << 21  # multiplications of float32 numbers of a chunk, at least: 20 us; to wake a worker takes 15
PARTS = 4  # chunks for each thread
PARTS_COPIED = 2  # the same, of rows that are copied: each copies the second matrix
FEW = 12  # tiles of rows, up to which the second matrix is read where it is, if it can be
COPIED = 192  # the same, where its panels are copied as they are read: for so many packing takes as long
# ufuncs of a, b, a bias, and memory for the packed matrix; of a batch it may have room for several
SIGNATURES = {"product": "(m,k),(k,n),(s)->(m,n)", "product_and_bias": "(m,k),(k,n),(n),(s)->(m,n)"}


def _loop(lanes: int, unit: Unit, name: str) -> str:
    """A loop of a NumPy ufunc. What it is given are the words `runtime.current`."""
    rows, columns = unit.tiles[lanes]
    code, width, least = Code(lanes), lanes * columns, CHUNK * unit.times
    biased = name == "product_and_bias"
    operands = ("a", "b", "bias", "packed", "c") if biased else ("a", "b", "packed", "c")
    inner = ("a_row", "a_step", "b_step", "b_next", *(["bias"] if biased else []), "packed", "c_row")
    pointer = {x: code.put(f"load ptr, ptr {code.at('%args', str(i), 'ptr')}") for i, x in enumerate(operands)}
    count, m, k, n, room = (code.number("%sizes", str(i)) for i in range(5))
    step = {x: _quarter(code, i) for i, x in enumerate(operands)}
    strides = {x: _quarter(code, len(operands) + i) for i, x in enumerate(inner) if x not in ADDRESSES}
    turned = {"result": "null", "of_row": "null", "result_row": "0"}
    turns = "false"
    if _turns(lanes, unit):
        turns = _is_turned(code, (count, m, n, k), strides, width)
        m, n = _other(code, turns, m, n), _other(code, turns, n, m)
        turned = _exchange(code, turns, pointer, strides, (n, k), width)
    run, control = (code.put(f"load ptr, ptr {code.at('%given', str(i), 'i64')}") for i in range(2))
    threads = code.number("%given", "2")
    tiles, panels = _upwards(code, m, str(rows)), _upwards(code, n, str(width))
    packed = code.times(code.times(panels, str(width)), k)
    work = code.times(code.times(m, n), k)
    many = code.put(f"select i1 {code.put(f'icmp sgt i64 {threads}, 1')}, i64 {code.times(threads, str(PARTS))}, i64 1")

    # chunks of one product: of rows, where they are many; else of columns, that a panel is read for many tiles
    parts = _most(code, code.least(many, code.put(f"sdiv i64 {work}, {least}")), "1")
    tall = code.put(f"icmp sge i64 {tiles}, {code.times(parts, '8')}")
    across = code.put(f"select i1 {tall}, i64 1, i64 {code.least(panels, parts)}")
    lines = parts
    if lanes == products.COPYING:
        copied = code.put(f"and i1 {tall}, {products.are_copied(code, strides['a_row'], strides['a_step'])}")
        fewer = code.least(parts, code.times(threads, str(PARTS_COPIED)))
        lines = _other(code, copied, parts, fewer)
    down = code.least(tiles, _upwards(code, lines, across))
    per, beside = _upwards(code, tiles, down), _upwards(code, panels, across)
    per = code.add(per, code.put(f"select i1 {turns}, i64 {code.put(f'and i64 {per}, 1')}, i64 0"))  # whole squares
    across = _upwards(code, panels, beside)
    chunks = code.times(_upwards(code, tiles, per), across)
    packing = _upwards(code, panels, code.least(panels, parts))

    # chunks of a batch
    some = code.least(code.least(count, many), code.put(f"sdiv i64 {room}, {packed}"))
    enough = code.put(f"sdiv i64 {code.times(work, count)}, {least}")
    each = _upwards(code, count, _most(code, code.least(some, enough), "1"))
    alike = code.put(f"icmp sge i64 {count}, {code.times(threads, '2')}")
    one = code.put(f"icmp eq i64 {count}, 1")
    together = code.put(f"select i1 {one}, i64 0, i64 {code.put(f'zext i1 {alike} to i64')}")
    alone = code.times(count, code.put(f"sub i64 1, {together}"))

    words = code.put(f"alloca [{len(FIELDS)} x i64], align 64")
    table = code.put("alloca [6 x i64], align 64")
    beside_each_other = code.put(f"icmp eq i64 {strides['b_next']}, 1")
    vectors = code.put(f"icmp eq i64 {code.put(f'srem i64 {n}, {lanes}')}, 0")
    few = code.put(f"icmp sle i64 {m}, {(COPIED if lanes == products.COPYING else FEW) * rows}")
    read = code.put(f"and i1 {beside_each_other}, {code.put(f'and i1 {vectors}, {few}')}")
    direct = code.put(f"zext i1 {read} to i64")
    packing_chunks = code.put(f"select i1 {read}, i64 0, i64 {_upwards(code, panels, packing)}")
    fixed = {
        "m": m, "n": n, "k": k, **strides, "more": str(int(biased)), "tiles": per, "panels": beside, "across": across,
        "pack_panels": packing, "direct": direct, "count": count, "per": each, "a_next": step["a"], "b_next_matrix": step["b"],
        "c_next": step["c"], "scratch": packed, "result_row": turned["result_row"],
    }  # fmt: skip
    for field, value in fixed.items():
        _write(code, words, FIELDS.index(field), "i64", value)
    for field in (*ADDRESSES, *TURNED[:2]):
        _write(code, words, FIELDS.index(field), "ptr", (pointer | turned).get(field, "null"))
    with code.loop("0", together, "1"):
        _phase(code, table, 0, "each", words, _upwards(code, count, each))
        code.lines.append(f"  call void {run}(ptr {control}, ptr {table}, i64 1, i64 {threads})")
    with code.loop("0", alone, "1") as i:
        for field in ("a", "b", "c"):
            matrix = code.at(pointer[field], code.times(i.index, step[field]))
            _write(code, words, FIELDS.index(field), "ptr", matrix)
        _phase(code, table, 0, "pack", words, packing_chunks)
        _phase(code, table, 1, "multiply", words, chunks)
        code.lines.append(f"  call void {run}(ptr {control}, ptr {table}, i64 2, i64 {threads})")
    head = f"define void @{name}(ptr %args, ptr %sizes, ptr %steps, ptr %given) {{\nentry:"
    return "\n".join([head, *code.lines, "  ret void\n}"])


def _is_turned(code: Code, sizes: tuple[str, str, str, str], strides: dict[str, str], width: int) -> str:
    """Whether a product is computed as ``(b^T a^T)^T``: the second matrix would be packed, by squares, and that moves more
    numbers than to pack the first one and to turn the result. (There is room then for both in the place of the packed
    matrix.)
    """
    count, m, n, k = sizes
    others = code.times(code.add(m, str(width)), code.add(k, n))
    tests = [f"eq i64 {count}, 1", f"eq i64 {strides['b_step']}, 1", f"ne i64 {strides['b_next']}, 1",
             f"sle i64 {others}, {code.times(n, k)}"]  # fmt: skip
    holds = [code.put(f"icmp {test}") for test in tests]
    return functools.reduce(lambda x, y: code.put(f"and i1 {x}, {y}"), holds)


def _exchange(
    code: Code, turns: str, pointer: dict[str, str], strides: dict[str, str], sizes: tuple[str, str], width: int
) -> dict[str, str]:
    """Let the matrices be each other's where a product ``turns``; `TURNED`."""
    n, k = sizes
    turned = {
        "result": code.put(f"select i1 {turns}, ptr {pointer['c']}, ptr null"),
        "of_row": code.put(f"select i1 {turns}, ptr {pointer.get('bias', 'null')}, ptr null"),
        "result_row": strides["c_row"],
    }
    room = code.times(code.times(_upwards(code, n, str(width)), str(width)), k)
    pointer["c"] = _other(code, turns, pointer["c"], code.at(pointer["packed"], room), "ptr")
    if "bias" in pointer:
        pointer["bias"] = _other(code, turns, pointer["bias"], "null", "ptr")
    for table, x, y, kind in (
        (pointer, "a", "b", "ptr"),
        (strides, "a_row", "b_next", "i64"),
        (strides, "a_step", "b_step", "i64"),
    ):
        one, two = table[x], table[y]
        table[x], table[y] = _other(code, turns, one, two, kind), _other(code, turns, two, one, kind)
    line = code.put(f"and i64 {code.add(n, str(code.lanes - 1))}, {-code.lanes}")  # whole vectors
    strides["c_row"] = _other(code, turns, strides["c_row"], line)
    return turned


def _other(code: Code, test: str, x: str, y: str, kind: str = "i64") -> str:
    """``y`` where the test holds, else ``x``."""
    return code.put(f"select i1 {test}, {kind} {y}, {kind} {x}")


def _upwards(code: Code, x: str, y: str) -> str:
    """The quotient, rounded up."""
    return code.put(f"sdiv i64 {code.put(f'sub i64 {code.add(x, y)}, 1')}, {y}")


def _most(code: Code, a: str, b: str) -> str:
    return code.put(f"select i1 {code.put(f'icmp sgt i64 {a}, {b}')}, i64 {a}, i64 {b}")


def _quarter(code: Code, i: int) -> str:
    """A step of bytes, in numbers."""
    return code.put(f"ashr i64 {code.number('%steps', str(i))}, 2")


def _write(code: Code, base: str, i: int, kind: str, value: str) -> None:
    code.lines.append(f"  store {kind} {value}, ptr {code.at(base, str(i), 'i64')}")


def _phase(code: Code, table: str, row: int, name: str, words: str, chunks: str) -> None:
    for i, (kind, value) in enumerate((("ptr", f"@gemm_{name}"), ("ptr", words), ("i64", chunks))):
        _write(code, table, 3 * row + i, kind, value)


def _tiles(code: Chunk, rows: int) -> str:
    return code.put(f"sdiv i64 {code.add(code['m'], str(rows - 1))}, {rows}")


def _is_null(code: Chunk, name: str) -> str:
    return code.put(f"icmp eq ptr {code[name]}, null")


def _is_direct(code: Chunk) -> str:
    return code.put(f"icmp ne i64 {code['direct']}, 0")


def _invoke(code: Chunk, pointers: list[str], first: str, last: str, n: str, width: int) -> None:
    sizes = [code["m"], n, code["k"], *of_panels(code, width)]
    code.invoke("multiply", pointers, [first, last, *sizes, *[code[x] for x in ("a_row", "a_step", "c_row", "more")]])


def of_panels(code: Chunk, width: int) -> tuple[str, str]:
    """``high`` and ``wide``, of a second matrix that is packed or where it is."""
    direct = _is_direct(code)
    high = code.put(f"select i1 {direct}, i64 1, i64 {code['k']}")
    return high, code.put(f"select i1 {direct}, i64 {code['b_step']}, i64 {width}")
