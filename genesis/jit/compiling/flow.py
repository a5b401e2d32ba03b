"""Gradients through a compiled function: one node, whose backward is a compiled program, too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from genesis.arrays.memory import DeviceArray, memory_of
from genesis.arrays.protocol import device_of
from genesis.arrays.spec import Spec, strides_of
from genesis.autograd.gradients import grad
from genesis.base.device import MEMORIES
from genesis.base.errors import GraphError, InplaceError, UnsupportedError, message
from genesis.base.locks import object_lock
from genesis.base.narrow import restrided
from genesis.base.pytree import tree_flatten
from genesis.core.functions.function import Function
from genesis.core.graph.generator import Generator
from genesis.core.graph.modes import enable_grad, grad_mode, no_grad
from genesis.core.graph.node import Node, recorded
from genesis.core.graph.site import warn_user
from genesis.core.graph.tensor import Tensor, wrap
from genesis.jit.arguments import Var
from genesis.jit.compiling.absent import without
from genesis.jit.compiling.joint import Joint
from genesis.jit.compiling.positions import Position, back_at
from genesis.jit.lowering.step import Step, step_of


class Flow:
    """What joins the forward of a compiled function with its backward."""

    def __init__(self, joint: Joint, original: Any) -> None:
        self.joint, self.original = joint, original
        self.lock = object_lock()  # a step has one piece of memory to work in
        count = len(joint.outputs)
        self.cotangents = joint.backward.arguments[len(joint.backward.arguments) - count :]
        self.steps: dict[tuple[bool, ...], tuple[Step, list[int]]] = {}  # by which results have a gradient
        if count == 1:  # there is no other way to call it; of several results some may never get one
            self.steps[True,] = step_of(joint.backward), list(joint.numbers)
        results = joint.forward.program.results
        aliases = dict(joint.forward.program.aliases)
        own = [i for i, r in enumerate(results) if isinstance(r, Var) and i not in aliases]
        position = {i: at for at, i in enumerate(own)}
        position |= {i: len(own) + aliases[i].index for i in joint.outputs if joint.views.get(i) == i}
        self.outputs = [position.get(i) for i in joint.outputs]  # None: it shares its memory
        first = len([i for i in own if i < joint.forward.binding.structure_out.num_leaves + joint.decided.told])
        self.saved = [(kind, first + i if kind == "made" else i) for kind, i in joint.saved]

    def __call__(
        self,
        values: list[Any],
        numbers: Any,
        positions: Any,
        given: Any,
        args: Any,
        kwargs: Any,
        views: Iterable[Tensor] = (),
        drawn: Position | None = None,
    ) -> tuple[Tensor, ...]:
        """The results that have a history, with it.

        Args:
            views: those of them that share their memory, without it
            drawn: where the random numbers of Python and NumPy were, of which Python has drawn some
        """
        captured = self.joint.forward.binding.captured
        saved = [
            wrap(values[i]) if kind == "made" else captured[i] if kind == "captured" else given[i]
            for kind, i in self.saved
        ]
        inputs = [given[x] if x.__class__ is int else x for x in self.joint.inputs]
        rest = iter(views)
        outputs = [next(rest) if i is None else wrap(values[i]) for i in self.outputs]
        call = _Call(self, outputs, saved, numbers, positions, (args, kwargs), drawn)
        if call.recording:
            outputs = Compiled.apply(call, *inputs)
        else:  # the function itself turned it on
            with enable_grad():
                outputs = Compiled.apply(call, *inputs)
        return outputs if outputs.__class__ is tuple else (outputs,)

    def step(self, there: tuple[bool, ...]) -> tuple[Step, list[int]]:
        """The backward where these of the results have a gradient, and which numbers of the forward it takes; compiled
        when it is needed.
        """
        if there not in self.steps:
            absent = [v for v, here in zip(self.cotangents, there, strict=True) if not here]
            program = self.joint.backward
            index = {v: i for (v, _), i in zip(program.numbers, self.joint.numbers, strict=True)}
            program = without(program, self.cotangents, absent) if absent else program
            try:
                step = step_of(program)
            except Exception as error:
                warn_user(f"compile: {program.name} is not compiled, it is run op by op: {error}")
                step = step_of(program, native=False)
            self.steps[there] = step, [index[v] for v, _ in program.numbers]
        return self.steps[there]

    def gradients(self, call: _Call, saved: Any, gs: tuple[Any, ...]) -> list[Any]:
        """The gradients of the inputs."""
        there = tuple([g is not None for g in gs])
        # the user's may have been seeded since
        starts = [(Generator().move_to(key, block), block) for key, block in call.positions]
        with self.lock:
            step, numbers = self.step(there)
            arrays = [*[x._array for x in saved], *[g._array for g in gs if g is not None]]
            fitted = tuple([_fitted(a, v.spec) for a, v in zip(arrays, step.program.arguments, strict=True)])
            values = iter(step.run(fitted, tuple([call.numbers[i] for i in numbers]), starts))
        gradients = [wrap(next(values)) if isinstance(r, Var) else r for r in step.program.results]
        return [self._or_zeros(i, g, there) for i, g in enumerate(gradients)] if None in gs else gradients

    def _or_zeros(self, index: int, g: Any, there: tuple[bool, ...]) -> Any:
        """None where no gradient goes to an input; zeros are made of nothing, and may go there nevertheless."""
        if not any([there[i] for i in self.joint.reached[index]]):
            return None
        spec: Any = self.joint.backward.results[index]
        memory, own = MEMORIES[spec.spec.device.type], spec.spec
        return wrap(memory.zeros(own.shape, own.dtype, own.device)) if g is None else g

    def recorded_gradients(self, call: _Call, gs: tuple[Any, ...]) -> Any:
        """The gradients of the inputs, with a history: the function itself is run again."""
        graph = self.joint.forward
        if graph.program.writes or graph.binding.counts:
            raise UnsupportedError(
                message("compile", f"{graph.name} writes to tensors, its gradient cannot be differentiated again",
                        hint="call the function that was given to genesis.compile")
            )  # fmt: skip
        if self.joint.decided.slots:
            text = f"{graph.name} sets {self.joint.decided.slots[0].title}, its gradient cannot be differentiated again"
            raise UnsupportedError(message("compile", text, hint="call the function that was given to genesis.compile"))
        others = [c for c in self.joint.decided.calls if not c.drawn or call.drawn is None]
        if others:
            text = f"{graph.name} does something at {others[0].title}, its gradient cannot be differentiated again"
            raise UnsupportedError(message("compile", text, hint="call the function that was given to genesis.compile"))
        tensors = [x for x in tree_flatten(call.arguments)[0] if isinstance(x, Tensor)]
        for x in (*tensors, *graph.binding.captured):
            if x._counter is not None and x._counter.stamp > call.epoch:
                raise InplaceError(
                    message("backward", f"a tensor that {graph.name} used was modified in place since", [("tensor", x._spec())])
                )  # fmt: skip
        inputs = [tensors[x] if isinstance(x, int) else x for x in self.joint.inputs]
        with enable_grad(), _streams_at(graph.binding.streams, call.positions), back_at(call.drawn):
            args, kwargs = call.arguments
            with enable_grad() if call.recording else no_grad():
                leaves = tree_flatten(self.original(*args, **kwargs))[0]
            heads = [leaves[i] if i not in self.joint.views else _base(leaves[i]) for i in self.joint.outputs]
            wanted = [(y, g) for y, g in zip(heads, gs, strict=True) if g is not None]
            return grad([y for y, _ in wanted], inputs, [g for _, g in wanted], create_graph=True, allow_unused=True)


def _base(y: Tensor) -> Tensor:
    return y if y._view is None else y._view.base


class _Call:
    """One call of a compiled function, for its backward; ``positions``: the seed and the block of each stream;
    ``recording``: whether gradients were recorded around it; ``drawn``: see `Flow.__call__`.
    """

    __slots__ = ("arguments", "drawn", "epoch", "flow", "numbers", "outputs", "positions", "recording", "saved")

    def __init__(
        self, flow: Flow, outputs: Any, saved: Any, numbers: Any, positions: Any, arguments: Any, drawn: Position | None
    ) -> None:
        self.drawn = drawn
        self.flow, self.outputs, self.saved, self.numbers, self.positions = flow, outputs, saved, numbers, positions
        self.arguments, self.epoch, self.recording = arguments, 0, grad_mode.get()


class Compiled(Function):
    """The node of a call."""

    @staticmethod
    def forward(ctx: Any, call: Any, *inputs: Any) -> Any:
        ctx.save_for_backward(*call.saved)
        ctx.mark_constant(*call.saved)  # a backward that is recorded does not take them
        ctx.set_materialize_grads(False)
        ctx.call, call.epoch, call.saved = call, ctx._epoch, None
        outputs, call.outputs = call.outputs, None
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *gs: Any) -> Any:
        call, saved = ctx.call, ctx.saved_tensors
        if grad_mode.get():
            return (None, *call.flow.recorded_gradients(call, gs))
        return (None, *call.flow.gradients(call, saved, gs))


class CompiledFreed(Node):
    """The node of a result whose history is used up: a backward inside the function has freed what it needs."""

    __slots__ = ()
    op_name = "compiled"
    _frees = False

    def _pull(self, g: Any) -> Any:
        text = "a result of a compiled function was differentiated in it already, and what that needs was freed"
        raise GraphError(message("backward", text, hint="pass retain_graph=True to the backward in the function"))


def closed(spec: Spec, *ends: Tensor) -> CompiledFreed:
    """The history of a result that is used up, and once led to these tensors."""
    return recorded(CompiledFreed, tuple([x._node for x in ends]), spec)  # type: ignore[no-any-return]


def used_up(x: Any, spec: Spec, ends: Sequence[int | Tensor], given: Sequence[Tensor]) -> Tensor:
    """An array, or a tensor, as a tensor with such a history; ends that are arguments are found among those."""
    y = x.detach() if isinstance(x, Tensor) else wrap(x)
    y._node = closed(spec, *[given[end] if isinstance(end, int) else end for end in ends])
    return y


class _streams_at:  # noqa: N801
    """Random streams are where they were at a call, for a block."""

    def __init__(self, streams: tuple[Generator, ...], positions: tuple[tuple[int, int], ...]) -> None:
        self.streams, self.positions = streams, positions

    def __enter__(self) -> None:
        self.before = [(s._seed, s._block) for s in self.streams]
        self._move(self.positions)

    def __exit__(self, *_: object) -> None:
        self._move(self.before)

    def _move(self, positions: Iterable[tuple[int, int]]) -> None:
        for s, (key, block) in zip(self.streams, positions, strict=True):
            s._seed = key
            s._position(block)


def _fitted(array: Any, spec: Spec) -> Any:
    """An array laid out as its spec says."""
    if array.__class__ is not np.ndarray and device_of(array) == spec.device and isinstance(array, DeviceArray):
        return memory_of(array).laid_out(array, spec)
    if array.__class__ is not np.ndarray:
        raise GraphError(message("compile", "a gradient of a compiled function is wanted of a tensor without data"))
    size = array.itemsize
    strides = tuple([s * size for s in strides_of(spec)])
    if array.strides == strides and array.dtype is spec.dtype:
        return array
    count = 1 + sum([(n - 1) * s for n, s in zip(spec.shape, strides_of(spec), strict=True)]) if array.size else 0
    memory = restrided(np.empty(count, spec.dtype), spec.shape, strides)
    memory[...] = array
    return memory
