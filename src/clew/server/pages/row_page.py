"""A row: its history, and its state at a step.

Also the slider over the steps of a run.
"""

from collections.abc import Callable, Mapping

from clew.api.source_states import SourceState
from clew.deferred import dataclass
from clew.diagnostics import Diagnostic
from clew.events.values import LOAD_STEP
from clew.explain.outline import source_text
from clew.privacy.seen_trace import SeenTrace
from clew.server.pages import addresses, words
from clew.server.pages.error_page import TextPart, with_row_links
from clew.server.pages.words import ValueCell
from clew.trace.records import TraceEntry
from clew.trace.results import RowHistory


@dataclass(frozen=True, slots=True)
class Stop:
    """A step on a slider; 0 is the load step."""

    seq: int
    label: str
    name: str
    did: str
    """The type of the operation."""


@dataclass(frozen=True, slots=True)
class Stepper:
    """All steps, and the selected one."""

    stops: tuple[Stop, ...]
    at: int

    @property
    def index(self) -> int:
        """The position of the selected step."""
        return next((index for index, stop in enumerate(self.stops) if stop.seq == self.at), 0)

    @property
    def present(self) -> Stop:
        """The selected step."""
        return self.stops[self.index]


def stepper(trace: SeenTrace, at: int) -> Stepper:
    """A slider over the steps of a run."""
    loaded = Stop(0, LOAD_STEP, f"Load {trace.plan.input.name}", LOAD_STEP)
    return Stepper((loaded, *(Stop(step.seq, str(step.seq), step.name, step.type) for step in trace.run.reached)), at)


@dataclass(frozen=True, slots=True)
class Change:
    """A value before and after a step."""

    column: str
    old: ValueCell | None
    """None for a row that has just been created."""
    new: ValueCell
    address: str


@dataclass(frozen=True, slots=True)
class ShownEntry:
    """What a step did to the row."""

    seq: int
    label: str
    step: str
    change: str
    source: str | None
    source_since: str | None
    """What has become of the file since it was read; None where that is not known."""
    kept: tuple[str, str] | None
    """The row that stayed when this one was deleted, and its address."""
    changes: tuple[Change, ...]
    """The initial values, if a step created the row. Empty if it was loaded, since all values are new."""
    address: str
    """The row at this step."""
    is_future: bool
    """Whether it comes after the selected step."""


@dataclass(frozen=True, slots=True)
class ShownValue:
    """A column of the row at the selected step."""

    name: str
    cell: ValueCell
    old: ValueCell | None
    """The old value, if this step changed it."""
    set_by: str
    """The step that set it last."""
    address: str


@dataclass(frozen=True, slots=True)
class RowPage:
    """The history of a row and its state at a step."""

    run_id: str
    run_address: str
    title: str
    period: str
    row_id: str
    label: str
    trace_id: int | None
    """The number that identifies the row across runs and projects."""
    address: str
    rows_address: str
    stepper: Stepper
    entries: tuple[ShownEntry, ...]
    values: tuple[ShownValue, ...]
    """Columns with a value, or that this step set to NULL; empty if the row does not exist at the step."""
    nulls: tuple[ShownValue, ...]
    """The other columns."""
    is_deleted: bool
    problem: Diagnostic | None
    problem_parts: tuple[TextPart, ...]
    """Its message, in which ids of rows lead to them."""


StateOf = Callable[[str], SourceState | None]
"""What has become of a file that the run has read."""

_SINCE: Mapping[SourceState, str] = {
    "same": "the file has not changed since it was read",
    "changed": "the file has changed since it was read",
    "gone": "the file is no longer there",
}


def row_page(trace: SeenTrace, history: RowHistory, at: int, state_of: StateOf) -> RowPage:
    """A row with its history, as it was after a step."""
    entries = history.entries
    label = trace.name(history.row_id, entries[-1].full_state) if entries else ""
    state = trace.state(history.row_id, at)
    values = _values(trace, history, at)
    problem = history.diagnostic or state.diagnostic
    return RowPage(
        run_id=trace.run_id,
        run_address=addresses.run(trace.run_id),
        title=words.isolated(trace.plan.title),
        period=trace.period,
        row_id=history.row_id,
        label=label or words.row_name(history.row_id),
        trace_id=history.trace_id,
        address=addresses.row(trace.run_id, history.row_id, at=at),
        rows_address=addresses.rows(trace.run_id, at=at),
        stepper=stepper(trace, at),
        entries=tuple(_entry(trace, history.row_id, entry, at, state_of) for entry in entries),
        values=tuple(value for value in values if value.cell.kind != "null" or value.old),
        nulls=tuple(value for value in values if value.cell.kind == "null" and not value.old),
        is_deleted=bool(state.state and state.state.get("_deleted")),
        problem=problem,
        problem_parts=() if problem is None else with_row_links(problem.message, trace.run_id),
    )


def _entry(trace: SeenTrace, row_id: str, entry: TraceEntry, at: int, state_of: StateOf) -> ShownEntry:
    seq = entry.operation_seq
    is_created = entry.change_type == "created"
    state = state_of(entry.source.file) if entry.source and entry.source.file else None
    changes = tuple(
        Change(
            column,
            None if is_created else words.cell(diff.old),
            words.cell(diff.new),
            addresses.explanation(trace.run_id, row_id, column, at=seq),
        )
        for column, diff in entry.diff.items()
        if entry.change_type == "updated" or (is_created and seq and diff.new not in {None, "", False})
    )
    return ShownEntry(
        seq=seq,
        label=str(seq) if seq else LOAD_STEP,
        step=entry.step_name if seq else trace.plan.input.name,
        change="loaded" if seq == 0 else entry.change_type,
        source=source_text(entry.source) if entry.source else None,
        source_since=_SINCE[state] if state is not None else None,
        kept=None if entry.kept is None else (entry.kept, addresses.row(trace.run_id, entry.kept, at=seq)),
        changes=changes,
        address=addresses.row(trace.run_id, row_id, at=seq),
        is_future=seq > at,
    )


def _values(trace: SeenTrace, history: RowHistory, at: int) -> tuple[ShownValue, ...]:
    entries = [entry for entry in history.entries if entry.operation_seq <= at]
    if not entries:
        return ()
    state, last = entries[-1].full_state, entries[-1]
    found = list[ShownValue]()
    for name, _ in trace.run.columns(at):
        setter = next((entry for entry in reversed(entries) if name in entry.diff), None)
        is_now = setter is last and last.operation_seq == at and last.change_type == "updated"
        found.append(
            ShownValue(
                name=name,
                cell=words.cell(state.get(name)),
                old=words.cell(last.diff[name].old) if is_now else None,
                set_by=_setter(setter),
                address=addresses.explanation(trace.run_id, history.row_id, name, at=at),
            )
        )
    return tuple(found)


def _setter(entry: TraceEntry | None) -> str:
    if entry is None:
        return "never set"
    return "loaded" if entry.operation_seq == 0 else f"{entry.operation_seq} {entry.step_name}"
