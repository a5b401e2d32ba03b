"""Jobs in an allocation of Slurm."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from genesis.base.errors import ArgumentValueError, DistributedError, message
from genesis.cli.jobs import Job
from genesis.cli.launch import launch

_SIGNAL = 60  # seconds before the end of its time at which Slurm tells a job


class Allocation(NamedTuple):
    """What Slurm gave a job: its number, the machines, and how many ranks go on each."""

    job: str
    hosts: list[str]
    ranks: list[int]


def allocation(environ: Mapping[str, str] | None = None) -> Allocation | None:
    """The allocation in which this process runs, or None.

    Raises:
        ValueError: what Slurm says of it makes no sense

    >>> allocation({"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "gpu[08-10,12],login", "SLURM_TASKS_PER_NODE": "4(x4),1"})
    Allocation(job='7', hosts=['gpu08', 'gpu09', 'gpu10', 'gpu12', 'login'], ranks=[4, 4, 4, 4, 1])
    >>> allocation({}) is None
    True
    """
    environ = os.environ if environ is None else environ
    named = environ.get("SLURM_JOB_NODELIST") or environ.get("SLURM_NODELIST")
    job = environ.get("SLURM_JOB_ID") or environ.get("SLURM_JOBID")
    if not named or not job:
        return None
    hosts = hosts_of(named)
    tasks = environ.get("SLURM_TASKS_PER_NODE") or environ.get("SLURM_JOB_CPUS_PER_NODE") or f"1(x{len(hosts)})"
    ranks = _repeated(tasks)
    if len(ranks) != len(hosts):
        text = f"Slurm names {len(hosts)} machines, {named}, and tasks for {len(ranks)}, {tasks}"
        raise ArgumentValueError(message("allocation", text))
    return Allocation(job, hosts, ranks)


def hosts_of(named: str) -> list[str]:
    """The machines of a list as Slurm writes it.

    Raises:
        ValueError: it is no such list

    >>> hosts_of("a[1-2]b[09-10],c")
    ['a1b09', 'a1b10', 'a2b09', 'a2b10', 'c']
    """
    if not re.fullmatch(r"(?:[^\[\],\s]*(?:\[[\d,-]+\])?)+(?:,(?:[^\[\],\s]*(?:\[[\d,-]+\])?)+)*", named):
        raise ArgumentValueError(message("allocation", f"{named!r} is no list of machines", hint="node[01-04],login"))
    out = []
    for each in re.findall(r"(?:[^\[\],]|\[[^\]]*\])+", named):
        names = [""]
        for text, numbers in re.findall(r"([^\[\]]+)|\[([^\]]*)\]", each):
            ends = [text] if text else [number for part in numbers.split(",") for number in _range(part)]
            names = [name + end for name in names for end in ends]
        out += names
    return out


def _range(part: str) -> list[str]:
    first, _, last = part.partition("-")
    return [str(number).zfill(len(first)) for number in range(int(first), int(last or first) + 1)]


def _repeated(tasks: str) -> list[int]:
    """``2(x3),1`` as ``[2, 2, 2, 1]``."""
    out: list[int] = []
    for each in tasks.split(","):
        known = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", each)
        if known is None:
            raise ArgumentValueError(message("allocation", f"{tasks!r} does not say how many tasks there are"))
        out += [int(known[1])] * int(known[2] or 1)
    return out


def run(script: Any, *arguments: Any, ranks: int | None = None, max_restarts: int = 0, logs: Any = None) -> int:
    """Run a script in the allocation; returns the exit status, as ``genesis run`` does.

    Args:
        script: its file, which all machines see
        arguments: of the script
        ranks: how many; as many tasks as Slurm gave by default
        max_restarts, logs: as for ``genesis run``

    Raises:
        RuntimeError: this is no allocation, or there is no srun or mpiexec
    """
    given = allocation()
    if given is None:
        text = "this is no allocation: SLURM_JOB_ID and SLURM_JOB_NODELIST are not set"
        raise DistributedError(message("slurm.run", text, hint="sbatch, with a file that slurm.batch(...) writes"))
    if shutil.which("srun") is None:
        raise DistributedError(
            message("slurm.run", "MPI starts processes on other machines by srun, and there is none")
        )
    count = sum(given.ranks) if ranks is None else ranks
    kept = None if logs is None else os.fspath(logs)
    options = ("-rmk", "slurm", "-launcher", "slurm")
    words = [str(each) for each in arguments]
    return launch(Job(os.fspath(script), words, count, max_restarts=max_restarts, logs=kept, options=options))


def batch(
    script: Any, *arguments: Any, nodes: int = 1, ranks_per_node: int = 1, threads: int = 1, minutes: int = 60,
    max_restarts: int = 3, python: str | None = None, **options: Any,
) -> str:  # fmt: skip
    """The text of a batch file for ``sbatch``: the script in so many ranks, started again when a rank dies, and queued again
    when the machines are taken away or its time is over. What it lost it computes from its last snapshot.

    Args:
        script, arguments: what is run
        nodes, ranks_per_node: machines, and ranks on each
        threads: of each rank
        minutes: how long it may take
        max_restarts: how often it is started again within the allocation
        python: the interpreter there, this one by default
        options: more for sbatch: ``partition="long"`` becomes ``--partition=long``, ``exclusive=True`` ``--exclusive``

    Raises:
        ValueError: a number below 1

    >>> print(batch("train.py", nodes=2, ranks_per_node=4, python="python", partition="long"))
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=4
    #SBATCH --cpus-per-task=1
    #SBATCH --time=60
    #SBATCH --requeue
    #SBATCH --signal=B:TERM@60
    #SBATCH --open-mode=append
    #SBATCH --partition=long
    <BLANKLINE>
    export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    trap 'kill -TERM $job; wait $job; scontrol requeue $SLURM_JOB_ID' TERM
    python -m genesis.launchers.slurm --max-restarts=3 train.py &
    job=$!
    wait $job
    """
    for name, number in (
        ("nodes", nodes),
        ("ranks_per_node", ranks_per_node),
        ("threads", threads),
        ("minutes", minutes),
    ):
        if number < 1:
            raise ArgumentValueError(message("slurm.batch", f"{name} is {number}, expected at least 1"))
    first = {"nodes": nodes, "ntasks_per_node": ranks_per_node, "cpus_per_task": threads, "time": minutes}
    fixed = {"requeue": True, "signal": f"B:TERM@{_SIGNAL}", "open_mode": "append"}
    lines = [
        f"#SBATCH --{name.replace('_', '-')}" + ("" if value is True else f"={value}")
        for name, value in (first | fixed | options).items()
    ]
    words = [os.fspath(script), *map(str, arguments)]
    start = [python or sys.executable, "-m", "genesis.launchers.slurm", f"--max-restarts={max_restarts}", *words]
    return "\n".join(
        [
            "#!/bin/bash",
            *lines,
            "",
            f"export OMP_NUM_THREADS={threads} OPENBLAS_NUM_THREADS={threads}",
            "trap 'kill -TERM $job; wait $job; scontrol requeue $SLURM_JOB_ID' TERM",
            f"{shlex.join(start)} &",
            "job=$!",
            "wait $job",
        ]
    )


def main(argv: list[str]) -> int:
    """``python -m genesis.launchers.slurm [--max-restarts=3] script arguments``, what a batch file calls."""
    restarts = 0
    if argv and argv[0].startswith("--max-restarts="):
        restarts = int(argv.pop(0).partition("=")[2])
    try:
        return run(*argv, max_restarts=restarts)
    except DistributedError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
