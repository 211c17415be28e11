"""Shows the captures and postlude jobs of a run, as plain SQL that all databases understand."""

from clew.captures.freezing import Frozen
from clew.captures.queue import CaptureOutcome, CaptureRecord, CaptureStatus
from clew.captures.requests import CaptureRequest
from clew.events.codec import decode
from clew.store.reading import SqlRow, SqlSource, document, moment

CAPTURE_FIELDS = (
    *("capture_id", "kind", "slot", "tenant_id", "run_id", "request_id", "breakpoint", "seq", "status", "request"),
    *("ticket", "result", "attempts", "created_at", "started_at", "completed_at", "expires_at"),
)
"""The columns that a record is made of."""

_OF_RUN = (
    f"SELECT {', '.join(CAPTURE_FIELDS)} FROM captures"  # noqa: S608 - our own names
    " WHERE environment_id = :environment AND run_id = :run ORDER BY seq, kind, slot"
)


def capture_of(row: SqlRow, *, is_past: bool) -> CaptureRecord:
    """A record; `is_past` says whether its time is over."""
    request, ticket, result = document(row["request"]), document(row["ticket"]), document(row["result"])
    return CaptureRecord(
        capture_id=row["capture_id"],
        kind=row["kind"],
        slot=row["slot"],
        tenant_id=row["tenant_id"],
        run_id=row["run_id"],
        request_id=row["request_id"],
        breakpoint=row["breakpoint"],
        seq=row["seq"],
        status=CaptureStatus(row["status"]),
        request=CaptureRequest.from_json(request) if request else None,
        frozen=decode(Frozen, ticket) if ticket else None,
        outcome=decode(CaptureOutcome, result) if result else CaptureOutcome(),
        attempts=row["attempts"],
        created_at=moment(row["created_at"]),
        started_at=moment(row["started_at"]),
        completed_at=moment(row["completed_at"]),
        expires_at=moment(row["expires_at"]),
        is_past=is_past,
    )


class SqlCapturesOfRuns:
    """Reads the records of one environment."""

    def __init__(self, source: SqlSource, environment_id: str) -> None:
        self._source = source
        self._environment = environment_id

    def of_run(self, run_id: str) -> tuple[CaptureRecord, ...]:
        """The records of a run, in the order of the plan."""
        rows = self._source.rows(_OF_RUN, {"environment": self._environment, "run": run_id})
        now = self._source.read_clock() if any(row["expires_at"] is not None for row in rows) else None
        return tuple(
            capture_of(
                row, is_past=now is not None and row["expires_at"] is not None and moment(row["expires_at"]) <= now
            )
            for row in rows
        )
