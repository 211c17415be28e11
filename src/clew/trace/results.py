"""Answers of a trace: as text, as JSON, as Arrow tables and data frames, and as HTML for notebooks.

Data frames lose no digits, and HTML escapes everything that users wrote.
"""

# ruff: noqa: PLC0415 - table libraries are imported only when a table is requested
# ruff: noqa: PLC0415 - libraries for reading are imported when something is read

from collections.abc import Iterable, Mapping
from datetime import date
from decimal import Decimal
from html import escape
from typing import TYPE_CHECKING

from clew.deferred import dataclass
from clew.diagnostics import Diagnostic
from clew.lang.typed import Value
from clew.lang.types import Type
from clew.storage.row_identity import RowIds
from clew.trace.json_values import JsonValue, json_state, json_value
from clew.trace.records import RowValues, StepRecord, TraceEntry

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]
    import pyarrow as pa

    from clew.trace.records import Diff

_TAIL = 6
"""How much of an id is enough to distinguish a row from its neighbours."""


def shown(value: Value) -> str:
    """A value as people read it in a table."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case Decimal():
            return f"{value:,f}"
        case int():
            return str(value)
        case date():
            return value.isoformat()
        case _:
            return str(value)


def row_name(label: str, tail: int = _TAIL) -> str:
    """What a row is called: its natural key, or the end of its id where it has none."""
    return f"row …{label[-tail:]}" if RowIds.is_row_id(label) else label


def is_row_of(run_id: str, text: str) -> bool:
    """Whether a text is an id that a row of a run may have."""
    return RowIds(run_id).ordinal(text) is not None


def html_table(caption: str, headings: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A table with a caption. Cells are strings, or pieces of HTML that were escaped before."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join("<tr>" + "".join(f"<td>{_cell(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def _cell(cell: object) -> str:
    return cell if isinstance(cell, Html) else escape(str(cell))


def data_frame(table: "pa.Table") -> "pd.DataFrame":
    """A table as a data frame; pandas must be installed.

    Whole numbers stay whole where some are missing: as floating-point numbers, which pandas would make of them, long
    ones are not what they were.
    """
    import pandas as pd
    import pyarrow as pa

    frame = table.to_pandas()
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_integer(column.type) and column.null_count:
            frame[name] = column.to_pandas(types_mapper=lambda _type: pd.Int64Dtype())
    return frame


Columns = tuple[tuple[str, Type], ...]


@dataclass(frozen=True, slots=True)
class RowHistory:
    """What happened to a row, step by step. Without entries the diagnostic says why there are none."""

    row_id: str
    columns: Columns
    """The columns of the last state."""
    entries: tuple[TraceEntry, ...]
    diagnostic: Diagnostic | None = None
    trace_id: int | None = None
    """The id for questions about its lineage; None if the rows of the run have no trace ids."""

    def to_json(self) -> dict[str, object]:
        """The form that `clew trace --json` gives."""
        history = [
            {
                "operation_seq": entry.operation_seq,
                "step": entry.step_name,
                "change_type": entry.change_type,
                "full_state": {**(json_state(entry.full_state) or {}), "_row_id": self.row_id},
                "diff": _json_diff(entry.diff),
                **({"source": _json_source(entry)} if entry.source else {}),
                **({"kept": entry.kept} if entry.kept else {}),
            }
            for entry in self.entries
        ]
        found: dict[str, object] = {"row_id": self.row_id, "trace_id": self.trace_id, "history": history}
        return found if self.diagnostic is None else {**found, "diagnostic": self.diagnostic.to_json()}

    def to_arrow(self) -> "pa.Table":
        """One row for each entry: what was changed, and the full state."""
        import pyarrow as pa

        from clew.trace.json_values import arrow_type, table_of

        return table_of(
            [
                ("operation_seq", pa.int64(), [entry.operation_seq for entry in self.entries]),
                ("change_type", pa.string(), [entry.change_type for entry in self.entries]),
                ("changed", pa.list_(pa.string()), [list(entry.diff) for entry in self.entries]),
                *(
                    (name, arrow_type(type_), [entry.full_state.get(name) for entry in self.entries])
                    for name, type_ in self.columns
                ),
            ]
        )

    def to_pandas(self) -> "pd.DataFrame":
        """The same as a data frame; pandas must be installed."""
        return data_frame(self.to_arrow())

    def _repr_html_(self) -> str:
        rows = [
            [str(entry.operation_seq), entry.step_name, entry.change_type, _html_diff(entry)] for entry in self.entries
        ]
        return html_table(f"row {self.row_id}", ["step", "name", "change", "columns"], rows)


@dataclass(frozen=True, slots=True)
class FoundRow:
    """A row and its state."""

    row_id: str
    state: RowValues


@dataclass(frozen=True, slots=True)
class FoundRows:
    """Rows as they stood after a step, in the order of their ordinals."""

    at: int
    columns: Columns
    rows: tuple[FoundRow, ...]
    has_more: bool
    """Whether there are rows after the last one; request those after its row id."""
    table: str = ""
    """The table of the rows."""

    def _name(self, column: str) -> str:
        """What a column is called beside `row_id`: a data column of that name has the table in front."""
        return f"{self.table}.{column}" if column == "row_id" else column

    def to_json(self) -> dict[str, object]:
        """The form that `clew trace --where --json` gives."""
        rows = [
            {"row_id": row.row_id}
            | {self._name(name): value for name, value in (json_state(row.state) or {}).items()}
            | {"_row_id": row.row_id}
            for row in self.rows
        ]
        return {"at": self.at, "rows": rows, "has_more": self.has_more}

    def to_arrow(self) -> "pa.Table":
        """Row ids and states."""
        import pyarrow as pa

        from clew.trace.json_values import arrow_type, table_of

        return table_of(
            [
                ("row_id", pa.string(), [row.row_id for row in self.rows]),
                *(
                    (self._name(name), arrow_type(type_), [row.state[name] for row in self.rows])
                    for name, type_ in self.columns
                ),
            ]
        )

    def to_pandas(self) -> "pd.DataFrame":
        """The same as a data frame; pandas must be installed."""
        return data_frame(self.to_arrow())

    def _repr_html_(self) -> str:
        names = [name for name, _ in self.columns]
        rows = [[row.row_id, *(shown(row.state[name]) for name in names)] for row in self.rows]
        caption = f"{len(self.rows)} rows after step {self.at}" + (", and more" if self.has_more else "")
        return html_table(caption, ["row_id", *names], rows)


@dataclass(frozen=True, slots=True)
class StepRecords:
    """The records of a step, in the order of ordinals."""

    operation_seq: int
    columns: Columns
    """Those that the step may change or fill."""
    records: tuple[StepRecord, ...]
    has_more: bool
    run_id: str = ""

    def to_json(self) -> dict[str, object]:
        """The form that `clew trace --step --json` gives."""
        rows = [
            {
                "run_id": self.run_id,
                "operation_seq": record.operation_seq,
                "row_id": record.row_id,
                "change_type": record.change_type,
                "before": json_state(record.before),
                "after": json_state(record.after),
                **({"kept": record.kept} if record.kept else {}),
            }
            for record in self.records
        ]
        return {"run_id": self.run_id, "operation_seq": self.operation_seq, "rows": rows, "has_more": self.has_more}

    def to_arrow(self) -> "pa.Table":
        """Row ids, and for each column its value before and after; `changed` distinguishes NULL from unchanged."""
        import pyarrow as pa

        from clew.trace.json_values import arrow_type, table_of

        sides = [
            (f"{side}.{name}", arrow_type(type_), [_of(record, side).get(name) for record in self.records])
            for name, type_ in self.columns
            for side in ("before", "after")
        ]
        changed = [list(record.after or record.before or {}) for record in self.records]
        return table_of(
            [
                ("row_id", pa.string(), [record.row_id for record in self.records]),
                ("change_type", pa.string(), [record.change_type for record in self.records]),
                ("changed", pa.list_(pa.string()), changed),
                *sides,
            ]
        )

    def to_pandas(self) -> "pd.DataFrame":
        """The same as a data frame; pandas must be installed."""
        return data_frame(self.to_arrow())

    def _repr_html_(self) -> str:
        rows = [
            [record.row_id, record.change_type, _html_state(record.before), _html_state(record.after)]
            for record in self.records
        ]
        caption = f"{len(self.records)} records of step {self.operation_seq}" + (", and more" if self.has_more else "")
        return html_table(caption, ["row_id", "change", "before", "after"], rows)


def _of(record: StepRecord, side: str) -> RowValues:
    return (record.before if side == "before" else record.after) or {}


def _json_diff(diff: "Mapping[str, Diff]") -> dict[str, dict[str, JsonValue]]:
    return {name: {"old": json_value(each.old), "new": json_value(each.new)} for name, each in diff.items()}


def _json_source(entry: TraceEntry) -> dict[str, object] | None:
    source = entry.source
    if source is None:
        return None
    found = {"dataset": source.dataset, "version": source.version, "file": source.file, "line": source.line}
    return {**found, "description": source.description, "unit": source.unit, "table_row_id": source.table_row_id}


def _html_diff(entry: TraceEntry) -> Html:
    def line(name: str, old: Value, new: Value) -> str:
        if entry.change_type == "created":
            return f"{escape(name)} {escape(shown(new))}"
        return f"<b>{escape(name)}</b> {escape(shown(old))} &rarr; <b>{escape(shown(new))}</b>"

    return Html("<br>".join(line(name, each.old, each.new) for name, each in entry.diff.items()))


def _html_state(state: RowValues | None) -> Html:
    pairs = [] if state is None else [f"{escape(name)} {escape(shown(value))}" for name, value in state.items()]
    return Html("<br>".join(pairs))
