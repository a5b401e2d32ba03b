"""What of factors of matrices is small: the permutation that exchanges of rows are together, and determinants from LU factors."""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.cuda.arrays import MEMORY, CudaArray
from genesis.cuda.kernels.lanes import Code, Operand, Placed, start
from genesis.cuda.kernels.pairs import in_pairs, part_of, real_of

INT = np.dtype(np.int32)

# ---- a lane follows a row through all exchanges


def _follow(pivot: Any, out: Any) -> None:
    to = np.broadcast_to(np.arange(out.shape[0]).reshape(-1, *[1] * (out.ndim - 1)), out.shape).copy()
    for i in range(pivot.shape[-1]):
        other = pivot[..., i] - 1
        to = np.where(to == i, other, np.where(to == other, i, to))
    out[...] = to


FOLLOW = Code(
    "rows exchanged",
    (Operand("pivot", 1), Operand("out", writes=True)),
    "to = c0.to(tl.int64)\n"
    "for i in range(pivot_size0):\n"
    "    other = tl.load(pivot + pivot_at + i * pivot_step0, mask=inside, other=1).to(tl.int64) - 1\n"
    "    to = tl.where(to == i, other, tl.where(to == other, i, to))\n"
    "tl.store(out + out_at, to, mask=inside)",
    _follow,
    whole=1,
)


def _stand(to: Any, out: Any) -> None:
    out[...] = to == np.arange(out.shape[1]).reshape(1, -1, *[1] * (out.ndim - 2))


STAND = Code(
    "a permutation",
    (Operand("to"), Operand("out", writes=True)),
    "tl.store(out + out_at, (tl.load(to + to_at, mask=inside, other=0) == c1).to(out.dtype.element_ty), mask=inside)",
    _stand,
    whole=2,
)


def permutation_matrix(pivots: CudaArray, rows: int, dtype: Any) -> Any:
    batch, device, dtype = pivots.shape[:-1], pivots.device, np.dtype(dtype)
    to = MEMORY.empty((*batch, rows), INT, device)
    out = MEMORY.empty((*batch, rows, rows), real_of(dtype) if dtype.kind == "c" else dtype, device)
    if not out.size:
        return NotImplemented
    along = (to.strides[-1], *to.strides[:-1])
    read = Placed(pivots, (0, *pivots.strides[:-1]), ((pivots.shape[-1], pivots.strides[-1]),))
    start(FOLLOW, (rows, *batch), [read, Placed(to, along)])
    stand = [Placed(to, (along[0], 0, *along[1:])), Placed(out, (*out.strides[-2:], *out.strides[:-2]))]
    start(STAND, (rows, rows, *batch), stand)
    if dtype.kind != "c":
        return out
    numbers = MEMORY.empty(out.shape, dtype, device)
    MEMORY.assign(numbers, out)
    return numbers


# ---- a lane goes along the diagonal of a matrix

_LOOP = """
for i in range(re_size0):
    x = tl.load(re + re_at + i * re_step0, mask=inside, other=1.0)
    exchanged = tl.load(pivot + pivot_at + i * pivot_step0, mask=inside, other=0) != i + 1
    {of_one}
"""
_LOOP_OF_TWO = """
for i in range(re_size0):
    x = tl.load(re + re_at + i * re_step0, mask=inside, other=1.0)
    y = tl.load(im + im_at + i * im_step0, mask=inside, other=0.0)
    exchanged = tl.load(pivot + pivot_at + i * pivot_step0, mask=inside, other=0) != i + 1
    {of_one}
"""
_ONE, _ZERO = "(at * 0 + 1).to({out}.dtype.element_ty)", "(at * 0).to({out}.dtype.element_ty)"


def _signs(pivot: Any) -> Any:
    exchanged = pivot != np.arange(1, pivot.shape[-1] + 1)
    return np.where(exchanged.sum(-1) % 2, -1, 1)


def _product(re: Any, pivot: Any, out: Any) -> None:
    out[...] = np.prod(re, -1) * _signs(pivot)


def _product_of_two(re: Any, im: Any, pivot: Any, out: Any) -> None:
    total = np.prod(re + 1j * im, -1) * _signs(pivot)
    out[..., 0], out[..., 1] = total.real, total.imag


def _logarithm(re: Any, pivot: Any, sign: Any, log: Any) -> None:
    sign[...] = np.prod(np.sign(re), -1) * _signs(pivot)
    log[...] = np.log(np.abs(re)).sum(-1)


def _logarithm_of_two(re: Any, im: Any, pivot: Any, sign: Any, log: Any) -> None:
    x = re + 1j * im
    total = np.prod(np.sign(x), -1) * _signs(pivot)
    sign[..., 0], sign[..., 1], log[...] = total.real, total.imag, np.log(np.abs(x)).sum(-1)


_READ = (Operand("re", 1), Operand("pivot", 1))
_READ_TWO = (Operand("re", 1), Operand("im", 1), Operand("pivot", 1))
PRODUCT = Code(
    "determinant",
    (*_READ, Operand("out", writes=True)),
    f"total = {_ONE.format(out='out')}"
    + _LOOP.format(of_one="total = total * tl.where(exchanged, -x, x)")
    + "tl.store(out + out_at, total, mask=inside)",
    _product,
)
_TURN = """a = tl.where(exchanged, -x, x)
    b = tl.where(exchanged, -y, y)
    turned = a * re_of - b * im_of
    im_of = a * im_of + b * re_of
    re_of = turned"""
PRODUCT_OF_TWO = Code(
    "complex determinant",
    (*_READ_TWO, Operand("out", 1, writes=True)),
    f"re_of = {_ONE.format(out='out')}\nim_of = {_ZERO.format(out='out')}"
    + _LOOP_OF_TWO.format(of_one=_TURN)
    + "tl.store(out + out_at, re_of, mask=inside)\ntl.store(out + out_at + out_step0, im_of, mask=inside)",
    _product_of_two,
)
LOGARITHM = Code(
    "logarithm of a determinant",
    (*_READ, Operand("sign", writes=True), Operand("log", writes=True)),
    f"turned = {_ONE.format(out='sign')}\ntotal = {_ZERO.format(out='log')}"
    + _LOOP.format(
        of_one="total += libdevice.log(tl.abs(x))\n"
        "    one = tl.where(x == 0, 0.0, tl.where(x < 0, -1.0, tl.where(x > 0, 1.0, x)))\n"
        "    turned = turned * tl.where(exchanged, -one, one)"
    )
    + "tl.store(sign + sign_at, turned, mask=inside)\ntl.store(log + log_at, total, mask=inside)",
    _logarithm,
)
LOGARITHM_OF_TWO = Code(
    "logarithm of a complex determinant",
    (*_READ_TWO, Operand("sign", 1, writes=True), Operand("log", writes=True)),
    f"re_of = {_ONE.format(out='sign')}\nim_of = {_ZERO.format(out='sign')}\ntotal = {_ZERO.format(out='log')}"
    + _LOOP_OF_TWO.format(
        of_one="size = libdevice.hypot(x, y)\n"
        "    total += libdevice.log(size)\n"
        "    safe = tl.where(size == 0, 1.0, size)\n"
        "    x = x / safe\n"
        "    y = y / safe\n    " + _TURN
    )
    + "tl.store(sign + sign_at, re_of, mask=inside)\ntl.store(sign + sign_at + sign_step0, im_of, mask=inside)\n"
    "tl.store(log + log_at, total, mask=inside)",
    _logarithm_of_two,
)


def _diagonals(lu: CudaArray, pivots: CudaArray) -> list[Placed]:
    """The diagonals of factors, or both parts of them, and the exchanges, for a lane of each matrix."""
    parts = [part_of(lu, 0), part_of(lu, 1)] if lu.dtype.kind == "c" else [lu]
    n = lu.shape[-1]
    diagonals = [Placed(x, x.strides[:-2], ((n, x.strides[-1] + x.strides[-2]),)) for x in parts]
    return [*diagonals, Placed(pivots, pivots.strides[:-1], ((n, pivots.strides[-1]),))]


def _of_each(x: CudaArray) -> Placed:
    """A number, or both parts of it, for a lane of each matrix."""
    return in_pairs(x, x.shape) if x.dtype.kind == "c" else Placed(x, x.strides)


def determinant(lu: CudaArray, pivots: CudaArray) -> CudaArray:
    out = MEMORY.empty(lu.shape[:-2], lu.dtype, lu.device)
    code = PRODUCT_OF_TWO if lu.dtype.kind == "c" else PRODUCT
    start(code, out.shape, [*_diagonals(lu, pivots), _of_each(out)])
    return out


def sign_and_logarithm(lu: CudaArray, pivots: CudaArray) -> tuple[CudaArray, CudaArray]:
    """The sign, or the angle as a complex number, of determinants and the logarithm of their magnitudes."""
    two = lu.dtype.kind == "c"
    sign = MEMORY.empty(lu.shape[:-2], lu.dtype, lu.device)
    log = MEMORY.empty(sign.shape, real_of(lu.dtype) if two else lu.dtype, lu.device)
    start(LOGARITHM_OF_TWO if two else LOGARITHM, sign.shape, [*_diagonals(lu, pivots), _of_each(sign), _of_each(log)])
    return sign, log
