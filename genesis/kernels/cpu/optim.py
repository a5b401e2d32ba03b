"""Steps of optimizers on NumPy arrays, in place: compiled where there is llvmlite and a parameter is large, or steps are
many; those of Adam else in blocks that stay in the cache.

The composition in `genesis.ops.learning.update` goes over each array sixteen times; in blocks of 16,384 elements all
passes but the first find their data in the level-2 cache, and small parameters save the cost of sixteen calls through
tensors. The compiled loop takes a third of the time of the blocks and gives the same bits. One call of it does the
steps of all parameters: it finds their elements by a table of the arrays' addresses.
"""

from __future__ import annotations

import functools
from array import array
from collections.abc import Sequence
from ctypes import c_int64, c_void_p
from typing import Any

import numpy as np

from genesis.core.call.halves import F32, F64
from genesis.core.call.kernels import attach
from genesis.kernels.cpu import memory
from genesis.kernels.cpu.compiled import LARGE
from genesis.kernels.llvm import loops, native, steps
from genesis.kernels.native import runtime

BLOCK = 16_384
OFTEN = 2_000  # steps of small parameters after which it pays to compile for them, too: 8 us of each are saved

_small = {"steps": 0}
_KINDS = {"f": "float", "d": "double"}


def _fits(param: Any, grad: Any, exp_avg: Any, exp_avg_sq: Any, max_exp_avg_sq: Any, *_: Any) -> bool:
    """One floating dtype and shape, contiguous, writable."""
    kind = param.dtype
    if (kind is not F32 and kind is not F64) or max_exp_avg_sq is not None:
        return False
    if not grad.dtype is exp_avg.dtype is exp_avg_sq.dtype is kind:
        return False
    if not grad.shape == exp_avg.shape == exp_avg_sq.shape == param.shape:
        return False
    # contiguous, aligned and writable
    return param.flags.carray and exp_avg.flags.carray and exp_avg_sq.flags.carray  # type: ignore[no-any-return]


@attach("adam_step", np.ndarray, when=_fits)
def adam_step(
    param: Any,
    grad: Any,
    exp_avg: Any,
    exp_avg_sq: Any,
    _: None,
    beta1: float,
    beta2: float,
    root: float,
    eps: float,
    rate: float,
    shrink: float | None,
) -> None:
    """The kernel of `genesis.ops.learning.update.adam_step`."""
    if _pays(param.size) and loops.available():
        numbers = _numbers(beta1, beta2, root, eps, rate, shrink)
        _compiled(param.dtype.char)(param, grad, exp_avg, exp_avg_sq, *numbers, param, exp_avg, exp_avg_sq)
        return
    _in_blocks(param, grad, exp_avg, exp_avg_sq, beta1, beta2, root, eps, rate, shrink)


@adam_step.many
def _adam_steps(
    rows: Sequence[Any], beta1: float, beta2: float, root: float, eps: float, rate: float, shrink: float | None
) -> None:
    """Steps of many parameters: the small ones by one call of a compiled function."""
    if not _pays(max([row[0].size for row in rows]), len(rows)) or not loops.available() or not native.ARRAY_DATA:
        for param, grad, exp_avg, exp_avg_sq, _ in rows:
            _in_blocks(param, grad, exp_avg, exp_avg_sq, beta1, beta2, root, eps, rate, shrink)
        return
    numbers = _numbers(beta1, beta2, root, eps, rate, shrink)
    tables: dict[Any, Any] = {}
    gradients = []  # they live as long as the tables, which have their addresses
    for param, grad, exp_avg, exp_avg_sq, _ in rows:
        size = param.size
        if size >= LARGE["elements"]:
            _compiled(param.dtype.char)(param, grad, exp_avg, exp_avg_sq, *numbers, param, exp_avg, exp_avg_sq)
            continue
        if not grad.flags.carray:
            grad = np.array(grad, order="C")  # noqa: PLW2901
            gradients.append(grad)
        table = tables.get(param.dtype)
        if table is None:
            table = tables[param.dtype] = []
        table += id(param), id(grad), id(exp_avg), id(exp_avg_sq), size
    for dtype, table in tables.items():
        given = np.array(numbers, dtype)
        words = array("q", table)
        step = _compiled_rows(dtype.char)
        step(words.buffer_info()[0], len(table) // 5, memory.address(given), native.ARRAY_DATA)


def steps_pay(sizes: Sequence[int]) -> bool:
    """Whether `steps_by_rule` is there, and worth to compile, for parameters of such sizes."""
    return bool(sizes) and _pays(max(sizes), len(sizes)) and loops.available() and native.ARRAY_DATA != 0


def steps_by_rule(rule: str, state: tuple[str, ...], rows: Sequence[Sequence[Any]], numbers: dict[str, float]) -> None:
    """Steps by a rule of `genesis.kernels.llvm.steps`: a row has the arrays of a parameter, its gradient and its state."""
    names, table, kept, letter = tuple(numbers), array("q"), [], rows[0][0].dtype.char
    for row in rows:
        param, grad, *states = row
        if param.size >= LARGE["elements"]:
            _compiled_step(rule, state, names, letter)(*row, *map(float, numbers.values()), param, *states)
            continue
        if not grad.flags.carray:
            grad = np.array(grad, order="C")
            kept.append(grad)  # as long as the table, which has its address
        table.extend((id(param), id(grad), *map(id, states), param.size))
    if table:
        given = np.array([*numbers.values()], letter)
        step, width = _compiled_step_rows(rule, state, names, letter), len(state) + 3
        step(table.buffer_info()[0], len(table) // width, given.ctypes.data, native.ARRAY_DATA)


@functools.cache
def _compiled_step(rule: str, state: tuple[str, ...], numbers: tuple[str, ...], letter: str) -> np.ufunc:
    kind, function = _KINDS[letter], steps.step(rule, state, numbers)
    operands = 2 + len(state) + len(numbers)
    return loops.ufunc(
        f"{rule}_{kind}", function, kind, operands, narrow=True, results=1 + len(state), spread=runtime.spread
    )


@functools.cache
def _compiled_step_rows(rule: str, state: tuple[str, ...], numbers: tuple[str, ...], letter: str) -> Any:
    code = steps.step_rows(rule, state, numbers, _KINDS[letter])
    return native.function(f"{rule}_rows", code, c_void_p, c_int64, c_void_p, c_int64)


@functools.cache
def _compiled_rows(letter: str) -> Any:
    kind = _KINDS[letter]
    return native.function("adam_rows", steps.adam_rows(kind), c_void_p, c_int64, c_void_p, c_int64)


def _numbers(beta1: float, beta2: float, root: float, eps: float, rate: float, shrink: float | None) -> list[float]:
    """What the compiled loop takes; NumPy's numbers as Python's: those of float64 would ask for a loop of float64."""
    scales = 1 - beta1, beta2, 1 - beta2, root, eps, rate, 1.0 if shrink is None else shrink
    return [float(x) for x in scales]


def _in_blocks(
    param: Any, grad: Any, exp_avg: Any, exp_avg_sq: Any,
    beta1: float, beta2: float, root: float, eps: float, rate: float, shrink: float | None,
) -> None:  # fmt: skip
    scales = beta1, beta2, root, eps, rate, 1.0 if shrink is None else shrink
    if param.size <= BLOCK:
        _block(param, grad, exp_avg, exp_avg_sq, np.empty(param.shape, param.dtype), *scales)
        return
    p, g, m, v = param.reshape(-1), grad.reshape(-1), exp_avg.reshape(-1), exp_avg_sq.reshape(-1)
    scratch = np.empty(BLOCK, p.dtype)
    for start in range(0, p.size, BLOCK):
        part = slice(start, start + BLOCK)
        _block(p[part], g[part], m[part], v[part], scratch[: min(BLOCK, p.size - start)], *scales)


def _pays(size: int, steps: int = 1) -> bool:
    if size >= LARGE["elements"]:
        _small["steps"] = OFTEN  # small ones can use what is compiled
    else:
        _small["steps"] += steps
    return _small["steps"] >= OFTEN


@functools.cache
def _compiled(letter: str) -> np.ufunc:
    kind = _KINDS[letter]
    return loops.ufunc(f"adam_{kind}", steps.adam, kind, operands=11, narrow=True, results=3, spread=runtime.spread)


def _block(
    p: Any, g: Any, m: Any, v: Any, t: Any, b1: float, b2: float, root: float, eps: float, rate: float, shrink: float
) -> None:
    if shrink != 1.0:
        np.multiply(p, shrink, p)
    np.subtract(g, m, t)
    np.multiply(t, 1 - b1, t)
    np.add(m, t, m)
    np.multiply(v, b2, v)
    np.multiply(g, g, t)
    np.multiply(t, 1 - b2, t)
    np.add(v, t, v)
    np.sqrt(v, t)
    np.divide(t, root, t)
    np.add(t, eps, t)
    np.divide(m, t, t)
    np.multiply(t, rate, t)
    np.add(p, t, p)
