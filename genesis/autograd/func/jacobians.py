"""Jacobians and Hessians: one derivative along every basis vector, all at once."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from genesis.arrays.memory import placed
from genesis.autograd.func.batches import vmap
from genesis.autograd.func.derivatives import Argnums, Chosen, check_function, grad, jvp, split_aux, tensors_of, vjp
from genesis.base.errors import ArgumentError, message
from genesis.base.pytree import tree_flatten, tree_unflatten
from genesis.core.call.refusal import explain_all
from genesis.core.graph.tensor import Tensor, wrap


def _basis(xs: Sequence[Tensor]) -> list[Tensor]:
    """For tensors of n elements together: n vectors, each one at another element; a tensor of (n, \\*shape) for each of
    them.
    """
    sizes = [math.prod(x.shape) for x in xs]
    total, start, vectors = sum(sizes), 0, []
    for x, size in zip(xs, sizes, strict=True):
        array = np.zeros((total, size), x._array.dtype)
        array[start + np.arange(size), np.arange(size)] = 1
        vectors.append(wrap(placed(array.reshape(total, *x.shape), x.device)))
        start += size
    return vectors


def _rows(g: Tensor, outs: Sequence[Tensor]) -> list[Tensor]:
    """(n, \\*in) as a Jacobian (\\*out, \\*in) for each output."""
    rows, start = [], 0
    for y in outs:
        size = math.prod(y.shape)
        rows.append(g.narrow(0, start, size).reshape(*y.shape, *g.shape[1:]))
        start += size
    return rows


def _columns(t: Tensor, ins: Sequence[Tensor]) -> list[Tensor]:
    """(n, \\*out) as a Jacobian (\\*out, \\*in) for each input."""
    columns, start = [], 0
    for x in ins:
        size = math.prod(x.shape)
        columns.append(t.narrow(0, start, size).movedim(0, -1).reshape(*t.shape[1:], *x.shape))
        start += size
    return columns


def jacrev(
    func: Callable[..., Any], argnums: Argnums = 0, *, has_aux: bool = False, chunk_size: int | None = None
) -> Callable[..., Any]:
    """The Jacobian of a function in reverse mode, a row for each element of the output: best for few outputs.

    $J_{ij} = \\partial f_i / \\partial x_j$, of shape (\\*output, \\*input); for containers a Jacobian for each pair,
    in the structure of the output, and in each the structure of the argument.

    Args:
        argnums: by which argument, or tuple of arguments
        has_aux: ``func`` returns ``(output, aux)``, the result then is ``(jacobian, aux)``
        chunk_size: at most so many rows at once, to save memory

    >>> import genesis
    >>> genesis.func.jacrev(lambda x: x ** 2)(genesis.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    check_function("jacrev", func)

    @functools.wraps(func)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        chosen = Chosen("jacrev", func, args, kwargs, argnums)
        aux: list[Any] = []

        def function(*leaves: Any) -> Any:
            out, extra = split_aux("jacrev", chosen.call(leaves), has_aux)
            return out, extra

        out, pull, extra = vjp(function, *chosen.leaves, has_aux=True)
        aux.append(extra)
        outs, structure = tensors_of("jacrev", out)
        basis = _basis(outs)
        if not basis or not basis[0].shape[0]:
            gradients: Any = [x.detach().new_zeros(0, *x.shape) for x in chosen.leaves]
        elif basis[0].shape[0] == 1:  # one row: a gradient
            gradients = [g.unsqueeze(0) for g in pull(tree_unflatten([v.squeeze(0) for v in basis], structure))]
        else:
            gradients = vmap(lambda *v: pull(tree_unflatten(list(v), structure)), chunk_size=chunk_size)(*basis)
        rows = [_rows(g, outs) for g in gradients]  # by input, then by output
        jacobians = tree_unflatten([chosen.put([r[i] for r in rows]) for i in range(len(outs))], structure)
        return (jacobians, aux[0]) if has_aux else jacobians

    return jacobian


def jacfwd(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """The Jacobian of a function in forward mode, a column for each element of the input: best for few inputs.

    The shapes and structures are those of `jacrev`.

    >>> import genesis
    >>> genesis.func.jacfwd(lambda x: x ** 2)(genesis.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    check_function("jacfwd", func)

    @functools.wraps(func)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        chosen = Chosen("jacfwd", func, args, kwargs, argnums)
        leaves = tuple(chosen.leaves)
        kept: list[Any] = []

        def function(*values: Any) -> Any:
            out, aux = split_aux("jacfwd", chosen.call(values), has_aux)
            kept[:] = [tree_flatten(out)[1]]
            return (tuple(tensors_of("jacfwd", out)[0]), aux)

        def push(*directions: Any) -> Any:
            values, pushed, aux = jvp(function, leaves, directions, has_aux=True)
            aux_leaves, aux_structure = tree_flatten(aux)
            kept.append(
                (
                    aux_structure,
                    [isinstance(a, Tensor) for a in aux_leaves],
                    [a for a in aux_leaves if not isinstance(a, Tensor)],
                )
            )
            return pushed, values, tuple(a for a in aux_leaves if isinstance(a, Tensor))

        basis = _basis(leaves)
        count = basis[0].shape[0] if basis else 0
        if not count:  # nothing to differentiate by
            values = tensors_of("jacfwd", split_aux("jacfwd", chosen.call(leaves), has_aux)[0])
            empty = [chosen.put([y.detach().new_zeros(*y.shape, *x.shape) for x in leaves]) for y in values[0]]
            return tree_unflatten(empty, values[1])
        pushed, _, extras = vmap(push, randomness=randomness, chunk_size=chunk_size)(*basis)
        columns = [_columns(t, leaves) for t in pushed]
        jacobians = tree_unflatten([chosen.put(c) for c in columns], kept[0])
        if not has_aux:
            return jacobians
        structure, flags, others = kept[1]
        tensors, rest = iter(extras), iter(others)
        return jacobians, tree_unflatten([next(tensors)[0] if f else next(rest) for f in flags], structure)

    return jacobian


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """The second derivatives of a function, forward over reverse: $H_{ij} = \\partial^2 f / \\partial x_i \\partial
    x_j$.

    >>> import genesis
    >>> genesis.func.hessian(lambda x: x[0] * x[1] ** 2)(genesis.tensor([1.0, 2.0]))
    tensor([[0., 4.],
            [4., 2.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


def hvp(func: Callable[..., Any], primals: Any, tangents: Any) -> Any:
    """The product of the Hessian of a scalar function with a vector, $H v$, without the Hessian: one pass forward over
    reverse.

    >>> import genesis
    >>> genesis.func.hvp(lambda x: x[0] * x[1] ** 2, (genesis.tensor([1.0, 2.0]),), (genesis.tensor([1.0, 0.0]),))
    tensor([0., 4.])
    """
    if not isinstance(primals, tuple) or not isinstance(tangents, tuple):
        raise ArgumentError(message("hvp", "primals and tangents must be tuples", hint="hvp(f, (x,), (v,))"))
    numbers: Argnums = 0 if len(primals) == 1 else tuple(range(len(primals)))
    return jvp(grad(func, numbers), primals, tangents)[1]


explain_all(globals(), "jacrev", "jacfwd", "hessian", "hvp")
