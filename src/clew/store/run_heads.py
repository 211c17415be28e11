"""What the row of a run says beside its request and its state: its place in the queue, and what has been seen of it."""

from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime

from clew.deferred import dataclass
from clew.diagnostics import UserError
from clew.diagnostics.codes.runs import RUN_NOT_FOUND
from clew.store.reading import SqlRow, SqlSource, moment


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHeadRow:
    """Columns of a run that follow from its events, as they are stored."""

    last_seq: int
    last_hash: str | None
    last_signal_seq: int
    seen_signal_seq: int
    projected_seq: int
    wants_worker: int
    not_before: datetime
    slot: str
    slot_held: str | None


_FIELDS = tuple(each.name for each in fields(RunHeadRow))
_HEAD = f"SELECT {', '.join(_FIELDS)} FROM runs WHERE run_id = :run"  # noqa: S608 - our own names
_SAVED = "SELECT last_event_seq FROM snapshots WHERE run_id = :run"
_SAVED_OF_NO_RUN = "SELECT run_id FROM snapshots WHERE run_id NOT IN (SELECT run_id FROM runs) ORDER BY run_id"
_ATTEMPTS = "SELECT step_id, logical_attempt_id, engine_attempt_id FROM step_attempts WHERE run_id = :run"


def head_row(row: SqlRow) -> RunHeadRow:
    """The head of a run. The row may hold more columns."""
    values = {name: row[name] for name in _FIELDS}
    return RunHeadRow(**values | {"not_before": moment(values["not_before"])})


class SqlRunHeads:
    """Reads rows that follow from the events of runs, for those who compare them."""

    def __init__(self, source: SqlSource) -> None:
        self._source = source

    def head(self, run_id: str) -> RunHeadRow:
        """The head of a run."""
        rows = self._source.rows(_HEAD, {"run": run_id})
        if not rows:
            raise UserError(RUN_NOT_FOUND.anywhere(run_id=run_id))
        return head_row(rows[0])

    def saved_seq(self, run_id: str) -> int | None:
        """The last event that the saved state of a run knows, by the column beside it."""
        rows = self._source.rows(_SAVED, {"run": run_id})
        return int(rows[0]["last_event_seq"]) if rows else None

    def saved_of_no_run(self) -> tuple[str, ...]:
        """Runs of which there is a saved state, and nothing else."""
        return tuple(str(row["run_id"]) for row in self._source.rows(_SAVED_OF_NO_RUN, {}))

    def attempts(self, run_id: str) -> Mapping[tuple[str, int], int]:
        """How often the platform has tried each attempt of a step, as far as it is more than once."""
        rows = self._source.rows(_ATTEMPTS, {"run": run_id})
        return {(row["step_id"], row["logical_attempt_id"]): row["engine_attempt_id"] for row in rows}
