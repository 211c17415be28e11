"""A layered layout for graphs whose edges mostly point one way, such as lineage, from left to right.

The usual four phases. Edges that close a cycle are reversed for the layout; every node gets the layer after its
farthest predecessor; within a layer, nodes are ordered by the positions of their neighbours, in both directions; then
each layer gets coordinates, as close to its neighbours as the order allows. Edges that span several layers go through
bends, which are ordered like nodes, so that lines run between boxes and not through them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from itertools import pairwise

from clew.deferred import dataclass

_SWEEPS = 12
_PULLS = 8


@dataclass(frozen=True, slots=True)
class Box:
    """A node to be placed."""

    key: str
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Placed:
    """A node with its position: the upper left corner."""

    key: str
    x: float
    y: float
    width: float
    height: float
    layer: int


@dataclass(frozen=True, slots=True)
class Line:
    """An edge as a list of points, from the right side of its source to the left side of its target."""

    source: str
    target: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """A graph with positions."""

    nodes: tuple[Placed, ...]
    lines: tuple[Line, ...]
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Gaps:
    """The distances between things."""

    between_layers: float = 64
    between_nodes: float = 14
    margin: float = 12


@dataclass(slots=True)
class _Item:
    """A node, or a bend of a long edge."""

    key: str
    width: float
    height: float
    layer: int
    y: float = 0.0
    before: list["_Item"] = field(default_factory=list)
    after: list["_Item"] = field(default_factory=list)
    is_bend: bool = False


def layout(boxes: Sequence[Box], edges: Iterable[tuple[str, str]], gaps: Gaps | None = None) -> Layout:
    """Positions for all boxes and points for all edges. Edges to unknown boxes and self-loops are left out."""
    gaps = gaps or Gaps()
    known = {box.key for box in boxes}
    wanted = [edge for edge in dict.fromkeys(edges) if edge[0] in known and edge[1] in known and edge[0] != edge[1]]
    forward = _without_cycles([box.key for box in boxes], wanted)
    ranks = _ranks([box.key for box in boxes], forward)
    items = {box.key: _Item(box.key, box.width, box.height, ranks[box.key]) for box in boxes}
    chains = {edge: _chain(items[edge[0]], items[edge[1]]) for edge in dict.fromkeys(forward)}
    layers = _layers([*items.values(), *(bend for chain in chains.values() for bend in chain[1:-1])])
    _order(layers)
    _set_heights(layers, gaps)
    columns = _columns(layers, gaps)
    return _finished(items, wanted, chains, columns, gaps)


def _without_cycles(keys: Sequence[str], edges: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The edges, with those reversed that would close a cycle."""
    targets = dict[str, list[str]]((key, []) for key in keys)
    for source, target in edges:
        targets[source].append(target)
    state = dict[str, int]()
    turned = set[tuple[str, str]]()
    for start in keys:
        if start in state:
            continue
        state[start] = 1
        path = [(start, iter(targets[start]))]
        while path:
            key, rest = path[-1]
            for target in rest:
                if state.get(target) == 1:
                    turned.add((key, target))
                elif target not in state:
                    state[target] = 1
                    path.append((target, iter(targets[target])))
                    break
            else:
                state[key] = 2
                path.pop()
    return [(edge[1], edge[0]) if edge in turned else edge for edge in edges]


def _ranks(keys: Sequence[str], edges: Iterable[tuple[str, str]]) -> dict[str, int]:
    """The layer of each node: after its farthest predecessor, then as close as possible to its successors."""
    before, after = _neighbours(keys, edges)
    waiting = {key: len(before[key]) for key in keys}
    ready = [key for key in keys if not waiting[key]]
    ranks = dict.fromkeys(keys, 0)
    order = list[str]()
    while ready:
        key = ready.pop(0)
        order.append(key)
        for target in after[key]:
            ranks[target] = max(ranks[target], ranks[key] + 1)
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    for key in reversed(order):
        if after[key]:
            ranks[key] = min(ranks[target] for target in after[key]) - 1
    return ranks


def _neighbours(
    keys: Sequence[str], edges: Iterable[tuple[str, str]]
) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    before, after = {key: list[str]() for key in keys}, {key: list[str]() for key in keys}
    for source, target in dict.fromkeys(edges):
        before[target].append(source)
        after[source].append(target)
    return before, after


def _chain(source: _Item, target: _Item) -> list[_Item]:
    """The path of an edge: its source, a bend in every layer between, its target. Links them as neighbours."""
    between = range(source.layer + 1, target.layer)
    bends = [_Item(f"{source.key} to {target.key} at {layer}", 0, 4, layer, is_bend=True) for layer in between]
    chain = [source, *bends, target]
    for left, right in pairwise(chain):
        left.after.append(right)
        right.before.append(left)
    return chain


def _layers(items: Sequence[_Item]) -> list[list[_Item]]:
    layers = [list[_Item]() for _ in range(max((item.layer for item in items), default=-1) + 1)]
    for item in items:
        layers[item.layer].append(item)
    return layers


def _order(layers: list[list[_Item]]) -> None:
    """Order every layer so that few edges cross; keeps the best of all sweeps."""
    best, fewest = [list(layer) for layer in layers], _crossings(layers)
    for sweep in range(_SWEEPS):
        if not fewest:
            break
        downwards = sweep % 2 == 0
        for layer in layers if downwards else reversed(layers):
            _sort_by_neighbours(layers, layer, before=downwards)
        crossings = _crossings(layers)
        if crossings < fewest:
            best, fewest = [list(layer) for layer in layers], crossings
    layers[:] = best


def _sort_by_neighbours(layers: list[list[_Item]], layer: list[_Item], *, before: bool) -> None:
    index = layer[0].layer + (-1 if before else 1) if layer else -1
    if not 0 <= index < len(layers):
        return
    positions = {id(item): float(place) for place, item in enumerate(layers[index])}
    own = {id(item): float(place) for place, item in enumerate(layer)}

    def middle(item: _Item) -> float:
        neighbours = item.before if before else item.after
        places = [positions[id(each)] for each in neighbours if id(each) in positions]
        return sum(places) / len(places) if places else own[id(item)]

    layer.sort(key=middle)


def _crossings(layers: Sequence[Sequence[_Item]]) -> int:
    """How many pairs of edges cross between neighbouring layers."""
    total = 0
    for layer, following in pairwise(layers):
        places = {id(item): place for place, item in enumerate(following)}
        ends = [place for item in layer for place in sorted(places[id(each)] for each in item.after)]
        total += _inversions(ends)
    return total


def _inversions(numbers: Sequence[int]) -> int:
    """How many pairs are in the wrong order, counted with a Fenwick tree."""
    most = max(numbers, default=-1) + 1
    counts = [0] * (most + 1)
    total = 0
    for seen, number in enumerate(numbers):
        index, not_greater = number + 1, 0
        while index:
            not_greater += counts[index]
            index -= index & -index
        total += seen - not_greater
        index = number + 1
        while index <= most:
            counts[index] += 1
            index += index & -index
    return total


def _set_heights(layers: Sequence[Sequence[_Item]], gaps: Gaps) -> None:
    """Place items from top to bottom, then move them towards their neighbours several times, keeping order and gaps."""
    for layer in layers:
        y = 0.0
        for item in layer:
            item.y = y
            y += item.height + gaps.between_nodes
    for pull in range(_PULLS):
        towards_before = pull % 2 == 0
        for layer in layers if towards_before else reversed(layers):
            _pull(layer, gaps, before=towards_before)
    top = min((item.y for layer in layers for item in layer), default=0.0)
    for layer in layers:
        for item in layer:
            item.y -= top


def _pull(layer: Sequence[_Item], gaps: Gaps, *, before: bool) -> None:
    """Move the items of a layer as close to the middle of their neighbours as the others allow.

    Items that would overlap form a block, which moves to the mean of what its members want.
    """
    blocks = list[tuple[float, float, list[_Item]]]()
    for item in layer:
        neighbours = (item.before if before else item.after) or item.after or item.before
        middles = [each.y + each.height / 2 for each in neighbours]
        wanted = (sum(middles) / len(middles) if middles else item.y + item.height / 2) - item.height / 2
        blocks.append((wanted, item.height + gaps.between_nodes, [item]))
        while len(blocks) > 1 and blocks[-2][0] + blocks[-2][1] > blocks[-1][0]:
            upper, lower = blocks[-2], blocks[-1]
            weights = len(upper[2]), len(lower[2])
            start = (upper[0] * weights[0] + (lower[0] - upper[1]) * weights[1]) / sum(weights)
            blocks[-2:] = [(start, upper[1] + lower[1], upper[2] + lower[2])]
    for start, _, items in blocks:
        y = start
        for item in items:
            item.y = y
            y += item.height + gaps.between_nodes


def _columns(layers: Sequence[Sequence[_Item]], gaps: Gaps) -> list[tuple[float, float]]:
    """The left side and the width of every layer."""
    columns, x = list[tuple[float, float]](), gaps.margin
    for layer in layers:
        width = max((item.width for item in layer), default=0.0)
        columns.append((x, width))
        x += width + gaps.between_layers
    return columns


def _finished(
    items: Mapping[str, _Item],
    edges: Sequence[tuple[str, str]],
    chains: Mapping[tuple[str, str], Sequence[_Item]],
    columns: Sequence[tuple[float, float]],
    gaps: Gaps,
) -> Layout:
    placed = tuple(
        Placed(item.key, columns[item.layer][0], item.y + gaps.margin, item.width, item.height, item.layer)
        for item in items.values()
    )
    lines = list[Line]()
    for source, target in edges:
        chain = chains.get((source, target))
        points = _points(chain or list(reversed(chains[target, source])), columns, gaps)
        lines.append(Line(source, target, points))
    width = columns[-1][0] + columns[-1][1] + gaps.margin if columns else 2 * gaps.margin
    lowest = max((node.y + node.height for node in placed), default=gaps.margin)
    bends = max((point[1] for line in lines for point in line.points), default=0.0)
    return Layout(placed, tuple(lines), width, max(lowest, bends) + gaps.margin)


def _points(
    chain: Sequence[_Item], columns: Sequence[tuple[float, float]], gaps: Gaps
) -> tuple[tuple[float, float], ...]:
    points = list[tuple[float, float]]()
    for item in chain:
        left, width = columns[item.layer]
        middle = item.y + item.height / 2 + gaps.margin
        if item.is_bend:
            points += [(left, middle), (left + width, middle)]
        elif item is chain[0]:
            points.append((left + item.width, middle))
            if item.width < width:
                points.append((left + width, middle))
        else:
            points.append((left, middle))
    return tuple(points)
