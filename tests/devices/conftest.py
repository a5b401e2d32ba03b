"""The pretend device, for the tests of this folder."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

_spec = importlib.util.spec_from_file_location("pretend_device", Path(__file__).parent / "pretend.py")
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)
_module.install()


@pytest.fixture
def pretend():
    _module.install()
    return "pretend:0"
