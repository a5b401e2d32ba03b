"""Valid calls of layers of signals, images and volumes, for the signature fuzzer; a part of `signature_calls`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import genesis
from genesis.core.call.op import Case, case
from genesis.testing.make import Maker

Calls = Callable[[Maker], list[Case]]
DIMENSIONS = (1, 2, 3)
BORDERS = [
    f"nn.{kind}{n}d"
    for kind in ("CircularPad", "ConstantPad", "ReflectionPad", "ReplicationPad", "ZeroPad")
    for n in DIMENSIONS
]
CONVOLUTIONS = [f"nn.{kind}{n}d" for kind in ("Conv", "ConvTranspose") for n in DIMENSIONS]


def _ran(dimensions: int) -> Callable[[Any, Maker], Any]:
    return lambda module, t: module.to(genesis.float64)(t(1, 2, *[4] * dimensions))


def _border(name: str) -> Calls:
    return lambda t: [case(1, 0.5) if "Constant" in name else case(1)]


AFTER: dict[str, Callable[[Any, Maker], Any]] = {name: _ran(int(name[-2])) for name in (*BORDERS, *CONVOLUTIONS)}
CALLS: dict[str, Calls] = {
    **{name: _border(name) for name in BORDERS},
    **{name: lambda t: [case(2, 3, 2), case(2, 2, 3, 1, 1, groups=2)] for name in CONVOLUTIONS},
}
