"""One question for whatever has a name or a value: projects, datasets, columns, periods, runs, trace ids and rows.

Rows are looked for in the results that count, as they are after the last step, in columns that the principal sees as
they are, and for exactly the value. There is little time; which results were not looked at is part of the answer.
"""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Literal

from clew.api.opened_environment import OpenedEnvironment
from clew.auth.roles import Permission
from clew.budgets import Allowance, QuestionLimits, check, under
from clew.deferred import dataclass
from clew.diagnostics import ClewError, UserError
from clew.diagnostics.codes.questions import QUESTION_TOO_LONG
from clew.diagnostics.codes.server import INVALID_REQUEST
from clew.explain.row_conditions import equals
from clew.lang.text_form import text_of
from clew.lang.typed import ColumnValue, Value
from clew.lang.types import Kind, Type
from clew.privacy.seen_trace import SeenTrace
from clew.runs.request import RunFilter, RunRecord
from clew.storage.row_identity import RowIds
from clew.trace.results import FoundRow

HitKind = Literal["project", "dataset", "column", "period", "run", "trace id", "row"]

MOST_TEXT = 200
_MOST_RUNS = 10
_MOST_OF_A_KIND = 10
_ROWS_OF_A_RUN = 5
_MOST_COLUMNS = 80
_MOST_RECENT = 500
"""Runs whose rows a row id is compared with, which needs no reading."""
_SECONDS = 12.0
_BEGINNING = re.compile(r"[0-9a-f]{4}[0-9a-f-]{0,32}")
_TRACE_ID_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Hit:
    """Something that was found."""

    kind: HitKind
    name: str
    detail: str = ""
    project: str | None = None
    period: str | None = None
    run_id: str | None = None
    row_id: str | None = None
    columns: tuple[str, ...] = ()
    """The columns of a row that have the value; or the column."""
    dataset: str | None = None

    def to_json(self) -> dict[str, object]:
        """The form of `GET /api/v1/search`."""
        return {
            "kind": self.kind,
            "name": self.name,
            "detail": self.detail,
            "project": self.project,
            "period": self.period,
            "run_id": self.run_id,
            "row_id": self.row_id,
            "columns": list(self.columns),
            "dataset": self.dataset,
        }


@dataclass(frozen=True, slots=True)
class Found:
    """What was found, and where it was looked for."""

    text: str
    hits: tuple[Hit, ...]
    looked_at: int
    """Results whose rows were searched to the end, or until enough of them were found."""
    not_looked_at: int
    """Results that count, and whose rows were not searched."""
    notes: tuple[str, ...] = ()
    """Why there may be more than what was found."""

    def to_json(self) -> dict[str, object]:
        """The form of `GET /api/v1/search`."""
        return {
            "text": self.text,
            "hits": [hit.to_json() for hit in self.hits],
            "looked_at": self.looked_at,
            "not_looked_at": self.not_looked_at,
            "notes": list(self.notes),
        }


TraceOf = Callable[[RunRecord], SeenTrace]
"""Opens the trace of a run as the principal may see it, with every answer on record."""


def search(at: OpenedEnvironment, text: str, trace_of: TraceOf, limits: QuestionLimits) -> Found:
    """Look for a text. Raises UserError if it is empty or too long."""
    wanted = text.strip()
    if not wanted or len(wanted) > MOST_TEXT:
        problem = "the text to search for is empty" if not wanted else f"the text has more than {MOST_TEXT} characters"
        raise UserError(INVALID_REQUEST.anywhere(problem=problem))
    asked = _Search(at, wanted, trace_of, limits)
    hits = [*asked.names(), *asked.runs()]
    if Permission.READ_ROWS not in at.principal.role.permissions:
        return Found(wanted, tuple(hits), 0, 0, (f"the role {at.principal.role} may not read rows",))
    hits += [*asked.trace_ids(), *asked.rows_by_id(), *asked.rows()]
    return Found(wanted, tuple(hits), asked.looked_at, asked.not_looked_at, tuple(asked.notes))


@dataclass(eq=False)
class _Search:
    at: OpenedEnvironment
    text: str
    trace_of: TraceOf
    limits: QuestionLimits
    looked_at: int = field(init=False, default=0)
    not_looked_at: int = field(init=False, default=0)
    notes: list[str] = field(init=False, default_factory=list)

    # Names

    def names(self) -> Iterator[Hit]:
        """Projects, datasets, columns and periods whose names contain the text."""
        if not self.at.is_own_tenant:
            return
        workspace = self.at.files.loaded.workspace
        projects = [each for each in workspace.projects if self._is_in(each.id, each.name)]
        yield from (Hit("project", each.id, each.name, project=each.id) for each in projects[:_MOST_OF_A_KIND])
        datasets = [each for each in workspace.datasets if self._is_in(each.id, each.name)]
        yield from (Hit("dataset", each.id, each.name, dataset=each.id) for each in datasets[:_MOST_OF_A_KIND])
        columns = [
            Hit("column", column.name, f"of the dataset {each.id}", dataset=each.id, columns=(column.name,))
            for each in workspace.datasets
            for column in each.main_table.columns
            if self._is_in(column.name)
        ]
        columns += [
            Hit("column", name, f"set by the project {project}", project=project, columns=(name,))
            for project, name in self._set_columns()
            if self._is_in(name)
        ]
        yield from columns[:_MOST_OF_A_KIND]
        found = workspace.periods.period(self.text)
        if found is not None:
            yield Hit("period", found.identifier, found.level, period=found.identifier)

    def _set_columns(self) -> Iterator[tuple[str, str]]:
        """The columns that projects add to those of their input."""
        files = self.at.files
        for project in files.loaded.workspace.projects:
            try:
                plan = files.plan(project.id)
            except UserError:
                continue
            loaded = {column.name for column in plan.input.columns}
            last = plan.steps[-1].seq if plan.steps else 0
            for column in plan.columns_after(last):
                if column.name not in loaded:
                    yield project.id, column.name

    def _is_in(self, *names: str) -> bool:
        return any(self.text.casefold() in name.casefold() for name in names)

    # Ids

    def runs(self) -> Iterator[Hit]:
        """Runs whose ids begin with the text."""
        beginning = self.text.lower()
        if _BEGINNING.fullmatch(beginning):
            mine = RunFilter(environment_id=self.at.environment.name, id_prefix=beginning)
            yield from (_of_run(run) for run in self.at.runs.runs(mine, _MOST_OF_A_KIND))

    def trace_ids(self) -> Iterator[Hit]:
        """The number, if it may be a trace id. Whether there is such a trace is for the page of its lineage to find."""
        is_number = self.text.isdecimal() and self.text.isascii() and len(self.text) >= _TRACE_ID_DIGITS
        if is_number and self.at.is_own_tenant and int(self.text) < 2**64:
            yield Hit("trace id", self.text, "follow it, if there is such a trace")

    def rows_by_id(self) -> Iterator[Hit]:
        """The row that has the text as its id: the id itself tells whether it is one of a run."""
        row_id = self.text.lower()
        if not RowIds.is_row_id(row_id):
            return
        mine = RunFilter(environment_id=self.at.environment.name)
        for run in self.at.runs.runs(mine, _MOST_RECENT):
            if RowIds(run.run_id).ordinal(row_id) is not None:
                yield replace(_of_run(run), kind="row", name=row_id, row_id=row_id)
                return
        self.notes.append(f"the row id was compared with those of the newest {_MOST_RECENT} runs")

    # Values

    def rows(self) -> Iterator[Hit]:
        """Rows of the results that count, in which a column has exactly the value."""
        tenant = self.at.principal.tenant_id or self.at.environment.settings.tenant
        standing = self.at.state.standing.runs(tenant, "draft").values()
        counting = [each.counts for each in standing if each.counts is not None]
        counting.sort(key=lambda run: (run.completed_at or run.created_at, run.run_id), reverse=True)
        ends_at = time.monotonic() + _SECONDS
        for number, run in enumerate(counting):
            check()
            left = ends_at - time.monotonic()
            if number >= _MOST_RUNS or left <= 0:
                self.not_looked_at += len(counting) - number
                break
            try:
                with under(Allowance(replace(self.limits, deadline_s=min(left, self.limits.deadline_s)))):
                    hits = list(self._rows_of(run))
            except ClewError as error:
                self.not_looked_at += 1
                told = "there was not enough time to search it"
                if not isinstance(error, UserError) or error.diagnostics[0].code != QUESTION_TOO_LONG.name:
                    told = error.diagnostics[0].message if isinstance(error, UserError) else str(error)
                self.notes.append(f"{run.request.project_id} {run.request.period}: {told}")
                continue
            self.looked_at += 1
            yield from hits

    def _rows_of(self, run: RunRecord) -> Iterator[Hit]:
        trace = self.trace_of(run)
        last = trace.run.checked_step(None)
        wanted = self._wanted(trace, last)
        condition = self._condition(trace, last, wanted)
        if condition is None:
            return
        found = trace.search(condition, last, _ROWS_OF_A_RUN)
        for row in found.rows:
            yield self._hit(trace, run, row, wanted)
        if found.has_more:
            self.notes.append(f"{run.request.project_id} {run.request.period} has more such rows")

    def _hit(self, trace: SeenTrace, run: RunRecord, row: FoundRow, wanted: Mapping[str, Value]) -> Hit:
        columns = tuple(name for name, value in wanted.items() if row.state.get(name) == value)
        return replace(
            _of_run(run),
            kind="row",
            name=trace.name(row.row_id, row.state) or row.row_id,
            row_id=row.row_id,
            columns=columns or tuple(self._key(trace)),
        )

    def _wanted(self, trace: SeenTrace, last: int) -> dict[str, Value]:
        """The text as a value of every column that it may be one of."""
        found = dict[str, Value]()
        for name, type_ in trace.run.columns(last):
            if not name.startswith("_") and trace.columns.is_clear(name) and len(found) < _MOST_COLUMNS:
                value = _as_value(self.text, type_)
                if value is not None:
                    found[name] = value
        return found

    def _condition(self, trace: SeenTrace, last: int, wanted: Mapping[str, Value]) -> str | None:
        """Whether a column has the value, or the columns of the natural key have its parts."""
        types = dict(trace.run.columns(last))
        table = trace.plan.input.table

        def has(name: str, value: Value) -> str:
            return text_of(equals(ColumnValue(table, name, types[name]), value))

        found = [has(name, value) for name, value in wanted.items()]
        parts = self._key(trace)
        if parts and all(name in types and trace.columns.is_clear(name) for name in parts):
            values = {name: _as_value(part, types[name]) for name, part in parts.items()}
            if None not in values.values():
                found.append("(" + " AND ".join(has(name, value) for name, value in values.items()) + ")")
        return " OR ".join(found) or None

    def _key(self, trace: SeenTrace) -> dict[str, str]:
        """The parts of the text by the columns of a natural key of several columns, as rows are named by it."""
        parts = self.text.split("/")
        names: Sequence[str] = next((key for key in trace.plan.input.names if len(key) == len(parts) > 1), ())
        return dict(zip(names, parts, strict=True)) if names else {}


def _of_run(run: RunRecord) -> Hit:
    request = run.request
    detail = f"{request.project_id} {request.period}, {run.status.value.lower()}"
    return Hit("run", run.run_id, detail, project=request.project_id, period=request.period, run_id=run.run_id)


def _as_value(text: str, type_: Type) -> Value | None:
    """The text as a value of a type; None if it is none."""
    try:
        match type_.kind:
            case Kind.STRING:
                return text
            case Kind.INTEGER:
                number = int(text.replace(",", ""))
                return number if abs(number) < 2**63 else None
            case Kind.DECIMAL:
                return _as_decimal(text.replace(",", ""), type_)
            case Kind.DATE:
                return date.fromisoformat(text)
            case _:
                return None
    except (ValueError, InvalidOperation):
        return None


def _as_decimal(text: str, type_: Type) -> Decimal | None:
    number = Decimal(text)
    if not number.is_finite() or abs(number) >= Decimal(10) ** (type_.precision - type_.scale):
        return None
    rounded = number.quantize(Decimal(1).scaleb(-type_.scale)) if number.adjusted() < 30 else number
    return rounded if rounded == number else None
