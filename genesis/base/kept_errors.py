"""Errors that a program keeps hold no tensors: the frames of this package in their tracebacks are emptied.

A traceback holds its frames and they their variables, so an error in a list would keep all operands and intermediate
results alive. A frame can be emptied when it has ended, and of that nobody tells. So errors wait here, by weak
references, until the collector of cyclic garbage runs next or another error is made. The lines that a traceback shows
stay. A debugger that looks into the package's frames sees them with ``GENESIS_FULL_TRACEBACK=1``.
"""

from __future__ import annotations

import gc
import sys
import weakref
from collections import deque
from contextlib import suppress
from types import FrameType, FunctionType

from genesis.base.tracebacks import LIBRARY, everything_is_shown, module_note, traceback_entries, with_causes


def _count_of_one_holder() -> int:
    """What `sys.getrefcount` says of a thing that one container holds, in a loop over that; versions of Python differ."""
    for each in [object()]:
        return sys.getrefcount(each)
    raise AssertionError


_ONE_HOLDER = _count_of_one_holder()

_waiting: deque[weakref.ref[BaseException]] = deque(maxlen=64)


def empty_later(error: BaseException) -> None:
    """Empty the package's frames in the error's traceback once they have ended."""
    if not everything_is_shown():
        _empty_all()
        _waiting.append(weakref.ref(error))
        if _at_collection not in gc.callbacks:
            gc.callbacks.append(_at_collection)


def _at_collection(phase: str, info: dict[str, int]) -> None:
    if phase == "start":
        _empty_all()
        if not _waiting and _at_collection in gc.callbacks:
            gc.callbacks.remove(_at_collection)


def _empty_all() -> None:
    for _ in range(len(_waiting)):
        try:
            waiting = _waiting.popleft()
        except IndexError:  # another thread was at it
            return
        error = waiting()
        if error is not None and not _emptied(error):
            _waiting.append(waiting)


def _emptied(error: BaseException) -> bool:
    """Empty all frames of the package; False (and nothing done) while the outermost of them runs, or if the error was
    not raised yet.
    """
    if error.__traceback__ is None:
        return False
    note = module_note(error)  # from variables that are about to go
    for each in with_causes(error):
        for entry in traceback_entries(each):
            if LIBRARY[entry.tb_frame.f_code.co_filename]:
                try:
                    entry.tb_frame.clear()
                except RuntimeError:  # it runs
                    return False
                # before Python 3.13 a copy of the variables that was asked for once goes when asked for again
                entry.tb_frame.f_locals  # noqa: B018
                _empty_closure(entry.tb_frame)
    if note is not None:
        error.add_note(note)
    return True


def _empty_closure(frame: FrameType) -> None:
    """A frame also holds its function, and that what it has from the function around it: for those that nobody else
    holds.
    """
    for function in gc.get_referents(frame):
        # with the frame
        if (
            isinstance(function, FunctionType)
            and function.__code__ is frame.f_code
            and sys.getrefcount(function) == _ONE_HOLDER + 1
        ):
            for cell in function.__closure__ or ():
                if sys.getrefcount(cell) == _ONE_HOLDER:
                    with suppress(ValueError):  # it is empty
                        del cell.cell_contents
