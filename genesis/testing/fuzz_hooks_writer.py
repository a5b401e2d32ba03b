"""Writes random programs of hooks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

UNARY = ("sin", "exp", "tanh", "neg", "cos")
HOOKS = ("tensor", "scaled", "pre", "post", "retain", "accumulated", "around")


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
        shape, index = self.made[x].shape, int(self.random.integers(self.made[x].shape[0]))
        text, made = self.pick(
            (f"[{index}]", shape[1:]),
            (f"[{index}:]", (shape[0] - index, *shape[1:])),
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


__all__ = ["Writer"]
