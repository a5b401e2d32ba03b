"""The recorded graph from outside: nodes and edges, hooks on many gradients or on every node, and what nodes save."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from genesis.base.errors import ArgumentError, ArgumentValueError, GraphError, message
from genesis.core.call.writes import bump
from genesis.core.graph import engine
from genesis.core.graph.hooks import RemovableHandle
from genesis.core.graph.node import Node, Output
from genesis.core.graph.saved import disable_saved_tensors_hooks, saved_tensors_hooks
from genesis.core.graph.tensor import Tensor


class GradientEdge(NamedTuple):
    """A place in the graph: the node that made a tensor, and which of its results the tensor is. Keeps no tensor alive."""

    node: Node
    output_nr: int


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The place of a tensor in the graph, for `grad` and ``backward(inputs=...)`` when the tensor itself is gone.

    Raises:
        RuntimeError: the tensor does not require grad

    >>> import genesis
    >>> x = genesis.ones(2, requires_grad=True)
    >>> edge = genesis.autograd.graph.get_gradient_edge(x * 2)
    >>> edge.node, edge.output_nr
    (<MulBackward>, 0)
    """
    edge = tensor._node
    if edge is None:
        raise GraphError(message("get_gradient_edge", "the tensor does not require grad", [("tensor", tensor._spec())]))
    return GradientEdge(edge.node, edge.index) if isinstance(edge, Output) else GradientEdge(edge, 0)


# ---- hooks


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., Any], *, mode: str = "all"
) -> RemovableHandle:
    """Call ``fn`` once in each backward that reaches some of the tensors.

    Args:
        mode: "all": ``fn(gradients)`` when the gradients of all that are reached are known, None for the others;
            "any": ``fn(gradient)`` at the first of them

    >>> import genesis
    >>> a, b = genesis.ones(1, requires_grad=True), genesis.ones(1, requires_grad=True)
    >>> handle = genesis.autograd.graph.register_multi_grad_hook([a, b], lambda gs: print(gs))
    >>> (a * 2 + b * 3).backward()
    [tensor([2.]), tensor([3.])]
    """
    if mode not in ("all", "any"):
        raise ArgumentValueError(message("register_multi_grad_hook", f"mode is {mode!r}", hint="'all' or 'any'"))
    hook = _MultiGradHook([t._node for t in tensors], fn, mode)
    for t in tensors:
        if t._node is None:
            raise GraphError(
                message("register_multi_grad_hook", "a tensor does not require grad", [("tensor", t._spec())])
            )
    handles = [t.register_hook(hook.at(i)) for i, t in enumerate(tensors)]
    return _Handles(handles)


class _MultiGradHook:
    """The state of one hook on several gradients, for each backward that runs."""

    def __init__(self, edges: list[Any], fn: Callable[..., Any], mode: str) -> None:
        self.edges, self.fn, self.mode = edges, fn, mode
        # gradients so far and how many are still to come, by backward
        self.runs: weakref.WeakKeyDictionary[Any, tuple[list[Any], int]] = weakref.WeakKeyDictionary()
        self.lock = threading.Lock()

    def at(self, index: int) -> Callable[[Tensor], None]:
        return lambda g: self.arrived(index, g)

    def arrived(self, index: int, g: Tensor) -> None:
        task = engine.current()
        assert task is not None
        with self.lock:
            first = task not in self.runs
            gradients, left = self.runs.get(task) or ([None] * len(self.edges), task.will_reach(self.edges))
            gradients[index] = g
            self.runs[task] = (gradients, left - 1)
        if self.mode == "any":
            if first:
                self.fn(g)
        elif left == 1:
            self.fn(gradients)


class _Handles(RemovableHandle):
    """Several handles as one."""

    __slots__ = ("handles",)

    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        self.handles = tuple(handles)

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()


@contextmanager
def every_node(before: Callable[..., Any] | None = None, after: Callable[..., Any] | None = None) -> Iterator[None]:
    """Context manager: call ``before(node, grad_outputs)`` and ``after(node, grad_inputs, grad_outputs)`` around every
    node of every backward of this thread.

    For timers, printers and memory meters; it costs nothing when it is not used. Leaves are not nodes that run.

    >>> import genesis
    >>> x = genesis.ones(2, requires_grad=True)
    >>> with genesis.autograd.graph.every_node(after=lambda node, gi, go: print(node.name())):
    ...     (x * 2).sum().backward()
    SumBackward
    MulBackward
    """
    with engine.around_nodes(before, after):
        yield


def on_backward_end(fn: Callable[[], None]) -> None:
    """Call ``fn()`` once when the backward that is running now has ended, all ``.grad`` written.

    Raises:
        RuntimeError: no backward is running in this thread

    >>> import genesis
    >>> x = genesis.ones(1, requires_grad=True)
    >>> handle = x.register_hook(lambda g: genesis.autograd.graph.on_backward_end(lambda: print("done", x.grad)))
    >>> (x * 2).backward()
    done tensor([2.])
    """
    task = engine.current()
    if task is None:
        raise GraphError(
            message(
                "on_backward_end",
                "no backward is running in this thread",
                hint="call it from a hook, or from a Function's backward",
            )
        )
    task.at_end.append(fn)


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Say that code outside Genesis wrote to a tensor's memory, so that backward notices where it matters.

    >>> import genesis
    >>> x = genesis.ones(2)
    >>> x.numpy()[0] = 5; genesis.autograd.graph.increment_version(x)
    >>> x._version
    1
    """
    for t in [tensor] if isinstance(tensor, Tensor) else tensor:
        if not isinstance(t, Tensor):
            raise ArgumentError(message("increment_version", f"expected a tensor, got {type(t).__name__}"))
        bump(t, "increment_version")


# ---- what nodes save


class save_on_cpu(saved_tensors_hooks):
    """Context manager: what is saved for backward is kept in the memory of the CPU, and brought back when it is needed.

    Args:
        pin_memory: keep it in memory that a GPU copies from faster (of no effect while there is no GPU)
        device_type: accepted for PyTorch's sake

    >>> import genesis
    >>> x = genesis.ones(2, requires_grad=True)
    >>> with genesis.autograd.graph.save_on_cpu():
    ...     y = x.exp().sum()
    >>> y.backward(); x.grad
    tensor([2.7183, 2.7183])
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(lambda t: (t.device, t.to("cpu")), lambda packed: packed[1].to(packed[0]))


__all__ = [
    "GradientEdge", "Node", "RemovableHandle", "disable_saved_tensors_hooks", "every_node", "get_gradient_edge",
    "increment_version", "on_backward_end", "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks",
]  # fmt: skip
