"""``genesis run script.py``: a script as ``python script.py`` runs it, and with ``--torch`` with Genesis in PyTorch's place."""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Sequence
from pathlib import Path
from types import CodeType

from genesis.base.text import visible
from genesis.pytorch.children import as_torch_everywhere


def run(script: str, arguments: Sequence[str] = (), torch: bool = False) -> int:
    """Run a script as the main program; returns its exit status.

    Args:
        script: a file, or a folder or zip file with a ``__main__.py``
        arguments: what it finds in ``sys.argv`` behind its name
        torch: let ``import torch`` give Genesis
    """
    path = Path(script)
    if path.is_dir():
        path = path / "__main__.py"
    try:
        code = compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    except OSError as error:
        print(f"genesis run: {visible(str(path))}: {error.strerror}", file=sys.stderr)
        return 2
    except (SyntaxError, ValueError) as error:
        sys.excepthook(type(error), error, None)
        return 1
    sys.argv = [script, *arguments]
    sys.path[0:1] = [str(path.resolve().parent)]
    if torch:
        as_torch_everywhere()
    return _executed(code, str(path))


def _executed(code: CodeType, path: str) -> int:
    """The exit status of code that runs as ``__main__``; a traceback shows its lines, not those that lead to it."""
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=os.path.abspath(path), __builtins__=__builtins__)
    sys.modules["__main__"] = main
    try:
        exec(code, main.__dict__)
    except SystemExit as error:
        if error.code is None or isinstance(error.code, int):
            return error.code or 0
        print(error.code, file=sys.stderr)
        return 1
    except BaseException as error:
        trace = error.__traceback__
        sys.excepthook(
            type(error), error.with_traceback(trace.tb_next if trace is not None else None), error.__traceback__
        )
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    return 0
