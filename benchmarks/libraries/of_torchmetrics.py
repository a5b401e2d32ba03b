"""Metrics of torchmetrics."""

import torchmetrics
import torchmetrics.classification
import torchmetrics.regression
from tools import data, fn, ints
from torchmetrics.image import (
    PeakSignalNoiseRatio,
    SpectralAngleMapper,
    StructuralSimilarityIndexMeasure,
    UniversalImageQualityIndex,
)


def tm(mk, pred, tgt):
    def f():
        m = mk()
        m.update(pred(), tgt())
        m.update(pred() * 0.9, tgt())
        r = m.compute()
        return {k: v for k, v in r.items()} if isinstance(r, dict) else r

    return f


R_ = torchmetrics.regression
C_ = torchmetrics.classification
reg = (lambda: data(16), lambda: data(16) * 0.8 + 0.1)
for n, mk in {
    "mse": R_.MeanSquaredError,
    "mae": R_.MeanAbsoluteError,
    "r2": R_.R2Score,
    "pear": R_.PearsonCorrCoef,
    "spear": R_.SpearmanCorrCoef,
    "kend": R_.KendallRankCorrCoef,
    "cos": lambda: R_.CosineSimilarity(),
    "ev": R_.ExplainedVariance,
    "ccc": R_.ConcordanceCorrCoef,
    "lch": R_.LogCoshError,
}.items():
    fn("tm_" + n, tm(mk, *((lambda: data(4, 4), lambda: data(4, 4) * 0.8) if n == "cos" else reg)))
cl = (lambda: data(16, 4).softmax(-1), lambda: ints(4, 16))
for n, mk in {
    "acc": lambda: C_.MulticlassAccuracy(4),
    "f1": lambda: C_.MulticlassF1Score(4),
    "auroc": lambda: C_.MulticlassAUROC(4),
    "ap": lambda: C_.MulticlassAveragePrecision(4),
    "cm": lambda: C_.MulticlassConfusionMatrix(4, normalize="true"),
    "kappa": lambda: C_.MulticlassCohenKappa(4),
    "mcc": lambda: C_.MulticlassMatthewsCorrCoef(4),
    "cal": lambda: C_.MulticlassCalibrationError(4),
    "jac": lambda: C_.MulticlassJaccardIndex(4),
    "hinge": lambda: C_.MulticlassHingeLoss(4),
    "roc": lambda: C_.MulticlassROC(4, thresholds=5),
    "prc": lambda: C_.MulticlassPrecisionRecallCurve(4, thresholds=5),
}.items():
    fn("tm_" + n, tm(mk, *cl))

im = (lambda: data(2, 3, 48, 48).abs(), lambda: data(2, 3, 48, 48).abs() * 0.9)
fn("tm_ssim", tm(lambda: StructuralSimilarityIndexMeasure(data_range=1.0), *im))
fn("tm_psnr", tm(lambda: PeakSignalNoiseRatio(data_range=1.0), *im))
fn("tm_uqi", tm(UniversalImageQualityIndex, *im))
fn("tm_sam", tm(SpectralAngleMapper, *im))
