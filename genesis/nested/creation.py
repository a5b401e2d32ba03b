"""Functions that make nested tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis import ops
from genesis.base import layouts
from genesis.base.errors import ArgumentError, ArgumentValueError, ShapeError, message
from genesis.core.graph.tensor import Tensor, wrap
from genesis.nested.functions import made_of
from genesis.nested.tensor import NestedTensor


def nested_tensor(
    tensor_list: Sequence[Any], *, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
    pin_memory: bool = False,
) -> NestedTensor:  # fmt: skip
    """A nested tensor of copies of tensors, or of lists of numbers, which may differ in one size.

    Raises:
        RuntimeError: they differ in more than that

    >>> import genesis
    >>> x = genesis.nested.nested_tensor([[1.0, 2.0], [3.0]], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad.unbind()
    (tensor([2., 4.]), tensor([6.]))
    """
    parts = [ops.tensor(x, dtype=dtype, device=device) for x in tensor_list]
    out = _made("nested_tensor", parts, layout)
    return out.requires_grad_() if requires_grad else out


def as_nested_tensor(ts: Any, dtype: Any = None, device: Any = None, layout: Any = None) -> NestedTensor:
    """A nested tensor of tensors, to which gradients go; a tensor with a batch is taken apart.

    >>> import genesis
    >>> x = genesis.ones(3, requires_grad=True)
    >>> genesis.nested.as_nested_tensor([x, x[:1]]).sum().backward()
    >>> x.grad
    tensor([2., 1., 1.])
    """
    if isinstance(ts, NestedTensor):
        return ts.to(dtype=dtype, device=device)  # type: ignore[no-any-return]
    parts = [ops.as_tensor(x).to(dtype=dtype, device=device) for x in (ts.unbind() if isinstance(ts, Tensor) else ts)]
    return _made("as_nested_tensor", parts, layout)


def _made(name: str, parts: list[Any], layout: Any) -> NestedTensor:
    if layout not in (None, layouts.strided, layouts.jagged):
        raise ArgumentError(message(name, f"the layout of nested tensors is genesis.jagged, got {layout!r}"))
    if not parts:
        return NestedTensor(wrap(np.empty(0, np.float32)), wrap(np.zeros(1, np.int64)))
    shapes = [tuple(part.shape) for part in parts]
    differing = {d for s in shapes for d, n in enumerate(s) if len(s) == len(shapes[0]) and n != shapes[0][d]}
    if not shapes[0] or len({len(s) for s in shapes}) > 1 or len(differing) > 1:
        problem = f"the tensors differ in more than one size: {', '.join(str(list(s)) for s in shapes[:4])}"
        raise ShapeError(message(name, problem))
    kinds = {part.dtype for part in parts}
    if len(kinds) > 1:
        problem = f"the tensors differ in dtype: {', '.join(sorted(map(str, kinds)))}"
        raise ArgumentError(message(name, problem, hint="dtype=genesis.float32"))
    return made_of(parts, 1 + next(iter(differing), 0))


def nested_tensor_from_jagged(
    values: Tensor, offsets: Tensor | None = None, lengths: Tensor | None = None, jagged_dim: int | None = None,
    min_seqlen: int | None = None, max_seqlen: int | None = None,
) -> NestedTensor:  # fmt: skip
    """A nested tensor on values that are there already, given where each part begins, or how long it is.

    Raises:
        RuntimeError: neither offsets nor lengths; parts that reach beyond the values

    >>> import genesis
    >>> x = genesis.nested.nested_tensor_from_jagged(genesis.arange(5.), genesis.tensor([0, 2, 5]))
    >>> x.sum(1)
    tensor([1., 9.])
    """
    ragged = 1 if jagged_dim is None else jagged_dim
    if offsets is None and lengths is None:
        raise ShapeError(message("nested_tensor_from_jagged", "neither offsets nor lengths"))
    starts = np.cumsum([0, *lengths.tolist()]) if offsets is None else offsets.numpy()  # type: ignore[union-attr]
    if starts.ndim != 1 or not len(starts) or (np.diff(starts) < 0).any() or starts[0] < 0:
        raise ArgumentValueError(message("nested_tensor_from_jagged", f"offsets rise from 0, got {starts.tolist()}"))
    if starts[-1] > values.shape[ragged - 1]:
        problem = f"the parts end at {starts[-1]}, the values have {values.shape[ragged - 1]}"
        raise ShapeError(message("nested_tensor_from_jagged", problem))
    if offsets is not None and lengths is not None:
        return made_of(
            [values.narrow(ragged - 1, int(a), n) for a, n in zip(starts, lengths.tolist(), strict=False)], ragged
        )  # type: ignore[attr-defined]
    whole = starts[0] == 0 and starts[-1] == values.shape[ragged - 1]
    kept = values if whole else values.narrow(ragged - 1, int(starts[0]), int(starts[-1] - starts[0]))  # type: ignore[attr-defined]
    return NestedTensor(kept, wrap((starts - starts[0]).astype(np.int64)), ragged)


def to_padded_tensor(
    input: NestedTensor, padding: float, output_size: Sequence[int] | None = None, out: Any = None
) -> Tensor:
    """A tensor of the size of the largest part, the others filled up with ``padding``.

    >>> import genesis
    >>> genesis.nested.to_padded_tensor(genesis.nested.nested_tensor([[1.0, 2.0], [3.0]]), 0.0)
    tensor([[1., 2.],
            [3., 0.]])
    """
    result = input.to_padded_tensor(padding, output_size)
    return result if out is None else out.copy_(result)  # type: ignore[no-any-return]


def narrow(tensor: Tensor, dim: int, start: Any, length: Any, layout: Any = layouts.jagged) -> NestedTensor:
    """From each example of a batch the ``length`` elements from ``start`` on, which may be others for each.

    >>> import genesis
    >>> x = genesis.nested.narrow(genesis.ones(2, 4), 1, 0, genesis.tensor([1, 3]))
    >>> x.sum(1)
    tensor([1., 3.])
    """
    if dim != 1:
        raise ShapeError(message("nested.narrow", f"dim must be 1, got {dim}"))
    starts, sizes = ([x] * len(tensor) if isinstance(x, int) else x.tolist() for x in (start, length))
    return _made("nested.narrow", [x.narrow(0, a, n) for x, a, n in zip(tensor, starts, sizes, strict=True)], layout)  # type: ignore[attr-defined]


def masked_select(tensor: Tensor, mask: Tensor) -> NestedTensor:
    """From each row of a matrix the elements where a mask is true.

    >>> import genesis
    >>> mask = genesis.tensor([[True, False], [True, True]])
    >>> genesis.nested.masked_select(genesis.ones(2, 2), mask).offsets()
    tensor([0, 1, 3])
    """
    if tensor.layout is not layouts.strided or mask.dtype.name != "bool":
        raise ArgumentError(message("nested.masked_select", f"the mask is {mask.dtype}, it must be bool"))
    mask = mask.expand(tensor.shape)  # type: ignore[attr-defined]
    ends = np.cumsum([0, *mask.reshape(len(mask), -1).sum(1).tolist()])  # type: ignore[attr-defined]
    return NestedTensor(tensor[mask], wrap(ends.astype(np.int64)))
