"""Valid calls of public callables that are no ops, for the signature fuzzer, and what is done with their results.

`layers` `sequences` `spatial`  of networks    `training`  optimizers, schedules, data    `gradients`  functions of functions
`tensors`                       functions of tensors, settings                           `shared`     what the tables share
"""

from __future__ import annotations

from genesis.testing.calls import gradients, layers, sequences, spatial, tensors, training
from genesis.testing.calls.shared import After, Calls

TABLES = (gradients, layers, sequences, spatial, tensors, training)
CALLS: dict[str, Calls] = {name: calls for table in TABLES for name, calls in table.CALLS.items()}
AFTER: dict[str, After] = {name: after for table in TABLES for name, after in getattr(table, "AFTER", {}).items()}

assert len(CALLS) == sum([len(table.CALLS) for table in TABLES]), "two tables have calls of one name"

__all__ = ["AFTER", "CALLS", "TABLES"]
