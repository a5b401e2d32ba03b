"""Where boxes go: layers from the longest paths, an order within layers with few crossings (Sugiyama, Tagawa and Toda
1981).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from genesis.debug.graph import Box

CHARACTER, GAP_X, GAP_Y, LINE = 7.4, 26.0, 48.0, 16.0


@dataclass
class Rectangle:
    """A box in the picture: its centre and size."""

    x: float
    y: float
    width: float
    height: float


def lines_of(box: Box) -> list[str]:
    """What is written in a box."""
    from genesis.debug.memory import size

    saved = "freed" if box.freed else f"saves {size(box.saved)}" if box.saved else ""
    known = box.where is not None and not box.where.filename.startswith("<")
    where = short(box.where.short, 30) if known else ""  # type: ignore[union-attr]
    return [line for line in (short(box.name, 34), box.detail, saved, where) if line]


def short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def layers_of(units: list[Box], pairs: list[tuple[Box, Box]]) -> list[list[Box]] | None:
    """Values flow downwards: every box is below all that it is computed from; None if that goes round in a circle."""
    sources: dict[Box, list[Box]] = {unit: [] for unit in units}
    users: dict[Box, int] = dict.fromkeys(units, 0)
    for source, box in pairs:
        sources[box].append(source)
        users[source] += 1
    depth: dict[Box, int] = dict.fromkeys(units, 0)  # the longest way to a result
    ready = [unit for unit in units if users[unit] == 0]
    for unit in ready:  # grows while it is walked
        for source in sources[unit]:
            depth[source] = max(depth[source], depth[unit] + 1)
            users[source] -= 1
            if users[source] == 0:
                ready.append(source)
    if len(ready) < len(units):
        return None
    deepest = max(depth.values())
    layers: list[list[Box]] = [[] for _ in range(deepest + 1)]
    for unit in units:
        layers[deepest - depth[unit]].append(unit)
    return [layer for layer in layers if layer]


Edge = tuple[Box, Box, int]  # from a box into another's input of this number
Routes = dict[tuple[int, int], list[Rectangle]]


@dataclass
class Picture:
    """Boxes that were placed: the bends of each arrow are boxes, too."""

    where: dict[Box, Rectangle]
    chains: dict[Edge, list[Box]]
    frames: list[tuple[str, Rectangle]]  # around the boxes of one call
    width: float
    height: float

    def moved(self, x: float, y: float) -> None:
        for p in [*self.where.values(), *[p for _, p in self.frames]]:
            p.x, p.y = p.x + x, p.y + y

    @property
    def routes(self) -> Routes:
        """The bends of each arrow, by box and number of its input."""
        return {(id(box), i): [self.where[b] for b in chain] for (_, box, i), chain in self.chains.items()}


def arrange(boxes: list[Box]) -> Picture:
    """A place for everything; the boxes of one call are a picture in the picture, with a frame around it."""
    return _nested(boxes, [(source, box, i) for box in boxes for i, (source, _) in enumerate(box.inputs)], 0)


def positions(boxes: list[Box]) -> tuple[dict[Box, Rectangle], Routes, float, float]:
    """A place for each box, the bends of each arrow (by box and number of its input), and the size of the picture."""
    picture = arrange(boxes)
    return picture.where, picture.routes, picture.width, picture.height


def _nested(boxes: list[Box], edges: list[Edge], level: int) -> Picture:
    unit, members = _units(boxes, edges, level)
    inner = {
        frame: _nested(inside, [e for e in edges if frame in (unit.get(e[0]), unit.get(e[1]))], level + 1)
        for frame, inside in members.items()
    }
    ends = [(e, unit.get(e[0]), unit.get(e[1])) for e in edges]
    sizes = {u: (inner[u].width, inner[u].height) if u in inner else _size(u) for u in dict.fromkeys(unit.values())}
    whole = _flat(sizes, [(e, a, b) for e, a, b in ends if a is not b])
    for e, a, b in ends:
        if a is b:
            whole.chains[e] = inner[a].chains[e]  # type: ignore[index]
        else:
            whole.chains[e] = [
                *(inner[a].chains[e] if a in inner else ()),
                *whole.chains[e],
                *(inner[b].chains[e] if b in inner else ()),
            ]
    for frame, picture in inner.items():
        p = whole.where.pop(frame)
        picture.moved(p.x - p.width / 2, p.y - p.height / 2)
        whole.where |= picture.where
        whole.frames += [(frame.name, p), *picture.frames]
    return whole


def _units(boxes: list[Box], edges: list[Edge], level: int) -> tuple[dict[Box, Box], dict[Box, list[Box]]]:
    """For each box what stands for it on this level: itself, or a frame; calls whose boxes are not together have none."""
    frames = {box.scope[level]: Box(box.scope[level].name, "frame") for box in boxes if len(box.scope) > level}
    while True:
        unit = {box: frames.get(box.scope[level], box) if len(box.scope) > level else box for box in boxes}
        pairs = [(unit[s], unit[t]) for s, t, _ in edges if s in unit and t in unit and unit[s] is not unit[t]]
        if not frames or layers_of(list(dict.fromkeys(unit.values())), pairs) is not None:
            break
        frames.popitem()
    members: dict[Box, list[Box]] = {}
    for box, u in unit.items():
        if u is not box:
            members.setdefault(u, []).append(box)
    return unit, members


def _flat(sizes: dict[Box, tuple[float, float]], ends: list[tuple[Edge, Box | None, Box | None]]) -> Picture:
    """Units in layers; arrows from outside enter at the top, those that leave do so at the bottom."""
    layers = layers_of(list(sizes), [(a, b) for _, a, b in ends if a is not None and b is not None])
    assert layers is not None
    links, chains = _with_bends(layers, ends)
    _order(layers, links)
    sizes = {b: sizes.get(b, (4.0, 0.0)) for layer in layers for b in layer}
    where: dict[Box, Rectangle] = {}
    widest = max(sum(sizes[b][0] for b in layer) + GAP_X * (len(layer) - 1) for layer in layers)
    y = GAP_Y / 2
    for layer in layers:
        height = max(sizes[b][1] for b in layer)
        width = sum(sizes[b][0] for b in layer) + GAP_X * (len(layer) - 1)
        x = (widest - width) / 2 + GAP_X
        for box in layer:
            w, h = sizes[box]
            where[box] = Rectangle(x + w / 2, y + height / 2, w, height if box.kind == "bend" else h)
            x += w + GAP_X
        y += height + GAP_Y
    _straighten(layers, links, where)
    left = min(p.x - p.width / 2 for p in where.values())
    for p in where.values():
        p.x += GAP_X - left
    right = max(p.x + p.width / 2 for p in where.values())
    return Picture(where, chains, [], right + GAP_X, y - GAP_Y / 2)


def _size(box: Box) -> tuple[float, float]:
    lines = lines_of(box)
    return max(len(line) for line in lines) * CHARACTER + 22, len(lines) * LINE + 14


def _with_bends(
    layers: list[list[Box]], ends: list[tuple[Edge, Box | None, Box | None]]
) -> tuple[list[tuple[Box, Box]], dict[Edge, list[Box]]]:
    """Arrows that pass layers by get a small box in each of them, so that they go round what is there."""
    level = {b: i for i, layer in enumerate(layers) for b in layer}
    links: list[tuple[Box, Box]] = []
    chains: dict[Edge, list[Box]] = {}
    for edge, source, target in ends:
        first = 0 if source is None else level[source] + 1
        last = len(layers) if target is None else level[target]
        chains[edge] = chain = [Box("", "bend") for _ in range(first, last)]
        for i, bend in enumerate(chain, first):
            layers[i].insert(0 if source is None else len(layers[i]), bend)  # what comes in is mostly the first operand
        way = [*([source] if source is not None else []), *chain, *([target] if target is not None else [])]
        links += pairwise(way)
    return links, chains


def _neighbours(
    layers: list[list[Box]], links: list[tuple[Box, Box]]
) -> tuple[dict[Box, list[Box]], dict[Box, list[Box]]]:
    above: dict[Box, list[Box]] = {b: [] for layer in layers for b in layer}
    below: dict[Box, list[Box]] = {b: [] for b in above}
    for upper, lower in links:
        above[lower].append(upper)
        below[upper].append(lower)
    return above, below


def _order(layers: list[list[Box]], links: list[tuple[Box, Box]]) -> None:
    """A few sweeps: every box as close as possible to the middle of its neighbours in the layer before."""
    above, below = _neighbours(layers, links)
    rank = {b: i for layer in layers for i, b in enumerate(layer)}
    for sweep in range(6):
        table = above if sweep % 2 == 0 else below
        for layer in layers if sweep % 2 == 0 else layers[::-1]:
            middle = {b: (sum(rank[n] for n in table[b]) / len(table[b]) if table[b] else rank[b]) for b in layer}
            layer.sort(key=middle.__getitem__)
            for i, b in enumerate(layer):
                rank[b] = i


def _straighten(layers: list[list[Box]], links: list[tuple[Box, Box]], where: dict[Box, Rectangle]) -> None:
    """Move boxes towards the middle of their neighbours, as far as the boxes beside them allow."""
    above, below = _neighbours(layers, links)
    for sweep in range(8):
        table = below if sweep % 2 else above
        for layer in layers if sweep % 2 == 0 else layers[::-1]:
            wanted = [sum(where[n].x for n in table[b]) / len(table[b]) if table[b] else where[b].x for b in layer]
            for i, box in enumerate(layer):
                p = where[box]
                low = (
                    where[layer[i - 1]].x + where[layer[i - 1]].width / 2 + GAP_X + p.width / 2 if i else float("-inf")
                )
                high = (
                    where[layer[i + 1]].x - where[layer[i + 1]].width / 2 - GAP_X - p.width / 2
                    if i + 1 < len(layer)
                    else float("inf")
                )
                p.x = min(max(wanted[i], low), high) if low <= high else p.x
