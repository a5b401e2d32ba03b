"""Attention and convolutions by cuDNN, through ``nvidia-cudnn-frontend``: a graph of one op is built once for each way in
which operands are laid out (which takes about half a second), and then called with addresses.

Only 16-bit floats are asked of it: in float32 it would round to TF32. What it refuses is remembered, and computed by
the kernels that are there without it.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from typing import Any

from genesis.arrays.spec import Spec, contiguous_strides
from genesis.base.deterministic import switches
from genesis.cuda.arrays import MEMORY, CudaArray, empty, used
from genesis.cuda.libraries.loading import library, of_device
from genesis.cuda.libraries.workspaces import workspace
from genesis.cuda.runtime.devices import Device
from genesis.ops.spatial.convolution import last_strides, one_is_channels_last

NAME = "cudnn"
KINDS = {"float16": "HALF", "bfloat16": "BFLOAT16"}
ALIGNED = 16  # bytes of addresses; strides and features are multiples of as many
refused: dict[str, str] = {}  # what cuDNN would not compute in this process, the last of each kind, and why
Describe = Callable[[Any, dict[int, Any]], dict[int, Any]]
Laid = tuple[tuple[int, tuple[int, ...], tuple[int, ...], Any], ...]  # number, shape, strides and dtype of each operand


class Graphs:
    """cuDNN on one device: a handle, and the graphs that were built, None for those that it refused."""

    def __init__(self, on: Device) -> None:
        on.enter()
        self.on, self.cudnn = on, library(NAME)
        self.handle = self.cudnn.create_handle()
        self.built: dict[Any, tuple[Any, int] | None] = {}
        self._lock = threading.Lock()  # the handle has one stream at a time
        self._thread = threading.local()
        self._others: list[Any] = []  # handles of other threads, that graphs were built with

    def run(self, key: Any, arrays: dict[int, CudaArray], outs: frozenset[int], describe: Describe) -> bool:
        """Compute what a graph describes; whether cuDNN does that.

        Args:
            key: what, besides the operands' layout, makes it another graph; the first is its name
            arrays: by number, what is read and written
            outs: the numbers of those that are written
            describe: called with a graph and its inputs by number, gives the outputs by number
        """
        laid = tuple([(i, a.shape, steps_of(a), a.dtype) for i, a in arrays.items()])
        notes = self.on.enter().notes
        if (key, laid) not in self.built:
            if notes is not None:
                notes.builds[self, key, laid] = lambda: self._build_apart(key, laid, outs, describe)
                return True
            self.built[key, laid] = self._build(key[0], laid, outs, describe, self.handle)
        known = self.built[key, laid]
        if known is None or notes is not None:
            return known is not None
        graph, count = known
        space = workspace(self.on, max(count, 1))
        stream = used(*arrays.values(), space)
        with self._lock:
            self.cudnn.set_stream(self.handle, stream.handle)
            graph.execute({i: a.address for i, a in arrays.items()}, space.address, self.handle)
        return True

    def _build_apart(self, key: Any, laid: Laid, outs: frozenset[int], describe: Describe) -> None:
        """Build a graph that is not there in one of several threads, each of which has a handle of its own."""
        self.on.enter()
        handle = getattr(self._thread, "handle", None)
        if handle is None:
            handle = self._thread.handle = self.cudnn.create_handle()
            self._others.append(handle)
        self.built[key, laid] = self._build(key[0], laid, outs, describe, handle)

    def _build(
        self, what: str, laid: Laid, outs: frozenset[int], describe: Describe, handle: Any
    ) -> tuple[Any, int] | None:
        cudnn, wide = self.cudnn, self.cudnn.data_type.FLOAT
        try:
            graph = cudnn.pygraph(
                io_data_type=self._kind(laid[0][3]), intermediate_data_type=wide, compute_data_type=wide, handle=handle
            )
            inputs = {
                i: graph.tensor(dim=list(shape), stride=list(steps), data_type=self._kind(dtype), uid=i)
                for i, shape, steps, dtype in laid
                if i not in outs
            }
            given = describe(graph, inputs)
            for i, shape, steps, dtype in laid:
                if i in outs:
                    given[i].set_output(True).set_uid(i).set_data_type(self._kind(dtype))
                    given[i].set_dim(list(shape)).set_stride(list(steps))
            graph.build([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
            return graph, int(graph.get_workspace_size())
        except (cudnn.cudnnGraphNotSupportedError, RuntimeError) as error:
            shapes = ", ".join([f"{dtype.name} {shape}" for _, shape, _, dtype in laid])
            refused[what] = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}, of {shapes}"
            return None

    def _kind(self, dtype: Any) -> Any:
        return getattr(self.cudnn.data_type, KINDS.get(dtype.name, "FLOAT"))


def graphs(on: Device) -> Graphs | None:
    """cuDNN on a device, if it is there."""
    return of_device(on, Graphs, NAME)


def steps_of(array: CudaArray) -> tuple[int, ...]:
    """Its strides; those of dimensions of one, which may be anything, as if there were no gaps."""
    shape = array.shape
    return tuple(
        [s if n != 1 else math.prod(shape[i + 1 :]) for i, (n, s) in enumerate(zip(shape, array.strides, strict=True))]
    )


def _fits(*arrays: CudaArray) -> bool:
    """Whether all begin, and have rows that begin, where 16 bytes may be read at once."""
    step = ALIGNED // 2
    return all([
        a.dtype.name in KINDS and a.address % ALIGNED == 0 and all([s > 0 and s % step == 0 for s in steps_of(a)[:-1]])
        for a in arrays
    ])  # fmt: skip


# ---- attention: batches, heads, rows, features


def attended(
    q: CudaArray, k: CudaArray, v: CudaArray, out: CudaArray, total: CudaArray, scale: float, causal: bool
) -> bool:
    """``out`` from queries, keys and values, and ``total``, the logarithm of the sum of each row; whether cuDNN does it."""
    made = graphs(q.on) if _fits(q, k, v, out) and _wide(q, v) else None
    if made is None:
        return False

    def describe(graph: Any, x: dict[int, Any]) -> dict[int, Any]:
        made = graph.sdpa(q=x[1], k=x[2], v=x[3], generate_stats=True, attn_scale=scale, use_causal_mask=causal)
        return {4: made[0], 5: made[1]}

    arrays = {1: q, 2: k, 3: v, 4: out, 5: total}
    return made.run(("attention", scale, causal), arrays, frozenset({4, 5}), describe)


def attended_back(read: Sequence[CudaArray], written: Sequence[CudaArray], scale: float, causal: bool) -> bool:
    """The gradients of queries, keys and values, from these, the result, its gradient and the totals: in an order of sums that
    is the same each time where the program asks for that, which takes half as long again.
    """
    same = switches.wanted
    q, k, v, out, g, _ = read
    made = graphs(q.on) if _fits(q, k, v, out, g, *written) and _wide(q, v) else None
    if made is None:
        return False

    def describe(graph: Any, x: dict[int, Any]) -> dict[int, Any]:
        made = graph.sdpa_backward(
            q=x[1], k=x[2], v=x[3], o=x[4], dO=x[6], stats=x[5], attn_scale=scale, use_causal_mask=causal,
            use_deterministic_algorithm=same,
        )  # fmt: skip
        return dict(zip((7, 8, 9), made, strict=True))

    arrays = dict(zip((1, 2, 3, 4, 6, 5, 7, 8, 9), (*read, *written), strict=True))
    return made.run(("gradients of attention", scale, causal, same), arrays, frozenset({7, 8, 9}), describe)


def _wide(q: CudaArray, v: CudaArray) -> bool:
    return q.shape[-1] % 8 == 0 and v.shape[-1] % 8 == 0


# ---- convolutions in two and three dimensions

Rules = tuple[Any, Any, Any]  # stride, padding, dilation


def _rules(rules: Rules) -> dict[str, list[int]]:
    return {name: list(rule) for name, rule in zip(("stride", "padding", "dilation"), rules, strict=True)}


def convolved(x: CudaArray, w: CudaArray, bias: CudaArray | None, out: CudaArray, rules: Rules, back: bool) -> bool:
    """A convolution, or what goes back through one; whether cuDNN does it."""
    made = graphs(x.on) if _takes(x, w, out) and not (back and bias is not None) else None
    if made is None:
        return False
    x, w = packed(x, w)
    biased = bias is not None

    def describe(graph: Any, t: dict[int, Any]) -> dict[int, Any]:
        if back:
            return {4: graph.conv_dgrad(loss=t[1], filter=t[2], **_rules(rules))}
        y = graph.conv_fprop(image=t[1], weight=t[2], **_rules(rules))
        return {4: graph.bias(input=y, bias=t[3]) if biased else y}

    arrays = {1: x, 2: w, 4: out}
    if bias is not None:
        arrays[3] = bias.seen(0, (1, bias.size, *[1] * (x.ndim - 2)), (bias.size, 1, *[1] * (x.ndim - 2)))
    return made.run(("convolution", tuple(map(tuple, rules)), back), arrays, frozenset({4}), describe)


def weight_of(x: CudaArray, g: CudaArray, out: CudaArray, rules: Rules) -> bool:
    """The gradient of a convolution's weight; whether cuDNN does it."""
    made = graphs(x.on) if _takes(x, g, out) else None
    if made is None:
        return False

    def describe(graph: Any, t: dict[int, Any]) -> dict[int, Any]:
        return {4: graph.conv_wgrad(image=t[1], loss=t[2], **_rules(rules))}

    key = "gradient of a weight", tuple(map(tuple, rules))
    x, g = packed(x, g)
    return made.run(key, {1: x, 2: g, 4: out}, frozenset({4}), describe)


def packed(*arrays: CudaArray) -> list[CudaArray]:
    """All without gaps, and with channels last where one of them has them so: of filters laid out otherwise, as transposed
    ones are, cuDNN computes other numbers, and says nothing.
    """
    last = one_is_channels_last(*[Spec(a.shape, a.dtype, a.device, a.strides) for a in arrays])
    return [_laid(a, last_strides(a.shape) if last else contiguous_strides(a.shape)) for a in arrays]


def _laid(array: CudaArray, strides: tuple[int, ...]) -> CudaArray:
    if all([s == wanted for n, s, wanted in zip(array.shape, array.strides, strides, strict=True) if n != 1]):
        return array
    out = empty(array.on, array.shape, array.dtype, strides)
    MEMORY.assign(out, array)
    return out


def _takes(*arrays: CudaArray) -> bool:
    return all([a.dtype.name in KINDS and a.ndim in (4, 5) and a.address % ALIGNED == 0 for a in arrays])
