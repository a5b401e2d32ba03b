"""The linear map that a function's derivative is: as a function of tangents, and the transpose of a linear one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from genesis.autograd.func.derivatives import (
    Chosen,
    check_function,
    check_tangent,
    end_scope,
    jvp,
    leaf_name,
    name_of,
    or_zeros,
    released,
    tensors_of,
    tracked_outside,
    vjp,
)
from genesis.base.errors import ArgumentError, GraphError, message
from genesis.base.pytree import tree_flatten, tree_unflatten
from genesis.core.call.refusal import explain_all
from genesis.core.graph import engine
from genesis.core.graph.boundary import inside_copy
from genesis.core.graph.generator import default_generator
from genesis.core.graph.lost import BLOCKS
from genesis.core.graph.modes import enable_grad, grad_mode, no_grad
from genesis.core.graph.tensor import Tensor, wrap
from genesis.core.layers import duals as duals  # ops act on dual arrays from here on


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """The value of a function at ``primals``, and the linear function $\\dot x \\mapsto J \\dot x$, which does not run
    it again.

    (A function with a `no_grad` block does run again: as in `jvp` the block stops gradients, but not tangents, which
    `linearize` gets from gradients.)

    >>> import genesis
    >>> y, push = genesis.func.linearize(genesis.sin, genesis.tensor([0.0]))
    >>> push(genesis.tensor([2.0])), push(genesis.tensor([3.0]))
    (tensor([2.]), tensor([3.]))
    """
    check_function("linearize", func)
    chosen = Chosen("linearize", func, primals, {}, tuple(range(len(primals))))
    outer, blocks, state = grad_mode.get(), BLOCKS[0], default_generator.get_state()
    with enable_grad():
        inside = [inside_copy(x) for x in chosen.leaves]
        outs, structure = tensors_of("linearize", chosen.call(inside))
        unrecorded = BLOCKS[0] != blocks
        edges = [x._node for x in inside]
        keep = outer and tracked_outside(outs, edges)
        roots = [y for y in outs if y._node is not None]
        seeds = [y._zeros(tuple(y.shape), y._array.dtype).requires_grad_() for y in roots]
        pulled = (
            engine.run(
                [y._node for y in roots], seeds, keep_graph=True, create_graph=True, inputs=edges, accumulate=False
            )
            if roots
            else []
        )

    def jvp_fn(*tangents: Any) -> Any:
        given, given_structure = tree_flatten(tangents)
        if given_structure != chosen.structure:
            raise ArgumentError(
                message(
                    "linearize",
                    "the tangents differ in structure from the primals",
                    [("primals", chosen.structure), ("tangents", given_structure)],
                )
            )
        for i, (x, t) in enumerate(zip(inside, given, strict=True)):
            check_tangent("linearize", functools.partial(leaf_name, func, primals, {}, i), x, t)
        if unrecorded:
            return _pushed_again(func, primals, tangents, state)
        pairs = (
            [(g, t) for g, t in zip(pulled, given, strict=True) if g is not None and g._node is not None]
            if roots
            else []
        )
        pushed: list[Any] = [None] * len(roots)
        if pairs:
            follow = grad_mode.get() and (keep or any(t._node is not None for t in given))
            pushed = engine.run(
                [g._node for g, _ in pairs],
                [t for _, t in pairs],
                keep_graph=True,
                create_graph=follow,
                inputs=[u._node for u in seeds],
                accumulate=False,
            )
        rest = iter(pushed)
        results = [None if y._node is None else next(rest) for y in outs]
        return tree_unflatten(or_zeros(outs, results), structure)

    end_scope([*edges, *[u._node for u in seeds]])
    return tree_unflatten([released(y, keep) for y in outs], structure), jvp_fn


def _pushed_again(func: Callable[..., Any], primals: Any, tangents: Any, state: Tensor) -> Any:
    """The tangents of the results by running the function, with the random numbers that it drew first."""
    now = default_generator.get_state()
    default_generator.set_state(state)
    try:
        return jvp(func, primals, tangents)[1]
    finally:
        default_generator.set_state(now)


def linear_transpose(func: Callable[..., Any], *primals: Any) -> Callable[..., Any]:
    """The transpose $y \\mapsto A^T y$ of a linear function $x \\mapsto A x$; ``primals`` give the shapes and dtypes of
    its arguments only.

    Raises:
        RuntimeError: the function is not linear: it is not zero at zero, or at a random point not the product with its
            derivative

    >>> import genesis
    >>> push_back = genesis.func.linear_transpose(lambda x: x[1:] - x[:-1], genesis.ones(3))
    >>> push_back(genesis.tensor([1.0, 10.0]))
    (tensor([-1., -9., 10.]),)
    """
    check_function("linear_transpose", func)
    chosen = Chosen("linear_transpose", func, primals, {}, tuple(range(len(primals))))
    zeros = tree_unflatten([x.detach().new_zeros(x.shape) for x in chosen.leaves], chosen.structure)
    out, pull = vjp(func, *zeros)
    for y in tree_flatten(out)[0]:
        if bool((y != 0).any()):
            raise GraphError(
                message(
                    "linear_transpose",
                    f"{name_of(func)} is not linear: it is not zero at zero",
                    hint="for other functions take vjp at a point",
                )
            )
    _check_linear(func, chosen, out, pull)
    return pull


def _check_linear(func: Callable[..., Any], chosen: Chosen, out: Any, pull: Callable[..., Any]) -> None:
    """$\\langle v, f(x) \\rangle = \\langle A^T v, x \\rangle$ for random x and v."""
    draws = np.random.default_rng(0)
    outs, structure = tensors_of("linear_transpose", out)
    xs, vs = (
        [wrap(draws.standard_normal(tuple(y.shape)).astype(y._array.dtype)) for y in group]
        for group in (chosen.leaves, outs)
    )
    with no_grad():
        ys = tensors_of("linear_transpose", func(*tree_unflatten(xs, chosen.structure)))[0]
        pulled = tree_flatten(pull(tree_unflatten(vs, structure)))[0]
        left, right = ([(a * b).sum().item() for a, b in zip(*pair, strict=True)] for pair in ((vs, ys), (pulled, xs)))
        size = sum(
            [float((a * b).abs().sum()) for pair in ((vs, ys), (pulled, xs)) for a, b in zip(*pair, strict=True)]
        )
    if abs(sum(left) - sum(right)) > 1e-3 * size:
        raise GraphError(
            message(
                "linear_transpose",
                f"{name_of(func)} is not linear: at a random point it is not the product with its derivative at zero",
                hint="for other functions take vjp at a point",
            )
        )


explain_all(globals(), "linearize", "linear_transpose")
