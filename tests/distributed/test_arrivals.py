"""Processes that no launcher of MPI started: those of torchrun, of ``multiprocessing``, or started one by one."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import genesis.distributed as dist
from genesis.distributed import arrivals, manager
from tests.distributed.ranks import JOBS, needs_mpi

SCRIPT = str(JOBS / "arriving.py")


def environment(port: int | None, **more: str) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if name not in ("MASTER_ADDR", "MASTER_PORT")}
    where = {} if port is None else {"MASTER_ADDR": "localhost", "MASTER_PORT": str(port)}
    return own | where | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"} | more


def free_port() -> int:
    with socket.create_server(("localhost", 0)) as free:
        return int(free.getsockname()[1])


def started(
    port: int, size: int, what: str = "well", ranks: list[int] | None = None, *more: str
) -> list[subprocess.Popen[str]]:
    return [
        subprocess.Popen([sys.executable, SCRIPT, str(rank), str(size), what, *more], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True, env=environment(port))
        for rank in (ranks or range(size))
    ]  # fmt: skip


def ends(jobs: list[subprocess.Popen[str]]) -> list[tuple[int, str, str]]:
    said = [job.communicate(timeout=120) for job in jobs]
    return [(job.returncode, *each) for job, each in zip(jobs, said, strict=True)]


def managers(port: int) -> list[str]:
    """Managers that listen at a port."""
    listed = subprocess.run(["ps", "-eo", "args="], capture_output=True, text=True).stdout.splitlines()
    return [line for line in listed if manager.__file__ in line and f" {port} " in f"{line} "]


def nothing_is_left(port: int) -> bool:
    end = time.monotonic() + 10
    while managers(port) and time.monotonic() < end:
        time.sleep(0.05)
    return not managers(port)


@needs_mpi
@pytest.mark.parametrize("what", ["well", "machines"])
def test_processes_started_one_by_one(what):
    port = free_port()
    for rank, (code, out, err) in enumerate(ends(started(port, 3, what))):
        assert (code, out) == (0, f"rank {rank} is done\n"), err
    assert nothing_is_left(port)


@needs_mpi
def test_processes_meet_in_a_file_or_by_a_store(tmp_path):
    path, gone = tmp_path / "meeting", free_port()
    for said in ("", f"localhost {gone} token"):  # of a job that was killed
        if said:
            dist.FileStore(path).set("genesis/where rank 0 is", said)
        later = started(free_port(), 3, "file", [1, 2], str(path))
        time.sleep(2 if said else 0)  # they have read it
        jobs = started(free_port(), 3, "file", [0], str(path)) + later
        for rank, (code, out, err) in enumerate(ends(jobs)):
            assert (code, out) == (0, f"rank {rank} is done\n"), err
    port = free_port()
    for rank, (code, out, err) in enumerate(ends(started(port, 3, "store"))):
        assert (code, out) == (0, f"rank {rank} is done\n"), err
    assert not path.exists() and nothing_is_left(port)


@needs_mpi
def test_many_jobs_at_once():
    """What MPI makes for one of them is not taken for another's."""
    jobs = [started(port, 2) for port in {free_port() for _ in range(5)}]
    for rank, (code, out, err) in [each for job in jobs for each in enumerate(ends(job))]:
        assert (code, out) == (0, f"rank {rank} is done\n"), err


@needs_mpi
def test_two_jobs_at_once_at_ports_that_others_have():
    """One whose server says nothing, one that belongs to the other job."""
    with socket.create_server(("localhost", 0)) as taken:
        port = taken.getsockname()[1]
        jobs = [started(port, 2), started(port + 1, 2)]
        for job in jobs:
            assert [(code, out) for code, out, _ in ends(job)] == [(0, "rank 0 is done\n"), (0, "rank 1 is done\n")]
    assert nothing_is_left(port)


@needs_mpi
@pytest.mark.parametrize("what", ["killed", "killed_in_mpi"])
def test_the_others_end_with_one_that_was_killed(what):
    port = free_port()
    first, second, third = ends(started(port, 3, what))
    assert second[0] == -9 and first[0] != 0 and third[0] != 0
    if what == "killed":
        assert "rank 1 ended before its time, and this one with it" in third[2]
    assert nothing_is_left(port)


@needs_mpi
def test_an_exception_is_told_to_all():
    first, second = ends(started(free_port(), 2, "raised"))
    assert (first[0], second[0]) == (1, 1)
    assert "ended by ValueError: something is wrong" in first[2] and "MPI_Finalize" not in first[2]


@needs_mpi
def test_who_does_not_come_is_named():
    ((code, _, err),) = ends(started(free_port(), 3, "late", [0]))
    assert code == 1 and "init_process_group: waited 5 s, and rank 1, rank 2 did not come\n" in err
    ((code, _, err),) = ends(started(port := free_port(), 3, "late", [1]))
    assert code == 1 and f"waited 5 s for rank 0 at localhost, ports {port} to {port + 15}\n" in err


@needs_mpi
def test_the_file_of_a_job_that_does_not_begin_is_taken_away(tmp_path):
    for rank, said in ((0, "waited 2 s, and rank 1 did not come"), (1, "waited 2 s for rank 0, and it did not say")):
        ((code, _, err),) = ends(started(free_port(), 2, "nobody_in_the_file", [rank], str(tmp_path / "meeting")))
        assert code == 1 and said in err, err
    assert list(tmp_path.iterdir()) == []


@needs_mpi
def test_a_rank_that_is_there_twice():
    first, *same = started(free_port(), 3, "well", [0, 1, 1])
    while not (refused := [job for job in same if job.poll() is not None]):
        time.sleep(0.05)
    for job in {first, *same} - set(refused):
        job.terminate()
    ((code, _, err),) = ends(refused)
    assert code == 1 and "another process is rank 1 of the job at localhost" in err and "Abort" not in err
    ends([first, *same])


def test_who_did_not_wait_for_the_answer_may_come_again():
    """As a process of a machine that has much to do: it asks again, and the manager hears of both."""
    job = manager.Manager("token", 1)
    job._gone = lambda number: None  # after the last one the process would end

    def asks():
        here, there = socket.socketpair()
        thread = threading.Thread(target=job.serve, args=(there,))
        thread.start()
        here.sendall(f"{manager.HELLO} token 0 here 1\n".encode())
        assert arrivals._line(here) == "welcome"
        return here, thread

    def leaves(here, thread):
        here.shutdown(socket.SHUT_RDWR)
        here.close()
        thread.join()

    leaves(*asks())
    assert not job.ranks and not job.complete
    both = [asks(), asks()]
    for here, _ in both:
        here.sendall(f"{manager.HERE}\n".encode())
    assert sorted([arrivals._line(here) for here, _ in both]) == ["begin", "taken"]
    for each in both:
        leaves(*each)


@needs_mpi
def test_an_address_that_is_not_of_this_machine():
    text = "rank 0 cannot listen at 192.0.2.1, ports 29500 to 29515: "
    with pytest.raises(RuntimeError, match=re.escape(text)):
        dist.init_process_group(init_method="tcp://192.0.2.1:29500", rank=0, world_size=2)


@needs_mpi
def test_processes_of_multiprocessing(tmp_path):
    script = tmp_path / "spawning.py"
    script.write_text(f"""
import multiprocessing, sys
sys.path.insert(0, {str(JOBS)!r})
from arriving import begin

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    jobs = [context.Process(target=begin, args=(rank, 2, "tcp://127.0.0.1:{free_port()}")) for rank in range(2)]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    print([job.exitcode for job in jobs])
""")
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=120, env=environment(None)
    )
    assert done.stdout == "[0, 0]\n", done.stderr


@needs_mpi
@pytest.mark.skipif(shutil.which("torchrun") is None, reason="torchrun comes with PyTorch")
@pytest.mark.parametrize("more", [[], ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"]])
def test_torchrun(more):
    where = more or ["--master-port", str(free_port())]
    command = ["torchrun", *where, "--nproc-per-node", "2", SCRIPT]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment(None))
    assert done.returncode == 0 and len(re.findall(r"rank \d is done", done.stdout)) == 2, done.stderr


def test_what_no_address_says(monkeypatch):
    monkeypatch.setenv("MASTER_ADDR", "localhost")
    monkeypatch.setenv("MASTER_PORT", "port")
    text = "init_process_group: no address at which the processes meet: MASTER_ADDR is 'localhost', MASTER_PORT 'port'"
    with pytest.raises(ValueError, match=re.escape(text)):
        arrivals.address("env://")
    assert arrivals.address("tcp://here:1?rank=0") == ("here", 1)


def test_the_manager_needs_nothing_of_genesis():
    command = [sys.executable, "-c", "import runpy, sys; runpy.run_path(sys.argv[1]); print('genesis' in sys.modules)"]
    assert subprocess.run([*command, manager.__file__], capture_output=True, text=True).stdout == "False\n"
    assert Path(manager.__file__).exists()
