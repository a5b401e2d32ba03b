"""Random programs, as they are and compiled: parameters, gradients, buffers, results and what Python did are the same, bit
for bit, call after call.

    python -m genesis.testing.fuzz_compile --programs 2000

The statements are those of `fuzz_traces`, and such as a trace cannot hold: branches on values, numbers taken out of
tensors, lists and objects that are written to, custom Functions. In half of the programs the gradients are taken
outside: they flow through the compiled function (there sums of gradients have another order, and are compared to a part
in a thousand). Between two calls modes, shapes, constants and gradients change. The
arithmetic is that of replays (the machine code of steps has tests of its own); ``--native 1`` takes the machine code,
and compares to a part in a thousand, or to a unit of bfloat16 where a program rounds to that.
"""

from __future__ import annotations

import random
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

import genesis
from genesis.base.errors import GenesisError
from genesis.core.graph.tensor import Tensor
from genesis.jit.lowering import cache
from genesis.jit.lowering import step as steps
from genesis.testing import fuzz_traces
from genesis.testing.command_line import options, tell
from genesis.testing.fuzz_homes import HOMES, statement_at

CALLS = 6
FRESH = "tensor(angles.reshape(3, 4))"
STATE = (
    fuzz_traces.STATE
    + """
class Box:
    count, rate = 0, 0.5
class Twice(Function):
    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return a * a
    @staticmethod
    def backward(ctx, g):
        (a,) = ctx.saved_tensors
        return 2 * a * g
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale, self.on = 0.5, True
        self.register_buffer("seen", zeros(3, 4))
        self.drop = nn.Dropout(0.2)
    def forward(self, a):
        if self.training:
            self.seen.add_(a.detach())
        return self.drop(a) * self.scale if self.on else a
log, box, net, limit = [], Box(), Net(), 3
"""
)
PURE = [
    "net({a})",
    "Twice.apply({a})",
    "{a} * box.rate",
    "{a} * limit",
    "utils.checkpoint.checkpoint(lambda v: (v * w1).tanh(), {a}, use_reentrant=False)",
    "sum([{a} * i for i in range(3)])",
    "stack([v * 2 for v in {a}]).sum(0)",
    "nn.functional.layer_norm({a}, (4,))",
    "nn.functional.gelu({a})",
    "(lambda v: v.exp())({a} * 0.1)",
]
NEEDS_VALUES = [
    "if {a}.sum() > 0: buf.add_(1)",
    "{t}.mul_(2 if {a}[0, 0] < {b}[1, 1] else 0.5)",
    "box.rate = float({a}.mean().detach()) * 0.1",
    "for _ in range(int({a}.detach().abs().sum()) % 3): {t}.add_(0.5)",
]
EFFECTS = [
    "log.append(1)",
    "log.append({a}.sum().item())",
    "box.count += 1",
    "net.scale = 0.25",
    "log[:1] = [2]",
    "setattr(box, 'count', 5)",
]
OUTSIDE = [
    "loss = (results[0] * 0.5).sum(); loss.backward()",
    "(results[0] ** 2).mean().backward(); opt.step()",
    "w1.grad = autograd.grad((results[0] * results[1]).sum(), w1, allow_unused=True)[0]",
    "opt.zero_grad(); (results[0].sum() + results[1].mean()).backward(); opt.step()",
]
BETWEEN = [
    *fuzz_traces.BETWEEN,
    "net.eval()",
    "net.train()",
    "net.on = not net.on",
    "box.rate = 0.25",
    "limit = 2",
    "net.scale = net.scale + 0.5",
    "w1.data = w1.data.clone()",
    "buf = buf.clone()",
    "genesis_seed(5)",
]


class Stop(Exception):
    """What programs raise of their own will."""


class Program(NamedTuple):
    """A function as text, what happens to its results, and between its calls."""

    optimizer: str
    step: list[str]
    outside: str
    between: list[str]
    state: str = ""  # what there is besides
    calls: Sequence[str] = (FRESH,) * CALLS  # arguments
    home: str = "globals"  # where the function finds what it reads, see `fuzz_homes`
    parameters: str = "x"  # of the function


# where these numbers change, other ops compute it: other rounding
OF_KERNELS = "label_smoothing=abs(rate)", "eps=abs(rate)", "functional.elu(", "norm.eps = "


def written(seed: int) -> Program:
    """A random program."""
    rng = random.Random(seed)
    through, values, own, lines = seed % 2 == 1, ["x", "w1", "w3", "buf", "turned"], ["buf", "turned"], []
    body: list[tuple[float, list[str]]] = [
        (4, fuzz_traces.VALUES),
        (4, PURE),
        (1 if through else 3, fuzz_traces.WRITES),
    ]
    body += [(0 if through and rng.random() < 0.8 else 4, fuzz_traces.GRADIENTS)]
    body += [(0.8 if rng.random() < 0.3 else 0, NEEDS_VALUES), (0.8 if rng.random() < 0.3 else 0, EFFECTS)]
    for number in range(3 + seed % 11):
        (kinds,) = rng.choices([k for _, k in body], [n for n, _ in body])
        a, b = rng.choice(values), rng.choice(values)
        line = rng.choice(kinds).format(a=a, b=b, t=rng.choice(own + ["x"] * (rng.random() < 0.1)))
        if kinds is fuzz_traces.VALUES or kinds is PURE:
            line = f"v{number} = {line}"
            values.append(f"v{number}")
            own.append(f"v{number}")
        elif rng.random() < 0.2 and not line.startswith(("if", "for")):
            line = f"with no_grad(): {line}"
        lines.append(line)
    results = [f"{rng.choice(values[-3:])}{rng.choice(['', '', '.detach()', ' * 2'])}" for _ in range(3)]
    lines += [
        "buf.detach_()",
        "turned.detach_()",
        f"return {', '.join(results)}, {rng.choice(['None', 'w1.grad', 'x'])}",
    ]
    outside = rng.choice(OUTSIDE) if through else ""
    between = [rng.choice(["", "", *BETWEEN]) for _ in range(CALLS)]
    return Program(rng.choice(fuzz_traces.OPTIMIZERS), lines, outside, between)


def steady(program: Program) -> Program:
    """With an optimizer that takes rounding for what it is: by the size of its average Adam divides also a gradient that is
    0, and -9e-9 where the order of a sum is another one (that of the mean of a `layer_norm`); the step is a whole one then.
    """
    adaptive = program.optimizer.replace("lr=0.05", "lr=0.05, eps=1e-3").replace("lr=0.01)", "lr=0.01, eps=1e-3)")
    return program._replace(optimizer=program.optimizer if "SGD" in program.optimizer else adaptive)


def _scope(program: Program) -> dict[str, Any]:
    names = (
        "tensor zeros_like empty_like zeros ones where cat stack no_grad float32 rand autograd Function utils nn optim "
        "amp isnan"
    )
    scope: dict[str, Any] = {name: getattr(genesis, name) for name in names.split()}
    rng = np.random.default_rng(7)
    scope |= {name: getattr(genesis.func, name) for name in ("vmap", "grad", "jvp")}
    scope |= {"numbers": lambda *shape: rng.normal(size=shape).astype(np.float32), "genesis_seed": genesis.manual_seed}
    genesis.manual_seed(3)
    exec(STATE, scope)
    scope["opt"] = eval(program.optimizer, scope)
    scope |= {"Stop": Stop, "suppress": suppress, "shown": list}
    exec(program.state, scope)
    scope["step"], scope["moved"] = HOMES[program.home](program.step, scope, program.parameters)
    return scope


def _parts(results: Any) -> Iterator[Any]:
    """What is in results, also in containers, and of which classes these are."""
    for y in results:
        if isinstance(y, list | tuple | dict):
            yield type(y).__name__
            yield from _parts([*y, *y.values()] if isinstance(y, dict) else y)
        else:
            yield y


def _looks(y: Tensor) -> tuple[Any, ...]:
    """What is not in the numbers of a tensor."""
    return y.dtype, y.requires_grad, y.is_leaf


def _seen(scope: dict[str, Any], results: Any) -> list[Any]:
    """Everything that can be seen after a call."""
    tensors = [*results, *scope["parameters"], *[p.grad for p in scope["parameters"]], scope["buf"], scope["turned"]]
    tensors += [v for p in scope["parameters"] for _, v in sorted(scope["opt"].state[p].items())]
    tensors += [scope["net"].seen, genesis.get_rng_state(), scope["box"].count, scope["box"].rate, *scope["log"]]
    tensors += [*scope["shown"](), *[y.grad for y in results[-1:] if y.is_leaf]]
    looks = [_looks(y) for y in results if isinstance(y, Tensor)]
    return [*[t.detach().numpy().copy() if isinstance(t, Tensor) else t for t in tensors], *looks]


def ran(program: Program, compiled: bool) -> list[Any]:
    """What is seen after each call."""
    scope, seen = _scope(program), []
    step = genesis.compile(scope["step"]) if compiled else scope["step"]
    scope["given"] = lambda *args, **kwargs: (args, kwargs)
    for call, text in enumerate(program.calls):
        scope["angles"] = np.cos(np.arange(12) * (call + 1)).astype(np.float32)
        args, kwargs = eval(f"given({text})", scope)
        x = scope["x"] = args[0]
        try:
            results = scope["results"] = step(*args, **kwargs)
            results = tuple(_parts(results))
        except Stop:
            results = ()
        if program.outside and results:
            exec(program.outside, scope)
        seen.append(_seen(scope, (*results, x)))
        with genesis.no_grad():  # whose memory are they?
            for y in results:
                if isinstance(y, Tensor):
                    with suppress(GenesisError):  # of whole numbers, or expanded
                        y.add_(0.5)
        exec(program.between[call], scope)
        scope["moved"]()
        seen.append(_seen(scope, (*results, x)))
    return seen


def repaired(program: Program) -> tuple[Program, list[Any]]:
    """The program without the statements that calls refuse as they are, and what is seen of it. (A compiled function in it
    may hide that they do: it keeps what its gradient needs itself.)
    """
    last = f"return {'w2' if program.state else 'w1'} * x, buf.clone(), x[1:], None"
    while True:
        try:
            if any(["inner(" in line for line in (*program.step, program.outside)]):
                with genesis.compiler.set_stance("force_eager"):
                    ran(program, False)
            return program, ran(program, False)
        except Exception as error:
            lines = [f.lineno or 0 for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith("<step")]
            wrong = statement_at(program.step, program.home, lines[0]) if lines else 0
            if lines and wrong < len(program.step) - 1:
                program = program._replace(step=[s for i, s in enumerate(program.step) if i != wrong])
            elif lines and program.step[-1] != last:  # a result that is not made any more
                program = program._replace(step=[*program.step[:-1], last])
            elif program.outside not in ("", OUTSIDE[0]):
                program = program._replace(outside=OUTSIDE[0])
            elif program.outside or any(program.between) or program.calls != (FRESH,) * len(program.calls):
                count = len(program.calls)
                program = program._replace(outside="", between=[""] * count, calls=(FRESH,) * count)
            else:
                raise


def part(program: Program) -> float:
    """How far numbers may be apart whose sums have other orders: a part in a thousand; where they are rounded to bfloat16
    a unit of that, for two orders may lie on both sides of a boundary (a unit of the largest number of a tensor: what
    cancels is made of such).
    """
    return 2.0**-7 if any(["bfloat16" in line for line in program.step]) else 1e-3


def exact(program: Program) -> bool:
    """Whether a replay has the bits of a call: not where gradients are taken outside, or memory has gaps that what a replay
    writes has not: sums go in another order.
    """
    gaps = any(["[::2]" in line for line in program.between])
    return not (program.outside or gaps) and not any([o in line for line in program.step for o in OF_KERNELS])


def equal(a: Any, b: Any, exactly: bool = True, part: float = 1e-3) -> bool:
    """Whether the same is seen."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all([equal(x, y, exactly, part) for x, y in zip(a, b, strict=True)])
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        if exactly or a.dtype.kind not in "fc":
            return a.shape == b.shape and a.tobytes() == b.tobytes()
        largest = max(1.0, float(np.nanmax(np.abs(a[np.isfinite(a)]), initial=0.0))) if part > 1e-3 else 1.0
        return a.shape == b.shape and np.allclose(a, b, part, part * largest, equal_nan=True)
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return False
    return (
        bool(a == b)
        or (a != a and b != b)
        or (not exactly and isinstance(a, float) and abs(a - b) <= part * (1 + abs(a)))
    )


@contextmanager
def arithmetic(native: bool) -> Iterator[None]:
    """Steps as machine code, or as replays, which round as calls do."""
    none = SimpleNamespace(available=lambda: False)
    with ExitStack() as patches:
        for module in () if native else (steps, cache):
            patches.enter_context(mock.patch.object(module, "loops", none))
        yield


def check(
    programs: int,
    seed: int = 0,
    native: bool = False,
    progress: bool = False,
    write: Callable[[int], Program] = written,
) -> tuple[Counter[str], list[tuple[int, Program]]]:
    """Counts of what happened ("compiled", "as it is: ..."), and the programs that went wrong."""
    from tqdm import tqdm

    counts: Counter[str] = Counter()
    wrong: list[tuple[int, Program]] = []
    for number in tqdm(range(seed, seed + programs), disable=not progress, unit=" programs", mininterval=10):
        with warnings.catch_warnings(record=True) as told, arithmetic(native):
            warnings.simplefilter("always")
            program, expected = repaired(steady(write(number)) if native else write(number))
            told.clear()
            try:
                fine = equal(ran(program, True), expected, not native and exact(program), part(program))
            except Exception as error:
                fine = False
                counts[f"error: {type(error).__name__}: {str(error).splitlines()[0]}"] += 1
        reasons = [str(w.message) for w in told if "is not compiled" in str(w.message)]
        kind = "through, " if program.outside else ""
        counts["wrong" if not fine else f"{kind}as it is: {_short(reasons[0])}" if reasons else f"{kind}compiled"] += 1
        if not fine:
            wrong.append((number, program))
    return counts, wrong


def _short(reason: str) -> str:
    return reason.splitlines()[0].partition("as it is: ")[2].partition(" at ")[0]


def differs(program: Program, native: bool = False) -> bool:
    """Whether a program that runs as it is does something else when it is compiled."""
    with warnings.catch_warnings(), arithmetic(native):
        warnings.simplefilter("ignore")
        try:
            expected = ran(program, False)
        except Exception:
            return False
        try:
            return not equal(ran(program, True), expected, not native and exact(program), part(program))
        except Exception:
            return True


def smaller(program: Program, fails: Callable[[Program], bool]) -> Program:
    """The program without what is not needed to fail."""
    changed = True
    while changed:
        changed = False
        shorter = [
            program._replace(step=[s for k, s in enumerate(program.step) if k != i])
            for i in range(len(program.step) - 1)
        ]
        shorter += [
            program._replace(between=["" if k == i else b for k, b in enumerate(program.between)])
            for i, line in enumerate(program.between)
            if line
        ]
        for one in shorter:
            if fails(one):
                program, changed = one, True
                break
    return program


def show(seed: int, program: Program, native: bool = False) -> None:
    """Print a wrong program without what it does not need to be wrong."""
    program = smaller(program, lambda p: differs(p, native))
    print(f"\nseed {seed}, {program.optimizer}, {program.outside!r}, in {program.home},")
    print(f"between calls {program.between}, calls {program.calls}:")
    print(*program.step, sep="\n    ", flush=True)


def main(
    arguments: Sequence[str] | None = None,
    name: str = "fuzz_compile",
    about: str | None = __doc__,
    write: Callable[[int], Program] = written,
) -> int:
    native = {"type": int, "default": 0, "help": "1: the machine code of steps"}
    asked = options(name, about or "", arguments, 1000, native=native)
    counts, wrong = check(asked.programs, asked.seed, bool(asked.native), True, write)
    tell(counts)
    for number, program in wrong[:10]:
        show(number, program, bool(asked.native))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
