"""NumPy ufuncs whose loop is compiled: a function of values is all that is written, NumPy does the rest (broadcasting,
layouts, ``out=``, overlapping memory).

    negated = ufunc("negated", lambda x: -x, "float")

The loop takes a vector at a time. Where elements are not beside each other, and at the end, they are brought into a
buffer first, so that there is one copy of the code and the same element always gives the same bits.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from genesis.kernels.llvm import native
from genesis.kernels.llvm.values import Code, Value

Function = Callable[..., Value]
_TYPE_NUMBERS = {"float": np.dtype(np.float32).num, "double": np.dtype(np.float64).num}
_SIZES = {"float": 4, "double": 8}


@functools.cache
def width() -> int:
    """Bytes of the processor's vectors."""
    host = native.host()
    return 16 if host is None else 64 if host.has("avx512f") else 32 if host.has("avx2") else 16


@functools.cache
def available() -> bool:
    """Whether there is llvmlite, and a processor that multiplies and adds in one."""
    host = native.host()
    return host is not None and (host.triple.split("-")[0] in ("aarch64", "arm64") or host.has("fma"))


Spread = Callable[[int, int, int], tuple[int, int]]  # `genesis.kernels.native.runtime.spread`


def ufunc(
    name: str,
    function: Function,
    kind: str,
    operands: int = 1,
    narrow: bool = False,
    results: int = 1,
    spread: Spread | None = None,
) -> np.ufunc:
    """A ufunc that computes ``function`` of arrays of one kind, "float" or "double".

    Args:
        spread: what lets several threads do it
        narrow: compute with float32 numbers as they are, not in float64
        results: how many values the function gives; a tuple where it is not one
    """
    text = loop(name, function, kind, operands, narrow, results)
    compiled, given = native.address(name, text), None
    if spread is not None:
        compiled, given = spread(compiled, operands + results, 1)
    return made(name, compiled, kind, operands, results, given=given)


def loop(name: str, function: Function, kind: str, operands: int = 1, narrow: bool = False, results: int = 1) -> str:
    """The code of ``void name(char **args, intptr *sizes, intptr *steps, void *)``, a loop as NumPy has them."""
    code = Code(lanes=width() // _SIZES[kind], short=kind == "float")
    values = [code.argument(f"x{i}", kind) for i in range(operands)]
    code.mark("compute")
    values = [
        code.write(kind, f"load {code.vector(kind)}, ptr %from{i}, align {_SIZES[kind]}") for i in range(operands)
    ]
    computed = function(*[x if narrow else x.wide() for x in values])
    outs = [f"out{k}" for k in range(results)]
    for out, value in zip(outs, computed if results > 1 else (computed,), strict=True):
        given = value.narrow() if kind == "float" else value
        code.lines.append(f"store {code.vector(kind)} {given}, ptr %to{out}, align {_SIZES[kind]}")
    code.lines.append("br i1 %whole, label %next, label %scatter")
    body = "\n".join(code.lines[1:])
    declared = "\n".join(code.declared.values())
    names = range(operands)
    every = (*names, *outs)
    dense = [*[f"dense{i}" for i in names], *[f"beside{out}" for out in outs]]
    size = _SIZES[kind]
    return f"""
{declared}
define void @{name}(ptr %args, ptr %sizes, ptr %steps, ptr %unused) #0 {{
entry:
  %n = load i64, ptr %sizes
{lines(every, "%buffer# = alloca [" + str(code.lanes) + " x " + kind + "], align 64")}
{
        lines(
            every,
            "%at# = getelementptr ptr, ptr %args, i64 &",
            "%a# = load ptr, ptr %at#",
            "%step_at# = getelementptr i64, ptr %steps, i64 &",
            "%step# = load i64, ptr %step_at#",
            f"%beside# = icmp eq i64 %step#, {size}",
        )
    }
{lines(names, "%same# = icmp eq i64 %step#, 0", "%dense# = or i1 %beside#, %same#")}
  %all0 = and i1 true, true
{lines(dense, "%all:& = and i1 %all&, %#")}
  %any = icmp sgt i64 %n, 0
  br i1 %any, label %fill, label %done
fill:
  %f = phi i64 [ 0, %entry ], [ %next_f, %fill ]
{
        lines(
            names,
            f"%first# = load {kind}, ptr %a#, align 1",
            f"%fill_at# = getelementptr {kind}, ptr %buffer#, i64 %f",
            f"store {kind} %first#, ptr %fill_at#",
        )
    }
  %next_f = add i64 %f, 1
  %more_f = icmp slt i64 %next_f, {code.lanes}
  br i1 %more_f, label %fill, label %ready
ready:
{lines(names, "%b# = select i1 %same#, ptr %buffer#, ptr %a#")}
{lines(outs, "%b# = getelementptr i8, ptr %a#, i64 0")}
  br label %start
start:
  %i = phi i64 [ 0, %ready ], [ %next_i, %next ]
{lines(every, "%p# = phi ptr [ %b#, %ready ], [ %next_p#, %next ]")}
  %rest = sub i64 %n, %i
  %fits = icmp sge i64 %rest, {code.lanes}
  %count = select i1 %fits, i64 {code.lanes}, i64 %rest
  %whole = and i1 %fits, %all{len(dense)}
  br i1 %whole, label %compute, label %gather
gather:
  %k = phi i64 [ 0, %start ], [ %next_k, %gather ]
{
        lines(
            names,
            "%offset# = mul i64 %k, %step#",
            "%source# = getelementptr i8, ptr %p#, i64 %offset#",
            f"%element# = load {kind}, ptr %source#, align 1",
            f"%place# = getelementptr {kind}, ptr %buffer#, i64 %k",
            f"store {kind} %element#, ptr %place#",
        )
    }
  %next_k = add i64 %k, 1
  %more = icmp slt i64 %next_k, %count
  br i1 %more, label %gather, label %compute
compute:
{lines(names, "%from# = phi ptr [ %p#, %start ], [ %buffer#, %gather ]")}
{lines(outs, "%to# = phi ptr [ %p#, %start ], [ %buffer#, %gather ]")}
{body}
scatter:
  %j = phi i64 [ 0, %END ], [ %next_j, %scatter ]
{
        lines(
            outs,
            f"%result_at# = getelementptr {kind}, ptr %buffer#, i64 %j",
            f"%result# = load {kind}, ptr %result_at#",
            "%out_offset# = mul i64 %j, %step#",
            "%out_at# = getelementptr i8, ptr %p#, i64 %out_offset#",
            f"store {kind} %result#, ptr %out_at#, align 1",
        )
    }
  %next_j = add i64 %j, 1
  %more_j = icmp slt i64 %next_j, %count
  br i1 %more_j, label %scatter, label %next
next:
  %next_i = add i64 %i, {code.lanes}
{lines(every, f"%jump# = mul i64 %step#, {code.lanes}", "%next_p# = getelementptr i8, ptr %p#, i64 %jump#")}
  %again = icmp slt i64 %next_i, %n
  br i1 %again, label %start, label %done
done:
  ret void
}}
{attributes()}
""".replace("%END", f"%{code.block}")


def lines(names: Any, *patterns: str) -> str:
    """The lines for each operand, # its name, & its number and :& the next one."""
    return "\n".join(
        [
            f"  {p.replace('#', str(name)).replace(':&', str(i + 1)).replace('&', str(i))}"
            for i, name in enumerate(names)
            for p in patterns
        ]
    )


def attributes() -> str:
    """Of functions: LLVM may use the longest vectors."""
    return f'attributes #0 = {{ "min-legal-vector-width"="{width() * 8}" "prefer-vector-width"="{width() * 8}" }}'


_kept: list[Any] = []  # what the ufuncs point to


def made(
    name: str, address: int, kind: str, operands: int, results: int = 1, signature: str = "", given: int | None = None
) -> np.ufunc:
    """A ufunc with a loop at this address, which gets the address ``given`` as its last argument. By NumPy's C interface: ``PyUFunc_FromFuncAndData`` and, with a signature, its relative for gufuncs, from the table
    of functions that is the same in every version.
    """
    from numpy._core import _multiarray_umath

    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(get(_multiarray_umath._UFUNC_API, None), ctypes.POINTER(ctypes.c_void_p))
    pointer, number, text = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p
    more = [text] if signature else []
    make = ctypes.PYFUNCTYPE(ctypes.py_object, *[pointer] * 3, *[number] * 4, text, text, number, *more)(
        table[31 if signature else 1]
    )
    count = operands + results
    addresses, data = (pointer * 1)(address), (pointer * 1)(given)
    types = (ctypes.c_char * count)(*[_TYPE_NUMBERS[kind]] * count)
    title, form = (ctypes.create_string_buffer(t.encode()) for t in (name, signature))
    _kept.append((addresses, data, types, title, form))
    return make(  # type: ignore[no-any-return]
        *[ctypes.addressof(x) for x in (addresses, data, types)], 1, operands, results, -1,
        ctypes.cast(title, text), b"", 0, *([ctypes.cast(form, text)] if signature else []),
    )  # fmt: skip
