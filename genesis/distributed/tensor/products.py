"""How products of matrices and tensors of a `DTensor` lie: by labels of dimensions, as `einsum` has them."""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence
from typing import Any

from genesis.distributed.placements import Partial, Placement, Shard
from genesis.distributed.tensor.propagation import ALL, Answer, Call


def contracted(operands: Sequence[Any], lies: Sequence[Placement], labels: Sequence[str], out: str) -> Answer | None:
    """Sums of products: a dimension that one operand has divided is divided in all that have it. The result is terms where the
    sum is over it. Of several that are divided those of batches come first, then those of sums.
    """
    if any([len(set(own)) < len(own) or len(own) != x.ndim for own, x in zip(labels, operands, strict=True)]):
        return None
    sizes: dict[str, int] = {}
    for own, x in zip(labels, operands, strict=True):
        for label, n in zip(own, x.shape, strict=True):
            sizes[label] = max(sizes.get(label, 1), n)

    def has(label: str, own: str, x: Any) -> bool:
        return label in own and x.shape[own.index(label)] == sizes[label] > 1

    def order(label: str) -> int:
        return 1 if label not in out else 0 if len([own for own in labels if label in own]) > 1 else 2

    divided = [own[p.dim] for own, p in zip(labels, lies, strict=True) if isinstance(p, Shard)]
    divided = [label for label in divided if sizes[label] > 1]
    if not divided:
        return None
    label = min(divided, key=order)
    wanted: list[Placement] = [
        Shard(own.index(label)) if has(label, own, x) else ALL for own, x in zip(labels, operands, strict=True)
    ]
    return Answer(wanted, Shard(out.index(label)) if label in out else Partial())


def _of_matrices(a: int, b: int) -> tuple[str, str, str]:
    """The labels of a product of matrices with so many dimensions: rows i, columns j, terms k, batches from A on."""
    batch = string.ascii_uppercase[: max(a, b) - 2]
    first = batch[len(batch) - a + 2 :] + "ik" if a > 1 else "k"
    second = batch[len(batch) - b + 2 :] + "kj" if b > 1 else "k"
    return first, second, batch + "i" * (a > 1) + "j" * (b > 1)


def product(call: Call) -> Answer | None:
    """Products of matrices, of batches of them, and with vectors."""
    *labels, out = _of_matrices(*[x.ndim for x in call.operands])
    return contracted(call.operands, call.lies, labels, out)


def added(call: Call) -> Answer | None:
    """`addmm` and `baddbmm`: a product, and what is added to it."""
    *labels, out = _of_matrices(*[x.ndim for x in call.operands[1:]])
    said = contracted(call.operands[1:], call.lies[1:], labels, out)
    if said is None or not isinstance(said.out, Shard):
        return None
    x = call.operands[0]
    own = said.out.dim - len(out) + x.ndim
    here = own >= 0 and x.shape[own] == call.results.shape[said.out.dim]
    return Answer([Shard(own) if here else ALL, *said.wanted], said.out)


def einsum(call: Call) -> Answer | None:
    """`einsum` whose labels are letters, each once in an operand."""
    equation = call.argument("equation")
    if not isinstance(equation, str) or "." in equation:
        return None
    inputs, arrow, out = equation.replace(" ", "").partition("->")
    labels = inputs.split(",")
    if not arrow:
        every = "".join(labels)
        out = "".join(sorted([label for label in every if every.count(label) == 1]))
    return contracted(call.operands, call.lies, labels, out) if len(labels) == len(call.operands) else None


def outer(call: Call) -> Answer | None:
    return contracted(call.operands, call.lies, ["i", "j"], "ij")


def linear(call: Call) -> Answer | None:
    """`linear`: rows of the weight are columns of the result; of columns of both the result is terms."""
    x, weight, *bias = [call.argument(name) for name in ("input", "weight", "bias")]
    bias = [b for b in bias if b is not None]
    px, pw = call.lies[call.at(x)], call.lies[call.at(weight)]
    if weight.ndim != 2 or px.is_partial():
        return None
    last = x.ndim - 1
    if pw == Shard(0):
        return Answer([ALL, pw, *[Shard(0) for _ in bias]], Shard(last))
    if pw == Shard(1) or px == Shard(last):
        if bias:
            return None if pw != Shard(1) else Answer([Shard(last), Shard(1), ALL], Partial(), _with_one_bias(call))
        return Answer([Shard(last), Shard(1)], Partial())
    return Answer([px, ALL, *[ALL for _ in bias]], px) if isinstance(px, Shard) else None


def _with_one_bias(call: Call) -> Callable[..., Any]:
    """The first rank's term has the bias."""
    first = call.members.rank() == 0
    return lambda x, w, b: call.func(x, w) + (b if first else 0 * b)
