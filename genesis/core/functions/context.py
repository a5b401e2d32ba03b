"""`FunctionCtx`: what one call of a `Function` leaves for its backward. It *is* the node of the recorded graph.

A tensor may reach it by any door, `save_for_backward`, an attribute or `save_variable`: all are checked for later
writes, freed after backward, and never hold the output they describe.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from genesis.base.errors import ArgumentError, GraphError, InplaceError, message
from genesis.base.pytree import TreeDef, flatten_up_to, tree_flatten, tree_unflatten
from genesis.core.functions import second_order
from genesis.core.graph import autocast
from genesis.core.graph.escapes import open_watch
from genesis.core.graph.hooks import SPECIAL
from genesis.core.graph.modes import ACTIVE, grad_mode
from genesis.core.graph.node import FREED, FUNCTION, NOWHERE, Node, freed_message, stale_message
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.version import INFERENCE, WRITES

if TYPE_CHECKING:
    from genesis.core.functions.function import Function


recording = grad_mode.get


class FunctionCtx(Node):
    """What `forward` is given first and `backward` gets back."""

    __slots__ = ("__dict__", "_outputs")

    _function: ClassVar[type[Function]]
    _backward: Callable[..., Any]  # of the function, as a method of its nodes: found faster than on the class
    _role = FUNCTION

    # Rare things are attributes of the instance; these are what an ordinary call has.
    materialize_grads: bool = True
    _structures: tuple[TreeDef | None, ...] | None = None  # of arguments that are containers of tensors
    # arguments whose gradients may be left out: the last ones; all plain keywords
    _optional: tuple[tuple[int, ...], tuple[int, ...]] = (), ()
    _result: TreeDef | None = None  # of a result that is a container
    _origins: tuple[Any, ...] = ()  # where saved tensors come from, see `core/functions/second_order.py`
    _held: dict[str, Any] | None = None  # attributes that hold tensors: (leaves, structure, origins)
    _autocast: autocast.Autocast | None = None  # the mode of the forward, in which backward runs, too
    _call: second_order.Call | None = None  # how to run forward again
    _captured: tuple[str, ...] = ()  # names of tensors that are no arguments; their edges are the last ones
    _dirty: tuple[Tensor, ...] = ()
    _non_differentiable: tuple[Tensor, ...] = ()
    _constants: tuple[Tensor, ...] = ()

    def _begin(self, edges: tuple[Any, ...]) -> None:
        """What a context is before `forward` runs; the rest is set when the result is there."""
        self._edges, self._saved, self._hooks, self._epoch, self._outputs = edges, (), None, WRITES[0], None

    # ---- for forward

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for backward, in order; further calls add to them. None, and a number instead of a tensor,
        are kept, too.

        Raises:
            TypeError: (when the call is recorded) something else; set it as an attribute of ctx instead
        """
        self._saved = (*self._saved, *tensors) if self._saved else tensors

    def check_saved(self) -> None:
        for index, t in enumerate(self._saved):
            if not isinstance(t, Tensor) and t is not None and not isinstance(t, int | float | complex):
                raise ArgumentError(
                    message(
                        f"{self._title()}.save_for_backward",
                        f"argument {index} is {type(t).__name__}, expected a tensor, a number or None",
                        operands=self._called_at(),
                        hint="keep other values as attributes, ctx.value = ...",
                    )
                )

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep tensors for `jvp`, which finds them in ``saved_tensors``; nothing is kept where no forward mode is
        running.
        """
        if "_for_forward" in self.__dict__:
            self.__dict__["_for_forward"] = tensors

    @functools.cached_property
    def saved_variables(self) -> dict[str, Any]:
        """Values by name, for backward."""
        return {}

    def save_variable(self, name: str, value: Any) -> None:
        """Keep any value under a name, for ``ctx.saved_variables[name]``."""
        self.saved_variables[name] = value

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Declare inputs that forward writes to (they are found anyway); it should return them."""
        self._dirty = (*self._dirty, *tensors)

    def mark_non_differentiable(self, *outputs: Tensor) -> None:
        """Declare outputs that carry no gradient."""
        self._non_differentiable = (*self._non_differentiable, *outputs)

    def mark_constant(self, *tensors: Tensor) -> None:
        """Declare saved tensors that do not depend on the inputs, a dropout mask: they never stand in the way of a
        second derivative.
        """
        self._constants = (*self._constants, *tensors)

    def set_materialize_grads(self, value: bool) -> None:
        """Whether gradients of unused outputs arrive as zeros (the default) or as None."""
        self.materialize_grads = bool(value)

    # ---- for backward

    @property
    def needs_input_grad(self) -> tuple[bool, ...]:
        """For each argument of forward, whether its gradient is wanted; all False when nothing is recorded."""
        needed = [e is not None for e in self._edges[: len(self._edges) - len(self._captured)]]
        if self._structures is None:
            return tuple(needed)
        wanted = iter(needed)
        return tuple([any([next(wanted) for _ in range(1 if s is None else s.num_leaves)]) for s in self._structures])

    saved_tensors = Node.__dict__["_saved"]  # checked by `pull` before backward sees it: reading it costs nothing

    def _unpack(self) -> tuple[Any, ...]:
        saved = super()._unpack()
        if not grad_mode.get() or not self._origins:
            return saved
        return tuple(
            [
                second_order.with_origin(self, t, o, f"saved tensor {i}")
                for i, (t, o) in enumerate(zip(saved, self._origins, strict=True))
            ]
        )

    def _release(self) -> None:
        if self._held:
            self._held = dict.fromkeys(self._held, FREED)
        self._call = None
        super()._release()

    def _title(self) -> str:
        return self._function.__name__ if hasattr(type(self), "_function") else "Context"

    def slot_name(self, index: int) -> str:
        hidden = index - (len(self._edges) - len(self._captured))
        if hidden >= 0 and self._captured:
            return self._captured[hidden]
        if self._structures is not None:  # an edge is a leaf of one of the arguments
            for argument, structure in enumerate(self._structures):
                count = 1 if structure is None else structure.num_leaves
                if index < count:
                    name = self._function._parameter_name(argument)
                    return name if structure is None else f"{name} (tensor {index} in it)"
                index -= count
        return self._function._input_name(self, index)

    # ---- called by the engine

    def _pull(self, g: Any) -> Sequence[Any]:
        before = WRITES[0]
        if self._epoch is not before and self._stale():
            return self._pull_special(g)
        return self._settled(self._backward(g), before)

    def _settled(self, results: Any, before: int) -> Sequence[Any]:
        """What backward returned, one gradient for each edge; ``before`` is the number of the last write before it ran."""
        if results.__class__ is not tuple or len(results) != len(self._edges):
            results = self._matched(results)
        if before is not WRITES[0]:
            self._check_own_writes(before)
        return results  # type: ignore[no-any-return]

    def _stale(self) -> bool:
        """Whether a saved tensor was freed or written to."""
        if self._saved is FREED:
            return True
        for t in self._saved:
            version = t._counter if isinstance(t, Tensor) else None
            if version is not None and (version.stamp > self._epoch or t._detached > self._epoch):
                return True
        return self._epoch < 0

    def _pull_special(self, g: Any) -> Sequence[Any]:
        """Several outputs, containers, something wrong, or a backward that is itself recorded."""
        before, saved = WRITES[0], self._saved
        if (
            not recording()
            and not ACTIVE
            and self._autocast is None
            and not (self._epoch is not before and self._stale())
        ):
            results = self._call_backward(g)
            return self._settled(
                results if self._structures is None and not self._captured else self._matched(results), before
            )
        try:
            self._saved = self._unpack() if self._edges else saved
        except GraphError as error:
            self._saved = Unusable(error)  # type: ignore[assignment]
        try:
            with second_order.watching(self) as watch, autocast.restored(self._autocast):
                results = self._only_tensors(self._matched(self._call_backward(g)))
                if watch is not None:
                    results = second_order.checked(self, watch, g, results)
        finally:
            self._saved = saved
        if before is not WRITES[0]:
            self._check_own_writes(before)
        return results

    def _call_backward(self, g: Any) -> Any:
        if self._outputs is None:
            return self._backward(g)
        if self._result is None:
            return self._backward(*g)
        tree = tree_unflatten(g, self._result)
        return self._backward(*tree) if type(tree) in (tuple, list) else self._backward(tree)

    def _matched(self, results: Any) -> tuple[Any, ...]:
        """One gradient for each edge, from a single one, a tuple, or a dict by parameter name."""
        structures, hidden = self._structures, self._captured
        if hidden:
            narrow = self._arguments_only()
            rest = narrow._by_name(
                self._without_captured(results), len(narrow._edges if structures is None else structures)
            )
            return (*narrow._matched(rest), *[results[name] for name in hidden])
        count = len(self._edges) if structures is None else len(structures)
        if isinstance(results, dict) and not (
            count == 1 and structures is not None and results.keys() != {self.slot_name(0)}
        ):
            results = self._by_name(results, count)
        if not isinstance(results, tuple | list) or (hasattr(results, "_fields") and count == 1):
            results = (results,)
        elif structures is not None and count == 1 and len(results) != 1:
            results = (results,)  # the one argument is a container, and so is its gradient
        if len(results) != count:
            results = self._counted(tuple(results), count)
        if structures is None:
            return tuple(results)
        flat: list[Any] = []
        for index, (structure, result) in enumerate(zip(structures, results, strict=True)):
            if structure is None:
                flat.append(result)
                continue
            try:
                flat.extend(flatten_up_to(structure, result))
            except ValueError as error:
                raise GraphError(
                    message(
                        f"{self._title()}.backward",
                        f"the gradient of {self._function._parameter_name(index)} has another structure: {error}",
                        operands=[("expected", structure)],
                        hint="return the structure of the argument, or None",
                    )
                ) from None
        return tuple(flat)

    def _without_captured(self, results: Any) -> dict[str, Any]:
        """The gradients of the arguments; those of captured tensors come by name, too."""
        missing = [name for name in self._captured if not isinstance(results, dict) or name not in results]
        if missing:
            raise GraphError(
                message(
                    f"{self._title()}.backward",
                    f"the gradient of the captured {missing[0]} is missing",
                    operands=self._called_at(),
                    hint=f"return gradients by name, {{..., '{missing[0]}': gradient}}, None where there is none",
                )
            )
        return {name: g for name, g in results.items() if name not in self._captured}

    def _arguments_only(self) -> FunctionCtx:
        """A context with the edges of the arguments, to match their gradients."""
        narrow = type(self)()
        narrow._outputs = None
        narrow._edges, narrow._structures = self._edges[: len(self._edges) - len(self._captured)], self._structures
        narrow._optional = self._optional
        narrow._code, narrow._at = self._code, self._at
        return narrow

    def _by_name(self, results: dict[Any, Any], count: int) -> tuple[Any, ...]:
        names = [self._function._parameter_name(i) for i in range(count)]
        unknown = [name for name in results if name not in names]
        if unknown:
            raise GraphError(
                message(
                    f"{self._title()}.backward",
                    f"returned a gradient for {unknown[0]!r}, the arguments are {', '.join(names)}",
                )
            )
        return tuple([results.get(name) for name in names])

    def _counted(self, results: tuple[Any, ...], count: int) -> tuple[Any, ...]:
        if len(results) > count and all(r is None for r in results[count:]):
            return results[:count]  # arguments left to their defaults
        last, keywords = self._optional
        if len(results) + len(keywords) == count:
            given = iter(results)
            return tuple([None if index in keywords else next(given) for index in range(count)])
        if len(results) < count <= len(results) + len(last):
            return (*results, *[None] * (count - len(results)))
        raise GraphError(
            message(
                f"{self._title()}.backward",
                f"returned {len(results)} gradients, expected {count}",
                operands=self._called_at(),
                hint="return one for each argument of forward, None where there is none",
            )
        )

    def _only_tensors(self, results: Sequence[Any]) -> Sequence[Any]:
        """A gradient for an argument that takes none is ignored; any other that is no tensor is an error."""
        for edge, result in zip(self._edges, results, strict=True):
            if edge is not None and result is not None and not isinstance(result, Tensor):
                raise self.no_tensor(edge, result)
        return results

    def _called_at(self) -> list[tuple[str, object]]:
        site = self.where()
        return [] if site is None else [("called at", site)]

    def _check_own_writes(self, before: int) -> None:
        """A backward that wrote to an input or an output that forward saved changed what others have, too. What forward
        made for itself is its own: a second backward finds it written to.
        """
        saved = self._saved if self._saved is not FREED else ()
        for index, t in enumerate(saved):
            version = getattr(t, "_counter", None)
            if version is not None and version.stamp > before and not second_order.is_own(self, index):
                raise InplaceError(
                    message(f"{self._title()}.backward", "wrote to a tensor that forward saved, with "
                                                         f"{version.writer}",
                            operands=[("saved", t._spec()), *self._called_at()], hint="clone() it first")
                )  # fmt: skip


class Context(FunctionCtx):
    """A context of its own, outside of any call.

    >>> import genesis
    >>> ctx = genesis.autograd.Context()
    >>> ctx.save_for_backward(genesis.ones(2)); ctx.save_variable("scale", 3)
    >>> ctx.saved_tensors, ctx.saved_variables
    ((tensor([1., 1.]),), {'scale': 3})
    """

    __slots__ = ()

    def __init__(self) -> None:
        self._begin(())
        self._code, self._at = NOWHERE


class HoldingCtx:
    """Mixed into the class of a context whose attributes hold tensors: reading one checks it like a saved tensor.

    (Python reads every attribute of a class with ``__getattr__`` at a third of the speed, so ordinary contexts have
    none.)
    """

    __slots__ = ()

    def __getattr__(self: Any, name: str) -> Any:
        held = self._held
        if name not in held:
            raise AttributeError(
                message(self._title(), f"ctx has no attribute {name!r}", hint=f"forward sets it: ctx.{name} = ...")
            )
        if held[name] is FREED:
            raise GraphError(freed_message(self))
        leaves, structure, origins = held[name]
        for leaf in leaves:
            version = getattr(leaf, "_counter", None)
            if (
                version is not None
                and version is not INFERENCE
                and (version.stamp > self._epoch or leaf._detached > self._epoch)
            ):
                raise InplaceError(stale_message(self, leaf, version))
        # a graph that backward makes for itself takes them as they are
        if recording() and open_watch.get() is not None:
            names = [f"ctx.{name}" if len(leaves) == 1 else f"ctx.{name}, tensor {i}" for i in range(len(leaves))]
            leaves = [second_order.with_origin(self, t, o, n) for t, o, n in zip(leaves, origins, names, strict=True)]
        return tree_unflatten(leaves, structure)

    def __delattr__(self: Any, name: str) -> None:
        if name not in self._held:
            return object.__delattr__(self, name)
        self._held = {other: value for other, value in self._held.items() if other != name}
        self.__dict__.pop(name, None)  # what backward set in its place

    def saved_variables_(self: Any) -> Any:
        if "saved_variables" in self._held:
            return self.__getattr__("saved_variables")
        return self.__dict__.setdefault("saved_variables", {})


class Unusable:
    """Stands for saved tensors that were freed or written to: an error for whoever looks at them."""

    def __init__(self, error: GraphError) -> None:
        self._error = error

    def _refuse(self, *_: Any) -> Any:
        raise self._error

    __iter__ = __getitem__ = __len__ = __bool__ = _refuse


def hold_attributes(ctx: FunctionCtx, origin: Any) -> None:
    """Move the attributes that hold tensors into the node's keeping."""
    held = {}
    for name, value in ctx.__dict__.items():
        if name in _OWN or value is None or isinstance(value, int | float | str):
            continue
        leaves, structure = tree_flatten(value)
        if any(isinstance(leaf, Tensor) for leaf in leaves):
            origins = [origin(leaf) if isinstance(leaf, Tensor) else None for leaf in leaves]
            aliases = [
                leaf._alias(None) if isinstance(o, int) else leaf for leaf, o in zip(leaves, origins, strict=True)
            ]
            held[name] = (aliases, structure, origins)
    for name in held:
        del ctx.__dict__[name]
    if held:
        ctx._held = held
        ctx.__class__ = ctx._function._holding_ctx()
        ctx._hooks = SPECIAL


_OWN = frozenset(name for name in FunctionCtx.__dict__ if not name.startswith("__")) - {"saved_variables"}
