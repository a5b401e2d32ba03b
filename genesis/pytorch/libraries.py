"""What libraries import: a name that is absent stops the script that asks for it, but not a library, which may never use it.

A library's ``from torch.x import name`` gives a class that can be derived from and asked about, and that says when it is
called why it is not there. Where the import stands in a ``try``, the library has something else to do without that name,
and is told by an ImportError, as a script is.
"""

from __future__ import annotations

import dis
from pathlib import Path
from typing import Any

_INSTALLED = {"site-packages", "dist-packages"}


def of_a_library(importer: Any) -> bool:
    """Whether a frame that imports is code of an installed library, and has no other way if it gets nothing."""
    return not _INSTALLED.isdisjoint(Path(importer.f_code.co_filename).parts) and not _in_try(importer)


def _in_try(frame: Any) -> bool:
    """Whether an exception in the statement that a frame runs is caught in its code."""
    entries = dis.Bytecode(frame.f_code).exception_entries  # type: ignore[attr-defined]
    return any(entry.start <= frame.f_lasti < entry.end for entry in entries)
