"""Derivatives of functions: reverse mode by the engine, forward mode by dual arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from genesis.base.errors import ArgumentError, ArgumentValueError, DTypeError, GraphError, ShapeError, message
from genesis.base.pytree import TreeDef, tree_flatten, tree_unflatten
from genesis.core.call.refusal import explain_all, switch
from genesis.core.call.writes import same_device
from genesis.core.graph import engine
from genesis.core.graph.boundary import before_leaving, dual_in, inside_copy, primal_of, tangent_of
from genesis.core.graph.levels import Level, opened
from genesis.core.graph.modes import enable_grad, grad_mode
from genesis.core.graph.node import AccumulateGrad
from genesis.core.graph.seeds import seed_for
from genesis.core.graph.tensor import Tensor
from genesis.core.layers import duals as duals  # ops act on dual arrays from here on

Argnums = int | tuple[int, ...]


def name_of(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def leaf_name(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], index: int) -> str:
    """What a user calls one of the leaves of the arguments: ``x``, ``params['w']``."""
    from genesis.autograd.checking.calls import argument_names, leaf_names, resolve  # for errors only

    pieces = [*args, *kwargs.values()]
    titles = argument_names(function, resolve(function)[1], args, kwargs)
    return [n for title, piece in zip(titles, pieces, strict=True) for n in leaf_names(title, tree_flatten(piece)[1])][
        index
    ]


def check_function(name: str, function: Any) -> None:
    if not callable(function):
        raise ArgumentError(
            message(name, f"expected a function, got {type(function).__name__}", hint=f"{name}(f)(x), not {name}(f(x))")
        )


# ---- arguments and results


class Chosen:
    """The arguments by which a function is differentiated: their leaves, and how to call it with others instead."""

    def __init__(
        self, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], argnums: Argnums
    ) -> None:
        if not isinstance(argnums, int | tuple | list):
            raise ArgumentError(
                message(name, f"argnums must be an integer or a tuple of integers, got {type(argnums).__name__}")
            )
        numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        if not numbers:
            raise ArgumentValueError(message(name, "argnums is empty", hint="name at least one argument"))
        for n in numbers:
            if not isinstance(n, int) or not -len(args) <= n < len(args):
                raise ArgumentValueError(
                    message(name, f"argnums names argument {n}, {name_of(function)} was given {len(args)}")
                )
        self.name, self.function, self.args, self.kwargs = name, function, args, kwargs
        self.numbers = [n % len(args) for n in numbers]
        if len(set(self.numbers)) < len(self.numbers):
            raise ArgumentValueError(message(name, f"argnums names an argument twice: {argnums}"))
        self.single = isinstance(argnums, int)
        self.leaves, self.structure = tree_flatten(tuple(args[n] for n in self.numbers))
        for x in self.leaves:
            check_differentiable(name, x)

    def call(self, leaves: Sequence[Any]) -> Any:
        args = list(self.args)
        for n, value in zip(self.numbers, tree_unflatten(leaves, self.structure), strict=True):
            args[n] = value
        return self.function(*args, **self.kwargs)

    def put(self, leaves: Sequence[Any]) -> Any:
        """Results for the leaves, in the structure of the arguments."""
        tree = tree_unflatten(leaves, self.structure)
        return tree[0] if self.single else tree


def check_differentiable(name: str, x: Any) -> None:
    if not isinstance(x, Tensor):
        raise ArgumentError(
            message(
                name,
                f"can differentiate by tensors only, the argument holds {type(x).__name__} {x!r}",
                hint="choose other argnums, or pass a tensor",
            )
        )
    if not (x.is_floating_point() or x.is_complex()):
        raise DTypeError(
            message(
                name,
                f"can differentiate by floating and complex tensors only, got {x.dtype}",
                operands=[("argument", x._spec())],
                hint="x.float()",
            )
        )


def split_aux(name: str, result: Any, has_aux: bool) -> tuple[Any, Any]:
    if not switch(name, "has_aux", has_aux):
        return result, None
    if not (isinstance(result, tuple) and len(result) == 2):
        raise ArgumentError(
            message(
                name, f"with has_aux the function must return a pair (output, aux), it returned {type(result).__name__}"
            )
        )
    return result


def tensors_of(name: str, result: Any) -> tuple[list[Tensor], TreeDef]:
    leaves, structure = tree_flatten(result)
    for y in leaves:
        if not isinstance(y, Tensor):
            raise ArgumentError(
                message(name, f"the function must return tensors, it returned {type(y).__name__} {y!r}")
            )
    return leaves, structure


def tracked_outside(roots: Sequence[Tensor], own: Sequence[Any]) -> bool:
    """Whether these tensors depend on anything that requires grad besides those of ``own`` edges."""
    mine = set(own)
    seen: set[Any] = set()
    ahead = [y._node for y in roots if y._node is not None]
    while ahead:
        edge = ahead.pop()
        node = getattr(edge, "node", edge)
        if node in seen:
            continue
        seen.add(node)
        if node in mine:
            if node._edges:
                return True
            continue
        if node.is_leaf:
            if node.__class__ is not EndedArgument:
                return True
            continue
        ahead.extend([e for e in node._edges if e is not None])
    return False


class EndedArgument(AccumulateGrad):
    """The node of an argument of a transform that is over: nobody asks for its gradient any more, so what depends on
    it alone is a constant.
    """

    __slots__ = ()


def end_scope(edges: Sequence[Any]) -> None:
    for edge in edges:
        if edge.is_leaf:
            edge.__class__ = EndedArgument


def released(y: Any, keep: bool) -> Any:
    """A result, without the history that only the transform itself is interested in."""
    return y if keep or not isinstance(y, Tensor) or y._node is None else y._alias(None)


def _released_aux(aux: Any, outer: bool, edges: Sequence[Any]) -> Any:
    leaves, structure = tree_flatten(aux)
    return tree_unflatten(
        [released(a, outer and isinstance(a, Tensor) and tracked_outside([a], edges)) for a in leaves], structure
    )


def or_zeros(like: Sequence[Tensor], derivatives: Sequence[Tensor | None]) -> list[Tensor]:
    """Derivatives, zeros of the shape of what they belong to where there is none."""
    return [x.detach().new_zeros(x.shape) if d is None else d for x, d in zip(like, derivatives, strict=True)]


# ---- reverse mode


def grad(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """The gradient of a function with a scalar result, $x \\mapsto \\nabla f(x)$, as a function of the same arguments.

    Args:
        argnums: by which argument, or tuple of arguments; each may be a container of tensors
        has_aux: ``func`` returns ``(result, aux)``, the gradient function then ``(gradient, aux)``

    Raises:
        RuntimeError: the result is not one element, or an argument is not floating

    >>> import genesis
    >>> from genesis.func import grad
    >>> grad(lambda x: x ** 3)(genesis.tensor(2.0)), grad(grad(lambda x: x ** 3))(genesis.tensor(2.0))
    (tensor(12.), tensor(12.))
    """
    both = grad_and_value(func, argnums, has_aux, _name="grad")

    @functools.wraps(func)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        gradients, value = both(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients

    return gradient


def value_and_grad(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """`grad` that gives the value, too: ``(value, gradient)``, as in JAX and MLX.

    With ``has_aux`` it gives ``((value, aux), gradient)``. `grad_and_value` is the same in PyTorch's order.

    >>> import genesis
    >>> from genesis.func import value_and_grad
    >>> value_and_grad(lambda x: (x ** 2).sum())(genesis.tensor([1.0, 2.0]))
    (tensor(5.), tensor([2., 4.]))
    """
    both = grad_and_value(func, argnums, has_aux, _name="value_and_grad")

    @functools.wraps(func)
    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        gradients, value = both(*args, **kwargs)
        return value, gradients

    return value_and_gradient


def grad_and_value(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *, _name: str = "grad_and_value"
) -> Callable[..., Any]:
    """`grad` that gives the value, too: ``(gradient, value)``, as in PyTorch.

    With ``has_aux`` it gives ``(gradient, (value, aux))``.

    >>> import genesis
    >>> from genesis.func import grad_and_value
    >>> grad_and_value(lambda x: (x ** 2).sum())(genesis.tensor([1.0, 2.0]))
    (tensor([2., 4.]), tensor(5.))
    """
    check_function(_name, func)

    @functools.wraps(func)
    def gradient_and_value(*args: Any, **kwargs: Any) -> Any:
        chosen = Chosen(_name, func, args, kwargs, argnums)
        outer = grad_mode.get()
        with enable_grad():
            inside = [inside_copy(x) for x in chosen.leaves]
            value, aux = split_aux(_name, chosen.call(inside), has_aux)
            if not isinstance(value, Tensor) or value._array.size != 1 or value.ndim:
                raise ShapeError(
                    message(_name, f"the function must return a scalar tensor, it returned {_described(value)}",
                            hint="reduce it, f(x).sum(); for derivatives of several results use jacrev or vjp")
                )  # fmt: skip
            edges = [x._node for x in inside]
            keep = outer and tracked_outside([value], edges)
            gradients = [None] * len(inside)
            if value._node is not None:
                gradients = engine.run(
                    [value._node],
                    [seed_for(value, None)],
                    keep_graph=keep or has_aux,
                    create_graph=keep,
                    inputs=edges,
                    accumulate=False,
                )
        zeros = or_zeros(inside, gradients)
        aux, value = _released_aux(aux, outer, edges), released(value, keep)
        end_scope(edges)
        return chosen.put(zeros), (value, aux) if has_aux else value

    return gradient_and_value


def _described(value: Any) -> str:
    return f"shape {list(value.shape)}" if isinstance(value, Tensor) else type(value).__name__


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value of a function and its vector-Jacobian product $v \\mapsto v^T J$ at ``primals``.

    Returns: (output, vjp_fn), with ``has_aux`` (output, vjp_fn, aux); ``vjp_fn`` takes cotangents in the structure of
        the output and gives one gradient for each primal (the gradient itself where there is one primal). It may be
        called many times, also under `vmap`.

    >>> import genesis
    >>> y, pull = genesis.func.vjp(genesis.sin, genesis.tensor([0.0]))
    >>> pull(genesis.tensor([2.0]))
    (tensor([2.]),)
    """
    check_function("vjp", func)
    if not primals:
        raise ArgumentValueError(message("vjp", "there are no primals to differentiate by"))
    chosen = Chosen("vjp", func, primals, {}, tuple(range(len(primals))))
    outer = grad_mode.get()
    with enable_grad():
        inside = [inside_copy(x) for x in chosen.leaves]
        out, aux = split_aux("vjp", chosen.call(inside), has_aux)
    outs, structure = tensors_of("vjp", out)
    edges = [x._node for x in inside]
    outside = tracked_outside(outs, edges)
    keep = outer and outside

    def vjp_fn(cotangents: Any, *more: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        given = (cotangents, *more) if more else cotangents
        seeds, given_structure = tree_flatten(given)
        # cotangents one by one: for outputs in any sequence
        if given_structure != structure and not (more and len(seeds) == len(outs)):
            raise ArgumentError(
                message(
                    "vjp",
                    "the cotangents differ in structure from the output",
                    [("output", structure), ("cotangents", given_structure)],
                )
            )
        for i, (g, y) in enumerate(zip(seeds, outs, strict=True)):
            if not isinstance(g, Tensor) or tuple(g.shape) != tuple(y.shape):
                raise ShapeError(
                    message("vjp", f"cotangent {i} is {_described(g)}, output {i} has shape {list(y.shape)}")
                )
        follow = (
            grad_mode.get() and (outside or any(g._node is not None for g in seeds))
            if create_graph is None
            else create_graph
        )
        pairs = [(y, g) for y, g in zip(outs, seeds, strict=True) if y._node is not None]
        gradients: list[Any] = [None] * len(inside)
        if pairs:
            weights = [g if g._array.dtype is y._array.dtype else g.to(y._array.dtype) for y, g in pairs]
            gradients = engine.run(
                [y._node for y, _ in pairs],
                weights,
                keep_graph=retain_graph,
                create_graph=follow,
                inputs=edges,
                accumulate=False,
            )
        return chosen.put(or_zeros(inside, gradients))

    result = tree_unflatten([released(y, keep) for y in outs], structure)
    aux = _released_aux(aux, outer, edges)
    end_scope(edges)
    return (result, vjp_fn, aux) if has_aux else (result, vjp_fn)


# ---- forward mode


def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """The value of a function and its Jacobian-vector product $J \\dot x$ at ``primals`` along ``tangents``, in one
    forward pass.

    Args:
        primals, tangents: tuples of the same structure, shapes and dtypes
        strict: an output that does not depend on the inputs is an error, instead of a tangent of zeros

    Raises:
        RuntimeError: a tangent's shape or dtype is not its primal's

    >>> import genesis
    >>> genesis.func.jvp(genesis.sin, (genesis.tensor([0.0]),), (genesis.tensor([2.0]),))
    (tensor([0.]), tensor([2.]))
    """
    check_function("jvp", func)
    if not isinstance(primals, tuple | list) or not isinstance(tangents, tuple | list):
        raise ArgumentError(message("jvp", "primals and tangents must be tuples", hint="jvp(f, (x,), (t,))"))
    values, structure = tree_flatten(tuple(primals))
    given, given_structure = tree_flatten(tuple(tangents))
    if structure != given_structure:
        raise ArgumentError(
            message(
                "jvp",
                "primals and tangents differ in structure",
                [("primals", structure), ("tangents", given_structure)],
            )
        )
    for i, (x, t) in enumerate(zip(values, given, strict=True)):
        check_differentiable("jvp", x)
        check_tangent("jvp", functools.partial(leaf_name, func, tuple(primals), {}, i), x, t)
    with opened(Level(f"jvp of {name_of(func)}")) as level:
        number = level.number
        inside = [dual_in(x, t, number) for x, t in zip(values, given, strict=True)]
        out, aux = split_aux("jvp", func(*tree_unflatten(inside, structure)), has_aux)
        outs, shape = tensors_of("jvp", out)
        leaves, aux_shape = tree_flatten(aux)
        before_leaving([*outs, *leaves])
        pushed = [tangent_of(y, number) for y in outs]
        if strict and any(t is None for t in pushed):
            raise GraphError(
                message(
                    "jvp",
                    f"output {[t is None for t in pushed].index(True)} does not depend on the inputs, and strict=True",
                )
            )
        results = [primal_of(y, number) for y in outs]
        aux = tree_unflatten([primal_of(a, number) if isinstance(a, Tensor) else a for a in leaves], aux_shape)
    pushed = or_zeros(results, pushed)
    answer = tree_unflatten(results, shape), tree_unflatten(pushed, shape)
    return (*answer, aux) if has_aux else answer


def check_tangent(name: str, title: Callable[[], str], x: Tensor, t: Any) -> None:
    """Refuse a tangent that does not fit; ``title`` says what the user calls the primal."""
    if not isinstance(t, Tensor):
        raise ArgumentError(message(name, f"the tangent of `{title()}` is {type(t).__name__}, expected a tensor"))
    if tuple(t._array.shape) != tuple(x._array.shape):
        raise ShapeError(
            message(
                name,
                f"the tangent of `{title()}` has shape {list(t.shape)}, its primal {list(x.shape)}",
                [("primal", x._spec()), ("tangent", t._spec())],
            )
        )
    if t._array.dtype is not x._array.dtype:
        raise DTypeError(
            message(
                name,
                f"the tangent of `{title()}` is {t.dtype}, its primal {x.dtype}",
                [("primal", x._spec()), ("tangent", t._spec())],
                "t.to(x.dtype)",
            )
        )
    same_device(name, x, t, "the primal is on {}, its tangent on {}")


explain_all(globals(), "grad", "grad_and_value", "value_and_grad", "vjp", "jvp")
