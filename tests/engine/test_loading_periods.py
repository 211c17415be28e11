from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import expr

from clew.definitions import load_workspace
from clew.engine.loading import PinRequest, period_condition, pin, pin_managed
from clew.lang.types import STRING
from clew.plan.catalogue import use_of_table
from clew.plan.datasets import DatasetColumn
from clew.plan.resolution import resolve
from clew.storage.checked_files import TraceFiles
from clew.storage.parts import SOURCE_FILE, SOURCE_LINE, PartFile
from clew.storage.roots import storage_at
from tests.engine.loading_requests import PERIODS, Bench, day, path_source, period, use

BY_PERIOD = use("id integer", "period")
BY_TIME = use("id integer", "bitemporal")


@pytest.fixture
def bench(spark: SparkSession, tmp_path: Path) -> Bench:
    return Bench(spark, tmp_path)


def ids(bench: Bench, *arguments: Any, at: str = "2026-01") -> list[Any]:
    rows: list[Any] = bench.rows(bench.pin(*arguments, at=at), "id")
    return sorted(row[0] for row in rows)


def test_a_run_takes_the_rows_of_its_period_and_of_all_below(bench: Bench) -> None:
    bench.write("a.csv", "id,_period\n1,2026-01\n2,2026-02\n3,2026-Q1\n4,2026-04\n5,2026\n6,nonsense\n")
    pinned = bench.pin(BY_PERIOD, path_source("a.csv"), at="2026-Q1")
    assert sorted(bench.rows(pinned, "id", "_period")) == [(1, "2026-01"), (2, "2026-02"), (3, "2026-Q1")]
    assert (pinned.rows_read, pinned.rows_loaded, pinned.rows_outside_period) == (6, 3, 3)
    assert ids(bench, BY_PERIOD, path_source("a.csv"), at="2026-04") == [4]
    assert ids(bench, BY_PERIOD, path_source("a.csv"), at="2026-12") == []


def test_what_is_wrong_with_rows_of_other_periods_does_not_matter(bench: Bench) -> None:
    bench.write("a.csv", "id,_period\n1,2026-01\nx,2026-02\n")
    assert ids(bench, BY_PERIOD, path_source("a.csv")) == [1]
    assert "line 3" in bench.problem(BY_PERIOD, path_source("a.csv"), at="2026-02")


def test_a_row_without_a_period_is_refused(bench: Bench) -> None:
    bench.write("a.csv", "id,_period\n1,2026-01\n2,\n")
    message = bench.problem(BY_PERIOD, path_source("a.csv"))
    assert message == 'column "_period" of "things" must not be empty, but is in a.csv, line 3'


def test_files_of_one_period_need_not_name_it(bench: Bench) -> None:
    for month in ("2026-01", "2026-02"):
        bench.write(f"{month}.csv", f"id\n{month[-1]}\n")
    bench.write("2026-03.csv", "id,_period\n3,2026-03\n4,2026-04\n")
    months = [path_source(f"{month}.csv", of=month, tied=True) for month in ("2026-01", "2026-02", "2026-03")]
    pinned = bench.pin(BY_PERIOD, *months, at="2026-Q1")
    assert bench.placed(pinned, "id", "_period") == [
        ("2026-01.csv", 2, 1, "2026-01"),
        ("2026-02.csv", 2, 2, "2026-02"),
        ("2026-03.csv", 2, 3, "2026-03"),
    ]


def test_a_file_of_all_periods_must_name_them(bench: Bench) -> None:
    bench.write("a.csv", "id\n1\n")
    assert 'a.csv has no column "_period"' in bench.problem(BY_PERIOD, path_source("a.csv"))


def test_a_file_that_two_periods_share_is_read_once(bench: Bench) -> None:
    bench.write("a.csv", "id,_period\n1,2026-01\n2,2026-02\n")
    both = [path_source(pattern, of=month, tied=True) for pattern, month in (("a*", "2026-01"), ("*.csv", "2026-02"))]
    assert ids(bench, BY_PERIOD, *both, at="2026-Q1") == [1, 2]
    bench.write("a.csv", "id\n1\n")
    assert '"_period"' in bench.problem(BY_PERIOD, *both, at="2026-Q1")


def test_parquet_and_json_lines_take_the_period_of_their_place(bench: Bench) -> None:
    pq.write_table(pa.table({"id": [1]}), bench.data / "a.parquet")
    bench.write("a.jsonl", '{"id": 2}\n{"id": 3, "_period": "2026-02"}\n')
    for name, expected in (("a.parquet", [(1, "2026-01")]), ("a.jsonl", [(2, "2026-01")])):
        pinned = bench.pin(BY_PERIOD, path_source(name, name[2:], tied=True))
        assert bench.rows(pinned, "id", "_period") == expected


def test_rows_without_periods_belong_to_every_run(bench: Bench) -> None:
    bench.write("a.csv", "id\n1\n")
    assert bench.rows(bench.pin(use("id integer"), path_source("a.csv")), "id", "_period") == [(1, None)]


_TIMES = [
    (1, "2025-12-01", ""),
    (2, "2026-01-01", "2026-02-01"),
    (3, "2026-01-02", ""),
    (4, "2025-01-01", "2026-01-01"),
    (5, "2025-01-01", "2026-01-02"),
    (6, "2026", "2026-02"),
    (7, "2026-02", ""),
    (8, "2025-Q4", "2026-Q1"),
]


@pytest.mark.parametrize(("at", "expected"), [("2026-01", [1, 2, 5, 6]), ("2026-02", [1, 3, 7]), ("2025", [4, 5])])
def test_rows_count_as_of_the_first_day(bench: Bench, at: str, expected: list[int]) -> None:
    lines = "".join(f"{number},{start},{end}\n" for number, start, end in _TIMES)
    bench.write("a.csv", "id,_period_from,_period_to\n" + lines)
    assert ids(bench, BY_TIME, path_source("a.csv"), at=at) == expected
    texts = use([DatasetColumn("id", BY_TIME.columns[0].type), *_text_times()], "bitemporal")
    assert ids(bench, texts, path_source("a.csv"), at=at) == expected


def _text_times() -> list[DatasetColumn]:
    return [DatasetColumn("_period_from", STRING, nullable=False), DatasetColumn("_period_to", STRING)]


def test_identifiers_become_days_where_the_dataset_has_days(bench: Bench) -> None:
    bench.write("a.csv", "id,_period_from,_period_to\n1,2026,2026-02\n")
    pinned = bench.pin(BY_TIME, path_source("a.csv"))
    assert bench.rows(pinned, "_period_from", "_period_to") == [(day("2026-01-01"), day("2026-02-01"))]


def test_an_unknown_period_is_refused_even_where_the_row_would_not_count(bench: Bench) -> None:
    bench.write("a.csv", "id,_period_from,_period_to\n1,2026-01-01,\n2,2029-01,\n")
    assert '"2029-01" is not a date, in a.csv, line 3' in bench.problem(BY_TIME, path_source("a.csv"))
    texts = use([DatasetColumn("id", STRING), *_text_times()], "bitemporal")
    message = bench.problem(texts, path_source("a.csv"))
    assert 'column "_period_from" of "things": "2029-01" is neither a date nor a period, in a.csv, line 3' in message


def test_the_natural_key_tells_rows_of_one_period_apart(bench: Bench) -> None:
    bench.write("a.csv", "id,_period\n1,2026-01\n1,2026-02\n")
    of = use("id integer", "period", key=["id"])
    assert ids(bench, of, path_source("a.csv"), at="2026-Q1") == [1, 1]
    bench.write("a.csv", "id,_period\n1,2026-01\n1,2026-01\n1,2026-01\n")
    message = bench.problem(of, path_source("a.csv"), at="2026-Q1")
    assert (
        '3 rows of "things" have the natural key id "1", _period "2026-01": a.csv, line 2, and a.csv, line 4' in message
    )


def test_a_managed_dataset_is_pinned_without_a_copy(spark: SparkSession) -> None:
    files = [PartFile(f"datasets/things/{number}.parquet", 5, 10, "ab", None) for number in range(2)]
    part = pin_managed(BY_PERIOD, files, version=3, period=period("2026-Q1"), periods=PERIODS, first_file_ordinal=4)
    assert [(file.path, file.ordinal) for file in part.files] == [(files[0].path, 4), (files[1].path, 5)]
    assert part.details is not None
    assert (part.details["version"], part.details["periods"]) == (3, "2026-Q1, 2026-01, 2026-02, 2026-03")
    condition = period_condition(BY_PERIOD, period("2026-Q1"), PERIODS)
    assert condition is not None
    rows = spark.createDataFrame([("2026-02",), ("2026-04",), (None,)], "_period STRING")
    assert [row[0] for row in rows.where(expr(condition)).collect()] == ["2026-02"]
    assert period_condition(use("id integer"), period("2026-Q1"), PERIODS) is None


def _csv(name: str) -> str:
    return f"FROM read_csv('{{data}}/{name}.csv', header = true, all_varchar = true)"


@pytest.mark.parametrize(
    ("dataset", "at", "query"),
    [
        ("journal-lines", "2026-01", _csv("journal/journal_2026-01")),
        ("journal-lines", "2026-03", "FROM '{data}/journal/2026-03/*.parquet'"),
        ("budgets", "2026-02", _csv("budgets") + " WHERE _period = '2026-02'"),
        ("budgets", "2026-Q1", _csv("budgets") + " WHERE _period BETWEEN '2026-01' AND '2026-03'"),
        (
            "fx-rates",
            "2026-02",
            _csv("fx_rates") + " WHERE _period_from <= '2026-02-01' AND coalesce(_period_to > '2026-02-01', true)",
        ),
        ("accounts", "2026-01", _csv("accounts")),
    ],
)
def test_the_sample_is_loaded_as_duckdb_reads_it(
    spark: SparkSession, tmp_path: Path, dataset: str, at: str, query: str
) -> None:
    root = Path(__file__).parents[2] / "src" / "clew" / "sample" / "workspace"
    workspace = load_workspace(root).workspace
    definition = workspace.dataset(dataset)
    assert definition is not None
    of = use_of_table(definition.id, definition.name, definition.main_table, definition.natural_key)
    resolver_id = definition.resolver_id or "tables"
    resolver = next(each for each in workspace.resolvers if each.id == resolver_id)
    at_period = workspace.periods.period(at)
    assert at_period is not None
    pinned = pin(
        spark,
        PinRequest(
            use=of,
            sources=resolve(of, resolver, at_period, workspace.periods, today=day("2026-07-01")),
            datasources={each.id: each for each in workspace.datasources},
            workspace_root=root,
            storage_root=storage_at(tmp_path),
            run_id="r",
            period=at_period,
            periods=workspace.periods,
            first_file_ordinal=0,
            secrets=lambda reference: reference,
        ),
    )
    names = [column.name for column in of.columns]
    listed = ", ".join(f'CAST("{name}" AS VARCHAR)' for name in names)
    ledger = duckdb.connect()
    files = TraceFiles(storage_at(tmp_path))
    rows = pa.concat_tables([files.whole(file, [SOURCE_FILE, SOURCE_LINE, *names]) for file in pinned.part.files])
    ledger.register("rows", rows)
    loaded = ledger.execute(f"SELECT {SOURCE_FILE}, {SOURCE_LINE}, {listed} FROM rows").fetchall()
    data = query.format(data=root / "data")
    expected = ledger.execute(f"SELECT {listed} {data}").fetchall()
    assert sorted(row[2:] for row in loaded) == sorted(expected)
    for file, line, *values in loaded if ".csv" in query else ():
        text = (root / "data" / file).read_text(encoding="utf-8").split("\n")[line - 1]
        assert all(str(value) in text.replace('""', '"') for value in values if value is not None)
