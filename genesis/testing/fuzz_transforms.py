"""Random programs under transforms: a replay of the traced program is the program, bit for bit; a batch of it is a
loop.

    python -m genesis.testing.fuzz_transforms --programs 2000

The programs are those of `fuzz`: views, writes in place, Functions. Statements that are refused without a transform are
left out. What a transform refuses is counted, not an error; what it gives must be right.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import genesis
from genesis import jit
from genesis.base.errors import GenesisError
from genesis.core.graph.tensor import Tensor
from genesis.func import jvp
from genesis.testing import fuzz, fuzz_writer
from genesis.testing.command_line import options, tell

Values = tuple[list[Tensor], list[Tensor]]  # of all variables; gradients of the last one that has a history
Difference = tuple[int, str, list[str]]


def as_function(
    program: Sequence[fuzz_writer.Statement], forward: bool = False
) -> tuple[Callable[..., Any], list[Tensor]]:
    """A program as a function of its leaves; ``forward``: its value is the last variable with a history, for forward
    mode.
    """
    leaves = [s for s in program if not s.uses and s.text.split(" = ")[-1].startswith("tensor(")]
    values = []
    for s in leaves:
        scope = fuzz_writer.scope_of_programs()
        exec(s.text, scope)
        values.append(scope[s.makes[0]])
    needs = [x.requires_grad for x in values]

    def function(*inputs: Tensor) -> Values:
        scope = fuzz_writer.scope_of_programs()
        given = dict(zip(map(id, leaves), zip(inputs, needs, strict=True), strict=True))
        for s in program:
            if id(s) in given:
                x, grad = given[id(s)]
                if forward:  # what does not require grad is a constant
                    scope[s.makes[0]] = x.clone() if grad else x.detach().clone()  # type: ignore[attr-defined]
                    continue
                x = x.detach().clone()  # type: ignore[attr-defined]
                scope[s.makes[0]] = x.requires_grad_() if grad else x
            else:
                exec(s.text, scope)
        outs = [scope[name] for s in program for name in s.makes]
        if forward:
            return outs
        roots = [y for y in outs if y.grad_fn is not None]
        wanted = [scope[s.makes[0]] for s, grad in zip(leaves, needs, strict=True) if grad]
        gradients = genesis.autograd.grad(roots[-1].sum(), wanted, materialize_grads=True) if roots and wanted else ()
        return [y.detach() for y in outs], list(gradients)

    return function, [x.detach() for x in values]


def _same(a: Tensor, b: Tensor, exact: bool) -> bool:
    x, y = a.detach().numpy(), b.detach().numpy()
    return x.shape == y.shape and bool(
        np.array_equal(x, y, equal_nan=True) if exact else np.allclose(x, y, rtol=1e-9, atol=1e-12, equal_nan=True)
    )


def _flat(values: Values) -> list[Tensor]:
    return [*values[0], *values[1]]


def _replayed(function: Callable[..., Values], inputs: list[Tensor], passes: bool) -> bool:
    expected = _flat(function(*inputs))
    graph = jit.trace(function, *inputs).verify()
    replayed = _flat((jit.optimized(graph).verify() if passes else graph).replay(*inputs))
    return len(replayed) == len(expected) and all(_same(a, b, True) for a, b in zip(replayed, expected, strict=True))


def _batched(function: Callable[..., Values], inputs: list[Tensor]) -> bool:
    if not inputs:
        return True
    rows = [[x * (1 + 0.1 * k) for x in inputs] for k in range(3)]
    expected = [_flat(function(*row)) for row in rows]
    batched = _flat(genesis.vmap(function)(*[genesis.stack(list(column)) for column in zip(*rows, strict=True)]))
    return all(_same(y, genesis.stack([e[i] for e in expected]), False) for i, y in enumerate(batched))


def _forward(program: Sequence[fuzz_writer.Statement]) -> bool:
    """The tangents of all variables along one direction, summed, are that direction's part of the gradient of their
    sum.
    """
    function, inputs = as_function(program, forward=True)
    if not inputs or any(word in s.text for s in program for word in ("no_grad", "register_hook")):
        return True  # these are for reverse mode only
    directions = [genesis.tensor(np.cos(np.arange(x.numel()) + i).reshape(x.shape)) for i, x in enumerate(inputs)]
    outs, pushed = jvp(function, tuple(inputs), tuple(directions))
    leaves = [x.clone().requires_grad_() for x in inputs]
    values = function(*leaves)
    if not all(_same(a, b, False) for a, b in zip(outs, values, strict=True)):
        return False
    for y, t in zip(values, pushed, strict=True):
        gs = (
            genesis.autograd.grad(y.sum(), leaves, retain_graph=True, materialize_grads=True) if y.requires_grad else []
        )
        reverse = sum(float((g * d).sum()) for g, d in zip(gs, directions, strict=True)) if gs else 0.0  # type: ignore[operator]
        if not np.isclose(float(t.sum()), reverse, rtol=1e-8, atol=1e-9 * (1 + float(t.abs().sum()))):  # type: ignore[attr-defined]
            return False
    return True


WAYS: dict[str, Callable[[Callable[..., Values], list[Tensor]], bool]] = {
    "trace": lambda f, x: _replayed(f, x, False), "passes": lambda f, x: _replayed(f, x, True), "vmap": _batched,
}  # fmt: skip


def check(programs: int, seed: int = 0, progress: bool = False) -> tuple[Counter[str], list[Difference]]:
    """Counts of what happened ("trace equal", "vmap refused: ..."), and the programs that went wrong."""
    from tqdm import tqdm

    counts: Counter[str] = Counter()
    wrong: list[Difference] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in tqdm(range(seed, seed + programs), disable=not progress, unit=" programs"):
            done = fuzz.run(fuzz_writer.Writer(number).program(4 + number % 14), number).program
            function, inputs = as_function(done)
            try:
                function(*inputs)
            except GenesisError:  # its gradient is refused
                counts["no gradient"] += 1
                continue
            for way, holds in {**WAYS, "jvp": lambda f, x, done=done: _forward(done)}.items():
                try:
                    fine = holds(function, inputs)
                    counts[f"{way} {'equal' if fine else 'wrong'}"] += 1
                    if not fine:
                        wrong.append((number, way, [s.text for s in done]))
                except GenesisError as error:
                    counts[f"{way} refused: {str(error).splitlines()[0]}"] += 1
    return counts, wrong


def main(arguments: Sequence[str] | None = None) -> int:
    asked = options("fuzz_transforms", __doc__, arguments, 1000)
    counts, wrong = check(asked.programs, asked.seed, progress=True)
    tell(counts)
    for number, way, lines in wrong[:10]:
        print(f"\nseed {number}, {way}:", *lines, sep="\n    ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
