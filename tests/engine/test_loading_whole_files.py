"""Parquet files that are pinned as they are: what is copied, what is not, and that nobody can tell afterwards."""

import hashlib
import json
import re
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from clew.api.workspace import Workspace
from clew.engine.loading import pinning
from clew.engine.loading.pinning import found_files
from clew.engine.loading.whole_files import keep_whole_files
from clew.plan.file_rules import FileRules, TextRules
from clew.storage.checked_files import TraceFiles
from clew.storage.drafts import Draft
from clew.storage.parts import Part, part_from_json, part_to_json
from clew.storage.roots import storage_at
from tests.engine.engine_workspaces import SHOP, Shop
from tests.engine.loading_requests import Bench, path_source, use

OF = use("id integer!; amount decimal(18,2); day date", "period")
FOLDER = "runs/run-1/input/things"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """Without Spark: files that are copied start no job."""
    return Bench(None, tmp_path)  # type: ignore[arg-type]


def table(rows: int = 5, **columns: Any) -> pa.Table:
    values = {
        "id": pa.array(range(1, rows + 1), pa.int32()),
        "amount": pa.array([Decimal(number) / 4 for number in range(rows)], pa.decimal128(12, 2)),
        "day": pa.array([date(1500, 1, 1)] * rows, pa.date32()),
        "_period": pa.array(["2026-01"] * rows, pa.string()),
    }
    return pa.table({name: value for name, value in {**values, **columns}.items() if value is not None})


def write(bench: Bench, name: str, content: pa.Table, **options: Any) -> Path:
    path = bench.data / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(content, path, **options)
    return path


def test_files_are_copied_byte_by_byte_and_rows_cited_by_file_and_row(bench: Bench) -> None:
    paths = [write(bench, "a/1 %.parquet", table(3000), row_group_size=700), write(bench, "a/2.parquet", table(2))]
    empty = write(bench, "a/3.parquet", table(0))
    pinned = bench.pin(OF, path_source("a/*.parquet", "parquet"), first_file_ordinal=4)
    assert (pinned.rows_read, pinned.rows_loaded, pinned.rows_outside_period) == (3002, 3002, 0)
    assert [(file.rows, file.ordinal) for file in pinned.part.files] == [(3000, 4), (2, 5)]
    for file, path in zip(pinned.part.files, paths, strict=True):
        assert (bench.storage / file.path).read_bytes() == path.read_bytes()
    for read, path in zip(pinned.part.sources, [*paths, empty], strict=True):
        content = path.read_bytes()
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        assert (read.name, read.size, read.digest) == (f"a/{path.name}", len(content), digest)
    pinned.drafted.publish()
    part = part_from_json(part_to_json(pinned.part), "part.json")
    assert part == pinned.part
    files = TraceFiles(storage_at(bench.storage))
    files.verify([part])
    [row] = files.row(part.files[0], 2222, ["id", "amount", "day", "__source_file", "__source_line"]).to_pylist()
    assert row == {
        "id": 2223,
        "amount": Decimal("555.50"),
        "day": date(1500, 1, 1),
        "__source_file": "a/1 %.parquet",
        "__source_line": 2223,
    }


def test_a_copy_that_was_changed_is_damaged_like_any_file_of_the_run(bench: Bench) -> None:
    write(bench, "a.parquet", table())
    [file] = bench.pin(OF, path_source("a.parquet", "parquet")).part.files
    path = bench.storage / file.path
    content = bytearray(path.read_bytes())
    content[20] ^= 1
    path.write_bytes(content)
    with pytest.raises(Exception, match=r"DamagedTrace|not what was written"):
        TraceFiles(storage_at(bench.storage)).whole(file, ["id"])


def test_columns_under_other_names_and_the_period_of_the_place_are_part_of_the_view(bench: Bench) -> None:
    write(bench, "2026-01.parquet", table(3, id=None, _period=None, number=pa.array([7, 8, 9], pa.int64())))
    rules = FileRules(sources={"id": "number"})
    pinned = bench.pin(OF, path_source("2026-01.parquet", "parquet", tied=True, rules=rules))
    [file] = pinned.part.files
    found = TraceFiles(storage_at(bench.storage)).whole(file, ["id", "_period", "__source_line"])
    assert found.to_pylist() == [{"id": 6 + n, "_period": "2026-01", "__source_line": n} for n in (1, 2, 3)]


OTHERS = {
    "a column that is not declared": lambda: table(salary=pa.array([1.0] * 5)),
    "digits that may not fit": lambda: table(amount=pa.array([0.25] * 5)),
    "a dictionary": lambda: table(_period=pa.array(["2026-01"] * 5).dictionary_encode()),
    "a missing value": lambda: table(id=pa.array([1, None, 3, 4, 5], pa.int32())),
    "rows of another period": lambda: table(_period=pa.array(["2026-01"] * 4 + ["2026-02"])),
    "rows between two periods": lambda: table(_period=pa.array(["2026-01", "2026-01-5", "2026-02", "x", None])),
    "a row without a period": lambda: table(_period=pa.array(["2026-01"] * 4 + [None])),
    "days of another calendar": lambda: table().replace_schema_metadata({"org.apache.spark.version": "2.4.8"}),
    "days of another calendar, by request": lambda: table().replace_schema_metadata(
        {"org.apache.spark.version": "4.1.0", "org.apache.spark.legacyDateTime": ""}
    ),
    "no rows": lambda: table(0),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_files_go_through_spark_and_leave_nothing_behind(bench: Bench, name: str) -> None:
    write(bench, "good.parquet", table(40))
    write(bench, "other.parquet", OTHERS[name]())
    for location, is_kept in (("good.parquet", True), ("other.parquet", False), ("*.parquet", name == "no rows")):
        before = bench.stored()
        kept = kept_whole(bench, path_source(location, "parquet"))
        assert (kept is not None) is is_kept, location
        assert is_kept or bench.stored() == before


@pytest.mark.parametrize("options", [{"compression": "lz4"}, {"compression": "brotli"}])
def test_codecs_that_not_every_reader_has_go_through_spark(bench: Bench, options: dict[str, str]) -> None:
    write(bench, "a.parquet", table(), **options)
    assert kept_whole(bench, path_source("a.parquet", "parquet")) is None


@pytest.mark.parametrize(
    "rules", [FileRules(bad_rows="null"), FileRules(bad_rows="quarantine"), FileRules({"amount": TextRules(trim=True)})]
)
def test_rules_for_values_go_through_spark(bench: Bench, rules: FileRules) -> None:
    write(bench, "a.parquet", table())
    assert kept_whole(bench, path_source("a.parquet", "parquet", rules=rules)) is None
    assert kept_whole(bench, path_source("a.parquet", "parquet", corrections="c.csv")) is None


def test_pages_that_cannot_be_decoded_are_not_kept(bench: Bench) -> None:
    path = write(bench, "a.parquet", table(3000), use_dictionary=False, compression="zstd")
    content = bytearray(path.read_bytes())
    content[40:400] = bytes(360)
    path.write_bytes(content)
    assert kept_whole(bench, path_source("a.parquet", "parquet")) is None
    assert bench.stored() == {}


def test_a_file_that_is_written_to_meanwhile_is_refused(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(bench, "a.parquet", table())
    create = Draft.create

    def creating(self: Draft, name: str) -> Any:
        path.write_bytes(path.read_bytes() + b"more")
        return create(self, name)

    monkeypatch.setattr(Draft, "create", creating)
    message = bench.problem(OF, path_source("a.parquet", "parquet"), code="SourceUnavailable")
    assert message == "a.parquet changed while it was being read"


def kept_whole(bench: Bench, source: Any) -> Part | None:
    request = bench.request(OF, [source], "2026-01")
    found = found_files(request)
    kept = keep_whole_files(request, Part("input", "things", (), ()), FOLDER, found)
    return None if kept is None else kept.part


# The same run with and without


STEPS: list[dict[str, Any]] = [
    {
        "seq": 10,
        "name": "Convert",
        "type": "update",
        "selector": 'orders.currency <> "EUR"',
        "arguments": {
            "joins": [{"alias": "r", "dataset_id": "rates", "on": "r.currency = orders.currency"}],
            "assignments": [{"column": "amount", "expression": "ROUND(amount * r.rate, 2)"}],
        },
    },
    {"seq": 20, "name": "Drop", "type": "delete", "selector": "amount < 3"},
    {
        "seq": 30,
        "name": "Totals",
        "type": "aggregate",
        "arguments": {
            "group_by": ["currency"],
            "aggregations": [{"column": "total", "expression": "SUM(amount)"}],
        },
    },
    {
        "seq": 40,
        "name": "Write",
        "type": "output",
        "arguments": {"destination": {"datasource_id": "reports", "path": "all"}},
    },
]
RESOLVER = {"type": "path", "datasource_id": "data", "path": "{table}/*.parquet", "format": "parquet"}


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    shop = Shop(tmp_path).write(SHOP).project("p", *STEPS)
    resolver = {"id": "r", "is_default": True, "rules": [{"name": "a", "strategy": RESOLVER}]}
    rates = {**SHOP["datasets/rates.yaml"]["main_table"], "temporal_mode": "none"}
    shop.write({"resolvers/r.yaml": resolver, "datasets/rates.yaml": {"id": "rates", "main_table": rates}})
    orders = pa.table(
        {
            "id": pa.array(range(1, 3001), pa.int64()),
            "currency": pa.array(["EUR", "USD", "GBP"] * 1000),
            "amount": pa.array([Decimal(n % 700) / 4 for n in range(3000)], pa.decimal128(12, 2)),
            "_period": pa.array(["2026-01"] * 3000),
        }
    )
    known = pa.table(
        {"currency": ["USD", "GBP"], "rate": pa.array([Decimal("0.9"), Decimal("1.2")], pa.decimal128(9, 4))}
    )
    for number, rows in enumerate((orders.slice(0, 2000), orders.slice(2000))):
        place(shop, f"orders/{number}.parquet", rows)
    place(shop, "rates/now.parquet", known)
    return shop


def place(shop: Shop, name: str, rows: pa.Table) -> None:
    path = shop.root / "data" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, path, row_group_size=300)


@pytest.mark.slow
def test_a_run_on_copies_is_the_same_as_one_on_rows_that_spark_has_written(
    spark: SparkSession, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = told(shop)
    assert {file.view is not None for file in copied.pop("files")} == {True}
    monkeypatch.setattr("clew.engine.step_groups.FEW_ROWS", 0)
    monkeypatch.setattr("clew.engine.parts.FEW_ROWS", 0)
    on_spark = told(shop)
    assert {file.view is not None for file in on_spark.pop("files")} == {True}
    monkeypatch.setattr(pinning, "keep_whole_files", lambda *_: None)
    rewritten = told(shop)
    assert {file.view is None for file in rewritten.pop("files")} == {True}
    assert copied == on_spark == rewritten
    assert (len(copied["rows"]), copied["findings"]) == (2943, [])


def told(shop: Shop) -> dict[str, Any]:
    """What a run has done, found out through its doors, without what is new in every run."""
    view = shop.run("p")
    assert view.failure is None
    run = Workspace(shop.root).find_run(view.record.run_id)
    total = run.row_where('total IS NOT NULL AND currency = "GBP"')
    line = run.row_where("id = 2555")
    told = {
        "rows": sorted(map(repr, shop.read("reports/all"))),
        "steps": [step.counts for step in run.steps],
        "records": run.records(step=10, limit=3000).to_json(),
        "total": str(run.explain(total, "total")),
        "line": str(run.explain(line, "amount")),
        "history": run.trace(line).to_json(),
        "absent": str(run.why_not("id = 1")),
        "findings": [str(each) for each in run.verification(deep=True).findings],
    }
    ids = {run.id: "RUN", run.id[:8]: "RUN", total: "TOTAL", line: "LINE", line[:18]: "ROWS"}
    text = json.dumps(told, default=str)
    for name, other in ids.items():
        text = text.replace(name, other)
    # Rows are numbered by file, and copies are the files as they were.
    text = re.sub(r"ROWS-8000-[0-9a-f]{12}", "ROW", text)
    kept: dict[str, Any] = json.loads(text)
    kept["history"].pop("trace_id", None)
    kept["files"] = [file for part in run.parts() for file in part.files if part.kind == "input"]
    return kept
