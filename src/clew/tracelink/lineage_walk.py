"""Follows links from a trace, up or down, over any number of hops.

The walk asks for one whole hop at a time. It visits each trace once, so that cycles do not trap it, and stops at a
number of hops and a number of traces. Traces whose links it did not follow are marked, so that the result never claims
to be complete when it is not.

Links and the places of traces come from readers: a database, the files of runs, or several of these.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import fields
from enum import StrEnum
from typing import Protocol

from clew import budgets
from clew.deferred import dataclass

Link = tuple[int, int]
"""A trace id and the id of one of its parents."""


_BYTES_PER_LINK = 200


class LinkReader(Protocol):
    """Answers for many traces at once, so that a walk asks once per hop and not once per trace.

    Links are pairs of a trace and its parent in both directions. A reader may name a link more than once.
    """

    def parents(self, trace_ids: Collection[int]) -> Iterable[Link]:
        """The links in which one of these is the trace."""
        ...

    def children(self, trace_ids: Collection[int]) -> Iterable[Link]:
        """The links in which one of these is the parent."""
        ...


class UnitedLinks:
    """Several readers as one: links of one trace may be in Parquet, those of the next in a database."""

    def __init__(self, readers: Sequence[LinkReader]) -> None:
        self._readers = tuple(readers)

    def parents(self, trace_ids: Collection[int]) -> Iterable[Link]:
        """The links that any of the readers has upwards."""
        for reader in self._readers:
            yield from reader.parents(trace_ids)

    def children(self, trace_ids: Collection[int]) -> Iterable[Link]:
        """The links that any of the readers has downwards."""
        for reader in self._readers:
            yield from reader.children(trace_ids)


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
        """Whether the walk is complete, rather than cut off at a limit."""
        return all(node.expanded for node in self.nodes)

    @property
    def leaves(self) -> tuple[int, ...]:
        """The traces without further links: upwards, the sources."""
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
        budgets.hold(_BYTES_PER_LINK)
        far = pair[1 - near]
        if far not in depths and far not in found:
            if len(found) >= room:
                return list(found), False
            found[far] = None
        links[pair] = None
    return list(found), True


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedFrame:
    """One frame of a trace, as a stage published it."""

    trace_id: int
    stream_id: int
    epoch: int
    seq: int
    stage_id: int = 0
    t_ns: int = 0
    """When it was published, in nanoseconds since 1970; 0 where unknown."""
    status: int = 0

    @property
    def text(self) -> str:
        """The frame in one line."""
        return f"stream {self.stream_id}, epoch {self.epoch}, seq {self.seq}"

    def to_json(self) -> dict[str, object]:
        """The frame as a JSON document."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class TracePlace:
    """A place where a trace was, as far as the reader knows it. What does not apply is None."""

    trace_id: int
    run_id: str | None = None
    project: str | None = None
    period: str | None = None
    operation_seq: int | None = None
    """The step that made the row, 0 for one that was loaded."""
    step_name: str | None = None
    row_id: str | None = None
    dataset: str | None = None
    file: str | None = None
    """Where a source row was read from: a path as the workspace writes it, or a table."""
    line: int | None = None
    unit: str | None = None
    """What `line` counts, where it does not count lines."""
    note: str | None = None
    """Other information, such as an artifact that was in use."""

    @property
    def text(self) -> str:
        """The place in one line, the source first."""
        return ", ".join(part for part in (self._source(), self._row(), self._run(), self.note) if part)

    def to_json(self) -> dict[str, object]:
        """What is known of the place as a JSON document."""
        known = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: value for name, value in known if value is not None}

    def _source(self) -> str | None:
        if self.file is None:
            return self.dataset
        return self.file if self.line is None else f"{self.file} {self.unit or 'line'} {self.line}"

    def _row(self) -> str | None:
        return None if self.row_id is None else f"row {self.row_id}"

    def _run(self) -> str | None:
        if self.run_id is None:
            return None
        steps = {None: "", 0: ", loaded"}
        step = steps.get(self.operation_seq, f", step {self.operation_seq}")
        named = f" {self.step_name}" if self.step_name and self.operation_seq else ""
        about = " ".join(word for word in (self.project, self.period) if word)
        return f"run {self.run_id[:8]}" + (f" ({about})" if about else "") + step + named


class LineageReader(LinkReader, Protocol):
    """Links, and what the traces at their ends stand for. Ids that a reader does not know are left out of answers."""

    def frames(self, trace_ids: Collection[int]) -> Iterable[TracedFrame]:
        """The frames that were published under these traces, of each trace in the order of publishing."""
        ...

    def places(self, trace_ids: Collection[int]) -> Iterable[TracePlace]:
        """Where these traces were. For each trace, the place that says most about its origin comes first."""
        ...


class UnitedLineage(UnitedLinks):
    """Several readers as one."""

    def __init__(self, readers: Sequence[LineageReader]) -> None:
        super().__init__(readers)
        self._lineage_readers = tuple(readers)

    def frames(self, trace_ids: Collection[int]) -> Iterable[TracedFrame]:
        """The frames that any of the readers has."""
        for reader in self._lineage_readers:
            yield from reader.frames(trace_ids)

    def places(self, trace_ids: Collection[int]) -> Iterable[TracePlace]:
        """The places that any of the readers knows."""
        for reader in self._lineage_readers:
            yield from reader.places(trace_ids)
