"""A function and its arguments, called again and again: other values, dtypes, layouts, and inputs that require grad.

    calls = Calls(F.apply, (x, w), {}, F)
    run = calls(arrays)                    # fresh tensors in, a recorded call out
    gx, gw = run.grads(seeds)              # gradients as arrays, None where there is none

Arguments are trees (`genesis.base.pytree`); their floating and complex tensors are the *inputs*. A run copies
everything it passes, so a function that writes to its arguments spoils nothing, and starts random streams at one state.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from genesis.autograd.gradients import grad
from genesis.base.errors import GenesisError, InplaceError
from genesis.base.pytree import TreeDef, tree_flatten, tree_unflatten
from genesis.core.functions.function import Function, FunctionCtx
from genesis.core.graph.generator import get_rng_state, set_rng_state
from genesis.core.graph.hooks import SPECIAL
from genesis.core.graph.node import FREED, Node
from genesis.core.graph.tensor import Tensor, wrap

Array = np.ndarray[Any, Any]


def is_floating(value: Any) -> bool:
    """Whether a value is a tensor that can carry a gradient."""
    return isinstance(value, Tensor) and (value.is_floating_point() or value.is_complex())


def resolve(function: Any) -> tuple[Callable[..., Any], type[Function] | None, str]:
    """What to call, the `Function` class behind it if there is one, and its name."""
    if isinstance(function, type) and issubclass(function, Function):
        return function.apply, function, function.__name__
    owner = getattr(function, "__self__", None)
    if isinstance(owner, type) and issubclass(owner, Function):
        return function, owner, owner.__name__
    return function, None, getattr(function, "__name__", type(function).__name__)


def argument_names(
    function: Any, owner: type[Function] | None, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[str]:
    """The parameter that each positional argument belongs to, then the keywords."""
    try:
        # of a module, too, the parameters are those of forward
        parameters = list(
            inspect.signature(owner.forward if owner else getattr(function, "forward", function)).parameters.values()
        )
    except (TypeError, ValueError):  # some built-in functions have no signature
        parameters = []
    if owner is not None and getattr(owner, "setup_context", None) is getattr(Function, "setup_context", None):
        parameters = parameters[1:]  # ctx
    names: list[str] = []
    for i in range(len(args)):
        p = parameters[min(i, len(parameters) - 1)] if parameters else None
        if (
            p is None
            or p.kind not in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL)
            or names[-1:] == [p.name]
        ):
            names.append(f"argument {i}")
        else:
            names.append(p.name if p.kind is not p.VAR_POSITIONAL else f"{p.name}[{i - parameters.index(p)}]")
    return [*names, *kwargs]


def leaf_names(prefix: str, structure: TreeDef) -> list[str]:
    """``['params.w', 'params.b']``: how a user reaches each leaf of a tree."""
    if structure.kind is None:
        return [prefix]
    fields = (
        structure.rest
        if not issubclass(structure.kind, dict) and isinstance(structure.rest, tuple)
        else getattr(structure.kind, "_fields", None)
    )
    keys = (
        [f"[{k!r}]" for k in structure.rest]
        if issubclass(structure.kind, dict)
        else [f".{k}" for k in fields]
        if fields
        else [f"[{i}]" for i in range(len(structure.children))]
    )
    return [
        name for key, child in zip(keys, structure.children, strict=True) for name in leaf_names(prefix + key, child)
    ]


def widened(array: Array) -> Array:
    """A copy in double precision."""
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def strided(array: Array) -> Array:
    """The same values in memory that is not contiguous: every second element of a larger array, turned around."""
    if not array.ndim:
        return array.copy()
    wide = np.full([2 * n for n in array.shape[::-1]], np.nan, array.dtype)
    view = wide[tuple(slice(None, None, 2) for _ in array.shape)].T
    view[...] = array
    return view


class Calls:
    """A function with its arguments and the names of its inputs; calling it makes a `Run`."""

    def __init__(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], every: bool = True) -> None:
        self.function, self.owner, self.name = resolve(function)
        self.leaves, self.structure = tree_flatten((list(args), kwargs))
        pieces = [*args, *kwargs.values()]
        titles = argument_names(function, self.owner, args, kwargs)
        titles = [
            n for title, piece in zip(titles, pieces, strict=True) for n in leaf_names(title, tree_flatten(piece)[1])
        ]
        floating = [i for i, leaf in enumerate(self.leaves) if is_floating(leaf)]
        self.positions = [i for i in floating if self.leaves[i].requires_grad] or (floating if every else [])
        self.names = [titles[i] for i in self.positions]
        self.arrays: list[Array] = [widened(self.leaves[i].detach().numpy_view()) for i in self.positions]
        self.random_state = get_rng_state()
        self.through = False  # whether inputs are passed through a clone, because the function writes to them

    def __call__(
        self, arrays: Sequence[Array] | None = None, *, dtype: Any = None, layout: Callable[[Array], Array] = np.copy,
        wanted: Sequence[int] | None = None,
    ) -> Run:  # fmt: skip
        """Call the function on ``arrays`` (double precision unless ``dtype``); ``wanted`` says which inputs require
        grad.
        """
        inputs, wanted = [], range(len(self.positions)) if wanted is None else wanted
        for k, array in enumerate(self.arrays if arrays is None else arrays):
            inputs.append(wrap(layout(_cast(array, dtype))).requires_grad_(k in wanted))
        passed: list[Any] = [self._constant(leaf, dtype) for leaf in self.leaves]
        for position, x in zip(self.positions, inputs, strict=True):
            passed[position] = x.clone() if self.through else x
        edges = [passed[position]._node for position in self.positions]
        args, kwargs = tree_unflatten(passed, self.structure)
        set_rng_state(self.random_state)
        result = self.function(*args, **kwargs)
        outs = [y for y in tree_flatten(result)[0] if is_floating(y)]
        return Run(inputs, [passed[position] for position in self.positions], edges, outs)

    def _constant(self, leaf: Any, dtype: Any) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        array = leaf.detach().numpy_view()
        return wrap(_cast(array, dtype) if is_floating(leaf) else array.copy())

    def probe(self) -> Run:
        """The first call; finds out whether the function writes to its inputs."""
        try:
            return self()
        except InplaceError:
            self.through = True
            return self()

    @contextmanager
    def random_kept(self) -> Iterator[None]:
        """Leave the default generator as it was found."""
        before = get_rng_state()
        try:
            yield
        finally:
            set_rng_state(before)


def _cast(array: Array, dtype: Any) -> Array:
    wide = array if array.dtype in (np.float64, np.complex128) else widened(array)
    if dtype is None or array.dtype.kind == "c":
        return wide.astype(np.complex64) if dtype == np.float32 else wide.copy()
    return wide.astype(dtype)


@dataclass(slots=True)
class Run:
    """One recorded call: the leaves, what was passed (they or clones of them), the floating outputs."""

    inputs: list[Tensor]
    passed: list[Tensor]
    edges: list[Any]  # where the gradient of each of them goes
    outs: list[Tensor]

    def grads(self, seeds: Sequence[Any], create_graph: bool = False, retain: bool = False) -> list[Any]:
        """The gradients of the inputs as arrays (tensors with ``create_graph``); None where none arrives.

        ``None`` among ``seeds`` leaves an output out. Inputs that do not require grad give None.
        """
        pairs = [(y, s) for y, s in zip(self.outs, seeds, strict=True) if y.requires_grad and s is not None]
        wanted = [x for x in self.inputs if x.requires_grad]
        if not pairs or not wanted:
            return [None] * len(self.inputs)
        given = [s if isinstance(s, Tensor) else wrap(np.asarray(s, y._array.dtype)) for y, s in pairs]
        gradients = iter(
            grad(
                [y for y, _ in pairs],
                wanted,
                given,
                create_graph=create_graph,
                retain_graph=retain or None,
                allow_unused=True,
            )
        )
        result = [next(gradients) if x.requires_grad else None for x in self.inputs]
        return list(result) if create_graph else [None if g is None else g.detach().numpy_view() for g in result]

    def nodes(self) -> list[FunctionCtx]:
        """The nodes of `Function` classes behind the outputs."""
        stack: list[Node | None] = [y.grad_fn for y in self.outs]
        seen: dict[int, Node] = {}
        while stack:
            node = stack.pop()
            if node is not None and id(node) not in seen:
                seen[id(node)] = node
                stack.extend(n for n, _ in node.next_functions)
        return [n for n in seen.values() if isinstance(n, FunctionCtx)]


@dataclass(slots=True)
class Pull:
    """What one call of a backward was given, what it returned, and what it left behind."""

    name: str
    given: list[Array]  # copies of the gradients, made before the call
    left: list[Array]  # the same gradients after it
    saved: list[Array]
    saved_after: list[Array]
    returned: list[Tensor | None] = field(default_factory=list)
    error: Exception | None = None


def held_tensors(node: FunctionCtx) -> list[Tensor]:
    """The tensors that a node holds: saved, and set as attributes."""
    saved = () if node._saved is FREED else node._saved
    attributes = [leaf for held in (node._held or {}).values() if held is not FREED for leaf in held[0]]
    return [t for t in (*saved, *attributes, *vars(node).values()) if isinstance(t, Tensor)]


def watch(node: FunctionCtx, pulls: list[Pull]) -> None:
    """Note every call of a node's backward in ``pulls``. (The node then refers to itself: not for counting leaks.)"""
    original = node._pull_special

    def pull(g: Any) -> Any:
        given = [t for t in (g if isinstance(g, list | tuple) else [g]) if isinstance(t, Tensor)]
        held = held_tensors(node)
        note = Pull(
            type(node).__name__.removesuffix("Backward"),
            [t._array.copy() for t in given],
            [],
            [t._array.copy() for t in held],
            [],
        )
        pulls.append(note)
        try:
            results = original(g)
        except Exception as error:
            note.error = error
            raise
        note.left, note.saved_after = [t._array for t in given], [t._array for t in held]
        note.returned = [r if isinstance(r, Tensor) else None for r in results]
        return results

    node._pull_special = pull
    node._hooks = node._hooks or SPECIAL  # so that the engine calls it


@contextmanager
def saving_noted(owner: type[Function]) -> Iterator[list[tuple[Tensor, Array]]]:
    """Note each tensor that `save_for_backward` is given, with a copy of its values at that moment."""
    notes: list[tuple[Tensor, Array]] = []

    def save_for_backward(ctx: FunctionCtx, *tensors: Any) -> None:
        notes.extend((t, t._array.copy()) for t in tensors if isinstance(t, Tensor))
        FunctionCtx.save_for_backward(ctx, *tensors)

    owner._ctx.save_for_backward = save_for_backward
    try:
        yield notes
    finally:
        del owner._ctx.save_for_backward


def refusal(error: BaseException) -> str:
    """The first line of an error, for a table."""
    text = str(error).strip().splitlines()
    return text[0] if text and isinstance(error, GenesisError) else f"{type(error).__name__}: {text[0] if text else ''}"
