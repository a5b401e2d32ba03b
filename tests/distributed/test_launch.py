"""``genesis run -n 2``: lines with their rank, the first failure, nothing left behind."""

from __future__ import annotations

import mmap
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from ranks import ALLOWED, JOBS, SHARED, needs_mpi, unused_memory

from genesis import cli
from genesis.cli import endings, launch, leftovers, mpiexec, notes
from genesis.cli.jobs import Job
from genesis.distributed import installed, mpi

RUN = [sys.executable, "-m", "genesis", "run"]
_GONE = 10.0  # seconds; it is 2 where the machine has nothing else to do
SCRIPT = str(JOBS / "printing.py")


def run(*arguments, folder):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": str(folder)}
    done = subprocess.run([*RUN, *arguments], capture_output=True, text=True, timeout=400, env=environment)
    assert list(folder.glob("genesis-run-*")) == []
    return done


@needs_mpi
def test_each_line_has_its_rank(tmp_path):
    done = run("-n", "2", "--logs", str(tmp_path / "logs"), SCRIPT, "well", "-n", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = [f"rank {rank} {rank} 2 {rank} ['well', '-n']" for rank in range(2)]
    assert sorted(done.stdout.splitlines()) == [f"[r{rank}] {line}" for rank, line in enumerate(lines)]
    assert [(tmp_path / "logs" / f"rank{rank}.log").read_text().strip() for rank in range(2)] == lines


@pytest.mark.parametrize(
    "options, said",
    [
        ("-n 0", "-n 0, expected at least 1"),
        ("-n 100000000", "-n 100000000, which takes more than the .* GiB of this machine's memory"),
        ("--max-restarts -1", "--max-restarts -1, expected 0 or more"),
        ("-n 2 --hosts a,,b", "--hosts 'a,,b', expected names of machines with commas between them"),
        ("-n 2 --hosts=", "--hosts '', expected names of machines"),
        ("-n 2 --logs=", "--logs '', expected the name of a folder"),
        ("-n 2 --logs file", "--logs file: this is a file, expected a folder"),
        ("-n 2 --logs file/logs", "--logs file/logs: Not a directory"),
        ("-n 2 other", "other: No such file or directory"),
        ("-n 2 .", "__main__.py: No such file or directory"),
    ],
)
def test_what_cannot_begin_is_refused(tmp_path, monkeypatch, capsys, options, said):
    """... with a sentence, before anything is started."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(launch, "_once", lambda job: pytest.fail("started"))
    Path("file").write_text("")
    assert cli.main(["run", *options.split(), "file"]) == 2
    assert re.fullmatch(f"genesis run: {said}.*\n", capsys.readouterr().err)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@needs_mpi
def test_programs_for_torchrun_find_its_names(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import os; print([os.environ[n] for n in ('LOCAL_WORLD_SIZE', 'MASTER_ADDR', 'MASTER_PORT')])")
    lines = run("-n", "2", str(script), folder=tmp_path).stdout.splitlines()
    assert len({line[5:] for line in lines}) == 1 and len(lines) == 2
    assert re.fullmatch(r"\[r\d\] \['2', 'localhost', '\d+'\]", lines[0]), lines


@needs_mpi
def test_ranks_on_machines_that_are_named(tmp_path):
    """Two names of this one: MPICH takes them for two machines, and sends through the network."""
    done = run("-n", "2", "--hosts", "localhost,127.0.0.1", SCRIPT, "well", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = sorted((done.stdout + done.stderr).splitlines())  # of heartbeats that nobody took MPI warns at its end
    machines = mpiexec.kind(installed.launcher()) is mpiexec.MPICH  # Open MPI knows its own
    assert lines == [f"[r{rank}] rank {rank} {rank} 2 {0 if machines else rank} ['well']" for rank in range(2)]


@needs_mpi
@pytest.mark.slow
def test_a_machine_that_there_is_not_is_named(tmp_path):
    done = run("-n", "2", "--hosts", "no-such-machine.invalid", SCRIPT, "well", folder=tmp_path)
    assert done.returncode != 0 and "no-such-machine.invalid" in done.stderr


@needs_mpi
def test_the_first_failure_is_the_last_screen(tmp_path):
    done = run("-n", "2", SCRIPT, "exception", folder=tmp_path)
    assert done.returncode != 0
    screen = done.stderr.partition("genesis run: ")[2]
    assert screen.startswith("rank 1 failed first\nTraceback (most recent call last):\n")
    assert re.search(
        r"printing.py\", line \d+, in <module>\n    raise ValueError\(\"here\"\)\nValueError: here\n", screen
    )
    assert "rank 0: " in screen and "rank 1: ended by ValueError: here" in screen
    assert "site-packages" not in screen and os.sep + "calls.py" not in screen


def test_what_a_rank_did_last_when_its_program_has_ended(tmp_path):
    (tmp_path / "0.doing").write_text("step 3, train.py:41, after barrier train.py:40 (call 7)")
    (tmp_path / "1.doing").write_text("after the end of the group (call 8)")
    seen = launch._seen(str(tmp_path))
    assert seen["0"] == "last seen at step 3, train.py:41, after barrier train.py:40 (call 7)"
    assert seen["1"] == "last seen after the end of the group (call 8)"


LATE = """
import os, time
from datetime import timedelta
import genesis.distributed as dist
if os.environ["RANK"] == "1":
    time.sleep(100)
dist.init_process_group(timeout=timedelta(seconds=3))
"""


@needs_mpi
def test_a_rank_that_never_begins_is_named(tmp_path):
    (tmp_path / "late.py").write_text(LATE)
    done = run("-n", "2", str(tmp_path / "late.py"), folder=tmp_path)
    assert done.returncode != 0
    assert done.stderr.partition("genesis run: ")[2].splitlines() == [
        "rank 0 waited 3 s at late.py:7 in init_process_group, and rank 1 did not come there",
        "try a longer timeout, if that is only late",
        "rank 1: last seen at late.py:6",
    ]


def test_ranks_that_only_wait_are_not_said_to_have_waited(tmp_path):
    for rank in range(3):
        (tmp_path / f"{rank}.pid").write_text(str(10**8 + rank))
    (tmp_path / "0.waiting").write_text("3 s at late.py:7\n")
    assert launch._waited(str(tmp_path)) is None
    (tmp_path / "2.waiting").write_text("3 s at late.py:7\nTimeout (0:00:03)!\n")
    assert launch._waited(str(tmp_path)).startswith(
        "rank 2 waited 3 s at late.py:7 in init_process_group, and rank 1 did"
    )


@needs_mpi
@pytest.mark.slow
def test_a_rank_that_is_killed_is_named(tmp_path):
    done = run("-n", "2", SCRIPT, "killed later", folder=tmp_path)
    assert done.returncode != 0
    screen = done.stderr.partition("genesis run: ")[2]
    assert re.match(
        r"rank 1 was killed by SIGKILL, last seen at printing.py:\d+, after barrier .*\(call 1\)\n", screen
    ), screen
    assert re.search(r"^rank 0: last seen at barrier printing.py:\d+ \(call 2\)$", screen, re.M), screen


@needs_mpi
@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="the system does not tell who ended first")
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_the_rank_that_is_named_is_the_one_that_was_killed(tmp_path, ranks):
    """MPICH names one of those that it ended itself, where there are more than two."""
    done = run("-n", str(ranks), SCRIPT, "the last one is killed", folder=tmp_path)
    screen = done.stderr.partition("genesis run: ")[2]
    several = rf"one of the ranks .*{ranks - 1} was killed by SIGKILL\n"  # on a machine that has much to do
    assert re.match(rf"rank {ranks - 1} was killed by SIGKILL, last seen|{several}", screen), screen


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="the system does not tell who ended first")
def test_the_rank_that_ended_first_is_known_however_late_that_is_looked_at(tmp_path, monkeypatch):
    """MPI's launcher ends the others at once: on a machine that has much to do all have ended at the next look."""
    ranks = [subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) for _ in range(4)]
    looks, goes_on = threading.Event(), threading.Event()

    def late(folder):
        if looked:
            looks.set()
            goes_on.wait(60)
        looked.append(folder)
        return {process.pid: str(rank) for rank, process in enumerate(ranks)}

    looked = []
    monkeypatch.setattr(endings, "pids", late)
    try:
        with endings.Endings(str(tmp_path)) as ended:
            assert looks.wait(60)
            for rank in (2, 0, 3, 1):
                ranks[rank].kill()
                os.waitid(os.P_PID, ranks[rank].pid, os.WEXITED | os.WNOWAIT)
            goes_on.set()
            ended._thread.join(60)
        assert ended.first == ["2"]
    finally:
        goes_on.set()
        for process in ranks:
            process.kill()
            process.communicate()


@needs_mpi
def test_a_rank_that_leaves_the_others_alone_is_a_failure(tmp_path):
    done = run("-n", "2", SCRIPT, "the last one leaves", folder=tmp_path)
    screen = done.stderr.partition("genesis run: ")[2]
    assert done.returncode != 0 and screen.startswith("rank 1 failed first\n"), screen
    assert "os._exit(0), and the process group had not ended" in screen and "printing.py" in screen


@needs_mpi
@pytest.mark.slow
def test_a_job_starts_again(tmp_path):
    done = run("-n", "2", "--max-restarts", "2", SCRIPT, "restart", str(tmp_path / "once"), folder=tmp_path)
    assert done.returncode == 0 and done.stderr.count("genesis run: starts again, 1 of 2") == 1


OPEN_MPI = """
import os, subprocess, sys
if sys.argv[1:] == ["--version"]:
    print("mpiexec (Open MPI) 5.0.11")
    sys.exit()
at = sys.argv.index("-n")
assert sys.argv[at - 2 : at] == ["--host", "a,b"] and "--tag-output" in sys.argv
for rank in range(int(sys.argv[at + 1])):
    said = {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": sys.argv[at + 1]}
    done = subprocess.run(sys.argv[at + 2 :], env={**os.environ, **said}, capture_output=True, text=True)
    sys.stdout.write(f"[1,{rank}]<stdout>: {done.stdout}")
print("prterun noticed that process rank 1 with PID 0 on node here exited on\\nsignal 9 (Killed).", file=sys.stderr)
sys.exit(137)
"""


def test_the_launcher_of_open_mpi_is_told_in_its_words(tmp_path, monkeypatch, capfd):
    path, script = tmp_path / "mpiexec", tmp_path / "script.py"
    path.write_text(f"#!{sys.executable}\n{OPEN_MPI}")
    path.chmod(0o755)
    script.write_text("import os\nprint('rank', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'])\n")
    monkeypatch.setattr(installed, "launcher", lambda: str(path))
    job = Job(str(script), [], 2, hosts="a,b", logs=str(tmp_path / "logs"))
    assert launch.launch(job) == 137
    said = capfd.readouterr()
    assert said.out == "[r0] rank 0 of 2\n[r1] rank 1 of 2\n"
    assert (tmp_path / "logs" / "rank1.log").read_text() == "rank 1 of 2\n"
    assert "genesis run: a rank was killed by SIGKILL" in said.err
    assert mpiexec.kind(str(path)) is mpiexec.OPEN_MPI and mpiexec.kind("/no/such/mpiexec") is mpiexec.MPICH
    assert launch.error_of(job._replace(options=("-launcher", "ssh"))) == 2
    assert "start ranks by the launcher of MPICH, and mpiexec is Open MPI's" in capfd.readouterr().err


@needs_mpi
def test_one_rank_has_logs_and_starts_again(tmp_path):
    logs, once = tmp_path / "logs", tmp_path / "once"
    done = run("--max-restarts", "2", "--logs", str(logs), SCRIPT, "restart", str(once), folder=tmp_path)
    assert done.returncode == 0 and done.stderr.count("genesis run: starts again, 1 of 2") == 1
    assert (logs / "rank0.log").read_text().count("rank 0 0 1 0 ['restart'") == 2


@needs_mpi
def test_a_launcher_of_mpi_starts_what_runs_a_script(tmp_path):
    command = [installed.launcher(), "-n", "2", *RUN, SCRIPT, "well"]
    env = {**os.environ, **ALLOWED, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": ""}  # a line is written in one piece
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, env=env)
    assert sorted(done.stdout.splitlines()) == [f"rank {rank} {rank} 2 {rank} ['well']" for rank in range(2)], (
        done.stderr
    )


@needs_mpi
@pytest.mark.parametrize(
    "number",
    [
        signal.SIGINT,
        pytest.param(signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param(signal.SIGKILL, marks=pytest.mark.slow),
    ],
)
def test_an_interrupt_ends_all_ranks(tmp_path, number):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [*RUN, "-n", "2", SCRIPT, "sleeps"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    pids = []
    while len(pids) < 2:
        line = process.stdout.readline()
        assert line, process.stderr.read()
        pids += [int(text) for text in re.findall(r"pid (\d+)", line)]
    process.send_signal(number)
    begin = time.monotonic()
    _, errors = process.communicate(timeout=60)
    if number != signal.SIGKILL:
        assert process.returncode == 130 and "genesis run: interrupted" in errors
    while any(map(_lives, pids)) and time.monotonic() - begin < _GONE:
        time.sleep(0.01)
    assert not any(map(_lives, pids))
    assert list(tmp_path.glob("genesis-run-*")) == []


@needs_mpi
@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_dir(), reason="shared memory has no files here")
def test_no_shared_memory_is_left(tmp_path):
    before = set(SHARED.iterdir())
    for case in ("killed", "exception", "well"):
        run("-n", "2", SCRIPT, case, folder=tmp_path)
    ended, end = time.time(), time.monotonic() + 10
    while (left := unused_memory(before, ended)) and time.monotonic() < end:
        time.sleep(0.1)  # what jobs of other tests made just then is mapped, or gone, soon
    assert left == set()


def _lives(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout.strip()
    return state != "" and not state.startswith("Z")


@needs_mpi
def test_two_jobs_at_once_with_a_port_that_is_taken(tmp_path):
    """Jobs know nothing of each other, and of the port that the environment of torchrun names nothing is opened."""
    with socket.create_server(("localhost", 0)) as taken:
        port = str(taken.getsockname()[1])
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": port}
        command = [*RUN, "-n", "2", SCRIPT, "well"]
        jobs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) for _ in range(2)]
        for job in jobs:
            out, _ = job.communicate(timeout=400)
            assert job.returncode == 0 and sorted(line[:11] for line in out.splitlines()) == [
                "[r0] rank 0",
                "[r1] rank 1",
            ]
        torchrun = environment | {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}
        alone = subprocess.run([sys.executable, SCRIPT, "well"], capture_output=True, text=True, env=torchrun)
        assert alone.stdout == "rank 0 0 1 0 ['well']\n", alone.stderr


@needs_mpi
@pytest.mark.slow
def test_mpi_that_may_use_no_free_port_says_so(tmp_path, monkeypatch):
    if mpiexec.kind(installed.launcher()) is not mpiexec.MPICH:
        pytest.skip("Open MPI listens at no port for ranks of one machine")
    with socket.create_server(("", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setenv("MPIEXEC_PORT_RANGE", f"{port}:{port}")
        done = run("-n", "2", SCRIPT, "well", folder=tmp_path)
    assert done.returncode != 0 and done.stderr.startswith("genesis run: ended with status")
    assert "no port to bind" in done.stderr


def test_no_mpiexec_is_one_line(monkeypatch, capsys):
    monkeypatch.setattr(installed, "from_wheels", lambda *names: None)
    monkeypatch.setattr(installed.shutil, "which", lambda name: None)
    assert cli.main(["run", "-n", "2", SCRIPT]) == 2
    assert capsys.readouterr().err == (
        'genesis run: several processes need mpiexec, and there is none\n  try: pip install "genesis-dl[mpi]"\n'
    )


def test_one_rank_is_the_ordinary_interpreter(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["genesis"])
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    script = tmp_path / "one.py"
    script.write_text("import sys\nprint(sys.argv[1:])")
    monkeypatch.setattr(launch, "launch", lambda job: 1 / 0)
    assert cli.main(["run", "-n", "1", str(script), "a"]) == 0
    assert capsys.readouterr().out == "['a']\n"


def test_what_launchers_that_were_killed_left_is_taken_away(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(leftovers, "_MEMORY", tmp_path)
    monkeypatch.setattr(leftovers, "_TEMPORARY", tmp_path)
    monkeypatch.setattr(leftovers, "_YOUNG", -1)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    used = Path(leftovers.folder_of_a_job())
    assert leftovers.launcher_of(used) == os.getpid()
    others = "genesis-run-of_another_version"
    for name in (used.name.replace(str(os.getpid()), str(gone.pid)), others):
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / "0.doing").write_text("train.py:1")
    told = [f"hydra_hwloc_xmlfile_{name}" for name in ("aaaaaa", "bbbbbb")]
    for name in ("mpich_shm_1_0", "ucx_shm_posix_1", "mine", *told):
        (tmp_path / name).write_text("x" * 100)
    with (
        open(tmp_path / "mpich_shm_1_0", "r+b") as file, mmap.mmap(file.fileno(), 100), open(tmp_path / told[0])
    ):  # fmt: skip
        leftovers.sweep()
        there = sorted(path.name for path in tmp_path.iterdir())
    kept = ["mpich_shm_1_0", told[0]] if Path("/proc/self/maps").exists() else told
    assert there == sorted([used.name, others, "mine", *kept])
    monkeypatch.setattr(leftovers, "_YOUNG", 3600)
    leftovers.sweep()
    assert sorted(path.name for path in tmp_path.iterdir()) == there


def test_a_folder_that_is_written_to_is_taken_away(tmp_path, monkeypatch):
    """A rank that is about to end says what it does, between the removal of the files and that of the folder."""
    folder, files = tmp_path / "job", iter(range(3))
    folder.mkdir()
    rmdir = os.rmdir

    def late(path, **options):
        for number in files:
            (folder / f"{number}.doing").write_text("train.py:1")
            break
        return rmdir(path, **options)

    monkeypatch.setattr(os, "rmdir", late)
    leftovers.remove(folder)
    assert not folder.exists() and list(files) == []


FILES = """
import os
import genesis.distributed as dist
from genesis.distributed.mpi import files_of
dist.init_process_group()
dist.barrier()
print(*[name for name in files_of(os.getppid()) if name.startswith("/") and "hydra" in name])
os._exit(3)
"""


@needs_mpi
@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="no /proc here")
def test_files_of_the_launcher_of_mpi_are_taken_away_when_ranks_have_read_them(tmp_path):
    script = tmp_path / "files.py"
    script.write_text(FILES)
    done = subprocess.run(
        [sys.executable, "-m", "genesis", "run", "-n", "2", str(script)], capture_output=True, text=True
    )
    assert done.returncode == 3, done.stderr
    for line in done.stdout.splitlines():
        for name in line.split("] ")[-1].replace(" (deleted)", "").split():
            assert not os.path.exists(name), done.stdout


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="no /proc here")
def test_processes_have_files_of_any_name(tmp_path):
    name = os.fsencode(tmp_path) + b"/\xff"
    with open(name, "wb+") as file:
        file.truncate(100)
        with mmap.mmap(file.fileno(), 100):
            assert f"{tmp_path}/\ufffd" in leftovers._mapped()
    maps = tmp_path / "maps"
    maps.write_bytes(b"7f00 rw-p /tmp/\xff\n7f10 rw-p /dev/shm/mpich_shm_none_of_these\n")
    mpi._take_names_away(str(maps))


@needs_mpi
@pytest.mark.parametrize("case, status", [("well", 0), pytest.param("exception", 1, marks=pytest.mark.slow)])
def test_the_status_is_that_of_the_job_though_nobody_reads_what_is_said(case, status):
    reads, writes = os.pipe()
    os.close(reads)
    done = subprocess.run([*RUN, "-n", "2", SCRIPT, case], stdout=writes, stderr=writes, timeout=400)
    os.close(writes)
    assert done.returncode == status


def test_what_is_said_of_a_failure_without_a_note():
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "1.doing").write_text("train.py:41")
        killed = "genesis run: rank 1 was killed, last seen at train.py:41"  # and the launcher of MPI said nothing
        assert launch._screen(folder, [], 137, (), ["1"]) == killed
        several = "genesis run: one of the ranks 0, 1 was killed by SIGKILL\nrank 1: last seen at train.py:41"
        assert launch._screen(folder, ["PID 7\n", "signal 9\n"], 137, (), ["0", "1"]) == several
        left = notes.text_of(notes.Note(1, 0.0, "os._exit(0)", "the line that left"))
        Path(folder, "1.json").write_text(left)
        failed = "genesis run: rank 1 failed first\nthe line that left"  # the others were killed because of that
        assert launch._screen(folder, ["PID 7\n", "signal 9\n"], 137, (), ["1"]) == failed
        Path(folder, "1.json").unlink()
        Path(folder, "1.doing").unlink()
        assert launch._screen(folder, ["no host named b\n"], 3) == "genesis run: ended with status 3\nno host named b"
