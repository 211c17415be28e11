"""A lineage graph in the language of Graphviz. Arrows go from parent to child, as data flows."""

from collections.abc import Callable

from clew.tracelink.lineage import LineageGraph


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
