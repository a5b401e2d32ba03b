"""Loops printed as LLVM code.

A value has as many lanes as the vector loop around it where it depends on the axis of vectors, else one; it is written
where the last thing that it needs has a value, so what does not change in a loop stands before it. A vector loop of n
rounds is one over whole vectors, and behind it a vector that has the lanes that are left.

    define void @kernel(ptr %addresses, i64 %chunk) #0 {
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from genesis.core.call.scalars import Expression
from genesis.jit.lowering import scalar_code
from genesis.jit.lowering.loops import (
    CALLED,
    CHUNK,
    Affine,
    Axis,
    Count,
    For,
    Load,
    Needs,
    Nest,
    Statement,
    Store,
    Total,
    Value,
    arguments,
    made_in,
    neutral,
    values_of,
)
from genesis.jit.lowering.scalar_code import SIZES, cast, kind_of
from genesis.kernels.llvm import draws, values
from genesis.kernels.llvm.values import Code

Sums = list[values.Value]


def emitted(nest: Nest, name: str, width: int, parameters: str = "i64 %chunk", linkage: str = "") -> str:
    """The function ``name`` and what it calls, for vectors of so many bytes."""
    printer = _Printer(nest, width)
    printer.block(nest.body)
    code = printer.code
    heads = [f"{p} = load ptr, ptr {p}.at" for p in printer.pointers]
    slots = [f"{p}.at = getelementptr ptr, ptr %addresses, i64 {i}" for i, p in enumerate(printer.pointers)]
    lines = [line for pair in zip(slots, heads, strict=True) for line in pair] + printer.buffers + code.lines
    body = "\n".join([line if line.endswith(":") else f"  {line}" for line in lines])
    declared = "\n".join(code.declared.values())
    head = f"define {linkage}void @{name}(ptr %addresses, {parameters}) #0 {{"
    return f"{declared}\n{head}\nentry:\n{body}\n  ret void\n}}\n"


SOME = "i64 %start, i64 %stop"  # parameters of a function whose loop is told where to begin and to end


class _Printer:
    def __init__(self, nest: Nest, width: int) -> None:
        self.nest, self.needs = nest, Needs()
        # float32 results of what is computed in float64 allow shorter formulas
        self.code = Code(1, short=not any([d.char == "d" for d in nest.operands]))
        self.most = width // (4 if any([d.itemsize <= 4 for d in nest.operands]) else 8)  # lanes, at most
        self.pointers = [f"%p{i}" for i in range(len(nest.operands))]
        self.counts: dict[Axis, str] = {CHUNK: "%chunk"}
        self.scopes: list[dict[object, values.Value]] = [{}]
        self.axis: Axis | None = None  # that of vectors; the lanes they have now, and all but the last one
        self.width = self.whole = 1
        self.buffers: list[str] = []  # memory of the function

    # ---- values

    def lanes(self, value: Value) -> int:
        return self.width if self.axis in self.needs(value) else 1

    def wanted(self, value: Value, lanes: int) -> values.Value:
        """A value with so many lanes."""
        if isinstance(value, Expression) and value.name == "number":
            self.code.lanes = lanes
            return scalar_code.constant(self.code, value.args[0], value.dtype)
        given = self.value(value)
        return given if self.lanes(value) == lanes else self._spread(value, given, lanes)

    def _spread(self, value: Value, given: values.Value, lanes: int) -> values.Value:
        key = (value, lanes)
        known = self._known(key)
        if known is None:
            kind = given.kind
            mask = f"<{lanes} x i32> zeroinitializer"
            text = f"shufflevector <1 x {kind}> {given}, <1 x {kind}> poison, {mask}"
            known = self.scopes[-1][key] = self.code.write(kind, text)
        return known

    def _known(self, key: object) -> values.Value | None:
        return next((scope[key] for scope in reversed(self.scopes) if key in scope), None)

    def value(self, value: Value) -> values.Value:
        """A value with its own lanes, written if it is not there yet."""
        known = self._known(value)
        if known is None:
            assert not isinstance(value, Total), "a total is there behind its loop"
            write = {Load: self._loaded, Count: self._counting}.get(type(value), self._computed)
            known = write(value)  # type: ignore[operator]
            self.scopes[-1][value] = known
        return known

    def _computed(self, value: Expression) -> values.Value:
        code, lanes = self.code, self.lanes(value)
        operands = [self.wanted(a, lanes) for a in arguments(value)] if value.name != "uniform" else []
        code.lanes = lanes
        if value.name == "number":
            return scalar_code.constant(code, value.args[0], value.dtype)
        if value.name == "uniform":
            return self._uniform(value)
        if value.name == "cast":
            return cast(operands[0], value.args[0].dtype, value.dtype)
        if value.name == "where":
            return scalar_code.chosen(*operands)
        return scalar_code.applied(value.name, code, arguments(value)[0].dtype, operands)

    def _counting(self, value: Count) -> values.Value:
        code, lanes = self.code, self.lanes(value)
        one = code.write("i64", f"insertelement <1 x i64> poison, i64 {self._offset(value.at)}, i32 0")
        first = code.write("i64", f"shufflevector <1 x i64> {one}, <1 x i64> poison, <{lanes} x i32> zeroinitializer")
        stride = value.at.stride(self.axis)
        code.lanes = lanes
        steps = ", ".join([f"i64 {stride * i}" for i in range(lanes)])
        return first if lanes == 1 else first + values.Value(code, f"<{steps}>", "i64")

    # ---- random numbers

    def _uniform(self, value: Expression) -> values.Value:
        """Numbers in [0, 1): the first bits of words."""
        code, lanes = self.code, self.lanes(value)
        *state, count, before, bits = value.args
        assert isinstance(count, Count)
        of_stream = ", ".join([f"i64 {self._scalar(each)}" for each in state])
        first = code.write("i64", f"add i64 {self._offset(count.at)}, {self._scalar(before)}")
        stride = count.at.stride(self.axis)
        if lanes == 1 or stride == 1:
            words = code.write("i64", f"load <{lanes} x i64>, ptr {self._words(of_stream, first, lanes)}, align 8")
        else:
            words = values.Value(code, "poison", "i64")
            for lane in range(lanes):
                number = code.write("i64", f"add i64 {first}, {stride * lane}")
                word = code.write("i64", f"load i64, ptr {self._words(of_stream, number, 1)}, align 8")
                words = code.write("i64", f"insertelement <{lanes} x i64> {words}, i64 {word}, i32 {lane}")
        code.lanes = lanes
        kind, integers = kind_of(value.dtype), code.vector("i64")
        digits = code.write("i64", f"lshr {integers} {words}, {code.constant(64 - bits, 'i64')}")
        if kind == "float":
            digits = code.write("i32", f"trunc {integers} {digits} to {code.vector('i32')}")
        return code.write(kind, f"sitofp {code.vector(digits.kind)} {digits} to {code.vector(kind)}") * 2.0**-bits

    def _words(self, of_stream: str, first: values.Value, many: int) -> values.Value:
        """A pointer to so many words of a stream from a number on, whose blocks are computed into memory of the function."""
        code = self.code
        code.declared["blocks_of_words"] = draws.blocks()
        if not self.buffers:
            room = draws.WORDS * (self.most // draws.WORDS + 2)
            self.buffers.append(f"%words = alloca [{room} x i64], align 64")
        block = code.write("i64", f"lshr i64 {first}, 2")
        last = code.write("i64", f"lshr i64 {code.write('i64', f'add i64 {first}, {many - 1}')}, 2")
        blocks = code.write("i64", f"add i64 {code.write('i64', f'sub i64 {last}, {block}')}, 1")
        code.lines.append(f"call void @blocks_of_words(ptr %words, {of_stream}, i64 {block}, i64 {blocks})")
        return code.write("ptr", f"getelementptr i64, ptr %words, i64 {code.write('i64', f'and i64 {first}, 3')}")

    def _scalar(self, value: Value) -> values.Value:
        """An integer that is the same in all lanes."""
        return self.code.write("i64", f"extractelement <1 x i64> {self.wanted(value, 1)}, i32 0")

    # ---- memory

    def _offset(self, at: Affine) -> str:
        """The number of elements, for the first lane."""
        constant, terms = at.constant, []
        for axis, stride in at.steps:
            count = self.counts[axis]
            if not count.startswith("%"):
                constant += int(count) * stride
            elif stride:
                terms.append(self._times(count, stride))
        for term in terms[1:]:
            terms[0] = self._integer(f"add i64 {terms[0]}, {term}")
        if not terms:
            return str(constant)
        return self._integer(f"add i64 {terms[0]}, {constant}") if constant else terms[0]

    def _times(self, count: str, stride: int) -> str:
        return count if stride == 1 else self._integer(f"mul i64 {count}, {stride}")

    def _integer(self, text: str) -> str:
        """An instruction on integers, once in a loop."""
        known = self._known(text)
        if known is None:
            known = self.scopes[-1][text] = self.code.write("i64", text)
        return str(known)

    def _addresses(self, each: Load | Store, lanes: int) -> tuple[str, str, str]:
        """A pointer, the type of elements in memory, and for strided lanes a vector of pointers."""
        dtype, code = self.nest.operands[each.operand], self.code
        kind = "i8" if dtype.kind == "b" else kind_of(dtype)
        pointer = f"{self.pointers[each.operand]}, i64 {self._offset(each.at)}"
        pointer = str(code.write("ptr", f"getelementptr {kind}, ptr {pointer}"))
        stride = each.at.stride(self.axis)
        if each.index is not None:
            own = self.lanes(each.index)
            index = self.wanted(each.index, own)
            code.lanes = own
            index = index * each.step
            if own > 1:
                offsets = index + values.Value(code, f"<{', '.join([f'i64 {stride * i}' for i in range(own)])}>", "i64")
                return (
                    pointer,
                    kind,
                    str(code.write("ptr", f"getelementptr {kind}, ptr {pointer}, <{own} x i64> {offsets}")),
                )
            first = code.write("i64", f"extractelement <1 x i64> {index}, i32 0")
            pointer = str(code.write("ptr", f"getelementptr {kind}, ptr {pointer}, i64 {first}"))
        if lanes == 1 or stride == 1:
            return pointer, kind, ""
        steps = ", ".join([f"i64 {stride * i}" for i in range(lanes)])
        many = code.write("ptr", f"getelementptr {kind}, ptr {pointer}, <{lanes} x i64> <{steps}>")
        return pointer, kind, str(many)

    def _loaded(self, load: Load, lanes: int = 0) -> values.Value:
        lanes, code = lanes or self.lanes(load), self.code
        pointer, kind, many = self._addresses(load, lanes)
        code.lanes = lanes
        vector, size = code.vector(kind), SIZES[kind]
        if not many:
            value = code.write(kind, f"load {vector}, ptr {pointer}, align {size}")
        else:
            name = f"llvm.masked.gather.v{lanes}{_suffix(kind)}.v{lanes}p0"
            mask = f"<{lanes} x i1>"
            code.declared[name] = f"declare {vector} @{name}(<{lanes} x ptr>, i32, {mask}, {vector})"
            every = f"<{', '.join(['i1 true'] * lanes)}>"
            value = code.write(
                kind, f"call {vector} @{name}(<{lanes} x ptr> {many}, i32 {size}, {mask} {every}, {vector} poison)"
            )
        return ~value.equals(0) if load.dtype.kind == "b" else value

    def _stored(self, store: Store, value: values.Value, lanes: int) -> None:
        code = self.code
        code.lanes = lanes
        dtype = self.nest.operands[store.operand]
        if store.adds:
            there = self._loaded(Load(store.operand, store.at, dtype, store.index, store.step), lanes)
            value = scalar_code.applied("add", code, dtype, [there, value])
        if dtype.kind == "b":
            value = code.write("i8", f"zext {code.vector('i1')} {value} to {code.vector('i8')}")
        pointer, kind, many = self._addresses(store, lanes)
        code.lanes = lanes
        vector, size = code.vector(kind), SIZES[kind]
        if not many:
            code.lines.append(f"store {vector} {value}, ptr {pointer}, align {size}")
            return
        name = f"llvm.masked.scatter.v{lanes}{_suffix(kind)}.v{lanes}p0"
        mask = f"<{lanes} x i1>"
        code.declared[name] = f"declare void @{name}({vector}, <{lanes} x ptr>, i32, {mask})"
        every = f"<{', '.join(['i1 true'] * lanes)}>"
        code.lines.append(f"call void @{name}({vector} {value}, <{lanes} x ptr> {many}, i32 {size}, {mask} {every})")

    # ---- statements

    def block(self, body: tuple[Statement, ...]) -> None:
        """Values first, then what is stored: what a round reads are the values before it."""
        stores = []
        for each in body:
            if isinstance(each, For):
                self.loop(each)
            else:
                stores.append((each, self._store_lanes(each)))
        given = [self.wanted(each.value, lanes) for each, lanes in stores]
        for (each, lanes), value in zip(stores, given, strict=True):
            self._stored(each, value, lanes)

    def _store_lanes(self, store: Store) -> int:
        varies = self.axis is not None and store.at.stride(self.axis) != 0
        varies |= store.index is not None and self.axis in self.needs(store.index)
        return self.width if varies else self.lanes(store.value)

    def loop(self, loop: For) -> None:
        if loop.vector:
            self.axis = loop.axes[-1]
            extent = self.axis.extent
            self.width = self.whole = self.most if extent == CALLED else min(self.most, max(extent, 1))
        sums = [self._start(total) for total in loop.totals]
        types = [f"<{self._sum_lanes(total)} x {kind_of(total.dtype)}>" for total in loop.totals]
        sums = self._axes(loop, list(loop.axes), sums, types)
        if loop.vector:
            sums = [self._joined(total, x, self.whole) for total, x in zip(loop.totals, sums, strict=True)]
            self.axis, self.width = None, 1
        for total, x in zip(loop.totals, sums, strict=True):
            self.scopes[-1][total] = x

    def _start(self, total: Total) -> values.Value:
        self.code.lanes = self._sum_lanes(total)
        return scalar_code.constant(self.code, neutral(total), total.dtype)

    def _sum_lanes(self, total: Total) -> int:
        return self.whole if self.axis in total.axes else self.lanes(total.value)

    def _axes(self, loop: For, axes: list[Axis], sums: Sums, types: list[str]) -> Sums:
        self._hoisted(loop, axes)
        axis, rest = axes[0], axes[1:]
        if rest:
            return self._rounds(axis, 1, sums, types, lambda s: self._axes(loop, rest, s, types))
        step = self.whole if loop.vector else 1
        sums = self._rounds(axis, step, sums, types, lambda s: self._round(loop, s))
        if axis.extent == CALLED:
            return self._singly(loop, axis, sums, types)
        left = axis.extent % step
        if left:
            self.width = left
            sums = self._rounds(axis, left, sums, types, lambda s: self._round(loop, s), axis.extent - left)
            self.width = self.whole
        return sums

    def _singly(self, loop: For, axis: Axis, sums: Sums, types: list[str]) -> Sums:
        """What vectors have left, one by one."""
        count = self._integer("sub i64 %stop, %start")
        left = self._integer(f"urem i64 {count}, {self.whole}")
        self.width = 1
        sums = self._rounds(
            axis, 1, sums, types, lambda s: self._round(loop, s), self._integer(f"sub i64 %stop, {left}")
        )
        self.width = self.whole
        return sums

    def _round(self, loop: For, sums: Sums) -> Sums:
        self.block(loop.body)
        return [self._added(total, x) for total, x in zip(loop.totals, sums, strict=True)]

    def _added(self, total: Total, so_far: values.Value) -> values.Value:
        code, lanes = self.code, self.width if self.axis in total.axes else self.lanes(total.value)
        value = self.wanted(total.value, lanes)
        if self.axis in total.axes and lanes < self.whole:
            value, lanes = self._padded(total, value, lanes, self.whole), self.whole
        code.lanes = lanes
        return scalar_code.applied(total.op, code, total.dtype, [so_far, value])

    def _padded(self, total: Total, value: values.Value, lanes: int, wide: int) -> values.Value:
        """More lanes, with what changes nothing in the new ones."""
        code = self.code
        code.lanes = lanes
        rest = scalar_code.constant(code, neutral(total), total.dtype)
        mask = ", ".join([f"i32 {min(i, lanes)}" for i in range(wide)])
        vector = code.vector(value.kind)
        text = f"shufflevector {vector} {value}, {vector} {rest}, <{wide} x i32> <{mask}>"
        return code.write(value.kind, text)

    def _joined(self, total: Total, value: values.Value, lanes: int) -> values.Value:
        """All lanes in one, in pairs."""
        even = 1 << (lanes - 1).bit_length()
        if even != lanes:
            value = self._padded(total, value, lanes, even)
        code = self.code
        while even > 1:
            vector, even = f"<{even} x {value.kind}>", even // 2
            halves = []
            for first in (0, even):
                mask = ", ".join([f"i32 {first + i}" for i in range(even)])
                text = f"shufflevector {vector} {value}, {vector} poison, <{even} x i32> <{mask}>"
                halves.append(code.write(value.kind, text))
            code.lanes = even
            value = scalar_code.applied(total.op, code, total.dtype, halves)
        return value

    def _hoisted(self, loop: For, axes: list[Axis]) -> None:
        """Write what does not change in the rounds of these axes."""
        inside = {*axes, *made_in(loop)}
        seen: set[Value] = set()

        def visit(value: Value) -> None:
            if value in seen:
                return
            seen.add(value)
            if self.needs(value) & inside:
                for a in () if isinstance(value, Total) else arguments(value):
                    visit(a)
            elif not (isinstance(value, Expression) and value.name == "number"):
                self.value(value)

        for value in values_of(loop):
            visit(value)

    # ---- rounds

    def _rounds(
        self, axis: Axis, step: int, sums: Sums, types: list[str], body: Callable[[Sums], Sums], first: int | str = 0
    ) -> Sums:
        """From ``first`` on while a whole step fits; of a chunk only what is in it."""
        start, stop, only = self._bounds(axis, step, first)
        if only is not None and only < 1:
            return sums
        if only == 1:
            with self._counted(axis, start):
                return body(sums)
        code, before = self.code, self.code.block
        tag, count, end = code.name()[1:], code.name(), code.name()
        code.lines.append(f"br label %{tag}")
        code.mark(tag)
        head = len(code.lines)
        code.lines.append(f"{end} = add i64 {count}, {step}")
        fits = code.write("i1", f"icmp sle i64 {end}, {stop}")
        code.lines.append(f"br i1 {fits}, label %{tag}b, label %{tag}e")
        code.mark(f"{tag}b")
        inside = [values.Value(code, code.name(), x.kind) for x in sums]
        with self._counted(axis, count):
            after = body(inside)
        phis = [f"{count} = phi i64 [ {start}, %{before} ], [ {end}, %{code.block} ]"]
        for old, new, x, kind in zip(sums, after, inside, types, strict=True):
            phis.append(f"{x} = phi {kind} [ {old}, %{before} ], [ {new}, %{code.block} ]")
        code.lines[head:head] = phis
        code.lines.append(f"br label %{tag}")
        code.mark(f"{tag}e")
        return inside

    def _bounds(self, axis: Axis, step: int, first: int | str) -> tuple[str, str, int | None]:
        if axis.extent == CALLED:
            return str(first or "%start"), "%stop", None
        if axis.chunk is None:
            return str(first), str(axis.extent), (axis.extent - int(first)) // step
        start = self._integer(f"mul i64 %chunk, {axis.chunk}")
        end = self._integer(f"add i64 {start}, {axis.chunk}")
        past = str(self.code.write("i1", f"icmp slt i64 {end}, {axis.extent}"))
        stop = str(self.code.write("i64", f"select i1 {past}, i64 {end}, i64 {axis.extent}"))
        return (str(first) if first else start), stop, None

    @contextmanager
    def _counted(self, axis: Axis, count: str) -> Iterator[None]:
        self.counts[axis] = count
        self.scopes.append({})
        yield
        self.scopes.pop()
        del self.counts[axis]


def _suffix(kind: str) -> str:
    return {"float": "f32", "double": "f64", "half": "f16"}.get(kind, kind)
