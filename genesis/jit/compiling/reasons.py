"""What a compiled function tells about itself: what was traced, why again, and what is not compiled."""

from __future__ import annotations

from typing import Any

_PARTS = ("the structure of the arguments", "an argument", "a mode", "the default dtype or device")


class Reasons:
    """The history of a compiled function."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.traces: list[str] = []
        self.refusals: dict[str, int] = {}

    def retraced(self, key: Any, changes: list[list[str]], known: list[Any]) -> None:
        """It is about to be traced."""
        if changes:
            self.traces.append(
                "; ".join(dict.fromkeys(reason for some in changes for reason in some)) or "Python decided otherwise"
            )
        else:
            self.traces.append(difference(known[-1], key) if known else "the first trace")

    def refused(self, reason: str) -> bool:
        """A call is not compiled; returns whether that is news."""
        self.refusals[reason] = self.refusals.get(reason, 0) + 1
        return len(self.refusals) == 1 and self.refusals[reason] == 1

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


def difference(before: Any, now: Any) -> str:
    """What is otherwise in the key of a call, in words."""
    for what, a, b in zip(_PARTS, before, now, strict=True):
        if a == b:
            continue
        if what != "an argument" or len(a) != len(b):
            return f"{what} is {_shown(b)}, it was {_shown(a)}"
        i = next(i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y)
        return f"argument {i} is {_shown(b[i])}, it was {_shown(a[i])}"
    return "nothing that can be seen in a call is otherwise"


def _shown(part: Any) -> str:
    if isinstance(part, tuple) and len(part) == 6 and isinstance(part[0], type):
        kind, shape, dtype, strides, requires_grad, _ = part
        return (
            f"{kind.__name__} {dtype}{list(shape)}{' that requires grad' if requires_grad else ''}, strides {strides}"
        )
    if isinstance(part, tuple) and len(part) == 2 and isinstance(part[0], type):
        return str(part[1])
    return str(part)
