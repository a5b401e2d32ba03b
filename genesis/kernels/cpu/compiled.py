"""Elementwise functions as compiled loops, where llvmlite is: one pass over memory, in vectors.

An element has the same bits in a small array and in a large one. A machine without llvmlite, and dtypes without a loop,
are left to what was attached before. A loop is compiled when it is first needed (10 to 20 ms; 1 ms where the machine
code is kept on disk).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import FunctionType
from typing import Any

import numpy as np

from genesis.arrays.memory import HOST, strides_of_copy
from genesis.arrays.spec import strides_of
from genesis.base.errors import UnsupportedError, message
from genesis.base.quiet import silent, unnamed
from genesis.core.call.kernels import attach
from genesis.core.call.op import REGISTRY
from genesis.kernels.cpu import activation, elementwise, memory, pointwise, special  # what they attach comes before
from genesis.kernels.llvm import activations, functions, loops
from genesis.kernels.native import runtime

BEFORE = activation, elementwise, pointwise, special

LARGE = {
    "elements": 8192,  # from where it pays to look for memory, and to compile what NumPy does as exactly
    "for threads": 1 << 18,
}  # a table, since kernels that are called directly have no module (`base/quiet.py`)
_KINDS = {"f": "float", "d": "double"}


class Loops(dict[str, Callable[..., Any]]):
    """The ufunc for each dtype, by its letter, as ``form`` uses it; what was attached before where there is none."""

    def __init__(self, name: str, before: Callable[..., Any], dtypes: str, form: Callable[[np.ufunc], Any]) -> None:
        self.name, self.before, self.dtypes, self.form = name, before, dtypes, form

    def __missing__(self, letter: str) -> Callable[..., Any]:
        known = letter in self.dtypes and loops.available()
        self[letter] = loop = self.form(_ufunc(self.name, letter)) if known else self.before
        return loop


@unnamed
def everywhere(loop: Callable[..., Any], *arrays: Any) -> Any:
    """The loop over all elements of arrays, by several threads where they are many and beside each other."""
    first = arrays[0]
    if not all([a.flags.c_contiguous and a.shape == first.shape for a in arrays]):
        return loop(*arrays)
    runtime.ready()
    return loop(*arrays, memory.empty(first.shape, first.dtype))


@unnamed
def _of_one(x: Any, few: Any = None, many: Any = None, large: Any = None) -> Any:
    if x.size < large["elements"]:
        return few[x.dtype.char](x)
    return many[x.dtype.char](x)


@unnamed
def _of_two(x: Any, y: Any, few: Any = None, many: Any = None, large: Any = None) -> Any:
    if x.size < large["elements"] and y.size < large["elements"]:
        return few[x.dtype.char](x, y)
    return many[x.dtype.char](x, y)


def _attach(op: str, name: str = "", dtypes: str = "fd") -> None:
    """Attach a loop. (No closure, so that it is called as directly as a ufunc.)"""
    before, name = silent(REGISTRY[op].kernel), name or op
    few = Loops(name, before, dtypes, lambda loop: loop)
    many = Loops(name, before, dtypes, lambda loop: functools.partial(everywhere, loop))
    form = _of_one if len(REGISTRY[op].tensors) == 1 else _of_two
    attach(op, np.ndarray, FunctionType(form.__code__, form.__globals__, op, (few, many, LARGE)))


CHOICES = ("relu", "gate")
NARROW = (*CHOICES, "frac", "leaky_relu", "hardsigmoid", "hardswish")  # no digits are lost that float64 would keep
# of float64 numbers NumPy's loops for these are as fast
ONLY_FLOAT32 = ("exp", "exp2", "expm1", "log", "log2", "log10")
BOTH = ("sin", "cos", "erf", "erfc", "erfinv", "normal_cdf", "sigmoid", "logit", "log1pexp", "tanh_rest", "frac",
        "hypot", "fmod", "sigmoid_gradient", "tanh_gradient")  # fmt: skip
for _name in ONLY_FLOAT32:
    _attach(_name, dtypes="f")
_attach("rsqrt", dtypes="d")
for _name in (*BOTH, *CHOICES):
    _attach(_name)
_attach("times_sigmoid", "silu")


# ---- composites, with their gradients


@functools.cache
def _ufunc(name: str, letter: str) -> np.ufunc:
    if not loops.available():
        raise UnsupportedError(
            message(name, "this program calls a compiled loop, and there is no llvmlite here",
                    hint='pip install "genesis-dl[jit]", or genesis.jit.decomposition(graph)')
        )  # fmt: skip
    function = getattr(functions, name, None) or getattr(activations, name)
    narrow = name == "gelu_gradient" or name.removesuffix("_gradient") in NARROW
    kind, count = _KINDS[letter], function.__code__.co_argcount
    return loops.ufunc(f"{name}_{kind}", function, kind, count, narrow, spread=runtime.spread)


@unnamed
def _in_order(loop: np.ufunc, numbers: Sequence[Any], *arrays: Any) -> Any:
    """The loop over all elements of arrays of one shape, the result in the order that the last of them has in memory."""
    last = arrays[-1]
    beside = last.flags.c_contiguous and (last is arrays[0] or all([a.flags.c_contiguous for a in arrays]))
    if beside and last.ndim and last.size < LARGE["elements"]:
        return loop(*arrays, *numbers)
    runtime.ready()
    strides = None if last.flags.c_contiguous else strides_of_copy(last.shape, HOST.strides(last))
    steps = None if strides is None else [s * last.itemsize for s in strides]
    return loop(*arrays, *numbers, memory.empty(last.shape, last.dtype, steps))


def _fits(x: Any) -> bool:
    return x.dtype.char in _KINDS and loops.available()


def _attach_fused(op: str, choose: Callable[..., str | None], *names: str) -> None:
    """Attach the loops of a composite and of its gradient.

    Args:
        choose: from the arguments after the input, the name of the function; None if there is none
        names: the parameters whose numbers it takes
    """
    parameters = list(REGISTRY[op].signature.parameters)
    positions = [parameters.index(name) - 1 for name in names]
    numbers = (lambda options: [options[i] for i in positions]) if positions else (lambda options: ())

    def when(input: Any, *options: Any) -> bool:
        plain = not positions or all([x.__class__ in (int, float) for x in numbers(options)])
        return plain and choose(*options) is not None and _fits(input)

    def forward(input: Any, *options: Any) -> Any:
        loop = _ufunc(str(choose(*options)), input.dtype.char)
        return _in_order(loop, numbers(options), input), (input, *options)

    def infer(input: Any, *options: Any) -> Any:
        return replace(input, strides=strides_of_copy(input.shape, strides_of(input))), tuple(parameters)

    def laid(kept: Any) -> Any:
        return [strides_of_copy(kept[0].shape, strides_of(kept[0]))]

    def backward(g: Any, kept: Any, needs: Any) -> Any:
        input, *options = kept
        loop = _ufunc(f"{choose(*options)}_gradient", input.dtype.char)
        return (_in_order(loop, numbers(options), g, input),)

    attach(op, np.ndarray, forward, when=when, infer=infer, quiet=True).backward(backward, laid=laid)


FUSED = ("gelu", "silu", "hardsigmoid", "hardswish", "leaky_relu", "elu", "celu")
_attach_fused("gelu", {"none": "gelu", "tanh": "gelu_tanh"}.get)
_attach_fused("silu", lambda *_: "silu")
_attach_fused("hardsigmoid", lambda *_: "hardsigmoid")
_attach_fused("hardswish", lambda *_: "hardswish")
_attach_fused("leaky_relu", lambda *_: "leaky_relu", "negative_slope")
_attach_fused("elu", lambda *_: "elu", "alpha")
_attach_fused("celu", lambda alpha, *_: "celu" if alpha else None, "alpha")


# ---- slopes of channels


def _slopes(input: Any, weight: Any) -> Any:
    """The slopes as an array that goes with the input."""
    return weight.reshape(-1, *[1] * max(input.ndim - 2, 0)) if weight.size > 1 else weight.reshape(())


def _takes_slopes(input: Any, weight: Any) -> bool:
    channels = input.shape[1] if input.ndim > 1 else 1
    return _fits(input) and weight.dtype is input.dtype and weight.size in (1, channels)


@attach("prelu", np.ndarray, when=_takes_slopes, infer=lambda input, weight: (input, ("input", "weight")))
def prelu(input: Any, weight: Any) -> Any:
    """The kernel of `genesis.nn.functional.prelu`."""
    runtime.ready()
    loop = _ufunc("leaky_relu", input.dtype.char)
    return loop(input, _slopes(input, weight), memory.empty(input.shape, input.dtype)), (input, weight)


@prelu.backward
def _(g: Any, kept: Any, needs: Any) -> Any:
    input, weight = kept
    gx = gw = None
    if needs[0]:
        loop = _ufunc("leaky_relu_gradient", input.dtype.char)
        gx = loop(g, input, _slopes(input, weight), memory.empty(input.shape, input.dtype))
    if needs[1]:
        below = np.minimum(input, 0) * g
        dims = tuple([i for i in range(input.ndim) if i != 1]) if weight.size > 1 else None
        gw = np.asarray(below.sum(dims, np.float64), weight.dtype).reshape(weight.shape)
    return gx, gw
