"""What each lane of a call saves: its typical call by the lane, and by the general path that it stands for.

    python benchmarks/lanes.py [--write]

Both are timed in turn in one process, in processor time; the table gives medians, and the median of the ratios of neighbouring runs. With
--write it is put into benchmarks/README.md. A lane that saves less than a few percent is not worth its lines.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from page import write_section

import genesis
from genesis.core.call import dispatch, inplace_methods
from genesis.core.functions import general

ROUNDS, NUMBER = 21, 1000
Call = Callable[[], object]


class Square(genesis.Function):
    @staticmethod
    def forward(ctx: Any, x: genesis.Tensor) -> genesis.Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: genesis.Tensor) -> genesis.Tensor:
        (x,) = ctx.saved_tensors
        return 2 * x * g


def arguments_of(lane: Callable[..., Any], call: Call) -> tuple[Any, ...]:
    """The op and the arguments that a lane gets in a call."""
    found: list[tuple[Any, ...]] = []

    def watch(frame: Any, event: str, value: Any) -> None:
        if event == "call" and frame.f_code is lane.__code__:
            found.append((frame.f_locals["op"], frame.f_locals["args"]))

    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found[0]


def in_general(lane: Callable[..., Any], call: Call, other: Callable[..., Any] = dispatch.run) -> tuple[Call, Call]:
    op, args = arguments_of(lane, call)
    return lambda: lane(op, args), lambda: other(op, args)


def rows() -> dict[str, tuple[Call, Call]]:
    """For each lane its typical calls, by the lane and in general."""
    x, y, w = genesis.ones(4), genesis.ones(4), genesis.ones(4, requires_grad=True)
    a, b = genesis.ones(8, 8), genesis.ones(8, 8)
    exp, mul, add, eq = genesis.exp.op, genesis.mul.op, genesis.add.op, genesis.eq.op
    n = genesis.arange(4)
    added, composed = genesis.Tensor.add_, inplace_methods._composed_method(add, "add_")
    return {
        "`unary_path`: `exp(x)`": (lambda: genesis.exp(x), lambda: dispatch.elementwise(exp, (x,))),
        "`unary_path`: `exp(w)`, recorded": (lambda: genesis.exp(w), lambda: dispatch.elementwise(exp, (w,))),
        "`binary_path`: `x * y`": (lambda: x * y, lambda: dispatch.elementwise(mul, (x, y))),
        "`binary_path`: `x * 2.0`": (lambda: x * 2.0, lambda: dispatch.elementwise(mul, (x, 2.0))),
        "`binary_path`: `w * y`, recorded": (lambda: w * y, lambda: dispatch.elementwise(mul, (w, y))),
        "`binary_path`: `n + 1`, integers": (lambda: n + 1, lambda: dispatch.elementwise(add, (n, 1))),
        "`binary_path`: `n == n`, integers": (lambda: n == n, lambda: dispatch.elementwise(eq, (n, n))),
        "`run_one`: `x.sum()`": in_general(dispatch.run_one, lambda: x.sum()),
        "`run_one`: `w.sum()`, recorded": in_general(dispatch.run_one, lambda: w.sum()),
        "`run_one`: `x.reshape(2, 2)`": in_general(dispatch.run_one, lambda: x.reshape(2, 2)),
        "`run_one`: `x.reshape(2, 2)`, against `run_several`": in_general(
            dispatch.run_one, lambda: x.reshape(2, 2), dispatch.run_several
        ),
        "`run_one`: `w.reshape(2, 2)`, recorded, against `run_several`": in_general(
            dispatch.run_one, lambda: w.reshape(2, 2), dispatch.run_several
        ),
        "`run_several`: `a @ b`": in_general(dispatch.run_several, lambda: a @ b),
        "`run_several`: `linear(a, b)`": in_general(dispatch.run_several, lambda: genesis.nn.functional.linear(a, b)),
        "`run_list`: `cat([x, y, x])`": in_general(dispatch.run_list, lambda: genesis.cat([x, y, x])),
        "`run_list`: `cat([w, y, w])`, recorded": in_general(dispatch.run_list, lambda: genesis.cat([w, y, w])),
        "in place: `x.add_(y)`, under `no_grad`": (lambda: added(x, y), lambda: composed(x, y)),
        "`Function.apply(w)`": (lambda: Square.apply(w), lambda: general.apply_general(Square, (w,), {})),
    }


def timed(call: Call) -> float:
    begun = time.process_time()
    for _ in range(NUMBER):
        call()
    return (time.process_time() - begun) / NUMBER * 1e6


def table() -> str:
    lines = [
        "| lane, and a call that takes it | by the lane, us | in general, us | ratio |",
        "| --- | ---: | ---: | ---: |",
    ]
    for name, (fast, slow) in rows().items():
        with genesis.set_grad_enabled("no_grad" not in name):
            pairs = [(timed(fast), timed(slow)) for _ in range(ROUNDS)]
        mine, other = (statistics.median(p[i] for p in pairs) for i in (0, 1))
        lines.append(f"| {name} | {mine:.2f} | {other:.2f} | {statistics.median(p[0] / p[1] for p in pairs):.2f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    text = table()
    print(text)
    if options.write:
        write_section("Lanes of a call", f"`python benchmarks/lanes.py --write`\n\n{text}")


if __name__ == "__main__":
    main()
