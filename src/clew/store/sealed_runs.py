"""What the ledger says about one run, for those who read its rows: plain SQL, without opening the store for writing."""

from collections.abc import Iterator

from clew.events.chain import SealKey, verify_chain
from clew.events.envelope import RawEvent
from clew.events.ledger import HEADS, EntryKind, LedgerEntry, head_problem, problem_with
from clew.runs.request import RunRecord
from clew.store.ledger_chain import ENTRY_FIELDS, digest_of
from clew.store.owner import Owner
from clew.store.reading import SqlHistory, SqlSource, document, moment

REQUEST_FIELDS = (
    *("run_id", "tenant_id", "project_id", "environment_id", "plan_id", "plan_version", "plan_digest", "request_id"),
    *("request_key", "period", "project_version", "requested_by", "retry_of", "parameters", "created_at"),
)
"""What a run was asked for. The other columns of runs follow from their events."""

_MINE = "tenant_id = :tenant AND environment_id = :environment"
_ENTRIES = f"SELECT {', '.join(ENTRY_FIELDS)} FROM ledger WHERE {_MINE}"  # noqa: S608 - our own names
_COUNTED = f"SELECT COUNT(*) AS entries, COALESCE(MAX(seq), 0) AS last FROM ledger WHERE {_MINE}"  # noqa: S608
_REQUEST = f"SELECT {', '.join(REQUEST_FIELDS)} FROM runs WHERE run_id = :run"  # noqa: S608 - our own names


class SqlSealedRuns:
    """Compares runs with the seals of their events and with the ledger."""

    def __init__(self, source: SqlSource, owner: Owner) -> None:
        self._source = source
        self._mine: dict[str, object] = {"tenant": owner.tenant_id, "environment": owner.environment_id}

    def has_begun(self) -> bool:
        """Whether there is a ledger."""
        return bool(self._source.rows(f"{_ENTRIES} LIMIT 1", self._mine))

    def ledger_problem(self, seq: int | None, own_hash: str) -> str | None:
        """Whether entries are missing from the ledger, in the middle or, by its last checkpoint, at the end.

        What entries say by themselves is checked where they are used.
        """
        [counted] = self._source.rows(_COUNTED, self._mine)
        if counted["entries"] != counted["last"]:
            return "entries of the ledger are missing"
        if seq is None:
            return None
        found = self._source.rows(f"{_ENTRIES} AND seq = :seq", {**self._mine, "seq": seq})
        if not found:
            return "the ledger was shortened"
        return None if found[0]["hash"] == own_hash else f"entry {seq} of the ledger is not the one that was there"

    def problem(self, record: RunRecord, events: tuple[RawEvent, ...], key: SealKey) -> str | None:
        """What was changed about a run: its request, or its events; None if nothing was."""
        entries = tuple(self._about(record.run_id))
        for entry in entries:
            wrong = problem_with(entry, key)
            if wrong is not None:
                return f"entry {entry.seq} of the ledger: {wrong}"
        named = [entry for entry in entries if entry.kind in {EntryKind.RUN_CREATED, EntryKind.RUN_ADOPTED}]
        if not named:
            return "the ledger does not know it"
        if self._request(record.run_id) != named[-1].content["request"]:
            return "what it was asked for was changed"
        adopted = [entry for entry in named if entry.kind == EntryKind.RUN_ADOPTED]
        report = verify_chain(
            events,
            key=key,
            last_seq=record.last_seq,
            last_hash=record.last_hash,
            adopted=int(str(adopted[-1].content["last_seq"])) if adopted else 0,
        )
        if report.breaks:
            return f"event {report.breaks[0].run_seq}: {report.breaks[0].problem}"
        missing = (head_problem(entry, events) for entry in entries if entry.kind in HEADS)
        return next((each for each in missing if each is not None), None)

    def events(self, run_id: str) -> tuple[RawEvent, ...]:
        """The history of a run as it is stored."""
        return tuple(SqlHistory(self._source).raw_events(run_id))

    def _about(self, run_id: str) -> Iterator[LedgerEntry]:
        statement = f"{_ENTRIES} AND subject_id = :run ORDER BY seq"
        for row in self._source.rows(statement, {**self._mine, "run": run_id}):
            values = {name: row[name] for name in ENTRY_FIELDS}
            read = {"content": document(values["content"]), "recorded_at": moment(values["recorded_at"])}
            yield LedgerEntry(**values | read)

    def _request(self, run_id: str) -> str:
        [row] = self._source.rows(_REQUEST, {"run": run_id})
        values = {name: row[name] for name in REQUEST_FIELDS}
        return digest_of(
            values | {"parameters": document(values["parameters"]), "created_at": moment(values["created_at"])}
        )
