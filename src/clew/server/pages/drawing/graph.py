"""Graphs as pictures: boxes with two lines of text, and curves between them. Templates only draw them."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from clew.deferred import dataclass
from clew.server.pages.drawing.layers import Box, Gaps, Line, layout

_TITLE_CHARACTER, _SUBTITLE_CHARACTER = 7.1, 6.0
_PADDING, _NARROWEST, _WIDEST, _HEIGHT = 22.0, 90.0, 260.0, 40.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphNode:
    """A node of a graph."""

    key: str
    kind: str
    """What it is: a class in the stylesheet."""
    title: str
    subtitle: str = ""
    address: str | None = None
    is_here: bool = False
    """Whether the picture is about this node."""


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes and edges."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[tuple[str, str], ...]

    def around(self, key: str) -> "Graph":
        """A node with everything upstream and downstream of it."""
        kept = _reached(key, self.edges) | _reached(key, [(target, source) for source, target in self.edges])
        return Graph(
            tuple(replace(node, is_here=node.key == key) for node in self.nodes if node.key in kept),
            tuple(edge for edge in self.edges if edge[0] in kept and edge[1] in kept),
        )

    def to_json(self) -> dict[str, object]:
        """Nodes and edges as data."""
        nodes = [
            {
                "key": node.key,
                "kind": node.kind,
                "title": node.title,
                "subtitle": node.subtitle,
                "address": node.address,
            }
            for node in self.nodes
        ]
        return {"nodes": nodes, "edges": [{"from": source, "to": target} for source, target in self.edges]}


@dataclass(frozen=True, slots=True)
class DrawnBox:
    """A node with its position."""

    node: GraphNode
    number: int
    x: float
    y: float
    width: float
    height: float
    title: str
    subtitle: str


@dataclass(frozen=True, slots=True)
class DrawnLine:
    """An edge as the path of a curve."""

    source: int
    target: int
    path: str


@dataclass(frozen=True, slots=True)
class Picture:
    """A graph, ready to draw."""

    boxes: tuple[DrawnBox, ...]
    lines: tuple[DrawnLine, ...]
    width: float
    height: float


def drawn(graph: Graph) -> Picture:
    """Lay a graph out from left to right."""
    boxes = [Box(node.key, _width(node), _HEIGHT) for node in graph.nodes]
    placed = layout(boxes, graph.edges, Gaps())
    numbers = {node.key: number for number, node in enumerate(graph.nodes)}
    places = {place.key: place for place in placed.nodes}
    return Picture(
        boxes=tuple(
            DrawnBox(
                node=node,
                number=numbers[node.key],
                x=round(places[node.key].x, 1),
                y=round(places[node.key].y, 1),
                width=places[node.key].width,
                height=places[node.key].height,
                title=_cut(node.title, _TITLE_CHARACTER),
                subtitle=_cut(node.subtitle, _SUBTITLE_CHARACTER),
            )
            for node in graph.nodes
        ),
        lines=tuple(DrawnLine(numbers[line.source], numbers[line.target], _curve(line)) for line in placed.lines),
        width=round(placed.width),
        height=round(placed.height),
    )


def _width(node: GraphNode) -> float:
    longest = max(len(node.title) * _TITLE_CHARACTER, len(node.subtitle) * _SUBTITLE_CHARACTER)
    return min(_WIDEST, max(_NARROWEST, longest + _PADDING))


def _cut(text: str, character: float) -> str:
    room = int((_WIDEST - _PADDING) / character)
    if len(text) <= room:
        return text
    half = (room - 1) // 2
    return f"{text[:half]}…{text[-half:]}"


def _curve(line: Line) -> str:
    first = line.points[0]
    parts = [f"M{first[0]:.1f} {first[1]:.1f}"]
    for (x1, y1), (x2, y2) in pairwise(line.points):
        middle = (x1 + x2) / 2
        straight = abs(y1 - y2) < 0.5
        parts.append(
            f"L{x2:.1f} {y2:.1f}" if straight else f"C{middle:.1f} {y1:.1f} {middle:.1f} {y2:.1f} {x2:.1f} {y2:.1f}"
        )
    return "".join(parts)


def _reached(start: str, edges: Sequence[tuple[str, str]]) -> set[str]:
    following = dict[str, list[str]]()
    for source, target in edges:
        following.setdefault(source, []).append(target)
    found, waiting = {start}, [start]
    while waiting:
        for target in following.get(waiting.pop(), ()):
            if target not in found:
                found.add(target)
                waiting.append(target)
    return found
