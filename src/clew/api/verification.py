"""Checks that what is recorded about runs is what was written: ledger, events, states, descriptions and files.

The ledger and the events are sealed with a key that the database does not hold. Events hold the digests of
descriptions, descriptions those of files. What anyone changes on the way shows at one of these links.
"""

import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from typing import Any

from clew.api.checkpoints import checkpoint_problems
from clew.api.derived_rows import attempt_problems, block_problems, head_problems, saved_state_problems
from clew.api.kept_checkpoints import checkpoint_file, kept_checkpoints
from clew.api.state import State
from clew.captures.manifests import Places
from clew.captures.queue import CaptureStatus
from clew.deferred import dataclass
from clew.diagnostics import ClewError, Diagnostic, TransientFailure, UserError
from clew.diagnostics.codes.engine import STORAGE_UNAVAILABLE
from clew.diagnostics.file_system import OutOfReach, is_out_of_reach, unavailable
from clew.events.chain import ChainReport, SealKey, verify_chain
from clew.events.codec import canonical_json
from clew.events.envelope import RawEvent
from clew.events.ledger import HEADS, EntryKind, LedgerEntry, chain_problems, head_problem, tables_of
from clew.events.reducer import advance
from clew.events.snapshot import RunSnapshot
from clew.evidence.reevaluation import reevaluate
from clew.plan.json_form import digest_of
from clew.runs.environment import RunEnvironment
from clew.runs.request import RunFilter, RunRecord
from clew.runs.seal_keys import seal_key
from clew.runs.view import RunFactsReader
from clew.storage.checked_files import TraceFiles
from clew.storage.committed import readable_parts
from clew.storage.parts import Part
from clew.storage.plans import kept_plan
from clew.storage.removals import Journal
from clew.storage.root import StorageRoot
from clew.store.ledger import RECORD_NAMES
from clew.store.run_heads import RunHeadRow
from clew.trace.run_trace import open_trace

_ALL = 1_000_000
_LOOKS = 5
"""How often a run is looked at that moves meanwhile."""
_UNREADABLE = (ClewError, ValueError, KeyError, TypeError)
"""What an edited document may cause where it is read."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not what was written."""

    subject: str
    """`ledger`, `run ID`, or the kind of record."""
    problem: str

    def to_json(self) -> dict[str, object]:
        """The form of `clew verify --json`."""
        return {"subject": self.subject, "problem": self.problem}


@dataclass(frozen=True, slots=True)
class Verification:
    """What was checked, and what was found."""

    checked: Mapping[str, int]
    """How many of each kind: entries, events, runs, parts, files, bytes, records; steps, rows and expressions."""
    findings: tuple[Finding, ...]
    seconds: float
    is_deep: bool = False
    """Whether every expression was evaluated again, too."""

    @property
    def is_intact(self) -> bool:
        """Whether nothing contradicts what was written."""
        return not self.findings

    def to_json(self) -> dict[str, object]:
        """The form of `clew verify --json`."""
        return {
            "intact": self.is_intact,
            "deep": self.is_deep,
            "checked": dict(self.checked),
            "seconds": round(self.seconds, 3),
            "findings": [finding.to_json() for finding in self.findings],
        }


@dataclass(slots=True)
class _Expected:
    """What the ledger says there must be."""

    requests: dict[str, str] = field(default_factory=dict)
    adopted: dict[str, tuple[int, str]] = field(default_factory=dict)
    heads: dict[str, list[LedgerEntry]] = field(default_factory=dict)
    """Where the history of a run ended when it was told something, and when it ended."""
    deleted: dict[str, dict[str, Any]] = field(default_factory=dict)
    rows: dict[str, dict[str, str]] = field(default_factory=dict)
    removals: list[dict[str, Any]] = field(default_factory=list)
    tables: frozenset[str] = frozenset()
    """The tables whose rows must all be known: those that the ledger has begun with."""

    def learn(self, entry: LedgerEntry) -> None:
        """Take an entry into account, after those before it."""
        content: Mapping[str, Any] = entry.content
        match entry.kind:
            case EntryKind.BEGUN:
                self.tables = tables_of(content)
            case EntryKind.EVIDENCE_MADE | EntryKind.VERIFIED:
                pass
            case EntryKind.REMOVED:
                self.removals.append(dict(content))
            case EntryKind.RUN_CREATED:
                self.requests[entry.subject_id] = content["request"]
            case EntryKind.RUN_ADOPTED:
                self.requests[entry.subject_id] = content["request"]
                self.adopted[entry.subject_id] = (content["last_seq"], content["events"])
            case _ if entry.kind in HEADS:
                self.heads.setdefault(entry.subject_id, []).append(entry)
            case EntryKind.RUN_DELETED:
                self.requests.pop(entry.subject_id, None)
                self.deleted[entry.subject_id] = dict(content)
            case _:
                rows = self.rows.setdefault(content["table"], {})
                if content["digest"] is None:
                    rows.pop(content["key"], None)
                else:
                    rows[content["key"]] = content["digest"]


def chain_of(state: State, environment: RunEnvironment, record: RunRecord) -> ChainReport:
    """Whether every event of a run is still what was stored."""
    adopted = 0
    for entry in state.ledger.entries(subject_id=record.run_id):
        if entry.kind == EntryKind.RUN_ADOPTED:
            adopted = int(str(entry.content["last_seq"]))
    history = state.stores.reader.raw_events(record.run_id)
    key = seal_key(environment)
    return verify_chain(history, key=key, last_seq=record.last_seq, last_hash=record.last_hash, adopted=adopted)


class Verifier:
    """Verifies one run or everything in an environment. Reads only."""

    def __init__(self, state: State, environment: RunEnvironment, *, is_deep: bool = False) -> None:
        """A deep verification also evaluates every expression of runs again, for every row, without Spark."""
        self._is_deep = is_deep
        self._state = state
        self._environment = environment
        self._key: SealKey = seal_key(environment)
        self._checked: Counter[str] = Counter()
        self._findings = list[Finding]()
        self._files: set[str] = set()

    def run(self, record: RunRecord) -> Verification:
        """One run. The whole ledger is walked: what it says about the run counts only if no entry is missing."""
        started = time.perf_counter()
        expected = _Expected()
        with self._readable("ledger"):
            for entry in self._check_ledger():
                if entry.subject_id == record.run_id:
                    expected.learn(entry)
        with self._readable(f"run {record.run_id}"):
            self._check_run(record, expected)
        return self._result(started)

    def everything(self) -> Verification:
        """The whole ledger, every record that it vouches for, and every run."""
        started = time.perf_counter()
        expected = _Expected()
        with self._readable("ledger"):
            for entry in self._check_ledger():
                expected.learn(entry)
        with self._readable("record of runs"):
            self._check_deletions(expected)
            self._check_removals(expected)
            records = {record.run_id: record for record in self._records()}
            for run_id in expected.requests.keys() - records.keys():
                self._find(f"run {run_id}", "it is gone, and nothing says that it was deleted")
            for run_id in self._state.run_heads.saved_of_no_run():
                self._find(f"run {run_id}", "there is a saved state of it, and nothing else")
            for record in records.values():
                with self._readable(f"run {record.run_id}"):
                    self._check_run(record, expected)
        self._check_rows(expected)
        with self._readable("dataset version"):
            self._check_registered()
        with self._readable("capture"):
            self._check_captured()
        return self._result(started)

    @contextmanager
    def _readable(self, subject: str) -> Iterator[None]:
        """Tell what cannot be read, as something that was edited may be, and go on behind the block."""
        try:
            yield
        except TransientFailure:
            raise
        except _UNREADABLE as error:
            if is_out_of_reach(error):
                raise
            self._find(subject, f"a row of it cannot be read: {error}")

    def _check_ledger(self) -> list[LedgerEntry]:
        """All entries, after a look at what is wrong with them, by themselves and against the checkpoints."""
        problems, entries = chain_problems(self._state.ledger.entries(), self._key)
        self._checked["entries"] = len(entries)
        for problem in problems:
            self._find("ledger", problem)
        found = list(kept_checkpoints(checkpoint_file(self._environment)))
        self._checked["checkpoints"] = len(found)
        for problem in checkpoint_problems(found, {entry.seq: entry for entry in entries}, self._key):
            self._find("checkpoints", problem)
        has_ended = any(entry.kind == EntryKind.RUN_ENDED for entry in entries)
        if has_ended and not found and self._environment.embedded_store is not None:
            # With a database server, other machines than this one may have kept them.
            self._find("checkpoints", "none are kept, though runs have ended here: their file is gone")
        return entries

    def _result(self, started: float) -> Verification:
        seconds = time.perf_counter() - started
        return Verification(dict(self._checked), tuple(self._findings), seconds, self._is_deep)

    def _find(self, subject: str, problem: str) -> None:
        self._findings.append(Finding(subject, problem))

    def _found(self, subject: str, problems: Iterable[Diagnostic]) -> None:
        """What is wrong with files. A store that cannot be asked says nothing about them: then there is no result."""
        for each in problems:
            if each.code == STORAGE_UNAVAILABLE.name:
                raise UserError(each)
            self._find(subject, each.message)

    def _records(self) -> Iterator[RunRecord]:
        mine = RunFilter(environment_id=self._environment.name, tenant_id=self._environment.settings.tenant)
        yield from self._state.stores.catalog.runs(mine, limit=_ALL)

    # Records that the ledger vouches for

    def _check_rows(self, expected: _Expected) -> None:
        for table, name in RECORD_NAMES.items():
            known, actual = expected.rows.get(table, {}), dict[str, str]()
            with self._readable(name):
                actual = self._state.ledger.row_digests(table)
            self._checked["records"] += len(actual)
            for key in sorted(known.keys() | actual.keys()):
                if key not in actual:
                    self._find(name, f"{key} is gone")
                elif key not in known:
                    if table in expected.tables:
                        self._find(name, f"{key} was not written by Clew")
                elif known[key] != actual[key]:
                    self._find(name, f"{key} was changed")

    def _check_deletions(self, expected: _Expected) -> None:
        recorded = self._state.ledger.deleted_runs()
        for run_id, said in expected.deleted.items():
            told = recorded.get(run_id)
            if told is None or any(told[name] != said.get(name, told[name]) for name in told):
                self._find(f"run {run_id}", "the record of its deletion was changed")
        for run_id in sorted(recorded.keys() & expected.requests.keys()):
            self._find(f"run {run_id}", "a record says that it was deleted, the ledger does not")

    def _check_removals(self, expected: _Expected) -> None:
        """What garbage collection has deleted, by the ledger and by its own record. Older lines are not vouched for."""
        known = [canonical_json(content) for content in expected.removals]
        if not known:
            return
        since = min(str(content["at"]) for content in expected.removals)
        kept = Journal(self._environment.storage_root).records(self._environment.name)
        told = {canonical_json(record.to_json()) for record in kept if record.at.isoformat() >= since}
        self._checked["removals"] = len(known)
        for line in sorted(set(known) ^ told):
            name = json.loads(line)["name"]
            problem = "nothing says that it was deleted" if line in known else "the ledger does not know of it"
            self._find("record of removals", f"{name}: {problem}")

    # Files beside those of runs

    def _check_registered(self) -> None:
        """Every byte of the files of registered datasets. Those of tables are compared when they are read."""
        root = self._environment.storage_root
        for dataset in self._state.ledger.dataset_names():
            try:
                versions = self._state.datasets.versions(dataset)
            except UserError:
                continue  # a record that was changed is a finding already, and its files are not worth comparing
            for version in versions:
                name = f"dataset {version.dataset} v{version.version}"
                for file in version.files:
                    self._compare(name, root, file.path, file.sha256, file.size)

    def _check_captured(self) -> None:
        """Every byte of the files of captures."""
        places, mine = Places(self._environment), self._environment.settings.tenant
        for record in self._state.captures.listed(tenant_id=mine, status=CaptureStatus.READY, limit=_ALL):
            manifest = record.outcome.manifest
            if manifest is None:
                continue
            for file in manifest.files:
                name, folder = f"capture {record.capture_id}", places.at(manifest.folder)
                self._compare(name, folder, file.path, file.sha256, file.size)

    def _compare(self, subject: str, root: StorageRoot, key: str, sha256: str, size: int) -> None:
        """A file is what was written. It counts once, whoever names it."""
        place = f"{root.address}/{key}"
        is_own = root.address == self._environment.storage_root.address
        if place in self._files or (is_own and key in self._files):
            return
        self._files.add(place)
        self._checked["files"] += 1
        self._checked["bytes"] += size
        try:
            problem = None if root.sha256(key) == sha256 else "its content is not what was written"
        except OutOfReach as error:
            raise unavailable(error) from error
        except FileNotFoundError:
            problem = "it is gone"
        except OSError as error:
            problem = f"it cannot be read: {error.strerror or error}"
        if problem is not None:
            self._find(subject, f"{key}: {problem}")

    # Runs

    def _check_run(self, record: RunRecord, expected: _Expected) -> None:
        run_id, subject = record.run_id, f"run {record.run_id}"
        self._checked["runs"] += 1
        request = expected.requests.get(run_id)
        if request is None:
            self._find(subject, "the ledger does not know it")
        elif self._state.ledger.request_digest(run_id) != request:
            self._find(subject, "what it was asked for was changed")
        snapshot = self._check_events(record, expected)
        if snapshot is not None:
            self._check_files(subject, snapshot)
            self._check_plan(subject, record)
            if self._is_deep and snapshot.status.is_terminal:
                self._evaluate(subject, record)

    def _check_events(self, record: RunRecord, expected: _Expected) -> RunSnapshot | None:
        run_id, subject = record.run_id, f"run {record.run_id}"
        adopted, digest = expected.adopted.get(run_id, (0, ""))
        if adopted and self._state.ledger.adopted_digest(run_id, adopted) != digest:
            self._find(subject, f"one of its first {adopted} events was changed")
        record, head, history = self._at_one_moment(record)
        report = verify_chain(
            history, key=self._key, last_seq=record.last_seq, last_hash=record.last_hash, adopted=adopted
        )
        self._checked["events"] += len(history)
        for each in report.breaks:
            self._find(subject, f"event {each.run_seq}: {each.problem}")
        for entry in expected.heads.get(run_id, ()):
            problem = head_problem(entry, history)
            if problem is not None:
                self._find(subject, problem)
        try:
            read = [event.read() for event in history]
            told = advance(RunSnapshot(run_id), read).snapshot
        except _UNREADABLE as error:
            self._find(subject, f"its events cannot be read: {error}")
            return None
        for problem in (
            *head_problems(record, head, read, told),
            *saved_state_problems(self._state, run_id),
            *attempt_problems(self._state, run_id, read),
        ):
            self._find(subject, problem)
        return told

    def _at_one_moment(self, record: RunRecord) -> tuple[RunRecord, RunHeadRow, list[RawEvent]]:
        """The row of a run and its events, also where it is under way and moves between two statements."""
        heads, run_id = self._state.run_heads, record.run_id
        for _ in range(_LOOKS):
            head, record = heads.head(run_id), self._state.stores.catalog.run(run_id)
            history = list(self._state.stores.reader.raw_events(run_id))
            if heads.head(run_id) == head:
                break
        return record, head, history

    def _check_files(self, subject: str, snapshot: RunSnapshot) -> None:
        parts, problems = readable_parts(self._environment.storage_root, snapshot)
        self._found(subject, problems)
        self._checked["parts"] += len(parts)
        self._verify(subject, parts)
        for problem in block_problems(self._state, snapshot.run_id, parts):
            self._find(subject, problem)

    def _verify(self, subject: str, parts: Iterable[Part]) -> None:
        files = TraceFiles(self._environment.storage_root)
        for part in parts:
            fresh = [file for file in part.files if file.path not in self._files]
            self._files |= {file.path for file in fresh}
            self._checked["files"] += len(fresh)
            self._checked["bytes"] += sum(file.size for file in fresh)
            try:
                files.verify([part])
            except UserError as error:
                self._found(subject, error.diagnostics)

    def _check_plan(self, subject: str, record: RunRecord) -> None:
        digest = record.request.plan.digest
        if digest is None:
            return
        try:
            plan = kept_plan(self._environment.storage_root, digest)
        except UserError as error:
            self._found(subject, error.diagnostics)
            return
        if digest_of(plan) != digest:
            self._find(subject, "its plan was changed")

    def _evaluate(self, subject: str, record: RunRecord) -> None:
        """Every expression of the run gives what its files say, row by row."""
        try:
            facts = RunFactsReader(self._state, self._environment).facts(record.run_id)
            trace = open_trace(facts, self._environment)
        except _UNREADABLE as error:
            if is_out_of_reach(error):
                raise
            self._find(subject, f"its trace cannot be read: {error}")
            return
        counts = {step.seq: step.counts.get("rows_written") for step in facts.snapshot.steps}
        written = {seq: count for seq, count in counts.items() if count is not None}
        try:
            found = reevaluate(trace, written)
        finally:
            trace.close()
        self._checked["steps"] += found.steps
        self._checked["rows"] += found.rows
        self._checked["expressions"] += found.expressions
        for problem in found.problems:
            self._find(subject, problem)
