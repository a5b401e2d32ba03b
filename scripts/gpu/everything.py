"""`scripts/gpu/run all`: every part in processes of its own, whose results are on the disk as they come.

A check that hangs, ends its process or leaves the device in an error that does not pass is written down as wrong, and the
next process goes on behind it. Timings have the machine for themselves; what is compared with the CPU runs in several
processes at once. Nothing is begun behind the budget.

    OUT/results.jsonl   a line for each check: part, check, ok, what was said, seconds
    OUT/summary.json    what was wrong, hung, or not reached; versions
    OUT/log.txt         what the processes printed
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# packages of which a machine's own are used where it has them, by what is imported
OWN = {"cuda_bindings": "cuda.bindings", "ml_dtypes": "ml_dtypes", "tqdm": "tqdm"}
Check = tuple[str, Callable[[], Any]]
RUN = Path(__file__).resolve().parent / "run"
ROOT = RUN.parents[2]
STICKY = 3  # the exit status of a process whose device is of no further use
PATIENCE = {"facts": 60.0, "peers": 150.0}  # seconds that one check may take
OTHERWISE = 75.0
# parts in their order, in how many processes, and until which part of the budget they may begin a check
PARTS = {
    "facts": (1, 0.1),
    "smoke": (1, 0.25),
    "benchmark": (1, 0.5),
    "profile": (1, 0.6),
    "peers": (1, 0.75),
    "correctness": (10, 1.0),
}


class Lines:
    """Results, a line each; several processes append to the same file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, **record: Any) -> None:
        line = (json.dumps(record, default=str) + "\n").encode()
        with open(self.path, "ab", buffering=0) as file:
            file.write(line)

    def all(self) -> list[dict[str, Any]]:
        out = []
        for line in self.path.read_text().splitlines() if self.path.exists() else ():
            try:
                out.append(json.loads(line))
            except ValueError:  # a process ended while it wrote
                continue
        return out


# ---- one process


def part(name: str, checks: Iterator[Check], out: Path, until: float, share: tuple[int, int]) -> int:
    """Do the checks of a part that no process has begun yet; of these every ``share[1]``-th."""
    lines = Lines(out / "results.jsonl")
    begun = {r["check"] for r in lines.all() if r["part"] == name}
    for number, (check, work) in enumerate(checks):
        if number % share[1] != share[0] or check in begun:
            continue
        if time.time() > until:
            lines.add(part=name, check=check, state="not reached")
            continue
        lines.add(part=name, check=check, state="begun", process=share[0], at=time.time())
        begin = time.time()
        ok, said, sticky = outcome(work)
        took = round(time.time() - begin, 2)
        lines.add(part=name, check=check, state="done", process=share[0], ok=ok, said=said, seconds=took)
        if sticky:
            return STICKY
    return 0


def outcome(work: Callable[[], Any]) -> tuple[bool, Any, bool]:
    """Whether a check passes, what it says, and whether the device is of no further use."""
    try:
        return True, work(), False
    except Exception as error:
        sticky = any([each.__name__ == "StickyError" for each in type(error).__mro__])
        return False, f"{type(error).__name__}: {error}"[:600], sticky


# ---- all of them


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="scripts/gpu/run all", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", ".")))
    parser.add_argument("--budget", type=float, default=480.0, help="seconds, after which nothing is begun")
    parser.add_argument("--carried", type=Path, default=Path(".gpu"), help="wheels and machine code")
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=list(PARTS))
    options = parser.parse_args(arguments)
    return everything(options.out, options.budget, options.carried, options.parts)


def everything(out: Path, budget: float, carried: Path, parts: list[str]) -> int:
    """All parts within so many seconds; 1 if something was wrong."""
    begun = time.time()
    out.mkdir(parents=True, exist_ok=True)
    lines = Lines(out / "results.jsonl")
    lines.path.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as scratch, open(out / "log.txt", "ab") as log:
        environment = prepared(Path(scratch), carried, lines)
        for name in parts:
            count, fraction = PARTS[name]
            watched = [
                threading.Thread(
                    target=watch, args=(name, (i, count), out, begun + budget * fraction, environment, log)
                )
                for i in range(count)
            ]
            for thread in watched:
                thread.start()
            for thread in watched:
                thread.join()
            if any([r["check"] == "machine code" and r.get("ok") is False for r in lines.all()]):
                environment |= without_carried(Path(scratch))
    return summary(out, lines, time.time() - begun)


def prepared(scratch: Path, carried: Path, lines: Lines) -> dict[str, str]:
    """What was carried, where processes find it: packages, and machine code in a folder that is ours alone."""
    environment, site, kept = dict(os.environ), scratch / "site", scratch / "cache"
    kept.mkdir(mode=0o700)
    cubins = sorted(carried.glob("*.cubin"))
    wheels = [wheel for wheel in sorted(carried.glob("*.whl")) if not is_there(wheel)]
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as file:
            file.extractall(site)
    for cubin in cubins:
        shutil.copyfile(cubin, kept / cubin.name)
        (kept / cubin.name).chmod(0o600)
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), str(site), environment.get("PYTHONPATH")]))
    environment |= {"GENESIS_CACHE_DIR": str(kept), "PYTHONUNBUFFERED": "1", "GENESIS_GPU_SEED": str(time.time_ns())}
    environment |= {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}  # several processes compare at once
    compiler = carried / "triton.txt"
    if cubins and compiler.exists():
        environment["GENESIS_CUDA_TRITON"] = compiler.read_text().strip()
    if (carried / "commit.txt").exists():
        environment["GENESIS_GPU_COMMIT"] = (carried / "commit.txt").read_text().strip()
    said = {"wheels": [w.name for w in wheels], "cubins": len(cubins)}
    lines.add(part="facts", check="carried", state="done", ok=True, said=said)
    return environment


def is_there(wheel: Path) -> bool:
    """Whether the machine has the package of a wheel, which is used then."""
    name = OWN.get(wheel.name.partition("-")[0])
    try:
        return name is not None and importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # not even the package that it would be in
        return False


def without_carried(scratch: Path) -> dict[str, str]:
    """Machine code is compiled where it runs."""
    kept = scratch / "compiled here"
    kept.mkdir(mode=0o700, exist_ok=True)
    return {"GENESIS_CACHE_DIR": str(kept), "GENESIS_CUDA_TRITON": ""}


def watch(name: str, share: tuple[int, int], out: Path, until: float, environment: dict[str, str], log: Any) -> None:
    """A share of a part, in one process after the other, until its checks are done or the time is."""
    command = [sys.executable, str(RUN), "part", name, "--out", str(out), "--until", str(until)]
    command += ["--share", f"{share[0]}/{share[1]}"]
    lines = Lines(out / "results.jsonl")
    while True:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        status = ended(process, name, share[0], lines)
        last = unfinished(lines, name, share[0])
        if last is not None:
            why = "it took too long" if status is None else f"its process ended with {status}"
            lines.add(part=name, check=last["check"], state="done", ok=False, said=why, process=share[0])
        elif status not in (0, STICKY):
            said = f"ended with {status}, see log.txt"
            lines.add(part=name, check=f"process {share[0]}", state="done", ok=False, said=said)
            return
        if status == 0:
            return


def ended(process: Any, name: str, number: int, lines: Lines) -> int | None:
    """The exit status of a process; None of one that was ended because a check took too long."""
    started = time.time()
    while process.poll() is None:
        time.sleep(0.1)
        last = unfinished(lines, name, number)
        if time.time() - (last["at"] if last else max(started, newest(lines, name))) > PATIENCE.get(name, OTHERWISE):
            process.kill()
            process.wait()
            return None
    return int(process.returncode)


def unfinished(lines: Lines, name: str, number: int) -> dict[str, Any] | None:
    """The check that a process has begun and not ended."""
    mine = [r for r in lines.all() if r["part"] == name and r.get("process") == number]
    done = {r["check"] for r in mine if r["state"] == "done"}
    return next((r for r in reversed(mine) if r["state"] == "begun" and r["check"] not in done), None)


def newest(lines: Lines, name: str) -> float:
    """When a check of a part was begun last."""
    return max([r["at"] for r in lines.all() if r["part"] == name and "at" in r], default=0.0)


def cut(log: Path, most: int = 4 << 20) -> None:
    """Keep the beginning and the end of what was printed: more is not always taken back from a machine."""
    if log.exists() and log.stat().st_size > most:
        text = log.read_bytes()
        log.write_bytes(text[: most // 2] + b"\n[...]\n" + text[-most // 2 :])


def summary(out: Path, lines: Lines, seconds: float) -> int:
    """Say, and write, how it went."""
    records = lines.all()
    done = [r for r in records if r["state"] == "done"]
    wrong = [{k: r[k] for k in ("part", "check", "said")} for r in done if not r["ok"]]
    left = sorted({f"{r['part']}: {r['check']}" for r in records if r["state"] == "not reached"})
    cut(out / "log.txt")
    told = {"checks": len(done), "wrong": wrong, "not reached": left, "seconds": round(seconds, 1)}
    (out / "summary.json").write_text(json.dumps(told, indent=1))
    print(f"{len(done)} checks, {len(wrong)} wrong, {len(left)} not reached, {seconds:.0f} s; {out / 'summary.json'}")
    for each in wrong[:20]:
        print(f"  {each['part']}, {each['check']}: {str(each['said'])[:160]}")
    return 1 if wrong else 0
