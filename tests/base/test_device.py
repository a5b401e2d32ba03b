"""Devices: names, equality, errors."""

from __future__ import annotations

import copy
import pickle

import pytest

from genesis.base.device import CPU, META, as_device, device, require_available
from genesis.cuda.runtime.connection import using


@pytest.mark.parametrize("args, want", [
    (("cpu",), "device(type='cpu')"),
    (("cpu:0",), "device(type='cpu', index=0)"),
    (("meta",), "device(type='meta')"),
    (("cuda", 1), "device(type='cuda', index=1)"),
    (("cuda:12",), "device(type='cuda', index=12)"),
    ((1,), "device(type='cuda', index=1)"),
    ((device("cuda:1"),), "device(type='cuda', index=1)"),
])  # fmt: skip
def test_names(args, want):
    place = device(*args)
    assert repr(place) == want
    assert device(str(place)) == place == pickle.loads(pickle.dumps(place)) == copy.deepcopy(place)


def test_equality_and_hash():
    assert device("cuda", 0) == device("cuda:0") != device("cuda")
    assert len({device("cpu"), CPU, device("meta"), META}) == 2
    assert device("cpu") != "cpu"  # as in PyTorch
    assert as_device("meta") == META
    assert as_device(CPU) is CPU


def test_immutable():
    with pytest.raises(AttributeError, match="immutable"):
        CPU.type = "cuda"


@pytest.mark.parametrize("args, kind, text", [
    (("tpu",), RuntimeError, "device: unknown device 'tpu'\n  try: one of cpu, meta, cuda"),
    (("CPU",), RuntimeError, "unknown device 'CPU'"),
    (("",), RuntimeError, "unknown device ''"),
    (("cuda:",), RuntimeError, "'' in 'cuda:' is not an index"),
    (("cuda:x",), RuntimeError, "'x' in 'cuda:x' is not an index"),
    (("cuda:01",), RuntimeError, "'01' in 'cuda:01' is not an index"),
    (("cuda:\u00b2",), RuntimeError, "is not an index"),
    (("cuda:1", 1), RuntimeError, "'cuda:1' already has an index, 1 was given too"),
    (("cuda", -1), RuntimeError, "the index must not be negative, got -1"),
    (("cuda", 1.0), TypeError, "the index must be an int, got 1.0"),
    ((None,), TypeError, "expected a name such as 'cpu', got None"),
    ((True,), TypeError, "expected a name such as 'cpu', got True"),
])  # fmt: skip
def test_bad_names(args, kind, text):
    with pytest.raises(kind) as error:
        device(*args)
    assert text in str(error.value)


def test_what_is_available():
    require_available(CPU)
    require_available(META)
    require_available(device("cpu:0"))
    with (
        using(None, "the cable is out"),
        pytest.raises(RuntimeError, match="cuda:1 is not available, the cable is out\n  try: device='cpu'"),
    ):
        require_available(device("cuda:1"))
    with pytest.raises(RuntimeError, match="cpu:1 does not exist"):
        require_available(device("cpu:1"))
