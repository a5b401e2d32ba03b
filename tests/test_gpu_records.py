"""The page of times on a GPU says what its records say (`benchmarks/gpu.py`)."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def script():
    spec = importlib.util.spec_from_file_location("gpu_page", BENCHMARKS / "gpu.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_that_of_the_records():
    gpu = script()
    records = [json.loads(file.read_text()) for file in sorted(gpu.RECORDS.glob("*.json"))]
    assert records and gpu.PAGE.read_text() == gpu.page(records)


def test_a_record_has_what_a_run_left(tmp_path):
    """The last run counts; what went wrong is on the page."""
    gpu = script()
    begun = {"versions": {"genesis": "1", "numpy": "2"}, "libraries": {}, "driver": 13000, "commit": "abc", "time": "2026-01-01",
             "device": {"name": "Some GPU"}}  # fmt: skip
    row = {"ms": {"median": 2.0, "least": 1.0, "most": 3.0}, "one behind the other": 1.5, "GB/s": 3900.0}
    for number, each in enumerate([2.5, 1.5]):
        (folder := tmp_path / str(number)).mkdir()
        lines = [("facts", "begun", True, begun), ("benchmark", "add", True, {**row, "one behind the other": each}),
                 ("peers", "add", True, {**row, "one behind the other": 3.0}), ("correctness", "graphs", False, "differs")]  # fmt: skip
        text = "\n".join([json.dumps(dict(part=p, check=c, state="done", ok=ok, said=s)) for p, c, ok, s in lines])
        (folder / "results.jsonl").write_text(text + "\n")
    record = gpu.record_of([tmp_path / "0", tmp_path / "1"])
    assert gpu.name_of(record) == "some_gpu" and record["wrong"] == {"correctness: graphs": "differs"}
    page = gpu.page([record])
    assert "| add | 1.500 | 3,900 GB | 3.000 |  |  | 0.50 | 90% of 4.3 TB/s | met |" in page
    assert "- correctness: graphs: differs" in page
