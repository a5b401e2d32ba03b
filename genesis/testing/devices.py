"""Check a device: its memory does what `genesis.arrays.memory` asks of one, and every op gives there what it gives on
the CPU.

check_memory("mine")
check_device("mine")                       every op; or
check_op_on("mine", genesis.add.op, sample)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from genesis.arrays.memory import DeviceArray, memory_of, placed
from genesis.autograd.func.batches import vmap
from genesis.autograd.func.derivatives import jvp
from genesis.base import dtypes
from genesis.base.device import as_device, device, require_available
from genesis.core.call.op import REGISTRY, Case, Op
from genesis.core.graph.generator import default_generator
from genesis.core.graph.modes import no_grad
from genesis.core.graph.tensor import Tensor, wrap
from genesis.jit.tracer import trace
from genesis.ops.creation.create import zeros
from genesis.ops.creation.outside import tensor
from genesis.ops.shapes.join import stack
from genesis.testing.arguments import replace, tensors_in
from genesis.testing.kernels import _derivatives
from genesis.testing.make import Maker
from genesis.testing.opcheck import sample_dtypes, samples_of
from genesis.testing.tolerance import assert_close


def check_memory(where: Any) -> None:
    """The memory of a device keeps the promises of `genesis.arrays.memory.Memory`.

    Raises:
        AssertionError: the first that it does not keep
    """
    on = require_available(as_device(where))
    memory = memory_of(zeros(1, device=on)._array)
    assert on.index is not None and on.index < memory.count(), (
        f"resolved({where!r}) is {on}, a device with an index is expected"
    )
    for dtype in (dtypes.float32, dtypes.bool, dtypes.int64, dtypes.complex64, dtypes.bfloat16):
        _check_copies(memory, on, dtype.np)
    _check_writes(memory, on)
    _check_views(on)


def _check_copies(memory: Any, on: device, dtype: Any) -> None:
    for shape in ((2, 3), (), (0, 3)):
        host = (np.arange(np.prod(shape, dtype=int)) + 1).reshape(shape).astype(dtype)
        array = memory.from_host(host, on)
        for made in (array, memory.empty(shape, dtype, on), memory.copy(array)):
            assert isinstance(made, memory.arrays) and isinstance(made, DeviceArray), (
                f"{type(made).__name__} is not the class of the memory's arrays"
            )
            assert (tuple(made.shape), made.dtype, made.device, made.base) == (shape, dtype, on, None), (
                f"{made.shape} {made.dtype} {made.device}, base {made.base}"
            )
        back = memory.to_host(array)
        assert type(back) is np.ndarray and back.dtype == dtype and np.array_equal(back, host), (
            f"from_host and to_host give {back!r} for {host!r}"
        )
        if host.size:
            host[...] = 0
            back[...] = 0
            assert memory.to_host(array).any(), "from_host or to_host shares memory with the host"
        if shape:
            strided = memory.from_host(np.arange(6.0).reshape(3, 2).T, on)
            assert memory.strides(strided) == (3, 1), (
                f"from_host gives strides {memory.strides(strided)}, contiguous are (3, 1)"
            )


def _check_writes(memory: Any, on: device) -> None:
    target = memory.from_host(np.zeros((2, 3), np.float32), on)
    apart = memory.copy(target)
    memory.assign(target, memory.from_host(np.arange(3), on))
    assert memory.to_host(target).tolist() == [[0, 1, 2], [0, 1, 2]], "assign does not broadcast or convert"
    assert not memory.to_host(apart).any() and not memory.shares(apart, target), "copy shares memory"
    for name, value in (("zeros", 0), ("ones", 1)):
        assert (memory.to_host(getattr(memory, name)((2, 2), np.dtype(np.float32), on)) == value).all(), (
            f"{name} gives other numbers"
        )


def _check_views(on: device) -> None:
    x = tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], device=on)
    columns, wide = x.t(), x[0:1].expand(4, 3)  # type: ignore[attr-defined]
    memory = memory_of(x._array)
    assert memory.shares(columns._array, x._array) and memory.strides(columns._array) == (1, 3), (
        "x.t() is no view of the memory of x"
    )
    assert memory.writable(columns._array) and not memory.writable(wide._array), (
        "writable: an expanded array is not, a transposed one is"
    )
    columns[0] = 7.0
    assert x.tolist() == [[7, 2, 3], [7, 5, 6]], "a write to x.t() does not reach x"
    assert memory.strides(memory.copy(columns._array)) == (2, 1), "copy does not give a contiguous array"


# ---- ops

Outcome = dict[str, list[Tensor]]


def check_device(where: Any, ops: Iterable[Op] | None = None) -> list[str]:
    """Every op gives on a device what it gives on the CPU, on every sample; returns what was checked."""
    done = []
    for op in REGISTRY.values() if ops is None else ops:
        if op.kind.moves or op.kind.draws:  # their samples are of the CPU
            continue
        for dtype in sample_dtypes(op):
            for i in range(len(samples_of(op, Maker(dtype)))):
                check_op_on(
                    where,
                    op,
                    lambda i=i, op=op, dtype=dtype: samples_of(op, Maker(dtype, seed=i, requires_grad=True))[i],
                )  # type: ignore[misc]
            done.append(f"{op.name} {dtype.name}")
    return done


def check_op_on(where: Any, op: Op, make: Callable[[], Case], layout: str = "contiguous") -> None:
    """One call: values, first and second derivatives, forward mode, a batch, the in-place form and ``out=`` are the
    CPU's, and on the device.
    """
    on = require_available(as_device(where))
    for name, run in _RUNS.items():
        sample = make()
        there = moved(sample, on, layout)  # before a run writes into it
        expected, outcome = _outcome(run, op, sample), _outcome(run, op, there)
        if isinstance(expected, Exception) or isinstance(outcome, Exception):
            assert type(outcome) is type(expected), (
                f"{op.name} on {on}: {name} gives {outcome!r}, on the CPU {expected!r}"
            )
            continue
        for x, y in zip(outcome, expected, strict=True):
            assert x.device == on, f"{op.name} on {on}: {name} is on {x.device}"
            assert_close(x.detach().cpu().numpy(), y.detach().numpy(), f"{op.name} on {on}: {name}")  # type: ignore[attr-defined]


def _outcome(run: Callable[[Op, Case], list[Tensor]], op: Op, sample: Case) -> list[Tensor] | Exception:
    default_generator.manual_seed(5)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return run(op, sample)
    except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError) as error:
        return error


def moved(sample: Case, on: device, layout: str = "contiguous") -> Case:
    """A sample on a device; "strided" lays its tensors out in every second element of a larger one, turned around."""

    def there(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return placed(value, on)
        if not isinstance(value, Tensor):
            return value
        x = value.detach().to(on)  # type: ignore[attr-defined]
        if layout == "strided" and x.ndim:
            wide = zeros(*[2 * n for n in x.shape[::-1]], dtype=x.dtype, device=on)
            x = wide[tuple([slice(None, None, 2)] * x.ndim)].permute(tuple(range(x.ndim))[::-1]).copy_(x)
        return x.requires_grad_(value.requires_grad)

    return Case(
        tuple([there(replace(a, there)) for a in sample.args]),
        {k: there(replace(v, there)) for k, v in sample.kwargs.items()},
    )


def _values(op: Op, sample: Case) -> list[Tensor]:
    inputs = [t for t in tensors_in((sample.args, sample.kwargs)) if t.requires_grad]
    return [x for group in _derivatives(op, sample, inputs) for x in group]


def _plain(op: Op, sample: Case) -> tuple[Callable[..., Any], list[Tensor]]:
    """The op as a function of the floating tensors of a sample."""
    chosen = lambda t: t.is_floating_point() or t.is_complex()  # noqa: E731

    def function(*new: Tensor) -> tuple[Tensor, ...]:
        left = iter(new)
        swap = lambda t: next(left) if chosen(t) else t  # noqa: E731
        outs = tensors_in(op.call(*replace(list(sample.args), swap), **replace(dict(sample.kwargs), swap)))
        return tuple(y for y in outs if chosen(y))

    return function, [t.detach() for t in tensors_in((sample.args, sample.kwargs)) if chosen(t)]


def _forward(op: Op, sample: Case) -> list[Tensor]:
    function, inputs = _plain(op, sample)
    if not inputs or op.module == "" or not function(*inputs):
        return []
    outs, tangents = jvp(function, tuple(inputs), tuple(x.cos() for x in inputs))  # type: ignore[attr-defined]
    return [*outs, *[t for t in tangents if t is not None]]


def _batch(op: Op, sample: Case) -> list[Tensor]:
    function, inputs = _plain(op, sample)
    return (
        list(vmap(function, randomness="same")(*[stack([x, x * 0.5]) for x in inputs]))
        if inputs and function(*inputs)
        else []
    )


def _inplace(op: Op, sample: Case) -> list[Tensor]:
    first, *others = sample.args
    if not op.inplace or not isinstance(first, Tensor):
        return []
    with no_grad():
        x = first.detach().clone()  # type: ignore[attr-defined]
        return [getattr(x, op.name + "_")(*others, **sample.kwargs), x]


def _out(op: Op, sample: Case) -> list[Tensor]:
    if not op.kind.aligned:
        return []
    with no_grad():
        y = op.call(*sample.args, **sample.kwargs)
        out = y.new_empty(y.shape)
        return [op.call(*sample.args, **sample.kwargs, out=out), out]


def _replay(op: Op, sample: Case) -> list[Tensor]:
    inputs = [t.detach() for t in tensors_in((sample.args, sample.kwargs))]

    def function(*new: Tensor) -> tuple[Tensor, ...]:
        left = iter(new)
        args, kwargs = (
            replace(list(sample.args), lambda _: next(left)),
            replace(dict(sample.kwargs), lambda _: next(left)),
        )
        return tuple(tensors_in(op.call(*args, **kwargs)))

    graph = trace(function, *inputs).verify()
    default_generator.manual_seed(5)
    return list(graph.replay(*inputs))


_RUNS: dict[str, Callable[[Op, Case], list[Tensor]]] = {
    "values and derivatives": _values,
    "forward mode": _forward,
    "a batch": _batch,
    "in place": _inplace,
    "out=": _out,
    "a replay": _replay,
}
__all__ = ["check_device", "check_memory", "check_op_on", "moved", "wrap"]
