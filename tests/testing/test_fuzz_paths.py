"""Random programs give the same results and the same errors on the general path as on the fast one."""

from __future__ import annotations

import pytest

from genesis.base.errors import InplaceError
from genesis.core.call import computing, dispatch, writes
from genesis.core.graph.version import SHARED
from genesis.testing import fuzz_paths


def explain(found):
    return "\n".join(
        f"seed {number} ({family}):\n  fast:    {fast}\n  general: {general}" for number, family, fast, general in found
    )


def test_a_few_hundred_programs():
    found = fuzz_paths.fuzz(400, seed=1_000_000)
    assert not found, explain(found)


@pytest.mark.slow
def test_five_thousand_programs():
    found = fuzz_paths.fuzz(5000)
    assert not found, explain(found)


def test_a_path_that_is_stricter_is_found(monkeypatch):
    right = writes.check_writable

    def stricter(x, name, recording):
        if writes.ACTIVE and x._counter is SHARED:
            raise InplaceError(f"{name}: the memory cannot be written to")
        right(x, name, recording)

    monkeypatch.setattr(writes, "check_writable", stricter)
    assert fuzz_paths.fuzz(300)


def test_a_path_that_computes_something_else_is_found(monkeypatch):
    right = computing.compute
    monkeypatch.setattr(
        dispatch,
        "compute",
        lambda op, arrays: right(op, arrays) * 1.0000001 if op.name == "cumsum" else right(op, arrays),
    )
    assert fuzz_paths.fuzz(300)
