"""What llvmlite brings: training steps with it and without, and what it costs to download and to import.

    python benchmarks/without_llvmlite.py [--rounds 5] [--write]

Each way is a process of its own, with one thread; processor time, the least of some steps, processes in turn. The size of the
download is that of the wheels that pip would fetch here.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from page import write_section

STEPS = 6


def steps() -> dict[str, Callable[[], object]]:
    import busy

    import genesis
    from genesis import nn
    from genesis.nn import functional as F

    blocks = [
        layer
        for a, b in ((3, 32), (32, 32), (32, 64), (64, 64))
        for layer in (nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU())
    ]
    cnn = nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
    x, y = genesis.randn(8, 3, 32, 32), genesis.arange(8)
    return {
        "MLP 784-256-128-10, batch 64": busy.mlp(784, 256, 128, 10, batch=64),
        "GPT, width 128, 4 layers, 8 x 64 letters": busy.gpt(),
        "four convolutions with batch norm, 8 images of 32 x 32": busy.training(
            cnn, lambda: F.cross_entropy(cnn(x), y)
        ),
    }


def one(name: str) -> float:
    """Milliseconds of a step, of processor time."""
    import genesis

    genesis.set_num_threads(1)
    step = steps()[name]
    times = []
    for _ in range(2 + STEPS):
        begun = time.process_time()
        step()
        times.append(time.process_time() - begun)
    return min(times[2:]) * 1e3


def in_a_process(name: str, without: bool) -> float:
    hide = "sys.modules['llvmlite'] = None; " if without else ""
    code = f"import sys; {hide}sys.path.insert(0, {str(Path(__file__).parent)!r}); import without_llvmlite as w; print(w.one({name!r}))"
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return float(run.stdout)


def imported() -> float:
    """Milliseconds of importing llvmlite, of processor time."""
    code = "import time; t = time.process_time(); import llvmlite.binding; print((time.process_time() - t) * 1e3)"
    return statistics.median(
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        for _ in range(5)
    )


def downloads(*packages: str) -> float:
    """Megabytes of the wheels of some packages."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "-d", folder]
        subprocess.run([*command, *packages], check=True, capture_output=True)
        return sum(file.stat().st_size for file in Path(folder).iterdir()) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="put the table into benchmarks/README.md")
    options = parser.parse_args()
    lines = ["| a training step, one thread | with llvmlite | without | ratio |", "| --- | ---: | ---: | ---: |"]
    for name in steps():
        pairs = [(in_a_process(name, False), in_a_process(name, True)) for _ in range(options.rounds)]
        with_it, without = (min(side) for side in zip(*pairs, strict=True))
        lines.append(f"| {name} | {with_it:.1f} ms | {without:.1f} ms | {without / with_it:.2f} |")
    own, others = downloads("llvmlite"), downloads("numpy", "ml_dtypes", "tqdm")
    lines += ["", f"Importing it takes {imported():.0f} ms (when the first kernel is needed), downloading it {own:.0f} MB; "
                  f"all else that Genesis needs is {others:.0f} MB. ({platform.machine()}, Python {platform.python_version()})"]  # fmt: skip
    print("\n".join(lines))
    if options.write:
        write_section(
            "With and without llvmlite",
            "Written by `python benchmarks/without_llvmlite.py --write`.\n\n" + "\n".join(lines),
        )


if __name__ == "__main__":
    main()
