"""What can go wrong, and how it is said.

    GenesisError
    ├── ShapeError        RuntimeError          shapes or sizes that do not fit
    ├── DTypeError        RuntimeError          an element type that has no meaning here
    ├── DeviceError       RuntimeError          operands on different devices, or one that is not there
    ├── LinAlgError       RuntimeError          a matrix that has no inverse, no factors, no eigenvalues
    ├── GraphError        RuntimeError          backward on what has no graph, or twice
    │   └── InplaceError                        a write that would make a gradient wrong
    ├── AnomalyError      RuntimeError          a value that is not a number, found by anomaly mode
    ├── WorkerError       RuntimeError          a worker of a loader that died, or took too long
    ├── DistributedError  RuntimeError          processes that disagree, or one that does not answer
    │   └── NoGroupError      ValueError        there is no process group
    ├── DimError          IndexError            a dimension out of range
    ├── IndexOutOfRange   IndexError            an index out of range (a RuntimeError, too)
    ├── ArgumentError     TypeError             an argument of the wrong type, or an unknown one
    ├── ArgumentValueError ValueError           an argument of the right type with an impossible value
    │   └── DomainError       RuntimeError      numbers outside of what the operation is defined for
    ├── OutOfMemoryError  MemoryError           more memory is asked for than there is (a RuntimeError, too)
    ├── FileFormatError   ValueError            a file that is not what it should be (a RuntimeError and an UnpicklingError, too)
    ├── UnsupportedError  NotImplementedError   something that does not exist here, and what to do instead
    ├── MissingName       AttributeError        a name of PyTorch that is not here
    └── MissingImport     ModuleNotFoundError   the same, where it is imported

Each also derives from what PyTorch (or Python) raises in the same place, so existing ``except`` clauses work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import ContextVar
from pickle import UnpicklingError

from genesis.base import tracebacks
from genesis.base.kept_errors import empty_later
from genesis.base.text import visible

told_of_errors: ContextVar[Callable[[GenesisError], None] | None] = ContextVar("genesis_told_of_errors", default=None)


class GenesisError(Exception):
    """Base of all errors raised by Genesis."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        empty_later(self)
        if (tell := told_of_errors.get()) is not None:
            tell(self)

    def __str__(self) -> str:
        return visible(super().__str__())

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: the lines of the program, not those of the package."""
        return tracebacks.rendered(self, GenesisError)


class ShapeError(GenesisError, RuntimeError):
    """Shapes or sizes do not fit."""


class DTypeError(GenesisError, RuntimeError):
    """An element type that the operation has no meaning for."""


class DeviceError(GenesisError, RuntimeError):
    """Operands on different devices, or a device that is not available."""


class LinAlgError(GenesisError, RuntimeError):
    """A matrix that has not what was asked for: an inverse, factors, eigenvalues."""


class GraphError(GenesisError, RuntimeError):
    """Differentiation was asked of what cannot be differentiated."""


class InplaceError(GraphError):
    """A write in place that would make a gradient wrong."""


class AnomalyError(GenesisError, RuntimeError):
    """A value that is not a number, found by anomaly mode."""


class WorkerError(GenesisError, RuntimeError):
    """A worker of a loader died, or took too long."""


class DistributedError(GenesisError, RuntimeError):
    """Processes that work together disagree, or one of them does not answer."""


class NoGroupError(DistributedError, ValueError):
    """Processes are asked for, and there is no process group."""


class DimError(GenesisError, IndexError):
    """A dimension out of range."""


class IndexOutOfRange(GenesisError, IndexError, RuntimeError):
    """An index out of range. It is both errors, as PyTorch raises one or the other: `gather` the second, `embedding` the first."""


class ArgumentError(GenesisError, TypeError):
    """An argument of the wrong type, or an unknown one."""


class ArgumentValueError(GenesisError, ValueError):
    """An argument with an impossible value."""


class DomainError(ArgumentValueError, RuntimeError):
    """Numbers, those of a tensor mostly, outside of what the operation is defined for."""


class OutOfMemoryError(GenesisError, MemoryError, RuntimeError):
    """More memory is asked for than there is."""


class FileFormatError(GenesisError, ValueError, RuntimeError, UnpicklingError):
    """A file that is not what it should be. PyTorch raises the second of a damaged one, the last of what it refuses to load."""


class UnsupportedError(GenesisError, NotImplementedError):
    """Something that does not exist here."""


class MissingName(GenesisError, AttributeError):
    """A name of PyTorch that is not here."""


class MissingImport(GenesisError, ModuleNotFoundError):
    """A name or a module of PyTorch that is imported and is not here."""


def message(op: str, problem: str, operands: Iterable[tuple[str, object]] = (), hint: str | None = None) -> str:
    """The form of every message: what is wrong with both values, the operands, and what to try.

    >>> print(message("matmul", "inner sizes differ, 4 and 5", [("a", "f32[3, 4]"), ("b", "f32[5, 2]")], "b.t()"))
    matmul: inner sizes differ, 4 and 5
      a f32[3, 4]
      b f32[5, 2]
      try: b.t()

    Control characters, which names may hold, are escaped.
    """
    lines = [f"{op}: {problem}", *(f"  {name} {value}" for name, value in operands)]
    if hint is not None:
        lines.append(f"  try: {hint}")
    return visible("\n".join(lines))


tracebacks.install(GenesisError)
