"""Softmax over many classes, of which few are frequent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from genesis.base.errors import ArgumentValueError, ShapeError, message
from genesis.core.call.refusal import explain_all
from genesis.core.graph.tensor import Tensor
from genesis.nn.container import ModuleList, Sequential
from genesis.nn.linear import Linear
from genesis.nn.module import Module
from genesis.ops.learning.softmax import log_softmax
from genesis.ops.shapes.join import cat

NAME = "AdaptiveLogSoftmaxWithLoss"


class ASMoutput(NamedTuple):
    """The log probability of each target, and minus their mean."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log softmax in two steps: frequent classes and clusters of rarer ones first, then those of a cluster, from fewer
    features (Grave et al. 2017).

    Args:
        cutoffs: where the clusters begin: classes up to the first are the frequent ones; ``n_classes`` is the last
        div_value: by how much the features of each cluster are fewer than those of the one before
        head_bias: whether the first step has a bias

    Raises:
        ValueError: cutoffs that do not grow, or are not between 1 and ``n_classes`` - 1

    >>> import genesis
    >>> layer = genesis.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 10])
    >>> layer.log_prob(genesis.ones(2, 8)).shape
    genesis.Size([2, 20])
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        ends = list(cutoffs)
        if not ends or ends != sorted(set(ends)) or ends[0] <= 0 or ends[-1] > n_classes - 1 or any(
            [int(c) != c for c in ends]
        ):  # fmt: skip
            text = f"cutoffs must be growing integers between 1 and n_classes - 1 = {n_classes - 1}, got {ends}"
            raise ArgumentValueError(message(NAME, text))
        made = {"device": device, "dtype": dtype}
        self.in_features, self.n_classes, self.div_value, self.head_bias = in_features, n_classes, div_value, head_bias
        self.cutoffs = [*ends, n_classes]
        self.shortlist_size, self.n_clusters = ends[0], len(ends)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, head_bias, **made)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            size = int(in_features // div_value ** (i + 1))
            classes = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(Sequential(Linear(in_features, size, False, **made), Linear(size, classes, False, **made)))

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        for layer in (self.head, *[layer for pair in self.tail for layer in pair]):
            layer.reset_parameters()

    def _check(self, input: Tensor) -> None:
        if input.shape[-1:] != (self.in_features,):
            raise ShapeError(
                message(NAME, f"input must have {self.in_features} features, its shape is {list(input.shape)}")
            )

    def forward(self, input_: Tensor, target_: Tensor) -> ASMoutput:
        """Of input (N, I) and classes (N,), or (I,) and one class: the log probability of each, and the loss."""
        self._check(input_)
        if input_.ndim not in (1, 2) or tuple(target_.shape) != tuple(input_.shape[:-1]):
            shapes = [("input", input_._spec()), ("target", target_._spec())]
            raise ShapeError(message(NAME, "input (N, I) and target (N,), or (I,) and one class, are needed", shapes))
        input, target = (input_, target_) if input_.ndim == 2 else (input_.unsqueeze(0), target_.unsqueeze(0))  # type: ignore[attr-defined]
        if input.shape[0] and not bool(((target >= 0) & (target < self.n_classes)).all()):  # type: ignore[operator]
            raise ShapeError(message(NAME, f"targets must be in [0, {self.n_classes}), got {target.tolist()}"))
        first = target
        output = input.new_zeros(input.shape[0])  # type: ignore[attr-defined]
        for i, (low, high) in enumerate(zip(self.cutoffs[:-1], self.cutoffs[1:], strict=True)):
            rows = ((target >= low) & (target < high)).nonzero().squeeze(1)  # type: ignore[operator, attr-defined]
            if rows.shape[0]:
                inside = log_softmax(self.tail[i](input[rows]), 1).gather(1, (target[rows] - low).unsqueeze(1))  # type: ignore[index, attr-defined]
                output = output.index_add(0, rows, inside.squeeze(1))
                first = first.index_fill(0, rows, self.shortlist_size + i)  # type: ignore[attr-defined]
        output = output + log_softmax(self.head(input), 1).gather(1, first.unsqueeze(1)).squeeze(1)  # type: ignore[attr-defined]
        return ASMoutput(output if input_.ndim == 2 else output.squeeze(0), -output.mean())

    def log_prob(self, input: Tensor) -> Tensor:
        """The log probabilities of all classes, (N, n_classes)."""
        self._check(input)
        head = log_softmax(self.head(input), 1)
        parts = [head[:, : self.shortlist_size]]
        for i, tail in enumerate(self.tail):
            column = self.shortlist_size + i
            parts.append(log_softmax(tail(input), 1) + head[:, column : column + 1])
        return cat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class of each row."""
        return self.log_prob(input).argmax(1)  # type: ignore[attr-defined, no-any-return]


explain_all(globals())
