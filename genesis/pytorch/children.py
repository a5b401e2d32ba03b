"""Processes that a program run with ``--torch`` starts: in them, too, ``import torch`` gives Genesis.

A process of ``multiprocessing`` that was not forked knows of its parent what it is sent: first the preparation, then, after
it has imported the main program, what to call. So the preparation carries an object that puts Genesis in PyTorch's place
when it is read. Another program of Python, as trainers start themselves once for each rank, inherits the environment, in
which the folder `in_place` is the first of the path of modules.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from multiprocessing import spawn
from pathlib import Path
from typing import Any

from genesis.base.library import print_as_torch
from genesis.nn import allow_loss_broadcast
from genesis.pytorch.finder import as_torch


def as_torch_everywhere() -> None:
    """Genesis in PyTorch's place, in this process and in those that it starts."""
    as_torch()
    print_as_torch()
    allow_loss_broadcast()  # the program's results are to be those of PyTorch, which warns
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if _FOLDER not in path:
        os.environ["PYTHONPATH"] = os.pathsep.join([_FOLDER, *filter(None, path)])
    if spawn.get_preparation_data is not _prepared:
        spawn.get_preparation_data = _prepared
        multiprocessing.set_forkserver_preload([])  # the main program would be imported there before it is prepared


_FOLDER = str(Path(__file__).with_name("in_place"))
_prepare = spawn.get_preparation_data


def _prepared(name: str) -> dict[str, Any]:
    return {**_prepare(name), "genesis": _InPlaceOfPyTorch()}


class _InPlaceOfPyTorch:
    """Does it where it is unpickled."""

    def __reduce__(self) -> tuple[Callable[[], None], tuple[()]]:
        return as_torch_everywhere, ()
