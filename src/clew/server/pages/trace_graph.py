"""The lineage of one trace id as a graph: rows of runs and frames of processes, from what to what."""

from clew.server.pages import addresses
from clew.server.pages.drawing.graph import Graph, GraphNode
from clew.tracelink import Lineage, TracePlace


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
        line = f" line {source.line:,}" if source.line is not None else ""
        return f"{source.file}{line}"
    if row is not None and row.operation_seq:
        return f"step {row.operation_seq} {row.step_name or ''}".strip()
    return row.dataset or "" if row else ""


def _subtitle(row: TracePlace | None) -> str:
    return f"{row.project}, {row.period}" if row and row.project else ""
