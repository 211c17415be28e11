"""What a run writes about its rows, on real files: when it counts, what it holds, and what if it cannot be written."""

import json
import resource
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from clew.api.run_view import RunReader, RunView
from clew.api.workspace import Workspace
from clew.diagnostics import UserError
from clew.events.bodies import StepCompleted
from clew.events.envelope import StoredEvent
from clew.gc.run_removal import remove_run
from clew.storage.checked_files import TraceFiles
from clew.storage.parts import ORDINAL, after_column, mask_column, part_from_json
from clew.storage.roots import storage_at
from clew.trace.reader import RunTrace
from clew.trace.run_trace import open_trace
from tests.engine.engine_workspaces import Shop, make_shop

ROWS = 400


def step(seq: int, type_: str, selector: str | None = None, **arguments: Any) -> dict[str, Any]:
    chosen = {} if selector is None else {"selector": selector}
    return {"seq": seq, "name": f"step {seq}", "type": type_, **chosen, "arguments": arguments}


def setting(**columns: str) -> list[dict[str, str]]:
    return [{"column": column, "expression": text} for column, text in columns.items()]


def output(seq: int, path: str) -> dict[str, Any]:
    return step(seq, "output", destination={"datasource_id": "reports", "path": path}, columns=["id", "amount"])


OPERATIONS = (
    step(10, "update", "MOD(id, 4) = 0", assignments=setting(amount="amount * 2", currency="currency")),
    step(20, "delete", "MOD(id, 8) = 5"),
    output(25, "first"),
    step(30, "update", "amount > 50", assignments=setting(note='"large"')),
    step(40, "aggregate", group_by=["currency"], aggregations=setting(total="SUM(amount)")),
    output(50, "last"),
)


@pytest.fixture
def shop(spark: SparkSession, tmp_path: Path) -> Shop:
    return traced_shop(tmp_path)


def traced_shop(root: Path) -> Shop:
    lines = (f"{index},EUR,{index}.00,2026-01" for index in range(ROWS))
    orders = "id,currency,amount,_period\n" + "\n".join(lines) + "\n"
    return make_shop(root).write({"data/orders.csv": orders}).project("p", *OPERATIONS)


def trace_of(shop: Shop, view: RunView) -> RunTrace:
    return open_trace(view, Workspace(shop.root).run_environment)


def told(view: RunView) -> tuple[str, str | None, object]:
    error = view.snapshot.error
    return view.snapshot.status.value, error.code if error else None, view.to_json()["last_completed_operation"]


def counted(trace: RunTrace) -> dict[int, tuple[int, int, int]]:
    return {each.operation_seq: (each.updated, each.created, each.deleted) for each in trace.counts()}


LARGE = sum(index % 8 != 5 and (index * 2 if index % 4 == 0 else index) > 50 for index in range(ROWS))
COUNTS = {10: (99, 0, 0), 20: (0, 0, 50), 25: (0, 0, 0), 30: (LARGE, 0, 0), 40: (0, 1, 0), 50: (0, 0, 0)}
"""Row 0 is selected by step 10 and stays as it is, like every currency."""


class Undisturbed:
    """One run that goes well, with everything that was seen while it went on."""

    def __init__(self, root: Path) -> None:
        self.shop = traced_shop(root)
        self.run_id = self.shop.submit("p")
        self.missing = list[str]()
        self.completed = list[str]()
        leftover = self.shop.storage / "runs" / self.run_id / "changes" / "10-20.staging"
        leftover.mkdir(parents=True)
        (leftover / "part-00000-half.parquet").write_bytes(b"PAR1 and no more")
        with self.shop.starter() as starter:
            starter.prepare()
            worker = starter.worker(self.saw)
            worker.run_one(self.run_id, threading.Event())
            self.view = RunReader(starter.state, starter.environment).view(self.run_id)
        self.trace = trace_of(self.shop, self.view)

    def saw(self, event: StoredEvent) -> None:
        """Looks at the files of a step at the very moment when its completion is in the history."""
        if not isinstance(event.body, StepCompleted):
            return
        self.completed.append(event.step_id or "")
        for artifact in event.body.artifacts:
            if artifact.kind == "trace-part":
                self.missing += not_there(self.shop.storage, artifact.uri.removeprefix("storage:"))


def not_there(root: Path, described: str) -> list[str]:
    if not (root / described).is_file():
        return [described]
    part = part_from_json(json.loads((root / described).read_text(encoding="utf-8")), described)
    try:
        TraceFiles(storage_at(root)).verify([part])
    except UserError as error:
        return [str(error)]
    return []


@pytest.fixture(scope="module")
def undisturbed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    return Undisturbed(tmp_path_factory.mktemp("undisturbed"))


def test_a_step_counts_as_done_when_all_its_records_are_stored(undisturbed: Undisturbed) -> None:
    assert undisturbed.completed == ["load", "10", "20", "25", "30", "40", "50"]
    assert undisturbed.missing == []
    assert counted(undisturbed.trace) == COUNTS


def test_what_a_dead_writer_left_half_done_counts_for_nothing(undisturbed: Undisturbed) -> None:
    named = {file.path for part in undisturbed.trace.parts for file in part.files}
    assert not any("half" in path for path in named)
    undisturbed.trace.verify()


def test_updates_and_deletions_store_differences_and_never_rows(undisturbed: Undisturbed) -> None:
    """A record has the ordinal, and for each step values where it changed them, or a mask where none can tell."""
    parts = [part for part in undisturbed.trace.parts if part.kind == "changes"]
    changed = dict.fromkeys((10, 20, 30), 0)
    for part in parts:
        assert part.columns == ()
        for file in part.files:
            rows = pq.read_table(undisturbed.shop.storage / file.path)
            own = [mask_column(each.seq) for each in part.steps]
            values = [after_column(each.seq, at) for each in part.steps for at in range(len(each.columns))]
            assert set(rows.column_names) == {ORDINAL, *own, *values}
            for row in rows.to_pylist():
                assert any(row[name] is not None for name in [*own, *values])
                for each in part.steps:
                    mask = row[mask_column(each.seq)]
                    given = [row[after_column(each.seq, at)] is not None for at in range(len(each.columns))]
                    changed[each.seq] += mask is not None or any(given)
                    if len(given) == 1:
                        assert not (mask and given[0]), "a mask says nothing that a value tells"
                    else:
                        assert [bool((mask or 0) >> at & 1) for at in range(len(given))] == given
    assert changed == {10: 99, 20: 50, 30: LARGE}


def test_records_belong_to_one_run_and_go_with_it(undisturbed: Undisturbed) -> None:
    shop, first = undisturbed.shop, undisturbed.trace
    other = trace_of(shop, shop.run("p"))
    ours, theirs = (trace.search("id = 8").rows[0] for trace in (first, other))
    assert ours.state == theirs.state
    assert ours.row_id != theirs.row_id
    assert other.history(ours.row_id).entries == ()
    with shop.starter() as starter:
        folder = shop.storage / "runs" / other.run_id
        assert folder.is_dir()
        remove_run(starter.files, starter.environment, starter.state, other.run_id, force=False, reason="done")
        assert not folder.exists()
        with pytest.raises(UserError, match="RunNotFound"):
            RunReader(starter.state, starter.environment).view(other.run_id)
    first.verify()
    assert len(first.history(ours.row_id).entries) == 2


@contextmanager
def no_file_larger_than(spark: SparkSession, size: int) -> Iterator[None]:
    """The Java process can write so many bytes to a file, and then it is told that there is no room."""
    java = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
    before = resource.prlimit(java, resource.RLIMIT_FSIZE)
    resource.prlimit(java, resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.prlimit(java, resource.RLIMIT_FSIZE, before)


@pytest.mark.classic
def test_a_trace_that_finds_no_room_fails_step_and_run_and_a_retry_completes(
    shop: Shop, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first group is done when the room gets scarce; its records can be read though the run has failed."""
    monkeypatch.setattr("clew.engine.step_groups.FEW_ROWS", 0)
    run_id = shop.submit("p")
    with shop.starter() as starter, ExitStack() as later:

        def saw(event: StoredEvent) -> None:
            if isinstance(event.body, StepCompleted) and event.step_id == "25":
                later.enter_context(no_file_larger_than(spark, 1))

        starter.prepare()
        starter.worker(saw).run_one(run_id, threading.Event())
        view = RunReader(starter.state, starter.environment).view(run_id)
    assert told(view) == ("FAILED", "TraceWriteFailure", 25), view.failure
    assert view.failed_step is not None
    assert view.failed_step.seq == 30
    trace = trace_of(shop, view)
    assert counted(trace) == COUNTS | {30: (0, 0, 0), 40: (0, 0, 0)}
    trace.verify()
    view = shop.retry(view, 30)
    assert told(view) == ("COMPLETED", None, 50)
    assert counted(trace_of(shop, view)) == COUNTS


def test_a_file_in_the_place_of_the_trace_fails_the_step_and_a_retry_completes(shop: Shop) -> None:
    run_id = shop.submit("p")
    in_the_way = shop.storage / "runs" / run_id / "created"
    shop.write({in_the_way.relative_to(shop.root).as_posix(): "a file"})
    view = shop.drive(run_id)
    assert told(view) == ("FAILED", "TraceWriteFailure", 30)
    assert counted(trace_of(shop, view)) == COUNTS | {40: (0, 0, 0)}
    in_the_way.unlink()
    view = shop.retry(view, 40)
    assert told(view) == ("COMPLETED", None, 50)
    assert counted(trace_of(shop, view)) == COUNTS


@pytest.mark.usefixtures("spark")
def test_decimals_are_kept_short_where_they_fit_and_whole_where_they_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A product has a type of 34 digits, whatever its values are."""
    monkeypatch.setattr("clew.engine.step_groups.FEW_ROWS", 0)
    shop = make_shop(tmp_path)
    for name, factor in (("few", "1.00"), ("many", "1000000000000000000.00")):
        product = {"column": "product", "expression": f"amount * {factor} * 1.00"}
        update = {"seq": 10, "name": "Multiply", "type": "update", "arguments": {"assignments": [product]}}
        shop.project(name, update)
    found = {}
    for name in ("few", "many"):
        view = shop.run(name)
        assert told(view) == ("COMPLETED", None, 10)
        trace = trace_of(shop, view)
        file, *_ = (shop.storage / "runs" / trace.run_id / "changes").rglob("*.parquet")
        row = trace.search("id = 2").rows[0]
        [change] = [entry for entry in trace.history(row.row_id).entries if entry.operation_seq == 10]
        found[name] = (pq.read_schema(file).field(after_column(10, 0)).type.precision, row.state["product"], change)
    few, many = found["few"], found["many"]
    assert (few[0], str(few[1])) == (18, "20.000000")
    assert many[0] > 18
    assert many[1] == Decimal(20000000000000000000)
    assert few[2].diff["product"].new == few[1]
    assert many[2].diff["product"].new == many[1]
