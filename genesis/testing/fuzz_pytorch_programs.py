"""Random programs for `fuzz_pytorch`: promotion, views and writes, Functions, transforms; text in names that Genesis
and PyTorch share.

A program is a list of statements; ``T`` is either library, ``seen`` a list that is compared like the variables. A
statement that fails in both is passed over, so what is written need not be right, only often right: shapes are followed
for that alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.testing.fuzz_pytorch_functions import functions, transforms
from genesis.testing.fuzz_pytorch_memory import memory
from genesis.testing.fuzz_pytorch_writer import DTYPES, FLOATS, SHAPES, Writer

BINARY = (
    "add",
    "sub",
    "mul",
    "true_divide",
    "floor_divide",
    "remainder",
    "fmod",
    "pow",
    "maximum",
    "minimum",
    "fmax",
    "fmin",
    "atan2",
    "hypot",
    "logaddexp",
    "copysign",
    "xlogy",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "logical_and",
    "logical_or",
    "logical_xor",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "isclose",
    "bitwise_left_shift",
    "heaviside",
    "ldexp",
)
OPERATORS = ("+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "&", "|", "^", "<<", ">>")
UNARY = (
    "neg",
    "abs",
    "sqrt",
    "exp",
    "sin",
    "sign",
    "floor",
    "ceil",
    "round",
    "trunc",
    "square",
    "reciprocal",
    "sigmoid",
    "logical_not",
    "bitwise_not",
    "isnan",
    "isfinite",
    "rsqrt",
    "tanh",
    "log1p",
    "expm1",
    "positive",
    "signbit",
    "conj",
    "angle",
    "sgn",
    "frac",
)
REDUCE = (
    "sum()",
    "prod()",
    "mean()",
    "any()",
    "all()",
    "amax()",
    "amin()",
    "max()",
    "min()",
    "argmax()",
    "var()",
    "sum(-1)",
    "prod(-1)",
    "cumsum(-1)",
    "cumprod(-1)",
    "mean(-1)",
    "any(-1)",
    "norm()",
    "count_nonzero()",
    "logsumexp(-1)",
    "sum(-1, keepdim=True)",
    "nansum()",
    "std(-1)",
)


# ---- promotion


def promotion(seed: int) -> list[str]:
    """All dtypes, numbers and shapes through functions, operators, in-place forms, ``out=``, comparisons, reductions,
    and their gradients.
    """
    w = Writer(seed)
    for _ in range(w.random.randint(2, 4)):
        _typed(w)
    actions = (
        _function,
        _function,
        _operator,
        _operator,
        _inplace,
        _augmented,
        _out,
        _mixed,
        _unary,
        _reduce,
        _types,
        _gradient,
    )
    for _ in range(9):
        w.pick(*actions)(w)
    return w.lines


def _typed(w: Writer) -> None:
    dtype, shape = w.pick(*DTYPES), w.pick(*SHAPES)
    # small and never negative where unsigned: what a conversion makes of numbers out of range is the processor's choice
    if dtype == "bool":
        choices: tuple[Any, ...] = (True, False)
    elif dtype[0] in "ui":
        choices = (1, 2, 3, 5) if dtype[0] == "u" else (-2, -1, 1, 2, 3)
    else:
        choices = (-1.5, 0.5, 1.0, 2.0, 2.25) if dtype[0] != "c" else (1 + 2j, -0.5j, 2 + 0j, 0.5 - 1j)
    values = np.array([w.pick(*choices) for _ in range(int(np.prod(shape)))], dtype=object).reshape(shape).tolist()
    # not of no elements: cat passes over them, their gradient has nothing in it
    grad = ", requires_grad=True" if shape != (0,) and dtype[0] in "fbc" and dtype != "bool" and w.chance(0.35) else ""
    w.make(f"T.tensor({values}, dtype=T.{dtype}{grad})", shape)


def _number(w: Writer) -> str:
    return str(w.pick("True", "2", "3", "-1", "0.5", "2.0", "1.5", "(1+2j)"))


def _operand(w: Writer) -> str:
    return w.any() if w.chance(0.7) else _number(w)


def _function(w: Writer) -> None:
    w.make(f"T.{w.pick(*BINARY)}({w.any()}, {_operand(w)})", None)


def _operator(w: Writer) -> None:
    a, b = w.any(), _operand(w)
    if w.chance(0.3):
        a, b = b, a
    w.make(f"{a} {w.pick(*OPERATORS)} {b}", None)


def _inplace(w: Writer) -> None:
    x, method = (
        w.any(),
        w.pick(
            "add_",
            "sub_",
            "mul_",
            "div_",
            "floor_divide_",
            "pow_",
            "remainder_",
            "eq_",
            "lt_",
            "logical_and_",
            "bitwise_and_",
            "copy_",
            "fill_",
            "atan2_",
            "ldexp_",
        ),
    )
    # nothing negative: see _typed
    y = w.pick("True", "2", "0.5") if method == "fill_" else f"{w.any()}.abs()" if method == "copy_" else _operand(w)
    w.make(f"{x}.detach().clone().{method}({y})", None)


def _augmented(w: Writer) -> None:
    x, op, y = w.any(), w.pick("+", "-", "*", "/", "//", "%", "**", "&", "|", "^"), _operand(w)
    name = w.make(f"{x}.clone()", None)
    w.lines.append(f"{name} {op}= {y}")


def _out(w: Writer) -> None:
    out = w.make(f"T.zeros({list(w.pick((3,), (3,), (2, 3), (0,)))}, dtype=T.{w.pick(*DTYPES)})", None)
    a, b = w.any(), w.any()
    text = w.pick(
        f"{w.pick(*BINARY[:20])}({a}.detach(), {b}.detach()",
        f"{w.pick(*UNARY[:14])}({a}.detach()",
        f"sum({a}.detach(), -1",
        f"cat([{a}.detach(), {b}.detach()]",
    )
    w.make(f"T.{text}, out={out})", None)


def _mixed(w: Writer) -> None:
    a, b, c, n = w.any(), w.any(), w.any(), _operand(w)
    w.make(
        w.pick(
            f"T.where({a}.detach() == {a}.detach(), {b}, {n})",
            f"T.where({a}.detach() != {a}.detach(), {n}, {b})",
            f"T.cat([{a}, {b}])",
            f"T.stack([{a}, {b}])",
            f"T.clamp({a}, {n}, {_operand(w)})",
            f"T.clamp({a}, min={n})",
            f"T.clamp({a}, max={n})",
            f"T.add({a}, {b}, alpha={_number(w)})",
            f"T.sub({a}, {b}, alpha={_number(w)})",
            f"T.addcmul({a}, {b}, {c}, value={_number(w)})",
            f"T.addcdiv({a}, {b}, {c})",
            f"T.lerp({a}, {b}, {n})",
            f"T.div({a}, {n}, rounding_mode={w.pick('None', repr('floor'), repr('trunc'))})",
            f"T.full((2,), {_number(w)})",
            f"T.full_like({a}, 2)",
            f"T.tensor([{_number(w)}, {_number(w)}])",
            f"T.as_tensor({_number(w)})",
            f"T.masked_fill({a}, {b}.bool(), {n})",
            f"T.rsub({a}, {n})",
            f"T.nan_to_num({a})",
            f"T.float_power({a}, {n})",
            f"T.arange({w.pick('3', '2.5', '0, 2', '0, 1.5, 0.5')})",
            f"T.ldexp({a}, {b})",
            f"T.dot({a}, {b})",
            f"T.outer({a}, {b})",
            f"T.matmul({a}, {b})",
            f"T.sum({a}, dtype=T.{w.pick(*FLOATS)})",
            f"T.tensor({w.pick('3', '1.5')}) + {a}",
        ),
        None,
    )


def _unary(w: Writer) -> None:
    w.make(f"T.{w.pick(*UNARY)}({w.any()})", None)


def _reduce(w: Writer) -> None:
    w.make(f"{w.any()}.{w.pick(*REDUCE)}", None)


def _types(w: Writer) -> None:
    a, b = w.pick(*DTYPES), w.pick(*DTYPES)
    w.make(
        w.pick(
            f"T.result_type({w.any()}, {_operand(w)})",
            f"T.promote_types(T.{a}, T.{b})",
            f"T.can_cast(T.{a}, T.{b})",
            f"{w.any()}.abs().to(T.{a})",
            f"{w.any()}.dtype.is_floating_point",
            f"{w.any()}.{w.pick('float()', 'double()', 'half()', 'bool()', 'bfloat16()')}",
        ),
        None,
    )


def _gradient(w: Writer) -> None:
    inputs = ", ".join(w.shapes)
    a, b = w.any(), _operand(w)
    loss = w.make(
        w.pick(
            f"{a} * {b}",
            f"{a} + {b}",
            f"{a} - {b}",
            f"{a} / {b}",
            f"T.maximum({a}, {b})",
            f"T.where({a}.detach() == {a}.detach(), {a}, {b})",
        ),
        None,
    )
    w.make(f"T.autograd.grad({loss}.abs().sum(), [t for t in ({inputs},) if t.requires_grad], allow_unused=True)", None)


# ---- views, writes, indexing, double backward


# ---- Functions


# ---- transforms


FAMILIES = (promotion, promotion, memory, memory, functions, transforms)


def program(seed: int) -> list[str]:
    """The program of a seed; the families take turns."""
    return FAMILIES[seed % len(FAMILIES)](seed)


__all__ = ["FAMILIES", "Writer", "functions", "memory", "program", "promotion", "transforms"]
