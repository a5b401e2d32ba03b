"""Complex numbers on a GPU, for which Triton has no type: the memory is seen as pairs of floats, and a lane computes both parts of
an element from both parts of its operands. Sums are those of the parts; products of matrices are four of real ones.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec
from genesis.core.call.op import REGISTRY, Op
from genesis.cuda.arrays import MEMORY, CudaArray
from genesis.cuda.kernels.host import arrays_in
from genesis.cuda.kernels.lanes import Code, Operand, Placed, start
from genesis.cuda.kernels.moves import broadcast
from genesis.cuda.kernels.pairs import from_pairs, in_pairs, pairs_of, part_of, real_of
from genesis.cuda.runtime.streams import current

FLAG = np.dtype(np.bool_)
MOST = 1 << 30  # elements
MOST_PRODUCTS = 17  # whole powers below this are products

# what a lane writes, of the parts of x and y: two parts, or one number
_SMITH = """
wide = tl.abs({c}) >= tl.abs({d})
ratio = tl.where(wide, divided({d}, {c}), divided({c}, {d}))
below = tl.where(wide, {c} + {d} * ratio, {d} + {c} * ratio)
none = ({c} == 0) & ({d} == 0)
below = tl.where(none, 0.0, below)
ratio = tl.where(none, 0.0, ratio)
wide = wide | none
"""
_QUOTIENT = (
    "divided(tl.where(wide, {a} + {b} * ratio, {a} * ratio + {b}), below)",
    "divided(tl.where(wide, {b} - {a} * ratio, {b} * ratio - {a}), below)",
)
_ONE, _NONE = "(x_re * 0.0 + 1.0)", "(x_re * 0.0)"
_ROOT = """
size = libdevice.hypot(x_re, x_im)
half = root(0.5 * (size + tl.abs(x_re)))
other = tl.where(half == 0, 0.0, divided(tl.abs(x_im), 2.0 * half))
"""
_SIZE = "size = libdevice.hypot(x_re, x_im)\nsafe = tl.where(size == 0, 1.0, size)"
PARTS: dict[str, tuple[str, str, str]] = {
    "add": ("", "x_re + y_re", "x_im + y_im"),
    "sub": ("", "x_re - y_re", "x_im - y_im"),
    "mul": ("", "x_re * y_re - x_im * y_im", "x_re * y_im + x_im * y_re"),
    "div": (_SMITH.format(c="y_re", d="y_im"), *[q.format(a="x_re", b="x_im") for q in _QUOTIENT]),
    "reciprocal": (_SMITH.format(c="x_re", d="x_im"), *[q.format(a=_ONE, b=_NONE) for q in _QUOTIENT]),
    "neg": ("", "-x_re", "-x_im"),
    "square": ("", "x_re * x_re - x_im * x_im", "2.0 * x_re * x_im"),
    "conj_physical": ("", "x_re", "-x_im"),
    "exp": ("size = libdevice.exp(x_re)", "size * libdevice.cos(x_im)", "tl.where(x_im == 0, x_im, size * libdevice.sin(x_im))"),
    "log": ("", "libdevice.log(libdevice.hypot(x_re, x_im))", "libdevice.atan2(x_im, x_re)"),
    "sqrt": (_ROOT, "tl.where(x_re >= 0, half, other)", "libdevice.copysign(tl.where(x_re >= 0, other, half), x_im)"),
    "sin": ("", "libdevice.sin(x_re) * libdevice.cosh(x_im)", "libdevice.cos(x_re) * libdevice.sinh(x_im)"),
    "cos": ("", "libdevice.cos(x_re) * libdevice.cosh(x_im)", "-libdevice.sin(x_re) * libdevice.sinh(x_im)"),
    "sinh": ("", "libdevice.sinh(x_re) * libdevice.cos(x_im)", "libdevice.cosh(x_re) * libdevice.sin(x_im)"),
    "cosh": ("", "libdevice.cosh(x_re) * libdevice.cos(x_im)", "libdevice.sinh(x_re) * libdevice.sin(x_im)"),
    "sgn": (_SIZE, "divided(x_re, safe)", "divided(x_im, safe)"),
}  # fmt: skip
NUMBERS: dict[str, str] = {
    "abs": "libdevice.hypot(x_re, x_im)",
    "angle": "libdevice.atan2(x_im, x_re)",
    "eq": "(x_re == y_re) & (x_im == y_im)",
    "ne": "(x_re != y_re) | (x_im != y_im)",
    "isnan": "(x_re != x_re) | (x_im != x_im)",
    "isfinite": "(x_re - x_re == 0) & (x_im - x_im == 0)",
}
BILINEAR = {"matmul", "einsum_terms"}
TWO = {"add", "sub", "mul", "div", "eq", "ne"}


def _loaded(name: str) -> list[str]:
    return [
        f"{name}_re = tl.load({name} + {name}_at, mask=inside, other=0.0)",
        f"{name}_im = tl.load({name} + {name}_at + {name}_step0, mask=inside, other=0.0)",
    ]


_STORED = [
    "tl.store(out + out_at, re, mask=inside)",
    "tl.store(out + out_at + out_step0, im, mask=inside)",
]


def _as_complex(pairs: Any) -> Any:
    """The complex numbers whose parts an array has along its last dimension."""
    held = np.ascontiguousarray(pairs)
    return held.view(np.dtype(f"c{2 * held.itemsize}"))[..., 0]


@functools.cache
def code_of(name: str) -> Code:
    """The lanes of an op."""
    names = ("x", "y") if name in TWO else ("x",)
    before, *values = PARTS[name] if name in PARTS else ("", NUMBERS[name])
    lines = [line for n in names for line in _loaded(n)] + [line for line in before.split("\n") if line]
    if len(values) == 2:
        lines += [f"re = {values[0]}", f"im = {values[1]}", *_STORED]
    else:
        lines.append(f"tl.store(out + out_at, ({values[0]}).to(out.dtype.element_ty), mask=inside)")

    def meaning(*arrays: Any) -> None:
        *given, out = arrays
        value = np.asarray(REGISTRY[name].meaning(*[_as_complex(x) for x in given]))
        if len(values) == 2:
            out[..., 0], out[..., 1] = value.real, value.imag
        else:
            out[...] = value

    operands = tuple([Operand(n, 1) for n in names])
    out = Operand("out", 1 if len(values) == 2 else 0, writes=True)
    return Code(f"complex {name}", (*operands, out), "\n".join(lines), meaning)


def _where(condition: Any, x: Any, y: Any, out: Any) -> None:
    out[...] = np.where(condition[..., None], x, y)


WHERE = Code(
    "complex where",
    (Operand("condition"), Operand("x", 1), Operand("y", 1), Operand("out", 1, writes=True)),
    "\n".join([
        "chosen = tl.load(condition + condition_at, mask=inside, other=0) != 0", *_loaded("x"), *_loaded("y"),
        "re = tl.where(chosen, x_re, y_re)", "im = tl.where(chosen, x_im, y_im)", *_STORED,
    ]),
    _where,
)  # fmt: skip


def _join(x: Any, y: Any, out: Any) -> None:
    out[..., 0], out[..., 1] = x, y


JOIN = Code(
    "complex of parts",
    (Operand("x"), Operand("y"), Operand("out", 1, writes=True)),
    "re = tl.load(x + x_at, mask=inside, other=0.0).to(out.dtype.element_ty)\n"
    "im = tl.load(y + y_at, mask=inside, other=0.0).to(out.dtype.element_ty)\n" + "\n".join(_STORED),
    _join,
)


def number(value: Any, dtype: Any, device: Any) -> CudaArray:
    """A number of the program as an array, filled in place: nothing is copied from the host."""
    real = real_of(dtype)
    out = MEMORY.empty((), dtype, device)
    parts = (complex(value).real, complex(value).imag)
    words = struct.unpack(f"<{out.dtype.itemsize // 4}I", struct.pack(f"<2{real.char}", *parts))
    driver, stream = out.on.enter(), current(out.on).handle
    for i, word in enumerate(words):
        driver.fill(out.address + 4 * i, word, 4, 1, stream)
    return out


# ---- ops


def among(args: tuple[Any, ...]) -> bool:
    """Whether something of a call is complex."""
    return any([a.__class__ is complex for a in args]) or any([x.dtype.kind == "c" for x in arrays_in(args)])


def computed(op: Op, args: tuple[Any, ...]) -> Any:
    """An op of complex numbers; NotImplemented of what has no kernel."""
    if op.name == "select_where":
        return _chosen(op, args)
    if op.name in ("sum", "mean"):
        return _total(op.name, *args)
    if op.name in BILINEAR:
        return _product(op.name, *args)
    if op.name in _OF_PARTS:
        return _OF_PARTS[op.name](*args)
    if op.name not in PARTS and op.name not in NUMBERS:
        return NotImplemented
    given = args[: 2 if op.name in TWO else 1]
    arrays = _alike(given)
    return NotImplemented if arrays is None else _lanes(code_of(op.name), op, args, arrays, op.name in PARTS)


def _alike(given: tuple[Any, ...]) -> list[CudaArray] | None:
    """Operands, of which some may be numbers, real or whole, as complex arrays of one dtype; None of others."""
    arrays = [x for x in given if isinstance(x, CudaArray)]
    if len(arrays) < sum([not isinstance(x, int | float | complex) for x in given]):
        return None
    if not all([x.dtype.char in "fdFD" or x.dtype.kind in "iub" for x in arrays]):
        return None
    kind = np.result_type(*[x.dtype for x in arrays if x.dtype.kind in "fc"], np.complex64)
    (first, *_) = arrays
    return [_converted(x, kind) if isinstance(x, CudaArray) else number(x, kind, first.device) for x in given]


def _converted(x: CudaArray, dtype: Any) -> CudaArray:
    if x.dtype == dtype:
        return x
    out = MEMORY.empty(x.shape, dtype, x.device)
    MEMORY.assign(out, x)
    return out


def _lanes(code: Code, op: Op, args: tuple[Any, ...], arrays: list[CudaArray], pairs: bool) -> Any:
    if not all([0 < x.size < MOST and x.dtype.kind == "c" for x in arrays]):
        return NotImplemented
    specs = [Spec(a.shape, a.dtype, a.device, a.strides) if isinstance(a, CudaArray) else a for a in args]
    result = op.kind.infer(op, specs)
    out = MEMORY.empty(tuple(result.shape), result.dtype, arrays[0].device)
    placed = [in_pairs(x, out.shape) for x in arrays]
    start(code, out.shape, [*placed, in_pairs(out, out.shape) if pairs else Placed(out, out.strides)])
    return out


def _chosen(op: Op, args: tuple[Any, ...]) -> Any:
    condition, *given = args
    arrays = _alike(tuple(given)) if any([isinstance(a, CudaArray) for a in given]) else None
    if arrays is None or not isinstance(condition, CudaArray) or condition.dtype != FLAG:
        return NotImplemented
    x, y = arrays
    shape = np.broadcast_shapes(condition.shape, x.shape, y.shape)
    out = MEMORY.empty(shape, x.dtype, x.device)
    start(WHERE, shape, [Placed(condition, broadcast(condition, shape)), *[in_pairs(a, shape) for a in (x, y, out)]])
    return out


def _total(name: str, input: CudaArray, dim: Any, keepdim: bool, dtype: Any = None) -> Any:
    if input.dtype.kind != "c" or (dtype is not None and np.dtype(dtype) != input.dtype):
        return NotImplemented
    if not input.ndim or not input.size:
        return MEMORY.copy(input) if input.size else NotImplemented
    given = (dim,) if isinstance(dim, int) else dim
    dims = tuple([d % input.ndim for d in given]) if given else tuple(range(input.ndim))
    rest = () if dtype is None else (real_of(input.dtype),)
    return from_pairs(MEMORY.kernel(REGISTRY[name])(pairs_of(input), dims, keepdim, *rest))


def _product(name: str, *args: Any) -> Any:
    """(a + bi)(c + di), of matrices; of sums of products likewise, whose operands are a list."""
    x, y, wrapped = (
        (*args, False) if name == "matmul" else (*args[0], True) if len(args[0]) == 2 else (None, None, True)
    )
    if x is None or x.dtype != y.dtype or not x.size or not y.size:
        return NotImplemented
    multiply, add, sub = (MEMORY.kernel(REGISTRY[each]) for each in (name, "add", "sub"))
    (a, b), (c, d) = ([MEMORY.copy(part_of(z, i)) for i in (0, 1)] for z in (x, y))
    of = (lambda p, q: multiply([p, q], *args[1:])) if wrapped else multiply
    return joined(sub(of(a, c), of(b, d)), add(of(a, d), of(b, c)))


def _running(input: CudaArray, dim: int, dtype: Any) -> Any:
    """Running sums, of both parts."""
    if not input.ndim or not input.size or dtype not in (None, input.dtype):
        return NotImplemented
    return from_pairs(MEMORY.kernel(REGISTRY["cumsum"])(pairs_of(input), dim % input.ndim, real_of(input.dtype)))


def _padded(input: CudaArray, pad: Any, value: Any = 0) -> Any:
    """With a border of zeros, which both parts have."""
    if value or not input.size:
        return NotImplemented
    return from_pairs(MEMORY.kernel(REGISTRY["constant_pad_nd"])(pairs_of(input), (0, 0, *pad), 0))


def _normed(input: CudaArray, p: Any, dim: Any, keepdim: bool, dtype: Any = None) -> Any:
    """The norm of absolute values."""
    if dtype is not None:
        return NotImplemented
    return MEMORY.kernel(REGISTRY["norm"])(MEMORY.kernel(REGISTRY["abs"])(input), p, dim, keepdim, None)


def _power(x: Any, y: Any) -> Any:
    """A small whole power, by products."""
    if not isinstance(x, CudaArray) or not isinstance(y, int | float) or y not in range(2, MOST_PRODUCTS):
        return NotImplemented
    multiply = MEMORY.kernel(REGISTRY["mul"])
    half = x if y < 4 else _power(x, y // 2)
    square = multiply(half, half)
    return multiply(square, x) if y % 2 else square


_OF_PARTS: dict[str, Callable[..., Any]] = {
    "cumsum": _running,
    "constant_pad_nd": _padded,
    "norm": _normed,
    "pow": _power,
}


def joined(re: CudaArray, im: CudaArray) -> CudaArray:
    """The complex numbers with these parts."""
    out = MEMORY.empty(re.shape, np.dtype(f"c{2 * re.dtype.itemsize}"), re.device)
    start(JOIN, out.shape, [Placed(re, re.strides), Placed(im, im.strides), in_pairs(out, out.shape)])
    return out


def written(target: CudaArray, source: CudaArray, write: Callable[[CudaArray, CudaArray], bool]) -> bool:
    """Write into complex numbers, or of their real parts into others; whether there are kernels for that."""
    if target.dtype.kind != "c":
        return False
    zero = MEMORY.zeros((), real_of(target.dtype), target.device)
    parts = [part_of(source, i) for i in (0, 1)] if source.dtype.kind == "c" else [source, zero]
    return all([write(part_of(target, i), x) for i, x in enumerate(parts)])
