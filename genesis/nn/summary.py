"""`summary`: what a module is made of, what shapes go through it and how much memory that takes, without computing
anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from genesis.arrays.spec import meta
from genesis.autograd.func.stateless import functional_call
from genesis.base import dtypes
from genesis.base.errors import ArgumentError, message
from genesis.base.pytree import tree_flatten, tree_map
from genesis.base.text import Printed, Table, name_of
from genesis.core.call.refusal import explain_all
from genesis.core.graph.modes import no_grad
from genesis.core.graph.tensor import Tensor, wrap
from genesis.nn.module import Module


@dataclass
class Layer:
    """One module of a summary."""

    name: str
    kind: str
    shapes: list[tuple[int, ...]]  # of its outputs, at its last call; empty if it was not called
    parameters: int
    bytes_out: int
    seen: bool  # an earlier row is the same module
    children: list[Layer] = field(default_factory=list)

    @property
    def likeness(self) -> Any:
        """What two layers that are alike have in common."""
        return self.kind, tuple(self.shapes), self.parameters, self.seen, tuple(c.likeness for c in self.children)


class Summary(Printed):
    """What `summary` returns; printed, it is a table, and in a notebook, too."""

    def __init__(
        self, root: Layer, parameters: int, trainable: int, parameter_bytes: int, activation_bytes: int
    ) -> None:
        self.root, self.parameters, self.trainable = root, parameters, trainable
        self.parameter_bytes, self.activation_bytes = parameter_bytes, activation_bytes

    def _table(self) -> Table:
        rows: list[tuple[str, str, str, str]] = []
        _rows(self.root, "", "", rows)
        fixed = "" if self.trainable == self.parameters else f", {self.trainable:,} of them trained"
        notes = (
            f"{self.parameters:,} parameters{fixed}: {_size(self.parameter_bytes)}",
            f"outputs of all layers, for one call: {_size(self.activation_bytes)}",
        )
        return Table("", ("", "kind", "output", "parameters"), rows, notes, right=(3,))

    def _text(self) -> str:
        table = self._table()
        rows = [table.head, *table.rows]
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        lines = [
            "  ".join((*(c.ljust(w) for c, w in zip(row[:3], widths[:3], strict=True)), row[3].rjust(widths[3])))
            for row in rows
        ]
        rule = "─" * (sum(widths) + 6)
        return "\n".join([lines[0], rule, *lines[1:], rule, *table.notes])


def summary(
    model: Module,
    *inputs: Any,
    input_size: Sequence[int] | Sequence[Sequence[int]] | None = None,
    dtype: Any = None,
    **kwargs: Any,
) -> Summary:
    """The layers of a module with the shapes of their outputs, their parameters and memory.

    The module is called on tensors without data, so this takes milliseconds for a model of any size, also one whose
    parameters are on the meta device; parameters, buffers and random streams are left as they were.

    Args:
        inputs, kwargs: arguments of the module; only the shapes and dtypes of tensors matter
        input_size: instead of inputs, their shape, or a list of shapes
        dtype: of the inputs that ``input_size`` describes

    Raises:
        TypeError: not a module, or neither inputs nor sizes
        RuntimeError: the module needs the value of a tensor

    >>> import genesis
    >>> from genesis import nn
    >>> nn.summary(nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10)), input_size=(64, 784))
                kind        output     parameters
    ─────────────────────────────────────────────
    Sequential  Sequential  [64, 10]      203,530
    ├─ 0        Linear      [64, 256]     200,960
    ├─ 1        ReLU        [64, 256]           -
    └─ 2        Linear      [64, 10]        2,570
    ─────────────────────────────────────────────
    203,530 parameters: 795.0 KiB
    outputs of all layers, for one call: 130.5 KiB
    """
    if not isinstance(model, Module):
        raise ArgumentError(message("summary", f"expected a module, got {type(model).__name__}"))
    if input_size is not None:
        shapes = [input_size] if all(isinstance(n, int) for n in input_size) else input_size
        kind = dtypes.as_np(dtypes.get_default_dtype() if dtype is None else dtype)
        inputs = tuple(wrap(meta(tuple(s), kind)) for s in shapes)  # type: ignore[arg-type]
    elif not inputs and not kwargs:
        raise ArgumentError(
            message(
                "summary", "there is nothing to call the module with", hint="summary(model, x), or input_size=(64, 784)"
            )
        )
    outputs = _called(model, inputs, kwargs)
    parameters = list(model.parameters())
    root = _layer(type(model).__name__, model, outputs, set())
    counts = sum(p.numel() for p in parameters), sum(p.numel() for p in parameters if p.requires_grad)
    held = sum(p.nbytes for p in parameters) + sum(b.nbytes for b in model.buffers())
    return Summary(root, *counts, held, _outputs_of(root))


def _ghost(x: Any) -> Any:
    return wrap(meta(tuple(x._array.shape), x._array.dtype)) if isinstance(x, Tensor) else x


def _called(model: Module, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[Module, tuple[list[Tensor], int]]:
    """The tensors that each module returned last, and the bytes of all that it returned, in a call without data."""
    calls: dict[Module, tuple[list[Tensor], int]] = {}

    def note(module: Module, args: Any, output: Any) -> None:
        outs = [y for y in tree_flatten(output)[0] if isinstance(y, Tensor)]
        calls[module] = outs, calls.get(module, ([], 0))[1] + sum(y.nbytes for y in outs)

    handles = [m.register_forward_hook(note) for m in model.modules()]
    state = {name: _ghost(t) for name, t in [*model.named_parameters(), *model.named_buffers()]}
    try:
        with no_grad():
            functional_call(model, state, tuple(tree_map(_ghost, list(inputs))), tree_map(_ghost, kwargs))
    finally:
        for handle in handles:
            handle.remove()
    return calls


def _layer(name: str, module: Module, outputs: dict[Module, tuple[list[Tensor], int]], seen: set[int]) -> Layer:
    known = id(module) in seen
    seen.add(id(module))
    outs, size = outputs.get(module, ([], 0))
    own = sum(p.numel() for p in module.parameters())
    layer = Layer(name, type(module).__name__, [tuple(y.shape) for y in outs], own, 0 if known else size, known)
    layer.children = [] if known else [_layer(n, m, outputs, seen) for n, m in module._modules.items() if m is not None]
    return layer


def _outputs_of(layer: Layer) -> int:
    return sum(map(_outputs_of, layer.children)) if layer.children else layer.bytes_out


def _rows(layer: Layer, lead: str, branch: str, rows: list[tuple[str, str, str, str]], times: int = 1) -> None:
    shapes = ", ".join(str(list(s)) for s in layer.shapes) or "not called"
    count = "-" if not layer.parameters else "(above)" if layer.seen else f"{layer.parameters:,}"
    rows.append(
        (
            f"{lead}{branch}{name_of(layer.name)}",
            name_of(layer.kind) + (f" x {times}" if times > 1 else ""),
            shapes,
            count,
        )
    )
    below = lead + {"": "", "├─ ": "│  ", "└─ ": "   "}[branch]
    runs: list[list[Layer]] = []
    for child in layer.children:
        if runs and runs[-1][0].likeness == child.likeness and child.children:
            runs[-1].append(child)
        else:
            runs.append([child])
    for i, run in enumerate(runs):
        first = run[0]
        if len(run) > 1:
            first = Layer(
                f"{first.name} to {run[-1].name}, each",
                first.kind,
                first.shapes,
                first.parameters,
                first.bytes_out,
                first.seen,
                first.children,
            )
        _rows(first, below, "└─ " if i == len(runs) - 1 else "├─ ", rows, len(run))


def _size(count: int) -> str:
    value, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:.1f} {unit}" if unit != "B" else f"{count} B"


explain_all(globals(), "summary")
