"""Is a gradient right? Compared with central differences, in double precision.

Inputs are evaluated in float64 whatever their dtype, so a float32 function with ``eps=1e-6`` can be checked. A function
whose own code computes in float32 is recognised by its values; it is differenced with wide steps of fourth order, which
find an error of one per cent all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from genesis.autograd.checking.calls import Calls, is_floating, strided
from genesis.autograd.checking.conduct import check_unused
from genesis.autograd.checking.differences import DOUBLE, SINGLE, Array, Precision, column, inner, moved
from genesis.autograd.checking.evidence import wrong_elements
from genesis.autograd.checking.homes import from_the_host
from genesis.autograd.checking.inputs import check_dtypes
from genesis.autograd.checking.trial import Measured, Trial
from genesis.autograd.gradients import grad
from genesis.base.errors import GenesisError, GraphError, message
from genesis.base.pytree import tree_flatten
from genesis.core.call.refusal import explain_all
from genesis.core.graph.tensor import Tensor, wrap


class GradcheckError(GraphError):
    """The gradient that backward computes is not the numerical one."""


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    fast_mode: bool = False,
    seed: int = 0,
) -> bool:
    """Compare the gradients of ``func`` with central differences, for random weightings of its outputs.

    An element at a kink, where the slopes to its left and right differ, is right if its gradient lies between them.
    Backward must also be linear in grad_output, and take one that is not contiguous.

    Args:
        inputs: a tensor, or a sequence of arguments, containers of tensors included; tensors that require grad are
            checked
        eps: the step; atol, rtol: what may differ
        raise_exception: raise where they differ, or return False
        nondet_tol: by how much two runs of backward may differ
        check_undefined_grad: check that an unused output counts as one with a gradient of zeros
        check_grad_dtypes: check that backward returns gradients in the dtype of the inputs, in float32 too
        fast_mode: compare along random directions only, not element by element
        seed: of the weights and directions, which are the same in every run

    Raises:
        GradcheckError: they differ; the message names the input, what is wrong with its gradient, and the seed

    >>> import genesis
    >>> genesis.autograd.gradcheck(lambda x: x ** 2, genesis.ones(3, requires_grad=True), eps=1e-6)
    True
    """
    func, arguments = from_the_host(func, (inputs,) if isinstance(inputs, Tensor) else tuple(inputs))
    calls = Calls(func, arguments, {}, every=False)
    try:
        if not calls.positions:
            raise GradcheckError(
                message("gradcheck", "no input requires grad", hint="pass tensors with requires_grad=True")
            )
        with calls.random_kept(), np.errstate(all="ignore"):
            trial = Trial(calls, seed, lambda text: GradcheckError(message("gradcheck", text)))
            if not any(trial.live):  # nothing requires grad: then nothing may depend on the inputs
                trial.live = [True] * len(trial.live)
            _check(trial, Precision(eps, 2.0**-52, rtol), atol, nondet_tol, fast_mode, f"seed {seed}")
            for wanted, check in ((check_undefined_grad, check_unused), (check_grad_dtypes, check_dtypes)):
                for row in check(trial) if wanted else ():
                    if row.status == "failed":
                        raise GradcheckError(message("gradcheck", row.words, [("check", row.check)], row.repair))
    except GenesisError:
        if raise_exception:
            raise
        return False
    return True


def _check(trial: Trial, wish: Precision, atol: float, nondet_tol: float, fast: bool, seed: str) -> None:
    single = trial.precision is SINGLE
    trial.precision = SINGLE if single else wish
    atol, rtol = (max(atol, 1e-4), max(wish.rtol, SINGLE.rtol)) if single else (atol, wish.rtol)
    for _ in range(2):
        trial.weights = trial.draw()
        trial.base = first = _measured(trial, trial.seeds())
        if any(
            not _close(a, b, nondet_tol)
            for a, b in zip(first.gradients, _measured(trial, trial.seeds()).gradients, strict=True)
        ):
            raise GradcheckError(
                message("gradcheck", f"two runs of backward differ by more than {nondet_tol}", [("weights", seed)])
            )
        for k, x in enumerate(trial.arrays):
            gradient = first.gradients[k]
            g = np.zeros_like(x) if gradient is None else gradient
            (_along if fast else _elementwise)(trial, k, g, atol, rtol, seed)
        _conduct(trial, first, nondet_tol + (1e-4 if single else 1e-9), seed)


def _measured(trial: Trial, seeds: Sequence[Any]) -> Measured:
    measured = trial.pulled(trial.run(trial.arrays), seeds)
    if measured.error is not None:
        raise measured.error
    return measured


def _close(a: Array | None, b: Array | None, tolerance: float) -> bool:
    if a is None or b is None:
        return not np.any(a if b is None else b)
    return bool(np.allclose(a, b, tolerance, tolerance * max(1.0, float(np.abs(b).max(initial=0))), equal_nan=True))


def _conduct(trial: Trial, first: Measured, tolerance: float, seed: str) -> None:
    """Linear in grad_output, and the same for one that is not contiguous."""
    doubled, apart = (
        _measured(trial, [2 * s for s in trial.seeds()]),
        _measured(trial, [strided(s) for s in trial.seeds()]),
    )
    for title, g, g2, g3 in zip(trial.names, first.gradients, doubled.gradients, apart.gradients, strict=True):
        if not _close(g2, None if g is None else 2 * g, tolerance):
            raise GradcheckError(
                message(
                    "gradcheck",
                    f"backward is not linear in grad_output: the gradient of `{title}` for twice of it is not twice "
                    "as large",
                    [("weights", seed)],
                    "multiply grad_output by the derivative, and do nothing else to it",
                )
            )
        if not _close(g3, g, tolerance):
            raise GradcheckError(
                message(
                    "gradcheck",
                    f"the gradient of `{title}` is another one when grad_output is not contiguous",
                    [("weights", seed)],
                )
            )


def _along(trial: Trial, k: int, g: Array, atol: float, rtol: float, seed: str) -> None:
    for signs in (np.where(g.real < 0, -1.0, 1.0), None):
        d = trial.direction(trial.arrays[k], signs)
        numeric, _ = trial.along(trial.arrays, k, d, trial.weights)
        terms = np.conj(d) * g
        size = float(np.sqrt((np.abs(terms) ** 2).sum()))
        if not abs(float(terms.sum().real) - numeric) <= atol * np.sqrt(max(g.size, 1)) + rtol * max(
            size, abs(numeric)
        ):
            _elementwise(trial, k, g, atol, rtol, seed)  # for the words, and for kinks
            return


def _elementwise(trial: Trial, k: int, g: Array, atol: float, rtol: float, seed: str) -> None:
    arrays, single = trial.arrays, trial.precision is SINGLE
    expected = column(trial.values, arrays, k, SINGLE, 10**9).gradient(trial.weights) if single else _plain(trial, k)
    wrong = ~np.isclose(g, expected, rtol, atol, equal_nan=True)
    if not wrong.any():
        return
    at_kinks, outside = trial.kinks(arrays, k, g, wrong, trial.weights)
    wrong.reshape(-1)[[i for i in at_kinks if i not in outside]] = False
    if wrong.any():
        raise GradcheckError(_difference(trial, k, g, expected, wrong, seed))


def _plain(trial: Trial, k: int) -> Array:
    """The gradient by central differences with one step, as ``eps`` asks for."""
    x, eps = trial.arrays[k], trial.precision.step
    gradient = np.zeros(x.size, x.dtype)
    for unit in (1.0, 1j) if x.dtype.kind == "c" else (1.0,):
        for i in range(x.size):
            above, below = (
                inner(trial.weights, trial.values(moved(trial.arrays, k, i, s * unit))) for s in (eps, -eps)
            )
            gradient[i] += (above - below) / (2 * eps) * unit
    return gradient.reshape(x.shape)


def _difference(trial: Trial, k: int, g: Array, expected: Array, wrong: Array, seed: str) -> str:
    distance = np.where(wrong, np.abs(np.nan_to_num(g - expected, nan=np.inf)), -1.0)
    worst = int(np.argmax(distance))
    index = list(map(int, np.unravel_index(worst, g.shape)))
    title = trial.names[k]
    diagnosis = None
    if wrong_elements(g, expected).any():
        col = column(trial.values, trial.arrays, k, SINGLE if trial.precision is SINGLE else DOUBLE)
        diagnosis = trial.diagnosis(k, trial.arrays, trial.base, trial.weights, col, col.gradient(trial.weights))
    return message(
        "gradcheck",
        diagnosis.words
        if diagnosis is not None and diagnosis.kind not in ("unknown", "some")
        else f"the gradient of `{title}` is wrong",
        [
            (f"`{title}`", trial.calls.leaves[trial.calls.positions[k]]._spec()),
            (
                "element",
                f"{index}: backward gives {g.reshape(-1)[worst]:.6g}, differences give "
                f"{expected.reshape(-1)[worst]:.6g}",
            ),
            ("backward", np.array2string(g, precision=4, threshold=8)),
            ("numerical", np.array2string(expected, precision=4, threshold=8)),
            ("weights", seed),
        ],
        diagnosis.repair if diagnosis is not None else f"check the rule of `{title}` in backward",
    )


def numerical_gradient_check(
    func: Callable[..., Any], input: Any, eps: float = 1e-5, raise_exception: bool = False
) -> bool:
    """Whether the gradient of ``func`` at ``input`` is the numerical one, by central differences of step ``eps``.

    Args:
        input: a tensor, or a sequence of arguments; floating tensors are checked whether they require grad or not
        raise_exception: raise where it is not, with both gradients

    Raises:
        GradcheckError: with ``raise_exception``, the gradients differ

    >>> import genesis
    >>> genesis.autograd.numerical_gradient_check(lambda x: x.sin(), genesis.ones(3))
    True
    """
    args = [input] if isinstance(input, Tensor) else list(input)
    tracked = [
        x.detach().requires_grad_() if isinstance(x, Tensor) and (x.is_floating_point() or x.is_complex()) else x
        for x in args
    ]
    return gradcheck(func, tracked, eps=eps, raise_exception=raise_exception)


def gradgradcheck(func: Callable[..., Any], inputs: Any, grad_outputs: Any = None, **options: Any) -> bool:
    """`gradcheck` of the gradients themselves: are second derivatives right?

    >>> import genesis
    >>> genesis.autograd.gradgradcheck(lambda x: x ** 3, genesis.ones(3, requires_grad=True))
    True
    """
    func, args = from_the_host(func, (inputs,) if isinstance(inputs, Tensor) else tuple(inputs))
    count = len(args)
    outs = _outputs(func(*args))
    rng = np.random.Generator(np.random.Philox(options.get("seed", 0) + 1))
    given = [wrap(_weights(rng, y)).requires_grad_() for y in outs] if grad_outputs is None else (
        from_the_host(func, (grad_outputs,) if isinstance(grad_outputs, Tensor) else tuple(grad_outputs))[1])  # fmt: skip

    def first(*values: Any) -> tuple[Tensor, ...]:
        results = _outputs(func(*values[:count]))
        pairs = [(y, w) for y, w in zip(results, values[count:], strict=True) if y.requires_grad]
        wanted = [x for x in tree_flatten(list(values[:count]))[0] if isinstance(x, Tensor) and x.requires_grad]
        gradients = grad(
            [y for y, _ in pairs], wanted, [w for _, w in pairs], create_graph=True, materialize_grads=True
        )
        return tuple(g for g in gradients if g is not None)

    return gradcheck(first, [*args, *given], **options)


def _outputs(result: Any) -> list[Tensor]:
    return [y for y in tree_flatten(result)[0] if is_floating(y)]


def _weights(rng: Any, y: Tensor) -> Array:
    real = rng.uniform(0.5, 1.5, y.shape) * rng.choice([-1.0, 1.0], y.shape)
    return np.asarray(real + 1j * rng.uniform(0.5, 1.5, y.shape) if y.is_complex() else real)


explain_all(globals(), "gradcheck", "gradgradcheck", "numerical_gradient_check")
