"""The picture of a traced graph."""

from __future__ import annotations

from typing import Any

from genesis.arrays.spec import Spec
from genesis.base import dtypes
from genesis.debug.draw import Drawing
from genesis.debug.graph import Box, fold
from genesis.jit.arguments import Var
from genesis.jit.binding import Graph


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
    program = graph.program
    leaves = {var: Box(program.name_of(var), "leaf", *_shape(var.spec)) for var in program.outside}
    for node in program.calls:
        box = Box(node.op, "operation", *_shape(node.outs[0].spec), where=node.site)
        inputs = list(dict.fromkeys(node.inputs))
        box.inputs = [(boxes.get(v) or leaves[v], "") for v in inputs]
        order.append(box)
        boxes.update(dict.fromkeys(node.outs, box))
    ends: list[tuple[str, Any]] = [("result", r) for r in program.results if isinstance(r, Var)]
    for w in program.writes:
        if w.value is not None:
            ends.append((program.target(w) if w.of_gradient else f"{program.target(w)} written", w.value))
    results = []
    for name, var in ends:
        box = Box(name, "result", *_shape(var.spec))
        box.inputs = [(boxes.get(var) or leaves[var], "")]
        results.append(box)
    used = {id(source) for box in [*results, *order] for source, _ in box.inputs}
    all_boxes = [*results, *reversed(order), *[b for b in leaves.values() if id(b) in used]]
    return Drawing(fold(all_boxes, max_nodes), len(program.calls))


def _shape(spec: Spec) -> tuple[tuple[int, ...], str]:
    return spec.shape, str(dtypes.from_numpy(spec.dtype)).removeprefix("genesis.")
