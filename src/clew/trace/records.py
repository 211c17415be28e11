"""What a trace says about rows, as values: entries of a history, states, records of a step."""

from collections.abc import Mapping
from typing import Literal

from clew.deferred import dataclass
from clew.diagnostics import Diagnostic
from clew.lang.typed import Value
from clew.trace.json_values import JsonValue, json_state

ChangeType = Literal["created", "updated", "deleted"]
RowValues = Mapping[str, Value]

LINE = "line"
"""How a row of a text file is counted, where nothing says otherwise."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a row of a pinned dataset came from."""

    dataset: str
    version: int | None = None
    file: str | None = None
    line: int | None = None
    description: str | None = None
    """What the engine noted about the source as a whole, such as a table of a database."""
    unit: str = LINE
    """What `line` counts: a line of a text file, a record of one whose values may go over lines, or a row."""
    table_row_id: int | None = None
    """The id that the table itself gives the row, where it has such ids."""

    @property
    def numbered(self) -> str:
        """The number of the row in its file, in words after the file; empty where it is not known."""
        number = "" if self.line is None else f" {self.unit} {self.line:,}"
        return number if self.table_row_id is None else f"{number} (row id {self.table_row_id} of the table)"


@dataclass(frozen=True, slots=True)
class Diff:
    """A value before and after a step."""

    old: Value
    new: Value


@dataclass(frozen=True, slots=True)
class TraceEntry:
    """What one step did to a row. Step 0 stands for loading."""

    operation_seq: int
    step_name: str
    change_type: ChangeType
    full_state: RowValues
    diff: Mapping[str, Diff]
    source: Source | None = None
    """For rows that were loaded or appended as they were: where they stood."""
    kept: str | None = None
    """For a row that was deleted because another one with the same keys stayed: the id of that row."""


@dataclass(frozen=True, slots=True)
class StepRecord:
    """What a step did to one row: the record that the specification of traces describes."""

    row_id: str
    operation_seq: int
    change_type: ChangeType
    before: RowValues | None
    """Values before of the columns that changed; None for a row that was created."""
    after: RowValues | None
    """Values after of the columns that changed, all of a row that was created; None for one that was deleted."""
    kept: str | None = None
    """For a row that was deleted because another one with the same keys stayed: the id of that row."""


@dataclass(frozen=True, slots=True)
class RowState:
    """A row at a step. The state is None where there is no such row then, and the diagnostic says why."""

    row_id: str
    at: int
    state: RowValues | None
    diagnostic: Diagnostic | None = None

    def to_json(self) -> dict[str, object]:
        """The form that `clew trace --at --json` gives."""
        found: dict[str, object] = {"row_id": self.row_id, "at": self.at, "row_at_step": self._json_state()}
        return found if self.diagnostic is None else {**found, "diagnostic": self.diagnostic.to_json()}

    def _json_state(self) -> dict[str, JsonValue] | None:
        state = json_state(self.state)
        return None if state is None else {**state, "_row_id": self.row_id}


@dataclass(frozen=True, slots=True)
class StepSummary:
    """How many rows a step created, changed and deleted, and in how many of them it changed which column."""

    operation_seq: int
    step_name: str
    step_type: str
    updated: int = 0
    created: int = 0
    deleted: int = 0
    columns: Mapping[str, int] | None = None
    outcome: Literal["done", "skipped", "not reached"] = "done"

    def to_json(self) -> dict[str, object]:
        """The form that `clew trace --json` gives for each step."""
        return {
            "operation_seq": self.operation_seq,
            "name": self.step_name,
            "type": self.step_type,
            "outcome": self.outcome,
            "rows_updated": self.updated,
            "rows_created": self.created,
            "rows_deleted": self.deleted,
            "columns": dict(self.columns or {}),
        }
