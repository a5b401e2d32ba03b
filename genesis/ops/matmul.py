"""Products of matrices and tensors. 16-bit floats are multiplied in float32 and rounded once."""

from __future__ import annotations

import math
import string
from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.arrays.protocol import Array
from genesis.arrays.spec import Spec
from genesis.base import dtypes
from genesis.base.blas import one_thread, product
from genesis.base.errors import ArgumentError, DTypeError, ShapeError, message
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.dispatch import HALVES
from genesis.core.call.strides import packed
from genesis.core.call.kinds import case, composite, contraction, fails, in_front
from genesis.core.graph.tensor import Tensor, wrap
from genesis.ops.shape import sum_to

_F32 = np.dtype(np.float32)


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
        return matmul(_rows(input).t(), g.reshape(-1))
    if len(other_shape) == 2 and input.ndim > 2:  # one product over all batches instead of one each and a sum
        return matmul(_rows(input).t(), _rows(g))
    return _fitted(matmul(input.mT, g), other_shape)


def _rows(x: Any) -> Any:
    """All leading dimensions as one (counted, not -1: a last dimension of size 0 would leave it open)."""
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def _fitted(g: Tensor, shape: Sequence[int]) -> Tensor:
    return g if g._array.shape == shape else sum_to(g, shape)


def _matmul_batch(b: Any, x: Tensor, y: Tensor) -> Tensor:
    """One matrix times many vectors is one product of matrices; the rest is as in every contraction."""
    if b.batched == [False, True] and y.ndim == 2 and x.ndim <= 2:
        return matmul(y, x.mT if x.ndim == 2 else x)
    return in_front(b, x, y)


def _linear_of_others(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    out = matmul(input, weight.mT if weight.ndim == 2 else weight)
    return out if bias is None else out + bias


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
        _infer_matmul(_spec(input), _spec(other))
    if kind in HALVES:
        return product(input.astype(_F32), other.astype(_F32)).astype(kind)
    return _rows_times(input, other) if input.ndim > 2 and other.ndim == 2 else product(input, other)


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


def _rows_times(a: Any, b: Any) -> Any:
    """Batches of rows times one matrix, all rows at once: NumPy would multiply batch by batch."""
    if not a.flags.c_contiguous:
        return packed(product(a, b))
    return product(a.reshape(math.prod(a.shape[:-1]), a.shape[-1]), b).reshape(*a.shape[:-1], b.shape[-1])


def _spec(x: Any) -> Spec:
    return Spec(x.shape, x.dtype)


def _rmatmul(self: Tensor, other: Any) -> Any:
    from genesis.ops.create import as_tensor

    return matmul(as_tensor(other), self) if isinstance(other, np.ndarray) else NotImplemented


Tensor.__rmatmul__ = _rmatmul


def _matmul_operator(self: Tensor, other: Any) -> Tensor:
    if isinstance(other, np.ndarray):
        return matmul(self, wrap(other))
    return matmul(self, other) if isinstance(other, Tensor) else NotImplemented


Tensor.__matmul__ = _matmul_operator


def _ranks(name: str, *pairs: tuple[Tensor, int]) -> None:
    for x, ndim in pairs:
        if not isinstance(x, Tensor):
            raise ArgumentError(message(name, f"expected a tensor, got {type(x).__name__}"))
        if x.ndim != ndim:
            raise ShapeError(
                message(
                    name, f"expected {ndim}-D tensors, got {x.ndim}-D", [("operand", x._spec())], "matmul takes any"
                )
            )


def _strict_product(name: str, left: int, right: int, doc: str, sample: Any) -> Any:
    def product(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
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

    product.__name__ = product.__qualname__ = name
    product.__doc__ = doc
    bad = (lambda t: case(t(*[2] * left), t(2, 2, 2, 2)), RuntimeError, f"{name}: expected {right}-D tensors, got 4-D")
    return composite(samples=sample, autocast="low", fails=fails(bad))(product)


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
""", lambda t: [case(t(2, 3), t(3))])  # fmt: skip
dot = _strict_product("dot", 1, 1, """Dot product of two vectors, $\\\\sum_i x_i y_i$.

>>> import genesis
>>> genesis.dot(genesis.tensor([1., 2.]), genesis.tensor([3., 4.]))
tensor(11.)
""", lambda t: [case(t(3), t(3))])  # fmt: skip


@composite(halves="alike", dtypes="fc")
def vdot(input: Tensor, other: Tensor) -> Tensor:
    """Dot product with the first vector conjugated.

    >>> import genesis
    >>> genesis.vdot(genesis.tensor([1., 2.]), genesis.tensor([3., 4.]))
    tensor(11.)
    """
    return dot(input.conj(), other)


samples(vdot, lambda t: [case(t(3), t(3))])


@composite()
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


@composite(halves="alike")
def inner(input: Tensor, other: Tensor) -> Tensor:
    """Products summed over the last dimensions.

    >>> import genesis
    >>> genesis.inner(genesis.tensor([1., 2.]), genesis.tensor([3., 4.]))
    tensor(11.)
    """
    if not input.ndim or not other.ndim:
        return input * other
    return tensordot(input, other, ([-1], [-1]))


samples(inner, lambda t: [case(t(2, 3), t(4, 3)), case(t(3), t(3)), case(t(), t(2))])


def _affine(input: Any, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    if not product.is_floating_point() and not product.is_complex():
        beta, alpha = int(beta), int(alpha)  # of integers an integer
    product = product if alpha == 1 else product * alpha
    return product if beta == 0 else (input if beta == 1 else input * beta) + product


@composite(halves="alike", autocast="low")
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """$\\beta x + \\alpha A B$ for matrices.

    >>> import genesis
    >>> genesis.addmm(genesis.ones(1), genesis.ones(1, 2), genesis.ones(2, 1))
    tensor([[3.]])
    """
    return _affine(input, mm(mat1, mat2), beta, alpha)


samples(addmm, lambda t: [case(t(2, 4), t(2, 3), t(3, 4)), case(t(4), t(2, 3), t(3, 4), beta=0.5, alpha=2.0)])


@composite(halves="alike", autocast="low")
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """$\\beta x + \\alpha A v$ for a matrix and a vector.

    >>> import genesis
    >>> genesis.addmv(genesis.ones(1), genesis.ones(1, 2), genesis.ones(2))
    tensor([3.])
    """
    return _affine(input, mv(mat, vec), beta, alpha)


samples(addmv, lambda t: [case(t(2), t(2, 3), t(3))])


@composite(halves="alike", autocast="low")
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """$\\beta x + \\alpha A_i B_i$ for batches of matrices.

    >>> import genesis
    >>> genesis.baddbmm(genesis.ones(1), genesis.ones(1, 1, 2), genesis.ones(1, 2, 1))
    tensor([[[3.]]])
    """
    return _affine(input, bmm(batch1, batch2), beta, alpha)


samples(baddbmm, lambda t: [case(t(2, 2, 4), t(2, 2, 3), t(2, 3, 4))])


# ---- linear


def _infer_linear(input: Spec, weight: Spec, bias: Spec | None) -> Spec:
    named = [("input", input), ("weight", weight)] + ([("bias", bias)] if bias is not None else [])
    if not 1 <= len(weight.shape) <= 2 or not input.shape:
        raise ShapeError(message("linear", "input must be at least 1-D and weight 1-D or 2-D", named))
    if input.shape[-1] != weight.shape[-1]:
        raise ShapeError(
            message(
                "linear",
                f"input has {input.shape[-1]} features, weight {weight.shape[-1]}",
                named,
                "weight is (out_features, in_features)",
            )
        )
    same_dtype("linear", *[s for s in (input, weight, bias) if s is not None])
    shape = (*input.shape[:-1], *weight.shape[:-1])
    if bias is not None and bias.shape not in ((shape[-1],) if shape else (), (1,), ()):
        raise ShapeError(
            message(
                "linear", f"bias has shape {list(bias.shape)}, the output {shape[-1] if shape else 1} features", named
            )
        )
    return Spec(shape, input.dtype, input.device)


@contraction(
    {"input": lambda g, other: linear(other, g), "other": lambda g, input: matmul(input, g)},
    method=False,
    dtypes="fc",
    decompose=lambda input, other: matmul(input.mT, other),
    infer=lambda input, other: Spec((input.shape[1], other.shape[1]), input.dtype, input.device),
    torch_name="",
    autocast="low",
)
def matmul_tn(input: Array, other: Array) -> Any:
    """$X^T Y$ of two matrices with one number of rows; the gradient of `linear` for its weight, without a view on the
    way.

    >>> import genesis
    >>> from importlib import import_module
    >>> import_module("genesis.ops.matmul").matmul_tn(genesis.ones(2, 1), genesis.ones(2, 1))
    tensor([[2.]])
    """
    if input.dtype in HALVES:
        return product(input.T.astype(_F32), other.astype(_F32)).astype(input.dtype)
    if input.shape[0] == 1 == other.shape[0]:  # one sample: NumPy's product takes four times as long
        return input.T * other
    return product(input.T, other)


samples(matmul_tn, lambda t: [case(t(3, 2), t(3, 4))])


def _linear_weight(g: Any, input: Any, weight_shape: Any) -> Any:
    if len(weight_shape) == 1:
        return _rows(input * g.unsqueeze(-1)).sum(0)
    if g.ndim == 2:
        return matmul_tn(g, input)
    return matmul_tn(_rows(g), _rows(input))


def _linear_bias(g: Any, bias_shape: Any) -> Any:
    return (
        g.sum(0)
        if g.ndim == 2 and len(bias_shape) == 1 and bias_shape[0] == g._array.shape[1]
        else sum_to(g, bias_shape)
    )


@contraction(
    {
        "input": lambda g, weight: matmul(g, weight) if weight.ndim == 2 else g.unsqueeze(-1) * weight,
        "weight": _linear_weight,
        "bias": _linear_bias,
    },
    core=(1, None, None),
    added="bias",
    decompose=_linear_of_others,
    infer=_infer_linear,
    autocast="low",
    dtypes="fc",
    method=False,
    torch_name="nn.functional.linear",
)
def linear(input: Array, weight: Array, bias: Array | None = None) -> Any:
    """$x W^T + b$, with weight of shape (out_features, in_features).

    Raises:
        RuntimeError: sizes or dtypes that do not fit

    >>> import genesis
    >>> genesis.nn.functional.linear(genesis.ones(2), genesis.ones(1, 2), genesis.ones(1))
    tensor([3.])
    """
    kind = input.dtype
    if kind is not weight.dtype or (bias is not None and (bias.dtype is not kind or bias.shape != weight.shape[:-1])):
        _infer_linear(_spec(input), _spec(weight), None if bias is None else _spec(bias))
    if kind in HALVES:
        out = product(input.astype(_F32), weight.T.astype(_F32))
        return (out if bias is None else out + bias.astype(_F32)).astype(kind)
    out = _rows_times(input, weight.T) if input.ndim > 2 and weight.ndim == 2 else product(input, weight.T)
    if bias is not None:
        out = np.add(out, bias, out=out) if out.__class__ is np.ndarray else out + bias
    return out


samples(
    linear,
    lambda t: [
        case(t(2, 3), t(4, 3), t(4)),
        case(t(3), t(4, 3)),
        case(t(2, 2, 3), t(4, 3), t(4)),
        case(t(0, 3), t(2, 3), t(2)),
        case(t(2, 2, 0), t(3, 0), t(3)),
    ],
)

wrong_inputs(
    linear,
    (lambda t: case(t(2, 3), t(4, 5)), RuntimeError, "linear: input has 3 features, weight 5"),
    (lambda t: case(t(2, 3), t(4, 3), t(5)), RuntimeError, "linear: bias has shape [5], the output 4 features"),
)


@composite(halves="alike", method=False, torch_name="nn.functional.bilinear")
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """$x_1^T W_k x_2 + b_k$.

    >>> import genesis
    >>> genesis.nn.functional.bilinear(genesis.ones(1, 2), genesis.ones(1, 3), genesis.ones(1, 2, 3))
    tensor([[6.]])
    """
    out = einsum("...i,kij,...j->...k", input1, weight, input2)
    return out if bias is None else out + bias


samples(bilinear, lambda t: [case(t(2, 3), t(2, 4), t(5, 3, 4), t(5))])


# ---- einsum


def _parse_einsum(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """Subscripts of the operands and of the result, ellipses spelled out."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ShapeError(message("einsum", f"{equation!r} names {len(terms)} operands, {len(ranks)} were given"))
    spare = [c for c in string.ascii_letters if c not in equation]
    wide = 0
    for i, (term, rank) in enumerate(zip(terms, ranks, strict=True)):
        if "..." in term:
            wide = max(wide, rank - len(term) + 3)
        elif len(term) != rank:
            raise ShapeError(message("einsum", f"operand {i} has {rank} dimensions, {term!r} names {len(term)}"))
    dots = "".join(spare[:wide])
    full = [
        term.replace("...", dots[len(dots) - (rank - len(term) + 3) :] if rank - len(term) + 3 else "")
        for term, rank in zip(terms, ranks, strict=True)
    ]
    if arrow:
        result = right.replace("...", dots)
    else:
        joined = "".join(terms).replace("...", "")
        result = dots + "".join(sorted(c for c in set(joined) if joined.count(c) == 1))
    unknown = set(result) - set("".join(full))
    if unknown:
        raise ShapeError(message("einsum", f"the result names {sorted(unknown)}, which no operand has"))
    return full, result


def _einsum_sizes(terms: Sequence[str], shapes: Sequence[Sequence[int]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        for c, n in zip(term, shape, strict=True):
            if found.get(c, 1) != n and 1 not in (found.get(c, 1), n):
                raise ShapeError(message("einsum", f"sizes for {c!r} differ, {found[c]} and {n}"))
            found[c] = max(found.get(c, 1), n) if n else 0
    return found


def _einsum_prepare(operands: Any, terms: Any, result: Any) -> tuple[Any, ...]:
    return list(operands), terms, result


def _einsum_rule(g: Any, operands: Any, operands_shapes: Any, terms: Any, result: Any) -> Any:
    """The gradient of one operand is an einsum of g with all the others; what g cannot name is broadcast, repeats are a
    diagonal.
    """
    grads = []
    sizes = _einsum_sizes(terms, operands_shapes)
    for i, (term, shape) in enumerate(zip(terms, operands_shapes, strict=True)):
        if not operands[i].requires_grad:
            grads.append(None)
            continue
        others = [x for j, x in enumerate(operands) if j != i]
        names = [t for j, t in enumerate(terms) if j != i]
        unique = "".join(dict.fromkeys(term))
        known = set(result).union(*names) if names else set(result)
        part = "".join(c for c in unique if c in known)
        gx = einsum_terms([g, *others], [result, *names], part)
        for place, c in enumerate(unique):
            if c not in known:
                gx = gx.unsqueeze(place)
        gx = gx.expand([sizes[c] for c in unique])
        gx = sum_to(gx, [shape[term.index(c)] for c in unique])
        grads.append(_onto_diagonal(gx, unique, term))
    return grads


def _onto_diagonal(gx: Tensor, unique: str, term: str) -> Tensor:
    for place, c in enumerate(term):
        if term.index(c) != place:
            first = unique.index(c)
            gx = gx.diag_embed(0, first, -1).movedim(-1, min(place, gx.ndim))
            unique = unique[:place] + c + unique[place:]
    return gx


def _infer_einsum(operands: Sequence[Spec], terms: Any, result: Any) -> Spec:
    sizes = _einsum_sizes(terms, [x.shape for x in operands])
    same_dtype("einsum", *operands)
    return Spec(tuple(sizes[c] for c in result), operands[0].dtype, operands[0].device)


def _einsum_batch(b: Any, operands: Sequence[Tensor], terms: Sequence[str], result: str) -> Any:
    hidden = next(c for c in string.ascii_letters if not any(c in term for term in terms))
    return b.run(
        operands, [hidden + term if f else term for term, f in zip(terms, b.batched, strict=True)], hidden + result
    )


@contraction(
    {"operands": _einsum_rule},
    batch=_einsum_batch,
    infer=_infer_einsum,
    prepare=_einsum_prepare,
    dtypes="f",
    method=False,
    torch_name="",
    autocast="low",
)
def einsum_terms(operands: Sequence[Array], terms: Sequence[str], result: str) -> Any:
    """`einsum` with its equation taken apart; what `einsum` calls.

    >>> import genesis
    >>> genesis.einsum("i,i->", genesis.ones(2), genesis.ones(2))
    tensor(2.)
    """
    kind = operands[0].dtype
    if any(x.dtype is not kind for x in operands):
        same_dtype("einsum", *[_spec(x) for x in operands])
    arrays = [x.astype(_F32) for x in operands] if kind in HALVES else list(operands)
    _einsum_sizes(terms, [x.shape for x in arrays])
    equation = ",".join(terms) + "->" + result
    with one_thread():
        out = np.einsum(equation, *arrays, optimize=len(arrays) > 1)
    return packed(np.array(out, kind, copy=True) if out.base is not None or out.dtype is not kind else out)


samples(einsum_terms, lambda t: [case([t(2, 3), t(3, 4)], ["ij", "jk"], "ik")])


@composite(halves="alike", method=False, dtypes="f", autocast="low")
def einsum(equation: str, *operands: Any) -> Tensor:
    """Sum of products over the indices that an equation does not keep (Einstein's convention).

    Each letter is a dimension, ``...`` any number of broadcast ones; without ``->`` the result has the letters that
    occur once, in alphabetical order. A letter repeated in one operand takes its diagonal.

    Raises:
        RuntimeError: an equation that does not fit the operands

    >>> import genesis
    >>> genesis.einsum("ij,j->i", genesis.tensor([[1., 2.], [3., 4.]]), genesis.tensor([1., 1.]))
    tensor([3., 7.])
    """
    parts = list(operands[0]) if len(operands) == 1 and isinstance(operands[0], list | tuple) else list(operands)
    terms, result = _parse_einsum(equation, [x.ndim for x in parts])
    return einsum_terms(parts, terms, result)


samples(
    einsum,
    lambda t: [
        case("ij,jk->ik", t(2, 3), t(3, 4)),
        case("bij,bjk", t(2, 2, 3), t(2, 3, 2)),
        case("ii", t(3, 3)),
        case("ij->ji", t(2, 3)),
        case("i,j,k->ijk", t(2), t(3), t(2)),
        case("...ij,...jk", t(2, 2, 3), t(3, 2)),
        case("ij->", t(2, 3)),
        case("ii->i", t(3, 3)),
    ],
)

wrong_inputs(
    einsum,
    (lambda t: case("ij,jk->ik", t(2, 3), t(4, 2)), RuntimeError, "einsum: sizes for 'j' differ, 3 and 4"),
    (lambda t: case("ij->ik", t(2, 3)), RuntimeError, "einsum: the result names ['k']"),
    (lambda t: case("ij", t(2)), RuntimeError, "einsum: operand 0 has 1 dimensions, 'ij' names 2"),
)


@composite(halves="alike", method=False)
def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    """Product summed over dimensions: the last ``dims`` of ``a`` and first of ``b``, or two lists of them.

    >>> import genesis
    >>> genesis.tensordot(genesis.ones(2, 3), genesis.ones(3, 2), 1)
    tensor([[3., 3.],
            [3., 3.]])
    """
    left, right = (
        (list(range(a.ndim - dims, a.ndim)), list(range(dims)))
        if isinstance(dims, int)
        else (list(dims[0]), list(dims[1]))
    )
    left, right = [d % a.ndim for d in left], [d % b.ndim for d in right]
    if [a.shape[d] for d in left] != [b.shape[d] for d in right]:
        raise ShapeError(
            message(
                "tensordot",
                f"sizes of the summed dims differ, {[a.shape[d] for d in left]} and {[b.shape[d] for d in right]}",
            )
        )
    keep_a, keep_b = [d for d in range(a.ndim) if d not in left], [d for d in range(b.ndim) if d not in right]
    inner = math.prod([a.shape[d] for d in left])
    x = a.permute(keep_a + left).reshape([math.prod([a.shape[d] for d in keep_a]), inner])
    y = b.permute(right + keep_b).reshape([inner, math.prod([b.shape[d] for d in keep_b])])
    return matmul(x, y).reshape([a.shape[d] for d in keep_a] + [b.shape[d] for d in keep_b])


samples(
    tensordot, lambda t: [case(t(2, 3, 4), t(3, 4, 2)), case(t(2, 3), t(3, 2), 1), case(t(2, 3), t(2, 4), ([0], [0]))]
)


@composite()
def kron(input: Tensor, other: Tensor) -> Tensor:
    """Kronecker product.

    >>> import genesis
    >>> genesis.kron(genesis.tensor([1., 2.]), genesis.tensor([1., 10.]))
    tensor([ 1., 10.,  2., 20.])
    """
    n = max(input.ndim, other.ndim)
    a, b = [1] * (n - input.ndim) + list(input.shape), [1] * (n - other.ndim) + list(other.shape)
    x = input.reshape([m for size in a for m in (size, 1)])
    y = other.reshape([m for size in b for m in (1, size)])
    return (x * y).reshape([p * q for p, q in zip(a, b, strict=True)])


samples(kron, lambda t: [case(t(2, 2), t(2, 3)), case(t(2), t(3))])


@composite(halves="wide")
def trace(input: Tensor) -> Tensor:
    """Sum of the diagonal of a matrix.

    Raises:
        RuntimeError: not a matrix

    >>> import genesis
    >>> genesis.trace(genesis.eye(3))
    tensor(3.)
    """
    if input.ndim != 2:
        raise ShapeError(message("trace", f"expected a matrix, got {input.ndim}-D", [("input", input._spec())]))
    return input.diagonal().sum()


samples(trace, lambda t: [case(t(3, 3))])

wrong_inputs(trace, (lambda t: case(t(3)), RuntimeError, "trace: expected a matrix, got 1-D"))


@composite(halves="wide")
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """Cross product of vectors of three elements along ``dim`` (None: the first dimension of size 3).

    Raises:
        RuntimeError: another size

    >>> import genesis
    >>> genesis.cross(genesis.tensor([1., 0., 0.]), genesis.tensor([0., 1., 0.]))
    tensor([0., 0., 1.])
    """
    d = next((i for i, n in enumerate(input.shape) if n == 3), -1) if dim is None else dim
    if input.shape[d] != 3 or other.shape[d] != 3:
        raise ShapeError(
            message(
                "cross",
                f"dim {d} must have size 3, it has {input.shape[d]}",
                [("input", input._spec()), ("other", other._spec())],
            )
        )
    a, b = input.roll(-1, d), other.roll(-1, d)
    return a * other.roll(-2, d) - input.roll(-2, d) * b


samples(cross, lambda t: [case(t(2, 3), t(2, 3)), case(t(3, 2), t(3, 2), 0)])

wrong_inputs(cross, (lambda t: case(t(2, 3), t(2, 3), 0), RuntimeError, "cross: dim 0 must have size 3, it has 2"))


@composite(halves="alike")
def matrix_power(input: Tensor, n: int) -> Tensor:
    """A square matrix multiplied ``n`` times with itself, by repeated squaring.

    >>> import genesis
    >>> genesis.matrix_power(genesis.tensor([[1., 1.], [0., 1.]]), 3)
    tensor([[1., 3.],
            [0., 1.]])
    """
    if n < 0:
        raise ShapeError(message("matrix_power", f"n must not be negative, got {n}"))
    from genesis.ops.create import eye

    result: Tensor | None = None
    square = input
    while n:
        if n & 1:
            result = square if result is None else matmul(result, square)
        n >>= 1
        square = matmul(square, square) if n else square
    return (
        eye(input.shape[-1], dtype=input.dtype, device=input.device).expand(input.shape).clone()
        if result is None
        else result
    )


samples(matrix_power, lambda t: [case(t(2, 2), 3), case(t(2, 2), 0)])


@composite(halves="wide")
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0) -> Tensor:
    """Distances in the p-norm between all pairs of rows.

    >>> import genesis
    >>> genesis.cdist(genesis.zeros(1, 2), genesis.tensor([[3., 4.]]))
    tensor([[5.]])
    """
    from genesis.ops.reduce import norm

    return norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p, -1)


samples(cdist, lambda t: [case(t(3, 2), t(4, 2)), case(t(2, 3, 2), t(2, 4, 2), 1.0)])


__all__ = [
    "addmm",
    "addmv",
    "baddbmm",
    "bmm",
    "cdist",
    "cross",
    "dot",
    "einsum",
    "ger",
    "inner",
    "kron",
    "matmul",
    "matrix_power",
    "mm",
    "mv",
    "outer",
    "tensordot",
    "trace",
    "vdot",
]
