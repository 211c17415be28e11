"""A lineage graph as an indented tree, for a terminal."""

from collections.abc import Callable

from clew.tracelink.lineage import LineageGraph

_AGAIN = " (above)"
_MORE = " …"


def render_tree(graph: LineageGraph, label: Callable[[int], str] = str) -> str:
    """One line per trace. One that stands there already is not unfolded again; `…` is where the walk stopped."""
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
