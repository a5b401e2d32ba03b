"""`GradientTape`: gradients the way TensorFlow writes them.

Genesis records whatever is computed from a tensor that requires grad, so a tape has little to record by itself. It

- makes a constant such a tensor for the time of the ``with`` (`GradientTape.watch`), and remembers its node in the
  graph, so that gradients can be asked for afterwards, when it is a constant again;
- leaves out what was computed before it was opened: there gradients end, with a warning;
- decides how long a graph is kept, and whether gradients are themselves recorded: where another tape is open.

``.grad`` is never written.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any

from genesis.base.errors import ArgumentError, ArgumentValueError, DTypeError, GraphError, ShapeError, message
from genesis.base.pytree import tree_flatten, tree_unflatten
from genesis.core.call.refusal import switch
from genesis.core.graph import engine
from genesis.core.graph.modes import grad_mode, no_grad
from genesis.core.graph.node import AccumulateGrad, edge_key, next_number, node_of
from genesis.core.graph.seeds import seed_for
from genesis.core.graph.site import warn_user
from genesis.core.graph.tensor import Tensor
from genesis.ops.shapes.join import stack

_open: ContextVar[tuple[GradientTape, ...]] = ContextVar("genesis_open_tapes", default=())


class GradientTape:
    """Computes gradients of what is done inside its ``with`` block.

    Args:
        persistent: gradients may be asked for more than once; the graph is kept until the tape is gone
        watch_accessed_variables: also differentiate with respect to tensors that require grad by themselves, not only
            those given to `watch`

    >>> import genesis
    >>> x = genesis.tensor(3.0)
    >>> with genesis.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = x * x
    >>> tape.gradient(y, x), x.requires_grad
    (tensor(6.), False)
    """

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        self._persistent = switch("GradientTape", "persistent", persistent)
        self._watch_accessed = switch("GradientTape", "watch_accessed_variables", watch_accessed_variables)
        self._watched: dict[int, tuple[Tensor, Any]] = {}  # id -> the tensor and its edge
        # nodes of targets, while they live
        self._roots: weakref.WeakKeyDictionary[Any, None] = weakref.WeakKeyDictionary()
        self._mine: list[tuple[Tensor, Any]] = []  # constants that this tape made require grad
        self._before: list[bool] = []  # grad modes to go back to
        self._used = ""
        self._opened = 0  # the number that a node had then would be the first to be recorded by this tape

    # ---- recording

    def __enter__(self) -> GradientTape:
        if self in _open.get():
            raise GraphError(
                message("GradientTape", "the tape is recording already", hint="a nested block needs a tape of its own")
            )
        self._opened = self._opened or next_number() + 1
        self._before.append(grad_mode.get())
        _open.set((*_open.get(), self))
        grad_mode.set(True)
        self._hold()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _open.set(tuple(tape for tape in _open.get() if tape is not self))
        grad_mode.set(self._before.pop())
        self._let_go()

    def _hold(self) -> None:
        """Watched constants require grad, with the nodes that they had before."""
        for x, edge in self._mine:
            if x._node is None:
                x._own_node = edge
                x.requires_grad_()

    def _let_go(self) -> None:
        """Watched constants are constants again; the tape knows their nodes."""
        for x, edge in self._mine:
            if x._node is edge:
                x.requires_grad_(False)

    def watch(self, tensor: Any) -> None:
        """Record what is done with a tensor (or with all in a container) from here to the end of the block.

        Raises:
            RuntimeError: the tape is not recording, or a dtype that cannot have gradients
            TypeError: not a tensor
        """
        if self not in _open.get():
            raise GraphError(
                message(
                    "GradientTape.watch", "the tape is not recording", hint="with GradientTape() as tape: tape.watch(x)"
                )
            )
        for x in tree_flatten(tensor)[0]:
            if not isinstance(x, Tensor):
                raise ArgumentError(message("GradientTape.watch", f"expected a tensor, got {type(x).__name__}"))
            if not (x.is_floating_point() or x.is_complex()):
                raise DTypeError(
                    message(
                        "GradientTape.watch",
                        f"a tensor of dtype {x.dtype} cannot have a gradient",
                        [("tensor", x._spec())],
                        "watch x.float()",
                    )
                )
            if x._node is None:
                x.requires_grad_()
                self._mine.append((x, x._node))
            self._watched[id(x)] = (x, x._node)

    @contextmanager
    def stop_recording(self) -> Iterator[None]:
        """A block inside which nothing is recorded, by this tape or another.

        Raises:
            RuntimeError: the tape is not recording
        """
        if self not in _open.get():
            raise GraphError(message("GradientTape.stop_recording", "the tape is not recording"))
        with no_grad():
            yield

    def reset(self) -> None:
        """Forget everything: what was watched, what was recorded, and that gradients were asked for."""
        self._let_go()
        self._watched.clear()
        self._roots.clear()
        self._mine.clear()
        self._used = ""
        self._opened = next_number() + 1 if self in _open.get() else 0

    def watched_variables(self) -> tuple[Tensor, ...]:
        """The tensors given to `watch`, then the leaves on which the targets differentiated so far (and still in use)
        depend.
        """
        variables = [x for x, _ in self._watched.values()]
        mine = {id(edge) for _, edge in self._watched.values()}
        for edge in _below(list(self._roots)) if self._watch_accessed else ():
            if isinstance(edge, AccumulateGrad) and id(edge) not in mine and edge.variable is not None:
                variables.append(edge.variable)
        return tuple(variables)

    # ---- gradients

    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: str = "none",
        *,
        create_graph: bool | None = None,
    ) -> Any:
        """The gradients of the sum of ``target`` (one tensor or a container of them), in the structure of ``sources``.

        What was computed before the tape was opened is not on it: a source that a target depends on through that gets
        no gradient (or only that of the other ways), and a warning says so.

        Args:
            output_gradients: what to start from, in the structure of ``target``; ones where it is None
            unconnected_gradients: ``"none"`` gives None for a source on which no target depends, ``"zero"`` zeros
            create_graph: record the gradients; by default, if another tape is open, or this one is and is persistent

        Raises:
            RuntimeError: asked for a second time of a tape that is not persistent
            TypeError: a target or source that is no tensor
            ValueError: an unknown unconnected_gradients, or as many output gradients as there are not targets
        """
        self._begin("gradient", unconnected_gradients)
        targets, structure = _tensors("gradient", "target", target)
        listed, shape = _tensors("gradient", "source", sources)
        given: list[Any] = [None] * len(targets)
        if output_gradients is not None:
            given, given_structure = tree_flatten(output_gradients)
            if given_structure.num_leaves != structure.num_leaves:
                raise ArgumentValueError(
                    message("GradientTape.gradient", f"{len(given)} output_gradients for {len(targets)} targets")
                )
        record, keep = self._modes(create_graph)
        gradients = self._pulled(targets, given, listed, record, keep)
        return tree_unflatten(
            [_connected(g, x, unconnected_gradients) for g, x in zip(gradients, listed, strict=True)], shape
        )

    def jacobian(self, target: Tensor, sources: Any, unconnected_gradients: str = "none") -> Any:
        """The derivative of every element of ``target`` by every element of each source, ``target.shape +
        source.shape``.

        Raises: as `gradient`.

        >>> import genesis
        >>> x = genesis.tensor([1.0, 2.0])
        >>> with genesis.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = x ** 2
        >>> tape.jacobian(y, x)
        tensor([[2., 0.],
                [0., 4.]])
        """
        self._begin("jacobian", unconnected_gradients)
        (y,), _ = _tensors("jacobian", "target", [target])
        listed, shape = _tensors("jacobian", "source", sources)
        rows = self._rows(y, listed, [_unit(y, i, 1) for i in range(y.numel())])
        columns = [[row[i] for row in rows] for i in range(len(listed))]
        return tree_unflatten(
            [
                _stacked(g, 0, x, (*y.shape, *x.shape), unconnected_gradients)
                for g, x in zip(columns, listed, strict=True)
            ],
            shape,
        )

    def batch_jacobian(self, target: Tensor, source: Tensor, unconnected_gradients: str = "none") -> Any:
        """The Jacobian of each example by itself: ``target`` (B, ...) and ``source`` (B, ...) give (B, ..., ...).

        Row b of the target must depend on row b of the source only; this is not checked.

        Raises:
            RuntimeError: as `gradient`; no, or different, first dimensions
        """
        self._begin("batch_jacobian", unconnected_gradients)
        (y, x), _ = _tensors("batch_jacobian", "target and source", [target, source])
        if not y.ndim or not x.ndim or y.shape[0] != x.shape[0]:
            raise ShapeError(
                message("GradientTape.batch_jacobian", "the first dimensions of target and source differ",
                        [("target", y._spec()), ("source", x._spec())])
            )  # fmt: skip
        rows = self._rows(y, [x], [_unit(y, i, y.shape[0]) for i in range(math.prod(y.shape[1:]))])
        return _stacked([row[0] for row in rows], 1, x, (*y.shape, *x.shape[1:]), unconnected_gradients)

    # ---- how

    def _begin(self, what: str, unconnected: str) -> None:
        if unconnected not in ("none", "zero"):
            raise ArgumentValueError(
                message(f"GradientTape.{what}", f"unconnected_gradients is {unconnected!r}, expected 'none' or 'zero'")
            )
        if self._used and not self._persistent:
            raise GraphError(
                message(
                    f"GradientTape.{what}",
                    f"a tape that is not persistent gives gradients once, it gave its {self._used} already",
                    hint="GradientTape(persistent=True)",
                )
            )
        self._used = what

    def _modes(self, create_graph: bool | None) -> tuple[bool, bool]:
        """Whether to record the gradients, and whether to keep the graph."""
        others = [tape for tape in _open.get() if tape is not self]
        inside = self._persistent and self in _open.get()
        record = grad_mode.get() and (bool(others) or inside) if create_graph is None else create_graph
        return record, record or self._persistent or bool(others)

    def _edge(self, x: Tensor) -> Any:
        watched = self._watched.get(id(x))
        return x._node if watched is None else watched[1]

    def _rows(self, y: Tensor, sources: list[Tensor], seeds: list[Tensor]) -> list[list[Tensor | None]]:
        record, keep = self._modes(None)
        last = len(seeds) - 1
        return [self._pulled([y], [seed], sources, record, keep or i < last) for i, seed in enumerate(seeds)]

    def _pulled(
        self, targets: list[Tensor], given: Sequence[Any], sources: list[Tensor], record: bool, keep: bool
    ) -> list[Tensor | None]:
        roots = [(edge, y, g) for y, g in zip(targets, given, strict=True) if (edge := self._edge(y)) is not None]
        if not roots:
            return [None] * len(sources)
        self._roots.update((node_of(edge), None) for edge, _, _ in roots)
        seeds = [seed_for(y, y._ones(tuple(y._array.shape), y._array.dtype) if g is None else g) for _, y, g in roots]
        edges = [self._edge(x) for x in sources]
        if not self._watch_accessed:
            edges = [edge if edge is not None and self._is_watched(edge) else None for edge in edges]
        wanted = [edge for edge in edges if edge is not None]
        if not wanted:
            return [None] * len(sources)
        since = self._opened if self._warned_of_earlier([edge for edge, _, _ in roots], wanted) else 0
        self._hold()  # what was saved of a watched constant must not be taken for a constant in a recorded gradient
        try:
            gradients = iter(
                engine.run(
                    [edge for edge, _, _ in roots],
                    seeds,
                    keep_graph=keep,
                    create_graph=record,
                    inputs=wanted,
                    accumulate=False,
                    since=since,
                )
            )
        finally:
            if self not in _open.get():
                self._let_go()
        pulled = [None if edge is None else next(gradients) for edge in edges]
        return [g if g is None or record else g._alias(None) for g in pulled]

    def _warned_of_earlier(self, roots: list[Any], sources: list[Any]) -> bool:
        """Whether targets depend on what was computed before the tape was opened; a warning, if a source is lost by
        that.
        """
        nodes = [node_of(edge) for edge in _below(roots)]
        earlier = [node for node in nodes if node._sequence_nr() < self._opened]
        keys = {edge_key(edge) for edge in sources}
        if any(edge_key(edge) in keys for edge in _below([e for node in earlier for e in node._edges])):
            last = max(earlier, key=lambda node: node._sequence_nr())
            site = last.where()
            warn_user(
                message(
                    "GradientTape",
                    "a target depends on a source through what was computed before the tape was opened, and there "
                    "the gradient ends",
                    [("the last of it", repr(last)), *([] if site is None else [("computed at", site)])],
                    "compute it inside the `with`",
                )
            )
        return bool(earlier)

    def _is_watched(self, edge: Any) -> bool:
        """Whether an edge is a watched tensor's, or leads to one."""
        watched = {edge_key(p) for _, p in self._watched.values()}
        return any(edge_key(p) in watched for p in _below([edge]))


def _below(edges: list[Any]) -> Iterator[Any]:
    """Edges, and all those that they lead to."""
    seen: set[Any] = set()
    stack = list(edges)
    while stack:
        edge = stack.pop()
        if edge is None or edge_key(edge) in seen:
            continue
        seen.add(edge_key(edge))
        yield edge
        stack.extend(node_of(edge)._edges)


def _tensors(name: str, what: str, tree: Any) -> tuple[list[Tensor], Any]:
    leaves, structure = tree_flatten(tree)
    for x in leaves:
        if not isinstance(x, Tensor):
            raise ArgumentError(message(f"GradientTape.{name}", f"a {what} is {type(x).__name__}, expected a tensor"))
    return leaves, structure


def _connected(g: Tensor | None, x: Tensor, unconnected: str) -> Tensor | None:
    return x._zeros(tuple(x._array.shape), x._array.dtype) if g is None and unconnected == "zero" else g


def _stacked(rows: list[Any], dim: int, x: Tensor, shape: tuple[int, ...], unconnected: str) -> Tensor | None:
    """Rows of a Jacobian as one tensor; rows are None where nothing connects the source to the target."""
    if rows and rows[0] is not None:
        return stack(rows, dim).reshape(shape)
    return x._zeros(shape, x._array.dtype) if not rows or unconnected == "zero" else None


def _unit(y: Tensor, i: int, examples: int) -> Tensor:
    """Zeros, with a one at element i of every example."""
    seed = y._zeros(tuple(y._array.shape), y._array.dtype)
    if y.numel():
        seed.numpy_view().reshape(examples, -1)[:, i] = 1
    return seed
