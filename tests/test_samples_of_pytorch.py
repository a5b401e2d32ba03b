"""PyTorch's own samples of ops, modules and optimizers (`benchmarks/parity.py`): what agrees with PyTorch goes on to.

`KNOWN` and `OTHERWISE` there have what does not, each with its reason. They may become shorter, never longer.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is the reference here; pip install torch==2.13.0")
pytestmark = [pytest.mark.slow, pytest.mark.parity, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def parity():
    sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
    try:
        import parity
        import parity_modules

        yield parity, parity_modules
    finally:
        sys.path.pop(0)


def check(parity, rows, known):
    """Rows that do not agree are known ones."""
    unknown = {name: row for name, row in rows.items() if row.agreed < row.calls and not known(name)}
    assert not unknown, "\n".join(parity.table(unknown, False))


def test_ops(parity):
    rows = parity[0].compared("", ("float32",), 2)
    check(parity[0], rows, parity[0].known)
    assert len(parity[0].KNOWN) <= 30
    assert sum(row.agreed for row in rows.values()) >= 0.97 * sum(row.calls for row in rows.values()) > 2000


def test_functions_of_networks_in_every_dtype(parity):
    rows = parity[0].compared("nn.functional", parity[0].DTYPES, 4)
    check(parity[0], rows, parity[0].known)
    assert sum(row.calls for row in rows.values()) > 1000


@pytest.mark.parametrize(("what", "calls"), [("modules", 2000), ("optimizers", 400)])
def test_modules_and_optimizers(parity, what, calls):
    rows = getattr(parity[1], what)("", count=8)
    check(parity[0], rows, parity[0].OTHERWISE.get)
    assert sum(row.calls for row in rows.values()) >= calls
