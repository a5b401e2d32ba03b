"""A stand-in for cuFFT on the emulated device: it computes with NumPy, refuses what the library's documentation refuses, and
overwrites what the library may overwrite.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from library_stand_ins import Work, demand

R2C, C2R, C2C, D2Z, Z2D, Z2Z = 42, 44, 41, 106, 108, 105
DTYPES = {R2C: "fF", C2R: "Ff", C2C: "FF", D2Z: "dD", Z2D: "Dd", Z2Z: "DD"}
WORKSPACE = 2048


class cuFFTError(Exception):  # noqa: N801  (the package's name)
    pass


@dataclass
class Plan:
    automatic: bool = True
    stream: int | None = None
    space: int | None = None
    made: tuple | None = None


class Cufft:
    """cuFFT, as ``nvmath.bindings.cufft`` has it.

    Args:
        refused: types that it does not transform
    """

    cuFFTError = cuFFTError  # noqa: N815

    def __init__(self, driver, refused=()):
        self.work, self.refused = Work(driver), refused
        self.numbers, self.plans, self.done = itertools.count(), {}, []

    def get_version(self):
        return 12000

    def create(self):
        self.plans[number := next(self.numbers)] = Plan()
        return number

    def destroy(self, plan):
        del self.plans[plan]

    def set_auto_allocation(self, plan, auto_allocate):
        demand(self.plans[plan].made is None, "allocation is said before a plan is made")
        self.plans[plan].automatic = bool(auto_allocate)

    def make_plan_many64(self, plan, rank, n, inembed, istride, idist, onembed, ostride, odist, type, batch):  # noqa: A002
        demand(type in DTYPES and 1 <= rank <= 3 and rank == len(n) == len(inembed) == len(onembed), "a rank")
        if type in self.refused:
            raise cuFFTError("CUFFT_NOT_SUPPORTED (16)")
        halves = (n[-1], n[-1] // 2 + 1)
        ins, outs = {R2C: halves, D2Z: halves, C2R: halves[::-1], Z2D: halves[::-1]}.get(type, (n[-1], n[-1]))
        for embed, last, stride, distance in ((inembed, ins, istride, idist), (onembed, outs, ostride, odist)):
            demand(stride > 0 and distance > 0 and batch > 0 and all([x > 0 for x in n]), "strides and sizes")
            inner = [*n[:-1], last][1:]
            demand(all([e >= x for e, x in zip(embed[1:], inner, strict=True)]), "sizes of what it is a part of")
        self.plans[plan].made = (
            (*n[:-1], ins), (*n[:-1], outs), (inembed, istride, idist), (onembed, ostride, odist), type, batch, tuple(n)
        )  # fmt: skip
        return WORKSPACE

    def set_stream(self, plan, stream):
        self.plans[plan].stream = stream

    def set_work_area(self, plan, work_area):
        demand(not self.plans[plan].automatic, "the library has a workspace of its own")
        self.plans[plan].space = work_area

    def exec_c2c(self, plan, idata, odata, direction):
        self._exec(C2C, plan, idata, odata, direction)

    def exec_r2c(self, plan, idata, odata):
        self._exec(R2C, plan, idata, odata, -1)

    def exec_c2r(self, plan, idata, odata):
        self._exec(C2R, plan, idata, odata, 1)

    def exec_z2z(self, plan, idata, odata, direction):
        self._exec(Z2Z, plan, idata, odata, direction)

    def exec_d2z(self, plan, idata, odata):
        self._exec(D2Z, plan, idata, odata, -1)

    def exec_z2d(self, plan, idata, odata):
        self._exec(Z2D, plan, idata, odata, 1)

    def _exec(self, asked, plan, input, output, direction):  # noqa: A002
        known = self.plans[plan]
        demand(known.made and known.space and known.stream is not None and direction in (-1, 1), "a plan")
        ins, outs, read, written, kind, batch, sizes = known.made
        demand(kind == asked, "a plan of another type")
        given, gives = (np.dtype(c) for c in DTYPES[kind])
        wide = max(given.itemsize, gives.itemsize)
        demand(input % wide == 0 and output % wide == 0, "numbers begin where complex ones may")
        demand(input != output, "in place")

        def steps(embed, stride, distance):
            inner = [stride * int(np.prod(embed[i + 1 :])) for i in range(len(embed))]
            return (distance, *inner)

        def span(address, shape, lies, dtype, writes):
            last = sum([(n - 1) * s for n, s in zip((batch, *shape), steps(*lies), strict=True)])
            return address, (last + 1) * dtype.itemsize, writes

        real = gives.kind != "c"
        spans = [span(input, ins, read, given, real), span(output, outs, written, gives, True)]

        def view(spaces, at, shape, lies, dtype):
            flat = spaces.array(at[0], dtype, at[1] // dtype.itemsize)
            return np.lib.stride_tricks.as_strided(flat, (batch, *shape), [s * dtype.itemsize for s in steps(*lies)])

        def compute(spaces):
            x, out = view(spaces, spans[0], ins, read, given), view(spaces, spans[1], outs, written, gives)
            axes = tuple(range(1, 1 + len(sizes)))
            if given.kind != "c":
                out[...] = np.fft.rfftn(x, axes=axes)
            elif real:
                out[...] = np.fft.irfftn(x, sizes, axes, norm="forward")
                x[...] = np.nan
            elif direction == -1:
                out[...] = np.fft.fftn(x, axes=axes)
            else:
                out[...] = np.fft.ifftn(x, axes=axes, norm="forward")

        self.work.submit(known.stream, [*spans, (known.space, WORKSPACE, True)], compute)
        self.done.append((kind, sizes, batch))
