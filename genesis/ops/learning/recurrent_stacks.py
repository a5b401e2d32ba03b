"""Recurrent networks of several layers, as functions of all their weights, and single steps of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from genesis.base.errors import ArgumentError, ArgumentValueError, ShapeError, message
from genesis.core.call.refusal import explain_all
from genesis.core.graph.tensor import Tensor
from genesis.ops.learning.dropout import dropout as drop
from genesis.ops.learning.recurrent import STEPS, every_step, gru_layer, lstm_layer, rnn_layer
from genesis.ops.products.linear import linear
from genesis.ops.shapes.join import cat, stack

Layer = Callable[..., tuple[Tensor, ...]]


def _lstm_layer(input: Tensor, states: Sequence[Tensor], weights: Sequence[Any], sizes: Any, reverse: bool) -> Any:
    if len(weights) == 4:
        return lstm_layer(input, *states, *weights, sizes, reverse).split([sum(sizes), sizes[0], sizes[0]])  # type: ignore[attr-defined]
    weight_ih, weight_hh, bias_ih, bias_hh, weight_hr = weights

    def step(gates: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        hidden, cell = STEPS["lstm"](gates, hidden, cell, weight_hh, bias_hh)
        return linear(hidden, weight_hr), cell

    return every_step(step, linear(input, weight_ih, bias_ih), states, sizes, reverse)


def _layer_of(op: Callable[..., Tensor], *options: Any) -> Layer:
    def layer(input: Tensor, states: Sequence[Tensor], weights: Sequence[Any], sizes: Any, reverse: bool) -> Any:
        return op(input, *states, *weights, sizes, reverse, *options).split([sum(sizes), sizes[0]])  # type: ignore[attr-defined]

    return layer


LAYERS: dict[str, Layer] = {
    "lstm": _lstm_layer,
    "gru": _layer_of(gru_layer),
    "rnn_tanh": _layer_of(rnn_layer, "tanh"),
    "rnn_relu": _layer_of(rnn_layer, "relu"),
}


def layers_of(
    name: str,
    rows: Tensor,
    states: Sequence[Tensor],
    params: Sequence[Any],
    sizes: tuple[int, ...],
    num_layers: int,
    dropout: float,
    bidirectional: bool,
) -> tuple[Tensor, ...]:
    """The rows that the last layer gives, and the last states of all layers.

    Args:
        rows: the input of all steps; states: of all layers, one after the other, both directions of each
        params: of each layer and direction the weights and biases; sizes: how many rows each step has
    """
    directions = 2 if bidirectional else 1
    each, last = len(params) // (num_layers * directions), []
    for i in range(num_layers):
        outs = []
        for d in range(directions):
            j = i * directions + d
            out, *finals = LAYERS[name](
                rows, [s[j] for s in states], params[j * each : (j + 1) * each], sizes, d == 1
            )  # fmt: skip
            outs.append(out)
            last.append(finals)
        rows = outs[0] if directions == 1 else cat(outs, -1)
        if dropout and i + 1 < num_layers:
            rows = drop(rows, dropout, True)
    return (rows, *[stack(states) for states in zip(*last, strict=True)])


def _network(name: str, input: Tensor, hx: Any, params: Any, *options: Any) -> tuple[Tensor, ...]:
    if isinstance(options[0], list | tuple):  # input, batch_sizes, hx, params, ...: sequences of several lengths
        sizes, hx, (params, *options) = tuple(hx.tolist()), params, options  # type: ignore[assignment]
        has_biases, num_layers, dropout, train, bidirectional = options
        batch_first, rows = False, input
    else:
        has_biases, num_layers, dropout, train, bidirectional, batch_first = options
        if input.ndim != 3:
            raise ShapeError(
                message(name, f"input must have 3 dimensions, it has {input.ndim}", [("input", input._spec())])
            )
        by_step = input.transpose(0, 1) if batch_first else input  # type: ignore[attr-defined]
        steps, batch, features = by_step.shape
        rows, sizes = by_step.reshape(steps * batch, features), (batch,) * steps
        if not steps:
            raise ShapeError(message(name, "there are no steps, sequences must have at least one"))
    states = list(hx) if name == "lstm" else [hx]
    result = layers_of(
        name, rows, states, _with_biases(name, params, has_biases, num_layers, bidirectional), sizes, num_layers,
        dropout if train else 0.0, bidirectional,
    )  # fmt: skip
    if rows is input:
        return result
    out = result[0].reshape(steps, batch, result[0].shape[1])  # type: ignore[attr-defined]
    return (out.transpose(0, 1) if batch_first else out, *result[1:])


def _with_biases(name: str, params: Any, has_biases: bool, num_layers: int, bidirectional: bool) -> list[Any]:
    """The parameters of all layers, None for biases that are missing."""
    layers = num_layers * (2 if bidirectional else 1)
    each, rest = divmod(len(params), layers) if layers else (0, 1)
    fits = (4, 5) if has_biases else (2, 3)
    if rest or each not in (fits if name == "lstm" else fits[:1]):
        raise ArgumentValueError(
            message(name, f"{layers} layers and directions need {fits[0]} parameters each, there are {len(params)}")
        )
    if has_biases:
        return list(params)
    parts = [list(params[i : i + each]) for i in range(0, len(params), each)]
    return [p for part in parts for p in (*part[:2], None, None, *part[2:])]


def lstm(
    input: Tensor,
    hx: Any,
    params: Any,
    has_biases: Any,
    num_layers: Any,
    dropout: Any,
    train: Any,
    bidirectional: Any,
    batch_first: Any = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Long short-term memory of several layers; what `genesis.nn.LSTM` computes.

    Args:
        input: (T, B, I), or (B, T, I) with ``batch_first``
        hx: the first hidden states and cells, (layers, B, H) each, with both directions of each layer
        params: of each layer and direction ``weight_ih``, ``weight_hh``, ``bias_ih``, ``bias_hh`` and, for hidden states
            of P numbers, ``weight_hr``
        dropout: between layers, where ``train``

    Sequences of several lengths: ``lstm(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train,
    bidirectional)``, see `genesis.nn.utils.rnn.PackedSequence`.

    Returns:
        the hidden states of the last layer, (T, B, H), and the last hidden states and cells of all layers

    Raises:
        RuntimeError: shapes that do not fit
        ValueError: another number of parameters

    >>> import genesis
    >>> x, h, w = genesis.ones(5, 2, 1), genesis.zeros(1, 2, 1), genesis.ones(4, 1)
    >>> [y.shape for y in genesis.lstm(x, (h, h), [w, w], False, 1, 0.0, False, False)]
    [genesis.Size([5, 2, 1]), genesis.Size([1, 2, 1]), genesis.Size([1, 2, 1])]
    """
    given = has_biases, num_layers, dropout, train, bidirectional, batch_first
    return _network("lstm", input, hx, params, *given)  # type: ignore[return-value]


_DOC = """{what} of several layers; what `genesis.nn.{module}` computes.

    Arguments as of `genesis.lstm`, with one tensor of hidden states.

    Returns:
        the hidden states of the last layer, (T, B, H), and the last ones of all layers

    >>> import genesis
    >>> x, h, w = genesis.ones(5, 2, 1), genesis.zeros(1, 2, 1), genesis.ones({rows}, 1)
    >>> [y.shape for y in genesis.{name}(x, h, [w, w], False, 1, 0.0, False, False)]
    [genesis.Size([5, 2, 1]), genesis.Size([1, 2, 1])]
    """


def _function(name: str, what: str, module: str, rows: int) -> Callable[..., tuple[Tensor, Tensor]]:
    def network(
        input: Tensor,
        hx: Tensor,
        params: Any,
        has_biases: Any,
        num_layers: Any,
        dropout: Any,
        train: Any,
        bidirectional: Any,
        batch_first: Any = False,
    ) -> tuple[Tensor, Tensor]:
        given = has_biases, num_layers, dropout, train, bidirectional, batch_first
        return _network(name, input, hx, params, *given)  # type: ignore[return-value]

    network.__name__ = network.__qualname__ = name
    network.__doc__ = _DOC.format(what=what, module=module, name=name, rows=rows)
    return network


gru = _function("gru", "Gated recurrent units", "GRU", 3)
rnn_tanh = _function("rnn_tanh", "Elman's network with tanh", "RNN", 1)
rnn_relu = _function("rnn_relu", "Elman's network with rectifiers", "RNN", 1)


# ---- single steps


def _one_step(name: str, kind: str, input: Any, states: Any, weights: Any, biases: Any) -> tuple[Tensor, ...]:
    given = {"input": input} | dict(zip(("hx", "cx"), states, strict=False))
    for what, x in given.items():
        if not isinstance(x, Tensor) or x.ndim != 2:
            text = f"{x.ndim} dimensions" if isinstance(x, Tensor) else type(x).__name__
            raise ArgumentError(message(name, f"{what} must be a tensor of 2 dimensions, got {text}"))
        if x.shape[0] != input.shape[0]:
            raise ShapeError(message(name, f"input has {input.shape[0]} rows, {what} {x.shape[0]}"))
    if (biases[0] is None) != (biases[1] is None):
        raise ArgumentError(message(name, "give both biases, or none"))
    return STEPS[kind](linear(input, weights[0], biases[0]), *states, weights[1], biases[1])


def lstm_cell(
    input: Tensor, hx: Any, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """One step of long short-term memory: (B, I) and the hidden states and cells (B, H) before, to those after.

    >>> import genesis
    >>> x, w = genesis.zeros(2, 3), genesis.ones(4, 1)
    >>> genesis.lstm_cell(x[:, :1], (x[:, :1], x[:, :1]), w, w)[0].shape
    genesis.Size([2, 1])
    """
    if not isinstance(hx, list | tuple) or len(hx) != 2:
        raise ArgumentValueError(message("lstm_cell", "hx must be two tensors, hidden states and cells"))
    return _one_step("lstm_cell", "lstm", input, hx, (w_ih, w_hh), (b_ih, b_hh))  # type: ignore[return-value]


def _cell(name: str, kind: str, what: str, rows: int) -> Callable[..., Tensor]:
    def cell(
        input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
    ) -> Tensor:
        return _one_step(name, kind, input, (hx,), (w_ih, w_hh), (b_ih, b_hh))[0]

    cell.__name__ = cell.__qualname__ = name
    cell.__doc__ = f"""One step of {what}: (B, I) and the hidden states (B, H) before, to those after.

    >>> import genesis
    >>> x, w = genesis.zeros(2, 1), genesis.ones({rows}, 1)
    >>> genesis.{name}(x, x, w, w)
    tensor([[0.],
            [0.]])
    """
    return cell


gru_cell = _cell("gru_cell", "gru", "gated recurrent units", 3)
rnn_tanh_cell = _cell("rnn_tanh_cell", "tanh", "Elman's network with tanh", 1)
rnn_relu_cell = _cell("rnn_relu_cell", "relu", "Elman's network with rectifiers", 1)


__all__ = [
    "gru", "gru_cell", "lstm", "lstm_cell", "rnn_relu", "rnn_relu_cell", "rnn_tanh", "rnn_tanh_cell",
]  # fmt: skip
explain_all(globals(), *__all__)
