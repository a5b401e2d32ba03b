"""Functions that see one number or one pointer at a time, made differentiable in one line.

`from_scalar`   Python numbers in, a Python number out; called for each element
`from_ctypes`   C functions ``void f(const T *x, ..., T *out, size_t n)``
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from genesis.autograd.forms.foreign import ForeignFunction, Rule, expect_name, from_numpy
from genesis.base.errors import ArgumentValueError, message
from genesis.core.call.refusal import expect_function, explain_all


def from_scalar(
    f: Rule, df: Rule | tuple[Rule | None, ...] | None = None, *, ddf: Rule | None = None, name: str | None = None
) -> ForeignFunction:
    """A function of Python numbers, ``math.gamma`` or one from a C library, called for each element.

    Args:
        df: the derivative, a function of the same numbers; a tuple of one for each input of several
        ddf: the second derivative, of functions of one input

    Raises: as `from_numpy`.

    >>> import math, genesis
    >>> erf = genesis.autograd.from_scalar(math.erf, lambda x: 2 / math.sqrt(math.pi) * math.exp(-x * x))
    >>> x = genesis.tensor([0.0, 1.0], requires_grad=True)
    >>> y = erf(x); y.sum().backward(); x.grad
    tensor([1.1284, 0.4151])
    """
    expect_function("from_scalar", "f", f)
    expect_name("from_scalar", name)
    for rule in df if isinstance(df, tuple) else (df, ddf):
        expect_function("from_scalar", "a derivative", f if rule is None else rule)
    over = lambda rule: None if rule is None else rule if isinstance(rule, ForeignFunction) else _each(rule)
    rules = tuple(over(rule) for rule in df) if isinstance(df, tuple) else over(df)
    return from_numpy(_each(f), rules, ddf=over(ddf), name=name)


def _each(f: Rule) -> Rule:
    def each(*inputs: Any, **kwargs: Any) -> Any:
        call = functools.partial(f, **kwargs) if kwargs else f
        return np.asarray(np.frompyfunc(call, len(inputs), 1)(*inputs), object).astype(_floating(inputs))

    each.__name__ = getattr(f, "__name__", type(f).__name__)
    return each


def _floating(inputs: tuple[Any, ...]) -> Any:
    dtypes = [x.dtype for x in inputs if isinstance(x, np.ndarray) and x.dtype.kind in "fc"]
    return np.result_type(*dtypes) if dtypes else np.dtype(np.float64)


def from_ctypes(
    function: Any, df: Any = None, *, dtype: Any = np.float64, name: str | None = None, **forms: Any
) -> ForeignFunction:
    """A C function ``void f(const T *x, ..., T *out, size_t n)`` that works element by element.

    Inputs are broadcast to one shape, and copied only if they are not contiguous or not of the type T.

    Args:
        df: its derivative: a C function of the same form, a function on arrays, or a tuple of one for each input
        dtype: the type T
        forms: ``vjp``, ``jac`` or ``ddf``, as for `from_numpy`

    Raises: as `from_numpy`; ValueError: T is no C type.

    >>> import ctypes, genesis
    >>> pointer = ctypes.POINTER(ctypes.c_double)
    >>> @ctypes.CFUNCTYPE(None, pointer, pointer, ctypes.c_size_t)  # as a library compiled from C would have it
    ... def square(x, out, n):
    ...     for i in range(n):
    ...         out[i] = x[i] * x[i]
    >>> f = genesis.autograd.from_ctypes(square, df=lambda x: 2 * x, name="square")
    >>> x = genesis.tensor([1.0, 3.0], requires_grad=True)
    >>> f(x).sum().backward(); x.grad
    tensor([2., 6.])
    """
    kind = np.dtype(dtype)
    try:
        pointer = ctypes.POINTER(np.ctypeslib.as_ctypes_type(kind))
    except NotImplementedError:
        raise ArgumentValueError(
            message("from_ctypes", f"dtype {kind} is no type of C", hint="np.float64 or np.float32")
        ) from None

    def over(rule: Any) -> Any:
        return _through_pointers(rule, kind, pointer) if isinstance(rule, ctypes._CFuncPtr) else rule

    rules = tuple(over(rule) for rule in df) if isinstance(df, tuple) else over(df)
    expect_name("from_ctypes", name)
    title = name or getattr(function, "__name__", "c_function")
    return from_numpy(
        _through_pointers(function, kind, pointer),
        rules,
        name=title,
        **{key: over(rule) for key, rule in forms.items()},
    )


def _through_pointers(function: Any, kind: np.dtype[Any], pointer: Any) -> Rule:
    def call(*inputs: Any) -> Any:
        arrays = np.broadcast_arrays(*[np.asarray(x, kind) for x in inputs])
        arrays = [np.require(a, kind, "C") for a in arrays]
        out = np.empty(arrays[0].shape, kind)
        function(*[a.ctypes.data_as(pointer) for a in [*arrays, out]], ctypes.c_size_t(out.size))
        return out.astype(_floating(inputs), copy=False)

    return call


explain_all(globals(), "from_scalar", "from_ctypes")
