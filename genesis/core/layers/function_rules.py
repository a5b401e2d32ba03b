"""A user's `Function` inside transforms.

Forward mode:  ``jvp(ctx, *tangents)`` where the class has one; otherwise the tangent is derived from `backward`, by
transposing it
vmap:          ``vmap(info, in_dims, *args)`` where the class has one; otherwise `forward` and `backward` run on the whole batch, as any
               other code does. A forward that needs values (``x.numpy()``) is run for one sample after the other, with
               a warning
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from genesis.arrays.batched import Batched
from genesis.arrays.dual import Dual
from genesis.arrays.protocol import Layer, NeedsValues
from genesis.base.errors import ArgumentError, DTypeError, InplaceError, ShapeError, message
from genesis.base.pytree import tree_flatten, tree_unflatten
from genesis.core.graph.boundary import (
    Link,
    batch_in,
    batch_out,
    dual_in,
    for_all,
    inside_copy,
    layer_at,
    lift_all,
    primal_of,
    tangent_of,
)
from genesis.core.graph.levels import check_at_home, level_numbered
from genesis.core.graph.modes import enable_grad, grad_mode
from genesis.core.graph.tensor import Tensor
from genesis.core.layers import duals

if TYPE_CHECKING:
    from genesis.core.functions.function import Function

Apply = Callable[..., Any]


class VmapInfo(NamedTuple):
    """What a `Function.vmap` rule is told of the batch."""

    batch_size: int
    randomness: str


class Call(NamedTuple):
    """The call of a `Function` some of whose arguments have layers; ``plain(cls, args, kwargs)`` is what it is without."""

    cls: type[Function]
    plain: Apply
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    leaves: list[Any]
    structure: Any


def layers_of(leaves: Sequence[Any], kind: type[Layer] = Layer) -> Layer | None:
    """The outermost layer of a class among the arrays of tensors, at any depth."""
    top: Layer | None = None
    for x in leaves:
        array = x._array if isinstance(x, Tensor) else None
        while isinstance(array, Layer):
            if isinstance(array, kind):
                if top is None or array.level > top.level:
                    top = array
                break
            array = array.inner
    return top


def applied(cls: type[Function], plain: Apply, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``cls.apply`` on arguments some of which have layers; ``plain(cls, args, kwargs)`` is what it is without."""
    leaves, structure = tree_flatten((args, kwargs))
    top = layers_of(leaves)
    assert top is not None
    check_at_home(top, cls.__name__)
    call = Call(cls, plain, args, kwargs, leaves, structure)
    return next(rule(call, layer) for kind, rule in RULES.items() if (layer := layers_of(leaves, kind)) is not None)


def _in_forward_mode(call: Call, layer: Dual) -> Any:
    if call.cls.jvp is no_jvp:
        return derived(call.cls.apply, call.leaves, call.structure, layer.level)
    rule = lambda p, t, follow: _by_jvp(call.cls, p, t, call.structure, follow)  # noqa: E731
    return with_tangents(rule, call.leaves, layer.level)


def _in_vmap(call: Call, layer: Batched) -> Any:
    cls, number, size = call.cls, layer.level, layer.size_hidden
    if cls.vmap is not no_vmap:
        return _by_rule(cls, call.args, call.kwargs, number, size)
    again = tree_unflatten(lift_all(call.leaves), call.structure)
    try:
        return call.plain(cls, *again)
    except NeedsValues as refusal:
        if cls.generate_vmap_rule:
            raise
        return _one_by_one(cls, call.leaves, call.structure, number, size, refusal)


# How Functions act on arrays with a layer, for each class of layers. Where arguments have layers of several, the first
# one decides: under vmap tangents are batched as any values are, so forward mode goes first.
RULES: dict[type[Layer], Callable[[Call, Any], Any]] = {Dual: _in_forward_mode, Batched: _in_vmap}


def no_vmap(info: Any, in_dims: Any, *args: Any) -> Any:
    """Compute the function for a batch: ``vmap(info, in_dims, *args)`` returns ``(output, out_dims)``."""
    raise NotImplementedError("Function.vmap is not implemented: define a static vmap(info, in_dims, *args)")


def no_jvp(ctx: Any, *tangents: Any) -> Any:
    """The tangent of the result from the tangents of the arguments."""
    raise NotImplementedError("Function.jvp is not implemented: define a static jvp(ctx, *tangents)")


# ---- forward mode


def derived(call: Apply, leaves: list[Any], structure: Any, level: int) -> Any:
    """A function with a gradient rule, on dual arrays: its tangent is the rule's, transposed."""
    return with_tangents(lambda p, t, follow: _by_transposing(call, p, t, structure, follow), leaves, level)


def with_tangents(rule: Apply, leaves: list[Any], level: int) -> Any:
    """Take the arguments apart, let ``rule(primals, tangents, follow)`` give the result and its tangents, and put those
    together.
    """
    leaves, link = lift_all(leaves), Link()
    primals = [primal_of(x, level, link) if isinstance(x, Tensor) else x for x in leaves]
    tangents = [tangent_of(x, level, link) if isinstance(x, Tensor) else None for x in leaves]
    follow = grad_mode.get() and any(isinstance(x, Tensor) and x._node is not None for x in [*primals, *tangents])
    before = [x._version if isinstance(x, Tensor) else 0 for x in primals]
    out, pushed = rule(primals, tangents, follow)
    for x, count in zip(primals, before, strict=True):
        if isinstance(x, Tensor) and x._version != count:
            raise _wrote(x)
    outs, shape = tree_flatten(out)
    results = [
        y if t is None or not isinstance(y, Tensor) else dual_in(y, t, level, link=link)
        for y, t in zip(outs, pushed, strict=True)
    ]
    return tree_unflatten(results, shape)


def _wrote(x: Tensor) -> InplaceError:
    return InplaceError(
        message("jvp", "a Function wrote to one of its arguments in place, its tangent would be lost",
                operands=[("argument", x._spec())], hint="write to a clone() in forward, and return that")
    )  # fmt: skip


def _by_transposing(
    call: Apply, primals: list[Any], tangents: list[Any], structure: Any, follow: bool
) -> tuple[Any, list[Any]]:
    with enable_grad():
        inputs = [x if t is None else inside_copy(x) for x, t in zip(primals, tangents, strict=True)]
        args, kwargs = tree_unflatten(inputs, structure)
        try:
            out = call(*args, **kwargs)
        except InplaceError as error:
            raise _wrote(next(x for x, t in zip(primals, tangents, strict=True) if t is not None)) from error
        outs, shape = tree_flatten(out)
        tensors = [y for y in outs if isinstance(y, Tensor)]
        pairs = [(x, t) for x, t in zip(inputs, tangents, strict=True) if t is not None]
        rest = iter(duals.transpose(tuple(tensors), pairs, create_graph=follow))
    pushed = [next(rest) if isinstance(y, Tensor) else None for y in outs]
    if not follow:
        outs = [y._alias(None) if isinstance(y, Tensor) else y for y in outs]
    return tree_unflatten(outs, shape), pushed


def _by_jvp(
    cls: type[Function], primals: list[Any], tangents: list[Any], structure: Any, follow: bool
) -> tuple[Any, list[Any]]:
    args, kwargs = tree_unflatten(primals, structure)
    mode = grad_mode.get()
    try:
        grad_mode.set(follow)
        ctx = cls._ctx()
        ctx._begin((None,) * len(primals))
        ctx.__dict__["_for_forward"] = None
        out = cls.forward(*args, **kwargs) if cls._split else cls.forward(ctx, *args, **kwargs)
        if cls._split:
            cls.setup_context(ctx, args, out)  # type: ignore[attr-defined]
        kept = ctx.__dict__.pop("_for_forward")
        ctx._saved = ctx._saved if kept is None else kept
        ready = [_tangent_given(ctx, x, t) for x, t in zip(primals, tangents, strict=True)]
        given, named = tree_unflatten(ready, structure)
        pushed = cls.jvp(ctx, *given, *named.values())
    finally:
        grad_mode.set(mode)
    if follow:  # the value, with the history that `backward` gives it
        out = cls.apply(*args, **kwargs)
    outs = tree_flatten(out)[0]
    results = [pushed] if isinstance(pushed, Tensor) or pushed is None else tree_flatten(pushed)[0]
    if len(results) != len(outs):
        raise ArgumentError(message(f"{cls.__name__}.jvp", f"returned {len(results)} tangents for {len(outs)} results"))
    for i, (y, t) in enumerate(zip(outs, results, strict=True)):
        _check_pushed(cls, i, y, t)
    return out, results


def _tangent_given(ctx: Any, x: Any, t: Tensor | None) -> Any:
    if not isinstance(x, Tensor) or t is not None or not (x.is_floating_point() or x.is_complex()):
        return t
    return x._zeros(tuple(x._array.shape), x._array.dtype) if getattr(ctx, "materialize_grads", True) else None


def _check_pushed(cls: type[Function], index: int, y: Any, t: Any) -> None:
    if t is None:
        return
    if not isinstance(t, Tensor):
        raise ArgumentError(
            message(
                f"{cls.__name__}.jvp", f"the tangent of result {index} is {type(t).__name__}, expected a tensor or None"
            )
        )
    if tuple(t._array.shape) != tuple(y._array.shape):
        raise ShapeError(
            message(
                f"{cls.__name__}.jvp",
                f"the tangent of result {index} has shape {list(t.shape)}, the result {list(y.shape)}",
            )
        )
    if t._array.dtype is not y._array.dtype:
        raise DTypeError(
            message(f"{cls.__name__}.jvp", f"the tangent of result {index} is {t.dtype}, the result {y.dtype}")
        )


# ---- vmap


def _shown(leaves: list[Any], dims: Sequence[int | None], number: int, size: int, link: Link) -> list[Any]:
    """All leaves with the batch in sight, at these dimensions."""
    return [x if d is None else batch_out(x, d, number, size, link) for x, d in zip(leaves, dims, strict=True)]


def _dim_of(x: Any, number: int) -> int | None:
    """Where a leaf has its samples: where they were when it came into `vmap`, if nothing was done with it since."""
    layer = layer_at(x._array, number) if isinstance(x, Tensor) else None
    if layer is None:
        return None
    return layer.dim if layer is x._array else 0


def _by_rule(cls: type[Function], args: tuple[Any, ...], kwargs: dict[str, Any], number: int, size: int) -> Any:
    leaves, structure = tree_flatten(args)
    level, link = level_numbered(number), Link()
    leaves = [
        for_all(x, level, size) if isinstance(x, Tensor) and layer_at(x._array, number) is None else x for x in leaves
    ]
    dims = [_dim_of(x, number) for x in leaves]
    shown = _shown(leaves, dims, number, size, link)
    info = VmapInfo(size, level.randomness if level is not None else "error")
    result = cls.vmap(info, tree_unflatten(dims, structure), *tree_unflatten(shown, structure), **kwargs)
    if not (isinstance(result, tuple) and len(result) == 2):
        raise ArgumentError(
            message(f"{cls.__name__}.vmap", f"must return (output, out_dims), it returned {type(result).__name__}")
        )
    out, out_dims = result
    outs, shape = tree_flatten(out)
    out_dims_ = [out_dims] * len(outs) if isinstance(out_dims, int) or out_dims is None else list(out_dims)
    if len(out_dims_) != len(outs):
        raise ArgumentError(message(f"{cls.__name__}.vmap", f"{len(out_dims_)} out_dims for {len(outs)} results"))
    for y, d in zip(outs, out_dims_, strict=True):
        if d is not None and isinstance(y, Tensor) and (not -y.ndim <= d < y.ndim or y.shape[d] != size):
            raise ShapeError(
                message(
                    f"{cls.__name__}.vmap",
                    f"out_dims is {d}, a result has shape {list(y.shape)} and the batch {size} samples",
                )
            )
    return tree_unflatten(
        [
            y if d is None else batch_in(y, d % y.ndim, number, size, link=link)
            for y, d in zip(outs, out_dims_, strict=True)
        ],
        shape,
    )


_warned: set[type] = set()


def _one_by_one(
    cls: type[Function], leaves: list[Any], structure: Any, number: int, size: int, refusal: Exception
) -> Any:
    if cls not in _warned:
        _warned.add(cls)
        text = message(
            "vmap",
            f"{cls.__name__}.forward needs values ({str(refusal).splitlines()[0]}): it is run for one sample after "
            "the other",
            hint="write it in Genesis operations, or give the class a static vmap(info, in_dims, *args)",
        )
        warnings.warn(text, UserWarning, stacklevel=4)
    link, leaves = Link(), lift_all(leaves)
    batched = [isinstance(x, Tensor) and layer_at(x._array, number) is not None for x in leaves]
    shown = _shown(leaves, [0 if b else None for b in batched], number, size, link)
    results = []
    for i in range(size):
        args, kwargs = tree_unflatten([x[i] if b else x for x, b in zip(shown, batched, strict=True)], structure)
        results.append(cls.apply(*args, **kwargs))
    columns = [tree_flatten(r)[0] for r in results]
    shape = tree_flatten(results[0])[1]
    from genesis.core.layers.batches import stacked

    outs = [
        batch_in(stacked(cls.__name__, column), 0, number, size, link=link)
        if isinstance(column[0], Tensor)
        else column[0]
        for column in map(list, zip(*columns, strict=True))
    ]
    return tree_unflatten(outs, shape)
