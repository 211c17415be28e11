"""Trace records in the form that the specification of traces gives them: six fields, one record per row and step."""

# ruff: noqa: PLC0415 - libraries for reading are imported when something is read

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from clew.deferred import dataclass
from clew.diagnostics import UserError
from clew.diagnostics.codes.trace import INVALID_PAGE
from clew.trace.json_values import json_state
from clew.trace.records import RowValues, StepRecord, StepSummary, TraceEntry
from clew.trace.results import RowHistory, StepRecords, data_frame

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]
    import pyarrow as pa


class ReadableTrace(Protocol):
    """The questions about a trace that records are made from."""

    @property
    def run_id(self) -> str:
        """The run."""
        ...

    def history(self, row_id: str) -> RowHistory:
        """What happened to a row."""
        ...

    def counts(self) -> tuple[StepSummary, ...]:
        """How many rows each step changed."""
        ...

    def step_rows(self, seq: int, limit: int = ..., after: str | None = None) -> StepRecords:
        """What a step did."""
        ...


@dataclass(frozen=True, slots=True)
class TraceRecords:
    """Records in the order of steps, and of rows within a step."""

    run_id: str
    records: tuple[StepRecord, ...]
    next: str | None = None
    """Where the next page begins; None on the last one."""

    def to_json(self) -> dict[str, object]:
        """The form of `clew trace --records --json`."""
        return {
            "run_id": self.run_id,
            "records": list(self.json_records()),
            "has_more": self.next is not None,
            "next": self.next,
        }

    def json_records(self) -> Iterator[dict[str, object]]:
        """Each record with its six fields, and `kept` where a row was deleted because another one stayed."""
        for record in self.records:
            yield {
                "run_id": self.run_id,
                "operation_seq": record.operation_seq,
                "row_id": record.row_id,
                "change_type": record.change_type,
                "before": json_state(record.before),
                "after": json_state(record.after),
                **({"kept": record.kept} if record.kept else {}),
            }

    def to_arrow(self) -> "pa.Table":
        """The six fields as columns. `before` and `after` are maps from column names to values as JSON texts."""
        import pyarrow as pa

        from clew.trace.json_values import table_of

        records = self.records
        values = pa.map_(pa.string(), pa.string())
        return table_of(
            [
                ("run_id", pa.string(), [self.run_id] * len(records)),
                ("operation_seq", pa.int64(), [record.operation_seq for record in records]),
                ("row_id", pa.string(), [record.row_id for record in records]),
                ("change_type", pa.string(), [record.change_type for record in records]),
                ("before", values, [_texts(record.before) for record in records]),
                ("after", values, [_texts(record.after) for record in records]),
            ]
        )

    def to_pandas(self) -> "pd.DataFrame":
        """The same as a data frame; pandas must be installed."""
        return data_frame(self.to_arrow())


def records_of_row(trace: ReadableTrace, row_id: str) -> TraceRecords:
    """All records of a row. A loaded row begins with a record of step 0, which has its values as loaded."""
    history = trace.history(row_id)
    if history.diagnostic is not None:
        raise UserError(history.diagnostic)
    return TraceRecords(trace.run_id, tuple(_record(row_id, entry) for entry in history.entries))


def records_of_steps(
    trace: ReadableTrace, step: int | None = None, *, limit: int = 100, after: str | None = None
) -> TraceRecords:
    """The records of a step, or of all steps; `after` is the `next` of the page before."""
    if limit < 1:
        raise UserError(INVALID_PAGE.anywhere(problem=f"a page cannot have {limit} records"))
    first, last_row = _position(after)
    reached = [each.operation_seq for each in trace.counts() if each.outcome != "not reached"]
    found = list[StepRecord]()
    for seq in reached if step is None else [step]:
        if seq >= first and len(found) <= limit:
            page = trace.step_rows(seq, limit + 1 - len(found), last_row if seq == first else None)
            found += page.records
    if len(found) <= limit:
        return TraceRecords(trace.run_id, tuple(found))
    last = found[limit - 1]
    return TraceRecords(trace.run_id, tuple(found[:limit]), f"{last.operation_seq}/{last.row_id}")


def _position(after: str | None) -> tuple[int, str | None]:
    """The step and the row that a page begins after."""
    if after is None:
        return 0, None
    seq, slash, row_id = after.partition("/")
    if not (slash and seq.isascii() and seq.isdigit()):
        problem = f'"{after}" is not where a page of records ends'
        raise UserError(INVALID_PAGE.anywhere(problem=problem, hint="pass the `next` of the page before"))
    return int(seq), row_id


def _record(row_id: str, entry: TraceEntry) -> StepRecord:
    before = {name: each.old for name, each in entry.diff.items()}
    after = {name: each.new for name, each in entry.diff.items()}
    match entry.change_type:
        case "created":
            return StepRecord(row_id, entry.operation_seq, "created", None, entry.full_state)
        case "updated":
            return StepRecord(row_id, entry.operation_seq, "updated", before, after)
        case "deleted":
            return StepRecord(row_id, entry.operation_seq, "deleted", before, None, entry.kept)


def _texts(values: RowValues | None) -> list[tuple[str, str]] | None:
    state = json_state(values)
    return None if state is None else [(name, json.dumps(value, ensure_ascii=False)) for name, value in state.items()]
