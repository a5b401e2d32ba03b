"""Which call of a module or of a composite recorded a node: what the frames of a picture are made from.

Ordinary calls note nothing of it. `observe` watches one call of a function and looks at the stack at each node; of a
graph that was recorded before, only the names of parameters tell which module used them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

from genesis.base.text import name_of
from genesis.core.call.op import REGISTRY
from genesis.core.graph.modes import entered, watchers
from genesis.core.graph.node import Node
from genesis.debug.graph import Box
from genesis.nn.module import Module


@dataclass(frozen=True, eq=False)
class Scope:
    """One call of a module or of a composite."""

    name: str
    kind: str  # "module" or "composite"


class _Watch:
    """Notes the calls that are open at each new node, the outermost first."""

    def __init__(self, names: Mapping[Module, str]) -> None:
        self.names = names
        self.scopes: dict[Node, tuple[Scope, ...]] = {}
        self._open: dict[FrameType, Scope | None] = {}  # frames are kept, so that no two calls have the same
        # what the code of their public functions calls itself: see `core/call/op.py`
        self._composites = {f"<genesis op {op.name}>": op.name for op in REGISTRY.values() if op.kind.composed}

    def new_node(self, node: Node) -> None:
        scopes, frame = [], sys._getframe(1)
        while frame.f_back is not None and frame.f_code is not observe.__code__:
            if frame not in self._open:
                self._open[frame] = self._scope(frame)
            if (scope := self._open[frame]) is not None:
                scopes.append(scope)
            frame = frame.f_back
        self.scopes[node] = tuple(reversed(scopes))

    def function_result(self, cls: Any, args: Sequence[Any], result: Any) -> None:
        """Its node tells."""

    def failed(self, node: Node) -> None:
        """An exception tells itself."""

    def _scope(self, frame: FrameType) -> Scope | None:
        if frame.f_code is Module.__call__.__code__:
            module = frame.f_locals["self"]
            name, kind = self.names.get(module), name_of(type(module).__name__)
            return None if name == "" else Scope(kind if name is None else f"{name_of(name)} {kind}", "module")
        name = self._composites.get(frame.f_code.co_filename)
        return None if name is None else Scope(name, "composite")


def observe(
    function: Callable[..., Any], args: Sequence[Any], params: Any
) -> tuple[Any, dict[Node, tuple[Scope, ...]]]:
    """The result of a call, and for each node that it recorded the calls that were open."""
    root = function if isinstance(function, Module) else params if isinstance(params, Module) else None
    watch = _Watch({module: name for name, module in root.named_modules()} if root is not None else {})
    with entered(watchers, watch):
        return function(*args), watch.scopes


def by_parameters(boxes: Sequence[Box], params: Any) -> None:
    """Give the boxes that use a module's parameters that module's scope, as far as names tell."""
    if not isinstance(params, Module):
        return
    modules = dict(params.named_modules())
    scopes: dict[str, Scope] = {}
    owner: dict[Box, str] = {
        box: box.name.rpartition(".")[0] for box in boxes if box.kind == "leaf" and box.name != "leaf"
    }
    views: dict[Box, list[Box]] = {}
    for box in boxes:
        if box.view:
            views.setdefault(box.inputs[0][0], []).append(box)
    ahead = list(owner)
    for box in ahead:  # grows while it is walked: views of a parameter, and views of those
        owner |= {view: owner[box] for view in views.get(box, ())}
        ahead += views.get(box, ())
    for box in boxes:
        named = {owner[b] for b in (box, *[source for source, _ in box.inputs]) if owner.get(b)}
        if len(named) == 1:
            name = named.pop()
            label = f"{name} {name_of(type(modules[name]).__name__)}" if name in modules else name
            box.scope = (scopes.setdefault(name, Scope(label, "module")),)


def of_leaves(boxes: Iterable[Box]) -> None:
    """A leaf is inside of the modules that all its users are inside of."""
    users: dict[Box, list[Box]] = {}
    for box in boxes:
        for source, _ in box.inputs:
            users.setdefault(source, []).append(box)
    for leaf, all_users in users.items():
        if leaf.kind == "leaf":
            common = []
            for level in zip(*[box.scope for box in all_users], strict=False):
                if level[0].kind != "module" or any(s is not level[0] for s in level):
                    break
                common.append(level[0])
            leaf.scope = tuple(common)


def without_single(boxes: Sequence[Box]) -> None:
    """Leave out the scopes around one box, and those that hold the same boxes as the one around them."""
    members: dict[Scope, int] = {}
    for box in boxes:
        for scope in box.scope:
            members[scope] = members.get(scope, 0) + 1
    for box in boxes:
        kept: list[Scope] = []
        for scope in box.scope:
            same = kept and members[kept[-1]] == members[scope] and kept[-1].kind == scope.kind
            if not same and (members[scope] > 1):
                kept.append(scope)
        box.scope = tuple(kept)


def close(boxes: Sequence[Box], closed: Callable[[Scope, int], bool]) -> list[Box]:
    """The boxes, with each closed scope as one box; ``closed(scope, depth)`` says which are, asked from outside
    inwards.
    """
    outer: dict[Box, Scope] = {}
    for box in boxes:
        outermost = next(((s, box.scope[:i]) for i, s in enumerate(box.scope) if closed(s, i)), None)
        if outermost is not None:
            outer[box] = outermost[0]
    merged: dict[Scope, Box] = {}
    shown: list[Box] = []
    for box in boxes:
        scope = outer.get(box)
        if scope is None:
            shown.append(box)
        elif scope not in merged:
            merged[scope] = one = Box(scope.name, "composite", box.shape, box.dtype, freed=box.freed, where=box.where)
            one.scope = box.scope[: box.scope.index(scope)]
            shown.append(one)
    now = {box: merged[outer[box]] if box in outer else box for box in boxes}
    for box in boxes:
        if box in outer:
            now[box].inside.append(box)
            now[box].saved += box.saved
            known = {id(source) for source, _ in now[box].inputs}
            now[box].inputs += [
                (now[s], "") for s, _ in box.inputs if now[s] is not now[box] and id(now[s]) not in known
            ]
        else:
            box.inputs = [(now[s], label) for s, label in box.inputs]
    for one in merged.values():
        one.inputs = list({id(s): (s, label) for s, label in one.inputs}.values())
    return shown
