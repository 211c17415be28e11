"""Rows of a run as a file: what a condition matches after a step, what a step did, or what an output has written."""

from collections.abc import Sequence

import pyarrow as pa

from clew.api.table_downloads import FileFormat, TableFile, table_file
from clew.change.comparison import RunComparison
from clew.deferred import dataclass
from clew.diagnostics import UserError, did_you_mean
from clew.diagnostics.codes.server import INVALID_REQUEST
from clew.lang.text_form import text_of
from clew.privacy.seen_trace import SeenTrace
from clew.trace.json_values import json_value
from clew.trace.results import FoundRows
from clew.trace.row_sets import Order

MOST_ROWS = 50_000
_INNER = frozenset({"_labels"})


@dataclass(frozen=True, slots=True)
class RowsWanted:
    """Which rows of a run to download."""

    where: str | None = None
    at: int | None = None
    """After this step; by default the last."""
    step: int | None = None
    """Only rows that this step created, changed or deleted, as they were after it."""
    output: int | None = None
    """Only rows and columns that this output has written."""
    sort: str | None = None
    descending: bool = False
    columns: Sequence[str] = ()
    limit: int = MOST_ROWS


def rows_file(trace: SeenTrace, wanted: RowsWanted, format_: str) -> TableFile:
    """The rows as a file. UserError where the question is wrong."""
    limit = max(1, min(wanted.limit, MOST_ROWS))
    if sum(each is not None for each in (wanted.at, wanted.step, wanted.output)) > 1:
        raise UserError(INVALID_REQUEST.anywhere(problem="give one of `at`, `step` and `output`"))
    columns, at, where = list(wanted.columns), wanted.at, wanted.where
    if wanted.output is not None:
        columns, where = _of_output(trace, wanted.output, columns, where)
        at = wanted.output
    if wanted.step is not None:
        found = trace.touched(trace.run.checked_step(wanted.step), limit, None, where)
    elif wanted.sort is not None:
        order = Order(wanted.sort, descending=wanted.descending)
        found = trace.ordered(where, order, at, limit=limit)
    else:
        found = trace.search(where, at, limit)
    place = "output" if wanted.output is not None else "step"
    name = f"{trace.plan.name}-{trace.period}-{place}-{found.at}"
    return table_file(_table(found, columns), name, _format(format_), is_cut=found.has_more)


def comparison_file(found: RunComparison, format_: str) -> TableFile:
    """The rows that differ, one line for each column that does."""
    lines = [
        {
            "change": row.change,
            "key": ", ".join(f"{name} {json_value(value)}" for name, value in row.key.items()),
            "row_a": row.row_a,
            "row_b": row.row_b,
            "column": name,
            "value_a": _text(json_value(each.old)),
            "value_b": _text(json_value(each.new)),
        }
        for row in found.rows
        for name, each in row.columns.items()
    ]
    names = ("change", "key", "row_a", "row_b", "column", "value_a", "value_b")
    schema = pa.schema([(name, pa.string()) for name in names])
    table = pa.Table.from_pylist(lines, schema=schema)
    return table_file(table, f"compare-{found.run_a[:8]}-{found.run_b[:8]}", _format(format_), is_cut=found.has_more)


def capture_file(table: pa.Table, capture_id: str, format_: str, *, limit: int) -> TableFile:
    """The rows of a capture, of which one more than `limit` was read."""
    return table_file(table.slice(0, limit), f"capture-{capture_id}", _format(format_), is_cut=table.num_rows > limit)


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _format(name: str) -> FileFormat:
    known = [each.value for each in FileFormat]
    if name not in known:
        hint = did_you_mean(name, known) or f"the formats are {', '.join(known)}"
        raise UserError(INVALID_REQUEST.anywhere(problem=f'no format "{name}"', hint=hint))
    return FileFormat(name)


def _of_output(trace: SeenTrace, seq: int, columns: list[str], where: str | None) -> tuple[list[str], str | None]:
    """The columns of an output, and the condition for the rows that it has written."""
    step = next((each for each in trace.plan.outputs if each.seq == seq), None)
    if step is None:
        listed = ", ".join(str(each.seq) for each in trace.plan.outputs) or "none"
        raise UserError(INVALID_REQUEST.anywhere(problem=f"no output {seq}", hint=f"the outputs are {listed}"))
    conditions = [
        *([f"({text_of(step.selector.tree)})"] if step.selector is not None else []),
        *([] if step.include_deleted else ["_deleted = FALSE"]),
        *([f"({where})"] if where is not None else []),
    ]
    written = [name for name in step.columns if not columns or name in columns]
    return written, " AND ".join(conditions) or None


def _table(found: FoundRows, columns: Sequence[str]) -> pa.Table:
    """The rows with their ids in front, and the columns that are wanted and that the role may see."""
    table = found.to_arrow()
    known = [name for name in table.column_names if name != "row_id"]
    unknown = [name for name in columns if name not in known and name != "_row_id"]
    if unknown and not known:
        return table
    chosen = [name for name in columns if name in known] or [name for name in known if name not in _INNER]
    return table.select(["row_id", *chosen])
