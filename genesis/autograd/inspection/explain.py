"""Why does this tensor have no gradient? `explain` looks for the path from it to a result, and says where it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from genesis.autograd.graph import every_node
from genesis.base.errors import ArgumentError, GenesisError, message
from genesis.base.text import Printed
from genesis.core.call.refusal import explain_all
from genesis.core.graph import engine
from genesis.core.graph.lost import Cut, cuts, forget_cuts, run_site
from genesis.core.graph.modes import is_grad_enabled
from genesis.core.graph.node import FREED, AccumulateGrad, Node, node_of
from genesis.core.graph.tensor import Tensor


@dataclass(repr=False)
class Explanation(Printed):
    """What `explain` found; printing it gives the text."""

    verdict: str  # one of VERDICTS
    sentence: str
    path: list[Node] = field(default_factory=list)  # from the input to the result, if there is one
    cuts: list[Cut] = field(default_factory=list)  # where history was lost, the likeliest first
    lines: list[str] = field(default_factory=list)  # what else is known
    fix: str = ""

    @property
    def connected(self) -> bool:
        """Whether a gradient can flow from the result to the tensor."""
        return self.verdict in ("connected", "not a leaf")

    def _text(self) -> str:
        parts = [self.sentence]
        parts += [f"  history was cut by {cut}" for cut in self.cuts]
        parts += [f"  {line}" for line in self.lines]
        if self.path:
            parts.append("  path:")
            parts += [f"    {step}" for step in _steps(self.path)]
        if self.fix:
            parts.append(f"  try: {self.fix}")
        return "\n".join(parts)


VERDICTS = {
    "connected": "a gradient arrives",
    "not a leaf": "it arrives, but .grad of a tensor that was computed is not kept",
    "does not require grad": "the tensor is not differentiated",
    "no history": "the result has no graph at all",
    "used before requires_grad": "it was used while it did not require grad",
    "used detached": "the graph holds its value, but without its history",
    "not used": "nothing in the graph depends on it",
    "freed": "the graph was freed by an earlier backward",
    "stopped": "a rule on the way gives no gradient",
    "zero": "a gradient arrives, and all of it is zero",
    "not finite": "a gradient arrives, and it is not finite",
    "failed": "backward fails on the way",
}


def explain(input: Any, output: Any = None) -> Any:
    """Say how a gradient reaches ``input`` from ``output``, or at which line of the program it is lost.

    Looks at the graph, runs a backward that touches no ``.grad`` (hooks of the graph do run), and consults the notes of
    where values left the graph: ``detach()``, ``no_grad``, conversions to integers, ``item()``, copies by
    ``tensor(...)``, values written over. The notes are of the whole program; with a function in the place of ``output``
    it is called once and only what happens in that call is told.

    Args:
        input: a tensor; or a module or a dict of tensors, each of which is explained
        output: the result of which a gradient is wanted (of any shape), or a function without arguments that computes
            it

    Returns:
        an `Explanation` with ``verdict``, ``path``, ``cuts`` and a text; a dict of them, by name, for several inputs

    Raises:
        TypeError: not a tensor, or a result that is not one

    >>> import genesis
    >>> x = genesis.ones(2, requires_grad=True)
    >>> genesis.autograd.explain(x, (x.detach() * x).sum().long()).verdict
    'no history'
    >>> genesis.autograd.explain(x, (x * 2).sum()).verdict
    'connected'
    """
    if not isinstance(output, Tensor) and callable(output):
        forget_cuts()
        output = output()
    if not isinstance(output, Tensor):
        raise ArgumentError(
            message(
                "explain",
                f"output must be a tensor or a function that gives one, got {type(output).__name__}",
                hint="explain(x, loss)",
            )
        )
    named = getattr(input, "named_parameters", None)
    if named is not None:
        return {name: _explain(p, output, name) for name, p in named()}
    if isinstance(input, Mapping):
        return {name: _explain(p, output, str(name)) for name, p in input.items()}
    return _explain(input, output, "the input")


def _explain(x: Any, output: Tensor, name: str) -> Explanation:
    if not isinstance(x, Tensor):
        raise ArgumentError(
            message("explain", f"{name} must be a tensor, got {type(x).__name__}", hint="explain(x, loss)")
        )
    what = f"{name} (shape {list(x.shape)}, {x.dtype})"
    if not x.requires_grad:
        return _not_required(x, what)
    if not output.requires_grad:
        return _no_history(output, what)
    target = node_of(x._node)
    path = _path(output._node, target)
    if path is None:
        return _unconnected(x, output, what)
    freed = next((n for n in reversed(path) if n._saved is FREED), None)
    if freed is not None:
        site = run_site(freed._epoch)
        return Explanation("freed", f"{what} was connected, but the graph was freed at {_title(freed)}", path,
                           lines=[] if site is None else [f"freed by the backward at {site}"],
                           fix="pass retain_graph=True to that backward, or compute the result again")  # fmt: skip
    return _flow(x, output, what, path)


# ---- there is no path


def _not_required(x: Tensor, what: str) -> Explanation:
    if not (x.dtype.is_floating_point or x.dtype.is_complex):
        return Explanation(
            "does not require grad",
            f"{what} does not require grad: only floating and complex tensors can",
            cuts=cuts()[:3],
            fix="make it floating, x.float()",
        )
    mode = [] if is_grad_enabled() else ["gradients are switched off here and now (no_grad)"]
    return Explanation("does not require grad", f"{what} does not require grad", cuts=cuts()[:3], lines=mode,
                       fix="requires_grad_() before it is used, if it is a leaf; else look at where it was computed")  # fmt: skip


def _no_history(output: Tensor, what: str) -> Explanation:
    why = (
        f"its dtype is {output.dtype}"
        if not (output.dtype.is_floating_point or output.dtype.is_complex)
        else "it has no grad_fn"
    )
    return Explanation(
        "no history",
        f"the output (shape {list(output.shape)}) is not connected to {what}, nor to anything: {why}",
        cuts=cuts()[:3],
        fix="compute it outside no_grad, from tensors that require grad",
    )


def _unconnected(x: Tensor, output: Tensor, what: str) -> Explanation:
    """Somewhere its value may be in the graph without its history."""
    mine = [cut for cut in cuts() if cut.node is not None and _path(cut.node, node_of(x._node)) is not None]
    for node in _nodes(output._node):
        if node._saved is FREED or node.is_leaf:
            continue
        for slot, t in enumerate(node._saved):
            if not isinstance(t, Tensor):
                continue
            used = t is x or (
                isinstance(t._array, np.ndarray) and isinstance(x._array, np.ndarray) and t._array is x._array
            )
            if used and slot < len(node._edges) and node._edges[slot] is None:
                if t is x:
                    return Explanation(
                        "used before requires_grad",
                        f"{what} was used by {_title(node)} while it did not require grad",
                        cuts=mine[:3],
                        fix="call requires_grad_() before computing the output",
                    )
                return Explanation(
                    "used detached",
                    f"{_title(node)} used the value of {what} without its history",
                    cuts=mine[:3] or cuts()[:3],
                    fix="use the tensor itself, not detach() or .data",
                )
    count = sum(1 for node in _nodes(output._node) if node.is_leaf)
    return Explanation(
        "not used",
        f"nothing in the graph of the output depends on {what}; its {count} leaves are others",
        cuts=mine[:3] or cuts()[:3],
        lines=[]
        if mine
        else ["no value computed from it is known to have left the graph: it may never have been used"]
        if not cuts()
        else [],
        fix="follow its value to the output: a copy, a conversion, or another tensor under the same name",
    )


# ---- there is one: follow a gradient along it


def _flow(x: Tensor, output: Tensor, what: str, path: list[Node]) -> Explanation:
    seen: dict[Node, Any] = {}
    on_path = set(path)

    def before(node: Node, grads: tuple[Any, ...]) -> None:
        if node in on_path:
            seen[node] = grads

    ones = output._ones(output._array.shape, output._array.dtype)
    try:
        with every_node(before):
            (g,) = engine.run([output._node], [ones], keep_graph=True, inputs=[x._node], accumulate=False)
    except GenesisError as error:
        return Explanation("failed", f"backward to {what} fails: {error}", path)
    fix, lines = "", []
    if g is None or _all(g, lambda a: a == 0):
        last = _last_alive(path, seen)
        if g is None:
            at = f"{_title(last)} gives it none" if last is not None else "none arrives"
            verdict, sentence = "stopped", f"{what} is connected, but gets no gradient: {at}"
            fix = "return a gradient for it from that backward, or check its hooks"
        else:
            at = f"{_title(last)} makes it zero" if last is not None else "it starts as zero"
            verdict, sentence = "zero", f"{what} is connected, and its gradient is zero everywhere: {at}"
    elif not _all(g, np.isfinite):
        order = path[::-1]  # from the output
        first = next(
            (
                i
                for i, n in enumerate(order)
                if any(p is not None and not _all(p, np.isfinite) for p in seen.get(n, ()))
            ),
            len(order) - 1,
        )
        source = f", from {_title(order[first - 1])} on" if first > 0 else ""
        verdict, sentence = (
            "not finite",
            f"{what} is connected, and its gradient has values that are not finite{source}",
        )
    elif not x.is_leaf and not x.retains_grad:
        verdict, sentence = (
            "not a leaf",
            f"{what} gets a gradient, but was computed by {_title(node_of(x._node))}: .grad of such a tensor is not kept",
        )
        fix = "call retain_grad() on it, or take the gradient with genesis.autograd.grad"
    else:
        verdict, sentence = "connected", f"{what} gets a gradient from the output through {len(path)} nodes"
        if x.is_leaf and x.grad is None:
            lines.append("its .grad is None until backward() is called on the output, or after zero_grad()")
    return Explanation(verdict, sentence, path, lines=lines, fix=fix)


def _last_alive(path: list[Node], seen: dict[Node, Any]) -> Node | None:
    """The node on the way from the output that had a gradient that is not zero, and passed none on."""
    alive = [n for n in path if any(g is not None and not _all(g, lambda a: a == 0) for g in seen.get(n, ()))]
    return alive[0] if alive else None


def _all(t: Tensor, test: Callable[[Any], Any]) -> bool:
    array = t._array
    return not isinstance(array, np.ndarray) or bool(np.all(test(array)))


# ---- the graph


def _nodes(root: Any) -> Iterator[Node]:
    """Every node that can be reached."""
    stack, seen = [node_of(root)], set()
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        yield node
        stack.extend(node_of(e) for e in node._edges if e is not None)


def _path(root: Any, target: Any) -> list[Node] | None:
    """A shortest path through the graph, from the target to the root; None without one."""
    root = node_of(root)
    came: dict[Any, Any] = {root: None}
    queue = [root]
    for node in queue:  # grows while it is walked
        if node is target:
            path = []
            while node is not None:
                path.append(node)
                node = came[node]  # noqa: PLW2901
            return path
        for edge in node._edges:
            following = node_of(edge)
            if following is not None and following not in came:
                came[following] = node
                queue.append(following)
    return None


def _title(node: Node) -> str:
    site = node.where()
    return type(node).__name__ + (f" ({site})" if site is not None else "")


def _steps(path: list[Node]) -> list[str]:
    shown = path if len(path) <= 12 else [*path[:6], None, *path[-5:]]
    steps = []
    for node in shown:
        if node is None:
            steps.append(f"... {len(path) - 11} more nodes")
        else:
            name = "leaf" if isinstance(node, AccumulateGrad) else _title(node)
            steps.append(f"{name}  {list(node._shape)}")
    return steps


explain_all(globals(), "explain")
