"""Shows runs: their list, their histories and their saved snapshots, as plain SQL that all databases understand.

The statements run on whatever gives rows for them: a database that is open for writing, or a SQLite file that is only
read, without SQLAlchemy, which takes longer to import than everything that a command does with a list of runs.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

from clew.diagnostics import UserError
from clew.diagnostics.codes.runs import RUN_NOT_FOUND
from clew.events.bodies import RunContinued
from clew.events.codec import moment_of
from clew.events.envelope import RawEvent, StoredEvent
from clew.events.snapshot import RunSnapshot, RunStatus
from clew.events.values import PlanRef
from clew.runs.request import RunFilter, RunRecord, RunRequest
from clew.runs.rotation import with_earlier_artifacts

_PAGE = 2000

EVENT_FIELDS = (
    *("run_id", "run_seq", "event_id", "step_id", "logical_attempt_id", "engine_attempt_id", "event_type"),
    *("event_version", "event_data", "idempotency_key", "emitted_at", "persisted_at", "adapter_version"),
    *("engine_run_ref", "caused_by_signal_id", "parent_event_id", "previous_hash", "hash"),
)
"""The columns of an event, which have the names of the fields of `RawEvent`."""
RUN_FIELDS = (
    *("run_id", "tenant_id", "project_id", "environment_id", "plan_id", "plan_version", "plan_digest", "request_id"),
    *("period", "project_version", "requested_by", "retry_of", "parameters", "created_at", "not_before", "status"),
    *("approval_pending", "started_at", "completed_at", "last_seq", "last_hash"),
)
"""The columns of a run that its record is made of."""

_EVENTS = f"SELECT {', '.join(EVENT_FIELDS)} FROM run_events"  # noqa: S608 - our own names
_RUNS = f"SELECT {', '.join(RUN_FIELDS)} FROM runs"  # noqa: S608 - our own names


class SqlRow(Protocol):
    """A row, by the names of its columns."""

    def __getitem__(self, name: str, /) -> Any: ...  # noqa: ANN401 - whatever the column holds


class SqlSource(Protocol):
    """Gives rows for statements that change nothing. A parameter stands in a statement as `:name`."""

    def rows(self, statement: str, parameters: Mapping[str, object]) -> Sequence[SqlRow]:
        """The rows of one statement, in a transaction of its own."""
        ...

    def stored_moment(self, moment: datetime) -> object:
        """A moment as a parameter."""
        ...

    def read_clock(self) -> datetime:
        """The present moment, by the clock that dates events."""
        ...


def moment(stored: Any) -> Any:  # noqa: ANN401 - a moment, or None where there is none
    """A moment as a database holds it: as text, or as its own type in the time zone of the session."""
    if stored is None:
        return None
    return moment_of(stored) if isinstance(stored, str) else stored.astimezone(UTC)


def document(stored: Any) -> Any:  # noqa: ANN401 - whatever was stored
    """JSON as a database holds it: as text, or read by the driver."""
    return json.loads(stored) if isinstance(stored, str) else stored


def event_of(row: SqlRow) -> RawEvent:
    """An event."""
    values = {name: row[name] for name in EVENT_FIELDS}
    for name in ("emitted_at", "persisted_at"):
        values[name] = moment(values[name])
    for name in ("event_data", "engine_run_ref"):
        values[name] = document(values[name])
    return RawEvent(**values)


def record_of(row: SqlRow) -> RunRecord:
    """A run. The row may hold more columns."""
    created_at, not_before = moment(row["created_at"]), moment(row["not_before"])
    request = RunRequest(
        tenant_id=row["tenant_id"],
        project_id=row["project_id"],
        environment_id=row["environment_id"],
        plan=PlanRef(row["plan_id"], row["plan_version"], row["plan_digest"]),
        period=row["period"],
        request_id=row["request_id"],
        project_version=row["project_version"],
        requested_by=row["requested_by"],
        retry_of=row["retry_of"],
        not_before=not_before if not_before > created_at else None,
        parameters=document(row["parameters"]),
    )
    return RunRecord(
        run_id=row["run_id"],
        request=request,
        status=RunStatus(row["status"]),
        approval_pending=bool(row["approval_pending"]),
        last_seq=row["last_seq"],
        created_at=created_at,
        started_at=moment(row["started_at"]),
        completed_at=moment(row["completed_at"]),
        last_hash=row["last_hash"],
    )


class SqlHistory:
    """Reads histories, and cannot write."""

    def __init__(self, source: SqlSource) -> None:
        self._source = source

    def events(self, run_id: str, *, after: int = 0, limit: int | None = None) -> tuple[StoredEvent, ...]:
        """Events of a run in order, from the one behind `after` on."""
        return tuple(raw.read() for raw in self._raw(run_id, after, limit))

    def raw_events(self, run_id: str) -> Iterator[RawEvent]:
        """The whole history, page by page."""
        after = 0
        while page := self._raw(run_id, after, _PAGE):
            yield from page
            after = page[-1].run_seq

    def since_last_continuation(self, run_id: str) -> tuple[StoredEvent, ...]:
        """Events from the last RunContinued on, or all if there is none."""
        continued = "run_id = :run AND event_type = :continued"
        last = f"SELECT COALESCE(MAX(run_seq), 0) FROM run_events WHERE {continued}"  # noqa: S608 - our own names
        statement = f"{_EVENTS} WHERE ({continued}) OR (run_id = :run AND run_seq >= ({last})) ORDER BY run_seq"
        rows = self._source.rows(statement, {"run": run_id, "continued": RunContinued.NAME})
        read = [event_of(row).read() for row in rows]
        places = [place for place, event in enumerate(read) if isinstance(event.body, RunContinued)]
        start = places[-1] if places else 0
        earlier = [event.body for event in read[:start] if isinstance(event.body, RunContinued)]
        return with_earlier_artifacts(read[start:], earlier)

    def by_key(self, run_id: str, keys: Collection[str]) -> tuple[StoredEvent, ...]:
        """Events of a run that have one of these idempotency keys."""
        named = {f"key{number}": key for number, key in enumerate(keys)}
        if not named:
            return ()
        listed = ", ".join(f":{name}" for name in named)
        statement = f"{_EVENTS} WHERE run_id = :run AND idempotency_key IN ({listed}) ORDER BY run_seq"
        return tuple(event_of(row).read() for row in self._source.rows(statement, {"run": run_id, **named}))

    def now(self) -> datetime:
        """The present moment by the clock of the database."""
        return self._source.read_clock()

    def _raw(self, run_id: str, after: int, limit: int | None) -> tuple[RawEvent, ...]:
        statement = f"{_EVENTS} WHERE run_id = :run AND run_seq > :after ORDER BY run_seq"
        asked: dict[str, object] = {"run": run_id, "after": after}
        if limit is not None:
            statement, asked = f"{statement} LIMIT :most", asked | {"most": limit}
        return tuple(map(event_of, self._source.rows(statement, asked)))


class SqlRunList:
    """Lists runs."""

    def __init__(self, source: SqlSource) -> None:
        self._source = source

    def run(self, run_id: str) -> RunRecord:
        """One run."""
        rows = self._source.rows(f"{_RUNS} WHERE run_id = :run", {"run": run_id})
        if not rows:
            raise UserError(RUN_NOT_FOUND.anywhere(run_id=run_id))
        return record_of(rows[0])

    def runs(self, which: RunFilter, *, limit: int = 50, before: RunRecord | None = None) -> tuple[RunRecord, ...]:
        """Runs, newest first."""
        wanted: dict[str, object] = {
            "tenant_id": which.tenant_id,
            "project_id": which.project_id,
            "environment_id": which.environment_id,
            "period": which.period,
            "status": which.status.value if which.status is not None else None,
        }
        asked = {name: value for name, value in wanted.items() if value is not None}
        conditions = [f"{name} = :{name}" for name in asked]
        if which.id_prefix is not None:
            conditions.append("SUBSTR(run_id, 1, :id_length) = :id_prefix")
            asked |= {"id_prefix": which.id_prefix, "id_length": len(which.id_prefix)}
        if before is not None:
            conditions.append("(created_at < :moment OR (created_at = :moment AND run_id < :last))")
            asked |= {"moment": self._source.stored_moment(before.created_at), "last": before.run_id}
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        statement = f"{_RUNS}{where} ORDER BY created_at DESC, run_id DESC LIMIT :most"
        return tuple(map(record_of, self._source.rows(statement, asked | {"most": limit})))


class SqlSavedSnapshots:
    """Reads the saved snapshot of a run."""

    def __init__(self, source: SqlSource) -> None:
        self._source = source

    def load(self, run_id: str) -> RunSnapshot | None:
        """The saved snapshot."""
        rows = self._source.rows("SELECT document FROM snapshots WHERE run_id = :run", {"run": run_id})
        return RunSnapshot.from_json(document(rows[0]["document"])) if rows else None
