"""Layers of signals, images and volumes."""

from __future__ import annotations

from typing import Any

from genesis.core.call.op import case
from genesis.testing.calls.shared import After, Calls, ran, shaped

_SIZES = {1: (5,), 2: (5, 4), 3: (5, 4, 4)}
_STEMS: dict[str, tuple[Any, ...]] = {
    "Conv": (3, 2, 2),
    "ConvTranspose": (3, 2, 2),
    "LazyConv": (2, 2),
    "LazyConvTranspose": (2, 2),
    "MaxPool": (2,),
    "AvgPool": (2,),
    "LPPool": (2.0, 2),
    "AdaptiveAvgPool": (2,),
    "AdaptiveMaxPool": (2,),
    "FractionalMaxPool": (2, 2),
    "ConstantPad": (1, 0.5),
    "ZeroPad": (1,),
    "ReflectionPad": (1,),
    "ReplicationPad": (1,),
    "CircularPad": (1,),
    "InstanceNorm": (3,),
    "LazyInstanceNorm": (),
    "LazyBatchNorm": (),
    "Dropout": (),
}
_OTHERS: dict[str, tuple[tuple[Any, ...], tuple[int, ...]]] = {
    "BatchNorm3d": ((3,), (2, 3, 2, 2, 2)),
    "LazyLinear": ((2,), (2, 3)),
    "AlphaDropout": ((), (2, 3)),
    "FeatureAlphaDropout": ((), (2, 3)),
    "LocalResponseNorm": ((2,), (2, 3, 4)),
    "CrossMapLRN2d": ((2,), (2, 3, 4, 4)),
    "SyncBatchNorm": ((3,), (2, 3, 4)),
    "Upsample": ((3,), (1, 2, 2)),
    "UpsamplingNearest2d": ((3,), (1, 1, 2, 2)),
    "UpsamplingBilinear2d": ((3,), (1, 1, 2, 2)),
    "PixelShuffle": ((2,), (1, 4, 2, 2)),
    "PixelUnshuffle": ((2,), (1, 1, 4, 4)),
    "ChannelShuffle": ((2,), (1, 4, 2)),
    "Unfold": ((2,), (1, 2, 3, 3)),
    "Fold": (((3, 3), 2), (1, 8, 4)),
}
# the arguments of each layer, and the shape of an input
LAYERS = {
    **{
        f"{stem}{dims}d": (arguments, (2, 3, *sizes))
        for stem, arguments in _STEMS.items()
        for dims, sizes in _SIZES.items()
        if (stem, dims) != ("FractionalMaxPool", 1)
    },
    **_OTHERS,
}


def _unpooled(dims: int) -> After:
    return lambda module, t: module(t(2, *[1] * dims), t.int(2, *[1] * dims, low=0, high=2))


def _with(arguments: tuple[Any, ...]) -> Calls:
    return lambda t: [case(*arguments)]


AFTER: dict[str, After] = {
    **{f"nn.{name}": ran(shaped(*shape)) for name, (_, shape) in LAYERS.items()},
    **{f"nn.MaxUnpool{dims}d": _unpooled(dims) for dims in _SIZES},
}
CALLS: dict[str, Calls] = {
    **{f"nn.{name}": _with(arguments) for name, (arguments, _) in LAYERS.items()},
    **{f"nn.MaxUnpool{dims}d": _with((2,)) for dims in _SIZES},
    "nn.UninitializedParameter": _with(()),
    "nn.UninitializedBuffer": _with(()),
}
