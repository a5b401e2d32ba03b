"""LLVM code of a whole step: its kernels in one module, the functions of its phases, and what every call begins with."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from genesis.jit.lowering.phases import Phase

_SYMBOL = re.compile(r"@([-\w.$]+|\"[^\"]*\")")
_GROUP = re.compile(r"#(\d+)")


def module(codes: Iterable[str]) -> str:
    """Pieces of code as one: what several of them define or declare is there once."""
    items: dict[str, str] = {}  # by symbol
    groups: dict[str, int] = {}  # of attributes: their numbers, by content
    for code in codes:
        numbers = {
            match[1]: groups.setdefault(match[2], len(groups))
            for match in re.finditer(r"^attributes #(\d+) = (\{.*\})$", code, re.M)
        }
        for item in _items(code):
            symbol = _SYMBOL.search(item)
            key = symbol[0] if symbol else item
            if item.startswith("attributes "):
                continue
            if key not in items or items[key].startswith("declare"):
                items[key] = _GROUP.sub(lambda match, new=numbers: f"#{new[match[1]]}", item)  # type: ignore[misc]
    return "\n".join([*items.values(), *[f"attributes #{number} = {text}" for text, number in groups.items()]]) + "\n"


def _items(code: str) -> Iterable[str]:
    """Functions, and lines outside of functions."""
    lines = iter(code.splitlines())
    for line in lines:
        if line.startswith("define"):
            body = [line]
            while body[-1] != "}":
                body.append(next(lines))
            yield "\n".join(body)
        elif line.strip() and not line.startswith(";"):
            yield line


def function_of(phase: Phase) -> tuple[str, str]:
    """The name and the code of the function that does a chunk of a phase: its stages, one after the other."""
    names = [stage.kernel.name for stage in phase.stages]
    if len(names) == 1:
        return names[0], ""
    sizes = [len(stage.operands) for stage in phase.stages]
    name = "phase_" + hashlib.sha256("\0".join(map(str, [*names, *sizes])).encode()).hexdigest()[:16]
    lines = [f"define void @{name}(ptr %addresses, i64 %chunk) {{"]
    for i, kernel in enumerate(names):
        lines += [
            f"  %a{i} = getelementptr ptr, ptr %addresses, i64 {sum(sizes[:i])}",
            f"  call void @{kernel}(ptr %a{i}, i64 %chunk)",
        ]
    return name, "\n".join([*lines, "  ret void", "}", ""])


FIELDS = (
    "takes", "returns", "entries_count", "known", "now", "extents", "written", "entries", "cells",
    "task", "run", "control", "rows", "count", "threads", "checks", "checks_count", "flags", "flags_count",
    "numbers", "numbers_count", "class_of_numbers",
)  # fmt: skip
FIXED = len(FIELDS)  # words of a context before those that a call sets
GIVEN = ("takes_tuple", "returns_tuple", "numbers_tuple")
GATHER, CHECK, RUN = 1, 2, 4  # bits of the task


def enter(items: int, data: int) -> str:
    """The code of ``i64 enter(ptr words)``, what a call of a step goes through.

    The words, see `FIELDS`: how many arrays are taken and returned, and how many entries there are; the addresses of

        known     the address of each array at the last call
        now       the same of this call
        extents   where the elements of an array that is taken begin and end, in bytes from its address
        written   whether it is written to
        entries   which array (those that are returned count on), which cell is to have its address, and how many bytes
                  are added
        cells

    then the task: to bring the addresses of arrays, which are in two tuples of Python, into cells, and the numbers of the
    host, which are in a third, to where they are read (`GATHER`), or return 3, if one is no ``float``; to check
    (`CHECK`) whether one that is written to may overlap another, if the address of one of the two is a new one, and if
    so return 1. Then rows of a table that come first (``checks``) set flags: where one is not 0, it returns 2. Last, to run a table (`RUN`): the address of what does, ``run(control, rows, count, threads)``, and what it
    is called with. Behind `FIXED` words are the addresses of the three tuples, three words for each random stream, and the
    numbers.

    Args:
        items: where a tuple's items begin, in bytes
        data: where in an array's object its address is, and a float's value in its own; the class is the word before
    """
    fields = "\n".join(
        [
            f"  %{name}_at = getelementptr i64, ptr %words, i64 {k}\n"
            f"  %{name} = load {'ptr' if name in _POINTERS else 'i64'}, ptr %{name}_at"
            for k, name in enumerate((*FIELDS, *GIVEN))
        ]
    )
    code = _ENTER + serial().replace("define void", "define internal void")
    return (
        code.replace("FIELDS", fields)
        .replace("ITEMS", str(items))
        .replace("DATA", str(data))
        .replace("CLASS", str(data - 8))
    )


_POINTERS = ("known", "now", "extents", "written", "entries", "cells", "run", "control", "rows", "checks", "flags", "numbers", *GIVEN)  # fmt: skip
_ENTER = """
define i64 @enter(ptr %words) {
begin:
FIELDS
  %gather_bit = and i64 %task, 1
  %gathers = icmp ne i64 %gather_bit, 0
  br i1 %gathers, label %gather, label %finish
gather:
  %rest = getelementptr i64, ptr %now, i64 %takes
  call void @read(ptr %takes_tuple, i64 %takes, ptr %now)
  call void @read(ptr %returns_tuple, i64 %returns, ptr %rest)
  %number_items = getelementptr i8, ptr %numbers_tuple, i64 ITEMS
  br label %number
number:
  %m = phi i64 [ 0, %gather ], [ %next_m, %plain ]
  %more_m = icmp slt i64 %m, %numbers_count
  br i1 %more_m, label %float, label %each
float:
  %item_at = getelementptr ptr, ptr %number_items, i64 %m
  %item = load ptr, ptr %item_at
  %class_at = getelementptr i8, ptr %item, i64 CLASS
  %class = load i64, ptr %class_at
  %is_float = icmp eq i64 %class, %class_of_numbers
  br i1 %is_float, label %plain, label %no_float
plain:
  %value_at = getelementptr i8, ptr %item, i64 DATA
  %value = load i64, ptr %value_at
  %number_at = getelementptr i64, ptr %numbers, i64 %m
  store i64 %value, ptr %number_at
  %next_m = add i64 %m, 1
  br label %number
no_float:
  ret i64 3
each:
  %i = phi i64 [ 0, %number ], [ %next_i, %same ]
  %bad_i = phi i64 [ 0, %number ], [ %bad_s, %same ]
  %more_i = icmp slt i64 %i, %takes
  br i1 %more_i, label %look, label %fill
look:
  %a_at = getelementptr i64, ptr %now, i64 %i
  %k_at = getelementptr i64, ptr %known, i64 %i
  %a = load i64, ptr %a_at
  %k = load i64, ptr %k_at
  %new = icmp ne i64 %a, %k
  br i1 %new, label %changed, label %same
changed:
  store i64 %a, ptr %k_at
  %i2 = shl i64 %i, 1
  %lo_at = getelementptr i64, ptr %extents, i64 %i2
  %hi_at = getelementptr i64, ptr %lo_at, i64 1
  %lo_i = load i64, ptr %lo_at
  %hi_i = load i64, ptr %hi_at
  %low_i = add i64 %a, %lo_i
  %high_i = add i64 %a, %hi_i
  %w_at = getelementptr i64, ptr %written, i64 %i
  %w_i = load i64, ptr %w_at
  %check = and i64 %task, 2
  %checked = icmp ne i64 %check, 0
  br i1 %checked, label %other, label %same
other:
  %j = phi i64 [ 0, %changed ], [ %next_j, %compare ]
  %bad_j = phi i64 [ %bad_i, %changed ], [ %bad, %compare ]
  %more_j = icmp slt i64 %j, %takes
  br i1 %more_j, label %compare, label %same
compare:
  %b_at = getelementptr i64, ptr %now, i64 %j
  %b = load i64, ptr %b_at
  %j2 = shl i64 %j, 1
  %lo_j_at = getelementptr i64, ptr %extents, i64 %j2
  %hi_j_at = getelementptr i64, ptr %lo_j_at, i64 1
  %lo_j = load i64, ptr %lo_j_at
  %hi_j = load i64, ptr %hi_j_at
  %low_j = add i64 %b, %lo_j
  %high_j = add i64 %b, %hi_j
  %w_j_at = getelementptr i64, ptr %written, i64 %j
  %w_j = load i64, ptr %w_j_at
  %w = or i64 %w_i, %w_j
  %some = icmp ne i64 %w, 0
  %differ = icmp ne i64 %i, %j
  %before = icmp slt i64 %low_i, %high_j
  %after = icmp slt i64 %low_j, %high_i
  %one = and i1 %some, %differ
  %two = and i1 %before, %after
  %both = and i1 %one, %two
  %bit = zext i1 %both to i64
  %bad = or i64 %bad_j, %bit
  %next_j = add i64 %j, 1
  br label %other
same:
  %bad_s = phi i64 [ %bad_i, %look ], [ %bad_i, %changed ], [ %bad_j, %other ]
  %next_i = add i64 %i, 1
  br label %each
fill:
  %f = phi i64 [ 0, %each ], [ %next_f, %put ]
  %more_f = icmp slt i64 %f, %entries_count
  br i1 %more_f, label %put, label %gathered
put:
  %f3 = mul i64 %f, 3
  %which_at = getelementptr i64, ptr %entries, i64 %f3
  %cell_at = getelementptr i64, ptr %which_at, i64 1
  %bytes_at = getelementptr i64, ptr %which_at, i64 2
  %which = load i64, ptr %which_at
  %cell = load i64, ptr %cell_at
  %from = getelementptr i64, ptr %now, i64 %which
  %array = load i64, ptr %from
  %bytes = load i64, ptr %bytes_at
  %address = add i64 %array, %bytes
  %to = getelementptr i64, ptr %cells, i64 %cell
  store i64 %address, ptr %to
  %next_f = add i64 %f, 1
  br label %fill
gathered:
  %fine = icmp eq i64 %bad_i, 0
  br i1 %fine, label %first, label %refuse
refuse:
  ret i64 1
first:
  call void @serial(ptr null, ptr %checks, i64 %checks_count, i64 1)
  br label %flag
flag:
  %g = phi i64 [ 0, %first ], [ %next_g, %seen ]
  %more_g = icmp slt i64 %g, %flags_count
  br i1 %more_g, label %seen, label %finish
seen:
  %flag_at = getelementptr i64, ptr %flags, i64 %g
  %set = load i64, ptr %flag_at
  %next_g = add i64 %g, 1
  %clear = icmp eq i64 %set, 0
  br i1 %clear, label %flag, label %wrong
wrong:
  ret i64 2
finish:
  %run_bit = and i64 %task, 4
  %runs = icmp ne i64 %run_bit, 0
  br i1 %runs, label %do, label %done
do:
  call void %run(ptr %control, ptr %rows, i64 %count, i64 %threads)
  br label %done
done:
  ret i64 0
}

define internal void @read(ptr %tuple, i64 %n, ptr %to) {
begin:
  %items = getelementptr i8, ptr %tuple, i64 ITEMS
  br label %loop
loop:
  %i = phi i64 [ 0, %begin ], [ %next, %body ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %done
body:
  %item_at = getelementptr ptr, ptr %items, i64 %i
  %item = load ptr, ptr %item_at
  %data_at = getelementptr i8, ptr %item, i64 DATA
  %data = load i64, ptr %data_at
  %to_at = getelementptr i64, ptr %to, i64 %i
  store i64 %data, ptr %to_at
  %next = add i64 %i, 1
  br label %loop
done:
  ret void
}
"""


def serial() -> str:
    """The code of ``void serial(ptr, ptr rows, i64 count, i64)``: the phases of a table, all chunks in order."""
    return """
define void @serial(ptr %control, ptr %rows, i64 %count, i64 %threads) {
begin:
  br label %row
row:
  %r = phi i64 [ 0, %begin ], [ %next_r, %ended ]
  %more_r = icmp slt i64 %r, %count
  br i1 %more_r, label %look, label %done
look:
  %r3 = mul i64 %r, 3
  %f_at = getelementptr i64, ptr %rows, i64 %r3
  %a_at = getelementptr i64, ptr %f_at, i64 1
  %n_at = getelementptr i64, ptr %f_at, i64 2
  %f = load ptr, ptr %f_at
  %a = load ptr, ptr %a_at
  %n = load i64, ptr %n_at
  br label %chunk
chunk:
  %c = phi i64 [ 0, %look ], [ %next_c, %call ]
  %more_c = icmp slt i64 %c, %n
  br i1 %more_c, label %call, label %ended
call:
  call void %f(ptr %a, i64 %c)
  %next_c = add i64 %c, 1
  br label %chunk
ended:
  %next_r = add i64 %r, 1
  br label %row
done:
  ret void
}
"""


def functions_of(phases: Sequence[Phase]) -> tuple[str, list[str]]:
    """The code of the module of phases, and for each the name of its function."""
    functions = [function_of(phase) for phase in phases]
    kernels = {stage.kernel.name: stage.kernel.code for phase in phases for stage in phase.stages}
    return module([*kernels.values(), *[code for _, code in functions]]), [name for name, _ in functions]
