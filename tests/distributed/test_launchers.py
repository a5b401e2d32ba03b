"""Jobs in an allocation of Slurm, faked, and on a Ray cluster, where Ray is installed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from ranks import JOBS, needs_mpi

from genesis.base.errors import ArgumentValueError, DistributedError
from genesis.launchers import ray, slurm

SCRIPT = str(JOBS / "printing.py")
NODE = socket.gethostname()
SLURM = {
    "SLURM_JOB_ID": "7", "SLURM_JOBID": "7", "SLURM_JOB_NODELIST": NODE, "SLURM_NODELIST": NODE, "SLURM_NNODES": "1",
    "SLURM_JOB_NUM_NODES": "1", "SLURM_TASKS_PER_NODE": "2", "SLURM_NTASKS": "2", "SLURM_NPROCS": "2",
    "SLURM_CPUS_ON_NODE": "2", "SLURM_JOB_CPUS_PER_NODE": "2",
}  # fmt: skip
SRUN = """#!/bin/sh
echo "$@" >> "$FAKED_CALLS"
while [ "${1#-}" != "$1" ]; do
    case "$1" in -N|-n|--input|--nodelist|-w) shift ;; esac
    shift
done
SLURM_NODEID=0 SLURM_PROCID=0 exec "$@"
"""


def faked(folder, **more):
    """An environment with a machine's allocation, and an srun that starts processes here."""
    srun = folder / "srun"
    srun.write_text(SRUN)
    srun.chmod(0o755)
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, **SLURM, "PATH": path, "FAKED_CALLS": str(folder / "calls"), "OMP_NUM_THREADS": "1", **more}


@needs_mpi
@pytest.mark.slow
def test_ranks_are_started_by_srun(tmp_path):
    command = [sys.executable, "-m", "genesis.launchers.slurm", SCRIPT, "well"]
    done = subprocess.run(command, env=faked(tmp_path), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"[r{r}] rank {r} {r} 2 {r} ['well']" for r in range(2)]
    assert "hydra_pmi_proxy" in (tmp_path / "calls").read_text()


@needs_mpi
@pytest.mark.slow
def test_a_batch_file_runs_and_goes_on_after_a_death(tmp_path):
    text = slurm.batch(SCRIPT, "restart", tmp_path / "once", ranks_per_node=2, max_restarts=1)
    done = subprocess.run(["bash", "-c", text], env=faked(tmp_path), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("genesis run: starts again, 1 of 1") == 1 and "[r1] rank 1" in done.stdout


def test_a_batch_file_that_is_told_of_its_end_is_queued_again(tmp_path):
    script, told = tmp_path / "waits.py", tmp_path / "told"
    script.write_text("import time\nprint('up', flush=True)\ntime.sleep(60)")
    control = tmp_path / "scontrol"
    control.write_text(f'#!/bin/sh\necho "$@" > {told}')
    control.chmod(0o755)
    text = slurm.batch("job", python=f"{tmp_path}/python")
    starts = tmp_path / "python"  # in place of the interpreter: the job itself
    starts.write_text(f"#!/bin/sh\nexec {sys.executable} {script}")
    starts.chmod(0o755)
    with subprocess.Popen(["bash", "-c", text], env=faked(tmp_path), stdout=subprocess.PIPE, text=True) as job:
        assert job.stdout.readline() == "up\n"
        job.terminate()  # as --signal=B:TERM@60 does
        job.wait(60)
    assert told.read_text() == "requeue 7\n"


def test_what_slurm_says_of_an_allocation():
    assert slurm.allocation(SLURM) == ("7", [NODE], [2])
    assert slurm.hosts_of("n[1-3]") == ["n1", "n2", "n3"] and slurm.hosts_of("r[098-101]n2,a-b") == [
        "r098n2", "r099n2", "r100n2", "r101n2", "a-b",
    ]  # fmt: skip
    for wrong in ("n[1-2", "n[a]", "a b"):
        with pytest.raises(ArgumentValueError, match="is no list of machines"):
            slurm.hosts_of(wrong)
    with pytest.raises(ArgumentValueError, match="names 2 machines, a,b, and tasks for 3, 1"):
        slurm.allocation({**SLURM, "SLURM_JOB_NODELIST": "a,b", "SLURM_TASKS_PER_NODE": "1(x3)"})
    with pytest.raises(ArgumentValueError, match="'many' does not say"):
        slurm.allocation({**SLURM, "SLURM_TASKS_PER_NODE": "many"})
    with pytest.raises(ArgumentValueError, match="minutes is 0"):
        slurm.batch("x.py", minutes=0)


def test_what_is_missing_is_said(monkeypatch, capsys):
    for name in SLURM:
        monkeypatch.delenv(name, raising=False)
    assert slurm.main(["x.py"]) == 2
    assert "this is no allocation" in capsys.readouterr().err
    for name, value in SLURM.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(DistributedError, match="by srun, and there is none"):
        slurm.run("x.py")
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"genesis-dl\[ray\]"):
        ray.run("x.py", ranks=2)


# ---- Ray

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="needs Ray, which is not installed")
IN_RAY = """
import sys
import ray
from genesis.launchers import ray as launcher
ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
print("status", launcher.run(*sys.argv[1:], ranks=2))
import subprocess, tempfile, time
for _ in range(200):  # it hears of it a little later
    if ray.available_resources().get("CPU") == 2:
        print("all is given back")
        break
    time.sleep(0.1)
starter = launcher._starter(tempfile.mkdtemp(), ray.get_runtime_context().gcs_address)
for address in (ray.nodes()[0]["NodeManagerAddress"], "10.9.8.7"):
    done = subprocess.run([starter, "-x", address, '"echo"', "here;", "exit", "3"], capture_output=True, text=True)
    print("node", done.returncode, done.stdout.strip(), done.stderr.strip())
"""


@needs_mpi
@needs_ray
@pytest.mark.slow
def test_ranks_on_a_ray_cluster(tmp_path):
    script = Path(tmp_path, "starts.py")
    script.write_text(IN_RAY)
    environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "RAY_ADDRESS": ""}
    for case, status in (("well", 0), ("exception", 1)):
        command = [sys.executable, str(script), SCRIPT, case]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
        assert done.returncode == 0, done.stdout + done.stderr
        assert ("status 0" in done.stdout) == (status == 0) and "all is given back" in done.stdout, (
            done.stdout + done.stderr
        )
        assert "[r1] rank 1 1 2 1" in done.stdout
        assert "node 3 here" in done.stdout and "node 255  the Ray cluster has no node 10.9.8.7" in done.stdout
    assert "genesis run: rank 1 failed first" in done.stderr
