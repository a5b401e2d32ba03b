"""The recorded graph: one node per operation, and the places where gradients come to rest.

A tensor's ``_node`` says where its gradient must be sent:

- ``None``            nowhere: it does not require grad
- `AccumulateGrad`    a leaf: into ``.grad``
- `Node`              to the operation that made it
- `Output`            to one of several outputs of the operation that made it

A node points at the places of its inputs (`edges`), never at the tensors it made, so a graph has no
reference cycle: dropping the last tensor frees all of it, without the garbage collector.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from genesis.base.errors import GraphError, InplaceError, message
from genesis.core.modes import grad_mode

if TYPE_CHECKING:
    from genesis.core.hooks import NodeHooks
    from genesis.core.op import Op
    from genesis.core.tensor import Tensor


class Version:
    """The in-place writes to one piece of memory; shared by a tensor, its views and its saved twins.

    A tensor starts without one: most tensors are never written to. `stamp` is the number of the last
    write among all writes anywhere (`WRITES`), so a saved tensor is stale exactly when its stamp is later than
    the moment of saving, and a node needs to remember that one moment only.
    """

    __slots__ = ("count", "refs", "stamp", "writer")

    def __init__(self) -> None:
        self.count = self.stamp = 0
        self.writer = ""
        self.refs: list[weakref.ref[Tensor]] = []  # live views, to be given a new history after a write


WRITES = [0]  # the number of the last in-place write; a list, so that every module sees it change
_counting = threading.Lock()


def count_write(version: Version, writer: str) -> None:
    """Note a write; the lock keeps the numbers in order when several threads write."""
    with _counting:
        WRITES[0] = version.stamp = WRITES[0] + 1
    version.count += 1
    version.writer = writer


INFERENCE = Version()  # marks tensors made in inference mode
SHARED = Version()  # marks a gradient others may read: copied before the first in-place write


class _Freed:
    def __repr__(self) -> str:
        return "freed"


FREED: Any = _Freed()

Edge = Any  # Node | Output | AccumulateGrad | None


class Rule(NamedTuple):
    """One input's gradient: ``fn(g, *picked)``, where ``picks`` are places in what the node saved."""

    fn: Callable[..., Any]
    picks: tuple[int, ...]


class Node:
    """One recorded operation. Subclassed once per op (`AddBackward`) and once per user `Function`."""

    __slots__ = ("__weakref__", "dtype", "edges", "epoch", "hooks", "saved", "shape")

    op: ClassVar[Op]
    op_name: ClassVar[str] = ""
    rules: ClassVar[tuple[Rule | None, ...]] = ()
    input_names: ClassVar[tuple[str, ...]] = ()
    saves_out: ClassVar[bool] = False  # then the last saved value is a detached twin of the output
    outputs: Sequence[tuple[tuple[int, ...], np.dtype[Any]]] | None = None  # specs, when there are several
    is_leaf: ClassVar[bool] = False
    frees: ClassVar[bool] = True  # false: saves no tensors, so it can be differentiated again
    sums_broadcasts: ClassVar[bool] = False  # elementwise: a gradient comes in the result's shape, the engine sums it back
    trusted: ClassVar[bool] = True  # rules give arrays that nobody else holds, or `g` itself, or its views

    edges: tuple[Edge, ...]
    saved: tuple[Any, ...]
    epoch: int  # the number of the last write when the values were saved; -1 once they are freed
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    hooks: NodeHooks | None

    def name(self) -> str:
        return type(self).__name__

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """For each input, the node its gradient goes to and which of that node's outputs it was."""
        return tuple((e.node, e.index) if isinstance(e, Output) else (e, 0) for e in self.edges)

    def __repr__(self) -> str:
        return f"<{self.name()}>"

    def pull(self, g: Any) -> Sequence[Any]:
        """The gradients of the inputs from the gradient of the output (a list of them for several outputs)."""
        raise NotImplementedError  # compiled for each op by `compile_pull`, written by hand where it is special

    def unpack(self) -> tuple[Any, ...]:
        """What was saved, after making sure that nobody wrote over it since."""
        saved = self.saved
        if saved is FREED:
            raise GraphError(freed_message(self.name()))
        if self.epoch is not WRITES[0]:
            for value in saved:
                for tensor in value if value.__class__ is list else (value,):
                    version = getattr(tensor, "_counter", None)
                    if version is not None and version.stamp > self.epoch:
                        raise InplaceError(stale_message(self.name(), tensor, version))
        if self.saves_out and grad_mode.get():
            saved = (*saved[:-1], self.with_history(saved[-1]))
        return saved

    def with_history(self, twin: Tensor | None, index: int = 0) -> Tensor | None:
        """The saved output as a tensor that knows it was made here, for gradients of gradients."""
        if twin is None:
            return None
        return twin._alias(self if self.outputs is None else Output(self, index))

    def may_reduce(self, shape: tuple[int, ...], want: tuple[int, ...]) -> bool:
        """Whether summing a gradient of ``shape`` down to ``want`` is explained by broadcasting.

        It is where every axis that would be summed is an axis of an output, too. Anything else is a wrong rule, and
        summing would hide it.
        """
        extra = len(shape) - len(want)
        for out in [self.shape] if self.outputs is None else [spec[0] for spec in self.outputs]:
            leading = shape[:extra] == out[:extra]
            stretched = all(
                i - len(want) >= -len(out) and out[i - len(want)] == shape[i + extra]
                for i, n in enumerate(want)
                if n == 1 != shape[i + extra]
            )
            if leading and stretched:
                return True
        return False

    def shape_message(self, edge: Edge, shape: tuple[int, ...]) -> str:
        """What to say of a gradient that does not fit its input."""
        place = next(i for i, e in enumerate(self.edges) if e is edge)
        name = self.input_names[place] if place < len(self.input_names) else f"argument {place}"
        want = tuple(edge.shape)
        hint = "return a gradient of the input's shape"
        if len(shape) == len(want) == 2 and shape == want[::-1]:
            hint = "the gradient is transposed, return its transpose"
        elif len(shape) > len(want) and shape[len(shape) - len(want) :] == want:
            hint = f"sum it over the first {len(shape) - len(want)} axes"
        return message(
            f"{self.name()}",
            f"the gradient of {name} has shape {list(shape)}, the input has {list(want)}",
            hint=hint,
        )

    def release(self) -> None:
        """Drop what was saved; a second backward through here is then an error."""
        if self.frees and self.saved:
            self.saved = FREED
            self.epoch = -1


def compile_pull(rules: tuple[Rule | None, ...], saves_out: bool) -> Callable[[Node, Any], Sequence[Any]]:
    """`Node.pull` for an op's rules, as straight-line code: a loop over rules costs three times as much.

    For ``mul`` it reads ``a0, a1 = self.edges; return (None if a0 is None else rule0(g, saved[1]), ...)``.
    """
    scope: dict[str, Any] = {"WRITES": WRITES, "recording": grad_mode.get}
    calls = []
    for i, rule in enumerate(rules):
        if rule is None:
            calls.append("None")
            continue
        scope[f"rule{i}"] = rule.fn
        arguments = "".join(f", saved[{pick}]" for pick in rule.picks)
        calls.append(f"None if a{i} is None else rule{i}(g{arguments})")
    history = " or recording()" if saves_out else ""
    source = (
        "def pull(self, g):\n    saved = self.saved\n"
        f"    if self.epoch is not WRITES[0]{history}:\n        saved = self.unpack()\n"
        f"    {', '.join(f'a{i}' for i in range(len(rules)))}, = self.edges\n    return ({', '.join(calls)},)\n"
    )
    exec(compile(source, "<genesis node>", "exec"), scope)
    return scope["pull"]  # type: ignore[no-any-return]


def compiled_when_needed(rules: tuple[Rule | None, ...], saves_out: bool) -> Callable[[Node, Any], Sequence[Any]]:
    """A `Node.pull` that compiles itself at its first call: most programs use few of the ops (20 ms at import)."""

    def pull(self: Node, g: Any) -> Sequence[Any]:
        for kind in type(self).__mro__:
            if kind.__dict__.get("pull") is pull:
                kind.pull = compiled = compile_pull(rules, saves_out)  # type: ignore[method-assign]
                return compiled(self, g)
        raise AssertionError("pull is not a member of the node's class")

    return pull


class VariadicNode(Node):
    """A node whose inputs are a list: one rule gives the gradients of all of them."""

    __slots__ = ()

    def pull(self, g: Any) -> Sequence[Any]:
        saved = self.unpack()
        fn, picks = self.rules[0]  # type: ignore[misc]
        return fn(g, *[saved[i] for i in picks])  # type: ignore[no-any-return]


class ComplexNode(Node):
    """A node with a complex result: a rule is linear, ``rule(g) = g f'``; the gradient is ``g conj(f')``."""

    __slots__ = ()

    def pull(self, g: Any) -> Sequence[Any]:
        return [None if gx is None else gx.conj() for gx in super().pull(g.conj())]


class Output:
    """The place of one output of a node that has several."""

    __slots__ = ("index", "node")
    is_leaf = False

    def __init__(self, node: Node, index: int) -> None:
        self.node = node
        self.index = index

    @property
    def shape(self) -> tuple[int, ...]:
        return self.node.outputs[self.index][0]  # type: ignore[index]

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.node.outputs[self.index][1]  # type: ignore[index]


class AccumulateGrad(Node):
    """The place of a leaf: keeps its ``.grad``, and its hooks even while the tensor is out of reach."""

    __slots__ = ("grad", "tensor")
    is_leaf = True

    grad: Tensor | None
    tensor: weakref.ref[Tensor]

    @property
    def variable(self) -> Tensor | None:
        """The leaf tensor, or None when it is gone."""
        return self.tensor()


def leaf(tensor: Tensor) -> AccumulateGrad:
    """A new place for the gradient of a leaf."""
    node = AccumulateGrad()
    node.edges, node.saved, node.epoch, node.hooks = (), (), 0, None
    node.shape, node.dtype = tuple(tensor._array.shape), tensor._array.dtype
    node.grad, node.tensor = None, weakref.ref(tensor)
    return node


def freed_message(name: str) -> str:
    return message(
        "backward",
        f"{name} was already differentiated and what it saved was freed",
        hint="pass retain_graph=True to the first backward, or compute the result again",
    )


def stale_message(name: str, value: Tensor, version: Version) -> str:
    from genesis.arrays.spec import spec_of

    return message(
        "backward",
        f"a tensor that {name} saved was modified in place by {version.writer} since (it is at version {version.count})",
        operands=[("saved", spec_of(value._array))],
        hint=f"use the out-of-place form instead of {version.writer}, or save a clone()",
    )
