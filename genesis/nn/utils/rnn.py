"""Sequences of several lengths in one tensor: padded, or packed without padding."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from genesis.base.errors import ArgumentError, ArgumentValueError, ShapeError, message
from genesis.core.call.refusal import explain_all
from genesis.core.graph.tensor import Tensor
from genesis.ops.creation.create import full
from genesis.ops.creation.outside import tensor
from genesis.ops.shapes.join import cat, stack


class _Fields(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Fields):
    """Sequences of several lengths without padding: the first rows of all, then the second ones, and so on.

    ``data`` has a row for each element, ``batch_sizes`` (int64, on the CPU) how many sequences have so many elements.
    ``sorted_indices`` brings sequences into the order of their lengths, ``unsorted_indices`` back; both are None where
    they came in that order. `pack_padded_sequence` and `pack_sequence` make them; recurrent layers take and give them.

    >>> import genesis
    >>> from genesis.nn.utils.rnn import pack_sequence
    >>> packed = pack_sequence([genesis.tensor([1, 2, 3]), genesis.tensor([4])])
    >>> packed.data, packed.batch_sizes
    (tensor([1, 4, 2, 3]), tensor([2, 1, 1]))
    """

    __slots__ = ()

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        if batch_sizes is None:
            if not isinstance(data, list | tuple) or len(data) != 2:
                raise ArgumentError(message("PackedSequence", "batch_sizes is missing"))
            data, batch_sizes = data
        if batch_sizes.device.type != "cpu":
            raise ArgumentValueError(
                message("PackedSequence", f"batch_sizes must be on cpu, are on {batch_sizes.device}")
            )
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def _mapped(self, function: Callable[[Tensor], Tensor], indices: Callable[[Tensor], Tensor]) -> PackedSequence:
        data = function(self.data)
        if data is self.data:
            return self
        order, back = (None if i is None else indices(i) for i in (self.sorted_indices, self.unsorted_indices))
        return type(self)(data, self.batch_sizes, order, back)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """With ``data`` converted as by `Tensor.to`; itself, if that changes nothing."""
        moved = lambda i: i.to(self.data.to(*args, **kwargs).device)  # noqa: E731
        return self._mapped(lambda x: x.to(*args, **kwargs), moved)  # type: ignore[no-any-return]

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        return self.to("cuda" if not args and "device" not in kwargs else kwargs.get("device", *args[:1]))

    def cpu(self) -> PackedSequence:
        return self.to("cpu")

    def pin_memory(self) -> PackedSequence:
        """Itself: nothing but the processor reads this memory."""
        return self

    def is_pinned(self) -> bool:
        """Whether ``data`` is in memory that a device can read by itself."""
        return False

    @property
    def is_cuda(self) -> bool:
        return self.data.device.type == "cuda"  # type: ignore[no-any-return]


for _name in ("double", "float", "half", "long", "int", "short", "char", "byte"):

    def _converted(self: PackedSequence, _name: str = _name) -> PackedSequence:
        return self._mapped(lambda x: getattr(x, _name)(), lambda i: i)

    _converted.__name__, _converted.__doc__ = _name, f"With ``data`` converted as by `Tensor.{_name}`."
    setattr(PackedSequence, _name, _converted)


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes another.

    >>> import genesis
    >>> genesis.nn.utils.rnn.invert_permutation(genesis.tensor([2, 0, 1]))
    tensor([1, 2, 0])
    """
    return None if permutation is None else permutation.argsort()  # type: ignore[attr-defined, no-any-return]


def _lengths(name: str, lengths: Any) -> list[int]:
    numbers = lengths.tolist() if isinstance(lengths, Tensor) else list(lengths)
    if not all([isinstance(n, int | np.integer) for n in numbers]):
        raise ArgumentError(message(name, f"lengths must be integers, got {numbers}"))
    return [int(n) for n in numbers]


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Take the padding out of sequences of several lengths.

    Args:
        input: (T, B, ...), or (B, T, ...) with ``batch_first``
        lengths: the number of elements of each sequence, at least 1
        enforce_sorted: the longest sequence is first; if False, they are brought in this order, and back after

    Raises:
        RuntimeError: lengths that are not positive, too large, not one for each sequence, or not in order

    >>> import genesis
    >>> from genesis.nn.utils.rnn import pack_padded_sequence
    >>> pack_padded_sequence(genesis.tensor([[1, 2], [3, 0]]), [2, 1], batch_first=True).data
    tensor([1, 3, 2])
    """
    name, order = "pack_padded_sequence", None
    counts = _lengths(name, lengths)
    if not enforce_sorted:
        order = tensor(np.argsort(-np.array(counts), kind="stable"), device=input.device)
        counts = sorted(counts, reverse=True)
    by_step = input.transpose(0, 1) if batch_first else input  # type: ignore[attr-defined]
    _check_lengths(name, counts, by_step)
    if order is not None:
        by_step = by_step.index_select(1, order)
    sizes = [sum([n > t for n in counts]) for t in range(counts[0])]
    data = cat([by_step[t, :n] for t, n in enumerate(sizes)])
    return PackedSequence(data, tensor(sizes), order)


def _check_lengths(name: str, lengths: list[int], by_step: Tensor) -> None:
    problem = ""
    if by_step.ndim < 2 or len(lengths) != by_step.shape[1]:
        problem = f"{len(lengths)} lengths for input of shape {list(by_step.shape)}"
    elif not lengths or min(lengths) < 1:
        problem = f"lengths must be positive, got {lengths}"
    elif max(lengths) > by_step.shape[0]:
        problem = f"a sequence of {max(lengths)} elements in {by_step.shape[0]} steps"
    elif any([b > a for a, b in pairwise(lengths)]):
        problem = f"lengths must not grow, got {lengths}"
    if problem:
        hint = "enforce_sorted=False" if "grow" in problem else None
        raise ShapeError(message(name, problem, [("input", by_step._spec())], hint))


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """Sequences with padding after their ends, and their lengths: the inverse of `pack_padded_sequence`.

    Raises:
        ValueError: ``total_length`` is less than the longest sequence

    >>> import genesis
    >>> from genesis.nn.utils.rnn import pack_sequence, pad_packed_sequence
    >>> pad_packed_sequence(pack_sequence([genesis.ones(3), genesis.ones(1)]), batch_first=True)
    (tensor([[1., 1., 1.],
            [1., 0., 0.]]), tensor([3, 1]))
    """
    sizes = sequence.batch_sizes.tolist()
    steps, batch = len(sizes), sizes[0]
    if total_length is not None and total_length < steps:
        raise ArgumentValueError(
            message("pad_packed_sequence", f"total_length is {total_length}, the longest sequence has {steps} elements")
        )
    width = sequence.data.shape[1:]
    rows = []
    for piece, n in zip(sequence.data.split(sizes), sizes, strict=True):  # type: ignore[attr-defined]
        rows.append(piece if n == batch else cat([piece, _filled(piece, (batch - n, *width), padding_value)]))
    if total_length is not None:
        rows += [_filled(sequence.data, (batch, *width), padding_value)] * (total_length - steps)
    out, lengths = stack(rows), tensor([sum([n > i for n in sizes]) for i in range(batch)])
    if sequence.unsorted_indices is not None:
        out, lengths = out.index_select(1, sequence.unsorted_indices), lengths[sequence.unsorted_indices.to("cpu")]  # type: ignore[attr-defined]
    return out.transpose(0, 1) if batch_first else out, lengths  # type: ignore[attr-defined]


def _filled(like: Tensor, shape: Any, value: float) -> Tensor:
    return full(shape, value, dtype=like.dtype, device=like.device)


def pad_sequence(
    sequences: Iterable[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Stack sequences of several lengths, (L, ...) each, with padding: (T, B, ...), or (B, T, ...) with ``batch_first``.

    Raises:
        RuntimeError: there are no sequences
        ValueError: ``padding_side`` is neither "left" nor "right"

    >>> import genesis
    >>> genesis.nn.utils.rnn.pad_sequence([genesis.ones(2), genesis.ones(3)], batch_first=True, padding_side="left")
    tensor([[0., 1., 1.],
            [1., 1., 1.]])
    """
    given = list(sequences)
    if padding_side not in ("left", "right"):
        raise ArgumentValueError(
            message("pad_sequence", f"padding_side must be 'left' or 'right', got {padding_side!r}")
        )
    if not given:
        raise ShapeError(message("pad_sequence", "there are no sequences"))
    if min([x.ndim for x in given]) < 1:
        raise ShapeError(message("pad_sequence", "a sequence needs at least one dimension"))
    steps, padded = max([len(x) for x in given]), []
    for x in given:
        if len(x) < steps:
            rest = _filled(given[0], (steps - len(x), *x.shape[1:]), padding_value)
            x = cat([rest, x] if padding_side == "left" else [x, rest])
        padded.append(x)
    return stack(padded, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Any, batch_first: bool = False) -> list[Tensor]:
    """The sequences that `pad_sequence` stacked.

    >>> import genesis
    >>> genesis.nn.utils.rnn.unpad_sequence(genesis.tensor([[1, 2], [3, 0]]), genesis.tensor([2, 1]), batch_first=True)
    [tensor([1, 2]), tensor([3])]
    """
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)  # type: ignore[attr-defined]
    return [row[:n] for row, n in zip(rows, _lengths("unpad_sequence", lengths), strict=True)]


def pack_sequence(sequences: list[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences of several lengths, (L, ...) each.

    >>> import genesis
    >>> genesis.nn.utils.rnn.pack_sequence([genesis.ones(1), genesis.ones(2)], enforce_sorted=False).sorted_indices
    tensor([1, 0])
    """
    lengths = [len(x) for x in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences that `pack_sequence` packed.

    >>> import genesis
    >>> from genesis.nn.utils.rnn import pack_sequence, unpack_sequence
    >>> unpack_sequence(pack_sequence([genesis.tensor([1, 2]), genesis.tensor([3])]))
    [tensor([1, 2]), tensor([3])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


explain_all(globals())
