"""Check an op from its record: values, infer, gradients to second order, 16-bit floats, layouts, surroundings, and its
wrong inputs.

    opcheck(genesis.ops.reductions.reduce.sum)
    opcheck(my_op, samples=lambda t: [case(t(2, 3))])

Each check is a function of an op and one sample; `CHECKS` names them, and `OWN` those that operations of users get,
which have no record.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec, meta
from genesis.autograd.checking import surroundings
from genesis.autograd.checking.calls import resolve
from genesis.autograd.gradients import grad
from genesis.base import dtypes
from genesis.base.errors import ArgumentError, message
from genesis.core.call.kinds import OPAQUE
from genesis.core.call.op import Case, Op, case
from genesis.core.graph.generator import get_rng_state, set_rng_state
from genesis.core.graph.modes import no_grad
from genesis.core.graph.tensor import Tensor, wrap
from genesis.testing.arguments import replace, tensors_in
from genesis.testing.draws import check_draw
from genesis.testing.kernels import meanings_only
from genesis.testing.make import Maker
from genesis.testing.precision import check_halves, check_large_halves
from genesis.testing.strides import LAYOUTS, check_strides, works_along_dim
from genesis.testing.tolerance import assert_close

Sample = tuple[Op, Case]
HALVES = (dtypes.float16, dtypes.bfloat16)


def default_samples(op: Op) -> Callable[[Maker], list[Case]]:
    """Samples of elementwise ops that give none: 0-d, broadcast, zero-size, a number."""
    if len(op.signature.parameters) == 1:
        return lambda t: [case(t()), case(t(2, 3)), case(t(0, 3))]
    number = 2 if "f" not in op.dtypes else 1.5
    return lambda t: [
        case(t(2, 3), t(2, 3)),
        case(t(2, 1), t(3)),
        case(t(), t(2)),
        case(t(0, 3), t(3)),
        case(t(3), number),
    ]


def samples_of(op: Op, maker: Maker) -> list[Case]:
    """The samples of an op, with values from ``maker``."""
    if op.samples is not None:
        return list(op.samples(maker))
    return default_samples(op)(maker) if op.kind.aligned else []


def _call(op: Op, sample: Case) -> list[Tensor]:
    return list(tensors_in(op.call(*sample.args, **sample.kwargs)))


def _meaning(op: Op, sample: Case) -> Any:
    """What the op's NumPy meaning says; integers are computed in the default dtype where the result is floating."""
    wide = np.dtype(np.float32) if op.result == "float" else None
    bound = op.signature.bind(*sample.args, **sample.kwargs)
    bound.apply_defaults()
    return op.meaning(*[replace(v, lambda t: _as_array(t, wide)) for v in bound.arguments.values()])


def _as_array(t: Tensor, wide: Any) -> Any:
    array = t.detach().numpy()
    return array.astype(wide) if wide is not None and array.dtype.kind in "iub" else array


def check_meaning(op: Op, sample: Case) -> None:
    """The value is the meaning's, whatever path and kernel computed it; of elementwise ops, what NumPy gives for it."""
    state = get_rng_state()
    results = _call(op, sample)
    set_rng_state(state)
    with meanings_only():
        expected = _call(op, sample)
    for a, b in zip(results, expected, strict=True):
        assert_close(a.detach().numpy(), b.detach().numpy(), "meaning")
    if not op.kind.aligned or len(op.signature.parameters) > 2 or not isinstance(sample.args[0], Tensor):
        return
    (out,) = _call(op, sample)
    with np.errstate(all="ignore"):
        values = np.asarray(_meaning(op, sample))
    if out.dtype.itemsize > 2:
        assert_close(out.detach().numpy(), values.astype(out.dtype.np), "meaning")


def check_infer(op: Op, sample: Case) -> None:
    """On meta tensors the op gives the shapes and dtypes that it gives on data."""
    outs = _call(op, sample)
    try:
        shapes = _on_meta(op, sample, lambda t: False)
    except (TypeError, RuntimeError, NotImplementedError, IndexError) as refusal:
        if "no data" in str(refusal) and not any(_floating(t) for t in tensors_in((sample.args, sample.kwargs))):
            return  # the result's shape depends on data, and the op says so
        try:
            shapes = _on_meta(op, sample, lambda t: t._array.dtype.kind in "iub")  # indices and masks with data
        except (TypeError, RuntimeError, NotImplementedError) as error:
            if "no data" in str(error):  # the result's shape depends on data, and the op says so
                return
            raise
    assert len(shapes) == len(outs), f"infer: {len(shapes)} results, expected {len(outs)}"
    for spec, out in zip(shapes, outs, strict=True):
        assert isinstance(spec._array, Spec), f"infer: a meta tensor gave {type(spec._array).__name__}"
        assert (spec._array.shape, spec._array.dtype) == (tuple(out.shape), out._array.dtype), (
            f"infer: {spec._array}, expected {out._spec()}"
        )


def _on_meta(op: Op, sample: Case, keep: Callable[[Tensor], bool]) -> list[Tensor]:
    ghost = lambda t: t if keep(t) else wrap(meta(tuple(t.shape), t._array.dtype))  # noqa: E731
    return list(tensors_in(op.call(*replace(list(sample.args), ghost), **replace(dict(sample.kwargs), ghost))))


def check_memory(op: Op, sample: Case) -> None:
    """Results have memory of their own, or are views that say so: writing to one changes nothing else."""
    inputs = list(tensors_in((sample.args, sample.kwargs)))
    outs = [y for y in _call(op, sample) if isinstance(y._array, np.ndarray)]
    for i, out in enumerate(outs):
        if any(out is x for x in inputs) or out._view is not None:
            continue
        for other in (*inputs, *outs[:i]):
            assert not np.shares_memory(out._array, other._array), (
                f"memory: a result shares that of {other._spec()}, and is no view of it"
            )
        assert out._array.flags.writeable, f"memory: the result {out._spec()} cannot be written to"


def check_layout(maker: Callable[[str], Maker], op: Op, index: int) -> None:
    """Strided inputs give what contiguous ones give."""
    plain, strided = samples_of(op, maker("contiguous"))[index], samples_of(op, maker("strided"))[index]
    for a, b in zip(_call(op, plain), _call(op, strided), strict=True):
        assert_close(b.detach().numpy(), a.detach().numpy(), "strided input")


def _floating(t: Tensor) -> bool:
    return t.is_floating_point() or t.is_complex()


def _scalarised(op: Op, weights: list[Any], rebuild: Callable[[list[Tensor]], Case]) -> Callable[..., Tensor]:
    """A function of the floating inputs to one real number: the outputs, weighted and summed."""

    def function(*inputs: Tensor) -> Tensor:
        outs = [y for y in _call(op, rebuild(list(inputs))) if _floating(y)]
        total = None
        for w, y in zip(weights, outs, strict=True):
            part = (y * wrap(w)).sum()  # type: ignore[operator]
            part = part.real if part.is_complex() else part
            total = part if total is None else total + part
        assert total is not None
        return total

    return function


def check_gradient(op: Op, sample: Case, order: int = 2) -> None:
    """Gradients, and gradients of gradients, along random directions against central differences in float64."""
    inputs = [t for t in tensors_in((sample.args, sample.kwargs)) if _floating(t) and t.requires_grad]
    if not inputs:
        return

    def rebuild(new: list[Tensor]) -> Case:
        left = iter(new)
        swap = lambda t: next(left) if _floating(t) and t.requires_grad else t  # noqa: E731
        return Case(tuple(replace(list(sample.args), swap)), replace(dict(sample.kwargs), swap))

    outs = [y for y in _call(op, sample) if _floating(y)]
    if not any(y.requires_grad for y in outs):
        assert op.kind.composed or not op.vjp, f"{op.name}: has a gradient, but its result does not require grad"
        return
    rng = np.random.Generator(np.random.Philox(7))
    weights = [_direction(rng, y) for y in outs]
    _directional(_scalarised(op, weights, rebuild), inputs, rng, order)


def _direction(rng: Any, t: Tensor) -> Any:
    real = np.asarray(rng.uniform(0.5, 1.5, t.shape) * rng.choice([-1.0, 1.0], t.shape))
    return (
        np.asarray(real + 1j * rng.uniform(0.5, 1.5, t.shape), t._array.dtype)
        if t.is_complex()
        else np.asarray(real, t._array.dtype)
    )


def _directional(function: Callable[..., Tensor], inputs: list[Tensor], rng: Any, order: int) -> None:
    directions = [_direction(rng, x) for x in inputs]
    leaves = [x.detach().requires_grad_() for x in inputs]
    y = function(*leaves)
    gradients = (
        grad(y, leaves, create_graph=order > 1, materialize_grads=True)
        if y.requires_grad
        else [x._zeros(tuple(x.shape), x._array.dtype) for x in leaves]
    )
    analytic = sum(
        float((np.conj(d) * g.detach().numpy()).sum().real) for d, g in zip(directions, gradients, strict=True)
    )  # type: ignore[union-attr]
    with no_grad():
        numeric, error = _difference(
            lambda s: float(
                function(
                    *[
                        wrap(np.asarray(x.numpy() + s * d))
                        for x, d in zip(map(Tensor.detach, inputs), directions, strict=True)
                    ]
                )
            )
        )
    assert abs(analytic - numeric) <= 1e-6 + 1e-5 * abs(numeric) + error, (
        f"gradient {analytic:.10g}, differences give {numeric:.10g}"
    )
    if order < 2 or not any(g is not None and g.requires_grad for g in gradients):
        return
    weights = [_direction(rng, x) for x in inputs]

    def slope(*args: Tensor) -> Tensor:
        out = function(*args)
        gs = grad(out, args, create_graph=True, materialize_grads=True)
        parts = [(g * wrap(np.asarray(np.conj(w)))).sum() for g, w in zip(gs, weights, strict=True)]  # type: ignore[operator]
        parts = [p.real if p.is_complex() else p for p in parts]
        return sum(parts[1:], parts[0])

    _second(slope, leaves, rng)


def _second(slope: Callable[..., Tensor], inputs: list[Tensor], rng: Any) -> None:
    directions = [_direction(rng, x) for x in inputs]
    y = slope(*inputs)
    if not y.requires_grad:
        return
    gradients = grad(y, inputs, materialize_grads=True)
    analytic = sum(
        float((np.conj(d) * g.detach().numpy()).sum().real) for d, g in zip(directions, gradients, strict=True)
    )  # type: ignore[union-attr]
    moved = lambda s: [
        wrap(np.asarray(x.detach().numpy() + s * d)).requires_grad_() for x, d in zip(inputs, directions, strict=True)
    ]  # noqa: E731
    numeric, error = _difference(lambda s: float(slope(*moved(s))))
    assert abs(analytic - numeric) <= 1e-5 + 1e-4 * abs(numeric) + error, (
        f"second derivative {analytic:.10g}, differences give {numeric:.10g}"
    )


def _difference(f: Callable[[float], float]) -> tuple[float, float]:
    """Central difference of fourth order, and a bound on its rounding error."""
    h = 1e-4
    values = [f(s * h) for s in (-2, -1, 1, 2)]
    return (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * h), 1e-12 * max(map(abs, values)) / h


def check_fails(op: Op, maker: Maker | None = None) -> None:
    """Each wrong input raises its error with its words, and changes none of its arguments."""
    for fail in op.fails:
        sample = fail.make(maker or Maker(dtypes.float32))
        before = [t.numpy().copy() for t in tensors_in((sample.args, sample.kwargs))]
        try:
            op.call(*sample.args, **sample.kwargs)
        except fail.error as error:
            assert fail.match in str(error), f"{op.name}: the message is {str(error)!r}, expected {fail.match!r} in it"
        else:
            raise AssertionError(f"{op.name}: {sample} did not raise {fail.error.__name__}")
        for old, t in zip(before, tensors_in((sample.args, sample.kwargs)), strict=True):
            assert_close(t.numpy(), old, f"{op.name}: an argument after the error")


# ---- surroundings

_EXTREME = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 3e38, -3e38, 1e-45, -1.0, 2.0, 700.0, -90.0])


def extreme(sample: Case) -> Case:
    """The sample with numbers that overflow, divide by zero and have no logarithm."""

    def filled(t: Tensor) -> Tensor:
        if not t.is_floating_point():
            return t
        with np.errstate(all="ignore"):
            return wrap(np.resize(_EXTREME, t.shape).astype(t._array.dtype)).requires_grad_(t.requires_grad)

    return Case(tuple(replace(list(sample.args), filled)), replace(dict(sample.kwargs), filled))


def check_warnings(op: Op, sample: Case) -> None:
    """With warnings as errors the op gives what it gives without, of extreme numbers, too, and its in-place form writes
    once.
    """
    for numbers in (sample, extreme(sample)):
        surroundings.check_warnings(op.name, op.call, numbers.args, numbers.kwargs)
        if op.kind.repeatable and hasattr(Tensor, op.name + "_") and isinstance(numbers.args[0], Tensor):
            surroundings.check_inplace(op.name, op.name + "_", op.call, numbers.args, numbers.kwargs)


def check_threads(op: Op, sample: Case) -> None:
    """In several threads at once the op gives what it gives in one, the recorded graph and the gradients included."""
    surroundings.check_threads(op.name, op.call, sample.args, sample.kwargs)


def _own_warnings(op: Op, sample: Case) -> None:
    surroundings.check_warnings(op.name, op.call, sample.args, sample.kwargs)


Check = Callable[[Op, Case], None]
CHECKS: dict[str, Check] = {
    "meaning": check_meaning,
    "infer": check_infer,
    "memory": check_memory,
    "gradient": check_gradient,
    "halves": check_halves,
    "large halves": check_large_halves,
    "warnings": check_warnings,
    "threads": check_threads,
}
OWN: dict[str, Check] = {
    "warnings": _own_warnings,
    "memory": check_memory,
    "gradient": partial(check_gradient, order=1),
    "threads": check_threads,
}
_ONLY = {"gradient": (dtypes.float64, dtypes.complex128), "halves": HALVES, "large halves": HALVES}
_RECORDED = ("gradient", "warnings", "threads")  # with inputs that require grad


def opcheck(function: Any, samples: Callable[[Maker], Iterable[Case]] | None = None) -> list[str]:
    """Run every check of an op on every sample and dtype; returns what was checked, raises AssertionError on the first
    failure.

    Args:
        function: an op; or, with ``samples``, an operation of your own: a `library.custom_op`, a `Function`, or any
            function of tensors
        samples: calls of that operation, made with a `Maker` of float64 numbers

    >>> import genesis
    >>> from genesis.testing import case, opcheck
    >>> "sum float64 gradient" in opcheck(genesis.sum)
    True
    >>> opcheck(lambda x, k: x.exp() * k, samples=lambda t: [case(t(2, 3), 0.5)])
    ['<lambda> float64 warnings', '<lambda> float64 memory', '<lambda> float64 gradient', '<lambda> float64 threads']
    """
    op, checks = _checked(function, samples)
    done: list[str] = []
    check_fails(op)
    if op.kind.draws:
        for sample in samples_of(op, Maker(dtypes.float32)):
            check_draw(op, sample)
        return [f"{op.name} draws"]
    for dtype in sample_dtypes(op) if checks is CHECKS else [dtypes.float64]:
        for name, check in checks.items():
            if dtype not in _ONLY.get(name, (dtype,)):
                continue
            for i, _ in enumerate(samples_of(op, Maker(dtype))):
                check(op, samples_of(op, Maker(dtype, seed=i, requires_grad=name in _RECORDED))[i])
            done.append(f"{op.name} {dtype.name} {name}")
    if checks is CHECKS and works_along_dim(op):
        for layout in LAYOUTS:
            check_strides(op, layout)
            done.append(f"{op.name} float32 {layout}")
    return done


def _checked(function: Any, samples: Any) -> tuple[Op, dict[str, Check]]:
    """The record of an operation, and the checks that apply to it: of a user's op those of what is registered."""
    record = getattr(function, "op", function)
    if not isinstance(record, Op) or (samples is not None and record.kind is not OPAQUE):
        return _record(function, samples), OWN
    if record.kind is not OPAQUE:
        return record, CHECKS
    op = dataclasses.replace(_record(function, samples), infer=record.infer, tensors=record.tensors, kind=OPAQUE)
    missing = set() if function.has_fake else {"infer"}
    missing |= set() if op.kind.differentiable(op) else {"gradient"}
    return op, {name: check for name, check in (OWN | {"infer": check_infer}).items() if name not in missing}


def _record(function: Any, samples: Any) -> Op:
    """A record for an operation that has none."""
    call, _, name = resolve(function)
    if samples is None:
        raise ArgumentError(
            message("opcheck", f"{name} has no samples", hint=f"opcheck({name}, samples=lambda t: [case(t(2, 3))])")
        )
    return Op(name, "own", inspect.signature(call), call, samples=samples, call=call)


def sample_dtypes(op: Op) -> list[dtypes.dtype]:
    """The dtypes that an op's samples are tried with."""
    kinds = {
        "f": [dtypes.float64, dtypes.float32, dtypes.bfloat16, dtypes.float16],
        "F": [dtypes.float64, dtypes.float32],  # of ops that refuse 16-bit floats
        "c": [dtypes.complex128],
        "i": [dtypes.int64, dtypes.int16, dtypes.uint8],
        "b": [dtypes.bool],
    }
    return [d for k in op.dtypes for d in kinds[k]]
