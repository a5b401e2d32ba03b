"""Tools that test ops and gradients: `opcheck` checks an op from its record.

`make`     values for samples     `opcheck`     every check of one op     `kernels`     attached kernels against the meaning
`devices`  the memory and the ops of a device
"""

from __future__ import annotations

from genesis.core.call.op import case
from genesis.testing.devices import check_device, check_memory
from genesis.testing.kernels import check_kernel, meanings_only
from genesis.testing.make import Maker
from genesis.testing.opcheck import CHECKS, check_fails, opcheck, samples_of
from genesis.testing.tolerance import assert_close, tolerance

__all__ = [
    "CHECKS",
    "Maker",
    "assert_close",
    "case",
    "check_device",
    "check_fails",
    "check_kernel",
    "check_memory",
    "meanings_only",
    "opcheck",
    "samples_of",
    "tolerance",
]
