"""PyTorch beside `benchmark.py`: the same workloads, in a process of its own; on the CPU, tiny, without a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from benchmark import rated, timed
from workloads import KERNELS, SIZES, STEPS

MODES = "eager", "default", "reduce-overhead"


def checks() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Kernels, and steps as they are and by ``torch.compile``; nothing where there is no PyTorch."""
    try:
        import torch
    except ImportError:
        return
    tiny = not torch.cuda.is_available()
    where = "cpu" if tiny else "cuda"
    yield "versions", lambda: {"torch": torch.__version__, "tiny": tiny}
    for name, make in KERNELS.items():
        yield name, lambda make=make: rated(torch, *make(torch, SIZES[tiny], where), tiny)
    for mode in MODES[: 1 if tiny else None]:
        for name in STEPS:
            yield f"{name}, {mode}", lambda name=name, mode=mode: of_step(torch, name, mode, tiny, where)


def of_step(torch: Any, name: str, mode: str, tiny: bool, where: str) -> dict[str, Any]:
    step, given, items = STEPS[name](torch, tiny, where)
    if mode != "eager":
        step.model.compile(mode=mode)  # type: ignore[attr-defined]
    times = timed(torch, lambda i: step(*given), tiny)
    return {} if tiny else {**times, "items/s": items / (times["one behind the other"] * 1e-3)}
