"""A folder of snapshots: what a loop saves into while it trains, and goes on from after it was killed."""

from __future__ import annotations

import os
import re
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from genesis.base.errors import ArgumentValueError, message
from genesis.core.graph.generator import default_generator
from genesis.core.graph.tensor import wrap
from genesis.distributed.checkpoint import randomness
from genesis.distributed.checkpoint.image import Copies
from genesis.distributed.checkpoint.loading import fill, rank_and_size
from genesis.distributed.checkpoint.manifest import NAME, CheckpointException, Damaged, Manifest, read, verify
from genesis.distributed.checkpoint.parts import Part
from genesis.distributed.checkpoint.saving import start
from genesis.distributed.objects import broadcast_object_list
from genesis.distributed.watching import Progress

_FOLDER = re.compile(r"step-(\d+)")
_OWN = "genesis.snapshots"  # the key of what is saved besides the state


class Snapshots:
    """The snapshots of a training, in a folder: one every so many steps, written while training goes on.

    A snapshot has the state that is given, and where random numbers are: those of Genesis, of Python's `random` and of
    `numpy.random`. In a world of several ranks each writes its share; all call `save` and `resume`.

    While one is written training goes on, and a rank that is killed then goes on from the one before. So that no more than
    ``every`` steps are computed again, whenever that is, there is another snapshot halfway between; when one begins, the
    one before must be on the disk. It is removed when the next is there.

    Args:
        folder: made where it is not there
        every: how many steps apart snapshots are, and the most that are computed again; 1 waits for each
        keep: how many are kept; older ones are removed when a new one is on the disk
        group: the ranks, all of them by default

    Raises:
        ValueError: ``every`` or ``keep`` below 1

    >>> import genesis, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> def train(steps):
    ...     genesis.manual_seed(0)
    ...     model = genesis.nn.Linear(2, 1)
    ...     optimizer = genesis.optim.Adam(model.parameters())
    ...     snapshots, state = Snapshots(folder, every=4), {"model": model, "optimizer": optimizer}
    ...     first = snapshots.resume(state)
    ...     for step in range(first + 1, steps + 1):
    ...         optimizer.zero_grad(); model(genesis.randn(4, 2)).square().mean().backward(); optimizer.step()
    ...         snapshots.save(step, state)
    ...     snapshots.wait()
    ...     return first
    >>> train(5), train(7)
    (0, 4)
    """

    def __init__(self, folder: Any, every: int = 1, keep: int = 2, group: Any = None) -> None:
        if every < 1 or keep < 1:
            text = f"every is {every}, keep is {keep}; both must be at least 1"
            raise ArgumentValueError(message("Snapshots", text))
        self.folder, self.every, self.keep, self.group = Path(folder), every, keep, group
        self._copies = Copies()
        self._future: Any = None

    # ---- saving

    def save(self, step: int, state: dict[str, Any], now: bool = False) -> Any:
        """After so many steps: begin to write a snapshot if it is time, or ``now``; returns its future, or None.

        If the one before is still being written, that is waited for.

        Raises:
            RuntimeError: the one before could not be written (with ``every=1`` this one); older ones are there
        """
        Progress.step = int(step)
        if step % self.every and not self._halfway(step) and not now:
            return None
        self.wait()
        rank, size = rank_and_size(self.group, False)
        drawn = Part(wrap(randomness.state()), (size, randomness.LENGTH), rank * randomness.LENGTH)
        own = {"step": int(step), "generator": default_generator.get_state().tolist(), "others": drawn}
        future = self._future = start(
            self.folder / f"step-{step:08d}", {**state, _OWN: own}, self.group, False, self._copies, self._remove_old
        )
        if self.every == 1:
            self.wait()
        return future

    def _halfway(self, step: int) -> bool:
        """Whether it is the middle between two snapshots."""
        return self.every > 1 and step % self.every == (self.every + 1) // 2

    def wait(self) -> None:
        """Until the last snapshot is on the disk.

        Raises:
            RuntimeError: it could not be written
        """
        future, self._future = self._future, None
        if future is not None:
            future.result()

    def _remove_old(self, written: Manifest | None) -> None:
        """Rank 0, when a snapshot is there."""
        if written is None:
            return
        folders = self._folders()
        have = [step for step, folder in folders.items() if _is_whole(folder)]
        kept = [step for step in have if not self._halfway(step)]
        for step in [*kept[: -self.keep], *[step for step in have[:-1] if self._halfway(step)]]:
            (folders[step] / NAME).unlink(missing_ok=True)  # first, so that no half of it looks whole
            shutil.rmtree(folders[step], ignore_errors=True)
        for step, folder in folders.items():  # of writers that were killed
            if step not in have and have and step < have[-1]:
                shutil.rmtree(folder, ignore_errors=True)

    def _folders(self) -> dict[int, Path]:
        """The folders of snapshots, finished or not, by their steps."""
        names = [name for name in os.listdir(self.folder) if _FOLDER.fullmatch(name)] if self.folder.is_dir() else []
        return {_step(name): self.folder / name for name in sorted(names, key=_step)}

    def steps(self) -> list[int]:
        """After how many steps there are finished snapshots."""
        return [step for step, folder in self._folders().items() if _is_whole(folder)]

    # ---- going on

    def resume(self, state: dict[str, Any]) -> int:
        """Fill ``state`` from the newest snapshot that is whole; returns after how many steps it was, 0 if there is none.

        One that is torn or damaged is passed over with a warning; rank 0 decides for all.

        Raises:
            RuntimeError: there are snapshots and none is whole; the newest is of another version or another model
        """
        rank, size = rank_and_size(self.group, False)
        step, manifest = self._newest() if rank == 0 else (None, None)
        if size > 1:
            said = [step]
            broadcast_object_list(said, group=self.group, group_src=0)
            step = said[0]
        if isinstance(step, str):
            raise CheckpointException(step)
        if step is None:
            return 0
        folder = self.folder / f"step-{step:08d}"
        manifest = manifest or read(folder, "resume")
        given: dict[str, Any] = {**state, _OWN: None}
        fill(given, folder, manifest, rank, size)
        own = given.pop(_OWN)
        state.update(given)
        default_generator.set_state(wrap(np.array(own["generator"], np.uint8)))
        if "others" in own:  # older snapshots have none
            randomness.go_to(own["others"].numpy()[rank if manifest.world_size == size else 0])
        if len(manifest.trees) > 1 and manifest.world_size != size:
            text = f"values that differed between {manifest.world_size} ranks are those of rank 0 in all {size}"
            warnings.warn(message("resume", text), stacklevel=2)
        return int(own["step"])

    def _newest(self) -> tuple[Any, Manifest | None]:
        """The newest snapshot that is whole: its step (None where there is none), or what is wrong with all of them."""
        problems = []
        for step in reversed(self.steps()):
            folder = self.folder / f"step-{step:08d}"
            try:
                manifest = read(folder, "resume")
                verify(folder, manifest, "resume")
            except Damaged as error:
                problems.append(str(error))
                warnings.warn(f"{error}; an older snapshot is taken if there is one", stacklevel=3)
            except CheckpointException as error:
                return str(error), None
            else:
                return step, manifest
        if problems:
            hint = f"remove {self.folder} to begin anew"
            return message("resume", f"no snapshot in {self.folder} is whole: {problems[0]}", hint=hint), None
        return None, None


def _step(name: str) -> int:
    return int(name.partition("-")[2])


def _is_whole(folder: Path) -> bool:
    return os.path.exists(folder / NAME)
