"""Cross entropy of rows of logits, and its gradient, in Triton's language."""

from __future__ import annotations

import math
from typing import Any

from genesis.jit.lowering.triton_functions import needed

HEAD = """
import triton
import triton.language as tl


""".lstrip()

# a thread has a maximum of several elements at a time, and for that one power of two besides those of the elements: of those
# beside each other that it reads at once, or, where that cannot be, of those that lie a thread for each apart
BESIDE = {"axis": "1", "wide": ":, None",
           "at": "tl.arange(0, {lanes})[:, None] * {several} + tl.arange(0, {several})[None, :]"}  # fmt: skip
APART = {"axis": "0", "wide": "None, :",
          "at": "tl.arange(0, {several})[:, None] * {lanes} + tl.arange(0, {lanes})[None, :]"}  # fmt: skip
# the logarithm of the sum of a row, whether its class counts, and what its logit is. The row is read from the last multiple of
# 16 bytes before it to the first behind it, so that all of it is read 16 bytes at a time, wherever it begins
_SUMMED = """
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(target + row).to(tl.int64)
    counted = label != ignored
    bad = counted & ((label < 0) | (label >= C))
    tl.store(report, number | (label & {mask}), mask=bad)
    own = tl.where(counted & (bad == 0), label, 0)
    best = tl.full([{lanes}], float("-inf"), tl.float32)
    sums = tl.zeros([{lanes}], tl.float32)
    at = {at}
    start = row * step // {beside} * {beside}
    before = (row * step - start).to(tl.int32)
    end = before + C
    pieces = (end + {beside} - 1) // {beside}
    value = tl.load(x + start + at, mask=at // {beside} < pieces, other=float("-inf")).to(tl.float32)
    best, sums = joined(best, sums, tl.where((at >= before) & (at < end), value, float("-inf")))
    whole = end // {block} * {block}
    for first in range({block}, whole, {block}):
        best, sums = joined(best, sums, tl.load(x + start + first + at{keep}).to(tl.float32))
    if whole > 0:
        rest = whole + at
        value = tl.load(x + start + rest, mask=rest // {beside} < pieces, other=float("-inf")).to(tl.float32)
        best, sums = joined(best, sums, tl.where(rest < end, value, float("-inf")))
    most = tl.max(best, 0)
    shift = tl.where(most == float("-inf"), 0.0, most)
    logarithm = most + tl.log(tl.sum(sums * power_of_two((best - shift) * {bits}), 0))
    picked = tl.load(x + row * step + own).to(tl.float32)
    tl.store(loss + row, tl.where(counted, logarithm - picked, 0.0))
    tl.store(counts + row, counted.to(tl.float32))
"""
_JOINED = """
@triton.jit
def joined(best, sums, value):
    larger = tl.maximum(best, tl.max(value, {axis}))
    shift = tl.where(larger == float("-inf"), 0.0, larger)
    powers = power_of_two((value - shift[{wide}]) * {bits})
    return larger, sums * power_of_two((best - shift) * {bits}) + tl.sum(powers, {axis})


""".lstrip()
LOSS = f"""{_JOINED}@triton.jit
def kernel(x, target, total, loss, counts, report, number, C, step, ignored):{_SUMMED.replace("{keep}", "")}    tl.store(total + row, logarithm)
"""

MEAN = """
import triton
import triton.language as tl


@triton.jit
def kernel(loss, counts, out, share, n):
    sums = tl.zeros([{block}], tl.float32)
    many = tl.zeros([{block}], tl.float32)
    for first in range(0, n, {block}):
        at = first + tl.arange(0, {block})
        sums += tl.load(loss + at, mask=at < n, other=0.0)
        many += tl.load(counts + at, mask=at < n, other=0.0)
    count = tl.sum(many, 0)
    tl.store(out, tl.div_rn(tl.sum(sums, 0), count).to(out.dtype.element_ty))
    tl.store(share, tl.div_rn(1.0, tl.maximum(count, 1.0)))
""".lstrip()

# the gradient of a logit as of a class that is not its row's own; that of the own one is written over it, behind all others
_CHANGED = """
@triton.jit
def changed(value, logarithm, scale):
    return power_of_two((value.to(tl.float32) - logarithm) * {bits}) * scale


@triton.jit
def corrected(out, value, logarithm, scale, wanted):
    tl.store(out, (changed(value, logarithm, scale) - scale).to(out.dtype.element_ty), mask=wanted)


""".lstrip()
GRADIENT = f"""{_CHANGED}@triton.jit
def kernel(x, target, total, share, g, out, across, C, wide, step, ignored):
    row = tl.program_id(0).to(tl.int64)
    first = tl.program_id(1) * {{block}}
    at = first + tl.arange(0, {{block}})
    label = tl.load(target + row).to(tl.int64)
    scale = tl.load(share) * tl.load(g).to(tl.float32)
    logarithm = tl.load(total + row)
    own = (label != ignored) & (label >= first) & (label < tl.minimum(first + {{block}}, C))
    picked = tl.load(x + row * step + label, mask=own, other=0.0)
    value = tl.load(x + row * step + at, mask=at < wide, other=0.0)
    value = tl.where(label == ignored, 0.0, changed(value, logarithm, scale))
    tl.store(out + row * across + at, value.to(out.dtype.element_ty), mask=at < wide)
    tl.debug_barrier()
    corrected(out + row * across + label, picked, logarithm, scale, own)
"""
# of rows without gaps, as of one long row: a block has elements of two rows at most, wherever these begin
LONG_GRADIENT = f"""{_CHANGED}@triton.jit
def kernel(x, target, total, share, g, out, n, C, rows, ignored):
    start = tl.program_id(0).to(tl.int64) * {{block}}
    row = start // C
    behind = tl.minimum(row + 1, rows - 1)
    edge = ((row + 1) * C - start).to(tl.int32)
    at = tl.arange(0, {{block}})
    label, label_behind = tl.load(target + row).to(tl.int64), tl.load(target + behind).to(tl.int64)
    logarithm, logarithm_behind = tl.load(total + row), tl.load(total + behind)
    scale = tl.load(share) * tl.load(g).to(tl.float32)
    first, last = row * C + label, row * C + C + label_behind
    own = (label != ignored) & (label >= 0) & (label < C) & (first >= start) & (first < start + {{block}})
    own_behind = (label_behind != ignored) & (label_behind >= 0) & (label_behind < C) & (last < start + {{block}}) & (last < n)
    picked, picked_behind = tl.load(x + first, mask=own, other=0.0), tl.load(x + last, mask=own_behind, other=0.0)
    here = at < edge
    if edge >= {{block}}:  # all of one row, as most are
        value = changed(tl.load(x + start + at), logarithm, scale)
        tl.store(out + start + at, tl.where(label == ignored, 0.0, value).to(out.dtype.element_ty))
    elif start + {{block}} <= n:
        value = changed(tl.load(x + start + at), tl.where(here, logarithm, logarithm_behind), scale)
        value = tl.where(tl.where(here, label == ignored, label_behind == ignored), 0.0, value)
        tl.store(out + start + at, value.to(out.dtype.element_ty))
    else:
        value = tl.load(x + start + at, mask=start + at < n, other=0.0)
        value = tl.where(label == ignored, 0.0, changed(value, logarithm, scale))
        tl.store(out + start + at, value.to(out.dtype.element_ty), mask=start + at < n)
    tl.debug_barrier()
    corrected(out + first, picked, logarithm, scale, own)
    corrected(out + last, picked_behind, logarithm_behind, scale, own_behind)
"""
SHARE = """
import triton
import triton.language as tl


@triton.jit
def kernel(target, share, n, ignored):
    many = tl.zeros([{block}], tl.float32)
    for first in range(0, n, {block}):
        at = first + tl.arange(0, {block})
        label = tl.load(target + at, mask=at < n, other=0).to(tl.int64)
        many += tl.where((at < n) & (label != ignored), 1.0, 0.0)
    tl.store(share, tl.div_rn(1.0, tl.maximum(tl.sum(many, 0), 1.0)))
""".lstrip()

# what of a row is read again stays in the cache, and nothing else
_KEPT = _SUMMED.replace("{keep}", ', eviction_policy="evict_last"')
BOTH = f"""{_JOINED}{_CHANGED}@triton.jit
def kernel(x, target, share, g, loss, counts, out, report, number, across, C, wide, step, ignored):{_KEPT}
    scale = tl.load(share) * tl.load(g).to(tl.float32)
    whole = C // {{block}} * {{block}}
    rest = whole + at < wide
    to = out + row * across
    if counted:
        for first in range(0, whole, {{block}}):
            value = changed(tl.load(x + row * step + first + at, eviction_policy="evict_first"), logarithm, scale)
            tl.store(to + first + at, value.to(out.dtype.element_ty), eviction_policy="evict_first")
        value = changed(tl.load(x + row * step + whole + at, mask=rest, other=0.0), logarithm, scale)
        tl.store(to + whole + at, value.to(out.dtype.element_ty), mask=rest)
        tl.debug_barrier()
        corrected(to + own, picked, logarithm, scale, bad == 0)
    else:
        for first in range(0, whole, {{block}}):
            tl.store(to + first + at, tl.zeros_like(at).to(out.dtype.element_ty), eviction_policy="evict_first")
        tl.store(to + whole + at, tl.zeros_like(at).to(out.dtype.element_ty), mask=rest)
"""


# of few rows: all of it in one program. What is read is asked for before anything is stored, behind which it would wait
FEW = """
@triton.jit
def kernel(x, target, g, result, out, report, number, across, N, C, step, ignored):
    row, at = tl.arange(0, {block}), tl.arange(0, {classes})[None, :]
    inside = (row[:, None] < N) & (at < C)
    value = tl.load(x + row[:, None] * step + at, mask=inside, other=float("-inf")).to(tl.float32)
    label = tl.load(target + row, mask=row < N, other=0).to(tl.int64)
    factor = tl.load(g).to(tl.float32)
    counted = (row < N) & (label != ignored)
    bad = counted & ((label < 0) | (label >= C))
    count = tl.sum(counted.to(tl.float32), 0)
    most = tl.max(value, 1)
    shift = tl.where(most == float("-inf"), 0.0, most)
    logarithm = most + tl.log(tl.sum(power_of_two((value - shift[:, None]) * {bits}), 1))
    own = tl.where(bad, 0, label)
    picked = tl.sum(tl.where(at == own[:, None], value, 0.0), 1)
    loss = tl.sum(tl.where(counted, logarithm - picked, 0.0), 0)
    scale = tl.div_rn(1.0, tl.maximum(count, 1.0)) * factor
    share = power_of_two((value - logarithm[:, None]) * {bits}) - tl.where(at == label[:, None], 1.0, 0.0)
    changed = tl.where(counted[:, None], share * scale, 0.0)
    tl.store(out + row[:, None] * across + at, changed.to(out.dtype.element_ty), mask=inside)
    tl.store(result, tl.div_rn(loss, count).to(result.dtype.element_ty))
    tl.store(report + row * 0, number | (label & {mask}), mask=bad)
""".lstrip()


def printed(source: str, block: int, **names: Any) -> str:
    """A kernel whose programs go through so many elements at a time."""
    lines = source.format(block=block, bits=math.log2(math.e), **names)
    return HEAD + "\n".join([*needed([lines]), lines])
