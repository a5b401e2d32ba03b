"""Multi-head attention; and PyTorch's names for choosing how attention is computed, which here is one way."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from genesis.base.errors import ArgumentError, ArgumentValueError, UnsupportedError, message
from genesis.core.call.refusal import expect_tensor, explain_all
from genesis.core.graph.tensor import Tensor
from genesis.nn import init
from genesis.nn.linear import Linear
from genesis.nn.module import Module
from genesis.nn.parameter import Parameter
from genesis.ops.creation import create
from genesis.ops.learning.multihead import attended


class MultiheadAttention(Module):
    """Attention of several heads, with projections before and after (Vaswani et al. 2017).

    Args:
        embed_dim: features in and out; num_heads: heads that share them; dropout: of the attention weights
        bias: of the projections; add_bias_kv: one more key and its value, learned; add_zero_attn: one more of zeros
        kdim, vdim: features of keys and values, if others than ``embed_dim``
        batch_first: tensors are (batch, sequence, features) instead of (sequence, batch, features)

    Raises:
        ValueError: the features cannot be divided among the heads

    >>> import genesis
    >>> x = genesis.randn(2, 5, 8)
    >>> genesis.nn.MultiheadAttention(8, 2, batch_first=True)(x, x, x)[0].shape
    genesis.Size([2, 5, 8])
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0 or embed_dim % num_heads:
            raise ArgumentValueError(
                message("MultiheadAttention", f"{embed_dim} features cannot be divided among {num_heads} heads")
            )
        self.embed_dim, self.num_heads, self.dropout, self.batch_first = embed_dim, num_heads, dropout, batch_first
        self.kdim, self.vdim = embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim
        self.head_dim, self.add_zero_attn = embed_dim // num_heads, add_zero_attn
        self._qkv_same_embed_dim = self.kdim == embed_dim == self.vdim
        same, n, made = self._qkv_same_embed_dim, embed_dim, {"device": device, "dtype": dtype}
        shapes: dict[str, Any] = {
            "q_proj_weight": None if same else (n, n),
            "k_proj_weight": None if same else (n, self.kdim),
            "v_proj_weight": None if same else (n, self.vdim),
            "in_proj_weight": (3 * n, n) if same else None,
            "in_proj_bias": (3 * n,) if bias else None,
        }
        for name, shape in shapes.items():
            self.register_parameter(name, None if shape is None else Parameter(create.empty(shape, **made)))
        self.out_proj = Linear(n, n, bias, **made)
        for name in ("bias_k", "bias_v"):
            self.register_parameter(name, Parameter(create.empty(1, 1, n, **made)) if add_bias_kv else None)
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias), init.zeros_(self.out_proj.bias)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The attended values and the attention weights; bool masks are True where attention is not allowed, floating
        ones are added.

        Shapes:
            query (L, N, E), key (S, N, kdim), value (S, N, vdim), or with N first where ``batch_first``; without a
            batch (L, E); ``key_padding_mask`` (N, S); ``attn_mask`` (L, S) or (N * heads, L, S); weights (N, L, S), or
            (N, heads, L, S) without ``average_attn_weights``
        """
        for what, x in (("query", query), ("key", key), ("value", value)):
            expect_tensor("MultiheadAttention", what, x)
        out, weights = attended(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k,
            self.bias_v, self.add_zero_attn, self.dropout, self.training, key_padding_mask, need_weights, attn_mask,
            not self._qkv_same_embed_dim, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight, None, None, average_attn_weights, is_causal,
            self.batch_first,
        )  # fmt: skip
        return self.out_proj(out), weights


class SDPBackend(enum.Enum):
    """PyTorch's ways to compute attention; here there is one, whatever is asked for."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


WARN_FOR_UNFUSED_KERNELS = False


@contextmanager
def sdpa_kernel(backends: Any, set_priority: bool = False) -> Iterator[None]:
    """Accepted for PyTorch's sake: attention is computed as always inside.

    Raises:
        TypeError: ``backends`` are no `SDPBackend`

    >>> import genesis
    >>> from genesis.nn.attention import SDPBackend, sdpa_kernel
    >>> q = genesis.ones(1, 2)
    >>> with sdpa_kernel(SDPBackend.MATH):
    ...     genesis.nn.functional.scaled_dot_product_attention(q, q, q)
    tensor([[1., 1.]])
    """
    given = list(backends) if isinstance(backends, list | tuple | set) else [backends]
    if not given or not all([isinstance(b, SDPBackend) for b in given]):
        raise ArgumentError(message("sdpa_kernel", f"backends must be SDPBackend or a list of them, got {given}"))
    yield


def list_flash_attention_impls() -> list[str]:
    """The implementations of flash attention that can be chosen: none."""
    return []


def current_flash_attention_impl() -> str | None:
    """The implementation of flash attention that was chosen: none."""
    return None


def activate_flash_attention_impl(impl: str) -> None:
    """Refused: there is one way to compute attention."""
    raise UnsupportedError(
        message("activate_flash_attention_impl", f"there is no implementation {impl!r}, attention is computed one way")
    )


def register_flash_attention_impl(impl: str, *, register_fn: Any) -> None:
    """Refused: kernels are attached to the op, see `genesis.library`."""
    raise UnsupportedError(
        message(
            "register_flash_attention_impl", "attention is computed one way", hint="genesis.core.call.kernels.attach"
        )
    )


def restore_flash_attention_impl(_raise_warn: bool = True) -> None:
    """Nothing was changed, so there is nothing to do."""


explain_all(globals(), "MultiheadAttention", "activate_flash_attention_impl", "register_flash_attention_impl")
