"""The picture of a traced graph."""

from __future__ import annotations

from typing import Any

from genesis.arrays.spec import Spec
from genesis.base import dtypes
from genesis.debug.draw import Drawing
from genesis.debug.graph import Box, fold
from genesis.jit.graph import Graph, Var


def draw_graph(graph: Graph, max_nodes: int = 200) -> Drawing:
    """What a traced function computes: arguments and captured tensors below, results and writes above.

    >>> import genesis
    >>> print(genesis.jit.trace(lambda x: (x * 2).sum(), genesis.ones(3)).draw())
    result  float32[]
    └─ sum  float32[]
       └─ mul  float32[3]
          └─ x0  float32[3]
    """
    boxes: dict[Var, Box] = {}
    order: list[Box] = []
    outside = [
        *graph.arguments,
        *[v for v, _ in graph.captured],
        *[v for v, _ in graph.constants],
        *[v for v, _ in graph.numbers],
        *[x.var for x in graph.leaves if x.var is not None],
    ]
    leaves = {var: Box(graph.name_of(var), "leaf", *_shape(var.spec)) for var in outside}
    for node in graph.nodes:
        box = Box(node.op, "operation", *_shape(node.outs[0].spec), where=node.site)
        inputs = list(dict.fromkeys(node.inputs))
        box.inputs = [(boxes.get(v) or leaves[v], "") for v in inputs]
        order.append(box)
        boxes.update(dict.fromkeys(node.outs, box))
    ends: list[tuple[str, Any]] = [("result", r) for r in graph.results if isinstance(r, Var)]
    for w in graph.writes:
        if w.value is not None:
            ends.append((graph.target(w) if w.of_gradient else f"{graph.target(w)} written", w.value))
    results = []
    for name, var in ends:
        box = Box(name, "result", *_shape(var.spec))
        box.inputs = [(boxes.get(var) or leaves[var], "")]
        results.append(box)
    used = {id(source) for box in [*results, *order] for source, _ in box.inputs}
    all_boxes = [*results, *reversed(order), *[b for b in leaves.values() if id(b) in used]]
    return Drawing(fold(all_boxes, max_nodes), len(graph.nodes))


def _shape(spec: Spec) -> tuple[tuple[int, ...], str]:
    return spec.shape, str(dtypes.from_numpy(spec.dtype)).removeprefix("genesis.")
