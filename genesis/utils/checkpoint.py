"""Checkpointing: save less for backward by running part of the forward again when backward needs it.

    y = checkpoint(block, x)                       # nothing that block saves is kept
    y = checkpoint(block, x, context_fn=...)       # but for what a policy says, see `create_selective_checkpoint_contexts`

How it works: the forward runs and is recorded as usual, but a saved tensor is replaced by an empty `_Slot`
(`core/graph/saved.py`). When backward asks for the first of them, the function runs again, recorded, with the same
arguments, random numbers and modes, and every tensor that it saves goes to the place of the same number; the run ends
as soon as all are filled. There is nothing reentrant about it: any kind of arguments, ``autograd.grad``, double
backward, nested checkpoints and hooks work.
"""

from __future__ import annotations

import enum
import weakref
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from operator import is_not
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from genesis.arrays.spec import Spec
from genesis.base.device import CPU
from genesis.base.errors import ArgumentValueError, GraphError, message
from genesis.base.pytree import tree_flatten
from genesis.core.call.op import Op
from genesis.core.graph.autocast import restored, state
from genesis.core.graph.generator import default_generator
from genesis.core.graph.levels import again, levels, numbered, remembered
from genesis.core.graph.modes import enable_grad, entered, grad_mode, interception, kernels_are_forced, kernels_only
from genesis.core.graph.node import Node
from genesis.core.graph.saved import Packed, packing, saved_tensors_hooks
from genesis.core.graph.site import site_of
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.version import WRITES

ContextFn = Callable[[], tuple[AbstractContextManager[Any], AbstractContextManager[Any]]]


def noop_context_fn() -> tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
    return nullcontext(), nullcontext()


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: ContextFn = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    preserve_rng_state: bool = True,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """``function(*args, **kwargs)``, keeping only its arguments: what it saves for backward is computed again when
    needed.

    Args:
        use_reentrant: accepted for PyTorch's sake; there is one implementation, and it is not reentrant
        context_fn: makes two context managers, for the forward and for the run in backward
        determinism_check: "default" compares shapes and dtypes of what both runs save, "values" also the numbers,
            "none" nothing
        debug: accepted for PyTorch's sake; the operations of both runs are always remembered
        preserve_rng_state: give the second run the random numbers of the first
        early_stop: end the second run as soon as everything needed is there

    Raises:
        RuntimeError: (in backward) the second run saved something else, or an argument was written to since

    >>> import genesis
    >>> from genesis.utils.checkpoint import checkpoint
    >>> x = genesis.ones(3, requires_grad=True)
    >>> checkpoint(lambda t: t.exp().sin(), x).sum().backward()
    >>> x.grad
    tensor([-2.4783, -2.4783, -2.4783])
    """
    if determinism_check not in ("default", "none", "values"):
        raise ArgumentValueError(
            message("checkpoint", f"determinism_check is {determinism_check!r}", hint="'default', 'values' or 'none'")
        )
    if not grad_mode.get():
        return function(*args, **kwargs)
    first, again = context_fn()
    run = _Run(function, args, kwargs, again, determinism_check, preserve_rng_state, early_stop)
    with _Hooks(run.slot, _as_it_is), numbered(remembered(run.levels)), first:
        return function(*args, **kwargs)


class _Slot(Packed):
    """Where a saved tensor will be when it is needed."""

    __slots__ = ("__weakref__", "edge", "index", "like", "run", "value")

    def __init__(self, run: _Run, t: Tensor) -> None:
        self.run, self.index = run, len(run.slots)
        self.edge, self.like = t._node, (t._array.shape, t._array.dtype)
        self.value: Tensor | None = None

    def fill(self, t: Tensor) -> None:
        if (t._array.shape, t._array.dtype) != self.like:
            raise GraphError(
                message(
                    "checkpoint",
                    f"the second run saved {t._spec()}, the first {Spec(*self.like, CPU)}",
                    [("function", _name(self.run.function))],
                    "the function must do the same both times",
                )
            )
        self.value = t if t._node is self.edge else t._alias(self.edge)

    def unpack(self, name: str) -> Tensor:
        if self.value is None:
            self.run.run_again()
        if self.value is None:
            raise GraphError(
                message(
                    "checkpoint",
                    f"the second run saved fewer tensors, {self.index} or less of {len(self.run.slots)}",
                    [("function", _name(self.run.function))],
                    "the function must do the same both times",
                )
            )
        return self.value


class _Hooks(saved_tensors_hooks):
    """Calls ``pack_hook(node, tensor)`` for what a node saves; the node keeps what that returns, if it is a slot."""

    def packed(self, node: Node) -> tuple[Any, ...]:
        pack = self.pack_hook
        saved = tuple([pack(node, x) if isinstance(x, Tensor) else self._of_value(node, x) for x in node._saved])
        return saved if any(map(is_not, saved, node._saved)) else node._saved

    def _of_value(self, node: Node, value: Any) -> Any:
        if isinstance(value, Tensor):
            return self.pack_hook(node, value)
        return [self._of_value(node, each) for each in value] if value.__class__ is list else value


class _Enough(BaseException):
    """Ends the second run early; not an `Exception`, which a user's code might catch."""


class _Note(NamedTuple):
    """One saved tensor of a run: which operation saved it, where, and what it looked like."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    crc: int
    code: CodeType | None
    at: int

    @property
    def spec(self) -> str:
        return str(Spec(self.shape, self.dtype, CPU))

    def __str__(self) -> str:
        site = site_of(self.code, self.at)
        return f"{self.name} saves {self.spec}" + ("" if site is None else f" at {site}")


def _looks(node: Node, t: Tensor, values: bool) -> tuple[Any, ...]:
    """What both runs must have in common of a saved tensor."""
    array = t._array
    return type(node).__name__, array.shape, array.dtype, _crc(t) if values else 0


def _crc(t: Tensor) -> int:
    return zlib.crc32(np.ascontiguousarray(t.detach().numpy_view()).view(np.uint8).data) if t.numel() else 0


class _Run:
    """One checkpointed call: what is needed to run it again, and the places to fill."""

    def __init__(
        self, function: Any, args: Any, kwargs: Any, again: Any, check: str, keep_rng: bool, early_stop: bool
    ) -> None:
        self.function, self.args, self.kwargs, self.again, self.check, self.early_stop = (
            function,
            args,
            kwargs,
            again,
            check,
            early_stop,
        )
        self.moments = [level.moment() for level in levels() if level.moment is not None]  # with their random numbers
        self.rng = default_generator.key_and_block() if keep_rng and not self.moments else None
        self.autocast, self.kernels = state(), kernels_are_forced()
        self.around = packing.get()
        self.epoch = WRITES[0]
        self.levels: list[int] = []  # of the transforms inside
        self.slots: list[weakref.ref[_Slot]] = []
        self.notes: list[tuple[tuple[Any, ...], CodeType | None, int]] = []  # how they look, and where that was

    def slot(self, node: Node, t: Tensor) -> _Slot:
        """A slot for what the first run saves."""
        slot = _Slot(self, t)
        self.slots.append(weakref.ref(slot))
        if self.check != "none":
            self.notes.append((_looks(node, t, self.check == "values"), node._code, node._at))
        return slot

    def run_again(self) -> None:
        self._check_arguments()
        for pair in self.around:
            pair.before_run_again()
        checks, values, count = self.check != "none", self.check == "values", 0
        slots, notes = self.slots, self.notes

        def fill(node: Node, t: Tensor) -> Tensor:
            nonlocal count
            if checks and (count >= len(notes) or _looks(node, t, values) != notes[count][0]):
                raise self._mismatch(count, _Note(*_looks(node, t, values), node._code, node._at))
            slot = slots[count]() if count < len(slots) else None
            if slot is not None:
                slot.fill(t)
            count += 1
            if self.early_stop and count == len(slots):
                raise _Enough
            return t  # for a backward inside of the function itself

        before = default_generator.key_and_block()
        if self.rng is not None:
            default_generator.move_to(*self.rng)
        try:
            with (
                enable_grad(),
                restored(self.autocast),
                kernels_only(self.kernels),
                _Hooks(fill, _as_it_is),
                numbered(again(self.levels)),
                ExitStack() as stack,
                self.again,
            ):
                for moment in self.moments:
                    stack.enter_context(moment())
                self.function(*self.args, **self.kwargs)
        except _Enough:
            pass
        finally:
            default_generator.move_to(*before)

    def _check_arguments(self) -> None:
        for t in tree_flatten((self.args, self.kwargs))[0]:
            if isinstance(t, Tensor) and t._counter is not None and t._counter.stamp > self.epoch:
                raise GraphError(
                    message("checkpoint", f"an argument was modified in place by {t._counter.writer} since the "
                                          "forward",
                            [("argument", t._spec())], "give checkpoint a clone()")
                )  # fmt: skip

    def _mismatch(self, last: int, second: _Note) -> GraphError:
        """The second run is another one at this saved tensor."""
        notes = [_Note(*looks, code, at) for looks, code, at in self.notes[max(0, last - 3) : last + 1]]
        both = notes[: min(last, 3)]
        lines: list[tuple[str, object]] = [("both runs", note) for note in both]
        lines.append(("first run", notes[-1] if len(notes) > len(both) else "nothing more"))
        lines.append(("second run", second))
        return GraphError(
            message(
                "checkpoint",
                f"the second run of {_name(self.function)} differs from the first at saved tensor {last}",
                lines,
                "the function must do the same both times: no global counters, no random numbers of its own",
            )
        )


def _name(function: Any) -> str:
    return str(getattr(function, "__qualname__", type(function).__name__))


def _as_it_is(t: Tensor) -> Tensor:
    return t


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Run a `Sequential` (or list of functions) in so many segments, all but the last one checkpointed.

    >>> import genesis
    >>> from genesis.utils.checkpoint import checkpoint_sequential
    >>> x = genesis.ones(2, requires_grad=True)
    >>> checkpoint_sequential([genesis.exp, genesis.sin, genesis.cos], 2, x).shape
    genesis.Size([2])
    """
    steps = list(functions)  # of a Sequential its modules, one that is shared as often as it is there
    if not 1 <= segments <= max(len(steps), 1):
        raise ArgumentValueError(
            message(
                "checkpoint_sequential", f"{segments} segments of {len(steps)} functions", hint=f"1 to {len(steps)}"
            )
        )
    size = len(steps) // segments

    def part(begin: int, end: int) -> Callable[[Any], Any]:
        def forward(x: Any) -> Any:
            for step in steps[begin:end]:
                x = step(x)
            return x

        return forward

    for i in range(segments - 1):
        input = checkpoint(part(i * size, (i + 1) * size), input, **kwargs)
    return part((segments - 1) * size, len(steps))(input)


# ---- policies: what to save all the same


class CheckpointPolicy(enum.Enum):
    """What a policy says of one operation: its result is saved, or computed again."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4  # on the CPU the same as MUST_SAVE


_SAVES = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE, CheckpointPolicy.MUST_CPU_OFFLOAD)


class SelectiveCheckpointContext:
    """What a policy is told of the run: ``is_recompute``."""

    def __init__(self, *, is_recompute: bool) -> None:
        self.is_recompute = is_recompute


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Any,
) -> tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
    """Contexts for ``context_fn``: results of the operations that the policy picks are kept, all others computed again.

    Args:
        policy_fn_or_list: operations (``genesis.matmul`` or their names) whose results are saved, or a function
            ``policy(ctx, op, *args) -> CheckpointPolicy``; ``op.name`` is the operation's name

    >>> import genesis, functools
    >>> from genesis.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
    >>> w = genesis.ones(3, 3, requires_grad=True)
    >>> keep_products = functools.partial(create_selective_checkpoint_contexts, [genesis.matmul])
    >>> checkpoint(lambda t: (t @ t).tanh(), w, context_fn=keep_products).sum().backward()
    """
    if callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        names = {f if isinstance(f, str) else f.op.name for f in policy_fn_or_list}
        policy = lambda ctx, op, *args: (
            CheckpointPolicy.MUST_SAVE if op.name in names else CheckpointPolicy.PREFER_RECOMPUTE
        )
    kept: list[tuple[str, Any]] = []
    return _keeping(policy, kept), _using(policy, kept)


def _decide(policy: Any, ctx: SelectiveCheckpointContext, op: Op, args: Sequence[Any]) -> bool:
    decision = policy(ctx, op, *args)
    if isinstance(decision, bool):
        return decision
    if not isinstance(decision, CheckpointPolicy):
        raise ArgumentValueError(
            message("checkpoint", f"the policy returned {decision!r} for {op.name}", hint="a CheckpointPolicy")
        )
    return decision in _SAVES


def _keeping(policy: Any, kept: list[tuple[str, Any]]) -> AbstractContextManager[Any]:
    ctx = SelectiveCheckpointContext(is_recompute=False)

    def between(op: Op, args: Sequence[Any], run: Callable[[], Any]) -> Any:
        result = run()
        if _decide(policy, ctx, op, args):
            kept.append((op.name, result))
        return result

    return entered(interception, between)


@contextmanager
def _using(policy: Any, kept: list[tuple[str, Any]]) -> Iterator[None]:
    ctx = SelectiveCheckpointContext(is_recompute=True)
    rest = iter(list(kept))

    def between(op: Op, args: Sequence[Any], run: Callable[[], Any]) -> Any:
        if not _decide(policy, ctx, op, args):
            return run()
        name, result = next(rest, ("nothing", None))
        if name != op.name:
            raise GraphError(
                message("checkpoint", f"the policy saved {name} in the first run and asks for {op.name} in the second")
            )
        return result

    with entered(interception, between):
        yield


def checkpoint_name(x: Tensor, name: str) -> Tensor:
    """The same values under a name that policies (`save_only_these_names`) and reports know; the gradient passes
    through.

    >>> import genesis
    >>> from genesis.utils.checkpoint import checkpoint_name
    >>> checkpoint_name(genesis.ones(2), "hidden")
    tensor([1., 1.])
    """
    from genesis.ops.creation.convert import named

    return named(x, name)


def save_only_these_names(*names: str) -> Callable[..., CheckpointPolicy]:
    """A policy that saves the values named by `checkpoint_name` and computes everything else again."""

    def policy(ctx: SelectiveCheckpointContext, op: Op, *args: Any) -> CheckpointPolicy:
        if op.name == "named" and args[1] in names:
            return CheckpointPolicy.MUST_SAVE
        return CheckpointPolicy.MUST_RECOMPUTE

    return policy


def saved_residuals(function: Callable[..., Any], *args: Any, **kwargs: Any) -> list[tuple[str, str]]:
    """What a call saves for backward: for each tensor its spec, and which operation saves it where.

    >>> import genesis
    >>> from genesis.utils.checkpoint import saved_residuals
    >>> [spec for spec, _ in saved_residuals(lambda x: x.exp() * 2, genesis.ones(3, requires_grad=True))]
    ['f32[3]']
    """
    residuals: list[tuple[str, str]] = []

    def note(node: Node, t: Tensor) -> Tensor:
        spec, _, rest = str(_Note(*_looks(node, t, False), node._code, node._at)).partition(" saves ")
        residuals.append((str(t._spec()), spec + rest.removeprefix(str(t._spec()))))
        return t

    with enable_grad(), _Hooks(note, _as_it_is):
        function(*args, **kwargs)
    return residuals


def print_saved_residuals(function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Print `saved_residuals`, one line for each tensor."""
    for spec, who in saved_residuals(function, *args, **kwargs):
        print(f"{spec:16} {who}")
