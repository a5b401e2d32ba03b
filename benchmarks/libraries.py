"""Libraries written for PyTorch, as they are installed: do their models give what they give with PyTorch?

    pip install --no-deps --target PACKAGES/site-packages torchvision==0.28.0 timm transformers ...
    python benchmarks/libraries.py PACKAGES/site-packages [--only TEXT ...] [--compiled] [--write]

Each file in benchmarks/libraries lists models of one library. They run forward and backward in a process with PyTorch and
in one of `genesis run --torch`, with the same weights and inputs; compared are the mean absolute values of all results and
of the gradient of each parameter. Where float32 differs by more than its roundings, both run again in float64. With --compiled
it is Genesis on both sides, and on one of them each module is called through torch.compile. --write puts the lines of the
libraries that ran into the tables in libraries.md.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tqdm import tqdm

HERE = Path(__file__).resolve().parent
CASES = HERE / "libraries"
PAGE = HERE / "libraries.md"
EQUAL = {"float32": 2e-3, "float64": 1e-6}  # relative; float32 after the layers of a deep model
HEADS = {
    False: ["| library | models | equal | in float64 only | others |", "| --- | ---: | ---: | ---: | --- |"],
    True: ["| library | modules | equal | in float64 only | run as they are | others |",
           "| --- | ---: | ---: | ---: | ---: | --- |"],
}  # fmt: skip
ABOUT = {
    False: "models forward and backward, with the same weights and inputs as with PyTorch; compared are all results and "
    "gradients, of trainers and adapters the weights after some steps.",
    True: "each module forward and backward as it is and through `torch.compile`, its second call. Those that run as they "
    "are say so in a warning; mostly their shapes depend on values, as where a mask is an index.",
}


def ran(packages: str, file: Path, names: list[str], torch: bool, *flags: str) -> dict[str, Any]:
    """What benchmarks/libraries/run.py says of the cases in a file."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "results.json")
        python = [sys.executable] if torch else [sys.executable, "-m", "genesis", "run", "--torch"]
        command = [*python, str(CASES / "run.py"), packages, str(file), str(out), *names, *flags]
        done = subprocess.run(command, capture_output=True, text=True, cwd=HERE.parent)
        if not out.exists():
            raise SystemExit(f"{' '.join(command)}\n{done.stderr[-2000:]}")
        return json.loads(out.read_text())  # type: ignore[no-any-return]


def equal(theirs: dict[str, Any], ours: dict[str, Any], bar: float) -> bool:
    a, b = theirs.get("sizes", []), ours.get("sizes")
    return b is not None and len(a) == len(b) and all(_near(x, y, bar) for x, y in zip(a, b, strict=True))


def _near(x: float, y: float, bar: float) -> bool:
    return abs(x - y) <= bar * max(abs(x), abs(y), 1e-3) or (x != x and y != y)


def compared(packages: str, file: Path, compiled: bool) -> dict[str, str]:
    """For each case a verdict."""
    sides: list[tuple[bool, tuple[str, ...]]] = [(not compiled, ()), (False, ("--compiled",) * compiled)]
    theirs, ours = (ran(packages, file, [], torch, *flags) for torch, flags in sides)
    verdicts = {}
    for name, result in theirs.items():
        if compiled and not result.get("module"):
            verdicts[name] = "not run: no module"
        elif "error" in result:
            verdicts[name] = "not run: " + result["error"]
        elif "error" in ours[name]:
            verdicts[name] = "fails: " + ours[name]["error"]
        elif ours[name]["left"]:
            verdicts[name] = "as it is" if equal(result, ours[name], EQUAL["float32"]) else "differs"
        else:
            verdicts[name] = "equal" if equal(result, ours[name], EQUAL["float32"]) else "differs"
    again = [name for name, verdict in verdicts.items() if verdict == "differs"]
    if again:
        theirs, ours = (ran(packages, file, again, torch, "--double", *flags) for torch, flags in sides)
        for name in again:
            if "error" not in theirs[name] and equal(theirs[name], ours[name], EQUAL["float64"]):
                verdicts[name] = "equal in float64"
    return verdicts


def version(packages: str, name: str) -> str:
    """Of an installed library, by the folder that pip leaves."""
    for folder in Path(packages).glob("*.dist-info"):
        match = re.fullmatch(r"(.+)-([^-]+)\.dist-info", folder.name)
        if match and match[1].replace("_", "-").lower() == name.replace("_", "-").lower():
            return match[2]
    return ""


def rows_of(measured: dict[str, dict[str, str]], packages: str, compiled: bool) -> dict[str, str]:
    """For each library its line of the table."""
    lines = {}
    for library, verdicts in measured.items():
        run = {name: v for name, v in verdicts.items() if not v.startswith("not run")}
        others = [f"{name} {v}" for name, v in run.items() if not v.startswith("equal") and v != "as it is"]
        kinds = ("equal", "equal in float64", "as it is")[: 3 if compiled else 2]
        count = " | ".join([str(sum(v == kind for v in run.values())) for kind in kinds])
        text = "; ".join(others).replace("|", "\\|").replace("\n", " ")
        lines[library] = f"| {library} {version(packages, library)} | {len(run)} | {count} | {text} |"
    return lines


def written(compiled: bool) -> dict[str, str]:
    """The lines of a table as it is."""
    tables = PAGE.read_text().split("## Compiled")
    lines = [line for line in tables[compiled].splitlines() if line.startswith("| ")] if len(tables) > compiled else []
    return {line.split()[1]: line for line in lines[2:]}


def table(lines: dict[str, str], compiled: bool) -> str:
    return "\n".join([*HEADS[compiled], *[lines[library] for library in sorted(lines)]]) + "\n"


def section(lines: dict[str, str], compiled: bool) -> str:
    command = f"python benchmarks/libraries.py PACKAGES{' --compiled' * compiled} --write"
    return f"Written by `{command}`: {ABOUT[compiled]}\n\n{table(lines, compiled)}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("packages")
    parser.add_argument("--only", nargs="*", default=[""])
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    now = options.compiled
    files = [f for f in sorted(CASES.glob("of_*.py")) if any(text in f.stem for text in options.only)]
    measured = {f.stem.removeprefix("of_"): compared(options.packages, f, now) for f in tqdm(files)}
    lines = rows_of(measured, options.packages, now)
    print(table(lines, now))
    if options.write:
        both = {compiled: written(compiled) | (lines if compiled is now else {}) for compiled in (False, True)}
        opening = __doc__.partition("\n\n    pip")[0]
        text = f"# Libraries\n\n{opening}\n\n{section(both[False], False)}"
        PAGE.write_text(text + (f"\n## Compiled\n\n{section(both[True], True)}" if both[True] else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
