"""LLVM code for the gradient of the largest elements of windows."""

from __future__ import annotations

from genesis.kernels.llvm.nests import Code

MOST = 32  # elements of a window
POINTERS, SIZES = ("x", "g", "gx", "places"), ("first", "last", "size", "windows")


def largest_gradient(taps: int) -> str:
    """The function ``largest_gradient``: each ``g`` is added where the largest of its window is, of equals the first.

    ``places`` has for each window of an image the places of its elements, as many as ``taps``.
    """
    code = Code(1)
    with code.loop("%first", "%last", "1") as image:
        start = code.times(image.index, "%size")
        x, gx = code.at("%x", start), code.at("%gx", start)
        g = code.at("%g", code.times(image.index, "%windows"))
        with code.loop("0", "%windows", "1") as window:
            table = code.times(window.index, str(taps))
            place = code.number("%places", table)
            largest = code.put(f"load float, ptr {code.at(x, place)}, align 4")
            for t in range(1, taps):
                other = code.number("%places", code.add(table, str(t)))
                value = code.put(f"load float, ptr {code.at(x, other)}, align 4")
                above = code.put(f"fcmp ogt float {value}, {largest}")
                largest = code.put(f"select i1 {above}, float {value}, float {largest}")
                place = code.put(f"select i1 {above}, i64 {other}, i64 {place}")
            code.store(code.plus(code.load(gx, place), code.load(g, window.index)), gx, place)
    return code.function("largest_gradient", POINTERS, SIZES)
