"""Ways to run the same random project over the same rows on Spark, which must not be told apart by what comes out.

`tests/scenarios/test_quick_relations.py` has the relations between projects, tried without Spark.
"""

import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import clew.engine.direct
import clew.engine.parts
from clew.diagnostics import ClewError
from clew.plan import Plan
from clew.plan.operations import Step
from clew.trace.json_values import json_value
from tests.engine.engine_runs import Ran, run_plan
from tests.scenarios.related_projects import (
    RELATED_DATASETS,
    Data,
    Project,
    may_be_split,
    operations_of,
    related_projects,
    related_tables,
    with_operations,
)
from tests.scenarios.test_quick_relations import _parts
from tests.trace.random_projects import compiled

FEW = settings(max_examples=3, phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck))


@dataclass(frozen=True)
class Way:
    """How a plan is run."""

    name: str
    files: int = 1
    settings: Mapping[str, str] = field(default_factory=dict)
    """Of the Spark session."""
    is_alone: bool = False
    """Whether each step is a job of its own, on what the one before it has written."""
    scans_from: int = 1_000
    """The number of rows from which parts are read by Spark, and not by this process."""


_INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
_GENERATED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
_ADAPTIVE = {"spark.sql.adaptive.enabled": "true"}
_PLANNED_ONCE = {"spark.sql.adaptive.enabled": "false"}
_ONE = {"spark.sql.shuffle.partitions": "1"}
_FOUR = {
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
    "spark.sql.files.maxPartitionBytes": "2kb",
    "spark.sql.files.openCostInBytes": "1",
}
PLAIN = Way("as it comes")
WAYS = (
    Way("once more"),
    Way("one partition, interpreted, planned once", 1, {**_ONE, **_INTERPRETED, **_PLANNED_ONCE}, scans_from=0),
    Way("four partitions, code generated, planned anew", 1, {**_FOUR, **_GENERATED, **_ADAPTIVE}, scans_from=0),
    Way("every step alone", 1, {**_FOUR, **_INTERPRETED, **_PLANNED_ONCE}, is_alone=True, scans_from=0),
)


@contextmanager
def _taken(spark: SparkSession, way: Way) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        patch.setattr(clew.engine.parts, "FEW_ROWS", way.scans_from)
        if way.is_alone:
            patch.setattr(clew.engine.direct, "next_group", _alone)
        for name, value in way.settings.items():
            stack.callback(_back(spark, name))
            spark.conf.set(name, value)
        yield


def _back(spark: SparkSession, name: str) -> Callable[[], None]:
    before = spark.conf.get(name, None)
    return lambda: spark.conf.set(name, before) if before is not None else spark.conf.unset(name)


def _alone(_plan: Plan, steps: Sequence[Step]) -> tuple[Step, ...]:
    return (steps[0],)


@dataclass(frozen=True)
class Told:
    """What a run has done, whatever its rows are called."""

    outputs: Mapping[int, Counter[str]]
    rows: Counter[tuple[str, ...]]
    """What happened to each row, from when it was loaded or created."""


def ran(spark: SparkSession, project: Project, data: Data, way: Way = PLAIN) -> Told | str:
    """What a project does, or the code of the error that it ends with. A step is called as what it comes from."""
    origins = {each["seq"]: each.get("origin", number) for number, each in enumerate(project["operations"], 1)}
    plain = [{key: value for key, value in each.items() if key != "origin"} for each in project["operations"]]
    with tempfile.TemporaryDirectory() as folder, _taken(spark, way):
        plan = compiled(Path(folder, "workspace"), {**project, "operations": plain}, RELATED_DATASETS)
        assume(plan is not None)
        assert plan is not None
        try:
            done = run_plan(spark, Path(folder, "storage"), plan, data, files=way.files)
        except ClewError as error:
            return error.code
        outputs = defaultdict[int, Counter[str]](Counter)
        for seq, rows in done.outputs.items():
            outputs[origins[seq]] += Counter(map(_told, rows))
        return Told(dict(outputs), _histories(done, origins))


def _histories(done: Ran, origins: Mapping[int, int]) -> Counter[tuple[str, ...]]:
    trace = done.trace()
    try:
        states = trace.search(None, at=0, limit=10_000).rows
        found = defaultdict[str, list[str]](list, {row.row_id: [_told(row.state)] for row in states})
        for step in done.plan.steps:
            for each in trace.step_rows(step.seq, limit=10_000).records:
                told = f"{origins[step.seq]} {each.change_type} {_told(each.before or {})} {_told(each.after or {})}"
                found[each.row_id].append(told)
        return Counter(map(tuple, found.values()))
    finally:
        trace.close()


def _told(row: Mapping[str, Any]) -> str:
    return repr(
        sorted((name, json_value(value)) for name, value in row.items() if name not in {"_row_id", "_trace_id"})
    )


@FEW
@given(related_projects(), related_tables())
def test_how_spark_does_it_does_not_matter(spark: SparkSession, project: Project, data: Data) -> None:
    expected = ran(spark, project, data)
    assume(isinstance(expected, Told))
    for way in WAYS:
        assert ran(spark, project, data, way) == expected, way.name


@FEW
@given(related_projects(), related_tables(), st.randoms(use_true_random=False))
def test_rows_may_be_in_any_order_in_any_number_of_files(
    spark: SparkSession, project: Project, data: Data, chance: Any
) -> None:
    shuffled = {name: chance.sample(rows, len(rows)) for name, rows in data.items()}
    assert ran(spark, project, shuffled, Way("three files", files=3, scans_from=0)) == ran(spark, project, data)


@FEW
@given(related_projects(), related_tables(), st.data())
def test_a_step_may_be_three_and_deletes_may_change_places(
    spark: SparkSession, project: Project, data: Data, draw: st.DataObject
) -> None:
    operations = operations_of(project)
    number = draw.draw(st.sampled_from([at for at, each in enumerate(operations) if may_be_split(each)]))
    parts = _parts(operations[number], draw)
    deletes = [{"type": "delete", "selector": each, "origin": 0} for each in ("k > 3", 'currency = "EUR"')]
    one = with_operations(project, [*deletes, *operations])
    other = with_operations(project, [*deletes[::-1], *operations[:number], *parts, *operations[number + 1 :]])
    assert ran(spark, other, data) == ran(spark, one, data)
