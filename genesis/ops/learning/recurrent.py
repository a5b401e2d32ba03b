"""Recurrent layers: all steps of a layer, in one direction, are one op.

The rows of a layer's input are those of its first step, then of its second, and so on; ``batch_sizes`` says how many
rows each step has. Sequences that have ended take no part any more, so these numbers never grow. What comes out has
one row for each of the input's, then the last states, one row for each sequence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from genesis.base.errors import ArgumentValueError, ShapeError, message
from genesis.core.call.kinds import case, composite
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.graph.tensor import Tensor
from genesis.ops.pointwise.curves import relu, sigmoid
from genesis.ops.pointwise.elementwise import tanh
from genesis.ops.products.linear import linear
from genesis.ops.shapes.join import cat

Step = Callable[..., tuple[Tensor, ...]]


def _lstm_step(gates: Tensor, hidden: Tensor, cell: Tensor, weight: Tensor, bias: Any) -> tuple[Tensor, ...]:
    i, f, g, o = (gates + linear(hidden, weight, bias)).chunk(4, -1)
    cell = sigmoid(f) * cell + sigmoid(i) * tanh(g)
    return sigmoid(o) * tanh(cell), cell


def _gru_step(gates: Tensor, hidden: Tensor, weight: Tensor, bias: Any) -> tuple[Tensor, ...]:
    r, z, x = gates.chunk(3, -1)
    r_hidden, z_hidden, inner = linear(hidden, weight, bias).chunk(3, -1)
    n = tanh(x + sigmoid(r + r_hidden) * inner)
    return (n + sigmoid(z + z_hidden) * (hidden - n),)


def _plain_step(function: Callable[..., Tensor]) -> Step:
    return lambda gates, hidden, weight, bias: (function(gates + linear(hidden, weight, bias)),)


STEPS: dict[str, Step] = {
    "lstm": _lstm_step, "gru": _gru_step, "tanh": _plain_step(tanh), "relu": _plain_step(relu)
}  # fmt: skip
GATES = {"lstm": 4, "gru": 3, "tanh": 1, "relu": 1}


def every_step(
    step: Step, gates: Tensor, states: Sequence[Tensor], batch_sizes: Sequence[int], reverse: bool
) -> tuple[Tensor, ...]:
    """The first state after each step, row by row; then all states after the last."""
    pieces, outs, states = gates.split(list(batch_sizes)), [gates] * len(batch_sizes), list(states)
    for t in reversed(range(len(pieces))) if reverse else range(len(pieces)):
        n = batch_sizes[t]
        new = step(pieces[t], *[s if n == s.shape[0] else s[:n] for s in states])
        outs[t] = new[0]
        states = [x if n == s.shape[0] else cat([x, s[n:]]) for x, s in zip(new, states, strict=True)]
    return (outs[0] if len(outs) == 1 else cat(outs), *states)


def _layer(
    kind: str, input: Tensor, states: Sequence[Tensor], weights: Sequence[Any], batch_sizes: Any, reverse: bool
) -> Tensor:
    name = f"{'rnn' if GATES[kind] == 1 else kind}_layer"
    weight_ih, weight_hh, bias_ih, bias_hh = weights
    _check(name, kind, input, states, weights, batch_sizes)
    gates = linear(input, weight_ih, bias_ih)
    step = STEPS[kind]
    return cat(every_step(lambda x, *states: step(x, *states, weight_hh, bias_hh), gates, states, batch_sizes, reverse))


def _check(
    name: str, kind: str, input: Tensor, states: Sequence[Tensor], weights: Sequence[Any], batch_sizes: Any
) -> None:
    check_batch_sizes(name, batch_sizes)
    size, gates = weights[1].shape[-1], GATES[kind]
    expected = {
        "input": (sum(batch_sizes), weights[0].shape[-1]),
        "weight_ih": (gates * size, weights[0].shape[-1]),
        "weight_hh": (gates * size, size),
        "bias_ih": (gates * size,),
        "bias_hh": (gates * size,),
    } | {what: (batch_sizes[0], size) for what in ("hidden", "cell")[: len(states)]}
    given = dict(zip(expected, (input, *weights, *states), strict=True))
    for what, x in given.items():
        if x is not None and tuple(x.shape) != expected[what]:
            raise ShapeError(
                message(
                    name,
                    f"{what} has shape {list(x.shape)}, expected {list(expected[what])}",
                    [(k, v._spec()) for k, v in given.items() if v is not None],
                )
            )


def check_batch_sizes(name: str, batch_sizes: Sequence[int]) -> None:
    """Refuse no steps, and numbers of rows that grow."""
    if not batch_sizes:
        raise ShapeError(message(name, "there are no steps, sequences must have at least one"))
    if any([b > a for a, b in pairwise(batch_sizes)]) or batch_sizes[-1] < 0:
        raise ArgumentValueError(
            message(name, f"the number of sequences never grows from step to step, got {list(batch_sizes)}")
        )


@composite(halves="wide", method=False, autocast="low", torch_name="")
def lstm_layer(
    input: Tensor,
    hidden: Tensor,
    cell: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor | None,
    bias_hh: Tensor | None,
    batch_sizes: tuple[int, ...],
    reverse: bool = False,
) -> Tensor:
    """One layer of long short-term memory in one direction (Hochreiter and Schmidhuber 1997).

    $i, f, o = \\sigma(W x + b + V h + d)$ and $g = \\tanh(W x + b + V h + d)$, each with rows of its own in the weights,
    in the order i, f, g, o; then $c' = f c + i g$ and $h' = o \\tanh c'$.

    Args:
        input: (N, I), the rows of all steps; hidden, cell: (B, H)
        weight_ih: (4H, I); weight_hh: (4H, H); biases: (4H,)
        batch_sizes: rows of each step, N together and B in the first
        reverse: from the last step to the first

    Returns:
        (N + 2B, H): hidden states by row, then the last hidden states and cells

    Raises:
        RuntimeError: shapes that do not fit

    >>> import genesis
    >>> from genesis.ops.learning.recurrent import lstm_layer
    >>> x, h, w = genesis.ones(3, 1), genesis.zeros(1, 1), genesis.ones(4, 1)
    >>> lstm_layer(x, h, h, w, w, None, None, (1, 1, 1)).squeeze(1)
    tensor([0.3696, 0.6505, 0.7888, 0.7888, 1.7395])
    """
    return _layer("lstm", input, (hidden, cell), (weight_ih, weight_hh, bias_ih, bias_hh), batch_sizes, reverse)


@composite(halves="wide", method=False, autocast="low", torch_name="")
def gru_layer(
    input: Tensor,
    hidden: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor | None,
    bias_hh: Tensor | None,
    batch_sizes: tuple[int, ...],
    reverse: bool = False,
) -> Tensor:
    """One layer of gated recurrent units in one direction (Cho et al. 2014).

    $r, z = \\sigma(W x + b + V h + d)$, $n = \\tanh(W x + b + r (V h + d))$, each with rows of its own in the weights;
    then $h' = (1 - z) n + z h$. Arguments and result as of `lstm_layer`, with 3H rows of weights and no cell.

    Raises:
        RuntimeError: shapes that do not fit

    >>> import genesis
    >>> from genesis.ops.learning.recurrent import gru_layer
    >>> x, h, w = genesis.ones(2, 1), genesis.zeros(1, 1), genesis.ones(3, 1)
    >>> gru_layer(x, h, w, w, None, None, (1, 1)).squeeze(1)
    tensor([0.2048, 0.3468, 0.3468])
    """
    return _layer("gru", input, (hidden,), (weight_ih, weight_hh, bias_ih, bias_hh), batch_sizes, reverse)


@composite(halves="wide", method=False, autocast="low", torch_name="")
def rnn_layer(
    input: Tensor,
    hidden: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor | None,
    bias_hh: Tensor | None,
    batch_sizes: tuple[int, ...],
    reverse: bool = False,
    nonlinearity: str = "tanh",
) -> Tensor:
    """One layer of Elman's network in one direction: $h' = \\tanh(W x + b + V h + d)$, or with a rectifier.

    Arguments and result as of `lstm_layer`, with H rows of weights and no cell.

    Raises:
        RuntimeError: shapes that do not fit
        ValueError: another nonlinearity than "tanh" and "relu"

    >>> import genesis
    >>> from genesis.ops.learning.recurrent import rnn_layer
    >>> x, h, w = genesis.ones(2, 1), genesis.zeros(1, 1), genesis.ones(1, 1)
    >>> rnn_layer(x, h, w, w, None, None, (1, 1), nonlinearity="relu").squeeze(1)
    tensor([1., 2., 2.])
    """
    if nonlinearity not in ("tanh", "relu"):
        raise ArgumentValueError(message("rnn_layer", f"nonlinearity must be 'tanh' or 'relu', got {nonlinearity!r}"))
    return _layer(nonlinearity, input, (hidden,), (weight_ih, weight_hh, bias_ih, bias_hh), batch_sizes, reverse)


def _cases(gates: int, states: int) -> Any:
    def make(t: Any) -> list[Any]:
        def one(sizes: tuple[int, ...], i: int, h: int, bias: bool, **kwargs: Any) -> Any:
            rows = [t(gates * h) for _ in range(2)] if bias else [None, None]
            given = [t(sizes[0], h) for _ in range(states)]
            return case(t(sum(sizes), i), *given, t(gates * h, i), t(gates * h, h), *rows, sizes, **kwargs)

        return [one((2, 2), 3, 2, True), one((2, 1, 1, 1), 1, 3, False, reverse=True), one((1,) * 4, 2, 2, True)]

    return make


samples(lstm_layer, _cases(4, 2))
samples(gru_layer, _cases(3, 1))
samples(
    rnn_layer,
    lambda t: [*_cases(1, 1)(t), case(t(4, 2), t(1, 1), t(1, 2), t(1, 1), None, None, (1,) * 4, nonlinearity="relu")],
)

_ROWS = "the number of sequences never grows"

wrong_inputs(
    lstm_layer,
    (lambda t: case(t(2, 3), t(2, 2), t(2, 2), t(8, 3), t(8, 2), None, None, (1, 1)), RuntimeError, "hidden has shape"),
    (lambda t: case(t(3, 3), t(1, 2), t(1, 2), t(8, 3), t(8, 2), None, None, (1, 2)), ValueError, _ROWS),
    (lambda t: case(t(0, 3), t(0, 2), t(0, 2), t(8, 3), t(8, 2), None, None, ()), RuntimeError, "there are no steps"),
)
wrong_inputs(
    gru_layer,
    (lambda t: case(t(2, 3), t(1, 2), t(8, 3), t(6, 2), None, None, (1, 1)), RuntimeError, "weight_ih has shape"),
)
wrong_inputs(
    rnn_layer,
    (lambda t: case(t(2, 3), t(1, 2), t(2, 3), t(2, 2), None, None, (1, 1), nonlinearity="sin"), ValueError, "'sin'"),
)


__all__: list[str] = []
