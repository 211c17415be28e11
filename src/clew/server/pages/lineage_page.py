"""The page of a lineage graph, and the graph of the values that one value was made from.

Also the lineage of one trace id: rows of runs and frames of processes.
"""

from collections import Counter

from clew.deferred import dataclass
from clew.server.pages import addresses
from clew.server.pages.drawing.graph import Graph, GraphNode, Picture, drawn
from clew.server.pages.explain_nodes import TreeNode
from clew.tracelink import Lineage, TracePlace


@dataclass(frozen=True, slots=True)
class LineagePage:
    """A graph with its title and filters."""

    picture: Picture
    title: str
    lead: str
    focus: str | None
    """The filter of the graph, in words."""
    whole_address: str | None
    back: tuple[tuple[str, str], ...]
    """Breadcrumbs: names and addresses."""
    turn: tuple[str, str] | None
    """The graph in the other direction: label and address."""
    project: str
    period: str
    projects: tuple[str, ...]
    has_filter: bool
    states: tuple[tuple[str, str, int], ...]
    """What the colours mean: the kind of a box, what it is called, and how many there are."""
    file_address: str
    """The picture as a file."""
    more_address: tuple[str, str] | None
    """Where more runs are drawn: label and address."""


_STATES = {
    "run COMPLETED": ("completed run", "completed runs"),
    "run FAILED": ("failed run", "failed runs"),
    "run RUNNING": ("running", "running"),
    "run PAUSED": ("paused", "paused"),
    "run PENDING": ("waiting", "waiting"),
    "run APPROVED": ("approved", "approved"),
    "run CANCELLED": ("cancelled run", "cancelled runs"),
    "version": ("registered dataset", "registered datasets"),
    "source": ("source", "sources"),
    "place": ("output", "outputs"),
    "value": ("value", "values"),
    "rest": ("rest", "rests"),
}


def value_graph(root: TreeNode, run_id: str, title: str) -> Graph:
    """The values that a value was made from, down to lines of files."""
    nodes, edges = dict[str, GraphNode](), list[tuple[str, str]]()

    def add(node: TreeNode, label: str, run: str, inherited: str) -> str:
        label = node.row or label
        run = node.in_run.title if node.in_run else run
        key = node.address or (f"{inherited} {node.name or node.row}" if not node.joined else _joined_key(node))
        shown = node.cell.text if node.cell else ""
        nodes.setdefault(
            key,
            GraphNode(
                key=key,
                kind="source" if node.is_source else "value",
                title=f"{node.name or label} {shown}".strip(),
                subtitle=_about(node, label, run, title),
                address=node.address or node.row_address,
                is_here=node is root,
            ),
        )
        for child in (*node.children, *node.parents):
            edges.append((add(child, label, run, key), key))
        if node.rest is not None:
            rest = GraphNode(
                key=f"rest of {key}",
                kind="rest",
                title=f"{node.rest.count:,} more rows",
                subtitle=node.rest.share or "",
            )
            nodes[rest.key] = rest
            edges.append((rest.key, key))
        return key

    add(root, root.row or "", title, run_id)
    return Graph(tuple(nodes.values()), tuple(dict.fromkeys(edges)))


def lineage_page(
    graph: Graph,
    *,
    title: str,
    lead: str,
    focus: str | None = None,
    back: tuple[tuple[str, str], ...] = (),
    turn: tuple[str, str] | None = None,
    project: str = "",
    period: str = "",
    projects: tuple[str, ...] = (),
    has_filter: bool = False,
    file_address: str = "",
    more_address: tuple[str, str] | None = None,
) -> LineagePage:
    """A graph, drawn."""
    whole = addresses.lineage() if focus else None
    counts = Counter(node.kind for node in graph.nodes)
    return LineagePage(
        picture=drawn(graph),
        title=title,
        lead=lead,
        focus=focus,
        whole_address=whole,
        back=back,
        turn=turn,
        project=project,
        period=period,
        projects=projects,
        has_filter=has_filter,
        states=tuple(
            (kind, one if counts[kind] == 1 else many, counts[kind])
            for kind, (one, many) in _STATES.items()
            if counts[kind]
        ),
        file_address=file_address,
        more_address=more_address,
    )


def _joined_key(node: TreeNode) -> str:
    joined = node.joined
    place = f"{joined.source.file} {joined.source.line}" if joined and joined.source else ""
    return f"joined {joined.dataset if joined else ''} {joined.label if joined else ''} {place} {node.name}"


def _about(node: TreeNode, label: str, run: str, title: str) -> str:
    place = node.source
    if place is not None and place.file:
        return f"{place.file} {place.numbered or ''}".rstrip()
    step = f"step {node.step.seq} {node.step.name}" if node.step else node.how
    where = "" if run == title else f", {run}"
    row = f"{label} · " if label and label not in (node.name or "") else ""
    return f"{row}{step}{where}"


def trace_graph(lineage: Lineage) -> Graph:
    """Traces as nodes; edges lead from parents to children."""
    return Graph(
        tuple(_node(lineage, node.trace_id, is_expanded=node.expanded) for node in lineage.graph.nodes),
        tuple((str(parent), str(child)) for child, parent in lineage.graph.links),
    )


def _node(lineage: Lineage, trace_id: int, *, is_expanded: bool) -> GraphNode:
    places = lineage.places.get(trace_id, ())
    source = next((place for place in places if place.file), None)
    row = next((place for place in reversed(places) if place.run_id and place.row_id), None)
    return GraphNode(
        key=str(trace_id),
        kind="source" if source else "value" if is_expanded or trace_id == lineage.trace_id else "rest",
        title=_title(source, row) or str(trace_id),
        subtitle=_subtitle(row) or lineage.describe(trace_id),
        address=addresses.row(row.run_id, row.row_id) if row and row.run_id and row.row_id else None,
        is_here=trace_id == lineage.trace_id,
    )


def _title(source: TracePlace | None, row: TracePlace | None) -> str:
    if source is not None:
        line = f" {source.unit or 'line'} {source.line:,}" if source.line is not None else ""
        return f"{source.file}{line}"
    if row is not None and row.operation_seq:
        return f"step {row.operation_seq} {row.step_name or ''}".strip()
    return row.dataset or "" if row else ""


def _subtitle(row: TracePlace | None) -> str:
    return f"{row.project}, {row.period}" if row and row.project else ""
