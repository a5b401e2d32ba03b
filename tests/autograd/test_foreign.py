"""NumPy, SciPy and C functions with a derivative."""

from __future__ import annotations

import ctypes
import ctypes.util
import math

import numpy as np
import pytest

import genesis
from genesis.autograd import (
    from_ctypes,
    from_numpy,
    from_scalar,
    grad,
    gradcheck,
    gradgradcheck,
    numerical_gradient_check,
)
from genesis.base.errors import (
    ArgumentError,
    ArgumentValueError,
    GraphError,
    InplaceError,
    ShapeError,
    UnsupportedError,
)

POINTER = ctypes.POINTER(ctypes.c_double)


def double(*shape):
    return genesis.randn(*shape, dtype=genesis.float64, requires_grad=True)


def test_elementwise():
    tanh = from_numpy(np.tanh, lambda x: 1 - np.tanh(x) ** 2)
    x = double(3, 2)
    assert gradcheck(tanh, x) and repr(tanh) == "<foreign function tanh>"
    assert type(tanh(x).grad_fn).__name__ == "tanhBackward" and tanh.__doc__ == np.tanh.__doc__
    assert not tanh(x.detach()).requires_grad
    constant = from_numpy(lambda x: 3 * x + 1, lambda x: 3.0)
    assert constant(x).dtype == genesis.float64 and gradcheck(constant, x)
    assert from_numpy(lambda x: float(x.sum()))(genesis.ones(2)).dtype == genesis.float32


def test_elementwise_of_several_inputs_broadcasts_and_is_lazy():
    ran = []
    slopes = (lambda x, y: (ran.append(0), y)[1], lambda x, y: (ran.append(1), x)[1])
    product = from_numpy(np.multiply, slopes)
    assert gradcheck(product, (double(3, 1), double(2)))
    ran.clear()
    product(double(2), genesis.ones(2, dtype=genesis.float64)).sum().backward()
    assert ran == [0]
    half = from_numpy(np.multiply, (lambda x, y: y, None))
    half(double(2), y := double(2)).sum().backward()
    assert y.grad is None


def test_vjp():
    norm = from_numpy(np.linalg.norm, vjp=lambda g, x, out: g * x / out)
    assert gradcheck(norm, double(4))
    matmul = from_numpy(np.matmul, vjp=lambda g, a, b, out: (g @ b.T, a.T @ g))
    assert gradcheck(matmul, (double(2, 3), double(3, 4)))
    each = from_numpy(np.matmul, vjp=(lambda g, a, b, out: g @ b.T, lambda g, a, b, out: a.T @ g))
    assert gradcheck(each, (double(2, 3), double(3, 4)))
    scaled = from_numpy(lambda x, n, *, shift=0.0: x * n + shift, vjp=lambda g, x, n, out, *, shift=0.0: (g * n, None))
    assert gradcheck(lambda x: scaled(x, 3, shift=2.0), double(2))
    none = from_numpy(np.sign, vjp=lambda g, x, out: None)
    none(x := double(2)).sum().backward()
    assert x.grad is None


def test_several_outputs():
    modulus = from_numpy(lambda x: (np.sin(x), np.cos(x)), vjp=lambda g, x, out: g[0] * out[1] - g[1] * out[0])
    assert gradcheck(lambda x: modulus(x)[0] * modulus(x)[1], double(3))
    x = double(3)
    (g,) = grad(modulus(x)[0].sum(), x, create_graph=True)
    assert np.allclose(g.detach().numpy(), np.cos(x.detach().numpy()))
    with pytest.raises(UnsupportedError, match="a second derivative was asked for, and lambda_vjp has no derivative"):
        g.sum().backward()


def test_jacobian_forms():
    def f(x):
        return np.array([x[0] * x[1], x[1] ** 2, x[0] + x[1]])

    def jac(x):
        return np.array([[x[1], x[0]], [0, 2 * x[1]], [1, 1]])

    assert gradcheck(from_numpy(f, jac=jac), double(2))
    rosen = pytest.importorskip("scipy.optimize")
    assert gradcheck(from_numpy(rosen.rosen, jac=rosen.rosen_der), double(4))
    curved = from_numpy(rosen.rosen, jac=from_numpy(rosen.rosen_der, jac=rosen.rosen_hess))
    assert gradgradcheck(curved, double(4))
    two = from_numpy(lambda a, b: a * b, jac=lambda a, b: (np.diag(b), np.diag(a)))
    assert gradcheck(two, (double(3), double(3)))
    each = from_numpy(lambda a, b: a * b, jac=(lambda a, b: np.diag(b), lambda a, b: np.diag(a)))
    assert gradcheck(each, (double(3), double(3)))


def test_sparse_jacobians_stay_sparse():
    sparse = pytest.importorskip("scipy.sparse")
    made = []

    class Counted(sparse.csr_array):
        def toarray(self, *args, **kwargs):
            made.append(1)
            return super().toarray(*args, **kwargs)

    matrix = sparse.random_array((6, 4), density=0.3, rng=np.random.default_rng(0))
    product = from_numpy(lambda x: matrix @ x, jac=lambda x: Counted(matrix))
    assert gradcheck(product, double(4)) and made == []
    assert gradcheck(
        from_numpy(lambda x: (matrix @ x.reshape(-1)).reshape(3, 2), jac=lambda x: Counted(matrix)), double(2, 2)
    )
    x = double(4)
    (g,) = grad((product(x) ** 2).sum(), x, create_graph=True)
    assert made == [1]  # recorded in operations on tensors, which are dense
    with pytest.raises(UnsupportedError, match="a second derivative was asked for"):
        g.sum().backward()


def test_second_derivatives():
    sine = from_numpy(np.sin, np.cos, ddf=lambda x: -np.sin(x))
    assert gradgradcheck(sine, double(3))
    chain = from_numpy(np.sin, from_numpy(np.cos, from_numpy(lambda x: -np.sin(x), lambda x: -np.cos(x))))
    x = genesis.tensor(0.5, dtype=genesis.float64, requires_grad=True)
    y = chain(x)
    for expected in (np.cos(0.5), -np.sin(0.5), -np.cos(0.5)):
        (y,) = grad(y, x, create_graph=True)
        assert np.isclose(y.item(), expected)
    vjp = from_numpy(
        np.square, vjp=from_numpy(lambda g, x, out: 2 * g * x, (lambda g, x, out: 2 * x, lambda g, x, out: 2 * g, None))
    )
    assert gradgradcheck(vjp, double(3))


def test_a_second_derivative_without_a_rule_is_an_error_only_where_it_is_used():
    sine = from_numpy(np.sin, np.cos)
    x = double(3)
    (g,) = grad(sine(x).sum(), x, create_graph=True)  # asked for, not used yet
    with pytest.raises(
        UnsupportedError,
        match=r"sin: a second derivative was asked for, and sin_df has no derivative\n  try: give ddf=, or make the "
        r"rule itself a from_numpy",
    ):
        grad(g.sum(), x)
    seed = double(3)
    (g,) = grad(sine(x), x, seed, create_graph=True)  # linear in the seed, whatever the derivative
    assert np.allclose(grad(g.sum(), seed)[0].numpy(), np.cos(x.detach().numpy()))


def test_inputs_are_the_tensors_own_memory_and_read_only():
    seen = []

    def f(x):
        seen.append(x)
        return x * 2

    x = double(3)
    y = from_numpy(f, lambda x: 2.0)(x)
    assert seen[0].__array_interface__["data"][0] == x.data_ptr() and not seen[0].flags.writeable
    assert x.detach().numpy().flags.writeable and y.detach().numpy().flags.writeable

    def writes(x):
        x += 1
        return x

    with pytest.raises(
        InplaceError, match=r"writes: the function writes to its input\n  try: let it work on x.copy\(\)"
    ):
        from_numpy(writes)(x)


def test_results_are_never_windows_to_inputs():
    x = genesis.arange(4.0)
    for f in (lambda x: x, lambda x: x.T[1:], lambda x: np.broadcast_to(x, (2, 4))):
        y = from_numpy(f)(x)
        y.add_(1)
        assert x.tolist() == [0, 1, 2, 3]
    own = []
    y = from_numpy(lambda x: own.append(x * 2) or own[0])(x)
    assert y.numpy() is own[0]


def test_wrong_rules():
    x, y = double(3), double(3)
    cases = [
        (
            from_numpy(np.sin, lambda x: np.ones((2, 3))),
            (x,),
            ShapeError,
            r"df has shape \[2, 3\], the output has \[3\]",
        ),
        (
            from_numpy(np.sin, vjp=lambda g, x, out: g.sum()),
            (x,),
            ShapeError,
            r"vjp returned a gradient of shape \[\] for input 0, which has \[3\]",
        ),
        (
            from_numpy(np.sin, jac=lambda x: np.ones(3)),
            (x,),
            ShapeError,
            r"jac has shape \[3\] for input 0, expected \[3, 3\]",
        ),
        (
            from_numpy(np.multiply, vjp=lambda g, x, y, out: g),
            (x, y),
            GraphError,
            "vjp returned 1 gradients for 2 inputs",
        ),
        (from_numpy(np.multiply, lambda x, y: y), (x, y), GraphError, r"one df for 2 inputs\n  try: df=\(df_0"),
        (
            from_numpy(np.multiply, (lambda x, y: y,)),
            (x, y),
            GraphError,
            "input 1 requires grad, df has rules for 1 inputs",
        ),
        (from_numpy(lambda x: (x, x), np.cos), (x,), GraphError, "df is for one output, the function has 2"),
        (from_numpy(lambda x: (x, x), jac=np.diag), (x,), GraphError, "jac is for one output, the function has 2"),
        (
            from_numpy(np.sin),
            (x,),
            UnsupportedError,
            r"sin: the function has no derivative\n  try: from_numpy\(f, df\)",
        ),
    ]
    for f, args, error, match in cases:
        out = f(*args)
        out = out if isinstance(out, genesis.Tensor) else out[0]
        with pytest.raises(error, match=match):
            out.sum().backward()


def test_wrong_calls():
    x = double(3)
    f = from_numpy(lambda x, scale=1.0: x * scale, lambda x, scale=1.0: scale)
    with pytest.raises(
        GraphError, match="scale requires grad, only tensors that are positional arguments have gradients"
    ):
        f(x, scale=double(3))
    assert np.allclose(f(x, scale=genesis.full((3,), 2.0)).tolist(), (x * 2).tolist())
    with pytest.raises(GraphError, match="item of argument 0 requires grad"):
        from_numpy(np.stack)([x, x])
    assert from_numpy(np.stack)([x.detach(), x.detach()]).shape == (2, 3)
    with pytest.raises(ArgumentError, match="the function returned str, expected an array of numbers"):
        from_numpy(lambda x: "a")(x)
    with pytest.raises(ArgumentError, match="the function returned NoneType"):
        from_numpy(lambda x: None)(x)
    with pytest.raises(ArgumentError, match="df and vjp say the same in different forms"):
        from_numpy(np.sin, np.cos, vjp=np.cos)
    with pytest.raises(ArgumentError, match="from_numpy: expected a function, got int"):
        from_numpy(3)
    with pytest.raises(ArgumentError, match="df= is float, expected a function"):
        from_numpy(np.sin, 1.0)
    with pytest.raises(ArgumentError, match="ddf is the derivative of df, which is not one function"):
        from_numpy(np.sin, (np.cos,), ddf=np.sin)
    with pytest.raises(ZeroDivisionError):
        from_numpy(lambda x: 1 / 0)(x)


def test_scipy():
    special = pytest.importorskip("scipy.special")
    erf = from_numpy(
        special.erf,
        lambda x: 2 / np.sqrt(np.pi) * np.exp(-(x**2)),
        ddf=lambda x: -4 * x / np.sqrt(np.pi) * np.exp(-(x**2)),
    )
    assert gradcheck(erf, double(4)) and gradgradcheck(erf, double(4))
    assert erf(genesis.ones(2)).dtype == genesis.float32


def test_scalar_functions():
    lgamma = from_scalar(math.lgamma, lambda x: math.log(x) - 1 / (2 * x))
    assert lgamma(genesis.tensor([1.0, 3.0])).tolist() == [0, float(np.float32(math.log(2)))]
    hypot = from_scalar(math.hypot, (lambda x, y: x / math.hypot(x, y), lambda x, y: y / math.hypot(x, y)))
    assert gradcheck(hypot, (double(3, 1), double(2)))
    sine = from_scalar(math.sin, math.cos, ddf=lambda x: -math.sin(x))
    assert gradgradcheck(sine, double(2, 2)) and sine(genesis.zeros(0)).shape == (0,)
    assert gradcheck(sine, genesis.tensor(0.3, requires_grad=True))


@pytest.mark.skipif(ctypes.util.find_library("m") is None, reason="no C library of mathematics to load")
def test_a_function_of_the_c_library():
    libm = ctypes.CDLL(ctypes.util.find_library("m"))
    for name in ("cbrt", "erf"):
        getattr(libm, name).argtypes, getattr(libm, name).restype = [ctypes.c_double], ctypes.c_double
    cbrt = from_scalar(libm.cbrt, lambda x: 1 / (3 * libm.cbrt(x) ** 2))
    assert np.allclose(cbrt(genesis.tensor([8.0, 27.0])).tolist(), [2, 3])
    assert gradcheck(cbrt, genesis.tensor([1.0, 8.0, -2.0], requires_grad=True))


@ctypes.CFUNCTYPE(None, POINTER, POINTER, POINTER, ctypes.c_size_t)
def c_multiply(x, y, out, n):
    for i in range(n):
        out[i] = x[i] * y[i]


@ctypes.CFUNCTYPE(None, POINTER, POINTER, POINTER, ctypes.c_size_t)
def c_second(x, y, out, n):
    for i in range(n):
        out[i] = y[i]


def test_pointers():
    f = from_ctypes(c_multiply, df=(c_second, lambda x, y: x), name="c_multiply")
    assert gradcheck(f, (double(3, 2), double(2))) and gradcheck(f, (double(2, 3).t(), double(3, 1)))
    x = genesis.ones(2, requires_grad=True)
    y = f(x, genesis.tensor([2.0, 3.0]))
    assert y.dtype == genesis.float32 and type(y.grad_fn).__name__ == "c_multiplyBackward"
    y.sum().backward()
    assert x.grad.tolist() == [2, 3]
    with pytest.raises(ArgumentValueError, match="dtype complex128 is no type of C"):
        from_ctypes(c_multiply, dtype=np.complex128)


def test_complex_derivatives_are_conjugated():
    f = from_numpy(np.exp, np.exp)
    z = genesis.tensor([1 + 2j, 0.5 - 1j], dtype=genesis.complex128, requires_grad=True)
    assert gradcheck(f, z)


def test_numerical_gradient_check():
    x = double(3)
    right, wrong = from_numpy(np.sin, np.cos), from_numpy(lambda x: np.sin(x), np.sin)
    assert numerical_gradient_check(right, x) is True and numerical_gradient_check(wrong, x) is False
    assert numerical_gradient_check(right, genesis.ones(2)) is True  # float32, not requiring grad
    assert numerical_gradient_check(lambda a, b: a * b, (x, genesis.ones(3))) is True
    assert numerical_gradient_check(genesis.sin, double(2, 3).t()) is True  # inputs need not be contiguous
    assert x.grad is None and x.requires_grad
    with pytest.raises(genesis.autograd.GradcheckError, match="the gradient of `x` is wrong"):
        numerical_gradient_check(wrong, x, raise_exception=True)
    assert numerical_gradient_check(lambda x: x.detach() * 2, x) is False


@pytest.mark.parametrize("make", ["from_numpy", "from_scalar", "from_ctypes"])
def test_a_name_is_a_string(make):
    with pytest.raises(TypeError, match=rf"^{make}: name must be a string, got float"):
        getattr(genesis.autograd, make)(np.sin, name=-0.5)
