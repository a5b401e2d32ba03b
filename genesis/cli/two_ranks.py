"""A picture for the demo's report: one training step of two processes, what each computed and what was on its way.

They are started as everyone starts them, ``genesis run -n 2``; this file is their program. Where MPI is not installed
there is no picture.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import genesis
import genesis.distributed as dist
from genesis import nn
from genesis.base.errors import DistributedError
from genesis.datasets import digits
from genesis.distributed.installed import launcher
from genesis.nn import functional as F
from genesis.nn.parallel import DistributedDataParallel
from genesis.profiler import export_ranks, profile

SECONDS = 30  # at most; a machine that is that busy goes without the picture


def train_step(
    model: nn.Module, optimizer: genesis.optim.Optimizer, images: genesis.Tensor, labels: genesis.Tensor
) -> None:
    """A step as of one process; the model adds up the gradients of all."""
    optimizer.zero_grad()
    F.cross_entropy(model(images), labels).backward()
    optimizer.step()


def main(path: str) -> None:
    """Some steps in each rank, each on its own digits; the last of them is drawn."""
    dist.init_process_group()
    rank, ranks = dist.get_rank(), dist.get_world_size()
    genesis.manual_seed(0)
    images, labels = (x[rank:1024:ranks] for x in digits("train"))
    layers = [nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU()]
    plain = nn.Sequential(nn.Flatten(), *layers, nn.Linear(256, 10))
    model = DistributedDataParallel(plain, bucket_cap_mb=0.1)  # small ones: something is on its way early
    optimizer = genesis.optim.AdamW(model.parameters())
    for _ in range(3):
        train_step(model, optimizer, images, labels)
    dist.barrier()  # both begin at once
    with profile() as step:
        train_step(model, optimizer, images, labels)
    export_ranks(step, path)


def installed() -> bool:
    """Whether two processes can be started here."""
    try:
        return find_spec("mpi4py") is not None and bool(launcher())
    except DistributedError:
        return False


def step_of_two_ranks() -> tuple[str, str]:
    """The picture as SVG, and the command that drew it; or nothing, and why it could not be drawn."""
    with tempfile.TemporaryDirectory(prefix="genesis-demo-") as folder:
        path = Path(folder, "step.svg")
        command = [sys.executable, "-m", "genesis", "run", "-n", "2", __file__, str(path)]
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                told = process.communicate(timeout=SECONDS)[1].strip()
            except BaseException as stopped:  # Ctrl-C as well: nothing goes on
                process.terminate()
                if not isinstance(stopped, subprocess.TimeoutExpired):
                    raise
                told = f"it took more than {SECONDS} seconds"
        if process.returncode or not path.exists():
            return "", told or f"it ended with {process.returncode}"
        return path.read_text(encoding="utf-8"), "genesis run -n 2"


if __name__ == "__main__":
    main(*sys.argv[1:])
