"""What ops do with numbers that are only stored (`base/narrow.py`): they are moved, compared and converted.

Whatever moves elements takes them, and what PyTorch computes in these dtypes on the CPU: it is computed in float32 or
complex64 and rounded once. Everything else is refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.arrays.spec import spec_of
from genesis.arrays.stored import Stored, stored
from genesis.base import dtypes
from genesis.base.errors import DTypeError, UnsupportedError, message
from genesis.base.narrow import NARROW, converted, widened
from genesis.core.call import computing
from genesis.core.call.kinds.elementwise import Elementwise
from genesis.core.call.kinds.indexing import Indexing
from genesis.core.call.kinds.others import Conversion, Movement
from genesis.core.call.kinds.view import View
from genesis.core.call.op import Op

F16, C32 = np.dtype(np.float16), dtypes.complex32.np
_ALWAYS = {"clone", "select_where", "eq", "ne", "isnan", "any", "all", "conj_physical"}
_FLOATS = _ALWAYS | {"abs", "matmul", "linear"}
_HALVES = _ALWAYS | {"abs", "add", "sub", "mul", "neg", "sgn", "isinf", "isfinite", "norm", "var", "std"}
_COMPUTED = {kind.np: _FLOATS for kind in dtypes.STORED} | {dtypes.float8_e8m0fnu.np: _ALWAYS, C32: _HALVES}


def interpret(op: Op, arrays: tuple[Any, ...], top: Any) -> Any:
    """The result of an op, some of whose tensors are only stored."""
    if op.kind.__class__ is View:
        return stored(_view(op, arrays))
    if isinstance(op.kind, Conversion):
        return computing.compute(op, arrays)
    if not isinstance(op.kind, Movement | Indexing) and op.name not in _COMPUTED[top.dtype]:
        raise _refusal(op, top)
    want = _joint(op, arrays, top)
    if isinstance(op.kind, Elementwise):
        return _rounded(computing.compute_elementwise(op, *[_operand(a, want) for a in arrays]), want)
    result = computing.compute(op, [_wide(a) for a in arrays])
    if isinstance(result, tuple | list):
        return tuple([_rounded(r, want) for r in result])
    return _rounded(result, want)


def check_moved(op: Op, x: Any) -> None:
    """Refuse what a trace cannot hold: all but views, copies and conversions."""
    if not isinstance(op.kind, View | Conversion) and op.name != "clone":
        raise _refusal(op, x)


def _refusal(op: Op, x: Any) -> UnsupportedError:
    problem = f"{dtypes.from_numpy(x.dtype)} is for storing numbers, not for computing"
    hint = "x.cfloat()" if x.dtype == C32 else "x.float()"
    return UnsupportedError(message(op.name, problem, [("input", spec_of(x))], hint))


def _wide(value: Any) -> Any:
    if isinstance(value, list):
        return [_wide(x) for x in value]
    return widened(value) if isinstance(value, np.ndarray) else value


def _operand(value: Any, dtype: Any) -> Any:
    """An array as it is computed with; a number that is compared with 8-bit floats is one of them."""
    if isinstance(value, float | int) and dtype in NARROW and dtype != C32:
        return widened(converted(np.asarray(value), dtype)).item()
    return _wide(value)


def _joint(op: Op, arrays: tuple[Any, ...], top: Any) -> Any:
    """The dtype in which the numbers of a call meet: for what is no computation with other tensors one dtype."""
    given = arrays[0] if op.variadic else [arrays[i] for i in op.tensors]
    numbers = [x for x in given if not (isinstance(x, np.ndarray) and x.dtype.kind in "biu") and x is not None]
    if isinstance(op.kind, Elementwise):
        return dtypes.result_np_dtype(numbers)
    for x in numbers:
        if x.dtype != top.dtype:
            mine, other = dtypes.from_numpy(top.dtype), dtypes.from_numpy(x.dtype)
            raise DTypeError(message(op.name, f"{mine} and {other} do not promote", hint="convert one with .to(dtype)"))
    return top.dtype


def _rounded(result: Any, dtype: Any) -> Any:
    """A result of float32 or complex64 in the dtype of the call; parts of half complex numbers are float16."""
    kind = result.dtype.kind
    if dtype not in NARROW or kind not in "fc":
        return result
    return result.astype(F16) if dtype == C32 and kind == "f" else stored(converted(result, dtype))


_PARTS = {"real": lambda x: x["real"], "imag": lambda x: x["imag"]}


def _view(op: Op, arrays: tuple[Any, ...]) -> Any:
    x = arrays[0]
    if x.dtype != C32 or op.name not in (*_PARTS, "view_as_real"):
        return computing.compute(op, arrays) if op.name != "view_dtype" else x.view(np.ndarray).view(arrays[1])
    plain = x.view(np.ndarray)
    if op.name in _PARTS:
        return _PARTS[op.name](plain)
    return np.lib.stride_tricks.as_strided(plain["real"], (*x.shape, 2), (*x.strides, F16.itemsize))


computing.INTERPRETERS[Stored] = interpret
