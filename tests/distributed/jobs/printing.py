"""Prints, and ends as the first argument says."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import genesis.distributed as dist

case = sys.argv[1]
dist.init_process_group()
rank = dist.get_rank()
print("rank", rank, os.environ["RANK"], os.environ["WORLD_SIZE"], os.environ["LOCAL_RANK"], sys.argv[1:])
if case == "restart":
    once = Path(sys.argv[2])
    dist.barrier()
    if rank == 0 and not once.exists():
        once.write_text("")
        os.kill(os.getpid(), signal.SIGKILL)
if case == "exception" and rank == 1:
    raise ValueError("here")
if case == "killed" and rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
if case == "killed later":
    dist.barrier()
    if rank == 1:
        time.sleep(3)  # the launcher has seen what each does
        os.kill(os.getpid(), signal.SIGKILL)
if case in ("the last one is killed", "the last one leaves"):
    dist.barrier()
    if rank == dist.get_world_size() - 1:
        time.sleep(1)
        os.kill(os.getpid(), signal.SIGKILL) if case.endswith("killed") else os._exit(0)
if case == "sleeps":
    print(f"pid {os.getpid()}")
    time.sleep(60)
dist.barrier()
