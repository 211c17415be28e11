"""Files of outputs: formats, one file or a folder, published at once, replaced or added to, never doubled."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from pyspark.sql import DataFrame, SparkSession

from clew.diagnostics import UserError
from clew.engine.expressing import Expressing
from clew.engine.output.attempts import OutputAttempt
from clew.engine.output.places import LocalOutput
from clew.engine.output.publishing import FilePublisher
from clew.lang.typed import ColumnValue
from clew.lang.types import STRING
from clew.plan.operations import Destination, OutputStep
from clew.plan.sort_keys import SortKey
from clew.plan.steps import PlannedExpression
from tests.engine.engine_runs import RUN_ID, TODAY

EXPRESSING = Expressing(RUN_ID, "t", TODAY)


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> DataFrame:
    cells = [(1, "plain", False, 0), (2, 'quoted " and, cut', False, 1), (3, None, False, 2), (4, "gone", True, 3)]
    return spark.createDataFrame(cells, "k BIGINT, `a,b` STRING, _deleted BOOLEAN, __ordinal BIGINT")


def output_step(
    format_: str,
    mode: str = "overwrite",
    *,
    sorted_by: tuple[SortKey, ...] = (),
    partition_by: tuple[str, ...] = (),
    file_per: str | None = None,
    **options: str,
) -> OutputStep:
    named = None if file_per is None else PlannedExpression(file_per, ColumnValue("t", file_per, STRING))
    return OutputStep(
        sorted_by=sorted_by,
        partition_by=partition_by,
        file_per=named,
        seq=7,
        id="out",
        name="out",
        description=None,
        path="main",
        place=None,
        breakpoint=None,
        selector=None,
        reads=(),
        adds=(),
        destination=Destination(None, None, "ignored", format_, tuple(sorted(options.items()))),
        mode=mode,  # type: ignore[arg-type]
        columns=("k", "a,b"),
        include_deleted=False,
        registers=None,
    )


def place(path: Path, run_id: str, step: OutputStep, fence: int) -> LocalOutput:
    attempt, options = OutputAttempt.of(run_id, step.seq, fence), dict(step.destination.options)
    return LocalOutput(path, path.name, attempt, lambda _run_id: True, options)


@pytest.fixture
def publish(rows: DataFrame, tmp_path: Path) -> Callable[..., int]:
    def published(name: str, step: OutputStep, run_id: str = RUN_ID, at_most: int = 10) -> int:
        publisher = FilePublisher(run_id, lambda step, fence: place(tmp_path / name, run_id, step, fence))
        return publisher.prepare(rows.where(f"k <= {at_most}"), step, EXPRESSING).publish().rows

    return published


EXPECTED: list[tuple[int, str | None]] = [(1, "plain"), (2, 'quoted " and, cut'), (3, None)]


def read_csv(path: Path) -> list[tuple[int, str | None]]:
    with path.open(encoding="utf-8", newline="") as lines:
        header, *cells = csv.reader(lines, strict=True)
    assert header == ["k", "a,b"]
    return [(int(k), text or None) for k, text in cells]


def read_jsonl(path: Path) -> list[tuple[int, str | None]]:
    found = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [(row["k"], row["a,b"]) for row in found]


def read_parquet(path: Path) -> list[tuple[int, str | None]]:
    return [(row["k"], row["a,b"]) for row in pq.read_table(path).to_pylist()]


@pytest.mark.parametrize(
    ("name", "format_", "read"),
    [("o.csv", "csv", read_csv), ("o.jsonl", "jsonl", read_jsonl), ("o.parquet", "parquet", read_parquet)],
)
def test_one_file_holds_all_rows_that_are_not_deleted_and_a_second_run_replaces_it(
    publish: Callable[..., int], tmp_path: Path, name: str, format_: str, read: Callable[[Path], Any]
) -> None:
    assert publish(name, output_step(format_), at_most=1) == 1
    assert publish(name, output_step(format_), "another run") == 3
    assert sorted(read(tmp_path / name)) == EXPECTED
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_path_without_suffix_is_a_folder_that_is_replaced_as_a_whole(
    publish: Callable[..., int], tmp_path: Path
) -> None:
    publish("closed/2026-01", output_step("parquet"), at_most=1)
    publish("closed/2026-01", output_step("parquet"), "another run")
    assert sorted(read_parquet(tmp_path / "closed/2026-01")) == EXPECTED
    assert [path.name for path in (tmp_path / "closed").iterdir()] == ["2026-01"]


def test_appending_to_a_folder_adds_files_once_for_each_run_and_step(
    publish: Callable[..., int], tmp_path: Path
) -> None:
    step = output_step("parquet", "append")
    publish("all", step)
    publish("all", step)
    assert sorted(read_parquet(tmp_path / "all")) == EXPECTED
    publish("all", step, "another run")
    assert sorted(read_parquet(tmp_path / "all"), key=str) == sorted([*EXPECTED, *EXPECTED], key=str)


@pytest.mark.parametrize(("name", "format_", "read"), [("o.csv", "csv", read_csv), ("o.jsonl", "jsonl", read_jsonl)])
def test_appending_to_one_file_adds_rows_once_for_each_run_and_step(
    publish: Callable[..., int], tmp_path: Path, name: str, format_: str, read: Callable[[Path], Any]
) -> None:
    step = output_step(format_, "append")
    publish(name, step, "first", at_most=1)
    publish(name, step, "second")
    publish(name, step, "first", at_most=2)
    publish(name, step, "second")
    assert read(tmp_path / name) == [*EXPECTED[:2], *EXPECTED]


def test_what_stood_in_a_file_before_the_first_append_stays(publish: Callable[..., int], tmp_path: Path) -> None:
    (tmp_path / "o.csv").write_text('k,"a,b"\n9,old\n', encoding="utf-8")
    publish("o.csv", output_step("csv", "append"), at_most=1)
    publish("o.csv", output_step("csv", "append"), at_most=1)
    assert read_csv(tmp_path / "o.csv") == [(9, "old"), (1, "plain")]


def test_a_note_about_bytes_that_never_came_is_ignored(publish: Callable[..., int], tmp_path: Path) -> None:
    """As after a crash between the note and the file."""
    (tmp_path / "o.csv").write_text('k,"a,b"\n9,old\n', encoding="utf-8")
    (tmp_path / ".o.csv.appended.json").write_text(json.dumps([[f"{RUN_ID}-7", 14, 400]]), encoding="utf-8")
    publish("o.csv", output_step("csv", "append"), at_most=1)
    assert read_csv(tmp_path / "o.csv") == [(9, "old"), (1, "plain")]


def test_options_for_csv_have_our_names_and_compression_keeps_the_header_inside(
    publish: Callable[..., int], tmp_path: Path
) -> None:
    import gzip

    publish("o.csv", output_step("csv", delimiter=";", null_value="-", header="false"))
    assert (tmp_path / "o.csv").read_text(encoding="utf-8").splitlines()[2] == "3;-"
    publish("o.csv.gz", output_step("csv", compression="gzip"), at_most=1)
    assert gzip.decompress((tmp_path / "o.csv.gz").read_bytes()).decode() == 'k,"a,b"\n1,plain\n'


@pytest.mark.parametrize("suffix", ["", ".csv"])
def test_what_is_in_the_way_is_said_before_anything_is_written(
    publish: Callable[..., int], tmp_path: Path, suffix: str
) -> None:
    if suffix:
        (tmp_path / f"o{suffix}").mkdir()
    else:
        (tmp_path / "o").write_text("precious", encoding="utf-8")
    with pytest.raises(UserError) as refused:
        publish(f"o{suffix}", output_step("csv"))
    assert refused.value.code == "OutputConflict"
    assert [path.name for path in tmp_path.iterdir()] == [f"o{suffix}"]


def test_a_parquet_file_cannot_be_added_to(publish: Callable[..., int], tmp_path: Path) -> None:
    publish("o.parquet", output_step("parquet", "append"), at_most=2)
    publish("o.parquet", output_step("parquet", "append"), at_most=1)
    with pytest.raises(UserError, match="a Parquet file cannot be extended"):
        publish("o.parquet", output_step("parquet", "append"), "another run")
    assert read_parquet(tmp_path / "o.parquet") == EXPECTED[:1]


def test_an_output_that_is_discarded_leaves_nothing(rows: DataFrame, tmp_path: Path) -> None:
    publisher = FilePublisher(RUN_ID, lambda step, fence: place(tmp_path / "o", RUN_ID, step, fence))
    publisher.prepare(rows, output_step("parquet"), EXPRESSING).discard()
    assert list(tmp_path.iterdir()) == []


def test_other_formats_of_spark_are_replaced_as_a_whole_too(publish: Callable[..., int], tmp_path: Path) -> None:
    publish("o", output_step("orc"), at_most=1)
    assert publish("o", output_step("orc"), "another run") == 3
    found = [row for path in (tmp_path / "o").glob("part-*") for row in orc.read_table(path).to_pylist()]
    assert sorted((row["k"], row["a,b"]) for row in found) == EXPECTED


def test_a_format_without_its_connector_is_told_by_name(publish: Callable[..., int], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot write o as delta: ") as refused:
        publish("o", output_step("delta"))
    assert refused.value.code == "OutputConflict"
    assert "spark.jars" in (refused.value.diagnostic.hint or "")
    with pytest.raises(UserError, match="cannot write o as parqet: ") as refused:
        publish("o", output_step("parqet"))
    assert refused.value.diagnostic.hint == 'did you mean "parquet"?'
    assert list(tmp_path.iterdir()) == []


def test_a_format_that_cannot_tell_a_retry_is_not_added_to(publish: Callable[..., int], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="in the format iceberg a retry could duplicate its rows") as refused:
        publish("o", output_step("iceberg", "append"))
    assert refused.value.code == "OutputConflict"


ARRANGED = [(number, f"g{number % 3}" if number % 7 else None, number * 37 % 101) for number in range(200)]


@pytest.fixture(scope="module")
def many(spark: SparkSession) -> DataFrame:
    cells = [(at, kind, False, number) for number, kind, at in ARRANGED]
    return spark.createDataFrame(cells, "k BIGINT, `a,b` STRING, _deleted BOOLEAN, __ordinal BIGINT").repartition(7)


@pytest.fixture
def arrange(many: DataFrame, tmp_path: Path) -> Callable[..., int]:
    def published(name: str, step: OutputStep, run_id: str = RUN_ID) -> int:
        publisher = FilePublisher(run_id, lambda step, fence: place(tmp_path / name, run_id, step, fence))
        return publisher.prepare(many, step, EXPRESSING).publish().rows

    return published


def in_order(rows: list[tuple[int, str | None, int]]) -> list[tuple[int, str | None]]:
    """By kind, NULL first; then the largest k first; rows that are equal as they were loaded."""
    ordered = sorted(rows, key=lambda row: (row[1] is not None, row[1] or "", -row[2], row[0]))
    return [(at, kind) for _, kind, at in ordered]


KEYS = (SortKey("a,b"), SortKey("k", descending=True))


@pytest.mark.parametrize(("name", "read"), [("o.csv", read_csv), ("o.parquet", read_parquet)])
def test_a_file_is_in_the_order_that_the_output_asks_for(
    arrange: Callable[..., int], tmp_path: Path, name: str, read: Callable[[Path], Any]
) -> None:
    assert arrange(name, output_step(Path(name).suffix[1:], sorted_by=KEYS)) == len(ARRANGED)
    assert read(tmp_path / name) == in_order(ARRANGED)


def test_there_is_one_file_for_each_value_and_those_that_are_gone_are_gone(
    arrange: Callable[..., int], publish: Callable[..., int], tmp_path: Path
) -> None:
    by_value = output_step("csv", sorted_by=KEYS, file_per="a,b")
    publish("out", output_step("csv", file_per="a,b"))
    assert sorted(path.name for path in (tmp_path / "out").glob("*.csv")) == [
        "_NULL.csv",
        "plain.csv",
        "quoted %22 and, cut.csv",
    ]
    assert arrange("out", by_value, "another run") == len(ARRANGED)
    found = {path.stem: read_csv(path) for path in (tmp_path / "out").glob("*.csv")}
    for name, value in (("_NULL", None), ("g0", "g0"), ("g1", "g1"), ("g2", "g2")):
        assert found.pop(name) == in_order([row for row in ARRANGED if row[1] == value])
    assert found == {}
    assert not [path for path in (tmp_path / "out").iterdir() if path.is_dir()]


def test_rows_go_to_the_folders_of_their_values_and_an_append_adds_to_them_once(
    arrange: Callable[..., int], tmp_path: Path
) -> None:
    step = output_step("parquet", "append", partition_by=("a,b",))
    for run_id in (RUN_ID, RUN_ID, "another run"):
        arrange("out", step, run_id)
    folders = {path.name.partition("=")[2]: path for path in (tmp_path / "out").iterdir() if path.is_dir()}
    assert folders.keys() == {"g0", "g1", "g2", "__HIVE_DEFAULT_PARTITION__"}
    for name, folder in folders.items():
        expected = [at for _, kind, at in ARRANGED if (kind or "__HIVE_DEFAULT_PARTITION__") == name]
        parts = [pq.ParquetFile(path).read() for path in folder.glob("*.parquet")]
        assert [part.column_names for part in parts] == [["k"]] * 2
        assert sorted(at for part in parts for at in part["k"].to_pylist()) == sorted(expected * 2)
