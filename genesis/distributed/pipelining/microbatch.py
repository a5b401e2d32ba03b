"""A batch in chunks, and results of chunks as one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from genesis.base.errors import ArgumentError, ArgumentValueError, message
from genesis.base.pytree import flatten_up_to, tree_flatten, tree_map, tree_unflatten
from genesis.core.call.refusal import explain_all
from genesis.core.graph.tensor import Tensor
from genesis.ops.shapes.join import cat
from genesis.ops.shapes.split import tensor_split


class TensorChunkSpec:
    """Along which dimension a tensor is divided into chunks, or chunks are joined.

    >>> import genesis
    >>> from genesis.distributed.pipelining.microbatch import TensorChunkSpec, split_args_kwargs_into_chunks
    >>> args, _ = split_args_kwargs_into_chunks((genesis.ones(4, 6),), {}, 2, TensorChunkSpec.from_tuple((1,)))
    >>> [x.shape for x, in args]
    [genesis.Size([4, 3]), genesis.Size([4, 3])]
    """

    def __init__(self, split_dim: int) -> None:
        self.split_dim = split_dim

    def __repr__(self) -> str:
        return f"TensorChunkSpec({self.split_dim})"

    @staticmethod
    def from_tuple(chunk_dims: tuple[int, ...]) -> Any:
        """One for each dimension of a tuple."""
        return tree_map(TensorChunkSpec, chunk_dims)

    @staticmethod
    def from_dict(chunk_dims: dict[str, int]) -> Any:
        """One for each dimension of a dictionary."""
        return tree_map(TensorChunkSpec, chunk_dims)


class _CustomReducer:
    """What makes one value of those of all chunks: ``reduce_fn(reduce_fn(init_value, first), second)`` and so on."""

    def __init__(self, init_value: Any, reduce_fn: Callable[[Any, Any], Any]) -> None:
        self.init_value, self.reduce_fn = init_value, reduce_fn


class _Replicate:
    """The value is the same for each chunk."""


sum_reducer = _CustomReducer(0.0, lambda total, each: total + each)
_ROWS, _SAME = TensorChunkSpec(0), _Replicate()


def split_args_kwargs_into_chunks(
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
    chunks: int,
    args_chunk_spec: Any = None,
    kwargs_chunk_spec: Any = None,
) -> tuple[list[tuple[Any, ...]], list[dict[str, Any]]]:
    """The arguments of so many calls: tensors in chunks, other values as they are.

    Args:
        args_chunk_spec: a `TensorChunkSpec` for each tensor, in the structure of ``args``; along the first dimension, where
            nothing is said
        kwargs_chunk_spec: the same by name

    Raises:
        ValueError: a tensor is too short, or the specs have another structure than the arguments

    >>> import genesis
    >>> split_args_kwargs_into_chunks((genesis.arange(3), True), None, 2)
    ([(tensor([0, 1]), True), (tensor([2]), True)], [{}, {}])
    """
    return (
        split_into_chunks(tuple(args), chunks, args_chunk_spec, "args_chunk_spec"),
        split_into_chunks(kwargs or {}, chunks, kwargs_chunk_spec, "kwargs_chunk_spec"),
    )


def split_into_chunks(tree: Any, chunks: int, spec: Any = None, name: str = "target") -> list[Any]:
    """So many trees like this one, each with a part of every tensor; ``name`` is for errors."""
    leaves, structure = tree_flatten(tree)
    specs = [None] * len(leaves) if spec is None else _specs(name, spec, structure)
    parts = [_parts(name, x, chunks, each) for x, each in zip(leaves, specs, strict=True)]
    return [tree_unflatten([part[i] for part in parts], structure) for i in range(chunks)]


def _specs(name: str, spec: Any, structure: Any) -> list[Any]:
    try:
        return flatten_up_to(structure, spec)
    except Exception as error:
        text = f"the specs {spec} do not have the structure of what is divided, {structure}"
        raise ArgumentValueError(message(name, text, hint="a TensorChunkSpec for each tensor")) from error


def _parts(name: str, x: Any, chunks: int, spec: Any) -> Any:
    if not isinstance(x, Tensor) or isinstance(spec, _Replicate) or spec is _Replicate:
        return [x] * chunks
    dim = (spec or _ROWS).split_dim
    if not x.ndim or x.shape[dim] < chunks:
        text = f"a tensor cannot be divided into {chunks} chunks along dimension {dim}"
        raise ArgumentValueError(message(name, text, [("tensor", x._spec())], "a larger batch, or fewer microbatches"))
    return tensor_split(x, chunks, dim)


def merge_chunks(chunks: list[Any], chunk_spec: Any) -> Any:
    """What results of chunks are together.

    Args:
        chunk_spec: in the structure of a result, for each value in it: a `TensorChunkSpec`, a reducer such as ``sum_reducer``,
            or something else where all chunks have the same value; None joins all tensors along the first dimension

    Raises:
        ValueError: results of another structure, or values that are not the same

    >>> import genesis
    >>> merge_chunks([(genesis.zeros(2), 1.0), (genesis.ones(1), 2.0)], (TensorChunkSpec(0), sum_reducer))
    (tensor([0., 0., 1.]), 3.0)
    """
    structure = tree_flatten(chunks[0])[1]
    leaves = [_specs("merge_chunks", chunk, structure) for chunk in chunks]
    specs = [None] * len(leaves[0]) if chunk_spec is None else _specs("output_merge_spec", chunk_spec, structure)
    return tree_unflatten(
        [_merged(list(each), spec) for each, spec in zip(zip(*leaves, strict=True), specs, strict=True)], structure
    )


def _merged(values: list[Any], spec: Any) -> Any:
    if isinstance(spec, _CustomReducer):
        total = spec.init_value
        for each in values:
            total = spec.reduce_fn(total, each)
        return total
    if isinstance(spec, TensorChunkSpec) or (spec is None and isinstance(values[0], Tensor)):
        if not all([isinstance(x, Tensor) and x.ndim for x in values]):
            text = f"results of chunks are joined, and one is {values[0]!r}"
            raise ArgumentError(
                message("merge_chunks", text, hint="output_merge_spec=sum_reducer, or return_outputs=False")
            )
        return cat(values, dim=(spec or _ROWS).split_dim)
    if any([not (each is values[0] or each == values[0]) for each in values]):
        raise ArgumentValueError(message("merge_chunks", f"chunks have different values: {values}"))
    return values[0]


explain_all(globals())
