"""Every layer of `genesis.nn` that computes, with inputs for it: what the tests of exports run over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import genesis
from genesis import nn


def x(*shape: int) -> genesis.Tensor:
    """Numbers of a fixed order, of both signs, none of them twice."""
    rng = np.random.Generator(np.random.Philox(len(shape) + sum(shape)))
    return genesis.tensor(rng.standard_normal(shape).astype(np.float32))


def unit(*shape: int) -> genesis.Tensor:
    """Numbers between 0 and 1."""
    return genesis.sigmoid(x(*shape))


def classes(n: int, high: int) -> genesis.Tensor:
    return genesis.arange(n) % high


def ids(*shape: int) -> genesis.Tensor:
    return (genesis.arange(int(np.prod(shape))) * 3 % 7).reshape(shape)


def _flat(make: Callable[[], Any], *inputs: Any) -> tuple[Callable[[], Any], tuple[Any, ...]]:
    return make, inputs


LINE, IMAGE, VOLUME = (2, 4, 12), (2, 4, 8, 9), (2, 4, 5, 6, 6)

ACTIVATIONS = {
    f"{name}({', '.join(map(str, args))})": (lambda name=name, args=args: getattr(nn, name)(*args), (x(2, 4, 6),))
    for name, args in (
        ("CELU", (0.7,)), ("ELU", (0.5,)), ("GELU", ()), ("GELU", ("tanh",)), ("GLU", (-1,)), ("Hardshrink", ()), ("Hardsigmoid", ()),
        ("Hardswish", ()), ("Hardtanh", (-0.5, 0.75)), ("LeakyReLU", (0.2,)), ("LogSigmoid", ()), ("LogSoftmax", (1,)),
        ("LogSoftmax", (-1,)), ("Mish", ()), ("PReLU", ()), ("PReLU", (4,)), ("RReLU", ()), ("ReLU", ()), ("ReLU6", ()), ("SELU", ()),
        ("SiLU", ()), ("Sigmoid", ()), ("Softmax", (1,)), ("Softmax", (-1,)), ("Softmin", (1,)), ("Softplus", ()), ("Softplus", (2, 1)),
        ("Softshrink", ()), ("Softsign", ()), ("Tanh", ()), ("Tanhshrink", ()), ("Threshold", (0.1, 2.0)), ("Identity", ()), ("Flatten", ()),
        ("Dropout", ()), ("Dropout1d", ()), ("AlphaDropout", ()), ("FeatureAlphaDropout", ()), ("Unflatten", (1, (2, 2))),
        ("LayerNorm", (6,)), ("LayerNorm", ((4, 6), 1e-3)), ("RMSNorm", (6,)), ("BatchNorm1d", (4,)), ("GroupNorm", (2, 4)),
        ("InstanceNorm1d", (4,)), ("LocalResponseNorm", (3,)), ("SyncBatchNorm", (4,)), ("Linear", (6, 3)), ("Linear", (6, 3, False)), ("ChannelShuffle", (2,)),
    )
}  # fmt: skip

SPATIAL = {
    f"{name}{d}d({', '.join(f'{k}={v}' for k, v in options.items())})": (
        lambda name=name, d=d, args=args, options=options: getattr(nn, f"{name}{d}d")(*args, **options),
        (x(*shape),),
    )
    for d, shape in ((1, LINE), (2, IMAGE), (3, VOLUME))
    for name, args, options in (
        ("Conv", (4, 6, 3), {}),
        ("Conv", (4, 6, 3), {"stride": 2, "padding": 1, "bias": False}),
        ("Conv", (4, 8, 2), {"groups": 2, "dilation": 2, "padding": "same"}),
        ("Conv", (4, 6, 3), {"padding": 1, "padding_mode": "reflect"}),
        ("Conv", (4, 6, 3), {"padding": 1, "padding_mode": "circular"}),
        ("ConvTranspose", (4, 6, 3), {}),
        ("ConvTranspose", (4, 6, 3), {"stride": 2, "padding": 1, "output_padding": 1, "groups": 2}),
        ("MaxPool", (2,), {}),
        ("MaxPool", (3,), {"stride": 2, "padding": 1}),
        ("MaxPool", (3,), {"stride": 2, "padding": 1, "ceil_mode": True}),
        ("AvgPool", (2,), {}),
        ("AvgPool", (3,), {"stride": 2, "padding": 1}),
        ("AvgPool", (3,), {"stride": 2, "padding": 1, "count_include_pad": False, "ceil_mode": True}),
        ("LPPool", (2, 2), {}),
        ("AdaptiveAvgPool", (1,), {}),
        ("AdaptiveAvgPool", (3,), {}),
        ("AdaptiveMaxPool", (2,), {}),
        ("BatchNorm", (4,), {}),
        ("BatchNorm", (4,), {"affine": False}),
        ("InstanceNorm", (4,), {"affine": True}),
        ("ConstantPad", (1, 0.5), {}),
        ("ZeroPad", (2,), {}),
        ("ReflectionPad", (2,), {}),
        ("ReplicationPad", (2,), {}),
        ("CircularPad", (2,), {}),
        ("Dropout", (), {}),
    )
}  # fmt: skip

OTHERS: dict[str, tuple[Callable[[], Any], tuple[Any, ...]]] = {
    "Bilinear": _flat(lambda: nn.Bilinear(3, 4, 5), x(2, 3), x(2, 4)),
    "CosineSimilarity": _flat(lambda: nn.CosineSimilarity(), x(3, 5), x(3, 5) * 2 - 0.1),
    "Embedding": _flat(lambda: nn.Embedding(7, 5), ids(2, 4)),
    "Embedding(padding_idx)": _flat(lambda: nn.Embedding(7, 5, padding_idx=0), ids(2, 4)),
    "EmbeddingBag": _flat(lambda: nn.EmbeddingBag(7, 5), ids(2, 4)),
    "EmbeddingBag(sum)": _flat(lambda: nn.EmbeddingBag(7, 5, mode="sum"), ids(2, 4)),
    "EmbeddingBag(max)": _flat(lambda: nn.EmbeddingBag(7, 5, mode="max"), ids(2, 4)),
    "Fold": _flat(lambda: nn.Fold((4, 5), (2, 2)), x(2, 12, 12)),
    "Unfold": _flat(lambda: nn.Unfold((2, 3), padding=1, stride=2), x(*IMAGE)),
    "Unfold(dilation)": _flat(lambda: nn.Unfold((2, 2), dilation=2), x(*IMAGE)),
    "PixelShuffle": _flat(lambda: nn.PixelShuffle(2), x(2, 8, 3, 4)),
    "PixelUnshuffle": _flat(lambda: nn.PixelUnshuffle(2), x(2, 2, 6, 4)),
    "PairwiseDistance": _flat(lambda: nn.PairwiseDistance(), x(3, 5), x(3, 5) * 2),
    "Softmax2d": _flat(lambda: nn.Softmax2d(), x(*IMAGE)),
    "Upsample(nearest)": _flat(lambda: nn.Upsample(scale_factor=2), x(*IMAGE)),
    "Upsample(nearest 1d)": _flat(lambda: nn.Upsample(scale_factor=3), x(*LINE)),
    "Upsample(nearest 3d)": _flat(lambda: nn.Upsample(size=(7, 6, 9)), x(*VOLUME)),
    "Upsample(nearest-exact)": _flat(lambda: nn.Upsample(size=(13, 5), mode="nearest-exact"), x(*IMAGE)),
    "Upsample(linear)": _flat(lambda: nn.Upsample(scale_factor=2, mode="linear"), x(*LINE)),
    "Upsample(bilinear)": _flat(lambda: nn.Upsample(scale_factor=2, mode="bilinear"), x(*IMAGE)),
    "Upsample(bilinear, corners)": _flat(lambda: nn.Upsample(size=(5, 17), mode="bilinear", align_corners=True), x(*IMAGE)),
    "Upsample(bicubic)": _flat(lambda: nn.Upsample(scale_factor=2, mode="bicubic"), x(*IMAGE)),
    "Upsample(trilinear)": _flat(lambda: nn.Upsample(scale_factor=2, mode="trilinear"), x(*VOLUME)),
    "Upsample(area)": _flat(lambda: nn.Upsample(size=(4, 3), mode="area"), x(*IMAGE)),
    "UpsamplingBilinear2d": _flat(lambda: nn.UpsamplingBilinear2d(scale_factor=2), x(*IMAGE)),
    "UpsamplingNearest2d": _flat(lambda: nn.UpsamplingNearest2d(scale_factor=2), x(*IMAGE)),
    "MultiheadAttention": _flat(lambda: nn.MultiheadAttention(8, 2), x(3, 2, 8), x(4, 2, 8), x(4, 2, 8)),
    "MultiheadAttention(batch_first)": _flat(lambda: nn.MultiheadAttention(8, 2, batch_first=True), *[x(2, 3, 8)] * 3),
    "TransformerEncoderLayer": _flat(lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), x(2, 3, 8)),
    "TransformerEncoder": _flat(
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2), x(2, 3, 8)
    ),
    "TransformerDecoderLayer": _flat(lambda: nn.TransformerDecoderLayer(8, 2, 16, batch_first=True), x(2, 3, 8), x(2, 4, 8)),
    "TransformerDecoder": _flat(
        lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, batch_first=True), 2), x(2, 3, 8), x(2, 4, 8)
    ),
    "Transformer": _flat(lambda: nn.Transformer(8, 2, 1, 1, 16, batch_first=True), x(2, 3, 8), x(2, 4, 8)),
    **{
        f"{name}({', '.join(f'{k}={v}' for k, v in options.items())})": (
            lambda name=name, options=options: getattr(nn, name)(5, 6, **options), (x(4, 2, 5),)
        )
        for name in ("RNN", "LSTM", "GRU")
        for options in ({}, {"num_layers": 2, "bidirectional": True}, {"batch_first": True, "bias": False})
    },
    "RNN(nonlinearity=relu)": _flat(lambda: nn.RNN(5, 6, nonlinearity="relu"), x(4, 2, 5)),
    "LSTM(proj_size=3)": _flat(lambda: nn.LSTM(5, 6, proj_size=3), x(4, 2, 5)),
    "RNNCell": _flat(lambda: nn.RNNCell(5, 6), x(2, 5), x(2, 6)),
    "LSTMCell": _flat(lambda: nn.LSTMCell(5, 6), x(2, 5)),
    "GRUCell": _flat(lambda: nn.GRUCell(5, 6), x(2, 5), x(2, 6)),
    "Sequential": _flat(lambda: nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3)), x(2, 5)),
    "MaxPool2d(return_indices)": _flat(lambda: nn.MaxPool2d(2, return_indices=True), x(*IMAGE)),
    **{
        f"MaxUnpool{d}d": (lambda d=d: getattr(nn, f"MaxUnpool{d}d")(2), getattr(nn, f"MaxPool{d}d")(2, return_indices=True)(x(*shape)))
        for d, shape in ((1, LINE), (2, (2, 4, 8, 8)), (3, (2, 4, 4, 6, 6)))
    },
    "FractionalMaxPool2d": _flat(lambda: nn.FractionalMaxPool2d(2, output_size=3, _random_samples=unit(2, 4, 2)), x(*IMAGE)),
    "FractionalMaxPool3d": _flat(lambda: nn.FractionalMaxPool3d(2, output_size=2, _random_samples=unit(2, 4, 3)), x(*VOLUME)),
    "AdaptiveLogSoftmaxWithLoss": _flat(lambda: nn.AdaptiveLogSoftmaxWithLoss(6, 8, [4]).log_prob, x(3, 6)),
    "CrossMapLRN2d": (lambda: nn.CrossMapLRN2d(3), (x(*IMAGE),)),
}  # fmt: skip

LOSSES: dict[str, tuple[Callable[[], Any], tuple[Any, ...]]] = {
    **{name: (lambda name=name: getattr(nn, name)(), (unit(3, 4), unit(4, 3).t())) for name in (
        "BCELoss", "BCEWithLogitsLoss", "HuberLoss", "KLDivLoss", "L1Loss", "MSELoss", "PoissonNLLLoss", "SmoothL1Loss")},
    "CTCLoss": _flat(lambda: nn.CTCLoss(), genesis.log_softmax(x(6, 2, 5), 2), classes(4, 4).reshape(2, 2) + 1,
                     genesis.tensor([6, 6]), genesis.tensor([2, 2])),
    "CosineEmbeddingLoss": _flat(lambda: nn.CosineEmbeddingLoss(), x(3, 5), x(3, 5) * 2 - 0.1, genesis.tensor([1, -1, 1])),
    "CrossEntropyLoss": _flat(lambda: nn.CrossEntropyLoss(), x(4, 3), classes(4, 3)),
    "CrossEntropyLoss(weight)": _flat(lambda: nn.CrossEntropyLoss(unit(3), label_smoothing=0.1), x(4, 3), classes(4, 3)),
    "CrossEntropyLoss(images)": _flat(lambda: nn.CrossEntropyLoss(ignore_index=0), x(2, 3, 4), classes(8, 3).reshape(2, 4)),
    "GaussianNLLLoss": _flat(lambda: nn.GaussianNLLLoss(), x(3, 4), x(4, 3).t(), unit(3, 4)),
    "HingeEmbeddingLoss": _flat(lambda: nn.HingeEmbeddingLoss(), x(3), genesis.tensor([1, -1, 1])),
    "LinearCrossEntropyLoss": _flat(lambda: nn.LinearCrossEntropyLoss(6, 5), x(4, 6), classes(4, 5)),
    "MarginRankingLoss": _flat(lambda: nn.MarginRankingLoss(), x(3), x(3) * 2, genesis.tensor([1, -1, 1])),
    "MultiLabelMarginLoss": _flat(lambda: nn.MultiLabelMarginLoss(), x(2, 4), genesis.tensor([[3, 0, -1, 1], [1, -1, 0, 2]])),
    "MultiLabelSoftMarginLoss": _flat(lambda: nn.MultiLabelSoftMarginLoss(), x(2, 4), unit(2, 4).round()),
    "MultiMarginLoss": _flat(lambda: nn.MultiMarginLoss(), x(4, 3), classes(4, 3)),
    "NLLLoss": _flat(lambda: nn.NLLLoss(), genesis.log_softmax(x(4, 3), 1), classes(4, 3)),
    "NLLLoss2d": _flat(lambda: nn.NLLLoss(), genesis.log_softmax(x(2, 3, 4, 5), 1), classes(40, 3).reshape(2, 4, 5)),
    "SoftMarginLoss": _flat(lambda: nn.SoftMarginLoss(), x(3, 4), x(4, 3).t().sign()),
    "TripletMarginLoss": _flat(lambda: nn.TripletMarginLoss(), x(3, 4), x(4, 3).t(), unit(3, 4)),
    "TripletMarginWithDistanceLoss": _flat(lambda: nn.TripletMarginWithDistanceLoss(), x(3, 4), x(4, 3).t(), unit(3, 4)),
}  # fmt: skip

LAYERS = {**ACTIVATIONS, **SPATIAL, **OTHERS, **LOSSES}
