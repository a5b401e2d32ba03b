"""Functions that leave a value as it is and change its gradient.

    `stop_gradient`      the gradient ends here          `reverse_gradient`  the gradient comes out negated
    `straight_through`   forward f, backward identity    `scale_gradient`    multiplied
                                                         `clip_gradient`     limited, element by element or in norm

The value is the input's memory, not a copy. All but `stop_gradient` are differentiable twice.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from genesis.base.errors import ArgumentError, ArgumentValueError, DTypeError, ShapeError, message
from genesis.base.pytree import tree_flatten, tree_map
from genesis.core.call.refusal import explain_all
from genesis.core.functions.function import Function
from genesis.core.graph.modes import grad_mode
from genesis.core.graph.tensor import Tensor


def stop_gradient(x: Any) -> Any:
    """The same values without history; containers of tensors too, what is no tensor is returned as it is.

    Source: ``jax.lax.stop_gradient``, ``tf.stop_gradient``.

    >>> import genesis
    >>> x = genesis.tensor(3.0, requires_grad=True)
    >>> (x * genesis.stop_gradient(x)).backward(); x.grad
    tensor(3.)
    """
    return tree_map(lambda leaf: leaf.detach() if isinstance(leaf, Tensor) else leaf, x)


class StraightThrough(Function):
    """Output i's gradient is given to tensor argument i as it is."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Any:
        return inputs[-1]()  # computed in here, where nothing is recorded

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (*grads, *[None] * (len(ctx.needs_input_grad) - len(grads)))


def straight_through(f: Callable[..., Any]) -> Callable[..., Any]:
    """``f`` forward, the identity backward: for what has no useful derivative, rounding and quantization above all.

    With several arguments, the first result's gradient is given to the first tensor among them, the second's to the
    second. Tensors beyond the results (the scale in ``quantize(x, scale)``) and tensors that ``f`` captured get none.

    Raises:
        RuntimeError: a result has another shape than its argument, or a dtype without gradients
        TypeError: more results than tensor arguments, or a result that is no tensor

    Source: Y. Bengio, N. Léonard, A. Courville, "Estimating or propagating gradients through stochastic neurons", 2013;
    ``tf.grad_pass_through``.

    >>> import genesis
    >>> x = genesis.tensor([0.2, 1.7], requires_grad=True)
    >>> y = genesis.autograd.straight_through(genesis.round)(x)
    >>> y.detach(), genesis.autograd.grad((y ** 2).sum(), x)
    (tensor([0., 2.]), (tensor([0., 4.]),))
    """
    if not callable(f):
        raise ArgumentError(
            message("straight_through", f"expected a function, got {type(f).__name__}", hint="straight_through(f)(x)")
        )

    @functools.wraps(f)
    def passed(*args: Any, **kwargs: Any) -> Any:
        tensors = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, Tensor)]
        if not grad_mode.get():
            return f(*args, **kwargs)
        run = lambda: _fitting(f(*args, **kwargs), tensors)
        return StraightThrough.apply(*tensors, run)

    return passed


def _fitting(result: Any, tensors: list[Tensor]) -> Any:
    results = result if isinstance(result, tuple | list) else [result]
    if len(results) > len(tensors) or not all(isinstance(y, Tensor) for y in results):
        raise ArgumentError(
            message("straight_through", f"{len(results)} results for {len(tensors)} tensor arguments",
                    hint="each result needs a tensor argument that its gradient goes to")
        )  # fmt: skip
    for i, (y, x) in enumerate(zip(results, tensors, strict=False)):
        if x.requires_grad and not (y.is_floating_point() or y.is_complex()):
            raise DTypeError(
                message(
                    "straight_through",
                    f"result {i} has dtype {y.dtype}, which carries no gradient",
                    hint="return y.to(x.dtype)",
                )
            )
        if y.shape != x.shape:
            raise ShapeError(
                message("straight_through", f"result {i} has shape {list(y.shape)}, its argument has {list(x.shape)}",
                        [(f"argument {i}", x._spec()), (f"result {i}", y._spec())],
                        "a gradient can be handed through unchanged only between equal shapes")
            )  # fmt: skip
    return result


grad_pass_through = straight_through


class ScaleGradient(Function):
    """Forward ``x``, backward ``g * scale``."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: Any) -> Tensor:
        ctx.scale = None if isinstance(scale, Tensor) else scale
        if isinstance(scale, Tensor):
            ctx.save_for_backward(scale)
        return x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        scale = ctx.saved_tensors[0] if ctx.scale is None else ctx.scale
        return g * scale, None


def scale_gradient(x: Tensor, scale: float | Tensor) -> Tensor:
    """``x``, whose gradient is multiplied by ``scale``.

    Args:
        scale: a number, or a tensor that broadcasts to ``x``; it gets no gradient itself

    >>> import genesis
    >>> x = genesis.tensor(3.0, requires_grad=True)
    >>> genesis.autograd.scale_gradient(x, 0.5).backward(); x.grad
    tensor(0.5000)
    """
    _expect_tensor("scale_gradient", x)
    return ScaleGradient.apply(x, scale)


def reverse_gradient(x: Tensor, scale: float | Tensor = 1.0) -> Tensor:
    """``x``, whose gradient is multiplied by ``-scale``: what comes before it learns the opposite.

    Source: Y. Ganin, V. Lempitsky, "Unsupervised domain adaptation by backpropagation", 2015.

    >>> import genesis
    >>> x = genesis.tensor(3.0, requires_grad=True)
    >>> genesis.autograd.reverse_gradient(x).backward(); x.grad
    tensor(-1.)
    """
    _expect_tensor("reverse_gradient", x)
    return ScaleGradient.apply(x, -scale)


class ClipGradient(Function):
    """Forward ``x``, backward ``g`` within limits."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, low: Any, high: Any, max_norm: Any) -> Tensor:
        ctx.low, ctx.high, ctx.max_norm = low, high, max_norm
        return x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        if ctx.max_norm is not None:
            return g * (ctx.max_norm / g.norm().clamp(min=ctx.max_norm)), None, None, None
        return g.clamp(ctx.low, ctx.high), None, None, None


def clip_gradient(
    x: Tensor, low: float | None = None, high: float | None = None, *, max_norm: float | None = None
) -> Tensor:
    """``x``, whose gradient is limited: to ``[low, high]`` element by element, or to a Euclidean norm of at most
    ``max_norm``.

    Raises:
        ValueError: neither or both kinds of limit, ``low`` above ``high``, or ``max_norm`` not positive

    >>> import genesis
    >>> x = genesis.tensor([3.0, 4.0], requires_grad=True)
    >>> (genesis.autograd.clip_gradient(x, max_norm=1.0) ** 2).sum().backward(); x.grad
    tensor([0.6000, 0.8000])
    """
    _expect_tensor("clip_gradient", x)
    if (max_norm is None) == (low is None and high is None):
        raise ArgumentValueError(
            message("clip_gradient", "expected either low and high or max_norm", hint="clip_gradient(x, -1, 1)")
        )
    if low is not None and high is not None and low > high:
        raise ArgumentValueError(message("clip_gradient", f"low is {low}, above high, {high}"))
    if max_norm is not None and not max_norm > 0:
        raise ArgumentValueError(message("clip_gradient", f"max_norm is {max_norm}, expected a positive number"))
    return ClipGradient.apply(x, low, high, max_norm)


def _expect_tensor(name: str, x: Any) -> None:
    if not isinstance(x, Tensor):
        raise ArgumentError(message(name, f"expected a tensor, got {type(x).__name__}"))


explain_all(globals(), "scale_gradient", "reverse_gradient", "clip_gradient", "straight_through")
