"""``python -m genesis.launchers.ray_node [options] node command ...``: what MPI's launcher calls in ssh's stead.

The command runs on that node of the Ray cluster, in a task that takes no processor: those are kept for the ranks.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from genesis.launchers.ray import library


def start(command: str) -> tuple[int, str, str]:
    """Run a command with a shell, as ssh does; returns its status and what it printed."""
    done = subprocess.run(command, shell=True, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def main(argv: Sequence[str]) -> int:
    """Start the command on the node; 255, as ssh has it, where there is no such node."""
    words = list(argv)
    while words and words[0].startswith("-"):  # of ssh
        words.pop(0)
    address, *command = words
    ray: Any = library()
    ray.init(address="auto", logging_level="ERROR", log_to_driver=False)
    node = next((n["NodeID"] for n in ray.nodes() if n["Alive"] and n["NodeManagerAddress"] == address), None)
    if node is None:
        print(f"the Ray cluster has no node {address}", file=sys.stderr)
        return 255
    strategies = importlib.import_module("ray.util.scheduling_strategies")
    there = strategies.NodeAffinitySchedulingStrategy(node_id=node, soft=False)
    task = ray.remote(start).options(num_cpus=0, max_retries=0, scheduling_strategy=there)
    status, out, errors = ray.get(task.remote(" ".join(command)))
    sys.stdout.write(out)
    sys.stderr.write(errors)
    return int(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
