"""One row through all steps, read from the few row groups that hold it, without a query engine."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from clew.events.values import LOAD_STEP
from clew.lang.typed import Value
from clew.lang.types import INTEGER, STRING, Type
from clew.plan.columns import SYSTEM_COLUMNS
from clew.plan.operations import ChangingStep, CreatingStep, Step
from clew.storage.checked_files import TraceFiles
from clew.storage.parts import (
    MASK_BITS,
    SOURCE_FILE,
    SOURCE_LINE,
    SOURCE_ROW_ID,
    Part,
    PartFile,
    TracedStep,
    after_column,
    change_columns,
    in_mask,
    mask_column,
    mask_columns,
)
from clew.storage.row_identity import RowIds
from clew.trace.json_values import values_of
from clew.trace.records import LINE, ChangeType, Diff, RowValues, Source, TraceEntry
from clew.trace.run_parts import RunParts, periods_of

if TYPE_CHECKING:
    import pyarrow as pa


_UNITS: Mapping[object, str] = {"record": "record", "row": "row", "table": "row"}
"""What numbers of rows count, by how a pinned input says where its rows stood."""


class Histories:
    """Reads histories of single rows."""

    def __init__(self, run: RunParts, files: TraceFiles, period: str, row_ids: RowIds) -> None:
        self._run = run
        self._row_ids = row_ids
        self._files = files
        self._period = period

    def entries(self, ordinal: int, until: int) -> list[TraceEntry]:
        """What happened to a row, from its creation up to a step; nothing if the row does not exist."""
        place = self._run.place(ordinal)
        if place is None:
            return []
        first = self._created(*place)
        if first is None or first.operation_seq > until:
            return []
        return [first, *self._changed(ordinal, first.operation_seq, first.full_state, until)]

    def _created(self, part: Part, file: PartFile, position: int) -> TraceEntry | None:
        if self._files.is_excluded(part, file, file.first_ordinal + position):
            return None
        seq = part.seq if part.kind == "created" else 0
        columns = self._run.columns(seq)
        stored = self._files.columns(file)
        wanted = [name for name, _ in columns if name in stored]
        sources = [name for name in (SOURCE_FILE, SOURCE_LINE, SOURCE_ROW_ID) if name in stored]
        row = self._files.row(file, position, [*wanted, *sources])
        state = {name: _cell(row, name, type_) for name, type_ in columns}
        state["_deleted"] = state["_deleted"] or False
        if seq == 0:
            periods = periods_of(part, self._run.plan.input)
            if periods is not None and state["_period"] not in periods:
                return None
            state["_labels"] = state["_labels"] or ""
            state["_period"] = self._period if state["_period"] is None else state["_period"]
        diff = {name: Diff(None, value) for name, value in state.items()}
        step = self._run.step(seq) if seq else None
        source = self._source(part, row) if step is None or _keeps_source(step) else None
        return TraceEntry(seq, step.name if step else LOAD_STEP, "created", state, diff, source)

    def _source(self, part: Part, row: "pa.Table") -> Source:
        step = self._run.step(part.seq) if part.kind == "created" else None
        made_from = step.made_from if isinstance(step, CreatingStep) else None
        pinned = part if made_from is None else self._run.pinned(made_from)
        place = (_cell(row, SOURCE_FILE, STRING), _cell(row, SOURCE_LINE, INTEGER))
        return source_of(pinned, *place, _cell(row, SOURCE_ROW_ID, INTEGER))

    def _changed(self, ordinal: int, created: int, state: RowValues, until: int) -> Iterator[TraceEntry]:
        current = dict(state)
        rows = dict[str, "pa.Table | None"]()
        for part, traced in self._run.traced(created, until):
            if part.name not in rows:
                rows[part.name] = self._row_of_changes(part, ordinal)
            row = rows[part.name]
            if row is None or not is_changed(row, traced):
                continue
            step = self._run.step(traced.seq)
            columns = self._run.columns(traced.seq)
            current = {name: current.get(name) for name, _ in columns}
            changes = changes_of(row, traced, dict(columns))
            diff = {name: Diff(current[name], value) for name, value in changes.items()}
            current |= changes
            change_type: ChangeType = "deleted" if traced.kind == "delete" else "updated"
            yield TraceEntry(traced.seq, step.name, change_type, dict(current), diff, kept=self._kept(step, row))

    def _kept(self, step: Step, row: "pa.Table") -> str | None:
        if not isinstance(step, ChangingStep) or step.keeps is None:
            return None
        return self._row_ids.row_id(row[mask_column(step.seq)][0].as_py())

    def _row_of_changes(self, part: Part, ordinal: int) -> "pa.Table | None":
        columns = [name for step in part.steps for name in change_columns(step)]
        for file in part.files:
            found = self._files.row_with(file, ordinal, columns)
            if found is not None:
                return found
        return None


def source_of(part: Part, file: Value, line: Value, table_row_id: Value = None) -> Source:
    """Where a row of a pinned dataset came from."""
    details = part.details or {}
    version = details.get("version")
    description = details.get("sources")
    return Source(
        dataset=str(details.get("dataset") or part.name),
        version=version if isinstance(version, int) else None,
        file=None if file is None else str(file),
        line=line if isinstance(line, int) else None,
        description=None if description is None else str(description),
        unit=_UNITS.get(details.get("places"), LINE),
        table_row_id=table_row_id if isinstance(table_row_id, int) else None,
    )


def _keeps_source(step: Step) -> bool:
    return isinstance(step, CreatingStep) and step.keys is None


def _cell(row: "pa.Table", name: str, type_: Type) -> Value:
    return values_of(row[name], type_)[0] if name in row.column_names else None


def is_changed(row: "pa.Table", step: TracedStep) -> bool:
    """Whether a step changed the row."""
    return any(row[name][0].is_valid for name in change_columns(step))


def changes_of(row: "pa.Table", step: TracedStep, types: Mapping[str, Type]) -> dict[str, Value]:
    """The columns that a step changed in a row, with their values after it."""
    if step.kind == "delete":
        return {"_deleted": True}
    masks: Sequence[int | None] = [row[name][0].as_py() for name in mask_columns(step)]
    known = {**SYSTEM_COLUMNS, **types}
    changes = dict[str, Value]()
    for position, name in enumerate(step.columns):
        [value] = values_of(row[after_column(step.seq, position)], known[name])
        if value is not None or in_mask(masks[position // MASK_BITS], position):
            changes[name] = value
    return changes
