"""Collectives of tensors on a GPU, an emulated one of each rank: by a stand-in of NCCL, and without it by way of the host."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
from mpi4py import MPI

import genesis
import genesis.distributed as dist
from genesis.cuda.libraries import loading
from genesis.cuda.runtime.connection import using
from genesis.cuda.runtime.emulated import Emulated
from genesis.distributed import ReduceOp

sys.path.insert(0, str(Path(__file__).parents[2] / "cuda"))
from library_stand_ins import Nccl

warnings.simplefilter("error")


def check(rank, size):
    """Every call against NumPy, in some dtypes."""
    for dtype in (genesis.float32, genesis.float64, genesis.bfloat16, genesis.int64):
        whole = [np.random.default_rng(i).integers(-8, 9, (4, 6)) for i in range(size)]
        total = sum(whole)

        def mine(dtype=dtype, whole=whole):
            return genesis.tensor(whole[rank], dtype=dtype, device="cuda")

        def same(x, expected, dtype=dtype):
            assert x.device.type == "cuda" and x.dtype == dtype
            np.testing.assert_array_equal(x.to(genesis.float64).cpu().numpy(), expected)

        x = mine()
        dist.all_reduce(x)
        same(x, total)
        x = mine()
        dist.all_reduce(x, op=ReduceOp.MAX)
        same(x, np.max(whole, 0))
        if dtype.is_floating_point:
            x = mine()
            dist.all_reduce(x, op=ReduceOp.AVG)
            same(x, total / size)
        x = mine()
        dist.reduce(x, dst=size - 1)
        same(x, total if rank == size - 1 else whole[rank])
        x = mine()
        dist.broadcast(x, src=1 % size)
        same(x, whole[1 % size])
        out = genesis.zeros(size * 4, 6, dtype=dtype, device="cuda")
        dist.all_gather_into_tensor(out, mine())
        same(out, np.concatenate(whole))
        out = genesis.zeros(4 // size, 6, dtype=dtype, device="cuda")
        dist.reduce_scatter_tensor(out, mine())
        same(out, np.split(total, size)[rank])
        x = mine().t()  # not contiguous
        work = dist.all_reduce(x, async_op=True)
        work.wait()
        same(x * 1, total.T)
        outs = [genesis.zeros(4, 6, dtype=dtype, device="cuda") for _ in range(size)]
        dist.all_gather(outs, mine())
        for each, expected in zip(outs, whole, strict=True):
            same(each, expected)
    x = genesis.tensor([float("nan"), rank], device="cuda")
    dist.all_reduce(x, op=ReduceOp.MAX)
    assert np.isnan(x[0].item()) and x[1].item() == size - 1


def check_another_device_than_the_current(rank, size):
    """The stream that waits for what came is that of the tensor's device."""
    assert genesis.cuda.current_device() == 0
    x = genesis.full((1000,), float(rank), device="cuda:1")
    dist.all_reduce(x)
    assert (x * 2).sum().item() == 1000 * size * (size - 1)
    whole = genesis.empty(1000 * size, device="cuda:1")
    dist.all_gather_into_tensor(whole, genesis.full((1000,), float(rank), device="cuda:1"))
    assert (whole + 1).view(size, 1000).sum(1).tolist() == [1000.0 * (r + 1) for r in range(size)]


dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()
comm = MPI.COMM_WORLD.Dup()
with using(Emulated(1)) as driver:
    check(rank, size)
    dist.destroy_process_group()
    nccl = Nccl(driver, comm.allgather)
    assert not dist.is_nccl_available()
    with loading.standing_in(nccl=nccl):
        assert dist.is_nccl_available() and dist.is_backend_available("nccl")
        dist.init_process_group("nccl")
        check(rank, size)
        names = {name for name, _, _ in nccl.done}
        assert names == {"all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter"}, names
        assert {kind for name, kind, _ in nccl.done if "reduce" in name} == {
            "float32",
            "float64",
            "int64",
        }  # not 16 bits
        dist.destroy_process_group()
        assert nccl.ranks == {}
    # where one rank has none, nobody uses it
    with loading.standing_in(**({"nccl": nccl} if rank == 0 else {})):
        dist.init_process_group()
        before = len(nccl.done)
        x = genesis.ones(3, device="cuda")
        dist.all_reduce(x)
        assert x.tolist() == [size] * 3 and len(nccl.done) == before
        dist.destroy_process_group()
with using(Emulated(2)) as driver:
    for more in ({}, {"nccl": Nccl(driver, comm.allgather)}):
        with loading.standing_in(**more):
            dist.init_process_group()
            check_another_device_than_the_current(rank, size)
            dist.destroy_process_group()
print(f"rank {rank} is done", flush=True)
