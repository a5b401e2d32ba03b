"""What it costs that every node knows its line of the program: the overhead benchmark, against a copy of the package
without that.

    python benchmarks/provenance.py [--write]

The copy is made by taking the recording of sites, of cuts and of backwards out of the source; both packages are timed
in turn, in processes of their own. With --write the table is added to benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from page import write_section

ROOT = Path(__file__).parent.parent
ROUNDS = 7
RUN = """
import json, sys, time
sys.path.insert(0, {root!r}); sys.path.insert(0, {benchmarks!r})
import genesis, overhead
times = {{}}
for name, _, make, number in overhead.CASES:
    f = make(genesis)
    for _ in range(max(5, number // 5)):
        f()
    rounds = []
    for _ in range(5):
        begun = time.perf_counter()
        for _ in range(number):
            f()
        rounds.append((time.perf_counter() - begun) / number)
    times[name] = min(rounds)
print(json.dumps(times))
"""


def stripped(target: Path) -> None:
    """A copy of the package that records no lines."""
    shutil.copytree(ROOT / "genesis", target / "genesis", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("call/dispatch", "functions/function"):
        path = target / "genesis" / "core" / f"{name}.py"
        text = path.read_text()
        inline = re.compile(
            r"( +)frame = _frame\(1\)\n +(\w+)\._code = code = frame\.f_code\n +\w+\._at = frame\.f_lasti\n"
            r"( +if code is not users:\n)? +if LIBRARY\[code\.co_filename\]:\n +\w+\._code, \w+\._at = "
            r"user_site\(frame\.f_back\)\n"
            r"( +else:\n +users = code\n)?"
        )
        text, count = inline.subn(r"\1\2._code, \2._at = None, -1\n", text)
        text, more = re.subn(r"user_site\(_frame\(\d\)\)", "(None, -1)", text)
        assert count and more, f"{name}.py has no recording of sites where it was"
        path.write_text(text)
    engine = target / "genesis" / "core" / "graph" / "engine.py"
    text = engine.read_text()
    assert "number_of_run(sys._getframe(2))" in text
    engine.write_text(text.replace("number_of_run(sys._getframe(2))", "-1"))


def times(root: Path) -> dict[str, float]:
    code = RUN.format(root=str(root), benchmarks=str(ROOT / "benchmarks"))
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(root)}
    return dict(
        json.loads(
            subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment, cwd=root
            ).stdout
        )
    )


def table() -> str:
    with tempfile.TemporaryDirectory() as folder:
        bare = Path(folder)
        stripped(bare)
        pairs = [(times(ROOT), times(bare)) for _ in range(ROUNDS)]
    rows = ["| what | with lines | without | more |", "| --- | ---: | ---: | ---: |"]
    ratios = []
    for name in pairs[0][0]:
        a, b = (statistics.median(p[i][name] for p in pairs) * 1e6 for i in (0, 1))
        ratio = statistics.median(p[0][name] / p[1][name] for p in pairs)
        ratios.append(ratio)
        rows.append(f"| {name} | {a:.2f} us | {b:.2f} us | {ratio - 1:+.1%} |")
    mean = statistics.geometric_mean(ratios)
    rows.append(f"| all (geometric mean) | | | {mean - 1:+.1%} |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="add the table to benchmarks/README.md")
    options = parser.parse_args()
    text = table()
    print(text)
    if options.write:
        write_section(
            "What it costs that every node knows its line",
            "Written by `python benchmarks/provenance.py --write`.\n\n" + text,
        )


if __name__ == "__main__":
    main()
