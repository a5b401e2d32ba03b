"""The extensions ``linalg`` and ``fft`` of the array API, against its strict implementation."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import genesis
from genesis import array_api as xp

strict = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
RNG = np.random.default_rng(0)
M = RNG.normal(size=(2, 3, 3))
S = M @ M.swapaxes(1, 2) + np.eye(3)
NAMES = [(space, name) for space in ("fft", "linalg") for name in getattr(strict, space).__all__]
CALLS = {
    "fftfreq": ((5,), {"d": 0.5}), "rfftfreq": ((5,), {}), "cholesky": ((S,), {"upper": True}), "cross": ((M, M[:1]), {}),
    "eigh": ((S,), {}), "eigvalsh": ((S,), {}), "matmul": ((M, M), {}), "matrix_power": ((M, -2), {}),
    "outer": ((M[0, 0], M[0, 1]), {}), "solve": ((S, M), {}), "svd": ((S,), {"full_matrices": False}),
    "tensordot": ((M, M[0]), {"axes": 2}), "vecdot": ((M, M), {}), "qr": ((S,), {"mode": "complete"}),
    "trace": ((M,), {"offset": 1}), "vector_norm": ((M,), {"axis": (0, 2), "ord": 1}),
    "matrix_norm": ((M,), {"ord": "nuc", "keepdims": True}), "irfft": ((M + 0j,), {"n": 5}), "rfftn": ((M,), {"axes": (0, 2)}),
}  # fmt: skip
NUMPYS = {"eigh", "svd", "qr"}  # vectors have signs of their own: the products are compared


@pytest.mark.parametrize(("space", "name"), NAMES)
def test_parameters_are_the_standards(space, name):
    mine, theirs = (inspect.signature(getattr(getattr(x, space), name)).parameters for x in (xp, strict))
    kinds = [(p.name, p.kind, p.default) for p in mine.values()]
    assert kinds == [(p.name, p.kind, p.default) for p in theirs.values()]


@pytest.mark.parametrize(("space", "name"), NAMES)
def test_answers_are_the_standards(space, name):
    args, kwargs = CALLS.get(name, ((M + 0j if name in ("hfft", "irfftn", "fft", "ifft", "fftn", "ifftn") else M,), {}))

    def answer(lib):
        given = [lib.asarray(a) if isinstance(a, np.ndarray) else a for a in args]
        return getattr(getattr(lib, space), name)(*given, **kwargs)

    mine, theirs = answer(xp), answer(strict)
    if name in NUMPYS:
        assert mine._fields == theirs._fields
        U, *middle, V = (x.numpy() for x in mine)
        product = (
            U @ V if name == "qr" else (U * middle[0][:, None]) @ V if middle else (V * U[:, None]) @ V.swapaxes(1, 2)
        )
        np.testing.assert_allclose(product, S, atol=1e-10)
        return
    pairs = zip(mine, theirs, strict=True) if isinstance(mine, tuple) else [(mine, theirs)]
    for a, b in pairs:
        b = np.asarray(b)
        if name in ("fftfreq", "rfftfreq"):
            a = a.double()
        assert a.shape == b.shape
        np.testing.assert_allclose(a.numpy(), b, atol=1e-7 if "freq" in name else 1e-10)


def test_equations_with_one_vector_and_with_stacks_of_matrices():
    a, b = xp.asarray(S), xp.asarray(M[0, 0])
    np.testing.assert_allclose((a @ xp.linalg.solve(a, b)[..., None])[..., 0].numpy(), np.broadcast_to(M[0, 0], (2, 3)))
    stack = xp.asarray(M[0][:2].T.copy())  # (3, 2): never two vectors of a stack
    np.testing.assert_allclose((a @ xp.linalg.solve(a, stack)).numpy(), np.broadcast_to(M[0][:2].T, (2, 3, 2)))
    with pytest.raises(RuntimeError, match="outer: two vectors are needed, got 3-D and 1-D"):
        xp.linalg.outer(a, b)
    assert xp.linalg.trace(xp.asarray([[1, 2], [3, 4]], dtype=xp.int8)).dtype is genesis.int64
