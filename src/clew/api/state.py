"""The open state store of an environment.

A state store in a file is at first only read, by the driver alone; the rest is loaded by whoever needs it.
"""

# ruff: noqa: PLC0415 - what writes to a state store takes longer to import than reading one takes

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import TYPE_CHECKING

from clew.definitions.settings import UnrecordedReads
from clew.diagnostics import UserError
from clew.diagnostics.codes.runs import UNRECORDED_READ
from clew.runs.environment import PRIVATE_FOLDER, RunEnvironment
from clew.runs.seal_keys import seal_key
from clew.runs.secrets import SecretsResolver, redacted_logs
from clew.runs.stores import RunReading, RunStores
from clew.storage.private_folders import make_private
from clew.store.owner import Owner
from clew.store.reading import SqlHistory, SqlRunList, SqlSavedSnapshots, SqlSource
from clew.store.sealed_runs import SqlSealedRuns
from clew.store.sqlite_file import FileAccessLog, readable_file

if TYPE_CHECKING:
    from clew.api.opened_stores import OpenedStores
    from clew.auth.access_log import AccessLog, AccessRecord, ReadRecords
    from clew.auth.tokens import BrowserSessionStore, TokenStore
    from clew.captures.queue import CaptureRecord, CaptureStore
    from clew.runs.registry import DatasetRegistry, ProjectRegistry
    from clew.runs.submission import RunQueue
    from clew.store.ledger import Ledger, SqlLedgerReader
    from clew.store.run_heads import SqlRunHeads
    from clew.store.sqlite_file import SqliteFile
    from clew.store.standing import SqlStanding
    from clew.tracelink.stores import TraceLinkStores


_log = logging.getLogger(__name__)


class State:
    """Everything that the state store of an environment keeps. Any thread may use it."""

    def __init__(self, environment: RunEnvironment, secrets: SecretsResolver) -> None:
        self.secrets = secrets
        """Looks secrets up by reference."""
        self._environment = environment
        self._opening = threading.RLock()
        self._opened: OpenedStores | None = None
        path = environment.embedded_store
        self._file: SqliteFile | None = readable_file(path) if path is not None else None
        if self._file is None:
            self._stores()

    def _stores(self) -> "OpenedStores":
        """All stores, opened on first use."""
        with self._opening:
            if self._opened is None:
                from clew.api.opened_stores import open_stores

                self._opened = open_stores(self._environment, self.secrets)
            return self._opened

    def close(self) -> None:
        """Close what was opened."""
        with self._opening:
            if self._file is not None:
                self._file.close()
            if self._opened is not None:
                self._opened.database.close()

    @property
    def _source(self) -> SqlSource:
        return self._file if self._opened is None and self._file is not None else self._stores().database

    @property
    def reading(self) -> RunReading:
        """What it takes to show runs."""
        source = self._source
        return RunReading(SqlHistory(source), SqlRunList(source), SqlSavedSnapshots(source))

    @property
    def standing(self) -> "SqlStanding":
        """Where projects stand."""
        from clew.store.standing import SqlStanding

        return SqlStanding(self._source, self._environment.name)

    @property
    def sealed_runs(self) -> SqlSealedRuns:
        """What the ledger says about runs, for those who read their rows."""
        return SqlSealedRuns(self._source, Owner.of(self._environment))

    @property
    def run_heads(self) -> "SqlRunHeads":
        """Rows that follow from the events of runs."""
        from clew.store.run_heads import SqlRunHeads

        return SqlRunHeads(self._source)

    def captures_of(self, run_id: str) -> "tuple[CaptureRecord, ...]":
        """The captures and postlude jobs of a run."""
        from clew.store.capture_reading import SqlCapturesOfRuns

        return SqlCapturesOfRuns(self._source, self._environment.name).of_run(run_id)

    @property
    def stores(self) -> RunStores:
        """Histories, leases, the queue and the outbox."""
        return self._stores().runs

    @property
    def datasets(self) -> "DatasetRegistry":
        """Versions of registered datasets."""
        return self._stores().datasets

    @property
    def projects(self) -> "ProjectRegistry":
        """Versions of activated projects."""
        return self._stores().projects

    @property
    def captures(self) -> "CaptureStore":
        """Captures and postlude jobs."""
        return self._stores().captures

    @property
    def tokens(self) -> "TokenStore":
        """Tokens of the API."""
        return self._stores().tokens

    @property
    def browser_sessions(self) -> "BrowserSessionStore":
        """Who has signed in."""
        return self._stores().browser_sessions

    @property
    def access_log(self) -> "AccessLog":
        """Who has read what."""
        return self._stores().access_log

    @property
    def read_records(self) -> "ReadRecords":
        """Where to record who has read what."""
        if self._file is not None and self._file.is_read_only:
            if self._environment.settings.unrecorded_reads is UnrecordedReads.REFUSE:
                raise UserError(UNRECORDED_READ.anywhere())
            return _Unrecorded()
        if self._opened is None and self._file is not None:
            log = FileAccessLog(self._file, Owner.of(self._environment), cache(partial(seal_key, self._environment)))
            if log.has_begun():
                return log
        return self.access_log

    @property
    def tracelink(self) -> "TraceLinkStores":
        """Frames, links and node ids."""
        return self._stores().tracelink

    @property
    def ledger(self) -> "SqlLedgerReader":
        """The ledger, to be read."""
        return self._stores().ledger

    @property
    def ledger_writer(self) -> "Ledger":
        """The ledger, to be added to."""
        return self._stores().ledger_writer


class _Unrecorded:
    """In place of records, where the environment allows reads without them."""

    def add(self, *records: "AccessRecord") -> None:
        """Say that they are not kept."""
        for record in records:
            _log.warning("not on record, as the state store is read-only: %s %s", record.actor, record.subject.value)


def queue_of(state: State, environment: RunEnvironment) -> "RunQueue":
    """The queue for run requests of an environment."""
    from clew.runs.submission import RunQueue

    return RunQueue(state.stores.intake, lambda _environment: environment.queue_policy())


@contextmanager
def open_state(environment: RunEnvironment) -> Iterator[State]:
    """Open the state store, upgrade its schema if necessary, and close it at the end.

    While it is open, Clew's logs do not show the secrets that were resolved for it.
    """
    if environment.has_private_folder:
        make_private(environment.root / PRIVATE_FOLDER)
    secrets = environment.secrets()
    with redacted_logs(secrets.redactor):
        state = State(environment, secrets)
        try:
            yield state
        finally:
            state.close()
