"""Contractions: sums of products of their operands, as a product of matrices or a convolution is.

They are linear in each operand, so forward mode is a sum over the operands, each replaced in turn by its tangent. An
operand's last dimensions belong to the op, as many as its block says (``core``); dimensions before these are batches,
which broadcast. So the hidden dimension of many samples is put in front: it is one more batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from genesis.core.call.kind import Kind, Rule, called, multilinear
from genesis.core.call.kinds.declare import Rules, primitive
from genesis.core.call.op import Op


class Contraction(Kind):
    """Sums of products."""

    def jvp(self, op: Op) -> Rule | None:
        return multilinear if op.added is None else with_addend

    def batch(self, op: Op) -> Rule | None:
        return in_front if op.core else None


CONTRACTION = Contraction("contraction")


@called("multilinear")
def with_addend(op: Op, args: tuple[Any, ...], tangents: list[Any], out: Any) -> Any:
    """Linear in each factor, and in what is added to the product."""
    index = list(op.signature.parameters).index(op.added)  # type: ignore[arg-type]
    alone = (*args[:index], None, *args[index + 1 :])
    total = multilinear(op, alone, [None if i == index else t for i, t in enumerate(tangents)], out)
    added = tangents[index]
    if added is None:
        return total
    if op.added_dim is not None:
        added = added.reshape([-1 if i == op.added_dim else 1 for i in range(out.ndim)])
    return added.expand(out.shape) if total is None else total + added


@called("in front")
def in_front(b: Any, *args: Any) -> Any:
    """The hidden dimension is one more batch: in front of the batches of the operand that has most."""
    op = b.op
    others = [args[i] for i in op.tensors[1:]]
    if (
        b.batched[0]
        and not any(b.batched[1:])
        and all([x is None or core is None or x.ndim <= core for x, core in zip(others, op.core[1:], strict=True)])
    ):
        return b.run(*args)  # rows of the first operand, and the others the same for all of them: one product
    if None in op.core:
        return b.composed(*args)
    filled, spared, batches = list(args), [], 0
    for i, flag, core, at in zip(op.tensors, b.batched, op.core, op.spare or op.core, strict=True):
        x = args[i]
        if x.ndim - flag < core:
            filled[i] = x = x.unsqueeze(at)
            spared.append(at)
        batches = max(batches, x.ndim - flag - core)
    for i, flag, core in zip(op.tensors, b.batched, op.core, strict=True):
        filled[i] = b.padded(filled[i], flag, batches + core)
    out = b.run(*filled)
    for at in spared:
        out = out.squeeze(at)
    return out


def contraction(vjp: Rules, *, infer: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Declare a sum of products.

    Args:
        core: for each operand how many of its last dimensions are the op's own; None for one that has no batches, whose
            samples are
            computed by ``decompose``
        spare: where an operand may lack one of them, as the vector in a product with a matrix: the dimension of size 1
            that it stands for
        added: the parameter that is added to the product, broadcast, if there is one
        added_dim: the dimension of the result that it runs along, where that is not the last
    """
    return primitive(CONTRACTION, vjp, infer=infer, **options)
