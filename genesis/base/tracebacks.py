"""What a person sees of an error: the lines of their program and the message, not the way through this package.

An error that nobody catches is printed without the package's frames, and without the errors that the package caught
itself on the way. The same holds in threads and in notebooks. ``GENESIS_FULL_TRACEBACK=1`` shows everything. An error
that is not Genesis's own and comes from inside the package is a fault of the package: of it, all is shown.
"""

from __future__ import annotations

import os
import sys
import threading
from itertools import pairwise
from types import TracebackType

import numpy as np

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_NUMPY = os.path.dirname(np.__file__) + os.sep
_MODULE = _ROOT + os.path.join("nn", "module.py")
_CLI = _ROOT + "cli" + os.sep  # the commands are programs that use the package


class _Library(dict[str, bool]):
    """For each source file, whether it belongs to this package."""

    def __missing__(self, filename: str) -> bool:
        self[filename] = ours = filename.startswith(("<genesis", _ROOT)) and not filename.startswith(_CLI)
        return ours


LIBRARY = _Library()


def cut(error: BaseException, ours: type[BaseException]) -> None:
    """Take the package's frames out of the tracebacks of an error and of those that led to it.

    Args:
        error: what is about to be printed
        ours: the base class of errors whose raising is no fault of the package
    """
    if not everything_is_shown():
        for each in with_causes(error):
            _cut_one(each, ours)


def everything_is_shown() -> bool:
    """Whether the environment asks for whole tracebacks."""
    return os.environ.get("GENESIS_FULL_TRACEBACK", "") not in ("", "0")


def with_causes(error: BaseException) -> list[BaseException]:
    """The error and what it was raised from or during."""
    causes: list[BaseException] = []
    ahead: list[BaseException | None] = [error]
    while ahead:
        each = ahead.pop()
        if each is not None and not any(each is other for other in causes):
            causes.append(each)
            ahead += [each.__cause__, each.__context__, *getattr(each, "exceptions", ())]
    return causes


def _cut_one(error: BaseException, ours: type[BaseException]) -> None:
    entries = traceback_entries(error)
    kept = [entry for entry in entries if not LIBRARY[_file(entry)]]
    if not kept or not (isinstance(error, ours) or _raised_by_the_program(entries[-1])):
        return
    note = module_note(error)
    if note is not None:
        error.add_note(note)
    chain: TracebackType | None = None
    for entry in reversed(kept):
        chain = TracebackType(chain, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    error.__traceback__ = chain
    while error.__context__ is not None and _caught_inside(error.__context__):
        error.__context__ = error.__context__.__context__


def module_note(error: BaseException) -> str | None:
    """Which module of a model was running, for when the frames that tell are gone: ``in Sequential.2 (Linear)``; None
    if it is said, or is none.
    """
    entries = traceback_entries(error)
    calls = [
        entry.tb_frame for entry in entries if _file(entry) == _MODULE and entry.tb_frame.f_code.co_name == "__call__"
    ]
    modules = [frame.f_locals["self"] for frame in calls if "self" in frame.f_locals]
    if not modules or not LIBRARY[_file(entries[-1])]:
        return None  # none, or a line of the program says it
    path = type(modules[0]).__name__
    for parent, child in pairwise(modules):
        path += "." + next((name for name, member in parent.named_children() if member is child), type(child).__name__)
    note = f"  in {path}" + (f" ({type(modules[-1]).__name__})" if len(modules) > 1 else "")
    return None if note in getattr(error, "__notes__", ()) else note


def _file(entry: TracebackType) -> str:
    return entry.tb_frame.f_code.co_filename


def _raised_by_the_program(entry: TracebackType) -> bool:
    """Whether the innermost frame is neither the package's nor NumPy's."""
    return not LIBRARY[_file(entry)] and not _file(entry).startswith(_NUMPY)


def traceback_entries(error: BaseException) -> list[TracebackType]:
    entries, entry = [], error.__traceback__
    while entry is not None:
        entries.append(entry)
        entry = entry.tb_next
    return entries


def _caught_inside(error: BaseException) -> bool:
    """Whether the package caught it: a traceback begins in the function that does."""
    entry = error.__traceback__
    return entry is not None and LIBRARY[_file(entry)]


def rendered(error: BaseException, ours: type[BaseException]) -> list[str]:
    """The lines that a notebook shows; in its own style, where it has one."""
    cut(error, ours)
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None:
        import traceback

        return traceback.format_exception(error)
    return list(shell.InteractiveTB.structured_traceback(type(error), error, error.__traceback__, tb_offset=1))


def install(ours: type[BaseException]) -> None:
    """Cut what the interpreter prints of errors that nobody catches; hooks that stand there go on being called."""
    shown, shown_in_thread = sys.excepthook, threading.excepthook

    def excepthook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        cut(error, ours)
        shown(kind, error, error.__traceback__)

    def thread_excepthook(args: threading.ExceptHookArgs, /) -> None:
        if args.exc_value is not None:
            cut(args.exc_value, ours)
            args = threading.ExceptHookArgs((args.exc_type, args.exc_value, args.exc_value.__traceback__, args.thread))
        shown_in_thread(args)

    sys.excepthook, threading.excepthook = excepthook, thread_excepthook
