"""Convolutions as products of matrices that are never in memory, in Triton's language, for one to three dimensions.

Rows are the places of the result, columns its channels, and what is summed goes through channels and places of the window.
"""

from __future__ import annotations

HEAD = """
import triton
import triton.language as tl


@triton.jit
def kernel({parameters}):
"""


def names(what: str, dims: int) -> list[str]:
    return [f"{what}{i}" for i in range(dims)]


def parts(number: str, of: str, dims: int) -> list[str]:
    """Lines for the counts ``of`` each dimension in a number, and for what is left of it."""
    lines = [f"left_{of} = {number}"]
    for i in reversed(range(dims)):
        lines += [f"{of}{i} = left_{of} % {of.upper()}{i}", f"left_{of} = left_{of} // {of.upper()}{i}"]
    return lines


def seen(dims: int, back: bool, at: str, window: str, first: str) -> list[str]:
    """Lines for where a window sees the input, ``to``, and whether that is inside, ``ok``."""
    lines = ["to = " + first, "ok = inside"]
    for i in range(dims):
        if back:
            lines += [f"at = {at.format(i)} + pad{i} - {window.format(i)} * dilation{i}",
                      f"ok = ok & (at >= 0) & (at % stride{i} == 0)", f"at = at // stride{i}", f"ok = ok & (at < S{i})"]  # fmt: skip
        else:
            lines += [f"at = {at.format(i)} * stride{i} - pad{i} + {window.format(i)} * dilation{i}",
                      f"ok = ok & (at >= 0) & (at < S{i})"]  # fmt: skip
        lines.append(f"to += at.to(tl.int64) * xs{i}")
    return lines


def numbers(dims: int) -> list[str]:
    """The names of the numbers that kernels are given: sizes, steps of windows, and strides of x and of the other."""
    sizes = [*names("S", dims), *names("P", dims), *names("T", dims)]
    rules = [*names("stride", dims), *names("pad", dims), *names("dilation", dims)]
    return ["count", "C", "O", *sizes, *rules, "xn", "xc", *names("xs", dims), "on", "oc", *names("os", dims)]


def text(parameters: list[str], lines: list[str]) -> str:
    return HEAD.format(parameters=", ".join(parameters)).lstrip() + "".join([f"    {line}\n" for line in lines])


def indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def forward(dims: int, back: bool, biased: bool, m: int, n: int, k: int) -> str:
    """A convolution, or ``back`` through one: the transposed one. The weight is contiguous."""
    window = " * ".join(names("T", dims))
    product = " * ".join(names("P", dims))
    weight = (
        f"((g * C + c[:, None]) * O + o[None, :]) * ({window}) + t[:, None]"
        if back
        else "(g * O + o[None, :]) * K + kk[:, None]"
    )
    lines = [
        f"K = C * {window}", f"rows = count * {product}", "g = tl.program_id(1).to(tl.int64)", f"wide = tl.cdiv(O, {n})",
        f"m = tl.program_id(0) // wide * {m} + tl.arange(0, {m})", f"o = tl.program_id(0) % wide * {n} + tl.arange(0, {n})",
        *parts("m", "p", dims), "example = left_p.to(tl.int64)", f"total = tl.zeros([{m}, {n}], tl.float32)",
        f"for start in range(0, K, {k}):",
        *indented([
            f"kk = start + tl.arange(0, {k})", f"t = kk % ({window})", *parts("kk", "t", dims), "c = left_t",
            "inside = (m[:, None] < rows) & (kk[None, :] < K)",
            *seen(dims, back, "p{}[:, None]", "t{}[None, :]", "example[:, None] * xn + (g * C + c[None, :]) * xc"),
            "a = tl.load(x + to, mask=ok, other=0.0)",
            f"b = tl.load(w + {weight}, mask=(kk[:, None] < K) & (o[None, :] < O), other=0.0)",
            'total = tl.dot(a, b, total, input_precision="ieee")',
        ]),
        *(["total += tl.load(bias + g * O + o, mask=o < O, other=0.0).to(tl.float32)[None, :]"] if biased else []),
        "place = example * on + " + " + ".join([f"p{i}.to(tl.int64) * os{i}" for i in range(dims)]),
        "to = place[:, None] + (g * O + o[None, :]) * oc",
        "tl.store(out + to, total.to(out.dtype.element_ty), mask=(m[:, None] < rows) & (o[None, :] < O))",
    ]  # fmt: skip
    return text(["x", "w", "bias", "out", *numbers(dims)], lines)


def weight(dims: int, m: int, n: int, k: int) -> str:
    """The gradient of the weight: sums over examples and places, of which each program has a part."""
    window = " * ".join(names("T", dims))
    product = " * ".join(names("P", dims))
    lines = [
        f"columns = C * {window}", f"K = count * {product}", "g = tl.program_id(1).to(tl.int64)",
        "groups = tl.num_programs(1)", "split = tl.program_id(2)", f"wide = tl.cdiv(columns, {n})",
        f"o = tl.program_id(0) // wide * {m} + tl.arange(0, {m})", f"j = tl.program_id(0) % wide * {n} + tl.arange(0, {n})",
        *parts("j", "t", dims), "c = left_t", f"total = tl.zeros([{m}, {n}], tl.float32)",
        "last = tl.minimum((split + 1) * part, K)",
        f"for start in range(split * part, last, {k}):",
        *indented([
            f"kk = start + tl.arange(0, {k})", *parts("kk", "p", dims), "example = left_p.to(tl.int64)",
            "place = example * on + " + " + ".join([f"p{i}.to(tl.int64) * os{i}" for i in range(dims)]),
            "a = tl.load(y + place[None, :] + (g * O + o[:, None]) * oc, mask=(o[:, None] < O) & (kk[None, :] < last), other=0.0)",
            "inside = (kk[:, None] < last) & (j[None, :] < columns)",
            *seen(dims, False, "p{}[:, None]", "t{}[None, :]", "example[:, None] * xn + (g * C + c[None, :]) * xc"),
            "b = tl.load(x + to, mask=ok, other=0.0)",
            'total = tl.dot(a, b, total, input_precision="ieee")',
        ]),
        "to = ((split * groups + g) * O + o[:, None]) * columns + j[None, :]",
        "tl.store(out + to, total.to(out.dtype.element_ty), mask=(o[:, None] < O) & (j[None, :] < columns))",
    ]  # fmt: skip
    return text(["x", "y", "out", *numbers(dims), "part"], lines)
