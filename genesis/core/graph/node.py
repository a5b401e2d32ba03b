"""The recorded graph: one node per operation, one for each leaf, and the edges between them.

A tensor's ``_node`` says where its gradient must be sent:

- ``None``            nowhere: it does not require grad
- `AccumulateGrad`    a leaf: into ``.grad``
- `Node`              to the operation that made it
- `Output`            to one of several outputs of the operation that made it

A node has an edge for each of its inputs, and none to the tensors it made, so a graph has no
reference cycle: dropping the last tensor frees all of it, without the garbage collector.
"""

from __future__ import annotations

import itertools
import warnings
import weakref
from collections.abc import Callable, Sequence
from types import CodeType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from genesis.base import library
from genesis.base.errors import ArgumentError, GraphError, InplaceError, message
from genesis.core.graph.hooks import NodeHooks, RemovableHandle, add_hook, hooks_of
from genesis.core.graph.lost import run_site
from genesis.core.graph.modes import grad_mode
from genesis.core.graph.saved import PACKED, saved_as, unpack
from genesis.core.graph.site import Site, site_here, site_of
from genesis.core.graph.tracing import tracer
from genesis.core.graph.version import WRITES, Version

if TYPE_CHECKING:
    from genesis.core.call.op import Op
    from genesis.core.graph.tensor import Tensor


next_number = itertools.count().__next__  # of nodes, see `Node._sequence_nr`


class _Freed:
    """What a node holds once its saved tensors were dropped: an error for whoever looks for them."""

    def __repr__(self) -> str:
        return "freed"

    def _refuse(self, *_: Any) -> Any:
        raise GraphError(freed_message(None))

    __iter__ = __getitem__ = __len__ = _refuse

    def __bool__(self) -> bool:
        return True


FREED: Any = _Freed()

# What a node is to the engine. The rules of ops give arrays that nobody else holds, or `g` itself, or its views; a
# user's function may give what somebody else holds, and write to what it gets; a leaf keeps what it gets.
OP, FUNCTION, LEAF = "op", "function", "leaf"

Edge = Any  # Node | Output | AccumulateGrad | None


class Rule(NamedTuple):
    """One input's gradient: ``fn(g, *picked)``, where ``picks`` are indices into what the node saved."""

    fn: Callable[..., Any]
    picks: tuple[int, ...]


class Node:
    """One recorded operation. Subclassed once per op (`AddBackward`) and once per user `Function`.

    The ``ctx`` of a user's function is a node, and ``ctx.shape = ...`` must not overwrite anything of ours: all our
    names begin with ``_``.
    """

    __slots__ = ("__weakref__", "_at", "_code", "_dtype", "_edges", "_epoch", "_hooks", "_number", "_saved", "_shape")

    op: ClassVar[Op]
    op_name: ClassVar[str] = ""
    rules: ClassVar[tuple[Rule | None, ...]] = ()
    input_names: ClassVar[tuple[str, ...]] = ()
    saves_out: ClassVar[bool] = False  # then the last saved value is a detached alias of the output
    # specs (None: no tensor), when there are several
    _outputs: Sequence[tuple[tuple[int, ...], np.dtype[Any]] | None] | None = None
    is_leaf: ClassVar[bool] = False
    _frees: ClassVar[bool] = True  # false: saves no tensors, so it can be differentiated again
    # elementwise: a gradient comes in the result's shape, the engine sums it back
    sums_broadcasts: ClassVar[bool] = False
    _role: ClassVar[str] = OP

    _edges: tuple[Edge, ...]
    _saved: tuple[Any, ...]
    # the number of the last write when the values were saved; negative once they are freed: the number of the backward
    _epoch: int
    _shape: tuple[int, ...]
    _dtype: np.dtype[Any]
    _hooks: NodeHooks | None
    _number: int
    _code: CodeType | None  # where it was recorded, see `core/graph/site.py`
    _at: int

    # PyTorch's names of what rules ask for most
    _saved_self, _saved_other, _saved_result = saved_as("input"), saved_as("other"), saved_as("out")

    def name(self) -> str:
        """The name of the operation with ``Backward``: ``MulBackward``."""
        return library.of_node(type(self).__name__) if self._role is OP else type(self).__name__

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """For each input, the node its gradient goes to and which of that node's outputs it was."""
        return tuple((e.node, e.index) if isinstance(e, Output) else (e, 0) for e in self._edges)

    def register_hook(self, fn: Callable[[tuple[Any, ...], tuple[Any, ...]], Any]) -> RemovableHandle:
        """Call ``fn(grad_inputs, grad_outputs)`` after this node has run; it may return other gradients of the inputs."""
        return add_hook(self, "post", fn)

    def register_prehook(self, fn: Callable[[tuple[Any, ...]], Any]) -> RemovableHandle:
        """Call ``fn(grad_outputs)`` before this node runs; it may return other ones."""
        return add_hook(self, "pre", fn)

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for whatever a user wants to note of this node."""
        return hooks_of(self).metadata

    def _sequence_nr(self) -> int:
        """A number that grows with every node recorded: later nodes have larger ones. Leaves, which are not recorded,
        have the largest.
        """
        return 2**64 - 1 if self.is_leaf else getattr(self, "_number", -1)

    def where(self) -> Site | None:
        """The line of the user's program that recorded this node."""
        return site_of(self._code, self._at)

    def __repr__(self) -> str:
        return f"<{self.name()} object at {id(self):#x}>" if library.is_torch() else f"<{self.name()}>"

    def _pull(self, g: Any) -> Sequence[Any]:
        """The gradients of the inputs from the gradient of the output (a list of them for several outputs)."""
        raise NotImplementedError  # compiled for each op by `compile_pull`, written by hand where it is special

    def _pull_special(self, g: Any) -> Sequence[Any]:
        """`pull` for a node with hooks, several outputs or anything else that is not ordinary."""
        return self._pull(g)

    def _unpack(self) -> tuple[Any, ...]:
        """What was saved, after making sure that nobody wrote over it since."""
        saved = self._saved
        if saved is FREED:
            raise GraphError(freed_message(self))
        if self._epoch == PACKED:
            saved = unpack(self)
        elif self._epoch is not WRITES[0]:
            for value in saved:
                for tensor in value if value.__class__ is list else (value,):
                    version = getattr(tensor, "_counter", None)
                    if version is not None and (version.stamp > self._epoch or tensor._detached > self._epoch):
                        raise InplaceError(stale_message(self, tensor, version))
        if self.saves_out and grad_mode.get():
            last = saved[-1]
            if last.__class__ is list:
                last = [self.with_history(y, i) if y._array.dtype.kind in "fc" else y for i, y in enumerate(last)]
            else:
                last = self.with_history(last)
            saved = (*saved[:-1], last)
        return saved

    def with_history(self, out: Tensor | None, index: int = 0) -> Tensor | None:
        """The saved output as a tensor that knows it was made here, for gradients of gradients."""
        if out is None:
            return None
        written = None if out._written is None else out._written()
        return out._alias(written or (self if self._outputs is None else Output(self, index)))

    def may_reduce(self, shape: tuple[int, ...], want: tuple[int, ...]) -> bool:
        """Whether summing a gradient of ``shape`` down to ``want`` is explained by broadcasting.

        It is where every axis that would be summed is an axis of an output, too. Anything else is a wrong rule, and
        summing would hide it: what PyTorch does, and programs written for it rely on; they are warned.
        """
        extra = len(shape) - len(want)
        for out in [self._shape] if self._outputs is None else [spec[0] for spec in self._outputs if spec is not None]:
            leading = all(n in (1, m) for n, m in zip(shape[:extra], out[:extra], strict=False)) and extra <= len(out)
            stretched = all(
                i - len(want) >= -len(out) and out[i - len(want)] == shape[i + extra]
                for i, n in enumerate(want)
                if n == 1 != shape[i + extra]
            )
            if leading and stretched:
                return True
        if not library.is_torch():
            return False
        text = f"{self.name()}: a gradient of shape {list(shape)} is summed to {list(want)}, the shape of the input"
        warnings.warn(text, stacklevel=2)
        return True

    def shape_message(self, edge: Edge, shape: tuple[int, ...]) -> str:
        """What to say of a gradient that does not fit its input."""
        index = next(i for i, e in enumerate(self._edges) if e is edge)
        name = self.slot_name(index)
        want = tuple(edge._shape)
        hint = "return a gradient of the input's shape"
        if len(shape) == len(want) == 2 and shape == want[::-1]:
            hint = "the gradient is transposed, return its transpose"
        elif len(shape) > len(want) and shape[len(shape) - len(want) :] == want:
            hint = f"sum it over the first {len(shape) - len(want)} axes"
        site = self.where()
        return message(
            f"{type(self).__name__}",
            f"the gradient of {name} has shape {list(shape)}, the input has {list(want)}",
            operands=[] if site is None else [("called at", site)],
            hint=hint,
        )

    def slot_name(self, index: int) -> str:
        """The name of the parameter that an edge stands for."""
        return self.input_names[index] if index < len(self.input_names) else f"argument {index}"

    def no_tensor(self, edge: Edge, result: Any) -> Exception:
        """What to say of a gradient that is not a tensor."""
        index = next(i for i, e in enumerate(self._edges) if e is edge)
        site = self.where()
        return ArgumentError(
            message(
                f"{type(self).__name__}",
                f"the gradient of {self.slot_name(index)} is {type(result).__name__}, expected a tensor or None",
                operands=[] if site is None else [("called at", site)],
            )
        )

    def _release(self) -> None:
        """Drop what was saved; a second backward through here is then an error."""
        if self._frees and self._saved:
            self._saved = FREED
            self._epoch = -1


def compile_pull(rules: tuple[Rule | None, ...], saves_out: bool) -> Callable[[Node, Any], Sequence[Any]]:
    """`Node._pull` for an op's rules, as straight-line code: a loop over rules costs three times as much.

    For ``mul`` it reads ``a0, a1 = self._edges; return (None if a0 is None else rule0(g, saved[1]), ...)``.
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
        "def _pull(self, g):\n    saved = self._saved\n"
        f"    if self._epoch is not WRITES[0]{history}:\n        saved = self._unpack()\n"
        f"    {', '.join(f'a{i}' for i in range(len(rules)))}, = self._edges\n    return ({', '.join(calls)},)\n"
    )
    exec(compile(source, "<genesis node>", "exec"), scope)
    return scope["_pull"]  # type: ignore[no-any-return]


def compiled_when_needed(rules: tuple[Rule | None, ...], saves_out: bool) -> Callable[[Node, Any], Sequence[Any]]:
    """A `Node._pull` that compiles itself at its first call: most programs use few of the ops (20 ms at import)."""

    def pull(self: Node, g: Any) -> Sequence[Any]:
        for kind in type(self).__mro__:
            if kind.__dict__.get("_pull") is pull:
                kind._pull = compiled = compile_pull(rules, saves_out)  # type: ignore[attr-defined]
                return compiled(self, g)
        return self._pull(g)  # another thread was first and has put the compiled one there

    return pull


class VariadicNode(Node):
    """A node whose inputs are a list: one rule gives the gradients of all of them."""

    __slots__ = ()

    def _pull(self, g: Any) -> Sequence[Any]:
        saved = self._unpack()
        fn, picks = self.rules[0]  # type: ignore[misc]
        return fn(g, *[saved[i] for i in picks])  # type: ignore[no-any-return]


class ComplexNode(Node):
    """A node with a complex result: a rule is linear, ``rule(g) = g f'``; the gradient is ``g conj(f')``."""

    __slots__ = ()

    def _pull(self, g: Any) -> Sequence[Any]:
        return [None if gx is None else gx.conj() for gx in super()._pull(g.conj())]


class Output:
    """An edge to one output of a node that has several."""

    __slots__ = ("_dtype", "_shape", "index", "node")
    is_leaf = False

    _dtype: np.dtype[Any]
    _shape: tuple[int, ...]

    def __init__(self, node: Node, index: int) -> None:
        self.node = node
        self.index = index
        self._shape, self._dtype = node._outputs[index]  # type: ignore[index, misc]


def node_of(edge: Edge) -> Node:
    """The node that an edge leads to. (Loops of the engine say it themselves, for a call costs more than it does.)"""
    return edge.node if isinstance(edge, Output) else edge


def edge_key(edge: Edge) -> Any:
    """What is equal for two edges to the same output: there may be several `Output` records of it."""
    return (edge.node, edge.index) if edge.__class__ is Output else edge


RECORDED: Any = object()  # stands for a gradient that the tensor itself keeps


class AccumulateGrad(Node):
    """The node of a leaf: keeps its ``.grad``, and its hooks even while the tensor is out of reach."""

    __slots__ = ("_grad", "_virtual", "tensor")
    is_leaf = True
    _role = LEAF

    _grad: Tensor | None
    _virtual: bool  # whether the leaf's array is no memory of NumPy's in row-major order
    tensor: weakref.ref[Tensor]

    @property
    def grad(self) -> Tensor | None:
        """The accumulated gradient. One with a history of its own is kept by the tensor, or it would lead back to
        itself and never be freed.
        """
        if self._grad is not RECORDED:
            return self._grad
        tensor = self.tensor()
        return None if tensor is None else tensor._retained

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        active = tracer.get()
        if active is not None:
            active.grad_assigned(self)
        for call, *arguments in self.writes_of(value):
            call(*arguments)

    def writes_of(self, value: Tensor | None) -> list[tuple[Any, ...]]:
        """The calls that make this the gradient, each a single step in C."""
        recorded = value is not None and value._node is not None
        tensor = self.tensor() if recorded or self._grad is RECORDED else None
        keeper: list[tuple[Any, ...]] = [] if tensor is None else [(setattr, tensor, "_retained", value)]
        return [*keeper, (setattr, self, "_grad", RECORDED if recorded else value)]

    @property
    def variable(self) -> Tensor | None:
        """The leaf tensor, or None when it is gone."""
        return self.tensor()


class ArgumentOfTrace(AccumulateGrad):
    """The node in a trace of an argument that requires grad: outside it may be no leaf."""

    __slots__ = ()


def is_virtual(array: Any) -> bool:
    """Whether it is no array of NumPy's in row-major order, as nearly all leaves are: what gradients have to be compared to."""
    return array.__class__ is not np.ndarray or not array.flags.c_contiguous


def leaf(tensor: Tensor) -> AccumulateGrad:
    """A new node for the gradient of a leaf."""
    node: AccumulateGrad = recorded(AccumulateGrad, (), tensor._array, (), NOWHERE)
    node._virtual = is_virtual(tensor._array)
    node._grad, node.tensor = None, weakref.ref(tensor)
    return node


NOWHERE: tuple[CodeType | None, int] = (None, -1)


def recorded(
    kind: type[Node],
    edges: tuple[Edge, ...],
    array: Any,
    saved: tuple[Any, ...] = (),
    site: tuple[CodeType | None, int] | None = None,
) -> Any:
    """A node for a result with this array, recorded at ``site``, or in the line of the program that runs.

    All nodes are made here, but for those of the fast paths (`core/call/fast.py`, `core/functions/calling.py`), where
    this is written out: a call would add a tenth to a recorded product. A test compares what they set.
    """
    node = kind()
    node._edges, node._saved, node._hooks, node._epoch, node._number = edges, saved, None, WRITES[0], next_number()
    node._code, node._at = site_here() if site is None else site
    node._shape, node._dtype = array.shape, array.dtype
    return node


def freed_message(node: Node | None) -> str:
    made, freed = (None, None) if node is None else (node.where(), run_site(node._epoch))
    return message(
        "backward",
        f"{'this node' if node is None else type(node).__name__} was already differentiated and what it saved was "
        "freed",
        operands=[
            (what, site)
            for what, site in (("called at", made), ("freed by the backward at", freed))
            if site is not None
        ],
        hint="pass retain_graph=True to the first backward, or compute the result again",
    )


def stale_message(node: Node, value: Tensor, version: Version) -> str:
    from genesis.arrays.spec import spec_of

    lines: list[tuple[str, object]] = [("saved", spec_of(value._array))]
    saver, writer = node.where(), site_of(*version.site)
    if saver is not None:
        lines.append(("saved at", saver))
    if version.stamp <= node._epoch:
        return message(
            "backward",
            f"a tensor that {type(node).__name__} saved lost its history by detach_() since",
            lines,
            "use detach(), or call detach_() after the backward",
        )
    if writer is not None:
        lines.append(("written at", writer))
    return message(
        "backward",
        f"a tensor that {type(node).__name__} saved was modified in place by {version.writer} since (it is at "
        f"version {version.count})",
        operands=lines,
        hint=f"use the out-of-place form instead of {version.writer}, or save a clone()",
    )
