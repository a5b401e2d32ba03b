"""`save`, and `async_save`, which writes while training goes on."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from genesis.base.late import Late
from genesis.distributed.checkpoint.image import Copies
from genesis.distributed.checkpoint.manifest import Manifest, folder_of
from genesis.distributed.checkpoint.parts import described
from genesis.distributed.checkpoint.plan import agree
from genesis.distributed.checkpoint.writing import write

_futures = Late("concurrent.futures")
_last: list[Any] = []  # what is being written: one snapshot at a time
_writer: list[Any] = []  # the thread that writes: to begin one each time takes a tenth of the call
os.register_at_fork(after_in_child=lambda: (_last.clear(), _writer.clear()))


class FileSystemWriter:
    """Names the folder that `save` writes to; PyTorch's options of it are accepted."""

    def __init__(self, path: Any, *options: Any, **named: Any) -> None:
        self.path = Path(path)


class FileSystemReader:
    """Names the folder that `load` reads."""

    def __init__(self, path: Any, *options: Any, **named: Any) -> None:
        self.path = Path(path)


def save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: Any = None,
    storage_writer: Any = None,
    planner: Any = None,
    process_group: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Manifest | None:
    """Write a snapshot into a folder; all ranks call it, and each writes its share.

    What was in the folder is replaced when all of the new one is on the disk. A tensor that several ranks have under
    one name is written by one of them; of `Part` each rank writes its own.

    Args:
        state_dict: tensors, numbers, strings, containers of them, and what is `Stateful`
        checkpoint_id: the folder, which all ranks see; or ``storage_writer``, a `FileSystemWriter`
        process_group: the ranks; no_dist: this process alone
        planner, use_collectives: accepted for PyTorch's sake

    Raises:
        RuntimeError: a rank could not write, as for want of space, and what was in the folder is there as before; ranks name
            different folders
        TypeError: something that cannot be saved

    >>> import genesis, tempfile
    >>> from genesis.distributed.checkpoint import load
    >>> folder, model = tempfile.mkdtemp(), genesis.nn.Linear(2, 1)
    >>> _ = save({"model": model, "step": 7}, checkpoint_id=folder)
    >>> state = {"model": genesis.nn.Linear(2, 1), "step": 0}
    >>> load(state, checkpoint_id=folder); state["step"], genesis.equal(state["model"].weight, model.weight)
    (7, True)
    """
    folder = folder_of("save", checkpoint_id, storage_writer)
    wait_for_the_last()
    plan = agree(folder, *described(state_dict), process_group, no_dist)
    return write(folder, plan)


def async_save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: Any = None,
    storage_writer: Any = None,
    planner: Any = None,
    process_group: Any = None,
    async_checkpointer_type: Any = None,
    async_stager: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Any:
    """`save`, in a thread: the state is copied, and the call returns a `concurrent.futures.Future`.

    The future is done when the snapshot is on the disk, of all ranks; ``result()`` raises what `save` would. One that
    is still being written is waited for first. The process does not end before it is done.

    >>> import genesis, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> future = async_save({"x": genesis.ones(2)}, checkpoint_id=folder)
    >>> future.result().world_size
    1
    """
    folder = folder_of("async_save", checkpoint_id, storage_writer)
    return start(folder, state_dict, process_group, no_dist, Copies())


def start(
    folder: Path, state: Any, group: Any, alone: bool, copies: Copies,
    then: Callable[[Manifest | None], Any] | None = None,
) -> Any:  # fmt: skip
    """`async_save` with memory for copies, which is free again when the future is done, and something to do then."""
    wait_for_the_last()
    plan = agree(folder, *described(state), group, alone)
    image = copies.of(plan.mine) if plan.mine else None

    def run() -> Manifest | None:
        written = write(folder, plan, image)
        if then is not None:
            then(written)
        return written

    if not _writer:
        _writer.append(_futures.ThreadPoolExecutor(1, "snapshot"))  # Python waits for it at its end
    future = _writer[0].submit(run)
    _last[:] = [future]
    return future


def wait_for_the_last() -> None:
    """Until nothing is being written; its errors are those of its future."""
    while _last:
        _last[0].exception()
        _last.clear()
