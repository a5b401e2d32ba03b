"""What the ops of linear algebra share: their kind, what they refuse, and matrices from triangles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec
from genesis.base.errors import ArgumentError, ArgumentValueError, DTypeError, LinAlgError, ShapeError, message
from genesis.core.call.kind import Kind, Rule, as_it_is
from genesis.core.call.op import Op
from genesis.core.call.out import write_out
from genesis.core.graph.tensor import Tensor, known_values
from genesis.ops.creation.sequences import eye

INT32 = np.dtype(np.int32)


class Factorization(Kind):
    """Of each of a batch of matrices: what LAPACK computes of it. More samples are a larger batch."""

    packed = True

    def batch(self, op: Op) -> Rule | None:
        return as_it_is if len(op.tensors) == 1 else None


FACTORIZATION = Factorization("factorization")


def real_of(dtype: Any) -> Any:
    """The real dtype of the same precision."""
    return {"c8": np.dtype("f4"), "c16": np.dtype("f8")}.get(dtype.str[1:], dtype)


def complex_of(dtype: Any) -> Any:
    """The complex dtype of the same precision."""
    return {"f4": np.dtype("c8"), "f8": np.dtype("c16")}.get(dtype.str[1:], dtype)


def check_matrix(name: str, x: Any, square: bool = False, what: str = "input") -> None:
    """Refuse what is no batch of (square) matrices of float32, float64 or their complex kin."""
    if not isinstance(x, Tensor):
        raise ArgumentError(message(name, f"{what}: expected a tensor, got {type(x).__name__}"))
    check_precise(name, x, what)
    if x.ndim < 2:
        raise ShapeError(message(name, f"{what} must have at least 2 dimensions, it has {x.ndim}", [(what, x._spec())]))
    if square and x.shape[-1] != x.shape[-2]:
        sizes = f"{x.shape[-2]} by {x.shape[-1]}"
        raise ShapeError(
            message(name, f"{what} must be batches of square matrices, they are {sizes}", [(what, x._spec())])
        )


def one_square(name: str, what: str = "A") -> Any:
    """The `prepare` of an op of one square matrix."""

    def prepare(input: Tensor, *rest: Any) -> Any:
        check_matrix(name, input, True, what)
        return (input, *rest)

    return prepare


def check_precise(name: str, x: Tensor, what: str = "input") -> None:
    """Refuse integers, and floats of 16 bits."""
    if x.dtype.category < 2:
        raise DTypeError(message(name, f"{what} must be floating or complex, it is {x.dtype}", hint="x.double()"))
    if x.dtype.itemsize == 2:
        raise DTypeError(message(name, f"{x.dtype} has too few digits for this", [(what, x._spec())], "x.float()"))


def check_same(name: str, **tensors: Tensor) -> None:
    """Refuse operands of several dtypes."""
    kinds = [x.dtype for x in tensors.values()]
    if any(k is not kinds[0] for k in kinds):
        raise DTypeError(
            message(
                name, f"dtypes differ, {' and '.join(map(str, kinds))}", [(k, x._spec()) for k, x in tensors.items()]
            )
        )


def check_system(name: str, a: Tensor, b: Tensor) -> None:
    """Refuse matrices A and B of $AX = B$ that do not fit."""
    check_matrix(name, a, True, "A")
    check_matrix(name, b, what="B")
    check_same(name, A=a, B=b)
    if a.shape[-1] != b.shape[-2]:
        problem = f"A has {a.shape[-1]} rows, B {b.shape[-2]}"
        raise ShapeError(message(name, problem, [("A", a._spec()), ("B", b._spec())]))


def broadcast_batches(name: str, a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    """The common shape of the batches of two matrices."""
    try:
        return np.broadcast_shapes(tuple(a[:-2]), tuple(b[:-2]))
    except ValueError:
        raise ShapeError(message(name, f"batch sizes differ, {list(a[:-2])} and {list(b[:-2])}")) from None


def refuse_info(name: str, info: Tensor, what: str) -> None:
    """Raise for the first matrix of the batch whose number is not zero; where values are not known, nothing."""
    infos = known_values(info)
    if infos is None or not infos.any():
        return
    index = tuple(np.argwhere(infos)[0].tolist())
    at = f"matrix {index if len(index) > 1 else index[0]} of the batch: " if index else ""
    raise LinAlgError(message(name, f"{at}{what.format(int(infos[index]))}"))


def square_info(input: Spec) -> Spec:
    """The specs of a number for each matrix."""
    return Spec(input.shape[:-2], INT32, input.device)


def fresh(x: Spec) -> Spec:
    """The same shape and dtype, contiguous."""
    return Spec(x.shape, x.dtype, x.device)


def half_diagonal(x: Tensor) -> Tensor:
    """The matrix with half its diagonal."""
    return x - 0.5 * diagonal_part(x)  # type: ignore[no-any-return]


def diagonal_part(x: Tensor) -> Tensor:
    """The matrix with nothing but its diagonal."""
    return x.diagonal(0, -2, -1).diag_embed()  # type: ignore[attr-defined, no-any-return]


def fitted(g: Tensor, shape: Sequence[int]) -> Tensor:
    """A gradient summed over the batches that were broadcast."""
    from genesis.ops.shapes.expand import sum_to

    return g if tuple(g.shape) == tuple(shape) else sum_to(g, shape)


def in_front_of(b: Any, operands: Sequence[Tensor], own: Sequence[int], *rest: Any) -> Any:
    """Operands with batches, in front of ``own`` dimensions of each: the hidden dimension is one more."""
    filled = [b.spread(x, batched) for x, batched in zip(operands, b.batched, strict=True)]
    batches = max([x.ndim - 1 - n for x, n in zip(filled, own, strict=True)])
    return b.run(*[b.padded(x, True, batches + n) for x, n in zip(filled, own, strict=True)], *rest)


def results_out(name: str, results: Any, out: Any) -> Any:
    """Put several results into a tuple of tensors."""
    if out is None:
        return results
    if not isinstance(out, tuple | list) or len(out) != len(results):
        raise ArgumentValueError(message(name, f"out= must be {len(results)} tensors"))
    kind = type(results)
    return kind(*[write_out(name, r, o) for r, o in zip(results, out, strict=True)])


def regular(t: Any, *shape: int) -> Tensor:
    """A sample with a large diagonal, which has an inverse."""
    x: Tensor = t(*shape)
    return (x + 6 * eye(x.shape[-1], dtype=x.dtype)).detach().requires_grad_(x.requires_grad)  # type: ignore[no-any-return]
