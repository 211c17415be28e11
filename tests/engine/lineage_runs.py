"""Projects whose rows have lineage, and questions about it, put to the reader that `clew lineage` asks."""

import json
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pyarrow.parquet as pq

from clew.api.run_view import RunReader, RunView
from clew.api.state import State
from clew.explain.run_lineage import RunLineage, run_lineage
from clew.storage.committed import committed_parts
from clew.storage.parts import TRACE_ID, IdBlock
from clew.trace.run_trace import open_trace
from tests.engine.engine_workspaces import SHOP, Shop

Leaf = tuple[str, int]

PERIOD = "2026-01"


def aggregate(seq: int, *keys: str, selector: str | None = None) -> dict[str, Any]:
    totals = [{"column": "amount", "expression": "SUM(amount)"}]
    chosen = {} if selector is None else {"selector": selector}
    arguments = {"group_by": list(keys), "aggregations": totals}
    return {"seq": seq, "name": f"step {seq}", "type": "aggregate", **chosen, "arguments": arguments}


def update(seq: int, column: str, expression: str, selector: str | None = None) -> dict[str, Any]:
    chosen = {} if selector is None else {"selector": selector}
    arguments = {"assignments": [{"column": column, "expression": expression}]}
    return {"seq": seq, "name": f"step {seq}", "type": "update", **chosen, "arguments": arguments}


def append(seq: int, dataset: str, *keys: str, selector: str | None = None) -> dict[str, Any]:
    arguments: dict[str, Any] = {"source": {"dataset_id": dataset}}
    if selector is not None:
        arguments["source_selector"] = selector
    if keys:
        totals = [{"column": "amount", "expression": "SUM(amount)"}]
        arguments["aggregation"] = {"group_by": list(keys), "aggregations": totals}
    return {"seq": seq, "name": f"step {seq}", "type": "append", "arguments": arguments}


def delete(seq: int, selector: str) -> dict[str, Any]:
    return {"seq": seq, "name": f"step {seq}", "type": "delete", "selector": selector}


def register(seq: int, dataset: str, path: str = "out/{dataset}") -> dict[str, Any]:
    destination = {"datasource_id": "reports", "path": path.format(dataset=dataset)}
    columns = ["id", "currency", "amount", "_period"]
    arguments = {"destination": destination, "columns": columns, "register_as_dataset": dataset}
    return {"seq": seq, "name": f"step {seq}", "type": "output", "arguments": arguments}


EXTRA = {
    "id": "extra",
    "main_table": {
        "name": "extra",
        "columns": [
            {"name": "id", "type": "integer"},
            {"name": "currency", "type": "string"},
            {"name": "amount", "type": "decimal(12,2)"},
        ],
    },
}


def windowed(shop: Shop, **more: int) -> Shop:
    """From now on no step is small enough to write links."""
    settings_ = json.loads(json.dumps(SHOP["clew.yaml"]))
    settings_["environments"]["dev"]["tracelink"] = {"links_up_to_rows": 0, **more}
    return shop.write({"clew.yaml": settings_})


def completed(shop: Shop, project: str) -> RunView:
    view = shop.run(project, PERIOD)
    assert view.snapshot.status.value == "COMPLETED", view.failure
    return view


@contextmanager
def lineage(shop: Shop) -> Iterator[tuple[State, RunLineage]]:
    with shop.starter() as starter:
        runs = RunReader(starter.state, starter.environment)
        traces = cache(lambda run_id: open_trace(runs.facts(run_id), starter.environment))
        reader = run_lineage(starter.state, starter.environment, traces)
        assert isinstance(reader, RunLineage)
        yield starter.state, reader


def registered_rows(shop: Shop, view: RunView) -> list[dict[str, Any]]:
    """The rows that a run registered, with their trace ids: those of the files that versions of datasets name.

    A folder may also hold files of an attempt that died before its version was registered.
    """
    with shop.starter() as starter:
        datasets = starter.state.datasets
        named = {
            file.path
            for newest in datasets.datasets()
            for version in datasets.versions(newest.dataset)
            for file in version.files
            if file.run_id == view.record.run_id
        }
    return [row for file in sorted(named) for row in pq.read_table(shop.storage / file).to_pylist()]


def graph_up(reader: RunLineage, trace_ids: Collection[int]) -> dict[int, set[int]]:
    """The parents of these and of all above them."""
    graph = dict[int, set[int]]()
    frontier = set(trace_ids)
    while frontier:
        graph |= {trace_id: set() for trace_id in frontier}
        found = list(reader.parents(frontier))
        assert all(count == 1 for count in Counter(found).values()), "a link is reported once"
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
    parts = committed_parts(shop.storage_root, view.snapshot)
    return {file.path: file.ids for part in parts for file in part.files if isinstance(file.ids, IdBlock)}


def trace_ids(rows: Collection[dict[str, Any]]) -> list[int]:
    return [row[TRACE_ID] for row in rows]
