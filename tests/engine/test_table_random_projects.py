"""Random projects whose input is a Delta or Iceberg table: Spark and the trace against the interpreter.

Other libraries write the tables, so no connector is needed, and the session of all tests will do.
"""

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from pyiceberg.catalog import load_catalog
from pyspark.sql import SparkSession

from clew.definitions import FilesDatasource
from clew.definitions.datasource import FilesOptions
from clew.diagnostics import ClewError
from clew.engine.loading import PinRequest, pin
from clew.plan.datasets import DatasetUse
from clew.plan.resolution import ResolvedSource
from clew.storage.parts import Part
from clew.storage.roots import storage_at
from clew.trace.json_values import arrow_type
from tests.engine.engine_projects import RICH_DATASETS, rich_projects, rich_tables
from tests.engine.engine_runs import PERIOD, RUN_ID, TODAY, Pin, pinned, run_plan
from tests.engine.loading_requests import PERIODS, period
from tests.engine.test_engine_random_projects import check_counts, check_histories, check_outputs, check_states
from tests.plan.plan_interpreter import Cells, JoinNotUnique
from tests.trace.random_projects import compiled
from tests.trace.recorded_interpretation import Recorded

EXAMPLES = settings(max_examples=5, phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck))
OTHER = "2026-02"


@EXAMPLES
@given(
    project=rich_projects(most_steps=8),
    data=rich_tables(),
    files=st.integers(1, 3),
    format_=st.sampled_from(["delta", "iceberg"]),
)
def test_outputs_counts_and_every_state_of_a_run_on_a_table_are_those_of_the_interpreter(
    spark: SparkSession, project: dict[str, Any], data: dict[str, list[dict[str, Any]]], files: int, format_: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        plan = compiled(Path(folder, "workspace"), project, RICH_DATASETS)
        assume(plan is not None)
        assert plan is not None
        expected: Recorded | str
        try:
            expected = Recorded(plan, data, PERIOD, TODAY).run()
        except JoinNotUnique:
            expected = "JoinNotUnique"
        except ClewError as error:
            expected = error.code
        pin_ = pinning(spark, Path(folder, "lake"), plan.input, format_)
        if isinstance(expected, str):
            with pytest.raises(ClewError) as failed:
                run_plan(spark, Path(folder, "storage"), plan, data, files=files, pin=pin_)
            assert failed.value.code == expected
            return
        ran = run_plan(spark, Path(folder, "storage"), plan, data, files=files, pin=pin_)
        read = ran.inputs[0]
        assert (read.details or {})["pinned"] == "version"
        of_others = [file for file in read.files if file is read.files[-1]]
        ran.inputs = (replace(read, files=read.files[:-1]), *ran.inputs[1:])
        assert [file.rows for file in of_others] == [2]
        check_outputs(ran, expected)
        check_counts(ran, expected)
        check_histories(ran, expected, check_states(ran, expected))


def pinning(spark: SparkSession, lake: Path, table: DatasetUse, format_: str) -> Pin:
    """Pins the main dataset as a version of a table, which also has rows of another period, and others as ever."""

    def made(root: Path, use: DatasetUse, rows: Sequence[Cells], files: int, first_ordinal: int) -> Part:
        if use.key != table.key:
            return pinned(root, use, rows, files, first_ordinal)
        columns = tuple(replace(each, nullable=each.name != "_period") for each in use.columns)
        lenient = replace(use, natural_key=(), columns=columns)
        size = max(1, -(-len(rows) // files))
        pieces = [rows[start : start + size] for start in range(0, len(rows), size)]
        others = [{**dict.fromkeys(each.name for each in columns), "_period": OTHER}] * 2
        location = written(
            lake, format_, [arrow(lenient, piece, PERIOD) for piece in pieces], arrow(lenient, others, OTHER)
        )
        return pin(spark, request(root, lake, lenient, location, format_, first_ordinal)).drafted.publish().part

    return made


def arrow(use: DatasetUse, rows: Sequence[Cells], of: str) -> pa.Table:
    """Rows in the types of the dataset."""
    values = {
        column.name: [
            (row.get(column.name) or of) if column.name == "_period" else row.get(column.name) for row in rows
        ]
        for column in use.columns
    }
    return pa.table({column.name: pa.array(values[column.name], arrow_type(column.type)) for column in use.columns})


def written(lake: Path, format_: str, pieces: Sequence[pa.Table], others: pa.Table) -> str:
    """A table with a file for each piece, in this order. Where it is, below the folder of tables."""
    lake.mkdir()
    if format_ == "delta":
        for piece in (*pieces, others):
            write_deltalake(lake / "main", piece, mode="append")
        return "main"
    catalog = load_catalog("here", type="sql", uri=f"sqlite:///{lake}/catalog.db", warehouse=f"file://{lake}")
    catalog.create_namespace("shop")
    table = catalog.create_table("shop.main", others.schema)
    for piece in (others, *reversed(pieces)):
        table.append(piece)
    catalog.close()
    return table.metadata_location.removeprefix(f"file://{lake}/")


def request(root: Path, lake: Path, use: DatasetUse, location: str, format_: str, first_ordinal: int) -> PinRequest:
    source = ResolvedSource("lake", "path", location, "the rule", PERIOD, False, format_, {})
    return PinRequest(
        use=use,
        sources=(source,),
        datasources={"lake": FilesDatasource(id="lake", name="l", type="files", options=FilesOptions(root=str(lake)))},
        workspace_root=root,
        storage_root=storage_at(root),
        run_id=RUN_ID,
        period=period(PERIOD),
        periods=PERIODS,
        first_file_ordinal=first_ordinal,
        secrets=str,
    )
