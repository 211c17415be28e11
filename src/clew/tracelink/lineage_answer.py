"""The answer to a question about lineage: the traces, how they are linked, and what each of them is.

It renders itself as an indented tree, as JSON, as a table, or as a graph for Graphviz, with arrows from parent to
child.
"""

from collections.abc import Callable, Iterable, Mapping
from html import escape
from itertools import islice
from typing import TYPE_CHECKING

from clew.deferred import dataclass
from clew.diagnostics import UserError
from clew.diagnostics.codes.tracelink import TRACE_NOT_FOUND
from clew.tracelink.lineage_walk import (
    MAX_DEPTH,
    MAX_NODES,
    Direction,
    LineageGraph,
    LineageReader,
    TracedFrame,
    TracePlace,
    walk,
)

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]
    import pyarrow as pa


_AGAIN = " (above)"
_MORE = " …"


def render_tree(graph: LineageGraph, label: Callable[[int], str] = str) -> str:
    """One line per trace. A trace that has been shown is not unfolded again; `…` marks where the walk stopped."""
    onward = graph.onward()
    unexpanded = {node.trace_id for node in graph.nodes if not node.expanded}
    lines: list[str] = []
    shown: set[int] = set()
    pending = [(graph.root, "", "")]
    while pending:
        trace_id, lead, indent = pending.pop()
        if trace_id in shown:
            lines.append(lead + label(trace_id) + _AGAIN)
            continue
        shown.add(trace_id)
        lines.append(lead + label(trace_id) + (_MORE if trace_id in unexpanded else ""))
        following = onward.get(trace_id, [])
        branches = [(n, indent + "├─ ", indent + "│  ") for n in following[:-1]]
        branches += [(n, indent + "└─ ", indent + "   ") for n in following[-1:]]
        pending.extend(reversed(branches))
    return "\n".join(lines)


def to_dot(graph: LineageGraph, label: Callable[[int], str] = str) -> str:
    """A digraph; the trace that was asked for is bold, and dashed ones may have more behind them."""
    lines = ["digraph lineage {", "  rankdir=LR;", "  node [shape=box];"]
    for node in graph.nodes:
        attributes = [f"label={_quoted(label(node.trace_id))}"]
        styles = [
            style
            for style, applies in (("bold", node.trace_id == graph.root), ("dashed", not node.expanded))
            if applies
        ]
        if styles:
            attributes.append(f"style={_quoted(','.join(styles))}")
        lines.append(f"  {_quoted(str(node.trace_id))} [{', '.join(attributes)}];")
    lines.extend(f"  {_quoted(str(parent))} -> {_quoted(str(child))};" for child, parent in graph.links)
    lines.append("}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


_MOST_FRAMES = 10_000
"""Frames that an answer holds in all: a trace can have been published any number of times."""


@dataclass(frozen=True, slots=True)
class Lineage:
    """Where a trace came from, or where it went."""

    graph: LineageGraph
    places: Mapping[int, tuple[TracePlace, ...]]
    frames: Mapping[int, tuple[TracedFrame, ...]]

    @property
    def trace_id(self) -> int:
        """The trace that was asked about."""
        return self.graph.root

    @property
    def leaves(self) -> tuple[int, ...]:
        """The traces without further links: upwards, the source rows."""
        return self.graph.leaves

    @property
    def is_complete(self) -> bool:
        """Whether the answer is complete, rather than cut off at a limit."""
        return self.graph.is_complete

    def describe(self, trace_id: int) -> str:
        """What a trace is, in one line: its most informative place, else its first frame, else nothing."""
        texts = [place.text for place in self.places.get(trace_id, ())]
        texts += [frame.text for frame in self.frames.get(trace_id, ())]
        return next((text for text in texts if text), "")

    def tree(self) -> str:
        """The answer as an indented tree."""
        return render_tree(self.graph, self._label)

    def to_dot(self) -> str:
        """The answer in the language of Graphviz."""
        return to_dot(self.graph, lambda trace_id: self._label(trace_id).replace("  ", "\n"))

    def to_json(self) -> dict[str, object]:
        """The answer as a JSON document."""
        leaves = set(self.leaves)
        document = self.graph.to_json()
        document["nodes"] = [
            {
                "trace_id": node.trace_id,
                "depth": node.depth,
                "expanded": node.expanded,
                "is_leaf": node.trace_id in leaves,
                "places": [place.to_json() for place in self.places.get(node.trace_id, ())],
                "frames": [frame.to_json() for frame in self.frames.get(node.trace_id, ())],
            }
            for node in self.graph.nodes
        ]
        return document

    def to_arrow(self) -> "pa.Table":
        """One row per trace: trace_id, depth, is_leaf, and what it is."""
        import pyarrow as pa  # noqa: PLC0415 - commands that print text do not need it

        leaves = set(self.leaves)
        nodes = self.graph.nodes
        return pa.table(
            {
                "trace_id": pa.array([node.trace_id for node in nodes], pa.uint64()),
                "depth": pa.array([node.depth for node in nodes], pa.int32()),
                "is_leaf": pa.array([node.trace_id in leaves for node in nodes], pa.bool_()),
                "description": pa.array([self.describe(node.trace_id) for node in nodes], pa.string()),
            }
        )

    def to_pandas(self) -> "pd.DataFrame":
        """The same as a DataFrame of pandas, which has to be installed."""
        return self.to_arrow().to_pandas()

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.tree())}</pre>"

    def _label(self, trace_id: int) -> str:
        description = self.describe(trace_id)
        return f"{trace_id}  {description}" if description else str(trace_id)


def ask_lineage(
    reader: LineageReader,
    trace_id: int,
    direction: Direction = Direction.UP,
    *,
    max_depth: int = MAX_DEPTH,
    max_nodes: int = MAX_NODES,
) -> Lineage:
    """Follow a trace and describe every trace on the way. Raises UserError TraceNotFound if the trace is unknown."""
    graph = walk(reader, trace_id, direction, max_depth=max_depth, max_nodes=max_nodes)
    ids = [node.trace_id for node in graph.nodes]
    places = _places_of(reader.places(ids))
    frames = _frames_of(islice(reader.frames(ids), _MOST_FRAMES))
    if len(ids) == 1 and not places and not frames and not _is_linked(reader, trace_id):
        raise UserError(TRACE_NOT_FOUND.anywhere(trace_id=trace_id))
    return Lineage(graph, places, frames)


def _is_linked(reader: LineageReader, trace_id: int) -> bool:
    """A trace may be known by links alone, and by those of the other direction only."""
    return any(True for ask in (reader.parents, reader.children) for _ in ask([trace_id]))


def _places_of(places: Iterable[TracePlace]) -> dict[int, tuple[TracePlace, ...]]:
    """Places by trace, each once."""
    grouped: dict[int, dict[TracePlace, None]] = {}
    for place in places:
        grouped.setdefault(place.trace_id, {})[place] = None
    return {trace_id: tuple(known) for trace_id, known in grouped.items()}


def _frames_of(frames: Iterable[TracedFrame]) -> dict[int, tuple[TracedFrame, ...]]:
    """Frames by trace, each once: stream, epoch and sequence identify them."""
    grouped: dict[int, dict[tuple[int, int, int], TracedFrame]] = {}
    for frame in frames:
        grouped.setdefault(frame.trace_id, {}).setdefault((frame.stream_id, frame.epoch, frame.seq), frame)
    return {trace_id: tuple(known.values()) for trace_id, known in grouped.items()}
