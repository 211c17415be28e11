"""Trace ids and links of runs: who has which id, what a row came from and what came of it, over several projects."""

import csv
import itertools
import tempfile
from collections import Counter
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from clew.api.datasets import find_dataset
from clew.api.run_view import RunView
from clew.api.workspace import Workspace
from clew.diagnostics import TransientFailure
from clew.diagnostics.codes.tracelink import NODE_LEASE_LOST
from clew.engine.output import registering
from clew.engine.parts import write_part
from clew.engine.windows import batches
from clew.explain.explaining import explain
from clew.explain.tree import Summarised
from clew.runs.request import RunFilter
from clew.sample import write_sample
from clew.storage.committed import committed_parts
from clew.storage.parts import LINEAGE, PARENTS, TRACE_ID, Part, PartFile
from clew.storage.row_identity import ordinal_of
from clew.trace.run_trace import open_trace
from clew.tracelink import Direction, TraceIdBlock, walk
from tests.engine.carried_lineage import BEHIND, Carried
from tests.engine.engine_workspaces import DATA, Shop, make_shop
from tests.engine.lineage_runs import (
    EXTRA,
    PERIOD,
    aggregate,
    append,
    blocks_of,
    completed,
    delete,
    graph_down,
    graph_up,
    leaves,
    lineage,
    register,
    registered_rows,
    trace_ids,
    update,
    windowed,
)

pytestmark = pytest.mark.usefixtures("spark")


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> tuple[Shop, RunView, RunView]:
    """Two projects, the second of which takes what the first has registered; links are written."""
    shop = make_shop(tmp_path_factory.mktemp("chain")).write(
        {
            "datasets/extra.yaml": EXTRA,
            "data/orders.csv": DATA["data/orders.csv"] + "4,USD,5.00,2026-01\n",
            "data/extra.csv": "id,currency,amount\n7,EUR,1.00\n8,USD,2.00\n9,USD,3.00\n",
        }
    )
    first = [update(10, "amount", "amount * 2", "id < 4"), delete(20, "id = 2"), append(30, "extra", selector="id > 7")]
    shop.project("first", *first, aggregate(40, "currency"), append(50, "extra", "currency"), register(60, "closed"))
    shop.project("second", aggregate(10, "_period"), append(20, "closed"), register(30, "report"), dataset="closed")
    return shop, completed(shop, "first"), completed(shop, "second")


def test_loaded_rows_and_summaries_mint_ids_and_all_other_rows_keep_theirs(
    chain: tuple[Shop, RunView, RunView],
) -> None:
    shop, first, second = chain
    parts = {(part.kind, part.name): part for part in committed_parts(shop.storage_root, first.snapshot)}
    minted = blocks_of(shop, first)
    assert {path.split("/")[2] + "/" + path.split("/")[3] for path in minted} == {
        "input/orders",
        "input/extra",
        "created/40",
        "created/50",
    }
    files = [shop.storage / file.path for file in parts["created", "30"].files]
    appended = [trace_id for file in files for trace_id in pq.read_table(file)[TRACE_ID].to_pylist()]
    [extra] = parts["input", "extra"].files
    block = minted[extra.path]
    assert sorted(appended) == [block.trace_id(1), block.trace_id(2)]
    assert {path.split("/")[3] for path in blocks_of(shop, second)} == {"10"}
    before, after = registered_rows(shop, first), registered_rows(shop, second)
    known = {row[TRACE_ID] for row in before}
    assert len(known) == len(before)
    [total] = [row for row in after if row[TRACE_ID] not in known]
    assert Counter(trace_ids(after)) == Counter([*known, *known, total[TRACE_ID]])


def test_ids_are_unique_across_runs_and_never_zero(chain: tuple[Shop, RunView, RunView]) -> None:
    shop, first, second = chain
    rows = {
        file.path: file.rows
        for view in (first, second)
        for part in committed_parts(shop.storage_root, view.snapshot)
        for file in part.files
    }
    ids = [
        trace_id
        for view in (first, second)
        for path, block in blocks_of(shop, view).items()
        for trace_id in TraceIdBlock(block.node_id, block.first_tick, rows[path])
    ]
    assert len(set(ids)) == len(ids)
    assert all(0 < trace_id < 1 << 63 for trace_id in ids)


def test_a_row_walks_up_to_the_lines_of_files_and_down_again_over_both_projects(
    chain: tuple[Shop, RunView, RunView],
) -> None:
    shop, _, second = chain
    rows = registered_rows(shop, second)
    total = next(row for row in rows if row["id"] is None and row["currency"] is None)
    with lineage(shop) as (_, reader):
        found = leaves(reader, trace_ids(rows))
        expected = {("orders", 2), ("orders", 5), ("extra", 2), ("extra", 3), ("extra", 4)}
        assert found[total[TRACE_ID]] == expected
        assert found[next(row for row in rows if row["id"] == 9)[TRACE_ID]] == {("extra", 4)}
        up = graph_up(reader, [total[TRACE_ID]])
        sources = [trace_id for trace_id, parents in up.items() if not parents]
        down = graph_down(reader, sources)
        assert all(total[TRACE_ID] in walked(down, source) for source in sources)
        graph = walk(reader, total[TRACE_ID], Direction.UP)
        assert {node.trace_id for node in graph.nodes} == up.keys()


def walked(graph: dict[int, set[int]], start: int) -> set[int]:
    found, waiting = set[int](), [start]
    while waiting:
        each = waiting.pop()
        if each not in found:
            found.add(each)
            waiting += graph[each]
    return found


def test_the_frames_of_a_trace_are_where_it_was_loaded_appended_and_written(
    chain: tuple[Shop, RunView, RunView],
) -> None:
    shop, first, second = chain
    nine = next(row[TRACE_ID] for row in registered_rows(shop, first) if row["id"] == 9)
    with lineage(shop) as (state, reader):
        frames = list(reader.frames([nine]))
        [block] = state.tracelink.blocks.blocks_of([nine])
        traces = [reader.trace_of(view.record.run_id) for view in (first, second)]
    one, two = (trace.row_ids.epoch for trace in traces)
    assert [(frame.epoch, frame.stream_id) for frame in frames] == [
        *[(one, 0), (one, 30), (one, 60)],
        *[(two, 0), (two, 20), (two, 30), (two, 30)],
    ]
    assert frames[0].seq == block.seq_of(nine)
    appended = traces[0].row_ids.row_id(frames[1].seq)
    assert traces[0].history(appended).trace_id == nine
    assert explain(traces[0], appended, "amount").trace_id == nine


def test_ids_stay_out_of_outputs_schemas_and_states(chain: tuple[Shop, RunView, RunView]) -> None:
    shop, first, _ = chain
    assert set(shop.read("reports/out/closed")[0]) == {"id", "currency", "amount", "_period"}
    with shop.starter() as starter:
        view = find_dataset(starter.files, starter.state, "closed")
        trace = open_trace(first, starter.environment)
    assert [name for name, _ in view.columns] == ["id", "currency", "amount", "_period"]
    assert not {TRACE_ID, PARENTS} & set(trace.search(None).rows[0].state)
    trace.close()


def test_windows_give_the_answers_of_links_before_and_after_they_are_worked_out(
    chain: tuple[Shop, RunView, RunView], tmp_path: Path
) -> None:
    linked, _, with_links = chain
    shop = windowed(make_shop(tmp_path))
    for name in ("datasets/extra.yaml", "data/orders.csv", "data/extra.csv", "projects/first.yaml"):
        shop.write({name: (linked.root / name).read_text(encoding="utf-8")})
    shop.write({"projects/second.yaml": (linked.root / "projects/second.yaml").read_text(encoding="utf-8")})
    completed(shop, "first")
    view = completed(shop, "second")
    details = [
        part.details or {} for part in committed_parts(shop.storage_root, view.snapshot) if part.kind == "created"
    ]
    assert [each[LINEAGE] for each in details] == ["window", "continues"]
    assert by_row(shop, view) == by_row(linked, with_links)
    with lineage(shop) as (_, reader):
        derived = graph_up(reader, trace_ids(registered_rows(shop, view)))
    worked_out = {("second", 10): 8, ("first", 40): 4, ("first", 50): 3}
    assert expanded(shop) == worked_out
    assert set(expanded(shop).values()) == {0}
    files = sorted(shop.storage.glob("runs/*/links/*/*/*/*.parquet"))
    written = [file.stat().st_mtime_ns for file in files]
    for described in shop.storage.glob("runs/*/links/*/part.json"):
        described.unlink()
    assert expanded(shop) == worked_out, "as if it had broken off before the end"
    assert [file.stat().st_mtime_ns for file in files] == written
    pairs = [tuple(row.values()) for file in files for row in pq.read_table(file).to_pylist()]
    assert sorted(pairs) == sorted((child, parent) for child, parents in derived.items() for parent in parents)
    with lineage(shop) as (_, reader):
        assert graph_up(reader, trace_ids(registered_rows(shop, view))) == derived
    assert by_row(shop, view) == by_row(linked, with_links)


def test_groups_whose_keys_become_equal_keep_their_own_rows_with_links_and_with_windows(tmp_path: Path) -> None:
    """1.231 and 1.234 are two groups, and both are 1.23 in the working dataset."""
    columns = [{"name": "amount", "type": "decimal(12,4)"}, {"name": "id", "type": "integer"}]
    shop = make_shop(tmp_path).write(
        {
            "datasets/fine.yaml": {"id": "fine", "main_table": {"name": "fine", "columns": columns}},
            "data/fine.csv": "amount,id\n1.231,1\n1.234,10\n1.231,100\n",
        }
    )
    sums = {"group_by": ["amount"], "aggregations": [{"column": "id", "expression": "SUM(id)"}]}
    arguments = {"source": {"dataset_id": "fine"}, "aggregation": sums}
    step = {"seq": 10, "name": "sum up", "type": "append", "arguments": arguments}
    shop.project("fine", step, delete(20, "amount <> 1.23"), register(30, "closed"))
    expected = Counter(
        {
            (str((101, None, Decimal("1.23"))), frozenset({("fine", 2), ("fine", 4)})): 1,
            (str((10, None, Decimal("1.23"))), frozenset({("fine", 3)})): 1,
        }
    )
    assert by_row(shop, completed(shop, "fine")) == expected
    view = completed(windowed(shop, node_id=700), "fine")
    assert by_row(shop, view) == expected
    assert {block.node_id for block in blocks_of(shop, view).values()} == {700}
    with shop.starter() as starter:
        trace = open_trace(view, starter.environment)
        for row in trace.search("amount = 1.23 AND currency IS NULL").rows:
            cause = explain(trace, row.row_id, "id").cause
            assert isinstance(cause, Summarised)
            assert cause.recomputed.outcome == "equal"
        trace.close()
    assert expanded(shop) == {("fine", 10): 3}
    assert by_row(shop, view) == expected


def test_batches_of_an_expansion_cover_every_summary_once() -> None:
    files = (PartFile("a", 5, 0, "", 3), PartFile("b", 2, 0, "", 4))
    found = list(batches(Part("created", "40", files, (), seq=40), 2))
    covered = [ordinal for low, high in found for ordinal in range(low, high + 1)]
    assert covered == [*(ordinal_of(3, index) for index in range(5)), *(ordinal_of(4, index) for index in range(2))]
    assert len(found) == 4


def by_row(shop: Shop, view: RunView) -> Counter[tuple[str, frozenset[tuple[str, int]]]]:
    rows = registered_rows(shop, view)
    with lineage(shop) as (_, reader):
        found = leaves(reader, trace_ids(rows))
    return Counter((str((row["id"], row["currency"], row["amount"])), found[row[TRACE_ID]]) for row in rows)


def expanded(shop: Shop) -> dict[tuple[str, int], int]:
    with shop.starter() as starter:
        runs = starter.state.stores.catalog.runs(RunFilter(environment_id="dev"))
        projects = {run.run_id: run.request.project_id for run in runs}
        done = Workspace(shop.root).expand_windows()
    return {(projects[each.run_id], each.operation_seq): each.links for each in done}


def test_a_run_that_gets_no_ids_completes_and_what_it_registered_gets_ids_when_it_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows are as those of a Clew that knew nothing of ids."""
    shop = make_shop(tmp_path).project("old", aggregate(10, "currency"), register(20, "closed"))
    shop.project("new", aggregate(10), register(20, "report"), dataset="closed")

    def no_lease(*_: object, **__: object) -> None:
        raise TransientFailure(NODE_LEASE_LOST.anywhere(node_id=1, reason="nobody answers"))

    with monkeypatch.context() as patch:
        patch.setattr("clew.api.trace_ids.LeasedTraceIds", no_lease)
        patch.setattr(registering, "write_part", lambda rows, *more: write_part(rows.drop(TRACE_ID), *more))
        old = completed(shop, "old")
    assert blocks_of(shop, old) == {}
    assert TRACE_ID not in registered_rows(shop, old)[0]
    assert len(registered_rows(shop, old)) == 4
    with shop.starter() as starter:
        trace = open_trace(old, starter.environment)
        row = trace.search("id = 1").rows[0]
        assert trace.history(row.row_id).trace_id is None
        trace.close()
    new = completed(shop, "new")
    total = next(row for row in registered_rows(shop, new) if row["currency"] is None)
    with lineage(shop) as (_, reader):
        parents = [parent for _, parent in reader.parents([total[TRACE_ID]])]
        places = {place.trace_id: place for place in reader.places(parents)}
    assert len(parents) == 4
    assert {place.dataset for place in places.values()} == {"closed"}


# Random chains

_UPDATES = [("amount", "amount + 1"), ("currency", '"EUR"'), ("id", "id + 2"), ("amount", "NULL")]
_CONDITIONS = ["amount > 5", 'currency = "EUR"', "id < 3", "currency IS NULL", "MOD(id, 2) = 0"]
_KEYS = [("currency",), ("currency", "id"), (), ("_period",)]


@st.composite
def steps(draw: st.DrawFn, sources: list[str], fewest: int) -> list[dict[str, Any]]:
    found = list[dict[str, Any]]()
    for seq in itertools.islice(itertools.count(10, 10), draw(st.integers(fewest, 4))):
        selector = draw(st.none() | st.sampled_from(_CONDITIONS))
        kind = draw(st.sampled_from(["update", "delete", "aggregate", "aggregate", "append", "sum"]))
        match kind:
            case "update":
                found.append(update(seq, *draw(st.sampled_from(_UPDATES)), selector))
            case "delete":
                found.append(delete(seq, selector or "id = 1"))
            case "aggregate":
                found.append(aggregate(seq, *draw(st.sampled_from(_KEYS)), selector=selector))
            case "append":
                found.append(append(seq, draw(st.sampled_from(sources)), selector=selector))
            case _:
                found.append(append(seq, draw(st.sampled_from(sources)), "currency", selector=selector))
    return found


@st.composite
def source_rows(draw: st.DrawFn) -> list[dict[str, Any]]:
    amounts = st.sampled_from([None, Decimal("1.00"), Decimal("7.50"), Decimal("-3.25")])
    currencies = st.sampled_from([None, "EUR", "USD"])
    rows = draw(st.lists(st.tuples(currencies, amounts), min_size=1, max_size=7))
    return [{"id": index + 1, "currency": row[0], "amount": row[1]} for index, row in enumerate(rows)]


@settings(
    max_examples=4, phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck), deadline=None
)
@given(data=st.data())
def test_the_lineage_of_random_chains_of_projects_is_that_of_rows_that_carry_their_sources(data: st.DataObject) -> None:
    """Links that runs wrote and links that are derived are both compared, for every row that was registered."""
    with tempfile.TemporaryDirectory() as folder:
        shop = make_shop(Path(folder)).write({"datasets/extra.yaml": EXTRA})
        tables = {name: data.draw(source_rows()) for name in ("orders", "extra")}
        known: dict[str, list[dict[str, Any]]] = {
            name: [
                {**row, "_period": PERIOD, BEHIND: frozenset({(name, line)})} for line, row in enumerate(rows, start=2)
            ]
            for name, rows in tables.items()
        }
        shop.write({f"data/{name}.csv": as_csv(rows, with_period=name == "orders") for name, rows in tables.items()})
        dataset, sources = "orders", ["extra"]
        for number in range(data.draw(st.integers(2, 3))):
            made = f"made{number}"
            shop.project(made, *data.draw(steps(sources, 1)), register(90, made), dataset=dataset)
            view = completed(shop, made)
            assert view.plan is not None
            carried = Carried(view.plan, known, PERIOD, date(2026, 1, 1))
            carried.run()
            known |= carried.registered
            expected = Counter((plain(row), row[BEHIND]) for row in known[made])
            rows = registered_rows(shop, view)
            for forced in (None, "window"):
                with pytest.MonkeyPatch.context() as patch:
                    if forced is not None:
                        patch.setattr("clew.explain.row_links._lineage", lambda _part: "window")
                    with lineage(shop) as (_, reader):
                        found = leaves(reader, trace_ids(rows))
                assert Counter((plain(row), found[row[TRACE_ID]]) for row in rows) == expected
            dataset, sources = made, [*sources, "orders", made]


def as_csv(rows: list[dict[str, Any]], *, with_period: bool) -> str:
    header = "id,currency,amount" + (",_period" if with_period else "")
    lines = [
        ",".join("" if value is None else str(value) for value in row.values()) + (f",{PERIOD}" if with_period else "")
        for row in rows
    ]
    return "\n".join([header, *lines]) + "\n"


def plain(row: dict[str, Any]) -> str:
    return str([None if row[name] is None else str(row[name]) for name in ("id", "currency", "amount", "_period")])


# The sample


def test_a_line_of_the_group_report_leads_through_the_closed_ledger_to_lines_of_the_journal(tmp_path: Path) -> None:
    write_sample(tmp_path / "gl")
    shop = Shop(tmp_path / "gl")
    completed(shop, "gl-close")
    report = completed(shop, "group-report")
    with shop.starter() as starter:
        trace = open_trace(report, starter.environment)
        row = trace.search('row_kind = "report" AND account_type = "expense"').rows[0]
        trace_id = trace.history(row.row_id).trace_id
        trace.close()
    assert trace_id is not None
    with lineage(shop) as (_, reader):
        places = {place.trace_id: place for place in reversed(list(reader.places(graph_up(reader, [trace_id]))))}
    found = {place.line for place in places.values() if place.dataset == "journal-lines"}
    closed = [
        (each["journal_id"], str(each["line_number"]))
        for each in shop.read("out/gl-closed/2026-01")
        if (each["row_kind"], each["account_type"], each["cost_center"])
        == ("line", "expense", row.state["cost_center"])
    ]
    with (shop.root / "data" / "journal" / "journal_2026-01.csv").open(encoding="utf-8", newline="") as lines:
        numbered = {
            (each["journal_id"], each["line_number"]): number
            for number, each in enumerate(csv.DictReader(lines), start=2)
        }
    assert found == {numbered[key] for key in closed}
    assert closed
    budgets = {place.file for place in places.values() if place.dataset == "budgets"}
    assert budgets == {"budgets.csv"}
