"""Losses and miners of pytorch_metric_learning."""

import torch
from pytorch_metric_learning import losses, miners
from tools import fn, ints, leaf, withgrad

Y = ints(3, 12)
for name in ("TripletMarginLoss", "ContrastiveLoss", "NTXentLoss", "MultiSimilarityLoss", "CircleLoss", "SupConLoss", "NPairsLoss",
             "LiftedStructureLoss", "GeneralizedLiftedStructureLoss", "MarginLoss", "TupletMarginLoss", "AngularLoss",
             "SignalToNoiseRatioContrastiveLoss", "FastAPLoss", "SNRContrastiveLoss", "CentroidTripletLoss"):  # fmt: skip
    if hasattr(losses, name):
        fn(f"metric_{name}", lambda name=name: withgrad(lambda x: getattr(losses, name)()(x, Y), leaf(12, 8)))


def mined(name: str) -> list[torch.Tensor]:
    return [part.double() for part in getattr(miners, name)()(leaf(12, 8).detach(), Y)]


for name in ("BatchHardMiner", "MultiSimilarityMiner", "PairMarginMiner", "TripletMarginMiner", "BatchEasyHardMiner"):
    fn(f"metric_{name}", lambda name=name: mined(name))
