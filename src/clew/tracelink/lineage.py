"""Where a trace came from and where it went, over any number of hops.

The walk goes hop by hop and asks for a whole hop at once. It visits a trace once, so that circles do not keep it, and
it stops at a number of hops and a number of traces. What it did not look behind is marked as such: the result never
passes for more than it is.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum

from clew.tracelink.links import Link, LinkReader

MAX_DEPTH = 100
MAX_NODES = 10_000


class Direction(StrEnum):
    """Which way to go."""

    UP = "up"
    """To what a trace came from."""
    DOWN = "down"
    """To what came from it."""


@dataclass(frozen=True, slots=True)
class LineageNode:
    """A trace, and how many hops it is from where the walk began, at the least."""

    trace_id: int
    depth: int
    expanded: bool
    """Whether all links onwards from here are in the graph."""


@dataclass(frozen=True, slots=True)
class LineageGraph:
    """What a walk found: nodes by depth, links as pairs of a trace and its parent, both in the order of finding."""

    root: int
    direction: Direction
    nodes: tuple[LineageNode, ...]
    links: tuple[Link, ...]

    @property
    def is_complete(self) -> bool:
        """Whether the walk ended by itself and not at a limit."""
        return all(node.expanded for node in self.nodes)

    @property
    def leaves(self) -> tuple[int, ...]:
        """The traces from which no link goes on: upwards, the sources."""
        near = {link[self._near] for link in self.links}
        return tuple(node.trace_id for node in self.nodes if node.expanded and node.trace_id not in near)

    def onward(self) -> dict[int, list[int]]:
        """The next traces of each trace, in the direction of the walk."""
        following: dict[int, list[int]] = {}
        for link in self.links:
            following.setdefault(link[self._near], []).append(link[1 - self._near])
        return following

    def to_json(self) -> dict[str, object]:
        """The graph as a JSON document."""
        return {
            "trace_id": self.root,
            "direction": self.direction.value,
            "complete": self.is_complete,
            "nodes": [{"trace_id": n.trace_id, "depth": n.depth, "expanded": n.expanded} for n in self.nodes],
            "links": [{"trace_id": child, "parent_trace_id": parent} for child, parent in self.links],
        }

    @property
    def _near(self) -> int:
        """Which end of a link is nearer to the root."""
        return 0 if self.direction is Direction.UP else 1


def walk(
    reader: LinkReader,
    trace_id: int,
    direction: Direction,
    *,
    max_depth: int = MAX_DEPTH,
    max_nodes: int = MAX_NODES,
) -> LineageGraph:
    """Follow links from a trace, over at most `max_depth` hops and to at most `max_nodes` traces in all."""
    ask = reader.parents if direction is Direction.UP else reader.children
    near = 0 if direction is Direction.UP else 1
    depths = {trace_id: 0}
    expanded: set[int] = set()
    links: dict[Link, None] = {}
    frontier = [trace_id]
    for depth in range(1, max_depth + 1):
        found, is_whole = _one_hop(ask(frontier), near=near, depths=depths, room=max_nodes - len(depths), links=links)
        if is_whole:
            expanded.update(frontier)
        depths.update(dict.fromkeys(found, depth))
        if not found or not is_whole:
            break
        frontier = found
    nodes = tuple(LineageNode(node, depth, node in expanded) for node, depth in depths.items())
    return LineageGraph(root=trace_id, direction=direction, nodes=nodes, links=tuple(links))


def _one_hop(
    pairs: Iterable[Link], *, near: int, depths: Collection[int], room: int, links: dict[Link, None]
) -> tuple[list[int], bool]:
    """The traces not met before at the far ends of a hop, and whether all of the hop was read."""
    found: dict[int, None] = {}
    for pair in pairs:
        far = pair[1 - near]
        if far not in depths and far not in found:
            if len(found) >= room:
                return list(found), False
            found[far] = None
        links[pair] = None
    return list(found), True
