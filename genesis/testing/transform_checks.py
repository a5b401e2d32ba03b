"""Check an op under transforms: forward mode against reverse mode, a batch against a loop, and one inside the other."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from genesis.autograd.func.batches import vmap
from genesis.autograd.func.derivatives import grad, jvp, vjp
from genesis.autograd.gradients import grad as gradients_of
from genesis.base import dtypes
from genesis.core.call.op import Case, Op
from genesis.core.graph.generator import default_generator
from genesis.core.graph.tensor import Tensor, wrap
from genesis.jit.passes import optimized
from genesis.jit.tracer import trace
from genesis.ops.creation.create import zeros
from genesis.ops.shapes.join import stack
from genesis.testing.make import Maker
from genesis.testing.opcheck import _call, _direction, _floating, replace, samples_of, tensors_in
from genesis.testing.tolerance import assert_close

SAMPLES = 3  # of a batch


def _function(
    op: Op, sample: Case, chosen: Callable[[Tensor], bool]
) -> tuple[Callable[..., tuple[Tensor, ...]], list[Tensor]]:
    """The op as a function of the chosen tensors of a sample."""
    inputs = [t for t in tensors_in((sample.args, sample.kwargs)) if chosen(t)]

    def function(*new: Tensor) -> tuple[Tensor, ...]:
        left = iter(new)
        swap = lambda t: next(left) if chosen(t) else t  # noqa: E731
        return tuple(_call(op, Case(tuple(replace(list(sample.args), swap)), replace(dict(sample.kwargs), swap))))

    return function, inputs


def _product(a: Tensor, b: Any) -> float:
    return float((np.conj(np.asarray(b)) * a.detach().numpy().astype(np.complex128)).sum().real)


def check_jvp(op: Op, sample: Case) -> None:
    """Forward mode is the transpose of reverse mode, $\\langle w, J d\\rangle = \\langle J^T w, d\\rangle$, also along
    a batch of directions.
    """
    function, inputs = _function(op, sample, lambda t: _floating(t) and t.requires_grad)
    inputs = [x.detach() for x in inputs]
    floating = lambda *xs: tuple(y for y in function(*xs) if _floating(y))  # noqa: E731
    if not inputs or not floating(*inputs):
        return
    rng = np.random.Generator(np.random.Philox(11))
    directions = [wrap(_direction(rng, x)) for x in inputs]
    outs, pushed = jvp(floating, tuple(inputs), tuple(directions))
    weights = [_direction(rng, y) for y in outs]
    for y, expected in zip(outs, floating(*inputs), strict=True):
        assert_close(y.numpy(), expected.detach().numpy(), "jvp: value")
    _, pull = vjp(floating, *inputs)
    pulled = pull(tuple(wrap(np.asarray(w)) for w in weights))
    forward = sum(_product(t, w) for t, w in zip(pushed, weights, strict=True))
    reverse = sum(_product(d, g.detach().numpy()) for d, g in zip(directions, pulled, strict=True))
    assert abs(forward - reverse) <= 1e-9 + 1e-8 * abs(reverse), (
        f"forward mode gives {forward:.12g}, reverse mode {reverse:.12g}"
    )


def check_vmap(op: Op, make: Callable[[int], Case], gradients: bool) -> None:
    """A batch gives what a loop over its samples gives: every input batched, and each alone; values and gradients."""
    cases = [make(seed) for seed in range(SAMPLES)]
    columns = [list(column) for column in zip(*[tensors_in((c.args, c.kwargs)) for c in cases], strict=True)]
    if not columns or any(len({tuple(t.shape) for t in column}) > 1 for column in columns):
        return
    choices = [tuple(range(len(columns)))] + ([(i,) for i in range(len(columns))] if len(columns) > 1 else [])
    for chosen in choices:
        for where in (0, -1):
            _one_choice(op, cases[0], columns, chosen, where, gradients and where == 0)


def _one_choice(
    op: Op, sample: Case, columns: list[list[Tensor]], chosen: tuple[int, ...], where: int, gradients: bool
) -> None:
    function, inputs = _function(op, sample, lambda t: True)
    shared = [x.detach() for x in inputs]
    rows = [[columns[i][k].detach() if i in chosen else x for i, x in enumerate(shared)] for k in range(SAMPLES)]
    expected = [function(*row) for row in rows]
    batch = [
        wrap(np.stack([t.detach().numpy() for t in columns[i]], where)) if i in chosen else x
        for i, x in enumerate(shared)
    ]
    dims = tuple(where if i in chosen else None for i in range(len(shared)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = vmap(function, dims)(*batch)
    for i, y in enumerate(results):
        assert_close(
            y.detach().numpy(),
            np.stack([e[i].detach().numpy() for e in expected]),
            f"vmap of inputs {chosen} along {where}",
        )
    if gradients:
        _batched_gradients(function, rows, batch, dims)


def _batched_gradients(
    function: Callable[..., Any], rows: list[list[Tensor]], batch: list[Tensor], dims: tuple[Any, ...]
) -> None:
    """Gradients inside a batch are the loop's; the gradient of a batch is their sum where samples share an input."""
    floating = [i for i, x in enumerate(batch) if _floating(x)]
    rng = np.random.Generator(np.random.Philox(13))
    outs = [y for y in function(*rows[0]) if _floating(y)]
    if not floating or not outs:
        return
    weights = [wrap(np.asarray(_direction(rng, y))) for y in outs]

    def pulled(*xs: Tensor) -> Any:
        def of_floating(*some: Tensor) -> Any:
            full = list(xs)
            for i, x in zip(floating, some, strict=True):
                full[i] = x
            return tuple(y for y in function(*full) if _floating(y))

        return vjp(of_floating, *[xs[i] for i in floating])[1](tuple(weights))

    loop = [pulled(*row) for row in rows]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        inside = vmap(pulled, dims)(*batch)
    for j, g in enumerate(inside):
        assert_close(g.detach().numpy(), np.stack([row[j].detach().numpy() for row in loop]), "vmap of the gradient")
    leaves = [x.detach().requires_grad_() if i in floating else x for i, x in enumerate(batch)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = [y for y in vmap(function, dims)(*leaves) if _floating(y)]
    parts = [(y * w.conj()).sum() for y, w in zip(results, weights, strict=True)]  # type: ignore[operator]
    total = sum(
        (p.real if p.is_complex() else p for p in parts[1:]), parts[0].real if parts[0].is_complex() else parts[0]
    )
    if not total.requires_grad:
        return
    total.backward()
    for j, i in enumerate(floating):
        g = leaves[i].grad
        gradient = np.zeros(tuple(batch[i].shape), batch[i]._array.dtype) if g is None else g.numpy()
        each = [row[j].detach().numpy() for row in loop]
        assert_close(
            gradient,
            np.stack(each) if dims[i] == 0 else np.sum(each, 0).astype(gradient.dtype),
            f"gradient of the vmap, input {i}",
        )


def _real_sum(values: Any, weights: Any) -> Tensor:
    """$\\sum \\mathrm{Re}(y \\bar w)$ over several tensors."""
    parts = [(y * w.conj()).sum() for y, w in zip(values, weights, strict=True)]
    parts = [p.real if p.is_complex() else p for p in parts]
    return sum(parts[1:], parts[0])  # type: ignore[no-any-return]


def check_nesting(op: Op, sample: Case) -> None:
    """Transforms inside each other: batches of batches, batches and forward mode, and every order of two derivatives,
    also of batches.
    """
    function, inputs = _function(op, sample, _floating)
    inputs = [x.detach() for x in inputs]
    floating = lambda *xs: tuple(y for y in function(*xs) if _floating(y))  # noqa: E731
    if not inputs or not floating(*inputs):
        return
    values = floating(*inputs)
    rng = np.random.Generator(np.random.Philox(17))
    directions = [wrap(np.asarray(_direction(rng, x))) for x in inputs]
    weights = [wrap(np.asarray(_direction(rng, y))) for y in values]
    twice = lambda t: stack([t, t])  # noqa: E731
    everything = tuple(range(len(inputs)))

    def pushed(*xs: Tensor) -> Any:
        return jvp(floating, tuple(xs), tuple(directions))[1]

    def slope(*xs: Tensor) -> Tensor:
        return _real_sum(vjp(floating, *xs)[1](tuple(weights)), directions)

    def along(f: Callable[..., Tensor], *xs: Tensor) -> Tensor:
        """The derivative of a scalar function by reverse mode, along the directions."""
        return _real_sum(directions, grad(f, everything)(*xs))

    def shared(f: Callable[..., Any]) -> Callable[..., Tensor]:
        """The sum of a function over a batch whose samples all have the same arguments, from outside."""
        return lambda *xs: _real_sum([y.sum(0) for y in vmap(lambda _: f(*xs))(zeros(3))], weights)

    tangents, forward = pushed(*inputs), lambda *xs: _real_sum(pushed(*xs), weights)
    second = along(slope, *inputs)
    pairs = {
        "vmap of vmap": (vmap(vmap(floating))(*[twice(twice(x)) for x in inputs]), [twice(twice(y)) for y in values]),
        "vmap of jvp": (vmap(pushed)(*[twice(x) for x in inputs]), [twice(t) for t in tangents]),
        "jvp of vmap": (
            jvp(vmap(floating), tuple(map(twice, inputs)), tuple(map(twice, directions)))[1],
            [twice(t) for t in tangents],
        ),
        "forward over reverse": ([jvp(slope, tuple(inputs), tuple(directions))[1]], [second]),
        "forward over forward": ([jvp(forward, tuple(inputs), tuple(directions))[1]], [second]),
        "reverse over forward": ([along(forward, *inputs)], [second]),
        "vmap of forward over reverse": (
            [vmap(lambda *xs: jvp(slope, xs, tuple(directions))[1])(*[twice(x) for x in inputs])],
            [twice(second)],
        ),
        "vmap of reverse over forward": (
            [vmap(lambda *xs: along(forward, *xs))(*[twice(x) for x in inputs])],
            [twice(second)],
        ),
        "reverse over a batch that shares its input": (
            [along(shared(floating), *inputs)],
            [3 * along(lambda *xs: _real_sum(floating(*xs), weights), *inputs)],
        ),
        "reverse over a batch of forward": ([along(shared(pushed), *inputs)], [3 * second]),
    }
    for name, (results, expected) in pairs.items():
        for a, b in zip(results, expected, strict=True):
            x, y = a.detach().numpy(), b.detach().numpy()
            close = x.shape == y.shape and np.allclose(x, y, 1e-8, 1e-8, equal_nan=True)
            assert close, f"{name}: {x}, expected {y}"


def check_trace(op: Op, sample: Case) -> None:
    """A replay of the traced op is the op, bit for bit: values and gradients, also after all passes."""
    function, inputs = _function(op, sample, lambda t: True)
    inputs = [x.detach() for x in inputs]
    floating = [i for i, x in enumerate(inputs) if _floating(x)]

    def with_gradients(*xs: Tensor) -> Any:
        fresh = [x.detach().requires_grad_() if i in floating else x for i, x in enumerate(xs)]
        outs = function(*fresh)
        roots = [y for y in outs if y.requires_grad]
        gradients = (
            gradients_of(
                [y.sum() if not y.is_complex() else y.abs().sum() for y in roots],
                [fresh[i] for i in floating],
                materialize_grads=True,
            )
            if roots
            else ()
        )
        return [y.detach() for y in outs], list(gradients)

    default_generator.manual_seed(3)
    values, gradients = with_gradients(*inputs)
    default_generator.manual_seed(3)
    graph = trace(with_gradients, *inputs).verify()
    for one in (graph, optimized(graph).verify()):
        default_generator.manual_seed(3)
        replayed, replayed_gradients = one.replay(*inputs)
        for a, b in zip([*replayed, *replayed_gradients], [*values, *gradients], strict=True):
            x, y = a.numpy(), b.numpy()
            assert x.shape == y.shape and x.dtype == y.dtype, f"replay gives {a._spec()}, the op {b._spec()}"
            assert np.ascontiguousarray(x).tobytes() == np.ascontiguousarray(y).tobytes(), (
                f"replay differs:\n{x!r}\nthe op gives\n{y!r}"
            )


def check_transforms(op: Op, dtype: Any = dtypes.float64) -> None:
    """All checks on every sample of an op."""
    for i in range(len(samples_of(op, Maker(dtype)))):
        check_jvp(op, samples_of(op, Maker(dtype, seed=i, requires_grad=True))[i])
        check_vmap(op, lambda seed, i=i: samples_of(op, Maker(dtype, seed=seed))[i], True)
        check_trace(op, samples_of(op, Maker(dtype, seed=i))[i])
        check_nesting(op, samples_of(op, Maker(dtype, seed=i))[i])
