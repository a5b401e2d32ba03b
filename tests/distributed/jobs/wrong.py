"""Ranks that disagree, end early, hang or die: the case is the first argument."""

from __future__ import annotations

import os
import signal
import sys
import time
from datetime import timedelta

import genesis
import genesis.distributed as dist
from genesis.distributed import installed
from genesis.distributed.environment import launch
from genesis.distributed.watching import Progress

case = sys.argv[1]
ABSENT, HANGING = ("absent", "slow"), ("hang", "stopped", "inside", "receives")
SHORT = 1.5  # seconds
if case == "slow":  # in MPI, but not in the group
    installed.library()
if case in ABSENT and launch().rank == 1:
    time.sleep(60)
dist.init_process_group(timeout=timedelta(seconds=SHORT if case in ABSENT else 60))
rank = dist.get_rank()
dist.barrier()
if case in ("stopped", "inside"):  # the other has heard of it by a heartbeat, which is late on a busy machine
    Progress.step = 12 if case == "inside" else 0
    while rank == 0 and (dist.group.WORLD.engine.heard() or (0, -1))[1] != Progress.step:
        time.sleep(0.05)
    dist.barrier()
if case in HANGING:  # not before all are there: on a busy machine one may come seconds after the other
    dist.group.WORLD.calls.timeout = SHORT
if case == "shape":
    dist.all_reduce(genesis.ones(128 * (rank + 1)))
if case == "dtype":
    dist.all_reduce(genesis.ones(2, dtype=genesis.int32 if rank else genesis.float32))
if case == "combination":
    dist.all_reduce(genesis.ones(2), dist.ReduceOp.MAX if rank else dist.ReduceOp.SUM)
if case == "root":
    dist.broadcast(genesis.ones(2), rank)
if case == "call":
    dist.barrier() if rank else dist.all_reduce(genesis.ones(2))
if case == "order":
    calls = [lambda: dist.all_reduce(genesis.ones(2)), lambda: dist.broadcast(genesis.ones(2), 0)]
    for each in reversed(calls) if rank else calls:
        each()
if case == "later":  # found at a later wait
    works = [dist.all_reduce(genesis.ones(4 + (rank and i == 2)), async_op=True) for i in range(4)]
    works[-1].wait() if rank else works[2].wait()
    os._exit(7)  # not reached
if case == "ahead":  # found when what is remembered of a call is to be of another
    works = [dist.all_reduce(genesis.ones(4 + (rank and i == 2)), async_op=True) for i in range(100)]
    os._exit(7)  # not reached
if case == "exception":
    if rank == 1:
        raise KeyError("no such thing")
    dist.all_reduce(genesis.ones(2))
if case == "exit":
    if rank == 1:
        sys.exit(0)
    dist.all_reduce(genesis.ones(2))
if case == "hang":
    time.sleep(60) if rank else dist.all_reduce(genesis.ones(2))
if case == "receives":
    dist.recv(genesis.ones(2), 0) if rank else dist.all_reduce(genesis.ones(2))
if case == "stopped":
    os.kill(os.getpid(), signal.SIGSTOP) if rank else dist.all_reduce(genesis.ones(2))
if case == "inside":  # all have come, and one stops while elements move
    engine = dist.group.WORLD.engine
    move = engine.all_reduce
    engine.all_reduce = lambda *given: os.kill(os.getpid(), signal.SIGSTOP) if rank else move(*given)
    dist.all_reduce(genesis.ones(100_000))
if case == "killed":
    os.kill(os.getpid(), signal.SIGKILL) if rank else dist.all_reduce(genesis.ones(2))
if case == "late":  # and in time
    time.sleep(0.5 * rank)
    dist.all_reduce(genesis.ones(2))
    print(f"rank {rank} is done")
if case == "size":
    if rank:
        dist.send(genesis.ones(3), 0)
    else:
        dist.recv(genesis.ones(4), 1)
if case == "larger":
    if rank:
        dist.send(genesis.ones(5), 0)
    else:
        dist.recv(genesis.ones(4), 1)
