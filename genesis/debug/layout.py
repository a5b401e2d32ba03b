"""Where boxes go: layers from the longest paths, an order within layers with few crossings (Sugiyama, Tagawa and Toda 1981)."""

from __future__ import annotations

from dataclasses import dataclass

from genesis.debug.graph import Box

CHARACTER, GAP_X, GAP_Y, LINE = 7.4, 26.0, 48.0, 16.0


@dataclass
class Place:
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


def layers_of(boxes: list[Box]) -> list[list[Box]]:
    """Values flow downwards: every box is below all that it is computed from."""
    users: dict[Box, int] = dict.fromkeys(boxes, 0)
    for box in boxes:
        for source, _ in box.inputs:
            users[source] += 1
    depth: dict[Box, int] = dict.fromkeys(boxes, 0)  # the longest way to a result
    ready = [box for box in boxes if users[box] == 0]
    while ready:
        box = ready.pop()
        for source, _ in box.inputs:
            depth[source] = max(depth[source], depth[box] + 1)
            users[source] -= 1
            if users[source] == 0:
                ready.append(source)
    deepest = max(depth.values())
    layers: list[list[Box]] = [[] for _ in range(deepest + 1)]
    for box in boxes:
        layers[deepest - depth[box]].append(box)
    return [layer for layer in layers if layer]


Routes = dict[tuple[int, int], list[Place]]


def place(boxes: list[Box]) -> tuple[dict[Box, Place], Routes, float, float]:
    """A place for each box, the bends of each arrow (by box and number of its input), and the size of the picture."""
    layers = layers_of(boxes)
    links, bends = _with_bends(layers)
    _order(layers, links)
    sizes = {b: _size(b) for layer in layers for b in layer}
    where: dict[Box, Place] = {}
    widest = max(sum(sizes[b][0] for b in layer) + GAP_X * (len(layer) - 1) for layer in layers)
    y = GAP_Y / 2
    for layer in layers:
        height = max(sizes[b][1] for b in layer)
        width = sum(sizes[b][0] for b in layer) + GAP_X * (len(layer) - 1)
        x = (widest - width) / 2 + GAP_X
        for box in layer:
            w, h = sizes[box]
            where[box] = Place(x + w / 2, y + height / 2, w, height if box.kind == "bend" else h)
            x += w + GAP_X
        y += height + GAP_Y
    _straighten(layers, links, where)
    left = min(p.x - p.width / 2 for p in where.values())
    for p in where.values():
        p.x += GAP_X - left
    right = max(p.x + p.width / 2 for p in where.values())
    routes = {key: [where[b] for b in chain] for key, chain in bends.items()}
    return where, routes, right + GAP_X, y - GAP_Y / 2


def _size(box: Box) -> tuple[float, float]:
    if box.kind == "bend":
        return 4.0, 0.0
    lines = lines_of(box)
    return max(len(line) for line in lines) * CHARACTER + 22, len(lines) * LINE + 14


def _with_bends(layers: list[list[Box]]) -> tuple[list[tuple[Box, Box]], dict[tuple[int, int], list[Box]]]:
    """Arrows that pass layers by get a small box in each of them, so that they go round what is there."""
    level = {b: i for i, layer in enumerate(layers) for b in layer}
    links: list[tuple[Box, Box]] = []
    bends: dict[tuple[int, int], list[Box]] = {}
    for box in list(level):
        for place, (source, _) in enumerate(box.inputs):
            chain = [Box("", "bend") for _ in range(level[source] + 1, level[box])]
            for i, bend in enumerate(chain, level[source] + 1):
                layers[i].append(bend)
            bends[id(box), place] = chain
            links += zip([source, *chain], [*chain, box], strict=True)
    return links, bends


def _neighbours(layers: list[list[Box]], links: list[tuple[Box, Box]]) -> tuple[dict[Box, list[Box]], dict[Box, list[Box]]]:
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


def _straighten(layers: list[list[Box]], links: list[tuple[Box, Box]], where: dict[Box, Place]) -> None:
    """Move boxes towards the middle of their neighbours, as far as the boxes beside them allow."""
    above, below = _neighbours(layers, links)
    for sweep in range(8):
        table = below if sweep % 2 else above
        for layer in layers if sweep % 2 == 0 else layers[::-1]:
            wanted = [sum(where[n].x for n in table[b]) / len(table[b]) if table[b] else where[b].x for b in layer]
            for i, box in enumerate(layer):
                p = where[box]
                low = where[layer[i - 1]].x + where[layer[i - 1]].width / 2 + GAP_X + p.width / 2 if i else float("-inf")
                high = where[layer[i + 1]].x - where[layer[i + 1]].width / 2 - GAP_X - p.width / 2 if i + 1 < len(layer) else float("inf")
                p.x = min(max(wanted[i], low), high) if low <= high else p.x
