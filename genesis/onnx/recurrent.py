"""Recurrent layers, as ONNX has them; sequences of several lengths stay what they are made of.

ONNX orders the gates otherwise: LSTM i, o, f, c for i, f, g, o here; GRU z, r, h for r, z, n.
"""

from __future__ import annotations

from typing import Any

from genesis.onnx.builder import Builder, Value, lowers
from genesis.onnx.tracing import Steps
from genesis.onnx.whole import whole

ORDER = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN": (0,)}


def _even(*args: Any) -> bool:
    """Whether all sequences have one length."""
    sizes = next(a for a in args if isinstance(a, tuple) and a and isinstance(a[0], int))
    return len(set(sizes)) == 1


whole("lstm_layer", "gru_layer", "rnn_layer", when=_even)


def _gates(b: Builder, x: Any, kind: str) -> str:
    """Rows in ONNX's order of gates."""
    order = ORDER[kind]
    if len(order) == 1:
        return x.name
    size = x.shape[0] // len(order)
    return b.node("Concat", *[b.slice(x, 0, i * size, (i + 1) * size) for i in order], axis=0)


def _layer(b: Builder, kind: str, x: Value, states: list[Value], weights: list[Any], batch_sizes: Any, reverse: bool,
           **attributes: Any) -> str:  # fmt: skip
    batch = batch_sizes.value if isinstance(batch_sizes, Steps) else batch_sizes[0]
    hidden = weights[1].shape[1]
    rows = b.node("Reshape", x, b.ints([-1, batch, x.shape[1]]))
    w, r = (b.unsqueeze(_gates(b, v, kind), 0) for v in weights[:2])
    bias = None
    if weights[2] is not None:
        bias = b.unsqueeze(b.node("Concat", *[_gates(b, v, kind) for v in weights[2:]], axis=0), 0)
    first = [b.unsqueeze(s, 0) for s in states]
    outs = b.node(kind, rows, w, r, bias, None, *first, outputs=1 + len(states), hidden_size=hidden,
                  direction="reverse" if reverse else "forward", **attributes)  # fmt: skip
    flat = [b.reshape(out, [-1, hidden]) for out in outs]
    return b.node("Concat", *flat, axis=0)


@lowers("lstm_layer")
def _lstm(b: Builder, x: Value, hidden: Value, cell: Value, w: Any, r: Any, bias: Any, bias_hh: Any, sizes: Any,
          reverse: bool = False) -> str:  # fmt: skip
    return _layer(b, "LSTM", x, [hidden, cell], [w, r, bias, bias_hh], sizes, reverse)


@lowers("gru_layer")
def _gru(
    b: Builder, x: Value, hidden: Value, w: Any, r: Any, bias: Any, bias_hh: Any, sizes: Any, reverse: bool = False
) -> str:
    return _layer(b, "GRU", x, [hidden], [w, r, bias, bias_hh], sizes, reverse, linear_before_reset=1)


@lowers("rnn_layer")
def _rnn(b: Builder, x: Value, hidden: Value, w: Any, r: Any, bias: Any, bias_hh: Any, sizes: Any, reverse: bool = False,
         nonlinearity: str = "tanh") -> str:  # fmt: skip
    return _layer(b, "RNN", x, [hidden], [w, r, bias, bias_hh], sizes, reverse, activations=[nonlinearity.capitalize()])
