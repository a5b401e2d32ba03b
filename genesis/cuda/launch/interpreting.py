"""The process that runs kernels by Triton's interpreter: reads them from its input, writes arrays to its output."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import numpy as np

from genesis.core.call.op import REGISTRY
from genesis.cuda.launch.triton import function

_OPS = {
    "normcdf": "normal_cdf", "erf": "erf", "erfc": "erfc", "erfinv": "erfinv", "lgamma": "lgamma", "cyl_bessel_i0": "i0",
    "cyl_bessel_i1": "special_i1", **{name: f"special_bessel_{name}" for name in ("j0", "j1", "y0", "y1")},
    "erfcx": "special_erfcx", "normcdfinv": "special_ndtri",
}  # fmt: skip
_UFUNCS = {
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
    "atan2": "arctan2", "pow": "power",
}  # fmt: skip
# of `genesis.jit.lowering.triton_activations`
_INSTRUCTIONS = {"power_of_two": np.exp2, "reciprocal": np.reciprocal, "stays_narrow": np.copy}
_REDUCTIONS = {"largest": np.max, "smallest": np.min}  # of `emit_triton`, which the interpreter does one by one


class Pointer:
    """An array from one of its elements on, as far as the interpreter asks a tensor."""

    def __init__(self, array: np.ndarray[Any, Any], first: int = 0) -> None:
        self.array, self.first = array, first
        self.dtype = "int8" if array.dtype == np.bool_ else array.dtype.name

    def data_ptr(self) -> int:
        return int(self.array.ctypes.data) + self.first * self.array.itemsize

    def untyped_storage(self) -> Pointer:
        return self

    def cpu(self) -> Pointer:
        return self

    def new_empty(self, *_: Any, **__: Any) -> Pointer:
        return self

    def set_(self, *_: Any) -> None:
        pass

    copy_ = set_

    def storage_offset(self) -> int:
        return 0

    size = stride = storage_offset


class Library:
    """`libdevice` by NumPy, and the meanings of ops."""

    def __getattr__(self, name: str) -> Any:
        meaning = REGISTRY[_OPS[name]].meaning if name in _OPS else getattr(np, _UFUNCS.get(name, name))
        return _of_tensors(getattr(meaning, "__wrapped__", meaning))


def _of_tensors(compute: Any) -> Any:
    """A function of arrays as one of the interpreter's tensors."""
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle

    def call(*args: Any) -> Any:
        kind = next(a for a in args if isinstance(a, tl.tensor))
        data = [a.handle.data if isinstance(a, tl.tensor) else np.asarray(a) for a in args]
        with np.errstate(all="ignore"):
            out = np.asarray(compute(*data)).astype(data[0].dtype)
        shape = np.broadcast_shapes(*[d.shape for d in data])
        wide = next(a for a in args if isinstance(a, tl.tensor) and a.handle.data.shape == shape)
        return tl.tensor(TensorHandle(out, kind.dtype), wide.type)

    return call


def _of_all(reduce: Any) -> Any:
    """A reduction over the first dimension of one of the interpreter's tensors."""
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle

    def call(x: Any) -> Any:
        out = np.asarray(reduce(x.handle.data, axis=0))
        kind = tl.block_type(x.dtype.scalar, list(out.shape)) if out.shape else x.dtype.scalar
        return tl.tensor(TensorHandle(np.atleast_1d(out), x.dtype.scalar), kind)

    return call


def run(source: str, grid: tuple[int, int, int], arguments: list[Any]) -> list[Any]:
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle

    kernel = function(source)
    kernel.fn.__globals__["libdevice"] = Library()
    for name, compute in _INSTRUCTIONS.items():
        kernel.fn.__globals__[name] = _of_tensors(compute)
    for name, reduce in _REDUCTIONS.items():
        kernel.fn.__globals__[name] = _of_all(reduce)
    given = []
    for value in arguments:
        if isinstance(value, np.ndarray):
            given.append(Pointer(value))
        elif isinstance(value, tuple):
            given.append(Pointer(*value))
        elif isinstance(value, float):
            given.append(tl.tensor(TensorHandle(np.array([value]), tl.float64), tl.float64))
        elif isinstance(value, np.uint64):
            given.append(tl.tensor(TensorHandle(np.array([value]), tl.uint64), tl.uint64))
        else:
            given.append(value)
    with np.errstate(all="ignore"):
        kernel[grid](*given)
    return [value.array if isinstance(value, Pointer) else None for value in given]


def main() -> None:
    out = sys.stdout.buffer
    sys.stdout = sys.stderr  # nothing else may write to it
    while True:
        try:
            asked = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            answer = True, run(*asked)
        except Exception as error:
            answer = False, f"{type(error).__name__}: {error}"
        pickle.dump(answer, out)
        out.flush()


if __name__ == "__main__":
    main()
