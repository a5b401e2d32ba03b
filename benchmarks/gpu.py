"""Times of a GPU, as `scripts/gpu/run all` left them, with PyTorch's of the same machine: a record, and the page of it.

    python benchmarks/gpu.py OUT ... --write   OUT are folders of such runs, of one kind of GPU; of what several have, the last
                                               counts. Writes benchmarks/records/NAME.json and benchmarks/gpu.md
    python benchmarks/gpu.py --write           the page again, of the records that are there

Nothing here needs a GPU: what is measured, and how, is in scripts/gpu.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RECORDS, PAGE = HERE / "records", HERE / "gpu.md"
COMPILED = "default", "reduce-overhead"
BANDWIDTH = 4300.0  # GB/s of a copy on an H200, read and written
Row = dict[str, Any]
# what is asked of an H200: a sentence, and whether it holds of Genesis' row, PyTorch's and all rows
Bar = tuple[str, Callable[[Row, Row | None, dict[str, Row]], bool | None]]  # None: PyTorch's row is not there


def share(part: float) -> Bar:
    return f"{part:.0%} of {BANDWIDTH / 1000} TB/s", lambda mine, theirs, rows: mine["GB/s"] >= part * BANDWIDTH


def within(milliseconds: float) -> Bar:
    text = f"{milliseconds:g} ms" if milliseconds >= 1 else f"{1000 * milliseconds:g} us"
    return text, lambda mine, theirs, rows: time_of(mine) <= milliseconds


def rate(least: float) -> Bar:
    return f"{least:g} TFLOP/s", lambda mine, theirs, rows: mine["TFLOP/s"] >= least


def beside(part: float) -> Bar:
    text = f"{part:.0%} of PyTorch's speed"
    return text, lambda mine, theirs, rows: None if theirs is None else time_of(theirs) >= part * time_of(mine)


BARS: dict[str, Bar] = {
    "copy": share(0.9), "add": share(0.9), "gelu": share(0.88), "SwiGLU": share(0.85), "softmax": share(0.85), "layer norm": share(0.85),
    "layer norm, backward": share(0.75), "rms norm": share(0.85), "AdamW": share(0.85),
    "cross entropy, 128256 classes": within(1.9), "cross entropy, 50257 classes": within(1.6),
    "linear and cross entropy": within(48),
    "product": beside(0.97), "product of 4096": beside(0.97), "attention": rate(550), "attention, backward": rate(450),
    "linear and GELU": ("1.03 of the product", lambda mine, theirs, rows: time_of(mine) <= 1.03 * time_of(rows["product"])),
    "MLP 784-256-256-10, 128": within(0.04), "GPT-2 124M, 16 x 1024": within(28), "ResNet-50, 128 images": beside(0.95),
}  # fmt: skip


def time_of(row: Row) -> float:
    """Milliseconds, of calls that do not wait for each other."""
    return float(row["one behind the other"])


# ---- records


def record_of(folders: list[Path]) -> dict[str, Any]:
    """What the runs say."""
    record: dict[str, Any] = {"genesis": {}, "pytorch": {}, "checks": {}, "wrong": {}}
    for folder in folders:
        begun: dict[str, Any] = {}
        for line in (folder / "results.jsonl").read_text().splitlines():
            r = json.loads(line)
            if r["state"] == "not reached" and r["part"] in ("smoke", "correctness"):
                record["not reached"] = record.get("not reached", 0) + 1
            if r["state"] != "done":
                continue
            part, check, said = r["part"], r["check"], r["said"]
            if (part, check) == ("facts", "begun"):
                begun = {k: said[k] for k in ("versions", "libraries", "driver", "commit", "time")}
                record |= {"device": said["device"]["name"], **begun}
            elif not r["ok"]:
                record["wrong"][f"{part}: {check}"] = said
            elif part in ("benchmark", "peers") and isinstance(said, dict) and "ms" in said:
                record["genesis" if part == "benchmark" else "pytorch"][check] = {**said, "commit": begun["commit"]}
            elif check.startswith("clocks"):
                record["clocks"] = said
            elif (part, check) == ("peers", "versions"):
                record["torch"] = said["torch"]
            elif (part, check) == ("smoke", "measured"):
                record["host of an add, us"] = said["eager add, us"]
            elif part == "profile" and isinstance(said, dict) and "busy, us" in said:
                record.setdefault("busy, us", {})[check] = said["busy, us"]
            if part in ("smoke", "correctness"):
                record["checks"][part] = record["checks"].get(part, 0) + 1
    return record


def name_of(record: dict[str, Any]) -> str:
    return re.sub(r"[^a-z0-9]+", "_", record["device"].lower()).strip("_")


# ---- the page


def page(records: list[dict[str, Any]]) -> str:
    head = (
        "# On a GPU\n\nWritten by `python benchmarks/gpu.py --write` from [records](records) of `scripts/gpu/run all`: milliseconds of a"
        " call among calls that do not wait for each other, so of the device where it takes longer than the host; operands in turn, more"
        " than the cache holds. PyTorch does the same work on the same kind of machine. Steps are compiled as a whole by Genesis; of PyTorch's,"
        " the model is compiled. The bars are those of an H200.\n"
    )
    return head + "".join([f"\n{section(record)}" for record in records])


def section(record: dict[str, Any]) -> str:
    mine, theirs = record["genesis"], record["pytorch"]
    versions = ", ".join([f"{k} {v}" for k, v in record["versions"].items() if v and k != "genesis"])
    lines = [
        f"## {record['device']}", "",
        f"{record['time'][:10]}, at {record['commit'][:8]}; {versions}, PyTorch {record.get('torch', 'not there')}; {record.get('clocks', '')}.", "",
        "| what | Genesis | a second | PyTorch | compiled | reduce-overhead | ratio | bar | |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]  # fmt: skip
    older = {name: row["commit"][:8] for name, row in mine.items() if row["commit"] != record["commit"]}
    lines += [line(name, mine, theirs) for name in sorted(mine, key=older.__contains__)]
    if older:
        lines += ["", f"Of another commit: {', '.join([f'{name} ({commit})' for name, commit in older.items()])}."]
    done = ", ".join([f"{count} of {part}" for part, count in record["checks"].items()])
    lines += [
        "",
        f"Compared with the CPU: {done}; {len(record['wrong'])} wrong, {record.get('not reached', 0)} not reached.",
    ]
    lines += [f"- {check}: {said}" for check, said in record["wrong"].items()]
    if "host of an add, us" in record:
        us = record["host of an add, us"]
        lines += [
            "",
            f"An addition of 16 elements costs the host {us:.1f} us (bar: 6 us, {'met' if us <= 6 else 'not met'}).",
        ]
    busy = {step: us / 1000 / time_of(mine[step]) for step, us in record.get("busy, us", {}).items() if step in mine}
    if busy:
        lines += [
            "",
            "The device is busy for " + ", ".join([f"{part:.0%} of {step}" for step, part in busy.items()]) + ".",
        ]
    return "\n".join(lines) + "\n"


def line(name: str, mine: dict[str, Row], theirs: dict[str, Row]) -> str:
    row = mine[name]
    others = [theirs.get(name) or theirs.get(f"{name}, eager"), *[theirs.get(f"{name}, {mode}") for mode in COMPILED]]
    unit = next((u for u in ("GB/s", "TFLOP/s", "items/s") if u in row), "")
    best = min([time_of(x) for x in others if x], default=None)
    ratio = f"{time_of(row) / best:.2f}" if best else ""
    text, holds = BARS.get(name, ("", lambda *_: None))
    verdict = {None: "", True: "met", False: "not met"}[holds(row, others[0], mine)]
    times = " | ".join([f"{time_of(x):.3f}" if x else "" for x in others])
    return f"| {name} | {time_of(row):.3f} | {row[unit]:,.0f} {unit[:-2]} | {times} | {ratio} | {text} | {verdict} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    made = record_of(options.folders) if options.folders else None
    if made is not None and options.write:
        RECORDS.mkdir(exist_ok=True)
        (RECORDS / f"{name_of(made)}.json").write_text(json.dumps(made, indent=1) + "\n")
    records = [json.loads(file.read_text()) for file in sorted(RECORDS.glob("*.json"))]
    text = page(records) if options.write or made is None else page([made])
    print(text)
    if options.write:
        PAGE.write_text(text)


if __name__ == "__main__":
    main()
