"""What each launch of `benchmark.py` takes, as PyTorch's profiler sees it on a GPU: nothing without both.

Beside each kernel of ours stands what it is and how many programs it has, in the order in which they were launched; the
sources are in OUT/sources.json, by the same numbers.
"""

from __future__ import annotations

import cProfile
import functools
import io
import json
import os
import pstats
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from workloads import KERNELS, SIZES, STEPS

import genesis
from genesis import cuda
from genesis.cuda.launch.kernel import Launched
from genesis.cuda.runtime.connection import driver

REPLAYS = 3
CALLS = 250  # calls whose time on the host is taken


class Log:
    """What is launched, in order."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.sources: dict[str, str] = {}
        self.kernels: dict[int, Launched] = {}  # those that were loaded, by the driver's handle
        load, log, answers = Launched._load_now, self, driver()
        launch: Any = answers.launch

        def loaded(self: Any, on: Any, aligned: Any) -> tuple[int, int]:
            function, shared = load(self, on, aligned)
            log.kernels[function] = self
            return function, shared

        def logged(function: int, grid: Any, *rest: Any) -> None:
            kernel = log.kernels.get(function)
            if kernel is not None:
                key = f"{type(kernel).__name__}{hash(kernel.source) & 0xFFFFFF:06x}"
                log.sources[key] = kernel.source
                log.names.append(f"{key} {grid} {kernel.warps}w")
            launch(function, grid, *rest)

        Launched._load_now = loaded  # type: ignore[method-assign]
        answers.launch = logged  # type: ignore[method-assign]


def checks(emulated: bool, out: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Kernels, then steps, then what the host does for a launch and for a step."""
    log = Log()
    for name, make in KERNELS.items():
        yield name, lambda make=make: of_kernel(log, make(genesis, SIZES[emulated], "cuda")[0])
    for name, made in STEPS.items():
        yield name, lambda made=made: of_step(log, compiled(made, emulated), out)
    yield "sources", lambda: (out / "sources.json").write_text(json.dumps(log.sources))
    x = genesis.ones(16, device="cuda")
    yield "host, add", lambda: of_host(lambda: x + x, emulated)
    yield (
        "host, MLP's step",
        lambda: of_host(functools.partial(compiled(STEPS["MLP 784-256-256-10, 128"], emulated), 0), emulated),
    )


def compiled(made: Callable[..., Any], emulated: bool) -> Callable[[int], Any]:
    step, given, _ = made(genesis, emulated, "cuda")
    run = genesis.compile(step)
    return lambda i: run(*given)


def of_kernel(log: Log, run: Callable[[int], Any]) -> list[Any]:
    for i in range(2):
        run(i)
    log.names.clear()
    return matched(traced(lambda: [run(i) for i in range(REPLAYS)]), log.names)


def of_step(log: Log, run: Callable[[int], Any], out: Path) -> Any:
    """The launches of one call; the first call is no graph, the second records it."""
    run(0)
    log.names.clear()
    run(1)
    names = list(log.names)
    run(2)
    seen = traced(lambda: [run(i) for i in range(REPLAYS)])
    one = seen[-len(seen) // REPLAYS :]
    whole = one[-1]["ts"] + one[-1]["dur"] - one[0]["ts"] if one else 0.0
    return {"whole, us": whole, "busy, us": sum([e["dur"] for e in one]), "launches": matched(one, names)}


def traced(work: Callable[[], Any]) -> list[dict[str, Any]]:
    """What the device did, in order."""
    try:
        import torch
        from torch.profiler import ProfilerActivity, profile
    except ImportError:
        torch = None
    if torch is None or not torch.cuda.is_available():
        work()
        return []
    torch.cuda.init()
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        work()
        cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(file))
        events = json.loads(file.read_text())["traceEvents"]
    of_device = [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    return sorted(of_device, key=lambda e: float(e["ts"]))


def matched(events: list[dict[str, Any]], names: list[str]) -> list[Any]:
    """Microseconds, name, programs, threads, registers and shared memory of each; kernels of ours by their numbers in the log."""
    mine, out = iter(names), []
    for e in events:
        about = e.get("args", {})
        name = e["name"] if e["name"].lower() != "kernel" else next(mine, "kernel")
        out.append([round(e["dur"], 2), name[:90], about.get("grid"), about.get("block", [0])[0],
                    about.get("registers per thread"), about.get("shared memory")])  # fmt: skip
    return out


def of_host(call: Callable[[], Any], emulated: bool) -> dict[str, Any]:
    """Microseconds of the host for a call, with a queue that is never full, and the functions that take most."""
    calls = 1 if emulated else CALLS
    for _ in range(3 if emulated else 20):
        call()
    cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(calls):
        call()
    plain = (time.perf_counter() - begin) / (calls) * 1e6
    cuda.synchronize()
    profiler, text = cProfile.Profile(), io.StringIO()
    with profiler:
        for _ in range(calls):
            call()
    cuda.synchronize()
    pstats.Stats(profiler, stream=text).sort_stats("tottime").print_stats(28)
    root = os.path.dirname(os.path.dirname(genesis.__file__))
    lines = [line.replace(root, "") for line in text.getvalue().splitlines() if line.strip()]
    return {"us": plain, "functions": lines[3:]}
