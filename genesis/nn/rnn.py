"""Recurrent layers; single steps are in `rnn_cells`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

from genesis.base.dtypes import is_integer
from genesis.base.errors import ArgumentError, ArgumentValueError, ShapeError, message
from genesis.core.call.refusal import described, explain_all
from genesis.core.graph.tensor import Tensor
from genesis.nn import init
from genesis.nn.container import check_layers
from genesis.nn.module import Module
from genesis.nn.parameter import Parameter
from genesis.nn.utils.rnn import PackedSequence
from genesis.ops.creation import create
from genesis.ops.learning import recurrent_stacks

GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


class RNNBase(Module):
    """What `RNN`, `LSTM` and `GRU` have in common: parameters of each layer and direction, and the call.

    ``mode`` is ``"LSTM"``, ``"GRU"``, ``"RNN_TANH"`` or ``"RNN_RELU"``; other arguments as of `LSTM`.
    """

    mode: str

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.proj_size = bidirectional, proj_size
        self._check_options(dropout)
        rows, out = GATES[mode] * hidden_size, proj_size or hidden_size
        names = []
        for layer in range(num_layers):
            features = input_size if layer == 0 else out * (2 if bidirectional else 1)
            for suffix in ("", "_reverse") if bidirectional else ("",):
                shapes = {"weight_ih": (rows, features), "weight_hh": (rows, out)}
                shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)} if bias else {}
                shapes |= {"weight_hr": (proj_size, hidden_size)} if proj_size else {}
                names.append([f"{name}_l{layer}{suffix}" for name in shapes])
                for name, shape in zip(names[-1], shapes.values(), strict=True):
                    self.register_parameter(name, Parameter(create.empty(shape, device=device, dtype=dtype)))
        self._all_weights = names
        self._replaced: list[tuple[Any, Any]] | None = None
        self.reset_parameters()

    def _check_options(self, dropout: Any) -> None:
        name = type(self).__name__
        if self.mode not in GATES:
            raise ArgumentValueError(message(name, f"unknown mode {self.mode!r}", hint=", ".join(GATES)))
        for what in ("hidden_size", "num_layers"):
            if not is_integer(getattr(self, what)):
                raise ArgumentError(message(name, f"{what} must be an integer, got {described(getattr(self, what))}"))
            if getattr(self, what) <= 0:
                raise ArgumentValueError(message(name, f"{what} must be positive, got {getattr(self, what)}"))
        check_layers(name, self.num_layers)
        if isinstance(dropout, bool) or not 0 <= self.dropout <= 1:
            raise ArgumentValueError(message(name, f"dropout must be a number between 0 and 1, got {dropout}"))
        if self.proj_size < 0 or (self.proj_size and (self.proj_size >= self.hidden_size or self.mode != "LSTM")):
            raise ArgumentValueError(
                message(name, f"proj_size is for LSTM, from 0 and less than hidden_size, got {self.proj_size}")
            )
        if self.dropout and self.num_layers == 1:
            warnings.warn(
                f"{name}: dropout is between layers, there is one layer only, and dropout={self.dropout}", stacklevel=4
            )

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Parameter]:
        own = [getattr(self, name) for name in self._flat_weights_names]
        if self.__dict__.get("_replaced") is None:
            return own
        return [new if mine is old else mine for mine, (old, new) in zip(own, self._replaced, strict=True)]

    @_flat_weights.setter
    def _flat_weights(self, weights: Sequence[Any]) -> None:
        """Compute with other tensors than the parameters, as libraries for gradients of training do; one that is set by
        name later counts again.
        """
        own = [getattr(self, name) for name in self._flat_weights_names]
        self._replaced = list(zip(own, weights, strict=True))

    def flatten_parameters(self) -> None:
        """Accepted for PyTorch's sake: parameters may be anywhere in memory."""

    def reset_parameters(self) -> None:
        """Draw all parameters anew, uniformly from $\\pm 1 / \\sqrt{hidden\\_size}$."""
        bound = 1 / math.sqrt(self.hidden_size)
        for p in self.parameters():
            init.uniform_(p, -bound, bound)

    # ---- shapes

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Refuse input of another dtype or another number of features."""
        replaced = self.__dict__.get("_replaced") is not None
        weight = self._flat_weights[0] if replaced else getattr(self, self._all_weights[0][0])
        name = type(self).__name__
        if input.dtype != weight.dtype and not _cast():
            raise ArgumentValueError(
                message(
                    name, f"input is {input.dtype}, the weights are {weight.dtype}", hint=f"input.to({weight.dtype})"
                )
            )
        expected = 2 if batch_sizes is not None else 3
        if input.ndim != expected:
            raise ShapeError(message(name, f"input must have {expected} dimensions, it has {input.ndim}"))
        if input.shape[-1] != self.input_size:
            raise ShapeError(
                message(
                    name,
                    f"input has {input.shape[-1]} features, expected {self.input_size}",
                    [("input", input._spec())],
                )
            )

    def _expected(self, batch: int, size: int) -> tuple[int, int, int]:
        return self.num_layers * (2 if self.bidirectional else 1), batch, size

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The shape of hidden states for this input."""
        return self._expected(self._batch(input, batch_sizes), self.proj_size or self.hidden_size)

    def _batch(self, input: Tensor, batch_sizes: Tensor | None) -> int:
        return int(batch_sizes[0]) if batch_sizes is not None else input.shape[0 if self.batch_first else 1]

    def check_hidden_size(
        self, hx: Tensor, expected_hidden_size: tuple[int, int, int], msg: str = "hidden state"
    ) -> None:
        """Refuse states of another shape."""
        if tuple(hx.shape) != tuple(expected_hidden_size):
            raise ShapeError(
                message(
                    type(self).__name__,
                    f"{msg} has shape {list(hx.shape)}, expected {list(expected_hidden_size)}",
                    hint="(layers * directions, batch, size)",
                )
            )

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Refuse input and states that do not fit the layer or each other."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """The states in another order of the sequences."""
        return hx if permutation is None else hx.index_select(1, permutation)

    # ---- the call

    def forward(self, input: Any, hx: Any = None) -> Any:
        """What the last layer gives for each step, and the last states of all layers."""
        if isinstance(input, PackedSequence):
            return self._packed(input, hx)
        if not isinstance(input, Tensor) or input.ndim not in (2, 3):
            got = f"{input.ndim} dimensions" if isinstance(input, Tensor) else described(input)
            raise ArgumentValueError(
                message(type(self).__name__, f"input must be a tensor of 2 or 3 dimensions or packed, got {got}")
            )
        alone = input.ndim == 2
        hx = self._given(hx, 2 if alone else 3)
        if alone:
            at = 0 if self.batch_first else 1
            input, hx = input.unsqueeze(at), self._each(hx, lambda s: s.unsqueeze(1))  # type: ignore[attr-defined]
        out, last = self._computed(input, None, hx)
        return (out.squeeze(at), self._each(last, lambda s: s.squeeze(1))) if alone else (out, last)

    def _packed(self, input: PackedSequence, hx: Any) -> Any:
        data, batch_sizes, order, back = input
        hx = self.permute_hidden(self._given(hx, 3), order) if hx is not None else None
        out, last = self._computed(data, batch_sizes, hx)
        return PackedSequence(out, batch_sizes, order, back), self.permute_hidden(last, back)

    def _given(self, hx: Any, ndim: int) -> Any:
        """The states, if they are tensors of so many dimensions."""
        for s in self._states(hx):
            if not isinstance(s, Tensor) or s.ndim != ndim:
                got = f"{s.ndim} dimensions" if isinstance(s, Tensor) else described(s)
                raise ShapeError(
                    message(type(self).__name__, f"states must be tensors of {ndim} dimensions here, got {got}")
                )
        return hx

    def _states(self, hx: Any) -> list[Any]:
        return [] if hx is None else [hx]

    def _each(self, hx: Any, function: Any) -> Any:
        return None if hx is None else function(hx)

    def _zeros(self, input: Tensor, batch_sizes: Tensor | None) -> Any:
        shape = self.get_expected_hidden_size(input, batch_sizes)
        return create.zeros(shape, dtype=input.dtype, device=input.device)

    def _computed(self, input: Tensor, batch_sizes: Tensor | None, hx: Any) -> tuple[Tensor, Any]:
        self.check_input(input, batch_sizes)
        if hx is None:
            hx = self._zeros(input, batch_sizes)
        else:
            self.check_forward_args(input, hx, batch_sizes)
        network = getattr(recurrent_stacks, self.mode.lower())
        options = self.bias, self.num_layers, self.dropout, self.training, self.bidirectional
        if batch_sizes is None:
            out, *last = network(input, hx, self._flat_weights, *options, self.batch_first)
        else:
            out, *last = network(input, batch_sizes, hx, self._flat_weights, *options)
        return out, tuple(last) if len(last) > 1 else last[0]

    def extra_repr(self) -> str:
        options = {"proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0.0,
                   "bidirectional": False}  # fmt: skip
        shown = [f"{k}={getattr(self, k)}" for k, default in options.items() if getattr(self, k) != default]
        return ", ".join([str(self.input_size), str(self.hidden_size), *shown])


def _cast() -> bool:
    """Whether autocast is on: it converts the operands of products."""
    from genesis.core.graph import autocast

    return autocast.state() is not None


class RNN(RNNBase):
    """Elman's network: $h_t = \\tanh(W x_t + b + V h_{t-1} + d)$, or ``nonlinearity="relu"``.

    Arguments, shapes and names as of `LSTM`; one tensor of states instead of two.

    Raises:
        ValueError: another nonlinearity

    >>> import genesis
    >>> out, hidden = genesis.nn.RNN(3, 4)(genesis.ones(5, 2, 3))
    >>> out.shape, hidden.shape
    (genesis.Size([5, 2, 4]), genesis.Size([1, 2, 4]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ArgumentValueError(message("RNN", f"nonlinearity must be 'tanh' or 'relu', got {nonlinearity!r}"))
        super().__init__(
            f"RNN_{nonlinearity.upper()}", input_size, hidden_size, num_layers, bias, batch_first, dropout,
            bidirectional, 0, device, dtype,
        )  # fmt: skip
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """Long short-term memory (Hochreiter and Schmidhuber 1997).

    $i, f, o = \\sigma(W x_t + b + V h_{t-1} + d)$, $g = \\tanh(W x_t + b + V h_{t-1} + d)$ with weights of their own each,
    $c_t = f c_{t-1} + i g$, $h_t = o \\tanh c_t$.

    Args:
        input_size, hidden_size: numbers of features in and out
        num_layers: layers on top of each other; dropout: of what one gives the next, in training
        batch_first: tensors are (B, T, features) instead of (T, B, features)
        bidirectional: a second network from the last step to the first; what they give stands side by side
        proj_size: hidden states are projected to so many numbers: $h_t = R (o \\tanh c_t)$

    Shapes:
        input: (T, B, I), (T, I) without a batch, or a `genesis.nn.utils.rnn.PackedSequence`; states (zeros, unless
        given): hidden (layers * directions, B, H) and cells the same; result: (T, B, directions * H) and the last states

    Parameters are ``weight_ih_l0``, ``weight_hh_l0``, ``bias_ih_l0``, ``bias_hh_l0``, ``weight_hr_l0`` and, of the other
    direction, ``weight_ih_l0_reverse``, with the number of the layer; the gates' rows are in the order i, f, g, o.

    Raises:
        RuntimeError: shapes that do not fit
        ValueError: another number of dimensions or dtype

    >>> import genesis
    >>> out, (hidden, cell) = genesis.nn.LSTM(3, 4, num_layers=2)(genesis.ones(5, 2, 3))
    >>> out.shape, hidden.shape
    (genesis.Size([5, 2, 4]), genesis.Size([2, 2, 4]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            "LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size, device,
            dtype,
        )  # fmt: skip

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The shape of cells for this input."""
        return self._expected(self._batch(input, batch_sizes), self.hidden_size)

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Refuse input and states that do not fit the layer or each other."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden[0], self.get_expected_hidden_size(input, batch_sizes), "hidden state")
        self.check_hidden_size(hidden[1], self.get_expected_cell_size(input, batch_sizes), "cell")

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """The states in another order of the sequences."""
        return self._each(hx, lambda s: RNNBase.permute_hidden(self, s, permutation))

    def _states(self, hx: Any) -> list[Any]:
        if hx is not None and (not isinstance(hx, list | tuple) or len(hx) != 2):
            raise ArgumentError(message("LSTM", f"states must be hidden states and cells, got {described(hx)}"))
        return [] if hx is None else list(hx)

    def _each(self, hx: Any, function: Any) -> Any:
        return None if hx is None else tuple([function(s) for s in hx])

    def _zeros(self, input: Tensor, batch_sizes: Tensor | None) -> Any:
        shape = self.get_expected_cell_size(input, batch_sizes)
        cells = create.zeros(shape, dtype=input.dtype, device=input.device)
        return super()._zeros(input, batch_sizes), cells


class GRU(RNNBase):
    """Gated recurrent units (Cho et al. 2014).

    $r, z = \\sigma(W x_t + b + V h_{t-1} + d)$, $n = \\tanh(W x_t + b + r (V h_{t-1} + d))$ with weights of their own each,
    in the order r, z, n; $h_t = (1 - z) n + z h_{t-1}$. Arguments, shapes and names as of `LSTM`; one tensor of states.

    >>> import genesis
    >>> out, hidden = genesis.nn.GRU(3, 4, batch_first=True, bidirectional=True)(genesis.ones(2, 5, 3))
    >>> out.shape, hidden.shape
    (genesis.Size([2, 5, 8]), genesis.Size([2, 2, 4]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            "GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0, device, dtype
        )


explain_all(globals())
