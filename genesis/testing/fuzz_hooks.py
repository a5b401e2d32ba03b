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

TOLERANCE = 1e-9  # relative; all is float64

UNARY = ("sin", "exp", "tanh", "neg", "cos")
HOOKS = ("tensor", "scaled", "pre", "post", "retain", "accumulated", "around")


@dataclass
class Record:
    """What a program shows of itself."""

    calls: list[tuple[str, Any]] = field(default_factory=list)
    state: dict[str, Any] = field(default_factory=dict)
    refused: int | None = None  # the first line that raised an error


@dataclass
class Made:
    """What the writer knows of a tensor: its shape, whose memory it is on, and what may be done with it."""

    shape: tuple[int, ...]
    memory: int
    view: bool = False
    leaf: bool = False
    computed: bool = False  # neither a leaf nor a view nor a result of several


class Writer:
    """Writes a random program."""

    def __init__(self, seed: int, probes: bool = False) -> None:
        self.random = np.random.default_rng(seed)
        self.made: dict[str, Made] = {}
        self.lines: list[str] = []
        self.count = 0
        # memories that are not written to: one of their views has a hook, or is one of several results
        self.fixed: set[int] = set()
        self.written: set[int] = set()
        self.probes = probes  # for one library alone: hooks watch, and what is probed is not written to

    def pick(self, *choices: Any) -> Any:
        return choices[int(self.random.integers(len(choices)))]

    def chance(self, p: float) -> bool:
        return bool(self.random.random() < p)

    def name(self, made: Made) -> str:
        self.count += 1
        self.made[f"v{self.count}"] = made
        return f"v{self.count}"

    def any(self, condition: Any = lambda m: True) -> str | None:
        names = [n for n, m in self.made.items() if condition(m)]
        return names[-1 - int(len(names) * self.random.random() ** 2 * 0.999)] if names else None

    def numbers(self, shape: Sequence[int]) -> str:
        return f"T.tensor({np.round(self.random.uniform(-1, 1, shape), 3).tolist()}, dtype=T.float64)"

    def program(self, length: int) -> list[str]:
        for _ in range(int(self.random.integers(1, 4))):
            shape = self.pick((3,), (2, 3), (2, 2), (2,))
            v = self.name(Made(shape, self.count, leaf=True))
            self.lines.append(f"{v} = {self.numbers(shape)}" + (".requires_grad_()" if self.chance(0.85) else ""))
        actions = [
            self.compute,
            self.compute,
            self.combine,
            self.combine,
            self.hook,
            self.hook,
            self.hook,
            self.view,
            self.pieces,
            self.write,
            self.write,
            self.stop,
            self.module,
            self.function,
        ]
        while len(self.lines) < length:
            self.pick(*actions)()
        for _ in range(int(self.random.integers(1, 4))):
            self.differentiate()
        return self.lines

    # ---- lines

    def result(self, shape: tuple[int, ...], text: str) -> None:
        v = self.name(Made(shape, self.count, computed=True))
        self.lines.append(f"{v} = {text}" + (f" + probe({v!r}, {list(shape)})" if self.probes else ""))

    def compute(self) -> None:
        x = self.any()
        assert x is not None
        if self.chance(0.15) and self.made[x].shape:
            self.result(self.made[x].shape[1:], f"{x}.sum(0)")
        else:
            self.result(self.made[x].shape, f"{x}.{self.pick(*UNARY)}()")

    def combine(self) -> None:
        x = self.any()
        y = x and self.any(lambda m: m.shape in (self.made[x].shape, ()))
        if x is None or y is None:
            return
        self.result(self.made[x].shape, f"{x} {self.pick('*', '*', '+', '-')} {y if self.chance(0.85) else '1.5'}")

    def view(self) -> None:
        x = self.any(lambda m: len(m.shape) > 0)
        if x is None:
            return
        shape, place = self.made[x].shape, int(self.random.integers(self.made[x].shape[0]))
        text, made = self.pick(
            (f"[{place}]", shape[1:]),
            (f"[{place}:]", (shape[0] - place, *shape[1:])),
            (".unsqueeze(0)", (1, *shape)),
            (".transpose(0, -1)", (shape[-1], *shape[1:-1], shape[0])[: len(shape)]),
        )
        if len(shape) == 1 and "transpose" in text:
            return
        v = self.name(Made(made, self.made[x].memory, view=True))
        self.lines.append(f"{v} = {x}{text}")

    def pieces(self) -> None:
        x = self.any(lambda m: len(m.shape) > 0 and m.shape[0] in (2, 3))
        if x is None:
            return
        shape = self.made[x].shape
        how = self.pick("unbind(0)", "split(1)", f"chunk({shape[0]})", "topk")
        if how == "topk":
            v, i = self.name(Made((*shape[:-1], 1), self.count)), f"i{self.count}"
            # of equal numbers it is anyone's
            self.lines.append(f"{v}, {i} = ({x} + T.arange({shape[-1]}, dtype=T.float64)).topk(1)")
            return
        memory = self.made[x].memory
        self.fixed.add(memory)
        names = [
            self.name(Made(shape[1:] if how == "unbind(0)" else (1, *shape[1:]), memory, view=True))
            for _ in range(shape[0])
        ]
        self.lines.append(f"{', '.join(names)} = {x}.{how}")

    def write(self) -> None:
        x = self.any(lambda m: m.memory not in self.fixed and not self.probes)
        if x is None or (self._of_leaf(x) and self.chance(0.95)):
            return
        y = self.any(lambda m: m.shape == self.made[x].shape and m.memory != self.made[x].memory)
        what = self.pick("mul_(2.0)", "zero_()", "fill_(0.5)", "sin_()", "mul_", "add_", "copy_", "setitem")
        if what == "setitem" and self.made[x].shape:
            self.lines.append(f"{x}[0] = 0.25")
        elif what in ("mul_", "add_", "copy_"):
            if y is None:
                return
            self.lines.append(f"{x}.{what}({y})")
        elif what != "setitem":
            self.lines.append(f"{x}.{what}")
        self.written.add(self.made[x].memory)

    def _of_leaf(self, x: str) -> bool:
        return any(m.leaf for m in self.made.values() if m.memory == self.made[x].memory)

    def stop(self) -> None:
        x = self.any()
        assert x is not None
        if not self.probes:
            v = self.name(Made(self.made[x].shape, self.count))
            self.lines.append(self.pick(f"{v} = {x}.detach() * 1.0", f"with T.no_grad(): {v} = {x} * 2.0"))

    def module(self) -> None:
        x = self.any()
        assert x is not None
        v = self.name(Made(self.made[x].shape, self.count))
        full = "see_module" if self.probes else self.pick("see_module", "scale_module")
        self.lines.append(f"{v} = hooked(T.nn.{self.pick('Tanh', 'Sigmoid')}(), {v!r}, {full})({x})")

    def function(self) -> None:
        x = self.any()
        assert x is not None
        shape, memory = self.made[x].shape, self.count
        a, b = self.name(Made(shape, memory)), self.name(Made(shape, memory + 1))
        self.lines.append(f"{a}, {b} = Two.apply({x})")

    def hook(self) -> None:
        x = self.any(lambda m: not self.probes or m.computed)
        if x is None:
            return
        made, kind = self.made[x], self.pick(*(("tensor", "retain") if self.probes else HOOKS))
        if made.memory in self.written and kind == "post":
            return  # the nodes of writes are each library's own
        # PyTorch forgets hooks of a view whose memory is written to later, and crashes if it was before
        if made.view and kind != "retain":
            if made.memory in self.written:
                return
            self.fixed.add(made.memory)
        text = {
            "tensor": f"{x}.register_hook(see('{x} tensor'))",
            "scaled": f"{x}.register_hook(scale('{x} scaled'))",
            "retain": f"{x}.retain_grad()",
            "pre": f"{x}.grad_fn and {x}.grad_fn.register_prehook(see('{x} pre'))",
            "post": f"{x}.grad_fn and {x}.grad_fn.register_hook(see_after('{x} post'))",
            "accumulated": f"{x}.is_leaf and {x}.register_post_accumulate_grad_hook(see_grad('{x} accumulated'))",
            "around": f"{x}.is_leaf and around({x}, '{x}')",
        }[kind]
        self.lines.append(f"if {x}.requires_grad: {text}")

    def differentiate(self) -> None:
        root = self.any(lambda m: not m.leaf) or "v1"
        seed = self.numbers(self.made[root].shape)
        some = [n for n, m in self.made.items() if self.chance(0.9 if m.leaf else 0.15)]
        inputs = f"[t for t in ({', '.join(some)}{',' * (len(some) == 1)}) if t.requires_grad]" if some else "[]"
        kind = self.pick("backward", "backward", "inputs", "grad", "grad", "double")
        if self.probes or kind == "backward" or not some:
            text = f"T.autograd.backward({root}, {seed}, retain_graph=True)"
        elif kind == "inputs":
            text = f"T.autograd.backward({root}, {seed}, retain_graph=True, inputs={inputs})"
        elif kind == "grad":
            materialize = ", materialize_grads=True" if self.chance(0.3) else ", allow_unused=True"
            text = f"found(T.autograd.grad({root}, {inputs}, {seed}, retain_graph=True{materialize}))"
        else:
            text = f"twice({root}, {inputs}, {seed})"
        self.lines.append(f"if {root}.requires_grad: {text}")


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

    def found(gradients: Any) -> None:
        record.state[f"gradients {len(record.state)}"] = _numbers(gradients)

    def twice(root: Any, inputs: Any, seed: Any) -> None:
        first = lib.autograd.grad(root, inputs, seed, create_graph=True, allow_unused=True)
        found(first)
        parts = [(g * g).sum() for g in first if g is not None and g.requires_grad]
        if parts:
            found(lib.autograd.grad(sum(parts[1:], parts[0]), inputs, retain_graph=True, allow_unused=True))

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
        "found": found,
        "twice": twice,
    }


def run(lib: Any, program: Sequence[str], stop: int | None = None, **names: Any) -> Record:
    """Run a program to the first line that is refused (or to ``stop``), and look at its tensors."""
    record = Record()
    scope = _scope(lib, record) | names
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for place, line in enumerate(program[:stop]):
            try:
                exec(line, scope)
            except (RuntimeError, TypeError):
                record.refused = place
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
    best, changed = list(program), True
    while changed:
        changed = False
        for i in reversed(range(len(best))):
            shorter = best[:i] + best[i + 1 :]
            if _wrong(shorter, lib, other):
                best, changed = shorter, True
    return best


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


__all__ = ["Record", "Writer", "compare", "differences", "fuzz", "main", "probed", "run", "shrunk"]
