"""Triton's interpreter, in a process of its own: whether functions are interpreted or compiled is fixed when they are
made, so one process cannot do both.
"""

from __future__ import annotations

import atexit
import os
import pickle
import subprocess
import sys
import threading
from typing import Any

import numpy as np

from genesis.cuda.runtime.errors import CudaError

_lock = threading.Lock()
_process: list[subprocess.Popen[bytes]] = []


def run(source: str, grid: tuple[int, int, int], arguments: list[Any]) -> list[np.ndarray[Any, Any] | None]:
    """Run all programs of a kernel on arrays (or pairs of an array and which of its elements an address is of) and
    numbers; returns the arrays as they are then, None for numbers.
    """
    with _lock:
        process = _started()
        assert process.stdin is not None and process.stdout is not None
        pickle.dump((source, grid, arguments), process.stdin)
        process.stdin.flush()
        done, answer = pickle.load(process.stdout)
    if not done:
        raise CudaError(f"cuda: Triton's interpreter: {answer}\n{source}")
    return answer  # type: ignore[no-any-return]


def run_into(source: str, grid: tuple[int, int, int], arguments: list[Any], written: dict[int, Any]) -> None:
    """Run them, and write what they wrote to arrays of memory, by argument."""
    results = run(source, grid, arguments)
    for i, array in written.items():
        array[...] = results[i]


def _started() -> subprocess.Popen[bytes]:
    if not _process or _process[0].poll() is not None:
        environment = {**os.environ, "TRITON_INTERPRET": "1"}
        command = [sys.executable, "-m", "genesis.cuda.launch.interpreting"]
        _process[:] = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, bufsize=-1)
        ]
        atexit.register(_stop, _process[0])
    return _process[0]


def _stop(process: subprocess.Popen[bytes]) -> None:
    """It ends when its input does."""
    if process.poll() is None:
        process.communicate()
