"""The kinds of ops, a file each: what all their ops have in common, and the function that declares one.

=============  ==================================  ==================================================================
kind           declared by                         what follows from it
=============  ==================================  ==================================================================
elementwise    `unary`, `binary`, `elementwise`    broadcasting, forward mode, samples, layouts, a scalar expression
reduction      `reduction`                         ``dim`` and ``keepdim``, the result's shape, samples
view           `view`                              linear; shared memory, strides
contraction    `contraction`                       forward mode; samples are one more batch
indexing       `indexing`                          forward mode, samples, copies of index tensors
random         `random`                            the numbers of samples, what a trace records
composite      `composite`                         everything
the others     `primitive`, with the kind's name   `others`
=============  ==================================  ==================================================================

A kind turns an op's block into a record: it derives the public function, `infer`, the method and its in-place form;
the block itself carries only the mathematics. See `core/call/op.py` for what a block says, `core/call/kind.py` for
what a kind does.
"""

from genesis.core.call.kind import as_it_is
from genesis.core.call.kinds.composite import composite
from genesis.core.call.kinds.contraction import CONTRACTION, contraction, in_front
from genesis.core.call.kinds.declare import Rules, alias, fails, primitive
from genesis.core.call.kinds.elementwise import (
    ELEMENTWISE,
    binary,
    broadcast,
    common_device,
    elementwise,
    result_dtype,
    unary,
)
from genesis.core.call.kinds.indexing import indexing
from genesis.core.call.kinds.others import CONVERSION, OPAQUE, opaque
from genesis.core.call.kinds.random import drawn, random
from genesis.core.call.kinds.reduction import (
    ALL_DIMS,
    REDUCTION,
    check_empty,
    normalize_dim,
    normalize_dims,
    reduced_shape,
    reduction,
    reduction_dtype,
)
from genesis.core.call.kinds.view import view
from genesis.core.call.op import case

__all__ = [
    "ALL_DIMS",
    "CONTRACTION",
    "CONVERSION",
    "ELEMENTWISE",
    "OPAQUE",
    "REDUCTION",
    "Rules",
    "alias",
    "as_it_is",
    "binary",
    "broadcast",
    "case",
    "check_empty",
    "common_device",
    "composite",
    "contraction",
    "drawn",
    "elementwise",
    "fails",
    "in_front",
    "indexing",
    "normalize_dim",
    "normalize_dims",
    "opaque",
    "primitive",
    "random",
    "reduced_shape",
    "reduction",
    "reduction_dtype",
    "result_dtype",
    "unary",
    "view",
]
