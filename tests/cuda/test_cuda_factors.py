"""Factors of matrices by cuSOLVER, by stand-ins on the emulated device."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from factors_stand_in import Cublas, Cusolver
from kernels_of import WAYS, compiled, emulated, needs_triton, same, started

import genesis
from genesis.cuda.arrays import MEMORY
from genesis.cuda.kernels import pivots
from genesis.cuda.kernels.host import HostWarning
from genesis.cuda.libraries import cusolver, loading

DTYPES = ["float32", "float64", "complex64", "complex128"]
TOLERANCE = {"float32": 2e-4, "float64": 1e-10, "complex64": 3e-4, "complex128": 1e-10}
L = genesis.linalg


@pytest.fixture
def library():
    with emulated() as driver:
        made = Cusolver(driver), Cublas(driver)
        with loading.standing_in(cusolver=made[0], cublas=made[1]):
            yield made


def matrix(*shape, dtype="float32", seed=1):
    genesis.manual_seed(seed)
    kind = getattr(genesis, dtype)
    x = genesis.randn(*shape, dtype=kind.to_real())
    return genesis.complex(x, genesis.randn(*shape, dtype=kind.to_real())) if kind.is_complex else x


def regular(*shape, dtype="float32"):
    return matrix(*shape, dtype=dtype) + 4 * genesis.eye(shape[-1], dtype=getattr(genesis, dtype))


def positive(*shape, dtype="float32"):
    x = matrix(*shape, dtype=dtype)
    return x @ x.mH + genesis.eye(shape[-1], dtype=x.dtype)


def spectrum(x):
    """Eigenvectors without their signs and phases."""
    values, vectors = L.eigh(x + x.mH)
    return values, vectors.abs(), (vectors * values.unsqueeze(-2).to(x.dtype)) @ vectors.mH


def singular(full):
    def parts(x):
        u, s, vh = L.svd(x, full_matrices=full)
        k = s.shape[-1]
        assert u.shape[-1] == (x.shape[-2] if full else k) and vh.shape[-2] == (x.shape[-1] if full else k)
        one = u.mH @ u, vh @ vh.mH
        return s, (u[..., :k] * s.unsqueeze(-2).to(x.dtype)) @ vh[..., :k, :], *one

    return parts


def orthogonal(mode):
    def parts(x):
        q, r = L.qr(x, mode)
        return r, q @ r, q.mH @ q

    return parts


def right(*shape):
    return lambda dtype: matrix(*shape, dtype=dtype, seed=2)


def square(make, *shape):
    return lambda dtype: make(*shape, dtype=dtype)


CALLS = {  # a function, and what makes its operands of a dtype
    "cholesky": (L.cholesky, [square(positive, 5, 5)]),
    "cholesky, upper": (lambda x: L.cholesky(x, upper=True), [square(positive, 4, 4)]),
    "cholesky of a batch": (L.cholesky, [square(positive, 2, 3, 4, 4)]),
    "cholesky of half": (lambda x: L.cholesky(x.tril()), [square(positive, 4, 4)]),
    "cholesky of what is turned": (lambda x: L.cholesky(x.mH), [square(positive, 3, 4, 4)]),
    "lu factors": (lambda x: tuple(L.lu_factor_ex(x)), [square(matrix, 5, 5)]),
    "lu factors of a batch": (lambda x: tuple(L.lu_factor_ex(x)), [square(matrix, 2, 2, 4, 4)]),
    "lu factors of high ones": (lambda x: tuple(L.lu_factor_ex(x)), [square(matrix, 3, 5, 2)]),
    "lu factors of wide ones": (lambda x: tuple(L.lu_factor_ex(x)), [square(matrix, 3, 6)]),
    "lu without exchanges": (lambda x: tuple(L.lu_factor(x, pivot=False)), [square(regular, 4, 4)]),
    "lu": (lambda x: tuple(L.lu(x)), [square(matrix, 2, 4, 4)]),
    "lu_solve": (lambda x, y: L.lu_solve(*L.lu_factor(x), y), [square(regular, 4, 4), right(4, 2)]),
    "lu_solve, adjoint": (
        lambda x, y: L.lu_solve(*L.lu_factor(x), y, adjoint=True), [square(regular, 2, 4, 4), right(2, 4, 2)],
    ),
    "solve": (L.solve, [square(regular, 5, 5), right(5, 3)]),
    "solve, a vector": (L.solve, [square(regular, 5, 5), right(5)]),
    "solve a batch": (L.solve, [square(regular, 3, 4, 4), right(3, 4, 2)]),
    "solve from the right": (lambda x, y: L.solve(x, y, left=False), [square(regular, 3, 4, 4), right(3, 2, 4)]),
    "solve one for a batch": (L.solve, [square(regular, 4, 4), right(3, 4, 2)]),
    "solve batches that broadcast": (L.solve, [square(regular, 2, 1, 4, 4), right(3, 4, 2)]),
    "inverse": (L.inv, [square(regular, 5, 5)]),
    "inverses": (L.inv, [square(regular, 3, 4, 4)]),
    "determinant": (L.det, [square(matrix, 5, 5)]),
    "determinants": (L.det, [square(matrix, 2, 3, 4, 4)]),
    "slogdet": (lambda x: tuple(L.slogdet(x)), [square(matrix, 5, 5)]),
    "slogdets": (lambda x: tuple(L.slogdet(x)), [square(matrix, 7, 3, 3)]),
    "triangle": (lambda x, y: L.solve_triangular(x, y, upper=True), [square(regular, 4, 4), right(4, 3)]),
    "lower triangle": (lambda x, y: L.solve_triangular(x, y, upper=False), [square(regular, 4, 4), right(4, 3)]),
    "triangle from the right": (
        lambda x, y: L.solve_triangular(x, y, upper=False, left=False), [square(regular, 4, 4), right(3, 4)],
    ),
    "triangle with ones": (
        lambda x, y: L.solve_triangular(x, y, upper=True, unitriangular=True), [square(regular, 4, 4), right(4, 3)],
    ),
    "triangles": (lambda x, y: L.solve_triangular(x, y, upper=False), [square(regular, 2, 4, 4), right(2, 4, 3)]),
    "triangles, turned": (
        lambda x, y: L.solve_triangular(x.mT, y, upper=False), [square(regular, 2, 4, 4), right(2, 4, 3)],
    ),
    "triangles that broadcast": (
        lambda x, y: L.solve_triangular(x, y, upper=True), [square(regular, 2, 1, 4, 4), right(3, 4, 2)],
    ),
    "cholesky_solve": (lambda x, y: genesis.cholesky_solve(y, L.cholesky(x)), [square(positive, 4, 4), right(4, 2)]),
    "qr": (orthogonal("reduced"), [square(matrix, 5, 5)]),
    "qr of high ones": (orthogonal("reduced"), [square(matrix, 2, 5, 3)]),
    "qr of wide ones": (orthogonal("reduced"), [square(matrix, 2, 3, 5)]),
    "whole qr": (orthogonal("complete"), [square(matrix, 2, 5, 3)]),
    "r": (lambda x: L.qr(x, "r").R, [square(matrix, 5, 3)]),
    "geqrf": (lambda x: tuple(genesis.geqrf(x)), [square(matrix, 2, 5, 3)]),
    "eigh": (spectrum, [square(matrix, 5, 5)]),
    "eigh of a batch": (spectrum, [square(matrix, 2, 2, 4, 4)]),
    "eigvalsh of the upper half": (lambda x: L.eigvalsh(x, "U"), [square(matrix, 4, 4)]),
    "svd": (singular(False), [square(matrix, 5, 3)]),
    "svd of wide ones": (singular(False), [square(matrix, 3, 5)]),
    "svd of a batch": (singular(False), [square(matrix, 2, 2, 5, 3)]),
    "svd of a batch of wide ones": (singular(False), [square(matrix, 3, 2, 5)]),
    "svd of larger ones": (singular(False), [square(matrix, 2, 40, 3)]),
    "whole svd": (singular(True), [square(matrix, 5, 3)]),
    "whole svd of a batch": (singular(True), [square(matrix, 2, 3, 5)]),
    "whole svd of larger ones": (singular(True), [square(matrix, 2, 3, 40)]),
    "svdvals": (L.svdvals, [square(matrix, 5, 3)]),
    "pinv": (L.pinv, [square(matrix, 2, 5, 3)]),
    "pinv of hermitian ones": (lambda x: L.pinv(x + x.mH, hermitian=True), [square(matrix, 4, 4)]),
    "matrix_exp": (L.matrix_exp, [square(matrix, 4, 4)]),
    "matrix_exp of a batch": (lambda x: L.matrix_exp(x * 0.001), [square(matrix, 3, 4, 4)]),
    "matrix_exp of large ones": (lambda x: L.matrix_exp(x - x.mH), [square(matrix, 2, 6, 6)]),
    "lstsq": (lambda x, y: L.lstsq(x, y).solution, [square(matrix, 5, 3), right(5, 2)]),
    "lstsq by qr": (lambda x, y: L.lstsq(x, y, driver="gels")[:2], [square(matrix, 2, 5, 3), right(2, 5, 2)]),
    "lstsq of wide ones by qr": (
        lambda x, y: L.lstsq(x, y, driver="gels").solution, [square(matrix, 3, 5), right(3, 2)],
    ),
    "matrix_rank": (L.matrix_rank, [square(matrix, 2, 5, 3)]),
    "norms": (lambda x: (L.matrix_norm(x, 2), L.matrix_norm(x, "nuc"), L.cond(x)), [square(regular, 4, 4)]),
}  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CALLS)
def test_results_are_those_of_the_cpu(name, dtype, library):
    function, makers = CALLS[name]
    same(function, *[make(dtype) for make in makers], tolerance=TOLERANCE[dtype])
    assert library[0].done or library[1].done


WITHOUT_GRADIENT = {"lu without exchanges", "whole qr", "r", "geqrf", "matrix_rank", "norms", "whole svd", "whole svd of a batch",
                    "whole svd of larger ones", "svd of wide ones", "lu_solve, adjoint"}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", [name for name in CALLS if name not in WITHOUT_GRADIENT])
def test_gradients(name, dtype, library):
    function, makers = CALLS[name]

    def gradients(*inputs):
        inputs = [x.detach().requires_grad_() for x in inputs]
        results = function(*inputs)
        for y in results if isinstance(results, tuple) else (results,):
            if y.requires_grad:
                y = genesis.view_as_real(y) if y.is_complex() else y
                weight = genesis.arange(1.0, y.numel() + 1, dtype=y.dtype, device=y.device).reshape(y.shape)
                (y * weight / y.numel()).sum().backward(retain_graph=True)
        return [x.grad for x in inputs]

    same(gradients, *[make(dtype) for make in makers], tolerance=1e-8)


@pytest.mark.parametrize(
    "name", ["inverses", "solve a batch", "determinant", "qr of high ones", "svdvals", "triangles", "lstsq by qr"]
)
def test_rules_hold_on_the_device(name, library):
    function, makers = CALLS[name]
    inputs = [make("float64").to("cuda").requires_grad_() for make in makers]
    assert genesis.autograd.gradcheck(function, inputs) and library[0].done + library[1].done


def test_second_derivatives_hold_on_the_device(library):
    x, y = regular(3, 3, dtype="float64").to("cuda").requires_grad_(), matrix(3, 2, dtype="float64").to("cuda")
    assert genesis.autograd.gradgradcheck(L.solve, (x, y))
    assert genesis.autograd.gradcheck(lambda x: L.cholesky(x @ x.mT), x)
    assert genesis.autograd.gradgradcheck(
        lambda x: L.slogdet(x).logabsdet, x, genesis.tensor(2.0, dtype=y.dtype, device="cuda")
    )
    with pytest.raises(genesis.autograd.GradcheckError, match="`x`"):
        genesis.autograd.gradcheck(lambda x: x.detach() * x, x)


def test_which_functions_do_it(library):
    """Small ones of a batch together, others one by one."""
    x = regular(3, 4, 4).to("cuda")
    L.inv(x), L.cholesky(x @ x.mT), L.eigh(x), L.svd(x), L.solve_triangular(x, x, upper=True)
    assert library[0].done == ["potrf_batched", "xsyev_batched", "gesvdj_batched"]
    assert library[1].done == ["getrf_batched", "getrs_batched", "trsm_batched"]
    for library_ in library:
        library_.done.clear()
    large = genesis.eye(600).expand(2, 600, 600).to("cuda")
    L.inv(large), L.cholesky(large), L.svdvals(genesis.ones(2, 33, 2).to("cuda"))
    assert library[0].done == ["getrf", "getrf", "getrs", "getrs", "potrf", "potrf", "gesvdj", "gesvdj"]
    assert library[1].done == []


def test_triangles_are_read_where_they_lie(library, monkeypatch):
    x, y = regular(3, 4, 4).to("cuda"), matrix(3, 4, 2).to("cuda")
    copies = []
    real = type(MEMORY).copy
    monkeypatch.setattr(type(MEMORY), "copy", lambda self, array: copies.append(array.shape) or real(self, array))
    for seen in (x, x.mT, x[:, :3, :3], x[0]):
        L.solve_triangular(seen, y[..., : seen.shape[-1], :], upper=True)
    assert copies == []
    L.solve_triangular(x[:, ::2, ::2], y[:, :2], upper=True)
    assert copies == [(3, 2, 2)]


def raised(function, x):
    try:
        function(x)
    except Exception as error:
        return type(error), str(error)
    return None


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_errors_are_those_of_the_cpu(dtype, library):
    one = positive(3, 4, 4, dtype=dtype)
    bad = one.clone()
    bad[1, 2, 2] = -1.0
    singular = one.clone()
    singular[2, :, 1] = 0
    odd = one.clone()
    odd[0, 1, 1] = float("nan")
    infinite = one.clone()
    infinite[2, 0, 3] = float("inf")
    for function, inputs in (
        (L.cholesky, (bad, bad[1])),
        (L.inv, (singular, singular[2])),
        (lambda x: L.solve(x, x), (singular,)),
        (L.eigh, (odd, infinite[2])), (L.svd, (odd, infinite[2])), (L.pinv, (odd, odd[0])),
        (lambda x: L.lu_factor(x * 0, pivot=False), (one,)),
    ):  # fmt: skip
        for x in inputs:
            here = raised(function, x)
            assert here is not None and here == raised(function, x.to("cuda"))
    assert L.cholesky_ex(bad.to("cuda")).info.tolist() == L.cholesky_ex(bad).info.tolist() == [0, 3, 0]
    assert L.inv_ex(singular.to("cuda")).info.tolist() == [0, 0, 2]


def test_drivers_of_singular_values(library):
    x = matrix(4, 3)
    for driver in ("gesvd", "gesvdj", "gesvda"):
        same(
            lambda x, driver=driver: L.svdvals(x, driver=driver if x.device.type == "cuda" else None), x, tolerance=1e-5
        )
    with pytest.raises(RuntimeError, match="linalg.svd: driver must be one of gesvd, gesvdj, gesvda, got 'x'"):
        L.svd(x.to("cuda"), driver="x")


def test_iterations_that_do_not_end():
    with emulated() as driver:
        made = Cusolver(driver, fails=5), Cublas(driver)
        with loading.standing_in(cusolver=made[0], cublas=made[1]):
            for function in (L.eigh, L.svd):
                with pytest.raises(
                    genesis.linalg.LinAlgError, match=r"the iteration did not converge \(cuSOLVER says 5\)"
                ):
                    function(positive(4, 4).to("cuda"))


def test_the_gradient_of_a_determinant_without_an_inverse(library):
    """The CPU finds cofactors by singular values."""

    def gradient(x):
        x = x.detach().requires_grad_()
        L.det(x).backward()
        return x.grad

    x = genesis.tensor([[1.0, 2.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    with pytest.warns(HostWarning, match="cofactors"):
        same(gradient, x, tolerance=1e-5)
    same(gradient, x + genesis.eye(3), tolerance=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("way", WAYS)
def test_permutations_and_determinants(way, dtype):
    """What is computed from factors is a kernel of ours."""
    with emulated(way) as driver:
        made = Cusolver(driver), Cublas(driver)
        with loading.standing_in(cusolver=made[0], cublas=made[1]):
            x = matrix(2, 3, 5, 5, dtype=dtype)
            same(lambda x: (L.det(x), *L.slogdet(x), L.lu(x).P), x, tolerance=TOLERANCE[dtype])
            same(lambda x: tuple(L.slogdet(x * 0)), x[0, 0])
            same(lambda x: L.lu(x).P, x[0, :, :3], tolerance=0)


@needs_triton
def test_machine_code_of_permutations_and_determinants():
    def all_of_them():
        device = genesis.device("cuda:0")
        for kind in ("f4", "c16"):
            lu, rows = MEMORY.ones((2, 4, 4), np.dtype(kind), device), MEMORY.ones((2, 4), np.dtype(np.int32), device)
            pivots.determinant(lu, rows), pivots.sign_and_logarithm(lu, rows)
            pivots.permutation_matrix(rows, 4, np.dtype(kind))

    kernels = {kernel.source: (kernel, aligned) for kernel, aligned in started(all_of_them)}
    assert len([compiled(*each) for each in kernels.values()]) >= 7


def test_without_the_libraries_the_cpu_computes():
    with emulated(), pytest.warns(HostWarning, match="cholesky_factor is computed by the CPU"):
        x = positive(4, 4)
        np.testing.assert_allclose(L.cholesky(x.to("cuda")).cpu().numpy(), L.cholesky(x).numpy())


def test_names_and_numbers_are_those_of_the_packages():
    """Where they are installed: they can be imported without a GPU."""
    try:
        dn = importlib.import_module("nvmath.bindings.cusolverDn")
        blas, nvmath = importlib.import_module("nvmath.bindings.cublas"), importlib.import_module("nvmath")
    except ImportError as error:
        pytest.skip(f"nvmath-python is not installed: {error}")
    solver = importlib.import_module("nvmath.bindings.cusolver")
    assert (blas.FillMode.LOWER, blas.FillMode.UPPER) == (cusolver.LOWER, cusolver.UPPER)
    assert blas.SideMode.RIGHT == cusolver.RIGHT and solver.EigMode.VECTOR == cusolver.WITH_VECTORS
    assert (blas.Operation.N, blas.Operation.T) == (cusolver.NORMAL, cusolver.TRANSPOSED)
    assert (blas.DiagType.NON_UNIT, blas.DiagType.UNIT) == (0, 1)
    names = {"f": "CUDA_R_32F", "d": "CUDA_R_64F", "F": "CUDA_C_32F", "D": "CUDA_C_64F"}
    assert {k: int(nvmath.CudaDataType[name]) for k, name in names.items()} == cusolver.KINDS
    counts = {
        "potrf": 8, "potrf_buffer_size": 5, "potrf_batched": 7, "getrf": 8, "getrf_buffer_size": 5, "getrs": 10,
        "geqrf": 9, "geqrf_buffer_size": 5, "gesvdj": 16, "gesvdj_buffer_size": 13, "gesvdj_batched": 16,
        "gesvdj_batched_buffer_size": 13,
    }  # fmt: skip
    numbers = {"orgqr": 10, "orgqr_buffer_size": 7, "syevd": 10, "syevd_buffer_size": 7}
    others = {"ungqr": 10, "ungqr_buffer_size": 7, "heevd": 10, "heevd_buffer_size": 7}
    of_blas = {"trsm": 12, "trsm_batched": 13, "getrf_batched": 7, "getrs_batched": 11}
    plain = {"create": 0, "set_stream": 2}
    own = {"create_params": 0, "create_gesvdj_info": 0, "xsyev_batched": 17, "xsyev_batched_buffer_size": 12}
    for module, letters, table in (
        (dn, "sdcz", counts), (dn, "sd", numbers), (dn, "cz", others), (blas, "sdcz", of_blas), (dn, [""], {**plain, **own}),
        (blas, [""], plain),
    ):  # fmt: skip
        for letter in letters:
            for name, count in table.items():
                said = getattr(module, letter + name).__doc__.split("(", 1)[1].split(")")[0]
                assert len([a for a in said.split(",") if a.strip()]) == count, letter + name
