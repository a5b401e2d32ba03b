"""Every mode leaves the call path as it found it: what it opened is closed at its end, by an exception, too."""

from __future__ import annotations

import contextlib
import inspect
import sys
import warnings
from contextvars import ContextVar

import pytest

import genesis
from genesis import autograd, ops, testing
from genesis.autograd import forward_ad, graph
from genesis.core.graph import switches
from genesis.testing.signature_calls import public
from genesis.utils.checkpoint import create_selective_checkpoint_contexts, noop_context_fn


def is_as_in(before):
    """Whether the state is what it was; modules that were imported meanwhile have variables that it did not have."""
    *lists, variables = state()
    return [*lists, {name: variables[name] for name in before[-1]}] == before


def state():
    """The switches of the process, and the variables of this thread."""
    variables = {
        variable
        for module in list(sys.modules.values())
        if module.__name__.startswith("genesis")
        for variable in vars(module).values()
        if isinstance(variable, ContextVar)
    }
    lists = [list(getattr(switches, name)) for name in ("ACTIVE", "LEVELS", "ESCAPES", "HISTORY_WATCHES")]
    return [*lists, dict(switches.OVERRIDES), {variable.name: variable.get() for variable in variables}]


@contextlib.contextmanager
def anomaly_switched():
    autograd.set_detect_anomaly(True)
    try:
        yield
    finally:
        autograd.set_detect_anomaly(False)


@contextlib.contextmanager
def grad_switched():
    genesis.set_grad_enabled(False)
    try:
        yield
    finally:
        genesis.set_grad_enabled(True)


@contextlib.contextmanager
def anomaly_quietly():
    with warnings.catch_warnings(action="ignore"), autograd.detect_anomaly():
        yield


MODES = {
    "no_grad": genesis.no_grad,
    "enable_grad": genesis.enable_grad,
    "set_grad_enabled": lambda: genesis.set_grad_enabled(False),
    "set_grad_enabled, twice": grad_switched,
    "inference_mode": genesis.inference_mode,
    "autograd.detect_anomaly": anomaly_quietly,
    "autograd.set_detect_anomaly": lambda: autograd.set_detect_anomaly(True),
    "set_detect_anomaly(False)": lambda: autograd.set_detect_anomaly(False),
    "set_detect_anomaly, twice": anomaly_switched,
    "autograd.profile": autograd.profile,
    "autograd.strong_zero": autograd.strong_zero,
    "GradientTape": genesis.GradientTape,
    "amp.autocast": genesis.autocast,
    "amp.autocast(enabled=False)": lambda: genesis.autocast(enabled=False),
    "nn.allow_loss_broadcast": genesis.nn.allow_loss_broadcast,
    "device": lambda: genesis.device("cpu"),
    "saved_tensors_hooks": lambda: graph.saved_tensors_hooks(lambda t: t, lambda t: t),
    "save_on_cpu": graph.save_on_cpu,
    "disable_saved_tensors_hooks": lambda: graph.disable_saved_tensors_hooks("not here"),
    "every_node": graph.every_node,
    "dual_level": forward_ad.dual_level,
    "meanings_only": testing.meanings_only,
    "selective checkpoint": lambda: create_selective_checkpoint_contexts([genesis.matmul])[0],
    "checkpoint": lambda: noop_context_fn()[0],
    "registered function": lambda: ops.register_function("sin", lambda x: x.cos()),
}
SAME = {"Device": "device", "amp.autocast_mode": "amp.autocast"}


def test_the_table_has_every_public_mode():
    found = {
        path
        for path, call in public()
        if (inspect.isclass(call) and hasattr(call, "__enter__"))
        or inspect.isgeneratorfunction(getattr(call, "__wrapped__", None))
    }
    assert not [
        path
        for path in found
        if SAME.get(path, path).removeprefix("autograd.") not in {name.removeprefix("autograd.") for name in MODES}
    ]


def work(x):
    y = ((x * 2).exp() @ x.T).sum()
    if y.requires_grad:
        y.backward()


@pytest.mark.parametrize("error", [None, ZeroDivisionError, KeyboardInterrupt])
@pytest.mark.parametrize("name", MODES)
def test_a_mode_leaves_nothing_open(name, error):
    before = state()
    with contextlib.suppress(ZeroDivisionError, KeyboardInterrupt), MODES[name]():
        work(genesis.ones(2, 2, requires_grad=True))
        if error is not None:
            raise error
    assert is_as_in(before)


@pytest.mark.parametrize(
    "inner",
    [
        "autograd.set_detect_anomaly",
        "set_detect_anomaly(False)",
        "set_detect_anomaly, twice",
        "autograd.profile",
        "inference_mode",
    ],
)
@pytest.mark.parametrize(
    "outer",
    [
        "autograd.detect_anomaly",
        "set_detect_anomaly, twice",
        "autograd.profile",
        "selective checkpoint",
        "meanings_only",
    ],
)
def test_a_mode_in_another_leaves_what_it_found(outer, inner):
    before = state()
    with MODES[outer]():
        between = state()
        with MODES[inner]():
            work(genesis.ones(2, 2, requires_grad=True))
        if inner != "set_detect_anomaly, twice":
            assert is_as_in(between)
    assert is_as_in(before)


@pytest.mark.parametrize("enabled", [True, False])
def test_a_decorator_leaves_nothing_open(enabled):
    before = state()
    seen = autograd.set_detect_anomaly(enabled)(autograd.is_anomaly_enabled)()
    assert (seen, state()) == (enabled, before)


def test_anomaly_mode_that_is_switched_inside_another_mode_outlives_it():
    before = state()
    with autograd.profile() as profile:
        autograd.set_detect_anomaly(True)
        work(genesis.ones(2, 2, requires_grad=True))
    with pytest.raises(genesis.base.errors.AnomalyError):
        genesis.tensor([-1.0]).sqrt()
    autograd.set_detect_anomaly(False)
    assert [event.phase for event in profile.events if event.name in ("exp", "ExpBackward")] == ["forward", "backward"]
    assert is_as_in(before)
    assert genesis.tensor([-1.0]).sqrt().isnan()


def test_anomaly_mode_that_is_switched_off_inside_another_mode_stays_off():
    autograd.set_detect_anomaly(True)
    with autograd.profile():
        autograd.set_detect_anomaly(False)
        assert genesis.tensor([-1.0]).sqrt().isnan()
    assert not switches.ACTIVE
    assert genesis.tensor([-1.0]).sqrt().isnan()
