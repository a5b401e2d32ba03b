"""Products of matrices and vectors. 16-bit floats are multiplied in float32 and rounded once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.arrays.protocol import Array
from genesis.arrays.spec import Spec
from genesis.base import dtypes
from genesis.base.blas import product, product_and_bias, product_of_halves
from genesis.base.quiet import unnamed
from genesis.base.errors import ArgumentError, DTypeError, ShapeError, message
from genesis.core.call.generated import rename_parameters
from genesis.core.call.halves import HALVES
from genesis.core.call.kinds import case, composite, contraction, fails, in_front
from genesis.core.call.older import older_forms
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.strides import packed
from genesis.core.graph.tensor import Tensor, wrap
from genesis.ops.shapes.expand import sum_to


def same_dtype(name: str, *specs: Any) -> None:
    """Matrix products do not promote: mixed dtypes are nearly always a mistake."""
    kinds = [s.dtype for s in specs]
    if any(k != kinds[0] for k in kinds):
        names = " and ".join(str(dtypes.from_numpy(k)) for k in dict.fromkeys(kinds))
        raise DTypeError(
            message(
                name,
                f"dtypes differ, {names}",
                [(f"operand {i}", s) for i, s in enumerate(specs)],
                "convert one with .to(dtype)",
            )
        )


def _infer_matmul(input: Spec, other: Spec) -> Spec:
    a, b = input.shape, other.shape
    pair = [("input", input), ("other", other)]
    if not a or not b:
        raise ShapeError(message("matmul", "both operands must be at least 1-D", pair, "use * for scalars"))
    inner_a, inner_b = a[-1], b[-2] if len(b) > 1 else b[0]
    if inner_a != inner_b:
        raise ShapeError(
            message("matmul", f"inner sizes differ, {inner_a} and {inner_b}", pair, "transpose one of them")
        )
    same_dtype("matmul", input, other)
    try:
        batch = np.broadcast_shapes(a[:-2], b[:-2])
    except ValueError:
        raise ShapeError(message("matmul", f"batch sizes differ, {list(a[:-2])} and {list(b[:-2])}", pair)) from None
    tail = ((a[-2],) if len(a) > 1 else ()) + ((b[-1],) if len(b) > 1 else ())
    return Spec((*batch, *tail), input.dtype, input.device)


def _matmul_left(g: Any, other: Any, input_shape: Any) -> Any:
    if other.ndim == 1:
        outer = g.unsqueeze(-1) * other if len(input_shape) > 1 else g * other
        return sum_to(outer, input_shape)
    if len(input_shape) == 1:
        g = g.unsqueeze(-2)
    return _fitted(matmul(g, other.mT), input_shape)


def _matmul_right(g: Any, input: Any, other_shape: Any) -> Any:
    if input.ndim == 1:
        if len(other_shape) == 1:
            return g * input
        return sum_to(input.unsqueeze(-1) * g.unsqueeze(-2), other_shape)
    if len(other_shape) == 1:
        return matmul(as_rows(input).t(), g.reshape(-1))
    if len(other_shape) == 2 and input.ndim > 2:  # one product over all batches instead of one each and a sum
        return matmul(as_rows(input).t(), as_rows(g))
    return _fitted(matmul(input.mT, g), other_shape)


def as_rows(x: Any) -> Any:
    """All leading dimensions as one (counted, not -1: a last dimension of size 0 would leave it open)."""
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def _fitted(g: Tensor, shape: Sequence[int]) -> Tensor:
    return g if g._array.shape == shape else sum_to(g, shape)


def _matmul_batch(b: Any, x: Tensor, y: Tensor) -> Tensor:
    """One matrix times many vectors is one product of matrices; the rest is as in every contraction."""
    if b.batched == [False, True] and y.ndim == 2 and x.ndim <= 2:
        return matmul(y, x.mT if x.ndim == 2 else x)
    return in_front(b, x, y)


@contraction(
    {"input": _matmul_left, "other": _matmul_right},
    core=(2, 2),
    spare=(-2, -1),
    batch=_matmul_batch,
    infer=_infer_matmul,
    out=True,
    autocast="low",
    dtypes="fci",
    operators=["__matmul__"],
)
def matmul(input: Array, other: Array) -> Any:
    """Matrix product; ``a @ b``.

    Two vectors give their dot product, a matrix and a vector their product; leading dimensions are batches and
    broadcast.

    Raises:
        RuntimeError: inner sizes, batch sizes or dtypes differ, or an operand is 0-d

    >>> import genesis
    >>> genesis.matmul(genesis.tensor([[1., 2.], [3., 4.]]), genesis.tensor([1., 1.]))
    tensor([3., 7.])
    """
    kind = input.dtype
    if kind is not other.dtype:
        _infer_matmul(product_spec(input), product_spec(other))
    if kind in HALVES:
        return product_of_halves(input, other).astype(kind)
    return rows_times(input, other) if input.ndim > 2 and other.ndim == 2 else product(input, other)


samples(
    matmul,
    lambda t: [
        case(t(2, 3), t(3, 4)),
        case(t(3), t(3)),
        case(t(2, 3), t(3)),
        case(t(3), t(3, 2)),
        case(t(2, 2, 3), t(3, 2)),
        case(t(2, 1, 2, 3), t(3, 3, 2)),
        case(t(3), t(2, 3, 2)),
        case(t(2, 2, 3), t(3)),
        case(t(0, 3), t(3, 2)),
        case(t(2, 0), t(0, 3)),
        case(t(2, 2, 0), t(0, 3)),
        case(t(2, 0), t(0)),
        case(t(2, 3, 0), t(0)),
    ],
)

wrong_inputs(
    matmul,
    (lambda t: case(t(3, 4), t(5, 2)), RuntimeError, "matmul: inner sizes differ, 4 and 5"),
    (lambda t: case(t(), t(2)), RuntimeError, "matmul: both operands must be at least 1-D"),
    (lambda t: case(t(2, 2), t.int(2, 2)), RuntimeError, "matmul: dtypes differ"),
)


@unnamed
def rows_times(a: Any, b: Any, bias: Any = None) -> Any:
    """Batches of rows times one matrix, all rows at once: NumPy would multiply batch by batch."""
    if not a.flags.c_contiguous:
        out = packed(product(a, b))
        return out if bias is None else np.add(out, bias, out=out)
    rows = a.reshape(math.prod(a.shape[:-1]), a.shape[-1])
    out = product(rows, b) if bias is None else product_and_bias(rows, b, bias)
    return out.reshape(*a.shape[:-1], b.shape[-1])


def product_spec(x: Any) -> Spec:
    return Spec(x.shape, x.dtype)


def _rmatmul(self: Tensor, other: Any) -> Any:
    from genesis.ops.creation.outside import as_tensor

    return matmul(as_tensor(other), self) if isinstance(other, np.ndarray | Tensor) else NotImplemented


Tensor.__rmatmul__ = _rmatmul


def _matmul_operator(self: Tensor, other: Any) -> Tensor:
    if isinstance(other, np.ndarray):
        return matmul(self, wrap(other))
    known = isinstance(other, Tensor) or hasattr(type(other), "__torch_function__")
    return matmul(self, other) if known else NotImplemented


Tensor.__matmul__ = _matmul_operator


def _ranks(name: str, *pairs: tuple[Tensor, int]) -> None:
    for x, ndim in pairs:
        if not isinstance(x, Tensor):
            raise ArgumentError(message(name, f"expected a tensor, got {type(x).__name__}"))
        if x.ndim != ndim:
            raise ShapeError(
                message(
                    name,
                    f"expected {ndim}-D tensors, got {x.ndim}-D",
                    [("operand", x._spec())],
                    "matmul takes any",
                )
            )


def _strict_product(
    name: str, left: int, right: int, doc: str, sample: Any, second: str = "mat2", autocast: str = "low"
) -> Any:
    def product(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
        if not isinstance(input, Tensor) and getattr(input, "is_sparse", False):
            return input @ mat2  # type: ignore[no-any-return]
        _ranks(name, (input, left), (mat2, right))
        if left == 3 and input.shape[0] != mat2.shape[0]:
            raise ShapeError(
                message(
                    name,
                    f"batch sizes differ, {input.shape[0]} and {mat2.shape[0]}",
                    [("input", input._spec()), ("mat2", mat2._spec())],
                )
            )
        return matmul(input, mat2, out=out)

    rename_parameters(product, "input", second)
    product.__name__ = product.__qualname__ = name
    product.__doc__ = doc
    bad = (lambda t: case(t(*[2] * left), t(2, 2, 2, 2)), RuntimeError, f"{name}: expected {right}-D tensors, got 4-D")
    return composite(samples=sample, autocast=autocast, fails=fails(bad))(product)


mm = _strict_product("mm", 2, 2, """Product of two matrices.

>>> import genesis
>>> genesis.mm(genesis.ones(1, 2), genesis.ones(2, 1))
tensor([[2.]])
""", lambda t: [case(t(2, 3), t(3, 4))])  # fmt: skip
bmm = _strict_product("bmm", 3, 3, """Products of two batches of matrices, of the same size.

>>> import genesis
>>> genesis.bmm(genesis.ones(1, 1, 2), genesis.ones(1, 2, 1))
tensor([[[2.]]])
""", lambda t: [case(t(2, 2, 3), t(2, 3, 2))])  # fmt: skip
mv = _strict_product("mv", 2, 1, """Product of a matrix and a vector.

>>> import genesis
>>> genesis.mv(genesis.ones(1, 2), genesis.ones(2))
tensor([2.])
""", lambda t: [case(t(2, 3), t(3))], "vec", "low:gpu own:cpu")  # fmt: skip
dot = _strict_product("dot", 1, 1, """Dot product of two vectors, $\\\\sum_i x_i y_i$.

>>> import genesis
>>> genesis.dot(genesis.tensor([1., 2.]), genesis.tensor([3., 4.]))
tensor(11.)
""", lambda t: [case(t(3), t(3))], "tensor", "own")  # fmt: skip


@composite(halves="alike", dtypes="fc", out=True, autocast="own")
def vdot(input: Tensor, other: Tensor) -> Tensor:
    """Dot product with the first vector conjugated.

    >>> import genesis
    >>> genesis.vdot(genesis.tensor([1., 2.]), genesis.tensor([3., 4.]))
    tensor(11.)
    """
    return dot(input.conj(), other)


samples(vdot, lambda t: [case(t(3), t(3))])


@composite(out=True)
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """Outer product of two vectors, $x_i y_j$.

    >>> import genesis
    >>> genesis.outer(genesis.tensor([1., 2.]), genesis.tensor([3., 4.]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    _ranks("outer", (input, 1), (vec2, 1))
    return input.unsqueeze(1) * vec2


samples(outer, lambda t: [case(t(2), t(3))])

wrong_inputs(outer, (lambda t: case(t(2, 2), t(2)), RuntimeError, "outer: expected 1-D tensors"))


ger = outer


def _affine(input: Any, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    if product.dtype.category < 2:
        beta, alpha = int(beta), int(alpha)  # of integers an integer
    product = product if alpha == 1 else product * alpha
    return product if beta == 0 else (input if beta == 1 else input * beta) + product


def check_factors(name: str, x: Tensor, beta: Any, alpha: Any) -> None:
    """Refuse fractions of integers."""
    if x.dtype.category < 2 and (isinstance(beta, float) or isinstance(alpha, float)):
        problem = f"of integers beta and alpha are whole numbers, got {beta} and {alpha}"
        raise DTypeError(message(name, problem, hint="convert the tensors with .float()"))


@older_forms("beta", "alpha")
@composite(halves="alike", autocast="low", out=True)
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """$\\beta x + \\alpha A B$ for matrices.

    >>> import genesis
    >>> genesis.addmm(genesis.ones(1), genesis.ones(1, 2), genesis.ones(2, 1))
    tensor([[3.]])
    """
    check_factors("addmm", mat1, beta, alpha)
    return _affine(input, mm(mat1, mat2), beta, alpha)


samples(addmm, lambda t: [case(t(2, 4), t(2, 3), t(3, 4)), case(t(4), t(2, 3), t(3, 4), beta=0.5, alpha=2.0)])


@older_forms("beta", "alpha")
@composite(halves="alike", autocast="low:gpu own:cpu", out=True)
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """$\\beta x + \\alpha A v$ for a matrix and a vector.

    >>> import genesis
    >>> genesis.addmv(genesis.ones(1), genesis.ones(1, 2), genesis.ones(2))
    tensor([3.])
    """
    return _affine(input, mv(mat, vec), beta, alpha)


samples(addmv, lambda t: [case(t(2), t(2, 3), t(3))])


@older_forms("beta", "alpha")
@composite(halves="alike", autocast="low", out=True)
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """$\\beta x + \\alpha A_i B_i$ for batches of matrices.

    >>> import genesis
    >>> genesis.baddbmm(genesis.ones(1), genesis.ones(1, 1, 2), genesis.ones(1, 2, 1))
    tensor([[[3.]]])
    """
    return _affine(input, bmm(batch1, batch2), beta, alpha)


samples(baddbmm, lambda t: [case(t(2, 2, 4), t(2, 2, 3), t(2, 3, 4))])

__all__ = [
    "addmm",
    "addmv",
    "baddbmm",
    "bmm",
    "dot",
    "ger",
    "matmul",
    "mm",
    "mv",
    "outer",
    "vdot",
]
