"""A user's Function as one call of a trace: for those that compute with NumPy or other code, of which a trace sees nothing.

Two ops of kind "opaque" stand for one way to call a Function (its class, its arguments that are no tensors): the first
runs `forward`, the second `forward` and `backward`, each anew at every replay and with real tensors. So nothing passes
from one to the other but tensors, and a replay may come before or after any other. What the shapes of the results are
is asked of `forward` itself, once, on ones; a Function whose shapes follow from numbers is wrong there, and one that
writes to its arguments is refused.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from contextvars import Context
from typing import TYPE_CHECKING, Any

import numpy as np

from genesis.arrays.spec import Spec, spec_of
from genesis.base.errors import InplaceError, UnsupportedError, message
from genesis.base.pytree import tree_flatten, tree_unflatten
from genesis.core.call import dispatch
from genesis.core.call.kinds import opaque
from genesis.core.call.op import REGISTRY, Op
from genesis.core.graph import engine
from genesis.core.graph.modes import enable_grad, no_grad
from genesis.core.graph.seeds import edge_of
from genesis.core.graph.tensor import Tensor, wrap

if TYPE_CHECKING:
    from genesis.core.functions.function import Function


def traced(cls: type[Function], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The results of ``cls.apply(*args, **kwargs)`` while a trace is made, as one call of the traced program."""
    leaves, structure = tree_flatten((args, kwargs))
    indices = [i for i, x in enumerate(leaves) if isinstance(x, Tensor)]
    plain = [None if i in indices else x for i, x in enumerate(leaves)]
    known = _CALLS.setdefault(cls, {})
    key: Any = (str(structure), tuple(indices), tuple([(x.__class__, x) for x in plain]))
    try:
        call = known.get(key)
    except TypeError:  # arguments that nobody can compare
        key = (len(known),)
        call = None
    if call is None:
        call = known[key] = _Call(cls, plain, structure, indices)
    return call.node.apply(*[leaves[i] for i in indices])


_CALLS: dict[type[Function], dict[Any, _Call]] = {}  # the registry keeps the ops, and so the classes, anyway


class _Call:
    """A Function and those of its arguments that are no tensors."""

    def __init__(self, cls: type[Function], leaves: list[Any], structure: Any, indices: list[int]) -> None:
        self.cls, self.leaves, self.structure, self.indices = cls, leaves, structure, indices
        self.several = False
        self.forward = self._op(f"{cls.__name__}.forward", self._results, self._specs)
        self.backward = self._op(f"{cls.__name__}.backward", self._gradients, self._input_specs)
        self.node = self._node()

    def _op(self, title: str, meaning: Any, infer: Any) -> Op:
        name = title
        while name in REGISTRY:
            name = f"{title} {len(REGISTRY)}"

        def call(tensors: Sequence[Tensor]) -> Any:
            return dispatch.run(op, (list(tensors),))

        call.__doc__ = f"`{title}` of a user's Function, for traces."
        call.op = op = opaque(  # type: ignore[attr-defined]
            name, inspect.signature(_variadic), lambda arrays: meaning(list(arrays)), infer, call, (0,),
            self.cls.__module__, variadic=True,
        )  # fmt: skip
        return op

    def _node(self) -> type[Function]:
        """A Function of tensors alone, whose forward and backward are the two ops."""
        from genesis.core.functions.function import Function

        call = self

        class Opaque(Function):
            @staticmethod
            def forward(ctx: Any, *tensors: Tensor) -> Any:
                ctx.save_for_backward(*tensors)
                out = dispatch.run(call.forward, (list(tensors),))
                return (out,) if call.several and isinstance(out, Tensor) else out

            @staticmethod
            def backward(ctx: Any, *gs: Tensor) -> Any:
                results = dispatch.run(call.backward, ([*ctx.saved_tensors, *gs],))
                results = results if isinstance(results, tuple) else (results,)
                return tuple([g if needed else None for g, needed in zip(results, ctx.needs_input_grad, strict=True)])

        Opaque.__name__ = Opaque.__qualname__ = self.cls.__name__
        return Opaque

    def _applied(self, tensors: Sequence[Tensor]) -> Any:
        leaves = list(self.leaves)
        for index, x in zip(self.indices, tensors, strict=True):
            leaves[index] = x
        args, kwargs = tree_unflatten(leaves, self.structure)
        return self.cls.apply(*args, **kwargs)

    def _results(self, arrays: list[Any]) -> Any:
        with no_grad():
            out = self._applied([wrap(a) for a in arrays])
        return _one_or_all([y.detach().numpy() for y in (out if self.several else [out])])

    def _gradients(self, arrays: list[Any]) -> Any:
        count = len(self.indices)
        inputs = [wrap(a) for a in arrays[:count]]
        for x in inputs:
            if x.dtype.is_floating_point or x.dtype.is_complex:
                x.requires_grad_()
        with enable_grad():
            out = self._applied(inputs)
        outs = list(out) if self.several else [out]
        pairs = [(y, wrap(g)) for y, g in zip(outs, arrays[count:], strict=True) if y._node is not None]
        edges: list[Any] = [x._node for x in inputs if x._node is not None]
        pulled = iter(
            engine.run([edge_of(y) for y, _ in pairs], [g for _, g in pairs], inputs=edges, accumulate=False)
            if pairs
            else [None] * len(edges)
        )
        gradients = [None if x._node is None else next(pulled) for x in inputs]
        nothing = [x._zeros(tuple(x._array.shape), x._array.dtype) for x in inputs]
        return _one_or_all([(z if g is None else g).numpy() for g, z in zip(gradients, nothing, strict=True)])

    def _specs(self, specs: list[Spec]) -> Any:
        """The specs of the results: of forward on ones, outside of the trace."""
        out = Context().run(self._on_ones, specs)
        results = list(out) if isinstance(out, tuple | list) else [out]
        if not all([isinstance(y, Tensor) for y in results]):
            raise UnsupportedError(
                message(self.cls.__name__, "uses values that a trace does not have, and returns more than tensors",
                        hint="compute with genesis operations, or return a tensor or a tuple of tensors")
            )  # fmt: skip
        self.several = isinstance(out, tuple | list)
        return _one_or_all([spec_of(y._array) for y in results])

    def _on_ones(self, specs: list[Spec]) -> Any:
        with no_grad():
            tensors = [wrap(np.ones(s.shape, s.dtype)) for s in specs]
            before = [x._version for x in tensors]
            out = self._applied(tensors)
        if [x._version for x in tensors] != before:
            raise InplaceError(
                message(self.cls.__name__, "uses values that a trace does not have, and writes to an argument",
                        hint="write to a clone() in forward and return that")
            )  # fmt: skip
        return out

    def _input_specs(self, specs: list[Spec]) -> Any:
        return _one_or_all(specs[: len(self.indices)])


def _one_or_all(items: list[Any]) -> Any:
    """What an op returns: its result, or a tuple of several."""
    return items[0] if len(items) == 1 else tuple(items)


def _variadic(tensors: Sequence[Tensor]) -> Any:
    """Stands for the signature of the two ops."""
