"""A hundred jobs, half of them killed somewhere: nothing of them is left."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from ranks import JOBS, SHARED, needs_mpi, unused_memory

from genesis.cli import leftovers

AT_ONCE, COUNT = 4, 100
MARK = "GENESIS_TEST_OF_MANY_JOBS"


def processes(mark):
    """Those with a mark in their environment, by number, and how each was started."""
    running = {}
    for each in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (each / "environ").read_bytes():
                running[int(each.name)] = (each / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:  # it has ended meanwhile, or is another user's
            continue
    return running


def victims(mark, kind):
    """The processes of a job that are of a kind: its launcher, MPI's, or its ranks."""
    words = {"launcher": "genesis run", "mpi": "mpiexec", "proxy": "hydra_pmi_proxy", "rank": "genesis.cli.rank"}
    return [
        pid
        for pid, command in processes(mark).items()
        if words[kind] in command and (kind == "mpi" or "mpiexec" not in command)
    ]


def one(number, folder):
    """A job, killed if its number is odd: which of its processes and when depends on the number."""
    chance, mark = random.Random(number), f"{MARK}={uuid.uuid4()}"
    name, value = mark.split("=")
    environment = {**os.environ, name: value, "OMP_NUM_THREADS": "1", "TMPDIR": str(folder)}
    command = [sys.executable, "-m", "genesis", "run", "-n", "2", str(JOBS / "printing.py")]
    ends = chance.choice(["well", "exception", "killed"]) if number % 2 == 0 else "sleeps"
    job = subprocess.Popen([*command, ends], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if number % 2:
        kind = chance.choice(["launcher", "mpi", "proxy", "rank", "interrupt"])
        time.sleep(chance.uniform(0.2, 6))
        chosen = victims(mark, "launcher" if kind == "interrupt" else kind) or [job.pid]
        for pid in chosen[:1]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGINT if kind == "interrupt" else signal.SIGKILL)
    else:
        kind = ends
    job.wait(120)
    end = time.monotonic() + 60
    while (left := processes(mark)) and time.monotonic() < end:
        time.sleep(0.05)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    return f"job {number}, {kind}: {left}" if left else None


@needs_mpi
@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_dir(), reason="processes and shared memory are files on Linux only")
def test_nothing_is_left_of_a_hundred_jobs(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before, begun = set(SHARED.iterdir()), time.time()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        left = [each for each in pool.map(lambda number: one(number, tmp_path), range(COUNT)) if each]
    assert left == []
    ended = time.time()
    time.sleep(2.5)  # what is younger may be about to be used
    leftovers.sweep()  # as the next job does: of launchers that were killed before their ranks began
    assert unused_memory(before, ended) == set()
    told = [file for file in Path("/tmp").glob("hydra_hwloc_xmlfile_*") if begun < file.stat().st_mtime < ended]
    assert not [file for file in told if str(file) not in leftovers._opened()]
    assert list(tmp_path.iterdir()) == []
