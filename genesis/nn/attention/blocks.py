"""Masks of attention that know which blocks of them have elements: what `flex_attention` takes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from genesis.autograd.func.batches import vmap
from genesis.base.dtypes import int32
from genesis.base.errors import ArgumentError, ArgumentValueError, ShapeError, UnsupportedError, message
from genesis.base.text import Printed
from genesis.core.call.refusal import explain_all
from genesis.core.graph.tensor import Tensor
from genesis.ops.creation import create
from genesis.ops.creation.sequences import arange
from genesis.ops.pointwise.choice import where

MaskMod = Callable[..., Any]
BLOCK = 128


def over_grid(function: Callable[..., Any], scored: bool) -> Callable[..., Any]:
    """A function of single numbers (score, b, h, q, kv), or without the score, of all places (B, H, Q, KV)."""
    first = (0,) if scored else ()
    for dims in ((None, None, None, 0), (None, None, 0, None), (None, 0, None, None), (0, None, None, None)):
        function = vmap(function, (*first, *dims))
    return function


def grid(*sizes: int) -> list[Tensor]:
    """The numbers of all places along each dimension."""
    return [arange(n) for n in sizes]


def noop_mask(batch: Any, head: Any, token_q: Any, token_kv: Any) -> Any:
    """A mask that lets everything through."""
    return batch.new_ones((), dtype=bool)


def and_masks(*mask_mods: MaskMod) -> MaskMod:
    """The mask of what all of some masks let through.

    >>> from genesis.nn.attention.flex_attention import and_masks, create_mask
    >>> causal, near = (lambda b, h, q, kv: q >= kv), (lambda b, h, q, kv: q - kv < 2)
    >>> create_mask(and_masks(causal, near), None, None, 3, 3).int()[0, 0]
    tensor([[1, 0, 0],
            [1, 1, 0],
            [0, 1, 1]], dtype=genesis.int32)
    """
    _check_callable("and_masks", mask_mods)

    def and_mask(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        result = b.new_ones((), dtype=bool)
        for mask in mask_mods:
            result = result & mask(b, h, q_idx, kv_idx)
        return result

    return and_mask


def or_masks(*mask_mods: MaskMod) -> MaskMod:
    """The mask of what any of some masks lets through."""
    _check_callable("or_masks", mask_mods)

    def or_mask(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        result = b.new_zeros((), dtype=bool)
        for mask in mask_mods:
            result = result | mask(b, h, q_idx, kv_idx)
        return result

    return or_mask


def _check_callable(name: str, mods: Any) -> None:
    for mod in mods:
        if not callable(mod):
            raise ArgumentError(message(name, f"masks are functions of (b, h, q_idx, kv_idx), got {mod!r}"))


def arguments_of(name: str, function: Any) -> int:
    """How many arguments a mask or a change of scores takes: 4 or 5."""
    _check_callable(name, [function])
    code = getattr(function, "__code__", None)
    if code is None:
        return 4
    count = code.co_argcount - len(function.__defaults__ or ()) - hasattr(function, "__self__")
    if count not in (4, 5):
        text = f"a mask takes (b, h, q_idx, kv_idx), a change of scores one more before them; this takes {count}"
        raise ArgumentError(message(name, text))
    return count


def create_mask(
    mod_fn: Callable[..., Any],
    B: int | None,  # noqa: N803
    H: int | None,  # noqa: N803
    Q_LEN: int,  # noqa: N803
    KV_LEN: int,  # noqa: N803
    device: Any = None,
) -> Tensor:
    """What a function lets through, as a bool tensor (B, H, Q_LEN, KV_LEN).

    Args:
        mod_fn: ``mask_mod(b, h, q_idx, kv_idx)``, or ``score_mod(score, b, h, q_idx, kv_idx)``, which hides with -inf

    >>> from genesis.nn.attention.flex_attention import create_mask
    >>> create_mask(lambda b, h, q, kv: q >= kv, None, None, 2, 3).int()[0, 0]
    tensor([[1, 0, 0],
            [1, 1, 0]], dtype=genesis.int32)
    """
    sizes = (1 if B is None else B, 1 if H is None else H, Q_LEN, KV_LEN)
    if arguments_of("create_mask", mod_fn) == 5:
        scores = over_grid(mod_fn, True)(create.zeros(sizes), *grid(*sizes))
        return ~(scores == -math.inf)  # type: ignore[no-any-return]
    return over_grid(mod_fn, False)(*grid(*sizes)).expand(sizes)  # type: ignore[no-any-return]


# ---- blocks, as lists of them for each row


def _ordered(dense: Tensor) -> tuple[Tensor, Tensor]:
    """How many blocks each row has, and all blocks of it, those that it has first."""
    dense = dense.to(int32)
    return dense.sum(-1, dtype=int32), dense.argsort(-1, descending=True, stable=True).to(int32)


def _dense(count: Tensor, indices: Tensor) -> Tensor:
    """The blocks of rows as a tensor of 0 and 1."""
    columns = indices.shape[-1]
    listed = arange(columns) < count.unsqueeze(-1)
    out = create.zeros((*indices.shape[:-1], columns + 1), dtype=int32)  # one more, for what is not listed
    out = out.scatter(-1, where(listed, indices, columns).long(), 1)
    return out[..., :columns]  # type: ignore[no-any-return]


def _transposed(count: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
    return _ordered(_dense(count, indices).transpose(-2, -1))


def _sliced(batch: Any, head: Any, token_q: Any, token_kv: Any) -> Any:
    raise ArgumentError(
        message("flex_attention", "the mask_mod of a sliced BlockMask: indices there are others",
                hint="sliced.mask_mod = one that is right for it, of the mask_mod of the whole mask")
    )  # fmt: skip


class BlockMask(Printed):
    """A mask by blocks: for each row of blocks those in which the mask is to be asked, and those that are full.

    Made by `create_block_mask`, or by ``BlockMask.from_kv_blocks``. ``kv_num_blocks`` (B, H, rows) and ``kv_indices``
    (B, H, rows, columns) list the blocks in which ``mask_mod`` decides, ``full_kv_num_blocks`` and
    ``full_kv_indices`` those in which everything is let through; the names with ``q`` have the same by columns.
    """

    def __init__(
        self,
        seq_lengths: tuple[int, int],
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None,
        full_kv_indices: Tensor | None,
        q_num_blocks: Tensor | None,
        q_indices: Tensor | None,
        full_q_num_blocks: Tensor | None,
        full_q_indices: Tensor | None,
        BLOCK_SIZE: tuple[int, int] = (BLOCK, BLOCK),  # noqa: N803
        mask_mod: MaskMod = noop_mask,
    ) -> None:
        if kv_indices.ndim < 2:
            raise ShapeError(
                message("BlockMask", f"kv_indices must have 2 dimensions or more, it has {kv_indices.ndim}")
            )
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise ArgumentValueError(message("BlockMask", "full_kv_num_blocks and full_kv_indices belong together"))
        self.seq_lengths, self.BLOCK_SIZE, self.mask_mod = seq_lengths, BLOCK_SIZE, mask_mod
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = q_num_blocks, q_indices
        self.full_q_num_blocks, self.full_q_indices = full_q_num_blocks, full_q_indices

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = BLOCK,  # noqa: N803
        mask_mod: MaskMod | None = None,
        seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
    ) -> BlockMask:
        """A mask of the blocks of its rows."""
        size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
        if seq_lengths is None:
            seq_lengths = (kv_indices.shape[-2] * size[0], kv_indices.shape[-1] * size[1])
        by_columns = _transposed(kv_num_blocks, kv_indices) if compute_q_blocks else (None, None)
        full = (None, None)
        if compute_q_blocks and full_kv_num_blocks is not None and full_kv_indices is not None:
            full = _transposed(full_kv_num_blocks, full_kv_indices)
        return cls(seq_lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, *by_columns, *full,
                   size, noop_mask if mask_mod is None else mask_mod)  # fmt: skip

    @property
    def shape(self) -> tuple[int, ...]:
        """(B, H, Q, KV)."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """The number of elements of the whole mask."""
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """How many percent of the elements are in blocks that are left out."""
        blocks = int(self.kv_num_blocks.sum()) + (
            0 if self.full_kv_num_blocks is None else int(self.full_kv_num_blocks.sum())
        )
        return 100 * (1 - blocks * math.prod(self.BLOCK_SIZE) / self.numel())

    def to_dense(self) -> Tensor:
        """Which blocks have elements: (B, H, rows, columns) of 0 and 1."""
        out = _dense(self.kv_num_blocks, self.kv_indices)
        if self.full_kv_num_blocks is None or self.full_kv_indices is None:
            return out
        return out | _dense(self.full_kv_num_blocks, self.full_kv_indices)  # type: ignore[no-any-return]

    def elements(self, batch: int, heads: int) -> Tensor:
        """What the mask lets through, (B, H, Q, KV): in its blocks what ``mask_mod`` says, in full ones all."""
        sizes = (batch, heads, *self.seq_lengths)
        out = over_grid(self.mask_mod, False)(*grid(*sizes)) & self._spread(self.kv_num_blocks, self.kv_indices)
        if self.full_kv_num_blocks is not None and self.full_kv_indices is not None:
            out = out | self._spread(self.full_kv_num_blocks, self.full_kv_indices)
        return out  # type: ignore[no-any-return]

    def _spread(self, count: Tensor, indices: Tensor) -> Any:
        blocks, (rows, columns), (q, kv) = _dense(count, indices).bool(), self.BLOCK_SIZE, self.seq_lengths
        at = [(arange(n) // size) for n, size in ((q, rows), (kv, columns))]
        return blocks[..., at[0], :][..., at[1]]

    def __getitem__(self, index: Any) -> BlockMask:
        """The mask of some examples, heads, or rows of blocks; its ``mask_mod`` has to be set anew."""
        index = index if isinstance(index, tuple) else (index,)
        whole = self.kv_num_blocks.shape
        index = tuple([
            (slice(i % n, i % n + 1) if -n <= i < n else slice(n, n)) if isinstance(i, int) else i
            for i, n in zip((*index, *[slice(None)] * 3)[:3], whole, strict=False)
        ])  # fmt: skip
        parts = (self.kv_num_blocks, self.kv_indices, self.full_kv_num_blocks, self.full_kv_indices)
        return BlockMask.from_kv_blocks(*[None if x is None else x[index] for x in parts], BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=_sliced,
                                        seq_lengths=self.seq_lengths, compute_q_blocks=self.q_indices is not None)  # type: ignore[arg-type]  # fmt: skip

    def _adjust(self, new_q_len: int, new_kv_len: int) -> BlockMask:
        """The upper left corner, for shorter sequences."""
        rows, columns = (-(-n // size) for n, size in zip((new_q_len, new_kv_len), self.BLOCK_SIZE, strict=True))
        parts: list[Any] = []
        for count, indices in ((self.kv_num_blocks, self.kv_indices), (self.full_kv_num_blocks, self.full_kv_indices)):
            if count is None or indices is None:
                parts += [None, None]
            else:
                parts += _ordered(_dense(count, indices)[..., :rows, :columns])
        return BlockMask.from_kv_blocks(*parts, BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=self.mask_mod, seq_lengths=(new_q_len, new_kv_len),
                                        compute_q_blocks=self.q_indices is not None)  # fmt: skip

    def to(self, device: Any) -> BlockMask:
        """The mask itself: there is one device."""
        self.kv_indices.to(device)  # refuses what is no device
        return self

    def _text(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, BLOCK_SIZE={self.BLOCK_SIZE})"


def create_block_mask(
    mask_mod: MaskMod,
    B: int | None,  # noqa: N803
    H: int | None,  # noqa: N803
    Q_LEN: int,  # noqa: N803
    KV_LEN: int,  # noqa: N803
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = BLOCK,  # noqa: N803
    _compile: bool = False,
    separate_full_blocks: bool = True,
    compute_dq_write_order: bool = False,
    dq_kv_order: bool = True,
) -> BlockMask:
    """A `BlockMask` of what a function lets through.

    Args:
        mask_mod: ``mask_mod(b, h, q_idx, kv_idx)`` of 0-d tensors gives a bool; it may index tensors of its own
        B, H: examples and heads; None where the mask is the same for all
        BLOCK_SIZE: of rows and of columns; separate_full_blocks: whether full blocks are listed on their own

    >>> from genesis.nn.attention.flex_attention import create_block_mask
    >>> create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 4, 4, BLOCK_SIZE=2).to_dense()[0, 0]
    tensor([[1, 0],
            [1, 1]], dtype=genesis.int32)
    """
    name = "create_block_mask"
    if arguments_of(name, mask_mod) != 4:
        raise ArgumentError(message(name, "mask_mod takes (b, h, q_idx, kv_idx), this takes 5 arguments"))
    if compute_dq_write_order:
        raise UnsupportedError(message(name, "the order of writes is one of kernels on GPUs", hint="leave it out"))
    rows, columns = size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN)
    whole = create.zeros((*mask.shape[:2], -(-Q_LEN // rows) * rows, -(-KV_LEN // columns) * columns), dtype=int32)
    whole[..., :Q_LEN, :KV_LEN] = mask.to(int32)  # type: ignore[index]
    counts = whole.unflatten(-1, (-1, columns)).unflatten(-3, (-1, rows)).sum([-3, -1])
    full = counts == rows * columns
    some = (counts > 0) & ~full if separate_full_blocks else counts > 0
    lists = (*_ordered(some), *(_ordered(full) if separate_full_blocks else (None, None)))
    return BlockMask.from_kv_blocks(*lists, BLOCK_SIZE=size, mask_mod=mask_mod, seq_lengths=(Q_LEN, KV_LEN))


explain_all(globals(), "create_mask", "create_block_mask")
