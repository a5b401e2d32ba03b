"""Shared by all tests: one thread for BLAS, one seed, and no errors from leftover state."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest

import genesis


@pytest.fixture(autouse=True)
def _seeded():
    genesis.manual_seed(0)
    assert genesis.is_grad_enabled()
    yield
    assert genesis.is_grad_enabled(), "the test left gradient recording off"
