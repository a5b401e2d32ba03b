"""Is a gradient right? Compared with central differences, in double precision.

Inputs are evaluated in float64 whatever their dtype, so a float32 function with ``eps=1e-6`` can be checked.
A function whose own code insists on float32 is recognised by its result and checked at float32's accuracy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from genesis.autograd.functional import grad
from genesis.base.errors import GenesisError, GraphError, message
from genesis.core.tensor import Tensor, wrap


class GradcheckError(GraphError):
    """The gradient that backward computes is not the numerical one."""


def _doubled(x: Any) -> Any:
    if not isinstance(x, Tensor) or not (x.is_floating_point() or x.is_complex()):
        return x
    wide = np.complex128 if x.is_complex() else np.float64
    out = wrap(x.detach().numpy_view().astype(wide, order="C"))
    return out.requires_grad_(x.requires_grad)


def _outputs(result: Any) -> list[Tensor]:
    parts = result if isinstance(result, tuple | list) else [result]
    return [y for y in parts if isinstance(y, Tensor) and (y.is_floating_point() or y.is_complex())]


def _numerical(function: Any, args: list[Any], x: Tensor, weights: list[np.ndarray[Any, Any]], eps: float) -> np.ndarray[Any, Any]:
    """d (sum of weighted outputs) / d x by central differences; complex inputs along both axes."""
    flat = x.numpy_view().reshape(-1) if not x.requires_grad else x.detach().numpy_view().reshape(-1)
    found = np.zeros(flat.shape, flat.dtype)

    def total() -> float:
        outs = _outputs(function(*args))  # with recording on: the function may differentiate inside
        return float(sum((np.conj(w) * y.detach().numpy_view()).sum().real for w, y in zip(weights, outs, strict=True)))

    for i in range(flat.size):
        for step in (eps, 1j * eps) if flat.dtype.kind == "c" else (eps,):
            before = flat[i]
            flat[i] = before + step
            above = total()
            flat[i] = before - step
            below = total()
            flat[i] = before
            found[i] += (above - below) / (2 * eps) * (1j if isinstance(step, complex) else 1)
    return found.reshape(x.shape)


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
) -> bool:
    """Compare the gradients of ``func`` with central differences along random weightings of its outputs.

    Args:
        inputs: a tensor or a sequence of arguments; those that require grad are checked
        eps: the step; atol, rtol: what may differ
        raise_exception: raise where they differ, or return False
        nondet_tol: by how much two runs of backward may differ

    Raises:
        GradcheckError: they differ; the message names the input and shows both gradients

    >>> import genesis
    >>> genesis.autograd.gradcheck(lambda x: x ** 2, genesis.ones(3, requires_grad=True))
    True
    """
    args = [_doubled(x) for x in ([inputs] if isinstance(inputs, Tensor) else list(inputs))]
    try:
        _check(func, args, eps, atol, rtol, nondet_tol)
    except GenesisError:
        if raise_exception:
            raise
        return False
    return True


def _check(func: Any, args: list[Any], eps: float, atol: float, rtol: float, nondet_tol: float) -> None:
    wanted = [(i, x) for i, x in enumerate(args) if isinstance(x, Tensor) and x.requires_grad]
    if not wanted:
        raise GradcheckError(message("gradcheck", "no input requires grad", hint="pass tensors with requires_grad=True"))
    outs = _outputs(func(*args))
    if not outs:
        raise GradcheckError(message("gradcheck", "the function returned no floating or complex tensor"))
    if any(y._array.dtype.itemsize < (16 if y.is_complex() else 8) for y in outs):  # the function computes in float32
        eps, atol, rtol = max(eps, 1e-3), max(atol, 1e-2), max(rtol, 1e-2)
    rng = np.random.Generator(np.random.Philox(20260101))
    for _ in range(2):
        weights = [_weights(rng, y) for y in outs]
        found = _analytical(func, args, wanted, weights)
        if any(not np.allclose(a, b, rtol=0, atol=nondet_tol) for a, b in zip(found, _analytical(func, args, wanted, weights), strict=True)):
            raise GradcheckError(message("gradcheck", f"two runs of backward differ by more than {nondet_tol}"))
        for (place, x), g in zip(wanted, found, strict=True):
            expected = _numerical(func, args, x, weights, eps)
            if g.shape != expected.shape or not np.allclose(g, expected, rtol, atol, equal_nan=True):
                raise GradcheckError(_difference(place, x, g, expected))


def _weights(rng: Any, y: Tensor) -> np.ndarray[Any, Any]:
    real = rng.uniform(0.5, 1.5, y.shape)
    return np.asarray(real + 1j * rng.uniform(0.5, 1.5, y.shape) if y.is_complex() else real)


def _analytical(func: Any, args: list[Any], wanted: list[tuple[int, Tensor]], weights: list[Any]) -> list[Any]:
    outs = _outputs(func(*args))
    pairs = [(y, wrap(w.astype(y._array.dtype))) for y, w in zip(outs, weights, strict=True) if y.requires_grad]
    if not pairs:
        return [np.zeros(x.shape, x._array.dtype) for _, x in wanted]
    found = grad([y for y, _ in pairs], [x for _, x in wanted], [w for _, w in pairs], materialize_grads=True)
    return [g.numpy_view() for g in found if g is not None]


def _difference(place: int, x: Tensor, g: Any, expected: Any) -> str:
    worst = int(np.argmax(np.abs(np.nan_to_num(g - expected, nan=np.inf)).reshape(-1))) if g.shape == expected.shape else 0
    return message(
        "gradcheck",
        f"the gradient of input {place} is wrong: at element {worst} backward gives {g.reshape(-1)[worst]:.6g}, "
        f"differences give {expected.reshape(-1)[worst]:.6g}",
        [(f"input {place}", x._spec()), ("backward", np.array2string(g, precision=4, threshold=8)),
         ("numerical", np.array2string(expected, precision=4, threshold=8))],
        "check the rule of this input in backward",
    )  # fmt: skip


def numerical_gradient_check(func: Callable[..., Any], input: Any, eps: float = 1e-5, raise_exception: bool = False) -> bool:
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
    tracked = [x.detach().requires_grad_() if isinstance(x, Tensor) and (x.is_floating_point() or x.is_complex()) else x for x in args]
    return gradcheck(func, tracked, eps=eps, raise_exception=raise_exception)


def gradgradcheck(func: Callable[..., Any], inputs: Any, grad_outputs: Any = None, **options: Any) -> bool:
    """`gradcheck` of the gradients themselves: are second derivatives right?

    >>> import genesis
    >>> genesis.autograd.gradgradcheck(lambda x: x ** 3, genesis.ones(3, requires_grad=True))
    True
    """
    args = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    count = len(args)
    outs = _outputs(func(*args))
    rng = np.random.Generator(np.random.Philox(20260102))
    given = [wrap(_weights(rng, y)).requires_grad_() for y in outs] if grad_outputs is None else (
        [grad_outputs] if isinstance(grad_outputs, Tensor) else list(grad_outputs))  # fmt: skip

    def first(*all_args: Any) -> tuple[Tensor, ...]:
        results = _outputs(func(*all_args[:count]))
        pairs = [(y, w) for y, w in zip(results, all_args[count:], strict=True) if y.requires_grad]
        wanted = [x for x in all_args[:count] if isinstance(x, Tensor) and x.requires_grad]
        found = grad([y for y, _ in pairs], wanted, [w for _, w in pairs], create_graph=True, materialize_grads=True)
        return tuple(g for g in found if g is not None)

    return gradcheck(first, [*args, *given], **options)
