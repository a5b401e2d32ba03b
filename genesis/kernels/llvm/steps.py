"""Steps of optimizers, one element at a time: what they read and write passes through the processor once."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from genesis.kernels.llvm import loops
from genesis.kernels.llvm.values import Value, least, most, select, sqrt


def adam(
    p: Value, g: Value, m: Value, v: Value,
    b1_rest: Value, b2: Value, b2_rest: Value, root: Value, eps: Value, rate: Value, shrink: Value,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """The parameter and both averages after a step; in the order of `genesis.kernels.cpu.optim`, so with its bits."""
    p = p * shrink
    m = (g - m) * b1_rest + m
    v = v * b2 + g * g * b2_rest
    return p + m / (sqrt(v) / root + eps) * rate, m, v


# ---- steps as rules: `x` has the tensors (the parameter, the gradient to go down along, the state), `n` the numbers.
# A number that is not there stands for an option that is not used.


def _averages(x: Any, n: Any) -> None:
    x.exp_avg = (x.grad - x.exp_avg) * n.beta1_rest + x.exp_avg
    x.exp_avg_sq = x.exp_avg_sq * n.beta2 + x.grad * x.grad * n.beta2_rest


def _sgd(x: Any, n: Any) -> None:
    step = x.grad
    if hasattr(x, "momentum_buffer"):
        x.momentum_buffer = x.momentum_buffer * n.momentum + (step * n.undamped if hasattr(n, "undamped") else step)
        step = step + x.momentum_buffer * n.momentum if hasattr(n, "nesterov") else x.momentum_buffer
    x.param = x.param + step * n.rate


def _rmsprop(x: Any, n: Any) -> None:
    x.square_avg = x.square_avg * n.alpha + x.grad * x.grad * n.alpha_rest
    squares = x.square_avg
    if hasattr(x, "grad_avg"):
        x.grad_avg = (x.grad - x.grad_avg) * n.alpha_rest + x.grad_avg
        squares = squares - x.grad_avg * x.grad_avg
    step = x.grad / (sqrt(squares) + n.eps)
    if hasattr(x, "momentum_buffer"):
        step = x.momentum_buffer = x.momentum_buffer * n.momentum + step
    x.param = x.param + step * n.rate


def _adagrad(x: Any, n: Any) -> None:
    x.sum = x.sum + x.grad * x.grad
    x.param = x.param + x.grad / (sqrt(x.sum) + n.eps) * n.rate


def _adadelta(x: Any, n: Any) -> None:
    x.square_avg = x.square_avg * n.rho + x.grad * x.grad * n.rho_rest
    delta = sqrt(x.acc_delta + n.eps) / sqrt(x.square_avg + n.eps) * x.grad
    x.acc_delta = x.acc_delta * n.rho + delta * delta * n.rho_rest
    x.param = x.param + delta * n.rate


def _adamax(x: Any, n: Any) -> None:
    x.exp_avg = (x.grad - x.exp_avg) * n.beta1_rest + x.exp_avg
    decayed, now = x.exp_inf * n.beta2, abs(x.grad) + n.eps
    x.exp_inf = select((decayed >= now) | ~decayed.equals(decayed), decayed, now)  # nan stays
    x.param = x.param + x.exp_avg / x.exp_inf * n.rate


def _nadam(x: Any, n: Any) -> None:
    _averages(x, n)
    size = sqrt(x.exp_avg_sq / n.correction) + n.eps
    x.param = x.param - x.grad / size * n.now - x.exp_avg / size * n.then


def _radam(x: Any, n: Any) -> None:
    _averages(x, n)
    size = (sqrt(x.exp_avg_sq) + n.eps) * n.known + n.unknown
    x.param = x.param + x.exp_avg / size * n.rate


def _asgd(x: Any, n: Any) -> None:
    x.param = x.param * n.left - x.grad * n.eta
    x.ax = x.ax + (x.param - x.ax) * n.mu if hasattr(n, "mu") else x.param


def _rprop(x: Any, n: Any) -> None:
    agreement = x.grad * x.prev
    turned = agreement < 0.0
    factor = select(turned, n.shrink_by, select(agreement > 0.0, n.grow, 1.0))
    x.step_size = least(most(x.step_size * factor, n.least), n.most)
    x.prev = select(turned, 0.0, x.grad)
    sign = select(x.prev > 0.0, 1.0, select(x.prev < 0.0, -1.0, select(x.prev.equals(0.0), 0.0, x.prev)))
    x.param = x.param - sign * x.step_size


RULES = {
    "sgd": _sgd,
    "rmsprop": _rmsprop, "adagrad": _adagrad, "adadelta": _adadelta, "adamax": _adamax, "nadam": _nadam,
    "radam": _radam, "asgd": _asgd, "rprop": _rprop,
}  # fmt: skip


def step(rule: str, state: tuple[str, ...], numbers: tuple[str, ...]) -> Callable[..., Any]:
    """The function of a rule for `loops`: of the parameter, the gradient, the state and the numbers, which gives the
    parameter and the state.

    Numbers of all rules: ``sign``, of the gradient; ``decay``, what of the parameter is added to it; ``shrink``, what the
    parameter is multiplied by before all else.
    """

    def function(*values: Value) -> Any:
        names = "param", "grad", *state
        x = SimpleNamespace(**dict(zip(names, values, strict=False)))
        n = SimpleNamespace(**dict(zip(numbers, values[len(names) :], strict=True)))
        if hasattr(n, "sign"):
            x.grad = x.grad * n.sign
        if hasattr(n, "decay"):
            x.grad = x.grad + x.param * n.decay
        if hasattr(n, "shrink"):
            x.param = x.param * n.shrink
        RULES[rule](x, n)
        return (x.param, *[getattr(x, name) for name in state]) if state else x.param

    return function


def step_rows(rule: str, state: tuple[str, ...], numbers: tuple[str, ...], kind: str) -> str:
    """The code of ``{rule}_rows``, a step of many parameters: `rows` of `step`."""
    arrays, name = 2 + len(state), f"{rule}_loop"
    function, operands = step(rule, state, numbers), arrays + len(numbers)
    loop = loops.loop(name, function, kind, operands=operands, narrow=True, results=arrays - 1)
    return loop + rows(f"{rule}_rows", name, kind, arrays, len(numbers), (0, *range(2, arrays)))


def rows(name: str, loop: str, kind: str, arrays: int, numbers: int, written: tuple[int, ...]) -> str:
    """The function ``name(table, count, numbers, offset)``: the loop ``loop`` for each row of a table.

    A row has the addresses of the objects of so many NumPy arrays, which have that of their elements ``offset`` bytes
    further on, and then their size. The loop takes them, the numbers, and to write to those of the arrays ``written``.
    """
    size = {"float": 4, "double": 8}[kind]
    operands = [*range(arrays), *[None] * numbers, *written]
    steps, fixed, given = [], [], []
    for i, array in enumerate(operands):
        step = 0 if array is None else size
        steps += [f"%step{i} = getelementptr i64, ptr %steps, i64 {i}", f"store i64 {step}, ptr %step{i}"]
        at = [f"%at{i} = getelementptr ptr, ptr %args, i64 {i}"]
        if array is None:
            number = f"%number{i} = getelementptr {kind}, ptr %numbers, i64 {i - arrays}"
            fixed += [*at, number, f"store ptr %number{i}, ptr %at{i}"]
        else:
            given += [*at, f"store ptr %data{array}, ptr %at{i}"]
    read = []
    for i in range(arrays):
        read += [
            f"%object_at{i} = getelementptr ptr, ptr %row, i64 {i}",
            f"%object{i} = load ptr, ptr %object_at{i}",
            f"%data_at{i} = getelementptr i8, ptr %object{i}, i64 %offset",
            f"%data{i} = load ptr, ptr %data_at{i}",
        ]
    newline = "\n  "
    return f"""
define void @{name}(ptr %table, i64 %count, ptr %numbers, i64 %offset) {{
entry:
  %args = alloca [{len(operands)} x ptr]
  %steps = alloca [{len(operands)} x i64]
  %size = alloca i64
  {newline.join([*steps, *fixed])}
  %any = icmp sgt i64 %count, 0
  br i1 %any, label %row_start, label %done
row_start:
  %r = phi i64 [ 0, %entry ], [ %next_r, %row_start ]
  %begin = mul i64 %r, {arrays + 1}
  %row = getelementptr i64, ptr %table, i64 %begin
  {newline.join([*read, *given])}
  %size_at = getelementptr i64, ptr %row, i64 {arrays}
  %n = load i64, ptr %size_at
  store i64 %n, ptr %size
  call void @{loop}(ptr %args, ptr %size, ptr %steps, ptr null)
  %next_r = add i64 %r, 1
  %more = icmp slt i64 %next_r, %count
  br i1 %more, label %row_start, label %done
done:
  ret void
}}
"""


def adam_rows(kind: str) -> str:
    """The code of ``adam_rows``, a step of many parameters: `rows` of `adam`."""
    loop = loops.loop("adam_loop", adam, kind, operands=11, narrow=True, results=3)
    return loop + rows("adam_rows", "adam_loop", kind, arrays=4, numbers=7, written=(0, 2, 3))
