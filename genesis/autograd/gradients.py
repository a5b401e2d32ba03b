"""Gradients of outputs with respect to inputs, returned or accumulated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from genesis.arrays.protocol import NeedsValues
from genesis.base.dtypes import from_numpy
from genesis.base.errors import ArgumentError, GraphError, ShapeError, message
from genesis.core.call.refusal import explain_all
from genesis.core.graph import engine
from genesis.core.graph.seeds import edge_of, input_edge, inputs_of_backward, seed_for
from genesis.core.graph.tensor import Tensor
from genesis.ops.creation.create import zeros
from genesis.ops.shapes.join import stack


def _listed(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    return [value] if isinstance(value, Tensor) or value is None or hasattr(value, "output_nr") else list(value)


def _origin(y: Any) -> Any:
    """Where backward starts: from a tensor, or from a `GradientEdge`."""
    if isinstance(y, Tensor):
        return edge_of(y)
    if hasattr(y, "output_nr"):
        return input_edge(y, 0, "backward")
    raise ArgumentError(message("backward", f"expected a tensor or a GradientEdge, got {type(y).__name__}"))


def _seeds(name: str, outputs: list[Tensor], gradients: Any) -> list[Tensor]:
    given = [None] * len(outputs) if gradients is None else _listed(gradients)
    if len(given) != len(outputs):
        raise ArgumentError(message(name, f"{len(given)} gradients for {len(outputs)} outputs"))
    return [_seed(name, y, g) for y, g in zip(outputs, given, strict=True)]


def _seed(name: str, y: Any, g: Any) -> Tensor:
    if isinstance(y, Tensor):
        return seed_for(y, g)
    if g is None:
        raise GraphError(message(name, "a GradientEdge needs a gradient to start from", hint="pass grad_outputs=..."))
    return g  # type: ignore[no-any-return]


def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Differentiate several outputs in one pass, accumulating into ``.grad`` of the leaves (or of ``inputs`` only).

    Raises:
        RuntimeError: an output without history, or an implicit gradient for many elements

    >>> import genesis
    >>> x = genesis.ones(2, requires_grad=True)
    >>> genesis.autograd.backward([x.sum(), (x * 2).sum()]); x.grad
    tensor([3., 3.])
    """
    outputs = _listed(tensors)
    edges = [_origin(y) for y in outputs]
    wanted = None if inputs is None else inputs_of_backward(_listed(inputs))
    engine.run(
        edges,
        _seeds("backward", outputs, grad_tensors),
        keep_graph=create_graph if retain_graph is None else retain_graph,
        create_graph=create_graph,
        inputs=wanted,
    )


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> Any:
    """The gradients of (the sum of) ``outputs`` with respect to ``inputs``, as a tuple; ``.grad`` is left alone.

    Args:
        inputs: tensors or `GradientEdge`s; a dictionary of them gives a dictionary of gradients
        is_grads_batched: ``grad_outputs`` have one more dimension in front; all of them in one backward
        grad_outputs: what to start from, one for each output
        only_inputs: accepted as PyTorch accepts it; only the inputs' gradients are computed
        allow_unused: give None for an input that the outputs do not depend on, instead of an error
        materialize_grads: give zeros for it

    Raises:
        RuntimeError: an input that the outputs do not depend on

    >>> import genesis
    >>> x = genesis.tensor(3.0, requires_grad=True)
    >>> (g,) = genesis.autograd.grad(x ** 2, x, create_graph=True)
    >>> g, genesis.autograd.grad(g, x)
    (tensor(6., grad_fn=<MulBackward>), (tensor(2.),))
    """
    results, wanted = _listed(outputs), _listed(inputs)
    if is_grads_batched:
        return _batched(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused, materialize_grads)
    if materialize_grads and allow_unused is False:
        raise ArgumentError(
            message("grad", "materialize_grads gives zeros for unused inputs, allow_unused=False refuses them")
        )
    edges = [_origin(y) for y in results]
    sources = [input_edge(x, i, "grad") for i, x in enumerate(wanted)]
    values = engine.run(
        edges,
        _seeds("grad", results, grad_outputs),
        keep_graph=create_graph if retain_graph is None else retain_graph,
        create_graph=create_graph,
        inputs=sources,
        accumulate=False,
    )
    for i, (x, g) in enumerate(zip(wanted, values, strict=True)):
        if g is None and materialize_grads:
            values[i] = zeros(
                tuple(sources[i]._shape),
                dtype=from_numpy(sources[i]._dtype),
                device=(x if isinstance(x, Tensor) else results[0]).device,
            )
        elif g is None and not allow_unused:
            name = f"inputs[{list(inputs)[i]!r}]" if isinstance(inputs, Mapping) else f"inputs[{i}]"
            raise GraphError(
                message(
                    "grad",
                    f"the outputs do not depend on {name}",
                    [(name, x._spec())] if isinstance(x, Tensor) else [],
                    "allow_unused=True gives None for it, materialize_grads=True zeros",
                )
            )
    gradients = tuple(
        [
            g if g is None or create_graph or source.is_leaf else g._shared()
            for g, source in zip(values, sources, strict=True)
        ]
    )
    return type(inputs)(zip(inputs, gradients, strict=True)) if isinstance(inputs, dict) else gradients


def _batched(
    outputs: Any, inputs: Any, grad_outputs: Any, retain_graph: bool | None, create_graph: bool, *policies: Any
) -> Any:
    """`grad` for all elements of the first dimension of ``grad_outputs`` at once: one backward, of batched arrays."""
    from genesis.autograd.func.batches import vmap  # which builds on this file

    seeds = _listed(grad_outputs)
    sizes = {g.shape[0] if g.ndim else -1 for g in seeds if g is not None}
    if len(sizes) != 1 or -1 in sizes:
        raise ShapeError(
            message(
                "grad",
                f"is_grads_batched: the first dimensions of grad_outputs are {sorted(sizes)}",
                hint="one size for all",
            )
        )
    count = sizes.pop()
    if not count:
        columns: list[Any] = [zeros((0, *x.shape), dtype=x.dtype, device=x.device) for x in _listed(inputs)]
        return type(inputs)(zip(inputs, columns, strict=True)) if isinstance(inputs, dict) else tuple(columns)
    unused: list[bool] = []

    def one(*given: Tensor) -> list[Tensor]:
        rest = iter(given)
        row = [None if g is None else next(rest) for g in seeds]
        gradients = _listed(
            grad(outputs, inputs, row, True, create_graph, allow_unused=policies[0], materialize_grads=policies[1])
        )
        unused[:] = [g is None for g in gradients]
        return [g for g in gradients if g is not None]

    given = [g for g in seeds if g is not None]
    try:
        present = list(vmap(one)(*given))
    except NeedsValues:  # a user's backward that leaves Genesis
        present = [
            stack(list(column)) for column in zip(*[one(*[g[i] for g in given]) for i in range(count)], strict=True)
        ]
    if not (create_graph if retain_graph is None else retain_graph):
        engine.release([_origin(y) for y in _listed(outputs)])
    rest = iter(present)
    columns = [None if missing else next(rest) for missing in unused]
    return type(inputs)(zip(inputs, columns, strict=True)) if isinstance(inputs, dict) else tuple(columns)


explain_all(globals(), "backward", "grad")
