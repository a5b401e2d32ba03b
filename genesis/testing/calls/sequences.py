"""Layers and functions of sequences, and their losses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from genesis import nn
from genesis.core.call.op import Case, case
from genesis.testing.calls.shared import After, Calls, plain, ran, shaped
from genesis.testing.make import Maker


def _network(gates: int, states: int) -> Calls:
    def calls(t: Maker) -> list[Case]:
        hx = [t(1, 2, 1) for _ in range(states)]
        return [case(t(3, 2, 1), hx if states == 2 else hx[0], [t(gates, 1), t(gates, 1)], False, 1, 0.0, False, False)]

    return calls


def _cell(gates: int, states: int) -> Calls:
    def calls(t: Maker) -> list[Case]:
        hx = [t(2, 1) for _ in range(states)]
        return [case(t(2, 3), hx if states == 2 else hx[0], t(gates, 3), t(gates, 1))]

    return calls


def _encoder() -> nn.Module:
    return nn.TransformerEncoderLayer(4, 2, 8)


def _heads(t: Maker) -> list[Case]:
    return [case(t(3, 1, 2), t(3, 1, 2), t(3, 1, 2), 2, 1, t(6, 2), t(6), None, None, False, 0.0, t(2, 2), t(2))]


def _classes(*shape: int) -> Callable[[Maker], Any]:
    return lambda t: t.int(*shape, low=0, high=3)


def _losses(log_probs: Any, t: Maker) -> None:
    log_probs(t(4, 1, 3).log_softmax(-1), t.int(1, 2, low=1, high=3), (4,), (1,))


KINDS = {"lstm": (4, 2), "gru": (3, 1), "rnn_tanh": (1, 1), "rnn_relu": (1, 1)}
PLAIN: dict[str, Any] = {  # modules without arguments, and what is done with them
    **{f"{name}": ran(shaped(2, 4)) for name in ("Hardshrink", "Softshrink", "RReLU")},
    **{
        f"{name}": ran(shaped(2, 3), shaped(2, 3))
        for name in ("HingeEmbeddingLoss", "SoftMarginLoss", "PairwiseDistance")
    },
    "Softmax2d": ran(shaped(2, 3, 2)),
    "MultiMarginLoss": ran(shaped(2, 3), _classes(2)),
    "MultiLabelMarginLoss": ran(shaped(2, 3), _classes(2, 3)),
    "MultiLabelSoftMarginLoss": ran(shaped(2, 3), shaped(2, 3)),
    "NLLLoss2d": ran(shaped(1, 3, 2, 2), _classes(1, 2, 2)),
    "CosineEmbeddingLoss": ran(shaped(2, 3), shaped(2, 3), shaped(2)),
    "TripletMarginWithDistanceLoss": ran(shaped(2, 3), shaped(2, 3), shaped(2, 3)),
    "CTCLoss": _losses,
}
CALLS: dict[str, Calls] = {
    **{name: _network(*sizes) for name, sizes in KINDS.items()},
    **{f"{name}_cell": _cell(*sizes) for name, sizes in KINDS.items()},
    **{f"nn.{name}": (lambda t: [case(3, 4)]) for name in ("RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell")},
    "nn.Container": lambda t: [case(a=nn.ReLU())],
    "nn.factory_kwargs": lambda t: [case({"device": "cpu"})],
    "nn.RNNBase": lambda t: [case("GRU", 3, 4)],
    "nn.functional.multi_head_attention_forward": _heads,
    "nn.TransformerEncoderLayer": lambda t: [case(4, 2, 8)],
    "nn.TransformerDecoderLayer": lambda t: [case(4, 2, 8)],
    "nn.TransformerEncoder": lambda t: [case(_encoder(), 1)],
    "nn.TransformerDecoder": lambda t: [case(nn.TransformerDecoderLayer(4, 2, 8), 1)],
    "nn.Transformer": lambda t: [case(4, 2, 1, 1, 8)],
    **{f"nn.{name}": plain for name in PLAIN},
    "nn.LinearCrossEntropyOptions": plain,
    "nn.LinearCrossEntropyLoss": lambda t: [case(4, 3)],
    "nn.AdaptiveLogSoftmaxWithLoss": lambda t: [case(4, 6, [2, 4], 2.0)],
    "nn.functional.gumbel_softmax": lambda t: [case(t(2, 3)), case(t(2, 3), 0.5, True)],
    "nn.EmbeddingBag": lambda t: [case(5, 3)],
    "nn.functional.triplet_margin_with_distance_loss": lambda t: [case(t(2, 3), t(2, 3), t(2, 3))],
}
AFTER: dict[str, After] = {
    **{f"nn.{name}": after for name, after in PLAIN.items()},
    "nn.LinearCrossEntropyLoss": ran(shaped(2, 4), _classes(2)),
    "nn.AdaptiveLogSoftmaxWithLoss": ran(shaped(2, 4), _classes(2)),
    "nn.EmbeddingBag": ran(_classes(2, 3)),
    **{f"nn.{name}": ran(shaped(5, 2, 3)) for name in ("RNN", "LSTM", "GRU", "RNNBase")},
    **{f"nn.{name}": ran(shaped(2, 3)) for name in ("RNNCell", "LSTMCell", "GRUCell")},
    **{f"nn.{name}": ran(shaped(3, 2, 4)) for name in ("TransformerEncoderLayer", "TransformerEncoder")},
    **{
        f"nn.{name}": ran(shaped(3, 2, 4), shaped(5, 2, 4))
        for name in ("TransformerDecoderLayer", "TransformerDecoder", "Transformer")
    },
}
