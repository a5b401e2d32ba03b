"""Single steps of recurrent networks."""

from __future__ import annotations

import math
from typing import Any

from genesis.base.errors import ArgumentError, ArgumentValueError, ShapeError, message
from genesis.core.call.refusal import described, explain_all
from genesis.core.graph.tensor import Tensor
from genesis.nn import init
from genesis.nn.module import Module
from genesis.nn.parameter import Parameter
from genesis.ops.creation import create
from genesis.ops.learning import recurrent_stacks


class RNNCellBase(Module):
    """What `RNNCell`, `LSTMCell` and `GRUCell` have in common: ``weight_ih``, ``weight_hh``, ``bias_ih``, ``bias_hh``."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows = num_chunks * hidden_size
        for name, shape in {"weight_ih": (rows, input_size), "weight_hh": (rows, hidden_size)}.items():
            self.register_parameter(name, Parameter(create.empty(shape, device=device, dtype=dtype)))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(create.empty(rows, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters anew, uniformly from $\\pm 1 / \\sqrt{hidden\\_size}$."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for p in self.parameters():
            init.uniform_(p, -bound, bound)

    def _step(self, function: Any, input: Tensor, states: list[Any]) -> Any:
        """One step, with zeros for states that are not given; also without a batch."""
        name = type(self).__name__
        for x in (input, *states):
            if not isinstance(x, Tensor | None) or (x is not None and x.ndim not in (1, 2)) or input is None:
                got = f"{x.ndim} dimensions" if isinstance(x, Tensor) else described(x)
                raise ArgumentValueError(message(name, f"input and states must have 1 or 2 dimensions, got {got}"))
        if input.shape[-1] != self.input_size:
            raise ShapeError(message(name, f"input has {input.shape[-1]} features, expected {self.input_size}"))
        rows = (input.shape[0],) if input.ndim == 2 else ()
        for s in states:
            if s is not None and tuple(s.shape) != (*rows, self.hidden_size):
                raise ShapeError(
                    message(name, f"a state has shape {list(s.shape)}, expected {[*rows, self.hidden_size]}")
                )
        zeros = create.zeros((*rows, self.hidden_size), dtype=input.dtype, device=input.device)
        given = [(x if x.ndim == 2 else x.unsqueeze(0)) for x in (input, *[zeros if s is None else s for s in states])]  # type: ignore[attr-defined]
        weights = self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh
        result = function(given[0], given[1] if len(states) == 1 else tuple(given[1:]), *weights)
        if rows:
            return result
        return tuple([y.squeeze(0) for y in result]) if isinstance(result, tuple) else result.squeeze(0)

    def extra_repr(self) -> str:
        shown = [] if self.bias else ["bias=False"]
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            shown.append(f"nonlinearity={self.nonlinearity}")
        return ", ".join([str(self.input_size), str(self.hidden_size), *shown])


class RNNCell(RNNCellBase):
    """One step of `RNN`: (B, I) and the hidden state (B, H) before (zeros, unless given), to the one after.

    >>> import genesis
    >>> genesis.nn.RNNCell(3, 4)(genesis.ones(2, 3)).shape
    genesis.Size([2, 4])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        if self.nonlinearity not in ("tanh", "relu"):
            raise ShapeError(message("RNNCell", f"nonlinearity must be 'tanh' or 'relu', got {self.nonlinearity!r}"))
        return self._step(getattr(recurrent_stacks, f"rnn_{self.nonlinearity}_cell"), input, [hx])  # type: ignore[no-any-return]


class LSTMCell(RNNCellBase):
    """One step of `LSTM`: (B, I) and hidden state and cell (B, H) before (zeros, unless given), to those after.

    >>> import genesis
    >>> hidden, cell = genesis.nn.LSTMCell(3, 4)(genesis.ones(2, 3))
    >>> hidden.shape
    genesis.Size([2, 4])
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: Any = None) -> tuple[Tensor, Tensor]:
        if hx is not None and (not isinstance(hx, list | tuple) or len(hx) != 2):
            raise ArgumentError(message("LSTMCell", f"states must be hidden state and cell, got {described(hx)}"))
        return self._step(recurrent_stacks.lstm_cell, input, [None, None] if hx is None else list(hx))  # type: ignore[no-any-return]


class GRUCell(RNNCellBase):
    """One step of `GRU`: (B, I) and the hidden state (B, H) before (zeros, unless given), to the one after.

    >>> import genesis
    >>> genesis.nn.GRUCell(3, 4)(genesis.ones(3)).shape
    genesis.Size([4])
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._step(recurrent_stacks.gru_cell, input, [hx])  # type: ignore[no-any-return]


explain_all(globals())
