"""Compiled functions of one number at the ends of the line, where they have zeros, poles and limits: what eager calls give."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
from genesis.base.errors import GenesisError
from genesis.core.call.op import REGISTRY
from genesis.nn import functional as F

INF = float("inf")
ENDS = [
    0.0, -0.0, 1.0, -1.0, INF, -INF, float("nan"), 1e-45, -1e-45, 1e-38, 3.4e38, -3.4e38, 0.5, -0.5, 2.0, -2.0, 1e-8, -1e-8,
    0.99999994, -0.99999994, 1.0000001, -1.0000001, 20.0, -20.0, 50.0, 89.0, -89.0, 100.0, -104.0, 127.5, -149.0, 1e10, -1e10,
]  # fmt: skip
UNARY = sorted(
    name
    for name, op in REGISTRY.items()
    if op.kind.aligned and op.tensors == (0,) and len(op.signature.parameters) == 1 and op.infer is not None
)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", [genesis.float32, genesis.float64, genesis.bfloat16, genesis.float16])
def test_functions_of_one_number(dtype):
    x, names, expected = genesis.tensor(ENDS, dtype=dtype), [], []
    for name in UNARY:
        try:
            expected.append(REGISTRY[name].call(x))
        except (GenesisError, TypeError):
            continue  # of complex numbers, or of integers
        names.append(name)
    assert len(names) > 50 and {"log1p", "exp2", "times_tanh_log1pexp", "sigmoid"} <= set(names)
    found = genesis.compile(lambda x: [REGISTRY[name].call(x) for name in names])(x)
    for name, a, b in zip(names, found, expected, strict=True):
        assert a.dtype is b.dtype, name
        a, b = (t.numpy() if t.dtype.is_complex else t.double().numpy() for t in (a, b))
        near = np.abs(a - b) <= 4 * genesis.finfo(dtype).eps * np.abs(b)
        wrong = ~((a == b) | (np.isnan(a) & np.isnan(b)) | near)
        assert not wrong.any(), (name, [(ENDS[i], a[i], b[i]) for i in np.flatnonzero(wrong)])


@pytest.mark.parametrize("dtype", [genesis.float32, genesis.float64])
def test_a_loss_of_probabilities_that_are_certain(dtype):
    """The logarithm of 1 - p is -inf where p is 1, and the loss is bounded."""
    p = genesis.tensor([0.0, 1.0, 1.0, 0.0, 0.25], dtype=dtype, requires_grad=True)
    t = genesis.tensor([0.0, 1.0, 0.0, 1.0, 1.0], dtype=dtype)

    def step(p, t):
        loss = F.binary_cross_entropy(p, t, reduction="none")
        return loss, *genesis.autograd.grad(loss.sum(), p)

    compiled = genesis.compile(step)
    for a, b in zip(compiled(p, t), step(p, t), strict=True):
        genesis.testing.assert_close(a.detach(), b.detach())
    assert compiled(p, t)[0].tolist()[:4] == [0, 0, 100, 100]
