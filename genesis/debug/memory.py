"""What a graph keeps in memory, by the lines of the program that saved it."""

from __future__ import annotations

from dataclasses import dataclass

from genesis.base.errors import ArgumentError, message
from genesis.base.text import Printed, Table, name_of
from genesis.core.graph.tensor import Tensor
from genesis.debug.graph import nodes, saved_bytes


@dataclass(repr=False)
class SavedMemory(Printed):
    """Bytes by line; printing it gives a table, the largest first."""

    total: int
    lines: dict[str, int]

    def _text(self) -> str:
        width = max([len(size(n)) for n in self.lines.values()], default=0)
        rows = [f"  {size(n):>{width}}  {name_of(line)}" for line, n in self.lines.items()]
        return "\n".join([f"{size(self.total)} saved for backward", *rows])

    def _table(self) -> Table:
        return Table(
            f"{size(self.total)} saved for backward",
            ("saved", "line"),
            [(size(n), line) for line, n in self.lines.items()],
            right=(0,),
        )


def size(count: int) -> str:
    """Bytes in words.

    >>> size(640), size(4096)
    ('640 B', '4.0 KiB')
    """
    if count < 1024:
        return f"{count} B"
    value, unit = count / 1024, "KiB"
    for larger in ("MiB", "GiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:.1f} {unit}"


def saved_memory(*tensors: Tensor) -> SavedMemory:
    """How many bytes the graph behind some results keeps for backward, by the line of the program that saved them.

    Every array is counted once, where it was saved last; parameters and other leaves, which live anyway, are not
    counted.

    Raises:
        TypeError: not tensors

    >>> import genesis
    >>> x = genesis.ones(4, requires_grad=True)
    >>> genesis.debug.saved_memory(x.exp().sum()).total
    16
    """
    for t in tensors:
        if not isinstance(t, Tensor):
            raise ArgumentError(message("saved_memory", f"expected tensors, got {type(t).__name__}"))
    counted: set[int] = set()
    lines: dict[str, int] = {}
    for node in nodes(tensors):
        n = saved_bytes(node, counted)
        if n:
            where = node.where()
            key = str(where) if where is not None else node.name()
            lines[key] = lines.get(key, 0) + n
    return SavedMemory(sum(lines.values()), dict(sorted(lines.items(), key=lambda item: -item[1])))
