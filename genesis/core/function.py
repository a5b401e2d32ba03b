"""`Function`: a differentiable operation of your own, in two static methods.

    class Square(genesis.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g

    y = Square.apply(x)

``ctx`` *is* the node of the recorded graph, so a user's function and a built-in op are the same thing to the
engine. The results are tracked whatever computed them (NumPy, ctypes, ...), because an *input* needs grad.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from genesis.arrays.spec import spec_of
from genesis.base.errors import ArgumentError, GraphError, InplaceError, message
from genesis.core.dispatch import refuse_inference
from genesis.core.modes import grad_mode
from genesis.core.node import INFERENCE, WRITES, Node, Output
from genesis.core.tensor import Tensor
from genesis.core.views import check_writable, rebase


class FunctionCtx(Node):
    """The context of one call of a `Function`: what forward leaves for backward.

    Attributes set on it (``ctx.anything = ...``) are kept as they are.
    """

    __slots__ = ("__dict__",)

    function: ClassVar[type[Function]]
    trusted = False  # its gradients may be memory that somebody else holds, and it may write to what it gets

    materialize_grads: bool = True
    outputs = None
    _marked = False  # whether mark_dirty or mark_non_differentiable was called
    _dirty: tuple[Tensor, ...] = ()
    _non_differentiable: tuple[Tensor, ...] = ()

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for backward, in order; further calls add to them.

        Raises:
            TypeError: something that is neither a tensor nor None; set it as an attribute of ctx instead
        """
        for place, t in enumerate(tensors):
            if t is not None and not isinstance(t, Tensor):
                raise ArgumentError(
                    message(f"{self.function.__name__}.save_for_backward",
                            f"argument {place} is {type(t).__name__}, expected a tensor or None",
                            hint="keep other values as attributes, ctx.value = ...")
                )  # fmt: skip
        self.saved = (*self.saved, *tensors) if self.saved else tensors

    @property
    def needs_input_grad(self) -> tuple[bool, ...]:
        """For each argument of forward, whether its gradient is wanted; all False when nothing is recorded."""
        return tuple([e is not None for e in self.edges])

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What `save_for_backward` kept; an error if it was freed, or written to since."""
        if self.epoch is WRITES[0] and not grad_mode.get():
            return self.saved
        return self.unpack()

    def unpack(self) -> tuple[Any, ...]:
        saved = super().unpack()
        if not grad_mode.get():
            return saved
        return tuple([self.with_history(t, t._saved_output) if hasattr(t, "_saved_output") else t for t in saved])

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Declare inputs that forward writes to and returns."""
        self._dirty, self._marked = tensors, True

    def mark_non_differentiable(self, *outputs: Tensor) -> None:
        """Declare outputs that carry no gradient."""
        self._non_differentiable, self._marked = outputs, True

    def set_materialize_grads(self, value: bool) -> None:
        """Whether gradients of unused outputs arrive as zeros (the default) or as None."""
        self.materialize_grads = bool(value)

    def pull(self, g: Any) -> Sequence[Any]:
        results = self.function.backward(self, *g) if self.outputs is not None else self.function.backward(self, g)
        if results.__class__ is not tuple:
            results = tuple(results) if isinstance(results, list) else (results,)
        if len(results) != len(self.edges):
            results = self._counted(results, len(self.edges))
        for result in results:
            if result is not None and not isinstance(result, Tensor):
                return self._tensors(results)
        return results

    def _tensors(self, results: tuple[Any, ...]) -> Sequence[Any]:
        """A gradient for an argument that takes none is ignored; any other that is no tensor is an error."""
        for place, (edge, result) in enumerate(zip(self.edges, results, strict=True)):
            if edge is not None and result is not None and not isinstance(result, Tensor):
                raise ArgumentError(
                    message(f"{self.function.__name__}.backward",
                            f"gradient {place} is {type(result).__name__}, expected a tensor or None")
                )  # fmt: skip
        return results

    def _counted(self, results: tuple[Any, ...], count: int) -> tuple[Any, ...]:
        if len(results) > count and all(r is None for r in results[count:]):
            return results[:count]  # arguments left to their defaults
        raise GraphError(
            message(f"{self.function.__name__}.backward", f"returned {len(results)} gradients, expected {count}",
                    hint="return one for each argument of forward, None where there is none")
        )  # fmt: skip


class Function:
    """Base class of differentiable operations: subclass it, write `forward` and `backward`, call `apply`.

    >>> import genesis
    >>> class Cube(genesis.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x ** 3
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return 3 * x ** 2 * g
    >>> x = genesis.tensor(2.0, requires_grad=True)
    >>> Cube.apply(x).backward(); x.grad
    tensor(12.)
    """

    _ctx: ClassVar[type[FunctionCtx]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        members = {"__slots__": (), "function": cls, "op_name": cls.__name__}
        cls._ctx = type(cls.__name__ + "Backward", (FunctionCtx,), members)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        name = type(self).__name__
        raise ArgumentError(
            message(name, "a Function is not instantiated", hint=f"make its methods static and call {name}.apply(...)")
        )

    @staticmethod
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        """Compute the result; keep what backward needs in ``ctx``."""
        raise NotImplementedError("Function.forward is not implemented: define a static forward(ctx, *args)")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Return one gradient for each argument of forward, None where there is none."""
        raise NotImplementedError(
            f"{ctx.function.__name__}.backward is not implemented: define a static backward(ctx, *grad_outputs)"
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward, unrecorded, and record one node if an input needs a gradient."""
        ctx = cls._ctx()
        ctx.hooks = None
        ctx.saved = ()
        edges = [a._node if isinstance(a, Tensor) else None for a in args]
        recording = edges.count(None) != len(edges) and grad_mode.get()
        ctx.edges = tuple(edges) if recording else (None,) * len(edges)
        epoch = WRITES[0]
        token = grad_mode.set(False)
        try:
            result = cls.forward(ctx, *args, **kwargs)
        finally:
            grad_mode.reset(token)
        if not recording:
            return result
        ctx.epoch = WRITES[0]
        if result.__class__ is Tensor and epoch is WRITES[0] and not ctx._marked and _is_new(result, args, ctx.saved):
            array = result._array  # one new tensor, as usual: the rest of `_finish` has nothing to do
            ctx.shape, ctx.dtype = array.shape, array.dtype
            result._node = ctx
            return result
        written = _check_written(cls, ctx, args, epoch) if epoch is not WRITES[0] or ctx._dirty else []
        return _finish(ctx, args, result, written)


def _is_new(result: Tensor, args: tuple[Any, ...], saved: tuple[Any, ...]) -> bool:
    """Whether a result is a floating tensor of its own: not an input, not a view, not saved."""
    if result._node is not None or result._view is not None or result._array.dtype.kind != "f":
        return False
    for a in args:
        if a is result:
            return False
    for t in saved:  # noqa: SIM110 (these loops cost a third of any(generator))
        if t is result or (t is not None and t._counter is INFERENCE):
            return False
    return True


def _finish(ctx: FunctionCtx, args: tuple[Any, ...], result: Any, written: list[Tensor]) -> Any:
    """Give the results their history, and take care of what was saved."""
    several = isinstance(result, tuple | list)
    results = list(result) if several else [result]
    outs = [r if not isinstance(r, Tensor) or is_in(r, written) else _fresh(r, args) for r in results]
    first = next((r for r in outs if isinstance(r, Tensor)), None)
    if first is None:
        return result
    ctx.shape, ctx.dtype = first._array.shape, first._array.dtype
    if several:
        ctx.outputs = [(r._array.shape, r._array.dtype) if isinstance(r, Tensor) else ((), ctx.dtype) for r in outs]
    ctx.saved = tuple([_saved(t, results) for t in ctx.saved])
    refuse_inference(ctx.op_name, ctx.saved)
    for index, (raw, out) in enumerate(zip(results, outs, strict=True)):
        if isinstance(out, Tensor) and _carries_grad(out) and not is_in(raw, ctx._non_differentiable):
            edge = Output(ctx, index) if several else ctx
            if is_in(out, written):
                rebase(out, edge)
            else:
                out._node = edge
    ctx._non_differentiable = ctx._dirty = ()
    if not several:
        return outs[0]
    return type(result)(outs) if type(result) in (tuple, list) else type(result)(*outs)


def is_in(t: Any, tensors: Sequence[Any]) -> bool:
    """Membership by identity (``in`` would compare elements)."""
    for other in tensors:  # noqa: SIM110 (this loop costs a third of any(generator))
        if other is t:
            return True
    return False


def _carries_grad(t: Tensor) -> bool:
    return t._array.dtype.kind in "fc" or t.dtype.is_floating_point


def _fresh(r: Tensor, args: tuple[Any, ...]) -> Tensor:
    """An output that is an input, or a view of one, becomes a tensor of its own on the same memory."""
    return r._alias(None) if r._node is not None or r._view is not None or is_in(r, args) else r


def _saved(t: Tensor | None, results: list[Any]) -> Tensor | None:
    """A saved output is kept as a detached twin, or the node would hold itself."""
    if t is None or t._node is not None:
        return t
    for index, r in enumerate(results):
        if t is r:
            twin = t._alias(None)
            twin._saved_output = index  # type: ignore[attr-defined]
            return twin
    return t


def _check_written(
    cls: type[Function], ctx: FunctionCtx, args: tuple[Any, ...], epoch: int
) -> list[Tensor]:
    """The inputs that forward wrote to, declared with `mark_dirty` or found by the time of their last write."""
    tensors = [a for a in args if isinstance(a, Tensor) and a._counter is not None]
    written = [t for t in tensors if t._counter.stamp > epoch]  # type: ignore[union-attr]
    for t in ctx._dirty:
        if not is_in(t, written):
            raise InplaceError(
                message(cls.__name__, "mark_dirty names a tensor that forward did not write to",
                        operands=[("tensor", spec_of(t._array))])
            )  # fmt: skip
    for t in written:
        check_writable(t, f"{cls.__name__}.forward", True)
    return written
