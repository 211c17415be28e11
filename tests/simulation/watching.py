"""What must hold, looked at after every commit and every change of a file.

It reads the tables with plain SQL and keeps its own books: who holds which run, which steps are done, what counts.
"""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from clew.api.derived_rows import head_problems
from clew.events import RawEvent
from clew.events.chain import verify_chain
from clew.events.codec import moment_of
from clew.events.envelope import StoredEvent
from clew.events.reducer import advance, incremental_project
from clew.events.snapshot import RunSnapshot
from clew.events.values import LOAD_STEP
from clew.runs.stores import OutboxEntry
from clew.store.reading import record_of
from clew.store.run_heads import head_row
from tests.simulation.kernel import Kernel, Process, Violation
from tests.simulation.memory_storage import MemoryFiles
from tests.simulation.model import NotInTheModel, RunModel
from tests.store.seals import KEY

BUSES = ("follower",)

_OF_THE_DRIVER = {
    "RunStarted",
    "RunContinued",
    "RunCompleted",
    "RunFailed",
    "RunPaused",
    "RunResumed",
    "RunCancelled",
    "RunApproved",
    "RunRetried",
    "StepStarted",
    "StepCompleted",
    "StepFailed",
    "StepSkipped",
}
"""Events that only the holder of a lease may write."""
_ENDED = {"COMPLETED", "FAILED", "CANCELLED"}
_AFTER = {
    "RunStarted": "RUNNING",
    "RunPaused": "PAUSED",
    "RunResumed": "RUNNING",
    "RunCompleted": "COMPLETED",
    "RunFailed": "FAILED",
    "RunCancelled": "CANCELLED",
    "RunApproved": "APPROVED",
}


@dataclass
class Known:
    """What the watch knows about a run."""

    run_id: str
    events: list[StoredEvent] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    ids: set[str] = field(default_factory=set)
    done: dict[str, str] = field(default_factory=dict)
    """Steps that are committed, and by which event."""
    status: str = "PENDING"
    token: int = 0
    holder: Process | None = None
    """Who has taken the run last; None once it was given back."""
    effects: set[tuple[str, str, str]] = field(default_factory=set)
    saved_seq: int = 0
    last_seq: int = 0
    """The last event, as the head of the run has it."""
    is_deleted: bool = False
    model: RunModel = field(default_factory=RunModel)
    read: RunSnapshot | None = None
    """The saved snapshot that was last compared with events."""


class Watch:
    """Looks at everything, and raises `Violation`."""

    def __init__(self, kernel: Kernel, path: Path, files: MemoryFiles) -> None:
        self._kernel = kernel
        self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._database.row_factory = sqlite3.Row
        self.files = files
        self.runs: dict[str, Known] = {}
        self.received: dict[str, set[str]] = {bus: set() for bus in BUSES}
        """By bus, the ids of events that it has accepted."""
        self.committed: dict[str, tuple[str, bytes]] = {}
        """Files that count, with the run that names them and what is in them."""
        self.versions: dict[tuple[str, int], list[str]] = {}
        self.violation: Violation | None = None
        """The first one. A task of a process cannot swallow it."""
        self._waiting_out: dict[int, tuple[str, str]] = {}
        self._dead: set[int] = set()
        self._places: dict[str, tuple[str, int]] = {}
        """By the id of an event, its run and its place there."""
        self.captures: dict[str, tuple[str, int, Process | None]] = {}
        self.checks = 0
        self._data_version = -1

    def close(self) -> None:
        self._database.close()

    def _rows(self, statement: str, *values: object) -> list[sqlite3.Row]:
        return self._database.execute(statement, values).fetchall()

    def fail(self, invariant: str, detail: str) -> None:
        """Remember what was violated, and stop the simulation."""
        found = Violation(invariant, detail)
        self._kernel.say(f"VIOLATION {found}")
        if self.violation is None:
            self.violation = found

    def _moves(self, known: Known, move: Callable[[RunModel], None]) -> None:
        """What happened must be something that the model of a run can do."""
        try:
            move(known.model)
        except NotInTheModel as error:
            self.fail("what happens is in the model", f"{error}, in run {known.run_id}")

    def arrived(self, bus: str, entry: OutboxEntry) -> None:
        """A bus has got an event."""
        known, number = self.runs[entry.run.run_id], entry.event.run_seq
        self.received[bus].add(entry.event.event_id)
        if not known.is_deleted:
            self._moves(known, lambda model: model.deliver(number))

    # After every commit

    def committed_by(self, process: Process | None, what: str) -> None:
        """A transaction has been committed."""
        del what
        [[version]] = self._rows("PRAGMA data_version")
        if version == self._data_version:
            return
        self._data_version = version
        self.checks += 1
        self._look_at_leases(process)
        self._look_at_events(process)
        self._look_at_snapshots()
        self._look_at_outbox()
        self._look_at_versions(process)
        self._look_at_captures(process)

    def _look_at_leases(self, process: Process | None) -> None:
        rows = self._rows("SELECT run_id, token, lease_owner, status, slot, last_seq FROM runs")
        for row in rows:
            known = self.runs.setdefault(row["run_id"], Known(row["run_id"]))
            known.last_seq = row["last_seq"]
            if row["token"] < known.token:
                self.fail("tokens grow", f"run {known.run_id} went from {known.token} to {row['token']}")
            if row["token"] != known.token:
                known.token = token = row["token"]
                known.holder = process if row["lease_owner"] is not None else None
                who = process.name if process is not None else "nobody"
                if known.holder is not None:
                    self._moves(known, partial(RunModel.claim, who=who, token=token))
                else:
                    self._moves(known, partial(RunModel.release, who=who, token=token))
        there = {row["run_id"] for row in rows}
        for known in self.runs.values():
            if known.run_id not in there and not known.is_deleted:
                known.is_deleted = True
                if known.status not in _ENDED:
                    self.fail("nothing readable is deleted", f"run {known.run_id} was deleted while {known.status}")
        under_way: dict[str, str] = {}
        for row in rows:
            if row["status"] in {"RUNNING", "PAUSED"} and row["slot"] in under_way:
                other = under_way[row["slot"]]
                self.fail("one run for each period", f"{other} and {row['run_id']} run at the same time")
            if row["status"] in {"RUNNING", "PAUSED"}:
                under_way[row["slot"]] = row["run_id"]

    def _look_at_events(self, process: Process | None) -> None:
        longer = [known for known in self.runs.values() if known.last_seq != len(known.events) and not known.is_deleted]
        statement = "SELECT * FROM run_events WHERE run_id = ? AND run_seq > ? ORDER BY run_seq"
        found = [(known, row) for known in longer for row in self._rows(statement, known.run_id, len(known.events))]
        for known, row in found:
            event = raw_of(row).read()
            self._kernel.say(f"event {event.run_seq} {event.event_type} {event.step_id} of {known.run_id}")
            self._look_at_event(known, event, row["idempotency_key"], process)
            known.events.append(event)
            for bus in BUSES:
                if not self._rows(
                    "SELECT 1 FROM outbox WHERE run_id = ? AND run_seq = ? AND sink = ?",
                    known.run_id,
                    event.run_seq,
                    bus,
                ):
                    self.fail("every event goes to every bus", f"event {event.run_seq} of {known.run_id}, {bus}")
        for known in longer:
            if known.last_seq != len(known.events):
                self.fail("events without gaps", f"{known.run_id} ends with {known.last_seq}, not {len(known.events)}")

    def _look_at_event(self, known: Known, event: StoredEvent, key: str, process: Process | None) -> None:
        place = f"event {event.run_seq} {event.event_type} {event.step_id} of {known.run_id}"
        if event.run_seq != len(known.events) + 1:
            self.fail("events without gaps", f"{place}; there were {len(known.events)}")
        if key in known.keys or event.event_id in known.ids:
            self.fail("each event once", place)
        known.keys.add(key)
        known.ids.add(event.event_id)
        if event.event_type in _OF_THE_DRIVER and process is not None and known.holder is not process:
            holder = known.holder.name if known.holder is not None else "nobody"
            self.fail("only the holder of the lease writes", f"{place} by {process.name}; {holder} has the run")
        if known.status in _ENDED and event.event_type in _OF_THE_DRIVER - {"RunResumed", "RunRetried", "StepSkipped"}:
            self.fail("nothing happens after the end", f"{place}; the run was {known.status}")
        if event.event_type in {"StepCompleted", "StepSkipped"}:
            if event.step_id in known.done:
                self.fail("no step is committed twice", f"{place}; {known.done[event.step_id]} before")
            known.done[event.step_id] = event.event_type
        if event.caused_by_signal_id is not None:
            effect = (event.caused_by_signal_id, event.event_type, event.step_id)
            if effect in known.effects:
                self.fail("a signal takes effect once", place)
            known.effects.add(effect)
        known.status = _AFTER.get(event.event_type, known.status)
        written_under = [self._commit_file(known, description, place) for description in self._descriptions(event)]
        self._places[event.event_id] = (known.run_id, event.run_seq)
        self._moves(known, lambda model: model.store(event.run_seq))
        if event.event_type in {"StepCompleted", "StepSkipped"} and process is not None:
            seq = 0 if event.step_id == LOAD_STEP else int(event.step_id)
            token = next((each for each in written_under if each is not None), None)
            if event.event_type == "StepSkipped":
                self._moves(known, lambda model: model.skip(process.name, seq))
            else:
                self._moves(known, lambda model: model.commit(process.name, seq, token))

    def _descriptions(self, event: StoredEvent) -> Iterator[str]:
        artifacts: Sequence[Any] = getattr(event.body, "artifacts", ()) if event.event_type == "StepCompleted" else ()
        for artifact in artifacts:
            if artifact.kind == "trace-part":
                yield artifact.uri.removeprefix("storage:")

    def _commit_file(self, known: Known, key: str, place: str) -> int | None:
        """The token under which it was written."""
        found = self.files.files.get(key)
        if found is None:
            self.fail("what events name is there", f"{key}, named by {place}")
            return None
        self.committed[key] = (known.run_id, found.data)
        part = json.loads(found.data)
        token = (part["details"] or {}).get("token")
        if token != known.token:
            self.fail("nothing is published by a loser", f"{place} was written under token {token}, not {known.token}")
        for file in part["files"]:
            there = self.files.files.get(file["path"])
            if there is None or len(there.data) != file["size"]:
                self.fail("what events name is there", f"{file['path']}, named by {place}")
            else:
                self.committed[file["path"]] = (known.run_id, there.data)
        return token if isinstance(token, int) else None

    def _look_at_snapshots(self) -> None:
        for row in self._rows("SELECT run_id, last_event_seq FROM snapshots"):
            known = self.runs[row["run_id"]]
            if row["last_event_seq"] == known.saved_seq:
                continue
            if row["last_event_seq"] < known.saved_seq:
                self.fail("snapshots never go back", f"{known.run_id}: {known.saved_seq} to {row['last_event_seq']}")
            known.saved_seq = row["last_event_seq"]
            [document] = self._rows("SELECT document FROM snapshots WHERE run_id = ?", known.run_id)
            self._compare(known, RunSnapshot.from_json(json.loads(document["document"])))

    def _compare(self, known: Known, saved: RunSnapshot) -> None:
        events = known.events[: saved.last_event_seq]
        expected = incremental_project(RunSnapshot(known.run_id), events)
        known.read = saved
        if saved != expected:
            self.fail("a snapshot is the fold of events", f"{known.run_id} at {saved.last_event_seq}")
        status, done = "PENDING", set[str]()
        for event in events:
            status = _AFTER.get(event.event_type, status)
            if event.event_type in {"StepCompleted", "StepSkipped"}:
                done.add(event.step_id)
        told = {step.step_id for step in saved.steps if step.status.is_done}
        if saved.status.value != status or told != done:
            self.fail("a snapshot is the fold of events", f"{known.run_id}: {saved.status} {told}, not {status} {done}")

    def has_read(self, snapshot: RunSnapshot) -> None:
        """Whoever reads a saved snapshot goes on behind its watermark, so it must know exactly what is before that."""
        known = self.runs[snapshot.run_id]
        if known.read != snapshot:
            self._compare(known, snapshot)

    def _look_at_outbox(self) -> None:
        statement = (
            "SELECT o.entry_id, o.sink, o.dead_since, e.event_id "
            "FROM outbox o JOIN run_events e USING (run_id, run_seq)"
        )
        rows = self._rows(statement)
        now = {row["entry_id"]: (row["sink"], row["event_id"]) for row in rows}
        for entry, (bus, event_id) in self._waiting_out.items():
            if entry not in now and event_id not in self.received[bus] and not self._is_gone(event_id):
                self.fail("every event is delivered or a dead letter", f"event {event_id} was not sent to {bus}")
            if entry not in now and not self._is_gone(event_id):
                run_id, number = self._places[event_id]
                self._moves(self.runs[run_id], partial(RunModel.confirm, number=number))
        self._waiting_out = now
        for row in rows:
            if row["dead_since"] is not None and row["entry_id"] not in self._dead:
                self._dead.add(row["entry_id"])
                run_id, number = self._places[row["event_id"]]
                self._moves(self.runs[run_id], partial(RunModel.bury, number=number))

    def _is_gone(self, event_id: str) -> bool:
        """Whether the run of an event was deleted; its events go with it."""
        return any(known.is_deleted and event_id in known.ids for known in self.runs.values())

    def _look_at_versions(self, process: Process | None) -> None:
        rows = self._rows("SELECT dataset, version, run_id, seq, files FROM dataset_versions ORDER BY dataset, version")
        there: dict[tuple[str, int], list[str]] = {}
        for row in rows:
            key = (row["dataset"], row["version"])
            there[key] = [file["path"] for file in json.loads(row["files"])]
            if key in self.versions:
                continue
            known = self.runs[row["run_id"]]
            if process is not None and known.holder is not process:
                self.fail("nothing is published by a loser", f"{key} of {row['run_id']} by {process.name}")
            for path in there[key]:
                if path not in self.files.files:
                    self.fail("what versions name is there", f"{path} of {key}")
        made = defaultdict[tuple[str, str, int], list[int]](list)
        for row in rows:
            made[row["dataset"], row["run_id"], row["seq"]].append(row["version"])
        for (dataset, run_id, _), numbers in made.items():
            if len(numbers) > 1:
                self.fail("an output is registered once", f"{dataset} {numbers} of {run_id}")
        newest = dict(sorted(self.versions))
        for dataset, number in self.versions.keys() - there.keys():
            if newest[dataset] == number:
                self.fail("nothing readable is deleted", f"the newest version {number} of {dataset}")
        self.versions = there

    def _look_at_captures(self, process: Process | None) -> None:
        for row in self._rows("SELECT capture_id, status, token, result FROM captures"):
            before = self.captures.get(row["capture_id"], ("queued", 0, None))
            holder = process if row["token"] != before[1] else before[2]
            if row["status"] != before[0] and before[0] == "ready":
                self.fail("a capture is done once", f"{row['capture_id']} went from ready to {row['status']}")
            if row["status"] == "ready" and before[0] != "ready":
                told = json.loads(row["result"])["job"]["name"]
                if told != f"token {row['token']}":
                    self.fail("no capture of a loser counts", f"{told}, but it was taken with {row['token']}")
                if process is not None and holder is not process:
                    self.fail("no capture of a loser counts", f"{row['capture_id']} ended by {process.name}")
            self.captures[row["capture_id"]] = (row["status"], row["token"], holder)

    # Before every change of a file

    def file_changes(self, what: str, key: str) -> None:
        """A file is about to be removed or written again."""
        named_by = self.committed.get(key)
        if named_by is not None and self._there(named_by[0]) and not (what == "write" and key == "removals.jsonl"):
            self.fail("committed files stay as they are", f"{what} {key}, which events of {named_by[0]} name")
        for version, paths in self.versions.items():
            if key in paths:
                self.fail("nothing readable is deleted", f"{what} {key}, which version {version} names")

    def _there(self, run_id: str) -> bool:
        return bool(self._rows("SELECT 1 FROM runs WHERE run_id = ?", run_id))

    # When faults have stopped

    def unsettled(self) -> list[str]:
        """What still has to happen by itself."""
        found = [
            f"run {row['run_id']} is {row['status']}"
            for row in self._rows(
                "SELECT run_id, status FROM runs WHERE (wants_worker = 1"
                " OR (status IN ('PENDING', 'APPROVED', 'RUNNING') AND approval_pending = 0))"
                # Whoever waits behind a run of the same period that waits for a person waits for that person, too.
                " AND NOT (status IN ('PENDING', 'APPROVED') AND EXISTS (SELECT 1 FROM runs other"
                " WHERE other.slot_held = runs.slot AND other.run_id <> runs.run_id AND other.status = 'PAUSED'))"
            )
        ]
        found += [
            f"the snapshot of {row['run_id']} is behind"
            for row in self._rows(
                "SELECT run_id FROM runs LEFT JOIN snapshots USING (run_id)"
                " WHERE coalesce(last_event_seq, 0) < last_seq"
            )
        ]
        found += [
            f"event {row['run_seq']} of {row['run_id']} waits for {row['sink']}"
            for row in self._rows("SELECT * FROM outbox WHERE dead_since IS NULL")
        ]
        found += [
            f"capture {row['capture_id']} is {row['status']}"
            for row in self._rows(
                "SELECT capture_id, captures.status FROM captures LEFT JOIN runs USING (run_id)"
                " WHERE captures.status IN ('queued', 'running')"
                " AND (runs.run_id IS NULL OR runs.status IN ('COMPLETED', 'FAILED', 'CANCELLED'))"
            )
        ]
        return found

    def at_the_end(self) -> None:
        """Everything once more, from the beginning."""
        for run_id, known in self.runs.items():
            if known.is_deleted:
                continue
            rows = self._rows("SELECT * FROM run_events WHERE run_id = ? ORDER BY run_seq", run_id)
            raws = [raw_of(row) for row in rows]
            if [raw.read() for raw in raws] != known.events:
                self.fail("events never change", run_id)
            [head] = self._rows("SELECT * FROM runs WHERE run_id = ?", run_id)
            report = verify_chain(raws, key=KEY, last_seq=head["last_seq"], last_hash=head["last_hash"])
            if not report.is_intact:
                self.fail("events are sealed", f"{run_id}: {report.breaks}")
            if head["status"] != known.status:
                self.fail("the head says what events say", f"{run_id}: {head['status']}, not {known.status}")
            told = advance(RunSnapshot(run_id), known.events).snapshot
            for problem in head_problems(record_of(head), head_row(head), known.events, told):
                self.fail("clew verify finds nothing wrong with the head of a run", f"{run_id}: {problem}")
        for key, (run_id, data) in self.committed.items():
            found = self.files.files.get(key)
            if self._there(run_id) and (found is None or found.data != data):
                self.fail("committed files stay as they are", f"{key} of {run_id}")
        dead = {
            (row["sink"], row["event_id"])
            for row in self._rows("SELECT o.sink, e.event_id FROM outbox o JOIN run_events e USING (run_id, run_seq)")
        }
        for known in self.runs.values():
            for event in known.events:
                for bus in BUSES:
                    is_known = event.event_id in self.received[bus] or (bus, event.event_id) in dead
                    if not is_known and not known.is_deleted:
                        self.fail("every event is delivered or a dead letter", f"{event.event_id} to {bus}")

    def left_over(self) -> list[str]:
        """Files of ended runs and of deleted ones that nothing names."""
        named = {key for key, (run_id, _) in self.committed.items() if self._there(run_id)}
        named |= {path for paths in self.versions.values() for path in paths}
        resting = {
            row["run_id"]
            for row in self._rows("SELECT run_id FROM runs WHERE status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED')")
        }
        return [
            key
            for key in sorted(self.files.files)
            if key.startswith(("runs/", "datasets/"))
            and key not in named
            and not any(run_id in key for run_id in resting)
        ]


def raw_of(row: sqlite3.Row) -> RawEvent:
    """A row as it lies in the table."""
    return RawEvent(
        run_id=row["run_id"],
        run_seq=row["run_seq"],
        event_id=row["event_id"],
        step_id=row["step_id"],
        logical_attempt_id=row["logical_attempt_id"],
        engine_attempt_id=row["engine_attempt_id"],
        event_type=row["event_type"],
        event_version=row["event_version"],
        event_data=json.loads(row["event_data"]),
        idempotency_key=row["idempotency_key"],
        emitted_at=moment_of(row["emitted_at"]),
        persisted_at=moment_of(row["persisted_at"]),
        adapter_version=row["adapter_version"],
        engine_run_ref=json.loads(row["engine_run_ref"]) if row["engine_run_ref"] else None,
        caused_by_signal_id=row["caused_by_signal_id"],
        parent_event_id=row["parent_event_id"],
        previous_hash=row["previous_hash"],
        hash=row["hash"],
    )
