"""The page of what agrees with PyTorch: benchmarks/parity.md, of the rows of `parity` and `parity_modules`."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import parity
import torch
from parity import Row

HEAD = """# Parity with PyTorch

Written by `python benchmarks/parity.py --write`: PyTorch's own sample inputs (its databases `OpInfo`, `ModuleInfo` and
`OptimizerInfo`, which come with the wheel) in Genesis and PyTorch. A call agrees where values, dtypes, shapes and gradients do; the
heads of `parity.py` and `parity_modules.py` say how they are compared, and what a result leaves open. Of each op up to {samples}
samples a dtype ({dtypes}); of modules all samples, in training and evaluation, and how they print; of optimizers ten steps of all
samples, one tensor at a time, with `foreach` and with `fused`.

Python {python}, NumPy {numpy}, PyTorch {torch}, {machine}.
"""
WAYS = {"": "functions", "method": "methods", "in place": "in-place forms", "out=": "with `out=`", "printed": "printed"}


def way_of(name: str) -> str:
    found = re.search(r" \((.+)\)$", name)
    return found.group(1) if found else ""


def family_of(kind: str, name: str) -> str:
    """The module that an op is a function of, and the ways other than the function."""
    if kind != "ops":
        return kind
    if way_of(name):
        return f"ops: {WAYS[way_of(name)]}"
    chapter = next((m for m in parity.MODULES if name.startswith(m + ".")), "")
    return f"functions of `torch{'.' * bool(chapter)}{chapter}`"


def counted(rows: Iterable[Row]) -> tuple[int, int, int, int]:
    """Rows, those that agree in all, calls, and those that agree."""
    rows = list(rows)
    whole = sum(row.agreed == row.calls for row in rows)
    return len(rows), whole, sum(row.calls for row in rows), sum(row.agreed for row in rows)


def line(what: str, rows: Iterable[Row]) -> str:
    names, whole, calls, agreed = counted(rows)
    return f"| {what} | {names} | {whole} | {calls} | {agreed} | {100 * agreed / max(calls, 1):.1f}% |"


def families(kinds: dict[str, dict[str, Row]]) -> Iterator[str]:
    """A table: a line for each family, and one for each kind."""
    yield "| family | names | agree in all | calls | agree | |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for kind, rows in kinds.items():
        parts: dict[str, list[Row]] = {}
        for name, row in rows.items():
            parts.setdefault(family_of(kind, name), []).append(row)
        if len(parts) > 1:
            yield from (line(part, parts[part]) for part in sorted(parts, key=lambda p: -len(parts[p])))
        yield line(f"**{kind}**", rows.values())


def others(kinds: dict[str, dict[str, Row]]) -> Iterator[str]:
    """A table of what does not agree, most calls first."""
    yield "| name | calls | that agree | why not | for instance |"
    yield "| --- | ---: | ---: | --- | --- |"
    rows = [(name, row) for part in kinds.values() for name, row in part.items() if row.agreed < row.calls]
    for name, row in sorted(rows, key=lambda item: (item[1].agreed - item[1].calls, item[0])):
        why = parity.known(name) or "not known: " + "; ".join(text for text, _ in row.reasons.most_common(2))
        example = next(iter(row.examples.values()), "").replace("|", "\\|")
        yield f"| `{name}` | {row.calls} | {row.agreed} | {why} | {f'`{example}`' if example else ''} |"


def page(kinds: dict[str, dict[str, Row]], samples: int, dtypes: Iterable[str]) -> str:
    """The whole page."""
    versions: dict[str, Any] = {
        "python": platform.python_version(), "numpy": np.__version__, "torch": torch.__version__,
        "machine": platform.machine(), "samples": samples, "dtypes": ", ".join(dtypes),
    }  # fmt: skip
    every = {f"{kind} {name}": row for kind, rows in kinds.items() for name, row in rows.items()}
    names, whole, calls, agreed = counted(every.values())
    total = (
        f"{agreed} of {calls} calls agree ({100 * agreed / calls:.1f}%), {whole} of {names} names in all their calls."
    )
    return "\n".join([
        HEAD.format(**versions), total, "", *families(kinds), "", "## What does not agree", "",
        "These do not, and why; a test lets the list become shorter, not longer.", "", *others(kinds), "",
    ])  # fmt: skip


def write(kinds: dict[str, dict[str, Row]], samples: int, dtypes: Iterable[str]) -> None:
    Path(__file__).with_name("parity.md").write_text(page(kinds, samples, dtypes), encoding="utf-8")
