"""The devices for the tests of this folder: a pretended one, and an emulated GPU."""

from __future__ import annotations

import importlib.util
import warnings
from pathlib import Path

import pytest

from genesis.cuda.kernels.host import HostWarning
from genesis.cuda.runtime.connection import using
from genesis.cuda.runtime.emulated import Emulated

_spec = importlib.util.spec_from_file_location("pretend_device", Path(__file__).parent / "pretend.py")
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)
_module.install()
_GPUS = Emulated(2)


@pytest.fixture(params=["pretend:0", "cuda:0"])
def pretend(request):
    _module.install()
    if request.param == "pretend:0":
        yield request.param
    else:
        with using(_GPUS), warnings.catch_warnings():
            warnings.simplefilter("ignore", HostWarning)
            yield request.param
