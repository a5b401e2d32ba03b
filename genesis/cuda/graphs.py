"""Graphs of work that are recorded once and launched again and again, under PyTorch's names.

What is recorded is launched with the memory that it was recorded with: inputs are written into the tensors that it
read, results are in those that it made. Random numbers go on from where the generator is at each launch. Other numbers
of the program (a learning rate) are those of the recording: `genesis.compile` is for steps of training, and freezes none.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

from genesis.base.errors import ArgumentError, ArgumentValueError, message
from genesis.core.graph.modes import enable_grad
from genesis.core.graph.tensor import Tensor
from genesis.cuda.memory.allocator import allocator
from genesis.cuda.queues import StreamContext
from genesis.cuda.recorded.capture import Capture
from genesis.cuda.recorded.executable import Executable
from genesis.cuda.runtime.devices import device_at
from genesis.cuda.runtime.errors import CaptureError, CudaError
from genesis.cuda.runtime.streams import Stream, current, default
from genesis.cuda.usage import empty_cache
from genesis.jit.compiling.function import CompiledFunction

MODES = ("global", "thread_local", "relaxed")
Pool = tuple[int, int]


class CUDAGraph:
    """A graph of work of a device: recorded between `capture_begin` and `capture_end`, or inside of `graph`.

    Args:
        keep_graph: accepted, without an effect

    >>> import genesis
    >>> if genesis.cuda.is_available():
    ...     g, x = genesis.cuda.CUDAGraph(), genesis.zeros(2, device="cuda")
    ...     with genesis.cuda.graph(g):
    ...         x += 1
    ...     g.replay()
    """

    def __init__(self, keep_graph: bool = False) -> None:
        device_at()
        self._capture: Capture | None = None
        self._executable: Executable | None = None

    def capture_begin(self, pool: Pool | None = None, capture_error_mode: str = "global") -> None:
        """From now on what the current stream is told is recorded, and not done.

        Args:
            pool: the memory of another graph (its `pool`), or of `graph_pool_handle`
            capture_error_mode: which calls of the driver are refused meanwhile; of this thread only, whatever is said

        Raises:
            RuntimeError: something is recorded in it already, or the stream is the default one
        """
        if self._capture is not None:
            raise CaptureError(message("CUDAGraph", "it has a recording already", hint="reset()"))
        if capture_error_mode not in MODES:
            text = f"capture_error_mode is one of {', '.join(MODES)}, got {capture_error_mode!r}"
            raise ArgumentValueError(message("CUDAGraph", text))
        on = device_at()
        if current(on) == default(on):
            hint = "with genesis.cuda.graph(g), or with genesis.cuda.stream(genesis.cuda.Stream())"
            raise CaptureError(message("CUDAGraph", "graphs are recorded on another stream than the default one", hint=hint))  # fmt: skip
        number = allocator(on).new_pool() if pool is None else _number(pool)
        capture = Capture(on, number)
        capture.begin()
        self._capture = capture

    def capture_end(self) -> None:
        """What is recorded is a graph now.

        Raises:
            RuntimeError: nothing is being recorded, or a call that no graph can hold was made
        """
        if self._capture is None or self._executable is not None:
            raise CaptureError(message("CUDAGraph", "nothing is being recorded"))
        try:
            self._executable = self._capture.end()
        except CudaError:
            self.reset()
            raise

    def replay(self) -> None:
        """Do what was recorded, on the current stream.

        Raises:
            RuntimeError: nothing was recorded
        """
        if self._capture is None or self._executable is None:
            raise CaptureError(message("CUDAGraph", "nothing was recorded", hint="with genesis.cuda.graph(g): ..."))
        stream = current(self._capture.on)
        self._capture.drawn(stream)
        self._executable.launch(stream)

    def reset(self) -> None:
        """Forget what was recorded. Memory that nobody else has is given back."""
        if self._capture is not None:
            self._capture.memory.drop_pool(self._capture.pool)
        self._capture = self._executable = None

    def pool(self) -> Pool:
        """The memory that it was recorded with, for another graph that is launched in the same order.

        Raises:
            RuntimeError: nothing was recorded
        """
        if self._capture is None:
            raise CaptureError(message("CUDAGraph", "nothing was recorded"))
        return 0, self._capture.pool

    def raw_cuda_graph_exec(self) -> int:
        """The driver's handle of what is launched."""
        return 0 if self._executable is None else self._executable.handle

    def instantiate(self) -> None:
        """Make it ready to be launched, as it is already."""

    def enable_debug_mode(self) -> None:
        """Accepted, without an effect."""

    def __del__(self) -> None:
        if getattr(self, "_capture", None) is not None:
            self.reset()


class graph:  # noqa: N801, PyTorch's name
    """Inside of a ``with``, what is told to the current stream, a side stream, is recorded in a graph.

    Args:
        cuda_graph: which
        pool, capture_error_mode: see `CUDAGraph.capture_begin`
        stream: on which it is recorded
    """

    def __init__(
        self, cuda_graph: CUDAGraph, pool: Pool | None = None, stream: Stream | None = None, capture_error_mode: str = "global",
    ) -> None:  # fmt: skip
        if not isinstance(cuda_graph, CUDAGraph):
            raise ArgumentError(message("graph", f"expected a CUDAGraph, got a {type(cuda_graph).__name__}"))
        self.cuda_graph, self.given = cuda_graph, (pool, capture_error_mode)
        self.stream = Stream() if stream is None else stream
        self.context = StreamContext(self.stream)

    def __enter__(self) -> None:
        self.stream.on.enter().synchronize()
        gc.collect()
        empty_cache()
        self.context.__enter__()
        try:
            self.cuda_graph.capture_begin(*self.given)
        except BaseException:
            self.context.__exit__(None, None, None)
            raise

    def __exit__(self, kind: Any, *caught: Any) -> None:
        try:
            if kind is None:
                self.cuda_graph.capture_end()
            else:
                capture = self.cuda_graph._capture
                if capture is not None:
                    capture.abandon()
                self.cuda_graph.reset()
        finally:
            self.context.__exit__(kind, *caught)


def graph_pool_handle() -> Pool:
    """A pool of memory that several graphs may share, for their ``pool``."""
    return 0, allocator(device_at()).new_pool()


def make_graphed_callables(
    callables: Any, sample_args: Any, num_warmup_iters: int = 3, allow_unused_input: bool = False, pool: Pool | None = None
) -> Any:  # fmt: skip
    """Functions or modules whose forward and backward are launched as graphs.

    They are compiled (`genesis.compile`) and called with the samples until that is done.

    Args:
        callables: one, or a tuple of several
        sample_args: a tuple of tensors, or one for each of the callables
        num_warmup_iters: how often they are called besides
        allow_unused_input: accepted: inputs that get no gradient are no error
        pool: accepted, without an effect

    Returns:
        the same modules, whose ``forward`` is another; functions in the place of functions

    Raises:
        TypeError: the samples are no tuples of tensors
    """
    several = isinstance(callables, tuple)
    every = callables if several else (callables,)
    samples = sample_args if several else (sample_args,)
    if len(every) != len(samples) or not all(
        [isinstance(s, tuple) and all([isinstance(x, Tensor) for x in s]) for s in samples]
    ):
        text = f"expected a tuple of tensors for each of {len(every)} callables"
        raise ArgumentError(message("make_graphed_callables", text))
    made = tuple([_graphed(each, given, num_warmup_iters) for each, given in zip(every, samples, strict=True)])
    return made if several else made[0]


def _graphed(function: Any, given: tuple[Tensor, ...], times: int) -> Any:
    forward = getattr(function, "forward", None)
    compiled = CompiledFunction(function if forward is None else forward)
    if forward is not None:
        function.forward = compiled
    run: Callable[..., Any] = compiled if forward is None else function
    for _ in range(max(times, 1) + 2):  # as it is or traced, noted, recorded
        with enable_grad():
            inputs = [x.detach().requires_grad_(x.requires_grad) for x in given]
            out = run(*inputs)
            outs = [y for y in (out if isinstance(out, tuple) else (out,)) if isinstance(y, Tensor) and y.requires_grad]
            if outs:
                leaves = [x for x in (*inputs, *_parameters(function)) if x.requires_grad]
                from genesis.autograd.gradients import grad

                grad([y.sum() for y in outs], leaves, allow_unused=True)
    return run


def _parameters(function: Any) -> list[Tensor]:
    named = getattr(function, "parameters", None)
    return list(named()) if callable(named) else []


def _number(pool: Any) -> int:
    if not (isinstance(pool, tuple) and len(pool) == 2 and all([type(x) is int for x in pool])):
        raise ArgumentError(message("CUDAGraph", f"a pool is a pair of ints, see graph_pool_handle(), got {pool!r}"))
    return int(pool[1])


__all__ = ["CUDAGraph", "graph", "graph_pool_handle", "make_graphed_callables"]
