"""A world of one: every call works, nothing is installed for it; and what is refused."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import threading
from datetime import timedelta

import numpy as np
import pytest
from ranks import JOBS

import genesis
import genesis.distributed as dist
from genesis.base.errors import (
    ArgumentError,
    ArgumentValueError,
    DistributedError,
    GraphError,
    MissingImport,
    UnsupportedError,
)
from genesis.core.call.op import REGISTRY
from genesis.distributed import environment, installed, watching, wire
from genesis.testing.opcheck import opcheck


@pytest.fixture
def alone(monkeypatch):
    for names in environment.LAUNCHERS.values():
        for name in names:
            monkeypatch.delenv(name, raising=False)
    dist.init_process_group()
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


@pytest.mark.parametrize(
    "name",
    [
        "collectives.py", "functional.py", "data_parallel.py", "sync_norm.py", "zero.py", "joined.py", "sharded.py",
        "wrapped.py", "sharded_programs.py", "compiled_modules.py",
    ],
)  # fmt: skip
def test_every_collective_in_a_world_of_one(name, capsys, alone, monkeypatch):
    dist.destroy_process_group()
    monkeypatch.syspath_prepend(str(JOBS))  # as it is where they are scripts
    monkeypatch.delitem(sys.modules, "together", raising=False)  # it begins anew, as they do
    runpy.run_path(str(JOBS / name))
    assert capsys.readouterr().out == "rank 0 is done\n"


@pytest.mark.parametrize("op", [op for op in REGISTRY.values() if op.kind == "collective"], ids=lambda op: op.name)
def test_every_op_of_collectives(op):
    assert opcheck(op)


def test_a_world_of_one_imports_no_mpi():
    code = "import sys, genesis.distributed as d; d.init_process_group(); d.barrier(); print('mpi4py' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_calls_before_the_beginning_are_refused():
    assert not dist.is_initialized()
    for call in (dist.get_rank, dist.get_world_size, dist.barrier, lambda: dist.all_reduce(genesis.ones(1))):
        with pytest.raises(ValueError, match="there is no process group"):  # as in PyTorch
            call()
        with pytest.raises(DistributedError, match="there is no process group\n  try: init_process_group"):
            call()


def test_the_backend_is_what_was_asked_for():
    dist.init_process_group("GLOO")
    try:
        assert dist.get_backend() == dist.get_backend(dist.new_group([0])) == "gloo"
        assert dist.get_backend(dist.new_group([0], backend="mpi")) == "mpi"
        assert dist.group.WORLD.name() == "alone"
    finally:
        dist.destroy_process_group()


def test_the_beginning(alone):
    assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (0, 1, "alone")
    assert repr(dist.group.WORLD) == "<process group '0' of ranks [0] by alone>"
    with pytest.raises(DistributedError, match="there is a process group already"):
        dist.init_process_group()
    dist.destroy_process_group()
    with pytest.raises(UnsupportedError, match="there is no backend 'nccl' here"):
        dist.init_process_group("nccl")
    with pytest.raises(ValueError, match="world_size is 2, and the launcher says 1\n  try: genesis run -n 2"):
        dist.init_process_group("gloo", rank=0, world_size=2)
    with pytest.raises(
        UnsupportedError, match=r"init_method is 'http://here/x', and .* meet at an address\n  try: 'tcp:"
    ):
        dist.init_process_group("gloo", init_method="http://here/x", rank=0, world_size=2)
    with pytest.raises(ValueError, match="rank is 1, and the launcher says 0"):
        dist.init_process_group(rank=1)
    dist.init_process_group(init_method="file:///tmp/x", rank=0, world_size=1)  # nobody to be met
    dist.destroy_process_group()
    dist.init_process_group(
        "cpu:gloo,cuda:nccl", init_method="env://", world_size=1, rank=0, timeout=timedelta(seconds=5)
    )


def test_several_processes_without_mpi4py_say_what_to_install(monkeypatch):
    monkeypatch.setenv("PMI_RANK", "0")
    monkeypatch.setenv("PMI_SIZE", "2")
    monkeypatch.delitem(sys.modules, "mpi4py.MPI", raising=False)
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(MissingImport, match=r'need the package mpi4py.*\n  try: pip install "genesis-dl\[mpi\]"'):
        dist.init_process_group()
    assert not dist.is_initialized()


def test_no_launcher_says_what_to_install(monkeypatch):
    monkeypatch.setattr(installed, "from_wheels", lambda *names: None)
    monkeypatch.setattr(installed.shutil, "which", lambda name: None)
    with pytest.raises(DistributedError, match=r'there is none\n  try: pip install "genesis-dl\[mpi\]"'):
        installed.launcher()


@pytest.mark.parametrize(
    "environ, want",
    [
        ({"PMI_RANK": "1", "PMI_SIZE": "4", "MPI_LOCALRANKID": "0"}, (1, 4, 0)),
        ({"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}, (3, 4, 1)),
        ({"SLURM_PROCID": "2", "SLURM_STEP_NUM_TASKS": "3", "SLURM_LOCALID": "2"}, (2, 3, 2)),
        ({"RANK": "0", "WORLD_SIZE": "2"}, (0, 2, 0)),
        ({"RANK": "0"}, None),
    ],
)
def test_what_launchers_say(environ, want):
    said = environment.launch(environ)
    assert (said and said[1:]) == want


def test_an_environment_that_makes_no_sense():
    with pytest.raises(ValueError, match="rank 2 of 2"):
        environment.launch({"RANK": "2", "WORLD_SIZE": "2"})
    with pytest.raises(ValueError, match="RANK is 'first' in the environment"):
        environment.launch({"RANK": "first", "WORLD_SIZE": "2"})
    with pytest.raises(ValueError, match="no launcher said"):
        environment.local_rank()
    assert environment.local_rank(3) == 3


def test_tensors_that_are_refused(alone):
    x = genesis.ones(2, requires_grad=True)
    with pytest.raises(GraphError, match="the tensor has a history"):
        dist.all_reduce(x * 2)
    with genesis.no_grad():
        dist.all_reduce(x * 2)
    dist.broadcast(x, 0)  # a leaf: parameters are broadcast
    dist.all_gather([genesis.ones(2)], x * 2)  # read only
    with pytest.raises(GraphError, match="read-only, or an expanded tensor"):
        dist.all_reduce(genesis.ones(1).expand(3))
    with pytest.raises(RuntimeError, match="meta device has no elements"):
        dist.all_reduce(genesis.ones(2, device="meta"))
    with pytest.raises(TypeError, match="expected a tensor, got ndarray"):
        dist.all_reduce(np.ones(2))
    with pytest.raises(TypeError, match="op is 'sum', expected a ReduceOp"):
        dist.all_reduce(genesis.ones(2), "sum")
    with pytest.raises(UnsupportedError, match="inside of vmap or jvp"):
        genesis.func.vmap(lambda t: (dist.all_reduce(t), t)[1])(genesis.ones(2, 3))
    with pytest.raises(UnsupportedError, match="a trace would not see"):
        genesis.jit.trace(lambda t: (dist.all_reduce(t), t)[1], genesis.ones(2))


def test_a_saved_value_that_is_combined_is_noticed(alone):
    x = genesis.ones(2, requires_grad=True)
    y = x.exp()
    z = y * y
    with genesis.no_grad():
        dist.all_reduce(y)
    with pytest.raises(RuntimeError, match="all_reduce"):
        z.sum().backward()


def test_arguments_that_are_refused(alone):
    one, two = genesis.ones(1), genesis.ones(2)
    for call, words in [
        (lambda: dist.all_gather([], one), "tensor_list has 0 tensors, the group 1 ranks"),
        (lambda: dist.all_gather(one, one), "expected a list of tensors"),
        (lambda: dist.all_gather([two], one), r"tensor_list\[0\] is f32\[2\], the tensor f32\[1\]"),
        (lambda: dist.all_gather_into_tensor(two, one), r"output_tensor is \[2\], input_tensor \[1\], and there are 1 ranks"),
        (lambda: dist.reduce_scatter_tensor(one, two), r"input is \[2\], output \[1\]"),
        (lambda: dist.broadcast(one), "neither src nor group_src is given"),
        (lambda: dist.broadcast(one, 0, group_src=0), "both src and group_src are given"),
        (lambda: dist.broadcast(one, 1), "rank 1 is not in the group"),
        (lambda: dist.send(one, 1), "rank 1 is not in the group"),
        (lambda: dist.send(one), "no rank is given"),
        (lambda: dist.gather(one), "gather_list is None at rank 0"),
        (lambda: dist.all_to_all_single(two, two, [1], [2]), r"output_split_sizes are \[1\], output has 2 rows"),
        (lambda: dist.all_to_all_single(two, two.int()), "output is genesis.float32, input genesis.int32"),
        (lambda: dist.all_reduce(one.int(), dist.ReduceOp.AVG), "integers have no mean"),
        (lambda: dist.all_reduce(one.bool(), dist.ReduceOp.AVG), "booleans have no mean"),
        (lambda: dist.all_reduce(one, dist.ReduceOp.BOR), "BOR is of integers and booleans"),
        (lambda: dist.all_reduce(one.to(genesis.complex64), dist.ReduceOp.MAX), "complex numbers have no max"),
        (lambda: dist.new_group([0, 0]), "name each rank once"),
        (lambda: dist.new_group([1]), "rank 1 is not in a group of 1"),
        (lambda: dist.barrier(group=3), "group is int, expected a process group"),
        (lambda: dist.barrier(group=dist.GroupMember.NON_GROUP_MEMBER), "this process is not in the group"),
        (lambda: dist.P2POp(dist.send, one, 0), "expected isend or irecv"),
        (lambda: dist.batch_isend_irecv([]), "expected a list of P2POp"),
        (lambda: dist.scatter_object_list([]), "must be a list with an entry"),
        (lambda: dist.all_gather_object([], 1), "object_list is 0, expected a list of 1"),
    ]:  # fmt: skip
        with pytest.raises((ArgumentError, ArgumentValueError, DistributedError, RuntimeError), match=words):
            call()


def test_a_message_of_another_size_is_an_error(alone):
    dist.send(genesis.ones(3), 0)
    with pytest.raises(DistributedError, match="rank 0 sent 12 bytes, the tensor has 8"):
        dist.recv(genesis.ones(2), 0)


def test_waiting_for_what_never_comes_ends_in_time(alone):
    work = dist.irecv(genesis.ones(2), 0)
    assert not work.is_completed() and not work.is_success()
    with pytest.raises(
        DistributedError, match=r"recv waited .* at call 1: rank 0: recv f32\[2\] from 0 test_alone.py:\d+"
    ):
        work.wait(timedelta(seconds=0.01))
    assert isinstance(work.exception(), DistributedError)
    with pytest.raises(DistributedError, match="recv waited"):  # no further call works
        dist.barrier()
    dist.group.WORLD.calls.broken = None


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("op", ["min", "max"])
def test_extremes_by_integers_keep_every_float(dtype, op):
    special = np.array(
        [0.0, -0.0, 1, -1, np.inf, -np.inf, np.finfo(dtype).max, np.finfo(dtype).tiny, -1e-3, np.nan], dtype
    )
    how = wire.wire("all_reduce", np.dtype(dtype), op)
    sent = how.there(special)
    back = how.back(sent, 1)
    assert back.dtype == dtype
    np.testing.assert_array_equal(back, special)
    np.testing.assert_array_equal(np.signbit(back[:-1]), np.signbit(special[:-1]))
    x, y = np.meshgrid(special, special)
    best = np.minimum if op == "min" else np.maximum
    pairs = how.back(best(how.there(x.reshape(-1)), how.there(y.reshape(-1))), 2)
    np.testing.assert_array_equal(pairs, best(x, y).reshape(-1))


def test_the_line_of_a_program_that_waits_is_its_own():
    """In a report a rank was in a line of Python's `threading`."""
    said = []
    beside = threading.Timer(0.1, lambda: said.append(watching.program_line()))
    beside.start()
    beside.join()
    assert re.fullmatch(r"test_alone.py:\d+", said[0])
