"""Factors whose operand is read as Hermitian, or whose vectors have an arbitrary phase: as functions of any matrix.

Each is checked as the ops are that have samples: gradients to second order, forward mode, batches, nested transforms,
traces, other devices; and against PyTorch.
"""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import genesis
from genesis import linalg
from genesis.base import dtypes
from genesis.core.call.op import Op, case
from genesis.testing import Maker
from genesis.testing.opcheck import check_gradient, check_infer, check_memory, samples_of
from genesis.testing.transform_checks import check_jvp, check_nesting, check_trace, check_vmap

SQUARE = lambda t: [case(t(2, 2)), case(t(2, 3, 3))]  # noqa: E731
ANY = lambda t: [case(t(3, 2)), case(t(2, 2, 3))]  # noqa: E731


def hermitian(x):
    return (x + x.mH) / 2


def positive(x):
    return x @ x.mH + 2 * genesis.eye(x.shape[-1], dtype=x.dtype, device=x.device)


def singular(x):
    u, s, vh = linalg.svd(x, False)
    return projectors(u), s, projectors(vh.mH), u @ vh


def projectors(vectors):
    """What does not depend on the phases of columns."""
    return vectors.unsqueeze(-2) * vectors.conj().unsqueeze(-3)


FUNCTIONS = {
    "cholesky": (lambda x: linalg.cholesky(positive(x)), SQUARE),
    "cholesky upper": (lambda x: linalg.cholesky(positive(x), upper=True), SQUARE),
    "cholesky_ex": (lambda x: linalg.cholesky_ex(positive(x)).L, SQUARE),
    "eigh": (lambda x: (linalg.eigh(hermitian(x))[0], projectors(linalg.eigh(hermitian(x))[1])), SQUARE),
    "eigh U": (lambda x: linalg.eigh(hermitian(x), "U")[0], SQUARE),
    "eigvalsh": (lambda x: linalg.eigvalsh(hermitian(x)), SQUARE),
    "eig": (lambda x: (linalg.eig(x)[0].abs().sum(-1), projectors(linalg.eig(x)[1]).sum(-1)), SQUARE),
    "eigvals": (lambda x: (linalg.eigvals(x) ** 2).sum(-1), SQUARE),
    "svd": (singular, ANY),
    "svd full": (lambda x: linalg.svd(x)[1], ANY),
    "pinv hermitian": (lambda x: linalg.pinv(hermitian(x), hermitian=True), SQUARE),
    "ldl_solve": (
        lambda x: linalg.ldl_solve(
            *linalg.ldl_factor(hermitian(x), hermitian=True), x[..., :1], hermitian=True
        ).detach(),
        SQUARE,
    ),
    "lu_solve": (lambda x: linalg.lu_solve(*linalg.lu_factor(x), x[..., :1] ** 2), SQUARE),
    "lu_solve right": (lambda x: linalg.lu_solve(*linalg.lu_factor(x), x[..., :1, :] ** 2, left=False), SQUARE),
    "lu_solve adjoint": (lambda x: linalg.lu_solve(*linalg.lu_factor(x), x[..., :1] ** 2, adjoint=True), SQUARE),
    "lu_unpack": (lambda x: genesis.lu_unpack(*linalg.lu_factor(x))[1:], ANY),
    "svd older": (lambda x: genesis.svd(x).S, ANY),
    "qr older": (lambda x: tuple(genesis.qr(x)), ANY),
    "cholesky older": (lambda x: genesis.cholesky(positive(x)), SQUARE),
    "inv Hermitian": (lambda x: linalg.inv(positive(x)), SQUARE),
}
DTYPES = [dtypes.float64, dtypes.complex128]
PAIRS = [pytest.param(n, d, id=f"{n}-{d.short}") for n in FUNCTIONS for d in DTYPES]


def record(name):
    function, samples = FUNCTIONS[name]
    call = lambda x: function(x)  # noqa: E731
    return Op(name, "own", inspect.signature(call), call, samples=samples, call=call, module="here")


def each(name, dtype, grad=True):
    op = record(name)
    for i in range(len(samples_of(op, Maker(dtype)))):
        yield op, samples_of(op, Maker(dtype, seed=i, requires_grad=grad))[i]


@pytest.mark.parametrize(("name", "dtype"), PAIRS)
def test_gradients_to_second_order(name, dtype):
    for op, sample in each(name, dtype):
        check_memory(op, sample)
        check_infer(op, sample)
        if name != "ldl_solve":
            check_gradient(op, sample)


@pytest.mark.parametrize(("name", "dtype"), [p for p in PAIRS if p.values[0] != "ldl_solve"])
def test_forward_mode_and_nesting(name, dtype):
    for op, sample in each(name, dtype):
        check_jvp(op, sample)
    op, sample = next(each(name, dtype, False))
    check_nesting(op, sample)


@pytest.mark.parametrize(("name", "dtype"), PAIRS)
def test_a_batch_is_a_loop_and_a_replay_the_call(name, dtype):
    op = record(name)
    for i in range(len(samples_of(op, Maker(dtype)))):
        make = lambda seed, i=i: samples_of(op, Maker(dtype, seed=seed))[i]  # noqa: E731
        check_vmap(op, make, name != "ldl_solve")
        check_trace(op, make(0))


@pytest.mark.parametrize("mapped", ["factors", "right sides", "both"])
def test_ldl_solve_of_batches_is_mapped(mapped):
    a, b = hermitian(genesis.randn(3, 2, 4, 4, dtype=genesis.float64)), genesis.randn(3, 4, 5, dtype=genesis.float64)
    factors = linalg.ldl_factor(a, hermitian=True)
    solve = lambda ld, pivots, b: linalg.ldl_solve(ld, pivots, b, hermitian=True)  # noqa: E731
    ours, theirs = (0, 0) if mapped != "right sides" else (None, None), 0 if mapped != "factors" else None
    given = [f if d is not None else f[0] for f, d in zip(factors, ours, strict=True)] + [b if theirs == 0 else b[0]]
    found = genesis.vmap(solve, (*ours, theirs))(*given)
    pick = lambda k: [x[k] if d is not None else x for x, d in zip(given, (*ours, theirs), strict=True)]  # noqa: E731
    genesis.testing.assert_close(found, genesis.stack([solve(*pick(k)) for k in range(3)]))


# ---- values


def random(*shape, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


KINDS = [np.float32, np.float64, np.complex64, np.complex128]


def close(x, expected, dtype, scale=1.0):
    bar = (2e-4 if np.dtype(dtype).itemsize // (2 if np.dtype(dtype).kind == "c" else 1) == 4 else 1e-10) * scale
    np.testing.assert_allclose(x.detach().numpy(), expected, rtol=bar, atol=bar)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (40, 40), (3, 4, 4), (2, 0, 3, 3), (0, 0)])
def test_factors_multiply_to_the_matrix(shape, dtype):
    a = random(*shape, dtype=dtype)
    spd = a @ np.conj(np.swapaxes(a, -1, -2)) + 3 * np.eye(shape[-1], dtype=dtype)
    x, p = genesis.tensor(a), genesis.tensor(spd)
    low = linalg.cholesky(p)
    close(low @ low.mH, spd, dtype, 50)
    close(linalg.cholesky(p, upper=True).mH @ linalg.cholesky(p, upper=True), spd, dtype, 50)
    values, vectors = linalg.eigh(p)
    close(vectors @ (values.unsqueeze(-1) * vectors.mH), spd, dtype, 300)
    w, v = linalg.eig(x)
    close(v * w.unsqueeze(-2), (x.to(v.dtype) @ v).numpy(), dtype, 10)
    u, s, vh = linalg.svd(x)
    close(u * s.unsqueeze(-2) @ vh, a, dtype, 10)
    q, r = linalg.qr(x)
    close(q @ r, a, dtype, 10)
    perm, lower, upper = linalg.lu(x)
    close(perm @ lower @ upper, a, dtype, 10)
    for flag in (False, True):
        h = (a + np.conj(np.swapaxes(a, -1, -2))) if flag else a + np.swapaxes(a, -1, -2)
        rows = random(*shape[:-1], 2, dtype=dtype)
        found = linalg.ldl_solve(
            *linalg.ldl_factor(genesis.tensor(h), hermitian=flag), genesis.tensor(rows), hermitian=flag
        )
        close(genesis.tensor(h) @ found, rows, dtype, 200)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (2, 60, 20), (2, 20, 60)])
def test_factors_of_matrices_that_are_no_squares(shape, dtype):
    a = random(*shape, dtype=dtype)
    x = genesis.tensor(a)
    for full in (False, True):
        u, s, vh = linalg.svd(x, full)
        k = s.shape[-1]
        close(u[..., :k] * s.unsqueeze(-2) @ vh[..., :k, :], a, dtype, 20)
    for mode in ("reduced", "complete"):
        q, r = linalg.qr(x, mode)
        close(q @ r, a, dtype, 20)
    p, low, up = linalg.lu(x)
    close(p @ low @ up, a, dtype, 20)
    close(x @ linalg.pinv(x) @ x, a, dtype, 50)


def test_matrices_without_factors_are_named():
    singular = genesis.tensor([[1.0, 2.0], [2.0, 4.0]])
    batch = genesis.stack([genesis.eye(2), singular])
    for call, words in {
        lambda: linalg.inv(batch): "linalg.inv: matrix 1 of the batch: the matrix is singular, pivot 2 is zero",
        lambda: linalg.solve(singular, genesis.ones(2)): "linalg.solve: the matrix is singular, pivot 2 is zero",
        lambda: linalg.cholesky(-genesis.eye(2)): "leading minor of order 1 is not positive definite",
        lambda: linalg.eigvals(singular * float("nan")): "linalg.eig: a matrix has elements that are inf or nan",
    }.items():
        with pytest.raises(linalg.LinAlgError, match=words):
            call()
    assert linalg.inv_ex(batch).info.tolist() == [0, 2]
    assert linalg.lu_factor_ex(batch).info.tolist() == [0, 2]
    assert linalg.cholesky_ex(genesis.tensor([[1.0, 2.0], [2.0, 1.0]])).info.item() == 2
    np.testing.assert_allclose(linalg.inv_ex(batch).inverse[0], np.eye(2))


def test_zeros_on_a_diagonal_divide():
    a = genesis.tensor([[0.0, 1.0], [0.0, 2.0]])
    assert linalg.solve_triangular(a, genesis.tensor([[1.0], [4.0]]), upper=True).tolist() == [[-float("inf")], [2.0]]


def test_gradients_that_are_not_defined_say_so():
    x = genesis.tensor(random(3, 3, dtype=np.complex128), requires_grad=True)
    for call in (lambda: linalg.svd(x)[0], lambda: linalg.eig(x)[1], lambda: linalg.eigh(x + x.mH)[1]):
        with pytest.raises(RuntimeError, match="are determined up to a factor"):
            call().real.sum().backward()
    y = genesis.randn(4, 2, requires_grad=True)
    with pytest.raises(RuntimeError, match='mode="complete" and more rows than columns'):
        linalg.qr(y, "complete").R.sum().backward()
    with pytest.raises(RuntimeError, match='with mode="r" Q'):
        linalg.qr(y, "r").R.sum().backward()


def test_equal_eigenvalues_have_gradients_of_their_own():
    x = genesis.eye(3, dtype=genesis.float64).requires_grad_()
    linalg.eigvalsh(x).sum().backward()
    np.testing.assert_allclose(x.grad, np.eye(3))
    x.grad = None
    linalg.svdvals(x).sum().backward()
    np.testing.assert_allclose(x.grad, np.eye(3))


def test_the_determinant_of_a_singular_matrix_has_a_gradient():
    a = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [0.0, 1.0, 5.0]])
    x = genesis.tensor(a, requires_grad=True)
    linalg.det(x).backward()
    minors = [
        [(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a, i, 0), j, 1)) for j in range(3)] for i in range(3)
    ]
    np.testing.assert_allclose(x.grad, minors, atol=1e-10)


@pytest.mark.parametrize("rank", [0, 1, 2, 3])
@pytest.mark.parametrize("kind", ["real", "complex", "nearly"])
def test_the_gradient_of_the_determinant_has_one_at_any_matrix(rank, kind):
    rng = np.random.default_rng(rank)
    draw = lambda *shape: rng.normal(size=shape) + (1j * rng.normal(size=shape) if kind == "complex" else 0)  # noqa: E731
    a = draw(2, 3, rank) @ draw(2, rank, 3) + 1e-11 * (kind == "nearly") * draw(2, 3, 3)
    weights, direction = draw(2, 3, 3), draw(2, 3, 3)

    def slope(at):  # its elements are of second degree, so differences are their derivatives
        x = genesis.tensor(at, requires_grad=True)
        return genesis.autograd.grad(linalg.det(x), x, genesis.ones(2, dtype=x.dtype))[0].detach().numpy()

    x = genesis.tensor(a, requires_grad=True)
    (g,) = genesis.autograd.grad(linalg.det(x), x, genesis.ones(2, dtype=x.dtype), create_graph=True)
    (h,) = genesis.autograd.grad(g, x, genesis.tensor(weights))
    along = (slope(a + direction) - slope(a - direction)) / 2
    found, want = (np.sum(np.conj(u) * v).real for u, v in ((h.numpy(), direction), (weights, along)))
    assert found == pytest.approx(want, rel=1e-9, abs=1e-9)


def test_results_can_be_put_into_tensors():
    x = genesis.randn(3, 3, dtype=genesis.float64)
    out = (genesis.empty(0, dtype=genesis.float64), genesis.empty(0, dtype=genesis.float64))
    found = linalg.qr(x, out=out)
    assert found.Q is out[0] and found.R is out[1]
    np.testing.assert_array_equal(out[0] @ out[1], linalg.qr(x).Q @ linalg.qr(x).R)
    target = genesis.empty(3, 3, dtype=genesis.float64)
    assert linalg.inv(x, out=target) is target
    with pytest.raises(ValueError, match="out= must be 2 tensors"):
        linalg.qr(x, out=target)


def test_least_squares_of_full_rank_say_when_it_is_not():
    a = genesis.tensor([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]])
    with pytest.raises(linalg.LinAlgError, match='linalg.lstsq: A has not full rank\\n  try: driver="gelsy"'):
        linalg.lstsq(a, genesis.ones(3, 1), driver="gels")
    _, residuals, rank, values = linalg.lstsq(a + genesis.eye(3, 2), genesis.ones(3, 1), driver="gels")
    assert residuals.shape == (1,) and rank.shape == values.shape == (0,) and rank.dtype is genesis.int64
    assert linalg.lstsq(a, genesis.ones(3, 1)).solution.isfinite().all()


# ---- against PyTorch

AGAINST = {
    "cholesky_solve": lambda m, b, low: m.cholesky_solve(b, m.linalg.cholesky(low @ low.mH)),
    "cholesky_solve upper": lambda m, b, low: m.cholesky_solve(b, m.linalg.cholesky(low @ low.mH, upper=True), True),
    "cholesky_inverse": lambda m, b, low: m.cholesky_inverse(m.linalg.cholesky(low @ low.mH)),
    "lstsq": lambda m, b, a: m.linalg.lstsq(a, b).solution,
    "lstsq gels": lambda m, b, a: m.linalg.lstsq(a[..., :2], b, driver="gels").residuals,
    "lstsq gels, solution": lambda m, b, a: m.linalg.lstsq(a[..., :2], b, driver="gels").solution,
    "lstsq gels, wide": lambda m, b, a: m.linalg.lstsq(a[..., :2, :], b[..., :2, :], driver="gels").solution,
    "lstsq gels, vectors": lambda m, b, a: m.linalg.lstsq(a, b[..., 0], driver="gels").solution,
    "lstsq gelsd": lambda m, b, a: m.linalg.lstsq(a[..., :2], b, driver="gelsd").singular_values,
    "eigvalsh": lambda m, b, a: m.linalg.eigvalsh(a),
    "svdvals": lambda m, b, a: m.linalg.svdvals(a[..., :2]),
    "det": lambda m, b, a: m.det(a),
    "logdet": lambda m, b, a: m.logdet(a),
    "lu_factor": lambda m, b, a: m.linalg.lu_factor(a).LU,
    "matrix_exp": lambda m, b, a: m.matrix_exp(a / 4),
    "ormqr": lambda m, b, a: m.ormqr(a[..., :2].detach() / 9, a[..., 0, :2].detach() / 9, b),
    "triangular_solve": lambda m, b, a: m.triangular_solve(b, a, transpose=True).solution,
    "cond": lambda m, b, a: m.linalg.cond(a),
    "cond 1": lambda m, b, a: m.linalg.cond(a.detach(), 1) * a.sum().abs(),
    "ldl": lambda m, b, a: m.linalg.ldl_factor(a.detach() + a.detach().mT).LD.tril() * a,
    "pinv": lambda m, b, a: m.linalg.pinv(a, atol=1e-3, hermitian=False),
    "pinv hermitian": lambda m, b, a: m.linalg.pinv(a + a.mH, hermitian=True),
    "matrix_rank": lambda m, b, a: m.linalg.matrix_rank(a[..., :1] @ a[..., :1, :]) * a.sum().abs(),
}


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore:torch.triangular_solve")
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("name", AGAINST)
def test_values_and_gradients_are_pytorchs(name, dtype):
    torch = pytest.importorskip("torch", reason="PyTorch is the reference here; pip install torch==2.13.0")
    a = random(2, 3, 3, dtype=dtype) + 3 * np.eye(3, dtype=dtype)
    b = random(2, 3, 2, dtype=dtype, seed=1)
    found = []
    for module in (genesis, torch):
        x, y = (module.tensor(v, requires_grad=True) for v in (b, a))
        out = AGAINST[name](module, x, y)
        if out.requires_grad:
            loss = (out * module.arange(1.0, out.numel() + 1, dtype=module.float64).reshape(out.shape)).sum()
            (loss.real if loss.is_complex() else loss).backward()
        found.append([v.detach() for v in (out, x.grad, y.grad) if v is not None])
    for mine, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(mine.numpy(), theirs.resolve_conj().numpy(), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("name", ["inv", "det", "qr", "svd", "eigvalsh", "cholesky", "pinv"])
@pytest.mark.parametrize("dtype", [genesis.float16, genesis.bfloat16])
def test_floats_of_16_bits_have_too_few_digits(name, dtype):
    with pytest.raises(RuntimeError, match="has too few digits"):
        getattr(linalg, name)(genesis.eye(2).to(dtype))


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("adjoint", [True, False])
@pytest.mark.parametrize("kind", ["float64", "complex128"])
def test_solutions_from_factors(left, adjoint, kind):
    genesis.manual_seed(0)
    a = genesis.randn(3, 3, dtype=getattr(genesis, kind))
    b = genesis.randn(3, 2, dtype=a.dtype) if left else genesis.randn(2, 3, dtype=a.dtype)
    lu, pivots = linalg.lu_factor(a)
    x = linalg.lu_solve(lu, pivots, b, left=left, adjoint=adjoint)
    whole = a.mH if adjoint else a
    np.testing.assert_allclose((whole @ x if left else x @ whole).numpy(), b.numpy(), atol=1e-12)


@pytest.mark.parametrize(
    ("kind", "rtol"), [("float32", 1e-6), ("float64", 1e-14), ("complex64", 1e-6), ("complex128", 1e-14)]
)
@pytest.mark.parametrize("angle", [0.01, 0.3, 1.5, 40.0])
def test_the_exponential_of_a_rotation(kind, rtol, angle):
    x = genesis.tensor([[0.0, -angle], [angle, 0.0]], dtype=getattr(genesis, kind))
    c, s = np.cos(angle), np.sin(angle)
    np.testing.assert_allclose(linalg.matrix_exp(x).numpy(), [[c, -s], [s, c]], rtol=0, atol=max(1, angle) * rtol)
