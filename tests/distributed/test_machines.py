"""``genesis run --hosts``: two machines with names, addresses and temporary folders of their own, out of this one.

They are namespaces of Linux's network, which only root may make. What starts a process there is a script in ssh's place:
it takes nothing of the environment along.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest
from ranks import JOBS, needs_mpi

_AS_ROOT = sys.platform == "linux" and os.geteuid() == 0 and shutil.which("ip") and shutil.which("unshare")
pytestmark = [needs_mpi, pytest.mark.slow, pytest.mark.skipif(not _AS_ROOT, reason="root makes machines out of one")]
RUN = [sys.executable, "-m", "genesis", "run", "-n", "2", "--hosts", "node-a,node-b"]
SCRIPT = str(JOBS / "printing.py")
AGENT = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
host=$1; shift
exec ip netns exec %s${host#node-} unshare -um sh -c '
    hostname $0 && mount -t tmpfs none %s && exec env -i HOME="$HOME" PATH=/usr/bin:/bin sh -c "$1"' $host "$*"
"""


def _ip(*words: str) -> bool:
    return subprocess.run(["ip", *words], capture_output=True).returncode == 0


@pytest.fixture
def machines(tmp_path):
    """Runs a command where ``node-a`` and ``node-b`` are machines."""
    own = f"gn{os.getpid() % 100000}"
    bridge, net = f"{own}br", f"10.{os.getpid() % 200 + 20}.77"
    made = _ip("link", "add", bridge, "type", "bridge") and _ip("addr", "add", f"{net}.254/24", "dev", bridge)
    made = made and _ip("link", "set", bridge, "up")
    for number, name in enumerate("ab", 1):
        space, outer, inner = f"{own}{name}", f"{own}v{name}", f"{own}e{name}"
        for words in (
            f"netns add {space}", f"link add {outer} type veth peer name {inner}",
            f"link set {outer} master {bridge} up", f"link set {inner} netns {space}",
            f"-n {space} addr add {net}.{number}/24 dev {inner}", f"-n {space} link set {inner} up",
            f"-n {space} link set lo up",
        ):  # fmt: skip
            made = made and _ip(*words.split())
    agent, local = tmp_path / "agent", tmp_path / "local"
    local.mkdir()
    agent.write_text(AGENT % (own, local))
    agent.chmod(0o755)
    environment = {
        **os.environ, "TMPDIR": str(local), "OMP_NUM_THREADS": "1", "MY_SETTING": "a 'b' $c",
        "HYDRA_LAUNCHER": "ssh", "HYDRA_LAUNCHER_EXEC": str(agent), "HYDRA_IFACE": bridge,
        "PRTE_MCA_plm_ssh_agent": str(agent), "PRTE_MCA_prte_if_include": f"{net}.0/24",
    }  # fmt: skip
    try:
        if not made:
            pytest.skip("networks cannot be made here")
        yield lambda *words, **options: subprocess.Popen(
            [*RUN, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, **options
        )
        assert list(local.glob("genesis-run-*")) == []
    finally:
        for name, kind in itertools.product("ab", ("netns", "link")):
            _ip(kind, "del", f"{own}{name}" if kind == "netns" else f"{own}v{name}")
        _ip("link", "del", bridge)


def test_ranks_on_two_machines(machines, tmp_path):
    script = tmp_path / "script.py"
    script.write_text("""
import os, socket, genesis, genesis.distributed as dist
dist.init_process_group()
x = genesis.ones(300_000) * (dist.get_rank() + 1)
dist.all_reduce(x)
print(socket.gethostname(), os.environ["LOCAL_RANK"], os.environ["OMP_NUM_THREADS"], os.environ["MY_SETTING"], x.sum().item())
""")
    out, err = (job := machines(str(script))).communicate(timeout=120)
    assert job.returncode == 0, err
    assert sorted(out.splitlines()) == [f"[r{n}] node-{'ab'[n]} 0 1 a 'b' $c 900000.0" for n in range(2)], err


def test_the_first_failure_on_another_machine_is_the_last_screen(machines):
    _, err = (job := machines(SCRIPT, "exception")).communicate(timeout=120)
    screen = err.partition("genesis run: ")[2]
    assert job.returncode != 0 and screen.startswith("rank 1 failed first\nTraceback (most recent call last):\n"), err
    assert 'raise ValueError("here")\nValueError: here\n' in screen and "genesis note" not in err
    assert re.search(r"^rank 0: .*rank 1: ended by ValueError: here", screen, re.M)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_ranks_of_all_machines(machines, number):
    job = machines(SCRIPT, "sleeps")
    pids = []
    while len(pids) < 2:
        line = job.stdout.readline()
        assert line, job.stderr.read()
        pids += [int(text) for text in re.findall(r"pid (\d+)", line)]
    begin = time.monotonic()
    job.send_signal(number)
    job.communicate(timeout=60)
    while any(map(_lives, pids)) and time.monotonic() - begin < 10:
        time.sleep(0.01)
    assert job.returncode == 130 and not any(map(_lives, pids))


def _lives(pid):
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout.strip()
    return state != "" and not state.startswith("Z")
