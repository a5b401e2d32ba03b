"""Random training steps, called and replayed: parameters, gradients, buffers and results are the same, bit for bit,
call after call.

    python -m genesis.testing.fuzz_traces --programs 2000

A step writes to captured buffers and to tensors of its own, through views, with and without history; takes gradients
once or twice, with and without clearing them; clips, steps, calls vmap, grad and jvp. Between two calls gradients come
and go, learning rates change, results are written to. What a trace or a replay refuses is counted, not an error; what
it gives must be right.
"""

from __future__ import annotations

import random
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import genesis
from genesis import jit, nn, optim
from genesis.base.errors import GenesisError
from genesis.core.graph.tensor import Tensor
from genesis.func import grad, jvp, vmap
from genesis.testing.command_line import options, tell

CALLS = 3
STATE = """
w1 = tensor(numbers(3, 4), requires_grad=True)
w2 = tensor(numbers(4), requires_grad=True)
w3 = tensor(numbers(4, 3)).t().data.requires_grad_()
buf = tensor(numbers(3, 4))
turned = tensor(numbers(4, 3)).t().data
parameters = [w1, w2, w3]
"""
OPTIMIZERS = [
    "optim.SGD(parameters, lr=0.1)",
    "optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=0.01)",
    "optim.AdamW(parameters, lr=0.05)",
    "optim.Adam(parameters, lr=0.05, amsgrad=True)",
    "optim.RMSprop(parameters, lr=0.01)",
]
VALUES = [
    "{a} * {b}",
    "{a} + {b} * w2",
    "{a} - 0.5",
    "{a}.tanh()",
    "{a}.t().contiguous().t()",
    "{a}.t().reshape(3, 4)",
    "{a}.clone()",
    "{a}.detach()",
    "zeros_like({a})",
    "zeros(3, 4)",
    "ones(3, 4) * {a}",
    "{a} @ ({b}.t() @ {a} * 0.1)",
    "{a}.t().to(float32, copy=True).t()",
    "where({a} > 0, {a}, {b})",
    "{a}.sum(0, keepdim=True) + {b}",
    "cat([{a}[:1], {b}[1:]])",
    "{a}.softmax(-1)",
    "empty_like({a}.t()).fill_(2).t() * {a}",
    "vmap(lambda a, b: a * b.sum())({a}, {b})",
    "vmap(lambda a: a * w2)({a})",
    "grad(lambda a: (a ** 2 * {b}).sum())({a})",
    "jvp(lambda a: a.sin() * w1, ({a},), ({b},))[1]",
    "vmap(grad(lambda a: (a ** 3).sum()))({a})",
    "nn.functional.dropout({a}, 0.3)",
    "rand(3, 4) + {a}",
]
WRITES = [
    "{t}.mul_({a})",
    "{t}.add_(1)",
    "{t}[0] = {a}[1]",
    "{t}[:, 1:3].mul_({a}[:, :2])",
    "{t}.t()[1].add_(2)",
    "{t}.copy_({a})",
    "{t}[1:].zero_()",
    "{t}.mul_({a}.mean())",
    "{t}.view(-1)[2:5].add_(1)",
    "{t}.detach().mul_(0.5)",
    "buf.data.add_(0.25)",  # of what a backward reads such a write changes what nobody promises: what is saved, or made of that
    "{t}.sub_({a}.detach())",
]
GRADIENTS = [
    "({a} * {b}).mean().backward()",
    "({a} * w1).sum().backward()",
    "({a} + w2 * w3).sum().backward(retain_graph=True)",
    "nn.utils.clip_grad_norm_(parameters, 0.7)",
    "nn.utils.clip_grad_value_(parameters, 0.5)",
    "opt.step()",
    "opt.zero_grad()",
    "opt.zero_grad(set_to_none=False)",
    "w1.grad = None",
    "w2.grad.mul_(2)",
    "w1.grad = w1.grad * 3",
    "w3.grad[1:] = 0.5",
    "w1.data.sub_(0.1 * w1.grad)",
    "buf.add_(w1.grad)",
    "turned.copy_(w3.grad)",
    "w1.detach()[0].mul_(0.9)",
    "(w2 * {a}).sum().backward(create_graph=True)",
    "autograd.grad((w1 ** 2 * {a}).sum(), w1, create_graph=True)[0].sum().backward()",
    "w1.grad = autograd.grad((w1 * {a}).sum(), w1)[0]",
]
BETWEEN = [
    "",
    "w1.grad = None",
    "for p in parameters: p.grad = None",
    "for p in parameters: p.grad = zeros_like(p) + 0.5",
    "buf.add_(1)",
    "w2.data.mul_(0.5)",
    "opt.param_groups[0]['lr'] = 0.02",
    "w3.grad = None",
    "opt.zero_grad(set_to_none=False)",
]


class Program(NamedTuple):
    """A training step as text, and what happens between its calls."""

    optimizer: str
    step: list[str]
    between: list[str]
    warm: int  # calls before the trace


def written(seed: int) -> Program:
    """A random program."""
    rng = random.Random(seed)
    values, own, lines = ["x", "w1", "w3", "buf", "turned"], ["buf", "turned"], []
    body: list[tuple[int, list[str]]] = [(5, VALUES), (4, WRITES), (4, GRADIENTS)]
    for number in range(4 + seed % 12):
        (kinds,) = rng.choices([k for _, k in body], [n for n, _ in body])
        a, b = rng.choice(values), rng.choice(values)
        line = rng.choice(kinds).format(a=a, b=b, t=rng.choice(own + ["x"] * (rng.random() < 0.2)))
        if kinds is VALUES:
            line = f"v{number} = {line}"
            values.append(f"v{number}")
            own.append(f"v{number}")
        elif rng.random() < 0.2:
            line = f"with no_grad(): {line}"
        lines.append(line)
    results = [f"{rng.choice(values)}{rng.choice(['', '.detach()', '[1:]', '.t().detach()'])}" for _ in range(3)]
    lines += [
        "buf.detach_()",
        "turned.detach_()",
        f"return {', '.join(results)}, {rng.choice(['None', 'w1.grad', 'x'])}",
    ]
    return Program(
        rng.choice(OPTIMIZERS), lines, [rng.choice(BETWEEN) for _ in range(CALLS + 2)], rng.choice([0, 1, 1, 2])
    )


def _scope(program: Program) -> dict[str, Any]:
    rng = np.random.default_rng(7)
    scope: dict[str, Any] = {
        name: getattr(genesis, name)
        for name in (
            "tensor",
            "zeros_like",
            "empty_like",
            "zeros",
            "ones",
            "where",
            "cat",
            "no_grad",
            "float32",
            "rand",
            "autograd",
        )
    }
    scope |= {
        "numbers": lambda *shape: rng.normal(size=shape).astype(np.float32),
        "nn": nn,
        "optim": optim,
        "vmap": vmap,
        "grad": grad,
        "jvp": jvp,
    }
    genesis.manual_seed(3)
    exec(STATE, scope)
    scope["opt"] = eval(program.optimizer, scope)
    source = "def step(x):\n" + "".join(f"    {line}\n" for line in program.step)
    exec(compile(source, "<step>", "exec"), scope)
    return scope


def _seen(scope: dict[str, Any], results: Any) -> list[Any]:
    """Everything that can be seen after a call, as bytes."""
    tensors = [
        *(results or ()),
        *scope["parameters"],
        *[p.grad for p in scope["parameters"]],
        scope["buf"],
        scope["turned"],
        genesis.get_rng_state(),
    ]
    tensors += [v for p in scope["parameters"] for _, v in sorted(scope["opt"].state[p].items())]
    return [(tuple(t.shape), t.detach().numpy().tobytes()) if isinstance(t, Tensor) else t for t in tensors]


def ran(program: Program, traced: bool, passes: bool = False) -> list[Any]:
    """What is seen after each call."""
    scope = _scope(program)
    step, seen = scope["step"], []
    for call in range(program.warm + CALLS):
        if traced and call == program.warm:
            graph = jit.trace(step, _argument(call)).verify()
            step = (jit.optimized(graph).verify() if passes else graph).replay
        x = _argument(call)
        results = step(x)
        seen += [_seen(scope, (*results, x))]
        with genesis.no_grad():  # whose memory are they?
            for y in results:
                if isinstance(y, Tensor):
                    y.add_(0.5)
        exec(program.between[call], scope)
        seen += [_seen(scope, (*results, x))]
    return seen


def _argument(call: int) -> Tensor:
    return genesis.tensor(np.cos(np.arange(12) * (call + 1)).reshape(3, 4).astype(np.float32))


def repaired(program: Program) -> tuple[Program, list[Any]]:
    """The program without the statements that eager calls refuse, and what is seen of it."""
    while True:
        try:
            return program, ran(program, False)
        except Exception as error:
            lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == "<step>"]
            if not lines:  # between the calls
                program = program._replace(between=[""] * len(program.between))
            elif lines[0] - 1 == len(program.step):  # type: ignore[operator]  # a result that is not made any more
                program = program._replace(step=[*program.step[:-1], "return w1.detach(), buf, x[1:]"])
            else:
                program = program._replace(step=[s for i, s in enumerate(program.step) if i != lines[0] - 2])  # type: ignore[operator]


def check(programs: int, seed: int = 0, progress: bool = False) -> tuple[Counter[str], list[tuple[int, Program]]]:
    """Counts of what happened ("equal", "refused: ..."), and the programs that went wrong."""
    from tqdm import tqdm

    counts: Counter[str] = Counter()
    wrong: list[tuple[int, Program]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in tqdm(range(seed, seed + programs), disable=not progress, unit=" programs"):
            program, expected = repaired(written(number))
            try:
                result = ran(program, True, passes=bool(number % 2))
            except GenesisError as error:
                counts[f"refused: {str(error).splitlines()[0]}"] += 1
                continue
            fine = result == expected
            counts["equal" if fine else "wrong"] += 1
            if not fine:
                wrong.append((number, program))
    return counts, wrong


def smaller(program: Program, fails: Callable[[Program], bool]) -> Program:
    """The program without what is not needed to fail."""
    changed = True
    while changed:
        changed = False
        for i in range(len(program.step) - 1):
            shorter = program._replace(step=[s for k, s in enumerate(program.step) if k != i])
            if fails(shorter):
                program, changed = shorter, True
                break
        for i, line in enumerate(program.between):
            if line and fails(program._replace(between=[b if k != i else "" for k, b in enumerate(program.between)])):
                program, changed = (
                    program._replace(between=[b if k != i else "" for k, b in enumerate(program.between)]),
                    True,
                )
    return program


def differs(program: Program, passes: bool = False) -> bool:
    """Whether calls and replays of a program that both run do not agree."""
    try:
        return ran(program, False) != ran(program, True, passes)
    except Exception:
        return False


def main(arguments: Sequence[str] | None = None) -> int:
    asked = options("fuzz_traces", __doc__, arguments, 1000)
    counts, wrong = check(asked.programs, asked.seed, progress=True)
    tell(counts)
    for number, program in wrong[:10]:
        program = smaller(program, lambda p, number=number: differs(p, bool(number % 2)))  # type: ignore[misc]
        print(
            f"\nseed {number}, {program.optimizer}, {program.warm} calls before, between calls {program.between}:",
            *program.step,
            sep="\n    ",
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
