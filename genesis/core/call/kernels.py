"""Who computes an op on arrays of a class: one table for each op, and one way into it.

    attach(matmul, np.ndarray, kernel)                  always
    attach(matmul, np.ndarray, kernel, when=large)      where ``when(*arguments)`` says so; else what was there before

- A *primitive's* kernel takes what its meaning takes, arrays in the place of tensors, and gives arrays of its own.
- A *composite's* kernel is a *fused* one: it computes forward in one go and says what to keep, and has a backward of
  its own.

      @attach(layer_norm, np.ndarray, when=fits)
      def fused(input, normalized_shape, weight, bias, eps):
          return out, (scaled, root)

      @fused.backward
      def _(g, kept, needs):
          return gradients of input, weight and bias

  It runs where nothing but arrays of its class is involved: no transform, no trace, no mode. There, and in derivatives
  of derivatives, the composite is what its function says, so these are right whatever the kernel does. (A trace replays
  a step bit for bit only if the kernel rounds as the function does.)

`genesis.testing.check_kernel` compares a kernel with the meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from genesis.base.errors import InplaceError
from genesis.core.call.dispatch import refuse_inference
from genesis.core.call.halves import called
from genesis.core.call.op import REGISTRY, Op
from genesis.core.call.views import bump
from genesis.core.graph import engine
from genesis.core.graph.lost import UNTOUCHED, touched
from genesis.core.graph.modes import ACTIVE, LEVELS, enable_grad, grad_mode
from genesis.core.graph.node import WRITES, Node, recorded, stale_message
from genesis.core.graph.quiet import quietly
from genesis.core.graph.site import site_here
from genesis.core.graph.tensor import Tensor, wrap

Kernel = Callable[..., Any]
When = Callable[..., bool]


def attach(op: Any, arrays: type, kernel: Kernel | None = None, *, when: When | None = None) -> Any:
    """Let ``kernel`` compute an op on arrays of a class, wherever the op is called from; without ``kernel`` this is a
    decorator.

    Args:
        op: the op, its public function, or its name
        arrays: the class of the arrays, ``np.ndarray`` or a device's
        when: called with the kernel's arguments, tells whether this kernel takes them; then it must be right for them
    """
    found: Op = REGISTRY[op] if isinstance(op, str) else getattr(op, "op", op)
    if kernel is None:
        return lambda kernel: attach(found, arrays, kernel, when=when)
    if found.kind.composed:
        return _attach_fused(found, arrays, Fused(found, arrays, kernel, when, found.kernels.get(arrays)))
    chosen = (
        kernel
        if when is None
        else _either(kernel, when, found.kernel if arrays is np.ndarray else found.kernels.get(arrays))
    )
    found.kernels[arrays] = chosen
    if arrays is np.ndarray:
        found.kernel = chosen
        for rebind in found.shortcuts:
            rebind(chosen)
    return kernel


def _either(kernel: Kernel, when: When, otherwise: Kernel | None) -> Kernel:
    """Where ``when`` declines, what was attached before; there the meaning is the first."""

    def chosen(*arguments: Any) -> Any:
        if when(*arguments):
            return kernel(*arguments)
        return NotImplemented if otherwise is None else otherwise(*arguments)

    return chosen


# ---- composites


class Fused:
    """A kernel of a composite, with what it keeps for its backward."""

    def __init__(self, op: Op, arrays: type, kernel: Kernel, when: When | None, before: Fused | None) -> None:
        self.op, self.arrays, self.kernel, self.when, self.before = op, arrays, kernel, when, before
        self.pull: Kernel | None = None
        self.reads: tuple[int, ...] = ()
        parameters = list(op.signature.parameters.values())
        self.places = tuple(i for i, p in enumerate(parameters) if "Tensor" in str(p.annotation))
        self.written = tuple(i for i, p in enumerate(parameters) if p.name in op.written)
        title = "".join(part.capitalize() for part in op.name.split("_")) + "Backward"
        names = tuple(parameters[i].name for i in self.places)
        self.node = type(
            title, (FusedNode,), {"__slots__": (), "op": op, "op_name": op.name, "input_names": names, "fused": self}
        )

    def backward(self, pull: Kernel | None = None, *, reads: Sequence[str] | None = None) -> Any:
        """Decorate ``pull(g, kept, needs)``, the gradients of the tensor parameters in order (None where ``needs`` is
        False), arrays of their own.

        Args:
            reads: the parameters whose values it needs; a later write to one of these is an error. All, unless given.
        """
        if pull is None:
            return lambda pull: self.backward(pull, reads=reads)
        names = list(self.op.signature.parameters)
        self.pull, self.reads = pull, self.places if reads is None else tuple(names.index(name) for name in reads)
        return pull

    def __call__(self, args: tuple[Any, ...], arrays: Sequence[Any], edges: tuple[Any, ...]) -> Any:
        """The result, or NotImplemented where another kernel or the composition is to compute it."""
        recording = grad_mode.get() and any([edge is not None for edge in edges])
        if (recording and self.pull is None) or (self.when is not None and not self.when(*arrays)):
            return NotImplemented if self.before is None else self.before(args, arrays, edges)
        if self.written:
            return self._write(args, arrays)
        try:
            result = quietly(self.kernel, *arrays)
        except Exception:
            return NotImplemented  # the composition explains
        array, kept = result if result.__class__ is tuple else (result, None)
        out = wrap(array if array.__class__ is self.arrays else np.asarray(array))
        if recording:
            out._node = self._record(args, edges, kept, out)
        elif UNTOUCHED and any([edge is not None for edge in edges]):
            touched(*edges)
        return out

    def _write(self, args: tuple[Any, ...], arrays: Sequence[Any]) -> None:
        quietly(self.kernel, *arrays)
        site = site_here()
        for x in [args[i] for i in self.written if args[i] is not None]:
            bump(x, self.op.name, site)

    def _record(self, args: tuple[Any, ...], edges: tuple[Any, ...], kept: Any, out: Tensor) -> Node:
        read = [args[i] for i in self.reads if args[i] is not None]
        refuse_inference(self.op.name, tuple(read))
        return recorded(self.node, edges, out._array, (read, kept, args))  # type: ignore[no-any-return]


class FusedNode(Node):
    """The node of a fused call: its backward is the kernel's where arrays of its class arrive, else the composition's."""

    __slots__ = ()
    fused: Fused

    def _pull(self, g: Any) -> Sequence[Any]:
        _, kept, args = self._saved if self._epoch is WRITES[0] else self._unpack()
        if ACTIVE or LEVELS or g._array.__class__ is not self.fused.arrays or grad_mode.get():
            return self._composed(g, args)
        needs = tuple([edge is not None for edge in self._edges])
        found = quietly(self.fused.pull, g._array, kept, needs)  # type: ignore[arg-type]
        return [
            None if array is None or not needed else wrap(array) for array, needed in zip(found, needs, strict=True)
        ]

    def _composed(self, g: Any, args: tuple[Any, ...]) -> Sequence[Any]:
        """Run the composite's function on the same tensors, and differentiate that."""
        further = grad_mode.get()
        changed, twins = list(args), []
        for place, edge in zip(self.fused.places, self._edges, strict=True):
            x = args[place]
            if x is not None and x._counter is not None and x._counter.stamp > self._epoch:
                raise InplaceError(stale_message(self, x, x._counter))
            if edge is not None:
                with enable_grad():
                    changed[place] = x.clone()
                twins.append(changed[place]._node)
        with enable_grad():
            out = called(self.op, self.op.meaning, tuple(changed))
        results = iter(
            engine.run(
                [engine.edge_of(out)], [g], keep_graph=further, create_graph=further, inputs=twins, accumulate=False
            )
        )
        return [None if edge is None else next(results) for edge in self._edges]


def _attach_fused(op: Op, arrays: type, fused: Fused) -> Fused:
    op.kernels[arrays] = fused
    # see `kinds.composite`: the global of a function made of text
    op.call.__globals__["fused"] = _chooser(op, fused.places)
    return fused


def _chooser(op: Op, places: tuple[int, ...]) -> Callable[..., Any]:
    """What the public function of a composite asks first."""
    table = op.kernels

    def fused(*args: Any) -> Any:
        if ACTIVE or LEVELS:
            return NotImplemented
        arrays = list(args)
        edges: list[Any] = []
        kind: Any = None
        for i in places:
            x = args[i]
            if x is None:
                edges.append(None)
                continue
            if not isinstance(x, Tensor):
                return NotImplemented
            arrays[i] = array = x._array
            if array.__class__ is not kind:
                if kind is not None:
                    return NotImplemented
                kind = array.__class__
            edges.append(x._node)
        entry = table.get(kind)
        return NotImplemented if entry is None else entry(args, arrays, tuple(edges))

    return fused
