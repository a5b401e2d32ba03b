"""Losses as modules."""

from __future__ import annotations

import inspect
from typing import Any

from genesis.base.errors import ArgumentError, message
from genesis.core.call.refusal import check_types
from genesis.core.graph.tensor import Tensor
from genesis.nn import functional as F
from genesis.nn.module import Module
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
        given = dict(zip([p.name for p in options], args, strict=False)) | kwargs
        unknown = set(given) - {p.name for p in options}
        if unknown:
            raise ArgumentError(
                message(
                    type(self).__name__,
                    f"unexpected arguments {', '.join(sorted(unknown))}",
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

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CosineSimilarity",
    "CrossEntropyLoss",
    "GaussianNLLLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "MSELoss",
    "MarginRankingLoss",
    "NLLLoss",
    "PoissonNLLLoss",
    "SmoothL1Loss",
    "TripletMarginLoss",
]
