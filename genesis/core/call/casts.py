"""Casts of arguments under autocast: which precision an op computes in, read by the call path
(`core/call/operands.py`).

Every op has a policy in its record: "low" (products: computed in the low precision), "float32" (losses: computed in
float32), "promote" (everything else: as it comes, the widest operand wins). PyTorch's lists for the CPU and for GPUs are not
the same: "float32:gpu" (exp, sums, norms of rows) and "float32:cpu" (pooling of volumes) hold for one of the two. A composite
of products that is in neither list is "own" (the product of two vectors): autocast is off inside. Casts are ordinary
recorded conversions, so gradients arrive in the dtype of the tensors they belong to. float64 and integer tensors are left
alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.base import dtypes
from genesis.core.call.halves import F32, HALVES
from genesis.core.call.op import Op
from genesis.core.graph import autocast
from genesis.core.graph.autocast import Autocast
from genesis.core.graph.modes import grad_mode
from genesis.core.graph.tensor import Tensor


def policy_in(mode: Autocast, policies: str) -> str:
    """Which of the policies of an op holds in a region."""
    for each in policies.split():
        policy, _, where = each.partition(":")
        if not where or (where == "cpu") == (mode.device == "cpu"):
            return policy
    return "promote"


def as_autocast(policies: str, *args: Any) -> tuple[Any, ...]:
    """Arguments in the precision that autocast gives an op with these policies, where it is on."""
    mode = autocast.state()
    return args if mode is None else cast_for(policy_in(mode, policies), args, mode)


def on_its_own(op: Op) -> bool:
    """Whether a region is open in which autocast is off inside of a composite."""
    mode = autocast.state()
    return mode is not None and policy_in(mode, op.autocast) == "own"


def cast_for(policy: Any, args: Sequence[Any], mode: Autocast) -> tuple[Any, ...]:
    """Arguments as an op's policy wants them; tensors in lists, too."""
    dtype = mode.dtype if policy == "low" else F32 if policy == "float32" else None
    if policy == "promote":
        floating = [t._array.dtype for t in args if isinstance(t, Tensor) and t.dtype.is_floating_point]
        dtype = dtypes.result_np_dtype([np.empty(1, d) for d in floating]) if floating else None
    elif not isinstance(policy, str):
        dtype = dtypes.as_np(policy)
    if dtype is None:
        return tuple(args)
    return tuple([_cast(a, dtype, mode) for a in args])


def _cast(a: Any, dtype: np.dtype[Any], mode: Autocast) -> Any:
    if isinstance(a, Tensor):
        mine = a._array.dtype
        if (
            mine == dtype
            or not (mine == F32 or mine in HALVES)
            or (
                (a._array.__class__ is not np.ndarray or mode.device != "cpu")
                and a.device.type not in (mode.device, "meta")
            )
        ):
            return a
        if mode.cache is not None and a._node is not None and a._node.is_leaf and mine == F32:
            key = (id(a), a._write_count, dtype, grad_mode.get())
            if key not in mode.cache:
                mode.cache[key] = (a, a.to(dtypes.from_numpy(dtype)))
            return mode.cache[key][1]
        return a.to(dtypes.from_numpy(dtype))
    if isinstance(a, list | tuple) and any(isinstance(item, Tensor) for item in a):
        return type(a)([_cast(item, dtype, mode) for item in a])
    return a
