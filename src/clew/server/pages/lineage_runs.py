"""The graph of runs: what each of them read, who had written that, and what it published itself."""

from collections.abc import Callable, Sequence
from functools import cache

from clew.api.datasets import AuthoredRows, VersionView
from clew.api.run import Run
from clew.api.run_view import RunInput
from clew.api.workspace import Workspace
from clew.deferred import dataclass
from clew.diagnostics import UserError
from clew.server.pages import addresses, words
from clew.server.pages.drawing.graph import Graph, GraphNode

VersionsOf = Callable[[str], Sequence[VersionView]]
"""The versions of a registered dataset by its name; none if nobody knows them any more."""

_MOST_BEHIND = 200
"""Runs that are drawn only because others have read what they wrote."""


@dataclass(frozen=True, slots=True)
class RunsToDraw:
    """Where the graph of runs comes from."""

    runs: Sequence[Run]
    find: Callable[[str], Run]
    """A run by its id. Raises UserError if there is none, or the caller may not see it."""
    versions_of: VersionsOf
    ancestors: Callable[[str], frozenset[str]]
    """The periods that a period is part of."""


def run_graph(drawn: RunsToDraw) -> Graph:
    """Runs with what they read and published.

    An input that other runs have registered comes from exactly those runs whose rows were read: by version and period.
    These runs are drawn too, however old they are.
    """
    nodes, edges = dict[str, GraphNode](), list[tuple[str, str]]()
    waiting = list(drawn.runs)
    known = {run.id for run in waiting}
    room = _MOST_BEHIND

    def add(node: GraphNode) -> str:
        nodes.setdefault(node.key, node)
        return node.key

    while waiting:
        run = waiting.pop(0)
        key = add(_run_node(run))
        for output in run.outputs:
            edges.append((key, add(_output_node(run, output))))
        for each in run.inputs():
            read = _versions_read(drawn, run, each)
            if not read:
                edges.append((add(_input_node(each)), key))
            for node, written in read:
                edges.append((add(node), key))
                if written.run_id in known or not room:
                    continue
                known.add(written.run_id)
                try:
                    waiting.append(drawn.find(written.run_id))
                except UserError:
                    continue
                room -= 1
    return Graph(tuple(nodes.values()), tuple(dict.fromkeys(edges)))


def versions_in(workspace: Workspace) -> VersionsOf:
    """The versions of registered datasets, each dataset looked up once; none for callers of another tenant."""

    @cache
    def versions(dataset: str) -> Sequence[VersionView]:
        try:
            return workspace.datasets.find(dataset).versions
        except UserError:
            return ()

    return versions


def periods_above(workspace: Workspace) -> Callable[[str], frozenset[str]]:
    """The periods that a period is part of: files of a quarter may hold rows of its months."""

    @cache
    def above(period: str) -> frozenset[str]:
        try:
            periods = workspace.loaded.workspace.periods
        except UserError:
            return frozenset()
        return frozenset(each.identifier for each in periods.ancestors(period))

    return above


def run_key(run_id: str) -> str:
    """The key of a run in a graph of runs."""
    return f"run {run_id}"


def _versions_read(drawn: RunsToDraw, run: Run, found: RunInput) -> list[tuple[GraphNode, AuthoredRows]]:
    """What other runs have written into the version that a run has read, of the periods that it has read."""
    details = found.details
    if details.get("format") != "managed":
        return []
    dataset, number = str(details.get("dataset")), details.get("version")
    versions = drawn.versions_of(dataset)
    version = next((each for each in versions if each.version == number), None)
    if version is None:
        return []
    first = {(each.run_id, each.step): each.version for each in versions}
    periods = _periods_read(drawn, run, found)
    return [
        (_written_node(dataset, written, first.get((written.run_id, written.seq))), written)
        for written in version.written
        if periods is None or written.period in periods
    ]


def _periods_read(drawn: RunsToDraw, run: Run, found: RunInput) -> frozenset[str] | None:
    """The periods in whose files rows of the input may lie; None if the input does not belong to periods."""
    listed = found.details.get("periods")
    uses = run.plan.datasets_read if run.plan is not None else ()
    use = next((use for use in uses if use.key == found.name), None)
    if not isinstance(listed, str) or (use is not None and use.temporal_mode != "period"):
        return None
    read = frozenset(listed.split(", "))
    return read.union(*(drawn.ancestors(period) for period in read))


def _run_node(run: Run) -> GraphNode:
    view = run.view
    request = view.record.request
    name = view.plan.title if view.plan else request.project_id
    return GraphNode(
        key=run_key(run.id),
        kind=f"run {view.snapshot.status.value}",
        title=f"{words.isolated(name)}, {request.period}",
        subtitle=f"run {words.short(run.id)}, {view.snapshot.status.value.lower()}",
        address=addresses.run(run.id),
    )


def _input_node(found: RunInput) -> GraphNode:
    details = found.details
    if details.get("format") == "managed":
        dataset, version = str(details.get("dataset")), details.get("version")
        return GraphNode(
            key=f"dataset {dataset} v{version}",
            kind="version",
            title=f"{dataset} v{version}",
            subtitle=words.joined("dataset", words.counted(found.rows, "row")),
            address=addresses.dataset(dataset),
        )
    return GraphNode(
        key=f"input {found.name} {details.get('sources')}",
        kind="source",
        title=found.name,
        subtitle=found.sources,
        address=addresses.dataset(found.name.partition("@")[0]),
    )


def _output_node(run: Run, output: dict[str, object]) -> GraphNode:
    rows, seq = int(str(output["rows"])), int(str(output["seq"]))
    if "dataset" in output:
        version = int(str(output["dataset_version"]))
        return _dataset_node(str(output["dataset"]), (run.id, seq), run.period, rows, version)
    place = str(output.get("path") or f"table {output.get('table')}")
    return GraphNode(
        key=f"output {place}",
        kind="place",
        title=place,
        subtitle=words.counted(rows, "row"),
    )


def _written_node(dataset: str, written: AuthoredRows, version: int | None) -> GraphNode:
    return _dataset_node(dataset, (written.run_id, written.seq), written.period, written.rows, version)


def _dataset_node(
    dataset: str, author: tuple[str, int], period: str, rows: int | None, version: int | None
) -> GraphNode:
    """What one output of a run has put into a dataset, and in which version it came."""
    return GraphNode(
        key=f"dataset {dataset} {author[0]} {author[1]}",
        kind="version",
        title=f"{dataset} {period}",
        subtitle=words.joined(
            f"added in v{version}" if version is not None else "dataset",
            words.counted(rows, "row") if rows is not None else "",
        ),
        address=addresses.dataset(dataset),
    )
