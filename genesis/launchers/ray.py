"""Jobs on the nodes of a Ray cluster: Ray keeps processors for the ranks and starts MPI's process on each node."""

from __future__ import annotations

import importlib
import os
import shlex
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from genesis.base.errors import ArgumentValueError, DistributedError, MissingImport, message
from genesis.cli.jobs import Job
from genesis.cli.launch import launch


def library() -> Any:
    """The module ``ray``.

    Raises:
        ImportError: it is not installed; the message says what to install
    """
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        text = f"the package ray is needed ({error})"
        raise MissingImport(message("ray.run", text, hint='pip install "genesis-dl[ray]"')) from error


def run(
    script: Any, *arguments: Any, ranks: int, resources: Mapping[str, float] | None = None, strategy: str = "PACK",
    seconds: float = 600.0, max_restarts: int = 0, logs: Any = None,
) -> int:  # fmt: skip
    """Run a script in so many ranks on the cluster; returns the exit status, as ``genesis run`` does.

    Where no cluster is joined yet, ``ray.init()`` is called, which finds one or begins one of this machine. The ranks
    have the script and the packages at the same paths on all nodes, and the driver's node can be reached from them.

    Args:
        script, arguments: what is run
        ranks: how many
        resources: what Ray keeps for each, ``{"CPU": 1}`` by default
        strategy: ``"PACK"``, on few nodes, ``"SPREAD"``, on many
        seconds: how long to wait until there is room
        max_restarts, logs: as for ``genesis run``

    Raises:
        ImportError: Ray is not installed
        RuntimeError: there is no room in that time, or no mpiexec
    """
    if ranks < 1:
        raise ArgumentValueError(message("ray.run", f"ranks is {ranks}, expected at least 1"))
    ray = library()
    if not ray.is_initialized():
        ray.init()
    placement = importlib.import_module("ray.util.placement_group")
    kept = placement.placement_group([dict(resources or {"CPU": 1})] * ranks, strategy=strategy)
    try:
        if not kept.wait(seconds):
            text = f"no room for {ranks} ranks within {seconds:.0f} s; the cluster has {ray.cluster_resources()}"
            raise DistributedError(message("ray.run", text, hint="fewer ranks, or smaller resources for each"))
        hosts = ",".join(_hosts(ray, placement.placement_group_table(kept)))
        with tempfile.TemporaryDirectory(prefix="genesis-ray-") as folder:
            options = ("-launcher", "ssh", "-launcher-exec", _starter(folder, ray.get_runtime_context().gcs_address))
            words = [str(each) for each in arguments]
            where = None if logs is None else os.fspath(logs)
            job = Job(os.fspath(script), words, ranks, False, hosts, where, max_restarts, options)
            return launch(job)
    finally:
        placement.remove_placement_group(kept)


def _starter(folder: str, address: str) -> str:
    """The program that MPI's launcher calls in ssh's stead: `ray_node`, which knows the cluster."""
    path = Path(folder, "start")
    command = shlex.join([sys.executable, "-m", "genesis.launchers.ray_node"])
    path.write_text(f'#!/bin/sh\nRAY_ADDRESS={shlex.quote(address)} exec {command} "$@"\n')
    path.chmod(0o700)
    return str(path)


def _hosts(ray: Any, table: Mapping[str, Any]) -> list[str]:
    """``10.0.0.1:2``: each node that has ranks, and how many."""
    addresses = {node["NodeID"]: node["NodeManagerAddress"] for node in ray.nodes()}
    count: dict[str, int] = {}
    for node in table["bundles_to_node_id"].values():
        count[addresses[node]] = count.get(addresses[node], 0) + 1
    return [f"{address}:{number}" for address, number in count.items()]
