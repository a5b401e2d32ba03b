"""The kinds that say little: what is linear, what runs along a dimension, and what nobody looks into."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Signature
from typing import Any

from genesis.core.call import dispatch
from genesis.core.call.kind import Along, Kind, Rule, as_it_is
from genesis.core.call.op import REGISTRY, Op


class Movement(Along):
    """Elements moved elsewhere, or joined by zeros: linear."""

    linear = True


class Conversion(Kind):
    """Elements as they are, in another dtype or under a name: linear, and the same for many samples."""

    linear = True

    def batch(self, op: Op) -> Rule | None:
        return as_it_is


class Transfer(Conversion):
    """Elements as they are, in the memory of another device."""

    moves = True


class Fusion(Kind):
    """A composite's kernel, and its backward, as calls of a program."""

    fused = True


class Opaque(Kind):
    """Operations of users: of what they do is known what they say (`genesis.library`)."""

    repeatable = False

    def differentiable(self, op: Op) -> bool:
        return bool(getattr(op.call, "differentiable", False))


def opaque(
    name: str, signature: Signature, meaning: Callable[..., Any], infer: Callable[..., Any], call: Callable[..., Any],
    tensors: tuple[int, ...], module: str, variadic: bool = False,
) -> Op:  # fmt: skip
    """Enter an operation of a user in the registry: ``call`` is its public function, ``tensors`` the indices of arrays."""
    op = Op(name, OPAQUE, signature, meaning, infer=infer, torch_name="", module=module)
    op.kernel, op.call, op.run, op.tensors, op.variadic = meaning, call, dispatch.run, tensors, variadic
    REGISTRY[name] = op
    return op


MOVEMENT = Movement("movement")  # flip, roll, cat, tril
CONVERSION = Conversion("elementwise_cast")  # convert
TRANSFER = Transfer("transfer")  # what `Tensor.to` calls
SCAN = Along("scan")  # cumsum: running reductions along a dimension
SORT = Along("sort")  # argsort, topk: positions along a dimension
SEARCH = Kind("search")  # unique, searchsorted, histc
OPAQUE = Opaque("opaque")
FUSION = Fusion("fused")
