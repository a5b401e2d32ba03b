"""The demo's fourth part: a training that is killed with ``kill -9`` goes on, and ends in the same bits.

The training runs in processes of its own: ``python -m genesis.cli.breaking folder seed steps [step to die in]``. One dies
in the middle of a step, nothing of it gets to tidy up. The next one goes on from the last snapshot in the folder.
"""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import genesis
from genesis import nn
from genesis.cli import stages
from genesis.cli.stages import Outcome
from genesis.cli.terminal import Terminal
from genesis.data import DataLoader, TensorDataset
from genesis.datasets import digits
from genesis.distributed.checkpoint import Snapshots
from genesis.nn import functional as F

EVERY = 30  # steps


def train_breakable(folder: str, seed: int, steps: int, die_in: int | None = None) -> None:
    """An ordinary training with snapshots; what it does is printed, a line for each step."""
    genesis.manual_seed(seed)
    images, labels = digits("train")
    model = stages.reader()
    optimizer = genesis.optim.AdamW(model.parameters(), lr=3e-3)
    schedule = genesis.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    loader = DataLoader(TensorDataset(images, labels), batch_size=64, shuffle=True)
    state = {"model": model, "optimizer": optimizer, "schedule": schedule, "loader": loader}

    snapshots = Snapshots(folder, every=EVERY)
    step = snapshots.resume(state)
    print("after", step, flush=True)
    while step < steps:
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            step += 1
            if step == die_in:
                os.kill(os.getpid(), signal.SIGKILL)  # kill -9
            optimizer.step()
            schedule.step()
            print("step", step, float(loss), flush=True)
            snapshots.save(step, state)
            if step == steps:
                break
    snapshots.wait()
    print("sha256", digest(model, optimizer), flush=True)


def digest(model: nn.Module, optimizer: Any) -> str:
    """One number of all bits of the weights, and of what the optimizer knows of each."""
    bits = hashlib.sha256()
    for name, value in model.state_dict().items():
        bits.update(name.encode() + value.numpy().tobytes())
    for values in optimizer.state_dict()["state"].values():
        for name, value in sorted(values.items()):
            bits.update(name.encode() + genesis.as_tensor(value).numpy().tobytes())
    return bits.hexdigest()


class Run(NamedTuple):
    """What a process said: after which step it began, each step and its loss, and its bits unless it was killed."""

    began: int
    steps: list[int]
    losses: list[float]
    sha256: str
    status: int


@contextmanager
def _process(folder: Path, seed: int, steps: int, die_in: int | None = None) -> Iterator[subprocess.Popen[str]]:
    numbers = [str(number) for number in (seed, steps, die_in) if number is not None]
    command = [sys.executable, "-m", "genesis.cli.breaking", str(folder), *numbers]
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        yield process
    finally:  # of an interrupted demo nothing goes on
        process.kill()
        process.communicate()


def _told(process: subprocess.Popen[str]) -> Run:
    began, steps, losses, sha256 = 0, [], [], ""
    for line in process.stdout or ():
        kind, *values = line.split()
        if kind == "after":
            began = int(values[0])
        elif kind == "step":
            steps.append(int(values[0]))
            losses.append(float(values[1]))
        elif kind == "sha256":
            sha256 = values[0]
    return Run(began, steps, losses, sha256, process.wait())


def breaking(terminal: Terminal, fast: bool) -> Outcome:
    """Part four: a training is killed in the middle of a step, started again, and ends in the bits of one that was not."""
    out, steps = Outcome(), 80 if fast else 230
    seed, die_in = genesis.initial_seed(), steps * 5 // 8
    with tempfile.TemporaryDirectory(prefix="genesis-demo-") as inner:
        broken, straight = Path(inner, "broken"), Path(inner, "straight")
        with _process(straight, seed, steps) as undisturbed:  # beside the others
            with _process(broken, seed, steps, die_in) as process:
                killed = _told(process)
            with _process(broken, seed, steps) as process:
                resumed = _told(process)
            terminal.line(f"   kill -9 in step {die_in} of {steps}, and started again")
            whole = _told(undisturbed)
    died = killed.status == -signal.SIGKILL and not killed.sha256
    out.bars.append((died, f"a training was killed with kill -9 in the middle of step {die_in} of {steps}"))
    again = die_in - 1 - resumed.began
    out.bars.append(
        (
            resumed.began > 0 and again <= EVERY,
            f"started again, it went on from its last snapshot: {again} steps are computed again (at most: {EVERY})",
        )
    )
    same = resumed.sha256 == whole.sha256 != ""
    out.bars.append(
        (same, f"weights and optimizer end in the same bits as without: sha256 {resumed.sha256[:16] or 'missing'}")
    )
    out.numbers = {"same_bits": same, "killed_in": die_in, "steps": steps, "sha256": resumed.sha256}
    out.material = {"killed": killed, "resumed": resumed, "whole": whole, "code": stages.source_of(train_breakable)}
    return out


def main(argv: Sequence[str]) -> None:
    """A training, as a process of its own."""
    folder, *numbers = argv
    train_breakable(folder, *map(int, numbers))


if __name__ == "__main__":
    main(sys.argv[1:])
