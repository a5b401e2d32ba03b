"""Writes the random programs of `fuzz`: views, in-place writes and user Functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import genesis
from genesis.testing import fuzz_functions
from genesis.testing.fuzz_reference import Memory

LARGEST = 1e6  # of larger numbers the sine is mostly rounding error


@dataclass(frozen=True)
class Statement:
    """One line of a program: what it does to the tensors, and the same for the reference."""

    text: str
    uses: tuple[str, ...]
    makes: tuple[str, ...]
    mean: Callable[[Memory], None]
    ends: bool = False  # a write of a user's function that is refused may have happened


class Writer:
    """Writes a random program."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.count = 0
        self.statements: list[Statement] = []
        self.leafy: set[str] = set()  # leaves that require grad and views of them: writes to them are refused

    def pick(self, *choices: Any) -> Any:
        return choices[int(self.random.integers(len(choices)))]

    def name(self, shape: Sequence[int]) -> str:
        self.count += 1
        name = f"v{self.count}"
        self.shapes[name] = tuple(shape)
        return name

    def any(self, condition: Callable[[tuple[int, ...]], bool] = lambda s: True) -> str | None:
        """A tensor; those made last are likelier, so that programs are deep."""
        names = [n for n, s in self.shapes.items() if condition(s)]
        if not names:
            return None
        return names[-1 - int(len(names) * self.random.random() ** 2 * 0.999)]

    def target(self, condition: Callable[[tuple[int, ...]], bool] = lambda s: True) -> str | None:
        """A tensor to write to: mostly one where that is allowed."""
        name = self.any(condition)
        for _ in range(4):
            if name is None or name not in self.leafy or self.random.random() < 0.1:
                break
            name = self.any(condition)
        return name

    def add(
        self, text: str, uses: Sequence[str], makes: Sequence[str], mean: Callable[[Memory], None], ends: bool = False
    ) -> None:
        self.statements.append(Statement(text, tuple(uses), tuple(makes), mean, ends))

    def program(self, length: int) -> list[Statement]:
        for _ in range(int(self.random.integers(1, 4))):
            self.leaf()
        actions = [
            self.compute,
            self.compute,
            self.combine,
            self.combine,
            self.view,
            self.view,
            self.view,
            self.write,
            self.write,
            self.write_by,
            self.assign,
            self.function,
            self.function,
            self.detach,
            self.special,
        ]
        while len(self.statements) < length:
            self.pick(*actions)()
        return self.statements

    # ---- statements

    def leaf(self) -> None:
        shape = self.pick((3,), (4,), (2, 3), (2, 2), (), (1, 3), (3, 2))
        values = np.round(self.random.uniform(-1, 1, shape), 3)
        v = self.name(shape)
        needs = bool(self.random.random() < 0.8)
        if needs:
            self.leafy.add(v)
        self.add(
            f"{v} = tensor({values.tolist()}, requires_grad={needs})", (), (v,), lambda m: m.leaf(v, values, needs)
        )

    def compute(self) -> None:
        x = self.any()
        if x is None:
            return
        f = self.pick("sin", "tanh", "sigmoid", "square", "cos", "neg", "clone", "exp")
        v = self.name(self.shapes[x])
        hooked = self.random.random() < 0.1
        text = f"{v} = {x}.{f}()" + (f"; {v}.requires_grad and {v}.register_hook(lambda g: 2 * g)" if hooked else "")
        self.add(text, (x,), (v,), lambda m: m.compute(v, f, [x], 2.0 if hooked else 1.0))

    def combine(self) -> None:
        x = self.any()
        y = x and self.any(lambda s: _broadcast(s, self.shapes[x]) is not None)
        if x is None or y is None:
            return
        op, f = self.pick(("*", "mul"), ("+", "add"), ("-", "sub"))
        shape = _broadcast(self.shapes[x], self.shapes[y])
        assert shape is not None
        v = self.name(shape)
        self.add(f"{v} = {x} {op} {y}", (x, y), (v,), lambda m: m.compute(v, f, [x, y]))

    def view(self) -> None:
        x = self.any(lambda s: len(s) > 0)
        if x is None:
            return
        shape = self.shapes[x]
        text, index = self._view_of(shape)
        result = index(np.zeros(shape)).shape
        if 0 in result:
            return
        v = self.name(result)
        quiet = self.random.random() < 0.08
        if x in self.leafy:
            self.leafy.add(v)
        body = f"{v} = {x}{text}"
        self.add(
            f"with no_grad(): {body}" if quiet else body,
            (x,),
            (v,),
            lambda m: m.view(v, x, index, text.startswith(".reshape"), quiet),
        )

    def _view_of(self, shape: tuple[int, ...]) -> tuple[str, Callable[[Any], Any]]:
        dim = int(self.random.integers(len(shape)))
        index = int(self.random.integers(shape[dim]))
        lead = ":, " * dim
        choices: list[tuple[str, Callable[[Any], Any]]] = [
            (f"[{lead}{index}]", lambda a: a[(slice(None),) * dim + (index,)]),
            (f"[{lead}{index}:]", lambda a: a[(slice(None),) * dim + (slice(index, None),)]),
            (f"[{lead}::2]", lambda a: a[(slice(None),) * dim + (slice(None, None, 2),)]),
            (f"[{lead}::-1]", lambda a: a[(slice(None),) * dim + (slice(None, None, -1),)]),
            (f"[{lead}{index}::-2]", lambda a: a[(slice(None),) * dim + (slice(index, None, -2),)]),
            (f".unsqueeze({dim})", lambda a: np.expand_dims(a, dim)),
            (".reshape(-1)", lambda a: a.reshape(-1)),
            (f".select({dim}, {index})", lambda a: a[(slice(None),) * dim + (index,)]),
            (f".split(1, {dim})[{index}]", lambda a: a[(slice(None),) * dim + (slice(index, index + 1),)]),
            (f".unbind({dim})[{index}]", lambda a: a[(slice(None),) * dim + (index,)]),
            (f".expand(2, {', '.join(map(str, shape))})", lambda a: np.broadcast_to(a, (2, *shape))),
            (".squeeze()", lambda a: a.squeeze()),
        ]
        if len(shape) == 2:
            choices += [
                (".t()", lambda a: a.T),
                (".transpose(0, 1)", lambda a: a.T),
                (".diagonal()", lambda a: np.diagonal(a)),
            ]
        return self.pick(*choices)

    def write(self) -> None:
        x = self.target()
        if x is None:
            return
        f = self.pick("sin_", "tanh_", "zero_", "fill_", "mul_", "add_", "sigmoid_", "neg_")
        number = round(float(self.random.uniform(-1.5, 1.5)), 2)
        quiet = self.random.random() < 0.12
        argument = f"{number}" if f in ("fill_", "mul_", "add_") else ""
        body = f"{x}.{f}({argument})"
        self.add(
            f"with no_grad(): {body}" if quiet else body, (x,), (), lambda m: m.write(x, f[:-1], [], number, quiet)
        )

    def write_by(self) -> None:
        x = self.target()
        y = x and self.any(lambda s: _broadcast(s, self.shapes[x]) == self.shapes[x])
        if x is None or y is None:
            return
        f, text = self.pick(
            ("add", "{x}.add_({y})"),
            ("mul", "{x}.mul_({y})"),
            ("copy", "{x}.copy_({y})"),
            ("add", "{x} += {y}"),
            ("mul", "{x} *= {y}"),
            ("sub", "{x} -= {y}"),
        )
        quiet = self.random.random() < 0.08
        body = text.format(x=x, y=y)
        self.add(f"with no_grad(): {body}" if quiet else body, (x, y), (), lambda m: m.write(x, f, [y], None, quiet))

    def assign(self) -> None:
        x = self.target(lambda s: len(s) > 0)
        if x is None:
            return
        shape = self.shapes[x]
        if self.random.random() < 0.3:
            mask = self.random.random(shape) < 0.5
            number = round(float(self.random.uniform(-1, 1)), 2)
            self.add(
                f"{x}[tensor({mask.tolist()})] = {number}",
                (x,),
                (),
                lambda m: m.assign(x, lambda a: a[mask], None, number),
            )
            return
        text, index = self._view_of(shape)
        if not text.startswith("["):
            return
        part = index(np.zeros(shape)).shape
        y = self.any(lambda s: _broadcast(s, part) == part)
        if y is None or 0 in part:
            return
        self.add(f"{x}{text} = {y}", (x, y), (), lambda m: m.assign(x, index, y, None))

    def function(self) -> None:
        x = self.any()
        if x is None:
            return
        kind = self.pick(*fuzz_functions.KINDS)
        if kind.writes:
            x = self.target() or x
        shape = self.shapes[x]
        if kind.operands == 2:
            y = self.any(lambda s: s == shape)
            assert y is not None
            uses = [x, y]
        else:
            uses = [x]
        if kind.writes:
            self.add(
                f"{kind.name}.apply({', '.join(uses)})",
                uses,
                (),
                lambda m: m.write(x, kind.means[0], uses[1:], None, False),
                ends=True,
            )
            return
        vs = [self.name((int(np.prod(shape)),) if kind.flattens else shape) for _ in kind.means]
        if kind.flattens or kind.aliases:
            self.add(
                f"{vs[0]} = {kind.name}.apply({x})",
                uses,
                vs,
                lambda m: m.view(
                    vs[0], x, (lambda a: a.reshape(-1)) if kind.flattens else (lambda a: a), kind.flattens, False, True
                ),
            )
            return
        text = f"{', '.join(vs)} = {kind.call.format(*uses)}"

        def mean(m: Memory) -> None:
            results = [m.result(means, uses) for means in kind.means]
            for v, value in zip(vs, results, strict=True):
                m.keep(v, value)

        self.add(text, uses, vs, mean)

    def detach(self) -> None:
        x = self.any()
        if x is None:
            return
        v = self.name(self.shapes[x])
        self.add(f"{v} = {x}.detach().clone()", (x,), (v,), lambda m: m.constant(v, x))

    def special(self) -> None:
        """Checkpoints, joined tensors, sums."""
        x = self.any()
        if x is None:
            return
        shape = self.shapes[x]
        what = self.pick("checkpoint", "cat", "sum", "stack")
        if what == "checkpoint":
            v = self.name(shape)
            self.add(
                f"{v} = checkpoint(lambda a: a.sin() * a, {x})",
                (x,),
                (v,),
                lambda m: m.keep(v, m.result("sin_times", [x])),
            )
        elif what == "sum":
            v = self.name(())
            self.add(f"{v} = {x}.sum()", (x,), (v,), lambda m: m.keep(v, m.result("sum", [x])))
        elif shape:
            y = self.any(lambda s: s == shape)
            assert y is not None
            v = self.name((2 * shape[0], *shape[1:]) if what == "cat" else (2, *shape))
            self.add(f"{v} = {what}([{x}, {y}])", (x, y), (v,), lambda m: m.keep(v, m.result(what, [x, y])))


def _broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...] | None:
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        return None


def scope_of_programs() -> dict[str, Any]:
    names = {
        "tensor": lambda data, **options: genesis.tensor(np.array(data), **options),
        "no_grad": genesis.no_grad,
        "cat": genesis.cat,
        "stack": genesis.stack,
        "checkpoint": genesis.utils.checkpoint.checkpoint,
    }
    return names | {kind.name: kind.function for kind in fuzz_functions.KINDS}
