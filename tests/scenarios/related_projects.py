"""Random projects whose results do not hang on the order of rows, and what may be changed about them without effect."""

import re
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from clew.diagnostics import UserError
from clew.scenarios.judging import Outcome
from clew.scenarios.matching import LOADING, ScenarioRow
from clew.scenarios.quick import quick_outcome
from tests.scenarios.test_quick import as_read, prepared
from tests.trace.random_projects import COLUMNS, DATASETS, compiled, projects, tables

Project = dict[str, Any]
Operation = dict[str, Any]
Data = dict[str, list[dict[str, Any]]]
Datasets = Mapping[str, dict[str, Any]]
Names = Callable[[str], str | None]
"""What a column is called in what is compared; None leaves it out."""

RELATED_DATASETS: dict[str, dict[str, Any]] = {
    **DATASETS,
    "main": {**DATASETS["main"], "columns": {**COLUMNS, "serial": "integer"}},
}
"""Loaded rows have a number that no step changes: where an order ends with it, no two rows are equal."""

_WITH_AN_ORDER: list[Operation] = [
    *(
        {
            "type": "update",
            "selector": "serial IS NOT NULL",
            "arguments": {"assignments": [{"column": column, "expression": expression}]},
        }
        for column, expression in (
            ("number", "ROW_NUMBER() OVER (PARTITION BY currency ORDER BY amount desc, serial)"),
            ("amount", "IFNULL(SUM(amount) OVER (PARTITION BY flag ORDER BY day, serial), amount)"),
            ("before", "LAG(currency, 1) OVER (ORDER BY share desc, serial desc)"),
            ("first", "FIRST(amount, day, serial) OVER (PARTITION BY currency)"),
            (
                "moving",
                "AVG(amount) OVER (PARTITION BY flag ORDER BY serial ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)",
            ),
        )
    ),
    *(
        {
            "type": "delete",
            "selector": "serial IS NOT NULL",
            "arguments": {"keep": keep, "keys": keys, "order": [order, "serial"]},
        }
        for keep, keys, order in (("first", ["currency", "flag"], "day desc"), ("last", ["share"], "amount"))
    ),
    {
        "type": "aggregate",
        "arguments": {
            "group_by": ["flag"],
            "aggregations": [
                {"column": "note", "expression": 'STRING_AGG(currency, "+", amount, serial)'},
                {"column": "amount", "expression": "ROUND(MEDIAN(amount), 2)"},
            ],
        },
    },
]


@dataclass(frozen=True)
class Done:
    """What a project did: rows of outputs and changes of steps, in any order, by the step they come from."""

    outputs: Mapping[int, Counter[str]]
    changes: Mapping[int, Counter[str]]

    def __add__(self, other: "Done") -> "Done":
        return Done(
            {seq: rows + other.outputs[seq] for seq, rows in self.outputs.items()},
            {seq: rows + other.changes[seq] for seq, rows in self.changes.items()},
        )


def operations_of(project: Project) -> list[Operation]:
    """The operations, each with the number that it is compared under."""
    return [{**operation, "origin": number} for number, operation in enumerate(project["operations"], 1)]


@st.composite
def related_projects(draw: st.DrawFn, most_steps: int = 6) -> Project:
    """A project in which each order is that of all rows, and whose last operation writes all columns."""
    drawn = draw(projects(most_steps))
    operations = [operation for operation in drawn["operations"] if not hangs_on_an_order(operation)]
    for operation in draw(st.lists(st.sampled_from(_WITH_AN_ORDER), max_size=2)):
        operations.insert(draw(st.integers(0, len(operations))), operation)
    destination = {"location": {"format": "parquet", "path": "out"}}
    columns = [*COLUMNS, "_period", "_labels"]
    operations.append({"type": "output", "arguments": {"destination": destination, "columns": columns}})
    return with_operations(drawn, operations)


@st.composite
def related_tables(draw: st.DrawFn) -> Data:
    """Rows for all datasets of `RELATED_DATASETS`."""
    data = draw(tables(8))
    return {**data, "main": [{**row, "serial": number} for number, row in enumerate(data["main"])]}


def hangs_on_an_order(operation: Operation) -> bool:
    """Whether an operation looks at rows one after the other."""
    return "keep" in operation.get("arguments", {}) or " OVER (" in str(operation)


def may_be_split(operation: Operation) -> bool:
    """Whether an operation looks at rows one by one, and leaves the columns as they are."""
    return not hangs_on_an_order(operation) and not {"rename", "drop"} & operation.get("arguments", {}).keys()


def with_operations(project: Project, operations: Sequence[Operation]) -> Project:
    """A project with other operations, numbered anew."""
    numbered = [
        {**operation, "seq": 10 * number, "name": f"step {number}"} for number, operation in enumerate(operations, 1)
    ]
    return {**project, "operations": numbered}


def words(*texts: object) -> set[str]:
    """The names in expressions, and more."""
    return set(re.findall(r"\w+", " ".join(map(str, texts))))


def does(
    project: Project,
    data: Data,
    *,
    datasets: Datasets = RELATED_DATASETS,
    names: Names = lambda name: name,
) -> Done | str:
    """What a project does without Spark, or the code of the error that it ends with."""
    origins = {each["seq"]: each.get("origin", number) for number, each in enumerate(project["operations"], 1)}
    plain = [{key: value for key, value in each.items() if key != "origin"} for each in project["operations"]]
    with tempfile.TemporaryDirectory() as folder:
        plan = compiled(Path(folder), {**project, "operations": plain}, dict(datasets))
        assume(plan is not None)
        assert plan is not None
        try:
            outcome = quick_outcome(prepared(plan, Path(folder)), as_read(plan, data))
        except UserError as error:
            return error.code
    return compared(outcome, origins, names)


def compared(outcome: Outcome, origins: Mapping[int, int], names: Names) -> Done:
    """What was done, with what came from one operation under its number. Operations without a number do nothing."""
    outputs, changes = dict[int, Counter[str]](), dict[int, Counter[str]]()
    for seq, (columns, rows) in outcome.outputs.items():
        listed = Counter(_told({name: row.get(name) for name in columns}, names) for row in rows)
        outputs[origins[seq]] = outputs.get(origins[seq], Counter()) + listed
    for seq in (LOADING, *(step.seq for step in outcome.plan.steps)):
        origin = origins.get(seq, LOADING) if seq else LOADING
        listed = Counter(
            " ".join(
                [
                    change.change_type,
                    _told(change.after, names),
                    _told({name: diff.old for name, diff in change.diff.items()}, names),
                ]
            )
            for change in outcome.changes(seq)
        )
        changes[origin] = changes.get(origin, Counter()) + listed
    return Done(outputs, changes)


def _told(row: ScenarioRow, names: Names) -> str:
    made_up = {"_row_id", "_trace_id"}
    named = {names(name): _plain(value) for name, value in row.items() if name not in made_up}
    return repr(sorted((name, value) for name, value in named.items() if name is not None))


def _plain(value: object) -> str:
    match value:
        case Decimal():
            return f"{value.normalize() + 0:f}"
        case datetime():
            return value.isoformat()
        case date():
            return value.isoformat()
        case _:
            return repr(value)
