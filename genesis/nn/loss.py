"""Losses as modules."""

from __future__ import annotations

import inspect
import math
from typing import Any

from genesis.base.errors import ArgumentError, message
from genesis.core.call.refusal import check_types, described, explain_all
from genesis.core.graph.tensor import Tensor
from genesis.nn import functional as F
from genesis.nn.linear import Linear
from genesis.nn.module import Module
from genesis.ops.losses.heads import LinearCrossEntropyOptions
from genesis.ops.losses.numbers import reduction_of

_OLD = ("size_average", "reduce")  # what they mean is kept as `reduction`


class _Loss(Module):
    """A loss function with fixed options; tensors among them (class weights) become buffers."""

    function: Any
    inputs = 2
    without: tuple[str, ...] = ()  # options of the function that the module has not

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        options = [
            p
            for p in list(inspect.signature(type(self).function).parameters.values())[self.inputs :]
            if p.name not in self.without
        ]
        named = [p.name for p in options if p.kind is not p.KEYWORD_ONLY]
        given = dict(zip(named, args, strict=False)) | kwargs
        unknown = [*sorted(set(given) - {p.name for p in options}), *map(described, args[len(named) :])]
        twice = sorted(set(named[: len(args)]) & set(kwargs))
        if unknown or twice:
            raise ArgumentError(
                message(
                    type(self).__name__,
                    f"unexpected arguments {', '.join(unknown)}" if unknown else f"{', '.join(twice)} given twice",
                    hint=", ".join(p.name for p in options),
                )
            )
        check_types(type(self).__name__, options, given)
        if any(given.get(name) is not None for name in _OLD):
            given["reduction"] = reduction_of(
                type(self).__name__, *map(given.get, _OLD), given.get("reduction", "mean")
            )
        names = []
        for p in options:
            if p.name in _OLD:
                continue
            value = given.get(p.name, p.default)
            names.append(p.name)
            if p.name in ("weight", "pos_weight"):
                self.register_buffer(p.name, value)
            else:
                setattr(self, p.name, value)
        super().__setattr__("_options", names)

    def forward(self, *inputs: Tensor) -> Tensor:
        return type(self).function(*inputs, **{name: getattr(self, name) for name in self._options})  # type: ignore[no-any-return]


def _module(name: str, function: str, inputs: int = 2, without: tuple[str, ...] = ()) -> type[Module]:
    op = getattr(F, function)
    first = (inspect.getdoc(op) or "").partition("\n\n>>>")[0]
    doc = f"`{function}` as a module.\n\n{first}\n"
    return type(
        name,
        (_Loss,),
        {"function": staticmethod(op), "inputs": inputs, "without": without, "__doc__": doc, "__module__": __name__},
    )


_WEIGHT = ("weight",)  # one for each element is no option of a module
MSELoss, L1Loss = _module("MSELoss", "mse_loss", without=_WEIGHT), _module("L1Loss", "l1_loss", without=_WEIGHT)
SmoothL1Loss, HuberLoss = _module("SmoothL1Loss", "smooth_l1_loss"), _module("HuberLoss", "huber_loss", without=_WEIGHT)
CrossEntropyLoss, NLLLoss = _module("CrossEntropyLoss", "cross_entropy"), _module("NLLLoss", "nll_loss")
BCELoss, BCEWithLogitsLoss = (
    _module("BCELoss", "binary_cross_entropy"),
    _module("BCEWithLogitsLoss", "binary_cross_entropy_with_logits"),
)
KLDivLoss, PoissonNLLLoss = _module("KLDivLoss", "kl_div"), _module("PoissonNLLLoss", "poisson_nll_loss")
GaussianNLLLoss, TripletMarginLoss = (
    _module("GaussianNLLLoss", "gaussian_nll_loss", 3),
    _module("TripletMarginLoss", "triplet_margin_loss", 3),
)
MarginRankingLoss, CosineSimilarity = (
    _module("MarginRankingLoss", "margin_ranking_loss", 3),
    _module("CosineSimilarity", "cosine_similarity"),
)
MultiMarginLoss, MultiLabelMarginLoss = (
    _module("MultiMarginLoss", "multi_margin_loss"),
    _module("MultiLabelMarginLoss", "multilabel_margin_loss"),
)
MultiLabelSoftMarginLoss, SoftMarginLoss = (
    _module("MultiLabelSoftMarginLoss", "multilabel_soft_margin_loss"),
    _module("SoftMarginLoss", "soft_margin_loss"),
)
HingeEmbeddingLoss, CosineEmbeddingLoss = (
    _module("HingeEmbeddingLoss", "hinge_embedding_loss"),
    _module("CosineEmbeddingLoss", "cosine_embedding_loss", 3),
)
TripletMarginWithDistanceLoss, PairwiseDistance = (
    _module("TripletMarginWithDistanceLoss", "triplet_margin_with_distance_loss", 3),
    _module("PairwiseDistance", "pairwise_distance"),
)
CTCLoss, NLLLoss2d = _module("CTCLoss", "ctc_loss", 4), _module("NLLLoss2d", "nll_loss")


class LinearCrossEntropyLoss(Module):
    """`linear_cross_entropy` with a linear layer of its own: of features (N, I) and targets (N,) or (N, d, ...).

    Args:
        out_features: the sizes d, ... of targets with more than one dimension; others as of `cross_entropy`
        options: `LinearCrossEntropyOptions`, so that there are never all of the logits

    >>> import genesis
    >>> loss = genesis.nn.LinearCrossEntropyLoss(3, 4)
    >>> loss(genesis.ones(2, 3), genesis.tensor([0, 3])).shape
    genesis.Size([])
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: Any = None,
    ) -> None:
        super().__init__()
        self.in_features, self.num_classes, self.out_features = in_features, num_classes, tuple(out_features)
        self.linear = Linear(in_features, num_classes * math.prod(self.out_features), bias, device=device, dtype=dtype)
        self.register_buffer("weight", weight)
        self.reduction, self.ignore_index, self.label_smoothing = reduction, ignore_index, label_smoothing
        self.options = options

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        shape = self.num_classes, *self.out_features
        bias = None if self.linear.bias is None else self.linear.bias.reshape(shape)
        return F.linear_cross_entropy(  # type: ignore[attr-defined, no-any-return]
            input, self.linear.weight.reshape(*shape, self.in_features), target, linear_bias=bias, weight=self.weight,
            reduction=self.reduction, ignore_index=self.ignore_index, label_smoothing=self.label_smoothing,
            options=self.options,
        )  # fmt: skip

    def extra_repr(self) -> str:
        names = ("in_features", "num_classes", "out_features")
        rest = ("reduction", "ignore_index", "label_smoothing", "options")
        said = [f"{n}={getattr(self, n)}" for n in names], [f"{n}={getattr(self, n)}" for n in rest]
        return ", ".join([*said[0], f"bias={self.linear.bias is not None}", *said[1]])


explain_all(globals(), "LinearCrossEntropyLoss")

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CTCLoss",
    "CosineEmbeddingLoss",
    "CosineSimilarity",
    "CrossEntropyLoss",
    "GaussianNLLLoss",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "LinearCrossEntropyLoss",
    "LinearCrossEntropyOptions",
    "MSELoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "NLLLoss",
    "NLLLoss2d",
    "PairwiseDistance",
    "PoissonNLLLoss",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]
