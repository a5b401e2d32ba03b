"""Processes that a program run with ``--torch`` starts with ``multiprocessing``: in them, too, ``import torch`` gives Genesis.

A process that was not forked knows of its parent what it is sent: first the preparation, then, after it has imported the
main program, what to call. So the preparation carries an object that puts Genesis in PyTorch's place when it is read.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing import spawn
from typing import Any

from genesis.base.library import print_as_torch
from genesis.nn import allow_loss_broadcast
from genesis.pytorch.finder import as_torch


def as_torch_everywhere() -> None:
    """Genesis in PyTorch's place, in this process and in those that it starts."""
    as_torch()
    print_as_torch()
    allow_loss_broadcast()  # the program's results are to be those of PyTorch, which warns
    if spawn.get_preparation_data is not _prepared:
        spawn.get_preparation_data = _prepared
        multiprocessing.set_forkserver_preload([])  # the main program would be imported there before it is prepared


_prepare = spawn.get_preparation_data


def _prepared(name: str) -> dict[str, Any]:
    return {**_prepare(name), "genesis": _InPlaceOfPyTorch()}


class _InPlaceOfPyTorch:
    """Does it where it is unpickled."""

    def __reduce__(self) -> tuple[Callable[[], None], tuple[()]]:
        return as_torch_everywhere, ()
