"""Jacobians, Hessians and their products, by the names and conventions of PyTorch's ``torch.autograd.functional``.

Inputs and outputs are a tensor or a tuple of tensors; results have one entry for each. `genesis.func` has the same as
functions of functions. ``strict=True`` makes an input that an output does not depend on an error; ``create_graph=True``
keeps the results differentiable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from genesis.autograd.func.derivatives import check_tangent
from genesis.autograd.func.derivatives import jvp as _forward
from genesis.autograd.func.jacobians import jacfwd
from genesis.autograd.gradients import grad
from genesis.base.errors import ArgumentError, ArgumentValueError, GraphError, ShapeError, message
from genesis.core.call.refusal import explain_all
from genesis.core.graph.boundary import inside_copy
from genesis.core.graph.modes import enable_grad
from genesis.core.graph.tensor import Tensor
from genesis.ops.shapes.join import stack

Function = Callable[..., Any]


def _tuple(name: str, what: str, value: Any) -> tuple[tuple[Tensor, ...], bool]:
    """A tuple of tensors, and whether it was one already."""
    given = isinstance(value, tuple | list)
    items = tuple(value) if given else (value,)
    for i, x in enumerate(items):
        if not isinstance(x, Tensor):
            raise ArgumentError(
                message(name, f"{what} must be a tensor or a tuple of tensors, {what}[{i}] is {type(x).__name__}")
            )
    return items, given


def _ran(name: str, func: Function, inputs: Any) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...], bool, bool]:
    xs, many_in = _tuple(name, "inputs", inputs)
    inside = tuple(inside_copy(x) for x in xs)
    ys, many_out = _tuple(name, "the outputs of the function", func(*inside))
    return inside, ys, many_in, many_out


def _one(values: Sequence[Any], many: bool) -> Any:
    return tuple(values) if many else values[0]


def _settled(
    name: str, values: Sequence[Any], xs: Sequence[Tensor], create_graph: bool, strict: bool, what: str
) -> list[Tensor]:
    """Gradients: zeros where there are none (with ``strict`` an error), without history unless it was asked for."""
    gradients = []
    for i, (g, x) in enumerate(zip(values, xs, strict=True)):
        if g is None and strict:
            raise GraphError(
                message(
                    name, f"the {what} does not depend on input {i}, and strict=True", [(f"inputs[{i}]", x._spec())]
                )
            )
        if strict and create_graph and g._node is None:
            raise GraphError(
                message(
                    name,
                    f"the derivative by input {i} is constant, and strict=True with create_graph=True asks for one "
                    "with a history",
                    [(f"inputs[{i}]", x._spec())],
                )
            )
        g = x.detach().new_zeros(x.shape) if g is None else g  # noqa: PLW2901
        gradients.append(g if create_graph else g.detach())
    return gradients


def _plain(values: Sequence[Tensor], create_graph: bool) -> list[Tensor]:
    return [v if create_graph else v.detach() for v in values]


def _vectors(name: str, v: Any, like: Sequence[Tensor], many: bool, what: str) -> tuple[Tensor, ...]:
    """The vector of a product; may be left out where there is one element."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise GraphError(
                message(
                    name,
                    f"v may be left out only where the {what} is one element",
                    [(what, ", ".join(str(x._spec()) for x in like))],
                )
            )
        return (like[0].detach().new_ones(like[0].shape),)
    vs, _ = _tuple(name, "v", v)
    if len(vs) != len(like):
        raise GraphError(message(name, f"v has {len(vs)} tensors, the {what} {len(like)}"))
    for i, (t, x) in enumerate(zip(vs, like, strict=True)):
        if tuple(t.shape) != tuple(x.shape):
            raise ShapeError(message(name, f"v[{i}] has shape {list(t.shape)}, the {what} {list(x.shape)}"))
    return vs


def _grad(ys: Sequence[Tensor], xs: Sequence[Tensor], vs: Sequence[Tensor], create_graph: bool) -> list[Any]:
    pairs = [(y, v) for y, v in zip(ys, vs, strict=True) if y.requires_grad]
    if not pairs:
        return [None] * len(xs)
    return list(
        grad(
            [y for y, _ in pairs],
            xs,
            [v for _, v in pairs],
            retain_graph=True,
            create_graph=create_graph,
            allow_unused=True,
        )
    )


def vjp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """(outputs, $v^T J$).

    >>> import genesis
    >>> genesis.autograd.functional.vjp(lambda x: x ** 2, genesis.tensor([3.0]), genesis.tensor([1.0]))
    (tensor([9.]), tensor([6.]))
    """
    with enable_grad():
        xs, ys, many_in, many_out = _ran("vjp", func, inputs)
        gs = _settled(
            "vjp",
            _grad(ys, xs, _vectors("vjp", v, ys, many_out, "output"), create_graph),
            xs,
            create_graph,
            strict,
            "output",
        )
    return _one(_plain(ys, create_graph), many_out), _one(gs, many_in)


def jvp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """(outputs, $J v$), in forward mode.

    >>> import genesis
    >>> genesis.autograd.functional.jvp(lambda x: x ** 2, genesis.tensor([3.0]), genesis.tensor([1.0]))
    (tensor([9.]), tensor([6.]))
    """
    xs, many_in = _tuple("jvp", "inputs", inputs)
    vs = _vectors("jvp", v, xs, many_in, "input")
    many_out = [False]

    def flat(*args: Tensor) -> Any:
        ys, many_out[0] = _tuple("jvp", "the outputs of the function", func(*args))
        return ys

    for i, (x, t) in enumerate(zip(xs, vs, strict=True)):
        check_tangent("jvp", lambda i=i: f"inputs[{i}]", x, t)
    with enable_grad():
        points = tuple(inside_copy(x) for x in xs) if create_graph else xs
        ys, pushed = _forward(flat, points, vs, strict=strict)
    if strict and create_graph and any(t._node is None for t in pushed):
        raise GraphError(
            message(
                "jvp", "the derivative is constant, and strict=True with create_graph=True asks for one with a history"
            )
        )
    return _one(_plain(ys, create_graph), many_out[0]), _one(_plain(pushed, create_graph), many_out[0])


def jacobian(
    func: Function,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """$\\partial f_i / \\partial x_j$, of shape (\\*output, \\*input); a tuple for each output, and in it one for each
    input, where there are several.

    Args:
        vectorize: all rows at once, by `vmap`
        strategy: "reverse-mode" (a row for each output element) or "forward-mode" (a column for each input element;
            needs ``vectorize``)

    >>> import genesis
    >>> genesis.autograd.functional.jacobian(lambda x: x ** 2, genesis.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if strategy not in ("reverse-mode", "forward-mode"):
        raise ArgumentValueError(
            message("jacobian", f"strategy is {strategy!r}", hint="'reverse-mode' or 'forward-mode'")
        )
    if strategy == "forward-mode":
        return _forward_jacobian(func, inputs, create_graph, strict, vectorize)
    with enable_grad():
        xs, ys, many_in, many_out = _ran("jacobian", func, inputs)
        rows = [_rows(y, xs, create_graph, strict, vectorize, i) for i, y in enumerate(ys)]
    return _one([_one(row, many_in) for row in rows], many_out)


def _rows(
    y: Tensor, xs: Sequence[Tensor], create_graph: bool, strict: bool, vectorize: bool, number: int
) -> list[Tensor]:
    """The Jacobians of one output by every input."""
    count = y.numel()
    if strict and not y.requires_grad:
        raise GraphError(
            message(
                "jacobian", f"output {number} does not depend on the inputs, and strict=True", [("output", y._spec())]
            )
        )
    if not y.requires_grad or not count:
        return [x.detach().new_zeros(*y.shape, *x.shape) for x in xs]
    if vectorize:
        if strict:
            raise GraphError(
                message("jacobian", "strict=True and vectorize=True do not go together", hint="vectorize=False")
            )
        basis = y.detach().new_zeros(count, count)
        basis.diagonal().fill_(1)
        gs = grad(
            y,
            xs,
            basis.reshape(count, *y.shape),
            retain_graph=True,
            create_graph=create_graph,
            allow_unused=True,
            is_grads_batched=True,
        )
        return [
            x.detach().new_zeros(*y.shape, *x.shape)
            if g is None
            else _kept(g, create_graph).reshape(*y.shape, *x.shape)
            for g, x in zip(gs, xs, strict=True)
        ]
    rows = []
    for i in range(count):
        seed = y.detach().new_zeros(count)
        seed[i] = 1
        gs = _grad([y], xs, [seed.reshape(y.shape)], create_graph)
        rows.append(_settled("jacobian", gs, xs, create_graph, strict, f"output {number}"))
    return [stack([row[j] for row in rows]).reshape(*y.shape, *x.shape) for j, x in enumerate(xs)]


def _kept(g: Tensor, create_graph: bool) -> Tensor:
    return g if create_graph else g.detach()


def _forward_jacobian(func: Function, inputs: Any, create_graph: bool, strict: bool, vectorize: bool) -> Any:
    if strict:
        raise GraphError(
            message("jacobian", "strict=True is not supported in forward mode", hint="strategy='reverse-mode'")
        )
    if not vectorize:
        raise ArgumentValueError(
            message("jacobian", "forward mode computes all columns at once", hint="vectorize=True")
        )
    xs, many_in = _tuple("jacobian", "inputs", inputs)
    many_out = [False]

    def flat(*args: Tensor) -> Any:
        ys, many_out[0] = _tuple("jacobian", "the outputs of the function", func(*args))
        return ys

    with enable_grad():
        points = tuple(inside_copy(x) for x in xs) if create_graph else xs
        jacobians = jacfwd(flat, tuple(range(len(xs))))(*points)
    return _one([_one([_kept(g, create_graph) for g in row], many_in) for row in jacobians], many_out[0])


def hessian(
    func: Function,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """$\\partial^2 f / \\partial x_i \\partial x_j$ of a function with one output element; for several inputs a tuple
    of tuples.

    >>> import genesis
    >>> genesis.autograd.functional.hessian(lambda x: (x ** 3).sum(), genesis.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    xs, many_in = _tuple("hessian", "inputs", inputs)

    def gradient(*args: Tensor) -> Any:
        points = tuple(inside_copy(x) for x in args)
        (y,), _ = _tuple("hessian", "the output of the function", func(*points))
        _check_scalar("hessian", y)
        return tuple(
            _settled(
                "hessian", _grad([y], points, [y.detach().new_ones(y.shape)], True), points, True, strict, "output"
            )
        )

    with enable_grad():
        blocks = jacobian(gradient, xs, create_graph, strict, vectorize, outer_jacobian_strategy)
    return _one([_one(row, many_in) for row in blocks], many_in)


def _check_scalar(name: str, y: Tensor) -> None:
    if y.numel() != 1:
        raise ShapeError(
            message(
                name,
                f"the function must return one element, it returned shape {list(y.shape)}",
                hint="reduce it, or use jacobian of the gradient",
            )
        )


def vhp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """(output, $v^T H$), reverse over reverse.

    >>> import genesis
    >>> genesis.autograd.functional.vhp(lambda x: (x ** 3).sum(), genesis.tensor([1.0, 2.0]), genesis.tensor([1.0, 1.0]))
    (tensor(9.), tensor([ 6., 12.]))
    """
    with enable_grad():
        xs, (y, *more), many_in, _ = _ran("vhp", func, inputs)
        if more:
            raise ArgumentError(message("vhp", "the function must return one tensor"))
        _check_scalar("vhp", y)
        vs = _vectors("vhp", v, xs, many_in, "input")
        first = _settled("vhp", _grad([y], xs, [y.detach().new_ones(y.shape)], True), xs, True, strict, "output")
        products = _settled("vhp", _grad(first, xs, vs, create_graph), xs, create_graph, strict, "gradient")
    return _kept(y, create_graph), _one(products, many_in)


def hvp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """(output, $H v$); the Hessian is symmetric, so this is `vhp` (and `genesis.func.hvp` is forward over reverse, with
    less memory).

    >>> import genesis
    >>> genesis.autograd.functional.hvp(lambda x: (x ** 3).sum(), genesis.tensor([1.0, 2.0]), genesis.tensor([1.0, 1.0]))
    (tensor(9.), tensor([ 6., 12.]))
    """
    return vhp(func, inputs, v, create_graph, strict)


explain_all(globals(), "vjp", "jvp", "jacobian", "hessian", "vhp", "hvp")

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
