"""Public programs written for PyTorch, run as they are: do they end, and are their losses those of PyTorch?

    python benchmarks/programs.py CHECKOUTS [--only TEXT ...] [--steps 20] [--write]

CHECKOUTS is a folder with one folder for each repository that programs.toml names, called owner+name. Each program runs in a copy, first with
PyTorch, then by `genesis run --torch`, from the same weights and with the same random numbers (see recorder.py), for some steps; of a notebook
(.ipynb) the cells of code. Packages that exist for PyTorch only come from benchmarks/standins. What PyTorch does not run here is left out and
said. --write puts the rows into programs.md.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outlined import outlined
from tqdm import tqdm

HERE = Path(__file__).resolve().parent
RECORDER = HERE / "recorder.py"
PAGE = HERE / "programs.md"
EQUAL = 1e-3  # the largest relative difference of losses that count as equal: float32, after some steps of training


@dataclass
class Program:
    repository: str
    path: str
    arguments: list[str]
    folder: str


@dataclass
class Compared:
    program: Program
    expected: dict[str, Any]
    found: dict[str, Any]
    disturbed: dict[str, Any] | None = None  # what is expected again, where the losses differ

    @property
    def difference(self) -> float:
        return apart(self.expected["losses"], self.found["losses"])

    @property
    def own(self) -> float:
        return apart(self.expected["losses"], self.disturbed["losses"]) if self.disturbed else 0.0


class Result(Compared):
    """A program with PyTorch, and with Genesis."""

    @property
    def verdict(self) -> str:
        if self.expected["error"]:
            return "not run: " + str(self.expected["error"])
        if self.found["error"]:
            return "fails: " + str(self.found["error"])
        if len(self.expected["losses"]) != len(self.found["losses"]):
            return f"fails: {len(self.found['losses'])} losses, {len(self.expected['losses'])} of PyTorch"
        if (
            not self.expected["losses"]
            and apart(numbers(self.expected["printed"]), numbers(self.found["printed"])) > EQUAL
        ):
            return "runs, prints other numbers"
        if self.difference <= EQUAL:
            return "runs"
        return f"runs, {self.own:.1e} disturbed" if self.difference <= 3 * self.own else "differs"


def numbers(printed: str) -> list[float]:
    """The numbers of an output, without addresses and names that end in digits."""
    return [float(n) for n in re.findall(r"(?<![\w.])-?\d+\.?\d*(?:e[+-]?\d+)?(?![\w])", printed)]


def apart(losses: list[float], others: list[float]) -> float:
    """The largest difference of two losses, relative to the largest of the losses up to there."""
    worst, scale = 0.0, 0.0
    for a, b in zip(losses, others, strict=False):
        scale = max(scale, abs(a))
        if a != b and not (a != a and b != b):
            worst = max(worst, abs(a - b) / scale if scale and abs(a - b) < float("inf") else float("inf"))
    return worst


def programs(texts: list[str]) -> Iterator[Program]:
    listed = tomllib.loads((HERE / "programs.toml").read_text())
    for repository, entry in listed.items():
        for line in entry["programs"]:
            path, *arguments = line.split(" ") if ".py " in line else [line]
            if any(text in f"{repository}/{line}" for text in texts):
                yield Program(repository, path, arguments, entry.get("in", str(Path(path).parent)))


def script_of(file: Path) -> Path:
    """The program itself; of a notebook its cells of code as a script beside it, without the lines for the notebook."""
    if file.suffix != ".ipynb":
        return file
    cells = json.loads(file.read_text())["cells"]
    texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    lines = [re.sub(r"^(\s*)[%!].*", r"\1pass", line) for text in texts for line in text.splitlines()]
    script = file.with_suffix(".py")
    script.write_text("\n".join(lines) + "\n")
    return script


@functools.cache
def server(genesis: bool) -> subprocess.Popen[str]:
    """The process of which each program is a fork, one for each framework: importing them takes longer than most programs."""
    start = ["-m", "genesis", "run", str(RECORDER), "--torch"] if genesis else [str(RECORDER)]
    path = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "MPLBACKEND": "Agg", "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-W", "ignore", *start, "serve"]
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def forked(job: dict[str, Any], genesis: bool, seconds: float) -> int | None:
    """The exit status of a job, None if it was not done in time."""
    process = server(genesis)
    assert process.stdin is not None and process.stdout is not None
    print(json.dumps(job), file=process.stdin, flush=True)
    child = int(process.stdout.readline())
    ready, _, _ = select.select([process.stdout], [], [], seconds)
    if not ready:
        os.kill(child, signal.SIGKILL)
    status = int(process.stdout.readline())
    return status if ready else None


def run(
    program: Program,
    checkout: Path,
    weights: Path,
    options: argparse.Namespace,
    genesis: bool,
    disturbed: bool = False,
    compiled: str = "",
) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as top:
        copy, output, printed, said = (Path(top) / name for name in ("copy", "losses.json", "printed", "said"))
        shutil.copytree(checkout, copy)
        file = script_of(copy / program.path)
        if compiled.endswith("steps"):
            file.write_text(outlined(file.read_text()))
        job = {
            "arguments": [str(output), str(weights), str(options.steps), str(file), *program.arguments],
            "environment": {"DISTURBED": "1" if disturbed else "", "COMPILED": compiled},
            "folder": str(copy / program.folder),
            "path": [str(HERE / "standins"), str(HERE.parent), str(copy), str(copy / "src")],
            "printed": str(printed),
            "said": str(said),
        }
        status = forked(job, genesis, options.seconds)
        if status is None:
            return {"losses": [], "error": f"not done after {options.seconds:.0f} s"}
        error, output_text = (each.read_text(errors="replace") for each in (said, printed))
        if output.exists():
            return {**json.loads(output.read_text()), "said": error[-3000:], "printed": output_text}
        last = (error or output_text).strip().splitlines()[-1:]
        return {"losses": [], "error": " ".join(last) or f"exit status {status}", "said": error[-3000:]}


def compared(program: Program, checkout: Path, options: argparse.Namespace) -> Result:
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder) / "weights.npz"
        torch = run(program, checkout, weights, options, genesis=False)
        if torch["error"]:
            return Result(program, torch, {"losses": [], "error": None})
        result = Result(program, torch, run(program, checkout, weights, options, genesis=True))
        if result.verdict == "differs":
            result.disturbed = run(program, checkout, weights, options, genesis=False, disturbed=True)
        return result


def row(result: Result) -> tuple[str, str]:
    """A line of the table, by its first column."""
    name = " ".join([f"{result.program.repository}: {result.program.path}", *result.program.arguments])
    verdict = result.verdict.replace("|", "\\|")
    number = f"{result.difference:.1e}" if result.found["losses"] else ""
    return name, f"| {name} | {len(result.found['losses'])} | {number} | {verdict} |"


def rows_of(page: str) -> dict[str, str]:
    """The lines of a table that was written before."""
    body = page.partition("| --- | ---: | ---: | --- |\n")[2]
    return {line.split(" | ")[0].removeprefix("| "): line for line in body.splitlines()}


def table(rows: dict[str, str], steps: int) -> str:
    verdicts = [line.rsplit(" | ", 1)[1] for line in rows.values()]
    ran = [v for v in verdicts if not v.startswith("not run")]
    good = [v for v in ran if v.startswith("runs") and "other" not in v]
    lines = [
        "# Public programs",
        "",
        f"Written by `python benchmarks/programs.py CHECKOUTS --write`: programs of public repositories, not changed, each for at most {steps} losses,",
        "with PyTorch and with `genesis run --torch` from the same weights and the same random numbers, dropout off. The difference is that of two losses",
        f"relative to the largest loss until then; up to {EQUAL:g} they count as equal. Where they are further apart, PyTorch ran again with each weight",
        "changed in its last bit (disturbed): a program whose losses then differ by at least a third as much amplifies roundings. Of programs without",
        "losses, the numbers that they print are compared. What PyTorch itself does not run is listed and not counted.",
        "",
        f"{len(good)} of {len(ran)} run with equal losses.",
        "",
        "| program | losses | difference | |",
        "| --- | ---: | ---: | --- |",
        *rows.values(),
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", type=Path)
    parser.add_argument(
        "--only", nargs="+", default=[""], help="programs whose repository and path contain one of these"
    )
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=120.0, help="how long a program may run")
    parser.add_argument("--write", action="store_true", help="write the rows into programs.md")
    parser.add_argument("--said", action="store_true", help="print the end of what a failing program said")
    options = parser.parse_args()
    results = []
    for program in tqdm(list(programs(options.only)), disable=not sys.stderr.isatty()):
        checkout = options.checkouts / program.repository.replace("/", "+")
        if not checkout.is_dir():
            print(f"no folder {checkout}", file=sys.stderr)
            continue
        results.append(compared(program, checkout, options))
        print(f"{program.repository}/{program.path}: {results[-1].verdict} {results[-1].difference:.1e}", flush=True)
        if options.said and results[-1].verdict not in ("runs", "differs"):
            print((results[-1].expected if results[-1].expected["error"] else results[-1].found).get("said", ""))
    rows = dict(map(row, results))
    print(table(rows, options.steps))
    if options.write:  # rows of programs that did not run now stay
        PAGE.write_text(table({**(rows_of(PAGE.read_text()) if PAGE.exists() else {}), **rows}, options.steps))
    return 0


if __name__ == "__main__":
    sys.exit(main())
