"""Transformers: encoder and decoder layers, stacks of them, and both together (Vaswani et al. 2017)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from genesis.base.errors import ArgumentError, ArgumentValueError, ShapeError, message
from genesis.core.call.refusal import described, expect_function, explain_all
from genesis.core.graph.tensor import Tensor, known_values
from genesis.nn import functional as F
from genesis.nn import init
from genesis.nn.attention import MultiheadAttention
from genesis.nn.container import ModuleList, check_layers
from genesis.nn.dropout import Dropout
from genesis.nn.linear import Linear
from genesis.nn.module import Module
from genesis.nn.norm import LayerNorm
from genesis.ops.creation import create

Activation = str | Callable[[Tensor], Tensor]


def _activation(name: str, activation: Any) -> Callable[[Tensor], Tensor]:
    if isinstance(activation, str):
        if activation not in ("relu", "gelu"):
            raise ShapeError(message(name, f"activation must be 'relu', 'gelu' or a function, got {activation!r}"))
        return getattr(F, activation)  # type: ignore[no-any-return]
    if not callable(activation):
        raise ArgumentError(message(name, f"activation must be a string or a function, got {described(activation)}"))
    return activation  # type: ignore[no-any-return]


def _causal_mask(size: int, device: Any = None, dtype: Any = None) -> Tensor:
    """-inf above the diagonal, zeros elsewhere."""
    return create.full((size, size), float("-inf"), dtype=dtype, device=device).triu(1)  # type: ignore[attr-defined, no-any-return]


def _is_causal(mask: Tensor | None, is_causal: bool | None, size: int) -> bool:
    """What the caller says of a mask, or (of None) whether it is a causal one."""
    if is_causal is not None or mask is None:
        return bool(is_causal)
    values = None if tuple(mask.shape) != (size, size) or not mask.is_floating_point() else known_values(mask)
    if values is None:
        return False
    return bool((values == known_values(_causal_mask(size, mask.device, mask.dtype))).all())


class _Layer(Module):
    """What encoder and decoder layers have in common: attentions, the feed-forward part, and norms before or after."""

    _attentions: tuple[str, ...]

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        made = {"device": device, "dtype": dtype}
        for name in self._attentions:
            setattr(self, name, MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **made))
        self.linear1 = Linear(d_model, dim_feedforward, bias, **made)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **made)
        self.norm_first = norm_first
        for i in range(1, len(self._attentions) + 2):
            setattr(self, f"norm{i}", LayerNorm(d_model, layer_norm_eps, bias=bias, **made))
        for i in range(1, len(self._attentions) + 2):
            setattr(self, f"dropout{i}", Dropout(dropout))
        self.activation = _activation(type(self).__name__, activation)

    def _around(self, x: Tensor, i: int, block: Callable[[Tensor], Tensor]) -> Tensor:
        """``x`` and what a block makes of it, normalised before or after."""
        norm = getattr(self, f"norm{i}")
        return x + block(norm(x)) if self.norm_first else norm(x + block(x))  # type: ignore[operator, no-any-return]

    def _sa_block(
        self, x: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None, is_causal: bool = False
    ) -> Tensor:
        result = self.self_attn(
            x, x, x, attn_mask=attn_mask, key_padding_mask=key_padding_mask, is_causal=is_causal, need_weights=False
        )
        return self.dropout1(result[0])  # type: ignore[no-any-return]

    def _fed(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))  # type: ignore[no-any-return]


class TransformerEncoderLayer(_Layer):
    """Self-attention, then two linear layers; $x + f(x)$ of both, normalised.

    Args:
        d_model: features; nhead: heads of attention; dim_feedforward: features between the linear layers
        activation: "relu", "gelu" or a function; norm_first: normalise what goes into $f$ instead of the sum
        dropout, layer_norm_eps, batch_first, bias: as of `Dropout`, `LayerNorm`, `MultiheadAttention`, `Linear`

    Raises:
        RuntimeError: an unknown activation

    >>> import genesis
    >>> layer = genesis.nn.TransformerEncoderLayer(8, 2, dim_feedforward=16, batch_first=True)
    >>> layer(genesis.ones(3, 5, 8)).shape
    genesis.Size([3, 5, 8])
    """

    _attentions = ("self_attn",)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """``src`` (S, N, E), or (N, S, E) where ``batch_first``; masks as of `MultiheadAttention`."""
        x = self._around(src, 1, lambda x: self._sa_block(x, src_mask, src_key_padding_mask, is_causal))
        return self._around(x, 2, self._ff_block)

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout2(self._fed(x))  # type: ignore[no-any-return]


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to ``memory``, then two linear layers; $x + f(x)$ of each, normalised.

    Arguments as of `TransformerEncoderLayer`.

    >>> import genesis
    >>> layer = genesis.nn.TransformerDecoderLayer(8, 2, dim_feedforward=16, batch_first=True)
    >>> layer(genesis.ones(3, 5, 8), genesis.ones(3, 7, 8)).shape
    genesis.Size([3, 5, 8])
    """

    _attentions = ("self_attn", "multihead_attn")

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """``tgt`` (T, N, E) and ``memory`` (S, N, E), or N first where ``batch_first``; masks as of `MultiheadAttention`."""
        x = self._around(tgt, 1, lambda x: self._sa_block(x, tgt_mask, tgt_key_padding_mask, tgt_is_causal))
        x = self._around(
            x, 2, lambda x: self._mha_block(x, memory, memory_mask, memory_key_padding_mask, memory_is_causal)
        )
        return self._around(x, 3, self._ff_block)

    def _mha_block(
        self,
        x: Tensor,
        mem: Tensor,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
        is_causal: bool = False,
    ) -> Tensor:
        result = self.multihead_attn(
            x, mem, mem, attn_mask=attn_mask, key_padding_mask=key_padding_mask, is_causal=is_causal, need_weights=False
        )
        return self.dropout2(result[0])  # type: ignore[no-any-return]

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout3(self._fed(x))  # type: ignore[no-any-return]


def _length(x: Tensor, layers: ModuleList) -> int:
    """The length of the sequences in ``x``; layers of users need not have an attention of ours."""
    attention = next((m for m in layers.modules() if isinstance(m, MultiheadAttention)), None)
    return x.shape[1 if x.ndim == 3 and attention is not None and attention.batch_first else 0]


def _copies(layer: Module, count: int) -> ModuleList:
    check_layers("Transformer", count)
    return ModuleList([copy.deepcopy(layer) for _ in range(count)])


class TransformerEncoder(Module):
    """Copies of an encoder layer, one after the other.

    ``enable_nested_tensor`` and ``mask_check`` are accepted for PyTorch's sake: padded positions are computed as all
    others.

    >>> import genesis
    >>> layer = genesis.nn.TransformerEncoderLayer(8, 2, dim_feedforward=16)
    >>> genesis.nn.TransformerEncoder(layer, num_layers=2)(genesis.ones(5, 3, 8)).shape
    genesis.Size([5, 3, 8])
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers, self.num_layers, self.norm = _copies(encoder_layer, num_layers), num_layers, norm
        self.enable_nested_tensor, self.mask_check = enable_nested_tensor, mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """What the last layer gives; of ``is_causal=None`` it is looked up whether the mask is causal."""
        causal = _is_causal(mask, is_causal, _length(src, self.layers))
        for layer in self.layers:
            src = layer(src, src_mask=mask, is_causal=causal, src_key_padding_mask=src_key_padding_mask)
        return src if self.norm is None else self.norm(src)  # type: ignore[no-any-return]


class TransformerDecoder(Module):
    """Copies of a decoder layer, one after the other.

    >>> import genesis
    >>> layer = genesis.nn.TransformerDecoderLayer(8, 2, dim_feedforward=16)
    >>> genesis.nn.TransformerDecoder(layer, num_layers=2)(genesis.ones(5, 3, 8), genesis.ones(7, 3, 8)).shape
    genesis.Size([5, 3, 8])
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers, self.num_layers, self.norm = _copies(decoder_layer, num_layers), num_layers, norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """What the last layer gives; of ``tgt_is_causal=None`` it is looked up whether the mask is causal."""
        causal = _is_causal(tgt_mask, tgt_is_causal, _length(tgt, self.layers))
        for layer in self.layers:
            tgt = layer(
                tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask, causal,
                memory_is_causal,
            )  # fmt: skip
        return tgt if self.norm is None else self.norm(tgt)  # type: ignore[no-any-return]


class Transformer(Module):
    """An encoder of ``src`` and a decoder of ``tgt`` that attends to it.

    Args:
        num_encoder_layers, num_decoder_layers: layers of each; custom_encoder, custom_decoder: modules of one's own
        d_model, nhead, dim_feedforward, ...: as of `TransformerEncoderLayer`

    >>> import genesis
    >>> model = genesis.nn.Transformer(8, 2, 1, 1, dim_feedforward=16)
    >>> model(genesis.ones(7, 3, 8), genesis.ones(5, 3, 8)).shape
    genesis.Size([5, 3, 8])
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        options = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias,
                   device, dtype)  # fmt: skip
        norm = lambda: LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)  # noqa: E731
        self.encoder = (
            TransformerEncoder(TransformerEncoderLayer(*options), num_encoder_layers, norm())
            if custom_encoder is None
            else expect_function("Transformer", "custom_encoder", custom_encoder)
        )
        self.decoder = (
            TransformerDecoder(TransformerDecoderLayer(*options), num_decoder_layers, norm())
            if custom_decoder is None
            else expect_function("Transformer", "custom_decoder", custom_decoder)
        )
        self._reset_parameters()
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """``src`` (S, N, E) and ``tgt`` (T, N, E) to (T, N, E), or N first where ``batch_first``, or without N.

        Raises:
            RuntimeError: batches that differ, or another number of features
        """
        at = 0 if self.batch_first else 1
        if src.ndim == 3 and tgt.ndim == 3 and src.shape[at] != tgt.shape[at]:
            raise ShapeError(message("Transformer", f"src has a batch of {src.shape[at]}, tgt of {tgt.shape[at]}"))
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise ShapeError(
                message(
                    "Transformer", f"src has {src.shape[-1]} features, tgt {tgt.shape[-1]}, expected {self.d_model}"
                )
            )
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(  # type: ignore[no-any-return]
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )  # fmt: skip

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """The causal mask: -inf above the diagonal, zeros elsewhere.

        >>> import genesis
        >>> genesis.nn.Transformer.generate_square_subsequent_mask(2)
        tensor([[0., -inf],
                [0., 0.]])
        """
        if sz < 0:
            raise ArgumentValueError(message("generate_square_subsequent_mask", f"sz must not be negative, got {sz}"))
        return _causal_mask(sz, device, dtype)

    def _reset_parameters(self) -> None:
        for p in self.parameters():
            if p.ndim > 1:
                init.xavier_uniform_(p)


explain_all(globals())
explain_all(globals(), "_Layer")
