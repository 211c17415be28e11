"""Questions about the lineage of runs, put to the reader that `clew lineage` asks."""

from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow.parquet as pq
from engine_workspaces import Shop

from clew.app.running.lineage import RunLineage, run_lineage
from clew.app.running.reading import RunView, committed_parts
from clew.app.running.state import State
from clew.trace.layout import TRACE_ID, IdBlock

Leaf = tuple[str, int]


@contextmanager
def lineage(shop: Shop) -> Iterator[tuple[State, RunLineage]]:
    with shop.starter() as starter:
        reader = run_lineage(starter.state, starter.environment)
        assert isinstance(reader, RunLineage)
        yield starter.state, reader


def registered_rows(shop: Shop, view: RunView) -> list[dict[str, Any]]:
    """The rows that a run registered, with their trace ids."""
    files = sorted((shop.storage / "datasets").glob(f"*/{view.record.run_id}-*/*.parquet"))
    return [row for file in files for row in pq.read_table(file).to_pylist()]


def graph_up(reader: RunLineage, trace_ids: Collection[int]) -> dict[int, set[int]]:
    """The parents of these and of all above them."""
    graph = dict[int, set[int]]()
    frontier = set(trace_ids)
    while frontier:
        graph |= {trace_id: set() for trace_id in frontier}
        found = list(reader.parents(frontier))
        assert all(count == 1 for count in Counter(found).values()), "a link is told once"
        for child, parent in found:
            graph[child].add(parent)
        frontier = {parent for _, parent in found} - graph.keys()
    return graph


def graph_down(reader: RunLineage, trace_ids: Collection[int]) -> dict[int, set[int]]:
    """The same the other way: the children of these and of all below them."""
    graph = dict[int, set[int]]()
    frontier = set(trace_ids)
    while frontier:
        graph |= {trace_id: set() for trace_id in frontier}
        found = list(reader.children(frontier))
        for child, parent in found:
            graph[parent].add(child)
        frontier = {child for child, _ in found} - graph.keys()
    return graph


def ends(graph: dict[int, set[int]], trace_id: int) -> set[int]:
    """The traces at the ends of all ways from one."""
    following = graph.get(trace_id)
    return {trace_id} if not following else set().union(*(ends(graph, each) for each in following))


def leaves(reader: RunLineage, trace_ids: Collection[int]) -> dict[int, frozenset[Leaf]]:
    """The source rows behind each of these: dataset and line."""
    graph = graph_up(reader, trace_ids)
    sources = dict[int, Leaf]()
    for place in reader.places([trace_id for trace_id, parents in graph.items() if not parents]):
        if place.trace_id not in sources:
            assert place.dataset is not None
            assert place.line is not None
            sources[place.trace_id] = (place.dataset, place.line)
    return {trace_id: frozenset(sources[end] for end in ends(graph, trace_id)) for trace_id in trace_ids}


def blocks_of(shop: Shop, view: RunView) -> dict[str, IdBlock]:
    """The blocks that the committed parts of a run name, by file."""
    parts = committed_parts(shop.storage, view.snapshot)
    return {file.path: file.ids for part in parts for file in part.files if isinstance(file.ids, IdBlock)}


def trace_ids(rows: Collection[dict[str, Any]]) -> list[int]:
    return [row[TRACE_ID] for row in rows]
