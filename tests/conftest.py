"""Shared by all tests: one thread for BLAS, one seed, and no errors from leftover state."""

from __future__ import annotations

import gc
import os
import signal

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A shell starts background jobs with SIGINT ignored, and Python leaves it so, here and in the processes that tests
# start.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

import pytest

import genesis
from genesis.core.call import subclasses
from genesis.core.graph import switches


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true", help="run the slow tests, too")


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--slow"):
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.skip(reason="slow: run with --slow"))


def pytest_collection_finish(session):
    """Items that are not run are given back where nobody asks how many these were: a trace looks through all objects there
    are, and of 45,000 items these are a million.
    """
    if hasattr(session.config, "workerinput"):
        session.config.pluginmanager.get_plugin("terminalreporter").stats.pop("deselected", None)


@pytest.fixture(autouse=True)
def _seeded():
    genesis.manual_seed(0)
    assert genesis.is_grad_enabled()
    yield
    assert genesis.is_grad_enabled(), "the test left gradient recording off"
    assert not any((switches.ACTIVE, switches.LEVELS, switches.ESCAPES, switches.OVERRIDES)), (
        "the test left a mode open: all that follows takes the slow path"
    )


@pytest.fixture
def only_new_garbage():
    """`gc.collect` looks for what the test makes only, not through all the items of a run."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def classes_of_its_own():
    """No class says what functions do with its objects but those that the test makes; those of others do again behind it."""
    before = [*subclasses.KINDS]
    subclasses.take_away()
    yield
    subclasses.take_away()
    for cls in before:
        subclasses.add_kind(cls)
