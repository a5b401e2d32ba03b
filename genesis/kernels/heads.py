"""The loss of a last layer, some rows at a time (`genesis.ops.losses.heads`): made of ops, the same for arrays of any memory.

The gradients of a mean or a sum are those of the sum, times one number: they are computed with the loss, while the logits
are there, and scaled in the backward. Losses of rows have a factor each that is not known before: for these the logits are
computed again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from genesis.arrays.spec import Spec
from genesis.base import dtypes
from genesis.core.call.halves import F32, HALVES
from genesis.core.call.kernels import attach
from genesis.core.call.op import REGISTRY
from genesis.core.graph import engine
from genesis.core.graph.modes import enable_grad, no_grad
from genesis.core.graph.seeds import edge_of
from genesis.core.graph.tensor import Tensor, wrap
from genesis.ops.losses.classes import cross_entropy
from genesis.ops.pointwise.choice import where
from genesis.ops.products.linear import linear
from genesis.ops.shapes.join import cat

NAME = "linear_cross_entropy_by_rows"

# (total, left, right, adds): writes a product of matrices to an array, or adds it to that
AddProduct = Callable[[Any, Any, Any, bool], None]
# (logits, class indices, the index that does not count, the gradient of the mean): the mean of the losses, of 16-bit logits in
# float32, and the gradient of the logits; of None as a gradient only the first
MeanLoss = Callable[[Any, Any, int, Any], tuple[Any, Any]]


def attach_to(
    arrays: type, add_product: AddProduct, mean_loss: MeanLoss | None = None, wanted: Callable[[], bool] = lambda: True
) -> None:
    """Have the loss computed some rows at a time on arrays of a class, where that is wanted.

    Args:
        mean_loss: where a kernel does it, for logits of 16-bit floats, too
    """
    reduces = lambda *arguments: arguments[5] in ("mean", "sum") and wanted() and _fits(*arguments)  # noqa: E731
    lists = lambda *arguments: arguments[5] == "none" and wanted() and _fits(*arguments)  # noqa: E731
    reduced = attach(NAME, arrays, partial(_reduced, add_product, mean_loss), when=reduces, infer=_infer_reduced)
    reduced.alone = partial(_reduced_alone, mean_loss)
    reduced.backward(_scaled, reads=())
    listed = attach(NAME, arrays, _listed, when=lists, infer=_infer_listed)
    listed.backward(partial(_again, add_product), reads=("input", "linear_weight", "target", "linear_bias", "weight"))


def _fits(input: Any, linear_weight: Any, target: Any, linear_bias: Any, weight: Any, *_: Any) -> bool:
    kinds = {x.dtype for x in (input, linear_weight, linear_bias) if x is not None}
    return (
        input.ndim == 2 and input.size > 0 and target.shape == input.shape[:1] and target.dtype.kind in "iu"
        and linear_weight.ndim == 2 and linear_weight.size > 0 and linear_weight.shape[1:] == input.shape[1:]
        and len(kinds) == 1 and (input.dtype.char in "fd" or input.dtype in HALVES)
        and (linear_bias is None or linear_bias.shape == linear_weight.shape[:1])
        and (weight is None or (weight.shape == linear_weight.shape[:1] and weight.dtype == _of_loss(input)))
    )  # fmt: skip


def _of_loss(input: Any) -> Any:
    """The dtype of losses."""
    return F32 if input.dtype in HALVES else input.dtype


# ---- some rows


class _Head:
    """A last layer and its loss.

    Attributes:
        parts: the rows that are taken at a time
    """

    def __init__(
        self, input: Any, linear_weight: Any, target: Any, linear_bias: Any, weight: Any, ignored: int, smoothing: float,
        rows: int, kind: str, mean_loss: MeanLoss | None = None,
    ) -> None:  # fmt: skip
        self.dtype, self.input, self.target = dtypes.as_dtype(kind), wrap(input), wrap(target)
        self.loss_dtype = dtypes.from_numpy(_of_loss(input))
        self.linear_weight = wrap(linear_weight).to(self.dtype)
        self.linear_bias = None if linear_bias is None else wrap(linear_bias).to(self.dtype)
        self.weight, self.ignored, self.smoothing = None if weight is None else wrap(weight), ignored, smoothing
        self.mean_loss = mean_loss
        count = self.input.shape[0]
        self.parts = [slice(first, min(first + rows, count)) for first in range(0, count, rows)]

    def logits(self, part: slice) -> Tensor:
        return linear(self.input[part].to(self.dtype), self.linear_weight, self.linear_bias)

    def losses(self, part: slice, reduction: str) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        """The losses of some rows, and what gives the gradient of their logits from that of the losses."""
        logits = self.logits(part)
        logits = (logits.float() if logits._array.dtype in HALVES else logits).requires_grad_()
        with enable_grad():
            loss = cross_entropy(
                logits, self.target[part], self.weight, None, self.ignored, None, reduction, self.smoothing
            )
        start, end = edge_of(loss), edge_of(logits)

        def pull(g: Tensor) -> Tensor:
            (gradient,) = engine.run([start], [g.to(loss.dtype)], inputs=[end], accumulate=False)
            return gradient.to(self.dtype)  # type: ignore[union-attr, no-any-return]

        return loss.detach().to(self.loss_dtype), pull

    def total(self, part: slice, graded: bool = True) -> tuple[Tensor, Tensor | None]:
        """The sum of the losses of some rows, and the gradient of their logits, if that is asked for. A mean has kernels."""
        target = self.target[part]
        if self.weight is not None or self.smoothing:
            loss, pull = self.losses(part, "sum")
            return loss, pull(loss.new_ones(())) if graded else None
        count = (target != self.ignored).sum().to(self.loss_dtype)
        if self.mean_loss is None or self.dtype is dtypes.float64:
            loss, pull = self.losses(part, "mean")
            gradient = pull(count) if graded else None
        else:
            g = count._array if graded else None
            mean, of_logits = self.mean_loss(self.logits(part)._array, target._array, self.ignored, g)
            loss, gradient = wrap(mean), wrap(of_logits) if graded else None
        return where(count == 0, 0.0, loss * count), gradient

    def share(self, reduction: str, like: Tensor) -> Tensor:
        """What the sum of all losses is multiplied by: NaN where none counts."""
        if reduction == "sum":
            return like.new_ones(())
        counts = self.target != self.ignored
        if self.weight is None:
            return 1 / counts.sum().to(like.dtype)
        scales = self.weight[where(counts, self.target, 0)] * counts.to(like.dtype)
        return 1 / where(counts.any(), scales.sum(), 0.0)


def _reduced_alone(mean_loss: MeanLoss | None, input: Any, linear_weight: Any, target: Any, linear_bias: Any, weight: Any,
                   reduction: str, ignored: int, smoothing: float, rows: int, kind: str, *_: Any) -> Any:  # fmt: skip
    """The loss alone."""
    head = _Head(input, linear_weight, target, linear_bias, weight, ignored, smoothing, rows, kind, mean_loss)
    with no_grad():
        loss = sum([head.total(part, graded=False)[0] for part in head.parts])
        return (loss * head.share(reduction, loss))._array


def _reduced(add_product: AddProduct, mean_loss: MeanLoss | None, input: Any, linear_weight: Any, target: Any, linear_bias: Any,
             weight: Any, reduction: str, ignored: int, smoothing: float, rows: int, kind: str, sum_kind: str,
             *wanted: bool) -> Any:  # fmt: skip
    """The loss, and the gradients of the sum of the losses."""
    head = _Head(input, linear_weight, target, linear_bias, weight, ignored, smoothing, rows, kind, mean_loss)
    with no_grad():
        gradients, loss = _Gradients(add_product, head, sum_kind, wanted), 0
        for part in head.parts:
            some, of_logits = head.total(part)
            loss = loss + some
            gradients.add(part, of_logits)
        share = head.share(reduction, loss)
        return (loss * share)._array, (
            *gradients.arrays(), where(share.isfinite(), share, 0.0)._array, input
        )  # fmt: skip


class _Gradients:
    """The gradients of a last layer, some rows after the others.

    Args:
        wanted: of the input, the weight and the bias
    """

    def __init__(self, add_product: AddProduct, head: _Head, sum_kind: str, wanted: tuple[bool, ...]) -> None:
        own, bias = head.input, head.linear_bias
        self.add_product, self.head, self.sum_dtype, self.wanted = add_product, head, dtypes.as_dtype(sum_kind), wanted
        self.input = own.new_empty(own.shape) if wanted[0] else None
        self.weight: Tensor | None = None
        self.bias = bias.new_zeros(bias.shape, dtype=head.loss_dtype) if wanted[2] and bias is not None else None

    def add(self, part: slice, logits: Tensor) -> None:
        """Those of some rows, from the gradient of their logits."""
        if self.input is not None:
            self.input[part] = (logits @ self.head.linear_weight).to(self.input.dtype)
        if self.wanted[1]:
            input = self.head.input[part].to(logits.dtype)
            adds = self.weight is not None
            if self.weight is None:
                self.weight = input.new_empty((logits.shape[1], input.shape[1]), dtype=self.sum_dtype)
            self.add_product(self.weight._array, logits.t()._array, input._array, adds)
        if self.bias is not None:
            self.bias += logits.sum(0, dtype=self.bias.dtype)

    def arrays(self) -> tuple[Any, ...]:
        return tuple([None if x is None else x._array for x in (self.input, self.weight, self.bias)])


def _infer_reduced(input: Spec, linear_weight: Spec, target: Spec, linear_bias: Spec | None, *rest: Any) -> Any:
    sum_kind, *wanted = rest[-4:]
    wide = _of_loss(input)
    sums = Spec(linear_weight.shape, dtypes.as_np(sum_kind))
    bias = Spec(linear_weight.shape[:1], wide) if wanted[2] and linear_bias is not None else None
    own = Spec(input.shape, input.dtype) if wanted[0] else None
    return Spec((), wide), (own, sums if wanted[1] else None, bias, Spec((), wide), "input")


def _scaled(g: Any, kept: Any, needs: Any) -> list[Any]:
    *gradients, share, input = kept
    with no_grad():
        factor, dtype = wrap(g) * wrap(share), wrap(input).dtype
        of_input, of_weight, of_bias = [None if x is None else (wrap(x) * factor).to(dtype)._array for x in gradients]
    return [of_input, of_weight, None, of_bias, None]


# ---- a loss of each row


def _infer_listed(input: Spec, *_: Any) -> Any:
    return Spec(input.shape[:1], _of_loss(input)), REGISTRY[NAME].names


def _listed(*arguments: Any) -> Any:
    head = _Head(*arguments[:5], *arguments[6:10])
    with no_grad():
        loss = cat([head.losses(part, "none")[0] for part in head.parts])
    return loss._array, arguments


def _again(add_product: AddProduct, g: Any, kept: Any, needs: tuple[bool, ...]) -> list[Any]:
    head = _Head(*kept[:5], *kept[6:10])
    with no_grad():
        gradients = _Gradients(add_product, head, kept[10], (needs[0], needs[1], needs[3]))
        for part in head.parts:
            gradients.add(part, head.losses(part, "none")[1](wrap(g)[part]))
        dtype = head.input.dtype
        made = [None if x is None else wrap(x).to(dtype)._array for x in gradients.arrays()]
    return [made[0], made[1], None, made[2], None]
