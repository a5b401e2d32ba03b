"""Random programs of hooks: what is called, in which order and with which gradients.

A program is a list of lines in names that Genesis and PyTorch share, ``T`` being the one or the other:

    v3 = v1 * v2; v3.register_hook(see("v3 tensor")); v3.mul_(2.0); a, b = v3.unbind(0); T.autograd.backward(...)

`run` gives what a program shows of itself: the calls of hooks, gradients, ``.grad``, who requires grad. `differences`
compares two such records. The order of calls is compared around each tensor; in which order branches that do not depend
on each other run is nobody's promise. With one library `probed` is the reference: a leaf of zeros that is added to a
value gets the gradient that hooks there see.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import genesis
from genesis.testing.command_line import options, tell
from genesis.testing.fuzz_hooks_writer import Writer
from genesis.testing.shrink import shortest

TOLERANCE = 1e-9  # relative; all is float64


@dataclass
class Record:
    """What a program shows of itself."""

    calls: list[tuple[str, Any]] = field(default_factory=list)
    state: dict[str, Any] = field(default_factory=dict)
    refused: int | None = None  # the first line that raised an error


# ---- running one


def _numbers(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_numbers(v) for v in value]
    return value.detach().tolist() if hasattr(value, "detach") else value


def _scope(lib: Any, record: Record) -> dict[str, Any]:
    calls = record.calls

    class Two(lib.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x, x * 3.0

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            (x,) = ctx.saved_tensors
            calls.append(("two backward", _numbers((g, h))))
            return g * 2.0 * x + h * 3.0

    def see(tag: str) -> Any:
        return lambda g: calls.append((tag, _numbers(g)))

    def see_after(tag: str) -> Any:
        return lambda gi, go: calls.append((tag, [[_numbers(g) for g in gi if g is not None], _numbers(go)]))

    def see_grad(tag: str) -> Any:
        return lambda t: calls.append((tag, _numbers(t.grad)))

    def scale(tag: str) -> Any:
        return lambda g: (calls.append((tag, _numbers(g))), None if g is None else g * 2.0)[1]

    kept: list[Any] = []  # PyTorch forgets the hooks of an accumulation that nobody holds

    def around(x: Any, name: str) -> None:
        kept.append((x * 1.0).grad_fn.next_functions[0][0])
        kept[-1].register_prehook(lambda gs: calls.append((f"{name} before", _numbers((gs, x.grad)))))
        kept[-1].register_hook(lambda gi, go: calls.append((f"{name} after", _numbers((gi, go, x.grad)))))

    def see_module(tag: str) -> Any:
        return lambda m, gi, go: calls.append((tag, _numbers((gi, go))))

    def scale_module(tag: str) -> Any:
        return lambda m, gi, go: (
            calls.append((tag, _numbers((gi, go)))),
            tuple(None if g is None else g * 2.0 for g in gi),
        )[1]

    def hooked(module: Any, name: str, full: Any) -> Any:
        module.register_forward_pre_hook(lambda m, args: calls.append((f"{name} forward pre", _numbers(args))))
        module.register_forward_hook(lambda m, args, out: calls.append((f"{name} forward", _numbers(out))))
        module.register_full_backward_pre_hook(lambda m, go: calls.append((f"{name} backward pre", _numbers(go))))
        module.register_full_backward_hook(full(f"{name} backward"))
        return module

    def record_gradients(gradients: Any) -> None:
        record.state[f"gradients {len(record.state)}"] = _numbers(gradients)

    def twice(root: Any, inputs: Any, seed: Any) -> None:
        first = lib.autograd.grad(root, inputs, seed, create_graph=True, allow_unused=True)
        record_gradients(first)
        parts = [(g * g).sum() for g in first if g is not None and g.requires_grad]
        if parts:
            record_gradients(lib.autograd.grad(sum(parts[1:], parts[0]), inputs, retain_graph=True, allow_unused=True))

    return {
        "T": lib,
        "Two": Two,
        "see": see,
        "see_after": see_after,
        "see_grad": see_grad,
        "scale": scale,
        "around": around,
        "see_module": see_module,
        "scale_module": scale_module,
        "hooked": hooked,
        "found": record_gradients,
        "twice": twice,
    }


def run(lib: Any, program: Sequence[str], stop: int | None = None, **names: Any) -> Record:
    """Run a program to the first line that is refused (or to ``stop``), and look at its tensors."""
    record = Record()
    scope = _scope(lib, record) | names
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for index, line in enumerate(program[:stop]):
            try:
                exec(line, scope)
            except (RuntimeError, TypeError):
                record.refused = index
                break
        for name, t in list(scope.items()):
            if name[0] == "v" and hasattr(t, "requires_grad"):
                record.state[name] = [t.requires_grad, t.is_leaf, t.requires_grad and t.retains_grad, _numbers(t.grad)]
    return record


def compare(program: Sequence[str], lib: Any, other: Any) -> tuple[str, str]:
    """Run a program in two libraries, as far as both go: "equal", "refused" or "wrong", and what differs."""
    mine, reference = run(lib, program), run(other, program)
    ends = [r.refused for r in (mine, reference) if r.refused is not None]
    if ends:
        mine, reference = run(lib, program, min(ends)), run(other, program, min(ends))
    detail = differences(mine, reference)
    return ("wrong", detail) if detail else ("refused", program[min(ends)]) if ends else ("equal", "")


def differences(mine: Record, reference: Record) -> str:
    """The first difference of two records, nothing if there is none."""
    for name in dict.fromkeys([*mine.state, *reference.state]):
        if not _same(mine.state.get(name), reference.state.get(name)):
            return f"{name} is {mine.state.get(name)}, the reference has {reference.state.get(name)}"
    tensors = dict.fromkeys([tag.partition(" ")[0] for tag, _ in [*mine.calls, *reference.calls]])
    for tensor in tensors:
        a, b = ([call for call in record.calls if call[0].partition(" ")[0] == tensor] for record in (mine, reference))
        if tensor == "two":  # of several Functions, in any order
            a, b = sorted(a, key=str), sorted(b, key=str)
        if [tag for tag, _ in a] != [tag for tag, _ in b] or (
            tensor != "two" and not all(_same(x, y) for (_, x), (_, y) in zip(a, b, strict=True))
        ):
            return f"the calls of {tensor} are\n  {a}, the reference has\n  {b}"
    return ""


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, float) and isinstance(b, float):
        return bool(np.isclose(a, b, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True))
    return bool(a == b)


def shrunk(program: Sequence[str], lib: Any, other: Any) -> list[str]:
    """The fewest lines of a wrong program that are still wrong."""
    return shortest(program, lambda shorter: _wrong(shorter, lib, other))


def _wrong(program: Sequence[str], lib: Any, other: Any) -> bool:
    try:
        return compare(program, lib, other)[0] == "wrong"
    except NameError:
        return False


def fuzz(
    other: Any, programs: int, seed: int = 0, length: int = 14
) -> tuple[dict[str, int], list[tuple[int, list[str], str]]]:
    """Compare ``programs`` random programs with another library: how many ended how, and the wrong ones, shrunk, with
    their seeds.
    """
    kinds = {"equal": 0, "refused": 0, "wrong": 0}
    wrong = []
    for number in range(seed, seed + programs):
        program = Writer(number).program(length)
        kind, detail = compare(program, genesis, other)
        kinds[kind] += 1
        if kind == "wrong":
            few = shrunk(program, genesis, other)
            wrong.append((number, few, compare(few, genesis, other)[1] or detail))
    return kinds, wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare as many programs as asked for with PyTorch, print what differs."""
    asked = options("fuzz_hooks", __doc__, arguments, 2000)
    import torch  # type: ignore[import-not-found, unused-ignore]

    kinds, wrong = fuzz(torch, asked.programs, asked.seed)
    tell(Counter(kinds))
    for number, lines, detail in wrong[:10]:
        print(f"\nseed {number}: {detail}", *lines, sep="\n    ")
    return 1 if wrong else 0


def probed(seed: int, length: int = 14) -> str:
    """Compare what hooks see with the gradients of probes, leaves of zeros that are added where hooks are; the first
    difference, if any.
    """
    program = Writer(seed, probes=True).program(length)
    probes: dict[str, Any] = {}

    def probe(name: str, shape: list[int]) -> Any:
        probes[name] = genesis.zeros(shape, dtype=genesis.float64, requires_grad=True)
        return probes[name]

    record = run(genesis, program, probe=probe)
    assert record.refused is None, program[record.refused]
    for name, leaf in probes.items():
        seen = [np.asarray(value) for tag, value in record.calls if tag == f"{name} tensor"]
        times = max(1, sum(line.endswith(f"register_hook(see('{name} tensor'))") for line in program))
        total = 0.0 if leaf.grad is None else leaf.grad.numpy()
        retained = record.state[name][3]
        if seen and not np.allclose(sum(seen), times * total, rtol=TOLERANCE, atol=TOLERANCE):
            return (
                f"hooks of {name} saw {sum(seen).tolist()} in all, its probe got {times} times "
                f"{np.asarray(total).tolist()}\n" + "\n".join(program)
            )
        if retained is not None and not np.allclose(retained, total, rtol=TOLERANCE, atol=TOLERANCE):
            return f"{name} retained {retained}, its probe got {np.asarray(total).tolist()}\n" + "\n".join(program)
    return ""


if __name__ == "__main__":
    sys.exit(main())


__all__ = ["Record", "compare", "differences", "fuzz", "main", "probed", "run", "shrunk"]
