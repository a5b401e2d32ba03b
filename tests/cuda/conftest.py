"""An emulated device for the tests of this folder: two of them, as nothing else has to be installed for that."""

from __future__ import annotations

import pytest

from genesis.cuda.runtime.connection import using
from genesis.cuda.runtime.emulated import Emulated


@pytest.fixture(params=[True, False], ids=["growing", "whole"])
def emulated(request):
    """Emulated devices whose memory is given in pieces of a range of addresses, or in whole segments."""
    with using(Emulated(2, memory=256 << 20, pieces=request.param)) as driver:
        yield driver
