"""Looking up rows by number, and numbers as one-hot rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.arrays.memory import DeviceArray
from genesis.arrays.spec import Spec
from genesis.base.errors import DomainError, DTypeError, GraphError, ShapeError, message
from genesis.base.memory import impossible, too_large
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.kinds import case, composite
from genesis.base.dtypes import int64, whole
from genesis.core.functions.function import Function
from genesis.core.graph.modes import ACTIVE, LEVELS, no_grad
from genesis.core.graph.tensor import Tensor, wrap
from genesis.core.graph.tracing import tracer
from genesis.ops.creation.sequences import arange
from genesis.ops.pointwise.choice import where
from genesis.ops.products.sparse import SparseTensor
from genesis.ops.reductions.norms import norm
from genesis.core.call.kinds.indexing import AT, ROW
from genesis.ops.indexing.index import check_index, take_index
from genesis.ops.indexing.keys import all_within, in_range

_I64 = np.dtype(np.int64)


def _checked(name: str, input: Tensor, rows: int, what: str) -> Tensor:
    if input._array.dtype.kind not in "iu":
        raise DTypeError(message(name, f"indices must be integers, they are {input.dtype}", hint="input.long()"))
    return input if isinstance(input._array, Spec) else wrap(in_range(name, input, rows, f"{rows} {what}"))


@composite(method=False, torch_name="nn.functional.embedding")
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of ``weight`` by number; the row ``padding_idx`` gets no gradient.

    Args:
        max_norm: rows that are looked up and whose ``norm_type``-norm is larger are scaled down to it, in place
        scale_grad_by_freq: the gradient of a row is divided by how often it was looked up
        sparse: the gradient of ``weight`` is a sparse tensor, of the rows that were looked up; not with
            ``scale_grad_by_freq``

    Raises:
        IndexError: a number without a row
        RuntimeError: numbers that are not integers, or a weight that is not a matrix

    >>> import genesis
    >>> genesis.nn.functional.embedding(genesis.tensor([1, 0]), genesis.tensor([[1., 2.], [3., 4.]]))
    tensor([[3., 4.],
            [1., 2.]])
    """
    table, numbers = weight._array, input._array
    plain = table.__class__ is np.ndarray is numbers.__class__ and not (ACTIVE or LEVELS) and max_norm is None
    plain = plain and numbers.dtype is _I64 and table.ndim == 2 and numbers.size > 0 and all_within(numbers, len(table))
    if plain and weight._node is None:  # nothing to record, or to look at: a third of the time
        return wrap(take_index.op.kernel(table, numbers, (AT,)))
    if table.ndim != 2:
        raise ShapeError(
            message(
                "embedding", f"weight must be a matrix, it has {weight.ndim} dimensions", [("weight", weight._spec())]
            )
        )
    if not plain and (max_norm is not None or not _by_kernel(weight, input)):
        input = _checked("embedding", input, weight.shape[0], "rows")
    if isinstance(input._array, Spec):
        return wrap(Spec((*input._array.shape, weight.shape[1]), weight._array.dtype, input.device))
    if max_norm is not None:
        _shorten(input, weight, max_norm, norm_type)
    if sparse and weight._node is not None and _plain(weight, input) and tracer.get() is None:
        return SparseRows.apply(weight, input, padding_idx, scale_grad_by_freq)
    rows = _rows(weight, input)
    if scale_grad_by_freq and weight.requires_grad:
        rows = _scaled_gradient(rows, input, weight.shape[0])
    if padding_idx is None or not weight.requires_grad:
        return rows
    padding = padding_idx % weight.shape[0]
    return where((input == padding).unsqueeze(-1), rows.detach(), rows)


def _plain(*tensors: Tensor) -> bool:
    return all([x._array.__class__ is np.ndarray for x in tensors])


class SparseRows(Function):
    """Rows of a matrix, whose gradient names the rows: the others are not even looked at."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, input: Tensor, padding_idx: int | None, scaled: bool) -> Tensor:  # type: ignore[override]
        ctx.flat, ctx.size, ctx.scaled = input.detach().reshape(-1).to(int64), tuple(weight.shape), scaled
        ctx.padding = None if padding_idx is None else padding_idx % weight.shape[0]
        return weight[ctx.flat].reshape((*input.shape, weight.shape[1]))

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:  # type: ignore[override]
        if ctx.scaled:
            raise GraphError(message("embedding", "scale_grad_by_freq is not supported with sparse gradients"))
        flat, values = ctx.flat, g.reshape(-1, ctx.size[1])
        if ctx.padding is not None:
            kept = flat != ctx.padding
            flat, values = flat[kept], values[kept]
        if values._node is None:
            values = values._shared()  # the gradient's memory may be another's
        return SparseTensor(flat.unsqueeze(0), values, ctx.size), None, None, None


def _by_kernel(weight: Tensor, input: Tensor) -> bool:
    """Whether rows are taken by a device, whose kernel says which number is none."""
    array = input._array
    plain = array.__class__ is weight._array.__class__ and not ACTIVE and not LEVELS
    return plain and isinstance(array, DeviceArray) and array.ndim > 0 and array.dtype.kind in "iu"


def _rows(weight: Tensor, input: Tensor) -> Tensor:
    """The rows with these numbers, which are there."""
    kind = weight._array.__class__
    plain = input._array.__class__ is kind and not ACTIVE and not LEVELS
    if _by_kernel(weight, input):
        return take_index(weight, input, (ROW,))  # type: ignore[no-any-return]
    if plain and kind is np.ndarray:
        rows = take_index(weight, wrap(input._array.reshape(-1)), (AT,))
    else:
        check_index("embedding", weight, input)
        rows = weight[input.reshape(-1)]
    return rows if input.ndim == 1 else rows.reshape((*input._array.shape, weight._array.shape[1]))  # type: ignore[no-any-return]


def _shorten(input: Tensor, weight: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale rows down that are looked up and too long."""
    with no_grad():
        used = input.reshape(-1).unique()  # type: ignore[attr-defined]
        rows = weight[used]
        sizes = norm(rows, norm_type, 1, True)
        if bool((sizes > max_norm).any()):  # else the weight counts as unchanged
            shorter = rows * (max_norm / (sizes + 1e-7))
            weight.index_copy_(0, used, where(sizes > max_norm, shorter, rows))  # type: ignore[attr-defined]


def _scaled_gradient(rows: Tensor, input: Tensor, count: int) -> Tensor:
    """The same rows, whose gradients are divided by how often each number is there."""
    flat = input.reshape(-1).long()  # type: ignore[attr-defined]
    often = flat.new_zeros(count).index_add(0, flat, flat.new_ones(flat.shape))  # type: ignore[attr-defined]
    constant = rows.detach()
    return constant + (rows - constant) / often[input].unsqueeze(-1).to(rows.dtype)  # type: ignore[operator]


samples(embedding, lambda t: [case(t.int(2, 3, low=0, high=4), t(4, 2)), case(t.int(low=0, high=4), t(4, 2))])

wrong_inputs(
    embedding,
    (lambda t: case(t.int(1, low=9, high=10), t(4, 2)), IndexError, "embedding: index 9 is out of range for 4 rows"),
    (lambda t: case(t(1), t(4, 2)), RuntimeError, "embedding: indices must be integers"),
)


_DIRECT = 1 << 28  # numbers of ones and zeros that may be written at once


@composite(method=False, dtypes="i", torch_name="nn.functional.one_hot")
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Each number as a row of zeros with a one at its place, int64; as many classes as needed for -1.

    >>> import genesis
    >>> genesis.nn.functional.one_hot(genesis.tensor([1, 0]), 2)
    tensor([[0, 1],
            [1, 0]])
    """
    num_classes = whole(num_classes)
    if isinstance(tensor._array, Spec):
        return wrap(Spec((*tensor._array.shape, num_classes), np.dtype(np.int64), tensor.device))
    if not isinstance(num_classes, int) or num_classes < -1:
        raise DomainError(
            message(
                "one_hot", f"num_classes must be an integer from 0, or -1 for as many as needed, got {num_classes!r}"
            )
        )
    if not tensor.numel() and num_classes < 1:
        raise DomainError(
            message("one_hot", "an empty tensor does not say how many classes there are", hint="num_classes")
        )
    classes = int(tensor.max()) + 1 if num_classes == -1 else num_classes
    shape = (*tensor.shape, classes)
    if impossible(shape, np.dtype(np.int64)):
        raise too_large("one_hot", shape, np.dtype(np.int64), f"i64{list(shape)}")
    tensor = _checked("one_hot", tensor, classes, "classes")
    array = tensor._array
    if array.__class__ is np.ndarray and 0 < array.size * classes < _DIRECT and not ACTIVE and not LEVELS:
        out = np.zeros(shape, np.int64)
        out.reshape(-1)[np.arange(0, out.size, classes) + array.reshape(-1)] = 1
        return wrap(out)
    return (tensor.unsqueeze(-1) == arange(classes, device=tensor.device)).to(int64)


samples(one_hot, lambda t: [case(t.int(3, low=0, high=4), 4), case(t.int(low=0, high=2), 2)])

wrong_inputs(
    one_hot, (lambda t: case(t.int(1, low=4, high=5), 3), IndexError, "one_hot: index 4 is out of range for 3 classes")
)


FUNCTIONAL = ["embedding", "one_hot"]
__all__: list[str] = []
