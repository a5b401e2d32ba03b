"""A call becomes a node of the graph: its edges, and what its rules will ask for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from genesis.arrays.memory import DeviceArray, copied
from genesis.arrays.protocol import Layer, Virtual
from genesis.arrays.spec import spec_of
from genesis.base import dtypes
from genesis.base.errors import GraphError, message
from genesis.core.call.generated import compiled, generated
from genesis.core.call.halves import F32, F64
from genesis.core.call.op import Op, node_for
from genesis.core.graph.hooks import SPECIAL
from genesis.core.graph.levels import levels, mark_created
from genesis.core.graph.lost import HISTORY_WATCHES, history_used, note
from genesis.core.graph.modes import ACTIVE, LEVELS, grad_mode, inference
from genesis.core.graph.node import Output, recorded
from genesis.core.graph.saved import pack
from genesis.core.graph.site import LIBRARY, user_site
from genesis.core.graph.switches import PACKING
from genesis.core.graph.tensor import Tensor, wrap
from genesis.core.graph.tracing import tracer
from genesis.core.graph.version import INFERENCE

_frame = sys._getframe


def record_elementwise(op: Op, args: tuple[Any, ...], y: Tensor) -> None:
    edges = _edges(args if op.plain else [args[i] for i in op.tensors])
    if edges is None:
        return
    if op.node is None or not grad_mode.get() or not differentiable(y._array.dtype):
        unrecorded(op, edges, y)
        return
    node = recorded(node_for(op, y._array.dtype), edges, y._array)
    if op.saves and op.plain:  # the layout of the fast paths: the operands, then the result
        keeps, keeps_out = kept(op, tuple([edge is not None for edge in edges]))
        saved = tuple([a if keep else None for a, keep in zip(args, keeps, strict=True)])
        if op.node.saves_out:
            saved = (*saved, y._alias(None) if keeps_out else None)
        node._saved = saved
    elif op.saves:
        node._saved = saved_values(op, args, edges, y)
    refuse_inference(op.name, node._saved)
    y._node = node
    if ACTIVE or PACKING:
        pack(node)


def _edges(tensors: Sequence[Any]) -> tuple[Any, ...] | None:
    """The histories of operands; None if there are none."""
    for a in tensors:
        if isinstance(a, Tensor) and a._node is not None:
            return tuple([a._node if isinstance(a, Tensor) else None for a in tensors])
    return None


@cache
def kept(op: Op, needed: tuple[bool, ...]) -> tuple[tuple[bool, ...], bool]:
    """Of an op of tensors only: which of them, and whether the result, is saved where these need a gradient."""
    users = {index: who for _, source, index, who in op.saves if source in ("tensor", "out")}
    active = {i for i, wanted in enumerate(needed) if wanted}
    saved = [bool(users.get(i, frozenset()) & active) for i in (*range(len(needed)), -1)]
    return tuple(saved[:-1]), saved[-1]


def made_inside(y: Tensor) -> None:
    """A result that came while a mode was open: of inference mode, or made inside transforms of which it has no layer."""
    if inference.get():
        y._counter = INFERENCE
    if not isinstance(y._array, Virtual):
        mark_created(y)
        if tracer.get() is not None:
            tracer.get().created(y)
    elif LEVELS and isinstance(y._array, Layer):
        open_levels = levels()
        if open_levels and y._array.level < open_levels[-1].number:
            mark_created(y)


def unrecorded(op: Op, edges: Sequence[Any], out: Tensor) -> None:
    """Note that values with history gave one without, see `core/graph/lost.py`."""
    if not grad_mode.get():
        if HISTORY_WATCHES:
            history_used(*edges)
    elif not differentiable(out._array.dtype):
        note(f"{op.name} giving {out.dtype}", next(e for e in edges if e is not None), _frame(2))


def record(
    op: Op, args: tuple[Any, ...], edges: tuple[Any, ...], out: Tensor, outs: tuple[Tensor, ...] | None = None
) -> None:
    """The node of a primitive with one result."""
    array = out._array
    kind: Any = op.node if array.dtype is F32 else node_for(op, array.dtype)
    saved = (op.save or _compile_save(op))(args, edges, out, outs)
    frame = _frame(3)
    code = frame.f_code
    site = user_site(frame) if LIBRARY[code.co_filename] else (code, frame.f_lasti)  # a call less where users call
    out._node = node = recorded(kind, edges, array, saved, site)
    node._outputs = None
    if ACTIVE or PACKING:
        pack(node)


def wrap_several(op: Op, args: Any, edges: tuple[Any, ...] | None, result: Sequence[Any]) -> tuple[Tensor, ...]:
    outs = tuple(wrap(r) for r in result)
    if edges is not None:
        record(op, args, edges, outs[0], outs)
        node: Any = outs[0]._node
        node._hooks = SPECIAL
        node._outputs = [(tuple(r.shape), r.dtype) for r in result]
        for i, y in enumerate(outs):
            y._node = Output(node, i) if differentiable(y._array.dtype) else None
    return outs


def differentiable(dtype: Any) -> bool:
    return dtype is F32 or dtype is F64 or dtype.kind in "fc" or dtypes.from_numpy(dtype).category > 1


def saved_values(
    op: Op, args: tuple[Any, ...], edges: tuple[Any, ...], out: Tensor, outs: tuple[Tensor, ...] | None = None
) -> tuple[Any, ...]:
    """What the rules of the inputs that need a gradient ask for by name, see `core/call/op.py`."""
    return (op.save or _compile_save(op))(args, edges, out, outs)  # type: ignore[no-any-return]


def _compile_save(op: Op) -> Callable[..., Any]:
    """`saved_values` of one op as straight-line code, made at its first use: a loop over ``op.saves`` costs 0.4 us
    more.
    """
    lines, parts = [], []
    for i, (name, source, index, users) in enumerate(op.saves):
        if source == "tensor" and op.kind.copies and name not in op.vjp:
            lines.append(f"    t{i} = own(args[{index}])")
        elif source == "tensor":
            lines += [
                f"    t{i} = args[{index}]",
                f"    if t{i}.__class__ is Tensor and t{i}._counter is INFERENCE: refuse(name, (t{i},))",
            ]
        value = {"value": f"args[{index}]", "tensor": f"t{i}", "shape": f"args[{index}]._array.shape",
                 "shapes": f"[x._array.shape for x in args[{index}]]",
                 "wanted": "tuple([e is not None for e in edges])", "out": "out._alias(None)",
                 "outs": "[y._alias(None) for y in outs]"}[source]  # fmt: skip
        wanted = " or ".join(f"edges[{user}] is not None" for user in sorted(users))
        always = source == "value" or op.variadic or len(op.tensors) == 1
        parts.append(value if always else f"({value} if {wanted} else None)")
    source_code = (
        "def call(args, edges, out, outs):\n"
        + "".join(line + "\n" for line in lines)
        + f"    return ({''.join(p + ', ' for p in parts)})\n"
    )
    scope: dict[str, Any] = {
        "Tensor": Tensor,
        "INFERENCE": INFERENCE,
        "refuse": refuse_inference,
        "name": op.name,
        "own": _own,
    }
    op.save = compiled(generated(lambda: source_code, "save", f"<genesis saves {op.name}>", scope))
    return op.save


def _own(x: Tensor | None) -> Tensor | None:
    return wrap(copied(x._array)) if x is not None and isinstance(x._array, np.ndarray | DeviceArray) else x


def refuse_inference(name: str, saved: tuple[Any, ...]) -> None:
    """A tensor of inference mode has no count of writes, so backward could not trust it."""
    for value in saved:
        if getattr(value, "_counter", None) is INFERENCE:
            raise GraphError(
                message(name, "a tensor made in inference_mode cannot be saved for backward",
                        operands=[("saved", spec_of(value._array))],
                        hint="clone() it outside inference_mode, or use no_grad instead")
            )  # fmt: skip
