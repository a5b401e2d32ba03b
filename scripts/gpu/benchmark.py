"""Call C of `scripts/gpu/run`: times by events of the device, medians with their spread, of tensors larger than its cache.

ms                    of one call, from the host's beginning to the device's end
one behind the other  of calls that do not wait for each other: of the device, where it takes longer than the host
GB/s, TFLOP/s, items/s   by the second
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

from workloads import KERNELS, ROTATED, SIZES, STEPS

ROUNDS = 20
LEAST, MOST = 50.0, 400  # milliseconds of calls that do not wait, beside which the way of the first is little; calls


def checks(emulated: bool) -> Iterator[tuple[str, Callable[[], Any]]]:
    """All that is measured, each with its own tensors. On the emulated device sizes are tiny, and no times are kept."""
    import genesis

    yield "clocks", clocks
    for name, make in KERNELS.items():
        yield name, lambda make=make: rated(genesis, *make(genesis, SIZES[emulated], "cuda"), emulated)
    for name, made in STEPS.items():
        yield name, lambda made=made: of_step(*made(genesis, emulated, "cuda"), emulated)
    yield "clocks behind", clocks


def rated(t: Any, run: Callable[[int], Any], amount: float, unit: str, tiny: bool) -> dict[str, Any]:
    """A kernel's times, and how much it does in a second; nothing of tiny ones."""
    times = timed(t, run, tiny)
    return {} if tiny else {**times, unit: amount / (times["one behind the other"] * 1e-3)}


def of_step(step: Callable[..., Any], given: tuple[Any, ...], items: int, emulated: bool) -> dict[str, Any]:
    """A compiled step's times."""
    import genesis

    run = genesis.compile(step)
    times = timed(genesis, lambda i: run(*given), emulated)
    return {} if emulated else {**times, "items/s": items / (times["one behind the other"] * 1e-3)}


def timed(t: Any, run: Callable[[int], Any], tiny: bool) -> dict[str, Any]:
    """Milliseconds of a call, by events around it: the median, the least and the most; then of calls without a wait."""
    for i in range(ROTATED):
        run(i)
    if tiny:
        return {}
    t.cuda.synchronize()
    times = []
    for i in range(ROUNDS):
        begin, end = (t.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        run(i % ROTATED)
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    rounds = max(ROUNDS, min(int(LEAST / median(times)), MOST))
    begun = time.perf_counter()
    for i in range(rounds):
        run(i % ROTATED)
    t.cuda.synchronize()
    each = (time.perf_counter() - begun) / rounds * 1e3
    return {"ms": {"median": median(times), "least": min(times), "most": max(times)}, "one behind the other": each}


def benchmark(tried: Callable[..., dict[str, Any]], budget: float, emulated: bool) -> dict[str, Any]:
    """All that the budget, in seconds, has time for."""
    begun, left, results = time.monotonic(), list[str](), dict[str, Any]()
    for name, check in checks(emulated):
        if time.monotonic() - begun > budget:
            left.append(name)
        else:
            results[name] = tried(check)
    return {"checks": results, "not reached": left, "seconds": round(time.monotonic() - begun, 1)}


def clocks() -> str:
    """What `nvidia-smi` says of the device; empty without it."""
    asked = "name,driver_version,clocks.sm,clocks.mem,temperature.gpu,power.draw"
    try:
        done = subprocess.run(["nvidia-smi", f"--query-gpu={asked}", "--format=csv,noheader"], capture_output=True, text=True, timeout=20, check=False)  # fmt: skip
    except OSError:
        return ""
    return done.stdout.strip()
