"""All operations, declared one by one.

`arithmetic` `rounding` `choice` `elementwise`   element by element       `matmul`             products
`special` `activation` `compare`
`reduce` `scan` `sort`                           along dimensions         `softmax` `loss`     learning
`shape` `convert` `join` `index` `gather` `mask`  form and place           `norm` `attention` `embedding`
`windows`                                        along a dimension
`create` `random`                                out of nothing           `update`             steps of optimizers
`registration`                                   ops replaced and added by users

``python -m genesis.ops`` prints the matrix of what each op has.
"""

from __future__ import annotations

from genesis.core.call.op import REGISTRY
from genesis.ops import (
    activation,
    attention,
    compare,
    convert,
    create,
    arithmetic,
    choice,
    elementwise,
    rounding,
    embedding,
    gather as _gather,
    index,
    join,
    mask,
    loss,
    loss_classes,
    loss_distances,
    matmul as _matmul,
    norm as _norm,
    random,
    reduce,
    scan,
    shape,
    softmax as _softmax,
    sort as _sort,
    special,
    update,
    windows,
)
from genesis.ops.registration import (
    register_function,
    register_operation,
    registered_functions,
    unregister_function,
    unregister_operation,
)

MODULES = (
    arithmetic,
    choice,
    rounding,
    elementwise,
    special,
    activation,
    compare,
    reduce,
    scan,
    _sort,
    shape,
    convert,
    join,
    index,
    _gather,
    mask,
    create,
    random,
    _matmul,
    _softmax,
    loss,
    loss_classes,
    loss_distances,
    _norm,
    attention,
    embedding,
    update,
    windows,
)

PUBLIC = {name: getattr(module, name) for module in MODULES for name in module.__all__}
FUNCTIONAL = {name: getattr(module, name) for module in MODULES for name in getattr(module, "FUNCTIONAL", ())}
globals().update(PUBLIC)

__all__ = [
    "FUNCTIONAL",
    "MODULES",
    "PUBLIC",
    "REGISTRY",
    "register_function",
    "register_operation",
    "registered_functions",
    "unregister_function",
    "unregister_operation",
    *sorted(PUBLIC),
]
