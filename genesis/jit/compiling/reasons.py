"""What a compiled function tells about itself: what was traced, why again, and what is not compiled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from inspect import signature
from typing import Any

_SAME = "which of the tensors that are passed are the same one"
_PARTS = ("the structure of the arguments", "an argument", "a mode", "the default dtype or device", _SAME)


class Reasons:
    """The history of a compiled function.

    Attributes:
        parameters: the names of the arguments of the function that have a place
    """

    def __init__(self, name: str, function: Any) -> None:
        self.name, self.parameters = name, _parameters(function)
        self.traces: list[str] = []
        self.refusals: dict[str, int] = {}

    def retraced(self, key: Any, changes: list[list[str]], known: list[Any]) -> None:
        """It is about to be traced."""
        if changes:
            self.traces.append(
                "; ".join(dict.fromkeys(reason for some in changes for reason in some)) or "Python decided otherwise"
            )
        else:
            self.traces.append(self.difference(known[-1], key) if known else "the first trace")

    def refused(self, reason: str) -> bool:
        """A call is not compiled; returns whether that is news."""
        self.refusals[reason] = self.refusals.get(reason, 0) + 1
        return len(self.refusals) == 1 and self.refusals[reason] == 1

    def difference(self, before: Any, now: Any) -> str:
        """What is otherwise in the key of a call, in words."""
        for what, a, b in zip(_PARTS, before, now, strict=True):
            if a == b:
                continue
            if what == _SAME:
                return f"{what} is otherwise"
            if what != "an argument" or len(a) != len(b):
                return f"{what} is {_shown(b)}, it was {_shown(a)}"
            i = next(i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y)
            return f"argument {self._names(now[0])[i]} is {_shown(b[i])}, it was {_shown(a[i])}"
        return "nothing that can be seen in a call is otherwise"

    def _names(self, structure: Any) -> list[str]:
        """What the leaves of the arguments are called."""
        args, kwargs = structure.children
        own = [*self.parameters, *[f"args[{i}]" for i in range(len(self.parameters), len(args.children))]]
        pairs = [*zip(own, args.children, strict=False), *zip(kwargs.rest, kwargs.children, strict=True)]
        return [name for own_name, tree in pairs for name in _names(tree, own_name)]

    def text(self, entries: tuple[Any, ...]) -> str:
        lines = [f"{self.name}: {len(entries)} graphs, {len(self.traces)} traces"]
        lines += [f"  trace {i}: {reason}" for i, reason in enumerate(self.traces)]
        for i, entry in enumerate(reversed(entries)):
            kind = "" if entry.joint is None else f", {len(entry.joint.backward.calls)} of the gradient"
            lines.append(
                f"  graph {i}: {len(entry.graph.program.calls)} calls{kind}, {len(entry.graph.binding.guards)} guards"
            )
            lines += [f"    changed since: {reason}" for reason in entry.why_not()]
        lines += [f"  not compiled: {reason}" for reason in self.refusals]
        return "\n".join(lines)


def _names(tree: Any, name: str) -> Iterator[str]:
    """What the leaves of an argument are called."""
    if tree.kind is None:
        yield name
    fields = issubclass(tree.kind, tuple) and getattr(tree.kind, "_fields", None) if tree.kind else None
    for i, child in enumerate(tree.children):
        if isinstance(tree.rest, tuple) and tree.kind is not None and issubclass(tree.kind, Mapping):
            inside = f"{name}[{tree.rest[i]!r}]"
        elif fields or isinstance(tree.rest, tuple):
            inside = f"{name}.{(fields or tree.rest)[i]}"
        else:
            inside = f"{name}[{i}]"
        yield from _names(child, inside)


def _parameters(function: Any) -> list[str]:
    try:
        parameters = signature(getattr(function, "forward", function)).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def _shown(part: Any) -> str:
    if isinstance(part, tuple) and len(part) == 6 and isinstance(part[0], type):
        kind, shape, dtype, strides, requires_grad, leaf = part
        history = "" if not requires_grad else " that requires grad" if leaf else " that requires grad and was computed"
        return f"{kind.__name__} {dtype}{list(shape)}{history}, strides {strides}"
    if isinstance(part, tuple) and len(part) == 2 and isinstance(part[0], type):
        return str(part[1])
    return str(part)
