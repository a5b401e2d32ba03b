"""The op matrix: what each op has."""

from __future__ import annotations

from typing import Any

from genesis.core.call.op import REGISTRY
from genesis.core.layers import batches, duals


def matrix() -> list[dict[str, Any]]:
    """Rows of the op matrix that ``python -m genesis.ops`` prints."""
    return [
        {
            "op": op.name,
            "kind": op.kind,
            "infer": op.infer is not None or op.kind.composed,
            "vjp": op.kind.differentiable(op),
            "jvp": duals.how(op),
            "vmap": batches.how(op),
            "trace": op.kind.trace,
            "in-place": op.inplace,
            "kernel": bool(op.kernels)
            or (
                not op.kind.composed
                and op.kernel is not op.meaning
                and op.kernel is not getattr(op.meaning, "__wrapped__", None)
            ),
            "samples": op.samples is not None,
            "fails": len(op.fails),
            "module": op.module,
        }
        for op in sorted(REGISTRY.values(), key=lambda op: op.name)
    ]
