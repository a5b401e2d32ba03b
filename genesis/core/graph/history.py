"""The methods of `Tensor` that have to do with gradients: recording begins and ends, backward, hooks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from genesis.arrays.protocol import Layer
from genesis.base.errors import (
    ArgumentError,
    DeviceError,
    DTypeError,
    GraphError,
    ShapeError,
    message,
)
from genesis.core.graph import engine
from genesis.core.graph.escapes import leaves
from genesis.core.graph.hooks import RemovableHandle, Retaining, add_hook, hooks_of
from genesis.core.graph.modes import inference
from genesis.core.graph.node import AccumulateGrad, Output, leaf
from genesis.core.graph.seeds import edge_of, inputs_of_backward, seed_for
from genesis.core.graph.switches import ACTIVE
from genesis.core.graph.tracing import tracer
from genesis.core.graph.version import INFERENCE, count_event

if TYPE_CHECKING:
    from genesis.core.graph.tensor import Tensor


def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Begin (or stop) recording what is done with this leaf; returns it.

    Raises:
        RuntimeError: the dtype is not floating or complex, or the tensor is not a leaf
    """
    if ACTIVE and tracer.get() is not None:
        tracer.get().history_changes(self)
    if not requires_grad:
        if not self.is_leaf:
            raise GraphError(message("requires_grad_", "only a leaf can stop requiring grad", hint="use y.detach()"))
        if self._node is not None:
            if (grad := self.grad) is not None:
                self._own_grad = grad
            self._own_node, self._node = self._node, None
            self.__dict__.pop("_retained", None)
            self._own_node._grad = None
    elif self._node is None:
        if self._array.dtype.kind not in "fcV" and not self.dtype.is_floating_point:
            raise DTypeError(
                message(
                    "requires_grad_",
                    f"only floating and complex tensors can require grad, this one is {self.dtype}",
                    hint="convert it first, x.float().requires_grad_()",
                )
            )
        if self._counter is INFERENCE and not inference.get():
            raise GraphError(
                message(
                    "requires_grad_",
                    "a tensor made in inference_mode cannot begin to require grad outside it",
                    hint="clone() it",
                )
            )
        self._node = _node_again(self)
        self._node._grad = None  # what came while it had stopped went nowhere
        if self._own_grad is not None:
            self._node.grad = self.__dict__.pop("_own_grad")
    return self


def _node_again(self: Tensor) -> AccumulateGrad:
    """The node of a leaf that begins to require grad: the one it had before it stopped, results may lead there; or a new
    one, with the hooks of that.
    """
    new = leaf(self)
    before = getattr(self, "_own_node", None)
    self._own_node = None
    if before is None or before.tensor() is not self:
        return new
    if (before._shape, before._dtype, before._virtual) == (new._shape, new._dtype, new._virtual):
        return before  # type: ignore[no-any-return]
    new._hooks = before._hooks
    return new


def check_grad(self: Tensor, value: Any) -> None:
    from genesis.core.graph.tensor import Tensor

    if not isinstance(value, Tensor):
        raise ArgumentError(message("grad", f"expected a tensor or None, got {type(value).__name__}"))
    if value is self:
        raise GraphError(
            message("grad", "a tensor cannot be its own gradient", [("tensor", self._spec())], "assign a clone()")
        )
    for what, kind, mine, given in (
        ("shape", ShapeError, list(self._array.shape), list(value._array.shape)),
        ("dtype", DTypeError, self.dtype, value.dtype),
        ("device", DeviceError, self.device, value.device),
    ):
        if mine != given:
            raise kind(message("grad", f"the gradient's {what} {given} is not the tensor's, {mine}"))


def backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Differentiate this tensor: adds d self / d leaf to ``.grad`` of every leaf it depends on.

    Args:
        gradient: what to start from, of this tensor's shape, or a list of it alone; may be left out for one element
        retain_graph: keep what was saved, for a second backward; defaults to ``create_graph``
        create_graph: record the gradients' own computation, for derivatives of derivatives
        inputs: accumulate into these only; of those that are no leaves the gradient is retained

    Raises:
        RuntimeError: no history, an implicit gradient for many elements, a freed graph, or a
            saved tensor that was modified in place

    >>> import genesis
    >>> x = genesis.tensor([1.0, 2.0, 3.0], requires_grad=True)
    >>> (x ** 2).sum().backward()
    >>> x.grad
    tensor([2., 4., 6.])
    """
    if gradient is not None:
        from genesis.core.graph.construct import tensor_like

        if isinstance(gradient, list | tuple) and len(gradient) == 1:  # one gradient for one output, as autograd takes
            only = gradient[0]
            gradient = only if getattr(only, "shape", None) == self.shape else gradient
        gradient = tensor_like(gradient, self)
    edge = edge_of(self) if self._node is None else self._node
    seed = seed_for(self, gradient)
    engine.run(
        [edge],
        [seed],
        keep_graph=create_graph if retain_graph is None else retain_graph,
        create_graph=create_graph,
        inputs=None if inputs is None else inputs_of_backward(inputs),
    )


def retain_grad(self: Tensor) -> None:
    """Keep ``.grad`` of this tensor although it is not a leaf."""
    node = self._node
    if node is None:
        raise GraphError(message("retain_grad", "the tensor does not require grad"))
    if not node.is_leaf and not self.retains_grad:
        target = node.node if isinstance(node, Output) else node
        hooks_of(target).retained[self.output_nr] = Retaining(self)


def zero_grad(self: Tensor, set_to_none: bool = True) -> None:
    """Forget ``.grad``, or fill it with zeros in place with ``set_to_none=False``."""
    g = None if set_to_none else self.grad  # a trace notes who looks at it
    if g is None:
        self.grad = None
    else:
        if g.requires_grad:
            g.detach_()
        g.zero_()


def register_hook(self: Tensor, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
    """Call ``hook(gradient)`` whenever this tensor's gradient is ready; it may return a replacement.

    >>> import genesis
    >>> x = genesis.ones(2, requires_grad=True)
    >>> handle = x.register_hook(lambda g: g * 10)
    >>> (x * 2).sum().backward(); x.grad
    tensor([20., 20.])
    """
    node = self._node
    if node is None:
        raise GraphError(message("register_hook", "the tensor does not require grad"))
    target, index = (node.node, node.index) if isinstance(node, Output) else (node, 0)
    return add_hook(target, "tensor", (index, hook))


def register_post_accumulate_grad_hook(self: Tensor, hook: Callable[[Tensor], None]) -> RemovableHandle:
    """Call ``hook(self)`` after a backward has updated this leaf's ``.grad``."""
    if not isinstance(self._node, AccumulateGrad):
        raise GraphError(message("register_post_accumulate_grad_hook", "the tensor is not a leaf that requires grad"))
    return add_hook(self._node, "post_accumulate", hook)


def detach(self: Tensor) -> Tensor:
    """The same memory without history (and without tangents): a write to one is seen by the other."""
    if self._node is not None:
        leaves("detach()", self._node)
    out = self._alias(None)
    if ACTIVE and tracer.get() is not None:
        out._array = tracer.get().aliased(self)
    if isinstance(out._array, Layer):
        out._array = out._array.without_tangents()
    return out


def detach_(self: Tensor) -> Tensor:
    """Forget this tensor's history, in place."""
    if self._node is not None:
        leaves("detach_()", self._node)
    if self._view is not None:
        raise GraphError(message("detach_", "a view cannot be detached in place", hint="use detach()"))
    if ACTIVE and tracer.get() is not None:
        tracer.get().history_changes(self)
    if self._node is not None:
        self._shared_counter()
        self._detached = count_event()  # nodes that saved this very tensor refuse it, see `Node._unpack`
    self._node = None
    if isinstance(self._array, Layer):
        self._array = self._array.without_tangents()
    return self
