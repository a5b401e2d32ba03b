"""Check attached kernels: values and derivatives against the meaning of their op.

    check_kernel(op, sample)

`meanings_only` computes without any attached kernel, for whoever wants to compare.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from genesis.autograd.gradients import grad
from genesis.core.call.op import Case, Op
from genesis.core.graph.generator import get_rng_state, set_rng_state
from genesis.core.graph.modes import ACTIVE, interception
from genesis.core.graph.tensor import Tensor
from genesis.testing.arguments import tensors_in
from genesis.testing.tolerance import assert_close


@contextmanager
def meanings_only() -> Iterator[None]:
    """Inside, ops are computed by their meanings, composites by their functions: no attached kernel is used.

    >>> import genesis
    >>> with genesis.testing.meanings_only():
    ...     genesis.ones(1, 1) @ genesis.ones(1, 1)
    tensor([[1.]])
    """
    token = interception.set((_by_meaning,))
    ACTIVE.append(_by_meaning)
    try:
        yield
    finally:
        ACTIVE.pop()
        interception.reset(token)


def _by_meaning(op: Op, arrays: Any, kernel: Callable[[], Any]) -> Any:
    if np.ndarray not in op.kernels:
        return kernel()
    assert isinstance(kernel, partial) and kernel.args[0] is op
    plain = copy.copy(op)
    plain.kernel = op.meaning
    return kernel.func(plain, *kernel.args[1:])


def check_kernel(op: Op, sample: Case) -> None:
    """What an op gives, its gradients and the gradients of these are what they are by its meaning."""
    inputs = [t for t in tensors_in((sample.args, sample.kwargs)) if t.requires_grad]
    state = get_rng_state()
    derivatives = _derivatives(op, sample, inputs)
    set_rng_state(state)
    with meanings_only():
        expected = _derivatives(op, sample, inputs)
    for order, (a, b) in enumerate(zip(derivatives, expected, strict=True)):
        for x, y in zip(a, b, strict=True):
            assert_close(
                x.detach().numpy(),
                y.detach().numpy(),
                f"{op.name}: {('value', 'gradient', 'second derivative')[order]} of the kernel",
            )


def _derivatives(op: Op, sample: Case, inputs: list[Tensor]) -> list[list[Tensor]]:
    outs = list(tensors_in(op.call(*sample.args, **sample.kwargs)))
    if not inputs or not all([y.requires_grad for y in outs]):
        return [outs]
    weights = [y.detach().cos() for y in outs]  # type: ignore[attr-defined]
    first = grad(outs, inputs, weights, retain_graph=True, materialize_grads=True)
    again = grad(outs, inputs, weights, create_graph=True, materialize_grads=True)
    moving = [g for g in again if g is not None and g.requires_grad]
    second = grad(moving, inputs, [g.detach().sin() for g in moving], materialize_grads=True) if moving else ()  # type: ignore[attr-defined]
    return [outs, list(first), list(second)]  # type: ignore[arg-type]
