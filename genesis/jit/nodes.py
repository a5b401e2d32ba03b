"""What a graph is made of: variables, nodes, and what stands at its border.

A node is the name of a primitive op and its arguments: variables, numbers, and tuples of them; nothing else, no Python
objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec
from genesis.core.call.op import REGISTRY
from genesis.core.call.strides import with_strides
from genesis.core.graph.node import AccumulateGrad
from genesis.core.graph.site import Site
from genesis.core.graph.tensor import Tensor


class Var:
    """A value of a graph."""

    __slots__ = ("spec",)

    def __init__(self, spec: Spec) -> None:
        self.spec = spec

    def __repr__(self) -> str:
        return f"<variable {self.spec}>"


@dataclass(frozen=True, slots=True)
class Node:
    """One call of a primitive: ``outs = op(*args)``."""

    op: str
    args: tuple[Any, ...]
    outs: tuple[Var, ...]
    site: Site | None = None

    @property
    def inputs(self) -> Iterator[Var]:
        """The variables among the arguments."""
        return variables(self.args)


@dataclass(frozen=True, slots=True)
class Draw:
    """Where a random node finds its numbers: a stream, and how many blocks after the beginning of the call."""

    stream: int
    offset: int


@dataclass(frozen=True, slots=True)
class Write:
    """What a call leaves behind in a tensor of the outside.

    ============  ====================================================================================
    kind          ``place`` counts           ``value`` is
    ============  ====================================================================================
    argument      the arguments              what the memory holds now
    captured      the captured tensors       what the memory holds now
    grad          the leaves                 what the memory of ``.grad`` holds now; of a new tensor if there was none
    new grad      the leaves                 a new ``.grad``
    no grad       the leaves                 None, and so is the ``.grad``
    ============  ====================================================================================
    """

    kind: str
    place: int
    value: Var | None

    @property
    def of_gradient(self) -> bool:
        return self.kind.endswith("grad")


def hooks_on(node: Any) -> tuple[Any, ...]:
    """The hooks of a leaf; those of other tensors are no part of a traced function."""
    found = node._hooks if isinstance(node, AccumulateGrad) else None
    return (
        ()
        if found is None
        else (*found.tensor.values(), *found.pre.values(), *found.post.values(), *found.post_accumulate.values())
    )


@dataclass(frozen=True, slots=True)
class Leaf:
    """A tensor of the outside whose ``.grad`` the function reads or changes."""

    tensor: Tensor | None  # None: it is an argument
    argument: int
    # the ``.grad`` at the beginning of a call; where there is none, -0.0: adding to that changes nothing
    var: Var | None
    present: bool | None  # whether there was one, if the function asked
    hooks: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Alias:
    """Whose memory a result is: ``steps`` (view ops) lead from the root to it.

    The root is one of the arguments, a captured tensor, the ``.grad`` of a leaf, another result ("result": the same
    tensor), or memory that several results share ("made").
    """

    kind: str
    place: int
    steps: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    tensor: Tensor | None = None  # what was captured
    same: bool = False  # the very tensor, not another one on its memory


def variables(value: Any) -> Iterator[Var]:
    """The variables in an argument."""
    if isinstance(value, Var):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from variables(item)


def renamed(value: Any, f: Callable[[Var], Any]) -> Any:
    """An argument with other things in place of its variables."""
    if isinstance(value, Var):
        return f(value)
    if isinstance(value, tuple):
        return tuple([renamed(v, f) for v in value])
    return [renamed(v, f) for v in value] if isinstance(value, list) else value


def repeatable(node: Node) -> bool:
    """Whether the same inputs always give the same results: not of draws, and of users' operations nobody knows."""
    return node.op != "draw" and REGISTRY[node.op].kind != "opaque"


def inferred(node: Node) -> list[Spec]:
    """The specs of a node's results, from its op."""
    op = REGISTRY[node.op]
    specs = renamed(node.args, lambda var: var.spec if var.spec.device.type != "meta" else 1.0)
    specs = tuple([s if i in op.tensors or (op.variadic and i == 0) else _ghosts(s) for i, s in enumerate(specs)])
    if op.kind == "elementwise":
        found = op.infer(*[specs[i] for i in op.tensors])  # type: ignore[misc]
    else:
        found = op.infer(*specs)  # type: ignore[misc]
    return list(found) if isinstance(found, tuple | list) else [with_strides(op, specs, found)]


def _ghosts(value: Any) -> Any:
    """Zeros for the specs in an index."""
    if isinstance(value, Spec):
        return np.broadcast_to(np.zeros((), value.dtype), value.shape)
    return tuple([_ghosts(v) for v in value]) if isinstance(value, tuple) else value
