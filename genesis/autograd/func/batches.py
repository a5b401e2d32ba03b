"""`vmap`: a function of one sample as a function of many, all at once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from genesis.autograd.func.derivatives import check_function, leaf_name, name_of
from genesis.base.errors import ArgumentError, ArgumentValueError, DimError, GraphError, ShapeError, message
from genesis.base.pytree import TreeDef, tree_flatten, tree_unflatten
from genesis.core.call.refusal import explain_all
from genesis.core.graph.boundary import batch_in, batch_out, before_leaving
from genesis.core.graph.generator import default_generator
from genesis.core.graph.levels import Level, opened
from genesis.core.graph.tensor import Tensor
from genesis.core.layers import batches as batches  # ops act on batched arrays from here on
from genesis.ops.shapes.join import cat

RANDOMNESS = ("error", "different", "same")


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """A function that applies ``func`` to every sample of a batch: ``vmap(f)(xs)[i] == f(xs[i])``, computed for all at
    once.

    Args:
        in_dims: which dimension of each argument holds the samples; None for arguments that all samples share. An
            integer for all, or a tuple with an entry for each argument, which for a container may be a container of the
            same structure. Keyword arguments are shared by all samples
        out_dims: where the samples go in the results
        randomness: "different" draws other random numbers for each sample, "same" the same ones, "error" refuses to
            draw
        chunk_size: at most so many samples at once, to save memory

    Raises:
        ValueError: ``in_dims`` does not fit the arguments, or the arguments differ in their number of samples
        RuntimeError: the function needs the value of a tensor (``if x > 0``), or writes into a tensor that all samples
            share

    >>> import genesis
    >>> dot = genesis.vmap(genesis.dot)
    >>> dot(genesis.tensor([[1., 2.], [3., 4.]]), genesis.tensor([[1., 1.], [0., 1.]]))
    tensor([3., 4.])
    """
    check_function("vmap", func)
    if randomness not in RANDOMNESS:
        raise ArgumentValueError(
            message("vmap", f"randomness is {randomness!r}", hint=f"one of {', '.join(map(repr, RANDOMNESS))}")
        )
    if chunk_size is not None and (not isinstance(chunk_size, int) or chunk_size <= 0):
        raise ArgumentValueError(message("vmap", f"chunk_size must be a positive integer or None, got {chunk_size!r}"))

    @functools.wraps(func)
    def batched(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = tree_flatten((args, kwargs))
        dims = _spread_in_dims(in_dims, args, kwargs, structure)
        names = functools.partial(leaf_name, func, args, kwargs)
        dims = [_checked(func, names, i, x, d) for i, (x, d) in enumerate(zip(leaves, dims, strict=True))]
        size = _size(func, names, leaves, dims)
        if chunk_size is None or chunk_size >= size:
            return _at_once(func, leaves, dims, structure, size, out_dims, randomness)
        parts = []
        drawn = default_generator._block
        for start in range(0, size, chunk_size):
            if randomness == "same":
                default_generator._position(drawn)
            length = min(chunk_size, size - start)
            piece = [x if d is None else x.narrow(d, start, length) for x, d in zip(leaves, dims, strict=True)]
            parts.append(_at_once(func, piece, dims, structure, length, out_dims, randomness))
        return _joined(parts, out_dims)

    return batched


def _at_once(
    func: Callable[..., Any],
    leaves: list[Any],
    dims: list[Any],
    structure: TreeDef,
    size: int,
    out_dims: Any,
    randomness: str,
) -> Any:
    with opened(Level(f"vmap of {name_of(func)}", size, randomness)) as level:
        number = level.number
        inner = [x if d is None else batch_in(x, d, number, size) for x, d in zip(leaves, dims, strict=True)]
        args, kwargs = tree_unflatten(inner, structure)
        out = func(*args, **kwargs)
        results, shape = tree_flatten(out)
        dims_out = _spread_out_dims(out_dims, out, shape)
        before_leaving(results)
        outputs = []
        for y, dim in zip(results, dims_out, strict=True):
            if not isinstance(y, Tensor):
                raise ArgumentError(
                    message(
                        "vmap",
                        f"{name_of(func)} must return tensors, it returned {type(y).__name__} {y!r}",
                        hint="leave it out, or wrap it in genesis.tensor(...)",
                    )
                )
            if not -y.ndim - 1 <= dim <= y.ndim:
                raise DimError(
                    message(
                        "vmap",
                        f"out_dims is {dim}, a result of {y.ndim} dimensions has places {-y.ndim - 1} to {y.ndim} "
                        "for the samples",
                    )
                )
            outputs.append(batch_out(y, dim % (y.ndim + 1), number, size))
    return tree_unflatten(outputs, shape)


# ---- which dimension


def _prefix(dims: Any, structure: TreeDef, what: str, path: str) -> list[Any]:
    """One entry for each leaf of a structure, from a tree that may end earlier: what is no container there holds for
    all below.
    """
    if dims is None or isinstance(dims, int):
        return [dims] * structure.num_leaves
    if structure.kind is None:
        raise ArgumentValueError(
            message("vmap", f"{what} has {dims!r} for {path}, which is no container", hint="an integer or None")
        )
    if isinstance(dims, dict):
        keys = list(structure.rest or ()) if issubclass(structure.kind, dict) else []
        if set(dims) != set(keys):
            raise ArgumentValueError(
                message(
                    "vmap", f"{what} has keys {sorted(map(str, dims))} for {path}, which has {sorted(map(str, keys))}"
                )
            )
        items = [(f"{path}[{key!r}]", dims[key], child) for key, child in zip(keys, structure.children, strict=True)]
    elif isinstance(dims, tuple | list):
        if issubclass(structure.kind, dict) or len(dims) != len(structure.children):
            raise ArgumentValueError(
                message("vmap", f"{what} has {len(dims)} entries for {path}, which has {len(structure.children)}")
            )
        items = [(f"{path}[{i}]", d, child) for i, (d, child) in enumerate(zip(dims, structure.children, strict=True))]
    else:
        raise ArgumentValueError(
            message("vmap", f"{what} holds {dims!r}, expected integers, None and containers of them")
        )
    return [leaf for name, d, child in items for leaf in _prefix(d, child, what, name)]


def _spread_in_dims(in_dims: Any, args: tuple[Any, ...], kwargs: dict[str, Any], structure: TreeDef) -> list[Any]:
    positional, keywords = structure.children
    if not isinstance(in_dims, int | tuple | list):
        raise ArgumentValueError(
            message("vmap", f"in_dims must be an integer or a tuple, got {in_dims!r}", hint="in_dims=(0, None)")
        )
    if isinstance(in_dims, tuple | list) and len(in_dims) != len(args):
        raise ArgumentValueError(
            message("vmap", f"in_dims has {len(in_dims)} entries, the function was called with {len(args)} arguments")
        )
    entries = [in_dims] * len(args) if isinstance(in_dims, int) else list(in_dims)
    dims = [
        d
        for i, (e, child) in enumerate(zip(entries, positional.children, strict=True))
        for d in _prefix(e, child, "in_dims", f"argument {i}")
    ]
    if isinstance(in_dims, int):  # what holds for all arguments holds for their tensors
        dims = [d if isinstance(x, Tensor) else None for x, d in zip(tree_flatten(args)[0], dims, strict=True)]
    return dims + [None] * keywords.num_leaves  # keyword arguments are shared, as in PyTorch


def _checked(func: Any, names: Callable[[int], str], index: int, x: Any, dim: Any) -> Any:
    if dim is None:
        return None
    if not isinstance(x, Tensor):
        raise ArgumentValueError(
            message(
                "vmap",
                f"in_dims is {dim} for `{names(index)}` of {name_of(func)}, which is {type(x).__name__}",
                hint="None for what is no tensor",
            )
        )
    if not -x.ndim <= dim < x.ndim:
        raise ArgumentValueError(
            message(
                "vmap",
                f"in_dims is {dim} for `{names(index)}` of {name_of(func)}, which has {x.ndim} dimensions",
                [(names(index), x._spec())],
                "None shares it among the samples",
            )
        )
    return dim % x.ndim


def _size(func: Any, names: Callable[[int], str], leaves: list[Any], dims: list[Any]) -> int:
    sizes = [(i, x.shape[d], d) for i, (x, d) in enumerate(zip(leaves, dims, strict=True)) if d is not None]
    if not sizes:
        raise ArgumentValueError(
            message(
                "vmap",
                f"no argument of {name_of(func)} has samples, all in_dims are None",
                hint="call the function itself",
            )
        )
    if len({n for _, n, _ in sizes}) > 1:
        lines: list[tuple[str, object]] = [
            (names(i), f"{leaves[i]._spec()}, {n} samples along dim {d}") for i, n, d in sizes
        ]
        raise ArgumentValueError(
            message(
                "vmap",
                f"the arguments of {name_of(func)} differ in their number of samples",
                lines,
                "in_dims says which dimension holds them",
            )
        )
    if sizes[0][1] == 0:
        raise ShapeError(
            message(
                "vmap",
                f"there are no samples: `{names(sizes[0][0])}` of {name_of(func)} has size 0 along dim {sizes[0][2]}",
            )
        )
    return int(sizes[0][1])


def _spread_out_dims(out_dims: Any, out: Any, structure: TreeDef) -> list[int]:
    if isinstance(out, Tensor) and isinstance(out_dims, tuple) and len(out_dims) == 1:
        out_dims = out_dims[0]
    dims = _prefix(out_dims, structure, "out_dims", "the result")
    if None in dims:
        raise ArgumentValueError(message("vmap", "out_dims holds None, every result has samples"))
    return dims


def _joined(parts: list[Any], out_dims: Any) -> Any:
    columns = [tree_flatten(part)[0] for part in parts]
    structure = tree_flatten(parts[0])[1]
    if any(len(column) != len(columns[0]) for column in columns):
        raise GraphError(message("vmap", "the function returned other structures for other chunks"))
    dims_out = _spread_out_dims(out_dims, parts[0], structure)
    return tree_unflatten(
        [cat(list(pieces), dim) for pieces, dim in zip(zip(*columns, strict=True), dims_out, strict=True)], structure
    )


explain_all(globals(), "vmap")
